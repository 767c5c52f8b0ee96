/* basis.c -- rows about nodes, in memory: the last commit that writes or deletes a row counts.
 *
 * An entry keeps the very item of the extra that wrote it, shared with the commit: taking a row in
 * copies nothing.
 *
 * Cost: a row taken in one hash lookup, plus a look at its reads; rows of a piece in order, O(rows)
 * unless they came out of order. */
#define _GNU_SOURCE
#include "store/basis.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include "value/node.h"
#include "value/object.h"
#include <stdlib.h>
#include <string.h>

/* ---- life */

void basis_init(basis *b, const hd_env *env, hd_heap *heap, bool overlay) {
    assert(env && heap);
    *b = (basis){ .env = env, .heap = heap, .overlay = overlay };
    table_init(&b->by_name, env);
    table_init(&b->by_piece, env);
}

static void entry_fini(basis_entry *e) {
    value_unref(e->item);
    value_unref(e->seqs);
}

static void piece_fini(basis *b, basis_piece *p) {
    value_unref(p->name);
    vec_fini(b->env, &p->rows);
}

void basis_fini(basis *b) {
    if (!b->env) return;
    for (uint32_t i = 0; i < b->entries.count; i++) entry_fini(&b->entries.items[i]);
    for (uint32_t i = 0; i < b->pieces.count; i++) piece_fini(b, &b->pieces.items[i]);
    vec_fini(b->env, &b->entries);
    vec_fini(b->env, &b->pieces);
    table_fini(&b->by_name);
    table_fini(&b->by_piece);
    b->env = NULL;
}

/* ---- finding */

static bool text_is(const char *text, size_t length, const char *other, size_t other_length) {
    return length == other_length && !memcmp(text, other, length);
}

static uint32_t name_hash(const char *name, size_t length, const char *instance,
                          size_t instance_length) {
    uint64_t h = hash_bytes(name, length, 0);
    return hash_fold(instance_length ? hash_bytes(instance, instance_length, h) : h);
}

static uint32_t find(const basis *b, uint32_t hash, const char *name, size_t length,
                     const char *instance, size_t instance_length) {
    for (table_probe p = table_find(&b->by_name, hash); table_next(&b->by_name, &p);) {
        size_t n, k;
        hd_value item = b->entries.items[p.index].item;
        const char *its_name = basis_item_text(item, ROW_NAME, &n);
        const char *its_instance = basis_item_text(item, ROW_INSTANCE, &k);
        if (text_is(its_name, n, name, length) &&
            text_is(its_instance, k, instance, instance_length))
            return p.index;
    }
    return TABLE_NONE;
}

const basis_entry *basis_find(const basis *b, const char *name, const char *instance) {
    size_t n = strlen(name), k = strlen(instance);
    uint32_t i = find(b, name_hash(name, n, instance, k), name, n, instance, k);
    return i == TABLE_NONE ? NULL : &b->entries.items[i];
}

static uint32_t find_piece(const basis *b, uint32_t hash, const char *name, size_t length) {
    for (table_probe p = table_find(&b->by_piece, hash); table_next(&b->by_piece, &p);) {
        size_t n;
        const char *its = hd_value_text(b->pieces.items[p.index].name, &n);
        if (text_is(its, n, name, length)) return p.index;
    }
    return TABLE_NONE;
}

basis_piece *basis_find_piece(const basis *b, const char *name, size_t length) {
    uint32_t i = find_piece(b, hash_fold(hash_bytes(name, length, 0)), name, length);
    return i == TABLE_NONE ? NULL : &b->pieces.items[i];
}

basis_row basis_row_of(const basis_entry *e) {
    assert(!basis_is_gone(e) && array_count(e->item) == ROW_ITEMS);
    return (basis_row){ .name = basis_item_text(e->item, ROW_NAME, NULL),
                        .instance = basis_item_text(e->item, ROW_INSTANCE, NULL),
                        .hashes = basis_item_text(e->item, ROW_HASHES, NULL),
                        .print = basis_item_text(e->item, ROW_PRINT, NULL),
                        .flags = basis_item_text(e->item, ROW_FLAGS, NULL),
                        .reads = basis_item_text(e->item, ROW_READS, NULL),
                        .seqs = e->seqs };
}

/* ---- order */

static int compare_text(hd_value x, hd_value y, size_t i) {
    size_t n, k;
    const char *a = basis_item_text(x, i, &n), *b = basis_item_text(y, i, &k);
    int differs = memcmp(a, b, n < k ? n : k);
    return differs ? differs : (n > k) - (n < k);
}

static int compare(const basis *b, uint32_t i, uint32_t k) {
    hd_value x = b->entries.items[i].item, y = b->entries.items[k].item;
    int differs = compare_text(x, y, ROW_NAME);
    return differs ? differs : compare_text(x, y, ROW_INSTANCE);
}

static int compare_rows(const void *x, const void *y, void *ctx) {
    return compare(ctx, *(const uint32_t *)x, *(const uint32_t *)y);
}

void basis_sort(const basis *b, basis_piece *p) {
    if (p->sorted) return;
    qsort_r(p->rows.items, p->rows.count, sizeof *p->rows.items, compare_rows,
            (void *)(uintptr_t)b);
    for (uint32_t i = 0; i < p->rows.count; i++) b->entries.items[p->rows.items[i]].slot = i;
    p->sorted = true;
}

/* ---- pieces and entries */

static hd_status piece_at(basis *b, const char *name, size_t length, uint32_t *out) {
    uint32_t hash = hash_fold(hash_bytes(name, length, 0));
    *out = find_piece(b, hash, name, length);
    if (*out != TABLE_NONE) return HD_OK;
    basis_piece p = { .hash = hash, .sorted = true };
    p.name = text_make(b->heap, TAG_STRING, name, length);
    if (value_is_failed(p.name)) return HD_NOMEM;
    if (!vec_room(b->env, &b->pieces, 1) || table_insert(&b->by_piece, hash, b->pieces.count)) {
        piece_fini(b, &p);
        return HD_NOMEM;
    }
    *out = b->pieces.count;
    b->pieces.items[b->pieces.count++] = p;
    return HD_OK;
}

/* A piece goes with its last row. */
static void piece_trim(basis *b, uint32_t i) {
    assert(i < b->pieces.count);
    basis_piece *p = &b->pieces.items[i];
    if (p->rows.count) return;
    table_remove(&b->by_piece, p->hash, i);
    piece_fini(b, p);
    uint32_t last = b->pieces.count - 1;
    if (i != last) {
        *p = b->pieces.items[last];
        table_move(&b->by_piece, p->hash, last, i);
        for (uint32_t k = 0; k < p->rows.count; k++) b->entries.items[p->rows.items[k]].piece = i;
    }
    b->pieces.count = last;
}

static void piece_add(basis *b, uint32_t i, uint32_t entry) {
    assert(i < b->pieces.count && entry < b->entries.count);
    basis_piece *p = &b->pieces.items[i];
    uint32_t slot = p->rows.count;
    p->rows.items[p->rows.count++] = entry; /* there is room */
    b->entries.items[entry].slot = slot;
    if (slot && p->sorted) p->sorted = compare(b, p->rows.items[slot - 1], entry) < 0;
}

static hd_status entry_new(basis *b, hd_value item, uint32_t hash, uint32_t *out) {
    size_t length;
    const char *name = basis_item_text(item, ROW_NAME, &length);
    basis_entry e = { .item = item, .hash = hash };
    hd_status status = piece_at(b, name, basis_piece_length(name, length), &e.piece);
    if (status) return status;
    if (!vec_room(b->env, &b->entries, 1) || !vec_room(b->env, &b->pieces.items[e.piece].rows, 1) ||
        table_insert(&b->by_name, hash, b->entries.count)) {
        piece_trim(b, e.piece);
        return HD_NOMEM;
    }
    value_ref(item);
    *out = b->entries.count;
    b->entries.items[b->entries.count++] = e;
    piece_add(b, e.piece, *out);
    return HD_OK;
}

/* Takes an entry out; the last one moves into its place. */
static void entry_drop(basis *b, uint32_t i) {
    assert(i < b->entries.count);
    basis_entry *e = &b->entries.items[i];
    basis_piece *p = &b->pieces.items[e->piece];
    uint32_t piece = e->piece, last = b->entries.count - 1;
    vec_swap_remove(&p->rows, e->slot);
    if (e->slot < p->rows.count) {
        b->entries.items[p->rows.items[e->slot]].slot = e->slot;
        p->sorted = false;
    }
    table_remove(&b->by_name, e->hash, i);
    entry_fini(e);
    if (i != last) {
        *e = b->entries.items[last];
        table_move(&b->by_name, e->hash, last, i);
        b->pieces.items[e->piece].rows.items[e->slot] = i;
    }
    b->entries.count = last;
    piece_trim(b, piece);
}

/* The entry that an item [name, instance, ...] speaks of; TABLE_NONE. */
static uint32_t entry_of(const basis *b, hd_value item, uint32_t *hash) {
    size_t n, k;
    const char *name = basis_item_text(item, ROW_NAME, &n);
    const char *instance = basis_item_text(item, ROW_INSTANCE, &k);
    *hash = name_hash(name, n, instance, k);
    return find(b, *hash, name, n, instance, k);
}

/* ---- as of when: the seqs of the spaces that a row reads */

/* A space that was never written is at seq 0. */
static uint64_t seq_now(const basis_point *now, const char *name, size_t length) {
    struct key *k;
    uint64_t seq;
    for (uint32_t i = 0; now->space(now->ctx, i, &k, &seq); i++)
        if (text_is(key_bytes(k), k->length, name, length)) return seq;
    return 0;
}

/* Adds a space to *seqs. HD_NOMEM. */
static hd_status add_space(basis *b, const basis_point *now, const basis_read *r, hd_value *seqs) {
    struct key *k = key_intern(b->heap, r->space, r->space_length);
    if (!k) return HD_NOMEM;
    hd_value seq = int_make(b->heap, (int64_t)seq_now(now, r->space, r->space_length));
    hd_value next = object_set(b->heap, *seqs, k, seq);
    value_unref(seq);
    key_unref(k);
    if (value_is_failed(next)) return HD_NOMEM;
    value_unref(*seqs);
    *seqs = next;
    return HD_OK;
}

/* Owned; failed: HD_NOMEM. */
static hd_value seqs_of_reads(basis *b, const basis_point *now, const char *reads) {
    hd_value seqs = node_value(NULL, true);
    basis_read read, last = { .space = "" };
    const char *cell;
    size_t length;
    while (basis_next_cell(&reads, &cell, &length)) {
        if (!basis_parse_cell(cell, length, &read)) continue;
        bool again = text_is(read.space, read.space_length, last.space, last.space_length) ||
                     value_exists(object_get_bytes(seqs, read.space, read.space_length));
        last = read;
        if (again || !add_space(b, now, &read, &seqs)) continue;
        value_unref(seqs);
        return value_failed(HD_NOMEM);
    }
    return seqs;
}

/* ---- taking an extra in */

/* `seqs` is taken; absent: the row is deleted. */
static hd_status become(basis *b, hd_value item, hd_value seqs, uint64_t at) {
    uint32_t hash, i = entry_of(b, item, &hash);
    hd_status status = i == TABLE_NONE ? entry_new(b, item, hash, &i) : HD_OK;
    if (status) {
        value_unref(seqs);
        return status;
    }
    basis_entry *e = &b->entries.items[i], before = *e;
    e->item = value_ref(item);
    e->seqs = seqs;
    e->at = at;
    entry_fini(&before);
    return HD_OK;
}

static hd_status apply_gone(basis *b, hd_value item, uint64_t at) {
    uint32_t hash, i = b->overlay ? TABLE_NONE : entry_of(b, item, &hash);
    if (b->overlay) return become(b, item, value_absent(), at);
    if (i != TABLE_NONE) entry_drop(b, i);
    return HD_OK;
}

static hd_status apply_node(basis *b, const basis_point *now, hd_value item, uint64_t at) {
    hd_value seqs = seqs_of_reads(b, now, basis_item_text(item, ROW_READS, NULL));
    return value_is_failed(seqs) ? HD_NOMEM : become(b, item, seqs, at);
}

hd_status basis_apply(basis *b, hd_value extra, const basis_point *now, uint64_t at) {
    assert(now && now->space && value_exists(extra));
    basis_extra x = basis_extra_of(extra);
    hd_status status = HD_OK;
    if (at && at <= b->trimmed) b->trimmed = at - 1; /* an earlier part of the log is read again */
    for (size_t i = 0, count = array_count(x.gone); !status && i < count; i++)
        status = apply_gone(b, array_get(x.gone, i), at);
    for (size_t i = 0, count = array_count(x.nodes); !status && i < count; i++)
        status = apply_node(b, now, array_get(x.nodes, i), at);
    return status;
}

static void drop_each(basis *b, hd_value items) {
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        uint32_t hash, i = entry_of(b, it.value, &hash);
        if (i != TABLE_NONE) entry_drop(b, i);
    }
}

void basis_drop(basis *b, hd_value extra) {
    basis_extra x = basis_extra_of(extra);
    drop_each(b, x.nodes);
    drop_each(b, x.gone);
}

void basis_trim(basis *b, uint64_t at) {
    assert(at != UINT64_MAX);
    if (at <= b->trimmed) return; /* as at most looks into a file */
    b->trimmed = at;
    for (uint32_t i = b->entries.count; i-- > 0;)
        if (b->entries.items[i].at <= at) entry_drop(b, i);
}

/* ---- telling */

void basis_tell(basis *b, const char *piece, basis_row_fn fn, void *ctx) {
    basis_piece *p = basis_find_piece(b, piece, strlen(piece));
    if (!p) return;
    basis_sort(b, p);
    bool more = true;
    for (uint32_t i = 0; i < p->rows.count && more; i++) {
        const basis_entry *e = &b->entries.items[p->rows.items[i]];
        if (basis_is_gone(e)) continue;
        basis_row row = basis_row_of(e);
        more = fn(ctx, &row);
    }
}

/* ---- invariants */

static void check_piece(const basis *b, uint32_t i) {
    const basis_piece *p = &b->pieces.items[i];
    size_t length;
    const char *name = hd_value_text(p->name, &length);
    assert(find_piece(b, p->hash, name, length) == i);
    assert(p->rows.count);
    for (uint32_t k = 0; k < p->rows.count; k++) {
        const basis_entry *e = &b->entries.items[p->rows.items[k]];
        assert(e->piece == i && e->slot == k);
        assert(!k || !p->sorted || compare(b, p->rows.items[k - 1], p->rows.items[k]) < 0);
        (void)e;
    }
    (void)name;
}

static void check_entry(const basis *b, uint32_t i) {
    const basis_entry *e = &b->entries.items[i];
    uint32_t hash;
    assert(!b->trimmed || e->at > b->trimmed);
    assert(entry_of(b, e->item, &hash) == i && hash == e->hash);
    assert(b->overlay || !basis_is_gone(e));
    assert(basis_is_gone(e) || (value_is_object(e->seqs) && array_count(e->item) == ROW_ITEMS));
    (void)e;
    (void)hash;
}

void basis_check(const basis *b) {
    uint32_t rows = 0;
    assert(table_count(&b->by_name) == b->entries.count);
    assert(table_count(&b->by_piece) == b->pieces.count);
    for (uint32_t i = 0; i < b->pieces.count; i++) {
        check_piece(b, i);
        rows += b->pieces.items[i].rows.count;
    }
    assert(rows == b->entries.count);
    for (uint32_t i = 0; i < b->entries.count; i++) check_entry(b, i);
    (void)rows;
}

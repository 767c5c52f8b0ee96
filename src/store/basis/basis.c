/* basis.c -- rows about nodes, in memory: the last commit that writes or deletes a row counts.
 *
 * An entry keeps the very item of the extra that wrote it, shared with the commit: taking a row in
 * copies nothing. The entries of a piece are linked; the table by_piece has the first of them.
 *
 * Cost: a row taken in one hash lookup, plus a look at its reads; the rows of a piece O(rows). */
#include "store/basis/basis.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include "value/node.h"
#include "value/object.h"
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

void basis_fini(basis *b) {
    if (!b->env) return;
    for (uint32_t i = 0; i < b->entries.count; i++) entry_fini(&b->entries.items[i]);
    vec_fini(b->env, &b->entries);
    table_fini(&b->by_name);
    table_fini(&b->by_piece);
    b->env = NULL;
}

/* ---- finding */

/* The entry of a row, and the hash of its name and instance; TABLE_NONE: there is none. */
static uint32_t find(const basis *b, const char *name, const char *instance, uint32_t *hash) {
    uint64_t h = hash_bytes(name, strlen(name), 0);
    *hash = hash_fold(*instance ? hash_bytes(instance, strlen(instance), h) : h);
    for (table_probe p = table_find(&b->by_name, *hash); table_next(&b->by_name, &p);) {
        hd_value item = b->entries.items[p.index].item;
        if (!strcmp(basis_item_text(item, ROW_NAME, NULL), name) &&
            !strcmp(basis_item_text(item, ROW_INSTANCE, NULL), instance))
            return p.index;
    }
    return TABLE_NONE;
}

const basis_entry *basis_find(const basis *b, const char *name, const char *instance) {
    uint32_t hash, i = find(b, name, instance, &hash);
    return i == TABLE_NONE ? NULL : &b->entries.items[i];
}

/* The first entry of a piece; TABLE_NONE. */
static uint32_t find_piece(const basis *b, uint32_t hash, const char *piece, size_t length) {
    for (table_probe p = table_find(&b->by_piece, hash); table_next(&b->by_piece, &p);) {
        size_t n;
        const char *name = basis_item_text(b->entries.items[p.index].item, ROW_NAME, &n);
        if (n > length && name[length] == ':' && !memcmp(name, piece, length)) return p.index;
    }
    return TABLE_NONE;
}

/* The entry that an item [name, instance, ...] speaks of. */
static uint32_t entry_of(const basis *b, hd_value item, uint32_t *hash) {
    return find(b, basis_item_text(item, ROW_NAME, NULL), basis_item_text(item, ROW_INSTANCE, NULL),
                hash);
}

basis_row basis_row_of(hd_value item, hd_value seqs) {
    basis_row row = { .seqs = seqs };
    size_t count = array_count(item);
    assert(count == ROW_ITEMS || count == GONE_ITEMS);
    for (size_t i = 0; i < ROW_ITEMS; i++)
        row.text[i] = i < count ? basis_item_text(item, i, NULL) : "";
    return row;
}

/* ---- entries */

/* Links the newest entry behind the first of its piece. */
static hd_status link_entry(basis *b, basis_entry *e, uint32_t i) {
    size_t length;
    const char *name = basis_item_text(e->item, ROW_NAME, &length);
    size_t piece = basis_piece_length(name, length);
    e->piece_hash = hash_fold(hash_bytes(name, piece, 0));
    e->before = find_piece(b, e->piece_hash, name, piece);
    e->next = TABLE_NONE;
    if (e->before == TABLE_NONE) return table_insert(&b->by_piece, e->piece_hash, i);
    basis_entry *first = &b->entries.items[e->before];
    e->next = first->next;
    first->next = i;
    if (e->next != TABLE_NONE) b->entries.items[e->next].before = i;
    return HD_OK;
}

static void unlink_entry(basis *b, const basis_entry *e, uint32_t i) {
    if (e->before != TABLE_NONE) b->entries.items[e->before].next = e->next;
    else if (e->next != TABLE_NONE) table_move(&b->by_piece, e->piece_hash, i, e->next);
    else table_remove(&b->by_piece, e->piece_hash, i);
    if (e->next != TABLE_NONE) b->entries.items[e->next].before = e->before;
}

static hd_status entry_new(basis *b, hd_value item, uint32_t hash, uint32_t *out) {
    uint32_t i = b->entries.count;
    if (!vec_room(b->env, &b->entries, 1) || table_insert(&b->by_name, hash, i)) return HD_NOMEM;
    basis_entry *e = &b->entries.items[i];
    *e = (basis_entry){ .item = item, .hash = hash };
    hd_status status = link_entry(b, e, i);
    if (status) {
        table_remove(&b->by_name, hash, i);
        return status;
    }
    value_ref(item);
    b->entries.count++;
    *out = i;
    return HD_OK;
}

/* The last entry gets another index. */
static void move_last(basis *b, uint32_t to) {
    uint32_t last = b->entries.count - 1;
    const basis_entry *e = &b->entries.items[last];
    assert(to < last);
    table_move(&b->by_name, e->hash, last, to);
    if (e->before != TABLE_NONE) b->entries.items[e->before].next = to;
    else table_move(&b->by_piece, e->piece_hash, last, to);
    if (e->next != TABLE_NONE) b->entries.items[e->next].before = to;
    b->entries.items[to] = *e;
}

static void entry_drop(basis *b, uint32_t i) {
    assert(i < b->entries.count);
    basis_entry *e = &b->entries.items[i];
    unlink_entry(b, e, i);
    table_remove(&b->by_name, e->hash, i);
    entry_fini(e);
    if (i != b->entries.count - 1) move_last(b, i);
    b->entries.count--;
}

/* ---- as of when: the seqs of the spaces that a row reads */

/* Adds a space to *seqs. HD_NOMEM. */
static hd_status add_space(basis *b, const basis_point *now, const basis_read *r, hd_value *seqs) {
    struct key *k = key_intern(b->heap, r->space, r->space_length);
    if (!k) return HD_NOMEM;
    uint64_t at = now->seq_of(now->ctx, r->space, r->space_length);
    hd_value seq = int_make(b->heap, (int64_t)at);
    hd_value next = object_set(b->heap, *seqs, k, seq);
    value_unref(seq);
    key_unref(k);
    if (value_is_failed(next)) return HD_NOMEM;
    value_unref(*seqs);
    *seqs = next;
    return HD_OK;
}

/* Whether the cell is in the space of the one before it; most are, and need not be taken apart. */
static bool is_in_same_space(const char *cell, const basis_read *last) {
    while (*cell == '?' || *cell == '~' || *cell == '=') cell++;
    if (!last->space_length || strncmp(cell, last->space, last->space_length) != 0) return false;
    return cell[last->space_length] == '/' || cell[last->space_length] == '@';
}

/* Owned; failed: HD_NOMEM. */
static hd_value seqs_of_reads(basis *b, const basis_point *now, const char *reads) {
    hd_value seqs = node_value(NULL, true);
    basis_read read = { 0 };
    const char *cell;
    size_t length;
    while (basis_next_cell(&reads, &cell, &length)) {
        if (is_in_same_space(cell, &read) || !basis_parse_cell(cell, length, &read)) continue;
        if (value_exists(object_get_bytes(seqs, read.space, read.space_length))) continue;
        if (!add_space(b, now, &read, &seqs)) continue;
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

/* Deletes the row that the item [name, instance] names. HD_NOMEM. */
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
    assert(now && now->seq_of && value_exists(extra));
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

bool basis_first_of(const basis_entry *e, char piece[PIECE_SIZE]) {
    size_t length;
    const char *name = basis_item_text(e->item, ROW_NAME, &length);
    length = basis_piece_length(name, length);
    if (e->before != TABLE_NONE || length >= PIECE_SIZE) return false;
    memcpy(piece, name, length);
    piece[length] = '\0';
    return true;
}

void basis_tell(const basis *b, const char *piece, uint64_t from, basis_row_fn fn, void *ctx) {
    size_t length = strlen(piece);
    uint32_t i = find_piece(b, hash_fold(hash_bytes(piece, length, 0)), piece, length);
    for (bool more = true; more && i != TABLE_NONE; i = b->entries.items[i].next) {
        const basis_entry *e = &b->entries.items[i];
        if (basis_is_gone(e) || e->at < from) continue;
        basis_row row = basis_row_of(e->item, e->seqs);
        more = fn(ctx, &row);
    }
}

/* ---- invariants */

static void check_entry(const basis *b, uint32_t i) {
    const basis_entry *e = &b->entries.items[i];
    uint32_t hash;
    assert(!b->trimmed || e->at > b->trimmed);
    assert(entry_of(b, e->item, &hash) == i && hash == e->hash);
    assert(b->overlay || !basis_is_gone(e));
    assert(basis_is_gone(e) || (value_is_object(e->seqs) && array_count(e->item) == ROW_ITEMS));
    assert(e->before == TABLE_NONE || b->entries.items[e->before].next == i);
    assert(e->next == TABLE_NONE || b->entries.items[e->next].before == i);
    (void)e, (void)hash;
}

void basis_check(const basis *b) {
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < b->entries.count; i++) {
        check_entry(b, i);
        pieces += b->entries.items[i].before == TABLE_NONE;
    }
    assert(table_count(&b->by_name) == b->entries.count);
    assert(table_count(&b->by_piece) == pieces);
    (void)pieces;
}

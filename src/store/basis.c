/* basis.c -- rows about nodes, in memory: the last word on each counts.
 *
 * An entry keeps the very item of the extra that wrote it, shared with the commit: taking a row in
 * copies nothing. All rows of one extra are proved at the same moment, so they share their seqs, which
 * name the spaces that any of them reads. That is nearly always one: it stands in the entry itself, and
 * becomes an object only if somebody asks.
 *
 * Cost: a row taken in one hash lookup, plus a look at its reads; rows of a piece in order, O(rows)
 * unless they came out of order. */
#include "store/basis.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/node.h"
#include "value/object.h"
#include <string.h>

/* ---- life */

void basis_init(basis *b, const hd_env *env, hd_heap *heap, bool overlay) {
    *b = (basis){ .env = env, .heap = heap, .overlay = overlay };
    table_init(&b->by_name, env);
    table_init(&b->by_piece, env);
}

static void entry_fini(basis_entry *e) {
    value_unref(e->row);
    value_unref(e->seqs);
    key_unref(e->space);
}

static void silence_piece(basis_piece *p) {
    value_unref(p->valid);
    value_unref(p->stale);
    table_fini(&p->named);
    p->valid = p->stale = value_absent();
}

static void piece_fini(basis *b, basis_piece *p) {
    value_unref(p->name);
    silence_piece(p);
    vec_fini(b->env, &p->rows);
}

void basis_fini(basis *b) {
    if (!b->env) return;
    for (uint32_t i = 0; i < b->entries.count; i++) entry_fini(&b->entries.items[i]);
    for (uint32_t i = 0; i < b->pieces.count; i++) piece_fini(b, &b->pieces.items[i]);
    vec_fini(b->env, &b->entries);
    vec_fini(b->env, &b->pieces);
    vec_fini(b->env, &b->found);
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
        const basis_entry *e = &b->entries.items[p.index];
        const char *its_name = basis_text(e, 0, &n), *its_instance = basis_text(e, 1, &k);
        if (text_is(its_name, n, name, length) &&
            text_is(its_instance, k, instance, instance_length))
            return p.index;
    }
    return TABLE_NONE;
}

const basis_entry *basis_find(const basis *b, const char *name, size_t name_length,
                              const char *instance, size_t instance_length) {
    uint32_t hash = name_hash(name, name_length, instance, instance_length);
    uint32_t i = find(b, hash, name, name_length, instance, instance_length);
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

static uint32_t text_hash(const char *text) { return hash_fold(hash_bytes(text, strlen(text), 0)); }

bool basis_names_stale(const basis_piece *p, const char *name) {
    if (!table_count(&p->named)) return false;
    for (table_probe at = table_find(&p->named, text_hash(name)); table_next(&p->named, &at);)
        if (!strcmp(hd_value_as_text(array_get(p->stale, at.index), ""), name)) return true;
    return false;
}

static hd_status index_stale(hd_value stale, table *out) {
    hd_status status = table_reserve(out, (uint32_t)array_count(stale));
    for (uint32_t i = 0; i < array_count(stale) && !status; i++)
        status = table_insert(out, text_hash(hd_value_as_text(array_get(stale, i), "")), i);
    return status;
}

hd_value basis_seqs_of(const basis *b, const basis_entry *e) {
    if (!e->space) return value_ref(e->seqs);
    hd_value n = int_make(b->heap, (int64_t)e->seq);
    hd_value seqs = object_set(b->heap, node_value(NULL, true), e->space, n);
    value_unref(n);
    return seqs;
}

basis_row basis_row_of(const basis_entry *e, hd_value seqs) {
    assert(e->flags & ROW_WHOLE);
    return (basis_row){ .name = basis_text(e, 0, NULL),
                        .instance = basis_text(e, 1, NULL),
                        .fingerprint = basis_text(e, 2, NULL),
                        .body = array_get(e->row, 3),
                        .stale = e->flags & ROW_STALE,
                        .seqs = seqs };
}

/* ---- order */

static int compare_text(const basis_entry *x, const basis_entry *y, size_t i) {
    size_t n, k;
    const char *a = basis_text(x, i, &n), *b = basis_text(y, i, &k);
    int differs = memcmp(a, b, n < k ? n : k);
    return differs ? differs : (n > k) - (n < k);
}

static int compare(const basis *b, uint32_t i, uint32_t k) {
    const basis_entry *x = &b->entries.items[i], *y = &b->entries.items[k];
    int differs = compare_text(x, y, 0);
    return differs ? differs : compare_text(x, y, 1);
}

/* Heap sort: no recursion, no memory; rows mostly come in order and need none of it. */
void basis_sort(const basis *b, basis_piece *p) {
    uint32_t *rows = p->rows.items;
    if (p->sorted) return;
    for (uint32_t end = p->rows.count, start = end / 2; end > 1;) {
        if (start) {
            start--;
        } else {
            uint32_t top = rows[0];
            rows[0] = rows[--end];
            rows[end] = top;
        }
        for (uint32_t root = start, child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && compare(b, rows[child], rows[child + 1]) < 0) child++;
            if (compare(b, rows[root], rows[child]) >= 0) break;
            uint32_t swap = rows[root];
            rows[root] = rows[child];
            rows[child] = swap;
        }
    }
    for (uint32_t i = 0; i < p->rows.count; i++) b->entries.items[rows[i]].slot = i;
    p->sorted = true;
}

/* ---- pieces and entries */

static hd_status piece_at(basis *b, const char *name, size_t length, uint32_t *out) {
    uint32_t hash = hash_fold(hash_bytes(name, length, 0));
    *out = find_piece(b, hash, name, length);
    if (*out != TABLE_NONE) return HD_OK;
    basis_piece p = { .hash = hash, .sorted = true };
    table_init(&p.named, b->env);
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

/* Without rows and without a word of its own a piece says nothing. */
static void piece_trim(basis *b, uint32_t i) {
    basis_piece *p = &b->pieces.items[i];
    if (p->rows.count || value_exists(p->valid)) return;
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
    basis_piece *p = &b->pieces.items[i];
    uint32_t slot = p->rows.count;
    p->rows.items[p->rows.count++] = entry; /* there is room */
    b->entries.items[entry].slot = slot;
    if (slot && p->sorted) p->sorted = compare(b, p->rows.items[slot - 1], entry) < 0;
}

static hd_status entry_new(basis *b, hd_value row, uint32_t hash, uint32_t *out) {
    size_t length;
    const char *name = text_of(array_get(row, 0), &length);
    basis_entry e = { .row = row, .hash = hash };
    hd_status status = piece_at(b, name, basis_piece_length(name, length), &e.piece);
    if (status) return status;
    if (!vec_room(b->env, &b->entries, 1) || !vec_room(b->env, &b->pieces.items[e.piece].rows, 1) ||
        table_insert(&b->by_name, hash, b->entries.count)) {
        piece_trim(b, e.piece);
        return HD_NOMEM;
    }
    value_ref(row);
    *out = b->entries.count;
    b->entries.items[b->entries.count++] = e;
    piece_add(b, e.piece, *out);
    return HD_OK;
}

/* Takes an entry out; the last one moves into its place. */
static void entry_drop(basis *b, uint32_t i) {
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
    const char *name = text_of(array_get(item, 0), &n);
    const char *instance = text_of(array_get(item, 1), &k);
    *hash = name_hash(name, n, instance, k);
    return find(b, *hash, name, n, instance, k);
}

/* ---- seqs: where the spaces stand that the extra's rows read */

typedef struct proof {
    basis *b;
    const basis_point *now;
    struct key *space; /* as in an entry; referenced */
    uint64_t seq;
    hd_value seqs; /* owned */
    hd_status status;
} proof;

static void put_seq(proof *p, struct key *space, uint64_t seq) {
    hd_value n = int_make(p->b->heap, (int64_t)seq);
    hd_value next = object_set(p->b->heap, p->seqs, space, n);
    value_unref(n);
    if (value_is_failed(next)) {
        p->status = HD_NOMEM;
        return;
    }
    value_unref(p->seqs);
    p->seqs = next;
}

static void add_seq(proof *p, struct key *space, uint64_t seq) {
    if (!p->space && !hd_value_count(p->seqs)) {
        p->space = key_ref(space);
        p->seq = seq;
        return;
    }
    if (p->space) put_seq(p, p->space, p->seq);
    key_unref(p->space);
    p->space = NULL;
    if (!p->status) put_seq(p, space, seq);
}

static bool has_space(const proof *p, const char *name, size_t length) {
    if (p->space) return text_is(key_bytes(p->space), p->space->length, name, length);
    return value_exists(object_get_bytes(p->seqs, name, length));
}

/* A space that nobody has written stands at 0. It is named all the same: who proves the row anew
 * speaks of the spaces that it names. */
static void add_space(proof *p, const char *name, size_t length) {
    if (p->status || has_space(p, name, length)) return;
    struct key *k;
    uint64_t seq;
    for (uint32_t i = 0; p->now->space(p->now->ctx, i, &k, &seq); i++) {
        if (!text_is(key_bytes(k), k->length, name, length)) continue;
        add_seq(p, k, seq);
        return;
    }
    k = key_intern(p->b->heap, name, length);
    if (k) add_seq(p, k, 0);
    else p->status = HD_NOMEM;
    key_unref(k);
}

static void add_spaces_read(proof *p, hd_value body) {
    hd_value reads = basis_reads_of(body);
    basis_read read, last = { .space = "" };
    for (size_t i = 0, count = array_count(reads); i < count; i++) {
        if (!basis_read_at(reads, i, &read)) continue;
        if (!text_is(read.space, read.space_length, last.space, last.space_length))
            add_space(p, read.space, read.space_length);
        last = read;
    }
}

static void add_all_spaces(proof *p) {
    struct key *k;
    uint64_t seq;
    for (uint32_t i = 0; p->now->space(p->now->ctx, i, &k, &seq) && !p->status; i++)
        if (!has_space(p, key_bytes(k), k->length)) add_seq(p, k, seq);
}

static void add_spaces_named(proof *p, const basis_entry *e) {
    if (e->space && e->space == p->space) return; /* as all rows of most extras */
    if (e->space) add_space(p, key_bytes(e->space), e->space->length);
    if (value_is_absent(e->seqs)) return;
    for (hd_iter it = hd_iter_of(e->seqs); hd_iter_next(&it);) add_space(p, it.key, it.key_length);
}

/* A row that is proved anew reads what it read before, in the spaces that its seqs name; where the row
 * is not at hand, every space may be concerned, also those that came after the last proof. */
static void add_spaces_of(proof *p, uint32_t entry) {
    const basis_entry *e = entry == TABLE_NONE ? NULL : &p->b->entries.items[entry];
    if (e && (e->flags & ROW_WHOLE)) add_spaces_named(p, e);
    else if (p->b->overlay) add_all_spaces(p);
}

/* Finds the entries, too. The caller lets go of what is in p. */
static hd_status make_seqs(proof *p, hd_value nodes) {
    basis *b = p->b;
    vec_clear(&b->found);
    for (size_t i = 0, count = hd_value_count(nodes); i < count && !p->status; i++) {
        basis_found f;
        hd_value item = array_get(nodes, i);
        f.entry = entry_of(b, item, &f.hash);
        if (!vec_push(b->env, &b->found, f)) p->status = HD_NOMEM;
        if (array_count(item) == 4) add_spaces_read(p, array_get(item, 3));
        else add_spaces_of(p, f.entry);
    }
    return p->status;
}

/* ---- taking an extra in */

/* The last word on a node: `p` NULL where nothing is proved. */
static void become(basis_entry *e, hd_value row, const proof *p, uint8_t flags, uint64_t at) {
    basis_entry before = *e;
    e->row = value_ref(row);
    e->seqs = p && !p->space ? value_ref(p->seqs) : value_absent();
    e->space = p && p->space ? key_ref(p->space) : NULL;
    e->seq = p ? p->seq : 0;
    e->flags = flags;
    e->at = at;
    entry_fini(&before);
}

static hd_status apply_whole(const proof *p, hd_value item, basis_found f, uint64_t at) {
    basis *b = p->b;
    hd_status status = f.entry == TABLE_NONE ? entry_new(b, item, f.hash, &f.entry) : HD_OK;
    if (!status) become(&b->entries.items[f.entry], item, p, ROW_WHOLE, at);
    return status;
}

/* Of two proofs that mean different rows below, only one can be about what is there: the later one is
 * passed over, and whichever it is, the row is proved no later than it was. */
static bool is_about(const basis_entry *e, const char *mark, size_t mark_length) {
    size_t length;
    if (e->flags & ROW_GONE) return false;
    const char *its = basis_text(e, 2, &length);
    if (!(e->flags & ROW_WHOLE)) return text_is(its, length, mark, mark_length);
    return basis_mark_fits(mark, mark_length, its, length);
}

static void prove(const proof *p, basis_entry *e, const char *mark, size_t length, uint64_t at) {
    if (is_about(e, mark, length)) become(e, e->row, p, e->flags & ROW_WHOLE, at);
}

static hd_status apply_proof(const proof *p, hd_value item, basis_found f, uint64_t at) {
    basis *b = p->b;
    if (array_count(item) != 3 || (f.entry == TABLE_NONE && !b->overlay)) return HD_OK;
    hd_status status = f.entry == TABLE_NONE ? entry_new(b, item, f.hash, &f.entry) : HD_OK;
    size_t length;
    const char *mark = text_of(array_get(item, 2), &length);
    if (!status) prove(p, &b->entries.items[f.entry], mark, length, at);
    return status;
}

static hd_status apply_nodes(const proof *p, hd_value nodes, uint64_t at) {
    basis *b = p->b;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < b->found.count && !status; i++) {
        basis_found f = b->found.items[i];
        hd_value item = array_get(nodes, i);
        if (f.entry == TABLE_NONE) f.entry = entry_of(b, item, &f.hash); /* named twice? */
        status = array_count(item) == 4 ? apply_whole(p, item, f, at) : apply_proof(p, item, f, at);
    }
    return status;
}

static hd_status apply_piece(basis *b, hd_value item, uint64_t at) {
    size_t length;
    uint32_t i;
    const char *name = hd_value_text(hd_value_index(item, 0), &length);
    table named;
    table_init(&named, b->env);
    hd_status status = index_stale(hd_value_index(item, 2), &named);
    if (!status) status = piece_at(b, name, length, &i);
    if (status) {
        table_fini(&named);
        return status;
    }
    basis_piece *p = &b->pieces.items[i];
    silence_piece(p);
    p->valid = value_ref(hd_value_index(item, 1));
    p->stale = value_ref(hd_value_index(item, 2));
    p->named = named;
    p->at = at;
    for (uint32_t k = 0; k < p->rows.count; k++) {
        basis_entry *e = &b->entries.items[p->rows.items[k]];
        bool stale = basis_names_stale(p, basis_text(e, 0, NULL));
        e->flags = (uint8_t)((e->flags & ~ROW_STALE) | (stale ? ROW_STALE : 0));
    }
    return HD_OK;
}

static hd_status apply_gone(basis *b, hd_value item, uint64_t at) {
    uint32_t hash, i = entry_of(b, item, &hash);
    if (!b->overlay) {
        if (i != TABLE_NONE) entry_drop(b, i);
        return HD_OK;
    }
    hd_status status = i == TABLE_NONE ? entry_new(b, item, hash, &i) : HD_OK;
    if (!status) become(&b->entries.items[i], item, NULL, ROW_GONE, at);
    return status;
}

hd_status basis_apply(basis *b, hd_value extra, const basis_point *now, uint64_t at) {
    basis_extra x = basis_extra_of(extra);
    proof p = { .b = b, .now = now, .seqs = node_value(NULL, true) };
    if (at && at <= b->trimmed) b->trimmed = at - 1; /* an earlier part of the log is read again */
    hd_status status = make_seqs(&p, x.nodes);
    if (!status) status = apply_nodes(&p, x.nodes, at);
    for (size_t i = 0, count = array_count(x.pieces); !status && i < count; i++)
        status = apply_piece(b, array_get(x.pieces, i), at);
    for (size_t i = 0, count = array_count(x.gone); !status && i < count; i++)
        status = apply_gone(b, array_get(x.gone, i), at);
    value_unref(p.seqs);
    key_unref(p.space);
    return status;
}

/* ---- proofs that are still text */

static uint32_t entry_named(const basis *b, const basis_proof *r, uint32_t *hash) {
    *hash = name_hash(r->name, r->name_length, r->instance, r->instance_length);
    return find(b, *hash, r->name, r->name_length, r->instance, r->instance_length);
}

/* As make_seqs: what all of them read comes first. */
static hd_status make_seqs_of_proofs(proof *p, basis_proofs proofs) {
    basis *b = p->b;
    basis_proof r;
    vec_clear(&b->found);
    while (!p->status && basis_proofs_next(&proofs, &r)) {
        basis_found f;
        f.entry = entry_named(b, &r, &f.hash);
        if (!vec_push(b->env, &b->found, f)) p->status = HD_NOMEM;
        add_spaces_of(p, f.entry);
    }
    return p->status;
}

/* An entry for a row that is not at hand: its item has to be made. */
static hd_status entry_of_proof(basis *b, const basis_proof *r, uint32_t hash, uint32_t *out) {
    hd_value parts[] = { text_make(b->heap, TAG_STRING, r->name, r->name_length),
                         text_make(b->heap, TAG_STRING, r->instance, r->instance_length),
                         text_make(b->heap, TAG_STRING, r->mark, r->mark_length) };
    bool failed = false;
    for (int i = 0; i < 3; i++) failed = failed || value_is_failed(parts[i]);
    for (int i = 0; i < 3 && failed; i++) value_unref(parts[i]);
    hd_value item = failed ? value_failed(HD_NOMEM) : array_take(b->heap, parts, 3);
    if (value_is_failed(item)) return HD_NOMEM;
    hd_status status = entry_new(b, item, hash, out);
    value_unref(item);
    return status;
}

static hd_status apply_proofs(const proof *p, basis_proofs proofs, uint64_t at) {
    basis *b = p->b;
    basis_proof r;
    hd_status status = HD_OK;
    for (uint32_t i = 0; !status && basis_proofs_next(&proofs, &r); i++) {
        basis_found f = b->found.items[i];
        if (f.entry == TABLE_NONE) f.entry = entry_named(b, &r, &f.hash); /* named twice? */
        if (f.entry == TABLE_NONE && !b->overlay) continue;
        if (f.entry == TABLE_NONE) status = entry_of_proof(b, &r, f.hash, &f.entry);
        if (!status) prove(p, &b->entries.items[f.entry], r.mark, r.mark_length, at);
    }
    return status;
}

hd_status basis_apply_proofs(basis *b, basis_proofs proofs, const basis_point *now, uint64_t at) {
    proof p = { .b = b, .now = now, .seqs = node_value(NULL, true) };
    if (at && at <= b->trimmed) b->trimmed = at - 1;
    hd_status status = make_seqs_of_proofs(&p, proofs);
    if (!status) status = apply_proofs(&p, proofs, at);
    value_unref(p.seqs);
    key_unref(p.space);
    return status;
}

static void drop_each(basis *b, hd_value items) {
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        uint32_t hash, i = entry_of(b, it.value, &hash);
        if (i != TABLE_NONE) entry_drop(b, i);
    }
}

/* The last row takes the piece with it. */
static void drop_piece(basis *b, uint32_t i) {
    basis_piece *p = &b->pieces.items[i];
    uint32_t rows = p->rows.count;
    silence_piece(p);
    if (!rows) piece_trim(b, i);
    while (rows--) entry_drop(b, vec_last(&p->rows));
}

void basis_drop(basis *b, hd_value extra) {
    basis_extra x = basis_extra_of(extra);
    drop_each(b, x.nodes);
    drop_each(b, x.gone);
    for (hd_iter it = hd_iter_of(x.pieces); hd_iter_next(&it);) {
        size_t length;
        const char *name = hd_value_text(hd_value_index(it.value, 0), &length);
        const basis_piece *p = basis_find_piece(b, name, length);
        if (p) drop_piece(b, (uint32_t)(p - b->pieces.items));
    }
}

void basis_trim(basis *b, uint64_t at) {
    if (at <= b->trimmed) return; /* as at most looks into a file */
    b->trimmed = at;
    for (uint32_t i = b->entries.count; i-- > 0;)
        if (b->entries.items[i].at <= at) entry_drop(b, i);
    for (uint32_t i = b->pieces.count; i-- > 0;)
        if (b->pieces.items[i].at <= at) {
            silence_piece(&b->pieces.items[i]);
            piece_trim(b, i);
        }
}

/* ---- invariants */

static void check_piece(const basis *b, uint32_t i) {
    const basis_piece *p = &b->pieces.items[i];
    size_t length;
    const char *name = hd_value_text(p->name, &length);
    assert(find_piece(b, p->hash, name, length) == i);
    assert(p->rows.count || value_exists(p->valid));
    for (uint32_t k = 0; k < p->rows.count; k++) {
        const basis_entry *e = &b->entries.items[p->rows.items[k]];
        assert(e->piece == i && e->slot == k);
        assert(!k || !p->sorted || compare(b, p->rows.items[k - 1], p->rows.items[k]) < 0);
        (void)e;
    }
    (void)name;
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
    for (uint32_t i = 0; i < b->entries.count; i++) {
        uint32_t hash;
        assert(!b->trimmed || b->entries.items[i].at > b->trimmed);
        assert(entry_of(b, b->entries.items[i].row, &hash) == i);
        assert(b->overlay || b->entries.items[i].flags & ROW_WHOLE);
        (void)hash;
    }
    (void)rows;
}

/* fold.c -- hd_build_fold: one value for all elements of a list, by a tree of nodes.
 *
 *     list ---> coordinator "name.tree" ---> link to the top chunk's result
 *     elements ---> chunks ---> chunks ---> top chunk ---> "name"
 *
 * A chunk is a node that reads the results of a few neighbours and combines them (fold_tree.h). A change of
 * one element runs the chunks above it and nothing else. The coordinator runs when the list itself changes: it
 * compares the old list with the new, as that of a map does, and registers a chunk anew where the chunk has
 * other members. A chunk's members are what its node declares to read, so they are part of the node's
 * fingerprint: after a restart a chunk with the same members is found by its name and does not run. */
#include "pattern/fold.h"
#include "pattern/list.h"

#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include "store/tx.h"
#include "value/array.h"
#include "value/object.h"
#include <stdio.h>

/* ---- what folding means */

static bool is_number(hd_value v) {
    return hd_value_kind(v) == HD_KIND_INT || hd_value_kind(v) == HD_KIND_DOUBLE;
}

static hd_value add(hd_tx *tx, hd_value a, hd_value b) {
    int64_t sum;
    bool whole = hd_value_kind(a) == HD_KIND_INT && hd_value_kind(b) == HD_KIND_INT;
    if (whole && !__builtin_add_overflow(hd_value_as_int(a, 0), hd_value_as_int(b, 0), &sum))
        return hd_int(hd_tx_pool(tx), sum);
    return hd_double(hd_value_number(a) + hd_value_number(b));
}

/* An int and a double by their numbers; everything else in the order of hd_value_compare. */
static int compare(hd_value a, hd_value b) {
    if (!is_number(a) || !is_number(b) || hd_value_kind(a) == hd_value_kind(b))
        return hd_value_compare(a, b);
    long double x = hd_value_kind(a) == HD_KIND_INT ? (long double)hd_value_as_int(a, 0)
                                                    : (long double)hd_value_number(a);
    long double y = hd_value_kind(b) == HD_KIND_INT ? (long double)hd_value_as_int(b, 0)
                                                    : (long double)hd_value_number(b);
    return x < y ? -1 : x > y;
}

/* What an element adds; absent: nothing. */
static hd_value share_of(hd_tx *tx, const folding *f, hd_value v) {
    hd_kind kind = hd_value_kind(v);
    bool nothing = kind == HD_KIND_ABSENT || kind == HD_KIND_NULL;
    switch (f->kind) {
    case HD_FOLD_COUNT:
        if (nothing || (kind == HD_KIND_BOOL && !hd_value_as_bool(v, false)))
            return (hd_value){ 0 };
        return hd_int(hd_tx_pool(tx), 1);
    case HD_FOLD_SUM: return is_number(v) ? v : (hd_value){ 0 };
    case HD_FOLD_MINIMUM:
    case HD_FOLD_MAXIMUM: return nothing ? (hd_value){ 0 } : v;
    case HD_FOLD_OWN: break;
    }
    return v;
}

/* Of two shares that exist, `a` being that of earlier elements. */
static hd_value combine(hd_tx *tx, const folding *f, hd_value a, hd_value b) {
    assert(hd_value_exists(a) && hd_value_exists(b));
    assert((f->kind == HD_FOLD_OWN) == (f->combine != NULL));
    switch (f->kind) {
    case HD_FOLD_COUNT:
    case HD_FOLD_SUM: return add(tx, a, b);
    case HD_FOLD_MINIMUM: return compare(b, a) < 0 ? b : a;
    case HD_FOLD_MAXIMUM: return compare(b, a) > 0 ? b : a;
    case HD_FOLD_OWN: break;
    }
    return f->combine(tx, a, b, f->ctx);
}

/* ---- chunks */

typedef struct chunk_part {
    part part;
    folding how;
    bool elements; /* its members are elements, not chunks */
    uint32_t count;
    hd_cell *in; /* the members' cells */
} chunk_part;

hd_value fold_digest(hd_tx *tx, const hd_value *members, uint32_t count) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_value all = hd_array();
    char id[HD_ID_SIZE];
    for (uint32_t i = 0; i < count; i++)
        all = hd_array_append(pool, all, hd_value_exists(members[i]) ? members[i] : hd_null());
    hd_status status = hd_value_status(all) ? hd_value_status(all) : hd_id_of(all, id);
    return status ? hd_failed(status) : hd_string(pool, id);
}

/* Reads the members; HD_PENDING: one is still loading, and the others were asked for, too. */
static hd_status read_members(hd_tx *tx, const chunk_part *c, hd_value *out) {
    hd_status late = HD_OK;
    for (uint32_t i = 0; i < c->count; i++) {
        out[i] = hd_tx_get(tx, c->in[i]);
        if (hd_value_status(out[i]) == HD_PENDING) late = HD_PENDING;
        else if (hd_value_status(out[i])) return hd_value_status(out[i]);
    }
    return late;
}

static hd_status run_digest(hd_tx *tx, const chunk_part *c) {
    size_t size = c->count * sizeof(hd_value);
    hd_value *members = c->count ? env_new(c->part.env, size) : NULL;
    if (c->count && !members) return HD_NOMEM;
    hd_status status = read_members(tx, c, members);
    if (!status) status = write_result(tx, c->part.output, fold_digest(tx, members, c->count));
    env_free(c->part.env, members, size);
    return status;
}

static hd_status chunk_run(hd_tx *tx, void *ctx) {
    const chunk_part *c = ctx;
    hd_value all = { 0 };
    hd_status late =
        HD_OK; /* HD_PENDING: a member is still loading, and the others are asked for, too */
    if (c->how.digest) return run_digest(tx, c);
    for (uint32_t i = 0; i < c->count; i++) {
        hd_value v = hd_tx_get(tx, c->in[i]);
        if (hd_value_status(v) == HD_PENDING) late = HD_PENDING;
        else if (hd_value_status(v)) return hd_value_status(v);
        if (late) continue;
        if (c->elements) v = share_of(tx, &c->how, v);
        if (!hd_value_exists(v)) continue;
        all = hd_value_exists(all) ? combine(tx, &c->how, all, v) : v;
        if (hd_value_status(all)) return hd_value_status(all);
    }
    return late ? late : write_result(tx, c->part.output, all);
}

static bool chunk_same(const part *p, const part *fresh) {
    const chunk_part *a = (const chunk_part *)p, *b = (const chunk_part *)fresh;
    assert(a->elements == b->elements && a->how.kind == b->how.kind);
    return a->count == b->count && (!a->count || !memcmp(a->in, b->in, a->count * sizeof *a->in));
}

static void chunk_fini(part *p) {
    chunk_part *c = (chunk_part *)p;
    env_free(p->env, c->in, c->count * sizeof *c->in);
}

static const part_kind chunk_kind = { .run = chunk_run, .same = chunk_same, .fini = chunk_fini };

/* ---- the coordinator */

/* A run of the coordinator. */
typedef struct fold_update {
    fold_part *f;
    hd_tx *tx;
    place_id at; /* where it read the list */
    hd_value before, after;
    hd_status status;
    bool give_up; /* two elements have the same cell: everything has to be inserted anew */
} fold_update;

/* Registers the chunk's node, unless it is there with the same members. */
static hd_status build_chunk(fold_chunk *chunk, void *ctx) {
    const fold_update *u = ctx;
    uint32_t count = chunk->members.count;
    assert(chunk->item.height && chunk->build->owner == &u->f->part);
    build_begin(chunk->build, u->tx);
    chunk_part *c = part_new(chunk->build, &chunk_kind, sizeof *c, "");
    hd_cell *in = c && count ? env_new(c->part.env, count * sizeof *in) : NULL;
    if (c && count && !in) {
        hd_build_fail(chunk->build, HD_NOMEM, "%s: no memory", chunk->build->path);
        part_free(&c->part);
    } else if (c) {
        for (uint32_t i = 0; i < count; i++) in[i] = chunk->members.items[i]->cell;
        c->how = u->f->how;
        c->elements = chunk->item.height == 1;
        c->count = count;
        c->in = in;
        c->part.salt = u->f->salt;
        add_computation(&c->part, in, count, NULL);
    }
    return build_end(chunk->build);
}

/* The cell that an element of an array is read from, and its key. */
static hd_status array_element(const fold_update *u, size_t index, hd_value element, hd_cell *cell,
                               char *key) {
    hd_runtime *rt = hd_tx_runtime(u->tx);
    hd_status status = HD_OK;
    if (hd_value_kind(element) == HD_KIND_LINK) {
        if (key) status = list_key_of_link(u->tx, u->at, element, key);
        *cell = status ? (hd_cell){ 0 } : hd_cell_of_link(rt, (hd_cell){ u->at }, element);
    } else {
        char text[24];
        snprintf(text, sizeof text, "%zu", index);
        if (key) memcpy(key, text, sizeof text);
        *cell = hd_cell_child(rt, u->f->list, text);
    }
    if (status) return status;
    return cell->id ? HD_OK : HD_NOMEM;
}

static hd_status entry_cell(const fold_update *u, const char *name, size_t length, hd_cell *cell) {
    *cell = runtime_child(hd_tx_runtime(u->tx), u->f->list, name, length);
    return cell->id ? HD_OK : HD_NOMEM;
}

/* ---- all elements */

/* Inserts behind `*last`, which becomes the new element. If an element with this cell is there already, the key gets a
 * number, so that no two elements have the same key. */
static hd_status append(fold_update *u, hd_cell cell, char *key, fold_element **last) {
    fold_element *other = fold_tree_find(&u->f->tree, cell);
    if (other) {
        size_t length = strlen(key);
        snprintf(key + length, KEY_MAX_SIZE - length, "+%u", ++other->repeats + 1);
        u->f->repeated = true;
    }
    return fold_tree_insert(&u->f->tree, cell, key, *last, last);
}

static hd_status insert_all(fold_update *u) {
    hd_status status = fold_tree_clear(&u->f->tree);
    fold_element *last = NULL;
    u->f->repeated = false;
    for (hd_iter it = hd_iter_of(u->after); !status && hd_iter_next(&it);) {
        char key[KEY_MAX_SIZE];
        hd_cell cell;
        if (it.key) {
            list_key_of_name(it.key, it.key_length, key);
            status = entry_cell(u, it.key, it.key_length, &cell);
        } else {
            status = array_element(u, it.index, it.value, &cell, key);
        }
        if (!status) status = append(u, cell, key, &last);
    }
    return status;
}

/* ---- what differs between two objects: two walks, first what is gone, then what is new */

static bool remove_entry(const hd_step *path, size_t depth, hd_value before, hd_value after,
                         void *ctx) {
    fold_update *u = ctx;
    (void)before;
    if (depth != 1 || hd_value_exists(after)) return true;
    hd_cell cell;
    u->status = entry_cell(u, path->key, path->key_length, &cell);
    if (!u->status) u->status = fold_tree_remove(&u->f->tree, fold_tree_find(&u->f->tree, cell));
    return !u->status;
}

static bool insert_entry(const hd_step *path, size_t depth, hd_value before, hd_value after,
                         void *ctx) {
    fold_update *u = ctx;
    fold_tree *t = &u->f->tree;
    (void)after;
    if (depth != 1 || hd_value_exists(before)) return true;
    char key[KEY_MAX_SIZE];
    hd_cell cell, left = { 0 };
    fold_element *e;
    const struct key *k = object_before(u->after, path->key, path->key_length);
    if (k) u->status = entry_cell(u, key_bytes(k), k->length, &left);
    if (!u->status) u->status = entry_cell(u, path->key, path->key_length, &cell);
    list_key_of_name(path->key, path->key_length, key);
    if (!u->status)
        u->status = fold_tree_insert(t, cell, key, k ? fold_tree_find(t, left) : NULL, &e);
    return !u->status;
}

static hd_status apply_object(fold_update *u) {
    hd_heap *heap = hd_runtime_heap(hd_tx_runtime(u->tx));
    hd_status status = hd_value_diff(heap, u->before, u->after, remove_entry, u);
    if (!status && !u->status) status = hd_value_diff(heap, u->before, u->after, insert_entry, u);
    return u->status ? u->status : status;
}

/* ---- what differs between two arrays: the same, by ranges of indices */

typedef struct range {
    size_t from, before, after; /* [from, before) of the old array, [from, after) of the new one */
} range;

typedef struct ranges {
    const hd_env *env;
    VEC(range) of; /* ascending, apart */
    bool nomem, first_only;
} ranges;

static bool note_range(const hd_step *path, size_t depth, hd_value before, hd_value after,
                       void *ctx) {
    ranges *r = ctx;
    (void)before, (void)after;
    if (!depth) return true;
    size_t index = path[0].index;
    if (r->of.count && vec_last(&r->of).before > index) return true;
    range one = { index, index + 1, index + 1 };
    r->nomem = !vec_push(r->env, &r->of, one);
    return !r->nomem && !r->first_only;
}

/* Arrays of different lengths differ in one range. Elements behind it are the same if they are links, which
 * keep their cell; other elements behind it have another index, and so another cell. */
static hd_status one_range(const fold_update *u, ranges *r) {
    size_t before = hd_value_count(u->before), after = hd_value_count(u->after);
    size_t least = before < after ? before : after;
    size_t from = r->of.count && r->of.items[0].from < least ? r->of.items[0].from : least;
    assert(before != after && from <= least);
    size_t tail = array_common_tail(u->before, u->after, least - from), links = 0;
    while (links < tail && hd_value_kind(array_get(u->after, after - 1 - links)) == HD_KIND_LINK)
        links++;
    vec_clear(&r->of);
    range one = { from, before - links, after - links };
    return vec_push(r->env, &r->of, one) ? HD_OK : HD_NOMEM;
}

static hd_status find_ranges(const fold_update *u, ranges *r) {
    hd_heap *heap = hd_runtime_heap(hd_tx_runtime(u->tx));
    r->first_only = hd_value_count(u->before) != hd_value_count(u->after);
    hd_status status = hd_value_diff(heap, u->before, u->after, note_range, r);
    if (r->nomem) return HD_NOMEM;
    return !status && r->first_only ? one_range(u, r) : status;
}

/* Whether the element at this index has the same cell in both arrays. */
static hd_status stays(const fold_update *u, const range *r, size_t index, bool *out) {
    hd_cell before, after;
    *out = false;
    if (index >= r->before || index >= r->after) return HD_OK;
    hd_value was = hd_value_index(u->before, index), is = hd_value_index(u->after, index);
    bool links = hd_value_kind(was) == HD_KIND_LINK;
    *out = !links && hd_value_kind(is) != HD_KIND_LINK;
    if (*out || !links || hd_value_kind(is) != HD_KIND_LINK) return HD_OK;
    hd_status status = array_element(u, index, was, &before, NULL);
    if (!status) status = array_element(u, index, is, &after, NULL);
    *out = !status && before.id == after.id;
    return status;
}

static hd_status remove_range(fold_update *u, const range *r) {
    hd_status status = HD_OK;
    for (size_t i = r->from; i < r->before && !status; i++) {
        bool same;
        hd_cell cell;
        status = stays(u, r, i, &same);
        if (status || same) continue;
        status = array_element(u, i, hd_value_index(u->before, i), &cell, NULL);
        if (!status) status = fold_tree_remove(&u->f->tree, fold_tree_find(&u->f->tree, cell));
    }
    return status;
}

static hd_status insert_at(fold_update *u, size_t index) {
    fold_tree *t = &u->f->tree;
    char key[KEY_MAX_SIZE];
    hd_cell cell, left = { 0 };
    fold_element *e;
    hd_status status = array_element(u, index, hd_value_index(u->after, index), &cell, key);
    if (!status && index)
        status = array_element(u, index - 1, hd_value_index(u->after, index - 1), &left, NULL);
    if (status) return status;
    u->give_up = fold_tree_find(t, cell);
    return u->give_up ? HD_OK : fold_tree_insert(t, cell, key, fold_tree_find(t, left), &e);
}

static hd_status insert_range(fold_update *u, const range *r) {
    hd_status status = HD_OK;
    for (size_t i = r->from; i < r->after && !status && !u->give_up; i++) {
        bool same;
        status = stays(u, r, i, &same);
        if (!status && !same) status = insert_at(u, i);
    }
    return status;
}

static hd_status apply_array(fold_update *u) {
    ranges r = { .env = u->f->part.env };
    hd_status status = find_ranges(u, &r);
    for (uint32_t i = 0; i < r.of.count && !status; i++) status = remove_range(u, &r.of.items[i]);
    for (uint32_t i = 0; i < r.of.count && !status && !u->give_up; i++)
        status = insert_range(u, &r.of.items[i]);
    vec_fini(r.env, &r.of);
    return status;
}

/* ---- a run */

static hd_status update_tree(fold_update *u) {
    const fold_part *f = u->f;
    hd_kind kind = hd_value_kind(u->after);
    hd_status status;
    bool alike = !f->repeated && kind == hd_value_kind(u->before) && f->at == u->at;
    if (alike && kind == HD_KIND_OBJECT) status = apply_object(u);
    else if (alike && kind == HD_KIND_ARRAY) status = apply_array(u);
    else status = insert_all(u);
    if (!status && u->give_up) status = insert_all(u);
    return status ? status : fold_tree_settle(&u->f->tree, build_chunk, u);
}

static hd_status coordinate(hd_tx *tx, void *ctx) {
    fold_part *f = ctx;
    fold_update u = { .f = f, .tx = tx, .before = f->list_value };
    scheduler *s = scheduler_get(tx->rt);
    persistence_creates(s, s->running);
    hd_status status = list_read(tx, f->list, &u.at, &u.after);
    if (status) return status;
    list_warn(&f->part, tx, u.after);
    status = update_tree(&u);
    f->list_value = status ? (hd_value){ 0 } : hd_value_ref(u.after);
    f->at = u.at;
    hd_value_unref(u.before);
    if (status) return part_failed(tx, status);
    persistence_created(s, s->running, left_note_row, &f->part);
    if (!f->tree.top) return hd_tx_remove(tx, f->part.output);
    hd_value link = hd_cell_link(tx->rt, hd_tx_pool(tx), f->tree.top->item.cell);
    return hd_tx_set(tx, f->part.output, link);
}

static bool same(const part *p, const part *fresh) {
    const fold_part *a = (const fold_part *)p, *b = (const fold_part *)fresh;
    return a->list.id == b->list.id && a->how.kind == b->how.kind &&
           a->how.combine == b->how.combine && a->how.ctx == b->how.ctx &&
           a->how.digest == b->how.digest;
}

static void fini(part *p) {
    fold_part *f = (fold_part *)p;
    fold_tree_fini(&f->tree);
    hd_value_unref(f->list_value);
}

static void check(const part *p) {
    const fold_part *f = (const fold_part *)p;
    if (!hd_value_exists(f->list_value)) return;
    fold_tree_check(&f->tree);
    assert(f->tree.elements.count == hd_value_count(f->list_value));
    assert(!f->tree.top == !f->tree.elements.count);
}

static const part_kind fold_kind = {
    .run = coordinate, .same = same, .fini = fini, .check = check, .inner = true
};

/* ---- the public half */

typedef struct finish_part {
    part part;
    hd_cell tree;
    hd_value neutral;    /* referenced */
    char id[HD_ID_SIZE]; /* hash of `neutral`, the part's salt */
} finish_part;

static hd_status finish_run(hd_tx *tx, void *ctx) {
    const finish_part *p = ctx;
    hd_value v = hd_tx_get(tx, p->tree);
    if (hd_value_status(v)) return hd_value_status(v);
    return write_result(tx, p->part.output, hd_value_exists(v) ? v : p->neutral);
}
static bool finish_same(const part *p, const part *fresh) {
    const finish_part *a = (const finish_part *)p, *b = (const finish_part *)fresh;
    return a->tree.id == b->tree.id && hd_value_equal(a->neutral, b->neutral);
}
static void finish_fini(part *p) { hd_value_unref(((finish_part *)p)->neutral); }

static const part_kind finish_kind = { .run = finish_run,
                                       .same = finish_same,
                                       .fini = finish_fini };

fold_part *fold_add_tree(hd_build *b, const char *name, hd_cell items, const folding *how) {
    char full[256];
    snprintf(full, sizeof full, "%s.tree", name);
    fold_part *f = part_new(b, &fold_kind, sizeof *f, full);
    if (!f) return NULL;
    f->list = items;
    f->how = *how;
    if (how->digest) snprintf(f->salt, sizeof f->salt, "digest");
    else snprintf(f->salt, sizeof f->salt, "fold%d", (int)how->kind);
    f->part.salt = f->salt;
    fold_tree_init(&f->tree, &f->part);
    return (fold_part *)add_computing_part(&f->part, &f->list, 1, NULL);
}

static hd_cell add_finish(hd_build *b, const char *name, hd_cell tree, const hd_fold *fold) {
    bool counts = fold->kind == HD_FOLD_COUNT || fold->kind == HD_FOLD_SUM;
    finish_part *p = part_new(b, &finish_kind, sizeof *p, name);
    if (!p) return (hd_cell){ 0 };
    p->tree = tree;
    p->neutral = fold->neutral;
    if (counts && !hd_value_exists(p->neutral)) p->neutral = hd_int(NULL, 0);
    hd_value_ref(p->neutral);
    if (hd_value_exists(p->neutral) && hd_id_of(p->neutral, p->id) == HD_OK) p->part.salt = p->id;
    return add_computation(&p->part, &p->tree, 1, NULL);
}

static bool check_fold(hd_build *b, const char *name, const hd_fold *fold) {
    if (fold->kind < HD_FOLD_OWN || fold->kind > HD_FOLD_MAXIMUM)
        hd_build_fail(b, HD_USAGE, "%s: there is no fold of kind %d", name, (int)fold->kind);
    else if ((fold->kind == HD_FOLD_OWN) != (fold->combine != NULL))
        hd_build_fail(b, HD_USAGE, "%s: .combine goes with HD_FOLD_OWN, and only with it", name);
    else if (hd_value_status(fold->neutral))
        hd_build_fail(b, hd_value_status(fold->neutral), "%s: .neutral could not be made", name);
    else if (!fold->each.fn && !fold->each.build && fold->each.key)
        hd_build_fail(b, HD_USAGE, "%s: .each has a key, but neither .fn nor .build", name);
    return !b->status;
}

hd_cell hd_build_fold(hd_build *b, const char *name, hd_cell items, const hd_fold *fold) {
    char rows[256];
    const hd_fold none = { 0 };
    if (!fold) fold = &none;
    if (!check_inputs(b, name, &items, 1) || !check_fold(b, name, fold)) return (hd_cell){ 0 };
    snprintf(rows, sizeof rows, "%s.rows", name);
    if (fold->each.fn || fold->each.build) items = hd_build_map(b, rows, items, &fold->each);
    folding how = { .kind = fold->kind, .combine = fold->combine, .ctx = fold->ctx };
    fold_part *tree = items.id ? fold_add_tree(b, name, items, &how) : NULL;
    return tree ? add_finish(b, name, tree->part.output, fold) : (hd_cell){ 0 };
}

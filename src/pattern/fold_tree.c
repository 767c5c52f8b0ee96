/* fold_tree.c -- inserting and removing in a tree of chunks whose shape is a function of the keys. */
#include "pattern/fold_tree.h"

#include "base/env.h"
#include "base/hash.h"
#include <stdio.h>

/* ---- items */

static bool begins_chunk(const fold_item *x) { return x->rank > x->height; }

static uint8_t rank_of(const char *key) {
    uint64_t bits = hash_bytes(key, strlen(key), 0);
    uint8_t rank = 0;
    for (; rank < FOLD_RANK_MAX && !(bits & ((1u << FOLD_FANOUT_BITS) - 1)); rank++)
        bits >>= FOLD_FANOUT_BITS;
    return rank;
}

static uint32_t index_in(const fold_chunk *c, const fold_item *x) {
    uint32_t i = 0;
    while (c->members.items[i] != x) i++;
    assert(i < c->members.count && x->up == c);
    return i;
}

static fold_chunk *chunk_of(fold_item *x) {
    assert(x->height);
    return (fold_chunk *)x;
}

/* The chunk before this one at the same height; there is one, because `x` is not the first. */
static fold_chunk *chunk_before(const fold_item *x) {
    assert(x->height && x->up);
    uint32_t i = index_in(x->up, x);
    if (i) return chunk_of(x->up->members.items[i - 1]);
    const fold_chunk *left = chunk_before(&x->up->item);
    return chunk_of(vec_last(&left->members));
}

/* ---- chunks */

static void forget_seen(fold_chunk *c) {
    hd_value seen = c->seen;
    c->seen = (hd_value){ 0 };
    hd_value_unref(seen);
}

static hd_status note_change(fold_tree *t, fold_chunk *c) {
    for (fold_chunk *up = c; up && hd_value_exists(up->seen); up = up->item.up) forget_seen(up);
    if (c->touched) return HD_OK;
    if (!vec_push(t->env, &t->touched, c)) return HD_NOMEM;
    c->touched = true;
    return HD_OK;
}

static uint32_t hash_of_name(unsigned height, const char *key) {
    return hash_fold(hash_bytes(key, strlen(key), height));
}

static fold_chunk *chunk_find(const fold_tree *t, unsigned height, const char *key) {
    uint32_t hash = hash_of_name(height, key);
    for (table_probe at = table_find(&t->names, hash); table_next(&t->names, &at);) {
        fold_chunk *c = t->chunks.items[at.index];
        if (c->item.height == height && !strcmp(c->key, key)) return c;
    }
    return NULL;
}

static void chunk_free(fold_tree *t, fold_chunk *c) {
    forget_seen(c);
    vec_fini(t->env, &c->members);
    env_free(t->env, c, sizeof *c + strlen(c->key) + 1);
}

static hd_build *chunk_build(const fold_tree *t, unsigned height, const char *key) {
    hd_build *up = t->of->in;
    char name[NAME_MAX_LENGTH];
    snprintf(name, sizeof name, "%s/%u%s%s", t->of->name, height, *key ? "." : "", key);
    uint32_t local = (uint32_t)(strlen(up->path) + strlen(t->of->name) + 2);
    return build_new(up, t->of, name, local, t->of->node);
}

/* Gives the chunk its build and the cell of its result. */
static hd_status chunk_open(fold_tree *t, fold_chunk *c) {
    c->build = chunk_build(t, c->item.height, c->key);
    if (!c->build) return HD_NOMEM;
    c->item.cell = hd_build_cell(c->build, "");
    return hd_build_status(c->build);
}

static hd_status chunk_new(fold_tree *t, unsigned height, const char *key, fold_chunk **out) {
    size_t length = strlen(key) + 1;
    if (!vec_room(t->env, &t->chunks, 1)) return HD_NOMEM;
    fold_chunk *c = env_new0(t->env, sizeof *c + length);
    if (!c) return HD_NOMEM;
    memcpy(c->key, key, length);
    c->item.height = (uint8_t)height;
    c->hash = hash_of_name(height, key);
    c->slot = t->chunks.count;
    hd_status status = chunk_open(t, c);
    if (!status) status = table_insert(&t->names, c->hash, c->slot);
    if (!status) {
        t->chunks.items[t->chunks.count++] = c;
        *out = c;
        return HD_OK;
    }
    if (c->build) build_stop(c->build);
    chunk_free(t, c);
    return status;
}

static void chunk_drop(fold_tree *t, fold_chunk *c) {
    fold_chunk *last = vec_last(&t->chunks);
    assert(!c->in_tree && !c->item.up && !c->members.count);
    build_leave(c->build);
    table_remove(&t->names, c->hash, c->slot);
    if (last != c) table_move(&t->names, last->hash, last->slot, c->slot);
    last->slot = c->slot;
    vec_swap_remove(&t->chunks, c->slot);
    chunk_free(t, c);
}

/* The chunk of this name, without members: one that was in the tree before, or a new one. */
static hd_status chunk_take(fold_tree *t, unsigned height, const char *key, unsigned rank,
                            fold_chunk **out) {
    fold_chunk *c = chunk_find(t, height, key);
    hd_status status = c ? HD_OK : chunk_new(t, height, key, &c);
    if (!status) status = note_change(t, c);
    if (status) return status;
    assert(!c->in_tree && !c->item.up && !c->members.count);
    c->item.rank = (uint8_t)rank;
    c->in_tree = true;
    *out = c;
    return HD_OK;
}

static hd_status chunk_leave(fold_tree *t, fold_chunk *c) {
    c->in_tree = false;
    c->item.up = NULL;
    vec_clear(&c->members);
    return note_change(t, c);
}

/* Appends the members of `from`, from index `at` on, to `to`. */
static hd_status move_members(fold_tree *t, fold_chunk *from, uint32_t at, fold_chunk *to) {
    uint32_t count = from->members.count - at;
    if (!vec_room(t->env, &to->members, count)) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        fold_item *x = from->members.items[at + i];
        x->up = to;
        to->members.items[to->members.count++] = x;
    }
    from->members.count = at;
    hd_status status = note_change(t, from);
    return status ? status : note_change(t, to);
}

static hd_status put(fold_tree *t, fold_chunk *c, uint32_t at, fold_item *x) {
    if (!vec_room(t->env, &c->members, 1)) return HD_NOMEM;
    fold_item **to = &c->members.items[at];
    memmove(to + 1, to, (c->members.count - at) * sizeof *to);
    *to = x;
    c->members.count++;
    x->up = c;
    return note_change(t, c);
}

/* ---- inserting */

/* Puts a chunk of the next height on top. */
static hd_status grow(fold_tree *t) {
    unsigned height = t->top ? t->top->item.height + 1u : 1;
    fold_chunk *c;
    hd_status status = chunk_take(t, height, "", 0, &c);
    if (status) return status;
    if (t->top) status = put(t, c, 0, &t->top->item);
    t->top = c;
    return status;
}

static fold_chunk *first_chunk(const fold_tree *t) {
    fold_chunk *c = t->top;
    while (c->item.height > 1) c = chunk_of(c->members.items[0]);
    return c;
}

/* Puts `x` behind `after`. If it begins a chunk, what follows it in the chunk of `after` goes there, and that
 * chunk is put behind the chunk of `after` in turn. NULL: in front of all elements. */
static hd_status insert(fold_tree *t, fold_item *x, fold_item *after, const char *key) {
    hd_status status = HD_OK;
    if (after ? !after->up : !t->top) status = grow(t);
    if (status) return status;
    fold_chunk *c = after ? after->up : first_chunk(t);
    uint32_t at = after ? index_in(c, after) + 1 : 0;
    if (!begins_chunk(x)) return put(t, c, at, x);
    fold_chunk *fresh;
    status = chunk_take(t, x->height + 1u, key, x->rank, &fresh);
    if (!status) status = put(t, fresh, 0, x);
    if (!status) status = move_members(t, c, at, fresh);
    return status ? status : insert(t, &fresh->item, &c->item, key);
}

static fold_element *element_new(fold_tree *t, hd_cell cell, const char *key) {
    if (!vec_room(t->env, &t->elements, 1)) return NULL;
    fold_element *e = env_new0(t->env, sizeof *e);
    if (!e) return NULL;
    e->item.cell = cell;
    e->item.rank = rank_of(key);
    e->slot = t->elements.count;
    if (table_insert(&t->cells, cell.id, e->slot)) {
        env_free(t->env, e, sizeof *e);
        return NULL;
    }
    t->elements.items[t->elements.count++] = e;
    return e;
}

fold_element *fold_tree_find(const fold_tree *t, hd_cell cell) {
    table_probe at = table_find(&t->cells, cell.id);
    return table_next(&t->cells, &at) ? t->elements.items[at.index] : NULL;
}

hd_status fold_tree_insert(fold_tree *t, hd_cell cell, const char *key, fold_element *after,
                           fold_element **out) {
    assert(cell.id);
    fold_element *e = element_new(t, cell, key);
    *out = e;
    return e ? insert(t, &e->item, after ? &after->item : NULL, key) : HD_NOMEM;
}

/* ---- removing */

/* If `x` begins a chunk, the rest of the chunk goes to the chunk before it. */
static hd_status take_out(fold_tree *t, fold_item *x) {
    fold_chunk *c = x->up;
    if (!begins_chunk(x)) {
        vec_remove(&c->members, index_in(c, x));
        x->up = NULL;
        return note_change(t, c);
    }
    assert(c->members.items[0] == x);
    fold_chunk *left = chunk_before(&c->item);
    hd_status status = take_out(t, &c->item);
    if (!status) status = move_members(t, c, 1, left);
    x->up = NULL;
    return status ? status : chunk_leave(t, c);
}

/* Takes chunks off the top until the top has several members, or is of height 1. */
static hd_status shrink(fold_tree *t) {
    hd_status status = HD_OK;
    while (!status && t->top->item.height > 1 && t->top->members.count == 1) {
        fold_chunk *below = chunk_of(t->top->members.items[0]);
        status = chunk_leave(t, t->top);
        below->item.up = NULL;
        t->top = below;
    }
    if (status || t->elements.count) return status;
    fold_chunk *last = t->top;
    t->top = NULL;
    return chunk_leave(t, last);
}

void fold_element_leave(fold_tree *t, fold_element *e) {
    if (!e->member) return;
    hd_value_unref(e->member->pair);
    env_free(t->env, e->member, sizeof *e->member);
    e->member = NULL;
}

/* Frees an element that is not in the tree any more; if it is in a group, `gone` has room for it. */
static void retire(fold_tree *t, fold_element *e) {
    if (!e->member) {
        env_free(t->env, e, sizeof *e);
        return;
    }
    assert(t->gone.count < t->gone.capacity);
    e->item.up = NULL;
    t->gone.items[t->gone.count++] = e;
}

void fold_tree_bury(fold_tree *t) {
    for (uint32_t i = 0; i < t->gone.count; i++) {
        fold_element_leave(t, t->gone.items[i]);
        env_free(t->env, t->gone.items[i], sizeof *t->gone.items[i]);
    }
    vec_clear(&t->gone);
}

static void element_free(fold_tree *t, fold_element *e) {
    fold_element *last = vec_last(&t->elements);
    table_remove(&t->cells, e->item.cell.id, e->slot);
    if (last != e) table_move(&t->cells, last->item.cell.id, last->slot, e->slot);
    last->slot = e->slot;
    vec_swap_remove(&t->elements, e->slot);
    retire(t, e);
}

hd_status fold_tree_remove(fold_tree *t, fold_element *e) {
    if (!vec_room(t->env, &t->gone, 1)) return HD_NOMEM;
    hd_status status = take_out(t, &e->item);
    element_free(t, e);
    return status ? status : shrink(t);
}

static void free_elements(fold_tree *t) {
    for (uint32_t i = 0; i < t->elements.count; i++) retire(t, t->elements.items[i]);
    vec_clear(&t->elements);
    table_clear(&t->cells);
}

hd_status fold_tree_clear(fold_tree *t) {
    hd_status status = vec_room(t->env, &t->gone, t->elements.count) ? HD_OK : HD_NOMEM;
    if (status) return status;
    free_elements(t);
    t->top = NULL;
    for (uint32_t i = 0; i < t->chunks.count && !status; i++)
        status = chunk_leave(t, t->chunks.items[i]);
    return status;
}

/* ---- all of it */

hd_status fold_tree_settle(fold_tree *t, fold_build_fn build, void *ctx) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->touched.count && !status; i++)
        if (t->touched.items[i]->in_tree) status = build(t->touched.items[i], ctx);
    if (status) return status;
    for (uint32_t i = 0; i < t->touched.count; i++) {
        fold_chunk *c = t->touched.items[i];
        c->touched = false;
        if (!c->in_tree) chunk_drop(t, c);
    }
    vec_clear(&t->touched);
    return HD_OK;
}

void fold_tree_init(fold_tree *t, part *of) {
    *t = (fold_tree){ .env = of->env, .of = of };
    table_init(&t->cells, of->env);
    table_init(&t->names, of->env);
}

int fold_tree_compare(const fold_element *a, const fold_element *b) {
    const fold_item *x = &a->item, *y = &b->item;
    while (x->up != y->up) {
        assert(x->up && y->up && x->height == y->height);
        x = &x->up->item;
        y = &y->up->item;
    }
    if (x == y) return 0;
    return index_in(x->up, x) < index_in(x->up, y) ? -1 : 1;
}

void fold_tree_forget(fold_tree *t) {
    for (uint32_t i = 0; i < t->elements.count; i++) fold_element_leave(t, t->elements.items[i]);
    for (uint32_t i = 0; i < t->chunks.count; i++) forget_seen(t->chunks.items[i]);
    fold_tree_bury(t);
}

void fold_tree_fini(fold_tree *t) {
    fold_tree_forget(t);
    free_elements(t);
    for (uint32_t i = 0; i < t->chunks.count; i++) chunk_free(t, t->chunks.items[i]);
    vec_fini(t->env, &t->elements);
    vec_fini(t->env, &t->chunks);
    vec_fini(t->env, &t->touched);
    vec_fini(t->env, &t->gone);
    table_fini(&t->cells);
    table_fini(&t->names);
}

static void check_chunk(const fold_tree *t, const fold_chunk *c) {
    bool first = !*c->key;
    assert(c->in_tree && !c->touched && c->build && c->build->owner == t->of);
    assert((c == t->top) == !c->item.up);
    assert(first || c->members.count);
    assert(!hd_value_exists(c->seen) || !c->item.height || c->item.height == 1 ||
           hd_value_exists(chunk_of(c->members.items[0])->seen));
    for (uint32_t i = 0; i < c->members.count; i++) {
        const fold_item *x = c->members.items[i];
        assert(x->up == c && x->height + 1 == c->item.height && x->cell.id);
        assert(begins_chunk(x) == (i == 0 && !first));
        assert(!begins_chunk(x) || x->rank == c->item.rank);
        (void)x;
    }
    (void)t, (void)first;
}

void fold_tree_check(const fold_tree *t) {
    assert(!t->touched.count && !t->top == !t->elements.count);
    assert(table_count(&t->cells) == t->elements.count);
    assert(table_count(&t->names) == t->chunks.count);
    for (uint32_t i = 0; i < t->chunks.count; i++) {
        assert(t->chunks.items[i]->slot == i);
        check_chunk(t, t->chunks.items[i]);
    }
    for (uint32_t i = 0; i < t->elements.count; i++)
        assert(t->elements.items[i]->slot == i && t->elements.items[i]->item.up);
}

/* list.c -- hd_build_map: a coordinator node that makes and removes rows, and rows that compute. Of a list that
 * is an array; list_object.c has the part for objects.
 *
 *     list  --->  coordinator  --->  [link, link, link]     the result
 *                      |                |
 *                      +-- elements --> row --> its document
 *
 * The coordinator reads the list and writes links to the rows' documents, not the rows' values, so a
 * row that changes does not make it run. A row is given one cell to read: the place of its element in
 * the list, the target of a link, or, with hd_each.key, where elements may move, a copy that the
 * coordinator keeps under the key. So a change of one element runs the coordinator and one row. The
 * coordinator compares the old list with the new; the cost is that of the difference, because values
 * share structure.
 *
 * The rows are a function of the list that the coordinator read last. If a commit of its run is refused,
 * there is nothing to undo: the next run compares with the list it finds and writes the whole result,
 * and the store drops the parts of the write that change nothing. */
#include "pattern/list.h"

#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include "store/tx.h"
#include <stdio.h>
#include <string.h>

/* ---- all of it */

/* The key of an element; if an element before it has the same key, with "+n" behind it. */
static hd_status unrepeated(list_part *p, hd_tx *tx, size_t index, hd_value element, char *key,
                            bool *held) {
    hd_status status = list_key(p, tx, index, element, key, held);
    uint32_t slot = status ? ROW_LOOSE : list_find(p, key);
    if (slot == ROW_LOOSE || p->rows.items[slot]->index == ROW_LOOSE) return status;
    size_t length = strlen(key);
    snprintf(key + length, KEY_MAX_SIZE - length, "+%u", ++p->rows.items[slot]->repeats);
    p->repeated = true;
    return HD_OK;
}

static hd_status place_row(list_part *p, hd_tx *tx, size_t index, hd_value element, row **out) {
    char key[KEY_MAX_SIZE];
    bool held;
    hd_status status = unrepeated(p, tx, index, element, key, &held);
    if (status) return status;
    assert(index == p->order.count);
    uint32_t slot = list_find(p, key);
    if (slot == ROW_LOOSE)
        status = list_add(p, tx, list_cell(p, tx, index, element, key, held), key, held, &slot);
    if (status) return status;
    assert(p->rows.items[slot]->index == ROW_LOOSE);
    if (!vec_push(p->part.env, &p->order, slot)) return HD_NOMEM;
    *out = p->rows.items[slot];
    (*out)->index = (uint32_t)index;
    (*out)->repeats = 1;
    return HD_OK;
}

static hd_status place_all(list_part *p, hd_tx *tx, hd_value items, hd_builder *links,
                           hd_builder *held) {
    hd_status status = HD_OK;
    if (hd_value_kind(items) != HD_KIND_ARRAY) return HD_OK;
    for (hd_iter it = hd_iter_of(items); !status && hd_iter_next(&it);) {
        row *r;
        status = place_row(p, tx, it.index, it.value, &r);
        if (status) break;
        hd_builder_add(links, r->link);
        if (r->held) hd_builder_put(held, r->key, it.value);
    }
    return status;
}

/* Gives every element of `items` its row, old or new. The result is in p->links and p->held. */
static hd_status rebuild(list_part *p, hd_tx *tx, hd_value items) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_builder *links = NULL, *held = NULL;
    list_loosen_all(p);
    hd_status status = hd_builder_open(pool, HD_KIND_ARRAY, &links);
    if (!status) status = hd_builder_open(pool, HD_KIND_OBJECT, &held);
    if (!status) status = place_all(p, tx, items, links, held);
    hd_value l = links ? hd_builder_close(links) : hd_failed(HD_NOMEM);
    hd_value h = held ? hd_builder_close(held) : hd_failed(HD_NOMEM);
    if (!status) status = hd_value_status(l) ? hd_value_status(l) : hd_value_status(h);
    if (status) return status;
    list_drop_loose(p);
    assert(p->order.count == hd_value_count(l) && p->order.count == table_count(&p->keys));
    keep_value(&p->links, l);
    keep_value(&p->held, h);
    return HD_OK;
}

/* ---- what differs */

typedef struct difference {
    const hd_env *env;
    VEC(uint32_t) places; /* indices of elements that differ and that both lists have, ascending */
    bool nomem;
} difference;

static bool note_place(const hd_step *path, size_t depth, hd_value before, hd_value after,
                       void *ctx) {
    difference *d = ctx;
    (void)before, (void)after;
    if (!depth) return true; /* the lengths differ: apply() compares them itself */
    uint32_t index = (uint32_t)path[0].index;
    assert(!d->places.count || vec_last(&d->places) <= index);
    if (d->places.count && vec_last(&d->places) == index) return true;
    d->nomem = !vec_push(d->env, &d->places, index);
    return !d->nomem;
}

typedef struct update {
    list_part *p;
    hd_tx *tx;
    hd_value items;         /* the new list */
    hd_value links, held;   /* of the new list, so far */
    VEC(uint32_t) loosened; /* slots of rows whose element is no longer where it was */
    bool give_up;           /* two elements have the same key: rebuild() is needed */
} update;

static hd_status loosen(update *u, uint32_t index) {
    assert(index < u->p->order.count);
    uint32_t slot = u->p->order.items[index];
    assert(u->p->rows.items[slot]->index == index);
    if (!vec_push(u->p->part.env, &u->loosened, slot)) return HD_NOMEM;
    u->p->rows.items[slot]->index = ROW_LOOSE;
    return HD_OK;
}

/* The elements at `index` of both lists differ. With the same key it is the same element with another
 * value, and its copy is updated; with another key (*moved) the row loses its place. */
static hd_status compare_place(update *u, uint32_t index, bool *moved) {
    list_part *p = u->p;
    char key[KEY_MAX_SIZE];
    bool held;
    hd_value element = hd_value_index(u->items, index);
    hd_status status = list_key(p, u->tx, index, element, key, &held);
    if (status) return status;
    row *r = p->rows.items[p->order.items[index]];
    assert(r && r->index == index);
    *moved = strcmp(r->key, key) != 0;
    if (*moved) return loosen(u, index);
    if (held) u->held = hd_object_set(hd_tx_pool(u->tx), u->held, key, element);
    return hd_value_status(u->held);
}

/* Gives the element at `index` its row. */
static hd_status fill_place(update *u, uint32_t index) {
    list_part *p = u->p;
    hd_pool *pool = hd_tx_pool(u->tx);
    char key[KEY_MAX_SIZE];
    bool held;
    hd_value element = hd_value_index(u->items, index);
    hd_status status = list_key(p, u->tx, index, element, key, &held);
    if (status) return status;
    uint32_t slot = list_find(p, key);
    if (slot == ROW_LOOSE)
        status =
            list_add(p, u->tx, list_cell(p, u->tx, index, element, key, held), key, held, &slot);
    else if (p->rows.items[slot]->index != ROW_LOOSE) u->give_up = true; /* a second of this key */
    if (status || u->give_up) return status;
    row *r = p->rows.items[slot];
    assert(index <= p->order.count && r->held == held);
    r->index = index;
    if (index < p->order.count) {
        p->order.items[index] = slot;
        u->links = hd_array_set(pool, u->links, index, r->link);
    } else {
        if (!vec_push(p->part.env, &p->order, slot)) return HD_NOMEM;
        u->links = hd_array_append(pool, u->links, r->link);
    }
    if (held) u->held = hd_object_set(pool, u->held, key, element);
    return hd_value_status(u->links) ? hd_value_status(u->links) : hd_value_status(u->held);
}

static hd_status shorten(update *u, uint32_t count) {
    list_part *p = u->p;
    hd_status status = HD_OK;
    for (uint32_t i = count; i < p->order.count && !status; i++) status = loosen(u, i);
    if (status || count >= p->order.count) return status;
    p->order.count = count;
    assert(hd_value_status(u->links) || hd_value_count(u->links) >= count);
    u->links = hd_array_truncate(hd_tx_pool(u->tx), u->links, count);
    return hd_value_status(u->links);
}

/* Drops the rows whose element is in the new list nowhere. */
static void drop_loosened(update *u) {
    for (uint32_t i = 0; i < u->loosened.count; i++) {
        row *r = u->p->rows.items[u->loosened.items[i]];
        if (!r || r->index != ROW_LOOSE) continue;
        if (r->held) u->held = hd_object_remove(hd_tx_pool(u->tx), u->held, r->key);
        list_drop(u->p, u->loosened.items[i]);
    }
}

static hd_status apply(update *u, difference *d) {
    uint32_t count = (uint32_t)hd_value_count(u->items), kept = 0;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < d->places.count && !status; i++) {
        bool moved = false;
        uint32_t index = d->places.items[i];
        if (index < u->p->order.count && index < count) status = compare_place(u, index, &moved);
        if (moved) d->places.items[kept++] = index;
    }
    d->places.count = kept;
    if (!status) status = shorten(u, count);
    for (uint32_t i = 0; i < kept && !status && !u->give_up; i++)
        status = fill_place(u, d->places.items[i]);
    for (uint32_t i = u->p->order.count; i < count && !status && !u->give_up; i++)
        status = fill_place(u, i);
    return status;
}

/* The same, by the difference between `items` and the list of the last run. */
static hd_status apply_difference(list_part *p, hd_tx *tx, hd_value items) {
    difference d = { .env = p->part.env };
    update u = { .p = p, .tx = tx, .items = items, .links = p->links, .held = p->held };
    assert(!p->repeated && hd_value_kind(p->list_value) == HD_KIND_ARRAY);
    assert(hd_value_count(p->list_value) == p->order.count);
    hd_status status =
        hd_value_diff(hd_runtime_heap(hd_tx_runtime(tx)), p->list_value, items, note_place, &d);
    if (d.nomem) status = HD_NOMEM;
    if (!status) status = apply(&u, &d);
    if (!status && !u.give_up) drop_loosened(&u);
    if (!status) status = hd_value_status(u.held);
    if (!status && u.give_up) status = rebuild(p, tx, items);
    else if (!status) {
        keep_value(&p->links, u.links);
        keep_value(&p->held, u.held);
    }
    vec_fini(p->part.env, &d.places);
    vec_fini(p->part.env, &u.loosened);
    return status;
}

/* ---- the elements */

typedef struct elements_write {
    list_part *p;
    hd_tx *tx;
    hd_status status;
} elements_write;

static bool write_element(const hd_step *path, size_t depth, hd_value before, hd_value after,
                          void *ctx) {
    elements_write *w = ctx;
    (void)depth, (void)before, (void)after;
    hd_value element = hd_value_at_n(w->p->held, path->key, path->key_length);
    hd_cell cell = hd_cell_child(hd_tx_runtime(w->tx), w->p->elements, path->key);
    if (!cell.id) w->status = HD_NOMEM;
    else if (hd_value_exists(element)) w->status = hd_tx_set(w->tx, cell, element);
    else w->status = hd_tx_remove(w->tx, cell);
    return !w->status;
}

/* Writes the elements that differ, not the whole document: the log stays small, and a resume sees which
 * rows' elements changed. */
static hd_status write_elements(list_part *p, hd_tx *tx) {
    hd_value before = hd_tx_read(tx, p->elements, HD_READ_RAW | HD_READ_NO_DEPENDENCY);
    if (hd_value_status(before)) return hd_value_status(before);
    if (hd_value_kind(before) != HD_KIND_OBJECT) return hd_tx_set(tx, p->elements, p->held);
    elements_write w = { p, tx, HD_OK };
    hd_status status =
        hd_value_diff(hd_runtime_heap(hd_tx_runtime(tx)), before, p->held, write_element, &w);
    if (w.status) status = w.status;
    if (status) return status;
    /* Keep the document's own value, which equals p->held: the next difference is taken from values that
     * share structure with the document, so it costs what changed and not a walk of both trees. */
    hd_value now =
        hd_tx_read(tx, p->elements, HD_READ_RAW | HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    if (!hd_value_status(now)) keep_value(&p->held, now);
    return hd_value_status(now);
}

/* ---- the coordinator */

/* Rows of elements and rows of properties have nothing in common, whatever their keys. */
static hd_status update_rows(list_part *p, hd_tx *tx, hd_value items, bool moved) {
    bool entries = hd_value_kind(items) == HD_KIND_OBJECT;
    bool alike = !moved && !p->repeated && hd_value_kind(items) == hd_value_kind(p->list_value);
    if (p->entries != entries) {
        list_loosen_all(p);
        list_drop_loose(p);
        p->entries = entries;
    }
    if (entries)
        return alike ? list_update_object(p, tx, items) : list_rebuild_object(p, tx, items);
    alike = alike && hd_value_kind(items) == HD_KIND_ARRAY;
    return alike ? apply_difference(p, tx, items) : rebuild(p, tx, items);
}

static hd_status coordinate(hd_tx *tx, void *ctx) {
    list_part *p = ctx;
    hd_value items;
    place_id before = p->at; /* relative links in the list count from there */
    assert(p->part.in);
    scheduler *s = scheduler_get(tx->rt);
    persistence_creates(s, s->running);
    hd_status status = list_read(tx, p->list, &p->at, &items);
    if (status) return status;
    list_warn(&p->part, tx, items);
    status = update_rows(p, tx, items, p->at != before);
    keep_value(&p->list_value, status ? (hd_value){ 0 } : items);
    if (status) return part_failed(tx, status);
    persistence_created(s, s->running, left_note_row, &p->part);
    if (p->elements.id) status = write_elements(p, tx);
    return status ? status : hd_tx_set(tx, p->part.output, p->links);
}

static bool same(const part *p, const part *fresh) {
    const list_part *a = (const list_part *)p, *b = (const list_part *)fresh;
    return a->list.id == b->list.id && a->row == b->row && a->each.fn == b->each.fn &&
           a->each.build == b->each.build && a->each.ctx == b->each.ctx &&
           texts_equal(a->each.key, b->each.key);
}

/* Frees the rows, not their builds: build_end and build_stop stop those before they drop the part. */
static void fini(part *part_) {
    list_part *p = (list_part *)part_;
    const hd_env *env = part_->env;
    for (uint32_t i = 0; i < p->rows.count; i++)
        if (p->rows.items[i]) row_free(p, p->rows.items[i]);
    vec_fini(env, &p->rows);
    vec_fini(env, &p->free);
    vec_fini(env, &p->order);
    table_fini(&p->keys);
    hd_value_unref(p->list_value);
    hd_value_unref(p->links);
    hd_value_unref(p->held);
    if (p->each.key) {
        char *key = (char *)(uintptr_t)p->each.key;
        env_free(env, key, strlen(key) + 1);
    }
}

static void check_rows(const list_part *p) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < p->rows.count; i++) {
        const row *r = p->rows.items[i];
        if (!r) continue;
        used++;
        assert(list_find(p, r->key) == i);
        assert(r->build->owner == &p->part && r->build->up == p->part.in && !r->build->tx);
        assert(!r->held || p->elements.id);
    }
    assert(used + p->free.count == p->rows.count && used == table_count(&p->keys));
    assert(p->free.capacity >= p->rows.count);
    (void)used;
}

static void check(const part *part_) {
    const list_part *p = (const list_part *)part_;
    check_rows(p);
    if (!hd_value_exists(p->list_value)) return;
    bool is_array = hd_value_kind(p->list_value) == HD_KIND_ARRAY;
    assert(p->order.count == (is_array ? hd_value_count(p->list_value) : 0));
    assert(p->entries == (hd_value_kind(p->list_value) == HD_KIND_OBJECT));
    assert(hd_value_count(p->list_value) == hd_value_count(p->links));
    assert(table_count(&p->keys) == hd_value_count(p->links)); /* every row has an element */
    for (uint32_t i = 0; i < p->order.count; i++)
        assert(p->rows.items[p->order.items[i]]->index == i);
    (void)is_array;
}

static const part_kind list_kind = {
    .run = coordinate, .same = same, .fini = fini, .check = check
};

static hd_status copy_key(list_part *p, const hd_each *each) {
    p->each.key = NULL;
    if (!each->key) return HD_OK;
    hd_error error;
    hd_heap *heap = hd_runtime_heap(p->part.in->all->rt);
    hd_status status = hd_path_intern(heap, each->key, &p->key_path, &error);
    size_t length = strlen(each->key) + 1;
    char *copy = status ? NULL : env_new(p->part.env, length);
    if (!copy) return status ? status : HD_NOMEM;
    memcpy(copy, each->key, length);
    p->each.key = copy;
    return HD_OK;
}

hd_cell list_map(hd_build *b, const char *name, hd_cell items, const hd_each *each,
                 list_row_fn row_of) {
    char text[256];
    if (!items.id) hd_build_fail(b, HD_USAGE, "%s: the list is no cell", name);
    const hd_each none = { 0 };
    if (!each) each = &none;
    if (!each->fn == !each->build)
        hd_build_fail(b, HD_USAGE, "%s: a row needs .fn or .build, one of them", name);
    list_part *p = part_new(b, &list_kind, sizeof *p, name);
    if (!p) return (hd_cell){ 0 };
    p->list = items;
    p->each = *each;
    p->row = row_of;
    table_init(&p->keys, b->all->env);
    hd_status status = copy_key(p, each);
    if (status) {
        part_free(&p->part);
        return hd_build_fail(b, status, "%s: the key %s is no JSON pointer", name, each->key);
    }
    if (!each->key) return add_computation(&p->part, &p->list, 1, NULL);
    snprintf(text, sizeof text, "%s.elements", name);
    p->elements = hd_build_cell(b, text);
    return add_computation(&p->part, &p->list, 1, &p->elements);
}

static hd_cell plain_row(hd_build *row_, hd_cell element, const hd_each *each) {
    if (each->build) return each->build(row_, element, each->ctx);
    return hd_build_derive(row_, "", element, each->fn, each->ctx);
}

hd_cell hd_build_map(hd_build *b, const char *name, hd_cell items, const hd_each *each) {
    return list_map(b, name, items, each, plain_row);
}

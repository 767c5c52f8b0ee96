/* list_object.c -- hd_build_map over an object: a row for each property, found by the property's name.
 *
 *     {"tea": 3, "milk": 2}  --->  coordinator  --->  {"milk": link, "tea": link}
 *
 * A row reads the property itself, so the coordinator does nothing for properties that change; it makes and
 * removes rows as properties come and go. A property that holds a link has a row that follows the link. */
#include "pattern/list.h"

#include "store/tx.h"
#include "value/object.h"
#include "value/pool.h"

/* The row of a property: the one it has, or a new one. */
static hd_status take_row(list_part *p, hd_tx *tx, const char *name, size_t length, row **out) {
    char key[KEY_MAX_SIZE];
    hd_status status = HD_OK;
    list_key_of_name(name, length, key);
    uint32_t slot = list_find(p, key);
    if (slot == ROW_LOOSE) {
        hd_cell cell = runtime_child(hd_tx_runtime(tx), p->list, name, length);
        status = list_add(p, tx, cell, key, false, &slot);
    }
    if (status) return status;
    *out = p->rows.items[slot];
    (*out)->index = 0;
    return HD_OK;
}

hd_status list_rebuild_object(list_part *p, hd_tx *tx, hd_value items) {
    hd_builder *links = NULL;
    assert(p->entries && hd_value_kind(items) == HD_KIND_OBJECT);
    list_loosen_all(p);
    hd_status status = hd_builder_open(hd_tx_pool(tx), HD_KIND_OBJECT, &links);
    for (hd_iter it = hd_iter_of(items); !status && hd_iter_next(&it);) {
        row *r;
        status = take_row(p, tx, it.key, it.key_length, &r);
        if (!status) hd_builder_put_n(links, it.key, it.key_length, r->link);
    }
    hd_value all = links ? hd_builder_close(links) : hd_failed(HD_NOMEM);
    if (!status) status = hd_value_status(all);
    if (status) return status;
    list_drop_loose(p);
    keep_value(&p->links, all);
    keep_value(&p->held, hd_object());
    return HD_OK;
}

typedef struct object_update {
    list_part *p;
    hd_tx *tx;
    hd_value links; /* so far */
    hd_status status;
} object_update;

static void remove_property(object_update *u, const char *name, size_t length) {
    char key[KEY_MAX_SIZE];
    hd_pool *pool = hd_tx_pool(u->tx);
    list_key_of_name(name, length, key);
    uint32_t slot = list_find(u->p, key);
    assert(slot != ROW_LOOSE);
    u->p->rows.items[slot]->index = ROW_LOOSE;
    list_drop(u->p, slot);
    const struct key *k = key_find(pool->heap, name, length);
    u->links = pool_take(pool, object_remove(pool->heap, u->links, k));
    u->status = hd_value_status(u->links);
}

static void add_property(object_update *u, const char *name, size_t length) {
    row *r;
    u->status = take_row(u->p, u->tx, name, length, &r);
    if (!u->status) u->links = hd_object_set_n(hd_tx_pool(u->tx), u->links, name, length, r->link);
    if (!u->status) u->status = hd_value_status(u->links);
}

static bool update_property(const hd_step *path, size_t depth, hd_value before, hd_value after,
                            void *ctx) {
    object_update *u = ctx;
    if (depth != 1) return true;
    if (!hd_value_exists(after)) remove_property(u, path->key, path->key_length);
    else if (!hd_value_exists(before)) add_property(u, path->key, path->key_length);
    return !u->status;
}

hd_status list_update_object(list_part *p, hd_tx *tx, hd_value items) {
    object_update u = { .p = p, .tx = tx, .links = p->links };
    assert(p->entries && hd_value_kind(p->list_value) == HD_KIND_OBJECT);
    hd_heap *heap = hd_runtime_heap(hd_tx_runtime(tx));
    hd_status status = hd_value_diff(heap, p->list_value, items, update_property, &u);
    if (!status) status = u.status;
    if (!status) keep_value(&p->links, u.links);
    return status;
}

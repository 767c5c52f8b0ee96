/* gather.c -- hd_build_filter, hd_build_flat_map, hd_build_gather: a map, and a node that reads all of its rows. */
#include "pattern/list.h"

#include "store/tx.h"
#include <stdio.h>

typedef enum gathering { GATHER_VALUES, GATHER_CHOSEN, GATHER_FLAT } gathering;

typedef struct gather_part {
    part part;
    gathering how;
    hd_cell list, rows; /* rows: what hd_build_map made of list, all links; VALUES: the list */
} gather_part;

/* A value and the place that relative links in it count from. */
typedef struct found {
    hd_value value;
    place_id at;
} found;

/* The element, or the value that it links to. */
static hd_status behind(hd_tx *tx, found *f) {
    if (hd_value_kind(f->value) != HD_KIND_LINK) return HD_OK;
    hd_status status;
    place_id target = tx_link_target(tx, f->at, f->value, &status);
    if (!status) status = tx_resolve(tx, &target, true, 0);
    if (status) return status;
    *f = (found){ tx_read_place(tx, target, HD_READ_RAW), target };
    return hd_value_status(f->value);
}

/* `v`, an element of a list at `from`, as it must be written into the document of `to` to mean the same: a
 * link that would lead elsewhere from there becomes one with space and document. No cell `to`: as it is. */
static hd_value carry(hd_tx *tx, place_id from, hd_value v, hd_cell to) {
    if (hd_value_kind(v) != HD_KIND_LINK || !to.id) return v;
    const hd_schema *schema;
    hd_status status, other;
    place_id target = tx_link_target(tx, from, v, &status);
    place_id there = tx_link_target(tx, runtime_place(tx->rt, to, &schema), v, &other);
    if (status || other) return hd_failed(status ? status : other);
    if (target == there) return v;
    return hd_cell_link(tx->rt, hd_tx_pool(tx), (hd_cell){ target });
}

static void add_flat(hd_tx *tx, const gather_part *g, hd_builder *b, const found *of) {
    if (hd_value_kind(of->value) != HD_KIND_ARRAY) return;
    for (hd_iter it = hd_iter_of(of->value); hd_iter_next(&it);)
        hd_builder_add(b, carry(tx, of->at, it.value, g->part.output));
}

static void add_one(hd_builder *b, const hd_iter *it, hd_value v) {
    if (it->key) hd_builder_put_n(b, it->key, it->key_length, v);
    else hd_builder_add(b, v);
}

/* Adds what the row at `it` gives. */
static hd_status add_row(hd_tx *tx, const gather_part *g, hd_builder *b, const hd_iter *it,
                         place_id at, const found *items) {
    found of = { it->value, at };
    hd_status status = behind(tx, &of);
    if (status) return status;
    if (g->how == GATHER_FLAT) add_flat(tx, g, b, &of);
    if (g->how == GATHER_VALUES) add_one(b, it, hd_value_exists(of.value) ? of.value : hd_null());
    if (g->how != GATHER_CHOSEN || !hd_value_is_true(of.value)) return HD_OK;
    hd_value element = it->key ? hd_value_at_n(items->value, it->key, it->key_length)
                               : hd_value_index(items->value, it->index);
    /* If the list lacks the element, the coordinator will run, and then this node again. */
    if (hd_value_exists(element)) add_one(b, it, carry(tx, items->at, element, g->part.output));
    return HD_OK;
}

static hd_value gather(hd_tx *tx, const gather_part *g) {
    found rows = { 0 }, items = { 0 };
    hd_builder *b;
    hd_status status = list_read(tx, g->rows, &rows.at, &rows.value);
    if (!status && g->how == GATHER_CHOSEN)
        status = list_read(tx, g->list, &items.at, &items.value);
    if (status) return hd_failed(status);
    assert(rows.at && (items.at || g->how != GATHER_CHOSEN));
    bool object = hd_value_kind(rows.value) == HD_KIND_OBJECT && g->how != GATHER_FLAT;
    status = hd_builder_open(hd_tx_pool(tx), object ? HD_KIND_OBJECT : HD_KIND_ARRAY, &b);
    if (status) return hd_failed(status);
    hd_status late =
        HD_OK; /* HD_PENDING: a row is still loading; the loop asks for the rest, too */
    for (hd_iter it = hd_iter_of(rows.value); !status && hd_iter_next(&it);) {
        hd_status one = add_row(tx, g, b, &it, rows.at, &items);
        if (one == HD_PENDING) late = one;
        else status = one;
    }
    hd_value all = hd_builder_close(b);
    if (!status) status = late;
    return status ? hd_failed(status) : all;
}

static hd_status gather_run(hd_tx *tx, void *ctx) {
    const gather_part *g = ctx;
    return write_result(tx, g->part.output, gather(tx, g));
}

static bool same(const part *p, const part *fresh) {
    const gather_part *a = (const gather_part *)p, *b = (const gather_part *)fresh;
    return a->how == b->how && a->list.id == b->list.id && a->rows.id == b->rows.id;
}

static const part_kind gather_kind = { .run = gather_run, .same = same };

static hd_cell add_gather(hd_build *b, const char *name, gathering how, hd_cell items,
                          hd_cell rows) {
    if (!check_inputs(b, name, &rows, 1)) return (hd_cell){ 0 };
    assert(items.id && (how != GATHER_VALUES || items.id == rows.id));
    gather_part *g = part_new(b, &gather_kind, sizeof *g, name);
    if (!g) return (hd_cell){ 0 };
    g->how = how;
    g->list = items;
    g->rows = rows;
    g->part.output = hd_build_cell(b, name);
    hd_node_spec spec = { .output = g->part.output, .reads = &g->rows, .read_count = 1 };
    const part *p = part_add(&g->part, &spec);
    return p ? p->output : (hd_cell){ 0 };
}

static hd_cell map_and_gather(hd_build *b, const char *name, gathering how, hd_cell items,
                              const hd_each *each) {
    char rows[256];
    if (!check_inputs(b, name, &items, 1)) return (hd_cell){ 0 };
    snprintf(rows, sizeof rows, "%s.rows", name);
    return add_gather(b, name, how, items, hd_build_map(b, rows, items, each));
}

hd_cell hd_build_filter(hd_build *b, const char *name, hd_cell items, const hd_each *each) {
    return map_and_gather(b, name, GATHER_CHOSEN, items, each);
}
hd_cell hd_build_flat_map(hd_build *b, const char *name, hd_cell items, const hd_each *each) {
    return map_and_gather(b, name, GATHER_FLAT, items, each);
}
hd_cell hd_build_gather(hd_build *b, const char *name, hd_cell items) {
    return add_gather(b, name, GATHER_VALUES, items, items);
}

hd_value hd_tx_get_list(hd_tx *tx, hd_cell items) {
    if (!items.id) return hd_array();
    return gather(tx, &(gather_part){ .how = GATHER_VALUES, .list = items, .rows = items });
}

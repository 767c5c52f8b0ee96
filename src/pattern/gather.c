/* gather.c -- hd_build_filter, hd_build_flat_map, hd_build_gather: a map, and a node that reads all of its rows. */
#include "pattern/pattern.h"

#include <stdio.h>

typedef enum gathering { GATHER_VALUES, GATHER_CHOSEN, GATHER_FLAT } gathering;

typedef struct gather_part {
    part part;
    gathering how;
    hd_cell list,
        rows; /* rows: what hd_build_map made of list, an array of links; VALUES: the list */
} gather_part;

/* The element, or the value that it links to. */
static hd_value behind(hd_tx *tx, hd_cell at, hd_value element) {
    return hd_value_kind(element) == HD_KIND_LINK ? hd_tx_follow(tx, at, element) : element;
}

static hd_status add_row(const gather_part *g, hd_builder *b, hd_value element, hd_value v) {
    if (hd_value_status(v)) return hd_value_status(v);
    switch (g->how) {
    case GATHER_VALUES: hd_builder_add(b, hd_value_exists(v) ? v : hd_null()); break;
    case GATHER_CHOSEN:
        if (hd_value_is_true(v)) hd_builder_add(b, element);
        break;
    case GATHER_FLAT:
        if (hd_value_kind(v) != HD_KIND_ARRAY) break;
        for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) hd_builder_add(b, it.value);
        break;
    }
    return HD_OK;
}

static hd_value gather(hd_tx *tx, const gather_part *g) {
    hd_builder *b;
    hd_value rows = hd_tx_get(tx, g->rows);
    hd_value items = g->how == GATHER_CHOSEN ? hd_tx_get(tx, g->list) : hd_null();
    if (hd_value_status(rows)) return rows;
    if (hd_value_status(items)) return items;
    hd_status status = hd_builder_open(hd_tx_pool(tx), HD_KIND_ARRAY, &b);
    if (status) return hd_failed(status);
    if (hd_value_kind(rows) != HD_KIND_ARRAY) return hd_builder_close(b);
    hd_status late =
        HD_OK; /* HD_PENDING: a row is still loading; the loop asks for the rest, too */
    for (hd_iter it = hd_iter_of(rows); !status && hd_iter_next(&it);) {
        hd_value element = hd_value_index(items, it.index);
        /* The list is shorter than its rows: the coordinator will run, and then this node again. */
        if (g->how == GATHER_CHOSEN && !hd_value_exists(element)) break;
        hd_status one = add_row(g, b, element, behind(tx, g->rows, it.value));
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
    return gather(tx, &(gather_part){ .how = GATHER_VALUES, .list = items, .rows = items });
}

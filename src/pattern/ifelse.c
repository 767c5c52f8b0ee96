/* ifelse.c -- hd_build_if_else: the value of one of two cells.
 *
 * The node does not read the branch that it does not take, so the nodes that compute that branch are not
 * demanded by it (I2). It copies the value and does not write a link: a reader that followed a link would
 * read the new branch before its nodes have run. */
#include "pattern/pattern.h"

#include <string.h>

typedef struct choice_part {
    part part;
    hd_cell in[3]; /* condition, then, otherwise */
} choice_part;

bool hd_value_is_true(hd_value v) {
    size_t length;
    switch (hd_value_kind(v)) {
    case HD_KIND_ABSENT:
    case HD_KIND_FAILED:
    case HD_KIND_NULL: return false;
    case HD_KIND_BOOL: return hd_value_as_bool(v, false);
    case HD_KIND_INT: return hd_value_as_int(v, 1) != 0;
    case HD_KIND_DOUBLE: return hd_value_number(v) < 0 || hd_value_number(v) > 0;
    case HD_KIND_STRING: return hd_value_text(v, &length) && length > 0;
    default: return true;
    }
}

static hd_status choose(hd_tx *tx, void *ctx) {
    const choice_part *c = ctx;
    assert(c->in[0].id && c->in[1].id && c->in[2].id);
    hd_value condition = hd_tx_get(tx, c->in[0]);
    if (hd_value_status(condition)) return hd_value_status(condition);
    return write_result(tx, c->part.output,
                        hd_tx_get(tx, c->in[hd_value_is_true(condition) ? 1 : 2]));
}

static bool same(const part *p, const part *fresh) {
    const choice_part *a = (const choice_part *)p, *b = (const choice_part *)fresh;
    return a->in[0].id == b->in[0].id && a->in[1].id == b->in[1].id && a->in[2].id == b->in[2].id;
}

static const part_kind choice_kind = { .run = choose, .same = same };

hd_cell hd_build_if_else(hd_build *b, const char *name, hd_cell condition, hd_cell then,
                         hd_cell otherwise) {
    const hd_cell in[] = { condition, then, otherwise };
    if (!check_inputs(b, name, in, 3)) return (hd_cell){ 0 };
    choice_part *c = part_new(b, &choice_kind, sizeof *c, name);
    if (!c) return (hd_cell){ 0 };
    memcpy(c->in, in, sizeof in);
    return add_computation(&c->part, &c->in[0], 1, NULL);
}

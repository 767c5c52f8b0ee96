/* lift.c -- primitives of one node or none: lift, derive, constants, arguments, state, sinks. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/runner/confirmed.h"
#include "scheduler/scheduler.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

/* ---- lift and derive */

#define INPUTS_FEW 8

typedef struct lift_part {
    part part;
    hd_lift_fn lift;     /* NULL: `derive` */
    hd_derive_fn derive; /* NULL: `lift` */
    void *ctx;
    hd_cell *in;
    uint32_t count;
} lift_part;

static hd_status lift_values(hd_tx *tx, lift_part *l, hd_value *values) {
    for (uint32_t i = 0; i < l->count; i++) {
        values[i] = hd_tx_get(tx, l->in[i]);
        if (hd_value_status(values[i])) return hd_value_status(values[i]);
    }
    return write_result(tx, l->part.output, l->lift(tx, values, l->ctx));
}

static hd_status lift_run(hd_tx *tx, void *ctx) {
    lift_part *l = ctx;
    assert(l->lift && !l->derive && !l->in == !l->count);
    hd_value few[INPUTS_FEW];
    if (l->count <= INPUTS_FEW) return lift_values(tx, l, few);
    hd_value *many = env_new(l->part.env, l->count * sizeof *many);
    if (!many) return HD_NOMEM;
    hd_status status = lift_values(tx, l, many);
    env_free(l->part.env, many, l->count * sizeof *many);
    return status;
}

static hd_status derive_run(hd_tx *tx, void *ctx) {
    lift_part *l = ctx;
    assert(l->derive && !l->lift && l->count == 1);
    hd_value v = hd_tx_get(tx, l->in[0]);
    if (hd_value_status(v)) return hd_value_status(v);
    return write_result(tx, l->part.output, l->derive(tx, v, l->ctx));
}

static bool lift_same(const part *p, const part *fresh) {
    const lift_part *a = (const lift_part *)p, *b = (const lift_part *)fresh;
    return a->lift == b->lift && a->derive == b->derive && a->ctx == b->ctx &&
           a->count == b->count && (!a->count || !memcmp(a->in, b->in, a->count * sizeof *a->in));
}

static void lift_fini(part *p) {
    lift_part *l = (lift_part *)p;
    env_free(p->env, l->in, l->count * sizeof *l->in);
}

static const part_kind lift_kind = { .run = lift_run, .same = lift_same, .fini = lift_fini };
static const part_kind derive_kind = { .run = derive_run, .same = lift_same, .fini = lift_fini };

/* The caller has checked the inputs. */
static hd_cell add_lift(hd_build *b, const part_kind *kind, const char *name, lift_part like,
                        const hd_cell *in, size_t count) {
    assert(!like.lift != !like.derive);
    lift_part *l = part_new(b, kind, sizeof *l, name);
    if (!l) return (hd_cell){ 0 };
    l->lift = like.lift;
    l->derive = like.derive;
    l->ctx = like.ctx;
    l->in = count ? env_new(b->all->env, count * sizeof *in) : NULL;
    if (count && !l->in) {
        part_free(&l->part);
        return hd_build_fail(b, HD_NOMEM, "%s: no memory", name);
    }
    if (count) memcpy(l->in, in, count * sizeof *in);
    l->count = (uint32_t)count;
    return add_computation(&l->part, l->in, count, NULL);
}

hd_cell hd_build_lift(hd_build *b, const char *name, hd_lift_fn fn, void *ctx, const hd_cell *in,
                      size_t count) {
    if (!check_inputs(b, name, in, count)) return (hd_cell){ 0 };
    if (!fn) return hd_build_fail(b, HD_USAGE, "%s: no function", name);
    return add_lift(b, &lift_kind, name, (lift_part){ .lift = fn, .ctx = ctx }, in, count);
}

hd_cell hd_build_derive(hd_build *b, const char *name, hd_cell in, hd_derive_fn fn, void *ctx) {
    if (!check_inputs(b, name, &in, 1)) return (hd_cell){ 0 };
    if (!fn) return hd_build_fail(b, HD_USAGE, "%s: no function", name);
    return add_lift(b, &derive_kind, name, (lift_part){ .derive = fn, .ctx = ctx }, &in, 1);
}

/* ---- constants */

typedef struct constant_part {
    part part;
    hd_value value;      /* referenced */
    char id[HD_ID_SIZE]; /* hash of the value, the part's salt: another constant is another node */
} constant_part;

static hd_status constant_run(hd_tx *tx, void *ctx) {
    const constant_part *c = ctx;
    return hd_tx_set(tx, c->part.output, c->value);
}
static bool constant_same(const part *p, const part *fresh) {
    return hd_value_equal(((const constant_part *)p)->value, ((const constant_part *)fresh)->value);
}
static void constant_fini(part *p) { hd_value_unref(((constant_part *)p)->value); }

static const part_kind constant_kind = { .run = constant_run,
                                         .same = constant_same,
                                         .fini = constant_fini };

hd_cell hd_build_constant(hd_build *b, const char *name, hd_value v) {
    if (!check_inputs(b, name, NULL, 0)) return (hd_cell){ 0 };
    if (hd_value_status(v))
        return hd_build_fail(b, hd_value_status(v), "%s: the value could not be made", name);
    if (!hd_value_exists(v)) return hd_build_fail(b, HD_KIND, "%s: a constant has a value", name);
    constant_part *c = part_new(b, &constant_kind, sizeof *c, name);
    if (!c) return (hd_cell){ 0 };
    c->value = hd_value_ref(v);
    if (hd_id_of(v, c->id) == HD_OK) c->part.salt = c->id;
    return add_computation(&c->part, NULL, 0, NULL);
}

/* ---- arguments and state */

/* An argument of a pattern that is used: the cell that hd_build_use was given; if none, the document
 * "<name>.argument" with the default. */
static hd_cell given(hd_build *b, const char *name, hd_value otherwise) {
    char own[256];
    for (size_t i = 0; i < b->in_count; i++) {
        if (strcmp(b->in[i].name, name)) continue;
        if (i < IN_ASKED_MAX) b->in_asked |= UINT64_C(1) << i;
        return b->in[i].cell;
    }
    int n = snprintf(own, sizeof own, "%s.argument", name);
    if (n < 0 || (size_t)n >= sizeof own)
        return hd_build_fail(b, HD_LIMIT, "\"%.80s...\": the name is too long", name);
    if (!hd_value_exists(otherwise)) return hd_build_cell(b, own);
    const part *p = find_part(b, own);
    return p && p->round == b->round ? p->output : hd_build_constant(b, own, otherwise);
}

/* Writes a default argument or an initial state. A piece that is opened on a read-only store does
 * without. */
static hd_cell supply(hd_build *b, const char *name, hd_cell cell, hd_value v) {
    assert(cell.id && hd_value_exists(v));
    if (b->of->opened && b->all->rt->options.read_only) return cell;
    hd_status status = hd_tx_set(b->tx, cell, v);
    b->of->supplied = true;
    return status ? hd_build_fail(b, status, "%s: %s", name, hd_status_text(status)) : cell;
}

static bool check_argument(hd_build *b, const char *name, hd_value otherwise) {
    if (!name || !*name) hd_build_fail(b, HD_USAGE, "%s: an argument has no name", b->path);
    else if (!name_is_plain(name))
        hd_build_fail(b, HD_USAGE, "\"%.80s\": a name has no '/', ':', '#' or control characters",
                      name);
    else if (hd_value_status(otherwise))
        hd_build_fail(b, hd_value_status(otherwise), "%s: the default could not be made", name);
    else if (b->owner)
        hd_build_fail(b, HD_USAGE,
                      "%.80s: rows and derived patterns have no arguments: ask for it in the "
                      "pattern, and hand them its cell in `ctx`",
                      name);
    return !b->status;
}

hd_cell hd_build_argument(hd_build *b, const char *name, hd_value otherwise) {
    if (b->status || !check_argument(b, name, otherwise)) return (hd_cell){ 0 };
    if (b->up) return given(b, name, otherwise);
    piece *p = b->of;
    assert(p->root == b && b->tx);
    p->asked = hd_object_set(hd_tx_pool(b->tx), p->asked, name, hd_null());
    bool missing = hd_value_exists(otherwise) && !hd_value_exists(hd_value_at(p->arguments, name));
    if (missing) p->arguments = hd_object_set(hd_tx_pool(b->tx), p->arguments, name, otherwise);
    if (hd_value_status(p->arguments))
        return hd_build_fail(b, hd_value_status(p->arguments), "%s: no memory", name);
    hd_cell arguments = hd_cell_child(b->all->rt, p->document, "arguments");
    hd_cell cell = hd_cell_child(b->all->rt, arguments, name);
    if (!cell.id) return hd_build_fail(b, HD_NOMEM, "%s: no memory", name);
    return missing && p->opened ? supply(b, name, cell, otherwise) : cell;
}

/* Whether the build is in a row or in a derived pattern: these end while the piece runs. */
static bool comes_and_goes(const hd_build *b) {
    while (b && !b->owner) b = b->up;
    return b;
}

static bool state_same(const part *p, const part *fresh) {
    (void)p, (void)fresh;
    return true;
}
static const part_kind state_kind = { .same = state_same };

hd_cell hd_build_state(hd_build *b, const char *name, hd_value initial) {
    if (comes_and_goes(b))
        return hd_build_fail(b, HD_USAGE, "%s: only a piece has state, not its rows", name);
    if (hd_value_status(initial))
        return hd_build_fail(b, hd_value_status(initial), "%s: the initial value could not be made",
                             name);
    hd_cell cell = add_name(b, &state_kind, name);
    /* `resumed` compares the version of the piece's pattern, not of the patterns that it uses. */
    bool has_all = b->of->resumed && !b->up;
    if (b->status || has_all || !hd_value_exists(initial)) return cell;
    hd_value now = hd_tx_read(b->tx, cell, HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM);
    hd_status status = hd_value_status(now);
    if (status) return hd_build_fail(b, status, "%s: %s", name, hd_status_text(status));
    return hd_value_exists(now) ? cell : supply(b, name, cell, initial);
}

/* ---- sinks */

typedef struct sink_part {
    part part;
    confirmed to;   /* whom it shows the values */
    bool confirmed; /* only those that are confirmed */
    uint64_t group;
} sink_part;

static hd_status sink_run(hd_tx *tx, void *ctx) {
    sink_part *k = ctx;
    assert(k->to.fn && k->to.cell.id);
    return scheduler_show(tx, &k->to, k->confirmed);
}
static bool sink_same(const part *p, const part *fresh) {
    const sink_part *a = (const sink_part *)p, *b = (const sink_part *)fresh;
    return a->to.cell.id == b->to.cell.id && a->to.fn == b->to.fn && a->to.ctx == b->to.ctx &&
           a->group == b->group && a->confirmed == b->confirmed;
}
static void sink_fini(part *p) { confirmed_fini(&((sink_part *)p)->to); }
static const part_kind sink_kind = { .run = sink_run, .same = sink_same, .fini = sink_fini };

void hd_build_sink_spec(hd_build *b, const hd_sink_spec *of) {
    if (!check_inputs(b, of->name, &of->cell, 1)) return;
    if (!of->fn) hd_build_fail(b, HD_USAGE, "%s: no function", of->name);
    sink_part *k = part_new(b, &sink_kind, sizeof *k, of->name);
    if (!k) return;
    k->to = (confirmed){ .cell = of->cell, .fn = of->fn, .ctx = of->ctx };
    k->confirmed = of->confirmed;
    k->group = of->group;
    hd_node_spec spec = { .effect = true, .reads = &of->cell, .read_count = 1, .group = of->group };
    part_add(&k->part, &spec);
}

void hd_build_sink(hd_build *b, const char *name, hd_cell cell, hd_sink_fn fn, void *ctx) {
    hd_build_sink_spec(b, &(hd_sink_spec){ .name = name, .cell = cell, .fn = fn, .ctx = ctx });
}

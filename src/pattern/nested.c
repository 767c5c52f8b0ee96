/* nested.c -- patterns in patterns: hd_build_use, and hd_build_derive_pattern, where a run of a node builds. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include <stdio.h>
#include <string.h>

/* ---- use */

/* The build of this name, of an earlier round or new. The limit of the path's length ends a pattern that
 * uses itself. */
static hd_build *take_child(hd_build *b, const char *name) {
    hd_build *child = build_find(b, name);
    const part *other = find_part(b, name);
    if ((child && child->used_round == b->round) || (other && other->round == b->round)) {
        twice_named(b, name);
        return NULL;
    }
    if (child) return child;
    if (strlen(b->path) + strlen(name) + 2 > NAME_MAX_LENGTH) {
        hd_build_fail(b, HD_LIMIT, "%.80s...: patterns use each other too deeply", b->path);
        return NULL;
    }
    child = build_new(b, NULL, name, b->local, b->under);
    if (!child) hd_build_fail(b, HD_NOMEM, "%s: no memory", name);
    return child;
}

static bool check_given(hd_build *b, const char *name, const hd_named_cell *in, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!in[i].name)
            hd_build_fail(b, HD_USAGE, "%.120s/%.80s: argument %zu has no name", b->path, name,
                          i + 1);
        else if (!in[i].cell.id)
            hd_build_fail(b, HD_USAGE, "%.80s/%.60s: the argument \"%.60s\" is no cell", b->path,
                          name, in[i].name);
    }
    return !b->status;
}

/* Warns of given arguments that the pattern did not ask for: most are misspelt. */
static void tell_unasked(const hd_build *child) {
    for (size_t i = 0; i < child->in_count && i < IN_ASKED_MAX; i++)
        if (!(child->in_asked & UINT64_C(1) << i))
            env_log(child->all->env, HD_LOG_WARN, "%s: the pattern \"%s\" has no argument \"%s\"",
                    child->path, child->what.name, child->in[i].name);
}

hd_cell hd_build_use(hd_build *b, const char *name, const char *pattern_name,
                     const hd_named_cell *in, size_t count) {
    if (b->status) return (hd_cell){ 0 };
    const pattern *what = pattern_name ? patterns_find(b->all, pattern_name) : NULL;
    if (!what)
        return hd_build_fail(b, HD_NOT_FOUND,
                             "there is no pattern \"%s\": register it first (hd_pattern_register, "
                             "in Python store.use)",
                             pattern_name ? pattern_name : "");
    if (!name_is_plain(name))
        return hd_build_fail(b, HD_USAGE, "\"%.80s\" is not a valid name", name ? name : "");
    hd_build *child = check_given(b, name, in, count) ? take_child(b, name) : NULL;
    if (!child) return (hd_cell){ 0 };
    assert(child->up == b && !child->owner && !child->in);
    bool first = !child->round;
    child->used_round = b->round;
    child->what = *what;
    child->in = in;
    child->in_count = count;
    child->in_asked = 0;
    build_begin(child, b->tx);
    hd_cell result = child->what.fn(child, child->what.ctx);
    hd_status status = build_end(child);
    if (!status && first) tell_unasked(child);
    child->in = NULL;
    child->in_count = 0;
    if (status) b->status = status;
    return status ? (hd_cell){ 0 } : result;
}

/* ---- derive */

/* hd_build_derive_pattern makes two nodes: "name.pattern" builds, and writes a link to the result of what it
 * built; "name" copies the value that the link leads to. If readers followed the link themselves, they
 * would run right after the build, before the new graph has computed its result. */

#define INPUTS_MAX 16

typedef struct nest_part {
    part part;  /* "name.pattern" */
    char *name; /* of the build it makes */
    hd_derive_pattern_fn fn;
    void *ctx;
    hd_cell in[INPUTS_MAX];
    uint32_t count;
    hd_build *below; /* the build; NULL before the first run */
} nest_part;

static hd_status nest_build(nest_part *n, hd_tx *tx, const hd_value *values, hd_cell *out) {
    hd_build *b = n->part.in;
    assert(b && (!n->below || (n->below->owner == &n->part && n->below->up == b)));
    if (!n->below) {
        uint32_t local = (uint32_t)(strlen(b->path) + strlen(n->name) + 2);
        n->below = build_new(b, &n->part, n->name, local, n->part.node);
        if (!n->below) return HD_NOMEM;
    }
    build_begin(n->below, tx);
    *out = n->fn(n->below, tx, values, n->ctx);
    return build_end(n->below);
}

static hd_status nest_run(hd_tx *tx, void *ctx) {
    nest_part *n = ctx;
    assert(n->part.in && n->count <= INPUTS_MAX);
    hd_value values[INPUTS_MAX];
    hd_cell result = { 0 };
    scheduler *s = scheduler_get(hd_tx_runtime(tx));
    persistence_creates(s, s->running);
    for (uint32_t i = 0; i < n->count; i++) {
        values[i] = hd_tx_get(tx, n->in[i]);
        if (hd_value_status(values[i])) return hd_value_status(values[i]);
    }
    hd_status status = nest_build(n, tx, values, &result);
    if (status) return part_failed(tx, status);
    persistence_created(s, s->running, NULL, NULL);
    if (!result.id) return hd_tx_remove(tx, n->part.output);
    return hd_tx_set(tx, n->part.output, hd_cell_link(hd_tx_runtime(tx), hd_tx_pool(tx), result));
}

static bool nest_same(const part *p, const part *fresh) {
    const nest_part *a = (const nest_part *)p, *b = (const nest_part *)fresh;
    return a->fn == b->fn && a->ctx == b->ctx && a->count == b->count &&
           !memcmp(a->in, b->in, a->count * sizeof *a->in);
}

static void nest_fini(part *p) {
    nest_part *n = (nest_part *)p;
    if (n->name) env_free(p->env, n->name, strlen(n->name) + 1);
}

static void nest_check(const part *p) {
    const nest_part *n = (const nest_part *)p;
    assert(n->name && n->fn && n->count <= INPUTS_MAX);
    assert(!n->below || (n->below->owner == p && n->below->up == p->in && !n->below->tx));
    (void)n;
}

static const part_kind nest_kind = {
    .run = nest_run, .same = nest_same, .fini = nest_fini, .check = nest_check
};

static hd_value pass_on(hd_tx *tx, hd_value v, void *ctx) {
    (void)tx, (void)ctx;
    return v;
}

static bool nest_fill(nest_part *n, const char *name, const hd_cell *in, size_t count) {
    size_t length = strlen(name) + 1;
    n->name = env_new(n->part.env, length);
    if (!n->name) return false;
    memcpy(n->name, name, length);
    if (count) memcpy(n->in, in, count * sizeof *in);
    n->count = (uint32_t)count;
    return true;
}

hd_cell hd_build_derive_pattern(hd_build *b, const char *name, hd_derive_pattern_fn fn, void *ctx,
                                const hd_cell *in, size_t count) {
    if (!check_inputs(b, name, in, count)) return (hd_cell){ 0 };
    if (!fn) hd_build_fail(b, HD_USAGE, "%s: no function", name);
    if (count > INPUTS_MAX) hd_build_fail(b, HD_LIMIT, "%s: more than %d inputs", name, INPUTS_MAX);
    char full[256];
    snprintf(full, sizeof full, "%s.pattern", name);
    nest_part *n = part_new(b, &nest_kind, sizeof *n, full);
    if (!n) return (hd_cell){ 0 };
    n->fn = fn;
    n->ctx = ctx;
    if (!nest_fill(n, name, in, count)) {
        part_free(&n->part);
        return hd_build_fail(b, HD_NOMEM, "%s: no memory", name);
    }
    return hd_build_derive(b, name, add_computation(&n->part, n->in, count, NULL), pass_on, NULL);
}

/* trace.c -- rings of what happened last. */
#include "scheduler/introspection/trace.h"

#include "base/env.h"
#include "scheduler/causes.h"
#include "scheduler/invalidation.h"
#include "scheduler/registry.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

/* ---- rings */

static hd_status ring_open(ring *r, const hd_env *env, uint32_t capacity, size_t size) {
    if (r->items) return HD_OK;
    r->items = env_new_array(env, capacity, size);
    if (!r->items) return HD_NOMEM;
    r->capacity = capacity;
    r->size = (uint32_t)size;
    r->total = 0;
    return HD_OK;
}

static void ring_close(ring *r, const hd_env *env) {
    assert(!r->items == !r->capacity);
    env_free(env, r->items, (size_t)r->capacity * r->size);
    *r = (ring){ 0 };
}

static bool ring_is_full(const ring *r) { return r->total >= r->capacity; }
/* The place of the next record, which is also that of the oldest once the ring is full. */
static void *ring_next(const ring *r) {
    assert(r->items && r->capacity);
    return r->items + (size_t)(r->total % r->capacity) * r->size;
}

hd_status trace_enable(trace *t, const hd_env *env, unsigned kinds) {
    hd_status status = HD_OK;
    if (kinds & HD_TRACE_TRIGGERS)
        status = ring_open(&t->triggers, env, HD_TRACE_MAX_TRIGGERS, sizeof(trigger_entry));
    if (!status && (kinds & HD_TRACE_RUNS))
        status = ring_open(&t->runs, env, HD_TRACE_MAX_RUNS, sizeof(run_entry));
    if (!status && (kinds & HD_TRACE_SETTLES))
        status = ring_open(&t->settles, env, HD_TRACE_MAX_SETTLES, sizeof(hd_settle_trace));
    if (status) return status;
    /* Runs and passes are recorded whole or not at all. */
    if (!(t->kinds & kinds & HD_TRACE_RUNS)) t->in_run = false;
    if (!(t->kinds & kinds & HD_TRACE_SETTLES)) t->pass.open = false;
    t->kinds = kinds & HD_TRACE_ALL;
    return HD_OK;
}

/* ---- references that records hold */

static void drop_trigger(scheduler *s, trigger_entry *e) {
    assert(e->t.cell.id);
    key_unref(e->name);
    key_unref(e->writer_name);
    place_unref(&s->r->places, e->t.cell.id);
}

static void drop_cells(scheduler *s, const hd_trace_cells *c) {
    for (uint32_t i = 0; i < c->count && i < HD_TRACE_CELLS; i++)
        place_unref(&s->r->places, c->cells[i].id);
}

static void drop_run(scheduler *s, run_entry *e) {
    key_unref(e->name);
    drop_cells(s, &e->t.causes);
    drop_cells(s, &e->t.declared);
    drop_cells(s, &e->t.written);
    drop_cells(s, &e->t.attempted);
}

static void add_cell(scheduler *s, hd_trace_cells *c, place_id at) {
    assert(at);
    if (c->count < HD_TRACE_CELLS) {
        place_ref(&s->r->places, at);
        c->cells[c->count] = (hd_cell){ at };
    }
    c->count++;
}

void trace_clear(trace *t, scheduler *s) {
    for (uint32_t i = 0; i < ring_count(&t->triggers); i++)
        drop_trigger(s, ring_at(&t->triggers, i));
    for (uint32_t i = 0; i < ring_count(&t->runs); i++) drop_run(s, ring_at(&t->runs, i));
    t->triggers.total = t->runs.total = t->settles.total = 0;
    t->in_run = false;
}

void trace_fini(trace *t, scheduler *s) {
    trace_clear(t, s);
    ring_close(&t->triggers, s->env);
    ring_close(&t->runs, s->env);
    ring_close(&t->settles, s->env);
    t->kinds = 0;
}

void trace_check(const trace *t) {
    assert(t->triggers.items || (!t->triggers.total && !(t->kinds & HD_TRACE_TRIGGERS)));
    assert(t->runs.items || (!t->runs.total && !(t->kinds & HD_TRACE_RUNS)));
    assert(t->settles.items || (!t->settles.total && !(t->kinds & HD_TRACE_SETTLES)));
    assert(!t->in_run && !t->pass.open);
    for (uint32_t i = 1; i < ring_count(&t->settles); i++) {
        const hd_settle_trace *before = ring_at(&t->settles, i - 1), *e = ring_at(&t->settles, i);
        /* A pass that gave way in the middle has a record for each of its parts. */
        bool same_pass = before->number == e->number && before->unfinished;
        assert(before->number < e->number || same_pass);
        assert(before->began_ns <= e->began_ns);
        (void)same_pass;
    }
    (void)t;
}

/* ---- summaries */

typedef struct cut_text {
    char *at;
    size_t room;
    bool cut;
} cut_text;

static bool put_cut(const char *text, size_t length, void *ctx) {
    cut_text *c = ctx;
    assert(!c->cut); /* the writer stops there */
    c->cut = length > c->room;
    if (c->cut) length = c->room;
    memcpy(c->at, text, length);
    c->at += length;
    c->room -= length;
    return !c->cut;
}

/* Ends the text in "..." where it was cut, between two characters. */
static void end_cut(char *out, cut_text *c) {
    if (c->cut) {
        assert(c->at >= out + 3);
        c->at -= 3;
        while (c->at > out && ((unsigned char)*c->at & 0xC0) == 0x80) c->at--;
        memcpy(c->at, "...", 3);
        c->at += 3;
    }
    *c->at = 0;
}

void trace_summary(hd_value v, char *out, size_t size) {
    cut_text c = { out, size - 1, false };
    size_t count = hd_value_count(v);
    const char *plural = count == 1 ? "" : "s";
    assert(size >= 16);
    switch (hd_value_kind(v)) {
    case HD_KIND_ABSENT: snprintf(out, size, "-"); return;
    case HD_KIND_FAILED: snprintf(out, size, "!%s", hd_status_name(hd_value_status(v))); return;
    case HD_KIND_ARRAY: snprintf(out, size, "[%zu item%s]", count, plural); return;
    case HD_KIND_OBJECT: snprintf(out, size, "{%zu key%s}", count, plural); return;
    default: break;
    }
    hd_json_write(v, HD_JSON_COMPACT, put_cut, &c);
    end_cut(out, &c);
}

/* ---- triggers */

void trace_change(trace *t, place_id at, hd_value before, hd_value after) {
    t->at = at;
    t->before = before;
    t->after = after;
}

static hd_origin origin_of(const replica *r) {
    switch (r->kind) {
    case HD_CHANGE_LOAD: return HD_ORIGIN_LOAD;
    case HD_CHANGE_INTEGRATE: return HD_ORIGIN_OTHERS;
    case HD_CHANGE_REVERT: return HD_ORIGIN_REVERT;
    case HD_CHANGE_COMMIT: break;
    }
    return r->origin_node ? HD_ORIGIN_NODE : HD_ORIGIN_SOURCE;
}

static struct key *name_of(const scheduler *s, node_id id) {
    struct key *name = node_own_name(s, id);
    return name ? key_ref(name) : NULL;
}

static const char *name_text(const struct key *name) { return name ? key_bytes(name) : ""; }

void trace_trigger(trace *t, scheduler *s, node_id id, trigger_decision decision) {
    if (!(t->kinds & HD_TRACE_TRIGGERS)) return;
    assert(t->at); /* trace_change came before */
    trigger_entry *e = ring_next(&t->triggers);
    if (ring_is_full(&t->triggers)) drop_trigger(s, e);
    hd_origin origin = origin_of(s->r);
    node_id author = origin == HD_ORIGIN_NODE ? s->r->origin_node : 0;
    *e = (trigger_entry){ .name = name_of(s, id),
                          .writer_name = name_of(s, author),
                          .rev = s->r->rev };
    e->t = (hd_trigger){ .number = ++t->triggers.total,
                         .at_ns = env_now_ns(s->env),
                         .node = registry_handle(s, id),
                         .action = name_text(e->name),
                         .cell = { t->at },
                         .decision = (hd_trigger_decision)decision,
                         .origin = origin,
                         .writer = registry_handle(s, author),
                         .writer_name = name_text(e->writer_name) };
    place_ref(&s->r->places, t->at);
    trace_summary(t->before, e->t.before, sizeof e->t.before);
    trace_summary(t->after, e->t.after, sizeof e->t.after);
}

static bool same_node(hd_node a, hd_node b) { return a.id == b.id && a.generation == b.generation; }

const trigger_entry *trace_find_trigger(const trace *t, hd_node handle, place_id at, uint64_t since,
                                        uint64_t until) {
    for (uint32_t i = ring_count(&t->triggers); i-- > 0;) {
        const trigger_entry *e = ring_at(&t->triggers, i);
        bool concerned =
            e->t.decision <= HD_TRIGGER_ALREADY_INVALID && same_node(e->t.node, handle);
        if (concerned && e->rev > since && e->rev <= until && e->t.cell.id == at) return e;
    }
    return NULL;
}

const char *hd_trigger_decision_name(hd_trigger_decision decision) {
    static const char *const names[] = { "mark-invalid", "already-invalid", "skip-own",
                                         "skip-group" };
    return (unsigned)decision < 4 ? names[decision] : "unknown";
}

/* ---- runs */

static void begin_causes(scheduler *s, node_id id, hd_trace_cells *out) {
    hd_status status = causes_of_next(s, id, &s->told);
    (void)status; /* without memory: the first ones */
    for (uint32_t i = 0; i < s->told.count && i < HD_TRACE_CELLS; i++)
        add_cell(s, out, s->told.items[i]);
    assert(out->count <= s->told.count);
    out->count = s->told.count;
}

void trace_run_begin(trace *t, scheduler *s, node_id id) {
    t->in_run = false;
    if (!(t->kinds & HD_TRACE_RUNS)) return;
    run_entry *e = ring_next(&t->runs);
    if (ring_is_full(&t->runs)) drop_run(s, e);
    const node *n = node_of(s, id);
    *e = (run_entry){ .name = name_of(s, id), .rev_before = s->r->rev, .runs_before = n->runs };
    e->t = (hd_run_trace){ .number = ++t->runs.total,
                           .began_ns = s->clock_ns,
                           .pass = s->pass,
                           .node = registry_handle(s, id),
                           .parent = registry_handle(s, graph_parent(&s->graph, id)),
                           .action = name_text(e->name),
                           .effect = n->flags & NODE_EFFECT,
                           .materialiser = n->flags & NODE_MATERIALISER,
                           .first = n->flags & NODE_NEVER_RAN,
                           .status = HD_PENDING };
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        add_cell(s, &e->t.declared, out & ~WRITER_ENVELOPE);
    begin_causes(s, id, &e->t.causes);
    t->in_run = true;
}

void trace_run_body(trace *t, scheduler *s) {
    if (!t->in_run) return;
    run_entry *e = ring_at(&t->runs, ring_count(&t->runs) - 1);
    assert(e->t.number == t->runs.total && s->clock_ns >= e->t.began_ns);
    t->in_run = false; /* the body has returned; the run may be suspended, or its node gone */
    e->t.took_ns = s->clock_ns - e->t.began_ns;
}

/* The run that ends now: the newest, or one that was suspended. */
static run_entry *ending(trace *t, hd_node handle) {
    for (uint32_t i = ring_count(&t->runs); i-- > 0;) {
        run_entry *e = ring_at(&t->runs, i);
        if (same_node(e->t.node, handle)) return e->t.status == HD_PENDING ? e : NULL;
    }
    return NULL;
}

static void end_writes(scheduler *s, run_entry *e, const hd_tx *tx) {
    const places *ps = &s->r->places;
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        place_id doc = tx->writes.items[i].doc;
        bool changed = place_at(ps, doc)->rev > e->rev_before;
        add_cell(s, changed ? &e->t.written : &e->t.attempted, doc);
    }
    if (tx_has_output(tx)) {
        bool changed = place_at(ps, tx->front.out)->rev > e->rev_before;
        add_cell(s, changed ? &e->t.written : &e->t.attempted, tx->front.out);
    }
    for (uint32_t i = 0; i < tx->attempted.count; i++)
        add_cell(s, &e->t.attempted, tx->attempted.items[i]);
}

void trace_run_end(trace *t, scheduler *s, node_id id, const hd_tx *tx, hd_status status) {
    run_entry *e = t->runs.items ? ending(t, registry_handle(s, id)) : NULL;
    if (!e) return;
    const node *n = node_of(s, id);
    if (tx->flags & TX_EPOCH) e->t.took_ns = env_now_ns(s->env) - e->t.began_ns;
    e->t.set_aside = s->aside == id;
    e->t.status = status;
    e->t.reads = n->read_count;
    if (n->runs != e->runs_before) e->completed_rev = n->ran_rev;
    if (!status && !e->t.set_aside) end_writes(s, e, tx);
}

const run_entry *trace_find_run(const trace *t, hd_node handle, uint64_t ran_rev) {
    for (uint32_t i = ring_count(&t->runs); i-- > 0;) {
        const run_entry *e = ring_at(&t->runs, i);
        if (same_node(e->t.node, handle) && ran_rev && e->completed_rev == ran_rev) return e;
    }
    return NULL;
}

/* ---- passes */

void trace_pass_begin(trace *t, const scheduler *s) {
    if (!(t->kinds & HD_TRACE_SETTLES)) return;
    t->pass.open = true;
    t->pass.began_ns = env_now_ns(s->env);
    t->pass.runs = runs_completed(s);
    t->pass.marks = s->stats.marks;
    t->pass.filtered = s->stats.filtered;
    t->pass.iterations = s->stats.iterations;
    t->pass.exhausted = s->stats.exhausted;
}

void trace_pass_end(trace *t, const scheduler *s) {
    if (!(t->kinds & HD_TRACE_SETTLES) || !t->pass.open) return;
    t->pass.open = false;
    hd_settle_trace *e = ring_next(&t->settles);
    t->settles.total++;
    *e = (hd_settle_trace){ .number = s->pass,
                            .began_ns = t->pass.began_ns,
                            .took_ns = env_now_ns(s->env) - t->pass.began_ns,
                            .runs = runs_completed(s) - t->pass.runs,
                            .marks = s->stats.marks - t->pass.marks,
                            .filtered = s->stats.filtered - t->pass.filtered,
                            .iterations = (uint32_t)(s->stats.iterations - t->pass.iterations),
                            .exhausted = s->stats.exhausted != t->pass.exhausted,
                            .unfinished = s->tick };
}

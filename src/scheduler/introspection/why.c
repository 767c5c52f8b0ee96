/* why.c -- causes, told depth first. */
#include "scheduler/introspection/why.h"

#include "base/env.h"
#include "scheduler/causes.h"
#include "scheduler/gates/gates.h"
#include "scheduler/persistence/lead.h"
#include "scheduler/runner/runner.h"
#include "scheduler/invalidation.h"
#include "scheduler/registry.h"
#include "scheduler/graph/writers.h"
#include "value/key.h"
#include <stdio.h>

#define MS        UINT64_C(1000000)
#define NODES_MAX 256 /* nodes whose causes are told, in one answer */

typedef struct asking {
    const scheduler *s;
    const trace *t; /* may be NULL */
    hd_cause_fn fn;
    void *ctx;
    bool stopped;
    node_id told[NODES_MAX]; /* nodes whose causes were told, or are planned to be */
    uint32_t told_count;
    /* Nodes still to be told of, the next one last. A node is here at most once. */
    struct {
        node_id node;
        uint32_t depth;
    } stack[NODES_MAX];
    uint32_t stack_count;
} asking;

/* ---- the writer of a cause */

/* Whether a change of the cell may be one of the output. If the output is a part of the cell, both have
 * changed at once; if it contains the cell, that cannot be told. */
static bool may_be_of(const places *ps, place_id cell, place_id output) {
    place_id up = output;
    while (up != cell && !place_is_doc(ps, up)) up = place_at(ps, up)->in.parent;
    return up != cell || place_at(ps, output)->rev == place_at(ps, cell)->rev;
}

/* The node whose last run made the change; or else one that has run since, and whose later run left the
 * output as it was. */
static node_id writer_of(const scheduler *s, place_id cell) {
    const places *ps = &s->r->places;
    uint64_t rev = place_at(ps, cell)->rev;
    node_id found = 0;
    writer_walk walk;
    writers_begin(&walk, &s->graph, cell);
    for (writer w; writers_next(&walk, &w);) {
        if ((w.node & WRITER_ENVELOPE) || !may_be_of(ps, cell, w.place)) continue;
        const node *n = node_of(s, w.node);
        if (!n->runs || n->ran_rev < rev) continue;
        if (!found || n->ran_rev == rev) found = w.node;
    }
    return found;
}

static void find_writer(const asking *a, const trigger_entry *seen, hd_cause *cause) {
    const scheduler *s = a->s;
    if (seen) {
        cause->origin = seen->t.origin;
        cause->writer = seen->t.writer;
        cause->writer_name = seen->t.writer_name;
        return;
    }
    node_id id = writer_of(s, cause->cell.id);
    cause->origin = id ? HD_ORIGIN_NODE : HD_ORIGIN_SOURCE;
    cause->writer = registry_handle(s, id);
    cause->writer_name = node_label(s, id);
}

/* ---- telling */

static bool plan_node(asking *a, node_id id, uint32_t depth) {
    if (depth > HD_WHY_DEPTH || a->told_count == NODES_MAX || a->stack_count == NODES_MAX)
        return false;
    for (uint32_t i = 0; i < a->told_count; i++)
        if (a->told[i] == id) return false;
    assert(id && a->stack_count <= a->told_count);
    a->told[a->told_count++] = id;
    a->stack[a->stack_count].node = id;
    a->stack[a->stack_count++].depth = depth;
    return true;
}

/* The change as it was recorded then, which it may not have been: as far as the place still tells when it
 * changed, it must be that change. */
static const trigger_entry *find_trigger(const asking *a, node_id id, place_id at, uint64_t since,
                                         uint64_t until) {
    assert(since <= until);
    uint64_t rev = place_at(&a->s->r->places, at)->rev;
    if (rev > since && rev <= until) since = rev - 1;
    return a->t ? trace_find_trigger(a->t, registry_handle(a->s, id), at, since, until) : NULL;
}

/* A change of `at` after the revision `since` and up to `until`. */
static void tell_cause(asking *a, node_id id, uint32_t depth, place_id at, uint64_t since,
                       uint64_t until) {
    const scheduler *s = a->s;
    const place *p = place_at(&s->r->places, at);
    char after[32];
    hd_cause cause = { .depth = depth,
                       .node = registry_handle(s, id),
                       .cell = { at },
                       .pending = until == UINT64_MAX,
                       .after = after };
    const trigger_entry *seen = find_trigger(a, id, at, since, until);
    trace_summary(p->value, after, sizeof after);
    if (seen) {
        cause.before = seen->t.before;
        cause.after = seen->t.after;
    }
    find_writer(a, seen, &cause);
    node_id author = registry_get(s, cause.writer);
    if (author) cause.repeated = !plan_node(a, author, depth + 1);
    if (!a->fn(&cause, a->ctx)) a->stopped = true;
}

/* What caused its last run: as it was traced then, where that tells more than the reads do (what has
 * changed again since does not show there). Gives the revision at which that run began to see things. */
static void last_causes(const asking *a, node_id id, place_vec *out, uint64_t *until) {
    const scheduler *s = a->s;
    const node *n = node_of(s, id);
    const run_entry *run = a->t ? trace_find_run(a->t, registry_handle(s, id), n->ran_rev) : NULL;
    assert(!run || run->rev_before <= n->ran_rev);
    uint32_t traced = run ? run->t.causes.count : 0;
    *until = run ? run->rev_before : n->ran_rev;
    hd_status status = causes_of_last(s, id, out);
    (void)status; /* without memory: the first ones */
    if (out->count >= traced || traced > HD_TRACE_CELLS || !vec_room(s->env, out, traced)) return;
    for (out->count = 0; out->count < traced; out->count++)
        out->items[out->count] = run->t.causes.cells[out->count].id;
}

static void tell_causes(asking *a, node_id id, uint32_t depth, const place_vec *causes,
                        uint64_t since, uint64_t until) {
    for (uint32_t i = 0; i < causes->count && !a->stopped; i++)
        tell_cause(a, id, depth, causes->items[i], since, until);
}

static void tell_node(asking *a, node_id id, uint32_t depth) {
    const node n = *node_of(a->s, id); /* a copy: records may move while the callback runs */
    bool invalid = node_is_invalid(&a->s->graph, &n);
    uint32_t planned = a->stack_count;
    uint64_t until;
    place_vec last = { 0 }, next = { 0 };
    last_causes(a, id, &last, &until);
    if (invalid) (void)causes_of_next(a->s, id, &next);
    tell_causes(a, id, depth, &last, causes_last_since(&n), until);
    tell_causes(a, id, depth, &next, n.ran_rev, UINT64_MAX);
    vec_fini(a->s->env, &last);
    vec_fini(a->s->env, &next);
    /* The first cause's writer comes next: turn round what was planned. */
    for (uint32_t i = planned, j = a->stack_count; i + 1 < j; i++, j--) {
        node_id node_ = a->stack[i].node;
        a->stack[i].node = a->stack[j - 1].node;
        a->stack[j - 1].node = node_;
    }
}

void why_tell(const scheduler *s, const trace *t, node_id id, hd_cause_fn fn, void *ctx) {
    asking a = { .s = s, .t = t, .fn = fn, .ctx = ctx };
    assert(id && fn);
    plan_node(&a, id, 0);
    while (a.stack_count && !a.stopped) {
        a.stack_count--;
        tell_node(&a, a.stack[a.stack_count].node, a.stack[a.stack_count].depth);
    }
}

/* ---- why not */

hd_why_not why_not(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    if (n->flags & NODE_SUSPENDED) return HD_WHY_NOT_RUNNING;
    if (!node_is_invalid(&s->graph, n)) return HD_WHY_NOT_CLEAN;
    if (!node_is_live(&s->graph, n)) return HD_WHY_NOT_DORMANT;
    if (n->flags & NODE_WAITING) return HD_WHY_NOT_LOADING;
    if (n->flags & NODE_BLOCKED) return HD_WHY_NOT_AWAITS;
    hd_why_not gated = gates_reason(s, n, env_now_ns(s->env));
    if (gated != HD_WHY_NOT_RUNS) return gated;
    if ((n->flags & NODE_MATERIALISER) && !(n->flags & NODE_PROMOTED)) return HD_WHY_NOT_IDLE_TURN;
    return HD_WHY_NOT_RUNS;
}

node_id why_awaits(const scheduler *s, node_id id) {
    const cold *c = cold_of(s, node_of(s, id));
    const hd_run *run = c ? c->blocked_by : NULL;
    return run ? registry_get(s, (hd_node){ run->node, run->generation }) : 0;
}

static void print_awaited(const scheduler *s, node_id id, char *out, size_t size) {
    const char *name = node_label(s, why_awaits(s, id));
    if (*name) snprintf(out, size, "it waits for the run of \"%s\", which is suspended", name);
    else snprintf(out, size, "it waits for the run of a node without a name, which is suspended");
}

static void print_clean(const scheduler *s, node_id id, char *out, size_t size) {
    const node *n = node_of(s, id);
    const cold *c = cold_of(s, n);
    if (!(n->flags & NODE_RESUMED) && c && c->failed_in == node_runs(s, n))
        snprintf(out, size,
                 "its run number %llu has failed: it runs again when something that it read "
                 "changes, and nothing has",
                 (unsigned long long)c->failed_in);
    else if ((n->flags & NODE_RESUMED) && persistence_has_failed(s, id))
        snprintf(out, size,
                 "its last run, before this program was started or in another one, has failed: it "
                 "runs again when something that it read changes, and nothing has");
    else if (n->flags & NODE_RESUMED)
        snprintf(out, size,
                 "it is clean: nothing it read has changed since its last run, which was before "
                 "this program was started, or in another one");
    else
        snprintf(out, size, "it is clean: nothing it read has changed since its run number %llu",
                 (unsigned long long)node_runs(s, n));
}

static void print_missing(const scheduler *s, const cold *c, char *out, size_t size) {
    char name[128] = "?";
    if (c && c->missing) hd_cell_print(s->rt, (hd_cell){ c->missing }, name, sizeof name);
    snprintf(out, size, "it waits for %s, which is on its way", name);
}

static bool is_awaited(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    return c && c->asked_ns && gates_is_led(s, n);
}

/* The node itself waits for another process, or one upstream of it does. */
static void print_leader(const scheduler *s, node_id id, unsigned long long left, char *out,
                         size_t size) {
    node_id of = runner_find_upstream((scheduler *)(uintptr_t)s, id, is_awaited); /* marks nodes */
    hd_value leader = of ? persistence_leader(s, of) : value_absent();
    char name[80] = "it";
    if (of && of != id)
        snprintf(name, sizeof name, "\"%.60s\", which it reads,", node_label(s, of));
    snprintf(out, size,
             "%s is computed by process %lld on %.40s, which derives for the space: the result is "
             "awaited for %llu ms more",
             name, (long long)hd_value_as_int(hd_value_at(leader, "pid"), 0),
             hd_value_as_text(hd_value_at(leader, "host"), "?"), left);
}

void why_not_sentence(const scheduler *s, node_id id, char *out, size_t size) {
    const node *n = node_of(s, id);
    const cold *c = cold_of(s, n);
    hd_why_not reason = why_not(s, id);
    uint64_t now = env_now_ns(s->env), at = gates_eligible_at(s, n);
    unsigned long long left = at > now ? (at - now + MS - 1) / MS : 0;
    switch (reason) {
    case HD_WHY_NOT_RUNNING:
        if (!c->run->parked) break;
        snprintf(out, size,
                 "its run was cut short, or nothing can go on with it now: it runs again when the "
                 "program can run it");
        return;
    case HD_WHY_NOT_CLEAN: print_clean(s, id, out, size); return;
    case HD_WHY_NOT_LOADING: print_missing(s, c, out, size); return;
    case HD_WHY_NOT_AWAITS: print_awaited(s, id, out, size); return;
    case HD_WHY_NOT_DEBOUNCE:
        snprintf(out, size,
                 "it runs when nothing has changed for %u ms: in %llu ms at the earliest",
                 c->gate.debounce_ms, left);
        return;
    case HD_WHY_NOT_THROTTLE:
        snprintf(out, size, "it runs at most once in %u ms: again in %llu ms", c->gate.throttle_ms,
                 left);
        return;
    case HD_WHY_NOT_BACKOFF:
        snprintf(out, size,
                 "it used up its %u runs of a pass without settling: it waits %llu ms more",
                 ITERATIONS_MAX, left);
        return;
    case HD_WHY_NOT_ECHO:
        snprintf(out, size, "it and another writer overwrite each other: it waits %llu ms more",
                 left);
        return;
    case HD_WHY_NOT_LED: print_leader(s, id, left, out, size); return;
    case HD_WHY_NOT_HELD:
        snprintf(out, size, "it is held until the data is there: at most %llu ms more", left);
        return;
    default: break;
    }
    snprintf(out, size, "%s", hd_why_not_text(reason));
}

const char *hd_why_not_text(hd_why_not reason) {
    static const char *const texts[] = {
        [HD_WHY_NOT_RUNS] = "it runs in the next pump",
        [HD_WHY_NOT_CLEAN] = "nothing it read has changed",
        [HD_WHY_NOT_DORMANT] = "no live node reads what it writes",
        [HD_WHY_NOT_DEBOUNCE] = "debounced",
        [HD_WHY_NOT_THROTTLE] = "throttled",
        [HD_WHY_NOT_BACKOFF] = "backing off: it did not settle",
        [HD_WHY_NOT_ECHO] = "backing off: it and another writer overwrite each other",
        [HD_WHY_NOT_RETRY] =
            "its last commit was refused, or its run failed for now: it is tried again",
        [HD_WHY_NOT_HELD] = "held until the data is there",
        [HD_WHY_NOT_LOADING] = "a document it reads is on its way",
        [HD_WHY_NOT_RUNNING] = "it is suspended in the middle of a run",
        [HD_WHY_NOT_AWAITS] = "it waits for a suspended run",
        [HD_WHY_NOT_IDLE_TURN] = "a materialiser: it runs after everything else",
        [HD_WHY_NOT_GONE] = "it was removed",
        [HD_WHY_NOT_LED] = "another process computes it: its result is on its way",
    };
    return (unsigned)reason < sizeof texts / sizeof *texts ? texts[reason] : "unknown";
}

/* ---- why live */

typedef struct looker {
    const scheduler *s;
    node_id self, found;
} looker;

static void note_looker(void *ctx, node_id id) {
    looker *l = ctx;
    if (!l->found && id != l->self && node_is_live(&l->s->graph, node_of(l->s, id))) l->found = id;
}

hd_why_live why_live(const scheduler *s, node_id id, node_id *reader_) {
    const node *n = node_of(s, id);
    *reader_ = 0;
    if (!node_is_live(&s->graph, n)) return HD_LIVE_NOT;
    if (n->flags & NODE_EFFECT) return HD_LIVE_EFFECT;
    if (n->flags & NODE_MATERIALISER) return HD_LIVE_MATERIALISER;
    looker l = { s, id, 0 };
    graph_each_reader(&s->graph, id, note_looker, &l);
    assert(l.found != id);
    *reader_ = l.found;
    if (l.found) return HD_LIVE_READ;
    return n->flags & NODE_PROVISIONAL ? HD_LIVE_PROVISIONAL : HD_LIVE_REQUESTED;
}

const char *hd_why_live_text(hd_why_live reason) {
    static const char *const texts[] = {
        [HD_LIVE_NOT] = "no live node reads it",
        [HD_LIVE_EFFECT] = "it is an effect",
        [HD_LIVE_MATERIALISER] = "it is a materialiser",
        [HD_LIVE_PROVISIONAL] = "a live run created it",
        [HD_LIVE_REQUESTED] = "one run was asked for",
        [HD_LIVE_READ] = "a live node reads it",
    };
    return (unsigned)reason < sizeof texts / sizeof *texts ? texts[reason] : "unknown";
}

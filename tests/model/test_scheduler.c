/* test_scheduler.c -- the scheduler against a twin that recomputes everything from scratch.
 *
 * Small random graphs over a few cells: computations, effects, materialisers, nodes that choose what
 * they read, nodes that make and remove others, nodes that are suspended in the middle, cycles, time
 * gates; spaces are unloaded where that is possible. Most are not reachable from an effect. The twin knows what each
 * node is made of, nothing more; at rest it compares:
 *
 *   I1  what a live node last saw and wrote is what the definitions give, computed from scratch
 *       (in a graph with cycles: what it wrote follows from what its inputs are now)
 *   I2  whoever runs is live; who is live is counted afresh, from the effects along what was read
 *   I3  a node that completed a run runs again only if something it read has changed since, or a
 *       commit was refused
 *
 * With two runtimes on one store, each with a graph of its own, commits cross and are refused.
 *
 * HD_GRAPHS is the number of graphs; HD_SEED repeats a run; HD_GRAPH runs only the graph of that
 * number. */
#include "base/env.h"
#include "lab.h"
#include "scheduler/scheduler.h"

#include <heddle/scheduler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SOURCES = 3, NODES = 9, CELLS = SOURCES + NODES, ALL = CELLS + NODES, INPUTS = 3 };
enum { VALUES = 5, GRAPHS_PER_RUNTIME = 64, ROUNDS_MAX = 5000, ASIDE_MAX = 100 };

/* Where a node's output lies. */
typedef enum flavour { WHOLE, KEY, INSIDE, FLAVOURS } flavour;

typedef struct cell {
    hd_cell at, document;
    char key[16]; /* "": the whole document */
} cell;

typedef struct twin {
    struct side *side;
    bool there, effect, materialiser, writes, chooses, suspends, gated;
    int inputs[INPUTS], count;
    int add;
    int child; /* a node that this one makes while its first input is odd; -1: none */
    int maker; /* of this one; -1: the program */
    flavour flavour;
    hd_node node;

    /* What its last run did. */
    bool ran;
    int read[INPUTS + 1], reads;
    int saw[INPUTS + 1];
    uint64_t versions[INPUTS + 1];
    uint64_t runs, refused; /* before it: completed runs; commits refused here */
    int aside;              /* runs in a row that completed nothing */
} twin;

typedef struct suspended {
    hd_run *run;
    int node, value;
} suspended;

typedef struct side {
    struct model *m;
    hd_runtime *rt;
    hd_pool *pool;
    cell cells[ALL][FLAVOURS]; /* sources, own outputs, the other side's outputs */
    twin nodes[NODES];
    uint64_t version[ALL]; /* by listener; not kept up without one */
    bool strict;           /* has a listener */
    suspended suspended[NODES];
    int suspended_count;
    int value[ALL]; /* computed from scratch; -1: not yet */
    char names[ALL];
} side;

typedef struct model {
    lab_env *world;
    hd_memory *memory;
    lab_random random;
    side sides[2];
    int side_count;
    bool cyclic, gates, busy; /* busy: more effects, more steps */
    bool nested, told;
    int limit; /* of values in a graph with cycles */
    uint64_t graph, runs, refused, unloaded;
} model;

static uint64_t below(model *m, uint64_t n) { return lab_random_below(&m->random, n); }
static bool once_in(model *m, uint64_t n) { return lab_random_once_in(&m->random, n); }

/* ---- cells */

/* Sources have a space of their own. */
static cell make_cell(side *x, const char *document, const char *key) {
    cell c;
    char name[64];
    const char *space = *document == 's' ? "in" : "main";
    snprintf(c.key, sizeof c.key, "%s", key);
    snprintf(name, sizeof name, "%s/%s", space, document);
    c.document = c.at = hd_cell_at(x->rt, name);
    if (*key) {
        snprintf(name, sizeof name, "%s/%s#/%s", space, document, key);
        c.at = hd_cell_at(x->rt, name);
    }
    return c;
}

static void make_output_cells(side *x, int first, char owner) {
    for (int i = 0; i < NODES; i++) {
        char document[16], key[16];
        snprintf(document, sizeof document, "%c%d", owner, i);
        snprintf(key, sizeof key, "k%d", i);
        x->cells[first + i][WHOLE] = make_cell(x, document, "");
        snprintf(document, sizeof document, "%cd", owner);
        x->cells[first + i][KEY] = make_cell(x, document, key);
        snprintf(document, sizeof document, "%ce", owner);
        x->cells[first + i][INSIDE] = make_cell(x, document, key);
    }
}

static void make_cells(side *x) {
    bool first = x == x->m->sides;
    for (int i = 0; i < SOURCES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        for (int f = 0; f < FLAVOURS; f++) x->cells[i][f] = make_cell(x, name, "");
    }
    make_output_cells(x, SOURCES, first ? 'a' : 'b');
    make_output_cells(x, CELLS, first ? 'b' : 'a');
}

static side *other(side *x) { return x->m->sides + (x == x->m->sides); }

static twin *writer_of(side *x, int c) {
    if (c < SOURCES) return NULL;
    return c < CELLS ? &x->nodes[c - SOURCES] : &other(x)->nodes[c - CELLS];
}

static hd_cell cell_at(side *x, int c) {
    const twin *w = writer_of(x, c);
    return x->cells[c][w ? w->flavour : WHOLE].at;
}

static int now_at(side *x, int c) {
    int v = (int)hd_value_as_int(hd_read(x->rt, x->pool, cell_at(x, c)), 0);
    hd_pool_clear(x->pool);
    return v;
}

static void on_notice(const hd_notice *notice, void *ctx) {
    side *x = ctx;
    for (size_t i = 0; i < notice->count; i++) {
        const hd_change *change = &notice->changes[i];
        for (int c = 0; c < ALL; c++) {
            const twin *w = writer_of(x, c);
            const cell *at = &x->cells[c][w ? w->flavour : WHOLE];
            if (at->document.id != change->document.id) continue;
            hd_value before = change->before, after = change->after;
            bool reached = hd_value_exists(before) == hd_value_exists(after);
            if (*at->key)
                before = hd_value_at(before, at->key), after = hd_value_at(after, at->key);
            x->version[c] += !reached || !hd_value_equal(before, after);
        }
    }
}

/* ---- what a node is */

static void register_node(side *x, int i);
static void cancel_node(side *x, int i);
static void fail_here(side *x, int i, const char *what);

/* The definition: which inputs, given the first; and the result. */
static bool uses(const twin *t, int k, int first) {
    return k == 0 || !t->chooses || t->count < 3 || (first & 1 ? k == 1 : k == 2);
}

static int result_of(const twin *t, const int *values) {
    const model *m = t->side->m;
    int sum = t->add, top = 0;
    bool any = false;
    for (int k = 0; k < t->count; k++) {
        if (!uses(t, k, values[0])) continue;
        sum += values[k];
        if (t->inputs[k] < SOURCES) continue;
        any = true;
        if (values[k] > top) top = values[k];
    }
    if (!m->cyclic || !any) return sum % VALUES;
    return top + 1 < m->limit ? top + 1 : m->limit;
}

/* ---- a run */

static uint64_t refusals(side *x) {
    hd_store_stats stats;
    hd_runtime_store_stats(x->rt, &stats);
    return stats.rejected + stats.doomed;
}

/* I2, I3: is this run allowed? */
static void check_reason(side *x, int i, const hd_node_info *info) {
    twin *t = &x->nodes[i];
    if (!info->live) fail_here(x, i, "runs while dormant");
    if (!t->ran) return;
    if (info->runs == t->runs) {
        if (++t->aside > ASIDE_MAX) fail_here(x, i, "keeps running without completing");
        return;
    }
    t->aside = 0;
    if (!x->strict || t->refused != refusals(x)) return;
    for (int k = 0; k < t->reads; k++)
        if (x->version[t->read[k]] != t->versions[k]) return;
    fail_here(x, i, "runs again though nothing it read has changed");
}

static int read_input(side *x, twin *t, hd_tx *tx, int c) {
    int v = (int)hd_value_as_int(hd_tx_get(tx, cell_at(x, c)), 0);
    t->read[t->reads] = c;
    t->saw[t->reads] = v;
    t->versions[t->reads++] = x->version[c];
    return v;
}

static void mind_child(side *x, twin *t, int first) {
    twin *child = &x->nodes[t->child];
    if ((first & 1) && !child->there) {
        register_node(x, t->child);
        child->maker = (int)(t - x->nodes);
    } else if (!(first & 1) && child->there && child->maker == (int)(t - x->nodes)) {
        cancel_node(x, t->child);
    }
}

static hd_status set_output(side *x, int i, hd_tx *tx, int value) {
    return hd_tx_set_int(tx, cell_at(x, SOURCES + i), value);
}

static hd_status body(hd_tx *tx, void *ctx) {
    twin *t = ctx;
    side *x = t->side;
    model *m = x->m;
    int i = (int)(t - x->nodes), values[INPUTS] = { 0 };
    hd_node_info info;
    if (hd_node_inspect(x->rt, t->node, &info)) info = (hd_node_info){ .live = true };
    check_reason(x, i, &info);
    m->runs++;
    t->ran = true;
    t->reads = 0;
    t->runs = info.runs;
    t->refused = refusals(x);
    for (int k = 0; k < t->count; k++)
        if (uses(t, k, values[0])) values[k] = read_input(x, t, tx, t->inputs[k]);
    if (t->child >= 0) mind_child(x, t, values[0]);
    if (once_in(m, 40)) lab_env_advance_ms(m->world, below(m, 20));
    if (m->side_count > 1 && !m->nested && once_in(m, 4)) {
        m->nested = true; /* commits of the other runtime go first */
        hd_runtime_pump(other(x)->rt);
        m->nested = false;
    }
    int value = result_of(t, values);
    if (m->told) fprintf(stderr, "side %d: node %d -> %d\n", (int)(x - m->sides), i, value);
    if (t->suspends && x->suspended_count < NODES) {
        suspended *s = &x->suspended[x->suspended_count];
        if (hd_tx_suspend(tx, &s->run)) fail_here(x, i, "cannot be suspended");
        s->node = i;
        s->value = value;
        x->suspended_count++;
        return HD_PENDING;
    }
    return !t->effect || t->writes ? set_output(x, i, tx, value) : HD_OK;
}

static void resume_one(side *x) {
    int k = (int)below(x->m, (uint64_t)x->suspended_count);
    suspended s = x->suspended[k];
    x->suspended[k] = x->suspended[--x->suspended_count];
    twin *t = &x->nodes[s.node];
    hd_status status = HD_OK;
    lab_env_advance_ms(x->m->world, 1 + below(x->m, 5));
    if (once_in(x->m, 4)) { /* the run does not count, and is made again */
        hd_run_park(s.run);
        hd_runtime_unpark(x->rt);
        return;
    }
    if (!t->effect || t->writes) status = set_output(x, s.node, hd_run_tx(s.run), s.value);
    hd_run_resume(s.run, status);
}

/* ---- making and removing */

static int random_input(side *x, int i) {
    model *m = x->m;
    int top = m->cyclic ? CELLS : SOURCES + i;
    /* The second runtime reads the first one's outputs; the other way round would be a cycle. */
    if (m->side_count > 1 && x != m->sides && once_in(m, 3)) return CELLS + (int)below(m, NODES);
    int c = (int)below(m, (uint64_t)top);
    return c == SOURCES + i ? 0 : c;
}

static void design_node(side *x, int i) {
    model *m = x->m;
    twin *t = &x->nodes[i];
    *t = (twin){ .side = x, .child = -1, .maker = -1, .flavour = t->flavour };
    t->effect = once_in(m, m->busy ? 2 : 5);
    t->writes = t->effect && once_in(m, 3);
    t->materialiser = !t->effect && t->flavour == INSIDE && once_in(m, 2);
    t->count = 1 + (int)below(m, INPUTS);
    t->chooses = once_in(m, 3);
    t->suspends = once_in(m, 12);
    t->add = (int)below(m, VALUES);
    for (int k = 0; k < t->count; k++) t->inputs[k] = random_input(x, i);
    if (m->cyclic && t->chooses) t->inputs[0] = (int)below(m, SOURCES);
}

/* A node that makes node `child`, which must not be one already. */
static void design_maker(side *x, int i) {
    int child = (int)below(x->m, NODES);
    if (child == i || x->nodes[child].there || x->nodes[child].maker >= 0) return;
    for (int k = 0; k < NODES; k++)
        if (x->nodes[k].there && x->nodes[k].child == child) return;
    design_node(x, child);
    x->nodes[child].suspends = x->nodes[i].suspends = false;
    x->nodes[i].child = child;
}

static void register_node(side *x, int i) {
    model *m = x->m;
    twin *t = &x->nodes[i];
    cell *cells = x->cells[SOURCES + i];
    hd_cell reads[INPUTS], envelope = x->cells[SOURCES][INSIDE].document;
    hd_node_spec spec = { .fn = body, .ctx = t, .effect = t->effect };
    if (!t->effect) spec.output = cells[t->flavour].at;
    if (t->materialiser) spec.envelopes = &envelope, spec.envelope_count = 1, spec.output.id = 0;
    for (int k = 0; k < t->count; k++) reads[k] = cell_at(x, t->inputs[k]);
    spec.reads = reads;
    spec.read_count = once_in(m, 2) ? (size_t)t->count : 0;
    if (m->gates && once_in(m, 4)) spec.debounce_ms = 1 + (uint32_t)below(m, 50), t->gated = true;
    if (m->gates && once_in(m, 4)) spec.throttle_ms = 1 + (uint32_t)below(m, 50), t->gated = true;
    t->there = true;
    t->ran = false;
    t->aside = 0;
    if (m->told)
        fprintf(stderr, "side %d: register %d%s\n", (int)(x - m->sides), i,
                spec.read_count ? " declared" : "");
    if (hd_node_register(x->rt, &spec, &t->node)) fail_here(x, i, "cannot be registered");
}

static void cancel_node(side *x, int i) {
    twin *t = &x->nodes[i];
    t->there = false;
    t->maker = -1;
    if (t->child >= 0) x->nodes[t->child].maker = -1;
    if (x->m->told) fprintf(stderr, "side %d: cancel %d\n", (int)(x - x->m->sides), i);
    hd_node_unregister(x->rt, t->node);
}

/* ---- steps */

static void write_sources(side *x) {
    model *m = x->m;
    hd_tx *tx;
    if (m->told) fprintf(stderr, "side %d writes\n", (int)(x - m->sides));
    hd_tx_begin(x->rt, &tx);
    for (uint64_t n = 1 + below(m, 2); n; n--) {
        int c = (int)below(m, SOURCES);
        if (once_in(m, 3)) hd_tx_get(tx, cell_at(x, (int)below(m, SOURCES))); /* a claim */
        hd_tx_set_int(tx, cell_at(x, c), (int64_t)below(m, VALUES));
    }
    hd_tx_commit(tx, NULL, NULL);
}

static void make_or_remove(side *x) {
    int i = (int)below(x->m, NODES);
    twin *t = &x->nodes[i];
    for (int k = 0; k < x->suspended_count; k++)
        if (x->suspended[k].node == i) return; /* its context is in use */
    if (t->maker >= 0) return;
    for (int k = 0; k < NODES; k++)
        if (x->nodes[k].there && x->nodes[k].child == i) return;
    if (t->there) {
        cancel_node(x, i);
        return;
    }
    design_node(x, i);
    if (once_in(x->m, 5)) design_maker(x, i);
    register_node(x, i);
}

static void change_gate(side *x) {
    twin *t = &x->nodes[below(x->m, NODES)];
    if (!x->m->gates || !t->there) return;
    uint32_t ms = once_in(x->m, 2) ? 0 : (uint32_t)below(x->m, 60);
    t->gated = true;
    if (once_in(x->m, 2)) hd_node_set_debounce(x->rt, t->node, ms);
    else hd_node_set_throttle(x->rt, t->node, ms);
}

static void promote_one(side *x) {
    twin *t = &x->nodes[below(x->m, NODES)];
    if (!t->there || t->materialiser || t->effect) return;
    if (hd_node_promote(x->rt, t->node)) fail_here(x, (int)(t - x->nodes), "cannot be promoted");
    t->effect = t->writes = true;
}

/* Whoever has read there knows nothing any more, so that he may run. */
static void unload_one(side *x) {
    hd_status status = hd_runtime_unload(x->rt, once_in(x->m, 4) ? "main" : "in");
    if (status && status != HD_BUSY) fail_here(x, 0, hd_status_name(status));
    for (int c = 0; c < ALL && !status; c++) x->version[c]++;
    x->m->unloaded += !status;
}

static void step(side *x) {
    switch (below(x->m, 11)) {
    case 0: change_gate(x); break;
    case 1: lab_env_advance_ms(x->m->world, below(x->m, 30)); break;
    case 2: promote_one(x); break;
    case 3:
    case 4:
    case 5: make_or_remove(x); break;
    case 6: unload_one(x); break;
    default: write_sources(x); break;
    }
}

/* ---- rest */

static uint64_t now_ns(model *m) { return env_now_ns(lab_env_of(m->world)); }

/* When it wants to go on: 0 now, UINT64_MAX never. */
static uint64_t pump_side(side *x) {
    hd_store_stats stats;
    if (x->m->told) fprintf(stderr, "side %d: pump\n", (int)(x - x->m->sides));
    hd_status status = hd_runtime_pump(x->rt);
    if (status && status != HD_PENDING) fail_here(x, 0, hd_status_name(status));
    hd_runtime_store_stats(x->rt, &stats);
    if (x->suspended_count) {
        resume_one(x);
        return 0;
    }
    if (status || stats.pending) return 0;
    uint64_t deadline = hd_runtime_deadline(x->rt);
    return deadline <= now_ns(x->m) ? 0 : deadline;
}

static void quiesce(model *m) {
    int quiet = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint64_t next = UINT64_MAX;
        for (int i = 0; i < m->side_count; i++) {
            uint64_t at = pump_side(&m->sides[i]);
            if (at < next) next = at;
        }
        quiet = next == UINT64_MAX ? quiet + 1 : 0;
        if (quiet > m->side_count) return; /* each has heard the others' last words */
        if (next && next != UINT64_MAX) lab_env_advance_ns(m->world, next - now_ns(m));
    }
    fail_here(&m->sides[0], 0, "does not come to rest");
}

/* ---- the twin's judgement */

static int scratch(side *x, int c) {
    twin *t = writer_of(x, c);
    int values[INPUTS] = { 0 };
    if (x->value[c] >= 0) return x->value[c];
    x->value[c] = 0; /* acyclic: nobody looks before it is set */
    if (!t || !t->there || c >= CELLS || (t->effect && !t->writes))
        return x->value[c] = now_at(x, c);
    for (int k = 0; k < t->count; k++)
        if (uses(t, k, values[0])) values[k] = scratch(x, t->inputs[k]);
    return x->value[c] = result_of(t, values);
}

static void check_node(side *x, int i) {
    model *m = x->m;
    twin *t = &x->nodes[i];
    int values[INPUTS] = { 0 }, k = 0;
    if (!t->ran) fail_here(x, i, "is live and never ran");
    for (int n = 0; n < t->count; n++) {
        if (!uses(t, n, values[0])) continue;
        values[n] = m->cyclic ? now_at(x, t->inputs[n]) : scratch(x, t->inputs[n]);
        if (k >= t->reads || t->read[k] != t->inputs[n]) fail_here(x, i, "read something else");
        if (t->saw[k++] != values[n]) fail_here(x, i, "saw an old value");
    }
    if (t->effect && !t->writes) return;
    if (now_at(x, SOURCES + i) != result_of(t, values)) fail_here(x, i, "wrote an old value");
    if (t->child < 0 || x->nodes[t->child].maker != i) return;
    if (x->nodes[t->child].there != (values[0] & 1)) fail_here(x, i, "has the wrong child");
}

/* Live: an effect, a materialiser, or read by somebody who is. */
static void mark_live(side *x, bool *live) {
    bool more = true;
    for (int i = 0; i < NODES; i++)
        live[i] = x->nodes[i].there && (x->nodes[i].effect || x->nodes[i].materialiser);
    while (more) {
        more = false;
        for (int i = 0; i < NODES; i++) {
            const twin *t = &x->nodes[i];
            for (int k = 0; live[i] && k < t->reads; k++) {
                int w = t->read[k] - SOURCES;
                if (w < 0 || w >= NODES || !x->nodes[w].there || live[w]) continue;
                live[w] = more = true;
            }
        }
    }
}

static void check_side(side *x) {
    bool live[NODES];
    memset(x->value, -1, sizeof x->value);
    mark_live(x, live);
    for (int i = 0; i < NODES; i++) {
        hd_node_info info;
        const twin *t = &x->nodes[i];
        if (!t->there) continue;
        if (hd_node_inspect(x->rt, t->node, &info)) fail_here(x, i, "is gone");
        if (live[i] && !info.live) fail_here(x, i, "should be live");
        if (!live[i] && info.live) fail_here(x, i, "should be dormant");
        if (live[i] && info.status != HD_NODE_CLEAN) fail_here(x, i, "is live and not clean");
        if (live[i]) check_node(x, i);
    }
    if (!hd_runtime_is_idle(x->rt)) fail_here(x, 0, "is not idle");
    graph_check(&scheduler_get(x->rt)->graph);
}

static void rest(model *m) {
    quiesce(m);
    for (int i = 0; i < m->side_count; i++) check_side(&m->sides[i]);
}

static void print_node(side *x, int i) {
    const twin *t = &x->nodes[i];
    hd_node_info info;
    hd_node_inspect(x->rt, t->node, &info);
    fprintf(stderr, "  %s%d%s%s%s%s%s out=%d flavour=%d reads", t->there ? "" : "(gone) ", i,
            t->effect ? " effect" : "", t->writes ? " writes" : "",
            t->materialiser ? " materialiser" : "", t->chooses ? " chooses" : "",
            t->suspends ? " suspends" : "", SOURCES + i, t->flavour);
    for (int k = 0; k < t->count; k++) fprintf(stderr, " %d", t->inputs[k]);
    fprintf(stderr, " saw");
    for (int k = 0; k < t->reads; k++) fprintf(stderr, " %d=%d", t->read[k], t->saw[k]);
    fprintf(stderr, " add=%d child=%d live=%d runs=%u status=%d why_not=%s pos=%u\n", t->add,
            t->child, info.live, (unsigned)info.runs, info.status, hd_why_not_text(info.why_not),
            t->there ? scheduler_get(x->rt)->graph.nodes[t->node.id].pos : 0);
}

static void fail_here(side *x, int i, const char *what) {
    model *m = x->m;
    fprintf(stderr, "graph %llu%s, side %d: node %d %s\n", (unsigned long long)m->graph,
            m->cyclic ? " (cyclic)" : "", (int)(x - m->sides), i, what);
    for (int s = 0; s < m->side_count; s++) {
        for (int k = 0; k < NODES; k++)
            if (m->sides[s].nodes[k].side) print_node(&m->sides[s], k);
        if (scheduler_get(m->sides[s].rt)->running) continue;
        for (int c = 0; c < CELLS; c++) fprintf(stderr, " %d=%d", c, now_at(&m->sides[s], c));
        fprintf(stderr, "\n");
    }
    lab_fail("node %d %s; HD_SEED and HD_GRAPH=%llu repeat it", i, what,
             (unsigned long long)m->graph);
}

/* ---- one graph, many graphs */

static void open_sides(model *m, int count) {
    m->world = lab_env_open();
    hd_memory_open(lab_env_of(m->world), &m->memory);
    m->side_count = count;
    for (int i = 0; i < count; i++) {
        side *x = &m->sides[i];
        hd_options options = { .env = lab_env_of(m->world), .memory = m->memory };
        *x = (side){ .m = m };
        assert_int_equal(hd_open(NULL, &options, &x->rt, NULL), HD_OK);
        assert_int_equal(hd_pool_open(hd_runtime_heap(x->rt), &x->pool), HD_OK);
        make_cells(x);
        if (count > 1 || once_in(m, 2)) {
            x->strict = true;
            hd_runtime_listen(x->rt, on_notice, x);
        }
    }
}

static void close_sides(model *m) {
    for (int i = 0; i < m->side_count; i++) {
        m->refused += refusals(&m->sides[i]);
        hd_pool_close(m->sides[i].pool);
        hd_close(m->sides[i].rt);
    }
    hd_memory_close(m->memory);
    lab_env_close(m->world);
}

static void clear_graph(model *m) {
    for (int s = 0; s < m->side_count; s++) {
        side *x = &m->sides[s];
        int first = (int)below(m, NODES);
        for (int i = 0; i < NODES; i++) {
            int k = (first + i) % NODES;
            if (x->nodes[k].there) cancel_node(x, k);
        }
        hd_scheduler_stats stats;
        hd_runtime_scheduler_stats(x->rt, &stats);
        if (stats.nodes) fail_here(x, 0, "is still counted");
    }
}

static void forget_nodes(model *m) {
    static const flavour some[] = { WHOLE, WHOLE, WHOLE, WHOLE, KEY, INSIDE };
    for (int s = 0; s < m->side_count; s++)
        for (int i = 0; i < NODES; i++)
            m->sides[s].nodes[i] = (twin){ .child = -1, .maker = -1, .flavour = some[below(m, 6)] };
}

static void one_graph(model *m) {
    forget_nodes(m);
    m->cyclic = once_in(m, 3);
    m->gates = once_in(m, 4);
    m->busy = once_in(m, 4);
    m->limit = once_in(m, 8) ? 30 : 6;
    for (int s = 0; s < m->side_count; s++)
        for (uint64_t n = 3 + below(m, 2 * NODES); n; n--) make_or_remove(&m->sides[s]);
    for (uint64_t n = 2 + below(m, m->busy ? 60 : 20); n; n--) {
        side *x = &m->sides[below(m, (uint64_t)m->side_count)];
        step(x);
        if (once_in(m, 2)) pump_side(x);
        if (once_in(m, 4)) rest(m);
    }
    rest(m);
    clear_graph(m);
}

static uint64_t number(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Runtimes are used for several graphs: what one leaves behind the next one would stumble over. */
static void many_graphs(int sides, uint64_t count) {
    static model m;
    uint64_t seed = lab_seed(), graphs = number("HD_GRAPHS", count);
    uint64_t only = number("HD_GRAPH", UINT64_MAX), runs = 0, refused = 0, unloaded = 0;
    for (uint64_t i = 0; i < graphs; i += GRAPHS_PER_RUNTIME) {
        if (only != UINT64_MAX && only / GRAPHS_PER_RUNTIME != i / GRAPHS_PER_RUNTIME) continue;
        m = (model){ .random = lab_random_of(seed + i * 2 + (uint64_t)sides) };
        open_sides(&m, sides);
        for (m.graph = i; m.graph < i + GRAPHS_PER_RUNTIME && m.graph < graphs; m.graph++) {
            m.told = m.graph == only;
            one_graph(&m);
        }
        close_sides(&m);
        runs += m.runs;
        refused += m.refused;
        unloaded += m.unloaded;
    }
    printf("%llu graphs, %llu runs, %llu commits refused, %llu spaces unloaded\n",
           (unsigned long long)graphs, (unsigned long long)runs, (unsigned long long)refused,
           (unsigned long long)unloaded);
}

/* I1, I2, I3 on random graphs. */
static void a_settled_graph_is_what_recomputing_gives(void **state) { many_graphs(1, 100000); }

/* I1 for two runtimes that know nothing of each other but the store. */
static void two_runtimes_with_different_graphs_are_both_right(void **state) {
    many_graphs(2, 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_settled_graph_is_what_recomputing_gives),
        cmocka_unit_test(two_runtimes_with_different_graphs_are_both_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

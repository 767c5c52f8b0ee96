/* test_one_state.c -- every body, handler, sink and pull sees one state (I4, 7.1), in random worlds.
 *
 * Small acyclic graphs over a few source cells: computations that read all their inputs, choose among them,
 * or follow from one to the next, so that a run discovers several writers; computations that fail for some
 * values, after they have read more than before; runs that are suspended, and end later in any order, with a
 * result or a failure; materialisers; effects that write what others read; handlers; sinks; pulls. Nodes come and go,
 * also while they are suspended. The program writes several sources at once, and between the slices of a pass. In some
 * worlds documents load late: there a run of some nodes reads, after its inputs, a document of its own for each first
 * input. Some of these loads fail, and are asked for again.
 *
 * The model is the definition: what a computation's value is, given the sources, computed from scratch. Cells
 * that effects and handlers write are sources here. A node whose run failed keeps the value that it had, as
 * long as what it read is as it was. Whatever is read anywhere must be what that gives now: so nothing sees
 * a mixture of values from before and after a change. At rest every live node has its value, and each effect
 * has seen the last state; and no effect is called again and again for the same state.
 *
 * HD_GRAPHS is the number of worlds; HD_SEED repeats a run; HD_GRAPH runs the world of that number alone, and
 * tells what happens in it. */
#include "lab.h"
#include "store/runtime.h"

#include <heddle/event.h>
#include <heddle/scheduler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SOURCES = 3, NODES = 9, CELLS = SOURCES + NODES, INPUTS = 4, READS = 8, VALUES = 6 };
enum { SUSPENDED = 32, ROUNDS_MAX = 4000, SAME_MAX = 5 };

typedef enum kind { ADDS, CHOOSES, FOLLOWS, FAILS, KINDS } kind;

typedef struct twin {
    struct model *m;
    bool there, effect, materialiser, writes, sink, suspends, reads_late, careless, loads;
    kind kind;
    int inputs[INPUTS], count, add;
    hd_node node;
    unsigned generation; /* counts registrations */

    /* What its last run read, as far as reads gave a value; and whether that run failed for no reason that
     * the definition knows. */
    int read[READS], saw[READS], reads;
    bool failed, complete;
    bool
        busy; /* it failed for now: it is tried again, after a while, and has its last value until then */
    int same; /* complete runs in a row that saw the same */
} twin;

typedef struct suspended {
    hd_run *run;
    int node, value;
    unsigned generation;
} suspended;

typedef struct model {
    lab_env *world;
    hd_memory *memory;
    hd_runtime *rt, *beside; /* beside: does nothing, but commits are sent */
    hd_pool *pool;
    lab_random random;
    hd_cell cells[CELLS + 1], stream; /* the last cell is the handler's */
    twin nodes[NODES];
    suspended suspended[SUSPENDED];
    int suspended_count;
    int inputs[INPUTS], input_count; /* the handler's */
    int values[CELLS + 1];           /* computed from scratch */
    uint64_t world_number, runs, handled, suspensions, early, loads;
    bool told, late;
    hd_cell asked; /* the last document that a run had to wait for; 0: none */
} model;

static uint64_t below(model *m, uint64_t n) { return lab_random_below(&m->random, n); }
static bool once_in(model *m, uint64_t n) { return lab_random_once_in(&m->random, n); }

static void fail_here(model *m, const char *where, int i, const char *what, int got, int wanted) {
    fail_msg("world %llu of seed %llu: %s %d %s (%d, not %d)", (unsigned long long)m->world_number,
             (unsigned long long)lab_seed(), where, i, what, got, wanted);
}

/* ---- the definition */

static int stored(model *m, int c) {
    hd_pool *pool = m->pool;
    int v = (int)hd_value_as_int(hd_read(m->rt, pool, m->cells[c]), 0);
    hd_pool_clear(pool);
    return v;
}

/* A function that gives the value of an input, or that it has none now. */
typedef bool (*input_fn)(void *ctx, int c, int *value);

typedef enum outcome {
    GIVES,
    BREAKS,
    MEETS
} outcome; /* a value; a failure; a read without value */

/* The body of every node. */
static outcome work_out(const twin *t, input_fn get, void *ctx, int *out) {
    int v = 0, first = 0, sum = t->add;
    if (!get(ctx, t->inputs[0], &first)) return MEETS;
    sum += first;
    for (int k = 1, at = first; k < t->count; k++) {
        int c = t->inputs[k];
        if (t->kind == CHOOSES && k != 1 + first % (t->count - 1)) continue;
        if (t->kind == FOLLOWS) c = t->inputs[at % t->count];
        if (t->kind == FAILS && first % 3) break;
        if (!get(ctx, c, &v)) return MEETS;
        sum += v;
        at = v;
        if (t->kind == FAILS && v % 2) return BREAKS;
    }
    *out = sum % VALUES;
    return GIVES;
}

static bool get_computed(void *ctx, int c, int *value) {
    *value = ((model *)ctx)->values[c];
    return true;
}

/* Its last run was ended with a failure, and what that read is as it was. */
static bool is_stuck(const model *m, const twin *t) {
    if (t->busy) return true;
    if (!t->failed) return false;
    for (int k = 0; k < t->reads; k++)
        if (m->values[t->read[k]] != t->saw[k]) return false;
    return true;
}

static void compute_all(model *m) {
    for (int c = 0; c <= CELLS; c++) {
        const twin *t = c >= SOURCES && c < CELLS ? &m->nodes[c - SOURCES] : NULL;
        m->values[c] = stored(m, c);
        if (!t || !t->there || t->effect || is_stuck(m, t)) continue;
        int v;
        if (work_out(t, get_computed, m, &v) == GIVES) m->values[c] = v;
    }
}

/* ---- runs */

typedef struct reading {
    model *m;
    hd_tx *tx;
    twin *t; /* NULL: the handler's */
    const char *where;
    int number;
} reading;

static bool get_read(void *ctx, int c, int *value) {
    reading *r = ctx;
    hd_value v = hd_tx_get(r->tx, r->m->cells[c]);
    *value = (int)hd_value_as_int(v, 0);
    if (hd_value_status(v)) {
        r->m->early++;
        return false;
    }
    if (*value != r->m->values[c])
        fail_here(r->m, r->where, r->number, "sees a mixture", c, *value);
    if (r->t && r->t->reads < READS) {
        r->t->read[r->t->reads] = c;
        r->t->saw[r->t->reads++] = *value;
    }
    return true;
}

static void note_complete(model *m, twin *t, const twin *before) {
    bool same = before->complete && before->reads == t->reads;
    for (int k = 0; k < t->reads && same; k++)
        same = t->read[k] == before->read[k] && t->saw[k] == before->saw[k];
    t->complete = true;
    t->same = same ? t->same + 1 : 0;
    if (t->effect && t->same > SAME_MAX)
        fail_here(m, "effect", (int)(t - m->nodes), "runs again and again", t->same, 0);
}

static hd_status suspend(model *m, twin *t, hd_tx *tx, int value) {
    suspended *s = &m->suspended[m->suspended_count];
    if (hd_tx_suspend(tx, &s->run)) fail_here(m, "node", (int)(t - m->nodes), "cannot wait", 0, 0);
    s->node = (int)(t - m->nodes);
    s->value = value;
    s->generation = t->generation;
    m->suspended_count++;
    m->suspensions++;
    return HD_PENDING;
}

/* A document that no other node reads; it does not exist. */
static hd_status read_own(model *m, const twin *t, hd_tx *tx) {
    char name[64];
    if (!t->loads) return HD_OK;
    snprintf(name, sizeof name, "main/own-%d-%u-%d", (int)(t - m->nodes), t->generation, t->saw[0]);
    hd_cell own = hd_cell_at(m->rt, name);
    hd_status status = hd_value_status(hd_tx_get(tx, own));
    if (status) m->loads++, m->asked = own;
    return status;
}

static hd_status body(hd_tx *tx, void *ctx) {
    twin *t = ctx, before = *t;
    model *m = t->m;
    int i = (int)(t - m->nodes), value = 0;
    reading r = { m, tx, t, "node", i };
    m->runs++;
    compute_all(m);
    t->reads = 0;
    t->failed = t->complete = t->busy = false;
    if (once_in(m, 30)) lab_env_advance_ms(m->world, 20); /* the slice is over */
    outcome o = work_out(t, get_read, &r, &value);
    if (m->told) fprintf(stderr, "node %d: outcome %d, %d\n", i, (int)o, value);
    if (o == MEETS) return t->careless ? HD_OK : HD_PENDING;
    if (o == GIVES && read_own(m, t, tx)) return t->careless ? HD_OK : HD_PENDING;
    if (o == BREAKS) return HD_FAILED;
    if (t->suspends && m->suspended_count < SUSPENDED) return suspend(m, t, tx, value);
    note_complete(m, t, &before);
    return !t->effect || t->writes ? hd_tx_set_int(tx, m->cells[SOURCES + i], value) : HD_OK;
}

/* What a suspended run still reads is what the definition says that it reads; the end tells whether that
 * was in time. */
static hd_status read_late(model *m, twin *t, hd_tx *tx) {
    return t->reads_late ? hd_value_status(hd_tx_get(tx, m->cells[t->inputs[0]])) : HD_OK;
}

static void resume_one(model *m, bool well) {
    int k = (int)below(m, (uint64_t)m->suspended_count);
    suspended s = m->suspended[k];
    m->suspended[k] = m->suspended[--m->suspended_count];
    twin *t = &m->nodes[s.node];
    bool own = t->there && t->generation == s.generation;
    hd_status status = HD_OK;
    if (!well && once_in(m, 6)) status = HD_FAILED;
    if (!well && once_in(m, 8)) status = HD_BUSY;
    if (!well && once_in(m, 8)) status = HD_STALE;
    if (m->told) fprintf(stderr, "resume %d: %d, status %d\n", s.node, s.value, (int)status);
    if (!status && own) status = read_late(m, t, hd_run_tx(s.run));
    if (!status && (!t->effect || t->writes))
        status = hd_tx_set_int(hd_run_tx(s.run), m->cells[SOURCES + s.node], s.value);
    if (own) t->failed = status == HD_FAILED;
    if (own) t->complete = !status;
    if (own) t->busy = status == HD_BUSY;
    hd_run_resume(s.run, status);
}

static void look(hd_value v, void *ctx) {
    twin *t = ctx;
    model *m = t->m;
    int value = (int)hd_value_as_int(v, 0), c = t->inputs[0];
    compute_all(m);
    m->runs++;
    if (value != m->values[c]) fail_here(m, "sink", c, "is told of a mixture", value, m->values[c]);
}

static void look_once(hd_value v, void *ctx) {
    model *m = ctx;
    (void)v;
    m->runs++;
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    model *m = ctx;
    int sum = 0;
    (void)event;
    reading r = { m, tx, NULL, "handler", 0 };
    compute_all(m);
    for (int k = 0; k < m->input_count; k++) {
        int v;
        if (!get_read(&r, m->inputs[k], &v)) return HD_PENDING;
        sum += v;
    }
    m->handled++;
    return hd_tx_set_int(tx, m->cells[CELLS], sum % VALUES);
}

/* ---- steps */

static void design(model *m, int i) {
    twin *t = &m->nodes[i];
    *t = (twin){ .m = m, .generation = t->generation + 1 };
    t->effect = once_in(m, 3);
    t->writes = t->effect && once_in(m, 2);
    t->sink = t->effect && !t->writes && once_in(m, 2);
    t->kind = (kind)below(m, KINDS);
    if (t->effect && t->kind == FAILS) t->kind = FOLLOWS;
    t->materialiser = !t->effect && once_in(m, 4);
    t->suspends = once_in(m, 3);
    t->reads_late = once_in(m, 2);
    t->careless = once_in(m, 2);
    t->loads = m->late && once_in(m, 2);
    t->count = 2 + (int)below(m, INPUTS - 1);
    t->add = (int)below(m, VALUES);
    for (int k = 0; k < t->count; k++) {
        uint64_t top = (uint64_t)(SOURCES + i);
        t->inputs[k] = once_in(m, 12) ? CELLS : (int)below(m, top);
        if (i > 2 && once_in(m, 2)) t->inputs[k] = SOURCES + (int)below(m, (uint64_t)i);
    }
}

static void make(model *m, int i) {
    design(m, i);
    twin *t = &m->nodes[i];
    hd_cell reads[INPUTS];
    for (int k = 0; k < t->count; k++) reads[k] = m->cells[t->inputs[k]];
    t->there = true;
    if (m->told)
        fprintf(stderr, "make %d: kind %d of %d %d %d %d (%d)%s%s%s%s%s%s\n", i, (int)t->kind,
                t->inputs[0], t->inputs[1], t->inputs[2], t->inputs[3], t->count,
                t->effect ? ", an effect" : "", t->writes ? ", writes" : "",
                t->sink ? ", a sink" : "", t->suspends ? ", suspends" : "",
                t->materialiser ? ", a materialiser" : "", t->loads ? ", loads" : "");
    if (t->sink) {
        t->node = hd_sink(m->rt, reads[0], look, t);
        return;
    }
    hd_node_spec spec = { .fn = body, .ctx = t, .effect = t->effect, .reads = reads };
    spec.read_count = once_in(m, 2) ? (size_t)t->count : 0;
    if (t->materialiser) spec.envelopes = &m->cells[SOURCES + i], spec.envelope_count = 1;
    else if (!t->effect) spec.output = m->cells[SOURCES + i];
    if (hd_node_register(m->rt, &spec, &t->node)) fail_here(m, "node", i, "cannot be made", 0, 0);
}

static void make_or_remove(model *m) {
    int i = (int)below(m, NODES);
    twin *t = &m->nodes[i];
    if (!t->there) {
        make(m, i);
        return;
    }
    if (m->told) fprintf(stderr, "cancel %d\n", i);
    t->there = false;
    hd_node_unregister(m->rt, t->node);
}

static void write_sources(model *m) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(m->rt, &tx), HD_OK);
    for (uint64_t n = 1 + below(m, SOURCES); n; n--) {
        int c = (int)below(m, SOURCES), v = (int)below(m, VALUES);
        if (m->told) fprintf(stderr, "source %d = %d\n", c, v);
        hd_tx_set_int(tx, m->cells[c], v);
    }
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static void choose_inputs(model *m) {
    hd_cell inputs[INPUTS];
    m->input_count = 1 + (int)below(m, INPUTS);
    for (int k = 0; k < m->input_count; k++) {
        m->inputs[k] = (int)below(m, CELLS);
        inputs[k] = m->cells[m->inputs[k]];
    }
    hd_handler_spec spec = { .stream = m->stream,
                             .fn = handle,
                             .ctx = m,
                             .inputs = inputs,
                             .input_count = (size_t)m->input_count };
    assert_int_equal(hd_handler_register(m->rt, &spec, NULL), HD_OK);
}

static void fail_load(model *m) {
    place_id doc = m->asked.id;
    m->asked.id = 0;
    if (!doc || !(place_at(&m->rt->r.places, doc)->doc.flags & DOC_LOADING)) return;
    if (m->told) fprintf(stderr, "a load fails\n");
    assert_int_equal(replica_arrived(&m->rt->r, doc, NULL, HD_CORRUPT), HD_OK);
}

static void step(model *m) {
    switch (below(m, m->late ? 13 : 12)) {
    case 0: make_or_remove(m); return;
    case 1: hd_event_send(m->rt, m->stream, hd_int(NULL, 1), NULL); return;
    case 2: hd_pull(m->rt, m->cells[below(m, CELLS)], look_once, m); return;
    case 3:
    case 4:
    case 5:
        if (m->suspended_count) resume_one(m, false);
        return;
    case 6: lab_env_advance_ms(m->world, below(m, 30)); return;
    case 7:
        if (m->beside) hd_runtime_pump(m->beside);
        return;
    case 12: fail_load(m); return;
    default: write_sources(m); return;
    }
}

/* ---- rest */

static void check_rest(model *m) {
    compute_all(m);
    for (int i = 0; i < NODES; i++) {
        const twin *t = &m->nodes[i];
        hd_node_info info;
        if (!t->there || t->sink || hd_node_inspect(m->rt, t->node, &info) || !info.live) continue;
        int c = SOURCES + i, now = stored(m, c);
        if (info.status != HD_NODE_CLEAN)
            fail_here(m, "node", i, "is not clean", (int)info.why_not, 1);
        if (!t->effect && now != m->values[c])
            fail_here(m, "node", i, "has the wrong value", now, m->values[c]);
        for (int k = 0; k < t->reads && t->effect; k++)
            if (t->saw[k] != m->values[t->read[k]])
                fail_here(m, "effect", i, "has not seen the last state", t->read[k], t->saw[k]);
    }
}

static void rest(model *m) {
    for (int round = 0; round < ROUNDS_MAX; round++) {
        hd_status status = hd_runtime_pump(m->rt);
        if (m->beside) hd_runtime_pump(m->beside);
        if (status == HD_PENDING) continue;
        if (m->suspended_count) resume_one(m, true);
        else if (hd_runtime_is_idle(m->rt)) {
            check_rest(m);
            return;
        } else lab_env_advance_ms(m->world, 10);
    }
    fail_here(m, "world", 0, "does not come to rest", m->suspended_count, 0);
}

/* ---- one world, many worlds */

static void ignore_failure(const hd_failure *failure, void *ctx) { (void)ctx, (void)failure; }

/* A cell has to be here before the program can write it. */
static void load_cells(model *m) {
    for (int c = 0; c <= CELLS; c++)
        while (hd_value_status(hd_read(m->rt, m->pool, m->cells[c])) == HD_PENDING)
            hd_runtime_pump(m->rt);
}

static void open_world(model *m, bool shared) {
    m->world = lab_env_open();
    hd_memory_open(lab_env_of(m->world), &m->memory);
    if (m->late) hd_memory_load_late(m->memory);
    hd_options options = { .env = lab_env_of(m->world), .memory = m->memory };
    assert_int_equal(hd_open(NULL, &options, &m->rt, NULL), HD_OK);
    if (shared) assert_int_equal(hd_open(NULL, &options, &m->beside, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(m->rt), &m->pool), HD_OK);
    hd_runtime_on_error(m->rt, ignore_failure, NULL);
    for (int c = 0; c <= CELLS; c++) {
        char name[32];
        snprintf(name, sizeof name, "main/c%d", c);
        m->cells[c] = hd_cell_at(m->rt, name);
    }
    m->stream = hd_cell_at(m->rt, "main/stream");
    load_cells(m);
}

static void close_world(model *m) {
    hd_close(m->rt); /* nodes still run */
    hd_pool_close(m->pool);
    if (m->beside) hd_close(m->beside);
    hd_memory_close(m->memory);
    lab_env_close(m->world);
}

static void one_world(model *m, bool shared) {
    open_world(m, shared);
    choose_inputs(m);
    for (uint64_t n = 4 + below(m, 2 * NODES); n; n--) make_or_remove(m);
    for (uint64_t n = 5 + below(m, 60); n; n--) {
        step(m);
        if (once_in(m, 2)) hd_runtime_pump(m->rt);
        if (once_in(m, 12)) rest(m);
    }
    if (once_in(m, 3)) { /* whatever is suspended goes with the runtime */
        close_world(m);
        return;
    }
    rest(m);
    close_world(m);
}

static uint64_t number(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void many_worlds(bool shared, bool late, uint64_t count) {
    static model m;
    uint64_t seed = lab_seed(), worlds = number("HD_GRAPHS", count),
             only = number("HD_GRAPH", UINT64_MAX);
    uint64_t runs = 0, handled = 0, suspensions = 0, early = 0, loads = 0;
    for (uint64_t i = 0; i < worlds; i++) {
        if (only != UINT64_MAX && only != i) continue;
        m = (model){ .random = lab_random_of(seed + 2 * i + shared), .world_number = i };
        m.told = only == i;
        m.late = late;
        one_world(&m, shared);
        runs += m.runs;
        handled += m.handled;
        suspensions += m.suspensions;
        early += m.early;
        loads += m.loads;
    }
    printf("%llu worlds, %llu runs, %llu suspended, %llu reads too early, %llu events handled\n",
           (unsigned long long)worlds, (unsigned long long)runs, (unsigned long long)suspensions,
           (unsigned long long)early, (unsigned long long)handled);
    if (late) printf("%llu runs met a document that was not here\n", (unsigned long long)loads);
}

static void nothing_sees_a_mixture(void **state) { many_worlds(false, false, 4000); }
static void nothing_sees_a_mixture_where_commits_are_sent(void **state) {
    many_worlds(true, false, 4000);
}
static void nothing_sees_a_mixture_where_documents_load_late(void **state) {
    many_worlds(false, true, 4000);
}
static void nothing_sees_a_mixture_where_both_take_time(void **state) {
    many_worlds(true, true, 4000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_sees_a_mixture),
        cmocka_unit_test(nothing_sees_a_mixture_where_commits_are_sent),
        cmocka_unit_test(nothing_sees_a_mixture_where_documents_load_late),
        cmocka_unit_test(nothing_sees_a_mixture_where_both_take_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

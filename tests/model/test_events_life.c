/* test_events_life.c -- handlers see one state, and every event counts once, over the lives of a program.
 *
 * Random worlds with all that makes this hard at the same time: computations that choose what they read, fail after
 * they have read more, or are suspended and answered later in any order; debounces and throttles that are set and
 * cleared; events that are posted by two programs, with and without ids of their own; commits that are refused or
 * arrive late; programs that are closed and start again in the middle of all that. One of the programs computes and
 * handles.
 *
 *   I4   a handler reads every source and every output. Each output is what its function makes of its inputs as the
 *        handler sees them, unless the function fails on them
 *   I11  an event whose post was stored is handled exactly once, one whose post was refused never
 *   I1   at rest every live output is what its function makes of its inputs, and its node is clean
 *   I7   a program that is closed at rest and started again runs nothing that a sink looks at
 *
 * HD_WORLDS is the number of worlds; HD_SEED repeats a run. From the public headers. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SOURCES = 3, NODES = 6, CELLS = SOURCES + NODES, INPUTS = 3, SUSPENDED = 64, EVENTS = 200 };
enum { WORLDS = 150, FILE_WORLDS = 3, STEPS = 60, TURNS_MAX = 4000, TURNS_MIN = 60 };

typedef enum kind { ADDS, CHOOSES, FAILS, KINDS } kind;

typedef struct function {
    kind kind;
    int in[INPUTS]; /* cells */
    bool suspends, shown;
} function;

typedef struct suspended {
    hd_run *run;
    int node;
    int64_t value;
    hd_status status;
} suspended;

typedef struct program {
    const char *name;
    hd_runtime *rt; /* NULL: it does not run */
    int lives;
} program;

typedef struct posted {
    bool stored, refused;
} posted;

static hd_lab *lab;
static hd_lab_random r;
static bool in_file, closing;
static uint64_t world;
static program main_program, other;
static function functions[NODES];
static int numbers[NODES]; /* 0, 1, ...: the ctx of the bodies */
static int runs[NODES];
static suspended waiting[SUSPENDED];
static int waiting_count;
static posted events[EVENTS];
static int event_count;

static uint32_t below(uint32_t n) { return (uint32_t)hd_lab_random_below(&r, n); }
static bool once_in(uint32_t n) { return hd_lab_random_once_in(&r, n); }

/* Failures of computations are part of the worlds; everything else that the lab tells ends the test. */
static void on_lab_failure(const char *message, void *ctx) {
    if (!strstr(message, "did not look at these failures"))
        hd_lab_fail("world %llu: %s", (unsigned long long)world, message);
}

/* ---- functions */

static hd_cell cell(hd_runtime *rt, int i) {
    char name[16];
    snprintf(name, sizeof name, i < SOURCES ? "main/s%d" : "main/c%d",
             i < SOURCES ? i : i - SOURCES);
    return hd_cell_at(rt, name);
}

/* Where the inputs of a function come from. */
typedef hd_status (*input_fn)(void *ctx, int cell, int64_t *out);

static hd_status fail_or_add(const function *f, input_fn get, void *ctx, int64_t *v) {
    int64_t a, b, c;
    hd_status status = get(ctx, f->in[0], &a);
    if (status) return status;
    *v = (a * 2 + 1) % 31;
    if (a % 3 != 2) return HD_OK;
    status = get(ctx, f->in[1], &b);
    if (!status) *v = (a + b) % 31;
    if (status || b % 2) return status;
    status = get(ctx, f->in[2], &c);
    return status ? status : c % 2 ? HD_FAILED : HD_OK;
}

/* HD_FAILED: the function fails on these inputs. */
static hd_status evaluate(const function *f, input_fn get, void *ctx, int64_t *v) {
    int64_t a, b;
    if (f->kind == FAILS) return fail_or_add(f, get, ctx, v);
    hd_status status = get(ctx, f->in[0], &a);
    if (!status) status = get(ctx, f->in[f->kind == ADDS ? 1 : 1 + (a & 1)], &b);
    if (!status) *v = f->kind == ADDS ? (a * 3 + b * 5) % 31 : (a + b * 2) % 31;
    return status;
}

static hd_status read_cell(void *ctx, int i, int64_t *out) {
    hd_tx *tx = ctx;
    hd_value v = hd_tx_get(tx, cell(hd_tx_runtime(tx), i));
    *out = hd_value_as_int(v, 0);
    return hd_value_status(v);
}

static hd_status run(hd_tx *tx, void *ctx) {
    int node = *(const int *)ctx;
    int64_t v = 0;
    hd_run *run_;
    hd_status status = evaluate(&functions[node], read_cell, tx, &v);
    if (status && status != HD_FAILED) return status;
    runs[node]++;
    if (functions[node].suspends && waiting_count < SUSPENDED && !closing) {
        hd_status suspends = hd_tx_suspend(tx, &run_);
        if (suspends) return suspends;
        waiting[waiting_count++] = (suspended){ run_, node, v, status };
        return HD_PENDING;
    }
    return status ? status
                  : hd_tx_set(tx, cell(hd_tx_runtime(tx), SOURCES + node), hd_int(NULL, v));
}

static void answer(int i) {
    suspended one = waiting[i];
    waiting[i] = waiting[--waiting_count];
    hd_status status = one.status;
    if (!status)
        status = hd_tx_set(hd_run_tx(one.run), cell(main_program.rt, SOURCES + one.node),
                           hd_int(NULL, one.value));
    hd_run_resume(one.run, status);
}

/* ---- what must hold */

typedef struct view {
    int64_t values[CELLS];
    bool there[CELLS];
} view;

static hd_status see(void *ctx, int i, int64_t *out) {
    *out = ((const view *)ctx)->values[i];
    return HD_OK;
}

static void check_output(view *v, int node, const char *when) {
    int64_t wanted = 0;
    if (evaluate(&functions[node], see, v, &wanted)) return; /* it has what it had */
    if (!v->there[SOURCES + node] || v->values[SOURCES + node] != wanted)
        hd_lab_fail("world %llu: %s c%d is %lld, and should be %lld", (unsigned long long)world,
                    when, node, (long long)v->values[SOURCES + node], (long long)wanted);
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    view v;
    for (int i = 0; i < CELLS; i++) {
        hd_value value = hd_tx_get(tx, cell(rt, i));
        if (hd_value_status(value)) return hd_value_status(value);
        v.values[i] = hd_value_as_int(value, 0);
        v.there[i] = hd_value_exists(value);
    }
    for (int i = 0; i < NODES; i++) check_output(&v, i, "to a handler");
    return hd_tx_append(tx, hd_cell_at(rt, "main/log"), event->payload);
}

static void check_events(hd_runtime *rt, hd_pool *pool) {
    int handled[EVENTS] = { 0 };
    hd_value log = hd_read(rt, pool, hd_cell_at(rt, "main/log"));
    for (size_t i = 0; i < hd_value_count(log); i++)
        handled[hd_value_as_int(hd_value_index(log, i), 0)]++;
    for (int i = 0; i < event_count; i++) {
        bool missing = events[i].stored && !handled[i], extra = events[i].refused && handled[i];
        if (missing || extra || handled[i] > 1)
            hd_lab_fail("world %llu: event %d was handled %d times", (unsigned long long)world, i,
                        handled[i]);
    }
}

static void check_rest(void) {
    hd_runtime *rt = main_program.rt;
    hd_pool *pool;
    view v;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < CELLS; i++) {
        hd_value value = hd_read(rt, pool, cell(rt, i));
        v.values[i] = hd_value_as_int(value, 0);
        v.there[i] = hd_value_exists(value);
    }
    for (int i = 0; i < NODES; i++) {
        char name[16];
        hd_node_info info;
        snprintf(name, sizeof name, "c%d", i);
        assert_int_equal(hd_node_inspect(rt, hd_node_find(rt, name), &info), HD_OK);
        if (!info.live) continue;
        assert_int_equal(info.status, HD_NODE_CLEAN);
        check_output(&v, i, "at rest");
    }
    check_events(rt, pool);
    hd_pool_close(pool);
}

/* ---- programs */

static void ignore_value(hd_value v, void *ctx) {}

static void open_program(program *p) {
    char name[16];
    snprintf(name, sizeof name, "%s%d", p->name, p->lives++);
    p->rt = hd_lab_runtime(lab, name);
}

static void start_computing(void) {
    hd_cell inputs[CELLS];
    open_program(&main_program);
    hd_runtime *rt = main_program.rt;
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        numbers[i] = i;
        hd_node_spec spec = { .name = name,
                              .fn = run,
                              .ctx = &numbers[i],
                              .output = cell(rt, SOURCES + i),
                              .version = "1" };
        assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
        if (functions[i].shown) hd_sink(rt, cell(rt, SOURCES + i), ignore_value, NULL);
    }
    for (int i = 0; i < CELLS; i++) inputs[i] = cell(rt, i);
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/stream"),
                             .fn = handle,
                             .inputs = inputs,
                             .input_count = CELLS };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}

static void stop(program *p) {
    if (!p->rt) return;
    if (!in_file) hd_lab_deliver(p->rt);
    (void)hd_lab_failures(p->rt);
    closing = true;
    hd_lab_runtime_close(p->rt);
    closing = false;
    if (p == &main_program) waiting_count = 0;
    p->rt = NULL;
}

static void start(program *p) {
    if (p == &main_program) start_computing();
    else open_program(p);
}

/* ---- steps */

static void write_sources(hd_runtime *rt) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    for (uint32_t i = 1 + below(2); i; i--)
        hd_tx_set(tx, cell(rt, (int)below(SOURCES)), hd_int(NULL, (int64_t)below(8)));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static void on_posted(const char *id, hd_status status, void *ctx) {
    posted *p = ctx;
    p->stored = !status;
    p->refused = status && status != HD_NO_VERDICT;
}

static void post(hd_runtime *rt) {
    char own[16], id[HD_EVENT_ID_SIZE];
    if (event_count == EVENTS) return;
    posted *p = &events[event_count];
    snprintf(own, sizeof own, "e%d", event_count);
    hd_send_options options = { .id = once_in(3) ? own : NULL, .done = on_posted, .ctx = p };
    assert_int_equal(
        hd_event_post(rt, hd_cell_at(rt, "main/stream"), hd_int(NULL, event_count), &options, id),
        HD_OK);
    event_count++;
}

static void set_gate(hd_runtime *rt) {
    char name[16];
    uint32_t ms = once_in(2) ? 0 : 1 + below(200);
    snprintf(name, sizeof name, "c%d", (int)below(NODES));
    hd_node node = hd_node_find(rt, name);
    if (node.id) (once_in(2) ? hd_node_set_debounce : hd_node_set_throttle)(rt, node, ms);
}

static void disturb(hd_runtime *rt) {
    if (in_file) return;
    if (once_in(4)) hd_lab_refuse(rt, HD_STALE, 1 + below(3));
    else if (once_in(2)) hd_lab_delay(rt, 1 + below(3));
    else hd_lab_deliver(rt);
}

static void step(void) {
    program *p = once_in(2) ? &main_program : &other;
    if (!p->rt) {
        if (once_in(3)) start(p);
        return;
    }
    switch (below(13)) {
    case 0:
    case 1:
    case 2: write_sources(p->rt); break;
    case 3:
    case 4: post(p->rt); break;
    case 5:
    case 6:
    case 7:
        if (waiting_count) answer((int)below((uint32_t)waiting_count));
        break;
    case 8: set_gate(p->rt); break;
    case 9: disturb(p->rt); break;
    case 10:
        if (once_in(6)) stop(p);
        break;
    case 11: hd_lab_advance_ms(lab, below(100)); break;
    default: break;
    }
    if (main_program.rt && !once_in(3)) hd_lab_pump(main_program.rt);
    if (other.rt && !once_in(3)) hd_lab_pump(other.rt);
}

static bool is_busy(const program *p) {
    hd_event_stats stats;
    if (!p->rt) return false;
    (void)hd_lab_failures(p->rt);
    hd_runtime_event_stats(p->rt, &stats);
    return waiting_count || !hd_runtime_is_idle(p->rt) || stats.queued || stats.in_flight;
}

static void let_go(const program *p) {
    if (!p->rt || in_file) return;
    hd_lab_deliver(p->rt);
    hd_lab_refuse(p->rt, HD_STALE, 0);
}

/* Windows of nodes that have run do not hold idle, and are shorter than the turns that are made at least. */
static void come_to_rest(void) {
    bool busy = true;
    let_go(&main_program);
    let_go(&other);
    for (int turn = 0; busy || turn < TURNS_MIN; turn++) {
        if (turn == TURNS_MAX) hd_lab_fail("world %llu does not rest", (unsigned long long)world);
        while (waiting_count) answer(waiting_count - 1);
        hd_lab_settle(lab);
        hd_lab_advance_ms(lab, 50);
        busy = is_busy(&main_program) || is_busy(&other);
    }
}

/* ---- worlds */

static void restart_at_rest(void) {
    int before[NODES];
    stop(&other);
    come_to_rest();
    hd_status status =
        hd_runtime_sync(main_program.rt); /* tells of writes that the store has refused */
    assert_true(status == HD_OK || status == HD_STALE);
    stop(&main_program);
    memcpy(before, runs, sizeof before);
    start(&main_program);
    come_to_rest();
    for (int i = 0; i < NODES; i++)
        if (functions[i].shown && runs[i] != before[i])
            hd_lab_fail("world %llu: c%d runs, and nothing has changed", (unsigned long long)world,
                        i);
    check_rest();
}

static void open_world(void) {
    lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file, .fail = on_lab_failure });
    main_program = (program){ .name = "a" };
    other = (program){ .name = "b" };
    event_count = waiting_count = 0;
    memset(events, 0, sizeof events);
    for (int i = 0; i < NODES; i++) {
        functions[i] =
            (function){ .kind = (kind)below(KINDS), .suspends = once_in(3), .shown = once_in(2) };
        for (int k = 0; k < INPUTS; k++) functions[i].in[k] = (int)below((uint32_t)(SOURCES + i));
    }
    start(&main_program);
}

static void play(bool file, uint64_t count) {
    uint64_t seed = hd_lab_seed();
    const char *worlds = getenv("HD_WORLDS");
    in_file = file;
    if (worlds) count = strtoull(worlds, NULL, 10) / (file ? 20 : 1);
    for (world = 0; world < count; world++) {
        r = hd_lab_random_of(seed + world);
        open_world();
        for (int part = 0; part < 3; part++) {
            for (int i = 0; i < STEPS; i++) step();
            come_to_rest();
            if (!main_program.rt) {
                start(&main_program);
                come_to_rest();
            }
            check_rest();
        }
        restart_at_rest();
        stop(&main_program);
        hd_lab_close(lab);
    }
}

static void handlers_see_one_state_over_lives(void **state) { play(false, WORLDS); }
static void handlers_see_one_state_over_lives_in_a_file(void **state) { play(true, FILE_WORLDS); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_see_one_state_over_lives),
        cmocka_unit_test(handlers_see_one_state_over_lives_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

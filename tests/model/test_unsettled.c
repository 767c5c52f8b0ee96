/* test_unsettled.c -- events beside graphs that do not settle, in random worlds.
 *
 * A world has computations that never agree (some of them looked at, some not; some begin to agree later),
 * debounced and throttled nodes, plain ones, effects that commit, and asynchronous nodes of all these kinds,
 * whose runs end after a while; a lane of events in each of a few
 * spaces, whose handlers read any of that, declared or not; a second runtime whose commits cause refusals; stores that
 * refuse, bodies that fail for now, follow-ups into other spaces. Whatever happens:
 *
 *   - every event is handled, exactly once, and in the order of sending within its space;
 *   - in bounded time, though nothing that does not settle ever does (I6);
 *   - a lane whose inputs are clean is served at once, whatever the others wait for (7.5);
 *   - settle and sync return, in bounded time.
 *
 * HD_STEPS is the number of worlds; HD_SEED repeats a run. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SPACES = 3, CYCLES = 3, PLAIN = 6, EVENTS = 60, WORLDS = 70, STEPS = 90 };
/* Of one wait: ten rounds of a cycle with two windows, each of a debounce and a throttle; and some retries. */
#define WAIT_MS     60000
#define LAB_IDLE_MS 1000000 /* hd_lab_idle: 100 windows, and some backoffs after each */

/* An asynchronous node. */
typedef struct slow {
    uint32_t ms; /* how long its runs take; 0: they are not suspended */
    bool
        at_once; /* its result is in the transaction when it is suspended; else it is written at the end */
    hd_run *run; /* suspended */
    uint64_t due_ms;
    hd_cell to;
    double result;
} slow;

typedef struct cycle_node {
    hd_cell from, other, limit, to;
    slow slow;
} cycle_node;

typedef struct plain_node {
    hd_cell from[2], to;
    uint32_t fails; /* runs to come that fail for now */
    bool effect;
    slow slow;
} plain_node;

typedef struct lane_world {
    hd_cell stream, log, count, follow, followed, seen;
    hd_cell inputs[4]; /* of its handler; 0: none */
    int next;          /* of the events sent to it */
    int fails;
} lane_world;

typedef struct sent {
    int told;
    hd_status status;
} sent;

static hd_lab *lab;
static hd_lab_random r;
static hd_runtime *a, *b;
static hd_cell sources[PLAIN], outputs[CYCLES * 2 + PLAIN];
static cycle_node cycles[CYCLES * 2];
static plain_node plains[PLAIN];
static lane_world lanes[SPACES];
static sent events[EVENTS + STEPS]; /* the free ones behind the others */
static int event_count, free_runs, free_sent;
static bool waiting; /* in settle or sync: runs are resumed by hd_runtime_post */
static uint64_t world;

static uint32_t below(uint32_t n) { return (uint32_t)hd_lab_random_below(&r, n); }
static bool once_in(uint32_t n) { return hd_lab_random_once_in(&r, n); }

static uint64_t now_ms(void) {
    const hd_env *env = hd_lab_env_of(hd_lab_world(lab));
    return env->monotonic_ns(env->ctx) / 1000000;
}

static hd_cell cell(const char *format, int i) {
    char name[64];
    snprintf(name, sizeof name, format, i);
    return hd_cell_at(a, name);
}

/* ---- bodies */

static double number(hd_tx *tx, hd_cell from) {
    hd_value v = hd_tx_get(tx, from);
    return hd_value_exists(v) ? hd_value_number(v) : 0;
}

static void resume(slow *w) {
    hd_run *run = w->run;
    w->run = NULL;
    if (!run) return;
    hd_status status = w->at_once ? HD_OK : hd_tx_set_double(hd_run_tx(run), w->to, w->result);
    hd_run_resume(run, status);
}

static void resume_posted(hd_runtime *rt, void *ctx) { resume(ctx); }

static void resume_due(bool all) {
    for (int i = 0; i < CYCLES * 2; i++)
        if (all || cycles[i].slow.due_ms <= now_ms()) resume(&cycles[i].slow);
    for (int i = 0; i < PLAIN; i++)
        if (all || plains[i].slow.due_ms <= now_ms()) resume(&plains[i].slow);
}

/* The end of a body: writes the result, now or later. */
static hd_status give(hd_tx *tx, slow *w, hd_cell to, double result) {
    w->to = to;
    w->result = result;
    hd_status status = !w->ms || w->at_once ? hd_tx_set_double(tx, to, result) : HD_OK;
    if (status || !w->ms) return status;
    status = hd_tx_suspend(tx, &w->run);
    w->due_ms = now_ms() + w->ms;
    if (!status && waiting) status = hd_runtime_post(a, resume_posted, w);
    return status ? status : HD_PENDING;
}

static slow make_slow(void) {
    return once_in(4) ? (slow){ .ms = 1 + below(once_in(4) ? 60 : 10), .at_once = once_in(2) }
                      : (slow){ 0 };
}

/* One more than the other says, up to the limit. */
static hd_status disagree(hd_tx *tx, void *ctx) {
    cycle_node *n = ctx;
    double limit = number(tx, n->limit), v = number(tx, n->other) + number(tx, n->from) * 0 + 1;
    return give(tx, &n->slow, n->to, v < limit ? v : limit);
}

static hd_status add(hd_tx *tx, void *ctx) {
    plain_node *n = ctx;
    double sum = number(tx, n->from[0]) + number(tx, n->from[1]);
    if (n->fails) {
        n->fails--;
        return HD_BUSY;
    }
    return give(tx, &n->slow, n->to, sum);
}

static hd_status look(hd_tx *tx, void *ctx) {
    number(tx, *(const hd_cell *)ctx);
    return HD_OK;
}

/* What it reads beyond its own, whether it settles or not, and whether it has declared it or not. */
static hd_status see_inputs(hd_tx *tx, const lane_world *w) {
    double sum = 0;
    for (int i = 2; i < 4; i++)
        if (w->inputs[i].id) sum += number(tx, w->inputs[i]);
    return hd_tx_set_double(tx, w->seen, sum);
}

/* Appends the number of the event to the log of its space; the count makes it conflict with `b`. */
static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    lane_world *w = ctx;
    hd_value log = hd_tx_get(tx, w->log);
    if (hd_value_status(log)) return hd_value_status(log);
    if (w->fails && event->attempt < 5) {
        w->fails--;
        return HD_TRANSIENT;
    }
    hd_status status = see_inputs(tx, w);
    if (!status) status = hd_tx_set_double(tx, w->count, number(tx, w->count) + 1);
    if (!hd_value_exists(log)) log = hd_array();
    log = hd_array_append(hd_tx_pool(tx), log, event->payload);
    if (!status) status = hd_tx_set(tx, w->log, log);
    int n = (int)hd_value_number(event->payload);
    if (!status && n % 4 == 0) /* into the lane of another space */
        status = hd_tx_send(tx, lanes[(w - lanes + 1) % SPACES].follow, event->payload, NULL);
    return status;
}

static hd_status follow(hd_tx *tx, const hd_event *event, void *ctx) {
    const lane_world *w = ctx;
    return hd_tx_append(tx, w->followed, event->payload);
}

static hd_status serve(hd_tx *tx, const hd_event *event, void *ctx) {
    free_runs++;
    return HD_OK;
}

static void told(const char *id, hd_status status, void *ctx) {
    sent *e = ctx;
    e->told++;
    e->status = status;
}

/* ---- the world */

static void register_node(const char *name, hd_action_fn fn, void *ctx, hd_cell to, bool gated,
                          bool effect) {
    hd_node_spec spec = { .name = name, .fn = fn, .ctx = ctx, .output = to, .effect = effect };
    if (effect) spec.output = (hd_cell){ 0 };
    if (gated && once_in(2)) spec.debounce_ms = 1 + below(900);
    if (gated && once_in(3)) spec.throttle_ms = 1 + below(1500);
    assert_int_equal(hd_node_register(a, &spec, NULL), HD_OK);
}

static void make_cycles(void) {
    char name[32];
    for (int i = 0; i < CYCLES * 2; i++) outputs[i] = cell("main/cycle%d", i);
    for (int i = 0; i < CYCLES * 2; i++) {
        cycles[i] = (cycle_node){ outputs[below(CYCLES * 2)], outputs[i ^ 1],
                                  cell("main/limit%d", i / 2), outputs[i], make_slow() };
        snprintf(name, sizeof name, "cycle%d", i);
        register_node(name, disagree, &cycles[i], outputs[i], once_in(8), once_in(6));
    }
    for (int i = 0; i < CYCLES; i++) {
        snprintf(name, sizeof name, "main/limit%d", i);
        hd_lab_set(a, name, once_in(3) ? "40" : "1000000000");
    }
}

static void make_plain(void) {
    char name[32];
    for (int i = 0; i < PLAIN; i++) {
        sources[i] = cell("main/source%d", i);
        outputs[CYCLES * 2 + i] = cell("main/plain%d", i);
    }
    for (int i = 0; i < PLAIN; i++) {
        plain_node *n = &plains[i];
        *n = (plain_node){ .to = outputs[CYCLES * 2 + i],
                           .effect = once_in(4),
                           .slow = make_slow() };
        n->from[0] = sources[below(PLAIN)];
        n->from[1] = i && once_in(2) ? outputs[below((uint32_t)(CYCLES * 2 + i))] : sources[i];
        snprintf(name, sizeof name, "plain%d", i);
        register_node(name, add, n, n->to, true, n->effect);
        snprintf(name, sizeof name, "look%d", i);
        if (once_in(2)) hd_effect(a, name, look, &outputs[below((uint32_t)(CYCLES * 2 + i))]);
    }
}

static void make_lane(int i) {
    lane_world *w = &lanes[i];
    *w = (lane_world){ cell("s%d/stream", i),
                       cell("s%d/log", i),
                       cell("s%d/count", i),
                       cell("s%d/follow", i),
                       cell("s%d/followed", i),
                       cell("s%d/seen", i),
                       { { 0 } },
                       0,
                       0 };
    w->inputs[0] = w->log;
    w->inputs[1] = w->count;
    size_t count = 2;
    while (count < 4 && !once_in(4)) w->inputs[count++] = outputs[below(CYCLES * 2 + PLAIN)];
    bool undeclared = count > 2 && once_in(3); /* it reads the last one all the same */
    hd_handler_spec spec = {
        .stream = w->stream,
        .fn = handle,
        .ctx = w,
        .inputs = w->inputs,
        .input_count = count - undeclared,
    };
    assert_int_equal(hd_handler_register(a, &spec, NULL), HD_OK);
    hd_handler_spec next = { .stream = w->follow, .fn = follow, .ctx = w, .reads_nothing = true };
    assert_int_equal(hd_handler_register(a, &next, NULL), HD_OK);
}

static void open_world(void) {
    lab = hd_lab_open(NULL);
    a = hd_lab_runtime(lab, "a");
    b = hd_lab_runtime(lab, "b");
    event_count = free_runs = free_sent = 0;
    memset(events, 0, sizeof events);
    make_cycles();
    make_plain();
    for (int i = 0; i < SPACES; i++) make_lane(i);
    hd_handler_spec spec = { .stream = hd_cell_at(a, "free/stream"),
                             .fn = serve,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(a, &spec, NULL), HD_OK);
}

/* ---- steps */

static void send(hd_cell to, int number_, sent *e) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(a), &pool), HD_OK);
    hd_send_options options = { .done = told, .ctx = e };
    assert_int_equal(hd_event_send(a, to, hd_int(pool, number_), &options), HD_OK);
    hd_pool_close(pool);
}

static void send_some(void) {
    lane_world *w = &lanes[below(SPACES)];
    if (event_count < EVENTS) send(w->stream, w->next++, &events[event_count++]);
}

/* Nothing holds up a lane whose handler needs nothing. */
static void send_free(void) {
    int before = free_runs;
    if (free_sent && !events[EVENTS + free_sent - 1].told) return; /* behind one that was refused */
    send(hd_cell_at(a, "free/stream"), 0, &events[EVENTS + free_sent++]);
    hd_lab_pump(a);
    if (free_runs == before)
        hd_lab_fail("world %llu: a free lane was held up", (unsigned long long)world);
}

static void interfere(void) {
    char name[32];
    snprintf(name, sizeof name, "s%d/count", (int)below(SPACES));
    hd_lab_set(b, name, once_in(2) ? "100" : "200");
    if (once_in(3)) hd_lab_pump(b);
}

static void check_time(uint64_t began, uint64_t most_ms, const char *what) {
    if (now_ms() - began > most_ms)
        hd_lab_fail("world %llu: %s took %llu ms", (unsigned long long)world, what,
                    (unsigned long long)(now_ms() - began));
}

static void settle_or_sync(void) {
    uint64_t began = now_ms();
    bool settles = once_in(2);
    waiting = true;
    resume_due(true);
    hd_status status = settles ? hd_runtime_settle(a) : hd_runtime_sync(a);
    waiting = false;
    if (status &&
        status != (settles ? HD_UNSETTLED : HD_STALE)) /* the store refuses now and then */
        hd_lab_fail("world %llu: %s", (unsigned long long)world, hd_status_name(status));
    check_time(began, WAIT_MS, settles ? "settle" : "sync");
}

static void set_source(void) {
    char name[32], json[16];
    snprintf(name, sizeof name, "main/source%d", (int)below(PLAIN));
    snprintf(json, sizeof json, "%d", (int)below(5));
    hd_lab_set(a, name, json);
}

static void step(void) {
    char name[32];
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3: send_some(); break;
    case 4: send_free(); break;
    case 5: interfere(); break;
    case 6: hd_lab_refuse(a, HD_STALE, 1 + below(4)); break;
    case 7: plains[below(PLAIN)].fails = 1 + below(6); break;
    case 8: lanes[below(SPACES)].fails = 1 + (int)below(3); break;
    case 9:
    case 10: set_source(); break;
    case 11:
        if (!once_in(10)) break;
        snprintf(name, sizeof name, "main/limit%d", (int)below(CYCLES));
        hd_lab_set(a, name, once_in(2) ? "50" : "1000000000");
        break;
    case 12:
        if (once_in(3)) settle_or_sync();
        break;
    case 13: hd_lab_pump(b); break;
    default: hd_lab_advance_ms(lab, below(once_in(4) ? 1000 : 30)); break;
    }
    resume_due(once_in(20));
    if (!once_in(3)) hd_lab_pump(a);
}

/* ---- the end */

static bool all_told(void) {
    hd_event_stats stats;
    hd_runtime_event_stats(a, &stats);
    for (int i = 0; i < event_count; i++)
        if (!events[i].told) return false;
    return !stats.queued && !stats.in_flight;
}

static void check_order(int lane) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(a), &pool), HD_OK);
    hd_value log = hd_read(a, pool, lanes[lane].log);
    hd_value followed = hd_read(a, pool, lanes[lane].followed);
    int due = (lanes[(lane + SPACES - 1) % SPACES].next + 3) / 4;
    if ((int)hd_value_count(log) != lanes[lane].next || (int)hd_value_count(followed) != due)
        hd_lab_fail("world %llu: lane %d handled %zu of %d, and %zu of %d follow-ups",
                    (unsigned long long)world, lane, hd_value_count(log), lanes[lane].next,
                    hd_value_count(followed), due);
    for (size_t i = 0; i < hd_value_count(log); i++)
        if (hd_value_number(hd_value_index(log, i)) != (double)i)
            hd_lab_fail("world %llu: lane %d is out of order", (unsigned long long)world, lane);
    hd_pool_close(pool);
}

static void finish(void) {
    uint64_t began = now_ms();
    while (!all_told()) {
        hd_lab_advance_ms(lab, 10);
        resume_due(false);
        hd_lab_pump(b);
        hd_lab_pump(a);
        check_time(began, WAIT_MS, "handling what was left");
    }
    for (int i = 0; i < event_count; i++)
        if (events[i].told != 1 || events[i].status)
            hd_lab_fail("world %llu: event %d was told %d times, %s", (unsigned long long)world, i,
                        events[i].told, hd_status_name(events[i].status));
    for (int i = 0; i < SPACES; i++) check_order(i);
    hd_lab_refuse(a, HD_STALE, 0);
    for (int i = 0; i < PLAIN; i++) plains[i].fails = 0; /* close, too, makes runs */
    if (!once_in(4)) return; /* it waits for many windows: most of the time of a world */
    began = now_ms();
    waiting = true;
    resume_due(true);
    hd_lab_idle(lab);
    waiting = false;
    check_time(began, LAB_IDLE_MS, "idle");
}

static void events_are_handled_beside_what_does_not_settle(void **state) {
    (void)state;
    uint64_t seed = hd_lab_seed();
    const char *worlds = getenv("HD_STEPS");
    uint64_t count = worlds ? strtoull(worlds, NULL, 10) : WORLDS;
    for (world = 0; world < count; world++) {
        r = hd_lab_random_of(seed + world);
        open_world();
        for (int i = 0; i < STEPS; i++) step();
        finish();
        hd_lab_failures(a);
        hd_lab_close(lab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_handled_beside_what_does_not_settle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_reentry_random.c -- everybody who is told something does something else.
 *
 * Bodies, sinks, listeners, error handlers, outcomes, releases, idle waiters, handlers and preflights
 * cancel nodes, register others, resume runs, send events, remove handlers, set gates, switch traces.
 * Whether what they do makes sense does not matter: nothing may be taken for what it was before, and in
 * the end everything is gone. Once more with allocations that fail now and then, with another runtime on
 * the store, so that verdicts come late and some commits are refused, and with both. The checks of debug
 * builds and the sanitisers judge.
 *
 * HD_STEPS is the number of steps; HD_SEED repeats a run. */
#include "lab.h"

#include <heddle/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CELLS = 6, NODES = 24, STREAMS = 2, RUNS = 8, STEPS = 3000, DEPTH = 3 };

typedef struct slot {
    hd_node handle;
    int in[2], out; /* cells; out -1: an effect */
    int released;
} slot;

static hd_memory *memory;
static hd_runtime *rt, *other; /* other NULL: there is none */
static lab_env *env;
static lab_random r;
static hd_cell cells[CELLS], streams[STREAMS];
static slot slots[NODES];
static hd_handler handlers[STREAMS];
static hd_run *runs[RUNS];
static int depth;   /* of callbacks that do something */
static int alive;   /* registered and not yet released */
static int due;     /* outcomes that are to come */
static bool quiet;  /* nobody does anything any more */
static bool scarce; /* memory is */
static bool shared; /* the store is */

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }
static bool once_in(uint32_t n) { return !below(n); }

static void do_something(void);

/* Whoever is told. */
static void told(void) {
    if (quiet || depth >= DEPTH || !once_in(3)) return;
    depth++;
    do_something();
    depth--;
}

/* ---- nodes */

static hd_status suspend(hd_tx *tx) {
    int i = (int)below(RUNS);
    if (runs[i]) return HD_OK;
    if (hd_tx_suspend(tx, &runs[i])) return HD_OK;
    told();
    return once_in(6) ? HD_FAILED : HD_PENDING;
}

static hd_status body(hd_tx *tx, void *ctx) {
    slot s = *(const slot *)ctx; /* it may be another's before this ends */
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        double v = hd_value_number(hd_tx_get(tx, cells[s.in[i]]));
        sum += v == v ? v : 0;
    }
    told();
    if (quiet) return HD_OK;
    switch (below(16)) {
    case 0: return hd_tx_fail(tx, HD_FAILED, "for no reason");
    case 1: return HD_BUSY;
    case 2: {
        int i = 0;
        hd_status status = suspend(tx);
        for (i = 0; i < RUNS && status != HD_PENDING; i++)
            if (runs[i] && hd_run_tx(runs[i]) == tx) runs[i] = NULL; /* it ends with this */
        return status;
    }
    default: break;
    }
    return s.out < 0 ? HD_OK : hd_tx_set_double(tx, cells[s.out], (double)((long)sum % 5));
}

static void release(void *ctx) {
    ((slot *)ctx)->released++;
    alive--;
    told();
}

/* A record of its own for each, so that a late release finds it. */
static slot *spare_slot(void) {
    for (int tries = 0; tries < NODES; tries++) {
        slot *s = &slots[below(NODES)];
        if (!s->handle.id || s->released) return s;
    }
    return NULL;
}

static void add_node(void) {
    slot *s = spare_slot();
    if (!s) return;
    *s = (slot){ .in = { (int)below(CELLS), (int)below(CELLS) }, .out = (int)below(2 * CELLS) };
    if (s->out >= CELLS) s->out = -1;
    char name[16];
    snprintf(name, sizeof name, "n%u", below(8));
    hd_node_spec spec = { .name = once_in(3) ? name : NULL,
                          .fn = body,
                          .ctx = s,
                          .release = release,
                          .effect = s->out < 0,
                          .parent = slots[below(NODES)].handle,
                          .group = once_in(4) ? 7 : 0,
                          .debounce_ms = once_in(4) ? 1 + below(9) : 0,
                          .throttle_ms = once_in(4) ? 1 + below(9) : 0,
                          .run_once = once_in(4) };
    hd_cell envelope = cells[s->out < 0 ? 0 : s->out];
    if (s->out >= 0 && once_in(5)) {
        spec.envelopes = &envelope;
        spec.envelope_count = 1;
    } else if (s->out >= 0) {
        spec.output = envelope;
    }
    alive++;
    if (!hd_node_register(rt, &spec, &s->handle)) return;
    alive--;
    s->handle = (hd_node){ 0, 0 };
}

static void cancel_node(void) { hd_node_unregister(rt, slots[below(NODES)].handle); }

static void resume_run(void) {
    int i = (int)below(RUNS);
    hd_run *run = runs[i];
    runs[i] = NULL;
    if (run) hd_run_resume(run, once_in(4) ? HD_ABORTED : HD_OK);
}

/* ---- those who listen */

static void on_change(const hd_notice *notice, void *ctx) { (void)ctx, (void)notice, told(); }
static void on_error(const hd_failure *f, void *ctx) {
    char text[256];
    (void)ctx;
    told();
    snprintf(text, sizeof text, "%s%s%s%s%s", f->message, f->action, f->piece, f->pattern,
             f->space);
}
static void on_idle(void *ctx) { (void)ctx, told(); }
static void on_value(hd_value v, void *ctx) { (void)ctx, (void)v, told(); }
static void on_outcome(const char *id, hd_status status, void *ctx) {
    (void)ctx, (void)status;
    due--;
    told();
    assert_true(strlen(id) < HD_EVENT_ID_SIZE);
}

static hd_status on_stop(void *ctx) {
    (void)ctx;
    told();
    return HD_OK;
}
static void on_verdict(hd_status status, void *ctx) { (void)ctx, (void)status, told(); }
static void on_violation(const hd_violation *v, void *ctx) {
    (void)ctx;
    told();
    assert_true(strlen(v->action) < 16);
}
static hd_status on_message(const char *key, hd_value message, void *ctx) {
    (void)ctx, (void)key, (void)message;
    told();
    return quiet || !once_in(3) ? HD_OK : HD_IO;
}
static void on_stored(const char *id, hd_status status, void *ctx) {
    (void)ctx, (void)id, (void)status;
    told();
}

/* ---- events */

/* What depends on the commit of a transaction. */
static void start_something(hd_tx *tx) {
    char id[HD_EVENT_ID_SIZE];
    switch (below(6)) {
    case 0: hd_tx_launch(tx, on_stop, NULL); break;
    case 1: hd_tx_after_commit(tx, on_verdict, NULL); break;
    case 2: hd_tx_outbox(tx, "mail", hd_double(1)); break;
    case 3: hd_tx_post(tx, streams[below(STREAMS)], hd_double(below(5)), NULL, id); break;
    default: break;
    }
}

static hd_status on_event(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    told();
    if (!quiet) start_something(tx);
    hd_status status = hd_tx_set(tx, cells[below(CELLS)], event->payload);
    if (!status && once_in(3) && !quiet) {
        hd_send_options options = { .done = on_outcome };
        due++;
        if (hd_tx_send(tx, streams[below(STREAMS)], hd_double(below(5)), &options)) due--;
    }
    return quiet || !once_in(8) ? status : HD_FAILED;
}

static hd_status look_ahead(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)event, (void)ctx;
    hd_tx_get(tx, cells[below(CELLS)]);
    told();
    return HD_OK;
}

static void handle(void) {
    int i = (int)below(STREAMS);
    hd_handler_spec spec = { .stream = streams[i],
                             .fn = on_event,
                             .preflight = once_in(2) ? look_ahead : NULL,
                             .reads_nothing = true };
    hd_handler_register(rt, &spec, &handlers[i]);
}

static void send(void) {
    hd_send_options options = { .done = on_outcome };
    due++;
    if (hd_event_send(rt, streams[below(STREAMS)], hd_double(below(5)), &options)) due--;
}

static void post(void) {
    char id[HD_EVENT_ID_SIZE];
    hd_send_options options = { .done = on_stored };
    hd_event_post(rt, streams[below(STREAMS)], hd_double(below(5)), &options, id);
}

/* ---- anything */

static void write_cell(void) { hd_write(rt, cells[below(CELLS)], hd_double(below(5))); }

static void hold(void) {
    static hd_hold last;
    hd_hold_end(rt, last);
    hd_hold_begin(rt, once_in(2) ? "n1" : NULL, 1 + below(20), &last);
}

static void look_inside(void) {
    hd_node_info info;
    char text[64];
    hd_node n = slots[below(NODES)].handle;
    hd_node_inspect(rt, n, &info);
    hd_node_why_not(rt, n, text, sizeof text);
    if (once_in(3)) hd_trace_enable(rt, below(8));
    if (once_in(9)) hd_trace_clear(rt);
    if (once_in(5)) hd_recheck_enable(rt, once_in(2) ? on_violation : NULL, NULL);
    if (once_in(5)) hd_channel_register(rt, "main", "mail", on_message, NULL);
}

static void do_something(void) {
    hd_node n = slots[below(NODES)].handle;
    switch (below(16)) {
    case 0:
    case 1:
    case 2: add_node(); break;
    case 3:
    case 4: cancel_node(); break;
    case 5: resume_run(); break;
    case 6: write_cell(); break;
    case 7: once_in(4) ? post() : send(); break;
    case 8: handle(); break;
    case 9: hd_handler_unregister(rt, handlers[below(STREAMS)]); break;
    case 10: hd_node_set_debounce(rt, n, below(3) * 5); break;
    case 11: hd_node_set_throttle(rt, n, below(3) * 5); break;
    case 12: once_in(2) ? hd_node_promote(rt, n) : hd_node_request(rt, n); break;
    case 13: hold(); break;
    case 14: look_inside(); break;
    default:
        if (once_in(2)) hd_pull(rt, cells[below(CELLS)], on_value, NULL);
        else hd_runtime_on_idle(rt, on_idle, NULL);
        break;
    }
}

/* The way to a store that is shared: now and then a commit waits, or is refused, or nothing is heard. */
static hd_status on_arrival(const hd_runtime *whose, void *ctx) {
    (void)ctx, (void)whose;
    if (quiet || !once_in(8)) return HD_OK;
    return once_in(2) ? HD_BUSY : once_in(2) ? HD_STALE : HD_REJECTED;
}
static bool on_hearing(const hd_runtime *whose, void *ctx) {
    (void)ctx, (void)whose;
    return quiet || !once_in(4);
}

static void open_world(void) {
    env = lab_env_open();
    bool late = once_in(2);
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    if (shared && late) hd_memory_load_late(memory);
    if (shared) hd_memory_intercept(memory, on_arrival, on_hearing, NULL);
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    other = NULL;
    if (shared) assert_int_equal(hd_open(NULL, &options, &other, NULL), HD_OK);
    char name[32];
    for (int i = 0; i < CELLS; i++) {
        snprintf(name, sizeof name, "main/c%d", i);
        cells[i] = hd_cell_at(rt, name);
    }
    for (int i = 0; i < STREAMS; i++) {
        snprintf(name, sizeof name, "main/s%d", i);
        streams[i] = hd_cell_at(rt, name);
    }
    memset(slots, 0, sizeof slots);
    memset(runs, 0, sizeof runs);
    alive = due = depth = 0;
    quiet = false;
    hd_runtime_listen(rt, on_change, NULL);
    hd_runtime_on_error(rt, on_error, NULL);
}

static void close_world(void) {
    quiet = true;
    for (int i = 0; i < NODES; i++) hd_node_unregister(rt, slots[i].handle);
    hd_runtime_pump(rt);
    for (int i = 0; i < 3000 && !hd_runtime_is_idle(rt); i++) {
        hd_runtime_pump(rt);
        lab_env_advance_ms(env, 20);
    }
    assert_int_equal(alive, 0);
    hd_close(rt);
    if (other) hd_close(other);
    hd_memory_close(memory);
    assert_int_equal(due, 0);
    lab_env_close(env);
}

static void write_elsewhere(void) {
    char name[32];
    snprintf(name, sizeof name, "main/c%u", below(CELLS));
    hd_write(other, hd_cell_at(other, name), hd_double(below(5)));
    hd_runtime_pump(other);
}

static void one_step(void) {
    if (scarce && once_in(3)) lab_env_fail_at(env, 1 + below(12));
    do_something();
    if (other && once_in(3)) write_elsewhere();
    if (once_in(2)) hd_runtime_pump(rt);
    if (once_in(4)) lab_env_advance_ms(env, below(10));
}

static void play(void) {
    const char *steps = getenv("HD_STEPS");
    long left = steps ? atol(steps) : STEPS;
    r = lab_random_of(lab_seed());
    while (left > 0) {
        open_world();
        for (int i = 0; i < 300; i++, left--) one_step();
        lab_env_fail_at(env, 0);
        close_world();
    }
}

static void whoever_is_told_may_do_anything(void **state) {
    (void)state;
    scarce = shared = false;
    play();
}

static void and_so_they_may_where_the_store_is_shared(void **state) {
    (void)state;
    scarce = false;
    shared = true;
    play();
}

static void and_so_they_may_where_memory_is_scarce(void **state) {
    (void)state;
    scarce = true;
    shared = false;
    play();
}

static void and_where_both_are(void **state) {
    (void)state;
    scarce = shared = true;
    play();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_told_may_do_anything),
        cmocka_unit_test(and_so_they_may_where_the_store_is_shared),
        cmocka_unit_test(and_so_they_may_where_memory_is_scarce),
        cmocka_unit_test(and_where_both_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Events without memory: every allocation fails once, alone and with all that follow. Nothing leaks,
 * nothing hangs, every sender whose event was taken hears once, and what is told to have happened has
 * happened. */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/event.h>
#include <string.h>

typedef struct world {
    hd_runtime *rt;
    hd_cell n, twice, parent, child;
    int taken, told, done;
} world;

static void note(const char *id, hd_status status, void *ctx) {
    world *w = ctx;
    (void)id;
    w->told++;
    w->done += status == HD_OK;
}

static hd_status copy(hd_tx *tx, void *ctx) {
    const world *w = ctx;
    hd_value v = hd_tx_get(tx, w->n);
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_tx_set_double(tx, w->twice, 2 * hd_value_number(v));
}

static hd_status on_parent(hd_tx *tx, const hd_event *event, void *ctx) {
    world *w = ctx;
    hd_value v = hd_tx_get(tx, w->twice);
    if (hd_value_status(v)) return hd_value_status(v);
    hd_status status = hd_tx_set(tx, w->n, event->payload);
    if (status) return status;
    hd_send_options options = { .done = note, .ctx = w };
    status = hd_tx_send(tx, w->child, v, &options);
    w->taken += status == HD_OK;
    if (!status) status = hd_tx_outbox(tx, "mail", event->payload);
    return status ? status : hd_tx_return(tx, event->payload);
}

static hd_status on_child(hd_tx *tx, const hd_event *event, void *ctx) {
    const world *w = ctx;
    hd_pool *pool = hd_tx_pool(tx);
    if (!pool) return HD_NOMEM;
    hd_value link = hd_cell_link(w->rt, pool, w->n);
    char id[HD_EVENT_ID_SIZE];
    (void)event;
    return hd_tx_post(tx, w->parent, link, NULL, id) ? HD_NOMEM : HD_OK;
}

static void ignore(const hd_failure *failure, void *ctx) { (void)ctx, (void)failure; }

static hd_status build(world *w) {
    hd_handler h;
    w->n = hd_cell_at(w->rt, "main/n");
    w->twice = hd_cell_at(w->rt, "main/twice");
    w->parent = hd_cell_at(w->rt, "main/parent");
    w->child = hd_cell_at(w->rt, "main/child");
    if (!w->n.id || !w->twice.id || !w->parent.id || !w->child.id) return HD_NOMEM;
    hd_status status = hd_runtime_on_error(w->rt, ignore, NULL);
    if (!status) status = hd_write_json(w->rt, w->n, "1");
    if (!status && !hd_compute(w->rt, "twice", copy, w, w->twice).id) status = HD_NOMEM;
    hd_handler_spec parent = {
        .stream = w->parent, .fn = on_parent, .ctx = w, .inputs = &w->twice, .input_count = 1
    };
    hd_handler_spec child = { .stream = w->child, .fn = on_child, .ctx = w, .reads_nothing = true };
    if (!status) status = hd_handler_register(w->rt, &parent, &h);
    if (!status) status = hd_handler_register(w->rt, &child, &h);
    return status;
}

static void one_run(lab_env *env, void *ctx) {
    world w = { 0 };
    hd_options options = { .env = lab_env_of(env) };
    (void)ctx;
    if (hd_open(NULL, &options, &w.rt, NULL)) return;
    hd_status status = build(&w);
    for (int i = 0; i < 3 && !status; i++) {
        hd_send_options send = { .done = note, .ctx = &w, .id = i == 2 ? "mine" : NULL };
        status = hd_event_send(w.rt, w.parent, hd_int(NULL, i), &send);
        w.taken += status == HD_OK;
        for (int k = 0; k < 3; k++) hd_runtime_pump(w.rt);
    }
    for (int i = 0; i < 20; i++) hd_runtime_pump(w.rt);
    int done = w.done;
    hd_close(w.rt);
    assert_int_equal(w.told, w.taken);
    if (!status && !lab_env_failed(env)) assert_true(done >= 3);
}

static void events_do_without_memory(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(one_run, NULL) > 20);
}

/* ---- what is in the store is not forgotten when memory is there again */

typedef struct office {
    hd_runtime *rt;
    hd_cell desk;
    int stored, handled, failed, mailed;
} office;

static void note_stored(const char *id, hd_status status, void *ctx) {
    (void)id;
    ((office *)ctx)->stored += status == HD_OK;
}

static void note_failed(const hd_failure *failure, void *ctx) {
    (void)failure;
    ((office *)ctx)->failed++;
}

static hd_status on_desk(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    return hd_tx_outbox(tx, "mail", event->payload);
}

static void note_commit(const hd_event_trace *trace, void *ctx) {
    ((office *)ctx)->handled += trace->stage == HD_EVENT_COMMIT && trace->status == HD_OK;
}

static hd_status mail(const char *key, hd_value message, void *ctx) {
    (void)key, (void)message;
    ((office *)ctx)->mailed++;
    return HD_OK;
}

static hd_status open_office(office *o) {
    hd_handler h;
    o->desk = hd_cell_at(o->rt, "main/desk");
    hd_handler_spec spec = { .stream = o->desk, .fn = on_desk, .ctx = o, .reads_nothing = true };
    hd_status status = o->desk.id ? hd_runtime_on_error(o->rt, note_failed, o) : HD_NOMEM;
    if (!status) status = hd_runtime_set_event_trace(o->rt, note_commit, o);
    if (!status) status = hd_channel_register(o->rt, "main", "mail", mail, o);
    return status ? status : hd_handler_register(o->rt, &spec, &h);
}

/* Memory comes back in the end; whoever pumped on gets what is in the store. */
static bool post_one(lab_env *env) {
    office o = { 0 };
    char id[HD_EVENT_ID_SIZE];
    if (hd_open(NULL, &(hd_options){ .env = lab_env_of(env) }, &o.rt, NULL)) return true;
    hd_status status = open_office(&o);
    hd_send_options options = { .done = note_stored, .ctx = &o };
    if (!status) status = hd_event_post(o.rt, o.desk, hd_null(), &options, id);
    for (int i = 0; i < 10; i++) hd_runtime_pump(o.rt);
    bool met = lab_env_failed(env);
    lab_env_fail_from(env, 0);
    for (int i = 0; i < 10; i++) hd_runtime_pump(o.rt);
    lab_env_advance_ms(env, 200);
    for (int i = 0; i < 10; i++) hd_runtime_pump(o.rt);
    if (o.stored) assert_true(o.handled || o.failed);
    if (o.handled) assert_true(o.mailed > 0);
    if (!met) assert_int_equal(o.mailed, 1);
    hd_close(o.rt);
    return met;
}

/* The nth allocation fails, alone or with all after it. */
static bool post_without(uint64_t nth, bool alone) {
    lab_env *env = lab_env_open();
    if (alone) lab_env_fail_at(env, nth);
    else lab_env_fail_from(env, nth);
    bool met = post_one(env);
    lab_env_close(env);
    return met;
}

static void what_is_stored_is_taken_up_when_there_is_memory_again(void **state) {
    (void)state;
    uint64_t n = 1;
    for (bool met = true; met; n++) {
        met = post_without(n, true);
        met = post_without(n, false) || met;
    }
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_do_without_memory),
        cmocka_unit_test(what_is_stored_is_taken_up_when_there_is_memory_again),
    };
    return cmocka_run_group_tests_name("events without memory", tests, NULL, NULL);
}

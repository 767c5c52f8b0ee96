/* test_events_later.c -- events that are delivered later, and periodic ones. */
#include "piece_world.h"

static char log_[1024]; /* "payload@ms since the start[+missed]" of each handling that began */
static uint64_t start_ms;
static hd_status fails;

static uint64_t wall(void) {
    const hd_env *env = hd_runtime_env(rt());
    return env->wall_ms(env->ctx);
}

static hd_status count(hd_tx *tx, const hd_event *event, void *ctx) {
    size_t n = strlen(log_);
    if (fails) return hd_tx_fail(tx, fails, "not now");
    snprintf(log_ + n, sizeof log_ - n, "%s%s@%llu", n ? " " : "",
             hd_value_as_text(event->payload, "?"),
             (unsigned long long)(event->due_ms ? event->due_ms - start_ms : 0));
    n = strlen(log_);
    if (event->missed)
        snprintf(log_ + n, sizeof log_ - n, "+%llu", (unsigned long long)event->missed);
    return hd_tx_increment(tx, hd_cell_at(hd_tx_runtime(tx), "main/count"), hd_int(NULL, 1));
}

static hd_cell bell(void) { return hd_cell_at(rt(), "main/bell"); }

static void listen(void) {
    hd_handler_spec spec = { .stream = bell(), .fn = count, .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt(), &spec, NULL), HD_OK);
}

static void begin(void) {
    log_[0] = '\0';
    fails = HD_OK;
    start_ms = wall();
    listen();
}

static char last[HD_EVENT_ID_SIZE];
static void post(const char *payload, hd_send_options options) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    assert_int_equal(hd_event_post(rt(), bell(), hd_string(pool, payload), &options, last), HD_OK);
    hd_pool_close(pool);
    settle();
}
#define POST(payload, ...) post(payload, (hd_send_options){ __VA_ARGS__ })

static void advance(uint64_t ms) {
    lab_advance_ms(l, ms);
    settle();
}
static void rang(const char *what) {
    assert_string_equal(log_, what);
    log_[0] = '\0';
}

static void an_event_is_handled_when_it_is_due(void **state) {
    begin();
    POST("b", .after_ms = 2000);
    POST("a", .deliver_at_ms = start_ms + 1000);
    POST("now", .id = NULL);
    rang("now@0");
    advance(999);
    rang("");
    advance(1);
    rang("a@1000");
    advance(100000);
    rang("b@2000");
    assert_json(l, "main/count", "3");
    POST("past", .deliver_at_ms = start_ms + 5);
    rang("past@5");
}

/* The program sleeps until then, and no longer; a clock that is set is looked at within a minute. */
static void the_deadline_is_the_time_of_the_event(void **state) {
    begin();
    POST("a", .after_ms = 5000);
    const hd_env *env = hd_runtime_env(rt());
    assert_true(hd_runtime_deadline(rt()) <= env->monotonic_ns(env->ctx) + 5000000000);
    assert_true(hd_runtime_is_idle(rt()));
    POST("b", .after_ms = 86400000);
    advance(5000);
    rang("a@5000");
    assert_true(hd_runtime_deadline(rt()) <= env->monotonic_ns(env->ctx) + 60000000000);
}

static void what_waits_survives_a_restart(void **state) {
    begin();
    POST("a", .after_ms = 1000);
    POST("b", .after_ms = 3000, .id = "mine");
    restart();
    lab_advance_ms(l, 2000);
    settle();
    rang("");
    listen();
    settle();
    rang("a@1000");
    advance(1000);
    rang("b@3000");
    POST("b", .after_ms = 3000); /* another one */
    restart();
    listen();
    settle();
    advance(3000);
    assert_json(l, "main/count", "3");
}

/* Events that are overdue are handled in the order of their times, not in that of posting. */
static void overdue_events_come_by_their_times(void **state) {
    begin();
    POST("c", .after_ms = 3000);
    POST("a", .after_ms = 1000);
    POST("b", .after_ms = 2000);
    advance(5000);
    rang("a@1000 b@2000 c@3000");
    POST("f", .after_ms = 3000);
    POST("d", .after_ms = 1000);
    POST("e", .after_ms = 2000);
    restart();
    lab_advance_ms(l, 5000);
    listen();
    settle();
    rang("d@6000 e@7000 f@8000");
}

/* Each handler is told once, and of several programs one handles the event, one fires the periodic event. */
static void two_programs_handle_it_once(void **state) {
    begin();
    lab_on(l, "b");
    listen();
    POST("once", .after_ms = 1000);
    POST("tick", .every_ms = 1000, .id = "often");
    for (int i = 0; i < 5; i++) {
        lab_advance_ms(l, 1000);
        lab_settle(l);
    }
    settle();
    lab_on(l, "a");
    settle();
    assert_json(l, "main/count", "6");
}

/* That another program was quicker is no failure: nothing is logged, and sync has nothing to tell. */
static void who_fires_a_periodic_event_second_says_nothing(void **state) {
    begin();
    hd_runtime *a = rt();
    lab_on(l, "b");
    listen();
    POST("tick", .every_ms = 1000, .id = "often");
    for (int i = 0; i < 20; i++) {
        lab_advance_ms(l, 1000);
        assert_int_equal(hd_runtime_pump(a), HD_OK); /* both at the same time */
        assert_int_equal(hd_runtime_pump(rt()), HD_OK);
        lab_settle(l);
        assert_int_equal(hd_runtime_sync(a), HD_OK);
        assert_int_equal(hd_runtime_sync(rt()), HD_OK);
    }
    assert_int_equal(lab_env_logged(lab_world(l), "was refused"), 0);
}

/* The same where the event fails in both of them: one notes the reason. */
static void who_notes_a_failure_second_says_nothing(void **state) {
    begin();
    hd_runtime *a = rt();
    lab_on(l, "b");
    listen();
    fails = HD_FAILED;
    for (int i = 0; i < 5; i++) {
        POST("x", .after_ms = 1000);
        lab_advance_ms(l, 1000);
        assert_int_equal(hd_runtime_pump(a), HD_OK);
        assert_int_equal(hd_runtime_pump(rt()), HD_OK);
        lab_settle(l);
        assert_int_equal(hd_runtime_sync(a), HD_OK);
        assert_int_equal(hd_runtime_sync(rt()), HD_OK);
    }
    assert_int_equal(lab_env_logged(lab_world(l), "was refused"), 0);
}

static void a_receipt_is_kept_from_the_time_of_delivery(void **state) {
    begin();
    POST("late", .after_ms = UINT64_C(86400000) * 40); /* more than receipts are kept */
    advance(UINT64_C(86400000) * 40);
    assert_json(l, "main/count", "1");
}

/* ---- cancelling */

static void a_cancelled_event_is_not_handled(void **state) {
    begin();
    POST("a", .after_ms = 1000, .id = "mine");
    assert_int_equal(hd_event_cancel(rt(), bell(), last), HD_OK);
    assert_int_equal(hd_event_cancel(rt(), bell(), last), HD_NOT_FOUND);
    advance(5000);
    rang("");
    hd_status status =
        hd_event_post(rt(), bell(), hd_null(), &(hd_send_options){ .id = "mine" }, last);
    assert_int_equal(status, HD_EXISTS);          /* it is over */
    POST("b", .deliver_at_ms = start_ms + 20000); /* cancelling may have taken some time */
    advance(20000);
    rang("b@20000");
    assert_int_equal(hd_event_cancel(rt(), bell(), last), HD_NOT_FOUND);
    assert_int_equal(hd_event_cancel(rt(), bell(), "no id"), HD_USAGE);
    settle();
}

static void a_cancelled_periodic_event_may_be_posted_again(void **state) {
    begin();
    POST("t", .every_ms = 1000, .id = "often");
    advance(1000);
    rang("t@1000");
    assert_int_equal(hd_event_cancel(rt(), bell(), last), HD_OK);
    advance(3000);
    rang("");
    POST("u", .every_ms = 86400000, .deliver_at_ms = start_ms + 20000, .id = "often");
    advance(20000);
    rang("u@20000");
}

/* ---- periodic events */

static void a_periodic_event_posts_an_event_each_period(void **state) {
    begin();
    POST("t", .every_ms = 1000);
    for (int i = 0; i < 3; i++) advance(1000);
    rang("t@1000 t@2000 t@3000");
    POST("u", .every_ms = 10000, .deliver_at_ms = start_ms + 3500);
    advance(1000);
    rang("u@3500 t@4000");
    advance(500); /* nothing is due */
    rang("");
}

/* Posting the same periodic event at each start changes nothing. */
static void a_periodic_event_with_a_name_is_one(void **state) {
    begin();
    for (int i = 0; i < 3; i++) {
        POST("t", .every_ms = 1000, .id = "often");
        advance(1000);
        restart();
        listen();
    }
    rang("t@1000 t@2000 t@3000");
}

static void of_missed_periods_the_last_has_an_event(void **state) {
    begin();
    POST("t", .every_ms = 1000);
    advance(1000);
    rang("t@1000");
    restart();
    lab_advance_ms(l, 5300);
    listen();
    settle();
    rang("t@6000+4");
    advance(700);
    rang("t@7000");
}

static void or_each_of_them_if_asked_for(void **state) {
    begin();
    POST("t", .every_ms = 1000, .every_missed = true);
    restart();
    lab_advance_ms(l, 3300);
    listen();
    settle();
    rang("t@1000 t@2000 t@3000");
    assert_json(l, "main/count", "3");
}

/* A handler that fails leaves its event, and the periodic event goes on. */
static void a_periodic_event_survives_failures(void **state) {
    begin();
    lab_catch(l);
    POST("t", .every_ms = 1000);
    fails = HD_FAILED;
    advance(1000);
    fails = HD_OK;
    lab_failures(l);
    advance(1000);
    rang("t@2000");
    restart();
    listen(); /* what failed is tried again */
    settle();
    rang("t@1000");
}

/* ---- in transactions and handlers */

static hd_status again(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_status status = count(tx, event, ctx);
    char id[HD_EVENT_ID_SIZE];
    if (!status && !strcmp(hd_value_as_text(event->payload, ""), "first"))
        status = hd_tx_post(tx, event->stream, hd_string(hd_tx_pool(tx), "second"),
                            &(hd_send_options){ .after_ms = 500 }, id);
    return status;
}

static void a_handler_posts_for_later(void **state) {
    begin();
    hd_handler_spec spec = { .stream = hd_cell_at(rt(), "main/chain"),
                             .fn = again,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt(), &spec, NULL), HD_OK);
    hd_pool *pool;
    char id[HD_EVENT_ID_SIZE];
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_event_post(rt(), spec.stream, hd_string(pool, "first"), NULL, id);
    hd_pool_close(pool);
    settle();
    rang("first@0");
    advance(500);
    rang("second@500");
}

static void what_makes_no_sense_is_refused(void **state) {
    char id[HD_EVENT_ID_SIZE];
    begin();
    hd_send_options both = { .after_ms = 1, .deliver_at_ms = 1 }, all = { .every_missed = true },
                    sent = { .after_ms = 1 }, mixed = { .after_ms = 1, .not_before_ns = 1 };
    assert_int_equal(hd_event_post(rt(), bell(), hd_null(), &both, id), HD_USAGE);
    assert_int_equal(hd_event_post(rt(), bell(), hd_null(), &all, id), HD_USAGE);
    assert_int_equal(hd_event_post(rt(), bell(), hd_null(), &mixed, id), HD_USAGE);
    hd_send_options far[] = { { .deliver_at_ms = UINT64_MAX },
                              { .after_ms = UINT64_C(1) << 45 },
                              { .every_ms = UINT64_MAX } };
    for (int i = 0; i < 3; i++)
        assert_int_equal(hd_event_post(rt(), bell(), hd_null(), &far[i], id), HD_USAGE);
    assert_int_equal(hd_event_send(rt(), bell(), hd_null(), &sent), HD_USAGE);
}

/* ---- no memory: nothing is lost, and nothing happens twice */

static hd_status ring(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_cell cell = hd_cell_at(hd_tx_runtime(tx), "main/rang");
    return cell.id ? hd_tx_increment(tx, cell, hd_int(NULL, 1)) : HD_NOMEM;
}

static hd_status pump_on(hd_runtime *r, lab_env *env) {
    hd_status status = HD_OK;
    for (int i = 0; i < 12; i++) {
        status = hd_runtime_sync(r);
        if (!status || status == HD_NOMEM) status = hd_runtime_settle(r);
        lab_env_advance_ms(env, 500);
    }
    return status;
}

static void play_without_memory(lab_env *env, void *ctx) {
    hd_runtime *r = NULL;
    hd_options options = { .env = lab_env_of(env) };
    char id[HD_EVENT_ID_SIZE], other[HD_EVENT_ID_SIZE];
    hd_status status = hd_open(NULL, &options, &r, NULL);
    hd_cell stream = status ? (hd_cell){ 0 } : hd_cell_at(r, "main/ring");
    if (!status && !stream.id) status = HD_NOMEM;
    hd_handler_spec spec = { .stream = stream, .fn = ring, .reads_nothing = true };
    if (!status) status = hd_handler_register(r, &spec, NULL);
    hd_send_options once = { .after_ms = 700 }, often = { .every_ms = 1000 };
    if (!status) status = hd_event_post(r, stream, hd_null(), &once, id);
    if (!status) status = hd_event_post(r, stream, hd_null(), &often, other);
    bool posted = !status;
    if (!status) status = pump_on(r, env);
    hd_pool *pool;
    if (posted && !hd_pool_open(hd_runtime_heap(r), &pool)) {
        int64_t rang_ = hd_value_as_int(hd_read(r, pool, hd_cell_at(r, "main/rang")), 0);
        if (!lab_env_failed(env)) assert_int_equal(rang_, 6);
        assert_in_range(rang_, 0, 6);
        hd_pool_close(pool);
    }
    if (!lab_env_failed(env)) assert_int_equal(status, HD_OK);
    hd_close(r);
}

static void every_allocation_may_fail(void **state) {
    lab_each_allocation_failure(play_without_memory, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(an_event_is_handled_when_it_is_due),
        S(the_deadline_is_the_time_of_the_event),
        S(what_waits_survives_a_restart),
        S(overdue_events_come_by_their_times),
        S(two_programs_handle_it_once),
        S(who_fires_a_periodic_event_second_says_nothing),
        S(who_notes_a_failure_second_says_nothing),
        S(a_receipt_is_kept_from_the_time_of_delivery),
        S(a_cancelled_event_is_not_handled),
        S(a_cancelled_periodic_event_may_be_posted_again),
        S(a_periodic_event_posts_an_event_each_period),
        S(a_periodic_event_with_a_name_is_one),
        S(of_missed_periods_the_last_has_an_event),
        S(or_each_of_them_if_asked_for),
        S(a_periodic_event_survives_failures),
        S(a_handler_posts_for_later),
        S(what_makes_no_sense_is_refused),
        S(every_allocation_may_fail),
    };
    LAB_EVERYWHERE(tests);
}

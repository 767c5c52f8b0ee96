/* The outbox when the world changes under it: a space that is unloaded, a channel that is opened
 * again, a program that was quicker. */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab_events.h"
#include <heddle/lab.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

typedef struct world {
    lab_env *env;
    hd_runtime *rt;
    hd_cell stream;
    hd_handler handler;
} world;

typedef struct office {
    int calls;
    hd_status says;
    hd_runtime *of;
    int refusals; /* this often the store will not remove the record */
} office;

static hd_status deliver(const char *key, hd_value message, void *ctx) {
    office *o = ctx;
    (void)key;
    assert_string_equal(hd_value_as_text(message, ""), "hello");
    o->calls++;
    if (o->refusals-- > 0) hd_lab_refuse(o->of, HD_REJECTED, 1);
    return o->says;
}

static hd_status send_mail(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    return hd_tx_outbox(tx, "mail", event->payload);
}

static void settle(world *w) {
    for (int i = 0; i < 5; i++) hd_runtime_pump(w->rt);
}

static void listen(world *w) {
    w->stream = hd_cell_at(w->rt, "shop/buy");
    hd_handler_spec spec = { .stream = w->stream, .fn = send_mail, .reads_nothing = true };
    assert_int_equal(hd_handler_register(w->rt, &spec, &w->handler), HD_OK);
}

static world open_world(void) {
    world w = { .env = lab_env_open() };
    hd_options options = { .env = lab_env_of(w.env) };
    assert_int_equal(hd_open(NULL, &options, &w.rt, NULL), HD_OK);
    listen(&w);
    return w;
}

static void close_world(world *w) {
    hd_close(w->rt);
    lab_env_close(w->env);
}

static void send_hello(world *w) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(w->rt), &pool), HD_OK);
    assert_int_equal(hd_event_send(w->rt, w->stream, hd_string(pool, "hello"), NULL), HD_OK);
    hd_pool_close(pool);
}

static void mail(world *w) {
    send_hello(w);
    settle(w);
    assert_int_equal(hd_runtime_sync(w->rt), HD_OK);
    settle(w);
}

/* Whoever unloads a space need not know of the messages that wait there. */
static void a_message_is_delivered_although_its_space_was_unloaded(void **state) {
    (void)state;
    world w = open_world();
    office o = { .says = HD_BUSY };
    assert_int_equal(hd_channel_register(w.rt, "shop", "mail", deliver, &o), HD_OK);
    mail(&w);
    assert_int_equal(o.calls, 1);
    hd_handler_unregister(w.rt, w.handler);
    assert_int_equal(hd_runtime_unload(w.rt, "shop"), HD_OK);
    o.says = HD_OK;
    for (int i = 0; i < 3; i++) {
        lab_env_advance_ns(w.env, SECOND);
        settle(&w);
    }
    assert_int_equal(o.calls, 2);
    close_world(&w);
}

/* As with handlers, the later one counts. */
static void a_channel_that_is_opened_again_is_replaced(void **state) {
    (void)state;
    world w = open_world();
    office first = { .says = HD_BUSY }, second = { .says = HD_OK };
    assert_int_equal(hd_channel_register(w.rt, "shop", "mail", deliver, &first), HD_OK);
    mail(&w);
    assert_int_equal(first.calls, 1);
    assert_int_equal(hd_channel_register(w.rt, "shop", "mail", deliver, &second), HD_OK);
    lab_env_advance_ns(w.env, SECOND);
    settle(&w);
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 1);
    close_world(&w);
}

/* The channel has done its work: a store that does not let go of the record must not make it do it
 * again and again. */
static void a_record_that_cannot_be_removed_is_delivered_again_later(void **state) {
    (void)state;
    hd_lab *shop = hd_lab_open(NULL);
    world w = { .rt = hd_lab_runtime(shop, "a") };
    office o = { .says = HD_OK, .of = w.rt, .refusals = 2 };
    listen(&w);
    assert_int_equal(hd_channel_register(w.rt, "shop", "mail", deliver, &o), HD_OK);
    send_hello(&w);
    hd_lab_settle(shop);
    assert_int_equal(o.calls, 1);
    hd_lab_advance_ms(shop, 101);
    hd_lab_settle(shop);
    assert_int_equal(o.calls, 2);
    hd_lab_advance_ms(shop, 101); /* it takes twice as long each time */
    hd_lab_settle(shop);
    assert_int_equal(o.calls, 2);
    hd_lab_advance_ms(shop, 100);
    hd_lab_settle(shop);
    assert_int_equal(o.calls, 3);
    hd_lab_advance_ms(shop, 100000);
    hd_lab_settle(shop);
    assert_int_equal(o.calls, 3);
    hd_lab_close(shop);
}

/* ---- what waits costs nothing */

#define MANY 10000
#define EACH 100

/* Sends EACH messages, numbered on from what came before, to the channel that the payload names. */
static hd_status send_many(hd_tx *tx, const hd_event *event, void *ctx) {
    int *next = ctx;
    hd_status status = HD_OK;
    for (int i = 0; i < EACH && !status; i++)
        status = hd_tx_outbox(tx, hd_value_as_text(event->payload, ""),
                              hd_int(hd_tx_pool(tx), *next + i));
    if (!status) *next += EACH;
    return status;
}

typedef struct counter {
    int next;
    int failures; /* this many calls fail first */
} counter;

static hd_status expect_next(const char *key, hd_value message, void *ctx) {
    counter *c = ctx;
    (void)key;
    if (c->failures-- > 0) return HD_BUSY;
    assert_int_equal(hd_value_as_int(message, -1), c->next);
    c->next++;
    return HD_OK;
}

static void handle_many(hd_runtime *rt, int *next) {
    hd_handler h;
    hd_handler_spec spec = {
        .stream = hd_cell_at(rt, "shop/many"), .fn = send_many, .ctx = next, .reads_nothing = true
    };
    assert_int_equal(hd_handler_register(rt, &spec, &h), HD_OK);
}

static void fill(hd_runtime *rt, const char *channel, int count) {
    hd_pool *pool;
    hd_cell stream = hd_cell_at(rt, "shop/many");
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < count; i += EACH)
        assert_int_equal(hd_event_send(rt, stream, hd_string(pool, channel), NULL), HD_OK);
    hd_pool_close(pool);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    for (int i = 0; i < 3; i++) hd_runtime_pump(rt);
}

static int visits(hd_runtime *rt) {
    hd_event_stats stats;
    hd_runtime_event_stats(rt, &stats);
    return (int)stats.outbox_visits;
}

/* Counted: messages whose channel nobody has opened are looked at once, and then when it is opened.
 * Other messages come and go past them. */
static void passes_do_not_visit_messages_that_wait_for_a_channel(void **state) {
    (void)state;
    world w = open_world();
    office o = { .says = HD_OK };
    int next = 0;
    counter c = { 0 };
    handle_many(w.rt, &next);
    fill(w.rt, "later", MANY);
    assert_int_equal(visits(w.rt), MANY);
    for (int i = 0; i < 100; i++) hd_runtime_pump(w.rt);
    assert_int_equal(visits(w.rt), MANY);

    assert_int_equal(hd_channel_register(w.rt, "shop", "mail", deliver, &o), HD_OK);
    for (int i = 0; i < 10; i++) mail(&w);
    assert_int_equal(o.calls, 10);
    assert_int_equal(visits(w.rt), MANY + 10);

    assert_int_equal(hd_channel_register(w.rt, "shop", "later", expect_next, &c), HD_OK);
    settle(&w);
    assert_int_equal(c.next, MANY);
    assert_int_equal(visits(w.rt), 2 * MANY + 10);
    close_world(&w);
}

/* A channel that fails for all of them gets them again in the order in which they were recorded; while
 * they wait for that time, passes do not visit them. */
static void messages_that_wait_for_a_time_stay_in_order(void **state) {
    (void)state;
    world w = open_world();
    int next = 0;
    counter c = { .failures = 3 * EACH };
    handle_many(w.rt, &next);
    assert_int_equal(hd_channel_register(w.rt, "shop", "later", expect_next, &c), HD_OK);
    fill(w.rt, "later", 3 * EACH);
    assert_int_equal(visits(w.rt), 3 * EACH);
    settle(&w);
    assert_int_equal(visits(w.rt), 3 * EACH);
    lab_env_advance_ns(w.env, SECOND);
    settle(&w);
    assert_int_equal(c.next, 3 * EACH);
    assert_int_equal(visits(w.rt), 6 * EACH);
    close_world(&w);
}

/* Some from here, some from another program: by seq, also where the records arrive late. */
static void messages_of_two_programs_are_delivered_in_the_order_of_their_commits(void **state) {
    (void)state;
    hd_lab *shop = hd_lab_open(&(hd_lab_options){ .load_late = true });
    hd_runtime *a = hd_lab_runtime(shop, "a"), *b = hd_lab_runtime(shop, "b");
    int next = 0;
    counter c = { 0 };
    handle_many(a, &next);
    handle_many(b, &next);
    for (int i = 0; i < 4; i++) {
        hd_pool *pool;
        hd_runtime *rt = i % 2 ? a : b;
        assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
        assert_int_equal(
            hd_event_send(rt, hd_cell_at(rt, "shop/many"), hd_string(pool, "later"), NULL), HD_OK);
        hd_pool_close(pool);
        hd_lab_settle(shop);
    }
    assert_int_equal(hd_channel_register(a, "shop", "later", expect_next, &c), HD_OK);
    hd_lab_settle(shop);
    assert_int_equal(c.next, 4 * EACH);
    /* The other one had parked what is delivered now, and has looked to see that it is gone. */
    int before = visits(b);
    counter none = { 0 };
    assert_int_equal(hd_channel_register(b, "shop", "later", expect_next, &none), HD_OK);
    hd_lab_settle(shop);
    assert_int_equal(none.next, 0);
    assert_int_equal(visits(b), before);
    hd_lab_close(shop);
}

/* ---- no memory */

static hd_status now_and_then(const char *key, hd_value message, void *ctx) {
    (void)key, (void)message;
    return ++*(int *)ctx % 3 ? HD_OK : HD_BUSY;
}

static void one_life(lab_env *env, void *ctx) {
    world w = { .env = env };
    int calls = 0;
    hd_options options = { .env = lab_env_of(env) };
    (void)ctx;
    if (hd_open(NULL, &options, &w.rt, NULL)) return;
    w.stream = hd_cell_at(w.rt, "shop/buy");
    hd_handler_spec spec = { .stream = w.stream, .fn = send_mail, .reads_nothing = true };
    hd_status status = w.stream.id ? hd_handler_register(w.rt, &spec, &w.handler) : HD_NOMEM;
    for (int i = 0; i < 4 && !status; i++) {
        status = hd_event_send(w.rt, w.stream, hd_int(NULL, i), NULL);
        settle(&w);
    }
    if (!status) status = hd_channel_register(w.rt, "shop", "mail", now_and_then, &calls);
    for (int i = 0; i < 4; i++) {
        lab_env_advance_ns(env, SECOND);
        settle(&w);
    }
    if (!status && !lab_env_failed(env)) assert_int_equal(calls, 5);
    hd_close(w.rt);
}

static void the_outbox_does_without_memory(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(one_life, NULL) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_delivered_although_its_space_was_unloaded),
        cmocka_unit_test(a_channel_that_is_opened_again_is_replaced),
        cmocka_unit_test(a_record_that_cannot_be_removed_is_delivered_again_later),
        cmocka_unit_test(passes_do_not_visit_messages_that_wait_for_a_channel),
        cmocka_unit_test(messages_that_wait_for_a_time_stay_in_order),
        cmocka_unit_test(messages_of_two_programs_are_delivered_in_the_order_of_their_commits),
        cmocka_unit_test(the_outbox_does_without_memory),
    };
    return cmocka_run_group_tests_name("the outbox", tests, NULL, NULL);
}

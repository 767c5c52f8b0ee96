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

static hd_status deliver(void *ctx, const char *key, hd_value message) {
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
    assert_int_equal(hd_channel_open(w.rt, "shop", "mail", deliver, &o), HD_OK);
    mail(&w);
    assert_int_equal(o.calls, 1);
    hd_handler_remove(w.rt, w.handler);
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
    assert_int_equal(hd_channel_open(w.rt, "shop", "mail", deliver, &first), HD_OK);
    mail(&w);
    assert_int_equal(first.calls, 1);
    assert_int_equal(hd_channel_open(w.rt, "shop", "mail", deliver, &second), HD_OK);
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
    assert_int_equal(hd_channel_open(w.rt, "shop", "mail", deliver, &o), HD_OK);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_delivered_although_its_space_was_unloaded),
        cmocka_unit_test(a_channel_that_is_opened_again_is_replaced),
        cmocka_unit_test(a_record_that_cannot_be_removed_is_delivered_again_later),
    };
    return cmocka_run_group_tests_name("the outbox", tests, NULL, NULL);
}

/* Calls at the wrong moment: from inside what the runtime calls. They are refused with HD_USAGE, and
 * nothing else is different for it. And what a callback was told, which stays readable until it
 * returns, whatever it does meanwhile. */
#define _GNU_SOURCE
#include "folder.h"
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/event.h>
#include <heddle/pattern.h>
#include <heddle/scheduler.h>
#include <heddle/workflow.h>
#include <stdio.h>
#include <string.h>

/* Two runtimes on one store in memory. */
typedef struct world {
    hd_memory *memory;
    hd_runtime *rt, *other;
    hd_cell a, b, others;
    int told;
    hd_status said[4];
    hd_tx *left; /* a transaction that a callback has left open */
} world;

static world open_world(void) {
    world w = { 0 };
    assert_int_equal(hd_memory_open(NULL, &w.memory), HD_OK);
    hd_options options = { .memory = w.memory, .principal = "me" };
    assert_int_equal(hd_open(NULL, &options, &w.rt, NULL), HD_OK);
    assert_int_equal(hd_open(NULL, &options, &w.other, NULL), HD_OK);
    w.a = hd_cell_at(w.rt, "main/a");
    w.b = hd_cell_at(w.rt, "main/b");
    w.others = hd_cell_at(w.other, "main/a");
    assert_int_equal(hd_write_json(w.rt, w.a, "1"), HD_OK);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    assert_int_equal(hd_runtime_sync(w.other), HD_OK);
    return w;
}

static void close_world(world *w) {
    assert_int_equal(hd_close(w->rt), HD_OK);
    assert_int_equal(hd_close(w->other), HD_OK);
    hd_memory_close(w->memory);
}

/* Another writer's change, and the pump that brings it. */
static void hear_from_the_other(world *w) {
    assert_int_equal(hd_write_json(w->other, w->others, "100"), HD_OK);
    assert_int_equal(hd_runtime_sync(w->other), HD_OK);
    assert_int_equal(hd_runtime_sync(w->rt), HD_OK);
}

static void expect_number(world *w, hd_cell cell, double number) {
    assert_true(hd_value_number(hd_read(w->rt, NULL, cell)) == number);
}

/* ---- spaces */

static hd_status no_message(const char *key, hd_value message, void *ctx) { return HD_OK; }
static bool no_entry(const hd_listing *entry, void *ctx) { return true; }

/* store.h: a space is a word without '/', '@', '#' and control characters, wherever one is named. */
static void a_space_that_cannot_be_is_refused_everywhere(void **state) {
    static const char *const names[] = { "", "a/b", "a@b", "a#b", "a\tb", "a\xff" };
    world w = open_world();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hd_engine *engine;
        hd_error error;
        hd_piece_spec spec = { .space = names[i], .id = "p", .pattern = "p" };
        hd_engine_options options = { .space = names[i] };
        assert_int_equal(hd_engine_open(w.rt, &options, &engine, &error), HD_SYNTAX);
        assert_non_null(strstr(error.message, "space"));
        assert_int_equal(hd_channel_register(w.rt, names[i], "c", no_message, NULL), HD_SYNTAX);
        assert_int_equal(hd_runtime_follow(w.rt, names[i]), HD_SYNTAX);
        assert_int_equal(hd_runtime_list(w.rt, names[i], NULL, NULL, no_entry, NULL), HD_SYNTAX);
        assert_int_equal(hd_receipt_prune(w.rt, names[i], NULL), HD_SYNTAX);
        assert_int_not_equal(hd_piece_start(w.rt, &spec, NULL, NULL), HD_OK);
        assert_int_equal(hd_cell_of(w.rt, names[i], HD_SCOPE_SPACE, "x", "").id, 0);
    }
    close_world(&w);
}

/* ---- functions that are not given */

static hd_status start_nothing(hd_tx *tx, void *ctx) {
    assert_int_equal(hd_tx_after_commit(tx, NULL, NULL), HD_USAGE);
    assert_int_equal(hd_tx_launch(tx, NULL, NULL), HD_USAGE);
    return HD_OK;
}

static void a_call_without_its_function_is_refused(void **state) {
    world w = open_world();
    hd_engine *engine;
    assert_int_equal(hd_engine_open(w.rt, NULL, &engine, NULL), HD_OK);
    assert_int_equal(hd_workflow_then(engine, "w/1", NULL, NULL), HD_USAGE);
    assert_int_equal(hd_workflow_stored(engine, NULL, NULL), HD_USAGE);
    assert_int_equal(hd_runtime_post(w.rt, NULL, NULL), HD_USAGE);
    assert_int_equal(hd_runtime_on_idle(w.rt, NULL, NULL), HD_USAGE);
    assert_int_equal(hd_runtime_listen(w.rt, NULL, NULL), HD_USAGE);
    assert_int_equal(hd_transact(w.rt, start_nothing, NULL), HD_OK);
    assert_int_equal(hd_write_json(w.rt, w.b, "1"), HD_OK);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    close_world(&w);
}

/* ---- listeners */

static void write_when_told(const hd_notice *notice, void *ctx) {
    world *w = ctx;
    w->told++;
    w->said[0] = hd_write_json(w->rt, w->b, "7");
    w->said[1] = hd_runtime_pump(w->rt);
    w->said[2] = hd_runtime_sync(w->rt);
    w->said[3] = hd_close(w->rt);
    assert_int_equal(notice->count, 1);
    assert_int_equal(notice->changes[0].document.id, w->a.id);
}

static void expect_refusals(const world *w) {
    for (int i = 0; i < 4; i++) assert_int_equal(w->said[i], HD_USAGE);
}

static void a_listener_cannot_write_nor_pump_nor_close(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_listen(w.rt, write_when_told, &w), HD_OK);
    hear_from_the_other(&w);
    assert_int_equal(w.told, 1);
    expect_refusals(&w);
    assert_true(hd_value_kind(hd_read(w.rt, NULL, w.b)) == HD_KIND_ABSENT);

    memset(w.said, 0, sizeof w.said);
    assert_int_equal(hd_write_json(w.rt, w.a, "2"), HD_OK); /* now as it is told of our own */
    assert_int_equal(w.told, 2);
    expect_refusals(&w);
    hd_runtime_unlisten(w.rt, write_when_told, &w);
    assert_int_equal(hd_write_json(w.rt, w.b, "3"), HD_OK);
    expect_number(&w, w.b, 3);
    close_world(&w);
}

/* ---- verdicts */

static void wait_when_told(hd_status status, void *ctx) {
    world *w = ctx;
    assert_int_not_equal(status, HD_OK);
    w->told++;
    w->said[0] = hd_runtime_pump(w->rt);
    w->said[1] = hd_runtime_sync(w->rt);
    w->said[2] = hd_runtime_unload(w->rt, "main");
    w->said[3] = hd_close(w->rt);
}

static void commit_one_more(world *w) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(w->rt, &tx), HD_OK);
    double was = hd_value_number(hd_tx_get(tx, w->a));
    assert_int_equal(hd_tx_set_double(tx, w->a, was + 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, wait_when_told, w), HD_OK);
}

static void who_is_told_of_a_verdict_cannot_wait_for_others(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_write_json(w.other, w.others, "100"), HD_OK);
    assert_int_equal(hd_runtime_sync(w.other), HD_OK);
    for (int i = 0; i < 5; i++) commit_one_more(&w);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    assert_int_equal(w.told, 5);
    expect_refusals(&w);
    expect_number(&w, w.a, 100);
    close_world(&w);
}

/* ---- posts */

static void count_post(hd_runtime *rt, void *ctx) {
    (void)rt;
    ((world *)ctx)->told++;
}

static void wait_and_close(hd_runtime *rt, void *ctx) {
    world *w = ctx;
    w->said[0] = hd_write_json(rt, w->b, "7");
    w->said[1] = hd_runtime_sync(rt);
    w->said[2] = hd_runtime_post(rt, count_post, w);
    w->said[3] = hd_close(rt);
}

static void a_post_may_write_and_wait_but_not_close(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_post(w.rt, wait_and_close, &w), HD_OK);
    assert_int_equal(hd_runtime_post(w.rt, count_post, &w), HD_OK);
    assert_int_equal(hd_runtime_pump(w.rt), HD_OK);
    assert_int_equal(hd_runtime_pump(w.rt), HD_OK);
    assert_int_equal(w.told, 2);
    for (int i = 0; i < 3; i++) assert_int_equal(w.said[i], HD_OK);
    assert_int_equal(w.said[3], HD_USAGE);
    assert_non_null(strstr(hd_runtime_error(w.rt)->message, "hd_runtime_stop"));
    expect_number(&w, w.b, 7);
    close_world(&w);
}

/* ---- transactions that are left open */

static void begin_and_leave(hd_runtime *rt, void *ctx) {
    world *w = ctx;
    w->said[0] = hd_tx_begin(rt, &w->left);
}

static void begin_when_told(const hd_notice *notice, void *ctx) {
    world *w = ctx;
    (void)notice;
    if (!w->told++) begin_and_leave(w->rt, w);
}

static void begin_at_the_verdict(hd_status status, void *ctx) {
    world *w = ctx;
    w->said[1] = status;
    begin_and_leave(w->rt, w);
}

/* The pump stops there, and nothing that the transaction reads changes, until it is ended. */
static void expect_the_transaction_undisturbed(world *w, double before, double after) {
    assert_int_equal(hd_runtime_pump(w->rt), HD_USAGE);
    assert_int_equal(w->said[0], HD_OK);
    assert_int_equal(hd_runtime_pump(w->rt), HD_USAGE);
    hd_value seen = hd_tx_get(w->left, w->a);
    assert_true(hd_value_number(seen) == before);
    hd_tx_abort(w->left);
    assert_int_equal(hd_runtime_pump(w->rt), HD_OK);
    expect_number(w, w->a, after);
}

static void commit_of_the_other(world *w, const char *json) {
    assert_int_equal(hd_write_json(w->other, w->others, json), HD_OK);
    assert_int_equal(hd_runtime_sync(w->other), HD_OK);
}

static void a_post_that_leaves_a_transaction_open_stops_the_pump(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_post(w.rt, begin_and_leave, &w), HD_OK);
    commit_of_the_other(&w, "2");
    expect_the_transaction_undisturbed(&w, 1, 2);
    close_world(&w);
}

static void a_listener_that_leaves_a_transaction_open_stops_the_pump(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_listen(w.rt, begin_when_told, &w), HD_OK);
    commit_of_the_other(&w, "2");
    commit_of_the_other(&w, "3");
    expect_the_transaction_undisturbed(&w, 2, 3);
    hd_runtime_unlisten(w.rt, begin_when_told, &w);
    close_world(&w);
}

static void a_verdict_function_that_leaves_a_transaction_open_stops_the_pump(void **state) {
    (void)state;
    world w = open_world();
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(w.rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, w.b, 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, begin_at_the_verdict, &w), HD_OK);
    commit_of_the_other(&w, "2");
    expect_the_transaction_undisturbed(&w, 2, 2);
    assert_int_equal(w.said[1], HD_OK);
    close_world(&w);
}

/* ---- runs */

static hd_status wait_inside(hd_tx *tx, void *ctx) {
    world *w = ctx;
    w->told++;
    w->said[0] = hd_runtime_pump(w->rt);
    w->said[1] = hd_runtime_settle(w->rt);
    w->said[2] = hd_runtime_sync(w->rt);
    w->said[3] = hd_close(w->rt);
    return hd_tx_set_double(tx, w->b, 1);
}

static void a_run_cannot_wait_nor_close(void **state) {
    (void)state;
    world w = open_world();
    hd_effect(w.rt, "waits", wait_inside, &w);
    assert_int_equal(hd_runtime_settle(w.rt), HD_OK);
    assert_int_equal(w.told, 1);
    expect_refusals(&w);
    expect_number(&w, w.b, 1);
    close_world(&w);
}

static void the_function_of_a_transaction_cannot_wait_nor_close(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_transact(w.rt, wait_inside, &w), HD_OK);
    expect_refusals(&w);
    expect_number(&w, w.b, 1);
    w = (world){ .memory = w.memory, .rt = w.rt, .other = w.other, .a = w.a, .b = w.b };
    assert_int_equal(hd_transact_later(w.rt, wait_inside, &w, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    assert_int_equal(w.told, 1);
    expect_refusals(&w);
    assert_false(hd_runtime_is_at_work(w.rt));
    close_world(&w);
}

static void wait_when_idle(void *ctx) {
    world *w = ctx;
    w->told++;
    w->said[0] = hd_runtime_pump(w->rt);
    w->said[1] = hd_runtime_settle(w->rt);
    w->said[2] = hd_runtime_sync(w->rt);
    w->said[3] = hd_close(w->rt);
}

static hd_status look(hd_tx *tx, void *ctx) {
    hd_tx_get(tx, ((world *)ctx)->a);
    return HD_OK;
}

static void who_waits_for_idle_cannot_close(void **state) {
    (void)state;
    world w = { 0 };
    assert_int_equal(hd_open(NULL, NULL, &w.rt, NULL), HD_OK);
    w.a = hd_cell_at(w.rt, "main/a");
    hd_effect(w.rt, "looks", look, &w);
    assert_int_equal(hd_runtime_settle(w.rt), HD_OK);
    assert_int_equal(hd_write_json(w.rt, w.a, "1"), HD_OK);
    assert_int_equal(hd_runtime_on_idle(w.rt, wait_when_idle, &w), HD_OK);
    assert_int_equal(hd_runtime_settle(w.rt), HD_OK);
    assert_int_equal(w.told, 1);
    expect_refusals(&w);
    assert_int_equal(hd_close(w.rt), HD_OK);
}

/* ---- what goes takes others along */

typedef struct owner {
    hd_runtime *rt;
    hd_node node, other;
    hd_cell cell;
    int released;
    hd_status said;
} owner;

static hd_status do_nothing(hd_tx *tx, void *ctx) { return (void)tx, (void)ctx, HD_OK; }

static void cancel_both(void *ctx) {
    owner *o = ctx;
    o->released++;
    hd_node_unregister(o->rt, o->other);
    hd_node_unregister(o->rt, o->node);
}

static void who_is_released_at_the_close_is_released_once(void **state) {
    (void)state;
    owner first = { 0 }, second = { 0 };
    hd_runtime *rt;
    assert_int_equal(hd_open(NULL, NULL, &rt, NULL), HD_OK);
    hd_node_spec spec = {
        .name = "first", .fn = do_nothing, .ctx = &first, .release = cancel_both, .effect = true
    };
    assert_int_equal(hd_node_register(rt, &spec, &first.node), HD_OK);
    spec.name = "second";
    spec.ctx = &second;
    assert_int_equal(hd_node_register(rt, &spec, &second.node), HD_OK);
    first.rt = second.rt = rt;
    first.other = second.node;
    second.other = first.node;
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(first.released, 1);
    assert_int_equal(second.released, 1);
}

/* ---- a node under its own child */

static hd_status take_parent(hd_tx *tx, void *ctx) {
    owner *o = ctx;
    hd_node same;
    hd_tx_get(tx, o->cell);
    hd_node_spec spec = { .fn = do_nothing, .again = o->node, .effect = true };
    o->said = hd_node_register(o->rt, &spec, &same);
    return HD_OK;
}

static hd_status have_child(hd_tx *tx, void *ctx) {
    owner *o = ctx;
    (void)tx;
    hd_node_spec spec = { .name = "child", .fn = take_parent, .ctx = o, .effect = true };
    return hd_node_register(o->rt, &spec, &o->other);
}

static void a_node_does_not_move_under_its_own_child(void **state) {
    (void)state;
    owner o = { 0 };
    assert_int_equal(hd_open(NULL, NULL, &o.rt, NULL), HD_OK);
    o.cell = hd_cell_at(o.rt, "main/a");
    o.node = hd_effect(o.rt, "parent", have_child, &o);
    assert_int_equal(hd_runtime_settle(o.rt), HD_OK);
    assert_int_equal(o.said, HD_USAGE);
    assert_int_equal(hd_node_find(o.rt, "parent").id, o.node.id);
    assert_int_equal(hd_node_find(o.rt, "parent/child").id, o.other.id);
    assert_int_equal(hd_close(o.rt), HD_OK);
}

/* ---- handles that nobody wants */

static hd_status hear_nothing(hd_tx *tx, const hd_event *event, void *ctx) { return HD_OK; }
static hd_cell build_nothing(hd_build *b, void *ctx) {
    return hd_build_constant(b, "one", hd_bool(true));
}

static void who_needs_no_handle_gives_no_room_for_it(void **state) {
    (void)state;
    hd_runtime *rt;
    hd_tx *tx;
    assert_int_equal(hd_open(NULL, NULL, &rt, NULL), HD_OK);
    hd_node_spec node = { .name = "node", .fn = do_nothing, .effect = true };
    assert_int_equal(hd_node_register(rt, &node, NULL), HD_OK);
    assert_int_not_equal(hd_node_find(rt, "node").id, 0);
    hd_handler_spec handler = { .stream = hd_cell_at(rt, "main/s"),
                                .fn = hear_nothing,
                                .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &handler, NULL), HD_OK);
    assert_int_equal(hd_pattern_register(rt, "p", "1", build_nothing, NULL), HD_OK);
    hd_piece_spec spec = { .id = "a", .pattern = "p" }, other = { .id = "b", .pattern = "p" };
    assert_int_equal(hd_piece_start(rt, &spec, NULL, NULL), HD_OK);
    assert_int_equal(hd_piece_open(rt, NULL, "a", NULL, NULL), HD_OK);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_launch_piece(tx, &other, NULL), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_not_equal(hd_piece_find(rt, NULL, "a").id, 0);
    assert_int_not_equal(hd_piece_find(rt, NULL, "b").id, 0);
    assert_int_equal(hd_close(rt), HD_OK);
}

/* ---- listings */

static void set_kind(hd_runtime *rt, const char *name, const char *kind) {
    hd_tx *tx;
    hd_cell cell = hd_cell_at(rt, name);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_json(tx, cell, "1"), HD_OK);
    assert_int_equal(hd_tx_set_kind(tx, cell, kind), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static bool change_kind(const hd_listing *entry, void *ctx) {
    world *w = ctx;
    char name[64];
    snprintf(name, sizeof name, "%s/%s", entry->space, entry->id);
    set_kind(w->rt, name, "another kind, of which nobody has heard until now");
    assert_string_equal(entry->kind, "a kind whose name is too long to be kept in a word");
    w->told++;
    return true;
}

static void what_is_listed_stays_readable_when_it_is_changed(void **state) {
    (void)state;
    world w = { 0 };
    assert_int_equal(hd_open(NULL, NULL, &w.rt, NULL), HD_OK);
    set_kind(w.rt, "main/a", "a kind whose name is too long to be kept in a word");
    set_kind(w.rt, "main/b", "a kind whose name is too long to be kept in a word");
    assert_int_equal(hd_runtime_list(w.rt, "main", NULL, NULL, change_kind, &w), HD_OK);
    assert_int_equal(w.told, 2);
    assert_int_equal(hd_close(w.rt), HD_OK);
}

/* Reads the listed document in a transaction of its own, and notes its id. */
static bool read_listed(const hd_listing *entry, void *ctx) {
    world *w = ctx;
    char name[64];
    hd_tx *tx;
    snprintf(name, sizeof name, "%s/%s", entry->space, entry->id);
    assert_int_equal(hd_tx_begin(w->rt, &tx), HD_OK);
    assert_true(hd_value_exists(hd_tx_get(tx, hd_cell_at(w->rt, name))));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(entry->id[0], 'a' + w->told);
    w->told++;
    return true;
}

static bool list_space(const char *space, void *ctx) {
    world *w = ctx;
    w->told = 0;
    assert_int_equal(hd_runtime_list(w->rt, space, NULL, NULL, read_listed, w), HD_OK);
    assert_int_equal(w->told, 3);
    assert_true(!strcmp(space, w->said[0] ? "other" : "main"));
    w->said[0] = HD_PENDING;
    return true;
}

/* hd_runtime_list, hd_runtime_spaces: callbacks may read and list; each entry is told once, and stays
 * readable until the callback returns. */
static void what_is_listed_from_a_file_may_be_read_meanwhile(void **state) {
    (void)state;
    static const char *const names[] = { "main/a",  "main/b",  "main/c",
                                         "other/a", "other/b", "other/c" };
    world w = { 0 };
    char path[256];
    folder_store(path, sizeof path, "listed.db");
    assert_int_equal(hd_open(path, NULL, &w.rt, NULL), HD_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(hd_write_json(w.rt, hd_cell_at(w.rt, names[i]), "1"), HD_OK);
    assert_int_equal(hd_close(w.rt), HD_OK); /* everything is in head rows */
    assert_int_equal(hd_open(path, NULL, &w.rt, NULL), HD_OK);
    assert_int_equal(hd_runtime_spaces(w.rt, list_space, &w), HD_OK);
    assert_int_equal(w.said[0], HD_PENDING);
    assert_int_equal(hd_close(w.rt), HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_its_function_is_refused),
        cmocka_unit_test(a_space_that_cannot_be_is_refused_everywhere),
        cmocka_unit_test(a_listener_cannot_write_nor_pump_nor_close),
        cmocka_unit_test(who_is_told_of_a_verdict_cannot_wait_for_others),
        cmocka_unit_test(a_post_may_write_and_wait_but_not_close),
        cmocka_unit_test(a_post_that_leaves_a_transaction_open_stops_the_pump),
        cmocka_unit_test(a_listener_that_leaves_a_transaction_open_stops_the_pump),
        cmocka_unit_test(a_verdict_function_that_leaves_a_transaction_open_stops_the_pump),
        cmocka_unit_test(a_run_cannot_wait_nor_close),
        cmocka_unit_test(the_function_of_a_transaction_cannot_wait_nor_close),
        cmocka_unit_test(who_waits_for_idle_cannot_close),
        cmocka_unit_test(who_is_released_at_the_close_is_released_once),
        cmocka_unit_test(a_node_does_not_move_under_its_own_child),
        cmocka_unit_test(who_needs_no_handle_gives_no_room_for_it),
        cmocka_unit_test(what_is_listed_stays_readable_when_it_is_changed),
        cmocka_unit_test_setup_teardown(what_is_listed_from_a_file_may_be_read_meanwhile,
                                        folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_unload.c -- a space is let go of: what goes, what stays, who is in the way. */
#include "lab_inside.h"

#include "spec.h"
#include <heddle/event.h>
#include <heddle/pattern.h>

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static hd_store_stats stats(void) {
    hd_store_stats now;
    hd_runtime_store_stats(rt(), &now);
    return now;
}

static hd_status unload(const char *space) {
    hd_status status = hd_runtime_unload(rt(), space);
    lab_check_all(l);
    return status;
}

/* C129: all entries of a space that is unloaded are gone, and nothing else has changed. */
static void an_unloaded_space_has_no_entries(void **state) {
    lab_set(l, "side/a", 1);
    lab_set_json(l, "side/b", "{\"x\": 2, \"y\": 3}");
    lab_set(l, "n", 10);
    lab_settle(l);
    assert_int_equal(unload("side"), HD_OK);
    uint32_t documents = lab_known(rt());

    lab_compute(l, "sum", "n side/a side/b#/x ~side/b", NULL);
    lab_effect(l, "show", "sum");
    lab_settle(l);
    assert_seen(l, "show", "13");
    assert_int_equal(lab_readers_in(l, "side"), 3);
    lab_cancel(l, "show");
    lab_settle(l);
    lab_ran(l);
    assert_true(lab_is_clean(l, "sum"));
    assert_int_equal(lab_readers_in(l, "side"), 3);

    assert_int_equal(unload("side"), HD_OK);
    assert_int_equal(lab_readers_in(l, "side"), 0);
    assert_int_equal(lab_known(rt()), documents + 1); /* sum */
    assert_false(lab_is_clean(l, "sum"));
    assert_json(l, "side/a", "1");
    assert_json(l, "side/b", "{\"x\":2,\"y\":3}");
    lab_settle(l);
    assert_ran(l, "");

    lab_effect(l, "again", "sum");
    lab_settle(l);
    assert_ran(l, "sum again");
    lab_set_json(l, "side/b#/x", "5");
    lab_settle(l);
    assert_ran(l, "sum again");
    assert_seen(l, "again", "16");
}

/* Whoever is live, and reads there, is in the way, and is named. */
static void a_live_reader_is_in_the_way(void **state) {
    lab_set(l, "side/a", 1);
    lab_effect(l, "show", "side/a");
    lab_settle(l);
    assert_int_equal(hd_runtime_unload(rt(), "side"), HD_BUSY);
    assert_string_equal(
        hd_runtime_error(rt())->message,
        "space \"side\" is in use: node \"show\" reads side/a; unregister it first");
    assert_int_equal(lab_readers_in(l, "side"), 1);
    assert_int_equal(unload("main"), HD_OK);
    lab_set(l, "side/a", 2);
    lab_settle(l);
    assert_seen(l, "show", "2");
    lab_cancel(l, "show");
    assert_int_equal(unload("side"), HD_OK);
}

static hd_status take(hd_tx *tx, const hd_event *e, void *ctx) {
    (void)tx, (void)e, (void)ctx;
    return HD_OK;
}

/* So is a handler, to whom events may be posted. */
static void a_handler_is_in_the_way(void **state) {
    hd_handler_spec spec = { .stream = lab_cell(lab_on(l, "a"), "side/clicks"),
                             .fn = take,
                             .name = "click",
                             .reads_nothing = true };
    hd_handler handler;
    assert_int_equal(hd_handler_register(rt(), &spec, &handler), HD_OK);
    assert_int_equal(hd_runtime_unload(rt(), "side"), HD_BUSY);
    assert_string_equal(hd_runtime_error(rt())->message,
                        "space \"side\" is in use: handler \"click\" takes events at side/clicks; "
                        "unregister it first");
    hd_handler_unregister(rt(), handler);
    assert_int_equal(unload("side"), HD_OK);
}

/* What another writer does there is not heard of any more, and found by the next read. */
static void a_followed_space_is_followed_no_longer(void **state) {
    lab_on(l, "b");
    lab_on(l, "a");
    assert_int_equal(hd_runtime_follow(rt(), "side"), HD_OK);
    hd_store_stats before = stats();
    for (int i = 0; i < 50; i++) lab_dof(lab_on(l, "b"), "set side/d%d %d", i, i);
    lab_on(l, "a");
    for (int i = 0; i < 3; i++) {
        lab_settle(l);
        lab_advance_ms(l, 100);
    }
    lab_settle(l);
    assert_int_equal(stats().documents, before.documents + 50);

    assert_int_equal(unload("side"), HD_OK);
    assert_int_equal(stats().documents, before.documents);
    assert_int_equal(stats().places, before.places);
    uint64_t changes = stats().changes;
    lab_dof(lab_on(l, "b"), "set side/d7 77");
    lab_on(l, "a");
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_int_equal(stats().changes, changes);
    assert_json(l, "side/d7", "77");
    assert_json(l, "side/d8", "8");
}

/* Volatile documents are nowhere else. */
static void what_lives_here_only_stays(void **state) {
    hd_cell cursor = lab_cell(lab_on(l, "a"), "side/cursor");
    assert_int_equal(hd_cell_set_volatile(rt(), cursor), HD_OK);
    lab_set(l, "side/cursor", 3);
    lab_set(l, "side/a", 1);
    lab_compute(l, "double", "n", NULL);
    lab_settle(l);
    assert_int_equal(unload("side"), HD_OK);
    assert_json(l, "side/cursor", "3");
    assert_json(l, "side/a", "1");
}

/* A commit that names what was reloaded is judged as any other. */
static void writing_goes_on_after_a_reload(void **state) {
    lab_set(l, "side/a", 1);
    lab_settle(l);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unload("side"), HD_OK);
        lab_fate *fate = lab_do(lab_on(l, "a"), "get side/a; increment side/a 1");
        lab_settle(l);
        assert_int_equal(fate->status, HD_OK);
    }
    assert_json(l, "side/a", "4");
}

static void look(hd_value v, void *ctx) {
    (void)ctx;
    lab_note(l, hd_value_as_double(v, 0) == 6 ? "six" : "other");
}
static hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx, (void)ctx;
    lab_note(l, "twice");
    return hd_double(2 * hd_value_number(in));
}
static hd_cell watcher(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), twice, NULL);
    hd_build_sink(b, "look", d, look, NULL);
    return d;
}

/* A piece that was stopped does not stand in the way, and goes on from the store. */
static void a_stopped_piece_goes_on_after_a_reload(void **state) {
    hd_piece p;
    hd_error error;
    assert_int_equal(hd_pattern_register(rt(), "watcher", "1", watcher, NULL), HD_OK);
    hd_piece_spec spec = { .space = "side", .id = "w", .pattern = "watcher" };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, &error), HD_OK);
    lab_set(l, "side/w#/arguments/x", 3);
    lab_settle(l);
    lab_ran(l);
    assert_int_equal(hd_runtime_unload(rt(), "side"), HD_BUSY);
    hd_piece_stop(rt(), p);
    assert_int_equal(unload("side"), HD_OK);
    assert_int_equal(lab_readers_in(l, "side"), 0);

    assert_int_equal(hd_piece_open(rt(), "side", "w", &p, &error), HD_OK);
    lab_settle(l);
    assert_ran(l, "six");
    lab_set(l, "side/w#/arguments/x", 4);
    lab_settle(l);
    assert_ran(l, "twice other");
}

/* One that nobody looks at need not be stopped. */
static hd_cell unseen(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 3)), twice, NULL);
}
static void a_dormant_piece_is_not_in_the_way(void **state) {
    hd_piece p;
    hd_error error;
    assert_int_equal(hd_pattern_register(rt(), "unseen", "1", unseen, NULL), HD_OK);
    hd_piece_spec spec = { .space = "side", .id = "u", .pattern = "unseen" };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, &error), HD_OK);
    lab_effect(l, "show", "side/u/d");
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_int_equal(hd_runtime_unload(rt(), "side"), HD_BUSY);
    lab_cancel(l, "show");
    lab_settle(l);
    assert_int_equal(unload("side"), HD_OK);
    assert_int_equal(lab_readers_in(l, "side"), 0);
    lab_effect(l, "again", "side/u/d");
    lab_settle(l);
    assert_ran(l, "twice again");
    lab_set(l, "side/u#/arguments/x", 4);
    lab_settle(l);
    assert_ran(l, "twice again");
    assert_seen(l, "again", "8.0");
}

static hd_status read_and_suspend(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "side/a");
    hd_status status = self->runs > 1 ? HD_OK : hd_tx_suspend(tx, self->data);
    return status || self->runs > 1 ? status : HD_PENDING;
}

/* A run under way that has read there, which nobody could know, begins again. */
static void a_suspended_run_begins_again(void **state) {
    hd_run *run = NULL;
    lab_set(l, "side/a", 1);
    lab_node *slow =
        lab_add(l, .name = "slow", .effect = true, .body = read_and_suspend, .data = &run);
    lab_turn(l);
    assert_non_null(run);
    assert_int_equal(unload("side"), HD_OK);
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    assert_int_equal(slow->runs, 2);
    assert_int_equal(lab_readers_in(l, "side"), 1);
    lab_set(l, "side/a", 2);
    lab_settle(l);
    assert_int_equal(slow->runs, 3);
}

static void a_transaction_is_in_the_way(void **state) {
    hd_tx *tx;
    lab_set(l, "side/a", 1);
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    assert_int_equal(hd_runtime_unload(rt(), "side"), HD_USAGE);
    hd_tx_abort(tx);
    assert_int_equal(unload("nobody has heard of it"), HD_OK);
}

/* ---- a store of one's own: what is confirmed stands in the replica, and must not be lost */

static double number_at(hd_runtime *own, const char *cell) {
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(own), &pool)) return -1;
    double d = hd_value_as_double(hd_read(own, pool, hd_cell_at(own, cell)), -1);
    hd_pool_close(pool);
    return d;
}

static void note_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

static hd_status create(hd_runtime *own, const char *cell) {
    hd_tx *tx;
    hd_status verdict = HD_PENDING;
    assert_int_equal(hd_tx_begin(own, &tx), HD_OK);
    assert_int_equal(hd_tx_require_absent(tx, hd_cell_at(own, cell)), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, hd_cell_at(own, cell), 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, note_verdict, &verdict), HD_OK);
    assert_int_equal(hd_runtime_sync(own), HD_OK);
    return verdict;
}

static bool count_one(const hd_listing *entry, void *ctx) {
    (void)entry;
    (*(int *)ctx)++;
    return true;
}

static void remove_it(hd_runtime *own, const char *cell) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(own, &tx), HD_OK);
    assert_int_equal(hd_tx_remove(tx, hd_cell_at(own, cell)), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* C129 in a store of one's own. */
static void a_store_of_ones_own_loses_nothing(void **state) {
    hd_runtime *own;
    assert_int_equal(hd_open(NULL, NULL, &own, NULL), HD_OK);
    for (int round = 0; round < 3; round++) {
        hd_write_json(own, hd_cell_at(own, "side/a"), round ? "20" : "10");
        hd_write_json(own, hd_cell_at(own, "side/gone"), "1");
        remove_it(own, "side/gone");
        assert_int_equal(hd_runtime_unload(own, "side"), HD_OK);
        assert_int_equal(lab_known(own), 0);
        int listed = 0;
        assert_int_equal(hd_runtime_list(own, "side", NULL, NULL, count_one, &listed), HD_OK);
        assert_int_equal(listed, 1);
        assert_true(number_at(own, "side/a") == (round ? 20 : 10));
        assert_true(number_at(own, "side/gone") == -1);
        assert_int_equal(create(own, "side/gone"), HD_EXISTS); /* a tombstone counts */
        hd_write_json(own, hd_cell_at(own, "side/a"), "15");
        assert_true(number_at(own, "side/a") == 15);
    }
    assert_int_equal(hd_close(own), HD_OK);
}

/* ---- no memory */

typedef struct life {
    hd_runtime *rt;
    hd_cell n, sum;
} life;

static hd_status copy(hd_tx *tx, void *ctx) {
    const life *w = ctx;
    hd_value v = hd_tx_get(tx, w->n);
    return hd_value_status(v) ? hd_value_status(v) : hd_tx_set(tx, w->sum, v);
}

static bool unload_and_read(life *w) {
    w->n = hd_cell_at(w->rt, "side/n");
    w->sum = hd_cell_at(w->rt, "main/sum");
    if (!w->n.id || !w->sum.id || hd_write(w->rt, w->n, hd_double(3.5))) return false;
    hd_node made = hd_compute(w->rt, "sum", copy, w, w->sum);
    if (!made.id || hd_runtime_settle(w->rt)) return false;
    hd_status status = hd_runtime_unload(w->rt, "side");
    assert_true(status == HD_OK || status == HD_NOMEM);
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(w->rt), &pool)) return false;
    hd_value v = hd_read(w->rt, pool, w->n);
    if (!hd_value_status(v)) assert_true(hd_value_as_double(v, 0) == 3.5);
    hd_pool_close(pool);
    return !status;
}

static void one_life(lab_env *world, void *ctx) {
    hd_memory *memory = NULL;
    bool shared = *(bool *)ctx;
    if (shared && hd_memory_open(lab_env_of(world), &memory)) return;
    hd_options options = { .env = lab_env_of(world), .memory = memory };
    life w = { 0 };
    bool well = !hd_open(NULL, &options, &w.rt, NULL);
    well = well && unload_and_read(&w);
    assert_true(well || lab_env_failed(world));
    hd_close(w.rt);
    hd_memory_close(memory);
}

static void no_memory_loses_nothing(void **state) {
    for (int shared = 0; shared < 2; shared++)
        assert_true(lab_each_allocation_failure(one_life, &(bool){ shared }) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(an_unloaded_space_has_no_entries),
        S(a_live_reader_is_in_the_way),
        S(a_handler_is_in_the_way),
        S(a_followed_space_is_followed_no_longer),
        S(what_lives_here_only_stays),
        S(writing_goes_on_after_a_reload),
        S(a_stopped_piece_goes_on_after_a_reload),
        S(a_dormant_piece_is_not_in_the_way),
        S(a_suspended_run_begins_again),
        S(a_transaction_is_in_the_way),
        cmocka_unit_test(a_store_of_ones_own_loses_nothing),
        cmocka_unit_test(no_memory_loses_nothing),
    };
    LAB_EVERYWHERE(tests);
}

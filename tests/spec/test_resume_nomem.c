/* Resuming without memory: every allocation of two lives fails once, alone and with all that follow.
 * Nothing leaks or hangs; what is stale is never taken for clean. */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/pattern.h>
#include <heddle/scheduler.h>
#include <string.h>

typedef struct life {
    hd_runtime *rt;
    hd_cell n, twice, more;
    double seen;
    int runs;
} life;

static hd_status add(hd_tx *tx, life *w, hd_cell from, hd_cell to) {
    hd_value v = hd_tx_get(tx, from);
    if (hd_value_status(v)) return hd_value_status(v);
    w->runs++;
    return hd_tx_set_double(tx, to, hd_value_number(v) * 2);
}
static hd_status run_twice(hd_tx *tx, void *ctx) {
    life *w = ctx;
    return add(tx, w, w->n, w->twice);
}
static hd_status run_more(hd_tx *tx, void *ctx) {
    life *w = ctx;
    return add(tx, w, w->twice, w->more);
}
static hd_status look(hd_tx *tx, void *ctx) {
    life *w = ctx;
    hd_value v = hd_tx_get(tx, w->more);
    if (hd_value_status(v)) return hd_value_status(v);
    w->seen = hd_value_as_double(v, 0);
    return HD_OK;
}

static void ignore(const hd_failure *failure, void *ctx) { (void)ctx, (void)failure; }

static bool start(life *w, lab_env *world, hd_memory *memory, double n) {
    hd_options options = { .env = lab_env_of(world), .memory = memory };
    *w = (life){ 0 };
    if (hd_open(NULL, &options, &w->rt, NULL)) return false;
    w->n = hd_cell_at(w->rt, "main/n");
    w->twice = hd_cell_at(w->rt, "main/twice");
    w->more = hd_cell_at(w->rt, "main/more");
    hd_status status = hd_runtime_on_error(w->rt, ignore, NULL);
    if (!status && n != 0) status = hd_write(w->rt, w->n, hd_double(n));
    return !status && hd_compute(w->rt, "twice", run_twice, w, w->twice).id &&
           hd_compute(w->rt, "more", run_more, w, w->more).id &&
           hd_effect(w->rt, "look", look, w).id;
}
static bool settle(const life *w) {
    hd_status status = HD_OK;
    for (int i = 0; i < 3; i++) status = hd_runtime_settle(w->rt);
    return !status;
}
static bool end(const life *w) { return !w->rt || !hd_close(w->rt); }

static bool live(life *w, lab_env *world, hd_memory *memory, double n) {
    bool well = start(w, world, memory, n) && settle(w);
    return end(w) && well;
}

static void two_lives(lab_env *world, void *ctx) {
    hd_memory *memory;
    life first, second;
    (void)ctx;
    if (hd_memory_open(lab_env_of(world), &memory)) return;
    bool one = live(&first, world, memory, 3);
    bool two = live(&second, world, memory, 0);
    if (one && two) assert_true(second.seen == 12);
    if (!lab_env_failed(world)) {
        assert_true(one && two);
        assert_int_equal(second.runs, 0);
    }
    hd_memory_close(memory);
}

static void resuming_survives_every_failed_allocation(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(two_lives, NULL) > 50);
}

/* One runs what the other has too, which hears of it later. */
static void two_at_once(lab_env *world, void *ctx) {
    hd_memory *memory;
    life one = { 0 }, other = { 0 };
    (void)ctx;
    if (hd_memory_open(lab_env_of(world), &memory)) return;
    bool well = start(&one, world, memory, 3) && settle(&one) && start(&other, world, memory, 0) &&
                settle(&other) && settle(&one);
    int before = one.runs;
    well = well && !hd_write(other.rt, other.n, hd_double(4)) && settle(&other) &&
           !hd_runtime_sync(other.rt) && settle(&one);
    if (well) assert_true(one.seen == 16 && other.seen == 16);
    if (!lab_env_failed(world)) {
        assert_true(well);
        assert_int_equal(one.runs, before);
    }
    end(&other);
    end(&one);
    hd_memory_close(memory);
}

static void adopting_survives_every_failed_allocation(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(two_at_once, NULL) > 50);
}

/* ---- pieces: what they derive says whose it is, and finds them */

static hd_value doubled(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    return hd_int(hd_tx_pool(tx), 2 * hd_value_as_int(in, 0));
}
static hd_cell build_doubler(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_cell_at(hd_build_runtime(b), "main/n"), doubled, NULL);
}
static bool open_with_pattern(life *w, lab_env *world, hd_memory *memory) {
    hd_options options = { .env = lab_env_of(world), .memory = memory };
    *w = (life){ 0 };
    if (hd_open(NULL, &options, &w->rt, NULL)) return false;
    w->more = hd_cell_at(w->rt, "main/q/d");
    return !hd_runtime_on_error(w->rt, ignore, NULL) &&
           !hd_pattern_register(w->rt, "doubler", "1", build_doubler, NULL) &&
           hd_effect(w->rt, "look", look, w).id;
}

/* The second life starts nothing: that somebody looks is enough. */
static void a_piece_and_who_looks(lab_env *world, void *ctx) {
    hd_memory *memory;
    life w;
    hd_piece piece;
    (void)ctx;
    if (hd_memory_open(lab_env_of(world), &memory)) return;
    bool well =
        open_with_pattern(&w, world, memory) &&
        !hd_write(w.rt, hd_cell_at(w.rt, "main/n"), hd_double(3)) &&
        !hd_piece_start(w.rt, &(hd_piece_spec){ .id = "q", .pattern = "doubler" }, &piece, NULL) &&
        settle(&w);
    well = end(&w) && well;
    bool opened = open_with_pattern(&w, world, memory) &&
                  !hd_write(w.rt, hd_cell_at(w.rt, "main/n"), hd_double(4)) && settle(&w);
    if (!lab_env_failed(world)) assert_true(well && opened && w.seen == 8);
    end(&w);
    hd_memory_close(memory);
}

static void demand_survives_every_failed_allocation(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(a_piece_and_who_looks, NULL) > 50);
}

static bool count_stale(const hd_stale_piece *piece, void *ctx) {
    *(uint64_t *)ctx += piece->nodes;
    return true;
}

/* A listing that succeeds has all of them. */
static void a_piece_that_is_stale(lab_env *world, void *ctx) {
    hd_memory *memory;
    life w;
    hd_piece piece;
    uint64_t stale = 0;
    (void)ctx;
    if (hd_memory_open(lab_env_of(world), &memory)) return;
    bool well =
        open_with_pattern(&w, world, memory) &&
        !hd_write(w.rt, hd_cell_at(w.rt, "main/n"), hd_double(3)) &&
        !hd_piece_start(w.rt, &(hd_piece_spec){ .id = "q", .pattern = "doubler" }, &piece, NULL) &&
        settle(&w);
    well = end(&w) && well;
    hd_options options = { .env = lab_env_of(world), .memory = memory };
    w = (life){ 0 };
    well = well && !hd_open(NULL, &options, &w.rt, NULL) &&
           !hd_write(w.rt, hd_cell_at(w.rt, "main/n"), hd_double(4)) && !hd_runtime_sync(w.rt);
    well = well && !lab_env_failed(world);
    if (well && !hd_store_stale_pieces(w.rt, count_stale, &stale)) assert_int_equal(stale, 1);
    end(&w);
    hd_memory_close(memory);
}

static void no_stale_piece_is_left_out_for_want_of_memory(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(a_piece_that_is_stale, NULL) > 50);
}

/* The gates that were set before a stop are stored or, without memory, lost; nobody waits for them. */
static void a_piece_that_stops_with_gates(lab_env *world, void *ctx) {
    hd_memory *memory;
    life w;
    hd_piece piece;
    (void)ctx;
    if (hd_memory_open(lab_env_of(world), &memory)) return;
    bool well =
        open_with_pattern(&w, world, memory) &&
        !hd_write(w.rt, hd_cell_at(w.rt, "main/n"), hd_double(3)) &&
        !hd_piece_start(w.rt, &(hd_piece_spec){ .id = "q", .pattern = "doubler" }, &piece, NULL) &&
        settle(&w);
    if (well) {
        hd_node node = hd_node_find(w.rt, "main:q:d");
        assert_true(node.id);
        hd_node_set_throttle(w.rt, node, 400);
        hd_piece_stop(w.rt, piece);
    }
    end(&w);
    hd_memory_close(memory);
}

static void stopping_with_gates_survives_every_failed_allocation(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(a_piece_that_stops_with_gates, NULL) > 50);
}

/* ---- lists: what somebody else has put in place of one does not stay */

static hd_value is_many(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx, (void)ctx;
    return hd_bool(hd_value_number(in) > 1);
}
static hd_status look_at_first(hd_tx *tx, void *ctx) {
    life *w = ctx;
    hd_value v = hd_tx_get(tx, w->more);
    if (hd_value_status(v)) return hd_value_status(v);
    w->seen = hd_value_as_double(hd_value_index(v, 0), 0);
    return HD_OK;
}
static hd_cell build_many(hd_build *b, void *ctx) {
    hd_cell items = hd_cell_at(hd_build_runtime(b), "main/items");
    return hd_build_filter(b, "many", items, &(hd_each){ .fn = is_many });
}

/* What has yet to arrive has done so after a few pumps. */
static bool write_json(const life *w, const char *cell, const char *json) {
    hd_status status = HD_PENDING;
    for (int i = 0; i < 8 && status == HD_PENDING; i++) {
        status = hd_write_json(w->rt, hd_cell_at(w->rt, cell), json);
        if (status == HD_PENDING) hd_runtime_pump(w->rt);
    }
    return !status;
}
static bool start_piece(const life *w) {
    hd_piece piece;
    hd_status status = HD_PENDING;
    for (int i = 0; i < 8 && status == HD_PENDING; i++) {
        status =
            hd_piece_start(w->rt, &(hd_piece_spec){ .id = "q", .pattern = "many" }, &piece, NULL);
        if (status == HD_PENDING) hd_runtime_pump(w->rt);
    }
    return !status;
}

static bool live_with_list(life *w, lab_env *world, hd_memory *memory, const char *cell,
                           const char *json) {
    hd_options options = { .env = lab_env_of(world), .memory = memory };
    *w = (life){ 0 };
    if (hd_open(NULL, &options, &w->rt, NULL)) return false;
    w->more = hd_cell_at(w->rt, "main/q/many");
    bool well = w->more.id && !hd_runtime_on_error(w->rt, ignore, NULL) &&
                !hd_pattern_register(w->rt, "many", "1", build_many, NULL) &&
                write_json(w, cell, json) && start_piece(w) &&
                hd_effect(w->rt, "look", look_at_first, w).id && settle(w);
    return end(w) && well;
}

static void a_list_that_is_mended(lab_env *world, void *ctx) {
    hd_memory *memory;
    life first, second;
    if (hd_memory_open(lab_env_of(world), &memory)) return;
    if (ctx) hd_memory_load_late(memory);
    bool one = live_with_list(&first, world, memory, "main/items", "[1,2,3]");
    bool two = one && live_with_list(&second, world, memory, "main/q/many", "[7]");
    if (one && two) assert_true(first.seen == 2 && second.seen == 2);
    if (!lab_env_failed(world)) assert_true(one && two);
    hd_memory_close(memory);
}

static void mending_survives_every_failed_allocation(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(a_list_that_is_mended, NULL) > 50);
}
static void mending_what_arrives_late_survives_every_failed_allocation(void **state) {
    static bool late = true;
    (void)state;
    assert_true(lab_each_allocation_failure(a_list_that_is_mended, &late) > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resuming_survives_every_failed_allocation),
        cmocka_unit_test(adopting_survives_every_failed_allocation),
        cmocka_unit_test(demand_survives_every_failed_allocation),
        cmocka_unit_test(no_stale_piece_is_left_out_for_want_of_memory),
        cmocka_unit_test(stopping_with_gates_survives_every_failed_allocation),
        cmocka_unit_test(mending_survives_every_failed_allocation),
        cmocka_unit_test(mending_what_arrives_late_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_readers.c -- lists of readers whose slots do not stand in two bytes any more. */
#include "graph_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define MANY (READER_SLOT_MAX + 3000U)

static world w;
static lab_env *env;
static uint32_t keys[MANY + 1];

static int open_world(void **state) {
    env = lab_env_open();
    world_open(&w, lab_env_of(env));
    char name[16];
    for (uint32_t i = 0; i <= MANY; i++) {
        snprintf(name, sizeof name, "d%u", i);
        keys[i] = world_place(&w, name);
        assert_int_not_equal(keys[i], 0);
    }
    return 0;
}
static int close_world(void **state) {
    world_close(&w);
    lab_env_close(env);
    return 0;
}

static node_id effect_that_reads(const uint32_t *read, uint32_t count) {
    node_id id = world_node(&w);
    graph_node(&w.graph, id)->flags |= NODE_EFFECT;
    graph_demand(&w.graph, id);
    assert_int_equal(graph_apply_reads(&w.graph, id, read, count), HD_OK);
    graph_check(&w.graph);
    return id;
}

static const watch *list_of(uint32_t key) {
    return watch_list(place_at(&w.places, key & KEY_PLACE)->watch);
}

/* The last reads of a set of 68,000 stand in wide lists, the others do not. */
static void a_slot_beyond_two_bytes_widens_its_list_only(void **state) {
    node_id wide = effect_that_reads(keys, MANY), other = effect_that_reads(keys, 2);
    node_id last = effect_that_reads(&keys[MANY - 1], 1);
    assert_false(list_of(keys[0])->wide);
    assert_true(list_of(keys[MANY - 1])->wide);
    assert_int_equal(watch_at(list_of(keys[MANY - 1]), 0).slot, MANY - 1);
    world_remove(&w, wide);
    world_remove(&w, other);
    world_remove(&w, last);
    world_settle(&w);
    for (uint32_t i = 0; i < MANY; i++) assert_int_equal(place_at(&w.places, keys[i])->watch, 0);
}

/* One read more at the front: every other one moves, some of them past what two bytes hold. */
static void reads_that_move_far_back_keep_their_entries(void **state) {
    node_id other = effect_that_reads(keys, MANY + 1);
    node_id moves = effect_that_reads(keys + 1, READER_SLOT_MAX + 1);
    assert_int_equal(graph_apply_reads(&w.graph, moves, keys, READER_SLOT_MAX + 2), HD_OK);
    graph_check(&w.graph);
    assert_int_equal(graph_apply_reads(&w.graph, other, keys, 1), HD_OK);
    graph_check(&w.graph);
}

/* Without memory for the wide list, or any other step, the old read set stands. */
static void a_refused_widening_changes_nothing(void **state) {
    effect_that_reads(keys, READER_SLOT_MAX + 1);
    node_id moves = effect_that_reads(keys + 1, READER_SLOT_MAX + 1);
    hd_status status = HD_NOMEM;
    for (uint64_t n = 1; status; n++) {
        lab_env_fail_at(env, n);
        status = graph_apply_reads(&w.graph, moves, keys, READER_SLOT_MAX + 2);
        lab_env_fail_at(env, 0);
        const node *at = graph_node(&w.graph, moves);
        assert_int_equal(at->read_count, READER_SLOT_MAX + (status ? 1 : 2));
        assert_int_equal(node_reads_const(at)[0].key, keys[status ? 1 : 0]);
        graph_check(&w.graph);
    }
}

/* What one node with very many reads once needed is not paid for by all who come after it. */
static void a_small_change_costs_no_more_after_a_large_one(void **state) {
    uint32_t turned[20];
    node_id large = effect_that_reads(keys, MANY), small = effect_that_reads(keys, 20);
    assert_int_equal(graph_apply_reads(&w.graph, large, keys + 1, MANY), HD_OK);
    assert_true(w.graph.seen_capacity > 100000);
    uint32_t last = w.graph.seen_capacity - 1;
    w.graph.seen[last] = 12345;
    for (uint32_t i = 0; i < 20; i++) turned[i] = keys[20 - i];
    assert_int_equal(graph_apply_reads(&w.graph, small, turned, 20), HD_OK);
    graph_check(&w.graph);
    assert_int_equal(w.graph.seen[last], 12345);
}

int main(void) {
#define W(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)
    const struct CMUnitTest tests[] = {
        W(a_slot_beyond_two_bytes_widens_its_list_only),
        W(reads_that_move_far_back_keep_their_entries),
        W(a_refused_widening_changes_nothing),
        W(a_small_change_costs_no_more_after_a_large_one),
    };
#undef W
    return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}

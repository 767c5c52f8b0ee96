/* test_live.c -- who is demanded: references, cycles, linking, what it costs. */
#include "graph_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static world w;
static lab_env *env;

static int open_world(void **state) {
    env = lab_env_open();
    world_open(&w, lab_env_of(env));
    return 0;
}
static int close_world(void **state) {
    world_close(&w);
    lab_env_close(env);
    return 0;
}

static bool linked(node_id id) { return graph_node(&w.graph, id)->flags & NODE_LINKED; }

static void remove_and_settle(node_id id) {
    world_remove(&w, id);
    world_settle(&w);
}

/* C34: a new edge whose reader is live gives the writer exactly one reference. */
static void an_edge_from_a_live_reader_gives_one_reference(void **state) {
    node_id a = world_writer(&w, "a");
    assert_int_equal(world_refs(&w, a), 0);
    node_id e = world_effect(&w, "a");
    assert_int_equal(world_refs(&w, a), 1);
    assert_true(world_live(&w, a));
    world_reads(&w, e, world_place(&w, "a")); /* the same again */
    assert_int_equal(world_refs(&w, a), 1);
    graph_check(&w.graph);
}

/* C35: a new edge whose reader is dormant gives none. */
static void an_edge_from_a_dormant_reader_gives_none(void **state) {
    node_id a = world_writer(&w, "a");
    node_id b = world_compute(&w, "a", "b");
    assert_int_equal(world_refs(&w, a), 0);
    assert_int_equal(graph_mark_clean(&w.graph, b), HD_OK); /* linked, and dormant all the same */
    assert_true(linked(b));
    assert_int_equal(world_refs(&w, a), 0);
    assert_false(world_live(&w, a));
    graph_check(&w.graph);
}

/* C36: the far end of a chain of dormant computations becomes live, and so does all of it. */
static void demand_reaches_the_whole_chain(void **state) {
    node_id chain[10];
    char reads[16], writes[16];
    for (int i = 0; i < 10; i++) {
        snprintf(reads, sizeof reads, "v%d", i);
        snprintf(writes, sizeof writes, "v%d", i + 1);
        chain[i] = world_compute(&w, reads, writes);
    }
    for (int i = 0; i < 10; i++) assert_false(world_live(&w, chain[i]));
    node_id e = world_effect(&w, "v10");
    for (int i = 0; i < 10; i++) {
        assert_true(world_live(&w, chain[i]) && linked(chain[i]));
        assert_int_equal(world_refs(&w, chain[i]), 1);
    }
    remove_and_settle(e);
    for (int i = 0; i < 10; i++) assert_false(world_live(&w, chain[i]) || linked(chain[i]));
}

/* C37: references of a diamond go 2, 1, 0; live until the last. */
static void a_diamond_counts_both_arms(void **state) {
    node_id a = world_writer(&w, "a");
    node_id left = world_compute(&w, "a", "l"), right = world_compute(&w, "a", "r");
    node_id e = world_node(&w);
    uint32_t keys[] = { world_place(&w, "l"), world_place(&w, "r") };
    assert_int_equal(graph_apply_reads(&w.graph, e, keys, 2), HD_OK);
    graph_demand(&w.graph, e);
    assert_int_equal(world_refs(&w, a), 2);

    assert_int_equal(graph_apply_reads(&w.graph, e, keys, 1), HD_OK);
    world_settle(&w);
    assert_int_equal(world_refs(&w, a), 1);
    assert_true(world_live(&w, a) && world_live(&w, left) && !world_live(&w, right));

    assert_int_equal(graph_apply_reads(&w.graph, e, keys, 0), HD_OK);
    world_settle(&w);
    assert_int_equal(world_refs(&w, a), 0);
    assert_false(world_live(&w, a) || world_live(&w, left));
}

/* C38: a cycle of two demanded by one effect goes dormant with it. */
static void a_cycle_does_not_keep_itself_live(void **state) {
    node_id a = world_compute(&w, "b", "a"), b = world_compute(&w, "a", "b");
    node_id e = world_effect(&w, "b");
    world_settle(&w);
    assert_true(world_live(&w, a) && world_live(&w, b));
    assert_int_equal(world_refs(&w, b), 2);
    assert_int_equal(w.graph.back_edges.count, 1);
    remove_and_settle(e);
    assert_false(world_live(&w, a) || world_live(&w, b));
    assert_int_equal(world_refs(&w, a) + world_refs(&w, b), 0);
    assert_int_equal(w.graph.back_edges.count, 0); /* they are invalid, hence linked nowhere */
}

/* The same while its nodes are clean: they stay linked, and the back edge stays. */
static void a_clean_cycle_goes_dormant_too(void **state) {
    node_id a = world_compute(&w, "b", "a"), b = world_compute(&w, "a", "b");
    node_id e = world_effect(&w, "b");
    graph_set_clean(&w.graph, graph_node(&w.graph, a));
    graph_set_clean(&w.graph, graph_node(&w.graph, b));
    remove_and_settle(e);
    assert_false(world_live(&w, a) || world_live(&w, b));
    assert_true(linked(a) && linked(b));
    assert_int_equal(w.graph.back_edges.count, 1);
}

/* C39: a cycle kept live by a materialiser goes dormant when the materialiser is none any more. */
static void a_cycle_of_a_materialiser_goes_dormant(void **state) {
    node_id a = world_compute(&w, "b", "a"), b = world_compute(&w, "a", "b");
    place_id envelope = world_place(&w, "rows");
    assert_int_equal(graph_add_envelope(&w.graph, a, envelope), HD_OK);
    graph_demand(&w.graph, a);
    assert_true(world_live(&w, a) && world_live(&w, b));
    graph_remove_envelope(&w.graph, a, envelope);
    graph_withdraw(&w.graph, a);
    world_settle(&w);
    assert_false(world_live(&w, a) || world_live(&w, b));
}

/* C40: a root that loses a reader has one reference less and stays live. */
static void a_root_outlives_its_reader(void **state) {
    node_id a = world_writer(&w, "a");
    graph_demand(&w.graph, a);
    node_id e = world_effect(&w, "a");
    assert_int_equal(world_refs(&w, a), 2);
    remove_and_settle(e);
    assert_int_equal(world_refs(&w, a), 1);
    assert_true(world_live(&w, a));
}

/* C41: the root of one branch dies, the other branch is untouched. */
static void branches_are_independent(void **state) {
    node_id a = world_writer(&w, "a"), b = world_writer(&w, "b");
    node_id ea = world_effect(&w, "a");
    world_effect(&w, "b");
    uint64_t visits = w.graph.demand_visits;
    remove_and_settle(ea);
    assert_false(world_live(&w, a));
    assert_true(world_live(&w, b));
    assert_int_equal(w.graph.demand_visits - visits, 1);
}

/* C42, C21: a writer that registers after its readers recovers what they hold, and passes it on. */
static void a_late_writer_recovers_its_references(void **state) {
    world_effect(&w, "b");
    world_effect(&w, "b");
    node_id a = world_writer(&w, "a");
    node_id b = world_node(&w);
    world_reads(&w, b, world_place(&w, "a"));
    assert_int_equal(graph_add_output(&w.graph, b, world_place(&w, "b")), HD_OK);
    assert_int_equal(world_refs(&w, b), 2);
    assert_int_equal(world_refs(&w, a), 1);
    graph_check(&w.graph);
}

/* C44: a node that reads what it writes has no edge to itself. */
static void a_node_is_not_its_own_reader(void **state) {
    node_id a = world_compute(&w, "a", "a");
    graph_demand(&w.graph, a);
    assert_int_equal(world_refs(&w, a), 1);
    assert_int_equal(w.graph.back_edges.count, 0);
    graph_withdraw(&w.graph, a);
    world_settle(&w);
    assert_false(world_live(&w, a));
}

/* C45: readers and writers that left are not counted, and their ids may be used again. */
static void what_left_is_not_counted(void **state) {
    node_id a = world_writer(&w, "a");
    node_id e = world_effect(&w, "a");
    world_remove(&w, e);
    node_id again = world_node(&w);
    assert_int_equal(again, e);
    world_settle(&w);
    assert_int_equal(world_refs(&w, a), 0);
    world_remove(&w, a);
    world_reads(&w, again, world_place(&w, "a"));
    graph_demand(&w.graph, again);
    world_settle(&w);
}

/* Many come, lose what they had and go before anybody settles, in the same few records. */
static void what_left_before_it_was_looked_at_is_not_in_the_way(void **state) {
    node_id kept = world_writer(&w, "kept"), e = world_effect(&w, "kept");
    world_remove(&w, e);
    for (uint32_t i = 0; i < 5 * w.graph.order_capacity; i++) {
        node_id gone = world_writer(&w, "gone");
        graph_demand(&w.graph, gone);
        graph_withdraw(&w.graph, gone);
        world_remove(&w, gone);
        assert_true(w.graph.withdrawn_count <= w.graph.order_capacity);
    }
    node_id last = world_writer(&w, "last");
    graph_demand(&w.graph, last);
    graph_withdraw(&w.graph, last);
    world_settle(&w);
    assert_false(world_live(&w, kept) || world_live(&w, last));
    assert_int_equal(w.graph.withdrawn_count, 0);
}

/* C46: a ring of 20,000 nodes, and a chain of a million, need no recursion. */
static void long_ways_need_no_stack(void **state) {
    enum { RING = 20000 };
    place_id first = world_place(&w, "r0"), last = first;
    node_id ring[2] = { 0 };
    for (int i = 0; i < RING; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", (i + 1) % RING);
        node_id id = world_node(&w);
        world_reads(&w, id, last);
        last = world_place(&w, name);
        assert_int_equal(graph_add_output(&w.graph, id, last), HD_OK);
        if (i == 0) ring[0] = id;
        if (i == RING / 2) ring[1] = id;
    }
    node_id e = world_effect(&w, "r7");
    graph_settle(&w.graph);
    assert_true(world_live(&w, ring[0]) && world_live(&w, ring[1]));
    assert_int_equal(w.graph.back_edges.count, 1);
    world_remove(&w, e);
    graph_settle(&w.graph);
    assert_false(world_live(&w, ring[0]) || world_live(&w, ring[1]));
    graph_check(&w.graph);
}

static void a_chain_of_a_million_becomes_live_and_dormant(void **state) {
    enum { LENGTH = 1000000 };
    place_id last = world_place(&w, "c0");
    node_id first = 0;
    for (int i = 1; i <= LENGTH; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        node_id id = world_node(&w);
        if (!first) first = id;
        world_reads(&w, id, last);
        last = world_place(&w, name);
        assert_int_equal(graph_add_output(&w.graph, id, last), HD_OK);
    }
    node_id e = world_node(&w);
    world_reads(&w, e, last);
    graph_demand(&w.graph, e);
    assert_true(world_live(&w, first));
    assert_int_equal(w.graph.repairs, 0);
    world_remove(&w, e);
    graph_settle(&w.graph);
    assert_false(world_live(&w, first));
    assert_int_equal(w.graph.demand_visits, 2 * LENGTH + 1);
}

/* A dormant clean node that becomes invalid is in no list; made live again, it is. */
static void only_live_or_clean_nodes_are_linked(void **state) {
    node_id a = world_writer(&w, "a"), b = world_compute(&w, "a", "b");
    const place *p = place_at(&w.places, world_place(&w, "a"));
    assert_int_equal(readers_count(p), 0);
    assert_int_equal(graph_mark_clean(&w.graph, b), HD_OK);
    assert_int_equal(readers_count(p), 1);
    graph_mark_invalid(&w.graph, b);
    assert_int_equal(readers_count(p), 0);

    graph_demand(&w.graph, b);
    assert_int_equal(readers_count(p), 1);
    assert_int_equal(world_refs(&w, a), 1);
    graph_mark_invalid(&w.graph, b); /* live: it stays */
    assert_int_equal(readers_count(p), 1);
    graph_withdraw(&w.graph, b);
    world_settle(&w);
    assert_int_equal(readers_count(p), 0);
}

/* One count for each read and output that overlap: deep, by shape, above and below. */
static void each_overlapping_read_counts(void **state) {
    node_id a = world_writer(&w, "a/x");
    node_id e = world_node(&w);
    uint32_t keys[] = { world_place(&w, "a"), world_place(&w, "a") | KEY_SHAPE,
                        world_place(&w, "a/x/y"), world_place(&w, "a/z") };
    assert_int_equal(graph_apply_reads(&w.graph, e, keys, 4), HD_OK);
    graph_demand(&w.graph, e);
    assert_int_equal(world_refs(&w, a), 3);
    graph_check(&w.graph);
    assert_int_equal(graph_apply_reads(&w.graph, e, keys + 3, 1), HD_OK);
    world_settle(&w);
    assert_int_equal(world_refs(&w, a), 0);
    assert_false(world_live(&w, a));
}

/* Removing and re-adding all readers of a list is linear in its rows: in one document with a writer
 * per row, and with a hub that all rows read. */
static uint64_t visits_of_a_list(int rows) {
    static node_id effects[4000];
    char name[32];
    world_compute(&w, "source", "hub");
    for (int i = 0; i < rows; i++) {
        snprintf(name, sizeof name, "list/%d", i);
        world_writer(&w, name);
    }
    uint64_t before = w.graph.demand_visits + w.graph.edge_visits;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < rows; i++) {
            snprintf(name, sizeof name, "list/%d", i);
            uint32_t keys[] = { world_place(&w, "hub"), world_place(&w, name) };
            effects[i] = world_node(&w);
            assert_int_equal(graph_apply_reads(&w.graph, effects[i], keys, 2), HD_OK);
            graph_demand(&w.graph, effects[i]);
        }
        for (int i = 0; i < rows; i++) {
            world_remove(&w, effects[i]);
            graph_settle(&w.graph); /* even one by one */
        }
    }
    return w.graph.demand_visits + w.graph.edge_visits - before;
}

static void readers_of_a_list_come_and_go_in_linear_time(void **state) {
    uint64_t few = visits_of_a_list(1000);
    close_world(state);
    open_world(state);
    uint64_t many = visits_of_a_list(4000);
    assert_true(few < 1000 * 40);
    assert_true(many < few * 4 + 4000);
}

/* A cycle elsewhere does not make a hub's readers expensive. */
static void a_cycle_elsewhere_costs_nothing(void **state) {
    world_compute(&w, "b", "a");
    world_compute(&w, "a", "b");
    world_effect(&w, "a");
    char name[16];
    for (int i = 0; i < 100; i++) {
        char from[16];
        snprintf(from, sizeof from, "u%d", i);
        snprintf(name, sizeof name, "u%d", i + 1);
        world_compute(&w, from, name);
    }
    node_id e = world_effect(&w, "u100");
    world_effect(&w, "u100");
    uint64_t visits = w.graph.demand_visits;
    world_remove(&w, e);
    graph_settle(&w.graph);
    assert_int_equal(w.graph.demand_visits - visits, 0);
    graph_check(&w.graph);
}

/* A materialiser is before its readers, and not demanded by them; invalid ones are counted. */
static void an_envelope_orders_and_demands_nothing(void **state) {
    node_id m = world_node(&w), inside = world_effect(&w, "rows/1");
    assert_int_equal(graph_add_envelope(&w.graph, m, world_place(&w, "rows")), HD_OK);
    assert_true(world_before(&w, m, inside)); /* though registered first */
    assert_int_equal(world_refs(&w, m), 0);
    assert_int_equal(w.graph.materialisers_invalid, 1);
    assert_int_equal(graph_mark_clean(&w.graph, m), HD_OK);
    assert_int_equal(w.graph.materialisers_invalid, 0);
    graph_check(&w.graph);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(an_edge_from_a_live_reader_gives_one_reference),
        CASE(an_edge_from_a_dormant_reader_gives_none),
        CASE(demand_reaches_the_whole_chain),
        CASE(a_diamond_counts_both_arms),
        CASE(a_cycle_does_not_keep_itself_live),
        CASE(a_clean_cycle_goes_dormant_too),
        CASE(a_cycle_of_a_materialiser_goes_dormant),
        CASE(a_root_outlives_its_reader),
        CASE(branches_are_independent),
        CASE(a_late_writer_recovers_its_references),
        CASE(a_node_is_not_its_own_reader),
        CASE(what_left_is_not_counted),
        CASE(what_left_before_it_was_looked_at_is_not_in_the_way),
        CASE(long_ways_need_no_stack),
        CASE(a_chain_of_a_million_becomes_live_and_dormant),
        CASE(only_live_or_clean_nodes_are_linked),
        CASE(each_overlapping_read_counts),
        CASE(readers_of_a_list_come_and_go_in_linear_time),
        CASE(a_cycle_elsewhere_costs_nothing),
        CASE(an_envelope_orders_and_demands_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

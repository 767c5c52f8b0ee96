/* test_order.c -- positions: who runs before whom, what moves, what stays outside. */
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

static void clean(node_id id) {
    assert_int_equal(graph_mark_clean(&w.graph, id), HD_OK);
    graph_settle(&w.graph);
}
static void effect(const char *reads) {
    world_effect(&w, reads);
    graph_settle(&w.graph);
}

/* C137: the writer comes before its reader, also when it registers later. */
static void a_late_writer_moves_before_its_reader(void **state) {
    node_id reader_ = world_compute(&w, "a", "b");
    node_id other = world_compute(&w, "x", "y");
    node_id writer_ = world_writer(&w, "a");
    clean(reader_);
    clean(other);
    assert_true(world_before(&w, writer_, reader_));
    assert_int_equal(w.graph.repairs, 1);
    assert_int_equal(w.graph.repaired_nodes, 2); /* the one in between did not move */
    graph_check(&w.graph);
}

/* C138: a chain registered from its end is in order once it is linked. */
static void a_chain_registered_backwards_is_turned_round(void **state) {
    enum { LENGTH = 100000 };
    static node_id chain[LENGTH];
    char reads[16], writes[16];
    for (int i = LENGTH; i-- > 0;) {
        snprintf(reads, sizeof reads, "v%d", i);
        snprintf(writes, sizeof writes, "v%d", i + 1);
        chain[i] = world_compute(&w, reads, writes);
    }
    snprintf(reads, sizeof reads, "v%d", LENGTH);
    effect(reads);
    for (int i = 1; i < LENGTH; i++) assert_true(world_before(&w, chain[i - 1], chain[i]));
    assert_true(w.graph.edge_visits + w.graph.repaired_nodes < LENGTH * 20);
    graph_check(&w.graph);
}

/* C139: two writers of one address run in the order of registration. */
static void writers_of_one_address_keep_their_order(void **state) {
    node_id a = world_writer(&w, "x"), b = world_writer(&w, "x");
    node_id e = world_effect(&w, "x");
    world_settle(&w);
    assert_true(world_before(&w, a, b) && world_before(&w, b, e));
    assert_int_equal(world_refs(&w, a) + world_refs(&w, b), 2);
    uint32_t pos = graph_next_runnable(&w.graph, 0);
    assert_int_equal(w.graph.node_at[pos], a);
    graph_check(&w.graph);
}

/* C141, C142, C143: a child comes after its parent, also when the parent has to move. */
static void children_move_with_their_parent(void **state) {
    node_id grand = world_compute(&w, "in", "g");
    node_id parent = world_compute(&w, "p", "q"), child = world_compute(&w, "r", "s");
    assert_int_equal(graph_set_parent(&w.graph, parent, grand), HD_OK);
    assert_int_equal(graph_set_parent(&w.graph, child, parent), HD_OK);
    node_id late = world_writer(&w, "in");
    clean(grand); /* links it: late -> grand */
    assert_true(world_before(&w, late, grand));
    assert_true(world_before(&w, grand, parent) && world_before(&w, parent, child));
    assert_int_equal(graph_first_child(&w.graph, parent), child);
    world_remove(&w, child);
    assert_int_equal(graph_first_child(&w.graph, parent), 0);
    graph_check(&w.graph);
}

/* C145: a parent that reads its child's output comes after it. */
static void data_wins_over_creation(void **state) {
    node_id parent = world_compute(&w, "c", "p"), child = world_writer(&w, "c");
    assert_int_equal(graph_set_parent(&w.graph, child, parent), HD_OK);
    clean(parent);
    assert_true(world_before(&w, child, parent));
    assert_int_equal(w.graph.back_edges.count, 0);
    graph_check(&w.graph);
}

/* On a cycle the parent comes first, whoever was there first. */
static void on_a_cycle_the_parent_precedes(void **state) {
    node_id child = world_compute(&w, "p", "c"), parent = world_compute(&w, "c", "p");
    assert_int_equal(graph_set_parent(&w.graph, child, parent), HD_OK);
    effect("c");
    assert_true(world_before(&w, parent, child));
    assert_int_equal(w.graph.back_edges.count, 1);
    assert_int_equal(w.graph.back_edges.items[0].writer, child);
    graph_check(&w.graph);
}

/* Without parents the one that waits for the fewest edges comes first, then the older. */
static void on_a_cycle_the_lowest_in_degree_precedes(void **state) {
    node_id a = world_node(&w), b = world_compute(&w, "a", "b"), c = world_compute(&w, "b", "c");
    assert_int_equal(graph_add_output(&w.graph, a, world_place(&w, "a")), HD_OK);
    uint32_t keys[] = { world_place(&w, "b"), world_place(&w, "c") };
    assert_int_equal(graph_apply_reads(&w.graph, a, keys, 2), HD_OK);
    effect("c");
    assert_true(world_before(&w, b, c) &&
                world_before(&w, c, a)); /* b and c wait for one, a for two */
    graph_check(&w.graph);

    node_id x = world_compute(&w, "y", "x"), y = world_compute(&w, "x", "y");
    effect("x");
    assert_true(world_before(&w, x, y));
    graph_check(&w.graph);
}

/* When an edge of the cycle goes away, the back edge is an ordinary one again. */
static void a_back_edge_is_tried_again(void **state) {
    node_id a = world_compute(&w, "c", "a"), b = world_compute(&w, "a", "b");
    node_id c = world_compute(&w, "b", "c");
    effect("c");
    assert_int_equal(w.graph.back_edges.count, 1); /* c -> a */
    assert_true(world_before(&w, a, b) && world_before(&w, b, c));
    world_reads(&w, b, world_place(&w, "x")); /* no longer a -> b */
    effect("a");
    world_settle(&w);
    assert_int_equal(w.graph.back_edges.count, 0);
    assert_true(world_before(&w, b, c) && world_before(&w, c, a));
}

/* Both directions along a long chain: many small cycles, one large component; not quadratic. */
static void many_back_edges_stay_cheap(void **state) {
    enum { LENGTH = 20000 };
    char name[16];
    node_id first = 0;
    for (int i = 0; i < LENGTH; i++) {
        snprintf(name, sizeof name, "v%d", i);
        node_id id = world_writer(&w, name);
        if (!first) first = id;
        place_id before, after;
        snprintf(name, sizeof name, "v%d", i ? i - 1 : 0);
        before = world_place(&w, name);
        snprintf(name, sizeof name, "v%d", i + 1);
        after = world_place(&w, name);
        uint32_t keys[] = { before, after };
        assert_int_equal(graph_apply_reads(&w.graph, id, keys, 2), HD_OK);
        assert_int_equal(graph_mark_clean(&w.graph, id), HD_OK);
    }
    graph_settle(&w.graph);
    assert_true(w.graph.back_edges.count >= LENGTH - 2);
    assert_true(w.graph.edge_visits + w.graph.repaired_nodes < LENGTH * 100);
    graph_demand(&w.graph, first);
    graph_withdraw(&w.graph, first);
    graph_settle(&w.graph);
    assert_false(world_live(&w, first));
    graph_check(&w.graph);
}

/* ---- bits */

static void a_moved_node_keeps_its_bits(void **state) {
    node_id reader_ = world_compute(&w, "a", "b"), writer_ = world_writer(&w, "a");
    graph_set_eligible(&w.graph, graph_node(&w.graph, reader_), false);
    graph_demand(&w.graph, reader_);
    graph_settle(&w.graph); /* moves both */
    const node *r = graph_node(&w.graph, reader_), *x = graph_node(&w.graph, writer_);
    assert_true(x->pos < r->pos);
    assert_true(node_is_live(&w.graph, r) && node_is_invalid(&w.graph, r));
    assert_false(node_is_eligible(&w.graph, r));
    assert_true(node_is_eligible(&w.graph, x) && node_is_live(&w.graph, x));
    assert_int_equal(graph_next_runnable(&w.graph, 0), x->pos);
    assert_int_equal(graph_next_runnable(&w.graph, x->pos + 1), UINT32_MAX);
}

/* The sweep against a plain loop, on maps of all densities and sizes. */
static void the_next_runnable_is_the_lowest(void **state) {
    lab_random random = lab_random_of(lab_seed());
    graph *g = &w.graph;
    for (uint32_t size = 1; size < 600000; size = size * 3 + 1) {
        while (g->order_count < size) {
            node_id id = world_node(&w);
            graph_set_clean(g, graph_node(g, id));
            graph_node(g, id)->flags |= NODE_LINKED;
            graph_node(g, id)->live_refs = 1;
            bit_set(g->live, graph_node(g, id)->pos);
        }
        for (int round = 0; round < 20; round++) {
            uint32_t marks = (uint32_t)lab_random_below(&random, 6);
            uint32_t marked[6], count = 0;
            for (uint32_t i = 0; i < marks; i++) {
                uint32_t pos = (uint32_t)lab_random_below(&random, size);
                graph_set_invalid(g, graph_node(g, g->node_at[pos]));
                marked[count++] = pos;
            }
            uint32_t from = 0;
            for (;;) {
                uint32_t lowest = UINT32_MAX;
                for (uint32_t i = 0; i < count; i++)
                    if (marked[i] >= from && marked[i] < lowest) lowest = marked[i];
                if (round % 2) assert_int_equal(graph_lowest_runnable(g), lowest);
                else assert_int_equal(graph_next_runnable(g, from), lowest);
                if (lowest == UINT32_MAX) break;
                graph_set_clean(g, graph_node(g, g->node_at[lowest]));
                from = lowest + 1;
                bool last = !graph_runnable(g, lowest >> 6) && graph_lower_last(g, lowest >> 6);
                if (count == 1 && round) assert_true(last);
                for (uint32_t i = 0; i < count; i++) assert_true(!last || marked[i] < from);
            }
            assert_int_equal(graph_lowest_runnable(g), UINT32_MAX);
            assert_int_equal(g->top, 0);
        }
    }
}

/* Positions close up when half are holes; the order and the bits stay. */
static void holes_are_closed(void **state) {
    enum { COUNT = 1000 };
    static node_id ids[COUNT];
    for (int i = 0; i < COUNT; i++) ids[i] = world_node(&w);
    for (int i = 0; i < COUNT; i++)
        if (i % 3) world_remove(&w, ids[i]);
    graph_demand(&w.graph, ids[3]);
    assert_int_equal(w.graph.order_count, COUNT);
    graph_tidy(&w.graph);
    assert_int_equal(w.graph.order_count, (COUNT + 2) / 3);
    assert_int_equal(w.graph.holes, 0);
    for (int i = 3; i < COUNT; i += 3) assert_true(world_before(&w, ids[i - 3], ids[i]));
    assert_true(world_live(&w, ids[3]));
    graph_check(&w.graph);

    node_id pull = world_node(&w); /* what comes and goes at the end leaves nothing */
    world_remove(&w, pull);
    assert_int_equal(w.graph.holes, 0);
}

/* ---- read sets */

static void apply(node_id id, const uint32_t *keys, uint32_t count) {
    assert_int_equal(graph_apply_reads(&w.graph, id, keys, count), HD_OK);
    graph_settle(&w.graph);
    const edge *reads = node_reads(graph_node(&w.graph, id));
    assert_int_equal(graph_node(&w.graph, id)->read_count, count);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(reads[i].key, keys[i]);
    graph_check(&w.graph);
}

/* C126, C127, C130: reads move, come and go; what is left is exactly the last set, in its order. */
static void read_sets_follow_the_runs(void **state) {
    enum { MANY = 1000 };
    static uint32_t keys[MANY];
    node_id e = world_effect(&w, "x");
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%u", (unsigned)(i / 3));
        keys[i] =
            world_place(&w, name) | (i % 3 == 1 ? KEY_SHAPE : 0) | (i % 3 == 2 ? KEY_NO_CLAIM : 0);
    }
    lab_random random = lab_random_of(lab_seed());
    for (int round = 0; round < 60; round++) {
        uint32_t size = round % 2 ? 20 : MANY;
        uint32_t from = (uint32_t)lab_random_below(&random, size);
        uint32_t count = (uint32_t)lab_random_below(&random, size - from + 1);
        for (int swaps = 0; swaps < round % 5; swaps++) {
            uint32_t i = (uint32_t)lab_random_below(&random, size);
            uint32_t key = keys[i];
            keys[i] = keys[0];
            keys[0] = key;
        }
        apply(e, keys + from, count);
    }
    apply(e, keys, 0);
    for (uint32_t i = 0; i < MANY; i++) { /* C128: nothing is left behind */
        const place *p = place_at(&w.places, keys[i] & KEY_PLACE);
        assert_true(p->watch == 0 && p->doc.refs == 0 && !(p->doc.flags & DOC_HAS_SHAPE));
    }
}

/* The steady state of alternating reads takes nothing from the environment. */
static void alternating_reads_allocate_nothing(void **state) {
    node_id e = world_effect(&w, "x");
    world_compute(&w, "a", "b");
    world_compute(&w, "a", "c");
    uint32_t one[] = { world_place(&w, "a"), world_place(&w, "b") };
    uint32_t other[] = { world_place(&w, "a"), world_place(&w, "c"), world_place(&w, "d") };
    apply(e, one, 2);
    apply(e, other, 3);
    uint64_t before = lab_env_allocations(env);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(graph_apply_reads(&w.graph, e, one, 2), HD_OK);
        graph_settle(&w.graph);
        assert_int_equal(graph_apply_reads(&w.graph, e, other, 3), HD_OK);
        graph_settle(&w.graph);
    }
    assert_int_equal(lab_env_allocations(env), before);
    graph_check(&w.graph);
}

/* C134: among a thousand readers of rows, each row's writer meets its own reader only. */
static void a_row_meets_only_its_own(void **state) {
    char name[32];
    for (int i = 0; i < 1024; i++) {
        snprintf(name, sizeof name, "list/%d", i);
        world_writer(&w, name);
    }
    uint64_t before = w.graph.edge_visits;
    node_id e = world_effect(&w, "list/512");
    assert_true(w.graph.edge_visits - before <= 4);
    world_reads(&w, e, world_place(&w, "list")); /* the whole list meets them all */
    assert_true(w.graph.edge_visits - before >= 1024);
    world_settle(&w);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_late_writer_moves_before_its_reader),
        CASE(a_chain_registered_backwards_is_turned_round),
        CASE(writers_of_one_address_keep_their_order),
        CASE(children_move_with_their_parent),
        CASE(data_wins_over_creation),
        CASE(on_a_cycle_the_parent_precedes),
        CASE(on_a_cycle_the_lowest_in_degree_precedes),
        CASE(a_back_edge_is_tried_again),
        CASE(many_back_edges_stay_cheap),
        CASE(a_moved_node_keeps_its_bits),
        CASE(the_next_runnable_is_the_lowest),
        CASE(holes_are_closed),
        CASE(read_sets_follow_the_runs),
        CASE(alternating_reads_allocate_nothing),
        CASE(a_row_meets_only_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_graph_nomem.c -- the graph when memory runs out, at each allocation in turn.
 *
 * What fails changes nothing; what cannot fail (order, demand) may be late, and is right once there is
 * memory again. graph_check holds after every step, and after all of it was done again. */
#include "graph_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define NODES 12

typedef struct scene {
    world w;
    node_id ids[NODES];
    place_id docs[NODES];
} scene;

static void check(scene *s) {
    graph_settle(&s->w.graph);
    graph_check(&s->w.graph);
}

/* The ith node writes document i. False: no memory. */
static bool make_nodes(scene *s) {
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        if (!s->docs[i]) s->docs[i] = world_place(&s->w, name);
        if (!s->ids[i]) s->ids[i] = world_node(&s->w);
        if (!s->docs[i] || !s->ids[i]) return false;
        if (graph_node(&s->w.graph, s->ids[i])->output) continue;
        if (graph_add_output(&s->w.graph, s->ids[i], s->docs[i])) return false;
        check(s);
    }
    return true;
}

/* Backwards, with a cycle of three, several writers of one document, and everybody by shape at d0. */
static uint32_t reads_of(const scene *s, int i, int round, uint32_t *keys) {
    uint32_t count = 0;
    keys[count++] = s->docs[(i + 1) % NODES];
    if (i < 3) keys[count++] = s->docs[(i + 2) % 3];
    keys[count++] = s->docs[0] | KEY_SHAPE;
    for (int k = 0; k < (round ? 5 : 1); k++)
        if ((i + k + 4) % NODES != 0) keys[count++] = s->docs[(i + k + 4) % NODES] | KEY_NO_CLAIM;
    return count;
}

static bool reads_are(const scene *s, int i, const edge *before, uint32_t count) {
    const node *n = graph_node(&s->w.graph, s->ids[i]);
    if (n->read_count != count) return false;
    for (uint32_t k = 0; k < count; k++)
        if (node_reads_const(n)[k].key != before[k].key) return false;
    return true;
}

static bool set_reads(scene *s, int round) {
    bool all = true;
    for (int i = 0; i < NODES; i++) {
        uint32_t keys[16], count = reads_of(s, i, round, keys);
        node *n = graph_node(&s->w.graph, s->ids[i]);
        edge before[16];
        uint32_t before_count = n->read_count;
        memcpy(before, node_reads(n), before_count * sizeof *before);
        if (graph_apply_reads(&s->w.graph, s->ids[i], keys, count)) {
            all = false;
            assert_true(reads_are(s, i, before, before_count)); /* the old set stands, whole */
        }
        graph_check(&s->w.graph);
        if (i % 4 == 0) check(s);
    }
    return all;
}

/* Every step; what fails is left out. True: all went well. */
static bool play(scene *s) {
    graph *g = &s->w.graph;
    if (!make_nodes(s)) return false;
    bool all = set_reads(s, 0);
    graph_demand(g, s->ids[NODES - 1]);
    check(s);
    graph_demand(g, s->ids[4]);
    check(s);
    all &= graph_add_output(g, s->ids[7], s->docs[2]) == HD_OK;
    all &= graph_add_output(g, s->ids[8], s->docs[2]) == HD_OK;
    check(s);
    all &= graph_add_envelope(g, s->ids[9], s->docs[5]) == HD_OK;
    all &= graph_set_parent(g, s->ids[1], s->ids[2]) == HD_OK;
    check(s);
    for (int i = 0; i < NODES; i += 3) all &= graph_mark_clean(g, s->ids[i]) == HD_OK;
    check(s);
    all &= set_reads(s, 1);
    graph_withdraw(g, s->ids[4]);
    graph_withdraw(g, s->ids[NODES - 1]);
    check(s);
    for (int i = 0; i < NODES; i += 3) graph_mark_invalid(g, s->ids[i]);
    check(s);
    all &= set_reads(s, 0);
    return all;
}

/* True: the failure was met. Memory comes back before the end, so the lab's own loop will not do. */
static bool one_run(uint64_t nth, bool and_all_after) {
    lab_env *env = lab_env_open();
    scene s = { 0 };
    if (and_all_after) lab_env_fail_from(env, nth);
    else lab_env_fail_at(env, nth);
    bool opened = !world_try_open(&s.w, lab_env_of(env));
    bool all = opened && play(&s);
    bool met = lab_env_failed(env);
    assert_true(met || all);
    lab_env_fail_at(env, 0);
    if (opened) {
        check(&s);
        assert_false(s.w.graph.back_lost);
        for (int i = 0; i < NODES; i++)
            if (s.ids[i]) world_remove(&s.w, s.ids[i]);
        check(&s);
    }
    world_close(&s.w);
    lab_env_close(env);
    return met;
}

static void the_graph_stays_whole_without_memory(void **state) {
    uint64_t nth = 1;
    while (one_run(nth, false)) {
        assert_true(one_run(nth, true));
        nth++;
    }
    printf("%llu allocations\n", (unsigned long long)(nth - 1));
    assert_true(nth > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graph_stays_whole_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_graph.c -- the graph against a naive twin, on random graphs.
 *
 * The twin keeps lists of addresses and numbers, and derives everything from them afresh after each
 * step: who is live (from the standing demands, along the edges), how many references each node has,
 * and which nodes lie on a cycle (Tarjan). Few documents and few nodes, so that cycles, shared
 * outputs, overlapping addresses and reuse of ids are common; most graphs have no effect at all. */
#include "graph_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define NODES     12
#define DOCS      4
#define PATHS     5
#define PLACES    (DOCS * PATHS)
#define READS_MAX 6
#define SIDE_MAX  3

static const char *const path_text[PATHS] = { "", "/a", "/a/b", "/a/c", "/d" };

typedef struct twin {
    bool there, invalid;
    node_id id;
    uint32_t standing;
    uint32_t reads[READS_MAX], read_count; /* index of a place, with KEY_SHAPE */
    uint32_t outputs[SIDE_MAX], output_count;
    uint32_t envelopes[SIDE_MAX], envelope_count;
    bool live;
    uint32_t refs, component;
} twin;

typedef struct model {
    world w;
    lab_random random;
    place_id places[PLACES];
    twin nodes[NODES];
    uint64_t cyclic, steps;
} model;

/* ---- the twin's own idea of things */

static bool related(uint32_t a, uint32_t b) {
    if (a / PATHS != b / PATHS) return false;
    const char *x = path_text[a % PATHS], *y = path_text[b % PATHS];
    size_t n = strlen(x) < strlen(y) ? strlen(x) : strlen(y);
    return strncmp(x, y, n) == 0;
}

/* How many pairs of a read of r and an output (or envelope) of w are related. */
static uint32_t pairs_of(const twin *w, const twin *r, bool envelopes) {
    uint32_t count = envelopes ? w->envelope_count : w->output_count, pairs_ = 0;
    const uint32_t *items = envelopes ? w->envelopes : w->outputs;
    if (w == r || !w->there || !r->there) return 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < r->read_count; j++)
            pairs_ += related(items[i], r->reads[j] & KEY_PLACE);
    return pairs_;
}

static void derive_live(model *m) {
    for (int i = 0; i < NODES; i++) m->nodes[i].live = m->nodes[i].there && m->nodes[i].standing;
    for (bool changed = true; changed;) {
        changed = false;
        for (int w = 0; w < NODES; w++)
            for (int r = 0; r < NODES && !m->nodes[w].live; r++)
                if (m->nodes[r].live && pairs_of(&m->nodes[w], &m->nodes[r], false))
                    m->nodes[w].live = changed = true;
    }
    for (int w = 0; w < NODES; w++) {
        m->nodes[w].refs = m->nodes[w].standing;
        for (int r = 0; r < NODES; r++)
            if (m->nodes[r].live) m->nodes[w].refs += pairs_of(&m->nodes[w], &m->nodes[r], false);
    }
}

static bool ordered(const model *m, int w, int r) {
    const twin *reader_ = &m->nodes[r];
    if (!reader_->live && reader_->invalid) return false; /* in no list */
    return pairs_of(&m->nodes[w], reader_, false) || pairs_of(&m->nodes[w], reader_, true);
}

/* Tarjan's components, with a stack of its own. */
static void derive_components(model *m) {
    int index[NODES], low[NODES], stack[NODES], calls[NODES], next[NODES];
    bool on_stack[NODES] = { false };
    int counter = 0, top = 0, depth = 0;
    uint32_t component = 0;
    for (int i = 0; i < NODES; i++) index[i] = -1;
    for (int root = 0; root < NODES; root++) {
        if (!m->nodes[root].there || index[root] >= 0) continue;
        calls[depth++] = root;
        next[root] = 0;
        index[root] = low[root] = counter++;
        on_stack[stack[top++] = root] = true;
        while (depth) {
            int v = calls[depth - 1];
            if (next[v] < NODES) {
                int x = next[v]++;
                if (!m->nodes[x].there || !ordered(m, v, x)) continue;
                if (index[x] < 0) {
                    calls[depth++] = x;
                    next[x] = 0;
                    index[x] = low[x] = counter++;
                    on_stack[stack[top++] = x] = true;
                } else if (on_stack[x] && index[x] < low[v]) {
                    low[v] = index[x];
                }
                continue;
            }
            if (--depth && low[v] < low[calls[depth - 1]]) low[calls[depth - 1]] = low[v];
            if (low[v] != index[v]) continue;
            for (int x = -1; x != v;) {
                x = stack[--top];
                on_stack[x] = false;
                m->nodes[x].component = component;
            }
            component++;
        }
    }
}

/* ---- comparison */

static int twin_of(const model *m, node_id id) {
    for (int i = 0; i < NODES; i++)
        if (m->nodes[i].there && m->nodes[i].id == id) return i;
    lab_fail("a back edge names a node that is gone");
    return -1;
}

static void compare_order(model *m) {
    const graph *g = &m->w.graph;
    derive_components(m);
    for (int w = 0; w < NODES; w++)
        for (int r = 0; r < NODES; r++) {
            if (!m->nodes[w].there || !m->nodes[r].there || !ordered(m, w, r)) continue;
            if (world_before(&m->w, m->nodes[w].id, m->nodes[r].id)) continue;
            assert_int_equal(m->nodes[w].component, m->nodes[r].component);
            assert_true(back_edge_known(g, m->nodes[w].id, m->nodes[r].id));
        }
    for (uint32_t i = 0; i < g->back_edges.count; i++) {
        int w = twin_of(m, g->back_edges.items[i].writer);
        int r = twin_of(m, g->back_edges.items[i].reader);
        assert_true(ordered(m, w, r));
        assert_int_equal(m->nodes[w].component, m->nodes[r].component);
        assert_false(world_before(&m->w, m->nodes[w].id, m->nodes[r].id));
    }
    m->cyclic += g->back_edges.count > 0;
}

static void compare(model *m) {
    derive_live(m);
    for (int i = 0; i < NODES; i++) {
        const twin *t = &m->nodes[i];
        if (!t->there) continue;
        assert_int_equal(world_live(&m->w, t->id), t->live);
        assert_int_equal(world_refs(&m->w, t->id), t->refs);
        const node *n = graph_node(&m->w.graph, t->id);
        assert_int_equal(!!(n->flags & NODE_LINKED), t->live || !t->invalid);
        assert_int_equal(node_is_invalid(&m->w.graph, n), t->invalid);
        assert_int_equal(n->read_count, t->read_count);
    }
    compare_order(m);
    graph_check(&m->w.graph);
    m->steps++;
}

/* ---- steps */

static uint32_t below(model *m, uint64_t n) { return (uint32_t)lab_random_below(&m->random, n); }

static uint32_t any_place(model *m) {
    /* Whole documents are the common case. */
    uint32_t doc = below(m, DOCS);
    return doc * PATHS + (below(m, 2) ? 0 : below(m, PATHS));
}

static void step_add(model *m, twin *t) {
    *t = (twin){ .there = true, .invalid = true, .id = world_node(&m->w) };
    assert_int_not_equal(t->id, 0);
}

static void step_remove(model *m, twin *t) {
    world_remove(&m->w, t->id);
    *t = (twin){ 0 };
}

static bool holds(const uint32_t *items, uint32_t count, uint32_t item) {
    for (uint32_t i = 0; i < count; i++)
        if (items[i] == item) return true;
    return false;
}

static void step_output(model *m, twin *t) {
    uint32_t p = any_place(m);
    if (t->output_count == SIDE_MAX || holds(t->outputs, t->output_count, p)) return;
    t->outputs[t->output_count++] = p;
    assert_int_equal(graph_add_output(&m->w.graph, t->id, m->places[p]), HD_OK);
}

static void step_drop_output(model *m, twin *t) {
    if (!t->output_count) return;
    uint32_t i = below(m, t->output_count);
    graph_remove_output(&m->w.graph, t->id, m->places[t->outputs[i]]);
    t->outputs[i] = t->outputs[--t->output_count];
}

static void step_envelope(model *m, twin *t) {
    uint32_t p = any_place(m);
    if (t->envelope_count == SIDE_MAX || holds(t->envelopes, t->envelope_count, p)) return;
    t->envelopes[t->envelope_count++] = p;
    assert_int_equal(graph_add_envelope(&m->w.graph, t->id, m->places[p]), HD_OK);
}

static void step_drop_envelope(model *m, twin *t) {
    if (!t->envelope_count) return;
    uint32_t i = below(m, t->envelope_count);
    graph_remove_envelope(&m->w.graph, t->id, m->places[t->envelopes[i]]);
    t->envelopes[i] = t->envelopes[--t->envelope_count];
}

static void step_reads(model *m, twin *t) {
    uint32_t keys[READS_MAX], count = below(m, READS_MAX + 1);
    uint32_t kept = below(m, 3) ? below(m, t->read_count + 1) : 0; /* often a common beginning */
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t p = any_place(m) | (below(m, 5) ? 0 : KEY_SHAPE);
        if (i < kept) p = t->reads[i];
        if (!holds(t->reads, 0, p) && !holds(keys, n, p)) keys[n++] = p;
    }
    memcpy(t->reads, keys, n * sizeof *keys);
    t->read_count = n;
    for (uint32_t i = 0; i < n; i++)
        keys[i] = m->places[keys[i] & KEY_PLACE] | (keys[i] & KEY_SHAPE);
    assert_int_equal(graph_apply_reads(&m->w.graph, t->id, keys, n), HD_OK);
}

static void step_demand(model *m, twin *t) {
    t->standing++;
    graph_demand(&m->w.graph, t->id);
}

static void step_withdraw(model *m, twin *t) {
    if (!t->standing) return;
    t->standing--;
    graph_withdraw(&m->w.graph, t->id);
}

static void step_invalid(model *m, twin *t) {
    t->invalid = true;
    graph_mark_invalid(&m->w.graph, t->id);
}

static void step_clean(model *m, twin *t) {
    t->invalid = false;
    assert_int_equal(graph_mark_clean(&m->w.graph, t->id), HD_OK);
}

static void step_parent(model *m, twin *t) {
    const twin *parent = &m->nodes[below(m, NODES)];
    if (parent == t || !parent->there) return;
    assert_int_equal(graph_set_parent(&m->w.graph, t->id, parent->id), HD_OK);
}

static void step(model *m, bool demanding) {
    twin *t = &m->nodes[below(m, NODES)];
    if (!t->there) {
        step_add(m, t);
        return;
    }
    switch (below(m, 24)) {
    case 0: step_remove(m, t); break;
    case 1:
    case 2: step_drop_output(m, t); break;
    case 3: step_envelope(m, t); break;
    case 4: step_drop_envelope(m, t); break;
    case 5:
    case 6:
        if (demanding) step_demand(m, t);
        break;
    case 7:
    case 8: step_withdraw(m, t); break;
    case 9:
    case 10: step_invalid(m, t); break;
    case 11:
    case 12: step_clean(m, t); break;
    case 13: step_parent(m, t); break;
    case 14:
        if (below(m, 2)) graph_tidy(&m->w.graph);
        else if (m->w.graph.order_count)
            assert_true(order_sort(&m->w.graph, 0, m->w.graph.order_count - 1));
        break;
    case 15:
    case 16:
    case 17: step_output(m, t); break;
    default: step_reads(m, t); break;
    }
}

static void intern_places(model *m) {
    for (uint32_t i = 0; i < PLACES; i++) {
        char address[16];
        snprintf(address, sizeof address, "d%u%s", (unsigned)(i / PATHS), path_text[i % PATHS]);
        m->places[i] = world_place(&m->w, address);
        place_ref(&m->w.places, m->places[i]);
    }
}

static void one_graph(const hd_env *env, uint64_t seed, uint64_t *steps, uint64_t *cyclic) {
    model m = { .random = lab_random_of(seed) };
    world_open(&m.w, env);
    intern_places(&m);
    bool demanding = below(&m, 3) == 0; /* the others are reachable from no effect */
    uint32_t count = 30 + below(&m, 60);
    for (uint32_t i = 0; i < count; i++) {
        step(&m, demanding || below(&m, 8) == 0);
        if (!below(&m, 3)) continue; /* several changes settle together */
        graph_settle(&m.w.graph);
        compare(&m);
    }
    for (int i = 0; i < NODES; i++)
        if (m.nodes[i].there) step_remove(&m, &m.nodes[i]);
    graph_settle(&m.w.graph);
    graph_check(&m.w.graph);
    /* Nothing is left behind: no readers, no writers, only the references taken here. */
    for (uint32_t i = 0; i < PLACES; i++) {
        const place *p = place_at(&m.w.places, m.places[i]);
        assert_true(p->watch == 0);
        if (i % PATHS == 0) assert_int_equal(p->doc.writer, 0);
        if (i % PATHS == 2) assert_int_equal(p->in.refs, 1);
    }
    *steps += m.steps;
    *cyclic += m.cyclic;
    world_close(&m.w);
}

/* C43: after any sequence of changes, liveness, counts and order equal a recount from scratch. */
static void random_graphs_equal_their_twin(void **state) {
    uint64_t seed = lab_seed(), steps = 0, cyclic = 0;
    const char *wanted = getenv("HD_GRAPHS");
    uint64_t graphs = wanted ? strtoull(wanted, NULL, 10) : 20000;
    lab_env *world_ = lab_env_open();
    for (uint64_t i = 0; i < graphs; i++) {
        const char *only = getenv("HD_GRAPH");
        if (only && i != strtoull(only, NULL, 10)) continue;
        if (only) printf("graph %llu\n", (unsigned long long)i);
        one_graph(lab_env_of(world_), seed + i * UINT64_C(0x9E3779B97F4A7C15), &steps, &cyclic);
    }
    lab_env_close(world_);
    printf("%llu graphs, %llu comparisons, %llu with cycles\n", (unsigned long long)graphs,
           (unsigned long long)steps, (unsigned long long)cyclic);
    assert_true(graphs < 100 || cyclic > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_equal_their_twin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

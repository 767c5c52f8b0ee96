/* graph_world.h -- a graph over places, without a store: for tests of the graph alone.
 *
 *     world w;
 *     world_open(&w, env);
 *     node_id a = world_writer(&w, "a");           a dormant computation that writes document "a"
 *     node_id e = world_reader(&w, "a");           a live effect that reads it
 *     world_close(&w); */
#ifndef HEDDLE_GRAPH_WORLD_H
#define HEDDLE_GRAPH_WORLD_H

#include "scheduler/graph/live.h"
#include "base/env.h"
#include "lab.h"

typedef struct world {
    const hd_env *env;
    hd_heap *heap;
    places places;
    uint32_t home;
    graph graph;
    node_id free; /* removed nodes, linked through live_refs */
} world;

static inline hd_status world_try_open(world *w, const hd_env *env) {
    *w = (world){ .env = env };
    hd_status status = hd_heap_open(env, NULL, &w->heap);
    if (status) return status;
    status = places_init(&w->places, w->env, w->heap);
    if (status) {
        hd_heap_close(w->heap);
        w->heap = NULL;
        return status;
    }
    status = graph_init(&w->graph, w->env, &w->places);
    assert(!status);
    struct key *space = key_intern(w->heap, "main", 4);
    status =
        space ? places_home(&w->places, space, HD_SCOPE_SPACE, NULL, false, &w->home) : HD_NOMEM;
    key_unref(space);
    return status;
}

static inline void world_close(world *w) {
    if (!w->heap) return;
    if (w->graph.env) graph_fini(&w->graph);
    if (w->places.at) places_fini(&w->places);
    hd_heap_close(w->heap);
    *w = (world){ 0 };
}

static inline void world_open(world *w, const hd_env *env) {
    if (world_try_open(w, env)) lab_fail("no world");
}

/* "doc" or "doc/path"; 0: no memory. */
static inline place_id world_place(world *w, const char *address) {
    size_t length = strcspn(address, "/");
    struct key *id = key_intern(w->heap, address, length);
    if (!id) return 0;
    place_id place_ = 0;
    hd_status status = places_doc(&w->places, w->home, id, &place_);
    key_unref(id);
    if (status) return 0;
    while (address[length] == '/') {
        const char *segment = address + length + 1;
        size_t n = strcspn(segment, "/");
        struct key *key = key_intern(w->heap, segment, n);
        if (!key || places_child(&w->places, place_, key, &place_)) {
            key_unref(key);
            return 0;
        }
        key_unref(key);
        length += n + 1;
    }
    return place_;
}

/* A computation: dormant, invalid, no reads, no outputs. 0: no memory. */
static inline node_id world_node(world *w) {
    graph *g = &w->graph;
    node_id id = w->free;
    if (!id) {
        if (g->node_count + 1 >= g->node_capacity) {
            uint32_t capacity = g->node_capacity ? g->node_capacity * 2 : 16;
            node *nodes = env_resize(w->env, g->nodes, g->node_capacity * sizeof *nodes,
                                     capacity * sizeof *nodes);
            if (!nodes) return 0;
            g->nodes = nodes;
            g->node_capacity = capacity;
            if (!g->node_count) g->nodes[g->node_count++] = (node){ 0 };
        }
        id = g->node_count;
        g->nodes[g->node_count++] = (node){ 0 };
    } else {
        w->free = graph_node(g, id)->live_refs;
        *graph_node(g, id) = (node){ 0 };
    }
    if (!graph_add_node(g, id)) return id;
    graph_node(g, id)->live_refs = w->free;
    w->free = id;
    return 0;
}

static inline void world_remove(world *w, node_id id) {
    graph_remove_node(&w->graph, id);
    graph_node(&w->graph, id)->live_refs = w->free;
    w->free = id;
}

static inline void world_reads(world *w, node_id id, uint32_t key) {
    if (graph_apply_reads(&w->graph, id, &key, 1)) lab_fail("no memory for a read");
}

static inline node_id world_writer(world *w, const char *address) {
    node_id id = world_node(w);
    if (!id || graph_add_output(&w->graph, id, world_place(w, address))) lab_fail("no writer");
    return id;
}

/* A computation that reads one place and writes another. */
static inline node_id world_compute(world *w, const char *reads, const char *writes) {
    node_id id = world_writer(w, writes);
    world_reads(w, id, world_place(w, reads));
    return id;
}

static inline node_id world_effect(world *w, const char *reads) {
    node_id id = world_node(w);
    if (!id) lab_fail("no effect");
    graph_node(&w->graph, id)->flags |= NODE_EFFECT;
    world_reads(w, id, world_place(w, reads));
    graph_demand(&w->graph, id);
    return id;
}

static inline bool world_live(const world *w, node_id id) {
    return node_is_live(&w->graph, graph_node(&w->graph, id));
}
static inline uint32_t world_refs(const world *w, node_id id) {
    return graph_node(&w->graph, id)->live_refs;
}
static inline bool world_before(const world *w, node_id a, node_id b) {
    return graph_node(&w->graph, a)->pos < graph_node(&w->graph, b)->pos;
}
static inline void world_settle(world *w) {
    graph_settle(&w->graph);
    graph_check(&w->graph);
}

#endif

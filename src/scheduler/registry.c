/* registry.c -- registering and removing nodes. */
#include "scheduler/registry.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/causes.h"
#include "value/key.h"
#include <string.h>

#define NODES_FIRST 64

hd_status registry_init(scheduler *s) {
    table_init(&s->names, s->env);
    for (uint32_t i = 0; i < AWAITING_LISTS; i++) list_init(&s->awaiting[i]);
    if (!vec_push(s->env, &s->colds, NULL)) return HD_NOMEM;
    if (!vec_room(s->env, &s->told, CAUSES_FEW)) return HD_NOMEM;
    return graph_init(&s->graph, s->env, &s->r->places);
}

/* Calls `release` of all nodes, and drops their names. */
static void let_go(scheduler *s) {
    for (uint32_t i = 1; i < s->colds.count; i++) {
        cold *c = s->colds.items[i];
        hd_release_fn release = c->node ? c->release : NULL;
        c->release = NULL; /* before the call, which may cancel this node and others */
        if (release) release(node_of(s, c->node)->ctx);
    }
    if (!table_count(&s->names)) return;
    for (node_id id = 1; id < s->graph.node_count; id++)
        if (!(s->graph.nodes[id].flags & NODE_REMOVED)) key_unref(node_own_name(s, id));
}

void registry_fini(scheduler *s) {
    let_go(s);
    causes_fini(s);
    for (uint32_t i = 1; i < s->colds.count; i++) env_free(s->env, s->colds.items[i], sizeof(cold));
    vec_fini(s->env, &s->colds);
    table_fini(&s->names);
    env_free(s->env, s->sides, s->side_capacity * sizeof *s->sides);
    env_free(s->env, s->node_names, s->name_capacity * sizeof *s->node_names);
    graph_fini(&s->graph);
}

/* ---- records */

static hd_status grow_sides(scheduler *s) {
    const size_t size = sizeof *s->sides;
    uint32_t old = s->side_capacity, capacity = old ? vec_next_capacity(old, size) : NODES_FIRST;
    node_side *sides = env_resize(s->env, s->sides, old * size, capacity * size);
    if (!sides) return HD_NOMEM;
    if (!old) sides[0] = (node_side){ 0 };
    s->sides = sides;
    s->side_capacity = capacity;
    return HD_OK;
}

static hd_status grow_nodes(graph *g) {
    const size_t size = sizeof *g->nodes;
    uint32_t old = g->node_capacity, capacity = old ? vec_next_capacity(old, size) : NODES_FIRST;
    if (capacity > NODE_MAX) return HD_LIMIT;
    node *nodes = env_resize(g->env, g->nodes, old * size, capacity * size);
    if (!nodes) return HD_NOMEM;
    if (!old) nodes[0] = (node){ .flags = NODE_REMOVED };
    g->nodes = nodes;
    g->node_capacity = capacity;
    if (!g->node_count) g->node_count = 1;
    return HD_OK;
}

/* Room for one more record. */
static hd_status grow(scheduler *s) {
    assert(s->graph.node_count <= s->side_capacity || !s->side_capacity);
    hd_status status = HD_OK;
    if (s->graph.node_count >= s->side_capacity) status = grow_sides(s);
    if (!status && s->graph.node_count >= s->graph.node_capacity) status = grow_nodes(&s->graph);
    return status;
}

/* Takes a free record, or a new one; the caller fills it in. A record that is used again keeps counting its
 * generation, so that handles of its former node stay invalid. */
static inline hd_status take_record(scheduler *s, node_id *out) {
    graph *g = &s->graph;
    uint32_t generation = 1;
    if (s->free_nodes) {
        *out = s->free_nodes;
        assert(g->nodes[*out].flags == NODE_REMOVED);
        s->free_nodes = g->nodes[*out].cold;
        generation = s->sides[*out].generation;
    } else {
        if (g->node_count >= g->node_capacity || g->node_count >= s->side_capacity) {
            hd_status status = grow(s);
            if (status) return status;
        }
        *out = g->node_count++;
    }
    s->sides[*out] = (node_side){ .generation = generation };
    return HD_OK;
}

static void give_record(scheduler *s, node_id id) {
    assert(id && id < s->graph.node_count && !node_own_name(s, id));
    s->sides[id].generation++;
    s->graph.nodes[id] = (node){ .flags = NODE_REMOVED, .cold = s->free_nodes };
    s->free_nodes = id;
}

cold *registry_cold(scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & NODE_REMOVED));
    node *n = node_of(s, id);
    if (n->cold) return s->colds.items[n->cold];
    uint32_t index = s->colds_free;
    cold *c;
    if (index) {
        c = s->colds.items[index];
        s->colds_free = c->next_free;
    } else {
        c = env_new(s->env, sizeof *c);
        if (!c) return NULL;
        if (!vec_push(s->env, &s->colds, c)) {
            env_free(s->env, c, sizeof *c);
            return NULL;
        }
        index = s->colds.count - 1;
    }
    *c = (cold){ .node = id };
    n->cold = index;
    assert(index && index < s->colds.count);
    return c;
}

static void give_cold(scheduler *s, node *n) {
    cold *c = cold_of(s, n);
    if (!c) return;
    assert(&s->graph.nodes[c->node] == n);
    if (binheap_linked(&c->gate.timer)) binheap_remove(&s->timers, &c->gate.timer);
    s->awaiting_count -= c->missing != 0;
    list_discard(&c->awaiting);
    list_discard(&c->blocked);
    *c = (cold){ .next_free = s->colds_free };
    s->colds_free = n->cold;
    n->cold = 0;
}

/* ---- names */

static uint32_t name_hash(node_id parent, const struct key *name) {
    return hash_fold(hash_combine(parent, name->hash));
}

static node_id find_key(const scheduler *s, node_id parent, const struct key *name) {
    assert(!parent || !(node_of(s, parent)->flags & NODE_REMOVED));
    for (table_probe p = table_find(&s->names, name_hash(parent, name)); table_next(&s->names, &p);)
        if (node_own_name(s, p.index) == name && graph_parent(&s->graph, p.index) == parent)
            return p.index;
    return 0;
}

node_id registry_find(const scheduler *s, node_id parent, const char *name, size_t length) {
    const struct key *k = key_find(s->r->heap, name, length);
    return k ? find_key(s, parent, k) : 0;
}

/* Makes room for the name of this node. The array grows up to the last node with a name, so that programs
 * without names do not pay for it. */
static hd_status room_for_name(scheduler *s, node_id id) {
    const size_t size = sizeof *s->node_names;
    uint32_t old = s->name_capacity, capacity = old ? old : NODES_FIRST;
    if (id < old) return HD_OK;
    while (capacity <= id) capacity = vec_next_capacity(capacity, size);
    struct key **names = env_resize(s->env, s->node_names, old * size, capacity * size);
    if (!names) return HD_NOMEM;
    memset(names + old, 0, (capacity - old) * size);
    s->node_names = names;
    s->name_capacity = capacity;
    assert(id < s->name_capacity);
    return HD_OK;
}

hd_status registry_make_name(scheduler *s, const char *of, const char *name, struct key **out) {
    hd_status status = key_make(s->r->heap, name, strlen(name), out);
    if (status == HD_SYNTAX)
        return runtime_fail(s->rt, status, "the name of a %s must be UTF-8, and this is not", of);
    if (status == HD_LIMIT)
        return runtime_fail(s->rt, status, "the name of a %s is longer than a text may be", of);
    return status;
}

static hd_status set_name(scheduler *s, node_id id, node_id parent, const char *name) {
    struct key *k;
    hd_status status = room_for_name(s, id);
    if (!status) status = registry_make_name(s, "node", name, &k);
    if (status) return status;
    if (find_key(s, parent, k)) {
        key_unref(k);
        return runtime_fail(s->rt, HD_USAGE,
                            "there is a node \"%s\" here already: unregister it first, or "
                            "give this one another name",
                            name);
    }
    status = table_insert(&s->names, name_hash(parent, k), id);
    if (status) key_unref(k);
    else s->node_names[id] = k;
    assert(status || find_key(s, parent, k) == id);
    return status;
}

/* Takes the node out of the names below `parent`, if it is there. */
static void unlist(scheduler *s, node_id id, node_id parent) {
    assert(!(node_of(s, id)->flags & NODE_REMOVED));
    const struct key *name = node_own_name(s, id);
    if (!name) return;
    uint32_t hash = name_hash(parent, name);
    for (table_probe p = table_find(&s->names, hash); table_next(&s->names, &p);) {
        if (p.index != id) continue;
        table_remove(&s->names, hash, id);
        return;
    }
}

/* The node leaves. Its children stay and keep their names, but cannot be found by path any more: the path
 * began with the node that is gone, and another node may have that name. */
static void drop_name(scheduler *s, node_id id) {
    const graph *g = &s->graph;
    for (node_id c = graph_first_child(g, id); c; c = graph_next_child(g, c)) unlist(s, c, id);
    unlist(s, id, graph_parent(g, id));
    if (!node_own_name(s, id)) return;
    key_unref(s->node_names[id]);
    s->node_names[id] = NULL;
}

/* ---- the parts of a spec */

static hd_status check_spec(scheduler *s, const hd_node_spec *spec) {
    if (!spec->fn) return runtime_fail(s->rt, HD_USAGE, "a node needs a function");
    if (spec->effect && (spec->output.id || spec->side_output_count || spec->envelope_count))
        return runtime_fail(s->rt, HD_USAGE,
                            "an effect has no outputs: it may write what it likes");
    return HD_OK;
}

static bool is_ignored(const scheduler *s, const hd_node_spec *spec, place_id at) {
    const hd_schema *schema;
    for (size_t i = 0; i < spec->ignored_count; i++)
        if (runtime_place(s->rt, spec->ignored[i], &schema) == at) return true;
    return false;
}

static hd_status add_output(scheduler *s, node_id id, const hd_node_spec *spec, hd_cell cell) {
    assert(!(node_of(s, id)->flags & NODE_EFFECT));
    const hd_schema *schema;
    place_id at = runtime_place(s->rt, cell, &schema);
    if (!at) return runtime_fail(s->rt, HD_USAGE, "an output is no cell of this runtime");
    if (is_ignored(s, spec, at)) return HD_OK;
    for (uint32_t i = 0, known; (known = graph_output(&s->graph, id, i)) != 0; i++)
        if (known == at) return HD_OK;
    return graph_add_output(&s->graph, id, at);
}

/* Envelopes take the place of side outputs: a writable input is not an output as well (4.3). */
static hd_status add_surface(scheduler *s, node_id id, const hd_node_spec *spec) {
    const hd_schema *schema;
    hd_status status = HD_OK;
    if (spec->output.id) status = add_output(s, id, spec, spec->output);
    for (size_t i = 0; i < spec->envelope_count && !status; i++) {
        place_id at = runtime_place(s->rt, spec->envelopes[i], &schema);
        status = at ? graph_add_envelope(&s->graph, id, at)
                    : runtime_fail(s->rt, HD_USAGE, "an envelope is no cell of this runtime");
    }
    for (size_t i = 0; i < spec->side_output_count && !spec->envelope_count && !status; i++)
        status = add_output(s, id, spec, spec->side_outputs[i]);
    if (status) return status;
    node *n = node_of(s, id);
    bool one = n->output && !graph_output(&s->graph, id, 1);
    if (one && place_is_doc(&s->r->places, n->output)) n->flags |= NODE_ROOT_OUT;
    return HD_OK;
}

/* The places behind cells, each once, in the order in which they are first named. */
typedef struct place_list {
    place_id *items;
    uint32_t count;
    table seen; /* place -> itself, where there are many */
} place_list;

#define PLACES_FEW 16 /* compared one by one */

static bool place_list_has(const place_list *l, place_id at) {
    if (l->count >= PLACES_FEW) {
        table_probe p = table_find(&l->seen, hash_fold(hash_combine(0, at)));
        while (table_next(&l->seen, &p))
            if (p.index == at) return true;
    }
    for (uint32_t i = 0; i < l->count && i < PLACES_FEW; i++)
        if (l->items[i] == at) return true;
    return false;
}

static hd_status place_list_add(place_list *l, place_id at) {
    assert(at && !place_list_has(l, at));
    hd_status status = HD_OK;
    if (l->count >= PLACES_FEW) status = table_insert(&l->seen, hash_fold(hash_combine(0, at)), at);
    if (!status) l->items[l->count++] = at;
    return status;
}

static hd_status add_declared(scheduler *s, node_id id, const hd_node_spec *spec) {
    place_id few[PLACES_FEW];
    place_list l = { .items = few };
    if (!spec->read_count) return HD_OK;
    if (spec->read_count > PLACES_FEW)
        l.items = env_new_array(s->env, spec->read_count, sizeof *l.items);
    if (!l.items) return HD_NOMEM;
    table_init(&l.seen, s->env);
    hd_status status = HD_OK;
    for (size_t i = 0; i < spec->read_count && !status; i++) {
        const hd_schema *schema;
        place_id at = runtime_place(s->rt, spec->reads[i], &schema);
        if (at && !place_list_has(&l, at)) status = place_list_add(&l, at);
    }
    if (!status) status = graph_apply_reads(&s->graph, id, l.items, l.count);
    table_fini(&l.seen);
    if (l.items != few) env_free(s->env, l.items, spec->read_count * sizeof *l.items);
    return status;
}

static hd_status add_cold(scheduler *s, node_id id, const hd_node_spec *spec) {
    bool needed = spec->release || spec->group || spec->debounce_ms || spec->throttle_ms ||
                  spec->no_auto_debounce;
    if (!needed) return HD_OK;
    cold *c = registry_cold(s, id);
    if (!c) return HD_NOMEM;
    c->release = spec->release;
    c->group = spec->group;
    c->gate.debounce_ms = spec->debounce_ms;
    c->gate.throttle_ms = spec->throttle_ms;
    c->gate.no_auto = spec->no_auto_debounce;
    if (spec->group || spec->debounce_ms || spec->throttle_ms) node_of(s, id)->flags |= NODE_GATED;
    return HD_OK;
}

static node_id parent_of(const scheduler *s, const hd_node_spec *spec) {
    node_id parent = registry_get(s, spec->parent);
    return parent ? parent : s->running;
}

/* ---- registering and removing */

static hd_status fill(scheduler *s, node_id id, const hd_node_spec *spec) {
    assert(node_of(s, id)->flags & NODE_NEVER_RAN);
    node_id parent = parent_of(s, spec);
    hd_status status = parent ? graph_set_parent(&s->graph, id, parent) : HD_OK;
    if (!status && spec->name) status = set_name(s, id, parent, spec->name);
    if (!status) status = add_surface(s, id, spec);
    if (!status) status = add_cold(s, id, spec);
    if (!status) status = add_declared(s, id, spec);
    return status;
}

static void count(scheduler *s, const node *n, uint32_t by) {
    if (n->flags & NODE_EFFECT) s->effects += by;
    else s->computations += by;
    if (n->flags & NODE_MATERIALISER) s->materialisers += by;
}

static bool is_above(const scheduler *s, node_id id, node_id below) {
    while (below && below != id) below = graph_parent(&s->graph, below);
    return below;
}

/* Moves the node, name and all, under another parent. On failure it stays where it was. */
static hd_status adopt(scheduler *s, node_id id, node_id parent) {
    assert(id != parent && parent);
    const struct key *name = node_own_name(s, id);
    node_id former = graph_parent(&s->graph, id);
    if (former == parent) return HD_OK;
    if (is_above(s, id, parent))
        return runtime_fail(s->rt, HD_USAGE, "node \"%s\" cannot move under a node below it",
                            node_label(s, id));
    if (name && find_key(s, parent, name))
        return runtime_fail(s->rt, HD_USAGE,
                            "there is a node \"%s\" here already: unregister it first, or "
                            "give this one another name",
                            key_bytes(name));
    if (name && table_insert(&s->names, name_hash(parent, name), id)) return HD_NOMEM;
    hd_status status = graph_set_parent(&s->graph, id, parent);
    unlist(s, id, status ? parent : former);
    return status;
}

/* hd_node_spec.again: moves the node under the running one, and promotes it to an effect if asked for. */
static hd_status register_again(scheduler *s, const hd_node_spec *spec, node_id *out) {
    node_id id = registry_get(s, spec->again);
    if (!id) return HD_NOT_FOUND;
    node *n = node_of(s, id);
    if ((n->flags & NODE_EFFECT) && !spec->effect)
        return runtime_fail(s->rt, HD_USAGE, "an effect cannot become a computation");
    if (s->running && s->running != id) {
        hd_status status = adopt(s, id, s->running);
        if (status) return status;
    }
    if (spec->effect) registry_promote(s, id);
    *out = id;
    return HD_OK;
}

/* Makes the record of a node that has a function and nothing else, and puts it into the graph with `add`. */
static inline hd_status make_node(scheduler *s, hd_action_fn fn, void *ctx, uint32_t kind,
                                  hd_status (*add)(graph *g, node_id id), node_id *out) {
    hd_status status = take_record(s, out);
    if (status) return status;
    s->graph.nodes[*out] = (node){ .fn = fn, .ctx = ctx, .flags = NODE_NEVER_RAN | kind };
    status = add(&s->graph, *out);
    if (status) give_record(s, *out);
    return status;
}

hd_status registry_add_effect(scheduler *s, hd_action_fn fn, void *ctx, node_id *out) {
    hd_status status = make_node(s, fn, ctx, NODE_EFFECT, graph_add_demanded, out);
    s->effects += !status;
    return status;
}

hd_status registry_register(scheduler *s, const hd_node_spec *spec, node_id *out) {
    *out = 0;
    if (spec->again.id) return register_again(s, spec, out);
    node_id id;
    hd_status status = check_spec(s, spec);
    const uint32_t kind = spec->effect ? NODE_EFFECT : 0;
    if (!status) status = make_node(s, spec->fn, spec->ctx, kind, graph_add_node, &id);
    if (status) return status;
    status = fill(s, id, spec);
    if (status) {
        cold *c = cold_of(s, node_of(s, id));
        if (c) c->release = NULL; /* the caller keeps ctx */
        count(s, node_of(s, id), 1);
        registry_remove(s, id);
        return status;
    }
    count(s, node_of(s, id), 1);
    *out = id;
    return HD_OK;
}

void registry_remove(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    assert(!(n->flags & NODE_REMOVED));
    count(s, n, UINT32_MAX);
    cold *c = cold_of(s, n);
    hd_release_fn release = c ? c->release : NULL;
    void *ctx = n->ctx;
    if (s->removed) s->removed(s, id);
    if (s->leaving) s->leaving(s, id);
    /* Nodes downstream of it may have been blocked by its suspended run, or through it by another's. */
    if (s->suspended) s->unblock = s->tick = true;
    assert(id != s->running && id != s->concluding); /* hd_node_unregister defers those */
    if (n->flags & NODE_SUSPENDED) s->suspended--, s->parked -= c->run->parked;
    drop_name(s, id);
    assert(!node_own_name(s, id));
    causes_forget(s, id);
    graph_remove_node(&s->graph, id);
    give_cold(s, node_of(s, id));
    give_record(s, id);
    if (release) release(ctx);
}

node_id registry_get(const scheduler *s, hd_node handle) {
    if (!handle.id || handle.id >= s->graph.node_count) return 0;
    return s->sides[handle.id].generation == handle.generation &&
                   !(s->graph.nodes[handle.id].flags & NODE_REMOVED)
               ? handle.id
               : 0;
}

void registry_promote(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    if (n->flags & NODE_EFFECT) return;
    count(s, n, UINT32_MAX);
    n->flags |= NODE_EFFECT;
    n->flags &= ~(uint32_t)NODE_ROOT_OUT;
    count(s, n, 1);
    graph_demand(&s->graph, id);
    assert(node_is_live(&s->graph, n));
}

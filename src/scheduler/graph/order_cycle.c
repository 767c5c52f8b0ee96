/* order_cycle.c -- which edge of a cycle stays outside the order?
 *
 * The nodes of the cycle are placed one by one, as if sorted afresh: those first that wait for no
 * other; when each waits, first those whose parent is placed (it may replace its children, so doomed
 * ones do not run), then the one that waits for the fewest edges, then the one that was registered
 * first. Edges that then point down are the back edges.
 *
 * For a cycle of very many nodes that is not worth the effort: there the newest edge is the back edge. */
#include "scheduler/graph/order.h"

#include "base/binheap.h"
#include "base/env.h"

#define CYCLE_MAX 256 /* nodes looked at to make the choice */

typedef struct member {
    binheap_item item;
    node_id id;
    uint32_t pos;
    uint32_t waits; /* for edges from members not yet placed */
    bool orphan;    /* its parent is a member not yet placed */
    bool placed;
} member;

typedef struct cycle {
    graph *g;
    member *items; /* by position */
    uint32_t count;
    binheap heap;
} cycle;

static bool is_member(const graph *g, node_id id) {
    uint32_t flags = graph_node(g, id)->flags;
    return (flags & NODE_FORWARD) && (flags & NODE_BACKWARD);
}

/* NULL: not in the cycle. */
static member *member_of(cycle *c, node_id id) {
    if (!is_member(c->g, id)) return NULL;
    uint32_t pos = graph_node(c->g, id)->pos, low = 0, high = c->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->items[middle].pos < pos) low = middle + 1;
        else high = middle;
    }
    assert(c->items[low].id == id);
    return &c->items[low];
}

static uint64_t key_of(const member *m) {
    uint64_t waits = m->waits < UINT32_C(0x3FFFFFFF) ? m->waits : UINT32_C(0x3FFFFFFF);
    uint32_t last = m->waits ? m->id : m->pos; /* members that wait for no other keep their order */
    return (uint64_t)(m->waits > 0) << 63 | (uint64_t)m->orphan << 62 | waits << 32 | last;
}

/* Fills the members and what they wait for. False: no memory. */
static bool gather(cycle *c, const node_id *ids) {
    graph *g = c->g;
    for (uint32_t i = 0; i < c->count; i++)
        c->items[i] = (member){ .id = ids[i], .pos = graph_node(g, ids[i])->pos };
    for (uint32_t i = 0; i < c->count; i++) {
        member *m = &c->items[i];
        node_id x;
        predecessor_walk w = predecessors_of(g, m->id);
        while (predecessors_next(&w, &x)) m->waits += is_member(g, x);
        node_id parent = graph_parent(g, m->id);
        m->orphan = parent && is_member(g, parent);
        if (binheap_push(&c->heap, &m->item, key_of(m))) return false;
    }
    return true;
}

static void refresh(cycle *c, member *m) {
    if (!m->placed) binheap_update(&c->heap, &m->item, key_of(m));
}

static void place_member(cycle *c, member *m) {
    graph *g = c->g;
    node_id x;
    m->placed = true;
    g->sequence.items[g->sequence.count++] = mark_of(g, m->id);
    successor_walk w = successors_of(g, m->id);
    while (successors_next(&w, &x)) {
        member *s = member_of(c, x);
        if (!s || s->placed) continue;
        assert(s->waits > 0);
        s->waits--;
        refresh(c, s);
    }
    for (x = graph_first_child(g, m->id); x; x = graph_next_child(g, x)) {
        member *child = member_of(c, x);
        if (!child || child->placed) continue;
        child->orphan = false;
        refresh(c, child);
    }
}

bool order_arrange(graph *g, const node_id *ids, uint32_t count) {
    cycle c = { .g = g, .count = count };
    if (!vec_room(g->env, &g->sequence, count)) return false;
    c.items = env_new_array(g->env, count, sizeof *c.items);
    if (!c.items) return false;
    binheap_init(&c.heap, g->env);
    bool done = gather(&c, ids);
    for (binheap_item *item; done && (item = binheap_pop(&c.heap));)
        place_member(&c, BINHEAP_ENTRY(item, member, item));
    binheap_fini(&c.heap);
    env_free(g->env, c.items, count * sizeof *c.items);
    return done;
}

void order_record(graph *g, const node_id *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        node_id x;
        predecessor_walk w = predecessors_of(g, ids[i]);
        while (predecessors_next(&w, &x)) {
            if (!is_member(g, x)) continue;
            if (graph_node(g, x)->pos > graph_node(g, ids[i])->pos) back_edge_add(g, x, ids[i]);
            else back_edge_drop(g, x, ids[i]);
        }
    }
}

/* ---- an edge that closes a cycle */

/* Those marked that are no members, as they stand. */
static void append_others(graph *g, const mark_vec *marks) {
    for (uint32_t i = 0; i < marks->count; i++)
        if (!is_member(g, (node_id)marks->items[i]))
            g->sequence.items[g->sequence.count++] = marks->items[i];
}

/* Places the nodes that reach the cycle, then its members, then the nodes that it reaches. */
static bool choose(graph *g) {
    node_id members[CYCLE_MAX];
    uint32_t count = 0;
    sort_marks(g->forward.items, g->forward.count);
    sort_marks(g->backward.items, g->backward.count);
    assert(g->forward.count <= CYCLE_MAX); /* the limit of the search */
    for (uint32_t i = 0; i < g->forward.count; i++)
        if (is_member(g, (node_id)g->forward.items[i]))
            members[count++] = (node_id)g->forward.items[i];
    vec_clear(&g->sequence);
    if (!vec_room(g->env, &g->sequence, g->forward.count + g->backward.count)) return false;
    append_others(g, &g->backward);
    if (!order_arrange(g, members, count)) return false;
    append_others(g, &g->forward);
    if (!order_place(g)) return false;
    order_record(g, members, count);
    return true;
}

void order_break_cycle(graph *g, node_id from, node_id to) {
    order_search s = { .low = graph_node(g, to)->pos,
                       .high = graph_node(g, from)->pos,
                       .limit = CYCLE_MAX,
                       .down = true };
    bool done = order_forward(g, &s, to, 0) == ORDER_DONE &&
                order_backward(g, &s, from) == ORDER_DONE && choose(g);
    order_search_end(g);
    /* An edge that has become a back edge may have held others down. */
    if (done) order_note(g, s.low, s.high);
    else back_edge_add(g, from, to);
}

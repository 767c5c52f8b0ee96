/* order_cycle.c -- which edge of a cycle stays outside the order?
 *
 * The nodes of the cycle (all that lie on a way from the reader to the writer) are placed one by one,
 * as if sorted afresh: those first that wait for no other; when each waits, first those whose parent
 * is placed (it may replace its children, so doomed ones do not run), then the one that waits for
 * the fewest edges, then the one that stood first. Edges that then point down are the back edges.
 *
 * A cycle of very many nodes is not worth the effort: there the newest edge is the back edge. */
#include "scheduler/order.h"

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
    member items[CYCLE_MAX];
    uint32_t count;
    binheap heap;
} cycle;

static bool is_member(const node *n) {
    return (n->flags & NODE_FORWARD) && (n->flags & NODE_BACKWARD);
}

/* By position, which has not changed yet; NULL: not in the cycle. */
static member *member_of(cycle *c, node_id id) {
    const node *n = graph_node(c->g, id);
    if (!is_member(n)) return NULL;
    uint32_t low = 0, high = c->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->items[middle].pos < n->pos) low = middle + 1;
        else high = middle;
    }
    assert(c->items[low].id == id);
    return &c->items[low];
}

static uint64_t key_of(const member *m) {
    uint64_t waits = m->waits < UINT32_C(0x3FFFFFFF) ? m->waits : UINT32_C(0x3FFFFFFF);
    return (uint64_t)(m->waits > 0) << 63 | (uint64_t)m->orphan << 62 | waits << 32 | m->pos;
}

/* Fills the members and what they wait for. False: no memory. */
static bool gather(cycle *c) {
    graph *g = c->g;
    for (uint32_t i = 0; i < g->forward.count; i++) {
        node_id id = (node_id)g->forward.items[i];
        if (!is_member(graph_node(g, id))) continue;
        c->items[c->count++] = (member){ .id = id, .pos = (uint32_t)(g->forward.items[i] >> 32) };
    }
    for (uint32_t i = 0; i < c->count; i++) {
        member *m = &c->items[i];
        node_id x;
        predecessor_walk w = predecessors_of(g, m->id);
        while (predecessors_next(&w, &x)) m->waits += is_member(graph_node(g, x));
        node_id parent = graph_parent(g, m->id);
        m->orphan = parent && is_member(graph_node(g, parent));
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

/* Members one by one, between those that only reach the cycle and those that it only reaches. */
static bool arrange(cycle *c) {
    graph *g = c->g;
    vec_clear(&g->sequence);
    if (!vec_room(g->env, &g->sequence, g->forward.count + g->backward.count)) return false;
    for (uint32_t i = 0; i < g->backward.count; i++)
        if (!is_member(graph_node(g, (node_id)g->backward.items[i])))
            g->sequence.items[g->sequence.count++] = g->backward.items[i];
    for (binheap_item *item; (item = binheap_pop(&c->heap));)
        place_member(c, BINHEAP_ENTRY(item, member, item));
    for (uint32_t i = 0; i < g->forward.count; i++)
        if (!is_member(graph_node(g, (node_id)g->forward.items[i])))
            g->sequence.items[g->sequence.count++] = g->forward.items[i];
    return order_place(g);
}

/* Edges among the members: down is back. */
static void record(cycle *c) {
    graph *g = c->g;
    for (uint32_t i = 0; i < c->count; i++) {
        node_id id = c->items[i].id, x;
        predecessor_walk w = predecessors_of(g, id);
        while (predecessors_next(&w, &x)) {
            if (!is_member(graph_node(g, x))) continue;
            if (graph_node(g, x)->pos > graph_node(g, id)->pos) back_edge_add(g, x, id);
            else back_edge_drop(g, x, id);
        }
    }
}

static bool choose(graph *g) {
    cycle c = { .g = g };
    binheap_init(&c.heap, g->env);
    sort_marks(g->forward.items, g->forward.count);
    sort_marks(g->backward.items, g->backward.count);
    bool done = gather(&c) && arrange(&c);
    if (done) record(&c);
    binheap_fini(&c.heap);
    return done;
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

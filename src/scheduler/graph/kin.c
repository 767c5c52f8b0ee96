/* kin.c -- parents and children: which node created which.
 *
 * A parent may replace or remove its children, so it runs before them where data says nothing else
 * (7.4). The order follows these links in its searches and gives way to data; nothing else depends on
 * them. A node leaves its parent's children when it goes, and its own children stay behind without a
 * parent. Only nodes that have kin have a record. */
#include "scheduler/graph/order.h"

static kin_record *kin_of(const graph *g, node_id id) {
    if (!(graph_node(g, id)->flags & NODE_KIN)) return NULL;
    table_probe p = table_find(&g->kin_index, id);
    while (table_next(&g->kin_index, &p))
        if (g->kin.items[p.index].node == id) return &g->kin.items[p.index];
    assert(false && "a node with NODE_KIN has a record");
    return NULL;
}

/* HD_NOMEM: nothing changed. */
static hd_status kin_make(graph *g, node_id id) {
    if (graph_node(g, id)->flags & NODE_KIN) return HD_OK;
    if (!g->kin_free) {
        if (!vec_push(g->env, &g->kin, (kin_record){ 0 })) return HD_NOMEM;
        g->kin_free = g->kin.count;
    }
    uint32_t index = g->kin_free - 1;
    if (table_insert(&g->kin_index, id, index)) return HD_NOMEM;
    g->kin_free = g->kin.items[index].next; /* of a free one: the next free */
    g->kin.items[index] = (kin_record){ .node = id };
    graph_node(g, id)->flags |= NODE_KIN;
    return HD_OK;
}

static void leave_parent(graph *g, kin_record *k) {
    if (!k->parent) return;
    if (k->next) kin_of(g, k->next)->prev = k->prev;
    if (k->prev) kin_of(g, k->prev)->next = k->next;
    else kin_of(g, k->parent)->first_child = k->next;
    k->parent = k->next = k->prev = 0;
}

static void join_parent(graph *g, kin_record *k, node_id parent) {
    kin_record *p = kin_of(g, parent);
    assert(!k->parent && !k->next && !k->prev);
    k->parent = parent;
    k->next = p->first_child;
    if (k->next) kin_of(g, k->next)->prev = k->node;
    p->first_child = k->node;
}

hd_status graph_set_parent(graph *g, node_id child, node_id parent) {
    assert(child != parent);
    if (!parent) {
        kin_record *k = kin_of(g, child);
        if (k) leave_parent(g, k);
        return HD_OK;
    }
    if (kin_make(g, parent) || kin_make(g, child)) return HD_NOMEM;
    assert(kin_of(g, parent)->node == parent && kin_of(g, child)->node == child);
    leave_parent(g, kin_of(g, child));
    join_parent(g, kin_of(g, child), parent);
    order_kin(g, parent, child);
    return HD_OK;
}

void kin_forget(graph *g, node_id id) {
    kin_record *k = kin_of(g, id);
    if (!k) return;
    while (k->first_child) leave_parent(g, kin_of(g, k->first_child));
    leave_parent(g, k);
    uint32_t index = (uint32_t)(k - g->kin.items);
    table_remove(&g->kin_index, id, index);
    *k = (kin_record){ .next = g->kin_free };
    g->kin_free = index + 1;
    graph_node(g, id)->flags &= ~(uint32_t)NODE_KIN;
}

node_id graph_parent(const graph *g, node_id child) {
    const kin_record *k = kin_of(g, child);
    return k ? k->parent : 0;
}
node_id graph_first_child(const graph *g, node_id parent) {
    const kin_record *k = kin_of(g, parent);
    return k ? k->first_child : 0;
}
node_id graph_next_child(const graph *g, node_id child) {
    const kin_record *k = kin_of(g, child);
    return k ? k->next : 0;
}

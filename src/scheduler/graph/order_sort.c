/* order_sort.c -- a whole stretch of positions, sorted anew.
 *
 * The predecessors of each node of the stretch are written down once, as an array; then Tarjan's
 * components over them, with a stack of our own. A component is complete when everything before it is,
 * so components come out in topological order, and since nodes are tried in the order of their
 * positions, what need not move does not. The nodes of a cycle are arranged among themselves as
 * order_cycle.c says, if they are not too many.
 *
 * Cost: the nodes in the stretch and their edges; 28 bytes for a node and 4 for an edge meanwhile. */
#include "scheduler/graph/order.h"

#include "base/env.h"

#define CYCLE_MAX 256
#define UNSEEN    UINT32_MAX
#define FINISHED  (UINT32_MAX - 1)

/* Nodes are named by their position minus `low`; holes have no predecessors and are skipped. */
typedef struct stretch {
    graph *g;
    uint32_t low, count;
    uint32_t *first;  /* count + 1: where the predecessors of each begin */
    uint32_t *edges;  /* predecessors */
    uint32_t *next;   /* the next predecessor to look at */
    uint32_t *number; /* when it was first seen; UNSEEN; FINISHED */
    uint32_t *least;  /* the least number reached */
    uint32_t *calls;  /* stack of the walk */
    uint32_t *open;   /* stack of those in no component yet */
    uint32_t edge_count, call_count, open_count, counter;
} stretch;

static node_id id_at(const stretch *s, uint32_t i) { return s->g->node_at[s->low + i]; }

static uint32_t *array(const stretch *s, uint32_t count) {
    return env_new_array(s->g->env, count ? count : 1, sizeof(uint32_t));
}
static void drop(const stretch *s, uint32_t *items, uint32_t count) {
    if (items) env_free(s->g->env, items, (count ? count : 1) * sizeof(uint32_t));
}

/* Counts the predecessors within the stretch, or writes them down. */
static uint32_t predecessors(stretch *s, uint32_t i, uint32_t *out) {
    uint32_t count = 0;
    node_id x;
    if (!id_at(s, i)) return 0;
    predecessor_walk w = predecessors_of(s->g, id_at(s, i));
    while (predecessors_next(&w, &x)) {
        uint32_t pos = graph_node(s->g, x)->pos;
        s->g->edge_visits++;
        if (pos < s->low || pos - s->low >= s->count) continue;
        if (out) out[count] = pos - s->low;
        count++;
    }
    return count;
}

static void stretch_fini(stretch *s) {
    drop(s, s->first, s->count + 1);
    drop(s, s->edges, s->edge_count);
    drop(s, s->next, s->count);
    drop(s, s->number, s->count);
    drop(s, s->least, s->count);
    drop(s, s->calls, s->count);
    drop(s, s->open, s->count);
}

static bool stretch_init(stretch *s) {
    s->first = array(s, s->count + 1);
    s->next = array(s, s->count);
    s->number = array(s, s->count);
    s->least = array(s, s->count);
    s->calls = array(s, s->count);
    s->open = array(s, s->count);
    if (!s->first || !s->next || !s->number || !s->least || !s->calls || !s->open) return false;
    uint64_t edges = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        s->first[i] = (uint32_t)edges;
        edges += predecessors(s, i, NULL);
        s->number[i] = UNSEEN;
    }
    if (edges >= UINT32_MAX) return false;
    s->first[s->count] = s->edge_count = (uint32_t)edges;
    s->edges = array(s, s->edge_count);
    if (!s->edges) return false;
    for (uint32_t i = 0; i < s->count; i++) predecessors(s, i, s->edges + s->first[i]);
    return true;
}

/* ---- components */

/* Components of several nodes are remembered, to find their back edges once all are placed. */
typedef VEC(node_id) node_vec;

static void set_members(graph *g, const node_id *ids, uint32_t count, bool on) {
    for (uint32_t i = 0; i < count; i++) {
        if (on) graph_node(g, ids[i])->flags |= NODE_FORWARD | NODE_BACKWARD;
        else graph_node(g, ids[i])->flags &= ~(uint32_t)(NODE_FORWARD | NODE_BACKWARD);
    }
}

/* By position, as order_arrange wants them; the stack holds them as they were found. */
static void sort_members(stretch *s, uint32_t from) {
    mark_vec *pool = &s->g->pool;
    uint32_t count = s->open_count - from;
    for (uint32_t i = 0; i < count; i++) pool->items[i] = s->open[from + i];
    sort_marks(pool->items, count);
    for (uint32_t i = 0; i < count; i++) s->open[from + i] = (uint32_t)pool->items[i];
}

/* The component on the stack from `from` on goes into the sequence. */
static bool emit(stretch *s, uint32_t from, node_vec *cycles) {
    graph *g = s->g;
    uint32_t count = s->open_count - from;
    if (count > 1) sort_members(s, from);
    uint32_t begin = cycles->count;
    for (uint32_t i = from; i < s->open_count; i++) {
        s->number[s->open[i]] = FINISHED;
        if (count > 1) cycles->items[cycles->count++] = id_at(s, s->open[i]);
    }
    s->open_count = from;
    if (count == 1) {
        g->sequence.items[g->sequence.count++] = mark_of(g, id_at(s, s->open[from]));
    } else if (count <= CYCLE_MAX) {
        set_members(g, cycles->items + begin, count, true);
        bool done = order_arrange(g, cycles->items + begin, count);
        set_members(g, cycles->items + begin, count, false);
        if (!done) return false;
    } else {
        for (uint32_t i = begin; i < cycles->count; i++)
            g->sequence.items[g->sequence.count++] = mark_of(g, cycles->items[i]);
    }
    return true;
}

static void enter(stretch *s, uint32_t i) {
    assert(s->number[i] == UNSEEN && s->call_count < s->count && s->open_count < s->count);
    s->number[i] = s->least[i] = s->counter++;
    s->next[i] = s->first[i];
    s->calls[s->call_count++] = i;
    s->open[s->open_count++] = i;
}

/* One step of the walk. False: no memory. */
static bool walk(stretch *s, node_vec *cycles) {
    uint32_t i = s->calls[s->call_count - 1];
    if (s->next[i] < s->first[i + 1]) {
        uint32_t x = s->edges[s->next[i]++];
        if (s->number[x] == UNSEEN) enter(s, x);
        else if (s->number[x] != FINISHED && s->number[x] < s->least[i]) s->least[i] = s->number[x];
        return true;
    }
    s->call_count--;
    if (s->call_count) {
        uint32_t caller = s->calls[s->call_count - 1];
        if (s->least[i] < s->least[caller]) s->least[caller] = s->least[i];
    }
    if (s->least[i] != s->number[i]) return true;
    uint32_t from = s->open_count;
    do from--;
    while (s->open[from] != i);
    return emit(s, from, cycles);
}

/* Fills the sequence with all nodes of the stretch. */
static bool sort_stretch(stretch *s, node_vec *cycles) {
    graph *g = s->g;
    vec_clear(&g->sequence);
    vec_clear(&g->pool);
    if (!vec_room(g->env, &g->sequence, s->count) || !vec_room(g->env, &g->pool, s->count) ||
        !vec_room(g->env, cycles, s->count))
        return false;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->number[i] != UNSEEN || !id_at(s, i)) continue;
        enter(s, i);
        while (s->call_count)
            if (!walk(s, cycles)) return false;
    }
    return true;
}

bool order_sort(graph *g, uint32_t low, uint32_t high) {
    stretch s = { .g = g, .low = low, .count = high - low + 1 };
    node_vec cycles = { 0 };
    assert(low <= high && high < g->order_count);
    bool done = stretch_init(&s) && sort_stretch(&s, &cycles);
    stretch_fini(&s); /* positions change now */
    done = done && order_place(g);
    if (done && cycles.count) {
        set_members(g, cycles.items, cycles.count, true);
        order_record(g, cycles.items, cycles.count);
        set_members(g, cycles.items, cycles.count, false);
    }
    if (done) {
        g->repairs++;
        order_note(g, low, high); /* former back edges may point upward now */
    }
    vec_fini(g->env, &cycles);
    return done;
}

/* readers_delta.c -- a run has read this: what is new, what is gone? (P6)
 *
 * What the old and the new list have in common at their beginning costs a comparison each. Of the
 * rest each key is looked for in the old list, first where the last one was found: most lists lose
 * or gain an entry and go on as before. While lists change, the read set is the old one followed by
 * the new reads, so that every entry of a reader list has a read to point at; only then it takes its
 * final form.
 *
 *     old    a b c d          while changing   a b c d e       final   a b e d
 *     new    a b e d          (c goes, e comes)
 *
 * Memory comes first, then the lists, then order and demand, which need complete read sets. Demand is given
 * before it is withdrawn, so that no writer goes dormant in between. */
#include "scheduler/graph/live.h"

#include "base/env.h"

#define FEW     12         /* reads up to which they are looked for one by one */
#define DROPPED UINT32_MAX /* fate of an old read that is not wanted any more */

/* ---- read sets in memory */

static uint32_t reads_capacity(uint32_t count) {
    uint32_t capacity = 2;
    if (count <= 1) return 0; /* stands in the node */
    while (capacity < count) capacity *= 2;
    return capacity;
}

static hd_status reads_take(graph *g, uint32_t count, edge **out) {
    uint32_t capacity = reads_capacity(count);
    *out = capacity ? graph_block_take(g, capacity * sizeof(edge)) : NULL;
    return capacity && !*out ? HD_NOMEM : HD_OK;
}

static void reads_give(graph *g, edge *many, uint32_t count) {
    uint32_t capacity = reads_capacity(count);
    if (capacity) graph_block_give(g, many, capacity * sizeof(edge));
}

/* ---- the delta */

typedef struct delta {
    graph *g;
    node_id id;
    edge *old;
    edge one; /* holds the old read, if it stood in the node */
    const uint32_t *keys;
    uint32_t old_count, count;
    uint32_t same;   /* agree at the beginning */
    uint32_t added;  /* stand in `fresh` from old_count on */
    uint32_t hashed; /* entries of graph.seen in use; 0: none yet */
} delta;

/* fates[0 .. count): where each final read stands in `fresh`; behind them, for each old read: kept
 * (0) or DROPPED. */
static uint32_t *fates_of_old(const delta *d) { return d->g->fates.items + d->count; }

static uint32_t seen_slot(const delta *d, uint32_t key) {
    return (key * UINT32_C(0x9E3779B1)) >> (32 - (uint32_t)__builtin_ctz(d->hashed));
}

/* Puts the old reads from `same` on into the hash table `seen`, by key, and uses as much of it as they need:
 * another node may have made it far larger. False: no memory. */
static bool hash_old(delta *d) {
    graph *g = d->g;
    uint32_t need = reads_capacity(2 * (d->old_count - d->same));
    if (need > g->seen_capacity) {
        uint32_t *seen =
            env_resize(g->env, g->seen, g->seen_capacity * sizeof *seen, need * sizeof *seen);
        if (!seen) return false;
        g->seen = seen;
        g->seen_capacity = need;
    }
    d->hashed = need;
    memset(g->seen, 0, need * sizeof *g->seen);
    for (uint32_t i = d->same; i < d->old_count; i++) {
        uint32_t at = seen_slot(d, d->old[i].key);
        while (g->seen[at]) at = (at + 1) & (need - 1);
        g->seen[at] = i + 1;
    }
    return true;
}

static uint32_t find_hashed(const delta *d, uint32_t key) {
    const graph *g = d->g;
    for (uint32_t at = seen_slot(d, key); g->seen[at]; at = (at + 1) & (d->hashed - 1))
        if (d->old[g->seen[at] - 1].key == key) return g->seen[at] - 1;
    return UINT32_MAX;
}

static uint32_t find_tried(const delta *d, uint32_t key) {
    for (uint32_t i = d->same; i < d->old_count; i++)
        if (d->old[i].key == key) return i;
    return UINT32_MAX;
}

/* Decides what becomes of each read. HD_NOMEM: nothing changed. */
static hd_status compare(delta *d) {
    graph *g = d->g;
    bool few = d->old_count - d->same <= FEW;
    if (!vec_room(g->env, &g->fates, (uint64_t)d->count + d->old_count)) return HD_NOMEM;
    uint32_t *fate = g->fates.items, *old_fate = fates_of_old(d);
    for (uint32_t i = d->same; i < d->old_count; i++) old_fate[i] = DROPPED;
    uint32_t hint = d->same;
    for (uint32_t j = d->same; j < d->count; j++) {
        uint32_t i = hint;
        if (hint >= d->old_count || d->old[hint].key != d->keys[j]) {
            if (!few && !d->hashed && !hash_old(d)) return HD_NOMEM;
            i = few ? find_tried(d, d->keys[j]) : find_hashed(d, d->keys[j]);
        }
        if (i == UINT32_MAX) {
            fate[j] = d->old_count + d->added++;
        } else {
            fate[j] = i;
            old_fate[i] = 0;
            hint = i + 1;
        }
    }
    return HD_OK;
}

/* The old read set with the new reads behind it, in `fresh`, as the node's read set. */
static hd_status open_fresh(delta *d) {
    graph *g = d->g;
    node *n = graph_node(g, d->id);
    uint64_t total = (uint64_t)d->old_count + d->added;
    assert(d->same <= d->count && d->same <= d->old_count && d->added <= d->count - d->same);
    vec_clear(&g->fresh);
    if (!vec_room(g->env, &g->fresh, total < 2 ? 2 : total)) return HD_NOMEM;
    if (d->old_count) memcpy(g->fresh.items, d->old, d->old_count * sizeof(edge));
    for (uint32_t j = d->same; j < d->count; j++)
        if (g->fates.items[j] >= d->old_count)
            g->fresh.items[g->fates.items[j]] = (edge){ d->keys[j], EDGE_UNLINKED };
    n->reads.many = g->fresh.items;
    n->read_count = total < 2 ? 2 : (uint32_t)total; /* two or more do not stand inline */
    return HD_OK;
}

/* A read that stays may stand far behind where it was: its list must be able to say so. */
static hd_status widen_kept(delta *d) {
    uint32_t first = d->same > READER_SLOT_MAX ? d->same : READER_SLOT_MAX + 1;
    for (uint32_t j = first; j < d->count; j++) {
        uint32_t from = d->g->fates.items[j];
        if (from < d->old_count && readers_widen(d->g, d->old[from])) return HD_NOMEM;
    }
    return HD_OK;
}

static hd_status enter_added(delta *d) {
    for (uint32_t i = 0; i < d->added; i++) {
        if (!readers_add(d->g, d->id, d->old_count + i)) continue;
        while (i-- > 0) readers_remove(d->g, d->id, d->old_count + i);
        return HD_NOMEM;
    }
    return HD_OK;
}

static void leave_dropped(delta *d) {
    const uint32_t *old_fate = fates_of_old(d);
    for (uint32_t i = d->same; i < d->old_count; i++)
        if (old_fate[i] == DROPPED) readers_remove(d->g, d->id, i);
}

/* From `fresh` to the final read set. */
static void close_fresh(delta *d, edge *final) {
    graph *g = d->g;
    const edge *fresh = g->fresh.items;
    if (d->same) memcpy(final, fresh, d->same * sizeof(edge));
    for (uint32_t j = d->same; j < d->count; j++) {
        uint32_t from = g->fates.items[j];
        final[j] = fresh[from];
        if (from != j && final[j].slot != EDGE_UNLINKED) readers_move(g, final[j], j);
    }
}

/* Order and demand of what came, then of what went. */
static void tell(delta *d) {
    graph *g = d->g;
    bool live = node_is_live(g, graph_node(g, d->id));
    for (uint32_t i = 0; i < d->added; i++)
        live_read_added(g, d->id, g->fresh.items[d->old_count + i].key & KEY_PLACE, live);
    live_drain(g);
    const uint32_t *old_fate = fates_of_old(d);
    for (uint32_t i = d->same; i < d->old_count; i++)
        if (old_fate[i] == DROPPED)
            live_read_gone(g, d->id, g->fresh.items[i].key & KEY_PLACE, live);
}

static void count_places(delta *d) {
    graph *g = d->g;
    const uint32_t *old_fate = fates_of_old(d);
    for (uint32_t i = 0; i < d->added; i++)
        place_ref(g->places, g->fresh.items[d->old_count + i].key & KEY_PLACE);
    for (uint32_t i = d->same; i < d->old_count; i++)
        if (old_fate[i] == DROPPED) place_unref(g->places, g->fresh.items[i].key & KEY_PLACE);
}

/* ---- the whole */

/* Old reads as they were; entering and leaving may have moved them in their lists. */
static void restore(delta *d) {
    node *n = graph_node(d->g, d->id);
    memcpy(d->old, d->g->fresh.items, d->old_count * sizeof(edge));
    if (d->old_count <= 1) n->reads.one = d->one;
    else n->reads.many = d->old;
    n->read_count = d->old_count;
}

static void install(delta *d, edge *final) {
    node *n = graph_node(d->g, d->id);
    edge one = { 0, EDGE_UNLINKED };
    close_fresh(d, d->count <= 1 ? &one : final);
    if (d->count <= 1) n->reads.one = one;
    else n->reads.many = final;
    n->read_count = d->count;
    if (final != d->old) reads_give(d->g, d->old, d->old_count);
}

static hd_status change(delta *d) {
    graph *g = d->g;
    bool linked = graph_node(g, d->id)->flags & NODE_LINKED;
    edge *final = d->old;
    hd_status status = compare(d);
    if (!status && linked) status = widen_kept(d);
    if (!status && reads_capacity(d->count) != reads_capacity(d->old_count))
        status = reads_take(g, d->count, &final);
    if (status) return status;

    status = open_fresh(d);
    if (!status && linked) {
        status = enter_added(d);
        if (status) restore(d);
    }
    if (status) {
        if (final != d->old) reads_give(g, final, d->count);
        return status;
    }
    if (linked) leave_dropped(d);
    install(d, final);
    if (linked) tell(d);
    count_places(d);
    return HD_OK;
}

/* ---- the first read set: there is nothing to compare it with */

static hd_status enter_first(graph *g, node_id id, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!readers_add(g, id, i)) continue;
        while (i-- > 0) readers_remove(g, id, i);
        return HD_NOMEM;
    }
    return HD_OK;
}

/* For a read set of one read, which stands inline in the node; the node is linked. */
static hd_status first_read(graph *g, node_id id, uint32_t key) {
    node *n = graph_node(g, id);
    n->reads.one = (edge){ key, EDGE_UNLINKED };
    n->read_count = 1;
    hd_status status = readers_add(g, id, 0);
    if (status) {
        readers_free(g, id);
        return status;
    }
    live_read_added(g, id, key & KEY_PLACE, node_is_live(g, n));
    live_drain(g);
    return HD_OK;
}

/* The references to the places are the caller's. */
static hd_status first_reads(graph *g, node_id id, const uint32_t *keys, uint32_t count) {
    node *n = graph_node(g, id);
    edge *many;
    hd_status status = reads_take(g, count, &many);
    if (status) return status;
    if (count > 1) n->reads.many = many;
    n->read_count = count;
    edge *reads = node_reads(n);
    for (uint32_t i = 0; i < count; i++) reads[i] = (edge){ keys[i], EDGE_UNLINKED };
    if (!(n->flags & NODE_LINKED)) return HD_OK;
    status = enter_first(g, id, count);
    if (status) {
        readers_free(g, id);
        return status;
    }
    bool live = node_is_live(g, n);
    for (uint32_t i = 0; i < count; i++) live_read_added(g, id, keys[i] & KEY_PLACE, live);
    live_drain(g);
    return HD_OK;
}

hd_status graph_take_reads(graph *g, node_id id, const uint32_t *keys, uint32_t count) {
    assert(!graph_node(g, id)->read_count && (graph_node(g, id)->flags & NODE_LINKED));
    return count == 1 ? first_read(g, id, keys[0]) : first_reads(g, id, keys, count);
}

/* ---- the one read that changes from run to run */

/* Whether just the read at `same` is another, of another place. */
static bool one_replaced(const delta *d) {
    if (d->count != d->old_count) return false;
    if (!((d->keys[d->same] ^ d->old[d->same].key) & KEY_PLACE)) return false;
    for (uint32_t i = d->same + 1; i < d->count; i++)
        if (d->keys[i] != d->old[i].key) return false;
    return true;
}

static hd_status replace_one(delta *d) {
    graph *g = d->g;
    node *n = graph_node(g, d->id);
    edge *read = &node_reads(n)[d->same], old = *read;
    place_id came = d->keys[d->same] & KEY_PLACE, went = old.key & KEY_PLACE;
    *read = (edge){ d->keys[d->same], EDGE_UNLINKED };
    if (n->flags & NODE_LINKED) {
        bool live = node_is_live(g, n);
        hd_status status = readers_add(g, d->id, d->same);
        if (status) {
            *read = old;
            return status;
        }
        readers_remove_old(g, old);
        live_read_added(g, d->id, came, live);
        live_drain(g);
        live_read_gone(g, d->id, went, live);
    }
    place_ref(g->places, came);
    place_unref(g->places, went);
    return HD_OK;
}

hd_status graph_apply_reads(graph *g, node_id id, const uint32_t *keys, uint32_t count) {
    node *n = graph_node(g, id);
    if (!(n->flags & NODE_LINKED) && (node_is_live(g, n) || !node_is_invalid(g, n))) {
        hd_status status = graph_link(g, id);
        if (status) return status;
    }
    delta d = { .g = g, .id = id, .keys = keys, .old_count = n->read_count, .count = count };
    d.one = n->reads.one;
    d.old = n->read_count <= 1 ? &d.one : n->reads.many;
    while (d.same < count && d.same < d.old_count && d.old[d.same].key == keys[d.same]) d.same++;
    if (d.same == count && d.same == d.old_count) return HD_OK;
    if (d.old_count) return one_replaced(&d) ? replace_one(&d) : change(&d);
    hd_status status = first_reads(g, id, keys, count);
    for (uint32_t i = 0; i < count && !status; i++) place_ref(g->places, keys[i] & KEY_PLACE);
    return status;
}

/* For a node that leaves; its reads are unlinked. */
void readers_clear(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(!(n->flags & NODE_LINKED));
    for (uint32_t i = 0; i < n->read_count; i++)
        place_unref(g->places, node_reads(n)[i].key & KEY_PLACE);
    readers_free(g, id);
}

void readers_free(graph *g, node_id id) {
    node *n = graph_node(g, id);
    reads_give(g, n->reads.many, n->read_count);
    n->reads.one = (edge){ 0, EDGE_UNLINKED };
    n->read_count = 0;
}

/* adopt.c -- another runtime has run a node that is here too.
 *
 * Its commit brings the outputs, and with them the row that says what the run read. If the node here is
 * invalid and has the same code, and its reads and outputs have here the hashes of the row, a run would
 * change nothing: the node takes the reads over and is clean (C313). Otherwise it runs; also if it was clean, and the
 * outputs were made of other inputs than those that are here (I1). */
#include "scheduler/persistence/lead.h"

#include "value/diff.h"
#include "value/object.h"

/* The node here that the item of an extra is about; 0: none, or no memory to tell. */
static node_id node_of_item(scheduler *s, hd_value item) {
    size_t length;
    const char *name = memo_text(item, ROW_NAME, &length);
    node_id id = persistence_find(s, name, length);
    hd_value instance = id ? rows_instance(s, kept_scope(kept_of(s, id))) : value_absent();
    if (!value_exists(instance) || (kept_of(s, id)->flags & KEPT_CREATES)) return 0;
    assert(!(node_of(s, id)->flags & NODE_REMOVED));
    return value_equal(array_get(item, ROW_INSTANCE), instance) ? id : 0;
}

/* A node that waits for a time runs then, unless it waits for this very result. */
static bool could_be_clean(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const cold *c = cold_of(s, n);
    if (!node_is_invalid(&s->graph, n) || (n->flags & NODE_NOT_ADOPTED)) return false;
    if (kept_of(s, id)->wrote_in > s->r->settled) return false;
    return node_is_eligible(&s->graph, n) || (c && c->gate.lead_at);
}

/* A document that is not known here is as the author of the commit saw it: no later change has been told. */
static bool holds(const scheduler *s, const resume_set *set, const set_row *row) {
    const uint32_t *keys = set_keys(set, row);
    for (uint32_t i = 0; i < row->keys; i++)
        if (!match_if_known(s, keys[i], set_text(set, row, ROW_HASHES), i)) return false;
    return true;
}

/* Without memory the node stays invalid, and runs. */
static bool adopt(scheduler *s, node_id id, hd_value item) {
    if (!value_equal(array_get(item, ROW_PRINT), kept_of(s, id)->print) || !could_be_clean(s, id))
        return false;
    resume_set *set = set_of_item(s, item);
    const set_row *row = set ? &set->rows.items[0] : NULL;
    bool adopted = row && holds(s, set, row) && !resume_install(s, id, set, row, true);
    set_free(s, set);
    return adopted;
}

/* A run has registered the node, in the other runtime with other reads than here: a chunk of a fold, say, has other
 * members there. What those runs have read differs, and so the other's output is not that of this node. */
static bool reads_otherwise(const scheduler *s, node_id id, hd_value item) {
    size_t length;
    const char *print = memo_text(item, ROW_PRINT, &length);
    hd_value here = kept_of(s, id)->print;
    return graph_parent(&s->graph, id) && !value_equal(array_get(item, ROW_PRINT), here) &&
           fingerprint_same_code(here, print, length);
}

/* The node was clean, and the other runtime has written over its outputs. If the other's run read what is here, the
 * outputs are those of the present state: also if they were made by other code, since two versions that each mend the
 * other's outputs would never end. */
static void excuse(scheduler *s, node_id id, hd_value item) {
    if (reads_otherwise(s, id, item)) return;
    resume_set *set = set_of_item(s, item);
    if (set && holds(s, set, &set->rows.items[0])) node_of(s, id)->flags &= ~NODE_OVERWRITTEN;
    set_free(s, set);
}

/* A row that is not taken over has still replaced this runtime's: the next one of the node is written,
 * whatever its hashes. */
static void hear(scheduler *s, hd_value item, const char *by) {
    node_id id = node_of_item(s, item);
    if (!id) return;
    if (node_of(s, id)->flags & NODE_OVERWRITTEN) excuse(s, id, item);
    if (!adopt(s, id, item)) kept_of(s, id)->flags |= KEPT_AGAIN;
    lead_heard(s, id, item, by);
}

void adopt_observed(void *ctx, hd_value extra) {
    scheduler *s = ctx;
    const char *by = hd_value_as_text(object_get_bytes(extra, "lead", 4), NULL);
    for (hd_iter it = hd_iter_of(memo_extra_of(extra).kept); hd_iter_next(&it);)
        hear(s, it.value, by);
    graph_settle(&s->graph);
    if (s->led.count) s->unlead = s->tick = true;
}

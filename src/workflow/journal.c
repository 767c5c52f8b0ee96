/* journal.c -- what an instance has done, entry by entry, where its workflow asks for it.
 *
 * "journal": "steps" in the IR notes starts, completions, failures, signals and the end; "nodes" every node that
 * ran and every edge of a loop, branch or fan-out besides. A walk notes entries in memory; the commit that stores
 * what the walk has changed appends them to documents "workflow-journal/<id>/<n>" of at most 256 entries each, so
 * that an entry costs the same however many there are. */
#include "workflow/engine.h"

#include "base/env.h"
#include <stdio.h>

#define SEGMENT        256
#define JOURNAL_PREFIX "workflow-journal/"

static const char *const words[] = {
#define JOURNAL_ROW(name, word) word,
    JOURNAL_TABLE(JOURNAL_ROW)
#undef JOURNAL_ROW
};

static hd_value entry_value(hd_pool *pool, const live *l, const journal_entry *j, uint64_t seq) {
    assert(j->what <= JOURNAL_END &&
           (j->node == PLAN_NONE || j->function < l->in->p->function_count));
    hd_value r = hd_object_set(pool, hd_object(), "seq", hd_int(pool, (int64_t)seq));
    r = hd_object_set(pool, r, "at", hd_int(pool, (int64_t)j->at_ms));
    r = hd_object_set(pool, r, "what", hd_string(pool, words[j->what]));
    if (j->node != PLAN_NONE) {
        const plan_node *n = &l->in->p->functions[j->function].nodes[j->node];
        r = hd_object_set(pool, r, "node", hd_string(pool, n->id));
    }
    if (hd_value_exists(j->signal)) r = hd_object_set(pool, r, "signal", j->signal);
    if (j->what == JOURNAL_EDGE)
        r = hd_object_set(pool, r, "edge", hd_string(pool, edge_kind_name(j->edge)));
    if (j->step) r = hd_object_set(pool, r, "step", hd_string_f(pool, "%u.%u", j->strand, j->step));
    if (j->attempt > 1) r = hd_object_set(pool, r, "attempt", hd_int(pool, j->attempt));
    return r;
}

static place_id segment_document(hd_engine *e, const char *id, uint64_t segment) {
    char name[HD_INSTANCE_ID_SIZE + 24];
    snprintf(name, sizeof name, "%s/%06llu", id, (unsigned long long)segment);
    return engine_document(e, JOURNAL_PREFIX, name);
}

void journal_forget(live *l) {
    if (l->segment) place_unref(&l->e->rt->r.places, l->segment);
    l->segment = 0;
}

/* A segment begins: there is none with this number yet, so that the store need not be asked. */
static hd_status begin_segment(live *l) {
    journal_forget(l);
    l->segment = segment_document(l->e, l->id, l->journaled / SEGMENT);
    if (!l->segment) return HD_NOMEM;
    engine_assume_absent(l->e, l->segment);
    return HD_OK;
}

hd_status journal_load(live *l) {
    if (l->journaled % SEGMENT == 0) return HD_OK; /* the next entry begins one */
    if (!l->segment) l->segment = segment_document(l->e, l->id, l->journaled / SEGMENT);
    return l->segment ? engine_load(l->e, l->segment) : HD_NOMEM;
}

static hd_status append(hd_tx *tx, live *l, hd_value entry) {
    hd_pool *pool = hd_tx_pool(tx);
    bool begins = l->journaled % SEGMENT == 0;
    hd_status status = begins ? begin_segment(l) : journal_load(l);
    if (status) return status;
    hd_cell cell = { l->segment };
    if (!begins) status = hd_tx_append(tx, cell, entry);
    else status = hd_tx_set(tx, cell, hd_array_of(pool, &entry, 1));
    if (!status && begins) status = hd_tx_set_kind(tx, cell, "workflow.journal");
    l->journaled++;
    return status;
}

hd_status journal_write(hd_tx *tx, live *l, const doc_writer *out) {
    static const char *const path[] = { "journal" };
    instance *in = l->in;
    hd_status status = HD_OK;
    if (!in->journal.count) return HD_OK;
    for (uint32_t i = 0; i < in->journal.count && !status; i++)
        status = append(tx, l, entry_value(hd_tx_pool(tx), l, &in->journal.items[i], l->journaled));
    instance_forget_journal(in);
    if (status) return status;
    return out->write(out->ctx, DOC_SET, path, 1, hd_int(hd_tx_pool(tx), (int64_t)l->journaled));
}

hd_status journal_cut(hd_tx *tx, hd_engine *e, const char *id, uint32_t most, uint64_t *count) {
    uint64_t segments = (*count + SEGMENT - 1) / SEGMENT;
    hd_status status = HD_OK;
    for (; most && segments && !status; most--) {
        place_id doc = segment_document(e, id, --segments);
        if (!doc) return HD_NOMEM;
        status = hd_tx_remove(tx, (hd_cell){ doc });
        place_unref(&e->rt->r.places, doc);
    }
    *count = segments * SEGMENT;
    return status;
}

/* ---- reading */

static bool tell_segment(hd_value segment, hd_journal_fn fn, void *ctx) {
    for (hd_iter it = hd_iter_of(segment); hd_iter_next(&it);)
        if (!fn(it.value, ctx)) return false;
    return true;
}

hd_status hd_workflow_journal(hd_engine *e, const char *id, hd_journal_fn fn, void *ctx) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value doc = engine_read(e, pool, INSTANCE_PREFIX, id);
    uint64_t count = (uint64_t)hd_value_as_int(hd_value_at(doc, "journal"), 0);
    status = hd_value_status(doc);
    if (!status && !hd_value_exists(doc))
        status = runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s", id);
    for (uint64_t i = 0; !status && i * SEGMENT < count; i++) {
        char name[HD_INSTANCE_ID_SIZE + 24];
        hd_pool_clear(pool);
        snprintf(name, sizeof name, "%s/%06llu", id, (unsigned long long)i);
        if (!tell_segment(engine_read(e, pool, JOURNAL_PREFIX, name), fn, ctx)) break;
    }
    hd_pool_close(pool);
    return status;
}

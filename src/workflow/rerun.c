/* rerun.c -- instances that are over run again.
 *
 * An engine that runs the instance's shard begins at once (live_rerun). Any other writes what a start is, a document
 * with the status "queued": what it says of its end is gone, and "again" says where it begins, by the id of a node, or
 * `true` for the beginning. From then on the instance is open for every program: it can be awaited, cancelled, and
 * signalled. */
#include "workflow/engine.h"

const char *rerun_why_not(const plan *p, hd_value doc, uint32_t node) {
    const plan_function *f = &p->functions[0];
    const plan_node *n = &f->nodes[node];
    if (n->fan != PLAN_NONE || n->kind == NODE_BARRIER) return "it lies in a branch";
    if (n->kind == NODE_HANDLER) return "a HANDLER begins with an exception";
    for (uint32_t at = n->loop; at != PLAN_NONE; at = f->nodes[at].loop)
        if (!hd_value_exists(hd_value_at(hd_value_at(doc, "loops"), f->nodes[at].id)))
            return "it lies in a loop that the instance was not in";
    return NULL;
}

static hd_status check_node(hd_engine *e, const char *id, hd_value doc, const char *node) {
    plan *p;
    hd_status status = version_plan(e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (status)
        return engine_may_pass(status)
                   ? status
                   : runtime_fail(e->rt, HD_USAGE, "the version of %s is not in the store", id);
    if (!node) return HD_OK;
    uint32_t at = plan_find_node(&p->functions[0], node);
    if (at == PLAN_NONE)
        return runtime_fail(e->rt, HD_USAGE, "%s has no node \"%s\"", p->name, node);
    if (!strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "done"))
        return runtime_fail(e->rt, HD_USAGE,
                            "an instance that is done has no variables any more: run it again from "
                            "the beginning");
    const char *why = rerun_why_not(p, doc, at);
    return why ? runtime_fail(e->rt, HD_USAGE, "%s cannot go on at \"%s\": %s", id, node, why)
               : HD_OK;
}

static hd_status check(hd_engine *e, const char *id, hd_value doc, const char *node) {
    const live *l = live_find(e, id);
    if (hd_value_status(doc)) return hd_value_status(doc);
    if (!hd_value_exists(doc) && !l)
        return runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s", id);
    if (l || !control_is_over(doc)) return runtime_fail(e->rt, HD_USAGE, "%s is not over", id);
    return check_node(e, id, doc, node);
}

/* The commit claims the document: it is refused if another program has removed the instance, or run it again. */
static hd_status write_again(hd_tx *tx, hd_cell cell, const char *node) {
    static const char *const end[] = { "result", "error", "finished", "failed_at" };
    hd_pool *pool = hd_tx_pool(tx);
    hd_value doc = hd_tx_read(tx, cell, HD_READ_NO_DEPENDENCY);
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) doc = hd_object_remove(pool, doc, end[i]);
    doc = hd_object_set(pool, doc, "again", node ? hd_string(pool, node) : hd_bool(true));
    doc = hd_object_set(pool, doc, "status", hd_string(pool, "queued"));
    hd_status status = hd_value_status(doc);
    if (!status) status = hd_tx_set(tx, cell, doc);
    return status ? status : hd_tx_set_kind(tx, cell, "workflow.queued");
}

static hd_status queue_again(hd_engine *e, const char *id, const char *node) {
    hd_tx *tx;
    hd_status status = inbox_listen(e);
    if (!status) status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    tx->class = HD_COMMIT_EVENT;
    status = doc ? write_again(tx, (hd_cell){ doc }, node) : HD_NOMEM;
    if (doc) place_unref(&e->rt->r.places, doc);
    return tx_end(tx, status, NULL, NULL);
}

hd_status hd_workflow_rerun(hd_engine *e, const char *id, const char *node) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = check(e, id, control_look_at(e, pool, id), node);
    hd_pool_close(pool);
    if (status) return status;
    return shard_runs(e, id) ? live_rerun(e, id, node) : queue_again(e, id, node);
}

/* version.c -- versions of workflows in the store.
 *
 * "workflow-version/<hash>" holds the IR of a version and never changes; "workflow-name/<name>" says which version
 * new instances of the name begin with. Any process may register, and start what another has registered. */
#include "workflow/engine.h"

static plan *known_plan(const hd_engine *e, const char *version) {
    for (uint32_t i = e->plans.count; i-- > 0;)
        if (!strcmp(e->plans.items[i]->version, version)) return e->plans.items[i];
    return NULL;
}

static hd_status presence_of(hd_value from, hd_status otherwise) {
    hd_status status = hd_value_status(from);
    return status ? status : hd_value_exists(from) ? HD_OK : otherwise;
}

static hd_status load_plan(hd_engine *e, hd_pool *pool, const char *version, plan **out) {
    hd_value ir = engine_read(e, pool, VERSION_PREFIX, version);
    hd_status status = presence_of(ir, HD_NOT_FOUND);
    if (!status) status = plan_make(e->w, e->heap, ir, out, NULL);
    if (status) return status;
    if (strcmp((*out)->version, version) != 0) status = HD_CORRUPT;
    else if (!vec_push(e->env, &e->plans, *out)) status = HD_NOMEM;
    if (!status) return HD_OK;
    plan_unref(*out);
    *out = NULL;
    return status;
}

hd_status version_plan(hd_engine *e, const char *version, plan **out) {
    hd_pool *pool;
    *out = known_plan(e, version);
    if (*out) return HD_OK;
    if (!*version) return HD_NOT_FOUND;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = load_plan(e, pool, version, out);
    hd_pool_close(pool);
    return status;
}

/* What the document of a name says. Unlike the documents of instances it is read again and again: it stays in the
 * replica, which hears of its changes. */
static hd_value read_name(hd_engine *e, hd_pool *pool, const char *name) {
    if (e->last_name && !strcmp(e->last_name, name))
        return hd_read(e->rt, pool, (hd_cell){ e->last_name_doc });
    place_id doc = engine_document(e, NAME_PREFIX, name);
    if (!doc) return (hd_value){ 0 };
    hd_value v = hd_read(e->rt, pool, (hd_cell){ doc });
    char *kept = hd_value_exists(v) ? engine_text(e, name) : NULL;
    if (!kept) {
        place_unref(&e->rt->r.places, doc);
        return v;
    }
    place_at(&e->rt->r.places, doc)->doc.flags &= 0xFFFFu & ~(unsigned)DOC_PASSING;
    version_forget_name(e);
    e->last_name = kept;
    e->last_name_doc = doc;
    return v;
}

void version_forget_name(hd_engine *e) {
    if (!e->last_name) return;
    engine_free_text(e, e->last_name);
    place_unref(&e->rt->r.places, e->last_name_doc);
    e->last_name = NULL;
}

hd_status version_latest(hd_engine *e, const char *name, plan **out) {
    hd_pool *pool;
    *out = NULL;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value named = read_name(e, pool, name);
    status = presence_of(named, HD_NOT_FOUND);
    if (!status) status = version_plan(e, hd_value_as_text(hd_value_at(named, "version"), ""), out);
    hd_pool_close(pool);
    return status;
}

/* ---- registering */

static hd_status set_document(hd_engine *e, hd_tx *tx, const char *prefix, const char *id,
                              hd_value v, const char *kind) {
    place_id doc = engine_document(e, prefix, id);
    if (!doc) return HD_LIMIT;
    hd_status status = hd_tx_set(tx, (hd_cell){ doc }, v);
    if (!status) status = hd_tx_set_kind(tx, (hd_cell){ doc }, kind);
    place_unref(&e->rt->r.places, doc);
    return status;
}

static hd_status write_version(hd_engine *e, hd_tx *tx, const plan *p) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_value name = hd_object_set(pool, hd_object(), "version", hd_string(pool, p->version));
    hd_status status =
        set_document(e, tx, VERSION_PREFIX, p->version, p->source, "workflow.version");
    return status ? status : set_document(e, tx, NAME_PREFIX, p->name, name, "workflow.name");
}

/* What is in the store already changes nothing, and costs no commit. */
static hd_status store_version(hd_engine *e, const plan *p) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    status = write_version(e, tx, p);
    return tx_end(tx, status, NULL, NULL);
}

hd_status hd_workflow_register(hd_engine *e, hd_value ir, char version[HD_ID_SIZE],
                               hd_error *error) {
    plan *p;
    hd_status status = plan_make(e->w, e->heap, ir, &p, error);
    if (status) return status;
    if (version) memcpy(version, p->version, HD_ID_SIZE);
    status = store_version(e, p);
    bool known = known_plan(e, p->version) != NULL;
    if (!status && !known && !vec_push(e->env, &e->plans, p)) status = HD_NOMEM;
    if (status || known) plan_unref(p);
    return status;
}

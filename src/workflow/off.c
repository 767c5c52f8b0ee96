/* off.c -- instances that end badly: a line in the log for one that has failed; those that cannot go on are marked as
 * stalled.
 *
 * An instance that cannot be read or stored is not run again and again: its document gets the status "stalled" and the
 * error, and stays as it is otherwise. Until that is stored the engine keeps the instance (live.off), without anything
 * of it that runs: if the store refuses the commit, it is made again. Then those that wait are told, and the parent
 * looks at the document. */
#include "workflow/engine.h"

#include "base/env.h"
#include <stdio.h>

/* HD_KIND: the program has made a value that cannot be stored (Unsupported); all other failures are not the program's
 * (SystemError). */
static hd_value why_of(hd_pool *pool, const hd_error *error) {
    const char *class_name = error->status == HD_KIND ? "Unsupported" : "SystemError";
    hd_value why = hd_object_set(pool, hd_object(), "$error", hd_string(pool, class_name));
    return hd_object_set(pool, why, "message", hd_string(pool, error->message));
}

static hd_status write_end(hd_tx *tx, const live *l) {
    const hd_engine *e = l->e;
    hd_cell doc = { l->doc };
    hd_pool *pool = hd_tx_pool(tx);
    hd_status status = engine_fence(tx, l->shard);
    if (!status && hd_value_exists(l->record)) status = hd_tx_set(tx, doc, l->record);
    if (!status) status = hd_tx_set(tx, hd_cell_child(e->rt, doc, "error"), why_of(pool, l->off));
    if (!status)
        status = hd_tx_set(tx, hd_cell_child(e->rt, doc, "status"), hd_string(pool, "stalled"));
    return status ? status : hd_tx_set_kind(tx, doc, "workflow.stalled");
}

/* Messages to it are still in the inbox. */
void off_leave(live *l) {
    hd_engine *e = l->e;
    char id[HD_INSTANCE_ID_SIZE];
    memcpy(id, l->id, strlen(l->id) + 1);
    e->overheard = true;
    live_free(l);
    control_tell(e, id);
}

hd_value off_document(hd_pool *pool, const live *l) {
    hd_value doc = hd_object_set(pool, l->record, "error", why_of(pool, l->off));
    return hd_object_set(pool, doc, "status", hd_string(pool, "stalled"));
}

static void try_later(live *l) {
    assert(!l->in && !list_linked(&l->lame));
    list_push_back(&l->e->lame, &l->lame);
}

/* The engine may be closed, and the instance may have left it, before the verdict comes. */
typedef struct ending {
    hd_runtime *rt;
    uint64_t engine; /* its group */
    char id[HD_INSTANCE_ID_SIZE];
} ending;

/* HD_LIMIT: the input alone is longer than the store takes, so that the instance cannot exist. */
static void told(hd_status status, void *ctx) {
    ending *c = ctx;
    hd_engine *e = engine_find(c->rt, c->engine);
    live *l = e ? live_find(e, c->id) : NULL;
    env_free(&c->rt->env, c, sizeof *c);
    if (e && status != HD_LIMIT) live_note_verdict(e, status);
    if (!l || !l->off || list_linked(&l->lame)) return;
    if (status && status != HD_LIMIT) try_later(l);
    else off_leave(l);
}

void off_store(live *l) {
    hd_engine *e = l->e;
    hd_tx *tx;
    assert(!l->in);
    if (!l->off) { /* no memory: loaded again, it comes to the same */
        try_later(l);
        return;
    }
    ending *c = e->rt->open || live_is_held(e) ? NULL : env_new(e->env, sizeof *c);
    if (!c || engine_begin(e, &tx)) {
        env_free(e->env, c, sizeof *c);
        try_later(l);
        return;
    }
    *c = (ending){ .rt = e->rt, .engine = e->group };
    memcpy(c->id, l->id, strlen(l->id) + 1);
    hd_status status = write_end(tx, l);
    if (status) hd_tx_abort(tx);
    else status = hd_tx_commit(tx, told, c);
    if (!status) return; /* `l` may have left */
    env_free(e->env, c, sizeof *c);
    if (engine_may_pass(status)) try_later(l);
    else off_leave(l); /* the document cannot be marked: it is no object any more */
}

bool off_begin(live *l, const hd_error *error) {
    hd_engine *e = l->e;
    assert(!l->off && !l->in);
    l->off = env_new_copy(e->env, error, sizeof *error);
    if (l->off)
        env_log(e->env, HD_LOG_ERROR, "workflow instance %s cannot go on: %s", l->id,
                error->message);
    return l->off;
}

/* ---- in the log */

/* ", at the node raise of helper (shop.py:12)"; nothing, if the document does not say it. */
static void write_place(char *out, size_t size, hd_value doc) {
    hd_value at = hd_value_at(doc, "failed_at");
    const char *node = hd_value_as_text(hd_value_at(at, "node"), "");
    const char *name = hd_value_as_text(hd_value_at(at, "function"), "");
    const char *source = hd_value_as_text(hd_value_at(at, "at"), "");
    *out = 0;
    if (*node)
        snprintf(out, size, ", at the node %.80s%s%.80s%s%.100s%s", node, *name ? " of " : "", name,
                 *source ? " (" : "", source, *source ? ")" : "");
}

static void log_document(const live *l, hd_value doc) {
    char where_at[320];
    hd_value error = hd_value_at(doc, "error");
    const char *message = hd_value_as_text(hd_value_at(error, "message"), "");
    write_place(where_at, sizeof where_at, doc);
    env_log(l->e->env, HD_LOG_WARN, "workflow instance %s has %s%s%s%s%.300s%s", l->id,
            instance_status_name(l->in->status), hd_value_exists(error) ? ": " : "",
            hd_value_as_text(hd_value_at(error, "$error"), ""), *message ? ": " : "", message,
            where_at);
}

/* The engine does not know who waits for the instance, in this program and in others: so it says so in any case. */
void off_log(const live *l) {
    hd_pool *pool;
    bool is_bad = l->in->status == INSTANCE_FAILED || l->in->status == INSTANCE_STALLED;
    if (!is_bad || l->depth || hd_pool_open(l->e->heap, &pool)) return;
    log_document(l, hd_read(l->e->rt, pool, (hd_cell){ l->doc }));
    hd_pool_close(pool);
}

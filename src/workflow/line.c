/* line.c -- named queues: their bounds, and the public functions that set and show them. In the code a named queue is a
 * *line*; struct queue has the steps of one action in one line (task.h).
 *
 * The document "workflow-queue/<name>" says how many steps of the queue workers may have at once, and whether the queue
 * is paused. The active engine reads it when a step first names the queue, and when the document changes. A queue
 * without a document has no bounds. Steps wait in dispatch.c, by queue and action; a step counts in its queue while a
 * worker has it. The bound holds over all engines of the space: share.c. */
#include "workflow/engine.h"

#include "base/env.h"

bool line_name_is_good(const char *name) { return name && plan_name_is_good(name, strlen(name)); }

/* ---- the lines that steps have named */

static line *find(const hd_engine *e, const char *name) {
    for (uint32_t i = 0; i < e->lines.count; i++)
        if (!strcmp(e->lines.items[i]->name, name)) return e->lines.items[i];
    return NULL;
}

static void read_line(line *l, hd_value doc) {
    int64_t most = hd_value_as_int(hd_value_at(doc, "most"), 0);
    l->most = most > 0 && most < UINT32_MAX ? (uint32_t)most : 0;
    l->paused = hd_value_as_bool(hd_value_at(doc, "paused"), false);
}

/* Reads the bounds anew. */
static hd_status look(hd_engine *e, line *l) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value doc = engine_read(e, pool, LINE_PREFIX, l->name);
    status = hd_value_status(doc);
    if (!status) read_line(l, doc);
    hd_pool_close(pool);
    return status;
}

line *line_of(hd_engine *e, const char *name) {
    line *l = find(e, name);
    if (l || !(l = env_new0(e->env, sizeof *l))) return l;
    l->name = engine_text(e, name);
    if (l->name && !(*name && (look(e, l) || share_open(e, &l->share, false, name))) &&
        vec_push(e->env, &e->lines, l))
        return l;
    share_close(e, &l->share);
    engine_free_text(e, l->name);
    env_free(e->env, l, sizeof *l);
    return NULL;
}

hd_status line_heard(hd_engine *e, const char *name) {
    line *l = line_name_is_good(name) ? find(e, name) : NULL;
    if (!l) return HD_OK; /* no step has named it: its document is read when one does */
    hd_status status = look(e, l);
    if (!status) task_heat_line(e, l);
    share_touch(e, &l->share);
    return status;
}

share *line_share(const hd_engine *e, const char *name) {
    line *l = find(e, name);
    return l ? &l->share : NULL;
}

hd_status line_share_all(hd_engine *e) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < e->lines.count && !status; i++) {
        line *l = e->lines.items[i];
        if (*l->name) status = share_open(e, &l->share, false, l->name);
    }
    return status;
}

void line_fini(hd_engine *e) {
    for (uint32_t i = 0; i < e->lines.count; i++) {
        share_close(e, &e->lines.items[i]->share);
        engine_free_text(e, e->lines.items[i]->name);
        env_free(e->env, e->lines.items[i], sizeof *e->lines.items[i]);
    }
    vec_fini(e->env, &e->lines);
    while (e->served.count) engine_free_text(e, vec_pop(&e->served));
    vec_fini(e->env, &e->served);
}

/* ---- putting */

typedef struct wish {
    const hd_queue *q;
    place_id at;
} wish;

static hd_status put_in(hd_tx *tx, void *ctx) {
    const wish *w = ctx;
    hd_pool *pool = hd_tx_pool(tx);
    hd_value doc = hd_object();
    if (w->q->most) doc = hd_object_set(pool, doc, "most", hd_int(pool, w->q->most));
    if (w->q->paused) doc = hd_object_set(pool, doc, "paused", hd_bool(true));
    hd_status status = hd_tx_set(tx, (hd_cell){ w->at }, doc);
    return status ? status : hd_tx_set_kind(tx, (hd_cell){ w->at }, LINE_KIND);
}

static hd_status no_name(hd_engine *e) {
    return runtime_fail(e->rt, HD_USAGE, "a queue has a name of " PLAN_NAME_RULE);
}

hd_status hd_queue_put(hd_engine *e, const hd_queue *queue_) {
    if (!line_name_is_good(queue_->name)) return no_name(e);
    wish w = { queue_, engine_document(e, LINE_PREFIX, queue_->name) };
    if (!w.at) return HD_NOMEM;
    hd_status status = inbox_listen(e);
    if (!status) status = hd_transact(e->rt, put_in, &w);
    place_unref(&e->rt->r.places, w.at);
    return status;
}

static hd_value with_counts(const hd_engine *e, hd_pool *pool, hd_value to, const char *name) {
    int64_t ready = 0, workers = 0;
    const line *l = find(e, name);
    for (uint32_t i = 0; i < e->queues.count; i++) {
        const queue *q = e->queues.items[i];
        if (q->line != l) continue;
        ready += binheap_count(&q->ready);
        if (q->workers.count > workers) workers = q->workers.count;
    }
    to = hd_object_set(pool, to, "ready", hd_int(pool, ready));
    to = hd_object_set(pool, to, "running", hd_int(pool, l ? l->running : 0));
    return hd_object_set(pool, to, "workers", hd_int(pool, workers));
}

hd_status hd_queue_state(hd_engine *e, const char *name, hd_pool *pool, hd_value *out) {
    *out = (hd_value){ 0 };
    if (!line_name_is_good(name)) return no_name(e);
    hd_value doc = engine_read(e, pool, LINE_PREFIX, name);
    if (hd_value_status(doc)) return hd_value_status(doc);
    if (!hd_value_exists(doc)) doc = hd_object();
    *out = hd_object_set(pool, doc, "name", hd_string(pool, name));
    if (e->active) *out = with_counts(e, pool, *out, name);
    return hd_value_status(*out);
}

/* ---- listing */

typedef struct lister {
    hd_queue_fn fn;
    void *ctx;
    bool stopped;
} lister;

static bool tell(const hd_listing *entry, void *ctx) {
    lister *l = ctx;
    l->stopped = !l->fn(entry->id + strlen(LINE_PREFIX), l->ctx);
    return !l->stopped;
}

/* *put: hd_queue_put has stored a document of the queue. */
static hd_status find_put(hd_engine *e, const char *name, bool *put) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value doc = engine_read(e, pool, LINE_PREFIX, name);
    *put = hd_value_exists(doc);
    status = hd_value_status(doc);
    hd_pool_close(pool);
    return status;
}

hd_status hd_queue_list(hd_engine *e, hd_queue_fn fn, void *ctx) {
    lister l = { .fn = fn, .ctx = ctx };
    bool put = false;
    hd_status status = hd_runtime_list(e->rt, e->space, LINE_KIND, LINE_PREFIX, tell, &l);
    for (uint32_t i = 0; i < e->lines.count && e->active && !status && !l.stopped; i++) {
        const char *name = e->lines.items[i]->name;
        if (!*name) continue; /* the line of steps that name no queue */
        status = find_put(e, name, &put);
        if (!status && !put) l.stopped = !fn(name, ctx);
    }
    return status;
}

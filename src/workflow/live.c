/* live.c -- instances of an active engine: taken up, stored, ended.
 *
 * The document of an instance is "workflow/<name>/<key>" of the engine's space; its kind is
 * "workflow.<status>", so that instances of a status, and of a name, are listed by an index. A commit stores
 * the changes of every instance that has walked since the last one. It claims their documents and the lease: if
 * anything else has written one of them, the commit is refused, and its instances are loaded again. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include "expr/encode.h"
#include "value/key.h"
#include <stdio.h>

/* ---- which there are */

static uint32_t hash_id(const char *id) { return (uint32_t)hash_bytes(id, strlen(id), 0); }

live *live_find(const hd_engine *e, const char *id) {
    for (table_probe p = table_find(&e->by_id, hash_id(id)); table_next(&e->by_id, &p);)
        if (!strcmp(e->all.items[p.index]->id, id)) return e->all.items[p.index];
    return NULL;
}

/* Room for it among the free ones is made here, so that giving it back cannot fail. */
static uint32_t free_index(hd_engine *e) {
    if (e->free_indices.count) return vec_pop(&e->free_indices);
    if (!vec_room(e->env, &e->free_indices, e->all.count + 1)) return UINT32_MAX;
    return vec_push(e->env, &e->all, NULL) ? e->all.count - 1 : UINT32_MAX;
}

static hd_status new_live(hd_engine *e, const char *id, live **out) {
    live *l = env_new0(e->env, sizeof *l);
    *out = NULL;
    if (!l) return HD_NOMEM;
    l->e = e;
    l->id = engine_text(e, id);
    uint32_t index = l->id ? free_index(e) : UINT32_MAX;
    if (index == UINT32_MAX || table_insert(&e->by_id, hash_id(id), index)) {
        if (index != UINT32_MAX) (void)vec_push(e->env, &e->free_indices, index);
        engine_free_text(e, l->id);
        env_free(e->env, l, sizeof *l);
        return HD_NOMEM;
    }
    e->all.items[index] = l;
    l->doc = engine_document(e, INSTANCE_PREFIX, id);
    list_push_back(&e->lives, &l->link);
    e->stats.open++;
    *out = l;
    return l->doc ? HD_OK : HD_LIMIT;
}

static void forget_in(live *l) {
    if (!l->in) return;
    step_unqueue(l);
    l->e->stats.nodes += l->in->counts.nodes;
    l->e->stats.arrivals += l->in->counts.arrivals;
    instance_close(l->in);
    l->in = NULL;
}

static void take_from(live_vec *all, const live *l) {
    uint32_t i = 0;
    while (i < all->count && all->items[i] != l) i++;
    assert(i < all->count);
    vec_swap_remove(all, i);
}

static void leave_commits(live *l) {
    if (l->changed) take_from(&l->e->changed, l);
    if (l->committing) take_from(&l->e->under_way, l);
    l->changed = l->committing = false;
}

static void drop_mail(live *l) {
    for (uint32_t i = 0; i < l->mail.count; i++) {
        engine_free_text(l->e, l->mail.items[i].name);
        hd_value_unref(l->mail.items[i].payload);
    }
    vec_clear(&l->mail);
}

/* Messages whose effect is not stored are heard again. */
static void give_messages_back(live *l) {
    hd_engine *e = l->e;
    l->answered = 0;
    while (l->messages.count) {
        place_id doc = vec_pop(&l->messages);
        if (e->active && vec_push(e->env, &e->heard, doc)) continue;
        e->overheard = true;
        place_unref(&e->rt->r.places, doc);
    }
}

static void forget_index(live *l) {
    hd_engine *e = l->e;
    for (table_probe p = table_find(&e->by_id, hash_id(l->id)); table_next(&e->by_id, &p);) {
        if (e->all.items[p.index] != l) continue;
        uint32_t index = p.index;
        table_remove(&e->by_id, hash_id(l->id), index);
        e->all.items[index] = NULL;
        (void)vec_push(e->env, &e->free_indices, index);
        return;
    }
}

void live_free(live *l) {
    hd_engine *e = l->e;
    child_forget(l);
    forget_in(l);
    leave_commits(l);
    drop_mail(l);
    give_messages_back(l);
    vec_fini(e->env, &l->mail);
    vec_fini(e->env, &l->messages);
    forget_index(l);
    hd_value_unref(l->record);
    if (l->doc) place_unref(&e->rt->r.places, l->doc);
    list_discard(&l->link);
    list_discard(&l->lame);
    engine_free_text(e, l->id);
    e->stats.open--;
    env_free(e->env, l, sizeof *l);
}

/* ---- loading */

static hd_status load_mail(live *l, hd_value all) {
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);) {
        mail m = { engine_text(l->e, hd_value_as_text(hd_value_index(it.value, 0), "")),
                   hd_value_ref(hd_value_index(it.value, 1)) };
        if (m.name && vec_push(l->e->env, &l->mail, m)) continue;
        engine_free_text(l->e, m.name);
        hd_value_unref(m.payload);
        return HD_NOMEM;
    }
    return HD_OK;
}

/* An instance that was only asked for begins now; any other goes on. */
static hd_status load_from(live *l, hd_value doc, hd_error *error) {
    plan *p;
    hd_status status = version_plan(l->e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (status == HD_NOMEM) return status;
    if (status) {
        env_error(error, HD_CORRUPT, "its version of the workflow is not in the store");
        return HD_CORRUPT;
    }
    status = instance_open(l->e->w, p, &l->in);
    if (status) return status;
    l->in->owner = l;
    l->priority = (int32_t)hd_value_as_int(hd_value_at(doc, "priority"), 0);
    l->journaled = (uint64_t)hd_value_as_int(hd_value_at(doc, "journal"), 0);
    l->depth = (uint32_t)hd_value_as_int(hd_value_at(doc, "depth"), 0);
    if (!strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "queued"))
        return start_walk(l, doc);
    status = instance_load(l->in, doc, error);
    return status ? status : load_mail(l, hd_value_at(doc, "signals"));
}

/* HD_NOT_FOUND: there is nothing to run. */
static hd_status load(live *l, hd_error *error) {
    hd_pool *pool;
    hd_status status = hd_pool_open(l->e->heap, &pool);
    if (status) return status;
    hd_value doc = hd_read(l->e->rt, pool, (hd_cell){ l->doc });
    if (hd_value_status(doc) == HD_NOMEM) status = HD_NOMEM; /* it may be there */
    else if (!hd_value_exists(doc) && hd_value_exists(l->record)) doc = l->record;
    else if (hd_value_exists(doc)) {
        hd_value_unref(l->record); /* another start with this key was first */
        l->record = (hd_value){ 0 };
    }
    if (!status && (!hd_value_exists(doc) || control_is_over(doc))) status = HD_NOT_FOUND;
    if (!status) status = load_from(l, doc, error);
    hd_pool_close(pool);
    return status;
}

/* The instance waits for what is stored; or it has just begun, and that is stored next. */
static void settle_in(live *l) {
    bool began = l->in->status_changed;
    l->stored = !began;
    child_note(l);
    if (began) live_changed(l);
    else step_queue(l);
}

/* An instance that cannot be read is not run again and again: it is marked, and left as it is. */
static void write_off(live *l, const hd_error *error) {
    hd_engine *e = l->e;
    hd_tx *tx;
    env_log(e->env, HD_LOG_ERROR, "workflow instance %s cannot go on: %s", l->id, error->message);
    if (hd_value_exists(l->record) || e->rt->open || engine_begin(e, &tx)) return;
    hd_cell doc = { l->doc };
    hd_pool *pool = hd_tx_pool(tx);
    hd_value why = hd_object_set(pool, hd_object(), "$error", hd_string(pool, "SystemError"));
    why = hd_object_set(pool, why, "message", hd_string(pool, error->message));
    hd_status status = hd_tx_set(tx, hd_cell_child(e->rt, doc, "error"), why);
    if (!status)
        status = hd_tx_set(tx, hd_cell_child(e->rt, doc, "status"), hd_string(pool, "stalled"));
    if (!status) status = hd_tx_set_kind(tx, doc, "workflow.stalled");
    if (status) hd_tx_abort(tx);
    else (void)hd_tx_commit(tx, NULL, NULL);
}

static hd_status bring_in(live *l) {
    hd_error error = { 0 };
    hd_status status = load(l, &error);
    assert(!list_linked(&l->lame));
    if (!status) settle_in(l);
    if (status == HD_NOMEM) {
        forget_in(l);
        drop_mail(l);
        list_push_back(&l->e->lame, &l->lame);
        l->e->starved = true;
    }
    if (!status || status == HD_NOMEM) return HD_OK;
    if (status != HD_NOT_FOUND) write_off(l, &error);
    live_free(l);
    return status;
}

/* Those that could not be loaded for want of memory. */
void live_retry(hd_engine *e) {
    for (size_t n = list_count(&e->lame); n-- > 0;)
        (void)bring_in(LIST_ENTRY(list_pop_front(&e->lame), live, lame));
}

hd_status live_take_up(hd_engine *e, const char *id) {
    live *l;
    assert(e->active);
    hd_status status = new_live(e, id, &l);
    if (!status) return bring_in(l);
    if (l) live_free(l);
    return status;
}

hd_status live_start(hd_engine *e, const char *id, hd_value record) {
    live *l;
    assert(e->active && !live_find(e, id));
    hd_status status = new_live(e, id, &l);
    if (!status) {
        l->record = hd_value_ref(record);
        status = load_from(l, record, NULL);
    }
    if (status) {
        if (l) live_free(l);
        return status;
    }
    settle_in(l);
    return HD_OK;
}

/* ---- running again */

/* NULL: the node can be begun at. */
static const char *why_not_at(const instance *in, uint32_t node) {
    const plan_function *f = &in->p->functions[0];
    const plan_node *n = &f->nodes[node];
    if (n->fan != PLAN_NONE || n->kind == NODE_BARRIER) return "it lies in a branch";
    if (n->kind == NODE_HANDLER) return "a HANDLER begins with an exception";
    for (uint32_t at = n->loop; at != PLAN_NONE; at = f->nodes[at].loop) {
        bool is_there = false;
        for (uint32_t i = 0; i < in->root->loops.count; i++)
            is_there = is_there || in->root->loops.items[i].node == at;
        if (!is_there) return "it lies in a loop that the instance was not in";
    }
    return NULL;
}

static hd_status rerun_at(live *l, hd_value doc, const char *id) {
    hd_error error = { 0 };
    instance *in = l->in;
    uint32_t node = plan_find_node(&in->p->functions[0], id);
    if (node == PLAN_NONE)
        return runtime_fail(l->e->rt, HD_USAGE, "%s has no node \"%s\"", in->p->name, id);
    if (!strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "done"))
        return runtime_fail(l->e->rt, HD_USAGE,
                            "an instance that is done has no variables any more: run it again from "
                            "the beginning");
    hd_status status = instance_load_last(in, doc, &error);
    const char *why = status ? error.message : why_not_at(in, node);
    if (why)
        return runtime_fail(l->e->rt, status ? status : HD_USAGE, "%s cannot go on at \"%s\": %s",
                            l->id, id, why);
    return walk_at(in, node);
}

static hd_status rerun_from(live *l, hd_value doc, const char *node) {
    plan *p;
    hd_status status = version_plan(l->e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (status == HD_NOMEM) return status;
    if (!hd_value_exists(doc) || !control_is_over(doc) || !p)
        return runtime_fail(l->e->rt, hd_value_exists(doc) ? HD_USAGE : HD_NOT_FOUND,
                            "%s is no instance that is over", l->id);
    status = instance_open(l->e->w, p, &l->in);
    if (status) return status;
    int64_t next = hd_value_as_int(hd_value_at(doc, "next"), 1);
    l->in->owner = l;
    l->in->next_number = next < 2 ? 2 : (uint32_t)next; /* 0 and 1 were used */
    l->in->now_ms = env_wall_ms(l->e->env);
    l->priority = (int32_t)hd_value_as_int(hd_value_at(doc, "priority"), 0);
    l->depth = (uint32_t)hd_value_as_int(hd_value_at(doc, "depth"), 0);
    l->journaled = (uint64_t)hd_value_as_int(hd_value_at(doc, "journal"), 0);
    status = node ? rerun_at(l, doc, node) : start_walk(l, doc);
    l->in->parts = UINT8_MAX; /* what is left of the last run goes at the end */
    return status;
}

hd_status live_rerun(hd_engine *e, const char *id, const char *node) {
    hd_pool *pool;
    live *l;
    if (live_find(e, id)) return runtime_fail(e->rt, HD_USAGE, "%s is not over", id);
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = new_live(e, id, &l);
    if (!status) status = rerun_from(l, hd_read(e->rt, pool, (hd_cell){ l->doc }), node);
    hd_pool_close(pool);
    if (status) {
        if (l) live_free(l);
        return status;
    }
    l->again = l->in->status_changed = true;
    e->stats.started++;
    settle_in(l);
    return HD_OK;
}

void live_lost(live *l) {
    forget_in(l);
    leave_commits(l);
    drop_mail(l);
    give_messages_back(l);
    (void)bring_in(l);
}

/* ---- storing */

void live_changed(live *l) {
    child_note(l);
    if (l->changed) return;
    /* Without memory for the list the instance is loaded again, as if the walk had not been. */
    l->changed = vec_push(l->e->env, &l->e->changed, l);
    if (!l->changed) live_lost(l);
}

typedef struct target {
    hd_tx *tx;
    place_id doc;
} target;

static hd_status write_op(void *ctx, doc_op how, const char *const *path, uint32_t length,
                          hd_value value) {
    static const op_kind kinds[] = {
        [DOC_SET] = OP_SET, [DOC_REMOVE] = OP_REMOVE, [DOC_APPEND] = OP_APPEND
    };
    const target *t = ctx;
    hd_heap *heap = t->tx->r->heap;
    hd_path at = HD_PATH_ROOT;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < length && !status; i++) {
        struct key *key;
        hd_path next;
        status = key_make(heap, path[i], strlen(path[i]), &key);
        if (status) break;
        status = path_child(heap, at, key, &next);
        key_unref(key);
        if (at != HD_PATH_ROOT) path_unref(heap, at);
        at = status ? HD_PATH_ROOT : next;
    }
    if (!status) status = tx_write_path(t->tx, kinds[how], t->doc, at, value);
    if (at != HD_PATH_ROOT) path_unref(heap, at);
    return status;
}

static hd_status write_mail(hd_tx *tx, live *l, const doc_writer *out) {
    static const char *const path[] = { "signals" };
    hd_pool *pool = hd_tx_pool(tx);
    hd_value all = hd_array();
    if (!l->mail_changed) return HD_OK;
    l->mail_changed = false;
    for (uint32_t i = 0; i < l->mail.count; i++) {
        hd_value pair[] = { hd_string(pool, l->mail.items[i].name), l->mail.items[i].payload };
        all = hd_array_append(pool, all, hd_array_of(pool, pair, 2));
    }
    return out->write(out->ctx, l->mail.count ? DOC_SET : DOC_REMOVE, path, 1, all);
}

static hd_status write_kind(hd_tx *tx, const live *l) {
    char kind[40];
    snprintf(kind, sizeof kind, "workflow.%s", instance_status_name(l->in->status));
    return hd_tx_set_kind(tx, (hd_cell){ l->doc }, kind);
}

static hd_status write_end(hd_tx *tx, const live *l, const doc_writer *out) {
    static const char *const path[] = { "finished" };
    return out->write(out->ctx, DOC_SET, path, 1, hd_int(hd_tx_pool(tx), (int64_t)l->in->now_ms));
}

static hd_status remove_end(live *l, const doc_writer *out) {
    static const char *const keys[] = { "result", "error", "finished" };
    hd_status status = HD_OK;
    for (size_t i = 0; i < 3 && l->again && !status; i++) {
        const char *path[] = { keys[i] };
        status = out->write(out->ctx, DOC_REMOVE, path, 1, (hd_value){ 0 });
    }
    l->again = false;
    return status;
}

static hd_status remove_messages(hd_tx *tx, const place_id *docs, uint32_t count) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = hd_tx_remove(tx, (hd_cell){ docs[i] });
    return status;
}

/* The document begins with its record; what the first walk has made is added. */
static hd_status write_first(hd_tx *tx, live *l) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_value first = hd_object_set(pool, l->record, "status", hd_string(pool, "running"));
    if (l->in->status == INSTANCE_RUNNING) l->in->status_changed = false;
    hd_status status = hd_tx_require_absent(tx, (hd_cell){ l->doc });
    return status ? status : hd_tx_set(tx, (hd_cell){ l->doc }, first);
}

static hd_status store(hd_tx *tx, live *l) {
    target t = { tx, l->doc };
    doc_writer out = { &t, write_op };
    bool fresh = hd_value_exists(l->record), kind = fresh || l->in->status_changed;
    hd_status status = fresh ? write_first(tx, l) : tx_note_claim(tx, l->doc);
    if (!status) status = remove_end(l, &out);
    if (!status) status = instance_save(l->in, &out);
    if (!status) status = write_mail(tx, l, &out);
    if (!status && kind) status = write_kind(tx, l);
    if (!status) status = journal_write(tx, l, &out);
    if (!status && instance_is_over(l->in)) status = write_end(tx, l, &out);
    if (!status) status = remove_messages(tx, l->messages.items, l->messages.count);
    l->answered = l->messages.count;
    return status;
}

static void end_live(live *l) {
    hd_engine *e = l->e;
    char id[HD_INSTANCE_ID_SIZE];
    snprintf(id, sizeof id, "%s", l->id);
    e->stats.finished++;
    live_free(l);
    control_tell(e, id);
}

static void forget_messages(hd_engine *e, const place_id *docs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) place_unref(&e->rt->r.places, docs[i]);
}

/* Those that came while the commit was under way stay. */
static void forget_answered(live *l) {
    forget_messages(l->e, l->messages.items, l->answered);
    for (; l->answered; l->answered--) vec_remove(&l->messages, 0);
}

static void accepted(live *l) {
    hd_value_unref(l->record);
    l->record = (hd_value){ 0 };
    forget_answered(l);
    l->stored = !l->changed;
    if (l->changed) return;
    if (instance_is_over(l->in)) end_live(l);
    else step_queue(l);
}

static void verdict(hd_status status, void *ctx) {
    hd_engine *e = ctx;
    e->waits = false;
    if (e->orphan) {
        engine_free_orphan(e);
        return;
    }
    e->commits_done = e->commits_begun;
    if (status) e->overheard = true; /* messages that it would have removed are still there */
    while (e->under_way.count) {
        live *l = vec_pop(&e->under_way);
        l->committing = false;
        if (status) live_lost(l);
        else accepted(l);
    }
}

bool live_has_news(const hd_engine *e) {
    return e->changed.count || e->spent.count || !list_empty(&e->families);
}

/* All that has changed, in one transaction. Messages are forgotten here: a refusal of the commit makes the engine
 * look at the inbox again. */
static hd_status store_all(hd_engine *e, hd_tx *tx) {
    hd_status status = remove_messages(tx, e->spent.items, e->spent.count);
    if (!vec_room(e->env, &e->under_way, e->changed.count)) status = HD_NOMEM;
    while (e->changed.count && !status) {
        live *l = vec_last(&e->changed);
        status = store(tx, l);
        if (status) break;
        e->changed.count--;
        l->changed = l->stored = false;
        l->committing = true;
        (void)vec_push(e->env, &e->under_way, l);
    }
    return status;
}

/* What is lost begins anew, and may then be among the changed again: the list is taken first. */
static void lose_all(hd_engine *e) {
    live_vec lost = e->changed;
    e->changed = (live_vec){ 0 };
    e->overheard = true;
    for (uint32_t i = 0; i < lost.count; i++) lost.items[i]->changed = false;
    while (e->under_way.count) {
        live *l = vec_pop(&e->under_way);
        l->committing = false;
        live_lost(l);
    }
    for (uint32_t i = 0; i < lost.count; i++) live_lost(lost.items[i]);
    vec_fini(e->env, &lost);
}

hd_status live_commit(hd_engine *e) {
    hd_tx *tx;
    if (e->waits) return HD_OK;
    (void)child_work(e); /* children begin and end in the commit of their parents */
    if (!live_has_news(e)) return HD_OK;
    hd_status status = engine_begin(e, &tx);
    if (status) return status;
    status = store_all(e, tx);
    if (status) {
        hd_tx_abort(tx);
        lose_all(e);
        return status;
    }
    forget_messages(e, e->spent.items, e->spent.count);
    vec_clear(&e->spent);
    e->waits = true;
    e->commits_begun++;
    e->stats.commits++;
    status = hd_tx_commit(tx, verdict, e);
    if (status) verdict(status, e);
    return status;
}

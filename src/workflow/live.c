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
#include "expr/raise.h"
#include "value/key.h"
#include <stdio.h>

/* ---- which there are */

static uint32_t hash_id(const char *id) { return (uint32_t)hash_bytes(id, strlen(id), 0); }

live *live_find(const hd_engine *e, const char *id) {
    for (table_probe p = table_find(&e->by_id, hash_id(id)); table_next(&e->by_id, &p);)
        if (!strcmp(e->all.items[p.index]->id, id)) return e->all.items[p.index];
    return NULL;
}

/* An index of engine.all that is not used; UINT32_MAX: no memory. Room for it in free_indices is made here, so that
 * giving it back cannot fail. */
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
    l->shard = shard_of(e, id);
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
    return l->doc ? HD_OK : engine_may_exist(id) ? HD_NOMEM : HD_LIMIT;
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
    vec_remove(all, i);
}

static void leave_commits(live *l) {
    if (l->changed && l->flight) l->e->late--;
    if (l->changed) take_from(&l->e->changed, l);
    if (l->flight) take_from(&l->flight->lives, l);
    l->changed = false;
    l->flight = NULL;
}

/* Messages whose effect is not stored are acted on again, in the order in which they were left: `overheard` makes the
 * engine read the whole inbox. */
static void give_messages_back(live *l) {
    l->answered = 0;
    if (l->messages.count) l->e->overheard = true;
    while (l->messages.count) place_unref(&l->e->rt->r.places, vec_pop(&l->messages));
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
    schedule_ended(e, l->id);
    child_forget(l);
    forget_in(l);
    leave_commits(l);
    mail_forget(l);
    give_messages_back(l);
    vec_fini(e->env, &l->messages);
    within_forget(l);
    forget_index(l);
    stall_forget(l);
    hd_value_unref(l->record);
    engine_free_text(e, l->again_at);
    engine_free_text(e, l->line);
    if (l->doc) place_unref(&e->rt->r.places, l->doc);
    if (l->meta) place_unref(&e->rt->r.places, l->meta);
    list_discard(&l->link);
    list_discard(&l->lame);
    engine_free_text(e, l->id);
    e->stats.open--;
    env_free(e->env, l, sizeof *l);
}

/* ---- loading */

static hd_status load_line(live *l, hd_value doc) {
    const char *name = hd_value_as_text(hd_value_at(doc, "queue"), "");
    engine_free_text(l->e, l->line);
    l->line = *name ? engine_text(l->e, name) : NULL;
    return *name && !l->line ? HD_NOMEM : HD_OK;
}

static hd_status open_in(live *l, plan *p) {
    assert(!l->in && l->doc);
    hd_status status = instance_open(l->e->w, p, &l->e->steps_begun, &l->in);
    if (!status) l->in->owner = l;
    return status;
}

static hd_status load_mail(live *l, hd_value doc, hd_error *error) {
    hd_status status = mail_load(l, doc);
    if (status == HD_CORRUPT) env_error(error, status, "its signals cannot be read");
    return status;
}

/* A queued instance begins now; any other goes on. */
static hd_status load_from(live *l, hd_value doc, hd_error *error) {
    plan *p;
    hd_status status = version_plan(l->e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (engine_may_pass(status)) return status;
    if (status) {
        env_error(error, HD_CORRUPT, "its version of the workflow is not in the store");
        return HD_CORRUPT;
    }
    status = open_in(l, p);
    if (status) return status;
    l->priority = (int32_t)hd_value_as_int(hd_value_at(doc, "priority"), 0);
    l->journaled = (uint64_t)hd_value_as_int(hd_value_at(doc, "journal"), 0);
    l->depth = (uint32_t)hd_value_as_int(hd_value_at(doc, "depth"), 0);
    status = load_line(l, doc);
    if (status) return status;
    if (hd_value_exists(l->record) ||
        !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "queued"))
        return start_walk(l, doc, error);
    status = instance_load(l->in, doc, error);
    return status ? status : load_mail(l, doc, error);
}

static void forget_again(live *l) {
    l->again = false;
    engine_free_text(l->e, l->again_at);
    l->again_at = NULL;
}

/* Notes that the instance is to run again, and at which node (NULL: from the beginning), until that is stored: if the
 * commit is refused, load_stored begins the run once more. */
static hd_status note_again(live *l, const char *node) {
    forget_again(l);
    l->again = true;
    l->again_at = node ? engine_text(l->e, node) : NULL;
    return node && !l->again_at ? HD_NOMEM : HD_OK;
}

/* Whether another engine has asked to run the instance again: rerun.c. */
static bool is_again(hd_value doc) {
    return !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "queued") &&
           hd_value_exists(hd_value_at(doc, "again"));
}

static hd_status rerun_from(live *l, hd_value doc, const char *node);

static hd_status load_again(live *l, hd_value doc, hd_error *error) {
    hd_status status = note_again(l, hd_value_as_text(hd_value_at(doc, "again"), NULL));
    if (!status) status = rerun_from(l, doc, l->again_at);
    if (!status || engine_may_pass(status)) return status;
    env_error(error, HD_CORRUPT, "%s", hd_runtime_error(l->e->rt)->message);
    return HD_CORRUPT;
}

/* HD_NOT_FOUND: the instance is over, and is not to be run again. */
static hd_status load_stored(live *l, hd_value doc, hd_error *error) {
    bool ended = control_is_over(doc);
    hd_value_unref(l->record); /* another start with this key was first */
    l->record = (hd_value){ 0 };
    if (is_again(doc)) return load_again(l, doc, error);
    if (ended && l->again) {
        hd_status status = rerun_from(l, doc, l->again_at);
        return !status || engine_may_pass(status) ? status : HD_NOT_FOUND;
    }
    forget_again(l);
    return ended ? HD_NOT_FOUND : load_from(l, doc, error);
}

static bool is_hopeless(hd_status status) { return status && !engine_may_pass(status); }

/* Of an instance that is stalled nothing is loaded. It is so no more if it was removed, or if another start with its
 * key was first. */
static hd_status load_stalled(live *l, hd_value doc) {
    bool is_same = hd_value_exists(doc) != hd_value_exists(l->record);
    if (is_hopeless(hd_value_status(doc))) return HD_OK; /* then it cannot be stored either */
    if (!hd_value_status(doc) && !is_same) stall_forget(l);
    return hd_value_status(doc);
}

/* HD_NOT_FOUND: the instance does not exist, or is over. Any other failure of the read does not mean that: the caller
 * tries again, or writes the instance off. */
static hd_status load(live *l, hd_error *error) {
    hd_pool *pool;
    hd_status status = hd_pool_open(l->e->heap, &pool);
    if (status) return status;
    hd_value doc = hd_read(l->e->rt, pool, (hd_cell){ l->doc });
    status = l->stalled ? load_stalled(l, doc) : hd_value_status(doc);
    if (l->stalled) return hd_pool_close(pool), status;
    if (status) env_error(error, status, "its document: %s", hd_status_text(status));
    else if (hd_value_exists(doc)) status = load_stored(l, doc, error);
    else if (hd_value_exists(l->record)) status = load_from(l, l->record, error);
    else status = HD_NOT_FOUND;
    hd_pool_close(pool);
    return status;
}

/* The instance has been loaded. If it has just begun, its first walk is stored before its steps are queued; else they
 * are queued now. */
static void settle_in(live *l) {
    bool began = l->in->status_changed;
    assert(l->in->owner == l && !l->changed && !l->flight);
    l->stored = !began;
    child_note(l);
    if (began) live_changed(l);
    else step_queue(l);
}

/* The instance cannot go on: of what it did since it was stored nothing stays, and its children are cancelled.
 * HD_NOMEM: nothing is done. */
static hd_status stall(live *l, const hd_error *error) {
    if (!stall_note(l, error)) return HD_NOMEM;
    remotes_lost(l->e->remotes, l->e->commits_begun + 1, l->doc);
    child_leave(l);
    forget_in(l);
    mail_forget(l);
    l->stored = false;
    return HD_OK;
}

/* The next commit stores the instance. False: no memory. */
static bool note_changed(live *l) {
    hd_engine *e = l->e;
    assert(!l->changed && !list_linked(&l->lame) && e->active);
    if (!e->changed.count) e->changed_ns = env_now_ns(e->env);
    l->changed = vec_push(e->env, &e->changed, l);
    if (l->changed && l->flight) e->late++;
    return l->changed;
}

static void try_later(live *l, hd_status why) {
    assert(!list_linked(&l->lame));
    forget_in(l);
    mail_forget(l);
    list_push_back(&l->e->lame, &l->lame);
    engine_starve(l->e, why);
}

/* Without memory it is loaded again, which comes to the same. */
static void write_off(live *l, const hd_error *error) {
    leave_commits(l);
    if (stall(l, error) || !note_changed(l)) try_later(l, HD_NOMEM);
}

/* Loads the instance. HD_OK also if that has to be tried again (live_retry). HD_NOT_FOUND: the live is freed. Any
 * other status: it is written off. A commit of this runtime that has no verdict yet may still be refused: an instance
 * that was read through it would then be in memory as it is not in the store. */
static hd_status bring_in(live *l) {
    hd_error error = { 0 };
    bool undecided = l->doc && replica_top(&l->e->rt->r, l->doc);
    hd_status status = undecided ? HD_BUSY : load(l, &error);
    if (!status && l->stalled) status = note_changed(l) ? HD_OK : HD_NOMEM;
    else if (!status) settle_in(l);
    if (engine_may_pass(status)) try_later(l, status);
    if (!is_hopeless(status)) return HD_OK;
    if (status == HD_NOT_FOUND) live_free(l);
    else write_off(l, &error);
    return status;
}

/* Messages that came meanwhile for an instance that was not loaded are still in the inbox: `overheard` has it read
 * again. */
void live_retry(hd_engine *e) {
    for (size_t n = list_count(&e->lame); n-- > 0 && !list_empty(&e->lame);)
        (void)bring_in(LIST_ENTRY(list_pop_front(&e->lame), live, lame));
    if (list_empty(&e->lame)) e->overheard = true;
}

hd_status live_take_up(hd_engine *e, const char *id) {
    live *l;
    assert(shard_runs(e, id));
    hd_status status = new_live(e, id, &l);
    if (!status) return bring_in(l);
    if (l) live_free(l);
    return status;
}

hd_status live_start(hd_engine *e, const char *id, plan *p, hd_value record,
                     const hd_start_options *o) {
    live *l;
    assert(shard_runs(e, id) && !live_find(e, id));
    hd_status status = new_live(e, id, &l);
    if (!status) {
        l->record = hd_value_ref(record);
        l->priority = o->priority;
        if (!o->key) engine_assume_absent(e, l->doc);
        if (o->queue && !(l->line = engine_text(e, o->queue))) status = HD_NOMEM;
        if (!status) status = open_in(l, p);
        if (!status) status = start_walk(l, record, NULL);
    }
    if (status) {
        if (l) live_free(l);
        return status;
    }
    settle_in(l);
    return HD_OK;
}

/* ---- running again */

static hd_status rerun_at(live *l, hd_value doc, const char *id) {
    hd_error error = { 0 };
    instance *in = l->in;
    uint32_t node = plan_find_node(&in->p->functions[0], id);
    const char *why = node == PLAN_NONE ? "there is no such node" : rerun_why_not(in->p, doc, node);
    hd_status status = why ? HD_USAGE : instance_load_last(in, doc, &error);
    if (!status) status = load_mail(l, doc, &error);
    if (status)
        return runtime_fail(l->e->rt, status, "%s cannot go on at \"%s\": %s", l->id, id,
                            why ? why : error.message);
    status = walk_at(in, node);
    return status ? status : step_deliver(l);
}

/* Signals that are left were sent to the last run: a run from the beginning drops them. */
static hd_status rerun_all(live *l, hd_value doc) {
    mail_leave(l, doc);
    return start_walk(l, doc, NULL);
}

static hd_status rerun_from(live *l, hd_value doc, const char *node) {
    plan *p = NULL;
    hd_status status = hd_value_status(doc);
    if (!status) status = version_plan(l->e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (engine_may_pass(status)) return status;
    if (!hd_value_exists(doc) || !(control_is_over(doc) || is_again(doc)) || !p)
        return runtime_fail(l->e->rt, hd_value_exists(doc) ? HD_USAGE : HD_NOT_FOUND,
                            "%s is no instance that is over", l->id);
    status = open_in(l, p);
    if (status) return status;
    int64_t next = hd_value_as_int(hd_value_at(doc, "next"), 1);
    l->in->next_number = next < 2 ? 2 : (uint32_t)next; /* 0 and 1 were used */
    l->in->now_ms = env_wall_ms(l->e->env);
    l->in->started_ms = (uint64_t)hd_value_as_int(hd_value_at(doc, "started"), 0);
    l->priority = (int32_t)hd_value_as_int(hd_value_at(doc, "priority"), 0);
    l->depth = (uint32_t)hd_value_as_int(hd_value_at(doc, "depth"), 0);
    l->journaled = (uint64_t)hd_value_as_int(hd_value_at(doc, "journal"), 0);
    status = load_line(l, doc);
    if (!status) status = node ? rerun_at(l, doc, node) : rerun_all(l, doc);
    l->in->parts = UINT8_MAX; /* what is left of the last run goes at the end */
    l->in->status_changed = true;
    return status;
}

hd_status live_rerun(hd_engine *e, const char *id, const char *node) {
    hd_pool *pool;
    live *l;
    if (live_find(e, id)) return runtime_fail(e->rt, HD_USAGE, "%s is not over", id);
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = new_live(e, id, &l);
    if (!status) status = note_again(l, node);
    if (!status) status = rerun_from(l, hd_read(e->rt, pool, (hd_cell){ l->doc }), node);
    hd_pool_close(pool);
    if (status) {
        if (l) live_free(l);
        return status;
    }
    e->stats.started++;
    settle_in(l);
    return HD_OK;
}

/* Drops what the instance has done since it was stored, and loads it again. A child that is not stored is freed
 * instead: its inputs come from a walk of its parent that may be lost, too, and the parent's next walk begins it again
 * if it comes to the CHILD. One that is stalled stays so, and its children are to be cancelled still. */
void live_lost(live *l) {
    hd_engine *e = l->e;
    remotes_lost(e->remotes, e->commits_begun + 1, l->doc);
    if (l->kin) e->spoiled = true;
    if (l->abandoned) l->orphaned = true;
    if (hd_value_exists(hd_value_at(l->record, "parent"))) {
        live_free(l);
        return;
    }
    forget_in(l);
    leave_commits(l);
    mail_forget(l);
    give_messages_back(l);
    (void)bring_in(l);
}

/* ---- storing */

hd_status live_init(hd_engine *e) {
    static const char *const kinds[INSTANCE_STATUSES] = {
        [INSTANCE_RUNNING] = "workflow.running",     [INSTANCE_PAUSED] = "workflow.paused",
        [INSTANCE_DONE] = "workflow.done",           [INSTANCE_FAILED] = "workflow.failed",
        [INSTANCE_CANCELLED] = "workflow.cancelled", [INSTANCE_STALLED] = "workflow.stalled"
    };
    hd_pool *pool;
    struct key *key;
    hd_status status = key_make(e->heap, "kind", 4, &key);
    if (status) return status;
    status = path_child(e->heap, HD_PATH_ROOT, key, &e->kind_path);
    key_unref(key);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    for (int i = 0; i < INSTANCE_STATUSES && !status; i++) {
        e->kinds[i] = hd_value_ref(hd_string(pool, kinds[i]));
        status = hd_value_status(e->kinds[i]);
    }
    hd_pool_close(pool);
    return status;
}

void live_fini(hd_engine *e) {
    for (int i = 0; i < INSTANCE_STATUSES; i++) hd_value_unref(e->kinds[i]);
    for (int i = 0; i < PATH_SLOTS; i++)
        if (e->paths[i].path != HD_PATH_ROOT) path_unref(e->heap, e->paths[i].path);
    if (e->kind_path != HD_PATH_ROOT) path_unref(e->heap, e->kind_path);
}

void live_changed(live *l) {
    child_note(l);
    assert(l->in);
    /* Without memory for the list the instance is loaded again, as if the walk had not been. */
    if (!l->changed && !note_changed(l)) live_lost(l);
}

/* Where the operations of an instance go: into the transaction, or, of a document that is made anew, into its value. */
typedef struct target {
    hd_engine *e;
    hd_tx *tx;
    place_id doc;
    hd_value whole; /* owned; absent: into the transaction */
    /* Keys of the document itself, which are written together; paths and values are referenced. */
    tx_key keys[TX_KEYS_MAX];
    uint32_t key_count;
} target;

static hd_status write_keys(target *t, hd_status status) {
    if (!status && t->key_count) status = tx_write_keys(t->tx, t->doc, t->keys, t->key_count);
    for (; t->key_count; t->key_count--) {
        path_unref(t->e->heap, t->keys[t->key_count - 1].path);
        hd_value_unref(t->keys[t->key_count - 1].value);
    }
    return status;
}

/* Keeps the write for write_keys. Takes the reference of the path. */
static hd_status keep_key(target *t, hd_path at, hd_value value) {
    hd_status status = t->key_count == TX_KEYS_MAX ? write_keys(t, HD_OK) : HD_OK;
    t->keys[t->key_count++] = (tx_key){ at, hd_value_ref(value) };
    return status;
}

static hd_status write_whole(target *t, op_kind kind, hd_path at, hd_value value, uint64_t keep) {
    hd_value next = op_apply(t->e->heap, t->whole, kind, at, value, keep);
    if (hd_value_status(next)) return hd_value_status(next);
    hd_value_unref(t->whole);
    t->whole = next;
    return HD_OK;
}

/* The path `at` with one segment more, referenced. Short segments are looked up in the engine's table first. */
static hd_status path_further(hd_engine *e, hd_path at, const char *segment, hd_path *out) {
    size_t length = strlen(segment);
    uint64_t chars = 0;
    struct key *key;
    path_slot *slot = NULL;
    if (length <= sizeof chars) {
        memcpy(&chars, segment, length);
        slot = &e->paths[hash_combine(chars, at) % PATH_SLOTS];
        if (slot->path != HD_PATH_ROOT && slot->segment == chars && slot->parent == at)
            return *out = path_ref(e->heap, slot->path), HD_OK;
    }
    hd_status status = key_make(e->heap, segment, length, &key);
    if (status) return status;
    status = path_child(e->heap, at, key, out);
    key_unref(key);
    if (status || !slot) return status;
    if (slot->path != HD_PATH_ROOT) path_unref(e->heap, slot->path);
    *slot = (path_slot){ chars, at, path_ref(e->heap, *out) };
    return HD_OK;
}

static hd_status write_op(void *ctx, doc_op how, const char *const *path, uint32_t length,
                          hd_value value) {
    static const op_kind kinds[] = {
        [DOC_SET] = OP_SET,
        [DOC_REMOVE] = OP_REMOVE,
        [DOC_APPEND] = OP_APPEND,
        [DOC_KEEP] = OP_SPLICE,
    };
    target *t = ctx;
    hd_heap *heap = t->e->heap;
    hd_path at = HD_PATH_ROOT;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < length && !status; i++) {
        hd_path next;
        status = path_further(t->e, at, path[i], &next);
        if (at != HD_PATH_ROOT) path_unref(heap, at);
        at = status ? HD_PATH_ROOT : next;
    }
    if (status) return status;
    bool whole = hd_value_exists(t->whole);
    if (!whole && length == 1 && (how == DOC_SET || how == DOC_REMOVE))
        return keep_key(t, at, how == DOC_REMOVE ? (hd_value){ 0 } : value);
    if (!whole) status = write_keys(t, HD_OK); /* operations keep their order */
    uint64_t keep = how == DOC_KEEP ? (uint64_t)hd_value_as_int(value, 0) : 0;
    if (how == DOC_KEEP) value = hd_array();
    if (whole) status = write_whole(t, kinds[how], at, value, keep);
    else if (!status) status = tx_write_path(t->tx, kinds[how], t->doc, at, value, keep);
    if (at != HD_PATH_ROOT) path_unref(heap, at);
    return status;
}

/* As hd_tx_set_kind does; the text and its place in the metadata are the same for all instances. */
static hd_status write_kind(hd_tx *tx, live *l) {
    hd_engine *e = l->e;
    if (!l->meta) {
        hd_status status = runtime_meta(e->rt, l->doc, &l->meta);
        if (status) return status;
        place_ref(&e->rt->r.places, l->meta);
    }
    instance_status now = l->stalled ? INSTANCE_STALLED : l->in->status;
    return tx_write_path(tx, OP_SET, l->meta, e->kind_path, e->kinds[now], 0);
}

static hd_status write_end(hd_tx *tx, const live *l, const doc_writer *out) {
    static const char *const path[] = { "finished" };
    return out->write(out->ctx, DOC_SET, path, 1, hd_int(hd_tx_pool(tx), (int64_t)l->in->now_ms));
}

/* Removes what the last run has left and the next one must not find: the strands, of one that could not be stored
 * (write_off), and for a run from the beginning the variables, which an instance that was not done keeps. */
static hd_status remove_end(const live *l, const doc_writer *out) {
    static const char *const keys[] = { "result", "error", "finished", "failed_at", "again",
                                        "ready",  "open",  "calls",    "fans",      "ending",
                                        "vars",   "loops", "objects",  "cancelling" };
    hd_status status = HD_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && l->again && !status; i++) {
        const char *path[] = { keys[i] };
        if (l->again_at && save_keeps_for_rerun(keys[i])) continue;
        status = out->write(out->ctx, DOC_REMOVE, path, 1, (hd_value){ 0 });
    }
    return status;
}

static hd_status remove_messages(hd_tx *tx, const place_id *docs, uint32_t count) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = hd_tx_remove(tx, (hd_cell){ docs[i] });
    return status;
}

static hd_status write_walk(hd_tx *tx, live *l, const doc_writer *out) {
    hd_status status = instance_save(l->in, out);
    return status ? status : mail_save(l, hd_tx_pool(tx), out);
}

/* What is no part of the document, or follows from what is. */
static hd_status write_rest(hd_tx *tx, live *l, const doc_writer *out) {
    hd_status status = journal_write(tx, l, out);
    if (status || !instance_is_over(l->in)) return status;
    status = write_end(tx, l, out);
    return status ? status : keep_note(l);
}

/* Of the encoder, and of the store: the instance has a value that has no form there, or is too long. */
static bool is_unfit(hd_status status) {
    return status == HD_KIND || status == HD_FAILED || status == HD_LIMIT;
}

static void why_unfit(hd_status status, hd_error *error) {
    bool is_long = status == HD_LIMIT;
    env_error(error, is_long ? HD_LIMIT : HD_KIND,
              is_long ? "it has a text, or another value, that is too long to be stored"
                      : "it has a value that cannot be stored, such as tuples nested too deep");
}

/* One that cannot be stored with its first walk is stalled from the beginning, in the same commit: a parent that has
 * begun it goes on from there. Nothing of the walk is in the transaction. */
static hd_status write_first_walk(target *t, live *l, const doc_writer *out) {
    hd_error error;
    if (l->in->status == INSTANCE_RUNNING) l->in->status_changed = false; /* the record says so */
    hd_status status = write_walk(t->tx, l, out);
    if (!is_unfit(status)) return status ? status : write_rest(t->tx, l, out);
    why_unfit(status, &error);
    hd_value_unref(t->whole);
    t->whole = hd_value_ref(l->record);
    return stall(l, &error);
}

/* The commit claims that there is no document. If there is one, another start with this key was first: the instance is
 * loaded from it. */
static hd_status set_whole(target *t) {
    unsigned flags = HD_READ_NO_DEPENDENCY | HD_READ_NO_CLAIM | HD_READ_NO_TAINT;
    hd_value known = hd_tx_read(t->tx, (hd_cell){ t->doc }, flags);
    hd_status status = hd_value_exists(known) ? HD_STALE : hd_value_status(known);
    if (!status) status = tx_note_claim(t->tx, t->doc);
    return status ? status : tx_write_path(t->tx, OP_SET, t->doc, HD_PATH_ROOT, t->whole, 0);
}

/* The document begins with its record; what the first walk has made is added. */
static hd_status store_first(target *t, live *l, const doc_writer *out) {
    t->whole = hd_value_ref(l->record);
    hd_status status = l->stalled ? HD_OK : write_first_walk(t, l, out);
    if (!status && l->stalled) status = stall_write(hd_tx_pool(t->tx), l, out);
    if (!status) status = set_whole(t);
    hd_value_unref(t->whole);
    return status;
}

static hd_status store_changes(target *t, live *l, const doc_writer *out) {
    hd_status status = tx_note_claim(t->tx, l->doc);
    if (!status) status = l->stalled ? stall_write(hd_tx_pool(t->tx), l, out) : remove_end(l, out);
    if (!status && !l->stalled) status = write_walk(t->tx, l, out);
    if (!status && !l->stalled) status = write_rest(t->tx, l, out);
    return write_keys(t, status);
}

static hd_status store(hd_tx *tx, live *l) {
    assert(l->stalled || !l->in->walking.count);
    target t = { .e = l->e, .tx = tx, .doc = l->doc };
    doc_writer out = { &t, write_op };
    bool fresh = hd_value_exists(l->record);
    bool kind = fresh || l->stalled || l->in->status_changed;
    hd_status status = engine_fence(tx, l->shard);
    if (!status) status = fresh ? store_first(&t, l, &out) : store_changes(&t, l, &out);
    if (!status && kind) status = write_kind(tx, l);
    if (!status) status = remove_messages(tx, l->messages.items, l->messages.count);
    l->answered = l->messages.count;
    return status;
}

/* Those that wait are told. Messages to an instance that has stalled are still in the inbox. */
static void leave(live *l) {
    hd_engine *e = l->e;
    char id[HD_INSTANCE_ID_SIZE];
    memcpy(id, l->id, strlen(l->id) + 1);
    if (l->stalled) e->overheard = true;
    live_free(l);
    control_tell(e, id);
}

/* Its end is stored. */
static void end_live(live *l) {
    assert(!l->changed && !l->flight);
    assert(l->stalled || (instance_is_over(l->in) && !l->in->strand_count));
    l->e->stats.finished++;
    if (l->in) failure_log(l);
    leave(l);
}

static void forget_messages(hd_engine *e, const place_id *docs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) place_unref(&e->rt->r.places, docs[i]);
}

/* Forgets the messages that the commit has removed. Messages that came while it was under way stay. */
static void forget_answered(live *l) {
    place_id *all = l->messages.items;
    if (!l->answered) return;
    forget_messages(l->e, all, l->answered);
    l->messages.count -= l->answered;
    memmove(all, all + l->answered, l->messages.count * sizeof *all);
    l->answered = 0;
}

static void accepted(live *l) {
    if (l->stalled) {
        end_live(l);
        return;
    }
    assert(l->in && !l->flight);
    hd_value_unref(l->record);
    l->record = (hd_value){ 0 };
    forget_again(l);
    forget_answered(l);
    l->stored = !l->changed;
    if (l->changed) return;
    if (instance_is_over(l->in)) end_live(l);
    else step_queue(l);
}

/* Takes the next instance that the commit stored, or was to store, out of the flight. NULL: there is none. */
static live *take_off(flight *f) {
    if (!f->lives.count) return NULL;
    live *l = vec_pop(&f->lives);
    assert(l->flight == f);
    l->flight = NULL;
    if (l->changed) l->e->late--;
    return l;
}

/* The highest number up to which every commit has its verdict; but not one up to engine.commits_short. */
static uint64_t done_through(const hd_engine *e) {
    uint64_t done = e->commits_begun;
    for (int i = 0; i < FLIGHTS; i++)
        if (e->flights[i].busy && e->flights[i].number <= done) done = e->flights[i].number - 1;
    return done > e->commits_short ? done : e->commits_done;
}

bool live_is_stored(const hd_engine *e, uint64_t number) {
    if (number <= e->commits_done) return true;
    return !e->waits && !e->overheard && list_empty(&e->lame) && !live_has_news(e);
}

/* What the instance has changed can never be stored. Loaded again, it would come to the same changes: so it is written
 * off. If even that cannot be stored, the instance leaves: its input alone is too long, or its document cannot be read,
 * or is no object any more. */
static void drop(live *l, const hd_error *error) {
    if (l->stalled) leave(l);
    else write_off(l, error);
}

/* Whether the instance, if a commit of its own was too long, is the reason. The end of one that is stored is short. */
static bool is_long(const live *l) { return !l->stalled || hd_value_exists(l->record); }

static void drop_long(live *l) {
    hd_error error;
    env_error(&error, HD_LIMIT, "what it has changed at once is longer than the store takes");
    drop(l, &error);
}

/* Moves the estimate an eighth of itself towards a measured time, however far away that is. So it comes to the median,
 * which a few slow syncs do not change. */
static void follow(uint64_t *median, uint64_t ns) {
    uint64_t eighth = *median / 8;
    if (!*median) *median = ns;
    else if (ns > *median) *median += eighth + 1;
    else if (ns < *median) *median -= eighth + 1;
}

/* Not the time until the verdict: that is longer while the engine is busy, or another commit is synced first. */
static void note_sync(hd_engine *e) { follow(&e->sync_ns, e->rt->r.authority->sync_ns); }

static void note_storing(hd_engine *e, uint64_t began_ns, uint32_t lives) {
    uint64_t now = env_now_ns(e->env);
    if (lives && now > began_ns) follow(&e->store_ns, (now - began_ns) / lives);
}

#define HOLD_FIRST_NS UINT64_C(10000000)
#define HOLD_MAX_NS   UINT64_C(10000000000)

/* Whether the store may refuse the same commit for the same reason. A stale commit is made again from what is in the
 * store now; a store that is closed, or gives no verdict, has refused nothing. */
static bool may_be_refused_again(hd_status status) {
    hd_class class_ = hd_status_class(status);
    return status && status != HD_CLOSED && class_ != HD_CLASS_STALE &&
           class_ != HD_CLASS_NO_VERDICT;
}

/* The next commit waits: 10 ms after the first refusal, twice as long after each further one, at most 10 s. A random
 * part of up to a quarter is taken off, so that programs that were refused together do not try again together. */
static void hold_back(hd_engine *e, hd_status status) {
    uint64_t ns = e->refusals < 10 ? HOLD_FIRST_NS << e->refusals : HOLD_MAX_NS;
    if (!e->refusals++)
        env_log(e->env, HD_LOG_ERROR,
                "workflows of space %s: the store refuses a commit (%s); it is tried again, at "
                "most every 10 s",
                e->space, hd_status_text(status));
    e->held_until = env_now_ns(e->env) + ns - env_random_u64(e->env) % (ns / 4);
}

void live_note_verdict(hd_engine *e, hd_status status) {
    if (may_be_refused_again(status)) hold_back(e, status);
    else if (!status) e->refusals = 0, e->held_until = 0;
}

bool live_is_held(const hd_engine *e) {
    return e->held_until && env_now_ns(e->env) < e->held_until;
}

/* A commit was longer than the store takes. Whether the next one stores less: the things that were in it one by one;
 * or, if it had only one, that is not stored at all. */
static bool stores_less(flight *f) {
    hd_engine *e = f->e;
    bool less = !f->alone;
    if (less) e->singly = f->lives.count ? f->lives.count : 1;
    else if (!f->lives.count) less = away_drop_long(e);
    for (uint32_t i = 0; i < f->lives.count && !less; i++) less = is_long(f->lives.items[i]);
    return less;
}

static void verdict(hd_status status, void *ctx) {
    flight *f = ctx;
    hd_engine *e = f->e;
    assert(f->busy && e->waits && f->number <= e->commits_begun);
    f->busy = false;
    e->waits--;
    if (e->orphan) {
        engine_free_orphan(e);
        return;
    }
    note_sync(e);
    if (status) e->commits_short = e->commits_begun;
    e->commits_done = done_through(e);
    bool within = within_told(e, f->number, status);
    if (status) e->overheard = true; /* messages that it would have removed are still there */
    bool blamed = within && within_is_to_blame(status); /* the step fails: another commit */
    if (status) keep_lost(e), away_lost(e), remotes_lost(e->remotes, f->number, 0);
    bool too_long = status == HD_LIMIT && !within, alone = f->alone;
    bool less = too_long && stores_less(f); /* the next commit does */
    if (!blamed && !less) live_note_verdict(e, status);
    for (live *l; (l = take_off(f));) {
        if (too_long && alone && is_long(l)) drop_long(l);
        else if (status) live_lost(l);
        else accepted(l);
    }
    within_look(e);
}

bool live_has_news(const hd_engine *e) {
    return e->changed.count || e->spent.count || !list_empty(&e->families) || away_news(e);
}

/* Whether making this group and another of its size takes at least as long as a sync: the time of its walks, and what
 * storing its instances will take. */
static bool is_worth_a_sync(const hd_engine *e) {
    if (e->changed.count < FLIGHT_GROUP) return false;
    uint64_t walked_ns = env_now_ns(e->env) - e->changed_ns;
    return (walked_ns + e->changed.count * e->store_ns) * 2 >= e->sync_ns;
}

/* Whether a commit may be begun beside one that is under way: it has nothing that depends on the other, and nothing
 * that concerns more than one instance. */
static bool may_overlap(const hd_engine *e) {
    return e->waits < FLIGHTS && !e->late && !e->spent.count && !e->spoiled &&
           list_empty(&e->families) && !keep_must_count(e) && !away_news(e) && is_worth_a_sync(e);
}

bool live_may_commit(const hd_engine *e) {
    if (live_is_held(e)) return false;
    return live_has_news(e) && (!e->waits || may_overlap(e));
}

/* A store in memory commits at once: there is no sync during which the next group could be made. */
bool live_is_group(const hd_engine *e) {
    if (e->changed.count >= FLIGHT_MOST) return true;
    if (e->changed.count < FLIGHT_GROUP || e->rt->owns_memory) return false;
    return e->waits ? may_overlap(e) : is_worth_a_sync(e);
}

/* A child is stored with its parent, or later. One that its parent waits for no more is cancelled before it is
 * stored. */
static bool is_early(const live *l) {
    const live *parent = l->awaited ? l->awaited->in->owner : NULL;
    return hd_value_exists(l->record) && ((l->orphaned && l->in) || (parent && parent->changed));
}

/* Whether the instance goes into this commit. While instances are stored singly (engine.singly), all families share one
 * commit, and every other instance has one of its own. */
static bool is_taken(const hd_engine *e, const flight *f, const live *l, bool families) {
    if (is_early(l)) return false;
    if (!e->singly) return true;
    return families ? l->kin : !f->lives.count;
}

static bool has_families(const hd_engine *e) {
    for (uint32_t i = 0; i < e->changed.count; i++)
        if (e->changed.items[i]->kin) return true;
    return false;
}

/* take_off takes the last one first. */
static void reverse(live_vec *v) {
    for (uint32_t i = 0; i < v->count / 2; i++) {
        live **a = &v->items[i], **b = &v->items[v->count - 1 - i], *kept = *a;
        *a = *b;
        *b = kept;
    }
}

/* In the order in which they changed, so that a parent comes before the children that it has begun. Those that are not
 * taken stay in engine.changed. */
static hd_status store_lives(hd_engine *e, flight *f, hd_tx *tx, live **unfit) {
    live_vec *all = &e->changed;
    uint32_t kept = 0, i = 0;
    hd_status status = vec_room(e->env, &f->lives, all->count) ? HD_OK : HD_NOMEM;
    bool families = e->singly && has_families(e);
    for (; i < all->count && !status; i++) {
        live *l = all->items[i];
        if (!is_taken(e, f, l, families)) {
            all->items[kept++] = l;
            continue;
        }
        status = store(tx, l);
        if (is_unfit(status) || (l->stalled && is_hopeless(status) && status != HD_STALE))
            *unfit = l;
        if (status) break;
        l->changed = l->stored = false;
        l->flight = f;
        (void)vec_push(e->env, &f->lives, l);
    }
    while (i < all->count) all->items[kept++] = all->items[i++];
    all->count = kept;
    reverse(&f->lives);
    return status;
}

/* Writes all that has changed into one transaction. While it is done singly, steps for other processes go first, each
 * in a commit of its own. *unfit: the instance with a value that cannot be stored, because of which this fails. */
static hd_status store_all(hd_engine *e, flight *f, hd_tx *tx, live **unfit) {
    hd_status status = remove_messages(tx, e->spent.items, e->spent.count);
    bool singly = e->singly > 0;
    uint32_t tasks = away_news(e);
    for (uint32_t i = 0; i < e->shard_count && e->spent.count && !status; i++)
        if (e->shards[i].runs) status = engine_fence(tx, &e->shards[i]);
    if (!status) status = away_write(e, tx, singly ? 1 : UINT32_MAX);
    assert(!e->late && !f->lives.count);
    if (!status && !(singly && tasks)) status = store_lives(e, f, tx, unfit);
    f->alone = singly || (f->lives.count + tasks < 2);
    if (singly && !tasks) e->singly--;
    return keep_write(e, tx, status);
}

/* Instances that are lost are loaded again, which may put them into engine.changed once more: so the list is taken
 * first. `kin_only`: only members of families are lost. */
static void lose_changed(hd_engine *e, bool kin_only) {
    live_vec lost = e->changed;
    e->changed = (live_vec){ 0 };
    e->overheard = true;
    for (uint32_t i = 0; i < lost.count; i++) lost.items[i]->changed = false;
    for (uint32_t i = 0; i < lost.count; i++) {
        if (kin_only && !lost.items[i]->kin) live_changed(lost.items[i]);
        else live_lost(lost.items[i]);
    }
    vec_fini(e->env, &lost);
    e->spoiled = false;
}

void live_lose_changed(hd_engine *e) {
    if (e->changed.count) lose_changed(e, false);
    e->spoiled = false;
}

static void lose_all(hd_engine *e, flight *f) {
    for (live *l; (l = take_off(f));) live_lost(l);
    lose_changed(e, false);
}

/* Instances share commits: the others must not wait for ever because of one that cannot be stored. */
static void drop_unfit(live *l, hd_status why) {
    hd_error error;
    why_unfit(why, &error);
    drop(l, &error);
}

static flight *free_flight(hd_engine *e) {
    int i = 0;
    while (e->flights[i].busy) i++;
    assert(i < FLIGHTS);
    e->flights[i].e = e;
    return &e->flights[i];
}

static hd_status send(hd_engine *e, flight *f, hd_tx *tx) {
    assert(!f->busy && e->waits < FLIGHTS && e->active);
    f->busy = true;
    f->number = ++e->commits_begun;
    e->waits++;
    e->stats.commits++;
    hd_status status = hd_tx_commit(tx, verdict, f);
    if (status) verdict(status, f);
    return status;
}

hd_status live_commit(hd_engine *e) {
    hd_tx *tx;
    if (e->waits && !may_overlap(e)) return HD_OK;
    (void)child_work(e); /* children begin and end in the commit of their parents */
    if (e->spoiled) {
        lose_changed(e, true);
        return HD_NOMEM;
    }
    if (!live_has_news(e)) return HD_OK;
    hd_status status = engine_begin(e, &tx);
    return status ? status : live_commit_in(e, tx);
}

void live_commit_group(hd_engine *e) {
    authority *a = e->rt->r.authority;
    if (e->rt->driven || e->rt->open || e->closing || !live_is_group(e)) return;
    hd_status status = live_commit(e);
    if (status) engine_starve(e, status);
    if (!e->waits) return;
    (void)replica_send(&e->rt->r);
    if (a->ops->start) a->ops->start(a);
}

/* Whether the commit that begins now leaves out what is to be stored: of instances that are stored singly
 * (engine.singly) or wait for memory, or of messages that are to be read again. */
static bool leaves_some(const hd_engine *e) {
    return e->changed.count || e->overheard || !list_empty(&e->lame);
}

hd_status live_commit_in(hd_engine *e, hd_tx *tx) {
    flight *f = free_flight(e);
    live *unfit = NULL;
    uint64_t began_ns = env_now_ns(e->env);
    hd_status status = store_all(e, f, tx, &unfit);
    if (status) {
        hd_tx_abort(tx);
        if (unfit) leave_commits(unfit);
        lose_all(e, f);
        keep_lost(e);
        away_lost(e);
        if (unfit) drop_unfit(unfit, status);
        return unfit ? HD_OK : status;
    }
    /* If the commit is refused, the inbox is read again. */
    forget_messages(e, e->spent.items, e->spent.count);
    vec_clear(&e->spent);
    away_written(e);
    uint32_t lives = f->lives.count;
    if (leaves_some(e)) e->commits_short = e->commits_begun + 1;
    status = send(e, f, tx);
    note_storing(e, began_ns, lives);
    return status;
}

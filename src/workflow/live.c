/* live.c -- instances of an active engine: taken up, ended, lost.
 *
 * The document of an instance is "workflow/<name>/<key>" of the engine's space. document.c writes it, flight.c has the
 * commits.
 *
 *     live_take_up, live_start --> walks --> live_changed --commit--> live_accepted --> walks, or is over
 *                                    ^                       |
 *                                    +------- live_lost <----+ refused: it is loaded again */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"

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
    journal_forget(l);
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

void live_leave_commits(live *l) {
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
    live_leave_commits(l);
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

bool live_is_hopeless(hd_status status) { return status && !engine_may_pass(status); }

/* Of an instance that is stalled nothing is loaded. It is so no more if it was removed, or if another start with its
 * key was first. */
static hd_status load_stalled(live *l, hd_value doc) {
    bool is_same = hd_value_exists(doc) != hd_value_exists(l->record);
    if (live_is_hopeless(hd_value_status(doc))) return HD_OK; /* then it cannot be stored either */
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
hd_status live_stall(live *l, const hd_error *error) {
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
    live_leave_commits(l);
    if (live_stall(l, error) || !note_changed(l)) try_later(l, HD_NOMEM);
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
    if (!live_is_hopeless(status)) return HD_OK;
    if (status == HD_NOT_FOUND) {
        control_look_again(l->e, l->id);
        live_free(l);
    } else {
        write_off(l, &error);
    }
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
    keep_doubt(l->e, l->id);
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
    live_leave_commits(l);
    mail_forget(l);
    give_messages_back(l);
    (void)bring_in(l);
}

/* ---- stored */

void live_changed(live *l) {
    child_note(l);
    assert(l->in);
    /* Without memory for the list the instance is loaded again, as if the walk had not been. */
    if (!l->changed && !note_changed(l)) live_lost(l);
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

/* Forgets the messages that the commit has removed. Messages that came while it was under way stay. */
static void forget_answered(live *l) {
    place_id *all = l->messages.items;
    if (!l->answered) return;
    for (uint32_t i = 0; i < l->answered; i++) place_unref(&l->e->rt->r.places, all[i]);
    l->messages.count -= l->answered;
    memmove(all, all + l->answered, l->messages.count * sizeof *all);
    l->answered = 0;
}

void live_accepted(live *l) {
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

/* What the instance has changed can never be stored. Loaded again, it would come to the same changes: so it is written
 * off. If even that cannot be stored, the instance leaves: its input alone is too long, or its document cannot be read,
 * or is no object any more. */
void live_drop(live *l, const hd_error *error) {
    if (l->stalled) leave(l);
    else write_off(l, error);
}

/* inbox.c -- requests to the active engine, which are documents.
 *
 * "workflow/<name>/<key>" with the status "queued" is a start, and "workflow-inbox/..." a message to an instance. A
 * listener notes the documents that other runtimes write; the next pump acts on them. The effect of a message on its
 * instance and the removal of the message are one commit, so that it has its effect once. The names of messages rise
 * with time: after a restart they are read in the order in which they were left.
 *
 * The program of this runtime may write such documents, too, in a commit of its own. The engine acts on them when the
 * commit has its verdict: a request in a commit that was refused has no effect. */
#include "workflow/engine.h"

#include "base/env.h"
#include "value/key.h"
#include <inttypes.h>
#include <stdio.h>

static bool has_prefix(const char *id, const char *prefix) {
    return !strncmp(id, prefix, strlen(prefix));
}

static const char *name_of(const hd_engine *e, place_id doc) {
    return key_bytes(place_at(&e->rt->r.places, doc)->doc.id);
}

/* ---- hearing */

static bool concerns(const hd_engine *e, place_id doc) {
    const places *ps = &e->rt->r.places;
    const doc_home *home = &ps->homes.items[place_at(ps, doc)->doc.home];
    if (home->meta || home->scope != HD_SCOPE_SPACE || home->space != e->space_key) return false;
    const char *name = name_of(e, doc);
    return has_prefix(name, INSTANCE_PREFIX) || has_prefix(name, INBOX_PREFIX) ||
           has_prefix(name, SCHEDULE_PREFIX) || has_prefix(name, LINE_PREFIX) ||
           has_prefix(name, NOTE_PREFIX) || has_prefix(name, WORKER_PREFIX) ||
           has_prefix(name, SHARE_PREFIX) || away_concerns(e, name) || guest_concerns(e, doc) ||
           shard_concerns(e, doc, name);
}

void inbox_note(hd_engine *e, place_id doc) {
    if (vec_push(e->env, &e->heard, doc)) place_ref(&e->rt->r.places, doc);
    else e->overheard = true;
}

static void hear(const hd_notice *notice, void *ctx) {
    hd_engine *e = ctx;
    for (size_t i = 0; i < notice->count; i++)
        if (concerns(e, notice->changes[i].document.id))
            inbox_note(e, notice->changes[i].document.id);
}

hd_status inbox_listen(hd_engine *e) {
    if (e->listens) return HD_OK;
    hd_status status = hd_runtime_listen_except(e->rt, hear, e, e->group);
    e->listens = !status;
    return status;
}

/* ---- acting */

/* If something could not be read or done, the inbox is read again soon. HD_OK: nothing is to be done. */
static void look_again_if(hd_engine *e, hd_status status) {
    if (!status) return;
    e->overheard = true;
    engine_starve(e, status);
}

void inbox_spend(hd_engine *e, place_id doc) {
    if (vec_push(e->env, &e->spent, doc)) place_ref(&e->rt->r.places, doc);
    else look_again_if(e, HD_NOMEM);
}

bool inbox_has_spent(const hd_engine *e, place_id doc) {
    for (uint32_t i = 0; i < e->spent.count; i++)
        if (e->spent.items[i] == doc) return true;
    return false;
}

void inbox_forget_spent(hd_engine *e) {
    for (uint32_t i = 0; i < e->spent.count; i++) place_unref(&e->rt->r.places, e->spent.items[i]);
    vec_clear(&e->spent);
}

/* Whether the message has been acted on already, and the commit that removes it is not stored yet. */
static bool is_in_hand(const hd_engine *e, const live *l, place_id doc) {
    for (uint32_t i = 0; l && i < l->messages.count; i++)
        if (l->messages.items[i] == doc) return true;
    return inbox_has_spent(e, doc);
}

/* The message is removed with the instance's next commit. */
static bool keep_message(hd_engine *e, live *l, place_id doc) {
    bool kept = vec_push(e->env, &l->messages, doc);
    if (kept) place_ref(&e->rt->r.places, doc);
    else look_again_if(e, HD_NOMEM);
    return kept;
}

/* The message had no effect, for lack of memory: it stays in the inbox, which is read again. */
static void drop_message(hd_engine *e, live *l, place_id doc) {
    look_again_if(e, HD_NOMEM);
    for (uint32_t i = 0; l && i < l->messages.count; i++) {
        if (l->messages.items[i] != doc) continue;
        vec_remove(&l->messages, i);
        place_unref(&e->rt->r.places, doc);
        return;
    }
}

/* The instance that a message is for; *out NULL: it is over, or does not exist. An engine that has just got a shard may
 * come to a message before it comes to the queued start of the instance: so this takes the instance up. */
static hd_status find_receiver(hd_engine *e, const char *to, live **out) {
    hd_status status = HD_OK;
    if (!live_find(e, to)) status = live_take_up(e, to);
    *out = live_find(e, to);
    return engine_may_pass(status) ? status : HD_OK;
}

static void act_on_message(hd_engine *e, hd_pool *pool, place_id doc) {
    hd_value message = hd_read(e->rt, pool, (hd_cell){ doc });
    const char *to = hd_value_as_text(hd_value_at(message, "to"), "");
    live *l = live_find(e, to);
    look_again_if(e, hd_value_status(message)); /* it could not be read, but is there */
    if (!hd_value_exists(message) || !shard_runs(e, to) || is_in_hand(e, l, doc)) return;
    hd_status found = find_receiver(e, to, &l);
    look_again_if(e, found);
    if (found) return;
    if (l && !l->in) return; /* live_retry looks at the inbox when the instance is loaded */
    if (!l || instance_is_over(l->in)) {
        inbox_spend(e, doc); /* the message can have no effect any more */
        return;
    }
    if (!keep_message(e, l, doc)) return;
    hd_status status = control_apply(e, to, message);
    l = live_find(e, to);
    if (status == HD_NOMEM) drop_message(e, l, doc);
    if (l && l->messages.count && !l->changed)
        live_changed(l); /* the removal is stored in any case */
}

/* HD_IO, ...: the document could not be read; it is to be looked at again. */
static hd_status act_on_instance(hd_engine *e, hd_pool *pool, place_id doc) {
    const char *id = name_of(e, doc) + strlen(INSTANCE_PREFIX);
    hd_value v = hd_read(e->rt, pool, (hd_cell){ doc });
    const char *status = hd_value_as_text(hd_value_at(v, "status"), "");
    if (hd_value_status(v)) return hd_value_status(v);
    if (shard_runs(e, id) && !strcmp(status, "queued") && !live_find(e, id)) {
        hd_status taken = live_take_up(e, id);
        if (engine_may_pass(taken)) return taken;
    }
    bool gone = !hd_value_exists(v); /* removed soon after its end */
    if (gone) keep_doubt(e, id);
    if (!gone && !control_is_over(v)) return HD_OK;
    if (!live_find(e, id)) schedule_ended(e, id);
    control_tell(e, id);
    return HD_OK;
}

static hd_status act_on(hd_engine *e, hd_pool *pool, place_id doc) {
    const char *name = name_of(e, doc);
    if (guest_concerns(e, doc)) look_again_if(e, guest_heard(e));
    if (has_prefix(name, INSTANCE_PREFIX)) return act_on_instance(e, pool, doc);
    if (has_prefix(name, INBOX_PREFIX)) {
        /* If the whole inbox is to be read again, this message is acted on then, after those that came before it. */
        if (e->active && !e->overheard) act_on_message(e, pool, doc);
    } else if (has_prefix(name, WORKER_PREFIX)) {
        if (e->active) look_again_if(e, away_heard(e, name + strlen(WORKER_PREFIX)));
    } else if (has_prefix(name, TASKS_PREFIX)) {
        if (e->active) look_again_if(e, away_heard_tasks(e, name + strlen(TASKS_PREFIX)));
    } else if (has_prefix(name, LINE_PREFIX)) {
        if (e->active) look_again_if(e, line_heard(e, name + strlen(LINE_PREFIX)));
    } else if (has_prefix(name, SCHEDULE_PREFIX)) {
        if (shard_runs(e, name + strlen(SCHEDULE_PREFIX)))
            look_again_if(e, schedule_heard(e, name + strlen(SCHEDULE_PREFIX)));
    } else if (has_prefix(name, SHARE_PREFIX)) {
        share_heard(e, doc, name + strlen(SHARE_PREFIX));
    } else if (has_prefix(name, NOTE_PREFIX)) {
        if (e->shards->runs) look_again_if(e, keep_heard(e, name + strlen(NOTE_PREFIX)));
    } else if (shard_concerns(e, doc, name)) {
        return shard_heard(e, pool, doc, name);
    }
    return HD_OK;
}

/* The local seq of the last commit of this runtime that has written the start or message and has no verdict. 0: none,
 * or the document is of another sort. */
static uint64_t undecided(const hd_engine *e, place_id doc) {
    const char *name = name_of(e, doc);
    if (!has_prefix(name, INSTANCE_PREFIX) && !has_prefix(name, INBOX_PREFIX)) return 0;
    const layer *top = replica_top(&e->rt->r, doc);
    return top ? top->c->local_seq : 0;
}

bool inbox_has_work(const hd_engine *e) {
    return e->heard.count > e->undecided ||
           (e->undecided && replica_has_decided(&e->rt->r, e->undecided_seq));
}

/* The whole inbox is about to be read, which notes every stored message in its order: the messages that were heard are
 * forgotten, except those whose commit has no verdict. Otherwise an engine that hears of a message in the pump in which
 * it gets a lease would act on it before those that were left earlier. */
static void forget_heard_messages(hd_engine *e) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->heard.count; i++) {
        place_id doc = e->heard.items[i];
        if (has_prefix(name_of(e, doc), INBOX_PREFIX) && !undecided(e, doc))
            place_unref(&e->rt->r.places, doc);
        else e->heard.items[kept++] = doc;
    }
    e->heard.count = kept;
}

/* False: the document stays in engine.heard. */
static bool try_to_act_on(hd_engine *e, hd_pool *pool, place_id doc) {
    uint64_t seq = undecided(e, doc);
    if (seq) {
        if (!e->undecided++ || seq < e->undecided_seq) e->undecided_seq = seq;
        return false;
    }
    hd_status status = act_on(e, pool, doc);
    if (status) engine_starve(e, status);
    hd_pool_clear(pool);
    return !status;
}

static void read_again(hd_engine *e) {
    if (e->active) {
        e->overheard = false;
        look_again_if(e, inbox_recover(e));
    } else if (e->guests) {
        e->overheard = false;
        look_again_if(e, guest_heard(e));
    }
}

/* Acting on a document may call a function of the program (hd_workflow_then), and that may call this again: documents
 * that are noted meanwhile are acted on by the loop that is under way. */
void inbox_work(hd_engine *e) {
    hd_pool *pool;
    if ((!inbox_has_work(e) && !e->overheard) || e->rt->open || e->rt->in_run) return;
    if (e->in_inbox || hd_pool_open(e->heap, &pool)) return;
    e->in_inbox = true;
    if (e->overheard) read_again(e);
    uint32_t kept = 0;
    e->undecided = 0;
    for (uint32_t i = 0; i < e->heard.count; i++) { /* may grow meanwhile */
        place_id doc = e->heard.items[i];
        if (try_to_act_on(e, pool, doc)) place_unref(&e->rt->r.places, doc);
        else e->heard.items[kept++] = doc;
    }
    e->heard.count = kept;
    e->in_inbox = false;
    hd_pool_close(pool);
}

/* ---- documents that were written before this engine listened */

typedef struct found {
    hd_engine *e;
    const char *prefix;
    bool nomem;
} found;

static bool note_found(const hd_listing *entry, void *ctx) {
    found *f = ctx;
    size_t skip = strlen(f->prefix);
    if (!has_prefix(entry->id, f->prefix)) return true;
    place_id doc = engine_document(f->e, f->prefix, entry->id + skip);
    f->nomem = !doc || !vec_push(f->e->env, &f->e->heard, doc);
    if (f->nomem && doc) place_unref(&f->e->rt->r.places, doc);
    return !f->nomem;
}

static hd_status find(hd_engine *e, const char *kind, const char *prefix) {
    found f = { .e = e, .prefix = prefix };
    hd_status status = hd_runtime_list(e->rt, e->space, kind, prefix, note_found, &f);
    return status ? status : f.nomem ? HD_NOMEM : HD_OK;
}

hd_status inbox_recover(hd_engine *e) {
    forget_heard_messages(e);
    hd_status status = find(e, "workflow.queued", INSTANCE_PREFIX);
    if (!status) status = find(e, SCHEDULE_KIND, SCHEDULE_PREFIX);
    if (!status) status = find(e, LINE_KIND, LINE_PREFIX);
    if (!status) status = find(e, WORKER_KIND, WORKER_PREFIX);
    if (!status) status = find(e, TASKS_KIND, TASKS_PREFIX);
    return status ? status : find(e, "workflow.inbox", INBOX_PREFIX);
}

void inbox_note_tasks(hd_engine *e, const char *session) {
    char prefix[sizeof TASKS_PREFIX + SESSION_TEXT];
    snprintf(prefix, sizeof prefix, "%s%s", TASKS_PREFIX, session);
    look_again_if(e, find(e, TASKS_KIND, prefix));
}

/* ---- leaving a message */

hd_status inbox_write(hd_engine *e, hd_tx *tx, hd_value message) {
    char name[64];
    uint64_t number;
    env_random(e->env, &number, sizeof number);
    snprintf(name, sizeof name, "%012" PRIx64 "-%08" PRIx32 "-%016" PRIx64, env_wall_ms(e->env),
             ++e->message_serial, number);
    place_id doc = engine_document(e, INBOX_PREFIX, name);
    if (!doc) return HD_NOMEM;
    engine_assume_absent(e, doc);
    hd_status status = hd_tx_set(tx, (hd_cell){ doc }, message);
    if (!status) status = hd_tx_set_kind(tx, (hd_cell){ doc }, "workflow.inbox");
    place_unref(&e->rt->r.places, doc);
    return status;
}

hd_status inbox_post(hd_engine *e, hd_value message, hd_verdict_fn verdict, void *ctx) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    status = inbox_write(e, tx, message);
    return tx_end(tx, status, verdict, ctx);
}

void inbox_fini(hd_engine *e) {
    if (e->listens) hd_runtime_unlisten(e->rt, hear, e);
    for (uint32_t i = 0; i < e->heard.count; i++) place_unref(&e->rt->r.places, e->heard.items[i]);
    inbox_forget_spent(e);
    vec_fini(e->env, &e->heard);
    vec_fini(e->env, &e->spent);
}

/* engine.c -- an engine's life: the lease, actions, and how it hangs on the runtime.
 *
 * Of all engines that are open for a space one is *active*: the one that has the space's lease (store/lease.h). It
 * has the open instances in memory and runs them. The others stand by: they write what they are asked for as
 * documents (inbox.c), and one of them rises when the active one closes or its process ends. In a store in memory
 * that belongs to one runtime there is no other, and no lease. */
#include "workflow/engine.h"

#include "base/env.h"
#include "value/key.h"
#include <stdio.h>

/* ---- documents */

char *engine_text(const hd_engine *e, const char *from) {
    return env_new_copy(e->env, from, strlen(from) + 1);
}

void engine_free_text(const hd_engine *e, char *chars) {
    if (chars) env_free(e->env, chars, strlen(chars) + 1);
}

/* The replica forgets it, and its metadata, when nothing refers to them: most instances are looked at once. */
static void let_pass(hd_engine *e, place_id doc) {
    const authority *a = e->rt->r.authority;
    place_id meta;
    if (!a->ops->reloads || !a->ops->reloads(a)) return;
    place_at(&e->rt->r.places, doc)->doc.flags |= DOC_PASSING;
    if (!runtime_meta(e->rt, doc, &meta))
        place_at(&e->rt->r.places, meta)->doc.flags |= DOC_PASSING;
}

place_id engine_document(hd_engine *e, const char *prefix, const char *id) {
    char name[HD_INSTANCE_ID_SIZE + 64];
    struct key *key;
    uint32_t home;
    place_id doc = 0;
    int length = snprintf(name, sizeof name, "%s%s", prefix, id);
    if ((size_t)length >= sizeof name || key_make(e->heap, name, (size_t)length, &key)) return 0;
    if (!runtime_home(e->rt, e->space_key, HD_SCOPE_SPACE, false, &home) &&
        !places_doc(&e->rt->r.places, home, key, &doc)) {
        place_ref(&e->rt->r.places, doc);
        let_pass(e, doc);
    }
    key_unref(key);
    return doc;
}

hd_value engine_read(hd_engine *e, hd_pool *pool, const char *prefix, const char *id) {
    place_id doc = engine_document(e, prefix, id);
    if (!doc) return (hd_value){ 0 };
    hd_value v = hd_read(e->rt, pool, (hd_cell){ doc });
    place_unref(&e->rt->r.places, doc);
    return v;
}

hd_status engine_begin(hd_engine *e, hd_tx **out) {
    hd_status status = hd_tx_begin(e->rt, out);
    if (status) return status;
    (*out)->class = HD_COMMIT_EVENT;
    hd_tx_set_group(*out, e->group);
    if (e->lease.doc) status = lease_fence(&e->lease, *out);
    if (status) hd_tx_abort(*out);
    return status;
}

/* ---- active or not */

typedef struct found {
    hd_engine *e;
    VEC(char *) ids;
    bool nomem;
} found;

static bool note_found(const hd_listing *entry, void *ctx) {
    found *f = ctx;
    char *id = strncmp(entry->id, INSTANCE_PREFIX, strlen(INSTANCE_PREFIX))
                   ? NULL
                   : engine_text(f->e, entry->id + strlen(INSTANCE_PREFIX));
    if (!id) return true;
    f->nomem = !vec_push(f->e->env, &f->ids, id);
    if (f->nomem) engine_free_text(f->e, id);
    return !f->nomem;
}

/* Instances that are not over: as many as are open, whatever else the store has. One that cannot be read is marked
 * as stalled, and does not keep the others. */
static hd_status take_up_all(hd_engine *e) {
    static const char *const kinds[] = { "workflow.running", "workflow.paused" };
    found f = { .e = e };
    hd_status status = HD_OK;
    for (size_t i = 0; i < 2 && !status; i++)
        status = hd_runtime_list(e->rt, e->space, kinds[i], INSTANCE_PREFIX, note_found, &f);
    if (!status && f.nomem) status = HD_NOMEM;
    for (uint32_t i = 0; i < f.ids.count; i++) {
        if (!status && !live_find(e, f.ids.items[i]) && live_take_up(e, f.ids.items[i]) == HD_NOMEM)
            status = HD_NOMEM;
        engine_free_text(e, f.ids.items[i]);
    }
    vec_fini(e->env, &f.ids);
    return status;
}

/* From here on this engine runs the space's instances. */
static hd_status rise(hd_engine *e) {
    e->shall_rise = false;
    e->active = true;
    hd_status status = e->lease.doc ? hd_runtime_follow(e->rt, e->space) : HD_OK;
    if (!status && e->lease.doc) status = inbox_listen(e);
    if (!status) status = take_up_all(e);
    if (!status) status = inbox_recover(e);
    if (status) engine_stand_down(e);
    return status;
}

void engine_stand_down(hd_engine *e) {
    e->active = e->shall_rise = false;
    while (!list_empty(&e->lives)) live_free(LIST_ENTRY(list_first(&e->lives), live, link));
}

/* Told in the middle of a pump: instances are taken up when the next one begins. */
static void lease_taken(bool held, void *ctx) {
    hd_engine *e = ctx;
    e->shall_rise = held;
    if (!held && e->active) {
        env_log(e->env, HD_LOG_WARN, "another process runs the workflows of space %s now",
                e->space);
        engine_stand_down(e);
    }
}

bool hd_engine_is_active(const hd_engine *e) { return e->active; }

/* ---- on the runtime */

static void work_once(hd_engine *e, bool *more) {
    inbox_work(e);
    *more = e->active && step_work(e);
    if (!live_has_news(e) || e->waits || !e->active) return;
    hd_status status = live_commit(e);
    if (status == HD_NOMEM) e->starved = true;
    *more = status == HD_OK;
}

/* Before the pump: steps, then the commit with what they have changed. In memory a commit is stored at once,
 * so that this goes on until every instance waits, or the time slice is over. */
static void work(void *ctx) {
    hd_engine *e = ctx;
    uint64_t end = env_now_ns(e->env) + UINT64_C(16000000);
    if (e->closing || e->rt->open) return;
    e->starved = false;
    remotes_pump(e->remotes);
    if (e->shall_rise && rise(e)) e->shall_rise = true; /* no memory: tried again */
    if (e->lease.doc && !e->lease.held && !e->observer) (void)lease_try(&e->lease);
    if (e->active && !list_empty(&e->lame)) live_retry(e);
    for (bool more = true; more && !e->closing && !e->rt->open;) {
        work_once(e, &more);
        if (e->waits || env_now_ns(e->env) >= end) break;
    }
    remotes_flush(e->remotes);
}

static uint64_t deadline(const void *ctx) {
    const hd_engine *e = ctx;
    if (e->closing) return UINT64_MAX;
    uint64_t workers = remotes_deadline(e->remotes);
    uint64_t lease_due = e->lease.doc && !e->observer ? lease_deadline(&e->lease) : UINT64_MAX;
    if (e->shall_rise || e->heard.count) return 0;
    if (!e->active) return lease_due < workers ? lease_due : workers;
    if (e->overheard || (live_has_news(e) && !e->waits)) return 0;
    uint64_t due = step_deadline(e), later = env_now_ns(e->env) + UINT64_C(10000000);
    if (workers < due) due = workers;
    return list_empty(&e->lame) || due < later ? due : later; /* no memory: soon, but not at once */
}

/* ---- opening and closing */

void engine_free_orphan(void *ctx) {
    hd_engine *e = ctx;
    if (e->orphan && !e->waits && !e->lease.asked) env_free(e->env, e, sizeof *e);
}

static void free_engine(hd_engine *e) {
    engine_stand_down(e);
    inbox_fini(e);
    control_fini(e);
    lease_close(&e->lease);
    for (uint32_t i = 0; i < e->plans.count; i++) plan_unref(e->plans.items[i]);
    for (uint32_t i = 0; i < e->actions.count; i++) engine_free_text(e, e->actions.items[i].name);
    if (e->w) {
        machine_close(e->w->machine);
        world_close(e->w);
    }
    if (e->classes) classes_close(e->classes);
    vec_fini(e->env, &e->plans);
    vec_fini(e->env, &e->actions);
    vec_fini(e->env, &e->all);
    vec_fini(e->env, &e->changed);
    vec_fini(e->env, &e->under_way);
    vec_fini(e->env, &e->free_indices);
    table_fini(&e->by_id);
    task_fini(e);
    limit_fini(e);
    binheap_fini(&e->timers);
    engine_free_text(e, e->space);
    key_unref(e->space_key);
    /* Commits without a verdict hold on to the engine: the last verdict frees it. */
    e->orphan = e->waits || e->lease.asked;
    if (!e->orphan) env_free(e->env, e, sizeof *e);
}

/* Stores what has changed: starts that were asked for, and steps that are done. */
static void flush(hd_engine *e) {
    if (e->waits) (void)runtime_sync(e->rt);
    if (e->active && !e->waits && !e->rt->open) (void)live_commit(e);
    if (e->waits) (void)runtime_sync(e->rt);
}

static void close_engine(void *ctx) {
    hd_engine *e = ctx;
    e->closing = true;
    pool_close(e);
    here_close(e);
    flush(e);
    remotes_flush(e->remotes); /* workers are told what has been stored */
    remotes_close(e->remotes);
    e->remotes = NULL;
    engine_stand_down(e);
    lease_close(&e->lease);
    e->rt->work = (runtime_extension){ 0 };
    free_engine(e);
}

void hd_engine_close(hd_engine *engine) {
    if (engine) close_engine(engine);
}

static hd_status open_world(hd_engine *e) {
    machine *m;
    hd_status status = classes_open(e->env, &e->classes);
    if (!status) status = world_open(e->env, NULL, e->classes, &e->w);
    return status ? status : machine_open(e->w, &m);
}

static void init_parts(hd_engine *e) {
    list_init(&e->lives);
    list_init(&e->hot);
    list_init(&e->workers);
    list_init(&e->waiters);
    list_init(&e->families);
    list_init(&e->lame);
    table_init(&e->by_id, e->env);
    table_init(&e->by_action, e->env);
    table_init(&e->by_key, e->env);
    binheap_init(&e->deadlines, e->env);
    binheap_init(&e->timers, e->env);
    e->lease.watch_fd = -1;
    env_random(e->env, &e->group, sizeof e->group);
    e->group |= 1; /* 0 is no group */
}

static bool lease_is_decided(void *ctx) { return !((const hd_engine *)ctx)->lease.asked; }

/* Takes the lease if it is free. A store that nobody else can use needs none. */
static hd_status seek_activity(hd_engine *e) {
    if (e->rt->owns_memory) return e->observer ? HD_OK : rise(e);
    hd_status status = lease_open(&e->lease, e->rt, e->space, "workflow", lease_taken, e);
    e->lease.ended = engine_free_orphan;
    if (!status) status = inbox_listen(e);
    if (status || e->observer) return status;
    status = lease_try(&e->lease);
    if (!status) status = runtime_run_until(e->rt, lease_is_decided, e);
    return status || !e->shall_rise ? status : rise(e);
}

static hd_status open_parts(hd_engine *e, const hd_engine_options *options) {
    const char *space = options->space ? options->space : "main";
    e->space = engine_text(e, space);
    hd_status status = e->space ? key_make(e->heap, space, strlen(space), &e->space_key) : HD_NOMEM;
    return status ? status : open_world(e);
}

hd_status hd_engine_open(hd_runtime *rt, const hd_engine_options *options, hd_engine **out,
                         hd_error *error) {
    static const hd_engine_options defaults;
    *out = NULL;
    if (!options) options = &defaults;
    if (rt->work.ctx) {
        env_error(error, HD_EXISTS, "the runtime has an engine already");
        return HD_EXISTS;
    }
    hd_engine *e = env_new0(&rt->env, sizeof *e);
    if (!e) return HD_NOMEM;
    e->rt = rt;
    e->env = &rt->env;
    e->heap = rt->heap;
    e->threads = options->threads ? options->threads : 4;
    e->observer = options->observer;
    init_parts(e);
    hd_status status = open_parts(e, options);
    if (!status) status = seek_activity(e);
    if (status) {
        if (error) *error = rt->r.error;
        if (error && error->status != status)
            env_error(error, status, "the engine cannot be opened: %s", hd_status_text(status));
        e->closing = true;
        free_engine(e);
        return status;
    }
    rt->work = (runtime_extension){
        .ctx = e, .prepare = work, .deadline = deadline, .close = close_engine
    };
    *out = e;
    return HD_OK;
}

/* ---- actions */

const action_entry *engine_action(const hd_engine *e, const char *name) {
    for (uint32_t i = 0; i < e->actions.count; i++)
        if (!strcmp(e->actions.items[i].name, name)) return &e->actions.items[i];
    return NULL;
}

static hd_status serve(hd_engine *e, const action_entry *a) {
    return a->spec.here ? here_serve(e, a->name) : pool_serve(e, a->name);
}

hd_status hd_action_register(hd_engine *e, const hd_action_spec *spec) {
    if (!spec->name || !*spec->name || !spec->fn)
        return runtime_fail(e->rt, HD_USAGE,
                            "hd_action_register: an action has a name and a function");
    action_entry *known = (action_entry *)(uintptr_t)engine_action(e, spec->name);
    if (known && known->spec.here != spec->here)
        return runtime_fail(e->rt, HD_USAGE,
                            "hd_action_register: %s was registered with another `here`",
                            spec->name);
    if (known) {
        char *name = known->name;
        *known = (action_entry){ name, *spec };
        known->spec.name = name;
        return HD_OK;
    }
    char *name = engine_text(e, spec->name);
    if (!name || !vec_push(e->env, &e->actions, ((action_entry){ name, *spec }))) {
        engine_free_text(e, name);
        return HD_NOMEM;
    }
    vec_last(&e->actions).spec.name = name;
    hd_status status = serve(e, &vec_last(&e->actions));
    if (status) engine_free_text(e, vec_pop(&e->actions).name);
    return status;
}

void hd_engine_stat(const hd_engine *e, hd_engine_stats *out) {
    *out = e->stats;
    out->ready = e->ready_count;
    out->timers = binheap_count(&e->timers);
    out->running = e->claimed_count;
}

/* engine.c -- an engine's life: actions, and how it hangs on the runtime.
 *
 * Of all engines that are open for a space one runs each shard: the one that has its lease (shard.c). It has the open
 * instances in memory, and is *active*. The others stand by for that shard: they write what they are asked for as
 * documents (inbox.c), and one of them rises when the active one closes or its process ends. */
#include "workflow/engine.h"

#include "base/env.h"
#include "expr/encode.h"
#include "value/key.h"
#include "value/text.h"
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

#define VALUE_MAX_DEFAULT ((size_t)16 << 20)

#define NAME_SIZE (HD_INSTANCE_ID_SIZE + 64)

static bool name_fits(const char *prefix, const char *id) {
    size_t length = strlen(id);
    return strlen(prefix) + length < NAME_SIZE && utf8_valid(id, length, NULL);
}

bool engine_may_exist(const char *id) {
    return strlen(id) < HD_INSTANCE_ID_SIZE && name_fits(INSTANCE_PREFIX, id);
}

place_id engine_document(hd_engine *e, const char *prefix, const char *id) {
    char name[NAME_SIZE];
    struct key *key;
    uint32_t home;
    place_id doc = 0;
    size_t before = strlen(prefix), length = strlen(id);
    if (!name_fits(prefix, id)) return 0;
    memcpy(name, prefix, before);
    memcpy(name + before, id, length);
    if (!(key = key_intern(e->heap, name, before + length))) return 0;
    if (!runtime_home(e->rt, e->space_key, HD_SCOPE_SPACE, false, &home) &&
        !places_doc(&e->rt->r.places, home, key, &doc)) {
        place_ref(&e->rt->r.places, doc);
        let_pass(e, doc);
    }
    key_unref(key);
    return doc;
}

static void assume_absent(replica *r, place_id doc, uint64_t seq) {
    if (place_at(&r->places, doc)->doc.flags & DOC_KNOWN) return;
    replica_meet(r, doc, &(loaded){ .seq = seq });
}

void engine_assume_absent(hd_engine *e, place_id doc) {
    authority *a = e->rt->r.authority;
    place_id meta;
    uint64_t seq;
    if (!a->ops->seq_of || a->ops->seq_of(a, e->space_key, &seq)) return;
    assume_absent(&e->rt->r, doc, seq);
    if (!runtime_meta(e->rt, doc, &meta)) assume_absent(&e->rt->r, meta, seq);
}

hd_status engine_load(hd_engine *e, place_id doc) {
    if (place_at(&e->rt->r.places, doc)->doc.flags & DOC_KNOWN) return HD_OK;
    hd_status status = replica_load(&e->rt->r, doc);
    return engine_may_pass(status) ? status : HD_OK;
}

hd_value engine_read(hd_engine *e, hd_pool *pool, const char *prefix, const char *id) {
    if (!name_fits(prefix, id)) return (hd_value){ 0 };
    place_id doc = engine_document(e, prefix, id);
    if (!doc) return hd_failed(HD_NOMEM);
    hd_value v = hd_read(e->rt, pool, (hd_cell){ doc });
    place_unref(&e->rt->r.places, doc);
    return v;
}

/* Takes the most that the JSON of a value can have off *room. Stops when none is left. */
static void take_room(hd_value v, size_t *room) {
    enum { NUMBER = 26, BRACKETS = 3, ESCAPED = 6, BYTES = 18 }; /* with a comma */
    size_t length, most = NUMBER;
    if (hd_value_text(v, &length)) most = length * ESCAPED + BRACKETS;
    else if (hd_value_bytes(v, &length)) most = length * 2 + BYTES;
    else if (hd_value_kind(v) == HD_KIND_LINK) most = *room; /* seldom: it is printed */
    *room -= most < *room ? most : *room;
    for (hd_iter it = hd_iter_of(v); *room && hd_iter_next(&it);) {
        size_t key = it.key ? it.key_length * ESCAPED + BRACKETS + 1 : 0;
        *room -= key < *room ? key : *room;
        take_room(it.value, room);
    }
}

/* False: it is longer. */
static bool count_text(const char *chars, size_t length, void *ctx) {
    size_t *room = ctx;
    (void)chars;
    if (length > *room) return false;
    *room -= length;
    return true;
}

/* Most values are far from the limit, which can be told without printing them. */
bool engine_takes(const hd_engine *e, hd_value v) {
    size_t room = e->value_max;
    take_room(v, &room);
    if (room) return true;
    room = e->value_max;
    return hd_json_write(v, HD_JSON_COMPACT, count_text, &room) != HD_ABORTED;
}

hd_status engine_try(hd_engine *e, plan *p, hd_value v, hd_error *error) {
    ev ignored;
    plan_use(p);
    hd_status status = decode_value(e->w, v, &ignored, error);
    world_sweep(e->w);
    return status;
}

hd_status engine_begin(hd_engine *e, hd_tx **out) {
    hd_status status = hd_tx_begin(e->rt, out);
    if (status) return status;
    (*out)->class = HD_COMMIT_EVENT;
    (*out)->flags |= TX_BY_OPS;
    hd_tx_set_group(*out, e->group);
    e->transactions++;
    return HD_OK;
}

hd_status engine_fence(hd_tx *tx, shard *s) {
    if (!s->lease.doc || s->fenced == s->e->transactions) return HD_OK;
    s->fenced = s->e->transactions;
    if (s->number && SABOTAGED(&s->e->rt->r, SABOTAGE_SHARD)) return HD_OK;
    return lease_fence(&s->lease, tx);
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
    if (!shard_runs(f->e, id) || live_find(f->e, id)) return engine_free_text(f->e, id), true;
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
    limits_close(e);
    for (uint32_t i = 0; i < f.ids.count; i++) {
        if (!status && !live_find(e, f.ids.items[i]) && live_take_up(e, f.ids.items[i]) == HD_NOMEM)
            status = HD_NOMEM;
        engine_free_text(e, f.ids.items[i]);
    }
    limits_open(e);
    vec_fini(e->env, &f.ids);
    return status;
}

/* True: the first one is among them. */
static bool begin_shards(hd_engine *e) {
    bool first = shard_may_rise(e->shards);
    for (uint32_t i = 0; i < e->shard_count; i++) {
        shard *s = &e->shards[i];
        if (!shard_may_rise(s)) continue;
        if (!s->runs) s->cleared = false;
        s->runs = true;
        s->shall_rise = false;
    }
    return first;
}

/* From here on this engine runs the instances of the shards that it has got. */
static hd_status rise(hd_engine *e) {
    authority *a = e->rt->r.authority;
    if (a->ops->expect_loads)
        a->ops->expect_loads(a); /* open instances of a program that was killed */
    assert(!e->observer && (e->active || (list_empty(&e->lives) && !e->changed.count)));
    if (!e->active) e->risen_ms = env_wall_ms(e->env);
    bool first = begin_shards(e);
    e->active = e->uneven = true;
    hd_status status = e->shared ? hd_runtime_follow(e->rt, e->space) : HD_OK;
    if (!status && e->shared) status = inbox_listen(e);
    if (!status) status = take_up_all(e);
    if (!status) status = inbox_recover(e);
    if (!status && first) status = keep_recover(e);
    return status;
}

/* What it holds it runs again when that is possible. */
static hd_status rise_or_stand_down(hd_engine *e) {
    hd_status status = rise(e);
    if (!status) return HD_OK;
    engine_stand_down(e);
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (!e->shared || e->shards[i].lease.held) shard_rise_soon(&e->shards[i]);
    engine_starve(e, status);
    return status;
}

static void leave(live *l) {
    start_hand_on(l);
    control_look_again(l->e, l->id);
    live_free(l);
}

void engine_leave_shard(shard *s) {
    hd_engine *e = s->e;
    s->runs = s->shall_rise = false;
    s->drains_ns = 0;
    if (!shard_count_running(e)) {
        engine_stand_down(e);
        return;
    }
    schedule_fini(e, s);
    LIST_FOR_SAFE (n, &e->lives) {
        live *l = LIST_ENTRY(n, live, link);
        if (l->shard == s) leave(l);
    }
}

void engine_stand_down(hd_engine *e) {
    e->active = false;
    for (uint32_t i = 0; i < e->shard_count; i++) {
        e->shards[i].runs = false;
        e->shards[i].drains_ns = 0;
    }
    schedule_fini(e, NULL);
    keep_fini(e);
    while (!list_empty(&e->lives)) leave(LIST_ENTRY(list_first(&e->lives), live, link));
    away_fini(e);
    assert(!e->changed.count && !e->late && !e->stats.open && !e->ready_count);
    assert(!binheap_count(&e->timers) && !binheap_count(&e->alarms));
}

bool hd_engine_is_active(const hd_engine *e) { return e->active; }

/* ---- on the runtime */

static void work_once(hd_engine *e, bool *more) {
    inbox_work(e);
    within_look(e);
    *more = e->active && schedule_work(e);
    *more = (e->active && e->shards->runs && keep_work(e)) || *more;
    *more = (e->active && step_work(e)) || *more;
    if (!flight_may_begin(e) || !e->active) return;
    hd_status status = flight_begin(e);
    if (status) engine_starve(e, status);
    *more = status == HD_OK;
}

/* There is more to do: the commit that was begun is synced meanwhile. Without memory the pump sends it. */
static void send_ahead(hd_engine *e) {
    authority *a = e->rt->r.authority;
    if (!e->waits || e->rt->owns_memory || list_empty(&e->hot)) return;
    (void)replica_send(&e->rt->r);
    if (a->ops->start) a->ops->start(a);
}

/* Before the pump: steps, then the commit with what they have changed. In memory a commit is stored at once,
 * so that this goes on until every instance waits, or the time slice is over. */
static void work_engine(hd_engine *e) {
    uint64_t end = env_now_ns(e->env) + UINT64_C(16000000);
    if (e->closing || e->rt->open) return;
    e->starved = e->nomem = false;
    remotes_pump(e->remotes);
    if (shard_one_may_rise(e)) (void)rise_or_stand_down(e);
    shard_work(e);
    if (e->active && !list_empty(&e->lame)) live_retry(e);
    away_work(e);
    limit_retry(e);
    child_retry(e);
    for (bool more = true; more && !e->closing && !e->rt->open;) {
        work_once(e, &more);
        if (e->waits == FLIGHTS || env_now_ns(e->env) >= end) break;
        send_ahead(e);
    }
    if (!e->rt->open) share_work(e);
    guest_work(e);
    remotes_flush(e->remotes);
    stored_tell(e);
    engine_check(e);
}

static void work(void *ctx) {
    for (hd_engine *e = ctx; e; e = e->next) work_engine(e);
}

static uint64_t deadline_of(const hd_engine *e) {
    if (e->closing) return UINT64_MAX;
    uint64_t workers = remotes_deadline(e->remotes);
    uint64_t lease_due = shard_deadline(e);
    if (e->starved || !list_empty(&e->lame) || !list_empty(&e->postponed))
        return env_now_ns(e->env) + UINT64_C(10000000); /* soon, but not at once */
    if (shard_one_may_rise(e) || inbox_has_work(e) || (e->overheard && e->guests) ||
        stored_is_due(e))
        return 0;
    uint64_t guests = guest_deadline(e), shares = share_deadline(e);
    if (guests < lease_due) lease_due = guests;
    if (shares < lease_due) lease_due = shares;
    if (!e->active) return lease_due < workers ? lease_due : workers;
    if (e->overheard || flight_may_begin(e)) return 0;
    uint64_t due = step_deadline(e), alarm = schedule_deadline(e);
    if (e->held_until && flight_has_news(e) && e->held_until < due) due = e->held_until;
    if (workers < due) due = workers;
    if (lease_due < due) due = lease_due;
    uint64_t sweep = e->shards->runs ? keep_deadline(e) : UINT64_MAX, away = away_deadline(e);
    if (away < due) due = away;
    if (sweep < due) due = sweep;
    return alarm < due ? alarm : due;
}

static uint64_t deadline(const void *ctx) {
    uint64_t due = UINT64_MAX;
    for (const hd_engine *e = ctx; e && due; e = e->next) {
        uint64_t at = deadline_of(e);
        if (at < due) due = at;
    }
    return due;
}

/* ---- opening and closing */

/* Transactions of it have no verdict yet. */
static bool is_asked(const hd_engine *e) {
    return e->waits || shard_is_asked(e) || e->schedule_asks || e->sweeps || e->announcements ||
           e->member_writes || e->share_asks;
}

static void free_rest(hd_engine *e) {
    if (e->shards) env_free(e->env, e->shards, e->shard_count * sizeof *e->shards);
    env_free(e->env, e, sizeof *e);
}

void engine_free_orphan(void *ctx) {
    hd_engine *e = ctx;
    if (e->orphan && !is_asked(e)) free_rest(e);
}

static void free_engine(hd_engine *e) {
    engine_stand_down(e);
    inbox_fini(e);
    guest_fini(e);
    control_fini(e);
    stored_fini(e);
    start_fini(e);
    shard_close(e);
    version_forget_name(e);
    document_fini(e);
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
    for (int i = 0; i < FLIGHTS; i++) vec_fini(e->env, &e->flights[i].lives);
    vec_fini(e->env, &e->free_indices);
    table_fini(&e->by_id);
    table_fini(&e->by_waited);
    vec_fini(e->env, &e->waited);
    vec_fini(e->env, &e->schedules);
    table_fini(&e->by_schedule);
    task_fini(e);
    limit_fini(e);
    line_fini(e);
    binheap_fini(&e->timers);
    binheap_fini(&e->alarms);
    schedule_forget_zones(e);
    engine_free_text(e, e->space);
    key_unref(e->space_key);
    /* Commits without a verdict hold on to the engine: the last verdict frees it. */
    e->orphan = is_asked(e);
    if (!e->orphan) free_rest(e);
}

/* Stores what has changed: starts that were asked for, and steps that are done. */
static void flush(hd_engine *e) {
    if (e->waits || e->schedule_asks || e->sweeps) (void)runtime_sync(e->rt);
    if (e->active && !e->waits && !e->rt->open) (void)flight_begin(e);
    if (e->waits) (void)runtime_sync(e->rt);
}

/* From here on it runs nothing. Starts and messages within transactions of the program are still taken: hd_close runs
 * such transactions to their end. */
static void close_engine(hd_engine *e) {
    e->closing = true;
    pool_close(e);
    here_close(e);
    later_close(e);
    within_close(e);
    watcher_close_all(e);
    guest_close(e);
    flush(e);
    remotes_flush(e->remotes); /* workers are told what has been stored */
    stored_tell(e);
    remotes_close(e->remotes);
    e->remotes = NULL;
    engine_stand_down(e);
    control_fini(e);
    share_leave(e);
    shard_close(e);
}

static void close_all(void *ctx) {
    for (hd_engine *e = ctx; e; e = e->next) close_engine(e);
}

static void leave_runtime(hd_engine *e) {
    hd_runtime *rt = e->rt;
    hd_engine *first = rt->work.ctx, **at = &first;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    rt->work.ctx = first;
    if (!first) rt->work = (runtime_extension){ 0 };
}

static void free_all(void *ctx) {
    const hd_engine *first = ctx;
    for (hd_runtime *rt = first->rt; rt->work.ctx;) {
        hd_engine *e = rt->work.ctx;
        leave_runtime(e);
        free_engine(e);
    }
}

void hd_engine_close(hd_engine *engine) {
    if (!engine) return;
    if (engine->closing || hd_runtime_is_at_work(engine->rt)) {
        env_log(engine->env, HD_LOG_ERROR,
                "hd_engine_close: a function that the engine or its runtime calls cannot close it");
        return;
    }
    close_engine(engine);
    leave_runtime(engine);
    free_engine(engine);
}

hd_engine *engine_find(const hd_runtime *rt, uint64_t group) {
    hd_engine *e = rt->work.ctx;
    while (e && e->group != group) e = e->next;
    return e;
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
    list_init(&e->stored);
    list_init(&e->keyed);
    list_init(&e->families);
    list_init(&e->postponed);
    list_init(&e->shares_due);
    list_init(&e->shares_waiting);
    list_init(&e->lame);
    table_init(&e->by_id, e->env);
    table_init(&e->by_waited, e->env);
    table_init(&e->by_action, e->env);
    table_init(&e->by_key, e->env);
    binheap_init(&e->deadlines, e->env);
    binheap_init(&e->timers, e->env);
    binheap_init(&e->alarms, e->env);
    table_init(&e->by_schedule, e->env);
    list_init(&e->awaiting);
    list_init(&e->watchers);
    list_init(&e->to_schedule);
    env_random(e->env, &e->group, sizeof e->group);
    e->group |= 1; /* 0 is no group */
}

/* Takes leases that are free. A store that only this runtime can use needs none. */
static hd_status seek_activity(hd_engine *e) {
    if (!e->shared) e->shards->shall_rise = !e->observer;
    hd_status status = e->shared ? inbox_listen(e) : HD_OK;
    if (!status && e->shared) status = shard_seek(e);
    return status || !shard_one_may_rise(e) ? status : rise(e);
}

static hd_status open_parts(hd_engine *e, const hd_engine_options *options) {
    const char *space = options->space ? options->space : "main";
    e->space = engine_text(e, space);
    for (const char *const *q = options->queues; q && *q; q++) {
        if (**q && !line_name_is_good(*q))
            return runtime_fail(e->rt, HD_USAGE, "queues: a queue has a name of " PLAN_NAME_RULE);
        char *name = engine_text(e, *q);
        if (name && vec_push(e->env, &e->served, name)) continue;
        engine_free_text(e, name);
        return HD_NOMEM;
    }
    hd_status status =
        e->space ? runtime_space(e->rt, space, strlen(space), &e->space_key) : HD_NOMEM;
    if (!status) status = document_init(e);
    if (!status) status = open_world(e);
    return status ? status : shard_open(e, options->shards);
}

static bool has_engine(const hd_runtime *rt, const char *space) {
    for (const hd_engine *e = rt->work.ctx; e; e = e->next)
        if (!strcmp(e->space, space)) return true;
    return false;
}

static void join_runtime(hd_engine *e) {
    hd_runtime *rt = e->rt;
    e->next = rt->work.ctx;
    rt->work = (runtime_extension){
        .ctx = e, .prepare = work, .deadline = deadline, .close = close_all, .free = free_all
    };
}

hd_status hd_engine_open(hd_runtime *rt, const hd_engine_options *options, hd_engine **out,
                         hd_error *error) {
    static const hd_engine_options defaults;
    *out = NULL;
    if (!options) options = &defaults;
    const char *space = options->space ? options->space : "main";
    if (has_engine(rt, space)) {
        env_error(error, HD_EXISTS, "the runtime has an engine for space %s already", space);
        return HD_EXISTS;
    }
    hd_engine *e = env_new0(&rt->env, sizeof *e);
    if (!e) return HD_NOMEM;
    e->rt = rt;
    e->env = &rt->env;
    e->heap = rt->heap;
    e->threads = options->threads ? options->threads : 4;
    e->observer = options->observer || rt->options.read_only;
    e->keep_ms = options->keep_ms;
    e->keep_most = options->keep_most;
    e->value_max = options->value_max ? (size_t)options->value_max : VALUE_MAX_DEFAULT;
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
    join_runtime(e);
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
    if (a->spec.transaction) return within_serve(e, a->name);
    if (a->spec.later) return later_serve(e, a->name);
    return a->spec.here ? here_serve(e, a->name) : pool_serve(e, a->name);
}

hd_status hd_action_register(hd_engine *e, const hd_action_spec *spec) {
    if (!spec->name || !*spec->name || !spec->fn)
        return runtime_fail(e->rt, HD_USAGE,
                            "hd_action_register: an action has a name and a function");
    if (e->closing)
        return runtime_fail(e->rt, HD_USAGE, "hd_action_register: the engine is being closed");
    action_entry *known = (action_entry *)(uintptr_t)engine_action(e, spec->name);
    if (known && (known->spec.here != spec->here || known->spec.later != spec->later ||
                  known->spec.transaction != spec->transaction))
        return runtime_fail(e->rt, HD_USAGE,
                            "hd_action_register: %s was registered with another `here`, `later` or "
                            "`transaction`",
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
    else guest_actions_changed(e);
    return status;
}

/* Each of the four begins with its worker. */
static worker *worker_of(const hd_engine *e, const hd_action_spec *spec) {
    if (spec->transaction) return (worker *)(void *)e->within;
    if (spec->later) return (worker *)(void *)e->later;
    return spec->here ? (worker *)(void *)e->here : (worker *)(void *)e->pool;
}

void hd_action_unregister(hd_engine *e, const char *name) {
    for (uint32_t i = 0; name && i < e->actions.count; i++) {
        action_entry known = e->actions.items[i];
        if (strcmp(known.name, name) != 0) continue;
        worker_unserve(worker_of(e, &known.spec), known.name);
        vec_swap_remove(&e->actions, i);
        guest_actions_changed(e);
        engine_free_text(e, known.name);
        return;
    }
}

void hd_engine_stat(const hd_engine *e, hd_engine_stats *out) {
    *out = e->stats;
    out->ready = e->ready_count;
    out->timers = binheap_count(&e->timers);
    out->running = e->claimed_count;
    out->shards = shard_count_running(e);
}

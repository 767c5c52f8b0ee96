/* schedule.c -- the active engine's part: timers, and the transaction that starts and advances. */
#include "workflow/schedule.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/text.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* A schedule that the active engine knows. */
typedef struct schedule {
    hd_engine *e;
    uint32_t index;                    /* in engine.schedules */
    char *name;                        /* owned */
    place_id doc;                      /* one reference */
    binheap_item timer;                /* in engine.alarms */
    list_node look;                    /* in engine.to_schedule: its document is to be looked at */
    char *awaits;                      /* the instance that a time waits for; NULL: none; owned */
    list_node wait;                    /* in engine.awaiting while it is not NULL */
    bool asked;                        /* its transaction has no verdict yet */
    bool gone;                         /* freed when it has */
    char started[HD_INSTANCE_ID_SIZE]; /* by that transaction; "": nothing */
    bool cancels;                      /* that transaction stores a message, too */
} schedule;

/* ---- reading documents */

static const char *const overlap_names[] = { "skip", "queue", "allow", "cancel" };
static const char *const catch_up_names[] = { "last", "all", "none" };

static uint64_t ms_at(hd_value doc, const char *key, uint64_t otherwise) {
    int64_t n = hd_value_as_int(hd_value_at(doc, key), -1);
    return n < 0 ? otherwise : (uint64_t)n;
}

static uint64_t span_at(hd_value doc, const char *key) {
    double s = hd_value_number(hd_value_at(doc, key));
    return s > 0 && s < 1e12 ? (uint64_t)llround(s * 1000) : 0;
}

/* Of the times that are to be started out of turn, the first; 0: there is none. */
static uint64_t first_trigger(hd_value doc) {
    int64_t n = hd_value_as_int(hd_value_index(hd_value_at(doc, "trigger"), 0), 0);
    return n > 0 ? (uint64_t)n : 0;
}

static int word_at(hd_value doc, const char *key, const char *const *words, int count) {
    const char *word = hd_value_as_text(hd_value_at(doc, key), words[0]);
    for (int i = 0; i < count; i++)
        if (!strcmp(word, words[i])) return i;
    return -1;
}

/* Zones are read once. */
static hd_status zone_of(hd_engine *e, const char *name, const zone **out, hd_error *error) {
    known_zone k = { 0 };
    for (uint32_t i = 0; i < e->zones.count; i++)
        if (!strcmp(e->zones.items[i].name, name)) return *out = e->zones.items[i].z, HD_OK;
    hd_status status = zone_open(e->env, name, &k.z, error);
    if (status) return status;
    k.name = engine_text(e, name);
    *out = k.z;
    if (k.name && vec_push(e->env, &e->zones, k)) return HD_OK;
    engine_free_text(e, k.name);
    zone_close(k.z);
    return HD_NOMEM;
}

static hd_status refuse(hd_error *error, const char *why) {
    env_error(error, HD_USAGE, "%s", why);
    return HD_USAGE;
}

static hd_status read_times(hd_engine *e, const char *name, hd_value doc, timetable *t,
                            hd_error *error) {
    const char *fields = hd_value_as_text(hd_value_at(doc, "cron"), "");
    *t = (timetable){ .every_ms = span_at(doc, "every"),
                      .from_ms = ms_at(doc, "from", 0),
                      .until_ms = ms_at(doc, "until", 0),
                      .jitter_ms = span_at(doc, "jitter"),
                      .seed = hash_bytes(name, strlen(name), 0) };
    if (!*fields == !t->every_ms)
        return refuse(error, "a schedule has either cron fields or an interval of at least a "
                             "millisecond");
    if (t->every_ms) return HD_OK;
    hd_status status = cron_parse(fields, &t->fields, error);
    return status ? status
                  : zone_of(e, hd_value_as_text(hd_value_at(doc, "zone"), "UTC"), &t->zone, error);
}

hd_status schedule_read(hd_engine *e, const char *name, hd_value doc, schedule_form *out,
                        hd_error *error) {
    hd_status status = hd_value_status(doc);
    int overlap = word_at(doc, "overlap", overlap_names, 4);
    int catch_up = word_at(doc, "catch_up", catch_up_names, 3);
    *out = (schedule_form){ .overlap = (hd_overlap)overlap, .catch_up = (hd_catch_up)catch_up };
    if (status) return status;
    if (overlap < 0) return refuse(error, "overlap is one of skip, queue, allow, cancel");
    if (catch_up < 0) return refuse(error, "catch_up is one of last, all, none");
    out->window_ms = span_at(doc, "window");
    if (!out->window_ms && out->catch_up == HD_CATCH_UP_NONE) out->window_ms = 60000;
    out->paused = hd_value_as_bool(hd_value_at(doc, "paused"), false);
    out->next_ms = ms_at(doc, "next", TIMETABLE_NEVER);
    out->waiting_ms = ms_at(doc, "waiting", 0);
    out->trigger_ms = first_trigger(doc);
    out->running = hd_value_as_text(hd_value_at(doc, "running"), "");
    return read_times(e, name, doc, &out->times, error);
}

bool schedule_may_exist(const char *name) {
    size_t length = name ? strlen(name) : SIZE_MAX;
    return length <= SCHEDULE_NAME_MAX && utf8_valid(name, length, NULL);
}

bool schedule_name_is_good(const char *name) {
    return schedule_may_exist(name) && *name && !utf8_has_control(name, strlen(name)) &&
           !strpbrk(name, "/@#");
}

/* ---- which there are */

static uint32_t hash_name(const char *name) { return (uint32_t)hash_bytes(name, strlen(name), 0); }

static schedule *find(const hd_engine *e, const char *name) {
    const table *t = &e->by_schedule;
    for (table_probe p = table_find(t, hash_name(name)); table_next(t, &p);)
        if (!strcmp(e->schedules.items[p.index]->name, name)) return e->schedules.items[p.index];
    return NULL;
}

static hd_status enter(schedule *s) {
    hd_engine *e = s->e;
    if (!vec_room(e->env, &e->schedules, 1)) return HD_NOMEM;
    s->index = e->schedules.count;
    hd_status status = table_insert(&e->by_schedule, hash_name(s->name), s->index);
    if (!status) e->schedules.items[e->schedules.count++] = s;
    return status;
}

/* The last one takes its place. */
static void leave(schedule *s) {
    hd_engine *e = s->e;
    schedule *last = vec_pop(&e->schedules);
    table_remove(&e->by_schedule, hash_name(s->name), s->index);
    if (last == s) return;
    table_move(&e->by_schedule, hash_name(last->name), last->index, s->index);
    e->schedules.items[s->index] = last;
    last->index = s->index;
}

static void look_later(schedule *s) {
    if (!list_linked(&s->look)) list_push_back(&s->e->to_schedule, &s->look);
}

static void free_schedule(schedule *s) {
    hd_engine *e = s->e;
    engine_free_text(e, s->name);
    engine_free_text(e, s->awaits);
    env_free(e->env, s, sizeof *s);
}

/* One whose transaction is under way stays for its verdict. */
static void forget(schedule *s) {
    hd_engine *e = s->e;
    leave(s);
    list_discard(&s->look);
    list_discard(&s->wait);
    if (binheap_linked(&s->timer)) binheap_remove(&e->alarms, &s->timer);
    place_unref(&e->rt->r.places, s->doc);
    s->gone = true;
    if (!s->asked) free_schedule(s);
}

hd_status schedule_heard(hd_engine *e, const char *name) {
    schedule *s = find(e, name);
    if (!s && (s = env_new0(e->env, sizeof *s))) {
        s->e = e;
        s->name = engine_text(e, name);
        s->doc = s->name ? engine_document(e, SCHEDULE_PREFIX, name) : 0;
        if (!s->doc || enter(s)) {
            if (s->doc) place_unref(&e->rt->r.places, s->doc);
            return free_schedule(s), HD_NOMEM;
        }
    }
    if (!s) return HD_NOMEM;
    look_later(s);
    return HD_OK;
}

void schedule_fini(hd_engine *e, const shard *of) {
    for (uint32_t i = e->schedules.count; i-- > 0;) {
        schedule *s = e->schedules.items[i];
        if (!of || shard_of(e, s->name) == of) forget(s);
    }
}

void schedule_forget_zones(hd_engine *e) {
    for (uint32_t i = 0; i < e->zones.count; i++) {
        engine_free_text(e, e->zones.items[i].name);
        zone_close(e->zones.items[i].z);
    }
    vec_fini(e->env, &e->zones);
}

/* ---- what is to be done */

/* What one transaction does to a schedule. */
typedef struct turn {
    schedule *s;
    hd_tx *tx;
    hd_value doc; /* as the transaction has read it */
    schedule_form f;
    uint64_t now_ms;
    hd_status status;
} turn;

static void put(turn *t, const char *key, hd_value v) {
    hd_cell at = hd_cell_child(t->s->e->rt, (hd_cell){ t->s->doc }, key);
    bool there = hd_value_exists(hd_value_at(t->doc, key));
    if (t->status) return;
    if (hd_value_exists(v)) t->status = hd_tx_set(t->tx, at, v);
    else if (there) t->status = hd_tx_remove(t->tx, at);
}

static void put_ms(turn *t, const char *key, uint64_t ms) {
    bool none = !ms || ms == TIMETABLE_NEVER;
    put(t, key, none ? (hd_value){ 0 } : hd_int(hd_tx_pool(t->tx), (int64_t)ms));
}

static void count(turn *t, const char *key) {
    put(t, key, hd_int(hd_tx_pool(t->tx), hd_value_as_int(hd_value_at(t->doc, key), 0) + 1));
}

/* An end that is not stored yet is none. */
bool schedule_read_running(hd_engine *e, const char *id) {
    hd_pool *pool;
    if (!*id) return false;
    if (live_find(e, id)) return true;
    if (hd_pool_open(e->heap, &pool)) return true;
    hd_value doc = engine_read(e, pool, INSTANCE_PREFIX, id);
    bool open = hd_value_status(doc) || (hd_value_exists(doc) && !control_is_over(doc));
    hd_pool_close(pool);
    return open;
}

/* "nightly@2026-11-17T02:00:00Z". */
static void make_key(const schedule *s, uint64_t at_ms, char *out, size_t size) {
    int64_t year, seconds = (int64_t)(at_ms / 1000), days = seconds / 86400;
    int month, day, rest = (int)(seconds % 86400), ms = (int)(at_ms % 1000);
    char fraction[8] = "";
    zone_date(days, &year, &month, &day);
    if (ms) snprintf(fraction, sizeof fraction, ".%03d", ms);
    snprintf(out, size, "%s@%04d-%02d-%02dT%02d:%02d:%02d%sZ", s->name, (int)year, month, day,
             rest / 3600, rest / 60 % 60, rest % 60, fraction);
}

/* Why it could not be started is told in the document; the schedule goes on. */
static void note_failure(turn *t) {
    hd_pool *pool = hd_tx_pool(t->tx);
    hd_value why = hd_string(pool, hd_runtime_error(t->s->e->rt)->message);
    hd_value r = hd_object_set(pool, hd_object(), "at", hd_int(pool, (int64_t)t->now_ms));
    put(t, "error", hd_object_set(pool, r, "message", why));
}

/* Writes the start; HD_EXISTS: that time has been started. */
static hd_status write_start(turn *t, uint64_t at_ms) {
    schedule *s = t->s;
    char key[128];
    hd_start_options o = { .key = key,
                           .priority =
                               (int32_t)hd_value_as_int(hd_value_at(t->doc, "priority"), 0) };
    const char *name = hd_value_as_text(hd_value_at(t->doc, "workflow"), "");
    hd_value input = hd_value_at(t->doc, "input");
    make_key(s, at_ms, key, sizeof key);
    hd_status status = hd_workflow_start_in(
        s->e, t->tx, name, hd_value_exists(input) ? input : hd_object(), &o, s->started);
    if (status && status != HD_EXISTS) s->started[0] = 0;
    return status;
}

/* A time that was started before is not started, nor counted, again. */
static void start(turn *t, uint64_t at_ms) {
    hd_status status = write_start(t, at_ms);
    if (engine_may_pass(status)) t->status = status;
    else if (status && status != HD_EXISTS) note_failure(t);
    if (status && status != HD_EXISTS) return;
    put(t, "error", (hd_value){ 0 });
    put(t, "running", hd_string(hd_tx_pool(t->tx), t->s->started));
    put_ms(t, "last", at_ms);
    if (!status) count(t, "started");
}

/* A message, which is stored with the turn: a crash does not lose it, and the instance may be of another shard. */
static void cancel_running(turn *t) {
    if (t->status) return;
    t->status =
        inbox_write(t->s->e, t->tx, control_message(hd_tx_pool(t->tx), t->f.running, "cancel"));
    t->s->cancels = true;
}

/* The instance before it may still run. */
static void start_or_not(turn *t, uint64_t at_ms) {
    hd_overlap overlap = t->f.overlap;
    if (overlap == HD_OVERLAP_ALLOW || !schedule_read_running(t->s->e, t->f.running)) {
        start(t, at_ms);
        return;
    }
    if (overlap == HD_OVERLAP_SKIP || (overlap == HD_OVERLAP_QUEUE && t->f.waiting_ms)) {
        count(t, "skipped");
        return;
    }
    if (t->f.waiting_ms) count(t, "skipped"); /* the new one takes the place of that one */
    put_ms(t, "waiting", at_ms);
    if (overlap == HD_OVERLAP_CANCEL) cancel_running(t);
}

/* Whether an instance has this time in its name. t->status says whether that could be read. */
static bool find_taken(turn *t, uint64_t at_ms) {
    hd_engine *e = t->s->e;
    char id[HD_INSTANCE_ID_SIZE], key[128];
    make_key(t->s, at_ms, key, sizeof key);
    snprintf(id, sizeof id, "%.100s/%s", hd_value_as_text(hd_value_at(t->doc, "workflow"), ""),
             key);
    hd_value doc = engine_read(e, hd_tx_pool(t->tx), INSTANCE_PREFIX, id);
    if (!t->status) t->status = hd_value_status(doc);
    return live_find(e, id) || hd_value_exists(doc);
}

/* Each trigger is a start of its own: one that comes in the same millisecond as another start has the next. */
static void start_trigger(turn *t) {
    hd_pool *pool = hd_tx_pool(t->tx);
    hd_value all = hd_value_at(t->doc, "trigger"), rest = hd_array();
    uint64_t at = t->f.trigger_ms;
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);)
        if (it.index) rest = hd_array_append(pool, rest, it.value);
    put(t, "trigger", hd_value_count(rest) ? rest : (hd_value){ 0 });
    while (find_taken(t, at)) at++;
    start_or_not(t, at);
}

/* The time that is due; 0: none, and *next is where to go on. */
static uint64_t choose(const schedule_form *f, uint64_t now, uint64_t *next) {
    const timetable *t = &f->times;
    uint64_t at = f->next_ms, oldest = f->window_ms && f->window_ms < now ? now - f->window_ms : 0;
    if (at < oldest) at = timetable_next(t, oldest - 1);
    if (timetable_due(t, at) <= now && f->catch_up != HD_CATCH_UP_ALL)
        at = timetable_last_due(t, at, now);
    bool is_due = timetable_due(t, at) <= now;
    *next = is_due ? timetable_next(t, at) : at;
    return is_due ? at : 0;
}

static bool is_alarm(const turn *t) {
    return !t->f.paused && timetable_due(&t->f.times, t->f.next_ms) <= t->now_ms;
}

/* Times that were missed are made up for one after the other. */
static bool must_hold(const turn *t) {
    const schedule_form *f = &t->f;
    return f->catch_up == HD_CATCH_UP_ALL && f->overlap != HD_OVERLAP_ALLOW &&
           timetable_due(&f->times, f->next_ms) < t->s->e->risen_ms &&
           schedule_read_running(t->s->e, f->running);
}

static bool may_start_waiting(const turn *t) {
    return t->f.waiting_ms && !t->f.paused && !schedule_read_running(t->s->e, t->f.running);
}

/* One thing at a time; when it is stored, the document is looked at again. */
static void take_turn(turn *t) {
    uint64_t next;
    if (t->f.trigger_ms) {
        start_trigger(t);
    } else if (may_start_waiting(t)) {
        put_ms(t, "waiting", 0);
        start(t, t->f.waiting_ms);
    } else if (is_alarm(t)) {
        uint64_t at = choose(&t->f, t->now_ms, &next);
        put_ms(t, "next", next);
        if (at) start_or_not(t, at);
    }
}

/* ---- the transaction */

static void note_started(hd_engine *e, const char *id) {
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    if (doc) inbox_note(e, doc);
    else e->overheard = true;
    if (doc) place_unref(&e->rt->r.places, doc);
}

/* In a pump. Refused: the document has been changed meanwhile. */
static void verdict(hd_status status, void *ctx) {
    schedule *s = ctx;
    hd_engine *e = s->e;
    assert(s->asked && e->schedule_asks);
    s->asked = false;
    e->schedule_asks--;
    if (s->gone) {
        free_schedule(s);
        engine_free_orphan(e);
        return;
    }
    look_later(s);
    if (status) return;
    if (s->started[0]) note_started(e, s->started);
    if (s->cancels) e->overheard = true; /* the listener does not hear of our own commits */
}

static hd_status store_turn(schedule *s) {
    hd_error error;
    turn t = { .s = s, .now_ms = env_wall_ms(s->e->env) };
    assert(!s->asked && !s->gone && s->e->active);
    s->started[0] = 0;
    s->cancels = false;
    t.status = engine_begin(s->e, &t.tx);
    if (t.status) return t.status;
    t.doc = hd_tx_get(t.tx, (hd_cell){ s->doc });
    t.status = engine_fence(t.tx, shard_of(s->e, s->name));
    if (!t.status) t.status = schedule_read(s->e, s->name, t.doc, &t.f, &error);
    if (!t.status) take_turn(&t);
    if (t.status) {
        hd_tx_abort(t.tx);
        return t.status;
    }
    s->asked = true;
    s->e->schedule_asks++;
    hd_status status = hd_tx_commit(t.tx, verdict, s);
    if (!status) return HD_OK;
    s->asked = false;
    s->e->schedule_asks--;
    return status;
}

/* ---- looking */

static hd_status set_alarm(schedule *s, const schedule_form *f, bool hold) {
    hd_engine *e = s->e;
    uint64_t due = f->paused || hold ? TIMETABLE_NEVER : timetable_due(&f->times, f->next_ms);
    if (binheap_linked(&s->timer)) binheap_remove(&e->alarms, &s->timer);
    engine_free_text(e, s->awaits);
    list_discard(&s->wait);
    s->awaits = f->waiting_ms || hold ? engine_text(e, f->running) : NULL;
    if ((f->waiting_ms || hold) && !s->awaits) return HD_NOMEM;
    if (s->awaits) list_push_back(&e->awaiting, &s->wait);
    return due == TIMETABLE_NEVER ? HD_OK : binheap_push(&e->alarms, &s->timer, due);
}

static hd_status look_with(schedule *s, hd_pool *pool) {
    hd_error error = { 0 };
    turn t = { .s = s, .now_ms = env_wall_ms(s->e->env) };
    hd_value doc = hd_read(s->e->rt, pool, (hd_cell){ s->doc });
    if (!hd_value_status(doc) && !hd_value_exists(doc)) return forget(s), HD_OK;
    hd_status status = schedule_read(s->e, s->name, doc, &t.f, &error);
    if (engine_may_pass(status)) return status;
    if (status) {
        env_log(s->e->env, HD_LOG_ERROR, "schedule %s cannot be used: %s", s->name, error.message);
        return HD_OK;
    }
    bool due = is_alarm(&t), hold = due && must_hold(&t);
    if (t.f.trigger_ms || (due && !hold) || may_start_waiting(&t)) return store_turn(s);
    return set_alarm(s, &t.f, hold);
}

/* What could not be done for now is tried again in the next pump. */
static void look(schedule *s) {
    hd_engine *e = s->e;
    hd_pool *pool;
    if (s->asked) return; /* its verdict looks again */
    hd_status status = hd_pool_open(e->heap, &pool);
    if (!status) {
        status = look_with(s, pool);
        hd_pool_close(pool);
    }
    if (!status) return;
    look_later(s);
    engine_starve(e, status);
}

bool schedule_work(hd_engine *e) {
    uint64_t now = env_wall_ms(e->env);
    for (binheap_item *first; (first = binheap_peek(&e->alarms)) && first->key <= now;) {
        binheap_remove(&e->alarms, first);
        look_later(BINHEAP_ENTRY(first, schedule, timer));
    }
    size_t all = list_count(&e->to_schedule);
    for (size_t i = 0; i < all && !list_empty(&e->to_schedule); i++)
        look(LIST_ENTRY(list_pop_front(&e->to_schedule), schedule, look));
    return all > 0;
}

/* The instance has left the memory: a time may have waited for that. */
void schedule_ended(hd_engine *e, const char *id) {
    LIST_FOR (n, &e->awaiting) {
        schedule *s = LIST_ENTRY(n, schedule, wait);
        if (!strcmp(s->awaits, id)) look_later(s);
    }
}

uint64_t schedule_deadline(const hd_engine *e) {
    const binheap_item *first = binheap_peek(&e->alarms);
    if (!list_empty(&e->to_schedule)) return 0;
    if (!first) return UINT64_MAX;
    uint64_t now = env_wall_ms(e->env);
    return first->key <= now ? 0 : env_ns_at(e->env, now, first->key);
}

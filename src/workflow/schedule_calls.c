/* schedule_calls.c -- what programs say about schedules. Each call is a transaction on the schedule's document; the
 * active engine hears of it. */
#include "workflow/schedule.h"

#include "base/env.h"
#include <math.h>
#include <stdio.h>

#define TIMES_SHOWN 5

/* ---- from a struct to a document */

static hd_value with_text(hd_pool *pool, hd_value to, const char *key, const char *chars) {
    return chars && *chars ? hd_object_set(pool, to, key, hd_string(pool, chars)) : to;
}
static hd_value with_seconds(hd_pool *pool, hd_value to, const char *key, double s) {
    return s != 0 ? hd_object_set(pool, to, key, hd_double(s)) : to;
}
static hd_value with_ms(hd_pool *pool, hd_value to, const char *key, uint64_t ms) {
    return ms ? hd_object_set(pool, to, key, hd_int(pool, (int64_t)ms)) : to;
}

static hd_value document_of(hd_engine *e, hd_pool *pool, const hd_schedule *s) {
    static const char *const overlaps[] = { "skip", "queue", "allow", "cancel" };
    static const char *const catches[] = { "last", "all", "none" };
    uint64_t from = s->from_ms;
    if (!from && s->every_s > 0 && s->every_s < 1e12)
        from = env_wall_ms(e->env) + (uint64_t)llround(s->every_s * 1000);
    hd_value r = with_text(pool, hd_object(), "workflow", s->workflow);
    if (hd_value_kind(s->input) != HD_KIND_ABSENT) r = hd_object_set(pool, r, "input", s->input);
    r = with_text(pool, r, "cron", s->cron);
    if (s->cron) r = with_text(pool, r, "zone", s->zone ? s->zone : "UTC");
    r = with_seconds(pool, r, "every", s->every_s);
    r = with_ms(pool, r, "from", from);
    r = with_ms(pool, r, "until", s->until_ms);
    r = with_seconds(pool, r, "jitter", s->jitter_s);
    r = with_text(pool, r, "overlap", s->overlap <= HD_OVERLAP_CANCEL ? overlaps[s->overlap] : "?");
    r = with_text(pool, r, "catch_up",
                  s->catch_up <= HD_CATCH_UP_NONE ? catches[s->catch_up] : "?");
    r = with_seconds(pool, r, "window", s->window_s);
    if (s->priority) r = hd_object_set(pool, r, "priority", hd_int(pool, s->priority));
    return r;
}

/* ---- checking */

static hd_status refuse(hd_error *error, hd_status status, const char *format, const char *what) {
    env_error(error, status, format, what);
    return status;
}

static hd_status check_spans(const hd_schedule *s, hd_error *error) {
    const double spans[] = { s->every_s, s->jitter_s, s->window_s };
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (!(spans[i] >= 0 && spans[i] <= 1e10))
            return refuse(error, HD_USAGE, "%s is a number of seconds, from 0",
                          i == 0   ? "every_s"
                          : i == 1 ? "jitter_s"
                                   : "window_s");
    if (s->every_s > 0 && s->every_s < 0.001)
        return refuse(error, HD_USAGE, "%s is at least a millisecond (0.001)", "every_s");
    if (s->until_ms && s->until_ms <= s->from_ms)
        return refuse(error, HD_USAGE, "%s is after from_ms", "until_ms");
    if (s->zone && *s->zone && !(s->cron && *s->cron))
        return refuse(error, HD_USAGE, "%s belongs to cron fields", "zone");
    return HD_OK;
}

static hd_status check_workflow(hd_engine *e, hd_pool *pool, const hd_schedule *s,
                                hd_error *error) {
    plan *p;
    hd_status status = version_latest(e, s->workflow ? s->workflow : "", &p);
    if (engine_may_pass(status)) return status;
    if (status)
        return refuse(error, HD_NOT_FOUND, "no workflow \"%.200s\" is registered",
                      s->workflow ? s->workflow : "");
    status = hd_value_status(start_input(e, pool, p, s->input));
    if (status) refuse(error, status, "%.250s", hd_runtime_error(e->rt)->message);
    return status;
}

/* The document, checked, and what it says. */
static hd_status make(hd_engine *e, hd_pool *pool, const hd_schedule *s, hd_value *doc,
                      schedule_form *form, hd_error *error) {
    if (!schedule_name_is_good(s->name))
        return refuse(error, HD_USAGE,
                      "%s has 1 to 60 bytes of UTF-8, without '/', '@', '#' and control characters",
                      "the name of a schedule");
    if (!start_priority_is_good(s->priority))
        return refuse(error, HD_USAGE, "%s is from -1000 to 1000", "a priority");
    hd_status status = check_spans(s, error);
    if (status) return status;
    if (hd_value_status(s->input))
        return refuse(error, hd_value_status(s->input), "%s could not be made", "the input");
    *doc = document_of(e, pool, s);
    return schedule_read(e, s->name, *doc, form, error);
}

/* ---- writing */

/* One call, run again while the document changes under it. */
typedef struct wish {
    hd_engine *e;
    const char *name;
    place_id at;
    hd_value doc;    /* put: the new one */
    bool from_given; /* put: the caller says when it begins */
    schedule_form form;
    bool pause;
    uint64_t now_ms;
} wish;

static const char *const kept[] = { "running", "last",    "started", "skipped",
                                    "paused",  "waiting", "trigger" };

static hd_value with_kept(hd_pool *pool, hd_value to, hd_value before, const char *key) {
    hd_value v = hd_value_at(before, key);
    return hd_value_exists(v) ? hd_object_set(pool, to, key, v) : to;
}

/* Programs store their schedules at each start. If that began the times anew, an interval that is longer than a program
 * runs would never be over, and no missed time would be made up for. */
static bool has_same_times(const wish *c, hd_value before) {
    static const char *const keys[] = { "cron", "zone", "every", "until", "from" };
    size_t n = sizeof keys / sizeof *keys;
    bool any_from = c->form.times.every_ms && !c->from_given;
    for (size_t i = 0; i < n - any_from; i++)
        if (!hd_value_equal(hd_value_at(c->doc, keys[i]), hd_value_at(before, keys[i])))
            return false;
    return hd_value_exists(before);
}

static hd_status put_in(hd_tx *tx, void *ctx) {
    const wish *c = ctx;
    hd_pool *pool = hd_tx_pool(tx);
    hd_value before = hd_tx_get(tx, (hd_cell){ c->at }), doc = c->doc;
    hd_status status = hd_value_status(before);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        doc = with_kept(pool, doc, before, kept[i]);
    if (has_same_times(c, before)) {
        doc = with_kept(pool, doc, before, "from");
        doc = with_kept(pool, doc, before, "next");
    } else {
        uint64_t next = timetable_next(&c->form.times, c->now_ms);
        if (next != TIMETABLE_NEVER) doc = with_ms(pool, doc, "next", next);
    }
    if (!status) status = hd_tx_set(tx, (hd_cell){ c->at }, doc);
    return status ? status : hd_tx_set_kind(tx, (hd_cell){ c->at }, SCHEDULE_KIND);
}

/* The document must be there. */
static hd_status look_in(hd_tx *tx, const wish *c, hd_value *doc) {
    *doc = hd_tx_get(tx, (hd_cell){ c->at });
    if (hd_value_status(*doc)) return hd_value_status(*doc);
    return hd_value_exists(*doc) ? HD_OK : HD_NOT_FOUND;
}

static hd_status remove_in(hd_tx *tx, void *ctx) {
    const wish *c = ctx;
    hd_value doc;
    hd_status status = look_in(tx, c, &doc);
    return status ? status : hd_tx_remove(tx, (hd_cell){ c->at });
}

/* Times that came meanwhile are not made up for. */
static hd_status pause_in(hd_tx *tx, void *ctx) {
    const wish *c = ctx;
    hd_value doc;
    hd_pool *pool = hd_tx_pool(tx);
    schedule_form form;
    hd_status status = look_in(tx, c, &doc);
    if (!status) status = schedule_read(c->e, c->name, doc, &form, NULL);
    if (status || form.paused == c->pause) return status;
    doc = c->pause ? hd_object_set(pool, doc, "paused", hd_bool(true))
                   : hd_object_remove(pool, doc, "paused");
    uint64_t next = timetable_next(&form.times, c->now_ms);
    if (!c->pause && next != TIMETABLE_NEVER) doc = with_ms(pool, doc, "next", next);
    if (!c->pause && next == TIMETABLE_NEVER) doc = hd_object_remove(pool, doc, "next");
    return hd_tx_set(tx, (hd_cell){ c->at }, doc);
}

static hd_status trigger_in(hd_tx *tx, void *ctx) {
    const wish *c = ctx;
    hd_value doc;
    hd_pool *pool = hd_tx_pool(tx);
    hd_status status = look_in(tx, c, &doc);
    hd_cell at = hd_cell_child(c->e->rt, (hd_cell){ c->at }, "trigger");
    hd_value all = hd_value_at(doc, "trigger");
    if (!hd_value_exists(all)) all = hd_array();
    all = hd_array_append(pool, all, hd_int(pool, (int64_t)c->now_ms));
    return status ? status : hd_tx_set(tx, at, all);
}

static hd_status transact(wish *c, hd_tx_fn fn) {
    hd_engine *e = c->e;
    hd_status status = inbox_listen(e);
    c->now_ms = env_wall_ms(e->env);
    c->at = schedule_may_exist(c->name) ? engine_document(e, SCHEDULE_PREFIX, c->name) : 0;
    if (!status && !c->at) status = schedule_may_exist(c->name) ? HD_NOMEM : HD_NOT_FOUND;
    if (!status) status = hd_transact(e->rt, fn, c);
    if (c->at) place_unref(&e->rt->r.places, c->at);
    if (status == HD_NOT_FOUND)
        return runtime_fail(e->rt, status, "there is no schedule %.100s", c->name ? c->name : "");
    return status;
}

hd_status hd_schedule_put(hd_engine *e, const hd_schedule *schedule, hd_error *error) {
    wish c = { .e = e, .name = schedule->name, .from_given = schedule->from_ms != 0 };
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = make(e, pool, schedule, &c.doc, &c.form, error);
    if (!status) status = check_workflow(e, pool, schedule, error);
    if (!status) status = transact(&c, put_in);
    hd_pool_close(pool);
    return status;
}

hd_status hd_schedule_remove(hd_engine *e, const char *name) {
    return transact(&(wish){ .e = e, .name = name }, remove_in);
}
hd_status hd_schedule_pause(hd_engine *e, const char *name) {
    return transact(&(wish){ .e = e, .name = name, .pause = true }, pause_in);
}
hd_status hd_schedule_resume(hd_engine *e, const char *name) {
    return transact(&(wish){ .e = e, .name = name }, pause_in);
}
hd_status hd_schedule_trigger(hd_engine *e, const char *name) {
    return transact(&(wish){ .e = e, .name = name }, trigger_in);
}

/* ---- looking */

static size_t times_behind(const timetable *t, uint64_t after, uint64_t *out, size_t count) {
    size_t n = 0;
    for (; n < count; n++) {
        after = timetable_next(t, after);
        if (after == TIMETABLE_NEVER) break;
        out[n] = after;
    }
    return n;
}

hd_status hd_schedule_times(hd_engine *e, const hd_schedule *schedule, uint64_t after_ms,
                            uint64_t *times, size_t count, size_t *found, hd_error *error) {
    hd_pool *pool;
    hd_value doc;
    schedule_form form;
    *found = 0;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = make(e, pool, schedule, &doc, &form, error);
    if (!status) *found = times_behind(&form.times, after_ms, times, count);
    hd_pool_close(pool);
    return status;
}

static hd_value with_times(hd_pool *pool, hd_value to, const schedule_form *f) {
    uint64_t times[TIMES_SHOWN];
    hd_value all = hd_array();
    if (f->next_ms == TIMETABLE_NEVER) return to;
    size_t n = times_behind(&f->times, f->next_ms - 1, times, TIMES_SHOWN);
    for (size_t i = 0; i < n; i++)
        all = hd_array_append(pool, all, hd_int(pool, (int64_t)times[i]));
    to = with_ms(pool, to, "due", timetable_due(&f->times, f->next_ms));
    return hd_object_set(pool, to, "times", all);
}

/* What is to come, if it goes on now; and its instance while that runs. */
static hd_value as_of_now(hd_engine *e, hd_pool *pool, hd_value doc, schedule_form *f) {
    uint64_t now = env_wall_ms(e->env);
    if (f->paused && f->next_ms <= now) {
        f->next_ms = timetable_next(&f->times, now);
        doc = f->next_ms == TIMETABLE_NEVER ? hd_object_remove(pool, doc, "next")
                                            : with_ms(pool, doc, "next", f->next_ms);
    }
    return schedule_read_running(e, f->running) ? doc : hd_object_remove(pool, doc, "running");
}

hd_status hd_schedule_state(hd_engine *e, const char *name, hd_pool *pool, hd_value *out) {
    schedule_form form;
    hd_value doc =
        schedule_may_exist(name) ? engine_read(e, pool, SCHEDULE_PREFIX, name) : (hd_value){ 0 };
    *out = (hd_value){ 0 };
    if (hd_value_status(doc)) return hd_value_status(doc);
    if (!hd_value_exists(doc))
        return runtime_fail(e->rt, HD_NOT_FOUND, "there is no schedule %.100s", name);
    hd_status status = schedule_read(e, name, doc, &form, NULL);
    if (engine_may_pass(status)) return status;
    if (!status) doc = as_of_now(e, pool, doc, &form);
    *out = hd_object_set(pool, doc, "name", hd_string(pool, name));
    if (!status) *out = with_times(pool, *out, &form);
    return hd_value_status(*out);
}

typedef struct lister {
    hd_schedule_fn fn;
    void *ctx;
} lister;

static bool tell(const hd_listing *entry, void *ctx) {
    const lister *l = ctx;
    return l->fn(entry->id + strlen(SCHEDULE_PREFIX), l->ctx);
}

hd_status hd_schedule_list(hd_engine *e, hd_schedule_fn fn, void *ctx) {
    lister l = { fn, ctx };
    return hd_runtime_list(e->rt, e->space, SCHEDULE_KIND, SCHEDULE_PREFIX, tell, &l);
}

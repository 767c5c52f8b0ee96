/* look.c -- instances as others see them: lists, and what one does now.
 *
 * A list comes from the index of documents by kind ("workflow.<status>") and id, and costs what it shows. The
 * state of an instance is put together from its document; where the engine is active, from the instance in memory,
 * which knows in addition which steps a worker has. */
#include "workflow/engine.h"

#include "base/env.h"
#include "workflow/child_id.h"
#include "workflow/open_record.h"
#include "workflow/outline.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- listing */

#define KIND_PREFIX "workflow."

typedef struct looker {
    hd_engine *e;
    const hd_workflow_filter *f;
    hd_workflow_list_fn fn;
    void *ctx;
    uint32_t shown;
    hd_status status;
} looker;

/* Whether the instance was started within the time that is asked for. l->status says whether that could be read. */
static bool check_time(looker *l, const char *id) {
    hd_pool *pool;
    if (!l->f->since_ms && !l->f->until_ms) return true;
    l->status = hd_pool_open(l->e->heap, &pool);
    if (l->status) return false;
    hd_value doc = engine_read(l->e, pool, INSTANCE_PREFIX, id);
    uint64_t started = (uint64_t)hd_value_as_int(hd_value_at(doc, "started"), 0);
    hd_pool_close(pool);
    return started >= l->f->since_ms && (!l->f->until_ms || started < l->f->until_ms);
}

static bool show(const hd_listing *entry, void *ctx) {
    looker *l = ctx;
    if (entry->scope != HD_SCOPE_SPACE ||
        strncmp(entry->id, INSTANCE_PREFIX, strlen(INSTANCE_PREFIX)) != 0 ||
        strncmp(entry->kind, KIND_PREFIX, strlen(KIND_PREFIX)) != 0)
        return true;
    hd_workflow_entry e = { entry->id + strlen(INSTANCE_PREFIX),
                            entry->kind + strlen(KIND_PREFIX) };
    if (!check_time(l, e.id)) return !l->status;
    l->shown++;
    return l->fn(&e, l->ctx) && (!l->f->limit || l->shown < l->f->limit);
}

static bool is_status(const char *word) {
    static const char *const words[] = { "queued", "running",   "paused", "done",
                                         "failed", "cancelled", "stalled" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], word)) return true;
    return false;
}

hd_status hd_workflow_list(hd_engine *e, const hd_workflow_filter *filter, hd_workflow_list_fn fn,
                           void *ctx) {
    static const hd_workflow_filter all;
    looker l = { .e = e, .f = filter ? filter : &all, .fn = fn, .ctx = ctx };
    char kind[64], prefix[HD_INSTANCE_ID_SIZE + 32], after[HD_INSTANCE_ID_SIZE + 32];
    if (l.f->status && !is_status(l.f->status))
        return runtime_fail(e->rt, HD_USAGE, "no instance has the status \"%.60s\"", l.f->status);
    snprintf(kind, sizeof kind, KIND_PREFIX "%s", l.f->status ? l.f->status : "");
    snprintf(prefix, sizeof prefix, INSTANCE_PREFIX "%s%s", l.f->name ? l.f->name : "",
             l.f->name ? "/" : "");
    snprintf(after, sizeof after, INSTANCE_PREFIX "%s", l.f->after ? l.f->after : "");
    hd_status status =
        hd_runtime_list_after(e->rt, e->space, l.f->status ? kind : NULL, prefix, after, show, &l);
    return status ? status : l.status;
}

/* ---- steps */

#define STEPS_SHOWN 1000

/* A step that waits, from a strand or from the document. */
typedef struct step_view {
    const plan_node *n;
    const char *state;
    uint32_t number, step, attempt, lost;
    uint64_t since_ms, due_ms;
    uint64_t tag; /* of its child's id */
    const fan *fan;
    hd_value why;    /* borrowed; absent: no attempt has failed */
    const strand *s; /* NULL: from the document */
} step_view;

typedef struct stater {
    const hd_engine *e;
    const char *id; /* of the instance */
    hd_pool *pool;
    hd_value steps;
    uint32_t more; /* that are not shown */
} stater;

static hd_value with_number(hd_pool *pool, hd_value to, const char *key, uint64_t n) {
    return n ? hd_object_set(pool, to, key, hd_int(pool, (int64_t)n)) : to;
}

static hd_value with_text(hd_pool *pool, hd_value to, const char *key, const char *chars) {
    return chars && *chars ? hd_object_set(pool, to, key, hd_string(pool, chars)) : to;
}

/* The queue that the step waits in, if it has a name, and how much room it has. */
static hd_value with_queue(hd_pool *pool, hd_value to, const strand *s) {
    const line *l = s->queue ? s->queue->line : NULL;
    if (!l || !*l->name) return to;
    hd_value q = with_text(pool, hd_object(), "name", l->name);
    q = with_number(pool, q, "most", l->most);
    q = hd_object_set(pool, q, "running", hd_int(pool, l->running));
    if (l->paused) q = hd_object_set(pool, q, "paused", hd_bool(true));
    return hd_object_set(pool, to, "queue", q);
}

static hd_value with_limit(hd_pool *pool, hd_value to, const strand *s) {
    const limit *l = s->queue ? NULL : s->limited_by;
    if (!l || s->state != STRAND_READY) return to;
    hd_value r = with_text(pool, hd_object(), "key", l->key);
    r = with_number(pool, r, "most", strand_node(s)->limit_most);
    return hd_object_set(pool, to, "limit",
                         hd_object_set(pool, r, "running", hd_int(pool, l->held)));
}

/* What a step that waits for a cell (heddle/join.h) waits for. */
static hd_value with_cell(hd_pool *pool, hd_value to, const strand *s) {
    static const char *const keys[] = { "cell", "until" };
    if (strcmp(strand_node(s)->name ? strand_node(s)->name : "", "heddle.wait") != 0) return to;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        hd_value v = hd_value_at(s->args, keys[i]);
        if (hd_value_exists(v)) to = hd_object_set(pool, to, keys[i], v);
    }
    return to;
}

/* The instance that the step waits for. */
static hd_value with_child(const stater *s, hd_value to, const step_view *v) {
    char id[HD_INSTANCE_ID_SIZE];
    child_step step = { .parent = s->id,
                        .workflow = v->n->name,
                        .strand = v->number,
                        .step = v->step,
                        .tag = v->tag,
                        .in_shards = s->e->shard_count > 1 };
    if (v->n->kind != NODE_CHILD || (v->s && !v->s->child_begun)) return to;
    child_id(&step, id);
    return hd_object_set(s->pool, to, "child", hd_string(s->pool, id));
}

static void add_step(stater *s, const step_view *v) {
    hd_pool *pool = s->pool;
    const char *word = v->n->kind == NODE_WAIT    ? "signal"
                       : v->n->kind == NODE_CHILD ? "workflow"
                                                  : "action";
    if (hd_value_count(s->steps) >= STEPS_SHOWN) {
        s->more++;
        return;
    }
    hd_value r =
        hd_object_set(pool, hd_object(), "step", hd_string_f(pool, "%u.%u", v->number, v->step));
    r = with_text(pool, r, "node", v->n->id);
    r = with_text(pool, r, "kind", node_kind_name(v->n->kind));
    r = with_text(pool, r, "at", v->n->at);
    r = with_text(pool, r, word, v->n->name);
    r = with_child(s, r, v);
    r = with_text(pool, r, "state", v->state);
    r = with_number(pool, r, "since", v->since_ms);
    r = with_number(pool, r, "due", v->due_ms);
    r = with_number(pool, r, "attempt", v->attempt);
    r = with_number(pool, r, "lost", v->lost);
    if (hd_value_exists(v->why)) r = hd_object_set(pool, r, "why", v->why);
    if (v->s) r = with_cell(pool, with_limit(pool, with_queue(pool, r, v->s), v->s), v->s);
    hd_value process = v->s ? away_where(pool, v->s) : (hd_value){ 0 };
    if (hd_value_exists(process)) r = hd_object_set(pool, r, "process", process);
    if (v->fan) {
        hd_value count = hd_object_set(pool, hd_object(), "done", hd_int(pool, v->fan->done));
        count = hd_object_set(pool, count, "total", hd_int(pool, v->fan->total));
        r = hd_object_set(pool, r, "fan", count);
    }
    s->steps = hd_array_append(pool, s->steps, r);
}

static const char *state_of(const hd_engine *e, const strand *s) {
    switch (s->state) {
    case STRAND_READY:
        if (s->in->status == INSTANCE_PAUSED) return "paused";
        if (s->limited_by && !s->queue) return "limited";
        return task_is_served(e, s) ? "queued" : "no worker";
    case STRAND_RUNNING: return "running";
    case STRAND_BACKOFF: return "retrying";
    case STRAND_SLEEPING: return "sleeping";
    case STRAND_SIGNAL: return "waiting";
    case STRAND_CHILD: return "child";
    default: return "branches";
    }
}

static void add_strand(stater *to, const hd_engine *e, const strand *s) {
    bool is_action = strand_node(s)->kind == NODE_ACTION;
    step_view v = { .n = strand_node(s),
                    .state = state_of(e, s),
                    .number = s->number,
                    .step = s->step,
                    .attempt = is_action ? s->attempt : 0,
                    .lost = s->lost,
                    .since_ms = s->since_ms,
                    .due_ms = s->due_ms,
                    .tag = s->child_tag,
                    .fan = s->waits_for,
                    .why = s->why,
                    .s = s };
    add_step(to, &v);
}

static void add_live(stater *to, const live *l) {
    LIST_FOR (n, &l->in->strands) {
        const strand *s = LIST_ENTRY(n, strand, link);
        if (s->state != STRAND_ENDED) add_strand(to, l->e, s);
    }
}

/* ---- from the document alone */

static const plan_node *node_of(const plan *p, hd_value doc, hd_value open) {
    uint32_t fn = outline_function_of(p, doc, open_record_place(open));
    if (fn == PLAN_NONE) return NULL;
    uint32_t node = plan_find_node(&p->functions[fn], open_record_node(open));
    return node == PLAN_NONE ? NULL : &p->functions[fn].nodes[node];
}

static const char *stored_state(const plan_node *n, bool due, bool paused) {
    switch (n->kind) {
    case NODE_ACTION: return due ? "retrying" : paused ? "paused" : "queued";
    case NODE_SLEEP: return "sleeping";
    case NODE_WAIT: return "waiting";
    case NODE_CHILD: return "child";
    default: return "branches";
    }
}

static void add_stored(stater *to, const plan *p, hd_value doc) {
    bool paused = !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "paused");
    for (hd_iter it = hd_iter_of(hd_value_at(doc, "open")); hd_iter_next(&it);) {
        const plan_node *n = node_of(p, doc, it.value);
        if (!n) continue;
        uint64_t due = open_record_number(it.value, "due");
        step_view v = { .n = n,
                        .state = stored_state(n, due != 0, paused),
                        .number = (uint32_t)strtoul(it.key, NULL, 10),
                        .step = (uint32_t)open_record_number(it.value, "step"),
                        .lost = (uint32_t)open_record_number(it.value, "lost"),
                        .since_ms = open_record_since(doc, it.value),
                        .due_ms = due,
                        .tag = open_record_number(it.value, "tag"),
                        .why = open_record_at(it.value, "why") };
        if (n->kind == NODE_ACTION)
            v.attempt = (uint32_t)hd_value_as_int(open_record_at(it.value, "attempt"), 1);
        add_step(to, &v);
    }
}

/* ---- the whole */

static hd_value head_of(hd_pool *pool, const char *id, hd_value doc) {
    static const char *const keys[] = { "workflow", "version", "status",   "priority",
                                        "parent",   "started", "finished", "input",
                                        "result",   "error",   "failed_at" };
    hd_value r = hd_object_set(pool, hd_object(), "id", hd_string(pool, id));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        hd_value v = hd_value_at(doc, keys[i]);
        if (hd_value_exists(v)) r = hd_object_set(pool, r, keys[i], v);
    }
    return r;
}

hd_status hd_workflow_state(hd_engine *e, const char *id, hd_pool *pool, hd_value *out) {
    stater s = { .e = e, .id = id, .pool = pool, .steps = hd_array() };
    hd_value doc = engine_read(e, pool, INSTANCE_PREFIX, id);
    const live *l = live_find(e, id);
    *out = (hd_value){ 0 };
    if (hd_value_status(doc)) return hd_value_status(doc);
    if (!hd_value_exists(doc) && l) doc = l->record;
    if (!hd_value_exists(doc))
        return runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s", id);
    plan *p;
    (void)version_plan(e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (l && l->in && !instance_is_over(l->in)) add_live(&s, l);
    else if (p && !control_is_over(doc)) add_stored(&s, p, doc);
    hd_value r = head_of(pool, id, doc);
    if (hd_value_count(s.steps)) r = hd_object_set(pool, r, "steps", s.steps);
    *out = with_number(pool, r, "more", s.more);
    return hd_value_status(*out);
}

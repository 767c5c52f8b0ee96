/* save.c -- what a walk has changed, as operations on the instance's document.
 *
 * The order is: objects that have changed, then variables, loops, arrivals, fans and strands, which may
 * name new objects; the content of those; and last what is gone. Each is written if it is marked, and the
 * marks are cleared. */
#include "workflow/save.h"

#include "expr/dict.h"
#include "expr/encode.h"
#include <stdio.h>

#define PATH_MAX_LENGTH 8

typedef struct saver {
    instance *in;
    const doc_writer *out;
    hd_pool *pool;
    hd_status status; /* the first failure */
    const char *path[PATH_MAX_LENGTH];
    uint32_t length;
    VEC(ev) fresh;       /* objects that have been given a number in this save */
    VEC(uint32_t) whole; /* numbers of objects whose content has been written */
} saver;

typedef struct number_text {
    char chars[12];
} number_text;

static number_text text_of(uint32_t number) {
    number_text t;
    snprintf(t.chars, sizeof t.chars, "%u", number);
    return t;
}

/* ---- writing */

/* The parts of the document that an instance has until it is over. */
static const char *const parts[] = { "vars",  "loops", "ready",   "open",
                                     "calls", "fans",  "objects", "next" };
enum { PARTS = sizeof parts / sizeof *parts };

static void note_part(instance *in, const char *key) {
    for (uint32_t i = 0; i < PARTS; i++)
        if (!strcmp(parts[i], key)) in->parts |= (uint8_t)(1u << i);
}

static void put(saver *s, doc_op op, hd_value value) {
    if (!s->status && op != DOC_REMOVE) s->status = hd_value_status(value);
    if (!s->status) s->status = s->out->write(s->out->ctx, op, s->path, s->length, value);
    if (op != DOC_REMOVE) note_part(s->in, s->path[0]);
}

/* The path for a while. */
static void push(saver *s, const char *key) {
    assert(s->length < PATH_MAX_LENGTH);
    s->path[s->length++] = key;
}
static void pop(saver *s, uint32_t keys) {
    assert(s->length >= keys);
    s->length -= keys;
}

static void put_at(saver *s, const char *key, hd_value value) {
    push(s, key);
    bool failed =
        hd_value_status(value) != HD_OK; /* put takes the status: nothing is removed for it */
    put(s, hd_value_exists(value) || failed ? DOC_SET : DOC_REMOVE, value);
    pop(s, 1);
}

/* ---- objects */

/* Called for each object that something stored refers to. */
static uint32_t number_of(void *ctx, world *w, ev object) {
    saver *s = ctx;
    (void)w;
    uint32_t number = world_number(object);
    if (number) return number;
    number = ++s->in->objects;
    if (!vec_push(s->in->env, &s->fresh, object)) s->status = HD_NOMEM;
    world_track(object, number);
    return number;
}

static hd_value slot(saver *s, ev v) {
    hd_value stored = encode_slot(s->in->w, s->pool, v, number_of, s);
    if (!hd_value_exists(stored) && !s->status)
        s->status = s->in->w->status ? s->in->w->status : HD_FAILED;
    return stored;
}

static void put_object(saver *s, ev object) {
    number_text n = text_of(world_number(object));
    if (!vec_push(s->in->env, &s->whole, world_number(object))) s->status = HD_NOMEM;
    push(s, n.chars);
    put(s, DOC_SET, encode_object(s->in->w, s->pool, object, number_of, s));
    pop(s, 1);
}

static bool is_written(const saver *s, uint32_t number) {
    for (uint32_t i = 0; i < s->whole.count; i++)
        if (s->whole.items[i] == number) return true;
    return false;
}

/* A small change is a small operation; after any other, the content is written once. */
static void save_change(saver *s, const change *c) {
    number_text n = text_of(world_number(c->object)), index = text_of(c->index);
    if (is_written(s, world_number(c->object))) return;
    bool is_list = c->object.kind == EV_LIST;
    if (is_list && (c->op == CHANGE_APPEND || c->op == CHANGE_SET)) {
        push(s, n.chars);
        if (c->op == CHANGE_SET) push(s, index.chars);
        put(s, c->op == CHANGE_SET ? DOC_SET : DOC_APPEND, slot(s, c->value));
        pop(s, c->op == CHANGE_SET ? 2 : 1);
    } else {
        put_object(s, c->object);
    }
}

static void save_changes(saver *s) {
    push(s, "objects");
    for (uint32_t i = 0; i < s->in->changes.count && !s->status; i++)
        save_change(s, &s->in->changes.items[i]);
    pop(s, 1);
    instance_forget_changes(s->in);
}

/* Writing one may number further ones. */
static void save_fresh(saver *s) {
    push(s, "objects");
    for (uint32_t i = 0; i < s->fresh.count && !s->status; i++) put_object(s, s->fresh.items[i]);
    pop(s, 1);
}

static void save_freed(saver *s) {
    push(s, "objects");
    for (uint32_t i = 0; i < s->in->freed.count; i++)
        put_at(s, text_of(s->in->freed.items[i]).chars, (hd_value){ 0 });
    pop(s, 1);
    vec_clear(&s->in->freed);
}

/* ---- activations */

/* Where an activation's part of the document is. */
typedef struct where {
    number_text a, b;
    uint32_t keys;
} where;

static void push_where(saver *s, const activation *a, where *w) {
    w->keys = 0;
    if (!a->caller) return;
    w->a = text_of(a->fan ? a->fan->number : a->number);
    w->b = text_of(a->index);
    push(s, a->fan ? "fans" : "calls");
    push(s, w->a.chars);
    w->keys = 2;
    if (!a->fan) return;
    push(s, "branches");
    push(s, w->b.chars);
    w->keys = 4;
}

/* {"call": n}, or {"fan": n, "index": i}; the first activation is not named. */
static hd_value with_place(saver *s, hd_value record, const activation *a) {
    if (!a->caller) return record;
    if (!a->fan) return hd_object_set(s->pool, record, "call", hd_int(s->pool, a->number));
    record = hd_object_set(s->pool, record, "fan", hd_int(s->pool, a->fan->number));
    return hd_object_set(s->pool, record, "index", hd_int(s->pool, a->index));
}

static void save_variables(saver *s, activation *a) {
    const scope *names = a->vars->names;
    push(s, "vars");
    for (uint32_t v = 0; v < names->names.count; v++) {
        if (!a->vars->changed.items[v]) continue;
        a->vars->changed.items[v] = 0;
        a->own[v] = 1;
        if (v == activation_function(a)->result) continue; /* used within one node */
        ev value = a->vars->slots.items[v];
        put_at(s, names->names.items[v],
               value.kind == EV_UNBOUND ? (hd_value){ 0 } : slot(s, value));
    }
    pop(s, 1);
}

static hd_value loop_record(saver *s, const loop_state *l) {
    hd_value r = hd_object_set(s->pool, hd_object(), "visit", hd_int(s->pool, (int64_t)l->visit));
    r = hd_object_set(s->pool, r, "over", slot(s, l->over));
    if (l->source.kind == EV_UNBOUND) return r;
    r = hd_object_set(s->pool, r, "source", slot(s, l->source));
    return hd_object_set(s->pool, r, "size", hd_int(s->pool, l->size));
}

/* What is iterated over is written when the loop is entered; after that its visit alone. */
static void save_loop(saver *s, const plan_function *f, loop_state *l) {
    push(s, f->nodes[l->node].id);
    if (l->ended) {
        if (l->stored) put(s, DOC_REMOVE, (hd_value){ 0 });
    } else if (l->entered || !l->stored) {
        put(s, DOC_SET, loop_record(s, l));
    } else {
        put_at(s, "visit", hd_int(s->pool, (int64_t)l->visit));
    }
    pop(s, 1);
    l->stored = !l->ended;
    l->entered = l->changed = false;
}

static void save_loops(saver *s, activation *a) {
    push(s, "loops");
    for (uint32_t i = a->loops.count; i-- > 0;) {
        loop_state *l = &a->loops.items[i];
        if (l->changed) save_loop(s, activation_function(a), l);
        if (l->ended) vec_swap_remove(&a->loops, i);
    }
    pop(s, 1);
}

static void save_ready(saver *s, activation *a) {
    push(s, "ready");
    for (uint32_t i = a->ready.count; i-- > 0;) {
        arrivals *r = &a->ready.items[i];
        const char *id = activation_function(a)->nodes[r->node].id;
        if (r->changed && (r->satisfied || r->stored))
            put_at(s, id, r->satisfied ? hd_int(s->pool, r->satisfied) : (hd_value){ 0 });
        r->stored = r->satisfied != 0;
        r->changed = false;
        if (!r->satisfied) vec_swap_remove(&a->ready, i);
    }
    pop(s, 1);
}

static bool is_news(const activation *a) {
    for (uint32_t i = 0; i < a->loops.count; i++)
        if (a->loops.items[i].changed) return true;
    for (uint32_t i = 0; i < a->ready.count; i++)
        if (a->ready.items[i].changed) return true;
    return memchr(a->vars->changed.items, 1, a->vars->changed.count) != NULL;
}

/* A called activation has a record; a branch, and the first, only what differs from how they begin. */
static void save_record(saver *s, activation *a) {
    const plan_function *f = activation_function(a);
    if (a->stored || !a->caller || a->fan) return;
    hd_value r = hd_object_set(s->pool, hd_object(), "function", hd_string(s->pool, f->name));
    const char *node = activation_function(a->caller)->nodes[a->call_node].id;
    r = hd_object_set(s->pool, r, "node", hd_string(s->pool, node));
    r = hd_object_set(s->pool, r, "caller", with_place(s, hd_object(), a->caller));
    put(s, DOC_SET, r);
}

static void save_activation(saver *s, activation *a) {
    where w;
    push_where(s, a, &w);
    if (a->ended) {
        if (a->stored && a->caller && !(a->fan && a->fan->ended))
            put(s, DOC_REMOVE, (hd_value){ 0 });
    } else if (is_news(a) || (!a->stored && a->caller && !a->fan)) {
        save_record(s, a);
        save_variables(s, a);
        save_loops(s, a);
        save_ready(s, a);
        a->stored = true;
    }
    pop(s, w.keys);
}

/* ---- fans */

static hd_value fan_record(saver *s, const fan *f) {
    const plan_function *fn = activation_function(f->a);
    hd_value r =
        hd_object_set(s->pool, hd_object(), "node", hd_string(s->pool, fn->nodes[f->node].id));
    r = hd_object_set(s->pool, r, "in", with_place(s, hd_object(), f->a));
    if (f->items.kind != EV_UNBOUND) r = hd_object_set(s->pool, r, "items", slot(s, f->items));
    if (f->waiter) r = hd_object_set(s->pool, r, "strand", hd_int(s->pool, f->waiter->number));
    return r;
}

static void save_results(saver *s, fan *f) {
    push(s, "results");
    for (uint32_t i = 0; i < f->arrived.count && !s->status; i++) {
        const dict_entry *e = dict_find(s->in->w, f->results.dict, ev_int(f->arrived.items[i]));
        assert(e);
        put_at(s, text_of(f->arrived.items[i]).chars, slot(s, e->value));
    }
    pop(s, 1);
    vec_clear(&f->arrived);
}

static void save_fan(saver *s, fan *f) {
    number_text n = text_of(f->number);
    if (f->ended && !f->stored) return;
    push(s, "fans");
    push(s, n.chars);
    if (f->ended) {
        put(s, DOC_REMOVE, (hd_value){ 0 });
    } else {
        if (!f->stored) put(s, DOC_SET, fan_record(s, f));
        else if (!f->waiter) put_at(s, "strand", (hd_value){ 0 });
        save_results(s, f);
        if (f->failed != PLAN_NONE) put_at(s, "failed", hd_int(s->pool, f->failed));
        if (f->cancelled) put_at(s, "cancelled", hd_bool(true));
    }
    pop(s, 2);
    f->stored = !f->ended;
}

/* ---- strands */

static hd_value strand_record(saver *s, const strand *t) {
    const plan_node *n = strand_node(t);
    hd_value r = hd_object_set(s->pool, hd_object(), "node", hd_string(s->pool, n->id));
    r = hd_object_set(s->pool, r, "step", hd_int(s->pool, t->step));
    r = hd_object_set(s->pool, r, "since", hd_int(s->pool, (int64_t)t->since_ms));
    r = with_place(s, r, t->a);
    if (t->attempt > 1) r = hd_object_set(s->pool, r, "attempt", hd_int(s->pool, t->attempt));
    if (t->lost) r = hd_object_set(s->pool, r, "lost", hd_int(s->pool, t->lost));
    if (t->due_ms) r = hd_object_set(s->pool, r, "due", hd_int(s->pool, (int64_t)t->due_ms));
    if (hd_value_exists(t->limit)) r = hd_object_set(s->pool, r, "limit", t->limit);
    if (t->cancelled) r = hd_object_set(s->pool, r, "cancelled", hd_bool(true));
    /* With one strand nothing can change before a restart what the arguments are computed from. */
    if (hd_value_exists(t->args) && s->in->strand_count > 1)
        r = hd_object_set(s->pool, r, "args", t->args);
    return r;
}

static void save_strand(saver *s, strand *t) {
    if (t->state == STRAND_ENDED && !t->stored) return;
    number_text n = text_of(t->number);
    push(s, "open");
    put_at(s, n.chars, t->state == STRAND_ENDED ? (hd_value){ 0 } : strand_record(s, t));
    pop(s, 1);
    t->stored = t->state != STRAND_ENDED;
    if (t->stored && !list_linked(&t->unqueued)) list_push_back(&s->in->unqueued, &t->unqueued);
}

/* ---- the whole */

static const char *const status_names[] = { "running", "paused",    "done",
                                            "failed",  "cancelled", "stalled" };

const char *instance_status_name(instance_status status) { return status_names[status]; }

static void save_open(saver *s) {
    instance *in = s->in;
    save_changes(s);
    LIST_FOR (n, &in->news.fans) save_fan(s, LIST_ENTRY(n, fan, news));
    LIST_FOR (n, &in->news.activations) save_activation(s, LIST_ENTRY(n, activation, news));
    LIST_FOR (n, &in->news.strands) save_strand(s, LIST_ENTRY(n, strand, news));
    save_fresh(s);
    if (in->number_changed) put_at(s, "next", hd_int(s->pool, in->next_number));
    in->number_changed = false;
}

/* An instance that did not come to its end keeps the variables of its first function, so that it can be run again from
 * one of its nodes. */
static void save_last_variables(saver *s) {
    activation *root = s->in->root;
    save_changes(s);
    save_variables(s, root);
    save_loops(s, root);
    save_fresh(s);
}

/* Numbers are never used again, also not by a rerun. */
static bool is_kept(const char *part, bool variables) {
    if (!strcmp(part, "next")) return true;
    return variables &&
           (!strcmp(part, "vars") || !strcmp(part, "loops") || !strcmp(part, "objects"));
}

static void save_over(saver *s) {
    instance *in = s->in;
    bool variables = in->status != INSTANCE_DONE && in->root;
    if (variables) save_last_variables(s);
    for (uint32_t i = 0; i < PARTS; i++)
        if (in->parts >> i & 1 && !is_kept(parts[i], variables))
            put_at(s, parts[i], (hd_value){ 0 });
    if (in->number_changed) put_at(s, "next", hd_int(s->pool, in->next_number));
    in->number_changed = false;
    instance_forget_changes(in);
    if (in->status == INSTANCE_STALLED) return;
    hd_value v = encode_value(in->w, s->pool, in->result);
    put_at(s, in->status == INSTANCE_DONE ? "result" : "error", v);
}

hd_status instance_save(instance *in, const doc_writer *out) {
    saver s = { .in = in, .out = out };
    s.status = hd_pool_open(in->heap, &s.pool);
    if (s.status) return s.status;
    instance_enter(in);
    if (instance_is_over(in)) save_over(&s);
    else save_open(&s);
    instance_sweep(in); /* objects that nothing refers to any more are noted in `freed` */
    if (instance_is_over(in)) vec_clear(&in->freed);
    else save_freed(&s);
    if (in->status_changed)
        put_at(&s, "status", hd_string(s.pool, instance_status_name(in->status)));
    in->status_changed = false;
    vec_fini(in->env, &s.fresh);
    vec_fini(in->env, &s.whole);
    hd_pool_close(s.pool);
    hd_status left = instance_leave(in);
    assert(!in->changes.count);
    return s.status ? s.status : left;
}

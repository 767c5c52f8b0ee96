/* save.c -- what a walk has changed, as operations on the instance's document.
 *
 * The order is: objects that have changed, then variables, loops, arrivals, fans and strands, which may
 * name new objects; the content of those; and last what is gone. Each is written if it is marked, and the
 * marks are cleared. */
#include "workflow/save.h"

#include "base/table.h"
#include "expr/dict.h"
#include "expr/encode.h"
#include "expr/text.h"
#include "value/number.h"

#define PATH_MAX_LENGTH 8

typedef struct saver {
    instance *in;
    const doc_writer *out;
    hd_pool *pool;
    hd_status status; /* the first failure */
    const char *path[PATH_MAX_LENGTH];
    uint32_t length;
    uint8_t part;  /* the bit of instance.parts that the path begins with; 0: it is no part */
    VEC(ev) fresh; /* objects that have been given a number in this save */
    table whole;   /* of the numbers of objects whose content has been written */
} saver;

typedef struct number_text {
    char chars[NUMBER_TEXT_MAX];
} number_text;

static number_text text_of(uint32_t of) {
    number_text t;
    t.chars[number_print_int(of, t.chars)] = 0;
    return t;
}

/* ---- writing */

/* The parts of the document that an instance has until it is over. */
typedef enum document_part {
    PART_VARS,
    PART_LOOPS,
    PART_READY,
    PART_OPEN,
    PART_CALLS,
    PART_FANS,
    PART_OBJECTS,
    PART_NEXT,
    PARTS
} document_part;
static const char *const parts[PARTS] = { "vars",  "loops", "ready",   "open",
                                          "calls", "fans",  "objects", "next" };

static void put(saver *s, doc_op op, hd_value value) {
    if (!s->status && op != DOC_REMOVE) s->status = hd_value_status(value);
    if (!s->status) s->status = s->out->write(s->out->ctx, op, s->path, s->length, value);
    if (op != DOC_REMOVE) s->in->parts |= s->part;
}

/* The path for a while. */
static void push(saver *s, const char *key) {
    assert(s->length < PATH_MAX_LENGTH);
    if (!s->length) s->part = 0;
    s->path[s->length++] = key;
}
static void push_part(saver *s, document_part of) {
    bool first = !s->length;
    push(s, parts[of]);
    if (first) s->part = (uint8_t)(1u << of);
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
    uint32_t own = world_number(object);
    if (own) return own;
    own = ++s->in->objects;
    if (!vec_push(s->in->env, &s->fresh, object)) s->status = HD_NOMEM;
    world_track(object, own);
    return own;
}

static hd_value slot(saver *s, ev v) {
    hd_value stored = encode_slot(s->in->w, s->pool, v, number_of, s);
    hd_status why = hd_value_status(stored);
    if (why != HD_NOMEM && why != HD_LIMIT) why = HD_FAILED;
    if (!hd_value_exists(stored) && !s->status)
        s->status = s->in->w->status ? s->in->w->status : why;
    return stored;
}

static bool is_written(const saver *s, uint32_t object) {
    for (table_probe p = table_find(&s->whole, object); table_next(&s->whole, &p);)
        if (p.index == object) return true;
    return false;
}

static void put_object(saver *s, ev object) {
    assert(world_number(object) && world_number(object) <= s->in->objects);
    number_text n = text_of(world_number(object));
    if (!is_written(s, world_number(object)) &&
        table_insert(&s->whole, world_number(object), world_number(object)))
        s->status = HD_NOMEM;
    push(s, n.chars);
    put(s, DOC_SET, encode_object(s->in->w, s->pool, object, number_of, s));
    pop(s, 1);
}

static void save_op(saver *s, const encode_op *op) {
    static const doc_op hows[] = {
        [ENCODE_SET] = DOC_SET,
        [ENCODE_REMOVE] = DOC_REMOVE,
        [ENCODE_APPEND] = DOC_APPEND,
        [ENCODE_KEEP] = DOC_KEEP,
    };
    if (hd_value_status(op->value) && s->in->w->status) s->status = s->in->w->status;
    for (uint32_t i = 0; i < op->length; i++) push(s, op->path[i]);
    put(s, hows[op->how], op->value);
    pop(s, op->length);
}

/* A small change is a small operation; after any other, the content is written once. */
static void save_change(saver *s, const change *c) {
    encode_ops small;
    number_text n = text_of(world_number(c->object));
    if (is_written(s, world_number(c->object))) return;
    if (!encode_change(s->in->w, s->pool, c, number_of, s, &small)) {
        put_object(s, c->object);
        return;
    }
    push(s, n.chars);
    for (uint32_t i = 0; i < small.count; i++) save_op(s, &small.ops[i]);
    pop(s, 1);
}

static void save_changes(saver *s) {
    push_part(s, PART_OBJECTS);
    for (uint32_t i = 0; i < s->in->changes.count && !s->status; i++)
        save_change(s, &s->in->changes.items[i]);
    pop(s, 1);
    instance_forget_changes(s->in);
}

/* Writing one may number further ones. */
static void save_fresh(saver *s) {
    push_part(s, PART_OBJECTS);
    for (uint32_t i = 0; i < s->fresh.count && !s->status; i++) put_object(s, s->fresh.items[i]);
    pop(s, 1);
}

static void save_freed(saver *s) {
    push_part(s, PART_OBJECTS);
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
    assert(!a->fan || a->caller);
    w->keys = 0;
    if (!a->caller) return;
    w->a = text_of(a->fan ? a->fan->number : a->number);
    w->b = text_of(a->index);
    push_part(s, a->fan ? PART_FANS : PART_CALLS);
    push(s, w->a.chars);
    w->keys = 2;
    if (!a->fan) return;
    push(s, "branches");
    push(s, w->b.chars);
    w->keys = 4;
}

/* {"call": n}, or {"fan": n, "index": i}; the first activation is not named. */
static hd_value with_place(saver *s, hd_value record, const activation *a) {
    assert(a->in == s->in);
    if (!a->caller) return record;
    if (!a->fan) return hd_object_set(s->pool, record, "call", hd_int(s->pool, a->number));
    record = hd_object_set(s->pool, record, "fan", hd_int(s->pool, a->fan->number));
    return hd_object_set(s->pool, record, "index", hd_int(s->pool, a->index));
}

static void save_variables(saver *s, activation *a) {
    assert(a->in == s->in && a->own);
    const scope *names = a->vars->names;
    push_part(s, PART_VARS);
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
    assert(l->changed && l->node < f->node_count && f->nodes[l->node].kind == NODE_LOOP_HEAD);
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
    push_part(s, PART_LOOPS);
    for (uint32_t i = a->loops.count; i-- > 0;) {
        loop_state *l = &a->loops.items[i];
        if (l->changed) save_loop(s, activation_function(a), l);
        if (l->ended) vec_swap_remove(&a->loops, i);
    }
    pop(s, 1);
}

static void save_ready(saver *s, activation *a) {
    push_part(s, PART_READY);
    for (uint32_t i = a->ready.count; i-- > 0;) {
        arrivals *r = &a->ready.items[i];
        const char *id = activation_function(a)->nodes[r->node].id;
        assert(r->satisfied < activation_function(a)->nodes[r->node].deps_required); /* W2 */
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
    assert(a->in == s->in && !a->ended);
    const plan_function *f = activation_function(a);
    if (a->stored || !a->caller || a->fan) return;
    hd_value r = hd_object_set(s->pool, hd_object(), "function", hd_string(s->pool, f->name));
    const char *node = activation_function(a->caller)->nodes[a->call_node].id;
    r = hd_object_set(s->pool, r, "node", hd_string(s->pool, node));
    r = hd_object_set(s->pool, r, "caller", with_place(s, hd_object(), a->caller));
    put(s, DOC_SET, r);
}

static void save_activation(saver *s, activation *a) {
    assert(a->in == s->in);
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
    assert(!f->ended && f->begun <= f->total);
    const plan_function *fn = activation_function(f->a);
    hd_value r =
        hd_object_set(s->pool, hd_object(), "node", hd_string(s->pool, fn->nodes[f->node].id));
    r = hd_object_set(s->pool, r, "in", with_place(s, hd_object(), f->a));
    if (f->items.kind != EV_UNBOUND) r = hd_object_set(s->pool, r, "items", slot(s, f->items));
    if (f->waiter) r = hd_object_set(s->pool, r, "strand", hd_int(s->pool, f->waiter->number));
    if (f->cancels) r = hd_object_set(s->pool, r, "cancels", hd_int(s->pool, f->cancels));
    return r;
}

static void save_results(saver *s, fan *f) {
    assert(f->arrived.count <= f->done && f->done <= f->begun);
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
    assert(f->a->in == s->in);
    number_text n = text_of(f->number);
    if (f->ended && !f->stored) return;
    push_part(s, PART_FANS);
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

/* See open_record.h. */
static hd_value strand_rest(saver *s, const strand *t) {
    hd_value r = with_place(s, hd_object(), t->a);
    if (t->attempt > 1) r = hd_object_set(s->pool, r, "attempt", hd_int(s->pool, t->attempt));
    if (hd_value_exists(t->why)) r = hd_object_set(s->pool, r, "why", t->why);
    if (t->lost) r = hd_object_set(s->pool, r, "lost", hd_int(s->pool, t->lost));
    if (t->due_ms) {
        r = hd_object_set(s->pool, r, "due", hd_int(s->pool, (int64_t)t->due_ms));
        r = hd_object_set(s->pool, r, "begun", hd_int(s->pool, (int64_t)t->begun));
    }
    if (hd_value_exists(t->limit)) r = hd_object_set(s->pool, r, "limit", t->limit);
    if (t->state == STRAND_CHILD && t->child_tag)
        r = hd_object_set(s->pool, r, "tag", hd_int(s->pool, (int64_t)t->child_tag));
    if (t->cancelled) r = hd_object_set(s->pool, r, "cancelled", hd_int(s->pool, t->cancelled));
    if (t->cancels) r = hd_object_set(s->pool, r, "cancels", hd_int(s->pool, t->cancels));
    /* With one strand nothing can change before a restart what the arguments are computed from, unless computing them
     * has changed it. */
    if (hd_value_exists(t->args) && (s->in->strand_count > 1 || !strand_node(t)->args_repeat))
        r = hd_object_set(s->pool, r, "args", t->args);
    return r;
}

static hd_value strand_record(saver *s, const strand *t) {
    assert(t->state != STRAND_WALKING && t->state != STRAND_ENDED && t->in == s->in);
    uint64_t started = s->in->started_ms;
    hd_value rest = strand_rest(s, t);
    hd_value fields[] = {
        hd_string(s->pool, strand_node(t)->id), hd_int(s->pool, t->step),
        hd_int(s->pool, (int64_t)(t->since_ms > started ? t->since_ms - started : 0)), rest
    };
    return hd_array_of(s->pool, fields, hd_value_count(rest) || hd_value_status(rest) ? 4 : 3);
}

/* Keeps the list in the order in which the steps were begun, as CPython would have begun them. Strands are saved nearly
 * in that order, so the place is found from the end: only a strand that was marked before it came to its step is
 * saved too early. */
static void insert_unqueued(instance *in, strand *t) {
    list_node *at = in->unqueued.head.prev;
    while (at != &in->unqueued.head && LIST_ENTRY(at, strand, unqueued)->begun > t->begun)
        at = at->prev;
    list_insert_after(at, &t->unqueued);
}

static void save_strand(saver *s, strand *t) {
    if (t->state == STRAND_ENDED && !t->stored) return;
    number_text n = text_of(t->number);
    push_part(s, PART_OPEN);
    put_at(s, n.chars, t->state == STRAND_ENDED ? (hd_value){ 0 } : strand_record(s, t));
    pop(s, 1);
    t->stored = t->state != STRAND_ENDED;
    if (t->stored && !list_linked(&t->unqueued)) insert_unqueued(s->in, t);
}

/* ---- the whole */

static const char *const status_names[] = { "running", "paused",    "done",
                                            "failed",  "cancelled", "stalled" };

const char *instance_status_name(instance_status status) { return status_names[status]; }

static void save_next(saver *s) {
    instance *in = s->in;
    if (!in->number_changed) return;
    push_part(s, PART_NEXT);
    put(s, DOC_SET, hd_int(s->pool, in->next_number));
    pop(s, 1);
    in->number_changed = false;
}

static void save_open(saver *s) {
    assert(!instance_is_over(s->in) && !s->in->walking.count);
    instance *in = s->in;
    save_changes(s);
    LIST_FOR (n, &in->news.fans) save_fan(s, LIST_ENTRY(n, fan, news));
    LIST_FOR (n, &in->news.activations) save_activation(s, LIST_ENTRY(n, activation, news));
    LIST_FOR (n, &in->news.strands) save_strand(s, LIST_ENTRY(n, strand, news));
    save_fresh(s);
    save_next(s);
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

bool save_keeps_for_rerun(const char *part) {
    return !strcmp(part, "vars") || !strcmp(part, "loops") || !strcmp(part, "objects");
}

/* Numbers are never used again, also not by a rerun. */
static bool is_kept(const char *part, bool variables) {
    return !strcmp(part, "next") || (variables && save_keeps_for_rerun(part));
}

/* The node that a workflow raised the exception at; NULL: an earlier version of the workflow had it, or none did. */
static const plan_node *raiser(const plan *p, const exc *e) {
    if (e->raised.kind != EV_TUPLE) return NULL;
    const text *name = e->raised.tuple->items[0].text, *id = e->raised.tuple->items[1].text;
    for (uint32_t i = 0; i < p->function_count; i++) {
        const plan_function *f = &p->functions[i];
        if (!f->name || !text_is_utf8(name, f->name)) continue;
        for (uint32_t k = 0; k < f->node_count; k++)
            if (text_is_utf8(id, f->nodes[k].id)) return &f->nodes[k];
        return NULL;
    }
    return NULL;
}

/* Where the exception that has ended the instance was raised. */
static void save_origin(saver *s) {
    instance *in = s->in;
    const plan_node *n = in->result.kind == EV_EXC ? raiser(in->p, in->result.exc) : NULL;
    if (!n) return;
    hd_value v = hd_object_set(s->pool, hd_object(), "node", hd_string(s->pool, n->id));
    if (n->function)
        v = hd_object_set(s->pool, v, "function",
                          hd_string(s->pool, in->p->functions[n->function].name));
    if (*n->at) v = hd_object_set(s->pool, v, "at", hd_string(s->pool, n->at));
    put_at(s, "failed_at", v);
}

static void save_over(saver *s) {
    assert(instance_is_over(s->in) && s->in->status != INSTANCE_RUNNING);
    instance *in = s->in;
    bool variables = in->status != INSTANCE_DONE && in->root;
    if (variables) save_last_variables(s);
    for (uint32_t i = 0; i < PARTS; i++)
        if (in->parts >> i & 1 && !is_kept(parts[i], variables))
            put_at(s, parts[i], (hd_value){ 0 });
    save_next(s);
    instance_forget_changes(in);
}

/* Stores the result or the error of the first function as soon as that has ended, once: the strands that are left may
 * clean up for long, and the instance may be loaded meanwhile. `ending` is in the document until it is over. */
static void save_ending(saver *s) {
    instance *in = s->in;
    bool done = in->ending == INSTANCE_DONE, is_due = !instance_is_over(in);
    if (!in->ending) return;
    if (!in->result_stored && in->ending != INSTANCE_STALLED) {
        put_at(s, done ? "result" : "error", instance_outcome(in, s->pool));
        if (!done) save_origin(s);
    }
    in->result_stored = true;
    if (is_due != in->ending_stored)
        put_at(s, "ending",
               is_due ? hd_string(s->pool, instance_status_name(in->ending)) : (hd_value){ 0 });
    in->ending_stored = is_due;
}

/* While it cleans up: an instance that ends with CancelledError was cancelled, also if it is loaded in between. */
static void save_cancelling(saver *s) {
    instance *in = s->in;
    uint32_t times = instance_is_over(in) ? 0 : in->cancelling;
    hd_value many = times > 1 ? hd_int(s->pool, times) : hd_bool(true);
    if (times != in->cancelling_stored) put_at(s, "cancelling", times ? many : (hd_value){ 0 });
    in->cancelling_stored = times;
}

hd_status instance_save(instance *in, const doc_writer *out) {
    saver s = { .in = in, .out = out };
    s.status = hd_pool_open(in->heap, &s.pool);
    if (s.status) return s.status;
    table_init(&s.whole, in->env);
    instance_enter(in);
    world_begin_stored(in->w);
    if (instance_is_over(in)) save_over(&s);
    else save_open(&s);
    save_ending(&s);
    instance_sweep(in); /* objects that nothing refers to any more are noted in `freed` */
    if (instance_is_over(in)) vec_clear(&in->freed);
    else save_freed(&s);
    if (in->status_changed)
        put_at(&s, "status", hd_string(s.pool, instance_status_name(in->status)));
    in->status_changed = false;
    save_cancelling(&s);
    vec_fini(in->env, &s.fresh);
    table_fini(&s.whole);
    hd_pool_close(s.pool);
    if (s.status && s.status != HD_NOMEM && in->w->failure == FAILURE_MEMORY) s.status = HD_LIMIT;
    hd_status left = instance_leave(in);
    assert(!in->changes.count);
    return s.status ? s.status : left;
}

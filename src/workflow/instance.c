/* instance.c -- activations, strands and fans: their lives.
 *
 * What ends is marked and stays in its list until the walk has been saved: save must tell the document
 * about it. instance_sweep frees it then. */
#include "workflow/instance.h"

#include "base/env.h"
#include "expr/dict.h"
#include "expr/encode.h"
#include "expr/raise.h"

static uint32_t next_number(instance *in) {
    in->number_changed = true;
    return in->next_number++;
}

/* ---- activations */

static uint32_t slots_of(const activation *a) { return activation_function(a)->names->names.count; }

static void free_activation(activation *a) {
    instance *in = a->in;
    for (uint32_t i = 0; i < a->loops.count; i++) {
        world_unref(in->w, a->loops.items[i].over);
        world_unref(in->w, a->loops.items[i].source);
    }
    vec_fini(in->env, &a->loops);
    vec_fini(in->env, &a->ready);
    env_free(in->env, a->own, slots_of(a) + 1);
    if (a->vars) frame_close(a->vars);
    list_discard(&a->news);
    list_discard(&a->link);
    env_free(in->env, a, sizeof *a);
}

static activation *new_activation(instance *in, uint32_t fn, activation *caller,
                                  uint32_t call_node) {
    activation *a = env_new0(in->env, sizeof *a);
    if (!a) return NULL;
    a->in = in;
    a->function = fn;
    a->caller = caller;
    a->call_node = call_node;
    a->depth = caller ? caller->depth + 1 : 0;
    a->own = env_new0(in->env, slots_of(a) + 1);
    if (!a->own || frame_open(in->w, activation_function(a)->names, &a->vars)) {
        free_activation(a);
        return NULL;
    }
    a->number = in->root ? next_number(in) : 0;
    if (caller) caller->users++;
    list_push_back(&in->activations, &a->link);
    activation_mark(a);
    return a;
}

activation *instance_activation(instance *in, uint32_t fn, activation *caller, uint32_t call_node) {
    assert((caller == NULL) == (in->root == NULL));
    activation *a = new_activation(in, fn, caller, call_node);
    if (a && !in->root) in->root = a;
    if (a) memset(a->own, 1, slots_of(a));
    return a;
}

activation *instance_branch(instance *in, fan *f, uint32_t index) {
    assert(!f->ended && index < f->total);
    activation *outer = f->a, *a = new_activation(in, outer->function, outer, PLAN_NONE);
    if (!a) return NULL;
    a->fan = f;
    a->index = index;
    f->open++;
    for (uint32_t v = 0; v < slots_of(a); v++) {
        frame_set(a->vars, v, outer->vars->slots.items[v]);
        a->vars->changed.items[v] = 0;
    }
    return a;
}

bool activation_is_of(const activation *a, const fan *f) {
    while (a && a->fan != f) a = a->caller;
    return a != NULL;
}

/* A plain value that the variable has already is not stored again. */
static bool has_already(const activation *a, uint32_t variable, ev value) {
    ev before = a->vars->slots.items[variable];
    bool plain = value.kind >= EV_NONE && value.kind <= EV_FLOAT;
    return plain && a->own[variable] && before.kind == value.kind && before.i == value.i;
}

void activation_assign(activation *a, uint32_t variable, ev value) {
    assert(!a->ended && variable < a->vars->slots.count);
    if (has_already(a, variable, value)) return;
    frame_set(a->vars, variable, value);
    activation_mark(a);
}

void activation_own_all(activation *a) {
    activation_mark(a);
    memset(a->own, 1, slots_of(a));
    for (uint32_t v = 0; v < slots_of(a); v++)
        if (a->vars->slots.items[v].kind != EV_UNBOUND) a->vars->changed.items[v] = 1;
}

/* Ends the fan-out if no strand waits for it and no branch of it is open. True: it has ended now. */
static bool fan_end_if_unused(fan *f) {
    if (f->waiter || f->open || f->ended) return false;
    f->ended = true;
    fan_mark(f);
    return true;
}

/* The activation has one user less. Without users it ends, and is a user of its caller no more. If it was the last open
 * branch of a fan-out that no strand waits for, the fan-out ends, too, which is another user of the same caller. */
static void release(activation *a) {
    while (a) {
        assert(a->users && !a->ended);
        if (--a->users) return;
        a->ended = true;
        activation_mark(a);
        if (a->fan) a->fan->open--;
        if (a->fan && fan_end_if_unused(a->fan)) a->caller->users--;
        a = a->caller;
    }
}

void activation_drop(activation *a) {
    assert(!a->users);
    a->users = 1;
    release(a);
}

/* ---- strands */

strand *instance_strand(instance *in, activation *a) {
    strand *s = env_new0(in->env, sizeof *s);
    assert(!instance_is_over(in) && !a->ended && a->in == in);
    if (!s) return NULL;
    s->in = in;
    s->number = list_empty(&in->strands) && in->next_number == 1 ? 0 : next_number(in);
    s->a = a;
    s->node = activation_function(a)->entry;
    a->users++;
    in->strand_count++;
    list_push_back(&in->strands, &s->link);
    strand_mark(s);
    return s;
}

void strand_move(strand *s, activation *to) {
    activation *from = s->a;
    assert(from != to && !to->ended && to->in == s->in);
    to->users++;
    s->a = to;
    release(from);
}

/* From which states a strand may come into one. */
#define FROM(state) (1u << STRAND_##state)
static const uint32_t comes_from[] = {
    [STRAND_WALKING] = FROM(WALKING) | FROM(READY) | FROM(RUNNING) | FROM(BACKOFF) |
                       FROM(SLEEPING) | FROM(SIGNAL) | FROM(CHILD) | FROM(FAN),
    [STRAND_READY] = FROM(WALKING) | FROM(RUNNING) | FROM(BACKOFF),
    [STRAND_RUNNING] = FROM(READY),
    [STRAND_BACKOFF] = FROM(WALKING) | FROM(RUNNING), /* from WALKING: it is loaded so */
    [STRAND_SLEEPING] = FROM(WALKING),
    [STRAND_SIGNAL] = FROM(WALKING),
    [STRAND_CHILD] = FROM(WALKING),
    [STRAND_FAN] = FROM(WALKING),
    [STRAND_ENDED] = ~FROM(ENDED),
};

void strand_set_state(strand *s, strand_state state) {
    assert(comes_from[state] & 1u << s->state);
    (void)comes_from; /* without assertions clang finds it unused */
    assert(s->in->strand_count && s->in->fan_count <= s->in->strand_count);
    if (s->state == STRAND_FAN) s->in->fan_count--;
    if (state == STRAND_FAN) s->in->fan_count++;
    if (state == STRAND_ENDED) s->in->strand_count--;
    if (state == STRAND_SIGNAL) s->in->waits_anew = true;
    s->state = state;
}

void instance_end_strand(strand *s) {
    strand_set_state(s, STRAND_ENDED);
    strand_mark(s);
    if (s->waits_for) instance_leave_fan(s->waits_for);
    if (!s->child) list_discard(&s->want);
    else if (!list_linked(&s->want)) list_push_back(&s->in->wanted, &s->want);
    release(s->a);
}

static void free_strand(strand *s) {
    assert(!binheap_linked(&s->timer) && !binheap_linked(&s->ready));
    assert(!s->limited_by);
    hd_value_unref(s->args);
    hd_value_unref(s->limit);
    hd_value_unref(s->why);
    list_discard(&s->news);
    list_discard(&s->unqueued);
    list_discard(&s->want);
    assert(!s->child);
    list_remove(&s->link);
    env_free(s->in->env, s, sizeof *s);
}

/* ---- fans */

fan *instance_fan_at(instance *in, activation *a, uint32_t node) {
    ev results = dict_new(in->w, EV_DICT);
    fan *f = ev_failed(results) ? NULL : env_new0(in->env, sizeof *f);
    if (!f) return NULL;
    f->number = next_number(in);
    f->node = node;
    f->a = a;
    f->items = ev_unbound();
    f->results = results;
    f->failed = PLAN_NONE;
    world_ref(results);
    a->users++;
    list_push_back(&in->fans, &f->link);
    fan_mark(f);
    return f;
}

fan *instance_fan(instance *in, strand *waiter) {
    fan *f = instance_fan_at(in, waiter->a, waiter->node);
    if (!f) return NULL;
    f->waiter = waiter;
    waiter->waits_for = f;
    return f;
}

bool fan_keep(fan *f, uint32_t index, ev result, bool failed) {
    instance *in = f->a->in;
    assert(!f->ended && index < f->total && f->done <= f->begun);
    fan_mark(f);
    const plan_node *all = activation_function(f->a)->nodes, *head = &all[f->node];
    bool lowest = head->here || all[head->pair].mode == BARRIER_ORDERED;
    if (failed && (f->failed == PLAN_NONE || (lowest && index < f->failed))) f->failed = index;
    if (!f->waiter) return true; /* no strand waits for the result */
    if (!dict_set(in->w, f->results.dict, ev_int(index), result)) return false;
    return vec_push(in->env, &f->arrived, index);
}

void instance_leave_fan(fan *f) {
    assert(!f->ended && f->waiter && f->waiter->waits_for == f);
    f->waiter->waits_for = NULL;
    f->waiter = NULL;
    fan_mark(f);
    if (fan_end_if_unused(f)) release(f->a);
}

static void free_fan(fan *f, instance *in) {
    world_unref(in->w, f->items);
    world_unref(in->w, f->results);
    vec_fini(in->env, &f->arrived);
    list_discard(&f->news);
    list_remove(&f->link);
    env_free(in->env, f, sizeof *f);
}

/* ---- the instance */

/* The world says that an object is gone which the document has. */
static void note_freed(void *ctx, uint32_t number) {
    instance *in = ctx;
    assert(in); /* objects are freed while an instance is worked on */
    if (!vec_push(in->env, &in->freed, number)) in->freed_is_short = true;
}

void instance_enter(instance *in) {
    assert(!in->w->freed_ctx && !in->w->journal.count);
    plan_use(in->p);
    in->w->freed_ctx = in;
    in->w->status = HD_OK; /* what went wrong before concerns this one no more */
}

hd_status instance_leave(instance *in) {
    world *w = in->w;
    assert(w->freed_ctx == in);
    bool room = vec_room(in->env, &in->changes, w->journal.count);
    for (uint32_t i = 0; room && i < w->journal.count; i++)
        (void)vec_push(in->env, &in->changes, w->journal.items[i]);
    if (room) vec_clear(&w->journal); /* the references are the instance's now */
    else world_journal_clear(w);
    /* An exception that was not caught, for lack of memory, may hold objects of this instance: freed later, their
     * numbers would be taken for those of another one. */
    (void)raise_catch(w);
    w->failure = FAILURE_NONE;
    world_sweep(w);
    w->freed_ctx = NULL;
    return room && !in->freed_is_short ? HD_OK : HD_NOMEM;
}

void instance_forget_changes(instance *in) {
    for (uint32_t i = 0; i < in->changes.count; i++) {
        world_unref(in->w, in->changes.items[i].object);
        world_unref(in->w, in->changes.items[i].key);
        world_unref(in->w, in->changes.items[i].value);
    }
    vec_clear(&in->changes);
}

hd_status instance_open(world *w, plan *p, uint64_t *steps_begun, instance **out) {
    instance *in = env_new0(&w->env, sizeof *in);
    *out = in;
    if (!in) return HD_NOMEM;
    in->env = &w->env;
    in->w = w;
    in->p = plan_ref(p);
    in->steps_begun = steps_begun;
    in->heap = p->heap;
    in->next_number = 1;
    in->most_nodes = WALK_NODES_MAX;
    w->freed = note_freed;
    in->result = ev_unbound();
    list_init(&in->strands);
    list_init(&in->activations);
    list_init(&in->fans);
    list_init(&in->news.strands);
    list_init(&in->news.activations);
    list_init(&in->news.fans);
    list_init(&in->unqueued);
    list_init(&in->wanted);
    return HD_OK;
}

/* Without memory `outcome` stays absent, and is encoded when it is needed. */
static bool keep_outcome(instance *in, ev result) {
    hd_pool *pool;
    if (hd_pool_open(in->heap, &pool)) return true;
    hd_value v = encode_value(in->w, pool, result);
    bool crosses = hd_value_exists(v);
    if (crosses) in->outcome = hd_value_ref(v);
    hd_pool_close(pool);
    return crosses || in->w->status;
}

/* What ends an instance is stored. If it cannot be, because it contains itself or is too deep, what encoding it raises
 * ends the instance. */
static ev result_to_store(instance *in, instance_status *status, ev result) {
    if (result.kind == EV_UNBOUND || keep_outcome(in, result)) return result;
    raise_failure(in->w);
    ev error = raise_catch(in->w);
    if (error.kind != EV_EXC) return result;
    if (*status == INSTANCE_DONE) *status = INSTANCE_FAILED;
    return error;
}

hd_value instance_outcome(instance *in, hd_pool *pool) {
    assert(in->ending);
    return hd_value_exists(in->outcome) ? in->outcome : encode_value(in->w, pool, in->result);
}

void instance_conclude(instance *in, instance_status status, ev result) {
    assert(!instance_is_over(in) && status >= INSTANCE_DONE);
    if (in->ending) return;
    result = result_to_store(in, &status, result);
    in->ending = status;
    world_ref(result);
    in->result = result;
}

void instance_end(instance *in) {
    assert(in->ending && !instance_is_over(in));
    in->status = in->ending;
    in->status_changed = true;
    instance_note(in, JOURNAL_STEPS, JOURNAL_END, NULL);
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state != STRAND_ENDED) instance_end_strand(s);
    }
    assert(!in->strand_count && !in->fan_count);
}

void instance_note(instance *in, journal_level level, journal_word what, const strand *s) {
    journal_entry j = { .at_ms = in->now_ms, .what = what, .node = PLAN_NONE };
    if (in->p->journal < level) return;
    if (s) {
        j.function = s->a->function;
        j.node = s->node;
        j.strand = s->number;
        j.step = level == JOURNAL_STEPS ? s->step : 0;
        j.attempt = s->attempt;
    }
    (void)vec_push(in->env, &in->journal, j);
}

void instance_note_signal(instance *in, hd_value name) {
    uint32_t before = in->journal.count;
    instance_note(in, JOURNAL_STEPS, JOURNAL_SIGNAL, NULL);
    if (in->journal.count > before && hd_value_kind(name) == HD_KIND_STRING)
        in->journal.items[before].signal = hd_value_ref(name);
}

void instance_forget_journal(instance *in) {
    for (uint32_t i = 0; i < in->journal.count; i++) hd_value_unref(in->journal.items[i].signal);
    vec_clear(&in->journal);
}

/* When an instance is over everything goes; else what has ended among the news, which are none any more. */
static void sweep_all(instance *in) {
    LIST_FOR_SAFE (n, &in->strands) free_strand(LIST_ENTRY(n, strand, link));
    LIST_FOR_SAFE (n, &in->fans) free_fan(LIST_ENTRY(n, fan, link), in);
    LIST_FOR_SAFE (n, &in->activations) free_activation(LIST_ENTRY(n, activation, link));
    in->root = NULL;
}

static void sweep_news(instance *in) {
    for (list_node *n; (n = list_pop_front(&in->news.strands));) {
        strand *s = LIST_ENTRY(n, strand, news);
        if (s->state == STRAND_ENDED) free_strand(s);
    }
    for (list_node *n; (n = list_pop_front(&in->news.fans));) {
        fan *f = LIST_ENTRY(n, fan, news);
        if (f->ended) free_fan(f, in);
    }
    for (list_node *n; (n = list_pop_front(&in->news.activations));) {
        activation *a = LIST_ENTRY(n, activation, news);
        if (a->ended) free_activation(a);
    }
}

void instance_sweep(instance *in) {
    if (instance_is_over(in)) sweep_all(in);
    else sweep_news(in);
    world_sweep(in->w);
}

void instance_close(instance *in) {
    if (!in) return;
    if (!instance_is_over(in))
        in->status = INSTANCE_CANCELLED; /* in memory only: everything goes */
    instance_enter(in);
    instance_forget_changes(in);
    instance_sweep(in);
    world_unref(in->w, in->result);
    hd_value_unref(in->outcome);
    (void)instance_leave(in);
    instance_forget_changes(in);
    vec_fini(in->env, &in->walking);
    vec_fini(in->env, &in->freed);
    instance_forget_journal(in);
    vec_fini(in->env, &in->journal);
    vec_fini(in->env, &in->changes);
    plan_unref(in->p);
    env_free(in->env, in, sizeof *in);
}

void instance_check(const instance *in) {
#ifndef NDEBUG
    uint32_t strands = 0, waiting = 0, last = 0;
    if (in->strand_count > 64 && in->counts.nodes % 64) return; /* sampled */
    LIST_FOR (n, &in->strands) {
        const strand *s = LIST_ENTRY(n, strand, link);
        assert(s->in == in && s->state != STRAND_WALKING);
        assert(n == list_first(&in->strands) || s->number > last);
        last = s->number;
        if (s->state == STRAND_ENDED) continue;
        strands++;
        assert(!s->a->ended && s->node < activation_function(s->a)->node_count);
        assert((s->state == STRAND_FAN) == (s->waits_for != NULL));
        assert(!s->waits_for || s->waits_for->waiter == s);
        waiting += s->state != STRAND_FAN;
    }
    assert(strands == in->strand_count && strands - waiting == in->fan_count);
    assert(instance_is_over(in) ? strands == 0 : waiting > 0); /* W3 */
    LIST_FOR (n, &in->activations) {
        const activation *a = LIST_ENTRY(n, activation, link);
        const plan_function *f = activation_function(a);
        for (uint32_t i = 0; i < a->ready.count; i++) /* W2 */
            assert(a->ready.items[i].satisfied < f->nodes[a->ready.items[i].node].deps_required);
    }
    LIST_FOR (n, &in->fans) {
        const fan *f = LIST_ENTRY(n, fan, link);
        assert(f->done <= f->begun && f->begun <= f->total);
    }
#else
    (void)in;
#endif
}

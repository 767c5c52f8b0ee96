/* unwind.c -- what an exception does.
 *
 * An exception is raised in a strand. The HANDLER that the strand's node names is asked first; if it has no clause for
 * the exception's class, the HANDLER that this one names, and so on to the end of the function. There the activation
 * ends: its other strands end with it, and the CALL above raises the exception.
 *
 * A branch that no strand waits for any more (a leftover) does not end with the activation around it: it goes on until
 * the first function has ended, and is cancelled then.
 *
 * Cancelling is raising CancelledError where a strand waits. A strand that waits for branches is left alone: its
 * branches are cancelled, and when they have ended it raises in its turn. So clean-up (what `finally` compiles to) runs
 * innermost first, and may itself wait. */
#include "workflow/unwind.h"

#include "expr/dict.h"
#include "expr/raise.h"

/* ---- handlers */

static bool clause_takes(const instance *in, const plan_clause *c, ev exception) {
    assert(exception.kind == EV_EXC);
    uint32_t class_ = exception.o->class_;
    if (!c->class_count) return true;
    /* What a workflow cannot do is not hidden by `except BaseException`. */
    for (uint32_t i = 0; class_ == CLASS_Unsupported && i < c->class_count; i++)
        if (c->classes[i] == CLASS_Unsupported) return true;
    if (class_ == CLASS_Unsupported) return false;
    for (uint32_t i = 0; i < c->class_count; i++)
        if (class_is(in->w->classes, class_, c->classes[i])) return true;
    return false;
}

static const plan_clause *clause_for(const instance *in, const plan_node *handler, ev exception,
                                     uint32_t *index) {
    for (uint32_t i = 0; i < handler->clause_count; i++) {
        *index = i;
        if (clause_takes(in, &handler->clauses[i], exception)) return &handler->clauses[i];
    }
    return NULL;
}

/* The strand goes on in the clause. The HANDLER's own variable keeps the exception for a RAISE without
 * value; the clause's is the program's. */
static bool handle(strand *s, const plan_node *handler, const plan_clause *c, uint32_t index,
                   ev exception) {
    assert(handler->kind == NODE_HANDLER && handler->caught != PLAN_NONE);
    assert(index < handler->clause_count);
    activation_assign(s->a, handler->caught, exception);
    if (c->bind != PLAN_NONE) activation_assign(s->a, c->bind, exception);
    return walk_along(s, EDGE_GUARD, index);
}

/* Finds out whether a HANDLER of the strand's function takes the exception; if so the strand goes on there. */
static bool find_handler(strand *s, ev exception, bool *taken) {
    assert(exception.kind == EV_EXC && s->state != STRAND_ENDED);
    const plan_function *f = activation_function(s->a);
    uint32_t index, at = strand_node(s)->except;
    for (*taken = false; at != PLAN_NONE; at = f->nodes[at].except) {
        const plan_clause *c = clause_for(s->in, &f->nodes[at], exception, &index);
        if (!c) continue;
        *taken = true;
        s->node = at;
        return handle(s, &f->nodes[at], c, index, exception);
    }
    return true;
}

/* ---- leaving functions */

/* Whether `a` ends with `outer`: it is `outer` itself or below it, and no branch between the two is a leftover. */
static bool is_part_of(const activation *a, const activation *outer) {
    while (a && a != outer && !(a->fan && !a->fan->waiter)) a = a->caller;
    return a == outer;
}

/* Ends all strands in the activation and below it, except `except` and those of leftovers. They raise no exception. All
 * are found before the first one ends: when a strand that waits for branches ends, its branches become leftovers. */
static void end_others(activation *f, const strand *except) {
    assert(f->users && !f->ended);
    if (f->users == 1) return; /* this strand alone */
    LIST_FOR (n, &f->in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        s->ends = s != except && s->state != STRAND_ENDED && is_part_of(s->a, f);
    }
    LIST_FOR (n, &f->in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->ends) instance_end_strand(s);
        s->ends = false;
    }
}

static void fail(strand *s, ev exception) {
    assert(exception.kind == EV_EXC);
    instance *in = s->in;
    bool cancelled =
        in->cancelling && class_is(in->w->classes, exception.o->class_, CLASS_CancelledError);
    instance_conclude(in, cancelled ? INSTANCE_CANCELLED : INSTANCE_FAILED, exception);
    instance_end_strand(s);
}

/* The exception leaves the function: the strand goes back to the CALL, which raises it there. False: there is no CALL,
 * since the activation is that of the first function or of a branch. In the first function other strands do not end
 * here: they are cancelled with the leftovers. */
static bool leave(strand *s) {
    activation *a = s->a;
    if (a->caller) end_others(a, s);
    if (!a->caller || a->fan) return false;
    assert(a->call_node < activation_function(a->caller)->node_count);
    s->node = a->call_node;
    strand_move(s, a->caller);
    return true;
}

/* Clean-up and handlers may raise it again: the first place counts. */
static bool note_place(const strand *s, exc *e) {
    if (e->raised.kind != EV_NONE) return true;
    return raise_note_place(s->in->w, e, activation_function(s->a)->name, strand_node(s)->id);
}

bool unwind(strand *s, ev exception) {
    assert(exception.kind == EV_EXC);
    if (!note_place(s, exception.exc)) return false;
    for (;;) {
        bool taken;
        if (!find_handler(s, exception, &taken)) return false;
        if (taken) return true;
        if (leave(s)) continue;
        if (s->a->fan) return walk_branch_over(s, exception, true);
        fail(s, exception);
        return true;
    }
}

bool unwind_pending(strand *s) {
    world *w = s->in->w;
    raise_failure(w); /* a value that is nested too deeply to be encoded */
    if (w->status) return false;
    ev exception = raise_catch(w);
    return exception.kind == EV_EXC && unwind(s, exception);
}

bool unwind_new(strand *s, uint32_t class_, const char *message) {
    (void)raise_f(s->in->w, class_, "%s", message);
    return unwind_pending(s);
}

/* ---- branches */

/* The strand no longer waits for its branches. Those that have not ended go on; the variables around them stay for them
 * as they are now. */
static void detach(fan *f) {
    instance_leave_fan(f);
    LIST_FOR (n, &f->a->in->activations) {
        activation *b = LIST_ENTRY(n, activation, link);
        if (b->fan == f && !b->ended) activation_own_all(b);
    }
}

static bool cancel_all(instance *in, const fan *by, bool left_too);

static bool cancel_branches(fan *f) {
    assert(!f->ended && f->done <= f->total);
    f->cancelled = true;
    fan_mark(f);
    return cancel_all(f->a->in, f, false);
}

bool unwind_branches(fan *f) { return f->cancelled || !f->waiter || cancel_branches(f); }

/* As in asyncio.TaskGroup: a branch that was cancelled is no failure. That happens to a single branch if the child for
 * which it waits is cancelled. */
static bool is_group_failure(const instance *in, ev exception) {
    return !class_is(in->w->classes, exception.o->class_, CLASS_CancelledError);
}

bool unwind_branch_failed(fan *f, const plan_node *barrier, uint32_t index) {
    assert(barrier->kind == NODE_BARRIER && f->done);
    strand *waiter = f->waiter;
    if (!waiter || f->cancelled) return true;
    ev exception = dict_find(f->a->in->w, f->results.dict, ev_int(index))->value;
    assert(exception.kind == EV_EXC);
    if (barrier->mode == BARRIER_GROUP)
        return !is_group_failure(f->a->in, exception) || cancel_branches(f);
    if (barrier->mode != BARRIER_ALL || f->done == f->total) return true;
    detach(f);
    return unwind(waiter, exception);
}

/* ---- cancelling */

static bool cancel_strand(strand *s) {
    assert(s->state != STRAND_FAN || (s->waits_for && s->waits_for->waiter == s));
    world *w = s->in->w;
    if (s->cancelled || s->state == STRAND_ENDED) return true;
    if (strand_node(s)->kind == NODE_BARRIER) return true; /* its branch is over */
    s->cancelled = true;
    strand_mark(s); /* `cancelled` is to be stored: the strand may raise only after a restart */
    if (s->state == STRAND_FAN) return cancel_branches(s->waits_for);
    if (s->state ==
        STRAND_CHILD) { /* the child is cancelled; when it has ended, the strand raises */
        if (!list_linked(&s->want)) list_push_back(&s->in->wanted, &s->want);
        return true;
    }
    ev exception = exc_new(w, CLASS_CancelledError, w->empty_tuple);
    return !ev_failed(exception) && unwind(s, exception);
}

/* Whether `a` is in or below a branch of the fan-out `by`, or, if `by` is NULL, in or below the first function, and no
 * branch between the two is a leftover. */
static bool is_waited_for(const activation *a, const fan *by) {
    while (a && !(a->fan && (a->fan == by || !a->fan->waiter))) a = a->caller;
    return a ? a->fan == by : !by;
}

/* Cancels the strands for which is_waited_for(by) holds; `left_too`: all strands of the instance. Raising may begin and
 * end strands, so they are listed first. */
static bool cancel_all(instance *in, const fan *by, bool left_too) {
    VEC(strand *) all = { 0 };
    bool ok = true;
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_ENDED || !(left_too || is_waited_for(s->a, by))) continue;
        ok = ok && vec_push(in->env, &all, s);
    }
    for (uint32_t i = 0; i < all.count && ok && !instance_is_over(in); i++)
        ok = cancel_strand(all.items[i]);
    vec_fini(in->env, &all);
    return ok;
}

bool unwind_cancel(instance *in) {
    assert(!instance_is_over(in));
    in->cancelling = true;
    return cancel_all(in, NULL, false);
}

bool unwind_leftovers(instance *in) {
    if (!in->ending || in->leftovers_cancelled) return true;
    in->leftovers_cancelled = true;
    return cancel_all(in, NULL, true);
}

/* ---- the end */

/* If the first function has not ended, and no strand is left, the instance has stalled. */
void unwind_if_over(instance *in) {
    assert(in->strand_count >= in->fan_count && !instance_is_over(in));
    if (in->strand_count > in->fan_count) return;
    if (!in->ending) instance_conclude(in, INSTANCE_STALLED, ev_none());
    instance_end(in);
}

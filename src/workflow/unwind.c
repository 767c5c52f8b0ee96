/* unwind.c -- what an exception does.
 *
 * An exception is raised in a strand. The HANDLER that the strand's node names is asked first; if it has no clause for
 * the exception's class, the HANDLER that this one names, and so on to the end of the function. There the activation
 * ends: its other strands end with it, and the CALL above raises the exception.
 *
 * A branch that no strand waits for any more (a leftover) does not end with the activation around it: it goes on until
 * the first function has ended, and is cancelled then.
 *
 * Cancelling is raising CancelledError where a task waits at that moment, as Task.cancel() of asyncio does; it may
 * happen any number of times. If the task waits for branches, they are cancelled, and when they have ended it raises in
 * its turn. So clean-up (what `finally` compiles to) runs innermost first, may itself wait, and is interrupted by the
 * next cancellation. docs/DECISIONS/0560.
 *
 * A task is a strand, together with what is code of the strand itself: the first branches of fans with plan_node.here,
 * which are blocks with a time limit and statements beside tasks. */
#include "workflow/unwind.h"

#include "expr/dict.h"

/* ---- handlers */

static bool clause_takes(const instance *in, const plan_clause *c, ev exception) {
    assert(exception.kind == EV_EXC);
    uint32_t class_ = exception.o->class_;
    if (!c->class_count) return true;
    for (uint32_t i = 0; i < c->class_count; i++) {
        /* Only a clause that names Unsupported takes it: `except BaseException` does not hide what a workflow cannot
         * do. */
        if (class_ == CLASS_Unsupported ? c->classes[i] == CLASS_Unsupported
                                        : class_is(in->w->classes, class_, c->classes[i]))
            return true;
    }
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

/* Whether the strand of a branch stands at the FAN_HEAD (its element is bound) or at the BARRIER (`give`). Their
 * HANDLERs are those of the strand that waits. */
static bool is_beside_its_branch(const strand *s) {
    return s->a->fan && strand_node(s)->fan != s->a->fan->node;
}

/* Finds out whether a HANDLER of the strand's function takes the exception; if so the strand goes on there. */
static bool find_handler(strand *s, ev exception, bool *taken) {
    assert(exception.kind == EV_EXC && s->state != STRAND_ENDED);
    const plan_function *f = activation_function(s->a);
    uint32_t index, at = is_beside_its_branch(s) ? PLAN_NONE : strand_node(s)->except;
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
    bool cancelled = in->cancelling && is_cancelled_error(in->w, exception);
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

/* Notes where the exception was raised. Clean-up and handlers may raise it again: the first place counts. */
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

static void note_cancel(strand *task) {
    task->cancels++;
    strand_mark(task);
}

/* The waiter no longer waits for the branches of the fan. Branches that have not ended go on, with copies of the
 * variables around them as they are now. */
static void detach(fan *f) {
    instance_leave_fan(f);
    LIST_FOR (n, &f->a->in->activations) {
        activation *b = LIST_ENTRY(n, activation, link);
        if (b->fan == f && !b->ended) activation_own_all(b);
    }
}

static bool cancel_branches(fan *f);
static strand *task_of(strand *s);

bool unwind_branch_failed(fan *f, const plan_node *barrier, uint32_t index) {
    assert(barrier->kind == NODE_BARRIER && f->done);
    strand *waiter = f->waiter;
    if (!waiter || f->cancelled) return true;
    ev exception = dict_find(f->a->in->w, f->results.dict, ev_int(index))->value;
    assert(exception.kind == EV_EXC);
    if (barrier->mode == BARRIER_GROUP) {
        /* As in asyncio.TaskGroup, a branch that ends with CancelledError is no failure. One branch alone ends so if
         * the child for which it waits is cancelled. */
        if (is_cancelled_error(f->a->in->w, exception)) return true;
        /* CPython 3.11 counts that as a cancellation of the group's own task, and does not take it back. */
        note_cancel(task_of(waiter));
        return cancel_branches(f);
    }
    if (barrier->mode != BARRIER_ALL || f->done == f->total) return true;
    detach(f);
    return unwind(waiter, exception);
}

/* ---- cancelling */

/* The innermost branch that the strand is in; NULL: it is in the first function, or in one that is called from
 * there. */
static const activation *branch_of(const strand *s) {
    const activation *a = s->a;
    while (a && !a->fan) a = a->caller;
    return a;
}

/* Whether the branch is code of the task that waits for it, and no task of its own (plan_node.here). */
static bool is_own_code(const activation *branch) {
    return branch && branch->fan->waiter && fan_node(branch->fan)->here && !branch->index;
}

/* Whether the first branch of a fan with plan_node.here has ended. */
static bool own_code_is_over(const fan *f) {
    return dict_find(f->a->in->w, f->results.dict, ev_int(0)) != NULL;
}

static strand *task_of(strand *s) {
    for (const activation *b; is_own_code(b = branch_of(s));) s = b->fan->waiter;
    return s;
}

/* Whether a branch of the fan is the innermost that the strand is in. NULL: whether the strand is in no branch. */
static bool is_in_branch(const strand *s, const fan *f) {
    const activation *b = branch_of(s);
    return b ? b->fan == f : !f;
}

static bool is_in_first_branch(const strand *s, const fan *f) {
    return is_in_branch(s, f) && !branch_of(s)->index;
}

/* Whether the strand has to be cancelled itself when the first function has ended: no strand waits for it, or
 * interrupt() of the strand that waits for it does not reach it. */
static bool is_left(const strand *s, const fan *unused) {
    const activation *b = branch_of(s);
    const fan *f = b ? b->fan : NULL;
    (void)unused;
    if (!f || !f->waiter) return true;
    if (fan_node(f)->here)
        return b->index && fan_limit(f, b->index) == PLAN_NONE && !own_code_is_over(f);
    return f->cancelled &&
           (fan_barrier(f)->mode == BARRIER_GROUP || fan_barrier(f)->mode == BARRIER_FIRST);
}

/* Calls `act` for the strands for which `is_meant` is true, in the order in which they were begun: a strand before its
 * branches. `act` may begin and end strands, so they are listed first. */
static bool for_each_strand(instance *in, bool (*is_meant)(const strand *, const fan *),
                            const fan *f, bool (*act)(strand *)) {
    VEC(strand *) all = { 0 };
    bool ok = true;
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_ENDED || !is_meant(s, f)) continue;
        ok = ok && vec_push(in->env, &all, s);
    }
    for (uint32_t i = 0; i < all.count && ok && !instance_is_over(in); i++) ok = act(all.items[i]);
    vec_fini(in->env, &all);
    return ok;
}

static bool interrupt(strand *s);

static bool cancel_task(strand *s) {
    note_cancel(s);
    return interrupt(s);
}

static bool cancel_branches(fan *f) {
    assert(!f->ended && f->done <= f->total);
    f->cancelled = true;
    fan_mark(f);
    return for_each_strand(f->a->in, is_in_branch, f, cancel_task);
}

/* The first branch is code of the task itself: it is interrupted where it waits, and the tasks beside it go on. When it
 * has ended, the task awaits these tasks: they are cancelled. */
static bool interrupt_own_code(fan *f) {
    return own_code_is_over(f) ? for_each_strand(f->a->in, is_in_branch, f, cancel_task)
                               : for_each_strand(f->a->in, is_in_first_branch, f, interrupt);
}

static bool raise_cancelled(strand *s) {
    ev exception = new_cancelled_error(s->in->w);
    return !ev_failed(exception) && unwind(s, exception);
}

/* Raises CancelledError where the strand waits, or in the branches or the child that it waits for. Branches that were
 * cancelled already are treated as in asyncio: members of a gather are cancelled again; a TaskGroup goes on waiting;
 * wait_for leaves its task behind. */
static bool interrupt(strand *s) {
    fan *f = s->waits_for;
    assert(s->state != STRAND_FAN || (f && f->waiter == s));
    if (s->state == STRAND_ENDED || strand_node(s)->kind == NODE_BARRIER) return true;
    if (s->state == STRAND_WALKING && s->cancelled) return true; /* it has not gone on since */
    if (f && fan_node(f)->here) return interrupt_own_code(f);
    if (f && f->cancelled && fan_barrier(f)->mode == BARRIER_GROUP) return true;
    s->cancelled++;
    strand_mark(s);
    if (f && f->cancelled && fan_barrier(f)->mode == BARRIER_FIRST) detach(f);
    else if (f) return cancel_branches(f);
    if (s->state != STRAND_CHILD) return raise_cancelled(s);
    /* The child is cancelled; when it has ended, the strand goes on. */
    if (!list_linked(&s->want)) list_push_back(&s->in->wanted, &s->want);
    return true;
}

bool unwind_branch_first(fan *f, uint32_t index) {
    if (f->cancelled || !f->waiter) return true;
    if (!fan_node(f)->here || !index) return cancel_branches(f);
    f->cancelled = true;
    fan_mark(f);
    note_cancel(task_of(f->waiter));
    return interrupt(f->waiter);
}

void unwind_limit_begins(fan *f) {
    if (fan_node(f)->here) f->cancels = task_of(f->waiter)->cancels;
}

bool unwind_limit_taken_back(fan *f) {
    strand *task = f->waiter ? task_of(f->waiter) : NULL;
    if (!task || !task->cancels) return true;
    strand_mark(task);
    if (--task->cancels <= f->cancels) return true;
    ev exception = new_cancelled_error(f->a->in->w);
    return !ev_failed(exception) && fan_keep(f, 1, exception, false);
}

bool unwind_cancel(instance *in) {
    assert(!instance_is_over(in));
    in->cancelling++;
    return in->ending || for_each_strand(in, is_in_branch, NULL, cancel_task);
}

bool unwind_leftovers(instance *in) {
    if (!in->ending || in->leftovers_cancelled) return true;
    in->leftovers_cancelled = true;
    return for_each_strand(in, is_left, NULL, cancel_task);
}

/* ---- the end */

/* If the first function has not ended, and no strand is left, the instance has stalled. */
void unwind_if_over(instance *in) {
    assert(in->strand_count >= in->fan_count && !instance_is_over(in));
    if (in->strand_count > in->fan_count) return;
    if (!in->ending) instance_conclude(in, INSTANCE_STALLED, ev_none());
    instance_end(in);
}

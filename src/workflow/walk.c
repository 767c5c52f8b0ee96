/* walk.c -- pushes: what a finished node makes ready.
 *
 * A strand that has finished a node goes along the node's edges. At the other end there is one more
 * arrival (deps_satisfied); when all that are required (deps_required) have come, the strand goes on with
 * that node. CALC, BRANCH, MERGE, LOOP_HEAD, CALL and the like run here and now; at ACTION, SLEEP and WAIT
 * the strand waits. Nothing looks for ready nodes: they are reached. docs/IR.md.
 *
 *     walk(): for each strand in the work list: run its nodes, follow their edges, until it waits
 *
 * That is the order in which asyncio's loop runs tasks: a task goes on until it waits, new ones and those that are
 * woken stand at the end of the list, and so does what the end of a branch brings about (branch_over).
 *
 * Every function that returns bool returns false when there is no memory (or the world's status says what
 * else); exceptions of the workflow are not failures.
 *
 * Cost: the nodes that are run and the edges that are followed, whatever the size of the instance and
 * however long it has been running. */
#include "workflow/walk.h"

#include "expr/dict.h"
#include "expr/encode.h"
#include "expr/iter.h"
#include "expr/text.h"
#include "expr/tuple.h"
#include "workflow/unwind.h"
#include <math.h>

/* CPython's default; activations of branches count as well. */
#define CALL_DEPTH_MAX 1000

static bool run_node(strand *s);
static bool run_branch(strand *s, const plan_node *n);
static bool run_fan_head(strand *s, const plan_node *n);
static bool walk_join(strand *s, const plan_node *barrier);
static bool fan_over(fan *f);
static bool branch_over(strand *s);

/* ---- the work list */

static bool go_on(strand *s) {
    assert(s->state != STRAND_ENDED && !s->a->ended);
    assert(s->node < activation_function(s->a)->node_count);
    strand_set_state(s, STRAND_WALKING);
    strand_mark(s);
    return s == s->in->runs || vec_push(s->in->env, &s->in->walking, s);
}

/* A loop that waits for nothing would hold up every other instance. No handler is asked: one in the loop would go
 * on with it. */
static bool give_up(instance *in, const strand *s) {
    assert(s->in == in && !instance_is_over(in));
    (void)raise_f(in->w, CLASS_Unsupported, "more than %llu nodes without waiting, at \"%s\"",
                  (unsigned long long)in->most_nodes, strand_node(s)->id);
    ev exception = raise_catch(in->w);
    if (exception.kind != EV_EXC) return false;
    instance_conclude(in, INSTANCE_FAILED, exception);
    instance_end(in);
    return true;
}

/* Strands that give way to each other for long need no more room than their number. */
static void drop_walked(instance *in) {
    in->walking.count -= in->walked;
    memmove(in->walking.items, in->walking.items + in->walked,
            in->walking.count * sizeof *in->walking.items);
    in->walked = 0;
}

/* Sets in->runs: the strand that runs goes on until it waits; then it is the turn of the first strand in the list that
 * has not ended meanwhile. False: every strand waits. */
static bool find_next(instance *in) {
    while (!in->runs || in->runs->state != STRAND_WALKING) {
        if (in->walked == in->walking.count) return false;
        in->runs = in->walking.items[in->walked++];
        if (in->walked >= in->walking.count / 2) drop_walked(in);
    }
    return true;
}

/* Runs nodes until every strand waits. */
static bool run_ready(instance *in, uint64_t last) {
    bool ok = true;
    while (ok && !instance_is_over(in) && find_next(in)) {
        strand *s = in->runs;
        if (strand_node(s)->kind == NODE_BARRIER) {
            ok = branch_over(s);
            continue;
        }
        /* A CALC without statements lets the strands that are ready go on before this one. */
        bool yields = strand_node(s)->kind == NODE_CALC && !strand_node(s)->code;
        instance_note(in, JOURNAL_NODES, JOURNAL_RUN, s);
        ok = in->counts.nodes++ < last ? run_node(s) : give_up(in, s);
        if (!ok || !yields || s->state != STRAND_WALKING) continue;
        in->runs = NULL;
        ok = go_on(s);
    }
    return ok;
}

/* When the first function has ended, strands that are ready still go on until they wait: asyncio.run cancels tasks when
 * its loop has run those that were ready. */
static hd_status walk(instance *in, bool ok) {
    uint64_t last = in->counts.nodes + in->most_nodes;
    assert(!in->walked);
    ok = ok && run_ready(in, last) && unwind_leftovers(in) && run_ready(in, last);
    vec_clear(&in->walking);
    in->walked = 0;
    in->runs = NULL;
    hd_status status = ok ? HD_OK : in->w->status ? in->w->status : HD_NOMEM;
    if (ok && !instance_is_over(in)) unwind_if_over(in);
    if (ok) instance_check(in);
    hd_status left = instance_leave(in);
    return status ? status : left;
}

/* ---- values */

/* Evaluates in the strand's variables. OUTCOME_RAISED: unwind() has moved the strand to a handler, or ended it; *ok
 * says whether that worked. */
static outcome eval(strand *s, code *c, ev *out, bool *ok) {
    assert(c && s->state != STRAND_ENDED && !s->a->ended);
    activation_mark(s->a);
    outcome o = machine_eval(s->in->w->machine, c, s->a->vars, out);
    *ok = o == OUTCOME_VALUE || (o == OUTCOME_RAISED && unwind(s, *out));
    return o;
}

/* Assigns a result to its target. *raised: the assignment has raised an exception, and unwind() has moved the strand to
 * a handler, or ended it. */
static bool bind(strand *s, const plan_target *t, ev value, bool *raised) {
    assert(!s->a->ended && s->state != STRAND_ENDED);
    bool ok = true;
    ev none;
    *raised = false;
    if (t->variable != PLAN_NONE) activation_assign(s->a, t->variable, value);
    if (!t->assign) return true;
    activation_assign(s->a, activation_function(s->a)->result, value);
    *raised = eval(s, t->assign, &none, &ok) != OUTCOME_VALUE;
    return ok;
}

/* ---- edges */

static arrivals *arrivals_at(instance *in, activation *a, uint32_t node) {
    assert(a->in == in && !a->ended);
    assert(node < activation_function(a)->node_count);
    for (uint32_t i = 0; i < a->ready.count; i++)
        if (a->ready.items[i].node == node) return &a->ready.items[i];
    return vec_push(in->env, &a->ready, ((arrivals){ .node = node })) ? &vec_last(&a->ready) : NULL;
}

/* One more arrival at a node that waits for several. The strand that completes them goes on; those that
 * came before have ended there. */
static bool count_arrival(strand *s, const plan_node *to, uint32_t node) {
    arrivals *a = arrivals_at(s->in, s->a, node);
    if (!a) return false;
    a->changed = true;
    activation_mark(s->a);
    a->satisfied++;
    assert(to->deps_required > 1 && a->satisfied <= to->deps_required); /* W2 */
    if (a->satisfied < to->deps_required) {
        instance_end_strand(s);
        return true;
    }
    a->satisfied = 0;
    s->node = node;
    return go_on(s);
}

static void note_edge(strand *s, edge_kind kind) {
    assert(kind != EDGE_FORWARD && kind != EDGE_EXCEPT);
    uint32_t before = s->in->journal.count;
    instance_note(s->in, JOURNAL_NODES, JOURNAL_EDGE, s);
    if (s->in->journal.count > before) vec_last(&s->in->journal).edge = kind;
}

static bool arrive(strand *s, const plan_edge *e) {
    assert(e->to < activation_function(s->a)->node_count && s->state != STRAND_ENDED);
    const plan_node *to = &activation_function(s->a)->nodes[e->to];
    s->in->counts.arrivals++;
    if (e->kind != EDGE_FORWARD) note_edge(s, e->kind);
    if (e->kind == EDGE_JOIN) return walk_join(s, to);
    s->back = e->kind == EDGE_BACK;
    if (to->deps_required > 1) return count_arrival(s, to, e->to);
    s->node = e->to;
    return go_on(s);
}

bool walk_along(strand *s, edge_kind kind, uint32_t index) {
    assert(s->state != STRAND_ENDED && kind < EDGE_KINDS);
    const plan_function *f = activation_function(s->a);
    const plan_node *n = strand_node(s);
    for (uint32_t i = 0; i < n->out_count; i++) {
        const plan_edge *e = plan_out(f, n, i);
        if (e->kind == kind && e->index == index) return arrive(s, e);
    }
    assert(false); /* the plan has been checked: the edge is there */
    return false;
}

/* Along all edges of its node: the strand takes the first, new strands the others. */
static bool follow(strand *s) {
    assert(strand_node(s)->out_count && s->state != STRAND_ENDED);
    activation *here = s->a;
    const plan_function *f = activation_function(here);
    const plan_node *n = strand_node(s);
    for (uint32_t i = 1; i < n->out_count; i++) {
        strand *other = instance_strand(s->in, here);
        if (!other || !arrive(other, plan_out(f, n, i))) return false;
    }
    return arrive(s, plan_out(f, n, 0));
}

/* The strand's node has this result. */
static bool finish(strand *s, ev result) {
    bool raised;
    return bind(s, &strand_node(s)->into, result, &raised) && (raised || follow(s));
}

/* ---- loops */

static loop_state *loop_at(activation *a, uint32_t node) {
    for (uint32_t i = 0; i < a->loops.count; i++)
        if (a->loops.items[i].node == node) return &a->loops.items[i];
    return NULL;
}

static void loop_set(world *w, loop_state *l, ev over, ev source) {
    world_ref(over);
    world_ref(source);
    world_unref(w, l->over);
    world_unref(w, l->source);
    l->over = over;
    l->source = source;
    l->size = source.kind == EV_UNBOUND ? 0 : ev_length(w, source);
}

/* Lists are iterated over as they are, by index: what the body appends is seen. Everything else is taken
 * as a list first; a dict or set that changes its size meanwhile is an error, as in CPython. Of a view of a dict the
 * keys are taken, and each value is read when its turn comes. */
static bool loop_begin(strand *s, ev over) {
    assert(strand_node(s)->kind == NODE_LOOP_HEAD && !s->back);
    world *w = s->in->w;
    bool live = over.kind == EV_LIST || over.kind == EV_TUPLE || over.kind == EV_STR ||
                over.kind == EV_RANGE;
    bool sized = over.kind == EV_DICT || over.kind == EV_SET || over.kind == EV_VIEW;
    ev taken = live ? over : iter_list(w, over.kind == EV_VIEW ? over.view->of : over);
    if (ev_failed(taken)) return false;
    loop_state *l = loop_at(s->a, s->node);
    if (!l) {
        loop_state fresh = { .node = s->node, .over = ev_unbound(), .source = ev_unbound() };
        if (!vec_push(s->in->env, &s->a->loops, fresh)) return w->status = HD_NOMEM, false;
        l = &vec_last(&s->a->loops);
    }
    loop_set(w, l, taken, sized ? over : ev_unbound());
    l->visit = 0;
    l->ended = false;
    l->entered = l->changed = true;
    return true;
}

typedef enum turn { TURN_NEXT, TURN_OVER, TURN_RAISED } turn;

/* The nth entry of a loop over a dict, a set or a view of a dict. If the body has removed a key, it has added another
 * one, or the same one again: the size is the same. CPython might visit that, or raise an exception, depending on when
 * it last rebuilt the dict: that is refused. A key that was added again stands behind the next one. */
static const dict_entry *entry_at(world *w, const loop_state *l, uint64_t n) {
    const dict *d = l->source.kind == EV_VIEW ? l->source.view->of.dict : l->source.dict;
    const ev *keys = l->over.list->items;
    const dict_entry *e = dict_find(w, d, keys[n]);
    const dict_entry *before = n ? dict_find(w, d, keys[n - 1]) : NULL;
    if (e && (!n || (before && before < e))) return e;
    if (!raise_is_pending(w))
        (void)raise_f(w, CLASS_Unsupported, "keys that a loop replaces by others while it runs");
    return NULL;
}

static ev element_at(world *w, const loop_state *l, uint64_t n) {
    const dict_entry *e = entry_at(w, l, n);
    view_what what = l->source.kind == EV_VIEW ? l->source.view->what : VIEW_KEYS;
    return e ? view_item(w, what, e) : ev_fail();
}

/* The keys are looked at once more: the body may have replaced one after it was visited. */
static turn end_of_loop(world *w, const loop_state *l) {
    for (uint32_t i = 0; l->source.kind != EV_UNBOUND && i < l->over.list->count; i++)
        if (!entry_at(w, l, i)) return TURN_RAISED;
    return TURN_OVER;
}

/* The next element of a for loop. */
static turn loop_element(world *w, const loop_state *l, ev *out) {
    assert(!l->ended);
    if (l->source.kind != EV_UNBOUND && ev_length(w, l->source) != l->size) {
        (void)raise_f(w, CLASS_RuntimeError, "%s changed size during iteration",
                      l->source.kind == EV_SET ? "Set" : "dictionary");
        return TURN_RAISED;
    }
    if ((int64_t)l->visit >= ev_length(w, l->over)) return end_of_loop(w, l);
    *out = sequence_at(w, l->over, l->visit);
    if (l->source.kind != EV_UNBOUND) *out = element_at(w, l, l->visit);
    return ev_failed(*out) ? TURN_RAISED : TURN_NEXT;
}

/* The strand goes along CONTINUE or BREAK. Nothing of the body is reset: its state is kept by visit. */
static bool loop_decide(strand *s, loop_state *l, turn t, ev element) {
    assert(l && l->node == s->node && !l->ended);
    bool raised;
    activation_mark(s->a); /* the end of a loop may be all that changes in it */
    if (t == TURN_RAISED) return unwind_pending(s);
    if (t == TURN_OVER) {
        loop_set(s->in->w, l, ev_unbound(), ev_unbound());
        l->ended = l->changed = true;
        return walk_along(s, EDGE_BREAK, 0);
    }
    l->visit++;
    l->changed = true;
    if (!bind(s, &strand_node(s)->into, element, &raised)) return false;
    return raised || walk_along(s, EDGE_CONTINUE, 0);
}

static bool run_for(strand *s, const plan_node *n) {
    bool ok;
    ev over, element = ev_unbound();
    if (!s->back) {
        if (eval(s, n->code, &over, &ok) != OUTCOME_VALUE) return ok;
        if (!loop_begin(s, over)) return unwind_pending(s);
    }
    s->back = false;
    loop_state *l = loop_at(s->a, s->node);
    turn t = loop_element(s->in->w, l, &element);
    return loop_decide(s, l, t, element);
}

static bool run_while(strand *s, const plan_node *n) {
    bool ok;
    ev test;
    if (!s->back && !loop_begin(s, s->in->w->empty_tuple)) return unwind_pending(s);
    s->back = false;
    if (eval(s, n->test, &test, &ok) != OUTCOME_VALUE) return ok;
    int truth = ev_truth(s->in->w, test);
    if (truth < 0) return unwind_pending(s);
    return loop_decide(s, loop_at(s->a, s->node), truth ? TURN_NEXT : TURN_OVER, ev_unbound());
}

/* ---- branches */

/* Whether a branch of `f` begins before `other`, a branch of a fan around `f` with a higher number (plan_node.here). */
static bool is_before(const fan *f, const strand *other) {
    const fan *outer = other->a->fan;
    return outer && other->node != fan_node(outer)->pair &&
           fan_node(outer)->here > fan_node(f)->here && activation_is_of(f->a, outer);
}

/* Tasks begin in the order in which they were created, which is that of the numbers plan_node.here. The fan of the task
 * that is awaited last is the outermost one, and may have put its branches into the list already: the branch of `f`
 * that was put there last moves before those. */
static void put_in_order(fan *f) {
    const instance *in = f->a->in;
    uint32_t i = in->walking.count;
    strand **all = in->walking.items;
    for (; i-- > in->walked + 1 && is_before(f, all[i - 1]);) {
        strand *s = all[i];
        all[i] = all[i - 1];
        all[i - 1] = s;
    }
}

/* Moves the strands that stand in the list from index `from` on to index `*to`, and `*to` behind them. */
static void move_before(instance *in, uint32_t *to, uint32_t from) {
    strand **all = in->walking.items;
    assert(*to <= from && from <= in->walking.count);
    for (; from < in->walking.count; from++) {
        strand *s = all[from];
        memmove(all + *to + 1, all + *to, (from - *to) * sizeof *all);
        all[(*to)++] = s;
    }
}

/* Whether the node is a BRANCH, and some way of it begins with a FAN_HEAD that has `now`. */
static bool chooses_now(const strand *s, const plan_node *n) {
    const plan_function *f = activation_function(s->a);
    if (n->kind != NODE_BRANCH) return false;
    for (uint32_t i = 0; i < n->out_count; i++)
        if (f->nodes[plan_out(f, n, i)->to].now) return true;
    return false;
}

/* asyncio.gather that is given to asyncio.gather has begun its tasks already: with `now` a FAN_HEAD at the beginning of
 * the branch is run here, and its branches go before those of this fan; so is a BRANCH that leads to one. Any other
 * BRANCH waits for its strand's turn. Such fans are nested no deeper than the source. */
static bool enter_nested(strand *s, uint32_t *nested) {
    uint32_t before = s->in->walking.count;
    bool ok = true;
    if (chooses_now(s, strand_node(s))) ok = run_branch(s, strand_node(s));
    if (!ok || s->state != STRAND_WALKING || !strand_node(s)->now) return ok;
    ok = run_fan_head(s, strand_node(s));
    move_before(s->in, nested, before);
    return ok;
}

/* Puts the branch at the end of the list. With plan_node.here the first branch is code of the strand itself: it runs on
 * now, and is not in the list. */
static bool enter_branch(fan *f, strand *s, uint32_t edge, uint32_t *nested) {
    instance *in = s->in;
    strand *before = in->runs;
    in->runs = s; /* not in the list yet */
    bool ok = walk_along(s, EDGE_ELEM, edge) && enter_nested(s, nested);
    if (fan_node(f)->here && !s->a->index) return ok;
    in->runs = before;
    if (ok && s->state == STRAND_WALKING) ok = go_on(s);
    if (ok && fan_node(f)->here) put_in_order(f);
    return ok;
}

/* `nested`: the index in the list at which the branches of this fan begin. Branches of a FAN_HEAD with `now` go there,
 * before them. */
static bool begin_branch(fan *f, uint32_t *nested) {
    assert(!f->ended && !f->cancelled && f->waiter && f->begun < f->total);
    instance *in = f->a->in;
    uint32_t index = f->begun++;
    bool each = f->items.kind != EV_UNBOUND, raised = false;
    activation *a = instance_branch(in, f, index);
    strand *s = a ? instance_strand(in, a) : NULL;
    if (!s) return false;
    s->node = f->node;
    fan_mark(f);
    if (each && !bind(s, &fan_node(f)->into, f->items.tuple->items[index], &raised)) return false;
    memset(a->vars->changed.items, 0, a->vars->changed.count); /* loading binds the element again */
    return raised || enter_branch(f, s, each ? 0 : index, nested);
}

hd_status walk_bind_element(fan *f, activation *a) {
    assert(a->fan == f && a->index < f->total);
    const plan_target *t = &fan_node(f)->into;
    world *w = a->in->w;
    ev element, none;
    if (f->items.kind == EV_UNBOUND) return HD_OK;
    element = f->items.tuple->items[a->index];
    if (t->variable != PLAN_NONE) activation_assign(a, t->variable, element);
    if (t->assign) activation_assign(a, activation_function(a)->result, element);
    if (t->assign && machine_eval(w->machine, t->assign, a->vars, &none) == OUTCOME_STOPPED)
        return w->status ? w->status : HD_NOMEM;
    memset(a->vars->changed.items, 0, a->vars->changed.count);
    return HD_OK;
}

static uint32_t window_of(const fan *f) {
    return fan_node(f)->window ? fan_node(f)->window : FAN_WINDOW;
}

/* Begins as many branches as may be open at once; if all have ended, the fan-out is over. A branch whose element does
 * not fit its target ends while it is begun, and its end calls this function again: that call returns at once
 * (fan.beginning), and the outer one goes on with the next branch, so that the stack stays flat. */
static bool fan_go_on(fan *f) {
    assert(!f->ended && f->done <= f->begun && f->begun <= f->total);
    uint32_t window = window_of(f);
    uint32_t nested = f->a->in->walking.count;
    bool ok = true;
    if (f->beginning) return true;
    f->beginning = true;
    while (ok && !f->cancelled && f->waiter && f->begun < f->total && f->begun - f->done < window)
        ok = begin_branch(f, &nested);
    f->beginning = false;
    return ok && (f->ended || f->done < f->begun || fan_over(f));
}

/* From here on (number, step) names the step. Nothing is left of the one before, which may have been interrupted. */
static void begin_wait(strand *s, strand_state state) {
    s->step++;
    assert(s->step); /* it has not counted through */
    s->attempt = 1;
    s->lost = 0;
    s->cancelled = 0;
    s->due_ms = 0;
    s->since_ms = s->in->now_ms;
    strand_set_state(s, state);
}

static bool run_fan_head(strand *s, const plan_node *n) {
    assert(n->kind == NODE_FAN_HEAD && !s->waits_for);
    world *w = s->in->w;
    ev over = ev_unbound();
    bool ok;
    if (n->code) {
        if (eval(s, n->code, &over, &ok) != OUTCOME_VALUE) return ok;
        over = iter_list(w, over);
        if (!ev_failed(over)) over = tuple_of(w, over.list->items, over.list->count);
        if (ev_failed(over)) return unwind_pending(s);
    }
    world_ref(over);
    fan *f = instance_fan(s->in, s);
    if (!f) return world_unref(w, over), false;
    f->items = over;
    f->total = n->code ? over.tuple->count : n->out_count;
    if (fan_barrier(f)->mode == BARRIER_FIRST && f->total <= window_of(f)) {
        f->steps_begun = *s->in->steps_begun + 1;
        *s->in->steps_begun += f->total;
        unwind_limit_begins(f);
    }
    begin_wait(s, STRAND_FAN);
    return fan_go_on(f);
}

/* The branch's result or exception. A branch that was not begun before the fan was cancelled counts as cancelled, and
 * so does one whose result is missing in the document. */
static ev fan_result(const fan *f, uint32_t index) {
    world *w = f->a->in->w;
    const dict_entry *e = dict_find(w, f->results.dict, ev_int(index));
    return e ? e->value : new_cancelled_error(w);
}

/* The first results in order of the branches, as a list. */
static ev fan_list(fan *f, uint32_t count) {
    assert(count <= f->total && f->results.kind == EV_DICT);
    world *w = f->a->in->w;
    ev all = plist_new(w, count);
    for (uint32_t i = 0; i < count && !ev_failed(all); i++) {
        ev result = fan_result(f, i);
        if (ev_failed(result) || !plist_append(w, all.list, result)) return ev_fail();
    }
    return all;
}

/* ExceptionGroup("unhandled errors in a TaskGroup", [...]); EV_UNBOUND: no branch has failed, some were cancelled. */
static ev fan_group(fan *f) {
    world *w = f->a->in->w;
    uint32_t at = 0;
    ev all = plist_new(w, 1), pair[2];
    for (const dict_entry *e; !ev_failed(all) && (e = dict_next(f->results.dict, &at));)
        if (e->value.kind == EV_EXC && !is_cancelled_error(w, e->value) &&
            !plist_append(w, all.list, e->value))
            return ev_fail();
    if (!ev_failed(all) && !all.list->count) return ev_unbound();
    pair[0] = text_of_ascii(w, "unhandled errors in a TaskGroup");
    pair[1] = all;
    if (ev_failed(all) || ev_failed(pair[0])) return ev_fail();
    ev args = tuple_of(w, pair, 2);
    return ev_failed(args) ? args : exc_new(w, CLASS_ExceptionGroup, args);
}

/* The exception that the BARRIER raises; EV_UNBOUND: none. */
static ev fan_raises(fan *f) {
    assert(f->waiter && f->done == f->begun);
    world *w = f->a->in->w;
    barrier_mode mode = fan_barrier(f)->mode;
    uint32_t at = 0;
    /* What a workflow cannot do is no result of gather, nor part of a group. */
    for (const dict_entry *e; f->failed != PLAN_NONE && (e = dict_next(f->results.dict, &at));)
        if (e->value.kind == EV_EXC && e->value.o->class_ == CLASS_Unsupported) return e->value;
    if (mode == BARRIER_GROUP && f->failed != PLAN_NONE) {
        ev group = fan_group(f);
        if (group.kind != EV_UNBOUND) return group;
    }
    if (f->failed != PLAN_NONE && (mode == BARRIER_ALL || mode == BARRIER_ORDERED))
        return fan_result(f, f->failed);
    return f->waiter->cancelled ? new_cancelled_error(w) : ev_unbound();
}

/* For "ordered", which stands for a loop: the loop would have done everything before the element that failed. So the
 * target gets these results first, then the exception is raised. */
static bool raise_after(strand *s, const plan_node *barrier, ev results, ev exception) {
    bool raised;
    world_ref(exception);
    bool ok = bind(s, &barrier->into, results, &raised) && (raised || unwind(s, exception));
    world_unref(s->in->w, exception);
    return ok;
}

/* All branches have ended: the strand that waited goes on behind the BARRIER. */
static bool fan_over(fan *f) {
    assert(!f->ended && f->done == f->begun);
    strand *s = f->waiter;
    if (!s) return true;
    ev raises = fan_raises(f),
       all = raises.kind == EV_UNBOUND ? fan_list(f, f->total) : ev_unbound();
    bool ordered =
        raises.kind == EV_EXC && !f->cancelled && fan_barrier(f)->mode == BARRIER_ORDERED;
    if (ordered) all = fan_list(f, f->failed);
    instance_leave_fan(f);
    if (ev_failed(raises) || ev_failed(all)) return unwind_pending(s);
    if (ordered) return raise_after(s, fan_barrier(f), all, raises);
    if (raises.kind != EV_UNBOUND) return unwind(s, raises);
    s->node = fan_node(f)->pair;
    return finish(s, all);
}

/* A branch has ended: other branches are cancelled or begun, or the fan-out is over. If the branch was code of the
 * waiting strand itself (plan_node.here), that strand runs on in its place. */
static bool branch_over(strand *s) {
    fan *f = s->a->fan;
    uint32_t index = s->a->index;
    assert(f && !f->ended && strand_node(s)->kind == NODE_BARRIER);
    if (f->done == f->begun) { /* a damaged document had the branch twice: it has ended before */
        instance_end_strand(s);
        return true;
    }
    bool own = fan_node(f)->here && !index, first = fan_barrier(f)->mode == BARRIER_FIRST;
    instance_end_strand(s);
    f->done++;
    if (own && s->in->runs == s) s->in->runs = f->waiter;
    if (s->failed && !unwind_branch_failed(f, fan_barrier(f), index)) return false;
    if (first && own && f->cancelled && !unwind_limit_taken_back(f)) return false;
    if (first && f->done == 1 && !unwind_branch_first(f, index)) return false;
    return f->ended || fan_go_on(f);
}

/* The exception as asyncio.gather(return_exceptions=True) gives it: for a task that was cancelled it makes a new
 * CancelledError(''). */
static ev settled_result(world *w, ev exception) {
    if (!is_cancelled_error(w, exception)) return exception;
    ev args = tuple_of(w, &w->empty_str, 1);
    return ev_failed(args) ? args : exc_new(w, CLASS_CancelledError, args);
}

/* The strand goes to the BARRIER, at the end of the list: asyncio's loop, too, runs the tasks that are ready before it
 * wakes what waits for a task. So a branch that fails before it waits does not keep the others from beginning. */
bool walk_branch_over(strand *s, ev result, bool failed) {
    fan *f = s->a->fan;
    assert(f && !f->ended && !s->waits_for);
    if (failed && fan_barrier(f)->mode == BARRIER_SETTLED)
        result = settled_result(s->in->w, result);
    if (ev_failed(result) || !fan_keep(f, s->a->index, result, failed)) return false;
    s->node = fan_node(f)->pair;
    s->failed = failed;
    if (fan_node(f)->here) return branch_over(s);
    if (s->in->runs == s) s->in->runs = NULL;
    return go_on(s);
}

static bool walk_join(strand *s, const plan_node *barrier) {
    assert(barrier->kind == NODE_BARRIER && s->a->fan);
    bool ok;
    ev result = ev_none();
    s->node = fan_node(s->a->fan)->pair;
    if (barrier->code && eval(s, barrier->code, &result, &ok) != OUTCOME_VALUE) return ok;
    return walk_branch_over(s, result, false);
}

/* ---- nodes that wait */

static void begin_step(strand *s, strand_state state) {
    assert(s->state == STRAND_WALKING && !s->child);
    begin_wait(s, state);
    instance_count_begun(s);
    strand_mark(s);
}

/* All arguments are evaluated before the first is encoded: one of them may change an object that another one names.
 * *out is a tuple, referenced for the caller. *raised: there is none, and unwind() has moved the strand to a handler,
 * or ended it. */
static bool eval_args(strand *s, const plan_node *n, ev *out, bool *raised) {
    world *w = s->in->w;
    bool ok = true;
    *raised = false;
    *out = tuple_new(w, n->arg_count);
    if (ev_failed(*out)) return false;
    world_ref(*out);
    for (uint32_t i = 0; i < n->arg_count; i++) {
        ev v;
        *raised = eval(s, n->args[i], &v, &ok) != OUTCOME_VALUE;
        if (*raised) return world_unref(w, *out), ok;
        out->tuple->items[i] = v;
        world_ref(v);
    }
    return true;
}

/* As a worker gets them: an object for named ones, else an array. */
static hd_value encode_args(world *w, hd_pool *pool, const plan_node *n, const tuple *given) {
    hd_value args = n->arg_names ? hd_object() : hd_array();
    for (uint32_t i = 0; i < n->arg_count && hd_value_exists(args); i++) {
        hd_value plain = encode_value(w, pool, given->items[i]);
        if (!hd_value_exists(plain)) return plain;
        args = n->arg_names ? hd_object_set(pool, args, n->arg_names[i], plain)
                            : hd_array_append(pool, args, plain);
    }
    return args;
}

static bool compute_args(strand *s, const plan_node *n, bool *raised) {
    assert(n->kind == NODE_ACTION || n->kind == NODE_CHILD);
    world *w = s->in->w;
    hd_pool *pool;
    ev given;
    bool ok = eval_args(s, n, &given, raised);
    if (!ok || *raised) return ok;
    if (hd_pool_open(s->in->heap, &pool)) return world_unref(w, given), false;
    hd_value args = encode_args(w, pool, n, given.tuple);
    world_unref(w, given);
    *raised = !hd_value_exists(args);
    if (!*raised) {
        hd_value_unref(s->args);
        s->args = hd_value_ref(args);
    }
    hd_pool_close(pool);
    return *raised ? unwind_pending(s) : true;
}

hd_status walk_compute_args(strand *s) {
    bool raised;
    if (!compute_args(s, strand_node(s), &raised))
        return s->in->w->status ? s->in->w->status : HD_NOMEM;
    return raised ? HD_CORRUPT : HD_OK;
}

static bool run_child(strand *s, const plan_node *n) {
    bool raised;
    if (!compute_args(s, n, &raised)) return false;
    if (raised) return true;
    begin_step(s, STRAND_CHILD);
    s->child_begun = false;
    s->child_tag = 0;
    list_push_back(&s->in->wanted, &s->want);
    return true;
}

/* The key of the step's limit: a text as it is, any other value as JSON. */
static bool compute_limit(strand *s, const plan_node *n, bool *raised) {
    hd_pool *pool;
    bool ok;
    ev v;
    size_t length = 0;
    *raised = false;
    hd_value_unref(s->limit);
    s->limit = (hd_value){ 0 };
    if (!n->limit_key) return true;
    *raised = eval(s, n->limit_key, &v, &ok) != OUTCOME_VALUE;
    if (*raised) return ok;
    if (hd_pool_open(s->in->heap, &pool)) return false;
    hd_value key = encode_value(s->in->w, pool, v);
    *raised = !hd_value_exists(key);
    if (!*raised && hd_value_kind(key) != HD_KIND_STRING) {
        const char *json = hd_json_print(pool, key, HD_JSON_COMPACT, &length);
        key = json ? hd_string_n(pool, json, length) : hd_failed(HD_NOMEM);
    }
    ok = *raised ? unwind_pending(s) : hd_value_exists(key);
    if (!*raised && ok) s->limit = hd_value_ref(key);
    hd_pool_close(pool);
    return ok;
}

static bool run_action(strand *s, const plan_node *n) {
    bool raised;
    if (!compute_args(s, n, &raised)) return false;
    if (raised) return true;
    if (!compute_limit(s, n, &raised)) return false;
    if (!raised) begin_step(s, STRAND_READY);
    return true;
}

/* The wall-clock time at which a wait of so many seconds ends. *raised: `v` is no such number. For a SLEEP the
 * exception is that of asyncio.sleep, which compares the seconds with 0; for `until` that of datetime. As in asyncio a
 * wait of less than no time is over at once, and so is one of nan. */
static bool due_of(strand *s, ev v, bool until, bool *raised, uint64_t *due) {
    v = ev_bare(v);
    double seconds = v.kind == EV_FLOAT ? v.d : (double)v.i;
    *raised = !ev_is_number(v) || (isnan(seconds) && until);
    if (*raised && strand_node(s)->kind == NODE_SLEEP && !until)
        return (void)ev_order(s->in->w, COMPARE_LE, v, ev_int(0)), unwind_pending(s);
    if (*raised && ev_is_number(v))
        return unwind_new(s, CLASS_ValueError, "cannot convert float NaN to integer");
    if (*raised) return unwind_new(s, CLASS_TypeError, "seconds must be a number");
    if (!until && !(seconds > 0)) seconds = 0;
    double at = until ? seconds * 1000 : (double)s->in->now_ms + seconds * 1000;
    *due = at < 1 ? 1 : at > 9e15 ? (uint64_t)9e15 : (uint64_t)ceil(at);
    return true;
}

/* As in asyncio it is begun before the steps of the branch that it limits, if they are due together. */
static bool is_limit(const strand *s) {
    const fan *f = s->a->fan;
    return f && f->steps_begun && fan_limit(f, s->a->index) == s->node;
}

/* SLEEP, and WAIT with a limit. */
static bool run_wait(strand *s, const plan_node *n, strand_state state) {
    bool ok, raised;
    uint64_t due = 0;
    ev seconds;
    if (n->code) {
        if (eval(s, n->code, &seconds, &ok) != OUTCOME_VALUE) return ok;
        ok = due_of(s, seconds, n->until, &raised, &due);
        if (!ok || raised) return ok;
    }
    begin_step(s, state);
    if (is_limit(s)) s->begun = s->a->fan->steps_begun + s->a->index;
    s->due_ms = due;
    return true;
}

/* ---- nodes that run at once */

static bool run_branch(strand *s, const plan_node *n) {
    uint32_t i = 0;
    for (bool ok; i < n->arg_count; i++) {
        ev test;
        if (eval(s, n->args[i], &test, &ok) != OUTCOME_VALUE) return ok;
        int truth = ev_truth(s->in->w, test);
        if (truth < 0) return unwind_pending(s);
        if (truth) break;
    }
    return walk_along(s, EDGE_GUARD, i);
}

static bool run_call(strand *s, const plan_node *n) {
    assert(n->kind == NODE_CALL && n->callee < s->in->p->function_count);
    if (s->a->depth >= CALL_DEPTH_MAX)
        return unwind_new(s, CLASS_RecursionError, "maximum recursion depth exceeded");
    activation *here = s->a, *a = instance_activation(s->in, n->callee, here, s->node);
    if (!a) return false;
    for (uint32_t i = 0; i < n->arg_count; i++) {
        ev v;
        bool ok;
        if (eval(s, n->args[i], &v, &ok) != OUTCOME_VALUE) return activation_drop(a), ok;
        if (v.kind == EV_ITER)
            return activation_drop(a), raise_iterator(s->in->w), unwind_pending(s);
        activation_assign(a, i, v);
    }
    strand_move(s, a);
    s->node = activation_function(a)->entry;
    return go_on(s);
}

static bool run_return(strand *s, const plan_node *n) {
    bool ok;
    ev value = ev_none();
    if (n->code && eval(s, n->code, &value, &ok) != OUTCOME_VALUE) return ok;
    if (n->kind == NODE_RETURN) {
        instance_conclude(s->in, INSTANCE_DONE, value);
        instance_end_strand(s);
        return true;
    }
    if (value.kind == EV_ITER) return raise_iterator(s->in->w), unwind_pending(s);
    activation *a = s->a;
    assert(a->caller && a->call_node != PLAN_NONE && !a->fan);
    world_ref(value);
    s->node = a->call_node;
    strand_move(s, a->caller);
    ok = finish(s, value);
    world_unref(s->in->w, value);
    return ok;
}

static bool run_raise(strand *s, const plan_node *n) {
    assert(n->code || n->caught != PLAN_NONE);
    bool ok;
    ev exception;
    if (n->code && eval(s, n->code, &exception, &ok) != OUTCOME_VALUE) return ok;
    exception = n->code ? exc_of(s->in->w, exception) : s->a->vars->slots.items[n->caught];
    if (ev_failed(exception)) return unwind_pending(s);
    if (exception.kind != EV_EXC)
        return unwind_new(s, CLASS_TypeError, "exceptions must derive from BaseException");
    return unwind(s, exception);
}

static bool run_calc(strand *s, const plan_node *n) {
    bool ok;
    ev none;
    if (n->code && eval(s, n->code, &none, &ok) != OUTCOME_VALUE) return ok;
    return follow(s);
}

static bool run_node(strand *s) {
    assert(s->state == STRAND_WALKING && !s->waits_for);
    const plan_node *n = strand_node(s);
    switch (n->kind) {
    case NODE_ENTRY:
    case NODE_MERGE: return follow(s);
    case NODE_CALC: return run_calc(s, n);
    case NODE_ACTION: return run_action(s, n);
    case NODE_BRANCH: return run_branch(s, n);
    case NODE_LOOP_HEAD: return n->test ? run_while(s, n) : run_for(s, n);
    case NODE_FAN_HEAD: return run_fan_head(s, n);
    case NODE_SLEEP: return run_wait(s, n, STRAND_SLEEPING);
    case NODE_WAIT: return run_wait(s, n, STRAND_SIGNAL);
    case NODE_CALL: return run_call(s, n);
    case NODE_CHILD: return run_child(s, n);
    case NODE_RAISE: return run_raise(s, n);
    case NODE_RET:
    case NODE_RETURN: return run_return(s, n);
    default: break;
    }
    assert(false); /* BARRIER: branch_over(); HANDLER: unwind() */
    return false;
}

/* ---- from outside */

hd_status walk_begin(instance *in, const ev *inputs) {
    assert(!in->root && !in->walking.count && list_empty(&in->strands));
    activation *a = instance_activation(in, 0, NULL, PLAN_NONE);
    strand *s = a ? instance_strand(in, a) : NULL;
    if (!s) return HD_NOMEM;
    instance_enter(in);
    instance_note(in, JOURNAL_STEPS, JOURNAL_START, NULL);
    for (uint32_t i = 0; i < in->p->input_count; i++) activation_assign(a, i, inputs[i]);
    return walk(in, go_on(s));
}

hd_status walk_at(instance *in, uint32_t node) {
    assert(in->root && node < in->p->functions[0].node_count && !in->walking.count);
    strand *s = instance_strand(in, in->root);
    if (!s) return HD_NOMEM;
    instance_enter(in);
    instance_note(in, JOURNAL_STEPS, JOURNAL_START, NULL);
    s->node = node;
    return walk(in, go_on(s));
}

/* The step is over: its claim has ended, and no timer is left. */
static void end_step(strand *s) {
    assert(s->state > STRAND_WALKING && s->state < STRAND_FAN);
    assert(!s->token && !s->child);
    list_discard(&s->want);
    s->attempt = 1; /* the nodes that follow have no attempts */
    s->lost = 0;
    s->due_ms = 0;
    strand_mark(s);
    hd_value_unref(s->args);
    hd_value_unref(s->limit);
    hd_value_unref(s->why);
    s->args = s->limit = s->why = (hd_value){ 0 };
}

hd_status walk_result(instance *in, strand *s, ev result) {
    assert(s->in == in && !instance_is_over(in) && !in->walking.count);
    instance_enter(in);
    instance_note(in, JOURNAL_STEPS, JOURNAL_DONE, s);
    end_step(s);
    in->runs = s;
    return walk(in, finish(s, result));
}

hd_status walk_raise(instance *in, strand *s, ev exception) {
    assert(s->in == in && !instance_is_over(in) && exception.kind == EV_EXC);
    instance_enter(in);
    instance_note(in, JOURNAL_STEPS, JOURNAL_RAISE, s);
    end_step(s);
    in->runs = s;
    return walk(in, unwind(s, exception));
}

hd_status walk_cancel(instance *in) {
    assert(!instance_is_over(in) && !in->walking.count);
    instance_enter(in);
    instance_note(in, JOURNAL_STEPS, JOURNAL_CANCEL, NULL);
    return walk(in, unwind_cancel(in));
}

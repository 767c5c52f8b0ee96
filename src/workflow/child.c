/* child.c -- instances that are steps of others.
 *
 * A strand at a CHILD waits for an instance of its own, whose id is made from the parent's id and the step. The first
 * commit of the child is the one that stores that its parent waits, and the child's end and what the parent makes of
 * it are one commit too. Both know each other in memory (live.awaited, strand.child); after a restart the parent
 * finds its child by the id. A strand that comes to a CHILD has no child yet, so an instance that has the id by then
 * is another's: one of a parent that was removed and had the same id, or one that a program has started. Then the id
 * of the child ends with a random number, which the parent's document keeps (strand.child_tag).
 *
 * Walks only note that something is to be done: the instance is put into engine.families, and child_work goes
 * through them one by one before the next commit, so that children of children need no deep stack. A child whose
 * parent waits no longer is cancelled. A child of a parent that is paused begins when the pause ends. */
#include "workflow/child_id.h"
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include "expr/encode.h"
#include <inttypes.h>
#include <stdio.h>

#define DEPTH_MAX 100 /* children within children */
#define KEY_MAX   100

/* "charge/<parent's id with : for />.<strand>.<step>", and the tag if there is one; a long one becomes a hash. Where
 * there are several shards the id ends with the parent's place: both are in one shard. */
void child_id(const child_step *s, char out[HD_INSTANCE_ID_SIZE]) {
    char key[HD_INSTANCE_ID_SIZE + 48];
    int length = snprintf(key, sizeof key, "%s.%u.%u", s->parent, s->strand, s->step);
    if (s->tag) length += snprintf(key + length, sizeof key - (size_t)length, ".%" PRIx64, s->tag);
    for (char *c = key; *c; c++)
        if (*c == '/') *c = ':';
    if (length > KEY_MAX)
        snprintf(key, sizeof key, "%016llx%016llx",
                 (unsigned long long)hash_bytes(key, (size_t)length, 1),
                 (unsigned long long)hash_bytes(key, (size_t)length, 2));
    if (!s->in_shards) snprintf(out, HD_INSTANCE_ID_SIZE, "%.100s/%.120s", s->workflow, key);
    else
        snprintf(out, HD_INSTANCE_ID_SIZE, "%.100s/%.120s~%04x", s->workflow, key,
                 (unsigned)shard_place(s->parent));
}

static void id_of(const strand *s, char out[HD_INSTANCE_ID_SIZE]) {
    const live *parent = s->in->owner;
    child_step at = { .parent = parent->id,
                      .workflow = strand_node(s)->name,
                      .strand = s->number,
                      .step = s->step,
                      .tag = s->child_tag,
                      .in_shards = parent->e->shard_count > 1 };
    child_id(&at, out);
}

/* The child gets an id that no other instance has. The strand has yet to be stored at this step. */
static void draw_tag(strand *s) {
    const live *parent = s->in->owner;
    assert(!s->child_begun && list_linked(&s->news));
    s->child_tag = (env_random_u64(parent->e->env) >> 24) + 1;
}

/* ---- noting */

void child_note(live *l) {
    bool is_due = l->in && (!list_empty(&l->in->wanted) || l->orphaned ||
                            (instance_is_over(l->in) && l->awaited));
    if (is_due && !list_linked(&l->family)) list_push_back(&l->e->families, &l->family);
}

void child_unlink(strand *s) {
    live *c = s->child;
    assert(!c || c->awaited == s);
    if (c) c->awaited = NULL;
    s->child = NULL;
}

/* The strand waits no longer, and its child has not ended. */
static void orphan(strand *s, bool abandoned) {
    live *c = s->child;
    child_unlink(s);
    if (!c) return;
    c->orphaned = true;
    c->abandoned = abandoned;
    child_note(c);
}

void child_leave(live *l) {
    if (!l->in) return;
    LIST_FOR (n, &l->in->strands) orphan(LIST_ENTRY(n, strand, link), true);
}

void child_forget(live *l) {
    strand *s = l->awaited;
    list_discard(&l->family);
    if (!s) return;
    child_unlink(s);
    if (s->state != STRAND_CHILD || list_linked(&s->want)) return;
    list_push_back(&s->in->wanted, &s->want); /* it looks at what the store says */
    child_note(s->in->owner);
}

/* There was no memory, or the file could not be read: the next pump tries again. */
static void try_later(live *l, hd_status why) {
    list_discard(&l->family);
    list_push_back(&l->e->postponed, &l->family);
    engine_starve(l->e, why);
}

/* The same for one strand, which goes on waiting. Its parent may be stored before its child is begun. */
static void postpone(strand *s, hd_status why) {
    assert(s->state == STRAND_CHILD);
    if (!s->child_begun && !s->child_tag) draw_tag(s);
    if (!list_linked(&s->want)) list_push_back(&s->in->wanted, &s->want);
    try_later(s->in->owner, why);
}

void child_retry(hd_engine *e) {
    for (list_node *n; (n = list_pop_front(&e->postponed));) list_push_back(&e->families, n);
}

/* ---- the end of a child */

static void deliver_error(hd_engine *e, strand *s, hd_value error) {
    ev exception = ev_unbound();
    if (!engine_takes(e, error)) { /* as from an action: cut */
        step_fail_with(e, s, error);
        return;
    }
    plan_use(s->in->p);
    hd_status status = hd_value_exists(error) ? decode_value(e->w, error, &exception, NULL) : HD_OK;
    if (!status && exception.kind == EV_EXC) step_raise_value(e, s, exception);
    else if (engine_may_pass(status)) postpone(s, status);
    else step_raise(e, s, CLASS_RuntimeError, "the child workflow has stalled");
}

/* The child's outcome, as its document has it. */
static void deliver(hd_engine *e, strand *s, const char *status, hd_value result, hd_value error) {
    assert(s->state == STRAND_CHILD && !s->child);
    if (!strcmp(status, "done")) step_succeed(e, s, result);
    else if (!strcmp(status, "cancelled")) step_raise(e, s, CLASS_CancelledError, "");
    else deliver_error(e, s, error);
}

/* Values cross as documents do: an object of the child is a copy in the parent. */
static void deliver_live(strand *s, const live *c) {
    assert(c->in && instance_is_over(c->in) && !c->awaited);
    hd_engine *e = c->e;
    hd_pool *pool;
    bool is_done = c->in->status == INSTANCE_DONE;
    if (hd_pool_open(e->heap, &pool)) {
        postpone(s, HD_NOMEM);
        return;
    }
    hd_value v = instance_outcome(c->in, pool);
    if (hd_value_exists(v))
        deliver(e, s, instance_status_name(c->in->status), is_done ? v : (hd_value){ 0 },
                is_done ? (hd_value){ 0 } : v);
    else postpone(s, HD_NOMEM); /* the result has been encoded once: it is memory that is missing */
    hd_pool_close(pool);
}

static void deliver_stored(hd_engine *e, strand *s, hd_value doc) {
    deliver(e, s, hd_value_as_text(hd_value_at(doc, "status"), ""), hd_value_at(doc, "result"),
            hd_value_at(doc, "error"));
}

static void tell_parent(live *c) {
    strand *s = c->awaited;
    if (!s || !c->in || !instance_is_over(c->in)) return;
    child_unlink(s);
    deliver_live(s, c);
}

/* ---- the beginning */

/* A child that could not be cancelled has been loaded anew, and may be gone. HD_BUSY: it is not loaded yet. */
static hd_status cancel_child(live *c, uint32_t times) {
    if (!c->in && times) return HD_BUSY;
    bool is_due = c->in && !instance_is_over(c->in) && c->in->cancelling < times;
    return is_due ? control_cancel(c, times) : HD_OK;
}

static void cancel_orphan(hd_engine *e, live *l) {
    char id[HD_INSTANCE_ID_SIZE];
    snprintf(id, sizeof id, "%s", l->id);
    l->orphaned = false;
    hd_status status = cancel_child(l, 1);
    if (!(l = live_find(e, id))) return;
    if (!status) {
        if (!l->changed) step_queue(l); /* it has been cancelled before */
        return;
    }
    l->orphaned = true;
    try_later(l, status);
}

static void join(strand *s, live *c) {
    assert(!c->awaited || c->awaited == s);
    assert(!s->child || s->child == c);
    assert(s->state == STRAND_CHILD);
    c->awaited = s;
    s->child = c;
    s->child_begun = true;
    c->abandoned = false;
    c->kin = ((live *)s->in->owner)->kin = true;
    child_note(c);
    hd_status status = cancel_child(c, s->cancelled);
    if (status) postpone(s, status);
}

static hd_value parent_record(hd_pool *pool, const strand *s) {
    assert(strand_node(s)->kind == NODE_CHILD);
    const live *parent = s->in->owner;
    hd_value r = hd_object_set(pool, hd_object(), "id", hd_string(pool, parent->id));
    r = hd_object_set(pool, r, "strand", hd_int(pool, s->number));
    if (s->child_tag) r = hd_object_set(pool, r, "tag", hd_int(pool, (int64_t)s->child_tag));
    return hd_object_set(pool, r, "step", hd_int(pool, s->step));
}

/* Both may be anything that an int32_t holds. */
static int32_t priority_of(const live *parent, const plan_node *n) {
    int64_t sum = (int64_t)parent->priority + n->priority;
    return (int32_t)(sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum);
}

static hd_value child_record(hd_engine *e, hd_pool *pool, const strand *s, const plan *p,
                             hd_value input) {
    const live *parent = s->in->owner;
    hd_value r = start_record(e, pool, p, input, priority_of(parent, strand_node(s)), parent->line);
    r = hd_object_set(pool, r, "parent", parent_record(pool, s));
    return hd_object_set(pool, r, "depth", hd_int(pool, parent->depth + 1));
}

/* No such workflow, or inputs that do not fit it. */
static void refuse_child(hd_engine *e, strand *s, bool is_known) {
    char why[300];
    if (is_known) snprintf(why, sizeof why, "%.280s", hd_runtime_error(e->rt)->message);
    else snprintf(why, sizeof why, "no workflow \"%.200s\" is registered", strand_node(s)->name);
    step_raise(e, s, is_known ? CLASS_TypeError : CLASS_LookupError, why);
}

static hd_status join_new(hd_engine *e, hd_pool *pool, strand *s, plan *p, hd_value input,
                          const char *id) {
    const live *parent = s->in->owner;
    hd_value record = child_record(e, pool, s, p, input);
    hd_start_options o = { .key = id,
                           .priority = priority_of(parent, strand_node(s)),
                           .queue = parent->line };
    uint32_t depth = parent->depth + 1;
    hd_status status = hd_value_status(record);
    if (!status) status = live_start(e, id, p, record, &o);
    if (status) return status;
    e->stats.started++;
    live *c = live_find(e, id);
    if (c) c->depth = depth, join(s, c);
    return c ? HD_OK : HD_NOMEM;
}

static void start_child(hd_engine *e, hd_pool *pool, strand *s, const char *id) {
    assert(s->state == STRAND_CHILD && !s->child);
    const plan_node *n = strand_node(s);
    plan *p;
    hd_value input = { 0 };
    if (((const live *)s->in->owner)->depth >= DEPTH_MAX) {
        step_raise(e, s, CLASS_RecursionError, "too many child workflows within each other");
        return;
    }
    hd_status status = version_latest(e, n->name, &p);
    if (p) input = start_input(e, pool, p, n->arg_count ? s->args : hd_object());
    if (p) status = hd_value_status(input);
    bool fits = !status;
    if (fits) status = join_new(e, pool, s, p, input, id);
    if (!status) return;
    if (engine_may_pass(status)) postpone(s, status);
    else if (fits) step_raise(e, s, CLASS_RuntimeError, hd_status_text(status));
    else refuse_child(e, s, p != NULL);
}

/* A child of the store that is not in memory. One that cannot be read is marked as stalled with the next commit. */
static void take_up(hd_engine *e, strand *s, const char *id) {
    hd_status status = live_take_up(e, id);
    live *c = live_find(e, id);
    if (c) join(s, c);
    else postpone(s, status);
}

/* There was no memory to begin the child of another strand, and so the instance was stored at this step before this
 * child is begun: it is stored again, with the id that the child gets now. False: it has been loaded anew, and `s` is
 * gone. */
static bool is_to_be_stored(strand *s) {
    live *parent = s->in->owner;
    if (s->child_begun || s->child_tag || list_linked(&s->news)) return true;
    strand_mark(s);
    live_changed(parent);
    return parent->changed;
}

/* The instance is paused: its child begins when step_queue puts the strand out again. */
static void hold(strand *s) {
    assert(s->state == STRAND_CHILD && !s->child);
    if (!s->child_begun && !s->child_tag) draw_tag(s);
    if (!list_linked(&s->unqueued)) list_push_back(&s->in->unqueued, &s->unqueued);
}

void child_resume(strand *s) {
    if (s->child || list_linked(&s->want)) return;
    list_push_back(&s->in->wanted, &s->want);
    child_note(s->in->owner);
}

/* The strand waits for a child: it is there, it is over, or it begins now. */
static void begin(hd_engine *e, strand *s) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_pool *pool;
    if (s->state != STRAND_CHILD) {
        orphan(s, false);
        return;
    }
    if (!is_to_be_stored(s)) return;
    id_of(s, id);
    live *c = live_find(e, id);
    if (s->child_begun && (s->child || c)) {
        join(s, c ? c : s->child);
        return;
    }
    if (hd_pool_open(e->heap, &pool)) {
        postpone(s, HD_NOMEM);
        return;
    }
    /* `c` has the child's id and is not the child (the call returns above if it is), like a document with that id in
     * the store: null stands for such a document. */
    hd_value doc = c ? hd_null() : engine_read(e, pool, INSTANCE_PREFIX, id);
    if (hd_value_exists(doc) && !s->child_begun) {
        draw_tag(s);
        id_of(s, id);
        doc = (hd_value){ 0 };
    }
    if (hd_value_status(doc)) postpone(s, hd_value_status(doc));
    else if (hd_value_exists(doc) && control_is_over(doc)) deliver_stored(e, s, doc);
    else if (hd_value_exists(doc)) take_up(e, s, id);
    else if (s->cancelled) step_raise(e, s, CLASS_CancelledError, "");
    else if (s->in->status == INSTANCE_PAUSED) hold(s);
    else start_child(e, pool, s, id);
    hd_pool_close(pool);
}

/* ---- a turn */

/* Each call may walk the instance, and a walk that fails loads or frees it: it is looked up by its list. */
static void serve(hd_engine *e, live *l) {
    if (l->orphaned) {
        cancel_orphan(e, l);
    } else if (l->in && !list_empty(&l->in->wanted)) {
        begin(e, LIST_ENTRY(list_pop_front(&l->in->wanted), strand, want));
    } else {
        tell_parent(l);
    }
}

bool child_work(hd_engine *e) {
    bool any = !list_empty(&e->families);
    for (list_node *n; (n = list_first(&e->families)) && !list_empty(&e->families);) {
        live *l = LIST_ENTRY(n, live, family);
        list_remove(n);
        child_note(l); /* still something to do: it stays in the list while it is served */
        if (list_linked(&l->family)) serve(e, l);
    }
    return any;
}

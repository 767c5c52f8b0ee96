/* repeat.c -- hd_transact: a function that is run in a transaction until its commit is accepted.
 *
 * A *repeat* is one call of hd_transact or hd_transact_later. It is either under way (its commit has no
 * verdict yet) or waits in the heap of the runtime for the time of its next attempt. An attempt that ends
 * for good tells the caller once.
 *
 * A refused attempt is made again at once: the rows that refused it have been told, and whoever waited would lose to
 * those that do not. A writer that commits back to back makes way for the others once it has met rows of theirs
 * (store/log/writer.c), and a repeat that is refused again and again leaves none. So it *knocks*: it sends a commit of
 * nothing, which no writer can refuse. */
#include "store/repeat.h"

#include "store/runtime.h"
#include "store/tx.h"

enum { REFUSALS_MAX = 1000, ATTEMPTS_MAX = 200, FAULTS_MAX = 10, DOUBLINGS_MAX = 6 };
#define FIRST_WAIT_NS UINT64_C(1000000)
#define KNOCK_NS      UINT64_C(20000000) /* refused for so long, and again after the same time */

struct repeat {
    binheap_item timer; /* in runtime.repeats while it waits for its next attempt */
    list_node link;     /* in runtime.repeating until it is over */
    hd_runtime *rt;
    hd_tx_fn fn; /* NULL: abandoned, there is no further attempt */
    void *ctx;
    hd_verdict_fn told;
    void *told_ctx;
    bool later;       /* no caller waits for it */
    hd_status last;   /* why the last attempt did not count */
    bool judged;      /* the last attempt was the store's to refuse */
    uint32_t refused; /* attempts that it has refused, because their reads had changed */
    uint32_t stale;  /* attempts that read what was out of date here, and is being computed again */
    uint32_t faults; /* attempts that met a transient failure */
    uint64_t waiting_ns; /* since when: the first refusal, or the last knock */
};

static void end(repeat *q, hd_status status) {
    hd_runtime *rt = q->rt;
    hd_verdict_fn told = q->told;
    void *ctx = q->told_ctx;
    assert(list_linked(&q->link) && !binheap_linked(&q->timer));
    list_remove(&q->link);
    env_free(&rt->env, q, sizeof *q);
    if (told) told(status, ctx);
    else if (status) runtime_refused(rt, (hd_cell){ 0 }, status);
}

static bool waits_for_store(const repeat *q, hd_status status) {
    return q->later && runtime_waits_for_store(q->rt, status);
}

/* Between three quarters of the time and all of it, so that two programs do not meet again. An attempt that was refused
 * waits for the next pump only. */
static uint64_t wait_ns(const repeat *q) {
    if (q->judged && hd_status_class(q->last) == HD_CLASS_STALE) return 1;
    uint32_t doublings = q->stale + q->faults;
    if (waits_for_store(q, q->last)) doublings = DOUBLINGS_MAX;
    uint64_t ns = FIRST_WAIT_NS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
    return ns - env_random_u64(&q->rt->env) % (ns / 4);
}

/* Counts an attempt that ended with this status. True: it is worth another one. */
static bool count_as_passing(repeat *q, hd_status status) {
    if (!q->fn) return false;
    if (waits_for_store(q, status)) return true;
    switch (hd_status_class(status)) {
    case HD_CLASS_STALE: return q->judged ? ++q->refused < REFUSALS_MAX : ++q->stale < ATTEMPTS_MAX;
    case HD_CLASS_TRANSIENT: return ++q->faults < FAULTS_MAX;
    case HD_CLASS_PENDING: return true; /* a document is on its way */
    default: return false;
    }
}

/* HD_OK: another attempt is planned. Otherwise it is over, with the status returned. */
static hd_status plan(repeat *q, hd_status status) {
    assert(status != HD_OK && !binheap_linked(&q->timer));
    if (!count_as_passing(q, status)) return status;
    q->last = status;
    uint64_t now = env_now_ns(&q->rt->env), at = now + wait_ns(q);
    if (!q->waiting_ns && q->refused) q->waiting_ns = now;
    return binheap_push(&q->rt->repeats, &q->timer, at) ? status : HD_OK;
}

static void on_verdict(hd_status status, void *ctx) {
    repeat *q = ctx;
    assert(list_linked(&q->link) && !binheap_linked(&q->timer)); /* it was under way */
    q->judged = true;
    hd_status final = status ? plan(q, status) : HD_OK;
    if (!status || final) end(q, final);
}

/* Sends the empty commit along with an attempt, in the same group. Without memory it is sent with the next attempt. */
static void knock_if_due(repeat *q) {
    replica *r = &q->rt->r;
    uint64_t now = env_now_ns(&q->rt->env);
    if (!q->refused || now < q->waiting_ns + KNOCK_NS) return;
    commit *c = replica_commit_new(r, HD_COMMIT_SOURCE);
    if (c && !replica_commit(r, c, NULL)) q->waiting_ns = now;
}

/* HD_OK: it is under way, or another attempt is planned. Otherwise it is over. */
static hd_status attempt(repeat *q) {
    hd_tx *tx;
    q->judged = false;
    hd_status status = hd_tx_begin(q->rt, &tx);
    if (status) return plan(q, status);
    bool driven = q->rt->driven;
    q->rt->driven = true; /* the function cannot close the runtime */
    status = q->fn(tx, q->ctx);
    q->rt->driven = driven;
    if (!status) status = hd_tx_commit(tx, on_verdict, q);
    else hd_tx_abort(tx);
    if (status) return plan(q, status);
    knock_if_due(q);
    return HD_OK;
}

void repeat_pump(hd_runtime *rt) {
    uint64_t now = env_now_ns(&rt->env);
    for (binheap_item *timer; (timer = binheap_peek(&rt->repeats)) && timer->key <= now;) {
        repeat *q = BINHEAP_ENTRY(binheap_pop(&rt->repeats), repeat, timer);
        hd_status final = attempt(q);
        if (final) end(q, final);
    }
}

uint64_t repeat_next(const hd_runtime *rt) {
    const binheap_item *timer = binheap_peek(&rt->repeats);
    return timer ? timer->key : UINT64_MAX;
}

void repeat_close(hd_runtime *rt) {
    for (binheap_item *timer; (timer = binheap_pop(&rt->repeats));) {
        repeat *q = BINHEAP_ENTRY(timer, repeat, timer);
        end(q, q->last);
    }
    assert(list_empty(&rt->repeating));
}

/* An attempt that is over at once is the caller's status, and nothing is told. */
static hd_status begin(hd_runtime *rt, const repeat *as, repeat **out) {
    repeat *q = env_new(&rt->env, sizeof *q);
    if (!q) return HD_NOMEM;
    *q = *as;
    q->rt = rt;
    list_push_back(&rt->repeating, &q->link);
    hd_status final = attempt(q);
    *out = q;
    if (!final) return HD_OK;
    list_remove(&q->link);
    env_free(&rt->env, q, sizeof *q);
    return final;
}

hd_status hd_transact_later(hd_runtime *rt, hd_tx_fn fn, void *ctx, hd_verdict_fn told,
                            void *told_ctx) {
    repeat *q;
    repeat as = { .fn = fn, .ctx = ctx, .told = told, .told_ctx = told_ctx, .later = true };
    return begin(rt, &as, &q);
}

typedef struct waiting {
    hd_status status;
    bool over;
} waiting;

static void on_over(hd_status status, void *ctx) { *(waiting *)ctx = (waiting){ status, true }; }
static bool is_over(void *ctx) { return ((waiting *)ctx)->over; }

static void ignore_end(hd_status status, void *ctx) { (void)status, (void)ctx; }

/* The caller waits no longer, because the pump fails. The commit that is under way may still be accepted;
 * there is no further attempt. */
static void abandon(repeat *q) {
    q->told = ignore_end;
    q->fn = NULL;
    if (!binheap_linked(&q->timer)) return;
    binheap_remove(&q->rt->repeats, &q->timer);
    end(q, q->last);
}

hd_status hd_transact(hd_runtime *rt, hd_tx_fn fn, void *ctx) {
    waiting w = { HD_OK, false };
    repeat *q;
    hd_status status = runtime_check_pump(rt);
    if (!status)
        status = begin(rt, &(repeat){ .fn = fn, .ctx = ctx, .told = on_over, .told_ctx = &w }, &q);
    if (!status) status = runtime_run_until(rt, is_over, &w);
    else return status;
    if (!w.over) abandon(q);
    return w.over ? w.status : status;
}

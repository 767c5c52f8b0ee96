/* drive.c -- opening, driving and closing a runtime. */
#define _GNU_SOURCE
#include "store/repeat.h"
#include "store/signals.h"
#include "store/runtime.h"
#include "store/tx.h"

#include "base/env.h"
#include "base/poller.h"
#include "store/memory/memory.h"
#include "store/overlay.h"
#include "store/session.h"
#include "store/log/authority.h"
#include "store/log/check.h"
#include "store/postgres/backend.h"
#include "store/sqlite/backend.h"
#include "value/key.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SOON_NS UINT64_C(50000000) /* longer than a commit takes, unless the store is in trouble */

hd_status runtime_fail(hd_runtime *rt, hd_status status, const char *format, ...) {
    va_list arguments;
    assert(status != HD_OK);
    va_start(arguments, format);
    env_error_v(&rt->r.error, status, format, arguments);
    va_end(arguments);
    rt->error_body = runtime_body(rt);
    return status;
}

uint64_t runtime_body(const hd_runtime *rt) {
    return rt->in_run && rt->hooks.body ? rt->hooks.body(rt->hooks.ctx) : 0;
}

const hd_error *hd_runtime_error(const hd_runtime *rt) { return &rt->r.error; }
hd_heap *hd_runtime_heap(hd_runtime *rt) { return rt->heap; }
const hd_env *hd_runtime_env(const hd_runtime *rt) { return &rt->env; }
void *hd_runtime_context(const hd_runtime *rt) { return rt->options.context; }

/* ---- opening */

static hd_status open_heap(hd_runtime *rt) {
    if (rt->memory) {
        rt->heap = memory_heap(rt->memory);
        return HD_OK;
    }
    hd_status status = hd_heap_open(&rt->env, &rt->options.limits, &rt->heap);
    rt->owns_heap = !status;
    return status;
}

/* A principal needs a name: the empty instance stands for what all principals share. */
static hd_status refuse_nameless(const hd_options *o, hd_error *error) {
    const char *who = o->principal && !*o->principal ? "principal"
                      : o->session && !*o->session   ? "session"
                                                     : NULL;
    if (!who) return HD_OK;
    env_error(error, HD_USAGE, "the %s needs a name: leave it NULL for the default", who);
    return HD_USAGE;
}

static hd_status open_identity(hd_runtime *rt) {
    char unique[SESSION_TEXT];
    const char *principal = rt->options.principal ? rt->options.principal : "local";
    const char *session = rt->options.session;
    if (!session) {
        session_text(rt->r.session, unique);
        session = unique;
    }
    hd_status status = key_make(rt->heap, principal, strlen(principal), &rt->principal);
    return status ? status : key_make(rt->heap, session, strlen(session), &rt->session);
}

const log_backend *runtime_backend_of(const char *name) {
    return postgres_is_address(name) ? &postgres_backend : &sqlite_backend;
}

static hd_status open_authority(hd_runtime *rt, const char *file, const struct log_backend *backend,
                                hd_error *error) {
    if (rt->memory) return memory_attach(rt->memory, &rt->r, rt->owns_memory, &rt->r.authority);
    return log_authority_open(backend, file, &rt->options, &rt->r, &rt->r.authority, error);
}

static void runtime_free(hd_runtime *rt) {
    assert(!rt->open && !rt->in_run && !rt->pumping && !rt->listing);
    assert(list_empty(&rt->repeating) && !binheap_count(&rt->repeats));
    if (rt->r.authority) rt->r.authority->ops->close(rt->r.authority);
    rt->r.authority = NULL;
    while (rt->spare) {
        hd_tx *tx = rt->spare;
        rt->spare = tx->next;
        tx_destroy(tx);
    }
    for (post *p = atomic_exchange(&rt->posts, NULL), *next; p; p = next) {
        next = p->next;
        if (!p->lent) env_free(&rt->env, p, sizeof *p);
    }
    for (uint32_t i = 0; i < rt->schema_cells.count; i++)
        hd_schema_close((hd_schema *)(uintptr_t)rt->schema_cells.items[i].schema);
    vec_fini(&rt->env, &rt->schema_cells);
    vec_fini(&rt->env, &rt->watched);
    binheap_fini(&rt->repeats);
    vec_fini(&rt->env, &rt->untold_of);
    replica_fini(&rt->r);
    key_unref(rt->principal);
    key_unref(rt->session);
    if (rt->owns_heap) hd_heap_close(rt->heap);
    if (rt->owns_memory) hd_memory_close(rt->memory);
    if (rt->wake_fd >= 0) close(rt->wake_fd);
    if (rt->set >= 0) close(rt->set);
    hd_env env = rt->env;
    env_free(&env, rt, sizeof *rt);
}

hd_status hd_open(const char *file, const hd_options *options, hd_runtime **out, hd_error *error) {
    const log_backend *backend = runtime_backend_of(file ? file : "");
    *out = NULL;
    if (file && postgres_refuse_misspelt(file, error)) return HD_USAGE;
    return runtime_open_with(backend, file, options, out, error);
}

hd_status runtime_open_with(const struct log_backend *backend, const char *file,
                            const hd_options *options, hd_runtime **out, hd_error *error) {
    *out = NULL;
    if (options && refuse_nameless(options, error)) return HD_USAGE;
    hd_env env = env_copy(options ? options->env : NULL);
    hd_runtime *rt = env_new0(&env, sizeof *rt);
    if (!rt) {
        env_error(error, HD_NOMEM, "%s", hd_status_text(HD_NOMEM));
        return HD_NOMEM;
    }
    rt->env = env;
    if (options) rt->options = *options;
    rt->options.env = &rt->env;
    rt->memory = rt->options.memory;
    rt->wake_fd = rt->set = -1;
    binheap_init(&rt->repeats, &rt->env);
    list_init(&rt->repeating);
    if (error) *error = (hd_error){ 0 };

    hd_status status = HD_OK;
    if (!file && !rt->memory) {
        status = hd_memory_open(&rt->env, &rt->memory);
        rt->owns_memory = !status;
    }
    if (!status) status = open_heap(rt);
    if (!status) status = replica_init(&rt->r, &rt->env, rt->heap);
    if (!status) status = open_identity(rt);
    if (!status) status = open_authority(rt, file, backend, error);
    if (status) {
        if (error && !error->status)
            env_error(error, status, "%s: %s", file ? file : "store in memory",
                      hd_status_text(status));
        runtime_free(rt);
        return status;
    }
    *out = rt;
    return HD_OK;
}

bool hd_runtime_is_at_work(const hd_runtime *rt) {
    return rt->driven || rt->in_run || rt->r.announcing;
}

hd_status hd_close(hd_runtime *rt) {
    if (!rt) return HD_OK;
    if (hd_runtime_is_at_work(rt))
        return runtime_fail(rt, HD_USAGE,
                            "a runtime cannot be closed by what it calls: call hd_runtime_stop, "
                            "and close it when pump, settle, sync or run has returned");
    rt->driven = true;
    if (rt->open) hd_tx_abort(rt->open);
    if (rt->outside.close) rt->outside.close(rt->outside.ctx);
    rt->r.leaving = true; /* an engine that gives its leases up does not wait for a server either */
    if (rt->work.close) rt->work.close(rt->work.ctx);
    rt->leaves_derived = !rt->owns_memory && !rt->options.read_only;
    if (rt->hooks.closing) rt->hooks.closing(rt->hooks.ctx);
    hd_status status = hd_runtime_sync(rt);
    rt->closing =
        true; /* no transaction may begin: a verdict function that tries again would do so for ever */
    replica_tell_undecided(&rt->r);
    repeat_close(rt);
    assert(list_empty(&rt->r.trivial) && list_empty(&rt->r.fated)); /* all have been told */
    rt->closing = false;
    if (rt->work.free) rt->work.free(rt->work.ctx);
    if (rt->hooks.close) rt->hooks.close(rt->hooks.ctx);
    if (rt->extension.close) rt->extension.close(rt->extension.ctx);
    runtime_free(rt);
    return status;
}

/* ---- driving */

static void run_posts(hd_runtime *rt) {
    assert(rt->driven && !rt->pumping); /* nothing is half done: a post may pump */
    post *newest = atomic_exchange(&rt->posts, NULL), *oldest = NULL;
    while (newest) {
        post *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        post p = *oldest;
        if (!p.lent) env_free(&rt->env, oldest, sizeof *oldest);
        oldest = p.next;
        p.fn(rt, p.ctx);
    }
}

/* Called before the posts are taken, so that a later post makes the descriptor readable again. */
static void drain_wake(hd_runtime *rt) {
    atomic_store(&rt->woken, false);
    (void)bell_take(rt->wake_fd);
}

bool runtime_seals(const hd_runtime *rt) {
    const authority *a = rt->r.authority;
    return rt->leaves_derived || a->ops->wants_derived(a);
}

hd_status runtime_seal(hd_runtime *rt, bool memos_alone) {
    return runtime_seals(rt) ? overlay_seal(&rt->r, memos_alone) : HD_OK;
}

static bool is_idle(const hd_runtime *rt) {
    return !rt->hooks.idle || rt->hooks.idle(rt->hooks.ctx);
}

/* The store's own thread begins to work on what has been sent. */
static void start(hd_runtime *rt) {
    authority *a = rt->r.authority;
    if (a->ops->start) a->ops->start(a);
}

/* HD_USAGE: a pump is under way. A second one inside it would deliver again what the first is delivering. */
hd_status runtime_check_pump(hd_runtime *rt) {
    if (rt->open || rt->in_run)
        return runtime_fail(rt, HD_USAGE,
                            "pump, settle, sync, hd_pull_now and hd_transact cannot be called "
                            "inside a transaction or a run");
    if (rt->pumping || rt->r.announcing)
        return runtime_fail(rt, HD_USAGE,
                            "pump, settle, sync, pull and transact cannot be called by what they "
                            "call: post a function that does it later");
    return HD_OK;
}

#ifndef NDEBUG
enum { CHECKED_PLACES = 256 };

/* Transactions that wait to be used again hold nothing, and only the program's own may be open between pumps. */
static void check_transactions(const hd_runtime *rt) {
    for (const hd_tx *tx = rt->spare; tx; tx = tx->next) {
        assert(tx->rt == rt && tx->r == &rt->r && !tx->flags);
        assert(!tx->reads.count && !tx->writes.count && !tx->ops.count && !tx->lineage);
        assert(!tx->claim_only.count && !tx->preconditions.count && !tx->causes.count);
        assert(!tx->attempted.count && !tx->room);
        assert(tx != rt->open);
    }
    assert(!rt->open || ((rt->open->flags & TX_OPEN) && !(rt->open->flags & TX_RUN)));
    assert(rt->r.in_body == (rt->open != NULL) && !rt->in_run);
}

static void runtime_check(const hd_runtime *rt) {
    uint32_t repeating = 0;
    LIST_FOR (n, &rt->repeating) repeating++;
    assert(binheap_count(&rt->repeats) <= repeating); /* the others have a commit under way */
    binheap_check(&rt->repeats);
    for (uint32_t i = 0; i < rt->schema_cells.count; i++)
        assert(place_at(&rt->r.places, rt->schema_cells.items[i].place)->root);
    for (uint32_t i = 0; i < rt->watched.count; i++) assert(rt->watched.items[i] >= 0);
    assert(rt->r.authority->replica == &rt->r && rt->r.env == &rt->env);
    assert(!rt->pumping && !rt->closing && rt->owns_memory <= (rt->memory != NULL));
    check_transactions(rt);
}

/* Looks at everything after each pump of a small runtime. In a large one every so many pumps, so that the
 * average cost of a pump stays that of a small runtime. */
static void check_sometimes(hd_runtime *rt) {
    uint32_t rarely = 1 + rt->r.places.count / CHECKED_PLACES;
    if (rt->pumps++ % rarely) return;
    runtime_check(rt);
    replica_check(&rt->r);
    if (rt->r.authority->ops->check) rt->r.authority->ops->check(rt->r.authority);
}
#endif

/* What reads of the transaction find must not change, so the pump does not go on before it has ended. */
static hd_status refuse_left_open(hd_runtime *rt) {
    return runtime_fail(rt, HD_USAGE,
                        "a function that the pump called has left a transaction open: end it");
}

static hd_status pump_rest(hd_runtime *rt) {
    assert(rt->pumping && !rt->open && !rt->in_run && !rt->r.announcing);
    if (rt->outside.pump) rt->outside.pump(rt->outside.ctx);
    if (rt->extension.pump) rt->extension.pump(rt->extension.ctx);
    hd_status status = replica_pump(&rt->r);
    if (rt->open) return refuse_left_open(rt);
    if (rt->r.authority->ops->start && !is_idle(rt)) start(rt); /* runs go on meanwhile */
    hd_status more = rt->hooks.pump ? rt->hooks.pump(rt->hooks.ctx) : HD_OK;
    if (rt->open) return refuse_left_open(rt);
    if (rt->r.unsealed.count && rt->r.authority->ops->idle(rt->r.authority))
        runtime_seal(rt, false);
    if (!list_empty(&rt->r.queued)) {
        /* What the runs committed starts on its way now, not at the next call. */
        hd_status sent = replica_pump(&rt->r);
        if (!status) status = sent;
    }
    if (!status && more == HD_PENDING) start(rt);
    return status ? status : more;
}

/* A pump without start(): a caller that then waits may do the work of the store's thread itself (take_turn). Posts run
 * first, when nothing is half done, so they may call what pumps. */
static hd_status pump(hd_runtime *rt) {
    hd_status status = runtime_check_pump(rt);
    if (status) return status;
    bool driven = rt->driven;
    rt->driven = true;
    if (atomic_load_explicit(&rt->woken, memory_order_relaxed)) drain_wake(rt);
    if (atomic_load_explicit(&rt->posts, memory_order_relaxed)) run_posts(rt);
    if (binheap_count(&rt->repeats)) repeat_pump(rt);
    if (rt->extension.prepare) rt->extension.prepare(rt->extension.ctx);
    if (rt->work.prepare) rt->work.prepare(rt->work.ctx);
    rt->pumping = true;
    status = rt->open ? refuse_left_open(rt) : pump_rest(rt);
    rt->pumping = false;
#ifndef NDEBUG
    check_sometimes(rt);
#endif
    runtime_rest(rt);
    rt->driven = driven;
    return status;
}

hd_status hd_runtime_pump(hd_runtime *rt) {
    hd_status status = pump(rt);
    start(rt);
    return status;
}

static uint64_t extension_deadline(const runtime_extension *e) {
    return e->deadline ? e->deadline(e->ctx) : UINT64_MAX;
}

uint64_t hd_runtime_deadline(const hd_runtime *rt) {
    if (!list_empty(&rt->r.trivial) || !list_empty(&rt->r.queued) || atomic_load(&rt->posts))
        return 0;
    uint64_t store = rt->r.authority->ops->deadline(rt->r.authority);
    uint64_t runs = rt->hooks.deadline ? rt->hooks.deadline(rt->hooks.ctx) : UINT64_MAX;
    uint64_t others = extension_deadline(&rt->extension);
    uint64_t outside = extension_deadline(&rt->outside);
    uint64_t work = extension_deadline(&rt->work);
    uint64_t repeats = repeat_next(rt);
    if (work < outside) outside = work;
    if (repeats < outside) outside = repeats;
    uint64_t first = store < runs ? store : runs, then = others < outside ? others : outside;
    return first < then ? first : then;
}

static bool add_to(int set, int fd) { return fd < 0 || poller_add(set, fd, POLLER_IN); }

static bool add_all_to(const hd_runtime *rt, int set) {
    if (!add_to(set, rt->wake_fd) || !add_to(set, rt->r.authority->ops->fd(rt->r.authority)))
        return false;
    for (uint32_t i = 0; i < rt->watched.count; i++)
        if (!add_to(set, rt->watched.items[i])) return false;
    return true;
}

/* If one of the descriptors cannot be added there is none: a program would wait for ever for what was left out. */
int hd_runtime_fd(hd_runtime *rt) {
    if (rt->set >= 0) return rt->set;
    if (rt->wake_fd < 0) rt->wake_fd = bell_open();
    if (rt->wake_fd < 0) return -1;
    int set = poller_open();
    if (set < 0 || add_all_to(rt, set)) return rt->set = set;
    int why = errno;
    close(set);
    errno = why;
    return -1;
}

hd_status runtime_watch(hd_runtime *rt, int fd) {
    assert(fd >= 0);
    if (!vec_push(&rt->env, &rt->watched, fd)) return HD_NOMEM;
    if (rt->set < 0 || add_to(rt->set, fd)) return HD_OK;
    rt->watched.count--;
    return HD_IO;
}

void runtime_unwatch(hd_runtime *rt, int fd) {
    for (uint32_t i = 0; i < rt->watched.count; i++) {
        if (rt->watched.items[i] != fd) continue;
        vec_swap_remove(&rt->watched, i);
        if (rt->set >= 0) poller_remove(rt->set, fd);
        return;
    }
}

void runtime_post(hd_runtime *rt, post *p) {
    p->next = atomic_load(&rt->posts);
    while (!atomic_compare_exchange_weak(&rt->posts, &p->next, p)) {}
    int fd = rt->wake_fd;
    if (fd < 0) return; /* hd_runtime_deadline tells of it */
    bell_ring(fd);
    atomic_store(&rt->woken, true); /* last: a drain must find what was written */
}

hd_status hd_runtime_post(hd_runtime *rt, void (*fn)(hd_runtime *rt, void *ctx), void *ctx) {
    post *p = fn ? env_new(&rt->env, sizeof *p) : NULL;
    if (!p) return fn ? HD_NOMEM : HD_USAGE;
    *p = (post){ .fn = fn, .ctx = ctx };
    runtime_post(rt, p);
    return HD_OK;
}

/* Whether something is planned that a commit could delay. */
static bool is_due_soon(const hd_runtime *rt) {
    uint64_t soon = env_now_ns(&rt->env) + SOON_NS;
    return extension_deadline(&rt->extension) <= soon || extension_deadline(&rt->work) <= soon ||
           (rt->hooks.deadline && rt->hooks.deadline(rt->hooks.ctx) <= soon);
}

/* The runtime's thread does the work of the store's thread: the shortest way to a verdict. While that lasts, the
 * runtime hears of nothing else, and further commits do not gather into groups. So it is done for a caller that waits
 * for verdicts alone, or for a single commit while nothing else is due soon. */
static bool take_turn(hd_runtime *rt, bool verdicts_only) {
    authority *a = rt->r.authority;
    assert(!rt->pumping && !rt->open && !rt->in_run);
    if (!a->ops->turn) return false;
    bool alone = verdicts_only || (rt->r.pending_count == 1 && !is_due_soon(rt));
    return alone && a->ops->turn(a);
}

/* The descriptor is made before the deadline is read: a post that comes before that shows in the deadline, a later
 * one makes the descriptor readable. */
static hd_status wait_for_more(hd_runtime *rt, bool verdicts_only) {
    int fd = hd_runtime_fd(rt), why = errno;
    uint64_t deadline = hd_runtime_deadline(rt);
    if (!deadline || take_turn(rt, verdicts_only)) return HD_OK;
    start(rt);
    if (fd < 0)
        return runtime_fail(rt, HD_IO, "cannot wait: no descriptor is left: %s", strerror(why));
    env_wait(&rt->env, fd, deadline);
    return HD_OK;
}

hd_status runtime_run_until(hd_runtime *rt, bool (*done)(void *ctx), void *ctx) {
    hd_status status = HD_OK;
    while (!done(ctx) && (!status || status == HD_PENDING)) {
        status = pump(rt);
        if (!status && !done(ctx)) status = wait_for_more(rt, false);
    }
    start(rt);
    return status == HD_PENDING ? HD_OK : status;
}

static hd_status settle_until(hd_runtime *rt, const bool *done) {
    for (;;) {
        hd_status status = pump(rt);
        if (status == HD_PENDING) continue;
        if (status) return status;
        if ((done && *done) || is_idle(rt)) return HD_OK;
        status = wait_for_more(rt, false);
        if (status) return status;
    }
}

hd_status runtime_settle_until(hd_runtime *rt, const bool *done) {
    hd_status status = settle_until(rt, done);
    start(rt);
    return status;
}

void hd_runtime_look(hd_runtime *rt) {
    authority *a = rt->r.authority;
    if (a->ops->look) a->ops->look(a);
}

/* Nothing is on its way, and no other runtime uses the store: only runs can be left. */
static bool is_alone(const hd_runtime *rt) {
    const replica *r = &rt->r;
    return !rt->open && !rt->in_run && !rt->driven && !rt->outside.ctx && !r->pending_count &&
           list_empty(&r->trivial) && !atomic_load_explicit(&rt->posts, memory_order_relaxed) &&
           r->authority->alone && !r->authority->late;
}

static bool settle_alone(hd_runtime *rt) {
    assert(!rt->driven && !rt->pumping && rt->r.authority->alone);
    rt->driven = rt->pumping = true;
    bool done = rt->hooks.settle_alone(rt->hooks.ctx);
    rt->driven = rt->pumping = false;
    return done;
}

hd_status hd_runtime_settle(hd_runtime *rt) {
    if (rt->hooks.settle_alone && is_alone(rt) && settle_alone(rt)) {
        if (!rt->r.pending_count) return HD_OK;
    }
    hd_status status = runtime_check_pump(rt);
    if (status) return status;
    hd_runtime_look(rt);
    status = runtime_settle_until(rt, NULL);
    if (status || !rt->hooks.left_unsettled || !rt->hooks.left_unsettled(rt->hooks.ctx))
        return status;
    return runtime_fail(rt, HD_UNSETTLED, "%s", hd_status_text(HD_UNSETTLED));
}

/* Whether memos are to be stored that the store has not just refused as they are. */
static bool has_due_memos(const hd_runtime *rt) {
    return rt->r.due && runtime_seals(rt) && rt->hooks.due && rt->hooks.due(rt->hooks.ctx);
}

static hd_status sync_all(hd_runtime *rt) {
    for (;;) {
        hd_status status = runtime_seal(rt, has_due_memos(rt));
        if (!status) status = pump(rt);
        if (status == HD_PENDING) continue;
        if (status) return status;
        bool more = rt->hooks.unsettled && rt->hooks.unsettled(rt->hooks.ctx);
        bool waits = rt->r.pending_count || !list_empty(&rt->r.trivial) || more ||
                     binheap_count(&rt->repeats);
        if (!waits && !has_due_memos(rt)) return HD_OK;
        if (waits) status = wait_for_more(rt, !more);
        if (status) return status;
    }
}

/* A refused commit whose verdict the program did not ask for. Reported once. */
static hd_status report_untold(hd_runtime *rt) {
    hd_status status = rt->untold;
    rt->untold = HD_OK;
    if (!status) return HD_OK;
    return runtime_fail(rt, status,
                        "a commit was refused, and its caller had asked for no verdict: %s",
                        hd_status_text(status));
}

hd_status runtime_sync(hd_runtime *rt) {
    hd_status status = runtime_check_pump(rt);
    if (!status) status = sync_all(rt);
    start(rt);
    return status;
}

hd_status hd_runtime_sync(hd_runtime *rt) {
    hd_status status = runtime_sync(rt);
    return status ? status : report_untold(rt);
}

static hd_status run_until_stopped(hd_runtime *rt) {
    hd_status status = HD_OK;
    while (!rt->stop && (!status || status == HD_PENDING)) {
        status = pump(rt);
        if (rt->options.signals && signals_came()) {
            rt->stop = true;
            atomic_store(&rt->woken, true); /* the next pump drains the descriptor */
        }
        if (!status && !rt->stop) status = wait_for_more(rt, false);
    }
    start(rt);
    return status == HD_PENDING ? HD_OK : status;
}

hd_status hd_runtime_run(hd_runtime *rt) {
    signals before;
    rt->stop = false;
    if (!rt->options.signals) return run_until_stopped(rt);
    (void)hd_runtime_fd(rt); /* makes wake_fd; without one wait_for_more fails */
    hd_status status = signals_take(&before, rt->wake_fd);
    if (status)
        return runtime_fail(rt, status, "another runtime of this process has SIGINT and SIGTERM");
    status = run_until_stopped(rt);
    signals_give_back(&before);
    return status;
}

void hd_runtime_stop(hd_runtime *rt) { rt->stop = true; }

/* ---- changes */

hd_status hd_runtime_listen(hd_runtime *rt, hd_listener_fn fn, void *ctx) {
    return hd_runtime_listen_except(rt, fn, ctx, 0);
}

hd_status hd_runtime_listen_except(hd_runtime *rt, hd_listener_fn fn, void *ctx, uint64_t group) {
    if (!fn) return runtime_fail(rt, HD_USAGE, "a listener is a function");
    return vec_push(&rt->env, &rt->r.listeners, ((listener){ fn, ctx, group })) ? HD_OK : HD_NOMEM;
}

void hd_runtime_unlisten(hd_runtime *rt, hd_listener_fn fn, void *ctx) {
    assert(rt->r.telling <= rt->r.listeners.count);
    for (uint32_t i = 0; i < rt->r.listeners.count; i++) {
        if (rt->r.listeners.items[i].fn != fn || rt->r.listeners.items[i].ctx != ctx) continue;
        vec_remove(&rt->r.listeners, i);
        if (i < rt->r.telling)
            rt->r.telling--; /* a listener may be removed while listeners are called */
        return;
    }
}

hd_status hd_runtime_follow(hd_runtime *rt, const char *space) {
    struct key *k;
    hd_status status = runtime_space(rt, space, strlen(space), &k);
    if (status) return status;
    status = rt->r.authority->ops->follow(rt->r.authority, k);
    key_unref(k);
    return status;
}

/* ---- looking around, housekeeping */

/* A callback of a listing may read and list. Its transactions must not end the snapshot from which the
 * listing goes on. */
static void listing_begin(hd_runtime *rt) { rt->listing++; }
static void listing_end(hd_runtime *rt) {
    assert(rt->listing);
    rt->listing--;
    runtime_rest(rt);
}

hd_status hd_runtime_list(hd_runtime *rt, const char *space, const char *kind, const char *prefix,
                          hd_list_fn fn, void *ctx) {
    return hd_runtime_list_after(rt, space, kind, prefix, NULL, fn, ctx);
}

hd_status hd_runtime_list_after(hd_runtime *rt, const char *space, const char *kind,
                                const char *prefix, const char *after, hd_list_fn fn, void *ctx) {
    list_range range = { kind && *kind ? kind : NULL, prefix ? prefix : "", after ? after : "" };
    struct key *k;
    hd_status status = runtime_space(rt, space, strlen(space), &k);
    if (status) return status;
    listing_begin(rt);
    status = rt->r.authority->ops->list(rt->r.authority, k, &range, fn, ctx);
    listing_end(rt);
    key_unref(k);
    return status;
}

hd_status hd_runtime_spaces(hd_runtime *rt, hd_space_fn fn, void *ctx) {
    listing_begin(rt);
    hd_status status = rt->r.authority->ops->spaces(rt->r.authority, fn, ctx);
    listing_end(rt);
    return status;
}

void hd_runtime_store_stats(const hd_runtime *rt, hd_store_stats *out) {
    const places *ps = &rt->r.places;
    *out = rt->r.stats;
    assert(ps->count > ps->freed);
    out->documents = ps->documents;
    out->places = ps->count - 1 - ps->freed;
    out->walked = ps->walked;
    out->pending = rt->r.pending_count;
    out->repeating = list_count(&rt->repeating);
}

hd_status hd_store_checkpoint(hd_runtime *rt, hd_error *error) {
    hd_status status = hd_runtime_sync(rt);
    return status ? status : rt->r.authority->ops->checkpoint(rt->r.authority, error);
}
hd_status hd_store_prune(hd_runtime *rt, hd_error *error) {
    hd_status status = hd_runtime_sync(rt);
    return status ? status : rt->r.authority->ops->prune(rt->r.authority, error);
}
hd_status hd_store_vacuum(hd_runtime *rt, hd_error *error) {
    hd_status status = hd_runtime_sync(rt);
    return status ? status : rt->r.authority->ops->vacuum(rt->r.authority, error);
}

hd_status hd_store_check(const char *file, const hd_options *options, hd_check_fn fn, void *ctx,
                         hd_error *error) {
    if (postgres_refuse_misspelt(file, error)) return HD_USAGE;
    return log_check(runtime_backend_of(file), file, options, fn, ctx, error);
}

/* A server repairs its own tables, and has backups of its own. */
hd_status hd_store_repair(const char *file, const hd_options *options, bool drop, hd_check_fn fn,
                          void *ctx, hd_error *error) {
    if (postgres_refuse_misspelt(file, error)) return HD_USAGE;
    if (!postgres_is_address(file)) return sqlite_repair(file, options, drop, fn, ctx, error);
    env_error(error, HD_USAGE,
              "a store on a server is not repaired here: restore it from a backup");
    return HD_USAGE;
}

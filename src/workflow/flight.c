/* flight.c -- commits of an engine: what goes into one, when one begins, what its verdict means.
 *
 * A commit stores the changes of every instance that has walked since the last one. It claims their documents and the
 * leases of their shards: if anything else has written one of them, the commit is refused, and its instances are loaded
 * again. While one is synced, the next may be made, if it is worth a sync of its own (may_overlap). */
#include "workflow/engine.h"

#include "base/env.h"

/* ---- verdicts */

/* Takes the next instance that the commit stored, or was to store, out of the flight. NULL: there is none. */
static live *take_off(flight *f) {
    if (!f->lives.count) return NULL;
    live *l = vec_pop(&f->lives);
    assert(l->flight == f);
    l->flight = NULL;
    if (l->changed) l->e->late--;
    return l;
}

/* The highest number up to which every commit has its verdict; but not one up to engine.commits_short. */
static uint64_t done_through(const hd_engine *e) {
    uint64_t done = e->commits_begun;
    for (int i = 0; i < FLIGHTS; i++)
        if (e->flights[i].busy && e->flights[i].number <= done) done = e->flights[i].number - 1;
    return done > e->commits_short ? done : e->commits_done;
}

bool flight_is_stored(const hd_engine *e, uint64_t number) {
    if (number <= e->commits_done) return true;
    return !e->waits && !e->overheard && list_empty(&e->lame) && !flight_has_news(e);
}

/* Whether the instance, if a commit of its own was too long, is the reason. The end of one that is stored is short. */
static bool is_long(const live *l) { return !l->stalled || hd_value_exists(l->record); }

static void drop_long(live *l) {
    hd_error error;
    env_error(&error, HD_LIMIT, "what it has changed at once is longer than the store takes");
    live_drop(l, &error);
}

/* Moves the estimate an eighth of itself towards a measured time, however far away that is. So it comes to the median,
 * which a few slow syncs do not change. */
static void follow(uint64_t *median, uint64_t ns) {
    uint64_t eighth = *median / 8;
    if (!*median) *median = ns;
    else if (ns > *median) *median += eighth + 1;
    else if (ns < *median) *median -= eighth + 1;
}

/* Not the time until the verdict: that is longer while the engine is busy, or another commit is synced first. */
static void note_sync(hd_engine *e) { follow(&e->sync_ns, e->rt->r.authority->sync_ns); }

static void note_storing(hd_engine *e, uint64_t began_ns, uint32_t lives) {
    uint64_t now = env_now_ns(e->env);
    if (lives && now > began_ns) follow(&e->store_ns, (now - began_ns) / lives);
}

#define HOLD_FIRST_NS UINT64_C(10000000)
#define HOLD_MAX_NS   UINT64_C(10000000000)

/* Whether the store may refuse the same commit for the same reason. A stale commit is made again from what is in the
 * store now; a store that is closed, or gives no verdict, has refused nothing. */
static bool may_be_refused_again(hd_status status) {
    hd_class class_ = hd_status_class(status);
    return status && status != HD_CLOSED && class_ != HD_CLASS_STALE &&
           class_ != HD_CLASS_NO_VERDICT;
}

/* The next commit waits: 10 ms after the first refusal, twice as long after each further one, at most 10 s. A random
 * part of up to a quarter is taken off, so that programs that were refused together do not try again together. */
static void hold_back(hd_engine *e, hd_status status) {
    uint64_t ns = e->refusals < 10 ? HOLD_FIRST_NS << e->refusals : HOLD_MAX_NS;
    if (!e->refusals++)
        env_log(e->env, HD_LOG_ERROR,
                "workflows of space %s: the store refuses a commit (%s); it is tried again, at "
                "most every 10 s",
                e->space, hd_status_text(status));
    e->held_until = env_now_ns(e->env) + ns - env_random_u64(e->env) % (ns / 4);
}

void flight_note_verdict(hd_engine *e, hd_status status) {
    if (may_be_refused_again(status)) hold_back(e, status);
    else if (!status) e->refusals = 0, e->held_until = 0;
}

bool flight_is_held(const hd_engine *e) {
    return e->held_until && env_now_ns(e->env) < e->held_until;
}

/* A commit was longer than the store takes. Whether the next one stores less: the things that were in it one by one;
 * or, if it had only one, that is not stored at all. */
static bool stores_less(flight *f) {
    hd_engine *e = f->e;
    bool less = !f->alone;
    if (less) e->singly = f->lives.count ? f->lives.count : 1;
    else if (!f->lives.count) less = away_drop_long(e);
    for (uint32_t i = 0; i < f->lives.count && !less; i++) less = is_long(f->lives.items[i]);
    return less;
}

static void verdict(hd_status status, void *ctx) {
    flight *f = ctx;
    hd_engine *e = f->e;
    assert(f->busy && e->waits && f->number <= e->commits_begun);
    f->busy = false;
    e->waits--;
    if (e->orphan) {
        engine_free_orphan(e);
        return;
    }
    note_sync(e);
    if (status) e->commits_short = e->commits_begun;
    e->commits_done = done_through(e);
    bool within = within_told(e, f->number, status);
    if (status) e->overheard = true; /* messages that it would have removed are still there */
    bool blamed = within && within_is_to_blame(status); /* the step fails: another commit */
    if (status) keep_lost(e), away_lost(e), remotes_lost(e->remotes, f->number, 0);
    bool too_long = status == HD_LIMIT && !within, alone = f->alone;
    bool less = too_long && stores_less(f); /* the next commit does */
    if (!blamed && !less) flight_note_verdict(e, status);
    for (live *l; (l = take_off(f));) {
        if (too_long && alone && is_long(l)) drop_long(l);
        else if (status) live_lost(l);
        else live_accepted(l);
    }
    within_look(e);
}

bool flight_has_news(const hd_engine *e) {
    return e->changed.count || e->spent.count || !list_empty(&e->families) || away_news(e);
}

/* Whether making this group and another of its size takes at least as long as a sync: the time of its walks, and what
 * storing its instances will take. */
static bool is_worth_a_sync(const hd_engine *e) {
    if (e->changed.count < FLIGHT_GROUP) return false;
    uint64_t walked_ns = env_now_ns(e->env) - e->changed_ns;
    return (walked_ns + e->changed.count * e->store_ns) * 2 >= e->sync_ns;
}

/* Whether a commit may be begun beside one that is under way: it has nothing that depends on the other, and nothing
 * that concerns more than one instance. */
static bool may_overlap(const hd_engine *e) {
    return e->waits < FLIGHTS && !e->late && !e->spent.count && !e->spoiled &&
           list_empty(&e->families) && !keep_must_count(e) && !away_news(e) && is_worth_a_sync(e);
}

bool flight_may_begin(const hd_engine *e) {
    if (flight_is_held(e)) return false;
    return flight_has_news(e) && (!e->waits || may_overlap(e));
}

/* A store in memory commits at once: there is no sync during which the next group could be made. */
bool flight_is_group(const hd_engine *e) {
    if (e->changed.count >= FLIGHT_MOST) return true;
    if (e->changed.count < FLIGHT_GROUP || e->rt->owns_memory) return false;
    return e->waits ? may_overlap(e) : is_worth_a_sync(e);
}

/* A child is stored with its parent, or later. One that its parent waits for no more is cancelled before it is
 * stored. */
static bool is_early(const live *l) {
    const live *parent = l->awaited ? l->awaited->in->owner : NULL;
    return hd_value_exists(l->record) && ((l->orphaned && l->in) || (parent && parent->changed));
}

/* Whether the instance goes into this commit. While instances are stored singly (engine.singly), all families share one
 * commit, and every other instance has one of its own. */
static bool is_taken(const hd_engine *e, const flight *f, const live *l, bool families) {
    if (is_early(l)) return false;
    if (!e->singly) return true;
    return families ? l->kin : !f->lives.count;
}

static bool has_families(const hd_engine *e) {
    for (uint32_t i = 0; i < e->changed.count; i++)
        if (e->changed.items[i]->kin) return true;
    return false;
}

/* take_off takes the last one first. */
static void reverse(live_vec *v) {
    for (uint32_t i = 0; i < v->count / 2; i++) {
        live **a = &v->items[i], **b = &v->items[v->count - 1 - i], *kept = *a;
        *a = *b;
        *b = kept;
    }
}

static hd_status remove_messages(hd_tx *tx, const place_id *docs, uint32_t count) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = hd_tx_remove(tx, (hd_cell){ docs[i] });
    return status;
}

/* In the order in which they changed, so that a parent comes before the children that it has begun. Those that are not
 * taken stay in engine.changed. */
static hd_status store_lives(hd_engine *e, flight *f, hd_tx *tx, live **unfit) {
    live_vec *all = &e->changed;
    uint32_t kept = 0, i = 0;
    hd_status status = vec_room(e->env, &f->lives, all->count) ? HD_OK : HD_NOMEM;
    bool families = e->singly && has_families(e);
    for (; i < all->count && !status; i++) {
        live *l = all->items[i];
        if (!is_taken(e, f, l, families)) {
            all->items[kept++] = l;
            continue;
        }
        status = document_store(tx, l);
        if (!status) status = remove_messages(tx, l->messages.items, l->messages.count);
        l->answered = l->messages.count;
        if (document_is_unfit(status) ||
            (l->stalled && live_is_hopeless(status) && status != HD_STALE))
            *unfit = l;
        if (status) break;
        l->changed = l->stored = false;
        l->flight = f;
        (void)vec_push(e->env, &f->lives, l);
    }
    while (i < all->count) all->items[kept++] = all->items[i++];
    all->count = kept;
    reverse(&f->lives);
    return status;
}

/* Writes all that has changed into one transaction. While it is done singly, steps for other processes go first, each
 * in a commit of its own. *unfit: the instance with a value that cannot be stored, because of which this fails. */
static hd_status store_all(hd_engine *e, flight *f, hd_tx *tx, live **unfit) {
    hd_status status = remove_messages(tx, e->spent.items, e->spent.count);
    bool singly = e->singly > 0;
    uint32_t tasks = away_news(e);
    for (uint32_t i = 0; i < e->shard_count && e->spent.count && !status; i++)
        if (e->shards[i].runs) status = engine_fence(tx, &e->shards[i]);
    if (!status) status = away_write(e, tx, singly ? 1 : UINT32_MAX);
    assert(!e->late && !f->lives.count);
    if (!status && !(singly && tasks)) status = store_lives(e, f, tx, unfit);
    f->alone = singly || (f->lives.count + tasks < 2);
    if (singly && !tasks) e->singly--;
    return keep_write(e, tx, status);
}

/* Instances that are lost are loaded again, which may put them into engine.changed once more: so the list is taken
 * first. `kin_only`: only members of families are lost. */
static void lose_changed(hd_engine *e, bool kin_only) {
    live_vec lost = e->changed;
    e->changed = (live_vec){ 0 };
    e->overheard = true;
    for (uint32_t i = 0; i < lost.count; i++) lost.items[i]->changed = false;
    for (uint32_t i = 0; i < lost.count; i++) {
        if (kin_only && !lost.items[i]->kin) live_changed(lost.items[i]);
        else live_lost(lost.items[i]);
    }
    vec_fini(e->env, &lost);
    e->spoiled = false;
}

void flight_lose_changed(hd_engine *e) {
    if (e->changed.count) lose_changed(e, false);
    e->spoiled = false;
}

static void lose_all(hd_engine *e, flight *f) {
    for (live *l; (l = take_off(f));) live_lost(l);
    lose_changed(e, false);
}

/* Instances share commits: the others must not wait for ever because of one that cannot be stored. */
static void drop_unfit(live *l, hd_status why) {
    hd_error error;
    document_why_unfit(why, &error);
    live_drop(l, &error);
}

static flight *free_flight(hd_engine *e) {
    int i = 0;
    while (e->flights[i].busy) i++;
    assert(i < FLIGHTS);
    e->flights[i].e = e;
    return &e->flights[i];
}

static hd_status send(hd_engine *e, flight *f, hd_tx *tx) {
    assert(!f->busy && e->waits < FLIGHTS && e->active);
    f->busy = true;
    f->number = ++e->commits_begun;
    e->waits++;
    e->stats.commits++;
    hd_status status = hd_tx_commit(tx, verdict, f);
    if (status) verdict(status, f);
    return status;
}

/* Loads what the commit will write. While the store cannot be read, all that has changed stays as it is: the outcome of
 * a step is kept until then. */
static hd_status load_all(hd_engine *e) {
    hd_status status = away_load(e);
    for (uint32_t i = 0; i < e->spent.count && !status; i++)
        status = engine_load(e, e->spent.items[i]);
    for (uint32_t i = 0; i < e->changed.count && !status; i++)
        status = document_prepare(e->changed.items[i]);
    return status;
}

hd_status flight_begin(hd_engine *e) {
    hd_tx *tx;
    if (e->waits && !may_overlap(e)) return HD_OK;
    (void)child_work(e); /* children begin and end in the commit of their parents */
    if (e->spoiled) {
        lose_changed(e, true);
        return HD_NOMEM;
    }
    if (!flight_has_news(e)) return HD_OK;
    hd_status status = load_all(e);
    if (!status) status = engine_begin(e, &tx);
    return status ? status : flight_begin_in(e, tx);
}

void flight_begin_group(hd_engine *e) {
    authority *a = e->rt->r.authority;
    if (e->rt->driven || e->rt->open || e->closing || !flight_is_group(e)) return;
    hd_status status = flight_begin(e);
    if (status) engine_starve(e, status);
    if (!e->waits) return;
    (void)replica_send(&e->rt->r);
    if (a->ops->start) a->ops->start(a);
}

/* Whether the commit that begins now leaves out what is to be stored: of instances that are stored singly
 * (engine.singly) or wait for memory, or of messages that are to be read again. */
static bool leaves_some(const hd_engine *e) {
    return e->changed.count || e->overheard || !list_empty(&e->lame);
}

hd_status flight_begin_in(hd_engine *e, hd_tx *tx) {
    flight *f = free_flight(e);
    live *unfit = NULL;
    uint64_t began_ns = env_now_ns(e->env);
    hd_status status = store_all(e, f, tx, &unfit);
    if (status) {
        hd_tx_abort(tx);
        if (unfit) live_leave_commits(unfit);
        lose_all(e, f);
        keep_lost(e);
        away_lost(e);
        if (unfit) drop_unfit(unfit, status);
        return unfit ? HD_OK : status;
    }
    inbox_forget_spent(e);
    away_written(e);
    uint32_t lives = f->lives.count;
    if (leaves_some(e)) e->commits_short = e->commits_begun + 1;
    status = send(e, f, tx);
    note_storing(e, began_ns, lives);
    return status;
}

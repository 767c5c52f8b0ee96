/* shard.c -- which of a space's instances this engine runs.
 *
 * The instances of a space are divided into *shards*, by their ids. Each shard has a lease (store/lease.h), and the
 * engine that holds it runs the shard's instances. Engines that see leases in other hands are *members*: documents
 * say so. A runtime that holds two leases more than a member, counted over all spaces that both serve, gives one
 * away: it drains the shard (no step is begun any more), drops its instances when no step runs, and writes the member's
 * name into the lease. A shard with steps that take longer than the drain waits stays, and goes on; later it is tried
 * again.
 *
 *     taken --> shall_rise --> runs --> drains --> given
 *                               ^ \       |
 *                               |  \      +--> stays: it runs again
 *                               |   \--> lost (another session has taken the lease)
 *
 * In a store in memory that belongs to one runtime there is one shard, and no lease.
 *
 * Cost: finding the shard of an id is a hash; comparing, after a lease or a member has changed, is
 * O(members x engines x shards); draining looks at the instances in memory once in each pump. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include <inttypes.h>
#include <stdio.h>

#define JOB          "workflow"
#define DRAIN_NS     UINT64_C(2000000000) /* for so long the first drain waits for steps that run */
#define DRAIN_MAX_NS UINT64_C(64000000000) /* each further one waits twice as long, up to this */
#define CALM         8 /* times as long as a drain has waited, no other one is begun */
#define LOOK_NS      UINT64_C(10000000) /* while a shard drains */

/* ---- which shard */

static bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

static uint32_t digit(char c) { return (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10); }

/* "~" and four digits at its end say it. */
uint32_t shard_place(const char *id) {
    size_t length = strlen(id);
    const char *end = id + length;
    uint32_t at = 0;
    bool said = length > 5 && end[-5] == '~';
    for (const char *c = end - 4; said && c < end; c++) {
        said = is_digit(*c);
        at = at << 4 | (said ? digit(*c) : 0);
    }
    return said ? at : (uint32_t)hash_bytes(id, length, 0) & 0xffff;
}

shard *shard_of(const hd_engine *e, const char *id) {
    return e->shard_count == 1 ? e->shards : &e->shards[shard_place(id) % e->shard_count];
}

bool shard_runs(const hd_engine *e, const char *id) { return shard_of(e, id)->runs; }

uint32_t shard_count_running(const hd_engine *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->shard_count; i++) n += e->shards[i].runs;
    return n;
}

bool shard_shall_rise(const hd_engine *e) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (e->shards[i].shall_rise) return true;
    return false;
}

void shard_rise_soon(shard *s) {
    s->shall_rise = true;
    s->rise_after = s->e->rt->r.next_local - 1;
}

/* A commit of ours without a verdict may still be refused. An instance that was read through it would then be in memory
 * as it is not in the store. */
bool shard_may_rise(const shard *s) {
    return s->shall_rise && replica_has_decided(&s->e->rt->r, s->rise_after);
}

bool shard_one_may_rise(const hd_engine *e) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (shard_may_rise(&e->shards[i])) return true;
    return false;
}

bool shard_is_asked(const hd_engine *e) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (e->shards[i].lease.asked) return true;
    return false;
}

/* ---- how many there are */

typedef struct survey {
    hd_engine *e;
    hd_pool *pool;
    VEC(place_id) leases; /* documents of leases; referenced */
    uint32_t wanted;
    bool lives; /* another session does, that has a lease or is a member */
    hd_status status;
} survey;

static bool is_ours(const hd_engine *e, const char *session) {
    char ours[SESSION_TEXT];
    session_text(e->rt->r.session, ours);
    return !strcmp(ours, session);
}

static bool look_at_holder(const hd_listing *entry, void *ctx) {
    survey *s = ctx;
    lease_holder h;
    place_id doc = engine_document(s->e, "", entry->id);
    s->status = doc && vec_push(s->e->env, &s->leases, doc) ? HD_OK : HD_NOMEM;
    if (s->status && doc) place_unref(&s->e->rt->r.places, doc);
    if (s->status) return false;
    hd_value v = hd_read(s->e->rt, s->pool, (hd_cell){ doc });
    s->status = lease_holder_of(s->e->rt, v, &h);
    s->lives = s->lives || (h.lives && !is_ours(s->e, h.session));
    return !s->status && !s->lives;
}

static hd_status look_for_others(survey *s) {
    hd_engine *e = s->e;
    hd_status status =
        hd_runtime_list(e->rt, e->space, MEMBER_KIND, MEMBER_PREFIX, look_at_holder, s);
    if (!status && !s->status && !s->lives)
        status = hd_runtime_list(e->rt, e->space, "lease", "lease/" JOB, look_at_holder, s);
    return status ? status : s->status;
}

static hd_cell number_cell(const hd_engine *e) {
    return hd_cell_of(e->rt, e->space, HD_SCOPE_SPACE, SHARDS_NAME, NULL);
}

static uint32_t number_in(hd_value v) {
    int64_t n = hd_value_as_int(v, 1);
    return n < 1 || n > SHARDS_MAX ? 1 : (uint32_t)n;
}

/* Leases of another number of shards go: what a program that was taken for dead commits is refused. */
static hd_status declare(hd_tx *tx, void *ctx) {
    const survey *s = ctx;
    hd_cell cell = number_cell(s->e);
    hd_value v = hd_tx_get(tx, cell);
    hd_status status = hd_value_status(v);
    if (status || number_in(v) == s->wanted) return status;
    status = hd_tx_set_int(tx, cell, s->wanted);
    for (uint32_t i = 0; i < s->leases.count && !status; i++)
        status = hd_tx_remove(tx, (hd_cell){ s->leases.items[i] });
    return status;
}

static hd_status change_number(hd_engine *e, hd_pool *pool, uint32_t wanted) {
    survey s = { .e = e, .pool = pool, .wanted = wanted };
    hd_status status = look_for_others(&s);
    if (!status && s.lives)
        env_log(e->env, HD_LOG_WARN,
                "space %s has another number of shards than %u, and another engine uses it: the "
                "number stays",
                e->space, wanted);
    else if (!status) status = hd_transact(e->rt, declare, &s);
    for (uint32_t i = 0; i < s.leases.count; i++) place_unref(&e->rt->r.places, s.leases.items[i]);
    vec_fini(e->env, &s.leases);
    return status;
}

static hd_status find_number(hd_engine *e, uint32_t wanted, uint32_t *out) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    *out = 1;
    if (status) return status;
    bool may_change = wanted && !e->observer && !e->rt->options.read_only;
    hd_value v = hd_read(e->rt, pool, number_cell(e));
    if (may_change && !hd_value_status(v) && number_in(v) != wanted) {
        status = change_number(e, pool, wanted);
        v = hd_read(e->rt, pool, number_cell(e));
    }
    if (!status) status = hd_value_status(v);
    if (!status) *out = number_in(v);
    hd_pool_close(pool);
    return status;
}

/* ---- members */

static void compare_soon(hd_engine *e) {
    for (hd_engine *o = e->rt->work.ctx; o; o = o->next) o->uneven = true;
    e->uneven = true;
}

static member *find_member(hd_engine *e, const char *session) {
    for (uint32_t i = 0; i < e->members.count; i++)
        if (!strcmp(e->members.items[i].session, session)) return &e->members.items[i];
    return NULL;
}

static void forget_member(hd_engine *e, member *m) {
    place_unref(&e->rt->r.places, m->doc);
    vec_swap_remove(&e->members, (uint32_t)(m - e->members.items));
}

/* Another runtime has taken this one for dead: it says again that it is there. */
static void was_forgotten(hd_engine *e) {
    if (e->membership) place_unref(&e->rt->r.places, e->membership);
    e->membership = 0;
}

static hd_status member_heard(hd_engine *e, hd_pool *pool, place_id doc, const char *session) {
    member *known = find_member(e, session);
    hd_value v = hd_read(e->rt, pool, (hd_cell){ doc });
    if (hd_value_status(v)) return hd_value_status(v);
    compare_soon(e);
    if (known && !hd_value_exists(v)) forget_member(e, known);
    if (!hd_value_exists(v) && is_ours(e, session)) was_forgotten(e);
    if (known || !hd_value_exists(v) || is_ours(e, session)) return HD_OK;
    member m = { .doc = doc };
    if (strlen(session) >= sizeof m.session) return HD_OK;
    memcpy(m.session, session, strlen(session));
    if (!vec_push(e->env, &e->members, m)) return HD_NOMEM;
    place_ref(&e->rt->r.places, doc);
    return HD_OK;
}

static bool note_member(const hd_listing *entry, void *ctx) {
    survey *s = ctx;
    place_id doc = engine_document(s->e, "", entry->id);
    if (!doc) return s->status = HD_NOMEM, false;
    s->status = member_heard(s->e, s->pool, doc, entry->id + strlen(MEMBER_PREFIX));
    place_unref(&s->e->rt->r.places, doc);
    return !s->status;
}

static hd_status find_members(hd_engine *e) {
    survey s = { .e = e };
    hd_status status = hd_pool_open(e->heap, &s.pool);
    if (status) return status;
    status = hd_runtime_list(e->rt, e->space, MEMBER_KIND, MEMBER_PREFIX, note_member, &s);
    hd_pool_close(s.pool);
    return status ? status : s.status;
}

static void member_told(hd_status status, void *ctx) {
    hd_engine *e = ctx;
    (void)status;
    assert(e->member_writes);
    e->member_writes--;
    engine_free_orphan(e);
}

/* Not `there`: removes it. */
static hd_status write_member(hd_engine *e, place_id doc, bool there) {
    hd_tx *tx;
    hd_cell cell = { doc };
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    if (there) status = hd_tx_set(tx, cell, lease_record(e->rt, hd_tx_pool(tx)));
    if (there && !status) status = hd_tx_set_kind(tx, cell, MEMBER_KIND);
    if (!there) status = hd_tx_remove(tx, cell);
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    e->member_writes++;
    status = hd_tx_commit(tx, member_told, e);
    if (status) e->member_writes--;
    return status;
}

void shard_doubt_members(hd_engine *e) {
    e->doubts_members = true;
    compare_soon(e);
}

static bool another_has_one(const hd_engine *e) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (*e->shards[i].lease.holder && !is_ours(e, e->shards[i].lease.holder)) return true;
    return false;
}

/* From here on other members are heard of. */
static hd_status join(hd_engine *e) {
    char ours[SESSION_TEXT];
    if (e->membership || e->rt->options.read_only || !another_has_one(e)) return HD_OK;
    hd_status status = hd_runtime_follow(e->rt, e->space);
    if (!status) status = find_members(e);
    if (status) return status;
    session_text(e->rt->r.session, ours);
    place_id doc = engine_document(e, MEMBER_PREFIX, ours);
    status = doc ? write_member(e, doc, true) : HD_NOMEM;
    if (!status) e->membership = doc;
    else if (doc) place_unref(&e->rt->r.places, doc);
    return status;
}

typedef struct parting {
    const hd_engine *e;
    bool pumped; /* in memory the verdict comes before the commits of others have been told */
} parting;

/* Counts the pump; true: it was not the first, and every write of ours has its verdict. */
static bool count_pump(void *ctx) {
    parting *p = ctx;
    bool pumped = p->pumped;
    p->pumped = true;
    return pumped && !p->e->member_writes;
}

/* Waits for the verdict: by then every lease that was given to us is known, and no other can be (lease_give). */
static void part(hd_engine *e) {
    parting p = { e, false };
    if (e->membership) {
        (void)write_member(e, e->membership, false);
        (void)runtime_run_until(e->rt, count_pump, &p);
        place_unref(&e->rt->r.places, e->membership);
    }
    e->membership = 0;
    while (e->members.count) forget_member(e, &vec_last(&e->members));
    vec_fini(e->env, &e->members);
}

/* ---- comparing */

static bool is_held(const shard *s) { return s->lease.held && !s->drains_ns; }

/* How many leases more we hold than the session, in the spaces that both serve. */
static int64_t lead_over(hd_engine *e, const char *session) {
    int64_t lead = 0;
    for (hd_engine *o = e->rt->work.ctx; o; o = o->next) {
        if (!find_member(o, session)) continue;
        for (uint32_t i = 0; i < o->shard_count; i++)
            lead += is_held(&o->shards[i]) - !strcmp(o->shards[i].lease.holder, session);
    }
    return lead;
}

static const member *find_heir(hd_engine *e) {
    const member *heir = NULL;
    int64_t most = 1;
    for (uint32_t i = 0; i < e->members.count; i++) {
        int64_t lead = lead_over(e, e->members.items[i].session);
        if (lead <= most) continue;
        most = lead;
        heir = &e->members.items[i];
    }
    return heir;
}

static uint32_t running_steps(const shard *s) {
    uint32_t n = 0;
    LIST_FOR (k, &s->e->lives) {
        const live *l = LIST_ENTRY(k, live, link);
        if (l->shard != s || !l->in) continue;
        LIST_FOR (j, &l->in->strands) n += LIST_ENTRY(j, strand, link)->state == STRAND_RUNNING;
    }
    return n;
}

/* Of those that we hold and run, the one whose steps are the soonest over. */
static shard *find_gift(hd_engine *e) {
    shard *gift = NULL;
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < e->shard_count && least; i++) {
        shard *s = &e->shards[i];
        if (!is_held(s) || !s->runs || s->lease.asked) continue;
        uint32_t n = running_steps(s);
        if (n >= least) continue;
        least = n;
        gift = s;
    }
    return gift;
}

/* One at a time. */
static shard *find_draining(const hd_engine *e) {
    for (hd_engine *o = e->rt->work.ctx; o; o = o->next)
        for (uint32_t i = 0; i < o->shard_count; i++)
            if (o->shards[i].drains_ns || o->shards[i].lease.giving) return &o->shards[i];
    return NULL;
}

/* ---- giving */

static void begin_drain(shard *s, const member *heir) {
    assert(s->runs && s->lease.held);
    s->drains_ns = env_now_ns(s->e->env) | 1;
    memcpy(s->heir, heir->session, sizeof s->heir);
    LIST_FOR (n, &s->e->lives) {
        live *l = LIST_ENTRY(n, live, link);
        if (l->shard == s && l->in && l->stored) step_suspend(l);
    }
}

static void end_drain(shard *s) {
    s->drains_ns = 0;
    limits_close(s->e);
    LIST_FOR_SAFE (n, &s->e->lives) {
        live *l = LIST_ENTRY(n, live, link);
        if (l->shard == s) step_queue(l);
    }
    limits_open(s->e);
}

/* Everything that its instances have done is stored. */
static bool is_stored(const shard *s) {
    LIST_FOR (n, &s->e->lives) {
        const live *l = LIST_ENTRY(n, live, link);
        if (l->shard == s && (l->changed || l->flight)) return false;
    }
    return true;
}

/* A member's record; absent: it does not live, and is forgotten. HD_PENDING, HD_IO, ...: that cannot be said. */
static hd_value record_of(hd_engine *e, member *m, hd_pool *pool) {
    lease_holder h;
    hd_value record = hd_read(e->rt, pool, (hd_cell){ m->doc });
    hd_status status = lease_holder_of(e->rt, record, &h);
    if (status) return hd_failed(status);
    if (hd_value_exists(record) && h.lives && *h.session) return record;
    (void)write_member(e, m->doc, false);
    forget_member(e, m);
    return (hd_value){ 0 };
}

static hd_value record_of_heir(const shard *s, hd_pool *pool) {
    member *m = find_member(s->e, s->heir);
    return m ? record_of(s->e, m, pool) : (hd_value){ 0 };
}

static void give(shard *s) {
    hd_pool *pool;
    hd_engine *e = s->e;
    if (e->rt->open || hd_pool_open(e->heap, &pool)) return;
    hd_value record = record_of_heir(s, pool);
    if (!hd_value_exists(record) && !hd_value_status(record)) {
        end_drain(s);
    } else if (!hd_value_status(record)) {
        record = hd_object_set(pool, record, "since", hd_int(pool, (int64_t)env_wall_ms(e->env)));
        engine_leave_shard(s);
        (void)lease_give(&s->lease, record, find_member(e, s->heir)->doc);
        /* Not begun: it is still held, and rises again. */
        if (s->lease.held) shard_rise_soon(s);
        e->patience_ns = DRAIN_NS;
    }
    hd_pool_close(pool);
}

/* A step that runs for long would be attempted again elsewhere: the shard goes on here. */
static void stay(shard *s) {
    hd_engine *e = s->e;
    end_drain(s);
    e->calm_ns = env_now_ns(e->env) + CALM * e->patience_ns;
    if (e->patience_ns < DRAIN_MAX_NS) e->patience_ns *= 2;
    e->uneven = true;
}

static void tend_drain(shard *s) {
    bool late = env_now_ns(s->e->env) >= s->drains_ns + s->e->patience_ns;
    if (!s->lease.held || !s->runs) s->drains_ns = 0;
    else if (is_stored(s) && !running_steps(s)) give(s);
    else if (late) stay(s);
}

/* Those whose process has ended are removed. */
static hd_status look_at_members(hd_engine *e) {
    hd_pool *pool;
    hd_status status = find_members(e);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    for (uint32_t i = e->members.count; i-- > 0 && !status;)
        status = hd_value_status(record_of(e, &e->members.items[i], pool));
    hd_pool_close(pool);
    e->doubts_members = status != HD_OK;
    return status;
}

static void compare(hd_engine *e) {
    hd_status status = join(e);
    if (!status && e->doubts_members) status = look_at_members(e);
    if (status) engine_starve(e, status);   /* and is tried again */
    if (status || find_draining(e)) return; /* compared again when it is given */
    if (env_now_ns(e->env) < e->calm_ns) return;
    const member *heir = find_heir(e);
    shard *gift = heir ? find_gift(e) : NULL;
    if (gift) begin_drain(gift, heir);
    else e->uneven = false;
}

/* ---- in each pump */

void shard_work(hd_engine *e) {
    if (!e->shared || e->observer) return;
    for (uint32_t i = 0; i < e->shard_count; i++) lease_tend(&e->shards[i].lease);
    if (e->uneven && !e->rt->open) compare(e);
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (e->shards[i].drains_ns) tend_drain(&e->shards[i]);
}

uint64_t shard_deadline(const hd_engine *e) {
    uint64_t due = UINT64_MAX;
    if (!e->shared || e->observer) return due;
    for (uint32_t i = 0; i < e->shard_count; i++) {
        uint64_t at = lease_deadline(&e->shards[i].lease);
        if (shard_may_rise(&e->shards[i])) return 0;
        if (e->shards[i].drains_ns) at = env_now_ns(e->env) + LOOK_NS;
        if (at < due) due = at;
    }
    if (!e->uneven || find_draining(e)) return due;
    return e->calm_ns < due ? e->calm_ns : due;
}

/* Told in the middle of a pump: instances are taken up when the next one begins. */
static void lease_taken(bool held, void *ctx) {
    shard *s = ctx;
    hd_engine *e = s->e;
    compare_soon(e);
    s->shall_rise = false;
    e->doubts_members = e->doubts_members || held;
    if (held && !e->observer) shard_rise_soon(s);
    if (held || !s->runs) return;
    if (e->shard_count == 1)
        env_log(e->env, HD_LOG_WARN, "this process no longer runs the workflows of space %s",
                e->space);
    else
        env_log(e->env, HD_LOG_WARN,
                "this process no longer runs shard %u of the workflows of space %s", s->number,
                e->space);
    engine_leave_shard(s);
}

/* ---- hearing */

bool shard_concerns(const hd_engine *e, place_id doc, const char *name) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (e->shards[i].lease.doc == doc) return true;
    return !strncmp(name, MEMBER_PREFIX, strlen(MEMBER_PREFIX)) || !strcmp(name, SHARDS_NAME);
}

/* ---- life */

static void ended(void *ctx) { engine_free_orphan(((shard *)ctx)->e); }

static hd_status open_leases(hd_engine *e) {
    hd_status status = HD_OK;
    char job[40] = JOB;
    for (uint32_t i = 0; i < e->shard_count && !status; i++) {
        lease *l = &e->shards[i].lease;
        if (e->shard_count > 1) snprintf(job, sizeof job, JOB "/%" PRIu32, i);
        status = lease_open(l, e->rt, e->space, job, lease_taken, &e->shards[i]);
        l->ended = ended;
        l->guard = number_cell(e).id; /* known, as long as the engine is open */
    }
    return status;
}

static hd_status make_shards(hd_engine *e, uint32_t count) {
    e->shards = env_new0(e->env, count * sizeof *e->shards);
    if (!e->shards) return HD_NOMEM;
    e->patience_ns = DRAIN_NS;
    e->shard_count = count;
    for (uint32_t i = 0; i < count; i++)
        e->shards[i] = (shard){ .e = e, .number = i, .lease.watch_fd = -1 };
    return e->shared ? open_leases(e) : HD_OK;
}

hd_status shard_open(hd_engine *e, uint32_t wanted) {
    uint32_t count = 1;
    hd_status status = HD_OK;
    if (wanted > SHARDS_MAX)
        return runtime_fail(e->rt, HD_USAGE, "a space has %d shards at most", SHARDS_MAX);
    e->shared = !e->rt->owns_memory;
    if (e->shared) status = find_number(e, wanted, &count);
    return status ? status : make_shards(e, count);
}

/* ---- another number */

static bool has_a_lease(const hd_engine *e) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (e->shards[i].lease.held) return true;
    return false;
}

/* It was opened before the number was declared, or while it had not heard of it. No lease is held: nothing is written.
 * Without memory it has one shard that it does not run, and is an observer. */
static hd_status renumber(hd_engine *e, uint32_t count) {
    uint32_t before = e->shard_count;
    shard *old = e->shards;
    assert(!e->active && list_empty(&e->lives));
    guest_fini(e);
    hd_status status = make_shards(e, count);
    if (!status) status = line_share_all(e);
    if (status) {
        for (uint32_t i = 0; e->shards && i < e->shard_count && e->shards != old; i++)
            lease_close(&e->shards[i].lease);
        if (e->shards && e->shards != old) env_free(e->env, e->shards, count * sizeof *old);
        e->shards = old;
        e->shard_count = before;
        return status;
    }
    for (uint32_t i = 0; i < before; i++) lease_close(&old[i].lease);
    env_free(e->env, old, before * sizeof *old);
    compare_soon(e);
    return HD_OK;
}

/* The number is changed only where no engine is open: one that has a lease was taken for dead. */
static hd_status number_heard(hd_engine *e, hd_value v) {
    if (number_in(v) == e->shard_count || !e->shared) return HD_OK;
    if (shard_is_asked(e)) return HD_BUSY; /* it is looked at again after the verdict */
    if (!has_a_lease(e)) return renumber(e, number_in(v));
    if (e->observer) return HD_OK;
    env_log(e->env, HD_LOG_ERROR,
            "the number of shards of space %s was changed while this engine was not heard of: it "
            "stands by until it is opened anew",
            e->space);
    engine_stand_down(e);
    for (uint32_t i = 0; i < e->shard_count; i++) e->shards[i].shall_rise = false;
    e->observer = true;
    return HD_OK;
}

hd_status shard_heard(hd_engine *e, hd_pool *pool, place_id doc, const char *name) {
    for (uint32_t i = 0; i < e->shard_count; i++) {
        lease *l = &e->shards[i].lease;
        if (l->doc != doc) continue;
        lease_look(l);
        compare_soon(e);
        return e->observer ? HD_OK : lease_try(l);
    }
    if (!strncmp(name, MEMBER_PREFIX, strlen(MEMBER_PREFIX)))
        return member_heard(e, pool, doc, name + strlen(MEMBER_PREFIX));
    hd_value v = hd_read(e->rt, pool, (hd_cell){ doc });
    return hd_value_status(v) ? hd_value_status(v) : number_heard(e, v);
}

static bool is_decided(void *ctx) { return !shard_is_asked(ctx); }

hd_status shard_seek(hd_engine *e) {
    hd_status status = find_members(e);
    e->uneven = true;
    for (uint32_t i = 0; i < e->shard_count && !status && !e->observer; i++)
        status = lease_try(&e->shards[i].lease);
    if (status == HD_BUSY) status = HD_OK; /* the server is away: pumps try again */
    return status ? status : runtime_run_until(e->rt, is_decided, e);
}

void shard_close(hd_engine *e) {
    part(e);
    for (uint32_t i = 0; i < e->shard_count; i++) lease_release(&e->shards[i].lease);
    for (uint32_t i = 0; i < e->shard_count; i++) lease_close(&e->shards[i].lease);
}

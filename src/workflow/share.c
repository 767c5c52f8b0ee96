/* share.c -- bounds that hold over a space whose shards are run by several engines.
 *
 * A queue with a bound, or the limit of a key, lets so many steps run at once. Where a space has several shards, steps
 * of one bound may be in all of them. The bound then is a number of *slots*, and a document says which engine has how
 * many:
 *
 *     workflow-share/queue/<name>, workflow-share/key/<hash>
 *     { "of": "...", "engines": { "<session>": { (as in a lease), "slots": 2, "wants": true } } }
 *
 * An engine begins no more steps than it has slots. It takes slots by a commit that claims the document, so that there
 * are never more than the bound has; it gives those back that it does not need. An engine that finds none says that it
 * *wants* some. Engines that have more than an even part then give a slot away each time a step ends. The slots of a
 * process that has ended are taken by the engines that wait. With one shard there is no document, and all slots are the
 * engine's own.
 *
 * Cost: a commit before the first step of a bound begins, and one after the last has ended; while engines compete, two
 * for each step. A pump reads the documents of those shares only whose needs have changed, or whose time to look again
 * has come (look_ns); to find the latter it goes through all shares that wait. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include <inttypes.h>
#include <stdio.h>

#define LOOK_NS  UINT64_C(1000000000) /* how often an engine that waits asks which others live */
#define YIELD_NS UINT64_C(100000000)  /* how long slots that were given away are not taken back */
#define RETRY_NS UINT64_C(10000000)   /* the document could not be read or written */

typedef struct share_ask {
    hd_engine *e;
    share *s; /* NULL: it was closed meanwhile */
    uint32_t slots;
    uint32_t gave; /* of share.giving, those that the commit gives */
    bool wants;
    uint32_t total; /* slots of all engines when it is stored */
} share_ask;

/* What the engine's steps need of a bound now. */
typedef struct need {
    uint32_t most; /* 0: there is no bound */
    uint32_t used;
    uint32_t more; /* steps that wait and could begin */
} need;

static limit *limit_in(const share *s) {
    return (limit *)(void *)((char *)(uintptr_t)s - offsetof(limit, share));
}

static line *line_in(const share *s) {
    return (line *)(void *)((char *)(uintptr_t)s - offsetof(line, share));
}

/* The bound is that of the step that enters next; steps behind it may have another one. Slots that were taken for a
 * step with a higher bound are given back: a step with a lower one must not use them. */
static need need_of_limit(const limit *l) {
    const strand *next = limit_next(l);
    uint32_t most = next ? strand_node(next)->limit_most : 0;
    bool spare = l->share.slots > l->held + l->share.giving;
    if (most < l->held) most = l->held;
    return (need){ most, l->held,
                   spare && l->share.total > most ? 0 : (uint32_t)binheap_count(&l->waiting) };
}

static need need_of(const hd_engine *e, const share *s) {
    if (s->of_key) return need_of_limit(limit_in(s));
    const line *l = line_in(s);
    need n = { l->most, l->running, 0 };
    for (uint32_t i = 0; i < e->queues.count && !l->paused; i++) {
        const queue *q = e->queues.items[i];
        if (q->line == l && q->room) n.more += (uint32_t)binheap_count(&q->ready);
    }
    return n;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t wanted(need n) { return n.most ? least(n.used + n.more, n.most) : 0; }

/* ---- when it is looked at */

static void put_among(list *l, share *s) {
    list_discard(&s->link);
    list_push_back(l, &s->link);
}

static void look_at(hd_engine *e, share *s, uint64_t ns) {
    s->look_ns = env_now_ns(e->env) + ns;
    put_among(&e->shares_waiting, s);
}

void share_touch(hd_engine *e, share *s) {
    if (s->doc && !s->ask) put_among(&e->shares_due, s);
}

void share_ended(hd_engine *e, share *s) {
    uint32_t most = s->of_key ? need_of_limit(limit_in(s)).most : line_in(s)->most;
    if (s->rivals && s->slots - s->giving > most / (s->rivals + 1)) s->giving++;
    share_touch(e, s);
}

uint64_t share_deadline(const hd_engine *e) {
    uint64_t due = UINT64_MAX;
    if (!list_empty(&e->shares_due)) return 0;
    LIST_FOR (n, &e->shares_waiting) {
        const share *s = LIST_ENTRY(n, share, link);
        if (s->look_ns < due) due = s->look_ns;
    }
    return due;
}

/* ---- what the document says */

typedef struct parties {
    hd_value others; /* their entries */
    uint32_t taken;  /* slots that they have */
    uint32_t rivals; /* how many of them want slots */
    uint32_t mine;   /* slots of this engine */
    bool wants;      /* the document says that this engine wants some */
    bool left;       /* one of the others has ended; its entry is not among `others` */
} parties;

static uint32_t slots_in(hd_value entry) {
    int64_t n = hd_value_as_int(hd_value_at(entry, "slots"), 0);
    return n > 0 && n < UINT32_MAX / 2 ? (uint32_t)n : 0;
}

static bool wants_in(hd_value entry) {
    return hd_value_as_bool(hd_value_at(entry, "wants"), false);
}

/* Reads the document's entries. `check`: leaves out those of engines that have ended; *out says so (left). */
static hd_status read_parties(hd_engine *e, hd_pool *pool, hd_value doc, bool check, parties *out) {
    char ours[SESSION_TEXT];
    session_text(e->rt->r.session, ours);
    *out = (parties){ .others = hd_object() };
    for (hd_iter it = hd_iter_of(hd_value_at(doc, "engines")); hd_iter_next(&it);) {
        lease_holder h = { .lives = true };
        hd_value entry = it.value;
        if (!strcmp(it.key, ours)) {
            out->mine = slots_in(entry);
            out->wants = wants_in(entry);
            continue;
        }
        hd_status status = check ? lease_holder_of(e->rt, entry, &h) : HD_OK;
        if (status) return status;
        out->left = out->left || !h.lives;
        if (!h.lives) continue;
        out->taken += slots_in(entry);
        out->rivals += wants_in(entry);
        out->others = hd_object_set(pool, out->others, it.key, entry);
    }
    return hd_value_status(out->others);
}

/* How many slots the engine is to have. While other engines wait, it takes no more than bring it to its even part of
 * the bound; if it has that already, one more. */
static uint32_t target_of(const hd_engine *e, const share *s, need n, const parties *p) {
    uint32_t mine = s->slots - s->giving, want = wanted(n);
    uint32_t free = n.most > p->taken + mine ? n.most - p->taken - mine : 0;
    uint32_t even = n.most / (p->rivals + 1), part = even > mine ? even - mine : 1;
    if (want <= mine) return want;
    if (s->giving || env_now_ns(e->env) < s->yield_ns) return mine;
    if (p->rivals) free = least(free, part);
    return mine + least(want - mine, free);
}

/* ---- what is written */

static hd_status write_doc(hd_engine *e, hd_tx *tx, const share *s, const parties *p,
                           const share_ask *a) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_cell cell = { s->doc };
    hd_value all = p->others, doc = hd_object();
    char ours[SESSION_TEXT];
    session_text(e->rt->r.session, ours);
    if (a->slots || a->wants) {
        hd_value entry = lease_record(e->rt, pool);
        entry = hd_object_set(pool, entry, "slots", hd_int(pool, a->slots));
        if (a->wants) entry = hd_object_set(pool, entry, "wants", hd_bool(true));
        all = hd_object_set(pool, all, ours, entry);
    }
    if (!hd_value_count(all)) return hd_tx_remove(tx, cell);
    const char *of = s->of_key ? limit_in(s)->key : line_in(s)->name;
    doc = hd_object_set(pool, doc, "of", hd_string(pool, of));
    doc = hd_object_set(pool, doc, "engines", all);
    hd_status status = hd_tx_set(tx, cell, doc);
    return status ? status : hd_tx_set_kind(tx, cell, SHARE_KIND);
}

/* Steps that have waited for slots begin. */
static void use_slots(hd_engine *e, share *s) {
    if (s->of_key) limit_admit(e, limit_in(s));
    else task_heat_line(e, line_in(s));
}

static void note_verdict(hd_engine *e, share *s, const share_ask *a, hd_status status) {
    s->ask = NULL;
    s->giving -= status ? s->giving : a->gave;
    if (!status) {
        if (a->gave && a->wants) s->yield_ns = env_now_ns(e->env) + YIELD_NS;
        s->slots = a->slots;
        s->total = a->total;
        s->wants = a->wants;
    }
    share_touch(e, s);
    /* A stale commit is made again at once; a store that refuses it for another reason may do so again. */
    if (status && hd_status_class(status) != HD_CLASS_STALE) look_at(e, s, LOOK_NS);
    use_slots(e, s);
    if (s->of_key) limit_forget_unused(e, limit_in(s));
}

static void told(hd_status status, void *ctx) {
    share_ask *a = ctx, said = *a;
    hd_engine *e = a->e;
    env_free(e->env, a, sizeof *a);
    assert(e->share_asks);
    e->share_asks--;
    if (e->orphan) engine_free_orphan(e);
    else if (said.s) note_verdict(e, said.s, &said, status);
}

/* Writes and commits what `wish` says. From here on no step uses the slots that the commit gives away. The transaction
 * is committed or aborted in any case. */
static hd_status ask(hd_engine *e, hd_tx *tx, share *s, const parties *p, share_ask wish) {
    share_ask *a = env_new_copy(e->env, &wish, sizeof wish);
    hd_status status = a ? write_doc(e, tx, s, p, a) : HD_NOMEM;
    if (status) {
        if (a) env_free(e->env, a, sizeof *a);
        hd_tx_abort(tx);
        return status;
    }
    list_discard(&s->link);
    s->giving = a->gave;
    s->ask = a;
    e->share_asks++;
    status = hd_tx_commit(tx, told, a);
    if (status) told(status, a);
    return HD_OK;
}

/* ---- in each pump */

/* The share has the slots that it needs, gives none away, and its document has not changed. */
static bool is_content(const share *s, need n) {
    return wanted(n) == s->slots && !s->giving && !s->wants && !s->heard;
}

/* Compares what the document says with what the steps need, and commits the difference. */
static hd_status tend_in(hd_engine *e, hd_tx *tx, share *s, bool check) {
    parties p;
    hd_value doc = hd_tx_get(tx, (hd_cell){ s->doc });
    hd_status status = hd_value_status(doc);
    if (!status) status = read_parties(e, hd_tx_pool(tx), doc, check, &p);
    if (status) return hd_tx_abort(tx), status;
    s->slots = p.mine; /* fewer than before, if another engine has taken this one for dead */
    s->giving = least(s->giving, p.mine);
    s->wants = p.wants;
    s->rivals = p.rivals;
    s->total = p.taken + p.mine;
    s->heard = false;
    if (s->of_key) use_slots(e, s); /* other engines may have fewer slots now (limit_has_room) */
    need n = need_of(e, s);
    uint32_t target = target_of(e, s, n, &p);
    share_ask a = { .e = e,
                    .s = s,
                    .slots = target,
                    .gave = target < s->slots ? s->slots - target : 0,
                    .wants = target < wanted(n),
                    .total = p.taken + target };
    if (target != s->slots || a.wants != s->wants || p.left) return ask(e, tx, s, &p, a);
    hd_tx_abort(tx);
    list_discard(&s->link);
    if (s->wants) look_at(e, s, env_now_ns(e->env) < s->yield_ns ? YIELD_NS : LOOK_NS);
    return HD_OK;
}

static void tend(hd_engine *e, share *s) {
    hd_tx *tx;
    bool check = s->wants && s->look_ns && env_now_ns(e->env) >= s->look_ns;
    list_discard(&s->link);
    if (s->ask || is_content(s, need_of(e, s))) return;
    hd_status status = engine_begin(e, &tx);
    if (!status) status = tend_in(e, tx, s, check);
    if (status) look_at(e, s, RETRY_NS);
}

void share_work(hd_engine *e) {
    uint64_t now = list_empty(&e->shares_waiting) ? 0 : env_now_ns(e->env);
    LIST_FOR_SAFE (n, &e->shares_waiting) {
        share *s = LIST_ENTRY(n, share, link);
        if (s->look_ns <= now) put_among(&e->shares_due, s);
    }
    for (size_t n = list_count(&e->shares_due); n-- > 0 && !list_empty(&e->shares_due);)
        tend(e, LIST_ENTRY(list_first(&e->shares_due), share, link));
}

/* ---- hearing */

void share_heard(hd_engine *e, place_id doc, const char *name) {
    uint32_t hash;
    share *s = NULL;
    if (sscanf(name, "key/%8" SCNx32, &hash) == 1) s = limit_share(e, hash, doc);
    else if (!strncmp(name, "queue/", 6)) s = line_share(e, name + 6);
    if (!s || !s->doc) return;
    s->heard = true;
    share_touch(e, s);
}

/* ---- life */

hd_status share_open(hd_engine *e, share *s, bool of_key, const char *name) {
    char id[SHARE_NAME_SIZE];
    size_t length = strlen(name);
    s->of_key = of_key;
    if (e->shard_count == 1 || s->doc) return HD_OK;
    if (of_key) /* a key may be long: the table of keys has the first eight digits */
        snprintf(id, sizeof id, "key/%08" PRIx32 "%016" PRIx64,
                 (uint32_t)hash_bytes(name, length, 0), hash_bytes(name, length, 1));
    else snprintf(id, sizeof id, "queue/%s", name);
    s->doc = engine_document(e, SHARE_PREFIX, id);
    return s->doc ? HD_OK : HD_NOMEM;
}

void share_close(hd_engine *e, share *s) {
    if (s->ask) s->ask->s = NULL;
    if (s->doc) place_unref(&e->rt->r.places, s->doc);
    list_discard(&s->link);
    *s = (share){ .of_key = s->of_key };
}

static bool is_told(void *ctx) { return !((const hd_engine *)ctx)->share_asks; }

static void touch_all(hd_engine *e) {
    for (uint32_t i = 0; i < e->lines.count; i++) share_touch(e, &e->lines.items[i]->share);
    for (uint32_t i = 0; i < e->limits.count; i++) share_touch(e, &e->limits.items[i]->share);
}

/* The commit that gives the slots back is refused if another engine was faster: then it is made again. If none
 * succeeds, the other engines take the slots when they find that this process has ended. */
void share_leave(hd_engine *e) {
    enum { TIMES = 10 };
    for (int i = 0; i < TIMES && !e->rt->open; i++) {
        touch_all(e);
        share_work(e);
        if (!e->share_asks || runtime_run_until(e->rt, is_told, e)) return;
    }
}

/* away.c -- steps that are done by other processes which have the store open.
 *
 * A process whose engine does not run all shards announces the actions that it serves: "workflow-worker/<session>".
 * An active engine takes each announcement for a worker (task.h), one that is offered only what no worker of its own
 * program, and none on its socket, serves. A step for it is an entry of the document "workflow-tasks/<session>", or,
 * where there are several shards, ".../<shard>", whose entries are of the engine that has the shard's lease. That
 * process listens to it; what it has made of the step is a message in the inbox.
 *
 *     engine (away.c)                    store                       other process (guest.c)
 *                              workflow-worker/S  <----- announces its actions
 *     task_claim, commit  ---> workflow-tasks/S   -----> runs the action: a guest
 *     task_complete       <--- workflow-inbox/... <----- says the outcome
 *     commit: effect, message and entry gone
 *
 * The engine chooses the process and commits the choice, so that no two compete for a step. A token names a claim
 * of one engine: what is said with an old one is late and changes nothing (W1). A process that ends in order removes
 * its announcement, and its steps are given back; the steps of one that dies are lost, as those of a worker on a
 * socket. Whether a process lives is told by the kernel where the store is a file, by the database on a server.
 *
 * The documents of a process that dies are removed, even if it had no steps. At rest that costs nothing on a file: the
 * end of a process makes a descriptor readable. On a server the statement that keeps our own session alive, which is
 * sent anyway, also tells which other sessions live. */
#define _GNU_SOURCE
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hex.h"
#include "base/process.h"
#include "store/session.h"
#include "value/key.h"
#include "value/path.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HANDS     3     /* groups of actions with a room of their own */
#define ROOM_MAX  10000 /* steps that a process has at once, whatever it says */
#define LOOK_NS   UINT64_C(500000000)
#define TOKEN_MAX 40 /* of a claim, as text, with the NUL */

/* Actions of a process that share a bound. */
typedef struct hand {
    worker w; /* first */
    struct away *of;
} hand;

/* A process that has announced itself. */
typedef struct away {
    list_node link; /* in aways.all */
    hd_engine *e;
    char session[SESSION_TEXT];
    char host[PROCESS_HOST];
    int64_t pid;
    uint64_t started;
    place_id announcement; /* referenced */
    place_id *tasks;       /* by shard; referenced; owned */
    name_vec lines;        /* that it serves; none: all */
    hand hands[HANDS];
    int watch_fd;     /* readable when its process ends; -1: none */
    uint64_t sure_ns; /* until then it is known to live; without watch_fd */
    bool dead;        /* away_work ends it */
} away;

/* A step that is to be written for a process, or taken back from it. */
typedef struct entry {
    away *a;
    uint64_t token;
    uint32_t shard; /* of the step's instance */
    char *stale;    /* of another engine: its key; owned; else NULL */
    hd_value task;  /* owned; absent: the entry is removed */
} entry;

struct aways {
    list all;
    VEC(entry) entries;
    uint32_t written; /* of them, those that the commit that is being made writes */
    uint64_t alone;   /* the claim whose step was all that the last commit with entries wrote; 0 */
    bool doubt;       /* a commit was refused: what the documents say is read again */
};

/* ---- documents with steps */

void away_free_documents(hd_engine *e, place_id *docs) {
    for (uint32_t i = 0; docs && i < e->shard_count; i++)
        if (docs[i]) place_unref(&e->rt->r.places, docs[i]);
    if (docs) env_free(e->env, docs, e->shard_count * sizeof *docs);
}

place_id *away_documents(hd_engine *e, const char *session) {
    place_id *docs = env_new0(e->env, e->shard_count * sizeof *docs);
    char name[SESSION_TEXT + 12];
    bool good = docs != NULL;
    for (uint32_t i = 0; i < e->shard_count && good; i++) {
        snprintf(name, sizeof name, e->shard_count > 1 ? "%s/%" PRIu32 : "%s", session, i);
        docs[i] = engine_document(e, TASKS_PREFIX, name);
        good = docs[i] != 0;
    }
    if (good) return docs;
    away_free_documents(e, docs);
    return NULL;
}

/* A shard that this engine has got: entries of the engine before are to be removed first. */
static bool has_new_shard(const hd_engine *e) {
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (e->shards[i].runs && !e->shards[i].cleared) return true;
    return false;
}

static bool is_remote(const hd_engine *e) { return e->rt->r.authority->remote; }

static void write_token(const hd_engine *e, uint64_t token, char out[TOKEN_MAX]) {
    snprintf(out, TOKEN_MAX, "%016" PRIx64 "-%016" PRIx64, e->group, token);
}

static void free_entry(hd_engine *e, entry *n) {
    hd_value_unref(n->task);
    engine_free_text(e, n->stale);
}

static away *find(const hd_engine *e, const char *session) {
    LIST_FOR (n, &e->aways->all)
        if (!strcmp(LIST_ENTRY(n, away, link)->session, session)) return LIST_ENTRY(n, away, link);
    return NULL;
}

/* ---- does it live */

/* On a server the database says for how long the process is alive with certainty (sure_ns). If the server is away, the
 * process is taken for alive. */
static bool ask_server(away *a, uint64_t now) {
    authority *at = a->e->rt->r.authority;
    uint32_t ms = 0;
    if (at->ops->lasts(at, a->session, &ms)) ms = (uint32_t)(LOOK_NS / 1000000);
    a->sure_ns = now + ms * UINT64_C(1000000);
    return ms > 0;
}

/* The descriptor is looked at without waiting: the runtime is woken when it is readable. */
static bool has_ended(const away *a) {
    struct pollfd p = { a->watch_fd, POLLIN, 0 };
    return a->watch_fd >= 0 && poll(&p, 1, 0) > 0;
}

static bool ask_kernel(away *a, uint64_t now) {
    a->sure_ns = now + LOOK_NS;
    return process_lives(a->pid, a->started);
}

/* Whether the process lives. The store or the kernel is asked again when the last answer is too old (sure_ns). */
static bool find_alive(away *a) {
    uint64_t now = env_now_ns(a->e->env);
    if (a->watch_fd >= 0 && !is_remote(a->e)) return !has_ended(a);
    if (now < a->sure_ns) return true;
    return is_remote(a->e) ? ask_server(a, now) : ask_kernel(a, now);
}

/* A runtime of our own process removes its announcement when it closes, so it need not be watched. On a server another
 * machine may have a process with the same id. */
static bool may_die(const away *a) { return is_remote(a->e) || a->pid != getpid(); }

static void watch(away *a) {
    if (is_remote(a->e) || !may_die(a)) return;
    a->watch_fd = process_watch(a->pid);
    if (a->watch_fd >= 0 && runtime_watch(a->e->rt, a->watch_fd)) {
        close(a->watch_fd);
        a->watch_fd = -1;
    }
    if (!process_lives(a->pid, a->started)) a->dead = true; /* before it was watched */
}

static void unwatch(away *a) {
    if (a->watch_fd < 0) return;
    runtime_unwatch(a->e->rt, a->watch_fd);
    close(a->watch_fd);
    a->watch_fd = -1;
}

/* ---- as workers */

static hd_value task_record(hd_engine *e, hd_pool *pool, const task_view *t) {
    hd_value r = hd_object_set(pool, hd_object(), "action", hd_string(pool, t->action));
    r = hd_object_set(pool, r, "id", hd_string(pool, t->id));
    r = hd_object_set(pool, r, "instance", hd_string(pool, t->instance));
    r = hd_object_set(pool, r, "node", hd_string(pool, t->node));
    r = hd_object_set(pool, r, "attempt", hd_int(pool, t->attempt));
    r = hd_object_set(pool, r, "args", t->args);
    r = hd_object_set(pool, r, "since", hd_int(pool, (int64_t)env_wall_ms(e->env)));
    if (t->timeout_ms)
        r = hd_object_set(pool, r, "timeout_ms", hd_int(pool, (int64_t)t->timeout_ms));
    if (t->heartbeat_ms)
        r = hd_object_set(pool, r, "heartbeat_ms", hd_int(pool, (int64_t)t->heartbeat_ms));
    return r;
}

static bool note(away *a, entry n) {
    n.a = a;
    if (vec_push(a->e->env, &a->e->aways->entries, n)) return true;
    a->e->aways->doubt = true;
    return false;
}

/* False: no memory. */
static bool send_task(away *a, const task_view *t) {
    hd_pool *pool;
    if (hd_pool_open(a->e->heap, &pool)) return false;
    hd_value made = task_record(a->e, pool, t);
    bool good = !hd_value_status(made);
    entry n = { .token = t->token, .shard = task_shard(a->e, t->token), .task = made };
    if (good) hd_value_ref(made);
    if (good) good = note(a, n);
    if (!good && !hd_value_status(made)) hd_value_unref(made);
    hd_pool_close(pool);
    return good;
}

static void offer(worker *w) {
    hand *h = (hand *)(void *)w;
    hd_engine *e = w->e;
    if (h->of->dead || e->aways->doubt || has_new_shard(e)) return;
    h->of->dead = !find_alive(h->of);
    for (task_view t; !h->of->dead && task_claim(w, &t);) {
        if (send_task(h->of, &t)) continue;
        (void)task_give_back(e, t.token);
        engine_starve(e, HD_NOMEM);
        return;
    }
}

/* An entry that was not written yet need not be. One of a shard that runs here no more is removed by its next
 * engine. */
static void take_back(away *a, uint64_t token, uint32_t shard_number) {
    struct aways *all = a->e->aways;
    for (uint32_t i = 0; i < all->entries.count; i++) {
        entry *n = &all->entries.items[i];
        if (n->a != a || n->token != token || !hd_value_exists(n->task)) continue;
        free_entry(a->e, n);
        vec_remove(&all->entries, i);
        return;
    }
    if (a->e->shards[shard_number].runs)
        (void)note(a, (entry){ .token = token, .shard = shard_number });
}

static void take_from(worker *w, uint64_t token, const char *why) {
    (void)why;
    take_back(((hand *)(void *)w)->of, token, task_shard(w->e, token));
}

static const worker_ops ops = { .offer = offer, .revoke = take_from };

/* ---- announcements */

static void forget_entries(away *a) {
    struct aways *all = a->e->aways;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->entries.count; i++) {
        if (all->entries.items[i].a == a) free_entry(a->e, &all->entries.items[i]);
        else all->entries.items[kept++] = all->entries.items[i];
    }
    all->entries.count = kept;
}

static void give_back_all(away *a) {
    for (int i = 0; i < HANDS; i++) {
        worker *w = &a->hands[i].w;
        while (w->e && !list_empty(&w->claims))
            (void)task_give_back(a->e, LIST_ENTRY(list_first(&w->claims), task, link)->token);
    }
}

/* Its steps are lost, unless they were given back before. */
static void close_away(away *a) {
    hd_engine *e = a->e;
    for (int i = 0; i < HANDS; i++) worker_leave(&a->hands[i].w);
    forget_entries(a);
    unwatch(a);
    while (a->lines.count) engine_free_text(e, vec_pop(&a->lines));
    vec_fini(e->env, &a->lines);
    if (a->announcement) place_unref(&e->rt->r.places, a->announcement);
    away_free_documents(e, a->tasks);
    list_discard(&a->link);
    env_free(e->env, a, sizeof *a);
}

/* The process is gone, or has said that it leaves: its documents are removed. */
static void dismiss(away *a, bool in_order) {
    if (in_order) give_back_all(a);
    else {
        inbox_spend(a->e, a->announcement);
        shard_doubt_members(a->e);
    }
    for (uint32_t i = 0; i < a->e->shard_count; i++)
        if (a->e->shards[i].runs) inbox_spend(a->e, a->tasks[i]);
    inbox_note_tasks(a->e, a->session);
    close_away(a);
}

static bool names(hd_value list_, const char *name) {
    for (hd_iter it = hd_iter_of(list_); hd_iter_next(&it);)
        if (!strcmp(hd_value_as_text(it.value, ""), name)) return true;
    return false;
}

static hd_status set_hand(hand *h, hd_value serves) {
    hd_value actions = hd_value_at(serves, "actions");
    hd_status status = HD_OK;
    int64_t room = hd_value_as_int(hd_value_at(serves, "room"), 0);
    worker_set_capacity(&h->w, (uint32_t)(room < 0 ? 0 : room > ROOM_MAX ? ROOM_MAX : room));
    for (uint32_t i = h->w.actions.count; i-- > 0;)
        if (!names(actions, h->w.actions.items[i])) worker_unserve(&h->w, h->w.actions.items[i]);
    for (hd_iter it = hd_iter_of(actions); hd_iter_next(&it) && !status;)
        status = worker_serve(&h->w, hd_value_as_text(it.value, ""));
    return status;
}

static hd_status set_hands(away *a, hd_value doc) {
    hd_value serves = hd_value_at(doc, "serves");
    hd_status status = HD_OK;
    for (int i = 0; i < HANDS && !status; i++)
        status = set_hand(&a->hands[i], hd_value_index(serves, (size_t)i));
    return status;
}

static hd_status take_lines(away *a, hd_value doc) {
    for (hd_iter it = hd_iter_of(hd_value_at(doc, "queues")); hd_iter_next(&it);) {
        char *name = engine_text(a->e, hd_value_as_text(it.value, ""));
        if (name && vec_push(a->e->env, &a->lines, name)) continue;
        engine_free_text(a->e, name);
        return HD_NOMEM;
    }
    return HD_OK;
}

/* Notes for removal the entries of an engine before this one, or of a commit whose fate was not known: no step waits
 * for them. */
static hd_status clear_tasks_of(away *a, uint32_t shard_number) {
    hd_pool *pool;
    hd_status status = hd_pool_open(a->e->heap, &pool);
    if (status) return status;
    hd_value tasks = hd_read(a->e->rt, pool, (hd_cell){ a->tasks[shard_number] });
    status = hd_value_status(tasks);
    for (hd_iter it = hd_iter_of(tasks); !status && hd_iter_next(&it);) {
        char *key = engine_text(a->e, it.key);
        if (key && note(a, (entry){ .stale = key, .shard = shard_number })) continue;
        engine_free_text(a->e, key);
        status = HD_NOMEM;
    }
    hd_pool_close(pool);
    return status;
}

static hd_status clear_tasks(away *a) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < a->e->shard_count && !status; i++)
        if (a->e->shards[i].runs) status = clear_tasks_of(a, i);
    return status;
}

static away *new_away(hd_engine *e, const char *session, hd_value doc) {
    away *a = env_new0(e->env, sizeof *a);
    if (!a) return NULL;
    a->e = e;
    a->watch_fd = -1;
    a->pid = hd_value_as_int(hd_value_at(doc, "pid"), 0);
    a->started = (uint64_t)hd_value_as_int(hd_value_at(doc, "started"), 0);
    a->dead = !is_remote(e) && !lease_is_of_this_file(e->rt, doc);
    snprintf(a->session, sizeof a->session, "%s", session);
    snprintf(a->host, sizeof a->host, "%s", hd_value_as_text(hd_value_at(doc, "host"), ""));
    a->announcement = engine_document(e, WORKER_PREFIX, session);
    a->tasks = away_documents(e, session);
    for (int i = 0; i < HANDS; i++) {
        a->hands[i].of = a;
        a->hands[i].w = (worker){ .ops = &ops, .lines = &a->lines, .last_resort = true };
        worker_join(e, &a->hands[i].w);
    }
    list_push_back(&e->aways->all, &a->link);
    return a;
}

static hd_status welcome(hd_engine *e, const char *session, hd_value doc) {
    away *a = new_away(e, session, doc);
    hd_status status = a && a->announcement && a->tasks ? take_lines(a, doc) : HD_NOMEM;
    if (!status) status = clear_tasks(a);
    if (!status) status = set_hands(a, doc);
    if (status && a) close_away(a);
    else if (!status) watch(a);
    return status;
}

static bool is_ours(const hd_engine *e, const char *session) {
    char ours[SESSION_TEXT];
    session_text(e->rt->r.session, ours);
    return !strcmp(session, ours);
}

static hd_status open_aways(hd_engine *e) {
    if (e->aways) return HD_OK;
    e->aways = env_new0(e->env, sizeof *e->aways);
    if (e->aways) list_init(&e->aways->all);
    return e->aways ? HD_OK : HD_NOMEM;
}

static hd_status heard(hd_engine *e, const char *session, hd_value doc) {
    away *a = find(e, session);
    if (!hd_value_exists(doc)) {
        if (a) dismiss(a, true);
        else
            inbox_note_tasks(e, session); /* this engine may have heard of it too late to know it */
        return HD_OK;
    }
    return a ? set_hands(a, doc) : welcome(e, session, doc);
}

hd_status away_heard(hd_engine *e, const char *session) {
    hd_pool *pool;
    uint8_t bytes[SESSION_BYTES];
    if (is_ours(e, session) || !session_of_text(session, strlen(session), bytes)) return HD_OK;
    hd_status status = open_aways(e);
    if (!status) status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value doc = engine_read(e, pool, WORKER_PREFIX, session);
    status = hd_value_status(doc);
    if (!status) status = heard(e, session, doc);
    hd_pool_close(pool);
    return status;
}

/* "<session>", or "<session>/<shard>" where there are several: the shard; SHARDS_MAX: it is of another number of
 * them. */
static uint32_t parse_tasks(const hd_engine *e, const char *name, char session[SESSION_TEXT]) {
    const char *slash = strchr(name, '/');
    snprintf(session, SESSION_TEXT, "%.*s", slash ? (int)(slash - name) : SESSION_TEXT - 1, name);
    unsigned long n = slash ? strtoul(slash + 1, NULL, 10) : 0;
    return n < e->shard_count && !slash == (e->shard_count == 1) ? (uint32_t)n : SHARDS_MAX;
}

/* Usually the announcement, which the process commits together with these documents, is enough to be heard. If it was
 * removed again before this engine looked, only the documents are news. */
bool away_concerns(const hd_engine *e, const char *id) {
    char session[SESSION_TEXT];
    if (strncmp(id, TASKS_PREFIX, strlen(TASKS_PREFIX))) return false;
    uint32_t of = parse_tasks(e, id + strlen(TASKS_PREFIX), session);
    return of != SHARDS_MAX && e->shards[of].runs;
}

/* Removes the document `name`, which has steps for the process `session`, if that process is not announced any more, or
 * its announcement is removed with the next commit. If this runtime still sees an announcement, the process becomes a
 * worker, even if the store has lost the announcement meanwhile: when the engine hears of the removal, it removes the
 * steps of processes that are workers only. `other`: the document was made for another number of shards. */
static hd_status judge_tasks(hd_engine *e, hd_pool *pool, const char *name, const char *session,
                             bool other) {
    place_id doc = engine_document(e, TASKS_PREFIX, name);
    place_id announcement = engine_document(e, WORKER_PREFIX, session);
    /* Reading may load newer rows, so the announcement is read last. */
    hd_value tasks = engine_read(e, pool, TASKS_PREFIX, name);
    hd_value announced = engine_read(e, pool, WORKER_PREFIX, session);
    hd_status status = hd_value_status(announced);
    if (!status) status = doc && announcement ? hd_value_status(tasks) : HD_NOMEM;
    bool unused = other || !hd_value_exists(announced) || inbox_has_spent(e, announcement);
    bool there = hd_value_exists(tasks) && !inbox_has_spent(e, doc);
    if (!status && unused && there) inbox_spend(e, doc);
    if (!status && !unused) status = away_heard(e, session);
    if (doc) place_unref(&e->rt->r.places, doc);
    if (announcement) place_unref(&e->rt->r.places, announcement);
    return status;
}

hd_status away_heard_tasks(hd_engine *e, const char *name) {
    hd_pool *pool;
    char session[SESSION_TEXT];
    uint32_t of = parse_tasks(e, name, session);
    bool other = of == SHARDS_MAX; /* the engine of the first shard removes it */
    if (!e->shards[other ? 0 : of].runs) return HD_OK;
    if (!other && ((e->aways && find(e, session)) || is_ours(e, session))) return HD_OK;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = judge_tasks(e, pool, name, session, other);
    hd_pool_close(pool);
    return status;
}

/* ---- turns */

/* After a refused commit the steps begin anew: whether their entries were written is not known. */
static void resolve_doubt(hd_engine *e) {
    e->aways->doubt = false;
    LIST_FOR (n, &e->aways->all) {
        away *a = LIST_ENTRY(n, away, link);
        give_back_all(a);
        forget_entries(a);
        hd_status status = clear_tasks(a);
        for (int i = 0; i < HANDS; i++) worker_ask_again(&a->hands[i].w);
        if (!status) continue;
        e->aways->doubt = true;
        engine_starve(e, status);
    }
}

/* Then the processes are offered steps. */
static void clear_new_shards(hd_engine *e) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < e->shard_count && !status; i++) {
        shard *s = &e->shards[i];
        if (!s->runs || s->cleared) continue;
        LIST_FOR (n, &e->aways->all)
            if (!status) status = clear_tasks_of(LIST_ENTRY(n, away, link), i);
        s->cleared = !status;
    }
    if (status) engine_starve(e, status);
    LIST_FOR (n, &e->aways->all)
        for (int i = 0; i < HANDS; i++) worker_ask_again(&LIST_ENTRY(n, away, link)->hands[i].w);
}

void away_work(hd_engine *e) {
    if (!e->aways || !e->active || e->rt->open) return;
    if (e->aways->doubt && !e->waits) resolve_doubt(e);
    if (has_new_shard(e) && !e->starved) clear_new_shards(e);
    LIST_FOR_SAFE (n, &e->aways->all) {
        away *a = LIST_ENTRY(n, away, link);
        if (!a->dead && may_die(a)) a->dead = !find_alive(a);
        if (!a->dead) continue;
        env_log(e->env, HD_LOG_WARN, "a process that does steps has ended: %s, process %lld",
                *a->host ? a->host : "?", (long long)a->pid);
        dismiss(a, false);
    }
}

uint64_t away_deadline(const hd_engine *e) {
    uint64_t first = UINT64_MAX;
    if (!e->aways) return first;
    if ((e->aways->doubt && !e->waits) || (has_new_shard(e) && !e->starved)) return 0;
    LIST_FOR (n, &e->aways->all) {
        const away *a = LIST_ENTRY(n, away, link);
        if (a->dead) return 0;
        if (a->watch_fd < 0 && may_die(a) && a->sure_ns < first) first = a->sure_ns;
    }
    return first;
}

/* The hand that has the claim; NULL: the token is old. */
static hand *holder_of(const hd_engine *e, uint64_t token) {
    LIST_FOR (n, &e->aways->all) {
        away *a = LIST_ENTRY(n, away, link);
        for (int i = 0; i < HANDS; i++)
            if (task_is_held_by(&a->hands[i].w, token)) return &a->hands[i];
    }
    return NULL;
}

/* ---- with a commit */

uint32_t away_news(const hd_engine *e) { return e->aways ? e->aways->entries.count : 0; }

static hd_status write_entry(hd_engine *e, hd_tx *tx, const entry *n) {
    char key_text[TOKEN_MAX];
    struct key *key;
    hd_path path;
    shard *of = &e->shards[n->shard];
    place_id doc = n->a->tasks[n->shard];
    if (!of->runs) return HD_OK; /* its next engine begins with what is stored */
    write_token(e, n->token, key_text);
    const char *chars = n->stale ? n->stale : key_text;
    hd_status status = key_make(e->heap, chars, strlen(chars), &key);
    if (status) return status;
    status = path_child(e->heap, HD_PATH_ROOT, key, &path);
    key_unref(key);
    if (status) return status;
    status = engine_fence(tx, of);
    if (!status) status = tx_note_claim(tx, doc);
    if (!status)
        status =
            tx_write_path(tx, hd_value_exists(n->task) ? OP_SET : OP_REMOVE, doc, path, n->task, 0);
    path_unref(e->heap, path);
    if (status != HD_KIND) return status;
    n->a->dead =
        true; /* something else has written the document: the process announces itself anew */
    return HD_OK;
}

hd_status away_write(hd_engine *e, hd_tx *tx, uint32_t most) {
    struct aways *all = e->aways;
    hd_status status = HD_OK;
    if (!all) return HD_OK;
    all->written = away_news(e) < most ? away_news(e) : most;
    all->alone = all->written == 1 ? all->entries.items[0].token : 0;
    for (uint32_t i = 0; i < all->written && !status; i++)
        status = write_entry(e, tx, &all->entries.items[i]);
    return status;
}

hd_status away_load(hd_engine *e) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < away_news(e) && !status; i++) {
        const entry *n = &e->aways->entries.items[i];
        if (e->shards[n->shard].runs) status = engine_load(e, n->a->tasks[n->shard]);
    }
    return status;
}

void away_written(hd_engine *e) {
    struct aways *all = e->aways;
    if (!all || !all->written) return;
    for (uint32_t i = 0; i < all->written; i++) free_entry(e, &all->entries.items[i]);
    all->entries.count -= all->written;
    memmove(all->entries.items, all->entries.items + all->written,
            all->entries.count * sizeof *all->entries.items);
    all->written = 0;
}

bool away_drop_long(hd_engine *e) {
    hand *h = e->aways && e->aways->alone ? holder_of(e, e->aways->alone) : NULL;
    if (!h) return false;
    (void)task_fail(e, e->aways->alone, "ValueError",
                    "the arguments are longer than the store takes");
    return true;
}

void away_lost(hd_engine *e) {
    if (e->aways && !list_empty(&e->aways->all)) e->aways->doubt = true;
}

/* ---- what a process says */

static uint64_t read_token(const hd_engine *e, const char *chars) {
    uint64_t group, token;
    if (strlen(chars) != 33 || !hex_read(chars, 16, &group) || chars[16] != '-') return 0;
    return group == e->group && hex_read(chars + 17, 16, &token) ? token : 0;
}

static hd_status apply_outcome(hd_engine *e, uint64_t token, hd_value message) {
    hd_value error = hd_value_at(message, "error"), result = hd_value_at(message, "result");
    if (hd_value_exists(error)) return task_raise(e, token, error);
    if (hd_value_exists(result)) return task_complete(e, token, result);
    return task_fail(e, token, hd_value_as_text(hd_value_at(message, "class"), "RuntimeError"),
                     hd_value_as_text(hd_value_at(message, "message"), ""));
}

bool away_is_said(const char *verb) {
    return !strcmp(verb, "outcome") || !strcmp(verb, "beat") || !strcmp(verb, "back");
}

hd_status away_apply(hd_engine *e, hd_value message) {
    const char *verb = hd_value_as_text(hd_value_at(message, "verb"), "");
    uint64_t token = read_token(e, hd_value_as_text(hd_value_at(message, "token"), ""));
    hand *h = e->aways && token ? holder_of(e, token) : NULL;
    if (!h) return e->stats.duplicates++, HD_NOT_FOUND;
    if (!strcmp(verb, "beat")) return task_heartbeat(e, token);
    away *a = h->of;
    uint32_t shard_number = task_shard(e, token);
    hd_status status =
        strcmp(verb, "back") ? apply_outcome(e, token, message) : task_give_back(e, token);
    if (!status) take_back(a, token, shard_number);
    return status;
}

hd_value away_where(hd_pool *pool, const strand *s) {
    const live *l = s->in->owner;
    const hand *h = l->e->aways && s->token ? holder_of(l->e, s->token) : NULL;
    if (!h) return (hd_value){ 0 };
    hd_value r = hd_object_set(pool, hd_object(), "host", hd_string(pool, h->of->host));
    r = hd_object_set(pool, r, "pid", hd_int(pool, h->of->pid));
    return hd_object_set(pool, r, "session", hd_string(pool, h->of->session));
}

void away_fini(hd_engine *e) {
    if (!e->aways) return;
    while (!list_empty(&e->aways->all))
        close_away(LIST_ENTRY(list_first(&e->aways->all), away, link));
    assert(!e->aways->entries.count);
    vec_fini(e->env, &e->aways->entries);
    env_free(e->env, e->aways, sizeof *e->aways);
    e->aways = NULL;
}

/* guest.c -- steps of an engine in another process that this process does; away.c describes the whole.
 *
 * A guest is a step that has come through the store, as an entry of a document. The workers of this engine claim it as
 * they claim steps of its own (task_claim), and end it with its token, which has a bit that other tokens do not have.
 * The outcome is posted to the other engine with the next pump, and again if the commit has failed.
 *
 *     entry appears --> WAITS --task_claim--> RUNS --task_complete, ...--> SAYS --commit--> SAID --> entry is gone
 *
 * When the other engine removes the entry, the guest ends, whatever its state. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/process.h"
#include "store/session.h"
#include "workflow/guest.h"
#include <stdio.h>
#include <unistd.h>

#define GUEST_BIT  (UINT64_C(1) << 63) /* of a token */
#define KEY_SIZE   40                  /* of an entry's name, with the NUL */
#define HERE_ROOM  64  /* guests that the process offers to do at once, of actions with `here` */
#define LATER_ROOM 256 /* and of actions with `later` */
#define AGAIN_NS   UINT64_C(500000000) /* until an announcement that has failed is tried again */

typedef struct guest {
    list_node link; /* in guests.all */
    hd_engine *e;   /* NULL: the engine is closed, and the verdict on `message` frees the guest */
    const hd_env *env;
    char key[KEY_SIZE]; /* of its entry: the engine's token */
    uint64_t token;     /* ours */
    uint32_t shard;     /* whose engine has written the entry */
    enum { GUEST_WAITS, GUEST_RUNS, GUEST_SAYS, GUEST_SAID } state;
    worker *w;        /* that runs it; NULL: none */
    hd_value task;    /* the entry, owned */
    hd_value message; /* the outcome that is to be posted, owned; absent: the step is given back */
    bool asked;       /* a commit with the message has no verdict */
    bool refused;     /* the store has refused the message: an exception is posted in its place */
    bool gone;        /* the entry is gone: the verdict frees the guest */
    bool seen;        /* guest_heard: its entry is still there */
    uint64_t beat_ns; /* no heartbeat is posted before; monotonic clock */
} guest;

struct guests {
    list all;
    place_id announcement; /* referenced */
    place_id *tasks;       /* by shard; referenced; owned */
    place_id single;       /* the document of steps while the space had one shard; 0: none */
    bool announced;        /* the announcement is stored, with the actions of announced_version */
    uint32_t version, announced_version; /* of the actions */
    uint64_t again_ns;                   /* an announcement has failed: it is tried again then */
    uint64_t serial;
};

static const char *word_of(const guest *g, const char *key) {
    return hd_value_as_text(hd_value_at(g->task, key), "");
}

static uint64_t number_of(const guest *g, const char *key) {
    int64_t n = hd_value_as_int(hd_value_at(g->task, key), 0);
    return n > 0 ? (uint64_t)n : 0;
}

/* ---- life of a guest */

static void free_guest(guest *g) {
    const hd_env *env = g->env;
    list_discard(&g->link);
    hd_value_unref(g->task);
    hd_value_unref(g->message);
    env_free(env, g, sizeof *g);
}

static void leave_worker(guest *g) {
    if (!g->w) return;
    worker *w = g->w;
    g->w = NULL;
    worker_hold(w, -1);
}

/* The entry is gone. `orphan`: the engine is closed. If a commit has no verdict yet, that verdict frees the guest. */
static void end_guest(guest *g, bool orphan) {
    worker *w = g->w;
    uint64_t token = g->token;
    leave_worker(g);
    g->gone = true;
    list_discard(&g->link);
    if (orphan) g->e = NULL;
    if (!g->asked) free_guest(g);
    if (w && w->ops->revoke) w->ops->revoke(w, token, "gone");
}

static bool is_served(const hd_engine *e, const char *action) {
    const action_entry *a = engine_action(e, action);
    return a && !a->spec.transaction;
}

static void say(guest *g, hd_value message);

static hd_status new_guest(hd_engine *e, hd_pool *pool, const char *key, hd_value from,
                           uint32_t of) {
    struct guests *all = e->guests;
    guest *g = strlen(key) < KEY_SIZE ? env_new0(e->env, sizeof *g) : NULL;
    if (!g) return strlen(key) < KEY_SIZE ? HD_NOMEM : HD_OK;
    g->e = e;
    g->env = e->env;
    g->seen = true;
    g->shard = of;
    g->token = GUEST_BIT | ++all->serial;
    g->task = hd_value_ref(from);
    snprintf(g->key, sizeof g->key, "%s", key);
    list_push_back(&all->all, &g->link);
    if (!is_served(e, word_of(g, "action")))
        say(g, hd_object_set(pool, hd_object(), "verb", hd_string(pool, "back")));
    return HD_OK;
}

static guest *find_key(const hd_engine *e, const char *key) {
    LIST_FOR (n, &e->guests->all)
        if (!strcmp(LIST_ENTRY(n, guest, link)->key, key)) return LIST_ENTRY(n, guest, link);
    return NULL;
}

static guest *find_token(const hd_engine *e, uint64_t token) {
    if (!e->guests || !(token & GUEST_BIT)) return NULL;
    LIST_FOR (n, &e->guests->all) {
        guest *g = LIST_ENTRY(n, guest, link);
        if (g->token == token && g->state == GUEST_RUNS) return g;
    }
    return NULL;
}

/* ---- entries come and go */

bool guest_concerns(const hd_engine *e, place_id doc) {
    if (!e->guests || doc == e->guests->announcement) return e->guests != NULL;
    for (uint32_t i = 0; i < e->shard_count; i++)
        if (doc == e->guests->tasks[i]) return true;
    return false;
}

static void drop_unseen(hd_engine *e) {
    for (bool any = true; any;) { /* a revocation may call the program, which may change the list */
        any = false;
        LIST_FOR (n, &e->guests->all) {
            guest *g = LIST_ENTRY(n, guest, link);
            if (g->seen) continue;
            end_guest(g, false);
            any = true;
            break;
        }
    }
}

/* Drops guests of shards that this engine runs now: the engine that has written their entries no longer does. */
static void drop_own(hd_engine *e) {
    LIST_FOR (n, &e->guests->all) {
        guest *g = LIST_ENTRY(n, guest, link);
        g->seen = !e->shards[g->shard].runs;
    }
    drop_unseen(e);
}

static hd_status take_entries(hd_engine *e, hd_pool *pool, uint32_t shard_number) {
    hd_value tasks = hd_read(e->rt, pool, (hd_cell){ e->guests->tasks[shard_number] });
    hd_status status = hd_value_status(tasks);
    if (!status && !hd_value_exists(tasks)) e->guests->announced = false;
    if (e->shards[shard_number].runs) return status;
    for (hd_iter it = hd_iter_of(tasks); !status && hd_iter_next(&it);) {
        guest *g = find_key(e, it.key);
        if (g) g->seen = true;
        else status = new_guest(e, pool, it.key, it.value, shard_number);
    }
    return status;
}

/* The documents have changed. If they are gone, another process took this one for dead: this one announces itself
 * again. */
hd_status guest_heard(hd_engine *e) {
    hd_pool *pool;
    struct guests *all = e->guests;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value announced = hd_read(e->rt, pool, (hd_cell){ all->announcement });
    status = hd_value_status(announced);
    if (!status && !hd_value_exists(announced)) all->announced = false;
    LIST_FOR (n, &all->all) LIST_ENTRY(n, guest, link)->seen = false;
    for (uint32_t i = 0; i < e->shard_count && !status; i++) status = take_entries(e, pool, i);
    if (!status) drop_unseen(e);
    hd_pool_close(pool);
    return status;
}

/* ---- as the workers of this engine see it */

static bool serves(const worker *w, const guest *g) {
    for (uint32_t i = 0; i < w->actions.count; i++)
        if (!strcmp(w->actions.items[i], word_of(g, "action"))) return true;
    return false;
}

static guest *next_for(const worker *w) {
    LIST_FOR (n, &w->e->guests->all) {
        guest *g = LIST_ENTRY(n, guest, link);
        if (g->state == GUEST_WAITS && serves(w, g)) return g;
    }
    return NULL;
}

/* A worker with `last_resort` stands for another process (away.c): steps that were given to this process are not handed
 * on to it. */
bool guest_claim(worker *w, task_view *out) {
    guest *g = w->e->guests && !w->last_resort ? next_for(w) : NULL;
    if (!g) return false;
    g->state = GUEST_RUNS;
    g->w = w;
    worker_hold(w, 1);
    *out = (task_view){ .token = g->token,
                        .action = word_of(g, "action"),
                        .instance = word_of(g, "instance"),
                        .node = word_of(g, "node"),
                        .args = hd_value_at(g->task, "args"),
                        .attempt = (uint32_t)number_of(g, "attempt"),
                        .timeout_ms = number_of(g, "timeout_ms"),
                        .heartbeat_ms = number_of(g, "heartbeat_ms") };
    snprintf(out->id, sizeof out->id, "%s", word_of(g, "id"));
    return true;
}

/* The worker is done with the guest: the message is posted with the next pump. Absent: the step is given back. */
static void say(guest *g, hd_value message) {
    leave_worker(g);
    g->state = GUEST_SAYS;
    if (hd_value_status(message)) engine_starve(g->e, hd_value_status(message));
    else if (hd_value_exists(message)) g->message = hd_value_ref(message);
}

hd_status guest_say(hd_engine *e, uint64_t token, const guest_words *words) {
    guest *g = find_token(e, token);
    hd_pool *pool;
    if (!g) return HD_NOT_FOUND;
    if (hd_pool_open(e->heap, &pool)) return say(g, hd_failed(HD_NOMEM)), HD_OK;
    hd_value m =
        hd_object_set(pool, hd_object(), "verb", hd_string(pool, words->back ? "back" : "outcome"));
    if (hd_value_exists(words->result)) m = hd_object_set(pool, m, "result", words->result);
    if (hd_value_exists(words->error)) m = hd_object_set(pool, m, "error", words->error);
    if (words->class_name) {
        hd_value text_ = hd_string(pool, words->message);
        if (hd_value_status(text_) == HD_SYNTAX)
            text_ = hd_string(pool, "an exception that is not UTF-8");
        m = hd_object_set(pool, m, "class", hd_string(pool, words->class_name));
        m = hd_object_set(pool, m, "message", text_);
    }
    say(g, m);
    hd_pool_close(pool);
    return HD_OK;
}

void guest_left(const worker *w) {
    if (!w->e->guests) return;
    LIST_FOR (n, &w->e->guests->all) {
        guest *g = LIST_ENTRY(n, guest, link);
        if (g->w == w) say(g, (hd_value){ 0 });
    }
}

/* ---- posting */

static hd_value addressed(const guest *g, hd_pool *pool, hd_value message) {
    hd_value m = hd_object_set(pool, message, "to", hd_string(pool, word_of(g, "instance")));
    return hd_object_set(pool, m, "token", hd_string(pool, g->key));
}

/* The message that is posted. */
static hd_value words_of(const guest *g, hd_pool *pool) {
    if (g->refused) {
        hd_value m = hd_object_set(pool, hd_object(), "verb", hd_string(pool, "outcome"));
        m = hd_object_set(pool, m, "class", hd_string(pool, "RuntimeError"));
        return hd_object_set(pool, m, "message",
                             hd_string(pool, "the store does not take the result"));
    }
    if (hd_value_exists(g->message)) return g->message;
    return hd_object_set(pool, hd_object(), "verb", hd_string(pool, "back"));
}

/* The message is posted again with the next pump. */
static void post_again(guest *g, hd_status status) {
    g->state = GUEST_SAYS;
    g->refused = g->refused || status_is_for_good(status);
    engine_starve(g->e, status);
}

static void verdict(hd_status status, void *ctx) {
    guest *g = ctx;
    assert(g->asked);
    g->asked = false;
    if (!g->e || g->gone) {
        free_guest(g);
        return;
    }
    if (status) post_again(g, status);
}

static void post_words(guest *g) {
    hd_pool *pool;
    hd_status status = hd_pool_open(g->e->heap, &pool);
    if (!status) {
        g->asked = true;
        g->state = GUEST_SAID;
        status = inbox_post(g->e, addressed(g, pool, words_of(g, pool)), verdict, g);
        hd_pool_close(pool);
    }
    if (!status) return;
    g->asked = false;
    post_again(g, status);
}

static void ignore_verdict(hd_status status, void *ctx) {
    (void)status; /* the next heartbeat counts */
    (void)ctx;
}

/* Each heartbeat that is posted is a commit: so three are posted in the time after which the worker would count as
 * lost, however often the action calls this. */
hd_status guest_beat(hd_engine *e, uint64_t token) {
    guest *g = find_token(e, token);
    hd_pool *pool;
    uint64_t now = env_now_ns(e->env);
    if (!g) return HD_NOT_FOUND;
    if (!number_of(g, "heartbeat_ms") || now < g->beat_ns || e->rt->open) return HD_OK;
    if (hd_pool_open(e->heap, &pool)) return HD_OK;
    g->beat_ns = now + number_of(g, "heartbeat_ms") * UINT64_C(1000000) / 3;
    hd_value m = hd_object_set(pool, hd_object(), "verb", hd_string(pool, "beat"));
    (void)inbox_post(e, addressed(g, pool, m), ignore_verdict, NULL);
    hd_pool_close(pool);
    return HD_OK;
}

/* ---- announcing */

/* Which worker runs an action. */
typedef enum hand_kind { HAND_HERE, HAND_POOL, HAND_LATER, HAND_WITHIN } hand_kind;

static hand_kind hand_kind_of(const hd_action_spec *a) {
    if (a->transaction) return HAND_WITHIN;
    return a->later ? HAND_LATER : a->here ? HAND_HERE : HAND_POOL;
}

/* {"room": guests at once, "actions": those that this worker runs} */
static hd_value hand_record(const hd_engine *e, hd_pool *pool, hand_kind which, uint32_t room) {
    hd_value actions = hd_array();
    for (uint32_t i = 0; i < e->actions.count; i++) {
        const hd_action_spec *a = &e->actions.items[i].spec;
        if (hand_kind_of(a) == which)
            actions = hd_array_append(pool, actions, hd_string(pool, a->name));
    }
    hd_value r = hd_object_set(pool, hd_object(), "room", hd_int(pool, room));
    return hd_object_set(pool, r, "actions", actions);
}

static hd_value announcement_of(const hd_engine *e, hd_pool *pool) {
    char session[SESSION_TEXT], host[PROCESS_HOST], file[LEASE_FILE];
    hd_value serves_ = hd_array(), lines = hd_array();
    session_text(e->rt->r.session, session);
    lease_file(e->rt, file);
    serves_ = hd_array_append(pool, serves_, hand_record(e, pool, HAND_HERE, HERE_ROOM));
    serves_ = hd_array_append(pool, serves_, hand_record(e, pool, HAND_POOL, e->threads));
    serves_ = hd_array_append(pool, serves_, hand_record(e, pool, HAND_LATER, LATER_ROOM));
    for (uint32_t i = 0; i < e->served.count; i++)
        lines = hd_array_append(pool, lines, hd_string(pool, e->served.items[i]));
    hd_value r = hd_object_set(pool, hd_object(), "session", hd_string(pool, session));
    r = hd_object_set(pool, r, "host", hd_string(pool, process_host(host)));
    r = hd_object_set(pool, r, "pid", hd_int(pool, getpid()));
    if (*file) r = hd_object_set(pool, r, "file", hd_string(pool, file));
    r = hd_object_set(pool, r, "started", hd_int(pool, (int64_t)process_started(getpid())));
    r = hd_object_set(pool, r, "since", hd_int(pool, (int64_t)env_wall_ms(e->env)));
    if (e->served.count) r = hd_object_set(pool, r, "queues", lines);
    return hd_object_set(pool, r, "serves", serves_);
}

static bool has_actions(const hd_engine *e) {
    for (uint32_t i = 0; i < e->actions.count; i++)
        if (!e->actions.items[i].spec.transaction) return true;
    return false;
}

/* Whether this process offers its actions to other engines. An engine that runs all shards does not: no other engine
 * has steps. */
static bool is_to_announce(const hd_engine *e) {
    return shard_count_running(e) < e->shard_count && !e->closing && has_actions(e) &&
           !e->rt->options.read_only && !e->rt->owns_memory;
}

/* Whether nothing is to be announced or removed now: the store says what it should, a commit is under way, or it is not
 * known yet whether this engine will run shards. `here`: as is_to_announce says. */
static bool is_settled(const hd_engine *e, bool here) {
    const struct guests *all = e->guests;
    bool undecided = (shard_is_asked(e) || shard_shall_rise(e)) && !e->closing;
    return undecided || e->announcements ||
           (here == all->announced && (!here || all->version == all->announced_version));
}

static hd_status open_guests(hd_engine *e) {
    char session[SESSION_TEXT];
    if (e->guests) return HD_OK;
    struct guests *all = env_new0(e->env, sizeof *all);
    if (!all) return HD_NOMEM;
    list_init(&all->all);
    session_text(e->rt->r.session, session);
    all->announcement = engine_document(e, WORKER_PREFIX, session);
    all->tasks = away_documents(e, session);
    if (e->shard_count > 1) all->single = engine_document(e, TASKS_PREFIX, session);
    e->guests = all;
    /* If the number of shards has changed, an engine may have written entries before this one listened. */
    e->overheard = true;
    if (all->announcement && all->tasks) return inbox_listen(e);
    guest_fini(e);
    return HD_NOMEM;
}

static void announcement_verdict(hd_status status, void *ctx) {
    hd_engine *e = ctx;
    assert(e->announcements);
    e->announcements--;
    if (e->orphan) engine_free_orphan(e);
    else if (status && e->guests) e->guests->announced = !e->guests->announced;
}

/* The document for entries of one shard. The engine that runs the shard writes it; this one makes it if there is none,
 * and never changes it. */
static hd_status make_tasks(hd_tx *tx, hd_cell tasks) {
    hd_value there = hd_tx_get(tx, tasks);
    hd_status status = hd_value_status(there);
    if (status || hd_value_exists(there)) return status;
    status = hd_tx_set(tx, tasks, hd_object());
    return status ? status : hd_tx_set_kind(tx, tasks, TASKS_KIND);
}

/* Removes the announcement, and the documents for entries of shards that run here. The engines of the other shards
 * remove theirs when they hear that the announcement is gone. */
static hd_status remove_announcement(hd_engine *e, hd_tx *tx) {
    hd_status status = hd_tx_remove(tx, (hd_cell){ e->guests->announcement });
    for (uint32_t i = 0; i < e->shard_count && !status; i++)
        if (e->shards[i].runs) status = hd_tx_remove(tx, (hd_cell){ e->guests->tasks[i] });
    return status;
}

static hd_status write_announcement(hd_engine *e, hd_tx *tx, bool here) {
    hd_cell announcement = { e->guests->announcement };
    hd_status status = HD_OK;
    if (!here) return remove_announcement(e, tx);
    if (e->guests->single) status = hd_tx_remove(tx, (hd_cell){ e->guests->single });
    for (uint32_t i = 0; i < e->shard_count && !status; i++)
        status = make_tasks(tx, (hd_cell){ e->guests->tasks[i] });
    if (!status) status = hd_tx_set(tx, announcement, announcement_of(e, hd_tx_pool(tx)));
    return status ? status : hd_tx_set_kind(tx, announcement, WORKER_KIND);
}

static hd_status announce(hd_engine *e, bool here) {
    authority *a = e->rt->r.authority;
    hd_tx *tx;
    hd_status status = here && a->remote ? a->ops->stay(a) : HD_OK;
    if (!status) status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    hd_tx_set_group(tx, e->group);
    status = write_announcement(e, tx, here);
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    e->announcements++;
    status = hd_tx_commit(tx, announcement_verdict, e);
    if (status) e->announcements--;
    return status;
}

static void announce_if_need_be(hd_engine *e) {
    bool here = is_to_announce(e);
    struct guests *all = e->guests;
    if (!all && (!here || open_guests(e))) return;
    all = e->guests;
    if (is_settled(e, here) || env_now_ns(e->env) < all->again_ns) return;
    all->announced = here;
    all->announced_version = all->version;
    hd_status status = announce(e, here);
    all->again_ns = status ? env_now_ns(e->env) + AGAIN_NS : 0;
    if (status) all->announced = !here;
}

void guest_actions_changed(hd_engine *e) {
    if (e->guests) e->guests->version++;
}

/* ---- turns */

static void offer_all(hd_engine *e) {
    LIST_FOR_SAFE (n, &e->workers) {
        worker *w = LIST_ENTRY(n, worker, link);
        if (w->held < w->capacity && next_for(w)) w->ops->offer(w);
    }
}

void guest_work(hd_engine *e) {
    if (e->rt->open || e->rt->in_run) return;
    announce_if_need_be(e);
    if (!e->guests || list_empty(&e->guests->all)) return;
    if (e->active) drop_own(e);
    if (!e->closing) offer_all(e);
    LIST_FOR_SAFE (n, &e->guests->all) {
        guest *g = LIST_ENTRY(n, guest, link);
        if (g->state == GUEST_SAYS && !g->asked && !e->starved) post_words(g);
    }
}

static bool has_work(const hd_engine *e) {
    LIST_FOR (n, &e->guests->all) {
        const guest *g = LIST_ENTRY(n, guest, link);
        if (g->state == GUEST_SAYS && !g->asked) return true;
    }
    LIST_FOR (n, &e->workers) {
        const worker *w = LIST_ENTRY(n, worker, link);
        if (w->held < w->capacity && next_for(w)) return true;
    }
    return false;
}

uint64_t guest_deadline(const hd_engine *e) {
    const struct guests *all = e->guests;
    bool here = is_to_announce(e);
    if (!all) return here && !shard_is_asked(e) && !shard_shall_rise(e) ? 0 : UINT64_MAX;
    if (has_work(e)) return 0;
    return is_settled(e, here) ? UINT64_MAX : all->again_ns;
}

/* ---- the end */

void guest_close(hd_engine *e) {
    if (!e->guests) return;
    assert(e->closing);
    announce_if_need_be(e);
}

void guest_fini(hd_engine *e) {
    struct guests *all = e->guests;
    if (!all) return;
    while (!list_empty(&all->all)) end_guest(LIST_ENTRY(list_first(&all->all), guest, link), true);
    if (all->announcement) place_unref(&e->rt->r.places, all->announcement);
    if (all->single) place_unref(&e->rt->r.places, all->single);
    away_free_documents(e, all->tasks);
    env_free(e->env, all, sizeof *all);
    e->guests = NULL;
}

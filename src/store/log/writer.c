/* writer.c -- the thread, the two queues between it and its runtime, and which of the two threads works.
 *
 * At any time one of two threads may use the writer's state: the writer's own thread, or, while that one sleeps,
 * the runtime's thread for the length of one *turn*. The state changes hands under `lock`:
 *
 *     the thread    ... work, work --> resting ------------ woken --> waits while there is a turn
 *     the runtime                          push, turn: judge, COMMIT, give back
 *
 * When a program waits for its commit, a turn saves two wake-ups of threads, which on a fast disk take as long as
 * the disk does. A turn only judges and commits. Checkpoints, pruning and retries are left to the thread. */
#define _GNU_SOURCE
#include "store/log/writer.h"

#include "base/poller.h"
#include "store/log/checkpoint.h"
#include "store/log/presence.h"
#include "store/log/prune.h"
#include <errno.h>
#include <string.h>
#include <poll.h>
#include <unistd.h>

#define TAIL_DEFAULT (UINT64_C(64) << 20)
#define TAIL_IDLE    (UINT64_C(1) << 20) /* worth folding when there is nothing else to do */

enum {
    IDLE_MS = 1000,
    BACKOFF_MS = 5,       /* doubles with each failure */
    BACKOFF_MAX_MS = 500, /* up to this */
    PATIENCE = 3,         /* failures in a row before the runtime is told of them */
    RACES = 1000,         /* races lost to other writers in a row that do not count as a failure */
    RUN = 8, /* groups one after the other, then a pause: while other processes write, too */
    COURTESY = 8 * RUN /* groups after the last rows of another process for which that holds */
};

/* ---- The thread ---------------------------------------------------------------------------- */

/* False: nothing came within the time. */
static bool sleep_on(int fd, int ms) {
    struct pollfd p = { fd, POLLIN, 0 };
    bool woken = poll(&p, 1, ms) != 0;
    if (p.revents) (void)bell_take(fd); /* if it was not rung, looking at the queue is harmless */
    return woken;
}

static void append_batches(batch **list_end, batch *more) {
    while (*list_end) list_end = &(*list_end)->next;
    *list_end = more;
}

/* Moves the queue to `todo`; under the lock. */
static void take_queue(writer *w) {
    assert(!*w->queue_end);
    append_batches(&w->todo, w->queue);
    w->queue = NULL;
    w->queue_end = &w->queue;
    w->busy = w->todo != NULL;
    w->there = w->seen;
}

/* What there is to do. */
static writer_command take_work(writer *w, bool *stop) {
    pthread_mutex_lock(&w->lock);
    take_queue(w);
    *stop = w->stop;
    writer_command command = w->command;
    pthread_mutex_unlock(&w->lock);
    return command;
}

static void post_outcome(writer *w, outcome *o) {
    assert(!o->next && o->before <= o->row);
    pthread_mutex_lock(&w->lock);
    assert(!*w->ready_end);
    *w->ready_end = o;
    w->ready_end = &o->next;
    w->trouble = HD_OK;
    if (w->fold_to) w->folds.groups++;
    pthread_mutex_unlock(&w->lock);
}

/* Logs a failure that has lasted for PATIENCE attempts, and tells the runtime: once, and again if another kind of
 * failure takes its place. A server that was away may come back as an older backup, behind which nothing can be
 * appended. Only this thread writes `trouble`. */
static void post_trouble(writer *w, hd_status status) {
    if (w->attempts < PATIENCE || w->trouble == status) return;
    hd_error error;
    log_store_failure(w->store, status, "writing", &error);
    env_log(&w->env, HD_LOG_ERROR, "%s (%s); trying on", error.message, hd_status_name(status));
    pthread_mutex_lock(&w->lock);
    w->trouble = status;
    w->trouble_error = error;
    w->trouble_error.status = status;
    pthread_mutex_unlock(&w->lock);
    bell_ring(w->notify_fd);
}

static void back_off(writer *w) {
    assert(w->attempts);
    if (w->store->stepped) return; /* the test decides when the next step is */
    int ms = BACKOFF_MS << (w->attempts < 7 ? w->attempts : 7);
    if (ms > BACKOFF_MAX_MS) ms = BACKOFF_MAX_MS;
    (void)poll(NULL, 0, ms);
}

static bool has_store_work(const writer *w) { return w->store->ops->has_work(w->store); }

static void do_store_work(writer *w) {
    if (has_store_work(w)) w->store->ops->work(w->store);
}

/* In how many ms the backend will have work that nothing else will wake the thread for; -1: it has none. */
static int work_in_ms(const writer *w) {
    const log_backend *ops = w->store->ops;
    return ops->work_in_ms ? ops->work_in_ms(w->store) : -1;
}

static bool is_queued(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool queued = w->queue || w->todo;
    pthread_mutex_unlock(&w->lock);
    return queued;
}

/* Logs once that checkpoints fail. Commits go on; the log keeps everything until the store is repaired or restored. */
static void tell_of_damage(writer *w) {
    const char *advice = w->store->ops->file(w->store)
                             ? "close all programs that use the file, and run `heddle db repair`"
                             : "restore a backup of the database";
    env_log(&w->env, HD_LOG_ERROR, "%s: no checkpoint: %s: %s", w->store->shown,
            log_store_words(w->store, HD_CORRUPT), advice);
}

/* The next slice of the checkpoint under way. */
static hd_status fold_on(writer *w) {
    assert(w->fold_to);
    w->waiting = is_queued(w) ? w->waiting + 1 : 0;
    hd_status status = writer_fold(w);
    if (status == HD_CORRUPT && !w->fold_is_blocked) tell_of_damage(w);
    w->fold_is_blocked = status == HD_CORRUPT;
    pthread_mutex_lock(&w->lock);
    if (w->folds.waited < w->waiting) w->folds.waited = w->waiting;
    if (!w->fold_to) w->folded = w->checkpoint;
    w->folds.passed += status == HD_BUSY;
    pthread_mutex_unlock(&w->lock);
    /* Another process folds: it is not asked again for each group of ours. */
    if (status == HD_BUSY && w->store->optimistic) w->tail.bytes /= 2;
    do_store_work(w);
    return status;
}

/* Pauses for a millisecond, so that another process can get the lock: one that waits for the file's lock asks for it
 * again every millisecond. */
static void make_way(const writer *w) {
    if (!w->store->stepped) (void)poll(NULL, 0, 1);
}

/* All the work of a caller that waits may take longer than a beat lasts. */
static void between_slices(writer *w) {
    make_way(w);
    presence_beat_if_due(w);
}

/* The whole checkpoint, for a caller that waits. `full`: large documents and their patches become one text, too. */
static hd_status checkpoint(writer *w, bool full) {
    hd_status status;
    bool more = full;
    int64_t after = 0;
    w->fold_to = UINT64_MAX;
    while (!(status = fold_on(w)) && w->fold_to) between_slices(w);
    while (!status && more) {
        status = writer_unpatch(w, &after, &more);
        if (more) between_slices(w);
    }
    do_store_work(w);
    return status;
}

/* The rest of the pruning that has begun, for a caller that waits. */
static hd_status prune_on(writer *w) {
    assert(!w->fold_to);
    hd_status status = HD_OK;
    while (!status && w->prune_to) {
        status = prune_slice(w);
        if (w->prune_to) between_slices(w);
    }
    do_store_work(w);
    return status;
}

static uint64_t tail_limit(const writer *w) {
    return w->options.tail_bytes ? w->options.tail_bytes : TAIL_DEFAULT;
}

/* A process that commits back to back would keep all others from committing: SQLite's locks are not fair, and whoever
 * appends to a server reads, and often runs its function, again, before it can. So while several processes write, each
 * pauses for a moment after a run of groups. A pause after each group would leave the store idle: a pause is longer
 * than it takes another process to begin. */
static void step_aside(writer *w) {
    if (w->courtesy && --w->courtesy % RUN == 0) make_way(w);
}

#ifndef NDEBUG
enum { CHECKED_DOCUMENTS = 64 };

/* Of what waits to be decided, the first batch alone may be decided in part. */
static void check_todo(const writer *w) {
    for (const batch *b = w->todo; b; b = b->next) {
        assert(b->at < b->bytes.length || !b->bytes.length);
        assert(b == w->todo || !b->at);
    }
}

static void writer_check(const writer *w) {
    const head_session *ours = &w->heads.sessions.items[w->session_index];
    heads_check(&w->heads);
    tail_check(&w->tail);
    check_todo(w);
    assert(!memcmp(ours->id, w->session, sizeof ours->id) && ours->last == w->decided);
    assert(w->checkpoint <= w->row && w->last_row <= w->row && w->forgotten <= w->last_row);
    assert(!w->doubt && !w->recovered.count && !w->recovered_seqs.count && !w->undo.begun);
    assert(!w->store->ops->in_transaction(w->store) && !w->attempts);
    (void)ours;
}

/* After each group of a small store; of a large one after every so many, so that the average cost stays. */
static void check_sometimes(writer *w) {
    uint32_t rarely = 1 + (w->heads.heads.count + w->tail.docs.count) / CHECKED_DOCUMENTS;
    if (w->known && !(w->checks++ % rarely)) writer_check(w);
}
#endif

/* One group commit. */
static hd_status work_once(writer *w) {
    assert(w->todo);
    outcome *o;
    uint64_t before = w->row;
    hd_status status = writer_attempt(w, &o);
    if (status) return status;
    if (w->attempts >= PATIENCE)
        env_log(&w->env, HD_LOG_INFO, "%s can be written again", w->store->shown);
    w->attempts = 0;
    w->races = 0;
    w->waiting = 0;
    w->rested_ms = 0;
    if (o->before != before) w->courtesy = COURTESY + w->courtesy % RUN; /* the run goes on */
#ifndef NDEBUG
    check_sometimes(w);
#endif
    post_outcome(w, o);
    return HD_OK;
}

static bool is_fold_due(const writer *w) {
    return w->tail.bytes > tail_limit(w) && !w->fold_is_blocked;
}

static bool has_housework(const writer *w) {
    return w->prune_to || is_fold_due(w) || has_store_work(w);
}

/* At most one slice at a time: commits come first. */
static void keep_house(writer *w) {
    if (!w->fold_to && is_fold_due(w)) w->fold_to = w->row;
    if (w->fold_to) (void)fold_on(w);
    else if (w->prune_to) (void)prune_slice(w);
    else do_store_work(w);
}

static void work_off(writer *w) {
    hd_status status = work_once(w);
    if (status == HD_RESYNC && w->races++ < RACES) return; /* judge again, at once */
    if (status) {
        w->attempts++;
        post_trouble(w, status);
        back_off(w);
        return;
    }
    bell_ring(w->notify_fd);
    if (w->store->optimistic) do_store_work(w); /* others hear of it before the pause, not after */
    step_aside(w);
    keep_house(w);
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* How long a command waits for another process that folds or prunes. That process holds the lock for one slice at a
 * time, so the command usually gets it between two slices. */
enum { COMMAND_WAITS_MS = 5000, COMMAND_AGAIN_MS = 10 };

static hd_status fold_fully(writer *w) { return checkpoint(w, true); }

static hd_status prune_all(writer *w) {
    hd_status status = checkpoint(w, false);
    if (!status) status = prune_begin(w);
    return status ? status : prune_on(w);
}

/* Does the work of a command, again and again while it is HD_BUSY. The caller of the command wants the work done, so it
 * waits for another process that folds or prunes; a checkpoint that the writer makes by itself does not wait. */
static hd_status patiently(writer *w, hd_status (*work)(writer *w)) {
    uint64_t end = env_now_ns(&w->env) + COMMAND_WAITS_MS * UINT64_C(1000000);
    hd_status status = work(w);
    while (status == HD_BUSY && !w->store->stepped && env_now_ns(&w->env) < end) {
        (void)poll(NULL, 0, COMMAND_AGAIN_MS);
        presence_beat_if_due(w);
        status = work(w);
    }
    return status;
}

static hd_status carry_out(writer *w, writer_command command) {
    assert(command != COMMAND_NONE);
    switch (command) {
    case COMMAND_CHECKPOINT: return patiently(w, fold_fully);
    case COMMAND_FOLD: return checkpoint(w, false);
    case COMMAND_PRUNE: return patiently(w, prune_all);
    case COMMAND_VACUUM: {
        hd_status status = w->store->ops->vacuum(w->store);
        w->store->ops->work(w->store);
        return status;
    }
    case COMMAND_REGISTER: return writer_register(w);
    case COMMAND_STAY: return presence_beat(w);
    default: return HD_OK;
    }
}

static const char *command_word(writer_command command) {
    switch (command) {
    case COMMAND_CHECKPOINT:
    case COMMAND_FOLD: return "checkpoint";
    case COMMAND_PRUNE: return "prune";
    case COMMAND_VACUUM: return "vacuum";
    case COMMAND_STAY: return "registering as a session";
    default: return "registering as a reader";
    }
}

static void do_command(writer *w, writer_command command) {
    hd_status status = carry_out(w, command);
    hd_error error = { 0 };
    if (status) log_store_failure(w->store, status, command_word(command), &error);
    pthread_mutex_lock(&w->lock);
    w->command = COMMAND_NONE;
    w->command_status = status;
    w->command_error = error;
    pthread_cond_broadcast(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void begin_rest(writer *w, bool watching, bool timed) {
    pthread_mutex_lock(&w->lock);
    assert(!w->resting && !w->in_turn);
    w->resting = true;
    w->watching = watching;
    w->timed = timed;
    pthread_mutex_unlock(&w->lock);
}

/* Afterwards the state is the thread's again. Returns how many turns there have been. */
static uint64_t end_rest(writer *w) {
    pthread_mutex_lock(&w->lock);
    while (w->in_turn) pthread_cond_wait(&w->done, &w->lock);
    w->resting = false;
    uint64_t turns = w->turns;
    pthread_mutex_unlock(&w->lock);
    return turns;
}

/* The first of two times in ms, of which -1 is none. */
static int sooner(int a, int b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

/* Sleeps until there is something to do; folds the tail when nothing but beats has come for a while. */
static void rest(writer *w) {
    bool worth = w->tail.bytes >= TAIL_IDLE && !w->fold_is_blocked;
    uint64_t turns = w->turns;
    int work_ms = work_in_ms(w), idle_ms = worth ? IDLE_MS - w->rested_ms : -1;
    int ms = sooner(sooner(work_ms, presence_beat_in_ms(w)), idle_ms);
    begin_rest(w, worth, work_ms >= 0);
    bool woken = sleep_on(w->wake_fd, ms);
    bool alone = end_rest(w) == turns && !woken;
    w->rested_ms = worth && alone ? w->rested_ms + ms : 0;
    if (work_ms >= 0 && !woken) w->store->ops->work(w->store);
    if (w->rested_ms >= IDLE_MS) {
        w->fold_to = w->row;
        w->rested_ms = 0;
    }
    if (!is_queued(w)) keep_house(w);
}

/* Whether the runtime has asked that its position be written into its row of `reader`, and no commit has done so
 * meanwhile. Takes the request. */
static bool take_report(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool due = w->report && w->registered && w->seen != w->told;
    w->report = false;
    pthread_mutex_unlock(&w->lock);
    return due;
}

/* Checkpoints, so that the next runtime that opens the file finds a short log. If another runtime has written
 * after this one, it makes the checkpoint when it closes, and its rows need not be read here. */
static void close_log(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool behind = w->seen > w->row;
    pthread_mutex_unlock(&w->lock);
    if (behind) return;
    hd_status status = HD_OK;
    uint64_t last = w->fold_to = w->row;
    w->leaving = true;
    while (!status && w->fold_to && w->row == last) {
        status = fold_on(w);
        if (w->fold_to) make_way(w);
    }
    if (!status && w->prune_to && w->row == last) (void)prune_on(w);
    do_store_work(w);
}

/* Does the next thing that there is to do. False: there is none, or the writer is to stop. Commits that cannot be
 * stored now keep no command waiting, since the runtime waits for that: it is tried, and may fail for the same
 * reason. */
static bool work_step(writer *w, bool *stop) {
    writer_command command = take_work(w, stop);
    presence_beat_if_due(w);
    if (w->todo && !(w->attempts && (*stop || command))) work_off(w);
    else if (command) do_command(w, command);
    else if (*stop) return false;
    else if (w->fold_to || w->prune_to) keep_house(w);
    else if (take_report(w)) (void)writer_move_reader(w);
    else return false;
    return true;
}

/* Works until it is to stop, and leaves the store. A writer without a thread is here only when it is to stop: it never
 * rests. */
static void *writer_main(void *argument) {
    writer *w = argument;
    for (;;) {
        bool stop;
        if (work_step(w, &stop)) continue;
        if (stop) break;
        rest(w);
    }
    /* The notification that is still owed: no later call sends it. */
    if (work_in_ms(w) >= 0) w->store->ops->work(w->store);
    if (!w->todo) close_log(w);
    writer_unregister(w);
    presence_end(w);
    return NULL;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void free_batches(const hd_env *env, batch *b) {
    for (batch *next; b; b = next) {
        next = b->next;
        batch_free(env, b);
    }
}

static void writer_free(writer *w) {
    writer_forget(w);
    if (w->store) w->store->ops->close(w->store);
    if (w->heap) hd_heap_close(w->heap);
    json_buffer_fini(&w->commits);
    json_buffer_fini(&w->sizes);
    json_buffer_fini(&w->body);
    passed_fini(&w->passed, &w->env);
    vec_fini(&w->env, &w->verdict.conflicts);
    free_batches(&w->env, w->todo);
    free_batches(&w->env, w->queue);
    free_batches(&w->env, w->spare);
    for (outcome *o = w->ready, *next; o; o = next) {
        next = o->next;
        outcome_free(&w->env, o);
    }
    if (w->wake_fd >= 0) close(w->wake_fd);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->done);
    hd_env env = w->env;
    env_free(&env, w, sizeof *w);
}

static hd_status start(writer *w, hd_error *error) {
    assert(!w->running && w->known);
    w->folded = w->checkpoint;
    w->seen = w->row;
    w->running = w->store->stepped;
    if (w->running) return HD_OK;
    if (pthread_create(&w->thread, NULL, writer_main, w) == 0) {
#ifdef __linux__ /* elsewhere only the thread itself can say so */
        (void)pthread_setname_np(w->thread, "heddle-writer");
#endif
        w->running = true;
        return HD_OK;
    }
    env_error(error, HD_NOMEM, "cannot start a thread");
    return HD_NOMEM;
}

static hd_status open_state(writer *w, hd_error *error) {
    hd_limits limits = { HEAP_DEPTH_MAX, SIZE_MAX }; /* of whatever programs write */
    hd_status status = hd_heap_open(&w->env, &limits, &w->heap);
    if (!status) status = writer_learn(w);
    if (status) log_store_failure(w->store, status, "reading", error);
    return status;
}

static writer *new_writer(log_store *store, const hd_options *options, const uint8_t session[16],
                          int notify_fd) {
    writer *w = env_new0(&store->env, sizeof *w);
    if (!w) return NULL;
    w->env = store->env;
    w->store = store;
    w->options = *options;
    w->notify_fd = notify_fd;
    w->queue_end = &w->queue;
    w->ready_end = &w->ready;
    memcpy(w->session, session, sizeof w->session);
    session_text(session, w->session_text);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->done, NULL);
    json_buffer_init(&w->commits, &w->env);
    json_buffer_init(&w->sizes, &w->env);
    json_buffer_init(&w->body, &w->env);
    passed_init(&w->passed, &w->env);
    w->wake_fd = bell_open();
    return w;
}

hd_status writer_open(log_store *store, const hd_options *options, const uint8_t session[16],
                      int notify_fd, writer **out, hd_error *error) {
    assert(!options->read_only);
    *out = NULL;
    writer *w = new_writer(store, options, session, notify_fd);
    if (!w) {
        store->ops->close(store);
        return HD_NOMEM;
    }
    hd_status status = w->wake_fd < 0 ? HD_IO : open_state(w, error);
    if (w->wake_fd < 0)
        env_error(error, HD_IO, "%s: no descriptor for waiting: %s", store->shown, strerror(errno));
    store->opened = !status;
    if (!status) status = start(w, error);
    if (status) {
        writer_free(w);
        return status;
    }
    *out = w;
    return HD_OK;
}

static void join(writer *w) {
    env_pause(&w->env, true);
    pthread_join(w->thread, NULL);
    env_pause(&w->env, false);
}

void writer_close(writer *w) {
    if (!w) return;
    if (w->running) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_mutex_unlock(&w->lock);
        bell_ring(w->wake_fd);
        if (w->store->stepped) (void)writer_main(w);
        else join(w);
    }
    writer_free(w);
}

/* ---- On the runtime's thread --------------------------------------------------------------------------- */

hd_status writer_push(writer *w, json_buffer *bytes, uint64_t seen) {
    assert(bytes->length);
    pthread_mutex_lock(&w->lock);
    batch *b = w->spare;
    w->spare = NULL;
    pthread_mutex_unlock(&w->lock);
    if (!b) {
        b = env_new0(&w->env, sizeof *b);
        if (!b) return HD_NOMEM;
        json_buffer_init(&b->bytes, &w->env);
    }
    json_buffer empty = b->bytes;
    empty.length = 0;
    empty.env = bytes->env;
    *b = (batch){ .bytes = *bytes };
    b->bytes.env = &w->env;
    *bytes = empty;
    pthread_mutex_lock(&w->lock);
    assert(!*w->queue_end && !w->stop);
    *w->queue_end = b;
    w->queue_end = &b->next;
    w->seen = seen;
    pthread_mutex_unlock(&w->lock);
    return HD_OK;
}

void writer_start(writer *w) { bell_ring(w->wake_fd); }

void writer_step(writer *w) {
    bool stop;
    assert(w->store->stepped);
    (void)work_step(w, &stop);
}

/* True: the runtime's thread has the writer's state until end_turn. If another process has the file's lock, the turn
 * ends without a commit, and the writer's thread does the work. */
static bool begin_turn(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool ours = w->resting && w->queue && !w->todo && !w->command && !w->stop;
    if (ours) {
        assert(!w->in_turn);
        w->in_turn = true;
        w->store->impatient = true; /* the thread waits for the lock, the runtime does not */
        w->turns++;
        take_queue(w);
    }
    pthread_mutex_unlock(&w->lock);
    return ours;
}

/* The thread goes on with whatever is left. */
static void end_turn(writer *w, bool done) {
    assert(w->in_turn && w->resting);
    pthread_mutex_lock(&w->lock);
    bool worth = !w->watching && w->tail.bytes >= TAIL_IDLE;
    bool work = !w->timed && work_in_ms(w) >= 0;
    bool more = !done || worth || w->todo || work || has_housework(w);
    w->in_turn = false;
    w->store->impatient = false;
    w->busy = w->todo != NULL;
    pthread_cond_broadcast(&w->done);
    pthread_mutex_unlock(&w->lock);
    if (more) writer_start(w);
}

bool writer_turn(writer *w) {
    if (!w->running || !begin_turn(w)) return false;
    /* While other processes write, the thread does the work: it pauses between groups (COURTESY). */
    hd_status status = w->courtesy ? HD_BUSY : work_once(w);
    if (status && status != HD_BUSY && status != HD_RESYNC) w->attempts++;
    if (!status && w->store->optimistic)
        do_store_work(w); /* notifies other processes; no caller waits for that */
    end_turn(w, !status);
    return !status;
}

outcome *writer_take(writer *w, uint64_t seen, uint64_t *folded, uint64_t *heard,
                     hd_error *trouble) {
    pthread_mutex_lock(&w->lock);
    outcome *o = w->ready;
    w->ready = NULL;
    w->ready_end = &w->ready;
    w->seen = seen;
    *folded = w->folded;
    *heard = w->heard;
    if (w->trouble) *trouble = w->trouble_error;
    else trouble->status = HD_OK;
    pthread_mutex_unlock(&w->lock);
    return o;
}

void writer_report(writer *w, uint64_t seen) {
    pthread_mutex_lock(&w->lock);
    w->seen = seen; /* may be lower than before: a server that was set back to a backup */
    w->report = true;
    bool asleep = w->resting && !w->in_turn;
    pthread_mutex_unlock(&w->lock);
    if (asleep) writer_start(w);
}

void writer_leave(writer *w) { atomic_store(&w->store->leaving, true); }

fold_counts writer_folds(writer *w) {
    pthread_mutex_lock(&w->lock);
    fold_counts counts = w->folds;
    pthread_mutex_unlock(&w->lock);
    return counts;
}

bool writer_idle(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool idle = !w->busy && !w->queue;
    pthread_mutex_unlock(&w->lock);
    return idle;
}

/* Without a thread the command is done on the runtime's thread, before commits that are queued: a test may keep those
 * from being stored. */
static void carry_out_now(writer *w) {
    pthread_mutex_unlock(&w->lock);
    do_command(w, w->command);
    pthread_mutex_lock(&w->lock);
}

static hd_status wait_for_command(writer *w, hd_error *error) {
    pthread_mutex_lock(&w->lock);
    while (w->command != COMMAND_NONE) pthread_cond_wait(&w->done, &w->lock);
    hd_status status = w->command_status;
    if (status && error) *error = w->command_error;
    pthread_mutex_unlock(&w->lock);
    return status;
}

hd_status writer_do(writer *w, writer_command command, hd_error *error) {
    assert(command != COMMAND_NONE);
    if (!w->running) {
        env_error(error, HD_READ_ONLY, "the store was opened read-only");
        return HD_READ_ONLY;
    }
    pthread_mutex_lock(&w->lock);
    assert(w->command == COMMAND_NONE && !w->stop);
    w->command = command;
    bell_ring(w->wake_fd);
    if (w->store->stepped) carry_out_now(w);
    pthread_mutex_unlock(&w->lock);
    env_pause(&w->env, true);
    hd_status status = wait_for_command(w, error);
    env_pause(&w->env, false);
    return status;
}

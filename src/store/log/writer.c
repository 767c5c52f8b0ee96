/* writer.c -- the thread, the two queues between it and its runtime, and which of the two threads works.
 *
 * One of two threads holds the writer's state: its own, or, while that rests, the runtime's thread
 * for the length of one turn. Both sides of the change of hands are under `lock`:
 *
 *     the thread    ... work, work --> resting ------------ woken --> waits while there is a turn
 *     the runtime                          push, turn: judge, COMMIT, give back
 *
 * A turn saves a commit that the program waits for two wake-ups, which on a fast disk take as long as
 * the disk does. Whatever is not plain, a turn leaves to the thread. */
#define _GNU_SOURCE
#include "store/log/writer.h"

#include "store/log/checkpoint.h"
#include "store/log/prune.h"
#include <errno.h>
#include <string.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TAIL_DEFAULT (UINT64_C(64) << 20)
#define TAIL_IDLE    (UINT64_C(1) << 20) /* worth folding when there is nothing else to do */

enum {
    IDLE_MS = 1000,
    BACKOFF_MS = 5,       /* doubles with each failure */
    BACKOFF_MAX_MS = 500, /* up to this */
    PATIENCE = 3,         /* failures in a row before the runtime is told */
    RACES = 100, /* other writers that may be faster, one after the other: then it is a failure */
    COURTESY = 8 /* groups after others' rows were met, during which we step aside */
};

static void signal_fd(int fd) {
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) {
        /* The counter is full: it is readable already. */
    }
}

/* ---- The thread ---------------------------------------------------------------------------- */

/* False: nothing came within the time. */
static bool sleep_on(int fd, int ms) {
    struct pollfd p = { fd, POLLIN, 0 };
    bool woken = poll(&p, 1, ms) != 0;
    uint64_t count;
    if (p.revents && read(fd, &count, sizeof count) < 0) {
        /* It was read already; looking at the queue is harmless. */
    }
    return woken;
}

static void append_batches(batch **list_end, batch *more) {
    while (*list_end) list_end = &(*list_end)->next;
    *list_end = more;
}

/* Moves the queue to `todo`; under the lock. */
static void take_queue(writer *w) {
    append_batches(&w->todo, w->queue);
    w->queue = NULL;
    w->queue_end = &w->queue;
    w->busy = w->todo != NULL;
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
    *w->ready_end = o;
    w->ready_end = &o->next;
    w->trouble = HD_OK;
    if (w->fold_to) w->folds.groups++;
    pthread_mutex_unlock(&w->lock);
}

/* Tells of trouble that lasts, once. */
static void post_trouble(writer *w, hd_status status) {
    if (w->attempts != PATIENCE) return;
    hd_error error;
    log_store_failure(w->store, status, "writing", &error);
    env_log(&w->env, HD_LOG_ERROR, "%s (%s); trying on", error.message, hd_status_name(status));
    pthread_mutex_lock(&w->lock);
    w->trouble = status;
    w->trouble_error = error;
    w->trouble_error.status = status;
    pthread_mutex_unlock(&w->lock);
    signal_fd(w->notify_fd);
}

static void back_off(writer *w) {
    assert(w->attempts);
    int ms = BACKOFF_MS << (w->attempts < 7 ? w->attempts : 7);
    if (ms > BACKOFF_MAX_MS) ms = BACKOFF_MAX_MS;
    (void)poll(NULL, 0, ms);
}

static bool has_store_work(const writer *w) { return w->store->ops->has_work(w->store); }

static void do_store_work(writer *w) {
    if (has_store_work(w)) w->store->ops->work(w->store);
}

static bool is_queued(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool queued = w->queue || w->todo;
    pthread_mutex_unlock(&w->lock);
    return queued;
}

/* Once: the log keeps everything until the file is repaired, and commits go on. */
static void tell_of_damage(writer *w) {
    env_log(
        &w->env, HD_LOG_ERROR,
        "%s: no checkpoint: %s: close all programs that use the file, and run `heddle db repair`",
        w->store->shown, log_store_words(w->store, HD_CORRUPT));
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
    pthread_mutex_unlock(&w->lock);
    do_store_work(w);
    return status;
}

/* Another process that waits for the file asks for it again every millisecond. */
static void make_way(void) { (void)poll(NULL, 0, 1); }

/* All of it, for a caller that waits. `full`: large documents and their patches become one text, too. */
static hd_status checkpoint(writer *w, bool full) {
    hd_status status;
    bool more = full;
    int64_t after = 0;
    w->fold_to = UINT64_MAX;
    while (!(status = fold_on(w)) && w->fold_to) make_way();
    while (!status && more) {
        status = writer_unpatch(w, &after, &more);
        if (more) make_way();
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
        if (w->prune_to) make_way();
    }
    do_store_work(w);
    return status;
}

static uint64_t tail_limit(const writer *w) {
    return w->options.tail_bytes ? w->options.tail_bytes : TAIL_DEFAULT;
}

/* SQLite's locks are not fair: a process that commits back to back would keep the others out. While
 * there are others, each of us leaves the lock alone for a moment after using it. */
static void step_aside(writer *w) {
    if (!w->courtesy) return;
    w->courtesy--;
    make_way();
}

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
    if (o->before != before) w->courtesy = COURTESY;
    post_outcome(w, o);
    return HD_OK;
}

static bool has_housework(const writer *w) {
    bool fold = w->tail.bytes > tail_limit(w) && !w->fold_is_blocked;
    return w->prune_to || fold || has_store_work(w);
}

/* At most one slice at a time: commits come first. */
static void keep_house(writer *w) {
    bool due = w->tail.bytes > tail_limit(w) && !w->fold_is_blocked;
    if (!w->fold_to && due) w->fold_to = w->row;
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
    signal_fd(w->notify_fd);
    step_aside(w);
    keep_house(w);
}

static hd_status carry_out(writer *w, writer_command command) {
    assert(command != COMMAND_NONE);
    switch (command) {
    case COMMAND_CHECKPOINT: return checkpoint(w, true);
    case COMMAND_PRUNE: {
        hd_status status = checkpoint(w, false);
        if (!status) status = prune_begin(w);
        return status ? status : prune_on(w);
    }
    case COMMAND_VACUUM: {
        hd_status status = w->store->ops->vacuum(w->store);
        w->store->ops->work(w->store);
        return status;
    }
    case COMMAND_REGISTER: return writer_register(w);
    default: return HD_OK;
    }
}

static const char *command_word(writer_command command) {
    switch (command) {
    case COMMAND_CHECKPOINT: return "checkpoint";
    case COMMAND_PRUNE: return "prune";
    case COMMAND_VACUUM: return "vacuum";
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

static void begin_rest(writer *w, bool watching) {
    pthread_mutex_lock(&w->lock);
    assert(!w->resting && !w->in_turn);
    w->resting = true;
    w->watching = watching;
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

/* Sleeps until there is something to do; folds the tail when there has been nothing for a while. */
static void rest(writer *w) {
    bool worth = w->tail.bytes >= TAIL_IDLE && !w->fold_is_blocked;
    uint64_t turns = w->turns;
    begin_rest(w, worth);
    bool woken = sleep_on(w->wake_fd, worth ? IDLE_MS : -1);
    bool idle = end_rest(w) == turns;
    if (worth && idle && !woken) w->fold_to = w->row;
    if (!is_queued(w)) keep_house(w);
}

/* Our row in `reader` is behind, and nothing that is written anyway has taken the position along. */
static bool take_report(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool due = w->report && w->registered && w->seen != w->told;
    w->report = false;
    pthread_mutex_unlock(&w->lock);
    return due;
}

/* Leaves a short log to the runtime that opens the file next. Where another one has written after us, it
 * does so when it closes: then we need not even read what it wrote. */
static void close_log(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool behind = w->seen > w->row;
    pthread_mutex_unlock(&w->lock);
    if (behind) return;
    hd_status status = HD_OK;
    uint64_t last = w->fold_to = w->row;
    while (!status && w->fold_to && w->row == last) {
        status = fold_on(w);
        if (w->fold_to) make_way();
    }
    if (!status && w->prune_to && w->row == last) (void)prune_on(w);
    do_store_work(w);
}

static void *writer_main(void *argument) {
    writer *w = argument;
    for (;;) {
        bool stop;
        writer_command command = take_work(w, &stop);
        if (w->todo && !(stop && w->attempts)) work_off(w);
        else if (command) do_command(w, command);
        else if (stop) break;
        else if (w->fold_to || w->prune_to) keep_house(w);
        else if (take_report(w)) (void)writer_move_reader(w);
        else rest(w);
    }
    if (!w->todo) close_log(w);
    writer_unregister(w);
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
    if (pthread_create(&w->thread, NULL, writer_main, w) == 0) {
        (void)pthread_setname_np(w->thread, "heddle-writer");
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
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
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
        env_error(error, HD_IO, "%s: no descriptor for eventfd: %s", store->shown, strerror(errno));
    if (!status) status = start(w, error);
    if (status) {
        writer_free(w);
        return status;
    }
    *out = w;
    return HD_OK;
}

void writer_close(writer *w) {
    if (!w) return;
    if (w->running) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_mutex_unlock(&w->lock);
        signal_fd(w->wake_fd);
        pthread_join(w->thread, NULL);
    }
    writer_free(w);
}

/* ---- The other side --------------------------------------------------------------------------- */

hd_status writer_push(writer *w, json_buffer *bytes) {
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
    *w->queue_end = b;
    w->queue_end = &b->next;
    pthread_mutex_unlock(&w->lock);
    return HD_OK;
}

void writer_start(writer *w) { signal_fd(w->wake_fd); }

/* What a turn could not do, because others were at the file, is the thread's, which is on its way. */
static bool begin_turn(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool ours = w->resting && w->queue && !w->todo && !w->command && !w->stop;
    if (ours) {
        assert(!w->in_turn);
        w->in_turn = true;
        w->store->impatient = true; /* the thread waits for the lock, not we */
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
    bool more = !done || worth || w->todo || has_housework(w);
    w->in_turn = false;
    w->store->impatient = false;
    w->busy = w->todo != NULL;
    pthread_cond_broadcast(&w->done);
    pthread_mutex_unlock(&w->lock);
    if (more) writer_start(w);
}

bool writer_turn(writer *w) {
    if (!w->running || !begin_turn(w)) return false;
    /* With others at the file the thread is the one that steps aside. */
    hd_status status = w->courtesy ? HD_BUSY : work_once(w);
    if (status && status != HD_BUSY && status != HD_RESYNC) w->attempts++;
    end_turn(w, !status);
    return !status;
}

outcome *writer_take(writer *w, uint64_t seen, uint64_t *folded, hd_error *trouble) {
    pthread_mutex_lock(&w->lock);
    outcome *o = w->ready;
    w->ready = NULL;
    w->ready_end = &w->ready;
    w->seen = seen;
    *folded = w->folded;
    if (w->trouble) *trouble = w->trouble_error;
    else trouble->status = HD_OK;
    pthread_mutex_unlock(&w->lock);
    return o;
}

void writer_report(writer *w, uint64_t seen) {
    pthread_mutex_lock(&w->lock);
    assert(seen >= w->seen);
    w->seen = seen;
    w->report = true;
    bool asleep = w->resting && !w->in_turn;
    pthread_mutex_unlock(&w->lock);
    if (asleep) writer_start(w);
}

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

hd_status writer_do(writer *w, writer_command command, hd_error *error) {
    assert(command != COMMAND_NONE);
    if (!w->running) {
        env_error(error, HD_READ_ONLY, "the store was opened read-only");
        return HD_READ_ONLY;
    }
    pthread_mutex_lock(&w->lock);
    assert(w->command == COMMAND_NONE && !w->stop);
    w->command = command;
    signal_fd(w->wake_fd);
    while (w->command != COMMAND_NONE) pthread_cond_wait(&w->done, &w->lock);
    hd_status status = w->command_status;
    if (status && error) *error = w->command_error;
    pthread_mutex_unlock(&w->lock);
    return status;
}

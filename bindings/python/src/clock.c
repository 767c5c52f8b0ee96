/* clock.c -- the environment that the extension gives to a runtime: it waits without the GIL, tells log lines to
 * Python, and has virtual time where a test asks for it.
 *
 * Virtual clocks stand still while the program runs. Where the library waits for a time, they jump to it. */
#include "ext.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct clock {
    _Atomic uint64_t now_ns;
    uint64_t began_ns, wall_ms; /* the wall clock showed wall_ms at began_ns */
};

#define BEGIN_NS UINT64_C(1000000000)
#define MS_NS    UINT64_C(1000000)
#define WAIT_MS  100

struct clock *clock_new(uint64_t wall_ms) {
    struct clock *c = malloc(sizeof *c);
    if (!c) return NULL;
    atomic_init(&c->now_ns, BEGIN_NS);
    c->began_ns = BEGIN_NS;
    c->wall_ms = wall_ms;
    return c;
}

void clock_free(struct clock *c) { free(c); }
uint64_t clock_now_ns(const struct clock *c) { return atomic_load(&c->now_ns); }
void clock_advance(struct clock *c, uint64_t ns) { atomic_fetch_add(&c->now_ns, ns); }

/* ---- the environment; ctx is the runtime object */

static uint64_t monotonic(void *ctx) {
    const runtime_object *self = ctx;
    return self->clock ? clock_now_ns(self->clock) : hd_env_system().monotonic_ns(NULL);
}

static uint64_t wall(void *ctx) {
    const runtime_object *self = ctx;
    const struct clock *c = self->clock;
    if (!c) return hd_env_system().wall_ms(NULL);
    return c->wall_ms + (clock_now_ns(c) - c->began_ns) / 1000000;
}

static void *alloc(void *block, size_t old_size, size_t size, void *ctx) {
    (void)ctx;
    return hd_env_system().alloc(block, old_size, size, NULL);
}

static void fill_random(void *out, size_t size, void *ctx) {
    (void)ctx;
    hd_env_system().random(out, size, NULL);
}

static void wait_without_gil(int fd, uint64_t deadline_ns) {
    Py_BEGIN_ALLOW_THREADS hd_env_system().wait(fd, deadline_ns, NULL);
    Py_END_ALLOW_THREADS
}

/* Whether the store has not decided about every commit yet. */
static bool has_pending(const runtime_object *self) {
    hd_store_stats stats = { 0 };
    if (self->rt) hd_runtime_store_stats(self->rt, &stats);
    return stats.pending > 0;
}

/* Virtual time jumps to the deadline, but passes as fast as real time while a commit has no verdict. A thread of the
 * library may be about to write to the descriptor: it is given a moment of real time. */
static void wait_virtual(const runtime_object *self, int fd, uint64_t deadline_ns) {
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint64_t now = clock_now_ns(self->clock), left = deadline_ns > now ? deadline_ns - now : 0;
    bool pending = has_pending(self), never = deadline_ns == UINT64_MAX;
    int ready = 0, ms = never || (left && pending) ? WAIT_MS : 2;
    Py_BEGIN_ALLOW_THREADS if (fd >= 0) ready = poll(&p, 1, ms);
    Py_END_ALLOW_THREADS if (ready > 0 || never) return;
    clock_advance(self->clock, pending && left > WAIT_MS * MS_NS ? WAIT_MS * MS_NS : left);
}

/* ---- log lines */

#define MOST_LINES 1000 /* that wait; further ones are dropped */

static const char *const levels[] = { "error", "warning", "info", "debug" };

typedef struct log_line {
    struct log_line *next;
    hd_log_level level;
    char text[];
} log_line;

/* Threads of the library do not have the GIL, and the thread that has it may wait for them: their lines are kept until
 * the runtime's thread begins its next driving call or wait. */
struct log_lines {
    pthread_mutex_t lock;
    log_line *first, **last;
    size_t count;
};

struct log_lines *log_lines_new(void) {
    struct log_lines *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    pthread_mutex_init(&all->lock, NULL);
    all->last = &all->first;
    return all;
}

static log_line *log_lines_take(struct log_lines *all) {
    pthread_mutex_lock(&all->lock);
    log_line *first = all->first;
    all->first = NULL;
    all->last = &all->first;
    all->count = 0;
    pthread_mutex_unlock(&all->lock);
    return first;
}

void log_lines_free(struct log_lines *all) {
    if (!all) return;
    for (log_line *line = log_lines_take(all), *next; line; line = next) {
        next = line->next;
        free(line);
    }
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static void keep_line(struct log_lines *all, hd_log_level level, const char *text) {
    size_t size = strlen(text) + 1;
    log_line *line = malloc(sizeof *line + size);
    if (!line) return;
    line->next = NULL;
    line->level = level;
    memcpy(line->text, text, size);
    pthread_mutex_lock(&all->lock);
    bool room = all->count < MOST_LINES;
    if (room) {
        *all->last = line;
        all->last = &line->next;
        all->count++;
    }
    pthread_mutex_unlock(&all->lock);
    if (!room) free(line);
}

static void tell_line(runtime_object *self, hd_log_level level, const char *line) {
    if (!is_set(self->st->log)) return;
    PyObject *type, *e, *traceback;
    PyErr_Fetch(&type, &e, &traceback);
    PyObject *answer =
        PyObject_CallFunction(self->st->log, "sN", levels[level], words_to_python(line));
    if (!answer) exception_print(self, self->st->log);
    Py_XDECREF(answer);
    PyErr_Restore(type, e, traceback);
}

void log_threads(runtime_object *self) {
    for (log_line *line = log_lines_take(self->lines), *next; line; line = next) {
        next = line->next;
        tell_line(self, line->level, line->text);
        free(line);
    }
}

static void log_(hd_log_level level, const char *line, void *ctx) {
    runtime_object *self = ctx;
    if (PyThread_get_thread_ident() == self->thread) tell_line(self, level, line);
    else keep_line(self->lines, level, line);
}

static void wait_(int fd, uint64_t deadline_ns, void *ctx) {
    runtime_object *self = ctx;
    if (PyThread_get_thread_ident() != self->thread) { /* a thread of the library: it has no GIL */
        hd_env_system().wait(fd, deadline_ns, NULL);
        return;
    }
    /* Lines of the library's threads are logged before the wait: if the store cannot be written, it may never end. */
    log_threads(self);
    if (self->clock) wait_virtual(self, fd, deadline_ns);
    else wait_without_gil(fd, deadline_ns);
}

/* A thread of the library has no GIL to let go. */
static void pause_(bool begins, void *ctx) {
    runtime_object *self = ctx;
    if (PyThread_get_thread_ident() != self->thread) return;
    if (begins) self->paused = PyEval_SaveThread();
    else PyEval_RestoreThread(self->paused);
}

hd_env clock_env(runtime_object *self) {
    return (hd_env){ .ctx = self,
                     .alloc = alloc,
                     .monotonic_ns = monotonic,
                     .wall_ms = wall,
                     .random = fill_random,
                     .log = log_,
                     .wait = wait_,
                     .pause = pause_ };
}

/* lab.c -- a store, runtimes on it, and the functions that drive them.
 *
 * A runtime of the lab is an ordinary one, with two differences: its environment calls that of the lab's
 * world, and its store in memory asks the lab about every commit and every answer. */
#define _GNU_SOURCE
#include "lab/lab.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS     100 /* within this time a runtime on a file looks for others' commits */
#define LOOKS_MAX   1000
#define TURNS_MAX   10000
#define WINDOWS_MAX 100  /* idle waits for so many windows of debounces and throttles */
#define VERDICT_MS  1000 /* of real time: a verdict may take so long */
#define REPEAT_MS   4    /* steps in which idle waits for transactions that are tried again */
#define WAITS_MAX   10   /* waits of a second without a deadline, in a row: then the test ends */
#define TRACE_KINDS (HD_TRACE_RUNS | HD_TRACE_TRIGGERS)

/* ---- The environment of a runtime ---------------------------------------------------------- */

static const hd_env *world_of(void *ctx) { return hd_lab_env_of(((lab_runtime *)ctx)->lab->world); }

static void *pass_alloc(void *block, size_t old_size, size_t size, void *ctx) {
    const hd_env *e = world_of(ctx);
    return e->alloc(block, old_size, size, e->ctx);
}
static uint64_t pass_monotonic_ns(void *ctx) {
    const hd_env *e = world_of(ctx);
    return e->monotonic_ns(e->ctx);
}
static uint64_t pass_wall_ms(void *ctx) {
    const hd_env *e = world_of(ctx);
    return e->wall_ms(e->ctx);
}
static void pass_random(void *out, size_t size, void *ctx) {
    const hd_env *e = world_of(ctx);
    e->random(out, size, e->ctx);
}
static void pass_log(hd_log_level level, const char *line, void *ctx) {
    const hd_env *e = world_of(ctx);
    e->log(level, line, e->ctx);
}

static uint64_t pending_of(const lab_runtime *r) {
    hd_store_stats stats;
    hd_runtime_store_stats(r->rt, &stats);
    return r->held ? 0 : stats.pending;
}

/* The thread of a store in a file decides commits in real time. Gives it up to VERDICT_MS before the lab's clock moves,
 * and no more, since the thread may itself be waiting for that clock. Returns whether the descriptor became
 * readable. */
static bool await_verdict(const lab_runtime *r, int fd) {
    struct pollfd readable = { fd, POLLIN, 0 };
    if (!r->lab->options.in_file || !r->rt || fd < 0 || !pending_of(r)) return false;
    return poll(&readable, 1, VERDICT_MS) > 0;
}

/* A wait without a deadline is for another thread; if nothing comes after WAITS_MAX of them, the test
 * would wait for ever. */
static void pass_wait(int fd, uint64_t deadline_ns, void *ctx) {
    lab_runtime *r = ctx;
    const hd_env *e = world_of(ctx);
    struct pollfd readable = { fd, POLLIN, 0 };
    if (await_verdict(r, fd)) return;
    e->wait(fd, deadline_ns, e->ctx);
    bool ended = deadline_ns != UINT64_MAX || (fd >= 0 && poll(&readable, 1, 0) > 0);
    r->waits = ended ? 0 : r->waits + 1;
    if (r->waits > WAITS_MAX)
        hd_lab_fail("%s waits for something that does not happen%s", r->name,
                    r->held ? " (it is held)" : "");
}

lab_runtime *lab_runtime_of(const hd_runtime *rt) {
    const hd_env *env = hd_runtime_env(rt);
    if (env->alloc != pass_alloc) hd_lab_fail("the runtime was not opened with hd_lab_runtime");
    return env->ctx;
}

/* ---- What the store asks ------------------------------------------------------------------- */

static hd_status on_arrival(const hd_runtime *rt, void *ctx) {
    lab_runtime *r = lab_runtime_of(rt);
    (void)ctx;
    if (r->held & HD_LAB_COMMITS) return HD_BUSY;
    if (!r->refusals) return HD_OK;
    r->refusals--;
    return r->refusal;
}

static bool on_hearing(const hd_runtime *rt, void *ctx) {
    (void)ctx;
    return !(lab_runtime_of(rt)->held & HD_LAB_NEWS);
}

/* ---- Opening and closing ------------------------------------------------------------------- */

static void make_file(hd_lab *lab) {
    const char *base = getenv("TMPDIR");
    lab_text_add(&lab->folder, "%s/heddle-lab.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(lab->folder.bytes)) hd_lab_fail("%s: %s", lab->folder.bytes, strerror(errno));
    lab_text_add(&lab->file, "%s/lab.db", lab->folder.bytes);
}

static void remove_file(hd_lab *lab) {
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        lab_text path = { 0 };
        lab_text_add(&path, "%s%s", lab->file.bytes, endings[i]);
        unlink(path.bytes);
        lab_text_free(&path);
    }
    rmdir(lab->folder.bytes);
    lab_text_free(&lab->file);
    lab_text_free(&lab->folder);
}

hd_lab *hd_lab_open(const hd_lab_options *options) {
    hd_lab *lab = calloc(1, sizeof *lab);
    if (!lab) hd_lab_fail("the machine is out of memory");
    if (options) lab->options = *options;
    lab->world = lab->options.env ? lab->options.env : hd_lab_env_open();
    if (lab->options.in_file) make_file(lab);
    return lab;
}

hd_lab_env *hd_lab_world(hd_lab *lab) { return lab->world; }

/* The store in memory is made with the first runtime, because hd_lab_open cannot return a status. */
static hd_status open_memory(hd_lab *lab) {
    if (lab->memory || lab->options.in_file) return HD_OK;
    hd_status status = hd_memory_open(hd_lab_env_of(lab->world), &lab->memory);
    if (status) return status;
    if (lab->options.load_late) hd_memory_load_late(lab->memory);
    hd_memory_intercept(lab->memory, on_arrival, on_hearing, NULL);
    return HD_OK;
}

static void free_runtime(lab_runtime *r) {
    lab_text *texts[] = { &r->ran,      &r->failures,      &r->violations,
                          &r->ran_told, &r->failures_told, &r->violations_told };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) lab_text_free(texts[i]);
    for (size_t i = 0; i < LAB_GETS_KEPT; i++) lab_text_free(&r->gets[i]);
    free(r->name);
    free(r);
}

static lab_runtime *new_runtime(hd_lab *lab, const char *name) {
    lab_runtime *r = calloc(1, sizeof *r);
    if (!r || !(r->name = strdup(name))) hd_lab_fail("the machine is out of memory");
    r->lab = lab;
    r->env = (hd_env){ .ctx = r,
                       .alloc = pass_alloc,
                       .monotonic_ns = pass_monotonic_ns,
                       .wall_ms = pass_wall_ms,
                       .random = pass_random,
                       .log = pass_log,
                       .wait = pass_wait };
    return r;
}

static hd_status open_runtime(lab_runtime *r, const hd_options *options, hd_error *error) {
    hd_lab *lab = r->lab;
    hd_options ours = options ? *options : (hd_options){ 0 };
    hd_status status = open_memory(lab);
    if (status) return status;
    if (!options) ours.strict = true;
    ours.env = &r->env;
    ours.memory = lab->memory;
    status = hd_open(lab->file.bytes, &ours, &r->rt, error);
    if (!status) status = hd_trace_enable(r->rt, TRACE_KINDS);
    return status ? status : lab_record_start(r);
}

static void append(hd_lab *lab, lab_runtime *r) {
    lab_runtime **at = &lab->runtimes;
    while (*at) at = &(*at)->next;
    *at = r;
}

static lab_runtime *find_runtime(const hd_lab *lab, const char *name) {
    for (lab_runtime *r = lab->runtimes; r; r = r->next)
        if (!strcmp(r->name, name)) return r;
    return NULL;
}

static hd_status refuse_second(const hd_lab *lab, const char *name) {
    char message[256];
    snprintf(message, sizeof message, "a runtime %.200s is open already", name);
    lab_tell(lab, message);
    return HD_EXISTS;
}

hd_status hd_lab_runtime_with(hd_lab *lab, const char *name, const hd_options *options,
                              hd_runtime **out) {
    hd_error error = { 0 };
    *out = NULL;
    if (find_runtime(lab, name)) return refuse_second(lab, name);
    lab_runtime *r = new_runtime(lab, name);
    hd_status status = open_runtime(r, options, &error);
    if (status) {
        hd_close(r->rt);
        free_runtime(r);
        if (status != HD_NOMEM) lab_tell(lab, error.message);
        return status;
    }
    append(lab, r);
    *out = r->rt;
    return HD_OK;
}

hd_runtime *hd_lab_runtime(hd_lab *lab, const char *name) {
    hd_runtime *rt;
    const lab_runtime *r = find_runtime(lab, name);
    if (r) return r->rt;
    hd_status status = hd_lab_runtime_with(lab, name, NULL, &rt);
    if (status) hd_lab_fail("%s does not open: %s", name, hd_status_text(status));
    return rt;
}

/* Prints the failures and violations that the test has not asked for; "": there are none. */
static void tell_unseen(const lab_runtime *r, char *out, size_t size) {
    out[0] = '\0';
    if (r->failures.length)
        snprintf(out, size, "%s: the test did not look at these failures: %s", r->name,
                 lab_text_of(&r->failures));
    else if (r->violations.length)
        snprintf(out, size, "%s: not idempotent: %s", r->name, lab_text_of(&r->violations));
}

void hd_lab_runtime_close(hd_runtime *rt) {
    lab_runtime *r = lab_runtime_of(rt);
    hd_lab *lab = r->lab;
    hd_lab_deliver(rt);
    hd_status status = hd_close(rt);
    lab_runtime **at = &lab->runtimes;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    bool refused = hd_status_class(status) == HD_CLASS_STALE; /* a commit: the test may mean it */
    if (status && status != HD_NOMEM && !refused)
        hd_lab_fail("%s does not close: %s", r->name, hd_status_text(status));
    char unseen[512];
    tell_unseen(r, unseen, sizeof unseen);
    free_runtime(r); /* before the messages: options.fail may leave by longjmp */
    if (*unseen) lab_tell(lab, unseen);
}

void hd_lab_close(hd_lab *lab) {
    if (!lab) return;
    for (lab_runtime *r = lab->runtimes; r; r = r->next) hd_lab_deliver(r->rt);
    while (lab->runtimes) hd_lab_runtime_close(lab->runtimes->rt);
    hd_memory_close(lab->memory);
    if (lab->options.in_file) remove_file(lab);
    if (!lab->options.env) hd_lab_env_close(lab->world);
    free(lab);
}

/* ---- Moving ---------------------------------------------------------------------------------- */

void hd_lab_pump(hd_runtime *rt) {
    lab_runtime *r = lab_runtime_of(rt);
    hd_status status;
    do {
        status = hd_runtime_pump(rt);
        lab_record_take(r);
    } while (status == HD_PENDING);
    hd_class class_ = hd_status_class(status);
    if (status && class_ != HD_CLASS_TRANSIENT && class_ != HD_CLASS_NOMEM)
        hd_lab_fail("%s: pump: %s", r->name, hd_runtime_error(rt)->message);
}

static void pump_all(hd_lab *lab) {
    for (lab_runtime *r = lab->runtimes; r; r = r->next) hd_lab_pump(r->rt);
}

static uint64_t now_ns(hd_lab *lab) {
    const hd_env *env = hd_lab_env_of(lab->world);
    return env->monotonic_ns(env->ctx);
}

/* The earliest deadline of the runtimes. */
static uint64_t next_deadline(const hd_lab *lab) {
    uint64_t first = UINT64_MAX;
    for (const lab_runtime *r = lab->runtimes; r; r = r->next) {
        uint64_t deadline = hd_runtime_deadline(r->rt);
        if (deadline < first) first = deadline;
    }
    return first;
}

/* The store in a file decides in a thread, so its verdicts take real time. */
static bool await_verdicts(hd_lab *lab) {
    bool awaited = false;
    for (lab_runtime *r = lab->runtimes; r; r = r->next) {
        struct pollfd readable = { hd_runtime_fd(r->rt), POLLIN, 0 };
        if (!pending_of(r)) continue;
        awaited = true;
        if (lab->options.in_file) poll(&readable, 1, 1);
    }
    return awaited;
}

static void settle_now(hd_lab *lab) {
    bool more = true;
    for (int turn = 0; turn < 2 || more; turn++) {
        if (turn == TURNS_MAX) hd_lab_fail("the graph does not settle: see hd_diagnosis_start");
        pump_all(lab);
        more = await_verdicts(lab) || next_deadline(lab) <= now_ns(lab);
    }
}

static uint64_t frames_heard(const hd_lab *lab) {
    uint64_t heard = 0;
    for (const lab_runtime *r = lab->runtimes; r; r = r->next) {
        hd_store_stats stats;
        hd_runtime_store_stats(r->rt, &stats);
        heard += stats.frames;
    }
    return heard;
}

void hd_lab_settle(hd_lab *lab) {
    settle_now(lab);
    if (!lab->options.in_file || !lab->runtimes || !lab->runtimes->next) return;
    uint64_t before = UINT64_MAX, heard;
    for (int look = 0; (heard = frames_heard(lab)) != before; before = heard, look++) {
        if (look == LOOKS_MAX)
            hd_lab_fail("the runtimes do not settle: their commits keep each other running");
        hd_lab_advance_ms(lab, LOOK_MS);
        settle_now(lab);
    }
}

static void until_idle(hd_lab *lab) {
    for (bool busy = true; busy;) {
        hd_lab_settle(lab);
        busy = false;
        for (lab_runtime *r = lab->runtimes; r; r = r->next) {
            if (r->held || hd_runtime_is_idle(r->rt)) continue;
            hd_status status = hd_runtime_settle(r->rt);
            lab_record_take(r);
            if (status && status != HD_NOMEM && status != HD_UNSETTLED)
                hd_lab_fail("%s: settle: %s", r->name, hd_runtime_error(r->rt)->message);
            busy |= status != HD_NOMEM;
        }
    }
}

/* Whether hd_transact_later, or a post with an id, is not over in one of the runtimes. */
static bool is_repeating(const hd_lab *lab) {
    for (const lab_runtime *r = lab->runtimes; r; r = r->next) {
        hd_store_stats stats;
        hd_runtime_store_stats(r->rt, &stats);
        if (!r->held && stats.repeating) return true;
    }
    return false;
}

static void until_over(hd_lab *lab) {
    until_idle(lab);
    for (int look = 0; is_repeating(lab); look++) {
        if (look == TURNS_MAX) hd_lab_fail("a transaction is tried again and again");
        hd_lab_advance_ms(lab, REPEAT_MS);
        until_idle(lab);
    }
}

/* Lowers *first to the end of the debounce or throttle window that the node waits for, if it is live. */
static bool find_window(const hd_node_info *info, void *ctx) {
    uint64_t *first = ctx;
    bool waits = info->why_not == HD_WHY_NOT_DEBOUNCE || info->why_not == HD_WHY_NOT_THROTTLE;
    if (info->live && waits && info->eligible_at_ns < *first) *first = info->eligible_at_ns;
    return true;
}

static bool await_window(hd_lab *lab) {
    uint64_t first = UINT64_MAX, now = now_ns(lab);
    for (const lab_runtime *r = lab->runtimes; r; r = r->next)
        if (!r->held) hd_runtime_nodes(r->rt, find_window, &first);
    if (first == UINT64_MAX) return false;
    if (first > now) hd_lab_env_advance_ns(lab->world, first - now);
    return true;
}

void hd_lab_idle(hd_lab *lab) {
    until_over(lab);
    for (int i = 0; i < WINDOWS_MAX && await_window(lab); i++) until_over(lab);
}

void hd_lab_advance_ms(hd_lab *lab, uint64_t ms) { hd_lab_env_advance_ms(lab->world, ms); }

static lab_runtime *in_memory(hd_runtime *rt) {
    lab_runtime *r = lab_runtime_of(rt);
    if (r->lab->options.in_file) hd_lab_fail("%s: only for a store in memory", r->name);
    return r;
}

void hd_lab_delay(hd_runtime *rt, unsigned what) { in_memory(rt)->held |= what; }
void hd_lab_deliver(hd_runtime *rt) { lab_runtime_of(rt)->held = 0; }

void hd_lab_refuse(hd_runtime *rt, hd_status status, uint32_t times) {
    lab_runtime *r = in_memory(rt);
    if (hd_status_class(status) == HD_CLASS_TRANSIENT || !status)
        hd_lab_fail("%s is not a refusal; for a store that is busy see hd_lab_delay",
                    hd_status_name(status));
    r->refusal = status;
    r->refusals = times;
}

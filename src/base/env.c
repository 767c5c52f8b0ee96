/* env.c -- the environment of the system (hd_env_system), and the helpers that call an environment.
 *
 * This is the only file of the library that calls malloc, a clock or the random device. Everything
 * above it is a function of what the hd_env hands in, which is why a test with a virtual clock and
 * a seeded generator can replay it. */
#define _GNU_SOURCE
#include "base/env.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/random.h>
#endif

/* ---- The system's ------------------------------------------------------------------------ */

/* Large blocks stand on huge pages of their own, where the system has them: the tables of a large
 * graph are read all over, and with small pages the misses of address translation, and the faults when
 * the tables grow, cost more than the work itself. Moving such a block moves page tables, no bytes. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)1 << 20) /* blocks of this size at least */

#if !defined __linux__ ||                                                                          \
    defined __SANITIZE_ADDRESS__ /* the sanitizer cannot watch memory from mmap */
static void *system_alloc(void *block, size_t old_size, size_t size, void *ctx) {
    (void)ctx, (void)old_size;
    if (size) return realloc(block, size);
    free(block);
    return NULL;
}
#else
static bool is_huge(size_t size) { return size >= HUGE_FROM; }
static size_t huge_round(size_t size) { return (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1); }

/* Fresh memory at a multiple of HUGE_PAGE; `size` is one too. */
static char *huge_map(size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    char *span =
        mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (span == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)span & (HUGE_PAGE - 1);
    if (before) munmap(span, before);
    munmap(span + before + size, HUGE_PAGE - before);
    madvise(span + before, size, MADV_HUGEPAGE); /* on failure pages are small, nothing else */
    return span + before;
}

static void *huge_resize(void *block, size_t old_size, size_t size) {
    old_size = huge_round(old_size);
    size = huge_round(size);
    if (size < old_size) munmap((char *)block + size, old_size - size);
    if (size <= old_size) return block;
    char *to = huge_map(size);
    if (!to) return NULL;
    if (mremap(block, old_size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return to;
    munmap(to, size);
    return NULL;
}

/* Moves a block between malloc's memory and huge pages. */
static void *huge_cross(void *block, size_t old_size, size_t size) {
    void *to = is_huge(size) ? huge_map(huge_round(size)) : malloc(size);
    if (!to || !block) return to;
    memcpy(to, block, old_size < size ? old_size : size);
    if (is_huge(old_size)) munmap(block, huge_round(old_size));
    else free(block);
    return to;
}

static void *system_alloc(void *block, size_t old_size, size_t size, void *ctx) {
    (void)ctx;
    if (!size) {
        if (is_huge(old_size)) munmap(block, huge_round(old_size));
        else free(block);
        return NULL;
    }
    if (is_huge(old_size) && is_huge(size)) return huge_resize(block, old_size, size);
    if (is_huge(old_size) || is_huge(size)) return huge_cross(block, old_size, size);
    return realloc(block, size);
}
#endif

static struct timespec system_clock(clockid_t id) {
    struct timespec t = { 0 };
    int result = clock_gettime(id, &t);
    assert(result == 0);
    (void)result;
    return t;
}

static uint64_t system_monotonic_ns(void *ctx) {
    (void)ctx;
    struct timespec t = system_clock(CLOCK_MONOTONIC);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t system_wall_ms(void *ctx) {
    (void)ctx;
    struct timespec t = system_clock(CLOCK_REALTIME);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

#ifdef __linux__
/* Aborts without randomness: session ids would collide and hash seeds be guessable.
 * getrandom() fails only when interrupted, or on kernels that do not have it. */
static void system_random(void *out, size_t size, void *ctx) {
    (void)ctx;
    for (size_t done = 0; done < size;) {
        ssize_t got = getrandom((char *)out + done, size - done, 0);
        if (got > 0) done += (size_t)got;
        else if (errno != EINTR) abort();
    }
}
#else
static void system_random(void *out, size_t size, void *ctx) {
    (void)ctx;
    arc4random_buf(out, size);
}
#endif

static void system_log(hd_log_level level, const char *line, void *ctx) {
    (void)ctx;
    if (level <= HD_LOG_WARN)
        fprintf(stderr, "heddle: %s: %s\n", level == HD_LOG_ERROR ? "error" : "warning", line);
}

static void system_wait(int fd, uint64_t deadline_ns, void *ctx) {
    uint64_t now = system_monotonic_ns(ctx);
    if (deadline_ns <= now) return;
    uint64_t left = deadline_ns - now;
    struct pollfd readable = { fd, POLLIN, 0 };
#ifdef __linux__
    struct timespec limit = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
    ppoll(&readable, fd < 0 ? 0 : 1, deadline_ns == UINT64_MAX ? NULL : &limit, NULL);
#else /* whole milliseconds, rounded up: waking too early would be waking twice */
    uint64_t ms = left / 1000000 + (left % 1000000 > 0);
    int limit = deadline_ns == UINT64_MAX ? -1 : ms < INT_MAX ? (int)ms : INT_MAX;
    poll(&readable, fd < 0 ? 0 : 1, limit);
#endif
}

hd_env hd_env_system(void) {
    return (hd_env){ .alloc = system_alloc,
                     .monotonic_ns = system_monotonic_ns,
                     .wall_ms = system_wall_ms,
                     .random = system_random,
                     .log = system_log,
                     .wait = system_wait };
}

hd_env env_copy(const hd_env *given) {
    hd_env env = hd_env_system();
    if (!given) return env;
    env.ctx = given->ctx;
    if (given->alloc) env.alloc = given->alloc;
    if (given->monotonic_ns) env.monotonic_ns = given->monotonic_ns;
    if (given->wall_ms) env.wall_ms = given->wall_ms;
    if (given->random) env.random = given->random;
    if (given->log) env.log = given->log;
    if (given->wait) env.wait = given->wait;
    env.pause = given->pause;
    return env;
}

/* ---- Memory ------------------------------------------------------------------------------ */

void *env_new(const hd_env *env, size_t size) {
    assert(size > 0);
    return env->alloc(NULL, 0, size, env->ctx);
}

void *env_new0(const hd_env *env, size_t size) {
    void *block = env_new(env, size);
    return block ? memset(block, 0, size) : NULL;
}

void *env_new_array(const hd_env *env, size_t count, size_t size) {
    return size && count > SIZE_MAX / size ? NULL : env_new(env, count * size);
}

void *env_new_copy(const hd_env *env, const void *data, size_t size) {
    void *block = env_new(env, size);
    return block ? memcpy(block, data, size) : NULL;
}

void env_free(const hd_env *env, void *block, size_t size) {
    if (!block) return;
    assert(size > 0);
    env->alloc(block, size, 0, env->ctx);
}

void *env_resize(const hd_env *env, void *block, size_t old_size, size_t new_size) {
    assert(new_size > 0);
    assert((block == NULL) == (old_size == 0));
    return env->alloc(block, old_size, new_size, env->ctx);
}

/* ---- Time and randomness ----------------------------------------------------------------- */

uint64_t env_now_ns(const hd_env *env) { return env->monotonic_ns(env->ctx); }
uint64_t env_wall_ms(const hd_env *env) { return env->wall_ms(env->ctx); }

#define MS_NS UINT64_C(1000000)

uint64_t env_ns_at(const hd_env *env, uint64_t now_ms, uint64_t at_ms) {
    assert(at_ms >= now_ms);
    uint64_t now = env_now_ns(env), ms = at_ms - now_ms;
    return ms < (UINT64_MAX - now) / MS_NS ? now + ms * MS_NS : UINT64_MAX;
}

void env_wait(const hd_env *env, int fd, uint64_t deadline_ns) {
    env->wait(fd, deadline_ns, env->ctx);
}

void env_pause(const hd_env *env, bool begins) {
    if (env->pause) env->pause(begins, env->ctx);
}

void env_random(const hd_env *env, void *out, size_t size) { env->random(out, size, env->ctx); }

uint64_t env_random_u64(const hd_env *env) {
    uint64_t u;
    env_random(env, &u, sizeof u);
    return u;
}

/* ---- Words for people -------------------------------------------------------------------- */

static void blank_controls(char *line) {
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = ' ';
}

void env_end_cut(char *text, size_t size) {
    assert(size >= 4);
    size_t end = size - 4;
    while (end && ((unsigned char)text[end] & 0xC0) == 0x80) end--;
    memcpy(text + end, "...", 4);
}

/* Formats into `out`; control characters become spaces, what was cut off ends in "...". */
HD_PRINTF(3, 0)
static void env_format_line(char *out, size_t size, const char *format, va_list arguments) {
    int length = vsnprintf(out, size, format, arguments);
    if (length < 0) snprintf(out, size, "(unprintable)");
    else if ((size_t)length >= size) env_end_cut(out, size);
    blank_controls(out);
}

void env_log_line(const hd_env *env, hd_log_level level, const char *line) {
    size_t size = strlen(line) + 1;
    char *copy = env_new_copy(env, line, size);
    if (!copy) {
        env_log(env, level, "%s", line);
        return;
    }
    blank_controls(copy);
    env->log(level, copy, env->ctx);
    env_free(env, copy, size);
}

void env_log(const hd_env *env, hd_log_level level, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    env_format_line(line, sizeof line, format, arguments);
    va_end(arguments);
    env->log(level, line, env->ctx);
}

void env_error_v(hd_error *error, hd_status status, const char *format, va_list arguments) {
    if (!error) return;
    *error = (hd_error){ .status = status };
    env_format_line(error->message, sizeof error->message, format, arguments);
}

void env_error(hd_error *error, hd_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    env_error_v(error, status, format, arguments);
    va_end(arguments);
}

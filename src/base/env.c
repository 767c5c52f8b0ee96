/* env.c -- the machine's own environment, and the helpers through which all others reach one.
 *
 * This is the only file of the library that calls malloc, a clock or the random device. Everything
 * above it is a function of what the hd_env hands in, which is why a test with a virtual clock and
 * a seeded generator can replay it. */
#define _GNU_SOURCE
#include "base/env.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* ---- The system's ------------------------------------------------------------------------ */

static void *system_alloc(void *ctx, void *block, size_t old_size, size_t size) {
    (void)ctx;
    (void)old_size;
    if (size) return realloc(block, size);
    free(block);
    return NULL;
}

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

/* There is no way on without randomness: session ids would collide and hash seeds be guessable.
 * getrandom() fails only when interrupted, or on kernels that do not have it. */
static void system_random(void *ctx, void *out, size_t size) {
    (void)ctx;
    for (size_t done = 0; done < size;) {
        ssize_t got = getrandom((char *)out + done, size - done, 0);
        if (got > 0) done += (size_t)got;
        else if (errno != EINTR) abort();
    }
}

static void system_log(void *ctx, hd_log_level level, const char *line) {
    (void)ctx;
    if (level <= HD_LOG_WARN)
        fprintf(stderr, "heddle: %s: %s\n", level == HD_LOG_ERROR ? "error" : "warning", line);
}

static void system_wait(void *ctx, int fd, uint64_t deadline_ns) {
    uint64_t now = system_monotonic_ns(ctx);
    if (deadline_ns <= now) return;
    uint64_t left = deadline_ns - now;
    struct timespec limit = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
    struct pollfd readable = { fd, POLLIN, 0 };
    ppoll(&readable, fd < 0 ? 0 : 1, deadline_ns == UINT64_MAX ? NULL : &limit, NULL);
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
    return env;
}

/* ---- Memory ------------------------------------------------------------------------------ */

void *env_new(const hd_env *env, size_t size) {
    assert(size > 0);
    return env->alloc(env->ctx, NULL, 0, size);
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
    env->alloc(env->ctx, block, size, 0);
}

void *env_resize(const hd_env *env, void *block, size_t old_size, size_t new_size) {
    assert(new_size > 0);
    assert((block == NULL) == (old_size == 0));
    return env->alloc(env->ctx, block, old_size, new_size);
}

/* ---- Time and randomness ----------------------------------------------------------------- */

uint64_t env_now_ns(const hd_env *env) { return env->monotonic_ns(env->ctx); }
uint64_t env_wall_ms(const hd_env *env) { return env->wall_ms(env->ctx); }
void env_wait(const hd_env *env, int fd, uint64_t deadline_ns) {
    env->wait(env->ctx, fd, deadline_ns);
}

void env_random(const hd_env *env, void *out, size_t size) { env->random(env->ctx, out, size); }

uint64_t env_random_u64(const hd_env *env) {
    uint64_t u;
    env_random(env, &u, sizeof u);
    return u;
}

/* ---- Words for people -------------------------------------------------------------------- */

/* Formats into `out`; control characters become spaces, what was cut off ends in "...". */
HD_PRINTF(3, 0)
static void env_format_line(char *out, size_t size, const char *format, va_list arguments) {
    int length = vsnprintf(out, size, format, arguments);
    if (length < 0) snprintf(out, size, "(unprintable)");
    else if ((size_t)length >= size) memcpy(out + size - 4, "...", 4);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = ' ';
}

void env_log(const hd_env *env, hd_log_level level, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    env_format_line(line, sizeof line, format, arguments);
    va_end(arguments);
    env->log(env->ctx, level, line);
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

/* env.h -- memory, time, randomness and log lines, by way of an hd_env.
 *
 * The rest of the library calls these helpers and nothing else: env.c is the only file that knows
 * malloc, a clock or the random device. A structure keeps a `const hd_env *` that points at its
 * owner's copy; the owner (a heap, a store, a runtime) makes that copy with env_copy() when it is
 * opened.
 *
 * Cost: that of the functions inside the hd_env, plus an indirect call. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <heddle/base.h>

/* The environment to keep: what the opener gave, with the system's functions where it gave none.
 * `given` may be NULL. */
hd_env env_copy(const hd_env *given);

/* Memory. Sizes are never zero. NULL means that there is no memory. */
void *env_new(const hd_env *env, size_t size);
void *env_new0(const hd_env *env, size_t size);
/* count * size bytes; NULL as well when the product does not fit. */
void *env_new_array(const hd_env *env, size_t count, size_t size);
/* A copy of `size` bytes. */
void *env_new_copy(const hd_env *env, const void *data, size_t size);
/* `size` is the size the block has now. NULL is accepted. */
void env_free(const hd_env *env, void *block, size_t size);
/* On failure NULL, and the block is as it was. `block` NULL with old_size 0 allocates. */
void *env_resize(const hd_env *env, void *block, size_t old_size, size_t new_size);

/* Time. */
uint64_t env_now_ns(const hd_env *env);
uint64_t env_wall_ms(const hd_env *env);
/* When the wall clock, which shows `now_ms`, will show the later time `at_ms`, on the monotonic clock. UINT64_MAX: in
 * more centuries than that counts. */
uint64_t env_ns_at(const hd_env *env, uint64_t now_ms, uint64_t at_ms);
void env_wait(const hd_env *env, int fd, uint64_t deadline_ns);
/* Around a wait that is none of env_wait: hd_pause_fn. */
void env_pause(const hd_env *env, bool begins);

/* Randomness. */
void env_random(const hd_env *env, void *out, size_t size);
uint64_t env_random_u64(const hd_env *env);

/* One log line; control characters become spaces, and what exceeds 1 KiB is cut and ends in "...". */
void env_log(const hd_env *env, hd_log_level level, const char *format, ...) HD_PRINTF(3, 4);

/* The same for a line of any length, which is not cut unless there is no memory for a copy. */
void env_log_line(const hd_env *env, hd_log_level level, const char *line);

/* Whether a commit that was refused with this status would be refused again. HD_CLOSED is not such a status, because it
 * says nothing about the commit. */
static inline bool status_is_for_good(hd_status status) {
    hd_class class_ = hd_status_class(status);
    return (class_ == HD_CLASS_PERMANENT || class_ == HD_CLASS_TERMINAL) && status != HD_CLOSED;
}

/* Fills `error` (which may be NULL): status and message, no position, no path. */
void env_error(hd_error *error, hd_status status, const char *format, ...) HD_PRINTF(3, 4);
void env_error_v(hd_error *error, hd_status status, const char *format, va_list arguments)
    HD_PRINTF(3, 0);

/* Of a text that was cut off to fit into `size` bytes, its NUL included: it ends in "..." afterwards, between two
 * characters of UTF-8. */
void env_end_cut(char *text, size_t size);

#endif

/* lab.h -- a world for tests: time that only moves when told, memory that runs out on request,
 * randomness that repeats.
 *
 * A test opens a lab_env, hands lab_env_of() to whatever it tests, and closes it at the end, which
 * fails the test if a single byte was not given back:
 *
 *     lab_env *world = lab_env_open();
 *     hd_heap *heap;
 *     assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
 *     lab_env_advance_ms(world, 250);
 *     hd_heap_close(heap);
 *     lab_env_close(world);
 *
 * The lab knows no test framework: what it finds wrong it says on stderr, and aborts. Each object
 * belongs to one thread. Variables of the process environment: HD_SEED gives the seed of the
 * random tests; HD_LAB_LOG=1 shows log lines as they come. */
#ifndef HEDDLE_LAB_H
#define HEDDLE_LAB_H

#include <heddle/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says what is wrong, as printf does, and aborts. */
HD_API void lab_fail(const char *format, ...) HD_PRINTF(1, 2);

/* ---- Randomness that repeats ------------------------------------------------------------- */

/* A generator: the same seed gives the same numbers, everywhere. Not for secrets. */
typedef struct lab_random {
    uint64_t state;
} lab_random;

/* HD_SEED from the process environment, else a fixed number; prints it, so that a failure can be
 * repeated. */
HD_API uint64_t lab_seed(void);

HD_API lab_random lab_random_of(uint64_t seed);
HD_API uint64_t lab_random_u64(lab_random *r);
/* From 0 to n - 1, evenly; n > 0. */
HD_API uint64_t lab_random_below(lab_random *r, uint64_t n);
/* True once in n times. */
HD_API bool lab_random_once_in(lab_random *r, uint64_t n);
HD_API void lab_random_bytes(lab_random *r, void *out, size_t size);

/* ---- The environment --------------------------------------------------------------------- */

typedef struct lab_env lab_env;

HD_API lab_env *lab_env_open(void);
/* Aborts, and lists the blocks, if anything allocated was not freed. Accepts NULL. */
HD_API void lab_env_close(lab_env *world);

/* What to hand to the library; lives as long as the world. */
HD_API const hd_env *lab_env_of(lab_env *world);

/* The monotonic clock starts at 1 s, the wall clock at 2020-01-01; both stand still between calls
 * of advance. Setting the wall clock models a clock that was put back or forward. */
HD_API void lab_env_advance_ms(lab_env *world, uint64_t ms);
HD_API void lab_env_advance_ns(lab_env *world, uint64_t ns);
HD_API void lab_env_set_wall_ms(lab_env *world, uint64_t ms_since_1970);

/* The environment's random bytes start over from this seed (at open: a fixed one). */
HD_API void lab_env_set_seed(lab_env *world, uint64_t seed);

/* ---- Memory that runs out ---------------------------------------------------------------- */

/* The allocator fills fresh memory with rubbish, moves a block at every resize, and aborts when a
 * block is freed or resized with another size than it has, or was not from here.
 *
 * Counted are allocations and resizes, not frees. fail_at: the nth from now fails, and only that
 * one. fail_from: the nth from now and all after it. 0: none (again). */
HD_API void lab_env_fail_at(lab_env *world, uint64_t nth);
HD_API void lab_env_fail_from(lab_env *world, uint64_t nth);
/* Whether an allocation was refused since the last fail_at or fail_from. */
HD_API bool lab_env_failed(const lab_env *world);

HD_API uint64_t lab_env_allocations(const lab_env *world); /* since open, resizes included */
HD_API uint64_t lab_env_blocks(const lab_env *world);      /* now */
HD_API size_t lab_env_bytes(const lab_env *world);         /* now */

/* Runs `body` in a fresh world again and again: with its first allocation failing, then its second,
 * and so on, each once alone and once with all that follow, until it gets through without meeting
 * the failure. After each run everything must be freed. The body calls what it tests, accepts
 * HD_NOMEM, and cleans up; lab_env_failed() tells it whether success is due. Returns the number of
 * allocations of an undisturbed run. */
typedef void (*lab_body)(lab_env *world, void *ctx);
HD_API uint64_t lab_each_allocation_failure(lab_body body, void *ctx);

/* ---- Log lines --------------------------------------------------------------------------- */

HD_API size_t lab_env_log_count(const lab_env *world);
/* The ith line since open or clear, or NULL; with its level in front: "warning: ...". */
HD_API const char *lab_env_log_line(const lab_env *world, size_t i);
/* How many lines contain `text`. */
HD_API size_t lab_env_logged(const lab_env *world, const char *text);
HD_API void lab_env_log_clear(lab_env *world);

#ifdef __cplusplus
}
#endif
#endif

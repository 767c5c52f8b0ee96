/* heddle/lab.h -- a lab for your tests: the test moves the clock, sees which nodes ran, makes the store
 * slow or refuse commits, and lets allocations fail.
 *
 *     hd_lab *lab = hd_lab_open(NULL);
 *     hd_runtime *rt = hd_lab_runtime(lab, "a");          // a runtime like any other
 *     cart_start(rt);                                     // what you test
 *
 *     hd_lab_set(rt, "main/cart#/items", "[{\"price\": 3}]");
 *     hd_lab_settle(lab);
 *     hd_lab_expect_ran(rt, "add_up show");
 *     hd_lab_expect_cell(rt, "main/total", "3.0");
 *
 *     hd_lab_set(rt, "main/cart#/note", "\"gift\"");
 *     hd_lab_settle(lab);
 *     hd_lab_expect_ran(rt, "");                          // no node reads /note
 *     hd_lab_close(lab);                                  // checks for leaks and for failures not asked for
 *
 * An expectation that does not hold prints the expected and the found value, and why, with file and line, and
 * ends the test: it calls options.fail, or abort. A lab works with any test framework and without one.
 * docs/TESTING.md shows a complete test.
 *
 * Link with `pkg-config --libs heddle-lab`. A lab and what is in it belong to one thread. Variables of
 * the process environment: HD_SEED gives the seed of random tests; HD_LAB_LOG=1 shows log lines as
 * they come. */
#ifndef HEDDLE_LAB_H
#define HEDDLE_LAB_H

#include <heddle/introspect.h>
#include <heddle/pattern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Randomness that repeats ------------------------------------------------------------- */

/* A generator: the same seed gives the same numbers, everywhere. Not for secrets. */
typedef struct hd_lab_random {
    uint64_t state;
} hd_lab_random;

/* Returns HD_SEED from the process environment, else a fixed number. Prints it, so that a failure can be
 * repeated. */
HD_API uint64_t hd_lab_seed(void);

HD_API hd_lab_random hd_lab_random_of(uint64_t seed);
HD_API uint64_t hd_lab_random_u64(hd_lab_random *r);
/* From 0 to n - 1, evenly; n > 0. */
HD_API uint64_t hd_lab_random_below(hd_lab_random *r, uint64_t n);
/* True once in n times. */
HD_API bool hd_lab_random_once_in(hd_lab_random *r, uint64_t n);
HD_API void hd_lab_random_bytes(hd_lab_random *r, void *out, size_t size);

/* ---- The environment --------------------------------------------------------------------- */

/* An hd_env for tests: clocks that stand still, randomness from a seed, an allocator that watches.
 * Use one directly to test what takes an hd_env; a lab has one of its own. */
typedef struct hd_lab_env hd_lab_env;

/* Aborts if there is no memory. */
HD_API hd_lab_env *hd_lab_env_open(void);
/* Aborts, and lists the blocks, if anything allocated was not freed. Accepts NULL. */
HD_API void hd_lab_env_close(hd_lab_env *world);

/* The hd_env to give to the library; lives as long as the world. Its functions may be called by any
 * thread; the functions of this header by the test's thread. */
HD_API const hd_env *hd_lab_env_of(hd_lab_env *world);

/* The monotonic clock starts at 1 s, the wall clock at 2020-01-01; both stand still between calls
 * of advance. Setting the wall clock models a clock that was put back or forward. */
HD_API void hd_lab_env_advance_ms(hd_lab_env *world, uint64_t ms);
HD_API void hd_lab_env_advance_ns(hd_lab_env *world, uint64_t ns);
HD_API void hd_lab_env_set_wall_ms(hd_lab_env *world, uint64_t ms_since_1970);

/* The environment's random bytes start over from this seed (at open: a fixed one). */
HD_API void hd_lab_env_set_seed(hd_lab_env *world, uint64_t seed);

/* The allocator fills fresh memory with a pattern, moves a block at every resize, and aborts when a block is
 * freed or resized with a wrong size, or is not one of this allocator's.
 *
 * It counts allocations and resizes, not frees. fail_at: the nth from now fails, and no other.
 * fail_from: the nth from now and all after it fail. 0: none fails any more. */
HD_API void hd_lab_env_fail_at(hd_lab_env *world, uint64_t nth);
HD_API void hd_lab_env_fail_from(hd_lab_env *world, uint64_t nth);
/* Whether an allocation was refused since the last fail_at or fail_from. */
HD_API bool hd_lab_env_failed(const hd_lab_env *world);

HD_API uint64_t hd_lab_env_allocations(const hd_lab_env *world); /* since open, resizes included */
HD_API uint64_t hd_lab_env_blocks(const hd_lab_env *world);      /* now */
HD_API size_t hd_lab_env_bytes(const hd_lab_env *world);         /* now */

HD_API size_t hd_lab_env_log_count(const hd_lab_env *world);
/* The ith log line since open or clear, or NULL; with its level in front: "warning: ...". */
HD_API const char *hd_lab_env_log_line(const hd_lab_env *world, size_t i);
/* How many lines contain `text`. */
HD_API size_t hd_lab_env_logged(const hd_lab_env *world, const char *text);
HD_API void hd_lab_env_log_clear(hd_lab_env *world);

/* Runs `body` many times, each time in a new hd_lab_env. Run n fails the nth allocation: once that one alone,
 * once that one and all after it. It stops when a run makes fewer than n allocations. The body calls the functions
 * under test, accepts HD_NOMEM from them, and frees everything; if hd_lab_env_failed() is false at its end, they
 * must have succeeded. Returns the number of allocations of a run in which none fails. */
typedef void (*hd_lab_body_fn)(hd_lab_env *world, void *ctx);
HD_API uint64_t hd_lab_each_allocation_failure(hd_lab_body_fn body, void *ctx);

/* ---- The lab ----------------------------------------------------------------------------- */

/* A store, and runtimes on it. */
typedef struct hd_lab hd_lab;

/* Called when an expectation does not hold. It may leave by longjmp, as test frameworks do. If it returns,
 * the expectation returns false. */
typedef void (*hd_lab_fail_fn)(const char *message, void *ctx);

typedef struct hd_lab_options {
    bool in_file;    /* the store is a SQLite file, removed at the end; default: in memory */
    bool load_late;  /* in memory: a document loads in a later pump, as from a remote store */
    hd_lab_env *env; /* default: a new one. Borrowed: close it after the lab */
    /* Default: prints the message and aborts. */
    hd_lab_fail_fn fail;
    void *ctx;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_lab_options;

HD_API hd_lab *hd_lab_open(const hd_lab_options *options);
/* Closes every runtime. Expects that the test has asked for every failure and violation
 * (hd_lab_failures, hd_lab_violations), and that all memory was freed. If options.fail leaves by longjmp,
 * call hd_lab_close again. Accepts NULL. */
HD_API void hd_lab_close(hd_lab *lab);
HD_API hd_lab_env *hd_lab_world(hd_lab *lab);

/* The runtime of this name; the first call opens it, strict (hd_options.strict). */
HD_API hd_runtime *hd_lab_runtime(hd_lab *lab, const char *name);
/* Opens a runtime with options (principal, limits, ...; env and memory are the lab's), and returns the
 * status, for tests in which memory runs out. If a runtime of this name is open, the call returns HD_EXISTS and
 * fails the test as an expectation does. */
HD_API hd_status hd_lab_runtime_with(hd_lab *lab, const char *name, const hd_options *options,
                                     hd_runtime **out);
/* Use this in place of hd_close for the runtimes of a lab. */
HD_API void hd_lab_runtime_close(hd_runtime *rt);

/* ---- Moving ------------------------------------------------------------------------------ */

/* The runtimes of a lab do nothing by themselves. settle: pumps every runtime until none has anything left
 * to do now. Nodes and commits that wait for a time go on waiting. With a store in a file, a runtime looks
 * for other runtimes' commits from time to time: with several runtimes settle takes some multiples of
 * 100 ms of the lab's time. An action of a workflow that runs on a thread is not waited for: a test registers actions
 * with hd_action_spec.here. */
HD_API void hd_lab_settle(hd_lab *lab);
/* The same, and advances the clock as needed until no node or commit waits for a time either. It does not wait for
 * nodes that do not settle, that overwrite each other (echo), or that keep each other busy through debounces or
 * throttles for more than 100 windows. scheduler.h, "Idle", has the list. */
HD_API void hd_lab_idle(hd_lab *lab);
/* Pumps one runtime once: its commits reach the store, it receives verdicts and other runtimes' commits,
 * and runs nodes. The order of these calls is the order of delivery. */
HD_API void hd_lab_pump(hd_runtime *rt);
HD_API void hd_lab_advance_ms(hd_lab *lab, uint64_t ms);

/* For a store in memory. HD_LAB_COMMITS: from now on the runtime's commits do not reach the store.
 * HD_LAB_NEWS: the runtime receives no verdict and no other runtime's commit. hd_lab_deliver ends both; the
 * runtime's next pump delivers what was held. */
enum { HD_LAB_COMMITS = 1, HD_LAB_NEWS = 2 };
HD_API void hd_lab_delay(hd_runtime *rt, unsigned what);
HD_API void hd_lab_deliver(hd_runtime *rt);
/* The store refuses the next `times` commits that arrive from this runtime with this status: HD_STALE, as
 * if another runtime had written first, HD_REJECTED, ... */
HD_API void hd_lab_refuse(hd_runtime *rt, hd_status status, uint32_t times);

/* The same for a store in memory that the program opened (hd_memory_open); call these before a runtime is opened on
 * it. They are in the library itself; all other functions of this header are in the lab.
 *
 * Documents load late, as from a remote store: the first read of a document returns HD_PENDING. */
HD_API void hd_memory_load_late(hd_memory *memory);
/* Called when a commit of this runtime arrives at the store. HD_OK: the store decides about it. A transient status:
 * the commit waits, and the function is called again in the runtime's next pump. Any other: the store refuses the
 * commit with that status. */
typedef hd_status (*hd_arrives_fn)(const hd_runtime *rt, void *ctx);
/* Returns whether verdicts and other runtimes' commits reach this runtime now. */
typedef bool (*hd_hears_fn)(const hd_runtime *rt, void *ctx);
/* From now on the store calls these functions, both with `ctx`. Either may be NULL. */
HD_API void hd_memory_intercept(hd_memory *memory, hd_arrives_fn arrives, hd_hears_fn hears,
                                void *ctx);

/* ---- Writing and reading ----------------------------------------------------------------- */

/* Writes JSON to a cell ("main/cart#/items"); "-" removes it. If that fails, the test fails as by an expectation. */
HD_API void hd_lab_set(hd_runtime *rt, const char *cell, const char *json);
/* The value that the runtime sees in a cell, as JSON; "-": absent. Runs no node. The text is good until the fourth
 * call after this one. */
HD_API const char *hd_lab_get(hd_runtime *rt, const char *cell);

/* ---- What ran ---------------------------------------------------------------------------- */

/* The names of the nodes and handlers that ran since the last call, in order, separated by spaces. It leaves out runs
 * that were set aside (hd_run_trace), and nodes without a name, such as sinks: a function of those can call
 * hd_lab_note. */
HD_API const char *hd_lab_ran(hd_runtime *rt);
/* Adds a name to what hd_lab_ran returns. */
HD_API void hd_lab_note(hd_runtime *rt, const char *name);
/* How often nodes of this name have run since the runtime was opened, removed ones included. */
HD_API uint64_t hd_lab_runs(hd_runtime *rt, const char *name);
/* Runs that failed since the last call: "add_up HD_FAILED: the cart is full; ...". */
HD_API const char *hd_lab_failures(hd_runtime *rt);

/* From now on, in the runtimes that are open, every computation runs twice; hd_lab_violations lists what
 * the second run would change: "dice wrote main/dice=3, then main/dice=5; ...". */
HD_API void hd_lab_recheck(hd_lab *lab);
HD_API const char *hd_lab_violations(hd_runtime *rt);

/* ---- Expectations ------------------------------------------------------------------------ */

/* Return true if the expectation holds. The texts are those that the functions above return; JSON is
 * compared as values, so spaces and the order of keys do not matter. */
#define hd_lab_expect_ran(rt, names) hd_lab_expect_ran_at(__FILE__, __LINE__, rt, names)
#define hd_lab_expect_runs(rt, name, count)                                                        \
    hd_lab_expect_runs_at(__FILE__, __LINE__, rt, name, count)
#define hd_lab_expect_cell(rt, cell, json) hd_lab_expect_cell_at(__FILE__, __LINE__, rt, cell, json)
#define hd_lab_expect_failures(rt, text)   hd_lab_expect_failures_at(__FILE__, __LINE__, rt, text)
#define hd_lab_expect_violations(rt, text) hd_lab_expect_violations_at(__FILE__, __LINE__, rt, text)

HD_API bool hd_lab_expect_ran_at(const char *file, int line, hd_runtime *rt, const char *names);
HD_API bool hd_lab_expect_runs_at(const char *file, int line, hd_runtime *rt, const char *name,
                                  uint64_t count);
HD_API bool hd_lab_expect_cell_at(const char *file, int line, hd_runtime *rt, const char *cell,
                                  const char *json);
HD_API bool hd_lab_expect_failures_at(const char *file, int line, hd_runtime *rt, const char *text);
HD_API bool hd_lab_expect_violations_at(const char *file, int line, hd_runtime *rt,
                                        const char *text);

/* Prints a message, formatted as by printf, and aborts. */
HD_API void hd_lab_fail(const char *format, ...) HD_PRINTF(1, 2);

#ifdef __cplusplus
}
#endif
#endif

/* heddle/base.h -- what every part of heddle shares: status codes, errors, the environment.
 *
 * Conventions of the whole library, said once:
 *
 *   - A function that can fail returns an hd_status; HD_OK is zero. Branch on the *class* of a
 *     status (hd_status_class), not on the code, unless you handle one code specially.
 *   - Arguments are borrowed for the call unless the verb is `take`. A returned pointer is
 *     borrowed from the object it came from. A `T **out` argument is yours afterwards; it is set
 *     to NULL on failure.
 *   - The program zeroes a struct before it fills it (options, specs), as `= { .name = value }` does:
 *     zero is the default of every member.
 *   - heddle has no global state. Time, randomness, memory and log lines come from one hd_env.
 *   - An object belongs to one thread at a time, unless its header says otherwise.
 *   - Where the program passes a function (a callback), the next argument or member is its `ctx`. The library
 *     passes that pointer, unchanged, as the last argument of the callback.
 *
 * Endings. Each verb that begins something has one verb that ends it:
 *
 *     open, compile ... close       ends the handle and frees its memory
 *     register ... unregister       the runtime no longer uses the node, handler, pattern, action or channel
 *     on_x ... off_x                the same for callbacks without a name, of which there can be several
 *     set_x(fn) ... set_x(NULL)     the same for a callback of which there is one
 *     listen ... unlisten, ref ... unref
 *     start, run, serve ... stop    stops what runs; it can be started again, and its documents stay
 *     begin ... end                 a stretch of time; of a transaction: begin ... commit or abort
 *     remove                        deletes data: a key, a document, a piece with its documents
 *     cancel                        asks a workflow instance to end, after its clean-up; deletes an event posted
 *                                   for later
 *
 * Growing. Options, specs, stats, infos and hd_env, whose memory belongs to the program, end in `reserved_`. A
 * later version of heddle replaces reserved members by new ones, and zero in a new member means the behaviour
 * of the version before. So a program that was compiled with an older header works with a newer library of the
 * same soname, and no member moves. Structs that the library passes to a callback by pointer grow at their end.
 * Handles, plain values (hd_value, hd_cell, hd_node, hd_error, hd_limits, hd_link, hd_iter, ...) and the numbers
 * of existing enum constants do not change. A change that does not fit these rules changes the soname;
 * docs/EMBEDDING.md, "Versions", has the details.
 *
 * Inlines. The few functions that computations call most are inline. Their code depends on the layout of the
 * first members of hd_tx and hd_runtime. A program that defines HD_NO_INLINE before it includes heddle calls the
 * functions of the library instead, and depends only on the structs that these headers show. */
#ifndef HEDDLE_BASE_H
#define HEDDLE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HD_API                __attribute__((visibility("default")))
#define HD_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
/* Private, for inline functions of these headers. */
#define HD_USUALLY_(x) __builtin_expect(!!(x), 1)
#else
#define HD_API
#define HD_PRINTF(fmt, first)
#define HD_USUALLY_(x) (x)
#endif
#ifdef HD_NO_INLINE
#define HD_INLINE_
#else
#define HD_INLINE_ inline
#endif

#define HD_VERSION "0.2.0"

/* Called once, when the object that `ctx` was registered with has ended: the library does not use `ctx` any more,
 * and the program may free it. */
typedef void (*hd_release_fn)(void *ctx);

/* The version of the library that is linked, as text ("0.2.0"). */
HD_API const char *hd_version(void);

/* ---- Status ------------------------------------------------------------------------------ */

/* What the caller should do about a status. */
typedef enum hd_class {
    HD_CLASS_OK,         /* it worked */
    HD_CLASS_STALE,      /* what was read has changed since: read again and retry */
    HD_CLASS_NO_VERDICT, /* the outcome is not known yet: replay the same commit */
    HD_CLASS_PERMANENT,  /* the answer will not change (exists already, expired): never retry */
    HD_CLASS_TERMINAL,   /* any other refusal or failure: report it, do not retry */
    HD_CLASS_TRANSIENT,  /* busy, I/O, disk full: retry within a budget */
    HD_CLASS_PENDING,    /* not finished: it completes later */
    HD_CLASS_INPUT,      /* the data given is malformed or does not fit; the message says where */
    HD_CLASS_USAGE,      /* the call is wrong: fix the program */
    HD_CLASS_NOMEM       /* out of memory; nothing was changed */
} hd_class;

/* One row per status: code, class, text. */
#define HD_STATUS_TABLE(X)                                                                         \
    X(HD_OK, HD_CLASS_OK, "ok")                                                                    \
    X(HD_NOMEM, HD_CLASS_NOMEM, "out of memory")                                                   \
    X(HD_USAGE, HD_CLASS_USAGE, "wrong use of the interface")                                      \
    X(HD_KIND, HD_CLASS_USAGE, "wrong kind of value")                                              \
    X(HD_RANGE, HD_CLASS_USAGE, "index or number out of range")                                    \
    X(HD_SYNTAX, HD_CLASS_INPUT, "malformed text")                                                 \
    X(HD_LIMIT, HD_CLASS_INPUT, "too deep or too large")                                           \
    X(HD_SCHEMA, HD_CLASS_INPUT, "invalid schema")                                                 \
    X(HD_MISMATCH, HD_CLASS_INPUT, "the value does not match its schema")                          \
    X(HD_NOT_FOUND, HD_CLASS_INPUT, "not found")                                                   \
    X(HD_CYCLE, HD_CLASS_INPUT, "links form a cycle or too long a chain")                          \
    X(HD_STALE, HD_CLASS_STALE, "a value read has changed since")                                  \
    X(HD_RESYNC, HD_CLASS_STALE, "what was read is older than the history kept")                   \
    X(HD_DEAD_LAYER, HD_CLASS_STALE, "depends on a commit that was rejected")                      \
    X(HD_HASH_DIFFERS, HD_CLASS_STALE, "the value is not the one expected")                        \
    X(HD_NO_VERDICT, HD_CLASS_NO_VERDICT, "no verdict yet")                                        \
    X(HD_ORIGIN_FAILED, HD_CLASS_PERMANENT, "the originating commit failed")                       \
    X(HD_EXISTS, HD_CLASS_PERMANENT, "it exists already, or was handled already")                  \
    X(HD_EXPIRED, HD_CLASS_PERMANENT, "the event id is older than the receipt horizon")            \
    X(HD_PROTOCOL, HD_CLASS_TERMINAL, "protocol error")                                            \
    X(HD_REJECTED, HD_CLASS_TERMINAL, "rejected")                                                  \
    X(HD_CORRUPT, HD_CLASS_TERMINAL, "the file is damaged")                                        \
    X(HD_NEWER, HD_CLASS_TERMINAL, "written by a newer version of heddle")                         \
    X(HD_NOT_HEDDLE, HD_CLASS_TERMINAL, "not a heddle file")                                       \
    X(HD_READ_ONLY, HD_CLASS_TERMINAL, "the file or its directory cannot be written")              \
    X(HD_CLOSED, HD_CLASS_TERMINAL, "closed")                                                      \
    X(HD_FAILED, HD_CLASS_TERMINAL, "failed")                                                      \
    X(HD_BUSY, HD_CLASS_TRANSIENT, "busy")                                                         \
    X(HD_IO, HD_CLASS_TRANSIENT, "input/output error")                                             \
    X(HD_FULL, HD_CLASS_TRANSIENT, "no space left on the device")                                  \
    X(HD_TRANSIENT, HD_CLASS_TRANSIENT, "failed for now")                                          \
    X(HD_PENDING, HD_CLASS_PENDING, "not finished yet")                                            \
    X(HD_ABORTED, HD_CLASS_TERMINAL, "aborted")                                                    \
    X(HD_UNSETTLED, HD_CLASS_PENDING, "a part of the graph does not settle")

typedef enum hd_status {
#define HD_STATUS_ROW(code, class_, text) code,
    HD_STATUS_TABLE(HD_STATUS_ROW)
#undef HD_STATUS_ROW
        HD_STATUS_COUNT_ /* not a status */
} hd_status;

/* The status's name ("HD_STALE"), its text, and its class. Callable from any thread; the texts are static. A number
 * that is no status is treated as HD_REJECTED, which is terminal, so that callers do not retry after it. */
HD_API const char *hd_status_name(hd_status status);
HD_API const char *hd_status_text(hd_status status);
HD_API hd_class hd_status_class(hd_status status);

/* Where and why a call failed. Functions that take an hd_error accept NULL; on failure they fill
 * every field, on success they leave it alone. */
typedef struct hd_error {
    hd_status status;
    uint32_t line;     /* 1-based; 0 where there is no text */
    uint32_t column;   /* 1-based, in bytes */
    size_t offset;     /* 0-based, in bytes */
    char path[128];    /* JSON pointer of the place in the value, shortened with "..." */
    char message[256]; /* one line for a person, without a newline */
} hd_error;

/* ---- Environment ------------------------------------------------------------------------- */

typedef enum hd_log_level { HD_LOG_ERROR, HD_LOG_WARN, HD_LOG_INFO, HD_LOG_DEBUG } hd_log_level;

/* Realloc-shaped: block NULL allocates, size 0 frees (and returns NULL), otherwise resizes.
 * `old_size` is the size given when the block was made. Returns NULL when there is no memory; the old
 * block is then untouched. Blocks are aligned for any type. */
typedef void *(*hd_alloc_fn)(void *block, size_t old_size, size_t size, void *ctx);
/* Reads a clock. */
typedef uint64_t (*hd_clock_fn)(void *ctx);
/* Fills `out` with unpredictable bytes. */
typedef void (*hd_random_fn)(void *out, size_t size, void *ctx);
/* Writes one log line; `line` ends without a newline. */
typedef void (*hd_line_fn)(hd_log_level level, const char *line, void *ctx);
/* Blocks until the descriptor is readable (-1: none) or the monotonic clock reaches `deadline_ns`
 * (UINT64_MAX: never). May return early. */
typedef void (*hd_wait_fn)(int fd, uint64_t deadline_ns, void *ctx);
/* Called before and after the library waits by other means than `wait`: for the answer of a server, or for a thread of
 * its own. The library calls no other function of the environment in between. A binding lets go of its interpreter. */
typedef void (*hd_pause_fn)(bool begins, void *ctx);

/* Memory, time, randomness and log lines: everything that heddle takes from the operating system. Start
 * from hd_env_system(), replace the members you want, and pass the struct at open. The functions must outlive
 * every object opened with them, and must be safe to call from several threads: a runtime on a file or on a
 * server writes its commits on a second thread.
 *
 * The library copies the struct, so it may live on the caller's stack. */
typedef struct hd_env {
    void *ctx; /* passed to each function below */
    hd_alloc_fn alloc;
    hd_clock_fn monotonic_ns; /* nanoseconds of a clock that never goes back */
    hd_clock_fn wall_ms;      /* milliseconds since 1970 */
    hd_random_fn random;
    hd_line_fn log;
    hd_wait_fn wait;            /* used by the calls that wait: settle, sync, run, close, ... */
    hd_pause_fn pause;          /* NULL: it need not be known */
    void (*reserved_[3])(void); /* room for later members */
} hd_env;

/* The environment of the operating system: malloc, CLOCK_MONOTONIC, getrandom; warnings and errors go to
 * stderr. */
HD_API hd_env hd_env_system(void);

#ifdef __cplusplus
}
#endif
#endif

/* trace.h -- what happened last: triggers, runs, passes.
 *
 * Three rings of fixed size. All memory is taken when a kind is switched on; afterwards an entry
 * costs references to names and places, no memory. What a value was is kept as a short text, so that
 * a trace keeps no former value of a document in memory. */
#ifndef SCHEDULER_TRACE_H
#define SCHEDULER_TRACE_H

#include "scheduler/state.h"

typedef struct trigger_entry {
    hd_trigger t;
    struct key *name, *writer_name; /* referenced; NULL: anonymous */
    uint64_t rev;                   /* of the change */
} trigger_entry;

typedef struct run_entry {
    hd_run_trace t;
    struct key *name;
    uint64_t rev_before;    /* the replica's revision when it began */
    uint32_t runs_before;   /* of the node */
    uint64_t completed_rev; /* node.ran_rev then; 0: it has not completed */
} run_entry;

/* The last `capacity` of `total` records of `size` bytes. */
typedef struct ring {
    char *items; /* NULL: never switched on */
    uint32_t capacity;
    uint32_t size;
    uint64_t total;
} ring;

static inline uint32_t ring_count(const ring *r) {
    return r->total < r->capacity ? (uint32_t)r->total : r->capacity;
}
/* The ith that is left, oldest first. */
static inline void *ring_at(const ring *r, uint32_t i) {
    assert(i < ring_count(r));
    uint64_t first = r->total - ring_count(r);
    return r->items + (size_t)((first + i) % r->capacity) * r->size;
}

typedef struct trace {
    unsigned kinds; /* HD_TRACE_* that are recorded now */
    ring triggers, runs, settles;

    /* The change under way, borrowed for as long as it is matched. */
    place_id at;
    hd_value before, after;

    bool in_run; /* the newest entry of `runs` is of the body on the stack */
    struct {     /* the pass under way */
        uint64_t began_ns, runs, marks, filtered, iterations, exhausted;
        bool open;
    } pass;
} trace;

/* HD_NOMEM: nothing has changed. */
hd_status trace_enable(trace *t, const hd_env *env, unsigned kinds);
void trace_clear(trace *t, scheduler *s);
void trace_fini(trace *t, scheduler *s);
/* Asserts, between passes: what is switched on has its ring, and no run or pass is open. */
void trace_check(const trace *t);

/* From the hooks of state.h. */
void trace_change(trace *t, place_id at, hd_value before, hd_value after);
void trace_trigger(trace *t, scheduler *s, node_id id, trigger_decision decision);
void trace_run_begin(trace *t, scheduler *s, node_id id);
void trace_run_body(trace *t, scheduler *s);
void trace_run_end(trace *t, scheduler *s, node_id id, const hd_tx *tx, hd_status status);
void trace_pass_begin(trace *t, const scheduler *s);
void trace_pass_end(trace *t, const scheduler *s);

/* The newest change of the place that concerned the node, after `since` and up to `until`. NULL: none is
 * left. */
const trigger_entry *trace_find_trigger(const trace *t, hd_node handle, place_id at, uint64_t since,
                                        uint64_t until);
/* The run of the node that completed at this revision; NULL: it was not recorded, or is not left. */
const run_entry *trace_find_run(const trace *t, hd_node handle, uint64_t ran_rev);

/* A value in a few characters: JSON where it fits, "[3 items]" and the like where not. */
void trace_summary(hd_value v, char *out, size_t size);

#endif

/* lab_line.h -- the line between a replica and its authority, with a hand on it.
 *
 * Stands in front of any authority and passes everything on, unless told otherwise:
 *
 *     held requests    commits stay with the replica: the authority is "busy"
 *     held answers     verdicts and frames wait at the authority
 *     lost requests    commits leave the replica and never arrive
 *     mended           what has no verdict is sent again, also what had arrived (a replay)
 *     gone             nobody listens any more: what is pending dies with the session
 *
 * Remembers the order in which commits first arrived, which is the order in which the authority
 * decides. */
#ifndef HEDDLE_LAB_LINE_H
#define HEDDLE_LAB_LINE_H

#include "store/runtime.h"
#include "store/tx.h"

/* What a commit asked for, in words of its own. */
typedef struct lab_op {
    op_kind kind;
    char document[64], path[64]; /* as the library prints them */
    char *json;                  /* "-" for none */
    uint64_t keep;
    size_t made; /* for the judge: bytes of `path` to the first place that came or went with it */
} lab_op;

typedef struct lab_arrival {
    hd_runtime *rt;
    uint64_t local_seq;
    lab_op *ops;
    size_t op_count;
} lab_arrival;

/* Shared by the lines of one store. */
typedef struct lab_arrivals {
    lab_arrival *items;
    size_t count, capacity;
} lab_arrivals;

typedef struct lab_line {
    authority base;
    authority *inner;
    authority_ops ops; /* those of a line, as far as `inner` has them */
    hd_runtime *rt;
    lab_arrivals *arrivals;
    uint64_t last_arrived; /* local seq */
    size_t heard;          /* arrivals at the last poll: all of them have been heard of */
    bool hold_requests, hold_answers, lose_requests, gone;
} lab_line;

/* Puts a line between the runtime and its authority; it goes with the runtime. */
lab_line *lab_line_lay(hd_runtime *rt, lab_arrivals *arrivals);

void lab_arrivals_free(lab_arrivals *arrivals);

/* Nothing is held or lost any more; every commit without a verdict is sent again. */
void lab_line_mend(lab_line *line);
/* The runtime is cut off for good, and closes: its commits are refused. */
void lab_line_drop(lab_line *line);

#endif

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

typedef struct lab_arrival {
    hd_runtime *rt;
    uint64_t local_seq;
} lab_arrival;

/* Shared by the lines of one store. */
typedef struct lab_arrivals {
    lab_arrival *items;
    size_t count, capacity;
} lab_arrivals;

typedef struct lab_line {
    authority base;
    authority *inner;
    hd_runtime *rt;
    lab_arrivals *arrivals;
    uint64_t last_arrived; /* local seq */
    bool hold_requests, hold_answers, lose_requests, gone;
} lab_line;

/* Puts a line between the runtime and its authority; it goes with the runtime. */
lab_line *lab_line_lay(hd_runtime *rt, lab_arrivals *arrivals);

/* Nothing is held or lost any more; every commit without a verdict is sent again. */
void lab_line_mend(lab_line *line);

#endif

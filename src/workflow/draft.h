/* draft.h -- a function of a workflow while its plan is being made.
 *
 * ir.c fills in nodes and edges as the IR has them; draft_check (draft.c, ways.c) puts the nodes in order,
 * finds out what lies in which loop and which branch, and refuses what cannot run. All memory is the
 * plan's arena. */
#ifndef WORKFLOW_DRAFT_H
#define WORKFLOW_DRAFT_H

#include "workflow/plan.h"

/* A set of variables, as bits. */
typedef struct var_set {
    uint64_t *words;
} var_set;

typedef struct draft_node {
    plan_node *node; /* its final form, being filled in */
    uint32_t first,
        count;          /* of its edges in draft.edges, EXCEPT included, after draft_check began */
    uint32_t arrivals;  /* incoming edges that are not BACK */
    uint32_t order;     /* its place in the order; PLAN_NONE: not reached yet */
    uint32_t dominator; /* the closest node that every way from ENTRY leads through */
    var_set reads, assigns; /* by its code */
    var_set needs;          /* what its code reads and does not assign itself */
    var_set assigned;       /* what some way to it has assigned */
} draft_node;

typedef struct draft {
    plan *p;
    plan_function *f;
    hd_error *error;
    VEC(draft_node) nodes;
    VEC(plan_edge) edges;
    uint32_t *by_order; /* node at each place of the order */
    uint32_t words;     /* of a var_set */
    /* The sources of all edges but BACK, grouped by target: those of node i are from[first_from[i] ..
     * first_from[i + 1]). */
    uint32_t *from, *first_from;
} draft;

/* Orders and checks the function, and fills in what follows from its edges: plan_function.nodes and
 * edges, and of each node first_out, out_count, except, deps_required, fan, loop, pair. HD_SYNTAX with
 * the node and its position in the source. */
hd_status draft_check(draft *d);

/* For draft_check: ways that a node begins at once meet before what ends once for all of them, and share no variable
 * that one of them assigns. HD_LIMIT: too many of them lie in each other. */
hd_status draft_check_ways(draft *d);

/* The variables that a piece of code reads and assigns join those of the node. */
void draft_note(draft *d, uint32_t node, const code *c);

/* Fills the error: what is wrong, at which node. Returns HD_SYNTAX. */
hd_status draft_refuse(draft *d, uint32_t node, const char *format, ...) HD_PRINTF(3, 4);

static inline bool edge_has_index(edge_kind kind) {
    return kind == EDGE_GUARD || kind == EDGE_ELEM;
}

static inline bool var_in(var_set s, uint32_t v) { return s.words[v / 64] >> (v % 64) & 1; }
static inline void var_add(var_set s, uint32_t v) { s.words[v / 64] |= UINT64_C(1) << (v % 64); }

#endif

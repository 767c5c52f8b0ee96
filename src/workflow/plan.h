/* plan.h -- a workflow, checked and ready to run.
 *
 * A plan is made from one IR document (docs/IR.md), once, when a version is registered or met. It
 * holds every function's nodes with their successors side by side, the number of arrivals each node
 * waits for, and compiled expressions; nothing in it changes afterwards, so all instances of the
 * version share it.
 *
 *     IR (JSON) --ir.c--> nodes, edges --draft.c--> deps_required, regions, variables
 *
 * Cost: making one is O(nodes + edges), plus variables / 64 for each node. Following an edge while an
 * instance runs is an array access. */
#ifndef WORKFLOW_PLAN_H
#define WORKFLOW_PLAN_H

#include "base/arena.h"
#include "expr/class.h"
#include "expr/compile.h"
#include <heddle/value.h>

/* Kind, and what may leave it: FLOW for plain successors, END where nothing follows. */
#define PLAN_NODE_TABLE(X)                                                                         \
    X(ENTRY, FLOW)                                                                                 \
    X(CALC, FLOW)                                                                                  \
    X(ACTION, FLOW)                                                                                \
    X(BRANCH, GUARDS)                                                                              \
    X(MERGE, FLOW)                                                                                 \
    X(LOOP_HEAD, LOOP)                                                                             \
    X(FAN_HEAD, FAN)                                                                               \
    X(BARRIER, FLOW)                                                                               \
    X(SLEEP, FLOW)                                                                                 \
    X(WAIT, FLOW)                                                                                  \
    X(CALL, FLOW)                                                                                  \
    X(CHILD, FLOW)                                                                                 \
    X(HANDLER, GUARDS)                                                                             \
    X(RAISE, END)                                                                                  \
    X(RET, END)                                                                                    \
    X(RETURN, END)

typedef enum node_kind {
#define PLAN_NODE_ROW(name, out) NODE_##name,
    PLAN_NODE_TABLE(PLAN_NODE_ROW)
#undef PLAN_NODE_ROW
        NODE_KINDS
} node_kind;

#define PLAN_EDGE_TABLE(X)                                                                         \
    X(FORWARD)                                                                                     \
    X(CONTINUE) /* LOOP_HEAD to its body: there is a next element, or the condition holds */       \
    X(BREAK)    /* LOOP_HEAD to what follows the loop */                                           \
    X(BACK)     /* the end of the body to its LOOP_HEAD */                                         \
    X(GUARD)    /* BRANCH or HANDLER to alternative `index` */                                     \
    X(ELEM)     /* FAN_HEAD to the first node of branch `index` */                                 \
    X(JOIN)     /* the end of a branch to its BARRIER */                                           \
    X(EXCEPT)   /* a node to the HANDLER that is asked when it raises */

typedef enum edge_kind {
#define PLAN_EDGE_ROW(name) EDGE_##name,
    PLAN_EDGE_TABLE(PLAN_EDGE_ROW)
#undef PLAN_EDGE_ROW
        EDGE_KINDS
} edge_kind;

const char *node_kind_name(node_kind kind);
const char *edge_kind_name(edge_kind kind);

#define PLAN_NONE UINT32_MAX

typedef struct plan_edge {
    uint32_t from, to; /* nodes of one function */
    edge_kind kind;
    uint32_t index; /* GUARD, ELEM: which */
} plan_edge;

/* What is done when an attempt fails. All zero: it is not tried again. */
typedef struct plan_retry {
    uint32_t attempts; /* in all; 0 counts as 1 */
    double backoff_s;  /* before the second attempt */
    double factor;     /* each further wait is so many times longer; 0: 2 */
    double max_s;      /* no wait is longer; 0: 3,600 */
    uint32_t *on;      /* classes of exceptions that are worth another attempt; none: all */
    uint32_t on_count;
} plan_retry;

/* One `except` clause of a HANDLER: taken for exceptions of these classes and their subclasses. */
typedef struct plan_clause {
    uint32_t *classes; /* numbers of classes, see expr/class.h; none: every exception */
    uint32_t class_count;
    uint32_t bind; /* the variable that holds the exception; PLAN_NONE: none */
} plan_clause;

/* Where a result goes. */
typedef struct plan_target {
    uint32_t variable; /* a plain name: its slot; PLAN_NONE: not a plain name */
    /* Anything else, as statements that assign plan_function.result, where the result is put first. NULL
     * beside PLAN_NONE: the result is dropped. */
    code *assign;
} plan_target;

typedef enum barrier_mode {
    BARRIER_ALL,     /* the first failure raises at once, the other branches go on unheard */
    BARRIER_SETTLED, /* exceptions are results */
    BARRIER_GROUP,   /* the first failure cancels the others, then an ExceptionGroup is raised */
    BARRIER_ORDERED, /* a parallel loop: waits for all, then raises what failed at the lowest index */
    BARRIER_FIRST    /* the first that ends cancels the others; exceptions are results */
} barrier_mode;

/* One node. Which codes it has, and what they are, depends on its kind:
 *
 *     CALC       code: statements
 *     ACTION     args; into
 *     BRANCH     args: the guards, in order; the edge behind the last is "else"
 *     LOOP_HEAD  code: what it iterates over, and into (for); test (while)
 *     FAN_HEAD   code: the elements, and into; no code: one branch for each ELEM edge
 *     BARRIER    code: a branch's result, in the branch's own variables; into: the list of all
 *     SLEEP      code: seconds, or with `until` seconds since 1970
 *     WAIT       name: of the signal; code: how many seconds at most; into
 *     CALL       callee; args; into
 *     CHILD      name: of the workflow; args, named; into
 *     HANDLER    clauses
 *     RAISE      code; none: what the HANDLER above it has caught
 *     RET, RETURN  code
 */
typedef struct plan_node {
    const char *id; /* unique in its function; stable across unrelated edits of the source */
    const char *at; /* where it stands in the source ("flow.py:12:8"); "" */
    node_kind kind;
    uint32_t function;

    uint32_t first_out, out_count; /* in plan_function.edges; EXCEPT is not among them */
    uint32_t except;        /* the HANDLER that is asked when it raises; PLAN_NONE: the caller */
    uint32_t deps_required; /* arrivals it waits for */
    uint32_t fan;           /* the FAN_HEAD in whose branches it lies; PLAN_NONE: in none */
    uint32_t loop;          /* the innermost LOOP_HEAD in whose body it lies; PLAN_NONE: in none */
    uint32_t pair;          /* FAN_HEAD: its BARRIER; BARRIER: its FAN_HEAD */

    const char *
        name; /* ACTION: the action's; CALL: the function's; CHILD: the workflow's; WAIT: the signal's; else NULL */
    int32_t priority;
    const char
        *queue; /* ACTION: the named queue that its steps wait in; NULL: that of the instance */
    bool until; /* SLEEP */
    uint32_t callee; /* CALL: the function */
    uint32_t caught; /* HANDLER, and RAISE without code: the variable that keeps the exception */
    uint32_t window; /* FAN_HEAD: branches that may be open at once; 0: FAN_WINDOW */
    /* FAN_HEAD: if it is not 0, the first branch is code of the strand itself, and goes on at once. Where such fans are
     * nested, the other branches begin in the order of these numbers. */
    uint32_t here;
    bool
        now; /* FAN_HEAD with which a branch of another fan begins: its branches begin in place of that branch */
    barrier_mode mode;
    plan_retry retry;
    code *limit_key;     /* ACTION: steps with the same key ...; NULL: no limit */
    uint32_t limit_most; /* ... run at most so many at once */
    double timeout_s;    /* ACTION, for each attempt; 0: none */
    double heartbeat_s;  /* ACTION: a worker that is silent for longer is lost; 0: none */

    code *code, *test;
    plan_target into;
    struct code **args;
    const char **arg_names; /* NULL: positional */
    uint32_t arg_count;
    /* ACTION, CHILD: the arguments can be computed again, so that they need not be stored. */
    bool args_repeat;
    plan_clause *clauses;
    uint32_t clause_count;
} plan_node;

typedef struct plan_function {
    const char *name;
    plan_node *nodes; /* in an order in which every edge but BACK goes up */
    uint32_t node_count;
    plan_edge *edges; /* grouped by `from`, EXCEPT left out; by kind and index within a node */
    uint32_t edge_count;
    uint32_t entry;
    scope *names; /* of its variables, parameters first; owned */
    uint32_t params;
    uint32_t result; /* the variable that plan_target.assign reads */
} plan_function;

typedef struct plan_input {
    const char *name;
    hd_value otherwise; /* owned; absent: it must be given */
    hd_schema *schema;  /* NULL: any value */
} plan_input;

/* What is noted about an instance; journal.c. */
typedef enum journal_level { JOURNAL_NONE, JOURNAL_STEPS, JOURNAL_NODES } journal_level;

typedef struct plan {
    const hd_env *env;
    hd_heap *heap;
    world *w;            /* that its code was compiled for */
    arena memory;        /* of everything below but values, schemas, code and scopes */
    VEC(code *) codes;   /* all there are; owned */
    class_names classes; /* what a name of a class means in this version */
    journal_level journal;
    bool keep_is_set;            /* the workflow says for how long its ends are kept: */
    uint64_t keep_ms, keep_most; /* 0: no bound; keep.c */
    const char *name;
    char version[HD_ID_SIZE]; /* hash of the IR without positions and comments */
    hd_value source;          /* the IR; owned */
    hd_value record;          /* what the document of an instance begins with; owned */
    plan_input *inputs;
    uint32_t input_count;
    plan_function *functions; /* [0] is the one an instance begins with */
    uint32_t function_count;
    uint32_t node_count; /* of all functions */
    uint32_t refs;       /* instances and the registry; freed at 0 */
} plan;

/* Checks the IR and makes a plan with one reference. HD_SYNTAX, HD_LIMIT, HD_SCHEMA with the place in
 * the IR (error->path), the node and its position in the source; HD_NOMEM. */
hd_status plan_make(world *w, hd_heap *heap, hd_value ir, plan **out, hd_error *error);
/* For plan_make: the functions have been read; finds the version, and makes the record of an instance. HD_NOMEM. */
hd_status plan_complete(plan *p);
plan *plan_ref(plan *p);
void plan_unref(plan *p);
/* Values are decoded for an instance of this version from here on: what does so calls it before. Cheap. */
static inline void plan_use(plan *p) { classes_use(p->w->classes, &p->classes); }

/* The function or node of this name; PLAN_NONE: there is none. O(nodes): for what is loaded and shown. */
uint32_t plan_find_function(const plan *p, const char *name);
uint32_t plan_find_node(const plan_function *f, const char *id);

/* Whether a workflow or a queue can have this name, which is a part of names of documents; and the rule in words. */
#define PLAN_NAME_MAX  100 /* bytes */
#define PLAN_NAME_RULE "letters, digits, '_', '-' and '.', at most 100 bytes"
bool plan_name_is_good(const char *name, size_t length);

static inline const plan_edge *plan_out(const plan_function *f, const plan_node *n, uint32_t i) {
    assert(i < n->out_count);
    return &f->edges[n->first_out + i];
}

#endif

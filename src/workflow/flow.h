/* flow.h -- a workflow that is being written by hand, as a tree.
 *
 *     builder.c   the calls of heddle/workflow_build.h make the tree
 *     lower.c     makes the IR's nodes and edges of it
 *     flow_id.c   the ids of these nodes
 *
 * All memory is the flow's arena; forms are values of the pool. */
#ifndef WORKFLOW_FLOW_H
#define WORKFLOW_FLOW_H

#include "base/arena.h"
#include "base/table.h"
#include "base/vec.h"

#include <heddle/workflow_build.h>

typedef enum flow_kind {
    FLOW_NODE, /* one node of the IR: `keys` */
    FLOW_IF,
    FLOW_LOOP,
    FLOW_TRY,
    FLOW_FAN, /* each, or gather */
    FLOW_BREAK,
    FLOW_CONTINUE,
    FLOW_RETURN
} flow_kind;

struct flow_step;

typedef struct flow_block {
    struct flow_step *first, *last;
    hd_value
        condition; /* IF: absent for else. TRY: the clause; absent for the body and for finally */
    bool is_finally;
    struct flow_block *next; /* IF, TRY, gather: the next alternative */
} flow_block;

typedef struct flow_step {
    struct flow_step *next;
    flow_kind kind;
    const char *call;  /* the function of the interface that made it, for messages */
    const char *id;    /* given, or NULL */
    const char *label; /* what an id is made of: "fetch_items", "if", "for" */
    const char *at;
    hd_value keys; /* of its node: an object without id; RETURN: "value" */
    hd_value join; /* FAN: of the BARRIER; absent: hd_flow_join has not been called */
    const char *join_id, *join_at;
    bool each; /* FAN: one branch for each element */
    flow_block *blocks;
} flow_step;

typedef struct flow_function {
    const char *name;
    hd_value params; /* an array of names */
    flow_block body;
} flow_function;

/* A block that is open: where further steps go. */
typedef struct flow_open {
    flow_step *step;
    flow_block *block;
} flow_open;

struct hd_flow {
    hd_pool *pool;
    const hd_env *env;
    arena memory;
    const char *name;
    hd_value journal; /* a text; absent: none is kept */
    hd_value keep;    /* an object; absent: the engine says */
    hd_value inputs;
    VEC(flow_function *) functions;
    VEC(flow_open) open; /* the first is the function's body, with no step */
    VEC(hd_error) problems;
    const char *next_id; /* of hd_flow_id, for the next step; NULL: none */
    const char *next_id_at;
    const char *at;  /* of hd_flow_at */
    flow_step *last; /* that made a node of its own; NULL: none */
    bool nomem;
};

/* Keeps a problem with its place. */
void flow_refuse(hd_flow *f, const char *at, const char *call, hd_status status, const char *format,
                 ...) HD_PRINTF(5, 6);

/* The IR of the tree; problems are kept. */
hd_value flow_lower(hd_flow *f);

/* The id of a node, or the beginning of one, up to a slash. */
typedef struct flow_id {
    const char *chars; /* of the node that brought it */
    size_t length;
    const char *of_node; /* the id, if a node has it; NULL: it is only the beginning of others */
    uint32_t
        next; /* "id.<number>" is known for each number from 2 up to this one, which is left out */
} flow_id;

/* Those of the nodes of a function. */
typedef struct flow_ids {
    const hd_env *env;
    VEC(flow_id) all;
    table by_text;
} flow_ids;

void flow_ids_init(flow_ids *ids, const hd_env *env);
void flow_ids_fini(flow_ids *ids);
/* NULL: no node has this id, and none has one that begins with it and a slash. */
flow_id *flow_id_find(const flow_ids *ids, const char *id);
/* A node has the id, which is kept as it is. False: no memory. */
bool flow_id_note(flow_ids *ids, const char *id);

#endif

/* chart.h -- a picture of a workflow: its nodes and edges, with where an instance stands in them.
 *
 *     outline + document --chart.c--> nodes and edges --> text, Mermaid, dot, JSON   (chart_print.c)
 *                                                         conditions of GUARDs        (chart_when.c)
 *                                                     --> layers, positions           (chart_layout.c)
 *                                                     --> SVG                         (chart_svg.c)
 *
 * The words are the plan's: FORWARD, CONTINUE, BREAK, BACK, LOOP_HEAD, deps_required, deps_satisfied, ready. */
#ifndef WORKFLOW_CHART_H
#define WORKFLOW_CHART_H

#include "value/json_write.h"
#include "workflow/outline.h"

/* What stands at a node now. Ordered: a node with several is shown as the last of them. */
typedef enum chart_state {
    CHART_NOTHING,
    CHART_FAN,     /* a FAN_HEAD waits for its branches */
    CHART_WAITING, /* for a signal */
    CHART_SLEEPING,
    CHART_CHILD,   /* waits for the instance that it has started */
    CHART_BACKOFF, /* a failed attempt waits for the next */
    CHART_READY,   /* an action waits for a worker, or a worker has it */
    CHART_FAILED   /* what ended the instance was raised here */
} chart_state;

typedef struct chart_node {
    const plan_node *n;
    /* Of a BRANCH with one condition, or a HANDLER with one clause: the GUARD that has it; in the drawing it stands in
     * the box. NULL: of any other node. */
    const struct chart_edge *test;
    chart_state state;
    uint32_t open;          /* steps that stand here */
    uint32_t deps_required; /* the plan's; of a BARRIER its branches, where their number is known */
    uint32_t deps_satisfied; /* the most that any activation has; 0: none waits */
    uint64_t visits;         /* LOOP_HEAD under way: iterations begun */
} chart_node;

typedef struct chart_edge {
    uint32_t from, to; /* nodes of the function */
    edge_kind kind;
    uint32_t index;
    bool indexed;  /* the index is worth showing: GUARD, and ELEM of a FAN_HEAD with several */
    char when[48]; /* of a GUARD: its condition, cut if it is long; "": none is known */
} chart_edge;

typedef struct chart_function {
    const plan_function *f;
    chart_node *nodes; /* as many as f has, in its order */
    VEC(chart_edge) edges;
} chart_function;

typedef struct chart {
    const hd_env *env;
    outline o;
    chart_function *functions; /* as many as the plan has */
    hd_value instance;         /* borrowed; absent: none */
} chart;

hd_status chart_open(hd_heap *heap, hd_value ir, hd_value instance, chart *out, hd_error *error);
void chart_close(chart *c);

const char *chart_state_name(chart_state state);
/* What stands in the box of a node. */
const char *chart_label(const chart_node *n);

/* A text that is put together. After a failure nothing more is added. */
typedef struct chart_text {
    json_buffer b;
    bool failed;
} chart_text;
void chart_put(chart_text *t, const char *format, ...) HD_PRINTF(2, 3);
/* With the characters that XML reserves escaped; and as a JSON string, with its quotes. */
void chart_put_xml(chart_text *t, const char *text);
void chart_put_json(chart_text *t, const char *text);

/* The condition of the GUARD with this index of a BRANCH or HANDLER, given as the IR has it: "n > 3", "else",
 * "ValueError"; chart_when.c. */
void chart_put_when(chart_text *t, hd_value node, uint32_t index);

void chart_print_text(const chart *c, chart_text *out);
void chart_print_mermaid(const chart *c, chart_text *out);
void chart_print_dot(const chart *c, chart_text *out);
void chart_print_json(const chart *c, chart_text *out);

/* ---- layout */

#define CHART_DRAWN_MAX                                                                            \
    2000 /* nodes of a drawing; a larger workflow is for text, Mermaid and dot */

/* A node of a function, or a point where an edge passes a layer. */
typedef struct chart_box {
    uint32_t node;  /* PLAN_NONE: a point */
    uint32_t layer; /* from the top */
    uint32_t order; /* in its layer, from the left */
    double x, y;    /* of its middle */
    double width, height;
} chart_box;

/* The way of an edge: boxes from its source to its target. BACK edges have those two only. */
typedef struct chart_way {
    const chart_edge *edge;
    uint32_t first, count; /* in chart_layout.stops */
} chart_way;

typedef struct chart_layout {
    const hd_env *env;
    VEC(chart_box) boxes; /* the nodes first, by their index */
    VEC(chart_way) ways;
    VEC(uint32_t) stops;
    uint32_t layers;
    double width, height;
} chart_layout;

/* HD_NOMEM; HD_LIMIT: too many nodes, or edges over too many layers. */
hd_status chart_layout_make(const chart *c, const chart_function *f, chart_layout *out);
void chart_layout_free(chart_layout *l);

/* How wide a text is in the drawing, in its units. */
double chart_text_width(const char *text, double size);

hd_status chart_print_svg(const chart *c, chart_text *out);

#endif

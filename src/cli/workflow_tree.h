/* workflow_tree.h -- the steps of a workflow as a tree, and what an instance does in it: live on a terminal, as lines
 * elsewhere.
 *
 *     checkout/order-17  running  3.2 s
 *       done     fetch_items        210 ms
 *       6 of 8   fan
 *       running    process_item  2  900 ms
 *                finalize
 *
 * A row is a node that can wait: actions, sleeps, signals, loops, fan-outs, calls; what a call does stands below it.
 * The document of an instance holds what is open now; what has been done since the tree looks is counted here. */
#ifndef CLI_WORKFLOW_TREE_H
#define CLI_WORKFLOW_TREE_H

#include "cli/workflow.h"
#include "workflow/outline.h"

typedef struct tree_row {
    uint32_t function;
    const plan_node *n;
    uint32_t depth;
    const char *state; /* a word; "" where nothing stands */
    uint32_t open;     /* steps here now */
    uint32_t attempt;  /* the highest of those */
    uint64_t since, due;
    uint64_t done, total;  /* FAN_HEAD: branches of all its fan-outs that are open */
    uint64_t visit;        /* LOOP_HEAD: iterations begun */
    uint64_t ended, spent; /* steps that ended while the tree looked, and their milliseconds */
    bool past;             /* it is done, as the graph tells */
    bool passed;           /* it does not come any more, but may have raised, or been given up */
    bool comes;            /* it may still come */
    bool raised;           /* its last step that ended has raised an exception */
} tree_row;

/* An open step as it was when the tree looked last. */
typedef struct tree_step {
    char name[24]; /* strand and step */
    uint32_t row;
    uint64_t since;
} tree_step;

typedef struct tree {
    cli *c;
    const char *id; /* borrowed */
    outline o;
    tree_row *rows; /* malloc, as the rest */
    size_t count, capacity;
    tree_step *steps;
    size_t step_count, step_capacity;
    hd_value told;  /* its open steps, as why_steps gives them; absent: only the document tells */
    bool orphan;    /* no program runs the instance; set by the caller, for the drawing */
    bool over;      /* the instance is */
    bool looked;    /* at a document */
    bool lines;     /* says what happens in lines on stderr */
    unsigned drawn; /* lines on the terminal that the next drawing replaces */
} tree;

/* Says what is wrong. Close it in any case. */
int tree_open(cli *c, tree *t, store *s, hd_value ir, const char *id);
void tree_close(tree *t);

/* Takes in what the document says. False: no memory. */
bool tree_look(tree *t, hd_value document);
/* Takes in an entry of the instance's journal, after its document: of an instance that is over it tells of steps on
 * which the graph is silent. */
void tree_hear(tree *t, hd_value document, hd_value entry);
/* Prints it, without what the tree has not seen. */
void tree_print(const tree *t, FILE *to, uint64_t now);
/* Replaces the last drawing on a terminal; elsewhere nothing. */
void tree_draw(tree *t, hd_value document);

#endif

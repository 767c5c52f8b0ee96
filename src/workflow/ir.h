/* ir.h -- what the files that read the IR (docs/IR.md) share. */
#ifndef WORKFLOW_IR_H
#define WORKFLOW_IR_H

#include "base/table.h"
#include "workflow/draft.h"

enum { IR_NAME_MAX = 200 };
#define IR_NODES_MAX 100000 /* of all functions of a workflow */

/* While one document is read. */
typedef struct ir_reader {
    plan *p;
    draft d; /* of the function that is being read */
    hd_error *error;
    table ids; /* of the function's nodes */
} ir_reader;

/* Fills the error, with a place in the IR. Returns HD_SYNTAX. */
hd_status ir_refuse(ir_reader *r, const char *path, const char *format, ...) HD_PRINTF(3, 4);
/* A key of the object that is in neither list (words, a space between them), borrowed; NULL: there is none. */
const char *ir_unknown_key(hd_value object, const char *keys, const char *more);

/* In the plan's memory; NULL: no text, or no memory. */
const char *ir_copy_text(ir_reader *r, hd_value v);
bool ir_is_name(hd_value v);
/* A name that can be a part of names of documents. */
bool ir_is_workflow_name(hd_value v);

/* The last node of the draft: its kind, and what a node of this kind has (ir_node.c). HD_SYNTAX, HD_LIMIT, HD_NOMEM. */
hd_status ir_read_node(ir_reader *r, hd_value v, plan_node *n);

#endif

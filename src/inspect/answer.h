/* answer.h -- answers are values: small helpers to build them. */
#ifndef INSPECT_ANSWER_H
#define INSPECT_ANSWER_H

#include "inspect/inspector.h"
#include "scheduler/introspection/introspection.h"

/* A text; "?" for one that is not UTF-8, as a name may be. */
hd_value answer_text(hd_pool *pool, const char *text);
hd_value answer_count(hd_pool *pool, uint64_t n);
hd_value answer_cell(inspector *in, hd_cell cell);
/* "parent/child"; of an anonymous node "#" and its number. */
hd_value answer_node_name(inspector *in, hd_node handle);
/* The members that every answer about a node begins with. */
hd_value answer_node(inspector *in, hd_node handle);

/* One word for why it does not run: "dormant", "clean", "debounce", ... */
const char *answer_reason(hd_why_not reason);

hd_value answer_why(inspector *in, const request *r, hd_error *error);
hd_value answer_why_not(inspector *in, const request *r, hd_error *error);
hd_value answer_stats(inspector *in, const request *r, hd_error *error);
hd_value answer_trace(inspector *in, const request *r, hd_error *error);
hd_value answer_streams(inspector *in);
hd_value answer_workflow(inspector *in, const request *r, hd_error *error);

#endif

/* why.h -- why a node ran, and why it does not run.
 *
 * Causes are the reads that are newer than the run before; their writer is the node whose output they are.
 * Both are in the records at any time, so nothing has to be switched on before the question is asked. A
 * trace adds the former values, and the writer where a document has several. */
#ifndef SCHEDULER_WHY_H
#define SCHEDULER_WHY_H

#include "scheduler/introspection/trace.h"

/* Calls fn for each cause of the node's last run, and of its next one if it is invalid; then for the causes of the
 * nodes that wrote those values, and so on. `t` may be NULL. */
void why_tell(const scheduler *s, const trace *t, node_id id, hd_cause_fn fn, void *ctx);

hd_why_not why_not(const scheduler *s, node_id id);
/* The same as a sentence. */
void why_not_sentence(const scheduler *s, node_id id, char *out, size_t size);

/* The node whose suspended run it waits for; 0: none. */
node_id why_awaits(const scheduler *s, node_id id);

/* Why the node is live; *reader: the live node that reads it, if that is the reason, else 0. */
hd_why_live why_live(const scheduler *s, node_id id, node_id *reader);

#endif

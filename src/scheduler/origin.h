/* origin.h -- which piece writes a document, in the document's metadata; for opening pieces on demand. */
#ifndef SCHEDULER_ORIGIN_H
#define SCHEDULER_ORIGIN_H

#include "scheduler/state.h"

/* Writes the name of the node's piece into the metadata of its outputs. If that fails, a later pump tries again.
 * s->persistence must exist: it has the names of pieces. */
void origin_say(scheduler *s, node_id id);
/* The next pump does it. */
void origin_say_later(scheduler *s, node_id id);
void origin_pump(scheduler *s);
/* The piece that writes a document, as the text "space:piece", owned; absent: no piece does, or the store cannot
 * tell. */
hd_value origin_of(const scheduler *s, place_id doc);

#endif

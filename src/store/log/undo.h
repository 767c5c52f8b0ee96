/* undo.h -- taking back what was judged, when another writer's row came first.
 *
 * Where writers do not keep each other out (log_store.optimistic), a group of commits is judged on the state
 * after the last row that is known, and changes that state. If the append then finds that there is a later row,
 * the state goes back to where it was, the row is read, and the group is judged again. */
#ifndef STORE_LOG_UNDO_H
#define STORE_LOG_UNDO_H

#include "store/log/state.h"

/* A group begins. HD_NOMEM. */
hd_status undo_begin(writer *w);
/* Before a commit is applied: what it is about to change. HD_NOMEM. */
hd_status undo_note(writer *w, const submission *s);
/* The state is what it was at undo_begin. */
void undo_all(writer *w);

#endif

/* sqlite_stale.h -- which pieces in a file would have work to do? */
#ifndef STORE_SQLITE_STALE_H
#define STORE_SQLITE_STALE_H

#include "store/sqlite_rows.h"

/* Tells each piece that has stale rows, with their number, in order of name (those that no
 * checkpoint has seen come last); false stops. Answered
 * from indexes: costs the pieces, and what has changed since the rows of the piece that is furthest
 * behind. Reads no document. */
hd_status client_stale(client *c, basis_stale_fn fn, void *ctx);

#endif

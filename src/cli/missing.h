/* missing.h -- messages about a cell that is absent: how much of its path exists, and which names are similar. */
#ifndef CLI_MISSING_H
#define CLI_MISSING_H

#include "cli/nearest.h"
#include "cli/store.h"

/* The cell of this name has no value: says what is missing and which names are similar. Returns CLI_NOT_FOUND. */
int missing_cell(store *s, hd_tx *tx, const char *name);
/* Opens the file and does the same, if the cell has no value there; *exists: it has one. `also`: a name of another kind
 * that may be meant instead; NULL: none. */
int missing_in_file(cli *c, const char *file, const char *name, const nearest *also, bool *exists);

#endif

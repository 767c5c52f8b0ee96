/* change.h -- what set, patch and rm share: one transaction with its conditions. */
#ifndef CLI_CHANGE_H
#define CLI_CHANGE_H

#include "cli/store.h"

/* Makes the writes, and returns 0. If it cannot, it prints why and returns an exit status. */
typedef int (*change_fn)(store *s, hd_tx *tx);

/* Opens the file of the first operand, runs fn in a transaction, adds the condition of --if on the
 * cell of the second operand (where the command has that option), commits, waits, closes. */
int change_run(cli *c, store_mode mode, bool conditional, change_fn fn);

#define OPTION_IF                                                                                  \
    { "if", "JSON", "only if the present value is this; else exit with 3" }

#endif

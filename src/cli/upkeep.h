/* upkeep.h -- what checkpoint, prune and vacuum share: run a function, and print its effect. */
#ifndef CLI_UPKEEP_H
#define CLI_UPKEEP_H

#include "cli/store.h"

typedef hd_status (*upkeep_fn)(hd_runtime *rt, hd_error *error);

/* Runs fn on the file of the first operand and prints log rows and bytes before and after. */
int upkeep_run(cli *c, const char *doing, upkeep_fn fn);

#endif

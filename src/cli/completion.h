/* completion.h -- what a shell completes after "heddle": written from the table of commands. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/command.h"

/* Prints the script for "bash", "zsh" or "fish". */
int completion_print(cli *c, const char *shell);

#endif

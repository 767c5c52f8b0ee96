/* help.h -- help and manual pages, printed from the command table. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/command.h"

/* --help of a command. Returns CLI_OK. */
int help_command(cli *c, const command *cmd);
/* The manual page in roff, for man(1): of a command, or with NULL of heddle as a whole. */
int man_page(const command *cmd);
/* All of them as files of a directory: heddle.1, heddle-get.1, ... */
int man_pages(cli *c, const char *directory);

/* Explanations that belong to no single command; the last has no name. */
typedef struct topic {
    const char *name, *summary, *text;
} topic;
extern const topic topics[];

#endif

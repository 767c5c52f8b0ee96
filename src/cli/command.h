/* command.h -- what a subcommand is: one row of data, from which the command line is parsed, --help
 * is printed and the manual page is made.
 *
 * To add a subcommand: write a file with a `const command`, and name it in commands.c. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/exit.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

typedef struct cli_option {
    const char *name;     /* without the dashes */
    const char *argument; /* what it takes, as help shows it; NULL: nothing */
    const char *help;     /* one sentence, without a full stop */
} cli_option;

typedef struct cli_example {
    const char *line; /* as typed, from "heddle" on */
    const char *what; /* what it does, without a full stop */
} cli_example;

typedef struct command {
    const char *name;            /* "get"; of a group "db check" */
    const char *also;            /* the same with its noun: "cells get"; NULL: none */
    const char *section;         /* its heading in the overview */
    const char *operands;        /* "FILE CELL" */
    size_t least, most;          /* how many operands; SIZE_MAX: any number */
    const char *summary;         /* a few words, for lists */
    const char *text;            /* paragraphs, separated by empty lines */
    const cli_option *options;   /* its own, after them a row of NULLs; may be NULL */
    const cli_example *examples; /* after them a row of NULLs */
    int (*run)(struct cli *c);   /* returns a cli_exit */
} command;

enum { CLI_OPTIONS_MAX = 16 };

enum { CLI_ADDRESS = 4096 };

/* One call of the command. */
typedef struct cli {
    const command *command; /* NULL until it is known */
    const char **operands;  /* owned; the texts are of argv */
    size_t operand_count;
    const char *values[CLI_OPTIONS_MAX]; /* by index into the options; NULL: not given */
    bool colour_out, colour_err;         /* whether these streams take colours */
    bool progress;                       /* stderr is a terminal: progress is shown there */
    bool wide;                           /* --wide: names do not fold lines */
    bool json;                           /* --json: results and errors are for machines */
    char *input; /* stdin, once it was read; owned. NULL: it was not, and input_length is nothing */
    size_t input_length;
    char address[CLI_ADDRESS]; /* of a store on a server, as it is shown */
} cli;

/* Options that every command takes: --json, --color, --help. */
extern const cli_option common_options[];

/* Every command, in the order of the overview; the last is NULL. */
extern const command *const commands[];

/* The command of these words ("db check"), or NULL. */
const command *command_named(const char *name);
/* What it is called in a group: "check" in "db"; NULL: it is not in it. */
const char *command_in_group(const command *cmd, const char *group);
/* Whether `word` begins the name of a group, such as "db". */
bool command_is_group(const char *word);

/* Calls fn for each option of a command, own ones first; `index` counts them. */
void command_options(const command *cmd,
                     void (*fn)(void *ctx, size_t index, const cli_option *option), void *ctx);

#endif

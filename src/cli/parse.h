/* parse.h -- from argv to a command, its options and its operands. */
#ifndef CLI_PARSE_H
#define CLI_PARSE_H

#include "cli/command.h"

/* Fills `c` from the words after "heddle". Returns CLI_OK, or says what is wrong and returns
 * CLI_USAGE. Free it with parse_fini in any case. */
int parse(cli *c, int count, char **words);
void parse_fini(cli *c);

/* What was given for an option that the command has: NULL when nothing, "" for one without an
 * argument. */
const char *option_text(const cli *c, const char *name);
static inline bool option_given(const cli *c, const char *name) { return option_text(c, name); }

/* A whole number; *out stays as it is when the option was not given. CLI_USAGE says so. */
int option_number(cli *c, const char *name, uint64_t *out);
/* A span of time, "30d" or "1h30m", in milliseconds; as above. It has a unit. */
int option_span(cli *c, const char *name, uint64_t *ms);
/* The same; a number without a unit is taken, too, and counts seconds. */
int option_time(cli *c, const char *name, uint64_t *ms);
/* As option_time, in seconds. */
int option_seconds(cli *c, const char *name, double *out);

/* Of a command whose first words say what is done: CLI_USAGE, said, if there are more than `most` operands, or if an
 * option of the list, which ends with NULL, was given with a word that does not have it. */
int refuse_words(cli *c, size_t most);
int refuse_options(cli *c, const char *word, const char *const *names);

#endif

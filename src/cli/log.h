/* log.h -- prints the commits of a document, for the commands log and why. */
#ifndef CLI_LOG_H
#define CLI_LOG_H

#include "cli/command.h"
#include <heddle/value.h>

/* Called for commits of the log, newest first (docs/FORMAT.md), good during the call. False ends the walk. */
typedef bool (*log_fn)(hd_value commit, const char *session, void *ctx);
/* For every commit of the file's log. */
int log_each(cli *c, const char *file, log_fn fn, void *ctx);

typedef struct log_query {
    const char *file;
    const char *space;
    const char *id;   /* NULL: all documents */
    const char *path; /* NULL: anywhere in it; else what touches this place */
    uint64_t limit;   /* commits; UINT64_MAX: all */
    uint64_t after;   /* only seqs above this */
    bool reverse;     /* oldest first */
    bool silent;      /* they are counted, not printed */
    /* Called for each that concerns us; NULL: nothing is. */
    void (*seen)(hd_value commit, const char *session, void *ctx);
    void *seen_ctx;
} log_query;

/* Splits "space@scope/id#/path" into its parts, in place. The scope is ignored: the commits of all users
 * are printed. */
void log_split(char *name, log_query *q);
/* Prints the commits that the log still has; *printed is how many. */
int log_print(cli *c, const log_query *q, uint64_t *printed);

#endif

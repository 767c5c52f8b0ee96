/* store.h -- a store as commands use it: open, name a cell, read, commit and wait, close. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include "cli/command.h"
#include <heddle/store.h>

typedef enum store_mode {
    STORE_READ,   /* the file must exist and is not written */
    STORE_WRITE,  /* it must exist */
    STORE_CREATE, /* it is made where it is missing */
    STORE_NOWHERE /* a store in memory, to see whether something can be done */
} store_mode;

typedef struct store {
    cli *c;
    const char *file;
    hd_runtime *rt;
    hd_pool *pool; /* of the runtime's heap, for what a command reads and builds */

    /* Of the last commit. Not variables of store_commit: after Ctrl-C the verdict may come while the store is
     * closed. */
    bool decided;
    hd_status verdict;
} store;

/* --user, for commands that name cells: the user whose documents space@user/id means. */
#define OPTION_USER                                                                                \
    { "user", "NAME", "whose space@user documents (default: local)" }

/* All of these say what is wrong and return the exit status, CLI_OK when it worked. */
int store_open(cli *c, store *s, const char *file, store_mode mode);
/* Whether opening the store would make its file. */
bool store_is_missing(const char *name);
/* The directory that the file is to stand in must exist. */
int store_home(cli *c, const char *file);
/* What hd_open and hd_store_check could not do. */
int store_open_failed(cli *c, const char *file, hd_status status, const hd_error *error);

/* If the file has no byte, says so and returns true. The library takes such a file for a new store; whoever checks or
 * repairs it may have lost everything that was in it. */
bool store_tell_empty(const cli *c, const char *file);
/* With an identity other than the command line's; NULL stands for the default. */
int store_open_as(cli *c, store *s, const char *file, store_mode mode, const char *principal,
                  const char *session);
/* Closes what was opened, also after a failure. Returns `status`, or if that is CLI_OK what went
 * wrong in closing. */
int store_close(store *s, int status);

int store_cell(store *s, const char *name, hd_cell *out);
/* The name of a cell, however long; of the pool. "" for none, and without memory. */
const char *store_cell_name(store *s, hd_cell cell);
/* JSON from the command line; "-" stands for stdin. */
int store_json(store *s, const char *what, const char *text, hd_value *out);
/* A text as it is; "-" stands for stdin, whose last end of line does not count. */
int store_text(store *s, const char *what, const char *text, hd_value *out);
/* JSON of a text that is no operand; `above` is how many lines stand before it. */
int store_parse(store *s, const char *what, uint32_t above, const char *text, size_t length,
                hd_value *out);
/* What names the scope behind a space: "@user", or "" for the space's own. */
const char *scope_suffix(hd_scope scope);
/* The space must exist. */
int store_space(store *s, const char *space);
/* A call failed with `status`: prints the runtime's error about `what`. */
int store_fail(store *s, hd_status status, const char *what);
/* Says why a commit was refused, and what to do. */
int store_refused(store *s, hd_status status, const char *what);

/* Commits and waits for the verdict. */
int store_commit(store *s, hd_tx *tx, const char *what);
/* Waits until there is something to pump, or a signal came. */
void store_wait(store *s);
/* The same, or until the runtime's clock says `end`. */
void store_wait_until(store *s, uint64_t end);

#endif

/* live.h -- asking a running program: one line through its socket, one line back.
 *
 * The socket is beside the file (socket/address.h), or where --socket says. Options of every command
 * that asks: OPTIONS_LIVE. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "cli/command.h"
#include "socket/address.h"
#include <heddle/value.h>

#define OPTIONS_LIVE                                                                               \
    { "pid", "N", "which program, if several serve the file" },                                    \
        { "socket", "PATH", "its socket, if it is not beside the file" }, {                        \
        "wide", NULL, "each on one line, however long"                                             \
    }

typedef struct live {
    cli *c;
    const char *file;
    char path[ADDRESS_MAX]; /* of the socket */
    hd_heap *heap;
    hd_pool *pool;
    bool finishing; /* an interruption no longer counts: a last question is asked */
    bool quiet;     /* opened quietly, and no program was asked for by name */
    bool silent;    /* a program that gives no answer is left out without a message */
    bool unserved;  /* no program serves the file, and because of `quiet` no message was printed */
} live;

/* These print what is wrong and return an exit status; CLI_NO_PROGRAM: no program serves the file. Call live_close in
 * any case. */
int live_open(cli *c, live *l, const char *file);
/* The same, but without a message when no program serves the file, or the program ends before it has answered the
 * question: then `unserved` is set. A program named with --pid or --socket must be running. */
int live_open_quietly(cli *c, live *l, const char *file);
void live_close(live *l);

/* What the program answers to {"heddle": 1, "ask": ...}; `more` are further keys. The value is the
 * pool's. Asked gently, a program that knows no such node sets *not_found, and nothing is said. */
int live_ask(live *l, const char *ask, hd_value more, hd_value *out);
int live_ask_gently(live *l, const char *ask, hd_value more, hd_value *out, bool *not_found);

/* Calls fn for each program that serves the file, opened for questions; one that cannot be asked is left out. */
typedef void (*live_program_fn)(live *l, pid_t pid, void *ctx);
void live_each_program(cli *c, const char *file, live_program_fn fn, void *ctx);
/* The same for the one program that serves the socket, for commands with an option of that name; its pid is 0.
 * Where none does, that is said. */
void live_one_program(cli *c, const char *file, const char *path, live_program_fn fn, void *ctx);

/* Programs that serve a file now. Sockets of dead ones are removed on the way. */
typedef void (*live_fn)(void *ctx, const char *path, pid_t pid);
unsigned live_each(const char *file, live_fn fn, void *ctx);

/* Parts of answers. */
const char *live_text(hd_value v, const char *key); /* "" */
/* The same, printed: what a program has given as a name may hold anything (print_plain). */
void live_print(hd_value v, const char *key);
uint64_t live_number(hd_value v, const char *key);

#endif

/* exit.h -- the exit statuses of the command. Help, the manual page and docs/CLI.md show these rows,
 * and scripts may rely on them. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

#define CLI_EXIT_TABLE(X)                                                                          \
    X(CLI_OK, 0, "done")                                                                           \
    X(CLI_USAGE, 1, "the command line is wrong")                                                   \
    X(CLI_NOT_FOUND, 2, "no such file, space, document, or place in a document")                   \
    X(CLI_CONFLICT, 3, "not the expected value, exists already, or a handler failed")              \
    X(CLI_INPUT, 4, "malformed JSON or cell name, or a change that does not fit the value")        \
    X(CLI_FILE, 5, "no heddle store, damaged, read-only, too new, or the login was refused")       \
    X(CLI_IO, 6, "input/output error, disk full, or busy: worth another try")                      \
    X(CLI_INTERNAL, 7, "out of memory, or a defect in heddle")                                     \
    X(CLI_NO_PROGRAM, 8, "no running program serves the file, or not the one asked for")           \
    X(CLI_INTERRUPTED, 130, "ended by Ctrl-C (by SIGTERM: 143); the file is in order")             \
    X(CLI_PIPE, 141, "the program that read the output has ended (SIGPIPE)")

typedef enum cli_exit {
#define CLI_EXIT_ROW(name, number, text) name = number,
    CLI_EXIT_TABLE(CLI_EXIT_ROW)
#undef CLI_EXIT_ROW
} cli_exit;

#endif

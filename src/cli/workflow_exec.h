/* workflow_exec.h -- an action as a command: arguments as JSON on its stdin, result as JSON on its stdout.
 *
 * An exit status other than 0 is an exception. Its class and message are those of the last line on stderr, if that
 * reads "ValueError: too large", as the last line of a Python program that raised; else RuntimeError with that line. */
#ifndef CLI_WORKFLOW_EXEC_H
#define CLI_WORKFLOW_EXEC_H

#include <heddle/base.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { EXEC_CLASS = 64, EXEC_MESSAGE = 400, EXEC_OUTPUT = 15 << 20 };

typedef struct exec_step {
    const char *command; /* for sh -c */
    const char *action, *id, *instance;
    uint32_t attempt;
    const char *args; /* JSON */
    size_t args_length;
    bool (*is_given_up)(
        void *ctx); /* asked now and then: the result is not wanted any more. NULL: it is */
    void *ctx;
    _Atomic pid_t pid; /* of the command's process group while it runs; for exec_kill */
    /* set by exec_run: */
    char *output; /* malloc; what it printed; NULL: it failed */
    size_t output_length;
    char class_name[EXEC_CLASS], message[EXEC_MESSAGE];
} exec_step;

/* Runs the command and waits for its end; on any thread. False: it failed, and class_name and message say how. Free
 * `output`. */
bool exec_run(exec_step *s);
/* Ends it, from another thread. */
void exec_kill(exec_step *s);

#endif

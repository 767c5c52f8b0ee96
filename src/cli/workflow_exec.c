/* workflow_exec.c -- runs a command with its input and output in pipes. */
#define _GNU_SOURCE
#include "cli/workflow_exec.h"

#include "base/system.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ERROR_TAIL = 2000, VARIABLES = 4, ASK_MS = 200 };

/* A command that runs. */
typedef struct process {
    int in, out, err; /* our ends of its pipes; -1: closed */
    size_t written;
    char tail[ERROR_TAIL + 1]; /* the end of what it printed on stderr */
    size_t tail_length;
    size_t capacity; /* of the output */
    bool too_much;
} process;

static bool failed(exec_step *s, const char *class_name, const char *message) {
    snprintf(s->class_name, sizeof s->class_name, "%s", class_name);
    snprintf(s->message, sizeof s->message, "%s", message);
    return false;
}

static void close_end(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ---- Starting ---------------------------------------------------------------------------- */

/* The environment with what the command may want to know; free it. NULL: no memory. */
static char **environment(const exec_step *s, char variables[VARIABLES][512]) {
    size_t count = 0;
    while (environ[count]) count++;
    char **all = malloc((count + VARIABLES + 1) * sizeof *all);
    if (!all) return NULL;
    memcpy(all, environ, count * sizeof *all);
    snprintf(variables[0], 512, "HEDDLE_ACTION=%.400s", s->action);
    snprintf(variables[1], 512, "HEDDLE_ID=%.400s", s->id);
    snprintf(variables[2], 512, "HEDDLE_INSTANCE=%.400s", s->instance);
    snprintf(variables[3], 512, "HEDDLE_ATTEMPT=%u", s->attempt);
    for (size_t i = 0; i < VARIABLES; i++) all[count + i] = variables[i];
    all[count + VARIABLES] = NULL;
    return all;
}

static int spawn(exec_step *s, int in, int out, int err, pid_t *pid) {
    char variables[VARIABLES][512];
    char *words[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                      (char *)(uintptr_t)s->command, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t defaults, none;
    char **env = environment(s, variables);
    if (!env) return ENOMEM;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGTERM);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, err, 2);
    posix_spawnattr_init(&attributes);
    /* A process group of its own: Ctrl-C is for this program, and exec_kill ends what the command has started, too. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    int problem = posix_spawn(pid, "/bin/sh", &files, &attributes, words, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    free(env);
    return problem;
}

static int start(exec_step *s, process *p, pid_t *pid) {
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, problem = 0;
    *p = (process){ .in = -1, .out = -1, .err = -1 };
    if (system_pipe(in) || system_pipe(out) || system_pipe(err)) problem = errno;
    if (!problem) problem = spawn(s, in[0], out[1], err[1], pid);
    close_end(&in[0]);
    close_end(&out[1]);
    close_end(&err[1]);
    p->in = in[1];
    p->out = out[0];
    p->err = err[0];
    if (p->in >= 0) fcntl(p->in, F_SETFL, O_NONBLOCK);
    return problem;
}

/* ---- Talking ----------------------------------------------------------------------------- */

static void give(exec_step *s, process *p) {
    ssize_t n = write(p->in, s->args + p->written, s->args_length - p->written);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) p->written += (size_t)n;
    if (n <= 0 || p->written == s->args_length) close_end(&p->in); /* it may not want its input */
}

static void take_output(exec_step *s, process *p) {
    if (p->capacity - s->output_length < 65536) {
        size_t capacity = p->capacity * 2 + 131072;
        char *larger =
            capacity > 2 * (size_t)EXEC_OUTPUT + 262144 ? NULL : realloc(s->output, capacity);
        if (!larger) {
            p->too_much = true;
            close_end(&p->out);
            return;
        }
        s->output = larger;
        p->capacity = capacity;
    }
    ssize_t n = read(p->out, s->output + s->output_length, p->capacity - s->output_length - 1);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) close_end(&p->out);
    else s->output_length += (size_t)n;
    if (s->output_length > EXEC_OUTPUT) p->too_much = true;
    if (p->too_much) close_end(&p->out);
}

/* What it says on stderr is for people: it goes on to ours. The end is kept. */
static void take_error(process *p) {
    char piece[1024];
    ssize_t n = read(p->err, piece, sizeof piece);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
        close_end(&p->err);
        return;
    }
    fwrite(piece, 1, (size_t)n, stderr);
    size_t keep = ERROR_TAIL - (size_t)n < p->tail_length ? ERROR_TAIL - (size_t)n : p->tail_length;
    memmove(p->tail, p->tail + p->tail_length - keep, keep);
    memcpy(p->tail + keep, piece, (size_t)n);
    p->tail_length = keep + (size_t)n;
    p->tail[p->tail_length] = '\0';
}

static void talk(exec_step *s, process *p) {
    while (p->out >= 0 || p->err >= 0) {
        struct pollfd ends[] = { { p->in, POLLOUT, 0 },
                                 { p->out, POLLIN, 0 },
                                 { p->err, POLLIN, 0 } };
        int ready = poll(ends, 3, s->is_given_up ? ASK_MS : -1);
        if (ready < 0 && errno != EINTR) break;
        if (s->is_given_up && s->is_given_up(s->ctx)) exec_kill(s);
        if (ready <= 0) continue;
        if (p->in >= 0 && ends[0].revents) give(s, p);
        if (p->out >= 0 && ends[1].revents) take_output(s, p);
        if (p->err >= 0 && ends[2].revents) take_error(p);
    }
    close_end(&p->in);
    close_end(&p->out);
    close_end(&p->err);
}

/* ---- How it ended ------------------------------------------------------------------------ */

static const char *last_line(char *tail) {
    size_t length = strlen(tail);
    while (length && isspace((unsigned char)tail[length - 1])) tail[--length] = '\0';
    char *line = strrchr(tail, '\n');
    return line ? line + 1 : tail;
}

/* The length of "ValueError" in "ValueError: too large"; 0: the line does not begin with a class. The engine goes by
 * the last part of a dotted name. */
static size_t class_in(const char *line) {
    size_t length =
        strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
    const char *last = line;
    if (line[length] != ':' && line[length]) return 0;
    for (size_t i = 0; i < length; i++)
        if (line[i] == '.') last = line + i + 1;
    return isupper((unsigned char)*last) && length < EXEC_CLASS ? length : 0;
}

static bool exited(exec_step *s, process *p, int status) {
    char words[EXEC_MESSAGE];
    if (WIFSIGNALED(status)) {
        snprintf(words, sizeof words, "the command was ended by signal %d", WTERMSIG(status));
        return failed(s, "ChildProcessError", words);
    }
    if (!WEXITSTATUS(status)) return true;
    const char *line = last_line(p->tail);
    size_t length = class_in(line);
    if (length) {
        char class_name[EXEC_CLASS];
        snprintf(class_name, sizeof class_name, "%.*s", (int)length, line);
        line += length;
        line += strspn(line, ": ");
        return failed(s, class_name, line);
    }
    if (*line) return failed(s, "RuntimeError", line);
    snprintf(words, sizeof words, "the command exited with status %d", WEXITSTATUS(status));
    return failed(s, "RuntimeError", words);
}

bool exec_run(exec_step *s) {
    process p;
    pid_t pid;
    int status = 0, problem = start(s, &p, &pid);
    if (!problem) {
        atomic_store(&s->pid, pid);
        talk(s, &p);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        atomic_store(&s->pid, 0);
    }
    close_end(&p.in);
    close_end(&p.out);
    close_end(&p.err);
    bool good = problem      ? failed(s, "OSError", strerror(problem))
                : p.too_much ? failed(s, "OverflowError", "the command printed too much")
                             : exited(s, &p, status);
    if (good && s->output) s->output[s->output_length] = '\0';
    if (good) return true;
    free(s->output);
    s->output = NULL;
    return false;
}

void exec_kill(exec_step *s) {
    pid_t pid = atomic_load(&s->pid);
    if (pid > 0) kill(-pid, SIGTERM);
}

/* live.c -- asking a running program. */
#define _GNU_SOURCE
#include "cli/live.h"

#include "base/system.h"
#include "cli/clock.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/shown.h"
#include "cli/signals.h"
#include "inspect/request.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, ANSWER_LIMIT = 32 << 20 };

/* ---- Which programs serve ------------------------------------------------------------------ */

typedef struct search {
    live_fn fn;
    void *ctx;
    unsigned count;
} search;

/* Whether a program serves the socket. A socket that may not be opened counts: another user's program
 * serves it. */
static bool answers(const char *path) {
    int fd = address_connect(path);
    if (fd >= 0) close(fd);
    return fd >= 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

static bool visit(void *ctx, const char *path, pid_t pid) {
    search *s = ctx;
    if (!answers(path)) {
        if (address_is_stale(path, pid)) unlink(path);
        return true;
    }
    s->count++;
    if (s->fn) s->fn(s->ctx, path, pid);
    return true;
}

/* Sockets are beside the file itself, wherever a link to it may be. */
unsigned live_each(const char *file, live_fn fn, void *ctx) {
    search s = { fn, ctx, 0 };
    char *real = realpath(file, NULL);
    if (real) address_each(real, visit, &s);
    free(real);
    return s.count;
}

typedef struct choice {
    uint64_t wanted; /* 0: any */
    unsigned found;  /* that fit */
    char path[ADDRESS_MAX];
} choice;

static void choose(void *ctx, const char *path, pid_t pid) {
    choice *k = ctx;
    if (k->wanted && k->wanted != (uint64_t)pid) return;
    k->found++;
    snprintf(k->path, sizeof k->path, "%s", path);
}

static int open_heap(live *l) {
    hd_limits limits = { .size = ANSWER_LIMIT };
    hd_status status = hd_heap_open(NULL, &limits, &l->heap);
    if (!status) status = hd_pool_open(l->heap, &l->pool);
    return status ? cli_fail(l->c, exit_of(status), NULL, "%s", hd_status_text(status)) : CLI_OK;
}

typedef struct program {
    cli *c;
    const char *file;
    live_program_fn fn;
    void *ctx;
} program;

static void visit_program(void *ctx, const char *path, pid_t pid) {
    const program *p = ctx;
    live l = { .c = p->c, .file = p->file, .quiet = pid != 0 };
    snprintf(l.path, sizeof l.path, "%s", path);
    if (!open_heap(&l)) p->fn(&l, pid, p->ctx);
    live_close(&l);
}

void live_each_program(cli *c, const char *file, live_program_fn fn, void *ctx) {
    program p = { c, file, fn, ctx };
    live_each(file, visit_program, &p);
}

void live_one_program(cli *c, const char *file, const char *path, live_program_fn fn, void *ctx) {
    program p = { c, file, fn, ctx };
    visit_program(&p, path, 0);
}

/* "4711 (shop), 4712 (heddle demo)": which programs there are to choose from. */
typedef struct roll {
    char text[256];
} roll;

static void call_name(live *l, pid_t pid, void *ctx) {
    roll *r = ctx;
    hd_value answer;
    bool ignored = false;
    size_t length = strlen(r->text);
    const char *name = live_ask_gently(l, "hello", hd_object(), &answer, &ignored)
                           ? ""
                           : live_text(answer, "name");
    snprintf(r->text + length, sizeof r->text - length, "%s%ld%s%.40s%s", length ? ", " : "",
             (long)pid, *name ? " (" : "", name, *name ? ")" : "");
}

static int no_program_serves(cli *c, const char *file) {
    return cli_fail(c, CLI_NO_PROGRAM,
                    "Start the program; in C it must call hd_runtime_serve(rt, NULL). If it\n"
                    "  serves elsewhere: --socket. What the file alone can say: heddle log,\n"
                    "  heddle pieces, heddle db stats.",
                    "no running program serves %s", file);
}

static int check_choice(cli *c, const choice *k, const char *file, unsigned count) {
    if (k->found == 1) return CLI_OK;
    if (!count) return no_program_serves(c, file);
    char hint[320];
    roll names = { "" };
    live_each_program(c, file, call_name, &names);
    snprintf(hint, sizeof hint, "Say which with --pid or --socket: %s.", names.text);
    if (!k->found)
        return cli_fail(c, CLI_NO_PROGRAM, hint, "process %" PRIu64 " does not serve %s", k->wanted,
                        file);
    return cli_fail(c, CLI_USAGE, hint, "%u programs serve %s", k->found, file);
}

static int no_file(cli *c, const char *file) {
    return cli_fail(c, CLI_NOT_FOUND, "Name the file that the program has open.",
                    "there is no file %s", file);
}

/* Of a program that has a store on a server. */
static int no_socket(cli *c, const char *address) {
    return cli_fail(
        c, CLI_NO_PROGRAM,
        "Name it with --socket: the path on this machine that the program has given to\n"
        "  hd_runtime_serve as hd_serve_options.socket.",
        "%s is on a server: the command cannot find the program's socket", address);
}

/* Ends without a message, for commands that do not need a running program. */
static int without_a_word(live *l) {
    l->unserved = true;
    return CLI_NO_PROGRAM;
}

static int find_program(live *l) {
    choice k = { 0 };
    int failed = option_number(l->c, "pid", &k.wanted);
    const char *socket_path = option_text(l->c, "socket");
    if (failed) return failed;
    if (socket_path || k.wanted) l->quiet = false;
    if (socket_path) {
        snprintf(l->path, sizeof l->path, "%s", socket_path);
        return CLI_OK;
    }
    if (is_address(l->file)) return l->quiet ? without_a_word(l) : no_socket(l->c, l->file);
    if (access(l->file, F_OK)) return no_file(l->c, l->file);
    unsigned count = live_each(l->file, choose, &k);
    if (l->quiet && !count) return without_a_word(l);
    failed = check_choice(l->c, &k, l->file, count);
    if (!failed) snprintf(l->path, sizeof l->path, "%s", k.path);
    return failed;
}

static int open_live(cli *c, live *l, const char *file, bool quiet) {
    *l = (live){ .c = c, .file = file, .quiet = quiet };
    int failed = find_program(l);
    if (failed) return failed;
    return open_heap(l);
}

int live_open(cli *c, live *l, const char *file) { return open_live(c, l, file, false); }
int live_open_quietly(cli *c, live *l, const char *file) { return open_live(c, l, file, true); }

void live_close(live *l) {
    if (l->pool) hd_pool_close(l->pool);
    if (l->heap) hd_heap_close(l->heap);
    *l = (live){ 0 };
}

/* ---- One line there, one line back --------------------------------------------------------- */

typedef struct text {
    char *bytes; /* malloc */
    size_t length, capacity;
} text;

static bool text_room(text *t) {
    if (t->capacity - t->length >= 65536) return true;
    size_t capacity = t->capacity ? t->capacity * 2 : 131072;
    char *larger = capacity > 2 * (size_t)ANSWER_LIMIT ? NULL : realloc(t->bytes, capacity);
    if (!larger) return false;
    t->bytes = larger;
    t->capacity = capacity;
    return true;
}

static int too_slow(live *l) {
    if (l->silent) return without_a_word(l);
    return cli_fail(l->c, CLI_IO, "It answers when it pumps (hd_runtime_pump, run, settle).",
                    "the program that serves %s is busy, or stopped", l->file);
}

/* Reads until the program hangs up. */
static int receive(live *l, int fd, text *t) {
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (!interrupted() || l->finishing) {
        if (!text_room(t)) return cli_fail(l->c, CLI_INTERNAL, NULL, "the answer is too long");
        ssize_t n = recv(fd, t->bytes + t->length, t->capacity - t->length - 1, MSG_DONTWAIT);
        if (n > 0) {
            t->length += (size_t)n;
            until = clock_ms() + PATIENCE_MS;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) return CLI_OK;
        uint64_t now = clock_ms();
        if (now >= until) return too_slow(l);
        if (l->finishing) poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, (int)(until - now));
        else wait_readable(fd, (int)(until - now));
    }
    return interrupted_status();
}

/* Whether the program at the socket belongs to our user or to root, or we are root: other answers are not
 * trusted. */
static bool is_trusted(int fd) {
    uid_t peer, ours = geteuid();
    return address_peer(fd, &peer) && (ours == 0 || address_may_ask(peer, ours));
}

static int connect_failed(live *l) {
    if (l->silent) return without_a_word(l);
    if (errno == EACCES || errno == EPERM)
        return cli_fail(l->c, CLI_FILE, "Ask as the user who runs the program, or as root.",
                        "the program that serves %s belongs to another user", l->file);
    if (errno == EAGAIN) return too_slow(l);
    bool gone = errno == ECONNREFUSED || errno == ENOENT || errno == EPIPE || errno == ECONNRESET;
    if (gone && l->quiet) return without_a_word(l);
    if (gone)
        return cli_fail(l->c, CLI_NO_PROGRAM, "The program must call hd_runtime_serve.",
                        "no program serves at %s", l->path);
    return cli_fail(l->c, CLI_IO, NULL, "%s: %s", l->path, strerror(errno));
}

static int exchange(live *l, const char *line, size_t length, text *back) {
    int fd = address_connect(l->path), failed = CLI_OK;
    if (fd < 0) return connect_failed(l);
    if (!is_trusted(fd))
        failed = cli_fail(l->c, CLI_FILE, NULL, "%s belongs to another user", l->path);
    else if (send(fd, line, length, SYSTEM_NO_SIGNAL) != (ssize_t)length)
        failed = connect_failed(l);
    else failed = receive(l, fd, back);
    close(fd);
    return failed;
}

/* ---- Questions and answers ----------------------------------------------------------------- */

static hd_value request_of(live *l, const char *ask, hd_value more) {
    hd_value r = hd_object_set(l->pool, hd_object(), "heddle", hd_int(l->pool, 1));
    r = hd_object_set(l->pool, r, "ask", hd_string(l->pool, ask));
    for (hd_iter it = hd_iter_of(more); hd_iter_next(&it);)
        r = hd_object_set(l->pool, r, it.key, it.value);
    return r;
}

static int refused(live *l, hd_value error, bool *not_found) {
    const char *status = live_text(error, "status");
    if (not_found && strcmp(status, "HD_NOT_FOUND") == 0) {
        *not_found = true;
        return CLI_NOT_FOUND;
    }
    int code = strcmp(status, "HD_NOT_FOUND") == 0  ? CLI_NOT_FOUND
               : strcmp(status, "HD_BUSY") == 0     ? CLI_IO
               : strcmp(status, "HD_REJECTED") == 0 ? CLI_FILE
               : strcmp(status, "HD_PROTOCOL") == 0 ? CLI_NO_PROGRAM
                                                    : CLI_INPUT;
    return cli_fail(l->c, code, NULL, "%s", live_text(error, "message"));
}

static int understand(live *l, const text *back, hd_value *out, bool *not_found) {
    size_t length = back->length && back->bytes[back->length - 1] == '\n' ? back->length - 1 : 0;
    hd_value v = length ? hd_json_parse(l->pool, back->bytes, length, NULL) : (hd_value){ 0 };
    *out = hd_value_at(v, "answer");
    if (hd_value_exists(*out)) return CLI_OK;
    if (hd_value_exists(hd_value_at(v, "error")))
        return refused(l, hd_value_at(v, "error"), not_found);
    if (l->quiet) return without_a_word(l);
    return cli_fail(l->c, CLI_IO, "It may have ended, or be short of memory: try again.",
                    "the program that serves %s gave no answer", l->file);
}

int live_ask_gently(live *l, const char *ask, hd_value more, hd_value *out, bool *not_found) {
    size_t length;
    text back = { 0 };
    const char *json = hd_json_print(l->pool, request_of(l, ask, more), HD_JSON_COMPACT, &length);
    if (json && length >= REQUEST_MAX)
        return cli_fail(l->c, CLI_INPUT, NULL,
                        "the name is too long: a request has at most %d bytes", REQUEST_MAX);
    char *line = json ? malloc(length + 2) : NULL;
    if (!line) return cli_fail(l->c, CLI_INTERNAL, NULL, "out of memory");
    memcpy(line, json, length);
    memcpy(line + length, "\n", 2);
    int failed = exchange(l, line, length + 1, &back);
    if (!failed) failed = understand(l, &back, out, not_found);
    free(back.bytes);
    free(line);
    return failed;
}

int live_ask(live *l, const char *ask, hd_value more, hd_value *out) {
    return live_ask_gently(l, ask, more, out, NULL);
}

/* ---- Parts --------------------------------------------------------------------- */

const char *live_text(hd_value v, const char *key) {
    return hd_value_as_text(hd_value_at(v, key), "");
}

void live_print(hd_value v, const char *key) { print_plain(stdout, live_text(v, key)); }

uint64_t live_number(hd_value v, const char *key) {
    int64_t n = hd_value_as_int(hd_value_at(v, key), 0);
    return n > 0 ? (uint64_t)n : 0;
}

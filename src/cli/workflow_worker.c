/* workflow_worker.c -- a worker for actions that are commands.
 *
 * If an engine serves workers, this program connects to its socket (docs/WORKERS.md): steps run in threads, one for
 * each job, and the main thread reads and writes the messages. If none does, this program opens an engine itself: the
 * actions are its own, and other workers may connect to it; if another program runs the workflows, steps come through
 * the store. When a connection ends, it decides anew between the two. */
#define _GNU_SOURCE
#include "base/poller.h"
#include "base/system.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/shown.h"
#include "cli/signals.h"
#include "cli/workflow.h"
#include "cli/workflow_exec.h"
#include "socket/address.h"
#include "workflow/wire.h"
#include <assert.h>
#include <errno.h>
#include <heddle/inspect.h>
#include <heddle/join.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { JOBS_MAX = 256, PAUSE_MS = 250 };

struct serving;

/* A thread and its step. */
typedef struct job {
    struct serving *of;
    pthread_t thread;
    exec_step step;
    hd_pool *pool; /* of the message that the step came with */
    char token[WIRE_TOKEN_MAX];
    enum { JOB_IDLE, JOB_RUNS, JOB_OVER, JOB_END } state; /* under serving.lock */
    bool good;
} job;

typedef struct serving {
    cli *c;
    const char *command, *file;
    char path[ADDRESS_MAX];
    uint64_t jobs_count;
    uint64_t keep_ms, keep_most; /* of the engine, if this program has it */
    /* the connection */
    int fd, set, bell;
    hd_heap *heap;
    json_buffer in, out;
    hd_env env;
    bool refused; /* the engine has sent an error: connecting again would not help */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    job jobs[JOBS_MAX];
} serving;

/* ---- Threads ----------------------------------------------------------------------------- */

static void *work(void *ctx) {
    job *j = ctx;
    serving *s = j->of;
    pthread_mutex_lock(&s->lock);
    while (j->state != JOB_END) {
        if (j->state != JOB_RUNS) {
            pthread_cond_wait(&s->wake, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        j->good = exec_run(&j->step);
        pthread_mutex_lock(&s->lock);
        if (j->state == JOB_RUNS) j->state = JOB_OVER;
        bell_ring(s->bell);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Without ending what runs: its step goes to another worker, and its result would be late. */
static void end_threads(serving *s) {
    pthread_mutex_lock(&s->lock);
    for (uint64_t i = 0; i < s->jobs_count; i++) {
        exec_kill(&s->jobs[i].step);
        s->jobs[i].state = JOB_END;
    }
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    for (uint64_t i = 0; i < s->jobs_count; i++) {
        if (s->jobs[i].thread) pthread_join(s->jobs[i].thread, NULL);
        free(s->jobs[i].step.output);
        hd_pool_close(s->jobs[i].pool);
        s->jobs[i] = (job){ 0 };
    }
}

static int start_threads(serving *s) {
    for (uint64_t i = 0; i < s->jobs_count; i++) {
        job *j = &s->jobs[i];
        *j = (job){ .of = s };
        if (hd_pool_open(s->heap, &j->pool) || pthread_create(&j->thread, NULL, work, j))
            return cli_fail(s->c, CLI_INTERNAL, NULL, "no thread can be started");
    }
    return CLI_OK;
}

/* ---- Saying ------------------------------------------------------------------------------ */

/* Sends everything: what a worker says is little, and the engine reads. False: the connection is gone. */
static bool send_out(serving *s) {
    size_t sent = 0;
    while (sent < s->out.length) {
        ssize_t n = send(s->fd, s->out.bytes + sent, s->out.length - sent, SYSTEM_NO_SIGNAL);
        struct pollfd until = { s->fd, POLLOUT, 0 };
        if (n > 0) sent += (size_t)n;
        else if (n < 0 && (errno == EAGAIN || errno == EINTR)) poll(&until, 1, 1000);
        else break;
        if (interrupted()) break;
    }
    bool good = sent == s->out.length;
    s->out.length = 0;
    return good;
}

static bool say_hello(serving *s) {
    size_t start;
    char name[64];
    snprintf(name, sizeof name, "heddle workflow worker %ld", (long)getpid());
    json_buffer *b = &s->out;
    bool good = wire_begin(b, &start) &&
                wire_text(b, "{\"type\":\"hello\",\"heddle\":1,\"name\":") &&
                wire_string(b, name) && wire_text(b, ",\"actions\":[");
    for (size_t i = 1; good && i < s->c->operand_count; i++)
        good = (i == 1 || wire_text(b, ",")) && wire_string(b, s->c->operands[i]);
    return good && wire_text(b, "]}") && wire_end(b, start);
}

static bool say_claim(serving *s, uint64_t count) {
    size_t start;
    return wire_begin(&s->out, &start) &&
           wire_number(&s->out, "{\"type\":\"claim\",\"count\":", count) &&
           wire_text(&s->out, "}") && wire_end(&s->out, start);
}

static bool say_fail(serving *s, const job *j, const char *class_name, const char *message) {
    size_t start;
    json_buffer *b = &s->out;
    return wire_begin(b, &start) && wire_text(b, "{\"type\":\"fail\",\"token\":") &&
           wire_string(b, j->token) && wire_text(b, ",\"class\":") && wire_string(b, class_name) &&
           wire_text(b, ",\"message\":") && wire_string(b, message) && wire_text(b, "}") &&
           wire_end(b, start);
}

/* The value that a command has printed; nothing but spaces stands for null. */
static hd_value printed(hd_pool *pool, const exec_step *step) {
    const char *text = step->output ? step->output : "";
    if (strspn(text, " \t\r\n") == strlen(text)) return hd_null();
    return hd_json_parse(pool, text, step->output_length, NULL);
}

static bool say_complete(serving *s, const job *j, hd_value result) {
    size_t start;
    json_buffer *b = &s->out;
    return wire_begin(b, &start) && wire_text(b, "{\"type\":\"complete\",\"token\":") &&
           wire_string(b, j->token) && wire_text(b, ",\"result\":") &&
           !json_print_to(b, result, HD_JSON_COMPACT) && wire_text(b, "}") && wire_end(b, start);
}

static bool say_outcome(serving *s, job *j) {
    hd_value result = j->good ? printed(j->pool, &j->step) : hd_null();
    bool said = !j->good ? say_fail(s, j, j->step.class_name, j->step.message)
                : hd_value_exists(result)
                    ? say_complete(s, j, result)
                    : say_fail(s, j, "ValueError", "the command printed something that is no JSON");
    free(j->step.output);
    j->step = (exec_step){ 0 };
    hd_pool_clear(j->pool);
    return said && say_claim(s, 1);
}

static bool say_outcomes(serving *s) {
    bool good = true;
    uint64_t count;
    if (read(s->bell, &count, sizeof count) < 0 && errno != EAGAIN) return false;
    pthread_mutex_lock(&s->lock);
    for (uint64_t i = 0; i < s->jobs_count; i++) {
        if (s->jobs[i].state != JOB_OVER) continue;
        good = say_outcome(s, &s->jobs[i]) && good;
        s->jobs[i].state = JOB_IDLE;
    }
    pthread_mutex_unlock(&s->lock);
    return good && send_out(s);
}

/* ---- Hearing ----------------------------------------------------------------------------- */

static void begin_job(serving *s, job *j, hd_value m) {
    hd_value args = hd_value_at(m, "args");
    size_t length;
    const char *text = hd_json_print(j->pool, args, HD_JSON_COMPACT, &length);
    snprintf(j->token, sizeof j->token, "%s", flow_text(m, "token"));
    j->step = (exec_step){ .command = s->command,
                           .action = flow_text(m, "action"),
                           .id = flow_text(m, "id"),
                           .instance = flow_text(m, "instance"),
                           .attempt = (uint32_t)flow_number(m, "attempt"),
                           .args = text ? text : "null",
                           .args_length = text ? length : 4 };
    j->state = JOB_RUNS;
    pthread_cond_broadcast(&s->wake);
}

static void hear_task(serving *s, const char *bytes, size_t length) {
    pthread_mutex_lock(&s->lock);
    for (uint64_t i = 0; i < s->jobs_count; i++) {
        job *j = &s->jobs[i];
        if (j->state != JOB_IDLE) continue;
        begin_job(s, j, hd_json_parse(j->pool, bytes, length, NULL));
        break;
    }
    pthread_mutex_unlock(&s->lock);
}

static void hear_cancel(serving *s, const char *token) {
    pthread_mutex_lock(&s->lock);
    for (uint64_t i = 0; i < s->jobs_count; i++)
        if (s->jobs[i].state == JOB_RUNS && strcmp(s->jobs[i].token, token) == 0)
            exec_kill(&s->jobs[i].step);
    pthread_mutex_unlock(&s->lock);
}

static bool hear_message(serving *s, const char *bytes, size_t length) {
    hd_pool *pool;
    if (hd_pool_open(s->heap, &pool)) return false;
    hd_value m = hd_json_parse(pool, bytes, length, NULL);
    const char *type = flow_text(m, "type");
    bool good = true;
    if (strcmp(type, "task") == 0) hear_task(s, bytes, length);
    else if (strcmp(type, "cancel") == 0) hear_cancel(s, flow_text(m, "token"));
    else if (strcmp(type, "error") == 0) {
        cli_warn(s->c, "the engine says: %s", flow_text(m, "message"));
        s->refused = true;
        good = false;
    }
    hd_pool_close(pool);
    return good;
}

static bool hear(serving *s) {
    if (!json_buffer_grow(&s->in, 65536)) return false;
    ssize_t n = recv(s->fd, s->in.bytes + s->in.length, 65536, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    s->in.length += (size_t)n;
    size_t at = 0;
    bool good = true;
    while (good && s->in.length - at >= WIRE_HEAD) {
        size_t length = wire_length(s->in.bytes + at);
        if (s->in.length - at - WIRE_HEAD < length) break;
        good = hear_message(s, s->in.bytes + at + WIRE_HEAD, length);
        at += WIRE_HEAD + length;
    }
    memmove(s->in.bytes, s->in.bytes + at, s->in.length - at);
    s->in.length -= at;
    return good;
}

/* ---- As a worker of another program's engine --------------------------------------------- */

static bool is_trusted(int fd) {
    uid_t peer, ours = geteuid();
    return address_peer(fd, &peer) && (ours == 0 || address_may_ask(peer, ours));
}

static bool watch(serving *s, int fd) { return fd >= 0 && poller_add(s->set, fd, POLLER_IN); }

static int converse(serving *s) {
    s->bell = bell_open();
    s->set = poller_open();
    if (s->set < 0 || !watch(s, s->fd) || !watch(s, s->bell))
        return cli_fail(s->c, CLI_INTERNAL, NULL, "no file descriptors are left");
    int failed = start_threads(s);
    bool good = !failed && say_hello(s) && say_claim(s, s->jobs_count) && send_out(s);
    if (good && !s->c->json) fprintf(stderr, "serving %s; Ctrl-C ends\n", s->path);
    while (good && !interrupted()) {
        wait_readable(s->set, -1);
        good = hear(s) && say_outcomes(s);
    }
    end_threads(s);
    return failed;
}

static int serve_remote(serving *s) {
    s->in.length = s->out.length = 0;
    int failed = is_trusted(s->fd)
                     ? converse(s)
                     : cli_fail(s->c, CLI_FILE, NULL, "%s belongs to another user", s->path);
    if (s->set >= 0) close(s->set);
    if (s->bell >= 0) close(s->bell);
    close(s->fd);
    s->fd = s->set = s->bell = -1;
    if (!failed && s->refused) failed = CLI_IO;
    return failed;
}

/* ---- With the engine itself -------------------------------------------------------------- */

/* What an action of this program's engine is given. */
typedef struct own_action {
    const serving *s;
    const char *name;
} own_action;

static bool is_revoked(void *ctx) { return hd_action_is_revoked(ctx) || interrupted(); }

static hd_status run_here(hd_action *a, hd_value args, void *ctx) {
    const own_action *own = ctx;
    size_t length;
    hd_pool *pool = hd_action_pool(a);
    const char *text = hd_json_print(pool, args, HD_JSON_COMPACT, &length);
    char instance[HD_INSTANCE_ID_SIZE + 32];
    snprintf(instance, sizeof instance, "%s", hd_action_id(a));
    char *slash = strrchr(instance, '/');
    if (slash) *slash = '\0';
    if (!text) return HD_NOMEM;
    exec_step step = { .command = own->s->command,
                       .action = own->name,
                       .id = hd_action_id(a),
                       .instance = instance,
                       .attempt = hd_action_attempt(a),
                       .args = text,
                       .args_length = length,
                       .is_given_up = is_revoked,
                       .ctx = a };
    if (!exec_run(&step)) return hd_action_raise(a, step.class_name, "%s", step.message);
    hd_value result = printed(pool, &step);
    free(step.output);
    if (hd_value_exists(result)) return hd_action_return(a, result);
    return hd_action_raise(a, "ValueError", "the command printed something that is no JSON");
}

static int open_own(serving *s, flow *f, own_action *all) {
    hd_error error = { 0 };
    hd_engine_options options = { .threads = (uint32_t)s->jobs_count,
                                  .keep_ms = s->keep_ms,
                                  .keep_most = s->keep_most };
    int failed = flow_open(s->c, f, STORE_CREATE);
    if (failed) return failed;
    options.space = f->space;
    hd_status status = hd_engine_open(f->s.rt, &options, &f->engine, &error);
    if (!status) status = hd_workflow_join(f->engine); /* heddle.send, heddle.wait */
    for (size_t i = 1; i < s->c->operand_count && !status; i++) {
        all[i] = (own_action){ s, s->c->operands[i] };
        status = hd_action_register(
            f->engine,
            &(hd_action_spec){ .name = s->c->operands[i], .fn = run_here, .ctx = &all[i] });
    }
    /* Beside a store on a server there is no place for sockets. */
    bool local = !is_address(s->file);
    if (!status && local) status = hd_engine_serve(f->engine, NULL);
    /* So that heddle why-not can ask this program. A failure is ignored: nothing else needs the socket. */
    if (!status && local) (void)hd_runtime_serve(f->s.rt, NULL);
    if (status && *error.message)
        return cli_fail(s->c, exit_of(status), NULL, "%s: %s", f->s.file, error.message);
    return status ? store_fail(&f->s, status, f->s.file) : CLI_OK;
}

static int serve_own(serving *s) {
    flow f;
    own_action *all = calloc(s->c->operand_count, sizeof *all);
    if (!all) return cli_fail(s->c, CLI_INTERNAL, NULL, "out of memory");
    int failed = open_own(s, &f, all);
    char name[SHOWN_SIZE];
    if (!failed && !s->c->json)
        fprintf(stderr, "%s the workflows of %s; Ctrl-C ends\n",
                hd_engine_is_active(f.engine) ? "running" : "doing steps of", shown(s->file, name));
    while (!failed && !interrupted()) {
        hd_status status = hd_runtime_pump(f.s.rt);
        if (status && status != HD_PENDING) failed = store_fail(&f.s, status, f.s.file);
        else if (!status) store_wait(&f.s);
    }
    failed = flow_close(&f, failed);
    free(all);
    return failed;
}

/* ---- Which of the two -------------------------------------------------------------------- */

static int serve(serving *s) {
    bool given = option_given(s->c, "socket");
    if (!given && is_address(s->file)) return serve_own(s);
    for (bool told = false; !interrupted();) {
        s->fd = address_connect(s->path);
        if (s->fd < 0 && !given) return serve_own(s);
        int failed = s->fd >= 0 ? serve_remote(s) : CLI_OK;
        if (failed) return failed;
        if (!told && !interrupted()) fprintf(stderr, "waiting for an engine at %s\n", s->path);
        told = true;
        if (!interrupted()) wait_readable(-1, PAUSE_MS);
    }
    return CLI_OK;
}

static int find_socket(serving *s) {
    cli *c = s->c;
    const char *socket_path = option_text(c, "socket"), *space = option_text(c, "space");
    bool is_main = !space || strcmp(space, "main") == 0;
    if (!socket_path && is_address(s->file)) return CLI_OK;
    char *real = realpath(s->file, NULL);
    int length = socket_path
                     ? snprintf(s->path, sizeof s->path, "%s", socket_path)
                     : snprintf(s->path, sizeof s->path, "%s-workers%s%s", real ? real : s->file,
                                is_main ? "" : "-", is_main ? "" : space);
    free(real);
    if (length < (int)sizeof s->path) return CLI_OK;
    return cli_fail(c, CLI_USAGE, NULL, "the name of the socket is too long");
}

static int open_serving(serving *s) {
    cli *c = s->c;
    s->jobs_count = 4;
    int failed = option_number(c, "jobs", &s->jobs_count);
    if (!failed && (!s->jobs_count || s->jobs_count > JOBS_MAX))
        failed = cli_fail(c, CLI_USAGE, NULL, "--jobs is a number from 1 to %d", JOBS_MAX);
    if (!failed) failed = option_span(c, "keep", &s->keep_ms);
    if (!failed) failed = option_number(c, "keep-most", &s->keep_most);
    s->command = option_text(c, "exec");
    if (!failed && !s->command)
        failed = cli_fail(c, CLI_USAGE, "For example: --exec ./charge.sh",
                          "--exec says which command does the steps");
    if (!failed) failed = find_socket(s);
    if (!failed && hd_heap_open(NULL, &(hd_limits){ .size = 2 * EXEC_OUTPUT }, &s->heap))
        failed = cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
    return failed;
}

static int run(cli *c) {
    serving *s = calloc(1, sizeof *s);
    if (!s) return cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
    s->c = c;
    s->file = c->operands[0];
    s->env = hd_env_system();
    s->fd = s->set = s->bell = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    json_buffer_init(&s->in, &s->env);
    json_buffer_init(&s->out, &s->env);
    int failed = open_serving(s);
    if (!failed) failed = serve(s);
    json_buffer_fini(&s->in);
    json_buffer_fini(&s->out);
    if (s->heap) hd_heap_close(s->heap);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return failed;
}

const command command_workflow_worker = {
    .name = "workflow worker",
    .section = FLOW_SECTION,
    .operands = "STORE ACTION... --exec COMMAND",
    .least = 2,
    .most = SIZE_MAX,
    .summary = "do the steps of actions by running a command",
    .text =
        "Serves the named actions: for each step it runs COMMAND by sh -c, with the arguments as "
        "JSON on "
        "stdin; what it prints on stdout is the result, as JSON (nothing: null). The command finds "
        "HEDDLE_ACTION, HEDDLE_ID (the same in every attempt: an idempotency key), HEDDLE_INSTANCE "
        "and "
        "HEDDLE_ATTEMPT in its environment.\n\n"
        "An exit status other than 0 raises an exception in the workflow: the last line on stderr "
        "if it "
        "reads like \"ValueError: too large\", else RuntimeError with that line.\n\n"
        "Where the steps come from: if a program serves workers for STORE (hd_engine_serve), from "
        "that program's socket. If a program runs the workflows and serves no workers, or STORE "
        "is on a server, through the store. If none runs them, this command does so itself, with "
        "heddle.send and heddle.wait, and other workers may come to it; so it does when the "
        "program that served has ended.\n\n"
        "Ctrl-C or SIGTERM ends it, with status 0; steps that are under way are done again by "
        "another.",
    .options = (const cli_option[]){ { "exec", "COMMAND", "what does a step" },
                                     { "jobs", "N", "so many at once (default: 4)" },
                                     { "keep", "SPAN",
                                       "instances leave the store so long after their end; for "
                                       "workflows that do not say" },
                                     { "keep-most", "N", "and the oldest beyond so many" },
                                     { "socket", "PATH",
                                       "the engine's socket, if it is not beside the store" },
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle workflow worker shop.db charge --exec ./charge.py", "one action" },
            { "heddle workflow worker shop.db a b --exec './do $HEDDLE_ACTION'",
              "two, by one command" },
            { NULL, NULL } },
    .run = run,
};

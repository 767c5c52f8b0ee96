/* serve.c -- the inspector's sockets: listening, accepting, reading requests, writing answers. */
#define _GNU_SOURCE
#include "inspect/inspector.h"

#include "base/env.h"
#include "base/system.h"
#include "value/text.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <heddle/inspect.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- connections */

static asker *seat_of(inspector *in, int fd) {
    for (int i = 0; i < ASKERS_MAX; i++)
        if (in->askers[i].fd == fd) return &in->askers[i];
    return NULL;
}

static void leave(inspector *in, asker *a) {
    assert(a->fd >= 0 && a->sent <= a->answer.length);
    close(a->fd); /* this also removes it from the set */
    json_buffer_fini(&a->line);
    json_buffer_fini(&a->answer);
    drawing_free(in, a);
    a->fd = -1;
}

/* ---- one asker */

static bool would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

/* Sends as much of the answer as the socket takes; closes the connection at the end. */
static void hand_over(inspector *in, asker *a) {
    assert(a->fd >= 0);
    while (a->sent < a->answer.length) {
        ssize_t n = send(a->fd, a->answer.bytes + a->sent, a->answer.length - a->sent,
                         SYSTEM_NO_SIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            a->sent += (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && would_block() && poller_change(in->at.set, a->fd, POLLER_OUT)) return;
        break;
    }
    leave(in, a);
}

/* Answers the request that ends at `end`; NULL: the request is too long. */
static void reply(inspector *in, asker *a, const char *end) {
    assert(!a->answer.length && !a->sent && !a->drawing);
    assert(!end || (end >= a->line.bytes && end < a->line.bytes + a->line.length));
    size_t length = end ? (size_t)(end - a->line.bytes) : 0;
    in->answered++;
    a->deadline_ns = env_now_ns(&in->rt->env) + TAKE_WITHIN_NS;
    if (!end) answer_error(HD_LIMIT, "a request is one line of at most 65536 bytes", &a->answer);
    else if (!drawing_begin(in, a, a->line.bytes, length))
        answer_line(in, a->line.bytes, length, &a->answer);
    /* While the picture is drawn, the socket is watched only for the client's hanging up. */
    if (!a->drawing) hand_over(in, a);
    else if (!poller_change(in->at.set, a->fd, 0)) leave(in, a);
}

/* Begins with another asker in each pump, so that a large picture does not hold up the others. */
static void draw_on(inspector *in) {
    uint64_t budget = GRAPH_SLICE;
    for (int i = 0; i < ASKERS_MAX && budget; i++) {
        asker *a = &in->askers[(in->turn + i) % ASKERS_MAX];
        if (a->fd < 0 || !a->drawing) continue;
        drawing_go_on(in, a, &budget);
        if (!a->drawing) hand_over(in, a);
    }
    in->turn = (in->turn + 1) % ASKERS_MAX;
}

static void listen_to(inspector *in, asker *a) {
    assert(a->line.length < REQUEST_MAX);
    size_t room = REQUEST_MAX - a->line.length, most = room < READ_MAX ? room : READ_MAX;
    if (!json_buffer_grow(&a->line, most)) {
        leave(in, a); /* there is no memory for an answer either */
        return;
    }
    char *from = a->line.bytes + a->line.length;
    ssize_t n = recv(a->fd, from, most, MSG_DONTWAIT);
    if (n < 0 && (would_block() || errno == EINTR)) return;
    if (n <= 0) {
        leave(in, a); /* the client closed the connection before the end of its line */
        return;
    }
    const char *end = memchr(from, '\n', (size_t)n);
    a->line.length += (size_t)n;
    if (end || a->line.length == REQUEST_MAX) reply(in, a, end);
}

/* ---- new connections */

/* Sends one line with an error, if the socket takes it at once, and closes the connection. */
static void turn_away(inspector *in, int fd, hd_status status, const char *message) {
    json_buffer line;
    json_buffer_init(&line, &in->rt->env);
    answer_error(status, message, &line);
    if (line.length && send(fd, line.bytes, line.length, SYSTEM_NO_SIGNAL | MSG_DONTWAIT) < 0) {
        /* Ignored: the connection is closed in any case. */
    }
    json_buffer_fini(&line);
    close(fd);
    in->refused++;
}

static void receive(inspector *in, int fd, bool allowed) {
    asker *a = seat_of(in, -1);
    if (!allowed) {
        turn_away(in, fd, HD_REJECTED, "only the user who runs the program, and root, may ask");
        return;
    }
    if (!a || !poller_add(in->at.set, fd, POLLER_IN)) {
        turn_away(in, fd, HD_BUSY, "too many connections: try again");
        return;
    }
    assert(a->fd == -1 && fd >= 0);
    a->fd = fd;
    a->sent = 0;
    a->deadline_ns = env_now_ns(&in->rt->env) + ASK_WITHIN_NS;
    json_buffer_init(&a->line, &in->rt->env);
    json_buffer_init(&a->answer, &in->rt->env);
}

static void accept_some(inspector *in) {
    bool allowed;
    for (int i = 0; i < ASKERS_MAX; i++) {
        int fd = port_accept(&in->at, &allowed);
        if (fd < 0) return;
        receive(in, fd, allowed);
    }
}

/* ---- driven by the runtime */

static void look_at_clock(inspector *in) {
    uint64_t now = 0;
    for (int i = 0; i < ASKERS_MAX; i++) {
        asker *a = &in->askers[i];
        if (a->fd < 0) continue;
        if (!now) now = env_now_ns(&in->rt->env);
        if (now >= a->deadline_ns) leave(in, a);
    }
    port_look_at_clock(&in->at);
}

static void pump(void *ctx) {
    inspector *in = ctx;
    poller_event ready[ASKERS_MAX + 1];
    int count = poller_take(in->at.set, ready, ASKERS_MAX + 1);
    for (int i = 0; i < count; i++) {
        int fd = ready[i].fd;
        if (fd == in->at.listen_fd) {
            accept_some(in);
            continue;
        }
        asker *a = seat_of(in, fd);
        if (!a) continue;
        if (a->drawing) leave(in, a); /* the client has hung up */
        else if (a->answer.length) hand_over(in, a);
        else listen_to(in, a);
    }
    draw_on(in);
    look_at_clock(in);
}

static uint64_t deadline(const void *ctx) {
    const inspector *in = ctx;
    uint64_t first = port_deadline(&in->at);
    for (int i = 0; i < ASKERS_MAX; i++) {
        if (in->askers[i].fd < 0) continue;
        if (in->askers[i].drawing) return 0;
        if (in->askers[i].deadline_ns < first) first = in->askers[i].deadline_ns;
    }
    return first;
}

static void inspector_close(void *ctx) {
    inspector *in = ctx;
    hd_runtime *rt = in->rt;
    assert(!rt->outside.ctx || rt->outside.ctx == in);
    for (int i = 0; i < ASKERS_MAX; i++)
        if (in->askers[i].fd >= 0) leave(in, &in->askers[i]);
    port_close(&in->at);
    hd_pool_close(in->pool);
    rt->outside = (runtime_extension){ 0 };
    env_free(&rt->env, in, sizeof *in);
}

/* ---- beginning to serve */

static void name_process(char *out, size_t size) {
    system_program_name(out, size);
    if (!*out) snprintf(out, size, "a program");
}

static inspector *inspector_new(hd_runtime *rt, const hd_serve_options *options) {
    inspector *in = env_new0(&rt->env, sizeof *in);
    if (!in) return NULL;
    in->rt = rt;
    port_init(&in->at, rt);
    in->began_ns = env_now_ns(&rt->env);
    for (int i = 0; i < ASKERS_MAX; i++) in->askers[i].fd = -1;
    if (options && options->name) snprintf(in->name, sizeof in->name, "%s", options->name);
    else name_process(in->name, sizeof in->name);
    size_t cut;
    if (!utf8_valid(in->name, strlen(in->name), &cut)) in->name[cut] = '\0';
    return in;
}

hd_status hd_runtime_serve(hd_runtime *rt, const hd_serve_options *options) {
    const char *path = options ? options->socket : NULL, *file = port_file(rt);
    if (rt->outside.ctx) return runtime_fail(rt, HD_USAGE, "the runtime serves already");
    if (!path && (!file || !*file))
        return runtime_fail(rt, HD_USAGE, "the store has no file: name a socket");
    inspector *in = inspector_new(rt, options);
    if (!in) return runtime_fail(rt, HD_NOMEM, "%s", hd_status_text(HD_NOMEM));
    hd_status status = hd_pool_open(rt->heap, &in->pool);
    if (status) runtime_fail(rt, status, "%s", hd_status_text(status));
    if (!status) status = path ? port_open(&in->at, path) : port_open_beside(&in->at, file);
    if (!status) status = port_join(&in->at);
    if (status) {
        inspector_close(in);
        return status;
    }
    rt->outside = (runtime_extension){
        .ctx = in, .pump = pump, .deadline = deadline, .close = inspector_close
    };
    return HD_OK;
}

void hd_runtime_stop_serving(hd_runtime *rt) {
    if (rt->outside.close) rt->outside.close(rt->outside.ctx);
}

const char *hd_runtime_socket(const hd_runtime *rt) {
    const inspector *in = rt->outside.ctx;
    return in ? in->at.path : NULL;
}

/* remote.c -- workers in other processes: what they say and what they are told. remote_serve.c has the socket. */
#define _GNU_SOURCE
#include "workflow/remote.h"

#include "base/env.h"
#include "base/system.h"
#include "workflow/engine.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t unread(const remote *r) { return r->out.length - r->sent; }

/* ---- telling */

/* No memory for a message: the connection ends, and what it has goes to other workers. */
static void lost_for_words(remote *r, size_t start) {
    wire_undo(&r->out, start);
    r->ending = true;
}

static void write_token(const remote *r, uint64_t token, char out[WIRE_TOKEN_MAX]) {
    snprintf(out, WIRE_TOKEN_MAX, "%" PRIx64 "-%" PRIx64, r->nonce, token);
}

static bool put_token(json_buffer *out, const remote *r, uint64_t token) {
    char text_[WIRE_TOKEN_MAX];
    write_token(r, token, text_);
    return wire_string(out, text_);
}

static void tell_token(remote *r, const char *type, uint64_t token, const char *why) {
    size_t start;
    json_buffer *out = &r->out;
    bool good = wire_begin(out, &start) && wire_text(out, "{\"type\":") && wire_string(out, type) &&
                wire_text(out, ",\"token\":") && put_token(out, r, token);
    if (good && why) good = wire_text(out, ",\"why\":") && wire_string(out, why);
    if (!good || !wire_text(out, "}") || !wire_end(out, start)) lost_for_words(r, start);
}

/* A token that is not this connection's is told back as it came. */
static void tell_late(remote *r, const char *token) {
    size_t start;
    json_buffer *out = &r->out;
    if (!wire_begin(out, &start) || !wire_text(out, "{\"type\":\"late\",\"token\":") ||
        !wire_string(out, token) || !wire_text(out, "}") || !wire_end(out, start))
        lost_for_words(r, start);
}

/* The last message: then the connection ends. */
static void tell_error(remote *r, hd_status status, const char *message) {
    size_t start;
    json_buffer *out = &r->out;
    if (!wire_begin(out, &start) || !wire_text(out, "{\"type\":\"error\",\"status\":") ||
        !wire_string(out, hd_status_name(status)) || !wire_text(out, ",\"message\":") ||
        !wire_string(out, message) || !wire_text(out, "}") || !wire_end(out, start))
        wire_undo(out, start);
    r->ending = true;
}

static void tell_welcome(remote *r) {
    size_t start;
    json_buffer *out = &r->out;
    if (!wire_begin(out, &start) ||
        !wire_text(out, "{\"type\":\"welcome\",\"heddle\":1,\"version\":") ||
        !wire_string(out, hd_version()) || !wire_text(out, ",\"space\":") ||
        !wire_string(out, r->all->e->space) ||
        !wire_number(out, ",\"message_limit\":", r->all->message_max) ||
        !wire_number(out, ",\"claim_limit\":", WIRE_CLAIM_MAX) || !wire_text(out, "}") ||
        !wire_end(out, start))
        lost_for_words(r, start);
}

static bool put_task(json_buffer *out, const remote *r, const task_view *t) {
    bool good = wire_text(out, "{\"type\":\"task\",\"token\":") && put_token(out, r, t->token) &&
                wire_text(out, ",\"action\":") && wire_string(out, t->action) &&
                wire_text(out, ",\"id\":") && wire_string(out, t->id) &&
                wire_text(out, ",\"instance\":") && wire_string(out, t->instance) &&
                wire_text(out, ",\"node\":") && wire_string(out, t->node) &&
                wire_number(out, ",\"attempt\":", t->attempt);
    if (good && t->timeout_ms) good = wire_number(out, ",\"timeout_ms\":", t->timeout_ms);
    if (good && t->heartbeat_ms) good = wire_number(out, ",\"heartbeat_ms\":", t->heartbeat_ms);
    return good && wire_text(out, ",\"args\":") && !json_print_to(out, t->args, HD_JSON_COMPACT) &&
           wire_text(out, "}");
}

/* The worker was told how long a message may be, and may have no room for a longer one. */
static void fail_long_task(remote *r, const task_view *t) {
    char message[160];
    snprintf(message, sizeof message,
             "the arguments of %.60s are too long for a worker: a message has at most %zu bytes",
             t->action, r->all->message_max);
    (void)task_fail(r->all->e, t->token, "ValueError", message);
}

/* False: the worker does not get it. */
static bool tell_task(remote *r, const task_view *t) {
    size_t start;
    if (!wire_begin(&r->out, &start) || !put_task(&r->out, r, t)) {
        lost_for_words(r, start);
        return false;
    }
    if (r->out.length - start - WIRE_HEAD <= r->all->message_max) {
        (void)wire_end(&r->out, start);
        return true;
    }
    wire_undo(&r->out, start);
    fail_long_task(r, t);
    return false;
}

/* ---- as a worker of the engine */

static void set_capacity(remote *r) {
    bool choked = unread(r) > REMOTE_CHOKE || r->ending;
    if (r->greeted) worker_set_capacity(&r->w, r->w.held + (choked ? 0 : r->credit));
}

static void offer(worker *w) {
    remote *r = (remote *)(void *)w;
    task_view t;
    while (r->credit && !r->ending && unread(r) <= REMOTE_CHOKE && task_claim(w, &t))
        r->credit -= tell_task(r, &t);
    set_capacity(r);
}

static void take_back(worker *w, uint64_t token, const char *why) {
    remote *r = (remote *)(void *)w;
    if (!r->ending) tell_token(r, "cancel", token, why);
    set_capacity(r);
}

static const worker_ops ops = { .offer = offer, .revoke = take_back };

/* ---- hearing */

static bool read_hex(const char **at, uint64_t *out) {
    const char *from = *at;
    for (*out = 0; *at - from < 16; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9') *out = *out << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') *out = *out << 4 | (uint64_t)(c - 'a' + 10);
        else break;
    }
    return *at > from;
}

/* The token if it was given to this connection and is good yet; 0: it is late. */
static uint64_t token_of(const remote *r, const char *chars) {
    uint64_t nonce, token;
    if (!read_hex(&chars, &nonce) || *chars++ != '-' || !read_hex(&chars, &token) || *chars)
        return 0;
    return nonce == r->nonce && task_is_held_by(&r->w, token) ? token : 0;
}

static bool take_line(remote *r, const char *name) {
    hd_engine *e = r->all->e;
    char *copy = engine_text(e, name);
    if (copy && vec_push(e->env, &r->lines, copy)) return true;
    engine_free_text(e, copy);
    return false;
}

/* They are done in the program that runs the instance, once it has called hd_workflow_join, and wait for that. */
static bool is_reserved(const char *action) {
    return !strcmp(action, "heddle.send") || !strcmp(action, "heddle.wait");
}

static bool any_reserved(hd_value actions) {
    for (hd_iter it = hd_iter_of(actions); hd_iter_next(&it);)
        if (is_reserved(hd_value_as_text(it.value, ""))) return true;
    return false;
}

static void hear_hello(remote *r, const wire_message *m) {
    if (r->greeted) {
        tell_error(r, HD_USAGE, "hello is said once");
        return;
    }
    if (any_reserved(m->actions)) {
        tell_error(r, HD_USAGE, "heddle.send and heddle.wait are done by the engine's program");
        return;
    }
    r->w = (worker){ .ops = &ops, .lines = &r->lines };
    worker_join(r->all->e, &r->w);
    r->greeted = true;
    r->deadline_ns = 0;
    for (hd_iter it = hd_iter_of(m->queues); hd_iter_next(&it);)
        if (!take_line(r, hd_value_as_text(it.value, ""))) r->ending = true;
    for (hd_iter it = hd_iter_of(m->actions); hd_iter_next(&it);)
        if (worker_serve(&r->w, hd_value_as_text(it.value, ""))) r->ending = true;
    tell_welcome(r);
}

static void hear_claim(remote *r, const wire_message *m) {
    if ((uint64_t)r->w.held + r->credit + m->count > WIRE_CLAIM_MAX) {
        tell_error(r, HD_LIMIT, "a worker has and asks for at most 10000 steps");
        return;
    }
    r->credit += m->count;
    set_capacity(r);
}

static void hear_heartbeat(remote *r, const wire_message *m) {
    for (hd_iter it = hd_iter_of(m->tokens); hd_iter_next(&it);) {
        const char *chars = hd_value_as_text(it.value, "");
        uint64_t token = token_of(r, chars);
        if (!token || task_heartbeat(r->all->e, token)) tell_late(r, chars);
    }
}

/* What the worker has made of a step. */
static void hear_outcome(remote *r, const wire_message *m) {
    hd_engine *e = r->all->e;
    uint64_t token = token_of(r, m->token);
    if (!token) {
        e->stats.duplicates++;
        tell_late(r, m->token);
        return;
    }
    if (m->type == WIRE_GIVE_BACK) {
        (void)task_give_back(e, token);
        set_capacity(r);
        return;
    }
    if (!vec_room(e->env, &r->acks, 1)) {
        r->ending = true;
        return;
    }
    remote_ack ack = { token, e->commits_begun + 1, task_document(e, token) };
    (void)vec_push(e->env, &r->acks, ack); /* first: if the instance is lost, it is taken back */
    hd_status status = m->type == WIRE_COMPLETE    ? task_complete(e, token, m->result)
                       : hd_value_exists(m->error) ? task_raise(e, token, m->error)
                                                   : task_fail(e, token, m->class_name, m->message);
    assert(!status);
    (void)status;
    set_capacity(r);
}

static void hear_message(remote *r, const wire_message *m) {
    if (!r->greeted && m->type != WIRE_HELLO) {
        tell_error(r, HD_USAGE, "the first message is hello");
        return;
    }
    switch (m->type) {
    case WIRE_HELLO: hear_hello(r, m); break;
    case WIRE_CLAIM: hear_claim(r, m); break;
    case WIRE_HEARTBEAT: hear_heartbeat(r, m); break;
    case WIRE_COMPLETE:
    case WIRE_FAIL:
    case WIRE_GIVE_BACK: hear_outcome(r, m); break;
    }
}

static void hear_one(remote *r, const char *bytes, size_t length) {
    wire_message m;
    hd_error error = { 0 };
    hd_status status = wire_parse(r->all->pool, bytes, length, &m, &error);
    if (!status) hear_message(r, &m);
    else tell_error(r, status, *error.message ? error.message : hd_status_text(status));
    hd_pool_clear(r->all->pool);
}

/* Whole messages, one after the other. */
static void hear_all(remote *r) {
    while (!r->ending && r->in.length - r->taken >= WIRE_HEAD) {
        const char *head = r->in.bytes + r->taken;
        size_t length = wire_length(head);
        if (length > r->all->message_max) {
            char message[80];
            snprintf(message, sizeof message, "a message has at most %zu bytes",
                     r->all->message_max);
            tell_error(r, HD_LIMIT, message);
            return;
        }
        if (r->in.length - r->taken - WIRE_HEAD < length) return;
        r->taken += WIRE_HEAD + length;
        hear_one(r, head + WIRE_HEAD, length);
    }
}

/* What is left of a message moves to the front; memory for a large one is given back. */
static void tidy(json_buffer *b, size_t *from) {
    size_t left = b->length - *from;
    if (*from && left) memmove(b->bytes, b->bytes + *from, left);
    b->length = left;
    *from = 0;
    if (left || b->capacity <= REMOTE_TURN) return;
    const hd_env *env = b->env;
    json_buffer_fini(b);
    json_buffer_init(b, env);
}

void remote_hear(remote *r, const char *bytes, size_t length) {
    if (!json_buffer_add(&r->in, bytes, length)) {
        r->ending = true;
        return;
    }
    hear_all(r);
    tidy(&r->in, &r->taken);
}

/* ---- stored */

/* Whether the outcome was to be stored with this commit; or, if `doc` is not 0, with this one or a later one: those
 * are of that instance. A commit that has left something out may not have stored it. */
static bool is_lost(const remote *r, const remote_ack *a, uint64_t number, place_id doc) {
    const hd_engine *e = r->all->e;
    bool open = a->commit > e->commits_done && a->commit <= e->commits_short;
    if (!doc) return a->commit == number;
    return a->doc == doc && (a->commit >= number || open);
}

/* Their steps run again. */
static void tell_lost(remote *r, uint64_t number, place_id doc) {
    char token[WIRE_TOKEN_MAX];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->acks.count; i++) {
        remote_ack a = r->acks.items[i];
        if (!is_lost(r, &a, number, doc)) {
            r->acks.items[kept++] = a;
            continue;
        }
        write_token(r, a.token, token);
        tell_late(r, token);
    }
    r->acks.count = kept;
}

void remotes_lost(remotes *all, uint64_t number, place_id doc) {
    if (!all) return;
    LIST_FOR (n, &all->all) tell_lost(LIST_ENTRY(n, remote, link), number, doc);
}

static void tell_stored(remote *r) {
    uint32_t count = 0;
    size_t start;
    json_buffer *out = &r->out;
    while (count < r->acks.count && flight_is_stored(r->all->e, r->acks.items[count].commit))
        count++;
    if (!count) return;
    bool good = wire_begin(out, &start) && wire_text(out, "{\"type\":\"done\",\"tokens\":[");
    for (uint32_t i = 0; good && i < count; i++)
        good = (!i || wire_text(out, ",")) && put_token(out, r, r->acks.items[i].token);
    if (!good || !wire_text(out, "]}") || !wire_end(out, start)) lost_for_words(r, start);
    r->acks.count -= count;
    memmove(r->acks.items, r->acks.items + count, r->acks.count * sizeof *r->acks.items);
}

/* ---- sockets */

static void listen_for(remote *r) {
    bool writes = unread(r) > 0;
    uint32_t events =
        (unread(r) > REMOTE_CHOKE || r->ending ? 0u : POLLER_IN) | (writes ? POLLER_OUT : 0u);
    if (writes == r->writes && !writes) return;
    if (poller_change(r->all->at.set, r->fd, events)) r->writes = writes;
    else r->ending = true;
}

/* False: the connection has been closed. */
static bool send_some(remote *r) {
    bool any = false;
    while (r->fd >= 0 && unread(r)) {
        ssize_t n = send(r->fd, r->out.bytes + r->sent, unread(r), SYSTEM_NO_SIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n <= 0) {
            remote_close(r);
            return false;
        }
        r->sent += (size_t)n;
        any = true;
    }
    if (r->fd < 0) return true;
    if (!unread(r)) {
        tidy(&r->out, &r->sent);
        if (r->greeted) r->deadline_ns = 0;
    } else if (any || !r->deadline_ns) {
        r->deadline_ns = env_now_ns(r->all->e->env) + REMOTE_READS_NS;
    }
    if (r->ending && !unread(r)) {
        remote_close(r);
        return false;
    }
    listen_for(r);
    return true;
}

static bool read_some(remote *r) {
    for (size_t turn = 0; turn < REMOTE_TURN && !r->ending; turn += REMOTE_READ) {
        if (!json_buffer_grow(&r->in, REMOTE_READ)) return false;
        ssize_t n = recv(r->fd, r->in.bytes + r->in.length, REMOTE_READ, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
        if (n <= 0) return false; /* the worker has closed the connection */
        r->in.length += (size_t)n;
        hear_all(r);
        tidy(&r->in, &r->taken);
        if ((size_t)n < REMOTE_READ) return true;
    }
    return true;
}

static remote *remote_of(const remotes *all, int fd) {
    LIST_FOR (n, &all->all)
        if (LIST_ENTRY(n, remote, link)->fd == fd) return LIST_ENTRY(n, remote, link);
    return NULL;
}

/* ---- connections */

hd_status remote_open(remotes *all, int fd, remote **out) {
    hd_engine *e = all->e;
    remote *r = all->count < all->most ? env_new0(e->env, sizeof *r) : NULL;
    *out = NULL;
    if (!r || (fd >= 0 && !poller_add(all->at.set, fd, POLLER_IN))) {
        if (r) env_free(e->env, r, sizeof *r);
        if (fd >= 0) close(fd);
        return all->count < all->most ? HD_NOMEM : HD_BUSY;
    }
    r->all = all;
    r->fd = fd;
    r->deadline_ns = env_now_ns(e->env) + REMOTE_HELLO_NS;
    env_random(e->env, &r->nonce, sizeof r->nonce);
    json_buffer_init(&r->in, e->env);
    json_buffer_init(&r->out, e->env);
    list_push_back(&all->all, &r->link);
    all->count++;
    *out = r;
    return HD_OK;
}

void remote_close(remote *r) {
    remotes *all = r->all;
    const hd_env *env = all->e->env;
    r->ending = true; /* what its steps do when they are lost is not told to it */
    if (r->greeted) worker_leave(&r->w);
    if (r->fd >= 0) close(r->fd); /* this also removes it from the set */
    json_buffer_fini(&r->in);
    json_buffer_fini(&r->out);
    vec_fini(env, &r->acks);
    while (r->lines.count) engine_free_text(all->e, vec_pop(&r->lines));
    vec_fini(env, &r->lines);
    list_remove(&r->link);
    assert(all->count > 0);
    all->count--;
    env_free(env, r, sizeof *r);
}

static void accept_some(remotes *all) {
    bool allowed;
    remote *r;
    for (int fd; (fd = port_accept(&all->at, &allowed)) >= 0;) {
        if (!allowed) close(fd);
        else (void)remote_open(all, fd, &r);
    }
}

/* ---- driven by the engine */

static void look_at_clock(remotes *all) {
    uint64_t now = 0;
    LIST_FOR_SAFE (n, &all->all) {
        remote *r = LIST_ENTRY(n, remote, link);
        if (!r->deadline_ns) continue;
        if (!now) now = env_now_ns(all->e->env);
        if (now >= r->deadline_ns) remote_close(r);
    }
    port_look_at_clock(&all->at);
}

static hd_status listen_now(remotes *all) {
    hd_status status = port_open(&all->at, all->path);
    if (!status) status = port_join(&all->at);
    if (status) port_close(&all->at);
    all->again_ns = status ? env_now_ns(all->e->env) + REMOTE_AGAIN_NS : 0;
    return status;
}

static void stop_listening(remotes *all) {
    while (!list_empty(&all->all)) remote_close(LIST_ENTRY(list_first(&all->all), remote, link));
    port_close(&all->at);
}

/* An engine that was active before this one may still be about to close its socket. */
static void follow_engine(remotes *all) {
    bool listens = all->at.listen_fd >= 0;
    if (!*all->path || all->e->active == listens) return;
    if (listens) stop_listening(all);
    else if (!all->again_ns || env_now_ns(all->e->env) >= all->again_ns) (void)listen_now(all);
}

void remotes_pump(remotes *all) {
    poller_event ready[POLLER_MOST];
    if (!all) return;
    follow_engine(all);
    if (all->at.set < 0) return;
    int count = poller_take(all->at.set, ready, POLLER_MOST);
    for (int i = 0; i < count; i++) {
        if (ready[i].fd == all->at.listen_fd) {
            accept_some(all);
            continue;
        }
        remote *r = remote_of(all, ready[i].fd);
        bool says = ready[i].what & POLLER_IN, gone = !says && (ready[i].what & POLLER_GONE);
        if (r && (gone || (says && !read_some(r)))) remote_close(r);
    }
    look_at_clock(all);
}

void remotes_flush(remotes *all) {
    if (!all) return;
    LIST_FOR_SAFE (n, &all->all) {
        remote *r = LIST_ENTRY(n, remote, link);
        bool choked = unread(r) > REMOTE_CHOKE;
        if (r->acks.count) tell_stored(r);
        if ((unread(r) || r->ending) && !send_some(r)) continue;
        if (choked) set_capacity(r);
    }
}

/* An engine that stands by listens in the pump after the one in which it takes over. */
uint64_t remotes_deadline(const remotes *all) {
    if (!all) return UINT64_MAX;
    uint64_t first = port_deadline(&all->at);
    if (*all->path && all->at.listen_fd < 0) return all->e->active ? all->again_ns : UINT64_MAX;
    LIST_FOR (n, &all->all) {
        const remote *r = LIST_ENTRY(n, remote, link);
        if (r->acks.count && flight_is_stored(all->e, r->acks.items[0].commit)) return 0;
        if (unread(r) && !r->writes) return 0;
        if (r->deadline_ns && r->deadline_ns < first) first = r->deadline_ns;
    }
    return first;
}

/* ---- life */

hd_status remotes_open(hd_engine *e, remotes **out) {
    remotes *all = env_new0(e->env, sizeof *all);
    *out = NULL;
    if (!all) return HD_NOMEM;
    *all = (remotes){ .e = e, .most = REMOTES_MAX, .message_max = UINT32_MAX };
    if (e->value_max < UINT32_MAX - WIRE_ENVELOPE) all->message_max = e->value_max + WIRE_ENVELOPE;
    list_init(&all->all);
    port_init(&all->at, e->rt);
    hd_status status = hd_pool_open(e->heap, &all->pool);
    if (status) env_free(e->env, all, sizeof *all);
    else *out = all;
    return status;
}

void remotes_close(remotes *all) {
    if (!all) return;
    stop_listening(all);
    hd_pool_close(all->pool);
    env_free(all->e->env, all, sizeof *all);
}

/* ---- public */

static hd_status choose_path(const hd_engine *e, const hd_engine_serve_options *options,
                             char out[ADDRESS_MAX]) {
    const char *file = port_file(e->rt);
    bool is_main = !strcmp(e->space, "main");
    if (!options->socket && (!file || !*file))
        return runtime_fail(e->rt, HD_USAGE, "the store has no file: name a socket");
    int length = options->socket ? snprintf(out, ADDRESS_MAX, "%s", options->socket)
                                 : snprintf(out, ADDRESS_MAX, "%s-workers%s%s", file,
                                            is_main ? "" : "-", is_main ? "" : e->space);
    if (length > 0 && length < ADDRESS_MAX) return HD_OK;
    return runtime_fail(e->rt, HD_LIMIT, "the name is too long for a socket");
}

hd_status hd_engine_serve(hd_engine *e, const hd_engine_serve_options *options) {
    static const hd_engine_serve_options defaults;
    char path[ADDRESS_MAX];
    remotes *all;
    if (!options) options = &defaults;
    if (e->remotes) return runtime_fail(e->rt, HD_USAGE, "the engine serves workers already");
    if (e->observer) return runtime_fail(e->rt, HD_USAGE, "an observer has no steps for workers");
    hd_status status = choose_path(e, options, path);
    if (status) return status;
    status = remotes_open(e, &all);
    if (status) return runtime_fail(e->rt, status, "%s", hd_status_text(status));
    memcpy(all->path, path, sizeof path);
    if (options->connections) all->most = options->connections;
    if (options->message_limit) all->message_max = options->message_limit;
    if (e->active) status = listen_now(all);
    if (status) remotes_close(all);
    else e->remotes = all;
    return status;
}

const char *hd_engine_socket(const hd_engine *e) { return e->remotes ? e->remotes->path : NULL; }

void hd_engine_stop_serving(hd_engine *e) {
    remotes_close(e->remotes);
    e->remotes = NULL;
}

/* bench_worker.c -- steps done by a worker in another thread, over one connection of the workers' socket: claims and
 * completions per second, on a file with synchronous=FULL.
 *
 * The worker is as cheap as can be: it looks for the token in each message and answers all that it has read with one
 * send. So what is measured is the engine's side: reading, walking, committing, writing. */
#define _GNU_SOURCE
#include "bench.h"

#include "socket/address.h"
#include <heddle.h>
#include <heddle/workflow.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <poll.h>

enum { CLAIMS = 512, ROOM = 4 << 20 };

static const char ir[] =
    "{\"heddle\":1,\"name\":\"one\",\"inputs\":[{\"name\":\"n\",\"default\":1}],\"functions\":[{"
    "\"name\":\"run\",\"params\":[\"n\"],\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":"
    "\"do\","
    "\"kind\":\"ACTION\",\"action\":\"work\",\"args\":{\"n\":[\"name\",\"n\"]},\"into\":[\"name\","
    "\"r\"]},{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"r\"]}],\"edges\":[[\"in\","
    "\"do\"],[\"do\",\"out\"]]}]}";

/* ---- the worker */

typedef struct side {
    const char *path;
    uint64_t wanted, done;
    char *in, *out;
    size_t in_length, out_length;
    int fd;
} side;

static void say(side *s, const char *json) {
    size_t length = strlen(json);
    for (int i = 3; i >= 0; i--) s->out[s->out_length++] = (char)(length >> (8 * i) & 0xFF);
    memcpy(s->out + s->out_length, json, length);
    s->out_length += length;
}

static void send_out(side *s) {
    for (size_t sent = 0; sent < s->out_length;) {
        struct pollfd until = { s->fd, POLLOUT, 0 };
        ssize_t n = send(s->fd, s->out + sent, s->out_length - sent, MSG_NOSIGNAL);
        if (n > 0) sent += (size_t)n;
        else poll(&until, 1, 1000);
    }
    s->out_length = 0;
}

static void answer(side *s, const char *message, size_t length, uint64_t *answered) {
    char text[200];
    const char *token = memmem(message, length, "\"token\":\"", 9);
    if (!memmem(message, length < 16 ? length : 16, "\"task\"", 6) || !token) return;
    token += 9;
    snprintf(text, sizeof text, "{\"type\":\"complete\",\"token\":\"%.*s\",\"result\":7}",
             (int)strcspn(token, "\""), token);
    say(s, text);
    ++*answered;
}

static void hear(side *s) {
    uint64_t answered = 0;
    size_t at = 0;
    struct pollfd until = { s->fd, POLLIN, 0 };
    poll(&until, 1, 1000);
    ssize_t n = recv(s->fd, s->in + s->in_length, ROOM - s->in_length, 0);
    if (n > 0) s->in_length += (size_t)n;
    while (s->in_length - at >= 4) {
        const unsigned char *b = (const unsigned char *)s->in + at;
        size_t length = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        if (s->in_length - at - 4 < length) break;
        answer(s, s->in + at + 4, length, &answered);
        at += 4 + length;
    }
    memmove(s->in, s->in + at, s->in_length - at);
    s->in_length -= at;
    if (!answered) return;
    char claim[60];
    snprintf(claim, sizeof claim, "{\"type\":\"claim\",\"count\":%llu}",
             (unsigned long long)answered);
    say(s, claim);
    send_out(s);
    s->done += answered;
}

static void *work(void *ctx) {
    side *s = ctx;
    char claim[60];
    s->in = malloc(ROOM);
    s->out = malloc(ROOM);
    s->fd = address_connect(s->path);
    if (!s->in || !s->out || s->fd < 0) abort();
    say(s, "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"]}");
    snprintf(claim, sizeof claim, "{\"type\":\"claim\",\"count\":%d}", CLAIMS);
    say(s, claim);
    send_out(s);
    while (s->done < s->wanted) hear(s);
    return NULL;
}

/* ---- the engine */

typedef struct program {
    hd_runtime *rt;
    hd_engine *engine;
    char file[64], socket[80];
} program;

static void open_program(program *p, uint64_t count) {
    hd_pool *pool;
    char id[HD_INSTANCE_ID_SIZE];
    snprintf(p->file, sizeof p->file, "/tmp/heddle-bench-worker-%d.db", (int)getpid());
    snprintf(p->socket, sizeof p->socket, "%s-workers", p->file);
    unlink(p->file);
    if (hd_open(p->file, NULL, &p->rt, NULL) || hd_engine_open(p->rt, NULL, &p->engine, NULL) ||
        hd_pool_open(hd_runtime_heap(p->rt), &pool) ||
        hd_workflow_register(p->engine, hd_json_parse(pool, ir, strlen(ir), NULL), NULL, NULL) ||
        hd_engine_serve(p->engine, &(hd_engine_serve_options){ .socket = p->socket }))
        abort();
    for (uint64_t i = 0; i < count; i++)
        if (hd_workflow_start(p->engine, "one", hd_object(), NULL, id)) abort();
    if (hd_runtime_sync(p->rt)) abort();
    hd_pool_close(pool);
}

static void close_program(program *p) {
    static const char *const ends[] = { "", "-wal", "-shm" };
    char name[100];
    hd_close(p->rt);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", p->file, ends[i]);
        unlink(name);
    }
}

static void run_until_done(program *p, uint64_t count, hd_engine_stats *stats) {
    for (hd_engine_stat(p->engine, stats); stats->finished < count;
         hd_engine_stat(p->engine, stats)) {
        struct pollfd until = { hd_runtime_fd(p->rt), POLLIN, 0 };
        hd_status status = hd_runtime_pump(p->rt);
        if (status && status != HD_PENDING) abort();
        if (!status && hd_runtime_deadline(p->rt)) poll(&until, 1, 100);
    }
}

void bench_group_worker(bench *b) {
    uint64_t count = bench_quick(b) ? 5000 : 40000;
    program p;
    hd_engine_stats stats;
    pthread_t thread;
    open_program(&p, count);
    side s = { .path = p.socket, .wanted = count, .fd = -1 };
    uint64_t began = bench_wall_ns();
    if (pthread_create(&thread, NULL, work, &s)) abort();
    run_until_done(&p, count, &stats);
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    pthread_join(thread, NULL);
    if (stats.steps != count || stats.duplicates)
        bench_wrong(b, "%llu steps, expected %llu", (unsigned long long)stats.steps,
                    (unsigned long long)count);
    bench_report(b, &(bench_row){ .name = "workflow/worker-one-connection",
                                  .n = count,
                                  .value = (double)count / seconds,
                                  .unit = "steps/s",
                                  .rate = true,
                                  .must = bench_at_least(20000),
                                  .counts = { { "commits", (double)stats.commits } } });
    close(s.fd);
    free(s.in);
    free(s.out);
    close_program(&p);
}

/* postgres_leases.c -- how long leases take to move: a process joins, leaves in order, is killed. */
#define _GNU_SOURCE
#include "on_server.h"

#include <heddle/workflow.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARDS = 16, SLEEPERS = 32, ASLEEP_MS = 1000, BEGUN_MS = 500, PATIENCE_S = 60 };

typedef struct crew {
    on_server *o;
    hd_runtime *rt; /* of the process that looks on */
    hd_engine *engine;
    hd_pool *pool;
    int marks[2]; /* a pipe: when each action ran */
} crew;

static hd_status mark(hd_action *a, hd_value args, void *ctx) {
    uint64_t now = bench_wall_ns();
    (void)args;
    if (write(*(const int *)ctx, &now, sizeof now) < 0) _exit(1);
    return hd_action_return(a, hd_null());
}

/* Sleeps for a second, and runs the action. */
static bool register_sleeper(hd_engine *engine, hd_pool *pool) {
    static const char ir[] = "{\"heddle\":1,\"name\":\"sleeper\",\"functions\":[{\"name\":\"run\","
                             "\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},"
                             "{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":1},"
                             "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"mark\"},"
                             "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":1}],"
                             "\"edges\":[[\"in\",\"s\"],[\"s\",\"a\"],[\"a\",\"out\"]]}]}";
    hd_error error;
    hd_value v = hd_json_parse(pool, ir, sizeof ir - 1, &error);
    return !hd_workflow_register(engine, v, NULL, &error);
}

/* Runs shards until it is told to end, or is killed. */
static void serve_in_child(crew *c) {
    hd_engine *engine;
    hd_runtime *rt = NULL;
    hd_error error;
    hd_engine_options options = { .shards = SHARDS };
    hd_action_spec spec = { .name = "mark", .fn = mark, .ctx = &c->marks[1], .here = true };
    if (hd_open(c->o->url, &(hd_options){ .signals = true }, &rt, &error) ||
        hd_engine_open(rt, &options, &engine, &error) || hd_action_register(engine, &spec))
        _exit(1);
    (void)hd_runtime_run(rt);
    _exit(hd_close(rt) != HD_OK);
}

static pid_t begin(crew *c) {
    pid_t child = fork();
    if (child == 0) serve_in_child(c);
    return child;
}

static void look(crew *c) {
    struct pollfd fd = { .fd = hd_runtime_fd(c->rt), .events = POLLIN };
    (void)poll(&fd, 1, 1);
    (void)hd_runtime_pump(c->rt);
}

/* Shards whose lease names the process. */
static int held_by(crew *c, pid_t pid) {
    int held = 0;
    for (int i = 0; i < SHARDS; i++) {
        char name[40];
        snprintf(name, sizeof name, "main/lease/workflow/%d", i);
        hd_value doc = hd_read(c->rt, c->pool, hd_cell_at(c->rt, name));
        held += hd_value_as_int(hd_value_at(doc, "pid"), 0) == pid;
    }
    hd_pool_clear(c->pool);
    return held;
}

/* Seconds until the process holds as many or more; less than 0: it never does. */
static double until_held(crew *c, pid_t pid, int count, uint64_t since) {
    uint64_t end = since + PATIENCE_S * UINT64_C(1000000000);
    while (held_by(c, pid) < count && bench_wall_ns() < end) look(c);
    bool holds = held_by(c, pid) >= count;
    if (!holds) bench_wrong(c->o->b, "a lease does not move");
    return holds ? (double)(bench_wall_ns() - since) / 1e9 : -1;
}

static void report(const crew *c, const char *name, double seconds, bench_figure must) {
    bench_report(
        c->o->b,
        &(bench_row){ .name = name, .n = SHARDS, .value = seconds, .unit = "s", .must = must });
}

/* And waits until the engines have begun them: what is measured is a sleep that goes on elsewhere. */
static void start_sleepers(crew *c) {
    char id[HD_INSTANCE_ID_SIZE];
    for (int i = 0; i < SLEEPERS; i++)
        if (hd_workflow_start(c->engine, "sleeper", hd_object(), NULL, id))
            bench_wrong(c->o->b, "a workflow cannot be started");
    (void)hd_runtime_sync(c->rt);
    for (uint64_t end = bench_wall_ns() + BEGUN_MS * UINT64_C(1000000); bench_wall_ns() < end;)
        look(c);
}

/* The instances of the survivor run their action when they have slept; those of the other at the takeover. */
static double first_after(const crew *c, uint64_t since) {
    uint64_t when = 0;
    struct pollfd fd = { .fd = c->marks[0], .events = POLLIN };
    while (when < since && poll(&fd, 1, PATIENCE_S * 1000) > 0)
        if (read(c->marks[0], &when, sizeof when) != sizeof when) return -1;
    return (double)when / 1e9;
}

static void take_over(crew *c, pid_t survivor, pid_t victim) {
    start_sleepers(c);
    uint64_t killed = bench_wall_ns();
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    double first = until_held(c, survivor, SHARDS / 2 + 1, killed);
    double all = until_held(c, survivor, SHARDS, killed);
    uint64_t awake = killed + (ASLEEP_MS + 400) * UINT64_C(1000000);
    double went_on = first_after(c, awake) - (double)killed / 1e9;
    report(c, "postgres/lease-takeover", all, bench_at_most(3));
    report(c, "postgres/lease-first-instance", went_on > first ? went_on - first : 0,
           bench_at_most(0.2));
}

static void run_crew(crew *c) {
    pid_t first = begin(c);
    until_held(c, first, SHARDS, bench_wall_ns());
    if (!register_sleeper(c->engine, c->pool)) bench_wrong(c->o->b, "no workflow");
    uint64_t began = bench_wall_ns();
    pid_t second = begin(c);
    report(c, "postgres/lease-join", until_held(c, second, SHARDS / 2, began), bench_at_most(5));
    began = bench_wall_ns();
    kill(second, SIGTERM);
    report(c, "postgres/lease-leave", until_held(c, first, SHARDS, began), bench_at_most(1));
    waitpid(second, NULL, 0);
    second = begin(c);
    until_held(c, second, SHARDS / 2, bench_wall_ns());
    take_over(c, first, second);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
}

void bench_leases(on_server *o) {
    crew c = { .o = o };
    hd_engine_options options = { .observer = true };
    name_store(o);
    c.rt = open_store(o); /* the store is made before there are several programs */
    if (!c.rt || hd_close(c.rt) || pipe(c.marks)) return;
    c.rt = open_store(o);
    if (c.rt && !hd_engine_open(c.rt, &options, &c.engine, NULL) &&
        !hd_pool_open(hd_runtime_heap(c.rt), &c.pool) && !hd_runtime_follow(c.rt, "main"))
        run_crew(&c);
    hd_pool_close(c.pool);
    hd_close(c.rt);
    close(c.marks[0]);
    close(c.marks[1]);
    drop_store(o);
}

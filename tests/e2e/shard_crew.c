/* shard_crew.c -- a program that serves several spaces, for tests/server/leases: until it is killed, or told to end.
 *
 *     shard_crew STORE SPACES SHARDS     prints "ready" when its engines are open, "ran <id>" for each action of
 *                                        "tick", "held <id> <from> <until>" (ns, monotonic clock) for each of
 *                                        "narrow", of which two may run at once in a space
 *
 * On SIGTERM it closes its store, which hands its leases over. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <heddle/workflow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPACES_MAX = 64 };

static hd_runtime *rt;
static hd_engine *engines[SPACES_MAX];

static hd_status note(hd_action *a, hd_value args, void *ctx) {
    (void)args, (void)ctx;
    printf("ran %s\n", hd_action_id(a));
    fflush(stdout);
    return hd_action_return(a, hd_null());
}

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* On a thread: several may be at it at once. */
static hd_status hold(hd_action *a, hd_value args, void *ctx) {
    long long from = now_ns();
    (void)args, (void)ctx;
    nanosleep(&(struct timespec){ 0, 300000000 }, NULL);
    printf("held %s %lld %lld\n", hd_action_id(a), from, now_ns());
    fflush(stdout);
    return hd_action_return(a, hd_null());
}

/* "tick" sleeps, calls "note", and returns 7; "narrow" calls "hold", with a limit. */
static const char tick[] =
    "{\"heddle\":1,\"name\":\"tick\",\"functions\":[{\"name\":\"run\",\"nodes\":["
    "{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":0.05},"
    "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"note\"},"
    "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":7}],"
    "\"edges\":[[\"in\",\"s\"],[\"s\",\"a\"],[\"a\",\"out\"]]}]}";
static const char narrow[] =
    "{\"heddle\":1,\"name\":\"narrow\",\"functions\":[{\"name\":\"run\",\"nodes\":["
    "{\"id\":\"in\",\"kind\":\"ENTRY\"},"
    "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"hold\",\"limit\":{\"key\":\"k\",\"most\":2}},"
    "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":7}],"
    "\"edges\":[[\"in\",\"a\"],[\"a\",\"out\"]]}]}";

static hd_status register_flow(hd_engine *e, const char *ir, hd_error *error) {
    hd_pool *pool;
    hd_status status = hd_pool_open(hd_runtime_heap(rt), &pool);
    if (status) return status;
    hd_value v = hd_json_parse(pool, ir, strlen(ir), error);
    status = hd_workflow_register(e, v, NULL, error);
    hd_pool_close(pool);
    return status;
}

static hd_status serve(int i, uint32_t shards, hd_error *error) {
    char space[20];
    hd_engine_options options = { .space = space, .shards = shards };
    hd_action_spec spec = { .name = "note", .fn = note, .here = true };
    hd_action_spec held = { .name = "hold", .fn = hold };
    snprintf(space, sizeof space, "space%d", i);
    hd_status status = hd_engine_open(rt, &options, &engines[i], error);
    if (!status) status = hd_action_register(engines[i], &spec);
    if (!status) status = hd_action_register(engines[i], &held);
    if (!status) status = register_flow(engines[i], tick, error);
    return status ? status : register_flow(engines[i], narrow, error);
}

int main(int argc, char **argv) {
    hd_error error = { 0 };
    if (argc != 4) return 2;
    int spaces = atoi(argv[2]);
    if (spaces > SPACES_MAX) return 2;
    hd_status status = hd_open(argv[1], &(hd_options){ .signals = true }, &rt, &error);
    for (int i = 0; i < spaces && !status; i++) status = serve(i, (uint32_t)atoi(argv[3]), &error);
    if (status) return fprintf(stderr, "%s\n", error.message), 1;
    puts("ready");
    fflush(stdout);
    hd_runtime_run(rt);
    return hd_close(rt) != HD_OK;
}

/* workflow_shop.c -- a program for the checks of workflow.sh: it runs workflows with actions of its own, until it is
 * killed.
 *
 *     workflow_shop FILE [CALLS]     prints "ready" when it can be asked; each call of an action is a line in CALLS
 *     workflow_shop FILE - serve     has no actions: workers come to its socket
 *
 * Of a store on a server the sockets are ./live.sock and ./workers.sock, in the checks of the command (HD_E2E).
 *
 * Actions: the seed's fetch_items, process_item, validate_chunk, aggregate_chunk, finalize; echo, which returns its
 * first argument; slow, which takes a while; fail, which raises ValueError, with its argument
 * if it has one. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <heddle/inspect.h>
#include <heddle/workflow.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static FILE *calls;

static void note(const char *action) {
    if (!calls) return;
    fprintf(calls, "%s\n", action);
    fflush(calls);
}

static hd_status fetch_items(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    hd_value items = hd_array();
    note(ctx);
    for (int64_t i = 0; i < hd_value_as_int(hd_value_at(args, "count"), 0); i++)
        items = hd_array_append(p, items, hd_object_set(p, hd_object(), "id", hd_int(p, i)));
    return hd_action_return(a, items);
}

static hd_status process_item(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    int64_t id = hd_value_as_int(hd_value_at(hd_value_index(args, 0), "id"), -1);
    note(ctx);
    return hd_action_return(a, hd_object_set(p, hd_object(), "score", hd_int(p, id * 10)));
}

static int64_t sum_of(hd_value items, const char *key, bool *positive) {
    int64_t sum = 0;
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        int64_t n = hd_value_as_int(hd_value_at(it.value, key), 0);
        sum += n;
        *positive = *positive && n > 0;
    }
    return sum;
}

static hd_status validate_chunk(hd_action *a, hd_value args, void *ctx) {
    bool positive = true;
    note(ctx);
    sum_of(hd_value_at(args, "items"), "score", &positive);
    return hd_action_return(a, hd_bool(positive));
}

static hd_status aggregate_chunk(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    bool ignored = true;
    int64_t total = sum_of(hd_value_at(args, "items"), "score", &ignored);
    note(ctx);
    if (!hd_value_as_bool(hd_value_at(args, "is_valid"), false)) total = 0;
    return hd_action_return(a, hd_object_set(p, hd_object(), "total", hd_int(p, total)));
}

static hd_status finalize(hd_action *a, hd_value args, void *ctx) {
    bool ignored = true;
    note(ctx);
    int64_t sum = sum_of(hd_value_index(args, 0), "total", &ignored);
    return hd_action_return(a, hd_int(hd_action_pool(a), sum));
}

static hd_status echo(hd_action *a, hd_value args, void *ctx) {
    note(ctx);
    return hd_action_return(a, hd_value_index(args, 0));
}

static hd_status slow(hd_action *a, hd_value args, void *ctx) {
    struct timespec pause = { 0, 50000000 };
    note(ctx);
    nanosleep(&pause, NULL);
    return hd_action_return(a, hd_value_index(args, 0));
}

static hd_status fail(hd_action *a, hd_value args, void *ctx) {
    note(ctx);
    return hd_action_raise(a, "ValueError", "%s",
                           hd_value_as_text(hd_value_index(args, 0), "it does not work"));
}

static int stop(hd_runtime *rt, const hd_error *error) {
    fprintf(stderr, "%s\n",
            error && *error->message ? error->message : hd_runtime_error(rt)->message);
    return 1;
}

int main(int count, char **words) {
    static char names[][16] = { "fetch_items", "process_item", "validate_chunk", "aggregate_chunk",
                                "finalize",    "echo",         "slow",           "fail" };
    static const hd_step_fn functions[] = {
        fetch_items, process_item, validate_chunk, aggregate_chunk, finalize, echo, slow, fail
    };
    hd_runtime *rt;
    hd_engine *engine;
    hd_error error = { 0 };
    if (count < 2) return 2;
    bool serve = count > 3 && strcmp(words[3], "serve") == 0;
    if (count > 2 && !serve) calls = fopen(words[2], "a");
    if (hd_open(words[1], NULL, &rt, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    if (hd_engine_open(rt, NULL, &engine, &error)) return stop(rt, &error);
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !serve; i++)
        if (hd_action_register(
                engine, &(hd_action_spec){ .name = names[i], .fn = functions[i], .ctx = names[i] }))
            return stop(rt, NULL);
    bool remote = strstr(words[1], "://");
    hd_engine_serve_options workers = { .socket = remote ? "workers.sock" : NULL };
    hd_serve_options askers = { .socket = remote ? "live.sock" : NULL };
    if (serve && hd_engine_serve(engine, &workers)) return stop(rt, NULL);
    if ((!remote || getenv("HD_E2E")) && hd_runtime_serve(rt, &askers)) return stop(rt, NULL);
    printf("ready\n");
    fflush(stdout);
    return hd_runtime_run(rt) ? stop(rt, NULL) : 0;
}

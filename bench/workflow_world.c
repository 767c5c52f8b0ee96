/* workflow_world.c -- see workflow_world.h. */
#define _GNU_SOURCE
#include "workflow_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t world_calls;
void (*world_called)(uint64_t calls);

/* ---- A store with an engine --------------------------------------------------------------------- */

/* Each result differs from the one before: a variable that has a value already is not stored again. */
static hd_status next(hd_action *a, hd_value args, void *ctx) {
    (void)args, (void)ctx;
    world_calls++;
    if (world_called) world_called(world_calls);
    return hd_action_return(a, hd_int(NULL, 1000 + (int64_t)(world_calls % 1000)));
}

void bench_file_name(char out[512], const char *name) {
    const char *folder = getenv("HD_BENCH_DIR");
    snprintf(out, 512, "%s/%s", folder ? folder : ".", name);
}

void world_remove_file(const char *file) {
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    char path[600];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", file, ends[i]);
        unlink(path);
    }
}

bool world_start(workflow_world *w, bench *b, const char *file, const char *vfs) {
    return world_start_with(w, b, file, vfs, NULL);
}

bool world_start_with(workflow_world *w, bench *b, const char *file, const char *vfs,
                      const hd_env *env) {
    hd_options options = { .vfs = vfs, .env = env };
    hd_error error = { 0 };
    *w = (workflow_world){ .b = b, .file = file };
    if (hd_open(file, &options, &w->rt, &error) ||
        hd_engine_open(w->rt, NULL, &w->engine, &error) ||
        hd_pool_open(hd_runtime_heap(w->rt), &w->pool) ||
        hd_action_register(w->engine,
                           &(hd_action_spec){ .name = "next", .fn = next, .here = true })) {
        bench_wrong(b, "an engine on %s: %s", file ? file : "memory", error.message);
        return false;
    }
    return true;
}

void world_stop(workflow_world *w) {
    hd_pool_close(w->pool);
    if (hd_close(w->rt)) bench_wrong(w->b, "close: the store could not be closed");
}

hd_engine_stats world_stats(const workflow_world *w) {
    hd_engine_stats stats;
    hd_engine_stat(w->engine, &stats);
    return stats;
}

/* ---- Workflows ------------------------------------------------------------------------------------ */

static void use_ir(workflow_world *w, char *text) {
    hd_error error = { 0 };
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(w->rt), &pool)) abort();
    hd_value ir = hd_json_parse(pool, text, strlen(text), &error);
    if (!hd_value_exists(ir) || hd_workflow_register(w->engine, ir, NULL, &error))
        bench_wrong(w->b, "a workflow is refused: %s", error.message);
    hd_pool_close(pool);
    hd_runtime_sync(w->rt);
    free(text);
}

/* A line of `count` nodes "n0", "n1", ... between ENTRY and an end. `node` has one %d for the number. */
static void write_line(FILE *out, const char *node, int count) {
    for (int i = 0; i < count; i++) fprintf(out, node, i);
}
static void write_edges(FILE *out, int count) {
    for (int i = 1; i < count; i++) fprintf(out, ",[\"n%d\",\"n%d\"]", i - 1, i);
}

#define ACTION_NEXT "\"kind\":\"ACTION\",\"action\":\"next\",\"into\":[\"name\",\"r\"]}"

void world_sequence_of(workflow_world *w, const char *name, const char *action, int steps) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(
        out,
        "{\"heddle\":1,\"name\":\"%s\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":\"in\","
        "\"kind\":\"ENTRY\"}",
        name);
    for (int i = 0; i < steps; i++)
        fprintf(out,
                ",{\"id\":\"n%d\",\"kind\":\"ACTION\",\"action\":\"%s\",\"into\":[\"name\",\"r\"]}",
                i, action);
    fprintf(out,
            ",{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"r\"]}],\"edges\":[[\"in\","
            "\"n0\"]");
    write_edges(out, steps);
    fprintf(out, ",[\"n%d\",\"out\"]]}]}", steps - 1);
    fclose(out);
    use_ir(w, text);
}

void world_sequence(workflow_world *w, const char *name, int steps) {
    world_sequence_of(w, name, "next", steps);
}

void world_wide(workflow_world *w, const char *name, int nodes) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(
        out,
        "{\"heddle\":1,\"name\":\"%s\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":\"in\","
        "\"kind\":\"ENTRY\"},{\"id\":\"first\"," ACTION_NEXT,
        name);
    write_line(out, ",{\"id\":\"n%d\",\"kind\":\"CALC\",\"do\":[]}", nodes);
    fprintf(out,
            ",{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"r\"]}],\"edges\":[[\"in\","
            "\"first\"],[\"first\",\"n0\"]");
    write_edges(out, nodes);
    fprintf(out, ",[\"n%d\",\"out\"]]}]}", nodes - 1);
    fclose(out);
    use_ir(w, text);
}

static void use_nodes(workflow_world *w, const char *name, const char *nodes, const char *edges) {
    char *text;
    if (asprintf(&text,
                 "{\"heddle\":1,\"name\":\"%s\",\"inputs\":[{\"name\":\"n\",\"default\":1}],"
                 "\"functions\":[{\"name\":\"run\",\"params\":[\"n\"],\"nodes\":["
                 "{\"id\":\"in\",\"kind\":\"ENTRY\"},%s],\"edges\":[%s]}]}",
                 name, nodes, edges) < 0)
        abort();
    use_ir(w, text);
}

void world_fan(workflow_world *w) {
    use_nodes(
        w, "fan",
        "{\"id\":\"fan\",\"kind\":\"FAN_HEAD\",\"over\":[\"call\",\"range\",[[\"name\",\"n\"]]],"
        "\"into\":[\"name\",\"i\"]},{\"id\":\"one\"," ACTION_NEXT ",{\"id\":\"all\",\"kind\":"
        "\"BARRIER\",\"give\":[\"name\",\"r\"],\"into\":[\"name\",\"all\"]},{\"id\":\"out\","
        "\"kind\":\"RETURN\",\"value\":[\"call\",\"len\",[[\"name\",\"all\"]]]}",
        "[\"in\",\"fan\"],[\"fan\",\"one\",\"ELEM\"],[\"one\",\"all\",\"JOIN\"],[\"all\","
        "\"out\"]");
}

void world_loop(workflow_world *w) {
    use_nodes(
        w, "loop",
        "{\"id\":\"head\",\"kind\":\"LOOP_HEAD\",\"over\":[\"call\",\"range\",[[\"name\",\"n\"]]]"
        ",\"into\":[\"name\",\"i\"]},{\"id\":\"one\"," ACTION_NEXT
        ",{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"n\"]}",
        "[\"in\",\"head\"],[\"head\",\"one\",\"CONTINUE\"],[\"head\",\"out\",\"BREAK\"],["
        "\"one\",\"head\",\"BACK\"]");
}

void world_wait(workflow_world *w) {
    use_nodes(w, "wait",
              "{\"id\":\"wait\",\"kind\":\"WAIT\",\"signal\":\"go\"},{\"id\":\"out\",\"kind\":"
              "\"RETURN\"}",
              "[\"in\",\"wait\"],[\"wait\",\"out\"]");
}

/* ---- Running --------------------------------------------------------------------------------------- */

/* One at a time: the program has nothing to do but wait for each. */
static void run_each(workflow_world *w, const char *name, uint64_t total) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_pool *pool;
    hd_value result;
    if (hd_pool_open(hd_runtime_heap(w->rt), &pool)) abort();
    for (uint64_t i = 0; i < total; i++) {
        hd_status status = hd_workflow_start(w->engine, name, hd_object(), NULL, id);
        if (!status) status = hd_workflow_await(w->engine, id, pool, &result);
        if (status) bench_wrong(w->b, "%s: %s", name, hd_status_name(status));
        hd_pool_clear(pool);
    }
    hd_pool_close(pool);
}

/* Instances that keep each other going: each that ends starts the next. */
typedef struct crowd {
    workflow_world *w;
    const char *name;
    uint64_t total, started, done;
} crowd;

static void on_end(const char *id, hd_status status, hd_value result, void *ctx);

static void start_one(crowd *c) {
    char id[HD_INSTANCE_ID_SIZE];
    c->started++;
    if (!hd_workflow_start(c->w->engine, c->name, hd_object(), NULL, id) &&
        !hd_workflow_then(c->w->engine, id, on_end, c))
        return;
    bench_wrong(c->w->b, "%s cannot be started", c->name);
    hd_runtime_stop(c->w->rt);
}

static void on_end(const char *id, hd_status status, hd_value result, void *ctx) {
    (void)id, (void)result;
    crowd *c = ctx;
    if (status) bench_wrong(c->w->b, "%s: %s", c->name, hd_status_name(status));
    if (++c->done == c->total) hd_runtime_stop(c->w->rt);
    else if (c->started < c->total) start_one(c);
}

void world_run(workflow_world *w, const char *name, uint64_t total, uint64_t in_flight) {
    if (in_flight == 1) {
        run_each(w, name, total);
        return;
    }
    crowd c = { .w = w, .name = name, .total = total };
    while (c.started < total && c.started < in_flight) start_one(&c);
    hd_status status = hd_runtime_run(w->rt);
    if (status) bench_wrong(w->b, "run: %s", hd_status_name(status));
}

void world_run_one(workflow_world *w, const char *name, int64_t n) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_pool *pool;
    hd_value result;
    if (hd_pool_open(hd_runtime_heap(w->rt), &pool)) abort();
    hd_value input = hd_object_set(pool, hd_object(), "n", hd_int(pool, n));
    hd_status status = hd_workflow_start(w->engine, name, input, NULL, id);
    if (!status) status = hd_workflow_await(w->engine, id, pool, &result);
    if (status || hd_value_as_int(result, -1) != n)
        bench_wrong(w->b, "%s of %lld: %s", name, (long long)n, hd_status_name(status));
    hd_pool_close(pool);
}

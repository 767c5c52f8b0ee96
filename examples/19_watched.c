/* 19_watched.c -- two workflows write nothing but their own state; a computation adds up what they have counted so far,
 * and an effect shows it: an instance's variables are cells like any other. */
#include <heddle.h>
#include <heddle/workflow_build.h>

#include <stdio.h>

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    return hd_action_return(a, hd_value_at(args, "boxes"));
}

static hd_value counting(hd_pool *pool, hd_error *error) {
    hd_flow *f;
    hd_value ir;
    if (hd_flow_open(pool, "counting", &f)) return (hd_value){ 0 };
    hd_flow_input(f, "boxes", hd_array());
    hd_flow_do(f, "total = 0");
    hd_flow_for(f, "n", "boxes");
    hd_flow_action(f, "counted", "count", "boxes=n");
    hd_flow_do(f, "total += counted");
    hd_flow_end(f);
    hd_flow_return(f, "total");
    hd_flow_ir(f, &ir, error);
    hd_flow_close(f);
    return ir;
}

/* What an instance has counted: its result if it is over, else its variable. */
static int64_t counted(hd_tx *tx, const char *cell) {
    hd_value instance = hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), cell));
    hd_value result = hd_value_at(instance, "result");
    hd_value so_far = hd_value_at(hd_value_at(instance, "vars"), "total");
    return hd_value_as_int(hd_value_exists(result) ? result : so_far, 0);
}

static hd_status add_up(hd_tx *tx, void *ctx) {
    (void)ctx;
    int64_t n =
        counted(tx, "main/workflow/counting/north") + counted(tx, "main/workflow/counting/south");
    return hd_tx_set(tx, hd_cell_at(hd_tx_runtime(tx), "main/total"), hd_int(hd_tx_pool(tx), n));
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("total %lld\n", (long long)hd_value_as_int(v, 0));
}

static hd_status start(hd_engine *engine, hd_pool *pool, const char *key, const char *boxes) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_value input = hd_object_set(pool, hd_object(), "boxes",
                                   hd_json_parse(pool, boxes, __builtin_strlen(boxes), NULL));
    return hd_workflow_start(engine, "counting", input, &(hd_start_options){ .key = key }, id);
}

int main(void) {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
    hd_error error = { 0 };
    hd_value result;
    if (hd_open(NULL, NULL, &rt, &error) || hd_engine_open(rt, NULL, &engine, &error)) return 1;
    hd_action_register(engine, &(hd_action_spec){ .name = "count", .fn = count, .here = true });
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value ir = counting(pool, &error);
    hd_status status =
        hd_value_exists(ir) ? hd_workflow_register(engine, ir, NULL, &error) : HD_FAILED;
    if (status) fprintf(stderr, "%s\n", error.message);
    hd_compute(rt, "add_up", add_up, NULL, hd_cell_at(rt, "main/total"));
    hd_sink(rt, hd_cell_at(rt, "main/total"), show, NULL);
    hd_runtime_settle(rt);
    if (!status) status = start(engine, pool, "north", "[3, 4]");
    if (!status) status = hd_workflow_await(engine, "counting/north", pool, &result);
    hd_runtime_settle(rt);
    if (!status) status = start(engine, pool, "south", "[10, 20, 30]");
    if (!status) status = hd_workflow_await(engine, "counting/south", pool, &result);
    hd_runtime_settle(rt);
    hd_pool_close(pool);
    hd_close(rt);
    return status != HD_OK;
}

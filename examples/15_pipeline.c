/* 15_pipeline.c -- a workflow: fetch, process in parallel, aggregate in a loop. It prints 270. */
#include <heddle.h>
#include <heddle/workflow_build.h>

#include <stdio.h>

/* ---- actions: functions that do something */

static hd_status fetch_items(hd_action *a, hd_value args, void *ctx) {
    hd_pool *pool = hd_action_pool(a);
    hd_value items = hd_array();
    (void)ctx;
    for (int64_t i = 0; i < hd_value_as_int(hd_value_at(args, "count"), 0); i++)
        items = hd_array_append(pool, items, hd_int(pool, i));
    return hd_action_return(a, items);
}

static hd_status process_item(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    int64_t id = hd_value_as_int(hd_value_at(args, "item"), 0);
    return hd_action_return(a, hd_int(hd_action_pool(a), id * 10));
}

static int64_t sum_of(hd_value scores) {
    int64_t sum = 0;
    for (hd_iter it = hd_iter_of(scores); hd_iter_next(&it);) sum += hd_value_as_int(it.value, 0);
    return sum;
}

static hd_status validate_chunk(hd_action *a, hd_value args, void *ctx) {
    bool valid = true;
    (void)ctx;
    for (hd_iter it = hd_iter_of(hd_value_at(args, "scores")); hd_iter_next(&it);)
        valid = valid && hd_value_as_int(it.value, 0) > 0;
    return hd_action_return(a, hd_bool(valid));
}

static hd_status aggregate_chunk(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    bool valid = hd_value_as_bool(hd_value_at(args, "is_valid"), false);
    int64_t total = valid ? sum_of(hd_value_at(args, "scores")) : 0;
    return hd_action_return(a, hd_int(hd_action_pool(a), total));
}

static hd_status finalize(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    int64_t total = sum_of(hd_value_at(args, "totals"));
    return hd_action_return(a, hd_int(hd_action_pool(a), total));
}

/* ---- the workflow: which of them, in which order, with what */

static hd_value data_pipeline(hd_pool *pool, hd_error *error) {
    hd_flow *f;
    hd_value ir;
    if (hd_flow_open(pool, "data_pipeline", &f)) return (hd_value){ 0 };
    hd_flow_input(f, "fan_out", hd_int(pool, 8));
    hd_flow_input(f, "loop_iters", hd_int(pool, 4));

    hd_flow_action(f, "items", "fetch_items", "count=fan_out");

    hd_flow_each(f, "item", "items"); /* all at once */
    hd_flow_action(f, "score", "process_item", "item=item");
    hd_flow_join(f, "scores", "score");

    hd_flow_do(f, "size = len(scores) // loop_iters; totals = []");
    hd_flow_for(f, "i", "range(loop_iters)"); /* one after the other */
    hd_flow_do(f, "chunk = scores[i * size:(i + 1) * size]");
    hd_flow_action(f, "is_valid", "validate_chunk", "scores=chunk");
    hd_flow_action(f, "total", "aggregate_chunk", "scores=chunk, is_valid=is_valid");
    hd_flow_do(f, "totals.append(total)");
    hd_flow_end(f);

    hd_flow_action(f, "result", "finalize", "totals=totals");
    hd_flow_return(f, "result");
    hd_flow_ir(f, &ir, error);
    hd_flow_close(f);
    return ir;
}

int main(void) {
    static const hd_action_spec actions[] = { { .name = "fetch_items", .fn = fetch_items },
                                              { .name = "process_item", .fn = process_item },
                                              { .name = "validate_chunk", .fn = validate_chunk },
                                              { .name = "aggregate_chunk", .fn = aggregate_chunk },
                                              { .name = "finalize", .fn = finalize } };
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
    hd_error error = { 0 };
    hd_value result;
    char id[HD_INSTANCE_ID_SIZE];
    if (hd_open("pipeline.db", NULL, &rt, &error) || hd_engine_open(rt, NULL, &engine, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        hd_action_register(engine, &actions[i]);
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value ir = data_pipeline(pool, &error);
    hd_status status =
        hd_value_exists(ir) ? hd_workflow_register(engine, ir, NULL, &error) : HD_FAILED;
    if (status) fprintf(stderr, "%s\n", error.message);
    if (!status) status = hd_workflow_start(engine, "data_pipeline", hd_object(), NULL, id);
    if (!status) status = hd_workflow_await(engine, id, pool, &result);
    if (!status) printf("%lld\n", (long long)hd_value_as_int(result, -1));
    hd_pool_close(pool);
    hd_close(rt);
    return status != HD_OK;
}

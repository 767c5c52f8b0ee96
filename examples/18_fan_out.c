/* 18_fan_out.c -- 100,000 items, a thousand of them open at a time, in one instance. */
#include <heddle.h>
#include <heddle/workflow_build.h>

#include <stdio.h>

static hd_status square(hd_action *a, hd_value args, void *ctx) {
    int64_t n = hd_value_as_int(hd_value_at(args, "n"), 0);
    ++*(int64_t *)ctx;
    return hd_action_return(a, hd_int(hd_action_pool(a), n * n % 7));
}

static hd_value squares(hd_pool *pool, hd_error *error) {
    hd_flow *f;
    hd_value ir;
    if (hd_flow_open(pool, "squares", &f)) return (hd_value){ 0 };
    hd_flow_input(f, "count", hd_int(pool, 100000));
    hd_flow_each(f, "n", "range(count)");
    hd_flow_window(f, 1000);
    hd_flow_action(f, "r", "square", "n=n");
    hd_flow_join(f, "results", "r");
    hd_flow_return(f, "[len(results), sum(results)]");
    hd_flow_ir(f, &ir, error);
    hd_flow_close(f);
    return ir;
}

int main(void) {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
    hd_error error = { 0 };
    hd_value result;
    int64_t calls = 0;
    char id[HD_INSTANCE_ID_SIZE];
    if (hd_open(NULL, NULL, &rt, &error) || hd_engine_open(rt, NULL, &engine, &error)) return 1;
    hd_action_register(
        engine, &(hd_action_spec){ .name = "square", .fn = square, .ctx = &calls, .here = true });
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value ir = squares(pool, &error);
    hd_status status =
        hd_value_exists(ir) ? hd_workflow_register(engine, ir, NULL, &error) : HD_FAILED;
    if (status) fprintf(stderr, "%s\n", error.message);
    if (!status) status = hd_workflow_start(engine, "squares", hd_object(), NULL, id);
    if (!status) status = hd_workflow_await(engine, id, pool, &result);
    if (!status) {
        printf("%lld calls\n", (long long)calls);
        printf("%s\n", hd_json_print(pool, result, HD_JSON_COMPACT, NULL));
    }
    hd_pool_close(pool);
    hd_close(rt);
    return status != HD_OK;
}

/* 17_approval.c -- a request waits for an approval for up to a month. Time is the lab's: the program takes none. */
#include <heddle.h>
#include <heddle/lab.h>
#include <heddle/workflow_build.h>

#include <stdio.h>

#define DAY_MS (24 * UINT64_C(3600000))

static hd_status remind(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    printf("  reminder %lld\n", (long long)hd_value_as_int(hd_value_at(args, "week"), 0));
    return hd_action_return(a, hd_null());
}

static hd_value approval(hd_pool *pool, hd_error *error) {
    hd_flow *f;
    hd_value ir;
    if (hd_flow_open(pool, "approval", &f)) return (hd_value){ 0 };
    hd_flow_for(f, "week", "range(1, 5)");
    hd_flow_try(f);
    hd_flow_wait(f, "answer", "answer", "7 * 86400");
    hd_flow_return(f, "f\"{answer['by']} says {answer['word']}\"");
    hd_flow_except(f, "TimeoutError", NULL);
    hd_flow_action(f, NULL, "remind", "week=week");
    hd_flow_end(f);
    hd_flow_end(f);
    hd_flow_return(f, "'nobody has answered'");
    hd_flow_ir(f, &ir, error);
    hd_flow_close(f);
    return ir;
}

/* A request that is answered after so many days; 0: never. */
static hd_status request(hd_lab_env *world, hd_engine *engine, hd_runtime *rt, int days) {
    hd_pool *pool;
    hd_value result;
    char id[HD_INSTANCE_ID_SIZE];
    hd_status status = hd_pool_open(hd_runtime_heap(rt), &pool);
    if (status) return status;
    status = hd_workflow_start(engine, "approval", hd_object(), NULL, id);
    for (int day = 0; day < days && !status; day++) {
        hd_lab_env_advance_ms(world, DAY_MS);
        status = hd_runtime_sync(rt);
    }
    hd_value answer = hd_object_set(pool, hd_object(), "by", hd_string(pool, "Ada"));
    answer = hd_object_set(pool, answer, "word", hd_string(pool, "yes"));
    if (days && !status) status = hd_workflow_signal(engine, id, "answer", answer);
    if (!status) status = hd_workflow_await(engine, id, pool, &result);
    if (!status) printf("%s\n", hd_value_as_text(result, "?"));
    hd_pool_close(pool);
    return status;
}

int main(void) {
    hd_lab_env *world = hd_lab_env_open();
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
    hd_error error = { 0 };
    if (hd_open(NULL, &(hd_options){ .env = hd_lab_env_of(world) }, &rt, &error) ||
        hd_engine_open(rt, NULL, &engine, &error))
        return 1;
    hd_action_register(engine, &(hd_action_spec){ .name = "remind", .fn = remind, .here = true });
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value ir = approval(pool, &error);
    hd_status status =
        hd_value_exists(ir) ? hd_workflow_register(engine, ir, NULL, &error) : HD_FAILED;
    if (status) fprintf(stderr, "%s\n", error.message);
    printf("answered after 16 days\n");
    if (!status) status = request(world, engine, rt, 16);
    printf("never answered\n");
    if (!status) status = request(world, engine, rt, 0);
    hd_pool_close(pool);
    hd_close(rt);
    hd_lab_env_close(world);
    return status != HD_OK;
}

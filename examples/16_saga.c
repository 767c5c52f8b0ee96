/* 16_saga.c -- a journey is booked in three steps; when one fails, what was booked is given back, in reverse. */
#include <heddle.h>
#include <heddle/workflow_build.h>

#include <stdio.h>
#include <string.h>

static hd_status book(hd_action *a, hd_value args, void *ctx) {
    const char *what = hd_value_as_text(hd_value_at(args, "what"), "?");
    (void)ctx;
    if (!strcmp(what, "car")) {
        printf("book %s, attempt %u: none left\n", what, hd_action_attempt(a));
        return hd_action_raise(a, "LookupError", "no %s left", what);
    }
    printf("book %s\n", what);
    return hd_action_return(a, hd_string_f(hd_action_pool(a), "%s-1", what));
}

static hd_status give_back(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    printf("give back %s\n", hd_value_as_text(hd_value_at(args, "booking"), "?"));
    return hd_action_return(a, hd_null());
}

static hd_value journey(hd_pool *pool, hd_error *error) {
    hd_flow *f;
    hd_value ir;
    if (hd_flow_open(pool, "journey", &f)) return (hd_value){ 0 };
    hd_flow_do(f, "booked = []");
    hd_flow_try(f);
    hd_flow_for(f, "what", "['flight', 'hotel', 'car']");
    hd_flow_action(f, "booking", "book", "what=what");
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2, .backoff_s = 0.01 });
    hd_flow_do(f, "booked.append(booking)");
    hd_flow_end(f);
    hd_flow_except(f, "Exception", "e");
    hd_flow_for(f, "booking",
                "list(reversed(booked))"); /* the list is stored: a restart goes on in it */
    hd_flow_action(f, NULL, "give_back", "booking=booking");
    hd_flow_end(f);
    hd_flow_return(f, "f'nothing booked: {e}'");
    hd_flow_end(f);
    hd_flow_return(f, "', '.join(booked)");
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
    char id[HD_INSTANCE_ID_SIZE];
    if (hd_open("journey.db", NULL, &rt, &error) || hd_engine_open(rt, NULL, &engine, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    hd_action_register(engine, &(hd_action_spec){ .name = "book", .fn = book });
    hd_action_register(engine, &(hd_action_spec){ .name = "give_back", .fn = give_back });
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value ir = journey(pool, &error);
    hd_status status =
        hd_value_exists(ir) ? hd_workflow_register(engine, ir, NULL, &error) : HD_FAILED;
    if (status) fprintf(stderr, "%s\n", error.message);
    if (!status) status = hd_workflow_start(engine, "journey", hd_object(), NULL, id);
    if (!status) status = hd_workflow_await(engine, id, pool, &result);
    if (!status) printf("%s\n", hd_value_as_text(result, "?"));
    hd_pool_close(pool);
    hd_close(rt);
    return status != HD_OK;
}

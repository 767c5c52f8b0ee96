/* delivery.c -- the delivery of an order: its steps, and the workflow that puts them together. */
#define _POSIX_C_SOURCE 200809L
#include "shop/delivery.h"

#include <heddle/workflow_build.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PACKING_MS = 400 };

/* ---- Steps ------------------------------------------------------------------------------- */

static void tell(const delivery *d, const char *step, hd_value args) {
    printf("  %s|   process %d: %s order %s%s\n", d->colour, (int)getpid(), step,
           hd_value_as_text(hd_value_at(args, "order"), "?"), d->plain);
    fflush(stdout); /* the process may be killed */
}

static hd_status return_process(hd_action *a) {
    return hd_action_return(a, hd_int(hd_action_pool(a), getpid()));
}

static hd_status charge(hd_action *a, hd_value args, void *ctx) {
    delivery *d = ctx;
    d->charged++;
    char step[48];
    int64_t cents = hd_value_as_int(hd_value_at(args, "cents"), 0);
    snprintf(step, sizeof step, "charge %" PRId64 ".%02d for", cents / 100, (int)(cents % 100));
    tell(d, step, args);
    return return_process(a);
}

static hd_status pack(hd_action *a, hd_value args, void *ctx) {
    delivery *d = ctx;
    struct timespec while_packing = { .tv_nsec = PACKING_MS * 1000000L };
    d->packed++;
    tell(d, "pack", args);
    if (d->meanwhile) d->meanwhile(d);
    nanosleep(&while_packing, NULL);
    return return_process(a);
}

static hd_status ship(hd_action *a, hd_value args, void *ctx) {
    delivery *d = ctx;
    d->shipped++;
    tell(d, "ship", args);
    return return_process(a);
}

/* ---- The workflow ------------------------------------------------------------------------ */

static hd_status write_flow(hd_pool *pool, hd_value *ir, hd_error *error) {
    hd_flow *f;
    hd_status status = hd_flow_open(pool, DELIVERY, &f);
    if (status) return status;
    hd_flow_input(f, "order", (hd_value){ 0 });
    hd_flow_input(f, "cents", (hd_value){ 0 });
    hd_flow_action(f, "charged", "charge", "order=order, cents=cents");
    hd_flow_action(f, "packed", "pack", "order=order");
    hd_flow_action(f, "shipped", "ship", "order=order");
    hd_flow_return(f, "{'charged': charged, 'packed': packed, 'shipped': shipped}");
    status = hd_flow_ir(f, ir, error);
    hd_flow_close(f);
    return status;
}

static hd_status register_flow(delivery *d, hd_error *error) {
    hd_pool *pool;
    hd_value ir;
    hd_status status = hd_pool_open(hd_runtime_heap(d->rt), &pool);
    if (status) return status;
    status = write_flow(pool, &ir, error);
    if (!status) status = hd_workflow_register(d->engine, ir, NULL, error);
    hd_pool_close(pool);
    return status;
}

static hd_status register_steps(delivery *d) {
    const hd_action_spec steps[] = { { .name = "charge", .fn = charge, .ctx = d, .here = true },
                                     { .name = "pack", .fn = pack, .ctx = d },
                                     { .name = "ship", .fn = ship, .ctx = d, .here = true } };
    hd_status status = HD_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !status; i++)
        status = hd_action_register(d->engine, &steps[i]);
    return status;
}

/* ---- Opening and starting ---------------------------------------------------------------- */

hd_status delivery_open(delivery *d, const char *file, hd_error *error) {
    hd_status status = hd_open(file, NULL, &d->rt, error);
    if (!status) status = hd_engine_open(d->rt, NULL, &d->engine, error);
    if (!status) status = register_steps(d);
    return status ? status : register_flow(d, error);
}

hd_status delivery_close(delivery *d) {
    hd_status status = hd_close(d->rt); /* closes the engine, too */
    d->rt = NULL;
    d->engine = NULL;
    return status;
}

hd_status delivery_start(delivery *d, const char *order, int64_t cents,
                         char id[HD_INSTANCE_ID_SIZE]) {
    hd_pool *pool;
    hd_status status = hd_pool_open(hd_runtime_heap(d->rt), &pool);
    if (status) return status;
    hd_value input = hd_object_set(pool, hd_object(), "order", hd_string(pool, order));
    input = hd_object_set(pool, input, "cents", hd_int(pool, cents));
    status = hd_workflow_start(d->engine, DELIVERY, input, &(hd_start_options){ .key = order }, id);
    hd_pool_close(pool);
    return status == HD_EXISTS ? HD_OK : status;
}

/* delivery.h -- how an order of the tea shop gets to its customer: a workflow of three steps. `heddle demo` kills the
 * process that runs it, and another goes on.
 *
 *     charge --> pack (takes a while) --> ship
 *
 * Each step returns the number of the process that did it, so that the result tells who did what. */
#ifndef EXAMPLES_DELIVERY_H
#define EXAMPLES_DELIVERY_H

#include <heddle/workflow.h>

#define DELIVERY "delivery" /* the workflow's name */

typedef struct delivery {
    hd_runtime *rt;
    hd_engine *engine;
    unsigned charged, packed, shipped; /* how often this process has begun each step */
    const char *colour, *plain;        /* escape sequences around what is printed, or "" */
    void (*meanwhile)(
        struct delivery *of); /* called while it packs, on a thread of the engine; or NULL */
    void *meanwhile_ctx;
} delivery;

/* Opens the file with an engine, and registers the steps and the workflow. What an earlier process has left unfinished
 * goes on when the runtime is pumped. Close it in any case. */
hd_status delivery_open(delivery *d, const char *file, hd_error *error);
hd_status delivery_close(delivery *d);

/* Begins to deliver an order: once, however often it is called. `id` gets the instance's name. */
hd_status delivery_start(delivery *d, const char *order, int64_t cents,
                         char id[HD_INSTANCE_ID_SIZE]);

#endif

/* store_world.h -- a lab `l` with two runtimes, `a` and `b`, for unit tests of the store. Include last:
 * the names are short. */
#ifndef HEDDLE_STORE_WORLD_H
#define HEDDLE_STORE_WORLD_H

#include "lab_store.h"

static lab *l;
static lab_runtime *a, *b;

static inline int open_two(void **state) {
    (void)state;
    l = lab_open();
    a = lab_runtime_open(l, "a");
    b = lab_runtime_open(l, "b");
    return 0;
}

static inline int close_all(void **state) {
    (void)state;
    lab_close(l);
    return 0;
}

#endif

/* clock.c -- the monotonic clock. */
#define _POSIX_C_SOURCE 200809L
#include "cli/clock.h"

#include <time.h>

uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

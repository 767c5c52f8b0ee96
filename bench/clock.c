/* clock.c -- see clock.h. */
#define _GNU_SOURCE
#include "clock.h"

#include <time.h>

static clockid_t clock_in_use = CLOCK_MONOTONIC;

void clock_use_cpu(bool yes) { clock_in_use = yes ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC; }

static uint64_t read_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void) { return read_ns(clock_in_use); }
uint64_t clock_wall_ns(void) { return read_ns(CLOCK_MONOTONIC); }

/* clock.h -- the one clock of all measurements.
 *
 * Wall time, as the figures ask for. On a machine that is busy with something else the CPU time
 * of the process tells more; `bench --cpu` switches to it, for the peers as well. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t clock_now_ns(void);

/* Always wall time: for what waits for a disk or for another process. */
uint64_t clock_wall_ns(void);

void clock_use_cpu(bool yes);

#endif

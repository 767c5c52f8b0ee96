/* clock.h -- the monotonic clock, for limits and figures. */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <stdint.h>

/* Of a clock that never goes back. */
uint64_t clock_ns(void);
static inline uint64_t clock_ms(void) { return clock_ns() / 1000000; }

#endif

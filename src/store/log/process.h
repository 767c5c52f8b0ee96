/* process.h -- whether the process that wrote a row still runs, on this machine.
 *
 * Pids are used again. With the moment at which it started, a pid names a process for good. */
#ifndef STORE_LOG_PROCESS_H
#define STORE_LOG_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* When a process started, in ticks since boot; 0 when the system does not say. */
uint64_t process_started(int64_t pid);
/* `started` is what process_started said then. True also where it cannot be told. */
bool process_lives(int64_t pid, uint64_t started);

#endif

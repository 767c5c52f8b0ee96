/* process.h -- other processes of this machine: do they live, and when do they end?
 *
 * A process is named by its number and the time it was started, because numbers are used again. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* When the process was started, in units of the system; 0: not known. */
uint64_t process_started(int64_t pid);
/* The name of this machine, "" if it has none. */
#define PROCESS_HOST 256
const char *process_host(char out[PROCESS_HOST]);
/* Whether the process lives; true also if that cannot be known. `started` 0: any process of that number. */
bool process_lives(int64_t pid, uint64_t started);
/* A descriptor that is readable when the process ends; -1: there is none. The caller closes it. */
int process_watch(int64_t pid);

#endif

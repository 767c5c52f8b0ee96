/* sim_world.h -- several machines on one log service, in one thread, from one seed.
 *
 * Each machine has a runtime with a computation, a sink and an event handler, and a clock of its own. The
 * world does random things on random machines: transactions, posted events, checkpoints; it cuts lines, kills
 * machines and starts them again. Then it heals everything, waits until all is at rest, and looks whether
 * what was acknowledged is there, and everything happened once. */
#ifndef LAB_SIM_WORLD_H
#define LAB_SIM_WORLD_H

#include <heddle/lab.h>

typedef struct sim_counts {
    uint64_t acknowledged, refused, unknown; /* transactions of the program */
    uint64_t handled;                        /* events */
    uint64_t flows;                          /* workflows that have ended */
    uint64_t races;                          /* appends that lost one */
    uint64_t kills, cuts;
    uint64_t digest; /* the same for the same seed */
} sim_counts;

/* Runs the world of a seed with `sabotage` (see SIM_OF_LOG; debug builds only). NULL: everything
 * holds; else what does not, in a buffer that the next call overwrites. */
const char *sim_world_run(uint64_t seed, unsigned sabotage, sim_counts *counts);

#endif

/* workflow_world.h -- an engine to be measured: its store, its actions, its workflows.
 *
 * The workflows are made as IR text by size, the actions do nothing (`here`: on the runtime's thread), so
 * what is measured is the engine and the store. */
#ifndef BENCH_WORKFLOW_WORLD_H
#define BENCH_WORKFLOW_WORLD_H

#include "bench.h"

#include <heddle/workflow.h>

typedef struct workflow_world {
    bench *b;
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
    const char *file; /* NULL: in memory */
} workflow_world;

/* Opens a store and an engine on it, with the actions. False after a line of bench_wrong. */
bool world_start(workflow_world *w, bench *b, const char *file, const char *vfs);
/* The same with memory and clocks of this env. */
bool world_start_with(workflow_world *w, bench *b, const char *file, const char *vfs,
                      const hd_env *env);
void world_stop(workflow_world *w);
/* Removes the file of a store with what SQLite puts beside it. */
/* A file of the benchmark: in HD_BENCH_DIR, else here. */
void bench_file_name(char out[512], const char *name);
void world_remove_file(const char *file);

/* How often the action was called, and what it calls each time; NULL: nothing. */
extern uint64_t world_calls;
extern void (*world_called)(uint64_t calls);

hd_engine_stats world_stats(const workflow_world *w);

/* Each registers a workflow. All of them take no input but what is said. */

/* `name`: so many actions "one" in a row; so many of another action. */
void world_sequence(workflow_world *w, const char *name, int steps);
void world_sequence_of(workflow_world *w, const char *name, const char *action, int steps);
/* "fan": input `n`; an action for each of range(n), and their sum. */
void world_fan(workflow_world *w);
/* "loop": input `n`; an action in each of n iterations. */
void world_loop(workflow_world *w);
/* `name`: one action, then so many CALC nodes. */
void world_wide(workflow_world *w, const char *name, int nodes);
/* "wait": one WAIT for a signal, for good. */
void world_wait(workflow_world *w);

/* Starts `total` instances, at most `in_flight` open at once, and runs them to their end. */
void world_run(workflow_world *w, const char *name, uint64_t total, uint64_t in_flight);
/* One instance with the input {"n": n}, to its end. */
void world_run_one(workflow_world *w, const char *name, int64_t n);

#endif

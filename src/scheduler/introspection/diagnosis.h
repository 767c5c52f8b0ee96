/* diagnosis.h -- is the runtime too busy, and which node is the reason?
 *
 * The tracker adds up how long passes take. If a runtime is busy for more than 30 % and for more than a
 * second of a window of five seconds, the telemetry hook is called, once until it is not busy; the window
 * starts anew after ten seconds.
 *
 * The diagnosis keeps a hash of what each run read and one of what it wrote. A node with two runs that read
 * the same and wrote different things is not idempotent: a graph with such a node may not settle. */
#ifndef SCHEDULER_DIAGNOSIS_H
#define SCHEDULER_DIAGNOSIS_H

#include "scheduler/state.h"

#define DIAGNOSIS_RUNS 1000

typedef struct diagnosis_record {
    hd_node node;
    struct key *name;       /* referenced; NULL: anonymous */
    uint64_t reads, writes; /* hashes */
} diagnosis_record;

typedef struct diagnosis {
    bool on, automatic;
    diagnosis_record *records; /* the last DIAGNOSIS_RUNS of `total`; NULL: never on */
    uint64_t total;
    diagnosis_record next; /* of the run under way; node.id 0: none */

    /* The tracker; on while there is a telemetry hook. */
    uint64_t window_began, busy_ns, pass_began;
    bool told; /* the hook was called for the present stretch of busy windows */
    bool in_pass;
} diagnosis;

hd_status diagnosis_start(diagnosis *d, const hd_env *env);
void diagnosis_stop(diagnosis *d);
void diagnosis_fini(diagnosis *d, const hd_env *env);

/* From the hooks of state.h. */
void diagnosis_run_body(diagnosis *d, const scheduler *s, node_id id, const hd_tx *tx,
                        hd_status status);
void diagnosis_run_end(diagnosis *d, const scheduler *s, node_id id, hd_status status);
void diagnosis_pass_begin(diagnosis *d, const scheduler *s);
/* True: the runtime has just been found to be busy. */
bool diagnosis_pass_end(diagnosis *d, const scheduler *s);

void diagnosis_report(const diagnosis *d, hd_diagnosis_fn fn, void *ctx);

#endif

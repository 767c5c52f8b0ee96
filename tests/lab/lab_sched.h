/* lab_sched.h -- a small world of nodes, and what ran in it.
 *
 *     lab *l = lab_start();
 *     lab_set(l, "n", 3);
 *     lab_compute(l, "parity", "n", parity);       reads n, writes the cell of its own name
 *     lab_effect(l, "show", "parity");
 *
 *     lab_settle(l);
 *     assert_ran(l, "parity show");
 *
 *     lab_set(l, "n", 5);                          still odd
 *     lab_settle(l);
 *     assert_ran(l, "parity");
 *     lab_close(l);
 *
 * A node is named; the name stands in the log each time its body begins. Cells are named as in
 * lab_store.h. Lists of names are separated by spaces. In a list of reads a sign says how:
 *
 *     n   deep     ~n   shape     ?n   no dependency     !n   no claim     =n   raw
 *
 * Nothing runs until lab_settle (or lab_idle). Time stands still until lab_advance_ms. There is one
 * runtime, "a", until lab_on names another. */
#ifndef HEDDLE_LAB_SCHED_H
#define HEDDLE_LAB_SCHED_H

#include "lab_store.h"
#include <heddle/scheduler.h>

struct scheduler;

/* ---- Where the tests run ----------------------------------------------------------------- */

/* A specification holds on every store: in memory; in memory with a listener that mirrors every
 * change (lab_store.h), which takes outputs off the short way; in memory beside another runtime, which
 * does nothing, but for which everything goes the long way; in a file. HD_STORE=memory|sqlite leaves out
 * the others. */
bool lab_next_place(void);
const char *lab_place(void);

/* The body of main (needs cmocka.h). */
#define LAB_EVERYWHERE(tests)                                                                      \
    int failed_ = 0;                                                                               \
    while (lab_next_place())                                                                       \
        failed_ += cmocka_run_group_tests_name(lab_place(), tests, NULL, NULL);                    \
    return failed_

/* A world in the place where the tests run now, with the runtime "a" in it. Close with lab_close. */
lab *lab_start(void);
/* Somebody else may be there too: what is derived is stored at once, not when the runtime closes. */
bool lab_is_shared(const lab *l);
/* Somewhere in particular. */
lab *lab_start_with(lab_options options);
/* The same on a store in memory from which documents arrive late, by polling. */
lab *lab_start_late(void);
/* From now on the schedulers of new worlds leave out these (LEAVE_OUT_* of base/sabotage.h).
 * False: this build cannot. */
bool lab_leave_out(unsigned what);
/* The runtime that the following calls speak of; opened at first mention. */
lab_runtime *lab_on(lab *l, const char *runtime);
hd_runtime *lab_runtime_now(lab *l);
struct scheduler *lab_scheduler(lab *l);

/* ---- Nodes ------------------------------------------------------------------------------- */

typedef struct lab_node lab_node;
/* The value of a computation, from the numbers it read. */
typedef double (*lab_formula)(const double *in);
/* A body that does as it likes. */
typedef hd_status (*lab_action)(lab_node *self, hd_tx *tx);

typedef struct lab_spec {
    const char *name;
    const char *reads;   /* what the body reads, in this order */
    lab_formula formula; /* default: the sum of what it read */
    lab_action body;     /* instead of reads and formula */
    void *data;
    const char *output; /* of a computation; default: the cell of its name; "-": none */

    bool effect, anonymous, run_once, no_auto_debounce;
    const char *declares;                           /* default: what it reads; "-": nothing */
    const char *side_outputs, *envelopes, *ignored; /* cells */
    const char *parent, *again;                     /* nodes */
    uint32_t debounce_ms, throttle_ms;
    uint64_t group;
    const char *version; /* default: the build */
} lab_spec;

/* Lives as long as the lab, also when the node is gone. */
struct lab_node {
    lab *l;
    lab_runtime *at;
    lab_spec spec; /* with copies of the texts */
    hd_node node;
    hd_status status; /* of its registration */
    uint64_t runs;    /* bodies begun */
    char *seen;       /* what its reads gave at the last run: "3 {}" */
    void *data;
    hd_status fail_with; /* see lab_fail_next */
    uint32_t fail_times;
    lab_node *next;
};

/* lab_add(l, .name = "copy", .reads = "n", .debounce_ms = 200). Also from inside a body. */
#define lab_add(l, ...) lab_register(l, (lab_spec){ __VA_ARGS__ })
lab_node *lab_register(lab *l, lab_spec spec);
lab_node *lab_compute(lab *l, const char *name, const char *reads, lab_formula formula);
lab_node *lab_effect(lab *l, const char *name, const char *reads);
/* An effect made by hd_sink; the callback logs its name. */
lab_node *lab_sink(lab *l, const char *name, hd_cell cell);
void lab_cancel(lab *l, const char *name);

/* The newest node of this name. Unknown: the test ends. */
lab_node *lab_find(lab *l, const char *name);
hd_node_info lab_info(lab *l, const char *name);
bool lab_is_live(lab *l, const char *name);
bool lab_is_clean(lab *l, const char *name);
/* Names of the nodes that read what this one writes, in order of registration. */
const char *lab_dependents(lab *l, const char *name);
/* The next runs of the node end with this status, after their reads. */
void lab_fail_next(lab *l, const char *name, hd_status status, uint32_t times);

/* For bodies. A number that is not there reads as 0. */
double lab_tx_number(lab_node *self, hd_tx *tx, const char *cell);
hd_status lab_tx_put(lab_node *self, hd_tx *tx, const char *cell, double value);

/* ---- Doing ------------------------------------------------------------------------------- */

void lab_set(lab *l, const char *cell, double value); /* whole numbers as integers */
void lab_set_json(lab *l, const char *cell, const char *json);
void lab_remove(lab *l, const char *cell);
double lab_get(lab *l, const char *cell);
const char *lab_json(lab *l, const char *cell); /* "-": absent; good until the fourth call after */
/* Looks once, with time passing as needed. As JSON. */
const char *lab_pull(lab *l, const char *cell);

/* Until idle, time passing as needed. */
void lab_idle(lab *l);
/* One pump, no more. */
void lab_turn(lab *l);

/* Two documents of another runtime, n and m, which are 1. This one knows n, and has looked into the
 * file. Then the other writes 2 into both and folds the log: what they were is nowhere any more. */
void lab_prepare_fold(lab *l);
void lab_fold_elsewhere(lab *l);
void lab_advance_ms(lab *l, uint64_t ms);
uint64_t lab_now_ms(lab *l); /* since lab_start */

/* ---- Looking ----------------------------------------------------------------------------- */

/* Names of what ran since the last call, in order. */
const char *lab_ran(lab *l);
/* For bodies that are no nodes: from here it is in that list too. */
void lab_note(lab *l, const char *name);
/* The durable name of the node that runs now; NULL: it has none. Good while it runs. */
const char *lab_running(hd_runtime *rt);
/* What the node's reads gave at its last run. */
const char *lab_seen(lab *l, const char *name);
hd_scheduler_stats lab_stats(lab *l);
/* From now on failures are collected: "name HD_STATUS; ..." since the last call. */
void lab_catch(lab *l);
const char *lab_failures(lab *l);

#define assert_ran(l, names)       assert_string_equal(lab_ran(l), names)
#define assert_seen(l, name, text) assert_string_equal(lab_seen(l, name), text)
#define assert_json(l, cell, text) assert_string_equal(lab_json(l, cell), text)

#endif

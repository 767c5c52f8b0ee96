/* lab_inside.h -- what tests look at, or do, inside the library, where no public function shows it.
 *
 * Test programs of tests/spec include no header of src/: what they need from inside has a function here, so that
 * they still make sense when the code inside is written anew. Texts are good until the next call. */
#ifndef HEDDLE_LAB_INSIDE_H
#define HEDDLE_LAB_INSIDE_H

#include "lab_sched.h"

/* ---- Steps -------------------------------------------------------------------------------- */

/* One pass, and nothing else: nothing is sent, and nothing is heard. */
void lab_pass(lab *l);
/* The part of a pass that looks at the first event of each lane. */
void lab_event_step(lab *l);
/* What has been derived goes into a commit now; rows also if nothing else has to be written. */
void lab_seal(lab *l);
/* When a pump has something to do, if nobody else does anything: 0 is now, UINT64_MAX is never. */
uint64_t lab_wakes_at(lab *l);

/* From now on the clock is read around every run, as it is when runs are slow. */
void lab_time_every_run(lab *l);

/* ---- Nodes -------------------------------------------------------------------------------- */

/* What the node reads ("~list list#/0/name"), and what it writes ("x s", an envelope as "^table"). */
const char *lab_reads(lab *l, const char *node);
const char *lab_surface(lab *l, const char *node);
/* The writable places of a schema, below a document: "input#/pair/0 input#/rows". What is not named by an index or a
 * key is covered by its container. */
const char *lab_writable(lab *l, const char *document, const char *schema);
/* How often the node's last runs failed for now, and were refused as stale, in a row. */
typedef struct lab_tries {
    uint32_t transient, stale;
} lab_tries;
lab_tries lab_tries_of(lab *l, const char *node);
/* As if the node had run so often. */
void lab_pretend_runs(lab *l, const char *node, uint32_t runs);

/* Records that the scheduler has, in use or not. */
typedef struct lab_records {
    uint32_t nodes, kin; /* of nodes; of parents and children */
    uint32_t backed;     /* entries in the list of nodes with a backoff */
} lab_records;
lab_records lab_records_of(lab *l);

/* ---- Documents ---------------------------------------------------------------------------- */

/* Entries in the index of readers: of one cell, and of all cells of a space. */
uint32_t lab_readers(lab *l, const char *cell);
uint32_t lab_readers_in(lab *l, const char *space);
/* Whether the runtime has the document's value, or knows that there is none; and of how many it does. */
bool lab_knows(lab *l, const char *cell);
uint32_t lab_known(const hd_runtime *rt);
/* References to the record of the document that the oldest event waits for. */
uint32_t lab_awaited_references(lab *l);
/* The document was asked for, and cannot be loaded. */
hd_status lab_fail_load(lab_runtime *r, const char *cell, hd_status why);

/* ---- Commits ------------------------------------------------------------------------------ */

/* The store's answer to the oldest commit without a verdict, made up. False: there is none. */
bool lab_refuse(lab_runtime *r, hd_status status);
/* Of the newest commit: how many causes it has, and who wrote each of its documents, for what causes:
 * "sum: y; tens: z". */
size_t lab_commit_causes(lab *l);
const char *lab_commit_authors(lab *l);
/* The sequence number of a space. */
uint64_t lab_seq(lab *l, const char *space);

/* ---- Rows --------------------------------------------------------------------------------- */

typedef struct lab_row {
    const char *name, *instance, *print, *flags;
    const char *reads; /* as they are written down */
    const char *cells; /* the ids of their documents: "n m =mix"; with a '=' what the node writes */
} lab_row;
/* Calls fn for each row that the store has of a piece ("main:main"), in order of name and instance. */
void lab_each_row(lab *l, const char *piece, void (*fn)(const lab_row *row, void *ctx), void *ctx);

/* From now on questions about rows are counted, and fail as told. One runtime at a time. */
enum { LAB_ROWS_FAIL = 1, LAB_ROWS_END_EARLY = 2, LAB_CHANGES_FAIL = 4 };
void lab_watch_rows(lab_runtime *r, unsigned faults);
/* How often the store was asked for the rows of a piece, and for what has changed since. */
typedef struct lab_questions {
    int rows, changes;
} lab_questions;
lab_questions lab_rows_asked(void);

#endif

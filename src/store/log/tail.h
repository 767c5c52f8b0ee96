/* tail.h -- where in the log each document changed since the checkpoint.
 *
 * A document's current value is its head row, folded with those operations of the log that came
 * after it. The tail knows for each document changed since the checkpoint which rows to look into,
 * so that a load touches these rows only. It holds positions, no values: 16 bytes for each row that
 * changes a document. Documents that are not in it are what their head row says. */
#ifndef STORE_LOG_TAIL_H
#define STORE_LOG_TAIL_H

#include "base/table.h"
#include "base/vec.h"
#include "store/log/doc_name.h"

typedef struct tail_at {
    uint64_t row;
    uint64_t seq; /* of the document's last change in that row */
} tail_at;

typedef struct tail_doc {
    doc_name name; /* texts in `memory` */
    char *memory;
    uint32_t hash;
    VEC(tail_at) at; /* by row, each row once */
} tail_doc;

typedef struct tail {
    const hd_env *env;
    VEC(tail_doc) docs;
    table by_name;
    /* Of log text since the checkpoint, by which the owner decides when to fold: an estimate, and lowered where another
     * process folds (0432). */
    uint64_t bytes;
    uint64_t trimmed; /* nothing is kept of rows up to here */
} tail;

void tail_init(tail *t, const hd_env *env);
void tail_fini(tail *t);
void tail_check(const tail *t);

/* The document changed in `row`, where it got `seq`. Rows come in order. HD_NOMEM. */
hd_status tail_add(tail *t, const doc_name *name, uint64_t row, uint64_t seq);
/* NULL: unchanged since the checkpoint. Borrowed until the next change of the tail. */
const tail_doc *tail_find(const tail *t, const doc_name *name);
/* Forgets what tail_add has noted of a row that was not stored after all. */
void tail_take_back(tail *t, const doc_name *name, uint64_t row);
/* A checkpoint has folded everything up to and including `row`. */
void tail_trim(tail *t, uint64_t row);

#endif

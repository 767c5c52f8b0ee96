/* committing.h -- a program that commits as fast as it can, on any store: what the durable groups measure. */
#ifndef BENCH_COMMITTING_H
#define BENCH_COMMITTING_H

#include "bench.h"
#include <heddle/store.h>

enum { COMMITTING_DOCUMENTS = 64, COMMITTING_BODY = 400 };

typedef struct committing {
    bench *b;
    hd_runtime *rt;
    hd_cell docs[COMMITTING_DOCUMENTS];
    uint64_t sent, done, wrong;
    uint64_t number; /* no two commits write the same */
    char body[COMMITTING_BODY];
    bool one_key; /* a small write into a document instead of a 400-byte one, and no reads */
} committing;

/* Names the cells of an open store by `cell`, which has a %d in it, and writes each once. */
void committing_init(committing *c, bench *b, hd_runtime *rt, const char *cell);
/* Commits `total`, never more than `in_flight` at once. */
void commit_many(committing *c, uint64_t total, uint64_t in_flight);
/* The same for one at a time: the program has nothing to do but wait for each. */
void commit_each(committing *c, uint64_t total);
/* Tells if commits were refused, and closes the runtime. */
void committing_close(committing *c);

#endif

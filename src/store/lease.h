/* lease.h -- who does a job for a space.
 *
 * A lease is a document, "lease/<job>" of the space: the session that has it, its process, and an *epoch* that
 * counts how often it was taken. Taking it is a commit that claims the document, so that of two which try at
 * once one is refused. A holder that closes gives it up; one that dies is noticed by its process: the others
 * watch that (process.h), and the first to see it takes the lease. Nothing is renewed, so a holder at rest
 * and those that stand by do nothing at all.
 *
 * Correctness does not rest on who believes to hold it: a commit that is fenced (lease_fence) claims the
 * document, and is refused if the lease was taken by another meanwhile.
 *
 * Processes see each other's numbers: those that share a file belong to one machine and one PID namespace. */
#ifndef STORE_LEASE_H
#define STORE_LEASE_H

#include "store/runtime.h"

typedef struct lease {
    hd_runtime *rt;
    place_id doc;             /* one reference; 0: not open */
    bool held;                /* it is ours, and that is stored */
    bool asked;               /* a commit that takes it, or gives it up, is under way */
    bool closing;             /* it is being given up */
    int64_t pid;              /* of the process that has it and is watched; 0: none */
    int watch_fd;             /* readable when that ends; -1: none */
    uint64_t look_ns;         /* without such a descriptor: when to look whether it lives */
    uint64_t epoch;           /* as last seen */
    void (*ended)(void *ctx); /* called by a verdict that comes after lease_close; NULL: nothing */
    void (*taken)(bool held, void *ctx); /* told in pump when it is ours, and when it is no more */
    void *ctx;
} lease;

/* Nothing is tried before lease_try. HD_NOMEM, HD_SYNTAX (the space's name). */
hd_status lease_open(lease *l, hd_runtime *rt, const char *space, const char *job,
                     void (*taken)(bool held, void *ctx), void *ctx);
/* Takes the lease if nobody has it: the verdict comes in a later pump. Outside of transactions. */
hd_status lease_try(lease *l);
/* The document has changed, or may have: who holds it now? */
void lease_look(lease *l);
/* The commit is refused if somebody else has taken the lease meanwhile. */
hd_status lease_fence(const lease *l, hd_tx *tx);
/* Gives it up, and waits until that is stored. */
void lease_close(lease *l);
/* When lease_try wants to be called; UINT64_MAX: the document will change, or a descriptor is readable. */
uint64_t lease_deadline(const lease *l);

#endif

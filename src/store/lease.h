/* lease.h -- who does a job for a space.
 *
 * A lease is a document, "lease/<job>" of the space: the session that has it, its process, host and since
 * when, and an *epoch* that counts how often it was taken. Taking it is a commit that claims the document, so that of
 * two which try at once one is refused. A holder that closes frees it, or gives it to another session, whose name it
 * then writes into the document; one that dies is noticed by its process: the others watch that (process.h), and the
 * first to see it takes the lease. Nothing is renewed, so a holder at rest and those that stand by do nothing at all.
 *
 * Correctness does not rest on who believes to hold it: a commit that is fenced (lease_fence) claims the
 * document, and is refused if the lease was taken by another meanwhile.
 *
 * Processes that share a file see each other's numbers: they belong to one machine and one PID namespace. On a server
 * they may be anywhere (authority.remote). There a session that holds or takes a lease is kept alive by its authority,
 * by the clock of the database, and a holder that cannot do so stands down before its time is over. */
#ifndef STORE_LEASE_H
#define STORE_LEASE_H

#include "store/runtime.h"
#include "store/session.h"

typedef struct lease {
    hd_runtime *rt;
    place_id doc;              /* one reference; 0: not open */
    bool held;                 /* it is ours, and that is stored */
    bool asked;                /* a commit that takes it, or gives it up, is under way */
    bool giving;               /* what was asked for is that another session has it */
    bool closing;              /* it is being given up */
    char holder[SESSION_TEXT]; /* the session that has it, as last read; "": none */
    uint64_t checked_ns;       /* when it was last read; 0: not yet */
    int64_t pid;               /* of the process that has it and is watched; 0: none */
    int watch_fd;              /* readable when that ends; -1: none */
    uint64_t
        look_ns; /* when to look again: there is no such descriptor, or a read failed; 0: not */
    uint64_t sure_ns; /* on a server: until then the holder lives, and nothing is asked */
    uint64_t epoch;   /* as last seen */
    place_id guard;   /* taking is refused if this document has changed; 0: none. By the owner */
    void (*ended)(void *ctx); /* called by a verdict that comes after lease_close; NULL: nothing */
    void (*taken)(bool held, void *ctx); /* told in pump when it is ours, and when it is no more */
    void *ctx;
} lease;

/* Nothing is tried before lease_try. HD_NOMEM, HD_SYNTAX (the space's name). */
hd_status lease_open(lease *l, hd_runtime *rt, const char *space, const char *job,
                     void (*taken)(bool held, void *ctx), void *ctx);
/* Takes the lease if no session has it: the verdict comes in a later pump. Outside of transactions. Not HD_OK: who
 * has it could not be read, or nothing could be written. */
hd_status lease_try(lease *l);
/* The document has changed, or may have: is the lease still ours? If that cannot be read it stays ours, and
 * lease_look_if_due looks again later. */
void lease_look(lease *l);
void lease_look_if_due(lease *l);
/* In each pump: one of the two above, as far as it is time for that. */
void lease_tend(lease *l);
/* The commit is refused if somebody else has taken the lease meanwhile. */
hd_status lease_fence(const lease *l, hd_tx *tx);
/* What lease documents say of a session: ours. */
hd_value lease_record(hd_runtime *rt, hd_pool *pool);
/* Gives the lease, which is ours, to the session of that record. From here on it is not held; if the commit is
 * refused, and it is still ours, lease_try takes it up again. Whoever calls this does the job no more. */
hd_status lease_give(lease *l, hd_value record);
/* Begins to give it up: lease_close, which is to follow, waits for that. */
void lease_release(lease *l);
/* Gives it up, and waits until that is stored. */
void lease_close(lease *l);
/* When lease_try or lease_look_if_due wants to be called; UINT64_MAX: the document will change, or a descriptor is readable. */
uint64_t lease_deadline(const lease *l);

/* What the document of a lease says, for those who look at it. */
typedef struct lease_holder {
    const char *session; /* "": nobody has it. Texts are the document's */
    const char *host;    /* "": not known */
    int64_t pid;
    uint64_t since_ms; /* of the holder's wall clock; 0: not known */
    uint64_t epoch;
    bool lives;
} lease_holder;
/* Not HD_OK: whether the holder lives could not be found out. */
hd_status lease_holder_of(hd_runtime *rt, hd_value document, lease_holder *out);

#endif

/* lease.h -- which session does a job for a space.
 *
 * A lease is a document, "lease/<job>" of the space. It names the session that holds the lease, the session's process
 * and host, since when, and an *epoch* that counts how often the lease was taken. A session takes the lease by a commit
 * that claims the document: if two sessions try at once, the store refuses one of the commits. A holder that closes
 * frees the lease, or gives it to another session by writing that session's name into the document. If a holder's
 * process ends without that, the other sessions notice, since they watch the process (process.h), and the first of them
 * takes the lease. Leases are not renewed, so sessions at rest do nothing, whether they hold the lease or stand by.
 *
 * A session that wrongly takes itself for the holder does no harm: a fenced commit (lease_fence) claims the document,
 * and the store refuses the commit if another session has taken the lease meanwhile.
 *
 * Processes that share a file are on one machine and in one PID namespace, so they can watch each other by process
 * number. A file may have been copied while a process held a lease in it: so the document also names the file, and does
 * not count in another one. Processes that share a server may be anywhere (authority.remote). There the authority of
 * each session that holds or takes a lease tells the server regularly, by the clock of the database, that the session
 * lives. A holder that cannot tell so stands down before the others may take its lease. */
#ifndef STORE_LEASE_H
#define STORE_LEASE_H

#include "store/runtime.h"
#include "store/session.h"

typedef struct lease {
    hd_runtime *rt;
    place_id doc;              /* one reference; 0: not open */
    bool held;                 /* it is ours, and that is stored */
    bool asked;                /* a commit that takes it, or gives it up, is under way */
    bool giving;               /* that commit gives the lease to another session */
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
/* Takes the lease if no session has it: the verdict comes in a later pump. Outside of transactions. Not HD_OK: the
 * document could not be read, or not be written. */
hd_status lease_try(lease *l);
/* Takes the lease also from another session that lives: for a job that can change hands at any moment. */
hd_status lease_seize(lease *l);
/* The document has changed, or may have: is the lease still ours? If that cannot be read it stays ours, and
 * lease_look_if_due looks again later. */
void lease_look(lease *l);
void lease_look_if_due(lease *l);
/* In each pump: one of the two above, as far as it is time for that. */
void lease_tend(lease *l);
/* The store will refuse the transaction's commit if another session has taken the lease by then. */
hd_status lease_fence(const lease *l, hd_tx *tx);
/* What a lease document says of its holder, for this runtime's session. */
hd_value lease_record(hd_runtime *rt, hd_pool *pool);
/* Which file the runtime has open, "device:inode", for a record that names this process; "": it has no file open. */
enum { LEASE_FILE = 48 };
void lease_file(const hd_runtime *rt, char out[LEASE_FILE]);
/* False: the record names a process that had another file open when it was written, or a server. So this file is a
 * copy, and that process does nothing in it. */
bool lease_is_of_this_file(const hd_runtime *rt, hd_value record);
/* Gives the lease, which is ours, to the session of that record. From here on it is not held, and the caller must have
 * stopped doing the job. `heir` is the document in which that session says that it is there: the commit is refused if
 * the document has changed, so that no lease is given to a session that has left. If the commit is refused and the
 * lease is still ours, lease_try takes it up again. */
hd_status lease_give(lease *l, hd_value record, place_id heir);
/* Begins to give the lease up, without waiting: also one that was given to us and is not held yet. The caller calls
 * lease_close next, which waits. */
void lease_release(lease *l);
/* Gives the lease up, and waits until the store has accepted that. */
void lease_close(lease *l);
/* When lease_try or lease_look_if_due wants to be called; UINT64_MAX: the document will change, or a descriptor is
 * readable. */
uint64_t lease_deadline(const lease *l);

/* What the document of a lease says, for showing it. */
typedef struct lease_holder {
    const char *session; /* "": no session has the lease. Texts are the document's */
    const char *host;    /* "": not known */
    int64_t pid;
    uint64_t since_ms; /* of the holder's wall clock; 0: not known */
    uint64_t epoch;
    bool lives;
} lease_holder;
/* Not HD_OK: whether the holder lives could not be found out. */
hd_status lease_holder_of(hd_runtime *rt, hd_value document, lease_holder *out);

#endif

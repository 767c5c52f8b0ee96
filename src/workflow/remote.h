/* remote.h -- workers in other processes, on a Unix socket: docs/WORKERS.md says what is spoken.
 *
 *     accept -> hello -> claim --> task, task, ... --> complete, fail --> (commit) --> done
 *                                        cancel <-- the engine takes a step back
 *
 * Each connection is a worker (task.h). It gets as many steps as it has asked for, so that one that stops reading gets
 * no more; what it does not read is bounded, and after a while it is dropped. A connection that ends, or says what
 * cannot be understood, loses the steps that it has: they go to other workers. A token is good on the connection that
 * it was given to, so that what a worker says after it has connected again is late.
 *
 * Only an active engine listens. One that rises makes the socket; one that stands down closes it, and workers connect
 * again to the one that has risen.
 *
 * Everything happens in the runtime's pump, on its thread; nothing blocks. At rest nothing wakes it. */
#ifndef WORKFLOW_REMOTE_H
#define WORKFLOW_REMOTE_H

#include "socket/port.h"
#include "workflow/task.h"
#include "workflow/wire.h"

#define REMOTES_MAX  64                  /* connections, unless the program says otherwise */
#define REMOTE_READ  ((size_t)256 << 10) /* bytes of one recv */
#define REMOTE_TURN  ((size_t)1 << 20)   /* bytes read from one connection in one pump */
#define REMOTE_CHOKE ((size_t)4 << 20)   /* unread bytes from which on it gets nothing more */
#define REMOTE_AGAIN_NS                                                                            \
    UINT64_C(200000000) /* until a socket that could not be made is tried again */
#define REMOTE_HELLO_NS UINT64_C(10000000000) /* from connecting to hello */
#define REMOTE_READS_NS UINT64_C(30000000000) /* it must read something within this time */

/* A completion that the worker is told of when it is stored. */
typedef struct remote_ack {
    uint64_t token;
    uint64_t commit; /* the number of the commit that stores it */
    place_id doc;    /* of the instance; no reference: it is compared, and not used */
} remote_ack;

typedef struct remote {
    worker w; /* first */
    list_node link;
    struct remotes *all;
    int fd;       /* -1: only in tests, which read `out` */
    bool greeted; /* hello has come: it has joined the engine */
    bool ending;  /* what is in `out` is sent, then the connection is closed */
    bool writes;  /* it is told when the socket takes more */
    uint32_t
        credit; /* steps that it has asked for and not got. Invariant: w.capacity is w.held + credit, or w.held
                           * while it is choked */
    uint64_t nonce;       /* in its tokens */
    uint64_t deadline_ns; /* by then hello must have come, or something be read; 0: none */
    json_buffer in;       /* what has come and is not a whole message yet, from `taken` on */
    size_t taken;
    json_buffer out; /* from `sent` on */
    size_t sent;
    VEC(remote_ack) acks; /* by commit */
    name_vec lines;       /* queues that it serves; none: all */
} remote;

typedef struct remotes {
    struct hd_engine *e;
    port at;
    list all;
    uint32_t count, most;
    size_t message_max;
    hd_pool *pool; /* of one message */
    char path
        [ADDRESS_MAX]; /* where it listens while the engine is active; "": nowhere, only in tests */
    uint64_t again_ns; /* the socket could not be made: tried again then; 0: not */
} remotes;

/* ---- for tests and fuzzers: a server without a socket, and what a connection says */

hd_status remotes_open(struct hd_engine *e, remotes **out);
/* Takes the descriptor, in every case. HD_NOMEM, HD_BUSY. */
hd_status remote_open(remotes *all, int fd, remote **out);
void remote_close(remote *r);
void remote_hear(remote *r, const char *bytes, size_t length);

#endif

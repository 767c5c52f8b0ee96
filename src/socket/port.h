/* port.h -- a listening Unix socket on the runtime's own descriptors.
 *
 * The inspector and the server of workers each have one. Its set of descriptors, which holds the listening socket and
 * all connections, is a member of the runtime's: a program that waits for hd_runtime_fd wakes when a client says
 * something. Nothing here blocks. Only the user who runs the program, and root, may connect. */
#ifndef SOCKET_PORT_H
#define SOCKET_PORT_H

#include "base/poller.h"
#include "socket/address.h"
#include "store/runtime.h"

typedef struct port {
    hd_runtime *rt;
    int set;       /* the listening socket and the connections; a member of the runtime's set */
    int listen_fd; /* in the set unless paused; -1: closed */
    pid_t pid; /* the process that made the socket: a process forked from it must not remove it */
    char path[ADDRESS_MAX];
    uint64_t paused_until_ns; /* accept() found no free descriptor; 0: not paused */
} port;

/* Makes a port that is closed; port_close accepts it. */
void port_init(port *p, hd_runtime *rt);
/* Listens at the path. A socket there that refuses connections is replaced; any other file is left alone. HD_EXISTS:
 * another program serves there; HD_LIMIT, HD_READ_ONLY, HD_NOMEM, HD_IO; the runtime's error says what. */
hd_status port_open(port *p, const char *path);
/* The same beside the store's file, under the first free number of this process (socket/address.h). */
hd_status port_open_beside(port *p, const char *file);
/* After one of the two: joins the runtime's descriptors. HD_NOMEM. */
hd_status port_join(port *p);
/* Removes the socket. The caller closes its connections. Accepts a port that was not opened. */
void port_close(port *p);

/* The next connection that waits: its descriptor, which does not block; -1: there is none, or no free descriptor for
 * it. Without a free descriptor the port pauses for a second. *allowed: the user at the other end may talk to this
 * program. */
int port_accept(port *p, bool *allowed);
/* Ends a pause whose time is over. */
void port_look_at_clock(port *p);
/* When the pause ends; UINT64_MAX: there is none. */
static inline uint64_t port_deadline(const port *p) {
    return p->paused_until_ns ? p->paused_until_ns : UINT64_MAX;
}

/* The store's file; NULL: it has none. */
const char *port_file(const hd_runtime *rt);

#endif

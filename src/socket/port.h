/* port.h -- a listening Unix socket on the runtime's own descriptors.
 *
 * The inspector and the server of workers each have one. Its epoll set, which holds the listening socket and all
 * connections, is a member of the runtime's: a program that waits for hd_runtime_fd wakes when a client says something.
 * Nothing here blocks. Only the user who runs the program, and root, may connect. */
#ifndef SOCKET_PORT_H
#define SOCKET_PORT_H

#include "socket/address.h"
#include "store/runtime.h"
#include <sys/epoll.h>

typedef struct port {
    hd_runtime *rt;
    int epoll_fd;  /* the sockets; itself in the runtime's own */
    int listen_fd; /* in epoll_fd unless paused; -1: closed */
    pid_t pid;     /* that made the socket: a process forked from it must not remove it */
    char path[ADDRESS_MAX];
    uint64_t paused_until_ns; /* 0: not. accept() found no free descriptor */
} port;

/* Closed, so that port_close may be called. */
void port_init(port *p, hd_runtime *rt);
/* A socket at the path. A file there is left alone, unless it is a socket that refuses connections. HD_EXISTS: another
 * program serves there; HD_LIMIT, HD_READ_ONLY, HD_NOMEM, HD_IO; the runtime's error says what. */
hd_status port_open(port *p, const char *path);
/* The same beside the store's file, under the first free number of this process (socket/address.h). */
hd_status port_open_beside(port *p, const char *file);
/* After one of the two: joins the runtime's descriptors. HD_NOMEM. */
hd_status port_join(port *p);
/* Removes the socket. Connections are the caller's. Accepts what was not opened. */
void port_close(port *p);

/* The next connection that waits: its descriptor, which does not block; -1: there is none, or no descriptor for it.
 * *allowed: the user at the other end may talk to this program. */
int port_accept(port *p, bool *allowed);
/* What epoll reports of a connection; EPOLL_CTL_ADD, EPOLL_CTL_MOD. */
bool port_watch(port *p, int how, int fd, uint32_t events);
/* Accepts again when the pause is over; when that is. */
void port_look_at_clock(port *p);
static inline uint64_t port_deadline(const port *p) {
    return p->paused_until_ns ? p->paused_until_ns : UINT64_MAX;
}

/* The store's file; NULL: it has none. */
const char *port_file(const hd_runtime *rt);

#endif

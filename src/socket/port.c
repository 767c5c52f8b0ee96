/* port.c -- a listening Unix socket on the runtime's own descriptors. */
#define _GNU_SOURCE
#include "socket/port.h"

#include "base/env.h"
#include "base/system.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_PAUSE_NS UINT64_C(1000000000) /* when there are no descriptors left */

void port_init(port *p, hd_runtime *rt) {
    *p = (port){ .rt = rt, .set = -1, .listen_fd = -1, .pid = getpid() };
}

/* ---- opening */

static hd_status listen_failed(hd_runtime *rt, const char *path) {
    switch (errno) {
    case EADDRINUSE:
        return runtime_fail(rt, HD_EXISTS, "%.100s: another program serves there already", path);
    case ENAMETOOLONG:
        return runtime_fail(rt, HD_LIMIT, "%.100s: too long for a socket; choose a shorter name",
                            path);
    case EACCES:
    case EROFS:
        return runtime_fail(rt, HD_READ_ONLY, "%.100s: the directory cannot be written", path);
    case ENOMEM: return runtime_fail(rt, HD_NOMEM, "%.100s: %s", path, strerror(errno));
    default:
        return runtime_fail(rt, HD_IO, "%.100s: no socket can be made there: %s", path,
                            strerror(errno));
    }
}

hd_status port_open(port *p, const char *path) {
    assert(p->listen_fd < 0);
    if (strlen(path) >= sizeof p->path) {
        errno = ENAMETOOLONG;
        return listen_failed(p->rt, path);
    }
    snprintf(p->path, sizeof p->path, "%s", path);
    p->listen_fd = address_listen(path);
    if (p->listen_fd < 0 && errno == EADDRINUSE) {
        if (address_is_stale(path, p->pid) && !unlink(path)) p->listen_fd = address_listen(path);
        else errno = EADDRINUSE;
    }
    return p->listen_fd < 0 ? listen_failed(p->rt, path) : HD_OK;
}

/* Other runtimes of this process may serve beside the file, too. */
hd_status port_open_beside(port *p, const char *file) {
    char path[ADDRESS_MAX];
    hd_status status = HD_LIMIT;
    address_sweep(file);
    for (unsigned n = 1; n <= 64; n++) {
        if (!address_of(file, p->pid, n, path)) {
            errno = ENAMETOOLONG;
            return listen_failed(p->rt, file);
        }
        status = port_open(p, path);
        if (status != HD_EXISTS) return status;
    }
    return status;
}

hd_status port_join(port *p) {
    int loop = hd_runtime_fd(p->rt);
    assert(p->listen_fd >= 0 && p->set < 0);
    p->set = poller_open();
    if (loop < 0 || p->set < 0 || !poller_add(loop, p->set, POLLER_IN) ||
        !poller_add(p->set, p->listen_fd, POLLER_IN))
        return runtime_fail(p->rt, HD_IO, "no file descriptors are left for a socket");
    return HD_OK;
}

void port_close(port *p) {
    if (p->listen_fd >= 0) {
        if (p->pid == getpid()) unlink(p->path);
        close(p->listen_fd);
    }
    if (p->set >= 0) close(p->set); /* this also removes it from the runtime's */
    p->listen_fd = p->set = -1;
    p->paused_until_ns = 0;
}

const char *port_file(const hd_runtime *rt) {
    const authority *a = rt->r.authority;
    return a->ops->file ? a->ops->file(a) : NULL;
}

/* ---- accepting */

/* accept() fails without a free descriptor, and the socket stays readable: for a second it is not watched,
 * so that the loop does not spin. */
static void pause_accepting(port *p) {
    poller_remove(p->set, p->listen_fd);
    p->paused_until_ns = env_now_ns(&p->rt->env) + ACCEPT_PAUSE_NS;
}

int port_accept(port *p, bool *allowed) {
    uid_t peer;
    int fd = system_accept(p->listen_fd);
    if (fd >= 0) {
        *allowed = address_peer(fd, &peer) && address_may_ask(peer, geteuid());
        return fd;
    }
    bool passing =
        errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
    if (!passing) pause_accepting(p);
    return -1;
}

void port_look_at_clock(port *p) {
    if (!p->paused_until_ns || env_now_ns(&p->rt->env) < p->paused_until_ns) return;
    p->paused_until_ns = 0;
    if (!poller_add(p->set, p->listen_fd, POLLER_IN)) pause_accepting(p);
}

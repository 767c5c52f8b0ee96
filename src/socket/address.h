/* address.h -- where the sockets of running programs are: beside the file, one for each runtime.
 *
 *     shop.db-live-4711        the first runtime of process 4711 on shop.db
 *     shop.db-live-4711.2      its second
 *
 * The name has the process id, so that a client can choose a program before it connects. A socket is stale
 * if it refuses connections and its process does not exist; the library and the command, which share this
 * file, remove stale sockets when they list or make some. */
#ifndef SOCKET_ADDRESS_H
#define SOCKET_ADDRESS_H

#include <heddle/base.h>
#include <sys/types.h>

#define ADDRESS_MAX 4096 /* bytes of a path, with the NUL */

/* A listening socket of mode 0600 at `path`, which must not exist. -1: see errno; ENAMETOOLONG: the name
 * is too long for an address even without its directory. */
int address_listen(const char *path);
/* A connected socket that does not block. -1: see errno. */
int address_connect(const char *path);

/* The nth socket of this process beside `file`; n from 1. False: too long. */
bool address_of(const char *file, pid_t pid, unsigned n, char out[ADDRESS_MAX]);

/* Whether the socket belongs to a process that has ended. */
bool address_is_stale(const char *path, pid_t pid);

/* Calls fn for each socket beside `file`, in no particular order. False stops. */
typedef bool (*address_fn)(void *ctx, const char *path, pid_t pid);
void address_each(const char *file, address_fn fn, void *ctx);

/* Removes the sockets that dead programs left beside `file`. Returns how many. */
unsigned address_sweep(const char *file);

/* Whether a program of user `ours` may answer user `peer`, or trust the answers of user `peer`. */
bool address_may_ask(uid_t peer, uid_t ours);
/* The user at the other end; false: the system does not say. */
bool address_peer(int fd, uid_t *out);

#endif

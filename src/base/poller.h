/* poller.h -- sets of descriptors that can be waited for as one, and bells.
 *
 * On Linux a set is an epoll descriptor and a bell an eventfd; on macOS and the BSDs both are kqueues. No other file
 * includes the headers of either. A set and a bell are descriptors themselves, are closed with close(), and may be
 * members of another set. A set is readable while a member is ready; a bell, from a ring until it is taken. A member
 * that is closed leaves its sets. */
#ifndef BASE_POLLER_H
#define BASE_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/* What a descriptor is watched for. POLLER_GONE (its other end is gone) is reported whether or not it was asked for. */
enum { POLLER_IN = 1, POLLER_OUT = 2, POLLER_GONE = 4 };

typedef struct poller_event {
    int fd;
    uint32_t what;
} poller_event;

/* -1: no descriptor is left; errno tells why. */
int poller_open(void);
/* False: there is no room for it, or it is a member already. */
bool poller_add(int set, int fd, uint32_t what);
/* Changes what a member is watched for. */
bool poller_change(int set, int fd, uint32_t what);
/* Does nothing for a descriptor that is no member. */
void poller_remove(int set, int fd);
/* Writes the members that are ready now, each once, to `out`, without waiting. Returns their number, at most `size`;
 * `size` is at most POLLER_MOST. */
#define POLLER_MOST 64
int poller_take(int set, poller_event *out, int size);

/* -1: no descriptor is left; errno tells why. */
int bell_open(void);
/* Makes the bell readable. May be called on any thread, and in a signal handler. */
void bell_ring(int bell);
/* Makes the bell unreadable. Returns whether it was rung. */
bool bell_take(int bell);

#endif

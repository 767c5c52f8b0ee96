/* wake.h -- when is there something to look at? One descriptor that knows.
 *
 * Our own writer says so by ringing a bell. The backend says through a descriptor of its own that another
 * process may have committed (log_backend.notify_fd); where it has none, the store is looked at from time
 * to time. Both are watched by one set of descriptors (base/poller.h), which is the runtime's. */
#ifndef STORE_LOG_WAKE_H
#define STORE_LOG_WAKE_H

#include "store/log/backend.h"

typedef struct wake {
    int set;
    int bell;         /* the writer has outcomes */
    int notify_fd;    /* the backend's; -1: none */
    log_store *store; /* whose it is; borrowed */
    bool armed;       /* the next commit of another process will be told */
} wake;

/* Before anything else: a wake that is not open. */
void wake_init(wake *w);
/* HD_IO: no descriptor is left; errno tells why. */
hd_status wake_open(wake *w);
void wake_close(wake *w);
/* Watches a connection, which is not closed before wake_close. */
void wake_watch(wake *w, log_store *store);

/* Asks to be told of the next commit of another process, once. A notification may cost the writers
 * something, our own one too, so this is not called while our writer is at work. */
void wake_arm(wake *w);

/* Takes what has come. `outcomes`: our writer has some. `written`: the store may have rows up to this one
 * (log_backend.notify_take); 0: no notification was for a row after `position`. */
void wake_take(wake *w, uint64_t position, bool *outcomes, uint64_t *written);

static inline bool wake_watches(const wake *w) { return w->notify_fd >= 0; }

#endif

/* wake.c -- a set of two: the writer's bell and the backend's descriptor. */
#include "store/log/wake.h"

#include "base/poller.h"
#include <assert.h>
#include <unistd.h>

void wake_init(wake *w) { *w = (wake){ .set = -1, .bell = -1, .notify_fd = -1 }; }

hd_status wake_open(wake *w) {
    w->set = poller_open();
    w->bell = bell_open();
    return w->set < 0 || w->bell < 0 || !poller_add(w->set, w->bell, POLLER_IN) ? HD_IO : HD_OK;
}

void wake_watch(wake *w, log_store *store) {
    assert(w->set >= 0 && w->notify_fd < 0);
    int fd = store->ops->notify_fd(store);
    w->store = store;
    if (fd >= 0 && poller_add(w->set, fd, POLLER_IN)) w->notify_fd = fd;
}

void wake_close(wake *w) {
    if (w->bell >= 0) close(w->bell);
    if (w->set >= 0) close(w->set);
    wake_init(w);
}

void wake_arm(wake *w) {
    if (w->notify_fd < 0 || w->armed) return;
    w->armed = w->store->ops->notify_arm(w->store);
    if (!w->armed) w->notify_fd = -1; /* closed: the store is looked at from time to time */
}

void wake_take(wake *w, uint64_t position, bool *outcomes, uint64_t *written) {
    poller_event events[2];
    *outcomes = false;
    *written = 0;
    int n = poller_take(w->set, events, 2);
    for (int i = 0; i < n; i++) {
        if (events[i].fd == w->bell) {
            *outcomes = bell_take(w->bell);
        } else {
            assert(events[i].fd == w->notify_fd);
            uint64_t row = w->store->ops->notify_take(w->store);
            if (row > position) *written = row;
            if (row == UINT64_MAX) w->armed = false;
        }
    }
}

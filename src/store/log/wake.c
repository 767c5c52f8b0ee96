/* wake.c -- epoll over an eventfd and the backend's descriptor. */
#define _GNU_SOURCE
#include "store/log/wake.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool add(int epoll_fd, int fd) {
    struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void wake_init(wake *w) { *w = (wake){ .epoll_fd = -1, .event_fd = -1, .notify_fd = -1 }; }

hd_status wake_open(wake *w) {
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->epoll_fd < 0 || w->event_fd < 0 || !add(w->epoll_fd, w->event_fd) ? HD_IO : HD_OK;
}

void wake_watch(wake *w, log_store *store) {
    assert(w->epoll_fd >= 0 && w->notify_fd < 0);
    int fd = store->ops->notify_fd(store);
    w->store = store;
    if (fd >= 0 && add(w->epoll_fd, fd)) w->notify_fd = fd;
}

void wake_close(wake *w) {
    if (w->event_fd >= 0) close(w->event_fd);
    if (w->epoll_fd >= 0) close(w->epoll_fd);
    wake_init(w);
}

void wake_arm(wake *w) {
    if (w->notify_fd < 0 || w->armed) return;
    w->armed = w->store->ops->notify_arm(w->store);
    if (!w->armed) w->notify_fd = -1; /* closed: the store is looked at from time to time */
}

void wake_take(wake *w, bool *outcomes, bool *written) {
    struct epoll_event events[2];
    uint64_t count;
    *outcomes = *written = false;
    int n = epoll_wait(w->epoll_fd, events, 2, 0);
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == w->event_fd) {
            *outcomes = read(w->event_fd, &count, sizeof count) > 0;
        } else {
            assert(events[i].data.fd == w->notify_fd);
            w->store->ops->notify_take(w->store);
            *written = true;
            w->armed = false;
        }
    }
}

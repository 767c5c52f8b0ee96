/* wake.c -- epoll over an eventfd and inotify. */
#define _GNU_SOURCE
#include "store/log/wake.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
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

void wake_watch(wake *w, const char *file) {
    int length = snprintf(w->wal, sizeof w->wal, "%s-wal", file);
    if (length < 0 || (size_t)length >= sizeof w->wal) return;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && add(w->epoll_fd, fd)) w->notify_fd = fd;
    else if (fd >= 0) close(fd);
    /* That its name was taken from the file comes as a change of its attributes (the link count). */
    if (w->notify_fd >= 0)
        (void)inotify_add_watch(w->notify_fd, file, IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
}

void wake_close(wake *w) {
    if (w->notify_fd >= 0) close(w->notify_fd);
    if (w->event_fd >= 0) close(w->event_fd);
    if (w->epoll_fd >= 0) close(w->epoll_fd);
    wake_init(w);
}

static void drain(int fd) {
    char bytes[4096];
    while (read(fd, bytes, sizeof bytes) == sizeof bytes) {}
}

void wake_arm(wake *w) {
    if (w->notify_fd < 0 || w->armed) return;
    w->armed = inotify_add_watch(w->notify_fd, w->wal, IN_MODIFY | IN_ONESHOT) >= 0;
    if (w->armed) return;
    close(w->notify_fd); /* no such file, or no more watches: look from time to time */
    w->notify_fd = -1;
}

void wake_take(wake *w, bool *outcomes, bool *written) {
    struct epoll_event events[2];
    *outcomes = *written = false;
    int n = epoll_wait(w->epoll_fd, events, 2, 0);
    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        drain(fd);
        if (fd == w->event_fd) *outcomes = true;
        else *written = true, w->armed = false;
    }
}

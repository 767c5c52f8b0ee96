/* sqlite_wake.c -- epoll over an eventfd and inotify. */
#define _GNU_SOURCE
#include "store/sqlite_wake.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

static bool add(int epoll_fd, int fd) {
    struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void wake_watch(wake *w, const char *file) {
    char wal[PATH_MAX];
    int length = snprintf(wal, sizeof wal, "%s-wal", file);
    if (length < 0 || (size_t)length >= sizeof wal) return;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return;
    if (inotify_add_watch(fd, wal, IN_MODIFY) < 0 || !add(w->epoll_fd, fd)) {
        close(fd);
        return;
    }
    w->notify_fd = fd;
}

hd_status wake_open(wake *w, const char *file) {
    *w = (wake){ -1, -1, -1 };
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epoll_fd < 0 || w->event_fd < 0 || !add(w->epoll_fd, w->event_fd)) {
        wake_close(w);
        return HD_NOMEM;
    }
    if (file) wake_watch(w, file);
    return HD_OK;
}

void wake_close(wake *w) {
    if (w->notify_fd >= 0) close(w->notify_fd);
    if (w->event_fd >= 0) close(w->event_fd);
    if (w->epoll_fd >= 0) close(w->epoll_fd);
    *w = (wake){ -1, -1, -1 };
}

static bool drain(int fd) {
    char bytes[4096];
    bool any = false;
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0) {
        any = true;
        if ((size_t)n < sizeof bytes) break;
    }
    return any;
}

void wake_take(wake *w, bool *outcomes, bool *written) {
    struct epoll_event events[2];
    *outcomes = *written = false;
    int n = epoll_wait(w->epoll_fd, events, 2, 0);
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == w->event_fd) *outcomes = drain(w->event_fd);
        else *written = drain(w->notify_fd);
    }
}

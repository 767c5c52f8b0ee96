/* poller.c -- epoll and eventfd, or kqueue. */
#define _GNU_SOURCE
#include "base/poller.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#ifdef __linux__

#include <sys/epoll.h>
#include <sys/eventfd.h>

int poller_open(void) { return epoll_create1(EPOLL_CLOEXEC); }

static bool control(int set, int how, int fd, uint32_t what) {
    struct epoll_event event = { .data = { .fd = fd } };
    event.events =
        (what & POLLER_IN ? (uint32_t)EPOLLIN : 0) | (what & POLLER_OUT ? (uint32_t)EPOLLOUT : 0);
    return epoll_ctl(set, how, fd, &event) == 0;
}

bool poller_add(int set, int fd, uint32_t what) { return control(set, EPOLL_CTL_ADD, fd, what); }
bool poller_change(int set, int fd, uint32_t what) { return control(set, EPOLL_CTL_MOD, fd, what); }
void poller_remove(int set, int fd) { (void)control(set, EPOLL_CTL_DEL, fd, 0); }

int poller_take(int set, poller_event *out, int size) {
    struct epoll_event ready[POLLER_MOST];
    assert(size > 0 && size <= POLLER_MOST);
    int count = epoll_wait(set, ready, size, 0);
    for (int i = 0; i < count; i++)
        out[i] = (poller_event){ ready[i].data.fd,
                                 (ready[i].events & EPOLLIN ? POLLER_IN : 0u) |
                                     (ready[i].events & EPOLLOUT ? POLLER_OUT : 0u) |
                                     (ready[i].events & (EPOLLHUP | EPOLLERR) ? POLLER_GONE : 0u) };
    return count > 0 ? count : 0;
}

int bell_open(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void bell_ring(int bell) {
    uint64_t one = 1;
    if (write(bell, &one, sizeof one) < 0) {
        /* The counter is full: it is readable already. */
    }
}

bool bell_take(int bell) {
    uint64_t count;
    return read(bell, &count, sizeof count) > 0;
}

#else

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/time.h>

static const struct timespec AT_ONCE = { 0, 0 };

int poller_open(void) {
    int set = kqueue();
    if (set >= 0) (void)fcntl(set, F_SETFD, FD_CLOEXEC);
    return set;
}

/* Reading and writing are two filters. What is asked for travels with them, because the filter for reading also stands
 * for the other end's going: then it asks for more bytes than any buffer has, so that only the end sets it off. */
static bool put(int set, int fd, uint32_t what) {
    struct kevent both[2], answers[2];
    void *asked = (void *)(uintptr_t)what;
    bool quiet = !(what & POLLER_IN);
    EV_SET(&both[0], (uintptr_t)fd, EVFILT_READ, EV_ADD | EV_RECEIPT, quiet ? NOTE_LOWAT : 0,
           quiet ? INT_MAX : 0, asked);
    EV_SET(&both[1], (uintptr_t)fd, EVFILT_WRITE,
           (what & POLLER_OUT ? EV_ADD : EV_DELETE) | EV_RECEIPT, 0, 0, asked);
    int count = kevent(set, both, 2, answers, 2, NULL);
    bool good = count == 2;
    for (int i = 0; i < count; i++)
        good &= !answers[i].data || (answers[i].filter == EVFILT_WRITE && !(what & POLLER_OUT));
    return good;
}

/* A kqueue takes a member twice; only PostgreSQL's socket is added again, and then nothing changes. */
bool poller_add(int set, int fd, uint32_t what) { return put(set, fd, what); }
bool poller_change(int set, int fd, uint32_t what) { return put(set, fd, what); }

void poller_remove(int set, int fd) {
    struct kevent both[2], answers[2];
    EV_SET(&both[0], (uintptr_t)fd, EVFILT_READ, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    EV_SET(&both[1], (uintptr_t)fd, EVFILT_WRITE, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    (void)kevent(set, both, 2, answers, 2, NULL);
}

static uint32_t told(const struct kevent *e) {
    uint32_t asked = (uint32_t)(uintptr_t)e->udata;
    uint32_t what = e->filter == EVFILT_WRITE ? POLLER_OUT : asked & POLLER_IN;
    return what | (e->flags & (EV_EOF | EV_ERROR) ? POLLER_GONE : 0u);
}

/* The two filters of a descriptor come one by one. */
int poller_take(int set, poller_event *out, int size) {
    struct kevent ready[POLLER_MOST];
    int kept = 0;
    assert(size > 0 && size <= POLLER_MOST);
    int count = kevent(set, NULL, 0, ready, size, &AT_ONCE);
    for (int i = 0; i < count; i++) {
        int at = 0, fd = (int)ready[i].ident;
        while (at < kept && out[at].fd != fd) at++;
        if (at == kept) out[kept++] = (poller_event){ .fd = fd };
        out[at].what |= told(&ready[i]);
    }
    return kept;
}

enum { RING = 1 };

/* A kqueue of its own, with the one event that a program makes itself. */
int bell_open(void) {
    struct kevent ring;
    int bell = poller_open();
    EV_SET(&ring, RING, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, NULL);
    if (bell < 0 || kevent(bell, &ring, 1, NULL, 0, NULL) >= 0) return bell;
    int why = errno;
    close(bell);
    errno = why;
    return -1;
}

void bell_ring(int bell) {
    struct kevent ring;
    EV_SET(&ring, RING, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
    (void)kevent(bell, &ring, 1, NULL, 0, NULL);
}

bool bell_take(int bell) {
    struct kevent rung;
    return kevent(bell, NULL, 0, &rung, 1, &AT_ONCE) > 0;
}

#endif

/* system.c -- see system.h. */
#define _GNU_SOURCE
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef __linux__

void system_sort(void *items, size_t count, size_t size,
                 int (*compare)(const void *, const void *, void *), void *ctx) {
    qsort_r(items, count, size, compare, ctx);
}

int system_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
int system_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
int system_accept(int listening) {
    return accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool system_program(char *out, size_t size) {
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

void system_program_name(char *out, size_t size) {
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
    if (fd >= 0) close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

#else

#include <mach-o/dyld.h>

/* There the context comes first, in both calls. */
typedef struct order {
    int (*compare)(const void *, const void *, void *);
    void *ctx;
} order;

static int compare_in(void *ctx, const void *a, const void *b) {
    const order *o = ctx;
    return o->compare(a, b, o->ctx);
}

void system_sort(void *items, size_t count, size_t size,
                 int (*compare)(const void *, const void *, void *), void *ctx) {
    order o = { compare, ctx };
    qsort_r(items, count, size, &o, compare_in);
}

static bool keep(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0; }

int system_pipe(int ends[2]) {
    if (pipe(ends)) return -1;
    if (keep(ends[0]) && keep(ends[1])) return 0;
    int why = errno;
    close(ends[0]);
    close(ends[1]);
    errno = why;
    return -1;
}

static int own_socket(int fd) {
    int yes = 1;
    if (fd < 0) return -1;
    if (keep(fd) && !fcntl(fd, F_SETFL, O_NONBLOCK) &&
        !setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

int system_socket(void) { return own_socket(socket(AF_UNIX, SOCK_STREAM, 0)); }
int system_accept(int listening) { return own_socket(accept(listening, NULL, NULL)); }

bool system_program(char *out, size_t size) {
    uint32_t room = (uint32_t)size;
    return _NSGetExecutablePath(out, &room) == 0;
}

void system_program_name(char *out, size_t size) {
    const char *name = getprogname();
    snprintf(out, size, "%s", name ? name : "");
}

#endif

/* address.c -- sockets by path. A socket's address has room for 108 bytes only; on Linux a longer path is
 * reached through a descriptor of its directory. */
#define _GNU_SOURCE
#include "socket/address.h"

#include "base/system.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define INFIX   "-live-"
#define BACKLOG 16

/* ---- paths as addresses */

typedef struct reached {
    struct sockaddr_un address;
    int directory; /* kept open while the address is in use; -1: not needed */
} reached;

static bool split(const char *path, char directory[ADDRESS_MAX], const char **name) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= ADDRESS_MAX) return false;
    if (!slash) snprintf(directory, ADDRESS_MAX, ".");
    else if (!length) snprintf(directory, ADDRESS_MAX, "/");
    else snprintf(directory, ADDRESS_MAX, "%.*s", (int)length, path);
    *name = slash ? slash + 1 : path;
    return true;
}

/* Whether the address was printed whole; if not, gives it up with ENAMETOOLONG. */
static bool finish_reach(reached *at, int length) {
    assert(at->directory >= -1 && at->address.sun_family == AF_UNIX);
    if (length > 0 && (size_t)length < sizeof at->address.sun_path) return true;
    if (at->directory >= 0) close(at->directory);
    errno = ENAMETOOLONG;
    return false;
}

static bool reach(const char *path, reached *at) {
    char directory[ADDRESS_MAX];
    const char *name;
    *at = (reached){ .address = { .sun_family = AF_UNIX }, .directory = -1 };
    char *out = at->address.sun_path;
    size_t size = sizeof at->address.sun_path;
    if (strlen(path) < size) return finish_reach(at, snprintf(out, size, "%s", path));
    if (!split(path, directory, &name)) return finish_reach(at, -1);
#ifdef __linux__
    at->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at->directory < 0) return false;
    return finish_reach(at, snprintf(out, size, "/proc/self/fd/%d/%s", at->directory, name));
#else
    return finish_reach(at, -1);
#endif
}

/* bind() makes the socket's file with the mode that fchmod gives to the unbound socket. macOS cannot do that: there the
 * file has the mode of the umask, and only address_peer keeps other users out. */
static bool close_to_others(int fd) {
#ifdef __linux__
    return !fchmod(fd, 0600);
#else
    return fd >= 0;
#endif
}

static int with_address(const char *path, int (*fn)(int, const struct sockaddr *, socklen_t)) {
    reached at;
    if (!reach(path, &at)) return -1;
    int fd = system_socket();
    int failed = fd < 0 || !close_to_others(fd) ||
                 fn(fd, (const struct sockaddr *)&at.address, sizeof at.address);
    int saved = errno;
    if (at.directory >= 0) close(at.directory);
    if (failed && fd >= 0) close(fd);
    errno = saved;
    return failed ? -1 : fd;
}

int address_listen(const char *path) {
    int fd = with_address(path, bind);
    if (fd < 0 || !listen(fd, BACKLOG)) return fd;
    int saved = errno;
    unlink(path);
    close(fd);
    errno = saved;
    return -1;
}

int address_connect(const char *path) { return with_address(path, connect); }

/* ---- names */

bool address_of(const char *file, pid_t pid, unsigned n, char out[ADDRESS_MAX]) {
    char more[16] = "";
    assert(n > 0 && pid > 0);
    if (n > 1) snprintf(more, sizeof more, ".%u", n);
    int length = snprintf(out, ADDRESS_MAX, "%s" INFIX "%ld%s", file, (long)pid, more);
    return length > 0 && length < ADDRESS_MAX;
}

/* The process id in the name of a socket of `file`; 0: `entry` is not such a name. */
static pid_t pid_in(const char *entry, const char *file) {
    size_t length = strlen(file);
    char *end;
    if (strncmp(entry, file, length) || strncmp(entry + length, INFIX, strlen(INFIX))) return 0;
    const char *digits = entry + length + strlen(INFIX);
    errno = 0;
    long pid = *digits >= '1' && *digits <= '9' ? strtol(digits, &end, 10) : 0;
    if (pid <= 0 || errno || pid != (long)(pid_t)pid) return 0;
    if (*end == '.') strtol(end + 1, &end, 10);
    return *end ? 0 : (pid_t)pid;
}

static bool is_socket(const char *path) {
    struct stat s;
    return !lstat(path, &s) && S_ISSOCK(s.st_mode);
}

void address_each(const char *file, address_fn fn, void *ctx) {
    char directory[ADDRESS_MAX], path[ADDRESS_MAX + 1 + NAME_MAX];
    const char *name;
    if (!split(file, directory, &name)) return;
    DIR *d = opendir(directory);
    if (!d) return;
    bool more = true;
    for (struct dirent *e; more && (e = readdir(d)) != NULL;) {
        pid_t pid = pid_in(e->d_name, name);
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (pid && strlen(path) < ADDRESS_MAX && is_socket(path)) more = fn(ctx, path, pid);
    }
    closedir(d);
}

/* ---- stale sockets */

/* All three tests are needed. A running program refuses connections between bind and listen, too, so its
 * process must not exist; the process id may be one of another container, or of a later process, so the
 * socket must refuse connections; and a file that is not a socket refuses connections as well. */
bool address_is_stale(const char *path, pid_t pid) {
    if (!is_socket(path)) return false;
    if (pid != getpid() && (!kill(pid, 0) || errno != ESRCH)) return false;
    int fd = address_connect(path);
    if (fd < 0) return errno == ECONNREFUSED;
    close(fd);
    return false;
}

static bool sweep(void *ctx, const char *path, pid_t pid) {
    unsigned *removed = ctx;
    assert(pid > 0);
    if (pid != getpid() && address_is_stale(path, pid) && !unlink(path)) ++*removed;
    return true;
}

unsigned address_sweep(const char *file) {
    unsigned removed = 0;
    address_each(file, sweep, &removed);
    return removed;
}

/* ---- the user at the other end */

bool address_may_ask(uid_t peer, uid_t ours) { return peer == ours || peer == 0; }

bool address_peer(int fd, uid_t *out) {
#ifdef __linux__
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) return false;
    *out = who.uid;
    return true;
#else
    gid_t group;
    return getpeereid(fd, out, &group) == 0;
#endif
}

/* process.c -- /proc and pidfd; on macOS sysctl and kqueue. */
#define _GNU_SOURCE
#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *process_host(char out[PROCESS_HOST]) {
    if (gethostname(out, PROCESS_HOST)) out[0] = '\0';
    out[PROCESS_HOST - 1] = '\0';
    return out;
}

#ifdef __linux__

#include <sys/syscall.h>

#define STAT_SIZE 1024

/* Reads /proc/PID/stat. Returns the end of its second field, the command in parentheses, which may contain any
 * character; NULL: there is no such file. */
static const char *read_stat(int64_t pid, char text[STAT_SIZE]) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%lld/stat", (long long)pid);
    FILE *in = fopen(name, "re");
    if (!in) return NULL;
    size_t n = fread(text, 1, STAT_SIZE - 1, in);
    fclose(in);
    text[n] = '\0';
    return strrchr(text, ')');
}

uint64_t process_started(int64_t pid) {
    char text[STAT_SIZE];
    const char *at = read_stat(pid, text);
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    unsigned long long started;
    return at && sscanf(at, "%llu", &started) == 1 ? started : 0;
}

/* A process that has ended and was not waited for is dead, too. */
static bool is_zombie(int64_t pid) {
    char text[STAT_SIZE];
    const char *at = read_stat(pid, text);
    return at && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X');
}

int process_watch(int64_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
#else
    (void)pid;
    return -1;
#endif
}

#else

#include <fcntl.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/proc.h>
#include <sys/sysctl.h>
#include <sys/time.h>

/* What the kernel knows of a process; false: there is none, or it does not say. */
static bool describe(int64_t pid, struct kinfo_proc *out) {
    int name[] = { CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)pid };
    size_t size = sizeof *out;
    return sysctl(name, 4, out, &size, NULL, 0) == 0 && size == sizeof *out;
}

uint64_t process_started(int64_t pid) {
    struct kinfo_proc p;
    if (!describe(pid, &p)) return 0;
    return (uint64_t)p.kp_proc.p_starttime.tv_sec * 1000000 +
           (uint64_t)p.kp_proc.p_starttime.tv_usec;
}

static bool is_zombie(int64_t pid) {
    struct kinfo_proc p;
    return describe(pid, &p) && p.kp_proc.p_stat == SZOMB;
}

/* A kqueue of its own, with one event. */
int process_watch(int64_t pid) {
    struct kevent end;
    int fd = kqueue();
    EV_SET(&end, (uintptr_t)pid, EVFILT_PROC, EV_ADD | EV_ONESHOT, NOTE_EXIT, 0, NULL);
    if (fd < 0 || (!fcntl(fd, F_SETFD, FD_CLOEXEC) && kevent(fd, &end, 1, NULL, 0, NULL) >= 0))
        return fd;
    close(fd);
    return -1;
}

#endif

bool process_lives(int64_t pid, uint64_t started) {
    if (pid <= 0 || (kill((pid_t)pid, 0) && errno == ESRCH) || is_zombie(pid)) return false;
    uint64_t now = process_started(pid);
    return !now || !started || now == started;
}

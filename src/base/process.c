/* process.c -- /proc and pidfd. */
#define _GNU_SOURCE
#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t process_started(int64_t pid) {
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%lld/stat", (long long)pid);
    FILE *in = fopen(name, "re");
    if (!in) return 0;
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = '\0';
    /* The command in parentheses may hold anything; the 22nd field is the 20th behind it. */
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    unsigned long long started;
    return at && sscanf(at, "%llu", &started) == 1 ? started : 0;
}

/* A process that has ended and was not waited for is dead, too. */
static bool is_zombie(int64_t pid) {
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%lld/stat", (long long)pid);
    FILE *in = fopen(name, "re");
    if (!in) return false;
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    return at && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X');
}

bool process_lives(int64_t pid, uint64_t started) {
    if (pid <= 0 || (kill((pid_t)pid, 0) && errno == ESRCH) || is_zombie(pid)) return false;
    uint64_t now = process_started(pid);
    return !now || !started || now == started;
}

int process_watch(int64_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
#else
    (void)pid;
    return -1;
#endif
}

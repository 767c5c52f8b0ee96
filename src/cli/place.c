/* place.c -- whether a directory is fit for a store. */
#define _GNU_SOURCE
#include "cli/place.h"

#include "cli/clock.h"
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/inotify.h>
#include <sys/vfs.h>
#else
#include <sys/param.h>
#include <sys/mount.h>
#endif

enum { FSYNCS = 9 };

/* ---- The file system ----------------------------------------------------------------------- */

/* How a file system treats a store that several processes map and lock. Linux tells a number, macOS a name. */
typedef struct file_system {
    unsigned long magic;
    const char *name;
    const char *warning; /* NULL: good */
} file_system;

static const char shared_memory[] =
    "locks and shared memory do not work across machines: use the store from one machine only";

static const file_system file_systems[] = {
    { 0xEF53, "ext4", NULL },
    { 0x58465342, "xfs", NULL },
    { 0x9123683E, "btrfs", NULL },
    { 0x2FC12FC1, "zfs", NULL },
    { 0xF2F52010, "f2fs", NULL },
    { 0xCA451A4E, "bcachefs", NULL },
    { 0, "apfs", NULL },
    { 0, "hfs", NULL },
    { 0, "smbfs", shared_memory },
    { 0, "msdos", "it has no journal: power loss may damage any file" },
    { 0x794C7630, "overlayfs", "a container's own layer: it goes when the container goes" },
    { 0x01021994, "tmpfs", "it is memory: nothing survives a restart of the machine" },
    { 0x6969, "nfs", shared_memory },
    { 0xFF534D42, "cifs", shared_memory },
    { 0xFE534D42, "smb2", shared_memory },
    { 0x01021997, "9p", shared_memory },
    { 0x00C36400, "ceph", shared_memory },
    { 0x65735546, "fuse", "whether it syncs and locks as promised depends on its program" },
    { 0x4D44, "fat", "it has no journal: power loss may damage any file" },
};

static bool is_named(const file_system *known, const struct statfs *fs) {
#ifdef __linux__
    return known->magic == ((unsigned long)fs->f_type & 0xFFFFFFFF);
#else
    return !strcmp(known->name, fs->f_fstypename);
#endif
}

static void look_at_file_system(place *p) {
    struct statfs fs;
    struct statvfs vfs;
    p->file_system = "unknown";
    if (statfs(p->directory, &fs)) return;
    p->reachable = true;
    p->writable = access(p->directory, W_OK | X_OK) == 0;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
        if (!is_named(&file_systems[i], &fs)) continue;
        p->file_system = file_systems[i].name;
        p->warning = file_systems[i].warning;
    }
    if (statvfs(p->directory, &vfs)) return;
    p->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    p->free_inodes = vfs.f_favail;
    p->read_only_mount = vfs.f_flag & ST_RDONLY;
}

/* ---- Trying -------------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* As SQLite does it. */
static bool sync_file(int fd) {
#ifdef __linux__
    return !fdatasync(fd);
#else
    return fcntl(fd, F_FULLFSYNC) != -1;
#endif
}

static void time_fsync(place *p, int fd) {
    uint64_t times[FSYNCS];
    char page[4096] = "heddle doctor";
    for (int i = 0; i < FSYNCS; i++) {
        page[64] = (char)i;
        uint64_t began = clock_ns();
        if (pwrite(fd, page, sizeof page, 0) != sizeof page || !sync_file(fd)) return;
        times[i] = clock_ns() - began;
    }
    qsort(times, FSYNCS, sizeof *times, compare_times);
    p->fsync_ns = times[FSYNCS / 2];
}

/* As a program would: a store, a commit. */
static void try_store(place *p, const char *file) {
    hd_runtime *rt;
    hd_error error = { 0 };
    hd_status status = hd_open(file, NULL, &rt, &error);
    if (!status) {
        status = hd_write_json(rt, hd_cell_at(rt, "main/try"), "1");
        if (!status) status = hd_runtime_sync(rt);
        if (status) error = *hd_runtime_error(rt);
        hd_status closed = hd_close(rt);
        if (!status) status = closed;
    }
    p->wal_works = !status;
    if (status)
        snprintf(p->wal_problem, sizeof p->wal_problem, "%s",
                 *error.message ? error.message : hd_status_text(status));
}

/* Makes a small store, which is removed afterwards with the files that SQLite makes beside it. */
static void try_it(place *p) {
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    char file[PLACE_PATH + 32], beside[PLACE_PATH + 48];
    snprintf(file, sizeof file, "%s/.heddle-doctor-XXXXXX", p->directory);
    int fd = mkstemp(file);
    if (fd < 0) return;
    p->tried = true;
    time_fsync(p, fd);
    close(fd);
    if (unlink(file) == 0) try_store(p, file);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(beside, sizeof beside, "%s%s", file, suffixes[i]);
        unlink(beside);
    }
}

/* ---- How other processes' commits are noticed ---------------------------------------------- */

#ifdef __linux__
static uint64_t number_in(const char *file) {
    char text[32] = "";
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    return n > 0 ? strtoull(text, NULL, 10) : 0;
}

static void look_at_inotify(place *p) {
    int fd = inotify_init1(IN_CLOEXEC);
    p->inotify_works = fd >= 0 && inotify_add_watch(fd, p->directory, IN_MODIFY) >= 0;
    if (fd >= 0) close(fd);
    p->inotify_instances = number_in("/proc/sys/fs/inotify/max_user_instances");
    p->inotify_watches = number_in("/proc/sys/fs/inotify/max_user_watches");
}
#else
static void look_at_inotify(place *p) { p->inotify_works = true; } /* a kqueue needs no allowance */
#endif

void place_examine(place *p, const char *file) {
    char copy[PLACE_PATH];
    *p = (place){ 0 };
    snprintf(copy, sizeof copy, "%s", file);
    snprintf(p->directory, sizeof p->directory, "%s", dirname(copy));
    look_at_file_system(p);
    if (!p->reachable) return;
    if (p->writable) try_it(p);
    look_at_inotify(p);
}

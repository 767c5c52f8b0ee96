/* watch.c -- inotify on a file and its WAL; kqueue on the WAL and the directory. */
#define _GNU_SOURCE
#include "store/sqlite/watch.h"

#include <assert.h>
#include <stdint.h>
#include <unistd.h>

void watch_init(watch *w) { *w = (watch){ .fd = -1, .wal_fd = -1, .directory_fd = -1 }; }

#ifdef __linux__

#include <sys/inotify.h>

/* That its name was taken from a file comes as a change of its attributes (the link count). */
#define OF_NAMES (IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

static bool add(const watch *w, const char *name, uint32_t what) {
    return w->fd >= 0 && inotify_add_watch(w->fd, name, what) >= 0;
}

void watch_open(watch *w, sqlite3 *db) {
    assert(w->fd < 0);
    const char *name = sqlite3_db_filename(db, "main");
    if (!name || !*name) return;
    w->wal = sqlite3_filename_wal(name);
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    (void)add(w, name, OF_NAMES);
    (void)add(w, w->wal, OF_NAMES);
}

void watch_close(watch *w) {
    if (w->fd >= 0) close(w->fd);
    watch_init(w);
}

bool watch_arm(watch *w) {
    if (add(w, w->wal, OF_NAMES | IN_MODIFY)) return true;
    watch_close(w); /* no such file, or no more watches */
    return false;
}

/* Not IN_ONESHOT: that would end the watch of the WAL's name, too, and a WAL that is replaced before the next watch_arm
 * would not be noticed. Events that are alike are one while they are not read. */
void watch_take(watch *w) {
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n = w->fd >= 0 ? read(w->fd, bytes, sizeof bytes) : 0;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const void *)(bytes + at);
        if (e->mask & OF_NAMES) w->renamed = true;
        at += (ssize_t)(sizeof *e + e->len);
    }
    (void)add(w, w->wal, OF_NAMES);
}

#else

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/time.h>

#ifndef O_EVTONLY /* macOS: a descriptor that does not keep its volume mounted */
#define O_EVTONLY O_RDONLY
#endif

static bool tell_once(int set, int fd, unsigned what, bool once) {
    struct kevent change;
    EV_SET(&change, (uintptr_t)fd, EVFILT_VNODE,
           (unsigned short)(EV_ADD | EV_CLEAR | (once ? EV_ONESHOT : 0)), what, 0, NULL);
    return fd >= 0 && kevent(set, &change, 1, NULL, 0, NULL) >= 0;
}

/* The store's own file is never opened here: closing one descriptor of a file drops all the locks that the process has
 * on it, SQLite's among them. That its name was taken away changes its directory. SQLite locks no WAL. */
void watch_open(watch *w, sqlite3 *db) {
    char directory[4096];
    assert(w->fd < 0);
    const char *name = sqlite3_db_filename(db, "main");
    if (!name || !*name) return;
    const char *slash = strrchr(name, '/');
    w->wal = sqlite3_filename_wal(name);
    snprintf(directory, sizeof directory, "%.*s/", slash ? (int)(slash - name) : 1,
             slash ? name : ".");
    w->fd = kqueue();
    if (w->fd < 0) return;
    (void)fcntl(w->fd, F_SETFD, FD_CLOEXEC);
    w->directory_fd = open(directory, O_EVTONLY | O_CLOEXEC);
    (void)tell_once(w->fd, w->directory_fd, NOTE_WRITE, false);
}

void watch_close(watch *w) {
    if (w->wal_fd >= 0) close(w->wal_fd);
    if (w->directory_fd >= 0) close(w->directory_fd);
    if (w->fd >= 0) close(w->fd);
    watch_init(w);
}

/* By name each time, as the WAL may be another file by now. */
bool watch_arm(watch *w) {
    if (w->wal_fd >= 0) close(w->wal_fd);
    w->wal_fd = w->fd >= 0 ? open(w->wal, O_EVTONLY | O_CLOEXEC) : -1;
    if (w->wal_fd >= 0 && tell_once(w->fd, w->wal_fd, NOTE_WRITE | NOTE_EXTEND, true)) return true;
    watch_close(w); /* no such file, or no more descriptors */
    return false;
}

void watch_take(watch *w) {
    struct kevent told[8];
    static const struct timespec at_once = { 0, 0 };
    while (w->fd >= 0 && kevent(w->fd, NULL, 0, told, 8, &at_once) == 8) {}
    w->renamed = true; /* it may be */
}

#endif

/* Of the locks in the WAL's shared memory, the one that a write transaction holds from its beginning until its commit
 * can be seen. */
enum { WRITE_LOCK = 0 };

bool watch_sees_writing(sqlite3 *db) {
    sqlite3_file *f = NULL;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f) || !f || !f->pMethods ||
        f->pMethods->iVersion < 2)
        return true;
    if (f->pMethods->xShmLock(f, WRITE_LOCK, 1, SQLITE_SHM_LOCK | SQLITE_SHM_SHARED)) return true;
    (void)f->pMethods->xShmLock(f, WRITE_LOCK, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED);
    return false;
}

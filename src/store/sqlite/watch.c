/* watch.c -- inotify on a file and its WAL. */
#define _GNU_SOURCE
#include "store/sqlite/watch.h"

#include <assert.h>
#include <sys/inotify.h>
#include <unistd.h>

void watch_init(watch *w) { *w = (watch){ .fd = -1 }; }

void watch_open(watch *w, sqlite3 *db) {
    assert(w->fd < 0);
    const char *name = sqlite3_db_filename(db, "main");
    if (!name || !*name) return;
    w->wal = sqlite3_filename_wal(name);
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* That its name was taken from the file comes as a change of its attributes (the link count). */
    if (w->fd >= 0) (void)inotify_add_watch(w->fd, name, IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
}

void watch_close(watch *w) {
    if (w->fd >= 0) close(w->fd);
    watch_init(w);
}

bool watch_arm(watch *w) {
    if (w->fd >= 0 && inotify_add_watch(w->fd, w->wal, IN_MODIFY | IN_ONESHOT) >= 0) return true;
    watch_close(w); /* no such file, or no more watches */
    return false;
}

void watch_take(watch *w) {
    char bytes[4096];
    while (w->fd >= 0 && read(w->fd, bytes, sizeof bytes) == sizeof bytes) {}
}

/* sqlite_wake.h -- when is there something to look at? One descriptor that knows.
 *
 * Our own writer says so through an eventfd. Other processes write to the WAL, which the system
 * tells through inotify; where it cannot (another VFS, a network file system), the file is looked at
 * from time to time. */
#ifndef STORE_SQLITE_WAKE_H
#define STORE_SQLITE_WAKE_H

#include <heddle/base.h>

typedef struct wake {
    int epoll_fd;
    int event_fd;  /* outcomes, and wake-ups from other threads */
    int notify_fd; /* inotify on the WAL; -1: none */
} wake;

/* `file` is the database; NULL when it is no file of the operating system. HD_NOMEM, HD_IO. */
hd_status wake_open(wake *w, const char *file);
void wake_close(wake *w);
/* Adds the watch once the WAL exists. */
void wake_watch(wake *w, const char *file);

/* Takes what has come: whether the writer has something, whether the WAL was written to. */
void wake_take(wake *w, bool *outcomes, bool *written);

static inline bool wake_watches(const wake *w) { return w->notify_fd >= 0; }

#endif

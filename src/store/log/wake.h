/* wake.h -- when is there something to look at? One descriptor that knows.
 *
 * Our own writer says so through an eventfd. Other processes write to the WAL, or delete or replace the
 * file, which the system tells through inotify; where it cannot (another VFS, a network file system), the file is looked at
 * from time to time. */
#ifndef STORE_LOG_WAKE_H
#define STORE_LOG_WAKE_H

#include <heddle/base.h>

#define WAKE_PATH_MAX 4096

typedef struct wake {
    int epoll_fd;
    int event_fd;  /* outcomes, and wake-ups from other threads */
    int notify_fd; /* inotify; -1: none */
    bool armed;    /* the next write to the WAL will be told */
    char wal[WAKE_PATH_MAX];
} wake;

/* Before anything else: a wake that is not open. */
void wake_init(wake *w);
/* HD_IO: no descriptor is left; errno tells why. */
hd_status wake_open(wake *w);
void wake_close(wake *w);
/* Makes ready to watch the WAL of a file of the operating system. */
void wake_watch(wake *w, const char *file);

/* Asks to be told of the next write to the WAL, once. Our own writer writes there too, and each write
 * to a watched file costs something, so nobody asks while it is at work. */
void wake_arm(wake *w);

/* Takes what has come: whether the writer has something, whether the WAL was written to. */
void wake_take(wake *w, bool *outcomes, bool *written);

static inline bool wake_watches(const wake *w) { return w->notify_fd >= 0; }

#endif

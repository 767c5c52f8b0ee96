/* watch.h -- hearing of writes to a file by other processes.
 *
 * Other processes write to the WAL, or delete or replace the file; the system tells of both through
 * inotify, or a kqueue. Where it cannot (another VFS, a network file system) there is no descriptor. */
#ifndef STORE_SQLITE_WATCH_H
#define STORE_SQLITE_WATCH_H

#include <sqlite3.h>
#include <stdbool.h>

typedef struct watch {
    int fd;                   /* inotify or kqueue; -1: none */
    int wal_fd, directory_fd; /* what a kqueue looks at; -1: none */
    const char *wal;          /* its name, borrowed from the connection */
    bool
        renamed; /* something has happened to the name of the file or its WAL; the owner clears it */
} watch;

/* Before anything else: a watch that is not open. */
void watch_init(watch *w);
/* Watches the file of a connection, and makes ready to watch its WAL. */
void watch_open(watch *w, sqlite3 *db);
void watch_close(watch *w);

/* Asks to be told of the next write to the WAL, once. False: there is nothing to watch it with any more. */
bool watch_arm(watch *w);
/* Takes what has come. */
void watch_take(watch *w);

/* Whether a connection of any process is in a write transaction. Not while this one is. */
bool watch_sees_writing(sqlite3 *db);

#endif

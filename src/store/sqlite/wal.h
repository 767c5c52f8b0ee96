/* wal.h -- the write-ahead log as a file: how long it is, and that it need not grow.
 *
 * A COMMIT appends pages to the WAL and syncs it. Where the WAL becomes longer by that, the file
 * system has to make its new length durable as well, which takes about as long as the pages do. So
 * we lengthen it ahead of time, by zeros that are overwritten later: most commits then meet blocks
 * that are there already. SQLite takes frames of zeros for what they are, the end.
 *
 * When the WAL has grown it is copied into the file; SQLite then begins it anew from its start, unless a
 * reader has a snapshot in it at that moment. */
#ifndef STORE_SQLITE_WAL_H
#define STORE_SQLITE_WAL_H

#include "store/sqlite/file.h"

typedef struct wal {
    int pages;          /* in use after the last commit */
    int copied;         /* of them when it was last copied into the file */
    sqlite3_int64 room; /* bytes that the file is known to have; 0: not known */
    bool restarting;    /* waits for readers to leave it: the busy handler gives up soon */
    uint64_t salt;      /* of the WAL into which this connection has written the file's id last */
    bool marked;        /* it has */
} wal;

/* Counts pages from here on. `w` stays where it is. */
void wal_watch(wal *w, file *f);

/* Before a COMMIT that writes: sees to it that the WAL has the file's id (identity.h). Each time the WAL begins anew it
 * has another salt; a commit with which it begins anew is followed by one that writes the id again. */
void wal_mark(wal *w, file *f);

/* Before a COMMIT of about so many bytes, within its transaction: no other process appends meanwhile.
 * Failing is no harm. */
void wal_make_room(wal *w, file *f, size_t bytes);

/* Whether there is enough to copy, and doing so, between two commits of ours. Commits of other processes do not wait
 * for it. */
bool wal_is_long(const wal *w);
void wal_copy(wal *w, file *f);

#endif

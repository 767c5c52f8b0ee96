/* place.h -- whether a directory is fit for a store: by its file system, and by a test with a small file. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <heddle/store.h>

#define PLACE_PATH 4096

typedef struct place {
    char directory[PLACE_PATH];
    bool reachable, writable;
    const char *file_system; /* "ext4"; "unknown" */
    const char *warning;     /* of the file system; NULL: good */
    uint64_t free_bytes, free_inodes;
    bool read_only_mount;

    /* Tried with a small file that is removed again; only where it can be written. */
    bool tried, wal_works;
    char wal_problem[sizeof(((hd_error *)0)->message)];
    uint64_t fsync_ns; /* the median of a few; 0: not known */

    bool inotify_works;
    uint64_t inotify_instances, inotify_watches; /* limits for each user; 0: not known */
} place;

/* The directory of `file`, which itself need not exist. */
void place_examine(place *p, const char *file);

#endif

/* vfs_count.h -- how much SQLite writes: counters per kind of file.
 *
 * A thin layer over the operating system's own VFS that changes nothing and counts calls and
 * bytes, for measurements on a real disk. The lab disk (vfs.h) keeps the same counters. */
#ifndef LAB_VFS_COUNT_H
#define LAB_VFS_COUNT_H

#include <stdint.h>

/* Told apart by name: "x-wal", "x-journal", no name at all (temporary), anything else. */
typedef enum { LAB_FILE_DB, LAB_FILE_WAL, LAB_FILE_JOURNAL, LAB_FILE_TEMP } lab_file_kind;
enum { LAB_FILE_KINDS = LAB_FILE_TEMP + 1 };

typedef struct {
    uint64_t reads, writes, syncs, truncates;
    uint64_t bytes_read, bytes_written;
} lab_io;

typedef struct {
    lab_io file[LAB_FILE_KINDS];
} lab_io_counts;

lab_file_kind lab_file_kind_of(const char *name);

/* Bytes written to the database and its WAL together: the cost of a commit on the disk, with its
 * share of checkpoints. */
uint64_t lab_io_durable_bytes(const lab_io_counts *counts);
uint64_t lab_io_syncs(const lab_io_counts *counts);

typedef struct lab_count_vfs lab_count_vfs;

/* Registers a VFS called `name` over the default one; open databases with it by that name.
 * NULL when SQLite refuses. Yours until lab_vfs_counting_unregister(), which must come after the
 * last connection is closed. Counting is safe from any thread. */
lab_count_vfs *lab_vfs_counting_register(const char *name);
void lab_vfs_counting_unregister(lab_count_vfs *vfs);

/* The counters since registration or the last reset. Each number is exact; numbers read while
 * other threads write belong to slightly different moments. */
lab_io_counts lab_vfs_counting_read(const lab_count_vfs *vfs);
void lab_vfs_counting_reset(lab_count_vfs *vfs);

#endif

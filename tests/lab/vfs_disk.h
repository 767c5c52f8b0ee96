/* vfs_disk.h -- inside a lab disk: shared by vfs_disk.c (the disk) and vfs.c (SQLite's view). */
#ifndef LAB_VFS_DISK_H
#define LAB_VFS_DISK_H

#include "vfs.h"
#include "vfs_image.h"

#include <pthread.h>
#include <sqlite3.h>

enum { DISK_FAULTS_MAX = 8 };

struct lab_disk {
    sqlite3_vfs vfs;       /* first: SQLite hands us a pointer to it */
    char name[32];         /* vfs.zName; made of our address, so unique while we live */
    pthread_mutex_t mutex; /* guards everything below */

    image img;
    lab_recording *recording; /* NULL when not recording */
    uint64_t epoch;           /* crashes so far; a handle of an earlier epoch is dead */
    uint32_t handles;         /* open, dead ones included */

    lab_fault faults[DISK_FAULTS_MAX]; /* nth: calls still to go */
    size_t faults_count;
    uint64_t faults_struck;
    uint64_t calls[LAB_OPS];
    uint64_t size_limit; /* of all files together; UINT64_MAX is none */
    bool read_only;
    void (*before_write)(void *ctx); /* called without the mutex */
    void *before_write_ctx;
    lab_io_counts counts;
};

void disk_lock(lab_disk *disk);
void disk_unlock(lab_disk *disk);

/* The rest wants the mutex held. */

/* Changes the image and records the change: the only way to do either. Takes the blob. */
void disk_do(lab_disk *disk, image_op_kind kind, uint32_t inode, uint64_t at, image_blob *blob);

image_inode *disk_create(lab_disk *disk, const char *name);

/* Counts a call; SQLITE_OK, or the code it must fail with. */
int disk_call(lab_disk *disk, lab_op op);

/* Fills in the methods (vfs.c); the name and registration are the disk's. */
void disk_vfs_init(sqlite3_vfs *vfs);

#endif

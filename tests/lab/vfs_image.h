/* vfs_image.h -- the state of a disk as a fold over operations.
 *
 * An image knows nothing of SQLite, handles or threads. The live disk and the replay of a
 * recording both feed operations to image_apply(), and power fails in image_power_loss(); so what
 * a recording says about a crash is what the live disk would have done. */
#ifndef LAB_VFS_IMAGE_H
#define LAB_VFS_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Test code: running out of memory aborts. */
void *image_alloc(size_t size); /* zeroed */
void *image_resize(void *old, size_t size);

/* The bytes of a write or a name, shared between a recording, its keyframes and live images. */
typedef struct {
    atomic_uint refs;
    size_t size;
    uint8_t bytes[];
} image_blob;

image_blob *image_blob_new(const void *bytes, size_t size);
void image_blob_unref(image_blob *blob); /* NULL is fine */

typedef enum {
    IMAGE_CREATE,   /* blob: the name; inode: the next free number */
    IMAGE_UNLINK,   /* inode */
    IMAGE_SYNC_DIR, /* all creations and deletions so far are durable */
    IMAGE_WRITE,    /* inode, at: offset, blob */
    IMAGE_TRUNCATE, /* inode, at: size */
    IMAGE_SYNC,     /* inode */
    IMAGE_MARK      /* at: the number */
} image_op_kind;

typedef struct {
    image_op_kind kind;
    uint32_t inode;
    uint64_t at;
    image_blob *blob; /* one reference, or NULL */
} image_op;

typedef struct {
    image_op *items;
    size_t count, capacity;
} image_ops;

void image_ops_push(image_ops *ops, const image_op *op); /* takes a reference of its own */
void image_ops_clear(image_ops *ops);

typedef struct {
    uint8_t *data;
    size_t size, capacity;
} image_bytes;

/* Writing or growing beyond the end fills the gap with zeros. */
void image_bytes_write(image_bytes *b, uint64_t at, const void *from, size_t size);
void image_bytes_truncate(image_bytes *b, uint64_t size);
size_t image_bytes_read(const image_bytes *b, uint64_t at, void *to, size_t size);

typedef struct {
    uint32_t id;
    char *name; /* NULL: a temporary file, which is in no image and survives nothing */
    /* What programs see: durable with `unsynced` applied. Kept in live images only. */
    image_bytes current;
    /* What is on the platter for certain. Written by sync and power loss only. */
    image_bytes durable;
    image_ops unsynced;  /* writes and truncations since the last sync, in order */
    bool linked;         /* the name leads here, as programs see it */
    bool linked_durably; /* the name would lead here after a power loss that loses everything */
    bool synced;         /* at least once; the first sync of a journal also syncs the directory */
    uint32_t handles;    /* keeps a file that has lost its name; written by vfs.c only */
    void *locks;         /* of vfs_lock.c; freed by it with the last handle */
} image_inode;

typedef struct {
    image_inode **inodes; /* by number; NULL where a file is gone for good */
    uint32_t count, capacity;
    image_ops directory; /* creations and deletions since the directory was last synced */
    uint32_t sector_size;
    bool whole_sectors;
    bool live;
} image;

void image_init(image *img, uint32_t sector_size, bool whole_sectors);
void image_fini(image *img);
void image_clone(image *to, const image *from, bool live);

/* Operations on files the image no longer has are without effect: nobody could see them after a
 * crash. */
void image_apply(image *img, const image_op *op);

image_inode *image_find(const image *img, const char *name); /* as programs see it, or NULL */
image_inode *image_inode_new(uint32_t id, const char *name);
void image_inode_free(image_inode *inode);

/* Frees the inode when it has neither name nor handles left. */
void image_collect(image *img, image_inode *inode);

/* The power fails and comes back: the image becomes one of its possible pasts, live, with
 * everything in it durable. No inode of before remains. */
void image_power_loss(image *img, uint64_t seed);

size_t image_durable_size(const image *img);

/* Bytes programs see in all files together; what a full disk counts. */
uint64_t image_current_size(const image *img);

#endif

/* vfs_lock.h -- the locks of one file and its shared memory, between handles.
 *
 * SQLite's two protocols: the five lock levels of a database file, and the eight slots of a WAL
 * index. Handles of one process exclude each other as those of several processes would. All of it
 * is called with the disk's mutex held. */
#ifndef LAB_VFS_LOCK_H
#define LAB_VFS_LOCK_H

#include "vfs_image.h"

#include <sqlite3.h>

typedef struct file_locks file_locks;

/* One handle's share of a file's locks; its address is its identity. */
typedef struct {
    file_locks *all;
    int level;              /* SQLITE_LOCK_NONE to SQLITE_LOCK_EXCLUSIVE */
    bool uses_shm;          /* has mapped a region */
    uint16_t shm_shared;    /* slots held, one bit each */
    uint16_t shm_exclusive; /* disjoint from shm_shared */
} lock_holder;

void locks_attach(lock_holder *h, image_inode *inode);

/* Releases all that is held. `inode` is NULL when it died in a crash before its handle. */
void locks_detach(lock_holder *h, image_inode *inode);

int locks_lock(lock_holder *h, int level);
void locks_unlock(lock_holder *h, int level);
bool locks_reserved(const lock_holder *h);

/* Maps a region of shared memory, zeroed when new; NULL in *out when it does not exist and
 * `extend` is not set. It stays at its place until the last user unmaps. */
void locks_shm_map(lock_holder *h, size_t region, size_t size, bool extend, void volatile **out);
bool locks_shm_in_use(const lock_holder *h);
int locks_shm_lock(lock_holder *h, int slot, int n, int flags);
void locks_shm_unmap(lock_holder *h);

#endif

/* vfs_lock.c -- who may read and write a file at the moment.
 *
 * Database file: any number of handles hold SHARED; at most one of them is the `writer`, with
 * RESERVED, PENDING (no new readers) or EXCLUSIVE (no readers at all). WAL index: each slot is
 * free, shared by some, or exclusive to one. */
#include "vfs_lock.h"

#include <assert.h>
#include <stdlib.h>

struct file_locks {
    uint32_t handles; /* attached; the struct is freed with the last */
    uint32_t shared;  /* handles at SHARED or above */
    const lock_holder *writer;

    uint32_t shm_users; /* the regions are freed with the last */
    size_t regions;
    uint8_t **region;
    uint32_t slot_shared[SQLITE_SHM_NLOCK];
    const lock_holder *slot_owner[SQLITE_SHM_NLOCK];
};

void locks_attach(lock_holder *h, image_inode *inode) {
    if (!inode->locks) inode->locks = image_alloc(sizeof(file_locks));
    *h = (lock_holder){ .all = inode->locks };
    h->all->handles++;
}

void locks_detach(lock_holder *h, image_inode *inode) {
    locks_shm_unmap(h);
    locks_unlock(h, SQLITE_LOCK_NONE);
    assert(!inode || inode->locks == h->all);
    if (--h->all->handles) return;
    assert(h->all->shared == 0 && !h->all->writer);
    free(h->all);
    if (inode) inode->locks = NULL;
}

/* ---- the five levels ---- */

static int lock_shared(lock_holder *h) {
    if (h->all->writer && h->all->writer->level >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
    h->all->shared++;
    h->level = SQLITE_LOCK_SHARED;
    return SQLITE_OK;
}

int locks_lock(lock_holder *h, int level) {
    if (h->level >= level) return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) return lock_shared(h);

    assert(h->level >= SQLITE_LOCK_SHARED && level != SQLITE_LOCK_PENDING);
    if (h->all->writer && h->all->writer != h) return SQLITE_BUSY;
    h->all->writer = h;
    h->level = level;
    if (level == SQLITE_LOCK_EXCLUSIVE && h->all->shared > 1) {
        h->level = SQLITE_LOCK_PENDING; /* kept: readers drain, and none come */
        return SQLITE_BUSY;
    }
    return SQLITE_OK;
}

void locks_unlock(lock_holder *h, int level) {
    assert(level <= SQLITE_LOCK_SHARED);
    if (h->level <= level) return;
    if (h->all->writer == h) h->all->writer = NULL;
    if (level == SQLITE_LOCK_NONE) h->all->shared--;
    h->level = level;
}

bool locks_reserved(const lock_holder *h) { return h->all->writer != NULL; }

/* ---- shared memory ---- */

static void shm_extend(file_locks *all, size_t regions, size_t size) {
    if (regions <= all->regions) return;
    all->region = image_resize(all->region, regions * sizeof *all->region);
    while (all->regions < regions) all->region[all->regions++] = image_alloc(size);
}

void locks_shm_map(lock_holder *h, size_t region, size_t size, bool extend, void volatile **out) {
    if (!h->uses_shm) h->all->shm_users++;
    h->uses_shm = true;
    if (extend) shm_extend(h->all, region + 1, size);
    *out = region < h->all->regions ? h->all->region[region] : NULL;
}

bool locks_shm_in_use(const lock_holder *h) { return h->all->shm_users > 0; }

static void shm_release(lock_holder *h, int slot) {
    uint16_t bit = (uint16_t)(1u << slot);
    if (h->shm_shared & bit) h->all->slot_shared[slot]--;
    if (h->shm_exclusive & bit) h->all->slot_owner[slot] = NULL;
    h->shm_shared = (uint16_t)(h->shm_shared & ~bit);
    h->shm_exclusive = (uint16_t)(h->shm_exclusive & ~bit);
}

static bool shm_grantable(const lock_holder *h, int slot, bool exclusive) {
    const file_locks *all = h->all;
    if (all->slot_owner[slot] && all->slot_owner[slot] != h) return false;
    bool mine = h->shm_shared & (1u << slot);
    return !exclusive || all->slot_shared[slot] == (mine ? 1u : 0u);
}

static void shm_grant(lock_holder *h, int slot, bool exclusive) {
    uint16_t bit = (uint16_t)(1u << slot);
    if ((exclusive ? h->shm_exclusive : h->shm_shared) & bit) return;
    shm_release(h, slot);
    if (exclusive) {
        h->all->slot_owner[slot] = h;
        h->shm_exclusive |= bit;
    } else {
        h->all->slot_shared[slot]++;
        h->shm_shared |= bit;
    }
}

int locks_shm_lock(lock_holder *h, int first, int n, int flags) {
    bool exclusive = flags & SQLITE_SHM_EXCLUSIVE;
    assert(first >= 0 && first + n <= SQLITE_SHM_NLOCK);
    if (flags & SQLITE_SHM_LOCK) {
        for (int slot = first; slot < first + n; slot++)
            if (!shm_grantable(h, slot, exclusive)) return SQLITE_BUSY;
    }
    for (int slot = first; slot < first + n; slot++) {
        if (flags & SQLITE_SHM_LOCK) shm_grant(h, slot, exclusive);
        else shm_release(h, slot);
    }
    return SQLITE_OK;
}

void locks_shm_unmap(lock_holder *h) {
    for (int slot = 0; slot < SQLITE_SHM_NLOCK; slot++) shm_release(h, slot);
    if (!h->uses_shm) return;
    h->uses_shm = false;
    if (--h->all->shm_users) return;
    for (size_t i = 0; i < h->all->regions; i++) free(h->all->region[i]);
    free(h->all->region);
    h->all->region = NULL;
    h->all->regions = 0;
}

/* vfs.c -- the lab disk as SQLite sees it.
 *
 * Every method is the same few steps: take the disk's mutex, refuse when the handle died in a
 * crash, count the call and let a fault strike, act on the image. enter() does the first three. */
#include "vfs_disk.h"
#include "vfs_lock.h"
#include "lab.h"

#include <assert.h>
#include <string.h>

typedef struct {
    sqlite3_file base;
    lab_disk *disk;
    image_inode *inode; /* dangling once the handle is dead; a temporary file's is our own */
    lock_holder locks;
    uint64_t epoch; /* dead when the disk's is another */
    bool temporary; /* without a name */
    bool read_only;
    bool delete_on_close;
    bool new_journal; /* its first sync must sync the directory */
} disk_file;

static disk_file *of(sqlite3_file *f) { return (disk_file *)f; }

static bool dead(const disk_file *f) { return f->epoch != f->disk->epoch; }

static lab_io *io(disk_file *f) { return &f->disk->counts.file[lab_file_kind_of(f->inode->name)]; }

/* With the mutex held afterwards, whatever it returns. */
static int enter(disk_file *f, lab_op op, int dead_code) {
    disk_lock(f->disk);
    return dead(f) ? dead_code : disk_call(f->disk, op);
}

static int leave(disk_file *f, int rc) {
    disk_unlock(f->disk);
    return rc;
}

/* ---- content ---- */

static int read_some(disk_file *f, void *to, size_t size, size_t wanted, uint64_t at) {
    size_t there = image_bytes_read(&f->inode->current, at, to, wanted);
    memset((uint8_t *)to + there, 0, size - there);
    io(f)->bytes_read += there;
    return there == size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at) {
    disk_file *f = of(file);
    size_t wanted = (size_t)size;
    int rc = enter(f, LAB_OP_READ, SQLITE_IOERR_READ);
    if (rc && rc != SQLITE_IOERR_SHORT_READ) return leave(f, rc);
    io(f)->reads++;
    if (rc == SQLITE_IOERR_SHORT_READ) wanted /= 2;
    return leave(f, read_some(f, to, (size_t)size, wanted, (uint64_t)at));
}

static void write_now(disk_file *f, const void *from, size_t size, uint64_t at) {
    if (!size) return;
    io(f)->writes++;
    io(f)->bytes_written += size;
    if (f->temporary) image_bytes_write(&f->inode->current, at, from, size);
    else disk_do(f->disk, IMAGE_WRITE, f->inode->id, at, image_blob_new(from, size));
}

/* How many of the bytes fit on the disk. */
static size_t room_for(const disk_file *f, size_t size, uint64_t at) {
    uint64_t end = at + size, old = f->inode->current.size;
    if (end <= old || f->temporary || f->disk->size_limit == UINT64_MAX) return size;
    uint64_t used = image_current_size(&f->disk->img);
    uint64_t room = used < f->disk->size_limit ? f->disk->size_limit - used : 0;
    if (end - old <= room) return size;
    uint64_t fits_to = old + room;
    return fits_to > at ? (size_t)(fits_to - at) : 0;
}

static int file_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at) {
    disk_file *f = of(file);
    int rc = enter(f, LAB_OP_WRITE, SQLITE_IOERR_WRITE);
    if (dead(f)) return leave(f, rc);
    if (f->read_only) return leave(f, SQLITE_READONLY);

    size_t wanted = (size_t)size, fits = room_for(f, wanted, (uint64_t)at);
    if (!rc && fits < wanted) {
        rc = SQLITE_FULL;
        f->disk->faults_struck++;
    } else if (rc) {
        fits /= 2;
    }
    write_now(f, from, fits, (uint64_t)at);
    return leave(f, rc);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    disk_file *f = of(file);
    int rc = enter(f, LAB_OP_TRUNCATE, SQLITE_IOERR_TRUNCATE);
    if (!rc && f->read_only) rc = SQLITE_READONLY;
    if (rc) return leave(f, rc);
    io(f)->truncates++;
    if (f->temporary) image_bytes_truncate(&f->inode->current, (uint64_t)size);
    else disk_do(f->disk, IMAGE_TRUNCATE, f->inode->id, (uint64_t)size, NULL);
    return leave(f, SQLITE_OK);
}

static int file_sync(sqlite3_file *file, int flags) {
    disk_file *f = of(file);
    int rc = enter(f, LAB_OP_SYNC, SQLITE_IOERR_FSYNC);
    if (rc) return leave(f, rc);
    io(f)->syncs++;
    if (f->temporary) return leave(f, SQLITE_OK);
    disk_do(f->disk, IMAGE_SYNC, f->inode->id, 0, NULL);
    if (f->new_journal) disk_do(f->disk, IMAGE_SYNC_DIR, 0, 0, NULL);
    f->new_journal = false;
    return leave(f, SQLITE_OK);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    disk_file *f = of(file);
    int rc = enter(f, LAB_OP_SIZE, SQLITE_IOERR_FSTAT);
    if (!rc) *size = (sqlite3_int64)f->inode->current.size;
    return leave(f, rc);
}

/* ---- locks and shared memory ---- */

static int file_lock(sqlite3_file *file, int level) {
    disk_file *f = of(file);
    int rc = enter(f, LAB_OP_LOCK, SQLITE_IOERR_LOCK);
    return leave(f, rc ? rc : locks_lock(&f->locks, level));
}

static int file_unlock(sqlite3_file *file, int level) {
    disk_file *f = of(file);
    disk_lock(f->disk);
    locks_unlock(&f->locks, level);
    return leave(f, SQLITE_OK);
}

static int file_check_reserved(sqlite3_file *file, int *held) {
    disk_file *f = of(file);
    disk_lock(f->disk);
    *held = locks_reserved(&f->locks);
    return leave(f, dead(f) ? SQLITE_IOERR_CHECKRESERVEDLOCK : SQLITE_OK);
}

/* Where nothing may be written a reader shares the memory of a writer, or has none. Elsewhere the
 * memory is writable whatever the handle is, as with the unix VFS. */
static int file_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out) {
    disk_file *f = of(file);
    int rc = enter(f, LAB_OP_SHM_MAP, SQLITE_IOERR_SHMMAP);
    *out = NULL;
    bool fixed = f->read_only && f->disk->read_only;
    if (!rc && fixed && !locks_shm_in_use(&f->locks)) rc = SQLITE_CANTOPEN;
    if (rc) return leave(f, rc);
    locks_shm_map(&f->locks, (size_t)region, (size_t)size, extend && !fixed, out);
    return leave(f, fixed ? SQLITE_READONLY : SQLITE_OK);
}

enum { WRITE_SLOT = 0 }; /* https://www.sqlite.org/walformat.html#wal_locks */

static void tell_of_writer(lab_disk *disk) {
    disk_lock(disk);
    void (*fn)(void *) = disk->before_write;
    void *ctx = disk->before_write_ctx;
    disk_unlock(disk);
    if (fn) fn(ctx);
}

static int file_shm_lock(sqlite3_file *file, int slot, int n, int flags) {
    disk_file *f = of(file);
    int rc = SQLITE_OK;
    bool takes = flags & SQLITE_SHM_LOCK && flags & SQLITE_SHM_EXCLUSIVE;
    if (takes && slot == WRITE_SLOT && n == 1) tell_of_writer(f->disk);
    if (flags & SQLITE_SHM_LOCK) rc = enter(f, LAB_OP_SHM_LOCK, SQLITE_IOERR_SHMLOCK);
    else disk_lock(f->disk);
    return leave(f, rc ? rc : locks_shm_lock(&f->locks, slot, n, flags));
}

/* A mutex taken and given back orders memory on every machine, and thread checkers see it. */
static void file_shm_barrier(sqlite3_file *file) {
    disk_lock(of(file)->disk);
    disk_unlock(of(file)->disk);
}

/* It goes with its last user, whether to be deleted or not. */
static int file_shm_unmap(sqlite3_file *file, int delete_it) {
    disk_file *f = of(file);
    disk_lock(f->disk);
    locks_shm_unmap(&f->locks);
    return leave(f, SQLITE_OK);
}

/* ---- the rest of a file ---- */

static int file_control(sqlite3_file *file, int op, void *arg) {
    disk_file *f = of(file);
    switch (op) {
    case SQLITE_FCNTL_LOCKSTATE: *(int *)arg = f->locks.level; return SQLITE_OK;
    case SQLITE_FCNTL_VFSNAME:
        *(char **)arg = sqlite3_mprintf("%s", f->disk->name);
        return SQLITE_OK;
    case SQLITE_FCNTL_HAS_MOVED:
        disk_lock(f->disk);
        *(int *)arg = dead(f) || !f->inode->linked;
        return leave(f, SQLITE_OK);
    default: return SQLITE_NOTFOUND;
    }
}

static int file_sector_size(sqlite3_file *file) {
    disk_file *f = of(file);
    disk_lock(f->disk);
    return leave(f, (int)f->disk->img.sector_size);
}

static int file_characteristics(sqlite3_file *f) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

static void inode_close(disk_file *f) {
    f->inode->handles--;
    if (f->temporary) {
        image_inode_free(f->inode);
        return;
    }
    if (f->delete_on_close && f->inode->linked)
        disk_do(f->disk, IMAGE_UNLINK, f->inode->id, 0, NULL);
    image_collect(&f->disk->img, f->inode);
}

static int file_close(sqlite3_file *file) {
    disk_file *f = of(file);
    disk_lock(f->disk);
    locks_detach(&f->locks, dead(f) && !f->temporary ? NULL : f->inode);
    if (!dead(f) || f->temporary) inode_close(f);
    f->disk->handles--;
    return leave(f, SQLITE_OK);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- the file system ---- */

static bool is_journal(int flags) {
    return flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL);
}

/* Finds or creates the inode for f. */
static int open_inode(disk_file *f, const char *name, int flags) {
    if (!name) {
        f->temporary = true;
        f->inode = image_inode_new(0, NULL);
        return SQLITE_OK;
    }
    f->inode = image_find(&f->disk->img, name);
    if (f->inode && (flags & SQLITE_OPEN_EXCLUSIVE)) return SQLITE_CANTOPEN;
    if (f->inode) return SQLITE_OK;
    if (!(flags & SQLITE_OPEN_CREATE) || f->disk->read_only) return SQLITE_CANTOPEN;
    f->inode = disk_create(f->disk, name);
    f->new_journal = is_journal(flags);
    return SQLITE_OK;
}

static int open_file(disk_file *f, const char *name, int flags) {
    int rc = disk_call(f->disk, LAB_OP_OPEN);
    if (!rc) rc = open_inode(f, name, flags);
    if (rc) return rc;
    f->epoch = f->disk->epoch;
    f->delete_on_close = flags & SQLITE_OPEN_DELETEONCLOSE;
    f->read_only = name && (f->disk->read_only || (flags & SQLITE_OPEN_READONLY));
    f->inode->handles++;
    f->disk->handles++;
    locks_attach(&f->locks, f->inode);
    f->base.pMethods = &file_methods;
    return SQLITE_OK;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    disk_file *f = of(file);
    *f = (disk_file){ .disk = (lab_disk *)vfs };
    disk_lock(f->disk);
    int rc = open_file(f, name, flags);
    if (!rc && out) {
        *out = flags;
        if (f->read_only) *out = (flags & ~SQLITE_OPEN_READWRITE) | SQLITE_OPEN_READONLY;
    }
    disk_unlock(f->disk);
    return rc;
}

static int delete_file(lab_disk *disk, const char *name, int sync_dir) {
    int rc = disk_call(disk, LAB_OP_DELETE);
    if (rc) return rc;
    image_inode *inode = image_find(&disk->img, name);
    if (!inode) return SQLITE_IOERR_DELETE_NOENT;
    if (disk->read_only) return SQLITE_IOERR_DELETE;
    disk_do(disk, IMAGE_UNLINK, inode->id, 0, NULL);
    if (sync_dir) disk_do(disk, IMAGE_SYNC_DIR, 0, 0, NULL);
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_dir) {
    lab_disk *disk = (lab_disk *)vfs;
    disk_lock(disk);
    int rc = delete_file(disk, name, sync_dir);
    disk_unlock(disk);
    return rc;
}

/* SQLite takes an empty file for none here, and the unix VFS tells it so. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
    lab_disk *disk = (lab_disk *)vfs;
    disk_lock(disk);
    int rc = disk_call(disk, LAB_OP_ACCESS);
    image_inode *inode = image_find(&disk->img, name);
    *out = inode && (flags == SQLITE_ACCESS_EXISTS ? inode->current.size > 0 : !disk->read_only);
    disk_unlock(disk);
    return rc;
}

static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *out) {
    sqlite3_snprintf(size, out, "%s", name);
    return strlen(name) < (size_t)size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* SQLite seeds its generator from the default VFS (see lab_sqlite_seed); nobody else asks. */
static int vfs_randomness(sqlite3_vfs *vfs, int size, char *out) {
    lab_random rng = lab_random_of(1);
    lab_random_bytes(&rng, out, (size_t)size);
    return size;
}

/* A busy timeout waits for other threads, which need real time; an armed fault needs none. */
static int vfs_sleep(sqlite3_vfs *vfs, int us) {
    lab_disk *disk = (lab_disk *)vfs;
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    disk_lock(disk);
    bool in_vain = disk->faults_count > 0;
    disk_unlock(disk);
    return in_vain ? us : system->xSleep(system, us);
}

static int vfs_current_time(sqlite3_vfs *vfs, double *out) {
    *out = 2451544.5; /* 2000-01-01, always: runs must not depend on the day */
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *out) {
    if (size > 0) *out = 0;
    return 0;
}

void disk_vfs_init(sqlite3_vfs *vfs) {
    *vfs = (sqlite3_vfs){ .iVersion = 1,
                          .szOsFile = (int)sizeof(disk_file),
                          .mxPathname = 512,
                          .xOpen = vfs_open,
                          .xDelete = vfs_delete,
                          .xAccess = vfs_access,
                          .xFullPathname = vfs_full_pathname,
                          .xRandomness = vfs_randomness,
                          .xSleep = vfs_sleep,
                          .xCurrentTime = vfs_current_time,
                          .xGetLastError = vfs_last_error };
}

/* vfs_count.c -- a VFS that hands every call to the default VFS and counts.
 *
 * Each open file is our header followed in the same block by the real VFS's own file:
 *
 *     | count_file | the default VFS's sqlite3_file |
 *
 * SQLite sizes the block by szOsFile. Only read, write, sync and truncate do anything beyond
 * forwarding. */
#include "vfs_count.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    _Atomic uint64_t reads, writes, syncs, truncates, bytes_read, bytes_written;
} atomic_io;

struct lab_count_vfs {
    sqlite3_vfs vfs; /* first: SQLite hands us a pointer to it */
    sqlite3_vfs *real;
    atomic_io file[LAB_FILE_KINDS];
    char name[]; /* vfs.zName points here */
};

typedef struct {
    sqlite3_file base;
    atomic_io *io;      /* the counters of this file's kind, in the VFS */
    sqlite3_file *real; /* directly behind this struct */
} count_file;

static void count(_Atomic uint64_t *counter, uint64_t by) {
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static bool ends_with(const char *name, const char *suffix) {
    size_t n = strlen(name), s = strlen(suffix);
    return n >= s && memcmp(name + n - s, suffix, s) == 0;
}

lab_file_kind lab_file_kind_of(const char *name) {
    if (!name) return LAB_FILE_TEMP;
    if (ends_with(name, "-wal")) return LAB_FILE_WAL;
    if (ends_with(name, "-journal")) return LAB_FILE_JOURNAL;
    return LAB_FILE_DB;
}

uint64_t lab_io_durable_bytes(const lab_io_counts *counts) {
    return counts->file[LAB_FILE_DB].bytes_written + counts->file[LAB_FILE_WAL].bytes_written;
}

uint64_t lab_io_syncs(const lab_io_counts *counts) {
    uint64_t syncs = 0;
    for (int kind = 0; kind < LAB_FILE_KINDS; kind++) syncs += counts->file[kind].syncs;
    return syncs;
}

/* ---- files ---- */

static count_file *of(sqlite3_file *file) { return (count_file *)file; }
static sqlite3_file *real(sqlite3_file *file) { return of(file)->real; }

static int file_close(sqlite3_file *f) { return real(f)->pMethods->xClose(real(f)); }

static int file_read(sqlite3_file *f, void *to, int size, sqlite3_int64 at) {
    count(&of(f)->io->reads, 1);
    count(&of(f)->io->bytes_read, (uint64_t)size);
    return real(f)->pMethods->xRead(real(f), to, size, at);
}

static int file_write(sqlite3_file *f, const void *from, int size, sqlite3_int64 at) {
    count(&of(f)->io->writes, 1);
    count(&of(f)->io->bytes_written, (uint64_t)size);
    return real(f)->pMethods->xWrite(real(f), from, size, at);
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size) {
    count(&of(f)->io->truncates, 1);
    return real(f)->pMethods->xTruncate(real(f), size);
}

static int file_sync(sqlite3_file *f, int flags) {
    count(&of(f)->io->syncs, 1);
    return real(f)->pMethods->xSync(real(f), flags);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size) {
    return real(f)->pMethods->xFileSize(real(f), size);
}
static int file_lock(sqlite3_file *f, int level) {
    return real(f)->pMethods->xLock(real(f), level);
}
static int file_unlock(sqlite3_file *f, int level) {
    return real(f)->pMethods->xUnlock(real(f), level);
}
static int file_check_reserved(sqlite3_file *f, int *held) {
    return real(f)->pMethods->xCheckReservedLock(real(f), held);
}
static int file_control(sqlite3_file *f, int op, void *arg) {
    return real(f)->pMethods->xFileControl(real(f), op, arg);
}
static int file_sector_size(sqlite3_file *f) { return real(f)->pMethods->xSectorSize(real(f)); }
static int file_characteristics(sqlite3_file *f) {
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
}
static int file_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out) {
    return real(f)->pMethods->xShmMap(real(f), region, size, extend, out);
}
static int file_shm_lock(sqlite3_file *f, int slot, int n, int flags) {
    return real(f)->pMethods->xShmLock(real(f), slot, n, flags);
}
static void file_shm_barrier(sqlite3_file *f) { real(f)->pMethods->xShmBarrier(real(f)); }
static int file_shm_unmap(sqlite3_file *f, int delete_it) {
    return real(f)->pMethods->xShmUnmap(real(f), delete_it);
}
static int file_fetch(sqlite3_file *f, sqlite3_int64 at, int size, void **out) {
    return real(f)->pMethods->xFetch(real(f), at, size, out);
}
static int file_unfetch(sqlite3_file *f, sqlite3_int64 at, void *page) {
    return real(f)->pMethods->xUnfetch(real(f), at, page);
}

/* SQLite looks at iVersion before it uses the later methods, so a real file of an older version
 * gets a table that promises no more than it has. */
#define FILE_METHODS(version)                                                                      \
    {                                                                                              \
        .iVersion = (version), .xClose = file_close, .xRead = file_read, .xWrite = file_write,     \
        .xTruncate = file_truncate, .xSync = file_sync, .xFileSize = file_size,                    \
        .xLock = file_lock, .xUnlock = file_unlock, .xCheckReservedLock = file_check_reserved,     \
        .xFileControl = file_control, .xSectorSize = file_sector_size,                             \
        .xDeviceCharacteristics = file_characteristics, .xShmMap = file_shm_map,                   \
        .xShmLock = file_shm_lock, .xShmBarrier = file_shm_barrier, .xShmUnmap = file_shm_unmap,   \
        .xFetch = file_fetch, .xUnfetch = file_unfetch                                             \
    }
static const sqlite3_io_methods file_methods[3] = { FILE_METHODS(1), FILE_METHODS(2),
                                                    FILE_METHODS(3) };

/* ---- the VFS ---- */

static sqlite3_vfs *below(sqlite3_vfs *vfs) { return ((lab_count_vfs *)vfs)->real; }

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out) {
    lab_count_vfs *v = (lab_count_vfs *)vfs;
    count_file *file = of(f);

    file->base.pMethods = NULL; /* SQLite calls xClose only when this is set */
    file->io = &v->file[lab_file_kind_of(name)];
    file->real = (sqlite3_file *)(file + 1);
    int rc = v->real->xOpen(v->real, name, file->real, flags, out);
    if (!file->real->pMethods) return rc;

    int version = file->real->pMethods->iVersion;
    file->base.pMethods = &file_methods[version >= 3 ? 2 : version - 1];
    return rc;
}

static int vfs_delete(sqlite3_vfs *v, const char *name, int sync_dir) {
    return below(v)->xDelete(below(v), name, sync_dir);
}
static int vfs_access(sqlite3_vfs *v, const char *name, int flags, int *out) {
    return below(v)->xAccess(below(v), name, flags, out);
}
static int vfs_full_pathname(sqlite3_vfs *v, const char *name, int size, char *out) {
    return below(v)->xFullPathname(below(v), name, size, out);
}
static int vfs_randomness(sqlite3_vfs *v, int size, char *out) {
    return below(v)->xRandomness(below(v), size, out);
}
static int vfs_sleep(sqlite3_vfs *v, int us) { return below(v)->xSleep(below(v), us); }
static int vfs_current_time(sqlite3_vfs *v, double *out) {
    return below(v)->xCurrentTime(below(v), out);
}
static int vfs_last_error(sqlite3_vfs *v, int size, char *out) {
    return below(v)->xGetLastError(below(v), size, out);
}

lab_count_vfs *lab_vfs_counting_register(const char *name) {
    sqlite3_vfs *base = sqlite3_vfs_find(NULL);
    lab_count_vfs *v = base ? calloc(1, sizeof *v + strlen(name) + 1) : NULL;
    if (!v) return NULL;

    strcpy(v->name, name);
    v->real = base;
    v->vfs = (sqlite3_vfs){ .iVersion = 1,
                            .szOsFile = (int)sizeof(count_file) + base->szOsFile,
                            .mxPathname = base->mxPathname,
                            .zName = v->name,
                            .xOpen = vfs_open,
                            .xDelete = vfs_delete,
                            .xAccess = vfs_access,
                            .xFullPathname = vfs_full_pathname,
                            .xRandomness = vfs_randomness,
                            .xSleep = vfs_sleep,
                            .xCurrentTime = vfs_current_time,
                            .xGetLastError = vfs_last_error };
    if (sqlite3_vfs_register(&v->vfs, 0) == SQLITE_OK) return v;
    free(v);
    return NULL;
}

void lab_vfs_counting_unregister(lab_count_vfs *v) {
    if (!v) return;
    sqlite3_vfs_unregister(&v->vfs);
    free(v);
}

static lab_io io_read(const atomic_io *io) {
    return (lab_io){ .reads = atomic_load(&io->reads),
                     .writes = atomic_load(&io->writes),
                     .syncs = atomic_load(&io->syncs),
                     .truncates = atomic_load(&io->truncates),
                     .bytes_read = atomic_load(&io->bytes_read),
                     .bytes_written = atomic_load(&io->bytes_written) };
}

lab_io_counts lab_vfs_counting_read(const lab_count_vfs *v) {
    lab_io_counts counts;
    for (int kind = 0; kind < LAB_FILE_KINDS; kind++) counts.file[kind] = io_read(&v->file[kind]);
    return counts;
}

void lab_vfs_counting_reset(lab_count_vfs *v) {
    for (int kind = 0; kind < LAB_FILE_KINDS; kind++) {
        atomic_io *io = &v->file[kind];
        _Atomic uint64_t *all[] = { &io->reads,     &io->writes,     &io->syncs,
                                    &io->truncates, &io->bytes_read, &io->bytes_written };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) atomic_store(all[i], 0);
    }
}

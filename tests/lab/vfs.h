/* vfs.h -- the lab disk: a SQLite VFS in memory that can lose power.
 *
 * A disk holds files the way an operating system does: what programs see, what would survive a
 * power loss, and the writes in between that are not synced yet. Each disk is a sqlite3_vfs of
 * its own name, so several connections, threads and runtimes can share one disk and a test can
 * have as many disks as it likes. WAL mode works: shared memory lives on the heap.
 *
 *     lab_disk *disk = lab_disk_new(NULL);
 *     lab_disk_record(disk);
 *     ...run a workload on lab_disk_vfs(disk), lab_disk_mark(disk, k) when commit k is acked...
 *     lab_recording *rec = lab_disk_recorded(disk);
 *
 *     for (size_t n = 0; n <= lab_recording_count(rec); n++) {
 *         lab_disk *after = lab_disk_at(rec, n, seed);        power fails after operation n
 *         ...open it, check that all marks before n hold...
 *         lab_disk_free(after);
 *     }
 *
 * What power loss does. Writes are split at sector borders; each piece since its file's last sync
 * may survive, be lost, or be torn inside (old, new and garbage bytes, but only within the bytes
 * written: the disk claims powersafe overwrite, as SQLite's unix VFS does). A file's new size may
 * survive without its content. Truncations may be lost. Creations and deletions of files survive
 * up to some point in their order, unless the directory was synced since; the VFS syncs it where
 * the unix VFS does: with the first sync of a new journal or WAL, and in a delete that asks for
 * it. Shared memory vanishes. Everything is a function of the seed.
 *
 * A sync that returned is believed. A failed sync leaves its writes unsynced; the next good sync
 * makes them durable.
 *
 * All functions may be called from any thread; one mutex per disk. lab_disk_free() is the
 * exception: call it when no thread uses the disk any more. Out of memory aborts. */
#ifndef LAB_VFS_H
#define LAB_VFS_H

#include "vfs_count.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lab_disk lab_disk;
typedef struct lab_recording lab_recording;

typedef struct {
    uint32_t sector_size; /* 0 means 4096; a power of two from 512 to 65536 */
    bool whole_sectors;   /* power loss never tears inside a sector */
} lab_disk_options;

/* A new empty disk; NULL options mean all defaults. */
lab_disk *lab_disk_new(const lab_disk_options *options);

/* Frees the disk; every connection must be closed, those of before a crash too. */
void lab_disk_free(lab_disk *disk);

/* The name to give to sqlite3_open_v2(); borrowed from the disk. */
const char *lab_disk_vfs(const lab_disk *disk);

/* A second disk in the same state (unsynced writes included), without its handles, locks,
 * faults, counters and recording. */
lab_disk *lab_disk_clone(lab_disk *disk);

/* SQLite's own random numbers (WAL salts among them) come from one generator per process. Seeding
 * it makes the bytes of a workload on one thread the same in every run. */
void lab_sqlite_seed(uint32_t seed);

/* ---- power loss ---- */

/* Power fails now. Open handles are dead: all they still do is close, everything else is an I/O
 * error. New handles see what survived. */
void lab_disk_crash(lab_disk *disk, uint64_t seed);

/* Everything unsynced becomes durable, as if the machine had idled long enough. */
void lab_disk_settle(lab_disk *disk);

/* ---- recordings ---- */

/* Starts recording every operation that changes the disk, from its present state on. */
void lab_disk_record(lab_disk *disk);

/* Notes `number` among the operations, typically "commit number is acknowledged". Ignored when
 * the disk is not recording. */
void lab_disk_mark(lab_disk *disk, uint64_t number);

/* Stops recording and hands it over; it no longer depends on the disk, never changes, and may be
 * used by several threads. NULL when the disk was not recording. */
lab_recording *lab_disk_recorded(lab_disk *disk);
void lab_recording_free(lab_recording *recording);

/* The number of operations recorded, marks included. */
size_t lab_recording_count(const lab_recording *recording);

/* The disk as it comes back when power failed after the first n operations (n at most count).
 * The same (n, seed) always gives the same disk. Costs a copy or two of the files, however long
 * the recording is. */
lab_disk *lab_disk_at(const lab_recording *recording, size_t n, uint64_t seed);

/* Identifies what SQLite finds when it opens the database `name`: the bytes of the file, and those of its WAL up to
 * the last transaction that is whole. SQLite reads the same from two disks with
 * equal states. */
typedef struct {
    uint64_t words[2];
} lab_state;
lab_state lab_disk_state(lab_disk *disk, const char *name);

/* The marks among the first n operations, in order; borrowed from the recording. */
const uint64_t *lab_recording_marks(const lab_recording *recording, size_t n, size_t *count);

/* "write test.db-wal 4096+24": operation n (from 0) in words, for messages. */
void lab_recording_describe(const lab_recording *recording, size_t n, char *out, size_t size);

/* ---- faults ---- */

typedef enum {
    LAB_OP_ANY, /* in a lab_fault: the nth call of whatever kind */
    LAB_OP_OPEN,
    LAB_OP_DELETE,
    LAB_OP_ACCESS,
    LAB_OP_READ,
    LAB_OP_WRITE,
    LAB_OP_TRUNCATE,
    LAB_OP_SYNC,
    LAB_OP_SIZE,
    LAB_OP_LOCK,
    LAB_OP_SHM_MAP,
    LAB_OP_SHM_LOCK, /* taking, never releasing */
} lab_op;
enum { LAB_OPS = LAB_OP_SHM_LOCK + 1 };

typedef struct {
    lab_op op;
    uint64_t nth; /* counted from now: 1 is the next call; 0 means 1 */
    bool sticky;  /* fails from then on, not once */
    /* What the call returns. 0 means what that call returns on a broken disk: SQLITE_IOERR_READ,
     * SQLITE_CANTOPEN, ...; SQLITE_BUSY suits the locks. SQLITE_IOERR_SHORT_READ gives a read
     * half its bytes and zeros; SQLite believes the file ends there, and what it writes
     * afterwards may be wrong. A failing write has written its first half. */
    int code;
} lab_fault;

/* Arms one fault in addition to those armed (at most eight). From then on, until healed, SQLite's
 * waits for locks return at once: what they would wait for need not come. */
void lab_disk_fail(lab_disk *disk, lab_fault fault);

/* Only `free_bytes` are left: writes that grow a file beyond that write what fits and return
 * SQLITE_FULL. Overwriting still works. */
void lab_disk_fill(lab_disk *disk, uint64_t free_bytes);

/* Files can be opened for reading only, and none created; WAL databases need shared memory that
 * another connection has already opened. Handles that are open keep working. */
void lab_disk_set_read_only(lab_disk *disk, bool read_only);

/* Calls `fn` each time before a connection takes the lock that only one writer of a database in WAL mode has, on the
 * thread that takes it; it may use other connections to the disk. NULL: no longer. */
void lab_disk_before_write(lab_disk *disk, void (*fn)(void *ctx), void *ctx);

/* Takes back all faults, the limit and read-only. */
void lab_disk_heal(lab_disk *disk);

/* How often a fault has struck, limit included. */
uint64_t lab_disk_faults_struck(lab_disk *disk);

/* Calls of one kind since the disk was made (LAB_OP_ANY: of all kinds): run once, read this, then
 * fail each nth. */
uint64_t lab_disk_calls(lab_disk *disk, lab_op op);

/* ---- files, behind SQLite's back; durable at once ---- */

bool lab_disk_exists(lab_disk *disk, const char *name);
uint64_t lab_disk_size(lab_disk *disk, const char *name); /* 0 when there is none */

/* Copies up to `size` bytes from `offset`; returns how many there were. */
size_t lab_disk_read(lab_disk *disk, const char *name, uint64_t offset, void *to, size_t size);

/* Creates the file when there is none. */
void lab_disk_write(lab_disk *disk, const char *name, uint64_t offset, const void *from,
                    size_t size);

/* Overwrites with bytes drawn from the seed; each differs from the one it replaces. The range
 * must lie inside the file. */
void lab_disk_corrupt(lab_disk *disk, const char *name, uint64_t offset, size_t size,
                      uint64_t seed);

void lab_disk_truncate(lab_disk *disk, const char *name, uint64_t size);
void lab_disk_remove(lab_disk *disk, const char *name);

/* Writes a file of the lab disk to a real path, to look at it with other tools. */
bool lab_disk_export(lab_disk *disk, const char *name, const char *path);

/* ---- counters ---- */

lab_io_counts lab_disk_counts(lab_disk *disk);
void lab_disk_counts_reset(lab_disk *disk);

#endif

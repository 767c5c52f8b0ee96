/* vfs_disk.c -- the lab disk apart from SQLite: power, recordings, faults, files by name.
 *
 * A recording is a base image and the operations since. To be at operation n quickly from
 * anywhere, it keeps images of the states between, as many as needed for the operations after
 * each to weigh about as much as the image itself:
 *
 *     base ...ops... keyframe ...ops... keyframe ...ops... end
 *                                |-----> n: clone, apply a few, lose power
 */
#include "vfs_disk.h"
#include "lab.h"
#include "vfs_wal.h"

#include "base/hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t at; /* operations already in it */
    image img; /* not live */
} keyframe;

struct lab_recording {
    image_ops ops;
    keyframe *keyframes; /* ascending; the first is at 0 */
    size_t keyframes_count;
    uint64_t *marks;
    size_t *mark_ops; /* the operation each mark is */
    size_t marks_count, marks_capacity;
};

void disk_lock(lab_disk *disk) { pthread_mutex_lock(&disk->mutex); }
void disk_unlock(lab_disk *disk) { pthread_mutex_unlock(&disk->mutex); }

/* ---- making disks ---- */

/* Around an image, which it takes. */
static lab_disk *disk_around(const image *img) {
    lab_disk *disk = image_alloc(sizeof *disk);
    disk->img = *img;
    disk->size_limit = UINT64_MAX;
    pthread_mutex_init(&disk->mutex, NULL);

    snprintf(disk->name, sizeof disk->name, "lab-disk-%p", (void *)disk);
    disk_vfs_init(&disk->vfs);
    disk->vfs.zName = disk->name;
    if (sqlite3_vfs_register(&disk->vfs, 0) != SQLITE_OK) abort();
    return disk;
}

lab_disk *lab_disk_new(const lab_disk_options *options) {
    lab_disk_options o = options ? *options : (lab_disk_options){ 0 };
    image img;
    image_init(&img, o.sector_size ? o.sector_size : 4096, o.whole_sectors);
    return disk_around(&img);
}

lab_disk *lab_disk_clone(lab_disk *disk) {
    image img;
    disk_lock(disk);
    image_clone(&img, &disk->img, true);
    disk_unlock(disk);
    return disk_around(&img);
}

void lab_disk_free(lab_disk *disk) {
    if (!disk) return;
    assert(disk->handles == 0 && "a connection is still open");
    sqlite3_vfs_unregister(&disk->vfs);
    lab_recording_free(disk->recording);
    image_fini(&disk->img);
    pthread_mutex_destroy(&disk->mutex);
    free(disk);
}

const char *lab_disk_vfs(const lab_disk *disk) { return disk->name; }

void lab_sqlite_seed(uint32_t seed) {
    sqlite3_initialize(); /* the generator's mutex must exist */
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, seed ? (int)seed : 1, (sqlite3 *)NULL);
    sqlite3_randomness(0, NULL); /* drop the state drawn from the old seed */
}

/* ---- operations ---- */

static void recording_push(lab_recording *rec, const image_op *op) {
    if (op->kind == IMAGE_MARK) {
        if (rec->marks_count == rec->marks_capacity) {
            rec->marks_capacity = rec->marks_capacity ? rec->marks_capacity * 2 : 64;
            rec->marks = image_resize(rec->marks, rec->marks_capacity * sizeof *rec->marks);
            rec->mark_ops =
                image_resize(rec->mark_ops, rec->marks_capacity * sizeof *rec->mark_ops);
        }
        rec->marks[rec->marks_count] = op->at;
        rec->mark_ops[rec->marks_count++] = rec->ops.count;
    }
    image_ops_push(&rec->ops, op);
}

void disk_do(lab_disk *disk, image_op_kind kind, uint32_t inode, uint64_t at, image_blob *blob) {
    image_op op = { .kind = kind, .inode = inode, .at = at, .blob = blob };
    image_apply(&disk->img, &op);
    if (disk->recording) recording_push(disk->recording, &op);
    image_blob_unref(blob);
}

image_inode *disk_create(lab_disk *disk, const char *name) {
    uint32_t id = disk->img.count;
    disk_do(disk, IMAGE_CREATE, id, 0, image_blob_new(name, strlen(name) + 1));
    return disk->img.inodes[id];
}

/* ---- power loss ---- */

void lab_disk_crash(lab_disk *disk, uint64_t seed) {
    disk_lock(disk);
    assert(!disk->recording && "take the recording before the crash");
    image_power_loss(&disk->img, seed);
    disk->epoch++;
    disk_unlock(disk);
}

void lab_disk_settle(lab_disk *disk) {
    disk_lock(disk);
    for (uint32_t i = 0; i < disk->img.count; i++)
        if (disk->img.inodes[i]) disk_do(disk, IMAGE_SYNC, i, 0, NULL);
    disk_do(disk, IMAGE_SYNC_DIR, 0, 0, NULL);
    disk_unlock(disk);
}

/* ---- recordings ---- */

static void keyframe_push(lab_recording *rec, size_t at, const image *img) {
    rec->keyframes =
        image_resize(rec->keyframes, (rec->keyframes_count + 1) * sizeof *rec->keyframes);
    keyframe *k = &rec->keyframes[rec->keyframes_count++];
    k->at = at;
    image_clone(&k->img, img, false);
}

void lab_disk_record(lab_disk *disk) {
    disk_lock(disk);
    assert(!disk->recording);
    disk->recording = image_alloc(sizeof *disk->recording);
    keyframe_push(disk->recording, 0, &disk->img);
    disk_unlock(disk);
}

void lab_disk_mark(lab_disk *disk, uint64_t number) {
    disk_lock(disk);
    if (disk->recording) disk_do(disk, IMAGE_MARK, 0, number, NULL);
    disk_unlock(disk);
}

/* An operation's cost in a replay; a small one costs its bookkeeping. */
static size_t op_weight(const image_op *op) { return 64 + (op->blob ? op->blob->size : 0); }

static void recording_add_keyframes(lab_recording *rec) {
    image img;
    image_clone(&img, &rec->keyframes[0].img, false);
    size_t weight = 0;
    for (size_t i = 0; i < rec->ops.count; i++) {
        if (weight > 65536 && weight > image_durable_size(&img)) {
            keyframe_push(rec, i, &img);
            weight = 0;
        }
        image_apply(&img, &rec->ops.items[i]);
        weight += op_weight(&rec->ops.items[i]);
    }
    image_fini(&img);
}

lab_recording *lab_disk_recorded(lab_disk *disk) {
    disk_lock(disk);
    lab_recording *rec = disk->recording;
    disk->recording = NULL;
    disk_unlock(disk);
    if (rec) recording_add_keyframes(rec);
    return rec;
}

void lab_recording_free(lab_recording *rec) {
    if (!rec) return;
    for (size_t i = 0; i < rec->keyframes_count; i++) image_fini(&rec->keyframes[i].img);
    free(rec->keyframes);
    image_ops_clear(&rec->ops);
    free(rec->marks);
    free(rec->mark_ops);
    free(rec);
}

size_t lab_recording_count(const lab_recording *rec) { return rec->ops.count; }

/* The last of the ascending `at(i)` that is at most n; the first always is. */
static const keyframe *keyframe_before(const lab_recording *rec, size_t n) {
    size_t low = 0, high = rec->keyframes_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (rec->keyframes[middle].at <= n) low = middle;
        else high = middle;
    }
    return &rec->keyframes[low];
}

lab_disk *lab_disk_at(const lab_recording *rec, size_t n, uint64_t seed) {
    assert(n <= rec->ops.count);
    const keyframe *k = keyframe_before(rec, n);
    image img;
    image_clone(&img, &k->img, false);
    for (size_t i = k->at; i < n; i++) image_apply(&img, &rec->ops.items[i]);
    image_power_loss(&img, seed);
    return disk_around(&img);
}

const uint64_t *lab_recording_marks(const lab_recording *rec, size_t n, size_t *count) {
    size_t low = 0, high = rec->marks_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rec->mark_ops[middle] < n) low = middle + 1;
        else high = middle;
    }
    *count = low;
    return rec->marks;
}

/* The name a file had: from its creation among the operations, or from the base. */
static const char *recording_name(const lab_recording *rec, size_t n, uint32_t inode) {
    const image *base = &rec->keyframes[0].img;
    if (inode < base->count) return base->inodes[inode] ? base->inodes[inode]->name : "?";
    for (size_t i = 0; i <= n; i++) {
        const image_op *op = &rec->ops.items[i];
        if (op->kind == IMAGE_CREATE && op->inode == inode) return (const char *)op->blob->bytes;
    }
    return "?";
}

void lab_recording_describe(const lab_recording *rec, size_t n, char *out, size_t size) {
    assert(n < rec->ops.count);
    const image_op *op = &rec->ops.items[n];
    const char *name = recording_name(rec, n, op->inode);
    switch (op->kind) {
    case IMAGE_CREATE: snprintf(out, size, "create %s", name); break;
    case IMAGE_UNLINK: snprintf(out, size, "delete %s", name); break;
    case IMAGE_SYNC_DIR: snprintf(out, size, "sync directory"); break;
    case IMAGE_WRITE:
        snprintf(out, size, "write %s %" PRIu64 "+%zu", name, op->at, op->blob->size);
        break;
    case IMAGE_TRUNCATE: snprintf(out, size, "truncate %s to %" PRIu64, name, op->at); break;
    case IMAGE_SYNC: snprintf(out, size, "sync %s", name); break;
    case IMAGE_MARK: snprintf(out, size, "mark %" PRIu64, op->at); break;
    }
}

/* ---- faults ---- */

void lab_disk_fail(lab_disk *disk, lab_fault fault) {
    disk_lock(disk);
    assert(disk->faults_count < DISK_FAULTS_MAX);
    if (fault.nth == 0) fault.nth = 1;
    disk->faults[disk->faults_count++] = fault;
    disk_unlock(disk);
}

void lab_disk_fill(lab_disk *disk, uint64_t free_bytes) {
    disk_lock(disk);
    disk->size_limit = image_current_size(&disk->img) + free_bytes;
    disk_unlock(disk);
}

void lab_disk_set_read_only(lab_disk *disk, bool read_only) {
    disk_lock(disk);
    disk->read_only = read_only;
    disk_unlock(disk);
}

void lab_disk_before_write(lab_disk *disk, void (*fn)(void *ctx), void *ctx) {
    disk_lock(disk);
    disk->before_write = fn;
    disk->before_write_ctx = ctx;
    disk_unlock(disk);
}

void lab_disk_heal(lab_disk *disk) {
    disk_lock(disk);
    disk->faults_count = 0;
    disk->size_limit = UINT64_MAX;
    disk->read_only = false;
    disk_unlock(disk);
}

uint64_t lab_disk_faults_struck(lab_disk *disk) {
    disk_lock(disk);
    uint64_t struck = disk->faults_struck;
    disk_unlock(disk);
    return struck;
}

uint64_t lab_disk_calls(lab_disk *disk, lab_op op) {
    disk_lock(disk);
    uint64_t calls = disk->calls[op];
    disk_unlock(disk);
    return calls;
}

static const int broken_code[LAB_OPS] = {
    [LAB_OP_ANY] = SQLITE_IOERR,
    [LAB_OP_OPEN] = SQLITE_CANTOPEN,
    [LAB_OP_DELETE] = SQLITE_IOERR_DELETE,
    [LAB_OP_ACCESS] = SQLITE_IOERR_ACCESS,
    [LAB_OP_READ] = SQLITE_IOERR_READ,
    [LAB_OP_WRITE] = SQLITE_IOERR_WRITE,
    [LAB_OP_TRUNCATE] = SQLITE_IOERR_TRUNCATE,
    [LAB_OP_SYNC] = SQLITE_IOERR_FSYNC,
    [LAB_OP_SIZE] = SQLITE_IOERR_FSTAT,
    [LAB_OP_LOCK] = SQLITE_IOERR_LOCK,
    [LAB_OP_SHM_MAP] = SQLITE_IOERR_SHMMAP,
    [LAB_OP_SHM_LOCK] = SQLITE_IOERR_SHMLOCK,
};

static bool fault_strikes(lab_fault *fault, lab_op op) {
    if (fault->op != LAB_OP_ANY && fault->op != op) return false;
    if (fault->nth == 0) return fault->sticky;
    return --fault->nth == 0;
}

int disk_call(lab_disk *disk, lab_op op) {
    int code = SQLITE_OK;
    disk->calls[op]++;
    disk->calls[LAB_OP_ANY]++;
    for (size_t i = 0; i < disk->faults_count; i++) {
        lab_fault *fault = &disk->faults[i];
        if (!fault_strikes(fault, op)) continue;
        code = fault->code ? fault->code : broken_code[op];
        disk->faults_struck++;
    }
    return code;
}

/* ---- files by name ---- */

bool lab_disk_exists(lab_disk *disk, const char *name) {
    disk_lock(disk);
    bool exists = image_find(&disk->img, name) != NULL;
    disk_unlock(disk);
    return exists;
}

uint64_t lab_disk_size(lab_disk *disk, const char *name) {
    disk_lock(disk);
    image_inode *inode = image_find(&disk->img, name);
    uint64_t size = inode ? inode->current.size : 0;
    disk_unlock(disk);
    return size;
}

size_t lab_disk_read(lab_disk *disk, const char *name, uint64_t offset, void *to, size_t size) {
    disk_lock(disk);
    image_inode *inode = image_find(&disk->img, name);
    size_t there = inode ? image_bytes_read(&inode->current, offset, to, size) : 0;
    disk_unlock(disk);
    return there;
}

static void make_durable(lab_disk *disk, image_inode *inode) {
    disk_do(disk, IMAGE_SYNC, inode->id, 0, NULL);
    disk_do(disk, IMAGE_SYNC_DIR, 0, 0, NULL);
}

void lab_disk_write(lab_disk *disk, const char *name, uint64_t offset, const void *from,
                    size_t size) {
    disk_lock(disk);
    image_inode *inode = image_find(&disk->img, name);
    if (!inode) inode = disk_create(disk, name);
    disk_do(disk, IMAGE_WRITE, inode->id, offset, image_blob_new(from, size));
    make_durable(disk, inode);
    disk_unlock(disk);
}

void lab_disk_corrupt(lab_disk *disk, const char *name, uint64_t offset, size_t size,
                      uint64_t seed) {
    lab_random rng = lab_random_of(seed);
    uint8_t *bytes = image_alloc(size);
    size_t there = lab_disk_read(disk, name, offset, bytes, size);
    assert(there == size && "the range must lie inside the file");
    for (size_t i = 0; i < there; i++)
        bytes[i] = (uint8_t)(bytes[i] + 1 + lab_random_below(&rng, 255));
    lab_disk_write(disk, name, offset, bytes, there);
    free(bytes);
}

void lab_disk_truncate(lab_disk *disk, const char *name, uint64_t size) {
    disk_lock(disk);
    image_inode *inode = image_find(&disk->img, name);
    assert(inode);
    disk_do(disk, IMAGE_TRUNCATE, inode->id, size, NULL);
    make_durable(disk, inode);
    disk_unlock(disk);
}

void lab_disk_remove(lab_disk *disk, const char *name) {
    disk_lock(disk);
    image_inode *inode = image_find(&disk->img, name);
    assert(inode);
    disk_do(disk, IMAGE_UNLINK, inode->id, 0, NULL);
    disk_do(disk, IMAGE_SYNC_DIR, 0, 0, NULL);
    disk_unlock(disk);
}

bool lab_disk_export(lab_disk *disk, const char *name, const char *path) {
    uint64_t size = lab_disk_size(disk, name);
    uint8_t *bytes = image_alloc((size_t)size);
    size_t there = lab_disk_read(disk, name, 0, bytes, (size_t)size);
    FILE *out = fopen(path, "wb");
    bool ok = out && fwrite(bytes, 1, there, out) == there;
    if (out && fclose(out) != 0) ok = false;
    free(bytes);
    return ok;
}

static void state_add(lab_state *state, const uint8_t *bytes, size_t size) {
    for (uint64_t i = 0; i < 2; i++) state->words[i] = hash_bytes(bytes, size, state->words[i] + i);
}

lab_state lab_disk_state(lab_disk *disk, const char *name) {
    char wal[128];
    lab_state state = { { 1, 2 } };
    snprintf(wal, sizeof wal, "%s-wal", name);
    disk_lock(disk);
    const image_inode *file = image_find(&disk->img, name), *log = image_find(&disk->img, wal);
    if (file) state_add(&state, file->current.data, file->current.size);
    if (log)
        state_add(&state, log->current.data, wal_committed(log->current.data, log->current.size));
    disk_unlock(disk);
    return state;
}

/* ---- counters ---- */

lab_io_counts lab_disk_counts(lab_disk *disk) {
    disk_lock(disk);
    lab_io_counts counts = disk->counts;
    disk_unlock(disk);
    return counts;
}

void lab_disk_counts_reset(lab_disk *disk) {
    disk_lock(disk);
    disk->counts = (lab_io_counts){ 0 };
    disk_unlock(disk);
}

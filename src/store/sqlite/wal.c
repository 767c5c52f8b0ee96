/* wal.c -- see wal.h. */
#include "store/sqlite/wal.h"

#include "store/sqlite/identity.h"
#include <assert.h>

enum {
    WAL_PAGES = 2000,  /* when the WAL has so many, it is copied into the file */
    LONG_PAGES = 6000, /* from which on it is worth waiting for readers, so that it starts anew */
    WAL_HEADER = 32,
    SALT_AT = 16, /* in the header: eight bytes */
    FRAME_HEADER = 24,
    FRAME = FRAME_HEADER + FILE_PAGE_SIZE,
    SPARE_FRAMES = 4, /* inner pages of the log's tree, and the file's first */
    ZEROS = 1 << 12,
    FEW_PAGES =
        16, /* a WAL of fewer pages is not extended: the program may commit once and leave */
    /* The WAL is extended by its own length, at least and at most by these. */
    ROOM_MIN = 1 << 15,
    ROOM_MAX = 1 << 18
};

static int count_pages(void *ctx, sqlite3 *db, const char *name, int pages) {
    wal *w = ctx;
    (void)db, (void)name;
    if (pages < w->pages) w->room = 0; /* the WAL has begun anew, and SQLite may have cut it */
    w->pages = pages;
    return SQLITE_OK;
}

void wal_watch(wal *w, file *f) {
    *w = (wal){ 0 };
    sqlite3_wal_hook(f->db, count_pages, w);
}

/* ---- Whose it is ------------------------------------------------------------------------------ */

static sqlite3_file *wal_file(file *f) {
    sqlite3_file *at = NULL;
    int rc = sqlite3_file_control(f->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &at);
    return rc == SQLITE_OK && at && at->pMethods ? at : NULL;
}

/* 0: there is no WAL yet. */
static uint64_t read_salt(file *f) {
    uint64_t salt = 0;
    sqlite3_file *at = wal_file(f);
    if (!at || at->pMethods->xRead(at, &salt, sizeof salt, SALT_AT) != SQLITE_OK) return 0;
    return salt;
}

void wal_mark(wal *w, file *f) {
    assert(file_in_transaction(f));
    if (sqlite3_txn_state(f->db, "main") != SQLITE_TXN_WRITE) return;
    uint64_t salt = read_salt(f);
    if (w->marked && w->salt == salt) return;
    w->marked = identity_write(f->db) == SQLITE_OK; /* else the next commit tries again */
    w->salt = salt;
}

/* ---- Room ------------------------------------------------------------------------------------- */

/* Where the next COMMIT ends, as far as we know: others may have appended or begun it anew. */
static sqlite3_int64 next_end(const wal *w, size_t bytes) {
    sqlite3_int64 frames = w->pages + SPARE_FRAMES + (sqlite3_int64)(bytes / FILE_PAGE_SIZE);
    return WAL_HEADER + frames * FRAME;
}

static sqlite3_int64 clamp(sqlite3_int64 n) {
    return n < ROOM_MIN ? ROOM_MIN : n > ROOM_MAX ? ROOM_MAX : n;
}

static sqlite3_int64 lengthen(sqlite3_file *to, sqlite3_int64 from, sqlite3_int64 until) {
    static const char zeros[ZEROS];
    assert(from < until);
    while (from < until && to->pMethods->xWrite(to, zeros, ZEROS, from) == SQLITE_OK) from += ZEROS;
    return from;
}

void wal_make_room(wal *w, file *f, size_t bytes) {
    assert(file_in_transaction(f));
    sqlite3_int64 end = next_end(w, bytes), size;
    if (end <= w->room || w->pages < FEW_PAGES) return;
    sqlite3_file *to = wal_file(f);
    if (!to || to->pMethods->xFileSize(to, &size)) return;
    /* Only behind its end: what is in front may be frames of another process. */
    if (size < end) size = lengthen(to, size, end + clamp(size));
    w->room = size;
}

/* ---- Copying ---------------------------------------------------------------------------------- */

bool wal_is_long(const wal *w) {
    int copied = w->pages < w->copied ? 0 : w->copied; /* fewer: it has begun anew */
    return w->pages - copied >= WAL_PAGES;
}

void wal_copy(wal *w, file *f) {
    assert(!file_in_transaction(f));
    int left = 0, copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(f->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &left, &copied);
    /* A reader in the middle of a snapshot keeps the next commit from starting the WAL anew. Readers
     * come and go within a millisecond or so: once the WAL has become long, wait for such a moment. */
    if (rc == SQLITE_OK && w->pages >= LONG_PAGES) {
        w->restarting = true;
        rc = sqlite3_wal_checkpoint_v2(f->db, NULL, SQLITE_CHECKPOINT_RESTART, &left, &copied);
        w->restarting = false;
    }
    /* What a reader keeps from being copied is tried again when there is more. */
    w->copied = w->pages;
    if (rc == SQLITE_OK && left == copied) {
        w->pages = w->copied = 0;
        w->room = 0; /* the next commit may begin the WAL anew, and SQLite cut it */
    }
}

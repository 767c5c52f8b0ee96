/* file.h -- a connection to a store's file, and what the file looks like.
 *
 * A file is a heddle store if its application_id says so; its user_version is the format. Opening
 * creates what is missing, migrates older formats forward step by step in one transaction each, and
 * refuses everything else without having touched it: it looks through a read-only connection first.
 *
 * A connection belongs to one thread. The tables are described in docs/FORMAT.md. */
#ifndef STORE_SQLITE_FILE_H
#define STORE_SQLITE_FILE_H

#include "store/log/backend.h"
#include <heddle/store.h>
#include <sqlite3.h>

#define FILE_APPLICATION_ID 0x48644C31 /* "HdL1" */
#define FILE_FORMAT         6
#define META_FORMAT         2 /* the first with an index of metadata by seq */
#define NODE_FORMAT         4 /* the first with memos as they are read now */
#define FILE_PAGE_SIZE      2048

/* Prepared when first used; see file.c for their text. */
typedef enum file_sql {
    SQL_BEGIN_READ,
    SQL_BEGIN_WRITE,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_LOG_APPEND,
    SQL_LOG_AFTER,
    SQL_LOG_ROW,
    SQL_LOG_PRUNE,
    SQL_META_GET,
    SQL_META_SET,
    SQL_SPACES,
    SQL_SPACE_GET,
    SQL_SPACE_SET,
    SQL_SPACE_FLOOR,
    SQL_HEAD_GET,
    SQL_HEAD_NONE,
    SQL_HEAD_SEQ,
    SQL_HEAD_PUT,
    SQL_HEAD_PATCHED,
    SQL_HEAD_DROP,
    SQL_LARGE_GET,
    SQL_LARGE_PUT,
    SQL_LARGE_DROP,
    SQL_PATCH_GET,
    SQL_PATCH_PUT,
    SQL_PATCH_DROP,
    SQL_LIST_ALL,
    SQL_LIST_KIND,
    SQL_SESSIONS,
    SQL_SESSION_PUT,
    SQL_SESSION_DROP,
    SQL_READERS,
    SQL_READER_PUT,
    SQL_READER_MOVE,
    SQL_READER_DROP,
    SQL_HEADS_SINCE,
    SQL_METAS_SINCE,
    SQL_NODES,
    SQL_NODE_NEXT,
    SQL_NODE_ANY,
    SQL_NODE_PUT,
    SQL_NODE_DROP,
    SQL_TOMBSTONES_DROP,
    SQL_COUNT_
} file_sql;

typedef struct file {
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_COUNT_];
    char *name; /* owned, of `env` */
    size_t name_size;
    const hd_env *env;
    char shown[STORE_SHOWN_SIZE];   /* the name, or its end where it is long, for messages */
    char damage[STORE_DAMAGE_SIZE]; /* what is wrong with its schema; "": nothing */
    bool read_only;
    bool synchronous; /* a COMMIT waits for the disk, unless it is a soft one */
    bool soft;        /* a COMMIT does not wait for the disk now; only set_soft writes this */
    int64_t format;   /* below FILE_FORMAT only where it could not be brought forward: read-only */
    /* Of its WAL, which stays the same while it is open; 0: not known. */
    uint64_t wal_device, wal_inode;
} file;

typedef struct file_options {
    const char *vfs;
    bool read_only, must_exist;
    hd_durability durability;
    bool as_writer; /* read-only, but a file that cannot be opened for writing is refused */
} file_options;

/* HD_NOT_HEDDLE, HD_NEWER, HD_CORRUPT, HD_READ_ONLY, HD_NOT_FOUND, HD_IO, HD_BUSY, HD_NOMEM, with an
 * error that says what to do. On failure `f` is closed. */
hd_status file_open(file *f, const char *name, const file_options *options, const hd_env *env,
                    hd_error *error);
/* A further connection to a file that file_open has accepted. */
hd_status file_open_again(file *f, const char *name, const file_options *options, const hd_env *env,
                          hd_error *error);
/* How many bytes of ours a row may have: somewhat less than SQLite's own limit (by default a billion), so
 * that there is room for what stands around them. */
size_t file_text_max(const file *f);
/* Whether the name of the file, or that of its WAL, stands for another file by now, or for none: the open one is lost
 * when it is closed. False on a VFS that cannot tell. */
bool file_has_moved(const file *f);
bool file_wal_has_moved(const file *f);
void file_close(file *f);

/* What an SQLite result means to us. */
hd_status file_status(int rc);
/* SQLite's words, if `status` is what it reported last; else NULL. */
const char *file_words(const file *f, hd_status status);

/* A statement ready to be bound and stepped; NULL: sqlite3_errmsg(). Reset it when done. */
sqlite3_stmt *file_sql_get(file *f, file_sql which);
/* Runs a statement without parameters or rows to its end. */
hd_status file_run(file *f, file_sql which);
/* Steps a bound statement that yields no rows, and resets it. */
hd_status file_finish(file *f, sqlite3_stmt *s);
hd_status file_exec(file *f, const char *sql);

/* Numbers kept in `meta`. HD_NOT_FOUND, HD_CORRUPT: *out is 0. */
hd_status file_meta_get(file *f, const char *key, uint64_t *out);
hd_status file_meta_set(file *f, const char *key, uint64_t value);

/* A number that counts seqs, rows or bytes. HD_CORRUPT: negative, or above SEQ_MAX. */
hd_status file_column_number(sqlite3_stmt *s, int column, uint64_t *out);

static inline hd_status file_begin_read(file *f) { return file_run(f, SQL_BEGIN_READ); }
hd_status file_begin_write(file *f);
static inline hd_status file_commit(file *f) { return file_run(f, SQL_COMMIT); }
/* Begins a transaction whose loss in a power failure does no harm: its COMMIT does not wait for the disk.
 * What is committed after it in another kind of transaction makes it durable, too. */
hd_status file_begin_soft(file *f);
/* Ends a transaction if there is one; never fails in a way that matters. */
void file_rollback(file *f);

static inline bool file_in_transaction(const file *f) { return !sqlite3_get_autocommit(f->db); }

#endif

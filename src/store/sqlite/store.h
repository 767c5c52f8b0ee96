/* store.h -- SQLite as a backend of log/: one connection, and its functions.
 *
 * Each function here implements the member of log_backend that has its name; log/backend.h says what they
 * promise. They are grouped in files by the tables that they read and write. */
#ifndef STORE_SQLITE_STORE_H
#define STORE_SQLITE_STORE_H

#include "store/log/backend.h"
#include "store/sqlite/file.h"
#include "store/sqlite/wal.h"
#include "store/sqlite/watch.h"

typedef struct sqlite_store {
    log_store base; /* first: a log_store of ours is a sqlite_store */
    file file;
    wal wal;              /* of the writing connection */
    watch watch;          /* of the reading connection */
    uint64_t wal_look_ns; /* when sqlite_is_lost looks again whether the WAL has its name */
} sqlite_store;

static inline sqlite_store *store_of(const log_store *s) { return (sqlite_store *)(void *)s; }
static inline file *file_of(const log_store *s) { return &store_of(s)->file; }

/* ---- Statements (store.c) */

typedef hd_status (*sqlite_row_fn)(void *ctx, sqlite3_stmt *s, bool *stop);
/* Calls fn for each row of a statement of the connection, and resets it. NULL: it could not be prepared. */
hd_status sqlite_each(file *f, sqlite3_stmt *s, sqlite_row_fn fn, void *ctx);
/* The same for a statement that is used once. */
hd_status sqlite_each_of(file *f, const char *sql, sqlite_row_fn fn, void *ctx);
/* Steps a bound statement that yields no rows, and resets it. NULL: it could not be prepared. */
hd_status sqlite_finish(file *f, sqlite3_stmt *s);

/* Empty texts are bound as such; sqlite_bind_or_null makes them NULL. */
void sqlite_bind(sqlite3_stmt *s, int at, row_text text);
void sqlite_bind_or_null(sqlite3_stmt *s, int at, row_text text);
/* Parameters 1 to 4: space, id, scope, instance. */
void sqlite_bind_name(sqlite3_stmt *s, const doc_name *name);

/* A column as text that ends with a NUL; "" for NULL, and where there is no memory. */
const char *sqlite_word(sqlite3_stmt *s, int column);
/* The same with its length. HD_NOMEM, or HD_CORRUPT for NULL. */
hd_status sqlite_text(sqlite3_stmt *s, int column, row_text *out);
/* A long text, which need not end with a NUL and so is not copied; empty for NULL. HD_NOMEM. */
hd_status sqlite_bytes(sqlite3_stmt *s, int column, row_text *out);
/* Columns of a name: space, scope, instance, id, from `column` on. */
doc_name sqlite_name(sqlite3_stmt *s, int column);

/* ---- log, meta, space (log.c) */

/* The row that a statement with the columns row, hash, body stands on. HD_NOMEM. */
hd_status sqlite_log_text(sqlite3_stmt *s, log_text *out);

hd_status sqlite_append(log_store *s, uint64_t row, uint64_t hash, row_text body);
hd_status sqlite_read_after(log_store *s, uint64_t after, log_text_fn fn, void *ctx);
hd_status sqlite_read_row(log_store *s, uint64_t row, log_text_fn fn, void *ctx);
hd_status sqlite_row_ends(log_store *s, uint64_t *first, uint64_t *last);
hd_status sqlite_delete_rows(log_store *s, uint64_t row);
hd_status sqlite_get_number(log_store *s, log_number which, uint64_t *out);
hd_status sqlite_set_number(log_store *s, log_number which, uint64_t value);
hd_status sqlite_get_secret(log_store *s, uint8_t out[64], size_t *length);
hd_status sqlite_each_space(log_store *s, space_row_fn fn, void *ctx);
hd_status sqlite_get_space(log_store *s, row_text name, uint64_t *seq, uint64_t *floor);
hd_status sqlite_put_space(log_store *s, row_text name, uint64_t seq);
hd_status sqlite_raise_floor(log_store *s, row_text name, uint64_t seq);

/* ---- head, large, patch (heads.c) */

hd_status sqlite_find_head(log_store *s, const doc_name *name, head_row *out);
hd_status sqlite_read_head(log_store *s, const doc_name *name, head_row *out);
void sqlite_end_head(log_store *s);
hd_status sqlite_put_head(log_store *s, const doc_name *name, const head_row *row, int64_t *doc);
hd_status sqlite_touch_head(log_store *s, int64_t doc, uint64_t seq, uint64_t patched);
hd_status sqlite_drop_head(log_store *s, int64_t doc);
hd_status sqlite_read_large(log_store *s, int64_t doc, head_part_fn fn, void *ctx);
hd_status sqlite_put_large(log_store *s, int64_t doc, uint64_t hash, row_text value);
hd_status sqlite_drop_large(log_store *s, int64_t doc);
hd_status sqlite_each_patch(log_store *s, int64_t doc, head_part_fn fn, void *ctx);
hd_status sqlite_put_patch(log_store *s, int64_t doc, const head_part *patch);
hd_status sqlite_drop_patches(log_store *s, int64_t doc);
hd_status sqlite_list_heads(log_store *s, row_text space, const char *kind, const char *from,
                            head_item_fn fn, void *ctx);
hd_status sqlite_heads_since(log_store *s, row_text space, uint64_t seq, bool meta, head_item_fn fn,
                             void *ctx);
hd_status sqlite_each_head(log_store *s, head_item_fn fn, void *ctx);
hd_status sqlite_find_patched(log_store *s, int64_t after, head_item_fn fn, void *ctx);

/* ---- The tables by themselves (check.c) */

hd_status sqlite_check(log_store *s, hd_check_fn fn, void *ctx);
hd_status sqlite_measure(log_store *s, store_sizes *out);

/* ---- node (memos.c) */

hd_status sqlite_has_memos(log_store *s, bool *out);
hd_status sqlite_each_memo(log_store *s, const char *piece, stored_memo_fn fn, void *ctx);
hd_status sqlite_next_memo(log_store *s, const char *from, char *out, size_t size);
hd_status sqlite_put_memo(log_store *s, const stored_memo *m);
hd_status sqlite_drop_memo(log_store *s, row_text name, row_text instance);

/* ---- session, reader (runtimes.c) */

hd_status sqlite_each_session(log_store *s, session_row_fn fn, void *ctx);
hd_status sqlite_put_session(log_store *s, const session_row *row);
hd_status sqlite_each_reader(log_store *s, reader_row_fn fn, void *ctx);
hd_status sqlite_put_reader(log_store *s, const char *session, uint64_t position);
hd_status sqlite_move_reader(log_store *s, const char *session, uint64_t position);
hd_status sqlite_drop_runtime(log_store *s, const char *session);

#endif

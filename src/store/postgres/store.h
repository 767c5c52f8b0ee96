/* store.h -- PostgreSQL as a backend of log/: one connection, and its functions.
 *
 * Each function here implements the member of log_backend that has its name; log/backend.h says what they
 * promise. They are grouped in files by the tables that they read and write. */
#ifndef STORE_POSTGRES_STORE_H
#define STORE_POSTGRES_STORE_H

#include "base/table.h"
#include "base/vec.h"
#include "store/log/backend.h"
#include "store/postgres/conn.h"

enum { CHANNEL_SIZE = 32 };

/* A head row that was fetched before it is asked for. */
typedef struct fetched_head {
    PGresult *result; /* one of those in head_cache.results */
    int row;          /* -1: there is no such row */
    doc_name name;    /* its texts are in the result, or in head_cache.names */
    bool changed;     /* written since: to be read anew */
} fetched_head;

/* Head rows that log/ has said it will ask for, in the present transaction. */
typedef struct head_cache {
    VEC(fetched_head) heads;
    VEC(PGresult *) results;
    VEC(char *) names; /* blocks of text, with their sizes in front */
    table by_name;
} head_cache;

typedef struct pg_store {
    log_store base; /* first: a log_store of ours is a pg_store */
    conn conn;
    char channel[CHANNEL_SIZE];
    /* Of the snapshot that the present transaction reads. */
    bool numbers_known;
    uint64_t numbers[LOG_NUMBERS_];
    bool number_there[LOG_NUMBERS_];
    /* The writing connection: rows of the writers that were faster than the last append, with the numbers. The next
     * attempt to append takes them; whatever else comes first drops them. NULL: none. */
    PGresult *winners;
    uint64_t winners_after; /* the row before them */
    /* Numbers that came with winners that were taken. They are of no snapshot, so pg_get_number returns each once, to
     * the writer that follows these rows. A second call comes from a writer that learns the store anew: it asks the
     * server. */
    struct {
        bool left, there;
        uint64_t number;
    } beside[LOG_NUMBERS_];
    PGresult *head; /* between read_head and end_head, unless it is from the cache */
    head_cache cache;
    int64_t doc_next, doc_end; /* numbers for new head rows that were taken from the store */
    /* The writing connection: rows that others were told of. */
    uint64_t appended, notified;
    uint64_t
        tell_ns; /* each notification moves it on by the least time between two; it is never far ahead */
    int set; /* the reading connection: becomes readable when another process has committed; -1: none */
} pg_store;

static inline pg_store *pg_of(const log_store *s) { return (pg_store *)(void *)s; }
static inline conn *conn_of(const log_store *s) { return &pg_of(s)->conn; }

/* ---- The tables (schema.c) */

/* Makes missing tables, if `create`. Refuses a schema that is no store of heddle, and one that this user cannot write
 * although `writes`. */
hd_status pg_schema_check(conn *c, bool create, bool writes, hd_error *error);

/* ---- log, meta, space (log.c) */

hd_status pg_append(log_store *s, uint64_t row, uint64_t hash, row_text body);
void pg_forget_winners(pg_store *s);
hd_status pg_read_after(log_store *s, uint64_t after, log_text_fn fn, void *ctx);
hd_status pg_read_row(log_store *s, uint64_t row, log_text_fn fn, void *ctx);
hd_status pg_row_ends(log_store *s, uint64_t *first, uint64_t *last);
hd_status pg_has_after(log_store *s, uint64_t after, bool *out);
hd_status pg_delete_rows(log_store *s, uint64_t row);
hd_status pg_get_number(log_store *s, log_number which, uint64_t *out);
hd_status pg_set_number(log_store *s, log_number which, uint64_t value);
hd_status pg_get_secret(log_store *s, uint8_t out[64], size_t *length);
hd_status pg_each_space(log_store *s, space_row_fn fn, void *ctx);
hd_status pg_get_space(log_store *s, row_text name, uint64_t *seq, uint64_t *floor);
hd_status pg_put_space(log_store *s, row_text name, uint64_t seq);
hd_status pg_raise_floor(log_store *s, row_text name, uint64_t seq);

/* ---- head (heads.c), large and patch (parts.c) */

hd_status pg_expect_heads(log_store *s, const doc_name *names, uint32_t count);
hd_status pg_find_head(log_store *s, const doc_name *name, head_row *out);
hd_status pg_read_head(log_store *s, const doc_name *name, head_row *out);
void pg_end_head(log_store *s);
hd_status pg_put_head(log_store *s, const doc_name *name, const head_row *row, int64_t *doc);
hd_status pg_touch_head(log_store *s, int64_t doc, uint64_t seq, uint64_t patched);
hd_status pg_drop_head(log_store *s, int64_t doc);
/* What was fetched belongs to the transaction that ends. */
void pg_forget_heads(pg_store *s);
hd_status pg_read_large(log_store *s, int64_t doc, head_part_fn fn, void *ctx);
hd_status pg_put_large(log_store *s, int64_t doc, uint64_t hash, row_text value);
hd_status pg_drop_large(log_store *s, int64_t doc);
hd_status pg_each_patch(log_store *s, int64_t doc, head_part_fn fn, void *ctx);
hd_status pg_put_patch(log_store *s, int64_t doc, const head_part *patch);
hd_status pg_drop_patches(log_store *s, int64_t doc);
hd_status pg_list_heads(log_store *s, row_text space, const char *kind, const char *from,
                        head_item_fn fn, void *ctx);
hd_status pg_heads_since(log_store *s, row_text space, uint64_t seq, bool meta, head_item_fn fn,
                         void *ctx);
hd_status pg_each_head(log_store *s, head_item_fn fn, void *ctx);
hd_status pg_find_patched(log_store *s, int64_t after, head_item_fn fn, void *ctx);

hd_status pg_check(log_store *s, hd_check_fn fn, void *ctx);
hd_status pg_measure(log_store *s, store_sizes *out);

/* ---- node (memos.c); session, reader (rows.c) */

hd_status pg_has_memos(log_store *s, bool *out);
hd_status pg_each_memo(log_store *s, const char *piece, stored_memo_fn fn, void *ctx);
hd_status pg_next_memo(log_store *s, const char *from, char *out, size_t size);
hd_status pg_put_memo(log_store *s, const stored_memo *m);
hd_status pg_drop_memo(log_store *s, row_text name, row_text instance);
hd_status pg_each_session(log_store *s, session_row_fn fn, void *ctx);
hd_status pg_put_session(log_store *s, const session_row *row);
hd_status pg_each_reader(log_store *s, reader_row_fn fn, void *ctx);
hd_status pg_put_reader(log_store *s, const char *session, uint64_t position);
hd_status pg_beat(log_store *s, const char *session, uint32_t ms, log_life *others, uint32_t count,
                  uint64_t *row);
hd_status pg_leave(log_store *s, const char *session);
hd_status pg_lasts(log_store *s, const char *session, uint32_t *ms);
hd_status pg_drop_runtime(log_store *s, const char *session);

/* ---- Telling others, and hearing of them (listen.c) */

void pg_listen_open(pg_store *s);
void pg_listen_close(pg_store *s);
int pg_notify_fd(log_store *s);
bool pg_notify_arm(log_store *s);
uint64_t pg_notify_take(log_store *s);
/* A row was appended: notes that a NOTIFY is to be sent, after the append and outside of its transaction. */
void pg_tell(pg_store *s, uint64_t row);
bool pg_has_work(const log_store *s);
void pg_work(log_store *s);
int pg_work_in_ms(const log_store *s);

#endif

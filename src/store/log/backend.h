/* backend.h -- what a store with a log asks of the database below it.
 *
 * log/ has the whole behaviour of such a store: it makes rows of one log from commits, folds the log into head rows
 * at checkpoints, and deletes by pruning what is folded. A *backend* (sqlite/, postgres/) keeps the rows. It does not
 * judge commits, and does not look into texts. `log_backend` has all the functions of it that log/ calls.
 *
 *     log          row (1, 2, 3, ... without a gap) -> body          the truth
 *     head         document -> value, metadata, numbers              as of the checkpoint
 *     large,patch  the value of a large document, and changes to it  as of the checkpoint
 *     space        name -> seq at the checkpoint, floor              as of the checkpoint
 *     node         name, instance -> a memo                          as of the checkpoint
 *     session      verdicts that a runtime may ask for again         as of a runtime's last report
 *     reader       session -> the log row it has delivered           ditto
 *     numbers      checkpoint, kept: see log_number                  and a secret: see get_secret
 *
 * Connections. A `log_store` is one connection. A runtime has two, each used by one thread at a time:
 * the *writing* one by the writer's thread (or by the runtime's thread during a turn, while the writer's
 * thread rests: log/writer.h), the *reading* one by the runtime's thread. A backend needs no lock of
 * its own, and must not keep state that both connections change.
 *
 * Transactions. Each function below says in which transaction it is called:
 *     none    the connection has no transaction
 *     read    inside begin_read: every call sees the same state of the store until rollback
 *     write   inside begin_write: sees its own changes; commit makes all of them visible at once, or,
 *             if it fails, none (or, if the outcome is not known, either: see commit)
 *     any     inside read or write
 *
 * Statuses. HD_OK; HD_NOMEM; HD_BUSY, HD_IO, HD_FULL: may go away, the caller tries again later;
 * HD_CORRUPT: what is stored cannot be what log/ wrote (log_store_damaged says which row); HD_RESYNC
 * from append only; HD_NOT_FOUND where a function says so. Any failure inside a write transaction is
 * followed by rollback.
 *
 * Callbacks. Texts and names that are given to a callback are borrowed for the call. A callback that
 * returns a failure, or sets *stop, is not called again, and the function returns its status. It may
 * call other functions of the same connection, but not the one that calls it, and no begin, commit or
 * rollback.
 *
 * Numbers that were written by log/ come back as they were stored, also if the store is damaged: they
 * are signed here, and log/ checks them. Texts have hashes that log/ makes and compares. */
#ifndef STORE_LOG_BACKEND_H
#define STORE_LOG_BACKEND_H

#include "base/env.h"
#include "base/sabotage.h"
#include "store/memo.h"
#include "store/log/doc_name.h"
#include <heddle/store.h>
#include <assert.h>
#include <stdatomic.h>

struct log_backend;

/* How much of a store's name is in messages, so that there is room for the reason; and the length of the
 * words that say which row is damaged. */
enum { STORE_SHOWN_SIZE = 80, STORE_DAMAGE_SIZE = 160 };

/* One connection. The backend makes it in open() as the first member of its own structure. */
typedef struct log_store {
    const struct log_backend *ops;
    hd_env env;
    char shown[STORE_SHOWN_SIZE];   /* the store's name, or its end where it is long */
    char damage[STORE_DAMAGE_SIZE]; /* what log_store_damaged was last told; "": nothing */
    /* How many bytes log/ may put into a text of one row; what is longer can never be stored in one. Set by
     * the backend in open(), where there is a limit; it never changes. */
    size_t text_max;
    /* Programs that read the log know ids that are shortened (docs/FORMAT.md, "a"). Set in open(). */
    bool shortens;
    /* Writers do not keep each other out: append finds out that another one was faster. The writer need not
     * read the log before it appends, and undoes what it has judged when it lost. Set in open(). */
    bool optimistic;
    /* HD_BUSY means that the store cannot be reached: programs wait until it can, and are told by
     * hd_runtime_error alone. Set in open(). */
    bool patient;
    /* How often the store is looked at although notifications come, in ns; UINT64_MAX: never. Set in open(). */
    uint64_t look_ns;
    /* begin_write returns HD_BUSY at once where it would have to wait for another writer. Only the
     * writer changes this, for the length of a turn. */
    bool impatient;
    /* The runtime is being closed. If a server does not answer for too long then, nothing more is tried on this
     * connection. The runtime's thread writes this, and the writer's reads it. */
    atomic_bool leaving;
    /* The runtime has opened the store for writing. If the backend finds later that the store is not there any more, or
     * may not be used any more, it says HD_BUSY, as if the store could not be reached. Set once, when all of the store
     * has been opened, and before another thread uses the connection. */
    bool opened;
    /* The writer has no thread and never waits: each poll of the runtime does one step of its work. Set by the
     * backend in open(); for simulations, in which one thread has everything happen in an order of its choice. */
    bool stepped;
    /* Of the row that is appended: our runtime had been told of rows of others after our own last one, and had no
     * commit under way then. So others may wait for an answer. Set by the writer before append. */
    bool answers;
    /* Other writers have appended lately, and the append may lose to one. Set by the writer before append. */
    bool contended;
    /* Of the present transaction: rows that read_after has told came with the refusal of the last append, and are older
     * than the state of the store that all else is read from. Set by the backend, and false when a transaction
     * begins. */
    bool told_early;
    SABOTAGE_FIELD
} log_store;

/* A text, borrowed; length 0: there is none. */
typedef struct row_text {
    const char *bytes;
    size_t length;
} row_text;

/* One row of the log. */
typedef struct log_text {
    uint64_t row;
    uint64_t hash; /* as stored */
    row_text body; /* length 0: there is no text in the row, which is damage */
} log_text;
typedef hd_status (*log_text_fn)(void *ctx, const log_text *row, bool *stop);

/* A session that a beat asks for. */
typedef struct log_life {
    char session[33]; /* ends with a NUL */
    uint32_t ms;      /* for how long it is certain to live; 0: it does not live */
} log_life;
enum { LOG_LIVES = 64 }; /* so many at most */

/* A head row. `doc` is the backend's own number for it; large and patch rows are found by it. */
typedef struct head_row {
    bool exists;
    int64_t doc;
    int64_t seq, meta_seq; /* of the last change of value and metadata; 0: never */
    bool guarded, large;
    int64_t size, patched; /* bytes of value text, and of patches after it */
    uint64_t hash;
    const char *kind; /* ends with a NUL; "": none */
    row_text value;   /* empty if large */
    row_text meta;
} head_row;

/* A text beside a head row: a large value (seq is 0), or a patch. */
typedef struct head_part {
    int64_t seq;
    uint64_t hash;
    row_text text;
} head_part;
typedef hd_status (*head_part_fn)(void *ctx, const head_part *part, bool *stop);

/* What listings tell of a head row. */
typedef struct head_item {
    doc_name name; /* its texts end with a NUL */
    const char *kind;
    int64_t seq; /* of the value, or of the metadata where metadata was asked for */
    int64_t doc;
} head_item;
typedef hd_status (*head_item_fn)(void *ctx, const head_item *item, bool *stop);

typedef struct space_row {
    row_text name;
    int64_t seq;   /* at the checkpoint */
    int64_t floor; /* log rows with lower seqs, and their tombstones, may have been pruned */
} space_row;
typedef hd_status (*space_row_fn)(void *ctx, const space_row *space, bool *stop);

typedef struct session_row {
    row_text id;           /* 32 hexadecimal digits; ends with a NUL */
    int64_t settled, last; /* local seqs */
    row_text verdicts;     /* JSON */
} session_row;
typedef hd_status (*session_row_fn)(void *ctx, const session_row *session, bool *stop);

typedef struct reader_row {
    const char *session;
    uint64_t position; /* the last log row it has delivered */
    bool lives;        /* its runtime still runs, as far as the backend can tell */
} reader_row;
typedef hd_status (*reader_row_fn)(void *ctx, const reader_row *reader, bool *stop);

/* A memo: its texts (MEMO_NAME and so on, store/memo.h), each with a NUL behind it, and the sequence numbers as
 * JSON. */
enum { MEMO_SEQS = MEMO_ITEMS, MEMO_TEXTS };
typedef struct stored_memo {
    row_text text[MEMO_TEXTS];
} stored_memo;
typedef hd_status (*stored_memo_fn)(void *ctx, const stored_memo *m, bool *stop);

/* How much of what there is, for people. */
typedef struct store_sizes {
    uint64_t format;
    uint64_t bytes; /* on disk, as far as the backend knows */
    uint64_t log_rows, log_bytes, first_row, last_row, checkpoint, tail_rows, tail_bytes;
    uint64_t large, tombstones, memos, sessions, readers;
} store_sizes;

typedef enum log_number {
    LOG_CHECKPOINT, /* the last log row that head rows include */
    LOG_KEPT,       /* bytes of log text at or below it that were not pruned */
    LOG_NUMBERS_
} log_number;

typedef enum log_role {
    LOG_WRITING, /* the first connection of a runtime that writes: creates the store if need be */
    LOG_READING, /* the second one */
    LOG_ALONE,   /* the only connection of a runtime that does not write */
    LOG_CHECKING /* the same, but a file that could not be opened for writing is refused */
} log_role;

typedef enum log_durability {
    LOG_DURABLE, /* commit returns when the changes survive a loss of power */
    LOG_SOFT, /* commit need not wait: the changes may be lost, but only together with all later ones */
    /* Soft; for checkpoints and pruning. One connection at a time: HD_BUSY at once if another one is at it. */
    LOG_HOUSEWORK
} log_durability;

typedef struct log_backend {
    /* ---- Connections ---- */

    /* Connects. `name` and `options` are what the program gave to hd_open. HD_NOT_HEDDLE, HD_NEWER,
     * HD_CORRUPT, HD_READ_ONLY, HD_NOT_FOUND, HD_IO, HD_BUSY, HD_NOMEM, with an error that says what to
     * do; the store is then untouched, and *out is NULL. On the runtime's thread. */
    hd_status (*open)(const char *name, const hd_options *options, const hd_env *env, log_role role,
                      log_store **out, hd_error *error);
    /* Ends a transaction if there is one, disconnects, frees. None; the thread that used it last. */
    void (*close)(log_store *s);
    /* The backend's own words for its last failure; NULL: `status` does not come from it. Any. */
    const char *(*words)(const log_store *s, hd_status status);
    /* The full name of a file, if the store is one, borrowed until close; NULL: it is not. */
    const char *(*file)(const log_store *s);
    /* What would be written now cannot be found again (the file was deleted or replaced while it was
     * open). None. Asked before each group of commits, and by the reading side about once a second. */
    bool (*is_lost)(const log_store *s);

    /* ---- Transactions ---- */

    hd_status (*begin_read)(log_store *s); /* none */
    /* None. Either keeps every other writer out until commit or rollback, or makes append find out
     * that there was one. Waits up to a few seconds for its turn, unless `impatient`; then HD_BUSY. */
    hd_status (*begin_write)(log_store *s, log_durability durability);
    /* Write. After a failure the changes may or may not be stored: the writer reads the log again and
     * looks for its own row before it goes on. Reading connections see a row only when all rows before
     * it can be seen too. */
    hd_status (*commit)(log_store *s);
    void (*rollback)(log_store *s); /* ends a transaction of either kind; none: does nothing */
    bool (*in_transaction)(const log_store *s); /* changes nothing */

    /* ---- The log ---- */

    /* Write, durable. Adds row `row`, which is one above the last row that this connection has read. An
     * optimistic backend may store it before commit.
     * HD_RESYNC: there is such a row already, another writer was faster; the caller rolls back, reads
     * the rows that it has not seen and judges its commits again. The body is borrowed for the call. */
    hd_status (*append)(log_store *s, uint64_t row, uint64_t hash, row_text body);
    /* Any. Rows after `after`, in order. The caller finds gaps. In the first write transaction after a refused append
     * they may be older than the transaction: told_early. */
    hd_status (*read_after)(log_store *s, uint64_t after, log_text_fn fn, void *ctx);
    /* Any. One row; HD_NOT_FOUND. May be called while read_after is under way. */
    hd_status (*read_row)(log_store *s, uint64_t row, log_text_fn fn, void *ctx);
    /* Any. The numbers of the first and the last row; 0: there is none. */
    hd_status (*row_ends)(log_store *s, uint64_t *first, uint64_t *last);
    /* Any or none. Whether there is a row after `after`: for a look that most often finds nothing. NULL: reading
     * is as cheap. */
    hd_status (*has_after)(log_store *s, uint64_t after, bool *out);
    /* Write, housework. Deletes the rows up to and including `row`. An optimistic backend keeps the last one. */
    hd_status (*delete_rows)(log_store *s, uint64_t row);

    /* Any; write. HD_NOT_FOUND: it is not there, which is damage; HD_CORRUPT: it is no number. */
    hd_status (*get_number)(log_store *s, log_number which, uint64_t *out);
    hd_status (*set_number)(log_store *s, log_number which, uint64_t value);
    /* Any. Random bytes that were drawn when the store was made; *length is 0 where there are none. */
    hd_status (*get_secret)(log_store *s, uint8_t out[64], size_t *length);

    /* ---- Spaces ---- */

    hd_status (*each_space)(log_store *s, space_row_fn fn, void *ctx); /* any */
    /* Any. The seq of one space at the checkpoint, and its floor; both 0: it has no row. HD_CORRUPT: one is no
     * such number. */
    hd_status (*get_space)(log_store *s, row_text name, uint64_t *seq, uint64_t *floor);
    /* Write. Adds or changes the space's row; the floor stays, and is 0 in a new row. */
    hd_status (*put_space)(log_store *s, row_text name, uint64_t seq);
    /* Write. Raises the floor of the space to `seq` (never lowers it), and deletes the tombstones
     * (no value, no metadata, not guarded) whose seqs are not above it. */
    hd_status (*raise_floor)(log_store *s, row_text name, uint64_t seq);

    /* ---- Documents ---- `name->meta` does not matter to any of these. */

    /* Any or none. find_head and read_head will be called for these documents, in this transaction; none: no
     * longer for those that were named before. NULL: there is nothing to be gained. */
    hd_status (*expect_heads)(log_store *s, const doc_name *names, uint32_t count);
    /* Any. The numbers of a head row, without hash, kind and texts. */
    hd_status (*find_head)(log_store *s, const doc_name *name, head_row *out);
    /* Any. The whole row. Its texts are borrowed until end_head, which is to be called in any case;
     * one row at a time. If an index that is damaged hides the row, and the backend can find that out, this is
     * HD_CORRUPT, and not a row that does not exist. A row with another name is HD_CORRUPT, too. */
    hd_status (*read_head)(log_store *s, const doc_name *name, head_row *out);
    void (*end_head)(log_store *s);
    /* Write. Adds the row (row->exists is false; *doc is its new number) or replaces it by row->doc. */
    hd_status (*put_head)(log_store *s, const doc_name *name, const head_row *row, int64_t *doc);
    /* Write. Changes `seq` and `patched` alone. */
    hd_status (*touch_head)(log_store *s, int64_t doc, uint64_t seq, uint64_t patched);
    hd_status (*drop_head)(log_store *s, int64_t doc); /* write */

    hd_status (*read_large)(log_store *s, int64_t doc, head_part_fn fn,
                            void *ctx); /* any; HD_NOT_FOUND */
    hd_status (*put_large)(log_store *s, int64_t doc, uint64_t hash, row_text value); /* write */
    hd_status (*drop_large)(log_store *s, int64_t doc); /* write; also if there is none */
    hd_status (*each_patch)(log_store *s, int64_t doc, head_part_fn fn,
                            void *ctx);                                        /* any; by seq */
    hd_status (*put_patch)(log_store *s, int64_t doc, const head_part *patch); /* write */
    hd_status (*drop_patches)(log_store *s, int64_t doc); /* write; also if there are none */

    /* Any. Documents of a space that have a value, with ids from `from` on, in the order of
     * doc_name_compare; of one kind, unless that is NULL. `from` and `kind` end with a NUL. */
    hd_status (*list_heads)(log_store *s, row_text space, const char *kind, const char *from,
                            head_item_fn fn, void *ctx);
    /* Any. Every head row, tombstones included, in any order. */
    hd_status (*each_head)(log_store *s, head_item_fn fn, void *ctx);
    /* Any. Head rows, tombstones included, whose value (or whose metadata) has a seq above `seq`, in any
     * order. Cost: O(such rows), not O(documents). */
    hd_status (*heads_since)(log_store *s, row_text space, uint64_t seq, bool meta, head_item_fn fn,
                             void *ctx);
    /* Write. The first head row that has patches and a number above `after`, if there is any: fn is called
     * once or not at all, and may change that row. */
    hd_status (*find_patched)(log_store *s, int64_t after, head_item_fn fn, void *ctx);

    /* ---- Memos ---- A store that has no table for them (an old file) says that there are none. */

    hd_status (*has_memos)(log_store *s, bool *out); /* any */
    /* Any. The memos of a piece: names that begin with `piece` and a ':', by name and instance; of all pieces
     * where it is NULL. */
    hd_status (*each_memo)(log_store *s, const char *piece, stored_memo_fn fn, void *ctx);
    /* Any. The first name that is `from` or comes after it, cut to `size` - 1 bytes; "": none. */
    hd_status (*next_memo)(log_store *s, const char *from, char *out, size_t size);
    hd_status (*put_memo)(log_store *s, const stored_memo *m);              /* write; replaces */
    hd_status (*drop_memo)(log_store *s, row_text name, row_text instance); /* write */

    /* ---- Runtimes ---- Sessions are 32 digits, and end with a NUL. */

    hd_status (*each_session)(log_store *s, session_row_fn fn, void *ctx); /* any */
    hd_status (*put_session)(log_store *s, const session_row *row);        /* write */
    /* Any. Where runtimes of several machines share a store the backend decides by a lease which of them live;
     * pruning passes over the others, and deletes their rows. */
    hd_status (*each_reader)(log_store *s, reader_row_fn fn, void *ctx);
    hd_status (*put_reader)(log_store *s, const char *session, uint64_t position);  /* write */
    hd_status (*move_reader)(log_store *s, const char *session, uint64_t position); /* write */
    hd_status (*drop_runtime)(log_store *s,
                              const char *session); /* write; reader and session rows */

    /* Which sessions live, where runtimes are on several machines; all three NULL where all are processes of this one.
     * None; one statement. Our session is certain to live for so long from now on, by the clock of the database.
     * Brings the number of the log's last row, and for how long each of the others is certain to live. */
    hd_status (*beat)(log_store *s, const char *session, uint32_t ms, log_life *others,
                      uint32_t count, uint64_t *row);
    hd_status (*leave)(log_store *s, const char *session); /* write, soft: our session is gone */
    /* Any or none. For how long a session is certain to live; 0: it does not. */
    hd_status (*lasts)(log_store *s, const char *session, uint32_t *ms);

    /* ---- Housework ---- */

    /* None. Whether there is work that the backend would like to do between groups of commits, and doing
     * it. The next group waits meanwhile: no more is done at once than takes about as long as a group. */
    bool (*has_work)(const log_store *s);
    void (*work)(log_store *s);
    /* In how many ms there will be such work; -1: not before something is written. NULL: never by time alone. */
    int (*work_in_ms)(const log_store *s);
    hd_status (*vacuum)(log_store *s); /* none. Gives room back to the system. */
    /* Read. Tells what is wrong with the tables by themselves: indexes, large and patch rows without a head row or
     * with a wrong hash. */
    hd_status (*check)(log_store *s, hd_check_fn fn, void *ctx);
    hd_status (*measure)(log_store *s, store_sizes *out); /* read */

    /* ---- Hearing of other writers ---- On the reading connection. */

    /* A descriptor that becomes readable when another process may have committed; -1: there is none,
     * and log/ looks at the store from time to time. Belongs to the connection. */
    int (*notify_fd)(log_store *s);
    /* Asks to be told of the next commit; a backend whose notifications name rows tells of all of them. False: that is
     * not possible any more, the descriptor is closed. Called before the log is read, so that no commit falls in
     * between. */
    bool (*notify_arm)(log_store *s);
    /* The descriptor was readable: makes it unreadable again. Returns the last row that a notification has named.
     * UINT64_MAX: something was written, it is not known up to which row, and notify_arm is to be called again. */
    uint64_t (*notify_take)(log_store *s);
    /* Whether any connection is in a write transaction now, or may be: it will commit without another notification. */
    bool (*is_being_written)(log_store *s);
} log_backend;

/* A name as messages show it: whole, or its end, which tells more than its beginning. */
void log_show_name(const char *name, char out[STORE_SHOWN_SIZE]);
/* Sets the fields of a new connection. */
void log_store_init(log_store *s, const log_backend *ops, const hd_env *env, const char *name);
/* Notes which row is damaged and how, for log_store_failure; returns HD_CORRUPT. `s` may be NULL. */
hd_status log_store_damaged(log_store *s, const char *format, ...) HD_PRINTF(2, 3);
/* Why something failed with `status`: the backend's words, the damage that was noted, or the text of
 * the status. Borrowed until the next call on the connection. */
const char *log_store_words(const log_store *s, hd_status status);
/* Says in `error` (may be NULL) what failed with `status` while doing what; forgets the damage. */
void log_store_failure(log_store *s, hd_status status, const char *doing, hd_error *error);

/* A stored number that counts seqs, rows or bytes. False: it cannot be one; *out is 0. */
bool log_number_of(int64_t stored, uint64_t *out);

static inline row_text text_of_bytes(const char *bytes, size_t length) {
    assert(bytes || !length);
    return (row_text){ bytes, length };
}

#endif

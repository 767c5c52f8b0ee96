/* backend.c -- connections, transactions and housework of the SQLite backend, and its table of functions.
 *
 * SQLite lets one writer in at a time: begin_write takes the file's lock and waits for it, so append never
 * finds that another writer was faster. */
#define _GNU_SOURCE
#include "store/sqlite/backend.h"

#include "store/sqlite/store.h"
#include <assert.h>
#include <poll.h>

#define WAL_LOOK_NS UINT64_C(100000000)

enum {
    LOCK_TRIES = 2000, /* for the file's write lock, a millisecond apart */
    RESTART_TRIES = 10 /* the same for readers to leave the WAL */
};

/* ---- Connections --------------------------------------------------------------------------- */

/* SQLite asks what to do while another process has the lock. */
static int await_lock(void *ctx, int tries) {
    const sqlite_store *s = ctx;
    if (s->base.impatient) return 0;
    (void)poll(NULL, 0, 1);
    return tries < (s->wal.restarting ? RESTART_TRIES : LOCK_TRIES);
}

static hd_status connect(sqlite_store *s, const char *name, const hd_options *options,
                         log_role role, hd_error *error) {
    file_options o = { .vfs = options->vfs,
                       .read_only = options->read_only,
                       .must_exist = options->must_exist || role != LOG_WRITING,
                       .durability = options->durability,
                       .as_writer = role == LOG_CHECKING };
    return role == LOG_READING ? file_open_again(&s->file, name, &o, &s->base.env, error)
                               : file_open(&s->file, name, &o, &s->base.env, error);
}

static hd_status sqlite_open(const char *name, const hd_options *options, const hd_env *env,
                             log_role role, log_store **out, hd_error *error) {
    *out = NULL;
    sqlite_store *s = env_new0(env, sizeof *s);
    if (!s) return HD_NOMEM;
    log_store_init(&s->base, &sqlite_backend, env, name);
    watch_init(&s->watch);
    hd_status status = connect(s, name, options, role, error);
    if (status) {
        env_free(env, s, sizeof *s);
        return status;
    }
    s->base.text_max = file_text_max(&s->file);
    s->base.shortens = true;
    if (role == LOG_WRITING) {
        wal_watch(&s->wal, &s->file);
        sqlite3_busy_handler(s->file.db, await_lock, s);
    } else if (!options->vfs) watch_open(&s->watch, s->file.db);
    *out = &s->base;
    return HD_OK;
}

static void sqlite_close(log_store *s) {
    sqlite_store *mine = store_of(s);
    watch_close(&mine->watch);
    file_rollback(&mine->file);
    file_close(&mine->file);
    hd_env env = s->env;
    env_free(&env, mine, sizeof *mine);
}

struct sqlite3 *sqlite_connection(const log_store *s) {
    assert(s->ops == &sqlite_backend);
    return file_of(s)->db;
}

static const char *sqlite_words(const log_store *s, hd_status status) {
    return file_words(file_of(s), status);
}

static const char *sqlite_file(const log_store *s) {
    return sqlite3_db_filename(file_of(s)->db, "main");
}

/* The WAL is not looked at before every group: a stat of it makes the next write and its sync slower (0485). */
static bool sqlite_is_lost(const log_store *s) {
    sqlite_store *mine = store_of(s);
    uint64_t now = env_now_ns(&s->env);
    if (file_has_moved(&mine->file)) return true;
    if (!mine->watch.renamed && now < mine->wal_look_ns) return false;
    if (file_wal_has_moved(&mine->file)) return true;
    mine->watch.renamed = false;
    mine->wal_look_ns = now + WAL_LOOK_NS;
    return false;
}

/* ---- Transactions --------------------------------------------------------------------------- */

static hd_status sqlite_begin_read(log_store *s) {
    assert(!file_in_transaction(file_of(s)));
    return file_begin_read(file_of(s));
}

static hd_status sqlite_begin_write(log_store *s, log_durability durability) {
    assert(!file_in_transaction(file_of(s)) && !file_of(s)->read_only);
    return durability == LOG_DURABLE ? file_begin_write(file_of(s)) : file_begin_soft(file_of(s));
}

static hd_status sqlite_commit(log_store *s) {
    assert(file_in_transaction(file_of(s)));
    wal_mark(&store_of(s)->wal, file_of(s));
    return file_commit(file_of(s));
}

static bool sqlite_in_transaction(const log_store *s) { return file_in_transaction(file_of(s)); }

static void sqlite_rollback(log_store *s) {
    if (file_in_transaction(file_of(s))) file_rollback(file_of(s));
}

/* ---- Housework ------------------------------------------------------------------------------- */

static bool sqlite_has_work(const log_store *s) { return wal_is_long(&store_of(s)->wal); }

static void sqlite_work(log_store *s) {
    assert(!file_in_transaction(file_of(s)));
    wal_copy(&store_of(s)->wal, file_of(s));
}

static hd_status sqlite_vacuum(log_store *s) { return file_exec(file_of(s), "vacuum"); }

/* ---- Other writers --------------------------------------------------------------------------- */

static int sqlite_notify_fd(log_store *s) { return store_of(s)->watch.fd; }
static bool sqlite_notify_arm(log_store *s) { return watch_arm(&store_of(s)->watch); }
static uint64_t sqlite_notify_take(log_store *s) {
    watch_take(&store_of(s)->watch);
    return UINT64_MAX; /* the system does not tell what was written */
}
static bool sqlite_is_being_written(log_store *s) { return watch_sees_writing(file_of(s)->db); }

const log_backend sqlite_backend = {
    .open = sqlite_open,
    .close = sqlite_close,
    .words = sqlite_words,
    .file = sqlite_file,
    .is_lost = sqlite_is_lost,
    .begin_read = sqlite_begin_read,
    .begin_write = sqlite_begin_write,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .in_transaction = sqlite_in_transaction,
    .append = sqlite_append,
    .read_after = sqlite_read_after,
    .read_row = sqlite_read_row,
    .row_ends = sqlite_row_ends,
    .delete_rows = sqlite_delete_rows,
    .get_number = sqlite_get_number,
    .set_number = sqlite_set_number,
    .get_secret = sqlite_get_secret,
    .each_space = sqlite_each_space,
    .get_space = sqlite_get_space,
    .put_space = sqlite_put_space,
    .raise_floor = sqlite_raise_floor,
    .find_head = sqlite_find_head,
    .read_head = sqlite_read_head,
    .end_head = sqlite_end_head,
    .put_head = sqlite_put_head,
    .touch_head = sqlite_touch_head,
    .drop_head = sqlite_drop_head,
    .read_large = sqlite_read_large,
    .put_large = sqlite_put_large,
    .drop_large = sqlite_drop_large,
    .each_patch = sqlite_each_patch,
    .put_patch = sqlite_put_patch,
    .drop_patches = sqlite_drop_patches,
    .list_heads = sqlite_list_heads,
    .heads_since = sqlite_heads_since,
    .each_head = sqlite_each_head,
    .find_patched = sqlite_find_patched,
    .has_memos = sqlite_has_memos,
    .each_memo = sqlite_each_memo,
    .next_memo = sqlite_next_memo,
    .put_memo = sqlite_put_memo,
    .drop_memo = sqlite_drop_memo,
    .each_session = sqlite_each_session,
    .put_session = sqlite_put_session,
    .each_reader = sqlite_each_reader,
    .put_reader = sqlite_put_reader,
    .move_reader = sqlite_move_reader,
    .drop_runtime = sqlite_drop_runtime,
    .has_work = sqlite_has_work,
    .work = sqlite_work,
    .vacuum = sqlite_vacuum,
    .check = sqlite_check,
    .measure = sqlite_measure,
    .notify_fd = sqlite_notify_fd,
    .notify_arm = sqlite_notify_arm,
    .notify_take = sqlite_notify_take,
    .is_being_written = sqlite_is_being_written,
};

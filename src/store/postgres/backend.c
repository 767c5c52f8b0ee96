/* backend.c -- connections and transactions of the PostgreSQL backend, and its table of functions.
 *
 * Writers do not lock each other out. Appending row n is an INSERT whose primary key is n: the first writer to insert
 * it has the row. A checkpoint locks one row, so that there is one checkpoint at a time; appends do not wait for it. */
#include "store/postgres/backend.h"

#include "base/hash.h"
#include "store/postgres/store.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_NS UINT64_C(1000000000)
/* A value of a column may have a gigabyte, with what stands around it. */
#define TEXT_MAX ((size_t)512 << 20)

bool postgres_is_address(const char *name) { return url_is_one(name); }

hd_status postgres_refuse_misspelt(const char *name, hd_error *error) {
    if (!url_is_misspelt(name) || access(name, F_OK) == 0) return HD_OK;
    env_error(
        error, HD_USAGE,
        "this is no address of a store: write postgresql://user@host/database, or name a file");
    return HD_USAGE;
}

/* ---- Connections --------------------------------------------------------------------------- */

static void set_channel(pg_store *s, const char *schema) {
    snprintf(s->channel, sizeof s->channel, "heddle_%016" PRIx64,
             hash_bytes(schema, strlen(schema), 0));
}

static hd_status connect(pg_store *s, const char *name, const hd_options *options, log_role role,
                         hd_error *error) {
    conn *c = &s->conn;
    url address;
    hd_status status = url_init(&address, name, &s->base.env, error);
    if (status) return status;
    set_channel(s, address.schema);
    url_fini(&address, &s->base.env);
    c->soft = options->durability == HD_DURABILITY_NORMAL;
    c->leaving = &s->base.leaving;
    c->opened = &s->base.opened;
    c->channel = role == LOG_WRITING ? NULL : s->channel;
    status = conn_open(c, name, &s->base.env, error);
    if (status || role == LOG_READING) return status;
    bool writes = role == LOG_WRITING;
    return pg_schema_check(c, writes && !options->must_exist, writes, error);
}

static void pg_close(log_store *s) {
    pg_store *mine = pg_of(s);
    conn_rollback(&mine->conn);
    pg_end_head(s);
    pg_forget_heads(mine);
    pg_forget_winners(mine);
    pg_listen_close(mine);
    conn_close(&mine->conn);
    hd_env env = s->env;
    env_free(&env, mine, sizeof *mine);
}

static hd_status pg_open(const char *name, const hd_options *options, const hd_env *env,
                         log_role role, log_store **out, hd_error *error) {
    *out = NULL;
    pg_store *s = env_new0(env, sizeof *s);
    if (!s) return HD_NOMEM;
    log_store_init(&s->base, &postgres_backend, env, "");
    s->set = s->conn.heard_fd = -1;
    table_init(&s->cache.by_name, &s->base.env);
    hd_status status = connect(s, name, options, role, error);
    if (status) {
        conn_close(&s->conn);
        env_free(env, s, sizeof *s);
        return status;
    }
    log_store_init(&s->base, &postgres_backend, env, s->conn.url.shown);
    s->base.text_max = TEXT_MAX;
    s->base.optimistic = s->base.patient = true;
    s->base.look_ns = POLL_NS;
    if (role != LOG_WRITING) pg_listen_open(s);
    *out = &s->base;
    return HD_OK;
}

static const char *pg_words(const log_store *s, hd_status status) {
    const conn *c = conn_of(s);
    return c->failure == status && *c->words ? c->words : NULL;
}

static const char *pg_file(const log_store *s) {
    (void)s;
    return NULL;
}

static bool pg_is_lost(const log_store *s) {
    (void)s;
    return false;
}

/* ---- Transactions --------------------------------------------------------------------------- */

static void begin(log_store *s, conn_mode mode) {
    s->told_early = false;
    pg_of(s)->numbers_known = false;
    memset(pg_of(s)->beside, 0, sizeof pg_of(s)->beside);
    if (mode != CONN_APPEND) pg_forget_winners(pg_of(s));
    conn_begin(conn_of(s), mode);
}

static hd_status pg_begin_read(log_store *s) {
    begin(s, CONN_READ);
    return HD_OK;
}

/* Whether another process does the housework is found out by the statement that takes the lock for it. */
static hd_status pg_begin_write(log_store *s, log_durability durability) {
    begin(s, durability == LOG_DURABLE ? CONN_APPEND
             : durability == LOG_SOFT  ? CONN_SOFT
                                       : CONN_HOUSEWORK);
    return HD_OK;
}

static bool pg_in_transaction(const log_store *s) { return conn_of(s)->mode != CONN_FREE; }

static void ended(pg_store *s) {
    if (s->conn.mode != CONN_FREE) return;
    s->numbers_known = false;
    pg_forget_heads(s);
    assert(!s->cache.heads.count && !s->cache.results.count && !s->cache.names.count);
}

static hd_status pg_commit(log_store *s) {
    hd_status status = conn_commit(conn_of(s));
    ended(pg_of(s));
    return status;
}

/* The transaction may have taken numbers for documents, which the store has again: see take_doc. */
static void pg_rollback(log_store *s) {
    pg_store *mine = pg_of(s);
    if (!pg_in_transaction(s)) return;
    mine->doc_next = mine->doc_end = 0;
    conn_rollback(&mine->conn);
    ended(mine);
}

/* A notification comes after its commit. */
static bool pg_is_being_written(log_store *s) {
    (void)s;
    return false;
}

static hd_status pg_vacuum(log_store *s) {
    (void)s; /* the server does it by itself */
    return HD_OK;
}

const log_backend postgres_backend = {
    .open = pg_open,
    .close = pg_close,
    .words = pg_words,
    .file = pg_file,
    .is_lost = pg_is_lost,
    .begin_read = pg_begin_read,
    .begin_write = pg_begin_write,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .in_transaction = pg_in_transaction,
    .append = pg_append,
    .read_after = pg_read_after,
    .read_row = pg_read_row,
    .row_ends = pg_row_ends,
    .has_after = pg_has_after,
    .delete_rows = pg_delete_rows,
    .get_number = pg_get_number,
    .set_number = pg_set_number,
    .get_secret = pg_get_secret,
    .each_space = pg_each_space,
    .get_space = pg_get_space,
    .put_space = pg_put_space,
    .raise_floor = pg_raise_floor,
    .expect_heads = pg_expect_heads,
    .find_head = pg_find_head,
    .read_head = pg_read_head,
    .end_head = pg_end_head,
    .put_head = pg_put_head,
    .touch_head = pg_touch_head,
    .drop_head = pg_drop_head,
    .read_large = pg_read_large,
    .put_large = pg_put_large,
    .drop_large = pg_drop_large,
    .each_patch = pg_each_patch,
    .put_patch = pg_put_patch,
    .drop_patches = pg_drop_patches,
    .list_heads = pg_list_heads,
    .heads_since = pg_heads_since,
    .each_head = pg_each_head,
    .find_patched = pg_find_patched,
    .has_memos = pg_has_memos,
    .each_memo = pg_each_memo,
    .next_memo = pg_next_memo,
    .put_memo = pg_put_memo,
    .drop_memo = pg_drop_memo,
    .each_session = pg_each_session,
    .put_session = pg_put_session,
    .each_reader = pg_each_reader,
    .put_reader = pg_put_reader,
    .move_reader = pg_put_reader,
    .drop_runtime = pg_drop_runtime,
    .beat = pg_beat,
    .leave = pg_leave,
    .lasts = pg_lasts,
    .has_work = pg_has_work,
    .work = pg_work,
    .work_in_ms = pg_work_in_ms,
    .vacuum = pg_vacuum,
    .check = pg_check,
    .measure = pg_measure,
    .notify_fd = pg_notify_fd,
    .notify_arm = pg_notify_arm,
    .notify_take = pg_notify_take,
    .is_being_written = pg_is_being_written,
};

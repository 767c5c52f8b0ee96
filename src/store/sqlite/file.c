/* file.c -- opening, creating and refusing; statements; what results mean. */
#define _GNU_SOURCE
#include "store/sqlite/file.h"

#include "store/log/columns.h"
#include "store/sqlite/identity.h"
#include "store/sqlite/schema.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof schema_steps / sizeof schema_steps[0] == FILE_FORMAT, "a step per format");

enum {
    FILE_BUSY_MS = 2000,
    OPENINGS_MAX = 3,
    LOOKS_MAX = 4,
    MODE_TRIES = 40,
    WAL_BYTES_KEPT = 16 << 20 /* a WAL that was longer is cut to this when it starts anew */
};

_Static_assert(NODE_FORMAT <= FILE_FORMAT && META_FORMAT <= NODE_FORMAT, "formats only grow");

static const char *const sql_text[SQL_COUNT_] = {
    [SQL_BEGIN_READ] = "begin",
    [SQL_BEGIN_WRITE] = "begin immediate",
    [SQL_COMMIT] = "commit",
    [SQL_ROLLBACK] = "rollback",
    [SQL_LOG_APPEND] = "insert into log(row, hash, body) values(?1, ?2, ?3)",
    [SQL_LOG_AFTER] = "select row, hash, body from log where row > ?1 order by row",
    [SQL_LOG_ROW] = "select row, hash, body from log where row = ?1",
    [SQL_LOG_PRUNE] = "delete from log where row <= ?1",
    [SQL_META_GET] = "select value from meta where key = ?1",
    [SQL_META_SET] = "replace into meta(key, value) values(?1, ?2)",
    [SQL_SPACES] = "select name, checkpoint, floor from space order by name",
    [SQL_SPACE_GET] = "select checkpoint, floor from space where name = ?1",
    [SQL_SPACE_SET] = "insert into space(name, checkpoint, floor) values(?1, ?2, 0)"
                      " on conflict(name) do update set checkpoint = ?2",
    [SQL_SPACE_FLOOR] = "update space set floor = ?2 where name = ?1 and floor < ?2",
    /* By its number, so that names come from the row and not from the index that led to it. */
    [SQL_HEAD_GET] = "select " HEAD_COLUMNS " from head where doc = (select doc from head"
                     " where space = ?1 and id = ?2 and scope = ?3 and instance = ?4)",
    /* Whether there really is no row: two indexes say so. */
    [SQL_HEAD_NONE] = "select not exists(select 1 from head indexed by head_name"
                      " where space = ?1 and id = ?2 and scope = ?3 and instance = ?4)"
                      " and not exists(select 1 from head indexed by head_list"
                      " where space = ?1 and id = ?2 and scope = ?3 and instance = ?4)",
    [SQL_HEAD_SEQ] = "select " HEAD_NUMBERS
                     " from head where space = ?1 and id = ?2 and scope = ?3 and instance = ?4",
    [SQL_HEAD_PUT] = "insert into head(space, id, scope, instance, doc, kind, seq, meta_seq,"
                     " guarded, large, size, patched, hash, meta, value)"
                     " values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
                     " on conflict(doc) do update set kind = ?6, seq = ?7, meta_seq = ?8,"
                     " guarded = ?9, large = ?10, size = ?11, patched = ?12, hash = ?13,"
                     " meta = ?14, value = ?15",
    [SQL_HEAD_PATCHED] = "update head set seq = ?2, patched = ?3 where doc = ?1",
    [SQL_HEAD_DROP] = "delete from head where doc = ?1",
    [SQL_LARGE_GET] = "select hash, value from large where doc = ?1",
    [SQL_LARGE_PUT] = "replace into large(doc, hash, value) values(?1, ?2, ?3)",
    [SQL_LARGE_DROP] = "delete from large where doc = ?1",
    [SQL_PATCH_GET] = "select seq, hash, body from patch where doc = ?1 order by seq",
    [SQL_PATCH_PUT] = "replace into patch(doc, seq, hash, body) values(?1, ?2, ?3, ?4)",
    [SQL_PATCH_DROP] = "delete from patch where doc = ?1",
    [SQL_LIST_ALL] = "select id, scope, instance, kind, seq from head indexed by head_list"
                     " where space = ?1 and id >= ?2 and (large or value is not null) order by id, "
                     "scope, instance",
    [SQL_LIST_KIND] = "select id, scope, instance, kind, seq from head indexed by head_kind"
                      " where space = ?1 and id >= ?2 and kind = ?3 and kind <> ''"
                      " and (large or value is not null) order by id, scope, instance",
    [SQL_SESSIONS] = "select id, pid, settled, last, verdicts from session",
    [SQL_SESSION_PUT] = "replace into session(id, pid, settled, last, verdicts)"
                        " values(?1, ?2, ?3, ?4, ?5)",
    [SQL_SESSION_DROP] = "delete from session where id = ?1",
    [SQL_READERS] = "select session, pid, started, position from reader",
    [SQL_READER_PUT] = "replace into reader(session, pid, started, position)"
                       " values(?1, ?2, ?3, ?4)",
    [SQL_READER_MOVE] = "update reader set position = ?2 where session = ?1",
    [SQL_READER_DROP] = "delete from reader where session = ?1",
    [SQL_HEADS_SINCE] = "select id, scope, instance, seq from head indexed by head_seq"
                        " where space = ?1 and seq > ?2",
    [SQL_METAS_SINCE] = "select id, scope, instance, meta_seq from head indexed by head_meta"
                        " where space = ?1 and meta_seq > ?2 and meta_seq > 0",
    /* Names of a piece begin with it and a ':'; ';' follows ':'. */
    [SQL_NODES] = "select " MEMO_COLUMNS " from node"
                  " where name >= ?1 || ':' and name < ?1 || ';' order by name, instance",
    [SQL_NODE_NEXT] = "select name from node where name >= ?1 order by name limit 1",
    [SQL_NODE_ANY] = "select 1 from node limit 1",
    [SQL_NODE_PUT] = "replace into node(" MEMO_COLUMNS ")"
                     " values(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_NODE_DROP] = "delete from node where name = ?1 and instance = ?2",
    [SQL_TOMBSTONES_DROP] = "delete from head where doc in (select doc from head indexed by"
                            " head_gone where space = ?1 and seq <= ?2 and size = 0"
                            " and meta is null and not guarded) and meta_seq <= ?2",
};

/* ---- Results ----------------------------------------------------------------------------- */

hd_status file_status(int rc) {
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE: return HD_OK;
    case SQLITE_NOMEM: return HD_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return HD_BUSY;
    case SQLITE_FULL: return HD_FULL;
    case SQLITE_IOERR:
        return rc == SQLITE_IOERR_NOMEM     ? HD_NOMEM
               : rc == SQLITE_IOERR_SHMSIZE ? HD_FULL /* no room for it beside the file */
                                            : HD_IO;
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT: return HD_IO;
    case SQLITE_CORRUPT: return HD_CORRUPT;
    case SQLITE_NOTADB: return HD_NOT_HEDDLE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return HD_READ_ONLY;
    case SQLITE_TOOBIG: return HD_LIMIT;
    default: return HD_FAILED;
    }
}

/* SQLite's result is what failed, and not something of ours after it. */
const char *file_words(const file *f, hd_status status) {
    int rc = f->db ? sqlite3_errcode(f->db) : SQLITE_OK;
    return rc != SQLITE_OK && file_status(rc) == status ? sqlite3_errmsg(f->db) : NULL;
}

/* ---- Statements -------------------------------------------------------------------------- */

sqlite3_stmt *file_sql_get(file *f, file_sql which) {
    assert(which < SQL_COUNT_ && f->db);
    sqlite3_stmt **s = &f->statements[which];
    assert(sql_text[which]);
    if (!*s && sqlite3_prepare_v3(f->db, sql_text[which], -1, SQLITE_PREPARE_PERSISTENT, s, NULL))
        return NULL;
    return *s;
}

hd_status file_finish(file *f, sqlite3_stmt *s) {
    assert(!sqlite3_stmt_busy(s));
    (void)f;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) rc = SQLITE_DONE;
    int reset = sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return file_status(reset ? reset : rc);
}

hd_status file_run(file *f, file_sql which) {
    sqlite3_stmt *s = file_sql_get(f, which);
    return s ? file_finish(f, s) : file_status(sqlite3_extended_errcode(f->db));
}

hd_status file_exec(file *f, const char *sql) {
    assert(f->db);
    return file_status(sqlite3_exec(f->db, sql, NULL, NULL, NULL));
}

/* Whether the next COMMIT waits for the disk. SQLite changes this only outside of transactions. */
static hd_status set_soft(file *f, bool soft) {
    assert(!file_in_transaction(f));
    if (!f->synchronous || f->soft == soft) return HD_OK;
    hd_status status =
        file_exec(f, soft ? "pragma synchronous = normal" : "pragma synchronous = full");
    if (!status) f->soft = soft;
    return status;
}

hd_status file_begin_write(file *f) {
    hd_status status = set_soft(f, false);
    assert(status || !f->soft);
    return status ? status : file_run(f, SQL_BEGIN_WRITE);
}

hd_status file_begin_soft(file *f) {
    hd_status status = set_soft(f, true);
    assert(status || f->soft || !f->synchronous);
    return status ? status : file_run(f, SQL_BEGIN_WRITE);
}

void file_rollback(file *f) {
    for (int i = 0; i < SQL_COUNT_; i++)
        if (f->statements[i]) sqlite3_reset(f->statements[i]);
    if (f->db && file_in_transaction(f)) (void)file_run(f, SQL_ROLLBACK);
    for (int i = 0; i < SQL_COUNT_; i++)
        assert(!f->statements[i] || !sqlite3_stmt_busy(f->statements[i]));
}

hd_status file_column_number(sqlite3_stmt *s, int column, uint64_t *out) {
    return log_number_of(sqlite3_column_int64(s, column), out) ? HD_OK : HD_CORRUPT;
}

hd_status file_meta_get(file *f, const char *key, uint64_t *out) {
    *out = 0;
    sqlite3_stmt *s = file_sql_get(f, SQL_META_GET);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    hd_status status = rc == SQLITE_ROW ? file_column_number(s, 0, out) : HD_NOT_FOUND;
    int reset = sqlite3_reset(s);
    return reset ? file_status(reset) : status;
}

hd_status file_meta_set(file *f, const char *key, uint64_t value) {
    assert(file_in_transaction(f));
    sqlite3_stmt *s = file_sql_get(f, SQL_META_SET);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)value);
    return file_finish(f, s);
}

/* ---- Opening ----------------------------------------------------------------------------- */

static hd_status pragma_int(file *f, const char *sql, int64_t *out) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(f->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(s);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    int done = sqlite3_finalize(s);
    return file_status(done ? done : rc);
}

static hd_status connect(file *f, const char *name, const char *vfs, int flags, const hd_env *env) {
    *f = (file){ .env = env, .name_size = strlen(name) + 1 };
    log_show_name(name, f->shown);
    f->name = env_new_copy(env, name, f->name_size);
    if (!f->name) return HD_NOMEM;
    assert(strlen(f->shown) < sizeof f->shown && !f->db);
    int rc = sqlite3_open_v2(name, &f->db, flags | SQLITE_OPEN_NOMUTEX, vfs);
    if (rc) return file_status(rc);
    sqlite3_extended_result_codes(f->db, 1);
    sqlite3_busy_timeout(f->db, FILE_BUSY_MS);
    /* Whatever a stranger has put into the schema does not run. */
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return HD_OK;
}

/* SQLite takes "file:..." for a URI, also where it is not asked to. A name is a name here. */
static hd_status connect_plain(file *f, const char *name, const char *vfs, int flags,
                               const hd_env *env) {
    bool like_uri = strncmp(name, "file:", 5) == 0;
    size_t size = strlen(name) + 3;
    char *plain = like_uri ? env_new(env, size) : NULL;
    if (like_uri && !plain) return *f = (file){ 0 }, HD_NOMEM;
    if (plain) snprintf(plain, size, "./%s", name);
    hd_status status = connect(f, plain ? plain : name, vfs, flags, env);
    if (plain) env_free(env, plain, size);
    return status;
}

void file_close(file *f) {
    if (!f->db && !f->name) return;
    assert(f->env);
    for (int i = 0; i < SQL_COUNT_; i++) sqlite3_finalize(f->statements[i]);
    sqlite3_close_v2(f->db);
    env_free(f->env, f->name, f->name_size);
    *f = (file){ 0 };
}

/* What a file says it is. */
typedef struct look {
    int64_t application_id, format, tables;
} look;

/* Whether the directory that the file is to stand in does not exist. */
static bool lacks_directory(const char *name) {
    struct stat st;
    char folder[PATH_MAX];
    const char *slash = strrchr(name, '/');
    if (!slash || slash == name || (size_t)(slash - name) >= sizeof folder) return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
    return stat(folder, &st) && (errno == ENOENT || errno == ENOTDIR);
}

static bool is_directory(const char *name) {
    struct stat st;
    return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Also to read a file SQLite needs one beside it. */
static void refuse_access(const file *f, hd_error *error) {
    if (!f->read_only)
        env_error(error, HD_READ_ONLY,
                  "%s cannot be written: give write permission to the file and its directory, or"
                  " open it read-only",
                  f->shown);
    else if (access(f->name, R_OK))
        env_error(error, HD_READ_ONLY, "%s cannot be read: give read permission", f->shown);
    else
        env_error(
            error, HD_READ_ONLY,
            "%s cannot be read where it is, since SQLite writes a -shm file beside it: give write"
            " permission to its directory, or copy it elsewhere",
            f->shown);
}

/* SQLite's own limit of a name with its directory, the ends of its own files included. */
enum { NAME_MAX_BYTES = 500 };

static const char *misnamed(const char *name) {
    const char *slash = strrchr(name, '/');
    if (strlen(slash ? slash + 1 : name) > NAME_MAX - 8)
        return "is too long a name for a file: choose one of at most 247 bytes";
    if (strlen(name) > NAME_MAX_BYTES)
        return "is too long a name for SQLite: go to its directory, and name it from there";
    if (is_directory(name)) return "is a directory: name a file in it";
    return lacks_directory(name) ? "is in a directory that does not exist: make that first" : NULL;
}

/* SQLite says only that a file cannot be opened. */
static bool lacks_descriptors(const file *f) {
    int why = f->db ? sqlite3_system_errno(f->db) : 0;
    return why == EMFILE || why == ENFILE;
}

static hd_status refuse(const file *f, hd_status status, hd_error *error) {
    assert(status != HD_OK);
    const char *name = f->name ? f->shown : "store";
    if ((status == HD_READ_ONLY || status == HD_IO) && lacks_descriptors(f)) {
        env_error(error, HD_IO, "%s cannot be opened: %s", name,
                  strerror(sqlite3_system_errno(f->db)));
        return HD_IO;
    }
    bool placed = status != HD_READ_ONLY && status != HD_IO && status != HD_NOT_FOUND;
    const char *where = f->name && !placed ? misnamed(f->name) : NULL;
    if (where) { /* not HD_IO, which is worth another try: such a name stays wrong */
        if (is_directory(f->name)) status = HD_NOT_HEDDLE;
        else if (status == HD_IO) status = HD_READ_ONLY;
        env_error(error, status, "%s %s", name, where);
        return status;
    }
    switch (status) {
    case HD_NOT_HEDDLE:
        env_error(error, status, "%s is not a heddle file: name another one; this one is untouched",
                  name);
        break;
    case HD_CORRUPT:
        env_error(error, status,
                  "%s is damaged (%s): restore a backup, try `heddle db repair`, or save what is"
                  " left with sqlite3's .recover",
                  name, f->damage[0] ? f->damage : sqlite3_errmsg(f->db));
        break;
    case HD_READ_ONLY: refuse_access(f, error); break;
    case HD_FULL: env_error(error, status, "%s: the disk is full: make room", name); break;
    case HD_BUSY:
        env_error(error, status, "%s is locked by another program: try again", name);
        break;
    default:
        env_error(error, status, "%s: %s", name,
                  f->db ? sqlite3_errmsg(f->db) : hd_status_text(status));
    }
    return status;
}

static hd_status read_look(file *f, look *out) {
    hd_status status = pragma_int(f, "pragma application_id", &out->application_id);
    if (!status) status = pragma_int(f, "pragma user_version", &out->format);
    /* Pages of a file that is ours may be changing under an immutable connection. */
    if (!status && out->application_id != FILE_APPLICATION_ID)
        status = pragma_int(f, "select count(*) from sqlite_schema", &out->tables);
    return status == HD_FAILED ? HD_CORRUPT : status; /* SQLite can make nothing of its header */
}

static hd_status judge_look(const file *f, const look *seen, hd_error *error) {
    bool empty = seen->application_id == 0 && seen->tables == 0;
    if (!empty && seen->application_id != FILE_APPLICATION_ID)
        return refuse(f, HD_NOT_HEDDLE, error);
    if (seen->format < (empty ? 0 : 1)) { /* identity and format are written at once */
        env_error(error, HD_CORRUPT,
                  "%s says that it has format %d, which there never was: restore it from a backup",
                  f->shown, (int)seen->format);
        return HD_CORRUPT;
    }
    if (seen->format <= FILE_FORMAT) return HD_OK;
    env_error(error, HD_NEWER,
              "%s has format %d, this heddle (%s) knows up to %d: install a newer heddle", f->shown,
              (int)seen->format, hd_version(), FILE_FORMAT);
    return HD_NEWER;
}

/* Byte 18 of the file is the version that a writer must know. SQLite writes 1 or 2, and opens a file with
 * more than that read-only, without an error. */
enum { WRITE_VERSION_AT = 18, WRITE_VERSION_MAX = 2 };

static hd_status bar_writing(file *f) {
    snprintf(f->damage, sizeof f->damage, "its header says that SQLite must not write to it");
    return HD_CORRUPT;
}

static bool header_bars_writing(const file *f) {
    unsigned char version = 0;
    sqlite3_file *at = NULL;
    return !sqlite3_file_control(f->db, "main", SQLITE_FCNTL_FILE_POINTER, &at) && at->pMethods &&
           !at->pMethods->xRead(at, &version, 1, WRITE_VERSION_AT) && version > WRITE_VERSION_MAX;
}

/* "file:name?immutable=1", with the characters escaped that mean something there. */
static size_t immutable_uri(const char *name, char *out) {
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    memcpy(out, "file:", 5);
    for (n = 5; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c != '%' && c != '?' && c != '#') {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '%';
        out[n++] = hex[c >> 4];
        out[n++] = hex[c & 15];
    }
    memcpy(out + n, "?immutable=1", 13);
    assert(strlen(out) == n + 12);
    return n + 12;
}

/* Whether a WAL lies beside the file: then the file alone says nothing, for a power loss may have cut
 * short the copying of pages from one to the other. */
static bool has_wal(const char *name, const char *vfs_name) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(vfs_name);
    char path[PATH_MAX + 8];
    int exists = 0;
    if (!vfs || vfs->xFullPathname(vfs, name, PATH_MAX, path) != SQLITE_OK) return false;
    strcat(path, "-wal");
    return vfs->xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &exists) == SQLITE_OK && exists;
}

/* A connection to the main file alone, without locks, journals or shared memory: nothing is created,
 * recovered or changed by it. The caller closes `f` in any case. */
static hd_status connect_alone(file *f, const char *name, const char *vfs, const hd_env *env) {
    size_t room = 3 * strlen(name) + 32;
    char *uri = env_new(env, room);
    *f = (file){ 0 };
    if (!uri) return HD_NOMEM;
    size_t length = immutable_uri(name, uri);
    assert(length < room);
    (void)length;
    hd_status status = connect(f, uri, vfs, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, env);
    env_free(env, uri, room);
    return status;
}

/* What is not there yet, or only in the WAL, looks empty; that is looked at again under the lock. */
static hd_status look_at(const char *name, const file_options *o, const hd_env *env,
                         hd_error *error) {
    file f;
    hd_status status = connect_alone(&f, name, o->vfs, env);
    if (status && !f.name) return status;
    look seen = { 0 };
    bool missing = status == HD_IO && f.db && sqlite3_errcode(f.db) == SQLITE_CANTOPEN;
    if (!status) status = read_look(&f, &seen);
    if (!status && (!o->read_only || o->as_writer) && header_bars_writing(&f))
        status = bar_writing(&f);
    env_free(env, f.name, f.name_size); /* messages name the file, not the address */
    f.name_size = strlen(name) + 1;
    f.name = env_new_copy(env, name, f.name_size);
    log_show_name(name, f.shown);
    f.read_only = o->read_only;
    if (!f.name) status = HD_NOMEM;
    else if (missing && !o->vfs && access(name, F_OK) == 0)
        status = refuse(&f, HD_READ_ONLY, error);
    else if (missing && (o->must_exist || o->read_only)) {
        status = HD_NOT_FOUND;
        env_error(error, status, "%s does not exist", name);
    } else if (missing) status = HD_OK; /* creating it tells why, if it is not simply missing */
    else if (status) status = refuse(&f, status, error);
    else status = judge_look(&f, &seen, error);
    file_close(&f);
    return status;
}

/* ---- The schema -------------------------------------------------------------------------- */

/* Everything in it, in one order. Tables in which SQLite keeps statistics may be there or not. */
static const char schema_sql[] =
    "select type, name, tbl_name, coalesce(sql, '') from sqlite_schema"
    " where type <> 'table' or name not in ('sqlite_stat1', 'sqlite_stat4')"
    " order by type, name, tbl_name";

/* The same tables, made by our own steps. */
static int make_model(int64_t format, sqlite3 **out) {
    assert(format >= 1 && format <= FILE_FORMAT); /* judge_look has seen to it */
    int rc = sqlite3_open_v2(
        ":memory:", out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    for (int64_t i = 0; i < format && !rc; i++)
        rc = sqlite3_exec(*out, schema_steps[i], NULL, NULL, NULL);
    return rc;
}

static bool same_columns(sqlite3_stmt *a, sqlite3_stmt *b) {
    for (int i = 0; i < 4; i++) {
        const char *x = (const char *)sqlite3_column_text(a, i);
        const char *y = (const char *)sqlite3_column_text(b, i);
        if (!x || !y || strcmp(x, y) != 0) return false;
    }
    return true;
}

/* Steps through both side by side. */
static hd_status compare_schemas(file *f, sqlite3_stmt *ours, sqlite3_stmt *theirs) {
    for (;;) {
        int a = sqlite3_step(ours), b = sqlite3_step(theirs);
        if (a != SQLITE_ROW && a != SQLITE_DONE) return file_status(a);
        if (b != SQLITE_ROW && b != SQLITE_DONE) return file_status(b);
        if (a == SQLITE_DONE && b == SQLITE_DONE) return HD_OK;
        if (a == b && same_columns(ours, theirs)) continue;
        const char *name = (const char *)sqlite3_column_text(b == SQLITE_ROW ? theirs : ours, 1);
        snprintf(f->damage, sizeof f->damage, "'%.60s' in its schema is not what heddle makes",
                 name ? name : "?");
        return HD_CORRUPT;
    }
}

/* Tables that are views, triggers, columns that check or compute something: heddle did not write
 * them, and what they would do is not known. */
static hd_status verify_schema(file *f, int64_t format) {
    sqlite3 *model = NULL;
    sqlite3_stmt *ours = NULL, *theirs = NULL;
    int rc = make_model(format, &model);
    if (!rc) rc = sqlite3_prepare_v2(model, schema_sql, -1, &ours, NULL);
    if (!rc) rc = sqlite3_prepare_v2(f->db, schema_sql, -1, &theirs, NULL);
    hd_status status = rc ? file_status(rc) : compare_schemas(f, ours, theirs);
    if (status == HD_FAILED) status = HD_CORRUPT;
    sqlite3_finalize(ours);
    sqlite3_finalize(theirs);
    sqlite3_close(model);
    return status;
}

static hd_status migrate_step(file *f, int64_t from) {
    char tail[128];
    assert(from >= 0 && from < FILE_FORMAT && file_in_transaction(f) && !f->read_only);
    snprintf(tail, sizeof tail, "pragma application_id = %d; pragma user_version = %d",
             FILE_APPLICATION_ID, (int)from + 1);
    hd_status status = file_exec(f, schema_steps[from]);
    return status ? status : file_exec(f, tail);
}

/* Under the write lock, since two programs may create the same file at the same moment. */
static hd_status migrate(file *f, hd_error *error) {
    assert(!file_in_transaction(f) && !f->read_only);
    for (;;) {
        look seen = { 0 };
        hd_status status = file_begin_write(f);
        if (!status) status = read_look(f, &seen);
        if (!status) status = judge_look(f, &seen, error);
        bool done = !status && seen.format == FILE_FORMAT;
        if (!status && !done) status = migrate_step(f, seen.format);
        if (!status && !done) status = file_commit(f);
        file_rollback(f);
        if (status || done) return status;
    }
}

/* On macOS fsync leaves the data in the drive's own cache; SQLite knows what to call instead if it is told to. */
#ifdef __APPLE__
#define FULL_SYNC "pragma fullfsync = on; pragma checkpoint_fullfsync = on;"
#else
#define FULL_SYNC ""
#endif

static hd_status set_up(file *f, const file_options *o) {
    char sql[512];
    snprintf(sql, sizeof sql,
             "pragma page_size = %d; pragma synchronous = %s; pragma wal_autocheckpoint = 0;"
             "pragma foreign_keys = off; pragma secure_delete = off; pragma temp_store = memory; "
             "pragma cell_size_check = on;" FULL_SYNC
             "pragma cache_size = -16384; pragma journal_size_limit = %d",
             FILE_PAGE_SIZE, o->durability == HD_DURABILITY_NORMAL ? "normal" : "full",
             WAL_BYTES_KEPT);
    f->synchronous = o->durability != HD_DURABILITY_NORMAL;
    return file_exec(f, sql);
}

static hd_status open_connection(file *f, const char *name, const file_options *o,
                                 const hd_env *env) {
    int flags = o->read_only    ? SQLITE_OPEN_READONLY
                : o->must_exist ? SQLITE_OPEN_READWRITE
                                : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    hd_status status = connect_plain(f, name, o->vfs, flags, env);
    f->read_only = o->read_only;
    f->format = FILE_FORMAT;
    if (!status && !o->read_only && sqlite3_db_readonly(f->db, "main") == 1) status = HD_READ_ONLY;
    if (!status) status = set_up(f, o);
    return status == HD_FAILED ? HD_CORRUPT : status; /* SQLite can make nothing of its header */
}

/* A new WAL is found again after a power loss only if its directory has been synced, and SQLite
 * leaves that to the connection that created it, which may be another one. */
static void sync_directory(const file *f, const char *vfs) {
    char directory[PATH_MAX];
    const char *path = sqlite3_db_filename(f->db, "main");
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (vfs || !slash || (size_t)(slash - path) >= sizeof directory) return;
    memcpy(directory, path, (size_t)(slash - path) + 1);
    directory[slash - path + 1] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* SQLite does not wait where two connections want to change the mode at once, but gives up: each of them
 * has what the other one needs. */
static hd_status enter_wal_mode(file *f) {
    int64_t mode;
    assert(!file_in_transaction(f)); /* SQLite changes the mode only outside of one */
    hd_status status = HD_BUSY;
    sqlite3_busy_timeout(f->db, FILE_BUSY_MS / MODE_TRIES);
    for (int i = 0; i < MODE_TRIES && status == HD_BUSY; i++) {
        if (i) sqlite3_sleep(i);
        status = pragma_int(f, "pragma journal_mode = wal", &mode);
    }
    sqlite3_busy_timeout(f->db, FILE_BUSY_MS);
    return status;
}

/* Whether the WAL beside the file is another file's. What the file says alone may be changing, or torn by a power
 * loss, in the middle of being copied from the WAL: then it does not say another id, but none. */
static bool has_foreign_wal(const file *f, const char *vfs) {
    identity alone, whole;
    file main_file;
    if (!has_wal(f->name, vfs)) return false;
    hd_status status = connect_alone(&main_file, f->name, vfs, f->env);
    if (!status) identity_read(main_file.db, &alone);
    file_close(&main_file);
    if (status) return false;
    identity_read(f->db, &whole);
    return identity_differs(&alone, &whole);
}

static hd_status refuse_wal(const file *f, hd_error *error) {
    env_error(
        error, HD_CORRUPT,
        "%s-wal belongs to another file, perhaps to the one that this name stood for before: move "
        "it away, or put that file back",
        f->shown);
    return HD_CORRUPT;
}

/* Looks again, now that journals are read too. The caller has begun a transaction: identity, format and
 * schema are of one state, even while another program creates or migrates the file. */
static hd_status accept(file *f, const file_options *o, look *seen, hd_error *error) {
    assert(!sqlite3_get_autocommit(f->db));
    hd_status status = read_look(f, seen);
    if (status) return refuse(f, status, error);
    status = judge_look(f, seen, error);
    if (status) return status;
    bool ours = seen->application_id == FILE_APPLICATION_ID;
    if (o->read_only && !ours) {
        env_error(error, HD_NOT_HEDDLE, "%s is empty: open it for writing first", f->shown);
        return HD_NOT_HEDDLE;
    }
    if (ours && has_foreign_wal(f, o->vfs)) return refuse_wal(f, error);
    status = ours ? verify_schema(f, seen->format) : HD_OK;
    if (!status && !o->read_only && sqlite3_db_readonly(f->db, "main") == 1)
        status = bar_writing(f);
    return status ? refuse(f, status, error) : HD_OK;
}

/* Accepts the file, then creates or migrates it. Until it has been accepted, its WAL is not folded in at
 * close. */
static hd_status become_store(file *f, const file_options *o, hd_error *error) {
    look seen = { 0 };
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    hd_status status = file_exec(f, "begin");
    if (status) return refuse(f, status, error);
    status = accept(f, o, &seen, error);
    file_rollback(f);
    assert(!file_in_transaction(f));
    if (status) return status;
    f->format = o->read_only ? seen.format : FILE_FORMAT;
    if (o->read_only) return HD_OK;
    status = enter_wal_mode(f);
    if (!status && seen.format < FILE_FORMAT) status = migrate(f, error);
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    if (!status) sync_directory(f, o->vfs);
    if (status == HD_IO && sqlite3_errcode(f->db) == SQLITE_CANTOPEN) status = HD_READ_ONLY;
    return status && !(error && error->status) ? refuse(f, status, error) : status;
}

static bool stat_wal(const file *f, struct stat *out) {
    const char *name = sqlite3_db_filename(f->db, "main");
    return name && *name && stat(sqlite3_filename_wal(name), out) == 0;
}

/* There is a WAL by now, and SQLite keeps it while this connection is open. */
static void note_wal(file *f, const file_options *o) {
    struct stat st;
    if (o->vfs || !stat_wal(f, &st)) return;
    f->wal_device = (uint64_t)st.st_dev;
    f->wal_inode = (uint64_t)st.st_ino;
}

/* Opens the file, and makes a store of it where it is none yet. The caller closes `f` in any case. */
static hd_status make_store(file *f, const char *name, const file_options *o, const hd_env *env,
                            hd_error *error) {
    hd_status status = open_connection(f, name, o, env);
    if (!status) {
        status = become_store(f, o, error);
        if (!status) note_wal(f, o);
        return status;
    }
    bool no_way = status == HD_IO && f->db && sqlite3_errcode(f->db) == SQLITE_CANTOPEN;
    if (no_way) status = !o->vfs && lacks_directory(name) ? HD_NOT_FOUND : HD_READ_ONLY;
    return refuse(f, status, error);
}

/* SQLite would take some names for others, and would wait at a pipe until something is written into it. */
static hd_status check_name(const char *name, const file_options *o, hd_error *error) {
    struct stat st;
    if (o->vfs) return HD_OK; /* whose names these are we do not know */
    if (!*name || strcmp(name, ":memory:") == 0) {
        env_error(error, HD_USAGE, "%s",
                  *name ? "a store in memory has no name; for a file write ./:memory:"
                        : "the file needs a name");
        return HD_USAGE;
    }
    if (stat(name, &st) || S_ISDIR(st.st_mode)) return HD_OK;
    if (S_ISREG(st.st_mode) && st.st_size != 1) return HD_OK; /* SQLite takes one byte for none */
    env_error(error, HD_NOT_HEDDLE, "%s is %s file: name another one; this one is untouched", name,
              S_ISREG(st.st_mode) ? "not a heddle" : "no");
    return HD_NOT_HEDDLE;
}

/* A file that another program turns into a store while it is looked at, without locks, may look like
 * no store at all; it does not do so again and again. */
static hd_status look_again(const char *name, const file_options *o, const hd_env *env,
                            hd_error *error) {
    hd_status status = HD_NOT_HEDDLE;
    for (int i = 0; i < LOOKS_MAX && (status == HD_NOT_HEDDLE || status == HD_CORRUPT); i++) {
        if (i) sqlite3_sleep(i);
        if (error) *error = (hd_error){ 0 };
        status = has_wal(name, o->vfs) ? HD_OK : look_at(name, o, env, error);
    }
    return status;
}

static hd_status open_once(file *f, const char *name, const file_options *o, const hd_env *env,
                           hd_error *error) {
    *f = (file){ 0 };
    if (error) *error = (hd_error){ 0 };
    hd_status status = check_name(name, o, error);
    if (!status) status = look_again(name, o, env, error);
    if (status) return status;
    status = make_store(f, name, o, env, error);
    if (status) file_close(f);
    return status;
}

size_t file_text_max(const file *f) {
    size_t limit = (size_t)sqlite3_limit(f->db, SQLITE_LIMIT_LENGTH, -1);
    return limit - limit / 16;
}

/* Commits go to the WAL that was opened. If it has no name any more they are lost with the last program that has it
 * open, unless that ends in an orderly way. */
bool file_wal_has_moved(const file *f) {
    struct stat st;
    return f->wal_inode && (!stat_wal(f, &st) || (uint64_t)st.st_ino != f->wal_inode ||
                            (uint64_t)st.st_dev != f->wal_device);
}

bool file_has_moved(const file *f) {
    int moved = 0;
    return !sqlite3_file_control(f->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) && moved;
}

/* ---- Creating ---------------------------------------------------------------------------- */

static void remove_unfinished(const char *name) {
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    char path[PATH_MAX + 8];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, sizeof path, "%s%s", name, endings[i]);
        (void)unlink(path);
    }
}

/* An empty file beside the one to be, with the mode that the process gives to new files. */
static bool make_unfinished(const char *name, const hd_env *env, char *out, size_t size) {
    uint64_t unique;
    env_random(env, &unique, sizeof unique);
    assert(size && *name);
    int length = snprintf(out, size, "%s-new-%016" PRIx64, name, unique);
    if (length < 0 || (size_t)length >= size) return errno = ENAMETOOLONG, false;
    int fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* Copies the whole WAL into the file, which can then stand without it. */
static hd_status fold_wal(file *f) {
    int left = 0, copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(f->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &left, &copied);
    return rc == SQLITE_OK && left != copied ? HD_BUSY : file_status(rc);
}

/* Two programs may create the same file at the same moment. While a file is made in place, another
 * program can meet each of its unfinished states: empty, in the wrong journal mode, with a WAL that goes
 * away, locked. So a store is made complete under a name of its own and then gets the right one, unless
 * another program has been faster. Where that does not work (a VFS of the program's, a file system
 * without links, no permission) the file is made in place by open_once, which also says what is wrong.
 * HD_FULL, HD_IO: it would not work in place either, and nothing is left behind. */
static hd_status create_beside(const char *name, const file_options *o, const hd_env *env,
                               hd_error *error) {
    char unfinished[PATH_MAX];
    struct stat st;
    if (!*name || o->vfs || o->must_exist || o->read_only || lstat(name, &st) == 0) return HD_OK;
    if (!make_unfinished(name, env, unfinished, sizeof unfinished)) {
        if (errno != ENOSPC && errno != EDQUOT) return HD_OK;
        env_error(error, HD_FULL, "%s: the disk is full: make room", name);
        return HD_FULL;
    }
    file f;
    hd_status status = make_store(&f, unfinished, o, env, NULL);
    log_show_name(name, f.shown); /* messages name the file to be */
    assert(status || f.format == FILE_FORMAT);
    if (!status) status = fold_wal(&f);
    bool hopeless = status == HD_FULL || status == HD_IO;
    if (hopeless) status = refuse(&f, status, error);
    file_close(&f); /* before another program can open it by its other name, with another WAL */
    if (!status) (void)link(unfinished, name);
    remove_unfinished(unfinished);
    return hopeless ? status : HD_OK;
}

hd_status file_open(file *f, const char *name, const file_options *o, const hd_env *env,
                    hd_error *error) {
    *f = (file){ 0 };
    hd_status status = create_beside(name, o, env, error);
    for (int i = 0; i < OPENINGS_MAX && !status; i++) {
        assert(!f->db && !f->name);
        status = open_once(f, name, o, env, error);
        /* From now on our lock says that it is in use. */
        if (status || !file_has_moved(f)) return status;
        file_close(f);
    }
    if (status) return status;
    env_error(error, HD_BUSY, "%s is being replaced: try again", name);
    return HD_BUSY;
}

hd_status file_open_again(file *f, const char *name, const file_options *o, const hd_env *env,
                          hd_error *error) {
    hd_status status = open_connection(f, name, o, env);
    if (!status) {
        note_wal(f, o);
        return HD_OK;
    }
    status = refuse(f, status, error);
    file_close(f);
    return status;
}

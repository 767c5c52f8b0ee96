/* db_export.c -- every document as a line of JSON.
 *
 * Head rows are the documents where the log has been folded into them; else a checkpoint comes first.
 * Then, in one read transaction, the names in order and each value by its row: the file at one moment,
 * with room for the names only, values copied as the text they are. A row that is damaged is named, and
 * the others are printed: without a backup they are what is left. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/tables.h"
#include "store/log/head.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct exporting {
    store s;
    tables t;
    FILE *to;
    uint64_t documents, total; /* so far; all there are, 0: not known */
    uint64_t damaged;          /* that cannot be read */
} exporting;

/* Columns of the second query; the first has DOC behind ID. */
enum {
    SPACE,
    SCOPE,
    INSTANCE,
    ID,
    KIND,
    META,
    VALUE,
    SEQ,
    META_SEQ,
    GUARDED,
    LARGE,
    SIZE,
    HASH,
    LARGE_HASH,
    PATCHED,
    DOC = KIND
};

static const char names[] = "select space, scope, instance, id, doc from head"
                            " where (large or value is not null) and (?1 is null or space = ?1)"
                            " order by scope, instance, space, id";
static const char row[] = "select space, scope, instance, id, kind, meta, case when large then"
                          " (select l.value from large l where l.doc = h.doc) else value end,"
                          " seq, meta_seq, guarded, large, size, hash,"
                          " (select l.hash from large l where l.doc = h.doc), patched"
                          " from head h where doc = ?1";

static row_text text_of(sqlite3_stmt *s, int column) {
    row_text t = { column_text(s, column), (size_t)sqlite3_column_bytes(s, column) };
    return t;
}

static doc_name name_of(sqlite3_stmt *s) {
    row_text id = text_of(s, ID), space = text_of(s, SPACE), whose = text_of(s, INSTANCE);
    return (doc_name){ .space = space.bytes,
                       .space_length = (uint32_t)space.length,
                       .id = id.bytes,
                       .id_length = (uint32_t)id.length,
                       .instance = whose.bytes,
                       .instance_length = (uint32_t)whose.length,
                       .scope = scope_of_word(column_text(s, SCOPE)) };
}

/* As the library does before it uses a row. */
static bool is_right(sqlite3_stmt *s) {
    doc_name name = name_of(s);
    stored_head head = { .seq = column_number(s, SEQ),
                         .meta_seq = column_number(s, META_SEQ),
                         .guarded = column_number(s, GUARDED) != 0,
                         .large = column_number(s, LARGE) != 0,
                         .size = column_number(s, SIZE) };
    row_text value = text_of(s, VALUE), meta = text_of(s, META), inside = value;
    if (head.size != value.length) return false;
    if (head.large && log_hash(value.bytes, value.length) != column_number(s, LARGE_HASH))
        return false;
    if (head.large) inside.length = 0;
    uint64_t hash = column_number(s, HASH);
    return hash == head_hash(&name, &head, column_text(s, KIND), inside, meta) ||
           hash == head_texts_hash(inside, meta);
}

/* The kind is also in the metadata; it is printed once. */
static void record_meta(exporting *x, record *r, sqlite3_stmt *s) {
    const char *text = column_text(s, META);
    hd_value meta = *text ? hd_json_parse(x->s.pool, text, strlen(text), NULL) : (hd_value){ 0 };
    meta = hd_value_exists(meta) ? hd_object_remove(x->s.pool, meta, "kind") : meta;
    if (hd_value_count(meta)) record_value(r, "meta", meta);
    hd_pool_clear(x->s.pool);
}

/* `patched`: the value, where it is not all in the row; absent otherwise. */
static void export_row(exporting *x, sqlite3_stmt *s, hd_value patched) {
    record r = record_to(x->to);
    record_open(&r, NULL, '{');
    record_text(&r, "space", column_text(s, SPACE));
    if (strcmp(column_text(s, SCOPE), "space")) {
        record_text(&r, "scope", column_text(s, SCOPE));
        record_text(&r, "instance", column_text(s, INSTANCE));
    }
    record_text(&r, "id", column_text(s, ID));
    if (*column_text(s, KIND)) record_text(&r, "kind", column_text(s, KIND));
    record_meta(x, &r, s);
    if (hd_value_exists(patched)) record_value(&r, "value", patched);
    else record_json(&r, "value", column_text(s, VALUE), (size_t)sqlite3_column_bytes(s, VALUE));
    record_close(&r, '}');
    record_end(&r);
    if (++x->documents % 1024 == 0) progress_bar(x->s.c, "export", x->documents, x->total);
}

/* A large value with patches behind it, as the library reads it. */
static bool load_patched(exporting *x, sqlite3_stmt *s, hd_value *out) {
    uint64_t seq;
    doc_name name = name_of(s);
    return !head_load(x->t.store, hd_runtime_heap(x->s.rt), &name, out, &seq);
}

static void export_document(exporting *x, sqlite3_stmt *name, sqlite3_stmt *s) {
    sqlite3_bind_int64(s, 1, sqlite3_column_int64(name, DOC));
    bool found = sqlite3_step(s) == SQLITE_ROW;
    hd_value patched = { 0 };
    bool whole = found && !column_number(s, PATCHED);
    if (found && (whole ? is_right(s) : load_patched(x, s, &patched))) {
        export_row(x, s, patched);
        value_unref(patched);
    } else {
        x->damaged++;
        cli_warn(x->s.c, "%s/%s cannot be read: %s", column_text(name, SPACE),
                 column_text(name, ID), found ? "its hash is wrong" : sqlite3_errmsg(x->t.db));
    }
    sqlite3_reset(s);
}

static int export_all(exporting *x, sqlite3_stmt *name, sqlite3_stmt *s) {
    int rc = SQLITE_DONE;
    while (!interrupted() && !ferror(x->to) && (rc = sqlite3_step(name)) == SQLITE_ROW)
        export_document(x, name, s);
    progress(x->s.c, "%s", "");
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return tables_fail(&x->t, "reading");
    if (interrupted()) return interrupted_status();
    if (!x->damaged) return CLI_OK;
    return cli_fail(x->s.c, CLI_FILE,
                    "The others have been exported. Some may be restored: heddle db repair",
                    "%s: %" PRIu64 " document%s cannot be read", x->s.file, x->damaged,
                    x->damaged == 1 ? "" : "s");
}

static int export_rows(exporting *x, const char *space) {
    int failed;
    sqlite3_stmt *s = NULL, *name = tables_query(&x->t, names, &failed);
    if (!failed) s = tables_query(&x->t, row, &failed);
    if (!failed && space) sqlite3_bind_text(name, 1, space, -1, SQLITE_STATIC);
    if (!failed && x->s.c->progress && !space)
        x->total = tables_number(&x->t, "select count(*) from document");
    if (!failed) failed = export_all(x, name, s);
    sqlite3_finalize(name);
    sqlite3_finalize(s);
    return failed;
}

static int checkpoint(store *s) {
    hd_error error = { 0 };
    hd_status status = hd_store_checkpoint(s->rt, &error);
    if (!status) return CLI_OK;
    return cli_fail(s->c, exit_of(status), NULL, "%s",
                    *error.message ? error.message : hd_status_text(status));
}

/* The export needs a checkpoint, which writes to the file. */
static int open_for_writing(exporting *x) {
    const char *path = x->s.file;
    cli *c = x->s.c;
    int failed = store_close(&x->s, CLI_OK);
    if (!failed && access(path, W_OK))
        return cli_fail(c, CLI_FILE, "Export a backup: heddle db backup",
                        "%s has commits that are not in the documents yet, and cannot be written",
                        path);
    return failed ? failed : store_open(c, &x->s, path, STORE_WRITE);
}

/* Begins the read transaction at a moment in which head rows hold all commits of some moment. */
static int begin(exporting *x) {
    static const char is_behind[] = "select exists(select 1 from log where"
                                    " row > (select value from meta where key = 'checkpoint'))";
    int failed = tables_open(x->s.c, &x->t, x->s.file);
    if (!failed && tables_number(&x->t, is_behind)) {
        failed = open_for_writing(x);
        if (!failed) failed = checkpoint(&x->s);
    }
    if (failed || !sqlite3_exec(x->t.db, "begin", NULL, NULL, NULL)) return failed;
    return tables_fail(&x->t, "reading");
}

static int run(cli *c) {
    exporting x = { .to = stdout };
    const char *space = option_text(c, "space");
    int failed = store_open(c, &x.s, c->operands[0], STORE_READ);
    if (!failed && space) failed = store_space(&x.s, space);
    if (!failed) failed = begin(&x);
    if (!failed) failed = export_rows(&x, space);
    tables_close(&x.t);
    return store_close(&x.s, failed);
}

const command command_db_export = {
    .name = "db export",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "print every document as a line of JSON",
    .text = "Prints {\"space\", \"id\", \"kind\", \"meta\", \"value\"} for each document, as they "
            "were at one moment; a document of a user or session also has \"scope\" and "
            "\"instance\". \"heddle db import\" reads it back. Sequence numbers, history, "
            "deleted documents and what is known about computations are not part of it: from an "
            "import everything is computed anew (\"heddle db backup\" keeps all of that).",
    .options = (const cli_option[]){ { "space", "NAME", "only this space" }, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle db export shop.db > shop.jsonl", "save" },
                                       { "heddle db export shop.db | heddle db import new.db",
                                         "copy into a fresh file" },
                                       { NULL, NULL } },
    .run = run,
};

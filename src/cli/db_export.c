/* db_export.c -- every document as a line of JSON.
 *
 * A checkpoint first, so that head rows are the documents; then one query in one read transaction:
 * the file at one moment, in constant memory, values copied as the text they are. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/tables.h"
#include <stdio.h>
#include <string.h>

typedef struct exporting {
    store s;
    tables t;
    FILE *to;
    uint64_t documents, total; /* so far; all there are, 0: not known */
} exporting;

/* Columns of the query. */
enum { SPACE, SCOPE, INSTANCE, ID, KIND, META, VALUE };

static const char query[] = "select space, scope, instance, id, kind, meta, value from document"
                            " where ?1 is null or space = ?1 order by scope, instance, space, id";

/* The kind stands in the metadata too; it is told once. */
static void record_meta(exporting *x, record *r, sqlite3_stmt *s) {
    const char *text = column_text(s, META);
    hd_value meta = *text ? hd_json_parse(x->s.pool, text, strlen(text), NULL) : (hd_value){ 0 };
    meta = hd_value_exists(meta) ? hd_object_remove(x->s.pool, meta, "kind") : meta;
    if (hd_value_count(meta)) record_value(r, "meta", meta);
    hd_pool_clear(x->s.pool);
}

static void export_row(exporting *x, sqlite3_stmt *s) {
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
    record_json(&r, "value", column_text(s, VALUE), (size_t)sqlite3_column_bytes(s, VALUE));
    record_close(&r, '}');
    record_end(&r);
    if (++x->documents % 1024 == 0) progress_bar(x->s.c, "export", x->documents, x->total);
}

static int export_rows(exporting *x, const char *space) {
    int failed, rc = SQLITE_DONE;
    if (x->s.c->progress && !space)
        x->total = tables_number(&x->t, "select count(*) from document");
    sqlite3_stmt *s = tables_query(&x->t, query, &failed);
    if (!failed && space) sqlite3_bind_text(s, 1, space, -1, SQLITE_STATIC);
    while (!failed && !interrupted() && !ferror(x->to) && (rc = sqlite3_step(s)) == SQLITE_ROW)
        export_row(x, s);
    progress(x->s.c, "%s", "");
    if (!failed && rc != SQLITE_ROW && rc != SQLITE_DONE) failed = tables_fail(&x->t, "reading");
    sqlite3_finalize(s);
    if (failed) return failed;
    return interrupted() ? interrupted_status() : CLI_OK;
}

static int checkpoint(store *s) {
    hd_error error = { 0 };
    hd_status status = hd_store_checkpoint(s->rt, &error);
    if (!status) return CLI_OK;
    return cli_fail(s->c, exit_of(status), NULL, "%s",
                    *error.message ? error.message : hd_status_text(status));
}

/* Begins the read transaction at a moment in which head rows hold whole values: where another
 * program's checkpoint has just put patches beside a large one, ours is made again. */
static int begin(exporting *x) {
    int failed = tables_open(x->s.c, &x->t, x->s.file);
    for (int attempt = 0; !failed && attempt < 10; attempt++) {
        failed = checkpoint(&x->s);
        if (failed) return failed;
        if (sqlite3_exec(x->t.db, "begin", NULL, NULL, NULL)) return tables_fail(&x->t, "reading");
        if (!tables_number(&x->t, "select exists(select 1 from patch)")) return CLI_OK;
        sqlite3_exec(x->t.db, "rollback", NULL, NULL, NULL);
    }
    if (failed) return failed;
    return cli_fail(x->s.c, CLI_IO, "Run it again, or export a backup of it.",
                    "%s: another program writes too much", x->s.file);
}

static int run(cli *c) {
    exporting x = { .to = stdout };
    int failed = store_open(c, &x.s, c->operands[0], STORE_WRITE);
    if (!failed) failed = begin(&x);
    if (!failed) failed = export_rows(&x, option_text(c, "space"));
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

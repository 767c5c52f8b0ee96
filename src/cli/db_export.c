/* db_export.c -- every document as a line of JSON.
 *
 * A checkpoint first folds the log into the head rows, if there is something to fold. Then, in one read
 * transaction, the names are read and sorted, and each value is copied from its row as text: so the export is the
 * store at one moment, and needs memory for the names only. A damaged row is named in a warning, and the
 * others are printed: without a backup they are what is left. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/shown.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/tables.h"
#include "store/log/head.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many rows the backend is told of before they are read. */
enum { PORTION = 500 };

typedef struct exporting {
    store s;
    tables t;
    FILE *to;
    const char *space; /* only this; NULL: all */
    doc_name *names;   /* each in a block of its own, which begins at its space */
    size_t count, capacity;
    uint64_t documents, damaged; /* printed; that cannot be read */
} exporting;

/* ---- Names --------------------------------------------------------------------------------- */

static const char *put_text(char **at, const char *text, uint32_t length) {
    char *copy = *at;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *at += length + 1;
    return copy;
}

static bool keep_name(exporting *x, const doc_name *n) {
    char *at = malloc((size_t)n->space_length + n->instance_length + n->id_length + 3);
    if (!at) return false;
    doc_name *kept = &x->names[x->count++];
    *kept = *n;
    kept->space = put_text(&at, n->space, n->space_length);
    kept->instance = put_text(&at, n->instance, n->instance_length);
    kept->id = put_text(&at, n->id, n->id_length);
    return true;
}

static hd_status take_name(void *ctx, const head_item *item, bool *stop) {
    exporting *x = ctx;
    (void)stop;
    const doc_name *n = &item->name;
    if (x->space &&
        (strlen(x->space) != n->space_length || memcmp(x->space, n->space, n->space_length)))
        return HD_OK;
    if (x->count == x->capacity) {
        size_t capacity = x->capacity ? 2 * x->capacity : 1024;
        doc_name *larger = realloc(x->names, capacity * sizeof *larger);
        if (!larger) return HD_NOMEM;
        x->names = larger;
        x->capacity = capacity;
    }
    return keep_name(x, n) ? HD_OK : HD_NOMEM;
}

/* By identity first: an import opens a runtime for each. */
static int compare_names(const void *a, const void *b) {
    const doc_name *x = a, *y = b;
    int by = strcmp(scope_word(x->scope), scope_word(y->scope));
    if (!by) by = strcmp(x->instance, y->instance);
    if (!by) by = strcmp(x->space, y->space);
    return by ? by : strcmp(x->id, y->id);
}

/* ---- One document -------------------------------------------------------------------------- */

/* The kind is also in the metadata; it is printed once. */
static void record_meta(exporting *x, record *r, row_text text) {
    hd_value meta =
        text.length ? hd_json_parse(x->s.pool, text.bytes, text.length, NULL) : (hd_value){ 0 };
    meta = hd_value_exists(meta) ? hd_object_remove(x->s.pool, meta, "kind") : meta;
    if (hd_value_count(meta)) record_value(r, "meta", meta);
    hd_pool_clear(x->s.pool);
}

/* `value`: where it is not a text in a row; absent otherwise. */
static void export_row(exporting *x, const doc_name *n, const head_row *row, row_text text,
                       hd_value value) {
    record r = record_to(x->to);
    record_open(&r, NULL, '{');
    record_text(&r, "space", n->space);
    if (n->scope != HD_SCOPE_SPACE) {
        record_text(&r, "scope", scope_word(n->scope));
        record_text(&r, "instance", n->instance);
    }
    record_text(&r, "id", n->id);
    if (*row->kind) record_text(&r, "kind", row->kind);
    record_meta(x, &r, row->meta);
    if (hd_value_exists(value)) record_value(&r, "value", value);
    else record_json(&r, "value", text.bytes, text.length);
    record_close(&r, '}');
    record_end(&r);
    if (++x->documents % 1024 == 0) progress_bar(x->s.c, "export", x->documents, x->count);
}

/* A large value, with its patches if there are any. */
static hd_status export_large(exporting *x, const doc_name *n, const stored_head *head,
                              const head_row *row) {
    hd_value value;
    hd_status status = large_load(x->t.store, hd_runtime_heap(x->s.rt), n, head, &value);
    if (status) return status;
    export_row(x, n, row, (row_text){ 0 }, value);
    value_unref(value);
    return HD_OK;
}

static hd_status export_head(exporting *x, const doc_name *n) {
    log_store *s = x->t.store;
    stored_head head;
    head_row row;
    hd_status status = head_read(s, n, &head, &row);
    if (!status && head.exists && head.large) status = export_large(x, n, &head, &row);
    else if (!status && head.exists && head.has_value)
        export_row(x, n, &row, row.value, (hd_value){ 0 });
    s->ops->end_head(s);
    return status;
}

static hd_status export_document(exporting *x, const doc_name *n) {
    hd_status status = export_head(x, n);
    if (status != HD_CORRUPT) return status;
    x->damaged++;
    cli_warn(x->s.c, "%s/%s cannot be read: %s", n->space, n->id,
             log_store_words(x->t.store, HD_CORRUPT));
    return HD_OK;
}

/* ---- All of them --------------------------------------------------------------------------- */

static hd_status expect(exporting *x, size_t from) {
    const log_backend *ops = x->t.store->ops;
    size_t left = x->count - from;
    if (!ops->expect_heads) return HD_OK;
    hd_status status = ops->expect_heads(x->t.store, NULL, 0);
    return status ? status
                  : ops->expect_heads(x->t.store, x->names + from,
                                      (uint32_t)(left < PORTION ? left : PORTION));
}

static int export_all(exporting *x) {
    hd_status status = x->t.store->ops->each_head(x->t.store, take_name, x);
    if (!status && x->count) qsort(x->names, x->count, sizeof *x->names, compare_names);
    for (size_t i = 0; i < x->count && !status && !interrupted() && !ferror(x->to); i++) {
        if (i % PORTION == 0) status = expect(x, i);
        if (!status) status = export_document(x, &x->names[i]);
    }
    progress(x->s.c, "%s", "");
    if (status) return tables_fail(&x->t, status, "reading");
    if (interrupted()) return interrupted_status();
    if (!x->damaged) return CLI_OK;
    return cli_fail(x->s.c, CLI_FILE,
                    is_address(x->s.c->operands[0])
                        ? "The others have been exported. Restore a backup of the database."
                        : "The others have been exported. Some may be restored: heddle db repair",
                    "%s: %" PRIu64 " document%s cannot be read", x->s.file, x->damaged,
                    x->damaged == 1 ? "" : "s");
}

static int checkpoint(store *s) {
    hd_error error = { 0 };
    hd_status status = hd_store_checkpoint(s->rt, &error);
    if (!status) return CLI_OK;
    return cli_fail(s->c, exit_of(status), NULL, "%s",
                    *error.message ? error.message : hd_status_text(status));
}

/* The export needs a checkpoint, which writes to the store. */
static int open_for_writing(exporting *x) {
    cli *c = x->s.c;
    const char *path = c->operands[0];
    int failed = store_close(&x->s, CLI_OK);
    if (!failed && !is_address(path) && access(path, W_OK))
        return cli_fail(c, CLI_FILE, "Export a backup: heddle db backup",
                        "%s has commits that are not in the documents yet, and cannot be written",
                        path);
    if (!failed) failed = store_open(c, &x->s, path, STORE_WRITE);
    if (failed && is_address(path))
        cli_warn(c,
                 "its log has commits that are not in the documents yet: export it as a user who "
                 "may write, or when all programs have closed it");
    return failed;
}

static int is_behind(exporting *x, bool *out) {
    log_store *s = x->t.store;
    uint64_t checkpoint_row = 0, first = 0, last = 0;
    hd_status status = s->ops->get_number(s, LOG_CHECKPOINT, &checkpoint_row);
    if (!status) status = s->ops->row_ends(s, &first, &last);
    *out = last > checkpoint_row;
    return status ? tables_fail(&x->t, status, "reading") : CLI_OK;
}

/* Reads from a moment in which head rows hold all commits of some moment. */
static int begin(exporting *x) {
    const char *name = x->s.c->operands[0];
    bool behind = false;
    int failed = tables_open(x->s.c, &x->t, name);
    if (!failed) failed = is_behind(x, &behind);
    if (failed || !behind) return failed;
    tables_close(&x->t);
    failed = open_for_writing(x);
    if (!failed) failed = checkpoint(&x->s);
    return failed ? failed : tables_open(x->s.c, &x->t, name);
}

static int run(cli *c) {
    exporting x = { .to = stdout, .space = option_text(c, "space") };
    int failed = store_open(c, &x.s, c->operands[0], STORE_READ);
    if (!failed && x.space) failed = store_space(&x.s, x.space);
    if (!failed) failed = begin(&x);
    if (!failed) failed = export_all(&x);
    tables_close(&x.t);
    for (size_t i = 0; i < x.count; i++) free((char *)(uintptr_t)x.names[i].space);
    free(x.names);
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

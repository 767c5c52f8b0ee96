/* check_rows.c -- rows that can be read, and promise no future. */
#include "store/sqlite/check_rows.h"

#include <stdio.h>

HD_PRINTF(2, 3)
static void report(const row_check *k, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    k->finding(line, k->ctx);
}

/* ---- One row -------------------------------------------------------------------------------- */

/* A text that is no JSON is absent, and is found to be malformed as that. */
static hd_status column_json(const row_check *k, sqlite3_stmt *s, int column, hd_value *out) {
    row_text text;
    hd_status status = sqlite_bytes(s, column, &text);
    *out = value_absent();
    if (!status) status = log_json_of(k->heap, text, out);
    return status == HD_CORRUPT ? HD_OK : status;
}

static hd_status take_seq(void *ctx, sqlite3_stmt *s, bool *stop) {
    *(int64_t *)ctx = sqlite3_column_int64(s, 0);
    *stop = true;
    return HD_OK;
}

static hd_status space_seq_of(row_check *k, const char *space, size_t length, int64_t *out) {
    sqlite3_stmt *s = file_sql_get(k->file, SQL_SPACE_GET);
    *out = 0;
    if (s) sqlite_bind(s, 1, text_of_bytes(space, length));
    return sqlite_each(k->file, s, take_seq, out);
}

static hd_status check_seqs(row_check *k, const char *what, const char *name, hd_value seqs) {
    if (hd_value_kind(seqs) != HD_KIND_OBJECT) {
        report(k, "%s %s: its seqs are no numbers by space", what, name);
        return HD_OK;
    }
    hd_status status = HD_OK;
    for (hd_iter it = hd_iter_of(seqs); !status && hd_iter_next(&it);) {
        int64_t now = 0, seq = hd_value_as_int(it.value, -1);
        status = space_seq_of(k, it.key, it.key_length, &now);
        if (!status && (seq < 0 || seq > now))
            report(k, "%s %s: seq %lld of space %s, the checkpoint is %lld", what, name,
                   (long long)seq, it.key, (long long)now);
    }
    return status;
}

/* name, instance, hashes, print, reads, seqs */
static hd_status check_node(void *ctx, sqlite3_stmt *s, bool *stop) {
    row_check *k = ctx;
    (void)stop;
    const char *name = sqlite_word(s, 0), *instance = sqlite_word(s, 1);
    hd_value seqs;
    if (!basis_piece_length(name, strlen(name))) report(k, "node %s: it is of no piece", name);
    if (!basis_is_instance(instance, strlen(instance)))
        report(k, "node %s: its instance is '%s'", name, instance);
    if (strlen(sqlite_word(s, 2)) % HASH_TEXT) report(k, "node %s: its hashes are malformed", name);
    if (!*sqlite_word(s, 3)) report(k, "node %s: there is no fingerprint", name);
    if (!basis_reads_are_well_formed(sqlite_word(s, 4)))
        report(k, "node %s: its reads are malformed", name);
    hd_status status = column_json(k, s, 5, &seqs);
    if (!status) status = check_seqs(k, "node", name, seqs);
    value_unref(seqs);
    return status;
}

hd_status check_rows(row_check *k) {
    if (k->file->format < NODE_FORMAT) return HD_OK;
    return sqlite_each_of(k->file, "select name, instance, hashes, print, reads, seqs from node",
                          check_node, k);
}

/* check_rows.c -- rows that can be read, and promise no future. */
#include "store/sqlite/check_rows.h"

#include "store/log/head.h"
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

static const char *text_at(sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

static hd_status each(row_check *k, const char *sql, hd_status (*fn)(row_check *, sqlite3_stmt *)) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(k->file->db, sql, -1, &s, NULL);
    hd_status status = file_status(rc);
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) status = fn(k, s);
    if (!status) status = file_status(rc);
    sqlite3_finalize(s);
    return status;
}

/* ---- One row -------------------------------------------------------------------------------- */

static hd_status column_json(const row_check *k, sqlite3_stmt *s, int column, hd_value *out) {
    const char *text = text_at(s, column);
    *out = log_json_read(k->heap, text, (size_t)sqlite3_column_bytes(s, column));
    if (!value_is_failed(*out)) return HD_OK;
    hd_status status = hd_value_status(*out);
    *out = value_absent();
    return status == HD_NOMEM ? HD_NOMEM : HD_OK;
}

static hd_status space_seq_of(row_check *k, const char *space, size_t length, int64_t *out) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(k->file->db, "select checkpoint from space where name = ?1", -1, &s,
                                NULL);
    if (!rc) {
        sqlite3_bind_text64(s, 1, space, length, SQLITE_STATIC, SQLITE_UTF8);
        rc = sqlite3_step(s);
    }
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return file_status(rc);
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

/* name, instance, seqs, body, print, mark, hashes */
static hd_status check_node(row_check *k, sqlite3_stmt *s) {
    const char *name = text_at(s, 0), *instance = text_at(s, 1);
    hd_value body, seqs = value_absent();
    if (!basis_piece_length(name, strlen(name))) report(k, "node %s: it is of no piece", name);
    if (!basis_is_instance(instance, strlen(instance)))
        report(k, "node %s: its instance is '%s'", name, instance);
    if (!*text_at(s, 4)) report(k, "node %s: there is no fingerprint", name);
    if (!*text_at(s, 5)) report(k, "node %s: there is no mark", name);
    if (strlen(text_at(s, 6)) % HASH_TEXT) report(k, "node %s: its hashes are malformed", name);
    hd_status status = column_json(k, s, 3, &body);
    if (!status) status = column_json(k, s, 2, &seqs);
    if (!status) status = check_seqs(k, "node", name, seqs);
    if (!status && !basis_body_is_well_formed(body))
        report(k, "node %s: its body is malformed", name);
    value_unref(body);
    value_unref(seqs);
    return status;
}

hd_status check_rows(row_check *k) {
    if (k->file->format < NODE_FORMAT) return HD_OK;
    return each(k, "select name, instance, seqs, body, print, mark, hashes from node", check_node);
}

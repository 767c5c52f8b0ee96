/* sqlite_check_rows.c -- rows that can be read, belong to their piece, promise no future, and stand in
 * the index for every document they have read, and for no other. */
#include "store/sqlite_check_rows.h"

#include "store/sqlite_head.h"
#include <stdio.h>

HD_PRINTF(2, 3)
static void report(const row_check *k, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    k->finding(k->ctx, line);
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

static hd_status in_index(row_check *k, const doc_name *name, int64_t node, bool *out) {
    static const char sql[] = "select 1 from basis where space = ?1 and id = ?2 and scope = ?3"
                              " and instance = ?4 and node = ?5";
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(k->file->db, sql, -1, &s, NULL);
    if (!rc) {
        bind_name(s, name);
        sqlite3_bind_int64(s, 5, node);
        rc = sqlite3_step(s);
    }
    *out = rc == SQLITE_ROW;
    sqlite3_finalize(s);
    return file_status(rc);
}

static hd_status check_reads(row_check *k, sqlite3_stmt *s, hd_value body) {
    read_set reads;
    read_set_init(&reads, k->env);
    hd_status status = read_set_add(&reads, body, text_at(s, 1));
    for (uint32_t i = 0; i < reads.docs.count && !status; i++) {
        const doc_name *n = &reads.docs.items[i];
        bool there = false;
        status = in_index(k, n, sqlite3_column_int64(s, 4), &there);
        if (!status && !there)
            report(k, "node %s: its read of %.*s/%.*s is not in the index", text_at(s, 0),
                   (int)n->space_length, n->space, (int)n->id_length, n->id);
    }
    k->entries += reads.docs.count;
    read_set_fini(&reads);
    return status;
}

static bool reads_are_well_formed(hd_value body) {
    hd_value reads = basis_reads_of(body);
    if (hd_value_kind(reads) != HD_KIND_ARRAY) return false;
    basis_read read;
    for (size_t i = 0; i < hd_value_count(reads); i++)
        if (!basis_read_at(reads, i, &read)) return false;
    return true;
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
        if (!it.key_length && hd_value_kind(it.value) == HD_KIND_OBJECT) continue; /* PIECE_SEEN */
        int64_t now = 0, seq = hd_value_as_int(it.value, -1);
        status = space_seq_of(k, it.key, it.key_length, &now);
        if (!status && (seq < 0 || seq > now))
            report(k, "%s %s: seq %lld of space %s, the checkpoint is %lld", what, name,
                   (long long)seq, it.key, (long long)now);
    }
    return status;
}

/* name, instance, seqs, body, node, fingerprint, the piece's name */
static hd_status check_node(row_check *k, sqlite3_stmt *s) {
    const char *name = text_at(s, 0), *piece = text_at(s, 6);
    size_t length = basis_piece_length(name, strlen(name));
    hd_value body, seqs = value_absent();
    if (length != strlen(piece) || memcmp(name, piece, length) != 0)
        report(k, "node %s: it is not of the piece '%s'", name, piece);
    int64_t number = sqlite3_column_int64(s, 4);
    if (number < 1 || number > NODE_NUMBER_MAX)
        report(k, "node %s: its number is %lld", name, (long long)number);
    if (!*text_at(s, 5)) report(k, "node %s: there is no fingerprint", name);
    hd_status status = column_json(k, s, 3, &body);
    if (!status) status = column_json(k, s, 2, &seqs);
    if (!status) status = check_seqs(k, "node", name, seqs);
    if (!status && !reads_are_well_formed(body)) report(k, "node %s: its body is malformed", name);
    if (!status) status = check_reads(k, s, body);
    value_unref(body);
    value_unref(seqs);
    return status;
}

static hd_status check_piece(row_check *k, sqlite3_stmt *s) {
    hd_value since, valid = value_absent();
    bool said = sqlite3_column_type(s, 2) != SQLITE_NULL;
    hd_status status = column_json(k, s, 1, &since);
    if (!status && said) status = column_json(k, s, 2, &valid);
    if (!status) status = check_seqs(k, "piece", text_at(s, 0), since);
    if (!status && said) status = check_seqs(k, "piece", text_at(s, 0), valid);
    value_unref(since);
    value_unref(valid);
    return status;
}

static hd_status check_stray(row_check *k, sqlite3_stmt *s) {
    report(k, "basis: %s/%s is read by node %lld, which is not there", text_at(s, 0), text_at(s, 1),
           (long long)sqlite3_column_int64(s, 2));
    k->entries++; /* told already */
    return HD_OK;
}

static hd_status check_count(row_check *k, sqlite3_stmt *s) {
    uint64_t count = (uint64_t)sqlite3_column_int64(s, 0);
    if (count > k->entries)
        report(k, "basis: %llu entries that no row asks for",
               (unsigned long long)(count - k->entries));
    return HD_OK;
}

hd_status check_rows(row_check *k) {
    if (k->file->format < 2) return HD_OK;
    hd_status status = each(k, "select name, since, valid from piece", check_piece);
    if (!status)
        status = each(k,
                      "select n.name, n.instance, n.seqs, n.body, n.node, n.fingerprint,"
                      " coalesce(p.name, '') from node n left join piece p using(piece)",
                      check_node);
    if (!status)
        status =
            each(k, "select space, id, node from basis where node not in (select node from node)",
                 check_stray);
    return status ? status : each(k, "select count(*) from basis", check_count);
}

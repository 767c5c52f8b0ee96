/* repair.c -- what is damaged, made good from what is not.
 *
 *     indexes   from their tables (REINDEX)
 *     log       rows up to the checkpoint are history: damaged ones go, with those before them. A
 *               damaged row after it cannot be had again, nor what came later.
 *     heads     a document's value, and its metadata, by folding what the log still has of them: all of
 *               it, or from a row on in which it was set anew. Where only one of the two can be had, the
 *               hash of the row tells whether the other is as it was written.
 *     the rest  rows of sessions and readers are of programs that run: malformed ones go.
 *
 * Then all of it is checked, as `heddle db check` does: what is still wrong is told as not restored. If the program
 * allows it (`drop`), rows up to the checkpoint go before that is told.
 *
 * Everything happens in one transaction. Nothing that is not proved to be right is written with a new
 * hash. */
#include "base/env.h"
#include "store/log/check.h"
#include "store/log/fold.h"
#include "store/sqlite/backend.h"
#include "store/sqlite/store.h"
#include <stdio.h>

/* What the log makes of one part of a damaged document. */
typedef struct part {
    hd_value value; /* owned */
    uint64_t seq;
    bool known;     /* the log says everything about it, up to the checkpoint */
    bool guarded;   /* it was created under "absent" */
    bool forgotten; /* it was deleted without a tombstone that is kept */
    bool
        anew; /* the first change after the checkpoint replaces it: what it is now does not matter */
    bool later; /* there was a change after the checkpoint */
} part;

typedef struct repairing {
    sqlite_store store;
    writer w; /* with that store, a heap and env */
    hd_check_fn fn;
    void *ctx;
    bool drop;
    uint64_t lost; /* things that are damaged still */
    uint64_t checkpoint;
    bool whole;   /* the log begins with row 1 */
    tail damaged; /* documents whose rows cannot be read; value and metadata, one after the other */
    VEC(part) parts; /* one for each name in it */
} repairing;

HD_PRINTF(2, 3)
static void say(repairing *r, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (r->fn) r->fn(line, r->ctx);
}

/* Of any length: a value that goes is the only copy of itself. */
static void say_text(repairing *r, const doc_name *n, const char *what, row_text text) {
    size_t room = text.length + n->space_length + n->id_length + 64;
    char *line = r->fn && text.length ? env_new(&r->w.env, room) : NULL;
    if (!line) return;
    int length = snprintf(line, room, "its %s was: ", what);
    assert((size_t)length + text.length < room);
    memcpy(line + length, text.bytes, text.length);
    line[(size_t)length + text.length] = '\0';
    r->fn(line, r->ctx);
    env_free(&r->w.env, line, room);
}

/* Runs a statement, and says how many rows it took away, if any. */
static hd_status remove_rows(repairing *r, const char *sql, const char *what) {
    assert(file_in_transaction(&r->store.file));
    hd_status status = file_exec(&r->store.file, sql);
    int count = status ? 0 : sqlite3_changes(r->store.file.db);
    if (count) say(r, "removed: %d %s", count, what);
    return status;
}

/* ---- Indexes ------------------------------------------------------------------------------------ */

static hd_status note_integrity(void *ctx, sqlite3_stmt *s, bool *stop) {
    repairing *r = ctx;
    (void)stop;
    const char *says = (const char *)sqlite3_column_text(s, 0);
    if (says && strcmp(says, "ok") != 0) r->lost++;
    return HD_OK;
}

/* Rows whose name in the table is another than in the index of names, with the latter. */
static const char renamed_sql[] =
    "create temp table renamed as select n.doc, n.space, n.scope, n.instance, n.id"
    " from (select doc, space, scope, instance, id from head indexed by head_name) as n"
    " join head as h not indexed on h.doc = n.doc"
    " where h.space is not n.space or h.scope is not n.scope"
    " or h.instance is not n.instance or h.id is not n.id";
static const char names_sql[] =
    "select h.space, h.scope, h.instance, h.id, h.doc from temp.renamed join head as h using(doc)";

/* Whether the row's hash, which is of the name too, fits the name that the table has. A large value that is damaged
 * says nothing about the name. */
static hd_status try_name(repairing *r, const doc_name *name, bool *fits) {
    head_row row;
    stored_head was;
    hd_status status = head_read(r->w.store, name, &was, &row);
    *fits = !status && was.exists;
    sqlite_end_head(r->w.store);
    return status == HD_CORRUPT ? HD_OK : status;
}

static hd_status rename_back(void *ctx, sqlite3_stmt *s, bool *stop) {
    repairing *r = ctx;
    (void)stop;
    bool fits;
    char sql[256];
    doc_name name = sqlite_name(s, 0);
    hd_status status = try_name(r, &name, &fits);
    if (status || fits) return status;
    snprintf(sql, sizeof sql,
             "update or ignore head set (space, scope, instance, id) ="
             " (select space, scope, instance, id from temp.renamed where doc = %lld)"
             " where doc = %lld",
             (long long)sqlite3_column_int64(s, 4), (long long)sqlite3_column_int64(s, 4));
    return file_exec(&r->store.file, sql);
}

/* The index of names is a second copy of every name. Where the row is damaged the name may be too, and changes of the
 * document in the log would find no row to stand on: they would look like a document that begins with them. */
static hd_status reindex(repairing *r) {
    bool has_names = !file_exec(&r->store.file, renamed_sql); /* the index may be past reading */
    hd_status status = file_exec(&r->store.file, "reindex");
    if (!status && has_names) status = sqlite_each_of(&r->store.file, names_sql, rename_back, r);
    if (has_names) (void)file_exec(&r->store.file, "drop table temp.renamed");
    return status;
}

static hd_status repair_indexes(repairing *r) {
    hd_status status = sqlite_each_of(&r->store.file, "pragma integrity_check", note_integrity, r);
    if (status || !r->lost) return status;
    status = reindex(r);
    r->lost = 0;
    if (!status)
        status = sqlite_each_of(&r->store.file, "pragma integrity_check", note_integrity, r);
    if (!status && !r->lost) say(r, "restored: the indexes, from their tables");
    if (!status && r->lost)
        say(r,
            "not restored: pages of the file that SQLite cannot make sense of; `heddle db vacuum`"
            " writes all pages anew, if every row can be read");
    return status;
}

/* ---- The log ------------------------------------------------------------------------------------ */

typedef struct log_damage {
    uint64_t first, last; /* rows that there are */
    uint64_t history;     /* the last damaged row up to the checkpoint; 0: none */
    uint64_t tail;        /* the first damaged or missing row after it; 0: none */
} log_damage;

static void note_log_row(repairing *r, log_damage *d, uint64_t row, bool bad) {
    uint64_t expected = d->last ? d->last + 1 : row;
    if (!d->first) d->first = row;
    if (!d->last && row > r->checkpoint + 1 && !d->tail) d->tail = r->checkpoint + 1;
    if (row != expected && row <= r->checkpoint) d->history = row - 1;
    if (row != expected && row > r->checkpoint && !d->tail)
        d->tail = expected > r->checkpoint ? expected : r->checkpoint + 1;
    if (bad && row <= r->checkpoint) d->history = row;
    if (bad && row > r->checkpoint && !d->tail) d->tail = row;
    d->last = row;
}

typedef struct log_look {
    repairing *r;
    log_damage *damage;
} log_look;

static hd_status look_at_row(void *ctx, const log_text *text, bool *stop) {
    const log_look *g = ctx;
    hd_heap *heap = g->r->w.heap;
    log_row row;
    (void)stop;
    hd_status status = log_row_read(g->r->w.store, heap, text, &row);
    note_log_row(g->r, g->damage, text->row, status == HD_CORRUPT);
    log_row_fini(heap, &row);
    return status == HD_CORRUPT ? HD_OK : status;
}

static hd_status look_at_log(repairing *r, log_damage *d) {
    log_look g = { r, d };
    hd_status status = sqlite_read_after(r->w.store, 0, look_at_row, &g);
    r->w.store->damage[0] = '\0';
    return status;
}

static hd_status delete_log(repairing *r, const char *which, uint64_t row) {
    char sql[64];
    snprintf(sql, sizeof sql, "delete from log where row %s %llu", which, (unsigned long long)row);
    return file_exec(&r->store.file, sql);
}

/* What was committed there is gone, and what came after it was made on top of it. */
static hd_status cut_tail(repairing *r, const log_damage *d) {
    assert(d->tail > r->checkpoint);
    if (!r->drop) {
        r->lost++;
        say(r, "not restored: log row %llu, nor what rows up to %llu have changed",
            (unsigned long long)d->tail, (unsigned long long)d->last);
        return HD_OK;
    }
    say(r, "removed: log rows %llu to %llu, and what they have changed",
        (unsigned long long)d->tail, (unsigned long long)d->last);
    return delete_log(r, ">=", d->tail);
}

/* The seq before the first one that is left, or where the heads are. */
static const char floors_sql[] =
    "update space set floor = coalesce((select min(cast(q.value as integer)) - 1"
    " from log, json_each(log.body, '$.commits') c, json_each(c.value, '$.p') p,"
    " json_each(c.value, '$.q') q where q.key = p.key and p.value = space.name), checkpoint)";
static const char kept_sql[] =
    "replace into meta(key, value) select 'kept', coalesce(sum(length(cast(body as blob))), 0)"
    " from log where row <= (select value from meta where key = 'checkpoint')";

/* Rows whose hashes are right may still not follow each other: a writer that opens the file finds out. */
static hd_status learn_tail(repairing *r, log_damage *d) {
    hd_status status = d->tail ? HD_OK : writer_learn(&r->w);
    if (status == HD_CORRUPT && r->w.row >= r->checkpoint && r->w.row < d->last) {
        d->tail = r->w.row + 1;
        status = HD_OK;
    }
    return status;
}

static hd_status repair_log(repairing *r) {
    log_damage d = { 0 };
    hd_status status = look_at_log(r, &d);
    assert(d.history <= r->checkpoint && (!d.tail || d.tail > r->checkpoint));
    if (!status) status = learn_tail(r, &d);
    if (!status && d.tail) status = cut_tail(r, &d);
    if (!status && d.history) {
        say(r, "removed: log rows %llu to %llu, which were history only",
            (unsigned long long)d.first, (unsigned long long)d.history);
        status = delete_log(r, "<=", d.history);
    }
    r->whole = d.first == 1 && !d.history;
    if (!status && (d.history || (d.tail && r->drop)))
        status = file_exec(&r->store.file, floors_sql);
    return status ? status : file_exec(&r->store.file, kept_sql);
}

/* ---- Which documents are damaged ---------------------------------------------------------------- */

static hd_status note_damaged(repairing *r, doc_name name) {
    for (int meta = 0; meta < 2; meta++) {
        name.meta = meta;
        hd_status status = tail_add(&r->damaged, &name, 1, 0);
        if (status) return status;
        if (r->parts.count < r->damaged.docs.count &&
            !vec_push(&r->w.env, &r->parts, ((part){ .known = r->whole })))
            return HD_NOMEM;
    }
    assert(r->parts.count == r->damaged.docs.count && r->parts.count % 2 == 0);
    return HD_OK;
}

static hd_status look_at_head(void *ctx, sqlite3_stmt *s, bool *stop) {
    repairing *r = ctx;
    (void)stop;
    doc_name n = sqlite_name(s, 0), beside = n;
    beside.meta = true;
    hd_value value = value_absent(), meta = value_absent();
    uint64_t seq;
    hd_status status = head_load(r->w.store, r->w.heap, &n, &value, &seq);
    if (!status) status = head_load(r->w.store, r->w.heap, &beside, &meta, &seq);
    value_unref(value);
    value_unref(meta);
    if (!status && sqlite3_column_int(s, 4)) status = HD_CORRUPT;
    return status == HD_CORRUPT ? note_damaged(r, n) : status;
}

/* ---- What the log makes of them ----------------------------------------------------------------- */

static hd_status fold_doc(repairing *r, const log_doc *doc, uint64_t row) {
    const tail_doc *found = tail_find(&r->damaged, &doc->name);
    if (!found) return HD_OK;
    assert(found < r->damaged.docs.items + r->parts.count);
    part *p = &r->parts.items[found - r->damaged.docs.items];
    bool anew = log_ops_start_anew(log_doc_op_list(doc));
    if (row > r->checkpoint) {
        p->anew |= anew && !p->later;
        p->later = true;
        return HD_OK;
    }
    p->known |= anew;
    p->seq = doc->seq;
    p->guarded = (p->guarded && !doc->forgotten) || doc->guarded;
    p->forgotten |= doc->forgotten;
    return p->known ? log_fold(r->w.heap, log_doc_op_list(doc), &p->value) : HD_OK;
}

static hd_status fold_log_row(void *ctx, sqlite3_stmt *s, bool *stop) {
    repairing *r = ctx;
    (void)stop;
    log_text text;
    log_row row;
    if (sqlite_log_text(s, &text)) return HD_NOMEM;
    hd_status status = log_row_read(r->w.store, r->w.heap, &text, &row);
    for (size_t i = 0; i < log_row_commits(&row) && !status; i++) {
        hd_value made = log_row_commit(&row, i);
        for (size_t k = 0; k < log_commit_docs(made) && !status; k++) {
            log_doc doc;
            status = log_commit_doc(made, k, &doc) ? fold_doc(r, &doc, row.row) : HD_CORRUPT;
        }
    }
    bool after = row.row > r->checkpoint; /* said already: it stays damaged */
    log_row_fini(r->w.heap, &row);
    return status == HD_CORRUPT && after ? HD_OK : status;
}

/* ---- One document ------------------------------------------------------------------------------- */

/* A row as it is stored, verified or not; texts are borrowed until end_head. */
typedef struct raw_head {
    head_row row;
    stored_head numbers;    /* as they are */
    uint64_t seq, meta_seq; /* made sense of */
} raw_head;

/* A seq that makes no sense becomes the highest that does: what was read before it is stale then. */
static hd_status bound_seqs(repairing *r, const doc_name *name, raw_head *h) {
    uint64_t most, floor;
    row_text space = text_of_bytes(name->space, name->space_length);
    hd_status status = sqlite_get_space(r->w.store, space, &most, &floor);
    if (!log_number_of(h->row.seq, &h->seq) || !h->seq || h->seq > most) h->seq = most;
    (void)log_number_of(h->row.meta_seq, &h->meta_seq);
    if (h->meta_seq > most) h->meta_seq = most;
    return status == HD_CORRUPT ? HD_OK : status;
}

static hd_status read_raw(repairing *r, const doc_name *name, raw_head *out) {
    *out = (raw_head){ 0 };
    hd_status status = sqlite_read_head(r->w.store, name, &out->row);
    if (status == HD_CORRUPT) status = HD_OK; /* there is nothing that can be read of it */
    if (status || !out->row.exists) return status;
    assert(out->row.kind);
    if (out->row.large) out->row.value.length = 0;
    out->numbers = (stored_head){ .guarded = out->row.guarded,
                                  .large = out->row.large,
                                  .size = (uint64_t)out->row.size,
                                  .seq = (uint64_t)out->row.seq,
                                  .meta_seq = (uint64_t)out->row.meta_seq };
    return bound_seqs(r, name, out);
}

/* Whether the row's hash is that of these texts. Its numbers may be what is damaged: then it is not. */
static bool hash_fits(const raw_head *h, const doc_name *name, row_text value, row_text meta) {
    stored_head numbers = h->numbers;
    if (!h->row.large) numbers.size = value.length;
    return head_hash(name, &numbers, h->row.kind, value, meta) == h->row.hash ||
           head_texts_hash(value, meta) == h->row.hash;
}

/* What a part's text would be. */
static hd_status print_part(json_buffer *b, const part *p, row_text *out) {
    b->length = 0;
    hd_status status =
        value_is_absent(p->value) ? HD_OK : json_print_to(b, p->value, HD_JSON_COMPACT);
    *out = (row_text){ b->bytes ? b->bytes : "", b->length };
    return status;
}

/* Takes the text of the row for the part, now that it is known to be right. */
static bool take_text(repairing *r, part *p, row_text text, uint64_t seq) {
    hd_value v = text.length ? log_json_read(r->w.heap, text.bytes, text.length) : value_absent();
    if (value_is_failed(v)) return false;
    assert(!p->known);
    value_unref(p->value);
    p->value = v;
    p->seq = seq;
    p->known = true;
    return true;
}

/* A large value that is whole while its head row is not. */
static bool take_large(repairing *r, const doc_name *name, part *p, const raw_head *raw) {
    stored_head was;
    hd_value v;
    if (head_find(r->w.store, name, &was) || !was.large ||
        large_load(r->w.store, r->w.heap, name, &was, &v))
        return false;
    value_unref(p->value);
    *p = (part){ .value = v, .seq = raw->seq, .known = true, .guarded = p->guarded };
    return true;
}

/* Finds out what is known of both parts. */
static hd_status complete(repairing *r, const doc_name *name, const raw_head *h, part *value,
                          part *meta) {
    json_buffer b;
    row_text text;
    json_buffer_init(&b, &r->w.env);
    hd_status status = HD_OK;
    if (!value->known && value->anew) { /* whatever it is, the log replaces it */
        value->known = true;
        value->seq = h->seq;
    }
    if (!value->known && !h->row.large && hash_fits(h, name, h->row.value, h->row.meta))
        (void)take_text(r, value, h->row.value, h->seq);
    if (!value->known && h->row.large) (void)take_large(r, name, value, h);
    if (!meta->known && value->known) {
        status = h->row.large ? HD_OK : print_part(&b, value, &text);
        if (h->row.large) text = (row_text){ "", 0 };
        if (!status && (hash_fits(h, name, text, h->row.meta) ||
                        hash_fits(h, name, h->row.value, h->row.meta)))
            (void)take_text(r, meta, h->row.meta, h->meta_seq);
    }
    if (!value->known && meta->known && !h->row.large) {
        status = print_part(&b, meta, &text);
        if (!status && hash_fits(h, name, h->row.value, text))
            (void)take_text(r, value, h->row.value, h->seq);
    }
    json_buffer_fini(&b);
    return status;
}

static hd_status lose(repairing *r, const doc_name *n, const raw_head *h, const part *value) {
    assert(!n->meta);
    const char *what = value->known ? "the metadata" : "the value";
    if (!r->drop) {
        r->lost++;
        say(r, "not restored: %.*s/%.*s: the log does not have %s any more", (int)n->space_length,
            n->space, (int)n->id_length, n->id, what);
        return HD_OK;
    }
    say(r, "removed: %.*s/%.*s: the log does not have %s any more%s", (int)n->space_length,
        n->space, (int)n->id_length, n->id, what,
        value->later && !value->known ? "; what was set in it since stays" : "");
    say_text(r, n, "value", h->row.value);
    say_text(r, n, "metadata", h->row.meta);
    document_state none = { .value = value_absent(), .meta = value_absent(), .seq = h->seq };
    return fold_rewrite(&r->w, n, &none);
}

static hd_status restore(repairing *r, const doc_name *n, const raw_head *h, const part *value,
                         const part *meta) {
    assert(value->known && meta->known && !value_is_failed(value->value));
    document_state to = { .value = value->value,
                          .meta = meta->value,
                          .seq = value->seq,
                          .meta_seq = meta->seq,
                          .guarded = (h->row.guarded && !value->forgotten) || value->guarded };
    hd_status status = fold_rewrite(&r->w, n, &to);
    if (!status)
        say(r, "restored: %.*s/%.*s", (int)n->space_length, n->space, (int)n->id_length, n->id);
    return status;
}

static hd_status repair_document(repairing *r, uint32_t at) {
    const doc_name *name = &r->damaged.docs.items[at].name;
    part *value = &r->parts.items[at], *meta = &r->parts.items[at + 1];
    assert(!name->meta && r->damaged.docs.items[at + 1].name.meta);
    raw_head h;
    hd_status status = read_raw(r, name, &h);
    if (!status) status = complete(r, name, &h, value, meta);
    if (!status)
        status = value->known && meta->known ? restore(r, name, &h, value, meta)
                                             : lose(r, name, &h, value);
    sqlite_end_head(r->w.store);
    return status;
}

/* With whether its seqs are above where its space stands. */
static const char heads_sql[] =
    "select space, scope, instance, id, max(seq, meta_seq) >"
    " coalesce((select checkpoint from space where name = head.space), 0) from head";
static const char log_sql[] = "select row, hash, body from log order by row";

static hd_status repair_heads(repairing *r) {
    hd_status status = sqlite_each_of(&r->store.file, heads_sql, look_at_head, r);
    if (status || !r->damaged.docs.count) return status;
    status = sqlite_each_of(&r->store.file, log_sql, fold_log_row, r);
    for (uint32_t i = 0; i < r->damaged.docs.count && !status; i += 2)
        status = repair_document(r, i);
    return status;
}

/* ---- The rest ----------------------------------------------------------------------------------- */

static hd_status remove_malformed(repairing *r) {
    hd_status status = remove_rows(
        r,
        "delete from session where typeof(id) <> 'text' or length(id) <> 32"
        " or id glob '*[^0-9a-f]*' or not json_valid(verdicts) or typeof(settled) <> 'integer'"
        " or typeof(last) <> 'integer' or settled < 0 or last < 0",
        "malformed rows of sessions");
    if (!status)
        status = remove_rows(r,
                             "delete from reader where typeof(session) <> 'text'"
                             " or typeof(position) <> 'integer' or position < 0",
                             "malformed rows of readers");
    return status;
}

static hd_status remove_orphans(repairing *r) {
    hd_status status =
        remove_rows(r, "delete from large where doc not in (select doc from head where large)",
                    "large values without a document");
    if (!status)
        status =
            remove_rows(r, "delete from patch where doc not in (select doc from head where large)",
                        "patches without a document");
    return status;
}

static void note_left(const char *finding, void *ctx) {
    repairing *r = ctx;
    r->lost++;
    say(r, "not restored: %s", finding);
}

static hd_status check_again(repairing *r) {
    hd_status status = log_check_inside(r->w.store, r->w.heap, note_left, r);
    return status == HD_CORRUPT ? HD_OK : status;
}

/* All documents are in order by now, and no program needs the rows up to the checkpoint. */
static hd_status drop_history(repairing *r) {
    char sql[64];
    snprintf(sql, sizeof sql, "delete from log where row <= %llu",
             (unsigned long long)r->checkpoint);
    hd_status status = remove_rows(r, sql, "log rows, which were history only");
    if (!status) status = file_exec(&r->store.file, floors_sql);
    return status ? status : file_exec(&r->store.file, kept_sql);
}

/* There may be something that is not repaired above: log rows that say what cannot be, under a hash that is right. */
static hd_status check_what_is_left(repairing *r) {
    hd_check_fn fn = r->fn;
    if (!r->drop) return check_again(r);
    r->fn = NULL; /* what goes with the history is not told as left */
    hd_status status = check_again(r);
    r->fn = fn;
    if (status || !r->lost) return status;
    r->lost = 0;
    status = drop_history(r);
    return status ? status : check_again(r);
}

static hd_status repair_all(repairing *r) {
    assert(file_in_transaction(&r->store.file) && !r->lost); /* all of it, or nothing */
    hd_status status = repair_indexes(r);
    if (!status) status = file_meta_get(&r->store.file, "checkpoint", &r->checkpoint);
    if (status == HD_NOT_FOUND) {
        r->lost++;
        say(r, "not restored: where the log is folded up to, which everything else depends on");
        return HD_OK;
    }
    if (!status) status = remove_malformed(r);
    if (!status) status = repair_log(r);
    if (!status) status = repair_heads(r);
    if (!status) status = remove_orphans(r);
    return status || r->lost ? status : check_what_is_left(r);
}

static void repairing_fini(repairing *r) {
    for (uint32_t i = 0; i < r->parts.count; i++) value_unref(r->parts.items[i].value);
    vec_fini(&r->w.env, &r->parts);
    tail_fini(&r->damaged);
    writer_forget(&r->w);
    file_close(&r->store.file);
    if (r->w.heap) hd_heap_close(r->w.heap);
}

static hd_status repair_inside(repairing *r, hd_error *error) {
    hd_status status = file_begin_write(&r->store.file);
    if (!status) status = repair_all(r);
    if (!status) status = file_commit(&r->store.file);
    if (status) log_store_failure(&r->store.base, status, "repairing", error);
    file_rollback(&r->store.file);
    assert(!file_in_transaction(&r->store.file));
    if (status || !r->lost) return status;
    env_error(error, HD_CORRUPT, "%s: %llu thing%s could not be restored", r->store.base.shown,
              (unsigned long long)r->lost, r->lost == 1 ? "" : "s");
    return HD_CORRUPT;
}

hd_status sqlite_repair(const char *name, const hd_options *options, bool drop, hd_check_fn fn,
                        void *ctx, hd_error *error) {
    repairing r = {
        .w.env = env_copy(options ? options->env : NULL), .fn = fn, .ctx = ctx, .drop = drop
    };
    file_options o = { .vfs = options ? options->vfs : NULL, .must_exist = true };
    tail_init(&r.damaged, &r.w.env);
    log_store_init(&r.store.base, &sqlite_backend, &r.w.env, name);
    r.w.store = &r.store.base;
    hd_status status = file_open(&r.store.file, name, &o, &r.w.env, error);
    hd_limits widest = { HEAP_DEPTH_MAX, SIZE_MAX }; /* whatever programs have written */
    if (!status) status = hd_heap_open(&r.w.env, &widest, &r.w.heap);
    if (!status) status = repair_inside(&r, error);
    repairing_fini(&r);
    return status;
}

/* lab_log.c -- replaying a log, with an eye on what nodes have read. */
#define _GNU_SOURCE
#include "lab_log.h"

#include "scheduler/persistence/persistence.h"
#include "store/log/rows.h"
#include "store/postgres/backend.h"
#include "store/sqlite/backend.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/object.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_NAME_SIZE = 256 };

/* A document, by its name as it stands in rows: "space/id", "space@user/id", "space/id!". */
typedef struct known {
    char name[LOG_NAME_SIZE];
    hd_value value; /* owned */
} known;

typedef struct seen {
    uint32_t doc; /* index into docs */
    hd_path path; /* referenced */
    bool shape;
    hd_value value; /* when the row was proved; owned */
    uint32_t depth; /* containers on the way to it */
} seen;

typedef struct proof {
    char name[LOG_NAME_SIZE], instance[64];
    bool gone;
    seen *reads;
    size_t count;
    char why[LOG_NAME_SIZE + 32]; /* "": it holds */
} proof;

struct lab_log {
    lab_env *world;
    hd_heap *heap;
    char file[160];
    uint64_t row; /* read up to here */
    bool follows; /* rows are no longer taken */
    known *docs;
    proof *proofs;
    size_t doc_count, proof_count;
};

static void check(hd_status status, const char *what) {
    if (status) lab_fail("%s: %s", what, hd_status_name(status));
}

static void *grown(void *items, size_t count, size_t size) {
    void *more = (count & (count - 1)) ? items : realloc(items, (count ? 2 * count : 1) * size);
    if (!more) lab_fail("no memory for a log");
    return more;
}

/* ---- documents */

static uint32_t doc_at(lab_log *log, const char *name) {
    for (size_t i = 0; i < log->doc_count; i++)
        if (!strcmp(log->docs[i].name, name)) return (uint32_t)i;
    log->docs = grown(log->docs, log->doc_count, sizeof *log->docs);
    known *k = &log->docs[log->doc_count];
    *k = (known){ .value = value_absent() };
    snprintf(k->name, sizeof k->name, "%s", name);
    return (uint32_t)log->doc_count++;
}

static const char *scope_text(hd_scope scope) {
    return scope == HD_SCOPE_USER ? "@user" : scope == HD_SCOPE_SESSION ? "@session" : "";
}

static uint32_t doc_named(lab_log *log, const doc_name *n) {
    char name[LOG_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s%s/%.*s%s", (int)n->space_length, n->space,
             scope_text(n->scope), (int)n->id_length, n->id, n->meta ? "!" : "");
    return doc_at(log, name);
}

static hd_value value_of(const lab_log *log, const seen *s) {
    return value_get_path(log->heap, log->docs[s->doc].value, s->path);
}

/* How many containers lie on the way to it (MATCHING 2.4). */
static uint32_t depth_of(const lab_log *log, const seen *s) {
    for (uint32_t depth = 0;; depth++) {
        hd_path at = path_ancestor(log->heap, s->path, depth);
        hd_value v = value_get_path(log->heap, log->docs[s->doc].value, at);
        bool container = hd_value_kind(v) == HD_KIND_ARRAY || hd_value_kind(v) == HD_KIND_OBJECT;
        if (at == s->path || !container) return depth;
    }
}

static bool is_as_seen(const lab_log *log, const seen *s) {
    hd_value now = value_of(log, s);
    if (value_is_absent(now) && depth_of(log, s) != s->depth) return false;
    return s->shape ? value_same_shape(s->value, now) : value_equal(s->value, now);
}

/* ---- rows */

static void forget_reads(lab_log *log, proof *p) {
    for (size_t i = 0; i < p->count; i++) {
        value_unref(p->reads[i].value);
        path_unref(log->heap, p->reads[i].path);
    }
    free(p->reads);
    p->reads = NULL;
    p->count = 0;
}

static proof *proof_of(const lab_log *log, const char *name, const char *instance) {
    for (size_t i = 0; i < log->proof_count; i++) {
        proof *p = &log->proofs[i];
        if (!strcmp(p->name, name) && !strcmp(p->instance, instance)) return p;
    }
    return NULL;
}

static const char *text_at(hd_value row, size_t i) {
    return hd_value_as_text(hd_value_index(row, i), "");
}

static proof *proof_made(lab_log *log, hd_value row) {
    proof *p = proof_of(log, text_at(row, 0), text_at(row, 1));
    if (p) return p;
    log->proofs = grown(log->proofs, log->proof_count, sizeof *log->proofs);
    p = &log->proofs[log->proof_count++];
    *p = (proof){ 0 };
    snprintf(p->name, sizeof p->name, "%s", text_at(row, 0));
    snprintf(p->instance, sizeof p->instance, "%s", text_at(row, 1));
    return p;
}

static void add_read(lab_log *log, proof *p, const read_cell *read) {
    char name[LOG_NAME_SIZE];
    hd_path path;
    snprintf(name, sizeof name, "%.*s%s/%.*s", (int)read->space_length, read->space,
             scope_text(read->scope), (int)read->id_length, read->id);
    check(path_parse(log->heap, read->path, read->path_length, &path, NULL), name);
    p->reads[p->count++] = (seen){ doc_at(log, name), path, read->shape, value_absent(), 0 };
}

static void take_reads(lab_log *log, proof *p, hd_value row) {
    const char *reads = text_at(row, ROW_READS), *cell;
    size_t length;
    forget_reads(log, p);
    p->reads = calloc(strlen(reads) + 1, sizeof *p->reads);
    if (!p->reads) lab_fail("no memory for a log");
    while (reads_next(&reads, &cell, &length)) {
        read_cell read;
        if (!reads_split(cell, length, &read)) lab_fail("%s: a read is malformed", p->name);
        if (!read.output) add_read(log, p, &read);
    }
}

/* What it reads is by definition what is there now. */
static void take_row(lab_log *log, hd_value row) {
    proof *p = proof_made(log, row);
    take_reads(log, p, row);
    p->gone = false;
    *p->why = 0;
    for (size_t i = 0; i < p->count; i++) {
        hd_value now = value_ref(value_of(log, &p->reads[i]));
        value_unref(p->reads[i].value);
        p->reads[i].value = now;
        p->reads[i].depth = depth_of(log, &p->reads[i]);
    }
}

static void take_rows(lab_log *log, hd_value extra) {
    memo_extra x = memo_extra_of(extra);
    for (size_t i = 0; i < hd_value_count(x.gone); i++) {
        hd_value row = array_get(x.gone, i);
        proof *p = proof_of(log, text_at(row, 0), text_at(row, 1));
        if (p) p->gone = true;
    }
    for (size_t i = 0; i < hd_value_count(x.kept); i++) take_row(log, array_get(x.kept, i));
}

/* ---- commits */

static void note_change(lab_log *log, uint32_t doc) {
    for (size_t i = 0; i < log->proof_count; i++) {
        proof *p = &log->proofs[i];
        for (size_t k = 0; k < p->count && !*p->why; k++)
            if (p->reads[k].doc == doc && !is_as_seen(log, &p->reads[k]))
                snprintf(p->why, sizeof p->why, "%s was changed", log->docs[doc].name);
    }
}

/* All documents of a commit change at once. */
static void take_commit(lab_log *log, hd_value made) {
    log_doc doc;
    for (size_t i = 0; i < log_commit_docs(made); i++) {
        if (!log_commit_doc(made, i, &doc)) lab_fail("a commit is malformed");
        uint32_t at = doc_named(log, &doc.name);
        check(log_fold(log->heap, log_doc_op_list(&doc), &log->docs[at].value), "log");
    }
    for (size_t i = 0; log->follows && i < log_commit_docs(made); i++)
        if (log_commit_doc(made, i, &doc)) note_change(log, doc_named(log, &doc.name));
    if (!log->follows) take_rows(log, object_get_bytes(made, "x", 1));
}

static hd_status take_log_row(void *ctx, const log_text *text, bool *stop) {
    lab_log *log = ctx;
    log_row row;
    (void)stop;
    check(log_row_read(NULL, log->heap, text, &row), "log");
    if (row.row != log->row + 1) lab_fail("the log is not whole");
    log->row = row.row;
    for (size_t i = 0; i < log_row_commits(&row); i++) take_commit(log, log_row_commit(&row, i));
    log_row_fini(log->heap, &row);
    return HD_OK;
}

static void read_on(lab_log *log) {
    const log_backend *backend =
        postgres_is_address(log->file) ? &postgres_backend : &sqlite_backend;
    hd_options options = { .read_only = true, .must_exist = true };
    hd_env env = hd_env_system();
    log_store *store;
    hd_error error;
    if (backend->open(log->file, &options, &env, LOG_ALONE, &store, &error))
        lab_fail("%s: %s", log->file, error.message);
    check(backend->begin_read(store), "log");
    check(backend->read_after(store, log->row, take_log_row, log), "log");
    backend->rollback(store);
    backend->close(store);
}

/* ---- outside */

lab_log *lab_log_open(const char *path) {
    lab_log *log = calloc(1, sizeof *log);
    if (!log) lab_fail("no memory for a log");
    log->world = lab_env_open();
    check(hd_heap_open(lab_env_of(log->world), NULL, &log->heap), "heap");
    snprintf(log->file, sizeof log->file, "%s", path);
    read_on(log);
    for (uint32_t i = 0; i < log->doc_count; i++) note_change(log, i);
    return log;
}

void lab_log_follow(lab_log *log) {
    log->follows = true;
    read_on(log);
}

void lab_log_close(lab_log *log) {
    for (size_t i = 0; i < log->doc_count; i++) value_unref(log->docs[i].value);
    for (size_t i = 0; i < log->proof_count; i++) forget_reads(log, &log->proofs[i]);
    hd_heap_close(log->heap);
    lab_env_close(log->world);
    free(log->docs);
    free(log->proofs);
    free(log);
}

static const proof *find(const lab_log *log, const char *name) {
    const proof *p = proof_of(log, name, "");
    return p && !p->gone ? p : NULL;
}

const char *lab_log_why(const lab_log *log, const char *name) {
    const proof *p = find(log, name);
    if (!p) return "has no row";
    return *p->why ? p->why : NULL;
}

uint32_t lab_log_holding(const lab_log *log) {
    uint32_t count = 0;
    for (size_t i = 0; i < log->proof_count; i++)
        count += !log->proofs[i].gone && !*log->proofs[i].why;
    return count;
}

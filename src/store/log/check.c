/* check.c -- is the store what it says it is?
 *
 * Everything that must hold is looked at, and each thing that does not is reported: what the backend finds
 * wrong with its tables, hashes of log rows, head rows and patches, sequences without gaps, head rows that are
 * the fold of the log where the log is whole, memos, and a tail that can be folded. Nothing is
 * written. */
#include "store/log/check.h"

#include "base/env.h"
#include "store/log/check_memos.h"
#include "store/log/state.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/object.h"
#include <stdio.h>

/* Rows of the log of this format have memos as they are read now. */
enum { MEMO_FORMAT = 4 };

/* A document as the log makes it. */
typedef struct replayed {
    hd_value value; /* owned */
    uint64_t seq;   /* of the last change */
    bool guarded;
} replayed;

typedef struct checked_space {
    char *name; /* owned */
    size_t size;
    uint64_t checkpoint, floor; /* as its row says */
    uint64_t seq;               /* the last one met in the log; 0: none yet */
    bool row;                   /* has a row in `space` */
} checked_space;

typedef struct checking {
    hd_env env;
    log_store *store;
    hd_heap *heap;
    hd_check_fn fn;
    void *ctx;
    uint64_t findings;
    uint64_t checkpoint, first_row, last_row;
    bool whole; /* no log row was ever pruned: heads can be replayed */
    VEC(checked_space) spaces;
    tail docs;              /* every document met in rows up to the checkpoint */
    VEC(replayed) replayed; /* one for each of them */
} checking;

HD_PRINTF(2, 3)
static void finding(checking *k, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    k->findings++;
    if (k->fn) k->fn(line, k->ctx);
}

/* ---- Spaces ------------------------------------------------------------------------------------- */

static checked_space *space_named(checking *k, const char *name, size_t length) {
    assert(name); /* log_commit_space and the backends have seen to it */
    for (uint32_t i = 0; i < k->spaces.count; i++) {
        checked_space *p = &k->spaces.items[i];
        if (p->size == length + 1 && memcmp(p->name, name, length) == 0) return p;
    }
    checked_space p = { .size = length + 1 };
    p.name = env_new(&k->env, p.size);
    if (!p.name) return NULL;
    memcpy(p.name, name, length);
    p.name[length] = '\0';
    if (vec_push(&k->env, &k->spaces, p)) return &vec_last(&k->spaces);
    env_free(&k->env, p.name, p.size);
    return NULL;
}

static hd_status check_space_row(void *ctx, const space_row *row, bool *stop) {
    checking *k = ctx;
    (void)stop;
    checked_space *p = space_named(k, row->name.bytes, row->name.length);
    if (!p) return HD_NOMEM;
    p->row = true;
    p->checkpoint = (uint64_t)row->seq;
    p->floor = (uint64_t)row->floor;
    if (p->floor > p->checkpoint)
        finding(k, "space %s: floor %llu above checkpoint %llu", p->name,
                (unsigned long long)p->floor, (unsigned long long)p->checkpoint);
    return HD_OK;
}

/* ---- The log ------------------------------------------------------------------------------------ */

/* Where the space's seqs begin in this log; UINT64_MAX: cannot be told. */
static uint64_t seq_before_log(const checking *k, const checked_space *p) {
    return k->whole ? 0 : p->row ? p->floor : 0;
}

static hd_status check_seqs(checking *k, const log_row *row, hd_value made) {
    for (size_t i = 0; i < log_commit_spaces(made); i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        if (!log_commit_space(made, i, &name, &length, &seq)) {
            finding(k, "log row %llu: a space without a seq", (unsigned long long)row->row);
            continue;
        }
        checked_space *p = space_named(k, name, length);
        if (!p) return HD_NOMEM;
        uint64_t last = p->seq ? p->seq : seq_before_log(k, p);
        if (seq != last + 1)
            finding(k, "log row %llu: space %s goes from seq %llu to %llu",
                    (unsigned long long)row->row, p->name, (unsigned long long)last,
                    (unsigned long long)seq);
        p->seq = seq;
    }
    return HD_OK;
}

static hd_status replay_doc(checking *k, const log_doc *doc) {
    hd_status status = tail_add(&k->docs, &doc->name, 1, doc->seq);
    if (status) return status;
    while (k->replayed.count < k->docs.docs.count)
        if (!vec_push(&k->env, &k->replayed, (replayed){ 0 })) return HD_NOMEM;
    uint32_t index = (uint32_t)(tail_find(&k->docs, &doc->name) - k->docs.docs.items);
    assert(index < k->replayed.count && k->replayed.count == k->docs.docs.count);
    replayed *r = &k->replayed.items[index];
    r->seq = doc->seq;
    r->guarded = (r->guarded && !doc->forgotten) || doc->guarded;
    return log_fold(k->heap, log_doc_op_list(doc), &r->value);
}

static hd_status check_docs(checking *k, const log_row *row, hd_value made) {
    for (size_t i = 0; i < log_commit_docs(made); i++) {
        log_doc doc;
        if (!log_commit_doc(made, i, &doc)) {
            finding(k, "log row %llu: a document without name or operations",
                    (unsigned long long)row->row);
            continue;
        }
        if (doc.basis >= doc.seq)
            finding(k, "log row %llu: %s/%s has basis %llu at seq %llu",
                    (unsigned long long)row->row, doc.name.space, doc.name.id,
                    (unsigned long long)doc.basis, (unsigned long long)doc.seq);
        hd_status status = k->whole || row->row > k->checkpoint ? replay_doc(k, &doc) : HD_OK;
        if (status == HD_CORRUPT)
            finding(k, "log row %llu: operations of %s/%s cannot be read",
                    (unsigned long long)row->row, doc.name.space, doc.name.id);
        else if (status) return status;
    }
    return HD_OK;
}

static hd_status check_commits(checking *k, const log_row *row) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++) {
        hd_value made = log_row_commit(row, i);
        uint8_t session[16];
        if (log_commit_session(row, made, session) || !log_commit_local_seq(made))
            finding(k, "log row %llu: a commit without session or number",
                    (unsigned long long)row->row);
        bool known = log_row_format(row) >= MEMO_FORMAT;
        const char *fault = known ? memo_fault(object_get_bytes(made, "x", 1)) : NULL;
        if (fault)
            finding(k, "log row %llu: what it says of nodes: %s", (unsigned long long)row->row,
                    fault);
        status = check_seqs(k, row, made);
        if (!status) status = check_docs(k, row, made);
    }
    return status;
}

static hd_status compare_heads(checking *k);

static hd_status check_log_row(void *ctx, const log_text *text, bool *stop) {
    checking *k = ctx;
    (void)stop;
    log_row row;
    hd_status status = log_row_read(k->store, k->heap, text, &row);
    if (k->last_row && row.row != k->last_row + 1)
        finding(k, "log: row %llu follows row %llu", (unsigned long long)row.row,
                (unsigned long long)k->last_row);
    /* Between the last folded row and the first that is not: the moment that head rows speak of. */
    if (!status && row.row > k->checkpoint && k->last_row <= k->checkpoint)
        status = compare_heads(k);
    k->last_row = row.row;
    if (status == HD_CORRUPT) {
        finding(k, "%s", k->store->damage);
        status = HD_OK;
    } else if (!status) status = check_commits(k, &row);
    log_row_fini(k->heap, &row);
    return status;
}

static hd_status take_first_row(void *ctx, const log_text *text, bool *stop) {
    checking *k = ctx;
    k->first_row = text->row;
    *stop = true;
    return HD_OK;
}

static hd_status find_first_row(checking *k) {
    assert(!k->first_row && !k->last_row);
    hd_status status = k->store->ops->read_after(k->store, 0, take_first_row, k);
    k->whole = k->first_row == 1 || (k->first_row == 0 && k->checkpoint == 0);
    if (!status && k->first_row > k->checkpoint + 1)
        finding(k, "log: begins at row %llu, the checkpoint is %llu",
                (unsigned long long)k->first_row, (unsigned long long)k->checkpoint);
    return status;
}

static hd_status check_log(checking *k) {
    hd_status status = find_first_row(k);
    if (!status) status = k->store->ops->read_after(k->store, 0, check_log_row, k);
    if (!status && !k->last_row && k->checkpoint && k->store->optimistic)
        finding(k, "log: it is empty, the checkpoint is %llu: nothing can be appended",
                (unsigned long long)k->checkpoint);
    if (status || !k->last_row) return status;
    if (k->last_row < k->checkpoint)
        finding(k, "log: ends at row %llu, the checkpoint is %llu", (unsigned long long)k->last_row,
                (unsigned long long)k->checkpoint);
    return k->last_row <= k->checkpoint ? compare_heads(k) : HD_OK;
}

/* ---- Head rows ------------------------------------------------------------------------------------ */

static void check_head_kind(checking *k, const doc_name *n, const char *kind, hd_value meta) {
    const char *says = hd_value_as_text(hd_value_at(meta, "kind"), "");
    if (strcmp(kind, says) != 0)
        finding(k, "head %s/%s: kind '%s', its metadata says '%s'", n->space, n->id, kind, says);
}

static hd_status check_head_seqs(checking *k, const doc_name *n) {
    checked_space *p = space_named(k, n->space, n->space_length);
    head_row row;
    hd_status status = k->store->ops->find_head(k->store, n, &row);
    if (status) return status;
    uint64_t newest = (uint64_t)(row.seq > row.meta_seq ? row.seq : row.meta_seq);
    if (!p || !p->row) finding(k, "head %s/%s: its space has no row", n->space, n->id);
    else if (newest > p->checkpoint || newest == 0)
        finding(k, "head %s/%s: seq %llu, the checkpoint is %llu", n->space, n->id,
                (unsigned long long)newest, (unsigned long long)p->checkpoint);
    return HD_OK;
}

/* As any reader would read it. */
static hd_status check_head_row(void *ctx, const head_item *item, bool *stop) {
    checking *k = ctx;
    (void)stop;
    doc_name n = item->name, beside = n;
    beside.meta = true;
    hd_value v = value_absent(), m = value_absent();
    uint64_t seq;
    hd_status status = check_head_seqs(k, &n);
    if (!status) status = head_load(k->store, k->heap, &n, &v, &seq);
    if (!status) status = head_load(k->store, k->heap, &beside, &m, &seq);
    if (status == HD_CORRUPT) {
        finding(k, "%s", log_store_words(k->store, HD_CORRUPT));
        status = HD_OK;
    } else if (!status) check_head_kind(k, &n, item->kind, m);
    value_unref(v);
    value_unref(m);
    return status;
}

/* ---- Heads against the replayed log ------------------------------------------------------------- */

static hd_status compare_doc(checking *k, const doc_name *n, const replayed *r) {
    stored_head stored;
    hd_value value;
    uint64_t seq;
    hd_status status = head_find(k->store, n, &stored);
    if (!status) status = head_load(k->store, k->heap, n, &value, &seq);
    if (status) return status == HD_CORRUPT ? HD_OK : status; /* reported by head_row */
    const char *part = n->meta ? "metadata" : "value";
    if (!value_equal(value, r->value))
        finding(k, "head %s/%s: %s is not what the log makes of it", n->space, n->id, part);
    if (stored.exists && seq != r->seq)
        finding(k, "head %s/%s: %s has seq %llu, the log says %llu", n->space, n->id, part,
                (unsigned long long)seq, (unsigned long long)r->seq);
    if (r->guarded && !stored.exists)
        finding(k, "head %s/%s: its tombstone is missing", n->space, n->id);
    value_unref(value);
    return HD_OK;
}

static hd_status known_to_log(void *ctx, const head_item *item, bool *stop) {
    checking *k = ctx;
    (void)stop;
    doc_name n = item->name;
    if (!tail_find(&k->docs, &n)) {
        n.meta = true;
        if (!tail_find(&k->docs, &n)) finding(k, "head %s/%s: not in the log", n.space, n.id);
    }
    return HD_OK;
}

static hd_status compare_heads(checking *k) {
    for (uint32_t i = 0; i < k->spaces.count; i++) {
        const checked_space *p = &k->spaces.items[i];
        if (p->seq && p->seq != p->checkpoint)
            finding(k, "space %s: checkpoint %llu, the log was at %llu", p->name,
                    (unsigned long long)p->checkpoint, (unsigned long long)p->seq);
    }
    if (!k->whole) return HD_OK;
    assert(k->replayed.count == k->docs.docs.count);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < k->docs.docs.count && !status; i++)
        status = compare_doc(k, &k->docs.docs.items[i].name, &k->replayed.items[i]);
    return status ? status : k->store->ops->each_head(k->store, known_to_log, k);
}

/* ---- The whole ------------------------------------------------------------------------------------- */

static void pass_finding(const char *line, void *ctx) { finding(ctx, "%s", line); }

static hd_status check_all(checking *k) {
    const log_backend *ops = k->store->ops;
    assert(ops->in_transaction(k->store)); /* one snapshot for everything */
    memo_check all = { k->store, k->heap, pass_finding, k };
    hd_status status = ops->check(k->store, pass_finding, k);
    if (!status && ops->get_number(k->store, LOG_CHECKPOINT, &k->checkpoint))
        finding(k, "meta: there is no checkpoint");
    if (!status) status = ops->each_space(k->store, check_space_row, k);
    if (!status) status = ops->each_head(k->store, check_head_row, k);
    if (!status) status = check_memos(&all);
    return status ? status : check_log(k);
}

/* A program that opens the file for writing learns it first: that must work, too. Nothing is written. */
static hd_status learn_as_writer(checking *k) {
    writer w = { .env = k->env, .store = k->store, .heap = k->heap };
    hd_status status = writer_learn(&w);
    assert(w.known == !status);
    if (status == HD_CORRUPT && !k->findings)
        finding(k, "it cannot be opened for writing: %s", log_store_words(w.store, HD_CORRUPT));
    writer_forget(&w);
    return status == HD_CORRUPT ? HD_OK : status;
}

static void checking_fini(checking *k) {
    for (uint32_t i = 0; i < k->replayed.count; i++) value_unref(k->replayed.items[i].value);
    for (uint32_t i = 0; i < k->spaces.count; i++)
        env_free(&k->env, k->spaces.items[i].name, k->spaces.items[i].size);
    vec_fini(&k->env, &k->replayed);
    vec_fini(&k->env, &k->spaces);
    tail_fini(&k->docs);
}

hd_status log_check_inside(log_store *s, hd_heap *heap, hd_check_fn fn, void *ctx) {
    checking k = { .env = s->env, .store = s, .heap = heap, .fn = fn, .ctx = ctx };
    tail_init(&k.docs, &k.env);
    hd_status status = check_all(&k);
    if (!status) status = learn_as_writer(&k);
    if (status == HD_CORRUPT) finding(&k, "%s", log_store_words(s, HD_CORRUPT));
    if (!status && k.findings) status = HD_CORRUPT;
    checking_fini(&k);
    return status;
}

typedef struct counting {
    hd_check_fn fn;
    void *ctx;
    uint64_t findings;
} counting;

static void count_finding(const char *line, void *ctx) {
    counting *c = ctx;
    c->findings++;
    if (c->fn) c->fn(line, c->ctx);
}

static hd_status check_open(log_store *s, hd_heap *heap, counting *c, hd_error *error) {
    assert(!s->ops->in_transaction(s));
    hd_status status = s->ops->begin_read(s);
    if (!status) status = log_check_inside(s, heap, count_finding, c);
    if (status == HD_CORRUPT)
        env_error(error, status, "%s: %llu findings", s->shown, (unsigned long long)c->findings);
    else if (status) log_store_failure(s, status, "checking", error);
    s->ops->rollback(s);
    return status;
}

hd_status log_check(const log_backend *backend, const char *name, const hd_options *options,
                    hd_check_fn fn, void *ctx, hd_error *error) {
    hd_env env = env_copy(options ? options->env : NULL);
    hd_options o = { .vfs = options ? options->vfs : NULL, .read_only = true, .must_exist = true };
    hd_limits widest = { HEAP_DEPTH_MAX, SIZE_MAX }; /* whatever programs have written */
    counting c = { fn, ctx, 0 };
    log_store *s = NULL;
    hd_heap *heap = NULL;
    hd_status status = backend->open(name, &o, &env, LOG_CHECKING, &s, error);
    if (!status) status = hd_heap_open(&env, &widest, &heap);
    if (!status) status = check_open(s, heap, &c, error);
    if (s) s->ops->close(s);
    if (heap) hd_heap_close(heap);
    return status;
}

/* Rows of the log, as another program might have left them: the text of a row, with the hash that
 * belongs to it. What can be read is also walked, recorded and folded, as an opening store does. */
#include "store/log/decode.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hd_status must(hd_status status) {
    if (status && status != HD_CORRUPT) abort();
    return status;
}

static void fold_commit(hd_heap *heap, hd_value made) {
    for (size_t i = 0; i < log_commit_docs(made); i++) {
        log_doc doc;
        hd_value value = value_absent();
        if (!log_commit_doc(made, i, &doc)) continue;
        (void)log_ops_start_anew(log_doc_op_list(&doc));
        (void)must(log_fold(heap, log_doc_op_list(&doc), &value));
        value_unref(value);
    }
}

/* What a writer asks for before it records a commit (state.c): the next seqs of its spaces, and a later number
 * than its session had. */
static bool follows(heads *h, const candidate *work, hd_value made) {
    if (work->sub.local_seq <= h->sessions.items[work->sub.session].last) return false;
    for (uint32_t i = 0; i < work->written; i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        head_space *space = &h->spaces.items[work->spaces[i]];
        if (!log_commit_space(made, i, &name, &length, &seq) || seq != space->seq + 1) return false;
        space->seq = seq;
    }
    return true;
}

static void record_commit(decoder *d, const candidate *work, hd_value made) {
    if (!follows(d->h, work, made)) return;
    (void)must(admit_apply(d->h, &work->sub, work->seqs));
    heads_check(d->h);
}

static void walk_row(hd_heap *heap, decoder *d, const log_row *row) {
    for (size_t i = 0; i < log_row_commits(row); i++) {
        hd_value made = log_row_commit(row, i);
        uint8_t session[16];
        candidate work;
        (void)must(log_commit_session(row, made, session));
        (void)log_commit_class(made);
        if (!must(decode_log_commit(d, row, i, &work))) record_commit(d, &work, made);
        fold_commit(heap, made);
    }
}

static void read_row(hd_heap *heap, const log_text *text) {
    log_row row;
    heads h;
    decoder d;
    if (heads_init(&h, &heap->env, heap)) abort();
    decoder_init(&d, &h, &heap->env);
    if (!must(log_row_read(NULL, heap, text, &row))) walk_row(heap, &d, &row);
    log_row_fini(heap, &row);
    decoder_fini(&d);
    heads_fini(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_heap *heap;
    if (hd_heap_open(NULL, NULL, &heap)) abort();
    log_text text = { .row = 1,
                      .hash = log_hash(data, size),
                      .body = text_of_bytes((const char *)data, size) };
    read_row(heap, &text);
    hd_heap_close(heap);
    return 0;
}

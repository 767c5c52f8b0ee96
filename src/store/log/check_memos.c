/* check_memos.c -- memos that can be read, and promise no future. */
#include "store/log/check_memos.h"

#include "value/object.h"
#include <stdio.h>

HD_PRINTF(2, 3)
static void report(const memo_check *k, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    k->finding(line, k->ctx);
}

/* ---- One memo ------------------------------------------------------------------------------- */

static hd_status check_seqs(memo_check *k, const char *name, hd_value seqs) {
    hd_status status = HD_OK;
    for (hd_iter it = hd_iter_of(seqs); !status && hd_iter_next(&it);) {
        uint64_t now = 0, floor;
        int64_t seq = hd_value_as_int(it.value, -1);
        row_text space = text_of_bytes(it.key, it.key_length);
        status = k->store->ops->get_space(k->store, space, &now, &floor);
        if (!status && (seq < 0 || (uint64_t)seq > now))
            report(k, "node %s: seq %lld of space %s, the checkpoint is %lld", name, (long long)seq,
                   it.key, (long long)now);
    }
    return status;
}

/* Every space of the cells has a seq. */
static void check_cells(const memo_check *k, const char *name, const char *cells, hd_value seqs) {
    const char *space;
    size_t length;
    while (memo_next_space(&cells, &space, &length)) {
        if (!length) report(k, "node %s: a line of its reads names no document", name);
        else if (value_is_absent(object_get_bytes(seqs, space, length)))
            report(k, "node %s: it has no seq of space %.*s", name, (int)length, space);
    }
}

static hd_status check_memo(void *ctx, const stored_memo *m, bool *stop) {
    memo_check *k = ctx;
    const row_text *of = m->text;
    const char *name = of[MEMO_NAME].bytes;
    (void)stop;
    hd_value seqs;
    if (!memo_piece_length(name, of[MEMO_NAME].length))
        report(k, "node %s: the name is not \"space:piece:path\"", name);
    hd_status status = log_json_of(k->heap, of[MEMO_SEQS], &seqs);
    if (status == HD_CORRUPT) status = HD_OK; /* absent, and found to be malformed as that */
    if (status) return status;
    if (value_is_object(seqs)) {
        check_cells(k, name, of[MEMO_CELLS].bytes, seqs);
        status = check_seqs(k, name, seqs);
    } else {
        report(k, "node %s: its seqs are no numbers by space", name);
    }
    value_unref(seqs);
    return status;
}

hd_status check_memos(memo_check *k) {
    return k->store->ops->each_memo(k->store, NULL, check_memo, k);
}

/* check_rows.c -- rows that can be read, and promise no future. */
#include "store/log/check_rows.h"

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

static hd_status check_seqs(row_check *k, const char *what, const char *name, hd_value seqs) {
    if (hd_value_kind(seqs) != HD_KIND_OBJECT) {
        report(k, "%s %s: its seqs are no numbers by space", what, name);
        return HD_OK;
    }
    hd_status status = HD_OK;
    for (hd_iter it = hd_iter_of(seqs); !status && hd_iter_next(&it);) {
        uint64_t now = 0, floor;
        int64_t seq = hd_value_as_int(it.value, -1);
        row_text space = text_of_bytes(it.key, it.key_length);
        status = k->store->ops->get_space(k->store, space, &now, &floor);
        if (!status && (seq < 0 || (uint64_t)seq > now))
            report(k, "%s %s: seq %lld of space %s, the checkpoint is %lld", what, name,
                   (long long)seq, it.key, (long long)now);
    }
    return status;
}

static hd_status check_node(void *ctx, const node_row *row, bool *stop) {
    row_check *k = ctx;
    const row_text *of = row->text;
    const char *name = of[ROW_NAME].bytes;
    (void)stop;
    hd_value seqs;
    basis_row texts;
    for (size_t i = 0; i < ROW_ITEMS; i++) texts.text[i] = of[i].bytes;
    const char *fault = basis_row_fault(&texts);
    if (fault) report(k, "node %s: %s", name, fault);
    if (!of[ROW_PRINT].length) report(k, "node %s: there is no fingerprint", name);
    hd_status status = log_json_of(k->heap, of[NODE_SEQS], &seqs);
    if (status == HD_CORRUPT) status = HD_OK; /* absent, and found to be malformed as that */
    if (!status) status = check_seqs(k, "node", name, seqs);
    value_unref(seqs);
    return status;
}

hd_status check_rows(row_check *k) {
    return k->store->ops->each_node(k->store, NULL, check_node, k);
}

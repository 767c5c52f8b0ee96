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
        uint64_t now = 0;
        int64_t seq = hd_value_as_int(it.value, -1);
        row_text space = text_of_bytes(it.key, it.key_length);
        status = k->store->ops->get_space(k->store, space, &now);
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
    if (!basis_piece_length(name, of[ROW_NAME].length))
        report(k, "node %s: it is of no piece", name);
    if (!basis_is_instance(of[ROW_INSTANCE].bytes, of[ROW_INSTANCE].length))
        report(k, "node %s: its instance is '%s'", name, of[ROW_INSTANCE].bytes);
    if (of[ROW_HASHES].length % HASH_TEXT) report(k, "node %s: its hashes are malformed", name);
    if (!of[ROW_PRINT].length) report(k, "node %s: there is no fingerprint", name);
    if (!basis_reads_are_well_formed(of[ROW_READS].bytes))
        report(k, "node %s: its reads are malformed", name);
    hd_status status = log_json_of(k->heap, of[NODE_SEQS], &seqs);
    if (status == HD_CORRUPT) status = HD_OK; /* absent, and found to be malformed as that */
    if (!status) status = check_seqs(k, "node", name, seqs);
    value_unref(seqs);
    return status;
}

hd_status check_rows(row_check *k) {
    return k->store->ops->each_node(k->store, NULL, check_node, k);
}

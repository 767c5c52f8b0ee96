/* upkeep.c -- runs a maintenance function and prints its effect. */
#include "cli/upkeep.h"

#include "cli/output.h"
#include "cli/record.h"
#include "cli/shown.h"
#include "cli/tables.h"
#include "cli/ticker.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct sizes {
    uint64_t file_bytes, wal_bytes, log_rows, tail_rows;
} sizes;

static int measure(cli *c, sizes *out) {
    tables t;
    store_sizes all = { 0 };
    int failed = tables_open(c, &t, c->operands[0]);
    hd_status status = failed ? HD_OK : t.store->ops->measure(t.store, &all);
    if (status) failed = tables_fail(&t, status, "reading");
    *out = (sizes){ all.bytes, file_size(t.file, "-wal"), all.log_rows, all.tail_rows };
    tables_close(&t);
    return failed;
}

static void record_sizes(record *r, const char *key, const sizes *z) {
    record_open(r, key, '{');
    record_number(r, "bytes", z->file_bytes);
    record_number(r, "wal_bytes", z->wal_bytes);
    record_number(r, "log_rows", z->log_rows);
    record_number(r, "tail_rows", z->tail_rows);
    record_close(r, '}');
}

static void report(const cli *c, const sizes *before, const sizes *after) {
    if (c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_sizes(&r, "before", before);
        record_sizes(&r, "after", after);
        record_close(&r, '}');
        record_end(&r);
        return;
    }
    char a[SIZE_TEXT], b[SIZE_TEXT];
    printf("%-22s %10s -> %s\n", is_address(c->operands[0]) ? "server" : "file",
           size_text(before->file_bytes + before->wal_bytes, a),
           size_text(after->file_bytes + after->wal_bytes, b));
    printf("%-22s %10" PRIu64 " -> %" PRIu64 "\n", "log rows", before->log_rows, after->log_rows);
    printf("%-22s %10" PRIu64 " -> %" PRIu64 "\n", "after the checkpoint", before->tail_rows,
           after->tail_rows);
}

/* Each of these functions writes before it frees any space. */
static const char *hint_on(hd_status status) {
    if (status != HD_FULL) return NULL;
    return "Make room first; a vacuum needs as much again as the file has.";
}

int upkeep_run(cli *c, const char *doing, upkeep_fn fn) {
    store s;
    sizes before = { 0 }, after = { 0 };
    hd_error error = { 0 };
    int failed = store_open(c, &s, c->operands[0], STORE_WRITE);
    if (!failed) failed = measure(c, &before);
    if (!failed) {
        ticker t;
        ticker_start(&t, c, false, doing, s.file);
        hd_status status = fn(s.rt, &error);
        ticker_stop(&t);
        if (status)
            failed = cli_fail(c, exit_of(status), hint_on(status), "%s",
                              *error.message ? error.message : hd_status_text(status));
    }
    failed = store_close(&s, failed);
    if (!failed) failed = measure(c, &after);
    if (!failed) report(c, &before, &after);
    return failed;
}

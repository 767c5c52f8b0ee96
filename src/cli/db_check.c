/* db_check.c -- `heddle db check`: looks for damage in a file. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/shown.h"
#include "cli/store.h"
#include "cli/ticker.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct findings {
    cli *c;
    uint64_t count;
    ticker ticker;
} findings;

static void print_finding(const char *finding, void *ctx) {
    findings *f = ctx;
    f->count++;
    progress(f->c, "%s", "");
    if (!f->c->json) {
        print_one_line(stdout, finding);
        putchar('\n');
        return;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "finding", finding);
    record_close(&r, '}');
    record_end(&r);
}

static int run(cli *c) {
    findings f = { .c = c };
    hd_options options = { .read_only = true, .must_exist = true };
    hd_error error = { 0 };
    if (store_tell_empty(c, c->operands[0])) return CLI_OK;
    ticker_start(&f.ticker, c, true, "checking", c->operands[0]);
    hd_status status = hd_store_check(c->operands[0], &options, print_finding, &f, &error);
    ticker_stop(&f.ticker);
    if (status && !f.count) return store_open_failed(c, c->operands[0], status, &error);
    if (status)
        return cli_fail(
            c, CLI_FILE,
            is_address(c->operands[0])
                ? "Restore a backup of the database."
                : "Repair it as far as possible: heddle db repair. Or restore a backup.",
            "%s: %" PRIu64 " finding%s", c->operands[0], f.count, f.count == 1 ? "" : "s");
    if (!c->json) {
        char name[SHOWN_SIZE];
        print_plain(stdout, shown(c->operands[0], name));
        puts(": in order");
    }
    return CLI_OK;
}

const command command_db_check = {
    .name = "db check",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "verify everything that must hold of a file",
    .text = "Looks at every page, hash and sequence of the file and compares the documents with "
            "the log where it is kept. Prints each finding on a line. Nothing is changed; other "
            "programs may use the file meanwhile.",
    .examples = (const cli_example[]){ { "heddle db check shop.db", "exit status 5 if damaged" },
                                       { NULL, NULL } },
    .run = run,
};

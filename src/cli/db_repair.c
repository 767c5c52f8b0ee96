/* db_repair.c -- `heddle db repair`: restores damaged rows from the intact ones. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/store.h"
#include "cli/ticker.h"
#include <stdio.h>
#include <string.h>

typedef struct told {
    cli *c;
    uint64_t count;
    ticker ticker;
} told;

/* "restored: main/cart" becomes {"outcome": "restored", "what": "main/cart"}. */
static void record_line(const char *line) {
    const char *colon = strstr(line, ": ");
    char outcome[32] = "";
    if (colon && (size_t)(colon - line) < sizeof outcome)
        memcpy(outcome, line, (size_t)(colon - line));
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "outcome", outcome);
    record_text(&r, "what", colon ? colon + 2 : line);
    record_close(&r, '}');
    record_end(&r);
}

static void print_line(const char *line, void *ctx) {
    told *t = ctx;
    t->count++;
    progress(t->c, "%s", "");
    if (t->c->json) {
        record_line(line);
        return;
    }
    print_one_line(stdout, line);
    putchar('\n');
}

static int run(cli *c) {
    told t = { .c = c };
    bool drop = c->values[0] != NULL;
    hd_error error = { 0 };
    if (store_tell_empty(c, c->operands[0])) return CLI_OK;
    ticker_start(&t.ticker, c, true, "repairing", c->operands[0]);
    hd_status status = hd_store_repair(c->operands[0], NULL, drop, print_line, &t, &error);
    ticker_stop(&t.ticker);
    if (status && !t.count) return store_open_failed(c, c->operands[0], status, &error);
    if (status)
        return cli_fail(c, exit_of(status),
                        drop ? "Restore a backup."
                             : "Restore a backup, or remove what is lost: heddle db repair --drop",
                        "%s", error.message);
    if (!c->json && !t.count) {
        print_plain(stdout, c->operands[0]);
        puts(": in order");
    }
    return CLI_OK;
}

const command command_db_repair = {
    .name = "db repair",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "restore what is damaged, as far as the file still has it",
    .text =
        "Makes indexes anew, restores damaged documents from the log where it goes back far "
        "enough, "
        "and removes what is only history. Says on a line each what was restored, what was "
        "removed, and what could not be restored: that stays as it is, and reading it fails. "
        "All of it happens, or nothing.\n\n"
        "Close all programs that use the file first, and keep a copy of it (with its -wal file). "
        "\"heddle db check\" tells afterwards whether everything is in order.",
    .options = (const cli_option[]){ { "drop", NULL,
                                       "also remove what cannot be restored, printing its text" },
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle db repair shop.db", "exit status 5 if not all is" },
                               { NULL, NULL } },
    .run = run,
};

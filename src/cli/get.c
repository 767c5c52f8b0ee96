/* get.c -- print the value of a cell; if there is none, say how much of its path exists (missing.c). */
#include "cli/commands.h"
#include "cli/missing.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/store.h"
#include <stdio.h>

static int print(store *s, hd_value v) {
    size_t length;
    const char *text = hd_value_text(v, &length);
    if (text && option_given(s->c, "text")) {
        fwrite(text, 1, length, stdout);
        putchar('\n');
        return CLI_OK;
    }
    hd_status status = print_value(v, s->c->json ? HD_JSON_COMPACT : HD_JSON_PRETTY);
    return output_broken() || !status ? CLI_OK : store_fail(s, status, "value");
}

static int get_cell(store *s, const char *name) {
    hd_cell cell;
    int failed = store_cell(s, name, &cell);
    if (failed) return failed;
    hd_tx *tx;
    hd_status status = hd_tx_begin_read(s->rt, &tx);
    if (status) return store_fail(s, status, name);
    hd_value v = hd_tx_read(tx, cell, option_given(s->c, "link") ? HD_READ_RAW : 0);
    status = hd_value_status(v);
    if (status) failed = store_fail(s, status, name);
    else failed = hd_value_exists(v) ? print(s, v) : missing_cell(s, tx, name);
    hd_tx_abort(tx);
    return failed;
}

static int run(cli *c) {
    store s;
    int failed = store_open(c, &s, c->operands[0], STORE_READ);
    for (size_t i = 1; i < c->operand_count && !failed; i++) failed = get_cell(&s, c->operands[i]);
    return store_close(&s, failed);
}

const command command_get = {
    .name = "get",
    .also = "cells get",
    .section = "Cells",
    .operands = "FILE CELL...",
    .least = 2,
    .most = SIZE_MAX,
    .summary = "print the value of a cell",
    .text = "Prints the value as JSON. A link on the cell's way is followed, links inside the "
            "value are printed as links.\n\n"
            "With --json the value is on one line, in a form in which equal values print equally.",
    .options = (const cli_option[]){ { "text", NULL, "print a string as it is, without quotes" },
                                     { "link", NULL, "print a link as a link" },
                                     OPTION_USER,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle get shop.db main/stock", "the whole document" },
                               { "heddle get shop.db main/stock#/apples", "one place in it" },
                               { "heddle get --text shop.db main/shop#/name", "for a script" },
                               { NULL, NULL } },
    .run = run,
};

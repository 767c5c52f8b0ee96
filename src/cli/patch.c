/* patch.c -- several changes inside one document, in one commit. */
#include "cli/change.h"
#include "cli/commands.h"
#include "cli/output.h"

static int patch(store *s, hd_tx *tx) {
    hd_cell cell;
    hd_value operations;
    int failed = store_cell(s, s->c->operands[1], &cell);
    if (!failed) failed = store_json(s, "patch", s->c->operands[2], &operations);
    if (failed) return failed;
    hd_error error = { 0 };
    hd_status status = hd_tx_patch(tx, cell, operations, &error);
    if (!status) return CLI_OK;
    return cli_fail(s->c, exit_of(status) == CLI_INTERNAL ? CLI_INPUT : exit_of(status),
                    "A patch is [{\"op\": \"set\", \"path\": \"/a\", \"value\": 1}, ...];\n"
                    "  op: set, remove, append, increment.",
                    "%s", *error.message ? error.message : hd_status_text(status));
}

static int run(cli *c) { return change_run(c, STORE_WRITE, true, patch); }

const command command_patch = {
    .name = "patch",
    .also = "cells patch",
    .section = "Cells",
    .operands = "FILE CELL PATCH",
    .least = 3,
    .most = 3,
    .summary = "change several places of a document at once",
    .text = "PATCH is a JSON list of {\"op\": OP, \"path\": POINTER, \"value\": JSON}, with paths "
            "relative to the cell, and - reads it from stdin. OP is set, remove, append (to an "
            "array) or increment (a number). All of it happens, or nothing.\n\n"
            "Appends and increments of several writers never conflict: none of them is lost.",
    .options = (const cli_option[]){ OPTION_IF, OPTION_USER, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle patch shop.db main/s '[{\"op\":\"append\",\"path\":\"/log\",\"value\":1}]'",
              "append to an array" },
            { NULL, NULL } },
    .run = run,
};

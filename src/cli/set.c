/* set.c -- write values, all of them in one commit. */
#include "cli/change.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include <string.h>

static int value_of(store *s, const char *name, const char *text, hd_value *out) {
    return option_given(s->c, "text") ? store_text(s, name, text, out)
                                      : store_json(s, name, text, out);
}

/* A value cannot be written to the cell: prints what is in the way. */
static int does_not_fit(store *s, hd_status status, const char *name) {
    const char *key = strrchr(name, '/');
    bool index = key && key[1] && strspn(key + 1, "0123456789") == strlen(key + 1);
    const char *hint = status == HD_KIND    ? "Something on the way is neither object nor array."
                       : status != HD_RANGE ? NULL
                       : index              ? "An array takes an index up to its length, not more."
                                            : "There is an array: that is not an index.";
    if (!hint) return store_fail(s, status, name);
    return cli_fail(s->c, CLI_INPUT, hint, "%s: the value cannot be put there", name);
}

static int set_cell(store *s, hd_tx *tx, const char *name, const char *text) {
    hd_cell cell;
    hd_value v;
    int failed = store_cell(s, name, &cell);
    if (!failed) failed = value_of(s, name, text, &v);
    if (failed) return failed;
    const char *kind = option_text(s->c, "kind");
    hd_status status = option_given(s->c, "new") ? hd_tx_require_absent(tx, cell) : HD_OK;
    if (!status) status = hd_tx_set(tx, cell, v);
    if (!status && kind) status = hd_tx_set_kind(tx, cell, kind);
    return status ? does_not_fit(s, status, name) : CLI_OK;
}

static int set_all(store *s, hd_tx *tx) {
    const cli *c = s->c;
    int failed = CLI_OK;
    for (size_t i = 1; i < c->operand_count && !failed; i += 2)
        failed = set_cell(s, tx, c->operands[i], c->operands[i + 1]);
    return failed;
}

static int run(cli *c) {
    if (c->operand_count % 2 == 0)
        return cli_fail(c, CLI_USAGE, "Cells and values come in pairs.", "%s has no value",
                        c->operands[c->operand_count - 1]);
    return change_run(c, STORE_CREATE, true, set_all);
}

const command command_set = {
    .name = "set",
    .also = "cells set",
    .section = "Cells",
    .operands = "FILE CELL JSON [CELL JSON]...",
    .least = 3,
    .most = SIZE_MAX,
    .summary = "write the value of a cell",
    .text = "Writes values, several of them in one commit, and returns when they are on disk. "
            "Objects that are missing on the way are made, and so are the document and the file. "
            "The value - is read from stdin; with --text the end of its last line does not count.",
    .options =
        (const cli_option[]){
            { "text", NULL, "values are plain text, not JSON" },
            { "kind", "WORD", "give the document this kind, for ls --kind" },
            { "new", NULL, "only if the document does not exist; else exit with 3" },
            OPTION_IF,
            OPTION_USER,
            { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle set shop.db main/stock '{\"apples\": 12}'", "a whole document" },
            { "heddle set shop.db main/stock#/apples 11 --if 12", "compare and set" },
            { "heddle set shop.db main/big - < big.json", "from a file" },
            { "date | heddle set --text shop.db main/when -", "from a program, as text" },
            { NULL, NULL } },
    .run = run,
};

/* rm.c -- remove cells, all of them in one commit. */
#include "cli/change.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"

static int remove_cell(store *s, hd_tx *tx, const char *name) {
    hd_cell cell;
    int failed = store_cell(s, name, &cell);
    if (failed) return failed;
    /* Read for the message only, without a claim: another writer's change to the cell is no conflict. */
    hd_value now = hd_tx_read(tx, cell, HD_READ_RAW | HD_READ_NO_CLAIM);
    hd_status status = hd_value_status(now);
    if (!status && !hd_value_exists(now) && !option_given(s->c, "force"))
        return cli_fail(s->c, CLI_NOT_FOUND, "With --force that is no failure.",
                        "%s is not there; nothing was removed", name);
    if (!status) status = hd_tx_remove(tx, cell);
    return status ? store_fail(s, status, name) : CLI_OK;
}

static int remove_all(store *s, hd_tx *tx) {
    int failed = CLI_OK;
    for (size_t i = 1; i < s->c->operand_count && !failed; i++)
        failed = remove_cell(s, tx, s->c->operands[i]);
    return failed;
}

static int run(cli *c) { return change_run(c, STORE_WRITE, true, remove_all); }

const command command_rm = {
    .name = "rm",
    .also = "cells rm",
    .section = "Cells",
    .operands = "FILE CELL...",
    .least = 2,
    .most = SIZE_MAX,
    .summary = "remove a document or a place in one",
    .text = "Removes all the cells in one commit. A whole document is deleted; a key leaves its "
            "object; an array closes up.",
    .options = (const cli_option[]){ { "force", NULL, "it may be missing already" },
                                     OPTION_IF,
                                     OPTION_USER,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle rm shop.db main/stock#/pears", "a key" },
                               { "heddle rm shop.db main/cart main/total", "two documents" },
                               { NULL, NULL } },
    .run = run,
};

/* change.c -- one transaction with its conditions.
 *
 * A command with a mistake must not leave a new file behind: a change that would make the file is tried on a
 * store in memory first. */
#define _POSIX_C_SOURCE 200809L
#include "cli/change.h"

#include "cli/output.h"
#include "cli/parse.h"
#include <string.h>

static int require_equal(store *s, hd_tx *tx) {
    const char *json = option_text(s->c, "if");
    if (!json) return CLI_OK;
    hd_value expected;
    hd_cell cell;
    int failed = store_json(s, "--if", json, &expected);
    if (!failed) failed = store_cell(s, s->c->operands[1], &cell);
    if (failed) return failed;
    hd_status status = hd_tx_require_equal(tx, cell, expected);
    return status ? store_fail(s, status, "--if") : CLI_OK;
}

static int attempt(cli *c, store_mode mode, bool conditional, change_fn fn) {
    store s;
    hd_tx *tx = NULL;
    int failed = store_open(c, &s, c->operands[0], mode);
    if (!failed) {
        hd_status status = hd_tx_begin(s.rt, &tx);
        if (status) failed = store_fail(&s, status, s.file);
    }
    if (!failed && conditional) failed = require_equal(&s, tx);
    if (!failed) failed = fn(&s, tx);
    if (failed) hd_tx_abort(tx);
    else failed = store_commit(&s, tx, c->operands[1]);
    return store_close(&s, failed);
}

int change_run(cli *c, store_mode mode, bool conditional, change_fn fn) {
    bool makes_file = mode == STORE_CREATE && store_is_missing(c->operands[0]);
    int failed = makes_file ? attempt(c, STORE_NOWHERE, conditional, fn) : CLI_OK;
    return failed ? failed : attempt(c, mode, conditional, fn);
}

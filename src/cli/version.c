/* version.c -- which heddle this is. */
#include "cli/commands.h"
#include "cli/record.h"
#include <stdio.h>

static int run(cli *c) {
    if (!c->json) {
        printf("heddle %s\n", hd_version());
        return CLI_OK;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "version", hd_version());
    record_close(&r, '}');
    record_end(&r);
    return CLI_OK;
}

const command command_version = {
    .name = "version",
    .section = "heddle itself",
    .operands = "",
    .summary = "the version of heddle",
    .text = "The version of the library that the command is linked with.",
    .examples = (const cli_example[]){ { "heddle version", "0.2.0, say" }, { NULL, NULL } },
    .run = run,
};

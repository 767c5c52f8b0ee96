/* db_init.c -- `heddle db init`: makes an empty store, so that programs need no right to make tables. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/shown.h"
#include "cli/store.h"
#include <stdio.h>

static int run(cli *c) {
    store s;
    int failed = store_open(c, &s, c->operands[0], STORE_CREATE);
    failed = store_close(&s, failed);
    if (failed || c->json) return failed;
    char name[SHOWN_SIZE];
    print_plain(stdout, shown(c->operands[0], name));
    puts(": ready");
    return CLI_OK;
}

const command command_db_init = {
    .name = "db init",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "make an empty store, unless there is one",
    .text =
        "Makes the file, or on a server the schema and its tables. Programs make them too where "
        "they "
        "may; on a server they usually may not, and then need the rights to select, insert, update "
        "and delete alone. A store that exists is left as it is.",
    .examples =
        (const cli_example[]){ { "heddle db init postgresql://admin@db/shop", "on a server" },
                               { "heddle db init 'postgresql://db/shop?schema=orders'",
                                 "a second store in the same database" },
                               { NULL, NULL } },
    .run = run,
};

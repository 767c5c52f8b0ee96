/* db_vacuum.c -- give unused space back to the system. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/shown.h"
#include "cli/upkeep.h"

static int run(cli *c) {
    if (is_address(c->operands[0]))
        return cli_fail(
            c, CLI_USAGE,
            "PostgreSQL's autovacuum reuses free space; its `vacuum full` gives it back",
            "heddle vacuums a file, and this store is on a server");
    return upkeep_run(c, "vacuuming", hd_store_vacuum);
}

const command command_db_vacuum = {
    .name = "db vacuum",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "give unused space back to the system",
    .text = "Rebuilds the file without its free pages. It needs as much space again while it runs, "
            "and waits for a moment in which no program writes.",
    .examples = (const cli_example[]){ { "heddle db vacuum shop.db", "after much was removed" },
                                       { NULL, NULL } },
    .run = run,
};

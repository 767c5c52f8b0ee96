/* db_vacuum.c -- give unused space back to the system. */
#include "cli/commands.h"
#include "cli/upkeep.h"

static int run(cli *c) { return upkeep_run(c, "vacuuming", hd_store_vacuum); }

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

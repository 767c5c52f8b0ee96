/* db_prune.c -- `heddle db prune`: deletes the part of the log that no program needs. */
#include "cli/commands.h"
#include "cli/upkeep.h"

static int run(cli *c) { return upkeep_run(c, "pruning", hd_store_prune); }

const command command_db_prune = {
    .name = "db prune",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "delete the part of the log that no program needs",
    .text = "Deletes log rows that are folded into the documents and that every program which has "
            "the file open has read. \"heddle log\" does not show them any more.",
    .examples = (const cli_example[]){ { "heddle db prune shop.db", "give up old history" },
                                       { NULL, NULL } },
    .run = run,
};

/* db_checkpoint.c -- fold the log into the documents. */
#include "cli/commands.h"
#include "cli/upkeep.h"

static int run(cli *c) { return upkeep_run(c, "checkpointing", hd_store_checkpoint); }

const command command_db_checkpoint = {
    .name = "db checkpoint",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "fold the log into the documents",
    .text = "Programs do this by themselves when the log has grown, when idle and when they close. "
            "Afterwards plain SQL sees every document as it is now.",
    .examples =
        (const cli_example[]){ { "heddle db checkpoint shop.db", "before looking with sqlite3" },
                               { NULL, NULL } },
    .run = run,
};

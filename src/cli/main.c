/* main.c -- the heddle command: look at a store and change it, from a shell.
 *
 *     argv -> parse -> the command's run() -> an exit status of exit.h
 *
 * Each subcommand is a file named like it; commands.c lists them. The command uses the public headers of the
 * library; what these do not tell about a store it reads from the tables described in docs/FORMAT.md (tables.c). */
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/signals.h"

int main(int argc, char **argv) {
    cli c = { 0 };
    output_init(&c);
    signals_init();
    int status = parse(&c, argc > 1 ? argc - 1 : 0, argv + 1);
    if (!status)
        status = option_given(&c, "help") ? help_command(&c, c.command) : c.command->run(&c);
    status = output_fini(&c, status);
    parse_fini(&c);
    return status;
}

/* demo.c -- `heddle demo`: what heddle does, told by a small shop on a real file.
 *
 *     examples/shop/ the application, written with the public interface alone
 *     demo_story.c   how it is told
 *     demo_steps.c   the chapters; demo_crash.c and demo_delivery.c those with a process that is killed
 *     demo_end.c     the last page; demo_serve.c the shop without the story
 *
 * The file is left behind, for the commands that the last page names. */
#define _GNU_SOURCE
#include "cli/commands.h"
#include "cli/demo_steps.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/signals.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* ---- A place for the file ---------------------------------------------------------------- */

static int fresh_folder(cli *c, char *folder, size_t size) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, size, "%s/heddle-demo-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(folder)) return CLI_OK;
    return cli_fail(c, CLI_IO, "Name a folder with --dir.", "cannot make a folder %s: %s", folder,
                    strerror(errno));
}

static int named_folder(cli *c, const char *folder) {
    struct stat st;
    if (mkdir(folder, 0777) == 0) return CLI_OK;
    if (errno == EEXIST && stat(folder, &st) == 0) {
        if (S_ISDIR(st.st_mode)) return CLI_OK;
        errno = ENOTDIR;
    }
    return cli_fail(c, CLI_IO, NULL, "cannot make the folder %s: %s", folder, strerror(errno));
}

static int choose_file(cli *c, char *folder, char *file) {
    const char *named = option_text(c, "dir");
    if (named) snprintf(folder, PATH_SIZE - 16, "%s", named);
    int failed = named ? named_folder(c, folder) : fresh_folder(c, folder, PATH_SIZE - 16);
    if (failed) return failed;
    snprintf(file, PATH_SIZE, "%.4000s/shop.db", folder);
    if (option_given(c, "serve") || access(file, F_OK)) return CLI_OK;
    return cli_fail(c, CLI_CONFLICT, "Name another folder, or none: then a fresh one is made.",
                    "%s exists already, and is left alone", file);
}

/* ---- The story --------------------------------------------------------------------------- */

static void (*const steps[])(story *s) = {
    demo_opening, demo_sale,     demo_price,    demo_discount,
    demo_gate,    demo_question, demo_conflict, demo_delivered_twice,
    demo_why,     demo_crash,    demo_delivery,
};

static int tell_story(story *s) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !s->aborted && !interrupted(); i++)
        steps[i](s);
    if (s->shop.rt) story_ok(s, shop_close(&s->shop), "closing");
    if (interrupted()) return interrupted_status();
    if (!s->aborted) demo_end(s);
    if (s->aborted) return s->aborted;
    if (!s->broken) return CLI_OK;
    return cli_fail(s->c, CLI_INTERNAL, "Please report this, with what is above.",
                    "%d of the things told above did not happen as they should", s->broken);
}

static int run(cli *c) {
    char folder[PATH_SIZE], file[PATH_SIZE];
    if (c->json)
        return cli_fail(c, CLI_USAGE, "Its exit status says whether all went well.",
                        "the demonstration is for people: it has no JSON");
    int failed = choose_file(c, folder, file);
    if (failed) return failed;
    story s = { .c = c,
                .folder = folder,
                .file = file,
                .pauses = !option_given(c, "fast") && isatty(STDOUT_FILENO) };
    return option_given(c, "serve") ? demo_serve(&s) : tell_story(&s);
}

const command command_demo = {
    .name = "demo",
    .section = "heddle itself",
    .operands = "",
    .summary = "see what heddle does, in less than a minute",
    .text = "Runs a small shop on a SQLite file and tells what happens: which computations run and "
            "which do not, and why; two writers in conflict; an event delivered twice; a process "
            "killed and resumed; a workflow whose process is killed in the middle of a step, and "
            "which goes on. Everything it says of itself is read from the running program. "
            "Enter ends a pause.\n\n"
            "The file stays, for you to look at: in a fresh folder, or in the one you name. With "
            "--serve there is no story: the shop stays open until Ctrl-C, on the file that an "
            "earlier demonstration left there or on a new one, and answers \"heddle why\" and "
            "the like from another terminal.",
    .options = (const cli_option[]){ { "fast", NULL, "without pauses" },
                                     { "dir", "FOLDER", "put the file shop.db there" },
                                     { "serve", NULL, "only keep the shop open, for questions" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle demo", "at reading speed" },
                                       { "heddle demo --fast --dir demo", "leaves demo/shop.db" },
                                       { "heddle demo --serve --dir demo", "opens it again" },
                                       { NULL, NULL } },
    .run = run,
};

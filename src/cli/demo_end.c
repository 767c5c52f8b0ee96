/* demo_end.c -- the last page: the commands that explore the file that was left. */
#define _GNU_SOURCE
#include "base/system.h"
#include "cli/demo_steps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Whether the reader's shell finds this very program as "heddle". */
static bool is_on_path(const char *self) {
    char found[PATH_SIZE], real[PATH_SIZE];
    const char *at = getenv("PATH");
    while (at && *at) {
        int length = (int)strcspn(at, ":");
        snprintf(found, sizeof found, "%.*s/heddle", length, at);
        if (realpath(found, real) && !strcmp(real, self)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

void demo_print_way(story *s) {
    char self[PATH_SIZE], folder[PATH_SIZE];
    story_shell(s, "cd %s", realpath(s->folder, folder) ? folder : s->folder);
    if (system_program(self, sizeof self) && !is_on_path(self))
        story_shell(s, "alias heddle=%s", self);
}

void demo_end(story *s) {
    if (!story_step(s, "The file is yours")) return;
    demo_print_way(s);
    story_shell(s, "heddle ls shop.db main                  # its documents");
    story_shell(s, "heddle get shop.db main/shop/stock      # one of them");
    story_shell(s, "heddle log shop.db main/shop/stock      # who changed it, and how");
    story_shell(s, "heddle why shop.db main/shop/total      # because of what");
    story_shell(s, "heddle events shop.db                   # what was handled, once");
    story_shell(s, "heddle workflow ls shop.db              # what is done in steps");
    story_shell(s, "heddle db check shop.db                 # is everything in order?");
    story_say(s, "The graph, why something does not run, and how often are known to a running "
                 "program. Open the shop again, and it names the commands that ask it:");
    story_shell(s, "heddle demo --serve --dir .");
    story_say(s, "The shop is examples/shop/shop.c; docs/TUTORIAL.md begins with one cell.");
}

/* help.c -- `heddle help`, and --help of every command, from the table. */
#include "cli/help.h"

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/parse.h"
#include <stdio.h>
#include <string.h>

const topic topics[] = {
    { "cells", "how cells are named",
      "A cell is a place in a document: space/id names the whole document, space/id#/path a place "
      "in it. The path is a JSON pointer: main/cart#/items/0/price. In a key, ~1 stands for a "
      "slash and ~0 for a tilde.\n\n"
      "All users of a space share its documents, unless the name says otherwise: "
      "space@user/id is a document of one user, and --user says whose (default: local).\n\n"
      "In a shell, quote a name that contains spaces, and mind that # is fine inside a word." },
    { "exit-codes", "what the exit status says", NULL },
    { NULL, NULL, NULL },
};

static void print_heading(const cli *c, const char *text) {
    printf("\n%s%s%s\n", out_colour(c, COLOUR_BOLD), text, out_colour(c, COLOUR_NONE));
}

/* A term on the left, its explanation from `column` on. */
static void print_term(const cli *c, const char *term, const char *text, int column) {
    int at = 2 + (int)strlen(term);
    printf("  %s%s%s", out_colour(c, COLOUR_BOLD), term, out_colour(c, COLOUR_NONE));
    if (at + 2 > column) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", column - at, "");
    print_wrapped(text, column, column);
}

static void print_paragraphs(const char *text) {
    while (text) {
        printf("\n  ");
        text = print_wrapped(text, 2, 2);
    }
}

/* ---- A command --------------------------------------------------------------------------- */

static void print_option(void *ctx, size_t index, const cli_option *option) {
    (void)index;
    char term[64];
    snprintf(term, sizeof term, "--%s%s%s", option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
    print_term(ctx, term, option->help, 20);
}

int help_command(cli *c, const command *cmd) {
    printf("%sheddle %s%s%s%s\n", out_colour(c, COLOUR_BOLD), cmd->name, out_colour(c, COLOUR_NONE),
           *cmd->operands ? " " : "", cmd->operands);
    print_paragraphs(cmd->text);
    if (cmd->also) printf("\n  Also written: heddle %s\n", cmd->also);
    print_heading(c, "Options");
    command_options(cmd, print_option, c);
    print_heading(c, "Examples");
    for (const cli_example *e = cmd->examples; e->line; e++) {
        printf("  %s%s%s\n      ", out_colour(c, COLOUR_BOLD), e->line, out_colour(c, COLOUR_NONE));
        print_wrapped(e->what, 6, 6);
    }
    return CLI_OK;
}

/* ---- The overview ------------------------------------------------------------------------ */

static int overview(cli *c) {
    printf("%sheddle%s COMMAND ...\n\n", out_colour(c, COLOUR_BOLD), out_colour(c, COLOUR_NONE));
    printf("  Looks into a heddle store and changes it. A store is a file, or a\n"
           "  database on a server (postgresql://...); it holds spaces, a space holds\n"
           "  documents, a document is JSON.\n");
    const char *section = "";
    for (const command *const *at = commands; *at; at++) {
        if (strcmp(section, (*at)->section)) print_heading(c, (*at)->section);
        section = (*at)->section;
        print_term(c, (*at)->name, (*at)->summary, 21);
    }
    print_heading(c, "More");
    print_term(c, "heddle help COMMAND", "what it does, its options, examples", 28);
    for (const topic *t = topics; t->name; t++) {
        char term[48];
        snprintf(term, sizeof term, "heddle help %s", t->name);
        print_term(c, term, t->summary, 28);
    }
    return CLI_OK;
}

static int exit_codes(cli *c) {
    char number[8];
#define PRINT_EXIT(name, value, text)                                                              \
    snprintf(number, sizeof number, "%d", value);                                                  \
    print_term(c, number, text, 8);
    CLI_EXIT_TABLE(PRINT_EXIT)
#undef PRINT_EXIT
    return CLI_OK;
}

static int show_topic(cli *c, const topic *t) {
    printf("%s%s%s: %s\n", out_colour(c, COLOUR_BOLD), t->name, out_colour(c, COLOUR_NONE),
           t->summary);
    if (t->text) {
        print_paragraphs(t->text);
        return CLI_OK;
    }
    putchar('\n');
    return exit_codes(c);
}

/* Help on a group is the overview's part about it. */
static int show_group(cli *c, const char *group) {
    for (const command *const *at = commands; *at; at++)
        if (command_in_group(*at, group)) print_term(c, (*at)->name, (*at)->summary, 21);
    return CLI_OK;
}

static int run_help(cli *c) {
    bool man = option_given(c, "man");
    if (option_given(c, "completion")) return completion_print(c, option_text(c, "completion"));
    if (option_given(c, "man-pages")) return man_pages(c, option_text(c, "man-pages"));
    if (!c->operand_count) return man ? man_page(NULL) : overview(c);
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", c->operands[0], c->operand_count > 1 ? " " : "",
             c->operand_count > 1 ? c->operands[1] : "");
    const command *cmd = command_named(name);
    if (cmd) return man ? man_page(cmd) : help_command(c, cmd);
    nearest n = nearest_to(name);
    for (const topic *t = topics; t->name; t++) {
        if (strcmp(t->name, name) == 0) return show_topic(c, t);
        nearest_offer(&n, t->name);
    }
    if (command_is_group(name)) return show_group(c, name);
    for (const command *const *at = commands; *at; at++) nearest_offer(&n, (*at)->name);
    char hint[256];
    if (*n.best) snprintf(hint, sizeof hint, "Did you mean \"heddle help %s\"?", n.best);
    else snprintf(hint, sizeof hint, "\"heddle help\" lists what there is.");
    return cli_fail(c, CLI_USAGE, hint, "there is no help on \"%s\"", name);
}

const command command_help = {
    .name = "help",
    .section = "heddle itself",
    .operands = "[COMMAND | TOPIC]",
    .most = 2,
    .summary = "about heddle, a command, or a topic",
    .text = "Without a word: the list of commands and topics.",
    .options = (const cli_option[]){ { "man", NULL, "the manual page, in roff, for man(1)" },
                                     { "completion", "SHELL", "what bash, zsh or fish completes" },
                                     { "man-pages", "DIR", "write all manual pages into DIR" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle help set", "what set does" },
                                       { "heddle help exit-codes", "what the exit status says" },
                                       { "heddle help --man get | man -l -", "as a manual page" },
                                       { NULL, NULL } },
    .run = run_help,
};

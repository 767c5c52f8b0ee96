/* man.c -- manual pages in roff, from the same table as --help. */
#include "cli/help.h"

#include "cli/commands.h"
#include "cli/output.h"
#include <heddle/base.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Text as roff reads it: a dash is a minus, a leading dot or quote is no request. */
static void roff(const char *text, size_t length) {
    bool line_start = true;
    for (size_t i = 0; i < length; i++) {
        char ch = text[i];
        if (line_start && (ch == '.' || ch == '\'')) fputs("\\&", stdout);
        if (ch == '\\') fputs("\\e", stdout);
        else if (ch == '-') fputs("\\-", stdout);
        else putchar(ch);
        line_start = ch == '\n';
    }
}

static void roff_text(const char *text) { roff(text, strlen(text)); }

static void title(const char *name, const char *summary) {
    char upper[64];
    size_t i = 0;
    for (; name[i] && i < sizeof upper - 1; i++)
        upper[i] = name[i] == ' ' ? '-' : (char)toupper((unsigned char)name[i]);
    upper[i] = '\0';
    printf(".TH \"%s\" 1 \"\" \"heddle %s\" \"heddle\"\n.SH NAME\n", upper, hd_version());
    for (const char *at = name; *at; at++) putchar(*at == ' ' ? '-' : *at);
    fputs(" \\- ", stdout);
    roff_text(summary);
    putchar('\n');
}

static void paragraphs(const char *text) {
    while (text) {
        const char *end = strstr(text, "\n\n");
        fputs(".PP\n", stdout);
        roff(text, end ? (size_t)(end - text) : strlen(text));
        putchar('\n');
        text = end ? end + 2 : NULL;
    }
}

static void term(const char *name, const char *argument, const char *text) {
    fputs(".TP\n.B ", stdout);
    roff_text(name);
    if (argument) {
        fputs(" \\fI", stdout);
        roff_text(argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    roff_text(text);
    fputs(".\n", stdout);
}

static void option_term(void *ctx, size_t index, const cli_option *option) {
    (void)ctx;
    (void)index;
    char name[48];
    snprintf(name, sizeof name, "--%s", option->name);
    term(name, option->argument, option->help);
}

static void exit_section(void) {
    fputs(".SH EXIT STATUS\n", stdout);
#define EXIT_TERM(name, value, text) term(#value, NULL, text);
    CLI_EXIT_TABLE(EXIT_TERM)
#undef EXIT_TERM
}

static int command_page(const command *cmd) {
    char name[64];
    snprintf(name, sizeof name, "heddle %s", cmd->name);
    title(name, cmd->summary);
    printf(".SH SYNOPSIS\n.B heddle %s\n.RI \"", cmd->name);
    roff_text(cmd->operands);
    fputs("\" \" \" [OPTION]...\n.SH DESCRIPTION\n", stdout);
    paragraphs(cmd->text);
    if (cmd->also) printf(".PP\nAlso written: heddle %s\n", cmd->also);
    fputs(".SH OPTIONS\n", stdout);
    command_options(cmd, option_term, NULL);
    exit_section();
    fputs(".SH EXAMPLES\n", stdout);
    for (const cli_example *e = cmd->examples; e->line; e++) term(e->line, NULL, e->what);
    fputs(".SH SEE ALSO\n.BR heddle (1)\n", stdout);
    return CLI_OK;
}

static int whole_page(void) {
    title("heddle", "look into a heddle store and change it");
    fputs(".SH SYNOPSIS\n.B heddle\n.IR COMMAND \" ...\"\n.SH DESCRIPTION\n", stdout);
    paragraphs(
        "A store is a file, or a database on a server (postgresql://...); it holds spaces, a "
        "space holds documents, a document is JSON. Each command has a page of its own, such as "
        "heddle-get(1).");
    const char *section = "";
    for (const command *const *at = commands; *at; at++) {
        if (strcmp(section, (*at)->section)) printf(".SS %s\n", (*at)->section);
        section = (*at)->section;
        term((*at)->name, (*at)->operands, (*at)->summary);
    }
    for (const topic *t = topics; t->name; t++) {
        if (!t->text) continue;
        fputs(".SH ", stdout);
        for (const char *at = t->name; *at; at++) putchar(toupper((unsigned char)*at));
        putchar('\n');
        paragraphs(t->text);
    }
    exit_section();
    return CLI_OK;
}

int man_page(const command *cmd) { return cmd ? command_page(cmd) : whole_page(); }

/* Pages are printed to stdout, so stdout becomes the file. */
static int page_into(cli *c, const char *directory, const command *cmd) {
    char file[4096];
    int length = snprintf(file, sizeof file, "%s/heddle%s%s.1", directory, cmd ? "-" : "",
                          cmd ? cmd->name : "");
    if (length < 0 || (size_t)length >= sizeof file)
        return cli_fail(c, CLI_USAGE, NULL, "the name of the directory is too long");
    for (char *at = file + strlen(directory); *at; at++)
        if (*at == ' ') *at = '-';
    if (!freopen(file, "w", stdout))
        return cli_fail(c, CLI_IO, "The directory must exist.", "%s cannot be written", file);
    return man_page(cmd);
}

int man_pages(cli *c, const char *directory) {
    int failed = page_into(c, directory, NULL);
    for (const command *const *at = commands; *at && !failed; at++)
        failed = page_into(c, directory, *at);
    return failed;
}

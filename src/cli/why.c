/* why.c -- why a value is what it is: the program's causes, and the file's commits.
 *
 * A running program knows which change made which node run. Without one the log still has which session
 * committed a change, and the causes of derived values. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/handlers.h"
#include "cli/live.h"
#include "cli/log.h"
#include "cli/missing.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/sender.h"
#include "cli/suggest.h"
#include "cli/workflow_why.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMITS = 3, CELL_WIDTH = 34 };

/* ---- What the program says ---------------------------------------------------------------- */

/* The text behind "by" (*by), or in its place: the node that made the change, or its origin. */
static const char *who_changed(hd_value cause, const char **by) {
    const char *origin = live_text(cause, "origin");
    *by = "by ";
    if (strcmp(origin, "node") == 0) return live_text(cause, "writer");
    if (strcmp(origin, "others") == 0) return "another program";
    if (strcmp(origin, "load") != 0 && strcmp(origin, "revert") != 0) return "a commit";
    *by = "";
    return strcmp(origin, "load") == 0 ? "loaded from the store" : "a commit was refused";
}

/* On two lines where one would be too long. */
static void print_cause(const cli *c, hd_value cause) {
    const char *by, *who = who_changed(cause, &by);
    const char *before = live_text(cause, "before"), *after = live_text(cause, "after");
    const char *arrow = *before ? " -> " : "= ";
    size_t change = strlen(before) + strlen(arrow) + strlen(after);
    bool folds = 4 + CELL_WIDTH + 2 + change + 2 + strlen(by) + strlen(who) > 78;
    printf("    ");
    print_name(c, live_text(cause, "cell"), CELL_WIDTH, 4);
    printf("  %s", out_colour(c, COLOUR_GREEN));
    print_plain(stdout, before);
    fputs(arrow, stdout);
    print_plain(stdout, after);
    printf("%s%s%s", out_colour(c, COLOUR_NONE), folds ? "\n        " : "  ", by);
    print_plain(stdout, who);
    putchar('\n');
}

/* Causes come node by node; a heading for each. */
static void print_causes(const cli *c, hd_value causes) {
    const char *of = "";
    bool pending = false;
    for (hd_iter it = hd_iter_of(causes); hd_iter_next(&it);) {
        bool next = hd_value_as_bool(hd_value_at(it.value, "pending"), false);
        if (strcmp(of, live_text(it.value, "node")) || next != pending) {
            of = live_text(it.value, "node");
            pending = next;
            printf("  ");
            print_plain(stdout, of);
            printf(" %s because this changed\n", next ? "will run" : "ran last");
        }
        print_cause(c, it.value);
    }
}

static void print_inputs(const cli *c, hd_value inputs) {
    if (!hd_value_count(inputs)) return;
    printf("  it reads\n");
    for (hd_iter it = hd_iter_of(inputs); hd_iter_next(&it);) {
        printf("    ");
        print_name(c, live_text(it.value, "cell"), CELL_WIDTH, 4);
        const char *value = live_text(it.value, "value");
        printf("  %s", out_colour(c, *value ? COLOUR_GREEN : COLOUR_DIM));
        print_plain(stdout, *value ? value : "not loaded");
        printf("%s\n", out_colour(c, COLOUR_NONE));
    }
}

static void print_node(const cli *c, hd_value node, bool of_cell) {
    uint64_t runs = live_number(node, "runs");
    hd_value causes = hd_value_at(node, "causes");
    printf("%s%s", of_cell ? "written by " : "", out_colour(c, COLOUR_BOLD));
    live_print(node, "name");
    printf("%s%s, %s, %s, %" PRIu64 " run%s\n", out_colour(c, COLOUR_NONE),
           hd_value_as_bool(hd_value_at(node, "live"), false) ? "" : " (dormant)",
           live_text(node, "kind"), live_text(node, "status"), runs, runs == 1 ? "" : "s");
    if (!runs && strcmp(live_text(node, "status"), "clean") == 0)
        printf("  it need not run: nothing it read has changed since its result was stored\n");
    else if (!runs) printf("  it has not run yet: heddle why-not tells what it waits for\n");
    else if (!hd_value_count(causes)) printf("  it ran because it was new\n");
    print_causes(c, causes);
    print_inputs(c, hd_value_at(node, "inputs"));
}

static void print_answer(const cli *c, hd_value answer) {
    const char *cell = live_text(answer, "cell"), *value = live_text(answer, "value");
    hd_value nodes = hd_value_at(answer, "nodes"), handler = hd_value_at(answer, "handler");
    if (hd_value_exists(handler)) {
        handlers_print(c, handler);
        return;
    }
    if (*cell && *value) {
        fputs(out_colour(c, COLOUR_BOLD), stdout);
        print_plain(stdout, cell);
        printf("%s is %s", out_colour(c, COLOUR_NONE), out_colour(c, COLOUR_GREEN));
        print_plain(stdout, value);
        printf("%s\n", out_colour(c, COLOUR_NONE));
    }
    if (*cell && !hd_value_count(nodes)) printf("no node writes it: commits do\n");
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it);) print_node(c, it.value, *cell);
    if (hd_value_exists(hd_value_at(answer, "more")))
        printf("and %" PRIu64 " nodes more\n", live_number(answer, "more"));
}

/* What the program's answer means for what is asked next. */
typedef struct said {
    bool unserved; /* no program serves the file, and no message was printed */
    bool known;    /* the program has said something of the cell */
    bool absent;   /* and the cell has no value there */
    bool handler;  /* it is a handler, or its stream: no cell that commits change */
} said;

static bool has_value(hd_value answer) { return strlen(live_text(answer, "value")) > strlen("-"); }

static int ask_of(live *l, const char *name, hd_value *answer, bool *not_found) {
    hd_value of = hd_string(l->pool, name);
    return live_ask_gently(l, "why", hd_object_set(l->pool, hd_object(), "of", of), answer,
                           not_found);
}

/* The program has no node of this name: the one that is meant, a handler, or what is near. */
static int ask_again(live *l, const char *name, hd_value *answer) {
    const char *meant = suggest_unique(l, name);
    bool not_found = false;
    if (meant) return ask_of(l, meant, answer, &not_found);
    *answer = hd_object_set(l->pool, hd_object(), "nodes", hd_array());
    return handlers_add(l, name, answer) ? CLI_OK : suggest_node(l, name);
}

static void note_answer(live *l, const char *name, hd_value *answer, said *what) {
    what->absent = !has_value(*answer);
    if (what->absent && *live_text(*answer, "cell")) handlers_add(l, name, answer);
    what->handler = hd_value_exists(hd_value_at(*answer, "handler"));
    what->known = what->handler || *live_text(*answer, "value") || !*live_text(*answer, "cell") ||
                  hd_value_count(hd_value_at(*answer, "nodes"));
}

static int ask_program(cli *c, said *what) {
    live l;
    hd_value answer;
    bool not_found = false;
    int failed = live_open_quietly(c, &l, c->operands[0]);
    if (!failed) failed = ask_of(&l, c->operands[1], &answer, &not_found);
    if (not_found) failed = ask_again(&l, c->operands[1], &answer);
    if (!failed) note_answer(&l, c->operands[1], &answer, what);
    if (what->known && c->json) print_value(answer, HD_JSON_COMPACT);
    else if (what->known) print_answer(c, answer);
    what->unserved = l.unserved;
    live_close(&l);
    return failed;
}

/* ---- What the file says -------------------------------------------------------------------- */

/* The commits of the cell, and the event behind the newest handling among them. */
static int print_commits(cli *c, log_query q, const said *what) {
    bool alone = what->unserved;
    uint64_t printed = 0;
    sender from = { 0 };
    q.seen = sender_note;
    q.seen_ctx = &from;
    if (!c->json) {
        printf("%sthe last commits that touched ", alone ? "" : "\n");
        print_plain(stdout, c->operands[1]);
        puts(alone ? ", as the store tells" : "");
    }
    int failed = log_print(c, &q, &printed);
    if (!failed && !printed && !c->json)
        printf("  none in the log%s\n",
               what->absent ? "" : ": older ones have been folded into the documents");
    if (failed || !from.found) return failed;
    if (!c->json) putchar('\n');
    return sender_print(c, c->operands[0], &from);
}

/* Whether the file knows the cell: it has a value, or the log has commits of it. If not, says what is near. */
static int check_cell(cli *c, log_query q) {
    uint64_t commits = 0;
    bool exists = false;
    q.silent = true;
    q.limit = 1;
    int failed = log_print(c, &q, &commits);
    return failed || commits ? failed : missing_in_file(c, q.file, c->operands[1], NULL, &exists);
}

static int ask_file(cli *c, const said *what) {
    log_query q = { .file = c->operands[0], .limit = COMMITS };
    char *name = strdup(c->operands[1]);
    if (!name) return cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
    log_split(name, &q);
    bool is_cell = q.id && *q.space; /* no file knows nodes */
    int failed = is_cell && !what->known ? check_cell(c, q) : CLI_OK;
    if (is_cell && !failed) failed = print_commits(c, q, what);
    free(name);
    return failed;
}

static int no_cell(cli *c) {
    return cli_fail(c, CLI_NO_PROGRAM,
                    "Start the program; in C it must call hd_runtime_serve(rt, NULL). Of a\n"
                    "  cell the file alone tells something: heddle why FILE space/id.",
                    "no running program serves %s, and \"%s\" is no cell", c->operands[0],
                    c->operands[1]);
}

static int run(cli *c) {
    said what = { 0 };
    int failed;
    if (why_instance(c, &failed)) return failed;
    failed = ask_program(c, &what);
    bool alone = what.unserved;
    if (alone && !strchr(c->operands[1], '/')) return no_cell(c);
    if (what.handler || (failed && !alone)) return failed;
    int unknown;
    if (alone && why_unknown(c, false, &unknown)) return unknown;
    failed = ask_file(c, &what);
    if (!failed && alone && !c->json)
        cli_warn(c, "no running program serves %s; one that does tells which runs led here",
                 c->operands[0]);
    return failed;
}

const command command_why = {
    .name = "why",
    .also = "workflow why",
    .section = "A running program",
    .operands = "FILE CELL|NODE|INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "why a value is what it is, or a node ran",
    .text =
        "Of a cell: its value, the node that writes it, what made that run, and what made "
        "that change, down to commits; then the last commits of the file that touched it. Of "
        "a node (a name as heddle graph shows it, or #7): the same of its last run. Of a handler "
        "or its stream: what it has done; heddle streams tells more. Of an "
        "instance of a "
        "workflow (name/key): its status, and what its steps wait for.\n\n"
        "Asks the program that serves FILE. If none does, it shows the commits in the file, "
        "each with the node or session that made it and its causes. Values before and after "
        "are known while the program traces (heddle trace --on).",
    .options = (const cli_option[]){ OPTIONS_LIVE, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle why shop.db main/total", "how the total came about" },
                               { "heddle why shop.db main/stock#/apples", "what changed a place" },
                               { "heddle why shop.db show", "why the effect ran" },
                               { NULL, NULL } },
    .run = run,
};

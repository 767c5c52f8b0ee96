/* workflow_show.c -- one instance: its status, steps, variables, result. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/workflow_tree.h"
#include "cli/workflow_value.h"
#include "cli/workflow_why.h"
#include <stdio.h>
#include <string.h>

enum { JOURNAL_MOST = 100000 };

static void print_label(const cli *c, const char *name) {
    printf("  %s%-9s%s ", out_colour(c, COLOUR_DIM), name, out_colour(c, COLOUR_NONE));
}

static void print_field(const cli *c, const char *name, hd_value v) {
    if (!hd_value_exists(v)) return;
    print_label(c, name);
    print_value(v, HD_JSON_COMPACT);
}

/* On a terminal that is too narrow for the object, each of its members has a line. */
static void print_members(const flow *f, const char *name, hd_value v) {
    const cli *c = f->s.c;
    const char *words = hd_json_print(f->s.pool, v, HD_JSON_COMPACT, NULL);
    if (!words || hd_value_kind(v) != HD_KIND_OBJECT || name_width(words) + 12 <= line_room(c)) {
        print_field(c, name, v);
        return;
    }
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it); name = "") {
        print_label(c, name);
        print_plain(stdout, it.key);
        fputs(" = ", stdout);
        print_value(it.value, HD_JSON_COMPACT);
    }
}

/* Those that no step has taken, in the order in which they came. */
static void print_signals(const flow *f, hd_value kept) {
    hd_value all = hd_array();
    for (hd_iter it = hd_iter_of(kept); hd_iter_next(&it);)
        all = hd_array_append(f->s.pool, all, it.value);
    if (hd_value_count(all)) print_field(f->s.c, "signals", all);
}

static void print_error(flow *f, hd_value doc) {
    const char *words = flow_error_text(f, doc);
    if (!*words) return;
    print_label(f->s.c, "error");
    print_one_line(stdout, words + strlen(": "));
    putchar('\n');
}

/* "started 12:03:04, took 3.2 s"; "" if it has not begun. */
static const char *times_text(hd_value doc, char *out, size_t size) {
    char when[WHEN_TEXT], span[SPAN_TEXT];
    uint64_t began = flow_number(doc, "started"), ended = flow_number(doc, "finished");
    uint64_t now =
        ended ? ended : wall_ms(); /* the clock of the machine that began it may be ahead */
    out[0] = '\0';
    if (began)
        snprintf(out, size, "%s, %s%s", when_text(began, when), ended ? "took " : "for ",
                 span_text(now > began ? now - began : 0, span));
    return out;
}

/* The times stand behind the name and the status, or on a line of their own where those are long. */
static void print_head(flow *f, hd_value doc) {
    const cli *c = f->s.c;
    char times[WHEN_TEXT + SPAN_TEXT + 8];
    const char *status = flow_text(doc, "status");
    bool begun = *times_text(doc, times, sizeof times);
    int columns = name_width(f->id) + name_width(status) + name_width(times) + 12;
    bool folds = begun && columns > output_width();
    printf("%s", out_colour(c, COLOUR_BOLD));
    print_plain(stdout, f->id);
    printf("%s  ", out_colour(c, COLOUR_NONE));
    print_status(c, stdout, status, true);
    printf("%s%s\n", begun && !folds ? "  started " : "", folds ? "" : times);
    if (folds) print_label(c, "started"), puts(times);
    print_label(c, "version");
    printf("%s\n", flow_text(doc, "version"));
    if (!flow_is_over(doc)) flow_print_runner(f);
    if (!flow_is_over(doc)) flow_print_requests(f);
    if (!flow_is_over(doc)) flow_print_places(f);
}

typedef struct hearer {
    tree *t;
    hd_value document;
} hearer;

static bool hear(hd_value entry, void *ctx) {
    const hearer *at = ctx;
    tree_hear(at->t, at->document, entry);
    return true;
}

/* Where the instance has come from is told by its journal, if it keeps one that is not too long to be read. */
static int look_back(flow *f, tree *t, hd_value doc) {
    uint64_t entries = flow_number(doc, "journal");
    if (!flow_is_over(doc) || !entries || entries > JOURNAL_MOST) return CLI_OK;
    hearer at = { t, doc };
    int failed = flow_engine(f);
    hd_status status = failed ? HD_OK : hd_workflow_journal(f->engine, f->id, hear, &at);
    return status ? flow_refused(f, status, NULL) : failed;
}

static int show(flow *f, hd_value ir, hd_value doc) {
    tree t;
    if (f->s.c->json) {
        bool over = flow_is_over(doc);
        doc = hd_object_set(f->s.pool, doc, "id", hd_string(f->s.pool, f->id));
        if (!over) doc = flow_with_requests(f, doc);
        return print_value(doc, HD_JSON_COMPACT) ? CLI_INTERNAL : CLI_OK;
    }
    print_head(f, doc);
    print_members(f, "input", hd_value_at(doc, "input"));
    print_members(f, "variables", flow_variables(f->s.pool, doc));
    print_signals(f, hd_value_at(doc, "signals"));
    print_field(f->s.c, "result", flow_readable(f->s.pool, hd_value_at(doc, "result"), doc));
    print_error(f, doc);
    if (!hd_value_exists(ir)) return CLI_OK;
    int failed = tree_open(f->s.c, &t, &f->s, ir, f->id);
    t.told = why_steps(f, doc);
    bool looked = !failed && tree_look(&t, doc);
    if (looked) failed = look_back(f, &t, doc);
    if (looked && !failed) tree_print(&t, stdout, wall_ms());
    tree_close(&t);
    return failed;
}

static int run(cli *c) {
    flow f;
    hd_value doc, ir = { 0 };
    int failed = flow_open(c, &f, STORE_READ);
    if (!failed) failed = flow_instance(&f, c->operands[1], &doc);
    if (!failed && *flow_text(doc, "version"))
        failed = flow_version(&f, flow_text(doc, "version"), &ir);
    if (!failed) failed = show(&f, ir, doc);
    return flow_close(&f, failed);
}

const command command_workflow_show = {
    .name = "workflow show",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "one instance: steps, variables, result",
    .text =
        "Prints the status of an instance (name/key), its input, its variables, its result or "
        "error and where that was raised, and a tree of its steps: open now, done, failed, "
        "passed (done, or raised what was caught, or left out: given up for another branch, or of "
        "an each that had nothing to do), to come, or \"-\" where neither the document nor the "
        "journal tells. If a program runs the "
        "instance, it is asked: "
        "\"runs\" is an open step that a worker does, \"no worker\" one whose action no worker "
        "has. If no program runs it, what was asked of it meanwhile (cancel, pause) is named. A "
        "step that another process does through the "
        "store has a line that names it. A name like \"charge #pay\" is the "
        "action and the node: other commands want the node. With --json the instance's "
        "document, with its id, and what was asked of it as \"asked\".",
    .options =
        (const cli_option[]){
            OPTION_SPACE,
            { "socket", "PATH", "of the program that runs it, if it is not beside the store" },
            { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle workflow show shop.db checkout/order-17", "one instance" },
                               { NULL, NULL } },
    .run = run,
};

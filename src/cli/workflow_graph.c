/* workflow_graph.c -- a workflow as a picture, and where an instance stands in it. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/workflow.h"
#include <stdio.h>
#include <string.h>

static int form_of(cli *c, hd_graph_form *out) {
    static const char *const names[] = { "text", "mermaid", "dot", "svg", "json" };
    const char *as = option_text(c, "as");
    *out = c->json ? HD_GRAPH_JSON : HD_GRAPH_TEXT;
    if (!as) return CLI_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(as, names[i]) == 0) return *out = (hd_graph_form)i, CLI_OK;
    return cli_fail(c, CLI_USAGE, NULL, "--as is text, mermaid, dot, svg or json, not \"%s\"", as);
}

static int draw(flow *f, hd_graph_form form) {
    hd_value ir, document;
    hd_error error = { 0 };
    size_t length;
    int failed = flow_find(f, f->s.c->operands[1], &ir, &document);
    if (failed) return failed;
    hd_value picture = hd_workflow_graph(f->s.pool, ir, form, document, &error);
    const char *text = hd_value_text(picture, &length);
    if (!text)
        return cli_fail(f->s.c, exit_of(hd_value_status(picture)),
                        "Other forms have no limit: --as dot, mermaid, text.", "%s",
                        *error.message ? error.message : hd_status_text(hd_value_status(picture)));
    if (form == HD_GRAPH_JSON) write_json_text(stdout, text, length);
    else print_plain_lines(stdout, text);
    return CLI_OK;
}

static int run(cli *c) {
    flow f;
    hd_graph_form form;
    int failed = form_of(c, &form);
    if (failed) return failed;
    failed = flow_open(c, &f, STORE_READ);
    if (!failed) failed = draw(&f, form);
    return flow_close(&f, failed);
}

const command command_workflow_graph = {
    .name = "workflow graph",
    .section = FLOW_SECTION,
    .operands = "STORE WORKFLOW|INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "a workflow's nodes and edges, also as a drawing",
    .text = "Prints the graph of a workflow: each node with its kind and deps_required, the "
            "arrivals it waits for, and its edges: FORWARD, CONTINUE and BREAK out of a LOOP_HEAD, "
            "BACK to it, GUARD with its condition, ELEM, JOIN, EXCEPT.\n\n"
            "Of an instance (name/key): its own version, with what stands where: ready steps, "
            "deps_satisfied where some arrivals have come, visits of loops.",
    .options = (const cli_option[]){ { "as", "FORM", "text (default), mermaid, dot, svg or json" },
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle workflow graph shop.db checkout", "as text" },
            { "heddle workflow graph shop.db checkout --as svg > checkout.svg", "as a drawing" },
            { NULL, NULL } },
    .run = run,
};

/* ---- explain ----------------------------------------------------------------------------- */

static void print_names(hd_value names) {
    bool first = true;
    for (hd_iter it = hd_iter_of(names); hd_iter_next(&it); first = false) {
        fputs(first ? "  " : ", ", stdout);
        print_plain(stdout, hd_value_as_text(it.value, ""));
    }
}

static void print_loop(const cli *c, hd_value loop) {
    bool parallel = hd_value_as_bool(hd_value_at(loop, "parallel"), false);
    const char *at = flow_text(loop, "at");
    printf("%s", out_colour(c, COLOUR_BOLD));
    print_plain(stdout, flow_text(loop, "node"));
    printf("%s  %s, %s%s%s", out_colour(c, COLOUR_NONE), flow_text(loop, "kind"),
           out_colour(c, parallel ? COLOUR_GREEN : COLOUR_YELLOW),
           parallel ? "parallel" : "one after the other", out_colour(c, COLOUR_NONE));
    if (*at) {
        fputs("  ", stdout);
        print_plain(stdout, at);
    }
    putchar('\n');
    if (hd_value_count(hd_value_at(loop, "actions"))) {
        printf("  actions");
        print_names(hd_value_at(loop, "actions"));
        putchar('\n');
    }
    for (hd_iter it = hd_iter_of(hd_value_at(loop, "why")); hd_iter_next(&it);) {
        printf("  - ");
        print_wrapped(hd_value_as_text(it.value, ""), 4, 4);
    }
}

static int explain(flow *f) {
    hd_value ir, document;
    hd_error error = { 0 };
    int failed = flow_find(f, f->s.c->operands[1], &ir, &document);
    if (failed) return failed;
    hd_value loops = hd_workflow_explain(f->s.pool, ir, &error);
    if (hd_value_status(loops))
        return cli_fail(f->s.c, exit_of(hd_value_status(loops)), NULL, "%s", error.message);
    if (f->s.c->json) print_value(loops, HD_JSON_COMPACT);
    else if (!hd_value_count(loops)) printf("there are no loops and nothing parallel in it\n");
    for (hd_iter it = hd_iter_of(loops); !f->s.c->json && hd_iter_next(&it);)
        print_loop(f->s.c, it.value);
    return CLI_OK;
}

static int run_explain(cli *c) {
    flow f;
    int failed = flow_open(c, &f, STORE_READ);
    if (!failed) failed = explain(&f);
    return flow_close(&f, failed);
}

const command command_workflow_explain = {
    .name = "workflow explain",
    .section = FLOW_SECTION,
    .operands = "STORE WORKFLOW|INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "which loops run in parallel, why others do not",
    .text =
        "Names the loops and the parallel parts of a workflow. A loop that runs one "
        "iteration after the other has the reasons: its condition, variables that are carried from "
        "one iteration to the next, objects that its body changes, ways out of it.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow explain shop.db checkout", "its loops" },
                                       { NULL, NULL } },
    .run = run_explain,
};

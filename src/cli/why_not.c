/* why_not.c -- what a node waits for, and how to go on. */
#include "cli/commands.h"
#include "cli/handlers.h"
#include "cli/live.h"
#include "cli/missing.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/suggest.h"
#include "cli/workflow_why.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct advice {
    const char *reason, *text;
} advice;

/* How to make it run, by reason. */
static const advice advices[] = {
    { "clean", "It runs when something it read changes. heddle graph shows what that is." },
    { "dormant",
      "It runs when a live node reads its output: add a sink or an effect, or use hd_pull." },
    { "debounce", "It waits until its inputs are quiet: hd_node_set_debounce(rt, node, 0)." },
    { "throttle", "It ran a moment ago: hd_node_set_throttle(rt, node, 0)." },
    { "backoff",
      "It and other nodes invalidate each other. heddle trace shows which node writes what." },
    { "echo", "Two writers overwrite each other's value. heddle why names them." },
    { "loading", "The store has not delivered the document yet." },
    { "running", "Its run is suspended: the program must call hd_run_resume." },
    { "awaits", "It runs when that run has ended: the program must call hd_run_resume." },
    { "held", "The program holds first runs until its data is there: hd_hold_end ends that." },
    { "runs", "The program must pump: hd_runtime_pump, run or settle." },
    { NULL, NULL },
};

static const char *advice_on(const char *reason) {
    for (const advice *a = advices; a->reason; a++)
        if (strcmp(a->reason, reason) == 0) return a->text;
    return NULL;
}

static void print_node(const cli *c, hd_value node) {
    uint64_t runs = live_number(node, "runs");
    const char *reader = live_text(node, "live_reader");
    const char *how = advice_on(live_text(node, "reason"));
    fputs(out_colour(c, COLOUR_BOLD), stdout);
    live_print(node, "name");
    printf("%s  %s, %s, %" PRIu64 " run%s\n", out_colour(c, COLOUR_NONE), live_text(node, "kind"),
           live_text(node, "status"), runs, runs == 1 ? "" : "s");
    printf("  ");
    print_wrapped(live_text(node, "why_not"), 2, 2);
    if (hd_value_as_bool(hd_value_at(node, "live"), false)) {
        printf("  it is live: %s%s", live_text(node, "why_live"), *reader ? ": " : "");
        print_plain(stdout, reader);
        putchar('\n');
    }
    if (!how) return;
    printf("  %s", out_colour(c, COLOUR_DIM));
    print_wrapped(how, 2, 2);
    fputs(out_colour(c, COLOUR_NONE), stdout);
}

static void print_answer(const cli *c, hd_value answer) {
    const char *cell = live_text(answer, "cell");
    hd_value nodes = hd_value_at(answer, "nodes");
    hd_value handler = hd_value_at(answer, "handler");
    if (hd_value_exists(handler)) {
        handlers_print(c, handler);
    } else if (*cell && !hd_value_count(nodes)) {
        printf("no node writes ");
        print_plain(stdout, cell);
        printf(": only commits change it\n");
    }
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it);) print_node(c, it.value);
}

static int ask_of(live *l, const char *name, hd_value *answer, bool *not_found) {
    hd_value of = hd_string(l->pool, name);
    return live_ask_gently(l, "why-not", hd_object_set(l->pool, hd_object(), "of", of), answer,
                           not_found);
}

/* No node writes the cell, and no handler takes it: whether there is such a cell at all. */
static int check_cell(live *l, const char *name, hd_value answer) {
    nearest near = nearest_to(name);
    bool exists, known = strlen(live_text(answer, "value")) > strlen("-");
    if (!*live_text(answer, "cell") || hd_value_count(hd_value_at(answer, "nodes")) || known)
        return CLI_OK;
    for (hd_iter it = hd_iter_of(handlers_of(l)); hd_iter_next(&it);)
        nearest_offer(&near, live_text(it.value, "stream"));
    return missing_in_file(l->c, l->file, name, &near, &exists);
}

/* The program has no node of this name: the one that is meant, or what is near. */
static int ask_again(live *l, const char *name, hd_value *answer) {
    const char *meant = suggest_unique(l, name);
    bool not_found = false;
    int failed;
    if (meant) return ask_of(l, meant, answer, &not_found);
    *answer = hd_object_set(l->pool, hd_object(), "nodes", hd_array());
    if (handlers_add(l, name, answer)) return CLI_OK;
    return why_unknown(l->c, true, &failed) ? failed : suggest_node(l, name);
}

static int run(cli *c) {
    live l;
    hd_value answer;
    bool not_found = false;
    int failed;
    if (why_instance(c, &failed)) return failed;
    failed = live_open_quietly(c, &l, c->operands[0]);
    if (!failed) failed = ask_of(&l, c->operands[1], &answer, &not_found);
    if (not_found) failed = ask_again(&l, c->operands[1], &answer);
    else if (!failed && !handlers_add(&l, c->operands[1], &answer))
        failed = check_cell(&l, c->operands[1], answer);
    if (l.unserved) {
        live_close(&l);
        if (why_unknown(c, false, &failed)) return failed;
        /* Says that no program serves the file, unless one has begun to meanwhile. */
        failed = live_open(c, &l, c->operands[0]);
        if (!failed) failed = ask_of(&l, c->operands[1], &answer, NULL);
    }
    if (!failed && c->json) print_value(answer, HD_JSON_COMPACT);
    else if (!failed) print_answer(c, answer);
    live_close(&l);
    return failed;
}

const command command_why_not = {
    .name = "why-not",
    .also = "workflow why-not",
    .section = "A running program",
    .operands = "FILE NODE|INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "why a node does not run now",
    .text =
        "Asks the program that serves FILE what NODE waits for: nothing it read has changed, no "
        "live node reads its output, it is debounced, throttled, backing off, loading or "
        "suspended. NODE is a name as heddle graph shows it (parent/child for children, #7 for "
        "one without a name), or a cell: then the nodes that write it. Of a handler or its stream: "
        "whether events wait for it; heddle streams tells more.\n\n"
        "Of an instance of a workflow (name/key), or a step of one (name/key#node): what it "
        "waits for. Only the program that runs the instance knows that no worker serves an "
        "action; if it cannot be asked, the command reads the store.",
    .options = (const cli_option[]){ OPTIONS_LIVE, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle why-not shop.db reorder", "what it waits for" },
            { "heddle why-not shop.db main/total", "which nodes write a cell" },
            { "heddle why-not shop.db checkout/order-17", "what an instance waits for" },
            { NULL, NULL } },
    .run = run,
};

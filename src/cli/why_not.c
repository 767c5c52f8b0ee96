/* why_not.c -- what a node waits for, and how to go on. */
#include "cli/commands.h"
#include "cli/live.h"
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
      "It runs when somebody looks: a sink or effect that reads its output, or hd_pull." },
    { "debounce", "It waits until its inputs are quiet: hd_node_set_debounce(rt, node, 0)." },
    { "throttle", "It ran a moment ago: hd_node_set_throttle(rt, node, 0)." },
    { "backoff", "It and others invalidate each other. heddle trace shows who writes what." },
    { "echo", "Two writers overwrite each other's value. heddle why names them." },
    { "loading", "The store has not delivered the document yet." },
    { "running", "Its run was suspended: the program must call hd_run_resume." },
    { "awaits", "It runs when that run has ended: the program must call hd_run_resume." },
    { "held", "The program waits for its data first: hd_hold_end lets it go." },
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
        printf("  somebody looks: %s%s", live_text(node, "why_live"), *reader ? ": " : "");
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
    if (*cell && !hd_value_count(nodes)) {
        printf("no node writes ");
        print_plain(stdout, cell);
        printf(": it changes when somebody commits to it\n");
    }
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it);) print_node(c, it.value);
}

static int run(cli *c) {
    live l;
    hd_value answer;
    bool not_found = false;
    int failed;
    if (why_instance(c, &failed)) return failed;
    failed = live_open(c, &l, c->operands[0]);
    if (!failed) {
        hd_value of = hd_string(l.pool, c->operands[1]);
        failed = live_ask_gently(&l, "why-not", hd_object_set(l.pool, hd_object(), "of", of),
                                 &answer, &not_found);
    }
    if (not_found) failed = suggest_node(&l, c->operands[1]);
    if (!failed && c->json) print_value(answer, HD_JSON_COMPACT);
    else if (!failed) print_answer(c, answer);
    live_close(&l);
    return failed;
}

const command command_why_not = {
    .name = "why-not",
    .section = "A running program",
    .operands = "FILE NODE|INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "why a node does not run now",
    .text = "Asks the program that serves FILE what NODE waits for: nothing has changed, nobody "
            "looks, it is debounced, throttled, backing off, loading or suspended. NODE is a name "
            "as heddle graph shows it (parent/child for children, #7 for one without a name), or "
            "a cell: then the nodes that write it.\n\n"
            "Of an instance of a workflow (name/key), or a step of one (name/key#node): what it "
            "waits for. "
            "That no worker serves an action is known by the program that runs the instance; "
            "without it "
            "the store is read.",
    .options = (const cli_option[]){ OPTIONS_LIVE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle why-not shop.db reorder", "what it waits for" },
                                       { "heddle why-not shop.db main/total", "who writes a cell" },
                                       { "heddle why-not shop.db checkout/order-17",
                                         "what an instance waits for" },
                                       { NULL, NULL } },
    .run = run,
};

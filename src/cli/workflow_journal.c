/* workflow_journal.c -- what an instance has done, in order, where its workflow keeps a journal. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/signals.h"
#include "cli/workflow.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct listing {
    flow f;
    uint64_t left, shown;
    uint64_t began; /* milliseconds; of the first entry */
} listing;

static void print_line(const listing *w, hd_value entry) {
    char when[WHEN_TEXT], span[SPAN_TEXT];
    uint64_t at = flow_number(entry, "at");
    const char *what = flow_text(entry, "what"), *edge = flow_text(entry, "edge");
    const char *node = flow_text(entry, "node"), *signal = flow_text(entry, "signal");
    const char *where = *node ? node : signal;
    bool bad = strcmp(what, "raise") == 0 || strcmp(what, "lost") == 0;
    printf("%6" PRIu64 "  %s  %10s  %s%s%s", flow_number(entry, "seq"), when_text(at, when),
           span_text(at > w->began ? at - w->began : 0, span),
           out_colour(w->f.s.c, bad ? COLOUR_RED : COLOUR_NONE), what,
           out_colour(w->f.s.c, COLOUR_NONE));
    if (*where) printf("%*s", (int)(9 - strlen(what)), ""), print_plain(stdout, where);
    if (*edge) printf("  %s", edge);
    if (flow_number(entry, "attempt")) printf("  attempt %" PRIu64, flow_number(entry, "attempt"));
    putchar('\n');
}

static bool print_entry(hd_value entry, void *ctx) {
    listing *w = ctx;
    if (!w->shown) w->began = flow_number(entry, "at");
    if (!w->left) return false;
    w->left--;
    w->shown++;
    if (w->f.s.c->json) print_value(entry, HD_JSON_COMPACT);
    else print_line(w, entry);
    return !output_broken() && !interrupted();
}

/* Without a journal there are start, end and open steps: workflow show has those. */
static int no_journal(cli *c, const char *id) {
    return cli_fail(
        c, CLI_NOT_FOUND,
        "Ask for one where the workflow is written: journal = \"steps\" in the Python\n"
        "  class, hd_flow_journal(f, \"steps\") in C, \"journal\": \"steps\" in the IR.\n"
        "  It counts for instances that start afterwards.",
        "%s has no journal: its workflow keeps none", id);
}

/* Entries come with the instance's first steps. */
static int not_begun(cli *c, const char *id) {
    return cli_fail(c, CLI_NOT_FOUND, "heddle workflow show says what it waits for.",
                    "%s has not begun: nothing is in its journal yet", id);
}

static int list(listing *w, hd_value doc) {
    hd_status status = hd_workflow_journal(w->f.engine, w->f.id, print_entry, w);
    if (status) return flow_refused(&w->f, status, NULL);
    if (interrupted()) return interrupted_status();
    if (w->shown || !w->left) return CLI_OK;
    bool queued = !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "queued");
    return queued ? not_begun(w->f.s.c, w->f.id) : no_journal(w->f.s.c, w->f.id);
}

static int run(cli *c) {
    listing w = { .left = UINT64_MAX };
    hd_value doc;
    int failed = option_number(c, "limit", &w.left);
    if (failed) return failed;
    failed = flow_open_engine(c, &w.f, STORE_READ);
    if (!failed) failed = flow_instance(&w.f, c->operands[1], &doc);
    if (!failed) failed = list(&w, doc);
    return flow_close(&w.f, failed);
}

const command command_workflow_journal = {
    .name = "workflow journal",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "what an instance has done, and when",
    .text = "Prints the journal of an instance (name/key), one entry a line: its number, when, how "
            "long after the first, what, and the node, or the name of the signal. A workflow keeps "
            "a journal if it asks for "
            "one: \"steps\" (start, done, raise, retry, lost, signal, cancel, pause, resume, end) "
            "or \"nodes\" (also run and edge). The exit status is 2 if there is none.",
    .options = (const cli_option[]){ { "limit", "N", "the first N entries" },
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle workflow journal shop.db checkout/order-17", "the whole way" },
            { "heddle workflow journal shop.db checkout/order-17 --json", "for a program" },
            { NULL, NULL } },
    .run = run,
};

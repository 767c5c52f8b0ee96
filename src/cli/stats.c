/* stats.c -- the nodes of a running program: how often, how long, what they wait for. */
#include "cli/commands.h"
#include "cli/handlers.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/parse.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FIGURES: columns of what stands behind the name. */
enum { LIMIT_DEFAULT = 20, NAME_LEAST = 21, FIGURES = 59 };

static const char *const orders[] = { "runs", "time", "failures", "name", "order", NULL };

static int check_order(cli *c, const char *by) {
    for (const char *const *o = orders; *o; o++)
        if (strcmp(*o, by) == 0) return CLI_OK;
    return cli_fail(c, CLI_USAGE, "--by runs, time, failures, name or order",
                    "there is no order \"%s\"", by);
}

/* The runtime times a sample of the runs; the time of all is estimated from it. */
static void print_times(hd_value node) {
    uint64_t timed = live_number(node, "timed_runs"), runs = live_number(node, "runs");
    double each = timed ? (double)live_number(node, "total_ns") / (double)timed : 0;
    char per[TIME_TEXT] = "-", all[TIME_TEXT] = "-";
    if (timed && runs) {
        time_text(each, per);
        time_text(each * (double)runs, all);
    }
    printf(" %8s %8s", per, all);
}

/* What keeps it from running, in a few words. */
static void gate_text(hd_value node, char *out, size_t size) {
    const char *reason = live_text(node, "reason");
    char wait[TIME_TEXT];
    uint64_t ns = live_number(node, "wait_ns");
    if (strcmp(reason, "clean") == 0) snprintf(out, size, "%s", "");
    else if (strcmp(reason, "runs") == 0) snprintf(out, size, "runs next");
    else if (ns) snprintf(out, size, "%s %s", reason, time_text((double)ns, wait));
    else snprintf(out, size, "%s", reason);
}

static void print_node(const cli *c, hd_value node, int width) {
    const char *status = live_text(node, "status");
    char gate[40], failed[24] = "";
    uint64_t failures = live_number(node, "failures");
    gate_text(node, gate, sizeof gate);
    if (failures) snprintf(failed, sizeof failed, "%" PRIu64, failures);
    print_name(c, live_text(node, "name"), width, 0);
    printf(" %7" PRIu64 " %s%5s%s", live_number(node, "runs"), out_colour(c, COLOUR_RED), failed,
           out_colour(c, COLOUR_NONE));
    print_times(node);
    printf("  %s%s%s", out_colour(c, strcmp(status, "clean") ? COLOUR_YELLOW : COLOUR_NONE), status,
           out_colour(c, COLOUR_NONE));
    if (*gate) printf("%*s%s", 10 - (int)strlen(status), "", gate);
    putchar('\n');
}

/* Handlers are not timed. */
static void print_handler(const cli *c, hd_value handler, int width) {
    char failed[24] = "";
    uint64_t refused = live_number(handler, "failed"), queued = live_number(handler, "queued");
    if (refused) snprintf(failed, sizeof failed, "%" PRIu64, refused);
    print_name(c, handler_name(handler), width, 0);
    printf(" %7" PRIu64 " %s%5s%s %8s %8s  handler", live_number(handler, "handled"),
           out_colour(c, COLOUR_RED), failed, out_colour(c, COLOUR_NONE), "-", "-");
    if (queued) printf("   %" PRIu64 " in line", queued);
    putchar('\n');
}

static void print_totals(hd_value answer) {
    hd_value t = hd_value_at(answer, "totals");
    uint64_t shown = hd_value_count(hd_value_at(answer, "nodes")), all = live_number(t, "nodes");
    printf("\nnodes: %" PRIu64 "; effects: %" PRIu64 "; live: %" PRIu64 "; invalid: %" PRIu64 "\n",
           all, live_number(t, "effects"), live_number(t, "live"), live_number(t, "invalid"));
    printf("runs: %" PRIu64 "; passes: %" PRIu64 "; failed: %" PRIu64 "; retried: %" PRIu64 "\n",
           live_number(t, "runs"), live_number(t, "passes"), live_number(t, "failures"),
           live_number(t, "retries"));
    if (shown < all)
        printf("nodes that are not shown: %" PRIu64 " (--limit %" PRIu64 ")\n", all - shown,
               all < 1000 ? all : 1000);
}

/* The longest name decides, as far as the terminal has room. */
static int width_of_names(hd_value rows, const char *key, int width) {
    int most = output_width() - FIGURES;
    for (hd_iter it = hd_iter_of(rows); hd_iter_next(&it);) {
        int columns = name_width(live_text(it.value, key));
        if (columns > width && columns <= most) width = columns;
    }
    return width;
}

static void print_table(const cli *c, hd_value answer) {
    hd_value handlers = hd_value_at(answer, "handlers");
    int width = width_of_names(hd_value_at(answer, "nodes"), "name", NAME_LEAST);
    width = width_of_names(handlers, "handler", width);
    printf("%s%-*s %7s %5s %8s %8s  %-9s %s%s\n", out_colour(c, COLOUR_DIM), width, "node", "runs",
           "fail", "per run", "all", "status", "waits for", out_colour(c, COLOUR_NONE));
    for (hd_iter it = hd_iter_of(hd_value_at(answer, "nodes")); hd_iter_next(&it);)
        print_node(c, it.value, width);
    for (hd_iter it = hd_iter_of(handlers); hd_iter_next(&it);) print_handler(c, it.value, width);
    print_totals(answer);
}

static int run(cli *c) {
    live l;
    hd_value answer;
    uint64_t limit = LIMIT_DEFAULT;
    const char *by = option_text(c, "by") ? option_text(c, "by") : "runs";
    int failed = option_number(c, "limit", &limit);
    if (!failed) failed = check_order(c, by);
    if (!failed && (limit < 1 || limit > 1000))
        failed = cli_fail(c, CLI_USAGE, NULL, "--limit is a number from 1 to 1000");
    if (failed) return failed;
    failed = live_open(c, &l, c->operands[0]);
    if (!failed) {
        hd_value more = hd_object_set(l.pool, hd_object(), "by", hd_string(l.pool, by));
        more = hd_object_set(l.pool, more, "limit", hd_int(l.pool, (int64_t)limit));
        failed = live_ask(&l, "stats", more, &answer);
    }
    if (!failed) answer = hd_object_set(l.pool, answer, "handlers", handlers_of(&l));
    if (!failed && c->json) print_value(answer, HD_JSON_COMPACT);
    else if (!failed) print_table(c, answer);
    live_close(&l);
    return failed;
}

const command command_stats = {
    .name = "stats",
    .section = "A running program",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "its nodes by runs and time, and what they wait for",
    .text =
        "Asks the program that serves FILE for its nodes and prints those that ran most. Times "
        "come from a sample (one run in 64, unless the program says otherwise): \"all\" is "
        "estimated from it, and a dash means that none was timed yet. Handlers stand below, with "
        "events that they handled and refused.",
    .options = (const cli_option[]){ { "by", "ORDER",
                                       "runs (default), time, failures, name, or order: the one "
                                       "they run in" },
                                     { "limit", "N", "at most N nodes (default 20)" },
                                     OPTIONS_LIVE,
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle stats shop.db --by time", "where the time goes" },
                                       { "heddle stats shop.db --json", "for a program" },
                                       { NULL, NULL } },
    .run = run,
};

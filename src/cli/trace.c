/* trace.c -- the last runs of a running program, as a table or for chrome://tracing. */
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/signals.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SECONDS_DEFAULT = 3, SECONDS_MAX = 3600, LIMIT_DEFAULT = 40, NAME_LEAST = 26, TIMES = 20 };

typedef struct tracing {
    live l;
    uint64_t seconds, limit;
    bool chrome;
} tracing;

/* ---- Asking ------------------------------------------------------------------------------ */

/* `on` as in the request: "" leaves the trace as it is. */
static int ask(tracing *t, const char *on, const char *form, hd_value *out) {
    hd_pool *pool = t->l.pool;
    hd_value more = hd_object();
    if (*on) more = hd_object_set(pool, more, "on", hd_bool(strcmp(on, "on") == 0));
    if (*form) more = hd_object_set(pool, more, "as", hd_string(pool, form));
    return live_ask(&t->l, "trace", more, out);
}

static void wait_seconds(const tracing *t) {
    uint64_t until = clock_ms() + t->seconds * 1000;
    for (uint64_t now; (now = clock_ms()) < until && !interrupted();) {
        uint64_t left = until - now;
        progress(t->l.c, "tracing: %" PRIu64 " s left", (left + 999) / 1000);
        wait_readable(-1, left < 250 ? (int)left : 250);
    }
    progress(t->l.c, "%s", "");
}

/* Switches the trace on for a while, and off again also after a failure or Ctrl-C; then shows the runs of
 * that time. */
static int trace_for_a_while(tracing *t, const char *form, hd_value *out) {
    int failed = ask(t, "on", "", out);
    if (failed) return failed;
    if (!t->l.c->progress)
        cli_warn(t->l.c, "tracing for %" PRIu64 " s (the program did not trace)", t->seconds);
    wait_seconds(t);
    t->l.finishing = true;
    return ask(t, "off", form, out);
}

/* ---- Showing ----------------------------------------------------------------------------- */

/* What a run came from and led to: the cells that caused it, and that nothing changed. */
static void print_causes(const cli *c, hd_value run_, int room) {
    hd_value causes = hd_value_at(run_, "causes");
    int column = 0;
    const char *word = hd_value_as_bool(hd_value_at(run_, "set_aside"), false)   ? "(set aside) "
                       : hd_value_as_bool(hd_value_at(run_, "first"), false)     ? "(first run) "
                       : hd_value_as_bool(hd_value_at(run_, "unchanged"), false) ? "(same result) "
                                                                                 : "";
    column += printf("%s", word);
    for (hd_iter it = hd_iter_of(causes); hd_iter_next(&it);) {
        const char *cell = hd_value_as_text(it.value, "");
        int length = name_width(cell) + 2;
        if (it.index && column + length > room && !c->wide) {
            printf(" +%zu", hd_value_count(causes) - it.index);
            return;
        }
        if (it.index) fputs(", ", stdout);
        print_plain(stdout, cell);
        column += length;
    }
}

static void print_run(const cli *c, hd_value run_, uint64_t now_ns, int width) {
    char took[TIME_TEXT], ago[TIME_TEXT];
    uint64_t began = live_number(run_, "began_ns");
    const char *status = live_text(run_, "status");
    bool failed = strcmp(status, "HD_OK") != 0;
    printf("%9s %8s  ", time_text(now_ns > began ? (double)(now_ns - began) : 0, ago),
           time_text((double)live_number(run_, "took_ns"), took));
    print_name(c, live_text(run_, "name"), width, TIMES);
    fputs("  ", stdout);
    if (failed) printf("%s%s%s ", out_colour(c, COLOUR_RED), status, out_colour(c, COLOUR_NONE));
    print_causes(c, run_, output_width() - TIMES - width - 2);
    putchar('\n');
}

/* The longest name decides, up to half of what the terminal has. */
static int width_of_names(hd_value runs, size_t first) {
    int width = NAME_LEAST, most = (output_width() - TIMES) / 2;
    for (size_t i = first; i < hd_value_count(runs); i++) {
        int columns = name_width(live_text(hd_value_index(runs, i), "name"));
        if (columns > width && columns <= most) width = columns;
    }
    return width;
}

static void print_runs(const tracing *t, hd_value answer) {
    const cli *c = t->l.c;
    hd_value runs = hd_value_at(answer, "runs");
    size_t count = hd_value_count(runs), first = count > t->limit ? count - t->limit : 0;
    if (!count) {
        printf("nothing ran\n");
        return;
    }
    int width = width_of_names(runs, first);
    printf("%s%9s %8s  %-*s  %s%s\n", out_colour(c, COLOUR_DIM), "ago", "took", width, "node",
           "because of", out_colour(c, COLOUR_NONE));
    for (size_t i = first; i < count && !output_broken(); i++)
        print_run(c, hd_value_index(runs, i), live_number(answer, "now_ns"), width);
    if (first) printf("%zu earlier runs are not shown: --limit %zu\n", first, count);
}

static void show(const tracing *t, hd_value answer) {
    if (t->chrome) print_value(hd_value_at(answer, "chrome"), HD_JSON_COMPACT);
    else if (t->l.c->json) print_value(answer, HD_JSON_COMPACT);
    else print_runs(t, answer);
}

/* ---- Whole ------------------------------------------------------------------------------- */

static int switch_only(tracing *t, const char *on) {
    hd_value answer;
    int failed = ask(t, on, "", &answer);
    if (!failed && t->l.c->json) print_value(answer, HD_JSON_COMPACT);
    else if (!failed)
        printf("the program %s\n", strcmp(on, "on") ? "does not trace any more" : "traces now");
    return failed;
}

static int trace(tracing *t, bool seconds_given) {
    hd_value answer;
    const char *form = t->chrome ? "chrome" : "runs";
    int failed = ask(t, "", "", &answer);
    if (failed) return failed;
    bool on = hd_value_as_bool(hd_value_at(answer, "on"), false);
    if (on && seconds_given) wait_seconds(t);
    t->l.finishing = on;
    failed = on ? ask(t, "", form, &answer) : trace_for_a_while(t, form, &answer);
    if (!failed) show(t, answer);
    return failed;
}

static int run(cli *c) {
    tracing t = { .seconds = SECONDS_DEFAULT, .limit = LIMIT_DEFAULT };
    t.chrome = option_given(c, "chrome");
    int failed = option_number(c, "seconds", &t.seconds);
    if (!failed) failed = option_number(c, "limit", &t.limit);
    if (!failed && t.seconds > SECONDS_MAX)
        failed = cli_fail(c, CLI_USAGE, "Use --on, and --off later.", "--seconds is at most %d",
                          SECONDS_MAX);
    if (!failed && option_given(c, "on") && option_given(c, "off"))
        failed = cli_fail(c, CLI_USAGE, NULL, "--on and --off exclude each other");
    if (failed) return failed;
    failed = live_open(c, &t.l, c->operands[0]);
    if (!failed && option_given(c, "on")) failed = switch_only(&t, "on");
    else if (!failed && option_given(c, "off")) failed = switch_only(&t, "off");
    else if (!failed) failed = trace(&t, option_given(c, "seconds"));
    live_close(&t.l);
    return failed;
}

const command command_trace = {
    .name = "trace",
    .section = "A running program",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "its last runs: when, how long, because of what",
    .text = "Shows the last runs of the program that serves FILE, up to 2,000. If the program does "
            "not trace, it does for a few seconds, and what runs meanwhile is shown; Ctrl-C ends "
            "that early. --on leaves the trace on, which costs the program a little for each run, "
            "until --off.\n\n"
            "With --chrome the runs and passes are printed for chrome://tracing and "
            "ui.perfetto.dev.",
    .options = (const cli_option[]){ { "chrome", NULL, "for chrome://tracing" },
                                     { "seconds", "N", "how long to trace (default 3)" },
                                     { "on", NULL, "only switch the trace on" },
                                     { "off", NULL, "only switch it off" },
                                     { "limit", "N", "at most N runs in the table (default 40)" },
                                     OPTIONS_LIVE,
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle trace shop.db", "what runs now" },
                                       { "heddle trace shop.db --seconds 10 --chrome > trace.json",
                                         "ten seconds, for a browser" },
                                       { "heddle trace shop.db --on", "from now on" },
                                       { NULL, NULL } },
    .run = run,
};

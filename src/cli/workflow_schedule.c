/* workflow_schedule.c -- schedules: workflows that are started at certain times.
 *
 * What is done stands in the second operand: put, ls, show, rm, pause, resume, trigger. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/workflow.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- What was given ------------------------------------------------------------------------ */

/* The place of the word in a list that ends with NULL; *out stays as it is if the option was not given. */
static int word_of(cli *c, const char *option, const char *const *words, int *out) {
    const char *text = option_text(c, option);
    char all[80] = "";
    if (!text) return CLI_OK;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) return *out = i, CLI_OK;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", words[i]);
    }
    return cli_fail(c, CLI_USAGE, NULL, "--%s is %s, not \"%s\"", option, all, text);
}

static int read_schedule(flow *f, hd_schedule *out) {
    static const char *const overlaps[] = { "skip", "queue", "allow", "cancel", NULL };
    static const char *const catch_ups[] = { "last", "all", "none", NULL };
    cli *c = f->s.c;
    int overlap = 0, catch_up = 0;
    *out = (hd_schedule){ .name = c->operands[2],
                          .workflow = c->operands[3],
                          .cron = option_text(c, "cron"),
                          .zone = option_text(c, "zone") };
    int failed = option_seconds(c, "every", &out->every_s);
    if (!failed) failed = option_seconds(c, "jitter", &out->jitter_s);
    if (!failed) failed = word_of(c, "overlap", overlaps, &overlap);
    if (!failed) failed = word_of(c, "catch-up", catch_ups, &catch_up);
    if (!failed && c->operand_count > 4)
        failed = store_json(&f->s, "INPUT", c->operands[4], &out->input);
    out->overlap = (hd_overlap)overlap;
    out->catch_up = (hd_catch_up)catch_up;
    bool repeats = out->every_s > 0;
    if (!failed && !out->cron == !repeats)
        failed = cli_fail(c, CLI_USAGE, "--cron '30 2 * * 1-5' or --every 1h",
                          repeats ? "--cron and --every are given, and one is too many" : "when?");
    return failed;
}

/* ---- Showing ------------------------------------------------------------------------------- */

/* In the time zone of the terminal, which may be another one than the schedule's, and says which. */
static void print_zone(void) {
    char zone[16];
    time_t now = time(NULL);
    struct tm here;
    if (localtime_r(&now, &here) && strftime(zone, sizeof zone, "%Z", &here)) printf(" (%s)", zone);
}

/* One that is paused has no next time. A time that is over is caught up with when a program runs. */
static void print_times(hd_value state) {
    char when[WHEN_TEXT];
    uint64_t printed = 0;
    if (hd_value_as_bool(hd_value_at(state, "paused"), false)) return;
    for (hd_iter it = hd_iter_of(hd_value_at(state, "times")); hd_iter_next(&it) && printed < 3;) {
        uint64_t at = (uint64_t)hd_value_as_int(it.value, 0);
        printf("%s%s%s", printed++ ? ", " : "  next    ", at < wall_ms() ? "overdue since " : "",
               when_text(at, when));
    }
    if (!printed) return;
    print_zone();
    putchar('\n');
}

/* What the schedule started last, if it is not over: the schedule itself learns of that at its next turn. */
static void print_running(flow *f, hd_value state) {
    const char *id = flow_text(state, "running");
    if (!*id) return;
    hd_value document = hd_read(f->s.rt, f->s.pool, flow_cell(f, id));
    if (!hd_value_exists(document) || flow_is_over(document)) return;
    fputs("  running ", stdout);
    print_plain(stdout, id);
    putchar('\n');
}

/* A time that came while an instance ran (--overlap queue or cancel). */
static void print_waiting(hd_value state) {
    char when[WHEN_TEXT];
    uint64_t at = flow_number(state, "waiting");
    if (at) printf("  waits   the time %s, until that is over\n", when_text(at, when));
}

/* Whole units where it is made of such: "every 15 min". */
static void print_every(double s) {
    static const struct {
        double seconds;
        const char *name;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 0, "s" } };
    size_t i = 0;
    while (units[i].seconds > 0 && (s < units[i].seconds || fmod(s, units[i].seconds) > 0)) i++;
    printf("every %.10g %s", units[i].seconds > 0 ? s / units[i].seconds : s, units[i].name);
}

static void print_rule(hd_value state) {
    const char *cron = flow_text(state, "cron"), *zone = flow_text(state, "zone");
    printf("  when    ");
    if (*cron) {
        print_plain(stdout, cron);
        printf(" %s", *zone ? zone : "UTC");
    } else {
        print_every(hd_value_number(hd_value_at(state, "every")));
    }
    printf("; overlap %s, catch up %s\n", flow_text(state, "overlap"),
           flow_text(state, "catch_up"));
}

static void print_state(flow *f, hd_value state) {
    const cli *c = f->s.c;
    char when[WHEN_TEXT];
    hd_value error = hd_value_at(state, "error");
    printf("%s", out_colour(c, COLOUR_BOLD));
    print_plain(stdout, flow_text(state, "name"));
    printf("%s  starts ", out_colour(c, COLOUR_NONE));
    print_plain(stdout, flow_text(state, "workflow"));
    printf("%s, %" PRIu64 " started, %" PRIu64 " skipped\n",
           hd_value_as_bool(hd_value_at(state, "paused"), false) ? ", paused" : "",
           flow_number(state, "started"), flow_number(state, "skipped"));
    print_rule(state);
    print_times(state);
    print_running(f, state);
    print_waiting(state);
    if (!hd_value_exists(error)) return;
    printf("  %serror%s   %s: ", out_colour(c, COLOUR_RED), out_colour(c, COLOUR_NONE),
           when_text(flow_number(error, "at"), when));
    print_one_line(stdout, flow_text(error, "message"));
    putchar('\n');
}

static int show(flow *f, const char *name) {
    hd_value state;
    hd_status status = hd_schedule_state(f->engine, name, f->s.pool, &state);
    if (status == HD_NOT_FOUND)
        return cli_fail(f->s.c, CLI_NOT_FOUND, "\"heddle workflow schedule STORE ls\" lists them.",
                        "there is no schedule \"%s\"", name);
    if (status) return flow_refused(f, status, NULL);
    if (f->s.c->json) return print_value(state, HD_JSON_COMPACT) ? CLI_INTERNAL : CLI_OK;
    print_state(f, state);
    return CLI_OK;
}

/* ---- Doing --------------------------------------------------------------------------------- */

static int list(flow *f) { return flow_list(f, hd_schedule_list, show, "there are no schedules"); }

static int put(flow *f) {
    hd_schedule schedule;
    hd_error error = { 0 };
    hd_value ir;
    int failed = read_schedule(f, &schedule);
    if (!failed) failed = flow_latest(f, schedule.workflow, &ir);
    if (failed) return failed;
    hd_status status = hd_schedule_put(f->engine, &schedule, &error);
    return status ? flow_refused(f, status, &error) : show(f, schedule.name);
}

typedef struct deed {
    const char *word, *done;
    size_t operands; /* with STORE and the word */
    hd_status (*act)(hd_engine *engine, const char *name);
    int (*run)(flow *f);
} deed;

static const deed deeds[] = {
    { "put", NULL, 4, NULL, put },
    { "ls", NULL, 2, NULL, list },
    { "show", NULL, 3, NULL, NULL },
    { "rm", "is removed", 3, hd_schedule_remove, NULL },
    { "pause", "is paused", 3, hd_schedule_pause, NULL },
    { "resume", "goes on", 3, hd_schedule_resume, NULL },
    { "trigger", "has one more time, now", 3, hd_schedule_trigger, NULL },
};

static int act(flow *f, const deed *d) {
    cli *c = f->s.c;
    const char *name = c->operand_count > 2 ? c->operands[2] : "";
    if (d->run) return d->run(f);
    if (!d->act) return show(f, name);
    hd_status status = d->act(f->engine, name);
    if (status == HD_NOT_FOUND) return show(f, name); /* which says so */
    if (status) return flow_refused(f, status, NULL);
    if (c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "name", name);
        record_text(&r, "done", d->done);
        record_close(&r, '}');
        record_end(&r);
    } else {
        print_plain(stdout, name);
        printf(" %s\n", d->done);
    }
    return CLI_OK;
}

static const deed *find_deed(const char *word) {
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (strcmp(deeds[i].word, word) == 0) return &deeds[i];
    return NULL;
}

static int run(cli *c) {
    flow f;
    const deed *d = find_deed(c->operand_count > 1 ? c->operands[1] : "ls");
    if (!d)
        return cli_fail(c, CLI_USAGE, "put, ls, show, rm, pause, resume or trigger",
                        "there is no \"%s\" of schedules", c->operands[1]);
    if (c->operand_count < d->operands && c->operand_count > 1)
        return cli_fail(c, CLI_USAGE, "heddle help workflow schedule", "\"%s\" needs %s", d->word,
                        d->operands > 3 ? "the name of a schedule and that of a workflow"
                                        : "the name of a schedule");
    bool changes = d->act || d->run == put;
    int failed = refuse_words(c, d->run == put ? 5 : d->operands);
    if (!failed && d->run != put)
        failed = refuse_options(c, d->word,
                                (const char *const[]){ "cron", "zone", "every", "jitter", "overlap",
                                                       "catch-up", NULL });
    if (failed) return failed;
    failed = flow_open_engine(c, &f, changes ? STORE_WRITE : STORE_READ);
    if (!failed) failed = act(&f, d);
    if (!failed) failed = flow_sync(&f, f.s.file);
    return flow_close(&f, failed);
}

const command command_workflow_schedule = {
    .name = "workflow schedule",
    .section = FLOW_SECTION,
    .operands = "STORE [put NAME WORKFLOW [INPUT] | ls | ...]",
    .least = 1,
    .most = 5,
    .summary = "start a workflow at certain times",
    .text =
        "put NAME WORKFLOW [INPUT] starts an instance of the workflow whenever --cron or --every "
        "says so, by the program that runs the workflows of the store. ls lists schedules with "
        "their next times, show prints one, rm removes it, pause and resume it, trigger adds one "
        "time, now: --overlap applies to it as to any other.\n\n"
        "--cron has five fields: minute, hour, day of the month, month, day of the week, in the "
        "time zone of --zone; or @hourly, @daily, @weekly, @monthly, @yearly. --overlap says what "
        "happens if the instance before is not over: skip (default), queue, allow or cancel. "
        "--catch-up is for times when no program ran: last (default), all or none.",
    .options =
        (const cli_option[]){
            { "cron", "FIELDS", "when, as five fields or a word like @daily" },
            { "zone", "NAME", "its time zone, as Europe/Berlin (default: UTC)" },
            { "every", "SPAN",
              "instead of --cron: an interval, 90s, 1h30m; a number alone is seconds" },
            { "jitter", "SPAN", "each time later by less than this" },
            { "overlap", "WORD", "skip, queue, allow or cancel" },
            { "catch-up", "WORD", "last, all or none" },
            OPTION_SPACE,
            { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle workflow schedule shop.db put night report --cron '30 2 * * *'",
              "at half past two, UTC" },
            { "heddle workflow schedule shop.db put poll fetch '{\"deep\": true}' --every 15m",
              "four times an hour, with input" },
            { "heddle workflow schedule shop.db", "what is to come" },
            { NULL, NULL } },
    .run = run,
};

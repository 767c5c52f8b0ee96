/* workflow_await.c -- waiting for an instance, with its progress.
 *
 * The command reads the instance's document whenever a commit has changed it. It runs nothing itself: the program that
 * runs the instances may be killed and started again meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include "cli/workflow_await.h"

#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/workflow_tree.h"
#include <stdlib.h>
#include <string.h>

/* How often it draws, and how often it looks whether a program runs the instance. */
enum { REDRAW_NS = 200000000, RUNNER_NS = 1000000000 };

typedef struct waiting {
    flow *f;
    tree t;
    hd_cell cell;
    hd_pool *pool; /* of the document that is looked at; cleared each time */
    uint64_t end_ns;
    uint64_t runner_ns; /* when it looks for the program that runs the instance */
    bool changed;
} waiting;

static void on_notice(const hd_notice *notice, void *ctx) {
    waiting *w = ctx;
    for (size_t i = 0; i < notice->count; i++)
        w->changed = w->changed || notice->changes[i].document.id == w->cell.id;
}

static int print_result(flow *f, const char *id, hd_value doc) {
    const char *status = flow_text(doc, "status");
    hd_value result = hd_value_at(doc, "result"), error = hd_value_at(doc, "error");
    if (f->s.c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "id", id);
        record_text(&r, "status", status);
        record_value(&r, "result", result);
        record_value(&r, "error", error);
        record_value(&r, "failed_at", hd_value_at(doc, "failed_at"));
        record_close(&r, '}');
        record_end(&r);
    } else if (strcmp(status, "done") == 0) {
        print_value(result, HD_JSON_COMPACT);
    }
    if (strcmp(status, "done") == 0) return CLI_OK;
    if (f->s.c->json) return CLI_CONFLICT;
    return cli_fail(f->s.c, CLI_CONFLICT, NULL, "%s %s %s%s", id, status_verb(status), status,
                    flow_error_text(f, doc));
}

static int out_of_time(const waiting *w, const char *id) {
    char hint[256];
    snprintf(hint, sizeof hint, "What it waits for: heddle why-not %.100s %.120s", w->f->s.file,
             id);
    return cli_fail(w->f->s.c, CLI_IO, hint, "%s is not over yet", id);
}

/* A clock is drawn on a terminal: it wakes a few times a second. Elsewhere only commits and the end wake it. */
static void rest(waiting *w) {
    uint64_t next = w->f->s.c->progress ? clock_ns() + REDRAW_NS : UINT64_MAX;
    store_wait_until(&w->f->s, next < w->end_ns ? next : w->end_ns);
}

/* Whether a program runs the instance, as the leases tell. Where no tree is drawn, a line says once that none does;
 * with --json it is a remark, whatever else is not printed. */
static void look_for_runner(waiting *w, hd_value doc) {
    int64_t pid;
    flow f = *w->f; /* with a pool that is gone afterwards: this may go on for days */
    bool said = w->t.orphan;
    if (clock_ns() < w->runner_ns || flow_is_over(doc)) return;
    w->runner_ns = clock_ns() + RUNNER_NS;
    if (hd_pool_open(hd_runtime_heap(f.s.rt), &f.s.pool)) return;
    w->t.orphan = !flow_runner(&f, &pid);
    hd_pool_close(f.s.pool);
    if (w->t.orphan && !said && (w->t.lines || w->f->s.c->json))
        cli_warn(w->f->s.c, "no program runs %s; the next one goes on with it", w->t.id);
}

static int wait_for_end(waiting *w, const char *id, hd_value *doc) {
    for (w->changed = true;;) {
        if (w->changed) {
            w->changed = false;
            hd_pool_clear(w->pool);
            *doc = hd_read(w->f->s.rt, w->pool, w->cell);
            if (!tree_look(&w->t, *doc)) return CLI_INTERNAL;
        }
        look_for_runner(w, *doc);
        tree_draw(&w->t, *doc);
        if (flow_is_over(*doc)) return CLI_OK;
        if (interrupted()) return interrupted_status();
        if (clock_ns() >= w->end_ns) return out_of_time(w, id);
        rest(w);
        hd_status status = hd_runtime_pump(w->f->s.rt);
        if (status && status != HD_PENDING) return store_fail(&w->f->s, status, w->f->s.file);
    }
}

int await_instance(flow *f, const char *id, double seconds, bool quiet) {
    waiting w = { .f = f, .end_ns = UINT64_MAX };
    hd_value doc, ir;
    bool progress = f->s.c->progress;
    if (quiet) f->s.c->progress = false;
    if (seconds > 0) w.end_ns = clock_ns() + (uint64_t)(seconds * 1e9);
    int failed = flow_instance(f, id, &doc);
    if (!failed) failed = flow_version(f, flow_text(doc, "version"), &ir);
    if (!failed) failed = tree_open(f->s.c, &w.t, &f->s, ir, f->id);
    if (failed) return failed;
    w.t.lines = !quiet && !f->s.c->progress && !f->s.c->json;
    w.cell = flow_cell(f, f->id);
    hd_status status = hd_pool_open(hd_runtime_heap(f->s.rt), &w.pool);
    if (!status) status = hd_runtime_follow(f->s.rt, f->space);
    if (!status) status = hd_runtime_listen(f->s.rt, on_notice, &w);
    if (status) failed = store_fail(&f->s, status, id);
    else failed = wait_for_end(&w, f->id, &doc);
    hd_runtime_unlisten(f->s.rt, on_notice, &w);
    if (!failed) failed = print_result(f, f->id, doc);
    tree_close(&w.t);
    hd_pool_close(w.pool);
    f->s.c->progress = progress;
    return failed;
}

int await_timeout(cli *c, double *out) {
    *out = 0;
    int failed = option_seconds(c, "timeout", out);
    if (failed || *out > 0 || !option_given(c, "timeout")) return failed;
    return cli_fail(c, CLI_USAGE, NULL, "--timeout takes a time above 0");
}

static int run(cli *c) {
    flow f;
    double seconds;
    int failed = await_timeout(c, &seconds);
    if (failed) return failed;
    failed = flow_open(c, &f, STORE_READ);
    if (!failed) failed = await_instance(&f, c->operands[1], seconds, option_given(c, "quiet"));
    return flow_close(&f, failed);
}

const command command_workflow_await = {
    .name = "workflow await",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "wait for an instance, print its result",
    .text =
        "Shows what an instance (name/key) does until it is over, and prints its result, in the "
        "form in which it is stored (heddle workflow show has it for people). On a "
        "terminal a tree of steps is drawn anew as they begin and end; elsewhere each is a line on "
        "stderr. \"open\" is an action that waits for a worker or is with one: heddle workflow "
        "show "
        "asks the program which. It runs nothing: the program with the engine does, and may be "
        "started meanwhile; the command says when no program runs the instance.\n\n"
        "The exit status is 0 if the instance is done, 3 if it failed, stalled or was cancelled.",
    .options = (const cli_option[]){ OPTIONS_AWAIT, OPTION_SPACE, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle workflow await shop.db checkout/order-17", "and look on" },
                               { NULL, NULL } },
    .run = run,
};

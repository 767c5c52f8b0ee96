/* workflow_control.c -- what changes the course of an instance: cancel, signal, pause, resume, rerun. */
#include "cli/commands.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/workflow.h"
#include <stdio.h>
#include <string.h>

static int control_failed(flow *f, hd_status status) {
    if (status == HD_USAGE)
        return cli_fail(f->s.c, CLI_INPUT, NULL, "%s", hd_runtime_error(f->s.rt)->message);
    return store_fail(&f->s, status, f->id);
}

static void print_done(flow *f, const char *what) {
    if (f->s.c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "id", f->id);
        record_text(&r, "done", what);
        record_close(&r, '}');
        record_end(&r);
    } else {
        print_plain(stdout, f->id);
        printf(" %s\n", what);
    }
}

/* What was asked for is stored, and is done by the program that runs the instance. */
static void warn_without_runner(flow *f) {
    int64_t pid;
    if (!flow_runner(f, &pid))
        cli_warn(f->s.c, "the request is stored; the next program that runs %s carries it out",
                 f->id);
}

/* Runs `change` on the instance of the second operand. An instance that is over is left alone. `ending` is said in the
 * place of `done` if the instance is ending. */
static int control(cli *c, int (*change)(flow *f), const char *done, const char *ending) {
    flow f;
    hd_value doc;
    int failed = flow_open_engine(c, &f, STORE_WRITE);
    if (!failed) failed = flow_instance(&f, c->operands[1], &doc);
    const char *status = failed ? "" : flow_text(doc, "status");
    if (!failed && flow_is_over(doc))
        failed = cli_fail(c, CLI_CONFLICT, NULL, "%s is over: it %s %s", f.id, status_verb(status),
                          status);
    if (!failed) failed = change(&f);
    if (!failed) failed = flow_sync(&f, f.id);
    if (!failed) print_done(&f, flow_is_ending(doc) ? ending : done);
    if (!failed) warn_without_runner(&f);
    return flow_close(&f, failed);
}

/* ---- cancel ------------------------------------------------------------------------------ */

static int cancel(flow *f) {
    hd_status status = hd_workflow_cancel(f->engine, f->id);
    return status ? control_failed(f, status) : CLI_OK;
}

static int run_cancel(cli *c) {
    return control(c, cancel, "is being cancelled",
                   "is ending already: what it still does is cleaning up");
}

const command command_workflow_cancel = {
    .name = "workflow cancel",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "cancel an instance; its clean-up still runs",
    .text = "Raises CancelledError wherever the instance (name/key) waits. What its handlers do "
            "then is "
            "still done; it is over when they are. Branches that were left and clean up when the "
            "first function has ended are not cut short: the command says so. An instance that is "
            "over is left as it is, with exit status 3.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow cancel shop.db checkout/order-17",
                                         "no longer wanted" },
                                       { NULL, NULL } },
    .run = run_cancel,
};

/* ---- signal ------------------------------------------------------------------------------ */

static int signal_it(flow *f) {
    cli *c = f->s.c;
    hd_value payload = hd_null();
    int failed = CLI_OK;
    if (c->operand_count > 3) failed = store_json(&f->s, "PAYLOAD", c->operands[3], &payload);
    if (failed) return failed;
    hd_status status = hd_workflow_signal(f->engine, f->id, c->operands[2], payload);
    return status ? control_failed(f, status) : CLI_OK;
}

static int run_signal(cli *c) { return control(c, signal_it, "has the signal", "has the signal"); }

const command command_workflow_signal = {
    .name = "workflow signal",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE SIGNAL [PAYLOAD]",
    .least = 3,
    .most = 4,
    .summary = "give an instance a signal it waits for",
    .text = "Gives a signal with a JSON payload (default: null; \"-\" for stdin) to an instance "
            "(name/key): to the WAIT that waits for it, or to the next one that will.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow signal shop.db approval/7 approve true",
                                         "approve it" },
                                       { NULL, NULL } },
    .run = run_signal,
};

/* ---- pause and resume -------------------------------------------------------------------- */

static int pause_it(flow *f) {
    hd_status status = hd_workflow_pause(f->engine, f->id);
    return status ? control_failed(f, status) : CLI_OK;
}

static int resume_it(flow *f) {
    hd_status status = hd_workflow_resume(f->engine, f->id);
    return status ? control_failed(f, status) : CLI_OK;
}

static int run_pause(cli *c) { return control(c, pause_it, "is being paused", "is being paused"); }
static int run_resume(cli *c) { return control(c, resume_it, "goes on", "goes on"); }

const command command_workflow_pause = {
    .name = "workflow pause",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "begin no more steps of an instance",
    .text =
        "A paused instance (name/key) begins no step, and none of its timers fires; what runs may "
        "finish. Signals and cancelling reach it.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow pause shop.db checkout/order-17",
                                         "begin no more of its steps" },
                                       { NULL, NULL } },
    .run = run_pause,
};

const command command_workflow_resume = {
    .name = "workflow resume",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE",
    .least = 2,
    .most = 2,
    .summary = "let a paused instance go on",
    .text = "Lets an instance (name/key) that was paused go on where it was.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle workflow resume shop.db checkout/order-17", "go on" },
                               { NULL, NULL } },
    .run = run_resume,
};

/* ---- rerun ------------------------------------------------------------------------------- */

/* An id whose last part is what was typed is what was meant. */
static void offer_node(nearest *near, const char *id) {
    const char *last = strrchr(id, '/');
    nearest_offer(near, id);
    if (!last || strcmp(last + 1, near->wanted) != 0) return;
    near->distance = 0;
    snprintf(near->best, sizeof near->best, "%s", id);
}

static int check_node(flow *f, hd_value doc, const char *node) {
    hd_value ir;
    char hint[256] = "heddle workflow show prints its steps.";
    nearest near = nearest_to(node);
    int failed = flow_version(f, flow_text(doc, "version"), &ir);
    if (failed) return failed;
    hd_value first = hd_value_index(hd_value_at(ir, "functions"), 0);
    for (hd_iter it = hd_iter_of(hd_value_at(first, "nodes")); hd_iter_next(&it);) {
        const char *id = flow_text(it.value, "id");
        if (strcmp(id, node) == 0) return CLI_OK;
        offer_node(&near, id);
    }
    if (*near.best) snprintf(hint, sizeof hint, "Did you mean %s?", near.best);
    return cli_fail(f->s.c, CLI_INPUT, hint, "%s has no node \"%s\"", flow_text(doc, "workflow"),
                    node);
}

static int rerun(flow *f, hd_value doc) {
    cli *c = f->s.c;
    const char *node = c->operand_count > 2 ? c->operands[2] : NULL;
    if (!flow_is_over(doc))
        return cli_fail(c, CLI_CONFLICT, flow_how_it_ends(f, doc), "%s is not over: it is %s",
                        f->id, flow_text(doc, "status"));
    if (node && strcmp(flow_text(doc, "status"), "done") == 0)
        return cli_fail(c, CLI_INPUT, "Without NODE it runs from the beginning.",
                        "%s is done: its variables are gone", f->id);
    int failed = node ? check_node(f, doc, node) : CLI_OK;
    if (failed) return failed;
    hd_status status = hd_workflow_rerun(f->engine, f->id, node);
    return status ? control_failed(f, status) : flow_sync(f, f->id);
}

static int run_rerun(cli *c) {
    flow f;
    hd_value doc;
    int failed = flow_open_engine(c, &f, STORE_WRITE);
    if (!failed) failed = flow_instance(&f, c->operands[1], &doc);
    if (!failed) failed = rerun(&f, doc);
    if (!failed) print_done(&f, "runs again");
    if (!failed) warn_without_runner(&f);
    return flow_close(&f, failed);
}

const command command_workflow_rerun = {
    .name = "workflow rerun",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE [NODE]",
    .least = 2,
    .most = 3,
    .summary = "run an instance that is over again",
    .text = "Runs an instance (name/key) that is over again, with the version it was started with: "
            "from the "
            "beginning, with its input; or from NODE of its first function, with the variables "
            "that it had when it "
            "failed, stalled or was cancelled.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow rerun shop.db checkout/order-17 charge",
                                         "from the step that failed, after the cause is mended" },
                                       { NULL, NULL } },
    .run = run_rerun,
};

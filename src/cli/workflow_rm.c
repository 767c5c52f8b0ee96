/* workflow_rm.c -- deletes instances that are over: by name, or by age. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/workflow.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int remove_failed(flow *f, hd_value doc, hd_status status) {
    int exit_status = status == HD_USAGE || status == HD_BUSY ? CLI_CONFLICT : CLI_OK;
    if (!exit_status) return store_fail(&f->s, status, f->id);
    /* Listing what was asked of it may replace the runtime's message. */
    hd_value message = hd_string(f->s.pool, hd_runtime_error(f->s.rt)->message);
    return cli_fail(f->s.c, exit_status, flow_how_it_ends(f, doc), "%s",
                    hd_value_as_text(message, ""));
}

/* ---- rm ---------------------------------------------------------------------------------- */

static void print_removed(const flow *f) {
    if (f->s.c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "id", f->id);
        record_text(&r, "done", "is removed");
        record_close(&r, '}');
        record_end(&r);
    } else {
        print_plain(stdout, f->id);
        printf(" is removed\n");
    }
}

static int remove_one(flow *f, const char *name) {
    hd_value doc;
    int failed = flow_instance(f, name, &doc);
    if (failed) return failed;
    hd_status status = hd_workflow_remove(f->engine, f->id);
    if (status) return remove_failed(f, doc, status);
    print_removed(f);
    return CLI_OK;
}

/* One that cannot be removed does not keep the others. */
static int run_rm(cli *c) {
    flow f;
    int failed = flow_open_engine(c, &f, STORE_WRITE);
    if (failed) return flow_close(&f, failed);
    for (size_t i = 1; i < c->operand_count; i++) {
        int one = remove_one(&f, c->operands[i]);
        if (!failed) failed = one;
    }
    return flow_close(&f, failed);
}

const command command_workflow_rm = {
    .name = "workflow rm",
    .section = FLOW_SECTION,
    .operands = "STORE INSTANCE...",
    .least = 2,
    .most = SIZE_MAX,
    .summary = "delete instances that are over, with their journals",
    .text = "Deletes instances (name/key) that are over, with their journals. Children of an "
            "instance are instances of their own and stay. The key may be used again. One that is "
            "not over is left as it is, with exit status 3.",
    .options = (const cli_option[]){ OPTION_SPACE, { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow rm shop.db checkout/order-17",
                                         "its result is not needed any more" },
                                       { NULL, NULL } },
    .run = run_rm,
};

/* ---- prune ------------------------------------------------------------------------------- */

typedef struct pruning {
    flow f;
    hd_pool *scratch; /* for one document */
    uint64_t before_ms;
    hd_value ids; /* of those that ended before */
    uint64_t removed;
} pruning;

/* Earlier versions did not note when an instance stalled. */
static bool note_old(const hd_workflow_entry *entry, void *ctx) {
    pruning *p = ctx;
    hd_pool *pool = p->f.s.pool;
    hd_value doc = hd_read(p->f.s.rt, p->scratch, hd_workflow_cell(p->f.engine, entry->id));
    uint64_t ended = flow_number(doc, "finished");
    bool old = flow_is_over(doc) && ended && ended < p->before_ms;
    hd_pool_clear(p->scratch);
    if (old) p->ids = hd_array_append(pool, p->ids, hd_string(pool, entry->id));
    return !hd_value_status(p->ids) && !interrupted();
}

static int find_old(pruning *p, const char *status) {
    flow *f = &p->f;
    const cli *c = f->s.c;
    hd_workflow_filter filter = { .status = status,
                                  .name = c->operand_count > 1 ? c->operands[1] : NULL };
    hd_status listed = hd_workflow_list(f->engine, &filter, note_old, p);
    if (!listed) listed = hd_value_status(p->ids);
    return listed ? store_fail(&f->s, listed, f->s.file) : CLI_OK;
}

/* One that was removed, or runs again, meanwhile is left alone. */
static int remove_old(pruning *p) {
    flow *f = &p->f;
    for (hd_iter it = hd_iter_of(p->ids); hd_iter_next(&it) && !interrupted();) {
        f->id = hd_value_as_text(it.value, "");
        hd_status status = hd_workflow_remove(f->engine, f->id);
        if (status == HD_NOT_FOUND || status == HD_USAGE || status == HD_BUSY) continue;
        if (status) return remove_failed(f, hd_null(), status);
        p->removed++;
    }
    return interrupted() ? interrupted_status() : CLI_OK;
}

static void print_count(const pruning *p) {
    if (p->f.s.c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_number(&r, "removed", p->removed);
        record_close(&r, '}');
        record_end(&r);
    } else {
        printf("%" PRIu64 " %s removed\n", p->removed, p->removed == 1 ? "instance" : "instances");
    }
}

static const char *const ends[] = { "done", "failed", "cancelled", "stalled" };
enum { ENDS = sizeof ends / sizeof *ends };

static int check_status(cli *c) {
    const char *status = option_text(c, "status");
    for (size_t i = 0; status && i < ENDS; i++)
        if (strcmp(status, ends[i]) == 0) return CLI_OK;
    if (!status) return CLI_OK;
    return cli_fail(c, CLI_USAGE, "done, failed, cancelled, stalled",
                    "no instance ends with the status \"%s\"", status);
}

static int prune(pruning *p) {
    const char *only = option_text(p->f.s.c, "status");
    int failed = CLI_OK;
    for (size_t i = 0; i < ENDS && !failed; i++)
        if (!only || strcmp(only, ends[i]) == 0) failed = find_old(p, ends[i]);
    if (!failed) failed = remove_old(p);
    if (!failed || p->removed) print_count(p);
    return failed;
}

static int run_prune(cli *c) {
    pruning p = { .ids = hd_array() };
    uint64_t age = 0, now = wall_ms();
    int failed = option_span(c, "older-than", &age);
    if (!failed && !option_given(c, "older-than"))
        failed = cli_fail(c, CLI_USAGE, "--older-than 30d", "--older-than says how old");
    if (!failed) failed = check_status(c);
    if (failed) return failed;
    p.before_ms = age < now ? now - age : 0;
    failed = flow_open_engine(c, &p.f, STORE_WRITE);
    hd_status status = failed ? HD_OK : hd_pool_open(hd_runtime_heap(p.f.s.rt), &p.scratch);
    if (status) failed = store_fail(&p.f.s, status, p.f.s.file);
    if (!failed) failed = prune(&p);
    if (p.scratch) hd_pool_close(p.scratch);
    return flow_close(&p.f, failed);
}

const command command_workflow_prune = {
    .name = "workflow prune",
    .section = FLOW_SECTION,
    .operands = "STORE [WORKFLOW]",
    .least = 1,
    .most = 2,
    .summary = "delete instances that ended some time ago",
    .text = "Deletes the instances of a store, or of one workflow, that ended longer ago than "
            "--older-than: numbers with ms, s, m, h, d or w behind them, as 30d or 1h30m. Their "
            "journals go with them; their keys may be used again.",
    .options = (const cli_option[]){ { "older-than", "SPAN", "such as 30d or 12h" },
                                     { "status", "WORD",
                                       "only those that are done, failed, cancelled or stalled" },
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle workflow prune shop.db --older-than 30d", "keep a month" },
                               { "heddle workflow prune shop.db checkout --older-than 0s "
                                 "--status done",
                                 "keep what went wrong" },
                               { NULL, NULL } },
    .run = run_prune,
};

/* workflow_ls.c -- lists instances. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/workflow.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ID_LEAST, ID_MOST: columns for names, as far as the terminal has room; FIGURES: for what stands behind. */
enum { ID_LEAST = 38, ID_MOST = 64, FIGURES = 42, STATUS_WIDTH = 10 };

typedef struct listing {
    flow f;
    uint64_t left; /* instances to print before the end; UINT64_MAX: all */
    uint64_t printed;
} listing;

static void print_record(hd_value doc, const char *id) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "id", id);
    record_text(&r, "workflow", flow_text(doc, "workflow"));
    record_text(&r, "status", flow_text(doc, "status"));
    record_value(&r, "started", hd_value_at(doc, "started"));
    record_value(&r, "finished", hd_value_at(doc, "finished"));
    record_close(&r, '}');
    record_end(&r);
}

static void print_line(const cli *c, hd_value doc, const char *id) {
    char when[WHEN_TEXT], span[SPAN_TEXT];
    const char *status = flow_text(doc, "status");
    uint64_t began = flow_number(doc, "started"), ended = flow_number(doc, "finished");
    if (!ended) ended = wall_ms();
    int room = output_width() - FIGURES;
    print_name(c, id, room < ID_LEAST ? ID_LEAST : room > ID_MOST ? ID_MOST : room, 0);
    printf("  ");
    print_status(c, stdout, status, true);
    printf("%*s%s  %s\n", (int)(STATUS_WIDTH > strlen(status) ? STATUS_WIDTH - strlen(status) : 1),
           "", began ? when_text(began, when) : "",
           began ? span_text(ended > began ? ended - began : 0, span) : "");
}

static bool print_entry(const hd_listing *entry, void *ctx) {
    listing *l = ctx;
    flow *f = &l->f;
    if (strncmp(entry->kind, "workflow.", 9)) return true;
    const char *id = entry->id + strlen("workflow/");
    hd_value doc = hd_read(f->s.rt, f->s.pool, flow_cell(f, id));
    if (f->s.c->json) print_record(doc, id);
    else print_line(f->s.c, doc, id);
    hd_pool_clear(f->s.pool);
    l->printed++;
    return l->printed < l->left && !output_broken() && !interrupted();
}

static int list(listing *l, const char *workflow) {
    flow *f = &l->f;
    char kind[64], prefix[256], after[HD_INSTANCE_ID_SIZE + 16];
    const char *status = option_text(f->s.c, "status");
    snprintf(kind, sizeof kind, "workflow.%.40s", status ? status : "");
    snprintf(prefix, sizeof prefix, "workflow/%.200s%s", workflow ? workflow : "",
             workflow ? "/" : "");
    const char *id = option_text(f->s.c, "after");
    bool key = id && workflow && !strchr(id, '/'); /* of an instance of this workflow */
    snprintf(after, sizeof after, "workflow/%s%s%s", key ? workflow : "", key ? "/" : "",
             id ? id : "");
    hd_status listed = hd_runtime_list_after(f->s.rt, f->space, status ? kind : NULL, prefix, after,
                                             print_entry, l);
    if (listed) return store_fail(&f->s, listed, f->s.file);
    hd_value ir;
    int failed = workflow && !l->printed && !interrupted() ? flow_latest(f, workflow, &ir) : CLI_OK;
    if (failed) return failed;
    if (!l->printed && !f->s.c->json) {
        printf("there are no %sinstances%s", id ? "more " : "", workflow ? " of " : "");
        print_plain(stdout, workflow ? workflow : "");
        putchar('\n');
    }
    return interrupted() ? interrupted_status() : CLI_OK;
}

static int check_status(cli *c) {
    static const char *const known[] = { "queued", "running",   "paused", "done",
                                         "failed", "cancelled", "stalled" };
    const char *status = option_text(c, "status");
    for (size_t i = 0; status && i < sizeof known / sizeof *known; i++)
        if (strcmp(status, known[i]) == 0) return CLI_OK;
    if (!status) return CLI_OK;
    return cli_fail(c, CLI_USAGE, "queued, running, paused, done, failed, cancelled, stalled",
                    "there is no status \"%s\"", status);
}

static int run(cli *c) {
    listing l = { .left = UINT64_MAX };
    int failed = option_number(c, "limit", &l.left);
    if (!failed) failed = check_status(c);
    if (failed || !l.left) return failed;
    failed = flow_open(c, &l.f, STORE_READ);
    if (!failed) failed = list(&l, c->operand_count > 1 ? c->operands[1] : NULL);
    return flow_close(&l.f, failed);
}

const command command_workflow_ls = {
    .name = "workflow ls",
    .section = FLOW_SECTION,
    .operands = "STORE [WORKFLOW]",
    .least = 1,
    .most = 2,
    .summary = "list instances: status, start, duration",
    .text =
        "Lists the instances of a store, or of one workflow, in order of their names. The status "
        "is that of the store: an instance that was cancelled or paused while no program runs "
        "it keeps its status until one does; \"heddle workflow show\" names what waits.",
    .options = (const cli_option[]){ { "status", "WORD",
                                       "only those that are running, paused, queued, done, failed, "
                                       "cancelled or stalled" },
                                     { "after", "ID",
                                       "only those after this one, in order of their names" },
                                     { "limit", "N", "at most N" },
                                     { "wide", NULL, "each on one line, however long" },
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow ls shop.db", "all" },
                                       { "heddle workflow ls shop.db checkout --status failed",
                                         "what went wrong" },
                                       { NULL, NULL } },
    .run = run,
};

/* workflow_start.c -- starts an instance, and waits for it if asked. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/workflow_await.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int priority_of(cli *c, int32_t *out) {
    const char *text = option_text(c, "priority");
    char *end;
    errno = 0;
    long n = text ? strtol(text, &end, 10) : 0;
    *out = (int32_t)n;
    if (!text || (*text && !*end && !errno && n >= -1000 && n <= 1000)) return CLI_OK;
    return cli_fail(c, CLI_USAGE, NULL, "--priority is from -1000 to 1000, not \"%s\"", text);
}

static void print_started(const cli *c, const char *id, bool existed) {
    if (c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "id", id);
        record_bool(&r, "existed", existed);
        record_close(&r, '}');
        record_end(&r);
    } else {
        print_plain(stdout, id);
        putchar('\n');
        if (existed) cli_warn(c, "%s was started before: nothing was done", id);
    }
    fflush(stdout);
}

typedef struct starting {
    hd_engine *engine;
    const char *name;
    hd_value input;
    const hd_start_options *options;
    char *id;
} starting;

/* Runs again if another program has started the instance meanwhile, and then finds it. */
static hd_status start_once(hd_tx *tx, void *ctx) {
    starting *s = ctx;
    return hd_workflow_start_in(s->engine, tx, s->name, s->input, s->options, s->id);
}

/* What to write for a workflow with inputs that have no default, if none were given; else NULL. */
static const char *inputs_hint(flow *f, hd_value ir) {
    hd_value words = hd_string(f->s.pool, "Give its inputs: '{");
    uint32_t count = 0;
    for (hd_iter it = hd_iter_of(hd_value_at(ir, "inputs")); hd_iter_next(&it);)
        if (!hd_value_exists(hd_value_at(it.value, "default")))
            words = hd_string_f(f->s.pool, "%s%s\"%s\": ...", hd_value_as_text(words, ""),
                                count++ ? ", " : "", flow_text(it.value, "name"));
    words = hd_string_f(f->s.pool, "%s}'", hd_value_as_text(words, ""));
    return count && f->s.c->operand_count < 3 ? hd_value_as_text(words, "") : NULL;
}

static int start(flow *f, char id[HD_INSTANCE_ID_SIZE]) {
    cli *c = f->s.c;
    hd_value input = hd_object(), ir;
    hd_start_options options = { .key = option_text(c, "key"), .queue = option_text(c, "queue") };
    int failed = priority_of(c, &options.priority);
    if (!failed && c->operand_count > 2)
        failed = store_json(&f->s, "INPUT", c->operands[2], &input);
    if (!failed) failed = flow_latest(f, c->operands[1], &ir);
    if (failed) return failed;
    starting s = { f->engine, c->operands[1], input, &options, id };
    hd_status status = hd_transact(f->s.rt, start_once, &s);
    if (status && status != HD_EXISTS) {
        if (status == HD_MISMATCH || status == HD_USAGE)
            return cli_fail(c, CLI_INPUT, inputs_hint(f, ir), "%s",
                            hd_runtime_error(f->s.rt)->message);
        return store_fail(&f->s, status, c->operands[1]);
    }
    if (!option_given(c, "await")) print_started(c, id, status == HD_EXISTS);
    return CLI_OK;
}

static int run(cli *c) {
    flow f;
    char id[HD_INSTANCE_ID_SIZE];
    double seconds;
    int failed = await_timeout(c, &seconds);
    if (failed) return failed;
    failed = flow_open_engine(c, &f, STORE_WRITE);
    if (!failed) failed = start(&f, id);
    if (!failed && option_given(c, "await"))
        failed = await_instance(&f, id, seconds, option_given(c, "quiet"));
    return flow_close(&f, failed);
}

const command command_workflow_start = {
    .name = "workflow start",
    .section = FLOW_SECTION,
    .operands = "STORE WORKFLOW [INPUT]",
    .least = 2,
    .most = 3,
    .summary = "start an instance",
    .text =
        "Starts an instance of a workflow and prints its name. INPUT is a JSON object with the "
        "workflow's inputs, \"-\" for stdin; what is left out has its default. Its steps are run "
        "by the program that has the engine open, now or when one is started.\n\n"
        "Two starts with the same --key are one instance: the second does nothing. A key has at "
        "most 100 bytes, and neither '/', '#' nor control characters.",
    .options = (const cli_option[]){ { "key", "KEY", "names the instance WORKFLOW/KEY" },
                                     { "priority", "N", "higher goes first (default: 0)" },
                                     { "queue", "NAME", "for steps that name no queue" },
                                     { "await", NULL, "wait for it and print its result" },
                                     OPTIONS_AWAIT,
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle workflow start shop.db checkout '{\"order\": 17}' "
                                         "--key order-17",
                                         "one instance for each order" },
                                       { "heddle workflow start shop.db report --await",
                                         "and wait for it" },
                                       { NULL, NULL } },
    .run = run,
};

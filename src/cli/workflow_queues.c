/* workflow_queues.c -- named queues: how many steps of each may run at once.
 *
 * What is done stands in the second operand: ls, put, pause, resume. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/workflow.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_paused(hd_value state) {
    return hd_value_as_bool(hd_value_at(state, "paused"), false);
}

static int show(flow *f, const char *name) {
    hd_value state;
    const cli *c = f->s.c;
    hd_status status = hd_queue_state(f->engine, name, f->s.pool, &state);
    if (status) return flow_refused(f, status, NULL);
    if (c->json) return print_value(state, HD_JSON_COMPACT) ? CLI_INTERNAL : CLI_OK;
    printf("%s", out_colour(c, COLOUR_BOLD));
    print_plain(stdout, name);
    printf("%s  ", out_colour(c, COLOUR_NONE));
    if (flow_number(state, "most"))
        printf("at most %" PRIu64 " step%s at once", flow_number(state, "most"),
               flow_number(state, "most") == 1 ? "" : "s");
    else printf("any number of steps at once");
    puts(is_paused(state) ? ", paused" : "");
    return CLI_OK;
}

static int store_queue(flow *f, const hd_queue *q) {
    hd_status status = hd_queue_put(f->engine, q);
    return status ? flow_refused(f, status, NULL) : show(f, q->name);
}

/* One that is paused stays so. */
static int put(flow *f) {
    uint64_t most = 0;
    int failed = option_number(f->s.c, "most", &most);
    if (!failed && most > UINT32_MAX)
        failed = cli_fail(f->s.c, CLI_USAGE, NULL, "--most is a number of steps");
    if (failed) return failed;
    hd_value state;
    const char *name = f->s.c->operands[2];
    hd_status status = hd_queue_state(f->engine, name, f->s.pool, &state);
    if (status) return flow_refused(f, status, NULL);
    return store_queue(
        f, &(hd_queue){ .name = name, .most = (uint32_t)most, .paused = is_paused(state) });
}

/* Its bound stays as it is. */
static int pause_or_resume(flow *f, bool paused) {
    hd_value state;
    const char *name = f->s.c->operands[2];
    hd_status status = hd_queue_state(f->engine, name, f->s.pool, &state);
    if (status) return flow_refused(f, status, NULL);
    return store_queue(f, &(hd_queue){ .name = name,
                                       .most = (uint32_t)flow_number(state, "most"),
                                       .paused = paused });
}

static const char *word_of(const cli *c) { return c->operand_count > 1 ? c->operands[1] : "ls"; }

static int act(flow *f) {
    cli *c = f->s.c;
    const char *word = word_of(c);
    bool pauses = !strcmp(word, "pause"), resumes = !strcmp(word, "resume");
    bool puts = !strcmp(word, "put"), lists = !strcmp(word, "ls");
    if (!lists && !pauses && !resumes && !puts)
        return cli_fail(c, CLI_USAGE, "ls, put, pause or resume", "there is no \"%s\" of queues",
                        word);
    int failed = refuse_words(c, lists ? 2 : 3);
    if (!failed && !puts) failed = refuse_options(c, word, (const char *const[]){ "most", NULL });
    if (failed) return failed;
    if (lists) return flow_list(f, hd_queue_list, show, "no queue has bounds");
    if (c->operand_count < 3)
        return cli_fail(c, CLI_USAGE, "heddle help workflow queues",
                        "\"%s\" needs the name of a queue", word);
    return pauses || resumes ? pause_or_resume(f, pauses) : put(f);
}

static int run(cli *c) {
    flow f;
    int failed = flow_open_engine(c, &f, strcmp(word_of(c), "ls") ? STORE_WRITE : STORE_READ);
    if (!failed) failed = act(&f);
    if (!failed) failed = flow_sync(&f, f.s.file);
    return flow_close(&f, failed);
}

const command command_workflow_queues = {
    .name = "workflow queues",
    .section = FLOW_SECTION,
    .operands = "STORE [ls | put NAME | pause NAME | resume NAME]",
    .least = 1,
    .most = 3,
    .summary = "how many steps of a queue run at once",
    .text =
        "Steps that name a queue wait in it. ls lists the queues that have bounds. put NAME says "
        "that at most --most of its steps are with workers at once; without --most, any number; a "
        "queue that is paused stays so. "
        "pause begins none of them until resume; what runs may finish. The program that runs the "
        "workflows of the store hears of it at once.",
    .options = (const cli_option[]){ { "most", "COUNT", "steps at once (default: any number)" },
                                     OPTION_SPACE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle workflow queues shop.db", "which there are" },
            { "heddle workflow queues shop.db put mail --most 4", "four at a time" },
            { "heddle workflow queues shop.db pause mail", "none, until resume" },
            { NULL, NULL } },
    .run = run,
};

/* events_again.c -- events that their handler refuses: tried again, or dropped. */
#include "cli/commands.h"
#include "cli/letter.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include <heddle/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct deed {
    store s;
    bool drop;
    const char *why;
    const char *wanted; /* an id; NULL: all that have failed, of `stream` if that is given */
    const char *stream;
    char (*found)[HD_EVENT_ID_SIZE]; /* malloc */
    hd_cell *cells;                  /* malloc; of `found` */
    size_t count;
    bool no_memory;
} deed;

/* The list is made first: what is written changes what is listed. */
static bool collect(const letter *l, void *ctx) {
    deed *d = ctx;
    bool failed = hd_value_exists(l->failure);
    if (d->wanted ? !letter_is_named(l, d->wanted) : !failed) return true;
    if (d->stream && strcmp(d->stream, l->stream)) return true;
    void *found = realloc(d->found, (d->count + 1) * sizeof *d->found);
    if (found) d->found = found;
    void *cells = found ? realloc(d->cells, (d->count + 1) * sizeof *d->cells) : NULL;
    if (cells) d->cells = cells;
    d->no_memory = !cells;
    if (!cells) return false;
    snprintf(d->found[d->count], HD_EVENT_ID_SIZE, "%s", l->id);
    d->cells[d->count++] = l->document;
    return true;
}

typedef struct change {
    const deed *d;
    hd_cell cell;
} change;

static hd_status write_it(hd_tx *tx, void *ctx) {
    const change *w = ctx;
    if (w->d->drop) return hd_tx_event_drop(tx, w->cell, w->d->why);
    return hd_tx_event_retry(tx, w->cell);
}

static void tell(const deed *d, const char *id) {
    const char *word = d->drop ? "dropped" : "retried";
    if (!d->s.c->json) {
        printf("%s %s\n", word, id);
        return;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "id", id);
    record_text(&r, "state", word);
    record_close(&r, '}');
    record_end(&r);
}

static int act_on_all(deed *d) {
    for (size_t i = 0; i < d->count; i++) {
        change w = { d, d->cells[i] };
        hd_status status = hd_transact(d->s.rt, write_it, &w);
        if (status == HD_NOT_FOUND) continue; /* handled meanwhile */
        if (status) return store_fail(&d->s, status, d->found[i]);
        tell(d, d->found[i]);
    }
    return CLI_OK;
}

static int act_on(deed *d, const char *wanted) {
    d->wanted = wanted;
    d->count = 0;
    hd_status status = letter_each(&d->s, LETTERS_WAITING, collect, d);
    if (d->no_memory) status = HD_NOMEM;
    if (status) return store_fail(&d->s, status, d->s.file);
    if (wanted && !d->count)
        return cli_fail(d->s.c, CLI_NOT_FOUND, "\"heddle events FILE --waiting\" lists what waits.",
                        "no event \"%s\" waits in %s", wanted, d->s.file);
    if (wanted && d->count > 1)
        return cli_fail(d->s.c, CLI_USAGE, "Give more of its id.",
                        "\"%s\" is the beginning of %zu ids", wanted, d->count);
    return act_on_all(d);
}

static int run(cli *c, bool drop) {
    deed d = { .drop = drop, .stream = option_text(c, "stream") };
    if (drop) d.why = option_text(c, "why");
    bool all = option_given(c, "all");
    if (all == (c->operand_count > 1))
        return cli_fail(c, CLI_USAGE, "Say which: ids, or --all for those that have failed.",
                        all ? "--all and ids exclude each other" : "which event?");
    int failed = store_open(c, &d.s, c->operands[0], STORE_WRITE);
    if (!failed && all) failed = act_on(&d, NULL);
    for (size_t i = 1; i < c->operand_count && !failed; i++) failed = act_on(&d, c->operands[i]);
    free(d.found);
    free(d.cells);
    return store_close(&d.s, failed);
}

static int run_retry(cli *c) { return run(c, false); }
static int run_drop(cli *c) { return run(c, true); }

const command command_events_retry = {
    .name = "events retry",
    .section = "Events",
    .operands = "FILE [ID...]",
    .least = 1,
    .most = SIZE_MAX,
    .summary = "let a failed event be handled again",
    .text = "A program that has a handler for the stream takes the event up as if it had just been "
            "posted, now or when it is started. ID is the event's id, the beginning of it (eight "
            "characters at least), or the sender's own.",
    .options = (const cli_option[]){ { "all", NULL, "every event whose handler failed" },
                                     { "stream", "CELL", "of --all: only those of this stream" },
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle events retry shop.db order-17", "by the sender's id" },
                               { "heddle events retry shop.db --all --stream main/buy",
                                 "after the handler was mended" },
                               { NULL, NULL } },
    .run = run_retry,
};

const command command_events_drop = {
    .name = "events drop",
    .section = "Events",
    .operands = "FILE [ID...]",
    .least = 1,
    .most = SIZE_MAX,
    .summary = "end an event that its handler keeps refusing",
    .text = "The event is over without its handler. Its receipt says so, with the reason that you "
            "give: sent again under the same id of the sender's, it counts as handled. ID is as in "
            "heddle events retry.",
    .options = (const cli_option[]){ { "why", "TEXT", "the reason, for the receipt" },
                                     { "all", NULL, "every event whose handler failed" },
                                     { "stream", "CELL", "of --all: only those of this stream" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle events drop shop.db order-17 --why 'a test order'",
                                         "with a reason" },
                                       { NULL, NULL } },
    .run = run_drop,
};

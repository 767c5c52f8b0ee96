/* events.c -- posted events that wait, and receipts of those that were handled. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include <heddle/event.h>
#include <stdio.h>
#include <string.h>

typedef struct listing {
    store s;
    bool waiting, handled; /* which to show */
    hd_status status;
} listing;

/* The stream of a waiting event, as text. */
static const char *stream_name(listing *w, hd_cell document, hd_value event) {
    hd_cell stream = hd_cell_of_link(w->s.rt, document, hd_value_at(event, "stream"));
    const char *name = store_cell_name(&w->s, stream);
    return *name ? name : "?";
}

/* One posted event or receipt. */
typedef struct shown {
    const hd_listing *entry;
    const char *id;
    hd_cell document;
    hd_value value;
    hd_value failure; /* why the last program that tried did not handle it; or absent */
    bool waiting;
} shown;

static hd_value failure_of(listing *w, hd_cell document) {
    hd_tx *tx;
    hd_value none = { 0 };
    if (hd_tx_begin_read(w->s.rt, &tx)) return none;
    hd_value v = hd_tx_get_meta(tx, document, "failed");
    if (hd_value_exists(v)) v = hd_value_take(w->s.pool, hd_value_ref(v));
    hd_tx_abort(tx);
    return v;
}

static const char *state_of(const shown *e) {
    if (!e->waiting) return "handled";
    return hd_value_exists(e->failure) ? "failed" : "waiting";
}

static void print_json(listing *w, const shown *e) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "state", state_of(e));
    record_text(&r, "space", e->entry->space);
    record_text(&r, "id", e->id);
    record_number(&r, "seq", e->entry->seq);
    if (e->waiting) {
        record_text(&r, "stream", stream_name(w, e->document, e->value));
        record_value(&r, "payload", hd_value_at(e->value, "payload"));
        if (hd_value_exists(e->failure)) record_value(&r, "failure", e->failure);
    } else {
        record_value(&r, "outcome", e->value);
    }
    record_close(&r, '}');
    record_end(&r);
}

static void print_line(listing *w, const shown *e) {
    const cli *c = w->s.c;
    const char *stream = e->waiting ? stream_name(w, e->document, e->value) : "";
    printf("%s%-8s%s ", out_colour(c, e->waiting ? COLOUR_BOLD : COLOUR_DIM), state_of(e),
           out_colour(c, COLOUR_NONE));
    print_plain(stdout, e->entry->space);
    putchar('/');
    print_plain(stdout, e->id);
    putchar(' ');
    print_plain(stdout, stream);
    if (e->waiting) putchar(' ');
    w->status =
        print_value(e->waiting ? hd_value_at(e->value, "payload") : e->value, HD_JSON_COMPACT);
    if (!hd_value_exists(e->failure)) return;
    fputs("         ", stdout);
    print_plain(stdout, hd_value_as_text(hd_value_at(e->failure, "message"), ""));
    putchar('\n');
}

static bool print_entry(listing *w, const hd_listing *entry, bool waiting) {
    const char *slash = strchr(entry->id, '/');
    shown e = { .entry = entry, .id = slash ? slash + 1 : entry->id, .waiting = waiting };
    e.document = hd_cell_of(w->s.rt, entry->space, entry->scope, entry->id, NULL);
    e.value = hd_read(w->s.rt, w->s.pool, e.document);
    if (waiting) e.failure = failure_of(w, e.document);
    if (hd_value_exists(e.value)) {
        if (w->s.c->json) print_json(w, &e);
        else print_line(w, &e);
    }
    hd_pool_clear(w->s.pool);
    return !w->status && !output_broken() && !interrupted();
}

static bool print_waiting(const hd_listing *entry, void *ctx) {
    return print_entry(ctx, entry, true);
}
static bool print_handled(const hd_listing *entry, void *ctx) {
    return print_entry(ctx, entry, false);
}

static bool list_space(const char *space, void *ctx) {
    listing *w = ctx;
    if (w->waiting) w->status = hd_runtime_list(w->s.rt, space, "event", NULL, print_waiting, w);
    if (!w->status && w->handled)
        w->status = hd_runtime_list(w->s.rt, space, NULL, "receipt/", print_handled, w);
    return !w->status && !output_broken() && !interrupted();
}

static int run(cli *c) {
    listing w = { .waiting = !option_given(c, "handled"), .handled = !option_given(c, "waiting") };
    int failed = store_open(c, &w.s, c->operands[0], STORE_READ);
    if (!failed) {
        hd_status status = hd_runtime_spaces(w.s.rt, list_space, &w);
        if (!status) status = w.status;
        if (status) failed = store_fail(&w.s, status, w.s.file);
        else if (interrupted()) failed = interrupted_status();
    }
    return store_close(&w.s, failed);
}

const command command_events = {
    .name = "events",
    .also = "events ls",
    .section = "Events",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "list posted events and receipts",
    .text = "Shows events that were posted and wait for a program with a handler, with stream and "
            "payload, and receipts of events that were handled, with what the handler returned. An "
            "event whose handler failed stays, with the reason, and is tried again by the next "
            "program that starts; heddle rm takes it out. No program needs to be running.",
    .options = (const cli_option[]){ { "waiting", NULL, "only events that wait" },
                                     { "handled", NULL, "only receipts" },
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle events shop.db", "what waits, what was handled" },
                               { "heddle events shop.db --waiting --json", "for a program" },
                               { NULL, NULL } },
    .run = run,
};

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
static void stream_name(listing *w, hd_cell document, hd_value event, char *out, size_t size) {
    hd_cell stream = hd_cell_of_link(w->s.rt, document, hd_value_at(event, "stream"));
    if (!hd_cell_print(w->s.rt, stream, out, size)) snprintf(out, size, "?");
}

static void print_json(listing *w, const hd_listing *entry, const char *id, hd_cell document,
                       hd_value v, bool waiting) {
    char stream[256];
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "state", waiting ? "waiting" : "handled");
    record_text(&r, "space", entry->space);
    record_text(&r, "id", id);
    record_number(&r, "seq", entry->seq);
    if (waiting) {
        stream_name(w, document, v, stream, sizeof stream);
        record_text(&r, "stream", stream);
        record_value(&r, "payload", hd_value_at(v, "payload"));
    } else {
        record_value(&r, "outcome", v);
    }
    record_close(&r, '}');
    record_end(&r);
}

static void print_line(listing *w, const hd_listing *entry, const char *id, hd_cell document,
                       hd_value v, bool waiting) {
    const cli *c = w->s.c;
    char stream[256] = "";
    if (waiting) stream_name(w, document, v, stream, sizeof stream);
    printf("%s%-8s%s %s/%s %s%s", out_colour(c, waiting ? COLOUR_BOLD : COLOUR_DIM),
           waiting ? "waiting" : "handled", out_colour(c, COLOUR_NONE), entry->space, id, stream,
           waiting ? " " : "");
    w->status = print_value(waiting ? hd_value_at(v, "payload") : v, HD_JSON_COMPACT);
}

static bool print_entry(listing *w, const hd_listing *entry, bool waiting) {
    const char *slash = strchr(entry->id, '/');
    hd_cell document = hd_cell_of(w->s.rt, entry->space, entry->scope, entry->id, NULL);
    hd_value v = hd_read(w->s.rt, w->s.pool, document);
    const char *id = slash ? slash + 1 : entry->id;
    if (hd_value_exists(v)) {
        if (w->s.c->json) print_json(w, entry, id, document, v, waiting);
        else print_line(w, entry, id, document, v, waiting);
    }
    hd_pool_clear(w->s.pool);
    return !w->status && !output_broken() && !interrupted();
}

static bool print_waiting(void *ctx, const hd_listing *entry) {
    return print_entry(ctx, entry, true);
}
static bool print_handled(void *ctx, const hd_listing *entry) {
    return print_entry(ctx, entry, false);
}

static bool list_space(void *ctx, const char *space) {
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
    .section = "Events",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "list posted events and receipts",
    .text = "Shows events that were posted and wait for a program with a handler, with stream and "
            "payload, and receipts of events that were handled, with what the handler returned. No "
            "program needs to be running.",
    .options = (const cli_option[]){ { "waiting", NULL, "only events that wait" },
                                     { "handled", NULL, "only receipts" },
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle events shop.db", "what waits, what was handled" },
                               { "heddle events shop.db --waiting --json", "for a program" },
                               { NULL, NULL } },
    .run = run,
};

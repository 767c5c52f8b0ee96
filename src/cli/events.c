/* events.c -- posted events that wait or have failed, and receipts of those that were handled.
 *
 * The store lists them by their ids. The command notes the time of each, sorts them, and reads those again that it
 * prints: it holds no payloads. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/letter.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include <heddle/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID_AT = 9, STREAM_AT = 30 }; /* columns */

typedef struct listing {
    store s;
    const char *stream, *id; /* only these; NULL: all */
    bool failed;             /* only those that have failed */
    /* The id that a send to `stream` with `id` makes; "": not both are given. */
    char sent[HD_EVENT_ID_SIZE];
    letter *found; /* malloc, with space and id; only what letter_again and by_time need */
    size_t count, capacity;
    hd_status status;
} listing;

static void print_json(const letter *l) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "state", letter_state(l));
    record_text(&r, "space", l->space);
    record_text(&r, "id", l->id);
    record_number(&r, "seq", l->seq);
    if (*l->as) record_text(&r, "as", l->as);
    if (*l->stream) record_text(&r, "stream", l->stream);
    if (l->time_ms) record_number(&r, "time_ms", l->time_ms);
    if (l->due_ms) record_number(&r, "due_ms", l->due_ms);
    if (l->every_ms) record_number(&r, "every_ms", l->every_ms);
    if (l->attempts) record_number(&r, "attempts", l->attempts);
    record_value(&r, l->waiting ? "payload" : "outcome", l->value);
    record_value(&r, "failure", l->failure);
    record_close(&r, '}');
    record_end(&r);
}

static void print_time(uint64_t ms) {
    char text[40] = "";
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (ms && localtime_r(&seconds, &tm)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    printf("%19s", text);
}

/* Where a piece of the event's own line goes: on the next line, below the stream, if this one has no room for it. */
static int make_room(const cli *c, int column, int width) {
    if (column + width <= line_room(c)) return column;
    printf("\n%*s", STREAM_AT - 2, "");
    return STREAM_AT - 2;
}

/* The event's own line: state, time, stream, the sender's id, when it is due, attempts. */
static void print_head(const cli *c, const letter *l) {
    const char *stream = *l->stream ? l->stream : l->space;
    char more[64];
    int column = STREAM_AT + name_width(stream);
    print_time(l->time_ms);
    fputs("  ", stdout);
    print_plain(stdout, stream);
    if (*l->as) {
        column = make_room(c, column, 5 + name_width(l->as)) + 5 + name_width(l->as);
        fputs("  as ", stdout);
        print_plain(stdout, l->as);
    }
    if (l->due_ms) {
        column = make_room(c, column, 25) + 25;
        fputs("  due ", stdout);
        print_time(l->due_ms);
    }
    snprintf(more, sizeof more, "  every %" PRIu64 " ms", l->every_ms);
    if (l->every_ms) column = make_room(c, column, (int)strlen(more)) + printf("%s", more);
    snprintf(more, sizeof more, "  %" PRIu64 " attempts", l->attempts);
    if (l->attempts > 1) make_room(c, column, (int)strlen(more)), printf("%s", more);
    putchar('\n');
}

/* Below the event's own line its id, the payload, the reason. */
static void print_lines(listing *w, const letter *l) {
    const cli *c = w->s.c;
    colour of = l->waiting ? COLOUR_BOLD : COLOUR_DIM;
    if (hd_value_exists(l->failure)) of = COLOUR_RED;
    printf("%s%-8s%s ", out_colour(c, of), letter_state(l), out_colour(c, COLOUR_NONE));
    print_head(c, l);
    printf("%*s%s%s%s", ID_AT, "", out_colour(c, COLOUR_DIM), l->id, out_colour(c, COLOUR_NONE));
    w->status = print_value_within(c, l->value, "  ", ID_AT + name_width(l->id), ID_AT);
    putchar('\n');
    if (!hd_value_exists(l->failure)) return;
    printf("%*s%s", ID_AT, "", out_colour(c, COLOUR_RED));
    print_wrapped(hd_value_as_text(hd_value_at(l->failure, "message"), ""), ID_AT, ID_AT);
    fputs(out_colour(c, COLOUR_NONE), stdout);
}

static bool is_asked_for(const listing *w, const letter *l) {
    if (w->failed && !hd_value_exists(l->failure)) return false;
    if (*w->sent && strcmp(w->sent, l->id) == 0) return true;
    if (w->stream && strcmp(w->stream, l->stream)) return false;
    return !w->id || letter_is_named(l, w->id);
}

/* Room for one more of those that were asked for. */
static bool grow(listing *w) {
    if (w->count < w->capacity) return true;
    size_t capacity = w->capacity * 2 + 64;
    letter *larger = realloc(w->found, capacity * sizeof *larger);
    if (!larger) return false;
    w->found = larger;
    w->capacity = capacity;
    return true;
}

static bool note_letter(const letter *l, void *ctx) {
    listing *w = ctx;
    if (!is_asked_for(w, l)) return true;
    if (!grow(w)) return w->status = HD_NOMEM, false;
    letter *to = &w->found[w->count++];
    *to = (letter){ .space = strdup(l->space),
                    .id = strdup(l->id),
                    .document = l->document,
                    .seq = l->seq,
                    .waiting = l->waiting,
                    .time_ms = l->time_ms };
    if (!to->space || !to->id) w->status = HD_NOMEM;
    return !w->status;
}

/* The newest first; of one millisecond, the one that was stored last. */
static int by_time(const void *a, const void *b) {
    const letter *x = a, *y = b;
    if (x->time_ms != y->time_ms) return x->time_ms < y->time_ms ? 1 : -1;
    return x->seq == y->seq ? strcmp(y->id, x->id) : x->seq < y->seq ? 1 : -1;
}

static void release(listing *w) {
    for (size_t i = 0; i < w->count; i++) {
        free((char *)w->found[i].space);
        free((char *)w->found[i].id);
    }
    free(w->found);
}

static bool print_letter(const letter *l, void *ctx) {
    listing *w = ctx;
    if (w->s.c->json) print_json(l);
    else print_lines(w, l);
    return !w->status && !output_broken();
}

static int kinds_asked_for(const cli *c) {
    if (option_given(c, "waiting") || option_given(c, "failed")) return LETTERS_WAITING;
    return option_given(c, "handled") ? LETTERS_RECEIPTS : LETTERS_WAITING | LETTERS_RECEIPTS;
}

/* The receipt of an event that was sent, and not posted, names neither the stream nor the sender's id: both are in its
 * id, as a hash. */
static int name_sent(listing *w) {
    hd_cell stream;
    if (!w->stream || !w->id || !*w->id) return CLI_OK;
    int failed = store_cell(&w->s, w->stream, &stream);
    hd_status status = failed ? HD_OK : hd_event_id_of(w->s.rt, stream, w->id, 0, w->sent);
    return status ? store_fail(&w->s, status, w->stream) : failed;
}

static int list(listing *w, uint64_t limit) {
    cli *c = w->s.c;
    hd_status status = letter_each(&w->s, kinds_asked_for(c), note_letter, w);
    if (!status && !w->status && w->count) qsort(w->found, w->count, sizeof *w->found, by_time);
    for (size_t i = 0; !status && !w->status && i < w->count && i < limit; i++)
        if (!letter_again(&w->s, w->found[i], print_letter, w)) break;
    if (!status) status = w->status;
    if (status) return store_fail(&w->s, status, w->s.file);
    if (interrupted()) return interrupted_status();
    if (w->count || !w->id) return CLI_OK;
    return cli_fail(c, CLI_NOT_FOUND,
                    w->stream
                        ? "Give its id, the beginning of it, or the sender's own."
                        : "Give its id, the beginning of it, or the sender's own (with --stream, "
                          "if the event was sent and not posted).",
                    "there is no event \"%s\" in %s", w->id, w->s.file);
}

static int run(cli *c) {
    listing w = { .stream = option_text(c, "stream"),
                  .id = option_text(c, "id"),
                  .failed = option_given(c, "failed") };
    uint64_t limit = UINT64_MAX;
    int failed = option_number(c, "limit", &limit);
    if (failed) return failed;
    failed = store_open(c, &w.s, c->operands[0], STORE_READ);
    if (!failed) failed = name_sent(&w);
    if (!failed) failed = list(&w, limit);
    release(&w);
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
    .text =
        "Shows events that were posted and wait for a program with a handler, and receipts of "
        "events that were handled: when, the stream, the sender's own id (as ...), the id, and "
        "the payload or what the handler returned. The newest come first.\n\n"
        "The receipt of an event that a program sent, and did not post, tells neither stream nor "
        "sender's id, so --stream alone leaves it out: --stream and --id together find it.\n\n"
        "An event whose handler failed stays, with the reason: --failed lists these dead "
        "letters. It is tried again by the next program that starts, or when heddle events "
        "retry says so; heddle events drop ends it. No program needs to be running.\n\n"
        "Receipts are kept for 30 days, or as long as the program that handles the events says "
        "(receipt_days): from the time of the event's id, or, of an id without a time, from when "
        "the event was handled or dropped. Until then the same id is not handled again.",
    .options = (const cli_option[]){ { "waiting", NULL, "only events that wait or have failed" },
                                     { "failed", NULL, "only events whose handler failed" },
                                     { "handled", NULL, "only receipts" },
                                     { "stream", "CELL", "only those of this stream" },
                                     { "id", "ID", "only this: its id, or the sender's own" },
                                     { "limit", "N", "at most N: the newest" },
                                     OPTION_WIDE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle events shop.db", "what waits, what was handled" },
            { "heddle events shop.db --failed", "what handlers refuse" },
            { "heddle events shop.db --waiting --json", "for a program" },
            { "heddle events shop.db --stream main/buy --id order-17", "was this one handled?" },
            { NULL, NULL } },
    .run = run,
};

/* sender.c -- from a handler's commit to the event that it handled, and to the commit that sent that event.
 *
 * A handler's commit creates the event's receipt, so it has the event's id. A posted event was a document of that id:
 * the commit that created the document is the sender's. For an event that a transaction sent, the handler's commit has
 * the number of that transaction's commit ("from"). If the sender was a handler, too, the search goes on from its
 * commit. */
#define _POSIX_C_SOURCE 200809L
#include "cli/sender.h"

#include "cli/log.h"
#include "cli/output.h"
#include "cli/record.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MAX = 8 };

#define RECEIPT "receipt/"
#define EVENT   "event/"

static hd_value document(hd_value commit, const char *prefix, const char *id) {
    size_t length = strlen(prefix);
    for (hd_iter it = hd_iter_of(hd_value_at(commit, "d")); hd_iter_next(&it);) {
        const char *name = hd_value_as_text(hd_value_at(it.value, "i"), "");
        if (strncmp(name, prefix, length) || hd_value_exists(hd_value_at(it.value, "m"))) continue;
        if (!id || strcmp(name + length, id) == 0) return it.value;
    }
    return (hd_value){ 0 };
}

static void fill(sender *s, hd_value commit, const char *session) {
    hd_value receipt = document(commit, RECEIPT, NULL);
    const char *name = hd_value_as_text(hd_value_at(receipt, "i"), RECEIPT);
    bool handling = !strcmp(hd_value_as_text(hd_value_at(commit, "c"), ""), "event");
    *s = (sender){ .found = true,
                   .local_seq = (uint64_t)hd_value_as_int(hd_value_at(commit, "n"), 0),
                   .from = (uint64_t)hd_value_as_int(hd_value_at(commit, "from"), 0) };
    snprintf(s->session, sizeof s->session, "%s", session);
    snprintf(s->by, sizeof s->by, "%s", hd_value_as_text(hd_value_at(commit, "by"), ""));
    if (handling) snprintf(s->id, sizeof s->id, "%s", name + strlen(RECEIPT));
}

void sender_note(hd_value commit, const char *session, void *ctx) {
    sender *s = ctx, one;
    fill(&one, commit, session);
    if (!s->found && *one.id) *s = one;
}

/* ---- The sender of an event */

typedef struct search {
    const sender *of;
    sender found;
    char payload_text[256], as[128];
} search;

/* The record that the commit wrote into the event's document. */
static hd_value record_in(hd_value doc) {
    for (hd_iter op = hd_iter_of(hd_value_at(doc, "o")); hd_iter_next(&op);) {
        const char *word = hd_value_as_text(hd_value_index(op.value, 0), "");
        hd_value v = hd_value_index(op.value, 2);
        if (!strcmp(word, "set") && hd_value_exists(hd_value_at(v, "stream"))) return v;
    }
    return (hd_value){ 0 };
}

static void keep_payload(search *w, hd_value record_) {
    FILE *to = fmemopen(w->payload_text, sizeof w->payload_text, "w");
    if (to) {
        write_json(to, hd_value_at(record_, "payload"), HD_JSON_COMPACT);
        fclose(to);
    }
    snprintf(w->as, sizeof w->as, "%s", hd_value_as_text(hd_value_at(record_, "as"), ""));
}

static bool look(hd_value commit, const char *session, void *ctx) {
    search *w = ctx;
    hd_value record_ = record_in(document(commit, EVENT, w->of->id));
    if (hd_value_exists(record_)) {
        keep_payload(w, record_);
        fill(&w->found, commit, session); /* the oldest counts: a retry writes the document again */
        return true;
    }
    uint64_t n = (uint64_t)hd_value_as_int(hd_value_at(commit, "n"), 0);
    if (w->of->from && n == w->of->from && !strcmp(session, w->of->session))
        fill(&w->found, commit, session);
    return true;
}

/* ---- Printing */

static void print_event(const cli *c, const search *w, int depth) {
    const char *by = *w->of->by ? w->of->by : "a handler";
    int columns = depth * 2 + name_width(by) + (int)strlen(" handled event , sent as ") +
                  name_width(w->of->id) + name_width(w->as);
    printf("%*s%s", depth * 2, "", out_colour(c, COLOUR_BOLD));
    print_plain(stdout, by);
    printf("%s handled event %s", out_colour(c, COLOUR_NONE), w->of->id);
    if (*w->as) {
        fputs(",", stdout);
        if (columns > line_room(c)) printf("\n%*s", depth * 2 + 1, "");
        fputs(" sent as ", stdout);
        print_plain(stdout, w->as);
    }
    putchar('\n');
    if (!*w->payload_text) return;
    printf("%*swith %s", depth * 2 + 2, "", out_colour(c, COLOUR_GREEN));
    print_plain(stdout, w->payload_text);
    printf("%s\n", out_colour(c, COLOUR_NONE));
}

static void print_sender(const search *w, int depth) {
    const sender *s = &w->found;
    printf("%*s", depth * 2 + 2, "");
    if (!s->found) {
        printf("sent by the program itself, session %.8s, outside of a transaction\n",
               w->of->session);
        return;
    }
    printf("%s by session %.8s", *w->payload_text ? "posted" : "sent", s->session);
    fputs(*s->by ? ", " : "", stdout);
    print_plain(stdout, s->by);
    putchar('\n');
}

static void record_step(const search *w) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "event", w->of->id);
    record_text(&r, "handler", w->of->by);
    if (*w->as) record_text(&r, "as", w->as);
    record_text(&r, "sender_session", w->found.found ? w->found.session : w->of->session);
    if (*w->found.by) record_text(&r, "sender", w->found.by);
    record_close(&r, '}');
    record_end(&r);
}

int sender_print(cli *c, const char *file, const sender *of) {
    sender at = *of;
    int failed = CLI_OK;
    for (int depth = 0; at.found && *at.id && depth < STEPS_MAX && !failed; depth++) {
        search w = { .of = &at };
        failed = log_each(c, file, look, &w);
        if (failed) break;
        if (c->json) record_step(&w);
        else print_event(c, &w, depth), print_sender(&w, depth);
        at = w.found;
    }
    return failed;
}

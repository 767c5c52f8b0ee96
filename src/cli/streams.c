/* streams.c -- streams and their handlers: what waits where, and why.
 *
 * Running programs tell which handlers there are and what their events wait for; the file tells which posted events
 * wait, or have failed. */
#include "cli/commands.h"
#include "cli/letter.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/shown.h"
#include "cli/streams.h"
#include "cli/workflow.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One stream, in one program or in none. */
typedef struct row {
    char *stream, *handler, *waits, *behind, *node, *program; /* malloc; NULL: none */
    long pid;                                                 /* 0: no program has it */
    uint64_t queued, handled, failed;
    uint64_t in_file, dead; /* posted events that wait; that have failed */
    uint64_t later, due_ms; /* events whose time has not come; the first of those times */
} row;

typedef struct streams {
    cli *c;
    row *rows; /* malloc */
    size_t count;
    unsigned programs; /* that have answered */
    bool silent;       /* as in live.h */
    bool no_memory;
} streams;

static char *copy(streams *w, const char *text) {
    if (!*text) return NULL;
    size_t size = strlen(text) + 1;
    char *to = malloc(size);
    w->no_memory |= !to;
    return to ? memcpy(to, text, size) : NULL;
}

static row *add(streams *w, const char *stream) {
    row *larger = realloc(w->rows, (w->count + 1) * sizeof *larger);
    if (!larger) return w->no_memory = true, NULL;
    w->rows = larger;
    w->rows[w->count] = (row){ .stream = copy(w, stream) };
    return &w->rows[w->count++];
}

static void add_live(streams *w, hd_value answer, long pid, const char *program) {
    for (hd_iter it = hd_iter_of(answer); hd_iter_next(&it);) {
        row *r = add(w, live_text(it.value, "stream"));
        if (!r) return;
        r->pid = pid;
        r->program = copy(w, program);
        r->handler = copy(w, live_text(it.value, "handler"));
        r->waits = copy(w, live_text(it.value, "waits_for"));
        r->behind = copy(w, live_text(it.value, "behind"));
        r->node = copy(w, live_text(it.value, "node"));
        r->queued = live_number(it.value, "queued");
        r->handled = live_number(it.value, "handled");
        r->failed = live_number(it.value, "failed");
    }
}

static void ask(live *l, pid_t pid, void *ctx) {
    streams *w = ctx;
    hd_value hello, answer;
    bool ignored = false;
    (void)pid;
    l->silent = w->silent;
    if (live_ask_gently(l, "hello", hd_object(), &hello, &ignored) ||
        live_ask_gently(l, "streams", hd_object(), &answer, &ignored))
        return;
    w->programs++;
    add_live(w, answer, (long)live_number(hello, "pid"), live_text(hello, "name"));
}

/* The row of a posted event's stream: of a program that handles it, else its own. */
static row *row_of(streams *w, const char *stream) {
    row *any = NULL;
    for (size_t i = 0; i < w->count; i++) {
        row *r = &w->rows[i];
        if (!r->stream || strcmp(r->stream, stream)) continue;
        if (r->handler) return r;
        any = r;
    }
    return any ? any : add(w, stream);
}

static bool count_letter(const letter *l, void *ctx) {
    streams *w = ctx;
    row *r = row_of(w, l->stream);
    if (!r) return false;
    if (hd_value_exists(l->failure)) r->dead++;
    else if (l->due_ms > wall_ms()) {
        if (!r->later++ || l->due_ms < r->due_ms) r->due_ms = l->due_ms;
    } else r->in_file++;
    return true;
}

static int gather(streams *w, const char *file) {
    store s;
    const char *path = option_text(w->c, "socket");
    int failed = store_open(w->c, &s, file, STORE_READ);
    if (!failed && path) live_one_program(w->c, file, path, ask, w);
    else if (!failed) live_each_program(w->c, file, ask, w);
    hd_status status = failed ? HD_OK : letter_each(&s, LETTERS_WAITING, count_letter, w);
    if (w->no_memory) status = HD_NOMEM;
    if (status) failed = store_fail(&s, status, file);
    return store_close(&s, failed);
}

static void release(streams *w) {
    for (size_t i = 0; i < w->count; i++) {
        row *r = &w->rows[i];
        char *texts[] = { r->stream, r->handler, r->waits, r->behind, r->node, r->program };
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) free(texts[k]);
    }
    free(w->rows);
}

/* ---- Printing ------------------------------------------------------------------------------ */

static void print_json(const row *r) {
    record j = record_to(stdout);
    record_open(&j, NULL, '{');
    record_text(&j, "stream", r->stream ? r->stream : "?");
    if (r->handler) record_text(&j, "handler", r->handler);
    if (r->pid) record_number(&j, "pid", (uint64_t)r->pid);
    if (r->program) record_text(&j, "program", r->program);
    record_number(&j, "queued", r->queued);
    record_number(&j, "handled", r->handled);
    record_number(&j, "refused", r->failed);
    record_number(&j, "waiting", r->in_file);
    record_number(&j, "later", r->later);
    if (r->later) record_number(&j, "due_ms", r->due_ms);
    record_number(&j, "failed", r->dead);
    if (r->waits) record_text(&j, "waits_for", r->waits);
    if (r->behind) record_text(&j, "behind", r->behind);
    if (r->node) record_text(&j, "node", r->node);
    record_close(&j, '}');
    record_end(&j);
}

static void print_why(const cli *c, const row *r) {
    char when[WHEN_TEXT], word[SHOWN_SIZE];
    const char *file = shown_word(c->operands[0], word);
    if (r->waits) {
        printf("    %" PRIu64 " in line: the first ", r->queued);
        if (r->behind) {
            fputs("of the space is one of ", stdout);
            print_plain(stdout, r->behind);
            fputs(" and ", stdout);
        }
        printf("waits for %s", r->waits);
        if (r->node) printf(": "), print_plain(stdout, r->node);
        putchar('\n');
    }
    if (r->in_file && !r->handler)
        printf("    %" PRIu64 " posted: no running program that can be asked handles them\n",
               r->in_file);
    else if (r->in_file && !r->queued)
        printf("    %" PRIu64 " posted, not taken up yet\n", r->in_file);
    if (r->later)
        printf("    %" PRIu64 " for later, the first at %s\n", r->later,
               when_text(r->due_ms, when));
    if (r->dead)
        printf("    %s%" PRIu64 " failed%s: heddle events %s --failed tells why\n",
               out_colour(c, COLOUR_RED), r->dead, out_colour(c, COLOUR_NONE), file);
}

static void print_row(const streams *w, const row *r) {
    const cli *c = w->c;
    fputs(out_colour(c, COLOUR_BOLD), stdout);
    print_plain(stdout, r->stream ? r->stream : "?");
    printf("%s  ", out_colour(c, COLOUR_NONE));
    if (!r->handler) fputs(w->programs ? "no handler" : "no handler known", stdout);
    else if (strcmp(r->handler, r->stream ? r->stream : "")) {
        fputs("handler ", stdout);
        print_plain(stdout, r->handler);
    } else fputs("handled", stdout);
    if (r->pid) {
        fputs(" in ", stdout);
        print_plain(stdout, r->program ? r->program : "process");
        printf(" (%ld)", r->pid);
    }
    if (r->handled || r->failed)
        printf(", %" PRIu64 " handled, %" PRIu64 " refused", r->handled, r->failed);
    putchar('\n');
    print_why(c, r);
}

/* No program could be asked. */
static void warn_of_none(cli *c) {
    const char *file = c->operands[0];
    if (is_address(file))
        cli_warn(c, "%s is on a server: --socket says where a program tells its handlers", file);
    else cli_warn(c, "no running program serves %s: handlers are not known", file);
}

static int run(cli *c) {
    streams w = { .c = c };
    int failed = gather(&w, c->operands[0]);
    for (size_t i = 0; i < w.count && !failed; i++)
        if (c->json) print_json(&w.rows[i]);
        else print_row(&w, &w.rows[i]);
    if (!failed && !c->json && !w.programs && !option_given(c, "socket")) warn_of_none(c);
    else if (!failed && !c->json && !w.count && w.programs)
        puts("the program has no handlers, and no event waits");
    release(&w);
    return failed;
}

/* ---- For heddle send ------------------------------------------------------------------------ */

bool streams_handled(cli *c, const char *file, const char *stream, nearest *near) {
    streams w = { .c = c, .silent = true };
    bool found = false;
    live_each_program(c, file, ask, &w);
    for (size_t i = 0; i < w.count; i++) {
        if (!w.rows[i].handler || !w.rows[i].stream) continue;
        found |= strcmp(w.rows[i].stream, stream) == 0;
        nearest_offer(near, w.rows[i].stream);
    }
    found |= !w.programs;
    release(&w);
    return found;
}

const command command_streams = {
    .name = "streams",
    .also = "events streams",
    .section = "Events",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "streams and handlers: what waits where, and why",
    .text = "Asks the programs that serve FILE for their streams: which handler takes the events, "
            "how many were handled and refused since the program started, how many wait in line, "
            "and for what the first of them waits. The file adds posted events that no program has "
            "taken up, and those that have failed.",
    .options = (const cli_option[]){ { "socket", "PATH",
                                       "of the one program to ask, if it is not beside the file" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle streams shop.db", "for a look" },
                                       { "heddle streams shop.db --json", "for a program" },
                                       { NULL, NULL } },
    .run = run,
};

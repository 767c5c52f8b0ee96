/* pieces.c -- the pieces in a file, and which of them run. */
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 28, PATTERN_WIDTH = 20 };

typedef struct listing {
    store s;
    live l;
    hd_value running; /* what the program says, by "space/id"; absent: there is none */
    uint64_t count;
    hd_status status;
} listing;

/* "space/id". The name of a space has no slash, so two pieces have different names. */
static const char *piece_name(hd_pool *pool, const char *space, const char *id) {
    return hd_value_as_text(hd_string_f(pool, "%s/%s", space, id), "");
}

/* The program's entry about a piece; absent: it does not run there. */
static hd_value running_piece(const listing *w, const hd_listing *entry) {
    return hd_value_at(w->running, piece_name(w->s.pool, entry->space, entry->id));
}

/* Where its result is, as text. */
static const char *result_name(listing *w, hd_cell document, hd_value piece) {
    hd_cell result = hd_cell_of_link(w->s.rt, document, hd_value_at(piece, "result"));
    const char *name = store_cell_name(&w->s, result);
    return *name ? name : "-";
}

static void print_record(listing *w, const hd_listing *entry, hd_cell document, hd_value piece,
                         hd_value runs) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "space", entry->space);
    record_text(&r, "id", entry->id);
    record_value(&r, "pattern", hd_value_at(piece, "pattern"));
    record_value(&r, "version", hd_value_at(piece, "version"));
    record_value(&r, "started", hd_value_at(piece, "started"));
    record_text(&r, "result", result_name(w, document, piece));
    record_bool(&r, "running", hd_value_exists(runs));
    record_value(&r, "nodes", hd_value_at(runs, "nodes"));
    record_value(&r, "rows", hd_value_at(runs, "rows"));
    record_close(&r, '}');
    record_end(&r);
}

static void print_line(listing *w, const hd_listing *entry, hd_cell document, hd_value piece,
                       hd_value runs) {
    const cli *c = w->s.c;
    char state[48] = "";
    if (hd_value_exists(runs))
        snprintf(state, sizeof state, "runs, %" PRIu64 " node%s", live_number(runs, "nodes"),
                 live_number(runs, "nodes") == 1 ? "" : "s");
    print_name(c, piece_name(w->s.pool, entry->space, entry->id), NAME_WIDTH, 0);
    putchar(' ');
    print_name(c, live_text(piece, "pattern"), PATTERN_WIDTH, NAME_WIDTH + 1);
    printf(" %7" PRIu64 "  %s%s%s\n", live_number(piece, "started"), out_colour(c, COLOUR_GREEN),
           state, out_colour(c, COLOUR_NONE));
    printf("%s  result ", out_colour(c, COLOUR_DIM));
    print_plain(stdout, result_name(w, document, piece));
    printf("%s\n", out_colour(c, COLOUR_NONE));
}

static bool print_piece(const hd_listing *entry, void *ctx) {
    listing *w = ctx;
    const cli *c = w->s.c;
    hd_cell document = hd_cell_of(w->s.rt, entry->space, entry->scope, entry->id, NULL);
    hd_value piece = hd_read(w->s.rt, w->s.pool, document), runs = running_piece(w, entry);
    if (hd_value_exists(piece)) {
        if (!w->count++ && !c->json)
            printf("%s%-*s %-*s %7s  %s%s\n", out_colour(c, COLOUR_DIM), NAME_WIDTH, "piece",
                   PATTERN_WIDTH, "pattern", "started", "now", out_colour(c, COLOUR_NONE));
        if (c->json) print_record(w, entry, document, piece, runs);
        else print_line(w, entry, document, piece, runs);
    }
    hd_pool_clear(w->s.pool);
    return !output_broken() && !interrupted();
}

static bool list_space(const char *space, void *ctx) {
    listing *w = ctx;
    w->status = hd_runtime_list(w->s.rt, space, "piece", NULL, print_piece, w);
    return !w->status && !output_broken() && !interrupted();
}

/* The list that the program gave, to be looked up in. */
static int index_pieces(listing *w, hd_value list) {
    hd_pool *pool = w->l.pool;
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b))
        return cli_fail(w->l.c, CLI_INTERNAL, NULL, "out of memory");
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);)
        hd_builder_put(b, piece_name(pool, live_text(it.value, "space"), live_text(it.value, "id")),
                       it.value);
    w->running = hd_builder_close(b);
    return CLI_OK;
}

/* True, with a warning, if several programs serve the file and no option says which one is meant. */
static bool warn_of_several(cli *c) {
    if (option_given(c, "pid") || option_given(c, "socket")) return false;
    unsigned count = live_each(c->operands[0], NULL, NULL);
    if (count > 1)
        cli_warn(c, "%u programs serve %s: --pid says of which one to tell what runs", count,
                 c->operands[0]);
    return count > 1;
}

/* Asks the program which pieces run. Without a program the list comes from the file alone. */
static int ask_program(cli *c, listing *w) {
    hd_value list;
    if (warn_of_several(c)) return CLI_OK;
    int failed = live_open_quietly(c, &w->l, c->operands[0]);
    if (!failed) failed = live_ask(&w->l, "pieces", hd_object(), &list);
    if (!failed) failed = index_pieces(w, list);
    return w->l.unserved ? CLI_OK : failed;
}

static int list_all(listing *w) {
    hd_status status = hd_runtime_spaces(w->s.rt, list_space, w);
    if (!status) status = w->status;
    if (status) return store_fail(&w->s, status, w->s.file);
    if (interrupted()) return interrupted_status();
    if (!w->count && !w->s.c->json) puts("there are no pieces");
    return CLI_OK;
}

/* ---- Those that would have work to do ---------------------------------------------------- */

static bool print_stale(const hd_stale_piece *piece, void *ctx) {
    listing *w = ctx;
    const cli *c = w->s.c;
    w->count++;
    if (c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "space", piece->space);
        record_text(&r, "id", piece->id);
        record_number(&r, "stale_nodes", piece->nodes);
        record_close(&r, '}');
        record_end(&r);
    } else {
        print_name(c, piece_name(w->s.pool, piece->space, piece->id), NAME_WIDTH, 0);
        printf(" %" PRIu64 " node%s would run\n", piece->nodes, piece->nodes == 1 ? "" : "s");
        hd_pool_clear(w->s.pool);
    }
    return !output_broken() && !interrupted();
}

static int list_stale(listing *w) {
    hd_status status = hd_store_stale_pieces(w->s.rt, print_stale, w);
    if (status) return store_fail(&w->s, status, w->s.file);
    if (interrupted()) return interrupted_status();
    if (!w->count && !w->s.c->json) puts("nothing is stale: no piece would have work to do");
    return CLI_OK;
}

static int run(cli *c) {
    listing w = { 0 };
    bool stale = option_given(c, "stale");
    int failed = store_open(c, &w.s, c->operands[0], STORE_READ);
    if (!failed && !stale) failed = ask_program(c, &w);
    if (!failed) failed = stale ? list_stale(&w) : list_all(&w);
    live_close(&w.l);
    return store_close(&w.s, failed);
}

const command command_pieces = {
    .name = "pieces",
    .section = "A running program",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "the pieces in a file, and which of them run",
    .text = "Lists the pieces in FILE: pattern, how often each was started, where its result is. "
            "Those that run in a program that serves the file are marked, with the number of "
            "their nodes. No program needs to be running.\n\n"
            "With --stale only those are listed that would have work to do if they were resumed "
            "now, because something has changed that their computations had read; with how many "
            "computations. Nodes that a program registers on the runtime itself count as the piece "
            "'main'. No document is read for that: the answer comes from indexes.",
    .options = (const cli_option[]){ { "stale", NULL, "only pieces that would have work to do" },
                                     OPTIONS_LIVE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle pieces shop.db", "all of them" },
                               { "heddle pieces shop.db --stale", "what a restart would run" },
                               { "heddle pieces shop.db --json", "for a program" },
                               { NULL, NULL } },
    .run = run,
};

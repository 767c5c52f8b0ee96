/* demo_steps.c -- the chapters of the demonstration that one process tells alone.
 *
 * Each does something to the shop, lets it settle, and compares what the runtime says of itself with
 * what the chapter claims. */
#define _GNU_SOURCE
#include "cli/demo_steps.h"

#include "base/system.h"
#include "cli/output.h"
#include <heddle/inspect.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool demo_open_shop(story *s) {
    hd_error error = { 0 };
    s->shop.colour = out_colour(s->c, COLOUR_CYAN);
    s->shop.plain = out_colour(s->c, COLOUR_NONE);
    hd_status status = shop_open(&s->shop, s->file, &error);
    if (status && *error.message)
        s->aborted = cli_fail(s->c, exit_of(status), NULL, "%s", error.message);
    if (!story_ok(s, status, s->file)) return false;
    /* From here on `heddle why` can ask it. Where no socket can be made, the story goes on. */
    (void)hd_runtime_serve(s->shop.rt, &(hd_serve_options){ .name = "heddle demo" });
    return story_ok(s, hd_trace_enable(s->shop.rt, HD_TRACE_ALL), "tracing");
}

static void sell(story *s, const char *item, int64_t count) {
    story_ok(s, shop_sell(&s->shop, item, count, NULL, NULL, NULL), "a sale");
}

/* The cell of an item's count: stock#/0/count and so on, in the order of the shop's list. */
static hd_cell count_of(story *s, int place) {
    char key[8];
    snprintf(key, sizeof key, "%d", place);
    hd_cell item = hd_cell_child(s->shop.rt, s->shop.stock, key);
    return hd_cell_child(s->shop.rt, item, "count");
}
enum { TEA, CUP, POT };

/* ---- Computing --------------------------------------------------------------------------- */

void demo_opening(story *s) {
    if (!story_step(s, "A shop opens")) return;
    story_say(s, "Stock, prices and orders are documents in one SQLite file. Totals and a reorder "
                 "list are computed from them; the storefront is an effect, which prints:");
    if (!demo_open_shop(s)) return;
    story_settle_silently(s);
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(s->shop.rt, &stats);
    char reason[160];
    hd_why_not why = story_why_not(s, "best_seller", reason, sizeof reason);
    hd_trace_clear(s->shop.rt);
    story_check(s, stats.nodes > 0,
                "%" PRIu64 " nodes: %" PRIu64 " computations, %" PRIu64 " effects; %" PRIu64
                " runs so far",
                stats.nodes, stats.computations, stats.effects, stats.runs);
    story_check(s, why == HD_WHY_NOT_DORMANT && !story_runs_of(s, "best_seller"),
                "best_seller has not run: %s", reason);
    story_check(s, !story_runs_of(s, "reduced"),
                "reduced has not run: the branch of an ifElse that is not taken");
}

void demo_sale(story *s) {
    if (!story_step(s, "A customer buys two packets of tea")) return;
    story_say(s, "An event goes to the checkout. Its handler takes from the stock and adds an "
                 "order, in one transaction. What depends on that runs, and no more:");
    uint64_t reorder = story_runs_of(s, "reorder"), tea = story_runs_of(s, "shortages/tea");
    sell(s, "tea", 2);
    story_settle(s);
    if (s->aborted) return;
    tea = story_runs_of(s, "shortages/tea") - tea;
    reorder = story_runs_of(s, "reorder") - reorder;
    story_check(s, tea == 1 && reorder == 0,
                "enough tea is left: its row ran %" PRIu64 " time, with the same result, so\n"
                "the reorder list behind it ran %" PRIu64 " times: the wave stops there",
                tea, reorder);
}

void demo_price(story *s) {
    if (!story_step(s, "Two prices change")) return;
    story_say(s, "Nobody has ordered a cup, so the price of cups concerns the storefront alone:");
    uint64_t subtotal = story_runs_of(s, "subtotal");
    if (!story_ok(s, hd_write_json(s->shop.rt, shop_price(&s->shop, "cup"), "750"), "a price"))
        return;
    story_settle_silently(s);
    story_check(s, story_runs_of(s, "subtotal") == subtotal, "subtotal did not run");
    hd_trace_clear(s->shop.rt);
    story_pause(s, 2000);
    story_say(s, "The price of tea concerns one order:");
    if (!story_ok(s, hd_write_json(s->shop.rt, shop_price(&s->shop, "tea"), "500"), "a price"))
        return;
    story_settle(s);
}

void demo_discount(story *s) {
    if (!story_step(s, "Above 50.00 there are ten per cent off")) return;
    story_say(s,
              "The total is an ifElse. The branch that is not taken is not computed, so "
              "\"reduced\" has run %" PRIu64 " times. Two teapots are sold:",
              story_runs_of(s, "reduced"));
    sell(s, "pot", 2);
    story_settle(s);
    story_check(s, story_runs_of(s, "reduced") == 1, "reduced has run %" PRIu64 " time",
                story_runs_of(s, "reduced"));
}

void demo_gate(story *s) {
    if (!story_step(s, "One draft for two sales")) return;
    story_say(s,
              "Two sales leave too little of something. The draft for the supplier is an effect "
              "with a gate in time: it waits for %d ms of silence.",
              SHOP_QUIET_MS);
    uint64_t before = story_runs_of(s, "draft");
    sell(s, "pot", 1);
    sell(s, "cup", 4);
    story_settle_silently(s);
    if (s->aborted) return;
    char reason[160];
    hd_why_not why = story_why_not(s, "draft", reason, sizeof reason);
    story_check(s, why == HD_WHY_NOT_DEBOUNCE, "not yet: %s", reason);
    story_wait_for(s, "draft", before);
    uint64_t drafts = story_runs_of(s, "draft") - before;
    story_check(s, drafts == 1, "two sales, %" PRIu64 " draft", drafts);
    hd_trace_clear(s->shop.rt);
}

static int64_t sold(story *s) {
    return story_number(s, hd_cell_child(s->shop.rt, s->shop.orders, "length"));
}

void demo_question(story *s) {
    if (!story_step(s, "Somebody asks")) return;
    uint64_t before = story_runs_of(s, "best_seller");
    story_say(s,
              "%" PRId64 " orders have come in, and best_seller has run %" PRIu64 " times: "
              "nobody looked. Now somebody does, once:",
              sold(s), before);
    hd_pool *pool;
    if (!story_ok(s, hd_pool_open(hd_runtime_heap(s->shop.rt), &pool), "asking")) return;
    hd_value best = hd_pull_now(s->shop.rt, pool, s->shop.best);
    uint64_t runs = story_runs_of(s, "best_seller") - before;
    story_check(s, runs == 1 && hd_value_exists(best), "it ran %" PRIu64 " time, and says \"%s\"",
                runs, hd_value_as_text(best, "?"));
    hd_pool_close(pool);
    hd_trace_clear(s->shop.rt);
}

/* ---- Others ------------------------------------------------------------------------------ */

/* What another process does while our handler is between reading and writing: takes a packet. */
static void other_process_sells(shop *of) {
    story *s = of->meanwhile_ctx;
    char cell[] = SHOP_PREFIX "stock";
    char change[] = "[{\"op\": \"increment\", \"path\": \"/0/count\", \"value\": -1}]";
    char program[4096], patch[] = "patch";
    of->meanwhile = NULL; /* once */
    fflush(stdout);
    char *words[] = { program, patch, (char *)(uintptr_t)s->file, cell, change, NULL };
    pid_t child;
    int status = 0;
    if (!system_program(program, sizeof program) ||
        posix_spawn(&child, program, NULL, NULL, words, environ) ||
        waitpid(child, &status, 0) != child || status)
        story_ok(s, HD_IO, "the second writer");
}

void demo_conflict(story *s) {
    if (!story_step(s, "A second writer is faster")) return;
    int64_t before = story_number(s, count_of(s, TEA));
    story_say(s,
              "We sell two packets of tea. Between reading the stock (%" PRId64 ") and writing "
              "it, another process sells one:",
              before);
    story_shell(s, "heddle patch shop.db " SHOP_PREFIX "stock '[{\"op\": \"increment\", ...}]'");
    hd_event_stats events, events_after;
    hd_store_stats store, store_after;
    hd_runtime_event_stats(s->shop.rt, &events);
    hd_runtime_store_stats(s->shop.rt, &store);
    s->shop.meanwhile = other_process_sells;
    s->shop.meanwhile_ctx = s;
    sell(s, "tea", 2);
    story_settle_silently(s);
    if (s->aborted) return;
    hd_runtime_event_stats(s->shop.rt, &events_after);
    hd_runtime_store_stats(s->shop.rt, &store_after);
    int64_t after = story_number(s, count_of(s, TEA));
    story_check(s, store_after.rejected > store.rejected,
                "refused: the sale, which had read what was no longer true, and %" PRIu64
                " commits of what had been computed from it",
                store_after.rejected - store.rejected - 1);
    story_check(
        s, events_after.runs == events.runs + 2 && events_after.handled == events.handled + 1,
        "the handler ran %" PRIu64 " times, without our doing, and took effect %" PRIu64 " time",
        events_after.runs - events.runs, events_after.handled - events.handled);
    story_check(s, after == before - 3, "%" PRId64 " - 1 - 2 = %" PRId64 " packets are left",
                before, after);
    hd_trace_clear(s->shop.rt);
}

/* Outcomes of deliveries, in order. */
typedef struct outcomes {
    hd_status status[2];
    size_t count;
} outcomes;

static void note_outcome(const char *id, hd_status status, void *ctx) {
    outcomes *o = ctx;
    (void)id;
    if (o->count < 2) o->status[o->count++] = status;
}

void demo_delivered_twice(story *s) {
    if (!story_step(s, "The same order arrives twice")) return;
    story_say(s, "A web shop is not sure whether order \"web-17\", one packet of tea, came "
                 "through, and sends it again. The receipt of the first is in the commit of its "
                 "effects:");
    outcomes o = { .count = 0 };
    int64_t before = story_number(s, count_of(s, TEA));
    for (int i = 0; i < 2; i++) {
        hd_status status = shop_sell(&s->shop, "tea", 1, "web-17", note_outcome, &o);
        if (!story_ok(s, status, "a sale")) return;
        story_settle_silently(s);
    }
    if (s->aborted) return;
    int64_t after = story_number(s, count_of(s, TEA));
    story_check(s, o.count == 2 && o.status[0] == HD_OK, "first delivery: %s",
                hd_status_name(o.status[0]));
    story_check(s, o.count == 2 && o.status[1] == HD_EXISTS,
                "second delivery: %s, so nothing happens", hd_status_name(o.status[1]));
    story_check(s, before - after == 1, "sold: %" PRId64, before - after);
    hd_trace_clear(s->shop.rt);
}

void demo_why(story *s) {
    if (!story_step(s, "Why is that number there?")) return;
    int64_t total = story_number(s, s->shop.total);
    story_say(s, "The price of cups rises, and the open orders with it:");
    if (!story_ok(s, hd_write_json(s->shop.rt, shop_price(&s->shop, "cup"), "800"), "a price"))
        return;
    story_settle_silently(s);
    if (s->aborted) return;
    int64_t now = story_number(s, s->shop.total);
    story_say(s, "They were %" PRId64 ".%02d and are %" PRId64 ".%02d. Why?", total / 100,
              (int)(total % 100), now / 100, (int)(now % 100));
    story_why(s, "total");
    hd_trace_clear(s->shop.rt);
}

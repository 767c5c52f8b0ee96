/* live_shop.c -- a program for the checks of live.sh: a small shop that serves, until it is killed.
 *
 *     live_shop FILE [SOCKET]      prints "ready" when it can be asked
 *
 * Of a store on a server the socket is ./live.sock. */
#include <heddle.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_NAME "watches_the_price_of_all_that_the_shop_has_sold" /* folds lines */

typedef struct shop {
    hd_runtime *rt;
    hd_cell price, count, total, parity;
} shop;

static hd_status add_up(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    double price = hd_value_number(hd_tx_get(tx, s->price));
    double count = hd_value_number(hd_tx_get(tx, s->count));
    return hd_tx_set(tx, s->total, hd_int(hd_tx_pool(tx), (int64_t)(price * count)));
}

static hd_status odd_or_even(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    int64_t total = hd_value_as_int(hd_tx_get(tx, s->total), 0);
    return hd_tx_set_text(tx, s->parity, total % 2 ? "odd" : "even");
}

static hd_status nobody_looks(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    return hd_tx_set(tx, hd_cell_at(s->rt, "main/unseen"), hd_tx_get(tx, s->price));
}

static hd_status show(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    return hd_value_status(hd_tx_get(tx, s->parity));
}

static hd_status complain(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    double price = hd_value_number(hd_tx_get(tx, s->price));
    return price < 0 ? hd_tx_fail(tx, HD_FAILED, "the price is below zero") : HD_OK;
}

static void ignore(const hd_failure *failure, void *ctx) {
    (void)ctx;
    (void)failure;
}

static hd_value with_tax(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx;
    (void)ctx;
    return hd_double(hd_value_number(in) * 1.5);
}

static hd_cell till(hd_build *b, void *ctx) {
    hd_cell amount = hd_build_argument(b, "amount", hd_int(NULL, 2));
    return hd_build_derive(b, "due", amount, with_tax, NULL);
}

static int fail(const hd_runtime *rt, const char *doing) {
    fprintf(stderr, "live_shop: %s: %s\n", doing, rt ? hd_runtime_error(rt)->message : "?");
    return 1;
}

static bool build(shop *s) {
    hd_piece piece;
    hd_error error;
    hd_node waits = hd_effect(s->rt, "slow", show, s);
    hd_runtime_on_error(s->rt, ignore, NULL);
    return hd_compute(s->rt, "total", add_up, s, s->total).id &&
           hd_compute(s->rt, "parity", odd_or_even, s, s->parity).id &&
           hd_compute(s->rt, "unseen", nobody_looks, s, hd_cell_at(s->rt, "main/unseen")).id &&
           hd_effect(s->rt, "show", show, s).id && hd_effect(s->rt, LONG_NAME, complain, s).id &&
           hd_effect(s->rt, "complain", complain, s).id &&
           !hd_node_set_debounce(s->rt, waits, 60000) &&
           !hd_pattern_register(s->rt, "till", "1", till, NULL) &&
           !hd_piece_start(s->rt, &(hd_piece_spec){ .id = "corner", .pattern = "till" }, &piece,
                           &error);
}

int main(int argc, char **argv) {
    shop s = { 0 };
    hd_error error;
    if (argc < 2 || hd_open(argv[1], NULL, &s.rt, &error)) return fail(NULL, "open");
    s.price = hd_cell_at(s.rt, "main/price");
    s.count = hd_cell_at(s.rt, "main/count");
    s.total = hd_cell_at(s.rt, "main/total");
    s.parity = hd_cell_at(s.rt, "main/parity");
    if (!build(&s) || hd_write_json(s.rt, s.price, "3") || hd_write_json(s.rt, s.count, "4"))
        return fail(s.rt, "build");
    const char *path = argc > 2 ? argv[2] : strstr(argv[1], "://") ? "live.sock" : NULL;
    hd_serve_options options = { .socket = path, .name = "live_shop" };
    if (hd_runtime_serve(s.rt, &options)) return fail(s.rt, "serve");
    puts("ready");
    fflush(stdout);
    return hd_runtime_run(s.rt) != HD_OK;
}

/* shop.h -- a tea shop on one SQLite file. `heddle demo` runs it, and so does examples/14_shop.c.
 *
 *     stock --+--> shortages (a map) --> reorder ----------+--> draft (an effect, debounced)
 *             |                                            |
 *             +--------------------------------------------+--> storefront (an effect)
 *                                                          |
 *     prices -+--> amounts (a map) --> subtotal --> total -+
 *     orders -+                          |  |        ^
 *             |                          |  +-> reduced (ten per cent off)
 *             |                          +----> earned (the condition of an ifElse)
 *             +--> best seller (no effect needs it)
 *
 *     checkout (a stream) --> its handler takes from the stock and adds an order
 *
 * Amounts of money are whole cents. */
#ifndef EXAMPLES_SHOP_H
#define EXAMPLES_SHOP_H

#include <heddle/pattern.h>
#include <stdio.h>

#define SHOP_SPACE    "main"
#define SHOP_PIECE    "shop"
#define SHOP_PREFIX   SHOP_SPACE "/" SHOP_PIECE "/" /* of its documents */
#define SHOP_QUIET_MS 400                           /* the draft waits for so long a silence */

typedef struct shop {
    hd_runtime *rt;
    hd_piece piece;
    hd_cell stock, prices, orders;    /* what there is */
    hd_cell amounts, shortages;       /* a row for each order, for each item */
    hd_cell subtotal, total, reorder; /* what follows from them */
    hd_cell best;               /* follows as well, but is computed only when it is asked for */
    hd_cell checkout;           /* where customers go */
    const char *colour, *plain; /* escape sequences around what the effects print, or "" */
    void (*meanwhile)(struct shop *s); /* called by a sale between reading and writing; or NULL */
    void *meanwhile_ctx;
} shop;

/* Opens the file and starts the piece, which is there already or is made. The effects print to stdout
 * with the colours that are set in `s`. */
hd_status shop_open(shop *s, const char *file, hd_error *error);
hd_status shop_close(shop *s);

/* Sends a sale to the checkout. With an `id` of the customer's it counts once. */
hd_status shop_sell(shop *s, const char *item, int64_t count, const char *id, hd_outcome_fn done,
                    void *ctx);
/* The cell of an item's price. */
hd_cell shop_price(shop *s, const char *item);

#endif

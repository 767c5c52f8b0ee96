/* shop.c -- the tea shop: one pattern, built from the primitives of heddle/pattern.h.
 *
 * Nothing here knows that it is a demonstration, but for shop.meanwhile, which sell() calls so that the demonstration
 * can interfere. The order of the file: what is computed, what is shown, what customers do, and the pattern that puts
 * it together. */
#include "shop/shop.h"

#include <inttypes.h>
#include <string.h>

static const char first_stock[] =
    "[{\"id\": \"tea\", \"name\": \"Green tea\", \"count\": 12, \"keep\": 5},"
    " {\"id\": \"cup\", \"name\": \"Cup\", \"count\": 6, \"keep\": 3},"
    " {\"id\": \"pot\", \"name\": \"Teapot\", \"count\": 4, \"keep\": 2}]";
static const char first_prices[] = "{\"tea\": 450, \"cup\": 700, \"pot\": 2900}";
enum { DISCOUNT_FROM = 5000 };

static int64_t number_at(hd_value v, const char *key) {
    return hd_value_as_int(hd_value_at(v, key), 0);
}

static const char *text_at(hd_value v, const char *key) {
    return hd_value_as_text(hd_value_at(v, key), "?");
}

/* ---- What is computed -------------------------------------------------------------------- */

/* Of an order: reads the price of its item only, so that no other price concerns it. */
static hd_value amount(hd_tx *tx, hd_value order, void *ctx) {
    shop *s = ctx;
    hd_value price = hd_tx_get(tx, shop_price(s, text_at(order, "item")));
    if (hd_value_status(price)) return price;
    return hd_int(hd_tx_pool(tx), hd_value_as_int(price, 0) * number_at(order, "count"));
}

/* A map gives links to its rows; hd_tx_get_list follows them. */
static hd_value add_up(hd_tx *tx, hd_value links, void *ctx) {
    const shop *s = ctx;
    (void)links;
    hd_value amounts = hd_tx_get_list(tx, s->amounts);
    if (hd_value_status(amounts)) return amounts;
    int64_t sum = 0;
    for (hd_iter it = hd_iter_of(amounts); hd_iter_next(&it);) sum += hd_value_as_int(it.value, 0);
    return hd_int(hd_tx_pool(tx), sum);
}

static hd_value is_earned(hd_tx *tx, hd_value subtotal, void *ctx) {
    (void)tx, (void)ctx;
    return hd_bool(hd_value_as_int(subtotal, 0) >= DISCOUNT_FROM);
}

static hd_value reduce(hd_tx *tx, hd_value subtotal, void *ctx) {
    (void)ctx;
    return hd_int(hd_tx_pool(tx), hd_value_as_int(subtotal, 0) * 9 / 10);
}

/* Of an item: how many to order, twice what is to be kept; 0 while there is enough. */
static hd_value shortage(hd_tx *tx, hd_value item, void *ctx) {
    (void)ctx;
    int64_t count = number_at(item, "count"), keep = number_at(item, "keep");
    hd_pool *pool = hd_tx_pool(tx);
    hd_value line = hd_object_set(pool, hd_object(), "name", hd_value_at(item, "name"));
    return hd_object_set(pool, line, "order", hd_int(pool, count < keep ? 2 * keep - count : 0));
}

static hd_value list_shortages(hd_tx *tx, hd_value links, void *ctx) {
    const shop *s = ctx;
    (void)links;
    hd_value lines = hd_tx_get_list(tx, s->shortages), list = hd_array();
    if (hd_value_status(lines)) return lines;
    for (hd_iter it = hd_iter_of(lines); hd_iter_next(&it);)
        if (number_at(it.value, "order") > 0)
            list = hd_array_append(hd_tx_pool(tx), list, it.value);
    return list;
}

static int64_t sold_of(hd_value orders, const char *item) {
    int64_t sold = 0;
    for (hd_iter it = hd_iter_of(orders); hd_iter_next(&it);)
        if (!strcmp(text_at(it.value, "item"), item)) sold += number_at(it.value, "count");
    return sold;
}

static hd_value best_seller(hd_tx *tx, hd_value orders, void *ctx) {
    (void)ctx;
    const char *best = NULL;
    for (hd_iter it = hd_iter_of(orders); hd_iter_next(&it);) {
        const char *item = text_at(it.value, "item");
        if (!best || sold_of(orders, item) > sold_of(orders, best)) best = item;
    }
    return best ? hd_string(hd_tx_pool(tx), best) : hd_null();
}

/* ---- What is shown ----------------------------------------------------------------------- */

static void print_item(hd_value item, hd_value prices) {
    int64_t cents = number_at(prices, text_at(item, "id"));
    printf("   %s %" PRId64 ".%02d, %2" PRId64 " left", text_at(item, "name"), cents / 100,
           (int)(cents % 100), number_at(item, "count"));
}

static void print_reorder(hd_value reorder) {
    if (!hd_value_count(reorder)) fputs("nothing to reorder", stdout);
    else fputs("to reorder:", stdout);
    for (hd_iter it = hd_iter_of(reorder); hd_iter_next(&it);)
        printf("%s %" PRId64 " %s", it.index ? "," : "", number_at(it.value, "order"),
               text_at(it.value, "name"));
}

static hd_status print_storefront(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    hd_value stock = hd_tx_get(tx, s->stock), prices = hd_tx_get(tx, s->prices);
    hd_value total = hd_tx_get(tx, s->total), reorder = hd_tx_get(tx, s->reorder);
    hd_value all[] = { stock, prices, total, reorder };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (hd_value_status(all[i])) return hd_value_status(all[i]);
    int64_t cents = hd_value_as_int(total, 0);
    printf("  %s|", s->colour);
    for (hd_iter it = hd_iter_of(stock); hd_iter_next(&it);) print_item(it.value, prices);
    printf("%s\n  %s|   open orders %" PRId64 ".%02d, ", s->plain, s->colour, cents / 100,
           (int)(cents % 100));
    print_reorder(reorder);
    puts(s->plain);
    return HD_OK;
}

static hd_status print_draft(hd_tx *tx, void *ctx) {
    const shop *s = ctx;
    hd_value reorder = hd_tx_get(tx, s->reorder);
    if (hd_value_status(reorder) || !hd_value_count(reorder)) return hd_value_status(reorder);
    printf("  %s|   draft for the supplier, ", s->colour);
    print_reorder(reorder);
    puts(s->plain);
    return HD_OK;
}

/* ---- What customers do ------------------------------------------------------------------- */

static hd_value find_item(hd_value stock, const char *id, size_t *index) {
    for (hd_iter it = hd_iter_of(stock); hd_iter_next(&it);) {
        *index = it.index;
        if (!strcmp(text_at(it.value, "id"), id)) return it.value;
    }
    return (hd_value){ 0 };
}

static hd_status take_from_stock(hd_tx *tx, const shop *s, size_t index, int64_t left) {
    char place[32];
    snprintf(place, sizeof place, "%zu", index);
    hd_cell item = hd_cell_child(s->rt, s->stock, place);
    return hd_tx_set_int(tx, hd_cell_child(s->rt, item, "count"), left);
}

static hd_value order_of(hd_pool *pool, int64_t number, hd_value sale) {
    hd_value order = hd_object_set(pool, hd_object(), "id", hd_int(pool, number));
    order = hd_object_set(pool, order, "item", hd_value_at(sale, "item"));
    return hd_object_set(pool, order, "count", hd_value_at(sale, "count"));
}

/* Handles one sale {"item", "count"}. Whatever happens to the stock while it runs, it is as if it had
 * run alone: a commit on what has changed is refused, and it runs again. */
static hd_status sell(hd_tx *tx, const hd_event *event, void *ctx) {
    shop *s = ctx;
    size_t index;
    int64_t wanted = number_at(event->payload, "count");
    hd_value item = find_item(hd_tx_get(tx, s->stock), text_at(event->payload, "item"), &index);
    int64_t left = number_at(item, "count") - wanted;
    if (s->meanwhile) s->meanwhile(s);
    if (!hd_value_exists(item)) return hd_tx_fail(tx, HD_FAILED, "we do not sell that");
    if (left < 0)
        return hd_tx_fail(tx, HD_FAILED, "only %" PRId64 " left of %s", left + wanted,
                          text_at(item, "name"));

    hd_pool *pool = hd_tx_pool(tx);
    int64_t number = (int64_t)hd_value_count(hd_tx_get(tx, s->orders)) + 1;
    hd_status status = take_from_stock(tx, s, index, left);
    if (!status) status = hd_tx_append(tx, s->orders, order_of(pool, number, event->payload));
    if (!status) status = hd_tx_return(tx, order_of(pool, number, event->payload));
    return status;
}

/* ---- The pattern ------------------------------------------------------------------------- */

static hd_value parsed(hd_build *b, const char *json) {
    return hd_json_parse(hd_build_pool(b), json, strlen(json), NULL);
}

static void build_totals(hd_build *b, shop *s) {
    hd_each each = { .fn = amount, .ctx = s, .key = "/id" };
    s->amounts = hd_build_map(b, "amounts", s->orders, &each);
    s->subtotal = hd_build_derive(b, "subtotal", s->amounts, add_up, s);
    hd_cell earned = hd_build_derive(b, "earned", s->subtotal, is_earned, NULL);
    hd_cell reduced = hd_build_derive(b, "reduced", s->subtotal, reduce, NULL);
    s->total = hd_build_if_else(b, "total", earned, reduced, s->subtotal);
}

static void build_reorder(hd_build *b, shop *s) {
    hd_each each = { .fn = shortage, .key = "/id" };
    s->shortages = hd_build_map(b, "shortages", s->stock, &each);
    s->reorder = hd_build_derive(b, "reorder", s->shortages, list_shortages, s);
}

static void build_effects(hd_build *b, shop *s) {
    hd_cell seen[] = { s->stock, s->prices, s->total, s->reorder };
    hd_build_node(b, &(hd_node_spec){ .name = "storefront",
                                      .effect = true,
                                      .fn = print_storefront,
                                      .ctx = s,
                                      .reads = seen,
                                      .read_count = 4 });
    hd_build_node(b, &(hd_node_spec){ .name = "draft",
                                      .effect = true,
                                      .fn = print_draft,
                                      .ctx = s,
                                      .debounce_ms = SHOP_QUIET_MS,
                                      .reads = &s->reorder,
                                      .read_count = 1 });
}

static hd_cell tea_shop(hd_build *b, void *ctx) {
    shop *s = ctx;
    s->stock = hd_build_state(b, "stock", parsed(b, first_stock));
    s->prices = hd_build_state(b, "prices", parsed(b, first_prices));
    s->orders = hd_build_state(b, "orders", hd_array());
    build_totals(b, s);
    build_reorder(b, s);
    s->best = hd_build_derive(b, "best_seller", s->orders, best_seller, NULL);
    build_effects(b, s);
    s->checkout = hd_build_stream(b, "checkout");
    hd_build_handler(b, s->checkout, sell, s, (hd_cell[]){ s->stock, s->orders }, 2);
    return s->total;
}

/* ---- From outside ------------------------------------------------------------------------ */

hd_cell shop_price(shop *s, const char *item) { return hd_cell_child(s->rt, s->prices, item); }

hd_status shop_sell(shop *s, const char *item, int64_t count, const char *id, hd_outcome_fn done,
                    void *ctx) {
    hd_pool *pool;
    hd_status status = hd_pool_open(hd_runtime_heap(s->rt), &pool);
    if (status) return status;
    hd_value sale = hd_object_set(pool, hd_object(), "item", hd_string(pool, item));
    sale = hd_object_set(pool, sale, "count", hd_int(pool, count));
    status = hd_event_send(s->rt, s->checkout, sale,
                           &(hd_send_options){ .id = id, .done = done, .ctx = ctx });
    hd_pool_close(pool);
    return status;
}

hd_status shop_open(shop *s, const char *file, hd_error *error) {
    hd_status status = hd_open(file, &(hd_options){ .context = s }, &s->rt, error);
    if (!status) status = hd_pattern_register(s->rt, "tea_shop", "1", tea_shop, s);
    if (status) return status;
    hd_piece_spec spec = { .space = SHOP_SPACE, .id = SHOP_PIECE, .pattern = "tea_shop" };
    return hd_piece_start(s->rt, &spec, &s->piece, error);
}

hd_status shop_close(shop *s) {
    hd_status status = hd_close(s->rt);
    s->rt = NULL;
    return status;
}

/* 20_totals.c -- fold and group: totals of a dashboard that follow every change.
 *
 * Orders are grouped by their customer; each group is a list with a sum of its own, and the sum of all
 * orders is beside it. The change of one order costs O(log n) additions. */
#include <heddle.h>

#include <stdio.h>

static int additions;

static hd_value add(hd_tx *tx, hd_value a, hd_value b, void *ctx) {
    (void)ctx;
    additions++;
    return hd_int(hd_tx_pool(tx), hd_value_as_int(a, 0) + hd_value_as_int(b, 0));
}

static hd_value amount(hd_tx *tx, hd_value order, void *ctx) {
    (void)tx, (void)ctx;
    return hd_value_at(order, "amount");
}
static hd_value customer(hd_tx *tx, hd_value order, void *ctx) {
    (void)tx, (void)ctx;
    return hd_value_at(order, "customer");
}

static hd_cell total_of(hd_build *b, const char *name, hd_cell orders) {
    hd_fold fold = { .combine = add,
                     .neutral = hd_int(NULL, 0),
                     .each = { .fn = amount } }; /* or: .kind = HD_FOLD_SUM, without .combine */
    return hd_build_fold(b, name, orders, &fold);
}
static hd_cell customer_row(hd_build *row, hd_cell orders, void *ctx) {
    (void)ctx;
    return total_of(row, "total", orders);
}

static void show(hd_value v, void *ctx) {
    hd_pool *pool = ctx;
    printf("  %s\n", hd_json_print(pool, v, HD_JSON_COMPACT, NULL));
}

/* The orders are an object {number: order}, so each is known by its number. */
static hd_cell dashboard(hd_build *b, void *ctx) {
    hd_cell orders = hd_build_argument(b, "orders", hd_object());
    hd_cell groups = hd_build_group(b, "by customer", orders, &(hd_each){ .fn = customer });
    hd_cell totals = hd_build_map(b, "totals", groups, &(hd_each){ .build = customer_row });
    hd_build_sink(b, "show customers", hd_build_gather(b, "customers", totals), show, ctx);
    hd_cell all = total_of(b, "all", orders);
    hd_build_sink(b, "show all", all, show, ctx);
    return all;
}

static void set(hd_runtime *rt, const char *path, const char *json) {
    char cell[64];
    snprintf(cell, sizeof cell, "main/board#/arguments/orders%s", path);
    additions = 0;
    hd_write_json(rt, hd_cell_at(rt, cell), json);
    hd_runtime_settle(rt);
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    if (hd_open(NULL, NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool)) return 1;
    hd_pattern_register(rt, "dashboard", "1", dashboard, pool);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "board", .pattern = "dashboard" }, NULL, NULL))
        return 1;

    printf("three orders\n");
    set(rt, "",
        "{\"1001\": {\"customer\": \"ada\", \"amount\": 30},"
        " \"1002\": {\"customer\": \"bob\", \"amount\": 5},"
        " \"1003\": {\"customer\": \"ada\", \"amount\": 12}}");
    printf("one more\n");
    set(rt, "/1004", "{\"customer\": \"bob\", \"amount\": 8}");
    printf("1003 is bob's\n");
    set(rt, "/1003/customer", "\"bob\"");

    printf("1,000 more, and one of them changes\n");
    for (int i = 2000; i < 3000; i++) {
        char path[64], json[64];
        snprintf(path, sizeof path, "main/board#/arguments/orders/%d", i);
        snprintf(json, sizeof json, "{\"customer\": \"carol\", \"amount\": %d}", i % 10);
        hd_write_json(rt, hd_cell_at(rt, path), json);
    }
    hd_runtime_settle(rt);
    set(rt, "/2500/amount", "1000");
    printf("additions: %s\n", additions < 200 ? "less than 200" : "too many");
    hd_pool_close(pool);
    return hd_close(rt) != HD_OK;
}

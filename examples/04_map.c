/* 04_map.c -- map, filter: a row for each element, which runs when its element changes.
 *
 * Rows are known by their element, here by its "id": they survive reordering. */
#include <heddle.h>

#include <stdio.h>

static hd_value total(hd_tx *tx, hd_value item, void *ctx) {
    (void)ctx;
    printf("  row %s runs\n", hd_value_as_text(hd_value_at(item, "id"), "?"));
    return hd_int(hd_tx_pool(tx), hd_value_as_int(hd_value_at(item, "price"), 0) *
                                      hd_value_as_int(hd_value_at(item, "count"), 0));
}

static hd_value is_dear(hd_tx *tx, hd_value sum, void *ctx) {
    (void)tx, (void)ctx;
    return hd_bool(hd_value_as_int(sum, 0) >= 10);
}

static hd_cell cart(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell items = hd_build_argument(b, "items", hd_array());
    hd_cell totals = hd_build_map(b, "totals", items, &(hd_each){ .fn = total, .key = "/id" });
    hd_cell dear = hd_build_filter(b, "dear", totals, &(hd_each){ .fn = is_dear });
    return hd_build_gather(b, "all", dear); /* values instead of links */
}

static void show(hd_value v, void *ctx) {
    printf("%s\n", hd_json_print(ctx, v, HD_JSON_COMPACT, NULL));
}

static void set(hd_runtime *rt, const char *cell, const char *json) {
    hd_write_json(rt, hd_cell_at(rt, cell), json);
    hd_runtime_settle(rt);
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_piece piece;
    if (hd_open(NULL, NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool)) return 1;
    hd_pattern_register(rt, "cart", "1", cart, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "mine", .pattern = "cart" }, &piece, NULL))
        return 1;
    hd_sink(rt, hd_piece_result(rt, piece), show, pool);
    hd_runtime_settle(rt);

    printf("three items\n");
    set(rt, "main/mine#/arguments/items",
        "[{\"id\": \"tea\", \"price\": 4, \"count\": 3}, {\"id\": \"cup\", \"price\": 5, "
        "\"count\": 1},"
        " {\"id\": \"pot\", \"price\": 20, \"count\": 1}]");
    printf("two cups\n");
    set(rt, "main/mine#/arguments/items/1/count", "2");
    printf("another order\n");
    set(rt, "main/mine#/arguments/items",
        "[{\"id\": \"pot\", \"price\": 20, \"count\": 1}, {\"id\": \"tea\", \"price\": 4, "
        "\"count\": 3},"
        " {\"id\": \"cup\", \"price\": 5, \"count\": 2}]");
    printf("without tea\n");
    set(rt, "main/mine#/arguments/items",
        "[{\"id\": \"pot\", \"price\": 20, \"count\": 1}, {\"id\": \"cup\", \"price\": 5, "
        "\"count\": 2}]");
    hd_pool_close(pool);
    return hd_close(rt) != HD_OK;
}

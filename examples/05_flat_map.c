/* 05_flat_map.c -- flat_map: the elements of the rows' lists, one after the other; links as elements.
 *
 * The list holds links to documents: each is known by where it points. */
#include <heddle.h>

#include <stdio.h>

static hd_value tags(hd_tx *tx, hd_value article, void *ctx) {
    (void)tx, (void)ctx;
    printf("  row %s runs\n", hd_value_as_text(hd_value_at(article, "title"), "?"));
    return hd_value_at(article, "tags");
}

static hd_cell blog(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell articles = hd_build_argument(b, "articles", hd_array());
    return hd_build_flat_map(b, "tags", articles, &(hd_each){ .fn = tags });
}

static void show(hd_value v, void *ctx) {
    printf("%s\n", hd_json_print(ctx, v, HD_JSON_COMPACT, NULL));
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_piece piece;
    if (hd_open(NULL, NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool)) return 1;
    hd_write_json(rt, hd_cell_at(rt, "main/first"), "{\"title\": \"A\", \"tags\": [\"c\"]}");
    hd_write_json(rt, hd_cell_at(rt, "main/second"),
                  "{\"title\": \"B\", \"tags\": [\"db\", \"ui\"]}");
    hd_pattern_register(rt, "blog", "1", blog, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "blog", .pattern = "blog" }, &piece, NULL))
        return 1;
    hd_write_json(rt, hd_cell_at(rt, "main/blog#/arguments/articles"),
                  "[{\"$link\": {\"id\": \"first\"}}, {\"$link\": {\"id\": \"second\"}}]");
    hd_sink(rt, hd_piece_result(rt, piece), show, pool);
    hd_runtime_settle(rt);

    hd_write_json(rt, hd_cell_at(rt, "main/first#/tags"),
                  "[\"c\", \"io\"]"); /* the first row alone */
    hd_runtime_settle(rt);
    hd_pool_close(pool);
    return hd_close(rt) != HD_OK;
}

/* 07_nested.c -- patterns in patterns: one that is always built, and one that is built from a value.
 *
 * `generate` runs when x changes, and builds the graph anew. Parts that it builds as before stay; the constant "x" has
 * another value each time. When y changes, `multiply` runs and `generate` does not. */
#include <heddle.h>

#include <stdio.h>

static hd_value multiply(hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    printf("  multiply runs\n");
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in[0], 0) * hd_value_as_int(in[1], 0));
}

static hd_cell product(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell in[] = { hd_build_argument(b, "a", hd_int(NULL, 1)),
                     hd_build_argument(b, "b", hd_int(NULL, 1)) };
    return hd_build_lift(b, "multiply", multiply, NULL, in, 2);
}

static hd_cell generate(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    const hd_cell *y = ctx;
    (void)tx;
    printf("  generate runs for x = %lld\n", (long long)hd_value_as_int(in[0], 0));
    hd_named_cell of[] = { { "a", hd_build_constant(b, "x", in[0]) }, { "b", *y } };
    return hd_build_use(b, "of_both", "product", of, 2);
}

static hd_cell generator(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell *y = hd_runtime_context(hd_build_runtime(b)); /* main's: it outlives the piece */
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 2));
    *y = hd_build_argument(b, "y", hd_int(NULL, 10));
    return hd_build_derive_pattern(b, "generated", generate, y, &x, 1);
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("x * y = %lld\n", (long long)hd_value_as_int(v, -1));
}

int main(void) {
    hd_runtime *rt;
    hd_piece piece;
    hd_cell y;
    if (hd_open(NULL, &(hd_options){ .context = &y }, &rt, NULL)) return 1;
    hd_pattern_register(rt, "product", "1", product, NULL);
    hd_pattern_register(rt, "generator", "1", generator, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "g", .pattern = "generator" }, &piece, NULL))
        return 1;
    hd_sink(rt, hd_piece_result(rt, piece), show, NULL);
    hd_runtime_settle(rt);

    hd_write_json(rt, hd_cell_at(rt, "main/g#/arguments/y"), "11");
    hd_runtime_settle(rt);
    hd_write_json(rt, hd_cell_at(rt, "main/g#/arguments/x"), "3");
    hd_runtime_settle(rt);
    return hd_close(rt) != HD_OK;
}

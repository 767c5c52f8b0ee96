/* 13_inputs.c -- where values come from: arguments with defaults, links, constants, any cell at all. */
#include <heddle.h>

#include <stdio.h>

static hd_value gross(hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    int64_t net = hd_value_as_int(in[0], 0), tax = hd_value_as_int(in[1], 0);
    int64_t discount = hd_value_as_int(in[2], 0); /* 0 where there is none */
    return hd_int(hd_tx_pool(tx), net * (100 + tax) / 100 - discount);
}

static hd_cell article(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell in[] = { hd_build_argument(b, "net",
                                       hd_int(NULL, 100)), /* 100 if nobody says otherwise */
                     hd_build_constant(b, "tax", hd_int(NULL, 19)), /* the same for everybody */
                     hd_cell_at(hd_build_runtime(b), "main/discount") };
    return hd_build_lift(b, "gross", gross, NULL, in, 3);
}

static void show(hd_value v, void *ctx) {
    printf("  %s costs %lld\n", (const char *)ctx, (long long)hd_value_as_int(v, 0));
}

/* `net` absent: the default. */
static hd_status sell(hd_runtime *rt, hd_pool *pool, char *id, hd_value net) {
    hd_piece piece;
    hd_piece_spec spec = { .id = id, .pattern = "article", .arguments = hd_object() };
    if (hd_value_exists(net)) spec.arguments = hd_object_set(pool, hd_object(), "net", net);
    hd_status status = hd_piece_start(rt, &spec, &piece, NULL);
    if (status) return status;
    hd_sink(rt, hd_piece_result(rt, piece), show, id);
    return hd_runtime_settle(rt);
}

static void set(hd_runtime *rt, const char *cell, const char *json) {
    printf("%s is %s\n", cell, json);
    hd_write_json(rt, hd_cell_at(rt, cell), json);
    hd_runtime_settle(rt);
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    if (hd_open("articles.db", NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool))
        return 1;
    hd_pattern_register(rt, "article", "1", article, NULL);
    hd_value list_price = hd_cell_link(rt, pool, hd_cell_at(rt, "main/catalogue#/pot"));
    set(rt, "main/catalogue", "{\"pot\": 300}");
    if (sell(rt, pool, "tea", (hd_value){ 0 }) || sell(rt, pool, "cup", hd_int(pool, 200)) ||
        sell(rt, pool, "pot", list_price))
        return 1;

    set(rt, "main/tea#/arguments/net", "50"); /* an argument can be written */
    set(rt, "main/catalogue#/pot", "400");    /* one that is a link follows what it leads to */
    set(rt, "main/discount", "5");            /* everybody reads that */
    hd_pool_close(pool);
    return hd_close(rt) != HD_OK;
}

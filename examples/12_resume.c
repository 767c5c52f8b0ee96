/* 12_resume.c -- a program that ends and begins again runs only what has changed meanwhile. */
#include <heddle.h>

#include <stdio.h>

static hd_value with_tax(hd_tx *tx, hd_value price, void *ctx) {
    (void)tx, (void)ctx;
    printf("  computing\n");
    return hd_double(hd_value_number(price) * 1.25);
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("  total: %g\n", hd_value_number(v));
}

static hd_cell till(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell total =
        hd_build_derive(b, "total", hd_build_argument(b, "price", hd_int(NULL, 8)), with_tax, NULL);
    hd_build_sink(b, "show", total, show, NULL); /* effects run once after each start */
    return total;
}

/* One life of the program. The version says which code it is: another one would compute again. */
static hd_status live(const char *what, int64_t price) {
    hd_runtime *rt;
    hd_piece piece;
    hd_status status = hd_open("till.db", NULL, &rt, NULL);
    if (status) return status;
    printf("%s\n", what);
    hd_pattern_register(rt, "till", "1", till, NULL);
    hd_pool *pool;
    status = hd_pool_open(hd_runtime_heap(rt), &pool);
    if (status) return status;
    hd_value arguments = hd_object();
    if (price) arguments = hd_object_set(pool, arguments, "price", hd_int(pool, price));
    hd_piece_spec spec = { .id = "corner", .pattern = "till", .arguments = arguments };
    status = hd_piece_start(rt, &spec, &piece, NULL);
    if (!status) status = hd_runtime_settle(rt);
    hd_pool_close(pool);
    hd_status closed = hd_close(rt);
    return status ? status : closed;
}

int main(void) {
    hd_status status = live("the first time", 0);
    if (!status) status = live("again: nothing has changed", 0);
    if (!status) status = live("with another price", 12);
    return status != HD_OK;
}

/* 14_shop.c -- a whole application: the tea shop of `heddle demo` (shop/shop.c), with two customers.
 *
 * Built beside shop.c: cc -I. -o 14_shop 14_shop.c shop/shop.c $(pkg-config --cflags --libs heddle) */
#include "shop/shop.h"

/* Told when the sale is stored, or why it is not. */
static void tell(const char *id, hd_status status, void *ctx) {
    (void)id;
    printf("%s: %s\n", (const char *)ctx, status ? hd_status_text(status) : "sold");
}

int main(void) {
    shop s = { .colour = "", .plain = "" };
    hd_error error;
    hd_status status = shop_open(&s, "shop.db", &error);
    if (status) {
        fprintf(stderr, "shop.db: %s\n", error.message);
        return 1;
    }
    status = hd_runtime_settle(s.rt);
    if (!status) status = shop_sell(&s, "pot", 2, "order-1", tell, "two teapots");
    if (!status) status = hd_runtime_sync(s.rt);
    if (!status) status = shop_sell(&s, "pot", 2, "order-1", tell, "the same order once more");
    if (!status) status = hd_runtime_sync(s.rt);
    hd_status closed = shop_close(&s);
    return status || closed;
}

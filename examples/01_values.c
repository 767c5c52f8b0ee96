/* 01_values.c -- values are immutable: changing one makes another, and both can be kept.
 *
 * Parses a shopping cart, changes one price and adds one item, and asks what differs. */
#include <heddle.h>

#include <stdio.h>
#include <string.h>

static void print(hd_pool *pool, const char *label, hd_value v) {
    printf("%-7s %s\n", label, hd_json_print(pool, v, HD_JSON_COMPACT, NULL));
}

/* Called once for each smallest place where the two carts differ. */
static bool show_difference(const hd_step *path, size_t depth, hd_value before, hd_value after,
                            void *ctx) {
    hd_pool *pool = ctx;
    printf("differs");
    for (size_t i = 0; i < depth; i++) {
        if (path[i].key) printf("/%s", path[i].key);
        else printf("/%zu", path[i].index);
    }
    if (hd_value_exists(before))
        printf("  was %s", hd_json_print(pool, before, HD_JSON_COMPACT, NULL));
    if (hd_value_exists(after))
        printf("  is %s", hd_json_print(pool, after, HD_JSON_COMPACT, NULL));
    printf("\n");
    return true;
}

static double total(hd_value cart) {
    double sum = 0;
    for (hd_iter it = hd_iter_of(hd_value_at(cart, "items")); hd_iter_next(&it);)
        sum += hd_value_number(hd_value_at(it.value, "price"));
    return sum;
}

int main(void) {
    static const char text[] = "{\"owner\": \"Ada\", \"items\": [{\"price\": 3}, {\"price\": 4}]}";
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    hd_path price;
    hd_error error;
    if (hd_heap_open(NULL, NULL, &heap) || hd_pool_open(heap, &pool)) return 1;
    if (hd_path_intern(heap, "/items/1/price", &price, NULL)) return 1;

    hd_value cart = hd_json_parse(pool, text, strlen(text), &error);
    hd_value dearer = hd_value_set(pool, cart, price, hd_int(pool, 5));
    hd_value gift = hd_object_set(pool, dearer, "gift", hd_bool(true));
    if (hd_value_status(gift)) return 1; /* whatever failed on the way comes out here */

    print(pool, "before", cart);
    print(pool, "after", gift);
    hd_value_diff(heap, cart, gift, show_difference, pool);
    printf("totals  %g and %g\n", total(cart), total(gift));

    static const char bad[] = "{\"owner\": \"Ada\",\n \"items\": [1, 2,]}";
    hd_json_parse(pool, bad, strlen(bad), &error);
    printf("error   line %u, column %u, at %s\n", error.line, error.column, error.path);

    hd_pool_close(pool); /* frees every value made above */
    hd_heap_close(heap);
    return 0;
}

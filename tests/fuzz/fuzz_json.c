/* JSON from a stranger: what is read must print and read again as the same value, in both styles,
 * and the compact text must be its own canonical form. */
#include <heddle/value.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(hd_pool *pool, hd_value v, hd_json_style style) {
    size_t length, again_length;
    const char *text = hd_json_print(pool, v, style, &length);
    if (!text) abort();
    hd_value again = hd_json_parse(pool, text, length, NULL);
    if (!hd_value_equal(v, again)) abort();
    const char *twice = hd_json_print(pool, again, style, &again_length);
    if (!twice || again_length != length || memcmp(text, twice, length) != 0) abort();
}

static void check_error(const hd_error *e, size_t size) {
    if (e->status == HD_OK || e->message[0] == 0 || e->line == 0 || e->column == 0) abort();
    if (e->offset > size) abort();
    if (!memchr(e->path, 0, sizeof e->path) || !memchr(e->message, 0, sizeof e->message)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_heap *heap;
    hd_pool *pool;
    hd_limits limits = { .depth = 40 };
    if (hd_heap_open(NULL, &limits, &heap) || hd_pool_open(heap, &pool)) abort();
    hd_error error = { 0 };
    hd_value v = hd_json_parse(pool, (const char *)data, size, &error);
    if (hd_value_exists(v)) {
        check_round_trip(pool, v, HD_JSON_COMPACT);
        check_round_trip(pool, v, HD_JSON_PRETTY);
    } else {
        check_error(&error, size);
    }
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

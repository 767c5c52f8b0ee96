/* fuzz_path.c -- any bytes as a path: refused with a place inside the text, or a path that prints as
 * it was given, and at which a value can be set, read, appended to and removed.
 *
 * The first byte chooses the value that is changed. */
#include "value/node.h"
#include "value/path.h"
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) abort();                                                                 \
    } while (0)

enum { TEXT_MAX = 4096 };

/* {"a": [1, {"b": null}], "": {}}, or a part of it, or nothing. */
static hd_value subject(hd_pool *pool, unsigned choice) {
    hd_value inner = hd_object_set(pool, hd_object(), "b", hd_null());
    hd_value items[2] = { hd_int(NULL, 1), inner };
    hd_value array = hd_array_of(pool, items, 2);
    hd_value whole = hd_object_set(pool, hd_object_set(pool, hd_object(), "a", array), "", inner);
    hd_value choices[] = { whole, array, hd_object(), hd_array(), hd_int(NULL, 7), { 0 } };
    return choices[choice % (sizeof choices / sizeof *choices)];
}

static void check_text(hd_heap *heap, hd_path path, const char *text, size_t length) {
    char out[TEXT_MAX + 1];
    CHECK(hd_path_print(heap, path, out, sizeof out) == length);
    CHECK(memcmp(out, text, length + 1) == 0);
    hd_path again;
    CHECK(hd_path_intern(heap, text, &again, NULL) == HD_OK && again == path);
    CHECK(path_is_prefix(heap, hd_path_parent(heap, path), path));
    paths_check(heap);
}

static void check_changes(hd_pool *pool, hd_path path, hd_value v) {
    hd_heap *heap = hd_pool_heap(pool);
    hd_value was = hd_value_get(heap, v, path);
    hd_value set = hd_value_set(pool, v, path, hd_bool(true));
    if (hd_value_exists(set)) {
        CHECK(hd_value_as_bool(hd_value_get(heap, set, path), false));
        hd_value removed = hd_value_remove(pool, set, path);
        CHECK(path == HD_PATH_ROOT || !hd_value_equal(removed, set));
    }
    CHECK(hd_value_equal(hd_value_get(heap, v, path), was)); /* the original is as it was */
    hd_value appended = hd_value_append(pool, v, path, hd_null());
    if (hd_value_exists(appended))
        CHECK(hd_value_count(hd_value_get(heap, appended, path)) == hd_value_count(was) + 1);
}

static void try_path(hd_heap *heap, unsigned choice, const char *text, size_t length) {
    hd_pool *pool;
    hd_path path;
    hd_error error = { 0 };
    CHECK(hd_pool_open(heap, &pool) == HD_OK);
    hd_status status = hd_path_intern(heap, text, &path, &error);
    if (status == HD_OK) {
        check_text(heap, path, text, length);
        check_changes(pool, path, subject(pool, choice));
    } else {
        CHECK(error.status == status && error.message[0]);
        CHECK(status != HD_SYNTAX || error.offset < length);
    }
    hd_pool_close(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char text[TEXT_MAX + 1];
    if (size == 0 || size > TEXT_MAX) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    hd_heap *heap;
    CHECK(hd_heap_open(NULL, NULL, &heap) == HD_OK);
    try_path(heap, data[0], text, strlen(text)); /* a NUL ends the path */
    hd_heap_close(heap);
    return 0;
}

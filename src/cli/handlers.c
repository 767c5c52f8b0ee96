/* handlers.c -- handlers of a running program. */
#include "cli/handlers.h"

#include <string.h>

hd_value handlers_of(live *l) {
    hd_value all, found = hd_array();
    bool ignored = false;
    if (live_ask_gently(l, "streams", hd_object(), &all, &ignored) || ignored) return found;
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);)
        if (*live_text(it.value, "handler")) found = hd_array_append(l->pool, found, it.value);
    return found;
}

const char *handler_name(hd_value handler) { return live_text(handler, "handler"); }

/* Whether `name` is the whole, or its last part: "buy" of "main/shop/buy". */
static bool is_called(const char *whole, const char *name, bool exactly) {
    size_t n = strlen(whole), m = strlen(name);
    if (n < m || strcmp(whole + n - m, name) != 0) return false;
    return n == m || (!exactly && strchr(":/", whole[n - m - 1]));
}

hd_value handlers_find(hd_value handlers, const char *name) {
    hd_value found = { 0 };
    for (int exactly = 1; exactly >= 0 && !hd_value_exists(found); exactly--)
        for (hd_iter it = hd_iter_of(handlers); hd_iter_next(&it);) {
            if (!is_called(live_text(it.value, "stream"), name, exactly) &&
                !is_called(handler_name(it.value), name, exactly))
                continue;
            if (hd_value_exists(found)) return (hd_value){ 0 };
            found = it.value;
        }
    return found;
}

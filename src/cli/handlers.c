/* handlers.c -- handlers of a running program. */
#include "cli/handlers.h"

#include "cli/output.h"
#include "cli/shown.h"
#include <inttypes.h>
#include <stdio.h>
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

bool handlers_add(live *l, const char *name, hd_value *answer) {
    if (hd_value_count(hd_value_at(*answer, "nodes"))) return false;
    hd_value handler = handlers_find(handlers_of(l), name);
    if (hd_value_exists(handler)) *answer = hd_object_set(l->pool, *answer, "handler", handler);
    return hd_value_exists(handler);
}

void handlers_print(const cli *c, hd_value handler) {
    const char *stream = live_text(handler, "stream"), *waits = live_text(handler, "waits_for");
    uint64_t queued = live_number(handler, "queued");
    char word[SHOWN_SIZE];
    const char *file = shown_word(c->operands[0], word);
    fputs(out_colour(c, COLOUR_BOLD), stdout);
    print_plain(stdout, handler_name(handler));
    printf("%s  handler, %" PRIu64 " handled, %" PRIu64 " refused\n", out_colour(c, COLOUR_NONE),
           live_number(handler, "handled"), live_number(handler, "failed"));
    if (queued) printf("  %" PRIu64 " in line: the first waits for %s\n", queued, waits);
    else puts("  no event waits for it in the program");
    printf("  %sIt runs when an event comes. What waits where, and why:\n    heddle streams %s\n",
           out_colour(c, COLOUR_DIM), file);
    printf("  What was sent:\n    heddle events %s --stream ", file);
    print_plain(stdout, stream);
    printf("%s\n", out_colour(c, COLOUR_NONE));
}

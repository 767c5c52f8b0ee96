/* fuzz_link.c -- any bytes as a link, made in both ways: from parts (the lines of the input are space, scope, id and
 * path) and from the JSON form. A link that is accepted has parts, and a JSON form, that make the same link again. */
#include <heddle/value.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line, NUL-terminated in place; an empty one is NULL. */
static const char *next_part(char **at) {
    char *part = *at;
    char *end = strchr(part, '\n');
    *at = end ? end + 1 : part + strlen(part);
    if (end) *end = 0;
    return *part ? part : NULL;
}

static void check_link(hd_pool *pool, hd_value v) {
    hd_link link;
    if (!hd_value_link(v, &link)) abort();
    if (!hd_value_equal(v, hd_link_make(pool, &link))) abort();
    size_t length;
    const char *text = hd_json_print(pool, v, HD_JSON_COMPACT, &length);
    if (!text || !hd_value_equal(v, hd_json_parse(pool, text, length, NULL))) abort();
}

static void try_parts(hd_pool *pool, char *text) {
    hd_link link = { .space = next_part(&text) };
    const char *scope = next_part(&text);
    link.scope = scope ? (hd_scope)(unsigned char)(*scope - '0') : HD_SCOPE_HERE;
    link.id = next_part(&text);
    link.path = next_part(&text);
    hd_value v = hd_link_make(pool, &link);
    if (hd_value_exists(v)) check_link(pool, v);
    else if (hd_value_status(v) != HD_SYNTAX) abort();
}

static void try_form(hd_pool *pool, const char *text, size_t size) {
    char *form = malloc(size + 16);
    if (!form) abort();
    int before = snprintf(form, size + 16, "{\"$link\":");
    memcpy(form + before, text, size);
    form[(size_t)before + size] = '}';
    hd_value v = hd_json_parse(pool, form, (size_t)before + size + 1, NULL);
    if (hd_value_kind(v) == HD_KIND_LINK) check_link(pool, v);
    free(form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_heap *heap;
    hd_pool *pool;
    if (hd_heap_open(NULL, NULL, &heap) || hd_pool_open(heap, &pool)) abort();
    char *text = malloc(size + 1);
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    try_form(pool, text, size);
    try_parts(pool, text);
    free(text);
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

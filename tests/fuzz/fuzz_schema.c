/* fuzz_schema.c -- any schema compiles or is refused; what compiles survives any value.
 *
 * The input is two JSON texts, the schema up to the first newline, the value behind it. Keys of the
 * schema that begin with $ are doubled, as everywhere in JSON: {"$$ref": "#"}. */
#include "value/schema.h"
#include <stdlib.h>

static void must(bool held) {
    if (!held) abort();
}

/* What validates can be read. */
static void use(hd_pool *pool, const hd_schema *schema, hd_value v) {
    hd_error error = { 0 };
    hd_status status = hd_schema_validate(schema, v, &error);
    must(status == HD_OK || (error.status == status && error.message[0]));
    hd_value part = hd_schema_project(pool, schema, v);
    must(hd_value_status(part) == HD_OK || hd_value_status(part) == HD_LIMIT);
    if (status == HD_OK) must(hd_value_kind(part) != HD_KIND_ABSENT);

    const schema_node *node;
    status = schema_choose(schema, schema_root(schema), v, &node);
    must(status == HD_OK || status == HD_LIMIT);
    must(!node || !node->any_count || (node->flags & SCHEMA_BOUNDARY));
}

static void compile_and_use(hd_heap *heap, hd_pool *pool, hd_value source, hd_value v) {
    hd_schema *schema;
    hd_error error = { 0 };
    hd_status status = hd_schema_compile(heap, source, &schema, &error);
    must((status == HD_OK) == (schema != NULL));
    if (status) {
        must(status == HD_SCHEMA && error.status == status && error.message[0]);
        return;
    }
    if (hd_value_exists(v)) use(pool, schema, v);
    use(pool, schema, source);
    hd_schema_close(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    const char *newline = size ? memchr(text, '\n', size) : NULL;
    size_t length = newline ? (size_t)(newline - text) : size;
    const char *rest = newline ? newline + 1 : text + size;
    hd_heap *heap;
    hd_pool *pool;
    must(hd_heap_open(NULL, NULL, &heap) == HD_OK);
    must(hd_pool_open(heap, &pool) == HD_OK);
    hd_value source = hd_json_parse(pool, text, length, NULL);
    hd_value v = hd_json_parse(pool, rest, size - (size_t)(rest - text), NULL);
    if (hd_value_exists(source)) compile_and_use(heap, pool, source, v);
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

/* schema_world.h -- schemas and values written in one line. Include after cmocka.h.
 *
 * Schemas and values are written with ' for ". A key of the schema that begins with $ is written
 * so, and doubled on the way to the parser. */
#ifndef HEDDLE_SCHEMA_WORLD_H
#define HEDDLE_SCHEMA_WORLD_H

#include "value/schema.h"
#include "value_world.h"
#include <string.h>

static inline hd_value json(world *w, const char *text) {
    char out[8192];
    size_t n = 0;
    for (const char *c = text; *c; c++) {
        assert_true(n + 2 < sizeof out);
        out[n++] = *c == '\'' ? '"' : *c;
        if (c[0] == '\'' && c[1] == '$' && strncmp(c, "'$link'", 7) != 0) out[n++] = '$';
    }
    hd_error error;
    hd_value v = hd_json_parse(w->pool, out, n, &error);
    if (!hd_value_exists(v)) fail_msg("%s: %s", text, error.message);
    return v;
}

static inline hd_schema *compile(world *w, const char *text) {
    hd_schema *schema;
    hd_error error;
    if (hd_schema_compile(w->heap, json(w, text), &schema, &error))
        fail_msg("%s: %s: %s", text, error.path, error.message);
    return schema;
}

#endif

/* Expressions as text from a stranger: refused with a place inside the text, or parsed into a form that the
 * compiler takes or refuses. */
#include "expr/compile.h"
#include "expr/parse.h"
#include "value/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compile(hd_value form, bool statements) {
    classes *known;
    world *w;
    scope *names;
    code *c;
    if (classes_open(NULL, &known) || world_open(NULL, NULL, known, &w) || scope_open(NULL, &names))
        abort();
    hd_status status = statements ? compile_statements(w, names, form, &c, NULL)
                                  : compile_expression(w, names, form, &c, NULL);
    if (!status) code_free(c);
    scope_close(names);
    world_close(w);
    classes_close(known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_heap *heap;
    hd_pool *pool;
    hd_value form;
    if (!size) return 0;
    char *text = malloc(size);
    if (!text || hd_heap_open(NULL, NULL, &heap) || hd_pool_open(heap, &pool)) abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    for (int statements = 0; statements < 2; statements++) {
        hd_error error = { 0 };
        hd_status status = statements ? parse_statements(pool, text, &form, &error)
                                      : parse_expression(pool, text, &form, &error);
        if (!status && !utf8_valid(text, strlen(text), NULL)) abort();
        if (!status) compile(form, statements);
        else if (!error.message[0] || !error.line || error.offset > strlen(text)) abort();
    }
    hd_pool_close(pool);
    hd_heap_close(heap);
    free(text);
    return 0;
}

/* name_list.c -- a message that ends with the names that would have been right. */
#include "workflow/name_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void name_list_begin(name_list *l, const char *intro, const char *format, ...) {
    va_list arguments;
    *l = (name_list){ .intro = intro };
    va_start(arguments, format);
    (void)vsnprintf(l->text, sizeof l->text, format, arguments);
    va_end(arguments);
    l->names = l->length = strlen(l->text);
}

void name_list_add(name_list *l, const char *name) {
    static const char more[] = "...";
    char quoted[sizeof l->text];
    size_t n = (size_t)snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *before = l->length == l->names ? l->intro : ", ";
    if (l->cut || strstr(l->text + l->names, quoted)) return;
    l->cut = l->length + strlen(before) + n + strlen(", ") + sizeof more > sizeof l->text;
    l->length += (size_t)snprintf(l->text + l->length, sizeof l->text - l->length, "%s%s", before,
                                  l->cut ? more : quoted);
}

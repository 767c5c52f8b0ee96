/* text.c -- texts that grow. */
#include "lab/lab.h"

#include <stdio.h>
#include <stdlib.h>

static void make_room(lab_text *t, size_t more) {
    if (t->length + more + 1 <= t->capacity) return;
    t->capacity = 2 * (t->length + more + 1);
    t->bytes = realloc(t->bytes, t->capacity);
    if (!t->bytes) hd_lab_fail("the machine is out of memory");
}

void lab_text_add(lab_text *t, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) hd_lab_fail("%s cannot be printed", format);
    make_room(t, (size_t)length);
    vsnprintf(t->bytes + t->length, (size_t)length + 1, format, again);
    va_end(again);
    t->length += (size_t)length;
}

void lab_text_clear(lab_text *t) {
    t->length = 0;
    if (t->bytes) t->bytes[0] = '\0';
}

void lab_text_free(lab_text *t) {
    free(t->bytes);
    *t = (lab_text){ 0 };
}

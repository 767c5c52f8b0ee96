/* pointer.c -- see the header. */
#include "base/pointer.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

pointer pointer_begin(char *out, size_t size) {
    assert(size >= 4);
    return (pointer){ out, size, 0, false };
}

static void pointer_put(pointer *p, char c) {
    if (p->length + 1 < p->size) p->out[p->length++] = c;
    else p->cut = true;
}

void pointer_key(pointer *p, const char *key, size_t length) {
    pointer_put(p, '/');
    for (size_t i = 0; i < length && !p->cut; i++) {
        bool tilde = key[i] == '~', slash = key[i] == '/';
        if (tilde || slash) pointer_put(p, '~');
        pointer_put(p, (char)(tilde ? '0' : slash ? '1' : key[i]));
    }
}

void pointer_index(pointer *p, size_t index) {
    char digits[24];
    pointer_key(p, digits, (size_t)snprintf(digits, sizeof digits, "%zu", index));
}

void pointer_end(pointer *p) {
    p->out[p->length] = 0;
    if (!p->cut) return;
    p->length -= 3;
    while (p->length && ((unsigned char)p->out[p->length] & 0xC0) == 0x80) p->length--;
    memcpy(p->out + p->length, "...", 4);
}

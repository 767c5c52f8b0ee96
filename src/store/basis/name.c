/* name.c -- see name.h. */
#include "store/basis/name.h"

#include <string.h>

size_t basis_piece_length(const char *name, size_t length) {
    const char *first = memchr(name, ':', length);
    if (!first || first == name) return 0;
    size_t rest = length - (size_t)(first + 1 - name);
    const char *second = memchr(first + 1, ':', rest);
    if (!second || second == first + 1 || second + 1 == name + length) return 0;
    return (size_t)(second - name);
}

bool basis_print_space(const char *space, char *out, size_t size) {
    size_t n = 0;
    for (const char *c = space; *c; c++) {
        if (n + 4 > size) return false;
        if (*c != ':' && *c != '%') {
            out[n++] = *c;
            continue;
        }
        memcpy(out + n, *c == ':' ? "%3A" : "%25", 3);
        n += 3;
    }
    if (n >= size) return false;
    out[n] = 0;
    return true;
}

bool basis_parse_space(const char *text, size_t length, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (n + 1 >= size) return false;
        bool escaped = text[i] == '%' && length - i > 2;
        out[n++] = !escaped ? text[i] : text[i + 1] == '3' ? ':' : '%';
        if (escaped) i += 2;
    }
    out[n] = 0;
    return true;
}

bool basis_is_instance(const char *text, size_t length) {
    static const char user[] = "user:", session[] = "session:";
    if (length == strlen(BASIS_GATES) && !memcmp(text, BASIS_GATES, length)) return true;
    return !length || (length >= sizeof user && !memcmp(text, user, sizeof user - 1)) ||
           (length >= sizeof session && !memcmp(text, session, sizeof session - 1));
}

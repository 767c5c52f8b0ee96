/* hex.h -- reads what snprintf wrote as "%08x" and the like. Nothing else is taken: strtoul takes signs, spaces, "0x",
 * capital letters, and numbers that are too large. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* The first `digits` characters, 16 at most, as a number. False: one of them is no digit, or a capital letter. */
static inline bool hex_read(const char *from, int digits, uint64_t *out) {
    uint64_t n = 0;
    assert(digits <= 16);
    for (int i = 0; i < digits; i++) {
        char c = from[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return false;
        n = n << 4 | (uint64_t)digit;
    }
    *out = n;
    return true;
}

#endif

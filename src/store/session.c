/* session.c -- hexadecimal digits. */
#include "store/session.h"

#include "base/hex.h"

void session_text(const uint8_t id[SESSION_BYTES], char out[SESSION_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < SESSION_BYTES; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 15];
    }
    out[2 * SESSION_BYTES] = '\0';
}

bool session_of_text(const char *text, size_t length, uint8_t out[SESSION_BYTES]) {
    if (length != SESSION_TEXT - 1) return false;
    for (int i = 0; i < SESSION_BYTES; i++) {
        uint64_t byte;
        if (!hex_read(text + 2 * i, 2, &byte)) return false;
        out[i] = (uint8_t)byte;
    }
    return true;
}

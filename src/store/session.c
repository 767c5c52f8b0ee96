/* session.c -- hexadecimal digits. */
#include "store/session.h"

void session_text(const uint8_t id[SESSION_BYTES], char out[SESSION_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < SESSION_BYTES; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 15];
    }
    out[2 * SESSION_BYTES] = '\0';
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool session_of_text(const char *text, size_t length, uint8_t out[SESSION_BYTES]) {
    if (length != SESSION_TEXT - 1) return false;
    for (int i = 0; i < SESSION_BYTES; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

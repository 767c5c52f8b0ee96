/* json_string.c -- UTF-8 and escapes.
 *
 * A string is read in two steps: the first finds its end, checks every byte and adds up the
 * decoded length; the second writes into memory of exactly that size. So nothing is allocated
 * before all is known to be right, and no intermediate buffer exists. */
#include "value/json_string.h"
#include "value/json_scan.h"

#include <assert.h>

static bool is_continuation(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* The length of the UTF-8 sequence at p (its first byte is not ASCII); 0: not one. The second byte
 * has the narrower range where overlong forms, surrogates and numbers beyond U+10FFFF would be. */
static size_t utf8_sequence(const char *p, const char *end) {
    unsigned char lead = (unsigned char)*p;
    size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead < 0xC2 || lead > 0xF4 || (size_t)(end - p) < length) return 0;
    unsigned char second = (unsigned char)p[1];
    unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (second < low || second > high) return 0;
    for (size_t i = 2; i < length; i++) {
        if (!is_continuation(p[i])) return 0;
    }
    return length;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of four hexadecimal digits, or -1. */
static int32_t hex4(const char *p, const char *end) {
    int32_t unit = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high_surrogate(int32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
static bool is_low_surrogate(int32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

/* The code point of the \u escape (or pair of them) at p and the escape's length; -1: `*why`. */
static int32_t unicode_escape(const char *p, const char *end, size_t *length, const char **why) {
    int32_t unit = hex4(p + 2, end);
    *length = 6;
    *why = "\\u must be followed by four hexadecimal digits";
    if (unit < 0) return -1;
    if (!is_high_surrogate(unit) && !is_low_surrogate(unit)) return unit;
    *why = "half of a surrogate pair; characters beyond U+FFFF need both halves";
    if (is_low_surrogate(unit) || end - p < 12 || p[6] != '\\' || p[7] != 'u') return -1;
    int32_t low = hex4(p + 8, end);
    if (!is_low_surrogate(low)) return -1;
    *length = 12;
    return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

static size_t utf8_length(int32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

static char *utf8_put(char *out, int32_t c) {
    size_t length = utf8_length(c);
    if (length == 1) {
        *out = (char)c;
        return out + 1;
    }
    static const unsigned char leads[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    *out = (char)(leads[length] | c);
    return out + length;
}

/* What the letter after a backslash stands for; 0: not an escape. */
static char simple_escape(char letter) {
    static const char meanings[128] = { ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t' };
    return (unsigned char)letter < sizeof meanings ? meanings[(unsigned char)letter] : 0;
}

/* The escape at p: returns its length, 0 when it is bad; *decoded is the length of what it stands
 * for. */
static size_t scan_escape(const char *p, const char *end, size_t *decoded, const char **why) {
    *why = "the text ends inside a string";
    if (end - p < 2) return 0;
    if (p[1] == 'u') {
        size_t length;
        int32_t c = unicode_escape(p, end, &length, why);
        if (c < 0) return 0;
        *decoded = utf8_length(c);
        return length;
    }
    *why = "not an escape: after \\ comes one of \" \\ / b f n r t u";
    *decoded = 1;
    return simple_escape(p[1]) ? 2 : 0;
}

static bool bad(json_span *out, const char *at, const char *why) {
    out->end = at;
    out->why = why;
    return false;
}

bool json_string_scan(const char *start, const char *from, const char *end, json_span *out) {
    const char *p = from;
    size_t saved = 0; /* bytes that escapes take beyond what they stand for */
    *out = (json_span){ 0 };
    for (;;) {
        p = json_skip_plain(p, end);
        if (p == end) return bad(out, p, "the text ends inside a string");
        unsigned char c = (unsigned char)*p;
        if (c == '"') break;
        size_t step, decoded;
        if (c >= 0x80) {
            step = decoded = utf8_sequence(p, end);
            if (step == 0) return bad(out, p, "invalid UTF-8");
        } else if (c == '\\') {
            const char *why;
            step = scan_escape(p, end, &decoded, &why);
            if (step == 0) return bad(out, p, why);
            out->escaped = true;
        } else {
            return bad(out, p,
                       "control characters in a string must be escaped, as in \\n or \\u0000");
        }
        saved += step - decoded;
        p += step;
    }
    out->end = p;
    out->length = (size_t)(p - start) - saved;
    return true;
}

void json_string_decode(const char *p, const char *end, char *out) {
    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((escape ? escape : end) - p);
        memcpy(out, p, plain);
        out += plain;
        p += plain;
        if (!escape) break;
        if (p[1] != 'u') {
            *out++ = simple_escape(p[1]);
            p += 2;
            continue;
        }
        size_t length;
        const char *why;
        int32_t c = unicode_escape(p, end, &length, &why);
        assert(c >= 0);
        out = utf8_put(out, c);
        p += length;
    }
}

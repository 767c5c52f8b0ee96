/* record.c -- prints JSON without building a value first. */
#include "cli/record.h"

#include "value/text.h"
#include <inttypes.h>
#include <string.h>

record record_to(FILE *to) { return (record){ to, true }; }

static void escaped(FILE *to, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
        else if (c == '\n') fputs("\\n", to);
        else if (c < 0x20) fprintf(to, "\\u%04x", c);
        else fputc(c, to);
    }
}

/* Prints a text in quotes. A message quotes what was typed and may be cut inside a character: bytes that are
 * not UTF-8 become U+FFFD. */
static void quoted(FILE *to, const char *text, size_t length) {
    size_t bad;
    fputc('"', to);
    while (!utf8_valid(text, length, &bad)) {
        escaped(to, text, bad);
        fputs("\\ufffd", to);
        text += bad + 1;
        length -= bad + 1;
    }
    escaped(to, text, length);
    fputc('"', to);
}

static void begin(record *r, const char *key) {
    if (!r->first) fputc(',', r->to);
    r->first = false;
    if (!key) return;
    quoted(r->to, key, strlen(key));
    fputc(':', r->to);
}

void record_open(record *r, const char *key, char bracket) {
    begin(r, key);
    fputc(bracket, r->to);
    r->first = true;
}

void record_close(record *r, char bracket) {
    fputc(bracket, r->to);
    r->first = false;
}

void record_text(record *r, const char *key, const char *text) {
    begin(r, key);
    quoted(r->to, text, strlen(text));
}

void record_number(record *r, const char *key, uint64_t n) {
    begin(r, key);
    fprintf(r->to, "%" PRIu64, n);
}

void record_bool(record *r, const char *key, bool b) {
    begin(r, key);
    fputs(b ? "true" : "false", r->to);
}

static bool to_file(const char *text, size_t length, void *ctx) {
    return fwrite(text, 1, length, ctx) == length;
}

void record_value(record *r, const char *key, hd_value v) {
    if (!hd_value_exists(v)) return;
    begin(r, key);
    (void)hd_json_write(v, HD_JSON_COMPACT, to_file, r->to);
}

void record_json(record *r, const char *key, const char *json, size_t length) {
    begin(r, key);
    fwrite(json, 1, length, r->to);
}

void record_end(record *r) {
    fputc('\n', r->to);
    r->first = true;
}

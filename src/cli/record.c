/* record.c -- prints JSON without building a value first. */
#include "cli/record.h"

#include "value/text.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

record record_to(FILE *to) { return (record){ to, true }; }

/* ---- JSON -------------------------------------------------------------------------------- */

typedef struct json_output {
    FILE *to;
    bool
        halved; /* the piece before has ended with the first byte of what may be a control character */
} json_output;

enum { C1_LEAD = 0xC2, C1_LAST = 0x9F, DELETE = 0x7F };

static void put_json_byte(json_output *o, unsigned char byte) {
    if (o->halved && byte <= C1_LAST) fprintf(o->to, "\\u%04x", byte);
    else {
        if (o->halved) fputc(C1_LEAD, o->to);
        if (byte == DELETE) fputs("\\u007f", o->to);
        else if (byte != C1_LEAD) fputc(byte, o->to);
    }
    o->halved = byte == C1_LEAD;
}

/* Bytes from 0x80 on stand in strings only, and so does DELETE. */
static bool put_json(const char *text, size_t length, void *ctx) {
    json_output *o = ctx;
    bool plain = !o->halved && !memchr(text, C1_LEAD, length) && !memchr(text, DELETE, length);
    if (plain) return fwrite(text, 1, length, o->to) == length;
    for (size_t i = 0; i < length; i++) put_json_byte(o, (unsigned char)text[i]);
    return !ferror(o->to);
}

hd_status write_json(FILE *to, hd_value v, hd_json_style style) {
    json_output o = { to, false };
    hd_status status = hd_json_write(v, style, put_json, &o);
    assert(status || !o.halved); /* text is UTF-8 */
    return status;
}

void write_json_text(FILE *to, const char *json, size_t length) {
    json_output o = { to, false };
    (void)put_json(json, length, &o);
}

static bool is_as_it_is(unsigned char c) { return c >= 0x20 && c != '"' && c != '\\'; }

static void escaped(FILE *to, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
        else if (c == '\n') fputs("\\n", to);
        else if (c < 0x20) fprintf(to, "\\u%04x", c);
        else {
            size_t run = 1;
            while (i + run < length && is_as_it_is((unsigned char)text[i + run])) run++;
            write_json_text(to, text + i, run);
            i += run - 1;
        }
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

void record_value(record *r, const char *key, hd_value v) {
    if (!hd_value_exists(v)) return;
    begin(r, key);
    (void)write_json(r->to, v, HD_JSON_COMPACT);
}

void record_json(record *r, const char *key, const char *json, size_t length) {
    begin(r, key);
    write_json_text(r->to, json, length);
}

void record_end(record *r) {
    fputc('\n', r->to);
    r->first = true;
}

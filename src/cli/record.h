/* record.h -- one JSON object on a line, written piece by piece: what --json prints.
 *
 *     record r = record_to(stdout);
 *     record_open(&r, NULL, '{');
 *     record_text(&r, "space", "main");
 *     record_close(&r, '}');
 *     record_end(&r);
 */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include <heddle/value.h>
#include <stdio.h>

typedef struct record {
    FILE *to;
    bool first; /* no comma before the next piece */
} record;

record record_to(FILE *to);
/* `bracket` is '{' or '['; `key` is NULL in an array and for the outermost. */
void record_open(record *r, const char *key, char bracket);
void record_close(record *r, char bracket);
void record_text(record *r, const char *key, const char *text);
void record_number(record *r, const char *key, uint64_t n);
void record_bool(record *r, const char *key, bool b);
/* An absent value is left out. */
void record_value(record *r, const char *key, hd_value v);
/* JSON that is text already. */
void record_json(record *r, const char *key, const char *json, size_t length);
/* Ends the line. */
void record_end(record *r);

/* JSON, on one line or several, without a line's end. What JSON leaves as it is (U+007F to U+009F) and some
 * terminals obey is escaped. */
hd_status write_json(FILE *to, hd_value v, hd_json_style style);
void write_json_text(FILE *to, const char *json, size_t length);

#endif

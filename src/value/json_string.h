/* json_string.h -- the inside of a JSON string: checked first, decoded second. */
#ifndef HD_VALUE_JSON_STRING_H
#define HD_VALUE_JSON_STRING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct json_span {
    const char *end; /* the closing quote; where the string is bad: the offending byte */
    size_t length;   /* in bytes, decoded */
    bool escaped;    /* else the text stands for itself */
    const char *why; /* what is wrong, for a person; NULL when nothing is */
} json_span;

/* Checks the string whose first byte (after the quote) is `start`; up to `from` it is known to be
 * plain (json_scan.h). False: see `why`. */
bool json_string_scan(const char *start, const char *from, const char *end, json_span *out);

/* Writes the `length` bytes that a checked, escaped string stands for; `end` is its closing
 * quote. */
void json_string_decode(const char *p, const char *end, char *out);

#endif

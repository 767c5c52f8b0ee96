/* text.h -- str and bytes: making them, and building them piece by piece.
 *
 * A text_builder collects code points in a buffer that the world keeps for the next builder, so that building
 * allocates only the finished text. The buffer has one byte for each code point until the first one above 255 arrives.
 * Nothing here raises: failures are left in the world (status or failure), and the result is EV_FAIL. */
#ifndef EXPR_TEXT_H
#define EXPR_TEXT_H

#include "expr/world.h"

/* Malformed UTF-8 becomes U+FFFD. */
ev text_of_utf8(world *w, const char *utf8, size_t size);
ev text_of_ascii(world *w, const char *ascii);
ev text_of_point(world *w, uint32_t point);
ev bytes_of(world *w, const void *data, size_t size);

/* `count` characters of `t` (bytes, if it is bytes) from `from` on. If these are all of them, `t` itself. */
ev text_part(world *w, ev t, size_t from, size_t count);

bool text_same(const text *a, const text *b);
/* -1, 0, 1 by code points. */
int text_order(const text *a, const text *b);
/* Whether the text is this one. */
bool text_is(const text *t, const char *ascii);
bool text_is_utf8(const text *t, const char *utf8);
/* Whether the text has a lone surrogate, which UTF-8 cannot encode. */
bool text_has_surrogate(const text *t);
/* The text as UTF-8 for a message, cut between two characters if it is too long. Returns `out`. */
const char *text_short(const text *t, char *out, size_t size);

/* The first place of `needle` in [from, to) of `hay`, or the last one; -1: there is none. Linear in both; search.c. */
int64_t text_find(const text *hay, const text *needle, uint32_t from, uint32_t to);
int64_t text_find_last(const text *hay, const text *needle, uint32_t from, uint32_t to);

typedef struct text_builder {
    world *w;
    void *data;
    size_t size; /* of data, in bytes */
    uint32_t count;
    bool wide, failed;
} text_builder;

text_builder write_text(world *w);
void write_point(text_builder *b, uint32_t point);
void write_ascii(text_builder *b, const char *ascii);
void write_chars(text_builder *b, const char *ascii, size_t size);
/* The name of a class or a field, which is UTF-8; "shop:Item" as shop.Item. */
void write_name(text_builder *b, const char *utf8);
void write_fill(text_builder *b, uint32_t point, size_t count);
void write_part(text_builder *b, const text *t, size_t from, size_t count);
void write_whole(text_builder *b, const text *t);
/* Each builder is ended by one of these three: with a str, with bytes, or without a result. */
ev write_str(text_builder *b);
ev write_bytes(text_builder *b);
void write_drop(text_builder *b);

/* Adds the UTF-8 of a text to a builder that write_bytes will end. A lone surrogate becomes three bytes. */
void write_utf8(text_builder *b, const text *t);
/* Reads one code point; returns its length, or 0 where the bytes are malformed. */
size_t utf8_next(const uint8_t *at, size_t left, uint32_t *point);
/* Writes one code point; returns its length. */
size_t utf8_put(uint8_t out[4], uint32_t point);

#endif

/* parser.h -- what the files of the parser share: tokens and failures.
 *
 *     parse_token.c   from characters to tokens
 *     parse_text.c    strings, bytes and f-strings
 *     parse.c         the grammar
 *
 * The parser looks one token ahead. The first failure stays in `status`; after it every function returns an
 * absent value, which its callers need not look at. */
#ifndef EXPR_PARSER_H
#define EXPR_PARSER_H

#include <heddle/value.h>

#include <assert.h>
#include <stdbool.h>
#include <string.h>

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NEWLINE, /* the end of a statement: outside brackets only */
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_STRING, /* with its prefix and quotes */
    TOKEN_OPERATOR
} token_kind;

typedef struct token {
    token_kind kind;
    const char *at;
    size_t length;
} token;

#define PARSE_DEPTH_MAX 120 /* of nested expressions: below what the compiler takes */

typedef struct parser {
    hd_pool *pool;
    const char *begin, *end; /* of the whole text, for positions */
    const char *at;          /* behind `now` */
    const char *stop; /* where this part of the text ends: an f-string has parts of its own */
    token now;
    uint32_t brackets; /* open ones: newlines count for nothing inside */
    uint32_t depth;
    hd_status status;
    hd_error *error; /* may be NULL */
} parser;

/* ---- parse_token.c */
void parser_advance(parser *p);
bool parser_is(const parser *p, const char *word); /* the token is this operator or keyword */
bool parser_take(parser *p, const char *word);     /* the same, and goes on to the next */
/* Goes on behind this operator, or fails with "expected ...". */
bool parser_expect(parser *p, const char *word);
bool token_is_keyword(const token *t);
/* Fails at a place in the text, unless it has failed already. Returns an absent value. */
hd_value parser_fail(parser *p, const char *where, hd_status status, const char *format, ...)
    HD_PRINTF(4, 5);
/* A token, shortened for a message; and the one that comes next. */
typedef struct shown {
    char text[48];
} shown;
shown token_show(const token *t);
shown parser_show(const parser *p);

/* ---- parse_text.c */
/* All strings that stand side by side, as one constant or "fstr". */
hd_value parse_strings(parser *p);
hd_value parse_number(parser *p);
enum { NUMBER_MAX = 400 };
/* The text of a number without underscores; false: an underscore stands where none may, or the text is too long. */
bool number_digits(const token *t, char out[NUMBER_MAX]);

/* ---- parse.c */
/* An expression of the part of the text between `from` and `to`, for f-strings. */
hd_value parse_part(parser *p, const char *from, const char *to);

/* [name, ...]; an absent item is left out. */
hd_value form_of(parser *p, const char *name, hd_value a, hd_value b, hd_value c);
hd_value form_add(parser *p, hd_value form, hd_value item);

#endif

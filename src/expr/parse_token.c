/* parse_token.c -- from characters to tokens, and failures with their place: see parser.h. */
#include "expr/parser.h"

#include "base/env.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- Failures ---------------------------------------------------------------------------- */

static void place_error(const parser *p, const char *where) {
    hd_error *e = p->error;
    e->offset = (size_t)(where - p->begin);
    e->line = 1;
    e->column = 1;
    for (const char *c = p->begin; c < where; c++) {
        e->column = *c == '\n' ? 1 : e->column + 1;
        e->line += *c == '\n';
    }
}

hd_value parser_fail(parser *p, const char *where, hd_status status, const char *format, ...) {
    va_list arguments;
    if (p->status) return hd_failed(p->status);
    assert(status && where >= p->begin && where <= p->end);
    p->status = status;
    p->now = (token){ TOKEN_END, p->stop, 0 };
    p->at = p->stop;
    if (p->error) {
        va_start(arguments, format);
        env_error_v(p->error, status, format, arguments);
        va_end(arguments);
        place_error(p, where);
    }
    return hd_failed(status);
}

shown token_show(const token *t) {
    shown s;
    size_t length = t->length < 40 ? t->length : 40;
    while (length < t->length && length && (t->at[length] & 0xC0) == 0x80) length--;
    if (t->kind == TOKEN_END) snprintf(s.text, sizeof s.text, "the end of the text");
    else if (t->kind == TOKEN_NEWLINE) snprintf(s.text, sizeof s.text, "the end of the line");
    else snprintf(s.text, sizeof s.text, "'%.*s'", (int)length, t->at);
    return s;
}
shown parser_show(const parser *p) { return token_show(&p->now); }

/* ---- Tokens ------------------------------------------------------------------------------ */

static bool begins_name(char c) { return isalpha((unsigned char)c) || c == '_' || (c & 0x80); }
static bool goes_on(char c) { return begins_name(c) || isdigit((unsigned char)c); }

static const char *skip_space(parser *p, const char *c) {
    for (; c < p->stop; c++) {
        if (*c == '#')
            while (c < p->stop && *c != '\n') c++;
        if (c == p->stop) break;
        if (*c == '\\' && c + 1 < p->stop && c[1] == '\n') c++; /* the line goes on */
        else if (*c == '\n' && !p->brackets) break;
        else if (!strchr(" \t\r\n\f", *c) || !*c) break;
    }
    return c;
}

/* r, b, f, u and pairs of them, before a quote. */
static size_t prefix_length(const char *c, const char *stop) {
    for (size_t n = 0; n < 3 && c + n < stop; n++) {
        if (c[n] == '"' || c[n] == '\'') return n;
        if (!strchr("rRbBfFuU", c[n]) || !c[n]) return SIZE_MAX;
    }
    return SIZE_MAX;
}

static const char *string_end(parser *p, const char *c) {
    char quote = *c;
    bool three = c + 2 < p->stop && c[1] == quote && c[2] == quote;
    const char *begin = c;
    for (c += three ? 3 : 1; c < p->stop; c++) {
        if (*c == '\\') c++;
        else if (*c == '\n' && !three) break;
        else if (*c == quote && !three) return c + 1;
        else if (*c == quote && p->stop - c > 2 && c[1] == quote && c[2] == quote) return c + 3;
    }
    parser_fail(p, begin, HD_SYNTAX, "a string that does not end");
    return p->stop;
}

static const char *skip_digits(const parser *p, const char *c) {
    while (c < p->stop && (isdigit((unsigned char)*c) || *c == '_')) c++;
    return c;
}

/* Letters that follow belong to it: parse_number refuses them. */
static const char *number_end(const parser *p, const char *c) {
    bool based = c + 1 < p->stop && *c == '0' && c[1] && strchr("xXoObB", c[1]);
    if (!based) {
        c = skip_digits(p, c);
        if (c < p->stop && *c == '.') c = skip_digits(p, c + 1);
        if (c < p->stop && (*c == 'e' || *c == 'E')) {
            const char *sign = c + 1 < p->stop && c[1] && strchr("+-", c[1]) ? c + 2 : c + 1;
            if (sign < p->stop && isdigit((unsigned char)*sign)) c = skip_digits(p, sign);
        }
    }
    while (c < p->stop && goes_on(*c)) c++;
    return c;
}

static const char *operator_end(parser *p, const char *c) {
    static const char *const operators[] = { "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<",
                                             ">>",  "<=",  ">=",  "==",  "!=",  "+=", "-=", "*=",
                                             "/=",  "%=",  "&=",  "|=",  "^=",  "@=", "->", ":=" };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t n = strlen(operators[i]);
        if ((size_t)(p->stop - c) >= n && !memcmp(c, operators[i], n)) return c + n;
    }
    if (!*c || !strchr("+-*/%&|^~<>()[]{},:.;=@!", *c))
        parser_fail(p, c, HD_SYNTAX, "'%.*s' means nothing here",
                    isprint((unsigned char)*c) ? 1 : 0, c);
    return c + 1;
}

static token_kind read_token(parser *p, const char *c, const char **end) {
    size_t prefix = prefix_length(c, p->stop);
    bool dot_number = *c == '.' && c + 1 < p->stop && isdigit((unsigned char)c[1]);
    if (prefix != SIZE_MAX) return *end = string_end(p, c + prefix), TOKEN_STRING;
    if (isdigit((unsigned char)*c) || dot_number) return *end = number_end(p, c), TOKEN_NUMBER;
    *end = c;
    if (!begins_name(*c)) return *end = operator_end(p, c), TOKEN_OPERATOR;
    while (*end < p->stop && goes_on(**end)) (*end)++;
    return TOKEN_NAME;
}

void parser_advance(parser *p) {
    if (p->status) return;
    const char *c = skip_space(p, p->at), *end;
    p->now = (token){ TOKEN_END, c, 0 };
    p->at = c;
    if (c == p->stop) return;
    if (*c == '\n' || (*c == ';' && !p->brackets)) {
        p->now = (token){ TOKEN_NEWLINE, c, 1 };
        p->at = c + 1;
        return;
    }
    token_kind kind = read_token(p, c, &end);
    if (p->status) return;
    p->now = (token){ kind, c, (size_t)(end - c) };
    p->at = end;
    if (kind == TOKEN_OPERATOR && strchr("([{", *c)) p->brackets++;
    if (kind == TOKEN_OPERATOR && strchr(")]}", *c) && p->brackets) p->brackets--;
}

bool parser_is(const parser *p, const char *word) {
    bool named = p->now.kind == TOKEN_NAME || p->now.kind == TOKEN_OPERATOR;
    return named && p->now.length == strlen(word) && !memcmp(p->now.at, word, p->now.length);
}

bool parser_take(parser *p, const char *word) {
    if (!parser_is(p, word)) return false;
    parser_advance(p);
    return true;
}

bool parser_expect(parser *p, const char *word) {
    if (parser_take(p, word)) return true;
    parser_fail(p, p->now.at, HD_SYNTAX, "expected '%s', not %s", word, parser_show(p).text);
    return false;
}

bool token_is_keyword(const token *t) {
    static const char *const keywords[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"
    };
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (t->length == strlen(keywords[i]) && !memcmp(t->at, keywords[i], t->length)) return true;
    return false;
}

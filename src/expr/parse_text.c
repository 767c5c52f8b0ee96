/* parse_text.c -- numbers, strings, bytes and f-strings: see parser.h. */
#include "expr/parser.h"

#include "base/vec.h"
#include "value/heap.h"
#include "value/pool.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Numbers ----------------------------------------------------------------------------- */

bool number_digits(const token *t, char out[NUMBER_MAX]) {
    size_t n = 0;
    if (t->length >= NUMBER_MAX) return false;
    bool based = t->length > 1 && t->at[0] == '0' && isalpha((unsigned char)t->at[1]);
    int (*digit)(int) = based ? isalnum : isdigit;
    for (size_t i = 0; i < t->length; i++) {
        bool inside = i && i + 1 < t->length && digit((unsigned char)t->at[i + 1]) &&
                      digit((unsigned char)t->at[i - 1]);
        if (t->at[i] != '_') out[n++] = t->at[i];
        else if (!inside) return false;
    }
    out[n] = 0;
    return true;
}

static bool is_zeros(const char *digits) { return strspn(digits, "0") == strlen(digits); }

static int base_of(const char *digits) {
    if (digits[0] != '0' || !isalpha((unsigned char)digits[1])) return 10;
    int letter = tolower((unsigned char)digits[1]);
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
}

static hd_value whole_number(parser *p, const token *t, const char *digits) {
    char *end;
    int base = base_of(digits);
    const char *begin = base == 10 ? digits : digits + 2;
    if (base == 10 && digits[0] == '0' && !is_zeros(digits))
        return parser_fail(p, t->at, HD_SYNTAX, "a number does not begin with 0");
    errno = 0;
    unsigned long long n = strtoull(begin, &end, base);
    if (!*begin || *end)
        return parser_fail(p, t->at, HD_SYNTAX, "%s is no number", token_show(t).text);
    if (errno || n > INT64_MAX) return parser_fail(p, t->at, HD_LIMIT, "an integer beyond 64 bits");
    return hd_int(p->pool, (int64_t)n);
}

static hd_value real_number(parser *p, const token *t, const char *digits) {
    char *end;
    double d = strtod(digits, &end);
    if (*end) return parser_fail(p, t->at, HD_SYNTAX, "%s is no number", token_show(t).text);
    if (isfinite(d)) return hd_double(d);
    return form_of(p, "const", hd_double(d), (hd_value){ 0 }, (hd_value){ 0 });
}

hd_value parse_number(parser *p) {
    char digits[NUMBER_MAX];
    token t = p->now;
    if (!number_digits(&t, digits)) return parser_fail(p, t.at, HD_SYNTAX, "no number");
    parser_advance(p);
    bool real = base_of(digits) == 10 && strpbrk(digits, ".eE");
    return real ? real_number(p, &t, digits) : whole_number(p, &t, digits);
}

/* ---- Escapes ----------------------------------------------------------------------------- */

/* Text that is being put together. */
typedef struct text {
    parser *p;
    VEC(char) chars;
} text;

static const hd_env *env_of(const parser *p) { return &p->pool->heap->env; }

static void put(text *t, char c) {
    if (!vec_push(env_of(t->p), &t->chars, c))
        parser_fail(t->p, t->p->begin, HD_NOMEM, "no memory");
}

static hd_value text_value(const text *t) {
    return hd_string_n(t->p->pool, t->chars.count ? t->chars.items : "", t->chars.count);
}

static void put_code_point(text *t, const char *where, uint32_t c) {
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
        parser_fail(t->p, where, HD_SYNTAX,
                    c > 0x10FFFF ? "no such character" : "a lone surrogate in a constant");
    } else if (c < 0x80) {
        put(t, (char)c);
    } else if (c < 0x800) {
        put(t, (char)(0xC0 | c >> 6)), put(t, (char)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        put(t, (char)(0xE0 | c >> 12)), put(t, (char)(0x80 | (c >> 6 & 63)));
        put(t, (char)(0x80 | (c & 63)));
    } else {
        put(t, (char)(0xF0 | c >> 18)), put(t, (char)(0x80 | (c >> 12 & 63)));
        put(t, (char)(0x80 | (c >> 6 & 63))), put(t, (char)(0x80 | (c & 63)));
    }
}

static const char *read_hex(text *t, const char *c, const char *stop, int digits, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < digits; i++, c++) {
        if (c >= stop || !isxdigit((unsigned char)*c)) {
            parser_fail(t->p, c < stop ? c : stop, HD_SYNTAX, "%d hexadecimal digits are expected",
                        digits);
            return stop;
        }
        int value = isdigit((unsigned char)*c) ? *c - '0' : tolower((unsigned char)*c) - 'a' + 10;
        *out = *out << 4 | (uint32_t)value;
    }
    return c;
}

/* `c` is behind the backslash; returns what follows the escape. */
static const char *put_escape(text *t, const char *c, const char *stop, bool bytes) {
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *known = *c ? strchr(from, *c) : NULL;
    uint32_t n = 0;
    if (*c == '\n') return c + 1;
    if (known) return put(t, to[known - from]), c + 1;
    if (*c >= '0' && *c <= '7') {
        for (int i = 0; i < 3 && c < stop && *c >= '0' && *c <= '7'; i++, c++)
            n = n * 8 + (uint32_t)(*c - '0');
    } else if (*c == 'x' || (!bytes && (*c == 'u' || *c == 'U'))) {
        c = read_hex(t, c + 1, stop, *c == 'x' ? 2 : *c == 'u' ? 4 : 8, &n);
    } else if (*c == 'N' && !bytes) {
        parser_fail(t->p, c, HD_SYNTAX, "names of characters are not supported: write \\u...");
        return stop;
    } else {
        return put(t, '\\'), c; /* as Python: an unknown escape is itself */
    }
    if (bytes) put(t, (char)n);
    else put_code_point(t, c - 1, n);
    return c;
}

/* ---- Strings ----------------------------------------------------------------------------- */

typedef struct literal {
    bool raw, bytes, format;
    const char *begin, *end; /* between the quotes */
} literal;

static literal open_literal(const token *t) {
    literal l = { 0 };
    const char *c = t->at;
    for (; *c != '"' && *c != '\''; c++) {
        int letter = tolower((unsigned char)*c);
        l.raw = l.raw || letter == 'r';
        l.bytes = l.bytes || letter == 'b';
        l.format = l.format || letter == 'f';
    }
    size_t quotes = t->at + t->length - c >= 6 && c[1] == *c && c[2] == *c ? 3 : 1;
    l.begin = c + quotes;
    l.end = t->at + t->length - quotes;
    assert(l.begin <= l.end);
    return l;
}

/* False: the letters in front of the quote are no prefix, and the parser fails. */
static bool check_prefix(parser *p, const token *t, const literal *l) {
    size_t n = 0;
    while (t->at[n] != '"' && t->at[n] != '\'') n++;
    bool u = n && strchr("uU", t->at[0]);
    bool twice = n == 2 && tolower((unsigned char)t->at[0]) == tolower((unsigned char)t->at[1]);
    bool good = n < 2 || (!u && !strchr("uU", t->at[1]) && !twice && !(l->bytes && l->format));
    if (!good) parser_fail(p, t->at, HD_SYNTAX, "'%.*s' is no prefix of a string", (int)n, t->at);
    return good;
}

static const char *put_one(text *t, const literal *l, const char *c, const char *stop) {
    if (*c == '\\' && !l->raw && c + 1 < stop) return put_escape(t, c + 1, stop, l->bytes);
    if (l->bytes && (*c & 0x80))
        parser_fail(t->p, c, HD_SYNTAX, "bytes have ASCII characters only: write \\x..");
    put(t, *c);
    return c + 1;
}

/* ---- f-strings --------------------------------------------------------------------------- */

/* Pieces of an "fstr" with text between them that is not finished. */
typedef struct pieces {
    hd_value form; /* ["fstr", ...]; absent: no piece yet */
    text between;
} pieces;

static void end_text(pieces *f) {
    parser *p = f->between.p;
    if (!f->between.chars.count || p->status) return;
    f->form = form_add(p, f->form, text_value(&f->between));
    vec_clear(&f->between.chars);
}

/* Where the expression that begins at `c` ends: at '!', ':', '=' or '}' outside brackets and strings. */
static const char *expression_end(parser *p, const char *c, const char *stop) {
    uint32_t brackets = 0;
    for (; c < stop; c++) {
        if (*c == '\'' || *c == '"') {
            const char *close = c + 1;
            while (close < stop && *close != *c) close++;
            if (close == stop) break;
            c = close;
        } else if (*c == '\\' || *c == '#') {
            parser_fail(p, c, HD_SYNTAX, "no '%c' inside the braces of an f-string", *c);
            return stop;
        } else if (strchr("([{", *c) && *c) {
            brackets++;
        } else if (brackets && strchr(")]}", *c) && *c) {
            brackets--;
        } else if (!brackets && strchr("!=<>", *c) && *c && c + 1 < stop && c[1] == '=') {
            c++; /* a comparison */
        } else if (!brackets && (*c == '<' || *c == '>')) {
            continue;
        } else if (!brackets && strchr("!:}=", *c) && *c) {
            return c;
        }
    }
    parser_fail(p, stop, HD_SYNTAX, "an f-string expects '}'");
    return stop;
}

static const char *put_format(pieces *f, const literal *l, const char *c, const char *stop,
                              uint32_t depth);

/* What stands between the braces: text and, one level deep, further braces. */
static const char *read_pieces(pieces *f, const literal *l, const char *c, const char *stop,
                               uint32_t depth) {
    parser *p = f->between.p;
    while (c < stop && !p->status) {
        bool doubled = c + 1 < stop && c[1] == *c && !depth;
        if (*c == '}' && depth) break;
        if ((*c == '{' || *c == '}') && doubled) {
            put(&f->between, *c);
            c += 2;
        } else if (*c == '{') {
            c = put_format(f, l, c + 1, stop, depth);
        } else if (*c == '}') {
            parser_fail(p, c, HD_SYNTAX, "a single '}' in an f-string");
        } else {
            c = put_one(&f->between, l, c, stop);
        }
    }
    return c;
}

static hd_value read_spec(parser *p, const literal *l, const char **c, const char *stop,
                          uint32_t depth) {
    pieces spec = { form_of(p, "fstr", (hd_value){ 0 }, (hd_value){ 0 }, (hd_value){ 0 }),
                    { .p = p } };
    *c = read_pieces(&spec, l, *c, stop, depth + 1);
    hd_value whole = text_value(&spec.between);
    bool plain = hd_value_count(spec.form) == 1;
    if (!plain) end_text(&spec);
    vec_fini(env_of(p), &spec.between.chars);
    return plain ? whole : spec.form;
}

/* ["fmt", e, conversion, spec] */
static const char *put_format(pieces *f, const literal *l, const char *c, const char *stop,
                              uint32_t depth) {
    parser *p = f->between.p;
    hd_value conversion = hd_null(), spec = hd_null();
    if (depth > 1) return parser_fail(p, c, HD_SYNTAX, "f-string: braces nested too deeply"), stop;
    const char *end = expression_end(p, c, stop);
    if (p->status) return stop;
    hd_value e = parse_part(p, c, end);
    c = end;
    if (*c == '=') return parser_fail(p, c, HD_SYNTAX, "'=' in an f-string is not supported"), stop;
    if (*c == '!') {
        if (c + 2 >= stop || !strchr("rsa", c[1]) || !c[1] || !strchr(":}", c[2]))
            return parser_fail(p, c, HD_SYNTAX, "after '!' comes r, s or a"), stop;
        conversion = hd_string_n(p->pool, c + 1, 1);
        c += 2;
    }
    if (*c == ':') {
        c++;
        spec = read_spec(p, l, &c, stop, depth);
    }
    if (p->status) return stop;
    if (c >= stop || *c != '}')
        return parser_fail(p, c, HD_SYNTAX, "an f-string expects '}'"), stop;
    end_text(f);
    hd_value piece = form_of(p, "fmt", e, conversion, spec);
    f->form = form_add(p, f->form, piece);
    return c + 1;
}

static void read_literal(pieces *f, const literal *l) {
    const char *c = l->begin;
    if (l->format) {
        (void)read_pieces(f, l, c, l->end, 0);
        return;
    }
    while (c < l->end && !f->between.p->status) c = put_one(&f->between, l, c, l->end);
}

static hd_value bytes_constant(parser *p, const text *t) {
    const char *chars = t->chars.count ? t->chars.items : "";
    return form_of(p, "const", hd_bytes(p->pool, chars, t->chars.count), (hd_value){ 0 },
                   (hd_value){ 0 });
}

hd_value parse_strings(parser *p) {
    pieces f = { form_of(p, "fstr", (hd_value){ 0 }, (hd_value){ 0 }, (hd_value){ 0 }),
                 { .p = p } };
    bool bytes = false, first = true;
    while (p->now.kind == TOKEN_STRING && !p->status) {
        token t = p->now;
        literal l = open_literal(&t);
        if (!check_prefix(p, &t, &l)) break;
        if (!first && l.bytes != bytes)
            parser_fail(p, t.at, HD_SYNTAX, "bytes and strings cannot stand side by side");
        bytes = l.bytes;
        first = false;
        read_literal(&f, &l);
        parser_advance(p);
    }
    hd_value v = { 0 };
    if (p->status) v = hd_failed(p->status);
    else if (bytes) v = bytes_constant(p, &f.between);
    else if (hd_value_count(f.form) == 1) v = text_value(&f.between);
    else {
        end_text(&f);
        v = f.form;
    }
    vec_fini(env_of(p), &f.between.chars);
    return v;
}

/* format.c -- see format.h. Follows CPython's Python/formatter_unicode.c. */
#include "expr/format.h"

#include "expr/floattext.h"
#include "expr/unicode.h"

#include <limits.h>
#include <math.h>

typedef struct format_spec {
    uint32_t fill, align, sign, type; /* code points; 0: not given (type) or the default */
    bool fill_given, alternate, no_negative_zero;
    int64_t width, precision; /* -1: not given */
    uint32_t thousands;       /* ',', '_' or 0 */
} format_spec;

/* ---- Reading a spec ---------------------------------------------------------------------- */

int64_t format_number(world *w, const text *t, uint32_t *at, uint32_t end) {
    int64_t n = -1;
    for (; *at < end; ++*at) {
        uint32_t digit = unicode_of(text_at(t, *at))->decimal;
        if (digit > 9) break;
        if (n < 0) n = 0;
        if (n > (INT64_MAX - digit) / 10) {
            raise_f(w, CLASS_ValueError, "Too many decimal digits in format string");
            return -2;
        }
        n = n * 10 + digit;
    }
    return n;
}

static bool is_align(uint32_t c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

static bool refuse(world *w, const char *message) {
    raise_f(w, CLASS_ValueError, "%s", message);
    return false;
}

static bool refuse_thousands(world *w, uint32_t separator, uint32_t type) {
    if (type > 32 && type < 128)
        raise_f(w, CLASS_ValueError, "Cannot specify '%c' with '%c'.", (char)separator, (char)type);
    else raise_f(w, CLASS_ValueError, "Cannot specify '%c' with '\\x%x'.", (char)separator, type);
    return false;
}

/* `object`: what was to be formatted. */
static ev refuse_type(world *w, ev object, uint32_t type) {
    if (type > 32 && type < 128)
        return raise_f(w, CLASS_ValueError, "Unknown format code '%c' for object of type '%s'",
                       (char)type, type_name(w, object));
    return raise_f(w, CLASS_ValueError, "Unknown format code '\\x%x' for object of type '%s'", type,
                   type_name(w, object));
}

static bool refuse_spec(world *w, const text *t, ev object) {
    const char *name = class_shown(class_of(w->classes, ev_class(object)));
    ev type = text_of_utf8(w, name, strlen(name));
    text_builder b = write_text(w);
    write_ascii(&b, "Invalid format specifier '");
    write_whole(&b, t);
    write_ascii(&b, "' for object of type '");
    if (!ev_failed(type)) write_whole(&b, type.text);
    write_point(&b, '\'');
    raise_value(w, CLASS_ValueError, write_str(&b));
    return false;
}

/* Fill, align, sign, z, # and the 0 before the width. */
static uint32_t read_flags(const text *t, format_spec *s, uint32_t default_align) {
    uint32_t at = 0, n = t->count;
    bool aligned = false;
    if (n >= 2 && is_align(text_at(t, 1))) {
        s->fill = text_at(t, 0);
        s->align = text_at(t, 1);
        s->fill_given = aligned = true;
        at = 2;
    } else if (n >= 1 && is_align(text_at(t, 0))) {
        s->align = text_at(t, 0);
        aligned = true;
        at = 1;
    }
    if (at < n && (text_at(t, at) == ' ' || text_at(t, at) == '+' || text_at(t, at) == '-'))
        s->sign = text_at(t, at++);
    if (at < n && text_at(t, at) == 'z') s->no_negative_zero = true, at++;
    if (at < n && text_at(t, at) == '#') s->alternate = true, at++;
    if (!s->fill_given && at < n && text_at(t, at) == '0') {
        s->fill = '0';
        if (!aligned && default_align == '>') s->align = '=';
        at++;
    }
    return at;
}

static bool read_separators(world *w, const text *t, format_spec *s, uint32_t *at) {
    uint32_t n = t->count;
    if (*at < n && text_at(t, *at) == ',') s->thousands = ',', ++*at;
    if (*at < n && text_at(t, *at) == '_') {
        if (s->thousands) return refuse(w, "Cannot specify both ',' and '_'.");
        s->thousands = '_', ++*at;
    }
    if (*at < n && text_at(t, *at) == ',' && s->thousands == '_')
        return refuse(w, "Cannot specify both ',' and '_'.");
    return true;
}

static bool thousands_fit(world *w, const format_spec *s) {
    if (!s->thousands) return true;
    switch (s->type) {
    case 'd':
    case 'e':
    case 'f':
    case 'g':
    case 'E':
    case 'G':
    case '%':
    case 'F':
    case 0: return true;
    case 'b':
    case 'o':
    case 'x':
    case 'X':
        if (s->thousands == '_') return true;
        break;
    default: break;
    }
    return refuse_thousands(w, s->thousands, s->type);
}

static bool read_spec(world *w, const text *t, ev object, uint32_t type, uint32_t align,
                      format_spec *s) {
    *s = (format_spec){ .fill = ' ', .align = align, .type = type, .width = -1, .precision = -1 };
    uint32_t at = read_flags(t, s, align), n = t->count;
    if ((s->width = format_number(w, t, &at, n)) == -2) return false;
    if (!read_separators(w, t, s, &at)) return false;
    if (at < n && text_at(t, at) == '.') {
        at++;
        if ((s->precision = format_number(w, t, &at, n)) == -2) return false;
        if (s->precision < 0) return refuse(w, "Format specifier missing precision");
    }
    if (n - at > 1) return refuse_spec(w, t, object);
    if (n - at == 1) s->type = text_at(t, at);
    return thousands_fit(w, s);
}

/* ---- Laying out -------------------------------------------------------------------------- */

/* A number in parts: sign, prefix, digits of the whole part, and what follows them. */
typedef struct number_parts {
    uint32_t sign; /* 0: none */
    const char *prefix;
    const char *digits;
    size_t digits_count;
    const char *rest;
    size_t rest_count;
} number_parts;

/* Digits in groups from the right, with zeroes before them until they are at least so wide: how many
 * groups, how many digits in the first of them, and how many digits and zeroes in all. */
typedef struct grouping {
    int64_t size, groups, first, length;
} grouping;

static grouping group_digits(const format_spec *s, size_t count, int64_t least) {
    bool binary = s->type == 'b' || s->type == 'o' || s->type == 'x' || s->type == 'X';
    grouping g = { .size = !s->thousands ? INT64_MAX : binary ? 4 : 3 };
    int64_t left = (int64_t)count;
    for (;;) {
        int64_t need = left > least ? left : least;
        g.first = need < 1 ? 1 : need > g.size ? g.size : need;
        g.length += g.first;
        g.groups++;
        left -= left < g.first ? left : g.first;
        least -= g.first;
        if (left <= 0 && least <= 0) return g;
        least -= 1; /* the separator */
    }
}

static void put_grouped(text_builder *b, const format_spec *s, const number_parts *p, grouping g) {
    int64_t zeroes = g.length - (int64_t)p->digits_count, put = 0;
    for (int64_t i = 0; i < g.groups; i++) {
        int64_t end = put + (i == 0 ? g.first : g.size);
        if (i) write_point(b, s->thousands);
        for (; put < end && !b->failed; put++)
            write_point(b, put < zeroes ? '0' : (uint32_t)p->digits[put - zeroes]);
    }
}

static ev put_number(world *w, const format_spec *s, const number_parts *p) {
    size_t prefix = p->prefix ? strlen(p->prefix) : 0;
    int64_t other = (p->sign ? 1 : 0) + (int64_t)prefix + (int64_t)p->rest_count;
    int64_t width = s->width < 0 ? 0 : s->width;
    if (width > (int64_t)WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, ev_fail();
    int64_t least = s->fill == '0' && s->align == '=' ? width - other : 0;
    grouping g = { 0 };
    if (p->digits_count) g = group_digits(s, p->digits_count, least);
    int64_t padding = width - other - g.length - (g.groups > 1 ? g.groups - 1 : 0);
    if (padding < 0) padding = 0;
    int64_t left = s->align == '>' ? padding : s->align == '^' ? padding / 2 : 0;
    int64_t inner = s->align == '=' ? padding : 0;
    text_builder b = write_text(w);
    write_fill(&b, s->fill, (size_t)left);
    if (p->sign) write_point(&b, p->sign);
    if (prefix) write_ascii(&b, p->prefix);
    write_fill(&b, s->fill, (size_t)inner);
    if (p->digits_count) put_grouped(&b, s, p, g);
    write_chars(&b, p->rest, p->rest_count);
    write_fill(&b, s->fill, (size_t)(padding - left - inner));
    return write_str(&b);
}

static uint32_t sign_for(const format_spec *s, bool negative) {
    if (negative) return '-';
    return s->sign == '+' ? '+' : s->sign == ' ' ? ' ' : 0;
}

/* ---- Strings ----------------------------------------------------------------------------- */

static ev put_text(world *w, const format_spec *s, const text *t, uint32_t count) {
    int64_t padding = s->width > (int64_t)count ? s->width - count : 0;
    int64_t left = s->align == '>' ? padding : s->align == '^' ? padding / 2 : 0;
    text_builder b = write_text(w);
    if (padding > (int64_t)WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, ev_fail();
    write_fill(&b, s->fill, (size_t)left);
    write_part(&b, t, 0, count);
    write_fill(&b, s->fill, (size_t)(padding - left));
    return write_str(&b);
}

static ev format_str(world *w, ev v, const text *spec, ev object) {
    format_spec s;
    if (!read_spec(w, spec, object, 's', '<', &s)) return ev_fail();
    if (s.type != 's') return refuse_type(w, object, s.type);
    if (s.sign)
        return refuse(w, s.sign == ' ' ? "Space not allowed in string format specifier"
                                       : "Sign not allowed in string format specifier"),
               ev_fail();
    if (s.no_negative_zero)
        return refuse(w, "Negative zero coercion (z) not allowed in string format specifier"),
               ev_fail();
    if (s.alternate)
        return refuse(w, "Alternate form (#) not allowed in string format specifier"), ev_fail();
    if (s.align == '=')
        return refuse(w, "'=' alignment not allowed in string format specifier"), ev_fail();
    uint32_t count = v.text->count;
    if (s.precision >= 0 && s.precision < (int64_t)count) count = (uint32_t)s.precision;
    return put_text(w, &s, v.text, count);
}

/* ---- Integers ---------------------------------------------------------------------------- */

size_t format_int_digits(uint64_t magnitude, unsigned base, bool upper, char out[72]) {
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char back[72];
    size_t n = 0;
    do back[n++] = digits[magnitude % base];
    while (magnitude /= base);
    for (size_t i = 0; i < n; i++) out[i] = back[n - 1 - i];
    return n;
}

static ev format_char(world *w, const format_spec *s, int64_t i) {
    if (s->sign) return refuse(w, "Sign not allowed with integer format specifier 'c'"), ev_fail();
    if (s->alternate)
        return refuse(w, "Alternate form (#) not allowed with integer format specifier 'c'"),
               ev_fail();
    if (i < 0 || i > 0x10FFFF)
        return raise_f(w, CLASS_OverflowError, "%%c arg not in range(0x110000)");
    ev t = text_of_point(w, (uint32_t)i);
    if (ev_failed(t)) return t;
    format_spec plain = *s;
    if (plain.align == '=') plain.align = '>';
    return put_text(w, &plain, t.text, 1);
}

static ev format_int(world *w, ev v, const format_spec *s) {
    char digits[72];
    static const struct {
        char type;
        unsigned base;
        const char *prefix;
    } bases[] = { { 'b', 2, "0b" }, { 'o', 8, "0o" }, { 'x', 16, "0x" }, { 'X', 16, "0X" } };
    unsigned base = 10;
    const char *prefix = NULL;
    if (s->precision >= 0)
        return refuse(w, "Precision not allowed in integer format specifier"), ev_fail();
    if (s->no_negative_zero)
        return refuse(w, "Negative zero coercion (z) not allowed in integer format specifier"),
               ev_fail();
    if (s->type == 'c') return format_char(w, s, v.i);
    for (int i = 0; i < 4; i++)
        if (s->type == (uint32_t)bases[i].type)
            base = bases[i].base, prefix = s->alternate ? bases[i].prefix : NULL;
    uint64_t magnitude = v.i < 0 ? -(uint64_t)v.i : (uint64_t)v.i;
    size_t n = format_int_digits(magnitude, base, s->type == 'X', digits);
    return put_number(w, s, &(number_parts){ sign_for(s, v.i < 0), prefix, digits, n, "", 0 });
}

/* ---- Floats ------------------------------------------------------------------------------ */

static bool all_zero(const text *t) {
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t c = text_at(t, i);
        if (c == 'e' || c == 'E') return true;
        if (c >= '1' && c <= '9') return false;
    }
    return true;
}

/* The text of |d|, in lower case. */
static ev float_text(world *w, double d, const format_spec *s, bool percent) {
    uint32_t type = s->type | 32;
    int precision = s->precision < 0 ? 6 : (int)s->precision;
    text_builder b = write_text(w);
    if (isnan(d) || isinf(d)) write_ascii(&b, isnan(d) ? "nan" : "inf");
    else if (percent) float_digits(&b, d, 'f', precision, s->alternate, false);
    else if (s->type == 0 && s->precision < 0) float_digits(&b, d, 'r', 0, s->alternate, true);
    else if (s->type == 0) float_digits(&b, d, 'g', precision, s->alternate, true);
    else float_digits(&b, d, type == 'n' ? 'g' : (char)type, precision, s->alternate, false);
    if (percent) write_point(&b, '%');
    return write_str(&b);
}

static ev format_float(world *w, double d, const format_spec *s) {
    bool percent = s->type == '%', upper = s->type == 'E' || s->type == 'F' || s->type == 'G';
    if (s->precision > INT_MAX) return refuse(w, "precision too big"), ev_fail();
    if (s->precision > (int64_t)WORLD_COUNT_MAX / 4) return w->failure = FAILURE_MEMORY, ev_fail();
    if (percent) d *= 100;
    ev t = float_text(w, fabs(d), s, percent);
    if (ev_failed(t)) return t;
    char *chars = (char *)t.text->data;
    size_t n = t.text->count, digits = 0;
    for (size_t i = 0; upper && i < n; i++)
        if (chars[i] >= 'a') chars[i] -= 32;
    while (digits < n && chars[digits] >= '0' && chars[digits] <= '9') digits++;
    bool negative = signbit(d) && !isnan(d);
    if (s->no_negative_zero && negative && !isinf(d) && all_zero(t.text)) negative = false;
    return put_number(
        w, s,
        &(number_parts){ sign_for(s, negative), NULL, chars, digits, chars + digits, n - digits });
}

/* ---- All --------------------------------------------------------------------------------- */

static bool is_one_of(uint32_t type, const char *types) {
    return type < 128 && type && strchr(types, (int)type);
}

static ev format_number_value(world *w, ev v, const text *spec, ev object) {
    format_spec s;
    bool whole = v.kind != EV_FLOAT;
    if (!read_spec(w, spec, object, whole ? 'd' : 0, '>', &s)) return ev_fail();
    if (whole && is_one_of(s.type, "bcdoxXn")) return format_int(w, v, &s);
    if (is_one_of(s.type, "eEfFgG%") || (!whole && (s.type == 0 || s.type == 'n')))
        return format_float(w, whole ? (double)v.i : v.d, &s);
    return refuse_type(w, object, s.type);
}

ev ev_format(world *w, ev v, ev spec) {
    assert(spec.kind == EV_STR);
    if (spec.text->count == 0) return ev_str(w, v);
    /* A member of an IntEnum is formatted as its value; complaints name its own class. */
    ev plain = ev_flags(w->classes, v) & CLASS_BARE_TEXT ? v.enumer->value : v;
    if (plain.kind == EV_STR) return format_str(w, plain, spec.text, v);
    if (ev_is_number(plain)) return format_number_value(w, plain, spec.text, v);
    if (v.kind == EV_ENUM) {
        ev t = ev_str(w, v);
        return ev_failed(t) ? t : format_str(w, t, spec.text, t);
    }
    return raise_f(w, CLASS_TypeError, "unsupported format string passed to %s.__format__",
                   v.kind == EV_TYPE ? "type" : type_name(w, v));
}

/* percent.c -- see percent.h. Follows CPython's PyUnicode_Format. */
#include "expr/percent.h"

#include "expr/arith.h"
#include "expr/dict.h"
#include "expr/floattext.h"

#include <limits.h>
#include <math.h>

typedef struct percent {
    world *w;
    const text *format;
    uint32_t at;
    text_builder out;
    ev args;    /* a tuple, or one value */
    ev mapping; /* what %(name)s looks in, or EV_UNBOUND */
    uint32_t next;
    bool one;   /* args is one value, not taken yet */
    bool keyed; /* a key has been used: args is a value for this field only */
} percent;

typedef struct field {
    bool left, plus, space, alternate, zero;
    int64_t width, precision; /* -1: not given */
    uint32_t type;
} field;

static bool refuse(world *w, uint32_t class_, const char *message) {
    raise_f(w, class_, "%s", message);
    return false;
}

/* A member of an IntEnum is its value here. */
static bool refuse_args(const percent *p, const char *message) {
    return raise_about(p->w, ev_bare(p->args), message), false;
}

static bool next_arg(percent *p, ev *out) {
    if (p->one) {
        p->one = false;
        *out = p->args;
        return true;
    }
    if (!p->keyed && p->args.kind == EV_TUPLE && p->next < p->args.tuple->count) {
        *out = p->args.tuple->items[p->next++];
        return true;
    }
    return refuse(p->w, CLASS_TypeError, "not enough arguments for format string");
}

/* ---- Reading a field --------------------------------------------------------------------- */

/* A value of list, bytes or range counts as a mapping in CPython, and fails there. */
static bool look_up(percent *p, ev key) {
    if (p->mapping.kind == EV_UNBOUND) return refuse_args(p, "format requires a mapping");
    if (p->mapping.kind != EV_DICT) {
        raise_f(p->w, CLASS_TypeError, "%s indices must be integers or slices, not str",
                p->mapping.kind == EV_BYTES ? "byte" : type_name(p->w, p->mapping));
        return false;
    }
    if (!world_need(p->w, p->mapping)) return false;
    dict_entry *e = dict_find(p->w, p->mapping.dict, key);
    if (!e) return raise_value(p->w, CLASS_KeyError, key), false;
    p->args = e->value;
    p->one = p->keyed = true;
    return true;
}

static bool read_key(percent *p, ev whole) {
    uint32_t start = ++p->at, depth = 1;
    while (p->at < p->format->count && depth > 0) {
        uint32_t c = text_at(p->format, p->at++);
        if (c == ')') depth--;
        if (c == '(') depth++;
    }
    if (p->mapping.kind == EV_UNBOUND) return refuse_args(p, "format requires a mapping");
    if (depth > 0) return refuse(p->w, CLASS_ValueError, "incomplete format key");
    ev key = text_part(p->w, whole, start, p->at - 1 - start);
    return !ev_failed(key) && look_up(p, key);
}

static void read_flags(percent *p, field *f) {
    for (; p->at < p->format->count; p->at++) {
        switch (text_at(p->format, p->at)) {
        case '-': f->left = true; break;
        case '+': f->plus = true; break;
        case ' ': f->space = true; break;
        case '#': f->alternate = true; break;
        case '0': f->zero = true; break;
        default: return;
        }
    }
}

/* Digits, or `*` and an argument. */
static bool read_size(percent *p, field *f, int64_t limit, const char *too_big, int64_t *out) {
    uint32_t n = p->format->count;
    if (p->at < n && text_at(p->format, p->at) == '*') {
        ev v;
        p->at++;
        if (!next_arg(p, &v)) return false;
        v = ev_bare(v);
        if (!ev_is_int(v)) return raise_about(p->w, v, "* wants int"), false;
        bool back = v.i < 0 && out == &f->width; /* a negative width is one on the left */
        if (back) f->left = true;
        *out = back ? -(v.i + (v.i == INT64_MIN)) : v.i < 0 ? 0 : v.i;
        return true;
    }
    for (; p->at < n; p->at++) {
        uint32_t c = text_at(p->format, p->at);
        if (c < '0' || c > '9') return true;
        if (*out < 0) *out = 0;
        if (*out > (limit - (int64_t)(c - '0')) / 10)
            return refuse(p->w, CLASS_ValueError, too_big);
        *out = *out * 10 + (c - '0');
    }
    return true;
}

static bool read_field(percent *p, ev whole, field *f) {
    uint32_t n = p->format->count;
    *f = (field){ .width = -1, .precision = -1 };
    if (p->at < n && text_at(p->format, p->at) == '(' && !read_key(p, whole)) return false;
    read_flags(p, f);
    if (!read_size(p, f, INT64_MAX, "width too big", &f->width)) return false;
    if (p->at < n && text_at(p->format, p->at) == '.') {
        p->at++;
        f->precision = 0;
        if (!read_size(p, f, INT_MAX, "precision too big", &f->precision)) return false;
    }
    uint32_t c = p->at < n ? text_at(p->format, p->at) : 0;
    if (c == 'h' || c == 'l' || c == 'L') p->at++;
    if (p->at >= n) return refuse(p->w, CLASS_ValueError, "incomplete format");
    f->type = text_at(p->format, p->at++);
    return true;
}

/* ---- Writing a field --------------------------------------------------------------------- */

/* sign, prefix and digits, laid out in the width. */
static void put_padded(percent *p, const field *f, uint32_t sign, const char *prefix,
                       const text *body, uint32_t count, bool zero) {
    int64_t used = (sign ? 1 : 0) + (int64_t)strlen(prefix) + count;
    int64_t padding = f->width > used ? f->width - used : 0;
    if (padding > (int64_t)WORLD_COUNT_MAX) {
        p->w->failure = FAILURE_MEMORY;
        p->out.failed = true;
        return;
    }
    if (!f->left && !zero) write_fill(&p->out, ' ', (size_t)padding);
    if (sign) write_point(&p->out, sign);
    write_ascii(&p->out, prefix);
    if (!f->left && zero) write_fill(&p->out, '0', (size_t)padding);
    write_part(&p->out, body, 0, count);
    if (f->left) write_fill(&p->out, ' ', (size_t)padding);
}

static uint32_t sign_for(const field *f, bool negative) {
    return negative ? '-' : f->plus ? '+' : f->space ? ' ' : 0;
}

static bool put_int(percent *p, const field *f, ev v) {
    bool real = f->type == 'd' || f->type == 'i' || f->type == 'u';
    unsigned base = f->type == 'o' ? 8 : f->type == 'x' || f->type == 'X' ? 16 : 10;
    char digits[72];
    ev given = v;
    v = ev_bare(v);
    if (real && v.kind == EV_FLOAT) v = arith_int_of_float(p->w, v.d);
    if (ev_failed(v)) return false;
    if (!ev_is_int(v)) {
        raise_f(p->w, CLASS_TypeError, "%%%c format: %s is required, not %s", (char)f->type,
                real ? "a real number" : "an integer", type_name_whole(p->w, given));
        return false;
    }
    size_t n =
        format_int_digits(v.i < 0 ? -(uint64_t)v.i : (uint64_t)v.i, base, f->type == 'X', digits);
    text_builder b = write_text(p->w);
    if (f->precision > (int64_t)n) write_fill(&b, '0', (size_t)f->precision - n);
    write_chars(&b, digits, n);
    ev body = write_str(&b);
    if (ev_failed(body)) return false;
    const char *prefix = !f->alternate    ? ""
                         : base == 8      ? "0o"
                         : f->type == 'X' ? "0X"
                         : base == 16     ? "0x"
                                          : "";
    put_padded(p, f, sign_for(f, v.i < 0), prefix, body.text, body.text->count, f->zero);
    return true;
}

static bool put_float(percent *p, const field *f, ev v) {
    if (!ev_is_number(ev_bare(v))) {
        raise_f(p->w, CLASS_TypeError, "must be real number, not %s", type_name_whole(p->w, v));
        return false;
    }
    v = ev_bare(v);
    double d = v.kind == EV_FLOAT ? v.d : (double)v.i;
    text_builder b = write_text(p->w);
    if (isnan(d) || isinf(d)) write_ascii(&b, isnan(d) ? "nan" : "inf");
    else
        float_digits(&b, fabs(d), (char)(f->type | 32), f->precision < 0 ? 6 : (int)f->precision,
                     f->alternate, false);
    ev body = write_str(&b);
    if (ev_failed(body)) return false;
    char *chars = (char *)body.text->data;
    for (uint32_t i = 0; f->type < 'a' && i < body.text->count; i++)
        if (chars[i] >= 'a') chars[i] -= 32;
    put_padded(p, f, sign_for(f, signbit(d) && !isnan(d)), "", body.text, body.text->count,
               f->zero);
    return true;
}

static bool put_char(percent *p, const field *f, ev v) {
    v = ev_bare(v);
    if (ev_is_int(v)) {
        if (v.i < 0 || v.i > 0x10FFFF)
            return refuse(p->w, CLASS_OverflowError, "%c arg not in range(0x110000)");
        v = text_of_point(p->w, (uint32_t)v.i);
        if (ev_failed(v)) return false;
    }
    if (v.kind != EV_STR || v.text->count != 1)
        return raise_about(p->w, v, "%c requires int or char"), false;
    put_padded(p, f, 0, "", v.text, 1, false);
    return true;
}

static bool put_field(percent *p, const field *f) {
    ev v, body;
    if (!next_arg(p, &v)) return false;
    switch (f->type) {
    case 's':
    case 'r':
    case 'a':
        body = f->type == 's'   ? ev_str(p->w, v)
               : f->type == 'r' ? ev_repr(p->w, v)
                                : ev_ascii(p->w, v);
        if (ev_failed(body)) return false;
        put_padded(p, f, 0, "", body.text,
                   f->precision >= 0 && f->precision < body.text->count ? (uint32_t)f->precision
                                                                        : body.text->count,
                   false);
        return true;
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': return put_int(p, f, v);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return put_float(p, f, v);
    case 'c': return put_char(p, f, v);
    default:
        raise_f(p->w, CLASS_ValueError, "unsupported format character '%c' (0x%x) at index %u",
                f->type > 31 && f->type < 128 ? (char)f->type : '?', f->type, p->at - 1);
        return false;
    }
}

/* ---- All --------------------------------------------------------------------------------- */

static bool put_all(percent *p, ev format) {
    while (p->at < p->format->count) {
        uint32_t start = p->at;
        field f;
        while (p->at < p->format->count && text_at(p->format, p->at) != '%') p->at++;
        write_part(&p->out, p->format, start, p->at - start);
        if (p->at == p->format->count) break;
        if (++p->at < p->format->count && text_at(p->format, p->at) == '%') {
            write_point(&p->out, '%');
            p->at++;
            continue;
        }
        if (!read_field(p, format, &f) || !put_field(p, &f)) return false;
        if (p->keyed && p->one)
            return refuse(p->w, CLASS_TypeError,
                          "not all arguments converted during string formatting");
    }
    bool left = p->one || (p->args.kind == EV_TUPLE && !p->keyed && p->next < p->args.tuple->count);
    if (left && p->mapping.kind == EV_UNBOUND)
        return refuse_args(p, "not all arguments converted during string formatting");
    return true;
}

ev percent_format(world *w, ev format, ev args) {
    bool mapping = args.kind == EV_DICT || args.kind == EV_LIST || args.kind == EV_BYTES ||
                   args.kind == EV_RANGE;
    percent p = { .w = w, .format = format.text, .args = args, .one = args.kind != EV_TUPLE };
    p.mapping = mapping ? args : ev_unbound();
    p.out = write_text(w);
    if (put_all(&p, format)) return write_str(&p.out);
    write_drop(&p.out);
    return ev_fail();
}

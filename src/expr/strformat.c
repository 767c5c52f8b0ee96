/* strformat.c -- str.format and str.format_map: see strings.h. Follows CPython's
 * Objects/stringlib/unicode_format.h. */
#include "expr/format.h"
#include "expr/strings.h"

typedef struct formatter {
    world *w;
    const call *args; /* NULL: format_map */
    ev mapping;
    int numbering; /* 0: not known, 1: automatic, 2: manual */
    int64_t next;  /* automatic number */
} formatter;

typedef struct piece {
    uint32_t from, to;
} piece;

static bool refuse(formatter *f, const char *message) {
    raise_f(f->w, CLASS_ValueError, "%s", message);
    return false;
}

/* ---- Reading a field --------------------------------------------------------------------- */

typedef struct markup {
    piece name, spec;
    uint32_t conversion;
    bool nested;
} markup;

static bool read_spec(formatter *f, const text *t, uint32_t *at, uint32_t end, markup *m) {
    int depth = 1;
    m->spec.from = *at;
    while (*at < end) {
        uint32_t c = text_at(t, (*at)++);
        if (c == '{') m->nested = true, depth++;
        if (c == '}' && --depth == 0) return m->spec.to = *at - 1, true;
    }
    return refuse(f, "unmatched '{' in format spec");
}

static bool read_field(formatter *f, const text *t, uint32_t *at, uint32_t end, markup *m) {
    uint32_t c = 0;
    *m = (markup){ .name.from = *at };
    while (*at < end) {
        c = text_at(t, (*at)++);
        if (c == '{') return refuse(f, "unexpected '{' in field name");
        if (c == '[')
            while (*at < end && text_at(t, *at) != ']') ++*at;
        else if (c == '}' || c == ':' || c == '!') break;
    }
    bool closed = c == '}' || c == ':' || c == '!';
    m->name.to = closed ? *at - 1 : *at;
    if (c == '!') {
        if (*at >= end) return refuse(f, "end of string while looking for conversion specifier");
        m->conversion = text_at(t, (*at)++);
        if (*at < end) {
            c = text_at(t, (*at)++);
            if (c == '}') return true;
            if (c != ':') return refuse(f, "expected ':' after conversion specifier");
        }
        return read_spec(f, t, at, end, m);
    }
    if (c == ':') return read_spec(f, t, at, end, m);
    return c == '}' || refuse(f, "expected '}' before end of string");
}

/* ---- Finding the value ------------------------------------------------------------------- */

/* The number that the whole piece is; -1: it is none; -2: too large, raised. */
static int64_t number_of(formatter *f, const text *t, piece p) {
    uint32_t at = p.from;
    int64_t n = format_number(f->w, t, &at, p.to);
    return n == -2 ? n : at < p.to ? -1 : n;
}

static bool number_fits(formatter *f, bool automatic) {
    int now = automatic ? 1 : 2;
    if (!f->numbering) f->numbering = now;
    if (f->numbering == now) return true;
    return refuse(
        f, automatic
               ? "cannot switch from manual field specification to automatic field numbering"
               : "cannot switch from automatic field numbering to manual field specification");
}

static ev named_value(formatter *f, ev name) {
    if (!f->args) return item_get(f->w, f->mapping, name);
    for (uint32_t i = 0; i < f->args->named; i++)
        if (text_same(f->args->names[i].text, name.text)) return f->args->args[f->args->count + i];
    return raise_value(f->w, CLASS_KeyError, name);
}

static ev first_value(formatter *f, ev whole, piece first) {
    int64_t number = number_of(f, whole.text, first);
    bool empty = first.from == first.to;
    if (number == -2) return ev_fail();
    if ((empty || number >= 0) && !number_fits(f, empty)) return ev_fail();
    if (empty) number = f->next++;
    if (number < 0) {
        ev name = text_part(f->w, whole, first.from, first.to - first.from);
        return ev_failed(name) ? name : named_value(f, name);
    }
    if (!f->args) return refuse(f, "Format string contains positional fields"), ev_fail();
    if (number >= f->args->count)
        return raise_f(f->w, CLASS_IndexError,
                       "Replacement index %lld out of range for positional args tuple",
                       (long long)number);
    return f->args->args[number];
}

/* One step of ".name" or "[index]". */
static ev step_into(formatter *f, ev whole, ev v, uint32_t *at, uint32_t end) {
    const text *t = whole.text;
    uint32_t c = text_at(t, (*at)++);
    piece name = { *at, *at };
    if (c != '.' && c != '[')
        return refuse(f, "Only '.' or '[' may follow ']' in format field specifier"), ev_fail();
    if (c == '.') {
        while (*at < end && text_at(t, *at) != '.' && text_at(t, *at) != '[') ++*at;
        name.to = *at;
    } else {
        while (*at < end && text_at(t, *at) != ']') ++*at;
        if (*at >= end) return refuse(f, "Missing ']' in format string"), ev_fail();
        name.to = (*at)++;
    }
    if (name.from == name.to) return refuse(f, "Empty attribute in format string"), ev_fail();
    int64_t index = c == '[' ? number_of(f, t, name) : -1;
    if (index == -2) return ev_fail();
    if (index >= 0) return item_get(f->w, v, ev_int(index));
    ev text_name = text_part(f->w, whole, name.from, name.to - name.from);
    if (ev_failed(text_name)) return text_name;
    return c == '.' ? attr_get(f->w, v, text_name) : item_get(f->w, v, text_name);
}

static ev field_value(formatter *f, ev whole, piece name) {
    piece first = { name.from, name.from };
    while (first.to < name.to && text_at(whole.text, first.to) != '.' &&
           text_at(whole.text, first.to) != '[')
        first.to++;
    ev v = first_value(f, whole, first);
    for (uint32_t at = first.to; at < name.to && !ev_failed(v);)
        v = step_into(f, whole, v, &at, name.to);
    return v;
}

static ev convert(formatter *f, ev v, uint32_t conversion) {
    switch (conversion) {
    case 0: return v;
    case 'r': return ev_repr(f->w, v);
    case 's': return ev_str(f->w, v);
    case 'a': return ev_ascii(f->w, v);
    default:
        if (conversion > 32 && conversion < 127)
            return raise_f(f->w, CLASS_ValueError, "Unknown conversion specifier %c",
                           (char)conversion);
        return raise_f(f->w, CLASS_ValueError, "Unknown conversion specifier \\x%x", conversion);
    }
}

/* ---- Putting it together ----------------------------------------------------------------- */

static ev format_text(formatter *f, ev whole, piece part, int depth);

static bool put_field(formatter *f, text_builder *b, ev whole, const markup *m, int depth) {
    ev v = field_value(f, whole, m->name);
    if (!ev_failed(v)) v = convert(f, v, m->conversion);
    if (ev_failed(v)) return false;
    ev spec = m->nested ? format_text(f, whole, m->spec, depth - 1)
                        : text_part(f->w, whole, m->spec.from, m->spec.to - m->spec.from);
    if (ev_failed(spec)) return false;
    v = ev_format(f->w, v, spec);
    if (ev_failed(v)) return false;
    write_whole(b, v.text);
    return true;
}

/* Literal text up to a field. *field: one follows. */
static bool put_literal(formatter *f, text_builder *b, const text *t, uint32_t *at, uint32_t end,
                        bool *field) {
    uint32_t start = *at, c = 0;
    *field = false;
    while (*at < end) {
        c = text_at(t, (*at)++);
        if (c == '{' || c == '}') break;
    }
    if (c != '{' && c != '}') return write_part(b, t, start, *at - start), true;
    bool last = *at >= end, twice = !last && text_at(t, *at) == c;
    if (c == '}' && !twice) return refuse(f, "Single '}' encountered in format string");
    if (c == '{' && last) return refuse(f, "Single '{' encountered in format string");
    write_part(b, t, start, twice ? *at - start : *at - start - 1);
    if (twice) ++*at;
    *field = !twice;
    return true;
}

/* Specs may contain fields, those may not: two levels. */
static ev format_text(formatter *f, ev whole, piece part, int depth) {
    if (depth <= 0) return refuse(f, "Max string recursion exceeded"), ev_fail();
    text_builder b = write_text(f->w);
    for (uint32_t at = part.from; at < part.to;) {
        bool field;
        markup m;
        if (!put_literal(f, &b, whole.text, &at, part.to, &field) ||
            (field && (!read_field(f, whole.text, &at, part.to, &m) ||
                       !put_field(f, &b, whole, &m, depth)))) {
            write_drop(&b);
            return ev_fail();
        }
    }
    return write_str(&b);
}

ev str_method_format(world *w, ev self, const ev *a, const call *c) {
    formatter f = { .w = w, .args = c };
    (void)a;
    return format_text(&f, self, (piece){ 0, self.text->count }, 2);
}

ev str_method_format_map(world *w, ev self, const ev *a, const call *c) {
    formatter f = { .w = w, .mapping = a[0] };
    (void)c;
    return format_text(&f, self, (piece){ 0, self.text->count }, 2);
}

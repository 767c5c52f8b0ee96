/* strings_case.c -- upper, lower, title, isalpha and their kin: see strings.h. Bytes know ASCII only. */
#include "expr/strings.h"

#include "expr/unicode.h"

static ev finish(text_builder *b, ev self) {
    return self.kind == EV_STR ? write_str(b) : write_bytes(b);
}

static unsigned flags_of(ev self, uint32_t c) {
    if (self.kind == EV_STR || c < 128) return unicode_of(c)->flags;
    return 0;
}

/* ---- Case -------------------------------------------------------------------------------- */

/* A capital sigma at the end of a word becomes a final one. */
static bool is_final_sigma(const text *t, uint32_t at) {
    int64_t i = (int64_t)at - 1;
    while (i >= 0 && unicode_has(text_at(t, (size_t)i), UNICODE_IGNORABLE)) i--;
    if (i < 0 || !unicode_has(text_at(t, (size_t)i), UNICODE_CASED)) return false;
    for (i = (int64_t)at + 1;
         i < t->count && unicode_has(text_at(t, (size_t)i), UNICODE_IGNORABLE);)
        i++;
    return i == t->count || !unicode_has(text_at(t, (size_t)i), UNICODE_CASED);
}

static void put_case(text_builder *b, ev self, uint32_t at, unicode_case to) {
    uint32_t c = text_at(self.text, at), out[3];
    if (self.kind == EV_BYTES && c >= 128) {
        write_point(b, c);
        return;
    }
    if (c == 0x3A3 && to == UNICODE_TO_LOWER) {
        write_point(b, is_final_sigma(self.text, at) ? 0x3C2 : 0x3C3);
        return;
    }
    size_t n = unicode_convert(c, to, out);
    for (size_t i = 0; i < n; i++) write_point(b, out[i]);
}

static ev convert(world *w, ev self, unicode_case to) {
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < self.text->count; i++) put_case(&b, self, i, to);
    return finish(&b, self);
}

ev text_method_upper(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return convert(w, self, UNICODE_TO_UPPER);
}
ev text_method_lower(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return convert(w, self, UNICODE_TO_LOWER);
}
ev text_method_casefold(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return convert(w, self, UNICODE_TO_FOLD);
}

ev text_method_capitalize(world *w, ev self, const ev *a, const call *c) {
    text_builder b = write_text(w);
    (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++)
        put_case(&b, self, i, i ? UNICODE_TO_LOWER : UNICODE_TO_TITLE);
    return finish(&b, self);
}

static bool is_cased(ev self, uint32_t c) {
    return flags_of(self, c) & (UNICODE_CASED | UNICODE_LOWER | UNICODE_UPPER | UNICODE_TITLE);
}

ev text_method_title(world *w, ev self, const ev *a, const call *c) {
    text_builder b = write_text(w);
    bool inside = false;
    (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++) {
        put_case(&b, self, i, inside ? UNICODE_TO_LOWER : UNICODE_TO_TITLE);
        inside = is_cased(self, text_at(self.text, i));
    }
    return finish(&b, self);
}

ev text_method_swapcase(world *w, ev self, const ev *a, const call *c) {
    text_builder b = write_text(w);
    (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++) {
        unsigned flags = flags_of(self, text_at(self.text, i));
        if (flags & UNICODE_UPPER) put_case(&b, self, i, UNICODE_TO_LOWER);
        else if (flags & UNICODE_LOWER) put_case(&b, self, i, UNICODE_TO_UPPER);
        else write_point(&b, text_at(self.text, i));
    }
    return finish(&b, self);
}

/* ---- Properties -------------------------------------------------------------------------- */

static ev all_have(ev self, unsigned flags) {
    for (uint32_t i = 0; i < self.text->count; i++)
        if (!(flags_of(self, text_at(self.text, i)) & flags)) return ev_bool(false);
    return ev_bool(self.text->count > 0);
}

#define PROPERTY(name, flags)                                                                      \
    ev text_method_##name(world *w, ev self, const ev *a, const call *c) {                         \
        (void)w, (void)a, (void)c;                                                                 \
        return all_have(self, flags);                                                              \
    }
PROPERTY(isalpha, UNICODE_ALPHA)
PROPERTY(isdecimal, UNICODE_DECIMAL)
PROPERTY(isdigit, UNICODE_DIGIT)
PROPERTY(isnumeric, UNICODE_NUMERIC)
PROPERTY(isalnum, UNICODE_ALPHA | UNICODE_DECIMAL | UNICODE_DIGIT | UNICODE_NUMERIC)

ev text_method_isspace(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++) {
        uint32_t p = text_at(self.text, i);
        bool space =
            self.kind == EV_STR ? unicode_has(p, UNICODE_SPACE) : p == ' ' || (p >= 9 && p <= 13);
        if (!space) return ev_bool(false);
    }
    return ev_bool(self.text->count > 0);
}

ev text_method_isprintable(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++)
        if (!unicode_has(text_at(self.text, i), UNICODE_PRINTABLE)) return ev_bool(false);
    return ev_bool(true);
}

ev text_method_isascii(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++)
        if (text_at(self.text, i) > 127) return ev_bool(false);
    return ev_bool(true);
}

ev text_method_isidentifier(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++)
        if (!unicode_has(text_at(self.text, i), i ? UNICODE_ID_CONTINUE : UNICODE_ID_START))
            return ev_bool(false);
    return ev_bool(self.text->count > 0);
}

/* At least one cased code point, and none of the other cases. */
static ev one_case(ev self, unsigned wanted, unsigned others) {
    bool some = false;
    for (uint32_t i = 0; i < self.text->count; i++) {
        unsigned flags = flags_of(self, text_at(self.text, i));
        if (flags & others) return ev_bool(false);
        some |= (flags & wanted) != 0;
    }
    return ev_bool(some);
}

ev text_method_islower(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    return one_case(self, UNICODE_LOWER, UNICODE_UPPER | UNICODE_TITLE);
}

ev text_method_isupper(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    return one_case(self, UNICODE_UPPER, UNICODE_LOWER | UNICODE_TITLE);
}

ev text_method_istitle(world *w, ev self, const ev *a, const call *c) {
    bool some = false, inside = false;
    (void)w, (void)a, (void)c;
    for (uint32_t i = 0; i < self.text->count; i++) {
        unsigned flags = flags_of(self, text_at(self.text, i));
        bool upper = flags & (UNICODE_UPPER | UNICODE_TITLE), lower = flags & UNICODE_LOWER;
        if (upper ? inside : lower && !inside) return ev_bool(false);
        inside = upper || lower;
        some |= inside;
    }
    return ev_bool(some);
}

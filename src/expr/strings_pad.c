/* strings_pad.c -- center, ljust, zfill, expandtabs, strip: see strings.h. */
#include "expr/strings.h"

#include "expr/unicode.h"

static ev finish(text_builder *b, ev self) {
    return self.kind == EV_STR ? write_str(b) : write_bytes(b);
}

/* ---- Padding ----------------------------------------------------------------------------- */

static bool fill_of(world *w, ev self, ev v, const char *method, uint32_t *out) {
    *out = ' ';
    if (!arg_given(v)) return true;
    if (self.kind == EV_BYTES) {
        if (v.kind == EV_BYTES && v.text->count == 1) return *out = text_at(v.text, 0), true;
        raise_f(w, CLASS_TypeError, "%s() argument 2 must be a byte string of length 1, not %s",
                method, v.kind == EV_NONE ? "None" : type_name(w, v));
        return false;
    }
    if (v.kind != EV_STR) {
        raise_f(w, CLASS_TypeError, "The fill character must be a unicode character, not %s",
                type_name(w, v));
        return false;
    }
    if (v.text->count != 1) {
        raise_f(w, CLASS_TypeError, "The fill character must be exactly one character long");
        return false;
    }
    *out = text_at(v.text, 0);
    return true;
}

static ev pad(world *w, ev self, int64_t left, int64_t right, uint32_t fill) {
    if (left + right > (int64_t)WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, ev_fail();
    text_builder b = write_text(w);
    write_fill(&b, fill, (size_t)left);
    write_whole(&b, self.text);
    write_fill(&b, fill, (size_t)right);
    return finish(&b, self);
}

/* where: 0 in the middle, 1 text on the left, 2 text on the right */
static ev justify(world *w, ev self, const ev *a, const char *method, int where) {
    int64_t width;
    uint32_t fill;
    if (!arg_int(w, a[0], &width) || !fill_of(w, self, a[1], method, &fill)) return ev_fail();
    int64_t more = width - (int64_t)self.text->count;
    if (width <= (int64_t)self.text->count) return self;
    int64_t left = where == 1 ? 0 : where == 2 ? more : more / 2 + (more & width & 1);
    return pad(w, self, left, more - left, fill);
}

ev text_method_center(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return justify(w, self, a, "center", 0);
}
ev text_method_ljust(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return justify(w, self, a, "ljust", 1);
}
ev text_method_rjust(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return justify(w, self, a, "rjust", 2);
}

ev text_method_zfill(world *w, ev self, const ev *a, const call *c) {
    int64_t width;
    (void)c;
    if (!arg_int(w, a[0], &width)) return ev_fail();
    int64_t more = width - (int64_t)self.text->count;
    if (width <= (int64_t)self.text->count) return self;
    if (more > (int64_t)WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, ev_fail();
    uint32_t first = self.text->count ? text_at(self.text, 0) : 0;
    bool sign = first == '+' || first == '-';
    text_builder b = write_text(w);
    if (sign) write_point(&b, first);
    write_fill(&b, '0', (size_t)more);
    write_part(&b, self.text, sign, self.text->count - sign);
    return finish(&b, self);
}

ev text_method_expandtabs(world *w, ev self, const ev *a, const call *c) {
    int64_t size = 8, column = 0;
    (void)c;
    if (arg_given(a[0]) && !arg_c_int(w, a[0], &size)) return ev_fail();
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < self.text->count && !b.failed; i++) {
        uint32_t point = text_at(self.text, i);
        if (point == '\t') {
            int64_t gap = size > 0 ? size - column % size : 0;
            write_fill(&b, ' ', (size_t)gap);
            column += gap;
            continue;
        }
        write_point(&b, point);
        column = point == '\n' || point == '\r' ? 0 : column + 1;
    }
    return finish(&b, self);
}

/* ---- Stripping --------------------------------------------------------------------------- */

static bool is_stripped(ev self, const text *set, uint32_t c) {
    if (!set)
        return self.kind == EV_STR ? unicode_has(c, UNICODE_SPACE)
                                   : c == ' ' || (c >= 9 && c <= 13);
    for (uint32_t i = 0; i < set->count; i++)
        if (text_at(set, i) == c) return true;
    return false;
}

static ev strip(world *w, ev self, const ev *a, const char *method, bool left, bool right) {
    const text *set = NULL;
    if (arg_given(a[0]) && a[0].kind != EV_NONE) {
        if (a[0].kind != self.kind && self.kind == EV_STR) {
            raise_note_class(w, a[0]);
            return raise_f(w, CLASS_TypeError, "%s arg must be None or str", method);
        }
        if (a[0].kind != self.kind)
            return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                           type_name(w, a[0]));
        set = a[0].text;
    }
    uint32_t from = 0, to = self.text->count;
    while (left && from < to && is_stripped(self, set, text_at(self.text, from))) from++;
    while (right && to > from && is_stripped(self, set, text_at(self.text, to - 1))) to--;
    return text_part(w, self, from, to - from);
}

ev text_method_strip(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return strip(w, self, a, "strip", true, true);
}
ev text_method_lstrip(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return strip(w, self, a, "lstrip", true, false);
}
ev text_method_rstrip(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return strip(w, self, a, "rstrip", false, true);
}

/* strings_split.c -- split, rsplit, splitlines, join: see strings.h. */
#include "expr/strings.h"

#include "expr/unicode.h"

static bool is_space(ev self, uint32_t c) {
    if (self.kind == EV_STR) return unicode_has(c, UNICODE_SPACE);
    return c == ' ' || (c >= 9 && c <= 13);
}

static bool add_part(world *w, ev out, ev self, uint32_t from, uint32_t to) {
    ev part = text_part(w, self, from, to - from);
    return !ev_failed(part) && plist_append(w, out.list, part);
}

/* ---- Splitting --------------------------------------------------------------------------- */

static bool split_spaces(world *w, ev out, ev self, int64_t limit) {
    uint32_t n = self.text->count, at = 0;
    for (;;) {
        while (at < n && is_space(self, text_at(self.text, at))) at++;
        if (at == n) return true;
        uint32_t start = at;
        if (limit-- == 0) return add_part(w, out, self, start, n); /* with the spaces behind it */
        while (at < n && !is_space(self, text_at(self.text, at))) at++;
        if (!add_part(w, out, self, start, at)) return false;
    }
}

static bool rsplit_spaces(world *w, ev out, ev self, int64_t limit) {
    uint32_t end = self.text->count;
    for (;;) {
        while (end > 0 && is_space(self, text_at(self.text, end - 1))) end--;
        if (end == 0) return true;
        uint32_t start = end;
        if (limit-- == 0) return add_part(w, out, self, 0, end);
        while (start > 0 && !is_space(self, text_at(self.text, start - 1))) start--;
        if (!add_part(w, out, self, start, end)) return false;
        end = start;
    }
}

static bool split_by(world *w, ev out, ev self, const text *separator, int64_t limit) {
    uint32_t from = 0, n = self.text->count;
    int64_t at;
    while (limit-- != 0 && (at = text_find(self.text, separator, from, n)) >= 0) {
        if (!add_part(w, out, self, from, (uint32_t)at)) return false;
        from = (uint32_t)at + separator->count;
    }
    return add_part(w, out, self, from, n);
}

static bool rsplit_by(world *w, ev out, ev self, const text *separator, int64_t limit) {
    uint32_t end = self.text->count;
    int64_t at;
    while (limit-- != 0 && (at = text_find_last(self.text, separator, 0, end)) >= 0) {
        if (!add_part(w, out, self, (uint32_t)at + separator->count, end)) return false;
        end = (uint32_t)at;
    }
    return add_part(w, out, self, 0, end);
}

static void reverse(plist *l) {
    for (uint32_t i = 0, j = l->count; i + 1 < j; i++) {
        ev swap = l->items[i];
        l->items[i] = l->items[--j];
        l->items[j] = swap;
    }
}

static ev split(world *w, ev self, const ev *a, bool right) {
    int64_t limit;
    bool spaces = !arg_given(a[0]) || a[0].kind == EV_NONE;
    if (!arg_size(w, a[1], -1, &limit)) return ev_fail();
    if (!spaces && a[0].kind != self.kind) {
        if (self.kind == EV_STR)
            return raise_f(w, CLASS_TypeError, "must be str or None, not %s", type_name(w, a[0]));
        return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                       type_name(w, a[0]));
    }
    if (!spaces && !a[0].text->count) return raise_f(w, CLASS_ValueError, "empty separator");
    if (limit < 0) limit = INT64_MAX;
    ev out = plist_new(w, 0);
    if (ev_failed(out)) return out;
    bool good = right    ? spaces ? rsplit_spaces(w, out, self, limit)
                                  : rsplit_by(w, out, self, a[0].text, limit)
                   : spaces ? split_spaces(w, out, self, limit)
                         : split_by(w, out, self, a[0].text, limit);
    if (right) reverse(out.list);
    return good ? out : ev_fail();
}

ev text_method_split(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return split(w, self, a, false);
}
ev text_method_rsplit(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return split(w, self, a, true);
}

/* ---- Lines ------------------------------------------------------------------------------- */

static bool is_line_end(ev self, uint32_t c) {
    return self.kind == EV_STR ? unicode_has(c, UNICODE_LINE) : c == '\n' || c == '\r';
}

ev text_method_splitlines(world *w, ev self, const ev *a, const call *c) {
    int64_t keep = 0;
    uint32_t n = self.text->count;
    (void)c;
    if (arg_given(a[0]) && !arg_c_int(w, a[0], &keep)) return ev_fail();
    ev out = plist_new(w, 0);
    for (uint32_t at = 0; !ev_failed(out) && at < n;) {
        uint32_t start = at;
        while (at < n && !is_line_end(self, text_at(self.text, at))) at++;
        uint32_t end = at;
        if (at < n)
            at += text_at(self.text, at) == '\r' && at + 1 < n && text_at(self.text, at + 1) == '\n'
                      ? 2
                      : 1;
        if (!add_part(w, out, self, start, keep ? at : end)) return ev_fail();
    }
    return out;
}

/* ---- Joining ----------------------------------------------------------------------------- */

static ev join_items(world *w, ev self, const ev *items, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].kind == self.kind) continue;
        return raise_f(w, CLASS_TypeError, "sequence item %u: expected %s, %s found", i,
                       self.kind == EV_STR ? "str instance" : "a bytes-like object",
                       type_name(w, items[i]));
    }
    if (count == 1) return items[0];
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < count; i++) {
        if (i) write_whole(&b, self.text);
        write_whole(&b, items[i].text);
    }
    return self.kind == EV_STR ? write_str(&b) : write_bytes(&b);
}

ev text_method_join(world *w, ev self, const ev *a, const call *c) {
    uint32_t count;
    (void)c;
    ev v = ev_bare(a[0]);
    if (!world_need(w, v)) return ev_fail();
    const ev *items = sequence_items(w, v, &count);
    if (items) return join_items(w, self, items, count);
    if (!ev_is_obj(v) || v.kind == EV_EXC || v.kind == EV_RECORD || v.kind == EV_ENUM)
        return raise_about(w, v, "can only join an iterable");
    ev all = iter_list(w, v);
    return ev_failed(all) ? all : join_items(w, self, all.list->items, all.list->count);
}

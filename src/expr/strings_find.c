/* strings_find.c -- find, index, count, startswith, replace, partition: see strings.h. */
#include "expr/strings.h"

#include "expr/tuple.h"

/* ---- Searching --------------------------------------------------------------------------- */

/* The needle of find() and its kin: of the same kind, or for bytes an int. */
static bool needle_of(world *w, ev self, ev v, ev *out) {
    *out = v;
    if (v.kind == self.kind) return true;
    if (self.kind == EV_STR) {
        raise_f(w, CLASS_TypeError, "must be str, not %s", type_name(w, v));
        return false;
    }
    if (!ev_is_int(v)) {
        raise_f(w, CLASS_TypeError, "argument should be integer or bytes-like object, not '%s'",
                type_name(w, v));
        return false;
    }
    if (v.i < 0 || v.i > 255) {
        raise_f(w, CLASS_ValueError, "byte must be in range(0, 256)");
        return false;
    }
    uint8_t byte = (uint8_t)v.i;
    *out = bytes_of(w, &byte, 1);
    return !ev_failed(*out);
}

/* Start beyond the end: nothing is found there, not even "". */
static bool bounds_of(world *w, ev self, const ev *a, uint32_t *from, uint32_t *to) {
    uint32_t n = self.text->count;
    if (!slice_bound(w, a[1], n, 0, from) || !slice_bound(w, a[2], n, n, to)) return false;
    if (ev_is_int(a[1]) && a[1].i > (int64_t)n) *from = n + 1;
    return true;
}

static bool find_args(world *w, ev self, const ev *a, ev *needle, uint32_t *from, uint32_t *to) {
    return bounds_of(w, self, a, from, to) && needle_of(w, self, a[0], needle);
}

static ev found(world *w, ev self, int64_t at, bool must) {
    if (at < 0 && must)
        return raise_f(w, CLASS_ValueError,
                       self.kind == EV_STR ? "substring not found" : "subsection not found");
    return ev_int(at);
}

static ev search(world *w, ev self, const ev *a, bool last, bool must) {
    ev needle;
    uint32_t from, to;
    if (!find_args(w, self, a, &needle, &from, &to)) return ev_fail();
    int64_t at = last ? text_find_last(self.text, needle.text, from, to)
                      : text_find(self.text, needle.text, from, to);
    return found(w, self, at, must);
}

ev text_method_find(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return search(w, self, a, false, false);
}
ev text_method_rfind(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return search(w, self, a, true, false);
}
ev text_method_index(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return search(w, self, a, false, true);
}
ev text_method_rindex(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return search(w, self, a, true, true);
}

ev text_method_count(world *w, ev self, const ev *a, const call *c) {
    ev needle;
    uint32_t from, to;
    int64_t n = 0, at;
    (void)c;
    if (!find_args(w, self, a, &needle, &from, &to)) return ev_fail();
    if (needle.text->count == 0) return ev_int(from > to ? 0 : (int64_t)(to - from) + 1);
    while ((at = text_find(self.text, needle.text, from, to)) >= 0) {
        n++;
        from = (uint32_t)at + needle.text->count;
    }
    return ev_int(n);
}

/* ---- Ends -------------------------------------------------------------------------------- */

static bool matches(const text *hay, uint32_t at, const text *needle) {
    if (!text_is_wide(hay) && !text_is_wide(needle))
        return memcmp(text_narrow(hay) + at, needle->data, needle->count) == 0;
    for (uint32_t i = 0; i < needle->count; i++)
        if (text_at(hay, at + i) != text_at(needle, i)) return false;
    return true;
}

static bool ends_match(const text *t, const text *part, uint32_t from, uint32_t to, bool end) {
    if (from > to || to - from < part->count) return false;
    if (text_is_wide(part) && !text_is_wide(t)) return false;
    return matches(t, end ? to - part->count : from, part);
}

static ev check_ends(world *w, ev self, const ev *a, bool end) {
    uint32_t from, to;
    const char *name = end ? "endswith" : "startswith", *kind = type_name(w, self);
    if (!bounds_of(w, self, a, &from, &to)) return ev_fail();
    ev what = ev_bare_text(a[0]);
    if (what.kind == self.kind) return ev_bool(ends_match(self.text, what.text, from, to, end));
    if (what.kind != EV_TUPLE)
        return raise_f(w, CLASS_TypeError, "%s first arg must be %s or a tuple of %s, not %s", name,
                       kind, kind, type_name(w, what));
    for (uint32_t i = 0; i < what.tuple->count; i++) {
        ev part = ev_bare_text(what.tuple->items[i]);
        if (part.kind != self.kind && self.kind == EV_STR)
            return raise_f(w, CLASS_TypeError, "tuple for %s must only contain str, not %s", name,
                           type_name_whole(w, part));
        if (part.kind != self.kind)
            return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                           type_name(w, part));
        if (ends_match(self.text, part.text, from, to, end)) return ev_bool(true);
    }
    return ev_bool(false);
}

ev text_method_startswith(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return check_ends(w, self, a, false);
}
ev text_method_endswith(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return check_ends(w, self, a, true);
}

static bool same_kind(world *w, ev self, ev v, const char *of) {
    if (v.kind == self.kind) return true;
    if (self.kind == EV_STR)
        raise_f(w, CLASS_TypeError, "%s must be str, not %s", of,
                v.kind == EV_NONE ? "None" : type_name(w, v));
    else raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'", type_name(w, v));
    return false;
}

ev text_method_removeprefix(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    if (!same_kind(w, self, a[0], "removeprefix() argument")) return ev_fail();
    uint32_t n = self.text->count, part = a[0].text->count;
    return ends_match(self.text, a[0].text, 0, n, false) ? text_part(w, self, part, n - part)
                                                         : self;
}

ev text_method_removesuffix(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    if (!same_kind(w, self, a[0], "removesuffix() argument")) return ev_fail();
    uint32_t n = self.text->count, part = a[0].text->count;
    return ends_match(self.text, a[0].text, 0, n, true) ? text_part(w, self, 0, n - part) : self;
}

/* ---- Replacing --------------------------------------------------------------------------- */

static ev finish(text_builder *b, ev self) {
    return self.kind == EV_STR ? write_str(b) : write_bytes(b);
}

/* "" stands before every code point and at the end. */
static ev replace_nothing(world *w, ev self, const text *by, int64_t limit) {
    text_builder b = write_text(w);
    for (uint32_t i = 0; i <= self.text->count; i++) {
        if (limit-- > 0) write_whole(&b, by);
        if (i < self.text->count) write_part(&b, self.text, i, 1);
    }
    return finish(&b, self);
}

ev text_method_replace(world *w, ev self, const ev *a, const call *c) {
    int64_t limit, at;
    uint32_t from = 0, n = self.text->count;
    (void)c;
    if (!same_kind(w, self, a[0], "replace() argument 1")) return ev_fail();
    if (!same_kind(w, self, a[1], "replace() argument 2")) return ev_fail();
    if (!arg_size(w, a[2], -1, &limit)) return ev_fail();
    if (limit < 0) limit = INT64_MAX;
    const text *old = a[0].text, *by = a[1].text;
    if (limit == 0 || text_find(self.text, old, 0, n) < 0) return self;
    if (!old->count) return replace_nothing(w, self, by, limit);
    text_builder b = write_text(w);
    while (limit-- > 0 && (at = text_find(self.text, old, from, n)) >= 0) {
        write_part(&b, self.text, from, (uint32_t)at - from);
        write_whole(&b, by);
        from = (uint32_t)at + old->count;
    }
    write_part(&b, self.text, from, n - from);
    return finish(&b, self);
}

/* ---- Partition --------------------------------------------------------------------------- */

static ev partition(world *w, ev self, ev separator, bool last) {
    uint32_t n = self.text->count;
    if (separator.kind != self.kind) {
        if (self.kind == EV_STR)
            return raise_f(w, CLASS_TypeError, "must be str, not %s", type_name(w, separator));
        return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                       type_name(w, separator));
    }
    if (!separator.text->count) return raise_f(w, CLASS_ValueError, "empty separator");
    int64_t at = last ? text_find_last(self.text, separator.text, 0, n)
                      : text_find(self.text, separator.text, 0, n);
    ev nothing = self.kind == EV_STR ? w->empty_str : w->empty_bytes;
    ev parts[3] = { last ? nothing : self, nothing, last ? self : nothing };
    if (at >= 0) {
        uint32_t behind = (uint32_t)at + separator.text->count;
        parts[0] = text_part(w, self, 0, (uint32_t)at);
        parts[1] = separator;
        parts[2] = text_part(w, self, behind, n - behind);
        if (ev_failed(parts[0]) || ev_failed(parts[2])) return ev_fail();
    }
    return tuple_of(w, parts, 3);
}

ev text_method_partition(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return partition(w, self, a[0], false);
}
ev text_method_rpartition(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return partition(w, self, a[0], true);
}

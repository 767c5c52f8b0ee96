/* text.c -- see text.h. */
#include "expr/text.h"

/* ---- UTF-8 ------------------------------------------------------------------------------- */

static bool is_tail(uint8_t b) { return (b & 0xC0) == 0x80; }

size_t utf8_next(const uint8_t *at, size_t left, uint32_t *point) {
    uint32_t a = at[0];
    if (a < 0x80) return *point = a, 1;
    if (a < 0xC2 || a > 0xF4) return 0;
    if (left < 2 || !is_tail(at[1])) return 0;
    if (a < 0xE0) return *point = (a & 31) << 6 | (at[1] & 63u), 2;
    if (left < 3 || !is_tail(at[2])) return 0;
    if (a < 0xF0) {
        *point = (a & 15) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
        return *point < 0x800 || (*point >= 0xD800 && *point < 0xE000) ? 0 : 3;
    }
    if (left < 4 || !is_tail(at[3])) return 0;
    *point = (a & 7) << 18 | (at[1] & 63u) << 12 | (at[2] & 63u) << 6 | (at[3] & 63u);
    return *point < 0x10000 || *point > 0x10FFFF ? 0 : 4;
}

size_t utf8_put(uint8_t out[4], uint32_t point) {
    if (point < 0x80) return out[0] = (uint8_t)point, 1;
    if (point < 0x800) {
        out[0] = (uint8_t)(0xC0 | point >> 6);
        out[1] = (uint8_t)(0x80 | (point & 63));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (uint8_t)(0xE0 | point >> 12);
        out[1] = (uint8_t)(0x80 | (point >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (point & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | point >> 18);
    out[1] = (uint8_t)(0x80 | (point >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (point >> 6 & 63));
    out[3] = (uint8_t)(0x80 | (point & 63));
    return 4;
}

/* ---- Making ------------------------------------------------------------------------------ */

static text *text_new(world *w, ev_kind kind, size_t count, bool wide) {
    if (count > WORLD_COUNT_MAX) {
        w->failure = FAILURE_MEMORY;
        return NULL;
    }
    text *t = world_object(w, kind, sizeof *t + count * (wide ? 4 : 1));
    if (!t) return NULL;
    t->count = (uint32_t)count;
    if (wide) t->head.flags |= OBJ_WIDE;
    return t;
}

static ev narrow_of(world *w, ev_kind kind, const void *data, size_t size) {
    if (!size) return kind == EV_STR ? w->empty_str : w->empty_bytes;
    text *t = text_new(w, kind, size, false);
    if (!t) return ev_fail();
    memcpy(t->data, data, size);
    return ev_of(t);
}

ev bytes_of(world *w, const void *data, size_t size) { return narrow_of(w, EV_BYTES, data, size); }

ev text_of_ascii(world *w, const char *ascii) { return narrow_of(w, EV_STR, ascii, strlen(ascii)); }

/* Strings of one code point below 256 are made once: programs index and split texts all day. */
ev text_of_point(world *w, uint32_t point) {
    uint8_t narrow = (uint8_t)point;
    if (point < 256) {
        if (w->latin[point].kind == EV_STR) return w->latin[point];
        ev v = narrow_of(w, EV_STR, &narrow, 1);
        if (ev_failed(v)) return v;
        world_ref(v);
        return w->latin[point] = v;
    }
    text *t = text_new(w, EV_STR, 1, true);
    if (!t) return ev_fail();
    t->data[0] = point;
    return ev_of(t);
}

static bool is_ascii(const char *utf8, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (utf8[i] & 0x80) return false;
    return true;
}

ev text_of_utf8(world *w, const char *utf8, size_t size) {
    if (is_ascii(utf8, size)) return narrow_of(w, EV_STR, utf8, size);
    text_builder b = write_text(w);
    for (size_t i = 0; i < size;) {
        uint32_t point;
        size_t n = utf8_next((const uint8_t *)utf8 + i, size - i, &point);
        write_point(&b, n ? point : 0xFFFD);
        i += n ? n : 1;
    }
    return write_str(&b);
}

ev text_part(world *w, ev v, size_t from, size_t count) {
    const text *t = v.text;
    assert(from <= t->count && count <= t->count - from);
    if (count == t->count) return v;
    if (!text_is_wide(t)) {
        if (count == 1 && v.kind == EV_STR) return text_of_point(w, text_narrow(t)[from]);
        return narrow_of(w, (ev_kind)v.kind, text_narrow(t) + from, count);
    }
    text_builder b = write_text(w);
    write_part(&b, t, from, count);
    return write_str(&b);
}

/* ---- Comparing --------------------------------------------------------------------------- */

bool text_same(const text *a, const text *b) {
    if (a == b) return true;
    if (a->count != b->count || text_is_wide(a) != text_is_wide(b)) return false;
    return memcmp(a->data, b->data, (size_t)a->count * (text_is_wide(a) ? 4 : 1)) == 0;
}

int text_order(const text *a, const text *b) {
    uint32_t n = a->count < b->count ? a->count : b->count;
    if (!text_is_wide(a) && !text_is_wide(b)) {
        int c = memcmp(a->data, b->data, n);
        if (c) return c < 0 ? -1 : 1;
    } else {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t x = text_at(a, i), y = text_at(b, i);
            if (x != y) return x < y ? -1 : 1;
        }
    }
    return (a->count > b->count) - (a->count < b->count);
}

bool text_is(const text *t, const char *ascii) {
    return !text_is_wide(t) && strlen(ascii) == t->count && memcmp(t->data, ascii, t->count) == 0;
}

bool text_is_utf8(const text *t, const char *utf8) {
    size_t left = strlen(utf8);
    uint32_t i = 0;
    for (uint32_t point; left && i < t->count; i++) {
        size_t size = utf8_next((const uint8_t *)utf8, left, &point);
        if (!size || point != text_at(t, i)) return false;
        utf8 += size;
        left -= size;
    }
    return !left && i == t->count;
}

bool text_has_surrogate(const text *t) {
    if (!text_is_wide(t)) return false;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->data[i] >= 0xD800 && t->data[i] < 0xE000) return true;
    return false;
}

const char *text_short(const text *t, char *out, size_t size) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->count && n + 5 <= size; i++)
        n += utf8_put((uint8_t *)out + n, text_at(t, i));
    out[n] = 0;
    return out;
}

/* ---- Building ---------------------------------------------------------------------------- */

text_builder write_text(world *w) {
    text_builder b = { .w = w };
    if (w->spare_text_count) {
        scratch s = w->spare_text[--w->spare_text_count];
        b.data = s.data;
        b.size = s.size;
    }
    return b;
}

/* Room for `more` code points, at the present width. */
static bool write_room(text_builder *b, size_t more) {
    size_t width = b->wide ? 4 : 1;
    if (b->failed) return false;
    if ((b->count + more) * width <= b->size) return true;
    size_t size = b->size ? b->size : 256;
    while (size < (b->count + more) * width) size *= 2;
    if (more > WORLD_COUNT_MAX - b->count || size > b->w->limits.bytes + 1024) {
        b->w->failure = FAILURE_MEMORY;
        b->failed = true;
        return false;
    }
    void *data = env_resize(&b->w->env, b->data, b->size, size);
    if (!data) {
        b->w->status = HD_NOMEM;
        b->failed = true;
        return false;
    }
    b->data = data;
    b->size = size;
    return true;
}

static bool write_widen(text_builder *b) {
    if (b->wide) return true;
    if (!write_room(b, (size_t)b->count * 3 + 4)) return false;
    uint32_t *wide = b->data;
    const uint8_t *narrow = b->data;
    for (uint32_t i = b->count; i-- > 0;) wide[i] = narrow[i];
    b->wide = true;
    return true;
}

void write_point(text_builder *b, uint32_t point) { write_fill(b, point, 1); }

void write_fill(text_builder *b, uint32_t point, size_t count) {
    if (!count || (point > 255 && !write_widen(b)) || !write_room(b, count)) return;
    if (b->wide)
        for (size_t i = 0; i < count; i++) ((uint32_t *)b->data)[b->count + i] = point;
    else memset((uint8_t *)b->data + b->count, (int)point, count);
    b->count += (uint32_t)count;
}

void write_chars(text_builder *b, const char *ascii, size_t size) {
    if (!size || !write_room(b, size)) return;
    if (b->wide)
        for (size_t i = 0; i < size; i++) ((uint32_t *)b->data)[b->count + i] = (uint8_t)ascii[i];
    else memcpy((uint8_t *)b->data + b->count, ascii, size);
    b->count += (uint32_t)size;
}

void write_ascii(text_builder *b, const char *ascii) { write_chars(b, ascii, strlen(ascii)); }

void write_name(text_builder *b, const char *utf8) {
    size_t left = strlen(utf8), size;
    for (uint32_t point; left && (size = utf8_next((const uint8_t *)utf8, left, &point));
         left -= size) {
        write_point(b, point == ':' ? '.' : point);
        utf8 += size;
    }
}

void write_part(text_builder *b, const text *t, size_t from, size_t count) {
    if (!text_is_wide(t)) {
        write_chars(b, (const char *)t->data + from, count);
        return;
    }
    if (!count || !write_widen(b) || !write_room(b, count)) return;
    memcpy((uint32_t *)b->data + b->count, t->data + from, count * 4);
    b->count += (uint32_t)count;
}

void write_whole(text_builder *b, const text *t) { write_part(b, t, 0, t->count); }

void write_drop(text_builder *b) {
    world *w = b->w;
    if (!b->data) return;
    if (w->spare_text_count < WORLD_SPARE_TEXT && b->size <= (1 << 20))
        w->spare_text[w->spare_text_count++] = (scratch){ b->data, b->size };
    else env_free(&w->env, b->data, b->size);
    b->data = NULL;
}

/* A wide buffer whose code points all fit into a byte becomes a narrow text. */
static bool write_needs_width(const text_builder *b) {
    for (uint32_t i = 0; b->wide && i < b->count; i++)
        if (((const uint32_t *)b->data)[i] > 255) return true;
    return false;
}

static ev write_done(text_builder *b, ev_kind kind) {
    ev out = ev_fail();
    bool wide = write_needs_width(b);
    if (b->failed) goto done;
    if (!b->wide && b->count == 1 && kind == EV_STR) {
        out = text_of_point(b->w, *(uint8_t *)b->data);
        goto done;
    }
    if (!b->count || !b->wide) {
        out = narrow_of(b->w, kind, b->data, b->count);
        goto done;
    }
    text *t = text_new(b->w, kind, b->count, wide);
    if (!t) goto done;
    if (wide) memcpy(t->data, b->data, (size_t)b->count * 4);
    else
        for (uint32_t i = 0; i < b->count; i++)
            ((uint8_t *)t->data)[i] = (uint8_t)((uint32_t *)b->data)[i];
    out = ev_of(t);
done:
    write_drop(b);
    return out;
}

ev write_str(text_builder *b) { return write_done(b, EV_STR); }
ev write_bytes(text_builder *b) { return write_done(b, EV_BYTES); }

void write_utf8(text_builder *b, const text *t) {
    for (uint32_t i = 0; i < t->count; i++) {
        uint8_t out[4];
        size_t n = utf8_put(out, text_at(t, i));
        write_chars(b, (const char *)out, n);
    }
}

/* strings_code.c -- encode, decode, translate, hex: see strings.h. */
#include "expr/strings.h"

#include "expr/tuple.h"

#include <stdio.h>

/* ---- Codecs ------------------------------------------------------------------------------ */

typedef enum codec { CODEC_UTF8, CODEC_ASCII, CODEC_LATIN1, CODEC_UNKNOWN } codec;

/* Case, hyphens and underscores do not matter in names of encodings. */
static codec codec_of(const text *name) {
    static const struct {
        const char *name;
        codec codec;
    } names[] = { { "utf8", CODEC_UTF8 },       { "u8", CODEC_UTF8 },
                  { "ascii", CODEC_ASCII },     { "usascii", CODEC_ASCII },
                  { "646", CODEC_ASCII },       { "latin1", CODEC_LATIN1 },
                  { "iso88591", CODEC_LATIN1 }, { "latin", CODEC_LATIN1 },
                  { "l1", CODEC_LATIN1 },       { "88591", CODEC_LATIN1 },
                  { "cp819", CODEC_LATIN1 } };
    char plain[24];
    size_t n = 0;
    for (uint32_t i = 0; i < name->count; i++) {
        uint32_t c = text_at(name, i);
        if (c == '-' || c == '_' || c == ' ') continue;
        if (c > 127 || n + 1 >= sizeof plain) return CODEC_UNKNOWN;
        plain[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    plain[n] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, plain) == 0) return names[i].codec;
    return CODEC_UNKNOWN;
}

static const char *const codec_names[] = { "utf-8", "ascii", "latin-1" };

static bool find_codec(world *w, ev encoding, codec *out) {
    char name[200];
    *out = arg_given(encoding) ? codec_of(encoding.text) : CODEC_UTF8;
    if (*out != CODEC_UNKNOWN) return true;
    raise_f(w, CLASS_Unsupported, "the encoding %s", text_short(encoding.text, name, sizeof name));
    return false;
}

static bool is_handler(ev errors, const char *name) {
    return arg_given(errors) ? text_is(errors.text, name) : strcmp(name, "strict") == 0;
}

static bool unknown_handler(world *w, ev errors) {
    char name[200];
    raise_f(w, CLASS_Unsupported, "the error handler '%s'",
            text_short(errors.text, name, sizeof name));
    return false;
}

/* Raises with CPython's five arguments; the message is that of its str(). */
static bool raise_codec(world *w, uint32_t class_, codec c, ev object, uint32_t from, uint32_t to,
                        const char *reason) {
    ev args[5] = { text_of_ascii(w, codec_names[c]), object, ev_int(from), ev_int(to),
                   text_of_ascii(w, reason) };
    for (int i = 0; i < 5; i++)
        if (ev_failed(args[i])) return false;
    ev all = tuple_of(w, args, 5);
    if (!ev_failed(all)) raise_exc(w, exc_new(w, class_, all));
    return false;
}

/* ---- Encoding ---------------------------------------------------------------------------- */

static bool can_encode(codec c, uint32_t point) {
    if (c == CODEC_UTF8) return point < 0xD800 || point > 0xDFFF;
    return point < (c == CODEC_ASCII ? 128u : 256u);
}

static bool encode_badly(world *w, text_builder *b, ev self, codec c, ev errors, uint32_t from,
                         uint32_t to) {
    static const char *const reasons[] = { "surrogates not allowed", "ordinal not in range(128)",
                                           "ordinal not in range(256)" };
    char out[32];
    if (is_handler(errors, "strict"))
        return raise_codec(w, CLASS_UnicodeEncodeError, c, self, from, to, reasons[c]);
    for (uint32_t i = from; i < to; i++) {
        uint32_t p = text_at(self.text, i);
        if (is_handler(errors, "ignore")) continue;
        if (is_handler(errors, "replace")) write_point(b, '?');
        else if (is_handler(errors, "xmlcharrefreplace"))
            snprintf(out, sizeof out, "&#%u;", p), write_ascii(b, out);
        else if (is_handler(errors, "backslashreplace")) {
            snprintf(out, sizeof out, p < 256 ? "\\x%02x" : p < 65536 ? "\\u%04x" : "\\U%08x", p);
            write_ascii(b, out);
        } else {
            return unknown_handler(w, errors);
        }
    }
    return true;
}

ev text_encode(world *w, ev self, ev encoding, ev errors) {
    codec c;
    if (!find_codec(w, encoding, &c)) return ev_fail();
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < self.text->count;) {
        uint32_t point = text_at(self.text, i), end = i;
        if (can_encode(c, point)) {
            uint8_t bytes[4];
            size_t n = 1;
            bytes[0] = (uint8_t)point;
            if (c == CODEC_UTF8) n = utf8_put(bytes, point);
            write_chars(&b, (const char *)bytes, n);
            i++;
            continue;
        }
        while (end < self.text->count && !can_encode(c, text_at(self.text, end))) end++;
        if (!encode_badly(w, &b, self, c, errors, i, end)) {
            write_drop(&b);
            return ev_fail();
        }
        i = end;
    }
    return write_bytes(&b);
}

/* ---- Decoding ---------------------------------------------------------------------------- */

/* How many bytes of a malformed sequence belong to it, and why it is malformed. */
static uint32_t utf8_bad(const uint8_t *at, size_t left, const char **reason) {
    uint8_t a = at[0];
    uint32_t want = a >= 0xC2 && a <= 0xDF   ? 2
                    : a >= 0xE0 && a <= 0xEF ? 3
                    : a >= 0xF0 && a <= 0xF4 ? 4
                                             : 0;
    *reason = "invalid start byte";
    if (!want) return 1;
    for (uint32_t i = 1; i < want; i++) {
        *reason = "unexpected end of data";
        if (i >= left) return i;
        uint8_t low = i > 1 ? 0x80 : a == 0xE0 ? 0xA0 : a == 0xF0 ? 0x90 : 0x80;
        uint8_t high = i > 1 ? 0xBF : a == 0xED ? 0x9F : a == 0xF4 ? 0x8F : 0xBF;
        *reason = "invalid continuation byte";
        if (at[i] < low || at[i] > high) return i;
    }
    return want;
}

static bool decode_badly(world *w, text_builder *b, ev self, codec c, ev errors, uint32_t from,
                         uint32_t to, const char *reason) {
    char out[8];
    if (is_handler(errors, "strict"))
        return raise_codec(w, CLASS_UnicodeDecodeError, c, self, from, to, reason);
    if (is_handler(errors, "ignore")) return true;
    if (is_handler(errors, "replace")) return write_point(b, 0xFFFD), true;
    if (is_handler(errors, "xmlcharrefreplace"))
        return raise_f(w, CLASS_TypeError,
                       "don't know how to handle UnicodeDecodeError in error callback"),
               false;
    if (!is_handler(errors, "backslashreplace")) return unknown_handler(w, errors);
    for (uint32_t i = from; i < to; i++) {
        snprintf(out, sizeof out, "\\x%02x", text_at(self.text, i));
        write_ascii(b, out);
    }
    return true;
}

ev text_decode(world *w, ev self, ev encoding, ev errors) {
    codec c;
    if (!self.text->count) return w->empty_str; /* whatever the encoding: CPython does not look */
    if (!find_codec(w, encoding, &c)) return ev_fail();
    const uint8_t *data = text_narrow(self.text);
    text_builder b = write_text(w);
    for (uint32_t i = 0, n = self.text->count; i < n;) {
        uint32_t point = data[i];
        const char *reason = "ordinal not in range(128)";
        size_t length =
            c == CODEC_UTF8 ? utf8_next(data + i, n - i, &point) : c == CODEC_LATIN1 || point < 128;
        if (length) {
            write_point(&b, point);
            i += (uint32_t)length;
            continue;
        }
        uint32_t bad = c == CODEC_UTF8 ? utf8_bad(data + i, n - i, &reason) : 1;
        if (!decode_badly(w, &b, self, c, errors, i, i + bad, reason)) {
            write_drop(&b);
            return ev_fail();
        }
        i += bad;
    }
    return write_str(&b);
}

static bool has_null(const text *t) {
    for (uint32_t i = 0; i < t->count; i++)
        if (!text_at(t, i)) return true;
    return false;
}

bool text_codec_arg(world *w, ev v, const char *of, const char *name) {
    if (!arg_given(v)) return true;
    if (v.kind != EV_STR)
        raise_f(w, CLASS_TypeError, "%s() argument '%s' must be str, not %s", of, name,
                v.kind == EV_NONE ? "None" : type_name(w, v));
    else if (has_null(v.text)) raise_f(w, CLASS_ValueError, "embedded null character");
    else return true;
    return false;
}

static bool codec_args(world *w, const ev *a, const char *method) {
    return text_codec_arg(w, a[0], method, "encoding") && text_codec_arg(w, a[1], method, "errors");
}

ev str_method_encode(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return codec_args(w, a, "encode") ? text_encode(w, self, a[0], a[1]) : ev_fail();
}

ev bytes_method_decode(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return codec_args(w, a, "decode") ? text_decode(w, self, a[0], a[1]) : ev_fail();
}

/* ---- Translating ------------------------------------------------------------------------- */

/* What the table has for a code point: EV_UNBOUND for nothing. */
static ev translate_point(world *w, ev table, uint32_t point) {
    ev to = item_get(w, table, ev_int(point));
    if (!ev_failed(to)) return to;
    if (w->pending.kind != EV_EXC || !class_is(w->classes, w->pending.o->class_, CLASS_LookupError))
        return to;
    raise_catch(w);
    return ev_unbound();
}

static bool put_translated(world *w, text_builder *b, uint32_t point, ev to) {
    if (to.kind == EV_UNBOUND) return write_point(b, point), true;
    if (to.kind == EV_NONE) return true;
    if (to.kind == EV_STR) return write_whole(b, to.text), true;
    if (!ev_is_int(to)) {
        raise_about(w, to, "character mapping must return integer, None or str");
        return false;
    }
    if (to.i < 0 || to.i > 0x10FFFF) {
        raise_f(w, CLASS_ValueError, "character mapping must be in range(0x110000)");
        return false;
    }
    write_point(b, (uint32_t)to.i);
    return true;
}

ev str_method_translate(world *w, ev self, const ev *a, const call *c) {
    text_builder b = write_text(w);
    (void)c;
    for (uint32_t i = 0; i < self.text->count; i++) {
        uint32_t point = text_at(self.text, i);
        ev to = translate_point(w, a[0], point);
        if (!ev_failed(to) && put_translated(w, &b, point, to)) continue;
        write_drop(&b);
        return ev_fail();
    }
    return write_str(&b);
}

ev bytes_method_translate(world *w, ev self, const ev *a, const call *c) {
    const text *table = a[0].kind == EV_BYTES ? a[0].text : NULL, *gone = NULL;
    (void)c;
    if (!table && a[0].kind != EV_NONE)
        return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                       type_name(w, a[0]));
    if (table && table->count != 256)
        return raise_f(w, CLASS_ValueError, "translation table must be 256 characters long");
    if (arg_given(a[1])) {
        if (a[1].kind != EV_BYTES)
            return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                           type_name(w, a[1]));
        gone = a[1].text;
    }
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < self.text->count; i++) {
        uint32_t byte = text_at(self.text, i);
        if (gone && memchr(gone->data, (int)byte, gone->count)) continue;
        write_point(&b, table ? text_at(table, byte) : byte);
    }
    return write_bytes(&b);
}

static ev maketrans_dict(world *w, ev from) {
    ev out = dict_new(w, EV_DICT);
    uint32_t at = 0;
    if (from.kind != EV_DICT)
        return raise_about(w, from, "if you give only one argument to maketrans it must be a dict");
    if (ev_failed(out)) return out;
    for (dict_entry *e; (e = dict_next(from.dict, &at));) {
        ev key = e->key;
        if (key.kind == EV_STR) {
            if (key.text->count != 1)
                return raise_f(w, CLASS_ValueError,
                               "string keys in translate table must be of length 1");
            key = ev_int(text_at(key.text, 0));
        } else if (!ev_is_int(key)) {
            return raise_about(w, key, "keys in translate table must be strings or integers");
        }
        if (!dict_set(w, out.dict, key, e->value)) return ev_fail();
    }
    return out;
}

ev str_maketrans(world *w, ev self, const ev *a, const call *c) {
    (void)self, (void)c;
    for (int i = 1; i < 3; i++)
        if (arg_given(a[i]) && a[i].kind != EV_STR)
            return raise_f(w, CLASS_TypeError, "maketrans() argument %d must be str, not %s", i + 1,
                           a[i].kind == EV_NONE ? "None" : type_name(w, a[i]));
    if (!arg_given(a[1])) return maketrans_dict(w, a[0]);
    if (a[0].kind != EV_STR)
        return raise_about(
            w, a[0], "first maketrans argument must be a string if there is a second argument");
    if (a[0].text->count != a[1].text->count)
        return raise_f(w, CLASS_ValueError,
                       "the first two maketrans arguments must have equal length");
    ev out = dict_new(w, EV_DICT);
    if (ev_failed(out)) return out;
    for (uint32_t i = 0; i < a[0].text->count; i++)
        if (!dict_set(w, out.dict, ev_int(text_at(a[0].text, i)), ev_int(text_at(a[1].text, i))))
            return ev_fail();
    for (uint32_t i = 0; arg_given(a[2]) && i < a[2].text->count; i++)
        if (!dict_set(w, out.dict, ev_int(text_at(a[2].text, i)), ev_none())) return ev_fail();
    return out;
}

ev bytes_maketrans(world *w, ev self, const ev *a, const call *c) {
    uint8_t table[256];
    (void)self, (void)c;
    for (int i = 0; i < 2; i++)
        if (a[i].kind != EV_BYTES)
            return raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'",
                           type_name(w, a[i]));
    if (a[0].text->count != a[1].text->count)
        return raise_f(w, CLASS_ValueError, "maketrans arguments must have same length");
    for (int i = 0; i < 256; i++) table[i] = (uint8_t)i;
    for (uint32_t i = 0; i < a[0].text->count; i++)
        table[text_at(a[0].text, i)] = (uint8_t)text_at(a[1].text, i);
    return bytes_of(w, table, 256);
}

/* ---- Hexadecimal ------------------------------------------------------------------------- */

static bool separator_of(world *w, ev v, uint32_t *out) {
    if (!ev_is_text(v)) {
        int64_t n = ev_length(w, v);
        if (n < 0) raise_f(w, CLASS_TypeError, "object of type '%s' has no len()", type_name(w, v));
        else if (n != 1) raise_f(w, CLASS_ValueError, "sep must be length 1.");
        else raise_about(w, v, "sep must be str or bytes.");
        return false;
    }
    if (v.text->count != 1) return raise_f(w, CLASS_ValueError, "sep must be length 1."), false;
    *out = text_at(v.text, 0);
    if (*out > 127) return raise_f(w, CLASS_ValueError, "sep must be ASCII."), false;
    return true;
}

ev bytes_method_hex(world *w, ev self, const ev *a, const call *c) {
    static const char digits[] = "0123456789abcdef";
    uint32_t separator = 0, n = self.text->count;
    int64_t group = 1;
    (void)c;
    if (arg_given(a[1]) && !arg_c_int(w, a[1], &group)) return ev_fail();
    if (arg_given(a[0]) && !separator_of(w, a[0], &separator)) return ev_fail();
    uint64_t size = group < 0 ? -(uint64_t)group : (uint64_t)group;
    bool grouped = arg_given(a[0]) && size;
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < n; i++) {
        bool edge = group < 0 ? i % (size ? size : 1) == 0 : (n - i) % (size ? size : 1) == 0;
        if (grouped && i && edge) write_point(&b, separator);
        write_point(&b, (uint32_t)digits[text_at(self.text, i) >> 4]);
        write_point(&b, (uint32_t)digits[text_at(self.text, i) & 15]);
    }
    return write_str(&b);
}

static int hex_of(uint32_t c) {
    if (c >= '0' && c <= '9') return (int)c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? (int)c - 'a' + 10 : -1;
}

ev bytes_fromhex(world *w, ev self, const ev *a, const call *c) {
    (void)self, (void)c;
    if (a[0].kind != EV_STR)
        return raise_f(w, CLASS_TypeError, "fromhex() argument must be str, not %s",
                       a[0].kind == EV_NONE ? "None" : type_name(w, a[0]));
    const text *t = a[0].text;
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < t->count;) {
        uint32_t p = text_at(t, i);
        if (p == ' ' || (p >= 9 && p <= 13)) {
            i++;
            continue;
        }
        int high = p < 128 ? hex_of(p) : -1;
        int low = i + 1 < t->count && text_at(t, i + 1) < 128 ? hex_of(text_at(t, i + 1)) : -1;
        if (high < 0 || low < 0) {
            write_drop(&b);
            return raise_f(w, CLASS_ValueError,
                           "non-hexadecimal number found in fromhex() arg at position %u",
                           high < 0 ? i : i + 1);
        }
        write_point(&b, (uint32_t)(high << 4 | low));
        i += 2;
    }
    return write_bytes(&b);
}

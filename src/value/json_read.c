/* json_read.c -- strict JSON, without recursion.
 *
 * The text is walked once. Finished values wait on the stack of a build (build.h) until the bracket
 * that closes their container turns them into it; a second stack, of frames, knows the brackets that
 * are open. Nothing else is kept: the path and the line of an error are worked out from the two
 * stacks and the text when there is an error.
 *
 *     [1, {"a": [true        frames   [  {  [
 *                            build    1  "a"  true          --> path /1/a/0
 *
 * A key that begins with one `$` makes its object a *form* of something JSON has no text for: it
 * must be a known one and the only key. Forms do not count as nesting, since the value is a scalar. */
#include "value/json_read.h"

#include "value/build.h"
#include "value/json_form.h"
#include "value/json_scan.h"
#include "value/json_string.h"
#include "value/number.h"
#include "value/pool.h"
#include "value/text.h"

#include <stdio.h>

enum { READER_FRAMES = 32, READER_KEYS = 256, READER_KEY_TEXT = 256 };

typedef struct frame {
    const char *open; /* its bracket */
    size_t base;      /* the build's count when it was opened */
    bool object;
    json_form form; /* JSON_FORM_NONE in an ordinary container */
} frame;

typedef struct reader {
    hd_heap *heap;
    const char *text, *end;
    hd_error *error; /* may be NULL */
    hd_status status;

    build values;
    frame *frames; /* few_frames, or memory for all that the limit allows; [0] is the document */
    frame *top;    /* the innermost frame */
    uint32_t frames_capacity;

    frame few_frames[READER_FRAMES];

    /* Keys of this text that stand in it as they are, by a hash of three of their bytes; and for each
     * the slot of the key that came after it the last time. */
    const struct key *recent[READER_KEYS];
    uint8_t next[READER_KEYS];
    uint8_t last; /* the slot of the last key read */
} reader;

/* ---- Errors ------------------------------------------------------------------------------ */

/* A path in JSON pointer notation as it is written; one that does not fit ends in "...". */
typedef struct path_text {
    char *out;
    size_t size, length;
    bool cut;
} path_text;

static void path_put(path_text *t, char c) {
    if (t->length + 1 < t->size) t->out[t->length++] = c;
    else t->cut = true;
}

static void path_add(path_text *t, const char *segment, size_t length) {
    path_put(t, '/');
    for (size_t i = 0; i < length && !t->cut; i++) {
        char c = segment[i];
        if (c == '~' || c == '/') path_put(t, '~');
        path_put(t, (char)(c == '~' ? '0' : c == '/' ? '1' : c));
    }
}

static void path_finish(path_text *t) {
    t->out[t->length] = 0;
    if (!t->cut) return;
    t->length -= 3;
    while (t->length && ((unsigned char)t->out[t->length] & 0xC0) == 0x80) t->length--;
    memcpy(t->out + t->length, "...", 4);
}

/* Where we are: in each open frame the entry that is being read. */
static void path_add_frames(path_text *t, const reader *r) {
    for (const frame *f = r->frames + 1; f <= r->top; f++) {
        size_t top = f == r->top ? r->values.count : f[1].base;
        if (!f->object) {
            char index[NUMBER_TEXT_MAX];
            path_add(t, index, number_print_int((int64_t)(top - f->base), index));
        } else if ((top - f->base) % 2) { /* a key without its value */
            const struct key *k = (const struct key *)(uintptr_t)r->values.items[top - 1];
            path_add(t, key_bytes(k), k->length);
        }
    }
}

/* The path of where we are and, if `below` is not NULL, one step on. */
static void print_path(const reader *r, const char *below, size_t length, hd_error *e) {
    path_text t = { e->path, sizeof e->path, 0, false };
    path_add_frames(&t, r);
    if (below) path_add(&t, below, length);
    path_finish(&t);
}

static void print_position(const reader *r, const char *at, hd_error *e) {
    const char *line = r->text;
    e->line = 1;
    for (const char *p; (p = memchr(line, '\n', (size_t)(at - line)));) {
        line = p + 1;
        e->line++;
    }
    e->column = (uint32_t)(at - line) + 1;
    e->offset = (size_t)(at - r->text);
}

/* Records the failure; returns NULL for the caller to pass on. */
static const char *fail(reader *r, const char *at, hd_status status, const char *format, ...)
    HD_PRINTF(4, 5);
static const char *fail(reader *r, const char *at, hd_status status, const char *format, ...) {
    r->status = status;
    if (!r->error) return NULL;
    va_list arguments;
    va_start(arguments, format);
    env_error_v(r->error, status, format, arguments);
    va_end(arguments);
    print_position(r, at, r->error);
    print_path(r, NULL, 0, r->error);
    return NULL;
}

static const char *fail_status(reader *r, const char *at, hd_status status) {
    return fail(r, at, status, "%s", hd_status_text(status));
}

/* The same, one step below where we are. */
static const char *fail_below(reader *r, const char *at, const char *segment, size_t length,
                              const char *why) {
    fail(r, at, HD_SYNTAX, "%s", why);
    if (r->error) print_path(r, segment, length, r->error);
    return NULL;
}

/* What stands at p, for "... is expected, not %s". */
static const char *shown(const reader *r, const char *p, char out[16]) {
    if (p == r->end) return "the end of the text";
    unsigned char c = (unsigned char)*p;
    if (c >= 0x20 && c < 0x7F) snprintf(out, 16, "'%c'", c);
    else snprintf(out, 16, "byte 0x%02X", c);
    return out;
}

static const char *fail_expected(reader *r, const char *p, const char *what) {
    char found[16];
    return fail(r, p, HD_SYNTAX, "%s expected, not %s", what, shown(r, p, found));
}

/* ---- White space and literals ------------------------------------------------------------ */

static inline const char *skip_space(const reader *r, const char *p) {
    if (p < r->end && (unsigned char)*p > ' ') return p;
    while (p < r->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

static inline const char *push(reader *r, const char *start, const char *after, hd_value v) {
    if (value_is_failed(v)) return fail_status(r, start, hd_value_status(v));
    if (!build_push(&r->values, v)) return fail_status(r, start, HD_NOMEM);
    return after;
}

static const char *read_literal(reader *r, const char *p, const char *word, size_t length,
                                uint64_t single) {
    if ((size_t)(r->end - p) < length || memcmp(p, word, length) != 0) {
        return fail(r, p, HD_SYNTAX, "a value is expected; is '%s' meant?", word);
    }
    return push(r, p, p + length, value_single(single));
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static const char *fail_malformed_number(reader *r, const char *p, const char *at) {
    const char *digits = p + (*p == '-');
    if (at > digits && at == digits + 1 && *digits == '0') {
        return fail(r, p, HD_SYNTAX, "a number must not begin with a zero that means nothing");
    }
    return fail_expected(r, at, "a digit is");
}

static const char *read_number(reader *r, const char *p) {
    number n;
    switch (number_parse(p, r->end, &n)) {
    case NUMBER_INT:
        if (n.i >= VALUE_INT_MIN && n.i <= VALUE_INT_MAX) {
            return push(r, p, n.end, value_small_int(n.i));
        }
        return push(r, p, n.end, int_make(r->heap, n.i));
    case NUMBER_DOUBLE: return push(r, p, n.end, value_double(n.d));
    case NUMBER_INT_RANGE:
        return fail(r, p, HD_SYNTAX,
                    "this integer needs more than 64 bits; with a decimal point or an exponent it "
                    "is read as a double");
    case NUMBER_DOUBLE_RANGE:
        return fail(r, p, HD_SYNTAX, "this number is beyond the largest double");
    case NUMBER_MALFORMED: break;
    }
    return fail_malformed_number(r, p, n.end);
}

/* ---- Strings and keys -------------------------------------------------------------------- */

static hd_value make_string(reader *r, const char *start, const json_span *span) {
    if (!span->escaped) return text_make(r->heap, TAG_STRING, start, span->length);
    char *out;
    hd_value v = text_new(r->heap, TAG_STRING, span->length, &out);
    if (!value_is_failed(v) && span->length) json_string_decode(start, span->end, out);
    return v;
}

/* p is behind the quote. */
static inline const char *read_string(reader *r, const char *p) {
    const char *plain = json_skip_plain(p, r->end);
    if (plain < r->end && *plain == '"') {
        return push(r, p, plain + 1, text_make(r->heap, TAG_STRING, p, (size_t)(plain - p)));
    }
    json_span span;
    if (!json_string_scan(p, plain, r->end, &span))
        return fail(r, span.end, HD_SYNTAX, "%s", span.why);
    return push(r, p, span.end + 1, make_string(r, p, &span));
}

static const char *fail_form(reader *r, const char *at, const char *why) {
    return fail(r, at, HD_SYNTAX, "%s", why);
}

/* Pushes a key as it is meant. A `$` is taken off one that has two; one that has one decides the
 * object's form. */
static const char *push_dollar_key(reader *r, const char *at, const char *bytes, size_t length) {
    frame *f = r->top;
    bool doubled = length > 1 && bytes[0] == '$' && bytes[1] == '$';
    bool dollar = length > 0 && bytes[0] == '$' && !doubled;
    bool alone = !f->form && (!dollar || r->values.count == f->base);
    const struct key *k = key_intern_held(r->heap, bytes + doubled, length - doubled);
    if (!k || !build_push_key(&r->values, k)) return fail_status(r, at, HD_NOMEM);
    if (dollar) f->form = json_form_named(bytes, length);
    if (dollar && !f->form) {
        return fail_form(r, at,
                         "keys that begin with one $ are reserved; a key of yours that begins with "
                         "$ is written with the $ doubled");
    }
    return alone ? at : fail_form(r, at, "a $ form must be the only key of its object");
}

static const char *push_escaped_key(reader *r, const char *at, const json_span *span) {
    char few[READER_KEY_TEXT];
    char *bytes = span->length <= sizeof few ? few : env_new(&r->heap->env, span->length);
    if (!bytes) return fail_status(r, at, HD_NOMEM);
    json_string_decode(at + 1, span->end, bytes);
    const char *done = push_dollar_key(r, at, bytes, span->length);
    if (bytes != few) env_free(&r->heap->env, bytes, span->length);
    return done;
}

/* Pushes a key that stands in the text as it is, and remembers it and that it came after the last
 * one. */
static const char *push_plain_key(reader *r, const char *at, const char *bytes, size_t length) {
    if (length == 0 || bytes[0] == '$' || r->top->form) {
        return push_dollar_key(r, at, bytes, length);
    }
    unsigned hash = (unsigned)length + (unsigned)(unsigned char)bytes[0] * 7 +
                    (unsigned)(unsigned char)bytes[length / 2] * 31 +
                    (unsigned)(unsigned char)bytes[length - 1] * 127;
    uint8_t slot = (uint8_t)(hash % READER_KEYS);
    const struct key *k = r->recent[slot];
    if (!k || k->length != length || memcmp(key_bytes(k), bytes, length) != 0) {
        k = r->recent[slot] = key_intern_held(r->heap, bytes, length);
    }
    if (!k || !build_push_key(&r->values, k)) return fail_status(r, at, HD_NOMEM);
    r->next[r->last] = slot;
    r->last = slot;
    return at;
}

/* A key that was not guessed: returns its closing quote. */
static const char *read_new_key(reader *r, const char *p) {
    if (p == r->end || *p != '"') return fail_expected(r, p, "a key in quotes is");
    const char *start = p + 1;
    const char *end = json_skip_plain(start, r->end);
    if (end < r->end && *end == '"') {
        return push_plain_key(r, p, start, (size_t)(end - start)) ? end : NULL;
    }
    json_span span;
    if (!json_string_scan(start, end, r->end, &span))
        return fail(r, span.end, HD_SYNTAX, "%s", span.why);
    const char *done =
        span.escaped ? push_escaped_key(r, p, &span) : push_plain_key(r, p, start, span.length);
    return done ? span.end : NULL;
}

/* Whether the key stands at p, in quotes. Both sides have at least eight bytes to look at. */
static inline bool key_stands_at(const struct key *k, const char *p, const char *end) {
    size_t length = k->length;
    if ((size_t)(end - p) < length + 10 || p[0] != '"' || p[length + 1] != '"') return false;
    const char *a = p + 1, *b = key_bytes(k);
    if (length <= 8) return json_first_bytes(json_load8(a) ^ json_load8(b), length) == 0;
    for (size_t i = 0; i + 8 < length; i += 8) {
        if (json_load8(a + i) != json_load8(b + i)) return false;
    }
    return json_load8(a + length - 8) == json_load8(b + length - 8);
}

/* The key, the colon and the space around them. Records repeat: the key that came after the last one
 * before is compared before anything is scanned or looked up. */
static inline const char *read_key(reader *r, const char *p) {
    uint8_t guess = r->next[r->last];
    const struct key *k = r->recent[guess];
    if (k && key_stands_at(k, p, r->end) && !r->top->form) {
        if (!build_push_key(&r->values, k)) return fail_status(r, p, HD_NOMEM);
        r->last = guess;
        p += k->length + 1;
    } else {
        p = read_new_key(r, p);
        if (!p) return NULL;
    }
    p = skip_space(r, p + 1);
    if (p == r->end || *p != ':') return fail_expected(r, p, "':' is");
    return skip_space(r, p + 1);
}

/* ---- Containers -------------------------------------------------------------------------- */

/* All the frames that the limit allows: the document, and beyond it the two of a form. */
static bool grow_frames(reader *r) {
    uint32_t capacity = r->heap->limits.depth + 4;
    frame *more = env_new_array(&r->heap->env, capacity, sizeof *more);
    if (!more) return false;
    memcpy(more, r->frames, r->frames_capacity * sizeof *more);
    r->top = more + (r->top - r->frames);
    r->frames = more;
    r->frames_capacity = capacity;
    return true;
}

/* Whether the `{` at p opens a form, which does not count as nesting. Asked at the limit only. */
static bool opens_form(const reader *r, const char *p) {
    p = skip_space(r, p + 1);
    return r->end - p > 2 && p[0] == '"' && p[1] == '$' && p[2] != '$';
}

static bool is_too_deep(const reader *r, const char *p) {
    uint32_t limit = r->heap->limits.depth;
    uint32_t depth = (uint32_t)(r->top - r->frames);
    if (depth < limit) return false;
    /* Only the innermost two frames can be those of a form. */
    if (r->top->form) return depth > limit + 1;
    return depth > limit || !(*p == '{' && opens_form(r, p));
}

static bool open_frame(reader *r, const char *p) {
    if (is_too_deep(r, p)) {
        fail(r, p, HD_LIMIT, "nested deeper than %u levels", r->heap->limits.depth);
        return false;
    }
    if (r->top + 1 == r->frames + r->frames_capacity && !grow_frames(r)) {
        fail_status(r, p, HD_NOMEM);
        return false;
    }
    *++r->top = (frame){ p, r->values.count, *p == '{', JSON_FORM_NONE };
    return true;
}

/* Finds the nth key of the object that is opened at p; the text up to there is known to be good. */
static const char *find_nth_key(const reader *r, const char *p, size_t n) {
    int depth = 0;
    bool is_key = false;
    for (;; p++) {
        if (*p == '{' || *p == '[') depth++;
        if (*p == '}' || *p == ']') depth--;
        if (depth == 1 && (*p == '{' || *p == ',')) is_key = true;
        if (*p != '"') continue;
        if (depth == 1 && is_key && n-- == 0) return p;
        is_key = false;
        json_span span;
        json_string_scan(p + 1, p + 1, r->end, &span);
        p = span.end;
    }
}

/* The position and the path are those of the second of the two keys. */
static const char *fail_duplicate(reader *r, const char *open, size_t n) {
    const char *at = find_nth_key(r, open, n);
    json_span span;
    json_string_scan(at + 1, at + 1, r->end, &span);
    char decoded[READER_KEY_TEXT];
    const char *name = at + 1;
    if (span.escaped && span.length <= sizeof decoded) {
        json_string_decode(name, span.end, decoded);
        name = decoded;
    }
    size_t doubled = span.length > 1 && name[0] == '$';
    return fail_below(r, at, name + doubled, span.length - doubled,
                      "this key is there twice in its object");
}

static const char *close_object(reader *r, const frame *f) {
    size_t duplicate = 0;
    hd_status status = build_object(&r->values, (r->values.count - f->base) / 2, &duplicate);
    if (status == HD_OK) return f->open;
    if (status == HD_EXISTS) return fail_duplicate(r, f->open, duplicate);
    return fail_status(r, f->open, status);
}

/* Replaces the key and the value of a form by the value that it stands for. */
static const char *close_form(reader *r, const frame *f) {
    hd_value content = { r->values.items[r->values.count - 1] };
    json_form_error why = { 0 };
    hd_value v = json_form_read(r->heap, f->form, content, &why);
    if (value_is_failed(v)) {
        r->top++; /* the frame and its key are part of the path */
        value_unref(content);
        r->values.count--;
        hd_status status = hd_value_status(v);
        if (status != HD_SYNTAX) fail_status(r, f->open, status);
        else if (why.field[0]) fail_below(r, f->open, why.field, strlen(why.field), why.message);
        else fail(r, f->open, HD_SYNTAX, "%s", why.message);
        return NULL;
    }
    value_unref(content);
    r->values.count -= 2;
    return push(r, f->open, f->open, v);
}

/* The bracket at p closes the innermost frame. */
static const char *close_frame(reader *r, const char *p) {
    const frame f = *r->top--;
    const char *done;
    if (f.form) {
        done = close_form(r, &f);
    } else if (f.object) {
        done = close_object(r, &f);
    } else {
        hd_status status = build_array(&r->values, r->values.count - f.base);
        done = status ? fail_status(r, f.open, status) : p;
    }
    return done ? p + 1 : NULL;
}

/* ---- The document ------------------------------------------------------------------------ */

/* One value at p, or the opening of one: then *opened, and p is at its first entry. */
static inline const char *read_item(reader *r, const char *p, bool *opened) {
    if (p == r->end) return fail_expected(r, p, "a value is");
    switch (*p) {
    case '"': return read_string(r, p + 1);
    case '{':
        if (!open_frame(r, p)) return NULL;
        p = skip_space(r, p + 1);
        if (p < r->end && *p == '}') return close_frame(r, p);
        *opened = true;
        return p;
    case '[':
        if (!open_frame(r, p)) return NULL;
        p = skip_space(r, p + 1);
        if (p < r->end && *p == ']') return close_frame(r, p);
        *opened = true;
        return p;
    case 't': return read_literal(r, p, "true", 4, SINGLE_TRUE);
    case 'f': return read_literal(r, p, "false", 5, SINGLE_FALSE);
    case 'n': return read_literal(r, p, "null", 4, SINGLE_NULL);
    default:
        if (*p == '-' || (*p >= '0' && *p <= '9')) return read_number(r, p);
        return fail_expected(r, p, "a value is");
    }
}

/* After a value inside a container: either the comma (then *more, and p is at the next entry) or the
 * closing bracket. */
static inline const char *read_follow(reader *r, const char *p, bool *more) {
    const frame *f = r->top;
    char c = p < r->end ? *p : 0;
    *more = c == ',';
    if (c == ',') return skip_space(r, p + 1);
    if (c == (f->object ? '}' : ']')) return close_frame(r, p);
    return fail_expected(r, p, f->object ? "',' or '}' is" : "',' or ']' is");
}

static bool read_document(reader *r) {
    const char *p = skip_space(r, r->text);
    for (;;) {
        bool more = false;
        if (r->top->object) p = read_key(r, p);
        if (p) p = read_item(r, p, &more);
        while (p && !more && r->top > r->frames) p = read_follow(r, skip_space(r, p), &more);
        if (!p) return false;
        if (!more) break;
    }
    p = skip_space(r, p);
    if (p == r->end) return true;
    char found[16];
    fail(r, p, HD_SYNTAX, "the text goes on after the value, with %s", shown(r, p, found));
    return false;
}

static void reader_init(reader *r, hd_heap *heap, const char *text, size_t length,
                        hd_error *error) {
    r->heap = heap;
    r->text = text;
    r->end = text + length;
    r->error = error;
    r->status = HD_OK;
    r->frames = r->top = r->few_frames;
    r->frames[0] = (frame){ .open = text };
    r->frames_capacity = READER_FRAMES;
    memset(r->recent, 0, sizeof r->recent);
    memset(r->next, 0, sizeof r->next);
    r->last = 0;
    build_init(&r->values, heap);
}

static void reader_fini(reader *r) {
    build_fini(&r->values);
    if (r->frames == r->few_frames) return;
    env_free(&r->heap->env, r->frames, r->frames_capacity * sizeof *r->frames);
}

hd_value json_read(hd_heap *heap, const char *text, size_t length, hd_error *error) {
    reader r;
    reader_init(&r, heap, length ? text : "", length, error);
    hd_value v = value_absent();
    if (length > heap->limits.size) {
        fail(&r, r.text, HD_LIMIT, "the text has %zu bytes; at most %zu are allowed", length,
             heap->limits.size);
    } else if (read_document(&r)) {
        v = build_take(&r.values);
    }
    reader_fini(&r);
    return r.status ? value_failed(r.status) : v;
}

hd_value hd_json_parse(hd_pool *pool, const char *text, size_t length, hd_error *error) {
    hd_value v = json_read(pool->heap, text, length, error);
    bool read = !value_is_failed(v);
    v = pool_take(pool, v);
    if (read && value_is_failed(v)) env_error(error, HD_NOMEM, "%s", hd_status_text(HD_NOMEM));
    return v;
}

/* json_write.c -- values as JSON text.
 *
 * A value is a tree of containers, each of which is a tree of nodes (node.h). One stack of places
 * walks both at once: a place is a node and the slot that comes next; the place of a container's
 * root knows that a bracket is due when it is left. There is no recursion, and nothing is allocated
 * but the output and, for deep values, the stack.
 *
 * Compact text is canonical: keys come in byte order, numbers and strings have one spelling each.
 * Pretty text tries each container on one line first and takes it back where it does not fit. */
#include "value/json_write.h"

#include "value/json_scan.h"
#include "value/link.h"
#include "value/node.h"
#include "value/number.h"
#include "value/pool.h"
#include "value/text.h"

#include <math.h>
#include <sodium.h>

enum {
    WRITER_PLACES = 48,
    WRITER_PIECE = 4096, /* bytes that are handed to a sink at a time, or a little more */
    PRETTY_COLUMNS = 80,
    PRETTY_INDENT = 2,
    BASE64_STEP = 3 * 1024 /* bytes encoded at a time */
};

/* ---- Buffers ----------------------------------------------------------------------------- */

void json_buffer_init(json_buffer *b, const hd_env *env) { *b = (json_buffer){ .env = env }; }

void json_buffer_fini(json_buffer *b) {
    if (!b->borrowed) env_free(b->env, b->bytes, b->capacity);
    *b = (json_buffer){ .env = b->env };
}

bool json_buffer_grow(json_buffer *b, size_t more) {
    assert(b->length <= b->capacity && (!b->bytes == !b->capacity));
    if (more <= b->capacity - b->length) return true;
    size_t need = b->length + more;
    size_t capacity = b->capacity ? b->capacity : 256;
    while (capacity < need) capacity *= 2;
    char *bytes =
        env_resize(b->env, b->borrowed ? NULL : b->bytes, b->borrowed ? 0 : b->capacity, capacity);
    if (!bytes) return false;
    if (b->borrowed) memcpy(bytes, b->bytes, b->length);
    b->bytes = bytes;
    b->capacity = capacity;
    b->borrowed = false;
    return true;
}

/* ---- The writer -------------------------------------------------------------------------- */

typedef struct place {
    const node *node;
    uint32_t slot; /* the next entry */
    bool root;     /* of a container: a bracket is due at the end */
} place;

typedef struct writer {
    json_buffer *buffer;
    hd_text_fn sink; /* NULL: everything stays in the buffer */
    void *ctx;
    hd_status status; /* the first failure */
    bool first;       /* no entry was written since the last opening bracket */
    bool spaced;      /* a space after `,` and `:` */

    /* When the buffer has grown to this, something is due: the sink, or giving up a line. */
    size_t check_at;
    bool on_trial; /* a line that may turn out too wide: nothing goes to the sink */
    size_t
        line_start; /* offset in the buffer at which the line began; wraps below 0 after a flush */

    place *places; /* few_places, or memory of env */
    size_t places_count, places_capacity;
    place few_places[WRITER_PLACES];
} writer;

static bool fail(writer *w, hd_status status) {
    if (!w->status) w->status = status;
    return false;
}

/* Where the next bytes go; NULL without memory. */
static inline char *room(writer *w, size_t size) {
    json_buffer *b = w->buffer;
    if (size > b->capacity - b->length && !json_buffer_grow(b, size)) {
        fail(w, HD_NOMEM);
        return NULL;
    }
    return b->bytes + b->length;
}

static bool put(writer *w, const char *bytes, size_t length) {
    char *out = room(w, length);
    if (!out) return false;
    memcpy(out, bytes, length);
    w->buffer->length += length;
    return true;
}

static inline bool put_char(writer *w, char c) {
    char *out = room(w, 1);
    if (!out) return false;
    *out = c;
    w->buffer->length++;
    return true;
}

/* What stands between entries, or between a key and its value. */
static inline bool put_between(writer *w, char c) {
    char *out = room(w, 2);
    if (!out) return false;
    out[0] = c;
    out[1] = ' ';
    w->buffer->length += w->spaced ? 2 : 1;
    return true;
}

static bool flush(writer *w) {
    json_buffer *b = w->buffer;
    assert(w->sink && !w->on_trial);
    if (b->length && !w->sink(b->bytes, b->length, w->ctx)) return fail(w, HD_ABORTED);
    w->line_start -= b->length;
    b->length = 0;
    return true;
}

/* ---- Scalars ----------------------------------------------------------------------------- */

static bool put_escape(writer *w, char c) {
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn\0fr"; /* from \b (8) on; \v has none */
    char escape[6] = { '\\', 'u', '0', '0', hex[(c >> 4) & 15], hex[c & 15] };
    char letter = c == '"' || c == '\\' ? c : c >= 8 && c <= 13 ? letters[c - 8] : 0;
    if (!letter) return put(w, escape, sizeof escape);
    escape[1] = letter;
    return put(w, escape, 2);
}

static bool put_escaped(writer *w, const char *p, size_t length) {
    const char *end = p + length;
    while (p < end) {
        const char *special = json_skip_printable(p, end);
        if (!put(w, p, (size_t)(special - p))) return false;
        p = special;
        if (p < end && !put_escape(w, *p++)) return false;
    }
    return true;
}

/* In quotes; `prefix` is put in front of the text, inside of them. */
static inline bool put_string(writer *w, const char *prefix, const char *text, size_t length) {
    size_t extra = *prefix ? 1 : 0;
    char *out = room(w, length + 3);
    if (!out) return false;
    out[0] = '"';
    out[1] = *prefix;
    if (json_copy_printable(out + 1 + extra, text, length)) {
        out[length + extra + 1] = '"';
        w->buffer->length += length + extra + 2;
        return true;
    }
    w->buffer->length += 1 + extra;
    return put_escaped(w, text, length) && put_char(w, '"');
}

static inline bool put_key(writer *w, const struct key *k) {
    const char *text = key_bytes(k);
    if (!put_string(w, *text == '$' ? "$" : "", text, k->length)) return false;
    return put_between(w, ':');
}

static bool put_int(writer *w, int64_t i) {
    char *out = room(w, NUMBER_TEXT_MAX);
    if (!out) return false;
    w->buffer->length += number_print_int(i, out);
    return true;
}

static bool put_form(writer *w, const char *compact, const char *spaced) {
    const char *text = w->spaced ? spaced : compact;
    return put(w, text, strlen(text));
}

static bool put_double(writer *w, double d) {
    if (!isfinite(d)) {
        const char *name = isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity";
        return put_form(w, "{\"$double\":", "{\"$double\": ") &&
               put_string(w, "", name, strlen(name)) && put_char(w, '}');
    }
    char *out = room(w, NUMBER_TEXT_MAX);
    if (!out) return false;
    w->buffer->length += number_print_double(d, out);
    return true;
}

static bool put_base64(writer *w, const unsigned char *bytes, size_t size) {
    while (size) {
        size_t step = size < BASE64_STEP ? size : BASE64_STEP;
        size_t length = (step + 2) / 3 * 4;
        char *out = room(w, length + 1); /* libsodium writes a NUL */
        if (!out) return false;
        sodium_bin2base64(out, length + 1, bytes, step, sodium_base64_VARIANT_ORIGINAL);
        w->buffer->length += length;
        bytes += step;
        size -= step;
    }
    return true;
}

static bool put_bytes(writer *w, hd_value v) {
    size_t size;
    const char *bytes = text_of(v, &size);
    return put_form(w, "{\"$bytes\":\"", "{\"$bytes\": \"") &&
           put_base64(w, (const unsigned char *)bytes, size) && put(w, "\"}", 2);
}

static bool put_link_field(writer *w, const char *name, const char *text, bool *first) {
    if (!text) return true;
    if (!*first && !put_between(w, ',')) return false;
    *first = false;
    return put_string(w, "", name, strlen(name)) && put_between(w, ':') &&
           put_string(w, "", text, strlen(text));
}

static bool put_link(writer *w, hd_value v) {
    hd_link link;
    hd_value_link(v, &link);
    const char *scope = link.scope ? link_scope_name(link.scope) : NULL;
    bool first = true;
    return put_form(w, "{\"$link\":{", "{\"$link\": {") && /* in byte order, as all keys */
           put_link_field(w, "id", link.id, &first) &&
           put_link_field(w, "path", link.path, &first) &&
           put_link_field(w, "scope", scope, &first) &&
           put_link_field(w, "space", link.space, &first) && put(w, "}}", 2);
}

static bool put_single(writer *w, hd_value v) {
    if (v.bits == value_single(SINGLE_NULL).bits) return put(w, "null", 4);
    if (v.bits == value_single(SINGLE_FALSE).bits) return put(w, "false", 5);
    if (v.bits == value_single(SINGLE_TRUE).bits) return put(w, "true", 4);
    return fail(w, value_is_failed(v) ? hd_value_status(v) : HD_KIND);
}

/* Everything but a container that has entries. */
static inline bool put_scalar(writer *w, hd_value v) {
    size_t length;
    switch (value_tag(v)) {
    case TAG_STRING: {
        const char *text = text_of(v, &length);
        return put_string(w, "", text, length);
    }
    case TAG_SINGLE: return put_single(w, v);
    case TAG_BYTES: return put_bytes(w, v);
    case TAG_ARRAY: return put(w, "[]", 2);
    case TAG_OBJECT: return put(w, "{}", 2);
    case TAG_LINK: return put_link(w, v);
    case TAG_BIGINT: return put_int(w, int_of(v));
    default:
        if (value_is_small_int(v)) return put_int(w, value_small_int_of(v));
        return put_double(w, value_double_of(v));
    }
}

/* ---- Walking ----------------------------------------------------------------------------- */

static bool grow_places(writer *w) {
    const hd_env *env = w->buffer->env;
    bool few = w->places == w->few_places;
    size_t size = w->places_capacity * sizeof *w->places;
    place *places = env_resize(env, few ? NULL : w->places, few ? 0 : size, 2 * size);
    if (!places) return fail(w, HD_NOMEM);
    if (few) memcpy(places, w->places, size);
    w->places = places;
    w->places_capacity *= 2;
    return true;
}

static inline bool enter_node(writer *w, const node *n, bool root) {
    if (w->places_count == w->places_capacity && !grow_places(w)) return false;
    w->places[w->places_count++] = (place){ n, 0, root };
    return true;
}

static inline bool open_container(writer *w, hd_value v) {
    w->first = true;
    return put_char(w, value_is_object(v) ? '{' : '[') && enter_node(w, value_node(v), true);
}

static inline bool has_entries(hd_value v) { return value_is_container(v) && value_is_block(v); }

/* The buffer has reached check_at. False: stop. */
static bool check(writer *w) { return !w->on_trial && flush(w); }

/* A text that alone is wider than a line is not even tried. */
static bool is_wide(hd_value v) {
    unsigned tag = value_tag(v);
    size_t length = 0;
    if (tag == TAG_STRING || tag == TAG_BYTES) text_of(v, &length);
    return length > PRETTY_COLUMNS;
}

/* The entries of a leaf from the place's slot on, up to a container that is to be entered first. */
static inline bool put_leaf(writer *w, place *at) {
    const node *n = at->node;
    const hd_value *values = leaf_values(n);
    const shape *keys = n->object ? leaf_shape(n) : NULL;
    while (at->slot < n->count) {
        uint32_t slot = at->slot++;
        if (w->buffer->length >= w->check_at && !check(w)) return false;
        if (!w->first && !put_between(w, ',')) return false;
        w->first = false;
        if (keys && !put_key(w, keys->keys[slot])) return false;
        hd_value v = values[slot];
        if (has_entries(v)) return open_container(w, v);
        if (w->on_trial && is_wide(v)) return false;
        if (!put_scalar(w, v)) return false;
    }
    return true;
}

/* v on one line. False: it failed, or was too wide on trial. */
static bool put_flat(writer *w, hd_value v) {
    if (!has_entries(v)) return put_scalar(w, v);
    size_t base = w->places_count;
    if (!open_container(w, v)) return false;
    while (w->places_count > base) {
        place *at = &w->places[w->places_count - 1];
        const node *n = at->node;
        if (at->slot == n->count) {
            w->places_count--;
            w->first = false;
            if (at->root && !put_char(w, n->object ? '}' : ']')) return false;
        } else if (n->level) {
            if (!enter_node(w, inner_children(n)[at->slot++], false)) return false;
        } else if (!put_leaf(w, at)) {
            return false;
        }
    }
    return true;
}

/* ---- Pretty ------------------------------------------------------------------------------ */

/* Tries v on the rest of the line, with room for a comma. False: nothing was written. */
static bool try_flat(writer *w, hd_value v) {
    json_buffer *b = w->buffer;
    size_t mark = b->length, places = w->places_count, check_at = w->check_at;
    size_t used = mark - w->line_start;
    if (used >= PRETTY_COLUMNS) return false;
    size_t limit = mark + PRETTY_COLUMNS - used;
    w->check_at = limit;
    w->on_trial = true;
    bool fits = put_flat(w, v) && b->length < limit;
    w->on_trial = false;
    w->check_at = check_at;
    if (fits) return true;
    b->length = mark;
    w->places_count = places;
    return false;
}

static bool new_line(writer *w, size_t indent) {
    json_buffer *b = w->buffer;
    if (b->length >= w->check_at && !flush(w)) return false;
    char *out = room(w, 1 + indent);
    if (!out) return false;
    *out = '\n';
    memset(out + 1, ' ', indent);
    b->length += 1 + indent;
    w->line_start = b->length - indent;
    return true;
}

/* A value in its place: on this line if it fits, else opened. */
static bool put_broken_value(writer *w, hd_value v, size_t *indent) {
    if (!has_entries(v)) return put_scalar(w, v);
    if (try_flat(w, v)) return true;
    if (w->status) return false;
    *indent += PRETTY_INDENT;
    return open_container(w, v);
}

static bool put_broken_entry(writer *w, place *at, size_t *indent) {
    const node *n = at->node;
    uint32_t slot = at->slot++;
    if (!w->first && !put_char(w, ',')) return false;
    if (!new_line(w, *indent)) return false;
    if (n->object && !put_key(w, leaf_shape(n)->keys[slot])) return false;
    return put_broken_value(w, leaf_values(n)[slot], indent);
}

static bool put_pretty(writer *w, hd_value v) {
    size_t indent = 0;
    w->spaced = true;
    if (!put_broken_value(w, v, &indent)) return false;
    while (w->places_count) {
        place *at = &w->places[w->places_count - 1];
        const node *n = at->node;
        if (at->slot == n->count) {
            w->places_count--;
            w->first = false;
            if (!at->root) continue;
            indent -= PRETTY_INDENT;
            if (!new_line(w, indent) || !put_char(w, n->object ? '}' : ']')) return false;
        } else if (n->level) {
            if (!enter_node(w, inner_children(n)[at->slot++], false)) return false;
        } else {
            size_t depth = w->places_count;
            if (!put_broken_entry(w, at, &indent)) return false;
            if (w->places_count == depth) w->first = false;
        }
    }
    return true;
}

/* ---- Entry points ------------------------------------------------------------------------ */

static void writer_init(writer *w, json_buffer *buffer, hd_text_fn sink, void *ctx) {
    w->buffer = buffer;
    w->sink = sink;
    w->ctx = ctx;
    w->status = HD_OK;
    w->first = true;
    w->spaced = false;
    w->check_at = sink ? WRITER_PIECE : SIZE_MAX;
    w->on_trial = false;
    w->line_start = buffer->length;
    w->places = w->few_places;
    w->places_count = 0;
    w->places_capacity = WRITER_PLACES;
}

static hd_status writer_run(writer *w, hd_value v, hd_json_style style) {
    bool done = style == HD_JSON_PRETTY ? put_pretty(w, v) : put_flat(w, v);
    if (done && w->sink) flush(w);
    if (w->places != w->few_places) {
        env_free(w->buffer->env, w->places, w->places_capacity * sizeof *w->places);
    }
    assert(done || w->status);
    return w->status;
}

hd_status json_print_to(json_buffer *b, hd_value v, hd_json_style style) {
    writer w;
    size_t length = b->length;
    writer_init(&w, b, NULL, NULL);
    hd_status status = writer_run(&w, v, style);
    if (status) b->length = length;
    return status;
}

const char *hd_json_print(hd_pool *pool, hd_value v, hd_json_style style, size_t *length) {
    json_buffer b;
    json_buffer_init(&b, &pool->heap->env);
    if (length) *length = 0;
    const char *text = NULL;
    if (json_print_to(&b, v, style) == HD_OK) {
        hd_value kept = pool_take(pool, text_make(pool->heap, TAG_BYTES, b.bytes, b.length));
        size_t n;
        if (!value_is_failed(kept)) text = text_of(kept, &n);
        if (text && length) *length = b.length;
    }
    json_buffer_fini(&b);
    return text;
}

hd_status hd_json_write(hd_value v, hd_json_style style, hd_text_fn sink, void *ctx) {
    /* An immediate value has no heap to take memory from; its text fits into this buffer. */
    char few[WRITER_PIECE / 4];
    const hd_env *env = value_is_block(v) ? &heap_of(value_block(v))->env : NULL;
    json_buffer b = { .env = env, .bytes = few, .capacity = sizeof few, .borrowed = true };
    writer w;
    writer_init(&w, &b, sink, ctx);
    hd_status status = writer_run(&w, v, style);
    json_buffer_fini(&b);
    return status;
}

/* encode.c -- from a replica's own numbers to names and text. */
#include "store/log/encode.h"

#include "store/memo.h"
#include "value/json_scan.h"
#include "value/text.h"
#include "value/node.h"
#include <stdio.h>

/* ---- Operations as words ----------------------------------------------------------------- */

static const char *const op_words[] = {
    [OP_SET] = "set",       [OP_REMOVE] = "remove", [OP_SPLICE] = "splice",
    [OP_APPEND] = "append", [OP_INCREMENT] = "add", [OP_DELETE] = "delete"
};

static const char *op_word(op_kind kind) { return op_words[kind]; }

bool op_of_word(const char *word, op_kind *out) {
    for (int i = OP_SET; i <= OP_DELETE; i++) {
        if (strcmp(word, op_words[i]) == 0) {
            *out = (op_kind)i;
            return true;
        }
    }
    return false;
}

uint8_t op_touch_flags(op_kind kind, hd_path path) {
    return kind == OP_DELETE || path == HD_PATH_ROOT ? TOUCH_WHOLE : TOUCH_KEYS;
}

uint8_t op_plain_flags(op_kind kind, hd_path path, hd_value value) {
    if (kind != OP_SET && kind != OP_INCREMENT) return op_touch_flags(kind, path);
    if (value_is_leaf(value)) return TOUCH_LEAF;
    return path == HD_PATH_ROOT ? TOUCH_WHOLE : 0;
}

/* ---- Bytes ------------------------------------------------------------------------------- */

static bool put_word(json_buffer *b, const char *text) {
    return json_buffer_add(b, text, strlen(text));
}
/* A text known when compiling. */
#define put_literal(b, text) json_buffer_add(b, text, sizeof("" text) - 1)

static bool put_long_varint(json_buffer *b, uint64_t v) {
    unsigned char bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (unsigned char)(v | 0x80);
    bytes[n++] = (unsigned char)v;
    return json_buffer_add(b, bytes, n);
}

/* Most are small. */
static inline bool put_varint(json_buffer *b, uint64_t v) {
    if (v >= 0x80 || b->length == b->capacity) return put_long_varint(b, v);
    b->bytes[b->length++] = (char)v;
    return true;
}

static bool put_text(json_buffer *b, const char *text, size_t length) {
    return put_varint(b, length) && json_buffer_add(b, text, length);
}

static bool put_key(json_buffer *b, const struct key *k) {
    return k ? put_text(b, key_bytes(k), k->length) : put_varint(b, 0);
}

static bool put_decimal(json_buffer *b, uint64_t v) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    return json_buffer_add(b, digits + at, sizeof digits - at);
}

/* The inside of a JSON string. */
static bool put_escaped(json_buffer *b, const char *text, size_t length) {
    const char *end = text + length;
    while (text < end) {
        const char *stop = json_skip_printable(text, end);
        if (!json_buffer_add(b, text, (size_t)(stop - text))) return false;
        if (stop == end) break;
        char escape[8];
        int n = *stop == '"' || *stop == '\\' ? snprintf(escape, sizeof escape, "\\%c", *stop)
                                              : snprintf(escape, sizeof escape, "\\u%04x", *stop);
        if (!json_buffer_add(b, escape, (size_t)n)) return false;
        text = stop + 1;
    }
    return true;
}

/* A JSON string; `prefix` stands in front of the text, inside the quotes. */
static bool put_string(json_buffer *b, const char *prefix, const char *text, size_t length) {
    return put_literal(b, "\"") && put_word(b, prefix) && put_escaped(b, text, length) &&
           put_literal(b, "\"");
}

static bool put_key_string(json_buffer *b, const struct key *k) {
    return put_string(b, "", key_bytes(k), k->length);
}

/* ---- Numbering --------------------------------------------------------------------------- */

void encoder_init(encoder *e, const hd_env *env, const replica *r) {
    *e = (encoder){ .env = env, .r = r, .longest = SIZE_MAX };
    json_buffer_init(&e->text, env);
}

void encoder_fini(encoder *e) {
    if (!e->env) return;
    if (e->marks) env_free(e->env, e->marks, e->mark_count * sizeof *e->marks);
    if (e->paths) env_free(e->env, e->paths, e->path_room * sizeof *e->paths);
    vec_fini(e->env, &e->numbered);
    vec_fini(e->env, &e->docs);
    vec_fini(e->env, &e->spaces);
    json_buffer_fini(&e->text);
    e->env = NULL;
}

static bool marks_reach(encoder *e, uint32_t count) {
    if (count <= e->mark_count) return true;
    uint32_t grown = e->mark_count ? e->mark_count : 64;
    while (grown < count) grown *= 2;
    struct encoder_mark *marks =
        env_resize(e->env, e->marks, e->mark_count * sizeof *marks, grown * sizeof *marks);
    if (!marks) return false;
    memset(marks + e->mark_count, 0, (grown - e->mark_count) * sizeof *marks);
    e->marks = marks;
    e->mark_count = grown;
    return true;
}

static const doc_home *home_of(const encoder *e, place_id doc) {
    const places *ps = &e->r->places;
    return &ps->homes.items[place_at(ps, doc)->doc.home];
}

static uint32_t space_number(const encoder *e, const struct key *space) {
    uint32_t i = 0;
    while (i < e->spaces.count && e->spaces.items[i] != space) i++;
    return i;
}

/* Gives a document its number. */
static bool number_doc(encoder *e, place_id doc) {
    assert(doc < e->mark_count && place_is_doc(&e->r->places, doc));
    struct encoder_mark *m = &e->marks[doc];
    if (m->epoch == e->epoch) return true;
    struct key *space = home_of(e, doc)->space;
    if (space_number(e, space) == e->spaces.count && !vec_push(e->env, &e->spaces, space))
        return false;
    *m = (struct encoder_mark){ .epoch = e->epoch, .index = e->docs.count };
    return vec_push(e->env, &e->docs, doc);
}

static place_id root_of(const encoder *e, uint32_t key) {
    return place_at(&e->r->places, key & KEY_PLACE)->root;
}

static bool paths_reach(encoder *e, uint32_t count) {
    if (count <= e->path_room) return true;
    uint32_t grown = e->path_room ? e->path_room : 64;
    while (grown < count) grown *= 2;
    struct encoder_path *paths =
        env_resize(e->env, e->paths, e->path_room * sizeof *paths, grown * sizeof *paths);
    if (!paths) return false;
    memset(paths + e->path_room, 0, (grown - e->path_room) * sizeof *paths);
    e->paths = paths;
    e->path_room = grown;
    return true;
}

/* Prints the path behind what `text` holds; false: no memory. */
static bool print_path(encoder *e, hd_path path, uint32_t *length) {
    *length = path == HD_PATH_ROOT ? 0 : path_entry_of(e->r->heap, path)->length;
    if (e->text.capacity - e->text.length < *length + 1u &&
        !json_buffer_grow(&e->text, *length + 1u))
        return false;
    if (*length) hd_path_print(e->r->heap, path, e->text.bytes + e->text.length, *length + 1u);
    return true;
}

/* Gives a path its number and prints it: a group of commits to documents of one form has few. */
static bool number_path(encoder *e, hd_path path) {
    uint32_t length;
    if (path == HD_PATH_ROOT) return true;
    if (!paths_reach(e, path + 1)) return false;
    struct encoder_path *m = &e->paths[path];
    if (m->epoch == e->epoch) return true;
    if (!print_path(e, path, &length) || !vec_push(e->env, &e->numbered, path)) return false;
    assert(e->text.length + length < e->text.capacity && e->text.length <= UINT32_MAX);
    *m = (struct encoder_path){ e->epoch, e->numbered.count, (uint32_t)e->text.length, length };
    e->text.length += length;
    return true;
}

static bool number_paths(encoder *e, const commit *c) {
    const places *ps = &e->r->places;
    bool ok = true;
    for (uint32_t i = 0; i < c->touches.count && ok; i++)
        ok = number_path(e, c->touches.items[i].path);
    for (uint32_t i = 0; i < c->ops.count && ok; i++) ok = number_path(e, c->ops.items[i].path);
    for (uint32_t i = 0; i < c->claims.count && ok; i++)
        ok = number_path(e, place_path(ps, c->claims.items[i].key & KEY_PLACE));
    for (uint32_t i = 0; i < c->preconditions.count && ok; i++)
        if (c->preconditions.items[i].place)
            ok = number_path(e, place_path(ps, c->preconditions.items[i].place));
    return ok;
}

static void begin_numbering(encoder *e) {
    if (++e->epoch == 0) { /* wrapped: old marks would look new */
        if (e->marks) memset(e->marks, 0, e->mark_count * sizeof *e->marks);
        if (e->paths) memset(e->paths, 0, e->path_room * sizeof *e->paths);
        e->epoch = 1;
    }
    assert(e->epoch); /* 0 is the epoch of marks that were never set */
    vec_clear(&e->docs);
    vec_clear(&e->spaces);
    vec_clear(&e->numbered);
    e->text.length = 0;
}

/* Written documents first, so that their spaces come first. */
static bool number_all(encoder *e, const commit *c) {
    if (!marks_reach(e, e->r->places.count)) return false;
    begin_numbering(e);
    bool ok = true;
    for (uint32_t i = 0; i < c->writes.count && ok; i++) ok = number_doc(e, c->writes.items[i].doc);
    e->written = e->spaces.count;
    for (uint32_t i = 0; i < c->claims.count && ok; i++)
        ok = number_doc(e, root_of(e, c->claims.items[i].key));
    for (uint32_t i = 0; i < c->preconditions.count && ok; i++) {
        const precondition *pre = &c->preconditions.items[i];
        if (pre->place) ok = number_doc(e, root_of(e, pre->place));
        if (ok && pre->kind == PRE_ABSENT) e->marks[pre->place].guarded = true;
        if (ok && pre->kind == PRE_FORGET) e->marks[pre->place].forgotten = true;
    }
    assert(!ok || e->written <= e->spaces.count); /* the written spaces come first */
    return ok && number_paths(e, c);
}

static const struct encoder_path *path_mark(const encoder *e, hd_path path) {
    assert(path < e->path_room && e->paths[path].epoch == e->epoch);
    return &e->paths[path];
}

static uint32_t doc_number(const encoder *e, place_id doc) {
    assert(e->marks[doc].epoch == e->epoch);
    assert(e->docs.items[e->marks[doc].index] == doc);
    return e->marks[doc].index;
}

/* ---- The part for admission -------------------------------------------------------------- */

static bool put_names(encoder *e, json_buffer *b) {
    bool ok = put_varint(b, e->spaces.count) && put_varint(b, e->written);
    for (uint32_t i = 0; i < e->spaces.count && ok; i++) ok = put_key(b, e->spaces.items[i]);
    ok = ok && put_varint(b, e->docs.count);
    for (uint32_t i = 0; i < e->docs.count && ok; i++) {
        const doc_home *h = home_of(e, e->docs.items[i]);
        ok = put_varint(b, space_number(e, h->space)) &&
             put_varint(b, (uint64_t)h->scope * 2 + h->meta) && put_key(b, h->instance) &&
             put_key(b, place_at(&e->r->places, e->docs.items[i])->doc.id);
    }
    return ok;
}

static bool put_path_table(encoder *e, json_buffer *b) {
    bool ok = put_varint(b, e->numbered.count);
    for (uint32_t i = 0; i < e->numbered.count && ok; i++) {
        const struct encoder_path *m = path_mark(e, e->numbered.items[i]);
        ok = put_text(b, e->text.bytes + m->at, m->length);
    }
    return ok;
}

static bool put_path(const encoder *e, json_buffer *b, hd_path path) {
    return put_varint(b, path == HD_PATH_ROOT ? 0 : path_mark(e, path)->index);
}

/* The operations of a document stand together. */
static uint32_t first_op(const commit *c, place_id doc, uint32_t from) {
    for (uint32_t i = 0; i < c->ops.count; i++) {
        uint32_t at = (from + i) % c->ops.count;
        bool first = at == 0 || c->ops.items[at - 1].doc != doc;
        if (c->ops.items[at].doc == doc && first) return at;
    }
    return c->ops.count;
}

static uint32_t op_end(const commit *c, uint32_t first) {
    uint32_t end = first;
    assert(first < c->ops.count); /* every write has an operation */
    while (end < c->ops.count && c->ops.items[end].doc == c->ops.items[first].doc) end++;
    return end;
}

/* Whether the exact footprint is just what the operations say: then it need not be written. */
static bool is_plain(const commit *c, const doc_write *f, uint32_t first, uint32_t end) {
    if (f->by_ops) return f->by_ops == FOOTPRINT_PLAIN;
    if (!f->exact || f->touch_count != end - first) return false;
    for (uint32_t i = 0; i < f->touch_count; i++) {
        const touch *t = &c->touches.items[f->first_touch + i];
        const op *o = &c->ops.items[first + i];
        uint8_t flags = t->flags & TOUCH_WHOLE ? TOUCH_WHOLE : t->flags; /* as it would be read */
        if (t->path != o->path || flags != op_plain_flags(o->kind, o->path, o->value)) return false;
    }
    return true;
}

static unsigned write_flags(const encoder *e, const commit *c, const doc_write *f, uint32_t first,
                            uint32_t end) {
    assert(first < end && c->ops.items[first].doc == f->doc && c->ops.items[end - 1].doc == f->doc);
    unsigned flags = f->created ? WRITE_CREATE : 0;
    if (end > first && c->ops.items[end - 1].kind == OP_DELETE) flags |= WRITE_DELETE;
    if (e->marks[f->doc].guarded) flags |= WRITE_GUARDED;
    if (e->marks[f->doc].forgotten && (flags & WRITE_DELETE)) flags |= WRITE_FORGET;
    if (f->exact) flags |= WRITE_EXACT;
    if (end > first && op_starts_anew(c->ops.items[first].kind, c->ops.items[first].path))
        flags |= WRITE_ANEW;
    if (is_plain(c, f, first, end)) flags |= WRITE_PLAIN;
    if (f->by_ops == FOOTPRINT_LOOSE) flags |= WRITE_LOOSE;
    return flags;
}

static bool put_touched(const encoder *e, json_buffer *b, hd_path path, unsigned flags) {
    return put_varint(b, flags) && put_path(e, b, path);
}

static bool put_exact(const encoder *e, json_buffer *b, const commit *c, const doc_write *f) {
    assert(f->first_touch + f->touch_count <= c->touches.count);
    bool ok = put_varint(b, f->touch_count);
    for (uint32_t i = 0; i < f->touch_count && ok; i++) {
        const touch *t = &c->touches.items[f->first_touch + i];
        ok = put_touched(e, b, t->path, t->flags);
    }
    return ok;
}

static bool put_write(encoder *e, json_buffer *b, const commit *c, const doc_write *f,
                      uint32_t first) {
    uint32_t end = op_end(c, first);
    unsigned flags = write_flags(e, c, f, first, end);
    bool ok = put_varint(b, doc_number(e, f->doc)) && put_varint(b, f->basis) &&
              put_varint(b, flags) && put_varint(b, f->under) &&
              ((flags & (WRITE_PLAIN | WRITE_LOOSE)) || put_exact(e, b, c, f)) &&
              put_varint(b, end - first);
    for (uint32_t i = first; i < end && ok; i++) {
        const op *o = &c->ops.items[i];
        unsigned plain = flags & WRITE_PLAIN ? op_plain_flags(o->kind, o->path, o->value) : 0;
        ok = put_touched(e, b, o->path, op_touch_flags(o->kind, o->path) + plain * 32);
    }
    return ok;
}

static bool put_writes(encoder *e, json_buffer *b, const commit *c) {
    bool ok = put_varint(b, c->writes.count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->writes.count && ok; i++) {
        at = first_op(c, c->writes.items[i].doc, at);
        ok = put_write(e, b, c, &c->writes.items[i], at);
        at = op_end(c, at);
    }
    return ok;
}

static bool put_claims(encoder *e, json_buffer *b, const commit *c) {
    const places *ps = &e->r->places;
    bool ok = put_varint(b, c->claims.count);
    for (uint32_t i = 0; i < c->claims.count && ok; i++) {
        const claim *read = &c->claims.items[i];
        assert(read->first <= read->last && read->last < c->local_seq);
        uint32_t doc = doc_number(e, root_of(e, read->key));
        ok = put_varint(b, (uint64_t)doc * 8 + (read->all ? 4 : 0) + (read->strict ? 2 : 0) +
                               ((read->key & KEY_SHAPE) != 0)) &&
             put_varint(b, read->basis) && put_path(e, b, place_path(ps, read->key & KEY_PLACE)) &&
             put_varint(b, read->first) && put_varint(b, read->last - read->first);
    }
    return ok;
}

static bool put_preconditions(encoder *e, json_buffer *b, const commit *c) {
    bool ok = put_varint(b, c->preconditions.count);
    for (uint32_t i = 0; i < c->preconditions.count && ok; i++) {
        const precondition *p = &c->preconditions.items[i];
        assert((p->kind == PRE_ORIGIN) == !p->place);
        ok = put_varint(b, p->kind);
        if (!ok) break;
        if (p->kind == PRE_ORIGIN) ok = put_varint(b, p->origin);
        else
            ok = put_varint(b, doc_number(e, root_of(e, p->place))) &&
                 put_path(e, b, place_path(&e->r->places, p->place)) &&
                 json_buffer_add(b, p->hash, sizeof p->hash);
    }
    return ok;
}

/* ---- The part for the log ---------------------------------------------------------------- */

static bool put_value(json_buffer *b, hd_value v) {
    return json_print_to(b, v, HD_JSON_COMPACT) == HD_OK;
}

/* A path as JSON string; `prefix` stands in front of it. */
static bool put_path_string(const encoder *e, json_buffer *b, const char *prefix, hd_path path) {
    if (path == HD_PATH_ROOT) return put_string(b, prefix, "", 0);
    const struct encoder_path *m = path_mark(e, path);
    return put_string(b, prefix, e->text.bytes + m->at, m->length);
}

static bool put_op_json(const encoder *e, json_buffer *b, const op *o) {
    bool ok = put_literal(b, "[");
    if (o->kind != OP_SET) /* [path, value] is a set: most operations are */
        ok = ok && put_literal(b, "\"") && put_word(b, op_word(o->kind)) &&
             (o->kind == OP_DELETE ? put_literal(b, "\"") : put_literal(b, "\","));
    if (o->kind != OP_DELETE) ok = ok && put_path_string(e, b, "", o->path);
    if (value_exists(o->value)) ok = ok && put_literal(b, ",") && put_value(b, o->value);
    if (o->kind == OP_SPLICE) ok = ok && put_literal(b, ",") && put_decimal(b, o->keep);
    return ok && put_literal(b, "]");
}

/* "/a": the value there, which is and was neither container nor link; "=/a": and all below it; with "+" in front: the
 * key set around it, too; ">/a/3": the array around it, from there on, and its length; "*": the whole. */
static const char *mark_of(uint8_t flags) {
    if (flags & TOUCH_WHOLE) return "*";
    if (flags & TOUCH_REST) return ">";
    if (flags & TOUCH_LEAF) return flags & TOUCH_KEYS ? "+" : "";
    return flags & TOUCH_KEYS ? "+=" : "=";
}

static bool put_footprint_json(encoder *e, json_buffer *b, const commit *c, const doc_write *f) {
    if (f->by_ops == FOOTPRINT_LOOSE) return put_literal(b, ",\"f\":\"+\"");
    bool ok = put_literal(b, ",\"f\":[");
    for (uint32_t i = 0; i < f->touch_count && ok; i++) {
        const touch *t = &c->touches.items[f->first_touch + i];
        assert(!(t->flags & TOUCH_WAY)); /* an exact touch says what there was */
        ok = (i == 0 || put_literal(b, ",")) && put_path_string(e, b, mark_of(t->flags), t->path);
    }
    return ok && put_literal(b, "]");
}

static bool put_number_json(json_buffer *b, const char *key, uint64_t n) {
    return put_word(b, key) && put_decimal(b, n);
}

/* Whether `doc` is the metadata of `before`. */
static bool is_meta_of(const encoder *e, place_id doc, place_id before) {
    const doc_home *h = home_of(e, doc), *other = home_of(e, before);
    return h->meta && !other->meta && h->space == other->space && h->scope == other->scope &&
           h->instance == other->instance &&
           place_at(&e->r->places, doc)->doc.id == place_at(&e->r->places, before)->doc.id;
}

/* What the commit's "a" does not say of the id. */
static bool put_id_json(const encoder *e, json_buffer *b, place_id doc) {
    const struct key *id = place_at(&e->r->places, doc)->doc.id;
    assert(e->shared <= id->length);
    return put_string(b, "", key_bytes(id) + e->shared, id->length - e->shared);
}

/* Metadata that comes right behind its document, `before`, is not named again. */
static bool put_name_json(encoder *e, json_buffer *b, place_id doc, place_id before) {
    const doc_home *h = home_of(e, doc);
    uint32_t space = space_number(e, h->space);
    assert(space < e->written); /* the fragment lists the written ones alone */
    if (before && is_meta_of(e, doc, before)) return put_literal(b, "{\"m\":1");
    bool ok = put_literal(b, "{\"i\":") && put_id_json(e, b, doc);
    if (space) ok = ok && put_number_json(b, ",\"p\":", space);
    if (h->scope == HD_SCOPE_USER || h->scope == HD_SCOPE_SESSION)
        ok = ok && put_word(b, h->scope == HD_SCOPE_USER ? ",\"user\":" : ",\"session\":") &&
             put_key_string(b, h->instance);
    if (h->meta) ok = ok && put_literal(b, ",\"m\":1");
    return ok;
}

/* A cause as "space/id#/path"; whose instance it was in does not matter for looking at it. */
static bool put_cause_json(encoder *e, json_buffer *b, place_id at) {
    const places *ps = &e->r->places;
    const place *root = place_doc(ps, at);
    const struct key *space = ps->homes.items[root->doc.home].space, *id = root->doc.id;
    uint32_t length;
    bool ok = print_path(e, place_path(ps, at), &length) &&
              put_string(b, "", key_bytes(space), space->length);
    if (ok) b->bytes[b->length - 1] = '/'; /* in place of the closing quote */
    ok = ok && put_escaped(b, key_bytes(id), id->length);
    if (length)
        ok = ok && put_literal(b, "#") && put_escaped(b, e->text.bytes + e->text.length, length);
    return ok && put_literal(b, "\"");
}

#define LOGGED_CAUSES 64 /* of a run; the others are counted */

/* What made a run happen, and how many are not named. */
static bool put_causes_json(encoder *e, json_buffer *b, const place_id *causes, uint32_t count) {
    uint32_t named = count < LOGGED_CAUSES ? count : LOGGED_CAUSES;
    if (!count) return true;
    bool ok = put_literal(b, ",\"why\":[");
    for (uint32_t i = 0; i < named && ok; i++)
        ok = (i == 0 || put_literal(b, ",")) && put_cause_json(e, b, causes[i]);
    ok = ok && put_literal(b, "]");
    return ok && (named == count || put_number_json(b, ",\"more\":", count - named));
}

/* In a seal each document has an author of its own. */
static bool put_author_json(encoder *e, json_buffer *b, const commit *c, const doc_write *f) {
    assert(f->first_cause + f->cause_count <= c->causes.count && (c->sealed || !f->cause_count));
    bool ok = !f->by || (put_literal(b, ",\"by\":") && put_key_string(b, f->by));
    const place_id *causes = f->cause_count ? &c->causes.items[f->first_cause] : NULL;
    return ok && put_causes_json(e, b, causes, f->cause_count);
}

static bool put_ops_json(const encoder *e, json_buffer *b, const commit *c, uint32_t first,
                         uint32_t end) {
    bool ok = put_literal(b, "[");
    for (uint32_t i = first; i < end && ok; i++)
        ok = (i == first || put_literal(b, ",")) && put_op_json(e, b, &c->ops.items[i]);
    return ok && put_literal(b, "]");
}

/* Whether there is nothing to say of the write but its document and its operations. */
static bool is_bare(const encoder *e, const doc_write *f, unsigned flags) {
    const doc_home *h = home_of(e, f->doc);
    return f->by_ops == FOOTPRINT_PLAIN &&
           !(flags & (WRITE_CREATE | WRITE_GUARDED | WRITE_FORGET)) && !f->by && !f->cause_count &&
           h->scope == HD_SCOPE_SPACE && !h->meta && h->space == e->spaces.items[0];
}

static bool put_doc_json(encoder *e, json_buffer *b, const commit *c, const doc_write *f,
                         place_id before, uint32_t first) {
    uint32_t end = op_end(c, first);
    unsigned flags = write_flags(e, c, f, first, end);
    if (is_bare(e, f, flags))
        return put_literal(b, "[") && put_id_json(e, b, f->doc) && put_literal(b, ",") &&
               put_ops_json(e, b, c, first, end) && put_literal(b, "]");
    bool ok = put_name_json(e, b, f->doc, before);
    if (flags & WRITE_CREATE) ok = ok && put_literal(b, ",\"new\":1");
    if (flags & WRITE_GUARDED) ok = ok && put_literal(b, ",\"g\":1");
    if (flags & WRITE_FORGET) ok = ok && put_literal(b, ",\"g\":0");
    if (f->basis && !f->by_ops) ok = ok && put_number_json(b, ",\"b\":", f->basis);
    if (f->exact && !(flags & WRITE_PLAIN)) ok = ok && put_footprint_json(e, b, c, f);
    return ok && put_author_json(e, b, c, f) && put_literal(b, ",\"o\":") &&
           put_ops_json(e, b, c, first, end) && put_literal(b, "}");
}

/* How many bytes the ids of all documents begin with; 0 where saying so costs more than it saves. */
static uint32_t count_shared(const encoder *e, const commit *c) {
    enum { COST = 8 }; /* of "a" itself */
    if (!e->shortens) return 0;
    const struct key *first = place_at(&e->r->places, c->writes.items[0].doc)->doc.id;
    const char *bytes = key_bytes(first);
    uint32_t shared = first->length;
    for (uint32_t i = 1; i < c->writes.count && shared; i++) {
        const struct key *id = place_at(&e->r->places, c->writes.items[i].doc)->doc.id;
        if (shared > id->length) shared = id->length;
        if (memcmp(bytes, key_bytes(id), shared) == 0) continue;
        for (uint32_t k = 0; k < shared; k++)
            if (bytes[k] != key_bytes(id)[k]) shared = k;
    }
    while (shared && shared < first->length && (bytes[shared] & 0xC0) == 0x80) shared--;
    return shared * (c->writes.count - 1) > COST ? shared : 0;
}

static bool put_docs_json(encoder *e, json_buffer *b, const commit *c) {
    bool ok = true;
    e->shared = count_shared(e, c);
    if (e->shared)
        ok = put_literal(b, ",\"a\":") &&
             put_string(b, "", key_bytes(place_at(&e->r->places, c->writes.items[0].doc)->doc.id),
                        e->shared);
    ok = ok && put_literal(b, ",\"d\":[");
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->writes.count && ok; i++) {
        at = first_op(c, c->writes.items[i].doc, at);
        place_id before = i ? c->writes.items[i - 1].doc : 0;
        ok = (i == 0 || put_literal(b, ",")) &&
             put_doc_json(e, b, c, &c->writes.items[i], before, at);
        at = op_end(c, at);
    }
    return ok && put_literal(b, "]");
}

static bool put_stamp_json(encoder *e, json_buffer *b, const commit *c) {
    bool ok = true;
    if (c->by) ok = put_literal(b, ",\"by\":") && put_key_string(b, c->by);
    if (c->as) ok = ok && put_literal(b, ",\"as\":") && put_key_string(b, c->as);
    if (c->stamp.from) ok = ok && put_number_json(b, ",\"from\":", c->stamp.from);
    if (c->sealed) return ok; /* each document says it for itself */
    return ok && put_causes_json(e, b, c->causes.items, c->causes.count);
}

static bool put_spaces_json(encoder *e, json_buffer *b) {
    bool ok = put_literal(b, ",\"p\":[");
    for (uint32_t i = 0; i < e->written && ok; i++)
        ok = (i == 0 || put_literal(b, ",")) && put_key_string(b, e->spaces.items[i]);
    return ok && put_literal(b, "]");
}

static bool put_fragment(encoder *e, json_buffer *b, const commit *c) {
    bool ok = put_number_json(b, "\"n\":", c->local_seq);
    if (c->class == HD_COMMIT_EVENT) ok = ok && put_literal(b, ",\"c\":\"event\"");
    if (c->class == HD_COMMIT_DERIVED) ok = ok && put_literal(b, ",\"c\":\"derived\"");
    /* Others only need to hear now and then what we have settled. */
    if (c->local_seq % 32 == 0) ok = ok && put_number_json(b, ",\"z\":", e->r->settled);
    if (e->written) ok = ok && put_spaces_json(e, b) && put_docs_json(e, b, c);
    ok = ok && put_stamp_json(e, b, c);
    if (value_exists(c->extra)) ok = ok && put_literal(b, ",\"x\":") && put_value(b, c->extra);
    return ok && put_literal(b, "}");
}

/* ---- The message ------------------------------------------------------------------------- */

/* True also where the fragment is longer than can be stored: *too_long tells. */
static bool put_message(encoder *e, json_buffer *b, const commit *c, message_refusal refusal,
                        bool *too_long) {
    size_t start = b->length;
    static const char header[MESSAGE_HEADER];
    bool ok = number_all(e, c) && json_buffer_add(b, header, sizeof header) &&
              put_varint(b, c->local_seq) && put_varint(b, e->r->settled) &&
              put_varint(b, c->heard) && put_varint(b, (uint64_t)c->class * 4 + refusal) &&
              put_names(e, b) && put_path_table(e, b) && put_writes(e, b, c) &&
              put_claims(e, b, c) && put_preconditions(e, b, c);
    size_t fragment = b->length;
    if (!ok || (refusal != REFUSAL_TOO_LONG && !put_fragment(e, b, c))) return false;
    *too_long = b->length - fragment > e->longest;
    assert(fragment >= start + MESSAGE_HEADER && b->length >= fragment);
    uint32_t sizes[2] = { (uint32_t)(b->length - start), (uint32_t)(b->length - fragment) };
    memcpy(b->bytes + start, sizes, sizeof sizes);
    return true;
}

hd_status encode_commit(encoder *e, const commit *c, json_buffer *out) {
    assert(c->local_seq && e->r);
    size_t start = out->length;
    bool too_long;
    assert(!memo_fault(c->extra)); /* the scheduler has made it */
    bool ok = put_message(e, out, c, REFUSAL_NONE, &too_long);
    if (ok && too_long) {
        out->length = start;
        env_log(e->env, HD_LOG_ERROR, "commit refused: its operations are longer than %zu MiB",
                e->longest >> 20);
        ok = put_message(e, out, c, REFUSAL_TOO_LONG, &too_long);
    }
    if (ok && out->length - start <= UINT32_MAX) return HD_OK;
    out->length = start;
    return HD_NOMEM;
}

/* reads.c -- reads as they are written down in rows, and how they become places again.
 *
 * A restart parses every read of every row: the space is not looked up again if it is that of the read
 * before. */
#include "scheduler/persistence/persistence.h"

#include "value/key.h"
#include "value/text.h"
#include <string.h>

enum { CELL_SIZE = 2048 };

/* ---- parsing */

static bool take_scope(const char *at, size_t length, hd_scope *out) {
    static const char user[] = "@user", session[] = "@session";
    *out = HD_SCOPE_SPACE;
    if (!length) return true;
    *out = HD_SCOPE_USER;
    if (length == sizeof user - 1 && !memcmp(at, user, length)) return true;
    *out = HD_SCOPE_SESSION;
    return length == sizeof session - 1 && !memcmp(at, session, length);
}

bool reads_split(const char *text, size_t length, read_cell *out) {
    const char *end = text + length;
    out->unclaimed = length && *text == '?';
    text += out->unclaimed;
    out->shape = text < end && *text == '~';
    out->output = text < end && *text == '=';
    if (out->shape || out->output) text++;
    const char *slash = memchr(text, '/', (size_t)(end - text));
    if (!slash) return false;
    const char *at = memchr(text, '@', (size_t)(slash - text));
    const char *hash = memchr(slash, '#', (size_t)(end - slash));
    if (!at) at = slash;
    if (!hash) hash = end;
    out->space = text;
    out->space_length = (size_t)(at - text);
    out->id = slash + 1;
    out->id_length = (size_t)(hash - slash) - 1;
    out->path = hash < end ? hash + 1 : end;
    out->path_length = (size_t)(end - out->path);
    assert(out->path + out->path_length == end && out->id <= hash);
    if (out->path_length && *out->path != '/') return false;
    return out->space_length && out->id_length && take_scope(at, (size_t)(slash - at), &out->scope);
}

bool reads_next(const char **reads, const char **cell, size_t *length) {
    if (!**reads) return false;
    const char *end = strchr(*reads, '\n');
    *cell = *reads;
    *length = end ? (size_t)(end - *reads) : strlen(*reads);
    *reads += *length + (end != NULL);
    return true;
}

static bool is_home(const places *ps, uint32_t home, const read_cell *r, bool meta) {
    if (!home || r->scope != HD_SCOPE_SPACE) return false;
    const doc_home *h = &ps->homes.items[home];
    return h->scope == HD_SCOPE_SPACE && h->meta == meta && h->space->length == r->space_length &&
           !memcmp(key_bytes(h->space), r->space, r->space_length);
}

/* *home may be the right one already. */
static hd_status find_home(scheduler *s, const read_cell *r, bool meta, uint32_t *home) {
    assert(r->space_length);
    struct key *space;
    if (is_home(&s->r->places, *home, r, meta)) return HD_OK;
    hd_status status = key_make(s->r->heap, r->space, r->space_length, &space);
    if (status) return status;
    status = runtime_home(s->rt, space, r->scope, meta, home);
    key_unref(space);
    return status;
}

/* Metadata has a '!' behind the id. */
static hd_status find_doc(scheduler *s, const read_cell *r, uint32_t *home, place_id *out) {
    assert(r->id_length);
    bool meta = r->id[r->id_length - 1] == '!';
    struct key *id;
    if (r->id_length == meta) return HD_CORRUPT;
    hd_status status = find_home(s, r, meta, home);
    if (!status) status = key_make(s->r->heap, r->id, r->id_length - meta, &id);
    if (status) return status;
    status = places_doc(&s->r->places, *home, id, out);
    key_unref(id);
    return status;
}

hd_status reads_parse(scheduler *s, const char *text, size_t length, uint32_t *home, uint32_t *out,
                      bool *output) {
    read_cell r = { 0 };
    place_id at;
    if (!reads_split(text, length, &r)) return HD_CORRUPT;
    hd_status status = find_doc(s, &r, home, &at);
    if (!status && r.path_length) {
        hd_path path;
        status = path_parse(s->r->heap, r.path, r.path_length, &path, NULL);
        if (status) return status;
        status = places_inner(&s->r->places, at, path, &at);
        path_unref(s->r->heap, path);
    }
    if (!status) *out = at | (r.shape ? KEY_SHAPE : 0) | (r.unclaimed ? KEY_NO_CLAIM : 0);
    *output = r.output;
    return status;
}

/* ---- printing */

/* A '!' at the end stands for metadata, and marks in front say how it was read: names that look so cannot
 * be told from them. */
static bool can_be_told(const doc_home *h, const struct key *id) {
    assert(id->length && h->space->length);
    if (!h->meta && key_bytes(id)[id->length - 1] == '!') return false;
    return !strchr("~=?", *key_bytes(h->space));
}

hd_status reads_print(scheduler *s, uint32_t key, bool output) {
    assert(!output || !(key & (KEY_SHAPE | KEY_NO_CLAIM)));
    persistence *p = s->persistence;
    const place *doc = doc_of(s, key & KEY_PLACE);
    size_t length = 0;
    if (!can_be_told(&s->r->places.homes.items[doc->doc.home], doc->doc.id)) return HD_LIMIT;
    if (!vec_room(s->env, &p->text, CELL_SIZE)) return HD_NOMEM;
    char *out = p->text.items + p->text.count;
    if (key & KEY_NO_CLAIM) out[length++] = '?';
    if (output || (key & KEY_SHAPE)) out[length++] = output ? '=' : '~';
    length += hd_cell_print(s->rt, (hd_cell){ key & KEY_PLACE }, out + length, CELL_SIZE - length);
    if (length >= CELL_SIZE || memchr(out, '\n', length)) return HD_LIMIT;
    out[length++] = '\n'; /* where the NUL was */
    p->text.count += (uint32_t)length;
    return HD_OK;
}

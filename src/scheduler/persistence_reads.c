/* persistence_reads.c -- a read as it was written down becomes a place again.
 *
 * A restart does this for every read of every row: what one read has in common with the one before, the
 * space, is not looked up twice. */
#include "scheduler/persistence.h"

#include "value/key.h"
#include <string.h>

static bool scope_named(const char *text, size_t length, hd_scope *out) {
    bool user = length == 4 && !memcmp(text, "user", 4);
    *out = user ? HD_SCOPE_USER : HD_SCOPE_SESSION;
    return user || (length == 7 && !memcmp(text, "session", 7));
}

static bool is_home(const places *ps, uint32_t home, const char *text, size_t length, bool meta) {
    if (!home) return false;
    const doc_home *h = &ps->homes.items[home];
    return h->scope == HD_SCOPE_SPACE && h->meta == meta && h->space->length == length &&
           !memcmp(key_bytes(h->space), text, length);
}

/* "space@scope"; *home may be the right one already. */
static hd_status parse_home(scheduler *s, const char *text, size_t length, bool meta,
                            uint32_t *home) {
    if (is_home(&s->r->places, *home, text, length, meta)) return HD_OK;
    const char *at = memchr(text, '@', length);
    size_t name = at ? (size_t)(at - text) : length;
    hd_scope scope = HD_SCOPE_SPACE;
    struct key *space;
    if (at && !scope_named(at + 1, length - name - 1, &scope)) return HD_CORRUPT;
    hd_status status = key_make(s->r->heap, text, name, &space);
    if (status) return status;
    status = runtime_home(s->rt, space, scope, meta, home);
    key_unref(space);
    return status;
}

static hd_status parse_doc(scheduler *s, const char *text, size_t length, uint32_t *home,
                           place_id *out) {
    bool meta = length && text[length - 1] == '!';
    length -= meta;
    const char *slash = memchr(text, '/', length);
    struct key *id;
    if (!slash || slash == text || slash + 1 == text + length) return HD_CORRUPT;
    hd_status status = parse_home(s, text, (size_t)(slash - text), meta, home);
    if (!status) status = key_make(s->r->heap, slash + 1, length - (size_t)(slash + 1 - text), &id);
    if (status) return status;
    status = places_doc(&s->r->places, *home, id, out);
    key_unref(id);
    return status;
}

/* "~space@scope/id!#/path" */
hd_status reads_parse(scheduler *s, const char *text, size_t length, uint32_t *home,
                      uint32_t *out) {
    bool shape = length && *text == '~';
    text += shape;
    length -= shape;
    const char *hash = memchr(text, '#', length);
    size_t whole = hash ? (size_t)(hash - text) : length;
    place_id at;
    hd_status status = parse_doc(s, text, whole, home, &at);
    if (!status && hash) {
        hd_path path;
        status = path_parse(s->r->heap, hash + 1, length - whole - 1, &path, NULL);
        if (status) return status;
        status = places_inner(&s->r->places, at, path, &at);
        path_unref(s->r->heap, path);
    }
    if (!status) *out = at | (shape ? KEY_SHAPE : 0);
    return status;
}

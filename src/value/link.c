/* link.c -- links: the address of another place, as a value.
 *
 * A part that is left out means "as here" and is stored as nothing at all; an empty path is the
 * same as none. So every link has one representation, and one text. */
#include "value/link.h"

#include "value/path.h"
#include "value/pool.h"

/* Names are shown to people and written into keys of stores: no control characters, never empty. */
static bool is_name(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) return false;
    }
    return length > 0;
}

static hd_status make_name(hd_heap *heap, const char *text, struct key **out) {
    if (!text) return HD_OK;
    size_t length = strlen(text);
    return is_name(text, length) ? key_make(heap, text, length, out) : HD_SYNTAX;
}

static hd_status make_path(hd_heap *heap, const char *text, link_block *l) {
    size_t length = text ? strlen(text) : 0;
    if (length == 0) return HD_OK;
    hd_path path;
    hd_status status = path_parse(heap, text, length, &path, NULL);
    if (status) return status;
    path_unref(heap, l->path);
    l->path = path;
    return key_make(heap, text, length, &l->pointer);
}

static hd_status make_parts(hd_heap *heap, const hd_link *link, link_block *l, const char **field) {
    *field = "scope";
    if (link->scope < HD_SCOPE_HERE || link->scope > HD_SCOPE_SESSION) return HD_SYNTAX;
    *field = "space";
    hd_status status = make_name(heap, link->space, &l->space);
    if (status) return status;
    *field = "id";
    status = make_name(heap, link->id, &l->id);
    if (status) return status;
    *field = "path";
    return make_path(heap, link->path, l);
}

hd_value link_make(hd_heap *heap, const hd_link *link, const char **field) {
    link_block *l = heap_block_new(heap, sizeof *l);
    if (!l) return value_failed(HD_NOMEM);
    *l = (link_block){ .b = { 1 }, .scope = (uint32_t)link->scope, .path = HD_PATH_ROOT };
    path_ref(heap, l->path);
    hd_status status = make_parts(heap, link, l, field);
    if (status == HD_OK) return value_of_block(TAG_LINK, l);
    link_destroy(l);
    return value_failed(status);
}

void link_destroy(link_block *l) {
    key_unref(l->space);
    key_unref(l->id);
    key_unref(l->pointer);
    path_unref(heap_of(l), l->path);
    heap_block_free(l);
}

static bool key_same(const struct key *a, const struct key *b) {
    if (a == b) return true;
    return a && b && key_compare(a, b) == 0;
}

bool link_equal(const link_block *a, const link_block *b) {
    return a->scope == b->scope && key_same(a->space, b->space) && key_same(a->id, b->id) &&
           key_same(a->pointer, b->pointer);
}

const char *link_scope_name(hd_scope scope) {
    static const char *const names[] = { "here", "space", "user", "session" };
    assert(scope >= HD_SCOPE_HERE && scope <= HD_SCOPE_SESSION);
    return names[scope];
}

/* ---- Public ------------------------------------------------------------------------------ */

hd_value hd_link_make(hd_pool *pool, const hd_link *link) {
    const char *field;
    return pool_take(pool, link_make(pool->heap, link, &field));
}

static const char *text_or_null(const struct key *k) { return k ? key_bytes(k) : NULL; }

bool hd_value_link(hd_value v, hd_link *out) {
    *out = (hd_link){ 0 };
    if (value_tag(v) != TAG_LINK) return false;
    const link_block *l = link_of(v);
    *out = (hd_link){ .space = text_or_null(l->space),
                      .scope = (hd_scope)l->scope,
                      .id = text_or_null(l->id),
                      .path = text_or_null(l->pointer) };
    return true;
}

/* cell.c -- names of cells, and the places behind them. */
#include "store/runtime.h"
#include "store/tx.h"

#include "base/env.h"
#include "value/schema.h"
#include "value/key.h"
#include "value/link.h"
#include <stdio.h>
#include <string.h>

place_id runtime_place(const hd_runtime *rt, hd_cell cell, const hd_schema **schema) {
    *schema = NULL;
    if (cell.id < CELL_SCHEMA)
        return cell.id < rt->r.places.count && rt->r.places.at[cell.id].root ? cell.id : 0;
    uint32_t index = cell.id - CELL_SCHEMA;
    if (index >= rt->schema_cells.count) return 0;
    *schema = rt->schema_cells.items[index].schema;
    assert(*schema && place_at(&rt->r.places, rt->schema_cells.items[index].place)->root);
    return rt->schema_cells.items[index].place;
}

/* Whose documents of this scope are ours; NULL: the space's own. */
static struct key *instance_of(const hd_runtime *rt, hd_scope scope) {
    return scope == HD_SCOPE_USER ? rt->principal : scope == HD_SCOPE_SESSION ? rt->session : NULL;
}

hd_status runtime_home(hd_runtime *rt, struct key *space, hd_scope scope, bool meta,
                       uint32_t *out) {
    struct key *instance = instance_of(rt, scope);
    if (scope == HD_SCOPE_HERE) scope = HD_SCOPE_SPACE;
    return places_home(&rt->r.places, space, scope, instance, meta, out);
}

hd_status runtime_meta(hd_runtime *rt, place_id doc, place_id *out) {
    places *ps = &rt->r.places;
    const place *p = place_at(ps, doc);
    assert(place_is_doc(ps, doc));
    doc_home h = ps->homes.items[p->doc.home];
    uint32_t home;
    hd_status status = places_home(ps, h.space, h.scope, h.instance, true, &home);
    return status ? status : places_doc(ps, home, place_at(ps, doc)->doc.id, out);
}

/* ---- names */

/* Which bytes may not stand in a space, and in an id. */
enum { NOT_IN_SPACE = 1, NOT_IN_ID = 2 };
static uint8_t misfit(unsigned char c) {
    if (c < 0x20 || c == 0x7F || c == '#') return NOT_IN_SPACE | NOT_IN_ID;
    return c == '/' || c == '@' ? NOT_IN_SPACE : 0;
}

static bool plain(const char *text, size_t length, uint8_t forbidden) {
    uint8_t found = 0;
    for (size_t i = 0; i < length; i++) found |= misfit((unsigned char)text[i]);
    return length > 0 && !(found & forbidden);
}

/* Handles stay good as long as the runtime: their places are never freed. */
static hd_cell pinned(hd_runtime *rt, place_id id) {
    place *p = place_at(&rt->r.places, id);
    assert(id && p->root && id <= PLACE_MAX);
    if (p->root == id) p->doc.flags |= DOC_PINNED;
    else p->in.flags |= DOC_PINNED;
    return (hd_cell){ id };
}

/* The newest home is most often the one that is asked for again. */
static bool is_newest_home(const hd_runtime *rt, const char *space, size_t length, hd_scope scope) {
    const doc_home *h = &rt->r.places.homes.items[rt->r.places.homes.count - 1];
    return h->space && !h->meta && scope == HD_SCOPE_SPACE && h->scope == scope &&
           h->space->length == length && !memcmp(key_bytes(h->space), space, length);
}

hd_status runtime_space(hd_runtime *rt, const char *space, size_t length, struct key **out) {
    *out = NULL;
    if (!plain(space, length, NOT_IN_SPACE))
        return runtime_fail(rt, HD_SYNTAX,
                            "a space is a word without '/', '@', '#' and control characters");
    hd_status status = key_make(rt->heap, space, length, out);
    if (status == HD_SYNTAX)
        return runtime_fail(rt, status, "space %.*s: %s", (int)length, space,
                            hd_status_text(status));
    return status;
}

static hd_status home_named(hd_runtime *rt, const char *space, size_t length, hd_scope scope,
                            uint32_t *out) {
    if (is_newest_home(rt, space, length, scope)) {
        *out = rt->r.places.homes.count - 1;
        return HD_OK;
    }
    struct key *k;
    hd_status status = runtime_space(rt, space, length, &k);
    if (status) return status;
    status = runtime_home(rt, k, scope, false, out);
    key_unref(k);
    return status;
}

static hd_status doc_in_home(hd_runtime *rt, uint32_t home, const char *id, size_t length,
                             place_id *out) {
    struct key *k;
    assert(home && home < rt->r.places.homes.count);
    hd_status status = key_make(rt->heap, id, length, &k);
    if (status) return status;
    /* A text that was interned just now names no document yet. */
    status = k->refs == 1 ? places_new_doc(&rt->r.places, home, k, out)
                          : places_doc(&rt->r.places, home, k, out);
    key_unref(k);
    return status;
}

static hd_status doc_named(hd_runtime *rt, const char *space, size_t space_length, hd_scope scope,
                           const char *id, size_t id_length, place_id *out) {
    uint32_t home;
    hd_status status = home_named(rt, space, space_length, scope, &home);
    if (status == HD_SYNTAX) return status;
    if (!plain(id, id_length, NOT_IN_ID))
        return runtime_fail(rt, HD_SYNTAX, "an id is a text without '#' and control characters");
    if (!status) status = doc_in_home(rt, home, id, id_length, out);
    if (status)
        runtime_fail(rt, status, "cell %.*s/%.*s: %s", (int)space_length, space, (int)id_length, id,
                     hd_status_text(status));
    return status;
}

static hd_cell cell_named(hd_runtime *rt, const char *space, size_t space_length, hd_scope scope,
                          const char *id, size_t id_length, const char *pointer) {
    place_id doc, at;
    hd_path path;
    if (doc_named(rt, space, space_length, scope, id, id_length, &doc)) return (hd_cell){ 0 };
    if (!pointer || !*pointer) return pinned(rt, doc);
    hd_status status = path_parse(rt->heap, pointer, strlen(pointer), &path, &rt->r.error);
    if (status) return (hd_cell){ 0 };
    status = places_inner(&rt->r.places, doc, path, &at);
    path_unref(rt->heap, path);
    assert(status || place_at(&rt->r.places, at)->root == doc);
    if (status) {
        runtime_fail(rt, status, "path %s: %s", pointer, hd_status_text(status));
        return (hd_cell){ 0 };
    }
    return pinned(rt, at);
}

static bool scope_named(const char *text, size_t length, hd_scope *out) {
    static const struct {
        const char *name;
        hd_scope scope;
    } names[] = { { "space", HD_SCOPE_SPACE },
                  { "user", HD_SCOPE_USER },
                  { "session", HD_SCOPE_SESSION } };
    for (size_t i = 0; i < 3; i++) {
        if (strlen(names[i].name) != length || memcmp(names[i].name, text, length)) continue;
        *out = names[i].scope;
        return true;
    }
    return false;
}

/* A name in its parts, which are in the text. */
typedef struct name_parts {
    const char *space, *id;
    size_t space_length, id_length;
    hd_scope scope;
    const char *pointer; /* NULL: the document */
} name_parts;

static hd_status split(hd_runtime *rt, const char *name, name_parts *out) {
    const char *hash = strchr(name, '#');
    size_t whole = hash ? (size_t)(hash - name) : strlen(name);
    const char *slash = memchr(name, '/', whole);
    if (!slash)
        return runtime_fail(rt, HD_SYNTAX, "\"%.80s\" is no cell: write space/id or space/id#/path",
                            name);
    const char *at = memchr(name, '@', (size_t)(slash - name));
    *out = (name_parts){ .space = name,
                         .id = slash + 1,
                         .space_length = (size_t)((at ? at : slash) - name),
                         .id_length = whole - (size_t)(slash + 1 - name),
                         .scope = HD_SCOPE_SPACE,
                         .pointer = hash ? hash + 1 : NULL };
    if (!at || scope_named(at + 1, (size_t)(slash - at - 1), &out->scope)) return HD_OK;
    return runtime_fail(rt, HD_SYNTAX, "\"%.80s\": a scope is space, user or session", name);
}

hd_cell hd_cell_at(hd_runtime *rt, const char *name) {
    name_parts n;
    if (split(rt, name, &n)) return (hd_cell){ 0 };
    return cell_named(rt, n.space, n.space_length, n.scope, n.id, n.id_length, n.pointer);
}

static place_id find_doc(const hd_runtime *rt, const name_parts *n) {
    const places *ps = &rt->r.places;
    const struct key *space = key_find(rt->heap, n->space, n->space_length);
    const struct key *id = key_find(rt->heap, n->id, n->id_length);
    if (!space || !id) return 0;
    uint32_t home = places_find_home(ps, space, n->scope, instance_of(rt, n->scope), false);
    return home ? places_find_doc(ps, home, id) : 0;
}

hd_status runtime_look_at(hd_runtime *rt, const char *name, place_id *out) {
    name_parts n;
    hd_path path = HD_PATH_ROOT;
    *out = 0;
    hd_status status = split(rt, name, &n);
    if (!status &&
        (!plain(n.space, n.space_length, NOT_IN_SPACE) || !plain(n.id, n.id_length, NOT_IN_ID)))
        status = HD_SYNTAX;
    if (!status && n.pointer && *n.pointer)
        status = path_parse(rt->heap, n.pointer, strlen(n.pointer), &path, &rt->r.error);
    if (status) return status;
    place_id doc = find_doc(rt, &n);
    if (doc) status = places_inner(&rt->r.places, doc, path, out);
    if (*out) place_ref(&rt->r.places, *out);
    if (path != HD_PATH_ROOT) path_unref(rt->heap, path);
    assert(!status || !*out);
    return status;
}

hd_cell hd_cell_of(hd_runtime *rt, const char *space, hd_scope scope, const char *id,
                   const char *path) {
    return cell_named(rt, space, strlen(space), scope, id, strlen(id), path);
}

hd_cell runtime_child(hd_runtime *rt, hd_cell cell, const char *key, size_t length) {
    const hd_schema *schema;
    place_id parent = runtime_place(rt, cell, &schema), child;
    if (!parent) return (hd_cell){ 0 };
    struct key *k;
    hd_status status = key_make(rt->heap, key, length, &k);
    if (!status) {
        status = places_child(&rt->r.places, parent, k, &child);
        key_unref(k);
    }
    if (status) {
        runtime_fail(rt, status, "child \"%.80s\": %s", key, hd_status_text(status));
        return (hd_cell){ 0 };
    }
    return pinned(rt, child);
}

hd_cell hd_cell_child(hd_runtime *rt, hd_cell cell, const char *key) {
    return runtime_child(rt, cell, key, strlen(key));
}

hd_cell hd_cell_of_link(hd_runtime *rt, hd_cell from, hd_value link) {
    const hd_schema *schema;
    place_id here = runtime_place(rt, from, &schema);
    if (!here || value_tag(link) != TAG_LINK) return (hd_cell){ 0 };
    hd_status status;
    hd_tx *tx;
    if (tx_open(rt, HD_COMMIT_NONE, &tx)) return (hd_cell){ 0 };
    place_id target = tx_link_target(tx, here, link, &status);
    tx_close(tx);
    return status ? (hd_cell){ 0 } : pinned(rt, target);
}

hd_cell hd_cell_with_schema(hd_runtime *rt, hd_cell cell, const hd_schema *schema) {
    const hd_schema *before;
    schema_cell sc = { runtime_place(rt, cell, &before), schema };
    if (!sc.place || !schema) return cell;
    for (uint32_t i = 0; i < rt->schema_cells.count; i++) {
        const schema_cell *known = &rt->schema_cells.items[i];
        if (known->place == sc.place && known->schema == schema)
            return (hd_cell){ CELL_SCHEMA + i };
    }
    if (!vec_push(&rt->env, &rt->schema_cells, sc)) return (hd_cell){ 0 };
    schema_ref(schema);
    assert(rt->schema_cells.count <=
           KEY_PLACE - CELL_SCHEMA); /* each was looked for among the others */
    return (hd_cell){ CELL_SCHEMA + rt->schema_cells.count - 1 };
}

static const char *scope_suffix(hd_scope scope) {
    return scope == HD_SCOPE_USER ? "@user" : scope == HD_SCOPE_SESSION ? "@session" : "";
}

size_t hd_cell_print(hd_runtime *rt, hd_cell cell, char *out, size_t size) {
    const hd_schema *schema;
    place_id at = runtime_place(rt, cell, &schema);
    if (!at) {
        if (size) out[0] = 0;
        return 0;
    }
    const places *ps = &rt->r.places;
    const place *doc = place_doc(ps, at);
    const doc_home *h = &ps->homes.items[doc->doc.home];
    int n = snprintf(out, size, "%s%s/%s%s", key_bytes(h->space), scope_suffix(h->scope),
                     key_bytes(doc->doc.id), h->meta ? "!" : "");
    size_t length = n > 0 ? (size_t)n : 0;
    hd_path path = place_path(ps, at);
    if (path == HD_PATH_ROOT) return length;
    if (length + 1 < size) memcpy(out + length, "#", 2);
    length++;
    size_t room = length < size ? size - length : 0;
    return length + hd_path_print(rt->heap, path, room ? out + length : NULL, room);
}

hd_value runtime_cell_text(hd_runtime *rt, hd_pool *pool, hd_cell cell) {
    char near[256], *text = near;
    size_t length = hd_cell_print(rt, cell, near, sizeof near);
    if (length >= sizeof near) {
        text = env_new(&rt->env, length + 1);
        if (!text) return hd_failed(HD_NOMEM);
        hd_cell_print(rt, cell, text, length + 1);
    }
    hd_value v = hd_string_n(pool, text, length);
    if (text != near) env_free(&rt->env, text, length + 1);
    return v;
}

hd_value hd_cell_link(hd_runtime *rt, hd_pool *pool, hd_cell cell) {
    const hd_schema *schema;
    place_id at = runtime_place(rt, cell, &schema);
    if (!at) return value_absent();
    const places *ps = &rt->r.places;
    const place *doc = place_doc(ps, at);
    const doc_home *h = &ps->homes.items[doc->doc.home];
    hd_path path = place_path(ps, at);
    size_t length = hd_path_print(rt->heap, path, NULL, 0);
    char few[256], *pointer = few;
    if (length >= sizeof few) {
        pointer = env_new(&rt->env, length + 1);
        if (!pointer) return value_failed(HD_NOMEM);
    }
    hd_path_print(rt->heap, path, pointer, length + 1);
    hd_link link = { key_bytes(h->space), h->scope, key_bytes(doc->doc.id), pointer };
    hd_value v = hd_link_make(pool, &link);
    if (pointer != few) env_free(&rt->env, pointer, length + 1);
    return v;
}

hd_status hd_cell_set_volatile(hd_runtime *rt, hd_cell document) {
    const hd_schema *schema;
    place_id at = runtime_place(rt, document, &schema);
    if (!at || !place_is_doc(&rt->r.places, at))
        return runtime_fail(rt, HD_USAGE, "only a whole document can be volatile");
    place_id meta;
    hd_status status = replica_load(&rt->r, at); /* it may have a value that was never loaded */
    if (!status) status = runtime_meta(rt, at, &meta);
    if (status) return status;
    place *p = place_at(&rt->r.places, at);
    if (!value_is_absent(p->value) && !(p->doc.flags & DOC_VOLATILE))
        return runtime_fail(rt, HD_USAGE, "a document that has a value cannot become volatile");
    if (replica_top(&rt->r, at) || replica_top(&rt->r, meta))
        return runtime_fail(
            rt, HD_BUSY,
            "a document cannot become volatile before its removal, and what was said "
            "of it, is stored: wait with hd_runtime_sync");
    assert(!p->doc.over && !(p->doc.flags & DOC_UNSEALED)); /* nothing of it is to be stored */
    p->doc.flags |= DOC_VOLATILE | DOC_KNOWN;
    place_at(&rt->r.places, meta)->doc.flags |= DOC_VOLATILE | DOC_KNOWN;
    return HD_OK;
}

/* path.c -- the table of paths.
 *
 *     text  --paths_by_text-->  path  <--paths_by_step--  (parent, key)
 *
 * Entries are found by their step; pinned ones by their whole text as well, which makes the common
 * case, a pointer that was seen before, one hash and one comparison. An entry without references
 * stays where it is until the table is full; then all such entries are swept, from the leaves
 * upwards, and their numbers are used again. */
#include "value/path.h"
#include "base/hash.h"

enum { PATHS_FIRST = 64, SEGMENT_BUFFER = 256 };

_Static_assert(sizeof(path_entry) <= 32, "paths are many: two to a cache line");

/* ---- Entries ---- */

static uint32_t step_hash(hd_path parent, const struct key *segment) {
    return hash_fold(hash_combine(parent, segment->hash));
}

static uint32_t text_hash(const hd_heap *heap, const char *text, size_t length) {
    return hash_fold(hash_bytes(text, length, heap->seed));
}

/* Length of the segment in a pointer text: "~" and "/" take two characters. */
static uint32_t escaped_length(const struct key *segment) {
    const char *bytes = key_bytes(segment);
    uint32_t length = segment->length;
    for (uint32_t i = 0; i < segment->length; i++) length += bytes[i] == '~' || bytes[i] == '/';
    return length;
}

/* Gives an unreferenced entry back, and its ancestors as far as that leaves them unreferenced. */
static void entry_free(hd_heap *heap, hd_path path) {
    while (heap->paths[path].refs == 0) {
        path_entry *e = &heap->paths[path];
        hd_path parent = e->parent;
        table_remove(&heap->paths_by_step, step_hash(parent, e->segment), path);
        key_unref(e->segment);
        *e = (path_entry){ .parent = heap->paths_free };
        heap->paths_free = path;
        heap->paths_live--;
        heap->paths[parent].refs--;
        path = parent;
    }
}

static void paths_sweep(hd_heap *heap) {
    for (hd_path p = 1; p < heap->paths_count; p++)
        if (heap->paths[p].segment && heap->paths[p].refs == 0) entry_free(heap, p);
}

static bool paths_grow(hd_heap *heap) {
    uint32_t capacity = heap->paths_capacity ? heap->paths_capacity * 2 : PATHS_FIRST;
    if (capacity <= heap->paths_capacity) return false;
    path_entry *paths = heap_large_resize(heap, heap->paths, capacity * sizeof *paths);
    if (!paths) return false;
    heap->paths = paths;
    heap->paths_capacity = capacity;
    return true;
}

/* Makes sure that an entry is free: a sweep must win a quarter of the table, or it grows, so that
 * sweeping stays cheap per entry. */
static bool paths_room(hd_heap *heap) {
    if (heap->paths_free || heap->paths_count < heap->paths_capacity) return true;
    paths_sweep(heap);
    bool enough = heap->paths_count - heap->paths_live >= heap->paths_capacity / 4;
    return (enough && heap->paths_free) || paths_grow(heap) || heap->paths_free;
}

static hd_path entry_take(hd_heap *heap) {
    hd_path path = heap->paths_free;
    if (path) heap->paths_free = heap->paths[path].parent;
    else path = heap->paths_count++;
    heap->paths_live++;
    return path;
}

/* The child if it is in the table already (borrowed), else false. */
static bool path_child_find(const hd_heap *heap, hd_path parent, const struct key *segment,
                            hd_path *out) {
    uint32_t hash = step_hash(parent, segment);
    for (table_probe p = table_find(&heap->paths_by_step, hash);
         table_next(&heap->paths_by_step, &p);) {
        const path_entry *e = &heap->paths[p.index];
        if (e->parent != parent || e->segment != segment) continue;
        *out = p.index;
        return true;
    }
    return false;
}

static hd_status child_new(hd_heap *heap, hd_path parent, struct key *segment, hd_path *out) {
    uint64_t length = (uint64_t)heap->paths[parent].length + 1 + escaped_length(segment);
    unsigned depth = heap->paths[parent].depth + 1u;
    if (depth > PATH_DEPTH_MAX || length > heap->limits.size) return HD_LIMIT;
    path_ref(heap, parent); /* for the child; and no sweep may take it now */
    hd_status status =
        paths_room(heap) ? table_reserve(&heap->paths_by_step, heap->paths_live + 1) : HD_NOMEM;
    if (status) {
        path_unref(heap, parent);
        return status;
    }
    hd_path path = entry_take(heap);
    heap->paths[path] = (path_entry){ .segment = key_ref(segment),
                                      .parent = parent,
                                      .refs = 1,
                                      .length = (uint32_t)length,
                                      .depth = (uint16_t)depth };
    status = table_insert(&heap->paths_by_step, step_hash(parent, segment), path);
    assert(status == HD_OK); /* reserved */
    *out = path;
    return status;
}

hd_status path_child(hd_heap *heap, hd_path parent, struct key *segment, hd_path *out) {
    *out = HD_PATH_ROOT;
    if (!path_child_find(heap, parent, segment, out)) return child_new(heap, parent, segment, out);
    path_ref(heap, *out);
    return HD_OK;
}

/* ---- Texts ---- */

static hd_status syntax(hd_error *error, const char *why, size_t offset) {
    env_error(error, HD_SYNTAX, "%s", why);
    if (error) {
        error->line = 1;
        error->column = (uint32_t)offset + 1;
        error->offset = offset;
    }
    return HD_SYNTAX;
}

/* The end of the segment that begins at `at`; *escapes counts the "~". A "~" that is not "~0" or "~1"
 * leaves *bad at its place. */
static size_t segment_end(const char *text, size_t at, size_t length, size_t *escapes,
                          size_t *bad) {
    *escapes = 0;
    for (; at < length && text[at] != '/'; at++) {
        if (text[at] != '~') continue;
        ++*escapes;
        if (at + 1 < length && (text[at + 1] == '0' || text[at + 1] == '1')) continue;
        *bad = at;
        return length;
    }
    return at;
}

static void unescape(const char *text, size_t length, char *out) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '~') *out++ = text[i];
        else *out++ = text[++i] == '0' ? '~' : '/';
    }
}

/* The key of a segment with `escapes` in it. */
static hd_status segment_key(hd_heap *heap, const char *text, size_t length, size_t escapes,
                             struct key **out) {
    if (escapes == 0) return key_make(heap, text, length, out);
    char few[SEGMENT_BUFFER] = { 0 }, *plain = few;
    *out = NULL;
    if (length > sizeof few) plain = heap_large_new(heap, length);
    if (!plain) return HD_NOMEM;
    unescape(text, length, plain);
    hd_status status = key_make(heap, plain, length - escapes, out);
    if (plain != few) heap_large_free(heap, plain);
    return status;
}

/* One step further: *path becomes the child, and its old reference goes. */
static hd_status path_descend(hd_heap *heap, hd_path *path, struct key *segment) {
    hd_path child;
    hd_status status = path_child(heap, *path, segment, &child);
    if (status) return status;
    path_unref(heap, *path);
    *path = child;
    return HD_OK;
}

static hd_status parse_segment(hd_heap *heap, const char *text, size_t *at, size_t length,
                               hd_path *path, hd_error *error) {
    size_t start = *at + 1, escapes, bad = SIZE_MAX;
    size_t end = segment_end(text, start, length, &escapes, &bad);
    if (bad != SIZE_MAX)
        return syntax(error, "\"~\" in a path must be followed by \"0\" or \"1\"", bad);
    struct key *segment = NULL;
    hd_status status = segment_key(heap, text + start, end - start, escapes, &segment);
    if (status == HD_SYNTAX) return syntax(error, "a path must be valid UTF-8", start);
    if (!status) status = path_descend(heap, path, segment);
    key_unref(segment);
    *at = end;
    if (status) env_error(error, status, "%s", hd_status_text(status));
    return status;
}

hd_status path_parse(hd_heap *heap, const char *text, size_t length, hd_path *out,
                     hd_error *error) {
    *out = HD_PATH_ROOT;
    if (length > 0 && text[0] != '/')
        return syntax(error, "a path is empty or begins with \"/\"", 0);
    hd_path path = path_ref(heap, HD_PATH_ROOT);
    for (size_t at = 0; at < length;) {
        hd_status status = parse_segment(heap, text, &at, length, &path, error);
        if (!status) continue;
        path_unref(heap, path);
        return status;
    }
    *out = path;
    return HD_OK;
}

/* ---- Relations ---- */

hd_path path_ancestor(const hd_heap *heap, hd_path path, uint32_t depth) {
    while (path_depth(heap, path) > depth) path = path_parent(heap, path);
    return path;
}

bool path_is_prefix(const hd_heap *heap, hd_path a, hd_path b) {
    return path_ancestor(heap, b, path_depth(heap, a)) == a;
}

/* ---- Printing ---- */

/* Writes the escaped segment so that it ends before `end`; what lies beyond `size` is left out. */
static void print_segment(const struct key *segment, char *out, size_t size, size_t at) {
    const char *bytes = key_bytes(segment);
    if (at < size) out[at] = '/';
    at++;
    for (uint32_t i = 0; i < segment->length; i++) {
        bool escape = bytes[i] == '~' || bytes[i] == '/';
        if (at < size) out[at] = escape ? '~' : bytes[i];
        at++;
        if (!escape) continue;
        if (at < size) out[at] = bytes[i] == '~' ? '0' : '1';
        at++;
    }
}

size_t hd_path_print(const hd_heap *heap, hd_path path, char *out, size_t size) {
    size_t length = path_entry_of(heap, path)->length;
    for (hd_path p = path; p != HD_PATH_ROOT; p = path_parent(heap, p))
        print_segment(path_key(heap, p), out, size,
                      path_entry_of(heap, path_parent(heap, p))->length);
    if (size > 0) out[length < size ? length : size - 1] = 0;
    return length;
}

/* ---- Pinning ---- */

static char *text_keep(hd_heap *heap, size_t size) {
    return size <= HEAP_BLOCK_MAX ? heap_alloc(heap, size) : heap_large_new(heap, size);
}

/* The path stays for the life of the heap, and can be found by its text. */
static hd_status path_pin(hd_heap *heap, hd_path path) {
    if (heap->paths[path].pinned) return HD_OK;
    size_t length = heap->paths[path].length;
    if (table_reserve(&heap->paths_by_text, table_count(&heap->paths_by_text) + 1)) return HD_NOMEM;
    char *text = text_keep(heap, length + 1);
    if (!text) return HD_NOMEM;
    hd_path_print(heap, path, text, length + 1);
    heap->paths[path].text = text;
    heap->paths[path].pinned = true;
    path_ref(heap, path);
    return table_insert(&heap->paths_by_text, text_hash(heap, text, length), path);
}

/* Gives up the caller's reference, whatever the result. */
static hd_status pin_and_drop(hd_heap *heap, hd_path path, hd_path *out) {
    hd_status status = path_pin(heap, path);
    path_unref(heap, path);
    *out = status ? HD_PATH_ROOT : path;
    return status;
}

static bool find_text(const hd_heap *heap, const char *text, size_t length, hd_path *out) {
    table_probe p = table_find(&heap->paths_by_text, text_hash(heap, text, length));
    while (table_next(&heap->paths_by_text, &p)) {
        const path_entry *e = &heap->paths[p.index];
        if (e->length != length || memcmp(e->text, text, length) != 0) continue;
        *out = p.index;
        return true;
    }
    return false;
}

hd_status hd_path_intern(hd_heap *heap, const char *pointer, hd_path *out, hd_error *error) {
    size_t length = strlen(pointer);
    if (find_text(heap, pointer, length, out)) return HD_OK;
    hd_path path;
    hd_status status = path_parse(heap, pointer, length, &path, error);
    if (status) {
        *out = HD_PATH_ROOT;
        return status;
    }
    status = pin_and_drop(heap, path, out);
    if (status) env_error(error, status, "%s", hd_status_text(status));
    return status;
}

hd_status hd_path_join(hd_heap *heap, hd_path parent, const char *key, size_t length,
                       hd_path *out) {
    struct key *segment;
    hd_path path;
    *out = HD_PATH_ROOT;
    hd_status status = key_make(heap, key, length, &segment);
    if (status) return status;
    status = path_child(heap, parent, segment, &path);
    key_unref(segment);
    return status ? status : pin_and_drop(heap, path, out);
}

hd_path hd_path_parent(const hd_heap *heap, hd_path path) { return path_parent(heap, path); }
uint32_t hd_path_depth(const hd_heap *heap, hd_path path) { return path_depth(heap, path); }

/* ---- Opening, closing, checking ---- */

hd_status paths_init(hd_heap *heap) {
    table_init(&heap->paths_by_step, &heap->env);
    table_init(&heap->paths_by_text, &heap->env);
    if (!paths_grow(heap)) return HD_NOMEM;
    heap->paths[HD_PATH_ROOT] = (path_entry){ .refs = 1 };
    heap->paths_count = heap->paths_live = 1;
    return path_pin(heap, HD_PATH_ROOT);
}

/* The texts go with the pages. */
void paths_fini(hd_heap *heap) {
    table_fini(&heap->paths_by_step);
    table_fini(&heap->paths_by_text);
    heap_large_free(heap, heap->paths);
    heap->paths = NULL;
    heap->paths_count = heap->paths_capacity = 0;
}

#ifndef NDEBUG
static void entry_check(const hd_heap *heap, hd_path path) {
    const path_entry *e = &heap->paths[path], *parent = &heap->paths[e->parent];
    hd_path found;
    assert(parent->refs > 0 && parent->depth + 1 == e->depth);
    assert(path_child_find(heap, e->parent, e->segment, &found) && found == path);
    assert(e->segment->refs > 0);
    assert(e->length == parent->length + 1 + escaped_length(e->segment));
    assert(!e->pinned || (find_text(heap, e->text, e->length, &found) && found == path));
}

void paths_check(const hd_heap *heap) {
    uint32_t live = 1;
    for (hd_path p = 1; p < heap->paths_count; p++) {
        if (!heap->paths[p].segment) continue;
        entry_check(heap, p);
        live++;
    }
    assert(live == heap->paths_live && heap->paths[HD_PATH_ROOT].depth == 0);
}
#else
void paths_check(const hd_heap *heap) { (void)heap; }
#endif

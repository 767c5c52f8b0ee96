/* rows.c -- what stands in a row. */
#define _GNU_SOURCE /* memmem */
#include "store/log/rows.h"

#include "base/env.h"
#include "base/hash.h"
#include "store/log/encode.h"
#include "value/array.h"
#include "value/json_read.h"
#include "value/object.h"
#include "value/pool.h"

/* A commit's parts nest this much around the values in it. */
enum { LOG_NESTING = 8 };
/* Rows of this format say which footprints hold. */
enum { LOG_FOOTPRINTS = 3 };

enum { HASH_SEED = 0x68656464 };

uint64_t log_hash(const void *bytes, size_t size) { return hash_bytes(bytes, size, HASH_SEED); }

static void widen(hd_heap *heap) {
    heap->limits.depth = HEAP_DEPTH_MAX + LOG_NESTING; /* other programs may have wider limits */
    heap->limits.size = SIZE_MAX / 4;
}

hd_value log_json_read(hd_heap *heap, const char *text, size_t length) {
    hd_limits limits = heap->limits;
    widen(heap);
    hd_value v = json_read(heap, text, length, NULL);
    assert(heap->limits.depth == HEAP_DEPTH_MAX + LOG_NESTING); /* nothing else reads meanwhile */
    heap->limits = limits;
    return v;
}

/* Why a text could not be read. */
static hd_status bad_or_nomem(hd_value v) {
    assert(value_is_failed(v));
    return hd_value_status(v) == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
}

hd_status log_json_of(hd_heap *heap, row_text text, hd_value *out) {
    *out = text.length ? log_json_read(heap, text.bytes, text.length) : value_failed(HD_CORRUPT);
    if (!value_is_failed(*out)) return HD_OK;
    hd_status status = bad_or_nomem(*out);
    *out = value_absent();
    return status;
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* Where the commits' text begins: the keys in front are written by us, in this order. */
static const char *commits_text(const char *text, const char *end) {
    static const char mark[] = "\"commits\":[";
    for (; end - text > (ptrdiff_t)sizeof mark; text++)
        if (*text == '"' && memcmp(text, mark, sizeof mark - 1) == 0) return text + sizeof mark - 1;
    return NULL;
}

/* The fragment of a commit begins with its local seq; in front of it stand lists of numbers only. */
static const char *fragment_text(const char *text, const char *end) {
    for (; end - text > 4; text++)
        if (memcmp(text, "\"n\":", 4) == 0) return text;
    return NULL;
}

static hd_status hash_fragments(hd_heap *heap, const char *text, size_t length, log_row *row) {
    hd_value sizes = object_get_bytes(row->body, "sizes", 5);
    size_t n = log_row_commits(row);
    const char *end = text + length, *at = commits_text(text, end);
    if (!at || hd_value_count(sizes) != n) return HD_CORRUPT;
    if (!vec_room(&heap->env, &row->payloads, n)) return HD_NOMEM;
    for (size_t i = 0; i < n; i++) {
        int64_t size = hd_value_as_int(array_get(sizes, i), -1);
        if (size < 0 || size > end - at) return HD_CORRUPT;
        const char *fragment = fragment_text(at, at + size);
        if (!fragment) return HD_CORRUPT;
        row->payloads.items[row->payloads.count++] =
            log_hash(fragment, (size_t)(at + size - fragment));
        at += size + 1; /* and the comma */
    }
    assert(row->payloads.count == n);
    return HD_OK;
}

/* ---- Ids that are shortened */

/* The whole id, of what stands behind `shared`. */
static hd_value join_id(hd_pool *pool, json_buffer *shared, hd_value rest) {
    size_t length, before = shared->length;
    const char *text = hd_value_text(rest, &length);
    if (!text) return rest; /* no id: log_commit_doc refuses the entry */
    bool ok = json_buffer_add(shared, text, length);
    hd_value id = ok ? hd_string_n(pool, shared->bytes, shared->length) : value_failed(HD_NOMEM);
    shared->length = before;
    return id;
}

static hd_value join_entry(hd_pool *pool, json_buffer *shared, hd_value entry) {
    if (hd_value_kind(entry) == HD_KIND_ARRAY && array_count(entry) == 2) {
        hd_value pair[] = { join_id(pool, shared, array_get(entry, 0)), array_get(entry, 1) };
        return hd_array_of(pool, pair, 2);
    }
    hd_value id = object_get_bytes(entry, "i", 1);
    return value_exists(id) ? hd_object_set(pool, entry, "i", join_id(pool, shared, id)) : entry;
}

static hd_value join_entries(hd_pool *pool, json_buffer *shared, hd_value made) {
    hd_value docs = object_get_bytes(made, "d", 1);
    size_t count = hd_value_count(docs);
    const hd_env *env = &pool->heap->env;
    hd_value *whole = env_new_array(env, count + 1, sizeof *whole);
    if (!whole) return value_failed(HD_NOMEM);
    for (size_t i = 0; i < count; i++) whole[i] = join_entry(pool, shared, hd_value_index(docs, i));
    hd_value joined = hd_object_set(pool, made, "d", hd_array_of(pool, whole, count));
    env_free(env, whole, (count + 1) * sizeof *whole);
    return joined;
}

/* A commit with the ids of its documents spelled out. */
static hd_value whole_commit(hd_pool *pool, hd_value made) {
    size_t length;
    const char *text = hd_value_text(object_get_bytes(made, "a", 1), &length);
    json_buffer shared;
    if (!text) return made;
    json_buffer_init(&shared, &pool->heap->env);
    hd_value whole = json_buffer_add(&shared, text, length) ? join_entries(pool, &shared, made)
                                                            : value_failed(HD_NOMEM);
    json_buffer_fini(&shared);
    return whole;
}

static bool is_shortened(hd_value commits) {
    for (size_t i = 0; i < hd_value_count(commits); i++)
        if (value_exists(object_get_bytes(hd_value_index(commits, i), "a", 1))) return true;
    return false;
}

/* Replaces *commits, which is owned. */
static hd_status join_all(hd_heap *heap, hd_value *commits) {
    hd_pool *pool;
    if (!is_shortened(*commits)) return HD_OK;
    hd_status status = hd_pool_open(heap, &pool);
    if (status) return status;
    hd_value all = hd_array();
    for (size_t i = 0; i < hd_value_count(*commits); i++)
        all = hd_array_append(pool, all, whole_commit(pool, hd_value_index(*commits, i)));
    status = hd_value_status(all);
    if (!status) {
        value_unref(*commits);
        *commits = value_ref(all);
    }
    hd_pool_close(pool);
    return status;
}

hd_status log_commits_read(hd_heap *heap, const char *text, size_t length, hd_value *out) {
    hd_limits limits = heap->limits;
    *out = log_json_read(heap, text, length);
    if (value_is_failed(*out)) return bad_or_nomem(*out);
    widen(heap);
    hd_status status = join_all(heap, out);
    heap->limits = limits;
    return status;
}

static hd_status read_body(hd_heap *heap, const char *text, size_t length, log_row *out) {
    hd_limits limits = heap->limits;
    out->body = log_json_read(heap, text, length);
    if (value_is_failed(out->body)) return bad_or_nomem(out->body);
    out->commits = value_ref(object_get_bytes(out->body, "commits", 7));
    if (hd_value_kind(out->commits) != HD_KIND_ARRAY) return HD_CORRUPT;
    widen(heap);
    hd_status status = join_all(heap, &out->commits);
    heap->limits = limits;
    return status == HD_NOMEM ? status : status ? HD_CORRUPT : HD_OK;
}

hd_status log_row_damaged(log_store *s, uint64_t row, const char *how) {
    return log_store_damaged(s, "log row %llu: %s", (unsigned long long)row, how);
}

hd_status log_row_read(log_store *s, hd_heap *heap, const log_text *text, log_row *out) {
    *out = (log_row){ .row = text->row, .length = text->body.length };
    const char *bytes = text->body.bytes;
    if (!out->length || log_hash(bytes, out->length) != text->hash)
        return log_row_damaged(s, out->row, "its hash is wrong");
    hd_status status = read_body(heap, bytes, out->length, out);
    if (!status) status = hash_fragments(heap, bytes, out->length, out);
    return status == HD_CORRUPT ? log_row_damaged(s, out->row, "its form is wrong") : status;
}

void log_row_fini(hd_heap *heap, log_row *row) {
    value_unref(row->body);
    value_unref(row->commits);
    vec_fini(&heap->env, &row->payloads);
    *row = (log_row){ 0 };
}

hd_value log_row_commit(const log_row *row, size_t i) {
    assert(i < log_row_commits(row));
    return array_get(row->commits, i);
}

/* ---- Commits ----------------------------------------------------------------------------- */

static uint64_t number_of(hd_value v) {
    int64_t n = hd_value_as_int(v, 0);
    return n < 0 ? 0 : (uint64_t)n;
}

static uint64_t number_at(hd_value object, const char *key) {
    return number_of(hd_value_at(object, key));
}

hd_status log_commit_session(const log_row *row, hd_value made, uint8_t out[16]) {
    hd_value sessions = object_get_bytes(row->body, "sessions", 8);
    size_t length;
    const char *text = hd_value_text(array_get(sessions, (size_t)number_at(made, "s")), &length);
    return text && session_of_text(text, length, out) ? HD_OK : HD_CORRUPT;
}

uint64_t log_commit_local_seq(hd_value made) { return number_at(made, "n"); }

hd_commit_class log_commit_class(hd_value made) {
    const char *word = hd_value_as_text(object_get_bytes(made, "c", 1), "source");
    if (strcmp(word, "event") == 0) return HD_COMMIT_EVENT;
    return strcmp(word, "derived") == 0 ? HD_COMMIT_DERIVED : HD_COMMIT_SOURCE;
}

size_t log_commit_spaces(hd_value made) { return hd_value_count(object_get_bytes(made, "p", 1)); }

bool log_commit_space(hd_value made, size_t i, const char **name, size_t *length, uint64_t *seq) {
    *name = hd_value_text(hd_value_index(object_get_bytes(made, "p", 1), i), length);
    int64_t n = hd_value_as_int(hd_value_index(object_get_bytes(made, "q", 1), i), -1);
    *seq = (uint64_t)n;
    return *name && n > 0 && n <= (int64_t)SEQ_MAX;
}

/* ---- Documents --------------------------------------------------------------------------- */

size_t log_commit_docs(hd_value made) { return hd_value_count(object_get_bytes(made, "d", 1)); }

static void take_instance(log_doc *out, hd_scope scope, hd_value whose) {
    size_t length;
    const char *text = hd_value_text(whose, &length);
    if (!text || out->name.scope == HD_SCOPE_USER) return;
    out->name.scope = scope;
    out->name.instance = text;
    out->name.instance_length = (uint32_t)length;
}

static void take_id(log_doc *out, hd_value id) {
    size_t length;
    out->name.id = hd_value_text(id, &length);
    out->name.id_length = (uint32_t)length;
}

static bool is_key(const hd_iter *field, const char *key, size_t length) {
    return field->key_length == length && !memcmp(field->key, key, length);
}

/* An entry has few fields, and most have the same ones: one walk over what is there. */
static void take_field(log_doc *out, const hd_iter *field, uint64_t *space) {
    if (field->key_length > 1) {
        if (is_key(field, "user", 4)) take_instance(out, HD_SCOPE_USER, field->value);
        else if (is_key(field, "session", 7)) take_instance(out, HD_SCOPE_SESSION, field->value);
        else if (is_key(field, "new", 3)) out->created = number_of(field->value) != 0;
        return;
    }
    switch (field->key_length ? *field->key : 0) {
    case 'i': take_id(out, field->value); break;
    case 'p': *space = number_of(field->value); break;
    case 'm': out->name.meta = number_of(field->value) != 0; break;
    case 'b': out->basis = number_of(field->value); break;
    case 'g':
        out->guarded = number_of(field->value) != 0;
        out->forgotten = !out->guarded;
        break;
    case 'o': out->ops = field->value; break;
    default: break; /* not needed here */
    }
}

/* [id, operations] has nothing else to say. */
static void take_entry(hd_value entry, log_doc *out, uint64_t *space) {
    if (hd_value_kind(entry) == HD_KIND_ARRAY) {
        take_id(out, array_count(entry) == 2 ? array_get(entry, 0) : value_absent());
        out->ops = hd_value_index(entry, 1);
        return;
    }
    for (hd_iter it = hd_iter_of(entry); hd_iter_next(&it);) take_field(out, &it, space);
}

/* An entry without a name is the metadata of the document before it. */
static void take_name_before(hd_value all, size_t i, log_doc *out, uint64_t *space) {
    log_doc before = { .name = { .scope = HD_SCOPE_SPACE, .instance = "" } };
    if (i) take_entry(hd_value_index(all, i - 1), &before, space);
    out->name = before.name;
    out->name.meta = true;
}

bool log_commit_doc(hd_value made, size_t i, log_doc *out) {
    hd_value all = object_get_bytes(made, "d", 1), entry = hd_value_index(all, i);
    uint64_t space = 0;
    size_t length;
    *out = (log_doc){ .entry = entry, .name = { .scope = HD_SCOPE_SPACE, .instance = "" } };
    take_entry(entry, out, &space);
    if (!out->name.id && out->name.meta) take_name_before(all, i, out, &space);
    if (!out->name.id ||
        !log_commit_space(made, (size_t)space, &out->name.space, &length, &out->seq))
        return false;
    out->name.space_length = (uint32_t)length;
    assert(out->seq && out->seq <= SEQ_MAX && out->name.scope != HD_SCOPE_HERE);
    hd_value last = hd_value_index(out->ops, hd_value_count(out->ops) - 1);
    out->deleted = strcmp(hd_value_as_text(hd_value_index(last, 0), ""), "delete") == 0;
    return hd_value_kind(out->ops) == HD_KIND_ARRAY;
}

uint64_t log_row_format(const log_row *row) { return number_at(row->body, "v"); }

bool log_doc_footprint_holds(const log_row *row, hd_value made, size_t i) {
    hd_value doubted = object_get_bytes(made, "u", 1);
    if (number_at(row->body, "v") < LOG_FOOTPRINTS) return false;
    for (size_t k = 0; k < hd_value_count(doubted); k++)
        if (hd_value_as_int(array_get(doubted, k), -1) == (int64_t)i) return false;
    return true;
}

hd_value log_doc_footprint(hd_value entry) {
    return hd_value_kind(entry) == HD_KIND_OBJECT ? object_get_bytes(entry, "f", 1)
                                                  : value_absent();
}

/* What stands in front of a path; *path is behind it. */
static uint8_t take_marks(const char *text, const char **path) {
    *path = text + (*text == '*' || *text == '>');
    if (*path != text) return *text == '*' ? TOUCH_WHOLE : TOUCH_REST;
    uint8_t keys = *text == '+' ? TOUCH_KEYS : 0;
    *path += keys != 0;
    bool leaf = **path != '=';
    *path += !leaf;
    return keys | (leaf ? TOUCH_LEAF : 0);
}

static bool is_index(const hd_heap *heap, hd_path path) {
    return path != HD_PATH_ROOT && path_key(heap, path)->index != KEY_NO_INDEX;
}

hd_status log_touch_at(hd_heap *heap, hd_value footprint, size_t i, touch *out) {
    assert(i < hd_value_count(footprint));
    size_t length;
    const char *text = hd_value_text(array_get(footprint, i), &length);
    if (!text) return HD_CORRUPT;
    const char *path;
    out->flags = take_marks(text, &path);
    assert(path <= text + length); /* a text ends with a NUL, and no mark is one */
    hd_status status = path_parse(heap, path, length - (size_t)(path - text), &out->path, NULL);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    if (!(out->flags & TOUCH_REST) || is_index(heap, out->path)) return HD_OK;
    path_unref(heap, out->path);
    return HD_CORRUPT;
}

hd_value log_doc_op_list(const log_doc *doc) { return doc->ops; }
size_t log_doc_ops(const log_doc *doc) { return hd_value_count(log_doc_op_list(doc)); }

/* ---- Operations -------------------------------------------------------------------------- */

/* A set may stand without its word: its path begins with a slash, or is empty, and no word does. Returns where the
 * path is in the operation; false: neither. */
static bool take_kind(hd_value o, op_kind *kind, size_t *path_at) {
    const char *first = hd_value_as_text(hd_value_index(o, 0), "?");
    bool is_path = *first == '/' || !*first;
    *path_at = is_path ? 0 : 1;
    *kind = OP_SET;
    return is_path || op_of_word(first, kind);
}

hd_status log_ops_at(hd_heap *heap, hd_value ops, size_t i, log_op *out) {
    hd_value o = hd_value_index(ops, i);
    size_t length, at;
    *out = (log_op){ .path = HD_PATH_ROOT };
    if (!take_kind(o, &out->kind, &at)) return HD_CORRUPT;
    out->value = hd_value_index(o, at + 1);
    const char *path = hd_value_text(hd_value_index(o, at), &length);
    if (!path && out->kind != OP_DELETE) return HD_CORRUPT;
    out->keep = (uint64_t)hd_value_as_int(hd_value_index(o, at + 2), 0);
    hd_status status = path_parse(heap, path ? path : "", path ? length : 0, &out->path, NULL);
    return status && status != HD_NOMEM ? HD_CORRUPT : status;
}

bool log_ops_start_anew(hd_value ops) {
    hd_value first = hd_value_index(ops, 0);
    op_kind kind;
    size_t at;
    if (!take_kind(first, &kind, &at)) return false;
    return kind == OP_DELETE ||
           (kind == OP_SET && hd_value_as_text(hd_value_index(first, at), "/")[0] == '\0');
}

hd_status log_fold(hd_heap *heap, hd_value ops, hd_value *value) {
    assert(!value_is_failed(*value));
    size_t n = hd_value_count(ops);
    for (size_t i = 0; i < n; i++) {
        log_op o;
        hd_status status = log_ops_at(heap, ops, i, &o);
        if (status) return status;
        hd_value next = op_apply(heap, *value, o.kind, o.path, o.value, o.keep);
        path_unref(heap, o.path);
        if (value_is_failed(next)) {
            if (hd_value_status(next) == HD_NOMEM) return HD_NOMEM;
            continue;
        }
        value_unref(*value);
        *value = next;
    }
    assert(!value_is_failed(*value));
    return HD_OK;
}

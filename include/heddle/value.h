/* heddle/value.h -- immutable values: build, read, change, compare, parse, print.
 *
 * A value is an 8-byte handle that is passed by value. Null, booleans, numbers and the empty
 * containers are immediate; strings, bytes, arrays, objects and links are reference-counted
 * blocks that share structure: changing one key of an object of 100,000 keys copies a handful of
 * tree nodes and leaves the old value as it was.
 *
 * OWNERSHIP. A value that you build belongs to the *pool* you pass to the function that makes
 * it, and lives until that pool is cleared or closed. You never free single values. A transaction
 * has a pool of its own (hd_tx_pool), so a computation frees nothing. To keep a value beyond its
 * pool, call hd_value_ref, and hd_value_unref when you no longer need it. What you read out of a
 * value lives as long as that value.
 *
 * NOTHING TO CHECK TWICE. A missing key, a bad index or a key of a number reads as an *absent*
 * value, all the way down; `hd_value v = {0}` is absent too. A builder that fails (no memory, a
 * wrong kind) returns a *failed* value that carries the status; every further builder passes it on
 * and every consumer refuses it with that status. So build in one go and check once at the end.
 *
 * EQUALITY is by kind and content: 1 is not 1.0, +0.0 is not -0.0, NaN equals NaN, the order in
 * which keys were added is irrelevant. Objects iterate in the byte order of their keys.
 *
 * HEAPS. Values, paths and compiled schemas belong to one heap, because keys and paths are numbers of that heap. Do not
 * mix those of two heaps in one call, or give them to a runtime that has another heap. To copy a value to another heap,
 * print it as JSON and parse it there; compile a schema again there.
 *
 * THREADS. A heap, its pools and its values belong to one thread at a time.
 */
#ifndef HEDDLE_VALUE_H
#define HEDDLE_VALUE_H

#include <heddle/base.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Heaps and pools --------------------------------------------------------------------- */

typedef struct hd_heap hd_heap;
typedef struct hd_pool hd_pool;

/* Limits of the values that a program makes and writes; beyond them: HD_LIMIT. A value that it reads from a store may
 * be larger, if a program with wider limits wrote it. */
typedef struct hd_limits {
    uint32_t depth; /* nesting of arrays and objects; default 512, and never more than 2048 */
    size_t size;    /* bytes of text, and of one string; default 256 MiB */
} hd_limits;

/* A heap holds the memory of values and the tables of interned keys and paths. A runtime has one
 * (hd_runtime_heap); programs that only want values open their own. `env` may be NULL: hd_env_system(); `limits` may be
 * NULL: the defaults. HD_NOMEM. Closing a heap while values of it are still referenced is a bug, which debug builds
 * report; all its memory is freed in any case. */
HD_API hd_status hd_heap_open(const hd_env *env, const hd_limits *limits, hd_heap **out);
HD_API void hd_heap_close(hd_heap *heap);

typedef struct hd_heap_stats {
    uint64_t bytes;        /* taken from the environment now */
    uint64_t live_blocks;  /* values and tree nodes that exist */
    uint64_t made_blocks;  /* ever made, copies included */
    uint64_t visited;      /* tree nodes and entries looked at by equality and diff */
    uint64_t keys;         /* interned keys */
    uint64_t paths;        /* interned paths */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_heap_stats;
HD_API void hd_heap_stat(const hd_heap *heap, hd_heap_stats *out);

/* Pools may be opened, cleared and closed in any order, before their heap is closed. HD_NOMEM. */
HD_API hd_status hd_pool_open(hd_heap *heap, hd_pool **out);
HD_API void hd_pool_clear(hd_pool *pool);
HD_API void hd_pool_close(hd_pool *pool);
HD_API hd_heap *hd_pool_heap(const hd_pool *pool);

/* ---- Values ------------------------------------------------------------------------------ */

typedef struct hd_value {
    uint64_t bits; /* private; 0 is the absent value */
} hd_value;

typedef enum hd_kind {
    HD_KIND_ABSENT, /* not a value: what a missing key reads as */
    HD_KIND_FAILED, /* not a value: a builder that could not build; see hd_value_status */
    HD_KIND_NULL,
    HD_KIND_BOOL,
    HD_KIND_INT,    /* 64 bit, signed */
    HD_KIND_DOUBLE, /* IEEE 754 */
    HD_KIND_STRING, /* UTF-8 */
    HD_KIND_BYTES,
    HD_KIND_ARRAY,
    HD_KIND_OBJECT,
    HD_KIND_LINK /* the address of another place */
} hd_kind;

HD_API hd_kind hd_value_kind(hd_value v);
HD_API const char *hd_kind_name(hd_kind kind); /* "object" */

/* True for every kind but absent and failed. */
HD_API bool hd_value_exists(hd_value v);
/* HD_OK, or for a failed value the reason. */
HD_API hd_status hd_value_status(hd_value v);

/* Keep a value beyond its pool, and release it again. Both accept every kind; ref returns its argument. */
HD_API hd_value hd_value_ref(hd_value v);
HD_API void hd_value_unref(hd_value v);
/* Moves a reference that you hold (hd_value_ref) into the pool, which releases it when it is cleared or closed. Returns
 * v, or a failed value without memory; you no longer hold the reference in either case. */
HD_API hd_value hd_value_take(hd_pool *pool, hd_value v);

/* ---- Building ---------------------------------------------------------------------------- */

/* These need no memory, and so no pool. hd_failed makes the value that carries a status. */
HD_API hd_value hd_null(void);
HD_API hd_value hd_bool(bool b);
HD_API HD_INLINE_ hd_value hd_double(double d);
HD_API hd_value hd_failed(hd_status status);

/* Integers of 2^50 and beyond, either sign, need a small block, hence the pool; for smaller ones it
 * may be NULL. */
HD_API hd_value hd_int(hd_pool *pool, int64_t i);

/* The text is copied. Invalid UTF-8 gives a failed value (HD_SYNTAX). */
HD_API hd_value hd_string(hd_pool *pool, const char *text);
HD_API hd_value hd_string_n(hd_pool *pool, const char *text, size_t length);
HD_API hd_value hd_string_f(hd_pool *pool, const char *format, ...) HD_PRINTF(2, 3);
HD_API hd_value hd_bytes(hd_pool *pool, const void *data, size_t size);

HD_API hd_value hd_array(void);  /* [] */
HD_API hd_value hd_object(void); /* {} */
HD_API hd_value hd_array_of(hd_pool *pool, const hd_value *items, size_t count);

/* Changed copies. The original is untouched and both share what did not change; O(log n).
 * Absent and failed values cannot be stored: storing absent fails with HD_KIND. */
HD_API hd_value hd_object_set(hd_pool *pool, hd_value object, const char *key, hd_value v);
HD_API hd_value hd_object_set_n(hd_pool *pool, hd_value object, const char *key, size_t length,
                                hd_value v);
HD_API hd_value hd_object_remove(hd_pool *pool, hd_value object, const char *key);
HD_API hd_value hd_array_append(hd_pool *pool, hd_value array, hd_value v);
HD_API hd_value hd_array_set(hd_pool *pool, hd_value array, size_t index, hd_value v);
HD_API hd_value hd_array_insert(hd_pool *pool, hd_value array, size_t index, hd_value v);
HD_API hd_value hd_array_remove(hd_pool *pool, hd_value array, size_t index);
/* The first `count` elements. */
HD_API hd_value hd_array_truncate(hd_pool *pool, hd_value array, size_t count);

/* A builder makes a large array or object without an intermediate value for each step.
 *
 *     hd_builder *b;
 *     hd_status s = hd_builder_open(pool, HD_KIND_OBJECT, &b);
 *     if (s) return s;
 *     hd_builder_put(b, "name", hd_string(pool, "Ada"));
 *     hd_builder_put(b, "born", hd_int(pool, 1815));
 *     hd_value person = hd_builder_close(b);
 *
 * The last value given for a key counts. A failure on the way is carried and comes out of close.
 * Closing gives the value to the pool; abandoning a builder is closing it and ignoring the value. */
typedef struct hd_builder hd_builder;
HD_API hd_status hd_builder_open(hd_pool *pool, hd_kind kind, hd_builder **out);
HD_API void hd_builder_put(hd_builder *b, const char *key, hd_value v);
HD_API void hd_builder_put_n(hd_builder *b, const char *key, size_t length, hd_value v);
HD_API void hd_builder_add(hd_builder *b, hd_value v);
HD_API hd_value hd_builder_close(hd_builder *b);

/* ---- Reading ----------------------------------------------------------------------------- */

/* Each returns the value if it has the right kind, else `otherwise`. hd_value_as_double and hd_value_number accept int
 * and double; hd_value_number returns NaN for any other kind. hd_value_as_int accepts a double that is a whole
 * number. */
HD_API bool hd_value_as_bool(hd_value v, bool otherwise);
HD_API int64_t hd_value_as_int(hd_value v, int64_t otherwise);
HD_API double hd_value_as_double(hd_value v, double otherwise);
HD_API HD_INLINE_ double hd_value_number(hd_value v);
/* NUL-terminated text (which may itself contain NUL: use the _n form), or `otherwise`. */
HD_API const char *hd_value_as_text(hd_value v, const char *otherwise);
/* The text and its length in bytes; NULL and 0 for anything but a string. */
HD_API const char *hd_value_text(hd_value v, size_t *length);
HD_API const void *hd_value_bytes(hd_value v, size_t *size);

/* The number of elements of an array or of keys of an object; 0 for every other kind. O(1). */
HD_API size_t hd_value_count(hd_value v);
/* The value at a key or an index; absent if there is none. Borrowed from v. */
HD_API hd_value hd_value_at(hd_value v, const char *key);
HD_API hd_value hd_value_at_n(hd_value v, const char *key, size_t length);
HD_API hd_value hd_value_index(hd_value v, size_t index);

/* Iteration, in order of index or of key. The fields are good until the next call.
 *
 *     for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
 *         use(it.key, it.value);
 */
#define HD_ITER_DEPTH 16
typedef struct hd_iter {
    const char *key; /* NUL-terminated; NULL in an array */
    size_t key_length;
    size_t index; /* 0, 1, 2, ... */
    hd_value value;
    struct { /* private */
        const void *node;
        uint32_t slot;
    } stack_[HD_ITER_DEPTH];
    int depth_;
} hd_iter;
HD_API hd_iter hd_iter_of(hd_value v);
HD_API bool hd_iter_next(hd_iter *it);

/* ---- Paths ------------------------------------------------------------------------------- */

/* A path names a place inside a value. Its text is a JSON pointer (RFC 6901): "" is the whole
 * value, "/items/3/price" a place in it, "~0" and "~1" stand for "~" and "/". A segment is a key of
 * an object or, in decimal without leading zeros, an index of an array. "length" as the last
 * segment of a path into an array reads its number of elements.
 *
 * An hd_path is such a text interned: a small integer that compares with ==. Interning a known path
 * is one hash lookup. Paths interned here stay for the life of the heap. */
typedef uint32_t hd_path;
#define HD_PATH_ROOT ((hd_path)0)

HD_API hd_status hd_path_intern(hd_heap *heap, const char *pointer, hd_path *out, hd_error *error);
HD_API hd_status hd_path_join(hd_heap *heap, hd_path parent, const char *key, size_t length,
                              hd_path *out);
HD_API hd_path hd_path_parent(const hd_heap *heap, hd_path path); /* of the root: the root */
HD_API uint32_t hd_path_depth(const hd_heap *heap, hd_path path);
/* Writes the pointer text with a NUL; returns its full length, like snprintf. */
HD_API size_t hd_path_print(const hd_heap *heap, hd_path path, char *out, size_t size);

/* The value at a path; absent if there is none. Borrowed from v. */
HD_API hd_value hd_value_get(const hd_heap *heap, hd_value v, hd_path path);

/* A changed copy with `to` at `path`; missing objects on the path are made. In an array the segment
 * must be an index from 0 to the length; the length itself appends. HD_KIND: the path leads through a value that is
 * neither array nor object; HD_RANGE: a bad index. */
HD_API hd_value hd_value_set(hd_pool *pool, hd_value v, hd_path path, hd_value to);
/* A changed copy without `path`. A key that is not there changes nothing; an array closes up.
 * Removing the root gives the absent value. */
HD_API hd_value hd_value_remove(hd_pool *pool, hd_value v, hd_path path);
/* A changed copy with `item` appended to the array at `path`; a missing array is made. */
HD_API hd_value hd_value_append(hd_pool *pool, hd_value v, hd_path path, hd_value item);

/* ---- Comparing --------------------------------------------------------------------------- */

/* By kind and content. Skips parts that the two values share, so the cost depends on what differs. */
HD_API bool hd_value_equal(hd_value a, hd_value b);
/* By shape: true for two arrays of the same length, and for two objects with the same keys. Any other kind is compared
 * as by hd_value_equal; links by where they point. */
HD_API bool hd_value_same_shape(hd_value a, hd_value b);
/* A total order over all values, by kind and then by content; for sorting. */
HD_API int hd_value_compare(hd_value a, hd_value b);

/* 128 bits of structural hash; equal values have equal hashes. Keyed by a secret of the heap: good
 * for tables inside one process, meaningless outside. Cached in large containers. */
typedef struct hd_hash {
    uint64_t lo, hi;
} hd_hash;
HD_API hd_hash hd_value_hash(const hd_heap *heap, hd_value v);

/* One step of a path in a diff: a key, or (key NULL) an index. */
typedef struct hd_step {
    const char *key;
    size_t key_length;
    size_t index;
} hd_step;

/* Reports each minimal place where two values differ, in path order: a key added or removed, a
 * scalar or kind changed. An array whose length changed is reported as a whole, then each index that both have and that
 * differs. `before` or `after` is absent where the place does not exist. Return false to stop. */
typedef bool (*hd_diff_fn)(const hd_step *path, size_t depth, hd_value before, hd_value after,
                           void *ctx);
HD_API hd_status hd_value_diff(hd_heap *heap, hd_value before, hd_value after, hd_diff_fn fn,
                               void *ctx);

/* ---- Links and ids ----------------------------------------------------------------------- */

/* Parts of a link that are NULL (or HD_SCOPE_HERE) mean "as here": the space and scope of the
 * document that holds the link. */
typedef enum hd_scope { HD_SCOPE_HERE, HD_SCOPE_SPACE, HD_SCOPE_USER, HD_SCOPE_SESSION } hd_scope;

typedef struct hd_link {
    const char *space; /* NULL: as here */
    hd_scope scope;
    const char *id;   /* NULL: this document */
    const char *path; /* JSON pointer; NULL or "": the whole value */
} hd_link;

/* HD_SYNTAX for a malformed path or a name with a control character. */
HD_API hd_value hd_link_make(hd_pool *pool, const hd_link *link);
/* The parts, borrowed from v; false for anything but a link. */
HD_API bool hd_value_link(hd_value v, hd_link *out);

/* A causal id: BLAKE2b-256 of the canonical JSON of `cause`, as "~" and 43 characters of base64url.
 * The same cause gives the same id everywhere and always. */
#define HD_ID_SIZE 45
HD_API hd_status hd_id_of(hd_value cause, char out[HD_ID_SIZE]);

/* ---- JSON -------------------------------------------------------------------------------- */

/* Strict RFC 8259. Refused, with line, column and path: malformed text, invalid UTF-8, duplicate
 * keys, trailing data, integers beyond 64 bits, numbers beyond a double, too deep, too large.
 *
 * What JSON cannot say has a tagged form: {"$link": {"id": "a", "path": "/x"}}, {"$bytes":
 * "base64"}, {"$double": "NaN"} (also "Infinity" and "-Infinity"). A key of yours that begins with
 * "$" is written with the "$" doubled and read back whole. Every value survives print and parse. */
HD_API hd_value hd_json_parse(hd_pool *pool, const char *text, size_t length, hd_error *error);

typedef enum hd_json_style {
    HD_JSON_COMPACT, /* one line, no spaces; canonical: equal values print equally */
    HD_JSON_PRETTY   /* two spaces of indent, short containers on one line */
} hd_json_style;

/* Prints into memory of the pool, NUL-terminated; NULL when there is no memory or v is absent or
 * failed. */
HD_API const char *hd_json_print(hd_pool *pool, hd_value v, hd_json_style style, size_t *length);
/* Prints through a callback, in pieces of no particular size; return false to stop. */
typedef bool (*hd_text_fn)(const char *text, size_t length, void *ctx);
HD_API hd_status hd_json_write(hd_value v, hd_json_style style, hd_text_fn fn, void *ctx);

/* ---- Schemas ----------------------------------------------------------------------------- */

/* A compiled schema: a subset of JSON Schema (type, properties, required, items, prefixItems,
 * additionalProperties, $ref to "#/$defs/...", $defs, default, anyOf, enum, const, asCell,
 * asStream, shallow, title, description). Unknown keywords are refused with their path. Schemas
 * guide reads; see heddle/store.h. A compiled schema is immutable. Close it before its heap closes; a runtime keeps a
 * reference of its own to the schemas it reads through (hd_cell_with_schema).
 *
 * In JSON text a key with a leading "$" is written with two: a schema given to hd_json_parse, or in
 * a file or on a command line, says {"$$ref": "#/$defs/item", "$$defs": {...}}. The pointer is a
 * string and stays as it is. Values that are built key by key have the keys "$ref" and "$defs".
 *
 * Where it differs from JSON Schema, or had a choice:
 *
 *   - "integer" matches a double that is a whole number; in enum and const 1 is not 1.0.
 *   - prefixItems gives the schemas of the first elements, items that of the others. Neither requires
 *     elements: an array with fewer elements matches.
 *   - A required property that has a default is never missing; neither is a stream.
 *   - A read through anyOf takes the first alternative that matches. The reader also depends on what made the earlier
 *     alternatives fail; a change there may run the reader even if its value stays the same.
 *   - asCell gives a link to the place instead of its value, and asStream a link to a stream; shallow gives the value
 *     and depends on its shape only (hd_tx_get_shape). A reader through asCell depends on the place and not on what a
 *     link there points at; where the place holds no link, it may run when a key is added or removed there.
 *   - A link matches any schema; the value it points at is matched when the link is followed.
 *   - true matches everything, false nothing. Beside $ref only asCell, asStream, shallow, default,
 *     $defs, title and description may stand; beside anyOf no keyword about keys or elements.
 *   - additionalProperties is true where it is not given. A read leaves the unnamed keys out all the
 *     same where properties are named. */
typedef struct hd_schema hd_schema;
HD_API hd_status hd_schema_compile(hd_heap *heap, hd_value schema, hd_schema **out,
                                   hd_error *error);
HD_API void hd_schema_close(hd_schema *schema);
/* The value the schema was compiled from. */
HD_API hd_value hd_schema_source(const hd_schema *schema);
/* HD_OK: v matches; HD_MISMATCH: error says where and why not. Links match any type. */
HD_API hd_status hd_schema_validate(const hd_schema *schema, hd_value v, hd_error *error);
/* The part of v that the schema describes, with defaults filled in: named properties only (unless
 * additional ones are allowed); a mismatching optional property is left out; a missing required
 * one, or any other mismatch, makes the whole absent. */
HD_API hd_value hd_schema_project(hd_pool *pool, const hd_schema *schema, hd_value v);

/* ---- Inlined -----------------------------------------------------------------------------
 *
 * Computations over numbers call these most. They are in the library too, for builds without
 * optimisation, debuggers and other languages. Names with a final underscore are private. */

#ifndef HD_NO_INLINE

/* The bits of a double are its own, XORed with a mask; every NaN is stored as the same one. */
#define HD_VALUE_MASK_ UINT64_C(0x7FF9000000000000)
#define HD_VALUE_NAN_  UINT64_C(0x7FF8000000000000)
#define HD_VALUE_NUMBERS_                                                                          \
    UINT64_C(0xFFF0000000000000) /* 2 * bits is below this: a number, no NaN */

HD_API inline hd_value hd_double(double d) {
    hd_value v;
    memcpy(&v.bits, &d, sizeof v.bits);
    if (d != d) v.bits = HD_VALUE_NAN_;
    v.bits ^= HD_VALUE_MASK_;
    return v;
}

/* True for a double that is not NaN. A macro, so that the compiler removes a second test of one value. */
#define HD_VALUE_IS_DOUBLE_(v) HD_USUALLY_(((v).bits ^ HD_VALUE_MASK_) << 1 < HD_VALUE_NUMBERS_)

HD_API inline double hd_value_number(hd_value v) {
    double d;
    uint64_t raw = HD_VALUE_IS_DOUBLE_(v) ? v.bits ^ HD_VALUE_MASK_ : HD_VALUE_NAN_;
    memcpy(&d, &raw, sizeof d);
    return HD_VALUE_IS_DOUBLE_(v) ? d : hd_value_as_double(v, d);
}
#endif /* HD_NO_INLINE */

#ifdef __cplusplus
}
#endif
#endif

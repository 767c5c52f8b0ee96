/* heddle/pattern.h -- patterns: graphs built from a few primitives, and pieces: their instances.
 *
 * A *pattern* is a C function that builds a graph. It runs once for each start of a *piece*. A piece is
 * a document in the store that names the pattern, its arguments and the cell of its result. The graph
 * that the pattern builds stays, and its nodes run when what they read changes:
 *
 *     static hd_value add_tax(hd_tx *tx, hd_value price, void *ctx) {
 *         return hd_double(hd_value_number(price) * 1.19);
 *     }
 *
 *     static hd_cell shop(hd_build *b, void *ctx) {
 *         hd_cell items = hd_build_argument(b, "items", hd_array());
 *         return hd_build_map(b, "prices", items, &(hd_each){ .fn = add_tax });
 *     }
 *
 *     hd_pattern_register(rt, "shop", "1", shop, NULL);
 *     hd_piece_start(rt, &(hd_piece_spec){ .id = "corner", .pattern = "shop" }, &piece, &error);
 *     hd_sink(rt, hd_piece_result(rt, piece), show, NULL);
 *
 * NAMES ARE IDENTITY. Every primitive takes a name, which must be unique in its pattern. (Names of arguments are
 * separate from the others; a pattern may ask for the same state, stream or argument again.) The node
 * "prices" of the piece "corner" in space "main" is the node "main:corner:prices", and writes the
 * document "main/corner/prices". The same piece, started again, finds its documents by these names. A row
 * of a list has the key of its element in its name. Names, and the ids of pieces, have no '/', ':' or
 * '#', and names at most 200 bytes. In the names of nodes a ':' of the space's name is "%3A", a '%'
 * "%25".
 *
 * ONE CHECK AT THE END. A primitive that fails returns no cell (id 0), and the build keeps the first failure; the
 * primitives after it do nothing. Starting the piece then fails with that status, and everything that was built of
 * it is removed. So the comments below name no failures, except where a primitive has one of its own.
 *
 * Functions here that take an hd_build may be called only while that build's function runs. Arguments
 * are borrowed for the call, but `ctx` and the texts of a pattern's registration must outlive the
 * piece, or the runtime. Everything happens on the runtime's thread. */
#ifndef HEDDLE_PATTERN_H
#define HEDDLE_PATTERN_H

#include <heddle/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is being built: a piece, or a part of one (a row of a list, a pattern in a pattern). */
typedef struct hd_build hd_build;

/* Builds the graph of one piece and returns the cell of its result. */
typedef hd_cell (*hd_pattern_fn)(hd_build *b, void *ctx);

/* Registers a pattern. When its `version` changes, the nodes of its pieces run again on resume. NULL: the
 * build id of the program or library that `fn` is in. HD_USAGE: another pattern has this name. */
HD_API hd_status hd_pattern_register(hd_runtime *rt, const char *name, const char *version,
                                     hd_pattern_fn fn, void *ctx);
/* Removes the pattern: no piece of it starts any more. Pieces that run go on, and use its function and `ctx` until they
 * stop. HD_NOT_FOUND. */
HD_API hd_status hd_pattern_unregister(hd_runtime *rt, const char *name);

/* ---- Inputs ------------------------------------------------------------------------------ */

/* An argument of the piece: a cell in its document, which can be written; if it holds a link, readers read
 * the link's target. If the start gives no such argument, `otherwise` is written there (absent: nothing
 * is written). In a pattern that hd_build_use builds, the argument is the cell that hd_build_use was given, or else a
 * constant. HD_USAGE in rows and derived patterns. If the start gives an argument that the pattern does not ask for,
 * the log has a warning. */
HD_API hd_cell hd_build_argument(hd_build *b, const char *name, hd_value otherwise);
/* A value that does not change. */
HD_API hd_cell hd_build_constant(hd_build *b, const char *name, hd_value v);
/* Memory for the functions of the pattern, to be their `ctx`: zeroed at first, and the same block whenever
 * this build asks for this name and size again. It is freed after the build's nodes have ended. A name
 * of memory may also be the name of a primitive. NULL: the build has failed. */
HD_API void *hd_build_memory(hd_build *b, const char *name, size_t size);
/* A document of the piece for handlers to write; `initial` is written if it does not exist. Not in rows
 * and derived patterns (HD_USAGE), because these end while the piece runs. */
HD_API hd_cell hd_build_state(hd_build *b, const char *name, hd_value initial);

/* ---- Computing --------------------------------------------------------------------------- */

/* Computes the result from these inputs; absent: there is none. A failed value fails the run: return
 * hd_failed(hd_tx_fail(tx, HD_FAILED, "...")). The function may read more cells through `tx`, and must be
 * idempotent. */
typedef hd_value (*hd_lift_fn)(hd_tx *tx, const hd_value *in, void *ctx);
typedef hd_value (*hd_derive_fn)(hd_tx *tx, hd_value in, void *ctx);

/* A computation over several inputs, and over one. It runs while a live node or a sink reads its result. */
HD_API hd_cell hd_build_lift(hd_build *b, const char *name, hd_lift_fn fn, void *ctx,
                             const hd_cell *in, size_t count);
HD_API hd_cell hd_build_derive(hd_build *b, const char *name, hd_cell in, hd_derive_fn fn,
                               void *ctx);

/* The value of one of two cells. The node reads the chosen cell only: nodes that compute the other do not run
 * because of it, except for the first run of a node that a run has just built, and for a change that concerns the
 * condition and them alike: they may run once more before the condition does. `otherwise` is chosen when
 * hd_value_is_true(condition) is false. */
HD_API hd_cell hd_build_if_else(hd_build *b, const char *name, hd_cell condition, hd_cell then,
                                hd_cell otherwise);
/* False for absent, null, false, 0 and "". */
HD_API bool hd_value_is_true(hd_value v);

/* ---- Lists ------------------------------------------------------------------------------- */

/* Builds the graph of one element; returns the cell of its result. */
typedef hd_cell (*hd_row_fn)(hd_build *row, hd_cell element, void *ctx);

typedef struct hd_each {
    hd_derive_fn fn; /* computes a value for each element; or: */
    hd_row_fn build; /* builds a graph for each element */
    void *ctx;
    /* The key by which an element keeps its row when the list changes. For a link it is the link's
     * target. For a value it is found by this JSON pointer into the element: "/id", or "" for the element
     * itself; NULL: its index in the list. If several elements have the same key, the row depends on their
     * order, too. */
    const char *key;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_each;

/* A *list* is an array, or an object whose properties are the elements, in the order of their names.
 *
 * Of an array: an array of links, one for each element, to the result of the element's row. A row stays as long
 * as its element is in the list, at any index, and runs when its element changes: a change of one of n elements
 * runs one row and takes O(log n), and so does an append. Of an object: an object with the same names, whose
 * properties are the links. A row then belongs to its property's name (`key` is not used), and a property that
 * is added or removed is one row, and O(log n).
 *
 * The nodes of a row run once after they have been built, and from then on while a live node or a sink follows
 * the link. When the element leaves the list, the documents that the row's nodes wrote are removed: in the next pump
 * (later, if the store refuses that), or after the next start of the piece. A `list` that is neither an array nor an
 * object has no rows, and the map is an empty array; the log has a warning then, unless the list is absent or null. */
HD_API hd_cell hd_build_map(hd_build *b, const char *name, hd_cell list, const hd_each *each);
/* The elements whose row is true; of an object, the properties. Links stay links. */
HD_API hd_cell hd_build_filter(hd_build *b, const char *name, hd_cell list, const hd_each *each);
/* The elements of the rows' arrays, one after the other; a row that is not an array adds nothing. */
HD_API hd_cell hd_build_flat_map(hd_build *b, const char *name, hd_cell list, const hd_each *each);
/* The values that a list's links lead to; of an object, an object. hd_build_filter, hd_build_flat_map and
 * hd_build_gather read every row: when one row changes, that row runs, and the gathering node, which takes O(n). */
HD_API hd_cell hd_build_gather(hd_build *b, const char *name, hd_cell list);
/* The same for use in an action: reads the list and follows its links. Fails as hd_tx_get does. */
HD_API hd_value hd_tx_get_list(hd_tx *tx, hd_cell list);

/* The elements of a list by a key, the result of the element's row: an object {key: [link, ...]}, with the links
 * to a group's elements in the order of the list; of an object {key: {name: link, ...}}. A group is a list for
 * maps and folds, and the groups are one, too: hd_build_map over the result has a row for each group, which stays
 * as long as the group has an element. The name of a group is its key, if that is a text, else its JSON; an
 * element whose key is absent or null is in no group. The change of an element that does not change its key runs
 * the element's row and nothing else. Another key of one element, or another element, costs O(log n) nodes on average
 * and what the one or two groups hold that it concerns; the first change after a start of the piece costs O(n). */
HD_API hd_cell hd_build_group(hd_build *b, const char *name, hd_cell list, const hd_each *each);

/* Combines the values of two neighbours, or of two groups of neighbours, `a` being in front of `b`. It must be
 * associative: combine(combine(a, b), c) equals combine(a, combine(b, c)); it need not be commutative. As hd_lift_fn
 * it may fail and must be idempotent. If it returns absent, the elements combined so far add nothing. */
typedef hd_value (*hd_combine_fn)(hd_tx *tx, hd_value a, hd_value b, void *ctx);

typedef enum hd_fold_kind {
    HD_FOLD_OWN,   /* `combine`, over all elements that are not absent */
    HD_FOLD_COUNT, /* how many elements are not absent, null or false */
    /* Of the numbers; other elements are left out. Ints give an int, exactly, unless that is more than 64 bits;
     * doubles are added in pairs of neighbours, and rounded each time. */
    HD_FOLD_SUM,
    /* Ints and doubles by their numbers, others in the order of hd_value_compare; absent and null are left
     * out. Of equal elements the first. */
    HD_FOLD_MINIMUM,
    HD_FOLD_MAXIMUM
} hd_fold_kind;

typedef struct hd_fold {
    hd_fold_kind kind;
    hd_combine_fn combine; /* HD_FOLD_OWN */
    void *ctx;             /* of combine */
    /* The result if there is nothing to combine. Default: 0 for count and sum, otherwise absent. */
    hd_value neutral;
    /* Computes the value that is folded from each element: the result of its row, as in hd_build_map. Without .fn and
     * .build: the element itself, or the value that it links to. */
    hd_each each;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_fold;

/* One value for all elements of a list, in the list's order: combine(combine(v0, v1), v2) and so on, with any
 * brackets. The change of one of n elements costs O(log n) calls of combine on average, and so does an element
 * that is inserted or removed, if the list is one of links or an object; in an array of values the elements
 * behind it move to other indices, which costs O(n), unless it is at the end or `each` has a key. The brackets
 * depend on the elements' keys only (docs/DECISIONS/0130-folds-are-trees.md), so the same list has the same
 * result to the last bit in every program. */
HD_API hd_cell hd_build_fold(hd_build *b, const char *name, hd_cell list, const hd_fold *fold);

/* ---- Patterns in patterns ---------------------------------------------------------------- */

typedef struct hd_named_cell {
    const char *name;
    hd_cell cell;
} hd_named_cell;
/* Builds another pattern into this piece, with these cells as its arguments. Returns the cell of its
 * result. */
HD_API hd_cell hd_build_use(hd_build *b, const char *name, const char *pattern,
                            const hd_named_cell *in, size_t count);

/* A graph that depends on values, of 16 cells at most: `fn` builds a graph for them, and builds again when
 * they change. Nodes that it builds run once, as in rows; nodes that are the same as before stay and do not
 * run again; nodes that it no longer builds end. The result is the value of the cell that fn returned. A
 * change inside the graph does not run fn. */
typedef hd_cell (*hd_derive_pattern_fn)(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx);
HD_API hd_cell hd_build_derive_pattern(hd_build *b, const char *name, hd_derive_pattern_fn fn,
                                       void *ctx, const hd_cell *in, size_t count);

/* ---- Effects and events ------------------------------------------------------------------ */

/* Calls fn with the cell's value, as hd_sink does, as long as the build exists. */
HD_API void hd_build_sink(hd_build *b, const char *name, hd_cell cell, hd_sink_fn fn, void *ctx);
/* The same with the options of hd_sink_spec; the spec must have a name. Its `release` is not called:
 * hd_build_on_stop. */
HD_API void hd_build_sink_spec(hd_build *b, const hd_sink_spec *spec);
/* An address to send events to. */
HD_API hd_cell hd_build_stream(hd_build *b, const char *name);
/* Handles the events of a stream as long as the build exists. `in` are the cells that the handler reads. */
HD_API void hd_build_handler(hd_build *b, hd_cell stream, hd_handler_fn fn, void *ctx,
                             const hd_cell *in, size_t count);

/* ---- Making primitives ------------------------------------------------------------------- */

/* For primitives of your own; examples/09_builtin.c has one. */
HD_API hd_runtime *hd_build_runtime(const hd_build *b);
/* The pool for values that the building function makes: constants, initial states. */
HD_API hd_pool *hd_build_pool(hd_build *b);
/* HD_OK, or the first failure. */
HD_API hd_status hd_build_status(const hd_build *b);
/* Fails the build, unless it has failed before; returns no cell. */
HD_API hd_cell hd_build_fail(hd_build *b, hd_status status, const char *format, ...)
    HD_PRINTF(3, 4);
/* The document of this name: "space/piece/name". */
HD_API hd_cell hd_build_cell(hd_build *b, const char *name);
/* Registers a node of the piece, as hd_node_register does; the build sets its full name and its parent.
 * Returns its output (of an effect: no cell). `release` is called in any case: at once if this fails, else
 * when the node has ended. */
HD_API hd_cell hd_build_node(hd_build *b, const hd_node_spec *spec);
/* Has fn called when the build ends, because the piece stops or the row or derived pattern ends, or when
 * a derived pattern is built again and does not mention fn. It is called after the nodes of the build have
 * ended, the function that was added last first. If this call fails, fn is called at once. */
HD_API void hd_build_on_stop(hd_build *b, hd_release_fn fn, void *ctx);

/* ---- Fetch ------------------------------------------------------------------------------- */

typedef struct hd_fetch_options {
    uint32_t timeout_ms;   /* default 30,000 */
    size_t max_bytes;      /* of the response; default 8 MiB */
    bool text;             /* the body as a string; else as JSON */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_fetch_options;
/* Fetches the URL in a cell (http and https) while a live node or a sink reads the result, which is
 * {"pending": bool, "value"?: ..., "error"?: "..."}; without a URL (absent or null) only "pending", which
 * is false. A new URL cancels the request and begins another; the end of the piece cancels it. Settling
 * waits for it. A response is stored as "name.response", also one with an HTTP error such as 404, and the
 * request is not made again until that document is removed; a request without an answer is made again by
 * the next process. The library libcurl.so.4 is loaded at the first request; if it is missing, "error"
 * says so. */
HD_API hd_cell hd_build_fetch(hd_build *b, const char *name, hd_cell url,
                              const hd_fetch_options *options);

/* ---- Pieces ------------------------------------------------------------------------------ */

/* A handle. After the piece has stopped, functions given the handle do nothing or return HD_NOT_FOUND. */
typedef struct hd_piece {
    uint32_t id; /* 0: none */
    uint32_t generation;
} hd_piece;

typedef struct hd_piece_spec {
    const char *space; /* default "main" */
    const char *id; /* of its document; required, except in hd_tx_launch_piece, which makes one */
    const char *pattern;
    hd_value arguments; /* an object: values, and links to cells; default {} */
    hd_piece parent;    /* the piece stops with its parent, which must run (else HD_NOT_FOUND) */
    /* hd_tx_launch_piece: build when the commit is confirmed, and only if the parent still runs. */
    bool after_commit;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_piece_spec;

/* In the three functions below `out` may be NULL; hd_piece_find then finds the piece by its id.
 *
 * Starts a piece: writes its document (kind "piece": pattern, version, arguments, result, started) and
 * builds its graph. If the document exists, the piece resumes: its nodes run only if something that they
 * read, or their code, has changed (docs/PATTERNS.md); stored arguments that are not given stay. If the
 * piece runs already, the given arguments are written. The id "main" is reserved: HD_USAGE. Outside of
 * transactions and runs. HD_NOT_FOUND: no such pattern, or parent; HD_USAGE; HD_CLOSED: the runtime is being
 * closed; HD_NOMEM; HD_PENDING: the store has not sent the document yet (hd_lab_options.load_late): call
 * again after a pump; or the status that its function failed with. */
HD_API hd_status hd_piece_start(hd_runtime *rt, const hd_piece_spec *spec, hd_piece *out,
                                hd_error *error);
/* Starts a stored piece as its document says, and writes nothing, with two exceptions: a piece that was
 * launched and never built gets its result, and arguments and states that the code asks for and the store
 * does not have get their defaults. `space` NULL is "main". If the piece runs already, *out is its handle; a piece
 * that a transaction has launched still ends if that transaction fails. The runtime opens a piece by itself
 * when a live node reads a document that the piece writes, or an event is sent to "ID/...", if its pattern is
 * registered and the program has not stopped it. Fails as hd_piece_start does. */
HD_API hd_status hd_piece_open(hd_runtime *rt, const char *space, const char *id, hd_piece *out,
                               hd_error *error);
/* Starts a piece in a transaction of a handler, an effect or the program. In a computation: HD_USAGE; use
 * hd_build_derive_pattern there. The transaction writes the piece's document. The piece runs at once (launched by
 * an effect: from the next pump on), and stops again if every transaction that launched it fails. */
HD_API hd_status hd_tx_launch_piece(hd_tx *tx, const hd_piece_spec *spec, hd_piece *out);
/* Stops the piece and its children; inside a run, after that run. Its documents stay in the store, and so
 * does what resume needs. */
HD_API void hd_piece_stop(hd_runtime *rt, hd_piece piece);
/* Stops the piece and deletes its documents, including those of this user and this session. Outside of
 * transactions and runs, and not from functions that pump calls (HD_USAGE, and the piece goes on). */
HD_API hd_status hd_piece_remove(hd_runtime *rt, hd_piece piece);

HD_API bool hd_piece_runs(const hd_runtime *rt, hd_piece piece);
/* The running piece of this id; `space` NULL is "main". id 0: no such piece runs. */
HD_API hd_piece hd_piece_find(const hd_runtime *rt, const char *space, const char *id);
/* The cell that its pattern returned; no cell: the piece does not run. */
HD_API hd_cell hd_piece_result(const hd_runtime *rt, hd_piece piece);
/* Its document; a child "arguments" of it can be written. */
HD_API hd_cell hd_piece_document(const hd_runtime *rt, hd_piece piece);
/* The cell of a name in the pattern: hd_piece_cell(rt, piece, "prices"). No cell: the piece does not run. */
HD_API hd_cell hd_piece_cell(hd_runtime *rt, hd_piece piece, const char *name);

typedef struct hd_piece_info {
    hd_piece piece;
    const char *space, *id, *pattern;
    const char *version; /* NULL: registered without a version */
    uint64_t started;    /* how often it has been started, in any process: kept in its document */
    hd_piece parent;
    uint32_t nodes; /* rows and nested patterns included */
    uint32_t rows;
    hd_cell result;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_piece_info;
/* The texts are good until the runtime is called again. HD_NOT_FOUND. */
HD_API hd_status hd_piece_inspect(const hd_runtime *rt, hd_piece piece, hd_piece_info *out);
/* Calls fn for every piece that runs, in order of their starts, until it returns false. To list stored
 * pieces that do not run, too: hd_runtime_list(rt, space, "piece", ...). */
typedef bool (*hd_piece_fn)(const hd_piece_info *info, void *ctx);
HD_API void hd_runtime_pieces(const hd_runtime *rt, hd_piece_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif

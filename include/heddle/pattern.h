/* heddle/pattern.h -- patterns: graphs built from a few primitives, and pieces: their instances.
 *
 * A *pattern* is a C function that builds a graph. It runs once for each *piece*, which is a durable
 * thing in the store: a document that says which pattern, with which arguments, and where its result
 * is. What the pattern builds stays, and follows its inputs:
 *
 *     static hd_value add_tax(hd_tx *tx, hd_value price, void *ctx) {
 *         return hd_double(hd_value_number(price) * 1.19);
 *     }
 *
 *     static hd_cell shop(hd_build *b) {
 *         hd_cell items = hd_argument(b, "items", hd_array());
 *         return hd_map(b, "prices", items, &(hd_each){ .fn = add_tax });
 *     }
 *
 *     hd_pattern_register(rt, "shop", "1", shop);
 *     hd_piece_start(rt, &(hd_piece_spec){ .id = "corner", .pattern = "shop" }, &piece, &error);
 *     hd_sink(rt, hd_piece_result(rt, piece), show, NULL);
 *
 * NAMES ARE IDENTITY. Every primitive takes a name, which must be unique in its pattern (arguments have
 * names of their own; a state, a stream and an argument may be asked for again): the node
 * "prices" of the piece "corner" in space "main" is the node "main:corner:prices", and writes the
 * document "main/corner/prices". The same piece, started again, finds what it had. A row of a list
 * has the key of its element in its name. Names, and the ids of pieces, have no '/', ':' or '#', and
 * names at most 200 bytes. A ':' in the name of the space is "%3A" in those of nodes, a '%' "%25".
 *
 * NOTHING TO CHECK TWICE. A primitive that fails returns no cell, and the build remembers why; those
 * after it do nothing. Starting the piece then fails with that, and nothing is left of it.
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
typedef hd_cell (*hd_pattern_fn)(hd_build *b);

/* `version` of the code: when it changes, nodes run again on resume. NULL: the build of the program.
 * HD_USAGE: there is another pattern of this name. */
HD_API hd_status hd_pattern_register(hd_runtime *rt, const char *name, const char *version,
                                     hd_pattern_fn fn);

/* ---- Inputs ------------------------------------------------------------------------------ */

/* An argument of the piece: a cell that can be written, and where it is a link, what that leads to.
 * Without one, `otherwise` is written there (absent: nothing is). In a pattern that is used it is the
 * cell that was given, or else a constant. Not in rows and derived patterns (HD_USAGE). One that is given
 * and never asked for is told in the log. */
HD_API hd_cell hd_argument(hd_build *b, const char *name, hd_value otherwise);
/* A value that does not change. */
HD_API hd_cell hd_constant(hd_build *b, const char *name, hd_value v);
/* Memory for what the functions of the pattern have to know, their `ctx`: zeroed at first, and the same
 * whenever this build asks for this name and size again. It is freed after the nodes have gone. The name is
 * among those of memory only. NULL: the build has failed. */
HD_API void *hd_build_memory(hd_build *b, const char *name, size_t size);
/* A document of the piece's own, for handlers to write; `initial` if it is not there. Not in rows and
 * derived patterns (HD_USAGE): they come and go. */
HD_API hd_cell hd_state(hd_build *b, const char *name, hd_value initial);

/* ---- Computing --------------------------------------------------------------------------- */

/* The result for these inputs; absent: there is none. A failed value fails the run: hd_failed(
 * hd_tx_fail(tx, HD_FAILED, "...")) says why. May read more through `tx`. Must be idempotent. */
typedef hd_value (*hd_lift_fn)(hd_tx *tx, const hd_value *in, void *ctx);
typedef hd_value (*hd_derive_fn)(hd_tx *tx, hd_value in, void *ctx);

/* A computation over some inputs, and over one. Runs while somebody looks at its result. */
HD_API hd_cell hd_lift(hd_build *b, const char *name, hd_lift_fn fn, void *ctx, const hd_cell *in,
                       size_t count);
HD_API hd_cell hd_derive(hd_build *b, const char *name, hd_cell in, hd_derive_fn fn, void *ctx);

/* One of two cells. Only the one chosen is looked at: what feeds the other does not run, except once
 * where a run has just built it. Absent, null, false, 0 and "" choose `otherwise`. */
HD_API hd_cell hd_if_else(hd_build *b, const char *name, hd_cell condition, hd_cell then,
                          hd_cell otherwise);
HD_API bool hd_value_is_true(hd_value v);

/* ---- Lists ------------------------------------------------------------------------------- */

/* A part of the graph for one element; returns its result. */
typedef hd_cell (*hd_row_fn)(hd_build *row, hd_cell element, void *ctx);

typedef struct hd_each {
    hd_derive_fn fn; /* a value for each element; or */
    hd_row_fn build; /* a graph for each element */
    void *ctx;
    /* How an element is known again. A link always is by where it points. For values a JSON pointer
     * into the element: "/id", or "" for the element itself; NULL: by its place in the list. The
     * second of two that are the same is known as that. */
    const char *key;
} hd_each;

/* A list of links, one for each element, to its row's result. A row stays as long as its element is in
 * the list, wherever it stands, and runs when its element changes: a change of one of n elements runs
 * one row and takes O(log n), an append as well. All of a row runs once when it has been built, and from
 * then on while somebody follows its link. What is no array has no rows; unless it is absent or null, the
 * log says so. */
HD_API hd_cell hd_map(hd_build *b, const char *name, hd_cell list, const hd_each *each);
/* The elements whose row is true. Links stay links. */
HD_API hd_cell hd_filter(hd_build *b, const char *name, hd_cell list, const hd_each *each);
/* The elements of the rows' lists, one after the other; a row that is no list adds nothing. */
HD_API hd_cell hd_flat_map(hd_build *b, const char *name, hd_cell list, const hd_each *each);
/* The values behind a list's links. Filter, flat_map and this look at every row: O(n) when one of
 * them changes, though only that one runs. */
HD_API hd_cell hd_gather(hd_build *b, const char *name, hd_cell list);
/* The same for use in an action. A failed value as from hd_tx_get. */
HD_API hd_value hd_tx_get_list(hd_tx *tx, hd_cell list);

/* ---- Patterns in patterns ---------------------------------------------------------------- */

typedef struct hd_named_cell {
    const char *name;
    hd_cell cell;
} hd_named_cell;
/* Builds another pattern into this piece; its arguments are these cells. Returns its result. */
HD_API hd_cell hd_use(hd_build *b, const char *name, const char *pattern, const hd_named_cell *in,
                      size_t count);

/* A pattern that depends on values, 16 at most: `fn` builds a graph for them, and does so again when they
 * change. What it builds runs once, as in rows; what is the same as before stays and does not run again;
 * what it no longer builds is stopped. The result is a link to what fn returned. A change in the graph does
 * not run fn. */
typedef hd_cell (*hd_derive_pattern_fn)(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx);
HD_API hd_cell hd_derive_pattern(hd_build *b, const char *name, hd_derive_pattern_fn fn, void *ctx,
                                 const hd_cell *in, size_t count);

/* ---- Effects and events ------------------------------------------------------------------ */

/* Calls fn with the cell's value, as hd_sink, as long as the piece runs. */
HD_API void hd_build_sink(hd_build *b, const char *name, hd_cell cell, hd_sink_fn fn, void *ctx);
/* The same with more to say; the spec must have a name. */
HD_API void hd_build_sink_spec(hd_build *b, const hd_sink_spec *spec);
/* An address to send events to. */
HD_API hd_cell hd_stream(hd_build *b, const char *name);
/* Handles the events of a stream as long as the piece runs. `in` is what the handler reads. */
HD_API void hd_handle(hd_build *b, hd_cell stream, hd_handler_fn fn, void *ctx, const hd_cell *in,
                      size_t count);

/* ---- Making primitives ------------------------------------------------------------------- */

/* All of the above is written on these. See examples/ for one of your own. */
HD_API hd_runtime *hd_build_runtime(const hd_build *b);
/* For values that the building function makes: constants, first states. */
HD_API hd_pool *hd_build_pool(hd_build *b);
/* HD_OK, or what failed first. */
HD_API hd_status hd_build_status(const hd_build *b);
/* Remembers a failure (the first one counts); returns no cell. */
HD_API hd_cell hd_build_fail(hd_build *b, hd_status status, const char *format, ...)
    HD_PRINTF(3, 4);
/* The document of this name: "space/piece/name". */
HD_API hd_cell hd_build_cell(hd_build *b, const char *name);
/* A node of the piece: as hd_node_register; name and parent are put in their place. Returns its
 * output (of an effect: no cell). `release` is called in any case, at once if it fails. */
HD_API hd_cell hd_build_node(hd_build *b, const hd_node_spec *spec);
/* Called when the piece stops, or the part of it that is being built, or when a derived pattern is
 * built again and does not mention it; after the nodes have gone, the latest first. In any case: at
 * once if it fails. */
HD_API void hd_build_on_stop(hd_build *b, void (*fn)(void *ctx), void *ctx);

/* ---- Fetch ------------------------------------------------------------------------------- */

typedef struct hd_fetch_options {
    uint32_t timeout_ms; /* default 30,000 */
    size_t max_bytes;    /* of the response; default 8 MiB */
    bool text;           /* the body as a string; else as JSON */
} hd_fetch_options;
/* Fetches what a URL in a cell names (http and https) while somebody looks at the result, which is
 * {"pending": bool, "value"?: ..., "error"?: "..."}; without a URL (absent or null) only "pending", which
 * is false. A new URL cancels the request and begins another; the end of the piece cancels it. Settling
 * waits for it. A response is stored as "name.response", also one that says HTTP 404, and not asked for again
 * until that document is removed; a request that was not answered, or did not get through, is made again by
 * the next process. The library libcurl.so.4 is loaded at the first request;
 * where it is missing, the error says so. */
HD_API hd_cell hd_fetch(hd_build *b, const char *name, hd_cell url,
                        const hd_fetch_options *options);

/* ---- Pieces ------------------------------------------------------------------------------ */

/* A handle. It stays harmless when the piece has stopped. */
typedef struct hd_piece {
    uint32_t id; /* 0: none */
    uint32_t generation;
} hd_piece;

typedef struct hd_piece_spec {
    const char *space; /* default "main" */
    const char *id;    /* of its document; required, except in a handler, which mints one */
    const char *pattern;
    hd_value arguments; /* an object: values, and links to cells; default {} */
    hd_piece parent;    /* it stops with this one, which must run: HD_NOT_FOUND */
    /* hd_tx_launch_piece: begins only when the commit is confirmed, and if its parent still runs. */
    bool after_commit;
} hd_piece_spec;

/* In all three below `out` may be NULL: hd_piece_find finds it by its id.
 *
 * Starts a piece: writes its document (kind "piece": pattern, version, arguments, result, started) and
 * builds its graph. One that was there before goes on: its nodes run only where something that they
 * read, or their code, has changed (docs/PATTERNS.md); arguments that are not given stay. One that runs
 * already goes on, with these arguments. The id "main" is taken: HD_USAGE. Outside of transactions
 * and runs. HD_NOT_FOUND: no such pattern, or parent; HD_USAGE; HD_CLOSED: the runtime is being closed;
 * HD_NOMEM; HD_PENDING: the store has yet to send its document (hd_memory_options.load_late): again after
 * a pump; what its function failed with. */
HD_API hd_status hd_piece_start(hd_runtime *rt, const hd_piece_spec *spec, hd_piece *out,
                                hd_error *error);
/* Starts a piece that is in the store, as its document says, and changes nothing there, unless it was
 * launched and never built, or its code asks for an argument or a state that it did not have before:
 * those get their defaults. `space` NULL is "main". Happens by itself when a live node reads what the piece
 * writes, or an event is sent to "ID/...", its pattern is registered, and the program has not stopped
 * it. */
HD_API hd_status hd_piece_open(hd_runtime *rt, const char *space, const char *id, hd_piece *out,
                               hd_error *error);
/* Starts a piece with a transaction, of a handler, an effect or the program; not of a computation
 * (HD_USAGE), for which there is hd_derive_pattern. Its document is part of it. The piece runs from now
 * on (of an effect: from the next pump on), and stops if no transaction that launched it commits. */
HD_API hd_status hd_tx_launch_piece(hd_tx *tx, const hd_piece_spec *spec, hd_piece *out);
/* Stops it, with its children; inside a run, when that is over. What it has written stays, and what is
 * known of its nodes. */
HD_API void hd_piece_stop(hd_runtime *rt, hd_piece piece);
/* Stops it and deletes its documents, also this user's and this session's. Outside of transactions and
 * runs, and not from what pump calls (HD_USAGE, and the piece goes on). */
HD_API hd_status hd_piece_remove(hd_runtime *rt, hd_piece piece);

HD_API bool hd_piece_runs(const hd_runtime *rt, hd_piece piece);
HD_API hd_piece hd_piece_find(const hd_runtime *rt, const char *space, const char *id);
/* What its pattern returned; no cell: it does not run. */
HD_API hd_cell hd_piece_result(const hd_runtime *rt, hd_piece piece);
/* Its document; a child "arguments" of it can be written. */
HD_API hd_cell hd_piece_document(const hd_runtime *rt, hd_piece piece);
/* A cell that the pattern named: hd_piece_cell(rt, piece, "prices"). No cell: it does not run. */
HD_API hd_cell hd_piece_cell(hd_runtime *rt, hd_piece piece, const char *name);

typedef struct hd_piece_info {
    hd_piece piece;
    const char *space, *id, *pattern;
    const char *version; /* NULL: the build */
    uint64_t started;    /* how often, ever: kept in its document */
    hd_piece parent;
    uint32_t nodes; /* rows and nested patterns included */
    uint32_t rows;
    hd_cell result;
} hd_piece_info;
HD_API hd_status hd_piece_inspect(const hd_runtime *rt, hd_piece piece, hd_piece_info *out);
/* Every piece that runs, in the order in which they were started. All there are, also those that do
 * not run: hd_runtime_list(rt, space, "piece", ...). */
HD_API void hd_runtime_pieces(const hd_runtime *rt,
                              bool (*fn)(void *ctx, const hd_piece_info *info), void *ctx);

#ifdef __cplusplus
}
#endif
#endif

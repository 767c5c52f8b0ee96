/* encode.h -- values of the evaluator as values of the store, and back, exactly.
 *
 *     None, bool, int, float, bytes      themselves
 *     str                                itself; with lone surrogates {"$str": [code points]}
 *     list                               array
 *     dict, all keys str                 object; where the order of its keys is not that of the object,
 *                                        "$keys" is the list of them in order
 *     dict with other keys               {"$dict": [[key, value], ...]}
 *     tuple, set, range                  {"$tuple": [...]}, {"$set": [...]}, {"$range": [a, b, c]}
 *     named tuple                        {"$tuple": [...], "class": "Point"}
 *     record                             {"$record": "Item", field: value, ...}, "$keys" as in a dict
 *     exception                          {"$error": "ValueError", "message": str, "args": [...],
 *                                        "attrs": {...}, "cause": {...}}
 *     enum                               {"$enum": "Color", "name": "RED", "value": 1}
 *     class                              {"$type": "int"}
 *     object by number                   {"$ref": 17}, see below
 *
 * A key of the program that begins with "$" is written with the "$" doubled, so a dict that looks like an
 * encoding crosses unchanged. */
#ifndef EXPR_ENCODE_H
#define EXPR_ENCODE_H

#include "expr/raise.h"

#include <heddle/value.h>

/* By value: aliases become copies. A failed value: the exception is pending in the world (TypeError for
 * what cannot cross, ValueError for a circle), or the status is HD_NOMEM. */
hd_value encode_value(world *w, hd_pool *pool, ev v);

/* The content of one object, where what it refers to with identity is written as {"$ref": number}. An
 * object that has no number gets one from `number`, which also decides what to do with it. */
typedef uint32_t (*encode_number_fn)(void *ctx, world *w, ev object);
hd_value encode_object(world *w, hd_pool *pool, ev object, encode_number_fn number, void *ctx);
/* A value for a variable: {"$ref": number} for an object, also inside tuples. */
hd_value encode_slot(world *w, hd_pool *pool, ev v, encode_number_fn number, void *ctx);

/* HD_SYNTAX with a message for what is no encoding. `error` may be NULL. */
hd_status decode_value(world *w, hd_value from, ev *out, hd_error *error);
/* The object with a number: from a table of the engine, or world_stub(). */
typedef ev (*decode_ref_fn)(void *ctx, world *w, uint32_t number);
hd_status decode_slot(world *w, hd_value from, decode_ref_fn find, void *ctx, ev *out,
                      hd_error *error);
/* Fills an object made by world_stub() with its content. */
hd_status decode_object(world *w, hd_value from, ev object, decode_ref_fn find, void *ctx,
                        hd_error *error);

#endif

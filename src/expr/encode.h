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
 *                                        "attrs": {...}, "cause": {...}}; of a class of the program also
 *                                        "bases", the classes above it to the first built-in one; in an
 *                                        instance's document "raised", the function and node that raised it
 *     enum                               {"$enum": "Color", "name": "RED", "value": 1}
 *     class                              {"$type": "int"}
 *     object by number                   {"$ref": 17}, see below; "view": "keys", "values" or "items" of that dict
 *     list that is used as a queue       {"$list": [...], "from": n}, only as an object of an instance's document: the
 *                                        elements before the nth are gone
 *     iterator                           {"$iterator": "zip"}, only in an instance's document: keeping it has raised
 *                                        Unsupported already, and so does reading it
 *
 * In an instance's document "$keys", "$dict" and "$set" have a hole, [], where an entry was deleted.
 *
 * A class that is not known when it is decoded is made: a record that may have any attribute, a named tuple without
 * names, an exception below its "bases".
 *
 * A key of the program that begins with "$" is written with the "$" doubled, so a dict that looks like an
 * encoding crosses unchanged. An object that has such a tag and is not of its form, because the tag's value is of
 * another kind or a key beside it is none of the form's, is no encoding: it is a dict with those keys. */
#ifndef EXPR_ENCODE_H
#define EXPR_ENCODE_H

#include "expr/raise.h"

#include <heddle/value.h>

/* No element of a set, pair of a dict or name is an empty array. */
#define ENCODE_HOLE hd_array()

/* By value: aliases become copies. A failed value: the exception is pending in the world (TypeError for
 * what cannot cross, ValueError for a circle), or the status is HD_NOMEM. */
hd_value encode_value(world *w, hd_pool *pool, ev v);

/* For those who do not know of encodings: the same, with the keys of dicts as they are, and without their order. */
hd_value encode_plain(world *w, hd_pool *pool, ev v);

/* The content of one object, where what it refers to with identity is written as {"$ref": number}. An
 * object that has no number gets one from `number`, which also decides what to do with it. */
typedef uint32_t (*encode_number_fn)(void *ctx, world *w, ev object);
hd_value encode_object(world *w, hd_pool *pool, ev object, encode_number_fn number, void *ctx);
/* A change of an object whose content is stored, as operations below that content. False: none are small; the content
 * is to be written by encode_object. A failed value in one of them means what it means for encode_slot. */
typedef enum encode_how {
    ENCODE_SET,
    ENCODE_REMOVE,
    ENCODE_APPEND,
    ENCODE_KEEP /* an array: `value` elements at its beginning are left */
} encode_how;
typedef struct encode_op {
    encode_how how;
    uint32_t length;
    const char *path[3]; /* belong to the pool */
    hd_value value;
} encode_op;
typedef struct encode_ops {
    uint32_t count;
    encode_op ops[2];
} encode_ops;
bool encode_change(world *w, hd_pool *pool, const change *c, encode_number_fn number, void *ctx,
                   encode_ops *out);
/* A key of a dict as the name that it has in an object, as bytes: with the dollar doubled. */
ev encode_name(world *w, const text *t);
/* A value for a variable: {"$ref": number} for an object, also inside tuples. */
hd_value encode_slot(world *w, hd_pool *pool, ev v, encode_number_fn number, void *ctx);

/* HD_SYNTAX with a message for what is no encoding. `error` may be NULL. */
hd_status decode_value(world *w, hd_value from, ev *out, hd_error *error);
/* The object with a number: from a table of the engine, or world_stub(). */
typedef ev (*decode_ref_fn)(void *ctx, world *w, uint32_t number);
hd_status decode_slot(world *w, hd_value from, decode_ref_fn find, void *ctx, ev *out,
                      hd_error *error);
/* world_stub() for an object with this content. Its class is made if it is not known; EV_FAIL: it names none, or no
 * memory. */
ev decode_stub(world *w, hd_value content, uint32_t number);
/* Fills an object made by world_stub() with its content. */
hd_status decode_object(world *w, hd_value from, ev object, decode_ref_fn find, void *ctx,
                        hd_error *error);

#endif

/* schema_match.h -- the matcher that validation, projection and schema_choose share. */
#ifndef HD_VALUE_SCHEMA_MATCH_H
#define HD_VALUE_SCHEMA_MATCH_H

#include "base/table.h"
#include "base/vec.h"
#include "value/schema.h"

/* Where in the value we are; a chain on the C stack, for messages. */
typedef struct schema_place {
    const struct schema_place *parent; /* NULL: the root, and the rest means nothing */
    const char *key;                   /* NULL: an index */
    size_t key_length;
    size_t index;
} schema_place;

/* A decision that is kept: which alternative of a node a value takes. */
typedef struct schema_decision {
    const schema_node *node;
    uint64_t bits;             /* of the value; values are alive and unchanged meanwhile */
    const schema_node *choice; /* NULL: none fits */
} schema_decision;

typedef struct schema_kept {
    const char *key; /* NULL: an element */
    size_t key_length;
    hd_value value;
} schema_kept;

typedef struct schema_match {
    const hd_env *env;
    hd_error *error; /* NULL: the caller wants no message */
    hd_pool *pool;   /* of a projection */
    /* Called for each place where a value does not match or lacks a key; NULL: not called. */
    void (*mismatch)(struct schema_match *m, const schema_place *at, bool lacks_key);
    void *ctx;        /* for mismatch */
    bool reading;     /* the rules of a read: boundaries are opaque, optional parts may mismatch */
    unsigned quiet;   /* > 0: inside an alternative; another may match, so a mismatch is no error */
    unsigned frames;  /* nested calls; at most SCHEMA_FRAMES_MAX */
    unsigned choices; /* nested choices; at 0 the decisions are forgotten */
    table known;      /* hash of (node, bits) -> decisions */
    VEC(schema_decision) decisions;
    VEC(schema_kept) kept; /* of a projection: parts of containers that are being projected */
} schema_match;

void schema_match_init(schema_match *m, const hd_schema *schema, bool reading);
void schema_match_fini(schema_match *m);

/* HD_OK, HD_MISMATCH (m->error says why unless quiet), HD_LIMIT, HD_NOMEM, or a failed v's status. */
hd_status schema_match_node(schema_match *m, const schema_node *node, hd_value v,
                            const schema_place *at);
/* The part of that which does not look inside v: type, const, enum. */
hd_status schema_match_self(schema_match *m, const schema_node *node, hd_value v,
                            const schema_place *at);
/* The first alternative that v matches, or NULL. */
hd_status schema_match_choose(schema_match *m, const schema_node *node, hd_value v,
                              const schema_place *at, const schema_node **out);
/* Decisions are kept between these two; they nest. */
void schema_match_begin_choice(schema_match *m);
void schema_match_end_choice(schema_match *m);

#endif

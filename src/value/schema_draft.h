/* schema_draft.h -- a schema while it is being compiled: keywords, drafts, failure.
 *
 * There is a draft for each schema inside the schema, in one list, parents first. The list is the
 * compiler's queue: filling a draft appends its children. See schema_compile.c. */
#ifndef HD_VALUE_SCHEMA_DRAFT_H
#define HD_VALUE_SCHEMA_DRAFT_H

#include "base/table.h"
#include "base/vec.h"
#include "value/schema.h"

typedef enum keyword {
    KEYWORD_ADDITIONAL,
    KEYWORD_ANY_OF,
    KEYWORD_AS_CELL,
    KEYWORD_AS_STREAM,
    KEYWORD_CONST,
    KEYWORD_DEFAULT,
    KEYWORD_DEFS,
    KEYWORD_DESCRIPTION,
    KEYWORD_ENUM,
    KEYWORD_ITEMS,
    KEYWORD_PREFIX_ITEMS,
    KEYWORD_PROPERTIES,
    KEYWORD_REF,
    KEYWORD_REQUIRED,
    KEYWORD_SHALLOW,
    KEYWORD_TITLE,
    KEYWORD_TYPE,
    KEYWORD_COUNT
} keyword;

/* `child`: holds a schema at that key ("one"), or schemas below it by key or index ("many").
 * `shape`: says something about parts of the value, so it cannot stand beside anyOf.
 * `brand`: may stand beside $ref, and adds to what that says. */
typedef struct keyword_info {
    const char *name;
    unsigned kinds;   /* of the value it takes: bits 1 << hd_kind */
    const char *want; /* the same in words */
    enum { CHILD_NONE, CHILD_ONE, CHILD_MANY } child;
    bool shape, brand;
} keyword_info;

extern const keyword_info schema_keywords[KEYWORD_COUNT];

/* KEYWORD_COUNT: there is no such keyword. */
keyword schema_keyword_find(const char *name, size_t length);

#define DRAFT_NONE UINT32_MAX

/* One schema inside the schema while it is being compiled. Children follow their parent in the
 * list; those of one anyOf follow each other. */
typedef struct draft {
    schema_node *node;
    hd_value source;
    uint32_t parent; /* DRAFT_NONE: the root */
    keyword keyword; /* of the parent that holds us; the rest of our path is `name` */
    const char *name;
    size_t name_length; /* name NULL: the keyword holds one schema only */
    uint32_t depth;
    uint32_t any_first; /* the first draft of our anyOf */
    uint32_t target;    /* what $ref names; DRAFT_NONE: no reference */
    enum { UNSEEN, OPEN, SETTLED } state;
} draft;

typedef struct settle_frame {
    uint32_t draft, next;
} settle_frame;

typedef struct schema_compiler {
    hd_schema *schema;
    const hd_env *env;
    hd_error *error;
    hd_status status; /* the first failure */
    VEC(draft) drafts;
    table children;                  /* hash of (parent, keyword, name) -> draft */
    VEC(schema_property) properties; /* of the draft that is being filled */
    VEC(settle_frame) open;
} schema_compiler;

/* What a draft says at a keyword; absent if nothing. */
static inline hd_value draft_keyword(const schema_compiler *c, uint32_t i, keyword k) {
    return hd_value_at(c->drafts.items[i].source, schema_keywords[k].name);
}

/* Appends a draft with an empty node. False: no memory. */
bool draft_add(schema_compiler *c, draft d);
/* Appends the draft of a schema that `parent` holds at keyword and name (NULL: at the keyword
 * itself), and returns its node; NULL after a failure. */
schema_node *draft_add_child(schema_compiler *c, uint32_t parent, keyword k, const char *name,
                             size_t length, hd_value source);
/* The draft at keyword and name ("": at the keyword itself), or DRAFT_NONE. */
uint32_t draft_find_child(const schema_compiler *c, uint32_t parent, keyword k, const char *name,
                          size_t length);
/* Checks the keywords of a draft, fills its node, appends its children. False after a failure. */
bool draft_fill(schema_compiler *c, uint32_t i);

/* Ascending by key; of schema_property, for bsearch and qsort. */
int draft_compare_properties(const void *a, const void *b);

/* ---- Failure ----------------------------------------------------------------------------- */

/* What of a schema is wrong: a keyword, or a key or index below it, or the whole. */
typedef struct spot {
    const char *keyword, *key; /* NULL: not so far */
    size_t key_length;
} spot;

extern const spot spot_itself;
spot spot_keyword(keyword k);
spot spot_key(const char *key, size_t length);
spot spot_index(keyword k, size_t index, char text[static 24]);

/* Both record the failure and return false. */
bool draft_fail(schema_compiler *c, uint32_t i, spot s, const char *format, ...) HD_PRINTF(4, 5);
bool draft_fail_memory(schema_compiler *c);

static inline bool draft_same_text(const char *a, size_t a_length, const char *b, size_t b_length) {
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

#endif

/* place.h -- documents, and the places in them that are read, written or named by a handle.
 *
 * A *place* is an address that has been interned: a document, or a path inside one. It is a small
 * integer; reads, claims and causes are arrays of them. The record behind it is one cache line that
 * holds the value which is visible there now, so that a read by handle is a load:
 *
 *     document (root place) "main/cart"   value {items: [...], note: "x"}
 *       +-- place "/items"                value [...]        borrowed from the root's tree
 *       |     +-- place "/items/0"
 *       +-- place "/note"
 *
 * The places of a document form a tree with the same shape as their paths. When the document
 * changes, one walk of this tree and of the old and the new value together, pruned where both share
 * structure, brings each place up to date and tells which of them changed (place_walk, MATCHING).
 * A document without inner places costs no walk at all.
 *
 * Metadata of a document is a root place of its own, with the same id in a home marked `meta`.
 *
 * Cost: find a known place one hash lookup per segment; read O(1); update of a document: the places
 * below what changed. */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "base/table.h"
#include "base/vec.h"
#include "value/heap.h"
#include "value/path.h"
#include "value/value.h"

typedef uint32_t place_id; /* 0 is no place */

/* The low bits of a read key are a place; these say how it was read. */
#define KEY_SHAPE    UINT32_C(0x80000000) /* shape only; else deep */
#define KEY_NO_CLAIM UINT32_C(0x40000000) /* a dependency, but no claim */
#define KEY_PLACE    UINT32_C(0x3FFFFFFF)
#define PLACE_MAX    UINT32_C(0x3EFFFFFF)
/* A cell with a schema is no place: its handle lies above them. */
#define CELL_SCHEMA UINT32_C(0x3F000000)

_Static_assert(!(KEY_SHAPE & KEY_NO_CLAIM) && !((KEY_SHAPE | KEY_NO_CLAIM) & KEY_PLACE),
               "a key is a place and two flags");
_Static_assert(PLACE_MAX < CELL_SCHEMA && CELL_SCHEMA < KEY_PLACE, "no cell has two meanings");

/* Sequence numbers stay below this: a thousand commits a second for nine thousand years. */
#define SEQ_MAX ((UINT64_C(1) << 48) - 1)

/* What the replica knows of a document. */
enum {
    DOC_KNOWN = 1,          /* confirmed absent or present at `seq`; else neither may be claimed */
    DOC_VOLATILE = 2,       /* lives in this runtime only */
    DOC_OVERLAY = 4,        /* derived: the visible value is a computation's, not confirmed */
    DOC_UNSEALED = 8,       /* ... and is in the list of outputs to seal */
    DOC_HAS_SHAPE = 16,     /* some reader read it by shape */
    DOC_LOADING = 32,       /* a late load is in flight */
    DOC_PINNED = 64,        /* a handle was given out: never freed */
    DOC_MULTI_WRITER = 128, /* `writer` is an index into the observer's list of lists */
    DOC_ASKED = 512,     /* belongs to the observer: the piece that may write it was looked for */
    DOC_OF_PIECE = 1024, /* ditto: a piece writes it that may not run here */
    DOC_PASSING = 256,   /* goes with its last reference: it is not expected to be read again */
    DOC_PLANNED = 2048,  /* the replica's plan under way has an item for it */
    DOC_FORSWORN = 8192  /* belongs to the patterns: a piece that the program has stopped */
};

_Static_assert(DOC_FORSWORN <= UINT16_MAX, "a place has 16 bits for them");

/* 64 bytes, one cache line; see places_check for the invariants. */
typedef struct place {
    /* Visible now. Roots own a reference; inner places borrow from their root's tree. While the record
     * stands for a document, place_show alone writes a root's value; place.c alone writes those of inner
     * places, which follow their root. */
    hd_value value;

    /* The replica's revision of the last visible change of this very value; 0: never. Causes are
     * the reads whose rev is above that of the reader's last run. It never falls, and no inner place's is
     * above its root's. Written like `value`. */
    uint64_t rev;

    /* Belongs to the observer (the scheduler's reader lists). 0: it is not watched. */
    uint64_t watch;

    place_id root;        /* the document's place; its own id for a document */
    place_id first_child; /* inner places one segment below */

    union {
        struct {
            struct key *id;    /* of the document; one reference */
            uint32_t over;     /* index of pending layers or kept confirmed value; 0: none */
            uint32_t refs;     /* by journals, commits and inner places, which need the record */
            uint32_t home;     /* index into places.homes */
            uint32_t writer;   /* belongs to the observer: the node whose static output it is */
            uint64_t seq : 48; /* confirmed as of, in its space's sequence */
            uint64_t flags : 16;
        } doc;
        struct {
            struct key *key; /* last segment; one reference */
            place_id parent;
            place_id next, prev; /* siblings, from the parent's first_child on; 0 ends */
            uint32_t refs;
            hd_path path;   /* from the root; one reference */
            uint32_t flags; /* DOC_HAS_SHAPE, DOC_PINNED */
        } in;
    };
} place;

_Static_assert(sizeof(place) == 64, "a place is one cache line");

/* Where documents live: a space, and for user and session scope whose. */
typedef struct doc_home {
    struct key *space;
    struct key *instance; /* NULL for space scope */
    hd_scope scope;
    bool meta;
} doc_home;

typedef struct places {
    place *at; /* at[0] is unused, and always reads as absent */
    uint32_t count, capacity;
    const hd_env *env;
    hd_heap *heap;
    place_id free;  /* freed records, linked through first_child */
    uint32_t freed; /* how many those are */
    uint32_t documents;
    table names;    /* (home, id) -> root place */
    table children; /* (parent, key) -> inner place */
    VEC(doc_home) homes;
    uint64_t walked; /* index entries visited by place_walk */
    /* Told when the record of a document ends, before it stands for another: what is kept elsewhere
     * under its number is to be forgotten. NULL: nothing is. */
    void (*ended)(void *ctx, place_id doc);
    void *ended_ctx;
} places;

hd_status places_init(places *ps, const hd_env *env, hd_heap *heap);
void places_fini(places *ps);
void places_check(const places *ps);

static inline place *place_at(const places *ps, place_id id) {
    assert(id < ps->count);
    return &ps->at[id];
}
static inline void place_set_seq(place *doc, uint64_t seq) {
    assert(seq <= SEQ_MAX);
    doc->doc.seq = seq & SEQ_MAX;
}
/* The record of the document that it is in. */
static inline place *place_doc(const places *ps, place_id id) {
    assert(place_at(ps, id)->root);
    return place_at(ps, place_at(ps, id)->root);
}
static inline bool place_is_doc(const places *ps, place_id id) {
    assert(id && id < ps->count);
    return ps->at[id].root == id;
}

/* Interns; `out` is unchanged on failure. The record stays while refs > 0 or it is pinned, watched
 * or has inner places. */
hd_status places_home(places *ps, struct key *space, hd_scope scope, struct key *instance,
                      bool meta, uint32_t *out);
uint32_t places_find_home(const places *ps, const struct key *space, hd_scope scope,
                          const struct key *instance, bool meta);
hd_status places_doc(places *ps, uint32_t home, struct key *id, place_id *out);
/* There is none of this name. */
hd_status places_new_doc(places *ps, uint32_t home, struct key *id, place_id *out);
hd_status places_child(places *ps, place_id parent, struct key *key, place_id *out);
hd_status places_inner(places *ps, place_id doc, hd_path path, place_id *out);
place_id places_find_doc(const places *ps, uint32_t home, const struct key *id);

static inline void place_ref(places *ps, place_id id) {
    place *p = place_at(ps, id);
    assert(p->root); /* the record stands for something */
    if (p->root == id) p->doc.refs++;
    else p->in.refs++;
}
/* Frees the record if nothing needs it any more, and then its parents. Documents stay known, but for DOC_PASSING. */
void place_unref(places *ps, place_id id);

/* Frees the record of a document that is not needed: nothing refers to it, no handle was given out, and
 * all that is known of it is stored. */
bool places_forget(places *ps, place_id doc);

/* From the root. HD_PATH_ROOT for a document. Borrowed from the place. */
static inline hd_path place_path(const places *ps, place_id id) {
    return place_is_doc(ps, id) ? HD_PATH_ROOT : ps->at[id].in.path;
}
/* Whether one lies on the way to the other (or is it). Both of one document or not. */
bool place_related(const places *ps, place_id a, place_id b);

/* Makes `after` (taken) the visible value of a document, as of `rev`, and returns the value before, which
 * is the caller's now. Every visible change goes through here. place_walk comes next; a caller may leave it
 * out if the document has no inner places and the caller tells the observer itself. */
static inline hd_value place_show(place *doc, hd_value after, uint64_t rev) {
    assert(rev >= doc->rev && !value_is_failed(after));
    hd_value before = doc->value;
    doc->value = after;
    doc->rev = rev;
    return before;
}

/* Tells of each *watched* place whose value changed; `shape` if its shape did too (or it has no
 * readers by shape).
 * `before` and `after` are what it read before and reads now. */
typedef void (*place_changed_fn)(void *ctx, place_id id, bool shape, hd_value before,
                                 hd_value after);

/* After place_show, which returned `before`; the caller still holds it. Brings the inner places up to date,
 * gives the changed ones the document's rev, and calls fn for those that are watched, the root included. */
void place_walk(places *ps, place_id doc, hd_value before, place_changed_fn fn, void *ctx);

/* The document has changed, and its new value is not known here: every place of it gets `rev`, and fn is
 * called for those that are watched, with no values. What is visible stays until the caller shows more. */
void place_touch(places *ps, place_id doc, uint64_t rev, place_changed_fn fn, void *ctx);

#endif

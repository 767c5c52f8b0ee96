/* world.h -- where the objects of a workflow instance live.
 *
 * A world owns memory, objects, classes, the pending exception and the journal of changes. One world
 * per instance that is being worked on, or one for several: the objects of different instances never
 * meet, because evs cross instances by value only (encode.h).
 *
 * MEMORY comes in blocks of sixteen size classes and is kept when freed, so that an evaluation in the
 * steady state asks the environment for nothing. What is larger than WORLD_BLOCK_MAX comes from the
 * environment directly. `bytes` is limited: beyond the limit `failure` is set, which the machine turns
 * into a MemoryError that a handler can catch. That the environment itself has no memory is not the
 * expression's fault: then `status` is HD_NOMEM, and the evaluation must be done again.
 *
 * THE JOURNAL. An object that the engine has stored is marked by world_track(). Each change of such an
 * object appends a `change`: the engine reads w->journal after an evaluation, writes each as one small
 * operation, and calls world_journal_clear(). A change holds references to what it names.
 *
 * LOADING. world_stub() makes an object that is known by number only. The first operation that looks
 * inside calls the loader given by world_set_loader(), which fills it. */
#ifndef EXPR_WORLD_H
#define EXPR_WORLD_H

#include "base/env.h"
#include "base/hint.h"
#include "base/list.h"
#include "base/slab.h"
#include "base/vec.h"
#include "expr/ev.h"

#define WORLD_BLOCK_MAX  512
#define WORLD_CLASSES    (WORLD_BLOCK_MAX / 32)
#define WORLD_SPARE_TEXT 6
#define WORLD_COUNT_MAX  UINT32_C(0x7FFFFFF0) /* elements of one container */

typedef struct world world;

typedef struct world_limits {
    size_t bytes;   /* that one evaluation adds; default 256 MiB. Beyond: MemoryError */
    uint64_t steps; /* of one evaluation; default 100 million. Beyond: Unsupported */
    uint32_t depth; /* nesting while comparing, printing, encoding; default 200. RecursionError */
} world_limits;

/* What happened to an object that is tracked. */
typedef enum change_op {
    CHANGE_APPEND, /* list: value at the end; dict, set, record: key was not there */
    CHANGE_SET,    /* list: index; dict, record: key, which is entry number `index` */
    CHANGE_DELETE, /* list: `key` elements from index on, `value` are left; dict, set, record: key, entry `index` */
    CHANGE_INSERT, /* list: value before index */
    CHANGE_CLEAR,
    /* The whole content is new, see the object itself: sort, reverse, slices, every change of an exception. */
    CHANGE_REPLACE,
} change_op;

typedef struct change {
    ev object;
    uint32_t op;
    uint32_t index;
    ev key, value;
} change;

typedef struct scratch {
    void *data;
    size_t size;
} scratch;

typedef enum world_failure {
    FAILURE_NONE,
    FAILURE_MEMORY,
    FAILURE_DEPTH,
    FAILURE_STEPS
} world_failure;

/* Fills an unloaded object. Returns HD_OK, or a status that ends the evaluation. */
typedef hd_status (*world_load_fn)(void *ctx, world *w, ev object);

struct world {
    hd_env env;
    world_limits limits;
    slab blocks[WORLD_CLASSES]; /* by size / 32, rounded up */
    list large;                 /* blocks above WORLD_BLOCK_MAX */
    size_t bytes;               /* in blocks that are in use */
    size_t bytes_most;          /* what `bytes` may become; by world_begin and world_begin_stored */
    uint32_t objects;           /* that exist; `zeroes` has room for all of them */
    uint32_t iterators;         /* among them: see machine.c */
    uint64_t seed;              /* of hashes */
    VEC(obj *) zeroes;          /* may be unreferenced; each has OBJ_ZERO */

    ev pending;       /* the exception that was raised, or EV_UNBOUND; referenced */
    hd_status status; /* not HD_OK: the evaluation must end with it, no handler catches it */
    uint8_t failure;  /* a world_failure: a limit was reached; the machine raises the exception */
    const char *failure_at; /* of FAILURE_DEPTH: the end of its message */
    uint32_t depth;         /* of nesting, while something recurses */
    uint64_t steps;         /* left in this evaluation */

    VEC(change) journal;
    world_load_fn load;
    void *load_ctx;
    /* Told the number of each tracked object that is freed. NULL: nothing wants to know. */
    void (*freed)(void *ctx, uint32_t number);
    void *freed_ctx;

    struct classes *classes; /* see class.h; borrowed */
    /* The class of an operand that type_name has named and whose operators the program has; 0: none. The TypeError that
     * is raised next becomes Unsupported. Written by raise.c. */
    uint32_t own_class;
    /* The machine, for iterators that run code and functions that are values; see machine.h, the
     * only writer. */
    struct machine *machine;
    uint32_t codes; /* compiled so far */
    ev (*resume)(world *w, iter *generator);
    ev (*invoke)(world *w, ev function, const ev *args, uint32_t count);
    scratch spare_text[WORLD_SPARE_TEXT];
    uint32_t spare_text_count;
    ev empty_str, empty_bytes, empty_tuple; /* referenced */
    ev latin[256];                          /* strings of one code point, made on demand */
};

struct classes;

/* Opens a world. `classes` must outlive it. */
hd_status world_open(const hd_env *env, const world_limits *limits, struct classes *classes,
                     world **out);
void world_close(world *w);

/* ---- Memory ------------------------------------------------------------------------------ */

/* NULL: no memory or beyond the limit; the status or the failure is set. */
void *world_alloc(world *w, size_t size);
void world_free(world *w, void *block, size_t size);
/* On failure NULL, and the block is as it was. */
void *world_resize(world *w, void *block, size_t old_size, size_t size);

/* A new object with count zero, in the list of zeroes. */
void *world_object(world *w, ev_kind kind, size_t size);

static inline void world_ref(ev v) {
    if (ev_is_obj(v)) v.o->refs++;
}
/* Gives up a reference. Nothing is freed before the next world_sweep(). */
static inline void world_unref(world *w, ev v) {
    if (!ev_is_obj(v)) return;
    assert(v.o->refs > 0);
    if (--v.o->refs == 0 && !(v.o->flags & OBJ_ZERO)) {
        v.o->flags |= OBJ_ZERO;
        assert(w->zeroes.count < w->zeroes.capacity);
        w->zeroes.items[w->zeroes.count++] = v.o;
    }
}

/* Frees every object that nothing refers to. Evs held in C variables are dead afterwards unless
 * something refers to them. */
void world_sweep_now(world *w);
static inline void world_sweep(world *w) {
    if (w->zeroes.count) world_sweep_now(w);
}

/* An evaluation begins, or a value from outside is read: it may add limits.bytes to what is there. The variables of
 * many instances are in one world, so a limit of all objects together would let one instance fail because of others. */
static inline void world_begin(world *w) {
    size_t room = SIZE_MAX / 2 - w->bytes;
    w->bytes_most = w->bytes + (w->limits.bytes < room ? w->limits.bytes : room);
}

/* What an instance has is written, or read again. Many evaluations have made it, within their limits: so there is
 * none. */
static inline void world_begin_stored(world *w) { w->bytes_most = SIZE_MAX / 2; }

/* ---- Nesting ----------------------------------------------------------------------------- */

/* False beyond the limit: RecursionError ("maximum recursion depth exceeded" and `what`). */
bool world_enter(world *w, const char *what);
static inline void world_leave(world *w) {
    assert(w->depth > 0);
    w->depth--;
}

/* Counts one step of a loop; false: there were too many. */
static inline bool world_step(world *w) {
    if (USUALLY(w->steps > 0)) return w->steps--, true;
    w->failure = FAILURE_STEPS;
    return false;
}

/* ---- Journal and loading ----------------------------------------------------------------- */

void world_note_now(world *w, ev object, change_op how, uint32_t index, ev key, ev value);
/* Called after each change of an object. */
static inline void world_note(world *w, void *object, change_op how, uint32_t index, ev key,
                              ev value) {
    obj *o = object;
    if (RARELY(o->flags & OBJ_TRACKED)) world_note_now(w, ev_of(o), how, index, key, value);
}
void world_journal_clear(world *w);

/* From now on changes of the object are written to the journal, under this number. */
void world_track(ev object, uint32_t number);
uint32_t world_number(ev object);
/* An object that is known by number only; tracked. */
ev world_stub(world *w, ev_kind kind, uint32_t class_, uint32_t number);
void world_set_loader(world *w, world_load_fn load, void *ctx);

bool world_load_now(world *w, ev object);
/* The object's content is there afterwards; false: the status is set. */
static inline bool world_need(world *w, ev v) {
    return !ev_is_obj(v) || USUALLY(!(v.o->flags & OBJ_UNLOADED)) || world_load_now(w, v);
}

/* Asserts that counts and lists are whole; O(objects in the list of zeroes). */
void world_check(const world *w);

#endif

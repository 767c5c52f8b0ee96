/* ev.h -- a value while an expression is evaluated.
 *
 * An `ev` is 16 bytes, passed by value: a kind and either the value itself (None, bool, int, float) or
 * a pointer to an object of the world. Lists, dicts, sets, records and exceptions are objects with
 * identity: two evs with the same pointer are aliases. Texts, tuples and ranges are objects that never
 * change.
 *
 * WHO OWNS WHAT. Objects count the references that other objects and variables hold, and nothing
 * else: an ev in a C variable or on the stack of the machine is not counted. An object whose count is
 * zero waits in the world's list of zeroes and is freed by world_sweep(), which runs between
 * evaluations. So functions pass evs around freely and only the few functions that store into an
 * object or a variable touch counts. Objects that refer to each other in a circle are freed with their
 * world. */
#ifndef EXPR_EV_H
#define EXPR_EV_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum ev_kind {
    EV_FAIL,    /* no value: an exception is pending in the world, or the status is set */
    EV_UNBOUND, /* a variable without a value; an entry of a dict that was deleted */
    EV_NONE,
    EV_BOOL, /* i is 0 or 1: wherever an int may stand, a bool may */
    EV_INT,
    EV_FLOAT,
    EV_TYPE, /* i is the number of a class, see class.h */
    EV_FUNC, /* a function as a value: i is a call_target, see call.h */
    /* Kinds from here on are objects. */
    EV_STR,
    EV_BYTES,
    EV_TUPLE,
    EV_RANGE,
    EV_ENUM,
    EV_EXC,
    EV_LIST,
    EV_DICT,
    EV_SET,
    EV_RECORD,
    EV_VIEW, /* keys, values or items of a dict */
    EV_ITER,
    EV_KINDS
} ev_kind;

/* The head of every object. */
typedef struct obj {
    uint32_t refs;   /* from objects, variables and the journal; written by world.h only */
    uint8_t kind;    /* an ev_kind */
    uint8_t flags;   /* OBJ_* */
    uint16_t class_; /* of records, exceptions, enums and named tuples; else 0 */
} obj;

enum {
    OBJ_ZERO = 1,     /* stands in the world's list of zeroes */
    OBJ_WIDE = 2,     /* a text with 4 bytes per code point; else 1 */
    OBJ_BUSY = 4,     /* being printed or encoded: a circle is found by it */
    OBJ_UNLOADED = 8, /* known by number only; world_need() brings its content */
    OBJ_TRACKED = 16, /* changes of it are written to the journal */
    OBJ_BARE = 32,    /* a member of an enum that is its value, too: see ev_bare */
};

typedef struct ev {
    uint32_t kind;
    uint32_t spare_;
    union {
        int64_t i;
        double d;
        obj *o;
        struct text *text;
        struct tuple *tuple;
        struct plist *list;
        struct dict *dict; /* of EV_DICT, EV_SET and EV_RECORD */
        struct range *range;
        struct exc *exc;
        struct enumer *enumer;
        struct view *view;
        struct iter *iter;
    };
} ev;

/* str and bytes. Data of a wide text are uint32_t; it has at least one code point above 255, so equal
 * texts are equal byte for byte. */
typedef struct text {
    obj head;
    uint32_t count; /* code points, or bytes */
    uint32_t hash;  /* 0: not known yet */
    uint32_t data[];
} text;

typedef struct tuple {
    obj head;
    uint32_t count;
    uint32_t spare_;
    ev items[];
} tuple;

typedef struct plist {
    obj head;
    uint32_t count, capacity;
    ev *items;
    uint32_t number; /* the engine's name for it; 0: none yet */
    /* How it is stored: 0, as an array; else as a queue (encode.h), of whose array the first `queue` - 1 elements are
     * gone. Written by encode_object, encode_change and decode_object. */
    uint32_t queue;
} plist;

typedef struct dict_entry {
    ev key; /* EV_UNBOUND: deleted */
    ev value;
    uint32_t hash;
} dict_entry;

/* The form in which a dict, set or record is stored: encode.h. */
typedef enum dict_form {
    DICT_WHOLE,   /* not stored yet, or in a form that is written whole at each change */
    DICT_ORDERED, /* an object; the order of its names is that of the entries */
    DICT_KEYS,    /* an object with "$keys" */
    DICT_PAIRS,   /* "$dict" */
    DICT_SET,     /* "$set" */
} dict_form;

/* Entries in the order of insertion; from DICT_SMALL entries on an index by hash. A set has no values,
 * the keys of a record are the names of its attributes. In the forms DICT_KEYS, DICT_PAIRS and DICT_SET the nth entry,
 * deleted ones included, stands at place n of what is stored: whoever moves entries makes the form DICT_WHOLE. */
typedef struct dict {
    obj head;
    uint32_t number; /* as of a list */
    uint32_t count;  /* live entries */
    uint32_t used;   /* entries including deleted ones; count <= used <= capacity */
    uint32_t first;  /* the first live entry; 0 if there is none */
    uint32_t end;    /* behind the last live entry; count <= end - first, end <= used */
    uint32_t capacity;
    uint32_t
        index_size; /* 0 or a power of two; slots hold entry + 1, 0 is empty. Live entries only. */
    uint32_t
        form; /* a dict_form: what is stored of it. Written by encode_object and decode_object */
    dict_entry *entries;
    uint32_t *index;
} dict;

typedef struct range {
    obj head;
    int64_t start, stop, step;
    uint64_t count;
} range;

typedef struct exc {
    obj head;
    ev args;   /* a tuple */
    ev attrs;  /* a dict of further attributes, or None */
    ev cause;  /* an exception, or None */
    ev raised; /* where a workflow raised it first: a tuple of two str, function and node; or None */
    uint32_t number; /* as of a list */
} exc;

typedef struct enumer {
    obj head;
    ev name, value;
} enumer;

typedef enum view_what { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS } view_what;

typedef struct view {
    obj head;
    ev of; /* a dict */
    uint32_t what;
} view;

typedef enum iter_what {
    ITER_SEQUENCE, /* a: list, tuple, str, bytes or range; at: the next index */
    ITER_BACK,     /* a: list, tuple, str, bytes or range; at: elements left */
    ITER_DICT, /* a: a dict, set or view; at: the next entry, end: entries at the start, b: entries given so far */
    ITER_DICT_BACK,
    ITER_ENUMERATE, /* a: iterator; at: the next number */
    ITER_ZIP,       /* a: tuple of iterators; strict */
    ITER_MAP,       /* a: tuple of iterators, b: function */
    ITER_FILTER,    /* a: iterator, b: function or None */
    ITER_GENERATOR, /* at: where the machine goes on */
} iter_what;

/* An iterator. It lives during one evaluation: it cannot be stored in a variable. */
typedef struct iter {
    obj head;
    uint32_t what;
    bool done, strict, busy;
    ev a, b;
    int64_t at, end;
} iter;

static inline ev ev_fail(void) { return (ev){ .kind = EV_FAIL }; }
static inline ev ev_unbound(void) { return (ev){ .kind = EV_UNBOUND }; }
static inline ev ev_none(void) { return (ev){ .kind = EV_NONE }; }
static inline ev ev_bool(bool b) { return (ev){ .kind = EV_BOOL, .i = b }; }
static inline ev ev_int(int64_t i) { return (ev){ .kind = EV_INT, .i = i }; }
static inline ev ev_float(double d) { return (ev){ .kind = EV_FLOAT, .d = d }; }
static inline ev ev_type(uint32_t class_) { return (ev){ .kind = EV_TYPE, .i = class_ }; }
static inline ev ev_of(void *object) {
    assert(object && ((obj *)object)->kind >= EV_STR);
    return (ev){ .kind = ((obj *)object)->kind, .o = object };
}

static inline bool ev_failed(ev v) { return v.kind == EV_FAIL; }
static inline bool ev_is_obj(ev v) { return v.kind >= EV_STR; }
static inline bool ev_is_int(ev v) { return v.kind == EV_INT || v.kind == EV_BOOL; }
static inline bool ev_is_number(ev v) { return v.kind >= EV_BOOL && v.kind <= EV_FLOAT; }
static inline bool ev_is_text(ev v) { return v.kind == EV_STR || v.kind == EV_BYTES; }
/* Objects that can change, and that variables and other objects refer to by number in the store. */
static inline bool ev_has_identity(ev v) { return v.kind >= EV_EXC && v.kind <= EV_RECORD; }

/* What operators see of a member of an IntEnum and the like: its value. */
static inline ev ev_bare(ev v) {
    return v.kind == EV_ENUM && (v.o->flags & OBJ_BARE) ? v.enumer->value : v;
}

/* What loops, subscripts, `in` and len() see of a member of a StrEnum and the like: its text. Others stay themselves,
 * so that complaints name their class. */
static inline ev ev_bare_text(ev v) {
    ev bare = ev_bare(v);
    return bare.kind == EV_STR ? bare : v;
}

static inline bool text_is_wide(const text *t) { return t->head.flags & OBJ_WIDE; }
static inline const uint8_t *text_narrow(const text *t) { return (const uint8_t *)t->data; }
static inline uint32_t text_at(const text *t, size_t i) {
    assert(i < t->count);
    return text_is_wide(t) ? t->data[i] : text_narrow(t)[i];
}

#endif

/* class.h -- classes: the built-in types, the exceptions of CPython with their superclasses, and the
 * classes that a program registers (exceptions, records, enums, named tuples).
 *
 * A class is a number. The built-in ones are constants, CLASS_ValueError; the table is shared by all
 * worlds of an engine. Exceptions match by class and superclass (class_is).
 *
 * A name belongs to a version of a workflow: the next one may declare another class of that name, with other fields,
 * and the instances of each have their own. So names are looked up among the class_names of a version. */
#ifndef EXPR_CLASS_H
#define EXPR_CLASS_H

#include "base/env.h"
#include "base/vec.h"
#include "expr/ev.h"

/* Name and base. */
#define CLASS_TYPES(X)                                                                             \
    X(object, object)                                                                              \
    X(NoneType, object)                                                                            \
    X(int, object)                                                                                 \
    X(bool, int)                                                                                   \
    X(float, object)                                                                               \
    X(str, object)                                                                                 \
    X(bytes, object)                                                                               \
    X(tuple, object)                                                                               \
    X(list, object)                                                                                \
    X(dict, object)                                                                                \
    X(set, object)                                                                                 \
    X(range, object)                                                                               \
    X(type, object)                                                                                \
    X(Enum, object)                                                                                \
    X(dict_keys, object)                                                                           \
    X(dict_values, object)                                                                         \
    X(dict_items, object)                                                                          \
    X(generator, object)                                                                           \
    X(list_iterator, object)                                                                       \
    X(list_reverseiterator, object)                                                                \
    X(dict_reversekeyiterator, object)                                                             \
    X(enumerate, object)                                                                           \
    X(zip, object)                                                                                 \
    X(map, object)                                                                                 \
    X(filter, object)                                                                              \
    X(reversed, object)                                                                            \
    X(builtin_function_or_method, object)

#define CLASS_EXCEPTIONS(X)                                                                        \
    X(BaseException, object)                                                                       \
    X(GeneratorExit, BaseException)                                                                \
    X(KeyboardInterrupt, BaseException)                                                            \
    X(SystemExit, BaseException)                                                                   \
    X(CancelledError, BaseException)                                                               \
    X(Unsupported, BaseException)                                                                  \
    X(BaseExceptionGroup, BaseException)                                                           \
    X(Exception, BaseException)                                                                    \
    X(ExceptionGroup, Exception)                                                                   \
    X(ArithmeticError, Exception)                                                                  \
    X(FloatingPointError, ArithmeticError)                                                         \
    X(OverflowError, ArithmeticError)                                                              \
    X(ZeroDivisionError, ArithmeticError)                                                          \
    X(AssertionError, Exception)                                                                   \
    X(AttributeError, Exception)                                                                   \
    X(FrozenInstanceError, AttributeError)                                                         \
    X(BufferError, Exception)                                                                      \
    X(EOFError, Exception)                                                                         \
    X(ImportError, Exception)                                                                      \
    X(ModuleNotFoundError, ImportError)                                                            \
    X(LookupError, Exception)                                                                      \
    X(IndexError, LookupError)                                                                     \
    X(KeyError, LookupError)                                                                       \
    X(MemoryError, Exception)                                                                      \
    X(NameError, Exception)                                                                        \
    X(UnboundLocalError, NameError)                                                                \
    X(OSError, Exception)                                                                          \
    X(BlockingIOError, OSError)                                                                    \
    X(ChildProcessError, OSError)                                                                  \
    X(ConnectionError, OSError)                                                                    \
    X(BrokenPipeError, ConnectionError)                                                            \
    X(ConnectionAbortedError, ConnectionError)                                                     \
    X(ConnectionRefusedError, ConnectionError)                                                     \
    X(ConnectionResetError, ConnectionError)                                                       \
    X(FileExistsError, OSError)                                                                    \
    X(FileNotFoundError, OSError)                                                                  \
    X(InterruptedError, OSError)                                                                   \
    X(IsADirectoryError, OSError)                                                                  \
    X(NotADirectoryError, OSError)                                                                 \
    X(PermissionError, OSError)                                                                    \
    X(ProcessLookupError, OSError)                                                                 \
    X(TimeoutError, OSError)                                                                       \
    X(ReferenceError, Exception)                                                                   \
    X(RuntimeError, Exception)                                                                     \
    X(NotImplementedError, RuntimeError)                                                           \
    X(RecursionError, RuntimeError)                                                                \
    X(StopAsyncIteration, Exception)                                                               \
    X(StopIteration, Exception)                                                                    \
    X(SyntaxError, Exception)                                                                      \
    X(IndentationError, SyntaxError)                                                               \
    X(TabError, IndentationError)                                                                  \
    X(SystemError, Exception)                                                                      \
    X(TypeError, Exception)                                                                        \
    X(ValueError, Exception)                                                                       \
    X(UnicodeError, ValueError)                                                                    \
    X(UnicodeDecodeError, UnicodeError)                                                            \
    X(UnicodeEncodeError, UnicodeError)                                                            \
    X(UnicodeTranslateError, UnicodeError)                                                         \
    X(Warning, Exception)                                                                          \
    X(BytesWarning, Warning)                                                                       \
    X(DeprecationWarning, Warning)                                                                 \
    X(EncodingWarning, Warning)                                                                    \
    X(FutureWarning, Warning)                                                                      \
    X(ImportWarning, Warning)                                                                      \
    X(PendingDeprecationWarning, Warning)                                                          \
    X(ResourceWarning, Warning)                                                                    \
    X(RuntimeWarning, Warning)                                                                     \
    X(SyntaxWarning, Warning)                                                                      \
    X(UnicodeWarning, Warning)                                                                     \
    X(UserWarning, Warning)

typedef enum class_id {
#define CLASS_ROW(name, base) CLASS_##name,
    CLASS_TYPES(CLASS_ROW) CLASS_EXCEPTIONS(CLASS_ROW)
#undef CLASS_ROW
        CLASS_BUILTIN_COUNT
} class_id;

typedef enum class_kind {
    CLASS_BUILTIN,
    CLASS_EXCEPTION,
    CLASS_RECORD,
    CLASS_TUPLE,
    CLASS_ENUM
} class_kind;

enum {
    CLASS_FROZEN = 1, /* records: attributes cannot be set; hashable */
    CLASS_OPEN = 2,   /* records: attributes that are no fields can be set */
    CLASS_BY_ID = 4,  /* records: equal only to themselves */
    CLASS_PARTIAL =
        8, /* objects have attributes in the program (methods) that are not known here */
    /* What the program's own code says of its objects, so that nothing but Unsupported can be said here: */
    CLASS_OWN = 16,        /* operators: there may be an answer where this library has none */
    CLASS_OWN_TEXT = 32,   /* str and repr */
    CLASS_OWN_EQUAL = 64,  /* == and the hash */
    CLASS_OWN_TRUTH = 128, /* bool */
    CLASS_OWN_BASES = 256, /* the classes above it */
    CLASS_OWN_SET = 2048,  /* what assigning an attribute does */
    CLASS_OWN_NEW = 16384, /* exceptions: making an object */
    /* Enums: a member is its value, too, in operators (IntEnum); in str and format as well. */
    CLASS_BARE = 512,
    CLASS_BARE_TEXT = 1024,
    CLASS_SEALED = 4096, /* records: what is encoded of them is not what their attributes are */
    CLASS_NAMED = 8192,  /* no object of it was seen yet: its kind is a guess */
    /* A class that a value names and that nothing has declared. */
    CLASS_UNKNOWN = CLASS_OPEN | CLASS_PARTIAL | CLASS_OWN | CLASS_OWN_TEXT | CLASS_OWN_EQUAL |
                    CLASS_OWN_TRUTH | CLASS_OWN_BASES | CLASS_OWN_SET,
};

typedef struct class_info {
    char *name;    /* NUL-terminated; of classes of a program "module:Class" */
    uint32_t base; /* a class; of `object` itself */
    uint8_t kind;  /* a class_kind */
    uint16_t flags;
    uint32_t fields_count;
    char **fields; /* names */
    uint32_t more_count;
    uint32_t *more;    /* classes above it beside `base` */
    uint32_t required; /* fields without a default come first: so many */
} class_info;

#define CLASS_NONE      UINT32_MAX
#define CLASS_ABOVE_MAX 64  /* classes above one of the program that cross with it */
#define CLASS_NAME_SIZE 256 /* of classes of a program, with the NUL */

/* The classes of a program that one version of a workflow declares or has met. */
typedef struct class_names {
    VEC(uint32_t) all;
} class_names;

typedef struct classes {
    hd_env env;
    VEC(class_info) all;
    class_names own;    /* of what is no version */
    class_names *names; /* those that are looked up now; see classes_use */
} classes;

/* A table with the built-in classes. */
hd_status classes_open(const hd_env *env, classes **out);
void classes_close(classes *c);

/* Registers a class; its number goes to *out. HD_EXISTS: the name is taken by a class that is not
 * the same. HD_LIMIT: too many. */
hd_status classes_add(classes *c, const class_info *info, uint32_t *out);

/* Code is compiled and values are decoded for this version from here on; NULL: for none. Cheap. */
static inline void classes_use(classes *c, class_names *names) {
    c->names = names ? names : &c->own;
}
/* The version ends. Its classes stay. */
void classes_end(classes *c, class_names *names);

/* The same as classes_add; a class that another version has declared alike has one number. */
hd_status classes_define(classes *c, const class_info *info, uint32_t *out);

/* The classes above one that nothing has declared, at least one, the closest first; later calls change nothing. */
hd_status classes_link(classes *c, uint32_t id, const uint32_t *above, uint32_t count);

/* Whether the class is one of Python's standard library that is encoded as the data to make the object from, which are
 * not its attributes. */
bool class_is_sealed(const char *name);

/* The name without the module, and without classes and functions around it: "Item" of "shop:Cart.Item". */
static inline const char *class_shown(const class_info *info) {
    const char *dot = strrchr(info->name, '.'), *colon = strchr(info->name, ':');
    return colon ? (dot > colon ? dot : colon) + 1 : info->name;
}

/* CLASS_NONE: there is none of that name. */
uint32_t classes_find(const classes *c, const char *name, size_t length);
static inline const class_info *class_of(const classes *c, uint32_t id) {
    assert(id < c->all.count);
    return &c->all.items[id];
}
/* Whether it is the class or one of its subclasses. With CLASS_OWN_BASES only true is an answer. */
bool class_is(const classes *c, uint32_t id, uint32_t base);

/* Whether the class of the class may be another one than `type`, as that of an enum is. Of a class of the program that
 * is known only if all attributes of its objects are (no CLASS_PARTIAL). */
bool class_may_have_metaclass(const classes *c, uint32_t id);

/* The class of a value. */
uint32_t ev_class(ev v);

/* The flags of a value's class. */
static inline uint32_t ev_flags(const classes *c, ev v) {
    if (v.kind < EV_TUPLE || v.kind == EV_RANGE || !v.o->class_) return 0;
    return class_of(c, v.o->class_)->flags;
}

#endif

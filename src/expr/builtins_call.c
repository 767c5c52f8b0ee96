/* builtins_call.c -- methods by name, and classes as functions: see builtins.h. */
#include "expr/builtins.h"

#include "expr/containers.h"
#include "expr/numbers.h"
#include "expr/strings.h"
#include "expr/tuple.h"

#include <errno.h>

/* ---- By name ----------------------------------------------------------------------------- */

const function *methods_of(uint32_t kind) {
    switch (kind) {
    case EV_BOOL:
    case EV_INT: return int_methods;
    case EV_FLOAT: return float_methods;
    case EV_STR: return str_methods;
    case EV_BYTES: return bytes_methods;
    case EV_TUPLE: return tuple_methods;
    case EV_RANGE: return range_methods;
    case EV_LIST: return list_methods;
    case EV_DICT: return dict_methods;
    case EV_SET: return set_methods;
    case EV_VIEW: return view_methods;
    default: return NULL;
    }
}

ev call_builtin(world *w, uint32_t index, const call *c) {
    return call_function(w, &builtins[index], NULL, ev_unbound(), c);
}

/* A method called on its class: str.lower(x), dict.fromkeys(k). */
static const function *class_methods(uint32_t class_, uint32_t *kind) {
    static const struct {
        uint32_t class_, kind;
    } kinds[] = { { CLASS_int, EV_INT },    { CLASS_bool, EV_BOOL },   { CLASS_float, EV_FLOAT },
                  { CLASS_str, EV_STR },    { CLASS_bytes, EV_BYTES }, { CLASS_tuple, EV_TUPLE },
                  { CLASS_list, EV_LIST },  { CLASS_dict, EV_DICT },   { CLASS_set, EV_SET },
                  { CLASS_range, EV_RANGE } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].class_ == class_) return *kind = kinds[i].kind, methods_of(*kind);
    return NULL;
}

static bool needs_no_self(const char *name) {
    static const char *const names[] = { "maketrans", "fromhex", "fromkeys", "from_bytes" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static ev call_on_class(world *w, uint32_t class_, const function *f, uint32_t kind,
                        const call *c) {
    const char *owner = class_of(w->classes, class_)->name;
    if (needs_no_self(f->name)) return call_function(w, f, owner, ev_unbound(), c);
    if (c->count == 0)
        return raise_f(w, CLASS_TypeError, "unbound method %s.%s() needs an argument", owner,
                       f->name);
    bool fits = c->args[0].kind == kind || (kind == EV_INT && c->args[0].kind == EV_BOOL);
    if (!fits)
        return raise_f(w, CLASS_TypeError,
                       "descriptor '%s' for '%s' objects doesn't apply to a '%s' object", f->name,
                       owner, type_name(w, c->args[0]));
    call rest = *c;
    rest.args++;
    rest.count--;
    if (!world_need(w, c->args[0])) return ev_fail();
    return call_function(w, f, owner, c->args[0], &rest);
}

static bool is_method(ev self, ev name) {
    const function *table = methods_of(self.kind);
    return table && !text_is_wide(name.text) &&
           function_find(table, (const char *)name.text->data, name.text->count);
}

ev read_attribute(world *w, ev v, ev name) {
    ev found = attr_get(w, v, name);
    if (!ev_failed(found) || w->status || !is_method(v, name)) return found;
    (void)raise_catch(w);
    return raise_f(w, CLASS_Unsupported, "the method '%.*s' as a value", (int)name.text->count,
                   (const char *)name.text->data);
}

bool write_attribute(world *w, ev v, ev name, ev value) {
    if (is_method(v, name) && !(ev_flags(w->classes, v) & CLASS_PARTIAL)) {
        raise_f(w, CLASS_AttributeError, "'%s' object attribute '%.*s' is read-only",
                class_shown(class_of(w->classes, ev_class(v))), (int)name.text->count,
                (const char *)name.text->data);
        return false;
    }
    return value.kind == EV_UNBOUND ? attr_delete(w, v, name) : attr_set(w, v, name, value);
}

bool method_exists(world *w, ev self, ev name) {
    return is_method(self, name) || self.kind == EV_TYPE || !ev_failed(attr_get(w, self, name));
}

ev call_method(world *w, ev self, ev name, const call *c) {
    char chars[64];
    uint32_t kind = self.kind;
    const function *table =
        self.kind == EV_TYPE ? class_methods((uint32_t)self.i, &kind) : methods_of(kind);
    const function *f = NULL;
    if (!text_is_wide(name.text) && name.text->count < sizeof chars && table)
        f = function_find(table, (const char *)name.text->data, name.text->count);
    if (!f) {
        ev found = attr_get(w, self, name);
        if (ev_failed(found)) return found;
        return w->invoke(w, found, c->args, c->count);
    }
    if (self.kind == EV_TYPE) return call_on_class(w, (uint32_t)self.i, f, kind, c);
    if (!world_need(w, self)) return ev_fail();
    return call_function(w, f, self.kind == EV_BOOL ? "int" : type_name(w, self), self, c);
}

/* ---- Constructors ------------------------------------------------------------------------ */

/* OSError(errno, text) is the class of the number, as in CPython on Linux. */
static uint32_t class_of_errno(int64_t number) {
    static const struct {
        int number;
        uint32_t class_;
    } rows[] = { { EAGAIN, CLASS_BlockingIOError },
                 { EALREADY, CLASS_BlockingIOError },
                 { EINPROGRESS, CLASS_BlockingIOError },
                 { EPIPE, CLASS_BrokenPipeError },
                 { ESHUTDOWN, CLASS_BrokenPipeError },
                 { ECHILD, CLASS_ChildProcessError },
                 { ECONNABORTED, CLASS_ConnectionAbortedError },
                 { ECONNREFUSED, CLASS_ConnectionRefusedError },
                 { ECONNRESET, CLASS_ConnectionResetError },
                 { EEXIST, CLASS_FileExistsError },
                 { ENOENT, CLASS_FileNotFoundError },
                 { EISDIR, CLASS_IsADirectoryError },
                 { ENOTDIR, CLASS_NotADirectoryError },
                 { EINTR, CLASS_InterruptedError },
                 { EACCES, CLASS_PermissionError },
                 { EPERM, CLASS_PermissionError },
                 { ESRCH, CLASS_ProcessLookupError },
                 { ETIMEDOUT, CLASS_TimeoutError } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].number == number) return rows[i].class_;
    return CLASS_OSError;
}

/* How many arguments the class must have, as CPython says it; NULL: any number of them. */
static const char *takes_exactly(const classes *c, uint32_t class_, uint32_t *count) {
    bool group = class_is(c, class_, CLASS_BaseExceptionGroup);
    bool codec = class_is(c, class_, CLASS_UnicodeDecodeError) ||
                 class_is(c, class_, CLASS_UnicodeEncodeError);
    *count = group ? 2 : codec ? 5 : 4;
    return group ? "BaseExceptionGroup.__new__()"
           : codec || class_is(c, class_, CLASS_UnicodeTranslateError) ? "function"
                                                                       : NULL;
}

/* The second argument of a group, as what the group has of it: CPython takes it as a tuple at once. It stays a list
 * where it is one, so that the group shows it so. */
static ev group_members(world *w, ev given) {
    given = ev_bare(given);
    if (given.kind != EV_LIST && given.kind != EV_TUPLE && given.kind != EV_STR &&
        given.kind != EV_BYTES && given.kind != EV_RANGE)
        return raise_f(w, CLASS_TypeError, "second argument (exceptions) must be a sequence");
    if (!ev_length(w, given))
        return raise_f(w, CLASS_ValueError,
                       "second argument (exceptions) must be a non-empty sequence");
    if (given.kind == EV_LIST) return plist_of(w, given.list->items, given.list->count);
    return given.kind == EV_TUPLE ? given : w->empty_tuple;
}

/* What CPython's BaseExceptionGroup.__new__ makes of its arguments. */
static ev make_group(world *w, uint32_t class_, const call *c) {
    bool plain = true;
    if (c->args[0].kind != EV_STR)
        return raise_f(w, CLASS_TypeError,
                       "BaseExceptionGroup.__new__() argument 1 must be str, not %s",
                       c->args[0].kind == EV_NONE ? "None" : type_name(w, c->args[0]));
    if (!world_need(w, c->args[1])) return ev_fail();
    ev inner = group_members(w, c->args[1]);
    if (ev_failed(inner)) return inner;
    uint32_t count = inner.kind == EV_LIST ? inner.list->count : inner.tuple->count;
    const ev *items = inner.kind == EV_LIST ? inner.list->items : inner.tuple->items;
    for (uint32_t i = 0; i < count || i == 0; i++) {
        if (i == count || items[i].kind != EV_EXC)
            return raise_f(w, CLASS_ValueError,
                           "Item %u of second argument (exceptions) is not an exception", i);
        plain &= class_is(w->classes, items[i].o->class_, CLASS_Exception);
    }
    if (class_ == CLASS_BaseExceptionGroup && plain) class_ = CLASS_ExceptionGroup;
    if (!plain && class_ == CLASS_ExceptionGroup)
        return raise_f(w, CLASS_TypeError, "Cannot nest BaseExceptions in an ExceptionGroup");
    if (!plain && class_is(w->classes, class_, CLASS_Exception))
        return raise_f(w, CLASS_TypeError, "Cannot nest BaseExceptions in '%s'",
                       class_shown(class_of(w->classes, class_)));
    ev args = tuple_pair(w, c->args[0], inner);
    return ev_failed(args) ? args : exc_new(w, class_, args);
}

/* The attributes that CPython's own exceptions take by name. */
typedef struct keywords {
    uint32_t class_;
    const char *names[2]; /* the second: NULL where there is one */
} keywords;

/* NULL: the class takes no arguments by name. */
static const keywords *keywords_of(const classes *c, uint32_t class_) {
    static const keywords rows[] = { { CLASS_ImportError, { "name", "path" } },
                                     { CLASS_AttributeError, { "name", "obj" } },
                                     { CLASS_NameError, { "name", NULL } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (class_is(c, class_, rows[i].class_)) return &rows[i];
    return NULL;
}

/* ImportError("m", name="n"): the exception, with both attributes if one is given. */
static ev set_keywords(world *w, ev e, const keywords *k, const call *c) {
    const char *shown = class_of(w->classes, k->class_)->name;
    uint32_t most = k->names[1] ? 2 : 1;
    if (c->named > most)
        return raise_f(w, CLASS_TypeError, "%s() takes at most %u keyword argument%s (%u given)",
                       shown, most, most == 1 ? "" : "s", c->named);
    if (!call_only_names(w, c, shown, k->names[0], k->names[1])) return ev_fail();
    for (uint32_t i = 0; i < most; i++) {
        ev given = call_named(c, k->names[i]);
        if (!exc_put(w, e.exc, k->names[i], arg_given(given) ? given : ev_none())) return ev_fail();
    }
    return e;
}

/* OSError(errno, text, file name, winerror, second file name): CPython makes attributes of the file names, and leaves
 * them out of args. */
static ev make_os_error(world *w, uint32_t class_, const call *c) {
    bool named = c->count >= 3 && c->count <= 5;
    bool numbered =
        c->count >= 2 && c->count <= 5 && (c->args[0].kind == EV_INT || c->args[0].kind == EV_BOOL);
    if (class_ == CLASS_OSError && numbered) class_ = class_of_errno(c->args[0].i);
    if (named &&
        (c->args[2].kind == EV_NONE || class_is(w->classes, class_, CLASS_BlockingIOError)))
        return raise_f(w, CLASS_Unsupported,
                       "an OSError whose third argument is None, or a BlockingIOError with three "
                       "arguments, that a workflow makes");
    ev args = tuple_of(w, c->args, named ? 2 : c->count);
    ev made = ev_failed(args) ? args : exc_new(w, class_, args);
    if (ev_failed(made) || !named) return made;
    if (!exc_put(w, made.exc, "filename", c->args[2])) return ev_fail();
    bool both = c->count == 5 && c->args[4].kind != EV_NONE;
    return both && !exc_put(w, made.exc, "filename2", c->args[4]) ? ev_fail() : made;
}

static ev make_exception(world *w, uint32_t class_, const call *c) {
    uint32_t exactly;
    const char *taking = takes_exactly(w->classes, class_, &exactly);
    const keywords *k = keywords_of(w->classes, class_);
    bool group = class_is(w->classes, class_, CLASS_BaseExceptionGroup);
    if (class_of(w->classes, class_)->flags & (CLASS_OWN_NEW | CLASS_OWN_BASES))
        return raise_f(w, CLASS_Unsupported, "raising the class '%s', whose objects its code makes",
                       class_shown(class_of(w->classes, class_)));
    if (!group && c->named && !k)
        return raise_f(w, CLASS_TypeError, "%s() takes no keyword arguments",
                       class_shown(class_of(w->classes, class_)));
    if (taking && c->count != exactly)
        return raise_f(w, CLASS_TypeError, "%s takes exactly %u arguments (%u given)", taking,
                       exactly, c->count);
    ev made;
    if (group) made = make_group(w, class_, c);
    else if (class_is(w->classes, class_, CLASS_OSError)) made = make_os_error(w, class_, c);
    else {
        ev args = tuple_of(w, c->args, c->count);
        made = ev_failed(args) ? args : exc_new(w, class_, args);
    }
    if (ev_failed(made) || !c->named) return made;
    if (k) return set_keywords(w, made, k, c);
    return raise_f(w, CLASS_TypeError, "%s() takes no keyword arguments",
                   class_shown(class_of(w->classes, made.o->class_)));
}

static ev too_many(world *w, const class_info *info, uint32_t count) {
    return raise_f(w, CLASS_TypeError,
                   "%s.__init__() takes %u positional arguments but %u were given",
                   class_shown(info), info->fields_count + 1, count + 1);
}

/* Fields from places and names, as a dataclass takes them. Fields beyond `required` that are not given
 * are None: the compiler passes the defaults. */
static bool bind_fields(world *w, const class_info *info, const call *c, ev *out) {
    for (uint32_t i = 0; i < info->fields_count; i++)
        out[i] = i < c->count ? c->args[i] : ev_unbound();
    for (uint32_t k = 0; k < c->named; k++) {
        uint32_t i = 0;
        const text *name = c->names[k].text;
        while (i < info->fields_count && !text_is_utf8(name, info->fields[i])) i++;
        if (i == info->fields_count) {
            char shown[160];
            raise_f(w, CLASS_TypeError, "%s.__init__() got an unexpected keyword argument '%s'",
                    class_shown(info), text_short(name, shown, sizeof shown));
            return false;
        }
        if (arg_given(out[i])) {
            raise_f(w, CLASS_TypeError, "%s.__init__() got multiple values for argument '%s'",
                    class_shown(info), info->fields[i]);
            return false;
        }
        out[i] = c->args[c->count + k];
    }
    return true;
}

/* "missing 2 required positional arguments: 'a' and 'b'" */
static ev missing_fields(world *w, const class_info *info, const ev *given) {
    uint32_t missing = 0, shown = 0;
    for (uint32_t i = 0; i < info->required; i++) missing += !arg_given(given[i]);
    char names[600];
    size_t n = 0;
    for (uint32_t i = 0; i < info->required && n < sizeof names - 150; i++) {
        if (arg_given(given[i])) continue;
        const char *before = !shown                ? ""
                             : shown + 1 < missing ? ", "
                             : missing == 2        ? " and "
                                                   : ", and ";
        n += strlen(strcpy(names + n, before));
        names[n++] = '\'';
        size_t length = strlen(info->fields[i]) < 120 ? strlen(info->fields[i]) : 120;
        memcpy(names + n, info->fields[i], length);
        n += length;
        names[n++] = '\'';
        shown++;
    }
    names[n] = 0;
    return raise_f(w, CLASS_TypeError,
                   "%s.__init__() missing %u required positional argument%s: %s", class_shown(info),
                   missing, missing == 1 ? "" : "s", names);
}

static ev make_record(world *w, uint32_t class_, const call *c) {
    const class_info *info = class_of(w->classes, class_);
    ev fields[256];
    if (info->fields_count > 256)
        return raise_f(w, CLASS_Unsupported, "classes with more than 256 fields");
    if (!bind_fields(w, info, c, fields)) return ev_fail();
    if (c->count > info->fields_count) return too_many(w, info, c->count);
    for (uint32_t i = 0; i < info->required; i++)
        if (!arg_given(fields[i])) return missing_fields(w, info, fields);
    for (uint32_t i = 0; i < info->fields_count; i++)
        if (!arg_given(fields[i])) fields[i] = ev_none();
    if (info->kind == CLASS_TUPLE) {
        ev t = tuple_of(w, fields, info->fields_count);
        if (!ev_failed(t) && t.tuple->count) t.o->class_ = (uint16_t)class_;
        return t;
    }
    ev out = record_new(w, class_);
    for (uint32_t i = 0; i < info->fields_count && !ev_failed(out); i++) {
        ev name = text_of_utf8(w, info->fields[i], strlen(info->fields[i]));
        if (ev_failed(name) || !dict_set(w, out.dict, name, fields[i])) return ev_fail();
    }
    return out;
}

ev call_class(world *w, uint32_t class_, const call *c) {
    const class_info *info = class_of(w->classes, class_);
    if (info->kind == CLASS_EXCEPTION) return make_exception(w, class_, c);
    if (info->kind == CLASS_RECORD || info->kind == CLASS_TUPLE) return make_record(w, class_, c);
    const function *f = function_find(builtins, info->name, strlen(info->name));
    if (f && info->kind == CLASS_BUILTIN) return call_builtin(w, (uint32_t)(f - builtins), c);
    return raise_f(w, CLASS_Unsupported, "calling the class '%s'", class_shown(info));
}

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

static ev make_exception(world *w, uint32_t class_, const call *c) {
    uint32_t exactly;
    const char *taking = takes_exactly(w->classes, class_, &exactly);
    if (class_of(w->classes, class_)->flags & (CLASS_OWN_NEW | CLASS_OWN_BASES))
        return raise_f(w, CLASS_Unsupported, "raising the class '%s', whose objects its code makes",
                       class_shown(class_of(w->classes, class_)));
    if (taking && c->count + c->named != exactly)
        return raise_f(w, CLASS_TypeError, "%s takes exactly %u arguments (%u given)", taking,
                       exactly, c->count + c->named);
    if (c->named)
        return raise_f(w, CLASS_TypeError, "%s() takes no keyword arguments",
                       class_shown(class_of(w->classes, class_)));
    /* CPython makes attributes of the file names, and leaves them out of args. */
    if (c->count >= 3 && c->count <= 5 && class_is(w->classes, class_, CLASS_OSError))
        return raise_f(w, CLASS_Unsupported, "an OSError with a file name that a workflow makes");
    bool numbered =
        c->count >= 2 && c->count <= 5 && (c->args[0].kind == EV_INT || c->args[0].kind == EV_BOOL);
    if (class_ == CLASS_OSError && numbered) class_ = class_of_errno(c->args[0].i);
    ev args = tuple_of(w, c->args, c->count);
    return ev_failed(args) ? args : exc_new(w, class_, args);
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
        while (i < info->fields_count && !text_is(name, info->fields[i])) i++;
        if (i == info->fields_count) {
            raise_f(w, CLASS_TypeError, "%s.__init__() got an unexpected keyword argument '%.*s'",
                    class_shown(info), text_is_wide(name) ? 1 : (int)name->count,
                    text_is_wide(name) ? "?" : (const char *)name->data);
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

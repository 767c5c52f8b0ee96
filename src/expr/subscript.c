/* subscript.c -- see subscript.h. */
#include "expr/subscript.h"

#include "expr/text.h"
#include "expr/tuple.h"

/* ---- One element ------------------------------------------------------------------------- */

static ev refuse_index(world *w, ev v, ev index) {
    if (v.kind == EV_STR)
        return raise_f(w, CLASS_TypeError, "string indices must be integers, not '%s'",
                       type_name(w, index));
    return raise_f(w, CLASS_TypeError, "%s indices must be integers or slices, not %s",
                   v.kind == EV_BYTES   ? "byte"
                   : v.kind == EV_TUPLE ? "tuple"
                                        : type_name(w, v),
                   type_name(w, index));
}

static ev refuse_range(world *w, ev v) {
    const char *what = v.kind == EV_STR     ? "string index"
                       : v.kind == EV_BYTES ? "index"
                       : v.kind == EV_RANGE ? "range object index"
                       : v.kind == EV_TUPLE ? "tuple index"
                                            : "list index";
    return raise_f(w, CLASS_IndexError, "%s out of range", what);
}

static ev entry_get(world *w, ev v, ev key) {
    dict_entry *e = dict_find(w, v.dict, key);
    if (e) return e->value;
    return raise_is_pending(w) ? ev_fail() : raise_value(w, CLASS_KeyError, key);
}

static bool is_indexed(ev v) {
    return (v.kind >= EV_STR && v.kind <= EV_RANGE) || v.kind == EV_LIST;
}

ev item_get(world *w, ev v, ev index) {
    v = ev_bare_text(v);
    if (!world_need(w, v)) return ev_fail();
    if (v.kind == EV_DICT) return entry_get(w, v, index);
    if (v.kind == EV_TYPE) return raise_f(w, CLASS_Unsupported, "subscripts of types");
    if (!is_indexed(v))
        return raise_f(w, CLASS_TypeError, "'%s' object is not subscriptable",
                       type_name_whole(w, v));
    if (!ev_is_int(ev_bare(index))) return refuse_index(w, v, index);
    index = ev_bare(index);
    uint64_t count = v.kind == EV_RANGE ? v.range->count : (uint64_t)ev_length(w, v);
    uint64_t i = index.i < 0 ? (uint64_t)index.i + count : (uint64_t)index.i;
    if (index.i < 0 ? (uint64_t) - (index.i + 1) >= count : i >= count) return refuse_range(w, v);
    return sequence_at(w, v, i);
}

/* The index into a list that is to be changed. */
static bool list_place(world *w, ev v, ev index, uint32_t *out) {
    if (!ev_is_int(ev_bare(index))) {
        refuse_index(w, v, index);
        return false;
    }
    index = ev_bare(index);
    int64_t i = index.i < 0 ? index.i + v.list->count : index.i;
    if (i < 0 || i >= v.list->count) {
        raise_f(w, CLASS_IndexError, "list assignment index out of range");
        return false;
    }
    *out = (uint32_t)i;
    return true;
}

bool item_set(world *w, ev v, ev index, ev value) {
    uint32_t at;
    if (!world_need(w, v)) return false;
    if (v.kind == EV_DICT) return dict_set(w, v.dict, index, value);
    if (v.kind == EV_LIST) {
        if (!list_place(w, v, index, &at)) return false;
        plist_set(w, v.list, at, value);
        return true;
    }
    raise_f(w, CLASS_TypeError, "'%s' object does not support item assignment",
            type_name_whole(w, v));
    return false;
}

/* CPython has two wordings: one for what could be a sequence, by an int; one for all else. */
static bool refuse_deletion(world *w, ev v, ev index) {
    bool sequence = is_indexed(v) || v.kind == EV_SET || v.kind == EV_VIEW || v.kind == EV_RECORD ||
                    v.kind == EV_ENUM || (v.kind == EV_EXC && v.o->class_ >= CLASS_BUILTIN_COUNT);
    index = ev_bare(index);
    raise_note_class(w, index); /* it may have an __index__ */
    const char *form = sequence && ev_is_int(index) ? "doesn't" : "does not";
    raise_f(w, CLASS_TypeError, "'%s' object %s support item deletion", type_name_whole(w, v),
            form);
    return false;
}

bool item_delete(world *w, ev v, ev index) {
    uint32_t at;
    if (!world_need(w, v)) return false;
    if (v.kind == EV_LIST) {
        if (!list_place(w, v, index, &at)) return false;
        plist_delete(w, v.list, at, 1);
        return true;
    }
    if (v.kind != EV_DICT) return refuse_deletion(w, v, index);
    int gone = dict_delete(w, v.dict, index);
    if (gone == 0) raise_value(w, CLASS_KeyError, index);
    return gone == 1;
}

/* ---- Slices ------------------------------------------------------------------------------ */

typedef struct span {
    int64_t from, to, step;
    uint64_t count;
} span;

static bool bound_of(world *w, ev v, int64_t *out) {
    if (ev_is_int(ev_bare(v))) return *out = ev_bare(v).i, true;
    raise_about(w, v, "slice indices must be integers or None or have an __index__ method");
    return false;
}

static int64_t clamp(int64_t i, int64_t count, int64_t low, int64_t high) {
    if (i < 0) i += count;
    return i < low ? low : i > high ? high : i;
}

/* CPython's PySlice_Unpack and PySlice_AdjustIndices. */
static bool span_of(world *w, ev from, ev to, ev step, int64_t count, span *out) {
    int64_t a, b;
    out->step = 1;
    if (step.kind != EV_NONE) {
        if (!bound_of(w, step, &out->step)) return false;
        if (out->step == 0) {
            raise_f(w, CLASS_ValueError, "slice step cannot be zero");
            return false;
        }
        if (out->step < -INT64_MAX) out->step = -INT64_MAX;
    }
    bool back = out->step < 0;
    int64_t low = back ? -1 : 0, high = back ? count - 1 : count;
    a = back ? high : low;
    b = back ? low : high;
    if (from.kind != EV_NONE) {
        if (!bound_of(w, from, &a)) return false;
        a = clamp(a, count, low, high);
    }
    if (to.kind != EV_NONE) {
        if (!bound_of(w, to, &b)) return false;
        b = clamp(b, count, low, high);
    }
    out->from = a;
    out->to = b;
    out->count = 0;
    if (back && b < a) out->count = (uint64_t)(a - b - 1) / (uint64_t)-out->step + 1;
    if (!back && a < b) out->count = (uint64_t)(b - a - 1) / (uint64_t)out->step + 1;
    return true;
}

bool slice_bound(world *w, ev v, uint32_t count, uint32_t otherwise, uint32_t *out) {
    int64_t i;
    *out = otherwise;
    if (v.kind == EV_NONE || v.kind == EV_UNBOUND) return true;
    if (!bound_of(w, v, &i)) return false;
    *out = (uint32_t)clamp(i, count, 0, count);
    return true;
}

static ev slice_text(world *w, ev v, const span *s) {
    if (s->step == 1) return text_part(w, v, (size_t)s->from, s->count);
    text_builder b = write_text(w);
    for (uint64_t i = 0; i < s->count; i++)
        write_point(&b, text_at(v.text, (size_t)(s->from + (int64_t)i * s->step)));
    return v.kind == EV_STR ? write_str(&b) : write_bytes(&b);
}

static ev slice_range(world *w, const range *r, const span *s) {
    arith_i128 from = (arith_i128)r->start + (arith_i128)s->from * r->step;
    arith_i128 step = (arith_i128)r->step * s->step,
               to = (arith_i128)r->start + (arith_i128)s->to * r->step;
    if (step < INT64_MIN || step > INT64_MAX || to < INT64_MIN || to > INT64_MAX)
        return raise_int_overflow(w);
    return range_of(w, (int64_t)from, (int64_t)to, (int64_t)step);
}

static ev slice_items(world *w, ev v, const span *s) {
    uint32_t count;
    const ev *items = sequence_items(w, v, &count);
    if (v.kind == EV_TUPLE && s->step == 1) {
        if (s->count == count && !v.o->class_) return v;
        return tuple_of(w, items + s->from, s->count);
    }
    ev out = plist_new(w, s->count);
    if (ev_failed(out)) return out;
    for (uint64_t i = 0; i < s->count; i++)
        plist_append(w, out.list, items[s->from + (int64_t)i * s->step]);
    return v.kind == EV_LIST ? out : tuple_of(w, out.list->items, out.list->count);
}

ev slice_get(world *w, ev v, ev from, ev to, ev step) {
    span s;
    v = ev_bare_text(v);
    if (!world_need(w, v)) return ev_fail();
    if (v.kind == EV_DICT) return raise_f(w, CLASS_TypeError, "unhashable type: 'slice'");
    if (!is_indexed(v))
        return raise_f(w, CLASS_TypeError, "'%s' object is not subscriptable",
                       type_name_whole(w, v));
    int64_t count = ev_length(w, v);
    if (count < 0) return raise_int_overflow(w);
    if (!span_of(w, from, to, step, count, &s)) return ev_fail();
    if (ev_is_text(v)) return slice_text(w, v, &s);
    return v.kind == EV_RANGE ? slice_range(w, v.range, &s) : slice_items(w, v, &s);
}

/* An extended slice: element for element. */
static bool set_stepped(world *w, plist *l, const span *s, ev items) {
    if (items.list->count != s->count) {
        raise_f(w, CLASS_ValueError,
                "attempt to assign sequence of size %u to extended slice of size %llu",
                items.list->count, (unsigned long long)s->count);
        return false;
    }
    for (uint64_t i = 0; i < s->count; i++)
        plist_set(w, l, (uint32_t)(s->from + (int64_t)i * s->step), items.list->items[i]);
    return true;
}

bool slice_set(world *w, ev v, ev from, ev to, ev step, ev value) {
    span s;
    if (!world_need(w, v)) return false;
    if (v.kind == EV_DICT) return raise_f(w, CLASS_TypeError, "unhashable type: 'slice'"), false;
    if (v.kind != EV_LIST) return item_set(w, v, ev_none(), value);
    if (!span_of(w, from, to, step, v.list->count, &s)) return false;
    bool plain = step.kind == EV_NONE || s.step == 1;
    if (!ev_is_iterable(value)) {
        raise_about(w, value,
                    plain ? "can only assign an iterable"
                          : "must assign iterable to extended slice");
        return false;
    }
    ev items = iter_list(w, value);
    if (ev_failed(items)) return false;
    if (!plain) return set_stepped(w, v.list, &s, items);
    /* The list may have changed while the value was read. */
    if (!span_of(w, from, to, step, v.list->count, &s)) return false;
    return plist_splice(w, v.list, (uint32_t)s.from, (uint32_t)(s.from + (int64_t)s.count),
                        items.list->items, items.list->count);
}

bool slice_delete(world *w, ev v, ev from, ev to, ev step) {
    span s;
    if (!world_need(w, v)) return false;
    if (v.kind == EV_DICT) return raise_f(w, CLASS_TypeError, "unhashable type: 'slice'"), false;
    if (v.kind != EV_LIST) {
        return refuse_deletion(w, v, ev_none());
    }
    if (!span_of(w, from, to, step, v.list->count, &s)) return false;
    if (s.step == 1) return plist_delete(w, v.list, (uint32_t)s.from, (uint32_t)s.count), true;
    /* From the back, so that indices stay. */
    for (uint64_t i = 0; i < s.count; i++) {
        uint64_t j = s.step > 0 ? s.count - 1 - i : i;
        plist_delete(w, v.list, (uint32_t)(s.from + (int64_t)j * s.step), 1);
    }
    return true;
}

/* ---- Attributes -------------------------------------------------------------------------- */

/* Methods of CPython's own exceptions, which a workflow does not have. */
static bool exc_has_method(const world *w, const exc *e, const text *name) {
    static const char *const of_group[] = { "split", "subgroup", "derive" };
    if (text_is(name, "add_note") || text_is(name, "with_traceback")) return true;
    if (!class_is(w->classes, e->head.class_, CLASS_BaseExceptionGroup)) return false;
    for (size_t i = 0; i < sizeof of_group / sizeof *of_group; i++)
        if (text_is(name, of_group[i])) return true;
    return false;
}

static ev refuse_attr(world *w, ev v, ev name) {
    char shown[160];
    (void)text_short(name.text, shown, sizeof shown);
    const class_info *info = class_of(w->classes, v.kind == EV_TYPE ? (uint32_t)v.i : ev_class(v));
    bool program = v.kind == EV_TYPE && v.i >= CLASS_BUILTIN_COUNT;
    bool method = v.kind == EV_EXC && exc_has_method(w, v.exc, name.text);
    if (program || method || ev_flags(w->classes, v) & CLASS_PARTIAL)
        return raise_f(w, CLASS_Unsupported, "'%s' of a '%s' object is not data", shown,
                       class_shown(info));
    if (v.kind == EV_TYPE)
        return raise_f(w, CLASS_AttributeError, "type object '%s' has no attribute '%s'",
                       class_shown(info), shown);
    return raise_f(w, CLASS_AttributeError, "'%s' object has no attribute '%s'", class_shown(info),
                   shown);
}

static ev number_attr(ev v, const text *name) {
    bool whole = v.kind != EV_FLOAT;
    if (text_is(name, "real") || (whole && text_is(name, "numerator")))
        return whole ? ev_int(v.i) : v;
    if (text_is(name, "imag")) return whole ? ev_int(0) : ev_float(0.0);
    if (whole && text_is(name, "denominator")) return ev_int(1);
    return ev_unbound();
}

/* What CPython keeps in a slot of its own exceptions: the argument `arg`, if there are so many, else None. An exception
 * that crossed has it among its attributes instead, if it is no argument. INTERPRETER: the interpreter sets it. */
enum { KEYWORD = 100, INTERPRETER };
static const struct {
    uint32_t class_;
    const char *name;
    uint32_t arg;
} slots[] = {
    { CLASS_StopIteration, "value", 0 },
    { CLASS_ImportError, "msg", 0 },
    { CLASS_ImportError, "name", KEYWORD },
    { CLASS_ImportError, "path", KEYWORD },
    { CLASS_NameError, "name", INTERPRETER },
    { CLASS_AttributeError, "name", INTERPRETER },
    { CLASS_AttributeError, "obj", INTERPRETER },
    { CLASS_UnicodeDecodeError, "encoding", 0 },
    { CLASS_UnicodeDecodeError, "object", 1 },
    { CLASS_UnicodeDecodeError, "start", 2 },
    { CLASS_UnicodeDecodeError, "end", 3 },
    { CLASS_UnicodeDecodeError, "reason", 4 },
    { CLASS_UnicodeEncodeError, "encoding", 0 },
    { CLASS_UnicodeEncodeError, "object", 1 },
    { CLASS_UnicodeEncodeError, "start", 2 },
    { CLASS_UnicodeEncodeError, "end", 3 },
    { CLASS_UnicodeEncodeError, "reason", 4 },
    { CLASS_SyntaxError, "msg", 0 },
    { CLASS_SyntaxError, "filename", INTERPRETER },
    { CLASS_SyntaxError, "lineno", INTERPRETER },
    { CLASS_SyntaxError, "offset", INTERPRETER },
    { CLASS_SyntaxError, "text", INTERPRETER },
};

static ev exc_slot(world *w, const exc *e, const text *name) {
    const tuple *args = e->args.tuple;
    if (class_is(w->classes, e->head.class_, CLASS_SystemExit) && text_is(name, "code"))
        return args->count > 1 ? e->args : args->count ? args->items[0] : ev_none();
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        if (!class_is(w->classes, e->head.class_, slots[i].class_) || !text_is(name, slots[i].name))
            continue;
        if (slots[i].arg == INTERPRETER)
            return raise_f(w, CLASS_Unsupported, "'%s' of a '%s' object is not data", slots[i].name,
                           class_shown(class_of(w->classes, e->head.class_)));
        return slots[i].arg < args->count ? args->items[slots[i].arg] : ev_none();
    }
    return ev_unbound();
}

static ev exc_attr(world *w, ev v, ev name) {
    const exc *e = v.exc;
    dict_entry *at;
    if (text_is(name.text, "args")) return e->args;
    if (text_is(name.text, "__cause__")) return e->cause;
    if (e->attrs.kind == EV_DICT && (at = dict_find(w, e->attrs.dict, name))) return at->value;
    bool system = class_is(w->classes, e->head.class_, CLASS_OSError);
    uint32_t count = e->args.tuple->count;
    if (class_is(w->classes, e->head.class_, CLASS_BaseExceptionGroup) && count == 2) {
        ev inner = e->args.tuple->items[1];
        if (text_is(name.text, "message")) return e->args.tuple->items[0];
        if (text_is(name.text, "exceptions"))
            return inner.kind == EV_LIST ? tuple_of(w, inner.list->items, inner.list->count)
                                         : inner;
    }
    bool numbered = count >= 2 && count <= 5;
    if (system && text_is(name.text, "errno"))
        return numbered ? e->args.tuple->items[0] : ev_none();
    if (system && text_is(name.text, "strerror"))
        return numbered ? e->args.tuple->items[1] : ev_none();
    if (system && (text_is(name.text, "filename") || text_is(name.text, "filename2")))
        return ev_none();
    return exc_slot(w, e, name.text);
}

/* Whether the text of the exception is made of the attribute in CPython. Here it is made of the arguments alone. */
static bool exc_shows(const world *w, const exc *e, const text *name) {
    static const struct {
        uint32_t class_;
        const char *name;
    } shown[] = {
        { CLASS_BaseException, "args" }, { CLASS_OSError, "errno" },
        { CLASS_OSError, "strerror" },   { CLASS_OSError, "filename" },
        { CLASS_OSError, "filename2" },  { CLASS_ImportError, "msg" },
        { CLASS_SyntaxError, "msg" },    { CLASS_SyntaxError, "filename" },
        { CLASS_SyntaxError, "lineno" },
    };
    static const char *const unicode[] = { "encoding", "object", "start", "end", "reason" };
    uint32_t class_ = e->head.class_;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (text_is(name, shown[i].name) && class_is(w->classes, class_, shown[i].class_))
            return true;
    if (!class_is(w->classes, class_, CLASS_UnicodeDecodeError) &&
        !class_is(w->classes, class_, CLASS_UnicodeEncodeError) &&
        !class_is(w->classes, class_, CLASS_UnicodeTranslateError))
        return false;
    for (size_t i = 0; i < sizeof unicode / sizeof *unicode; i++)
        if (text_is(name, unicode[i])) return true;
    return false;
}

static bool exc_is_readonly(const world *w, const exc *e, const text *name) {
    return (text_is(name, "message") || text_is(name, "exceptions")) &&
           class_is(w->classes, e->head.class_, CLASS_BaseExceptionGroup);
}

static ev tuple_attr(const world *w, ev v, const text *name) {
    if (!v.o->class_) return ev_unbound();
    const class_info *info = class_of(w->classes, v.o->class_);
    for (uint32_t i = 0; i < info->fields_count && i < v.tuple->count; i++)
        if (text_is_utf8(name, info->fields[i])) return v.tuple->items[i];
    return ev_unbound();
}

static ev record_attr(world *w, ev v, ev name) {
    if (ev_flags(w->classes, v) & CLASS_SEALED) return ev_unbound();
    dict_entry *e = dict_find(w, v.dict, name);
    return e ? e->value : raise_is_pending(w) ? ev_fail() : ev_unbound();
}

static ev range_attr(const range *r, const text *name) {
    if (text_is(name, "start")) return ev_int(r->start);
    if (text_is(name, "stop")) return ev_int(r->stop);
    return text_is(name, "step") ? ev_int(r->step) : ev_unbound();
}

/* A combination of flags may have no name, which is encoded as an empty one. */
static ev enum_name(ev v) { return v.enumer->name.text->count ? v.enumer->name : ev_none(); }

static ev name_of_class(world *w, uint32_t class_) {
    const char *name = class_shown(class_of(w->classes, class_));
    return text_of_utf8(w, name, strlen(name));
}

ev attr_get(world *w, ev v, ev name) {
    ev found = ev_unbound();
    assert(name.kind == EV_STR);
    if (!world_need(w, v)) return ev_fail();
    if (v.kind == EV_RECORD) found = record_attr(w, v, name);
    else if (v.kind == EV_EXC) found = exc_attr(w, v, name);
    else if (v.kind == EV_TUPLE) found = tuple_attr(w, v, name.text);
    else if (v.kind == EV_RANGE) found = range_attr(v.range, name.text);
    else if (ev_is_number(v)) found = number_attr(v, name.text);
    else if (v.kind == EV_ENUM && text_is(name.text, "name")) found = enum_name(v);
    else if (v.kind == EV_ENUM && text_is(name.text, "value")) found = v.enumer->value;
    else if (v.kind == EV_TYPE && text_is(name.text, "__name__"))
        return name_of_class(w, (uint32_t)v.i);
    bool own = v.kind == EV_TYPE && class_may_have_metaclass(w->classes, (uint32_t)v.i);
    if (text_is(name.text, "__class__") && found.kind == EV_UNBOUND && !own)
        return ev_type(ev_class(v));
    return found.kind == EV_UNBOUND ? refuse_attr(w, v, name) : found;
}

/* AttributeError for assigning or deleting an attribute of a value of a built-in class. */
static bool refuse_change(world *w, ev v, ev name) {
    char shown[160];
    bool number = ev_is_number(v) && number_attr(v, name.text).kind != EV_UNBOUND;
    if (number)
        raise_f(w, CLASS_AttributeError, "attribute '%s' of '%s' objects is not writable",
                text_short(name.text, shown, sizeof shown), v.kind == EV_FLOAT ? "float" : "int");
    else if (v.kind == EV_RANGE && range_attr(v.range, name.text).kind != EV_UNBOUND)
        raise_f(w, CLASS_AttributeError, "readonly attribute");
    else refuse_attr(w, v, name);
    return false;
}

/* raise ... from cause */
static bool set_cause(world *w, exc *e, ev cause) {
    cause = exc_of(w, cause);
    if (ev_failed(cause)) return false;
    if (cause.kind != EV_EXC && cause.kind != EV_NONE) {
        raise_f(w, CLASS_TypeError, "exception causes must derive from BaseException");
        return false;
    }
    world_ref(cause);
    world_unref(w, e->cause);
    e->cause = cause;
    world_note(w, e, CHANGE_REPLACE, 0, ev_none(), ev_none());
    return true;
}

/* Members of enums and classes belong to the program: what CPython would change there, other workflows would see. */
static ev refuse_shared(world *w, ev v) {
    const class_info *info = class_of(w->classes, v.kind == EV_TYPE ? (uint32_t)v.i : ev_class(v));
    return raise_f(w, CLASS_Unsupported, "changing an attribute of %s '%s'",
                   v.kind == EV_TYPE ? "the class" : "a member of", class_shown(info));
}

static bool exc_has_text(ev v) {
    const ev attrs = v.exc->attrs;
    return attrs.kind == EV_DICT &&
           (dict_find_name(attrs.dict, "__str__") || dict_find_name(attrs.dict, "__repr__"));
}

static bool exc_set(world *w, exc *e, ev name, ev value) {
    if (e->attrs.kind != EV_DICT) {
        e->attrs = dict_new(w, EV_DICT);
        if (ev_failed(e->attrs)) return e->attrs = ev_none(), false;
        world_ref(e->attrs);
    }
    if (!dict_set(w, e->attrs.dict, name, value)) return false;
    world_note(w, e, CHANGE_REPLACE, 0, ev_none(), ev_none());
    return true;
}

bool exc_put(world *w, exc *e, const char *name, ev value) {
    ev key = text_of_ascii(w, name);
    return !ev_failed(key) && exc_set(w, e, key, value);
}

bool attr_set(world *w, ev v, ev name, ev value) {
    char shown[160];
    if (!world_need(w, v)) return false;
    if (text_is(name.text, "__cause__")) {
        if (v.kind == EV_EXC) return set_cause(w, v.exc, value);
        raise_f(w, v.kind == EV_TYPE ? CLASS_Unsupported : CLASS_TypeError,
                v.kind == EV_TYPE ? "a cause for a class"
                                  : "exceptions must derive from BaseException");
        return false;
    }
    if (v.kind == EV_EXC) {
        if (ev_flags(w->classes, v) & (CLASS_OWN_TEXT | CLASS_OWN_SET) || exc_has_text(v))
            return raise_f(w, CLASS_Unsupported,
                           "assigning '%s' of a '%s', whose text code of the class makes: give it "
                           "to the constructor, or do it in an action",
                           text_short(name.text, shown, sizeof shown),
                           class_shown(class_of(w->classes, v.o->class_))),
                   false;
        if (exc_is_readonly(w, v.exc, name.text))
            return raise_f(w, CLASS_AttributeError, "readonly attribute"), false;
        if (exc_shows(w, v.exc, name.text))
            return raise_f(w, CLASS_Unsupported, "assigning '%s' of an exception",
                           text_short(name.text, shown, sizeof shown)),
                   false;
        return exc_set(w, v.exc, name, value);
    }
    if (v.kind == EV_TUPLE && tuple_attr(w, v, name.text).kind != EV_UNBOUND)
        return raise_f(w, CLASS_AttributeError, "can't set attribute"), false;
    if (v.kind == EV_ENUM || v.kind == EV_TYPE) return refuse_shared(w, v), false;
    if (v.kind != EV_RECORD) return refuse_change(w, v, name);
    const class_info *info = class_of(w->classes, v.o->class_);
    if (info->flags & CLASS_OWN_SET)
        return raise_own(w, v.o->class_, "assigning an attribute"), false;
    if (info->flags & CLASS_FROZEN) {
        raise_f(w, CLASS_FrozenInstanceError, "cannot assign to field '%s'",
                text_short(name.text, shown, sizeof shown));
        return false;
    }
    /* A name that is none of its data may be a property. */
    if ((!(info->flags & CLASS_OPEN) || info->flags & CLASS_PARTIAL) && !dict_find(w, v.dict, name))
        return refuse_attr(w, v, name), false;
    return dict_set(w, v.dict, name, value);
}

bool attr_delete(world *w, ev v, ev name) {
    char shown[160];
    if (v.kind == EV_ENUM || v.kind == EV_TYPE) return refuse_shared(w, v), false;
    if (v.kind == EV_EXC && exc_is_readonly(w, v.exc, name.text))
        return raise_f(w, CLASS_AttributeError, "readonly attribute"), false;
    if (v.kind == EV_EXC)
        return raise_f(w, CLASS_Unsupported, "deleting an attribute of an exception"), false;
    if (v.kind != EV_RECORD) return refuse_change(w, v, name);
    if (!world_need(w, v)) return false;
    if (class_of(w->classes, v.o->class_)->flags & CLASS_OWN_SET)
        return raise_own(w, v.o->class_, "deleting an attribute"), false;
    if (class_of(w->classes, v.o->class_)->flags & CLASS_FROZEN) {
        raise_f(w, CLASS_FrozenInstanceError, "cannot delete field '%s'",
                text_short(name.text, shown, sizeof shown));
        return false;
    }
    int gone = dict_delete(w, v.dict, name);
    if (gone == 0) refuse_attr(w, v, name);
    return gone == 1;
}

/* decode.c -- makes objects of a world from the encodings that encode.h describes. */
#include "expr/call.h"
#include "expr/dict.h"
#include "expr/encode.h"
#include "expr/iter.h"
#include "expr/plist.h"
#include "expr/text.h"
#include "expr/tuple.h"

typedef struct decoder {
    world *w;
    decode_ref_fn find; /* NULL: references are refused */
    void *ctx;
    hd_error *error;
    hd_status status;
} decoder;

static ev decode(decoder *d, hd_value v);

static ev refuse(decoder *d, const char *message) {
    if (!d->status) env_error(d->error, HD_SYNTAX, "%s", message);
    if (!d->status) d->status = HD_SYNTAX;
    return ev_fail();
}

/* ---- Pieces ------------------------------------------------------------------------------ */

static ev decode_string(decoder *d, hd_value v) {
    size_t length;
    const char *chars = hd_value_text(v, &length);
    return chars ? text_of_utf8(d->w, chars, length)
                 : refuse(d, "a string is missing in an encoding");
}

/* A single dollar stays: encode writes such a key only as part of a form, so this one is the key of a program that does
 * not know of encodings. */
static ev decode_key(decoder *d, const char *key, size_t length) {
    bool dollar = length > 1 && key[0] == '$' && key[1] == '$';
    return text_of_utf8(d->w, key + dollar, length - dollar);
}

static ev decode_points(decoder *d, hd_value from) {
    hd_value points = hd_value_at(from, "$str");
    text_builder b = write_text(d->w);
    for (hd_iter it = hd_iter_of(points); hd_iter_next(&it);) {
        int64_t p = hd_value_as_int(it.value, -1);
        if (p < 0 || p > 0x10FFFF) {
            write_drop(&b);
            return refuse(d, "\"$str\" holds code points");
        }
        write_point(&b, (uint32_t)p);
    }
    return write_str(&b);
}

/* From the element `from` on: those before it may refer to objects that are gone. */
static bool fill_list(decoder *d, plist *l, hd_value items, size_t from) {
    if (hd_value_kind(items) != HD_KIND_ARRAY)
        return refuse(d, "an array is missing in an encoding"), false;
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        if (from && from--) continue;
        ev v = decode(d, it.value);
        if (ev_failed(v) || !plist_append(d->w, l, v)) return false;
    }
    return true;
}

static ev decode_list(decoder *d, hd_value items) {
    ev out = plist_new(d->w, hd_value_count(items));
    return ev_failed(out) || !fill_list(d, out.list, items, 0) ? ev_fail() : out;
}

/* dict_set has failed for this key of a dict, or element of a set. If it has raised, the decoder's error names the
 * key's class. Always false. */
static bool refuse_key(decoder *d, ev key) {
    if (d->status || d->w->status || d->w->pending.kind != EV_EXC) return false;
    bool is_unknown = d->w->pending.exc->head.class_ == CLASS_Unsupported;
    d->status = HD_SYNTAX;
    env_error(d->error, HD_SYNTAX, "a key of a dict or an element of a set is a '%.40s', %s",
              class_shown(class_of(d->w->classes, ev_class(key))),
              is_unknown ? "which the workflow cannot compare: if its class is an enum, annotate "
                           "the action or input with it"
                         : "which cannot be hashed");
    return false;
}

/* A place in an instance's document whose entry was deleted. */
static bool is_hole(const decoder *d, hd_value v) {
    return d->find && hd_value_kind(v) == HD_KIND_ARRAY && !hd_value_count(v);
}

static bool fill_set(decoder *d, dict *s, hd_value items) {
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        if (is_hole(d, it.value)) {
            if (!dict_skip(d->w, s)) return false;
            continue;
        }
        ev v = decode(d, it.value);
        if (ev_failed(v)) return false;
        if (!dict_set(d->w, s, v, ev_none())) return refuse_key(d, v);
    }
    return true;
}

static bool fill_pairs(decoder *d, dict *to, hd_value pairs) {
    for (hd_iter it = hd_iter_of(pairs); hd_iter_next(&it);) {
        if (is_hole(d, it.value)) {
            if (!dict_skip(d->w, to)) return false;
            continue;
        }
        if (hd_value_count(it.value) != 2 || hd_value_kind(it.value) != HD_KIND_ARRAY)
            return refuse(d, "\"$dict\" holds pairs"), false;
        ev key = decode(d, hd_value_index(it.value, 0)), v = decode(d, hd_value_index(it.value, 1));
        if (ev_failed(key) || ev_failed(v)) return false;
        if (!dict_set(d->w, to, key, v)) return refuse_key(d, key);
    }
    return true;
}

static bool put_name(decoder *d, dict *to, const char *key, size_t length, hd_value v) {
    ev name = decode_key(d, key, length), value = ev_failed(name) ? name : decode(d, v);
    return !ev_failed(value) && dict_set(d->w, to, name, value);
}

static bool is_record_tag(const char *key, size_t length) {
    return length == 7 && !memcmp(key, "$record", 7);
}

/* How many keys "$keys" names. */
static size_t names_of(const decoder *d, hd_value keys) {
    size_t count = 0;
    for (hd_iter it = hd_iter_of(keys); hd_iter_next(&it);) count += !is_hole(d, it.value);
    return count;
}

/* Adds the entries in the order of "$keys", which must name each key once. */
static bool fill_ordered(decoder *d, dict *to, hd_value from, hd_value keys) {
    for (hd_iter it = hd_iter_of(keys); hd_iter_next(&it);) {
        size_t length;
        if (is_hole(d, it.value)) {
            if (!dict_skip(d->w, to)) return false;
            continue;
        }
        const char *name = hd_value_text(it.value, &length);
        ev plain = name ? text_of_utf8(d->w, name, length) : refuse(d, "\"$keys\" holds strings");
        if (ev_failed(plain)) return false;
        text_builder b = write_text(d->w);
        if (length && name[0] == '$') write_point(&b, '$');
        write_utf8(&b, plain.text);
        ev key = write_bytes(&b);
        if (ev_failed(key)) return false;
        hd_value v = hd_value_at_n(from, (const char *)key.text->data, key.text->count);
        if (!hd_value_exists(v)) return refuse(d, "\"$keys\" does not fit"), false;
        if (!put_name(d, to, (const char *)key.text->data, key.text->count, v)) return false;
    }
    return to->count == names_of(d, keys) || (refuse(d, "\"$keys\" does not fit"), false);
}

/* Adds the entries of an object. `record`: its key "$record" is the tag, and no entry. */
static bool fill_names(decoder *d, dict *to, hd_value from, bool record) {
    hd_value keys = hd_value_at(from, "$keys");
    if (hd_value_kind(keys) == HD_KIND_ARRAY &&
        names_of(d, keys) + 1 + record == hd_value_count(from))
        return fill_ordered(d, to, from, keys);
    for (hd_iter it = hd_iter_of(from); hd_iter_next(&it);) {
        if (record && is_record_tag(it.key, it.key_length)) continue;
        if (!put_name(d, to, it.key, it.key_length, it.value)) return false;
    }
    return true;
}

/* ---- Tagged forms ------------------------------------------------------------------------ */

/* What is assumed of a class that nothing has declared. Named tuples and exceptions are assumed to have no operators of
 * their own: Python encodes such a tuple as a record, and marks such an exception with "__own__" (values.py). */
static uint16_t flags_of(class_kind kind) {
    if (kind == CLASS_TUPLE) return CLASS_OPEN | CLASS_PARTIAL | CLASS_OWN_TEXT;
    if (kind == CLASS_EXCEPTION) return CLASS_OPEN | CLASS_PARTIAL | CLASS_OWN_BASES;
    return CLASS_UNKNOWN;
}

/* Adds a class of the program that nothing has declared: all that is known is its name. */
static bool make_class(decoder *d, hd_value name, class_kind kind, uint32_t base, uint32_t *out) {
    uint32_t flags = flags_of(kind);
    size_t length;
    const char *chars = hd_value_text(name, &length);
    char own[CLASS_NAME_SIZE];
    if (!length || length >= sizeof own || memchr(chars, 0, length))
        return refuse(d, "an encoding names a class that cannot be one"), false;
    memcpy(own, chars, length);
    own[length] = 0;
    if (kind == CLASS_RECORD && class_is_sealed(own)) flags |= CLASS_SEALED;
    hd_status status = classes_add(
        d->w->classes,
        &(class_info){ .name = own, .base = base, .kind = (uint8_t)kind, .flags = (uint16_t)flags },
        out);
    if (status == HD_NOMEM) d->w->status = d->status = status;
    return !status || (refuse(d, "too many classes"), false);
}

/* The class of this name, which is made if it is not known. A class that was only named so far (CLASS_NAMED) gets this
 * kind and base. `base` is CLASS_object for all but exceptions and named tuples. */
static bool find_class(decoder *d, hd_value name, class_kind kind, uint32_t base, uint32_t *out) {
    size_t length;
    const char *chars = hd_value_text(name, &length);
    if (!chars) return refuse(d, "an encoding names no class"), false;
    *out = classes_find(d->w->classes, chars, length);
    if (*out == CLASS_NONE) return make_class(d, name, kind, base, out);
    class_info *info = &d->w->classes->all.items[*out];
    if (info->flags & CLASS_NAMED) {
        info->kind = (uint8_t)kind;
        info->base = base;
        info->flags = flags_of(kind) | (info->flags & CLASS_SEALED);
    }
    if (info->kind == kind) return true;
    refuse(d, "an encoding names a class of another kind");
    return false;
}

/* The class of an exception. "bases" lists all classes above it, the closest first, for a class that is not
 * declared. */
static bool find_error_class(decoder *d, hd_value from, const char *tag, uint32_t *out) {
    hd_value bases = hd_value_at(from, "bases");
    uint32_t above[CLASS_ABOVE_MAX + 1], count = 0;
    bool known = false; /* a built-in one is among them */
    size_t given = hd_value_kind(bases) == HD_KIND_ARRAY ? hd_value_count(bases) : 0;
    if (!find_class(d, hd_value_at(from, tag), CLASS_EXCEPTION, CLASS_BaseException, out))
        return false;
    for (; count < given && count < CLASS_ABOVE_MAX; count++) {
        if (!find_class(d, hd_value_index(bases, count), CLASS_EXCEPTION, CLASS_BaseException,
                        &above[count]))
            return false;
        known |= above[count] < CLASS_BUILTIN_COUNT;
    }
    if (!known) above[count++] = CLASS_Exception;
    hd_status status = classes_link(d->w->classes, *out, above, count);
    if (status) d->w->status = d->status = status;
    return !status;
}

static ev decode_tuple(decoder *d, hd_value from) {
    uint32_t class_ = 0;
    hd_value name = hd_value_at(from, "class");
    ev items = decode_list(d, hd_value_at(from, "$tuple"));
    if (ev_failed(items)) return items;
    if (hd_value_exists(name) && !find_class(d, name, CLASS_TUPLE, CLASS_tuple, &class_))
        return ev_fail();
    ev out = tuple_of(d->w, items.list->items, items.list->count);
    if (!ev_failed(out) && class_ && out.tuple->count) out.o->class_ = (uint16_t)class_;
    return out;
}

static ev decode_range(decoder *d, hd_value from) {
    hd_value parts = hd_value_at(from, "$range");
    int64_t step = hd_value_as_int(hd_value_index(parts, 2), 0);
    if (hd_value_count(parts) != 3 || step == 0)
        return refuse(d, "\"$range\" holds three integers");
    return range_of(d->w, hd_value_as_int(hd_value_index(parts, 0), 0),
                    hd_value_as_int(hd_value_index(parts, 1), 0), step);
}

static bool decode_place(decoder *d, exc *e, hd_value place) {
    hd_value names = hd_value_at(place, "$tuple");
    const char *where = hd_value_as_text(hd_value_index(names, 0), NULL);
    const char *node = hd_value_as_text(hd_value_index(names, 1), NULL);
    if (!where || !node) return refuse(d, "\"raised\" names a function and a node"), false;
    return raise_note_place(d->w, e, where, node);
}

static bool fill_error(decoder *d, exc *to, hd_value from) {
    hd_value place = hd_value_at(from, "raised");
    hd_value attrs = hd_value_at(from, "attrs"), cause = hd_value_at(from, "cause");
    ev items = decode_list(d, hd_value_at(from, "args"));
    ev args = ev_failed(items) ? items : tuple_of(d->w, items.list->items, items.list->count);
    if (ev_failed(args)) return false;
    to->args = args;
    world_ref(args);
    to->attrs = to->cause = to->raised = ev_none();
    if (hd_value_exists(attrs)) {
        ev all = dict_new(d->w, EV_DICT);
        if (ev_failed(all) || !fill_names(d, all.dict, attrs, false)) return false;
        to->attrs = all;
        world_ref(all);
        if (dict_find_name(all.dict, "__own__"))
            d->w->classes->all.items[to->head.class_].flags |=
                CLASS_OWN | CLASS_OWN_EQUAL | CLASS_OWN_TRUTH | CLASS_OWN_SET;
    }
    if (hd_value_exists(cause)) {
        ev inner = decode(d, cause);
        if (inner.kind != EV_EXC) return refuse(d, "a cause is an exception"), false;
        to->cause = inner;
        world_ref(inner);
    }
    return !hd_value_exists(place) || decode_place(d, to, place);
}

static ev decode_error(decoder *d, hd_value from) {
    uint32_t class_;
    if (!find_error_class(d, from, "$error", &class_)) return ev_fail();
    exc *out = world_object(d->w, EV_EXC, sizeof *out);
    if (!out) return ev_fail();
    out->head.class_ = (uint16_t)class_;
    return fill_error(d, out, from) ? ev_of(out) : ev_fail();
}

static ev decode_enum(decoder *d, hd_value from) {
    uint32_t class_;
    if (!find_class(d, hd_value_at(from, "$enum"), CLASS_ENUM, CLASS_Enum, &class_))
        return ev_fail();
    ev name = decode_string(d, hd_value_at(from, "name"));
    hd_value value = hd_value_at(from, "value");
    ev v = ev_failed(name) || !hd_value_exists(value) ? refuse(d, "an enum has a name and a value")
                                                      : decode(d, value);
    enumer *e = ev_failed(v) ? NULL : world_object(d->w, EV_ENUM, sizeof *e);
    if (!e) return ev_fail();
    e->head.class_ = (uint16_t)class_;
    if (class_of(d->w->classes, class_)->flags & CLASS_BARE) e->head.flags |= OBJ_BARE;
    e->name = name;
    e->value = v;
    world_ref(name);
    world_ref(v);
    return ev_of(e);
}

static ev decode_view(decoder *d, ev of, hd_value part) {
    const char *what = hd_value_as_text(part, "");
    if (of.kind != EV_DICT) return refuse(d, "a \"view\" is one of a dict");
    return view_of(d->w, of,
                   !strcmp(what, "keys")     ? VIEW_KEYS
                   : !strcmp(what, "values") ? VIEW_VALUES
                                             : VIEW_ITEMS);
}

static ev decode_ref(decoder *d, hd_value from) {
    int64_t n = hd_value_as_int(hd_value_at(from, "$ref"), 0);
    if (!d->find || n <= 0 || n > UINT32_MAX) return refuse(d, "\"$ref\" is a number of an object");
    ev object = d->find(d->ctx, d->w, (uint32_t)n);
    hd_value part = hd_value_at(from, "view");
    return ev_failed(object) || !hd_value_exists(part) ? object : decode_view(d, object, part);
}

static ev decode_iterator(decoder *d, hd_value from) {
    (void)from;
    ev it = iter_new(d->w, ITER_GENERATOR, ev_int(0), ev_none());
    if (!ev_failed(it)) it.iter->end = -1; /* of no evaluation: resuming it raises Unsupported */
    return it;
}

/* Of no code: calling it raises Unsupported. */
static ev decode_function(decoder *d, hd_value from) {
    (void)d;
    (void)from;
    return call_target(TARGET_LAMBDA, 0, 0);
}

static ev decode_type(decoder *d, hd_value from) {
    size_t length;
    const char *chars = hd_value_text(hd_value_at(from, "$type"), &length);
    uint32_t class_ = chars ? classes_find(d->w->classes, chars, length) : CLASS_NONE;
    if (class_ == CLASS_NONE && hd_value_exists(hd_value_at(from, "bases")) &&
        !find_error_class(d, from, "$type", &class_))
        return ev_fail();
    if (class_ != CLASS_NONE) return ev_type(class_);
    if (!chars || !memchr(chars, ':', length))
        return refuse(d, "an encoding names a class that is not registered");
    if (!make_class(d, hd_value_at(from, "$type"), CLASS_RECORD, CLASS_object, &class_))
        return ev_fail();
    d->w->classes->all.items[class_].flags |= CLASS_NAMED;
    return ev_type(class_);
}

static ev decode_record(decoder *d, hd_value from) {
    uint32_t class_;
    if (!find_class(d, hd_value_at(from, "$record"), CLASS_RECORD, CLASS_object, &class_))
        return ev_fail();
    ev out = record_new(d->w, class_);
    return ev_failed(out) || !fill_names(d, out.dict, from, true) ? ev_fail() : out;
}

static ev decode_set(decoder *d, hd_value from) {
    ev out = dict_new(d->w, EV_SET);
    return ev_failed(out) || !fill_set(d, out.dict, hd_value_at(from, "$set")) ? ev_fail() : out;
}

static ev decode_pairs(decoder *d, hd_value from) {
    ev out = dict_new(d->w, EV_DICT);
    return ev_failed(out) || !fill_pairs(d, out.dict, hd_value_at(from, "$dict")) ? ev_fail() : out;
}

/* An object with this tag has the form if the tag's value is of this kind and every other key is one of the form's own.
 * Any other object belongs to a program that does not know of encodings. */
typedef struct form {
    const char *tag;
    hd_kind kind;
    const char *beside[5]; /* the keys that may stand beside the tag; NULL behind the last */
    const char *stored; /* the key that may stand there only in an instance's document; or NULL */
    bool any;           /* any key may stand beside the tag */
    bool inside;        /* the form is one only in an instance's document */
    ev (*decode)(decoder *d, hd_value from);
} form;

static const form forms[] = {
    { "$record", HD_KIND_STRING, { 0 }, NULL, true, false, decode_record },
    { "$tuple", HD_KIND_ARRAY, { "class" }, NULL, false, false, decode_tuple },
    { "$error",
      HD_KIND_STRING,
      { "args", "attrs", "bases", "cause", "message" },
      "raised",
      false,
      false,
      decode_error },
    { "$enum", HD_KIND_STRING, { "name", "value" }, NULL, false, false, decode_enum },
    { "$range", HD_KIND_ARRAY, { 0 }, NULL, false, false, decode_range },
    { "$ref", HD_KIND_INT, { 0 }, "view", false, false, decode_ref },
    { "$iterator", HD_KIND_STRING, { 0 }, NULL, false, true, decode_iterator },
    { "$function", HD_KIND_STRING, { 0 }, NULL, false, true, decode_function },
    { "$str", HD_KIND_ARRAY, { 0 }, NULL, false, false, decode_points },
    { "$type", HD_KIND_STRING, { "bases" }, NULL, false, false, decode_type },
    { "$set", HD_KIND_ARRAY, { 0 }, NULL, false, false, decode_set },
    { "$dict", HD_KIND_ARRAY, { 0 }, NULL, false, false, decode_pairs },
};

static bool has_form(const decoder *d, const form *f, hd_value from) {
    size_t known = 1;
    if (f->inside && !d->find) return false;
    if (hd_value_kind(hd_value_at(from, f->tag)) != f->kind) return false;
    for (size_t i = 0; i < 5 && f->beside[i]; i++)
        known += hd_value_exists(hd_value_at(from, f->beside[i]));
    if (d->find && f->stored) known += hd_value_exists(hd_value_at(from, f->stored));
    return f->any || known == hd_value_count(from);
}

static ev decode_object_form(decoder *d, hd_value from) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (has_form(d, &forms[i], from)) return forms[i].decode(d, from);
    ev out = dict_new(d->w, EV_DICT);
    return ev_failed(out) || !fill_names(d, out.dict, from, false) ? ev_fail() : out;
}

/* ---- All --------------------------------------------------------------------------------- */

static ev decode_nested(decoder *d, hd_value v) {
    if (!world_enter(d->w, " while decoding an object")) return ev_fail();
    ev out = hd_value_kind(v) == HD_KIND_ARRAY ? decode_list(d, v) : decode_object_form(d, v);
    world_leave(d->w);
    return out;
}

static ev decode(decoder *d, hd_value v) {
    size_t size;
    const void *bytes = hd_value_bytes(v, &size);
    switch (hd_value_kind(v)) {
    case HD_KIND_NULL: return ev_none();
    case HD_KIND_BOOL: return ev_bool(hd_value_as_bool(v, false));
    case HD_KIND_INT: return ev_int(hd_value_as_int(v, 0));
    case HD_KIND_DOUBLE: return ev_float(hd_value_as_double(v, 0));
    case HD_KIND_STRING: return decode_string(d, v);
    case HD_KIND_BYTES: return bytes_of(d->w, bytes, size);
    case HD_KIND_ARRAY:
    case HD_KIND_OBJECT: return decode_nested(d, v);
    default: return refuse(d, "links cannot be read by expressions");
    }
}

/* Returns what went wrong as a status, and clears it from the world. */
static hd_status take_failure(decoder *d) {
    world *w = d->w;
    hd_status status = d->status ? d->status : w->status ? w->status : HD_LIMIT;
    if (!d->status && raise_is_pending(w))
        env_error(d->error, status, "the encoding cannot be read: it is too deep or too large");
    raise_catch(w);
    w->failure = FAILURE_NONE;
    w->status = HD_OK;
    w->depth = 0;
    return status;
}

hd_status decode_slot(world *w, hd_value from, decode_ref_fn find, void *ctx, ev *out,
                      hd_error *error) {
    decoder d = { w, find, ctx, error, HD_OK };
    if (find) world_begin_stored(w);
    else world_begin(w);
    *out = decode(&d, from);
    return ev_failed(*out) || d.status ? take_failure(&d) : HD_OK;
}

hd_status decode_value(world *w, hd_value from, ev *out, hd_error *error) {
    return decode_slot(w, from, NULL, NULL, out, error);
}

ev decode_stub(world *w, hd_value content, uint32_t number) {
    decoder d = { w, NULL, NULL, NULL, HD_OK };
    hd_value record = hd_value_at(content, "$record");
    uint32_t class_ = 0;
    ev_kind kind = hd_value_kind(content) == HD_KIND_ARRAY           ? EV_LIST
                   : hd_value_exists(hd_value_at(content, "$list"))  ? EV_LIST
                   : hd_value_exists(record)                         ? EV_RECORD
                   : hd_value_exists(hd_value_at(content, "$error")) ? EV_EXC
                   : hd_value_exists(hd_value_at(content, "$set"))   ? EV_SET
                                                                     : EV_DICT;
    if (kind == EV_RECORD && !find_class(&d, record, CLASS_RECORD, CLASS_object, &class_))
        return ev_fail();
    if (kind == EV_EXC && !find_error_class(&d, content, "$error", &class_)) return ev_fail();
    return world_stub(w, kind, class_, number);
}

/* The form in which the entries were found, if each has got the place that it has there. */
static dict_form form_of(ev object, hd_value from) {
    static const struct {
        const char *tag;
        dict_form form;
    } lists[] = { { "$set", DICT_SET }, { "$dict", DICT_PAIRS }, { "$keys", DICT_KEYS } };
    for (size_t i = object.kind != EV_SET; i < (object.kind == EV_SET ? 1 : 3); i++) {
        hd_value entries = hd_value_at(from, lists[i].tag);
        if (hd_value_kind(entries) == HD_KIND_ARRAY)
            return hd_value_count(entries) == object.dict->used ? lists[i].form : DICT_WHOLE;
    }
    return hd_value_exists(hd_value_at(from, "$keys")) ? DICT_WHOLE : DICT_ORDERED;
}

/* A list, or one that is stored as a queue: {"$list": [...], "from": n}. */
static bool fill_object_list(decoder *d, plist *l, hd_value from) {
    hd_value items = hd_value_at(from, "$list");
    if (hd_value_kind(from) == HD_KIND_ARRAY) return fill_list(d, l, from, 0);
    int64_t gone = hd_value_as_int(hd_value_at(from, "from"), -1);
    if (gone < 0 || (uint64_t)gone > hd_value_count(items) || gone > WORLD_COUNT_MAX)
        return refuse(d, "\"from\" does not fit"), false;
    l->queue = (uint32_t)gone + 1;
    return fill_list(d, l, items, (size_t)gone);
}

hd_status decode_object(world *w, hd_value from, ev object, decode_ref_fn find, void *ctx,
                        hd_error *error) {
    decoder d = { w, find, ctx, error, HD_OK };
    bool good;
    world_begin_stored(w);
    if (object.kind == EV_LIST) good = fill_object_list(&d, object.list, from);
    else if (object.kind == EV_EXC) good = fill_error(&d, object.exc, from);
    else if (object.kind == EV_SET) good = fill_set(&d, object.dict, hd_value_at(from, "$set"));
    else if (hd_value_kind(hd_value_at(from, "$dict")) == HD_KIND_ARRAY)
        good = fill_pairs(&d, object.dict, hd_value_at(from, "$dict"));
    else good = fill_names(&d, object.dict, from, object.kind == EV_RECORD);
    if (object.kind >= EV_DICT) object.dict->form = form_of(object, from);
    return good && !d.status ? HD_OK : take_failure(&d);
}

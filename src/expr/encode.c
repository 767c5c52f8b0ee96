/* encode.c -- see encode.h. */
#include "expr/encode.h"

#include "expr/dict.h"
#include "expr/repr.h"
#include "expr/text.h"

typedef struct encoder {
    world *w;
    hd_pool *pool;
    encode_number_fn number; /* NULL: by value */
    void *ctx;
    bool plain; /* dicts have their keys as they are, in the order of the store */
} encoder;

static hd_value encode(encoder *e, ev v);

static hd_value failed(encoder *e) { return hd_failed(e->w->status ? e->w->status : HD_KIND); }

/* ---- Texts ------------------------------------------------------------------------------- */

static hd_value tagged(encoder *e, const char *tag, hd_value v) {
    return hd_object_set(e->pool, hd_object(), tag, v);
}

static hd_value encode_points(encoder *e, const text *t) {
    hd_builder *b;
    if (hd_builder_open(e->pool, HD_KIND_ARRAY, &b)) return hd_failed(HD_NOMEM);
    for (uint32_t i = 0; i < t->count; i++) hd_builder_add(b, hd_int(e->pool, text_at(t, i)));
    return tagged(e, "$str", hd_builder_close(b));
}

/* The UTF-8 of a text, as bytes of the world. */
static ev utf8_of(world *w, const text *t, const char *before) {
    text_builder b = write_text(w);
    write_ascii(&b, before);
    write_utf8(&b, t);
    return write_bytes(&b);
}

static hd_value encode_text(encoder *e, const text *t) {
    if (text_has_surrogate(t)) return encode_points(e, t);
    text_builder b = write_text(e->w);
    write_utf8(&b, t);
    hd_value v = b.failed ? failed(e) : hd_string_n(e->pool, b.data, b.count);
    write_drop(&b);
    return v;
}

static bool is_dollar(const text *t) { return t->count && text_at(t, 0) == '$'; }

ev encode_name(world *w, const text *t) { return utf8_of(w, t, is_dollar(t) ? "$" : ""); }

/* A key of an object. */
static ev key_text(const encoder *e, const text *t) {
    return e->plain ? utf8_of(e->w, t, "") : encode_name(e->w, t);
}

/* ---- Containers -------------------------------------------------------------------------- */

static hd_value encode_items(encoder *e, const ev *items, uint32_t count) {
    hd_builder *b;
    if (hd_builder_open(e->pool, HD_KIND_ARRAY, &b)) return hd_failed(HD_NOMEM);
    for (uint32_t i = 0; i < count; i++) {
        hd_value v = encode(e, items[i]);
        hd_builder_add(b, v);
        if (hd_value_status(v)) break;
    }
    return hd_builder_close(b);
}

static bool keys_are_names(const dict *d) {
    uint32_t at = 0;
    for (dict_entry *e; (e = dict_next(d, &at));)
        if (e->key.kind != EV_STR || text_has_surrogate(e->key.text)) return false;
    return true;
}

/* Objects of the store iterate in the byte order of their keys: that of code points. */
static bool keys_are_sorted(const dict *d) {
    const text *last = NULL;
    uint32_t at = 0;
    for (dict_entry *e; (e = dict_next(d, &at)); last = e->key.text)
        if (last && text_order(last, e->key.text) >= 0) return false;
    return true;
}

typedef hd_value encode_entry_fn(encoder *e, const dict_entry *entry);

/* The entries as a list. In an instance's document the nth entry stands at place n, so that a change of one names a
 * place: where an entry was deleted there is a hole. */
static hd_value encode_entries(encoder *e, const dict *d, encode_entry_fn *encode_entry) {
    hd_builder *b;
    if (hd_builder_open(e->pool, HD_KIND_ARRAY, &b)) return hd_failed(HD_NOMEM);
    for (uint32_t i = 0; i < d->used; i++) {
        bool deleted = d->entries[i].key.kind == EV_UNBOUND;
        if (deleted && !e->number) continue;
        hd_value v = deleted ? ENCODE_HOLE : encode_entry(e, &d->entries[i]);
        hd_builder_add(b, v);
        if (hd_value_status(v)) break;
    }
    return hd_builder_close(b);
}

static hd_value encode_key(encoder *e, const dict_entry *entry) {
    return encode_text(e, entry->key.text);
}

static hd_value encode_names(encoder *e, const dict *d, const char *tag, const char *name) {
    hd_builder *b;
    uint32_t at = 0;
    if (hd_builder_open(e->pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    if (tag) hd_builder_put(b, tag, hd_string(e->pool, name));
    for (dict_entry *entry; (entry = dict_next(d, &at));) {
        ev key = key_text(e, entry->key.text);
        hd_value v = ev_failed(key) ? failed(e) : encode(e, entry->value);
        if (ev_failed(key)) {
            hd_builder_put(b, "", v);
            break;
        }
        hd_builder_put_n(b, (const char *)key.text->data, key.text->count, v);
        if (hd_value_status(v)) break;
    }
    if (!e->plain && !keys_are_sorted(d))
        hd_builder_put(b, "$keys", encode_entries(e, d, encode_key));
    return hd_builder_close(b);
}

static hd_value encode_pair(encoder *e, const dict_entry *entry) {
    ev pair[2] = { entry->key, entry->value };
    return encode_items(e, pair, 2);
}

static hd_value encode_element(encoder *e, const dict_entry *entry) {
    return encode(e, entry->key);
}

static hd_value encode_list(encoder *e, const plist *l) {
    hd_value items = encode_items(e, l->items, l->count);
    if (!e->number || !l->queue) return items;
    return hd_object_set(e->pool, tagged(e, "$list", items), "from", hd_int(e->pool, 0));
}

static const char *class_name(const world *w, ev v) {
    return class_of(w->classes, ev_class(v))->name;
}

static void put_class(encoder *e, hd_builder *b, uint32_t class_) {
    hd_builder_add(b, hd_string(e->pool, class_of(e->w->classes, class_)->name));
}

typedef struct class_list {
    uint32_t count;
    uint32_t ids[CLASS_ABOVE_MAX];
} class_list;

static bool has_class(const class_list *all, uint32_t class_) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->ids[i] == class_) return true;
    return false;
}

/* Every class above it, up to the first built-in one on each way. */
static void list_above(const classes *c, uint32_t class_, class_list *all) {
    const class_info *info = class_of(c, class_);
    if (class_ < CLASS_BUILTIN_COUNT || info->flags & CLASS_OWN_BASES) return;
    for (uint32_t i = 0; i <= info->more_count && all->count < CLASS_ABOVE_MAX; i++) {
        uint32_t above = i ? info->more[i - 1] : info->base;
        if (has_class(all, above)) continue;
        all->ids[all->count++] = above;
        list_above(c, above, all);
    }
}

static hd_value encode_bases(encoder *e, uint32_t class_) {
    class_list all = { 0 };
    hd_builder *b;
    if (hd_builder_open(e->pool, HD_KIND_ARRAY, &b)) return hd_failed(HD_NOMEM);
    list_above(e->w->classes, class_, &all);
    for (uint32_t i = 0; i < all.count; i++) put_class(e, b, all.ids[i]);
    return hd_builder_close(b);
}

static hd_value encode_tuple(encoder *e, ev v) {
    hd_value out = tagged(e, "$tuple", encode_items(e, v.tuple->items, v.tuple->count));
    if (!v.o->class_) return out;
    return hd_object_set(e->pool, out, "class", hd_string(e->pool, class_name(e->w, v)));
}

static hd_value encode_range(encoder *e, const range *r) {
    ev parts[3] = { ev_int(r->start), ev_int(r->stop), ev_int(r->step) };
    return tagged(e, "$range", encode_items(e, parts, 3));
}

static hd_value encode_error(encoder *e, ev v) {
    const exc *x = v.exc;
    hd_value out = tagged(e, "$error", hd_string(e->pool, class_name(e->w, v)));
    ev message = ev_str(e->w, v);
    if (ev_failed(message) && e->w->status) return failed(e);
    if (ev_failed(message))
        (void)raise_catch(e->w); /* of an object that has no text here: its arguments say all */
    else out = hd_object_set(e->pool, out, "message", encode_text(e, message.text));
    out = hd_object_set(e->pool, out, "args",
                        encode_items(e, x->args.tuple->items, x->args.tuple->count));
    if (x->attrs.kind == EV_DICT)
        out = hd_object_set(e->pool, out, "attrs", encode_names(e, x->attrs.dict, NULL, NULL));
    if (v.o->class_ >= CLASS_BUILTIN_COUNT)
        out = hd_object_set(e->pool, out, "bases", encode_bases(e, v.o->class_));
    if (x->cause.kind == EV_EXC) out = hd_object_set(e->pool, out, "cause", encode(e, x->cause));
    if (e->number && x->raised.kind == EV_TUPLE)
        out = hd_object_set(e->pool, out, "raised", encode(e, x->raised));
    return out;
}

/* An exception class that nothing has declared is made again, by its bases. */
static hd_value encode_type(encoder *e, uint32_t class_) {
    const class_info *info = class_of(e->w->classes, class_);
    hd_value out = tagged(e, "$type", hd_string(e->pool, info->name));
    if (class_ < CLASS_BUILTIN_COUNT || info->kind != CLASS_EXCEPTION) return out;
    return hd_object_set(e->pool, out, "bases", encode_bases(e, class_));
}

static hd_value encode_enum(encoder *e, ev v) {
    hd_value out = tagged(e, "$enum", hd_string(e->pool, class_name(e->w, v)));
    out = hd_object_set(e->pool, out, "name", encode_text(e, v.enumer->name.text));
    return hd_object_set(e->pool, out, "value", encode(e, v.enumer->value));
}

static hd_value encode_inside(encoder *e, ev v) {
    switch (v.kind) {
    case EV_LIST: return encode_list(e, v.list);
    case EV_TUPLE: return encode_tuple(e, v);
    case EV_SET: return tagged(e, "$set", encode_entries(e, v.dict, encode_element));
    case EV_EXC: return encode_error(e, v);
    case EV_ENUM: return encode_enum(e, v);
    case EV_RECORD: return encode_names(e, v.dict, "$record", class_name(e->w, v));
    default:
        return keys_are_names(v.dict) ? encode_names(e, v.dict, NULL, NULL)
                                      : tagged(e, "$dict", encode_entries(e, v.dict, encode_pair));
    }
}

/* ---- All --------------------------------------------------------------------------------- */

static hd_value encode_content(encoder *e, ev v) {
    if (!world_need(e->w, v)) return failed(e);
    if (v.o->flags & OBJ_BUSY) {
        raise_f(e->w, CLASS_ValueError, "Circular reference detected");
        return hd_failed(HD_KIND);
    }
    if (!world_enter(e->w, " while encoding an object")) return hd_failed(HD_KIND);
    v.o->flags |= OBJ_BUSY;
    hd_value out = encode_inside(e, v);
    v.o->flags &= (uint8_t)~OBJ_BUSY;
    world_leave(e->w);
    return out;
}

/* In an instance's document: the dict by its number, and what of it. */
static hd_value encode_view(encoder *e, const view *v) {
    static const char *const whats[] = { "keys", "values", "items" };
    return hd_object_set(e->pool, encode(e, v->of), "view", hd_string(e->pool, whats[v->what]));
}

static hd_value encode(encoder *e, ev v) {
    switch (v.kind) {
    case EV_NONE: return hd_null();
    case EV_BOOL: return hd_bool(v.i != 0);
    case EV_INT: return hd_int(e->pool, v.i);
    case EV_FLOAT: return hd_double(v.d);
    case EV_STR: return encode_text(e, v.text);
    case EV_BYTES: return hd_bytes(e->pool, v.text->data, v.text->count);
    case EV_RANGE: return encode_range(e, v.range);
    case EV_TYPE: return encode_type(e, (uint32_t)v.i);
    case EV_LIST:
    case EV_DICT:
    case EV_SET:
    case EV_RECORD:
    case EV_EXC:
        if (e->number) {
            uint32_t number = world_number(v) ? world_number(v) : e->number(e->ctx, e->w, v);
            return number ? tagged(e, "$ref", hd_int(e->pool, number)) : hd_failed(HD_NOMEM);
        }
        return encode_content(e, v);
    case EV_TUPLE:
    case EV_ENUM: return encode_content(e, v);
    case EV_VIEW:
        if (e->number) return encode_view(e, v.view);
        /* fall through */
    default:
        if (v.kind == EV_ITER && e->number)
            return tagged(e, "$iterator", hd_string(e->pool, type_name(e->w, v)));
        if (v.kind == EV_FUNC && e->number)
            return tagged(e, "$function", hd_string(e->pool, type_name(e->w, v)));
        raise_f(e->w, CLASS_TypeError, "a '%s' object cannot leave the workflow",
                type_name(e->w, v));
        return hd_failed(HD_KIND);
    }
}

hd_value encode_value(world *w, hd_pool *pool, ev v) {
    return encode(&(encoder){ w, pool, NULL, NULL, false }, v);
}

hd_value encode_plain(world *w, hd_pool *pool, ev v) {
    return encode(&(encoder){ w, pool, NULL, NULL, true }, v);
}

hd_value encode_slot(world *w, hd_pool *pool, ev v, encode_number_fn number, void *ctx) {
    return encode(&(encoder){ w, pool, number, ctx, false }, v);
}

static dict_form form_of(const dict *d) {
    if (d->head.kind == EV_SET) return DICT_SET;
    if (keys_are_names(d)) return keys_are_sorted(d) ? DICT_ORDERED : DICT_KEYS;
    return DICT_PAIRS;
}

hd_value encode_object(world *w, hd_pool *pool, ev object, encode_number_fn number, void *ctx) {
    assert(ev_has_identity(object));
    hd_value out = encode_content(&(encoder){ w, pool, number, ctx, false }, object);
    if (object.kind >= EV_DICT) object.dict->form = form_of(object.dict);
    if (object.kind == EV_LIST && object.list->queue) object.list->queue = 1;
    return out;
}

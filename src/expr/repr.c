/* repr.c -- see repr.h. */
#include "expr/repr.h"

#include "expr/dict.h"
#include "expr/floattext.h"
#include "expr/iter.h"
#include "expr/unicode.h"
#include "value/number.h"

#include <stdio.h>

/* ---- Texts ------------------------------------------------------------------------------- */

static uint32_t quote_for(const text *t) {
    bool single = false, twin = false;
    for (uint32_t i = 0; i < t->count; i++) {
        single |= text_at(t, i) == '\'';
        twin |= text_at(t, i) == '"';
    }
    return single && !twin ? '"' : '\'';
}

static void put_escape(text_builder *b, uint32_t c) {
    char out[16];
    const char *form = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
    snprintf(out, sizeof out, form, c);
    write_ascii(b, out);
}

static bool put_simple_escape(text_builder *b, uint32_t c, uint32_t quote) {
    if (c == quote || c == '\\') write_point(b, '\\'), write_point(b, c);
    else if (c == '\n') write_ascii(b, "\\n");
    else if (c == '\r') write_ascii(b, "\\r");
    else if (c == '\t') write_ascii(b, "\\t");
    else return false;
    return true;
}

static void repr_text(text_builder *b, const text *t, bool bytes) {
    uint32_t quote = quote_for(t);
    if (bytes) write_point(b, 'b');
    write_point(b, quote);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t c = text_at(t, i);
        if (put_simple_escape(b, c, quote)) continue;
        bool plain = bytes ? c >= 32 && c < 127 : unicode_has(c, UNICODE_PRINTABLE);
        if (plain) write_point(b, c);
        else put_escape(b, c);
    }
    write_point(b, quote);
}

/* ---- Containers -------------------------------------------------------------------------- */

/* Appends; false: failed (too deep, no memory). */
static bool repr_build(text_builder *b, ev v);

static bool repr_items(text_builder *b, const ev *items, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) write_ascii(b, ", ");
        if (!repr_build(b, items[i])) return false;
    }
    return true;
}

static bool repr_own(text_builder *b, ev v) {
    raise_own(b->w, v.o->class_, "str() and repr()");
    return false;
}

static bool repr_tuple(text_builder *b, ev v) {
    const class_info *info = v.o->class_ ? class_of(b->w->classes, v.o->class_) : NULL;
    if (info && info->flags & CLASS_OWN_TEXT) return repr_own(b, v);
    if (info) write_name(b, class_shown(info));
    write_point(b, '(');
    for (uint32_t i = 0; i < v.tuple->count; i++) {
        if (i) write_ascii(b, ", ");
        if (info && i < info->fields_count) write_name(b, info->fields[i]), write_point(b, '=');
        if (!repr_build(b, v.tuple->items[i])) return false;
    }
    write_ascii(b, v.tuple->count == 1 && !info ? ",)" : ")");
    return true;
}

static bool repr_entries(text_builder *b, const dict *d, const char *between, bool names) {
    uint32_t at = 0;
    bool first = true;
    for (dict_entry *e; (e = dict_next(d, &at)); first = false) {
        if (!first) write_ascii(b, ", ");
        if (names) write_whole(b, e->key.text);
        else if (!repr_build(b, e->key)) return false;
        if (d->head.kind == EV_SET) continue;
        write_ascii(b, between);
        if (!repr_build(b, e->value)) return false;
    }
    return true;
}

static bool repr_view(text_builder *b, const view *v) {
    static const char *const names[] = { "dict_keys([", "dict_values([", "dict_items([" };
    uint32_t at = 0;
    bool first = true;
    if (!world_need(b->w, v->of)) return false;
    write_ascii(b, names[v->what]);
    for (dict_entry *e; (e = dict_next(v->of.dict, &at)); first = false) {
        if (!first) write_ascii(b, ", ");
        if (v->what == VIEW_ITEMS) write_point(b, '(');
        if (v->what != VIEW_VALUES && !repr_build(b, e->key)) return false;
        if (v->what == VIEW_ITEMS) write_ascii(b, ", ");
        if (v->what != VIEW_KEYS && !repr_build(b, e->value)) return false;
        if (v->what == VIEW_ITEMS) write_point(b, ')');
    }
    write_ascii(b, "])");
    return true;
}

/* <class 'shop.Item'> */
static void repr_class(text_builder *b, const class_info *info) {
    write_ascii(b, "<class '");
    write_name(b, info->name);
    write_ascii(b, "'>");
}

/* The fields of its class; of a class without fields, all attributes. A dataclass shows what is around it, too. */
static bool repr_record(text_builder *b, ev v) {
    const class_info *info = class_of(b->w->classes, v.o->class_);
    const char *colon = strchr(info->name, ':');
    if (info->flags & CLASS_OWN_TEXT) return repr_own(b, v);
    write_name(b, colon ? colon + 1 : info->name);
    write_point(b, '(');
    if (!info->fields_count && !repr_entries(b, v.dict, "=", true)) return false;
    for (uint32_t i = 0; i < info->fields_count; i++) {
        dict_entry *e = dict_find_name(v.dict, info->fields[i]);
        if (!e) {
            raise_f(b->w, CLASS_AttributeError, "'%s' object has no attribute '%s'",
                    class_shown(info), info->fields[i]);
            return false;
        }
        if (i) write_ascii(b, ", ");
        write_name(b, info->fields[i]);
        write_point(b, '=');
        if (!repr_build(b, e->value)) return false;
    }
    write_point(b, ')');
    return true;
}

static bool repr_inside(text_builder *b, ev v) {
    bool good = true;
    switch (v.kind) {
    case EV_LIST:
        write_point(b, '[');
        good = repr_items(b, v.list->items, v.list->count);
        write_point(b, ']');
        break;
    case EV_TUPLE: good = repr_tuple(b, v); break;
    case EV_DICT:
        write_point(b, '{');
        good = repr_entries(b, v.dict, ": ", false);
        write_point(b, '}');
        break;
    case EV_SET:
        write_ascii(b, v.dict->count ? "{" : "set(");
        good = repr_entries(b, v.dict, "", false);
        write_point(b, v.dict->count ? '}' : ')');
        break;
    case EV_RECORD: good = repr_record(b, v); break;
    default: good = repr_view(b, v.view); break;
    }
    return good;
}

/* An object that is being printed already is a circle. */
static bool repr_circle(text_builder *b, ev v) {
    switch (v.kind) {
    case EV_LIST: write_ascii(b, "[...]"); break;
    case EV_DICT: write_ascii(b, "{...}"); break;
    case EV_SET: write_ascii(b, "set(...)"); break;
    case EV_TUPLE: write_ascii(b, "(...)"); break;
    default: write_ascii(b, "..."); break;
    }
    return true;
}

static bool repr_container(text_builder *b, ev v) {
    if (v.o->flags & OBJ_BUSY) return repr_circle(b, v);
    if (!world_need(b->w, v)) return false;
    if (!world_enter(b->w, " while getting the repr of an object")) return false;
    v.o->flags |= OBJ_BUSY;
    bool good = repr_inside(b, v);
    v.o->flags &= (uint8_t)~OBJ_BUSY;
    world_leave(b->w);
    return good;
}

/* ---- The others -------------------------------------------------------------------------- */

/* The text of an exception whose class has code for it: the program that the exception comes from has written it down.
 * NULL: there is none. */
static const text *exc_said(ev v, const char *what) {
    dict_entry *e = v.exc->attrs.kind == EV_DICT ? dict_find_name(v.exc->attrs.dict, what) : NULL;
    return e && e->value.kind == EV_STR ? e->value.text : NULL;
}

static bool repr_exc(text_builder *b, ev v) {
    const class_info *info = class_of(b->w->classes, v.o->class_);
    if (!world_need(b->w, v)) return false;
    const text *said = exc_said(v, "__repr__");
    if (said) return write_whole(b, said), !b->failed;
    if (info->flags & CLASS_OWN_TEXT) return repr_own(b, v);
    write_name(b, class_shown(info));
    write_point(b, '(');
    bool good = repr_items(b, v.exc->args.tuple->items, v.exc->args.tuple->count);
    write_point(b, ')');
    return good;
}

static bool repr_enum(text_builder *b, ev v) {
    if (ev_flags(b->w->classes, v) & CLASS_OWN_TEXT) return repr_own(b, v);
    write_point(b, '<');
    write_name(b, class_shown(class_of(b->w->classes, v.o->class_)));
    write_point(b, '.');
    write_whole(b, v.enumer->name.text);
    write_ascii(b, ": ");
    bool good = repr_build(b, v.enumer->value);
    write_point(b, '>');
    return good;
}

static void put_int(text_builder *b, int64_t i) {
    char out[NUMBER_TEXT_MAX];
    write_chars(b, out, number_print_int(i, out));
}

static void repr_range(text_builder *b, const range *r) {
    write_ascii(b, "range(");
    put_int(b, r->start);
    write_ascii(b, ", ");
    put_int(b, r->stop);
    if (r->step != 1) write_ascii(b, ", "), put_int(b, r->step);
    write_point(b, ')');
}

static void repr_float(text_builder *b, double d) {
    char out[40];
    write_chars(b, out, float_repr(d, out));
}

static bool repr_build(text_builder *b, ev v) {
    switch (v.kind) {
    case EV_NONE: write_ascii(b, "None"); break;
    case EV_BOOL: write_ascii(b, v.i ? "True" : "False"); break;
    case EV_INT: put_int(b, v.i); break;
    case EV_FLOAT: repr_float(b, v.d); break;
    case EV_STR: repr_text(b, v.text, false); break;
    case EV_BYTES: repr_text(b, v.text, true); break;
    case EV_RANGE: repr_range(b, v.range); break;
    case EV_ENUM: return repr_enum(b, v);
    case EV_EXC: return repr_exc(b, v);
    case EV_TYPE: repr_class(b, class_of(b->w->classes, (uint32_t)v.i)); break;
    case EV_LIST:
    case EV_DICT:
    case EV_SET:
    case EV_TUPLE:
    case EV_RECORD:
    case EV_VIEW: return repr_container(b, v);
    default:
        /* CPython prints an address here, which is different every time. */
        raise_f(b->w, CLASS_Unsupported, "the text of a '%s' object", type_name(b->w, v));
        return false;
    }
    return !b->failed;
}

ev ev_repr(world *w, ev v) {
    text_builder b = write_text(w);
    if (repr_build(&b, v)) return write_str(&b);
    write_drop(&b);
    return ev_fail();
}

ev ev_ascii(world *w, ev v) {
    ev r = ev_repr(w, v);
    if (ev_failed(r)) return r;
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < r.text->count; i++) {
        uint32_t c = text_at(r.text, i);
        if (c < 128) write_point(&b, c);
        else put_escape(&b, c);
    }
    return write_str(&b);
}

/* ---- str --------------------------------------------------------------------------------- */

/* UnicodeEncodeError and UnicodeDecodeError: (codec, object, start, end, reason). */
static ev codec_message(world *w, const ev *a, bool encode) {
    char what[64], place[64];
    int64_t from = a[2].i, to = a[3].i;
    bool one = to == from + 1 && from >= 0 && from < a[1].text->count;
    if (one && encode) {
        uint32_t c = text_at(a[1].text, (size_t)from);
        const char *form = c < 256 ? " '\\x%02x'" : c < 65536 ? " '\\u%04x'" : " '\\U%08x'";
        snprintf(what, sizeof what, form, c);
    } else if (one) {
        snprintf(what, sizeof what, " 0x%02x", text_at(a[1].text, (size_t)from));
    } else {
        snprintf(what, sizeof what, "s");
    }
    if (one) snprintf(place, sizeof place, " in position %lld: ", (long long)from);
    else
        snprintf(place, sizeof place, " in position %lld-%lld: ", (long long)from,
                 (long long)to - 1);
    text_builder b = write_text(w);
    write_point(&b, '\'');
    write_whole(&b, a[0].text);
    write_ascii(&b, encode ? "' codec can't encode character" : "' codec can't decode byte");
    write_ascii(&b, what);
    write_ascii(&b, place);
    write_whole(&b, a[4].text);
    return write_str(&b);
}

static bool is_codec_error(const world *w, ev v, const tuple *args, uint32_t class_, ev_kind of) {
    return class_is(w->classes, v.o->class_, class_) && args->count == 5 &&
           args->items[0].kind == EV_STR && args->items[1].kind == of &&
           args->items[2].kind == EV_INT && args->items[3].kind == EV_INT &&
           args->items[4].kind == EV_STR;
}

/* "unhandled errors in a TaskGroup (2 sub-exceptions)" */
static ev group_message(world *w, const tuple *args) {
    text_builder b = write_text(w);
    char count[60];
    ev what = ev_str(w, args->items[0]);
    int64_t n = ev_length(w, args->items[1]);
    if (!ev_failed(what)) write_whole(&b, what.text);
    snprintf(count, sizeof count, " (%lld sub-exception%s)", (long long)n, n == 1 ? "" : "s");
    write_ascii(&b, count);
    return write_str(&b);
}

/* "[Errno 2] No such file: 'a' -> 'b'" */
static ev system_message(world *w, const exc *e) {
    static const char *const names[] = { "filename", "filename2" };
    text_builder b = write_text(w);
    ev code = ev_str(w, e->args.tuple->items[0]), what = ev_str(w, e->args.tuple->items[1]);
    write_ascii(&b, "[Errno ");
    if (!ev_failed(code)) write_whole(&b, code.text);
    write_ascii(&b, "] ");
    if (!ev_failed(what)) write_whole(&b, what.text);
    for (int i = 0; i < 2 && e->attrs.kind == EV_DICT; i++) {
        const dict_entry *at = dict_find_name(e->attrs.dict, names[i]);
        ev file = at ? ev_repr(w, at->value) : ev_fail();
        if (!at || ev_failed(file)) break;
        write_ascii(&b, i ? " -> " : ": ");
        write_whole(&b, file.text);
    }
    return write_str(&b);
}

ev exc_message(world *w, ev v) {
    const tuple *args = v.exc->args.tuple;
    if (args->count == 0) return w->empty_str;
    if (class_is(w->classes, v.o->class_, CLASS_BaseExceptionGroup) && args->count == 2)
        return group_message(w, args);
    if (is_codec_error(w, v, args, CLASS_UnicodeEncodeError, EV_STR))
        return codec_message(w, args->items, true);
    if (is_codec_error(w, v, args, CLASS_UnicodeDecodeError, EV_BYTES))
        return codec_message(w, args->items, false);
    if (class_is(w->classes, v.o->class_, CLASS_OSError) && args->count == 2)
        return system_message(w, v.exc);
    if (args->count > 1) return ev_repr(w, v.exc->args);
    if (class_is(w->classes, v.o->class_, CLASS_KeyError)) return ev_repr(w, args->items[0]);
    return ev_str(w, args->items[0]);
}

ev ev_str(world *w, ev v) {
    uint32_t flags = ev_flags(w->classes, v);
    if (v.kind == EV_STR) return v;
    if (v.kind == EV_EXC) {
        if (!world_need(w, v)) return ev_fail();
        const text *said = exc_said(v, "__str__");
        if (said) return ev_of((text *)(uintptr_t)said);
        if (flags & CLASS_OWN_TEXT) return raise_own(w, v.o->class_, "str()");
        if (!world_enter(w, " while getting the str of an object")) return ev_fail();
        ev message = exc_message(w, v);
        world_leave(w);
        return message;
    }
    if (v.kind != EV_ENUM) return ev_repr(w, v);
    if (flags & CLASS_OWN_TEXT) return raise_own(w, v.o->class_, "str()");
    if (flags & CLASS_BARE_TEXT) return ev_str(w, v.enumer->value);
    text_builder b = write_text(w);
    write_name(&b, class_shown(class_of(w->classes, v.o->class_)));
    write_point(&b, '.');
    write_whole(&b, v.enumer->name.text);
    return write_str(&b);
}

void repr_short(world *w, ev v, char *out, size_t size) {
    ev r = ev_repr(w, v);
    size_t n = 0;
    out[0] = 0;
    if (ev_failed(r)) return;
    for (uint32_t i = 0; i < r.text->count && i < 200 && n + 5 < size; i++)
        n += utf8_put((uint8_t *)out + n, text_at(r.text, i));
    out[n] = 0;
}

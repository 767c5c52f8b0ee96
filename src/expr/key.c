/* key.c -- see key.h. */
#include "expr/key.h"

#include "base/hash.h"
#include "expr/text.h"

#include <math.h>

/* ---- Numbers ----------------------------------------------------------------------------- */

static int order_int_float(int64_t i, double d) {
    if (d != d) return 2;
    if (d >= 9223372036854775808.0) return -1;
    if (d < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)d; /* toward zero; exact */
    if (i != whole) return i < whole ? -1 : 1;
    double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

int number_order(ev a, ev b) {
    if (a.kind != EV_FLOAT && b.kind != EV_FLOAT) return (a.i > b.i) - (a.i < b.i);
    if (a.kind != EV_FLOAT) return order_int_float(a.i, b.d);
    if (b.kind != EV_FLOAT) {
        int c = order_int_float(b.i, a.d);
        return c == 2 ? 2 : -c;
    }
    return a.d < b.d ? -1 : a.d > b.d ? 1 : a.d == b.d ? 0 : 2;
}

bool number_same(ev a, ev b) { return number_order(a, b) == 0; }

/* ---- Hashing ----------------------------------------------------------------------------- */

static uint64_t hash_number(const world *w, ev v) {
    if (v.kind == EV_FLOAT) {
        if (v.d >= -9223372036854775808.0 && v.d < 9223372036854775808.0 && v.d == floor(v.d))
            return hash_u64(w->seed ^ (uint64_t)(int64_t)v.d);
        uint64_t bits;
        memcpy(&bits, &v.d, sizeof bits);
        return hash_u64(w->seed ^ bits ^ 1);
    }
    return hash_u64(w->seed ^ (uint64_t)v.i);
}

static uint32_t hash_text(const world *w, text *t) {
    if (!t->hash) {
        size_t size = (size_t)t->count * (text_is_wide(t) ? 4 : 1);
        t->hash = hash_fold(hash_bytes(t->data, size, w->seed + t->head.kind)) | 1;
    }
    return t->hash;
}

static bool hash_items(world *w, const ev *items, uint32_t count, uint64_t *h) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t one;
        if (!key_hash(w, items[i], &one)) return false;
        *h = hash_combine(*h, one);
    }
    return true;
}

static bool hash_record(world *w, ev v, uint64_t *h) {
    const class_info *info = class_of(w->classes, v.o->class_);
    if (info->flags & CLASS_BY_ID && !(info->flags & CLASS_OWN_EQUAL))
        return *h = hash_u64((uint64_t)(uintptr_t)v.o), true;
    if (!(info->flags & CLASS_FROZEN)) {
        raise_f(w, CLASS_TypeError, "unhashable type: '%s'", type_name(w, v));
        return false;
    }
    if (!world_need(w, v)) return false;
    *h = v.o->class_;
    for (uint32_t i = 0; i < v.dict->used; i++)
        if (v.dict->entries[i].key.kind != EV_UNBOUND &&
            !hash_items(w, &v.dict->entries[i].value, 1, h))
            return false;
    return true;
}

static bool hash_object(world *w, ev v, uint64_t *h) {
    if (ev_flags(w->classes, v) & CLASS_OWN_EQUAL)
        return raise_own(w, v.o->class_, "hash()"), false;
    switch (v.kind) {
    case EV_TUPLE: return hash_items(w, v.tuple->items, v.tuple->count, h);
    case EV_RANGE:
        *h = hash_combine(v.range->count, v.range->count ? (uint64_t)v.range->start : 0);
        return true;
    case EV_ENUM: *h = hash_combine(v.o->class_, hash_text(w, v.enumer->name.text)); return true;
    case EV_RECORD: return hash_record(w, v, h);
    case EV_EXC:
    case EV_ITER: return *h = hash_u64((uint64_t)(uintptr_t)v.o), true;
    case EV_VIEW:
        if (v.view->what == VIEW_VALUES) return *h = hash_u64((uint64_t)(uintptr_t)v.o), true;
        break;
    default: break;
    }
    raise_f(w, CLASS_TypeError, "unhashable type: '%s'", type_name(w, v));
    return false;
}

bool key_hash(world *w, ev v, uint32_t *out) {
    v = ev_bare(v);
    uint64_t h = v.kind;
    if (ev_is_text(v)) return *out = hash_text(w, v.text), true;
    if (ev_is_number(v)) h = hash_number(w, v);
    else if (!ev_is_obj(v))
        h = hash_u64((uint64_t)v.kind << 32 ^ (v.kind == EV_NONE ? 0 : (uint64_t)v.i));
    else {
        if (!world_enter(w, "")) return false;
        bool good = hash_object(w, v, &h);
        world_leave(w);
        if (!good) return false;
    }
    *out = hash_fold(h);
    return true;
}

/* ---- Equality ---------------------------------------------------------------------------- */

static bool same_record(const dict *a, const dict *b) {
    if (a->count != b->count) return false;
    for (uint32_t i = 0, j = 0;; i++, j++) {
        while (i < a->used && a->entries[i].key.kind == EV_UNBOUND) i++;
        while (j < b->used && b->entries[j].key.kind == EV_UNBOUND) j++;
        if (i >= a->used || j >= b->used) return i >= a->used && j >= b->used;
        if (!key_same(a->entries[i].key, b->entries[j].key) ||
            !key_same(a->entries[i].value, b->entries[j].value))
            return false;
    }
}

static bool same_tuple(const tuple *a, const tuple *b) {
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!key_same(a->items[i], b->items[i])) return false;
    return true;
}

static bool same_range(const range *a, const range *b) {
    if (a->count != b->count) return false;
    if (a->count == 0) return true;
    return a->start == b->start && (a->count == 1 || a->step == b->step);
}

bool key_same(ev a, ev b) {
    a = ev_bare(a);
    b = ev_bare(b);
    if (ev_is_number(a) && ev_is_number(b))
        return number_same(a, b) ||
               (a.kind == b.kind && a.kind == EV_FLOAT && a.d != a.d && b.d != b.d);
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case EV_STR:
    case EV_BYTES: return text_same(a.text, b.text);
    case EV_TUPLE: return same_tuple(a.tuple, b.tuple);
    case EV_RANGE: return same_range(a.range, b.range);
    case EV_ENUM:
        return a.o->class_ == b.o->class_ && text_same(a.enumer->name.text, b.enumer->name.text);
    case EV_RECORD:
        return a.o == b.o || (a.o->class_ == b.o->class_ && same_record(a.dict, b.dict));
    case EV_NONE: return true;
    case EV_TYPE:
    case EV_FUNC: return a.i == b.i;
    default: return a.o == b.o;
    }
}

/* iter.c -- see iter.h. */
#include "expr/iter.h"

#include "expr/text.h"
#include "expr/tuple.h"

ev iter_new(world *w, iter_what what, ev a, ev b) {
    iter *it = world_object(w, EV_ITER, sizeof *it);
    if (!it) return ev_fail();
    w->iterators++;
    it->what = what;
    it->a = a;
    it->b = b;
    world_ref(a);
    world_ref(b);
    return ev_of(it);
}

static const dict *dict_under(world *w, ev v) {
    ev under = v.kind == EV_VIEW ? v.view->of : v;
    return world_need(w, under) ? under.dict : NULL;
}

int64_t ev_length(world *w, ev v) {
    v = ev_bare_text(v);
    if (!world_need(w, v)) return -1;
    switch (v.kind) {
    case EV_STR:
    case EV_BYTES: return v.text->count;
    case EV_TUPLE: return v.tuple->count;
    case EV_RANGE: return v.range->count > INT64_MAX ? -1 : (int64_t)v.range->count;
    case EV_LIST: return v.list->count;
    case EV_DICT:
    case EV_SET: return v.dict->count;
    case EV_VIEW: return dict_under(w, v) ? (int64_t)dict_under(w, v)->count : -1;
    default: return -1;
    }
}

ev sequence_at(world *w, ev v, uint64_t i) {
    switch (v.kind) {
    case EV_STR: return text_of_point(w, text_at(v.text, i));
    case EV_BYTES: return ev_int(text_at(v.text, i));
    case EV_TUPLE: return v.tuple->items[i];
    case EV_LIST: return v.list->items[i];
    default: return ev_int(range_at(v.range, i));
    }
}

/* ---- Beginning --------------------------------------------------------------------------- */

static bool is_sequence(ev v) { return v.kind >= EV_STR && v.kind <= EV_RANGE; }

bool ev_is_iterable(ev v) {
    v = ev_bare_text(v);
    return is_sequence(v) || v.kind == EV_LIST || v.kind == EV_DICT || v.kind == EV_SET ||
           v.kind == EV_VIEW || v.kind == EV_ITER;
}

ev iter_of(world *w, ev v) {
    if (v.kind == EV_ITER) return v;
    v = ev_bare_text(v);
    if (!world_need(w, v)) return ev_fail();
    if (is_sequence(v) || v.kind == EV_LIST) return iter_new(w, ITER_SEQUENCE, v, ev_none());
    if (v.kind == EV_DICT || v.kind == EV_SET || v.kind == EV_VIEW) {
        ev it = iter_new(w, ITER_DICT, v, ev_none());
        if (ev_failed(it)) return it;
        it.iter->end = ev_length(w, v);
        it.iter->b = ev_int(0);
        return it;
    }
    return raise_f(w, CLASS_TypeError, "'%s' object is not iterable", type_name_whole(w, v));
}

ev iter_back(world *w, ev v) {
    v = ev_bare_text(v);
    if (!world_need(w, v)) return ev_fail();
    bool dicts = v.kind == EV_DICT || v.kind == EV_VIEW;
    if (!is_sequence(v) && v.kind != EV_LIST && !dicts)
        return raise_f(w, CLASS_TypeError, "'%s' object is not reversible", type_name_whole(w, v));
    ev it = iter_new(w, dicts ? ITER_DICT_BACK : ITER_BACK, v, ev_none());
    if (ev_failed(it)) return it;
    it.iter->end = ev_length(w, v);
    it.iter->at = dicts ? (int64_t)dict_under(w, v)->used : ev_length(w, v);
    return it;
}

/* ---- Going on ---------------------------------------------------------------------------- */

static int next_of_sequence(world *w, iter *it, ev *out) {
    if (it->a.kind == EV_RANGE) {
        if ((uint64_t)it->at >= it->a.range->count) return 0;
    } else if (it->at >= ev_length(w, it->a)) {
        it->done = true;
        return 0;
    }
    *out = sequence_at(w, it->a, (uint64_t)it->at++);
    return ev_failed(*out) ? -1 : 1;
}

static int next_back(world *w, iter *it, ev *out) {
    if (it->at <= 0 || it->at > ev_length(w, it->a)) {
        it->done = true;
        return 0;
    }
    *out = sequence_at(w, it->a, (uint64_t)--it->at);
    return ev_failed(*out) ? -1 : 1;
}

/* Counts an entry (`more`), or looks at the count at the end. The iterator must give as many entries as there were at
 * the start, no more and no fewer. If not, entries were deleted and others added meanwhile: what CPython does then
 * depends on when it last rebuilt the dict, so Unsupported is raised. False: it was. */
static bool count_entry(world *w, iter *it, bool more) {
    if (it->what != ITER_DICT || (more ? it->b.i++ < it->end : it->b.i == it->end)) return true;
    raise_f(w, CLASS_Unsupported, "keys that a loop replaces by others while it runs");
    return false;
}

static int next_of_dict(world *w, iter *it, ev *out) {
    const dict *d = dict_under(w, it->a);
    if (!d) return -1;
    if (d->count != it->end) {
        it->end = -1; /* and it stays so */
        raise_f(w, CLASS_RuntimeError, "%s changed size during iteration",
                d->head.kind == EV_SET ? "Set" : "dictionary");
        return -1;
    }
    uint32_t at = (uint32_t)it->at;
    dict_entry *e = it->what == ITER_DICT ? dict_next(d, &at) : dict_before(d, &at);
    it->at = at;
    if (!count_entry(w, it, e != NULL)) return -1;
    if (!e) {
        it->done = true;
        return 0;
    }
    *out = view_item(w, it->a.kind == EV_VIEW ? it->a.view->what : VIEW_KEYS, e);
    return ev_failed(*out) ? -1 : 1;
}

static int next_enumerated(world *w, iter *it, ev *out) {
    ev v;
    int more = iter_next(w, it->a, &v);
    if (more != 1) return more;
    if (it->strict) return (void)raise_int_overflow(w), -1;
    *out = tuple_pair(w, ev_int(it->at), v);
    if (it->at == INT64_MAX) it->strict = true; /* the next number does not fit */
    else it->at++;
    return ev_failed(*out) ? -1 : 1;
}

/* zip(strict=True): an iterator ended before or after the others. */
static int zip_uneven(world *w, iter *it, uint32_t ended) {
    ev v;
    if (ended > 0) {
        raise_f(w, CLASS_ValueError, "zip() argument %u is shorter than argument%s%u", ended + 1,
                ended == 1 ? " " : "s 1-", ended);
        return -1;
    }
    for (uint32_t i = 1; i < it->a.tuple->count; i++) {
        int more = iter_next(w, it->a.tuple->items[i], &v);
        if (more < 0) return -1;
        if (more) {
            raise_f(w, CLASS_ValueError, "zip() argument %u is longer than argument%s%u", i + 1,
                    i == 1 ? " " : "s 1-", i);
            return -1;
        }
    }
    return 0;
}

static int next_zipped(world *w, iter *it, ev *out) {
    ev items[16];
    uint32_t count = it->a.tuple->count;
    assert(count <= 16);
    if (!count) return 0;
    for (uint32_t i = 0; i < count; i++) {
        int more = iter_next(w, it->a.tuple->items[i], &items[i]);
        if (more == 0 && it->strict && it->what == ITER_ZIP) return zip_uneven(w, it, i);
        if (more != 1) return more;
    }
    *out = it->what == ITER_ZIP ? tuple_of(w, items, count) : w->invoke(w, it->b, items, count);
    return ev_failed(*out) ? -1 : 1;
}

static int next_filtered(world *w, iter *it, ev *out) {
    for (;;) {
        int more = iter_next(w, it->a, out);
        if (more != 1) return more;
        ev keep = it->b.kind == EV_NONE ? *out : w->invoke(w, it->b, out, 1);
        if (ev_failed(keep)) return -1;
        int truth = ev_truth(w, keep);
        if (truth) return truth;
    }
}

static int next_generated(world *w, iter *it, ev *out) {
    if (it->busy) {
        raise_f(w, CLASS_ValueError, "generator already executing");
        return -1;
    }
    it->busy = true;
    *out = w->resume(w, it);
    it->busy = false;
    if (ev_failed(*out)) it->done = true;
    return ev_failed(*out) ? -1 : out->kind != EV_UNBOUND;
}

int iter_next(world *w, ev iterator, ev *out) {
    iter *it = iterator.iter;
    assert(iterator.kind == EV_ITER);
    if (it->done) return 0;
    switch (it->what) {
    case ITER_SEQUENCE: return next_of_sequence(w, it, out);
    case ITER_BACK: return next_back(w, it, out);
    case ITER_DICT:
    case ITER_DICT_BACK: return next_of_dict(w, it, out);
    case ITER_ENUMERATE: return next_enumerated(w, it, out);
    case ITER_ZIP:
    case ITER_MAP: return next_zipped(w, it, out);
    case ITER_FILTER: return next_filtered(w, it, out);
    default: return next_generated(w, it, out);
    }
}

/* ---- All of it --------------------------------------------------------------------------- */

const ev *sequence_items(world *w, ev v, uint32_t *count) {
    *count = 0;
    if (v.kind == EV_TUPLE) return *count = v.tuple->count, v.tuple->items;
    if (v.kind != EV_LIST || !world_need(w, v)) return NULL;
    *count = v.list->count;
    static const ev none[1];
    return v.list->items ? v.list->items : none;
}

ev iter_list(world *w, ev v) {
    uint32_t count;
    const ev *items = sequence_items(w, v, &count);
    if (items) return plist_of(w, items, count);
    ev it = iter_of(w, v), out = ev_failed(it) ? it : plist_new(w, 0), one;
    if (ev_failed(out)) return out;
    for (int more; (more = iter_next(w, it, &one)) != 0;)
        if (more < 0 || !world_step(w) || !plist_append(w, out.list, one)) return ev_fail();
    return out;
}

/* ---- in ---------------------------------------------------------------------------------- */

static int contains_text(world *w, ev container, ev v) {
    v = ev_bare_text(v);
    if (v.kind != EV_STR) {
        raise_f(w, CLASS_TypeError, "'in <string>' requires string as left operand, not %s",
                type_name(w, v));
        return -1;
    }
    return text_find(container.text, v.text, 0, container.text->count) >= 0;
}

static int contains_byte(world *w, ev container, ev v) {
    if (v.kind == EV_BYTES) return text_find(container.text, v.text, 0, container.text->count) >= 0;
    if (!ev_is_int(v)) {
        raise_f(w, CLASS_TypeError, "a bytes-like object is required, not '%s'", type_name(w, v));
        return -1;
    }
    if (v.i < 0 || v.i > 255) {
        raise_f(w, CLASS_ValueError, "byte must be in range(0, 256)");
        return -1;
    }
    return memchr(container.text->data, (int)v.i, container.text->count) != NULL;
}

static int contains_range(world *w, const range *r, ev v) {
    uint32_t flags = ev_flags(w->classes, v);
    if (flags & CLASS_OWN_EQUAL) return raise_own(w, v.o->class_, "in"), -1;
    v = ev_bare(v);
    if (v.kind == EV_FLOAT) {
        if (!(v.d >= -9.2e18 && v.d <= 9.2e18) || v.d != (double)(int64_t)v.d) return 0;
        v = ev_int((int64_t)v.d);
    }
    if (!ev_is_int(v) || !r->count) return 0;
    int64_t last = range_at(r, r->count - 1);
    if (r->step > 0 ? v.i < r->start || v.i > last : v.i > r->start || v.i < last) return 0;
    uint64_t span =
        r->step > 0 ? (uint64_t)v.i - (uint64_t)r->start : (uint64_t)r->start - (uint64_t)v.i;
    return span % (r->step > 0 ? (uint64_t)r->step : -(uint64_t)r->step) == 0;
}

static int contains_by_walk(world *w, ev container, ev v) {
    ev one, it = iter_of(w, container);
    if (ev_failed(it)) return -1;
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        if (more < 0 || !world_step(w)) return -1;
        int same = ev_same(w, one, v);
        if (same) return same;
    }
    return 0;
}

static int contains_view(world *w, ev container, ev v) {
    const view *s = container.view;
    uint32_t at = 0;
    if (!world_need(w, s->of)) return -1;
    if (s->what == VIEW_ITEMS) return item_within(w, v, container);
    for (dict_entry *e; (e = dict_next(s->of.dict, &at));) {
        int same = ev_same(w, e->value, v);
        if (same) return same;
    }
    return 0;
}

int ev_contains(world *w, ev container, ev v) {
    container = ev_bare_text(container);
    if (!world_need(w, container)) return -1;
    switch (container.kind) {
    case EV_STR: return contains_text(w, container, v);
    case EV_BYTES: return contains_byte(w, container, v);
    case EV_RANGE: return contains_range(w, container.range, v);
    case EV_VIEW:
        if (container.view->what != VIEW_KEYS) return contains_view(w, container, v);
        container = container.view->of;
        if (!world_need(w, container)) return -1;
        /* fall through */
    case EV_DICT:
    case EV_SET:
        if (container.kind == EV_SET && v.kind == EV_SET) return 0; /* CPython tries a frozenset */
        if (dict_find(w, container.dict, v)) return 1;
        return raise_is_pending(w) ? -1 : 0;
    case EV_LIST:
    case EV_TUPLE:
    case EV_ITER: return contains_by_walk(w, container, v);
    default:
        raise_f(w, CLASS_TypeError, "argument of type '%s' is not iterable",
                type_name_whole(w, container));
        return -1;
    }
}

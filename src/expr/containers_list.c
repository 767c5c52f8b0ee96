/* containers_list.c -- methods of list, tuple and range: see containers.h. */
#include "expr/containers.h"
#include "expr/repr.h"
#include "expr/sort.h"
#include "expr/text.h"

/* ---- Looking ----------------------------------------------------------------------------- */

static ev items_count(world *w, ev self, const ev *a, const call *c) {
    int64_t n = 0;
    (void)c;
    for (int64_t i = 0; i < ev_length(w, self); i++) {
        int same = ev_same(w, sequence_at(w, self, (uint64_t)i), a[0]);
        if (same < 0) return ev_fail();
        n += same;
    }
    return ev_int(n);
}

/* Bounds of index(): None is not allowed. */
static bool index_bound(world *w, ev v, int64_t count, int64_t otherwise, int64_t *out) {
    *out = otherwise;
    if (!arg_given(v)) return true;
    if (!ev_is_int(v)) {
        raise_about(w, v, "slice indices must be integers or have an __index__ method");
        return false;
    }
    *out = v.i < 0 ? (v.i + count < 0 ? 0 : v.i + count) : v.i;
    return true;
}

static ev refuse_index(world *w, ev self, ev v) {
    if (self.kind == EV_TUPLE)
        return raise_f(w, CLASS_ValueError, "tuple.index(x): x not in tuple");
    /* The repr can be as long as it likes. */
    ev shown = ev_repr(w, v);
    if (ev_failed(shown)) return shown;
    text_builder b = write_text(w);
    write_whole(&b, shown.text);
    write_ascii(&b, self.kind == EV_LIST ? " is not in list" : " is not in range");
    ev message = write_str(&b);
    return ev_failed(message) ? message : raise_value(w, CLASS_ValueError, message);
}

static ev items_index(world *w, ev self, const ev *a, const call *c) {
    int64_t from, to, n = ev_length(w, self);
    (void)c;
    if (!index_bound(w, a[1], n, 0, &from) || !index_bound(w, a[2], n, INT64_MAX, &to))
        return ev_fail();
    for (int64_t i = from; i < to && i < ev_length(w, self); i++) {
        int same = ev_same(w, sequence_at(w, self, (uint64_t)i), a[0]);
        if (same < 0) return ev_fail();
        if (same) return ev_int(i);
    }
    return refuse_index(w, self, a[0]);
}

/* ---- Changing ---------------------------------------------------------------------------- */

static ev done(bool good) { return good ? ev_none() : ev_fail(); }

static ev method_append(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return done(plist_append(w, self.list, a[0]));
}

static ev method_clear(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    plist_clear(w, self.list);
    return ev_none();
}

static ev method_copy(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return plist_of(w, self.list->items, self.list->count);
}

static ev method_extend(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return done(list_extend(w, self.list, a[0]));
}

static ev method_insert(world *w, ev self, const ev *a, const call *c) {
    int64_t at, n = self.list->count;
    (void)c;
    if (!arg_int(w, a[0], &at)) return ev_fail();
    if (at < 0) at = at + n < 0 ? 0 : at + n;
    return done(plist_insert(w, self.list, (uint32_t)(at > n ? n : at), a[1]));
}

static ev method_pop(world *w, ev self, const ev *a, const call *c) {
    int64_t at, n = self.list->count;
    (void)c;
    if (!arg_size(w, a[0], -1, &at)) return ev_fail();
    if (n == 0) return raise_f(w, CLASS_IndexError, "pop from empty list");
    if (at < 0) at += n;
    if (at < 0 || at >= n) return raise_f(w, CLASS_IndexError, "pop index out of range");
    ev v = self.list->items[at];
    plist_delete(w, self.list, (uint32_t)at, 1);
    return v;
}

static ev method_remove(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    for (uint32_t i = 0; i < self.list->count; i++) {
        int same = ev_same(w, self.list->items[i], a[0]);
        if (same < 0) return ev_fail();
        if (same) return plist_delete(w, self.list, i, 1), ev_none();
    }
    return raise_f(w, CLASS_ValueError, "list.remove(x): x not in list");
}

static ev method_reverse(world *w, ev self, const ev *a, const call *c) {
    plist *l = self.list;
    (void)a, (void)c;
    for (uint32_t i = 0, j = l->count; i + 1 < j; i++) {
        ev swap = l->items[i];
        l->items[i] = l->items[--j];
        l->items[j] = swap;
    }
    plist_reordered(w, l);
    return ev_none();
}

static ev method_sort(world *w, ev self, const ev *a, const call *c) {
    int64_t reverse = 0;
    (void)a;
    if (c->count + c->named > 2)
        return raise_f(w, CLASS_TypeError, "sort() takes at most 2 %sarguments (%u given)",
                       c->count ? "" : "keyword ", c->count + c->named);
    if (c->count) return raise_f(w, CLASS_TypeError, "sort() takes no positional arguments");
    if (!call_only_names(w, c, "sort", "key", "reverse")) return ev_fail();
    ev given = call_named(c, "reverse");
    if (arg_given(given) && !arg_c_int(w, given, &reverse)) return ev_fail();
    return done(sort_list(w, self.list, call_named(c, "key"), reverse != 0));
}

const function list_methods[] = {
    FUNCTION_ONE("append", method_append),
    FUNCTION_NONE("clear", method_clear),
    FUNCTION_NONE("copy", method_copy),
    FUNCTION_ONE("count", items_count),
    FUNCTION_ONE("extend", method_extend),
    FUNCTION_PLACES("index", items_index, 1, 3),
    FUNCTION_PLACES("insert", method_insert, 2, 2),
    FUNCTION_PLACES("pop", method_pop, 0, 1),
    FUNCTION_ONE("remove", method_remove),
    FUNCTION_NONE("reverse", method_reverse),
    FUNCTION_RAW("sort", method_sort),
    FUNCTION_END,
};
const function tuple_methods[] = { FUNCTION_ONE("count", items_count),
                                   FUNCTION_PLACES("index", items_index, 1, 3), FUNCTION_END };

/* ---- range ------------------------------------------------------------------------------- */

static ev range_count(world *w, ev self, const ev *a, const call *c) {
    int there = ev_contains(w, self, a[0]);
    (void)c;
    return there < 0 ? ev_fail() : ev_int(there);
}

static ev range_index(world *w, ev self, const ev *a, const call *c) {
    int there = ev_contains(w, self, a[0]);
    ev v = ev_bare(a[0]);
    (void)c;
    if (there < 0) return ev_fail();
    if (there) {
        int64_t i = v.kind == EV_FLOAT ? (int64_t)v.d : v.i;
        return ev_int((int64_t)(((arith_i128)i - self.range->start) / self.range->step));
    }
    if (!ev_is_int(a[0]))
        return raise_f(w, CLASS_ValueError, "sequence.index(x): x not in sequence");
    return refuse_index(w, self, a[0]);
}

const function range_methods[] = { FUNCTION_ONE("count", range_count),
                                   FUNCTION_ONE("index", range_index), FUNCTION_END };

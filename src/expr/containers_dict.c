/* containers_dict.c -- methods of dict and its views: see containers.h. */
#include "expr/containers.h"
#include "expr/text.h"
#include "expr/tuple.h"

static ev done(bool good) { return good ? ev_none() : ev_fail(); }

/* ---- Looking ----------------------------------------------------------------------------- */

static ev dict_get(world *w, ev self, const ev *a, const call *c) {
    dict_entry *e = dict_find(w, self.dict, a[0]);
    (void)c;
    if (e) return e->value;
    return raise_is_pending(w) ? ev_fail() : arg_given(a[1]) ? a[1] : ev_none();
}

static ev dict_keys(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return view_of(w, self, VIEW_KEYS);
}

static ev dict_values(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return view_of(w, self, VIEW_VALUES);
}

static ev dict_items(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return view_of(w, self, VIEW_ITEMS);
}

static ev dict_copy_method(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return dict_copy(w, self.dict, EV_DICT);
}

/* ---- Changing ---------------------------------------------------------------------------- */

static ev dict_clear_method(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    dict_clear(w, self.dict);
    return ev_none();
}

static ev dict_pop(world *w, ev self, const ev *a, const call *c) {
    /* In an empty dict CPython does not look: the key need not be hashable. */
    dict_entry *e = self.dict->count ? dict_find(w, self.dict, a[0]) : NULL;
    (void)c;
    if (e) {
        ev v = e->value;
        dict_delete_entry(w, self.dict, e);
        return v;
    }
    if (raise_is_pending(w)) return ev_fail();
    return arg_given(a[1]) ? a[1] : raise_value(w, CLASS_KeyError, a[0]);
}

static ev dict_popitem(world *w, ev self, const ev *a, const call *c) {
    uint32_t at = UINT32_MAX;
    dict_entry *e = dict_before(self.dict, &at);
    (void)a, (void)c;
    if (!e) return raise_f(w, CLASS_KeyError, "popitem(): dictionary is empty");
    ev pair = tuple_pair(w, e->key, e->value);
    if (!ev_failed(pair)) dict_delete_entry(w, self.dict, e);
    return pair;
}

static ev dict_setdefault(world *w, ev self, const ev *a, const call *c) {
    dict_entry *e = dict_find(w, self.dict, a[0]);
    ev v = arg_given(a[1]) ? a[1] : ev_none();
    (void)c;
    if (e) return e->value;
    if (raise_is_pending(w) || !dict_set(w, self.dict, a[0], v)) return ev_fail();
    return v;
}

static ev dict_update_method(world *w, ev self, const ev *a, const call *c) {
    if (c->count > 1)
        return raise_f(w, CLASS_TypeError, "update expected at most 1 argument, got %u", c->count);
    if (c->count && !dict_update(w, self.dict, a[0])) return ev_fail();
    for (uint32_t i = 0; i < c->named; i++)
        if (!dict_set(w, self.dict, c->names[i], c->args[c->count + i])) return ev_fail();
    return ev_none();
}

static ev dict_fromkeys(world *w, ev self, const ev *a, const call *c) {
    ev out = dict_new(w, EV_DICT), one, it = iter_of(w, a[0]);
    (void)self, (void)c;
    if (ev_failed(out) || ev_failed(it)) return ev_fail();
    for (int more; (more = iter_next(w, it, &one)) != 0;)
        if (more < 0 || !world_step(w) ||
            !dict_set(w, out.dict, one, arg_given(a[1]) ? a[1] : ev_none()))
            return ev_fail();
    return out;
}

const function dict_methods[] = {
    FUNCTION_NONE("clear", dict_clear_method),
    FUNCTION_NONE("copy", dict_copy_method),
    FUNCTION_PLACES("fromkeys", dict_fromkeys, 1, 2),
    FUNCTION_PLACES("get", dict_get, 1, 2),
    FUNCTION_NONE("items", dict_items),
    FUNCTION_NONE("keys", dict_keys),
    FUNCTION_PLACES("pop", dict_pop, 1, 2),
    FUNCTION_NONE("popitem", dict_popitem),
    FUNCTION_PLACES("setdefault", dict_setdefault, 1, 2),
    FUNCTION_RAW("update", dict_update_method),
    FUNCTION_NONE("values", dict_values),
    FUNCTION_END,
};

/* ---- Views ------------------------------------------------------------------------------- */

static ev view_isdisjoint(world *w, ev self, const ev *a, const call *c) {
    ev one, it = iter_of(w, a[0]);
    (void)c;
    if (ev_failed(it)) return it;
    if (self.view->what == VIEW_VALUES)
        return raise_f(w, CLASS_AttributeError,
                       "'dict_values' object has no attribute 'isdisjoint'");
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        int there = more < 0 ? -1 : ev_contains(w, self, one);
        if (there) return there < 0 ? ev_fail() : ev_bool(false);
    }
    return ev_bool(true);
}

const function view_methods[] = { FUNCTION_ONE("isdisjoint", view_isdisjoint), FUNCTION_END };

/* ---- Sets -------------------------------------------------------------------------------- */

static ev set_add(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return done(dict_set(w, self.dict, a[0], ev_none()));
}

/* 1: deleted, 0: not there, -1. A set that is looked for would be a frozenset in CPython. */
static int set_drop(world *w, ev self, ev v) {
    return v.kind == EV_SET ? 0 : dict_delete(w, self.dict, v);
}

static ev set_discard(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return done(set_drop(w, self, a[0]) >= 0);
}

static ev set_remove(world *w, ev self, const ev *a, const call *c) {
    int gone = set_drop(w, self, a[0]);
    (void)c;
    if (gone == 0) return raise_value(w, CLASS_KeyError, a[0]);
    return done(gone == 1);
}

/* The oldest element: sets iterate in the order of insertion. */
static ev set_pop(world *w, ev self, const ev *a, const call *c) {
    uint32_t at = 0;
    dict_entry *e = dict_next(self.dict, &at);
    (void)a, (void)c;
    if (!e) return raise_f(w, CLASS_KeyError, "pop from an empty set");
    ev v = e->key;
    dict_delete_entry(w, self.dict, e);
    return v;
}

static ev set_copy(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return dict_copy(w, self.dict, EV_SET);
}

static bool no_names(world *w, const call *c, const char *name) {
    if (!c->named) return true;
    raise_f(w, CLASS_TypeError, "set.%s() takes no keyword arguments", name);
    return false;
}

static bool update_all(world *w, ev self, const call *c) {
    for (uint32_t i = 0; i < c->count; i++)
        if (!set_update(w, self.dict, c->args[i])) return false;
    return true;
}

static ev set_union(world *w, ev self, const ev *a, const call *c) {
    (void)a;
    if (!no_names(w, c, "union")) return ev_fail();
    ev out = dict_copy(w, self.dict, EV_SET);
    return ev_failed(out) || !update_all(w, out, c) ? ev_fail() : out;
}

static ev set_update_method(world *w, ev self, const ev *a, const call *c) {
    (void)a;
    return done(no_names(w, c, "update") && update_all(w, self, c));
}

/* What is left of `self` after each argument: in all of them (keep), or in none. */
static ev filter_all(world *w, ev self, const call *c, bool keep) {
    ev out = dict_copy(w, self.dict, EV_SET);
    for (uint32_t i = 0; i < c->count && !ev_failed(out); i++) {
        ev other = set_from(w, c->args[i]);
        if (ev_failed(other)) return other;
        bool theirs = c->args[i].kind != EV_SET || other.dict->count <= out.dict->count;
        out = keep ? set_common(w, out.dict, other.dict, theirs)
                   : set_filter(w, out.dict, other.dict, false);
    }
    return out;
}

static ev set_intersection(world *w, ev self, const ev *a, const call *c) {
    (void)a;
    return no_names(w, c, "intersection") ? filter_all(w, self, c, true) : ev_fail();
}

static ev set_difference(world *w, ev self, const ev *a, const call *c) {
    (void)a;
    return no_names(w, c, "difference") ? filter_all(w, self, c, false) : ev_fail();
}

static ev set_intersection_update(world *w, ev self, const ev *a, const call *c) {
    (void)a;
    if (!no_names(w, c, "intersection_update")) return ev_fail();
    ev rest = filter_all(w, self, c, true);
    if (ev_failed(rest)) return rest;
    set_keep_only(w, self.dict, rest.dict, true);
    return done(set_take_keys(w, self.dict, rest.dict));
}

/* In place argument by argument, as CPython: what an earlier one removed stays removed on failure. */
static ev set_difference_update(world *w, ev self, const ev *a, const call *c) {
    (void)a;
    if (!no_names(w, c, "difference_update")) return ev_fail();
    for (uint32_t i = 0; i < c->count; i++) {
        ev all = c->args[i].kind == EV_SET ? dict_copy(w, c->args[i].dict, EV_SET) : c->args[i];
        ev one, it = ev_failed(all) ? all : iter_of(w, all);
        if (ev_failed(it)) return it;
        for (int more; (more = iter_next(w, it, &one)) != 0;)
            if (more < 0 || !world_step(w) || dict_delete(w, self.dict, one) < 0) return ev_fail();
    }
    return ev_none();
}

static ev set_symmetric_difference(world *w, ev self, const ev *a, const call *c) {
    ev other = set_from(w, a[0]);
    (void)c;
    return ev_failed(other) ? other : set_symmetric(w, self.dict, other.dict);
}

static ev set_symmetric_update(world *w, ev self, const ev *a, const call *c) {
    ev other = set_from(w, a[0]);
    (void)c;
    if (ev_failed(other)) return other;
    ev fresh = set_filter(w, other.dict, self.dict, false);
    if (ev_failed(fresh)) return fresh;
    if (other.o == self.o) return dict_clear(w, self.dict), ev_none();
    set_keep_only(w, self.dict, other.dict, false);
    return done(set_update(w, self.dict, fresh));
}

/* Whether each element of `a` is in the set (`there`), or none is. */
static ev set_has_all(world *w, ev self, ev a, bool there) {
    ev one, it = iter_of(w, a);
    if (ev_failed(it)) return it;
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        bool found = more > 0 && world_step(w) && dict_find(w, self.dict, one);
        if (raise_is_pending(w)) return ev_fail();
        if (found != there) return ev_bool(false);
    }
    return ev_bool(true);
}

static ev set_isdisjoint(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return set_has_all(w, self, a[0], false);
}

static ev set_issuperset(world *w, ev self, const ev *a, const call *c) {
    (void)c;
    return set_has_all(w, self, a[0], true);
}

static ev set_issubset(world *w, ev self, const ev *a, const call *c) {
    ev other = set_from(w, a[0]);
    (void)c;
    int answer = ev_failed(other) ? -1 : set_within(w, self, other);
    return answer < 0 ? ev_fail() : ev_bool(answer);
}

const function set_methods[] = {
    FUNCTION_ONE("add", set_add),
    FUNCTION_NONE("clear", dict_clear_method),
    FUNCTION_NONE("copy", set_copy),
    FUNCTION_RAW("difference", set_difference),
    FUNCTION_RAW("difference_update", set_difference_update),
    FUNCTION_ONE("discard", set_discard),
    FUNCTION_RAW("intersection", set_intersection),
    FUNCTION_RAW("intersection_update", set_intersection_update),
    FUNCTION_ONE("isdisjoint", set_isdisjoint),
    FUNCTION_ONE("issubset", set_issubset),
    FUNCTION_ONE("issuperset", set_issuperset),
    FUNCTION_NONE("pop", set_pop),
    FUNCTION_ONE("remove", set_remove),
    FUNCTION_ONE("symmetric_difference", set_symmetric_difference),
    FUNCTION_ONE("symmetric_difference_update", set_symmetric_update),
    FUNCTION_RAW("union", set_union),
    FUNCTION_RAW("update", set_update_method),
    FUNCTION_END,
};

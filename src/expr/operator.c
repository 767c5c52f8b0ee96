/* operator.c -- see operator.h. */
#include "expr/operator.h"

#include "expr/percent.h"
#include "expr/text.h"
#include "expr/tuple.h"

static const char *const texts[BINARY_OPS] = { "+",  "-",  "*",  "/", "//", "%",
                                               "**", "<<", ">>", "&", "|",  "^" };

const char *binary_text(binary_op op) { return texts[op]; }

static ev refuse(world *w, binary_op op, const char *suffix, ev a, ev b) {
    const char *sign = op == BINARY_POW && !*suffix ? "** or pow()" : texts[op];
    return raise_f(w, CLASS_TypeError, "unsupported operand type(s) for %s%s: '%s' and '%s'", sign,
                   suffix, type_name(w, a), type_name(w, b));
}

/* ---- Sequences --------------------------------------------------------------------------- */

static bool is_repeatable(ev v) { return ev_is_text(v) || v.kind == EV_TUPLE || v.kind == EV_LIST; }

static ev concat_items(world *w, ev a, ev b) {
    uint32_t a_count, b_count;
    const ev *x = sequence_items(w, a, &a_count), *y = sequence_items(w, b, &b_count);
    if (!x || !y) return ev_fail();
    ev out = plist_of(w, x, a_count);
    if (ev_failed(out) || !plist_splice(w, out.list, a_count, a_count, y, b_count))
        return ev_fail();
    return a.kind == EV_LIST ? out : tuple_of(w, out.list->items, out.list->count);
}

static ev concat(world *w, ev a, ev b) {
    if (a.kind == b.kind && ev_is_text(a)) {
        text_builder t = write_text(w);
        write_whole(&t, a.text);
        write_whole(&t, b.text);
        return a.kind == EV_STR ? write_str(&t) : write_bytes(&t);
    }
    if (a.kind == b.kind) return concat_items(w, a, b);
    if (a.kind == EV_BYTES)
        return raise_f(w, CLASS_TypeError, "can't concat %s to bytes", type_name(w, b));
    const char *kind = a.kind == EV_STR ? "str" : a.kind == EV_LIST ? "list" : "tuple";
    return raise_f(w, CLASS_TypeError, "can only concatenate %s (not \"%s\") to %s", kind,
                   type_name(w, b), kind);
}

static ev repeat_text(world *w, ev v, uint64_t times) {
    text_builder t = write_text(w);
    if (v.text->count == 1 && times <= WORLD_COUNT_MAX) write_fill(&t, text_at(v.text, 0), times);
    else
        for (uint64_t i = 0; i < times && !t.failed; i++) write_whole(&t, v.text);
    return v.kind == EV_STR ? write_str(&t) : write_bytes(&t);
}

static bool too_large(world *w, uint64_t count, uint64_t times) {
    if (count == 0 || times <= w->limits.bytes / count) return false;
    w->failure = FAILURE_MEMORY;
    return true;
}

static ev repeat(world *w, ev v, int64_t n) {
    uint64_t times = n < 0 ? 0 : (uint64_t)n;
    uint32_t count;
    if (ev_is_text(v)) {
        if (too_large(w, v.text->count, times)) return ev_fail();
        if (!times || !v.text->count) return v.kind == EV_STR ? w->empty_str : w->empty_bytes;
        return times == 1 ? v : repeat_text(w, v, times);
    }
    const ev *items = sequence_items(w, v, &count);
    if (!items || too_large(w, (uint64_t)count * sizeof(ev), times)) return ev_fail();
    if (!count) times = 0;
    ev out = plist_new(w, (size_t)(count * times));
    if (ev_failed(out)) return out;
    for (uint64_t i = 0; i < times; i++)
        for (uint32_t j = 0; j < count; j++) plist_append(w, out.list, items[j]);
    return v.kind == EV_LIST ? out : tuple_of(w, out.list->items, out.list->count);
}

static ev multiply(world *w, ev a, ev b, const char *suffix) {
    if (is_repeatable(a)) {
        if (ev_is_int(b)) return repeat(w, a, b.i);
        return raise_f(w, CLASS_TypeError, "can't multiply sequence by non-int of type '%s'",
                       type_name(w, b));
    }
    if (!is_repeatable(b)) return refuse(w, BINARY_MUL, suffix, a, b);
    /* a *= b looks at the right side only where the left one could be no sequence at all. */
    bool maybe = ev_is_obj(a) && a.kind != EV_ITER &&
                 !(a.kind == EV_EXC && a.o->class_ < CLASS_BUILTIN_COUNT);
    if (*suffix && maybe) return refuse(w, BINARY_MUL, suffix, a, b);
    if (ev_is_int(a)) return repeat(w, b, a.i);
    return raise_f(w, CLASS_TypeError, "can't multiply sequence by non-int of type '%s'",
                   type_name(w, a));
}

bool list_extend(world *w, plist *l, ev iterable) {
    uint32_t count;
    ev one;
    if (iterable.kind == EV_LIST || iterable.kind == EV_TUPLE) {
        const ev *items = sequence_items(w, iterable, &count);
        if (!items) return false;
        /* One by one: each append is a small operation in the journal. */
        for (uint32_t i = 0; i < count; i++) {
            one = iterable.kind == EV_LIST ? iterable.list->items[i] : items[i];
            if (!plist_append(w, l, one)) return false;
        }
        return true;
    }
    ev it = iter_of(w, iterable);
    if (ev_failed(it)) return false;
    for (int more; (more = iter_next(w, it, &one)) != 0;)
        if (more < 0 || !world_step(w) || !plist_append(w, l, one)) return false;
    return true;
}

/* ---- Sets and dicts ---------------------------------------------------------------------- */

bool set_update(world *w, dict *d, ev iterable) {
    ev one, it = iter_of(w, iterable);
    if (ev_failed(it)) return false;
    if (iterable.kind == EV_SET && iterable.dict == d) return true;
    for (int more; (more = iter_next(w, it, &one)) != 0;)
        if (more < 0 || !world_step(w) || !dict_set(w, d, one, ev_none())) return false;
    return true;
}

ev set_from(world *w, ev v) {
    if (v.kind == EV_SET) return world_need(w, v) ? v : ev_fail();
    ev out = dict_new(w, EV_SET);
    return ev_failed(out) || !set_update(w, out.dict, v) ? ev_fail() : out;
}

ev set_filter(world *w, const dict *a, const dict *b, bool keep) {
    ev out = dict_new(w, EV_SET);
    uint32_t at = 0;
    if (ev_failed(out)) return out;
    for (dict_entry *e; (e = dict_next(a, &at));) {
        bool there = dict_find(w, b, e->key) != NULL;
        if (raise_is_pending(w)) return ev_fail();
        if (there == keep && !dict_set(w, out.dict, e->key, ev_none())) return ev_fail();
    }
    return out;
}

ev set_common(world *w, const dict *a, const dict *b, bool theirs) {
    ev out = dict_new(w, EV_SET);
    uint32_t at = 0;
    if (ev_failed(out)) return out;
    for (dict_entry *e; (e = dict_next(a, &at));) {
        dict_entry *there = dict_find(w, b, e->key);
        if (raise_is_pending(w)) return ev_fail();
        if (there && !dict_set(w, out.dict, theirs ? there->key : e->key, ev_none()))
            return ev_fail();
    }
    return out;
}

ev set_symmetric(world *w, const dict *a, const dict *b) {
    ev out = set_filter(w, a, b, false), other = set_filter(w, b, a, false);
    if (ev_failed(out) || ev_failed(other) || !set_update(w, out.dict, other)) return ev_fail();
    return out;
}

void set_keep_only(world *w, dict *d, const dict *of, bool keep) {
    uint32_t at = 0;
    for (dict_entry *e; (e = dict_next(d, &at));)
        if ((dict_find(w, of, e->key) != NULL) != keep) dict_delete_entry(w, d, e);
}

static bool is_set_like(ev v) {
    return v.kind == EV_SET || (v.kind == EV_VIEW && v.view->what != VIEW_VALUES);
}

static bool is_set_view(ev v) { return v.kind == EV_VIEW && is_set_like(v); }

/* Adds the elements of `from` that are in `of`, or those that are not. Only these are hashed for the result: a view of
 * items may have values that cannot be. */
static bool add_some(world *w, dict *out, ev from, ev of, bool within) {
    ev one, it = iter_of(w, from);
    if (ev_failed(it)) return false;
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        int there = more < 0 || !world_step(w) ? -1 : ev_contains(w, of, one);
        if (there < 0 || (there == within && !dict_set(w, out, one, ev_none()))) return false;
    }
    return true;
}

/* As CPython: a view on the right takes the place of the left side; the larger one of two views is asked for the
 * elements of the other; and a set as large as the view is asked for those of the view. */
static ev view_common(world *w, ev a, ev b) {
    ev own = is_set_view(a) ? a : b, other = is_set_view(a) ? b : a, out = dict_new(w, EV_SET);
    if (ev_failed(out)) return out;
    bool swap = other.kind == EV_SET
                    ? ev_length(w, own) <= ev_length(w, other)
                    : is_set_view(other) && ev_length(w, other) > ev_length(w, own);
    bool ok =
        swap ? add_some(w, out.dict, own, other, true) : add_some(w, out.dict, other, own, true);
    return ok ? out : ev_fail();
}

static ev items_symmetric(world *w, ev a, ev b) {
    ev out = dict_new(w, EV_SET);
    bool ok =
        !ev_failed(out) && add_some(w, out.dict, a, b, false) && add_some(w, out.dict, b, a, false);
    return ok ? out : ev_fail();
}

static ev set_binary(world *w, binary_op op, ev a, ev b) {
    bool views = is_set_view(a) && is_set_view(b);
    if (op == BINARY_AND && (is_set_view(a) || is_set_view(b))) return view_common(w, a, b);
    if (op == BINARY_XOR && views && a.view->what == VIEW_ITEMS && b.view->what == VIEW_ITEMS)
        return items_symmetric(w, a, b);
    a = set_from(w, a);
    if (ev_failed(a)) return a;
    b = set_from(w, b);
    if (ev_failed(b)) return b;
    ev out;
    switch (op) {
    /* CPython takes the elements of the smaller set: 1 and True are equal, and not the same. */
    case BINARY_AND: return set_common(w, a.dict, b.dict, b.dict->count <= a.dict->count);
    case BINARY_SUB: return set_filter(w, a.dict, b.dict, false);
    case BINARY_XOR: return set_symmetric(w, a.dict, b.dict);
    default:
        out = dict_copy(w, a.dict, EV_SET);
        return ev_failed(out) || !set_update(w, out.dict, b) ? ev_fail() : out;
    }
}

/* Views of dicts take any iterable on the other side, sets only sets and views. */
static bool sets_combine(ev a, ev b) {
    if (is_set_like(a) && is_set_like(b)) return true;
    return (a.kind == EV_VIEW && is_set_like(a)) || (b.kind == EV_VIEW && is_set_like(b));
}

static bool update_from_dict(world *w, dict *d, const dict *from) {
    uint32_t at = 0;
    if (d == from) return true;
    for (dict_entry *e; (e = dict_next(from, &at));)
        if (!dict_set(w, d, e->key, e->value)) return false;
    return true;
}

static bool update_pair(world *w, dict *d, ev pair, uint32_t index) {
    if (!ev_is_iterable(pair)) {
        raise_note_class(w, pair); /* by code of its class it may be a sequence */
        raise_f(w, CLASS_TypeError,
                "cannot convert dictionary update sequence element #%u to a sequence", index);
        return false;
    }
    ev items = iter_list(w, pair);
    if (ev_failed(items)) return false;
    if (items.list->count != 2) {
        raise_f(w, CLASS_ValueError,
                "dictionary update sequence element #%u has length %u; 2 is required", index,
                items.list->count);
        return false;
    }
    return dict_set(w, d, items.list->items[0], items.list->items[1]);
}

bool dict_update(world *w, dict *d, ev v) {
    if (!world_need(w, v)) return false;
    if (v.kind == EV_DICT) return update_from_dict(w, d, v.dict);
    ev one, it = iter_of(w, v);
    if (ev_failed(it)) return false;
    uint32_t index = 0;
    for (int more; (more = iter_next(w, it, &one)) != 0; index++)
        if (more < 0 || !world_step(w) || !update_pair(w, d, one, index)) return false;
    return true;
}

static ev dict_union(world *w, ev a, ev b) {
    ev out = dict_copy(w, a.dict, EV_DICT);
    return ev_failed(out) || !update_from_dict(w, out.dict, b.dict) ? ev_fail() : out;
}

/* ---- Operators --------------------------------------------------------------------------- */

/* Whether the operator sees the values of members of enums. Where it would raise, the members are named. */
static bool sees_values(binary_op op, ev a, ev b) {
    if (a.kind != EV_ENUM && b.kind != EV_ENUM) return false;
    a = ev_bare(a);
    b = ev_bare(b);
    bool bits = op >= BINARY_LSHIFT; /* << >> & | ^: not of floats */
    if (ev_is_number(a) && ev_is_number(b))
        return !bits || (a.kind != EV_FLOAT && b.kind != EV_FLOAT);
    if (op == BINARY_ADD) return a.kind == EV_STR && b.kind == EV_STR;
    return op == BINARY_MUL &&
           ((is_repeatable(a) && ev_is_int(b)) || (ev_is_int(a) && is_repeatable(b)));
}

static ev binary(world *w, binary_op op, ev a, ev b, const char *suffix) {
    if (sees_values(op, a, b)) return binary(w, op, ev_bare(a), ev_bare(b), suffix);
    if (ev_is_number(a) && ev_is_number(b)) {
        ev r = arith_binary(w, op, a, b);
        return r.kind == EV_UNBOUND ? refuse(w, op, suffix, a, b) : r;
    }
    if (!world_need(w, a) || !world_need(w, b)) return ev_fail();
    bool set_op = op == BINARY_AND || op == BINARY_OR || op == BINARY_XOR || op == BINARY_SUB;
    if (set_op && sets_combine(a, b)) return set_binary(w, op, a, b);
    if (op == BINARY_OR && a.kind == EV_DICT && b.kind == EV_DICT) return dict_union(w, a, b);
    if (op == BINARY_ADD && is_repeatable(a)) return concat(w, a, b);
    if (op == BINARY_MUL) return multiply(w, a, b, suffix);
    if (op == BINARY_MOD && a.kind == EV_STR) return percent_format(w, a, b);
    if (op == BINARY_MOD && a.kind == EV_BYTES)
        return raise_f(w, CLASS_Unsupported, "the operator %% on bytes");
    if (op == BINARY_OR && (a.kind == EV_TYPE || b.kind == EV_TYPE))
        return raise_f(w, CLASS_Unsupported,
                       "A | B as a value: write it in isinstance(), or as a tuple");
    return refuse(w, op, suffix, a, b);
}

ev ev_binary(world *w, binary_op op, ev a, ev b) { return binary(w, op, a, b, ""); }

/* Both have equal elements: those of `from` take the places. */
bool set_take_keys(world *w, dict *d, const dict *from) {
    uint32_t at = 0;
    for (dict_entry *e; (e = dict_next(d, &at));) {
        dict_entry *there = dict_find(w, from, e->key);
        if (!there) return false;
        if (ev_is(there->key, e->key)) continue;
        world_ref(there->key);
        world_unref(w, e->key);
        e->key = there->key;
        world_note(w, d, CHANGE_REPLACE, 0, ev_none(), ev_none());
    }
    return true;
}

static ev set_inplace(world *w, binary_op op, ev a, ev b) {
    ev other = a.o == b.o ? dict_copy(w, b.dict, EV_SET) : b;
    if (ev_failed(other)) return other;
    if (op == BINARY_OR) return set_update(w, a.dict, other) ? a : ev_fail();
    if (op == BINARY_AND) {
        ev rest = set_common(w, a.dict, other.dict, other.dict->count <= a.dict->count);
        if (ev_failed(rest)) return rest;
        set_keep_only(w, a.dict, rest.dict, true);
        return set_take_keys(w, a.dict, rest.dict) ? a : ev_fail();
    }
    if (op == BINARY_SUB) {
        set_keep_only(w, a.dict, other.dict, false);
        return a;
    }
    ev fresh = set_filter(w, other.dict, a.dict, false);
    if (ev_failed(fresh)) return fresh;
    set_keep_only(w, a.dict, other.dict, false);
    return set_update(w, a.dict, fresh) ? a : ev_fail();
}

ev ev_inplace(world *w, binary_op op, ev a, ev b) {
    if (!ev_has_identity(a)) return binary(w, op, a, b, "=");
    if (!world_need(w, a) || !world_need(w, b)) return ev_fail();
    bool set_op = op == BINARY_AND || op == BINARY_OR || op == BINARY_XOR || op == BINARY_SUB;
    if (a.kind == EV_LIST && op == BINARY_ADD) return list_extend(w, a.list, b) ? a : ev_fail();
    if (a.kind == EV_LIST && op == BINARY_MUL && ev_is_int(b)) {
        ev all = repeat(w, a, b.i);
        if (ev_failed(all)) return all;
        if (!plist_splice(w, a.list, 0, a.list->count, all.list->items, all.list->count))
            return ev_fail();
        return a;
    }
    if (a.kind == EV_DICT && op == BINARY_OR) return dict_update(w, a.dict, b) ? a : ev_fail();
    if (a.kind == EV_SET && b.kind == EV_SET && set_op) return set_inplace(w, op, a, b);
    return binary(w, op, a, b, "=");
}

ev ev_unary(world *w, unary_op op, ev v) {
    static const char *const signs[] = { "-", "+", "~" };
    if (op == UNARY_NOT) {
        int truth = ev_truth(w, v);
        return truth < 0 ? ev_fail() : ev_bool(!truth);
    }
    ev bare = ev_bare(v);
    if (ev_is_number(bare) && !(op == UNARY_INVERT && bare.kind == EV_FLOAT))
        return arith_unary(w, op, bare);
    return raise_f(w, CLASS_TypeError, "bad operand type for unary %s: '%s'", signs[op],
                   type_name(w, v));
}

/* compare.c -- see compare.h. */
#include "expr/compare.h"

#include "expr/text.h"
#include "expr/tuple.h"

static const char *const op_texts[COMPARE_OPS] = { "==", "!=", "<",      "<=", ">",
                                                   ">=", "in", "not in", "is", "is not" };

const char *compare_text(compare_op op) { return op_texts[op]; }

/* ---- Identity and truth ------------------------------------------------------------------ */

bool ev_is(ev a, ev b) {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case EV_NONE: return true;
    case EV_FLOAT: return memcmp(&a.d, &b.d, sizeof a.d) == 0 || (a.d != a.d && b.d != b.d);
    case EV_STR:
    case EV_BYTES: return text_same(a.text, b.text);
    case EV_ENUM:
        return a.o->class_ == b.o->class_ && text_same(a.enumer->name.text, b.enumer->name.text);
    case EV_TUPLE: return a.o == b.o || (a.tuple->count == 0 && b.tuple->count == 0);
    default: return ev_is_obj(a) ? a.o == b.o : a.i == b.i;
    }
}

static int truth_own(world *w, ev v) {
    raise_own(w, v.o->class_, "bool()");
    return -1;
}

int ev_truth(world *w, ev v) {
    if (ev_flags(w->classes, v) & CLASS_OWN_TRUTH) return truth_own(w, v);
    v = ev_bare(v);
    switch (v.kind) {
    case EV_NONE: return false;
    case EV_BOOL:
    case EV_INT: return v.i != 0;
    case EV_FLOAT: return v.d != 0;
    case EV_STR:
    case EV_BYTES: return v.text->count != 0;
    case EV_TUPLE: return v.tuple->count != 0;
    case EV_RANGE: return v.range->count != 0;
    case EV_LIST: return world_need(w, v) ? v.list->count != 0 : -1;
    case EV_DICT:
    case EV_SET: return world_need(w, v) ? v.dict->count != 0 : -1;
    case EV_VIEW: return world_need(w, v.view->of) ? v.view->of.dict->count != 0 : -1;
    default: return true;
    }
}

/* ---- Views as sets ----------------------------------------------------------------------- */

ev view_item(world *w, uint32_t what, const dict_entry *e) {
    if (what == VIEW_KEYS) return e->key;
    if (what == VIEW_VALUES) return e->value;
    return tuple_pair(w, e->key, e->value);
}

static bool is_set_like(ev v) {
    return v.kind == EV_SET || (v.kind == EV_VIEW && v.view->what != VIEW_VALUES);
}

static const dict *dict_under(world *w, ev v) {
    ev under = v.kind == EV_VIEW ? v.view->of : v;
    return world_need(w, under) ? under.dict : NULL;
}

int item_within(world *w, ev v, ev items) {
    if (v.kind != EV_TUPLE || v.tuple->count != 2) return 0;
    const dict *d = dict_under(w, items);
    dict_entry *e = d ? dict_find(w, d, v.tuple->items[0]) : NULL;
    if (!e) return !d || raise_is_pending(w) ? -1 : 0;
    return ev_same(w, e->value, v.tuple->items[1]);
}

int set_within(world *w, ev a, ev b) {
    const dict *all = dict_under(w, a), *in = dict_under(w, b);
    uint32_t at = 0;
    if (!all || !in) return -1;
    if (all->count > in->count) return 0;
    for (dict_entry *e; (e = dict_next(all, &at));) {
        ev v = a.kind == EV_VIEW ? view_item(w, a.view->what, e) : e->key;
        if (ev_failed(v)) return -1;
        bool items = b.kind == EV_VIEW && b.view->what == VIEW_ITEMS;
        int found = items                 ? item_within(w, v, b)
                    : dict_find(w, in, v) ? 1
                    : raise_is_pending(w) ? -1
                                          : 0;
        if (found != 1) return found;
    }
    return 1;
}

/* ---- Equality ---------------------------------------------------------------------------- */

/* The operator ==: 1, 0, or -1: an exception is pending. */
static int ev_equal(world *w, ev a, ev b);

int ev_same(world *w, ev a, ev b) { return ev_is(a, b) ? 1 : ev_equal(w, a, b); }

static int equal_items(world *w, const ev *a, const ev *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        int same = ev_same(w, a[i], b[i]);
        if (same != 1) return same;
    }
    return 1;
}

static int equal_dicts(world *w, const dict *a, const dict *b) {
    if (a->count != b->count) return 0;
    uint32_t at = 0;
    for (dict_entry *e; (e = dict_next(a, &at));) {
        dict_entry *other = dict_find(w, b, e->key);
        if (!other) return raise_is_pending(w) ? -1 : 0;
        int same = a->head.kind == EV_SET ? 1 : ev_same(w, e->value, other->value);
        if (same != 1) return same;
    }
    return 1;
}

/* The fields of the class; of a class without fields, all attributes. */
static int equal_records(world *w, ev a, ev b) {
    const class_info *info = class_of(w->classes, a.o->class_);
    if (info->flags & CLASS_BY_ID) return 0;
    if (!info->fields_count) return equal_dicts(w, a.dict, b.dict);
    for (uint32_t i = 0; i < info->fields_count; i++) {
        dict_entry *x = dict_find_name(a.dict, info->fields[i]),
                   *y = dict_find_name(b.dict, info->fields[i]);
        if (!x || !y) {
            raise_f(w, CLASS_AttributeError, "'%s' object has no attribute '%s'", class_shown(info),
                    info->fields[i]);
            return -1;
        }
        int same = ev_same(w, x->value, y->value);
        if (same != 1) return same;
    }
    return 1;
}

/* CPython asks a set for the elements of a view, never the other way. */
static int equal_sets(world *w, ev a, ev b) {
    const dict *x = dict_under(w, a), *y = dict_under(w, b);
    if (!x || !y) return -1;
    if (x->count != y->count) return 0;
    return a.kind == EV_VIEW ? set_within(w, a, b) : set_within(w, b, a);
}

static int equal_objects(world *w, ev a, ev b) {
    if (!world_need(w, a) || !world_need(w, b)) return -1;
    if (is_set_like(a) && is_set_like(b)) return equal_sets(w, a, b);
    if (a.kind != b.kind) return 0;
    switch (a.kind) {
    case EV_TUPLE:
        if (a.tuple->count != b.tuple->count) return 0;
        return equal_items(w, a.tuple->items, b.tuple->items, a.tuple->count);
    case EV_LIST:
        if (a.list->count != b.list->count) return 0;
        return equal_items(w, a.list->items, b.list->items, a.list->count);
    case EV_DICT: return equal_dicts(w, a.dict, b.dict);
    case EV_RECORD:
        if (a.o == b.o) return 1;
        if (a.o->class_ != b.o->class_) return 0;
        return equal_records(w, a, b);
    default: return key_same(a, b);
    }
}

/* The program's own ==, of either side; 0: there is none. */
static uint32_t own_equality(const world *w, ev a, ev b) {
    if (ev_flags(w->classes, a) & CLASS_OWN_EQUAL) return a.o->class_;
    return ev_flags(w->classes, b) & CLASS_OWN_EQUAL ? b.o->class_ : 0;
}

static int ev_equal(world *w, ev a, ev b) {
    a = ev_bare(a);
    b = ev_bare(b);
    if (ev_is_number(a) && ev_is_number(b)) return number_same(a, b);
    if (ev_is_text(a) && a.kind == b.kind) return text_same(a.text, b.text);
    uint32_t own = own_equality(w, a, b);
    if (own) return raise_own(w, own, "=="), -1;
    if (!ev_is_obj(a) || !ev_is_obj(b)) return key_same(a, b);
    if (!world_enter(w, " in comparison")) return -1;
    int same = equal_objects(w, a, b);
    world_leave(w);
    return same;
}

/* ---- Order ------------------------------------------------------------------------------- */

static int judge(compare_op op, int order) {
    switch (op) {
    case COMPARE_LT: return order < 0;
    case COMPARE_LE: return order <= 0;
    case COMPARE_GT: return order == 1;
    default: return order == 1 || order == 0;
    }
}

/* The first pair that differs decides; its own order is asked with the same operator. */
static int order_items(world *w, compare_op op, const ev *a, uint32_t a_count, const ev *b,
                       uint32_t b_count) {
    for (uint32_t i = 0; i < a_count && i < b_count; i++) {
        int same = ev_same(w, a[i], b[i]);
        if (same < 0) return -1;
        if (!same) return ev_order(w, op, a[i], b[i]);
    }
    return judge(op, (a_count > b_count) - (a_count < b_count));
}

static int order_sets(world *w, compare_op op, ev a, ev b) {
    const dict *x = dict_under(w, a), *y = dict_under(w, b);
    if (!x || !y) return -1;
    bool strict = op == COMPARE_LT || op == COMPARE_GT;
    if (strict && x->count == y->count) return 0;
    return op == COMPARE_LT || op == COMPARE_LE ? set_within(w, a, b) : set_within(w, b, a);
}

/* If the class of the right operand is derived from that of the left one (a named tuple beside a tuple), CPython asks
 * the right operand first, with the mirrored operator. A TypeError about two elements then names them in that order. */
static int order_tuples(world *w, compare_op op, ev a, ev b) {
    static const compare_op mirrored[] = { [COMPARE_LT] = COMPARE_GT,
                                           [COMPARE_LE] = COMPARE_GE,
                                           [COMPARE_GT] = COMPARE_LT,
                                           [COMPARE_GE] = COMPARE_LE };
    uint32_t left = ev_class(a), right = ev_class(b);
    if (left != right && class_is(w->classes, right, left)) {
        ev kept = a;
        a = b;
        b = kept;
        op = mirrored[op];
    }
    return order_items(w, op, a.tuple->items, a.tuple->count, b.tuple->items, b.tuple->count);
}

static int order_objects(world *w, compare_op op, ev a, ev b) {
    if (!world_need(w, a) || !world_need(w, b)) return -1;
    if (a.kind == EV_LIST && b.kind == EV_LIST)
        return order_items(w, op, a.list->items, a.list->count, b.list->items, b.list->count);
    if (a.kind == EV_TUPLE && b.kind == EV_TUPLE) return order_tuples(w, op, a, b);
    if (is_set_like(a) && is_set_like(b)) return order_sets(w, op, a, b);
    raise_f(w, CLASS_TypeError, "'%s' not supported between instances of '%s' and '%s'",
            compare_text(op), type_name(w, a), type_name(w, b));
    return -1;
}

int ev_order(world *w, compare_op op, ev a, ev b) {
    ev x = ev_bare(a), y = ev_bare(b);
    if (ev_is_number(x) && ev_is_number(y)) {
        int order = number_order(x, y);
        return order == 2 ? 0 : judge(op, order);
    }
    if (ev_is_text(x) && x.kind == y.kind) return judge(op, text_order(x.text, y.text));
    if (!world_enter(w, " in comparison")) return -1;
    int answer = order_objects(w, op, a, b);
    world_leave(w);
    return answer;
}

int ev_compare(world *w, compare_op op, ev a, ev b) {
    if (op > COMPARE_NE) return ev_order(w, op, a, b);
    int same = ev_equal(w, a, b);
    return same < 0 ? -1 : op == COMPARE_EQ ? same : !same;
}

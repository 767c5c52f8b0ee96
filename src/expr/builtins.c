/* builtins.c -- see builtins.h. */
#include "expr/builtins.h"

#include "expr/containers.h"
#include "expr/format.h"
#include "expr/numbers.h"
#include "expr/sort.h"
#include "expr/strings.h"
#include "expr/tuple.h"

#include <math.h>

#define ARGUMENTS (void)self, (void)a, (void)c

/* ---- Of one value ------------------------------------------------------------------------ */

static ev f_abs(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (a[0].kind == EV_FLOAT) return ev_float(fabs(a[0].d));
    if (ev_is_int(a[0])) return a[0].i < 0 ? arith_unary(w, UNARY_NEG, a[0]) : ev_int(a[0].i);
    return raise_f(w, CLASS_TypeError, "bad operand type for abs(): '%s'", type_name(w, a[0]));
}

static ev f_ascii(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return ev_ascii(w, a[0]);
}

static ev f_repr(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return ev_repr(w, a[0]);
}

static ev in_base(world *w, ev v, unsigned base, const char *prefix) {
    int64_t i;
    char digits[72];
    if (!arg_int(w, v, &i)) return ev_fail();
    size_t n = format_int_digits(i < 0 ? -(uint64_t)i : (uint64_t)i, base, false, digits);
    text_builder b = write_text(w);
    if (i < 0) write_point(&b, '-');
    write_ascii(&b, prefix);
    write_chars(&b, digits, n);
    return write_str(&b);
}

static ev f_bin(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return in_base(w, a[0], 2, "0b");
}
static ev f_oct(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return in_base(w, a[0], 8, "0o");
}
static ev f_hex(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return in_base(w, a[0], 16, "0x");
}

static ev f_chr(world *w, ev self, const ev *a, const call *c) {
    int64_t i;
    ARGUMENTS;
    if (!arg_c_int(w, a[0], &i)) return ev_fail();
    if (i < 0 || i > 0x10FFFF)
        return raise_f(w, CLASS_ValueError, "chr() arg not in range(0x110000)");
    return text_of_point(w, (uint32_t)i);
}

static ev f_ord(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (!ev_is_text(a[0]))
        return raise_f(w, CLASS_TypeError, "ord() expected string of length 1, but %s found",
                       type_name(w, a[0]));
    if (a[0].text->count != 1)
        return raise_f(w, CLASS_TypeError,
                       "ord() expected a character, but string of length %u found",
                       a[0].text->count);
    return ev_int(text_at(a[0].text, 0));
}

static ev f_len(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    int64_t n = ev_length(w, a[0]);
    if (n >= 0) return ev_int(n);
    if (a[0].kind == EV_RANGE)
        return raise_f(w, CLASS_OverflowError, "Python int too large to convert to C ssize_t");
    return raise_f(w, CLASS_TypeError, "object of type '%s' has no len()",
                   type_name_whole(w, a[0]));
}

static ev f_callable(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    (void)w;
    return ev_bool(a[0].kind == EV_FUNC || a[0].kind == EV_TYPE);
}

static ev f_type(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (c->count == 1 && c->named)
        return raise_f(w, CLASS_TypeError, "type() takes no keyword arguments");
    if (c->count != 1 || c->named)
        return raise_f(w, CLASS_TypeError, "type() takes 1 or 3 arguments");
    if (a[0].kind == EV_TYPE && class_may_have_metaclass(w->classes, (uint32_t)a[0].i))
        return raise_f(w, CLASS_Unsupported, "the class of a class of the program");
    return ev_type(ev_class(a[0]));
}

static ev f_format(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (arg_given(a[1]) && a[1].kind != EV_STR)
        return raise_f(w, CLASS_TypeError, "format() argument 2 must be str, not %s",
                       a[1].kind == EV_NONE ? "None" : type_name(w, a[1]));
    return ev_format(w, a[0], arg_given(a[1]) ? a[1] : w->empty_str);
}

/* What is above a class that nothing has declared is not known. A record is none of the built-in classes, though, but
 * for tuple: a named tuple with operators of its own crosses as a record. */
static int check_class(world *w, ev v, uint32_t of) {
    if (class_is(w->classes, ev_class(v), of)) return 1;
    bool known = !(ev_flags(w->classes, v) & CLASS_OWN_BASES) ||
                 (v.kind == EV_RECORD && of < CLASS_BUILTIN_COUNT && of != CLASS_tuple);
    return known ? 0 : (raise_own(w, v.o->class_, "isinstance()"), -1);
}

/* 1, 0, -1. Tuples of classes nest; the depth is bounded. */
static int check_instance(world *w, ev v, ev of) {
    if (of.kind == EV_TYPE) return check_class(w, v, (uint32_t)of.i);
    if (of.kind == EV_TUPLE) {
        if (!world_enter(w, " in __instancecheck__")) return -1;
        int answer = 0;
        for (uint32_t i = 0; i < of.tuple->count && answer == 0; i++)
            answer = check_instance(w, v, of.tuple->items[i]);
        world_leave(w);
        return answer;
    }
    raise_f(w, CLASS_TypeError, "isinstance() arg 2 must be a type, a tuple of types, or a union");
    return -1;
}

static ev f_isinstance(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    int answer = check_instance(w, a[0], a[1]);
    return answer < 0 ? ev_fail() : ev_bool(answer);
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static ev f_divmod(world *w, ev self, const ev *a, const call *c) {
    double q, r;
    ARGUMENTS;
    if (!ev_is_number(a[0]) || !ev_is_number(a[1]))
        return raise_f(w, CLASS_TypeError,
                       "unsupported operand type(s) for divmod(): '%s' and '%s'",
                       type_name(w, a[0]), type_name(w, a[1]));
    if (a[0].kind != EV_FLOAT && a[1].kind != EV_FLOAT) {
        ev quotient = arith_binary(w, BINARY_FLOOR, a[0], a[1]);
        if (ev_failed(quotient)) return quotient;
        return tuple_pair(w, quotient, arith_binary(w, BINARY_MOD, a[0], a[1]));
    }
    double x = a[0].kind == EV_FLOAT ? a[0].d : (double)a[0].i;
    double y = a[1].kind == EV_FLOAT ? a[1].d : (double)a[1].i;
    if (!arith_divmod_float(w, x, y, "float divmod()", &q, &r)) return ev_fail();
    return tuple_pair(w, ev_float(q), ev_float(r));
}

static ev f_pow(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (!arg_given(a[2]) || a[2].kind == EV_NONE) return ev_binary(w, BINARY_POW, a[0], a[1]);
    if (ev_is_int(a[0]) && ev_is_int(a[1]) && ev_is_int(a[2]))
        return arith_pow_mod(w, a[0].i, a[1].i, a[2].i);
    if (a[0].kind == EV_FLOAT || a[1].kind == EV_FLOAT || a[2].kind == EV_FLOAT) {
        for (int i = 0; i < 3; i++) raise_note_class(w, a[i]);
        return raise_f(w, CLASS_TypeError,
                       "pow() 3rd argument not allowed unless all arguments are integers");
    }
    return raise_f(w, CLASS_TypeError,
                   "unsupported operand type(s) for ** or pow(): '%s', '%s', '%s'",
                   type_name(w, a[0]), type_name(w, a[1]), type_name(w, a[2]));
}

static ev f_round(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (ev_is_number(a[0])) return number_round(w, a[0], a[1]);
    return raise_f(w, CLASS_TypeError, "type %s doesn't define __round__ method",
                   type_name(w, a[0]));
}

/* Ints are added to 128 bits and must fit at the end; then floats; then whatever has a `+`. */
static ev f_sum(world *w, ev self, const ev *a, const call *c) {
    ev total = arg_given(a[1]) ? a[1] : ev_int(0), one, it = iter_of(w, a[0]);
    arith_i128 wide = 0;
    bool narrow = total.kind == EV_INT;
    ARGUMENTS;
    if (ev_failed(it)) return it;
    if (ev_bare(total).kind == EV_STR)
        return raise_f(w, CLASS_TypeError, "sum() can't sum strings [use ''.join(seq) instead]");
    if (total.kind == EV_BYTES)
        return raise_f(w, CLASS_TypeError, "sum() can't sum bytes [use b''.join(seq) instead]");
    if (narrow) wide = total.i;
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        if (more < 0 || !world_step(w)) return ev_fail();
        ev plain = ev_bare(one); /* a member of an IntEnum is a number */
        if (narrow && ev_is_int(plain)) {
            wide += plain.i;
            continue;
        }
        /* Only floats can be added to ints. Everything else is refused by its type, whatever the sum is. */
        if (narrow) total = plain.kind == EV_FLOAT ? ev_float((double)wide) : ev_int(0);
        narrow = false;
        total = ev_binary(w, BINARY_ADD, total, one);
        if (ev_failed(total)) return total;
    }
    return narrow ? arith_int(w, wide) : total;
}

/* ---- Iterating --------------------------------------------------------------------------- */

static ev all_or_any(world *w, ev v, bool stop) {
    ev one, it = iter_of(w, v);
    if (ev_failed(it)) return it;
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        if (more < 0 || !world_step(w)) return ev_fail();
        int truth = ev_truth(w, one);
        if (truth < 0) return ev_fail();
        if (truth == stop) return ev_bool(stop);
    }
    return ev_bool(!stop);
}

static ev f_all(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return all_or_any(w, a[0], false);
}
static ev f_any(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return all_or_any(w, a[0], true);
}

static ev f_reversed(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return iter_back(w, a[0]);
}

static ev f_enumerate(world *w, ev self, const ev *a, const call *c) {
    int64_t start = 0;
    ARGUMENTS;
    if (!arg_given(a[0]) && c->named)
        return raise_f(w, CLASS_TypeError,
                       "'start' is an invalid keyword argument for enumerate()");
    if (!arg_given(a[0]))
        return raise_f(w, CLASS_TypeError, "enumerate() missing required argument 'iterable'");
    if (arg_given(a[1]) && !arg_int(w, a[1], &start)) return ev_fail();
    ev inner = iter_of(w, a[0]),
       it = ev_failed(inner) ? inner : iter_new(w, ITER_ENUMERATE, inner, ev_none());
    if (!ev_failed(it)) it.iter->at = start;
    return it;
}

/* The iterators of all arguments, from the first that is one on. */
static ev iterators_of(world *w, const call *c, uint32_t from) {
    ev all[16];
    if (c->count - from > 16)
        return raise_f(w, CLASS_Unsupported, "more than 16 iterables at once");
    for (uint32_t i = from; i < c->count; i++) {
        all[i - from] = iter_of(w, c->args[i]);
        if (ev_failed(all[i - from])) return ev_fail();
    }
    return tuple_of(w, all, c->count - from);
}

static ev f_zip(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (c->named > 1)
        return raise_f(w, CLASS_TypeError, "zip() takes at most 1 keyword argument (%u given)",
                       c->named);
    if (!call_only_names(w, c, "zip", "strict", NULL)) return ev_fail();
    ev strict = call_named(c, "strict"), all = iterators_of(w, c, 0);
    ev it = ev_failed(all) ? all : iter_new(w, ITER_ZIP, all, ev_none());
    int is_strict = arg_given(strict) && !ev_failed(it) ? ev_truth(w, strict) : 0;
    if (is_strict < 0) return ev_fail();
    if (!ev_failed(it)) it.iter->strict = is_strict;
    return it;
}

static ev f_map(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (c->named) return raise_f(w, CLASS_TypeError, "map() takes no keyword arguments");
    if (c->count < 2) return raise_f(w, CLASS_TypeError, "map() must have at least two arguments.");
    ev all = iterators_of(w, c, 1);
    return ev_failed(all) ? all : iter_new(w, ITER_MAP, all, a[0]);
}

static ev f_filter(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    ev it = iter_of(w, a[1]);
    return ev_failed(it) ? it : iter_new(w, ITER_FILTER, it, a[0]);
}

static ev f_range(world *w, ev self, const ev *a, const call *c) {
    int64_t n[3] = { 0, 0, 1 };
    ARGUMENTS;
    for (uint32_t i = 0; i < c->count; i++)
        if (!arg_int(w, a[i], &n[i])) return ev_fail();
    if (n[2] == 0) return raise_f(w, CLASS_ValueError, "range() arg 3 must not be zero");
    return c->count == 1 ? range_of(w, 0, n[0], 1) : range_of(w, n[0], n[1], n[2]);
}

static ev f_sorted(world *w, ev self, const ev *a, const call *c) {
    int64_t reverse = 0;
    ARGUMENTS;
    if (c->count != 1)
        return raise_f(w, CLASS_TypeError, "sorted expected 1 argument, got %u", c->count);
    ev out = iter_list(w, c->args[0]), given = call_named(c, "reverse");
    if (ev_failed(out)) return out;
    if (c->named > 2)
        return raise_f(w, CLASS_TypeError, "sort() takes at most 2 keyword arguments (%u given)",
                       c->named);
    if (!call_only_names(w, c, "sort", "key", "reverse")) return ev_fail();
    if (arg_given(given) && !arg_c_int(w, given, &reverse)) return ev_fail();
    return sort_list(w, out.list, call_named(c, "key"), reverse != 0) ? out : ev_fail();
}

/* min and max: the first of the best. */
static ev extreme(world *w, const call *c, const char *name, compare_op better) {
    ev fallback = call_named(c, "default"), key = call_named(c, "key");
    if (c->count == 0)
        return raise_f(w, CLASS_TypeError, "%s expected at least 1 argument, got 0", name);
    if (c->named > 2)
        return raise_f(w, CLASS_TypeError, "%s() takes at most 2 keyword arguments (%u given)",
                       name, c->named);
    if (!call_only_names(w, c, name, "key", "default")) return ev_fail();
    if (c->count > 1 && arg_given(fallback))
        return raise_f(w, CLASS_TypeError,
                       "Cannot specify a default for %s() with multiple positional arguments",
                       name);
    ev all = c->count > 1 ? tuple_of(w, c->args, c->count) : c->args[0];
    ev it = ev_failed(all) ? all : iter_of(w, all), one, best = ev_unbound(),
       best_key = ev_unbound();
    if (ev_failed(it)) return it;
    for (int more; (more = iter_next(w, it, &one)) != 0;) {
        if (more < 0 || !world_step(w)) return ev_fail();
        ev k = arg_given(key) && key.kind != EV_NONE ? w->invoke(w, key, &one, 1) : one;
        if (ev_failed(k)) return k;
        int wins = best.kind == EV_UNBOUND ? 1 : ev_order(w, better, k, best_key);
        if (wins < 0) return ev_fail();
        if (wins) best = one, best_key = k;
    }
    if (best.kind != EV_UNBOUND) return best;
    if (arg_given(fallback)) return fallback;
    return raise_f(w, CLASS_ValueError, "%s() arg is an empty sequence", name);
}

static ev f_min(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return extreme(w, c, "min", COMPARE_LT);
}
static ev f_max(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return extreme(w, c, "max", COMPARE_GT);
}

/* ---- Classes as functions ---------------------------------------------------------------- */

static ev f_bool(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    int truth = arg_given(a[0]) ? ev_truth(w, a[0]) : 0;
    return truth < 0 ? ev_fail() : ev_bool(truth);
}

static ev f_int(world *w, ev self, const ev *a, const call *c) {
    int64_t base;
    ARGUMENTS;
    if (arg_given(a[1])) {
        if (!arg_given(a[0])) return raise_f(w, CLASS_TypeError, "int() missing string argument");
        if (!arg_int(w, a[1], &base)) return ev_fail();
        if (base != 0 && (base < 2 || base > 36))
            return raise_f(w, CLASS_ValueError, "int() base must be >= 2 and <= 36, or 0");
        if (!ev_is_text(a[0]))
            return raise_about(w, a[0], "int() can't convert non-string with explicit base");
        return int_of_text(w, a[0], base);
    }
    if (!arg_given(a[0])) return ev_int(0);
    if (ev_is_int(a[0])) return ev_int(a[0].i);
    if (a[0].kind == EV_FLOAT) return arith_int_of_float(w, a[0].d);
    if (ev_is_text(a[0])) return int_of_text(w, a[0], 10);
    return raise_f(
        w, CLASS_TypeError,
        "int() argument must be a string, a bytes-like object or a real number, not '%s'",
        type_name(w, a[0]));
}

static ev f_float(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (!arg_given(a[0])) return ev_float(0.0);
    if (a[0].kind == EV_FLOAT) return a[0];
    if (ev_is_int(a[0])) return ev_float((double)a[0].i);
    if (ev_is_text(a[0])) return float_of_text(w, a[0]);
    return raise_f(w, CLASS_TypeError,
                   "float() argument must be a string or a real number, not '%s'",
                   type_name(w, a[0]));
}

static ev f_str(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (!text_codec_arg(w, a[1], "str", "encoding") || !text_codec_arg(w, a[2], "str", "errors"))
        return ev_fail();
    if (!arg_given(a[0])) return w->empty_str;
    if (!arg_given(a[1]) && !arg_given(a[2])) return ev_str(w, a[0]);
    if (a[0].kind == EV_STR) return raise_f(w, CLASS_TypeError, "decoding str is not supported");
    if (a[0].kind != EV_BYTES)
        return raise_f(w, CLASS_TypeError, "decoding to str: need a bytes-like object, %s found",
                       type_name(w, a[0]));
    return text_decode(w, a[0], a[1], a[2]);
}

static ev f_bytes(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (!text_codec_arg(w, a[1], "bytes", "encoding") ||
        !text_codec_arg(w, a[2], "bytes", "errors"))
        return ev_fail();
    if (arg_given(a[1]) || arg_given(a[2])) {
        if (!arg_given(a[0]) || a[0].kind != EV_STR)
            return raise_about(w, a[0],
                               arg_given(a[1]) ? "encoding without a string argument"
                                               : "errors without a string argument");
        return text_encode(w, a[0], a[1], a[2]);
    }
    if (!arg_given(a[0])) return w->empty_bytes;
    if (a[0].kind == EV_BYTES) return a[0];
    if (a[0].kind == EV_STR)
        return raise_f(w, CLASS_TypeError, "string argument without an encoding");
    if (ev_is_int(a[0])) {
        if (a[0].i < 0) return raise_f(w, CLASS_ValueError, "negative count");
        if (a[0].i > INT64_MAX - 33) /* with the head of CPython's object */
            return raise_f(w, CLASS_OverflowError, "byte string is too large");
        if (a[0].i > (int64_t)WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, ev_fail();
        text_builder b = write_text(w);
        write_fill(&b, 0, (size_t)a[0].i);
        return write_bytes(&b);
    }
    if (!ev_is_obj(a[0]) || a[0].kind == EV_RECORD || a[0].kind == EV_EXC || a[0].kind == EV_ENUM)
        return raise_f(w, CLASS_TypeError, "cannot convert '%s' object to bytes",
                       type_name(w, a[0]));
    return bytes_of_items(w, a[0]);
}

static ev f_list(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return arg_given(a[0]) ? iter_list(w, a[0]) : plist_new(w, 0);
}

static ev f_tuple(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (!arg_given(a[0])) return w->empty_tuple;
    if (a[0].kind == EV_TUPLE && !a[0].o->class_) return a[0];
    ev all = iter_list(w, a[0]);
    return ev_failed(all) ? all : tuple_of(w, all.list->items, all.list->count);
}

static ev f_set(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    ev out = dict_new(w, EV_SET);
    if (ev_failed(out) || (arg_given(a[0]) && !set_update(w, out.dict, a[0]))) return ev_fail();
    return out;
}

static ev f_dict(world *w, ev self, const ev *a, const call *c) {
    ev out = dict_new(w, EV_DICT);
    ARGUMENTS;
    if (c->count > 1)
        return raise_f(w, CLASS_TypeError, "dict expected at most 1 argument, got %u", c->count);
    if (ev_failed(out) || (c->count && !dict_update(w, out.dict, c->args[0]))) return ev_fail();
    for (uint32_t i = 0; i < c->named; i++)
        if (!dict_set(w, out.dict, c->names[i], c->args[c->count + i])) return ev_fail();
    return out;
}

/* ---- Recorded values: not CPython's. What a walk has computed is stored before anything depends on it. */

static ev f_now(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return ev_float((double)env_wall_ms(&w->env) / 1000);
}

static ev f_random(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    return ev_float((double)(env_random_u64(&w->env) >> 11) * 0x1p-53);
}

/* A random UUID (version 4), as text. */
static ev f_uuid(world *w, ev self, const ev *a, const call *c) {
    static const char hex[] = "0123456789abcdef";
    uint8_t bytes[16];
    char out[37];
    uint32_t n = 0;
    ARGUMENTS;
    env_random(&w->env, bytes, sizeof bytes);
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (uint32_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out[n++] = '-';
        out[n++] = hex[bytes[i] >> 4];
        out[n++] = hex[bytes[i] & 15];
    }
    out[n] = 0;
    return text_of_ascii(w, out);
}

/* heddle.method(object, name): raises AttributeError if there is no such method. CPython looks a method up before it
 * evaluates the arguments; a compiler that must wait for an argument asks for it first. */
static ev f_method(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (a[1].kind != EV_STR) return raise_f(w, CLASS_TypeError, "a method has a name");
    return method_exists(w, a[0], a[1]) ? ev_none() : ev_fail();
}

/* heddle.raise(exception): a compiler writes it where an expression is to raise an exception, such as one that a task
 * has kept. */
static ev f_raise(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    if (a[0].kind == EV_EXC) return raise_exc(w, a[0]);
    return raise_f(w, CLASS_TypeError, "exceptions must derive from BaseException");
}

/* heddle.keywords(function, mapping, mapping): what a call of a function of the program gives by name; the second
 * mapping must have no key of the first. `function` is how CPython names the function when it complains. */
static ev f_keywords(world *w, ev self, const ev *a, const call *c) {
    ARGUMENTS;
    char function_[300] = "?", key[300];
    ev all = dict_new(w, EV_DICT);
    if (a[0].kind == EV_STR) (void)text_short(a[0].text, function_, sizeof function_);
    for (uint32_t i = 1; i < CALL_MAX && arg_given(a[i]) && !ev_failed(all); i++) {
        uint32_t at = 0;
        if (a[i].kind != EV_DICT)
            return raise_f(w, CLASS_TypeError, "%s() argument after ** must be a mapping, not %s",
                           function_, type_name(w, a[i]));
        for (dict_entry *e; (e = dict_next(a[i].dict, &at));) {
            bool twice = dict_find(w, all.dict, e->key);
            ev shown = twice ? ev_str(w, e->key) : w->empty_str;
            if (ev_failed(shown)) return shown;
            if (twice)
                return raise_f(w, CLASS_TypeError,
                               "%s() got multiple values for keyword argument '%s'", function_,
                               text_short(shown.text, key, sizeof key));
            if (!dict_set(w, all.dict, e->key, e->value)) return ev_fail();
        }
    }
    return all;
}

#define ONE(name)          FUNCTION_ONE(#name, f_##name)
#define PLACES(name, a, b) FUNCTION_PLACES(#name, f_##name, a, b)
#define RAW(name)          FUNCTION_RAW(#name, f_##name)

const function builtins[] = {
    ONE(abs),
    ONE(all),
    ONE(any),
    ONE(ascii),
    ONE(bin),
    PLACES(bool, 0, 1),
    { "bytes", f_bytes, CALL_KEYWORDS, 0, 3, 0, { "source", "encoding", "errors" } },
    ONE(callable),
    ONE(chr),
    RAW(dict),
    PLACES(divmod, 2, 2),
    { "enumerate", f_enumerate, CALL_KEYWORDS, 0, 2, 0, { "iterable", "start" } },
    PLACES(filter, 2, 2),
    PLACES(float, 0, 1),
    PLACES(format, 1, 2),
    ONE(hex),
    { "int", f_int, CALL_KEYWORDS, 0, 2, 1, { "", "base" } },
    PLACES(isinstance, 2, 2),
    FUNCTION_PLACES("heddle.keywords", f_keywords, 2, 3),
    ONE(len),
    PLACES(list, 0, 1),
    RAW(map),
    RAW(max),
    RAW(min),
    FUNCTION_PLACES("heddle.method", f_method, 2, 2),
    FUNCTION_PLACES("heddle.now", f_now, 0, 0),
    ONE(oct),
    ONE(ord),
    { "pow", f_pow, CALL_KEYWORDS, 2, 3, 0, { "base", "exp", "mod" } },
    FUNCTION_PLACES("heddle.raise", f_raise, 1, 1),
    FUNCTION_PLACES("heddle.random", f_random, 0, 0),
    PLACES(range, 1, 3),
    ONE(repr),
    PLACES(reversed, 1, 1),
    { "round", f_round, CALL_KEYWORDS, 1, 2, 0, { "number", "ndigits" } },
    PLACES(set, 0, 1),
    RAW(sorted),
    { "str", f_str, CALL_KEYWORDS, 0, 3, 0, { "object", "encoding", "errors" } },
    { "sum", f_sum, CALL_KEYWORDS, 1, 2, 1, { "", "start" } },
    PLACES(tuple, 0, 1),
    RAW(type),
    FUNCTION_PLACES("heddle.uuid", f_uuid, 0, 0),
    RAW(zip),
    FUNCTION_END,
};

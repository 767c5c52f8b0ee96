/* machine.c -- see machine.h.
 *
 * run() is the loop: one case per instruction, each a line or two. What an instruction does to values
 * is in the files of the values. */
#include "expr/machine.h"

#include "expr/builtins.h"
#include "expr/format.h"
#include "expr/subscript.h"
#include "expr/tuple.h"

#include <stdio.h>

struct machine {
    world *w;
    ev *stack;
    uint32_t size;
    ev *sp;              /* the first free place, for nested code; set before each instruction */
    uint32_t nested;     /* runs of generators and functions */
    uint64_t evaluation; /* how many there were */
    code *c;
    frame *f;
    ev *locals;
    uint64_t counts[CODE_COUNT];
};

const uint64_t *machine_counts(const machine *m) { return m->counts; }

/* ---- Names ------------------------------------------------------------------------------- */

static ev refuse_unbound(machine *m, const char *name, bool free_variable) {
    if (free_variable)
        return raise_f(
            m->w, CLASS_NameError,
            "cannot access free variable '%s' where it is not associated with a value in "
            "enclosing scope",
            name);
    return raise_f(m->w, CLASS_UnboundLocalError,
                   "cannot access local variable '%s' where it is not associated with a value",
                   name);
}

static SELDOM ev unbound_name(machine *m, const insn *i) {
    return refuse_unbound(m, m->f->names->names.items[i->b], i->a);
}

static SELDOM ev unbound_local(machine *m, const insn *i) {
    char name[200];
    const text *t = m->c->constants.items[i->c].text;
    return refuse_unbound(m, text_short(t, name, sizeof name), i->a);
}

static bool store_name(machine *m, const insn *i, ev v) {
    if (v.kind == EV_ITER) return raise_iterator(m->w), false;
    if (v.kind == EV_FUNC) {
        raise_f(m->w, CLASS_Unsupported, "a '%s' object in a variable", type_name(m->w, v));
        return false;
    }
    frame_set(m->f, i->b, v);
    return true;
}

static bool delete_name(machine *m, const insn *i) {
    if (m->f->slots.items[i->b].kind == EV_UNBOUND) return ev_failed(unbound_name(m, i)) && false;
    frame_set(m->f, i->b, ev_unbound());
    return true;
}

/* ---- Displays and unpacking -------------------------------------------------------------- */

static ev build_set(world *w, const ev *items, uint32_t count) {
    ev out = dict_new(w, EV_SET);
    for (uint32_t i = 0; i < count && !ev_failed(out); i++)
        if (!dict_set(w, out.dict, items[i], ev_none())) return ev_fail();
    return out;
}

static ev build_dict(world *w, const ev *items, uint32_t pairs) {
    ev out = dict_new(w, EV_DICT);
    for (uint32_t i = 0; i < pairs && !ev_failed(out); i++)
        if (!dict_set(w, out.dict, items[2 * i], items[2 * i + 1])) return ev_fail();
    return out;
}

/* [*v, ...] */
static bool extend(world *w, ev l, ev v) {
    if (ev_is_iterable(v)) return list_extend(w, l.list, v);
    raise_f(w, CLASS_TypeError, "Value after * must be an iterable, not %s", type_name_whole(w, v));
    return false;
}

/* {**v, ...} */
static bool merge(world *w, ev d, ev v) {
    if (v.kind == EV_DICT) return dict_update(w, d.dict, v);
    raise_f(w, CLASS_TypeError, "'%s' object is not a mapping", type_name(w, v));
    return false;
}

/* The elements, last first, from `at` on. */
static bool unpack(world *w, ev v, uint32_t count, ev *at) {
    if (!ev_is_iterable(v))
        return raise_f(w, CLASS_TypeError, "cannot unpack non-iterable %s object",
                       type_name_whole(w, v)),
               false;
    ev it = iter_of(w, v), extra;
    if (ev_failed(it)) return false;
    for (uint32_t i = 0; i < count; i++) {
        int more = iter_next(w, it, &at[count - 1 - i]);
        if (more < 0) return false;
        if (!more)
            return raise_f(w, CLASS_ValueError, "not enough values to unpack (expected %u, got %u)",
                           count, i),
                   false;
    }
    int more = iter_next(w, it, &extra);
    if (more == 0) return true;
    if (more > 0) raise_f(w, CLASS_ValueError, "too many values to unpack (expected %u)", count);
    return false;
}

/* before, *rest, after: last first. */
static bool unpack_rest(world *w, ev v, uint32_t before, uint32_t after, ev *at) {
    if (!ev_is_iterable(v))
        return raise_f(w, CLASS_TypeError, "cannot unpack non-iterable %s object",
                       type_name_whole(w, v)),
               false;
    ev all = iter_list(w, v);
    if (ev_failed(all)) return false;
    uint32_t n = all.list->count, rest = n - before - after;
    if (n < before + after) {
        raise_f(w, CLASS_ValueError, "not enough values to unpack (expected at least %u, got %u)",
                before + after, n);
        return false;
    }
    ev middle = plist_of(w, all.list->items + before, rest);
    if (ev_failed(middle)) return false;
    uint32_t put = 0;
    for (uint32_t i = after; i-- > 0;) at[put++] = all.list->items[before + rest + i];
    at[put++] = middle;
    for (uint32_t i = before; i-- > 0;) at[put++] = all.list->items[i];
    return true;
}

/* ---- Calls ------------------------------------------------------------------------------- */

/* Its arguments are on top of the stack. */
static call call_of(machine *m, const insn *i, const ev *sp) {
    call c = { .count = i->a };
    if (i->c != CODE_NO_NAMES) {
        const tuple *names = m->c->constants.items[i->c].tuple;
        c.names = names->items;
        c.named = names->count;
    }
    c.args = sp - c.count - c.named;
    return c;
}

static const function *find_method(method_site *site, ev self) {
    if (USUALLY(site->kind == self.kind && self.kind != EV_TYPE)) return site->found;
    const function *table = methods_of(self.kind);
    site->kind = self.kind;
    site->found =
        table && !text_is_wide(site->name.text)
            ? function_find(table, (const char *)site->name.text->data, site->name.text->count)
            : NULL;
    return site->found;
}

/* CPython looks the method up before it evaluates the arguments. */
static bool check_method(machine *m, method_site *site, ev self) {
    if (find_method(site, self) || self.kind == EV_TYPE) return true;
    return !ev_failed(attr_get(m->w, self, site->name));
}

static ev call_site(machine *m, method_site *site, ev self, const call *c) {
    const function *f = find_method(site, self);
    if (!f) return call_method(m->w, self, site->name, c);
    if (!world_need(m->w, self)) return ev_fail();
    bool of_int = self.kind == EV_BOOL && !c->spread;
    return call_function(m->w, f, of_int ? "int" : type_name(m->w, self), self, c);
}

static ev call_star(machine *m, const insn *i, ev self, ev args, ev named) {
    world *w = m->w;
    uint32_t count = args.list->count, at = 0;
    ev names = plist_new(w, named.dict->count);
    if (ev_failed(names)) return names;
    for (dict_entry *e; (e = dict_next(named.dict, &at));)
        if (!plist_append(w, names.list, e->key) || !plist_append(w, args.list, e->value))
            return ev_fail();
    call c = { .args = args.list->items,
               .count = count,
               .named = names.list->count,
               .names = names.list->items,
               .spread = true };
    static const ev nothing[1];
    if (!c.args) c.args = nothing;
    if (i->a == 0) return call_builtin(w, i->b, &c);
    return i->a == 1 ? call_site(m, &m->c->methods.items[i->b], self, &c) : call_class(w, i->b, &c);
}

enum { CALLEE_SIZE = 256 }; /* longer names are cut */

/* "module.Class", as CPython has it. */
static const char *callee_class(const char *name, char out[CALLEE_SIZE]) {
    snprintf(out, CALLEE_SIZE, "%s", name);
    char *colon = strchr(out, ':');
    if (colon) *colon = '.';
    return out;
}

static const char *callee_method(const method_site *site, char out[CALLEE_SIZE]) {
    static const char *const kinds[EV_KINDS] = {
        [EV_BOOL] = "bool.",   [EV_INT] = "int.",     [EV_FLOAT] = "float.", [EV_STR] = "str.",
        [EV_BYTES] = "bytes.", [EV_TUPLE] = "tuple.", [EV_LIST] = "list.",   [EV_DICT] = "dict.",
        [EV_SET] = "set.",     [EV_RANGE] = "range.",
    };
    const char *kind = site->kind < EV_KINDS && kinds[site->kind] ? kinds[site->kind] : "";
    size_t n = (size_t)snprintf(out, CALLEE_SIZE, "%s", kind);
    (void)text_short(site->name.text, out + n, CALLEE_SIZE - n);
    return out;
}

/* What is called, for a complaint. */
static const char *callee(machine *m, const insn *i, char out[CALLEE_SIZE]) {
    if (i->a == 0) return builtins[i->b].name;
    if (i->a == 1) return callee_method(&m->c->methods.items[i->b], out);
    return callee_class(class_of(m->w->classes, i->b)->name, out);
}

/* *v in a call: stack has the list of arguments. */
static bool star_args(machine *m, const insn *i, ev l, ev v) {
    char name[CALLEE_SIZE];
    if (ev_is_iterable(v)) return list_extend(m->w, l.list, v);
    raise_f(m->w, CLASS_TypeError, "%s() argument after * must be an iterable, not %s",
            callee(m, i, name), type_name_whole(m->w, v));
    return false;
}

static bool star_names(machine *m, const insn *i, ev d, ev v) {
    char name[CALLEE_SIZE], key[CALLEE_SIZE];
    uint32_t at = 0;
    if (v.kind != EV_DICT || !world_need(m->w, v)) {
        raise_f(m->w, CLASS_TypeError, "%s() argument after ** must be a mapping, not %s",
                callee(m, i, name), type_name(m->w, v));
        return false;
    }
    for (dict_entry *e; (e = dict_next(v.dict, &at));) {
        if (e->key.kind != EV_STR)
            return raise_f(m->w, CLASS_TypeError, "keywords must be strings"), false;
        if (dict_find(m->w, d.dict, e->key)) {
            raise_f(m->w, CLASS_TypeError, "%s() got multiple values for keyword argument '%s'",
                    callee(m, i, name), text_short(e->key.text, key, sizeof key));
            return false;
        }
        if (!dict_set(m->w, d.dict, e->key, e->value)) return false;
    }
    return true;
}

/* ---- f-strings --------------------------------------------------------------------------- */

static ev format_part(world *w, ev v, uint32_t conversion, ev spec) {
    if (conversion == 'r') v = ev_repr(w, v);
    else if (conversion == 's') v = ev_str(w, v);
    else if (conversion == 'a') v = ev_ascii(w, v);
    return ev_failed(v) ? v : ev_format(w, v, spec);
}

static ev concat_parts(world *w, const ev *parts, uint32_t count) {
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < count; i++) write_whole(&b, parts[i].text);
    return write_str(&b);
}

/* ---- The loop ---------------------------------------------------------------------------- */

/* Objects on the stack are not counted, so a sweep in the middle pins them first. Only where no nested
 * code runs: functions that call back have evs in variables of C. */
static void sweep_in_loop(machine *m, const ev *top) {
    world *w = m->w;
    for (const ev *v = m->stack; v < top; v++) world_ref(*v);
    world_sweep(w);
    for (const ev *v = m->stack; v < top; v++) world_unref(w, *v);
}

enum { SWEEP_AT = 4096 };

/* The state of a generator is in locals of the code, so only the youngest of each place is alive: it
 * carries the number of its evaluation and of its making. */
static ev generator(machine *m, const insn *i) {
    ev *made = &m->locals[i->c], v;
    *made = ev_int(made->kind == EV_INT ? made->i + 1 : 0);
    v = iter_new(m->w, ITER_GENERATOR, ev_int(i->c), *made);
    if (ev_failed(v)) return v;
    v.iter->at = i->b;
    v.iter->end = (int64_t)m->evaluation;
    return v;
}

static int compare(world *w, uint32_t op, ev a, ev b) {
    int r;
    switch (op) {
    case COMPARE_IN: return ev_contains(w, b, a);
    case COMPARE_NOT_IN: r = ev_contains(w, b, a); return r < 0 ? r : !r;
    case COMPARE_IS: return ev_is(a, b);
    case COMPARE_IS_NOT: return !ev_is(a, b);
    default: return ev_compare(w, (compare_op)op, a, b);
    }
}

#define FAIL goto failed
#define TRY(cond)                                                                                  \
    if (RARELY(!(cond))) FAIL
#define PUSH(v)                                                                                    \
    do {                                                                                           \
        ev pushed_ = (v);                                                                          \
        TRY(!ev_failed(pushed_));                                                                  \
        *sp++ = pushed_;                                                                           \
    } while (0)
#define REPLACE(n, v)                                                                              \
    do {                                                                                           \
        ev put_ = (v);                                                                             \
        TRY(!ev_failed(put_));                                                                     \
        sp -= (n);                                                                                 \
        *sp++ = put_;                                                                              \
    } while (0)

/* Runs from `pc` to RETURN, YIELD or END. Long, because it is the list of instructions. *resume is
 * where a generator goes on. */
static ev run(machine *m, uint32_t pc, uint32_t *resume) {
    world *w = m->w;
    const insn *insns = m->c->insns.items;
    const ev *constants = m->c->constants.items;
    ev *const base = m->sp, *sp = base, *locals = m->locals, v;
    int answer;
    for (;;) {
        const insn *i = &insns[pc++];
        m->counts[i->op]++;
        m->sp = sp;
        if (RARELY(w->steps == 0)) {
            w->failure = FAILURE_STEPS;
            FAIL;
        }
        w->steps--;
        switch ((code_op)i->op) {
        case CODE_CONST: *sp++ = constants[i->b]; break;
        case CODE_NAME:
            v = m->f->slots.items[i->b];
            if (RARELY(v.kind == EV_UNBOUND)) v = unbound_name(m, i);
            PUSH(v);
            break;
        case CODE_LOCAL:
            v = locals[i->b];
            if (RARELY(v.kind == EV_UNBOUND)) v = unbound_local(m, i);
            PUSH(v);
            break;
        case CODE_STORE_NAME: TRY(store_name(m, i, *--sp)); break;
        case CODE_STORE_LOCAL: locals[i->b] = *--sp; break;
        case CODE_DELETE_NAME: TRY(delete_name(m, i)); break;
        case CODE_CLEAR_LOCAL: locals[i->b] = ev_unbound(); break;
        case CODE_POP: sp--; break;
        case CODE_DUP: sp[0] = sp[-1], sp++; break;
        case CODE_DUP2: sp[0] = sp[-2], sp[1] = sp[-1], sp += 2; break;
        case CODE_DUP4: memcpy(sp, sp - 4, 4 * sizeof *sp), sp += 4; break;
        case CODE_ROT2: v = sp[-1], sp[-1] = sp[-2], sp[-2] = v; break;
        case CODE_ROT3: v = sp[-1], sp[-1] = sp[-2], sp[-2] = sp[-3], sp[-3] = v; break;
        case CODE_ROT5: v = sp[-1], memmove(sp - 4, sp - 5, 4 * sizeof *sp), sp[-5] = v; break;
        case CODE_UNARY: REPLACE(1, ev_unary(w, (unary_op)i->a, sp[-1])); break;
        case CODE_BINARY:
            if (USUALLY(sp[-1].kind == EV_INT && sp[-2].kind == EV_INT)) {
                REPLACE(2, arith_binary(w, (binary_op)i->a, sp[-2], sp[-1]));
                break;
            }
            REPLACE(2, ev_binary(w, (binary_op)i->a, sp[-2], sp[-1]));
            break;
        case CODE_INPLACE: REPLACE(2, ev_inplace(w, (binary_op)i->a, sp[-2], sp[-1])); break;
        case CODE_COMPARE:
            answer = compare(w, i->a, sp[-2], sp[-1]);
            TRY(answer >= 0);
            sp -= 2;
            *sp++ = ev_bool(answer);
            break;
        case CODE_JUMP: pc = i->b; break;
        case CODE_JUMP_FALSE:
            answer = ev_truth(w, *--sp);
            TRY(answer >= 0);
            if (!answer) pc = i->b;
            break;
        case CODE_AND:
            answer = ev_truth(w, sp[-1]);
            TRY(answer >= 0);
            if (!answer) pc = i->b;
            else sp--;
            break;
        case CODE_OR:
            answer = ev_truth(w, sp[-1]);
            TRY(answer >= 0);
            if (answer) pc = i->b;
            else sp--;
            break;
        case CODE_TUPLE: REPLACE(i->b, tuple_of(w, sp - i->b, i->b)); break;
        case CODE_LIST: REPLACE(i->b, plist_of(w, sp - i->b, i->b)); break;
        case CODE_SET: REPLACE(i->b, build_set(w, sp - i->b, i->b)); break;
        case CODE_DICT: REPLACE(2 * i->b, build_dict(w, sp - 2 * i->b, i->b)); break;
        case CODE_APPEND: TRY(plist_append(w, locals[i->b].list, *--sp)); break;
        case CODE_EXTEND: TRY(extend(w, locals[i->b], *--sp)); break;
        case CODE_ADD: TRY(dict_set(w, locals[i->b].dict, *--sp, ev_none())); break;
        case CODE_UPDATE: TRY(set_update(w, locals[i->b].dict, *--sp)); break;
        case CODE_PUT:
            sp -= 2;
            TRY(dict_set(w, locals[i->b].dict, sp[0], sp[1]));
            break;
        case CODE_MERGE: TRY(merge(w, locals[i->b], *--sp)); break;
        case CODE_TO_TUPLE: REPLACE(1, tuple_of(w, sp[-1].list->items, sp[-1].list->count)); break;
        case CODE_ITEM: REPLACE(2, item_get(w, sp[-2], sp[-1])); break;
        case CODE_SET_ITEM: /* value, object, index */
            TRY(item_set(w, sp[-2], sp[-1], sp[-3]));
            sp -= 3;
            break;
        case CODE_DELETE_ITEM:
            TRY(item_delete(w, sp[-2], sp[-1]));
            sp -= 2;
            break;
        case CODE_SLICE: REPLACE(4, slice_get(w, sp[-4], sp[-3], sp[-2], sp[-1])); break;
        case CODE_SET_SLICE: /* value, object, from, to, step */
            TRY(slice_set(w, sp[-4], sp[-3], sp[-2], sp[-1], sp[-5]));
            sp -= 5;
            break;
        case CODE_DELETE_SLICE:
            TRY(slice_delete(w, sp[-4], sp[-3], sp[-2], sp[-1]));
            sp -= 4;
            break;
        case CODE_ATTR: REPLACE(1, read_attribute(w, sp[-1], constants[i->b])); break;
        case CODE_SET_ATTR: /* value, object */
            TRY(write_attribute(w, sp[-1], constants[i->b], sp[-2]));
            sp -= 2;
            break;
        case CODE_DELETE_ATTR: TRY(write_attribute(w, *--sp, constants[i->b], ev_unbound())); break;
        case CODE_UNPACK:
            v = *--sp;
            m->sp = sp + i->b; /* a generator runs above what it has filled */
            TRY(unpack(w, v, i->b, sp));
            sp += i->b;
            break;
        case CODE_UNPACK_REST:
            v = *--sp;
            TRY(unpack_rest(w, v, i->b, i->c, sp));
            sp += i->b + i->c + 1;
            break;
        case CODE_ITER:
            v = iter_of(w, *--sp);
            TRY(!ev_failed(v));
            locals[i->b] = v;
            break;
        case CODE_NEXT:
            if (RARELY(w->zeroes.count > SWEEP_AT && !m->nested)) sweep_in_loop(m, sp);
            answer = iter_next(w, locals[i->b], sp);
            TRY(answer >= 0);
            if (answer) sp++;
            else pc = i->c;
            break;
        case CODE_CALL: {
            call c = call_of(m, i, sp);
            REPLACE(c.count + c.named, call_builtin(w, i->b, &c));
            break;
        }
        case CODE_METHOD_CHECK: TRY(check_method(m, &m->c->methods.items[i->b], sp[-1])); break;
        case CODE_METHOD: {
            call c = call_of(m, i, sp);
            REPLACE(c.count + c.named + 1,
                    call_site(m, &m->c->methods.items[i->b], c.args[-1], &c));
            break;
        }
        case CODE_NEW: {
            call c = call_of(m, i, sp);
            REPLACE(c.count + c.named, call_class(w, i->b, &c));
            break;
        }
        case CODE_STAR_ARGS:
            TRY(star_args(m, i, locals[i->c], sp[-1]));
            sp--;
            break;
        case CODE_STAR_NAMES:
            TRY(star_names(m, i, locals[i->c], sp[-1]));
            sp--;
            break;
        case CODE_CALL_STAR: /* [receiver,] arguments, names */
            REPLACE(i->a == 1 ? 3 : 2,
                    call_star(m, i, i->a == 1 ? sp[-3] : ev_unbound(), sp[-2], sp[-1]));
            break;
        case CODE_FORMAT:
            if (i->b) REPLACE(2, format_part(w, sp[-2], i->a, sp[-1]));
            else REPLACE(1, format_part(w, sp[-1], i->a, w->empty_str));
            break;
        case CODE_CONCAT: REPLACE(i->b, concat_parts(w, sp - i->b, i->b)); break;
        case CODE_GENERATOR:
            v = generator(m, i);
            PUSH(v);
            break;
        case CODE_YIELD:
            *resume = pc;
            assert(sp == base + 1);
            return sp[-1];
        case CODE_END: *resume = UINT32_MAX; return ev_unbound();
        case CODE_RETURN: return sp[-1];
        default: assert(false);
        }
    }
failed:
    return ev_fail();
}

static ev run_nested(machine *m, uint32_t pc, uint32_t *resume) {
    ev *sp = m->sp;
    m->nested++;
    ev v = run(m, pc, resume);
    m->nested--;
    m->sp = sp;
    return v;
}

static ev resume_generator(world *w, iter *it) {
    uint32_t next = 0;
    machine *m = w->machine;
    if (!m->c || it->end != (int64_t)m->evaluation || m->locals[it->a.i].i != it->b.i)
        return raise_f(w, CLASS_Unsupported, "a generator that is kept for later");
    ev v = run_nested(m, (uint32_t)it->at, &next);
    if (next == UINT32_MAX) it->done = true;
    it->at = next;
    return v;
}

static ev invoke(world *w, ev f, const ev *args, uint32_t count) {
    machine *m = w->machine;
    call c = { .args = args, .count = count };
    uint32_t unused;
    if (f.kind == EV_TYPE) return call_class(w, (uint32_t)f.i, &c);
    if (f.kind != EV_FUNC)
        return raise_f(w, CLASS_TypeError, "'%s' object is not callable", type_name(w, f));
    uint32_t index = call_index_of(f);
    if (!m->c || call_serial_of(f) != m->c->serial)
        return raise_f(w, CLASS_Unsupported, "a function that is kept for later");
    if (call_target_of(f) == TARGET_BUILTIN) return call_builtin(w, index, &c);
    if (call_target_of(f) == TARGET_METHOD)
        return call_method(w, m->c->constants.items[index].tuple->items[0],
                           m->c->constants.items[index].tuple->items[1], &c);
    const lambda *l = &m->c->lambdas.items[index];
    if (count != l->params)
        return raise_f(w, CLASS_TypeError,
                       "<lambda>() takes %u positional argument%s but %u %s given", l->params,
                       l->params == 1 ? "" : "s", count, count == 1 ? "was" : "were");
    for (uint32_t i = 0; i < count; i++) m->locals[l->first + i] = args[i];
    return run_nested(m, l->start, &unused);
}

/* ---- Evaluating -------------------------------------------------------------------------- */

hd_status machine_open(world *w, machine **out) {
    machine *m = env_new0(&w->env, sizeof *m);
    *out = m;
    if (!m) return HD_NOMEM;
    assert(!w->machine);
    m->w = w;
    w->machine = m;
    w->resume = resume_generator;
    w->invoke = invoke;
    return HD_OK;
}

void machine_close(machine *m) {
    if (!m) return;
    world *w = m->w;
    w->machine = NULL;
    env_free(&w->env, m->stack, m->size * sizeof *m->stack);
    env_free(&w->env, m, sizeof *m);
}

static bool machine_room(machine *m, uint32_t need) {
    if (need <= m->size) return true;
    uint32_t size = need + need / 2 + 64;
    ev *stack = env_resize(&m->w->env, m->stack, m->size * sizeof *stack, size * sizeof *stack);
    if (!stack) return false;
    m->stack = stack;
    m->size = size;
    return true;
}

/* An iterator ends with its evaluation: it cannot be stored, and the code that it runs belongs to the evaluation.
 * Raises Unsupported if one of this evaluation would be left, in a list for example; `before`: how many iterators there
 * were before the evaluation. An iterator that is the value itself is left to the caller. */
static ev end_iterators(world *w, uint32_t before, ev v) {
    if (w->iterators <= before || w->status || w->failure || v.kind == EV_ITER) return v;
    world_ref(v);
    world_sweep(w);
    world_unref(w, v);
    return w->iterators <= before ? v : raise_iterator(w);
}

static outcome finish(machine *m, ev v, ev *out) {
    world *w = m->w;
    if (w->status) {
        raise_catch(w);
        return OUTCOME_STOPPED;
    }
    if (!ev_failed(v) && !w->failure) return *out = v, OUTCOME_VALUE;
    raise_failure(w);
    if (w->status) return OUTCOME_STOPPED;
    assert(w->pending.kind == EV_EXC);
    *out = raise_catch(w);
    return OUTCOME_RAISED;
}

outcome machine_eval(machine *m, code *c, frame *f, ev *out) {
    world *w = m->w;
    uint32_t unused, iterators;
    assert(c->w == w && f->w == w && !m->c);
    *out = ev_unbound();
    world_sweep(w);
    iterators = w->iterators;
    world_begin(w);
    w->status = HD_OK;
    w->failure = FAILURE_NONE;
    w->depth = 0;
    w->steps = w->limits.steps;
    if (!machine_room(m, c->locals + c->pushes + 1) || frame_fit(f))
        return w->status = HD_NOMEM, OUTCOME_STOPPED;
    m->evaluation++;
    m->c = c;
    m->f = f;
    m->locals = m->stack;
    m->sp = m->stack + c->locals;
    m->nested = 0;
    for (uint32_t i = 0; i < c->locals; i++) m->locals[i] = ev_unbound();
    ev v = run(m, 0, &unused);
    m->c = NULL;
    return finish(m, end_iterators(w, iterators, v), out);
}

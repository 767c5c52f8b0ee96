/* call.c -- see call.h. */
#include "expr/call.h"

#include "expr/text.h"

static const char *plural(uint32_t n) { return n == 1 ? "" : "s"; }

/* "str.upper" or "len". */
static const char *full_name(const function *f, const char *owner, char out[64]) {
    size_t n = 0;
    if (owner) {
        n = strlen(owner);
        memcpy(out, owner, n);
        out[n++] = '.';
    }
    strcpy(out + n, f->name);
    return out;
}

static bool no_names(world *w, const function *f, const char *owner, const call *c) {
    char name[64];
    if (!c->named) return true;
    raise_f(w, CLASS_TypeError, "%s() takes no keyword arguments", full_name(f, owner, name));
    return false;
}

static bool check_fixed(world *w, const function *f, const char *owner, const call *c) {
    char name[64];
    if (!no_names(w, f, owner, c)) return false;
    if (c->count == (f->style == CALL_ONE)) return true;
    raise_f(w, CLASS_TypeError, "%s() takes %s (%u given)", full_name(f, owner, name),
            f->style == CALL_ONE ? "exactly one argument" : "no arguments", c->count);
    return false;
}

static bool check_places(world *w, const function *f, const char *owner, const call *c) {
    if (!no_names(w, f, owner, c)) return false;
    if (c->count >= f->least && c->count <= f->most) return true;
    uint32_t bound = c->count < f->least ? f->least : f->most;
    const char *which = f->least == f->most ? "" : c->count < f->least ? "at least " : "at most ";
    if (f->style == CALL_TUPLE) {
        raise_f(w, CLASS_TypeError, "%s() takes %s%u argument%s (%u given)", f->name, which, bound,
                plural(bound), c->count);
        return false;
    }
    raise_f(w, CLASS_TypeError, "%s expected %s%u argument%s, got %u", f->name, which, bound,
            plural(bound), c->count);
    return false;
}

/* ---- Keywords ---------------------------------------------------------------------------- */

static bool refuse_keyword(world *w, const function *f, const text *name) {
    char shown[160];
    raise_f(w, CLASS_TypeError, "'%s' is an invalid keyword argument for %s()",
            text_short(name, shown, sizeof shown), f->name);
    return false;
}

static bool take_keyword(world *w, const function *f, const call *c, uint32_t i, ev *a) {
    const text *name = c->names[i].text;
    for (uint32_t k = f->positional; k < f->most; k++) {
        if (!text_is(name, f->keywords[k])) continue;
        if (k < c->count) {
            raise_f(w, CLASS_TypeError, "argument for %s() given by name ('%s') and position (%u)",
                    f->name, f->keywords[k], k + 1);
            return false;
        }
        a[k] = c->args[c->count + i];
        return true;
    }
    return refuse_keyword(w, f, name);
}

/* CPython's _PyArg_UnpackKeywords, its complaints in its order. */
static bool bind_keywords(world *w, const function *f, const call *c, ev *a) {
    if (c->count + c->named > f->most) {
        raise_f(w, CLASS_TypeError, "%s() takes %s %u %sargument%s (%u given)", f->name,
                f->least < f->most ? "at most" : "exactly", f->most,
                c->count == 0 ? "keyword " : "", plural(f->most), c->count + c->named);
        return false;
    }
    if (c->count < f->least && c->count < f->positional) {
        raise_f(w, CLASS_TypeError, "%s() takes %s %u positional argument%s (%u given)", f->name,
                f->positional < f->most ? "at least" : "exactly",
                f->least < f->positional ? f->least : f->positional,
                plural(f->least < f->positional ? f->least : f->positional), c->count);
        return false;
    }
    for (uint32_t i = 0; i < c->count; i++) a[i] = c->args[i];
    /* A missing argument is found before an unknown name. */
    uint32_t matched = 0;
    for (uint32_t k = f->positional; k < f->most; k++) {
        bool given = k < c->count;
        for (uint32_t i = 0; i < c->named && !given; i++)
            if (text_is(c->names[i].text, f->keywords[k])) given = true, matched++;
        if (given || k >= f->least) continue;
        raise_f(w, CLASS_TypeError, "%s() missing required argument '%s' (pos %u)", f->name,
                f->keywords[k], k + 1);
        return false;
    }
    for (uint32_t i = 0; i < c->named; i++)
        if (!take_keyword(w, f, c, i, a)) return false;
    return true;
}

ev call_function(world *w, const function *f, const char *owner, ev self, const call *c) {
    ev a[CALL_MAX] = { ev_unbound(), ev_unbound(), ev_unbound(), ev_unbound() };
    bool good = true;
    if (f->style == CALL_RAW) return f->fn(w, self, c->args, c);
    if (f->style == CALL_KEYWORDS) good = bind_keywords(w, f, c, a);
    else {
        good = f->style == CALL_PLACES || f->style == CALL_TUPLE ? check_places(w, f, owner, c)
                                                                 : check_fixed(w, f, owner, c);
        for (uint32_t i = 0; good && i < c->count; i++) a[i] = c->args[i];
    }
    for (uint32_t i = 0; good && i < CALL_MAX; i++) good = world_need(w, a[i]);
    return good ? f->fn(w, self, a, c) : ev_fail();
}

const function *function_find(const function *table, const char *name, size_t length) {
    for (const function *f = table; f->name; f++)
        if (strlen(f->name) == length && memcmp(f->name, name, length) == 0) return f;
    return NULL;
}

/* ---- Arguments --------------------------------------------------------------------------- */

ev call_named(const call *c, const char *name) {
    for (uint32_t i = 0; i < c->named; i++)
        if (text_is(c->names[i].text, name)) return c->args[c->count + i];
    return ev_unbound();
}

bool call_only_names(world *w, const call *c, const char *function_, const char *a, const char *b) {
    for (uint32_t i = 0; i < c->named; i++) {
        const text *t = c->names[i].text;
        if ((a && text_is(t, a)) || (b && text_is(t, b))) continue;
        return refuse_keyword(w, &(function){ .name = function_ }, t);
    }
    return true;
}

bool arg_int(world *w, ev v, int64_t *out) {
    if (ev_is_int(ev_bare(v))) return *out = ev_bare(v).i, true;
    raise_f(w, CLASS_TypeError, "'%s' object cannot be interpreted as an integer", type_name(w, v));
    return false;
}

bool arg_c_int(world *w, ev v, int64_t *out) {
    if (!arg_int(w, v, out)) return false;
    if (*out >= INT32_MIN && *out <= INT32_MAX) return true;
    raise_f(w, CLASS_OverflowError, "Python int too large to convert to C int");
    return false;
}

bool arg_size(world *w, ev v, int64_t otherwise, int64_t *out) {
    if (!arg_given(v)) return *out = otherwise, true;
    return arg_int(w, v, out);
}

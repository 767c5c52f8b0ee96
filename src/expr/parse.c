/* parse.c -- Python's grammar of expressions and simple statements: see parse.h.
 *
 * One function for each level of precedence that has something of its own; binary operators share a table.
 * Every function returns the form of what it has read.
 *
 * A name stands for a variable unless Python has a built-in function or class of that name: those are not
 * variables here. What is called is a built-in function, a method, or else a class. */
#include "expr/parse.h"

#include "expr/parser.h"

#include "base/env.h"
#include "expr/builtins.h"
#include "expr/class.h"
#include "value/text.h"

#include <stdio.h>

static hd_value test(parser *p);  /* an expression without commas */
static hd_value named(parser *p); /* the same, or x := e */
static hd_value arithmetic(parser *p, uint32_t level);
static hd_value stars(parser *p); /* an expression with commas: a tuple */

static const hd_value NONE = { 0 };

/* ---- Forms ------------------------------------------------------------------------------- */

hd_value form_add(parser *p, hd_value form, hd_value item) {
    hd_status status = hd_value_status(item);
    if (p->status) return hd_failed(p->status);
    if (!status) form = hd_array_append(p->pool, form, item);
    if (!status) status = hd_value_status(form);
    if (!status) return form;
    return parser_fail(p, p->now.at, status, "%s", hd_status_text(status));
}

hd_value form_of(parser *p, const char *name, hd_value a, hd_value b, hd_value c) {
    hd_value form = form_add(p, hd_array(), hd_string(p->pool, name));
    const hd_value items[] = { a, b, c };
    for (int i = 0; i < 3; i++)
        if (hd_value_exists(items[i])) form = form_add(p, form, items[i]);
        else if (hd_value_status(items[i]) == HD_NOMEM) form = form_add(p, form, items[i]);
    return form;
}

static const char *operation(hd_value form) {
    return hd_value_as_text(hd_value_index(form, 0), "");
}
static bool is_form(hd_value form, const char *name) {
    return hd_value_kind(form) == HD_KIND_ARRAY && !strcmp(operation(form), name);
}

/* ["*", e] among elements; ["*", a, b] is a product. */
static bool is_star(hd_value form, const char *star) {
    return is_form(form, star) && hd_value_count(form) == 2;
}

/* Recursion has an end, whatever the text is. */
static bool enter(parser *p) {
    if (++p->depth <= PARSE_DEPTH_MAX) return true;
    parser_fail(p, p->now.at, HD_LIMIT, "nested more than %d deep", PARSE_DEPTH_MAX);
    return false;
}
static hd_value leave(parser *p, hd_value v) {
    p->depth--;
    return p->status ? hd_failed(p->status) : v;
}

static hd_value token_text(parser *p, const token *t) {
    return hd_string_n(p->pool, t->at, t->length);
}

static bool take_name(parser *p, token *out, const char *what) {
    *out = p->now;
    if (p->now.kind == TOKEN_NAME && !token_is_keyword(&p->now)) return parser_advance(p), true;
    parser_fail(p, p->now.at, HD_SYNTAX, "expected %s, not %s", what, parser_show(p).text);
    return false;
}

/* ---- Names ------------------------------------------------------------------------------- */

static bool is_class(const token *t) {
    static const char *const names[] = { "object",
                                         "int",
                                         "bool",
                                         "float",
                                         "str",
                                         "bytes",
                                         "tuple",
                                         "list",
                                         "dict",
                                         "set",
                                         "frozenset",
                                         "range",
                                         "type",
                                         "enumerate",
                                         "zip",
                                         "map",
                                         "filter",
                                         "reversed",
#define CLASS_ROW(name, base) #name,
                                         CLASS_EXCEPTIONS(CLASS_ROW)
#undef CLASS_ROW
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (t->length == strlen(names[i]) && !memcmp(t->at, names[i], t->length)) return true;
    return false;
}

static hd_value name_of(parser *p, const token *t) {
    const char *kind = is_class(t)                                 ? "type"
                       : function_find(builtins, t->at, t->length) ? "func"
                                                                   : "name";
    return form_of(p, kind, token_text(p, t), NONE, NONE);
}

/* ---- Comprehensions ---------------------------------------------------------------------- */

static hd_value as_target(parser *p, const char *where, hd_value e);

static hd_value star_or(parser *p, hd_value (*otherwise)(parser *));
static hd_value bits(parser *p) { return arithmetic(p, 1); }

/* One, or several with commas; what follows must be "in". */
static hd_value loop_target(parser *p) {
    const char *where = p->now.at;
    hd_value first = star_or(p, bits), all = NONE;
    while (!p->status && parser_take(p, ",")) {
        if (!hd_value_exists(all)) all = form_of(p, "tuple", first, NONE, NONE);
        if (parser_is(p, "in")) break;
        all = form_add(p, all, star_or(p, bits));
    }
    return as_target(p, where, hd_value_exists(all) ? all : first);
}

static hd_value disjunction(parser *p);

/* [name, element, ...] with the clauses that follow. */
static hd_value clauses(parser *p, hd_value form) {
    while (!p->status && parser_take(p, "for")) {
        hd_value target = loop_target(p);
        parser_expect(p, "in");
        hd_value clause = form_of(p, "for", target, disjunction(p), NONE);
        while (!p->status && parser_take(p, "if")) clause = form_add(p, clause, disjunction(p));
        form = form_add(p, form, clause);
    }
    return form;
}

/* ---- Displays ---------------------------------------------------------------------------- */

static hd_value star_or(parser *p, hd_value (*otherwise)(parser *)) {
    if (!parser_take(p, "*")) return otherwise(p);
    return form_of(p, "*", bits(p), NONE, NONE);
}

/* Whether a comprehension follows `first`. Where that is not allowed the parser fails. */
static bool check_comprehension(parser *p, hd_value first) {
    if (parser_is(p, "async"))
        parser_fail(p, p->now.at, HD_SYNTAX, "'async' cannot stand in an expression");
    bool starred = is_star(first, "*") || is_star(first, "**");
    if (!parser_is(p, "for")) return false;
    if (starred) parser_fail(p, p->now.at, HD_SYNTAX, "a comprehension has no '*'");
    return true;
}

/* The rest of a list, tuple or set whose first element has been read. */
static hd_value elements(parser *p, const char *name, hd_value first, const char *close) {
    hd_value form = form_of(p, name, first, NONE, NONE);
    while (!p->status && parser_take(p, ",") && !parser_is(p, close))
        form = form_add(p, form, star_or(p, named));
    parser_expect(p, close);
    return form;
}

static hd_value list_display(parser *p) {
    if (parser_take(p, "]")) return form_of(p, "list", NONE, NONE, NONE);
    hd_value first = star_or(p, named);
    if (!check_comprehension(p, first)) return elements(p, "list", first, "]");
    hd_value form = clauses(p, form_of(p, "listcomp", first, NONE, NONE));
    parser_expect(p, "]");
    return form;
}

static hd_value parentheses(parser *p) {
    if (parser_take(p, ")")) return form_of(p, "tuple", NONE, NONE, NONE);
    const char *where = p->now.at;
    hd_value first = star_or(p, named);
    if (check_comprehension(p, first)) first = clauses(p, form_of(p, "gen", first, NONE, NONE));
    else if (parser_is(p, ",")) return elements(p, "tuple", first, ")");
    else if (is_star(first, "*"))
        parser_fail(p, where, HD_SYNTAX, "'*' stands in a list of elements only");
    parser_expect(p, ")");
    return first;
}

/* A pair, or **e, is added to the form. */
static hd_value dict_pair(parser *p, hd_value form) {
    if (parser_take(p, "**"))
        return form_add(p, form, form_of(p, "**", arithmetic(p, 1), NONE, NONE));
    form = form_add(p, form, test(p));
    parser_expect(p, ":");
    return form_add(p, form, test(p));
}

static hd_value dict_rest(parser *p, hd_value form) {
    while (!p->status && parser_take(p, ",") && !parser_is(p, "}")) form = dict_pair(p, form);
    parser_expect(p, "}");
    return form;
}

static hd_value braces(parser *p) {
    if (parser_take(p, "}")) return form_of(p, "dict", NONE, NONE, NONE);
    hd_value empty = form_of(p, "dict", NONE, NONE, NONE);
    if (parser_is(p, "**")) return dict_rest(p, dict_pair(p, empty));
    hd_value first = star_or(p, named);
    if (!is_star(first, "*") && parser_take(p, ":")) {
        hd_value value = test(p);
        if (!check_comprehension(p, NONE))
            return dict_rest(p, form_of(p, "dict", first, value, NONE));
        hd_value form = clauses(p, form_of(p, "dictcomp", first, value, NONE));
        parser_expect(p, "}");
        return form;
    }
    if (!check_comprehension(p, first)) return elements(p, "set", first, "}");
    hd_value form = clauses(p, form_of(p, "setcomp", first, NONE, NONE));
    parser_expect(p, "}");
    return form;
}

/* ---- Calls ------------------------------------------------------------------------------- */

typedef struct arguments {
    hd_value args, names;
} arguments;

static bool is_keyword_argument(const parser *p) {
    const char *c = p->at;
    if (p->now.kind != TOKEN_NAME || token_is_keyword(&p->now)) return false;
    while (c < p->stop && strchr(" \t\r\n\f", *c) && *c) c++;
    return c < p->stop && *c == '=' && (c + 1 == p->stop || c[1] != '=');
}

static void named_argument(parser *p, arguments *a) {
    token name = p->now;
    parser_advance(p);
    parser_expect(p, "=");
    hd_value pair = form_add(p, hd_array(), token_text(p, &name));
    a->names = form_add(p, a->names, form_add(p, pair, test(p)));
}

static void one_argument(parser *p, arguments *a, bool first) {
    const char *where = p->now.at;
    if (parser_take(p, "**")) {
        a->names = form_add(p, a->names, form_of(p, "**", test(p), NONE, NONE));
    } else if (is_keyword_argument(p)) {
        named_argument(p, a);
    } else {
        hd_value arg = parser_take(p, "*") ? form_of(p, "*", test(p), NONE, NONE) : named(p);
        if (check_comprehension(p, arg)) {
            arg = clauses(p, form_of(p, "gen", arg, NONE, NONE));
            if (!first || !parser_is(p, ")"))
                parser_fail(p, where, HD_SYNTAX,
                            "a generator beside other arguments needs parentheses");
        }
        /* Behind **e nothing by place may follow; behind name=e only *e. */
        bool late = hd_value_count(a->names) && !is_star(arg, "*");
        for (size_t i = 0; i < hd_value_count(a->names); i++)
            late = late || is_star(hd_value_index(a->names, i), "**");
        if (late) parser_fail(p, where, HD_SYNTAX, "an argument by place behind one by name");
        a->args = form_add(p, a->args, arg);
    }
}

static arguments call_arguments(parser *p) {
    arguments a = { hd_array(), hd_array() };
    for (bool first = true; !p->status && !parser_is(p, ")"); first = false) {
        one_argument(p, &a, first);
        if (!parser_take(p, ",")) break;
    }
    parser_expect(p, ")");
    if (!hd_value_count(a.names)) a.names = NONE;
    return a;
}

/* heddle.now(), heddle.random(), heddle.uuid(): absent, if the callee is none of these. */
static hd_value own_function(parser *p, hd_value callee) {
    hd_value of = hd_value_index(callee, 1);
    if (!is_form(callee, "attr") || !is_form(of, "name")) return NONE;
    if (strcmp(hd_value_as_text(hd_value_index(of, 1), ""), "heddle") != 0) return NONE;
    const char *attribute = hd_value_as_text(hd_value_index(callee, 2), "");
    hd_value name = hd_string_f(p->pool, "heddle.%s", attribute);
    size_t length;
    const char *chars = hd_value_text(name, &length);
    return chars && function_find(builtins, chars, length) ? name : NONE;
}

static hd_value call_of(parser *p, const char *where, hd_value callee) {
    arguments a = call_arguments(p);
    hd_value form, own = own_function(p, callee);
    if (hd_value_exists(own)) {
        form = form_of(p, "call", own, a.args, NONE);
    } else if (is_form(callee, "attr")) {
        form = form_of(p, "method", hd_value_index(callee, 1), hd_value_index(callee, 2), a.args);
    } else if (is_form(callee, "name") || is_form(callee, "type") || is_form(callee, "func")) {
        hd_value name = hd_value_index(callee, 1);
        size_t length;
        const char *chars = hd_value_text(name, &length);
        form =
            form_of(p, function_find(builtins, chars, length) ? "call" : "new", name, a.args, NONE);
    } else {
        return parser_fail(p, where, HD_SYNTAX, "only functions, methods and classes are called");
    }
    return hd_value_exists(a.names) ? form_add(p, form, a.names) : form;
}

/* ---- Primaries --------------------------------------------------------------------------- */

static hd_value bound(parser *p) {
    return parser_is(p, ":") || parser_is(p, "]") ? hd_null() : test(p);
}

static hd_value subscript(parser *p, hd_value of) {
    const char *where = p->now.at;
    hd_value from = parser_is(p, ":")     ? hd_null()
                    : parser_take(p, "*") ? form_of(p, "*", test(p), NONE, NONE)
                                          : named(p);
    if (!is_star(from, "*") && parser_take(p, ":")) {
        hd_value to = bound(p), step = parser_take(p, ":") ? bound(p) : hd_null();
        if (parser_is(p, ","))
            return parser_fail(p, where, HD_SYNTAX, "a slice stands alone in its brackets");
        parser_expect(p, "]");
        return form_add(p, form_of(p, "slice", of, from, to), step);
    }
    if (parser_is(p, ",")) from = elements(p, "tuple", from, "]");
    else if (is_star(from, "*")) {
        from = form_of(p, "tuple", from, NONE, NONE);
        parser_expect(p, "]");
    } else {
        parser_expect(p, "]");
    }
    return form_of(p, "item", of, from, NONE);
}

static hd_value atom(parser *p) {
    token t = p->now;
    if (t.kind == TOKEN_NUMBER) return parse_number(p);
    if (t.kind == TOKEN_STRING) return parse_strings(p);
    if (parser_take(p, "(")) return parentheses(p);
    if (parser_take(p, "[")) return list_display(p);
    if (parser_take(p, "{")) return braces(p);
    if (parser_take(p, "None")) return hd_null();
    if (parser_take(p, "True")) return hd_bool(true);
    if (parser_take(p, "False")) return hd_bool(false);
    if (parser_is(p, "await") || parser_is(p, "yield"))
        return parser_fail(p, t.at, HD_SYNTAX,
                           "'%.5s' cannot stand in an expression: what waits is a node", t.at);
    return take_name(p, &t, "an expression") ? name_of(p, &t) : hd_failed(p->status);
}

/* `int.real` is a method of a class as a function; called, it is a method. */
static hd_value attribute(parser *p, hd_value of) {
    token name;
    if (!take_name(p, &name, "the name of an attribute")) return hd_failed(p->status);
    return form_of(p, "attr", of, token_text(p, &name), NONE);
}

/* str.lower, not called: the function of that name. */
static hd_value class_function(parser *p, hd_value e) {
    char name[200];
    hd_value of = hd_value_index(e, 1);
    if (!is_form(e, "attr") || !is_form(of, "type")) return e;
    int n = snprintf(name, sizeof name, "%s.%s", hd_value_as_text(hd_value_index(of, 1), ""),
                     hd_value_as_text(hd_value_index(e, 2), ""));
    if (n < 0 || (size_t)n >= sizeof name)
        return parser_fail(p, p->now.at, HD_LIMIT, "too long a name");
    return form_of(p, "func", hd_string(p->pool, name), NONE, NONE);
}

static hd_value primary(parser *p) {
    const char *where = p->now.at;
    hd_value e = atom(p);
    for (uint32_t links = 0; !p->status; links++) {
        if (links > PARSE_DEPTH_MAX)
            return parser_fail(p, p->now.at, HD_LIMIT, "nested more than %d deep", PARSE_DEPTH_MAX);
        if (parser_take(p, "(")) e = call_of(p, where, e);
        else if (parser_take(p, "[")) e = subscript(p, class_function(p, e));
        else if (parser_take(p, ".")) e = attribute(p, class_function(p, e));
        else break;
    }
    return p->status ? hd_failed(p->status) : class_function(p, e);
}

/* ---- Operators --------------------------------------------------------------------------- */

static hd_value unary(parser *p);

static hd_value power(parser *p) {
    hd_value base = primary(p);
    if (!parser_take(p, "**")) return base;
    return form_of(p, "**", base, unary(p), NONE);
}

/* The one integer whose positive twin does not fit. */
static bool take_least_int(parser *p) {
    char digits[NUMBER_MAX];
    token t = p->now;
    if (t.kind != TOKEN_NUMBER || !number_digits(&t, digits) ||
        strcmp(digits, "9223372036854775808") != 0)
        return false;
    parser before = *p;
    parser_advance(p);
    if (!parser_is(p, "**") && !parser_is(p, ".") && !parser_is(p, "[")) return true;
    *p = before;
    p->now = t;
    return false;
}

static hd_value unary(parser *p) {
    static const char *const operators[][2] = { { "-", "neg" }, { "+", "pos" }, { "~", "inv" } };
    if (!enter(p)) return leave(p, NONE);
    for (int i = 0; i < 3; i++) {
        if (!parser_take(p, operators[i][0])) continue;
        if (!i && take_least_int(p)) return leave(p, hd_int(p->pool, INT64_MIN));
        hd_value operand = unary(p);
        return leave(p, form_of(p, operators[i][1], operand, NONE, NONE));
    }
    return leave(p, power(p));
}

/* Binary operators by level, the weakest first: level 1 is `|`. */
static const char *const levels[][5] = {
    { NULL },
    { "|", NULL },
    { "^", NULL },
    { "&", NULL },
    { "<<", ">>", NULL },
    { "+", "-", NULL },
    { "*", "/", "//", "%", NULL },
};
enum { LEVELS = sizeof levels / sizeof *levels };

static hd_value arithmetic(parser *p, uint32_t level) {
    if (level == LEVELS) return unary(p);
    hd_value left = arithmetic(p, level + 1);
    for (uint32_t links = 0; !p->status; links++) {
        const char *op = NULL;
        for (int i = 0; levels[level][i] && !op; i++)
            if (parser_is(p, levels[level][i])) op = levels[level][i];
        if (!op) return left;
        /* a + b + c is nested to the left, and its form as deep as it is long. */
        if (links + p->depth > PARSE_DEPTH_MAX)
            return parser_fail(p, p->now.at, HD_LIMIT, "nested more than %d deep", PARSE_DEPTH_MAX);
        parser_advance(p);
        left = form_of(p, op, left, arithmetic(p, level + 1), NONE);
    }
    return hd_failed(p->status);
}

/* NULL: the token is no comparison. Takes both words of "not in" and "is not". */
static const char *take_comparison(parser *p) {
    static const char *const operators[] = { "==", "!=", "<=", ">=", "<", ">", "in" };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (parser_take(p, operators[i])) return operators[i];
    if (parser_take(p, "is")) return parser_take(p, "not") ? "is not" : "is";
    if (!parser_take(p, "not")) return NULL;
    parser_expect(p, "in");
    return "not in";
}

static hd_value comparison(parser *p) {
    hd_value first = arithmetic(p, 1);
    const char *op = p->status ? NULL : take_comparison(p);
    if (!op) return first;
    hd_value form = form_of(p, "cmp", first, NONE, NONE);
    for (; op && !p->status; op = take_comparison(p)) {
        form = form_add(p, form, hd_string(p->pool, op));
        form = form_add(p, form, arithmetic(p, 1));
    }
    return p->status ? hd_failed(p->status) : form;
}

static hd_value inversion(parser *p) {
    if (!parser_is(p, "not")) return comparison(p);
    if (!enter(p)) return leave(p, NONE);
    parser_advance(p);
    return leave(p, form_of(p, "not", inversion(p), NONE, NONE));
}

static hd_value chain(parser *p, const char *word, hd_value (*operand)(parser *)) {
    hd_value first = operand(p);
    if (!parser_is(p, word)) return first;
    hd_value form = form_of(p, word, first, NONE, NONE);
    while (!p->status && parser_take(p, word)) form = form_add(p, form, operand(p));
    return form;
}

static hd_value conjunction(parser *p) { return chain(p, "and", inversion); }
static hd_value disjunction(parser *p) { return chain(p, "or", conjunction); }

/* ---- Expressions ------------------------------------------------------------------------- */

static hd_value lambda(parser *p) {
    hd_value names = hd_array();
    token name;
    while (!p->status && !parser_is(p, ":")) {
        if (parser_is(p, "*") || parser_is(p, "**") || parser_is(p, "/"))
            return parser_fail(p, p->now.at, HD_SYNTAX, "a lambda has plain parameters only");
        if (!take_name(p, &name, "the name of a parameter")) break;
        if (parser_is(p, "="))
            return parser_fail(p, p->now.at, HD_SYNTAX, "a parameter of a lambda has no default");
        names = form_add(p, names, token_text(p, &name));
        if (!parser_take(p, ",")) break;
    }
    parser_expect(p, ":");
    return form_of(p, "lambda", names, test(p), NONE);
}

static hd_value test(parser *p) {
    if (!enter(p)) return leave(p, NONE);
    if (parser_take(p, "lambda")) return leave(p, lambda(p));
    hd_value e = disjunction(p);
    if (!parser_take(p, "if")) return leave(p, e);
    hd_value condition = disjunction(p);
    parser_expect(p, "else");
    return leave(p, form_of(p, "if", condition, e, test(p)));
}

static hd_value named(parser *p) {
    const char *where = p->now.at;
    hd_value e = test(p);
    if (!parser_is(p, ":=")) return e;
    if (!is_form(e, "name") || *where == '(')
        return parser_fail(p, where, HD_SYNTAX, "':=' assigns to a plain name");
    parser_advance(p);
    return form_of(p, ":=", hd_value_index(e, 1), test(p), NONE);
}

static bool ends_expression(const parser *p) {
    return p->now.kind == TOKEN_END || p->now.kind == TOKEN_NEWLINE || parser_is(p, "=") ||
           parser_is(p, ")") || parser_is(p, "}");
}

static hd_value listed(parser *p, hd_value (*one)(parser *)) {
    const char *where = p->now.at;
    hd_value first = one(p);
    if (!parser_is(p, ",")) {
        if (is_star(first, "*"))
            parser_fail(p, where, HD_SYNTAX, "'*' stands in a list of elements only");
        return first;
    }
    hd_value all = form_of(p, "tuple", first, NONE, NONE);
    while (!p->status && parser_take(p, ",") && !ends_expression(p)) all = form_add(p, all, one(p));
    return all;
}

static hd_value star_or_test(parser *p) { return star_or(p, test); }
static hd_value stars(parser *p) { return listed(p, star_or_test); }

/* As CPython's eval takes it. */
static hd_value starless_test(parser *p) {
    if (!parser_is(p, "*")) return test(p);
    return parser_fail(p, p->now.at, HD_SYNTAX,
                       "'*' stands in a list of elements only, within brackets");
}

/* ---- Statements -------------------------------------------------------------------------- */

static hd_value tuple_target(parser *p, const char *where, hd_value e) {
    hd_value form = form_of(p, "tuple", NONE, NONE, NONE);
    uint32_t starred = 0;
    for (size_t i = 1; i < hd_value_count(e) && !p->status; i++) {
        hd_value item = hd_value_index(e, i);
        bool star = is_star(item, "*");
        starred += star;
        hd_value target = as_target(p, where, star ? hd_value_index(item, 1) : item);
        form = form_add(p, form, star ? form_of(p, "*", target, NONE, NONE) : target);
    }
    if (starred > 1) return parser_fail(p, where, HD_SYNTAX, "two targets with '*'");
    return form;
}

static hd_value as_target(parser *p, const char *where, hd_value e) {
    if (p->status) return hd_failed(p->status);
    if (is_form(e, "name") || is_form(e, "attr") || is_form(e, "item") || is_form(e, "slice"))
        return e;
    if (!enter(p)) return leave(p, NONE);
    if (is_form(e, "tuple") || is_form(e, "list")) return leave(p, tuple_target(p, where, e));
    p->depth--;
    if (is_form(e, "type") || is_form(e, "func"))
        return parser_fail(p, where, HD_SYNTAX, "'%s' is built in and cannot be assigned",
                           hd_value_as_text(hd_value_index(e, 1), ""));
    return parser_fail(p, where, HD_SYNTAX, "this cannot be assigned to");
}

/* As deep as brackets stand in brackets, which the parser bounds. */
static bool has_star(hd_value e) {
    if (is_star(e, "*")) return true;
    if (!is_form(e, "tuple") && !is_form(e, "list")) return false;
    for (size_t i = 1; i < hd_value_count(e); i++)
        if (has_star(hd_value_index(e, i))) return true;
    return false;
}

static hd_value deletion(parser *p) {
    const char *where = p->now.at;
    hd_value e = stars(p), form = form_of(p, "del", NONE, NONE, NONE);
    if (!p->status && has_star(e)) return parser_fail(p, where, HD_SYNTAX, "'*' cannot be deleted");
    if (!is_form(e, "tuple")) return form_add(p, form, as_target(p, where, e));
    for (size_t i = 1; i < hd_value_count(e); i++)
        form = form_add(p, form, as_target(p, where, hd_value_index(e, i)));
    return form;
}

/* NULL: the token is no augmented assignment. */
static const char *take_augmented(parser *p) {
    static const char *const operators[] = { "+", "-", "*", "/",  "//", "%",
                                             "&", "|", "^", "**", "<<", ">>" };
    char word[4];
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        snprintf(word, sizeof word, "%s=", operators[i]);
        if (parser_take(p, word)) return operators[i];
    }
    return NULL;
}

static hd_value augmented(parser *p, const char *where, hd_value e, const char *op) {
    hd_value target = as_target(p, where, e);
    if (is_form(target, "tuple"))
        return parser_fail(p, where, HD_SYNTAX, "'%s=' has one target", op);
    return form_of(p, "aug", hd_string(p->pool, op), target, stars(p));
}

static hd_value assignment(parser *p, const char *where, hd_value first) {
    hd_value targets = hd_array(), value = first;
    while (!p->status && parser_take(p, "=")) {
        targets = form_add(p, targets, as_target(p, where, value));
        where = p->now.at;
        value = stars(p);
    }
    hd_value form = form_of(p, "assign", value, NONE, NONE);
    for (size_t i = 0; i < hd_value_count(targets); i++)
        form = form_add(p, form, hd_value_index(targets, i));
    return form;
}

static hd_value statement(parser *p) {
    static const char *const others[] = { "if",       "while",   "for",   "try",    "with",
                                          "def",      "return",  "raise", "assert", "import",
                                          "class",    "global",  "async", "break",  "from",
                                          "continue", "nonlocal" };
    const char *where = p->now.at;
    if (parser_take(p, "del")) return deletion(p);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (parser_is(p, others[i]))
            return parser_fail(p, where, HD_SYNTAX, "'%s' is no expression and no assignment",
                               others[i]);
    hd_value e = stars(p);
    if (p->status) return e;
    if (parser_is(p, "=")) return assignment(p, where, e);
    const char *op = take_augmented(p);
    return op ? augmented(p, where, e, op) : form_of(p, "expr", e, NONE, NONE);
}

/* ---- The whole --------------------------------------------------------------------------- */

static parser parser_open(hd_pool *pool, const char *source, hd_error *error) {
    parser p = { .pool = pool, .begin = source, .at = source, .error = error };
    p.end = p.stop = source + strlen(source);
    size_t bad;
    if (utf8_valid(source, (size_t)(p.end - source), &bad)) parser_advance(&p);
    else parser_fail(&p, source + bad, HD_SYNTAX, "what stands here is not UTF-8");
    return p;
}

static hd_status parser_end(parser *p, hd_value v, hd_value *out) {
    while (p->now.kind == TOKEN_NEWLINE && !p->status && *p->now.at == '\n') parser_advance(p);
    if (!p->status && p->now.kind != TOKEN_END)
        parser_fail(p, p->now.at, HD_SYNTAX, "%s is not expected here", parser_show(p).text);
    *out = p->status ? NONE : v;
    return p->status;
}

hd_value parse_part(parser *p, const char *from, const char *to) {
    parser part = *p;
    part.at = from;
    part.stop = to;
    part.brackets = 1; /* newlines count for nothing here */
    part.depth = p->depth + 1;
    parser_advance(&part);
    hd_value e = NONE;
    if (!part.status && part.now.kind == TOKEN_END)
        parser_fail(&part, from, HD_SYNTAX, "empty braces in an f-string");
    if (enter(&part)) e = stars(&part);
    if (!part.status && part.now.kind != TOKEN_END)
        parser_fail(&part, part.now.at, HD_SYNTAX, "%s is not expected here",
                    parser_show(&part).text);
    if (!part.status) return e;
    p->status = part.status;
    p->at = p->stop;
    p->now = (token){ TOKEN_END, p->stop, 0 };
    return hd_failed(p->status);
}

hd_status parse_expression(hd_pool *pool, const char *source, hd_value *out, hd_error *error) {
    parser p = parser_open(pool, source, error);
    while (p.now.kind == TOKEN_NEWLINE && *p.now.at == '\n') parser_advance(&p);
    return parser_end(&p, listed(&p, starless_test), out);
}

hd_status parse_target(hd_pool *pool, const char *source, hd_value *out, hd_error *error) {
    parser p = parser_open(pool, source, error);
    const char *where = p.now.at;
    return parser_end(&p, as_target(&p, where, stars(&p)), out);
}

hd_status parse_statements(hd_pool *pool, const char *source, hd_value *out, hd_error *error) {
    parser p = parser_open(pool, source, error);
    hd_value all = hd_array();
    while (!p.status && p.now.kind != TOKEN_END) {
        if (p.now.kind == TOKEN_NEWLINE && *p.now.at == '\n') {
            parser_advance(&p);
            continue;
        }
        if (p.now.kind == TOKEN_NEWLINE) {
            parser_fail(&p, p.now.at, HD_SYNTAX, "';' stands behind a statement");
            break;
        }
        if (!parser_take(&p, "pass")) all = form_add(&p, all, statement(&p));
        if (!p.status && p.now.kind != TOKEN_END && p.now.kind != TOKEN_NEWLINE)
            parser_fail(&p, p.now.at, HD_SYNTAX, "%s is not expected here", parser_show(&p).text);
        if (!p.status && p.now.kind == TOKEN_NEWLINE) parser_advance(&p);
    }
    return parser_end(&p, all, out);
}

/* chart_when.c -- the condition of a GUARD edge, as a person would write it.
 *
 * The IR has conditions as forms (docs/EXPRESSIONS.md). They are written as Python here: an operand that is an
 * operation has brackets around it, and what conditions seldom have, such as a comprehension, is "...". If the first
 * condition of a BRANCH has a comment, a compiler has made steps of it, and the comment is what the source has. */
#include "workflow/chart.h"

#include <string.h>

#define DEPTH_MAX 8

/* A digit is the operand of that number, A to C are names (operands 1 to 3), a to c are lists of operands. */
static const struct {
    const char *op;
    size_t count;
    const char *pattern;
} when_forms[] = { { "name", 2, "A" },          { "type", 2, "A" },    { "attr", 3, "1.B" },
                   { "item", 3, "1[2]" },       { "call", 3, "A(b)" }, { "new", 3, "A(b)" },
                   { "method", 4, "1.B(c)" },   { "not", 2, "not 1" }, { "neg", 2, "-1" },
                   { "if", 4, "2 if 1 else 3" } };
enum {
    FORMS = sizeof when_forms / sizeof *when_forms,
    ATOMS = 7 /* the first of them need no brackets */
};

/* A list of operands of any length, with what stands around it. */
static const struct {
    const char *op, *before, *behind;
} when_lists[] = { { "list", "[", "]" }, { "tuple", "(", ")" }, { "set", "{", "}" } };
enum { LISTS = sizeof when_lists / sizeof *when_lists };

static void put_form(chart_text *t, hd_value v, int depth);

static const char *name_in(hd_value v, size_t i) {
    return hd_value_as_text(hd_value_index(v, i), "");
}

static size_t find_form(hd_value v) {
    size_t i = 0;
    while (i < FORMS &&
           (strcmp(when_forms[i].op, name_in(v, 0)) || when_forms[i].count != hd_value_count(v)))
        i++;
    return i;
}

/* The index in when_lists; LISTS: it is none of them. */
static size_t find_list(hd_value v) {
    size_t i = 0;
    while (i < LISTS && strcmp(when_lists[i].op, name_in(v, 0))) i++;
    return i;
}

static bool is_infix(hd_value v) {
    const char *op = name_in(v, 0);
    return !strcmp(op, "cmp") || !strcmp(op, "and") || !strcmp(op, "or") ||
           (hd_value_count(v) == 3 && *op && strchr("+-*/%<>&|^", *op));
}

static void put_operand(chart_text *t, hd_value v, int depth) {
    size_t form = find_form(v);
    bool brackets =
        hd_value_kind(v) == HD_KIND_ARRAY && (form == FORMS ? is_infix(v) : form >= ATOMS);
    chart_put(t, "%s", brackets ? "(" : "");
    put_form(t, v, depth + 1);
    chart_put(t, "%s", brackets ? ")" : "");
}

static void put_all(chart_text *t, hd_value all, size_t first, int depth) {
    for (size_t i = first; i < hd_value_count(all); i++) {
        chart_put(t, "%s", i > first ? ", " : "");
        put_form(t, hd_value_index(all, i), depth + 1);
    }
}

/* Without the module: "shop:Refused" is Refused. */
static void put_class(chart_text *t, const char *name) {
    const char *colon = strrchr(name, ':');
    chart_put(t, "%s", colon ? colon + 1 : name);
}

static void put_pattern(chart_text *t, const char *pattern, hd_value v, int depth) {
    for (const char *c = pattern; *c; c++) {
        hd_value all =
            *c >= 'a' && *c <= 'c' ? hd_value_index(v, (size_t)(*c - 'a' + 1)) : hd_null();
        if (*c >= '1' && *c <= '3') put_operand(t, hd_value_index(v, (size_t)(*c - '0')), depth);
        else if (*c >= 'A' && *c <= 'C') chart_put(t, "%s", name_in(v, (size_t)(*c - 'A' + 1)));
        else if (*c < 'a' || *c > 'c') chart_put(t, "%c", *c);
        put_all(t, all, 0, depth);
    }
}

static bool append(const char *chars, size_t length, void *ctx) {
    chart_put(ctx, "%.*s", (int)length, chars);
    return true;
}

/* Of constants that JSON has no form for: members of enums, and tuples. */
static void put_const(chart_text *t, hd_value v, int depth) {
    hd_value items = hd_value_at(v, "$tuple");
    if (hd_value_exists(hd_value_at(v, "$enum"))) {
        put_class(t, hd_value_as_text(hd_value_at(v, "$enum"), ""));
        chart_put(t, ".%s", hd_value_as_text(hd_value_at(v, "name"), ""));
    } else if (hd_value_exists(items)) {
        chart_put(t, "(");
        put_all(t, items, 0, depth);
        chart_put(t, ")");
    } else chart_put(t, "...");
}

static void put_infix(chart_text *t, hd_value v, int depth) {
    bool compares = !strcmp(name_in(v, 0), "cmp");
    for (size_t i = 1; i < hd_value_count(v); i += compares ? 2 : 1) {
        if (i > 1) chart_put(t, " %s ", compares ? name_in(v, i - 1) : name_in(v, 0));
        put_operand(t, hd_value_index(v, i), depth);
    }
}

static void put_list(chart_text *t, hd_value v, size_t which, int depth) {
    chart_put(t, "%s", when_lists[which].before);
    put_all(t, v, 1, depth);
    chart_put(t, "%s", when_lists[which].behind);
}

static void put_form(chart_text *t, hd_value v, int depth) {
    hd_kind kind = hd_value_kind(v);
    size_t form = find_form(v), which = find_list(v);
    if (kind == HD_KIND_NULL) chart_put(t, "None");
    else if (kind == HD_KIND_BOOL)
        chart_put(t, "%s", hd_value_as_bool(v, false) ? "True" : "False");
    else if (kind != HD_KIND_ARRAY) (void)hd_json_write(v, HD_JSON_COMPACT, append, t);
    else if (depth > DEPTH_MAX) chart_put(t, "...");
    else if (form < FORMS) put_pattern(t, when_forms[form].pattern, v, depth);
    else if (which < LISTS) put_list(t, v, which, depth);
    else if (is_infix(v)) put_infix(t, v, depth);
    else if (!strcmp(name_in(v, 0), "const")) put_const(t, hd_value_index(v, 1), depth);
    else chart_put(t, "...");
}

static void put_classes(chart_text *t, hd_value names) {
    if (!hd_value_count(names)) chart_put(t, "any exception");
    for (size_t i = 0; i < hd_value_count(names); i++) {
        chart_put(t, "%s", i ? ", " : "");
        put_class(t, name_in(names, i));
    }
}

void chart_put_when(chart_text *t, hd_value node, uint32_t index) {
    hd_value clauses = hd_value_at(node, "clauses"), when = hd_value_at(node, "when");
    hd_value comment = hd_value_at(node, "comment");
    if (hd_value_exists(clauses))
        put_classes(t, hd_value_at(hd_value_index(clauses, index), "classes"));
    else if (index == 0 && hd_value_kind(comment) == HD_KIND_STRING)
        chart_put(t, "%s", hd_value_as_text(comment, ""));
    else if (index < hd_value_count(when)) put_form(t, hd_value_index(when, index), 0);
    else chart_put(t, "else");
}

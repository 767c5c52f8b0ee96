/* builder.c -- the calls of heddle/workflow_build.h: each adds to the tree of flow.h.
 *
 * Text is parsed when it is given, so that a problem has the place of the call. After a problem the calls go on as
 * well as they can: further ones are worth hearing of. */
#define HD_FLOW_WITHOUT_PLACES
#include "workflow/flow.h"

#include "base/env.h"
#include "expr/parse.h"
#include "value/heap.h"
#include "value/pool.h"
#include "workflow/condition.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Memory and problems ------------------------------------------------------------------- */

static void *flow_new(hd_flow *f, size_t size) {
    void *block = arena_alloc(&f->memory, size);
    if (block) memset(block, 0, size);
    else f->nomem = true;
    return block;
}

static const char *flow_copy(hd_flow *f, const char *text) {
    if (!text) text = "";
    char *copy = arena_copy(&f->memory, text, strlen(text) + 1);
    if (!copy) f->nomem = true;
    return copy ? copy : "";
}

void flow_refuse(hd_flow *f, const char *at, const char *call, hd_status status, const char *format,
                 ...) {
    hd_error e = { .status = status };
    char what[200];
    va_list arguments;
    if (status == HD_NOMEM) {
        f->nomem = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(e.message, sizeof e.message, "%.60s%s%s: %.180s", at, *at ? ": " : "", call, what);
    if (!vec_push(f->env, &f->problems, e)) f->nomem = true;
}

static hd_value checked(hd_flow *f, hd_value v) {
    if (hd_value_status(v) == HD_NOMEM) f->nomem = true;
    return v;
}

static hd_value with(hd_flow *f, hd_value object, const char *key, hd_value v) {
    return hd_value_exists(v) ? checked(f, hd_object_set(f->pool, object, key, v)) : object;
}

/* A value that the caller has made. One that could not be made is a problem. */
static hd_value given(hd_flow *f, const char *call, const char *what, hd_value v) {
    if (!hd_value_status(v)) return v;
    flow_refuse(f, f->at, call, hd_value_status(v), "the %s could not be made", what);
    return (hd_value){ 0 };
}

/* ---- Text ---------------------------------------------------------------------------------- */

typedef hd_status parse_fn(hd_pool *pool, const char *text, hd_value *out, hd_error *error);

/* Columns are those of the text as it was given. */
static hd_value parse(hd_flow *f, const char *call, parse_fn *fn, const char *text,
                      uint32_t before) {
    hd_error error = { 0 };
    hd_value form = { 0 };
    hd_status status = fn(f->pool, text, &form, &error);
    if (!status) return form;
    uint32_t column =
        error.line == 1 && error.column > before ? error.column - before : error.column;
    flow_refuse(f, f->at, call, status, "line %u, column %u: %s", error.line, column,
                error.message);
    return hd_null();
}

static hd_value expression(hd_flow *f, const char *call, const char *text) {
    if (!text) return (hd_value){ 0 };
    return parse(f, call, parse_expression, text, 0);
}
static hd_value target(hd_flow *f, const char *call, const char *text) {
    if (!text) return (hd_value){ 0 };
    return parse(f, call, parse_target, text, 0);
}

/* Whether the text is there; else that is a problem. */
static bool is_given(hd_flow *f, const char *call, const char *what, const char *text) {
    if (!text) flow_refuse(f, f->at, call, HD_USAGE, "no %s is given", what);
    return text;
}

static hd_value needed(hd_flow *f, const char *call, const char *what, const char *text) {
    return is_given(f, call, what, text) ? expression(f, call, text) : hd_null();
}

/* A name, which is taken as it is. */
static hd_value word(hd_flow *f, const char *call, const char *what, const char *text) {
    if (!is_given(f, call, what, text)) return hd_null();
    hd_value v = checked(f, hd_string(f->pool, text));
    if (hd_value_status(v) == HD_SYNTAX)
        flow_refuse(f, f->at, call, HD_SYNTAX, "the %s is not UTF-8", what);
    return v;
}

/* The name of a variable: what an expression reads as one. */
static hd_value variable(hd_flow *f, const char *call, const char *what, const char *text) {
    hd_value name = word(f, call, what, text);
    if (!hd_value_exists(name)) return name;
    hd_value form = target(f, call, text);
    bool plain = !strcmp(hd_value_as_text(hd_value_index(form, 0), ""), "name") &&
                 hd_value_equal(hd_value_index(form, 1), name);
    if (!plain && hd_value_kind(form) == HD_KIND_ARRAY)
        flow_refuse(f, f->at, call, HD_SYNTAX, "the %s \"%.100s\" is no name", what, text);
    return name;
}

static bool is_among(hd_value names, hd_value name) {
    for (hd_iter it = hd_iter_of(names); hd_iter_next(&it);)
        if (hd_value_exists(name) && hd_value_equal(it.value, name)) return true;
    return false;
}

/* The names of [[name, value], ...] as an object. */
static hd_value by_name(hd_flow *f, const char *call, hd_value names) {
    hd_value all = hd_object();
    for (hd_iter it = hd_iter_of(names); hd_iter_next(&it);) {
        const char *name = hd_value_as_text(hd_value_index(it.value, 0), "");
        if (!strcmp(name, "**"))
            flow_refuse(f, f->at, call, HD_SYNTAX, "'**' cannot be given to an action");
        else if (hd_value_exists(hd_value_at(all, name)))
            flow_refuse(f, f->at, call, HD_SYNTAX, "the argument \"%s\" is given twice", name);
        all = with(f, all, name, hd_value_index(it.value, 1));
    }
    return all;
}

/* What stands between the parentheses of a call. */
static hd_value arguments_of(hd_flow *f, const char *call, const char *text) {
    char room[512], *whole = room;
    if (!text || !*text) return (hd_value){ 0 };
    size_t size = strlen(text) + 4;
    if (size > sizeof room) whole = flow_new(f, size);
    if (!whole) return (hd_value){ 0 };
    snprintf(whole, size, "_(%s)", text);
    hd_value form = parse(f, call, parse_expression, whole, 2);
    hd_value args = hd_value_index(form, 2), names = hd_value_index(form, 3);
    if (hd_value_kind(form) != HD_KIND_ARRAY ||
        strcmp(hd_value_as_text(hd_value_index(form, 0), ""), "new"))
        return (hd_value){ 0 };
    for (hd_iter it = hd_iter_of(args); hd_iter_next(&it);)
        if (hd_value_count(it.value) == 2 &&
            !strcmp(hd_value_as_text(hd_value_index(it.value, 0), ""), "*"))
            flow_refuse(f, f->at, call, HD_SYNTAX, "'*' cannot be given to an action");
    if (!hd_value_count(names)) return args;
    if (hd_value_count(args))
        flow_refuse(f, f->at, call, HD_SYNTAX, "arguments are all by name or all by place");
    return by_name(f, call, names);
}

/* "a, b" as an array of names. */
static hd_value names_of(hd_flow *f, const char *call, const char *text) {
    hd_value all = hd_array();
    while (text && *text) {
        text += strspn(text, " \t,");
        size_t n = strcspn(text, " \t,");
        if (!n) break;
        all = checked(f, hd_array_append(f->pool, all, hd_string_n(f->pool, text, n)));
        text += n;
        if (text[strspn(text, " \t")] && text[strspn(text, " \t")] != ',') {
            flow_refuse(f, f->at, call, HD_SYNTAX, "names stand with commas between them");
            break;
        }
    }
    return all;
}

/* ---- Life ---------------------------------------------------------------------------------- */

static void begin_function(hd_flow *f, const char *name, hd_value params) {
    flow_function *fn = flow_new(f, sizeof *fn);
    if (!fn) return;
    *fn = (flow_function){ .name = flow_copy(f, name), .params = params };
    vec_clear(&f->open);
    flow_open body = { NULL, &fn->body };
    if (!vec_push(f->env, &f->functions, fn) || !vec_push(f->env, &f->open, body)) f->nomem = true;
}

hd_status hd_flow_open(hd_pool *pool, const char *name, hd_flow **out) {
    const hd_env *env = &pool->heap->env;
    hd_flow *f = env_new0(env, sizeof *f);
    *out = NULL;
    if (!f) return HD_NOMEM;
    f->pool = pool;
    f->env = env;
    f->at = "";
    arena_init(&f->memory, env);
    f->name = flow_copy(f, name);
    f->inputs = hd_array();
    begin_function(f, "run", hd_array());
    (void)word(f, "hd_flow_open", "name", name);
    if (f->nomem) return hd_flow_close(f), HD_NOMEM;
    *out = f;
    return HD_OK;
}

void hd_flow_close(hd_flow *f) {
    if (!f) return;
    vec_fini(f->env, &f->functions);
    vec_fini(f->env, &f->open);
    vec_fini(f->env, &f->problems);
    arena_fini(&f->memory);
    env_free(f->env, f, sizeof *f);
}

bool hd_flow_problem(const hd_flow *f, size_t index, hd_error *problem) {
    if (index >= f->problems.count) return false;
    *problem = f->problems.items[index];
    return true;
}

/* An id that was given to no step: it would be lost. */
static void check_id_used(hd_flow *f) {
    if (f->next_id)
        flow_refuse(f, f->next_id_at, "hd_flow_id", HD_USAGE, "no step stands behind it");
    f->next_id = NULL;
}

hd_status hd_flow_ir(hd_flow *f, hd_value *ir, hd_error *error) {
    *ir = (hd_value){ 0 };
    if (f->open.count > 1 && !f->problems.count) {
        const flow_step *s = vec_last(&f->open).step;
        flow_refuse(f, s->at, s->call, HD_USAGE, "the block is not ended");
    }
    check_id_used(f);
    hd_value made = f->problems.count || f->nomem ? (hd_value){ 0 } : flow_lower(f);
    if (f->nomem) return HD_NOMEM;
    if (!f->problems.count) {
        *ir = made;
        return hd_value_status(made);
    }
    if (error) *error = f->problems.items[0];
    if (error && f->problems.count > 1) {
        size_t n = strlen(error->message);
        snprintf(error->message + n, sizeof error->message - n, " (and %u more)",
                 f->problems.count - 1);
    }
    return f->problems.items[0].status;
}

void hd_flow_at(hd_flow *f, const char *file, int line) {
    char text[300];
    snprintf(text, sizeof text, "%.280s:%d", file, line);
    f->at = flow_copy(f, text);
}

void hd_flow_id(hd_flow *f, const char *id) {
    check_id_used(f);
    if (!hd_value_exists(word(f, "hd_flow_id", "id", id))) return;
    f->next_id = flow_copy(f, id);
    f->next_id_at = f->at;
}

/* ---- Steps --------------------------------------------------------------------------------- */

static flow_step *add_step(hd_flow *f, flow_kind kind, const char *call, const char *label) {
    flow_step *s = flow_new(f, sizeof *s);
    if (!s || !f->open.count) return NULL;
    *s = (flow_step){ .kind = kind, .call = call, .label = flow_copy(f, label), .at = f->at };
    s->id = f->next_id;
    f->next_id = NULL;
    flow_block *b = vec_last(&f->open).block;
    if (b->last) b->last->next = s;
    else b->first = s;
    b->last = s;
    f->last = s;
    s->keys = hd_object();
    return s;
}

/* A step that is one node. */
static flow_step *add_node(hd_flow *f, const char *kind, const char *call, const char *label) {
    flow_step *s = add_step(f, FLOW_NODE, call, label);
    if (s) s->keys = with(f, s->keys, "kind", hd_string(f->pool, kind));
    return s;
}

static void put(hd_flow *f, flow_step *s, const char *key, hd_value v) {
    if (s) s->keys = with(f, s->keys, key, v);
}

void hd_flow_input(hd_flow *f, const char *name, hd_value otherwise) {
    if (f->functions.count != 1)
        flow_refuse(f, f->at, "hd_flow_input", HD_USAGE, "inputs belong to the first function");
    flow_function *run = f->functions.items[0];
    hd_value input = hd_object(), own = variable(f, "hd_flow_input", "name", name);
    if (is_among(run->params, own))
        flow_refuse(f, f->at, "hd_flow_input", HD_SYNTAX, "there is an input \"%s\" already", name);
    input = with(f, input, "name", own);
    input = with(f, input, "default", given(f, "hd_flow_input", "default", otherwise));
    f->inputs = checked(f, hd_array_append(f->pool, f->inputs, input));
    run->params = checked(f, hd_array_append(f->pool, run->params, own));
}

void hd_flow_schema(hd_flow *f, hd_value schema) {
    size_t n = hd_value_count(f->inputs);
    if (!n) {
        flow_refuse(f, f->at, "hd_flow_schema", HD_USAGE, "there is no input yet");
        return;
    }
    schema = given(f, "hd_flow_schema", "schema", schema);
    hd_value input = with(f, hd_value_index(f->inputs, n - 1), "schema", schema);
    f->inputs = checked(f, hd_array_set(f->pool, f->inputs, n - 1, input));
}

void hd_flow_do(hd_flow *f, const char *statements) {
    flow_step *s = add_node(f, "CALC", "hd_flow_do", "do");
    if (is_given(f, "hd_flow_do", "statement", statements))
        put(f, s, "do", parse(f, "hd_flow_do", parse_statements, statements, 0));
}

void hd_flow_action(hd_flow *f, const char *into, const char *action, const char *args) {
    flow_step *s = add_node(f, "ACTION", "hd_flow_action", action);
    put(f, s, "action", word(f, "hd_flow_action", "action", action));
    put(f, s, "args", arguments_of(f, "hd_flow_action", args));
    put(f, s, "into", target(f, "hd_flow_action", into));
}

static void put_number(hd_flow *f, hd_value *object, const char *key, double n) {
    if (n != 0) *object = with(f, *object, key, hd_double(n));
}

void hd_flow_retried(hd_flow *f, const hd_flow_retry *r) {
    flow_step *s = f->last;
    if (!s || strcmp(hd_value_as_text(hd_value_at(s->keys, "kind"), ""), "ACTION")) {
        flow_refuse(f, f->at, "hd_flow_retried", HD_USAGE, "the call before it is no action");
        return;
    }
    if (!r) {
        flow_refuse(f, f->at, "hd_flow_retried", HD_USAGE, "no hd_flow_retry is given");
        return;
    }
    hd_value retry = hd_object();
    if (r->attempts) retry = with(f, retry, "attempts", hd_int(f->pool, r->attempts));
    put_number(f, &retry, "backoff", r->backoff_s);
    put_number(f, &retry, "factor", r->factor);
    put_number(f, &retry, "max", r->max_s);
    if (r->on) retry = with(f, retry, "on", names_of(f, "hd_flow_retried", r->on));
    if (hd_value_count(retry)) put(f, s, "retry", retry);
    if (r->timeout_s != 0) put(f, s, "timeout", hd_double(r->timeout_s));
    if (r->heartbeat_s != 0) put(f, s, "heartbeat", hd_double(r->heartbeat_s));
}

void hd_flow_child(hd_flow *f, const char *into, const char *workflow, const char *args) {
    flow_step *s = add_node(f, "CHILD", "hd_flow_child", workflow);
    hd_value given = arguments_of(f, "hd_flow_child", args);
    if (hd_value_kind(given) == HD_KIND_ARRAY)
        flow_refuse(f, f->at, "hd_flow_child", HD_SYNTAX, "inputs of a workflow are by name");
    put(f, s, "workflow", word(f, "hd_flow_child", "workflow", workflow));
    put(f, s, "args", given);
    put(f, s, "into", target(f, "hd_flow_child", into));
}

void hd_flow_send(hd_flow *f, const char *stream, const char *event) {
    flow_step *s = add_node(f, "ACTION", "hd_flow_send", "send");
    hd_value args = with(f, hd_object(), "stream", needed(f, "hd_flow_send", "stream", stream));
    put(f, s, "action", hd_string(f->pool, "heddle.send"));
    put(f, s, "args", with(f, args, "event", needed(f, "hd_flow_send", "event", event)));
}

/* A mistake is told here, not when the step begins: the condition travels as text. */
static void check_condition(hd_flow *f, hd_value form, hd_value names) {
    static const char *const taken[] = { "cell", "until", "value" };
    hd_value unknown;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (hd_value_exists(hd_value_at(names, taken[i])))
            flow_refuse(f, f->at, "hd_flow_wait_for", HD_SYNTAX,
                        "the names of a condition cannot have \"%s\"", taken[i]);
    if (condition_check(f->pool, form, names, &unknown)) f->nomem = true;
    else if (hd_value_exists(unknown))
        flow_refuse(f, f->at, "hd_flow_wait_for", HD_SYNTAX,
                    "the condition reads \"%.80s\", which is not among `names`",
                    hd_value_as_text(unknown, ""));
}

void hd_flow_wait_for(hd_flow *f, const char *into, const char *cell, const char *condition,
                      const char *names, double timeout_s) {
    flow_step *s = add_node(f, "ACTION", "hd_flow_wait_for", "wait");
    hd_value args = arguments_of(f, "hd_flow_wait_for", names);
    if (hd_value_kind(args) == HD_KIND_ARRAY)
        flow_refuse(f, f->at, "hd_flow_wait_for", HD_SYNTAX, "names are given by name");
    if (hd_value_kind(args) != HD_KIND_OBJECT) args = hd_object();
    check_condition(f, needed(f, "hd_flow_wait_for", "condition", condition), args);
    args = with(f, args, "cell", needed(f, "hd_flow_wait_for", "cell", cell));
    put(f, s, "action", hd_string(f->pool, "heddle.wait"));
    put(f, s, "args", with(f, args, "until", hd_string(f->pool, condition ? condition : "")));
    if (timeout_s != 0) put(f, s, "timeout", hd_double(timeout_s));
    put(f, s, "into", target(f, "hd_flow_wait_for", into));
}

/* The step that an option is about; NULL, and that is a problem: it is none of these. */
static flow_step *last_of(hd_flow *f, const char *call, bool or_child) {
    const char *kind = f->last ? hd_value_as_text(hd_value_at(f->last->keys, "kind"), "") : "";
    if (!strcmp(kind, "ACTION") || (or_child && !strcmp(kind, "CHILD"))) return f->last;
    flow_refuse(f, f->at, call, HD_USAGE, "the call before it is no action%s",
                or_child ? " or child" : "");
    return NULL;
}

void hd_flow_limit(hd_flow *f, const char *key, uint32_t most) {
    flow_step *s = last_of(f, "hd_flow_limit", false);
    hd_value limit = with(f, hd_object(), "key", needed(f, "hd_flow_limit", "key", key));
    put(f, s, "limit", with(f, limit, "most", hd_int(f->pool, most)));
}

void hd_flow_queue(hd_flow *f, const char *name) {
    put(f, last_of(f, "hd_flow_queue", false), "queue", word(f, "hd_flow_queue", "queue", name));
}

void hd_flow_priority(hd_flow *f, int32_t priority) {
    put(f, last_of(f, "hd_flow_priority", true), "priority", hd_int(f->pool, priority));
}

void hd_flow_journal(hd_flow *f, const char *level) {
    f->journal = word(f, "hd_flow_journal", "level", level);
}

void hd_flow_keep(hd_flow *f, double seconds, uint32_t most) {
    f->keep = hd_object();
    if (!(seconds >= 0 && seconds <= 1e11))
        flow_refuse(f, f->at, "hd_flow_keep", HD_SYNTAX, "%g is no number of seconds", seconds);
    if (seconds != 0) f->keep = hd_object_set(f->pool, f->keep, "seconds", hd_double(seconds));
    if (most) f->keep = hd_object_set(f->pool, f->keep, "most", hd_int(f->pool, most));
}

void hd_flow_sleep(hd_flow *f, const char *seconds) {
    put(f, add_node(f, "SLEEP", "hd_flow_sleep", "sleep"), "seconds",
        needed(f, "hd_flow_sleep", "time", seconds));
}
void hd_flow_sleep_until(hd_flow *f, const char *time) {
    put(f, add_node(f, "SLEEP", "hd_flow_sleep_until", "sleep"), "until",
        needed(f, "hd_flow_sleep_until", "time", time));
}

void hd_flow_wait(hd_flow *f, const char *into, const char *signal, const char *timeout) {
    flow_step *s = add_node(f, "WAIT", "hd_flow_wait", signal);
    put(f, s, "signal", word(f, "hd_flow_wait", "signal", signal));
    put(f, s, "timeout", expression(f, "hd_flow_wait", timeout));
    put(f, s, "into", target(f, "hd_flow_wait", into));
}

void hd_flow_return(hd_flow *f, const char *value) {
    put(f, add_step(f, FLOW_RETURN, "hd_flow_return", "return"), "value",
        expression(f, "hd_flow_return", value));
}

void hd_flow_raise(hd_flow *f, const char *exception) {
    put(f, add_node(f, "RAISE", "hd_flow_raise", "raise"), "value",
        expression(f, "hd_flow_raise", exception));
}

/* They are edges: no node could have the id. */
void hd_flow_break(hd_flow *f) {
    check_id_used(f);
    add_step(f, FLOW_BREAK, "hd_flow_break", "break");
}
void hd_flow_continue(hd_flow *f) {
    check_id_used(f);
    add_step(f, FLOW_CONTINUE, "hd_flow_continue", "continue");
}

void hd_flow_call(hd_flow *f, const char *into, const char *function, const char *args) {
    flow_step *s = add_node(f, "CALL", "hd_flow_call", function);
    hd_value given = arguments_of(f, "hd_flow_call", args);
    if (hd_value_kind(given) == HD_KIND_OBJECT)
        flow_refuse(f, f->at, "hd_flow_call", HD_SYNTAX, "arguments of a function are by place");
    put(f, s, "function", word(f, "hd_flow_call", "function", function));
    put(f, s, "args", given);
    put(f, s, "into", target(f, "hd_flow_call", into));
}

/* ---- Blocks -------------------------------------------------------------------------------- */

/* Opens a block of the step: its first, or the one after the open one. */
static flow_block *open_block(hd_flow *f, flow_step *s, hd_value condition) {
    flow_block *b = s ? flow_new(f, sizeof *b) : NULL;
    flow_open open = { s, b };
    if (!b) return NULL;
    b->condition = condition;
    if (!s->blocks) {
        s->blocks = b;
        if (!vec_push(f->env, &f->open, open)) f->nomem = true;
    } else {
        vec_last(&f->open).block->next = b;
        vec_last(&f->open).block = b;
    }
    f->last = NULL;
    return b;
}

/* The step whose block is open, if it is of this kind. */
static flow_step *open_step(hd_flow *f, const char *call, flow_kind kind, const char *what) {
    flow_step *s = f->open.count ? vec_last(&f->open).step : NULL;
    if (s && s->kind == kind) return s;
    flow_refuse(f, f->at, call, HD_USAGE, "there is no %s above it", what);
    return NULL;
}

void hd_flow_if(hd_flow *f, const char *condition) {
    open_block(f, add_step(f, FLOW_IF, "hd_flow_if", "if"),
               needed(f, "hd_flow_if", "condition", condition));
}

static void alternative(hd_flow *f, const char *call, hd_value condition) {
    flow_step *s = open_step(f, call, FLOW_IF, "if");
    if (!s) return;
    if (vec_last(&f->open).block != s->blocks &&
        !hd_value_exists(vec_last(&f->open).block->condition))
        flow_refuse(f, f->at, call, HD_USAGE, "the else above it was the last alternative");
    open_block(f, s, condition);
}
void hd_flow_elif(hd_flow *f, const char *condition) {
    alternative(f, "hd_flow_elif", needed(f, "hd_flow_elif", "condition", condition));
}
void hd_flow_else(hd_flow *f) { alternative(f, "hd_flow_else", (hd_value){ 0 }); }

static flow_step *add_loop(hd_flow *f, const char *call, const char *label) {
    flow_step *s = add_step(f, FLOW_LOOP, call, label);
    put(f, s, "kind", hd_string(f->pool, "LOOP_HEAD"));
    return s;
}
void hd_flow_while(hd_flow *f, const char *condition) {
    flow_step *s = add_loop(f, "hd_flow_while", "while");
    put(f, s, "while", needed(f, "hd_flow_while", "condition", condition));
    open_block(f, s, (hd_value){ 0 });
}
void hd_flow_for(hd_flow *f, const char *into, const char *iterable) {
    flow_step *s = add_loop(f, "hd_flow_for", "for");
    put(f, s, "over", needed(f, "hd_flow_for", "iterable", iterable));
    put(f, s, "into", target(f, "hd_flow_for", into));
    open_block(f, s, (hd_value){ 0 });
}

void hd_flow_try(hd_flow *f) {
    open_block(f, add_step(f, FLOW_TRY, "hd_flow_try", "try"), (hd_value){ 0 });
}
static bool takes_all(const flow_block *b) {
    return hd_value_exists(b->condition) && !hd_value_count(hd_value_at(b->condition, "classes"));
}

void hd_flow_except(hd_flow *f, const char *classes, const char *as) {
    flow_step *s = open_step(f, "hd_flow_except", FLOW_TRY, "try");
    hd_value clause = hd_object();
    if (classes) clause = with(f, clause, "classes", names_of(f, "hd_flow_except", classes));
    if (as) clause = with(f, clause, "as", variable(f, "hd_flow_except", "variable", as));
    if (s && vec_last(&f->open).block->is_finally)
        flow_refuse(f, f->at, "hd_flow_except", HD_USAGE, "finally comes last");
    else if (s && takes_all(vec_last(&f->open).block))
        flow_refuse(f, f->at, "hd_flow_except", HD_USAGE,
                    "the except above it takes every exception");
    if (s) open_block(f, s, clause);
}
void hd_flow_finally(hd_flow *f) {
    flow_step *s = open_step(f, "hd_flow_finally", FLOW_TRY, "try");
    if (s && vec_last(&f->open).block->is_finally)
        flow_refuse(f, f->at, "hd_flow_finally", HD_USAGE, "there is a finally already");
    flow_block *b = s ? open_block(f, s, (hd_value){ 0 }) : NULL;
    if (b) b->is_finally = true;
}

void hd_flow_end(hd_flow *f) {
    const flow_step *s = f->open.count ? vec_last(&f->open).step : NULL;
    if (!s) flow_refuse(f, f->at, "hd_flow_end", HD_USAGE, "no block is open");
    else if (s->kind == FLOW_FAN)
        flow_refuse(f, f->at, "hd_flow_end", HD_USAGE, "branches are ended by hd_flow_join");
    else if (s->kind == FLOW_TRY && !s->blocks->next)
        flow_refuse(f, f->at, "hd_flow_end", HD_USAGE, "a try has an except or a finally");
    if (s) (void)vec_pop(&f->open);
    f->last = NULL;
}

/* ---- Branches ------------------------------------------------------------------------------ */

void hd_flow_each(hd_flow *f, const char *into, const char *iterable) {
    flow_step *s = add_step(f, FLOW_FAN, "hd_flow_each", "each");
    if (s) s->each = true;
    put(f, s, "kind", hd_string(f->pool, "FAN_HEAD"));
    put(f, s, "over", needed(f, "hd_flow_each", "iterable", iterable));
    put(f, s, "into", target(f, "hd_flow_each", into));
    open_block(f, s, (hd_value){ 0 });
}

void hd_flow_window(hd_flow *f, uint32_t branches) {
    flow_step *s = open_step(f, "hd_flow_window", FLOW_FAN, "each");
    put(f, s, "window", hd_int(f->pool, branches));
}

/* The block before the first hd_flow_branch stays empty. */
void hd_flow_gather(hd_flow *f) {
    flow_step *s = add_step(f, FLOW_FAN, "hd_flow_gather", "gather");
    put(f, s, "kind", hd_string(f->pool, "FAN_HEAD"));
    open_block(f, s, (hd_value){ 0 });
}
void hd_flow_branch(hd_flow *f) {
    flow_step *s = open_step(f, "hd_flow_branch", FLOW_FAN, "gather");
    if (s && s->each)
        flow_refuse(f, f->at, "hd_flow_branch", HD_USAGE, "hd_flow_each has one branch");
    else if (s) open_block(f, s, (hd_value){ 0 });
}

void hd_flow_join(hd_flow *f, const char *into, const char *give) {
    flow_step *s = open_step(f, "hd_flow_join", FLOW_FAN, "each or gather");
    if (!s) return;
    if (!s->each && s->blocks->first)
        flow_refuse(f, s->blocks->first->at, s->blocks->first->call, HD_USAGE,
                    "a step stands between hd_flow_gather and the first hd_flow_branch");
    if (!s->each && !s->blocks->next)
        flow_refuse(f, f->at, "hd_flow_join", HD_USAGE, "the gather above it has no branch");
    hd_value join = with(f, hd_object(), "kind", hd_string(f->pool, "BARRIER"));
    if (s->each) join = with(f, join, "mode", hd_string(f->pool, "ordered"));
    join = with(f, join, "give", expression(f, "hd_flow_join", give));
    s->join = with(f, join, "into", target(f, "hd_flow_join", into));
    s->join_id = f->next_id;
    s->join_at = f->at;
    f->next_id = NULL;
    (void)vec_pop(&f->open);
    f->last = s;
}

void hd_flow_mode(hd_flow *f, const char *mode) {
    if (f->last && f->last->kind == FLOW_FAN)
        f->last->join = with(f, f->last->join, "mode", word(f, "hd_flow_mode", "mode", mode));
    else flow_refuse(f, f->at, "hd_flow_mode", HD_USAGE, "the call before it is no hd_flow_join");
}

static hd_value params_of(hd_flow *f, const char *text) {
    hd_value known = hd_array(), all = names_of(f, "hd_flow_function", text);
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it);) {
        const char *name = hd_value_as_text(it.value, NULL);
        hd_value one = variable(f, "hd_flow_function", "parameter", name);
        if (is_among(known, one))
            flow_refuse(f, f->at, "hd_flow_function", HD_SYNTAX,
                        "there is a parameter \"%s\" already", name);
        known = checked(f, hd_array_append(f->pool, known, one));
    }
    return all;
}

void hd_flow_function(hd_flow *f, const char *name, const char *params) {
    if (f->open.count > 1) {
        const flow_step *s = vec_last(&f->open).step;
        flow_refuse(f, s->at, s->call, HD_USAGE, "the block is not ended");
    }
    (void)word(f, "hd_flow_function", "name", name);
    for (uint32_t i = 0; name && i < f->functions.count; i++)
        if (!strcmp(f->functions.items[i]->name, name))
            flow_refuse(f, f->at, "hd_flow_function", HD_SYNTAX, "there is a function %s already",
                        name);
    check_id_used(f);
    begin_function(f, name, params_of(f, params));
    f->last = NULL;
}

/* ir_node.c -- one node of the IR (docs/IR.md): its code, its options, and what its kind has beside them. */
#include "workflow/ir.h"

#include <stdio.h>

/* Keys that a node of each kind may have beside id, kind, at and comment. */
static const char *const node_keys[NODE_KINDS] = {
    [NODE_ENTRY] = "",
    [NODE_CALC] = "do",
    [NODE_ACTION] = "action args named into retry timeout heartbeat limit priority queue",
    [NODE_BRANCH] = "when",
    [NODE_MERGE] = "",
    [NODE_LOOP_HEAD] = "over into while",
    [NODE_FAN_HEAD] = "over into window here now",
    [NODE_BARRIER] = "give into mode",
    [NODE_SLEEP] = "seconds until",
    [NODE_WAIT] = "signal timeout into",
    [NODE_CALL] = "function args into",
    [NODE_CHILD] = "workflow args named into priority",
    [NODE_HANDLER] = "clauses",
    [NODE_RAISE] = "value",
    [NODE_RET] = "value",
    [NODE_RETURN] = "value",
};

/* ---- refusing */

static hd_status refuse_node(ir_reader *r, const char *format, ...) HD_PRINTF(2, 3);
static hd_status refuse_node(ir_reader *r, const char *format, ...) {
    char why[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return draft_refuse(&r->d, r->d.nodes.count - 1, "%s", why);
}

/* ---- code */

/* Remembers it for plan_unref, and what it touches. */
static hd_status keep_code(ir_reader *r, code *c) {
    if (vec_push(r->p->env, &r->p->codes, c)) return HD_OK;
    code_free(c);
    return HD_NOMEM;
}

static hd_status misplaced(ir_reader *r, hd_status status) {
    if (status != HD_SYNTAX && status != HD_LIMIT) return status;
    char why[200];
    snprintf(why, sizeof why, "%.150s", r->error ? r->error->message : "");
    refuse_node(r, "%s", why);
    return status;
}

static hd_status read_code(ir_reader *r, hd_value form, bool statements, code **out) {
    scope *names = r->d.f->names;
    *out = NULL;
    if (!hd_value_exists(form)) return HD_OK;
    hd_status status = statements ? compile_statements(r->p->w, names, form, out, r->error)
                                  : compile_expression(r->p->w, names, form, out, r->error);
    if (status) return misplaced(r, status);
    status = keep_code(r, *out);
    if (status) *out = NULL;
    return status;
}

static hd_status read_expression(ir_reader *r, hd_value node, const char *key, bool wanted,
                                 code **out) {
    hd_value form = hd_value_at(node, key);
    if (wanted && !hd_value_exists(form)) return refuse_node(r, "\"%s\" is missing", key);
    return read_code(r, form, false, out);
}

/* [["assign", ["name", "%result"], target]] */
static hd_value assignment_of(hd_pool *pool, hd_value target) {
    hd_value name[] = { hd_string(pool, "name"), hd_string(pool, "%result") };
    hd_value assign[] = { hd_string(pool, "assign"), hd_array_of(pool, name, 2), target };
    hd_value statement = hd_array_of(pool, assign, 3);
    return hd_array_of(pool, &statement, 1);
}

/* The variable that ["name", "x"] means; NULL: it is no plain name. */
static const char *plain_name(hd_value target, size_t *length) {
    if (hd_value_kind(target) != HD_KIND_ARRAY || hd_value_count(target) != 2) return NULL;
    if (strcmp(hd_value_as_text(hd_value_index(target, 0), ""), "name") != 0) return NULL;
    const char *name = hd_value_text(hd_value_index(target, 1), length);
    return name && !memchr(name, 0, *length) ? name : NULL;
}

static hd_status read_target(ir_reader *r, hd_value target, plan_target *out) {
    size_t length;
    hd_pool *pool;
    if (!hd_value_exists(target)) return HD_OK;
    const char *name = plain_name(target, &length);
    if (name) return scope_slot(r->d.f->names, name, length, &out->variable);
    hd_status status = hd_pool_open(r->p->heap, &pool);
    if (!status) status = read_code(r, assignment_of(pool, target), true, &out->assign);
    hd_pool_close(pool);
    return status;
}

/* A list of expressions, or an object of them. */
static hd_status read_args(ir_reader *r, hd_value v, const char *key, bool may_be_named,
                           plan_node *n) {
    hd_value args = hd_value_at(v, key);
    bool named = hd_value_kind(args) == HD_KIND_OBJECT;
    if (!hd_value_exists(args)) return HD_OK;
    if (hd_value_kind(args) != HD_KIND_ARRAY && !(named && may_be_named))
        return refuse_node(r, "\"%s\" is a list%s", key, may_be_named ? " or an object" : "");
    n->arg_count = (uint32_t)hd_value_count(args);
    n->args = arena_alloc_array(&r->p->memory, n->arg_count + 1, sizeof *n->args);
    if (named)
        n->arg_names = arena_alloc_array(&r->p->memory, n->arg_count + 1, sizeof *n->arg_names);
    if (!n->args || (named && !n->arg_names)) return HD_NOMEM;
    for (hd_iter it = hd_iter_of(args); hd_iter_next(&it);) {
        hd_status status = read_code(r, it.value, false, &n->args[it.index]);
        if (status) return status;
        if (named && !(n->arg_names[it.index] = arena_copy(&r->p->memory, it.key, it.key_length)))
            return HD_NOMEM;
    }
    return HD_OK;
}

/* One of [[name, expression], ...]. */
static hd_status read_pair(ir_reader *r, hd_value pair, size_t i, plan_node *n) {
    if (hd_value_kind(pair) != HD_KIND_ARRAY || hd_value_count(pair) != 2 ||
        !ir_is_name(hd_value_index(pair, 0)))
        return refuse_node(r, "\"named\" holds pairs of a name and an expression");
    n->arg_names[i] = ir_copy_text(r, hd_value_index(pair, 0));
    if (!n->arg_names[i]) return HD_NOMEM;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(n->arg_names[k], n->arg_names[i]))
            return refuse_node(r, "two arguments \"%s\"", n->arg_names[i]);
    return read_code(r, hd_value_index(pair, 1), false, &n->args[i]);
}

/* Arguments by name that are evaluated in the order in which they are given. */
static hd_status read_named(ir_reader *r, hd_value v, plan_node *n) {
    hd_status status = HD_OK;
    hd_value named = hd_value_at(v, "named");
    if (!hd_value_exists(named)) return HD_OK;
    if (n->args) return refuse_node(r, "\"named\" stands instead of \"args\"");
    if (hd_value_kind(named) != HD_KIND_ARRAY) return refuse_node(r, "\"named\" is a list");
    n->arg_count = (uint32_t)hd_value_count(named);
    n->args = arena_alloc_array(&r->p->memory, n->arg_count + 1, sizeof *n->args);
    n->arg_names = arena_alloc_array(&r->p->memory, n->arg_count + 1, sizeof *n->arg_names);
    if (!n->args || !n->arg_names) return HD_NOMEM;
    for (hd_iter it = hd_iter_of(named); hd_iter_next(&it) && !status;)
        status = read_pair(r, it.value, it.index, n);
    return status;
}

/* What an ACTION or a CHILD is given. */
static hd_status read_given(ir_reader *r, hd_value v, plan_node *n) {
    hd_status status = read_args(r, v, "args", true, n);
    if (!status) status = read_named(r, v, n);
    n->args_repeat = true;
    for (uint32_t i = 0; i < n->arg_count && !status; i++)
        n->args_repeat = n->args_repeat && code_repeats(n->args[i]);
    return status;
}

/* ---- options */

static hd_status read_seconds(ir_reader *r, hd_value from, const char *key, double *out) {
    hd_value v = hd_value_at(from, key);
    if (!hd_value_exists(v)) return HD_OK;
    *out = hd_value_number(v);
    return *out >= 0 && *out <= 1e9 ? HD_OK : refuse_node(r, "\"%s\" is a number of seconds", key);
}

static hd_status read_count(ir_reader *r, hd_value from, const char *key, int64_t least,
                            int64_t most, int64_t *out) {
    hd_value v = hd_value_at(from, key);
    if (!hd_value_exists(v)) return HD_OK;
    *out = hd_value_as_int(v, least - 1);
    if (*out >= least && *out <= most) return HD_OK;
    return refuse_node(r, "\"%s\" is a whole number from %lld to %lld", key, (long long)least,
                       (long long)most);
}

static hd_status read_classes(ir_reader *r, hd_value names, uint32_t **out, uint32_t *count) {
    if (!hd_value_exists(names)) return HD_OK;
    if (hd_value_kind(names) != HD_KIND_ARRAY) return refuse_node(r, "classes are a list of names");
    *count = (uint32_t)hd_value_count(names);
    *out = arena_alloc_array(&r->p->memory, *count + 1, sizeof **out);
    if (!*out) return HD_NOMEM;
    for (hd_iter it = hd_iter_of(names); hd_iter_next(&it);) {
        size_t length;
        const char *name = hd_value_text(it.value, &length);
        uint32_t class_ = name ? classes_find(r->p->w->classes, name, length) : CLASS_NONE;
        if (class_ == CLASS_NONE || !class_is(r->p->w->classes, class_, CLASS_BaseException))
            return refuse_node(r, "\"%s\" is no class of exceptions", name ? name : "?");
        (*out)[it.index] = class_;
    }
    return HD_OK;
}

static hd_status read_retry(ir_reader *r, hd_value v, plan_retry *out) {
    int64_t attempts = 1;
    if (!hd_value_exists(v)) return HD_OK;
    const char *unknown = ir_unknown_key(v, "attempts backoff factor max on", "");
    if (hd_value_kind(v) != HD_KIND_OBJECT) return refuse_node(r, "\"retry\" is an object");
    if (unknown) return refuse_node(r, "unknown key \"%s\" in \"retry\"", unknown);
    hd_status status = read_count(r, v, "attempts", 1, 1000000, &attempts);
    if (!status) status = read_seconds(r, v, "backoff", &out->backoff_s);
    if (!status) status = read_seconds(r, v, "factor", &out->factor);
    if (!status) status = read_seconds(r, v, "max", &out->max_s);
    if (!status) status = read_classes(r, hd_value_at(v, "on"), &out->on, &out->on_count);
    out->attempts = (uint32_t)attempts;
    return status;
}

static hd_status read_name(ir_reader *r, hd_value node, const char *key, const char **out) {
    hd_value v = hd_value_at(node, key);
    if (!ir_is_name(v)) return refuse_node(r, "\"%s\" is a name", key);
    *out = ir_copy_text(r, v);
    return *out ? HD_OK : HD_NOMEM;
}

/* ---- nodes, by kind */

static hd_status read_limit(ir_reader *r, hd_value v, plan_node *n) {
    int64_t most = 1;
    if (!hd_value_exists(v)) return HD_OK;
    if (hd_value_kind(v) != HD_KIND_OBJECT) return refuse_node(r, "\"limit\" is an object");
    const char *unknown = ir_unknown_key(v, "key most", "");
    if (unknown) return refuse_node(r, "unknown key \"%s\" in \"limit\"", unknown);
    hd_status status = read_count(r, v, "most", 1, 1000000, &most);
    n->limit_most = (uint32_t)most;
    return status ? status : read_expression(r, v, "key", true, &n->limit_key);
}

/* It is a part of names of documents. */
static hd_status read_queue(ir_reader *r, hd_value v, plan_node *n) {
    if (!hd_value_exists(v)) return HD_OK;
    if (!ir_is_workflow_name(v)) return refuse_node(r, "\"queue\" is a name of " PLAN_NAME_RULE);
    n->queue = ir_copy_text(r, v);
    return n->queue ? HD_OK : HD_NOMEM;
}

static hd_status read_action(ir_reader *r, hd_value v, plan_node *n) {
    int64_t priority = 0;
    hd_status status = read_name(r, v, "action", &n->name);
    if (!status) status = read_given(r, v, n);
    if (!status) status = read_retry(r, hd_value_at(v, "retry"), &n->retry);
    if (!status) status = read_seconds(r, v, "timeout", &n->timeout_s);
    if (!status) status = read_seconds(r, v, "heartbeat", &n->heartbeat_s);
    if (!status) status = read_limit(r, hd_value_at(v, "limit"), n);
    if (!status) status = read_queue(r, hd_value_at(v, "queue"), n);
    if (!status) status = read_count(r, v, "priority", -1000, 1000, &priority);
    n->priority = (int32_t)priority;
    return status;
}

static hd_status read_mode(ir_reader *r, hd_value v, barrier_mode *out) {
    static const char *const modes[] = { "all", "settled", "group", "ordered", "first" };
    hd_value mode = hd_value_at(v, "mode");
    if (!hd_value_exists(mode)) return HD_OK;
    for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(hd_value_as_text(mode, ""), modes[i])) return *out = (barrier_mode)i, HD_OK;
    return refuse_node(r, "\"mode\" is one of all, settled, group, ordered, first");
}

static hd_status read_loop(ir_reader *r, hd_value v, plan_node *n) {
    bool each = hd_value_exists(hd_value_at(v, "over")),
         test = hd_value_exists(hd_value_at(v, "while"));
    if (each == test) return refuse_node(r, "a LOOP_HEAD has \"over\" or \"while\"");
    if (test && hd_value_exists(hd_value_at(v, "into")))
        return refuse_node(r, "\"into\" goes with \"over\"");
    hd_status status = read_expression(r, v, "over", false, &n->code);
    return status ? status : read_expression(r, v, "while", false, &n->test);
}

static hd_status read_fan(ir_reader *r, hd_value v, plan_node *n) {
    int64_t window = 0, here = 0;
    hd_status status = read_expression(r, v, "over", false, &n->code);
    if (!status) status = read_count(r, v, "window", 1, 1000000, &window);
    if (!status) status = read_count(r, v, "here", 1, 1000000, &here);
    n->window = (uint32_t)window;
    n->here = (uint32_t)here;
    n->now = hd_value_as_bool(hd_value_at(v, "now"), false);
    return status;
}

static hd_status read_sleep(ir_reader *r, hd_value v, plan_node *n) {
    n->until = hd_value_exists(hd_value_at(v, "until"));
    if (n->until == hd_value_exists(hd_value_at(v, "seconds")))
        return refuse_node(r, "a SLEEP has \"seconds\" or \"until\"");
    return read_expression(r, v, n->until ? "until" : "seconds", true, &n->code);
}

static hd_status read_clause(ir_reader *r, hd_value v, plan_clause *c) {
    size_t length;
    const char *unknown = ir_unknown_key(v, "classes as", "");
    hd_value as = hd_value_at(v, "as");
    c->bind = PLAN_NONE;
    if (hd_value_kind(v) != HD_KIND_OBJECT) return refuse_node(r, "a clause is an object");
    if (unknown) return refuse_node(r, "unknown key \"%s\" in a clause", unknown);
    hd_status status = read_classes(r, hd_value_at(v, "classes"), &c->classes, &c->class_count);
    if (status || !hd_value_exists(as)) return status;
    if (!ir_is_name(as)) return refuse_node(r, "\"as\" is a name");
    const char *name = hd_value_text(as, &length);
    return scope_slot(r->d.f->names, name, length, &c->bind);
}

/* "except:<id>": where a HANDLER keeps what it has caught. */
static hd_status caught_variable(ir_reader *r, plan_node *n) {
    char name[IR_NAME_MAX + 16];
    int length = snprintf(name, sizeof name, "except:%s", n->id);
    return scope_slot(r->d.f->names, name, (size_t)length, &n->caught);
}

static hd_status read_handler(ir_reader *r, hd_value v, plan_node *n) {
    hd_value clauses = hd_value_at(v, "clauses");
    if (hd_value_kind(clauses) != HD_KIND_ARRAY || !hd_value_count(clauses))
        return refuse_node(r, "\"clauses\" is a list of at least one");
    n->clause_count = (uint32_t)hd_value_count(clauses);
    n->clauses = arena_alloc_array(&r->p->memory, n->clause_count, sizeof *n->clauses);
    if (!n->clauses) return HD_NOMEM;
    memset(n->clauses, 0, n->clause_count * sizeof *n->clauses);
    hd_status status = caught_variable(r, n);
    for (hd_iter it = hd_iter_of(clauses); hd_iter_next(&it) && !status;)
        status = read_clause(r, it.value, &n->clauses[it.index]);
    return status;
}

/* The function is looked up when all are known. */
static hd_status read_call(ir_reader *r, hd_value v, plan_node *n) {
    hd_status status = read_name(r, v, "function", &n->name);
    return status ? status : read_args(r, v, "args", false, n);
}

static hd_status read_child(ir_reader *r, hd_value v, plan_node *n) {
    int64_t priority = 0;
    hd_value args = hd_value_at(v, "args");
    if (hd_value_exists(args) && hd_value_kind(args) != HD_KIND_OBJECT)
        return refuse_node(r, "\"args\" of a CHILD is an object: its inputs by name");
    if (!ir_is_workflow_name(hd_value_at(v, "workflow")))
        return refuse_node(r, "\"workflow\" is a name of " PLAN_NAME_RULE);
    hd_status status = read_name(r, v, "workflow", &n->name);
    if (!status) status = read_given(r, v, n);
    if (!status) status = read_count(r, v, "priority", -1000, 1000, &priority);
    n->priority = (int32_t)priority;
    return status;
}

static hd_status read_kind(ir_reader *r, hd_value v, plan_node *n) {
    hd_status status;
    switch (n->kind) {
    case NODE_CALC: return read_code(r, hd_value_at(v, "do"), true, &n->code);
    case NODE_ACTION: return read_action(r, v, n);
    case NODE_BRANCH: return read_args(r, v, "when", false, n);
    case NODE_LOOP_HEAD: return read_loop(r, v, n);
    case NODE_FAN_HEAD: return read_fan(r, v, n);
    case NODE_BARRIER:
        status = read_mode(r, v, &n->mode);
        return status ? status : read_expression(r, v, "give", false, &n->code);
    case NODE_SLEEP: return read_sleep(r, v, n);
    case NODE_WAIT:
        status = read_name(r, v, "signal", &n->name);
        return status ? status : read_expression(r, v, "timeout", false, &n->code);
    case NODE_CALL: return read_call(r, v, n);
    case NODE_CHILD: return read_child(r, v, n);
    case NODE_HANDLER: return read_handler(r, v, n);
    case NODE_RAISE:
    case NODE_RET:
    case NODE_RETURN: return read_expression(r, v, "value", false, &n->code);
    default: return HD_OK;
    }
}

static bool kind_named(const char *name, node_kind *out) {
    for (uint32_t i = 0; i < NODE_KINDS; i++)
        if (!strcmp(name, node_kind_name((node_kind)i))) return *out = (node_kind)i, true;
    return false;
}

hd_status ir_read_node(ir_reader *r, hd_value v, plan_node *n) {
    const char *kind = hd_value_text(hd_value_at(v, "kind"), NULL);
    if (!kind) return refuse_node(r, "a node has a \"kind\", a text");
    if (!kind_named(kind, &n->kind)) return refuse_node(r, "unknown kind \"%s\"", kind);
    const char *unknown = ir_unknown_key(v, node_keys[n->kind], "id kind at comment");
    if (unknown) return refuse_node(r, "unknown key \"%s\"", unknown);
    hd_status status = read_kind(r, v, n);
    return status ? status : read_target(r, hd_value_at(v, "into"), &n->into);
}

/* ir.c -- from the IR (docs/IR.md) to a plan.
 *
 * Reads the JSON once, function by function: nodes with their code, then edges by id. Every key is looked
 * at; one that is not known is refused, so that a misspelt option never passes in silence. What follows
 * from the edges is draft.c's.
 *
 * Cost: O(IR), plus a table of ids for each function. */
#include "workflow/plan.h"

#include "base/env.h"
#include "base/hash.h"
#include "base/table.h"
#include "workflow/draft.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#define NODES_MAX     100000
#define EDGES_MAX     1000000
#define FUNCTIONS_MAX 10000
#define SETS_MAX                                                                                   \
    ((size_t)4 << 20) /* words of the sets of variables that the nodes of a function read */
#define NAME_MAX_SIZE     200
#define IR_FORMAT         1
#define WORKFLOW_NAME_MAX 100

typedef struct reader {
    plan *p;
    draft d;
    hd_error *error;
    table ids; /* of the function's nodes */
} reader;

static const char *const node_names[] = {
#define PLAN_NODE_ROW(name, out) #name,
    PLAN_NODE_TABLE(PLAN_NODE_ROW)
#undef PLAN_NODE_ROW
};
static const char *const edge_names[] = {
#define PLAN_EDGE_ROW(name) #name,
    PLAN_EDGE_TABLE(PLAN_EDGE_ROW)
#undef PLAN_EDGE_ROW
};

const char *node_kind_name(node_kind kind) { return kind < NODE_KINDS ? node_names[kind] : "?"; }
const char *edge_kind_name(edge_kind kind) { return kind < EDGE_KINDS ? edge_names[kind] : "?"; }

/* Keys that a node of each kind may have beside id, kind, at and comment. */
static const char *const node_keys[NODE_KINDS] = {
    [NODE_ENTRY] = "",
    [NODE_CALC] = "do",
    [NODE_ACTION] = "action args named into retry timeout heartbeat limit priority queue",
    [NODE_BRANCH] = "when",
    [NODE_MERGE] = "",
    [NODE_LOOP_HEAD] = "over into while",
    [NODE_FAN_HEAD] = "over into window",
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

static hd_status refuse(reader *r, const char *path, const char *format, ...) HD_PRINTF(3, 4);
static hd_status refuse(reader *r, const char *path, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    env_error_v(r->error, HD_SYNTAX, format, arguments);
    va_end(arguments);
    if (r->error) snprintf(r->error->path, sizeof r->error->path, "%s", path);
    return HD_SYNTAX;
}

static hd_status refuse_node(reader *r, const char *format, ...) HD_PRINTF(2, 3);
static hd_status refuse_node(reader *r, const char *format, ...) {
    char why[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return draft_refuse(&r->d, r->d.nodes.count - 1, "%s", why);
}

static bool key_is_among(const char *keys, const char *key, size_t length) {
    for (const char *at = keys; *at;) {
        size_t word = strcspn(at, " ");
        if (word == length && !memcmp(at, key, length)) return true;
        at += word;
        at += *at == ' ';
    }
    return false;
}

/* NULL: every key is known. */
static const char *unknown_key(hd_value object, const char *keys, const char *more) {
    for (hd_iter it = hd_iter_of(object); hd_iter_next(&it);)
        if (!key_is_among(keys, it.key, it.key_length) &&
            !key_is_among(more, it.key, it.key_length))
            return it.key;
    return NULL;
}

/* ---- texts */

static const char *copy_text(reader *r, hd_value v) {
    size_t length;
    const char *from = hd_value_text(v, &length);
    return from ? arena_copy(&r->p->memory, from, length) : NULL;
}

static bool is_name(hd_value v) {
    size_t length;
    const char *name = hd_value_text(v, &length);
    if (!name || !length || length > NAME_MAX_SIZE) return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20) return false;
    return true;
}

/* It is a part of names of documents. */
static bool is_workflow_name(hd_value v) {
    size_t length;
    const char *name = hd_value_text(v, &length);
    if (!is_name(v) || length > WORKFLOW_NAME_MAX) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i])) return false;
    return true;
}

/* ---- code */

/* Remembers it for plan_unref, and what it touches. */
static hd_status keep_code(reader *r, code *c) {
    if (vec_push(r->p->env, &r->p->codes, c)) return HD_OK;
    code_free(c);
    return HD_NOMEM;
}

static hd_status misplaced(reader *r, hd_status status) {
    if (status != HD_SYNTAX && status != HD_LIMIT) return status;
    char why[200];
    snprintf(why, sizeof why, "%.150s", r->error ? r->error->message : "");
    refuse_node(r, "%s", why);
    return status;
}

static hd_status read_code(reader *r, hd_value form, bool statements, code **out) {
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

static hd_status read_expression(reader *r, hd_value node, const char *key, bool wanted,
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
    return hd_value_text(hd_value_index(target, 1), length);
}

static hd_status read_target(reader *r, hd_value target, plan_target *out) {
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
static hd_status read_args(reader *r, hd_value v, const char *key, bool may_be_named,
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
static hd_status read_pair(reader *r, hd_value pair, size_t i, plan_node *n) {
    if (hd_value_kind(pair) != HD_KIND_ARRAY || hd_value_count(pair) != 2 ||
        !is_name(hd_value_index(pair, 0)))
        return refuse_node(r, "\"named\" holds pairs of a name and an expression");
    n->arg_names[i] = copy_text(r, hd_value_index(pair, 0));
    if (!n->arg_names[i]) return HD_NOMEM;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(n->arg_names[k], n->arg_names[i]))
            return refuse_node(r, "two arguments \"%s\"", n->arg_names[i]);
    return read_code(r, hd_value_index(pair, 1), false, &n->args[i]);
}

/* Arguments by name that are evaluated in the order in which they are given. */
static hd_status read_named(reader *r, hd_value v, plan_node *n) {
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

/* ---- options */

static hd_status read_seconds(reader *r, hd_value from, const char *key, double *out) {
    hd_value v = hd_value_at(from, key);
    if (!hd_value_exists(v)) return HD_OK;
    *out = hd_value_number(v);
    return *out >= 0 && *out <= 1e9 ? HD_OK : refuse_node(r, "\"%s\" is a number of seconds", key);
}

static hd_status read_count(reader *r, hd_value from, const char *key, int64_t least, int64_t most,
                            int64_t *out) {
    hd_value v = hd_value_at(from, key);
    if (!hd_value_exists(v)) return HD_OK;
    *out = hd_value_as_int(v, least - 1);
    if (*out >= least && *out <= most) return HD_OK;
    return refuse_node(r, "\"%s\" is a whole number from %lld to %lld", key, (long long)least,
                       (long long)most);
}

static hd_status read_classes(reader *r, hd_value names, uint32_t **out, uint32_t *count) {
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

static hd_status read_retry(reader *r, hd_value v, plan_retry *out) {
    int64_t attempts = 1;
    if (!hd_value_exists(v)) return HD_OK;
    const char *unknown = unknown_key(v, "attempts backoff factor max on", "");
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

static hd_status read_name(reader *r, hd_value node, const char *key, const char **out) {
    hd_value v = hd_value_at(node, key);
    if (!is_name(v)) return refuse_node(r, "\"%s\" is a name", key);
    *out = copy_text(r, v);
    return *out ? HD_OK : HD_NOMEM;
}

/* ---- nodes, by kind */

static hd_status read_limit(reader *r, hd_value v, plan_node *n) {
    int64_t most = 1;
    if (!hd_value_exists(v)) return HD_OK;
    if (hd_value_kind(v) != HD_KIND_OBJECT) return refuse_node(r, "\"limit\" is an object");
    const char *unknown = unknown_key(v, "key most", "");
    if (unknown) return refuse_node(r, "unknown key \"%s\" in \"limit\"", unknown);
    hd_status status = read_count(r, v, "most", 1, 1000000, &most);
    n->limit_most = (uint32_t)most;
    return status ? status : read_expression(r, v, "key", true, &n->limit_key);
}

/* It is a part of names of documents. */
static hd_status read_queue(reader *r, hd_value v, plan_node *n) {
    if (!hd_value_exists(v)) return HD_OK;
    if (!is_workflow_name(v))
        return refuse_node(r, "\"queue\" is a name of letters, digits, '_', '-' and '.'");
    n->queue = copy_text(r, v);
    return n->queue ? HD_OK : HD_NOMEM;
}

static hd_status read_action(reader *r, hd_value v, plan_node *n) {
    int64_t priority = 0;
    hd_status status = read_name(r, v, "action", &n->name);
    if (!status) status = read_args(r, v, "args", true, n);
    if (!status) status = read_named(r, v, n);
    if (!status) status = read_retry(r, hd_value_at(v, "retry"), &n->retry);
    if (!status) status = read_seconds(r, v, "timeout", &n->timeout_s);
    if (!status) status = read_seconds(r, v, "heartbeat", &n->heartbeat_s);
    if (!status) status = read_limit(r, hd_value_at(v, "limit"), n);
    if (!status) status = read_queue(r, hd_value_at(v, "queue"), n);
    if (!status) status = read_count(r, v, "priority", -1000, 1000, &priority);
    n->priority = (int32_t)priority;
    return status;
}

static hd_status read_mode(reader *r, hd_value v, barrier_mode *out) {
    static const char *const modes[] = { "all", "settled", "group", "ordered", "first" };
    hd_value mode = hd_value_at(v, "mode");
    if (!hd_value_exists(mode)) return HD_OK;
    for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(hd_value_as_text(mode, ""), modes[i])) return *out = (barrier_mode)i, HD_OK;
    return refuse_node(r, "\"mode\" is one of all, settled, group, ordered, first");
}

static hd_status read_loop(reader *r, hd_value v, plan_node *n) {
    bool each = hd_value_exists(hd_value_at(v, "over")),
         test = hd_value_exists(hd_value_at(v, "while"));
    if (each == test) return refuse_node(r, "a LOOP_HEAD has \"over\" or \"while\"");
    if (test && hd_value_exists(hd_value_at(v, "into")))
        return refuse_node(r, "\"into\" goes with \"over\"");
    hd_status status = read_expression(r, v, "over", false, &n->code);
    return status ? status : read_expression(r, v, "while", false, &n->test);
}

static hd_status read_fan(reader *r, hd_value v, plan_node *n) {
    int64_t window = 0;
    hd_status status = read_expression(r, v, "over", false, &n->code);
    if (!status) status = read_count(r, v, "window", 1, 1000000, &window);
    n->window = (uint32_t)window;
    return status;
}

static hd_status read_sleep(reader *r, hd_value v, plan_node *n) {
    n->until = hd_value_exists(hd_value_at(v, "until"));
    if (n->until == hd_value_exists(hd_value_at(v, "seconds")))
        return refuse_node(r, "a SLEEP has \"seconds\" or \"until\"");
    return read_expression(r, v, n->until ? "until" : "seconds", true, &n->code);
}

static hd_status read_clause(reader *r, hd_value v, plan_clause *c) {
    size_t length;
    const char *unknown = unknown_key(v, "classes as", "");
    hd_value as = hd_value_at(v, "as");
    c->bind = PLAN_NONE;
    if (hd_value_kind(v) != HD_KIND_OBJECT) return refuse_node(r, "a clause is an object");
    if (unknown) return refuse_node(r, "unknown key \"%s\" in a clause", unknown);
    hd_status status = read_classes(r, hd_value_at(v, "classes"), &c->classes, &c->class_count);
    if (status || !hd_value_exists(as)) return status;
    if (!is_name(as)) return refuse_node(r, "\"as\" is a name");
    const char *name = hd_value_text(as, &length);
    return scope_slot(r->d.f->names, name, length, &c->bind);
}

/* "except:<id>": where a HANDLER keeps what it has caught. */
static hd_status caught_variable(reader *r, plan_node *n) {
    char name[NAME_MAX_SIZE + 16];
    int length = snprintf(name, sizeof name, "except:%s", n->id);
    return scope_slot(r->d.f->names, name, (size_t)length, &n->caught);
}

static hd_status read_handler(reader *r, hd_value v, plan_node *n) {
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
static hd_status read_call(reader *r, hd_value v, plan_node *n) {
    hd_status status = read_name(r, v, "function", &n->name);
    return status ? status : read_args(r, v, "args", false, n);
}

static hd_status read_child(reader *r, hd_value v, plan_node *n) {
    int64_t priority = 0;
    hd_value args = hd_value_at(v, "args");
    if (hd_value_exists(args) && hd_value_kind(args) != HD_KIND_OBJECT)
        return refuse_node(r, "\"args\" of a CHILD is an object: its inputs by name");
    hd_status status = read_name(r, v, "workflow", &n->name);
    if (!status) status = read_args(r, v, "args", true, n);
    if (!status) status = read_named(r, v, n);
    if (!status) status = read_count(r, v, "priority", -1000, 1000, &priority);
    n->priority = (int32_t)priority;
    return status;
}

static hd_status read_kind(reader *r, hd_value v, plan_node *n) {
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
        if (!strcmp(name, node_names[i])) return *out = (node_kind)i, true;
    return false;
}

/* ---- a function */

static uint32_t hash_id(const char *id, size_t length) {
    return (uint32_t)hash_bytes(id, length, 0);
}

static uint32_t find_id(const reader *r, const char *id, size_t length) {
    for (table_probe p = table_find(&r->ids, hash_id(id, length)); table_next(&r->ids, &p);) {
        const char *known = r->d.nodes.items[p.index].node->id;
        if (strlen(known) == length && !memcmp(known, id, length)) return p.index;
    }
    return PLAN_NONE;
}

static hd_status new_node(reader *r, hd_value v, plan_node **out) {
    plan_node *n = arena_alloc(&r->p->memory, sizeof *n);
    if (!n) return HD_NOMEM;
    *n = (plan_node){ .except = PLAN_NONE, .fan = PLAN_NONE, .loop = PLAN_NONE, .pair = PLAN_NONE };
    n->into.variable = n->caught = n->callee = PLAN_NONE;
    n->id = copy_text(r, hd_value_at(v, "id"));
    n->at = copy_text(r, hd_value_at(v, "at"));
    if (!n->at) n->at = "";
    if (!n->id || !vec_push(r->p->env, &r->d.nodes, ((draft_node){ .node = n }))) return HD_NOMEM;
    *out = n;
    return HD_OK;
}

static hd_status read_node(reader *r, size_t index, hd_value v) {
    char path[128];
    plan_node *n;
    snprintf(path, sizeof path, "/functions/%s/nodes/%zu", r->d.f->name, index);
    if (!is_name(hd_value_at(v, "id"))) return refuse(r, path, "a node has an \"id\"");
    size_t length;
    const char *id = hd_value_text(hd_value_at(v, "id"), &length);
    if (find_id(r, id, length) != PLAN_NONE) return refuse(r, path, "a second node \"%s\"", id);
    r->p->node_count++;
    hd_status status = new_node(r, v, &n);
    if (!status) status = table_insert(&r->ids, hash_id(id, length), r->d.nodes.count - 1);
    if (status) return status;
    const char *kind = hd_value_as_text(hd_value_at(v, "kind"), "");
    if (!kind_named(kind, &n->kind)) return refuse_node(r, "unknown kind \"%s\"", kind);
    const char *unknown = unknown_key(v, node_keys[n->kind], "id kind at comment");
    if (unknown) return refuse_node(r, "unknown key \"%s\"", unknown);
    status = read_kind(r, v, n);
    return status ? status : read_target(r, hd_value_at(v, "into"), &n->into);
}

static hd_status read_end(reader *r, const char *path, hd_value v, uint32_t *out) {
    size_t length;
    const char *id = hd_value_text(v, &length);
    *out = id ? find_id(r, id, length) : PLAN_NONE;
    return *out != PLAN_NONE
               ? HD_OK
               : refuse(r, path, "an edge names \"%s\", which is no node", id ? id : "?");
}

static hd_status read_edge(reader *r, size_t index, hd_value v) {
    char path[128];
    plan_edge e = { 0 };
    snprintf(path, sizeof path, "/functions/%s/edges/%zu", r->d.f->name, index);
    size_t count = hd_value_count(v);
    if (hd_value_kind(v) != HD_KIND_ARRAY || count < 2 || count > 4)
        return refuse(r, path, "an edge is [from, to, kind, index]");
    hd_status status = read_end(r, path, hd_value_index(v, 0), &e.from);
    if (!status) status = read_end(r, path, hd_value_index(v, 1), &e.to);
    if (status) return status;
    const char *kind = hd_value_as_text(hd_value_index(v, 2), count > 2 ? "" : "FORWARD");
    for (e.kind = 0; e.kind < EDGE_KINDS && strcmp(kind, edge_names[e.kind]) != 0;) e.kind++;
    int64_t number = hd_value_as_int(hd_value_index(v, 3), count > 3 ? -1 : 0);
    if (e.kind == EDGE_KINDS) return refuse(r, path, "unknown kind of edge \"%s\"", kind);
    if (number < 0 || number > NODES_MAX)
        return refuse(r, path, "the index of an edge is a number from 0");
    e.index = (uint32_t)number;
    return vec_push(r->p->env, &r->d.edges, e) ? HD_OK : HD_NOMEM;
}

static hd_status read_params(reader *r, hd_value params) {
    if (hd_value_exists(params) && hd_value_kind(params) != HD_KIND_ARRAY)
        return refuse(r, "/functions", "\"params\" of %s is a list of names", r->d.f->name);
    for (hd_iter it = hd_iter_of(params); hd_iter_next(&it);) {
        size_t length;
        uint32_t slot;
        const char *name = hd_value_text(it.value, &length);
        if (!is_name(it.value))
            return refuse(r, "/functions", "a parameter of %s is no name", r->d.f->name);
        hd_status status = scope_slot(r->d.f->names, name, length, &slot);
        if (status) return status;
        if (slot != it.index)
            return refuse(r, "/functions", "%s has two parameters %s", r->d.f->name, name);
    }
    r->d.f->params = (uint32_t)hd_value_count(params);
    return HD_OK;
}

/* refuse() with HD_LIMIT, and the functions as its place. */
#define refuse_size(r, ...) (refuse(r, "/functions", __VA_ARGS__), (r)->error->status = HD_LIMIT)

static hd_status read_nodes(reader *r, hd_value nodes) {
    hd_status status = HD_OK;
    if (hd_value_kind(nodes) != HD_KIND_ARRAY)
        return refuse(r, "/functions", "\"nodes\" of %s is a list", r->d.f->name);
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it) && !status;)
        status = read_node(r, it.index, it.value);
    return status;
}

static hd_status read_edges(reader *r, hd_value edges) {
    hd_status status = HD_OK;
    if (hd_value_kind(edges) != HD_KIND_ARRAY)
        return refuse(r, "/functions", "\"edges\" of %s is a list", r->d.f->name);
    for (hd_iter it = hd_iter_of(edges); hd_iter_next(&it) && !status;)
        status = read_edge(r, it.index, it.value);
    return status;
}

/* RETURN ends the first function, RET the others. */
static hd_status check_ends(reader *r) {
    bool first = r->d.f == r->p->functions;
    for (uint32_t i = 0; i < r->d.nodes.count; i++) {
        node_kind kind = r->d.nodes.items[i].node->kind;
        if (kind == (first ? NODE_RET : NODE_RETURN))
            return draft_refuse(&r->d, i, "the %s ends with %s",
                                first ? "first function" : "function", first ? "RETURN" : "RET");
    }
    return HD_OK;
}

static var_set empty_set(reader *r) {
    var_set s = { arena_alloc_array(&r->p->memory, r->d.words, sizeof *s.words) };
    if (s.words) memset(s.words, 0, r->d.words * sizeof *s.words);
    return s;
}

static void note_target(draft *d, uint32_t i, const plan_target *t) {
    if (t->variable != PLAN_NONE) var_add(d->nodes.items[i].assigns, t->variable);
    draft_note(d, i, t->assign);
}

/* Which variables each node reads and assigns; all names are known by now. */
static hd_status note_variables(reader *r) {
    draft *d = &r->d;
    d->words = d->f->names->names.count / 64 + 1;
    if ((size_t)d->nodes.count * d->words > SETS_MAX)
        return refuse_size(r, "%s has too many nodes (%u) for its variables (%u): split it",
                           d->f->name, d->nodes.count, d->f->names->names.count);
    for (uint32_t i = 0; i < d->nodes.count; i++) {
        draft_node *n = &d->nodes.items[i];
        const plan_node *p = n->node;
        n->reads = empty_set(r);
        n->assigns = empty_set(r);
        if (!n->reads.words || !n->assigns.words) return HD_NOMEM;
        draft_note(d, i, p->code);
        draft_note(d, i, p->test);
        draft_note(d, i, p->limit_key);
        for (uint32_t k = 0; k < p->arg_count; k++) draft_note(d, i, p->args[k]);
        note_target(d, i, &p->into);
        for (uint32_t k = 0; k < p->clause_count; k++)
            if (p->clauses[k].bind != PLAN_NONE) var_add(n->assigns, p->clauses[k].bind);
        if (p->kind == NODE_HANDLER) var_add(n->assigns, p->caught);
        var_add(n->assigns, d->f->result); /* the engine puts results there */
    }
    return HD_OK;
}

static hd_status read_function(reader *r, uint32_t index, hd_value v) {
    plan_function *f = &r->p->functions[index];
    const char *unknown = unknown_key(v, "name params nodes edges", "at comment");
    if (!is_name(hd_value_at(v, "name")))
        return refuse(r, "/functions", "a function has a \"name\"");
    f->name = copy_text(r, hd_value_at(v, "name"));
    if (!f->name) return HD_NOMEM;
    if (unknown) return refuse(r, "/functions", "unknown key \"%s\" in %s", unknown, f->name);
    if (plan_find_function(r->p, f->name) != index)
        return refuse(r, "/functions", "two functions %s", f->name);
    r->d = (draft){ .p = r->p, .f = f, .error = r->error };
    table_init(&r->ids, r->p->env);
    hd_status status = scope_open(r->p->env, &f->names);
    if (!status) status = read_params(r, hd_value_at(v, "params"));
    if (!status) status = scope_slot(f->names, "%result", 7, &f->result);
    if (!status) status = read_nodes(r, hd_value_at(v, "nodes"));
    if (!status) status = read_edges(r, hd_value_at(v, "edges"));
    if (!status) status = note_variables(r);
    if (!status) status = check_ends(r);
    if (!status) status = draft_check(&r->d);
    table_fini(&r->ids);
    vec_fini(r->p->env, &r->d.nodes);
    vec_fini(r->p->env, &r->d.edges);
    return status;
}

/* Before anything is made of it: what is too large costs no more than counting. */
static hd_status check_sizes(reader *r, hd_value functions) {
    size_t nodes = 0, edges = 0;
    if (hd_value_count(functions) > FUNCTIONS_MAX)
        return refuse_size(r, "%zu functions, more than %d", hd_value_count(functions),
                           FUNCTIONS_MAX);
    for (hd_iter it = hd_iter_of(functions); hd_iter_next(&it);) {
        nodes += hd_value_count(hd_value_at(it.value, "nodes"));
        edges += hd_value_count(hd_value_at(it.value, "edges"));
    }
    if (nodes > NODES_MAX) return refuse_size(r, "%zu nodes, more than %d", nodes, NODES_MAX);
    if (edges > EDGES_MAX) return refuse_size(r, "%zu edges, more than %d", edges, EDGES_MAX);
    return HD_OK;
}

static hd_status read_functions(reader *r, hd_value functions) {
    size_t count = hd_value_count(functions);
    if (hd_value_kind(functions) != HD_KIND_ARRAY || !count)
        return refuse(r, "/functions", "\"functions\" is a list of at least one");
    hd_status status = check_sizes(r, functions);
    if (status) return status;
    r->p->functions = arena_alloc_array(&r->p->memory, count, sizeof *r->p->functions);
    if (!r->p->functions) return HD_NOMEM;
    memset(r->p->functions, 0, count * sizeof *r->p->functions);
    for (hd_iter it = hd_iter_of(functions); hd_iter_next(&it) && !status;) {
        r->p->function_count = (uint32_t)it.index + 1;
        status = read_function(r, (uint32_t)it.index, it.value);
    }
    return status;
}

/* ---- the rest of the document */

static hd_status refuse_call(reader *r, const plan_function *f, const plan_node *n,
                             const char *why) {
    return refuse(r, "/functions", "node \"%s/%s\" (%s): %s", f->name, n->id,
                  n->at[0] ? n->at : "no position", why);
}

static hd_status find_callees(reader *r) {
    for (uint32_t i = 0; i < r->p->function_count; i++) {
        const plan_function *f = &r->p->functions[i];
        for (uint32_t k = 0; k < f->node_count; k++) {
            plan_node *n = &f->nodes[k];
            n->function = i;
            if (n->kind != NODE_CALL) continue;
            n->callee = plan_find_function(r->p, n->name);
            if (n->callee == PLAN_NONE)
                return refuse_call(r, f, n, "it calls a function that is not there");
            if (n->callee == 0) return refuse_call(r, f, n, "the first function cannot be called");
            if (r->p->functions[n->callee].params != n->arg_count)
                return refuse_call(r, f, n, "as many arguments as the function has parameters");
        }
    }
    return HD_OK;
}

static hd_status read_input(reader *r, hd_value v, plan_input *in) {
    char path[64];
    snprintf(path, sizeof path, "/inputs/%u", r->p->input_count);
    const char *unknown = unknown_key(v, "name default schema", "at comment");
    hd_value schema = hd_value_at(v, "schema");
    if (!is_name(hd_value_at(v, "name"))) return refuse(r, path, "an input has a \"name\"");
    if (unknown) return refuse(r, path, "unknown key \"%s\"", unknown);
    in->name = copy_text(r, hd_value_at(v, "name"));
    if (!in->name) return HD_NOMEM;
    in->otherwise = hd_value_ref(hd_value_at(v, "default"));
    r->p->input_count++;
    return hd_value_exists(schema) ? hd_schema_compile(r->p->heap, schema, &in->schema, r->error)
                                   : HD_OK;
}

static hd_status read_inputs(reader *r, hd_value inputs) {
    hd_status status = HD_OK;
    size_t count = hd_value_count(inputs);
    if (hd_value_exists(inputs) && hd_value_kind(inputs) != HD_KIND_ARRAY)
        return refuse(r, "/inputs", "\"inputs\" is a list");
    r->p->inputs = arena_alloc_array(&r->p->memory, count + 1, sizeof *r->p->inputs);
    if (!r->p->inputs) return HD_NOMEM;
    memset(r->p->inputs, 0, (count + 1) * sizeof *r->p->inputs);
    for (hd_iter it = hd_iter_of(inputs); hd_iter_next(&it) && !status;)
        status = read_input(r, it.value, &r->p->inputs[it.index]);
    return status;
}

/* Parameters of the first function are the inputs, in this order. */
static hd_status check_inputs(reader *r) {
    const plan_function *f = &r->p->functions[0];
    bool same = f->params == r->p->input_count;
    for (uint32_t i = 0; i < r->p->input_count && same; i++)
        same = !strcmp(f->names->names.items[i], r->p->inputs[i].name);
    return same ? HD_OK : refuse(r, "/inputs", "the parameters of %s are not the inputs", f->name);
}

static hd_status read_journal(reader *r, hd_value v) {
    static const char *const levels[] = { "none", "steps", "nodes" };
    if (!hd_value_exists(v)) return HD_OK;
    for (uint32_t i = 0; i < 3; i++)
        if (!strcmp(hd_value_as_text(v, ""), levels[i]))
            return r->p->journal = (journal_level)i, HD_OK;
    return refuse(r, "/journal", "\"journal\" is one of none, steps, nodes");
}

/* ---- keep */

static hd_status read_keep(reader *r, hd_value v) {
    if (!hd_value_exists(v)) return HD_OK;
    const char *unknown = unknown_key(v, "seconds most", "at comment");
    if (hd_value_kind(v) != HD_KIND_OBJECT) return refuse(r, "/keep", "\"keep\" is an object");
    if (unknown) return refuse(r, "/keep", "unknown key \"%s\"", unknown);
    hd_value seconds = hd_value_at(v, "seconds"), most = hd_value_at(v, "most");
    double s = hd_value_as_double(seconds, hd_value_exists(seconds) ? -1 : 0);
    int64_t n = hd_value_as_int(most, hd_value_exists(most) ? -1 : 0);
    if (!(s >= 0 && s <= 1e11)) return refuse(r, "/keep/seconds", "no number of seconds");
    if (n < 0) return refuse(r, "/keep/most", "no number of instances");
    r->p->keep_is_set = true;
    r->p->keep_ms = (uint64_t)ceil(s * 1000);
    r->p->keep_most = (uint64_t)n;
    return HD_OK;
}

/* ---- classes */

static hd_status read_class_kind(reader *r, const char *path, hd_value v, class_info *info) {
    static const char *const kinds[] = { "exception", "record", "tuple", "enum" };
    const char *name = hd_value_as_text(hd_value_at(v, "kind"), "");
    for (uint32_t i = 0; i < 4; i++)
        if (!strcmp(name, kinds[i])) return info->kind = (uint8_t)(CLASS_EXCEPTION + i), HD_OK;
    return refuse(r, path, "the \"kind\" of a class is one of exception, record, tuple, enum");
}

static hd_status read_class_flags(reader *r, const char *path, hd_value v, class_info *info) {
    static const struct {
        const char *key;
        uint8_t flag;
    } flags[] = { { "frozen", CLASS_FROZEN },
                  { "open", CLASS_OPEN },
                  { "by_id", CLASS_BY_ID },
                  { "partial", CLASS_PARTIAL },
                  { "own", CLASS_OWN } };
    for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        hd_value flag = hd_value_at(v, flags[i].key);
        if (hd_value_exists(flag) && hd_value_kind(flag) != HD_KIND_BOOL)
            return refuse(r, path, "\"%s\" is true or false", flags[i].key);
        if (hd_value_as_bool(flag, false)) info->flags |= flags[i].flag;
    }
    return HD_OK;
}

/* The class above: of exceptions Exception where it is not given, of enums Enum, of named tuples tuple. */
static hd_status read_class_base(reader *r, const char *path, hd_value v, class_info *info) {
    size_t length;
    const char *name = hd_value_text(hd_value_at(v, "base"), &length);
    bool exception = info->kind == CLASS_EXCEPTION;
    info->base = exception                   ? CLASS_Exception
                 : info->kind == CLASS_ENUM  ? CLASS_Enum
                 : info->kind == CLASS_TUPLE ? CLASS_tuple
                                             : CLASS_object;
    if (!name) return HD_OK;
    info->base = classes_find(r->p->w->classes, name, length);
    if (info->base == CLASS_NONE ||
        exception != class_is(r->p->w->classes, info->base, CLASS_BaseException))
        return refuse(r, path, "\"%s\" cannot be the base of this class", name);
    return HD_OK;
}

static hd_status read_class_fields(reader *r, const char *path, hd_value v, class_info *info) {
    hd_value fields = hd_value_at(v, "fields");
    info->fields_count = info->required = (uint32_t)hd_value_count(fields);
    if (!hd_value_exists(fields)) return HD_OK;
    if (hd_value_kind(fields) != HD_KIND_ARRAY || info->fields_count > 256)
        return refuse(r, path, "\"fields\" is a list of at most 256 names");
    info->fields = arena_alloc_array(&r->p->memory, info->fields_count + 1, sizeof *info->fields);
    if (!info->fields) return HD_NOMEM;
    for (hd_iter it = hd_iter_of(fields); hd_iter_next(&it);) {
        if (!is_name(it.value)) return refuse(r, path, "a field is a name");
        info->fields[it.index] = (char *)(uintptr_t)copy_text(r, it.value);
        if (!info->fields[it.index]) return HD_NOMEM;
    }
    return HD_OK;
}

static hd_status read_class(reader *r, size_t index, hd_value v) {
    char path[64];
    uint32_t number;
    class_info info = { 0 };
    snprintf(path, sizeof path, "/classes/%zu", index);
    const char *unknown =
        unknown_key(v, "name kind base fields frozen open by_id partial own", "at comment");
    if (!is_name(hd_value_at(v, "name"))) return refuse(r, path, "a class has a \"name\"");
    if (unknown) return refuse(r, path, "unknown key \"%s\"", unknown);
    info.name = (char *)(uintptr_t)copy_text(r, hd_value_at(v, "name"));
    if (!info.name) return HD_NOMEM;
    hd_status status = read_class_kind(r, path, v, &info);
    if (!status) status = read_class_flags(r, path, v, &info);
    if (!status) status = read_class_base(r, path, v, &info);
    if (!status) status = read_class_fields(r, path, v, &info);
    if (!status) status = classes_define(r->p->w->classes, &info, &number);
    if (status == HD_EXISTS)
        return refuse(r, path, "there is another class \"%s\" of another kind", info.name);
    if (status == HD_LIMIT) return refuse(r, path, "too many classes");
    return status;
}

static hd_status read_class_list(reader *r, hd_value all) {
    hd_status status = HD_OK;
    if (!hd_value_exists(all)) return HD_OK;
    if (hd_value_kind(all) != HD_KIND_ARRAY) return refuse(r, "/classes", "\"classes\" is a list");
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it) && !status;)
        status = read_class(r, it.index, it.value);
    return status;
}

static hd_status read_document(reader *r, hd_value ir) {
    const char *unknown =
        unknown_key(ir, "heddle name inputs functions journal keep classes", "at comment");
    int64_t format = hd_value_as_int(hd_value_at(ir, "heddle"), 0);
    if (hd_value_kind(ir) != HD_KIND_OBJECT) return refuse(r, "", "a workflow is an object");
    if (format != IR_FORMAT)
        return refuse(r, "/heddle", "this library reads IR of version %d, not %lld", IR_FORMAT,
                      (long long)format);
    if (unknown) return refuse(r, "", "unknown key \"%s\"", unknown);
    if (!is_workflow_name(hd_value_at(ir, "name")))
        return refuse(r, "/name", "a workflow has a \"name\" of letters, digits, '_', '-' and '.'");
    r->p->name = copy_text(r, hd_value_at(ir, "name"));
    if (!r->p->name) return HD_NOMEM;
    hd_status status = read_journal(r, hd_value_at(ir, "journal"));
    if (!status) status = read_keep(r, hd_value_at(ir, "keep"));
    if (!status) status = read_inputs(r, hd_value_at(ir, "inputs"));
    if (!status) status = read_class_list(r, hd_value_at(ir, "classes"));
    if (!status) status = read_functions(r, hd_value_at(ir, "functions"));
    if (!status) status = find_callees(r);
    return status ? status : check_inputs(r);
}

/* ---- version */

/* A copy without the keys that say nothing about what is done. Depth is bounded by the heap's limits. */
static hd_value without_positions(hd_pool *pool, hd_value v) {
    hd_kind kind = hd_value_kind(v);
    if (kind != HD_KIND_ARRAY && kind != HD_KIND_OBJECT) return v;
    hd_builder *b;
    hd_status status = hd_builder_open(pool, kind, &b);
    if (status) return hd_failed(status);
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        if (kind == HD_KIND_ARRAY) hd_builder_add(b, without_positions(pool, it.value));
        else if (strcmp(it.key, "at") != 0 && strcmp(it.key, "comment") != 0)
            hd_builder_put_n(b, it.key, it.key_length, without_positions(pool, it.value));
    }
    return hd_builder_close(b);
}

static hd_status find_version(plan *p) {
    hd_pool *pool;
    hd_status status = hd_pool_open(p->heap, &pool);
    if (status) return status;
    hd_value plain = without_positions(pool, p->source);
    status = hd_value_status(plain);
    if (!status) status = hd_id_of(plain, p->version);
    hd_pool_close(pool);
    return status;
}

/* ---- life */

/* Of an instance that runs: inputs and the time of its start are replaced. */
static hd_status make_record(plan *p) {
    hd_pool *pool;
    hd_status status = hd_pool_open(p->heap, &pool);
    if (status) return status;
    hd_value r = hd_object_set(pool, hd_object(), "workflow", hd_string(pool, p->name));
    r = hd_object_set(pool, r, "version", hd_string(pool, p->version));
    r = hd_object_set(pool, r, "status", hd_string(pool, "running"));
    r = hd_object_set(pool, r, "started", hd_int(pool, 0));
    r = hd_object_set(pool, r, "input", hd_object());
    status = hd_value_status(r);
    if (!status) p->record = hd_value_ref(r);
    hd_pool_close(pool);
    return status;
}

/* ---- what walks rely on */

static void check_edges(const plan_function *f, const plan_node *n) {
    uint32_t from = (uint32_t)(n - f->nodes);
    assert(n->first_out + n->out_count <= f->edge_count || !n->out_count);
    for (uint32_t i = 0; i < n->out_count; i++) {
        const plan_edge *e = plan_out(f, n, i);
        assert(e->from == from && e->to < f->node_count && e->kind != EDGE_EXCEPT);
        assert((e->kind == EDGE_BACK) == (e->to <= from));
        (void)e;
    }
    (void)from;
}

static void check_node(const plan *p, const plan_function *f, const plan_node *n) {
    uint32_t count = f->node_count;
    assert(&p->functions[n->function] == f && n->id && n->kind < NODE_KINDS);
    assert(n->except == PLAN_NONE ||
           (n->except < count && f->nodes[n->except].kind == NODE_HANDLER));
    assert(n->fan == PLAN_NONE || (n->fan < count && f->nodes[n->fan].kind == NODE_FAN_HEAD));
    assert(n->loop == PLAN_NONE || (n->loop < count && f->nodes[n->loop].kind == NODE_LOOP_HEAD));
    assert(n->kind != NODE_FAN_HEAD || (n->pair < count && f->nodes[n->pair].kind == NODE_BARRIER));
    assert(n->kind != NODE_FAN_HEAD || f->nodes[n->pair].pair == (uint32_t)(n - f->nodes));
    assert(n->kind != NODE_CALL || n->callee < p->function_count);
    assert(n->kind != NODE_HANDLER || n->caught != PLAN_NONE);
    assert((n->kind != NODE_ACTION && n->kind != NODE_CHILD && n->kind != NODE_WAIT) || n->name);
    check_edges(f, n);
    (void)p, (void)count;
}

static void plan_check(const plan *p) {
    assert(p->function_count && p->refs == 1);
    for (uint32_t i = 0; i < p->function_count; i++) {
        const plan_function *f = &p->functions[i];
        assert(f->entry < f->node_count && f->nodes[f->entry].kind == NODE_ENTRY);
        assert(f->params <= f->names->names.count && f->result < f->names->names.count);
        for (uint32_t k = 0; k < f->node_count; k++) check_node(p, f, &f->nodes[k]);
    }
}

hd_status plan_make(world *w, hd_heap *heap, hd_value ir, plan **out, hd_error *error) {
    plan *p = env_new0(&w->env, sizeof *p);
    hd_error ignored;
    *out = NULL;
    if (!p) return HD_NOMEM;
    *p = (plan){ .env = &w->env, .heap = heap, .w = w, .refs = 1, .source = hd_value_ref(ir) };
    arena_init(&p->memory, p->env);
    reader r = { .p = p, .error = error ? error : &ignored };
    hd_status status = read_document(&r, ir);
    if (!status) status = find_version(p);
    if (!status) status = make_record(p);
    if (status) {
        plan_unref(p);
        return status;
    }
    plan_check(p);
    *out = p;
    return HD_OK;
}

plan *plan_ref(plan *p) {
    p->refs++;
    return p;
}

void plan_unref(plan *p) {
    if (!p) return;
    assert(p->refs);
    if (--p->refs) return;
    for (uint32_t i = 0; i < p->codes.count; i++) code_free(p->codes.items[i]);
    vec_fini(p->env, &p->codes);
    for (uint32_t i = 0; i < p->function_count; i++) scope_close(p->functions[i].names);
    for (uint32_t i = 0; i < p->input_count; i++) {
        hd_value_unref(p->inputs[i].otherwise);
        hd_schema_close(p->inputs[i].schema);
    }
    hd_value_unref(p->source);
    hd_value_unref(p->record);
    arena_fini(&p->memory);
    env_free(p->env, p, sizeof *p);
}

uint32_t plan_find_function(const plan *p, const char *name) {
    for (uint32_t i = 0; i < p->function_count; i++)
        if (p->functions[i].name && !strcmp(p->functions[i].name, name)) return i;
    return PLAN_NONE;
}

uint32_t plan_find_node(const plan_function *f, const char *id) {
    for (uint32_t i = 0; i < f->node_count; i++)
        if (!strcmp(f->nodes[i].id, id)) return i;
    return PLAN_NONE;
}

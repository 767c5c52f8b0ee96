/* ir.c -- from the IR (docs/IR.md) to a plan.
 *
 * Reads the JSON once, function by function: nodes with their code, then edges by id. Every key is looked
 * at; one that is not known is refused, so that a misspelt option never passes in silence. What single nodes
 * have is read in ir_node.c; what follows from the edges is draft.c's.
 *
 * Cost: O(IR), plus a table of ids for each function. */
#include "workflow/ir.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/text.h"
#include <math.h>
#include <stdio.h>

#define EDGES_MAX     1000000
#define FUNCTIONS_MAX 10000
#define SETS_MAX                                                                                   \
    ((size_t)4 << 20) /* words of the sets of variables that the nodes of a function read */
#define IR_FORMAT 1

/* ---- refusing */

hd_status ir_refuse(ir_reader *r, const char *path, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    env_error_v(r->error, HD_SYNTAX, format, arguments);
    va_end(arguments);
    if (r->error) snprintf(r->error->path, sizeof r->error->path, "%s", path);
    return HD_SYNTAX;
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

const char *ir_unknown_key(hd_value object, const char *keys, const char *more) {
    for (hd_iter it = hd_iter_of(object); hd_iter_next(&it);)
        if (!key_is_among(keys, it.key, it.key_length) &&
            !key_is_among(more, it.key, it.key_length))
            return it.key;
    return NULL;
}

/* ---- texts */

const char *ir_copy_text(ir_reader *r, hd_value v) {
    size_t length;
    const char *from = hd_value_text(v, &length);
    return from ? arena_copy(&r->p->memory, from, length) : NULL;
}

bool ir_is_name(hd_value v) {
    size_t length;
    const char *name = hd_value_text(v, &length);
    return name && length && length <= IR_NAME_MAX && !utf8_has_control(name, length);
}

bool ir_is_workflow_name(hd_value v) {
    size_t length;
    const char *name = hd_value_text(v, &length);
    return name && plan_name_is_good(name, length);
}

/* ---- a function */

static uint32_t hash_id(const char *id, size_t length) {
    return (uint32_t)hash_bytes(id, length, 0);
}

static uint32_t find_id(const ir_reader *r, const char *id, size_t length) {
    for (table_probe p = table_find(&r->ids, hash_id(id, length)); table_next(&r->ids, &p);) {
        const char *known = r->d.nodes.items[p.index].node->id;
        if (strlen(known) == length && !memcmp(known, id, length)) return p.index;
    }
    return PLAN_NONE;
}

static hd_status new_node(ir_reader *r, hd_value v, plan_node **out) {
    plan_node *n = arena_alloc(&r->p->memory, sizeof *n);
    if (!n) return HD_NOMEM;
    *n = (plan_node){ .except = PLAN_NONE, .fan = PLAN_NONE, .loop = PLAN_NONE, .pair = PLAN_NONE };
    n->into.variable = n->caught = n->callee = PLAN_NONE;
    n->id = ir_copy_text(r, hd_value_at(v, "id"));
    n->at = ir_copy_text(r, hd_value_at(v, "at"));
    if (!n->at) n->at = "";
    if (!n->id || !vec_push(r->p->env, &r->d.nodes, ((draft_node){ .node = n }))) return HD_NOMEM;
    *out = n;
    return HD_OK;
}

static hd_status read_node(ir_reader *r, size_t index, hd_value v) {
    char path[128];
    plan_node *n;
    snprintf(path, sizeof path, "/functions/%s/nodes/%zu", r->d.f->name, index);
    if (!ir_is_name(hd_value_at(v, "id")))
        return ir_refuse(r, path,
                         "a node has an \"id\" of 1 to %d bytes, without control characters",
                         IR_NAME_MAX);
    size_t length;
    const char *id = hd_value_text(hd_value_at(v, "id"), &length);
    if (find_id(r, id, length) != PLAN_NONE) return ir_refuse(r, path, "a second node \"%s\"", id);
    r->p->node_count++;
    hd_status status = new_node(r, v, &n);
    if (!status) status = table_insert(&r->ids, hash_id(id, length), r->d.nodes.count - 1);
    return status ? status : ir_read_node(r, v, n);
}

static hd_status read_end(ir_reader *r, const char *path, hd_value v, uint32_t *out) {
    size_t length;
    const char *id = hd_value_text(v, &length);
    *out = id ? find_id(r, id, length) : PLAN_NONE;
    return *out != PLAN_NONE
               ? HD_OK
               : ir_refuse(r, path, "an edge names \"%s\", which is no node", id ? id : "?");
}

static hd_status read_edge(ir_reader *r, size_t index, hd_value v) {
    char path[128];
    plan_edge e = { 0 };
    snprintf(path, sizeof path, "/functions/%s/edges/%zu", r->d.f->name, index);
    size_t count = hd_value_count(v);
    if (hd_value_kind(v) != HD_KIND_ARRAY || count < 2 || count > 4)
        return ir_refuse(r, path, "an edge is [from, to, kind, index]");
    hd_status status = read_end(r, path, hd_value_index(v, 0), &e.from);
    if (!status) status = read_end(r, path, hd_value_index(v, 1), &e.to);
    if (status) return status;
    const char *kind = hd_value_as_text(hd_value_index(v, 2), count > 2 ? "" : "FORWARD");
    for (e.kind = 0; e.kind < EDGE_KINDS && strcmp(kind, edge_kind_name(e.kind)) != 0;) e.kind++;
    int64_t number = hd_value_as_int(hd_value_index(v, 3), count > 3 ? -1 : 0);
    if (e.kind == EDGE_KINDS) return ir_refuse(r, path, "unknown kind of edge \"%s\"", kind);
    if (number < 0 || number > IR_NODES_MAX)
        return ir_refuse(r, path, "the index of an edge is a number from 0");
    if (number && !edge_has_index(e.kind))
        return ir_refuse(r, path, "a %s edge has no index", kind);
    e.index = (uint32_t)number;
    return vec_push(r->p->env, &r->d.edges, e) ? HD_OK : HD_NOMEM;
}

static hd_status read_params(ir_reader *r, hd_value params) {
    if (hd_value_exists(params) && hd_value_kind(params) != HD_KIND_ARRAY)
        return ir_refuse(r, "/functions", "\"params\" of %s is a list of names", r->d.f->name);
    for (hd_iter it = hd_iter_of(params); hd_iter_next(&it);) {
        size_t length;
        uint32_t slot;
        const char *name = hd_value_text(it.value, &length);
        if (!ir_is_name(it.value))
            return ir_refuse(r, "/functions", "a parameter of %s is no name", r->d.f->name);
        hd_status status = scope_slot(r->d.f->names, name, length, &slot);
        if (status) return status;
        if (slot != it.index)
            return ir_refuse(r, "/functions", "%s has two parameters %s", r->d.f->name, name);
    }
    r->d.f->params = (uint32_t)hd_value_count(params);
    return HD_OK;
}

/* ir_refuse() with HD_LIMIT, and the functions as its place. */
#define refuse_size(r, ...) (ir_refuse(r, "/functions", __VA_ARGS__), (r)->error->status = HD_LIMIT)

static hd_status read_nodes(ir_reader *r, hd_value nodes) {
    hd_status status = HD_OK;
    if (hd_value_kind(nodes) != HD_KIND_ARRAY)
        return ir_refuse(r, "/functions", "\"nodes\" of %s is a list", r->d.f->name);
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it) && !status;)
        status = read_node(r, it.index, it.value);
    return status;
}

static hd_status read_edges(ir_reader *r, hd_value edges) {
    hd_status status = HD_OK;
    if (hd_value_kind(edges) != HD_KIND_ARRAY)
        return ir_refuse(r, "/functions", "\"edges\" of %s is a list", r->d.f->name);
    for (hd_iter it = hd_iter_of(edges); hd_iter_next(&it) && !status;)
        status = read_edge(r, it.index, it.value);
    return status;
}

/* RETURN ends the first function, RET the others. */
static hd_status check_ends(ir_reader *r) {
    bool first = r->d.f == r->p->functions;
    for (uint32_t i = 0; i < r->d.nodes.count; i++) {
        node_kind kind = r->d.nodes.items[i].node->kind;
        if (kind == (first ? NODE_RET : NODE_RETURN))
            return draft_refuse(&r->d, i, "the %s ends with %s",
                                first ? "first function" : "function", first ? "RETURN" : "RET");
    }
    return HD_OK;
}

static var_set empty_set(ir_reader *r) {
    var_set s = { arena_alloc_array(&r->p->memory, r->d.words, sizeof *s.words) };
    if (s.words) memset(s.words, 0, r->d.words * sizeof *s.words);
    return s;
}

static void note_target(draft *d, uint32_t i, const plan_target *t) {
    if (t->variable != PLAN_NONE) var_add(d->nodes.items[i].assigns, t->variable);
    draft_note(d, i, t->assign);
}

/* Which variables each node reads and assigns; all names are known by now. */
static hd_status note_variables(ir_reader *r) {
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
        n->needs = empty_set(r);
        if (!n->reads.words || !n->assigns.words || !n->needs.words) return HD_NOMEM;
        draft_note(d, i, p->code);
        draft_note(d, i, p->test);
        draft_note(d, i, p->limit_key);
        for (uint32_t k = 0; k < p->arg_count; k++) draft_note(d, i, p->args[k]);
        for (uint32_t w = 0; w < d->words; w++)
            n->needs.words[w] = n->reads.words[w] & ~n->assigns.words[w];
        note_target(d, i, &p->into);
        for (uint32_t k = 0; k < p->clause_count; k++)
            if (p->clauses[k].bind != PLAN_NONE) var_add(n->assigns, p->clauses[k].bind);
        if (p->kind == NODE_HANDLER) var_add(n->assigns, p->caught);
        var_add(n->assigns, d->f->result); /* the engine puts results there */
    }
    return HD_OK;
}

static hd_status read_function(ir_reader *r, uint32_t index, hd_value v) {
    plan_function *f = &r->p->functions[index];
    const char *unknown = ir_unknown_key(v, "name params nodes edges", "at comment");
    if (!ir_is_name(hd_value_at(v, "name")))
        return ir_refuse(r, "/functions", "a function has a \"name\"");
    f->name = ir_copy_text(r, hd_value_at(v, "name"));
    if (!f->name) return HD_NOMEM;
    if (unknown) return ir_refuse(r, "/functions", "unknown key \"%s\" in %s", unknown, f->name);
    if (plan_find_function(r->p, f->name) != index)
        return ir_refuse(r, "/functions", "two functions %s", f->name);
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
static hd_status check_sizes(ir_reader *r, hd_value functions) {
    size_t nodes = 0, edges = 0;
    if (hd_value_count(functions) > FUNCTIONS_MAX)
        return refuse_size(r, "%zu functions, more than %d", hd_value_count(functions),
                           FUNCTIONS_MAX);
    for (hd_iter it = hd_iter_of(functions); hd_iter_next(&it);) {
        nodes += hd_value_count(hd_value_at(it.value, "nodes"));
        edges += hd_value_count(hd_value_at(it.value, "edges"));
    }
    if (nodes > IR_NODES_MAX) return refuse_size(r, "%zu nodes, more than %d", nodes, IR_NODES_MAX);
    if (edges > EDGES_MAX) return refuse_size(r, "%zu edges, more than %d", edges, EDGES_MAX);
    return HD_OK;
}

static hd_status read_functions(ir_reader *r, hd_value functions) {
    size_t count = hd_value_count(functions);
    if (hd_value_kind(functions) != HD_KIND_ARRAY || !count)
        return ir_refuse(r, "/functions", "\"functions\" is a list of at least one");
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

static hd_status refuse_call(ir_reader *r, const plan_function *f, const plan_node *n,
                             const char *why) {
    bool placed = n->at[0];
    return ir_refuse(r, "/functions", "node \"%s/%s\"%s%s%s: %s", f->name, n->id,
                     placed ? " (" : "", n->at, placed ? ")" : "", why);
}

static hd_status refuse_unknown(ir_reader *r, const plan_function *f, const plan_node *n) {
    char why[160];
    snprintf(why, sizeof why, "the workflow has no function \"%.100s\"", n->name);
    return refuse_call(r, f, n, why);
}

static hd_status refuse_count(ir_reader *r, const plan_function *f, const plan_node *n) {
    char why[200];
    uint32_t takes = r->p->functions[n->callee].params;
    snprintf(why, sizeof why, "%.100s takes %u argument%s, %u %s given", n->name, takes,
             takes == 1 ? "" : "s", n->arg_count, n->arg_count == 1 ? "is" : "are");
    return refuse_call(r, f, n, why);
}

static hd_status find_callees(ir_reader *r) {
    for (uint32_t i = 0; i < r->p->function_count; i++) {
        const plan_function *f = &r->p->functions[i];
        for (uint32_t k = 0; k < f->node_count; k++) {
            plan_node *n = &f->nodes[k];
            n->function = i;
            if (n->kind != NODE_CALL) continue;
            n->callee = plan_find_function(r->p, n->name);
            if (n->callee == PLAN_NONE) return refuse_unknown(r, f, n);
            if (n->callee == 0) return refuse_call(r, f, n, "the first function cannot be called");
            if (r->p->functions[n->callee].params != n->arg_count) return refuse_count(r, f, n);
        }
    }
    return HD_OK;
}

/* The place within the schema, or within the default, is told behind that of the input. */
static hd_status misplace(ir_reader *r, hd_status status, const char *path, const char *part) {
    char inner[sizeof r->error->path];
    if (status == HD_NOMEM) return status;
    memcpy(inner, r->error->path, sizeof inner);
    snprintf(r->error->path, sizeof r->error->path, "%.24s/%.7s%.90s", path, part, inner);
    r->error->status = HD_SYNTAX;
    return HD_SYNTAX;
}

static hd_status read_schema(ir_reader *r, const char *path, hd_value schema, plan_input *in) {
    if (!hd_value_exists(schema)) return HD_OK;
    hd_status status = hd_schema_compile(r->p->heap, schema, &in->schema, r->error);
    if (status) return misplace(r, status, path, "schema");
    if (hd_value_exists(in->otherwise))
        status = hd_schema_validate(in->schema, in->otherwise, r->error);
    return status ? misplace(r, status, path, "default") : HD_OK;
}

static hd_status read_input(ir_reader *r, hd_value v, plan_input *in) {
    char path[64];
    snprintf(path, sizeof path, "/inputs/%u", r->p->input_count);
    const char *unknown = ir_unknown_key(v, "name default schema", "at comment");
    if (!ir_is_name(hd_value_at(v, "name"))) return ir_refuse(r, path, "an input has a \"name\"");
    if (unknown) return ir_refuse(r, path, "unknown key \"%s\"", unknown);
    in->name = ir_copy_text(r, hd_value_at(v, "name"));
    if (!in->name) return HD_NOMEM;
    in->otherwise = hd_value_ref(hd_value_at(v, "default"));
    r->p->input_count++;
    return read_schema(r, path, hd_value_at(v, "schema"), in);
}

static hd_status read_inputs(ir_reader *r, hd_value inputs) {
    hd_status status = HD_OK;
    size_t count = hd_value_count(inputs);
    if (hd_value_exists(inputs) && hd_value_kind(inputs) != HD_KIND_ARRAY)
        return ir_refuse(r, "/inputs", "\"inputs\" is a list");
    r->p->inputs = arena_alloc_array(&r->p->memory, count + 1, sizeof *r->p->inputs);
    if (!r->p->inputs) return HD_NOMEM;
    memset(r->p->inputs, 0, (count + 1) * sizeof *r->p->inputs);
    for (hd_iter it = hd_iter_of(inputs); hd_iter_next(&it) && !status;)
        status = read_input(r, it.value, &r->p->inputs[it.index]);
    return status;
}

/* Parameters of the first function are the inputs, in this order. */
static hd_status check_inputs(ir_reader *r) {
    const plan_function *f = &r->p->functions[0];
    bool same = f->params == r->p->input_count;
    for (uint32_t i = 0; i < r->p->input_count && same; i++)
        same = !strcmp(f->names->names.items[i], r->p->inputs[i].name);
    return same ? HD_OK
                : ir_refuse(r, "/inputs", "the parameters of %s are not the inputs", f->name);
}

static hd_status read_journal(ir_reader *r, hd_value v) {
    static const char *const levels[] = { "none", "steps", "nodes" };
    if (!hd_value_exists(v)) return HD_OK;
    for (uint32_t i = 0; i < 3; i++)
        if (!strcmp(hd_value_as_text(v, ""), levels[i]))
            return r->p->journal = (journal_level)i, HD_OK;
    return ir_refuse(r, "/journal", "\"journal\" is one of none, steps, nodes");
}

/* ---- keep */

static hd_status read_keep(ir_reader *r, hd_value v) {
    if (!hd_value_exists(v)) return HD_OK;
    const char *unknown = ir_unknown_key(v, "seconds most", "at comment");
    if (hd_value_kind(v) != HD_KIND_OBJECT) return ir_refuse(r, "/keep", "\"keep\" is an object");
    if (unknown) return ir_refuse(r, "/keep", "unknown key \"%s\"", unknown);
    hd_value seconds = hd_value_at(v, "seconds"), most = hd_value_at(v, "most");
    double s = hd_value_as_double(seconds, hd_value_exists(seconds) ? -1 : 0);
    int64_t n = hd_value_as_int(most, hd_value_exists(most) ? -1 : 0);
    if (!(s >= 0 && s <= 1e11)) return ir_refuse(r, "/keep/seconds", "no number of seconds");
    if (n < 0) return ir_refuse(r, "/keep/most", "no number of instances");
    r->p->keep_is_set = true;
    r->p->keep_ms = (uint64_t)ceil(s * 1000);
    r->p->keep_most = (uint64_t)n;
    return HD_OK;
}

/* ---- classes */

static hd_status read_class_kind(ir_reader *r, const char *path, hd_value v, class_info *info) {
    static const char *const kinds[] = { "exception", "record", "tuple", "enum" };
    const char *name = hd_value_as_text(hd_value_at(v, "kind"), "");
    for (uint32_t i = 0; i < 4; i++)
        if (!strcmp(name, kinds[i])) return info->kind = (uint8_t)(CLASS_EXCEPTION + i), HD_OK;
    return ir_refuse(r, path, "the \"kind\" of a class is one of exception, record, tuple, enum");
}

static hd_status read_class_flags(ir_reader *r, const char *path, hd_value v, class_info *info) {
    static const struct {
        const char *key;
        uint16_t flag;
    } flags[] = { { "frozen", CLASS_FROZEN },
                  { "open", CLASS_OPEN },
                  { "by_id", CLASS_BY_ID },
                  { "partial", CLASS_PARTIAL },
                  { "own", CLASS_OWN | CLASS_OWN_TEXT | CLASS_OWN_EQUAL | CLASS_OWN_TRUTH },
                  { "own_operators", CLASS_OWN },
                  { "own_text", CLASS_OWN_TEXT },
                  { "own_equal", CLASS_OWN_EQUAL },
                  { "own_truth", CLASS_OWN_TRUTH },
                  { "own_set", CLASS_OWN_SET },
                  { "own_new", CLASS_OWN_NEW },
                  { "bare", CLASS_BARE },
                  { "bare_text", CLASS_BARE_TEXT } };
    for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        hd_value flag = hd_value_at(v, flags[i].key);
        if (hd_value_exists(flag) && hd_value_kind(flag) != HD_KIND_BOOL)
            return ir_refuse(r, path, "\"%s\" is true or false", flags[i].key);
        if (hd_value_as_bool(flag, false)) info->flags |= flags[i].flag;
    }
    return HD_OK;
}

/* The class above: of exceptions Exception where it is not given, of enums Enum, of named tuples tuple. */
static hd_status read_class_base(ir_reader *r, const char *path, hd_value v, class_info *info) {
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
        return ir_refuse(r, path, "\"%s\" cannot be the base of this class", name);
    return HD_OK;
}

/* The other classes above, of one that has several. */
static hd_status read_class_more(ir_reader *r, const char *path, hd_value v, class_info *info) {
    hd_value more = hd_value_at(v, "more");
    if (!hd_value_exists(more)) return HD_OK;
    if (hd_value_kind(more) != HD_KIND_ARRAY || hd_value_count(more) > 64)
        return ir_refuse(r, path, "\"more\" is a list of at most 64 classes");
    info->more = arena_alloc_array(&r->p->memory, hd_value_count(more) + 1, sizeof *info->more);
    if (!info->more) return HD_NOMEM;
    for (hd_iter it = hd_iter_of(more); hd_iter_next(&it);) {
        size_t length;
        const char *name = hd_value_text(it.value, &length);
        uint32_t above = name ? classes_find(r->p->w->classes, name, length) : CLASS_NONE;
        if (above == CLASS_NONE) return ir_refuse(r, path, "\"more\" names an unknown class");
        info->more[info->more_count++] = above;
    }
    return HD_OK;
}

static hd_status read_class_fields(ir_reader *r, const char *path, hd_value v, class_info *info) {
    hd_value fields = hd_value_at(v, "fields");
    info->fields_count = info->required = (uint32_t)hd_value_count(fields);
    if (!hd_value_exists(fields)) return HD_OK;
    if (hd_value_kind(fields) != HD_KIND_ARRAY || info->fields_count > 256)
        return ir_refuse(r, path, "\"fields\" is a list of at most 256 names");
    info->fields = arena_alloc_array(&r->p->memory, info->fields_count + 1, sizeof *info->fields);
    if (!info->fields) return HD_NOMEM;
    for (hd_iter it = hd_iter_of(fields); hd_iter_next(&it);) {
        if (!ir_is_name(it.value)) return ir_refuse(r, path, "a field is a name");
        info->fields[it.index] = (char *)(uintptr_t)ir_copy_text(r, it.value);
        if (!info->fields[it.index]) return HD_NOMEM;
        for (size_t i = 0; i < it.index; i++)
            if (!strcmp(info->fields[i], info->fields[it.index]))
                return ir_refuse(r, path, "two fields \"%s\"", info->fields[i]);
    }
    return HD_OK;
}

static hd_status read_class(ir_reader *r, size_t index, hd_value v) {
    char path[64];
    uint32_t number;
    class_info info = { 0 };
    snprintf(path, sizeof path, "/classes/%zu", index);
    const char *unknown = ir_unknown_key(
        v,
        "name kind base more fields frozen open by_id partial own own_operators own_text "
        "own_equal own_truth own_set own_new bare bare_text",
        "at comment");
    if (!ir_is_name(hd_value_at(v, "name"))) return ir_refuse(r, path, "a class has a \"name\"");
    if (unknown) return ir_refuse(r, path, "unknown key \"%s\"", unknown);
    info.name = (char *)(uintptr_t)ir_copy_text(r, hd_value_at(v, "name"));
    if (!info.name) return HD_NOMEM;
    hd_status status = read_class_kind(r, path, v, &info);
    if (!status) status = read_class_flags(r, path, v, &info);
    if (info.kind == CLASS_RECORD && class_is_sealed(info.name)) info.flags |= CLASS_SEALED;
    if (!status) status = read_class_base(r, path, v, &info);
    if (!status) status = read_class_more(r, path, v, &info);
    if (!status) status = read_class_fields(r, path, v, &info);
    if (!status) status = classes_define(r->p->w->classes, &info, &number);
    if (status == HD_EXISTS) return ir_refuse(r, path, "there is another class \"%s\"", info.name);
    if (status == HD_LIMIT) return ir_refuse(r, path, "too many classes");
    return status;
}

static hd_status read_class_list(ir_reader *r, hd_value all) {
    hd_status status = HD_OK;
    if (!hd_value_exists(all)) return HD_OK;
    if (hd_value_kind(all) != HD_KIND_ARRAY)
        return ir_refuse(r, "/classes", "\"classes\" is a list");
    for (hd_iter it = hd_iter_of(all); hd_iter_next(&it) && !status;)
        status = read_class(r, it.index, it.value);
    return status;
}

static hd_status read_document(ir_reader *r, hd_value ir) {
    const char *unknown =
        ir_unknown_key(ir, "heddle name inputs functions journal keep classes", "at comment");
    int64_t format = hd_value_as_int(hd_value_at(ir, "heddle"), -1);
    if (hd_value_kind(ir) != HD_KIND_OBJECT) return ir_refuse(r, "", "a workflow is an object");
    if (format < 0)
        return ir_refuse(r, "/heddle", "a workflow has \"heddle\": %d, the version of its form",
                         IR_FORMAT);
    if (format != IR_FORMAT)
        return ir_refuse(r, "/heddle", "this library reads IR of version %d, not %lld", IR_FORMAT,
                         (long long)format);
    if (unknown) return ir_refuse(r, "", "unknown key \"%s\"", unknown);
    if (!ir_is_workflow_name(hd_value_at(ir, "name")))
        return ir_refuse(r, "/name", "a workflow has a \"name\" of " PLAN_NAME_RULE);
    r->p->name = ir_copy_text(r, hd_value_at(ir, "name"));
    if (!r->p->name) return HD_NOMEM;
    hd_status status = read_journal(r, hd_value_at(ir, "journal"));
    if (!status) status = read_keep(r, hd_value_at(ir, "keep"));
    if (!status) status = read_inputs(r, hd_value_at(ir, "inputs"));
    if (!status) status = read_class_list(r, hd_value_at(ir, "classes"));
    if (!status) status = read_functions(r, hd_value_at(ir, "functions"));
    if (!status) status = find_callees(r);
    return status ? status : check_inputs(r);
}

hd_status plan_make(world *w, hd_heap *heap, hd_value ir, plan **out, hd_error *error) {
    hd_error ignored;
    *out = NULL;
    if (hd_value_status(ir)) {
        env_error(error, hd_value_status(ir), "the IR could not be made");
        return hd_value_status(ir);
    }
    plan *p = env_new0(&w->env, sizeof *p);
    if (!p) return HD_NOMEM;
    *p = (plan){ .env = &w->env, .heap = heap, .w = w, .refs = 1, .source = hd_value_ref(ir) };
    arena_init(&p->memory, p->env);
    plan_use(p);
    ir_reader r = { .p = p, .error = error ? error : &ignored };
    hd_status status = read_document(&r, ir);
    if (!status) status = plan_complete(p);
    if (status) {
        plan_unref(p);
        return status;
    }
    *out = p;
    return HD_OK;
}

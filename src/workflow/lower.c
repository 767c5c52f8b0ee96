/* lower.c -- from the tree of a flow to nodes and edges.
 *
 * Steps are made from top to bottom. What has been made so far ends in *ends*, edges that lead nowhere yet; the next
 * node takes them all. Where several meet in a node that would wait for all of them, a MERGE stands before it; the
 * same where an edge must have two kinds at once (the GUARD of an `if` that ends a loop's body is a BACK edge).
 *
 * What no way from ENTRY leads to is left out in the end: the clauses of a `try` whose block raises nothing, and what
 * stands behind them.
 *
 * `finally` is made once for each way out (docs/IR.md): behind the body and each clause, before every return, break and
 * continue that leaves it, and behind a HANDLER of its own that ends in a RAISE. */
#define HD_FLOW_WITHOUT_PLACES
#include "workflow/flow.h"
#include "workflow/ir.h"

#include "base/env.h"

#include <stdio.h>
#include <string.h>

#define NO_NODE UINT32_MAX

typedef struct flow_end {
    uint32_t from;
    const char *kind; /* NULL: FORWARD */
    uint32_t index;
} flow_end;

typedef VEC(flow_end) flow_ends;

typedef struct flow_node {
    const char *id;
    hd_value record;
    uint32_t fan; /* BARRIER: the FAN_HEAD; NO_NODE for others */
    bool reached; /* a way from ENTRY leads to it; by mark_reached */
} flow_node;

typedef struct flow_edge {
    uint32_t from, to;
    const char *kind;
    uint32_t index;
} flow_edge;

/* What surrounds a step: loops to break, handlers to ask, things to do on the way out. */
typedef struct flow_around {
    struct flow_around *outer;
    enum { AROUND_LOOP, AROUND_FINALLY, AROUND_FAN } kind;
    uint32_t head;             /* LOOP */
    flow_ends *breaks, *backs; /* LOOP */
    const flow_block *block;   /* FINALLY: what is done */
    uint32_t handler;          /* FINALLY: asked by what is done: the one outside */
} flow_around;

typedef struct lowering {
    hd_flow *f;
    bool is_main; /* of the first function: it ends with RETURN */
    VEC(flow_node) nodes;
    VEC(flow_edge) edges;
    flow_ids ids;
    flow_ends ends;
    uint32_t handler; /* asked when a node raises; NO_NODE: none */
    flow_around *around;
    const char *path;   /* of ids: "for0/if1/" */
    const char *coming; /* the id of a node that is made after the MERGE before it; "": none */
    uint32_t copies;    /* of finally blocks: their ids differ by it */
} lowering;

static void lower_block(lowering *l, const flow_block *b, const char *path);

/* ---- Nodes and edges ----------------------------------------------------------------------- */

static void nomem(lowering *l) { l->f->nomem = true; }

static const char *print(lowering *l, const char *format, const char *a, const char *b,
                         uint32_t n) {
    size_t size = strlen(format) + strlen(a) + strlen(b) + 11; /* ten digits and the end */
    char *out = arena_alloc(&l->f->memory, size);
    if (out) snprintf(out, size, format, a, b, n);
    else nomem(l);
    return out ? out : "";
}

/* Any number of steps have the same label: the search goes on where it ended last time. */
static const char *numbered(lowering *l, const char *base) {
    flow_id *known = flow_id_find(&l->ids, base);
    for (uint32_t n = known ? known->next : 2;; n++) {
        const char *id = print(l, "%s%s.%u", base, "", n);
        if (known) known->next = n;
        if (l->f->nomem || (!flow_id_find(&l->ids, id) && strcmp(id, l->coming))) return id;
    }
}

/* "path/label", with a number behind it if there is one already, as an id or as the beginning of a path: a `try` has no
 * node of its own. */
static const char *make_id(lowering *l, const char *label) {
    const char *id = print(l, "%s%s", l->path, label, 0);
    return flow_id_find(&l->ids, id) || !strcmp(id, l->coming) ? numbered(l, id) : id;
}

static bool is_of_node(const lowering *l, const char *id) {
    const flow_id *known = flow_id_find(&l->ids, id);
    return known && known->of_node;
}

/* "step/part": of a node that a `try` has beside those of its blocks, with a number behind it if another node has that
 * id. A node "step/part/..." does not count: such nodes have always stood beside this one. */
static const char *part_id(lowering *l, const char *step, const char *part) {
    const char *id = print(l, "%s/%s", step, part, 0);
    for (uint32_t n = 2; is_of_node(l, id) && !l->f->nomem; n++)
        id = print(l, "%s/%s.%u", step, part, n);
    return id;
}

/* The id that hd_flow_id has given, or, if that is NULL, one that is made of the label. A finally block is lowered once
 * for each way out: the node of its first copy has the given id, the others have a number behind it. */
static const char *step_id(lowering *l, const flow_step *s, const char *given, const char *label) {
    if (!given) return make_id(l, label);
    const flow_id *known = flow_id_find(&l->ids, given);
    if (!known || !known->of_node) return given;
    if (known->of_node == given) return numbered(l, given);
    flow_refuse(l->f, s->at, s->call, HD_SYNTAX, "there is another node \"%s\"", given);
    return given;
}

static void add_edge(lowering *l, uint32_t from, uint32_t to, const char *kind, uint32_t index) {
    flow_edge e = { from, to, kind, index };
    if (!vec_push(l->f->env, &l->edges, e)) nomem(l);
}

static void add_end(lowering *l, flow_ends *ends, uint32_t from, const char *kind, uint32_t index) {
    flow_end e = { from, kind, index };
    if (!vec_push(l->f->env, ends, e)) nomem(l);
}

static void take_ends(lowering *l, uint32_t to) {
    for (uint32_t i = 0; i < l->ends.count; i++)
        add_edge(l, l->ends.items[i].from, to, l->ends.items[i].kind, l->ends.items[i].index);
    vec_clear(&l->ends);
}

static hd_value set(lowering *l, hd_value object, const char *key, hd_value v) {
    object = hd_object_set(l->f->pool, object, key, v);
    if (hd_value_status(object) == HD_NOMEM) nomem(l);
    return object;
}

static uint32_t new_node(lowering *l, hd_value record, const char *id, const char *at) {
    if (l->nodes.count == IR_NODES_MAX) /* said once: the blocks around come to an end now */
        flow_refuse(l->f, at, "hd_flow_ir", HD_LIMIT, "more than %d nodes", IR_NODES_MAX);
    record = set(l, record, "id", hd_string(l->f->pool, id));
    if (*at) record = set(l, record, "at", hd_string(l->f->pool, at));
    flow_node n = { .id = id, .record = record, .fan = NO_NODE };
    if (!vec_push(l->f->env, &l->nodes, n) || !flow_id_note(&l->ids, id)) nomem(l);
    return l->nodes.count ? l->nodes.count - 1 : 0;
}

static hd_value of_kind(lowering *l, const char *kind) {
    return set(l, hd_object(), "kind", hd_string(l->f->pool, kind));
}

static void merge(lowering *l, const char *at) {
    uint32_t n = new_node(l, of_kind(l, "MERGE"), make_id(l, "merge"), at);
    take_ends(l, n);
    add_end(l, &l->ends, n, NULL, 0);
}

/* The node that comes next. Its own end is added by the caller. */
static uint32_t next_node(lowering *l, hd_value record, const char *id, const flow_step *s,
                          bool needs_one) {
    if (!l->ends.count) flow_refuse(l->f, s->at, s->call, HD_SYNTAX, "nothing leads here");
    l->coming = id;
    if (l->ends.count > 1 && !needs_one) merge(l, s->at);
    l->coming = "";
    uint32_t n = new_node(l, record, id, s->at);
    take_ends(l, n);
    if (l->handler != NO_NODE) add_edge(l, n, l->handler, "EXCEPT", 0);
    return n;
}

/* The ends become one FORWARD end, so that the edge to come can have a kind of its own. */
static void one_plain_end(lowering *l, const char *at) {
    if (l->ends.count == 1 && !l->ends.items[0].kind) return;
    if (l->ends.count) merge(l, at);
}

static const char *inner_path(lowering *l, const char *id, const char *block, uint32_t n) {
    return print(l, *block ? "%s/%s%u/" : "%s/%s", id, block, n);
}

/* ---- Ways out ------------------------------------------------------------------------------ */

/* Does what the finally blocks between here and `until` say, innermost first. */
static void leave_through(lowering *l, const flow_around *until) {
    flow_around *around = l->around;
    uint32_t handler = l->handler;
    const char *path = l->path;
    for (flow_around *a = around; a != until && l->ends.count; a = a->outer) {
        if (a->kind != AROUND_FINALLY) continue;
        l->around = a->outer;
        l->handler = a->handler;
        lower_block(l, a->block, print(l, "%sfinally%s%u/", path, "", ++l->copies));
    }
    l->around = around;
    l->handler = handler;
    l->path = path;
}

static const flow_around *find_around(const lowering *l, bool loop) {
    const flow_around *a = l->around;
    while (a && a->kind != AROUND_FAN && !(loop && a->kind == AROUND_LOOP)) a = a->outer;
    return a;
}

static void lower_jump(lowering *l, const flow_step *s) {
    const flow_around *a = find_around(l, true);
    if (!l->ends.count) flow_refuse(l->f, s->at, s->call, HD_SYNTAX, "nothing leads here");
    if (!a || a->kind == AROUND_FAN) {
        flow_refuse(l->f, s->at, s->call, HD_SYNTAX,
                    a ? "a branch cannot end a loop outside" : "there is no loop around it");
        vec_clear(&l->ends);
        return;
    }
    leave_through(l, a);
    flow_ends *to = s->kind == FLOW_BREAK ? a->breaks : a->backs;
    for (uint32_t i = 0; i < l->ends.count; i++)
        add_end(l, to, l->ends.items[i].from, l->ends.items[i].kind, l->ends.items[i].index);
    vec_clear(&l->ends);
}

static bool has_finally(const lowering *l) {
    for (const flow_around *a = l->around; a; a = a->outer)
        if (a->kind == AROUND_FINALLY) return true;
    return false;
}

/* The value is computed before what finally does. */
static hd_value keep_value(lowering *l, const flow_step *s, hd_value value) {
    hd_pool *pool = l->f->pool;
    hd_value name[] = { hd_string(pool, "name"), hd_string(pool, "_returned") };
    hd_value variable = hd_array_of(pool, name, 2);
    hd_value assign[] = { hd_string(pool, "assign"), value, variable };
    hd_value statement = hd_array_of(pool, assign, 3);
    hd_value record = set(l, of_kind(l, "CALC"), "do", hd_array_of(pool, &statement, 1));
    add_end(l, &l->ends, next_node(l, record, make_id(l, "value"), s, false), NULL, 0);
    return variable;
}

static void lower_return(lowering *l, const flow_step *s) {
    hd_value value = hd_value_at(s->keys, "value");
    const flow_around *fan = find_around(l, false);
    if (fan) {
        flow_refuse(l->f, s->at, s->call, HD_SYNTAX,
                    "a branch cannot return: its result is what is given");
        return;
    }
    if (has_finally(l) && hd_value_exists(value)) value = keep_value(l, s, value);
    leave_through(l, NULL);
    if (!l->ends.count) return;
    hd_value record = of_kind(l, l->is_main ? "RETURN" : "RET");
    if (hd_value_exists(value)) record = set(l, record, "value", value);
    (void)next_node(l, record, step_id(l, s, s->id, s->label), s, false);
}

/* ---- Blocks -------------------------------------------------------------------------------- */

static void lower_if(lowering *l, const flow_step *s) {
    hd_value when = hd_array();
    uint32_t count = 0, i = 0;
    bool has_else = false;
    flow_ends after = { 0 };
    for (const flow_block *b = s->blocks; b; b = b->next) {
        if (!hd_value_exists(b->condition)) has_else = true;
        else when = hd_array_append(l->f->pool, when, b->condition), count++;
    }
    const char *id = step_id(l, s, s->id, s->label);
    uint32_t n = next_node(l, set(l, of_kind(l, "BRANCH"), "when", when), id, s, false);
    for (const flow_block *b = s->blocks; b; b = b->next, i++) {
        add_end(l, &l->ends, n, "GUARD", i);
        lower_block(l, b, inner_path(l, id, "", i));
        for (uint32_t k = 0; k < l->ends.count; k++)
            add_end(l, &after, l->ends.items[k].from, l->ends.items[k].kind,
                    l->ends.items[k].index);
        vec_clear(&l->ends);
    }
    if (!has_else) add_end(l, &after, n, "GUARD", count);
    vec_fini(l->f->env, &l->ends);
    l->ends = after;
}

static void back_to(lowering *l, uint32_t head, const char *at) {
    one_plain_end(l, at);
    if (l->ends.count) add_edge(l, l->ends.items[0].from, head, "BACK", 0);
    vec_clear(&l->ends);
}

static void lower_loop(lowering *l, const flow_step *s) {
    flow_ends breaks = { 0 }, backs = { 0 };
    const char *id = step_id(l, s, s->id, s->label);
    uint32_t head = next_node(l, s->keys, id, s, true);
    flow_around around = {
        .outer = l->around, .kind = AROUND_LOOP, .head = head, .breaks = &breaks, .backs = &backs
    };
    l->around = &around;
    add_end(l, &l->ends, head, "CONTINUE", 0);
    lower_block(l, s->blocks, inner_path(l, id, "", 0));
    l->around = around.outer;
    for (uint32_t i = 0; i < backs.count; i++)
        add_end(l, &l->ends, backs.items[i].from, backs.items[i].kind, backs.items[i].index);
    back_to(l, head, s->at);
    add_end(l, &l->ends, head, "BREAK", 0);
    for (uint32_t i = 0; i < breaks.count; i++)
        add_end(l, &l->ends, breaks.items[i].from, breaks.items[i].kind, breaks.items[i].index);
    vec_fini(l->f->env, &breaks);
    vec_fini(l->f->env, &backs);
}

/* The ends of a branch become its JOIN edge. */
static void join(lowering *l, flow_ends *joins, const char *at) {
    one_plain_end(l, at);
    if (l->ends.count) add_end(l, joins, l->ends.items[0].from, "JOIN", 0);
    vec_clear(&l->ends);
}

static void lower_fan(lowering *l, const flow_step *s) {
    flow_ends joins = { 0 };
    uint32_t index = 0, handler = l->handler;
    const char *id = step_id(l, s, s->id, s->label);
    uint32_t head = next_node(l, s->keys, id, s, false);
    flow_around around = { .outer = l->around, .kind = AROUND_FAN };
    l->around = &around;
    l->handler = NO_NODE; /* what leaves a branch is raised at the barrier */
    for (const flow_block *b = s->each ? s->blocks : s->blocks->next; b; b = b->next, index++) {
        add_end(l, &l->ends, head, "ELEM", index);
        lower_block(l, b, inner_path(l, id, "", index));
        join(l, &joins, s->at);
    }
    l->around = around.outer;
    l->handler = handler;
    const char *join_id = step_id(l, s, s->join_id, "join");
    uint32_t barrier = new_node(l, s->join, join_id, s->join_at);
    if (l->nodes.count) l->nodes.items[barrier].fan = head;
    for (uint32_t i = 0; i < joins.count; i++) add_edge(l, joins.items[i].from, barrier, "JOIN", 0);
    if (handler != NO_NODE) add_edge(l, barrier, handler, "EXCEPT", 0);
    vec_fini(l->f->env, &joins);
    add_end(l, &l->ends, barrier, NULL, 0);
}

/* ---- Exceptions ---------------------------------------------------------------------------- */

/* A HANDLER is made before what it guards, since that leads to it; its clauses are filled in later. */
static uint32_t new_handler(lowering *l, hd_value clauses, const char *id, const char *at) {
    return new_node(l, set(l, of_kind(l, "HANDLER"), "clauses", clauses), id, at);
}

static hd_value clauses_of(lowering *l, const flow_step *s) {
    hd_value all = hd_array();
    for (const flow_block *b = s->blocks->next; b; b = b->next)
        if (!b->is_finally) all = hd_array_append(l->f->pool, all, b->condition);
    if (hd_value_status(all) == HD_NOMEM) nomem(l);
    return all;
}

static void keep_ends(lowering *l, flow_ends *kept) {
    for (uint32_t i = 0; i < l->ends.count; i++)
        add_end(l, kept, l->ends.items[i].from, l->ends.items[i].kind, l->ends.items[i].index);
    vec_clear(&l->ends);
}

/* The body and its except clauses. */
static void lower_guarded(lowering *l, const flow_step *s, const char *id) {
    hd_value clauses = clauses_of(l, s);
    flow_ends after = { 0 };
    uint32_t outer = l->handler, index = 0;
    if (!hd_value_count(clauses)) {
        lower_block(l, s->blocks, inner_path(l, id, "", 0));
        return;
    }
    uint32_t handler = new_handler(l, clauses, part_id(l, id, "except"), s->at);
    if (outer != NO_NODE) add_edge(l, handler, outer, "EXCEPT", 0);
    l->handler = handler;
    lower_block(l, s->blocks, inner_path(l, id, "", 0));
    l->handler = outer;
    keep_ends(l, &after);
    for (const flow_block *b = s->blocks->next; b && !b->is_finally; b = b->next, index++) {
        add_end(l, &l->ends, handler, "GUARD", index);
        lower_block(l, b, inner_path(l, id, "except", index));
        keep_ends(l, &after);
    }
    vec_fini(l->f->env, &l->ends);
    l->ends = after;
}

/* Behind a HANDLER that takes everything: finally, then the exception goes on. */
static void lower_finally_raised(lowering *l, const flow_step *s, const flow_block *b,
                                 const char *id, uint32_t handler) {
    flow_ends after = l->ends;
    l->ends = (flow_ends){ 0 };
    add_end(l, &l->ends, handler, "GUARD", 0);
    lower_block(l, b, print(l, "%s/raised/%s", id, "", 0));
    if (l->ends.count) (void)next_node(l, of_kind(l, "RAISE"), part_id(l, id, "raise"), s, false);
    vec_fini(l->f->env, &l->ends);
    l->ends = after;
}

static void lower_try(lowering *l, const flow_step *s) {
    const char *id = step_id(l, s, s->id, s->label);
    const flow_block *last = s->blocks;
    uint32_t outer = l->handler;
    while (last->next) last = last->next;
    if (!last->is_finally) {
        lower_guarded(l, s, id);
        return;
    }
    hd_value everything = hd_object();
    uint32_t handler =
        new_handler(l, hd_array_of(l->f->pool, &everything, 1), part_id(l, id, "finally"), s->at);
    if (outer != NO_NODE) add_edge(l, handler, outer, "EXCEPT", 0);
    flow_around around = {
        .outer = l->around, .kind = AROUND_FINALLY, .block = last, .handler = outer
    };
    l->around = &around;
    l->handler = handler;
    lower_guarded(l, s, id);
    l->around = around.outer;
    l->handler = outer;
    if (l->ends.count) lower_block(l, last, print(l, "%s/done/%s", id, "", 0));
    lower_finally_raised(l, s, last, id, handler);
}

/* ---- The whole ----------------------------------------------------------------------------- */

static void lower_node(lowering *l, const flow_step *s) {
    const char *id = step_id(l, s, s->id, s->label);
    uint32_t n = next_node(l, s->keys, id, s, false);
    if (strcmp(hd_value_as_text(hd_value_at(s->keys, "kind"), ""), "RAISE"))
        add_end(l, &l->ends, n, NULL, 0);
}

static void lower_step(lowering *l, const flow_step *s) {
    static void (*const each[])(lowering *, const flow_step *) = {
        [FLOW_NODE] = lower_node,     [FLOW_IF] = lower_if,         [FLOW_LOOP] = lower_loop,
        [FLOW_TRY] = lower_try,       [FLOW_FAN] = lower_fan,       [FLOW_BREAK] = lower_jump,
        [FLOW_CONTINUE] = lower_jump, [FLOW_RETURN] = lower_return,
    };
    each[s->kind](l, s);
}

static void lower_block(lowering *l, const flow_block *b, const char *path) {
    const char *before = l->path;
    l->path = path;
    for (const flow_step *s = b->first; s && !l->f->problems.count && !l->f->nomem; s = s->next)
        lower_step(l, s);
    l->path = before;
}

static hd_value edge_value(lowering *l, const flow_edge *e) {
    hd_pool *pool = l->f->pool;
    hd_value parts[4] = { hd_string(pool, l->nodes.items[e->from].id),
                          hd_string(pool, l->nodes.items[e->to].id) };
    size_t count = 2;
    if (e->kind) parts[count++] = hd_string(pool, e->kind);
    if (e->kind && (e->index || !strcmp(e->kind, "GUARD"))) parts[count++] = hd_int(pool, e->index);
    return hd_array_of(pool, parts, count);
}

/* The edges by the node that they leave: lists, in the order in which the edges were made. */
typedef struct outgoing {
    VEC(uint32_t) first; /* of each node; NO_NODE: none */
    VEC(uint32_t) next;  /* behind each edge */
} outgoing;

static bool sort_edges(const lowering *l, outgoing *o) {
    const hd_env *env = l->f->env;
    if (!vec_room(env, &o->first, l->nodes.count) || !vec_room(env, &o->next, l->edges.count))
        return false;
    for (uint32_t i = 0; i < l->nodes.count; i++) (void)vec_push(env, &o->first, NO_NODE);
    for (uint32_t i = 0; i < l->edges.count; i++) (void)vec_push(env, &o->next, NO_NODE);
    for (uint32_t i = l->edges.count; i-- > 0;) {
        o->next.items[i] = o->first.items[l->edges.items[i].from];
        o->first.items[l->edges.items[i].from] = i;
    }
    return true;
}

static bool mark_reached(lowering *l, const outgoing *o) {
    VEC(uint32_t) open = { 0 };
    if (!vec_room(l->f->env, &open, l->nodes.count)) return false;
    l->nodes.items[0].reached = true;
    (void)vec_push(l->f->env, &open, 0);
    while (open.count) {
        uint32_t n = vec_pop(&open);
        for (uint32_t i = o->first.items[n]; i != NO_NODE; i = o->next.items[i]) {
            flow_node *to = &l->nodes.items[l->edges.items[i].to];
            if (to->reached) continue;
            to->reached = true;
            (void)vec_push(l->f->env, &open, l->edges.items[i].to);
        }
    }
    vec_fini(l->f->env, &open);
    return true;
}

/* The IR has no way from a FAN_HEAD to its BARRIER but by the end of a branch. */
static void check_joins(lowering *l) {
    for (uint32_t i = 0; i < l->nodes.count; i++) {
        const flow_node *n = &l->nodes.items[i];
        if (n->fan == NO_NODE || n->reached || !l->nodes.items[n->fan].reached) continue;
        flow_refuse(l->f, hd_value_as_text(hd_value_at(n->record, "at"), ""), "hd_flow_join",
                    HD_SYNTAX, "no branch comes to its end");
    }
}

/* Edges stand in the order of the nodes that they leave. */
static void add_nodes(lowering *l, const outgoing *o, hd_value *nodes, hd_value *edges) {
    for (uint32_t n = 0; n < l->nodes.count; n++) {
        if (!l->nodes.items[n].reached) continue;
        *nodes = hd_array_append(l->f->pool, *nodes, l->nodes.items[n].record);
        for (uint32_t i = o->first.items[n]; i != NO_NODE; i = o->next.items[i])
            *edges = hd_array_append(l->f->pool, *edges, edge_value(l, &l->edges.items[i]));
    }
}

static hd_value function_value(lowering *l, const flow_function *fn) {
    hd_value nodes = hd_array(), edges = hd_array();
    hd_value v = set(l, hd_object(), "name", hd_string(l->f->pool, fn->name));
    outgoing o = { 0 };
    if (sort_edges(l, &o) && mark_reached(l, &o)) {
        check_joins(l);
        add_nodes(l, &o, &nodes, &edges);
    } else {
        nomem(l);
    }
    vec_fini(l->f->env, &o.first);
    vec_fini(l->f->env, &o.next);
    if (hd_value_count(fn->params)) v = set(l, v, "params", fn->params);
    v = set(l, v, "nodes", nodes);
    return set(l, v, "edges", edges);
}

static hd_value lower_function(hd_flow *f, const flow_function *fn, bool is_main) {
    static const flow_step end = { .at = "", .call = "", .label = "return", .kind = FLOW_RETURN };
    lowering l = { .f = f, .is_main = is_main, .handler = NO_NODE, .path = "", .coming = "" };
    flow_ids_init(&l.ids, f->env);
    add_end(&l, &l.ends, new_node(&l, of_kind(&l, "ENTRY"), "entry", ""), NULL, 0);
    lower_block(&l, &fn->body, "");
    if (l.ends.count && !f->problems.count) lower_return(&l, &end);
    hd_value v = f->nomem || f->problems.count ? (hd_value){ 0 } : function_value(&l, fn);
    flow_ids_fini(&l.ids);
    vec_fini(f->env, &l.nodes);
    vec_fini(f->env, &l.edges);
    vec_fini(f->env, &l.ends);
    return v;
}

hd_value flow_lower(hd_flow *f) {
    hd_value functions = hd_array(),
             ir = hd_object_set(f->pool, hd_object(), "heddle", hd_int(f->pool, 1));
    for (uint32_t i = 0; i < f->functions.count && !f->problems.count; i++)
        functions =
            hd_array_append(f->pool, functions, lower_function(f, f->functions.items[i], i == 0));
    ir = hd_object_set(f->pool, ir, "name", hd_string(f->pool, f->name));
    if (hd_value_exists(f->journal)) ir = hd_object_set(f->pool, ir, "journal", f->journal);
    if (hd_value_exists(f->keep)) ir = hd_object_set(f->pool, ir, "keep", f->keep);
    if (hd_value_count(f->inputs)) ir = hd_object_set(f->pool, ir, "inputs", f->inputs);
    ir = hd_object_set(f->pool, ir, "functions", functions);
    if (hd_value_status(ir) == HD_NOMEM) f->nomem = true;
    return ir;
}

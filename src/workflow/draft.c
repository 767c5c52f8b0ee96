/* draft.c -- does this graph make sense?
 *
 * One walk from ENTRY puts the nodes in an order in which every edge but BACK goes up; what it never
 * counts down to zero lies on a circle. In that order each further question is one pass:
 *
 *     dominators   which node lies on every way to this one: a BACK edge must return to such a node
 *     branches     ELEM enters the branches of a FAN_HEAD, JOIN leaves them: each node lies in one
 *     loops        from a BACK edge's source upwards to its head
 *     variables    what some way has assigned; a read of anything else can never succeed
 *     ways         several that a node begins at once (ways.c)
 *
 * Cost: O(nodes + edges), variables / 64 words for each node, and nodes times the nesting of loops. */
#include "workflow/draft.h"

#include "base/env.h"
#include <stdio.h>

static draft_node *at(draft *d, uint32_t i) {
    assert(i < d->nodes.count);
    return &d->nodes.items[i];
}

hd_status draft_refuse(draft *d, uint32_t node, const char *format, ...) {
    char why[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    const plan_node *n = at(d, node)->node;
    bool placed = n->at[0];
    env_error(d->error, HD_SYNTAX, "node \"%s/%s\"%s%s%s: %s", d->f->name, n->id,
              placed ? " (" : "", n->at, placed ? ")" : "", why);
    if (d->error) snprintf(d->error->path, sizeof d->error->path, "/functions/%s", d->f->name);
    return HD_SYNTAX;
}

/* ---- edges, grouped by the node they leave */

/* By kind and index behind the node, so that GUARD i is the i-th. Edges without an index: by where they lead. */
static bool edge_before(const plan_edge *a, const plan_edge *b) {
    if (a->from != b->from) return a->from < b->from;
    if (a->kind != b->kind) return a->kind < b->kind;
    return edge_has_index(a->kind) ? a->index < b->index : a->to < b->to;
}

static void sift(plan_edge *e, uint32_t count, uint32_t i) {
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && edge_before(&e[child], &e[child + 1])) child++;
        if (!edge_before(&e[i], &e[child])) return;
        plan_edge held = e[i];
        e[i] = e[child];
        e[child] = held;
    }
}

static void sort_edges(plan_edge *e, uint32_t count) {
    for (uint32_t i = count / 2; i-- > 0;) sift(e, count, i);
    for (uint32_t end = count; end-- > 1;) {
        plan_edge held = e[0];
        e[0] = e[end];
        e[end] = held;
        sift(e, end, 0);
    }
}

static void group_edges(draft *d) {
    sort_edges(d->edges.items, d->edges.count);
    for (uint32_t i = 0; i < d->edges.count; i++) {
        const plan_edge *e = &d->edges.items[i];
        draft_node *from = at(d, e->from);
        if (!from->count++) from->first = i;
        if (e->kind != EDGE_BACK) at(d, e->to)->arrivals++;
    }
}

static const plan_edge *edge(const draft *d, const draft_node *n, uint32_t i) {
    assert(i < n->count);
    return &d->edges.items[n->first + i];
}

/* How many edges of a kind leave the node. */
static uint32_t leaving(const draft *d, const draft_node *n, edge_kind kind) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->count; i++) found += edge(d, n, i)->kind == kind;
    return found;
}

/* ---- what may leave a node, and where an edge may lead */

typedef enum out_rule { OUT_FLOW, OUT_GUARDS, OUT_LOOP, OUT_FAN, OUT_END } out_rule;

static out_rule out_rule_of(node_kind kind) {
    static const out_rule rules[] = {
#define PLAN_NODE_ROW(name, out) OUT_##out,
        PLAN_NODE_TABLE(PLAN_NODE_ROW)
#undef PLAN_NODE_ROW
    };
    assert(kind < NODE_KINDS);
    return rules[kind];
}

static bool rule_allows(out_rule rule, edge_kind kind) {
    if (kind == EDGE_EXCEPT) return true;
    switch (rule) {
    case OUT_FLOW: return kind == EDGE_FORWARD || kind == EDGE_BACK || kind == EDGE_JOIN;
    case OUT_GUARDS: return kind == EDGE_GUARD;
    case OUT_LOOP: return kind == EDGE_CONTINUE || kind == EDGE_BREAK;
    case OUT_FAN: return kind == EDGE_ELEM;
    case OUT_END: return false;
    }
    return false;
}

/* NULL: an edge of this kind may lead to such a node. */
static const char *wrong_target(edge_kind edge, node_kind to) {
    if (to == NODE_ENTRY) return "nothing leads back to ENTRY";
    if ((edge == EDGE_BACK) && to != NODE_LOOP_HEAD) return "a BACK edge leads to a LOOP_HEAD";
    if ((edge == EDGE_JOIN) != (to == NODE_BARRIER))
        return "JOIN edges, and no others, lead to a BARRIER";
    if ((edge == EDGE_EXCEPT) != (to == NODE_HANDLER))
        return "EXCEPT edges, and no others, lead to a HANDLER";
    return NULL;
}

static hd_status check_targets(draft *d, uint32_t i) {
    const draft_node *n = at(d, i);
    for (uint32_t k = 0; k < n->count; k++) {
        const plan_edge *e = edge(d, n, k);
        const plan_node *to = at(d, e->to)->node;
        const char *wrong = wrong_target(e->kind, to->kind);
        if (!rule_allows(out_rule_of(n->node->kind), e->kind))
            return draft_refuse(d, i, "a %s has no %s edge", node_kind_name(n->node->kind),
                                edge_kind_name(e->kind));
        if (wrong)
            return draft_refuse(d, i, "%s edge to \"%s\": %s", edge_kind_name(e->kind), to->id,
                                wrong);
        if (!k || edge_before(edge(d, n, k - 1), e)) continue;
        if (!edge_has_index(e->kind)) return draft_refuse(d, i, "two edges to \"%s\"", to->id);
        return draft_refuse(d, i, "two %s edges %u", edge_kind_name(e->kind), e->index);
    }
    return HD_OK;
}

/* GUARD and ELEM edges are numbered 0, 1, 2, ... and there are as many as there must be. */
static hd_status check_numbers(draft *d, uint32_t i, edge_kind kind, uint32_t want) {
    const draft_node *n = at(d, i);
    uint32_t next = 0;
    for (uint32_t k = 0; k < n->count; k++)
        if (edge(d, n, k)->kind == kind && edge(d, n, k)->index != next++)
            return draft_refuse(d, i, "%s edge %u is missing", edge_kind_name(kind), next - 1);
    if (next == want) return HD_OK;
    return draft_refuse(d, i, "%u %s edges instead of %u", next, edge_kind_name(kind), want);
}

static hd_status check_leaving(draft *d, uint32_t i) {
    const draft_node *n = at(d, i);
    const plan_node *p = n->node;
    uint32_t excepts = leaving(d, n, EDGE_EXCEPT), plain = n->count - excepts;
    if (excepts > 1) return draft_refuse(d, i, "%u EXCEPT edges; one at most", excepts);
    switch (out_rule_of(p->kind)) {
    case OUT_FLOW: return plain ? HD_OK : draft_refuse(d, i, "nothing follows it");
    case OUT_GUARDS:
        return check_numbers(d, i, EDGE_GUARD,
                             p->kind == NODE_BRANCH ? p->arg_count + 1 : p->clause_count);
    case OUT_LOOP:
        if (leaving(d, n, EDGE_CONTINUE) == 1 && leaving(d, n, EDGE_BREAK) == 1) return HD_OK;
        return draft_refuse(d, i, "a LOOP_HEAD has one CONTINUE and one BREAK edge");
    case OUT_FAN:
        if (!plain) return draft_refuse(d, i, "no ELEM edge");
        return check_numbers(d, i, EDGE_ELEM, p->code ? 1 : plain);
    case OUT_END: return plain ? draft_refuse(d, i, "nothing may follow it") : HD_OK;
    }
    return HD_OK;
}

/* ---- order */

/* Kahn's: a node takes its place when all ways into it have. */
static hd_status put_in_order(draft *d) {
    uint32_t placed = 0, count = d->nodes.count;
    uint32_t *left = arena_alloc_array(&d->p->memory, count, sizeof *left);
    d->by_order = arena_alloc_array(&d->p->memory, count, sizeof *d->by_order);
    if (!left || !d->by_order) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        left[i] = at(d, i)->arrivals;
        if (!left[i]) d->by_order[placed++] = i;
    }
    for (uint32_t next = 0; next < placed; next++) {
        const draft_node *n = at(d, d->by_order[next]);
        for (uint32_t k = 0; k < n->count; k++) {
            const plan_edge *e = edge(d, n, k);
            if (e->kind != EDGE_BACK && !--left[e->to]) d->by_order[placed++] = e->to;
        }
    }
    for (uint32_t i = 0; i < count && placed < count; i++)
        if (left[i]) return draft_refuse(d, i, "it lies on a circle of edges that are not BACK");
    for (uint32_t i = 0; i < count; i++) at(d, d->by_order[i])->order = i;
    return HD_OK;
}

/* Only ENTRY has no way into it. */
static hd_status check_reached(draft *d) {
    uint32_t entries = 0;
    for (uint32_t i = 0; i < d->nodes.count; i++) {
        bool entry = at(d, i)->node->kind == NODE_ENTRY;
        if (entry && entries++) return draft_refuse(d, i, "a second ENTRY");
        if (!entry && !at(d, i)->arrivals) return draft_refuse(d, i, "no edge leads to it");
    }
    if (entries) return HD_OK;
    env_error(d->error, HD_SYNTAX, "function \"%s\" has no ENTRY", d->f->name);
    return HD_SYNTAX;
}

/* ---- dominators */

static uint32_t common(draft *d, uint32_t a, uint32_t b) {
    while (a != b) {
        if (at(d, a)->order > at(d, b)->order) a = at(d, a)->dominator;
        else b = at(d, b)->dominator;
    }
    return a;
}

static void find_dominators(draft *d) {
    for (uint32_t i = 0; i < d->nodes.count; i++) at(d, i)->dominator = PLAN_NONE;
    at(d, d->by_order[0])->dominator = d->by_order[0];
    for (uint32_t o = 0; o < d->nodes.count; o++) {
        uint32_t from = d->by_order[o];
        const draft_node *n = at(d, from);
        for (uint32_t k = 0; k < n->count; k++) {
            const plan_edge *e = edge(d, n, k);
            if (e->kind == EDGE_BACK) continue;
            draft_node *to = at(d, e->to);
            to->dominator = to->dominator == PLAN_NONE ? from : common(d, to->dominator, from);
        }
    }
}

static bool dominates(draft *d, uint32_t a, uint32_t b) {
    while (at(d, b)->order > at(d, a)->order) b = at(d, b)->dominator;
    return a == b;
}

/* What a RAISE without value raises: what the closest HANDLER that every way to it leads through caught. */
static hd_status find_caught(draft *d) {
    for (uint32_t i = 0; i < d->nodes.count; i++) {
        plan_node *n = at(d, i)->node;
        uint32_t above = i;
        if (n->kind != NODE_RAISE || n->code) continue;
        while (above != at(d, above)->dominator && at(d, above)->node->kind != NODE_HANDLER)
            above = at(d, above)->dominator;
        if (at(d, above)->node->kind != NODE_HANDLER)
            return draft_refuse(d, i, "no HANDLER above it: there is nothing to raise again");
        n->caught = at(d, above)->node->caught;
    }
    return HD_OK;
}

/* ---- branches of fan-outs */

/* In whose branches the edge's target lies. */
static hd_status region_behind(draft *d, const plan_edge *e, uint32_t *out) {
    const draft_node *from = at(d, e->from);
    uint32_t fan = from->node->fan;
    *out = fan;
    if (e->kind == EDGE_ELEM) *out = e->from;
    if (e->kind != EDGE_JOIN) return HD_OK;
    plan_node *barrier = at(d, e->to)->node;
    if (fan == PLAN_NONE)
        return draft_refuse(d, e->from, "a JOIN edge outside of a FAN_HEAD's branches");
    plan_node *head = at(d, fan)->node;
    if ((head->pair != PLAN_NONE && head->pair != e->to) ||
        (barrier->pair != PLAN_NONE && barrier->pair != fan))
        return draft_refuse(d, e->from, "the branches of \"%s\" lead to more than one BARRIER",
                            head->id);
    head->pair = e->to;
    barrier->pair = fan;
    *out = head->fan;
    return HD_OK;
}

/* In which branch of that FAN_HEAD the edge's target lies: the number of the ELEM edge that leads there. */
static uint32_t branch_behind(draft *d, const uint32_t *branch, const plan_edge *e) {
    if (e->kind == EDGE_ELEM) return e->index;
    return branch[e->kind == EDGE_JOIN ? at(d, e->from)->node->fan : e->from];
}

static hd_status find_branches(draft *d) {
    uint32_t *branch = arena_alloc_array(&d->p->memory, d->nodes.count, sizeof *branch);
    if (!branch) return HD_NOMEM;
    for (uint32_t i = 0; i < d->nodes.count; i++) branch[i] = PLAN_NONE;
    branch[d->by_order[0]] = 0;
    for (uint32_t o = 0; o < d->nodes.count; o++) {
        uint32_t from = d->by_order[o];
        for (uint32_t k = 0; k < at(d, from)->count; k++) {
            const plan_edge *e = edge(d, at(d, from), k);
            uint32_t fan;
            hd_status status = region_behind(d, e, &fan);
            if (status) return status;
            plan_node *to = at(d, e->to)->node;
            uint32_t index = branch_behind(d, branch, e);
            bool known = branch[e->to] != PLAN_NONE;
            if (known && to->fan != fan)
                return draft_refuse(d, e->to,
                                    "ways from inside and from outside of a FAN_HEAD's "
                                    "branches meet in it");
            if (known && branch[e->to] != index)
                return draft_refuse(d, e->to, "ways from two branches of \"%s\" meet in it",
                                    at(d, fan)->node->id);
            branch[e->to] = index;
            to->fan = fan;
        }
    }
    for (uint32_t i = 0; i < d->nodes.count; i++) {
        const plan_node *n = at(d, i)->node;
        if (n->kind == NODE_FAN_HEAD && n->pair == PLAN_NONE)
            return draft_refuse(d, i, "none of its branches reaches a BARRIER");
        if ((n->kind == NODE_RETURN || n->kind == NODE_RET) && n->fan != PLAN_NONE)
            return draft_refuse(d, i, "a branch of a FAN_HEAD ends with a JOIN edge, not with %s",
                                node_kind_name(n->kind));
    }
    return HD_OK;
}

/* ---- loops */

static hd_status group_incoming(draft *d) {
    uint32_t count = d->nodes.count;
    d->from = arena_alloc_array(&d->p->memory, d->edges.count + 1, sizeof *d->from);
    d->first_from = arena_alloc_array(&d->p->memory, count + 1, sizeof *d->first_from);
    uint32_t *next = arena_alloc_array(&d->p->memory, count + 1, sizeof *next);
    if (!d->from || !d->first_from || !next) return HD_NOMEM;
    d->first_from[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        next[i] = d->first_from[i];
        d->first_from[i + 1] = next[i] + at(d, i)->arrivals;
    }
    for (uint32_t k = 0; k < d->edges.count; k++) {
        const plan_edge *e = &d->edges.items[k];
        if (e->kind != EDGE_BACK) d->from[next[e->to]++] = e->from;
    }
    return HD_OK;
}

/* Marks the body: from the BACK edge's source against the edges, up to the head. */
static void mark_body(draft *d, uint32_t *stack, uint32_t head, uint32_t from) {
    uint32_t depth = 0;
    stack[depth++] = from;
    while (depth) {
        uint32_t i = stack[--depth];
        plan_node *n = at(d, i)->node;
        if (i == head || n->loop == head) continue;
        n->loop = head; /* outer heads come first: the innermost has the last word */
        for (uint32_t k = d->first_from[i]; k < d->first_from[i + 1]; k++)
            stack[depth++] = d->from[k];
    }
}

static hd_status check_back(draft *d, const plan_edge *e) {
    const plan_node *head = at(d, e->to)->node;
    if (!dominates(d, e->to, e->from))
        return draft_refuse(d, e->from, "its BACK edge leads to \"%s\", which a way into it avoids",
                            head->id);
    if (head->fan != at(d, e->from)->node->fan)
        return draft_refuse(d, e->from, "its BACK edge leaves the branches of a FAN_HEAD");
    return HD_OK;
}

/* The loop has ended when BREAK is taken: nothing goes back into it from there. */
static hd_status check_break(draft *d, uint32_t head) {
    const draft_node *n = at(d, head);
    for (uint32_t k = 0; k < n->count; k++)
        if (edge(d, n, k)->kind == EDGE_BREAK && at(d, edge(d, n, k)->to)->node->loop == head)
            return draft_refuse(d, head, "from its BREAK edge a way leads back into the loop");
    return HD_OK;
}

/* Lists the BACK edges by where they lead, as numbers counted from 1: (*first)[node] is the first one of a node, and
 * (*next)[edge] the one behind an edge. */
static hd_status list_back_edges(draft *d, uint32_t **first, uint32_t **next) {
    *first = arena_alloc_array(&d->p->memory, d->nodes.count + 1, sizeof **first);
    *next = arena_alloc_array(&d->p->memory, d->edges.count + 1, sizeof **next);
    if (!*first || !*next) return HD_NOMEM;
    memset(*first, 0, (d->nodes.count + 1) * sizeof **first);
    for (uint32_t k = d->edges.count; k > 0; k--) {
        const plan_edge *e = &d->edges.items[k - 1];
        if (e->kind != EDGE_BACK) continue;
        (*next)[k - 1] = (*first)[e->to];
        (*first)[e->to] = k;
    }
    return HD_OK;
}

static hd_status find_loops(draft *d) {
    uint32_t room = d->edges.count + d->nodes.count + 1; /* a walk takes each edge once */
    uint32_t *stack = arena_alloc_array(&d->p->memory, room, sizeof *stack), *first, *next;
    hd_status status = list_back_edges(d, &first, &next);
    if (!status && !stack) status = HD_NOMEM;
    for (uint32_t o = 0; o < d->nodes.count && !status; o++) {
        uint32_t head = d->by_order[o];
        if (at(d, head)->node->kind != NODE_LOOP_HEAD) continue;
        for (uint32_t k = first[head]; k && !status; k = next[k - 1]) {
            const plan_edge *e = &d->edges.items[k - 1];
            status = check_back(d, e);
            if (!status) mark_body(d, stack, head, e->from);
        }
        if (!status) status = check_break(d, head);
    }
    return status;
}

/* ---- variables */

static var_set new_set(draft *d) {
    var_set s = { arena_alloc_array(&d->p->memory, d->words, sizeof *s.words) };
    if (s.words) memset(s.words, 0, d->words * sizeof *s.words);
    return s;
}

/* True if `to` has grown. */
static bool unite(const draft *d, var_set to, var_set from) {
    uint64_t news = 0;
    for (uint32_t w = 0; w < d->words; w++) {
        news |= from.words[w] & ~to.words[w];
        to.words[w] |= from.words[w];
    }
    return news != 0;
}

/* A branch's own variables end with it: behind a BARRIER there is what the FAN_HEAD had. */
static bool flow(draft *d, const plan_edge *e) {
    const draft_node *from = at(d, e->kind == EDGE_JOIN ? at(d, e->to)->node->pair : e->from);
    bool grown = unite(d, at(d, e->to)->assigned, from->assigned);
    return unite(d, at(d, e->to)->assigned, from->assigns) || grown;
}

/* In order, and again while a BACK edge brings something new. */
static void flow_all(draft *d) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t o = 0; o < d->nodes.count; o++) {
            const draft_node *n = at(d, d->by_order[o]);
            for (uint32_t k = 0; k < n->count; k++) {
                const plan_edge *e = edge(d, n, k);
                if (flow(d, e)) again = again || e->kind == EDGE_BACK;
            }
        }
    }
}

static hd_status refuse_read(draft *d, uint32_t at_fault, uint32_t v) {
    return draft_refuse(
        d, at_fault, "it reads \"%s\", which is neither an input (parameter) nor assigned before",
        d->f->names->names.items[v]);
}

/* Whether everything in `reads` may have been assigned when `n` has run; else refused for node `at_fault`. */
static hd_status check_reads_behind(draft *d, uint32_t at_fault, var_set reads,
                                    const draft_node *n) {
    for (uint32_t v = 0; v < d->f->names->names.count; v++)
        if (var_in(reads, v) && !var_in(n->assigned, v) && !var_in(n->assigns, v))
            return refuse_read(d, at_fault, v);
    return HD_OK;
}

static hd_status check_node_reads(draft *d, uint32_t i) {
    const draft_node *n = at(d, i);
    for (uint32_t v = 0; v < d->f->names->names.count; v++)
        if (var_in(n->needs, v) && !var_in(n->assigned, v)) return refuse_read(d, i, v);
    return check_reads_behind(d, i, n->reads, n);
}

/* What a BARRIER gives is computed in the branch, at its end. */
static hd_status check_reads(draft *d) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < d->nodes.count && !status; i++)
        if (at(d, i)->node->kind != NODE_BARRIER) status = check_node_reads(d, i);
    for (uint32_t k = 0; k < d->edges.count && !status; k++) {
        const plan_edge *e = &d->edges.items[k];
        if (e->kind == EDGE_JOIN)
            status = check_reads_behind(d, e->to, at(d, e->to)->reads, at(d, e->from));
    }
    return status;
}

static hd_status find_assigned(draft *d) {
    for (uint32_t i = 0; i < d->nodes.count; i++)
        if (!(at(d, i)->assigned = new_set(d)).words) return HD_NOMEM;
    draft_node *entry = at(d, d->by_order[0]);
    for (uint32_t v = 0; v < d->f->params; v++) var_add(entry->assigned, v);
    flow_all(d);
    return check_reads(d);
}

/* ---- alternatives */

/* How many arrivals it waits for. */
static uint32_t required(const draft_node *n) {
    switch (n->node->kind) {
    case NODE_ENTRY:
    case NODE_MERGE:
    case NODE_LOOP_HEAD:
    case NODE_HANDLER:
    case NODE_BARRIER: return 1;
    default: return n->arrivals;
    }
}

/* The closest node that every way to the edge's target leads through, if that node goes on along one of its edges only;
 * else PLAN_NONE. */
static uint32_t chooser_of(draft *d, const plan_edge *e) {
    const draft_node *to = at(d, e->to);
    out_rule rule = out_rule_of(at(d, to->dominator)->node->kind);
    bool chooses = rule == OUT_GUARDS || rule == OUT_LOOP;
    return required(to) > 1 && chooses ? to->dominator : PLAN_NONE;
}

/* The first node of the alternative through which the edge is reached; the edge's target if it leaves the chooser
 * itself; PLAN_NONE if several alternatives may lead to the edge. */
static uint32_t alternative_of(draft *d, const plan_edge *e, uint32_t chooser) {
    uint32_t first = e->from;
    if (first == chooser) return e->to;
    while (at(d, first)->dominator != chooser) first = at(d, first)->dominator;
    return at(d, first)->arrivals == 1 ? first : PLAN_NONE;
}

/* HANDLERs that are left out if no exception is raised. The others take exceptions of RAISE nodes only, which have no
 * other way on. */
static bool *avoidable_handlers(draft *d) {
    bool *avoidable = arena_alloc_array(&d->p->memory, d->nodes.count, sizeof *avoidable);
    if (!avoidable) return NULL;
    memset(avoidable, 0, d->nodes.count * sizeof *avoidable);
    for (uint32_t k = 0; k < d->edges.count; k++) {
        const plan_edge *e = &d->edges.items[k];
        if (e->kind == EDGE_EXCEPT && at(d, e->from)->node->kind != NODE_RAISE)
            avoidable[e->to] = true;
    }
    return avoidable;
}

/* The closest avoidable HANDLER that every way to the edge leads through, if not every way to the edge's target does;
 * PLAN_NONE: there is none. */
static uint32_t handler_of(draft *d, const plan_edge *e, const bool *avoidable) {
    uint32_t dominator = at(d, e->to)->dominator;
    for (uint32_t i = e->from; i != dominator; i = at(d, i)->dominator)
        if (avoidable[i]) return i;
    return PLAN_NONE;
}

/* A node has either a result or an exception: a node that waits for both ways would wait for ever. */
static hd_status check_handlers(draft *d) {
    const bool *avoidable = avoidable_handlers(d);
    if (!avoidable) return HD_NOMEM;
    for (uint32_t k = 0; k < d->edges.count; k++) {
        const plan_edge *e = &d->edges.items[k];
        if (e->kind == EDGE_BACK || required(at(d, e->to)) < 2) continue;
        uint32_t handler = handler_of(d, e, avoidable);
        if (handler != PLAN_NONE)
            return draft_refuse(
                d, e->to,
                "a way behind the HANDLER \"%s\" and one without the exception meet "
                "in it, and it waits for all of them; only a MERGE may follow",
                at(d, handler)->node->id);
    }
    return HD_OK;
}

/* A node that waits for two ways of which one is taken would wait for ever. */
static hd_status check_alternatives(draft *d) {
    uint32_t *seen = arena_alloc_array(&d->p->memory, d->nodes.count, sizeof *seen);
    if (!seen) return HD_NOMEM;
    for (uint32_t i = 0; i < d->nodes.count; i++) seen[i] = PLAN_NONE;
    for (uint32_t k = 0; k < d->edges.count; k++) {
        const plan_edge *e = &d->edges.items[k];
        uint32_t chooser = e->kind == EDGE_BACK ? PLAN_NONE : chooser_of(d, e);
        uint32_t way = chooser == PLAN_NONE ? PLAN_NONE : alternative_of(d, e, chooser);
        if (way == PLAN_NONE) continue;
        if (seen[e->to] != PLAN_NONE && (seen[e->to] != way || way == e->to))
            return draft_refuse(d, e->to,
                                "alternatives of \"%s\" meet in it, and it waits for all of them; "
                                "only a MERGE may follow",
                                at(d, chooser)->node->id);
        seen[e->to] = way;
    }
    return HD_OK;
}

/* ---- the final form */

static uint32_t placed(draft *d, uint32_t i) {
    return i == PLAN_NONE ? PLAN_NONE : at(d, i)->order;
}

static void finish_node(draft *d, const draft_node *n, plan_node *out, uint32_t *edges) {
    plan_function *f = d->f;
    *out = *n->node;
    out->fan = placed(d, out->fan);
    out->loop = placed(d, out->loop);
    out->pair = placed(d, out->pair);
    out->except = PLAN_NONE;
    out->deps_required = required(n);
    out->first_out = *edges;
    for (uint32_t k = 0; k < n->count; k++) {
        plan_edge e = *edge(d, n, k);
        e.from = placed(d, e.from);
        e.to = placed(d, e.to);
        if (e.kind == EDGE_EXCEPT) out->except = e.to;
        else f->edges[(*edges)++] = e;
    }
    out->out_count = *edges - out->first_out;
}

static hd_status finish(draft *d) {
    plan_function *f = d->f;
    uint32_t edges = 0;
    f->node_count = d->nodes.count;
    f->nodes = arena_alloc_array(&d->p->memory, d->nodes.count, sizeof *f->nodes);
    f->edges = arena_alloc_array(&d->p->memory, d->edges.count + 1, sizeof *f->edges);
    if (!f->nodes || !f->edges) return HD_NOMEM;
    for (uint32_t o = 0; o < d->nodes.count; o++)
        finish_node(d, at(d, d->by_order[o]), &f->nodes[o], &edges);
    f->edge_count = edges;
    f->entry = 0;
    assert(f->nodes[0].kind == NODE_ENTRY);
    return HD_OK;
}

hd_status draft_check(draft *d) {
    hd_status status = HD_OK;
    group_edges(d);
    for (uint32_t i = 0; i < d->nodes.count && !status; i++) {
        status = check_targets(d, i);
        if (!status) status = check_leaving(d, i);
    }
    if (!status) status = check_reached(d);
    if (!status) status = put_in_order(d);
    if (status) return status;
    find_dominators(d);
    status = find_caught(d);
    if (!status) status = find_branches(d);
    if (!status) status = group_incoming(d);
    if (!status) status = find_loops(d);
    if (!status) status = find_assigned(d);
    if (!status) status = draft_check_ways(d);
    if (!status) status = check_alternatives(d);
    if (!status) status = check_handlers(d);
    return status ? status : finish(d);
}

/* ---- what code touches */

void draft_note(draft *d, uint32_t node, const code *c) {
    const draft_node *n = at(d, node);
    for (uint32_t i = 0; c && i < c->insns.count; i++) {
        const insn *in = &c->insns.items[i];
        if (in->op == CODE_NAME || in->op == CODE_DELETE_NAME) var_add(n->reads, in->b);
        if (in->op == CODE_STORE_NAME) var_add(n->assigns, in->b);
    }
}

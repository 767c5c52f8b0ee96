/* workflow_past.c -- ways through the graph of a function. */
#include "cli/workflow_past.h"

#include <stdlib.h>

typedef struct reach {
    const plan_function *f;
    bool *there;      /* by node; malloc */
    uint32_t stopped; /* a node that is not left; PLAN_NONE: none */
    bool raises;      /* but by its HANDLER */
    /* Of a FAN_HEAD around the node `towards`, and not around `to`, only the branch that the node lies in is taken;
     * PLAN_NONE: all are. If the FAN_HEAD is around `to`, its branches are not over, and a branch tells nothing of
     * another one. */
    uint32_t towards, to;
    bool grown;
} reach;

static void mark(reach *r, uint32_t node) {
    if (node == PLAN_NONE || r->there[node]) return;
    r->there[node] = true;
    r->grown = true;
}

static bool is_around(const plan_function *f, uint32_t head, uint32_t node) {
    for (uint32_t at = f->nodes[node].fan; at != PLAN_NONE; at = f->nodes[at].fan)
        if (at == head) return true;
    return false;
}

static void spread(reach *r);

/* Whether the branch that begins at `first` has the node in it. */
static bool leads_to(const plan_function *f, uint32_t first, uint32_t head, uint32_t node) {
    reach r = { .f = f,
                .there = calloc(f->node_count, sizeof *r.there),
                .stopped = f->nodes[head].pair,
                .towards = PLAN_NONE };
    if (!r.there) return true;
    mark(&r, first);
    spread(&r);
    bool leads = r.there[node];
    free(r.there);
    return leads;
}

static bool is_taken(const reach *r, uint32_t from, const plan_edge *e) {
    if (e->kind == EDGE_BACK) return false;
    if (r->towards == PLAN_NONE || r->f->nodes[from].kind != NODE_FAN_HEAD) return true;
    return !is_around(r->f, from, r->towards) || is_around(r->f, from, r->to) ||
           leads_to(r->f, e->to, from, r->towards);
}

/* Where an exception of the node goes: out of a branch to the BARRIER that has it as a result, or to the HANDLER of the
 * FAN_HEAD; PLAN_NONE: out of the function. */
static uint32_t raised_to(const plan_function *f, uint32_t node) {
    while (f->nodes[node].except == PLAN_NONE && f->nodes[node].fan != PLAN_NONE) {
        node = f->nodes[node].fan;
        uint32_t barrier = f->nodes[node].pair;
        barrier_mode mode = f->nodes[barrier].mode;
        if (mode == BARRIER_SETTLED || mode == BARRIER_FIRST) return barrier;
    }
    return f->nodes[node].except;
}

/* Along all edges but BACK. */
static void spread(reach *r) {
    do {
        r->grown = false;
        for (uint32_t i = 0; i < r->f->node_count; i++) {
            const plan_node *n = &r->f->nodes[i];
            bool stops = i == r->stopped;
            if (!r->there[i]) continue;
            if (!stops || r->raises) mark(r, raised_to(r->f, i));
            for (uint32_t k = 0; k < n->out_count && !stops; k++)
                if (is_taken(r, i, plan_out(r->f, n, k))) mark(r, plan_out(r->f, n, k)->to);
        }
    } while (r->grown);
}

/* A loop, or a FAN_HEAD, is not over while the instance stands in it. */
static bool holds(const plan_function *f, uint32_t node, uint32_t to) {
    for (uint32_t at = f->nodes[to].loop; at != PLAN_NONE; at = f->nodes[at].loop)
        if (at == node) return true;
    return is_around(f, node, to);
}

static bool is_behind(const plan_function *f, uint32_t node, uint32_t to, bool raises) {
    reach r = { .f = f,
                .there = calloc(f->node_count, sizeof *r.there),
                .stopped = node,
                .raises = raises,
                .towards = node,
                .to = to };
    if (!r.there || node == to || holds(f, node, to)) return free(r.there), false;
    mark(&r, f->entry);
    spread(&r);
    bool behind = !r.there[to];
    free(r.there);
    return behind;
}

/* Whether the node is in a branch that a BARRIER_FIRST may have cancelled (one branch has ended, and it is not known
 * which), or in that of a fan-out over elements, of which there may have been none. */
static bool may_be_left_out(const plan_function *f, uint32_t node, uint32_t to) {
    for (uint32_t at = f->nodes[node].fan; at != PLAN_NONE; at = f->nodes[at].fan) {
        bool given_up = f->nodes[f->nodes[at].pair].mode == BARRIER_FIRST;
        if ((given_up || f->nodes[at].code) && !is_around(f, at, to)) return true;
    }
    return false;
}

bool past_is_done(const plan_function *f, uint32_t node, uint32_t to) {
    return !may_be_left_out(f, node, to) && is_behind(f, node, to, true);
}

bool past_is_passed(const plan_function *f, uint32_t node, uint32_t to) {
    return !past_may_come(f, node, to) && is_behind(f, node, to, false);
}

bool past_may_come(const plan_function *f, uint32_t node, uint32_t to) {
    reach r = { .f = f,
                .there = calloc(f->node_count, sizeof *r.there),
                .stopped = PLAN_NONE,
                .towards = PLAN_NONE };
    if (!r.there || node == to) return free(r.there), false;
    mark(&r, f->nodes[to].kind == NODE_FAN_HEAD ? f->nodes[to].pair : to);
    spread(&r);
    bool comes = r.there[node];
    free(r.there);
    return comes;
}

bool past_has_raised(const plan_function *f, uint32_t node, uint32_t to) {
    reach r = { .f = f,
                .there = calloc(f->node_count, sizeof *r.there),
                .stopped = PLAN_NONE,
                .towards = PLAN_NONE };
    const plan_node *n = &f->nodes[node];
    if (!r.there || n->except == PLAN_NONE || n->loop != PLAN_NONE) return free(r.there), false;
    for (uint32_t k = 0; k < n->out_count; k++) mark(&r, plan_out(f, n, k)->to);
    /* If `to` can be reached from what follows the node, a later node may have raised instead. */
    spread(&r);
    bool by_itself = r.there[to];
    free(r.there);
    return !by_itself;
}

/* A FAN_HEAD with one ELEM edge: the nodes behind it may be those of several branches. */
static bool is_repeated(const plan_function *f, uint32_t head) {
    for (uint32_t at = head; at != PLAN_NONE; at = f->nodes[at].fan)
        if (f->nodes[at].out_count < 2) return true;
    return false;
}

bool past_is_in_branch(const plan_function *f, uint32_t head, uint32_t index, uint32_t node) {
    const plan_node *n = &f->nodes[head];
    if (!is_around(f, head, node) || is_repeated(f, head)) return false;
    for (uint32_t k = 0; k < n->out_count; k++) {
        const plan_edge *e = plan_out(f, n, k);
        if (e->kind == EDGE_ELEM && e->index == index) return leads_to(f, e->to, head, node);
    }
    return false;
}

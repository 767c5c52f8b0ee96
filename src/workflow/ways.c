/* ways.c -- ways that a node begins at once: where do they meet, and what do they share?
 *
 * A node with several FORWARD edges is a fork; each edge is a way. What follows is looked at in order, from the fork to
 * where all of its ways have met, and each node there gets the set of the ways that have met in it:
 *
 *     a node that waits for all its edges    the union: one way that forks again and meets itself is still one
 *     MERGE, LOOP_HEAD                       the set of any edge; different sets are refused: both may arrive
 *     HANDLER                                the same, but different sets are LOOSE: it is not known which way raises
 *
 * What ends once for all ways needs the set of all. Two nodes may run at the same time exactly if there is a fork for
 * which neither's set holds the other's: then neither assigns what the other reads or assigns. Docs: 0615.
 *
 * Cost: for each fork the nodes and edges up to where its ways have met, with variables / 64 words for each node and
 * ways / 64 words for each set of several. So it grows with the nesting of forks; WORK_MAX bounds it. */
#include "workflow/draft.h"

#include "base/binheap.h"
#include "base/env.h"

/* Nodes, edges and words of sets that are looked at in one function: a second of work. */
#define WORK_MAX (UINT64_C(1) << 26)

/* A set of ways: 0 is none (not reached from the fork), i is the way i alone, counted from 1; then rows of bits. */
typedef uint32_t way_set;
#define ALL   UINT32_MAX
#define LOOSE (UINT32_MAX - 1)

typedef struct way_node {
    binheap_item item; /* in fork.next, by order */
    way_set set;
    uint32_t begins; /* the way that begins with it; 0: none */
    uint32_t behind; /* the next node of as many ways; PLAN_NONE: none */
    bool open;       /* in fork.next, put there by a node in which not all ways have met */
} way_node;

typedef struct fork {
    draft *d;
    arena memory; /* of the arrays below; they are made for the first fork */
    uint32_t head, ways;
    way_node *nodes;
    binheap next;        /* nodes that are reached */
    uint32_t open;       /* of these: way_node.open */
    VEC(uint32_t) found; /* nodes that were reached */
    VEC(uint64_t) rows;
    VEC(uint32_t) sizes;   /* of the rows: how many ways */
    VEC(uint32_t) by_size; /* the first node of so many ways */
    var_set assigned;
    way_set *assigner,
        *users; /* of each variable: the largest set that has assigned it, and of all that touch it */
    uint64_t work;
} fork;

static const draft_node *at(const fork *f, uint32_t i) { return &f->d->nodes.items[i]; }
static const char *id_of(const fork *f, uint32_t i) { return at(f, i)->node->id; }

static const plan_edge *edge(const fork *f, uint32_t i, uint32_t k) {
    return &f->d->edges.items[at(f, i)->first + k];
}

/* ---- sets */

static uint32_t words_of(const fork *f) { return f->ways / 64 + 1; }
static bool is_row(const fork *f, way_set s) { return s > f->ways && s < LOOSE; }

static uint64_t *row(const fork *f, way_set s) {
    assert(is_row(f, s));
    return f->rows.items + (size_t)(s - f->ways - 1) * words_of(f);
}

static uint32_t size_of(const fork *f, way_set s) {
    return s == ALL ? f->ways : is_row(f, s) ? f->sizes.items[s - f->ways - 1] : 1;
}

/* Whether `b` is a part of `a`. */
static bool holds(const fork *f, way_set a, way_set b) {
    if (a == b || a == ALL) return true;
    if (!is_row(f, a) || b == ALL) return false;
    const uint64_t *all = row(f, a);
    if (!is_row(f, b)) return all[b / 64] >> b % 64 & 1;
    uint64_t missing = 0;
    for (uint32_t w = 0; w < words_of(f); w++) missing |= row(f, b)[w] & ~all[w];
    return !missing;
}

static bool is_same(const fork *f, way_set a, way_set b) {
    if (a == LOOSE || b == LOOSE) return a == b;
    return size_of(f, a) == size_of(f, b) && holds(f, a, b);
}

/* A new row without ways, which becomes the set *out. */
static hd_status begin_row(fork *f, way_set *out) {
    uint32_t words = words_of(f);
    f->work += words;
    if (!vec_room(f->d->p->env, &f->rows, words)) return HD_NOMEM;
    if (!vec_push(f->d->p->env, &f->sizes, 0)) return HD_NOMEM;
    memset(f->rows.items + f->rows.count, 0, words * sizeof *f->rows.items);
    f->rows.count += words;
    *out = f->ways + f->sizes.count;
    return HD_OK;
}

static void add_to_row(fork *f, way_set to, way_set s) {
    assert(s && s < LOOSE);
    if (!is_row(f, s)) row(f, to)[s / 64] |= UINT64_C(1) << s % 64;
    for (uint32_t w = 0; is_row(f, s) && w < words_of(f); w++) row(f, to)[w] |= row(f, s)[w];
}

/* The row is complete: it stays if it is neither the set of all nor `largest`, which is a part of it. */
static way_set end_row(fork *f, way_set s, way_set largest) {
    uint32_t size = 0;
    for (uint32_t w = 0; w < words_of(f); w++) size += (uint32_t)__builtin_popcountll(row(f, s)[w]);
    vec_last(&f->sizes) = size;
    if (size < f->ways && size > size_of(f, largest)) return s;
    f->rows.count -= words_of(f);
    f->sizes.count--;
    return size == f->ways ? ALL : largest;
}

static hd_status unite(fork *f, way_set *to, way_set s) {
    way_set a = *to, both;
    if (!a || holds(f, s, a)) return *to = s, HD_OK;
    if (holds(f, a, s)) return HD_OK;
    hd_status status = begin_row(f, &both);
    if (status) return status;
    add_to_row(f, both, a);
    add_to_row(f, both, s);
    *to = end_row(f, both, size_of(f, a) > size_of(f, s) ? a : s);
    return HD_OK;
}

/* ---- where ways meet */

/* The set with which the k-th edge into the node arrives; 0: it comes from elsewhere. */
static way_set arriving(const fork *f, uint32_t i, uint32_t k) {
    uint32_t from = f->d->from[f->d->first_from[i] + k];
    return from == f->head ? f->nodes[i].begins : f->nodes[from].set;
}

static hd_status meet_any(fork *f, uint32_t i) {
    const plan_node *n = at(f, i)->node;
    way_set *set = &f->nodes[i].set;
    for (uint32_t k = 0; k < at(f, i)->arrivals; k++) {
        way_set s = arriving(f, i, k);
        if (!s || (*set && is_same(f, *set, s))) continue;
        if (*set && n->kind != NODE_HANDLER)
            return draft_refuse(f->d, i,
                                "ways that \"%s\" begins at once meet in this %s; only a node that "
                                "waits for all of them may follow",
                                id_of(f, f->head), node_kind_name(n->kind));
        *set = *set ? LOOSE : s;
    }
    return HD_OK;
}

static hd_status meet_all(fork *f, uint32_t i) {
    way_set first = 0, largest = 0, both;
    bool differ = false;
    for (uint32_t k = 0; k < at(f, i)->arrivals; k++) {
        way_set s = arriving(f, i, k);
        if (s == ALL || s == LOOSE) return f->nodes[i].set = s, HD_OK;
        if (!first) first = s;
        differ |= s && s != first;
        if (s && (!largest || size_of(f, s) > size_of(f, largest))) largest = s;
    }
    f->nodes[i].set = first;
    if (!differ) return HD_OK;
    hd_status status = begin_row(f, &both);
    if (status) return status;
    for (uint32_t k = 0; k < at(f, i)->arrivals; k++)
        if (arriving(f, i, k)) add_to_row(f, both, arriving(f, i, k));
    f->nodes[i].set = end_row(f, both, largest);
    return HD_OK;
}

static hd_status meet(fork *f, uint32_t i) {
    node_kind kind = at(f, i)->node->kind;
    bool any = kind == NODE_MERGE || kind == NODE_LOOP_HEAD || kind == NODE_HANDLER;
    return any ? meet_any(f, i) : meet_all(f, i);
}

/* What goes on once for all of the ways: the next round of a loop around them, the end of a branch or a function. */
static hd_status check_end(const fork *f, uint32_t i) {
    const plan_node *n = at(f, i)->node;
    const char *end = n->kind == NODE_RET ? "RET" : NULL;
    if (f->nodes[i].set == ALL) return HD_OK;
    for (uint32_t k = 0; k < at(f, i)->count; k++) {
        const plan_edge *e = edge(f, i, k);
        if (e->kind == EDGE_BACK && !f->nodes[e->to].set) end = "its BACK edge";
        if (e->kind == EDGE_JOIN && !f->nodes[n->fan].set) end = "its JOIN edge";
    }
    if (!end) return HD_OK;
    return draft_refuse(f->d, i,
                        "\"%s\" begins several ways at once; they must meet in a node that waits "
                        "for all of them before %s",
                        id_of(f, f->head), end);
}

/* ---- what they share */

static hd_status check_variable(fork *f, uint32_t i, uint32_t v) {
    const draft_node *n = at(f, i);
    way_set s = f->nodes[i].set;
    bool assigns = var_in(n->assigns, v);
    if (!holds(f, s, f->assigner[v] ? f->assigner[v] : s) ||
        (assigns && !holds(f, s, f->users[v] ? f->users[v] : s)))
        return draft_refuse(f->d, i, "it shares \"%s\" with another way that \"%s\" begins at once",
                            f->d->f->names->names.items[v], id_of(f, f->head));
    if (assigns) f->assigner[v] = s;
    return unite(f, &f->users[v], s);
}

/* What the node touches of the variables that some node assigns. */
static hd_status check_variables(fork *f, uint32_t i) {
    const draft_node *n = at(f, i);
    hd_status status = HD_OK;
    for (uint32_t w = 0; w < f->d->words; w++) {
        uint64_t bits = (n->reads.words[w] | n->assigns.words[w]) & f->assigned.words[w];
        for (; bits && !status; bits &= bits - 1)
            status = check_variable(f, i, w * 64 + (uint32_t)__builtin_ctzll(bits));
    }
    return status;
}

static bool is_compared(const fork *f, uint32_t i) {
    return f->nodes[i].set && f->nodes[i].set < LOOSE;
}

/* The variables that the fork's nodes assign; nothing has touched them yet. */
static void note_assigned(fork *f) {
    memset(f->assigned.words, 0, f->d->words * sizeof *f->assigned.words);
    for (uint32_t k = 0; k < f->found.count; k++) {
        const draft_node *n = at(f, f->found.items[k]);
        if (!is_compared(f, f->found.items[k])) continue;
        for (uint32_t w = 0; w < f->d->words; w++) f->assigned.words[w] |= n->assigns.words[w];
    }
    uint32_t result = f->d->f->result; /* written and read within one node */
    f->assigned.words[result / 64] &= ~(UINT64_C(1) << result % 64);
    for (uint32_t w = 0; w < f->d->words; w++)
        for (uint64_t bits = f->assigned.words[w]; bits; bits &= bits - 1) {
            uint32_t v = w * 64 + (uint32_t)__builtin_ctzll(bits);
            f->assigner[v] = f->users[v] = 0;
        }
}

static hd_status sort_by_size(fork *f) {
    vec_clear(&f->by_size);
    if (!vec_room(f->d->p->env, &f->by_size, f->ways)) return HD_NOMEM;
    while (f->by_size.count < f->ways) f->by_size.items[f->by_size.count++] = PLAN_NONE;
    for (uint32_t k = f->found.count; k-- > 0;) {
        uint32_t i = f->found.items[k];
        if (!is_compared(f, i)) continue;
        uint32_t *first = &f->by_size.items[size_of(f, f->nodes[i].set)];
        f->nodes[i].behind = *first;
        *first = i;
    }
    return HD_OK;
}

/* From small sets to large ones: so each has to hold those that came before. */
static hd_status check_sharing(fork *f) {
    note_assigned(f);
    hd_status status = sort_by_size(f);
    for (uint32_t size = 0; size < f->by_size.count; size++)
        for (uint32_t i = f->by_size.items[size]; i != PLAN_NONE && !status; i = f->nodes[i].behind)
            status = check_variables(f, i);
    return status;
}

/* ---- forks */

static hd_status reach(fork *f, uint32_t i, bool open) {
    way_node *n = &f->nodes[i];
    f->open += open && !n->open;
    n->open |= open;
    if (binheap_linked(&n->item)) return HD_OK;
    return binheap_push(&f->next, &n->item, at(f, i)->order);
}

static hd_status begin(fork *f) {
    hd_status status = HD_OK;
    f->ways = 0;
    for (uint32_t k = 0; k < at(f, f->head)->count && !status; k++) {
        const plan_edge *e = edge(f, f->head, k);
        if (e->kind != EDGE_FORWARD) continue;
        f->nodes[e->to].begins = ++f->ways;
        status = reach(f, e->to, true);
    }
    return status;
}

static hd_status visit(fork *f, uint32_t i) {
    const draft_node *n = at(f, i);
    f->open -= f->nodes[i].open;
    f->nodes[i].open = false;
    f->work += 1 + n->arrivals + n->count + f->d->words;
    if (f->work > WORK_MAX) return HD_LIMIT;
    if (!vec_push(f->d->p->env, &f->found, i)) return HD_NOMEM;
    hd_status status = meet(f, i);
    if (!status) status = check_end(f, i);
    for (uint32_t k = 0; k < n->count && !status; k++)
        if (edge(f, i, k)->kind != EDGE_BACK)
            status = reach(f, edge(f, i, k)->to, f->nodes[i].set != ALL);
    return status;
}

/* Nodes in which all ways have met are followed only as long as a way without the others is left. */
static hd_status check_fork(fork *f) {
    hd_status status = begin(f);
    while (f->open && !status) {
        way_node *n = BINHEAP_ENTRY(binheap_pop(&f->next), way_node, item);
        status = visit(f, (uint32_t)(n - f->nodes));
    }
    return status ? status : check_sharing(f);
}

static void forget(fork *f) {
    for (uint32_t k = 0; k < f->found.count; k++) f->nodes[f->found.items[k]].set = 0;
    while (binheap_count(&f->next)) (void)binheap_pop(&f->next);
    for (uint32_t k = 0; k < at(f, f->head)->count; k++)
        f->nodes[edge(f, f->head, k)->to].begins = 0;
    vec_clear(&f->found);
    vec_clear(&f->rows);
    vec_clear(&f->sizes);
}

/* For the first fork of the function. */
static hd_status make_room(fork *f) {
    uint32_t nodes = f->d->nodes.count, names = f->d->f->names->names.count;
    f->nodes = arena_alloc_array(&f->memory, nodes, sizeof *f->nodes);
    f->assigned.words = arena_alloc_array(&f->memory, f->d->words, sizeof *f->assigned.words);
    f->assigner = arena_alloc_array(&f->memory, names, sizeof *f->assigner);
    f->users = arena_alloc_array(&f->memory, names, sizeof *f->users);
    if (!f->nodes || !f->assigned.words || !f->assigner || !f->users) return HD_NOMEM;
    memset(f->nodes, 0, nodes * sizeof *f->nodes);
    return HD_OK;
}

/* Whether it begins several ways. */
static hd_status find_fork(draft *d, uint32_t i, bool *out) {
    const draft_node *n = &d->nodes.items[i];
    uint32_t forward = 0, plain = 0;
    for (uint32_t k = 0; k < n->count; k++) {
        edge_kind kind = d->edges.items[n->first + k].kind;
        forward += kind == EDGE_FORWARD;
        plain += kind == EDGE_FORWARD || kind == EDGE_BACK || kind == EDGE_JOIN;
    }
    *out = forward > 1;
    if (plain < 2 || forward == plain) return HD_OK;
    return draft_refuse(d, i, "a BACK or JOIN edge beside another edge");
}

static hd_status check_node(fork *f, uint32_t i) {
    bool forks;
    hd_status status = find_fork(f->d, i, &forks);
    if (status || !forks) return status;
    if (!f->nodes) status = make_room(f);
    if (status) return status;
    f->head = i;
    status = check_fork(f);
    forget(f);
    if (status == HD_LIMIT)
        env_error(f->d->error, status,
                  "%s: too many nodes lie between those that begin several ways at once and those "
                  "in which these meet: split it",
                  f->d->f->name);
    return status;
}

hd_status draft_check_ways(draft *d) {
    const hd_env *env = d->p->env;
    fork f = { .d = d };
    hd_status status = HD_OK;
    arena_init(&f.memory, env);
    binheap_init(&f.next, env);
    for (uint32_t i = 0; i < d->nodes.count && !status; i++) status = check_node(&f, i);
    binheap_fini(&f.next);
    vec_fini(env, &f.found);
    vec_fini(env, &f.rows);
    vec_fini(env, &f.sizes);
    vec_fini(env, &f.by_size);
    arena_fini(&f.memory);
    return status;
}

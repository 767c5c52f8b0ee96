/* load.c -- an instance from its document.
 *
 * First an empty object for each number, then their content, which may name any of them; then the first
 * activation, calls in order of their numbers (a caller's is lower), fans, branches, and strands. Nothing
 * is run and nothing is looked up in a history: the document is the whole state. */
#include "workflow/save.h"

#include "base/env.h"
#include "base/hash.h"
#include "base/table.h"
#include "expr/dict.h"
#include "expr/encode.h"
#include "workflow/open_record.h"
#include "workflow/walk.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct numbered_object {
    uint32_t number; /* first */
    ev v;            /* referenced: code that binds an element sweeps */
} numbered_object;

/* What has been loaded: strands, calls and fans, which have a number; and branches, by the number of their fan and
 * their index. */
typedef enum known_kind { KNOWN_STRAND, KNOWN_CALL, KNOWN_FAN, KNOWN_BRANCH } known_kind;

typedef struct known {
    known_kind kind;
    uint32_t number, index; /* index: of a branch; else 0 */
    void *what;
} known;

typedef struct loader {
    instance *in;
    hd_value doc;
    hd_error *error;
    uint32_t next;                /* all numbers are below it */
    VEC(numbered_object) objects; /* in the order of their numbers */
    VEC(known) known;
    table by_known; /* of `known` */
} loader;

static hd_status corrupt(loader *l, const char *where, const char *what) {
    env_error(l->error, HD_CORRUPT, "%s: %s", where, what);
    return HD_CORRUPT;
}

static hd_status out_of_memory(const loader *l) {
    return l->in->w->status ? l->in->w->status : HD_NOMEM;
}

/* A part is an object, or it is not there. HD_CORRUPT: it is something else, whose keys could not be read. */
static hd_status part_of(loader *l, hd_value of, const char *part, hd_iter *out) {
    hd_value v = hd_value_at(of, part);
    *out = hd_iter_of(v);
    if (!hd_value_exists(v) || hd_value_kind(v) == HD_KIND_OBJECT) return HD_OK;
    env_error(l->error, HD_CORRUPT, "/%s: it is no object", part);
    return HD_CORRUPT;
}

static bool number_of_key(const char *key, uint32_t *out) {
    char *end;
    unsigned long n = strtoul(key, &end, 10);
    *out = (uint32_t)n;
    return *key && !*end && n < UINT32_MAX;
}

static bool number_at(hd_value v, const char *key, uint32_t *out) {
    int64_t n = hd_value_as_int(hd_value_at(v, key), -1);
    *out = (uint32_t)n;
    return n >= 0 && n < UINT32_MAX;
}

/* ---- what has been loaded */

static uint32_t hash_known(known_kind kind, uint32_t number, uint32_t index) {
    return (uint32_t)hash_combine(hash_combine(number, index), kind);
}

static void *find_known(const loader *l, known_kind kind, uint32_t number, uint32_t index) {
    uint32_t hash = hash_known(kind, number, index);
    for (table_probe p = table_find(&l->by_known, hash); table_next(&l->by_known, &p);) {
        const known *found = &l->known.items[p.index];
        if (found->kind == kind && found->number == number && found->index == index)
            return found->what;
    }
    return NULL;
}

static hd_status note_known(loader *l, known_kind kind, uint32_t number, uint32_t index,
                            void *what) {
    known k = { kind, number, index, what };
    if (!vec_push(l->in->env, &l->known, k)) return HD_NOMEM;
    return table_insert(&l->by_known, hash_known(kind, number, index), l->known.count - 1);
}

/* ---- objects */

/* Of structs that begin with a number. */
static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static ev object_find(void *ctx, world *w, uint32_t number) {
    const loader *l = ctx;
    const numbered_object wanted = { .number = number }, *found = NULL;
    if (l->objects.count)
        found = bsearch(&wanted, l->objects.items, l->objects.count, sizeof wanted, by_number);
    return found ? found->v : raise_f(w, CLASS_SystemError, "object %u is missing", number);
}

static hd_status make_stubs(loader *l) {
    hd_iter it;
    hd_status status = part_of(l, l->doc, "objects", &it);
    while (!status && hd_iter_next(&it)) {
        uint32_t number;
        if (!number_of_key(it.key, &number)) return corrupt(l, "/objects", "a key is no number");
        ev stub = decode_stub(l->in->w, it.value, number);
        if (ev_failed(stub))
            return l->in->w->status ? l->in->w->status : corrupt(l, "/objects", "unknown class");
        if (!vec_push(l->in->env, &l->objects, ((numbered_object){ number, stub })))
            return HD_NOMEM;
        world_ref(stub);
        if (number > l->in->objects) l->in->objects = number;
    }
    if (l->objects.count)
        qsort(l->objects.items, l->objects.count, sizeof *l->objects.items, by_number);
    return status;
}

static hd_status fill(void *ctx, world *w, ev object) {
    loader *l = ctx;
    char key[12];
    snprintf(key, sizeof key, "%u", world_number(object));
    return decode_object(w, hd_value_at(hd_value_at(l->doc, "objects"), key), object, object_find,
                         l, l->error);
}

static hd_status load_objects(loader *l) {
    world *w = l->in->w;
    hd_status status = make_stubs(l);
    world_set_loader(w, fill, l);
    for (uint32_t i = 0; i < l->objects.count && !status; i++)
        if (!world_need(w, l->objects.items[i].v)) {
            status = w->status;
            w->status = HD_OK;
        }
    world_set_loader(w, NULL, NULL);
    return status;
}

static void end_load(loader *l) {
    for (uint32_t i = 0; i < l->objects.count; i++) world_unref(l->in->w, l->objects.items[i].v);
    vec_fini(l->in->env, &l->objects);
    vec_fini(l->in->env, &l->known);
    table_fini(&l->by_known);
}

static hd_status load_slot(loader *l, hd_value v, ev *out) {
    return decode_slot(l->in->w, v, object_find, l, out, l->error);
}

/* ---- activations */

/* The node of this name; PLAN_NONE: it cannot stand in this activation. Nodes of a branch stand in activations of that
 * branch alone. */
static uint32_t find_node(const activation *a, const char *id) {
    const plan_function *f = activation_function(a);
    uint32_t node = plan_find_node(f, id), head = a->fan ? a->fan->node : PLAN_NONE;
    return node != PLAN_NONE && f->nodes[node].fan == head ? node : PLAN_NONE;
}

static bool has_loop(const activation *a, uint32_t head) {
    for (uint32_t i = 0; i < a->loops.count; i++)
        if (a->loops.items[i].node == head) return true;
    return false;
}

/* As find_node, for what waits there: the activation is in all loops around the node. */
static uint32_t find_waiting(const activation *a, const char *id) {
    const plan_node *all = activation_function(a)->nodes;
    uint32_t node = find_node(a, id), at = node == PLAN_NONE ? PLAN_NONE : all[node].loop;
    for (; at != PLAN_NONE && all[at].fan == all[node].fan; at = all[at].loop)
        if (!has_loop(a, at)) return PLAN_NONE;
    return node;
}

static hd_status load_variables(loader *l, activation *a, hd_iter it) {
    assert(a->in == l->in && a->vars);
    const scope *names = a->vars->names;
    while (hd_iter_next(&it)) {
        uint32_t slot = scope_find(names, it.key, it.key_length);
        ev v;
        if (slot == UINT32_MAX)
            return corrupt(l, "/vars", "a variable that the workflow does not have");
        hd_status status = load_slot(l, it.value, &v);
        if (status) return status;
        activation_assign(a, slot, v);
        a->own[slot] = 1;
        a->vars->changed.items[slot] = 0;
    }
    return HD_OK;
}

/* As loop_begin() in walk.c makes it. */
static bool loop_fits(const loop_state *s, bool is_while) {
    ev_kind over = s->over.kind, source = s->source.kind;
    if (s->visit > INT64_MAX) return false;
    if (source == EV_DICT || source == EV_SET || source == EV_VIEW)
        return over == EV_LIST && s->visit <= s->over.list->count;
    return source == EV_UNBOUND &&
           (is_while ? over == EV_TUPLE
                     : over == EV_LIST || over == EV_TUPLE || over == EV_STR || over == EV_RANGE);
}

static hd_status load_loop(loader *l, activation *a, const char *id, hd_value v) {
    assert(a->in == l->in && !a->ended);
    loop_state s = { .node = find_node(a, id), .stored = true };
    s.over = s.source = ev_unbound();
    if (s.node == PLAN_NONE || activation_function(a)->nodes[s.node].kind != NODE_LOOP_HEAD)
        return corrupt(l, "/loops", "a loop that the workflow does not have");
    s.visit = (uint64_t)hd_value_as_int(hd_value_at(v, "visit"), 0);
    s.size = hd_value_as_int(hd_value_at(v, "size"), 0);
    hd_status status = load_slot(l, hd_value_at(v, "over"), &s.over);
    if (!status && hd_value_exists(hd_value_at(v, "source")))
        status = load_slot(l, hd_value_at(v, "source"), &s.source);
    if (status) return status;
    if (!loop_fits(&s, activation_function(a)->nodes[s.node].test != NULL))
        return corrupt(l, "/loops", "it iterates over what no loop iterates over");
    if (!vec_push(l->in->env, &a->loops, s)) return HD_NOMEM;
    world_ref(s.over);
    world_ref(s.source);
    return HD_OK;
}

static hd_status load_ready(loader *l, activation *a, const char *id, hd_value v) {
    assert(a->in == l->in && !a->ended);
    arrivals r = { .node = find_node(a, id), .stored = true };
    if (r.node == PLAN_NONE) return corrupt(l, "/ready", "a node that the workflow does not have");
    r.satisfied = (uint32_t)hd_value_as_int(v, 0);
    if (!r.satisfied || r.satisfied >= activation_function(a)->nodes[r.node].deps_required)
        return corrupt(l, "/ready", "a count that cannot be");
    return vec_push(l->in->env, &a->ready, r) ? HD_OK : HD_NOMEM;
}

static hd_status load_activation(loader *l, activation *a, hd_value v) {
    assert(a->in == l->in && !a->stored);
    hd_iter vars, loops, ready;
    hd_status status = part_of(l, v, "vars", &vars);
    if (!status) status = part_of(l, v, "loops", &loops);
    if (!status) status = part_of(l, v, "ready", &ready);
    if (!status) status = load_variables(l, a, vars);
    while (!status && hd_iter_next(&loops)) status = load_loop(l, a, loops.key, loops.value);
    while (!status && hd_iter_next(&ready)) status = load_ready(l, a, ready.key, ready.value);
    a->stored = true;
    return status;
}

/* A branch that is open: as it began, and what it has assigned since. */
static hd_status make_branch(loader *l, fan *f, uint32_t index, activation **out) {
    char key[12];
    if (index >= f->total) return corrupt(l, "/open", "a branch that cannot be");
    *out = instance_branch(l->in, f, index);
    if (!*out) return out_of_memory(l);
    hd_status status = note_known(l, KNOWN_BRANCH, f->number, index, *out);
    if (!status) status = walk_bind_element(f, *out);
    snprintf(key, sizeof key, "%u", index);
    char number[12];
    snprintf(number, sizeof number, "%u", f->number);
    hd_value stored =
        hd_value_at(hd_value_at(hd_value_at(hd_value_at(l->doc, "fans"), number), "branches"), key);
    if (!status && hd_value_exists(stored)) status = load_activation(l, *out, stored);
    /* A branch that has its result is loaded only because leftovers of its own fan-outs are below it. */
    if (!dict_find(l->in->w, f->results.dict, ev_int(index))) f->begun++;
    return status;
}

/* {} is the first; {"call": n}; {"fan": n, "index": i}. */
static hd_status find_place(loader *l, hd_value v, activation **out) {
    uint32_t number, index = 0;
    bool branch = number_at(v, "fan", &number);
    if (!branch && !number_at(v, "call", &number)) return *out = l->in->root, HD_OK;
    if (branch && !number_at(v, "index", &index))
        return corrupt(l, "/open", "a branch without index");
    *out = find_known(l, branch ? KNOWN_BRANCH : KNOWN_CALL, number, index);
    if (*out) return HD_OK;
    fan *f = branch ? find_known(l, KNOWN_FAN, number, 0) : NULL;
    return f ? make_branch(l, f, index, out)
             : corrupt(l, "/open", "it names a call or fan that is not there");
}

/* ---- what has numbers, in their order */

typedef struct numbered {
    uint32_t number; /* first */
    bool is_call;
    hd_value v;
} numbered;

typedef VEC(numbered) numbered_vec;

static hd_status collect(loader *l, const char *part, bool is_call, numbered_vec *all) {
    hd_iter it;
    hd_status status = part_of(l, l->doc, part + 1, &it);
    while (!status && hd_iter_next(&it)) {
        numbered n = { .is_call = is_call, .v = it.value };
        if (!number_of_key(it.key, &n.number)) return corrupt(l, part, "a key is no number");
        if (!vec_push(l->in->env, all, n)) return HD_NOMEM;
    }
    return status;
}

/* Loads each in turn, unless collecting them has failed. Frees the list. */
static hd_status load_in_order(loader *l, numbered_vec *all, hd_status status,
                               hd_status (*load)(loader *l, const numbered *n)) {
    if (all->count) qsort(all->items, all->count, sizeof *all->items, by_number);
    for (uint32_t i = 0; i < all->count && !status; i++) {
        uint32_t number = all->items[i].number;
        bool twice = i && number == all->items[i - 1].number;
        status = twice               ? corrupt(l, "/", "two have the same number")
                 : number >= l->next ? corrupt(l, "/next", "a number is not below it")
                                     : load(l, &all->items[i]);
    }
    vec_fini(l->in->env, all);
    return status;
}

/* ---- calls and fans: whatever one stands in has a lower number */

static hd_status load_call(loader *l, const numbered *c) {
    assert(c->is_call && l->in->root);
    instance *in = l->in;
    activation *caller;
    hd_status status = find_place(l, hd_value_at(c->v, "caller"), &caller);
    if (status) return status;
    uint32_t fn = plan_find_function(in->p, hd_value_as_text(hd_value_at(c->v, "function"), ""));
    uint32_t node = find_waiting(caller, hd_value_as_text(hd_value_at(c->v, "node"), ""));
    const plan_node *n = node == PLAN_NONE ? NULL : &activation_function(caller)->nodes[node];
    if (fn == PLAN_NONE || !n || n->kind != NODE_CALL || n->callee != fn)
        return corrupt(l, "/calls", "it names what the workflow does not have");
    activation *a = instance_activation(in, fn, caller, node);
    if (!a) return out_of_memory(l);
    a->number = c->number;
    status = note_known(l, KNOWN_CALL, c->number, 0, a);
    return status ? status : load_activation(l, a, c->v);
}

static hd_status load_results(loader *l, fan *f, hd_value stored) {
    assert(f->results.kind == EV_DICT && !f->waiter);
    hd_iter it;
    hd_status status = part_of(l, stored, "results", &it);
    while (!status && hd_iter_next(&it)) {
        uint32_t index;
        ev v;
        if (!number_of_key(it.key, &index) || index >= f->total)
            return corrupt(l, "/fans", "a result too many");
        status = load_slot(l, it.value, &v);
        if (status) return status;
        if (!dict_set(l->in->w, f->results.dict, ev_int(index), v)) return out_of_memory(l);
        f->begun++;
        f->done++;
    }
    return status;
}

/* How often: a number, or `true` for once. */
static uint32_t times_at(hd_value v, const char *key) {
    hd_value times = hd_value_at(v, key);
    return (uint32_t)hd_value_as_int(times, hd_value_as_bool(times, false));
}

static hd_status load_fan(loader *l, const numbered *c) {
    assert(!c->is_call && l->in->root);
    activation *a;
    hd_status status = find_place(l, hd_value_at(c->v, "in"), &a);
    if (status) return status;
    uint32_t node = find_waiting(a, hd_value_as_text(hd_value_at(c->v, "node"), ""));
    if (node == PLAN_NONE || activation_function(a)->nodes[node].kind != NODE_FAN_HEAD)
        return corrupt(l, "/fans", "it names what the workflow does not have");
    fan *f = instance_fan_at(l->in, a, node);
    if (!f) return out_of_memory(l);
    f->number = c->number;
    f->stored = true;
    status = note_known(l, KNOWN_FAN, c->number, 0, f);
    if (status) return status;
    f->total = activation_function(a)->nodes[node].out_count;
    if (hd_value_exists(hd_value_at(c->v, "items")) !=
        (activation_function(a)->nodes[node].code != NULL))
        return corrupt(l, "/fans", "items do not fit its node");
    hd_value items = hd_value_at(c->v, "items");
    if (hd_value_exists(items)) {
        ev all;
        status = load_slot(l, items, &all);
        if (status || all.kind != EV_TUPLE)
            return status ? status : corrupt(l, "/fans", "items are a tuple");
        world_ref(all);
        f->items = all;
        f->total = f->items.tuple->count;
    }
    if (!number_at(c->v, "failed", &f->failed)) f->failed = PLAN_NONE;
    else if (f->failed >= f->total) return corrupt(l, "/fans", "a failure that cannot be");
    f->cancelled = hd_value_as_bool(hd_value_at(c->v, "cancelled"), false);
    f->cancels = times_at(c->v, "cancels");
    return load_results(l, f, c->v);
}

static hd_status load_call_or_fan(loader *l, const numbered *n) {
    return n->is_call ? load_call(l, n) : load_fan(l, n);
}

static hd_status load_calls_and_fans(loader *l) {
    numbered_vec all = { 0 };
    hd_status status = collect(l, "/calls", true, &all);
    if (!status) status = collect(l, "/fans", false, &all);
    return load_in_order(l, &all, status, load_call_or_fan);
}

/* ---- strands */

static strand_state state_at(const plan_node *n, uint64_t due, uint32_t attempt) {
    switch (n->kind) {
    case NODE_ACTION:
        if (!due) return STRAND_READY;
        return attempt > 1 ? STRAND_BACKOFF : STRAND_ENDED;
    case NODE_SLEEP: return due ? STRAND_SLEEPING : STRAND_ENDED;
    case NODE_WAIT: return STRAND_SIGNAL;
    case NODE_CHILD: return STRAND_CHILD;
    case NODE_FAN_HEAD: return STRAND_FAN;
    default: return STRAND_ENDED;
    }
}

static hd_status load_args(strand *s, hd_value stored) {
    assert(!hd_value_exists(s->args) && !s->token);
    s->args = hd_value_ref(stored);
    bool lost =
        (s->state == STRAND_READY || s->state == STRAND_BACKOFF || s->state == STRAND_CHILD) &&
        !hd_value_exists(stored);
    return lost ? walk_compute_args(s) : HD_OK;
}

static hd_status load_strand(loader *l, const numbered *n) {
    assert(l->in->root && !instance_is_over(l->in));
    activation *a;
    hd_value record = n->v, v = open_record_place(record); /* and the rest */
    int64_t step = hd_value_as_int(open_record_at(record, "step"), -1);
    hd_status status = find_place(l, v, &a);
    if (status) return status;
    uint32_t node = find_waiting(a, open_record_node(record));
    uint64_t due = (uint64_t)hd_value_as_int(hd_value_at(v, "due"), 0);
    if (node == PLAN_NONE) return corrupt(l, "/open", "a node that the workflow does not have");
    strand *s = instance_strand(l->in, a);
    if (!s) return out_of_memory(l);
    s->number = n->number;
    status = note_known(l, KNOWN_STRAND, n->number, 0, s);
    if (status) return status;
    s->node = node;
    s->due_ms = due;
    s->since_ms = open_record_since(l->doc, record);
    s->step = (uint32_t)step;
    s->stored = true;
    s->attempt = (uint32_t)hd_value_as_int(hd_value_at(v, "attempt"), 1);
    strand_state state = state_at(&activation_function(a)->nodes[node], due, s->attempt);
    if (state == STRAND_ENDED || step < 0 || step >= UINT32_MAX)
        return corrupt(l, "/open", "a strand that does not wait");
    strand_set_state(s, state);
    list_push_back(&l->in->unqueued, &s->unqueued);
    if (state == STRAND_CHILD) list_push_back(&l->in->wanted, &s->want);
    if (state == STRAND_CHILD || state == STRAND_FAN) s->due_ms = 0; /* they have no timer */
    s->lost = (uint32_t)hd_value_as_int(hd_value_at(v, "lost"), 0);
    s->limit = hd_value_ref(hd_value_at(v, "limit"));
    s->why = hd_value_ref(hd_value_at(v, "why"));
    s->cancelled = times_at(v, "cancelled");
    s->cancels = times_at(v, "cancels");
    s->begun = (uint64_t)hd_value_as_int(hd_value_at(v, "begun"), 0);
    s->loaded = true;
    if (s->begun > *l->in->steps_begun) *l->in->steps_begun = s->begun;
    s->child_begun = state == STRAND_CHILD;
    s->child_tag = (uint64_t)hd_value_as_int(hd_value_at(v, "tag"), 0);
    return load_args(s, hd_value_at(v, "args"));
}

/* In the order in which they were begun: the instance's list keeps it (unwind.c, step.c). */
static hd_status load_strands(loader *l) {
    numbered_vec all = { 0 };
    return load_in_order(l, &all, collect(l, "/open", false, &all), load_strand);
}

static hd_status find_waiters(loader *l) {
    LIST_FOR (n, &l->in->fans) {
        fan *f = LIST_ENTRY(n, fan, link);
        char key[12];
        uint32_t number;
        snprintf(key, sizeof key, "%u", f->number);
        if (!number_at(hd_value_at(hd_value_at(l->doc, "fans"), key), "strand", &number))
            continue; /* nothing waits for it: no more are begun */
        strand *s = find_known(l, KNOWN_STRAND, number, 0);
        if (!s || s->waits_for || s->a != f->a || s->node != f->node)
            return corrupt(l, "/fans", "the strand that waits for it is not there");
        f->waiter = s;
        s->waits_for = f;
    }
    return HD_OK;
}

static hd_status check_strands(loader *l) {
    LIST_FOR (n, &l->in->strands) {
        const strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_FAN && !s->waits_for)
            return corrupt(l, "/open", "a strand waits for branches that are not there");
    }
    return HD_OK;
}

static hd_status check_branches(loader *l) {
    LIST_FOR (n, &l->in->fans) {
        const fan *f = LIST_ENTRY(n, fan, link);
        if (f->waiter && f->done == f->begun) return corrupt(l, "/fans", "no branch is open");
    }
    return HD_OK;
}

static hd_status load_all(loader *l) {
    instance *in = l->in;
    hd_status status = load_objects(l);
    if (!status && !instance_activation(in, 0, NULL, PLAN_NONE)) status = out_of_memory(l);
    if (!status) status = load_activation(l, in->root, l->doc);
    if (!status) status = load_calls_and_fans(l);
    if (!status) status = load_strands(l);
    if (!status) status = find_waiters(l);
    if (!status) status = check_strands(l);
    if (!status) status = check_branches(l);
    if (!status && in->strand_count == in->fan_count) status = corrupt(l, "/open", "nothing waits");
    return status;
}

hd_status instance_load_last(instance *in, hd_value document, hd_error *error) {
    loader l = { .in = in, .doc = document, .error = error };
    instance_enter(in);
    table_init(&l.by_known, in->env);
    hd_status status = load_objects(&l);
    if (!status && !instance_activation(in, 0, NULL, PLAN_NONE)) status = out_of_memory(&l);
    if (!status) status = load_activation(&l, in->root, document);
    end_load(&l);
    world_journal_clear(in->w);
    in->parts = UINT8_MAX;
    hd_status left = instance_leave(in);
    return status ? status : left;
}

/* If the document has `ending`, the first function has ended, and the strands that are loaded clean up. */
static void load_ending(instance *in, hd_value document) {
    const char *name = hd_value_as_text(hd_value_at(document, "ending"), "");
    instance_status i = INSTANCE_DONE;
    while (i < INSTANCE_STATUSES && strcmp(name, instance_status_name(i)) != 0) i++;
    if (i == INSTANCE_STATUSES) return;
    in->ending = i;
    in->ending_stored = in->result_stored = in->leftovers_cancelled = true;
    in->outcome = hd_value_ref(hd_value_at(document, i == INSTANCE_DONE ? "result" : "error"));
}

hd_status instance_load(instance *in, hd_value document, hd_error *error) {
    loader l = { .in = in, .doc = document, .error = error };
    instance_enter(in);
    table_init(&l.by_known, in->env);
    if (!number_at(document, "next", &l.next)) l.next = 1;
    hd_status status = load_all(&l);
    in->next_number = l.next;
    in->started_ms = (uint64_t)hd_value_as_int(hd_value_at(document, "started"), 0);
    in->number_changed = false;
    in->parts = UINT8_MAX;
    in->cancelling = times_at(document, "cancelling");
    in->cancelling_stored = in->cancelling;
    load_ending(in, document);
    if (!strcmp(hd_value_as_text(hd_value_at(document, "status"), ""), "paused"))
        in->status = INSTANCE_PAUSED;
    end_load(&l);
    world_journal_clear(in->w);
    if (!status) instance_sweep(in); /* nothing of it is news */
    if (!status) instance_check(in);
    hd_status left = instance_leave(in);
    return status ? status : left;
}

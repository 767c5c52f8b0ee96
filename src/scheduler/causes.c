/* causes.c -- finds the causes of runs from the reads of a node, and keeps a record where the reads do not tell
 * them. */
#include "scheduler/causes.h"

#include "base/env.h"
#include <stdlib.h>

/* The causes of one node that its reads do not tell. All places are referenced. */
struct kept_causes {
    /* of_next: the causes of the next run are `next`, and the reads that changed after next_since. Otherwise they are
     * the reads that changed since the last run. */
    bool of_next;
    uint64_t next_since;
    place_vec next;
    /* of_last: the causes of the last run are `last`. Otherwise its reads tell them. */
    bool of_last;
    place_vec last;
};

static kept_causes *kept(const scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & NODE_CAUSED) || (id < s->caused_capacity && s->caused[id]));
    return node_of(s, id)->flags & NODE_CAUSED ? s->caused[id] : NULL;
}

static bool has_group(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    return c && c->group;
}

/* ---- sets of addresses */

static inline bool contains(const place_vec *v, place_id at) {
    for (uint32_t i = 0; i < v->count; i++)
        if (v->items[i] == at) return true;
    return false;
}

/* Adds an address, if it is not there already; in a list of more than CAUSES_FEW it may stand twice, until
 * join() removes it. False: no memory. */
static inline bool enter(const scheduler *s, place_vec *out, place_id at) {
    if (out->count <= CAUSES_FEW && contains(out, at)) return true;
    return vec_push(s->env, out, at);
}

static place_id parent_of(const places *ps, place_id at) {
    return place_is_doc(ps, at) ? 0 : place_at(ps, at)->in.parent;
}

/* The nearest place above both (or one of them). They are of one document. */
static place_id common_ancestor(const places *ps, place_id a, place_id b) {
    assert(place_at(ps, a)->root == place_at(ps, b)->root);
    while (a != b && !place_is_doc(ps, a)) {
        for (place_id up = b; up; up = parent_of(ps, up))
            if (up == a) return a;
        a = parent_of(ps, a);
    }
    return a;
}

typedef struct rooted {
    place_id root, at;
} rooted;

static int by_root(const void *a, const void *b) {
    const rooted *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Replaces the addresses of each document by their nearest common ancestor. */
static hd_status join(const scheduler *s, place_vec *out) {
    assert(out->count);
    const places *ps = &s->r->places;
    rooted *all = env_new_array(s->env, out->count, sizeof *all);
    uint32_t count = out->count, joined = 0;
    if (!all) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        all[i] = (rooted){ place_at(ps, out->items[i])->root, out->items[i] };
    qsort(all, count, sizeof *all, by_root);
    for (uint32_t i = 0; i < count; i++) {
        place_id *last = joined ? &out->items[joined - 1] : NULL;
        if (last && place_at(ps, *last)->root == all[i].root)
            *last = common_ancestor(ps, *last, all[i].at);
        else out->items[joined++] = all[i].at;
    }
    out->count = joined;
    assert(joined && joined <= count);
    env_free(s->env, all, count * sizeof *all);
    return HD_OK;
}

static void drop_places(scheduler *s, place_vec *v) {
    for (uint32_t i = 0; i < v->count; i++) place_unref(&s->r->places, v->items[i]);
    vec_clear(v);
}

static void swap(place_vec *a, place_vec *b) {
    place_vec was = *a;
    *a = *b;
    *b = was;
}

/* ---- gathering */

typedef struct window {
    uint64_t since, until; /* it holds reads that changed after `since` and up to `until` */
    place_id own;          /* a document whose change at `until` the node itself made; 0: none */
} window;

static inline bool is_in_window(const scheduler *s, const window *w, uint32_t key) {
    uint64_t rev = causes_changed_at(s, key);
    if (rev <= w->since || rev > w->until) return false;
    return !w->own || rev != w->until || place_at(&s->r->places, key & KEY_PLACE)->root != w->own;
}

/* Adds the reads in the window, in their order. */
static hd_status gather(const scheduler *s, node_id id, const window *w, place_vec *out) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (is_in_window(s, w, reads[i].key) && !enter(s, out, reads[i].key & KEY_PLACE))
            return HD_NOMEM;
    return HD_OK;
}

static hd_status copy(const scheduler *s, const place_vec *from, place_vec *out) {
    assert(from != out);
    vec_clear(out);
    if (!vec_room(s->env, out, from->count)) return HD_NOMEM;
    if (from->count) memcpy(out->items, from->items, from->count * sizeof *out->items);
    out->count = from->count;
    return HD_OK;
}

static window next_window(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const kept_causes *k = kept(s, id);
    if (k && k->of_next) return (window){ k->next_since, UINT64_MAX, 0 };
    /* A node with a change group has a record of every change that concerned it: its reads add nothing. */
    return (window){ has_group(s, n) ? UINT64_MAX : n->ran_rev, UINT64_MAX, 0 };
}

hd_status causes_of_next(const scheduler *s, node_id id, place_vec *out) {
    const kept_causes *k = kept(s, id);
    window w = next_window(s, id);
    vec_clear(out);
    if (node_of(s, id)->flags & NODE_NEVER_RAN) return HD_OK;
    hd_status status = k && k->of_next ? copy(s, &k->next, out) : HD_OK;
    if (!status) status = gather(s, id, &w, out);
    return !status && out->count > CAUSES_FEW ? join(s, out) : status;
}

/* The window in which the registered reads tell the causes of the last run. */
static window last_window(const scheduler *s, const node *n) {
    window w = { causes_last_since(n), n->ran_rev, 0 };
    if (has_group(s, n)) w.since = UINT64_MAX;
    if (n->output) w.own = place_at(&s->r->places, n->output)->root;
    return w;
}

hd_status causes_of_last(const scheduler *s, node_id id, place_vec *out) {
    const kept_causes *k = kept(s, id);
    window w = last_window(s, node_of(s, id));
    vec_clear(out);
    if (k && k->of_last) return copy(s, &k->last, out);
    hd_status status = gather(s, id, &w, out);
    return !status && out->count > CAUSES_FEW ? join(s, out) : status;
}

/* Whether the registered reads tell just these causes, in this order. */
static bool reads_tell_last(const scheduler *s, node_id id, const place_vec *causes) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    window w = last_window(s, n);
    uint32_t told = 0;
    if (causes->count > CAUSES_FEW) return false;
    for (uint32_t i = 0; i < n->read_count; i++) {
        place_id at = reads[i].key & KEY_PLACE;
        if (!is_in_window(s, &w, reads[i].key)) continue;
        if (told < causes->count && causes->items[told] == at) told++;
        else if (!contains(&(place_vec){ causes->items, told, told }, at)) return false;
    }
    return told == causes->count;
}

/* ---- records */

static hd_status room_for_record(scheduler *s, node_id id) {
    const size_t size = sizeof *s->caused;
    uint32_t old = s->caused_capacity, capacity = old ? old : 64;
    if (id < old) return HD_OK;
    while (capacity <= id) capacity = vec_next_capacity(capacity, size);
    kept_causes **caused = env_resize(s->env, s->caused, old * size, capacity * size);
    if (!caused) return HD_NOMEM;
    memset(caused + old, 0, (capacity - old) * size);
    s->caused = caused;
    s->caused_capacity = capacity;
    assert(id < s->caused_capacity);
    return HD_OK;
}

static kept_causes *new_record(scheduler *s) {
    kept_causes *k = s->spare_causes;
    s->spare_causes = NULL;
    return k ? k : env_new0(s->env, sizeof *k);
}

static kept_causes *install(scheduler *s, node_id id, kept_causes *k) {
    assert(id < s->caused_capacity && !s->caused[id]);
    assert(!k->of_next && !k->of_last && !k->next.count && !k->last.count);
    node_of(s, id)->flags |= NODE_CAUSED;
    return s->caused[id] = k;
}

/* The node's record, made if there is none; NULL: no memory. */
static kept_causes *record_of(scheduler *s, node_id id) {
    kept_causes *k = kept(s, id);
    if (k) return k;
    if (room_for_record(s, id) || !(k = new_record(s))) return NULL;
    return install(s, id, k);
}

static void free_record(scheduler *s, kept_causes *k) {
    if (!k) return;
    drop_places(s, &k->next);
    drop_places(s, &k->last);
    vec_fini(s->env, &k->next);
    vec_fini(s->env, &k->last);
    env_free(s->env, k, sizeof *k);
}

/* Takes back an empty record: keeps one for new_record, and frees others. */
static void give_record(scheduler *s, kept_causes *k) {
    assert(!k->next.count && !k->last.count && !k->of_next && !k->of_last);
    if (s->spare_causes) free_record(s, k);
    else s->spare_causes = k;
}

void causes_forget(scheduler *s, node_id id) {
    kept_causes *k = kept(s, id);
    if (!k) return;
    s->caused[id] = NULL;
    node_of(s, id)->flags &= ~(uint32_t)(NODE_CAUSED | NODE_TOLD_WHY);
    drop_places(s, &k->next);
    drop_places(s, &k->last);
    k->of_next = k->of_last = false;
    give_record(s, k);
}

void causes_fini(scheduler *s) {
    for (uint32_t i = 0; i < s->caused_capacity; i++) free_record(s, s->caused[i]);
    free_record(s, s->spare_causes);
    env_free(s->env, s->caused, s->caused_capacity * sizeof *s->caused);
    vec_fini(s->env, &s->told);
    s->caused = NULL;
    s->spare_causes = NULL;
    s->caused_capacity = 0;
}

/* ---- of the next run */

static void forget_next(scheduler *s, node_id id, kept_causes *k) {
    assert(kept(s, id) == k);
    drop_places(s, &k->next);
    k->of_next = false;
    node_of(s, id)->flags &= ~(uint32_t)NODE_TOLD_WHY;
}

static void begin_next(scheduler *s, node_id id, kept_causes *k, uint64_t since) {
    assert(!k->of_next && kept(s, id) == k);
    k->next_since = since;
    k->of_next = true;
    node_of(s, id)->flags |= NODE_TOLD_WHY;
}

/* From here on the record has the causes of the next run; those that the reads tell so far remain causes. */
static void open_next(scheduler *s, node_id id, kept_causes *k) {
    if (k->of_next) return;
    assert(!k->next.count);
    begin_next(s, id, k, next_window(s, id).since);
}

static int by_number(const void *a, const void *b) {
    place_id x = *(const place_id *)a, y = *(const place_id *)b;
    return x < y ? -1 : x > y;
}

/* Removes addresses that are there more than once. */
static void remove_duplicates(scheduler *s, place_vec *v) {
    assert(v->count);
    uint32_t single = 0;
    qsort(v->items, v->count, sizeof *v->items, by_number);
    for (uint32_t i = 0; i < v->count; i++) {
        if (single && v->items[single - 1] == v->items[i]) place_unref(&s->r->places, v->items[i]);
        else v->items[single++] = v->items[i];
    }
    v->count = single;
}

/* Only a short list is searched for duplicates at once. A long one loses them whenever it is full, and grows only if
 * more than half of it is left: so its capacity stays in proportion to the number of different addresses. Without
 * memory everything that changed after `since` counts: too much, never too little. */
static void add_next(scheduler *s, kept_causes *k, place_id at, uint64_t since) {
    place_vec *v = &k->next;
    assert(k->of_next);
    if (v->count <= CAUSES_FEW && contains(v, at)) return;
    if (v->count > CAUSES_FEW && v->count == v->capacity) {
        remove_duplicates(s, v);
        if (v->count > v->capacity / 2) (void)vec_room(s->env, v, v->capacity);
    }
    if (vec_push(s->env, v, at)) place_ref(&s->r->places, at);
    else if (since < k->next_since) k->next_since = since;
}

/* The node's run is being committed: its causes are not causes of the next run. */
static void open_after_run(scheduler *s, node_id id, kept_causes *k) {
    if (!k->of_next) begin_next(s, id, k, has_group(s, node_of(s, id)) ? UINT64_MAX : s->r->rev);
}

void causes_add(scheduler *s, node_id id, place_id at) {
    assert(at);
    node *n = node_of(s, id);
    bool ends = s->concluding == id || s->running == id;
    kept_causes *k = (n->flags & NODE_NEVER_RAN) && !ends ? NULL : record_of(s, id);
    if (!k) return;
    if (ends) open_after_run(s, id, k);
    else open_next(s, id, k);
    add_next(s, k, at, n->ran_rev);
    /* A dormant node leaves the reader lists as it is marked, and hears of nothing more until it is live:
     * from here on everything counts. */
    if (has_group(s, n) && !node_is_live(&s->graph, n) && s->r->rev < k->next_since)
        k->next_since = s->r->rev;
}

void causes_restore(scheduler *s, node_id id, const place_id *causes, uint32_t count,
                    uint64_t since) {
    node *n = node_of(s, id);
    if (!count || (n->flags & NODE_NEVER_RAN) || SABOTAGED(s, LEAVE_OUT_RESTORE)) return;
    kept_causes *k = record_of(s, id);
    if (!k) { /* no memory: the reads that changed after `since` are the causes */
        if (since < n->ran_rev) n->ran_rev = since;
        n->prev_back = 0;
        return;
    }
    open_next(s, id, k);
    for (uint32_t i = 0; i < count; i++) add_next(s, k, causes[i], since);
}

/* ---- a run
 *
 * Whether a record is needed is known only when the run ends, and a lack of memory must not matter then. So the
 * transaction brings an empty record along (tx.room), unless the node has one. */

static hd_status take_room(scheduler *s, node_id id, hd_tx *tx) {
    assert(!tx->room);
    if (kept(s, id)) return HD_OK;
    hd_status status = room_for_record(s, id);
    if (!status && !(tx->room = new_record(s))) status = HD_NOMEM;
    return status;
}

static void give_room(scheduler *s, hd_tx *tx) {
    if (tx->room) give_record(s, tx->room);
    tx->room = NULL;
}

/* The node's record, or else the one that the transaction brought along, which becomes the node's. Cannot fail: one of
 * them is there since causes_take. */
static kept_causes *record_with(scheduler *s, node_id id, hd_tx *tx) {
    kept_causes *k = kept(s, id);
    if (k) return k;
    k = install(s, id, tx->room);
    tx->room = NULL;
    return k;
}

/* The causes of the next run that the record names move to the transaction, with their references, and those that the
 * reads tell are added. HD_NOMEM: nothing changed. */
static hd_status take_named(scheduler *s, node_id id, kept_causes *k, hd_tx *tx) {
    window w = next_window(s, id);
    uint32_t named = k->next.count;
    hd_status status = gather(s, id, &w, &k->next);
    if (status) {
        k->next.count = named;
        return status;
    }
    for (uint32_t i = named; i < k->next.count; i++) place_ref(&s->r->places, k->next.items[i]);
    swap(&k->next, &tx->causes);
    forget_next(s, id, k);
    return HD_OK;
}

/* The same for a node whose record names none: the reads tell all causes. */
static hd_status take_told(scheduler *s, node_id id, hd_tx *tx) {
    assert(!tx->causes.count);
    window w = next_window(s, id);
    hd_status status = gather(s, id, &w, &tx->causes);
    if (status) {
        vec_clear(&tx->causes);
        return status;
    }
    for (uint32_t i = 0; i < tx->causes.count; i++) place_ref(&s->r->places, tx->causes.items[i]);
    return HD_OK;
}

/* Joins the causes of each document into one. Without memory they stay as they are. */
static void take_joined(scheduler *s, hd_tx *tx) {
    place_vec joined = { 0 };
    if (copy(s, &tx->causes, &joined) || join(s, &joined)) {
        vec_fini(s->env, &joined);
        return;
    }
    for (uint32_t i = 0; i < joined.count; i++) place_ref(&s->r->places, joined.items[i]);
    drop_places(s, &tx->causes);
    swap(&joined, &tx->causes);
    vec_fini(s->env, &joined);
}

hd_status causes_take(scheduler *s, node_id id, hd_tx *tx) {
    kept_causes *k = kept(s, id);
    assert(!(tx->flags & TX_CAUSES) && !tx->causes.count);
    if (node_of(s, id)->flags & NODE_NEVER_RAN) return HD_OK;
    hd_status status = take_room(s, id, tx);
    if (!status) status = k && k->of_next ? take_named(s, id, k, tx) : take_told(s, id, tx);
    if (status) {
        give_room(s, tx);
        return status;
    }
    if (tx->causes.count > CAUSES_FEW) take_joined(s, tx);
    tx->causes_rev = s->r->rev;
    tx->flags |= TX_CAUSES;
    assert(kept(s, id) || tx->room);
    return HD_OK;
}

static void into_next(scheduler *s, node_id id, kept_causes *k, place_vec *causes, uint64_t since) {
    assert(kept(s, id) == k);
    if (!k->of_next) {
        swap(&k->next, causes);
        begin_next(s, id, k, since);
        return;
    }
    if (since < k->next_since) k->next_since = since;
    for (uint32_t i = 0; i < causes->count; i++)
        add_next(s, k, causes->items[i], causes_last_since(node_of(s, id)));
}

void causes_give_back(scheduler *s, node_id id, hd_tx *tx) {
    if (!(tx->flags & TX_CAUSES)) return;
    uint64_t since = has_group(s, node_of(s, id)) ? UINT64_MAX : tx->causes_rev;
    into_next(s, id, record_with(s, id, tx), &tx->causes, since);
    causes_end(s, tx);
}

void causes_completed(scheduler *s, node_id id, hd_tx *tx) {
    if ((tx->flags & TX_CAUSES) && !reads_tell_last(s, id, &tx->causes)) {
        kept_causes *k = record_with(s, id, tx);
        swap(&k->last, &tx->causes);
        k->of_last = true;
    }
    /* The node is clean: a change that marked it while the run was suspended concerned only reads of the run before. */
    kept_causes *k = kept(s, id);
    if (k && k->of_next && !node_is_invalid(&s->graph, node_of(s, id))) forget_next(s, id, k);
    causes_end(s, tx);
}

void causes_forget_last(scheduler *s, node_id id) {
    kept_causes *k = kept(s, id);
    assert(k);
    if (!k->of_last && !k->of_next && s->concluding != id) {
        causes_forget(s, id); /* two plain runs in a row; else the end of a run may need it */
        return;
    }
    drop_places(s, &k->last);
    k->of_last = false;
}

void causes_end(scheduler *s, hd_tx *tx) {
    if (tx->causes.count) drop_places(s, &tx->causes);
    give_room(s, tx);
    tx->flags &= ~(uint32_t)TX_CAUSES;
}

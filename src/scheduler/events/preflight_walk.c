/* preflight_walk.c -- one walk up from the closure, one down from the invalid nodes; the first that ends has
 * the answer. */
#include "scheduler/events/preflight_walk.h"

#include "base/hash.h"

#define KEPT_SLOTS   4096 /* a table that grew beyond this is given back after use */
#define WORDS_A_STEP 1024 /* of the bitmap, where there is nothing in them: cheaper than one node */

typedef enum step { STEP_MORE, STEP_END } step;

static uint32_t id_hash(uint32_t id) { return hash_fold(hash_u64(id)); }

void walks_init(walks *w, const hd_env *env) {
    *w = (walks){ 0 };
    table_init(&w->closure, env);
    table_init(&w->up.seen, env);
    table_init(&w->down.seen, env);
}

void walks_fini(walks *w, const hd_env *env) {
    table_fini(&w->closure);
    table_fini(&w->up.seen);
    table_fini(&w->down.seen);
    vec_fini(env, &w->up.nodes);
    vec_fini(env, &w->up.direct);
    vec_fini(env, &w->up.found);
    vec_fini(env, &w->down.nodes);
    vec_fini(env, &w->down.found);
}

static void empty(table *t) {
    if (t->slots && t->mask >= KEPT_SLOTS) table_fini(t);
    else if (t->count) table_clear(t);
}

/* True the first time. */
static bool see(walks *w, table *seen, node_id id) {
    for (table_probe p = table_find(seen, id_hash(id)); table_next(seen, &p);)
        if (p.index == id) return false;
    if (table_insert(seen, id_hash(id), id)) w->status = HD_NOMEM;
    return true;
}

static void push(walks *w, const hd_env *env, node_vec *to, node_id id) {
    if (!vec_push(env, to, id)) w->status = HD_NOMEM;
}

/* ---- the closure */

static void index_closure(walks *w, const places *ps) {
    for (uint32_t i = 0; i < w->key_count && !w->status; i++) {
        place_id doc = place_at(ps, w->keys[i] & KEY_PLACE)->root;
        w->status = table_insert(&w->closure, id_hash(doc), i);
    }
}

static bool in_closure(const walks *w, place_id at) {
    const places *ps = w->g->places;
    place_id doc = place_at(ps, at)->root;
    for (table_probe p = table_find(&w->closure, id_hash(doc)); table_next(&w->closure, &p);)
        if (place_related(ps, w->keys[p.index] & KEY_PLACE, at)) return true;
    return false;
}

/* `at` itself or something above it, read deep; or the very same, read by shape. */
bool walks_cover(const walks *w, const places *ps, place_id at) {
    place_id doc = place_at(ps, at)->root;
    for (table_probe p = table_find(&w->closure, id_hash(doc)); table_next(&w->closure, &p);) {
        place_id key = w->keys[p.index] & KEY_PLACE;
        if (key == at) return true;
        if (w->keys[p.index] & KEY_SHAPE) continue;
        for (place_id up = at; up != doc;) {
            up = place_at(ps, up)->in.parent;
            if (up == key) return true;
        }
    }
    return false;
}

/* ---- up */

/* Opens the writers of the next place that is read. False: there is none left. */
static bool next_read(walks *w) {
    walk_up *u = &w->up;
    if (u->key < w->key_count) {
        writers_begin(&u->writers, w->g, w->keys[u->key++] & KEY_PLACE);
        u->from_closure = true;
        return true;
    }
    u->from_closure = false;
    while (u->node < u->nodes.count) {
        node *n = graph_node(w->g, u->nodes.items[u->node]);
        if (u->read < n->read_count) {
            writers_begin(&u->writers, w->g, node_reads(n)[u->read++].key & KEY_PLACE);
            return true;
        }
        u->node++;
        u->read = 0;
    }
    return false;
}

static step step_up(walks *w, const hd_env *env) {
    walk_up *u = &w->up;
    writer found;
    if (!u->open) {
        u->open = next_read(w);
        if (!u->open) return STEP_END;
    }
    if (!writers_next(&u->writers, &found)) {
        u->open = false;
        return STEP_MORE;
    }
    node_id id = found.node & ~WRITER_ENVELOPE;
    assert(id && !(graph_node(w->g, id)->flags & NODE_REMOVED));
    w->visits++;
    if (u->from_closure && !(found.node & WRITER_ENVELOPE)) push(w, env, &u->direct, id);
    if (!see(w, &u->seen, id)) return STEP_MORE;
    bool invalid = node_is_invalid(w->g, graph_node(w->g, id));
    push(w, env, invalid ? &u->found : &u->nodes, id);
    return STEP_MORE;
}

/* ---- down */

/* The next word with something in it, from `at` on; or `end`. Most of them are empty. */
static uint32_t skip_empty(const uint64_t *words, uint32_t at, uint32_t end) {
    for (; at + 8 <= end; at += 8) {
        const uint64_t *w = words + at;
        if (w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) break;
    }
    while (at < end && !words[at]) at++;
    return at;
}

/* The next invalid node becomes one to start from. False: there is none left. */
static bool next_seed(walks *w, const hd_env *env) {
    walk_down *d = &w->down;
    const graph *g = w->g;
    if (!d->bits) {
        uint32_t end = (g->order_count + 63) / 64, limit = d->word + WORDS_A_STEP;
        if (limit > end) limit = end;
        d->word = skip_empty(g->invalid.words, d->word, limit);
        if (d->word == limit) return limit < end; /* WORDS_A_STEP words were empty, or all */
        d->bits = g->invalid.words[d->word++];
    }
    uint32_t pos = (d->word - 1) * 64 + (uint32_t)__builtin_ctzll(d->bits);
    d->bits &= d->bits - 1;
    node_id id = g->node_at[pos];
    assert(id && node_is_invalid(g, graph_node(g, id)));
    w->visits++;
    if (!vec_push(env, &d->nodes, ((reached){ id, id }))) w->status = HD_NOMEM;
    return true;
}

static void reach(walks *w, const hd_env *env, node_id seed) {
    node_vec *found = &w->down.found;
    assert(node_is_invalid(w->g, graph_node(w->g, seed)));
    if (!found->count || vec_last(found) != seed) push(w, env, found, seed);
}

static step step_down(walks *w, const hd_env *env) {
    walk_down *d = &w->down;
    reader r;
    if (d->node == d->nodes.count) return next_seed(w, env) ? STEP_MORE : STEP_END;
    reached at = d->nodes.items[d->node];
    if (!d->open) {
        place_id out = graph_output(w->g, at.node, d->output++) & ~WRITER_ENVELOPE;
        if (!out) {
            d->node++;
            d->output = 0;
            return STEP_MORE;
        }
        if (in_closure(w, out)) reach(w, env, at.seed);
        d->readers = readers_of(w->g, out);
        d->open = true;
    }
    if (!readers_next(&d->readers, &r)) {
        d->open = false;
        return STEP_MORE;
    }
    if (r.node == at.node) return STEP_MORE;
    w->visits++;
    if (!see(w, &d->seen, r.node)) return STEP_MORE;
    if (node_is_invalid(w->g, graph_node(w->g, r.node))) return STEP_MORE; /* a seed itself */
    if (!vec_push(env, &d->nodes, ((reached){ r.node, at.seed }))) w->status = HD_NOMEM;
    return STEP_MORE;
}

/* ---- both */

static void begin(walks *w) {
    empty(&w->closure);
    empty(&w->up.seen);
    empty(&w->down.seen);
    vec_clear(&w->up.nodes);
    vec_clear(&w->up.direct);
    vec_clear(&w->up.found);
    vec_clear(&w->down.nodes);
    vec_clear(&w->down.found);
    w->up.key = w->up.node = w->up.read = 0;
    w->down.word = w->down.node = w->down.output = 0;
    w->down.bits = 0;
    w->up.open = w->down.open = false;
    w->visits = 0;
    w->status = HD_OK;
}

const node_vec *walks_look(walks *w, const hd_env *env, const graph *g, const uint32_t *keys,
                           uint32_t count) {
    begin(w);
    w->g = g;
    w->keys = keys;
    w->key_count = count;
    index_closure(w, g->places);
    while (!w->status) {
        if (step_down(w, env) == STEP_END) return w->down.found.count ? &w->down.found : NULL;
        if (step_up(w, env) == STEP_END) return w->up.found.count ? &w->up.found : NULL;
    }
    return NULL;
}

/* hold.c -- holds: nodes do not run for the first time before their data is there (spec 9.2).
 *
 * A hold is staged for a name, before or after nodes of that name are registered. As long as it lasts,
 * a node that it covers and that has not run in this runtime has a hold_at, a gate like any other. A node
 * that was resumed from the store has not run in this runtime either: while a space is being filled, what
 * arrives does not make it run. A hold ends with hd_hold_end, or when its time is over; a node that several
 * holds cover waits for the last of them. */
#include "scheduler/gates/gates.h"

#include "base/env.h"
#include "scheduler/registry.h"
#include "store/memo.h"
#include "value/key.h"
#include <string.h>

#define MS UINT64_C(1000000)

enum { SPACE_SIZE = 1024 }; /* nodes with a longer name are not kept, and are no nodes of a piece */

/* ---- the nodes that a hold covers */

/* Whether the names of the node and of all above it, joined by slashes, are this text. */
static bool path_is(const scheduler *s, node_id id, const char *text, size_t length) {
    for (node_id up; id; id = up) {
        const struct key *name = node_own_name(s, id);
        size_t n = name ? name->length : 0;
        if (n > length || (n && memcmp(text + length - n, key_bytes(name), n) != 0)) return false;
        length -= n;
        up = graph_parent(&s->graph, id);
        if (up && (!length || text[--length] != '/')) return false;
    }
    return length == 0;
}

/* Whether the node belongs to this piece, "space:piece", or to one in this space: its name is "space:piece:node", the
 * space with "%3A" for each colon (store/memo.h). */
static bool is_of_piece(const scheduler *s, node_id id, const struct key *piece) {
    const struct key *name = node_own_name(s, id);
    const char *text = name ? key_bytes(name) : "", *of = key_bytes(piece);
    const char *colon = name ? memchr(text, ':', name->length) : NULL;
    char space[SPACE_SIZE];
    if (!colon || !memo_parse_space(text, (size_t)(colon - text), space, sizeof space))
        return false;
    size_t length = strlen(space), rest = name->length - (size_t)(colon - text);
    if (piece->length < length || memcmp(of, space, length) != 0) return false;
    size_t more = piece->length - length;
    return rest > more && colon[more] == ':' && memcmp(colon, of + length, more) == 0;
}

static bool covers(const scheduler *s, const hold *h, node_id id) {
    assert(h->id && id);
    if (!h->name) return true;
    for (node_id up; id; id = up) {
        if (path_is(s, id, key_bytes(h->name), h->name->length)) return true;
        up = graph_parent(&s->graph, id);
        if (!up && is_of_piece(s, id, h->name)) return true;
    }
    return false;
}

/* ---- what it means for a node */

static uint64_t held_until(const scheduler *s, node_id id) {
    uint64_t until = 0;
    if (node_of(s, id)->runs) return 0;
    for (uint32_t i = 0; i < s->holds.count; i++) {
        const hold *h = &s->holds.items[i];
        if (h->until > until && covers(s, h, id)) until = h->until;
    }
    return until;
}

static hd_status stage(scheduler *s, node_id id) {
    uint64_t until = held_until(s, id);
    if (!until) return HD_OK;
    assert(!node_of(s, id)->runs);
    cold *c = registry_cold(s, id);
    /* Other gates let a node run early when there is no memory for its timer. A hold must not: it fails
     * here instead. */
    if (!c || binheap_reserve(&s->timers, binheap_count(&s->timers) + 1)) return HD_NOMEM;
    c->gate.hold_at = until;
    return HD_OK;
}

/* ---- the life of a hold */

static void drop(scheduler *s, uint32_t i) {
    assert(i < s->holds.count);
    key_unref(s->holds.items[i].name);
    vec_remove(&s->holds, i);
}

static void drop_over(scheduler *s, uint64_t now) {
    for (uint32_t i = s->holds.count; i-- > 0;)
        if (s->holds.items[i].until <= now) drop(s, i);
}

/* Drops holds whose time is over first, so that new nodes do not get a cold record because of them. */
hd_status gates_stage(scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & NODE_REMOVED));
    drop_over(s, env_now_ns(s->env));
    return stage(s, id);
}

/* For nodes that are there already. */
static hd_status stage_all(scheduler *s, uint64_t now) {
    hd_status status = HD_OK;
    for (node_id id = 1; id < s->graph.node_count && !status; id++) {
        if (node_of(s, id)->flags & NODE_REMOVED) continue;
        status = stage(s, id);
        if (!status && cold_of(s, node_of(s, id))) gates_apply(s, id, now);
    }
    return status;
}

hd_status gates_begin_hold(scheduler *s, const char *name, uint32_t ms, uint64_t *out) {
    hold h = { .id = s->next_hold + 1 };
    uint64_t now = env_now_ns(s->env);
    drop_over(s, now);
    h.until = now + (ms ? ms : HOLD_MS) * MS;
    assert(h.id > s->next_hold);
    hd_status status = name ? registry_make_name(s, "hold", name, &h.name) : HD_OK;
    if (status) return status;
    if (!vec_push(s->env, &s->holds, h)) {
        key_unref(h.name);
        return HD_NOMEM;
    }
    s->next_hold = h.id;
    status = stage_all(s, now);
    if (status) gates_end_hold(s, h.id);
    else *out = h.id;
    return status;
}

void gates_end_hold(scheduler *s, uint64_t hold_id) {
    assert(hold_id);
    uint64_t now = env_now_ns(s->env);
    for (uint32_t i = 0; i < s->holds.count; i++) {
        if (s->holds.items[i].id != hold_id) continue;
        drop(s, i);
        break;
    }
    drop_over(s, now);
    for (uint32_t i = 1; i < s->colds.count; i++) {
        cold *c = s->colds.items[i];
        if (!c->node || !c->gate.hold_at) continue;
        c->gate.hold_at = held_until(s, c->node);
        gates_apply(s, c->node, now);
    }
}

void gates_fini(scheduler *s) {
    while (s->holds.count) drop(s, s->holds.count - 1);
    vec_fini(s->env, &s->holds);
    vec_fini(s->env, &s->led);
    binheap_fini(&s->timers);
}

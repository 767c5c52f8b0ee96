/* scheduler_spare.c -- the facade: may a space be unloaded?
 *
 * Not while a live node reads there: it would not be told of changes. Not while a handler takes events
 * there: it would not be told of posted events. Dormant readers become invalid when the replica forgets the
 * documents, and run when they are next demanded. A node that writes there loads what it needs when it
 * writes. */
#include "scheduler/scheduler.h"

#include "scheduler/events/events.h"
#include "scheduler/graph/readers.h"
#include "value/key.h"

static bool is_of(const places *ps, place_id at, const struct key *space) {
    place_id root = place_at(ps, at)->root;
    return root && ps->homes.items[place_at(ps, root)->doc.home].space == space;
}

static hd_status in_use(const scheduler *s, const struct key *space, place_id at, const char *kind,
                        const char *name, const char *does) {
    char cell[256];
    hd_cell_print(s->rt, (hd_cell){ at }, cell, sizeof cell);
    return runtime_fail(s->rt, HD_BUSY,
                        "space \"%s\" is in use: %s \"%s\" %s %s; unregister it first",
                        key_bytes(space), kind, name, does, cell);
}

static hd_status spare_handlers(const scheduler *s, const struct key *space) {
    for (uint32_t i = 0; s->events && i < s->events->stream_list.count; i++) {
        const stream *to = s->events->stream_list.items[i];
        if (to->spec.fn && is_of(&s->r->places, to->place, space))
            return in_use(s, space, to->place, "handler", to->name, "takes events at");
    }
    return HD_OK;
}

hd_status scheduler_spare(const scheduler *s, const struct key *space) {
    const places *ps = &s->r->places;
    for (place_id at = 1; at < ps->count; at++) {
        node_id id =
            place_at(ps, at)->watch && is_of(ps, at, space) ? readers_live(&s->graph, at) : 0;
        if (id) return in_use(s, space, at, "node", node_label(s, id), "reads");
    }
    return spare_handlers(s, space);
}

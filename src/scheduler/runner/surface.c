/* surface.c -- what a node writes, held against the outputs that it declares.
 *
 * The order of the graph follows declared outputs alone. So three things are worth a warning, each once for
 * each node: a write outside of them, an output that another node declares as well, and a first run that finds all
 * that it reads and does not write its output. In a strict runtime (hd_options.strict) they are errors. */
#include "scheduler/runner/surface.h"

#include "base/env.h"
#include "value/path.h"
#include <stdio.h>

enum { CELL_TEXT = 160 };

enum { WARNED_OUTSIDE = 1, WARNED_RIVAL = 2, WARNED_UNWRITTEN = 4 }; /* of cold.warned */

/* True the first time for this node and this reason (WARNED_), and each time there is no memory to remember it. */
static bool note_warned(scheduler *s, node_id id, uint8_t of) {
    cold *c = registry_cold(s, id);
    if (!c) return true;
    bool news = !(c->warned & of);
    c->warned |= of;
    return news;
}

/* Whether an operation changes nothing but the place at `output`, or below it. Where the last element of an array is
 * removed, the operation is the array's. */
static bool is_inside(const hd_heap *heap, const op *o, hd_path output) {
    if (path_is_prefix(heap, output, o->path)) return true;
    return o->kind == OP_SPLICE && path_parent(heap, output) == o->path &&
           path_key(heap, output)->index == o->keep;
}

static bool is_declared(const scheduler *s, node_id id, const op *o) {
    const places *ps = &s->r->places;
    if (ps->homes.items[place_at(ps, o->doc)->doc.home].scope != HD_SCOPE_SPACE) return true;
    for (uint32_t j = 0, out; (out = graph_output(&s->graph, id, j)) != 0; j++) {
        place_id at = out & ~WRITER_ENVELOPE;
        if (place_at(ps, at)->root == o->doc && is_inside(s->r->heap, o, place_path(ps, at)))
            return true;
    }
    return false;
}

/* Without memory for the place the document is named. */
static void print_target(scheduler *s, const op *o, char *out, size_t size) {
    place_id at;
    if (places_inner(&s->r->places, o->doc, o->path, &at)) at = o->doc;
    hd_cell_print(s->rt, (hd_cell){ at }, out, size);
}

static hd_status found_outside(scheduler *s, node_id id, const op *o) {
    char name[CELL_TEXT];
    s->stats.outside_surface++;
    print_target(s, o, name, sizeof name);
    if (s->rt->options.strict) {
        snprintf(s->message, sizeof s->message,
                 "it wrote %s, which is none of its outputs; an effect may write that", name);
        return HD_USAGE;
    }
    if (note_warned(s, id, WARNED_OUTSIDE))
        env_log(s->env, HD_LOG_WARN, "node \"%s\" wrote %s, which is none of its outputs",
                node_label(s, id), name);
    return HD_OK;
}

hd_status surface_check_writes(scheduler *s, node_id id, const hd_tx *tx) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < tx->ops.count && !status; i++)
        if (!is_declared(s, id, &tx->ops.items[i].o))
            status = found_outside(s, id, &tx->ops.items[i].o);
    return status;
}

/* ---- two nodes with one output */

typedef struct rivals {
    scheduler *s;
    node_id id, other; /* other: 0 until one is found */
    place_id output;
} rivals;

static void look_for_rival(void *ctx, node_id other) {
    rivals *r = ctx;
    if (other == r->id || r->other) return;
    for (uint32_t i = 0, out; (out = graph_output(&r->s->graph, other, i)) != 0; i++)
        if (out == r->output) r->other = other;
}

static hd_status found_rival(const rivals *r) {
    char name[CELL_TEXT];
    scheduler *s = r->s;
    hd_cell_print(s->rt, (hd_cell){ r->output }, name, sizeof name);
    if (s->rt->options.strict)
        return runtime_fail(s->rt, HD_USAGE, "%s is the output of the node \"%s\" already", name,
                            node_label(s, r->other));
    if (note_warned(s, r->id, WARNED_RIVAL))
        env_log(s->env, HD_LOG_WARN, "node \"%s\": %s is the output of another node as well",
                node_label(s, r->id), name);
    return HD_OK;
}

/* Most documents have one writer. */
static bool is_only_writer(const scheduler *s, node_id id, place_id output) {
    const place *doc = place_doc(&s->r->places, output);
    return doc->doc.writer == id && !(doc->doc.flags & DOC_MULTI_WRITER);
}

hd_status surface_check_rivals(scheduler *s, node_id id) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        rivals r = { .s = s, .id = id, .output = out };
        if ((out & WRITER_ENVELOPE) || is_only_writer(s, id, out)) continue;
        graph_each_writer(&s->graph, out, look_for_rival, &r);
        if (r.other) return found_rival(&r);
    }
    return HD_OK;
}

/* ---- an output that is not written */

void surface_may_stay_absent(scheduler *s, node_id id) {
    (void)note_warned(s, id, WARNED_UNWRITTEN);
}

/* Where a read finds nothing, a run has good reason to write nothing. */
static bool has_absent_read(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (!value_exists(place_at(&s->r->places, reads[i].key & KEY_PLACE)->value)) return true;
    return false;
}

hd_status surface_check_first(scheduler *s, node_id id) {
    char name[CELL_TEXT];
    const node *n = node_of(s, id);
    assert(!s->running); /* the run is being concluded */
    if (!n->output || value_exists(place_at(&s->r->places, n->output)->value)) return HD_OK;
    if (has_absent_read(s, n) || !note_warned(s, id, WARNED_UNWRITTEN)) return HD_OK;
    hd_cell_print(s->rt, (hd_cell){ n->output }, name, sizeof name);
    if (s->rt->options.strict) {
        snprintf(s->message, sizeof s->message, "it did not write its output %s", name);
        return HD_USAGE;
    }
    env_log(s->env, HD_LOG_WARN, "node \"%s\" did not write its output %s", node_label(s, id),
            name);
    return HD_OK;
}

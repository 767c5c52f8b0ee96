/* export.c -- the graph as JSON and for Graphviz, the run trace for chrome://tracing. */
#include "scheduler/introspection/export.h"

#include "base/env.h"
#include "scheduler/graph/readers.h"
#include "scheduler/registry.h"
#include "scheduler/introspection/why.h"
#include "value/key.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- edges */

typedef enum edge_kind { EDGE_DATA, EDGE_ENVELOPE, EDGE_PARENT } edge_kind;
static const char *const edge_names[] = { "data", "envelope", "parent" };

typedef struct out_edge {
    node_id to;
    edge_kind kind;
} out_edge;
typedef VEC(out_edge) edge_vec;

static int compare_edges(const void *a, const void *b) {
    const out_edge *x = a, *y = b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* Each once, in order of node. HD_NOMEM. */
static hd_status edges_from(const scheduler *s, node_id id, edge_vec *out) {
    const graph *g = &s->graph;
    vec_clear(out);
    for (uint32_t i = 0, at; (at = graph_output(g, id, i)) != 0; i++) {
        edge_kind kind = at & WRITER_ENVELOPE ? EDGE_ENVELOPE : EDGE_DATA;
        reader_walk w = readers_of(g, at & ~WRITER_ENVELOPE);
        for (reader r; readers_next(&w, &r);) {
            node_id to = r.node & ~READER_SHAPE;
            if (to != id && !vec_push(s->env, out, ((out_edge){ to, kind }))) return HD_NOMEM;
        }
    }
    for (node_id c = graph_first_child(g, id); c; c = graph_next_child(g, c))
        if (!vec_push(s->env, out, ((out_edge){ c, EDGE_PARENT }))) return HD_NOMEM;
    if (out->count) qsort(out->items, out->count, sizeof *out->items, compare_edges);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++)
        if (!i || compare_edges(&out->items[i], &out->items[i - 1]))
            out->items[kept++] = out->items[i];
    assert(kept <= out->count);
    out->count = kept;
    return HD_OK;
}

/* ---- JSON */

static hd_value cell_text(const scheduler *s, hd_pool *pool, place_id at) {
    return runtime_cell_text(s->rt, pool, (hd_cell){ at });
}

/* Outputs, or envelopes. */
static hd_value surface_value(const scheduler *s, hd_pool *pool, node_id id, uint32_t mark) {
    hd_value items = hd_array();
    for (uint32_t i = 0, at; (at = graph_output(&s->graph, id, i)) != 0; i++)
        if ((at & WRITER_ENVELOPE) == mark)
            items = hd_array_append(pool, items, cell_text(s, pool, at & ~WRITER_ENVELOPE));
    return items;
}

static hd_value reads_value(const scheduler *s, hd_pool *pool, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    hd_builder *items;
    if (hd_builder_open(pool, HD_KIND_ARRAY, &items)) return hd_failed(HD_NOMEM);
    for (uint32_t i = 0; i < n->read_count; i++) {
        hd_value one =
            hd_object_set(pool, hd_object(), "cell", cell_text(s, pool, reads[i].key & KEY_PLACE));
        if (reads[i].key & KEY_SHAPE) one = hd_object_set(pool, one, "shape", hd_bool(true));
        hd_builder_add(items, one);
    }
    return hd_builder_close(items);
}

static const char *kind_of(const hd_node_info *info) {
    return info->effect ? "effect" : info->materialiser ? "materialiser" : "computation";
}

static const char *status_name(hd_node_status status) {
    static const char *const names[] = { "never-ran", "clean", "invalid" };
    assert((unsigned)status < sizeof names / sizeof *names);
    return names[status];
}

static hd_value node_value(const scheduler *s, hd_pool *pool, node_id id) {
    hd_node_info info;
    char sentence[256];
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    introspection_info(s, id, &info);
    why_not_sentence(s, id, sentence, sizeof sentence);
    hd_builder_put(b, "id", hd_int(pool, id));
    hd_builder_put(b, "name", introspection_text(s, pool, id));
    hd_builder_put(b, "kind", hd_string(pool, kind_of(&info)));
    hd_builder_put(b, "status", hd_string(pool, status_name(info.status)));
    hd_builder_put(b, "live", hd_bool(info.live));
    hd_builder_put(b, "why_live", hd_string(pool, hd_why_live_text(info.why_live)));
    if (info.live_reader.id) hd_builder_put(b, "live_reader", hd_int(pool, info.live_reader.id));
    hd_builder_put(b, "why_not", hd_string(pool, sentence));
    hd_builder_put(b, "eligible_at_ns", hd_int(pool, (int64_t)info.eligible_at_ns));
    hd_builder_put(b, "runs", hd_int(pool, (int64_t)info.runs));
    hd_builder_put(b, "failures", hd_int(pool, (int64_t)info.failures));
    hd_builder_put(b, "timed_runs", hd_int(pool, (int64_t)info.timed_runs));
    hd_builder_put(b, "total_ns", hd_int(pool, (int64_t)info.total_ns));
    if (info.parent.id) hd_builder_put(b, "parent", hd_int(pool, info.parent.id));
    hd_builder_put(b, "outputs", surface_value(s, pool, id, 0));
    hd_builder_put(b, "envelopes", surface_value(s, pool, id, WRITER_ENVELOPE));
    hd_builder_put(b, "reads", reads_value(s, pool, id));
    return hd_builder_close(b);
}

static void put_edges(hd_pool *pool, node_id id, const edge_vec *edges, hd_builder *out) {
    for (uint32_t i = 0; i < edges->count; i++) {
        hd_value one = hd_object_set(pool, hd_object(), "from", hd_int(pool, id));
        one = hd_object_set(pool, one, "to", hd_int(pool, edges->items[i].to));
        one = hd_object_set(pool, one, "kind", hd_string(pool, edge_names[edges->items[i].kind]));
        hd_builder_add(out, one);
    }
}

hd_value export_snapshot(const scheduler *s, hd_pool *pool) {
    hd_builder *nodes, *edges;
    edge_vec found = { 0 };
    hd_status status = HD_OK;
    if (hd_builder_open(pool, HD_KIND_ARRAY, &nodes)) return hd_failed(HD_NOMEM);
    if (hd_builder_open(pool, HD_KIND_ARRAY, &edges)) {
        hd_builder_close(nodes);
        return hd_failed(HD_NOMEM);
    }
    for (uint32_t pos = 0; pos < s->graph.order_count && !status; pos++) {
        node_id id = s->graph.node_at[pos];
        if (!id) continue;
        hd_builder_add(nodes, node_value(s, pool, id));
        status = edges_from(s, id, &found);
        if (!status) put_edges(pool, id, &found, edges);
    }
    vec_fini(s->env, &found);
    hd_value snapshot = hd_object_set(pool, hd_object(), "nodes", hd_builder_close(nodes));
    snapshot = hd_object_set(pool, snapshot, "edges", hd_builder_close(edges));
    return status ? hd_failed(status) : snapshot;
}

static bool put_edge_text(json_buffer *b, node_id from, const out_edge *e) {
    char text[96];
    int n = snprintf(text, sizeof text, "%s{\"from\":%u,\"kind\":\"%s\",\"to\":%u}",
                     b->length ? "," : "", from, edge_names[e->kind], e->to);
    assert(n > 0 && (size_t)n < sizeof text);
    return json_buffer_add(b, text, (size_t)n);
}

hd_status export_node_json(const scheduler *s, hd_pool *pool, node_id id, json_buffer *nodes,
                           json_buffer *edges, uint64_t *parts) {
    edge_vec found = { 0 };
    hd_value v = node_value(s, pool, id);
    hd_status status = hd_value_status(v);
    if (!status && nodes->length && !json_buffer_add(nodes, ",", 1)) status = HD_NOMEM;
    if (!status) status = json_print_to(nodes, v, HD_JSON_COMPACT);
    if (!status) status = edges_from(s, id, &found);
    for (uint32_t i = 0; i < found.count && !status; i++)
        if (!put_edge_text(edges, id, &found.items[i])) status = HD_NOMEM;
    *parts += node_of(s, id)->read_count + found.count;
    vec_fini(s->env, &found);
    return status;
}

/* ---- DOT */

typedef struct dot {
    hd_text_fn sink;
    void *ctx;
    bool stopped;
} dot;

static void put(dot *d, const char *text, size_t length) {
    if (!d->stopped) d->stopped = !d->sink(text, length, d->ctx);
}

HD_PRINTF(2, 3) static void print(dot *d, const char *format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) put(d, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* Inside quotes; control characters become spaces. */
static void put_quoted(dot *d, const char *text) {
    for (; *text; text++) {
        char c = (unsigned char)*text < 0x20 ? ' ' : *text;
        if (c == '"' || c == '\\') put(d, "\\", 1);
        put(d, &c, 1);
    }
}

static hd_status put_dot_node(dot *d, const scheduler *s, node_id id) {
    hd_node_info info;
    size_t size;
    char *name = introspection_name(s, id, &size);
    if (!name) return HD_NOMEM;
    introspection_info(s, id, &info);
    print(d, "  n%u [label=\"", id);
    if (*name) put_quoted(d, name);
    else print(d, "#%u", id);
    print(d, "\\n%s, %llu runs\" shape=%s style=\"%s\" color=\"%s\"];\n", status_name(info.status),
          (unsigned long long)info.runs,
          info.effect         ? "house"
          : info.materialiser ? "hexagon"
                              : "ellipse",
          info.live ? "solid" : "dashed", info.status == HD_NODE_CLEAN ? "black" : "red");
    env_free(s->env, name, size);
    return HD_OK;
}

const char export_dot_begin[] = "digraph heddle {\n  rankdir=LR;\n";

static hd_status put_dot_lines(dot *d, const scheduler *s, node_id id, edge_vec *found) {
    static const char *const styles[] = { "solid", "dashed", "dotted" };
    hd_status status = put_dot_node(d, s, id);
    if (!status) status = edges_from(s, id, found);
    for (uint32_t i = 0; i < found->count && !status; i++)
        print(d, "  n%u -> n%u [style=%s];\n", id, found->items[i].to,
              styles[found->items[i].kind]);
    return status;
}

static bool to_buffer(const char *text, size_t length, void *ctx) {
    return json_buffer_add(ctx, text, length);
}

hd_status export_node_dot(const scheduler *s, node_id id, json_buffer *out, uint64_t *parts) {
    dot d = { to_buffer, out, false };
    edge_vec found = { 0 };
    hd_status status = put_dot_lines(&d, s, id, &found);
    *parts += node_of(s, id)->read_count + found.count;
    vec_fini(s->env, &found);
    return d.stopped ? HD_NOMEM : status;
}

hd_status export_dot(const scheduler *s, hd_text_fn sink, void *ctx) {
    dot d = { sink, ctx, false };
    edge_vec found = { 0 };
    hd_status status = HD_OK;
    print(&d, "%s", export_dot_begin);
    for (uint32_t pos = 0; pos < s->graph.order_count && !status && !d.stopped; pos++)
        if (s->graph.node_at[pos]) status = put_dot_lines(&d, s, s->graph.node_at[pos], &found);
    print(&d, "}\n");
    vec_fini(s->env, &found);
    return d.stopped ? HD_ABORTED : status;
}

/* ---- chrome://tracing: complete events, in microseconds */

enum { TRACK_RUNS = 1, TRACK_PASSES = 2 };

static hd_value event_value(hd_pool *pool, hd_value name, int track, uint64_t began, uint64_t took,
                            hd_value args) {
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    hd_builder_put(b, "name", name);
    hd_builder_put(b, "ph", hd_string(pool, "X"));
    hd_builder_put(b, "ts", hd_double((double)began / 1000.0));
    hd_builder_put(b, "dur", hd_double((double)took / 1000.0));
    hd_builder_put(b, "pid", hd_int(pool, 1));
    hd_builder_put(b, "tid", hd_int(pool, track));
    hd_builder_put(b, "args", args);
    return hd_builder_close(b);
}

static hd_value cells_value(const scheduler *s, hd_pool *pool, const hd_trace_cells *c) {
    hd_value items = hd_array();
    for (uint32_t i = 0; i < c->count && i < HD_TRACE_CELLS; i++)
        items = hd_array_append(pool, items, cell_text(s, pool, c->cells[i].id));
    return items;
}

static hd_value run_value(const scheduler *s, hd_pool *pool, const hd_run_trace *r) {
    const char *kind = r->effect ? "effect" : r->materialiser ? "materialiser" : "computation";
    hd_value args = hd_object_set(pool, hd_object(), "kind", hd_string(pool, kind));
    args = hd_object_set(pool, args, "pass", hd_int(pool, (int64_t)r->pass));
    args = hd_object_set(pool, args, "status", hd_string(pool, hd_status_name(r->status)));
    args = hd_object_set(pool, args, "causes", cells_value(s, pool, &r->causes));
    args = hd_object_set(pool, args, "written", cells_value(s, pool, &r->written));
    hd_value name = introspection_run_name(s, pool, r);
    return event_value(pool, name, TRACK_RUNS, r->began_ns, r->took_ns, args);
}

static hd_value settle_value(hd_pool *pool, const hd_settle_trace *e) {
    hd_value args = hd_object_set(pool, hd_object(), "runs", hd_int(pool, (int64_t)e->runs));
    args = hd_object_set(pool, args, "iterations", hd_int(pool, e->iterations));
    args = hd_object_set(pool, args, "exhausted", hd_bool(e->exhausted));
    return event_value(pool, hd_string_f(pool, "pass %llu", (unsigned long long)e->number),
                       TRACK_PASSES, e->began_ns, e->took_ns, args);
}

hd_value export_chrome(const scheduler *s, hd_pool *pool) {
    const introspection *in = s->introspection;
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_ARRAY, &b)) return hd_failed(HD_NOMEM);
    for (uint32_t i = 0; in && i < ring_count(&in->trace.settles); i++)
        hd_builder_add(b, settle_value(pool, ring_at(&in->trace.settles, i)));
    for (uint32_t i = 0; in && i < ring_count(&in->trace.runs); i++) {
        const run_entry *e = ring_at(&in->trace.runs, i);
        hd_builder_add(b, run_value(s, pool, &e->t));
    }
    hd_value file = hd_object_set(pool, hd_object(), "traceEvents", hd_builder_close(b));
    return hd_object_set(pool, file, "displayTimeUnit", hd_string(pool, "ms"));
}

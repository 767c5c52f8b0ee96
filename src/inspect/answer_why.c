/* answer_why.c -- why something is as it is, and why a node does not run. */
#include "inspect/answer.h"

#include "base/env.h"
#include "scheduler/registry.h"
#include "scheduler/scheduler.h"
#include "scheduler/introspection/trace.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WRITERS_MAX 16 /* of one cell in an answer; `more` has the number of the others */
#define INPUTS_MAX  32 /* of one node */

/* ---- the subject of the question: a node, or the nodes that write a cell */

typedef struct subject {
    const char *name; /* of a cell; NULL: a node was named */
    place_id cell;    /* one reference; 0: the program does not know the document */
    hd_node nodes[WRITERS_MAX];
    uint32_t count; /* may exceed WRITERS_MAX */
    const scheduler *s;
} subject;

static hd_node node_named(const inspector *in, const char *name) {
    const scheduler *s = scheduler_get(in->rt);
    char *end;
    if (*name != '#') return hd_node_find(in->rt, name);
    unsigned long id = strtoul(name + 1, &end, 10);
    bool known = s && !*end && id && id < s->graph.node_count;
    hd_node handle = known ? (hd_node){ (uint32_t)id, s->sides[id].generation } : (hd_node){ 0, 0 };
    return hd_node_exists(in->rt, handle) ? handle : (hd_node){ 0, 0 };
}

static void note_writer(void *ctx, node_id id) {
    subject *w = ctx;
    hd_node handle = registry_handle(w->s, id);
    assert(handle.id == id);
    uint32_t known = w->count < WRITERS_MAX ? w->count : WRITERS_MAX;
    for (uint32_t i = 0; i < known; i++)
        if (w->nodes[i].id == handle.id) return;
    if (w->count < WRITERS_MAX) w->nodes[w->count] = handle;
    w->count++;
}

static hd_status find_subject(inspector *in, const char *of, subject *out, hd_error *error) {
    *out = (subject){ .s = scheduler_get(in->rt) };
    out->nodes[0] = node_named(in, of);
    if (out->nodes[0].id) {
        out->count = 1;
        return HD_OK;
    }
    hd_status status = *of != '#' ? runtime_look_at(in->rt, of, &out->cell) : HD_SYNTAX;
    if (status == HD_SYNTAX) {
        env_error(error, HD_NOT_FOUND, "\"%.80s\" is neither the name of a node nor a cell", of);
        return HD_NOT_FOUND;
    }
    out->name = of;
    if (out->s && out->cell) graph_each_writer(&out->s->graph, out->cell, note_writer, out);
    return status;
}

static void let_go(inspector *in, const subject *w) {
    if (w->cell) place_unref(&in->rt->r.places, w->cell);
}

static uint32_t listed(const subject *w) { return w->count < WRITERS_MAX ? w->count : WRITERS_MAX; }

/* ---- why */

typedef struct causes_answer {
    inspector *in;
    hd_builder *list;
} causes_answer;

static const char *origin_name(hd_origin origin) {
    static const char *const names[] = { "source", "node", "others", "load", "revert" };
    assert((size_t)origin < sizeof names / sizeof *names);
    return names[origin];
}

static bool put_cause(const hd_cause *cause, void *ctx) {
    const causes_answer *w = ctx;
    hd_pool *pool = w->in->pool;
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) {
        hd_builder_add(w->list, hd_failed(HD_NOMEM));
        return false;
    }
    hd_builder_put(b, "depth", hd_int(pool, cause->depth));
    hd_builder_put(b, "node", answer_node_name(w->in, cause->node));
    hd_builder_put(b, "cell", answer_cell(w->in, cause->cell));
    if (cause->before) hd_builder_put(b, "before", answer_text(pool, cause->before));
    if (cause->after) hd_builder_put(b, "after", answer_text(pool, cause->after));
    hd_builder_put(b, "origin", hd_string(pool, origin_name(cause->origin)));
    if (cause->writer.id) hd_builder_put(b, "writer", answer_node_name(w->in, cause->writer));
    if (cause->pending) hd_builder_put(b, "pending", hd_bool(true));
    if (cause->repeated) hd_builder_put(b, "repeated", hd_bool(true));
    hd_builder_add(w->list, hd_builder_close(b));
    return true;
}

/* The visible value of a cell, shortened; null for a document that is not loaded. A request loads
 * nothing. */
static hd_value visible(inspector *in, hd_cell cell) {
    char text[256];
    const places *ps = &in->rt->r.places;
    const place *root = place_doc(ps, cell.id);
    if (!(root->doc.flags & (DOC_KNOWN | DOC_OVERLAY)) && !hd_value_exists(root->value))
        return hd_null();
    trace_summary(place_at(ps, cell.id)->value, text, sizeof text);
    return answer_text(in->pool, text);
}

/* The cells that the node reads, with their present values. They explain a first run, which has no
 * causes. */
static hd_value inputs(inspector *in, hd_node handle) {
    const scheduler *s = scheduler_get(in->rt);
    assert(s && hd_node_exists(in->rt, handle));
    const node *n = node_of(s, handle.id);
    const edge *reads = node_reads_const(n);
    hd_value all = hd_array();
    for (uint32_t i = 0; i < n->read_count && i < INPUTS_MAX; i++) {
        hd_cell cell = { reads[i].key & KEY_PLACE };
        hd_value one = hd_object_set(in->pool, hd_object(), "cell", answer_cell(in, cell));
        one = hd_object_set(in->pool, one, "value", visible(in, cell));
        all = hd_array_append(in->pool, all, one);
    }
    return all;
}

static hd_value with_causes(inspector *in, hd_node handle) {
    causes_answer w = { in, NULL };
    if (hd_builder_open(in->pool, HD_KIND_ARRAY, &w.list)) return hd_failed(HD_NOMEM);
    hd_node_why(in->rt, handle, put_cause, &w);
    hd_value v =
        hd_object_set(in->pool, answer_node(in, handle), "causes", hd_builder_close(w.list));
    return hd_object_set(in->pool, v, "inputs", inputs(in, handle));
}

static hd_value about(inspector *in, const subject *w, hd_value nodes) {
    hd_value v = hd_object_set(in->pool, hd_object(), "nodes", nodes);
    if (w->count > WRITERS_MAX)
        v = hd_object_set(in->pool, v, "more", hd_int(in->pool, w->count - WRITERS_MAX));
    if (!w->name) return v;
    v = hd_object_set(in->pool, v, "cell", answer_text(in->pool, w->name));
    return hd_object_set(in->pool, v, "value",
                         w->cell ? visible(in, (hd_cell){ w->cell }) : hd_null());
}

/* What `describe` says of each node that the request asks about. */
static hd_value answer_about(inspector *in, const request *r, hd_error *error,
                             hd_value (*describe)(inspector *in, hd_node node)) {
    subject w;
    hd_value nodes = hd_array();
    hd_status status = find_subject(in, r->of, &w, error);
    if (status) return hd_failed(status);
    for (uint32_t i = 0; i < listed(&w); i++)
        nodes = hd_array_append(in->pool, nodes, describe(in, w.nodes[i]));
    hd_value v = about(in, &w, nodes);
    let_go(in, &w);
    return v;
}

hd_value answer_why(inspector *in, const request *r, hd_error *error) {
    return answer_about(in, r, error, with_causes);
}

/* ---- why not */

const char *answer_reason(hd_why_not reason) {
    static const char *const words[] = {
        [HD_WHY_NOT_RUNS] = "runs",
        [HD_WHY_NOT_CLEAN] = "clean",
        [HD_WHY_NOT_DORMANT] = "dormant",
        [HD_WHY_NOT_DEBOUNCE] = "debounce",
        [HD_WHY_NOT_THROTTLE] = "throttle",
        [HD_WHY_NOT_BACKOFF] = "backoff",
        [HD_WHY_NOT_ECHO] = "echo",
        [HD_WHY_NOT_HELD] = "held",
        [HD_WHY_NOT_RETRY] = "retry",
        [HD_WHY_NOT_LOADING] = "loading",
        [HD_WHY_NOT_RUNNING] = "running",
        [HD_WHY_NOT_AWAITS] = "awaits",
        [HD_WHY_NOT_IDLE_TURN] = "idle-turn",
        [HD_WHY_NOT_GONE] = "gone",
        [HD_WHY_NOT_LED] = "led",
    };
    return (unsigned)reason < sizeof words / sizeof *words ? words[reason] : "unknown";
}

static hd_value with_reason(inspector *in, hd_node handle) {
    char sentence[256];
    hd_node_info info;
    hd_why_not reason = hd_node_why_not(in->rt, handle, sentence, sizeof sentence);
    hd_value v = answer_node(in, handle);
    hd_node_inspect(in->rt, handle, &info);
    v = hd_object_set(in->pool, v, "reason", hd_string(in->pool, answer_reason(reason)));
    v = hd_object_set(in->pool, v, "why_not", answer_text(in->pool, sentence));
    v = hd_object_set(in->pool, v, "why_live",
                      hd_string(in->pool, hd_why_live_text(info.why_live)));
    if (!info.live_reader.id) return v;
    return hd_object_set(in->pool, v, "live_reader", answer_node_name(in, info.live_reader));
}

hd_value answer_why_not(inspector *in, const request *r, hd_error *error) {
    return answer_about(in, r, error, with_reason);
}

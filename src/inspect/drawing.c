/* drawing.c -- a picture of the graph, made over several pumps.
 *
 * 50,000 nodes take a tenth of a second to draw, which is too long for one pump of the program. So a
 * drawing takes the list of nodes when it begins, and draws some of them in each pump, as they are then;
 * nodes that have ended meanwhile are left out. */
#include "inspect/answer.h"

#include "base/env.h"
#include "scheduler/introspection/export.h"
#include "scheduler/registry.h"
#include "scheduler/scheduler.h"
#include <string.h>

typedef struct drawing {
    ask_form as;
    hd_pool *pool;             /* cleared after each node */
    VEC(hd_node) nodes;        /* in the order of the graph */
    uint32_t next;             /* index into nodes */
    uint64_t parts;            /* reads and edges so far */
    json_buffer text, edges;   /* parts of the answer; for Graphviz only text is used */
    json_buffer lines, quoted; /* of one node, for Graphviz */
} drawing;

void drawing_free(inspector *in, asker *a) {
    drawing *d = a->drawing;
    if (!d) return;
    vec_fini(&in->rt->env, &d->nodes);
    json_buffer_fini(&d->text);
    json_buffer_fini(&d->edges);
    json_buffer_fini(&d->lines);
    json_buffer_fini(&d->quoted);
    hd_pool_close(d->pool);
    env_free(&in->rt->env, d, sizeof *d);
    a->drawing = NULL;
}

/* ---- beginning */

static hd_status list_nodes(inspector *in, drawing *d) {
    const scheduler *s = scheduler_get(in->rt);
    for (uint32_t pos = 0; s && pos < s->graph.order_count; pos++) {
        node_id id = s->graph.node_at[pos];
        if (id && !vec_push(&in->rt->env, &d->nodes, registry_handle(s, id))) return HD_NOMEM;
    }
    return HD_OK;
}

static hd_status check_size(inspector *in, hd_error *error) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(in->rt, &stats);
    if (stats.nodes <= GRAPH_MAX) return HD_OK;
    env_error(error, HD_LIMIT,
              "the graph has %llu nodes, and a picture at most %d; heddle stats shows them",
              (unsigned long long)stats.nodes, GRAPH_MAX);
    return HD_LIMIT;
}

static hd_status begin(inspector *in, asker *a, ask_form as) {
    const hd_env *env = &in->rt->env;
    drawing *d = a->drawing = env_new0(env, sizeof *d);
    if (!d) return HD_NOMEM;
    d->as = as;
    json_buffer_init(&d->text, env);
    json_buffer_init(&d->edges, env);
    json_buffer_init(&d->lines, env);
    json_buffer_init(&d->quoted, env);
    hd_status status = hd_pool_open(in->rt->heap, &d->pool);
    return status ? status : list_nodes(in, d);
}

static void give_up(inspector *in, asker *a, hd_status status, const hd_error *error) {
    drawing_free(in, a);
    answer_error(status, *error->message ? error->message : hd_status_text(status), &a->answer);
}

bool drawing_begin(inspector *in, asker *a, const char *line, size_t length) {
    request r;
    hd_error error = { 0 };
    bool asked = !request_parse(in->pool, line, length, &r, &error) && r.ask == ASK_GRAPH;
    ask_form as = asked ? r.as : FORM_JSON;
    hd_pool_clear(in->pool);
    if (!asked) return false;
    error = (hd_error){ 0 };
    hd_status status = check_size(in, &error);
    if (!status) status = begin(in, a, as);
    if (status) give_up(in, a, status, &error);
    return true;
}

/* ---- drawing */

/* The answer is a text: lines become the inside of a JSON string. */
static hd_status add_quoted(drawing *d) {
    hd_value v = hd_string_n(d->pool, d->lines.bytes, d->lines.length);
    hd_status status = hd_value_status(v);
    d->quoted.length = 0;
    if (!status) status = json_print_to(&d->quoted, v, HD_JSON_COMPACT);
    if (status) return status;
    return json_buffer_add(&d->text, d->quoted.bytes + 1, d->quoted.length - 2) ? HD_OK : HD_NOMEM;
}

static hd_status add_lines(drawing *d, const char *text) {
    d->lines.length = 0;
    return json_buffer_add(&d->lines, text, strlen(text)) ? add_quoted(d) : HD_NOMEM;
}

static hd_status draw_node(drawing *d, const scheduler *s, node_id id) {
    hd_status status;
    if (d->as == FORM_DOT) {
        d->lines.length = 0;
        status = export_node_dot(s, id, &d->lines, &d->parts);
        if (!status) status = add_quoted(d);
    } else {
        status = export_node_json(s, d->pool, id, &d->text, &d->edges, &d->parts);
    }
    hd_pool_clear(d->pool);
    return status;
}

static hd_status check_parts(const drawing *d, hd_error *error) {
    if (d->parts <= GRAPH_PARTS_MAX && d->text.length + d->edges.length <= ANSWER_MAX) return HD_OK;
    env_error(error, HD_LIMIT,
              "the graph with its reads and edges is too large for a picture; heddle stats shows "
              "its nodes");
    return HD_LIMIT;
}

static hd_status draw_some(inspector *in, drawing *d, uint64_t *budget, hd_error *error) {
    const scheduler *s = scheduler_get(in->rt);
    hd_status status = HD_OK;
    if (d->as == FORM_DOT && !d->next && !d->text.length) status = add_lines(d, export_dot_begin);
    while (!status && *budget && d->next < d->nodes.count) {
        hd_node at = d->nodes.items[d->next++];
        uint64_t before = d->parts;
        if (registry_get(s, at)) status = draw_node(d, s, at.id);
        uint64_t took = 1 + d->parts - before;
        *budget -= took < *budget ? took : *budget;
        if (!status) status = check_parts(d, error);
    }
    return status;
}

/* ---- the answer */

static bool put_all(json_buffer *to, const json_buffer *from) {
    return json_buffer_add(to, from->bytes ? from->bytes : "", from->length);
}

static hd_status finish(drawing *d, json_buffer *out) {
    bool ok = answer_begin(out);
    if (d->as == FORM_DOT) {
        if (add_lines(d, "}\n")) return HD_NOMEM;
        ok = ok && answer_put(out, "\"") && put_all(out, &d->text) && answer_put(out, "\"}\n");
    } else {
        ok = ok && answer_put(out, "{\"edges\":[") && put_all(out, &d->edges) &&
             answer_put(out, "],\"nodes\":[") && put_all(out, &d->text) && answer_put(out, "]}}\n");
    }
    return !ok ? HD_NOMEM : out->length > ANSWER_MAX ? HD_LIMIT : HD_OK;
}

void drawing_go_on(inspector *in, asker *a, uint64_t *budget) {
    drawing *d = a->drawing;
    hd_error error = { 0 }, of_program = *hd_runtime_error(in->rt);
    hd_status status = draw_some(in, d, budget, &error);
    bool done = d->next == d->nodes.count;
    if (!status && done) status = finish(d, &a->answer);
    if (status) give_up(in, a, status, &error);
    else if (done) drawing_free(in, a);
    in->rt->r.error = of_program; /* a request must not change the error that the program sees */
}

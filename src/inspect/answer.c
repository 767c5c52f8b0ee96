/* answer.c -- from a line to a line; who is there, the graph, and pieces. The answers about nodes are
 * in files of their own. */
#include "inspect/answer.h"

#include "base/env.h"
#include "scheduler/export.h"
#include "scheduler/registry.h"
#include "scheduler/scheduler.h"
#include <heddle/pattern.h>
#include <stdio.h>
#include <string.h>

/* ---- parts */

hd_value answer_text(hd_pool *pool, const char *text) {
    hd_value v = hd_string(pool, text);
    return hd_value_status(v) == HD_SYNTAX ? hd_string(pool, "?") : v;
}

hd_value answer_count(hd_pool *pool, uint64_t n) {
    return hd_int(pool, n < INT64_MAX ? (int64_t)n : INT64_MAX);
}

hd_value answer_cell(inspector *in, hd_cell cell) {
    return runtime_cell_text(in->rt, in->pool, cell);
}

hd_value answer_node_name(inspector *in, hd_node handle) {
    const scheduler *s = scheduler_get(in->rt);
    hd_value name = hd_null();
    if (s && registry_get(s, handle)) name = introspection_text(s, in->pool, handle.id);
    if (hd_value_status(name) || *hd_value_as_text(name, "")) return name;
    return hd_string_f(in->pool, "#%u", handle.id);
}

static const char *kind_of(const hd_node_info *info) {
    return info->effect ? "effect" : info->materialiser ? "materialiser" : "computation";
}

hd_value answer_node(inspector *in, hd_node handle) {
    static const char *const states[] = { "never-ran", "clean", "invalid" };
    hd_node_info info;
    hd_builder *b;
    if (hd_builder_open(in->pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    hd_node_inspect(in->rt, handle, &info);
    hd_builder_put(b, "name", answer_node_name(in, handle));
    hd_builder_put(b, "kind", hd_string(in->pool, kind_of(&info)));
    hd_builder_put(b, "status", hd_string(in->pool, states[info.status]));
    hd_builder_put(b, "live", hd_bool(info.live));
    hd_builder_put(b, "runs", answer_count(in->pool, info.runs));
    hd_builder_put(b, "timed_runs", answer_count(in->pool, info.timed_runs));
    hd_builder_put(b, "total_ns", answer_count(in->pool, info.total_ns));
    hd_builder_put(b, "failures", answer_count(in->pool, info.failures));
    if (info.output.id) hd_builder_put(b, "output", answer_cell(in, info.output));
    return hd_builder_close(b);
}

/* ---- who is there */

static hd_value answer_hello(inspector *in) {
    hd_scheduler_stats stats;
    hd_builder *b;
    if (hd_builder_open(in->pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    hd_runtime_scheduler_stats(in->rt, &stats);
    hd_builder_put(b, "name", answer_text(in->pool, in->name));
    hd_builder_put(b, "pid", hd_int(in->pool, in->pid));
    hd_builder_put(b, "version", hd_string(in->pool, hd_version()));
    hd_builder_put(b, "serves_ns", answer_count(in->pool, env_now_ns(&in->rt->env) - in->began_ns));
    hd_builder_put(b, "nodes", answer_count(in->pool, stats.nodes));
    hd_builder_put(b, "runs", answer_count(in->pool, stats.runs));
    hd_builder_put(b, "idle", hd_bool(hd_runtime_is_idle(in->rt)));
    hd_builder_put(b, "traces", hd_bool(hd_trace_enabled(in->rt) != 0));
    return hd_builder_close(b);
}

/* ---- the graph */

static bool put_dot(void *ctx, const char *text, size_t length) {
    json_buffer *b = ctx;
    if (b->length + length > ANSWER_MAX || !json_buffer_grow(b, length)) return false;
    memcpy(b->bytes + b->length, text, length);
    b->length += length;
    return true;
}

static hd_value answer_dot(inspector *in) {
    json_buffer dot;
    json_buffer_init(&dot, &in->rt->env);
    hd_status status = hd_graph_write_dot(in->rt, put_dot, &dot);
    hd_value v = status ? hd_failed(status == HD_ABORTED ? HD_LIMIT : status)
                        : hd_string_n(in->pool, dot.bytes, dot.length);
    json_buffer_fini(&dot);
    return v;
}

/* Before any of it is built. */
static hd_status check_graph(inspector *in, hd_error *error) {
    const scheduler *s = scheduler_get(in->rt);
    hd_scheduler_stats stats;
    bool fits = true;
    hd_runtime_scheduler_stats(in->rt, &stats);
    if (stats.nodes > GRAPH_MAX) {
        env_error(error, HD_LIMIT,
                  "the graph has %llu nodes, and a picture at most %d; heddle stats shows them",
                  (unsigned long long)stats.nodes, GRAPH_MAX);
        return HD_LIMIT;
    }
    hd_status status = s ? export_fits(s, GRAPH_PARTS_MAX, &fits) : HD_OK;
    if (status || fits) return status;
    env_error(error, HD_LIMIT,
              "the graph has more than %zu reads and edges, too many for a picture; heddle stats "
              "shows its nodes",
              GRAPH_PARTS_MAX);
    return HD_LIMIT;
}

static hd_value answer_graph(inspector *in, const request *r, hd_error *error) {
    hd_status status = check_graph(in, error);
    if (status) return hd_failed(status);
    return r->as == FORM_DOT ? answer_dot(in) : hd_graph_snapshot(in->rt, in->pool);
}

/* ---- pieces */

typedef struct pieces_answer {
    inspector *in;
    hd_builder *list;
    uint32_t count;
} pieces_answer;

static bool put_piece(void *ctx, const hd_piece_info *info) {
    pieces_answer *w = ctx;
    hd_pool *pool = w->in->pool;
    hd_builder *b;
    if (++w->count > PIECES_MAX) return false;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) {
        hd_builder_add(w->list, hd_failed(HD_NOMEM));
        return false;
    }
    hd_builder_put(b, "space", answer_text(pool, info->space));
    hd_builder_put(b, "id", answer_text(pool, info->id));
    hd_builder_put(b, "pattern", answer_text(pool, info->pattern));
    if (info->version) hd_builder_put(b, "version", answer_text(pool, info->version));
    hd_builder_put(b, "started", answer_count(pool, info->started));
    hd_builder_put(b, "nodes", answer_count(pool, info->nodes));
    hd_builder_put(b, "rows", answer_count(pool, info->rows));
    hd_builder_put(b, "result", answer_cell(w->in, info->result));
    hd_builder_add(w->list, hd_builder_close(b));
    return true;
}

static hd_value answer_pieces(inspector *in, hd_error *error) {
    pieces_answer w = { in, NULL, 0 };
    if (hd_builder_open(in->pool, HD_KIND_ARRAY, &w.list)) return hd_failed(HD_NOMEM);
    hd_runtime_pieces(in->rt, put_piece, &w);
    hd_value all = hd_builder_close(w.list);
    if (w.count <= PIECES_MAX) return all;
    env_error(error, HD_LIMIT, "more than %d pieces run, too many for an answer", PIECES_MAX);
    return hd_failed(HD_LIMIT);
}

/* ---- a line for a line */

hd_value answer_to(inspector *in, const request *r, hd_error *error) {
    switch (r->ask) {
    case ASK_HELLO: return answer_hello(in);
    case ASK_GRAPH: return answer_graph(in, r, error);
    case ASK_WHY: return answer_why(in, r, error);
    case ASK_WHY_NOT: return answer_why_not(in, r, error);
    case ASK_STATS: return answer_stats(in, r, error);
    case ASK_TRACE: return answer_trace(in, r, error);
    case ASK_PIECES: return answer_pieces(in, error);
    }
    return hd_failed(HD_USAGE);
}

static bool put(json_buffer *out, const char *text) {
    size_t length = strlen(text);
    if (!json_buffer_grow(out, length)) return false;
    memcpy(out->bytes + out->length, text, length);
    out->length += length;
    return true;
}

/* Written by hand: it must work when nothing can be built. Messages are ours, and quote what was sent:
 * everything but plain characters is left out. */
void answer_error(hd_status status, const char *message, json_buffer *out) {
    char plain[256], line[512];
    size_t length = 0;
    for (const char *c = message; *c && length + 1 < sizeof plain; c++)
        if (*c >= ' ' && *c < 0x7F && *c != '\\') plain[length++] = *c == '"' ? '\'' : *c;
    plain[length] = '\0';
    snprintf(line, sizeof line,
             "{\"heddle\":%d,\"error\":{\"status\":\"%s\",\"message\":\"%s\"}}\n", REQUEST_VERSION,
             hd_status_name(status), plain);
    out->length = 0;
    if (!put(out, line)) out->length = 0;
}

static hd_status print_answer(json_buffer *out, hd_value answer) {
    char head[48];
    snprintf(head, sizeof head, "{\"heddle\":%d,\"answer\":", REQUEST_VERSION);
    if (!put(out, head)) return HD_NOMEM;
    hd_status status = json_print_to(out, answer, HD_JSON_COMPACT);
    if (status) return status;
    if (out->length + 2 > ANSWER_MAX) return HD_LIMIT;
    return put(out, "}\n") ? HD_OK : HD_NOMEM;
}

void answer_line(inspector *in, const char *line, size_t length, json_buffer *out) {
    request r;
    hd_error error = { 0 }, of_program = *hd_runtime_error(in->rt);
    hd_value answer = hd_failed(HD_SYNTAX);
    hd_status status = request_parse(in->pool, line, length, &r, &error);
    if (!status) {
        answer = answer_to(in, &r, &error);
        status = hd_value_status(answer);
    }
    if (!status) status = print_answer(out, answer);
    if (status) answer_error(status, *error.message ? error.message : hd_status_text(status), out);
    hd_pool_clear(in->pool);
    in->rt->r.error = of_program; /* asking is not the program's doing */
}

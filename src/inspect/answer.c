/* answer.c -- from the line of a request to the line of its answer; and the answers to hello and pieces.
 * The answers about nodes, and pictures of the graph, are in files of their own. */
#include "inspect/answer.h"

#include "base/env.h"
#include "scheduler/registry.h"
#include "scheduler/scheduler.h"
#include <assert.h>
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
    hd_status known = hd_node_inspect(in->rt, handle, &info);
    assert(!known && (size_t)info.status < sizeof states / sizeof *states);
    (void)known;
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

/* ---- hello: which program this is */

static hd_value answer_hello(inspector *in) {
    hd_scheduler_stats stats;
    hd_builder *b;
    if (hd_builder_open(in->pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    hd_runtime_scheduler_stats(in->rt, &stats);
    hd_builder_put(b, "name", answer_text(in->pool, in->name));
    hd_builder_put(b, "pid", hd_int(in->pool, in->at.pid));
    hd_builder_put(b, "version", hd_string(in->pool, hd_version()));
    hd_builder_put(b, "serves_ns", answer_count(in->pool, env_now_ns(&in->rt->env) - in->began_ns));
    hd_builder_put(b, "nodes", answer_count(in->pool, stats.nodes));
    hd_builder_put(b, "runs", answer_count(in->pool, stats.runs));
    hd_builder_put(b, "idle", hd_bool(hd_runtime_is_idle(in->rt)));
    hd_builder_put(b, "traces", hd_bool(hd_trace_enabled(in->rt) != 0));
    return hd_builder_close(b);
}

/* ---- pieces */

typedef struct pieces_answer {
    inspector *in;
    hd_builder *list;
    uint32_t count;
} pieces_answer;

static bool put_piece(const hd_piece_info *info, void *ctx) {
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

/* The answer, as a value of in->pool. A failed value: `error` says why. */
static hd_value answer_to(inspector *in, const request *r, hd_error *error) {
    switch (r->ask) {
    case ASK_HELLO: return answer_hello(in);
    case ASK_GRAPH: break; /* drawing_begin has taken this request */
    case ASK_WHY: return answer_why(in, r, error);
    case ASK_WHY_NOT: return answer_why_not(in, r, error);
    case ASK_STATS: return answer_stats(in, r, error);
    case ASK_TRACE: return answer_trace(in, r, error);
    case ASK_PIECES: return answer_pieces(in, error);
    case ASK_WORKFLOW: return answer_workflow(in, r, error);
    case ASK_STREAMS: return answer_streams(in);
    }
    return hd_failed(HD_USAGE);
}

bool answer_put(json_buffer *out, const char *text) {
    return json_buffer_add(out, text, strlen(text));
}

/* Makes the JSON without building values, because it is also called when there is no memory for them. A message may
 * quote parts of the request, so every character is left out that a JSON string would have to escape. */
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
    if (!answer_put(out, line)) out->length = 0;
}

bool answer_begin(json_buffer *out) {
    char head[48];
    snprintf(head, sizeof head, "{\"heddle\":%d,\"answer\":", REQUEST_VERSION);
    return answer_put(out, head);
}

static hd_status print_answer(json_buffer *out, hd_value answer) {
    if (!answer_begin(out)) return HD_NOMEM;
    hd_status status = json_print_to(out, answer, HD_JSON_COMPACT);
    if (status) return status;
    if (out->length + 2 > ANSWER_MAX) return HD_LIMIT;
    return answer_put(out, "}\n") ? HD_OK : HD_NOMEM;
}

void answer_line(inspector *in, const char *line, size_t length, json_buffer *out) {
    request r;
    assert(!out->length && length < REQUEST_MAX);
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
    in->rt->r.error = of_program; /* a request must not change the error that the program sees */
}

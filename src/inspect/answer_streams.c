/* answer_streams.c -- the streams of a program, what handles them, and what their events wait for. */
#include "inspect/answer.h"

#include <heddle/introspect.h>

typedef struct listing {
    inspector *in;
    hd_builder *list;
} listing;

static const char *const waits[] = {
    [HD_EVENT_WAITS_NOT] = "its turn",
    [HD_EVENT_WAITS_TIME] = "a time",
    [HD_EVENT_WAITS_NODES] = "computations that feed it",
    [HD_EVENT_WAITS_LOAD] = "a document that is not loaded yet",
    [HD_EVENT_WAITS_ORIGIN] = "the commit that sent it",
    [HD_EVENT_WAITS_PRESYNC] = "its presync",
    [HD_EVENT_WAITS_HANDLER] = "its handler to be loaded",
    [HD_EVENT_WAITS_READS] = "a change: its preflight says so",
    [HD_EVENT_WAITS_DUPLICATE] = "an earlier delivery of the same event",
};

static void put_wait(listing *w, hd_builder *b, const hd_stream_info *info) {
    hd_pool *pool = w->in->pool;
    if (!info->queued) return;
    hd_builder_put(b, "waits_for", hd_string(pool, waits[info->waits]));
    if (info->behind.id) hd_builder_put(b, "behind", answer_cell(w->in, info->behind));
    if (info->node.id) hd_builder_put(b, "node", answer_node_name(w->in, info->node));
}

static bool put_stream(const hd_stream_info *info, void *ctx) {
    listing *w = ctx;
    hd_pool *pool = w->in->pool;
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) {
        hd_builder_add(w->list, hd_failed(HD_NOMEM));
        return false;
    }
    hd_builder_put(b, "stream", answer_cell(w->in, info->stream));
    if (info->handler) hd_builder_put(b, "handler", answer_text(pool, info->handler));
    hd_builder_put(b, "piece", answer_text(pool, info->piece));
    hd_builder_put(b, "queued", answer_count(pool, info->queued));
    hd_builder_put(b, "handled", answer_count(pool, info->handled));
    hd_builder_put(b, "failed", answer_count(pool, info->failed));
    put_wait(w, b, info);
    hd_builder_add(w->list, hd_builder_close(b));
    return true;
}

hd_value answer_streams(inspector *in) {
    listing w = { .in = in };
    if (hd_builder_open(in->pool, HD_KIND_ARRAY, &w.list)) return hd_failed(HD_NOMEM);
    hd_runtime_streams(in->rt, put_stream, &w);
    return hd_builder_close(w.list);
}

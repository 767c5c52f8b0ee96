/* handler.c -- hd_build_stream, and hd_build_handler: a handler that is registered as long as its build exists. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/events/state.h"
#include "scheduler/scheduler.h"
#include <stdio.h>
#include <string.h>

typedef struct handler_part {
    part part;
    hd_cell stream;
    hd_handler_fn fn;
    void *ctx;
    hd_cell *in;
    uint32_t count;
    hd_handler handler;
} handler_part;

static bool same(const part *p, const part *fresh) {
    const handler_part *a = (const handler_part *)p, *b = (const handler_part *)fresh;
    return a->stream.id == b->stream.id && a->fn == b->fn && a->ctx == b->ctx &&
           a->count == b->count && (!a->count || !memcmp(a->in, b->in, a->count * sizeof *a->in));
}

static void drop(part *p) {
    assert(p->in && !p->node.id);
    hd_handler_unregister(p->in->all->rt, ((handler_part *)p)->handler);
}

static void fini(part *p) {
    handler_part *h = (handler_part *)p;
    env_free(p->env, h->in, h->count * sizeof *h->in);
}

static const part_kind handler_kind = { .same = same, .drop = drop, .fini = fini };

static bool stream_same(const part *p, const part *fresh) {
    (void)p, (void)fresh;
    return true;
}
static const part_kind stream_kind = { .same = stream_same };

hd_cell hd_build_stream(hd_build *b, const char *name) { return add_name(b, &stream_kind, name); }

static void register_handler(handler_part *h) {
    hd_build *b = h->part.in;
    assert(b && h->stream.id && h->fn && !h->part.node.id);
    if (h->handler.id) return; /* registered in an earlier round */
    hd_handler_spec spec = { .stream = h->stream,
                             .fn = h->fn,
                             .ctx = h->ctx,
                             .inputs = h->in,
                             .input_count = h->count,
                             .reads_nothing = !h->count };
    scheduler *s = scheduler_of(b->all->rt);
    handler_owner owner = { b->of->name, b->of->what.name };
    hd_status status =
        s && events_of(s) ? stream_register(s, &spec, &owner, &h->handler) : HD_NOMEM;
    if (status) hd_build_fail(b, status, "%s", hd_runtime_error(b->all->rt)->message);
}

/* A build has one handler for a stream; `name` is made of the stream's number. */
static bool check_handler(hd_build *b, const char *name, hd_cell to, const hd_cell *in,
                          size_t count) {
    char text[160];
    if (b->status) return false;
    const part *other = find_part(b, name);
    hd_cell_print(b->all->rt, to, text, sizeof text);
    if (other && other->round == b->round)
        hd_build_fail(b, HD_USAGE, "the stream %s has a handler already", text);
    for (size_t i = 0; i < count; i++)
        if (!in[i].id)
            hd_build_fail(b, HD_USAGE, "the handler of %s: input %zu is no cell", text, i + 1);
    return !b->status;
}

void hd_build_handler(hd_build *b, hd_cell to, hd_handler_fn fn, void *ctx, const hd_cell *in,
                      size_t count) {
    char name[32];
    if (!to.id || !fn)
        hd_build_fail(b, HD_USAGE, "%s: a handler needs a stream and a function", b->path);
    snprintf(name, sizeof name, "handler %u", to.id);
    if (!check_handler(b, name, to, in, count)) return;
    handler_part *h = part_new(b, &handler_kind, sizeof *h, name);
    if (!h) return;
    h->stream = to;
    h->fn = fn;
    h->ctx = ctx;
    h->in = count ? env_new(b->all->env, count * sizeof *in) : NULL;
    if (count && !h->in) {
        part_free(&h->part);
        hd_build_fail(b, HD_NOMEM, "%s: no memory", b->path);
        return;
    }
    if (count) memcpy(h->in, in, count * sizeof *in);
    h->count = (uint32_t)count;
    part *p = part_add(&h->part, NULL);
    if (p) register_handler((handler_part *)p);
}

/* watcher.c -- the worker behind a watcher. */
#include "workflow/watcher.h"

#include "base/env.h"

#define WATCHES_MAX 1000000

typedef struct watcher {
    worker w; /* first */
    list_node link;
    const watcher_ops *ops;
    void *ctx;
} watcher;

static const char *exception_of(hd_status status) {
    hd_class class_ = hd_status_class(status);
    return class_ == HD_CLASS_NOMEM || class_ == HD_CLASS_TRANSIENT ? "ConnectionError"
                                                                    : "ValueError";
}

static void offer(worker *w) {
    watcher *self = (watcher *)(void *)w;
    task_view t;
    while (!w->e->closing && task_claim(w, &t)) {
        hd_error error = { 0 };
        hd_status status = self->ops->begin(t.token, t.args, &error, self->ctx);
        if (!status) continue;
        const char *why = error.message[0] ? error.message : hd_status_text(status);
        (void)task_fail(w->e, t.token, exception_of(status), why);
    }
}

static void revoke(worker *w, uint64_t token, const char *why) {
    const watcher *self = (const watcher *)(const void *)w;
    (void)why;
    self->ops->end(token, self->ctx);
}

static const worker_ops worker_functions = { .offer = offer, .revoke = revoke };

hd_status watcher_serve(hd_engine *e, const char *action, const watcher_ops *ops, void *ctx) {
    watcher *self = env_new0(e->env, sizeof *self);
    if (!self) return HD_NOMEM;
    *self = (watcher){ .ops = ops, .ctx = ctx };
    self->w = (worker){ .ops = &worker_functions, .lines = &e->served, .capacity = WATCHES_MAX };
    self->w.waits = true;
    worker_join(e, &self->w);
    hd_status status = worker_serve(&self->w, action);
    if (status) {
        worker_leave(&self->w);
        env_free(e->env, self, sizeof *self);
        return status;
    }
    list_push_back(&e->watchers, &self->link);
    return HD_OK;
}

void watcher_close_all(hd_engine *e) {
    for (list_node *n; (n = list_pop_front(&e->watchers));) {
        watcher *self = LIST_ENTRY(n, watcher, link);
        self->ops->close(self->ctx);
        worker_leave(&self->w);
        env_free(e->env, self, sizeof *self);
    }
}

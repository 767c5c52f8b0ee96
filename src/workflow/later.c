/* later.c -- the worker whose attempts the program ends: the function of an action begins the work on the runtime's
 * thread, and the work goes on in the program's own event loop.
 *
 * The program keeps the token alone, so nothing has to be freed when the engine revokes an attempt: a call with the old
 * token is late, and changes nothing (task.h). */
#include "workflow/engine.h"

#include "base/env.h"

/* Attempts at once: as many as a worker on the socket may hold. */
#define LATER_MAX 10000

struct later {
    worker w; /* first */
    hd_pool *pool;
};

static void begin(hd_engine *e, const task_view *t, hd_pool *pool) {
    hd_action_spec spec = engine_action(e, t->action)->spec; /* the function may register actions */
    hd_action attempt = here_attempt(t, pool);
    hd_value args = hd_value_ref(t->args); /* the function may end its own instance */
    attempt.token = t->token;
    attempt.result = hd_null();
    hd_status status = spec.fn(&attempt, args, spec.ctx);
    hd_value_unref(args);
    if (status == HD_PENDING) return;
    if (here_judge(&attempt, status)) (void)task_complete(e, t->token, attempt.result);
    else (void)task_fail(e, t->token, attempt.class_name, attempt.message);
}

static void offer(worker *w) {
    struct later *l = (struct later *)(void *)w;
    task_view t;
    while (!w->e->closing && task_claim(w, &t)) {
        begin(w->e, &t, l->pool);
        hd_pool_clear(l->pool);
    }
}

static void revoke(worker *w, uint64_t token, const char *why) {
    if (w->e->revoked) w->e->revoked(token, why, w->e->revoked_ctx);
}

static const worker_ops ops = { .offer = offer, .revoke = revoke };

hd_status later_serve(hd_engine *e, const char *action) {
    if (!e->later) {
        struct later *l = env_new0(e->env, sizeof *l);
        if (!l || hd_pool_open(e->heap, &l->pool)) return env_free(e->env, l, sizeof *l), HD_NOMEM;
        l->w = (worker){ .ops = &ops, .lines = &e->served, .capacity = LATER_MAX };
        worker_join(e, &l->w);
        e->later = l;
    }
    return worker_serve(&e->later->w, action);
}

void later_close(hd_engine *e) {
    if (!e->later) return;
    worker_leave(&e->later->w);
    hd_pool_close(e->later->pool);
    env_free(e->env, e->later, sizeof *e->later);
    e->later = NULL;
}

/* ---- how the program ends an attempt */

void hd_engine_set_revoked(hd_engine *e, hd_revoke_fn fn, void *ctx) {
    e->revoked = fn;
    e->revoked_ctx = ctx;
}

uint64_t hd_action_token(const hd_action *a) { return a->token; }

hd_status hd_attempt_return(hd_engine *e, uint64_t token, hd_value result) {
    hd_status status = hd_value_status(result);
    if (status) return status;
    return task_complete(e, token, hd_value_exists(result) ? result : hd_null());
}

hd_status hd_attempt_raise(hd_engine *e, uint64_t token, hd_value exception) {
    hd_status status = hd_value_status(exception);
    return status ? status : task_raise(e, token, exception);
}

hd_status hd_attempt_heartbeat(hd_engine *e, uint64_t token) { return task_heartbeat(e, token); }
hd_status hd_attempt_give_back(hd_engine *e, uint64_t token) { return task_give_back(e, token); }

/* here.c -- the worker that runs actions on the runtime's thread, inside pump: for actions that return at once.
 *
 * The worker claims one step at a time, so that priorities decide which is next. An action may itself pump, to wait for
 * another instance: then offer() is called within offer(), and the inner call opens a pool of its own. */
#include "workflow/engine.h"

#include "base/env.h"
#include <stdio.h>

struct here {
    worker w; /* first */
    hd_pool *pool;
    bool busy; /* `pool` is in use */
};

/* ---- what the function of an action sees */

const char *hd_action_id(const hd_action *a) { return a->id; }
uint32_t hd_action_attempt(const hd_action *a) { return a->attempt; }
uint64_t hd_action_timeout_ms(const hd_action *a) { return a->timeout_ms; }
uint64_t hd_action_heartbeat_ms(const hd_action *a) { return a->heartbeat_ms; }
hd_pool *hd_action_pool(hd_action *a) { return a->pool; }

hd_status hd_action_return(hd_action *a, hd_value result) {
    hd_status status = hd_value_status(result);
    a->result = hd_value_exists(result) || status ? result : hd_null();
    return status;
}

hd_status hd_action_raise(hd_action *a, const char *class_name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->message, sizeof a->message, format, arguments);
    va_end(arguments);
    snprintf(a->class_name, sizeof a->class_name, "%s",
             class_name && *class_name ? class_name : "RuntimeError");
    return HD_FAILED;
}

hd_action here_attempt(const task_view *t, hd_pool *pool) {
    return (hd_action){ .id = t->id,
                        .attempt = t->attempt,
                        .pool = pool,
                        .timeout_ms = t->timeout_ms,
                        .heartbeat_ms = t->heartbeat_ms };
}

void here_blame(hd_action *a, hd_status status) {
    if (a->class_name[0]) return;
    bool transient = hd_status_class(status) == HD_CLASS_TRANSIENT;
    snprintf(a->class_name, sizeof a->class_name, "%s",
             transient ? "ConnectionError" : "RuntimeError");
    snprintf(a->message, sizeof a->message, "%s", hd_status_text(status));
}

bool here_judge(hd_action *a, hd_status status) {
    if (!status && hd_value_exists(a->result)) return true;
    here_blame(a, status ? status : hd_value_status(a->result));
    return false;
}

bool here_run(const hd_action_spec *spec, hd_action *a, hd_value args) {
    a->result = hd_null();
    return here_judge(a, spec->fn(a, args, spec->ctx));
}

/* ---- the worker */

static void run(hd_engine *e, const task_view *t, hd_pool *pool) {
    /* A copy, and below a reference: the function may register actions, and may end its own instance. */
    hd_action_spec spec = engine_action(e, t->action)->spec;
    hd_action now = here_attempt(t, pool);
    hd_value args = hd_value_ref(t->args);
    if (here_run(&spec, &now, args)) (void)task_complete(e, t->token, now.result);
    else (void)task_fail(e, t->token, now.class_name, now.message);
    hd_value_unref(args);
}

static void run_with_own_pool(hd_engine *e, const task_view *t) {
    hd_pool *pool;
    if (hd_pool_open(e->heap, &pool)) {
        (void)task_fail(e, t->token, "MemoryError", "");
        return;
    }
    run(e, t, pool);
    hd_pool_close(pool);
}

static void offer(worker *w) {
    struct here *h = (struct here *)(void *)w;
    hd_engine *e = w->e;
    task_view t;
    while (!e->closing && !flight_is_group(e) && task_claim(w, &t)) {
        if (h->busy) {
            run_with_own_pool(e, &t);
            continue;
        }
        h->busy = true;
        run(e, &t, h->pool);
        h->busy = false;
        hd_pool_clear(h->pool);
    }
}

static const worker_ops ops = { .offer = offer };

hd_status here_serve(hd_engine *e, const char *action) {
    if (!e->here) {
        struct here *h = env_new0(e->env, sizeof *h);
        if (!h || hd_pool_open(e->heap, &h->pool)) return env_free(e->env, h, sizeof *h), HD_NOMEM;
        /* Each action that pumps within another holds one claim more: the capacity bounds how deep that goes. */
        h->w = (worker){ .ops = &ops, .lines = &e->served, .capacity = 64 };
        worker_join(e, &h->w);
        e->here = h;
    }
    return worker_serve(&e->here->w, action);
}

void here_close(hd_engine *e) {
    if (!e->here) return;
    worker_leave(&e->here->w);
    hd_pool_close(e->here->pool);
    env_free(e->env, e->here, sizeof *e->here);
    e->here = NULL;
}

/* join.c -- where the two schedulers meet: a step that posts an event, and one that waits for a cell.
 *
 * Neither scheduler knows the other. Posting is an action within a transaction; waiting is a watcher (watcher.h) with a
 * sink on the cell for each step, for confirmed values: a step that ended on a value that the store then refuses could
 * not be taken back. A sink may not unregister itself: it notes that its wait has ended, and a posted call does the
 * rest. */
#include <heddle/join.h>

#include "base/env.h"
#include "base/table.h"
#include "expr/compare.h"
#include "expr/compile.h"
#include "expr/encode.h"
#include "expr/machine.h"
#include "expr/parse.h"
#include "workflow/watcher.h"
#include <heddle/event.h>
#include <heddle/scheduler.h>
#include <stdio.h>

#define SEND_ACTION "heddle.send"
#define WAIT_ACTION "heddle.wait"

typedef struct joined {
    hd_engine *e;
    hd_runtime *rt;
    classes *classes;
    world *w;
    machine *m;
    VEC(struct cell_wait *) waits; /* each knows its index */
    table by_token;                /* of `waits` */
    list over;                     /* of those: ended or gone; end_waits frees them */
    bool posted;                   /* end_waits will be called */
    bool closed;                   /* freed by that call */
} joined;

/* One step that waits for a cell. */
typedef struct cell_wait {
    list_node link; /* in joined.over */
    joined *j;
    uint64_t token;
    uint32_t index; /* in joined.waits; UINT32_MAX: not there yet */
    hd_node sink;
    scope *names;
    code *until;
    frame *vars;
    uint32_t slot;          /* of `value` */
    bool gone;              /* the step waits no longer */
    bool ended;             /* with `result`, or failed with `message` */
    hd_value result;        /* owned */
    const char *class_name; /* of the failure */
    char message[256];
} cell_wait;

/* ---- sending */

/* As the workflow has it: a key with a "$" in front is doubled in arguments, and not in events. */
static hd_value plain_event(joined *j, hd_pool *pool, hd_value event) {
    ev v;
    if (!hd_value_exists(event)) return event;
    hd_status status = decode_value(j->w, event, &v, NULL);
    return status ? hd_failed(status) : encode_plain(j->w, pool, v);
}

static hd_status send_event(hd_action *a, hd_value args, void *ctx) {
    hd_tx *tx = hd_action_tx(a);
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_cell stream = hd_cell_at(rt, hd_value_as_text(hd_value_at(args, "stream"), ""));
    char id[HD_EVENT_ID_SIZE];
    hd_send_options options = { .lasting = true };
    if (!stream.id)
        return hd_action_raise(a, "ValueError", "stream: %s", hd_runtime_error(rt)->message);
    hd_value event = plain_event(ctx, hd_tx_pool(tx), hd_value_at(args, "event"));
    hd_status status = hd_value_status(event);
    if (!status) status = hd_tx_post(tx, stream, event, &options, id);
    if (status)
        return hd_action_raise(
            a, hd_status_class(status) == HD_CLASS_TRANSIENT ? "ConnectionError" : "ValueError",
            "%s", hd_status_text(status));
    return hd_action_return(a, hd_string(hd_action_pool(a), id));
}

/* ---- waiting */

static uint32_t hash_token(uint64_t token) { return (uint32_t)(token ^ token >> 32); }

static hd_status add_wait(joined *j, cell_wait *c) {
    hd_status status = vec_room(j->e->env, &j->waits, 1) ? HD_OK : HD_NOMEM;
    if (!status) status = table_insert(&j->by_token, hash_token(c->token), j->waits.count);
    if (status) return status;
    c->index = j->waits.count;
    j->waits.items[j->waits.count++] = c;
    return HD_OK;
}

static cell_wait *find_wait(const joined *j, uint64_t token) {
    for (table_probe p = table_find(&j->by_token, hash_token(token)); table_next(&j->by_token, &p);)
        if (j->waits.items[p.index]->token == token) return j->waits.items[p.index];
    return NULL;
}

/* The last one takes its index. */
static void remove_wait(joined *j, const cell_wait *c) {
    cell_wait *last = vec_last(&j->waits);
    assert(j->waits.items[c->index] == c);
    table_remove(&j->by_token, hash_token(c->token), c->index);
    if (last != c) table_move(&j->by_token, hash_token(last->token), last->index, c->index);
    last->index = c->index;
    vec_swap_remove(&j->waits, c->index);
}

static void free_wait(cell_wait *c) {
    const hd_env *env = c->j->e->env;
    list_discard(&c->link);
    if (c->index != UINT32_MAX) remove_wait(c->j, c);
    hd_node_unregister(c->j->rt, c->sink);
    frame_close(c->vars);
    code_free(c->until);
    scope_close(c->names);
    hd_value_unref(c->result);
    env_free(env, c, sizeof *c);
}

static void free_joined(joined *j) {
    const hd_env *env = &j->rt->env;
    assert(!j->waits.count && list_empty(&j->over) && !j->posted);
    vec_fini(env, &j->waits);
    table_fini(&j->by_token);
    machine_close(j->m);
    if (j->w) world_close(j->w);
    if (j->classes) classes_close(j->classes);
    env_free(env, j, sizeof *j);
}

static void end_waits(hd_runtime *rt, void *ctx) {
    joined *j = ctx;
    assert(j->rt == rt && j->posted);
    (void)rt;
    j->posted = false;
    if (j->closed) {
        free_joined(j);
        return;
    }
    for (list_node *n; (n = list_pop_front(&j->over));) {
        cell_wait *c = LIST_ENTRY(n, cell_wait, link);
        assert(c->gone || c->message[0] || hd_value_exists(c->result));
        if (!c->gone && c->message[0]) (void)task_fail(j->e, c->token, c->class_name, c->message);
        else if (!c->gone) (void)task_complete(j->e, c->token, c->result);
        free_wait(c);
    }
}

/* Without memory for the call the next wait that is over asks for it again. */
static void end_later(cell_wait *c) {
    joined *j = c->j;
    if (!list_linked(&c->link)) list_push_back(&j->over, &c->link);
    if (!j->posted) j->posted = !hd_runtime_post(j->rt, end_waits, j);
}

static void note_failure(cell_wait *c, ev exception) {
    hd_pool *pool;
    c->class_name = "ValueError";
    snprintf(c->message, sizeof c->message, "until");
    if (hd_pool_open(c->j->rt->heap, &pool)) return;
    hd_value v = encode_value(c->j->w, pool, exception);
    snprintf(c->message, sizeof c->message, "until: %.60s: %.150s",
             hd_value_as_text(hd_value_at(v, "$error"), ""),
             hd_value_as_text(hd_value_at(v, "message"), ""));
    hd_pool_close(pool);
}

/* A value that is no encoding (docs/EXPRESSIONS.md) is one that no expression can read. */
static bool refuse_value(cell_wait *c, hd_status status, const hd_error *error) {
    if (status == HD_NOMEM) return false;
    c->class_name = "TypeError";
    snprintf(c->message, sizeof c->message, "the value of the cell: %.200s", error->message);
    return true;
}

/* Evaluates `until` with the value. True: the wait is over, because the expression is true, or because the value cannot
 * be read or the expression has raised, which is noted. */
static bool try_value(cell_wait *c, hd_value value) {
    world *w = c->j->w;
    ev v = ev_none(), test;
    hd_error error = { 0 };
    hd_status status = hd_value_exists(value) ? decode_value(w, value, &v, &error) : HD_OK;
    if (status) return refuse_value(c, status, &error);
    frame_set(c->vars, c->slot, v);
    outcome o = machine_eval(c->j->m, c->until, c->vars, &test);
    int truth = o == OUTCOME_VALUE ? ev_truth(w, test) : 0;
    if (truth < 0) test = raise_catch(w);
    if (o == OUTCOME_RAISED || (truth < 0 && test.kind == EV_EXC)) note_failure(c, test);
    return o == OUTCOME_RAISED || truth;
}

static void see(hd_value value, void *ctx) {
    cell_wait *c = ctx;
    assert(!c->j->closed && c->until && c->vars);
    if (c->ended || c->gone || hd_value_status(value) || !try_value(c, value)) return;
    c->ended = true;
    c->result = hd_value_exists(value) ? hd_value_ref(value) : hd_null();
    end_later(c);
}

/* ---- beginning */

static hd_status refuse(hd_error *error, const char *format, const char *why) {
    env_error(error, HD_SYNTAX, format, why);
    return HD_SYNTAX;
}

static hd_status bind_names(cell_wait *c, hd_value args) {
    hd_status status = frame_fit(c->vars);
    for (hd_iter it = hd_iter_of(args); hd_iter_next(&it) && !status;) {
        uint32_t slot = scope_find(c->names, it.key, it.key_length);
        ev v;
        if (slot == UINT32_MAX || slot == c->slot) continue;
        status = decode_value(c->j->w, it.value, &v, NULL);
        if (!status) frame_set(c->vars, slot, v);
    }
    return status;
}

static hd_status compile_until(cell_wait *c, hd_value args, hd_error *error) {
    hd_pool *pool;
    hd_value form;
    const char *chars = hd_value_as_text(hd_value_at(args, "until"), "value");
    hd_status status = hd_pool_open(c->j->rt->heap, &pool);
    if (status) return status;
    status = scope_open(c->j->e->env, &c->names);
    if (!status) status = scope_slot(c->names, "value", 5, &c->slot);
    if (!status) status = parse_expression(pool, chars, &form, error);
    if (!status) status = compile_expression(c->j->w, c->names, form, &c->until, error);
    if (!status) status = frame_open(c->j->w, c->names, &c->vars);
    if (!status) status = bind_names(c, args);
    hd_pool_close(pool);
    return status;
}

static hd_status begin(uint64_t token, hd_value args, hd_error *error, void *ctx) {
    joined *j = ctx;
    hd_cell cell = hd_cell_at(j->rt, hd_value_as_text(hd_value_at(args, "cell"), ""));
    if (!cell.id) return refuse(error, "cell: %.200s", hd_runtime_error(j->rt)->message);
    cell_wait *c = env_new0(j->e->env, sizeof *c);
    if (!c) return HD_NOMEM;
    c->j = j;
    c->token = token;
    c->index = UINT32_MAX;
    hd_status status = compile_until(c, args, error);
    if (!status) {
        hd_sink_spec spec = { .cell = cell, .fn = see, .ctx = c, .confirmed = true };
        status = hd_sink_register(j->rt, &spec, &c->sink);
    }
    if (!status) status = add_wait(j, c);
    if (status) free_wait(c);
    assert(token && !j->closed);
    return status;
}

static void end(uint64_t token, void *ctx) {
    joined *j = ctx;
    cell_wait *c = find_wait(j, token);
    if (!c) return;
    c->gone = true;
    end_later(c);
}

static void close_waits(void *ctx) {
    joined *j = ctx;
    while (j->waits.count) free_wait(vec_last(&j->waits));
    j->closed = true;
    if (!j->posted) free_joined(j);
}

static const watcher_ops ops = { begin, end, close_waits };

/* ---- joining */

static hd_status open_joined(hd_engine *e, joined **out) {
    joined *j = *out = env_new0(e->env, sizeof *j);
    if (!j) return HD_NOMEM;
    j->e = e;
    j->rt = e->rt;
    list_init(&j->over);
    table_init(&j->by_token, e->env);
    hd_status status = classes_open(e->env, &j->classes);
    if (!status) status = world_open(e->env, NULL, j->classes, &j->w);
    if (!status) status = machine_open(j->w, &j->m);
    return status;
}

hd_status hd_workflow_join(hd_engine *e) {
    joined *j;
    hd_action_spec sending = { .name = SEND_ACTION, .fn = send_event, .transaction = true };
    if (engine_action(e, SEND_ACTION)) return HD_EXISTS;
    hd_status status = open_joined(e, &j);
    sending.ctx = j;
    if (!status) status = watcher_serve(e, WAIT_ACTION, &ops, j);
    if (status) {
        if (j) free_joined(j);
        return status;
    }
    return hd_action_register(e, &sending);
}

/* engine.c -- an engine's life: versions of workflows, actions, and how it hangs on the runtime. */
#include "workflow/engine.h"

#include "base/env.h"
#include "value/key.h"
#include <stdio.h>

#define VERSION_PREFIX "workflow-version/"

/* ---- on the runtime */

/* Before the pump: steps, then the commit with what they have changed. In memory a commit is stored at once,
 * so that this goes on until every instance waits, or the time slice is over. */
static void work(void *ctx) {
    hd_engine *e = ctx;
    uint64_t end = env_now_ns(e->env) + UINT64_C(16000000);
    if (!e->closing && !e->rt->open) remotes_pump(e->remotes);
    for (bool more = true; more && !e->closing && !e->rt->open;) {
        more = step_work(e);
        if (e->changed.count && !e->waits) {
            if (live_commit(e)) break;
            more = true;
        }
        if (e->waits || env_now_ns(e->env) >= end) break;
    }
    remotes_flush(e->remotes);
}

static uint64_t deadline(const void *ctx) {
    const hd_engine *e = ctx;
    if (e->closing) return UINT64_MAX;
    if (e->changed.count && !e->waits) return 0;
    uint64_t steps = step_deadline(e), workers = remotes_deadline(e->remotes);
    return steps < workers ? steps : workers;
}

/* ---- opening and closing */

static char *copy_text(const hd_env *env, const char *from) {
    return env_new_copy(env, from, strlen(from) + 1);
}
static void free_text(const hd_env *env, char *chars) {
    if (chars) env_free(env, chars, strlen(chars) + 1);
}

static void free_engine(hd_engine *e) {
    while (!list_empty(&e->lives)) live_free(LIST_ENTRY(list_first(&e->lives), live, link));
    for (uint32_t i = 0; i < e->plans.count; i++) plan_unref(e->plans.items[i]);
    for (uint32_t i = 0; i < e->actions.count; i++) free_text(e->env, e->actions.items[i].name);
    if (e->w) {
        machine_close(e->w->machine);
        world_close(e->w);
    }
    if (e->classes) classes_close(e->classes);
    vec_fini(e->env, &e->plans);
    vec_fini(e->env, &e->latest);
    vec_fini(e->env, &e->actions);
    vec_fini(e->env, &e->all);
    vec_fini(e->env, &e->changed);
    vec_fini(e->env, &e->under_way);
    vec_fini(e->env, &e->free_indices);
    table_fini(&e->by_id);
    task_fini(e);
    binheap_fini(&e->timers);
    free_text(e->env, e->space);
    /* Commits without a verdict hold on to the engine: the last verdict frees it. */
    e->orphan = e->waits || e->starting;
    if (!e->orphan) env_free(e->env, e, sizeof *e);
}

static void close_engine(void *ctx) {
    hd_engine *e = ctx;
    e->closing = true;
    pool_close(e);
    here_close(e);
    if (e->waits || e->starting) (void)runtime_sync(e->rt);
    remotes_flush(e->remotes); /* workers are told what has been stored */
    remotes_close(e->remotes);
    e->remotes = NULL;
    e->rt->work = (runtime_extension){ 0 };
    free_engine(e);
}

void hd_engine_close(hd_engine *engine) {
    if (engine) close_engine(engine);
}

typedef struct found {
    hd_engine *e;
    VEC(char *) ids;
    bool nomem;
} found;

static bool note_found(const hd_listing *entry, void *ctx) {
    found *f = ctx;
    const char *prefix = "workflow/";
    char *id = strncmp(entry->id, prefix, strlen(prefix))
                   ? NULL
                   : copy_text(f->e->env, entry->id + strlen(prefix));
    if (!id) return true;
    f->nomem = !vec_push(f->e->env, &f->ids, id);
    if (f->nomem) free_text(f->e->env, id);
    return !f->nomem;
}

/* Instances that are not over: as many as are open, whatever else the store has. */
static hd_status take_up_all(hd_engine *e, hd_error *error) {
    found f = { .e = e };
    hd_status status = hd_runtime_list(e->rt, e->space, "workflow.running", NULL, note_found, &f);
    if (!status && f.nomem) status = HD_NOMEM;
    for (uint32_t i = 0; i < f.ids.count; i++) {
        if (!status) status = live_take_up(e, f.ids.items[i], error);
        free_text(e->env, f.ids.items[i]);
    }
    vec_fini(e->env, &f.ids);
    return status;
}

static hd_status open_world(hd_engine *e) {
    machine *m;
    hd_status status = classes_open(e->env, &e->classes);
    if (!status) status = world_open(e->env, NULL, e->classes, &e->w);
    return status ? status : machine_open(e->w, &m);
}

hd_status hd_engine_open(hd_runtime *rt, const hd_engine_options *options, hd_engine **out,
                         hd_error *error) {
    static const hd_engine_options defaults;
    *out = NULL;
    if (!options) options = &defaults;
    if (rt->work.ctx) return runtime_fail(rt, HD_EXISTS, "the runtime has an engine already");
    hd_engine *e = env_new0(&rt->env, sizeof *e);
    if (!e) return HD_NOMEM;
    e->rt = rt;
    e->env = &rt->env;
    e->heap = rt->heap;
    e->threads = options->threads ? options->threads : 4;
    list_init(&e->lives);
    list_init(&e->hot);
    list_init(&e->workers);
    table_init(&e->by_id, e->env);
    table_init(&e->by_action, e->env);
    binheap_init(&e->deadlines, e->env);
    binheap_init(&e->timers, e->env);
    e->space = copy_text(e->env, options->space ? options->space : "main");
    hd_status status = e->space ? open_world(e) : HD_NOMEM;
    if (!status) status = take_up_all(e, error);
    if (status) {
        free_engine(e);
        return status;
    }
    rt->work = (runtime_extension){
        .ctx = e, .prepare = work, .deadline = deadline, .close = close_engine
    };
    *out = e;
    return HD_OK;
}

/* ---- versions */

static plan *known_plan(const hd_engine *e, const char *version) {
    for (uint32_t i = 0; i < e->plans.count; i++)
        if (!strcmp(e->plans.items[i]->version, version)) return e->plans.items[i];
    return NULL;
}

static hd_cell version_cell(hd_engine *e, const char *version) {
    char name[300];
    snprintf(name, sizeof name, "%s/" VERSION_PREFIX "%s", e->space, version);
    return hd_cell_at(e->rt, name);
}

/* The plan of a version that an instance was started with; NULL: it is not in the store, or no memory. */
plan *engine_plan(hd_engine *e, const char *version) {
    plan *p = known_plan(e, version);
    hd_pool *pool;
    if (p || hd_pool_open(e->heap, &pool)) return p;
    hd_value ir = hd_read(e->rt, pool, version_cell(e, version));
    if (hd_value_exists(ir) && !plan_make(e->w, e->heap, ir, &p, NULL) &&
        !vec_push(e->env, &e->plans, p)) {
        plan_unref(p);
        p = NULL;
    }
    hd_pool_close(pool);
    return p;
}

static hd_status store_version(hd_engine *e, const plan *p) {
    hd_tx *tx;
    hd_cell cell = version_cell(e, p->version);
    hd_status status = hd_tx_begin(e->rt, &tx);
    if (status) return status;
    status = hd_tx_set(tx, cell, p->source);
    if (!status) status = hd_tx_set_kind(tx, cell, "workflow.version");
    if (!status) return hd_tx_commit(tx, NULL, NULL);
    hd_tx_abort(tx);
    return status;
}

static hd_status make_latest(hd_engine *e, uint32_t index) {
    for (uint32_t i = 0; i < e->latest.count; i++)
        if (!strcmp(e->plans.items[e->latest.items[i]]->name, e->plans.items[index]->name))
            return e->latest.items[i] = index, HD_OK;
    return vec_push(e->env, &e->latest, index) ? HD_OK : HD_NOMEM;
}

hd_status hd_workflow_register(hd_engine *e, hd_value ir, char version[HD_ID_SIZE],
                               hd_error *error) {
    plan *p;
    hd_status status = plan_make(e->w, e->heap, ir, &p, error);
    if (status) return status;
    plan *known = known_plan(e, p->version);
    if (version) memcpy(version, p->version, HD_ID_SIZE);
    if (known) {
        plan_unref(p);
        p = known;
    } else {
        status = store_version(e, p);
        if (!status && !vec_push(e->env, &e->plans, p)) status = HD_NOMEM;
        if (status) {
            plan_unref(p);
            return status;
        }
    }
    for (uint32_t i = 0; i < e->plans.count; i++)
        if (e->plans.items[i] == p) return make_latest(e, i);
    return HD_OK;
}

/* ---- actions */

const action_entry *engine_action(const hd_engine *e, const char *name) {
    for (uint32_t i = 0; i < e->actions.count; i++)
        if (!strcmp(e->actions.items[i].name, name)) return &e->actions.items[i];
    return NULL;
}

static hd_status serve(hd_engine *e, const action_entry *a) {
    return a->spec.here ? here_serve(e, a->name) : pool_serve(e, a->name);
}

hd_status hd_action_register(hd_engine *e, const hd_action_spec *spec) {
    if (!spec->name || !*spec->name || !spec->fn)
        return runtime_fail(e->rt, HD_USAGE,
                            "hd_action_register: an action has a name and a function");
    action_entry *known = (action_entry *)(uintptr_t)engine_action(e, spec->name);
    if (known && known->spec.here != spec->here)
        return runtime_fail(e->rt, HD_USAGE,
                            "hd_action_register: %s was registered with another `here`",
                            spec->name);
    if (known) {
        char *name = known->name;
        *known = (action_entry){ name, *spec };
        known->spec.name = name;
        return HD_OK;
    }
    char *name = copy_text(e->env, spec->name);
    if (!name || !vec_push(e->env, &e->actions, ((action_entry){ name, *spec }))) {
        free_text(e->env, name);
        return HD_NOMEM;
    }
    vec_last(&e->actions).spec.name = name;
    hd_status status = serve(e, &vec_last(&e->actions));
    if (status) free_text(e->env, vec_pop(&e->actions).name);
    return status;
}

void hd_engine_stat(const hd_engine *e, hd_engine_stats *out) {
    *out = e->stats;
    out->ready = e->ready_count;
    out->timers = binheap_count(&e->timers);
    out->running = e->claimed_count;
}

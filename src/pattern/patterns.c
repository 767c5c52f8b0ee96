/* patterns.c -- the registered patterns of a runtime, and the life of the pattern layer's state. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/scheduler.h"
#include "value/key.h"
#include <string.h>

/* The scheduler has been closed before, and has released every node; that freed the nodes' parts. */
static void close_patterns(void *ctx) {
    patterns *all = ctx;
    assert(!all->building && all->rt->extension.ctx == all);
    const hd_env *env = all->env;
    all->closing = true;
    if (all->close_fetcher) all->close_fetcher(all->fetcher);
    while (!list_empty(&all->running)) {
        piece *p = LIST_ENTRY(list_last(&all->running), piece, link);
        piece_forget(p);
    }
    while (!list_empty(&all->launches)) {
        launch *l = LIST_ENTRY(list_first(&all->launches), launch, link);
        list_remove(&l->link);
        env_free(env, l, sizeof *l);
    }
    while (!list_empty(&all->replies)) {
        reply *r = LIST_ENTRY(list_first(&all->replies), reply, link);
        list_remove(&r->link);
        env_free(env, r, sizeof *r);
    }
    for (uint32_t i = 0; i < all->left.count; i++)
        place_unref(&all->rt->r.places, all->left.items[i]);
    vec_fini(env, &all->left);
    assert(all->free_ids.count == all->pieces.count && !table_count(&all->names));
    vec_fini(env, &all->known);
    vec_fini(env, &all->pieces);
    vec_fini(env, &all->generations);
    vec_fini(env, &all->free_ids);
    table_fini(&all->names);
    all->rt->extension = (runtime_extension){ 0 };
    env_free(env, all, sizeof *all);
}

static void prepare(void *ctx) {
    pieces_work_off(ctx);
    left_work_off(ctx);
    assert(list_empty(&((patterns *)ctx)->due));
    patterns_check(ctx);
}

static uint64_t deadline(const void *ctx) {
    const patterns *all = ctx;
    if (!list_empty(&all->due) || all->left.count) return 0;
    return all->fetcher_deadline ? all->fetcher_deadline(all->fetcher) : UINT64_MAX;
}

patterns *patterns_of(hd_runtime *rt) {
    if (rt->extension.ctx) return rt->extension.ctx;
    scheduler *s = scheduler_of(rt);
    patterns *all = s ? env_new0(&rt->env, sizeof *all) : NULL;
    if (!all) return NULL;
    all->rt = rt;
    all->env = &rt->env;
    table_init(&all->names, all->env);
    list_init(&all->running);
    list_init(&all->due);
    list_init(&all->launches);
    list_init(&all->replies);
    rt->extension = (runtime_extension){
        .ctx = all, .prepare = prepare, .deadline = deadline, .close = close_patterns
    };
    demand_attach(s);
    assert(patterns_get(rt) == all);
    return all;
}

const pattern *patterns_find(const patterns *all, const char *name) {
    for (uint32_t i = 0; i < all->known.count; i++)
        if (!strcmp(all->known.items[i].name, name)) return &all->known.items[i];
    return NULL;
}

hd_status hd_pattern_register(hd_runtime *rt, const char *name, const char *version,
                              hd_pattern_fn fn, void *ctx) {
    patterns *all = patterns_of(rt);
    if (!all) return HD_NOMEM;
    if (!name || !name_is_plain(name) || !fn)
        return runtime_fail(rt, HD_USAGE,
                            "a pattern needs a name without '/', ':' and '#', and a "
                            "function");
    const pattern *known = patterns_find(all, name);
    if (known && known->fn == fn && known->ctx == ctx && texts_equal(known->version, version))
        return HD_OK;
    if (known) return runtime_fail(rt, HD_USAGE, "there is another pattern \"%s\" already", name);
    pattern p = { name, version, fn, ctx };
    return vec_push(all->env, &all->known, p) ? HD_OK : HD_NOMEM;
}

hd_status hd_pattern_unregister(hd_runtime *rt, const char *name) {
    patterns *all = rt->extension.ctx;
    const pattern *known = all && name ? patterns_find(all, name) : NULL;
    if (!known) return HD_NOT_FOUND;
    vec_remove(&all->known, (uint32_t)(known - all->known.items));
    return HD_OK;
}

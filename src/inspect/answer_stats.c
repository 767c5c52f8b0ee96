/* answer_stats.c -- counts and times of nodes, sorted as asked for, and the reason why each does not run. */
#include "inspect/answer.h"

#include "base/env.h"
#include "scheduler/scheduler.h"
#include <stdlib.h>
#include <string.h>

/* One node, with what it is sorted by. */
typedef struct ranked {
    hd_node node;
    uint64_t weight;  /* the greatest comes first */
    const char *name; /* BY_NAME: its path as the answer shows it, of the pool; ascending */
    uint32_t at;      /* its position in the graph, for nodes that are equal otherwise */
} ranked;

typedef struct ranking {
    inspector *in;
    ask_order by;
    VEC(ranked) all;
    bool no_memory;
} ranking;

static uint64_t weight_of(const hd_node_info *info, ask_order by) {
    switch (by) {
    case BY_RUNS: return info->runs;
    case BY_FAILURES: return info->failures;
    /* The runtime times a sample of the runs; the time of all is estimated from it. */
    case BY_TIME:
        return info->timed_runs ? (uint64_t)((double)info->total_ns / (double)info->timed_runs *
                                             (double)info->runs)
                                : 0;
    default: return 0;
    }
}

static bool rank(const hd_node_info *info, void *ctx) {
    ranking *r = ctx;
    ranked one = { info->node, weight_of(info, r->by), "", r->all.count };
    if (r->by == BY_NAME) one.name = hd_value_as_text(answer_node_name(r->in, info->node), NULL);
    r->no_memory = !one.name || !vec_push(&r->in->rt->env, &r->all, one);
    return !r->no_memory;
}

static int by_weight(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static int by_name(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->at < y->at ? -1 : 1;
}

static hd_value stats_node(inspector *in, hd_node handle) {
    hd_node_info info;
    char sentence[256];
    hd_node_inspect(in->rt, handle, &info);
    hd_why_not reason = hd_node_why_not(in->rt, handle, sentence, sizeof sentence);
    hd_value v = answer_node(in, handle);
    v = hd_object_set(in->pool, v, "reason", hd_string(in->pool, answer_reason(reason)));
    v = hd_object_set(in->pool, v, "reads", hd_int(in->pool, info.reads));
    v = hd_object_set(in->pool, v, "why_not", answer_text(in->pool, sentence));
    uint64_t now = env_now_ns(&in->rt->env);
    uint64_t wait = info.eligible_at_ns > now ? info.eligible_at_ns - now : 0;
    v = hd_object_set(in->pool, v, "wait_ns", answer_count(in->pool, wait));
    uint32_t debounce = hd_node_debounce(in->rt, handle),
             throttle = hd_node_throttle(in->rt, handle);
    if (debounce) v = hd_object_set(in->pool, v, "debounce_ms", hd_int(in->pool, debounce));
    if (throttle) v = hd_object_set(in->pool, v, "throttle_ms", hd_int(in->pool, throttle));
    return v;
}

static hd_value totals(inspector *in) {
    hd_scheduler_stats s;
    hd_pool *pool = in->pool;
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) return hd_failed(HD_NOMEM);
    hd_runtime_scheduler_stats(in->rt, &s);
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = { { "nodes", s.nodes },
                   { "effects", s.effects },
                   { "computations", s.computations },
                   { "materialisers", s.materialisers },
                   { "invalid", s.invalid },
                   { "live", s.live },
                   { "runs", s.runs },
                   { "effect_runs", s.effect_runs },
                   { "passes", s.passes },
                   { "failures", s.failures },
                   { "retries", s.retries + s.stale_retries },
                   { "exhausted", s.exhausted } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        hd_builder_put(b, counts[i].name, answer_count(pool, counts[i].n));
    return hd_builder_close(b);
}

hd_value answer_stats(inspector *in, const request *r, hd_error *error) {
    (void)error;
    ranking ranks = { .in = in, .by = r->by };
    hd_value nodes = hd_array();
    hd_runtime_nodes(in->rt, rank, &ranks);
    if (!ranks.no_memory && ranks.all.count && r->by != BY_ORDER)
        qsort(ranks.all.items, ranks.all.count, sizeof *ranks.all.items,
              r->by == BY_NAME ? by_name : by_weight);
    for (uint32_t i = 0; i < ranks.all.count && i < r->limit && !ranks.no_memory; i++)
        nodes = hd_array_append(in->pool, nodes, stats_node(in, ranks.all.items[i].node));
    vec_fini(&in->rt->env, &ranks.all);
    if (ranks.no_memory) return hd_failed(HD_NOMEM);
    return hd_object_set(in->pool, hd_object_set(in->pool, hd_object(), "nodes", nodes), "totals",
                         totals(in));
}

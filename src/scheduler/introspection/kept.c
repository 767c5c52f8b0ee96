/* kept.c -- statistics of nodes that have been removed.
 *
 * A table of fixed size by name. When it is full, the node that ran least recently is forgotten. Nodes that
 * are registered need no entry: their own records have the figures. */
#include "scheduler/introspection/introspection.h"

#include "base/env.h"
#include "scheduler/registry.h"
#include "value/key.h"

enum { KEPT_CHECKED = 256 }; /* up to so many records are looked at one by one */

static kept_stats *find(const introspection *in, const struct key *name) {
    for (table_probe p = table_find(&in->kept_names, name->hash); table_next(&in->kept_names, &p);)
        if (in->kept[p.index].name == name) return &in->kept[p.index];
    return NULL;
}

static void forget(introspection *in, kept_stats *k) {
    assert(k->name && binheap_linked(&k->by_run));
    table_remove(&in->kept_names, k->name->hash, (uint32_t)(k - in->kept));
    binheap_remove(&in->kept_order, &k->by_run);
    key_unref(k->name);
    k->name = NULL;
}

/* An unused record, or else that of the node that ran least recently. */
static kept_stats *take(introspection *in) {
    assert(in->kept && in->kept_count <= HD_KEPT_STATS);
    if (in->kept_count < HD_KEPT_STATS) return &in->kept[in->kept_count++];
    assert(binheap_count(&in->kept_order) == HD_KEPT_STATS);
    kept_stats *oldest = BINHEAP_ENTRY(binheap_peek(&in->kept_order), kept_stats, by_run);
    forget(in, oldest);
    return oldest;
}

static void read_stats(const scheduler *s, node_id id, hd_action_stats *out) {
    const cold *c = cold_of(s, node_of(s, id));
    *out = (hd_action_stats){ .runs = node_runs(s, node_of(s, id)),
                              .timed_runs = s->sides[id].timed_runs,
                              .total_ns = s->sides[id].total_ns,
                              .failures = c ? c->failures : 0 };
}

static struct key *full_name(const scheduler *s, node_id id) {
    size_t size;
    char *text = introspection_name(s, id, &size);
    struct key *name = text ? key_intern(s->r->heap, text, size - 1) : NULL;
    if (text) env_free(s->env, text, size);
    return name;
}

/* A name may come and go many times: what all its nodes did counts. */
static void add_stats(hd_action_stats *to, const hd_action_stats *more) {
    assert(more->timed_runs || !more->total_ns);
    to->runs += more->runs;
    to->timed_runs += more->timed_runs;
    to->total_ns += more->total_ns;
    to->failures += more->failures;
}

static void remember(scheduler *s, node_id id) {
    assert(s->introspection && s->introspection->kept);
    introspection *in = s->introspection;
    hd_action_stats stats;
    if (!node_own_name(s, id)) return;
    struct key *name = full_name(s, id);
    if (!name) return; /* no memory: it is forgotten at once */
    read_stats(s, id, &stats);
    kept_stats *k = find(in, name);
    if (k) {
        add_stats(&stats, &k->stats);
        forget(in, k);
    } else {
        k = take(in);
    }
    assert(!k->name && !binheap_linked(&k->by_run));
    k->name = name;
    k->stats = stats;
    /* Neither can fail: room was made when it was switched on. */
    hd_status status = binheap_push(&in->kept_order, &k->by_run, node_of(s, id)->ran_rev);
    if (!status) status = table_insert(&in->kept_names, name->hash, (uint32_t)(k - in->kept));
    assert(!status);
    (void)status;
}

hd_status introspection_keep(scheduler *s, bool on) {
    introspection *in = introspection_of(s);
    if (!in) return HD_NOMEM;
    if (on && !in->kept) {
        in->kept = env_new_array(s->env, HD_KEPT_STATS, sizeof *in->kept);
        if (!in->kept) return HD_NOMEM;
        memset(in->kept, 0, HD_KEPT_STATS * sizeof *in->kept);
        if (binheap_reserve(&in->kept_order, HD_KEPT_STATS) ||
            table_reserve(&in->kept_names, HD_KEPT_STATS)) {
            env_free(s->env, in->kept, HD_KEPT_STATS * sizeof *in->kept);
            in->kept = NULL;
            return HD_NOMEM;
        }
    }
    assert(in->kept || !on);
    s->removed = on ? remember : NULL;
    return HD_OK;
}

#ifndef NDEBUG
/* Every record that is in use has a name, under which it is found, and a place in the order of runs. */
void introspection_check(const scheduler *s) {
    const introspection *in = s->introspection;
    if (!in) return;
    trace_check(&in->trace);
    assert(in->kept_count <= HD_KEPT_STATS && (in->kept || !in->kept_count));
    assert(table_count(&in->kept_names) == in->kept_count);
    assert(binheap_count(&in->kept_order) == in->kept_count);
    assert(!in->diagnosis.on || in->diagnosis.records);
    for (uint32_t i = 0; i < in->breaks.count; i++)
        assert(in->breaks.items[i].fn && (in->breaks.items[i].name || in->breaks.items[i].node.id));
    if (in->kept_count > KEPT_CHECKED) return;
    for (uint32_t i = 0; i < in->kept_count; i++) {
        assert(in->kept[i].name && find(in, in->kept[i].name) == &in->kept[i]);
        assert(binheap_linked(&in->kept[i].by_run));
    }
}
#endif

void introspection_kept_fini(scheduler *s, introspection *in) {
    for (uint32_t i = 0; i < in->kept_count; i++) key_unref(in->kept[i].name);
    env_free(s->env, in->kept, HD_KEPT_STATS * sizeof *in->kept);
    table_fini(&in->kept_names);
    binheap_fini(&in->kept_order);
}

hd_status introspection_stats(const scheduler *s, const char *name, hd_action_stats *out) {
    const introspection *in = s->introspection;
    node_id id = introspection_find(s, name);
    const struct key *k = in && in->kept ? key_find(s->r->heap, name, strlen(name)) : NULL;
    const kept_stats *kept = k ? find(in, k) : NULL;
    *out = (hd_action_stats){ 0 };
    if (id) read_stats(s, id, out);
    if (kept) add_stats(out, &kept->stats);
    out->exists = id != 0;
    return id || kept ? HD_OK : HD_NOT_FOUND;
}

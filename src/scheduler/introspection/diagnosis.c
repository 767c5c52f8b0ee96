/* diagnosis.c -- the tracker of busy windows, and pairs of runs that contradict each other. */
#include "scheduler/introspection/diagnosis.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/registry.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/path.h"

#define SECOND        UINT64_C(1000000000)
#define WINDOW_NS     (5 * SECOND)
#define WINDOW_MAX_NS (10 * SECOND)
#define BUSY_NS       (1 * SECOND)
#define BUSY_PER_CENT 30

hd_status diagnosis_start(diagnosis *d, const hd_env *env) {
    if (!d->records) d->records = env_new_array(env, DIAGNOSIS_RUNS, sizeof *d->records);
    if (!d->records) return HD_NOMEM;
    d->on = true;
    return HD_OK;
}

void diagnosis_stop(diagnosis *d) {
    assert(!d->on || d->records);
    d->on = false;
    d->next = (diagnosis_record){ 0 };
}

static uint32_t count(const diagnosis *d) {
    return d->total < DIAGNOSIS_RUNS ? (uint32_t)d->total : DIAGNOSIS_RUNS;
}

void diagnosis_fini(diagnosis *d, const hd_env *env) {
    for (uint32_t i = 0; i < count(d); i++) key_unref(d->records[i].name);
    env_free(env, d->records, DIAGNOSIS_RUNS * sizeof *d->records);
    *d = (diagnosis){ 0 };
}

/* ---- what a run read and wrote, as two numbers */

static uint64_t hash_value(const scheduler *s, uint64_t seed, hd_value v) {
    hd_hash h = value_hash(s->r->heap, v);
    return hash_combine(hash_combine(seed, h.lo), h.hi);
}

static uint64_t hash_reads(const scheduler *s, const hd_tx *tx) {
    bool own = tx->flags & TX_DIVERGED;
    uint32_t reads = own ? tx->reads.count : tx_agreed(tx);
    uint64_t h = 0;
    for (uint32_t i = 0; i < reads; i++) {
        uint32_t key = own ? tx->reads.items[i] : tx->front.first[i].key;
        h = hash_value(s, hash_combine(h, key), place_at(&s->r->places, key & KEY_PLACE)->value);
    }
    return h;
}

static uint64_t hash_write(const scheduler *s, place_id doc, hd_path path, op_kind kind,
                           hd_value v) {
    bool removes = kind == OP_REMOVE || kind == OP_DELETE;
    uint64_t h = hash_combine(hash_combine(doc, path), removes ? OP_SET : (uint64_t)kind);
    return hash_value(s, h, removes ? value_absent() : v);
}

/* A sum: the order of writes does not matter. A write that changed nothing counts like one that set
 * what is there, so that a run which repeats itself is the same as before. */
static uint64_t hash_writes(const scheduler *s, const hd_tx *tx) {
    const places *ps = &s->r->places;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tx->ops.count; i++) {
        const op *o = &tx->ops.items[i].o;
        sum += hash_write(s, o->doc, o->path, o->kind, o->value);
    }
    for (uint32_t i = 0; i < tx->attempted.count; i++) {
        place_id at = tx->attempted.items[i];
        sum += hash_write(s, place_at(ps, at)->root, place_path(ps, at), OP_SET, tx_peek(tx, at));
    }
    if (tx_has_output(tx))
        sum += hash_write(s, tx->front.out, HD_PATH_ROOT, OP_SET, tx->front.out_value);
    return sum;
}

/* ---- runs */

void diagnosis_run_body(diagnosis *d, const scheduler *s, node_id id, const hd_tx *tx,
                        hd_status status) {
    d->next = (diagnosis_record){ 0 };
    if (!d->on || status) return;
    assert(d->records && id);
    d->next = (diagnosis_record){ registry_handle(s, id), node_own_name(s, id), hash_reads(s, tx),
                                  hash_writes(s, tx) };
}

static bool same_node(hd_node a, hd_node b) { return a.id == b.id && a.generation == b.generation; }

static bool contradicts(const diagnosis_record *a, const diagnosis_record *b) {
    return same_node(a->node, b->node) && a->reads == b->reads && a->writes != b->writes;
}

/* Whether one of the records before `end` contradicts this one. */
static bool is_contradicted(const diagnosis *d, const diagnosis_record *r, uint32_t end) {
    assert(end <= count(d));
    for (uint32_t i = 0; i < end; i++)
        if (contradicts(&d->records[i], r)) return true;
    return false;
}

static bool is_known_to_differ(const diagnosis *d, hd_node handle) {
    for (uint32_t i = 0; i < count(d); i++)
        if (same_node(d->records[i].node, handle) && is_contradicted(d, &d->records[i], i))
            return true;
    return false;
}

void diagnosis_run_end(diagnosis *d, const scheduler *s, node_id id, hd_status status) {
    diagnosis_record r = d->next;
    d->next = (diagnosis_record){ 0 };
    if (!d->on || !r.node.id || status) return;
    /* A run whose node was removed meanwhile has no end, and that of a suspended run no body: this may be the end of
     * another run than the last body was. */
    if (!same_node(r.node, registry_handle(s, id))) return;
    assert(d->records);
    bool fresh = is_contradicted(d, &r, count(d)) && !is_known_to_differ(d, r.node);
    assert(!fresh || count(d)); /* a contradiction takes two runs */
    diagnosis_record *at = &d->records[d->total % DIAGNOSIS_RUNS];
    if (d->total >= DIAGNOSIS_RUNS) key_unref(at->name);
    *at = r;
    if (at->name) key_ref(at->name);
    d->total++;
    if (fresh)
        tell(s, &(hd_telemetry){ .kind = HD_TELEMETRY_DIAGNOSIS,
                                 .node = r.node,
                                 .action = at->name ? key_bytes(at->name) : "",
                                 .count = 2 });
}

void diagnosis_report(const diagnosis *d, hd_diagnosis_fn fn, void *ctx) {
    for (uint32_t i = 0; i < count(d); i++) {
        const diagnosis_record *r = &d->records[i];
        hd_diagnosis found = { r->node, r->name ? key_bytes(r->name) : "", 0, false };
        bool before = false;
        for (uint32_t j = 0; j < count(d); j++) {
            if (!same_node(d->records[j].node, r->node)) continue;
            before = before || j < i;
            found.runs++;
        }
        if (before) continue; /* told already */
        assert(found.runs);   /* this very one */
        found.differs = is_known_to_differ(d, r->node);
        if (!fn(&found, ctx)) return;
    }
}

/* ---- the tracker */

void diagnosis_pass_begin(diagnosis *d, const scheduler *s) {
    if (!s->telemetry_fn) return;
    d->pass_began = env_now_ns(s->env);
    d->in_pass = true;
    if (!d->window_began || d->pass_began - d->window_began >= WINDOW_MAX_NS) {
        d->window_began = d->pass_began;
        d->busy_ns = 0;
    }
}

static bool is_busy(const diagnosis *d, uint64_t window) {
    assert(d->window_began);
    return window >= WINDOW_NS && d->busy_ns > BUSY_NS && d->busy_ns * 100 > window * BUSY_PER_CENT;
}

bool diagnosis_pass_end(diagnosis *d, const scheduler *s) {
    if (!d->in_pass || !s->telemetry_fn) return false;
    d->in_pass = false;
    assert(d->window_began && d->pass_began >= d->window_began);
    uint64_t now = env_now_ns(s->env), window = now - d->window_began;
    assert(now >= d->pass_began);
    d->busy_ns += now - d->pass_began;
    if (window < WINDOW_NS) return false;
    bool busy = is_busy(d, window), fresh = busy && !d->told;
    d->told = busy;
    if (fresh)
        tell(s, &(hd_telemetry){ .kind = HD_TELEMETRY_BUSY,
                                 .action = "",
                                 .count = runs_completed(s),
                                 .busy_ns = d->busy_ns,
                                 .window_ns = window });
    return fresh;
}

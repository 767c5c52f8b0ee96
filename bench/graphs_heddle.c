/* graphs_heddle.c -- the graphs on heddle: every signal and every result is a document of a store in
 * memory, every run a transaction, every batch a commit with its verdict. */
#include "graphs.h"

#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct engine {
    hd_runtime *rt;
    hd_tx *tx; /* of the open batch */
    hd_pool *pool;
    uint32_t names;
} engine;

typedef hd_tx engine_tx;
typedef hd_cell engine_cell;
typedef hd_cell engine_item;
typedef hd_status engine_status;

#define ENGINE_MATCHES_ITEMS 1
#define ENGINE_RUNS_DROPPED  1
#define ENGINE_SUITE         graphs_heddle

static inline engine *engine_open(uint32_t nodes) {
    (void)nodes;
    engine *e = calloc(1, sizeof *e);
    if (!e || hd_open(NULL, NULL, &e->rt, NULL) || hd_pool_open(hd_runtime_heap(e->rt), &e->pool))
        abort();
    return e;
}

static inline void engine_close(engine *e) {
    hd_pool_close(e->pool);
    hd_close(e->rt);
    free(e);
}

/* Documents are named by number. */
static inline hd_cell engine_document(engine *e) {
    char name[16], *at = name + sizeof name;
    uint32_t n = e->names++;
    *--at = 0;
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    return hd_cell_of(e->rt, "main", HD_SCOPE_SPACE, at, NULL);
}

static inline engine_cell engine_signal(engine *e, double value) {
    hd_cell cell = engine_document(e);
    if (hd_write(e->rt, cell, hd_double(value))) abort();
    return cell;
}

static inline void engine_computed(engine *e, hd_action_fn body, void *ctx, engine_cell *out) {
    *out = engine_document(e);
    if (!hd_compute(e->rt, NULL, body, ctx, *out).id) abort();
}

static inline void engine_effect(engine *e, hd_action_fn body, void *ctx) {
    if (!hd_effect(e->rt, NULL, body, ctx).id) abort();
}

static inline void engine_settle(engine *e) {
    if (hd_runtime_settle(e->rt)) abort();
}
/* Long chains need no preparation: nothing here recurses over the graph. */
static inline void engine_prepare(engine *e, engine_cell cell) { (void)e, (void)cell; }

static inline void engine_begin(engine *e) {
    if (hd_tx_begin(e->rt, &e->tx)) abort();
}
static inline void engine_write(engine *e, engine_cell cell, double value) {
    if (hd_tx_set(e->tx, cell, hd_double(value))) abort();
}
static inline void engine_end(engine *e) {
    if (hd_tx_commit(e->tx, NULL, NULL) || hd_runtime_settle(e->rt)) abort();
}

static inline double engine_peek(engine *e, engine_cell cell) {
    return hd_value_number(hd_read(e->rt, e->pool, cell));
}
static inline double engine_read(engine_tx *tx, engine_cell cell) {
    return hd_value_number(hd_tx_get(tx, cell));
}

static inline engine_item engine_item_of(engine *e, engine_cell cell, uint32_t index) {
    char key[16];
    snprintf(key, sizeof key, "%u", index);
    return hd_cell_child(e->rt, cell, key);
}
static inline double engine_read_item(engine_tx *tx, engine_item item) {
    return hd_value_number(hd_tx_get(tx, item));
}

static inline engine_status engine_finish(engine_tx *tx, engine_cell out, double value) {
    return hd_tx_set_double(tx, out, value);
}

static inline engine_status engine_finish_list(engine_tx *tx, engine_cell out, const double *items,
                                               uint32_t count) {
    hd_value values[128];
    for (uint32_t i = 0; i < count; i++) values[i] = hd_double(items[i]);
    return hd_tx_set(tx, out, hd_array_of(hd_tx_pool(tx), values, count));
}

static inline engine_status engine_done(engine_tx *tx) {
    (void)tx;
    return HD_OK;
}

static inline uint64_t engine_effect_runs(const engine *e) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(e->rt, &stats);
    return stats.effect_runs;
}
static inline uint64_t engine_computed_runs(const engine *e) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(e->rt, &stats);
    return stats.runs - stats.effect_runs;
}

#include "graphs_template.h"

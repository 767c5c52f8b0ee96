/* graphs_core.c -- the graphs on the minimal signal core. */
#include "graphs.h"
#include "signal_core.h"

typedef sc_core engine;
typedef sc_core engine_tx;
typedef uint32_t engine_cell;
typedef uint64_t engine_status;

typedef struct engine_item {
    uint32_t list;
    uint32_t index;
} engine_item;

#define ENGINE_MATCHES_ITEMS 0
#define ENGINE_RUNS_DROPPED  0
#define ENGINE_SUITE         graphs_core

static inline engine *engine_open(uint32_t nodes) { return sc_open(nodes); }
static inline void engine_close(engine *e) { sc_close(e); }

static inline engine_cell engine_signal(engine *e, double value) {
    return sc_signal(e, sc_bits(value));
}

static inline void engine_computed(engine *e, sc_body *body, void *ctx, engine_cell *out) {
    *out = sc_computed(e, body, ctx);
}

static inline void engine_effect(engine *e, sc_body *body, void *ctx) { sc_effect(e, body, ctx); }
static inline void engine_settle(engine *e) { (void)e; }
static inline void engine_prepare(engine *e, engine_cell cell) { (void)sc_peek(e, cell); }

static inline void engine_begin(engine *e) { sc_batch_begin(e); }
static inline void engine_end(engine *e) { sc_batch_end(e); }
static inline void engine_write(engine *e, engine_cell cell, double value) {
    sc_write(e, cell, sc_bits(value));
}

static inline double engine_peek(engine *e, engine_cell cell) {
    return sc_double(sc_peek(e, cell));
}

static inline double engine_read(engine_tx *tx, engine_cell cell) {
    return sc_double(sc_read(tx, cell));
}

static inline engine_item engine_item_of(engine *e, engine_cell cell, uint32_t index) {
    (void)e;
    return (engine_item){ cell, index };
}

static inline double engine_read_item(engine_tx *tx, engine_item item) {
    return ((const double *)(uintptr_t)sc_read(tx, item.list))[item.index];
}

static inline engine_status engine_finish(engine_tx *tx, engine_cell out, double value) {
    (void)tx, (void)out;
    return sc_bits(value);
}

/* The value is the address, so a list is never equal to the one before. */
static inline engine_status engine_finish_list(engine_tx *tx, engine_cell out, const double *items,
                                               uint32_t count) {
    (void)tx, (void)out, (void)count;
    return (uintptr_t)items;
}

static inline engine_status engine_done(engine_tx *tx) {
    (void)tx;
    return 0;
}

static inline uint64_t engine_computed_runs(const engine *e) { return e->runs[0]; }
static inline uint64_t engine_effect_runs(const engine *e) { return e->runs[1]; }

#include "graphs_template.h"

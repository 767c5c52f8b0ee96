/* graphs_chains.h -- one long chain, and more chains than any cache holds (part of
 * graphs_template.h). Both are told as nanoseconds per run of a node. */

/* ---- One chain: does the time per node stay the same when it gets longer? ------------------ */

static void run_chain(const graph_options *o, graph_result *r, uint32_t nodes, int writes) {
    const int rounds = o->iterations ? o->iterations : writes;
    const int repeats = o->repeats ? o->repeats : 5;
    graph_arena arena = { 0 };
    uint64_t calls = 0;
    *r = (graph_result){ 0 };
    engine *e = engine_open(nodes + 16);
    engine_cell head = engine_signal(e, 0), end = head;
    for (uint32_t i = 0; i < nodes; i++) {
        end = add_plus(e, &arena, end, 1);
        engine_prepare(e, end);
    }
    add_watch(e, &arena, end, &calls);
    engine_settle(e);
    for (int repeat = 0; repeat <= repeats; repeat++) { /* the first one warms up */
        lap l = lap_begin(e);
        for (int i = 1; i <= rounds; i++) write_alone(e, head, repeat * (double)rounds + i);
        if (repeat > 0) lap_end(l, e, r);
        graph_check(r, "end", engine_peek(e, end), (repeat + 1) * (double)rounds + nodes);
    }
    graph_check(r, "computed runs", (double)r->computed_runs, (double)nodes * rounds);
    graph_check(r, "effect runs", (double)r->effect_runs, rounds);
    engine_close(e);
    graph_arena_free(&arena);
}

static void run_chain_1000(const graph_options *o, graph_result *r) { run_chain(o, r, 1000, 1000); }

static void run_chain_100000(const graph_options *o, graph_result *r) {
    run_chain(o, r, 100000, 10);
}

/* ---- 150,000 chains: source -> a -> b -> effect, made one after the other, written at random - */

enum { CHAINS = 150000, CHAINS_WRITES = 200000 };

typedef struct chains {
    engine *e;
    graph_arena arena;
    engine_cell *sources;
    uint64_t calls;
    double written; /* counts up: each write is a change */
} chains;

static void chains_open(chains *w) {
    *w = (chains){ .e = engine_open(4 * CHAINS + 16) };
    w->sources = graph_new(&w->arena, CHAINS * sizeof *w->sources);
    for (int i = 0; i < CHAINS; i++) {
        w->sources[i] = engine_signal(w->e, 0);
        engine_cell a = add_plus(w->e, &w->arena, w->sources[i], 1);
        add_watch(w->e, &w->arena, add_plus(w->e, &w->arena, a, 1), &w->calls);
    }
    engine_settle(w->e);
}

static void chains_write(chains *w, graph_rng *rng, int writes, int per_batch) {
    for (int i = 0; i < writes; i += per_batch) {
        engine_begin(w->e);
        for (int j = 0; j < per_batch; j++) {
            engine_write(w->e, w->sources[graph_rng_bits(rng) % CHAINS], ++w->written);
        }
        engine_end(w->e);
    }
}

static void run_chains(const graph_options *o, graph_result *r, int per_batch) {
    const int writes = o->iterations ? o->iterations * per_batch : CHAINS_WRITES;
    const int repeats = o->repeats ? o->repeats : 3;
    chains w;
    graph_rng rng = graph_rng_seeded("chains");
    *r = (graph_result){ 0 };
    chains_open(&w);
    /* An engine that does not know yet what an effect reads may begin it twice. */
    if (w.calls < CHAINS || w.calls > 2 * CHAINS) graph_wrong(r, "calls", (double)w.calls, CHAINS);
    for (int repeat = 0; repeat <= repeats; repeat++) { /* the first one warms up */
        w.calls = 0;
        lap l = lap_begin(w.e);
        chains_write(&w, &rng, writes, per_batch);
        if (repeat > 0) lap_end(l, w.e, r);
    }
    graph_check(r, "effect runs", (double)r->effect_runs, (double)w.calls);
    graph_check(r, "computed runs", (double)r->computed_runs, 2 * (double)w.calls);
    if (per_batch == 1) graph_check(r, "calls", (double)w.calls, writes);
    engine_close(w.e);
    graph_arena_free(&w.arena);
}

static void run_chains_by_1(const graph_options *o, graph_result *r) { run_chains(o, r, 1); }
static void run_chains_by_1000(const graph_options *o, graph_result *r) { run_chains(o, r, 1000); }

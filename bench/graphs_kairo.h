/* graphs_kairo.h -- nine small graphs, each with one typical shape (part of graphs_template.h).
 *
 * A graph is built once; an iteration writes a number of times and checks the outcome. Four
 * iterations warm up; a repetition is 500 of them, and the fastest of ten repetitions counts. */

enum { MUX_HEADS = 100, BROAD_CHAINS = 50, DEEP_NODES = 50, MOL_ITEMS = 5 };

typedef struct kairo {
    engine *e;
    graph_arena arena;
    graph_result *r;
    engine_cell head; /* what an iteration writes */
    engine_cell end;  /* what it checks */
    engine_cell heads[MUX_HEADS];
    engine_cell ends[MUX_HEADS];
    uint64_t calls; /* of effects that count */
} kairo;

static void kairo_open(kairo *k, graph_result *r) {
    *k = (kairo){ .e = engine_open(512), .r = r };
    *r = (graph_result){ 0 };
    k->head = engine_signal(k->e, 0);
}

/* Runs it, with so many runs expected in each iteration, and ends the world. */
static void kairo_run(kairo *k, const graph_options *o, void (*iterate)(kairo *, int),
                      uint64_t computed_each, uint64_t effects_each) {
    const int iterations = o->iterations ? o->iterations : 500;
    const int repeats = o->repeats ? o->repeats : 10;
    engine_settle(k->e);
    for (int i = 0; i < 4; i++) iterate(k, i);
    for (int repeat = 0; repeat < repeats; repeat++) {
        lap l = lap_begin(k->e);
        for (int i = 0; i < iterations; i++) iterate(k, i);
        lap_end(l, k->e, k->r);
    }
    if (computed_each) {
        graph_check(k->r, "computed runs", (double)k->r->computed_runs,
                    (double)computed_each * iterations);
        graph_check(k->r, "effect runs", (double)k->r->effect_runs,
                    (double)effects_each * iterations);
    }
    engine_close(k->e);
    graph_arena_free(&k->arena);
}

/* Writes 0 ... writes-1 to the head, each alone. The end must read offset + factor * value; a
 * factor of 0 leaves it unchecked. */
static void kairo_sweep(kairo *k, int writes, double factor, double offset) {
    for (int i = 0; i < writes; i++) {
        write_alone(k->e, k->head, i);
        if (factor != 0) graph_check(k->r, "end", engine_peek(k->e, k->end), factor * i + offset);
    }
}

/* ---- avoidable: a computed that always yields 0 keeps all behind it from running ----------- */

static void busy(void) {
    for (int i = 0; i < 100; i++) __asm__ volatile("" : "+r"(i));
}

static engine_status zero_body(engine_tx *tx, void *ctx) {
    const plus *self = ctx;
    (void)engine_read(tx, self->in);
    return engine_finish(tx, self->out, 0);
}

static engine_status busy_plus_body(engine_tx *tx, void *ctx) {
    busy();
    return plus_body(tx, ctx);
}

static engine_status busy_watch_body(engine_tx *tx, void *ctx) {
    const watch *self = ctx;
    (void)engine_read(tx, self->in[0]);
    busy();
    return engine_done(tx);
}

static void iterate_avoidable(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    graph_check(k->r, "c5", engine_peek(k->e, k->end), 6);
    for (int i = 0; i < 1000; i++) {
        write_alone(k->e, k->head, i);
        graph_check(k->r, "c5", engine_peek(k->e, k->end), 6);
    }
}

static void run_avoidable(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    plus *zero = graph_new(&k.arena, sizeof *zero);
    zero->in = add_plus(k.e, &k.arena, k.head, 0);
    engine_computed(k.e, zero_body, zero, &zero->out);
    plus *busy_plus = graph_new(&k.arena, sizeof *busy_plus);
    busy_plus->in = zero->out;
    busy_plus->add = 1;
    engine_computed(k.e, busy_plus_body, busy_plus, &busy_plus->out);
    k.end = add_plus(k.e, &k.arena, add_plus(k.e, &k.arena, busy_plus->out, 2), 3);
    watch *w = new_watch(&k.arena, 1, &k.calls);
    w->in[0] = k.end;
    engine_effect(k.e, busy_watch_body, w);
    kairo_run(&k, o, iterate_avoidable, 2002, 0);
}

/* ---- broad: many short chains from one head ----------------------------------------------- */

static void iterate_broad(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    k->calls = 0;
    kairo_sweep(k, 50, 1, BROAD_CHAINS);
    graph_check(k->r, "calls", (double)k->calls, 50 * BROAD_CHAINS);
}

static void run_broad(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    for (int i = 0; i < BROAD_CHAINS; i++) {
        k.end = add_plus(k.e, &k.arena, add_plus(k.e, &k.arena, k.head, i), 1);
        add_watch(k.e, &k.arena, k.end, &k.calls);
    }
    kairo_run(&k, o, iterate_broad, 51 * 2 * BROAD_CHAINS, 51 * BROAD_CHAINS);
}

/* ---- deep: one long chain ----------------------------------------------------------------- */

static void iterate_deep(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    k->calls = 0;
    kairo_sweep(k, 50, 1, DEEP_NODES);
    graph_check(k->r, "calls", (double)k->calls, 50);
}

static void run_deep(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    k.end = k.head;
    for (int i = 0; i < DEEP_NODES; i++) k.end = add_plus(k.e, &k.arena, k.end, 1);
    add_watch(k.e, &k.arena, k.end, &k.calls);
    kairo_run(&k, o, iterate_deep, 51 * DEEP_NODES, 51);
}

/* ---- diamond: five ways from the head to one sum ------------------------------------------ */

static void iterate_diamond(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    graph_check(k->r, "sum", engine_peek(k->e, k->end), 10);
    k->calls = 0;
    kairo_sweep(k, 500, 5, 5);
    graph_check(k->r, "calls", (double)k->calls, 500);
}

static void run_diamond(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    sum *s = new_sum(&k.arena, 5);
    for (int i = 0; i < 5; i++) s->in[i] = add_plus(k.e, &k.arena, k.head, 1);
    engine_computed(k.e, sum_body, s, &s->out);
    k.end = s->out;
    add_watch(k.e, &k.arena, k.end, &k.calls);
    kairo_run(&k, o, iterate_diamond, 501 * 6, 501);
}

/* ---- mux: all heads into one list, and its items out again -------------------------------- */

typedef struct mux {
    engine_cell out;
    engine_cell in[MUX_HEADS];
    double lists[2][MUX_HEADS]; /* the list before stays as it was */
    int turn;
} mux;

static engine_status mux_body(engine_tx *tx, void *ctx) {
    mux *self = ctx;
    double *list = self->lists[self->turn ^= 1];
    for (int i = 0; i < MUX_HEADS; i++) list[i] = engine_read(tx, self->in[i]);
    return engine_finish_list(tx, self->out, list, MUX_HEADS);
}

typedef struct split {
    engine_cell out;
    engine_item in;
} split;

static engine_status split_body(engine_tx *tx, void *ctx) {
    const split *self = ctx;
    return engine_finish(tx, self->out, engine_read_item(tx, self->in));
}

static void iterate_mux(kairo *k, int iteration) {
    (void)iteration;
    for (int factor = 1; factor <= 2; factor++) {
        for (int i = 0; i < 10; i++) {
            write_alone(k->e, k->heads[i], factor * i);
            graph_check(k->r, "t", engine_peek(k->e, k->ends[i]), factor * i + 1);
        }
    }
}

static void run_mux(const graph_options *o, graph_result *r) {
    /* Head 0 is only ever written 0: 18 of the 20 writes change something. */
    const uint64_t splits_per_write = ENGINE_MATCHES_ITEMS ? 1 : MUX_HEADS;
    kairo k;
    kairo_open(&k, r);
    mux *m = graph_new(&k.arena, sizeof *m);
    for (int i = 0; i < MUX_HEADS; i++) m->in[i] = k.heads[i] = engine_signal(k.e, 0);
    engine_computed(k.e, mux_body, m, &m->out);
    for (uint32_t i = 0; i < MUX_HEADS; i++) {
        split *s = graph_new(&k.arena, sizeof *s);
        s->in = engine_item_of(k.e, m->out, i);
        engine_computed(k.e, split_body, s, &s->out);
        k.ends[i] = add_plus(k.e, &k.arena, s->out, 1);
    }
    for (int i = 0; i < MUX_HEADS; i++) add_watch(k.e, &k.arena, k.ends[i], &k.calls);
    kairo_run(&k, o, iterate_mux, 18 * (1 + splits_per_write + 1), 18);
}

/* ---- repeated: thirty reads of one source ------------------------------------------------- */

static void iterate_repeated(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    graph_check(k->r, "c", engine_peek(k->e, k->end), 30);
    k->calls = 0;
    kairo_sweep(k, 100, 30, 0);
    graph_check(k->r, "calls", (double)k->calls, 100);
}

static void run_repeated(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    sum *s = new_sum(&k.arena, 30);
    for (int i = 0; i < 30; i++) s->in[i] = k.head;
    engine_computed(k.e, sum_body, s, &s->out);
    k.end = s->out;
    add_watch(k.e, &k.arena, k.end, &k.calls);
    kairo_run(&k, o, iterate_repeated, 101, 101);
}

/* ---- triangle: a chain, and the sum of all its nodes -------------------------------------- */

static void iterate_triangle(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    graph_check(k->r, "sum", engine_peek(k->e, k->end), 55);
    k->calls = 0;
    kairo_sweep(k, 100, 10, 45);
    graph_check(k->r, "calls", (double)k->calls, 100);
}

static void run_triangle(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    sum *s = new_sum(&k.arena, 10);
    engine_cell at = k.head;
    for (int i = 0; i < 10; i++) { /* nobody reads the last one made here */
        s->in[i] = at;
        at = add_plus(k.e, &k.arena, at, 1);
    }
    engine_computed(k.e, sum_body, s, &s->out);
    k.end = s->out;
    add_watch(k.e, &k.arena, k.end, &k.calls);
    kairo_run(&k, o, iterate_triangle, 101 * 10, 101);
}

/* ---- unstable: which source is read changes with nearly every write ----------------------- */

typedef struct scaled {
    engine_cell out;
    engine_cell in;
    double factor;
} scaled;

static engine_status scaled_body(engine_tx *tx, void *ctx) {
    const scaled *self = ctx;
    return engine_finish(tx, self->out, engine_read(tx, self->in) * self->factor);
}

static engine_cell add_scaled(kairo *k, double factor) {
    scaled *self = graph_new(&k->arena, sizeof *self);
    self->in = k->head;
    self->factor = factor;
    engine_computed(k->e, scaled_body, self, &self->out);
    return self->out;
}

typedef struct chooser {
    engine_cell out;
    engine_cell in;
    engine_cell if_odd;
    engine_cell if_even;
} chooser;

static engine_status chooser_body(engine_tx *tx, void *ctx) {
    const chooser *self = ctx;
    double total = 0;
    for (int i = 0; i < 20; i++) {
        bool odd = (int64_t)engine_read(tx, self->in) % 2 != 0;
        total += engine_read(tx, odd ? self->if_odd : self->if_even);
    }
    return engine_finish(tx, self->out, total);
}

static void iterate_unstable(kairo *k, int iteration) {
    (void)iteration;
    write_alone(k->e, k->head, 1);
    graph_check(k->r, "c", engine_peek(k->e, k->end), 40);
    k->calls = 0;
    kairo_sweep(k, 100, 0, 0);
    graph_check(k->r, "calls", (double)k->calls, 100);
    graph_check(k->r, "c", engine_peek(k->e, k->end), 20 * 2 * 99);
}

static void run_unstable(const graph_options *o, graph_result *r) {
    const int iterations = o->iterations ? o->iterations : 500;
    kairo k;
    kairo_open(&k, r);
    chooser *c = graph_new(&k.arena, sizeof *c);
    c->in = k.head;
    c->if_odd = add_scaled(&k, 2);
    c->if_even = add_scaled(&k, -1);
    engine_computed(k.e, chooser_body, c, &c->out);
    k.end = c->out;
    add_watch(k.e, &k.arena, k.end, &k.calls);
    kairo_run(&k, o, iterate_unstable, ENGINE_RUNS_DROPPED ? 0 : 101 * 2, 101);
    if (ENGINE_RUNS_DROPPED && r->computed_runs > 101 * 3 * (uint64_t)iterations) {
        graph_wrong(r, "computed runs", (double)r->computed_runs, 101.0 * 3 * iterations);
    }
}

/* ---- molBench: heavy bodies; tells little about propagation -------------------------------- */

typedef struct mol {
    engine_cell out;
    engine_cell a, b, c, e, f;
    engine_item d0, d2, d4;
    double lists[2][MOL_ITEMS];
    int turn;
} mol;

__attribute__((noinline)) static double fib(int n) {
    __asm__ volatile("" : "+r"(n)); /* keeps the calls */
    return n < 2 ? 1 : fib(n - 1) + fib(n - 2);
}

static double hard(double n) { return n + fib(16); }
static int64_t rest2(double n) { return (int64_t)n % 2; }

static engine_status mol_c_body(engine_tx *tx, void *ctx) {
    const mol *m = ctx;
    int64_t c = rest2(engine_read(tx, m->a)) + rest2(engine_read(tx, m->b));
    return engine_finish(tx, m->out, (double)c);
}

static engine_status mol_d_body(engine_tx *tx, void *ctx) {
    mol *m = ctx;
    double *list = m->lists[m->turn ^= 1];
    for (int i = 0; i < MOL_ITEMS; i++) {
        int64_t a = rest2(engine_read(tx, m->a)), b = rest2(engine_read(tx, m->b));
        list[i] = (double)(i + a - b);
    }
    return engine_finish_list(tx, m->out, list, MOL_ITEMS);
}

static engine_status mol_e_body(engine_tx *tx, void *ctx) {
    const mol *m = ctx;
    double n = engine_read(tx, m->c) + engine_read(tx, m->a) + engine_read_item(tx, m->d0);
    return engine_finish(tx, m->out, hard(n));
}

static engine_status mol_f_body(engine_tx *tx, void *ctx) {
    const mol *m = ctx;
    double n = engine_read_item(tx, m->d2);
    if (n == 0) n = engine_read(tx, m->b);
    return engine_finish(tx, m->out, hard(n));
}

static engine_status mol_g_body(engine_tx *tx, void *ctx) {
    const mol *m = ctx;
    double c = engine_read(tx, m->c);
    double second = c != 0 ? c : (double)rest2(engine_read(tx, m->e));
    double g = c + second + engine_read_item(tx, m->d4) + engine_read(tx, m->f);
    return engine_finish(tx, m->out, g);
}

typedef struct mol_effect {
    engine_cell in;
    bool heavy;
    double last;
} mol_effect;

static engine_status mol_effect_body(engine_tx *tx, void *ctx) {
    mol_effect *self = ctx;
    double value = engine_read(tx, self->in);
    self->last = self->heavy ? hard(value) : value;
    return engine_done(tx);
}

static void iterate_mol(kairo *k, int iteration) {
    engine_begin(k->e);
    engine_write(k->e, k->heads[1], 1);
    engine_write(k->e, k->heads[0], 1 + 2 * iteration);
    engine_end(k->e);
    graph_check(k->r, "G", engine_peek(k->e, k->end), 1607);
    engine_begin(k->e);
    engine_write(k->e, k->heads[0], 2 + 2 * iteration);
    engine_write(k->e, k->heads[1], 2);
    engine_end(k->e);
    graph_check(k->r, "G", engine_peek(k->e, k->end), 1604);
}

static mol *add_mol(kairo *k, const mol *inputs, engine_body *body) {
    mol *m = graph_new(&k->arena, sizeof *m);
    *m = *inputs;
    engine_computed(k->e, body, m, &m->out);
    return m;
}

static void add_mol_effect(kairo *k, engine_cell in, bool heavy) {
    mol_effect *effect = graph_new(&k->arena, sizeof *effect);
    effect->in = in;
    effect->heavy = heavy;
    engine_effect(k->e, mol_effect_body, effect);
}

static void run_mol(const graph_options *o, graph_result *r) {
    kairo k;
    kairo_open(&k, r);
    mol in = { .a = engine_signal(k.e, 0), .b = engine_signal(k.e, 0) };
    k.heads[0] = in.a;
    k.heads[1] = in.b;
    in.c = add_mol(&k, &in, mol_c_body)->out;
    engine_cell d = add_mol(&k, &in, mol_d_body)->out;
    in.d0 = engine_item_of(k.e, d, 0);
    in.d2 = engine_item_of(k.e, d, 2);
    in.d4 = engine_item_of(k.e, d, 4);
    in.e = add_mol(&k, &in, mol_e_body)->out;
    in.f = add_mol(&k, &in, mol_f_body)->out;
    k.end = add_mol(&k, &in, mol_g_body)->out;
    add_mol_effect(&k, k.end, true);
    add_mol_effect(&k, k.end, false);
    add_mol_effect(&k, in.f, true);
    kairo_run(&k, o, iterate_mol, 0, 0);
}

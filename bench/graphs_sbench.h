/* graphs_sbench.h -- creating and updating in bulk (part of graphs_template.h).
 *
 * The timer covers the action and the disposal of everything; the fastest of ten counts. Each of
 * the sums below is made of such parts. */

enum { SBENCH_COUNT = 100000 };

/* `effects` effects of `reads` sources each; `shared` effects in a row have the same sources. */
typedef struct sbench_shape {
    uint32_t effects;
    uint32_t reads;
    uint32_t shared;
    uint32_t writes; /* to the first source, each alone */
} sbench_shape;

typedef struct sbench_world {
    engine *e;
    graph_arena arena;
    engine_cell *sources;
    uint64_t calls;
} sbench_world;

static void sbench_open(sbench_world *w, const sbench_shape *s) {
    const uint32_t sources = (s->effects + s->shared - 1) / s->shared * s->reads;
    *w = (sbench_world){ .e = engine_open(sources + s->effects + 16) };
    w->sources = graph_new(&w->arena, sources * sizeof *w->sources);
    for (uint32_t i = 0; i < sources; i++) w->sources[i] = engine_signal(w->e, 0);
    engine_settle(w->e);
}

static void sbench_act(sbench_world *w, const sbench_shape *s) {
    for (uint32_t i = 0; i < s->effects; i++) {
        watch *effect = new_watch(&w->arena, s->reads, &w->calls);
        const engine_cell *from = w->sources + i / s->shared * s->reads;
        for (uint32_t j = 0; j < s->reads; j++) effect->in[j] = from[j];
        engine_effect(w->e, watch_body, effect);
    }
    engine_settle(w->e);
    for (uint32_t i = 0; i < s->writes; i++) write_alone(w->e, w->sources[0], i);
}

/* The first effects of the row share the written source; writing 0 at first changes nothing. */
static double sbench_expected_calls(const sbench_shape *s) {
    double first_row = s->effects < s->shared ? s->effects : s->shared;
    return s->effects + (s->writes ? (s->writes - 1.0) * first_row : 0);
}

static void sbench_part(const graph_options *o, graph_result *r, const sbench_shape *s) {
    const int repeats = o->repeats ? o->repeats : 10;
    double best_ms = 0;
    for (int i = 0; i < repeats; i++) {
        sbench_world w;
        sbench_open(&w, s);
        uint64_t start = clock_now_ns();
        sbench_act(&w, s);
        if (i == 0) r->effect_runs += engine_effect_runs(w.e);
        engine_close(w.e);
        graph_arena_free(&w.arena);
        double ms = graph_ms(clock_now_ns() - start);
        if (i == 0 || ms < best_ms) best_ms = ms;
        graph_check(r, "effect calls", (double)w.calls, sbench_expected_calls(s));
    }
    r->ms += best_ms;
}

static void sbench_sum(const graph_options *o, graph_result *r, const sbench_shape *shapes,
                       size_t count) {
    *r = (graph_result){ 0 };
    for (size_t i = 0; i < count; i++) sbench_part(o, r, &shapes[i]);
}

static void run_create_signals(const graph_options *o, graph_result *r) {
    const int repeats = o->repeats ? o->repeats : 10;
    *r = (graph_result){ 0 };
    for (int i = 0; i < repeats; i++) {
        uint64_t start = clock_now_ns();
        engine *e = engine_open(SBENCH_COUNT + 16);
        engine_cell last = engine_signal(e, 0);
        for (int j = 1; j < SBENCH_COUNT; j++) last = engine_signal(e, j);
        graph_check(r, "signal", engine_peek(e, last), SBENCH_COUNT - 1);
        engine_close(e);
        double ms = graph_ms(clock_now_ns() - start);
        if (i == 0 || ms < r->ms) r->ms = ms;
    }
}

static void run_create_computations(const graph_options *o, graph_result *r) {
    static const sbench_shape shapes[] = {
        { SBENCH_COUNT, 0, 1, 0 },           { SBENCH_COUNT, 1, 1, 0 },
        { SBENCH_COUNT / 2, 2, 1, 0 },       { SBENCH_COUNT / 4, 4, 1, 0 },
        { SBENCH_COUNT / 1000, 1000, 1, 0 }, { SBENCH_COUNT, 1, 2, 0 },
        { SBENCH_COUNT, 1, 4, 0 },           { SBENCH_COUNT, 1, 8, 0 },
        { SBENCH_COUNT, 1, 1000, 0 },
    };
    sbench_sum(o, r, shapes, sizeof shapes / sizeof shapes[0]);
}

static void run_update_signals(const graph_options *o, graph_result *r) {
    static const sbench_shape shapes[] = {
        { 1, 1, 1, 4 * SBENCH_COUNT },
        { 1, 2, 1, 2 * SBENCH_COUNT },
        { 1, 4, 1, SBENCH_COUNT },
        { 1, 1000, 1, 400 },
        { 2, 1, 2, SBENCH_COUNT },
        { 4, 1, 4, SBENCH_COUNT },
        { 1000, 1, 1000, SBENCH_COUNT / 10 },
    };
    sbench_sum(o, r, shapes, sizeof shapes / sizeof shapes[0]);
}

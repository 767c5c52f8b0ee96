/* bench_expr.c -- expressions: one evaluation of compiled code, with what it executes and allocates. */
#include "bench.h"

#include "expr/compile.h"
#include "expr/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench_world {
    bench_allocs allocs;
    hd_env env;
    hd_heap *heap;
    hd_pool *pool;
    classes *classes;
    scope *names;
    world *w;
    machine *m;
    frame *f;
    code *c;
} bench_world;

static void open_world(bench_world *x) {
    memset(x, 0, sizeof *x);
    x->env = bench_count_allocs(hd_env_system(), &x->allocs);
    if (hd_heap_open(&x->env, NULL, &x->heap) || hd_pool_open(x->heap, &x->pool) ||
        classes_open(&x->env, &x->classes) || scope_open(&x->env, &x->names) ||
        world_open(&x->env, NULL, x->classes, &x->w) || machine_open(x->w, &x->m) ||
        frame_open(x->w, x->names, &x->f))
        abort();
}

static void close_world(bench_world *x) {
    frame_close(x->f);
    machine_close(x->m);
    world_close(x->w);
    scope_close(x->names);
    classes_close(x->classes);
    hd_pool_close(x->pool);
    hd_heap_close(x->heap);
}

static code *compile(bench_world *x, const char *json, bool statements) {
    code *c;
    hd_error error;
    hd_value form = hd_json_parse(x->pool, json, strlen(json), &error);
    hd_status s = statements ? compile_statements(x->w, x->names, form, &c, &error)
                             : compile_expression(x->w, x->names, form, &c, &error);
    if (s) abort();
    return c;
}

static void run_many(void *ctx, uint64_t n) {
    bench_world *x = ctx;
    ev v;
    for (uint64_t i = 0; i < n; i++)
        if (machine_eval(x->m, x->c, x->f, &v) != OUTCOME_VALUE) abort();
    BENCH_KEEP(v.i);
}

static uint64_t executed(const bench_world *x) {
    uint64_t sum = 0;
    for (int i = 0; i < CODE_COUNT; i++) sum += machine_counts(x->m)[i];
    return sum;
}

static void measure(bench *b, const char *name, const char *json, bench_figure must) {
    bench_world x;
    ev v;
    open_world(&x);
    code *setup = compile(
        &x,
        "[[\"assign\", 7, [\"name\", \"n\"]], [\"assign\", \"order-17\", [\"name\", \"s\"]],"
        " [\"assign\", [\"call\", \"list\", [[\"call\", \"range\", [100]]]], [\"name\", \"l\"]]]",
        true);
    if (machine_eval(x.m, setup, x.f, &v) != OUTCOME_VALUE) abort();
    x.c = compile(&x, json, false);
    run_many(&x, 10);
    uint64_t before = executed(&x), calls = x.allocs.calls;
    run_many(&x, 1);
    double each = (double)(executed(&x) - before), allocations = (double)(x.allocs.calls - calls);
    double ns = bench_ns_per_op(b, run_many, &x);
    bench_report(
        b, &(bench_row){ .name = name,
                         .n = 1,
                         .value = ns,
                         .unit = "ns",
                         .must = must,
                         .counts = { { "instructions", each }, { "allocations", allocations } } });
    code_free(x.c);
    code_free(setup);
    close_world(&x);
}

/* Nanoseconds for each element of a set of n that is filled, and emptied from one end. */
static double drain_ns(bench *b, int n) {
    bench_world x;
    char json[400];
    open_world(&x);
    snprintf(json, sizeof json,
             "[[\"assign\", [\"call\", \"set\", [[\"call\", \"range\", [%d]]]], [\"name\", \"s\"]],"
             " [\"assign\", [\"listcomp\", [\"method\", [\"name\", \"s\"], \"pop\", []],"
             " [\"for\", [\"name\", \"y\"], [\"call\", \"range\", [%d]]]], [\"name\", \"l\"]]]",
             n, n);
    x.c = compile(&x, json, true);
    double ns = bench_ns_per_op(b, run_many, &x);
    code_free(x.c);
    close_world(&x);
    return ns / n;
}

/* Nanoseconds for each character of a text that has the needle, of n characters, in no place, but nearly so in many. */
static double search_ns(bench *b, int n) {
    bench_world x;
    char json[200];
    open_world(&x);
    snprintf(json, sizeof json,
             "[[\"assign\", [\"*\", [\"+\", [\"*\", \"a\", %d], \"c\"], 10], [\"name\", \"s\"]],"
             " [\"assign\", [\"+\", [\"*\", \"a\", %d], \"b\"], [\"name\", \"n\"]]]",
             n, n);
    code *setup = compile(&x, json, true);
    ev v;
    if (machine_eval(x.m, setup, x.f, &v) != OUTCOME_VALUE) abort();
    x.c = compile(&x, "[\"cmp\", [\"name\", \"n\"], \"in\", [\"name\", \"s\"]]", false);
    double ns = bench_ns_per_op(b, run_many, &x);
    code_free(x.c);
    code_free(setup);
    close_world(&x);
    return ns / n / 10;
}

/* A row that is to be flat: what one of many costs, beside one of few. */
static void report_flat(bench *b, const char *name, uint64_t n, const char *unit, double many,
                        const char *few, double few_ns) {
    bench_report(b, &(bench_row){ .name = name,
                                  .n = n,
                                  .value = many,
                                  .unit = unit,
                                  .peer = few,
                                  .peer_value = few_ns,
                                  .must = bench_ratio_at_most(3) });
}

void bench_group_expr(bench *b) {
    measure(b, "expr/add", "[\"+\", [\"name\", \"n\"], 1]", bench_at_most(60));
    measure(b, "expr/compare", "[\"cmp\", 0, \"<\", [\"name\", \"n\"], \"<\", 10]",
            bench_at_most(80));
    measure(b, "expr/fstring",
            "[\"fstr\", \"<\", [\"fmt\", [\"name\", \"n\"], null, \"03d\"], \">\"]",
            (bench_figure){ 0 });
    measure(b, "expr/method", "[\"method\", [\"name\", \"s\"], \"startswith\", [\"order\"]]",
            (bench_figure){ 0 });
    measure(b, "expr/listcomp-100",
            "[\"listcomp\", [\"*\", [\"name\", \"y\"], 2], [\"for\", [\"name\", \"y\"], [\"name\", "
            "\"l\"]]]",
            (bench_figure){ 0 });
    report_flat(b, "expr/drain-set", 30000, "ns/element", drain_ns(b, 30000), "1,000",
                drain_ns(b, 1000));
    report_flat(b, "expr/search", 1000000, "ns/character", search_ns(b, 100000), "10,000",
                search_ns(b, 1000));
}

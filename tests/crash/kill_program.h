/* kill_program.h -- a program with a history, for tests that kill it.
 *
 * Computations on numbers, whose reads depend on what they read; a document of which each reads a field;
 * a piece with every kind of list, a pattern that is used, one that values decide, a choice, and state
 * that a handler writes. The history is a list of steps. Each is one transaction, which also says that it
 * was made: a program that was killed goes on behind the last one that is in its file. What ran is told
 * in memory that processes share. */
#ifndef HEDDLE_KILL_PROGRAM_H
#define HEDDLE_KILL_PROGRAM_H

#include "base/hash.h"
#include "lab_sched.h"
#include <heddle/pattern.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 8, NODES = 20, STEPS = 24, RUNS_MAX = 1 << 13, RUN_SIZE = 100 };
#define AT_START STEPS /* instead of a step: what runs before the first one */

/* Shared by processes. */
typedef struct story {
    uint32_t now; /* the step, or AT_START */
    uint32_t count;
    struct run {
        uint32_t step;
        char node[RUN_SIZE]; /* its durable name */
    } runs[RUNS_MAX];
    uint32_t dies_at;           /* the run in which the process ends; 0: none */
    uint32_t done;              /* steps that were in the file when it began */
    uint64_t values[STEPS + 1]; /* of all results, after so many steps */
} story;

typedef struct program {
    hd_runtime *rt;
    hd_pool *pool;
    story *told;
    uint64_t seed;
    struct computation {
        struct program *p;
        uint32_t index, in[3];
        hd_cell output;
    } nodes[NODES];
} program;

static void check(hd_status status) {
    if (status) lab_fail("%s", hd_status_name(status));
}

static hd_cell cell_at(program *p, const char *name) { return hd_cell_at(p->rt, name); }

/* Inputs first, then the computations. */
static hd_cell number_at(program *p, uint32_t i) {
    char name[32];
    snprintf(name, sizeof name, "main/%s%u", i < INPUTS ? "in" : "n", i < INPUTS ? i : i - INPUTS);
    return cell_at(p, name);
}

/* ---- what runs -------------------------------------------------------------------------------- */

static void note(hd_tx *tx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    story *told = ((program *)hd_runtime_context(rt))->told;
    const char *name = lab_running(rt);
    if (told->count == RUNS_MAX || !name) abort();
    struct run *r = &told->runs[told->count++];
    r->step = told->now;
    snprintf(r->node, sizeof r->node, "%s", name);
    if (told->dies_at == told->count) raise(SIGKILL);
}

/* The first input decides which of the others is read. */
static hd_status compute(hd_tx *tx, void *ctx) {
    const struct computation *c = ctx;
    note(tx);
    hd_value first = hd_tx_get(tx, number_at(c->p, c->in[0]));
    if (hd_value_status(first)) return hd_value_status(first);
    int64_t a = hd_value_as_int(first, 0);
    hd_value second = hd_tx_get(tx, number_at(c->p, c->in[a % 2 ? 1 : 2]));
    if (hd_value_status(second)) return hd_value_status(second);
    return hd_tx_set_int(tx, c->output, (3 * a + hd_value_as_int(second, 0) + c->index) % 97);
}

static hd_status watch(hd_tx *tx, void *ctx) {
    program *p = ctx;
    hd_value v = hd_null();
    for (uint32_t i = 0; i < NODES && !hd_value_status(v); i++)
        v = hd_tx_get(tx, p->nodes[i].output);
    return hd_value_status(v);
}

static hd_value price(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(tx);
    return hd_value_at(in, "v");
}
static hd_value is_odd(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(tx);
    return hd_bool(hd_value_as_int(hd_value_at(in, "v"), 0) % 2);
}
static hd_value pair(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(tx);
    hd_value v = hd_value_at(in, "v");
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ v, v }, 2);
}
static hd_value plus(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(tx);
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in, 0) + 1);
}
static hd_value size(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(tx);
    return hd_int(hd_tx_pool(tx), (int64_t)hd_value_count(in));
}
static hd_value both(hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    note(tx);
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in[0], 0) + 10 * hd_value_as_int(in[1], 0));
}
static hd_value rest(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(tx);
    return hd_int(hd_tx_pool(tx), hd_value_as_int(hd_value_at(in, "v"), 0) % 3);
}
static hd_status add(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    hd_cell count = hd_cell_at(hd_tx_runtime(tx), "main/p/count");
    hd_value now = hd_tx_get(tx, count);
    if (hd_value_status(now)) return hd_value_status(now);
    return hd_tx_set_int(tx, count, hd_value_as_int(now, 0) + hd_value_as_int(event->payload, 1));
}
static void look(hd_value v, void *ctx) { (void)ctx, (void)v; }

/* ---- the piece -------------------------------------------------------------------------------- */

static hd_cell inner(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), plus, NULL);
}
static hd_cell row(hd_build *b, hd_cell element, void *ctx) {
    (void)ctx;
    return hd_build_derive(b, "second", hd_build_derive(b, "first", element, price, NULL), plus,
                           NULL);
}
static hd_cell decided(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    hd_cell n = hd_cell_at(hd_tx_runtime(tx), "main/in0");
    if (hd_value_as_int(in[0], 0) % 3 == 0) return hd_build_derive(b, "no", n, plus, NULL);
    return hd_build_use(b, "yes", "inner",
                        &(hd_named_cell){ "x", hd_build_derive(b, "yes.in", n, plus, NULL) }, 1);
}

static hd_cell group_row(hd_build *b, hd_cell group, void *ctx) {
    (void)ctx;
    hd_fold sum = { .kind = HD_FOLD_SUM, .each = { .fn = price } };
    return hd_build_fold(b, "sum", group, &sum);
}

static const char *const results[] = { "sum",        "most",      "byrest", "form.count",
                                       "places.all", "keyed.all", "odd",    "pairs",
                                       "some",       "pick",      "count",  "a",
                                       "cd",         "ab",        "size",   "used" };
enum { RESULTS = sizeof results / sizeof *results };

static void build_fields(hd_build *b, hd_runtime *rt) {
    hd_cell a = hd_build_derive(b, "a", hd_cell_at(rt, "main/form#/a"), plus, NULL);
    hd_cell of_b = hd_build_derive(b, "b", hd_cell_at(rt, "main/form#/b"), plus, NULL);
    hd_build_derive(b, "cd", hd_cell_at(rt, "main/form#/c/d"), plus, NULL);
    hd_build_lift(b, "ab", both, NULL, (hd_cell[]){ a, of_b }, 2);
    hd_build_use(b, "used", "inner", &(hd_named_cell){ "x", of_b }, 1);
    hd_build_fold(b, "form.count", hd_cell_at(rt, "main/form"),
                  &(hd_fold){ .kind = HD_FOLD_COUNT });
}

static void build_lists(hd_build *b, hd_cell list) {
    hd_build_gather(b, "places.all", hd_build_map(b, "places", list, &(hd_each){ .build = row }));
    hd_build_gather(b, "keyed.all",
                    hd_build_map(b, "keyed", list, &(hd_each){ .fn = price, .key = "/id" }));
    hd_build_filter(b, "odd", list, &(hd_each){ .fn = is_odd, .key = "/id" });
    hd_build_flat_map(b, "pairs", list, &(hd_each){ .fn = pair });
    hd_build_derive(b, "size", list, size, NULL);
    hd_build_fold(b, "sum", list, &(hd_fold){ .kind = HD_FOLD_SUM, .each = { .fn = price } });
    hd_build_fold(b, "most", hd_build_cell(b, "keyed"), &(hd_fold){ .kind = HD_FOLD_MAXIMUM });
    hd_cell groups = hd_build_group(b, "groups", list, &(hd_each){ .fn = rest, .key = "/id" });
    hd_build_gather(b, "byrest",
                    hd_build_map(b, "bygroup", groups, &(hd_each){ .build = group_row }));
}

static hd_cell piece(hd_build *b, void *ctx) {
    hd_runtime *rt = hd_build_runtime(b);
    hd_cell n = hd_cell_at(rt, "main/n3"), count = hd_build_state(b, "count", hd_int(NULL, 0));
    hd_build_handler(b, hd_build_stream(b, "add"), add, NULL, &count, 1);
    build_fields(b, rt);
    build_lists(b, hd_cell_at(rt, "main/list"));
    hd_build_derive_pattern(b, "some", decided, NULL, &n, 1);
    hd_build_if_else(b, "pick", count, hd_build_derive(b, "then", count, plus, NULL),
                     hd_build_derive(b, "else", n, plus, NULL));
    for (size_t i = 0; i < RESULTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "look %s", results[i]);
        hd_build_sink(b, name, hd_build_cell(b, results[i]), look, NULL);
    }
    return n;
}

/* ---- life ------------------------------------------------------------------------------------- */

static void register_numbers(program *p) {
    lab_random r = lab_random_of(p->seed);
    for (uint32_t i = 0; i < NODES; i++) {
        char name[32];
        struct computation *c = &p->nodes[i];
        *c = (struct computation){ .p = p, .index = i, .output = number_at(p, INPUTS + i) };
        for (int j = 0; j < 3; j++) c->in[j] = (uint32_t)lab_random_below(&r, INPUTS + i);
        snprintf(name, sizeof name, "n%u", i);
        hd_compute(p->rt, name, compute, c, c->output);
    }
    hd_effect(p->rt, "watch", watch, p);
}

static void program_begin(program *p, const char *file, story *told, uint64_t seed) {
    hd_error error;
    hd_piece made;
    *p = (program){ .told = told, .seed = seed };
    if (hd_open(file, &(hd_options){ .context = p, .keep_history = true }, &p->rt, &error))
        lab_fail("%s", error.message);
    check(hd_pool_open(hd_runtime_heap(p->rt), &p->pool));
    told->done = (uint32_t)hd_value_as_int(hd_read(p->rt, p->pool, cell_at(p, "main/step")), 0);
    told->now = AT_START;
    register_numbers(p);
    check(hd_pattern_register(p->rt, "inner", "1", inner, NULL));
    check(hd_pattern_register(p->rt, "piece", "1", piece, NULL));
    if (hd_piece_start(p->rt, &(hd_piece_spec){ .id = "p", .pattern = "piece" }, &made, &error))
        lab_fail("%s", error.message);
}

/* Acknowledged quiescence: nothing is left to run, and all of it is stored. */
static void program_settle(program *p) {
    check(hd_runtime_settle(p->rt));
    check(hd_runtime_sync(p->rt));
}

static uint64_t hash_cell(program *p, hd_cell cell, uint64_t seed) {
    hd_value v = hd_read(p->rt, p->pool, cell);
    const char *text = hd_value_exists(v) ? hd_json_print(p->pool, v, HD_JSON_COMPACT, NULL) : "-";
    return hash_bytes(text, strlen(text), seed);
}

static uint64_t program_values(program *p) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < NODES; i++) hash = hash_cell(p, p->nodes[i].output, hash);
    for (size_t i = 0; i < RESULTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "main/p/%s", results[i]);
        hash = hash_cell(p, cell_at(p, name), hash);
    }
    hd_pool_clear(p->pool);
    return hash;
}

static void program_end(program *p) {
    hd_pool_close(p->pool);
    check(hd_close(p->rt));
}

/* ---- the history ------------------------------------------------------------------------------ */

static void set_json(program *p, hd_tx *tx, const char *cell, const char *json) {
    hd_value v = hd_json_parse(hd_tx_pool(tx), json, strlen(json), NULL);
    check(hd_tx_set(tx, cell_at(p, cell), v));
}

static void write_number(program *p, hd_tx *tx, lab_random *r) {
    uint32_t at = (uint32_t)lab_random_below(r, INPUTS);
    check(hd_tx_set_int(tx, number_at(p, at), (int64_t)lab_random_below(r, 50)));
}

static void write_form(program *p, hd_tx *tx, lab_random *r) {
    static const char *const fields[] = { "main/form#/a", "main/form#/b", "main/form#/c/d" };
    char json[64];
    int v = (int)lab_random_below(r, 4);
    snprintf(json, sizeof json, "{\"a\":%d,\"b\":1,\"c\":{\"d\":%d}}", v, v % 2);
    if (!lab_random_below(r, 4)) set_json(p, tx, "main/form", json);
    else if (!lab_random_below(r, 4)) set_json(p, tx, "main/form#/c", v % 2 ? "{\"d\":1}" : "{}");
    else check(hd_tx_set_int(tx, cell_at(p, fields[lab_random_below(r, 3)]), v));
}

static const char *element(lab_random *r, char out[64]) {
    snprintf(out, 64, "{\"id\":\"i%u\",\"v\":%u}", (unsigned)lab_random_below(r, 9),
             (unsigned)lab_random_below(r, 20));
    return out;
}

static void write_list(program *p, hd_tx *tx, lab_random *r) {
    char json[1024] = "[", one[64];
    uint64_t n = lab_random_below(r, 7);
    for (uint64_t i = 0; i < n; i++) {
        size_t at = strlen(json);
        snprintf(json + at, sizeof json - at, "%s%s", i ? "," : "", element(r, one));
    }
    strcat(json, "]");
    set_json(p, tx, "main/list", json);
}

static void write_element(program *p, hd_tx *tx, lab_random *r) {
    char cell[64], json[64];
    hd_value list = hd_tx_read(tx, cell_at(p, "main/list"), HD_READ_NO_CLAIM);
    uint32_t count = (uint32_t)hd_value_count(list);
    uint32_t what = (uint32_t)lab_random_below(r, 6), any = (uint32_t)lab_random_below(r, 8);
    if (!count || what == 0) {
        element(r, json);
        hd_value v = hd_json_parse(hd_tx_pool(tx), json, strlen(json), NULL);
        check(hd_tx_append(tx, cell_at(p, "main/list"), v));
        return;
    }
    snprintf(cell, sizeof cell, "main/list#/%u", what == 1 ? count - 1 : any % count);
    if (what <= 2) check(hd_tx_remove(tx, cell_at(p, cell)));
    else if (what == 3) set_json(p, tx, cell, element(r, json));
    else {
        strcat(cell, "/v");
        check(hd_tx_set_int(tx, cell_at(p, cell), (int64_t)lab_random_below(r, 20)));
    }
}

static void post_event(program *p, hd_tx *tx, lab_random *r) {
    char id[HD_EVENT_ID_SIZE];
    hd_value by = hd_int(NULL, (int64_t)lab_random_below(r, 6) - 2);
    check(hd_tx_post(tx, cell_at(p, "main/p/add"), by, NULL, id));
}

static void write_something(program *p, hd_tx *tx, lab_random *r) {
    switch (lab_random_below(r, 9)) {
    case 0: write_list(p, tx, r); break;
    case 1:
    case 2:
    case 3: write_element(p, tx, r); break;
    case 4:
    case 5: write_form(p, tx, r); break;
    case 6: post_event(p, tx, r); break;
    default: write_number(p, tx, r);
    }
}

/* The same for everybody who has made the steps before it. */
static void program_step(program *p, uint32_t i) {
    lab_random r = lab_random_of(p->seed + 1000 + i);
    hd_tx *tx;
    p->told->now = i;
    check(hd_tx_begin(p->rt, &tx));
    if (i == 0) set_json(p, tx, "main/list", "[{\"id\":\"i1\",\"v\":3},{\"id\":\"i2\",\"v\":4}]");
    for (uint64_t n = 1 + lab_random_below(&r, 3); n > 0; n--) write_something(p, tx, &r);
    check(hd_tx_set_int(tx, cell_at(p, "main/step"), i + 1));
    check(hd_tx_commit(tx, NULL, NULL));
}

#endif

/* test_skipped_naive.c -- what sinks and effects are told, while commits of theirs that they skip move what they
 * read.
 *
 * Documents hold numbers, objects or links to places in each other, so that what a cell reads changes its way
 * again and again. Each cell has a sink without a group, one with a group, an effect with that group, and an
 * effect that now and then writes the cell's document itself, links included. One commit at a time is made: by
 * the program, for the group or not, or by another runtime. The model reads each cell before and after:
 *
 *   without a group    told exactly if the value differs, or the way to it; the last value told is that of now
 *   sink of a group    told nothing by the group's commits; by others' as above
 *   effect of a group  told by others' commits as above; what it saw last is then the value of now
 *
 * HD_STEPS is the number of steps; HD_SEED repeats a run. */
#include "lab.h"

#include <heddle.h>
#include <heddle/lab.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DOCS = 5, STEPS = 4000, GROUP = 7, TEXT = 200 };

typedef enum kind { SINK, GROUP_SINK, GROUP_EFFECT, WRITER, KINDS } kind;

/* A cell that is read, and what its readers were told. */
typedef struct watched {
    hd_cell cell;
    char before[TEXT];
    char saw[KINDS][TEXT]; /* last told */
    int told[KINDS];       /* how often since the step began */
    bool wrote;            /* its WRITER wrote in this step, and is not told what it wrote itself */
} watched;

static hd_lab *lab;
static hd_runtime *rt, *other;
static lab_random r;
static watched cells[2 * DOCS];
static int writes; /* how often WRITERs may write in this step */
static unsigned moved;

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

static void print(hd_value v, char *out) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_status status = hd_value_status(v);
    const char *text = status               ? hd_status_name(status)
                       : hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL)
                                            : "-";
    snprintf(out, TEXT, "%s", text);
    hd_pool_close(pool);
}

/* What a reader of the cell sees. */
static void look(const watched *w, char *out) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin_read(rt, &tx), HD_OK);
    print(hd_tx_get(tx, w->cell), out);
    hd_tx_abort(tx);
}

/* ---- what is told */

static watched *of(const void *ctx, kind *k) {
    size_t i = (size_t)(uintptr_t)ctx;
    *k = (kind)(i % KINDS);
    return &cells[i / KINDS];
}
static void *as_ctx(size_t cell, kind k) { return (void *)(uintptr_t)(cell * KINDS + k); }

static void told(hd_value v, void *ctx) {
    kind k;
    watched *w = of(ctx, &k);
    print(v, w->saw[k]);
    w->told[k]++;
}

static hd_status write_random(hd_tx *tx, hd_runtime *in, int doc) {
    static const char *const values[] = {
        "1", "2", "{\"v\": 1}", "{\"v\": 2}", "{\"v\": {\"v\": 3}}", "{}", "null"
    };
    char name[32];
    hd_cell target;
    snprintf(name, sizeof name, below(3) ? "main/d%d" : "main/d%d#/v", (int)below(DOCS));
    target = hd_cell_at(in, name);
    snprintf(name, sizeof name, below(3) ? "main/d%d" : "main/d%d#/v", doc);
    hd_status status;
    if (below(3)) {
        status = hd_tx_set_json(tx, hd_cell_at(in, name), values[below(7)]);
    } else {
        moved++;
        status = hd_tx_set(tx, hd_cell_at(in, name), hd_cell_link(in, hd_tx_pool(tx), target));
    }
    return status;
}

/* Effects see failures of reads too: links that form a cycle. */
static hd_status watch(hd_tx *tx, void *ctx) {
    kind k;
    watched *w = of(ctx, &k);
    hd_value v = hd_tx_get(tx, w->cell);
    if (hd_value_status(v)) return hd_value_status(v);
    told(v, ctx);
    if (k != WRITER || !writes) return HD_OK;
    writes--;
    w->wrote = true;
    hd_status status = write_random(tx, rt, (int)((w - cells) % DOCS));
    return status == HD_KIND || status == HD_RANGE ? HD_ABORTED : status;
}

static void add_readers(size_t i) {
    hd_sink_spec sink = { .cell = cells[i].cell, .fn = told, .ctx = as_ctx(i, SINK) };
    assert_int_equal(hd_sink_register(rt, &sink, NULL), HD_OK);
    sink.group = GROUP;
    sink.ctx = as_ctx(i, GROUP_SINK);
    assert_int_equal(hd_sink_register(rt, &sink, NULL), HD_OK);
    hd_node_spec effect = {
        .fn = watch, .ctx = as_ctx(i, GROUP_EFFECT), .effect = true, .group = GROUP
    };
    assert_int_equal(hd_node_register(rt, &effect, NULL), HD_OK);
    effect.group = 0;
    effect.ctx = as_ctx(i, WRITER);
    assert_int_equal(hd_node_register(rt, &effect, NULL), HD_OK);
}

/* ---- one step */

static bool commit_one(hd_runtime *in, uint64_t group) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(in, &tx), HD_OK);
    hd_tx_set_group(tx, group);
    hd_status status = write_random(tx, in, (int)below(DOCS));
    if (status) hd_tx_abort(tx);
    else assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    return !status;
}

static void check(const watched *w, bool group, uint32_t step) {
    char now[TEXT];
    look(w, now);
    bool differs = strcmp(now, w->before) != 0, readable = strncmp(now, "HD_", 3) != 0;
    for (kind k = 0; k < KINDS; k++) {
        if (group && k == GROUP_SINK && w->told[k])
            lab_fail("step %u: a sink was told of a commit of its group", step);
        bool skips = group && (k == GROUP_SINK || k == GROUP_EFFECT);
        if (k == WRITER && w->wrote) continue;
        if (differs && readable && !skips && !w->told[k])
            lab_fail("step %u: reader %d of cell %d missed %s -> %s", step, (int)k,
                     (int)(w - cells), w->before, now);
        if (w->told[k] && readable && strcmp(w->saw[k], now) != 0)
            lab_fail("step %u: reader %d of cell %d was told %s last, not %s", step, (int)k,
                     (int)(w - cells), w->saw[k], now);
    }
}

static void step_once(uint32_t step) {
    for (size_t i = 0; i < 2 * DOCS; i++) {
        memset(cells[i].told, 0, sizeof cells[i].told);
        cells[i].wrote = false;
        look(&cells[i], cells[i].before);
    }
    uint32_t who = below(4);
    bool group = who < 2;
    writes = !group && !below(3); /* what a WRITER writes is not the group's */
    if (!commit_one(who == 3 ? other : rt, group ? GROUP : 0)) return;
    hd_lab_settle(lab);
    hd_lab_advance_ms(lab,
                      61000); /* effects that are overwritten again and again are slowed down */
    hd_lab_settle(lab);
    for (size_t i = 0; i < 2 * DOCS; i++) check(&cells[i], group, step);
    (void)hd_lab_failures(rt); /* cycles of links */
}

static void what_changes_is_told_wherever_links_lead(void **state) {
    const char *steps = getenv("HD_STEPS");
    r = lab_random_of(lab_seed());
    moved = 0;
    lab = hd_lab_open(NULL);
    rt = hd_lab_runtime(lab, "one");
    other = hd_lab_runtime(lab, "other");
    for (size_t i = 0; i < 2 * DOCS; i++) {
        char name[32];
        snprintf(name, sizeof name, i < DOCS ? "main/d%zu" : "main/d%zu#/v", i % DOCS);
        cells[i] = (watched){ .cell = hd_cell_at(rt, name) };
        add_readers(i);
    }
    hd_lab_settle(lab);
    for (long i = 0; i < (steps ? atol(steps) : STEPS); i++) step_once((uint32_t)i);
    print_message("%u links were written\n", moved);
    hd_lab_close(lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_is_told_wherever_links_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

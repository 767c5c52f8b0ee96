/* test_causes_naive.c -- the causes of a run against a set of cells that is kept by hand.
 *
 * Two effects read the same cells, one of them with a change group. Commits of the program, some of that
 * group, change a few cells each; runs fail for now, or are suspended and found stale. Whenever a body
 * begins it asks for its causes: the cells whose value somebody else has changed since the last run
 * that completed.
 *
 * HD_STEPS is the number of steps; HD_SEED repeats a run. */
#include "lab.h"

#include <heddle/scheduler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CELLS = 40, STEPS = 3000, GROUP = 7 };

typedef struct twin {
    uint64_t group;
    bool changed[CELLS]; /* since its last completed run, as far as that concerns it */
    bool has_run;
    int runs;
    hd_run *run; /* suspended; NULL */
    bool stale;  /* what it read has changed since */
} twin;

static hd_runtime *rt;
static lab_random r;
static hd_cell cells[CELLS];
static int values[CELLS];
static twin twins[2];
static int fails; /* runs that are to fail */
static bool asynchronous;

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

/* ---- the model */

static void compare(const twin *t, const hd_cell *causes, size_t count) {
    size_t expected = 0;
    for (int i = 0; i < CELLS; i++) {
        bool told = false;
        for (size_t k = 0; k < count; k++) told = told || causes[k].id == cells[i].id;
        expected += t->has_run && t->changed[i];
        if (told != (t->has_run && t->changed[i]))
            lab_fail("cell %d is %s cause of run %d", i, told ? "no" : "a", t->runs);
    }
    assert_int_equal(count, expected);
}

static void completed(twin *t) {
    memset(t->changed, 0, sizeof t->changed);
    t->has_run = true;
}

/* ---- the real ones */

static hd_status look(hd_tx *tx, void *ctx) {
    twin *t = ctx;
    hd_cell causes[64];
    size_t count = hd_tx_causes(tx, causes, 64);
    t->runs++;
    compare(t, causes, count);
    for (int i = 0; i < CELLS; i++) (void)hd_tx_get(tx, cells[i]);
    if (fails) {
        fails--;
        return HD_BUSY;
    }
    if (asynchronous && !below(3)) {
        t->stale = false;
        assert_int_equal(hd_tx_suspend(tx, &t->run), HD_OK);
        return HD_PENDING;
    }
    completed(t);
    return HD_OK;
}

/* ---- steps */

static void note_change(int cell, bool ours) {
    for (int i = 0; i < 2; i++) {
        twin *t = &twins[i];
        if (!ours || t->group != GROUP) t->changed[cell] = true;
        t->stale = true; /* what it has in hand is old, whoever wrote */
    }
}

static void change_some(void) {
    hd_tx *tx;
    int before[CELLS];
    bool ours = !below(3);
    memcpy(before, values, sizeof before);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    if (ours) hd_tx_set_group(tx, GROUP);
    for (uint32_t n = 1 + below(below(4) ? 3 : CELLS); n; n--) {
        int cell = (int)below(CELLS);
        values[cell] = (int)below(3);
        hd_tx_set_int(tx, cells[cell], values[cell]);
    }
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    for (int i = 0; i < CELLS; i++)
        if (values[i] != before[i]) note_change(i, ours);
}

static void end_run(twin *t) {
    hd_run *run = t->run;
    if (!run) return;
    t->run = NULL;
    if (!t->stale) completed(t);
    hd_run_resume(run, HD_OK);
}

static void act(void) {
    switch (below(8)) {
    case 0: fails = (int)below(4); break;
    case 1: asynchronous = !asynchronous; break;
    case 2:
    case 3: end_run(&twins[below(2)]); break;
    default: change_some(); break;
    }
}

static void open_world(lab_env *env) {
    assert_int_equal(hd_open(NULL, &(hd_options){ .env = lab_env_of(env) }, &rt, NULL), HD_OK);
    for (int i = 0; i < CELLS; i++) {
        char name[32];
        snprintf(name, sizeof name, "main/c%d", i);
        cells[i] = hd_cell_at(rt, name);
        values[i] = -1;
    }
    for (int i = 0; i < 2; i++) {
        hd_node n;
        twins[i] = (twin){ .group = i ? GROUP : 0 };
        hd_node_spec spec = { .fn = look, .ctx = &twins[i], .effect = true };
        spec.group = twins[i].group;
        assert_int_equal(hd_node_register(rt, &spec, &n), HD_OK);
    }
    hd_runtime_pump(rt);
}

static void a_run_is_told_its_causes_and_no_others(void **state) {
    lab_env *env = lab_env_open();
    const char *steps = getenv("HD_STEPS");
    (void)state;
    r = lab_random_of(lab_seed());
    open_world(env);
    for (long i = 0; i < (steps ? atol(steps) : STEPS); i++) {
        act();
        if (below(3)) hd_runtime_pump(rt);
    }
    hd_close(rt);
    lab_env_close(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told_its_causes_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

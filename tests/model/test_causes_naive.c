/* test_causes_naive.c -- the causes of a run against sets of cells that are kept by hand.
 *
 * Two effects, one of them with a change group, read other cells in each run: some by name, some through links.
 * They write now and then; runs fail for now, or are suspended and found stale. The program changes a few cells
 * at a time, some of them for that group, and moves links; another runtime writes the same cells, so that commits
 * are refused. Whenever a body begins it asks for its causes: of the cells that its last completed run read, those
 * that have changed since, and what caused a run whose commit was refused.
 *
 * A second world has restarts: computations with names read what a selector says. They are told, in the program
 * that computed them and in the next one, which of the cells that they had read differ from what they had read;
 * a computation for which none does is not run.
 *
 * The model hears of changes as any listener does. HD_STEPS is the number of steps; HD_SEED repeats a run. */
#include "lab.h"

#include "scheduler/settle/settle.h"
#include "scheduler/scheduler.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CELLS = 24, LINKS = 4, PLACES = CELLS + LINKS, STEPS = 3000, GROUP = 7, KEPT = 64 };

typedef struct set {
    bool has[PLACES]; /* cells, then links */
} set;

/* A commit of a twin: what it wrote, and what caused its run. */
typedef struct made {
    int value;
    set causes;
} made;

typedef struct twin {
    uint64_t group;
    set reads; /* of its last completed run */
    set pending; /* of those, what has changed since, as far as that concerns it; and what was refused */
    bool has_run;
    int runs;
    hd_run *run;     /* suspended; NULL */
    set read, taken; /* of that run, or of the one under way */
    bool stale;      /* what it read has changed since */
    bool writes;     /* it has written */
    int failed;      /* for now, since a run that had nothing to be refused */
    made made[KEPT];
    int made_count;
} twin;

static lab_env *env;
static hd_memory *memory;
static hd_runtime *rt, *other;
static lab_random r;
static hd_cell cells[PLACES], out[2];
static twin twins[2];
static int fails; /* runs that are to fail */
static bool asynchronous, writing, ending;
static int next_value;
static unsigned refusals, narrower;

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

static void add_all(set *to, const set *from) {
    for (int i = 0; i < PLACES; i++) to->has[i] |= from->has[i];
}

/* ---- the model */

/* Whether a late commit may have been refused unseen: another one lies over it. */
static bool was_written(const twin *t, int at) {
    for (int i = t->made_count > 8 ? t->made_count - 8 : 0; i < t->made_count; i++)
        if (t->made[i].causes.has[at]) return true;
    return false;
}

static void compare(const twin *t, const hd_cell *causes, size_t count) {
    for (int i = 0; i < PLACES; i++) {
        bool told = false, wanted = t->has_run && t->pending.has[i];
        for (size_t k = 0; k < count; k++) told = told || causes[k].id == cells[i].id;
        if (told && !wanted && was_written(t, i)) continue;
        if (told != wanted)
            lab_fail("%s %d is %s cause of run %d of twin %d", i < CELLS ? "cell" : "link", i,
                     told ? "no" : "a", t->runs, (int)(t - twins));
    }
}

static void completed(twin *t) {
    for (int i = 0; i < PLACES; i++) narrower += t->taken.has[i] && !t->read.has[i];
    t->reads = t->read;
    memset(&t->pending, 0, sizeof t->pending);
    t->has_run = true;
    if (!t->writes) t->failed = 0;
}

static void note_change(int at, bool ours) {
    for (int i = 0; i < 2; i++) {
        twin *t = &twins[i];
        if (t->reads.has[at] && !(ours && t->group == GROUP)) t->pending.has[at] = true;
        if (t->run && t->read.has[at]) t->stale = true; /* whoever wrote */
    }
}

/* What a twin wrote is gone: what caused that run causes the next. */
static void note_refusal(twin *t, int64_t value) {
    for (int i = 0; i < t->made_count; i++)
        if (t->made[i].value == value) add_all(&t->pending, &t->made[i].causes), refusals++;
}

static int number_of(hd_cell cell) {
    for (int i = 0; i < CELLS; i++)
        if (cells[i].id == cell.id) return i;
    return -1;
}

static void note_links(const hd_change *c) {
    for (int i = 0; i < LINKS; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        if (!hd_value_equal(hd_value_at(c->before, key), hd_value_at(c->after, key)))
            note_change(CELLS + i, false); /* what is read has moved, whose link it may be */
    }
}

static void on_notice(const hd_notice *notice, void *ctx) {
    (void)ctx;
    bool ours = notice->kind == HD_CHANGE_COMMIT && notice->group == GROUP;
    for (size_t k = 0; k < notice->count; k++) {
        const hd_change *c = &notice->changes[k];
        int cell = number_of(c->document);
        if (cell >= 0) note_change(cell, ours);
        for (int i = 0; i < 2; i++)
            if (c->document.id == out[i].id && notice->kind == HD_CHANGE_REVERT)
                note_refusal(&twins[i], hd_value_as_int(c->before, -1));
        if (c->document.id == hd_cell_at(rt, "main/links").id) note_links(c);
    }
}

/* ---- the real ones */

static hd_status read_some(twin *t, hd_tx *tx) {
    memset(&t->read, 0, sizeof t->read);
    for (uint32_t n = 3 + below(8); n; n--) {
        int i =
            n == 3 ? 0 : (int)below(below(4) ? PLACES : CELLS); /* one always: or it would end */
        hd_value v = hd_tx_get(tx, cells[i]);
        if (hd_value_status(v)) return hd_value_status(v);
        t->read.has[i] = true;
        if (i < CELLS) continue;
        int target = (int)hd_value_as_int(v, -1); /* cells hold their number, and a counter */
        if (target >= 0) t->read.has[target % CELLS] = true;
    }
    return HD_OK;
}

static hd_status look(hd_tx *tx, void *ctx) {
    twin *t = ctx;
    hd_cell causes[PLACES];
    if (ending) return HD_OK;
    size_t count = hd_tx_causes(tx, causes, PLACES);
    t->runs++;
    compare(t, causes, count);
    t->taken = t->pending;
    hd_status status = read_some(t, tx);
    if (status) return status;
    if (fails && t->failed < 8) { /* more in a row would be given up */
        fails--;
        t->failed++;
        return HD_BUSY;
    }
    t->writes = writing && below(2);
    if (t->writes) {
        made m = { ++next_value, t->taken };
        if (!t->has_run) memset(&m.causes, 0, sizeof m.causes);
        if (t->made_count == KEPT) {
            memmove(t->made, t->made + KEPT / 2, KEPT / 2 * sizeof m);
            t->made_count = KEPT / 2;
        }
        t->made[t->made_count++] = m;
        hd_tx_set_int(tx, out[t - twins], m.value);
    }
    if (asynchronous && !below(3)) {
        t->stale = false;
        memset(&t->pending, 0, sizeof t->pending);
        assert_int_equal(hd_tx_suspend(tx, &t->run), HD_OK);
        return HD_PENDING;
    }
    completed(t);
    return HD_OK;
}

/* ---- steps */

static void put(hd_tx *tx, hd_runtime *in, int cell) {
    char name[32];
    snprintf(name, sizeof name, "main/c%d", cell);
    hd_tx_set_int(tx, hd_cell_at(in, name), cell + CELLS * (int)below(3));
}

static void change_some(void) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    if (!below(3)) hd_tx_set_group(tx, GROUP);
    for (uint32_t n = 1 + below(below(4) ? 3 : CELLS); n; n--) put(tx, rt, (int)below(CELLS));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static void move_link(void) {
    hd_tx *tx;
    int link = (int)below(LINKS);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    if (!below(3)) hd_tx_set_group(tx, GROUP);
    hd_tx_set(tx, cells[CELLS + link], hd_cell_link(rt, hd_tx_pool(tx), cells[below(CELLS)]));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* Decided before ours: what the twins have read of it is refused. */
static void change_elsewhere(void) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(other, &tx), HD_OK);
    for (uint32_t n = 1 + below(4); n; n--) put(tx, other, (int)below(CELLS));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    hd_runtime_pump(other);
}

static void end_run(twin *t) {
    hd_run *run = t->run;
    if (!run) return;
    t->run = NULL;
    if (!t->stale) completed(t);
    else add_all(&t->pending, &t->taken);
    hd_run_resume(run, HD_OK);
}

static void act(void) {
    switch (below(12)) {
    case 0: fails = (int)below(4); break;
    case 1: asynchronous = !asynchronous; break;
    case 2: writing = !writing; break;
    case 3:
    case 4: end_run(&twins[below(2)]); break;
    case 5: move_link(); break;
    case 6:
    case 7: change_elsewhere(); break;
    default: change_some(); break;
    }
}

/* A place that was not there reads as absent before and after, which is a change: it is there from the start. */
static void fill(void) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    for (int i = 0; i < CELLS; i++) put(tx, rt, i);
    for (int i = 0; i < LINKS; i++)
        hd_tx_set(tx, cells[CELLS + i], hd_cell_link(rt, hd_tx_pool(tx), cells[below(CELLS)]));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    hd_runtime_pump(rt);
    hd_runtime_pump(rt);
}

static void open_world(void) {
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_open(NULL, &options, &other, NULL), HD_OK);
    for (int i = 0; i < CELLS; i++) {
        char name[32];
        snprintf(name, sizeof name, "main/c%d", i);
        cells[i] = hd_cell_at(rt, name);
    }
    for (int i = 0; i < LINKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "main/links#/%d", i);
        cells[CELLS + i] = hd_cell_at(rt, name);
    }
    fill();
    assert_int_equal(hd_runtime_listen(rt, on_notice, NULL), HD_OK);
    for (int i = 0; i < 2; i++) {
        hd_node n;
        char name[32];
        snprintf(name, sizeof name, "main/out%d", i);
        out[i] = hd_cell_at(rt, name);
        twins[i] = (twin){ .group = i ? GROUP : 0 };
        hd_node_spec spec = { .fn = look, .ctx = &twins[i], .effect = true };
        spec.group = twins[i].group;
        spec.no_auto_debounce = true;
        assert_int_equal(hd_node_register(rt, &spec, &n), HD_OK);
    }
    hd_runtime_pump(rt);
}

static void a_run_is_told_its_causes_and_no_others(void **state) {
    const char *steps = getenv("HD_STEPS");
    (void)state;
    ending = false;
    env = lab_env_open();
    r = lab_random_of(lab_seed());
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    open_world();
    for (long i = 0; i < (steps ? atol(steps) : STEPS); i++) {
        act();
        if (!below(4)) { /* it runs, and is late with what it writes */
            settle_pass(scheduler_get(rt));
            change_elsewhere();
        }
        if (below(3)) hd_runtime_pump(rt);
        if (!below(3)) lab_env_advance_ms(env, 2500); /* what was refused is tried again */
    }
    print_message("%d and %d runs, %u refused, %u causes not read again\n", twins[0].runs,
                  twins[1].runs, refusals, narrower);
    ending = true;
    hd_runtime_unlisten(rt, on_notice, NULL);
    for (int i = 0; i < 2; i++) end_run(&twins[i]);
    hd_close(rt);
    hd_close(other);
    hd_memory_close(memory);
    lab_env_close(env);
}

/* ---- restarts */

enum { KEEPERS = 6, KEEPER_STEPS = 600 };

/* Reads its selector, and the cells whose bits are set in it. */
typedef struct keeper {
    int64_t saw[CELLS + 1]; /* by its last completed run; the selector is the last; -1: not read */
    hd_cell selector, to;
    int runs, index;
    bool wanted; /* the model says that it is to run */
} keeper;

static keeper keepers[KEEPERS];
static int64_t now[CELLS], selected[KEEPERS]; /* what the store holds */
static unsigned restarts, resumed_runs;

static bool has_changed(const keeper *k, int i) {
    int64_t is = i < CELLS ? now[i] : selected[k->index];
    return k->saw[i] >= 0 && k->saw[i] != is;
}

static bool must_run(const keeper *k) {
    for (int i = 0; i <= CELLS; i++)
        if (has_changed(k, i)) return true;
    return !k->runs;
}

static void compare_kept(const keeper *k, const hd_cell *causes, size_t count) {
    for (int i = 0; i <= CELLS; i++) {
        bool told = false, due = k->runs && has_changed(k, i);
        hd_cell cell = i < CELLS ? cells[i] : k->selector;
        for (size_t c = 0; c < count; c++) told = told || causes[c].id == cell.id;
        if (told != due)
            lab_fail("%s %d is %s cause of run %d of keeper %d, restart %u",
                     i < CELLS ? "cell" : "selector", i, told ? "no" : "a", k->runs, k->index,
                     restarts);
    }
}

static hd_status keep(hd_tx *tx, void *ctx) {
    keeper *k = ctx;
    hd_cell causes[CELLS + 1];
    int64_t sum = 0, saw[CELLS + 1];
    size_t count = hd_tx_causes(tx, causes, CELLS + 1);
    hd_value v = hd_tx_get(tx, k->selector);
    if (hd_value_status(v)) return hd_value_status(v);
    memset(saw, -1, sizeof saw);
    saw[CELLS] = hd_value_as_int(v, 0);
    for (int i = 0; i < CELLS; i++) {
        if (!(saw[CELLS] >> i & 1)) continue;
        v = hd_tx_get(tx, cells[i]);
        if (hd_value_status(v)) return hd_value_status(v);
        sum += saw[i] = hd_value_as_int(v, 0);
    }
    compare_kept(k, causes, count);
    if (!k->wanted) lab_fail("keeper %d runs though nothing has changed", k->index);
    resumed_runs += restarts > 0;
    memcpy(k->saw, saw, sizeof saw);
    k->wanted = false;
    k->runs++;
    return hd_tx_set_int(tx, k->to, sum);
}

static void want_runs(void) {
    for (int i = 0; i < KEEPERS; i++) keepers[i].wanted = must_run(&keepers[i]);
}

static void ran_all(void) {
    for (int i = 0; i < KEEPERS; i++)
        if (keepers[i].wanted) lab_fail("keeper %d did not run", i);
}

static void see(hd_value v, void *ctx) { (void)v, (void)ctx; }

/* One commit with a few changes, by the program or by another one; it may write what is there already. */
static void change_kept(hd_runtime *by) {
    hd_tx *tx;
    char name[32];
    assert_int_equal(hd_runtime_sync(rt), HD_OK); /* or it would be refused */
    assert_int_equal(hd_runtime_sync(by), HD_OK);
    assert_int_equal(hd_tx_begin(by, &tx), HD_OK);
    for (uint32_t n = 1 + below(3); n; n--) {
        int i = (int)below(CELLS + KEEPERS);
        int64_t *at = i < CELLS ? &now[i] : &selected[i - CELLS];
        *at = i < CELLS ? below(4) : below(1u << CELLS) & below(1u << CELLS) & below(1u << CELLS);
        snprintf(name, sizeof name, i < CELLS ? "main/c%d" : "main/sel%d",
                 i < CELLS ? i : i - CELLS);
        assert_int_equal(hd_tx_set_int(tx, hd_cell_at(by, name), *at), HD_OK);
    }
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* An absent cell would read as 0, and differ from 0. */
static void fill_kept(void) {
    hd_tx *tx;
    char name[32];
    assert_int_equal(hd_tx_begin(other, &tx), HD_OK);
    for (int i = 0; i < CELLS + KEEPERS; i++) {
        snprintf(name, sizeof name, i < CELLS ? "main/c%d" : "main/sel%d",
                 i < CELLS ? i : i - CELLS);
        assert_int_equal(hd_tx_set_int(tx, hd_cell_at(other, name), 0), HD_OK);
    }
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(other), HD_OK);
}

static void start_keepers(void) {
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    char name[32];
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    for (int i = 0; i < CELLS; i++) {
        snprintf(name, sizeof name, "main/c%d", i);
        cells[i] = hd_cell_at(rt, name);
    }
    for (int i = 0; i < KEEPERS; i++) {
        keeper *k = &keepers[i];
        snprintf(name, sizeof name, "main/sel%d", i);
        k->selector = hd_cell_at(rt, name);
        snprintf(name, sizeof name, "main/kept%d", i);
        k->to = hd_cell_at(rt, name);
        k->index = i;
        assert_true(hd_compute(rt, name, keep, k, k->to).id);
        assert_true(hd_sink(rt, k->to, see, NULL).id);
    }
}

static void restart(void) {
    assert_int_equal(hd_close(rt), HD_OK);
    rt = other;
    for (uint32_t n = below(4); n; n--) {
        change_kept(other);
        assert_int_equal(hd_runtime_sync(other), HD_OK);
    }
    restarts++;
    start_keepers();
    want_runs();
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    ran_all();
}

static void a_resumed_computation_is_told_what_has_changed(void **state) {
    const char *steps = getenv("HD_STEPS");
    (void)state;
    env = lab_env_open();
    r = lab_random_of(lab_seed());
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    options.memory = memory;
    assert_int_equal(hd_open(NULL, &options, &other, NULL), HD_OK);
    memset(keepers, 0, sizeof keepers);
    memset(now, 0, sizeof now);
    memset(selected, 0, sizeof selected);
    restarts = resumed_runs = 0;
    for (int i = 0; i < KEEPERS; i++) memset(keepers[i].saw, -1, sizeof keepers[i].saw);
    fill_kept();
    start_keepers();
    want_runs();
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    for (long i = 0; i < (steps ? atol(steps) : KEEPER_STEPS); i++) {
        bool here = below(3);
        if (!below(4)) {
            restart();
            continue;
        }
        change_kept(here ? rt : other);
        if (!here) assert_int_equal(hd_runtime_sync(other), HD_OK);
        want_runs();
        assert_int_equal(hd_runtime_settle(rt), HD_OK);
        if (!here) assert_int_equal(hd_runtime_sync(rt), HD_OK);
        ran_all();
        if (!below(3)) assert_int_equal(hd_runtime_sync(rt), HD_OK);
    }
    print_message("%u restarts, %u runs after the first\n", restarts, resumed_runs);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_close(other), HD_OK);
    hd_memory_close(memory);
    lab_env_close(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told_its_causes_and_no_others),
        cmocka_unit_test(a_resumed_computation_is_told_what_has_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_memory.c -- the store in memory: who shares it, what it keeps, what it lets go. */
#include "lab_judge.h"
#include "store/admit.h"
#include "store/memory/memory.h"
#include "store/runtime.h"
#include "store/tx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static lab *l;

static int open_lab(void **state) {
    l = lab_open_with((lab_options){ .kind = LAB_MEMORY });
    return 0;
}
static int close_lab(void **state) {
    lab_close(l);
    return 0;
}

/* A store with one runtime skips what only serves others; it must not be too late when a second one
 * comes. */
static void what_was_read_alone_is_in_conflict_with_a_newcomer(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    lab_do(a, "set n 1");
    lab_pump(a);
    lab_do(a, "get n; set copy 1");
    lab_runtime *b = lab_runtime_open(l, "b");
    lab_do(b, "get copy; set n 2"); /* one of the two must have seen the other */
    lab_pump(b);
    lab_settle(l);
    lab_judge(l, false);
}

static void a_runtime_that_leaves_does_not_hold_the_others_up(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
    lab_read_cell(b, "n");
    for (int i = 0; i < 100; i++) {
        lab_dof(a, "set n %d", i);
        lab_pump(a);
    }
    lab_runtime_close(b); /* has not heard of any of it */
    lab_runtime *c = lab_runtime_open(l, "c");
    assert_cell(c, "n", "99");
    lab_do(a, "set n 100");
    lab_settle(l);
    assert_cell(c, "n", "100");
}

static void memory_does_not_grow_with_history(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
    lab_read_cell(b, "n");
    size_t after_warm_up = 0;
    for (int i = 0; i < 20000; i++) {
        assert_status(hd_write(lab_rt(a), lab_cell(a, "n"), hd_int(NULL, i)), HD_OK);
        assert_status(hd_runtime_pump(lab_rt(a)), HD_OK);
        assert_status(hd_runtime_pump(lab_rt(b)), HD_OK);
        if (i == 10000) after_warm_up = lab_env_bytes(lab_world(l));
    }
    assert_int_equal(lab_env_bytes(lab_world(l)), after_warm_up);
}

static void a_claim_older_than_the_history_kept_is_told_to_resync(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
    lab_write(a, "n", "{\"x\":0}");
    lab_settle(l);
    assert_cell(b, "n#/x", "0");
    lab_fate *old = lab_do(b, "get n#/y; set copy 1");
    for (int i = 0; i < 5000; i++) {
        hd_tx *tx;
        assert_status(hd_tx_begin(lab_rt(a), &tx), HD_OK);
        assert_status(hd_tx_set_int(tx, lab_cell(a, "n#/x"), i + 1), HD_OK);
        assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
        assert_status(hd_runtime_pump(lab_rt(a)), HD_OK);
    }
    lab_pump(b);
    assert_fate(old, HD_RESYNC);
    assert_int_equal(hd_status_class(HD_RESYNC), HD_CLASS_STALE);
    lab_fate *again = lab_do(b, "get n#/y; set copy 1");
    lab_pump(b);
    assert_fate(again, HD_OK);
}

static void a_store_of_ones_own_is_closed_with_its_runtime(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *rt;
    hd_options options = { .env = lab_env_of(world) };
    assert_status(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_status(hd_write_json(rt, hd_cell_at(rt, "main/n"), "[1,{\"a\":2}]"), HD_OK);
    assert_int_equal(hd_runtime_deadline(rt), UINT64_MAX); /* nobody to tell: nothing to do */
    assert_status(hd_close(rt), HD_OK);
    lab_env_close(world);
}

static void a_read_only_runtime_does_not_write(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    lab_write(a, "n", "1");
    lab_settle(l);
    hd_runtime *rt;
    hd_options options = { .env = lab_env_of(lab_world(l)),
                           .memory = lab_memory(l),
                           .read_only = true };
    assert_status(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_status(hd_write_json(rt, hd_cell_at(rt, "main/n"), "2"), HD_READ_ONLY);
    hd_tx *tx;
    assert_status(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, hd_cell_at(rt, "main/n")), 0), 1);
    assert_status(hd_tx_append(tx, hd_cell_at(rt, "main/l"), hd_null()), HD_READ_ONLY);
    assert_status(hd_tx_remove(tx, hd_cell_at(rt, "main/n")), HD_READ_ONLY);
    hd_tx_abort(tx);
    assert_status(hd_close(rt), HD_OK);
}

static void count_post(hd_runtime *rt, void *ctx) { ++*(int *)ctx; }

static void posts_run_in_the_next_pump_in_order(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    static int count;
    count = 0;
    for (int i = 0; i < 3; i++)
        assert_status(hd_runtime_post(lab_rt(a), count_post, &count), HD_OK);
    assert_int_equal(hd_runtime_deadline(lab_rt(a)), 0);
    assert_int_equal(count, 0);
    lab_pump(a);
    assert_int_equal(count, 3);
    assert_status(hd_runtime_post(lab_rt(a), count_post, &count), HD_OK); /* run by close */
}

static void checkpoints_of_memory_do_nothing(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    assert_status(hd_store_checkpoint(lab_rt(a), NULL), HD_OK);
    assert_status(hd_store_prune(lab_rt(a), NULL), HD_OK);
    assert_status(hd_store_vacuum(lab_rt(a), NULL), HD_OK);
}

/* ---- a store of one's own against one that could be shared: the same, by another way */

enum { OWN, SHARED, STORES };

typedef struct twin {
    hd_runtime *rt[STORES];
    hd_status verdict[STORES];
} twin;

static void hear(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

static void twin_cell_name(uint32_t n, char out[24]) { snprintf(out, 24, "main/d%u", n % 7); }

/* One of the ways to change a document, with or without a condition. */
static hd_status twin_change(hd_tx *tx, hd_cell cell, uint32_t how, int64_t v) {
    hd_status status = HD_OK;
    if (how % 11 == 3) status = hd_tx_require_absent(tx, cell);
    if (how % 11 == 4) status = hd_tx_require_equal(tx, cell, hd_int(NULL, v));
    if (status) return status;
    if (how % 5 == 0) return hd_tx_remove(tx, cell);
    if (how % 5 == 1) return hd_tx_increment(tx, cell, hd_int(NULL, 1));
    return hd_tx_set_int(tx, cell, v);
}

static void twin_step(twin *t, int which, uint32_t doc, uint32_t how, int64_t v) {
    char name[24];
    hd_tx *tx;
    hd_runtime *rt = t->rt[which];
    twin_cell_name(doc, name);
    assert_status(hd_tx_begin(rt, &tx), HD_OK);
    hd_status status = twin_change(tx, hd_cell_at(rt, name), how, v);
    t->verdict[which] = status ? status : HD_PENDING;
    if (status) hd_tx_abort(tx);
    else hd_tx_commit(tx, how & 16 ? hear : NULL, &t->verdict[which]);
    status = hd_runtime_sync(rt); /* a verdict that was not asked for */
    if (!(how & 16) && status) t->verdict[which] = status;
    else assert_status(status, HD_OK);
}

static bool list_one(const hd_listing *entry, void *ctx) {
    char *text = ctx;
    size_t at = strlen(text);
    snprintf(text + at, 512 - at, "%s@%u ", entry->id, (unsigned)entry->seq);
    return true;
}

static void assert_twins(const twin *t) {
    char text[STORES][512] = { "", "" };
    for (int i = 0; i < STORES; i++)
        assert_status(hd_runtime_list(t->rt[i], "main", NULL, NULL, list_one, text[i]), HD_OK);
    assert_string_equal(text[OWN], text[SHARED]);
}

static void assert_twin_cells(const twin *t) {
    char name[24];
    for (uint32_t i = 0; i < 7; i++) {
        hd_value v[STORES];
        hd_pool *pools[STORES];
        twin_cell_name(i, name);
        for (int j = 0; j < STORES; j++) {
            assert_status(hd_pool_open(hd_runtime_heap(t->rt[j]), &pools[j]), HD_OK);
            v[j] = hd_read(t->rt[j], pools[j], hd_cell_at(t->rt[j], name));
        }
        assert_true(hd_value_equal(v[OWN], v[SHARED]));
        for (int j = 0; j < STORES; j++) hd_pool_close(pools[j]);
    }
}

static void a_store_of_ones_own_behaves_like_one_that_could_be_shared(void **state) {
    hd_memory *memory;
    twin t;
    lab_random random = lab_random_of(lab_seed());
    assert_status(hd_memory_open(NULL, &memory), HD_OK);
    assert_status(hd_open(NULL, NULL, &t.rt[OWN], NULL), HD_OK);
    assert_status(hd_open(NULL, &(hd_options){ .memory = memory }, &t.rt[SHARED], NULL), HD_OK);
    for (int i = 0; i < 3000; i++) {
        uint32_t doc = (uint32_t)lab_random_u64(&random), how = (uint32_t)lab_random_u64(&random);
        int64_t v = (int64_t)(lab_random_u64(&random) % 5);
        for (int j = 0; j < STORES; j++) twin_step(&t, j, doc, how, v);
        assert_int_equal(t.verdict[OWN], t.verdict[SHARED]);
        assert_twin_cells(&t);
        if (how % 64 == 0) assert_twins(&t);
    }
    assert_twins(&t);
    for (int j = 0; j < STORES; j++) assert_status(hd_close(t.rt[j]), HD_OK);
    hd_memory_close(memory);
}

static void keep_status(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* What the one that is left has read may be old: the other wrote, and left before this one was told. */
static void the_last_runtime_is_alone_when_it_has_heard_of_the_others(void **state) {
    hd_memory *memory;
    hd_runtime *stays, *leaves;
    hd_tx *tx;
    hd_status fate = HD_PENDING;
    assert_status(hd_memory_open(NULL, &memory), HD_OK);
    hd_options options = { .memory = memory };
    assert_status(hd_open(NULL, &options, &stays, NULL), HD_OK);
    assert_status(hd_write_json(stays, hd_cell_at(stays, "main/n"), "1"), HD_OK);
    assert_status(hd_runtime_sync(stays), HD_OK);
    assert_status(hd_open(NULL, &options, &leaves, NULL), HD_OK);
    assert_status(hd_write_json(leaves, hd_cell_at(leaves, "main/n"), "2"), HD_OK);
    assert_status(hd_close(leaves), HD_OK);
    assert_status(hd_tx_begin(stays, &tx), HD_OK);
    int64_t n = hd_value_as_int(hd_tx_get(tx, hd_cell_at(stays, "main/n")), 0);
    assert_status(hd_tx_set_int(tx, hd_cell_at(stays, "main/n"), n + 10), HD_OK);
    assert_status(hd_tx_commit(tx, keep_status, &fate), HD_OK);
    assert_status(hd_runtime_sync(stays), HD_OK);
    assert_true(n == 2 || fate == HD_STALE);
    assert_status(hd_close(stays), HD_OK);
    hd_memory_close(memory);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(what_was_read_alone_is_in_conflict_with_a_newcomer),
        T(a_runtime_that_leaves_does_not_hold_the_others_up),
        T(memory_does_not_grow_with_history),
        T(a_claim_older_than_the_history_kept_is_told_to_resync),
        T(a_store_of_ones_own_is_closed_with_its_runtime),
        T(a_read_only_runtime_does_not_write),
        T(posts_run_in_the_next_pump_in_order),
        T(checkpoints_of_memory_do_nothing),
        cmocka_unit_test(the_last_runtime_is_alone_when_it_has_heard_of_the_others),
        T(a_store_of_ones_own_behaves_like_one_that_could_be_shared),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}

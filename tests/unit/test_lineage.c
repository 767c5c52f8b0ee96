/* test_lineage.c -- records of attempts, cancel groups, and commits that require another one. */
#include "lab_events.h"

#include "scheduler/events/lineage.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct registry_world {
    int cancelled;
    lineages *ls;
    lineage *l;
} registry_world;

static void cancel_one(void *ctx, list_node *by_origin) {
    registry_world *w = ctx;
    w->cancelled++;
    list_remove(by_origin);
    lineage_unref(w->ls, w->l);
}

static hd_status count_stop(void *ctx) {
    (*(int *)ctx)++;
    return *(int *)ctx % 2 ? HD_FAILED : HD_OK;
}

static lineage *lineage_with_events(lineages *ls, hd_tx *tx, list_node *nodes, int count) {
    memset(tx, 0, sizeof *tx);
    lineage *l = lineage_of(ls, tx);
    for (int i = 0; i < count; i++) {
        nodes[i] = (list_node){ NULL, NULL };
        list_push_back(&l->events, &nodes[i]);
        lineage_ref(l);
    }
    return l;
}

/* C275: failure cancels events and stops; success drops the stops and keeps the events until they are
 * released; the last release deletes the record; a second verdict is ignored. */
static void the_registry_keeps_its_books(void **state) {
    lab_env *world = lab_env_open();
    hd_tx *tx = calloc(1, sizeof *tx);
    replica *r = calloc(1, sizeof *r);
    lineages ls;
    registry_world w = { .ls = &ls };
    list_node nodes[3];
    int stops = 0;
    lineages_init(&ls, lab_env_of(world), cancel_one, &w);

    w.l = lineage_with_events(&ls, tx, nodes, 3);
    cancel_group_add(ls.env, &w.l->stops, count_stop, &stops);
    lineage_told(&ls, w.l, r, NULL, HD_STALE);
    assert_int_equal(w.cancelled, 3);
    assert_int_equal(stops, 1);
    assert_true(list_empty(&ls.all));

    w.l = lineage_with_events(&ls, tx, nodes, 2);
    cancel_group_add(ls.env, &w.l->stops, count_stop, &stops);
    lineage_told(&ls, w.l, r, NULL, HD_OK);
    lineage_told(&ls, w.l, r, NULL, HD_STALE);
    assert_int_equal(w.cancelled, 3);
    assert_int_equal(stops, 1);
    assert_int_equal(w.l->state, LINEAGE_COMMITTED);
    for (int i = 0; i < 2; i++) {
        assert_false(list_empty(&ls.all));
        list_remove(&nodes[i]);
        lineage_unref(&ls, w.l);
    }
    assert_true(list_empty(&ls.all));
    lineages_fini(&ls);
    free(tx);
    free(r);
    lab_env_close(world);
}

/* C276: a cancel group stops each once; C274: what comes late is stopped at once; siblings are stopped
 * whatever the others say; failures are counted. */
static void a_cancel_group_stops_each_once(void **state) {
    lab_env *world = lab_env_open();
    const hd_env *env = lab_env_of(world);
    cancel_group g = { 0 };
    int stops = 0;
    hd_status first;
    for (int i = 0; i < 5; i++) assert_status(cancel_group_add(env, &g, count_stop, &stops), HD_OK);
    assert_int_equal(cancel_group_cancel(env, &g, &first), 3);
    assert_status(first, HD_FAILED);
    assert_int_equal(stops, 5);
    assert_int_equal(cancel_group_cancel(env, &g, &first), 0);
    assert_int_equal(stops, 5);
    cancel_group_add(env, &g, count_stop, &stops);
    assert_int_equal(stops, 6);
    cancel_group_drop(env, &g);
    lab_env_close(world);
}

static void note_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* C277: a commit that requires its origin: accepted after it, refused for good without it. */
static void a_commit_that_requires_its_origin_falls_with_it(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_status accepted = HD_PENDING, missing = HD_PENDING;
    lab_on(l, "b");
    lab_on(l, "a");
    hd_tx *tx;
    lab_set(l, "n", 1);
    uint64_t origin = lab_replica(lab_on(l, "a"))->next_local - 1;
    hd_tx_begin(rt, &tx);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/m"), 1);
    tx_require_origin(tx, origin);
    hd_tx_commit(tx, note_verdict, &accepted);
    hd_tx_begin(rt, &tx);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/k"), 1);
    tx_require_origin(tx, origin + 1000);
    hd_tx_commit(tx, note_verdict, &missing);
    assert_status(hd_runtime_sync(rt), HD_OK);
    assert_status(accepted, HD_OK);
    assert_status(missing, HD_ORIGIN_FAILED);
    assert_json(l, "k", "-");
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_registry_keeps_its_books),
        cmocka_unit_test(a_cancel_group_stops_each_once),
        cmocka_unit_test(a_commit_that_requires_its_origin_falls_with_it),
    };
    LAB_EVERYWHERE(tests);
}

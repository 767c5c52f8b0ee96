/* test_names_naive.c -- nodes by name, against a model that joins names and compares texts.
 *
 * Nodes come and go in random trees: with names that repeat, that have slashes, that are empty, or
 * without one; parents go before their children; nodes move under another (`again`). After every step
 * each path of the model is looked up.
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

enum { NODES = 14, STEPS = 3000, MOVER = NODES };

typedef struct twin {
    hd_node handle; /* id 0: it is not there */
    const char *name;
    int parent; /* -1: none */
    bool lost;  /* its parent is gone: nobody finds it */
} twin;

static hd_runtime *rt;
static lab_random r;
static twin twins[NODES + 1]; /* the last one moves others */
static int moved;             /* which is to move; -1: none */
static hd_status move_status;
static hd_cell go;

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

/* ---- the model */

static bool is_found(const twin *t) {
    for (; t->handle.id && t->name && !t->lost; t = &twins[t->parent])
        if (t->parent < 0) return true;
    return false;
}

static void join(const twin *t, char *out, size_t size) {
    char above[256] = "";
    if (t->parent >= 0) join(&twins[t->parent], above, sizeof above);
    snprintf(out, size, "%.100s%s%s", above, t->parent >= 0 ? "/" : "", t->name);
}

static bool is_taken(int parent, const char *name, const twin *but) {
    for (int i = 0; i <= NODES && name; i++) {
        const twin *t = &twins[i];
        if (t == but || !t->handle.id || !t->name || t->lost || t->parent != parent) continue;
        if (!strcmp(t->name, name)) return true;
    }
    return false;
}

static bool is_below(int i, int top) {
    while (i >= 0 && i != top) i = twins[i].parent;
    return i >= 0;
}

static void leave(twin *t) {
    for (int i = 0; i <= NODES; i++) {
        if (!twins[i].handle.id || twins[i].parent != (int)(t - twins)) continue;
        twins[i].parent = -1;
        twins[i].lost = true;
    }
    *t = (twin){ .parent = -1 };
}

/* ---- the real ones */

static hd_status rest(hd_tx *tx, void *ctx) {
    (void)tx, (void)ctx;
    return HD_OK;
}

static hd_status move_one(hd_tx *tx, void *ctx) {
    hd_node out;
    (void)ctx;
    hd_tx_get(tx, go);
    if (moved < 0) return HD_OK;
    hd_node_spec spec = { .fn = rest, .effect = true, .again = twins[moved].handle };
    move_status = hd_node_register(rt, &spec, &out);
    return HD_OK;
}

/* ---- steps */

static const char *some_name(void) {
    static const char *const names[] = { "a", "b", "a/b", "b/a", "a/b/a", "", "/", NULL };
    return names[below(8)];
}

static void add(twin *t) {
    int parent = (int)below(NODES + 2) - 1;
    const char *name = some_name();
    if (parent >= 0 && (!twins[parent].handle.id || &twins[parent] == t)) parent = -1;
    hd_node_spec spec = { .name = name, .fn = rest, .effect = true };
    if (parent >= 0) spec.parent = twins[parent].handle;
    hd_status expected = is_taken(parent, name, NULL) ? HD_USAGE : HD_OK;
    hd_node handle;
    assert_int_equal(hd_node_register(rt, &spec, &handle), expected);
    if (!expected) *t = (twin){ handle, name, parent, false };
}

static void move(int i) {
    static int times;
    const twin *t = &twins[i];
    moved = i;
    hd_write(rt, go, hd_double(++times));
    hd_runtime_pump(rt);
    moved = -1;
    bool stays = t->parent == MOVER;
    bool refused = !stays && (is_below(MOVER, i) || is_taken(MOVER, t->name, t));
    assert_int_equal(move_status, refused ? HD_USAGE : HD_OK);
    if (refused || stays) return;
    twins[i].parent = MOVER;
    twins[i].lost = false;
}

static void act(void) {
    int i = (int)below(NODES);
    twin *t = &twins[i];
    if (!t->handle.id) {
        add(t);
    } else if (below(3)) {
        hd_node_unregister(rt, t->handle);
        leave(t);
    } else {
        move(i);
    }
}

/* Several nodes may have the same path: one of them is found. */
static void check_path(const char *path) {
    hd_node found = hd_node_find(rt, path);
    bool any = false, right = false;
    for (int i = 0; i <= NODES; i++) {
        char own[256];
        if (!is_found(&twins[i])) continue;
        join(&twins[i], own, sizeof own);
        if (strcmp(own, path) != 0) continue;
        any = true;
        right = right || found.id == twins[i].handle.id;
    }
    if (any != (found.id != 0) || any != right) lab_fail("\"%s\" is not who it should be", path);
}

static void check_all(void) {
    char path[256];
    for (int i = 0; i <= NODES; i++) {
        if (!is_found(&twins[i])) continue;
        join(&twins[i], path, sizeof path);
        check_path(path);
    }
    static const char *const others[] = { "a", "b", "a/b", "b/a", "a/a", "mover/a/b", "//", "" };
    check_path(others[below(8)]);
}

static void names_lead_to_the_nodes_of_the_model(void **state) {
    lab_env *env = lab_env_open();
    const char *steps = getenv("HD_STEPS");
    (void)state;
    r = lab_random_of(lab_seed());
    assert_int_equal(hd_open(NULL, &(hd_options){ .env = lab_env_of(env) }, &rt, NULL), HD_OK);
    go = hd_cell_at(rt, "main/go");
    moved = -1;
    for (int i = 0; i <= NODES; i++) twins[i] = (twin){ .parent = -1 };
    twins[MOVER].handle = hd_effect(rt, "mover", move_one, NULL);
    twins[MOVER].name = "mover";
    for (long i = 0; i < (steps ? atol(steps) : STEPS); i++) {
        act();
        check_all();
        if (!below(8)) hd_runtime_pump(rt);
    }
    hd_close(rt);
    lab_env_close(env);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(names_lead_to_the_nodes_of_the_model) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

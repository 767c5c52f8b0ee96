/* test_trees.c -- arrays and objects against models that cannot be wrong.
 *
 * The model of an array is a flat list of numbers; that of an object is a list of numbers by the rank
 * of its key among all keys that the test uses. Random operations go to both; now and then both are
 * compared entry by entry, and every invariant of the tree is asserted: always while the container
 * is small, in proportion when it is large. Old versions are kept beside their models and must not
 * change. */
#include "value/array.h"
#include "value/build.h"
#include "value/diff.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"
#include "lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 300000 };
#else
enum { OPERATIONS = 1100000 };
#endif
enum { LENGTH_MAX = 6000, KEYS = 5000, VERSIONS = 4, NONE = 0 };

typedef struct world {
    lab_env *lab;
    hd_heap *heap;
    lab_random random;
    struct key *keys[KEYS]; /* ascending */
} world;

static uint32_t below(world *w, uint32_t n) { return (uint32_t)lab_random_below(&w->random, n); }

/* ---- Numbers as values of several kinds ---- */

/* Owned. Different numbers give different values. */
static hd_value value_of_number(world *w, uint32_t number) {
    char text[16];
    int length = snprintf(text, sizeof text, "n%u", number);
    hd_value inside = value_small_int(number);
    switch (number % 8) {
    case 0: return text_make(w->heap, TAG_STRING, text, (size_t)length);
    case 1: return array_append(w->heap, hd_array(), inside);
    case 2: return object_set(w->heap, hd_object(), w->keys[0], inside);
    case 3: return int_make(w->heap, INT64_MAX - number);
    default: return inside;
    }
}

static uint32_t number_of_value(hd_value v) {
    switch (hd_value_kind(v)) {
    case HD_KIND_STRING: return (uint32_t)atoll(hd_value_as_text(v, "") + 1);
    case HD_KIND_ARRAY: return (uint32_t)hd_value_as_int(array_get(v, 0), NONE);
    case HD_KIND_OBJECT: return number_of_value(hd_value_at(v, "k0"));
    case HD_KIND_INT: break;
    default: return NONE;
    }
    int64_t i = hd_value_as_int(v, NONE);
    return (uint32_t)(i > INT32_MAX ? INT64_MAX - i : i);
}

/* ---- A model of either: `count` numbers; in objects NONE marks a missing key ---- */

typedef struct model {
    bool object;
    uint32_t count; /* arrays: elements; objects: keys that are there */
    uint32_t numbers[LENGTH_MAX];
} model;

static void compare_array(const model *m, hd_value v) {
    uint32_t at = 0;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it); at++) {
        assert_int_equal(it.index, at);
        assert_null(it.key);
        assert_int_equal(number_of_value(it.value), m->numbers[at]);
    }
    assert_int_equal(at, m->count);
}

static void compare_object(const world *w, const model *m, hd_value v) {
    uint32_t rank = 0, seen = 0;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it); rank++, seen++) {
        while (m->numbers[rank] == NONE) rank++;
        assert_ptr_equal(it.key, key_bytes(w->keys[rank]));
        assert_int_equal(it.key_length, w->keys[rank]->length);
        assert_int_equal(number_of_value(it.value), m->numbers[rank]);
    }
    assert_int_equal(seen, m->count);
}

static void compare(const world *w, const model *m, hd_value v) {
    assert_int_equal(hd_value_count(v), m->count);
    node_check(value_node(v));
    if (m->object) compare_object(w, m, v);
    else compare_array(m, v);
}

/* Always when small; else about once in as many operations as a comparison has entries. */
static bool time_to_compare(world *w, const model *m) { return below(w, m->count / 24 + 1) == 0; }

/* ---- Operations on arrays ---- */

static void model_insert(model *m, uint32_t at, uint32_t number) {
    memmove(m->numbers + at + 1, m->numbers + at, (m->count++ - at) * sizeof *m->numbers);
    m->numbers[at] = number;
}

static void model_remove(model *m, uint32_t at) {
    m->count--;
    memmove(m->numbers + at, m->numbers + at + 1, (m->count - at) * sizeof *m->numbers);
}

static hd_value array_grow(world *w, model *m, hd_value v, uint32_t number, hd_value item) {
    if (m->count == LENGTH_MAX) return value_ref(v);
    bool append = below(w, 2) == 0;
    uint32_t at = append ? m->count : below(w, m->count + 1);
    model_insert(m, at, number);
    return append ? array_append(w->heap, v, item) : array_insert(w->heap, v, at, item);
}

static hd_value array_shrink(world *w, model *m, hd_value v) {
    if (m->count == 0) return value_ref(v);
    if (below(w, 2000) == 0) {
        m->count = below(w, m->count + 1);
        return array_truncate(w->heap, v, m->count);
    }
    uint32_t at = below(w, 3) == 0 ? m->count - 1 : below(w, m->count);
    model_remove(m, at);
    return array_remove(w->heap, v, at);
}

static hd_value change_array(world *w, model *m, hd_value v, uint32_t number, hd_value item) {
    if (m->count == 0) return value_ref(v);
    uint32_t at = below(w, m->count);
    assert_int_equal(number_of_value(array_get(v, at)), m->numbers[at]);
    m->numbers[at] = number;
    return array_set(w->heap, v, at, item);
}

/* ---- Operations on objects ---- */

static uint32_t some_rank(world *w) { return below(w, KEYS); }

static hd_value object_put(world *w, model *m, hd_value v, uint32_t number, hd_value item) {
    uint32_t rank = some_rank(w);
    m->count += m->numbers[rank] == NONE;
    m->numbers[rank] = number;
    return object_set(w->heap, v, w->keys[rank], item);
}

/* A key that is there, if there is one near. */
static uint32_t present_rank(world *w, const model *m) {
    uint32_t rank = some_rank(w);
    for (uint32_t i = 0; i < KEYS; i++, rank = (rank + 1) % KEYS)
        if (m->numbers[rank] != NONE) return rank;
    return rank;
}

static hd_value object_take_out(world *w, model *m, hd_value v) {
    uint32_t rank = below(w, 10) == 0 ? some_rank(w) : present_rank(w, m);
    m->count -= m->numbers[rank] != NONE;
    m->numbers[rank] = NONE;
    return object_remove(w->heap, v, w->keys[rank]);
}

static hd_value change_object(world *w, model *m, hd_value v, uint32_t number, hd_value item) {
    uint32_t rank = present_rank(w, m);
    hd_value was = object_get(v, w->keys[rank]);
    assert_int_equal(number_of_value(was), m->numbers[rank]);
    if (m->numbers[rank] == NONE) return value_ref(v);
    m->numbers[rank] = number;
    return object_set(w->heap, v, w->keys[rank], item);
}

/* ---- The run ---- */

static hd_value step(world *w, model *m, hd_value v, bool growing, uint32_t number) {
    hd_value item = value_of_number(w, number), next;
    uint32_t dice = below(w, 10);
    if (dice < 3)
        next =
            m->object ? change_object(w, m, v, number, item) : change_array(w, m, v, number, item);
    else if ((dice < 8) == growing)
        next = m->object ? object_put(w, m, v, number, item) : array_grow(w, m, v, number, item);
    else next = m->object ? object_take_out(w, m, v) : array_shrink(w, m, v);
    value_unref(item);
    assert_true(value_exists(next));
    return next;
}

typedef struct version {
    model m;
    hd_value v;
} version;

/* Replaces a random old version by this one, after a last look at it. */
static void keep_version(world *w, version *versions, const model *m, hd_value v) {
    version *old = &versions[below(w, VERSIONS)];
    compare(w, &old->m, old->v);
    value_unref(old->v);
    old->m = *m;
    old->v = value_ref(v);
}

static void run(world *w, bool object, version *versions) {
    model m = { .object = object };
    hd_value v = object ? hd_object() : hd_array();
    for (int i = 0; i < VERSIONS; i++) versions[i] = (version){ m, v };
    bool growing = true;
    unsigned levels = 0;
    for (uint32_t i = 1; i <= OPERATIONS; i++) {
        if (below(w, 6000) == 0 || m.count == 0) growing = m.count == 0 || below(w, 5) < 3;
        hd_value next = step(w, &m, v, growing, i);
        value_unref(v);
        v = next;
        if (value_node(v) && value_node(v)->level > levels) levels = value_node(v)->level;
        if (time_to_compare(w, &m)) compare(w, &m, v);
        if (below(w, 3000) == 0) keep_version(w, versions, &m, v);
    }
    compare(w, &m, v);
    value_unref(v);
    assert_in_range(levels, 2, 3); /* the run saw trees of three levels */
    for (int i = 0; i < VERSIONS; i++) {
        compare(w, &versions[i].m, versions[i].v);
        value_unref(versions[i].v);
    }
}

/* ---- The world ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void open_keys(world *w) {
    static char texts[KEYS][40];
    static char *sorted[KEYS];
    for (int i = 0; i < KEYS; i++) {
        snprintf(texts[i], sizeof texts[i], i % 2 ? "k%d" : "k%d/with a longer name", i);
        if (i == 0) snprintf(texts[i], sizeof texts[i], "k0");
        sorted[i] = texts[i];
    }
    qsort(sorted, KEYS, sizeof *sorted, by_text);
    for (int i = 0; i < KEYS; i++) w->keys[i] = key_intern(w->heap, sorted[i], strlen(sorted[i]));
    assert_string_equal(key_bytes(w->keys[0]), "k0");
}

static void world_open(world *w) {
    w->lab = lab_env_open();
    w->random = lab_random_of(lab_seed());
    assert_int_equal(hd_heap_open(lab_env_of(w->lab), NULL, &w->heap), HD_OK);
    open_keys(w);
}

static void world_close(world *w) {
    hd_heap_stats stats;
    hd_heap_stat(w->heap, &stats);
    assert_int_equal(stats.live_blocks, 0);
    heap_check(w->heap);
    for (int i = 0; i < KEYS; i++) key_unref(w->keys[i]);
    hd_heap_close(w->heap);
    lab_env_close(w->lab);
}

static void run_in_world(bool object) {
    world w;
    world_open(&w);
    version *versions = calloc(VERSIONS, sizeof *versions);
    assert_non_null(versions);
    run(&w, object, versions);
    free(versions);
    world_close(&w);
}

static void arrays_do_what_a_flat_list_does(void **state) { run_in_world(false); }
static void objects_do_what_a_sorted_list_does(void **state) { run_in_world(true); }

/* Trees of one content are equal and hash equally, however they came to be. */
static void history_leaves_no_trace(void **state) {
    world w;
    world_open(&w);
    for (int round = 0; round < 40; round++) {
        uint32_t n = below(&w, 2000) + 1;
        hd_value grown = hd_object(), cut = hd_object(), next;
        for (uint32_t i = 0; i < n; i++) {
            next = object_set(w.heap, grown, w.keys[i], value_small_int(i));
            value_unref(grown);
            grown = next;
        }
        uint32_t start = below(&w, KEYS);
        for (uint32_t i = 0; i < KEYS; i++) { /* all keys in another order, then the rest out */
            uint32_t rank = (start + i * 7) % KEYS;
            next = object_set(w.heap, cut, w.keys[rank], value_small_int(rank));
            value_unref(cut);
            cut = next;
        }
        for (uint32_t i = n; i < KEYS; i++) {
            next = object_remove(w.heap, cut, w.keys[i]);
            value_unref(cut);
            cut = next;
        }
        hd_hash a = value_hash(w.heap, grown), b = value_hash(w.heap, cut);
        assert_memory_equal(&a, &b, sizeof a);
        assert_true(value_equal(grown, cut));
        assert_int_equal(value_compare(grown, cut), 0);
        value_unref(grown);
        value_unref(cut);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_do_what_a_flat_list_does),
        cmocka_unit_test(objects_do_what_a_sorted_list_does),
        cmocka_unit_test(history_leaves_no_trace),
    };
    return cmocka_run_group_tests_name("trees", tests, NULL, NULL);
}

/* test_place.c -- places: interned once, kept while needed, gone afterwards. The walk has a test of
 * its own (tests/model/test_match.c). */
#include "lab.h"
#include "store/place.h"
#include "value/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct world {
    lab_env *env;
    hd_heap *heap;
    hd_pool *pool;
    places ps;
    uint32_t home;
} world;

static hd_status world_try_open(world *w, lab_env *env) {
    *w = (world){ .env = env };
    hd_status status = hd_heap_open(lab_env_of(env), NULL, &w->heap);
    if (!status) status = hd_pool_open(w->heap, &w->pool);
    if (!status) status = places_init(&w->ps, lab_env_of(env), w->heap);
    struct key *space = status ? NULL : key_intern(w->heap, "main", 4);
    if (!status && !space) status = HD_NOMEM;
    if (!status) status = places_home(&w->ps, space, HD_SCOPE_SPACE, NULL, false, &w->home);
    key_unref(space);
    return status;
}

static void world_close(world *w) {
    if (w->ps.at) places_fini(&w->ps);
    hd_pool_close(w->pool);
    if (w->heap) hd_heap_close(w->heap);
}

static int open_world(void **state) {
    static world w;
    assert_int_equal(world_try_open(&w, lab_env_open()), HD_OK);
    *state = &w;
    return 0;
}
static int close_world(void **state) {
    world *w = *state;
    places_check(&w->ps);
    world_close(w);
    lab_env_close(w->env);
    return 0;
}

static hd_status doc_of(world *w, const char *id, place_id *out) {
    struct key *k = key_intern(w->heap, id, strlen(id));
    if (!k) return HD_NOMEM;
    hd_status status = places_doc(&w->ps, w->home, k, out);
    key_unref(k);
    return status;
}

static hd_status inner_of(world *w, place_id doc, const char *pointer, place_id *out) {
    hd_path path;
    hd_status status = path_parse(w->heap, pointer, strlen(pointer), &path, NULL);
    if (status) return status;
    status = places_inner(&w->ps, doc, path, out);
    path_unref(w->heap, path);
    return status;
}

static place_id doc_at(world *w, const char *id) {
    place_id doc;
    assert_int_equal(doc_of(w, id, &doc), HD_OK);
    return doc;
}
static place_id inner_at(world *w, place_id doc, const char *pointer) {
    place_id at;
    assert_int_equal(inner_of(w, doc, pointer, &at), HD_OK);
    return at;
}

static void an_address_is_one_place(void **state) {
    world *w = *state;
    place_id n = doc_at(w, "n"), m = doc_at(w, "m");
    assert_int_not_equal(n, m);
    assert_int_equal(doc_at(w, "n"), n);
    place_id ab = inner_at(w, n, "/a/b");
    assert_int_equal(inner_at(w, n, "/a/b"), ab);
    assert_int_equal(inner_at(w, n, ""), n);
    assert_int_not_equal(inner_at(w, m, "/a/b"), ab);
    assert_true(place_is_doc(&w->ps, n));
    assert_false(place_is_doc(&w->ps, ab));
    assert_int_equal(place_at(&w->ps, ab)->root, n);
}

static void homes_are_told_apart_by_scope_instance_and_meta(void **state) {
    world *w = *state;
    struct key *space = key_intern(w->heap, "main", 4), *me = key_intern(w->heap, "me", 2);
    struct key *you = key_intern(w->heap, "you", 3);
    uint32_t user, other, meta, again;
    assert_int_equal(places_home(&w->ps, space, HD_SCOPE_USER, me, false, &user), HD_OK);
    assert_int_equal(places_home(&w->ps, space, HD_SCOPE_USER, you, false, &other), HD_OK);
    assert_int_equal(places_home(&w->ps, space, HD_SCOPE_USER, me, true, &meta), HD_OK);
    assert_int_equal(places_home(&w->ps, space, HD_SCOPE_USER, me, false, &again), HD_OK);
    assert_true(user != other && user != meta && user != w->home && user == again);
    key_unref(space);
    key_unref(me);
    key_unref(you);
}

static void a_new_place_shows_what_is_there(void **state) {
    world *w = *state;
    place_id n = doc_at(w, "n");
    hd_value v = hd_json_parse(w->pool, "{\"a\":{\"b\":[1,2,3]}}", 19, NULL);
    place_show(place_at(&w->ps, n), hd_value_ref(v), 1);
    assert_int_equal(hd_value_as_int(place_at(&w->ps, inner_at(w, n, "/a/b/1"))->value, 0), 2);
    assert_int_equal(hd_value_as_int(place_at(&w->ps, inner_at(w, n, "/a/b/length"))->value, 0), 3);
    assert_false(hd_value_exists(place_at(&w->ps, inner_at(w, n, "/a/b/7"))->value));
    assert_false(hd_value_exists(place_at(&w->ps, inner_at(w, n, "/a/b/1/c"))->value));
}

static void a_place_that_nobody_needs_is_gone_with_its_parents(void **state) {
    world *w = *state;
    place_id n = doc_at(w, "n");
    place_id abc = inner_at(w, n, "/a/b/c"), abd = inner_at(w, n, "/a/b/d");
    place_ref(&w->ps, abc);
    place_ref(&w->ps, abd);
    place_unref(&w->ps, abc);
    places_check(&w->ps);
    assert_int_not_equal(place_at(&w->ps, n)->first_child, 0); /* /a/b/d needs them */
    place_unref(&w->ps, abd);
    places_check(&w->ps);
    assert_int_equal(place_at(&w->ps, n)->first_child, 0);
    uint32_t count = w->ps.count;
    place_ref(&w->ps, inner_at(w, n, "/x/y/z/w")); /* takes their records */
    assert_int_equal(w->ps.count, count);
}

static void a_watched_or_pinned_place_stays(void **state) {
    world *w = *state;
    place_id n = doc_at(w, "n"), a = inner_at(w, n, "/a"), b = inner_at(w, n, "/b");
    place_at(&w->ps, a)->watch = 1;
    place_at(&w->ps, b)->in.flags |= DOC_PINNED;
    place_ref(&w->ps, a);
    place_ref(&w->ps, b);
    place_unref(&w->ps, a);
    place_unref(&w->ps, b);
    assert_int_equal(inner_at(w, n, "/a"), a);
    assert_int_equal(inner_at(w, n, "/b"), b);
    place_at(&w->ps, a)->watch = 0;
}

static void places_on_one_way_are_related(void **state) {
    world *w = *state;
    place_id n = doc_at(w, "n"), m = doc_at(w, "m");
    place_id a = inner_at(w, n, "/a"), ab = inner_at(w, n, "/a/b"), ac = inner_at(w, n, "/a/c");
    assert_true(place_related(&w->ps, a, ab));
    assert_true(place_related(&w->ps, ab, a));
    assert_true(place_related(&w->ps, n, ac));
    assert_false(place_related(&w->ps, ab, ac));
    assert_false(place_related(&w->ps, ab, inner_at(w, m, "/a/b")));
}

static void a_path_that_is_too_deep_is_refused_and_leaves_nothing(void **state) {
    world *w = *state;
    static char pointer[2 * 70000];
    size_t n = 0;
    for (int i = 0; i < 60000; i++) {
        pointer[n++] = '/';
        pointer[n++] = 'a';
    }
    place_id doc = doc_at(w, "n"), at;
    assert_int_equal(inner_of(w, doc, pointer, &at), HD_LIMIT);
    assert_int_equal(place_at(&w->ps, doc)->first_child, 0);
}

static void nobody_watches(void *ctx, place_id id, bool shape, hd_value before, hd_value after) {
    fail_msg("nobody watches");
}

/* C134: what a change of one member costs does not depend on how many members are read. */
static uint64_t cost_of_one(world *w, const char *id, int readers) {
    place_id doc = doc_at(w, id);
    hd_value v = hd_object();
    for (int i = 0; i < 2000; i++)
        v = hd_object_set(w->pool, v, hd_value_as_text(hd_string_f(w->pool, "k%d", i), ""),
                          hd_null());
    place_show(place_at(&w->ps, doc), hd_value_ref(v), 0);
    for (int i = 0; i < readers; i++) {
        char pointer[32];
        snprintf(pointer, sizeof pointer, "/k%d", i);
        place_ref(&w->ps, inner_at(w, doc, pointer));
    }
    hd_value after = hd_object_set(w->pool, v, "k3", hd_bool(true));
    uint64_t walked = w->ps.walked;
    place_show(place_at(&w->ps, doc), hd_value_ref(after), 1);
    place_walk(&w->ps, doc, v, nobody_watches, NULL);
    hd_value_unref(v);
    return w->ps.walked - walked;
}

static void the_cost_of_a_change_does_not_depend_on_the_readers_beside_it(void **state) {
    world *w = *state;
    uint64_t few = cost_of_one(w, "few", 17), many = cost_of_one(w, "many", 1024);
    assert_int_equal(few, many);
    assert_true(many < 8);
}

static void intern_without_memory(lab_env *env, void *ctx) {
    world w;
    hd_status status = world_try_open(&w, env);
    place_id doc = 0, at = 0;
    if (!status) status = doc_of(&w, "n", &doc);
    for (int i = 0; i < 40 && doc; i++) {
        char pointer[32];
        snprintf(pointer, sizeof pointer, "/a/b%d/c", i);
        if (!inner_of(&w, doc, pointer, &at)) place_ref(&w.ps, at);
        places_check(&w.ps);
    }
    world_close(&w);
}

static void interning_survives_every_failed_allocation(void **state) {
    assert_true(lab_each_allocation_failure(intern_without_memory, NULL) > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_address_is_one_place),
        T(homes_are_told_apart_by_scope_instance_and_meta),
        T(a_new_place_shows_what_is_there),
        T(a_place_that_nobody_needs_is_gone_with_its_parents),
        T(a_watched_or_pinned_place_stays),
        T(places_on_one_way_are_related),
        T(a_path_that_is_too_deep_is_refused_and_leaves_nothing),
        T(the_cost_of_a_change_does_not_depend_on_the_readers_beside_it),
        cmocka_unit_test(interning_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}

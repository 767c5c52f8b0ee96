/* Links: made of their parts, one representation each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "value_world.h"

#include <string.h>

#include <heddle/value.h>
#include "value/link.h"
#include "value/path.h"

static hd_value make(world *w, const char *space, hd_scope scope, const char *id,
                     const char *path) {
    return hd_link_make(w->pool, &(hd_link){ space, scope, id, path });
}

static void the_parts_come_back(void **state) {
    world w = world_open();
    hd_link link;
    hd_value v = make(&w, "garden", HD_SCOPE_SESSION, "~id", "/a/0/b~1c");
    assert_int_equal(hd_value_kind(v), HD_KIND_LINK);
    assert_true(hd_value_link(v, &link));
    assert_string_equal(link.space, "garden");
    assert_int_equal(link.scope, HD_SCOPE_SESSION);
    assert_string_equal(link.id, "~id");
    assert_string_equal(link.path, "/a/0/b~1c");
    world_close(&w);
}

static void parts_left_out_stay_out(void **state) {
    world w = world_open();
    hd_link link;
    assert_true(hd_value_link(make(&w, NULL, HD_SCOPE_HERE, NULL, ""), &link));
    assert_null(link.space);
    assert_null(link.id);
    assert_null(link.path);
    assert_int_equal(link.scope, HD_SCOPE_HERE);
    assert_true(hd_value_equal(make(&w, NULL, HD_SCOPE_HERE, "a", ""),
                               make(&w, NULL, HD_SCOPE_HERE, "a", NULL)));
    world_close(&w);
}

static void only_links_are_links(void **state) {
    world w = world_open();
    hd_link link = { .id = "left over" };
    assert_false(hd_value_link(hd_object(), &link));
    assert_null(link.id);
    assert_false(hd_value_link((hd_value){ 0 }, &link));
    assert_false(hd_value_link(hd_failed(HD_NOMEM), &link));
    world_close(&w);
}

static void malformed_parts_are_refused(void **state) {
    world w = world_open();
    const hd_link bad[] = {
        { .path = "a" },
        { .path = "/~" },
        { .path = "/~2" },
        { .path = "/\xff" },
        { .id = "" },
        { .space = "" },
        { .id = "a\nb" },
        { .space = "\x7f" },
        { .id = "\xc3" },
        { .space = "\x01ok" },
        { .scope = (hd_scope)77 },
        { .id = "ok", .path = "no" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hd_value_status(hd_link_make(w.pool, &bad[i])), HD_SYNTAX);
    }
    world_close(&w);
}

static void equality_is_by_every_part(void **state) {
    world w = world_open(), other = world_open();
    hd_value a = make(&w, "s", HD_SCOPE_USER, "i", "/p");
    assert_true(hd_value_equal(a, make(&w, "s", HD_SCOPE_USER, "i", "/p")));
    assert_true(hd_value_equal(a, make(&other, "s", HD_SCOPE_USER, "i", "/p")));
    assert_false(hd_value_equal(a, make(&w, "t", HD_SCOPE_USER, "i", "/p")));
    assert_false(hd_value_equal(a, make(&w, NULL, HD_SCOPE_USER, "i", "/p")));
    assert_false(hd_value_equal(a, make(&w, "s", HD_SCOPE_SPACE, "i", "/p")));
    assert_false(hd_value_equal(a, make(&w, "s", HD_SCOPE_USER, "j", "/p")));
    assert_false(hd_value_equal(a, make(&w, "s", HD_SCOPE_USER, "i", "/q")));
    assert_false(hd_value_equal(a, make(&other, "s", HD_SCOPE_USER, "i", NULL)));
    assert_false(hd_value_equal(a, hd_object()));
    world_close(&other);
    world_close(&w);
}

/* The path of a link is interned, so that following it compares integers. */
static void the_path_is_interned(void **state) {
    world w = world_open();
    hd_value v = make(&w, NULL, HD_SCOPE_HERE, NULL, "/items/3");
    hd_path path;
    assert_int_equal(hd_path_intern(w.heap, "/items/3", &path, NULL), HD_OK);
    assert_int_equal(link_of(v)->path, path);
    assert_int_equal(link_of(make(&w, NULL, HD_SCOPE_HERE, NULL, NULL))->path, HD_PATH_ROOT);
    world_close(&w);
}

static void make_links(lab_env *env, void *ctx) {
    (void)ctx;
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    if (hd_heap_open(lab_env_of(env), NULL, &heap) == HD_OK && hd_pool_open(heap, &pool) == HD_OK) {
        char path[600] = "/a/b";
        memset(path + 4, 'x', 500);
        hd_link link = { .space = path + 4, .id = path + 8, .path = path };
        hd_value v = hd_link_make(pool, &link);
        assert_true(hd_value_exists(v) || lab_env_failed(env));
        if (!hd_value_exists(v)) assert_int_equal(hd_value_status(v), HD_NOMEM);
    }
    hd_pool_close(pool);
    hd_heap_close(heap);
}

static void any_allocation_may_fail(void **state) {
    assert_true(lab_each_allocation_failure(make_links, NULL) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_come_back),       cmocka_unit_test(parts_left_out_stay_out),
        cmocka_unit_test(only_links_are_links),      cmocka_unit_test(malformed_parts_are_refused),
        cmocka_unit_test(equality_is_by_every_part), cmocka_unit_test(the_path_is_interned),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

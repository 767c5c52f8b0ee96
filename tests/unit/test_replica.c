/* test_replica.c -- confirmed state, layers and announcements; and what is left when there is no
 * memory for them. */
#include "lab_store.h"
#include "store/admit.h"
#include "store/memory/memory.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "store_world.h"

static place *place_named(lab_runtime *r, const char *name) {
    return place_at(&lab_replica(r)->places, lab_cell(r, name).id);
}

/* ---- layers */

static void a_document_without_pending_commits_has_no_record_beside_it(void **state) {
    lab_write(a, "n", "1");
    assert_int_not_equal(place_named(a, "n")->doc.over, 0);
    lab_settle(l);
    assert_int_equal(place_named(a, "n")->doc.over, 0);
    assert_int_equal(place_named(a, "n")->doc.seq, 1);
}

static void a_frame_is_folded_under_pending_patches(void **state) {
    lab_write(a, "n", "{\"x\":1}");
    lab_settle(l);
    assert_cell(b, "n", "{\"x\":1}");
    lab_do(b, "set n#/mine 1");
    lab_do(a, "set n#/x 2");
    lab_pump(a);
    lab_heard(b);
    lab_hear(b);
    assert_heard(b, "integrate n={\"mine\":1,\"x\":2}");
    assert_cell(b, "n", "{\"mine\":1,\"x\":2}");
}

static void a_pending_patch_that_no_longer_applies_is_skipped(void **state) {
    lab_write(a, "n", "{\"x\":{}}");
    lab_settle(l);
    assert_cell(b, "n", "{\"x\":{}}");
    lab_do(b, "set n#/x/y 1");
    lab_do(a, "set n 5");
    lab_pump(a);
    lab_hear(b);
    assert_cell(b, "n", "5");
}

/* A document of which nothing is known has changed: that concerns every place in it, beside and below
 * each other. */
static void what_is_touched_is_touched_everywhere(void **state) {
    static const char *const cells[] = {
        "n", "n#/a", "n#/a/x", "n#/a/x/y", "n#/b", "n#/b/z", "n#/c"
    };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) lab_cell(a, cells[i]);
    replica_touch(lab_replica(a), lab_cell(a, "n").id, false);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        assert_int_equal(place_named(a, cells[i])->rev, lab_replica(a)->rev);
}

static void frames_of_documents_that_nobody_knows_are_not_integrated(void **state) {
    lab_write(a, "n", "1");
    lab_settle(l);
    assert_int_equal(lab_replica(b)->places.documents, 0);
    assert_heard(b, "");
}

static void a_followed_space_is_integrated_whole(void **state) {
    assert_status(hd_runtime_follow(lab_rt(b), "main"), HD_OK);
    lab_do(a, "set n 1; set m 2");
    lab_do(a, "set other/o 1");
    lab_settle(l);
    assert_heard(b, "integrate n=1 m=2");
    lab_do(a, "set n 2");
    lab_do(a, "set n 3");
    lab_settle(l);
    assert_heard(b, "integrate n=2; integrate n=3");
}

/* The state of a document that was never seen before may be ahead of the frame that brings it. */
static void following_begins_with_what_is_there(void **state) {
    lab_do(a, "set n 1");
    lab_settle(l);
    assert_status(hd_runtime_follow(lab_rt(b), "main"), HD_OK);
    lab_do(a, "set n 2");
    lab_do(a, "set n 3");
    lab_pump(a);
    lab_pump(b);
    assert_cell(b, "n", "3");
    lab_check(b);
}

static void look_at_m(const hd_notice *notice, void *ctx) { lab_read_cell(ctx, "m"); }

/* A listener may read what nobody has read before: as of the frame it hears of. */
static void a_document_loaded_by_a_listener_belongs_to_the_new_snapshot(void **state) {
    lab_do(a, "set n 1; set m 1");
    lab_settle(l);
    assert_cell(b, "n", "1");
    assert_status(hd_runtime_listen(lab_rt(b), look_at_m, b), HD_OK);
    lab_do(a, "set n 2; set m 2");
    lab_pump(a);
    lab_pump(b);
    assert_cell(b, "m", "2");
    hd_runtime_unlisten(lab_rt(b), look_at_m, b);
}

static uint64_t group_heard;
static hd_commit_class class_heard;
static void hear_group(const hd_notice *notice, void *ctx) {
    group_heard = notice->group;
    class_heard = notice->commit_class;
}

static void groups_are_told_with_the_notice(void **state) {
    assert_status(hd_runtime_listen(lab_rt(a), hear_group, NULL), HD_OK);
    lab_do(a, "group 7; set n 1");
    assert_int_equal(group_heard, 7);
    assert_int_equal(class_heard, HD_COMMIT_SOURCE);
    lab_do(a, "set n 2");
    assert_int_equal(group_heard, 0);
    hd_runtime_unlisten(lab_rt(a), hear_group, NULL);
    lab_do(a, "group 8; set n 3");
    assert_int_equal(group_heard, 0);
}

/* ---- late documents */

static void a_late_document_is_pending_and_then_announced(void **state) {
    lab *late = lab_open_with((lab_options){ .load_late = true });
    lab_runtime *x = lab_runtime_open(late, "x"), *y = lab_runtime_open(late, "y");
    assert_cell(x, "n", "!HD_PENDING");
    lab_pump(x);
    assert_cell(x, "n", "-");
    lab_write(x, "n", "1");
    lab_pump(x);
    assert_cell(y, "n", "!HD_PENDING");
    assert_cell(y, "n", "!HD_PENDING");
    lab_pump(y);
    assert_heard(y, "load n=1");
    assert_cell(y, "n", "1");
    lab_close(late);
}

/* ---- a state from outside: resync */

static void a_resync_moves_forward_only(void **state) {
    lab_write(a, "n", "1");
    lab_settle(l);
    assert_cell(b, "n", "1");
    replica *r = lab_replica(b);
    place_id n = lab_cell(b, "n").id;
    lab_heard(b);
    r->polling = true; /* as the authority does it */
    replica_frame_begin(r, HD_COMMIT_SOURCE);
    assert_status(replica_frame_state(r, n, 1, hd_int(NULL, 7)), HD_OK); /* what we have already */
    assert_status(replica_frame_end(r), HD_OK);
    assert_heard(b, "");
    replica_frame_begin(r, HD_COMMIT_SOURCE);
    assert_status(replica_frame_state(r, n, 9, (hd_value){ 0 }), HD_OK);
    assert_status(replica_frame_end(r), HD_OK);
    r->polling = false;
    assert_heard(b, "integrate n=-");
    assert_int_equal(place_named(b, "n")->doc.seq, 9);
}

/* ---- no memory: nothing is half done, and it works when there is memory again */

typedef void (*story)(lab_runtime *x, lab_runtime *y);

static void check_world(lab *w) {
    for (lab_runtime *r = lab_first(w); r; r = lab_next(r)) replica_check(lab_replica(r));
    heads_check(memory_heads(lab_memory(w)));
}

static void expect_either(const lab_env *world, hd_status status) {
    if (!lab_env_failed(world)) assert_status(status, HD_OK);
}

static void a_commit(lab_runtime *x, lab_runtime *y) {
    lab_do(x, "get n; set n 1; set m {\"a\":[1,2]}; append l 1");
    lab_do(x, "increment m#/c 1; remove m#/a/0; meta n k 1");
    lab_pump(x);
}

static void a_refusal(lab_runtime *x, lab_runtime *y) {
    lab_do(x, "set n 1; set o 1");
    lab_pump(x);
    lab_pump(y);
    lab_do(y, "get n; set m {\"x\":1}; set k 1");
    lab_do(y, "get m#/x; set p 1");
    lab_do(x, "set n 2");
    lab_pump(x);
    lab_send(y);
    lab_do(y, "get p; set q 1");
    lab_pump(y);
}

static void a_frame(lab_runtime *x, lab_runtime *y) {
    lab_read_cell(y, "n");
    lab_read_cell(y, "n#/deep/er");
    lab_do(y, "set n#/mine 1");
    lab_do(x, "set n {\"deep\":{\"er\":1}}; set m 1");
    lab_pump(x);
    lab_pump(y);
    lab_do(x, "set n#/deep/er 2; remove m");
    lab_pump(x);
    lab_pump(y);
}

static void a_load(lab_runtime *x, lab_runtime *y) {
    lab_do(x, "set n {\"a\":{\"b\":1}}; set m {\"$link\":{\"id\":\"n\",\"path\":\"/a\"}}");
    lab_pump(x);
    lab_read_cell(y, "m#/b");
    lab_read_cell(y, "other/x#/a/b");
}

static void a_following(lab_runtime *x, lab_runtime *y) {
    hd_runtime_follow(lab_rt(y), "main");
    lab_do(x, "set n 1; set m 2");
    lab_do(x, "set n 2");
    lab_pump(x);
    lab_pump(y);
}

static void a_precondition(lab_runtime *x, lab_runtime *y) {
    lab_do(x, "absent n; set n 1");
    lab_do(y, "absent n; set n 2");
    lab_pump(x);
    lab_pump(y);
    lab_do(y, "equal n 1; set m 1");
    lab_pump(y);
}

static void a_patch(lab_runtime *x, lab_runtime *y) {
    lab_do(x, "set n {\"a\":1}");
    lab_do(x, "set n#/b 1; patch n [{\"op\":\"set\",\"path\":\"/a\",\"value\":2},"
              "{\"op\":\"set\",\"path\":\"/a/x\",\"value\":2}]");
    lab_do(x, "patch n [{\"op\":\"set\",\"path\":\"/a\",\"value\":2},"
              "{\"op\":\"append\",\"path\":\"/l\",\"value\":2}]");
    lab_pump(x);
}

static void a_volatile_document(lab_runtime *x, lab_runtime *y) {
    char script[512] = "set n 1";
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        hd_cell_set_volatile(lab_rt(x), lab_cell(x, name));
        size_t n = strlen(script);
        snprintf(script + n, sizeof script - n, "; set %s 1", name);
    }
    lab_do(x, script); /* all of it, or nothing */
    lab_pump(x);
}

static void same_everywhere(lab_runtime *x, lab_runtime *y) {
    static const char *const docs[] = { "n", "m", "l", "o", "p", "q", "k" };
    for (size_t i = 0; i < sizeof docs / sizeof *docs; i++)
        assert_string_equal(lab_read_cell(x, docs[i]), lab_read_cell(y, docs[i]));
}

/* There is memory again. Returns whether there had been none; say so again at the end, since the
 * loop over allocations asks. */
static bool recover(lab_env *world) {
    bool failed = lab_env_failed(world);
    lab_env_fail_at(world, 0);
    return failed;
}
static void fail_again(lab_env *world) {
    const hd_env *env = lab_env_of(world);
    lab_env_fail_at(world, 1);
    assert_null(env->alloc(NULL, 0, 1, env->ctx));
}

static void tell(lab_env *world, void *ctx) {
    lab *w = lab_open_with((lab_options){ .world = world });
    hd_status status;
    bool failed = false;
    lab_runtime *x = lab_runtime_try(w, "x", NULL, &status);
    expect_either(world, status);
    lab_runtime *y = x ? lab_runtime_try(w, "y", NULL, &status) : NULL;
    expect_either(world, status);
    if (y) {
        (*(story *)ctx)(x, y);
        check_world(w);
        failed = recover(world);
        lab_settle(w);
        check_world(w);
        same_everywhere(x, y);
        assert_int_equal(lab_replica(x)->pending_count, 0);
        lab_do(x, "set n \"after\"");
        lab_settle(w);
        assert_cell(y, "n", "\"after\"");
    }
    if (!y) failed = recover(world);
    lab_close(w);
    if (failed) fail_again(world);
}

static void every_allocation_may_fail(story s) {
    uint64_t allocations = lab_each_allocation_failure(tell, &s);
    assert_true(allocations > 0);
}

#define STORY(name)                                                                                \
    static void name##_survives_every_failed_allocation(void **state) {                            \
        every_allocation_may_fail(name);                                                           \
    }
STORY(a_commit)
STORY(a_refusal)
STORY(a_frame)
STORY(a_load)
STORY(a_following)
STORY(a_precondition)
STORY(a_patch)
STORY(a_volatile_document)

#define T(name) cmocka_unit_test_setup_teardown(name, open_two, close_all)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_document_without_pending_commits_has_no_record_beside_it),
        T(a_frame_is_folded_under_pending_patches),
        T(a_pending_patch_that_no_longer_applies_is_skipped),
        T(what_is_touched_is_touched_everywhere),
        T(frames_of_documents_that_nobody_knows_are_not_integrated),
        T(a_followed_space_is_integrated_whole),
        T(following_begins_with_what_is_there),
        T(a_document_loaded_by_a_listener_belongs_to_the_new_snapshot),
        T(groups_are_told_with_the_notice),
        T(a_resync_moves_forward_only),
        cmocka_unit_test(a_late_document_is_pending_and_then_announced),
        cmocka_unit_test(a_commit_survives_every_failed_allocation),
        cmocka_unit_test(a_refusal_survives_every_failed_allocation),
        cmocka_unit_test(a_frame_survives_every_failed_allocation),
        cmocka_unit_test(a_load_survives_every_failed_allocation),
        cmocka_unit_test(a_following_survives_every_failed_allocation),
        cmocka_unit_test(a_precondition_survives_every_failed_allocation),
        cmocka_unit_test(a_patch_survives_every_failed_allocation),
        cmocka_unit_test(a_volatile_document_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("replica", tests, NULL, NULL);
}

/* test_memo.c -- memos: their form, and the last of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/memo.h"
#include "value/json_read.h"
#include "value/key.h"
#include "value/object.h"
#include <stdio.h>
#include <string.h>

static lab_env *world;
static hd_heap *heap;
static memos all;
static struct key *spaces[2];
static uint64_t seqs[2];
static char text[2048];

static uint64_t seq_of(void *ctx, const char *space, size_t length) {
    for (int i = 0; i < 2; i++)
        if (!strncmp(key_bytes(spaces[i]), space, length)) return seqs[i];
    return 0;
}
static const memo_point now = { NULL, seq_of };

static int open_memos(bool overlay) {
    world = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
    memos_init(&all, lab_env_of(world), heap, overlay);
    spaces[0] = key_intern(heap, "main", 4);
    spaces[1] = key_intern(heap, "other", 5);
    seqs[0] = 10;
    seqs[1] = 20;
    return 0;
}
static int set_up(void **state) { return open_memos(false); }
static int set_up_overlay(void **state) { return open_memos(true); }
static int tear_down(void **state) {
    memos_check(&all);
    memos_fini(&all);
    key_unref(spaces[0]);
    key_unref(spaces[1]);
    hd_heap_close(heap);
    lab_env_close(world); /* aborts on a leak */
    return 0;
}

static void apply(const char *json, uint64_t at) {
    hd_value extra = json_read(heap, json, strlen(json), NULL);
    if (memo_fault(extra)) fail_msg("%s", memo_fault(extra));
    assert_int_equal(memos_apply(&all, extra, &now, at), HD_OK);
    value_unref(extra);
    memos_check(&all);
}

static bool is_refused(const char *json) {
    hd_value extra = json_read(heap, json, strlen(json), NULL);
    bool refused = memo_fault(extra);
    value_unref(extra);
    return refused;
}

static bool print_memo(void *ctx, const memo *m) {
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s %s@%d,%d;", m->text[MEMO_NAME],
             m->text[MEMO_INSTANCE], m->text[MEMO_INSTANCE + 1],
             (int)hd_value_as_int(object_get_bytes(m->seqs, "main", 4), -1),
             (int)hd_value_as_int(object_get_bytes(m->seqs, "other", 5), -1));
    return true;
}
/* "name text@seq,seq;" for each memo */
static const char *told(const char *piece) {
    text[0] = '\0';
    memos_tell(&all, piece, 0, print_memo, NULL);
    return text;
}

#define MEMO(name, text, cells) "[\"" name "\",\"\",\"" text "\",\"f\",\"\",\"" cells "\"]"
#define EXTRA(items)            "{\"nodes\":[" items "]}"

/* ---- the form */

/* C294: what is missing or of another kind is refused. */
static void what_is_not_of_the_form_is_refused(void **state) {
    assert_false(is_refused(EXTRA(MEMO("main:p:a", "one", "main/x#/y\\n?~main/z!\\n=main/w"))));
    assert_false(is_refused("{\"gone\":[[\"main:p:a\",\"user:ann\"],[\"main:p:a\",\"gates\"]]}"));
    assert_true(is_refused("[]"));
    assert_true(is_refused("{\"nodes\":{}}"));
    assert_true(is_refused(EXTRA(MEMO("main:a", "one", ""))));
    assert_true(is_refused(EXTRA("[\"main:p:a\",\"\",\"one\",\"f\"]")));
    assert_true(is_refused(EXTRA("[\"main:p:a\",\"\",\"one\",\"f\",\"\",{}]")));
    /* As formats before the fourth had it. */
    assert_true(is_refused(EXTRA("[\"main:p:a\",\"\",\"f\",{\"r\":[\"main/x\"]}]")));
    assert_true(is_refused(EXTRA("[\"main:p:a\",\"\",\"f\"]")));
    assert_true(is_refused("{\"gone\":[[\"main:p:a\"]]}"));
}

/* What the texts say is known to the author alone. */
static void any_texts_are_kept(void **state) {
    apply(EXTRA(MEMO("main:p:a", "short", "nothing\\n?~=\\n/x\\n\\n@user/x\\nmain@x/y")), 1);
    assert_string_equal(told("main:p"), "main:p:a short@10,-1;");
}

/* ---- the last memo counts */

static void a_memo_is_as_of_the_spaces_that_it_names(void **state) {
    apply(EXTRA(MEMO("main:p:b", "one", "main/x") "," MEMO("main:p:a", "one", "other/y") "," MEMO(
              "main:p:c", "one", "main/x\\nother/y")),
          1);
    assert_string_equal(told("main:p"), "main:p:b "
                                        "one"
                                        "@10,-1;main:p:c "
                                        "one"
                                        "@10,20;"
                                        "main:p:a "
                                        "one"
                                        "@-1,20;");
    assert_string_equal(told("main:q"), "");
}

static void a_memo_replaces_the_one_before(void **state) {
    apply(EXTRA(MEMO("main:p:a", "one", "main/x")), 1);
    seqs[0] = 11;
    apply(EXTRA(MEMO("main:p:a", "two", "main/x")), 2);
    assert_string_equal(told("main:p"), "main:p:a "
                                        "two"
                                        "@11,-1;");
}

static void a_deleted_memo_is_not_told(void **state) {
    apply(EXTRA(MEMO("main:p:a", "one", "main/x") "," MEMO("main:p:b", "one", "main/x")), 1);
    apply("{\"gone\":[[\"main:p:a\",\"\"],[\"main:p:none\",\"\"]]}", 2);
    assert_string_equal(told("main:p"), "main:p:b "
                                        "one"
                                        "@10,-1;");
}

/* As of a node that leaves and is registered again under its name before the seal. */
static void a_memo_beside_its_deletion_stays(void **state) {
    apply("{\"gone\":[[\"main:p:a\",\"\"]],\"nodes\":[" MEMO("main:p:a", "one", "main/x") "]}", 1);
    assert_string_equal(told("main:p"), "main:p:a "
                                        "one"
                                        "@10,-1;");
}

/* ---- over memos in a file */

static void over_a_file_deletions_are_remembered(void **state) {
    apply(EXTRA(MEMO("main:p:a", "two", "main/x")), 1);
    apply("{\"gone\":[[\"main:p:a\",\"\"]]}", 2);
    const memo_entry *e = memos_find(&all, "main:p:a", "");
    assert_true(e && memo_is_gone(e));
    apply("{\"gone\":[[\"main:p:b\",\"\"]]}", 3);
    e = memos_find(&all, "main:p:b", "");
    assert_true(e && memo_is_gone(e));
    assert_string_equal(told("main:p"), "");
    memos_trim(&all, 2);
    assert_null(memos_find(&all, "main:p:a", ""));
    assert_non_null(memos_find(&all, "main:p:b", ""));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(what_is_not_of_the_form_is_refused),
        EACH(any_texts_are_kept),
        EACH(a_memo_is_as_of_the_spaces_that_it_names),
        EACH(a_memo_replaces_the_one_before),
        EACH(a_deleted_memo_is_not_told),
        EACH(a_memo_beside_its_deletion_stays),
        cmocka_unit_test_setup_teardown(over_a_file_deletions_are_remembered, set_up_overlay,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_store.c -- the invariants of the store, S1 to S12, each by name.
 *
 * Runs on memory, or on a file with HD_STORE=sqlite. */
#define _DEFAULT_SOURCE
#include "lab_store.h"
#include "base/sabotage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static lab *l;
static lab_runtime *a, *b, *c;

static int open_three(void **state) {
    l = lab_open();
    a = lab_runtime_open(l, "a");
    b = lab_runtime_open(l, "b");
    c = lab_runtime_open(l, "c");
    return 0;
}
static int close_all(void **state) {
    lab_close(l);
    return 0;
}

/* Everybody comes to rest. Runtimes of other processes look into a file again after a while, so a
 * little time passes there. */
static void settle(lab *world) {
    lab_settle(world);
    if (!lab_is_sqlite(world)) return;
    lab_env_advance_ms(lab_world(world), 100);
    lab_settle(world);
}

/* ---- S1: an acknowledged source or event commit is present for ever */

static void s1_what_was_acknowledged_is_there_after_every_reader_has_gone(void **state) {
    lab_fate *f = lab_do(a, "set n 3");
    assert_fate(f, HD_PENDING);
    lab_pump(a);
    assert_fate(f, HD_OK);
    lab_runtime_close(a);
    lab_runtime_close(b);
    lab_runtime_close(c);
    lab_runtime *later = lab_runtime_open(l, "later");
    assert_cell(later, "n", "3");
}

static void s1_what_was_acknowledged_survives_the_loss_of_its_writer(void **state) {
    lab_fate *kept = lab_do(a, "set n 3");
    lab_pump(a);
    lab_cut(a);
    lab_fate *lost = lab_do(a, "set n 4");
    lab_pump(a);
    assert_fate(kept, HD_OK);
    assert_fate(lost, HD_PENDING);
    lab_runtime_drop(a);
    settle(l);
    assert_cell(b, "n", "3");
}

/* The removal may be refused: then what is stored shows again. */
static void s1_a_document_is_not_volatile_while_its_removal_may_be_refused(void **state) {
    lab_write(a, "x", "1");
    settle(l);
    lab_do(a, "remove x");
    assert_cell(a, "x", "-");
    assert_int_equal(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "x")), HD_BUSY);
    settle(l);
    assert_int_equal(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "x")), HD_OK);
    lab_write(a, "x", "2");
    settle(l);
    assert_cell(a, "x", "2");
    assert_cell(b, "x", "-");
}

/* A write that says what is visible already is not nothing when what is visible may yet go. */
static void s1_a_write_that_repeats_a_pending_one_stands_by_itself(void **state) {
    lab_write(a, "x", "0");
    lab_write(a, "y", "0");
    settle(l);
    assert_cell(b, "y", "0");
    lab_fate *first = lab_do(a, "get y; set x 1");
    lab_fate *same = lab_do(a, "set x 1");
    lab_write(b, "y", "1");
    lab_pump(b);
    settle(l);
    assert_fate(first, HD_STALE);
    assert_fate(same, HD_OK);
    assert_cell(a, "x", "1");
    assert_cell(b, "x", "1");
}

/* ---- S2: an accepted read saw exactly the accepted writes below its seq */

static void s2_a_read_that_has_become_old_is_refused(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_fate *copy = lab_do(b, "get n; set copy 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(copy, HD_STALE);
    assert_cell(b, "copy", "-");
    assert_cell(b, "n", "2");
}

static void s2_the_repair_comes_ahead_of_the_verdict(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_heard(b);
    lab_do(b, "get n; set copy 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_pump(b);
    assert_heard(b, "commit copy=1; integrate n=2; revert copy=-");
}

static void s2_a_blind_write_is_never_stale(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    lab_fate *blind = lab_do(b, "set n 5");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(blind, HD_OK);
    assert_cell(b, "n", "5");
    settle(l);
    assert_cell(a, "n", "5");
}

/* The basis is where the read was, not where the replica is when the commit is sent. */
static void s2_a_frame_between_read_and_sending_does_not_move_the_basis(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    lab_fate *copy = lab_do(b, "get n; set copy 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_hear(b);
    assert_cell(b, "n", "2");
    lab_pump(b);
    assert_fate(copy, HD_STALE);
}

static void s2_a_read_through_a_pending_layer_keeps_its_true_basis(void **state) {
    lab_write(a, "n", "{\"x\":1,\"y\":1}");
    settle(l);
    assert_cell(b, "n", "{\"x\":1,\"y\":1}");
    lab_fate *first = lab_do(b, "set n#/x 2");
    lab_write(a, "n#/y", "2");
    lab_pump(a);
    lab_fate *second = lab_do(b, "get n; set copy 1"); /* saw y = 1 through the layer of `first` */
    lab_pump(b);
    assert_fate(first, HD_OK);
    assert_fate(second, HD_STALE);
}

static void s2_own_layers_are_no_conflict(void **state) {
    lab_write(b, "n", "1");
    settle(l);
    lab_fate *first = lab_do(b, "get n; set n 2");
    lab_fate *second = lab_do(b, "get n; set n 3");
    lab_pump(b);
    assert_fate(first, HD_OK);
    assert_fate(second, HD_OK);
}

#define LINK_TO(id) "{\"$link\":{\"id\":\"" id "\"}}"

/* C363: what was read as absent below /l, and /l becomes a link: it is found behind the link now. */
static void read_below_what_becomes_a_link(const char *before) {
    lab_dof(b, "set t {\"a\":42}; set s {\"l\":%s}; set seen 0", before);
    settle(l);
    lab_write(b, "s#/l", LINK_TO("t"));
    lab_pump(b);
    lab_fate *f = lab_do(a, "get s#/l/a; set seen 1");
    assert_string_equal(f->reads[0].seen, "-");
    lab_pump(a);
    assert_fate(f, HD_STALE);
    settle(l);
    assert_cell(a, "s#/l/a", "42");
}

static void s2_a_link_that_appears_makes_reads_below_it_stale(void **state) {
    read_below_what_becomes_a_link("{}");
    read_below_what_becomes_a_link("null");
    read_below_what_becomes_a_link("7");
    lab_do(b, "remove s#/l");
    settle(l);
    lab_write(b, "s#/l", LINK_TO("t"));
    lab_pump(b);
    lab_fate *f = lab_do(a, "get s#/l/a; set seen 2");
    lab_pump(a);
    assert_fate(f, HD_STALE);
}

static void s2_a_write_through_a_link_that_has_moved_is_refused(void **state) {
    lab_do(a, "set s {\"l\":" LINK_TO("t") "}; set t {}; set u {}");
    settle(l);
    lab_write(b, "s#/l", LINK_TO("u"));
    lab_pump(b);
    lab_fate *f = lab_do(a, "set s#/l/a 1");
    lab_pump(a);
    assert_fate(f, HD_STALE);
    settle(l);
    assert_cell(a, "t", "{}");
}

/* C364: blind writers whose writes partly repeat what they see: either order would have set both back. */
static void s2_a_write_that_changes_nothing_is_claimed(void **state) {
    lab_do(a, "set d {\"x\":1,\"y\":1}");
    settle(l);
    lab_do(b, "set d#/x 2; set d#/y 1");
    lab_pump(b);
    lab_fate *f = lab_do(a, "set d#/x 1; set d#/y 2");
    lab_pump(a);
    assert_fate(f, HD_STALE);
    settle(l);
    assert_cell(a, "d", "{\"x\":2,\"y\":1}");
}

static void s2_a_removal_of_nothing_is_claimed(void **state) {
    lab_do(a, "set d {\"y\":1}");
    settle(l);
    lab_do(b, "set d#/x 2; set d#/y 1");
    lab_pump(b);
    lab_fate *f = lab_do(a, "remove d#/x; set d#/y 2");
    lab_pump(a);
    assert_fate(f, HD_STALE);
}

static void s2_there_and_back_is_claimed(void **state) {
    lab_do(a, "set d {\"x\":1}; set e 1");
    settle(l);
    lab_do(b, "set d#/x 2; set e 1");
    lab_pump(b);
    lab_fate *f = lab_do(a, "set d#/x 5; set d#/x 1; set e 2");
    lab_pump(a);
    assert_fate(f, HD_STALE);
}

static void s2_a_set_after_an_increment_stands_by_itself(void **state) {
    lab_do(a, "set n 1");
    settle(l);
    lab_write(b, "n", "5");
    lab_pump(b);
    lab_fate *f = lab_do(a, "increment n 1; set n 2");
    settle(l);
    assert_fate(f, HD_OK);
    assert_cell(b, "n", "2");
}

/* It has read a pending commit, so its place is behind that one, and x is another by then. */
static void s2_a_commit_that_only_repeats_is_judged_where_it_read_a_pending_one(void **state) {
    lab_do(a, "set x 1; set p 0");
    settle(l);
    lab_do(b, "get p; set x 2");
    lab_pump(b);
    lab_fate *pending = lab_do(a, "set p 1"), *f = lab_do(a, "get p; set x 1");
    lab_pump(a);
    assert_fate(pending, HD_OK);
    assert_fate(f, HD_STALE);
    settle(l);
    assert_cell(a, "x", "2");
}

static void s2_a_commit_that_only_repeats_is_not_submitted(void **state) {
    lab_do(a, "set x 1");
    settle(l);
    lab_fate *f = lab_do(a, "get x; set x 1");
    assert_int_equal(f->local_seq, 0);
    lab_pump(a);
    assert_fate(f, HD_OK);
}

/* ---- S3: overlap may only over-approximate */

static void s3_a_read_of_another_place_is_no_conflict(void **state) {
    lab_write(a, "n", "{\"x\":1,\"y\":1}");
    settle(l);
    lab_fate *other = lab_do(b, "get n#/y; set copy 1");
    lab_write(a, "n#/x", "2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(other, HD_OK);
}

static void s3_a_shape_read_conflicts_with_a_new_key_only(void **state) {
    lab_write(a, "n", "{\"x\":{\"v\":1}}");
    settle(l);
    lab_fate *below = lab_do(b, "shape n; set copy 1");
    lab_write(a, "n#/x/v", "2");
    lab_pump(a);
    settle(l);
    assert_fate(below, HD_OK);
    lab_fate *keys = lab_do(b, "shape n; set copy 2");
    lab_write(a, "n#/y", "1");
    lab_pump(a);
    lab_pump(b);
    assert_fate(keys, HD_STALE);
}

/* The containers that a deep set makes on its way are changes of shape above it, also when the
 * store has moved on since the writer looked. */
static void s3_containers_made_on_the_way_change_the_shape_above(void **state) {
    lab_write(a, "n", "{\"z\":1}");
    settle(l);
    assert_cell(b, "n", "{\"z\":1}");
    assert_cell(c, "n", "{\"z\":1}");
    lab_do(a, "set n#/x/y/z 1"); /* made at z = 1 ... */
    lab_write(c, "n#/z", "2");
    lab_pump(c);
    lab_pump(b);
    lab_fate *keys = lab_do(b, "shape n; set copy 1");
    lab_pump(a); /* ... and decided at z = 2 */
    lab_pump(b);
    assert_fate(keys, HD_STALE);
}

/* What a commit changes is told relative to layers below it; if one of those falls, more changes. */
static void s3_a_write_over_a_refused_layer_touches_all_it_says(void **state) {
    lab_write(a, "n", "{\"x\":0,\"y\":0}");
    lab_write(a, "other", "0");
    settle(l);
    assert_cell(b, "other", "0");
    assert_cell(c, "n#/x", "0");
    lab_fate *fallen = lab_do(b, "get other; set n#/x 1");
    lab_fate *over = lab_do(b, "set n {\"x\":1,\"y\":1}"); /* blind */
    lab_fate *reader = lab_do(c, "get n#/x; set copy 0");
    lab_write(a, "other", "1");
    lab_pump(a);
    lab_pump(b);
    assert_fate(fallen, HD_STALE);
    assert_fate(over, HD_OK);
    lab_pump(c);
    assert_fate(reader, HD_STALE); /* x went from 0 to 1 under it */
}

/* ---- S4: every commit stacked on a rejected one is rejected */

static void s4_what_is_stacked_on_a_refused_commit_falls_with_it(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_fate *bottom = lab_do(b, "get n; set x 1");
    lab_fate *middle = lab_do(b, "get x; set y 1");
    lab_fate *top = lab_do(b, "get y; set z 1");
    lab_fate *beside = lab_do(b, "set w 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(bottom, HD_STALE);
    assert_fate(middle, HD_DEAD_LAYER);
    assert_fate(top, HD_DEAD_LAYER);
    assert_cell(b, "z", "-");
    settle(l);
    assert_fate(beside, HD_OK);
    assert_cell(a, "w", "1");
    assert_cell(a, "y", "-");
}

static void s4_queued_commits_fall_without_being_sent(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_fate *bottom = lab_do(b, "get n; set x 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_send(b);
    lab_fate *top = lab_do(b, "get x; set y 1");
    size_t arrived = lab_arrived(l);
    lab_hear(b);
    assert_fate(bottom, HD_STALE);
    assert_fate(top, HD_DEAD_LAYER);
    lab_pump(b);
    assert_int_equal(lab_arrived(l), arrived);
}

/* However many fall, they fall at once: what their own verdicts say later is known. */
static void s4_a_cascade_is_one_change(void **state) {
    enum { STACKED = 50 };
    lab_fate *fates[STACKED];
    hd_store_stats before, after;
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_do(b, "get n; set x 0");
    for (int i = 0; i < STACKED; i++) fates[i] = lab_dof(b, "get x; set x %d", i + 1);
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_send(b);
    lab_heard(b);
    hd_runtime_store_stats(lab_rt(b), &before);
    lab_hear(b);
    settle(l);
    hd_runtime_store_stats(lab_rt(b), &after);
    for (int i = 0; i < STACKED; i++) {
        assert_fate(fates[i], HD_DEAD_LAYER);
        assert_int_equal(fates[i]->told, 1);
    }
    assert_heard(b, "integrate n=2; revert x=-");
    assert_int_equal(after.notices - before.notices, 2);
    assert_int_equal(after.rejected - before.rejected, STACKED + 1);
}

/* ---- S5: a session's commits resolve in local-seq order */

static int resolved[4];
static int resolved_count;
static void resolve(hd_status status, void *ctx) { resolved[resolved_count++] = *(int *)ctx; }

static void s5_verdicts_come_in_the_order_of_the_commits(void **state) {
    static int names[] = { 0, 1, 2, 3 };
    hd_runtime *rt = lab_rt(b);
    resolved_count = 0;
    for (int i = 0; i < 4; i++) {
        hd_tx *tx;
        assert_status(hd_tx_begin(rt, &tx), HD_OK);
        assert_status(hd_tx_set_int(tx, lab_cell(b, i % 2 ? "n" : "m"), i), HD_OK);
        assert_status(hd_tx_commit(tx, resolve, &names[i]), HD_OK);
        if (i == 1) lab_send(b);
    }
    settle(l);
    assert_int_equal(resolved_count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(resolved[i], i);
}

/* ---- S6: replica and authority never disagree on a fate */

static void s6_whoever_is_told_of_a_commit_is_told_the_same(void **state) {
    lab_write(a, "n", "0");
    settle(l);
    assert_cell(b, "n", "0");
    assert_cell(c, "n", "0");
    lab_fate *one = lab_do(b, "get n; set n 1");
    lab_fate *two = lab_do(c, "get n; set n 2");
    lab_send(c);
    lab_send(b);
    settle(l);
    assert_fate(two, HD_OK);
    assert_fate(one, HD_STALE);
    assert_int_equal(one->told, 1);
    assert_int_equal(two->told, 1);
    assert_cell(a, "n", "2");
    assert_cell(b, "n", "2");
    assert_cell(c, "n", "2");
}

/* ---- S7: no visible change without exactly one announcement, and the other way round */

static void s7_a_commit_is_announced_before_it_returns_and_its_verdict_is_silent(void **state) {
    lab_do(a, "set n 1");
    assert_heard(a, "commit n=1");
    settle(l);
    assert_heard(a, "");
}

static void s7_several_documents_make_one_notice(void **state) {
    lab_do(a, "set n 1; set m 2");
    assert_heard(a, "commit n=1 m=2");
    assert_cell(b, "n", "-");
    assert_cell(b, "m", "-");
    settle(l);
    assert_heard(b, "integrate n=1 m=2");
}

static void s7_a_frame_under_a_pending_layer_is_announced_when_the_layer_leaves(void **state) {
    lab_write(a, "n", "1");
    lab_write(a, "gate", "1");
    settle(l);
    assert_cell(b, "n", "1");
    assert_cell(b, "gate", "1");
    lab_heard(b);
    lab_fate *shadow = lab_do(b, "get gate; set n 9");
    assert_heard(b, "commit n=9");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_hear(b);
    assert_heard(b, ""); /* shadowed */
    lab_write(a, "gate", "2");
    lab_pump(a);
    lab_pump(b);
    assert_fate(shadow, HD_STALE);
    assert_heard(b, "integrate gate=2; revert n=2"); /* not 1: the flip shows what came under it */
}

static void s7_a_write_that_changes_nothing_is_silent(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    lab_heard(a);
    size_t arrived = lab_arrived(l);
    lab_fate *f = lab_do(a, "set n 1");
    settle(l);
    assert_fate(f, HD_OK);
    assert_heard(a, "");
    assert_int_equal(lab_arrived(l), arrived);
}

static void s7_there_and_back_in_one_transaction_is_silent(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    lab_heard(a);
    lab_do(a, "set n 2; set n 1");
    assert_heard(a, "");
}

static void s7_another_writers_same_value_is_silent(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_do(b, "set n 2");
    lab_heard(b);
    lab_do(a, "set n 2");
    lab_pump(a);
    settle(l);
    assert_heard(b, "");
    assert_cell(b, "n", "2");
}

/* ---- S8: commits are atomic, across documents and spaces */

static void s8_a_commit_is_seen_whole_or_not_at_all(void **state) {
    assert_cell(b, "n", "-");
    assert_cell(b, "other/m", "-");
    lab_do(a, "set n 1; set other/m 1");
    lab_pump(a);
    lab_heard(b);
    lab_pump(b);
    assert_heard(b, "integrate n=1 other/m=1");
}

static void s8_a_refused_commit_leaves_nothing_in_any_document(void **state) {
    lab_write(a, "n", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_heard(b);
    lab_do(b, "get n; set x 1; set other/y 1");
    lab_write(a, "n", "2");
    lab_pump(a);
    lab_pump(b);
    assert_heard(b, "commit x=1 other/y=1; integrate n=2; revert x=- other/y=-");
    settle(l);
    assert_cell(a, "x", "-");
    assert_cell(a, "other/y", "-");
}

/* ---- S9: a value is the fold of its log */

static void s9_all_kinds_of_operations_fold_alike_everywhere(void **state) {
    assert_cell(b, "n", "-");
    lab_do(a, "set n {\"list\":[1],\"sum\":1,\"gone\":1}");
    lab_do(a, "append n#/list 2; increment n#/sum 2");
    lab_do(a, "remove n#/gone; set n#/deep/er 1");
    lab_do(a, "remove n#/list/0");
    lab_do(a, "append n#/list 3; remove n#/list/1");
    settle(l);
    lab_runtime *fresh = lab_runtime_open(l, "fresh");
    const char *expected = "{\"deep\":{\"er\":1},\"list\":[2],\"sum\":3}";
    assert_cell(a, "n", expected);
    assert_cell(b, "n", expected);
    assert_cell(fresh, "n", expected);
}

static void s9_a_patch_that_no_longer_fits_is_skipped_on_every_side(void **state) {
    lab_write(a, "n", "{\"x\":{}}");
    settle(l);
    assert_cell(b, "n", "{\"x\":{}}");
    lab_fate *f = lab_do(b, "set n#/x/y 1");
    lab_write(a, "n", "5");
    lab_pump(a);
    lab_pump(b);
    assert_fate(f, HD_OK);
    settle(l);
    assert_cell(a, "n", "5");
    assert_cell(b, "n", "5");
}

/* ---- S10: one snapshot per transaction */

static void s10_a_transaction_sees_one_snapshot(void **state) {
    lab_write(a, "n", "1");
    lab_write(a, "m", "1");
    settle(l);
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, lab_cell(b, "n")), 0), 1);
    lab_do(a, "set n 2; set m 2");
    lab_pump(a);
    assert_status(hd_runtime_pump(lab_rt(b)), HD_USAGE);
    /* m was never loaded here: it comes as it was, not as it is. */
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, lab_cell(b, "m")), 0), 1);
    hd_tx_abort(tx);
    lab_pump(b);
    assert_cell(b, "m", "2");
}

static void s10_a_document_loaded_between_polls_belongs_to_the_old_snapshot(void **state) {
    lab_write(a, "n", "1");
    lab_write(a, "m", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_do(a, "set n 2; set m 2");
    lab_pump(a);
    assert_cell(b, "m", "1"); /* loaded now */
    assert_cell(b, "n", "1");
    lab_pump(b);
    assert_cell(b, "m", "2");
    assert_cell(b, "n", "2");
}

/* However long ago a document was changed before: what was written over it is one's own. */
static void s2_a_layer_of_ones_own_is_known_across_checkpoints(void **state) {
    lab_write(a, "n", "1");
    for (int i = 0; i < 3; i++) {
        lab_write(a, "m", i % 2 ? "1" : "2");
        settle(l);
        assert_status(hd_store_checkpoint(lab_rt(a), NULL), HD_OK);
    }
    lab_do(a, "set n 2");
    lab_fate *over = lab_do(a, "get n; set k 1");
    settle(l);
    assert_status(over->status, HD_OK);
}

/* Behind b's back a writes both and folds the log into the heads: what they were is nowhere any more. b
 * knows n, and has not loaded m. */
static void fold_behind_b(const char *change) {
    lab_write(a, "n", "1");
    lab_write(a, "m", "1");
    settle(l);
    assert_cell(b, "n", "1");
    lab_pump(b);
    lab_do(a, change);
    lab_pump(a);
    assert_status(hd_store_checkpoint(lab_rt(a), NULL), HD_OK);
}

/* Two reads in one transaction: of one state, in which the second is so much more than the first; or the
 * second is refused, and with it the transaction. */
static void assert_apart(const char *first, const char *then, int64_t more) {
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    int64_t x = hd_value_as_int(hd_tx_get(tx, lab_cell(b, first)), 0);
    hd_value v = hd_tx_get(tx, lab_cell(b, then));
    hd_status refused = hd_value_status(v);
    if (refused) assert_status(refused, HD_STALE);
    else assert_int_equal(hd_value_as_int(v, 0), x + more);
    hd_tx_set_int(tx, lab_cell(b, "seen"), x);
    assert_status(hd_tx_commit(tx, NULL, NULL), refused);
}

static void assert_one_snapshot(const char *first, const char *then) {
    assert_apart(first, then, 0);
}

static void assert_caught_up(const char *n, const char *m) {
    lab_pump(b);
    settle(l);
    assert_one_snapshot("n", "m");
    assert_cell(b, "n", n);
    assert_cell(b, "m", m);
}

static void s10_a_document_that_was_folded_meanwhile_is_no_part_of_the_snapshot(void **state) {
    fold_behind_b("set n 2; set m 2");
    assert_one_snapshot("n", "m");
    assert_one_snapshot("m", "n");
    assert_one_snapshot("n", "m");
    assert_caught_up("2", "2");
}

/* That a document is gone leaves no row to tell when. */
static void s10_a_document_that_was_deleted_and_folded_is_no_part_of_the_snapshot(void **state) {
    fold_behind_b("set n 0; remove m");
    assert_one_snapshot("n", "m");
    lab_pump(b);
    settle(l);
    assert_cell(b, "n", "0");
    assert_cell(b, "m", "-");
}

/* Who knows it as gone must not hear how that came about. */
static void s10_a_document_that_is_gone_is_not_told_of_again(void **state) {
    fold_behind_b("set n 2; set m 5");
    lab_do(a, "remove m");
    lab_pump(a);
    assert_status(hd_store_checkpoint(lab_rt(a), NULL), HD_OK);
    bool gone = !strcmp(lab_read_cell(b, "m"), "-");
    lab_heard(b);
    lab_pump(b);
    settle(l);
    if (gone) assert_heard(b, "integrate n=2");
    assert_cell(b, "m", "-");
}

/* By itself it is as good a snapshot as any: whoever looks at one document is never refused. */
static void s10_one_document_can_always_be_read(void **state) {
    fold_behind_b("set n 2; set m 2");
    bool newer = !strcmp(lab_read_cell(b, "m"), "2");
    assert_cell(b, "m", newer ? "2" : "1");
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, lab_cell(b, "m")), 0), newer ? 2 : 1);
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, lab_cell(b, "m")), 0), newer ? 2 : 1);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_one_snapshot("n", "m");
    assert_one_snapshot("m", "n");
    assert_caught_up("2", "2");
}

/* S2 holds there too. What it loads for its own sake is no part of anybody's snapshot either. */
static void s10_a_blind_write_is_not_stale_where_a_fold_was_met(void **state) {
    fold_behind_b("set n 2; set m 2");
    lab_fate *blind = lab_do(b, "increment m 1; append log 7");
    assert_status(blind->begun, HD_OK);
    assert_apart("n", "m", 1);
    assert_apart("m", "n", -1);
    lab_pump(b);
    settle(l);
    assert_fate(blind, HD_OK);
    assert_cell(b, "n", "2");
    assert_cell(b, "m", "3");
    assert_cell(a, "m", "3");
    assert_cell(a, "log", "[7]");
}

/* Nor is one that reads something that stood still: it claims what is true. */
static void s10_a_write_beside_a_read_is_judged_as_ever(void **state) {
    lab_write(a, "still", "1");
    settle(l);
    fold_behind_b("set n 2; set m 2");
    lab_fate *f = lab_do(b, "get n; increment m 1");
    lab_pump(b);
    settle(l);
    assert_fate(f, HD_STALE);
    f = lab_do(b, "get still; increment m 1");
    lab_pump(b);
    assert_fate(f, HD_OK);
    assert_cell(b, "m", "3");
}

/* ---- S11: replay is idempotent, with connection loss at every point */

/* Loses the line before step `at` of the same little history and mends it after the last; whatever
 * was lost, the outcome is the same. */
static void lose_at(int at) {
    lab *w = lab_open();
    lab_runtime *x = lab_runtime_open(w, "x"), *y = lab_runtime_open(w, "y");
    lab_write(y, "n", "0");
    settle(w);
    lab_fate *fates[3];
    for (int step = 0; step < 9; step++) {
        if (step == at) lab_cut(x);
        if (step % 3 == 0) fates[step / 3] = lab_do(x, "increment n 1; append log 1");
        else if (step % 3 == 1) lab_send(x);
        else lab_hear(x);
    }
    lab_mend(x);
    settle(w);
    for (int i = 0; i < 3; i++) {
        assert_fate(fates[i], HD_OK);
        assert_int_equal(fates[i]->told, 1);
    }
    assert_cell(x, "n", "3");
    assert_cell(y, "n", "3");
    assert_cell(y, "log", "[1,1,1]");
    lab_close(w);
}

static void s11_loss_at_every_point_and_replay_change_nothing(void **state) {
    for (int at = 0; at <= 9; at++) lose_at(at);
}

static void s11_a_lost_acknowledgement_is_given_again(void **state) {
    lab_fate *created = lab_do(a, "absent n; set n 1");
    lab_send(a); /* arrives ... */
    lab_cut(a);  /* ... and the answer does not */
    lab_pump(a);
    assert_fate(created, HD_PENDING);
    lab_mend(a); /* "absent" is not asked again of its own retry */
    lab_pump(a);
    assert_fate(created, HD_OK);
    assert_cell(a, "n", "1");
}

/* ---- S12: a reconnect brings the replica to the authority's current state */

static void s12_after_a_long_cut_everything_is_there(void **state) {
    lab_write(a, "n", "0");
    lab_write(a, "gone", "1");
    settle(l);
    assert_cell(b, "n", "0");
    assert_cell(b, "gone", "1");
    assert_cell(b, "new", "-");
    lab_cut(b);
    lab_fate *mine = lab_do(b, "set mine 1");
    lab_fate *old = lab_do(b, "get n; set copy 0");
    lab_pump(b);
    for (int i = 1; i <= 20; i++) {
        lab_dof(a, "set n %d", i);
        lab_pump(a);
    }
    lab_do(a, "remove gone; set new 1");
    lab_pump(a);
    lab_mend(b);
    settle(l);
    assert_fate(mine, HD_OK);
    assert_fate(old, HD_STALE);
    assert_cell(b, "n", "20");
    assert_cell(b, "gone", "-");
    assert_cell(b, "new", "1");
    assert_cell(a, "mine", "1");
    assert_cell(a, "copy", "-");
}

static void s12_a_new_session_sees_the_current_state(void **state) {
    lab_write(a, "n", "1");
    lab_pump(a);
    lab_cut(b);
    lab_do(b, "set n 2");
    lab_pump(b);
    lab_runtime_drop(b);
    lab_write(a, "n", "3");
    lab_pump(a);
    lab_runtime *again = lab_runtime_open(l, "again");
    assert_cell(again, "n", "3");
}

#define S(name) cmocka_unit_test_setup_teardown(name, open_three, close_all)

/* ---- negative controls: without the thing it is about, a test must fail */

/* In a process of its own, which ends without cleaning up after itself. */
static bool succeeds(struct CMUnitTest test) {
    test.teardown_func = NULL;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(0);
        _exit(_cmocka_run_group_tests("control", &test, 1, NULL, NULL) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void must_notice(unsigned what, struct CMUnitTest test) {
    const char *store = getenv("HD_STORE");
    if (!lab_sabotage(0) || (store && strcmp(store, "memory"))) skip();
    assert_true(succeeds(test));
    lab_sabotage(what);
    bool unnoticed = succeeds(test);
    lab_sabotage(0);
    assert_false(unnoticed);
}

static void without_the_doom_cascade_s4_fails(void **state) {
    struct CMUnitTest test = S(s4_queued_commits_fall_without_being_sent);
    must_notice(SABOTAGE_CASCADE, test);
}
static void without_the_announcement_of_the_flip_s7_fails(void **state) {
    struct CMUnitTest test = S(s7_a_frame_under_a_pending_layer_is_announced_when_the_layer_leaves);
    must_notice(SABOTAGE_FLIP, test);
}
static void without_the_true_basis_s2_fails(void **state) {
    struct CMUnitTest test = S(s2_a_frame_between_read_and_sending_does_not_move_the_basis);
    must_notice(SABOTAGE_BASIS, test);
}
static void without_the_mark_beside_the_effects_s11_fails(void **state) {
    struct CMUnitTest test = S(s11_a_lost_acknowledgement_is_given_again);
    must_notice(SABOTAGE_MARK, test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(s1_what_was_acknowledged_is_there_after_every_reader_has_gone),
        S(s1_what_was_acknowledged_survives_the_loss_of_its_writer),
        S(s1_a_document_is_not_volatile_while_its_removal_may_be_refused),
        S(s1_a_write_that_repeats_a_pending_one_stands_by_itself),
        S(s2_a_read_that_has_become_old_is_refused),
        S(s2_the_repair_comes_ahead_of_the_verdict),
        S(s2_a_blind_write_is_never_stale),
        S(s2_a_frame_between_read_and_sending_does_not_move_the_basis),
        S(s2_a_read_through_a_pending_layer_keeps_its_true_basis),
        S(s2_own_layers_are_no_conflict),
        S(s2_a_link_that_appears_makes_reads_below_it_stale),
        S(s2_a_write_through_a_link_that_has_moved_is_refused),
        S(s2_a_write_that_changes_nothing_is_claimed),
        S(s2_a_removal_of_nothing_is_claimed),
        S(s2_there_and_back_is_claimed),
        S(s2_a_set_after_an_increment_stands_by_itself),
        S(s2_a_commit_that_only_repeats_is_judged_where_it_read_a_pending_one),
        S(s2_a_commit_that_only_repeats_is_not_submitted),
        S(s3_a_read_of_another_place_is_no_conflict),
        S(s3_a_shape_read_conflicts_with_a_new_key_only),
        S(s3_containers_made_on_the_way_change_the_shape_above),
        S(s3_a_write_over_a_refused_layer_touches_all_it_says),
        S(s4_what_is_stacked_on_a_refused_commit_falls_with_it),
        S(s4_queued_commits_fall_without_being_sent),
        S(s4_a_cascade_is_one_change),
        S(s5_verdicts_come_in_the_order_of_the_commits),
        S(s6_whoever_is_told_of_a_commit_is_told_the_same),
        S(s7_a_commit_is_announced_before_it_returns_and_its_verdict_is_silent),
        S(s7_several_documents_make_one_notice),
        S(s7_a_frame_under_a_pending_layer_is_announced_when_the_layer_leaves),
        S(s7_a_write_that_changes_nothing_is_silent),
        S(s7_there_and_back_in_one_transaction_is_silent),
        S(s7_another_writers_same_value_is_silent),
        S(s8_a_commit_is_seen_whole_or_not_at_all),
        S(s8_a_refused_commit_leaves_nothing_in_any_document),
        S(s9_all_kinds_of_operations_fold_alike_everywhere),
        S(s9_a_patch_that_no_longer_fits_is_skipped_on_every_side),
        S(s10_a_transaction_sees_one_snapshot),
        S(s2_a_layer_of_ones_own_is_known_across_checkpoints),
        S(s10_a_document_loaded_between_polls_belongs_to_the_old_snapshot),
        S(s10_a_document_that_was_folded_meanwhile_is_no_part_of_the_snapshot),
        S(s10_a_document_that_was_deleted_and_folded_is_no_part_of_the_snapshot),
        S(s10_a_document_that_is_gone_is_not_told_of_again),
        S(s10_one_document_can_always_be_read),
        S(s10_a_blind_write_is_not_stale_where_a_fold_was_met),
        S(s10_a_write_beside_a_read_is_judged_as_ever),
        cmocka_unit_test(s11_loss_at_every_point_and_replay_change_nothing),
        S(s11_a_lost_acknowledgement_is_given_again),
        S(s12_after_a_long_cut_everything_is_there),
        S(s12_a_new_session_sees_the_current_state),
        cmocka_unit_test(without_the_doom_cascade_s4_fails),
        cmocka_unit_test(without_the_announcement_of_the_flip_s7_fails),
        cmocka_unit_test(without_the_true_basis_s2_fails),
        cmocka_unit_test(without_the_mark_beside_the_effects_s11_fails),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}

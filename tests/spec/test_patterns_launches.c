/* test_patterns_launches.c -- pieces that are launched with a commit, and what becomes of them when that
 * commit, their parent or their place does not last (area M, 271 to 274; 284). */
#include "piece_world.h"
#include "lab_events.h"

static bool count_entry(const hd_listing *entry, void *ctx) {
    (*(int *)ctx)++;
    return true;
}
static int documents(const char *space, const char *kind, const char *prefix) {
    int n = 0;
    assert_int_equal(hd_runtime_list(rt(), space, kind, prefix, count_entry, &n), HD_OK);
    return n;
}

/* Until every verdict is there and has been acted upon. */
static void conclude(void) {
    lab_idle(l);
    hd_runtime_sync(rt());
    lab_idle(l);
}

/* It runs, and follows its argument. */
static void assert_follows(hd_piece p) {
    assert_true(hd_piece_runs(rt(), p));
    lab_ran(l);
    hd_cell arguments = hd_cell_child(rt(), hd_piece_document(rt(), p), "arguments");
    assert_int_equal(hd_write_json(rt(), hd_cell_child(rt(), arguments, "x"), "9"), HD_OK);
    lab_settle(l);
    assert_ran(l, "twice show");
}

/* ---- a handler that never converges */

typedef struct quarrel {
    hd_runtime *rival;
    hd_cell hot;
    int left; /* how often it still gets in the way */
    hd_piece parent, launched;
    bool stops_parent;
} quarrel;

static quarrel quarrel_of(int times) {
    lab_runtime *b = lab_on(l, "b");
    quarrel q = { .rival = lab_rt(b), .hot = lab_cell(b, "hot"), .left = times };
    lab_on(l, "a");
    return q;
}

static void disturb(quarrel *q) {
    char text[16];
    if (q->left-- <= 0) return;
    snprintf(text, sizeof text, "%d", 1000 + q->left);
    assert_int_equal(hd_write_json(q->rival, q->hot, text), HD_OK);
    assert_int_equal(hd_runtime_sync(q->rival), HD_OK);
}

/* Launches a piece, and finds when it comes to commit that what it read has changed. */
static hd_status launch(lab_handler *self, hd_tx *tx, const hd_event *event) {
    quarrel *q = self->data;
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    hd_piece_spec spec = { .pattern = "watcher", .parent = q->parent };
    hd_status status = hd_tx_launch_piece(tx, &spec, &q->launched);
    disturb(q);
    return status;
}

/* C271, I10: the conflicts never end. While it was tried its pieces ran; in the end there are as many as
 * before, and nothing of the others is stored. */
static void a_handling_that_never_converges_leaves_no_piece(void **state) {
    quarrel q = quarrel_of(1000000);
    lab_outcome o = { 0 };
    hd_piece before = start_watcher("before");
    lab_settle(l);
    hd_runtime_sync(rt());
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "go", .reads = "hot", .body = launch, .data = &q);
    lab_fire(l, "go", "1", &o);
    conclude();
    assert_outcome(o, HD_REJECTED);
    assert_true(h->runs > 3);
    assert_string_equal(lab_failures(l), "go HD_REJECTED");
    assert_int_equal(running(), 1);
    assert_false(hd_piece_runs(rt(), q.launched));
    assert_int_equal(documents("main", "piece", NULL), 1);
    assert_follows(before);
}

/* I10: those that were tried and refused are stopped; that of the attempt which stands is one, and runs. */
static void of_many_attempts_one_piece_stays(void **state) {
    quarrel q = quarrel_of(3);
    lab_outcome o = { 0 };
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    lab_handler *h = lab_handle(l, .stream = "go", .reads = "hot", .body = launch, .data = &q);
    lab_fire(l, "go", "1", &o);
    conclude();
    assert_outcome(o, HD_OK);
    assert_int_equal(h->runs, 4);
    assert_int_equal(running(), 1);
    assert_int_equal(documents("main", "piece", NULL), 1);
    assert_follows(q.launched);
}

/* ---- a retry whose parent has gone */

/* C274: the first attempt is refused, and what it would have belonged to is stopped before the second:
 * that adds nothing. */
static void a_retry_adds_nothing_below_a_parent_that_has_gone(void **state) {
    quarrel q = quarrel_of(1);
    lab_outcome o = { 0 };
    q.parent = start_watcher("parent");
    lab_settle(l);
    lab_ran(l);
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "go", .reads = "hot", .body = launch, .data = &q);
    lab_fire(l, "go", "1", &o);
    while (!lab_event_stats(l).retries) lab_turn(l);
    assert_int_equal(h->runs, 1);
    hd_piece_stop(rt(), q.parent);
    assert_int_equal(running(), 0);
    lab_ran(l);
    conclude();
    assert_int_equal(h->runs, 2);
    assert_outcome(o, HD_NOT_FOUND);
    assert_int_equal(running(), 0);
    assert_false(hd_piece_runs(rt(), q.launched));
    assert_int_equal(documents("main", "piece", NULL), 1); /* the parent's */
    assert_ran(l, "go");                                   /* and no node of a piece */
}

/* ---- gated on the commit */

static hd_piece launch_gated(hd_tx *tx, const char *id, hd_piece parent) {
    hd_piece child;
    hd_piece_spec spec = { .id = id, .pattern = "watcher", .parent = parent, .after_commit = true };
    assert_int_equal(hd_tx_launch_piece(tx, &spec, &child), HD_OK);
    return child;
}

/* C272: its parent is stopped before the transaction ends, or before the store has decided. */
static void no_child_is_installed_below_a_parent_that_has_gone(bool before_the_commit) {
    hd_tx *tx;
    hd_piece parent = start_watcher("parent");
    lab_settle(l);
    lab_ran(l);
    lab_hold(lab_on(l, "a"));
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    hd_piece child = launch_gated(tx, "child", parent);
    if (before_the_commit) hd_piece_stop(rt(), parent);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_turn(l);
    assert_ran(l, ""); /* it waits for the verdict */
    if (!before_the_commit) hd_piece_stop(rt(), parent);
    lab_mend(lab_on(l, "a"));
    conclude();
    assert_int_equal(running(), 0);
    assert_false(hd_piece_runs(rt(), child));
    assert_ran(l, "");
}
static void c272_its_parent_stops_inside_the_transaction(void **state) {
    no_child_is_installed_below_a_parent_that_has_gone(true);
}
static void c272_its_parent_stops_while_the_commit_is_under_way(void **state) {
    no_child_is_installed_below_a_parent_that_has_gone(false);
}

/* ---- a place that was taken */

/* A launch of "x" that the store will refuse, and has not decided yet. */
static hd_piece launch_in_vain(bool gated) {
    hd_tx *tx;
    hd_piece p;
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    lab_set(l, "there", 1);
    hd_runtime_sync(rt());
    lab_hold(lab_on(l, "a"));
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    hd_tx_require_absent(tx, hd_cell_at(rt(), "main/there"));
    hd_piece_spec spec = { .id = "x", .pattern = "watcher", .after_commit = gated };
    assert_int_equal(hd_tx_launch_piece(tx, &spec, &p), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    return p;
}

/* I10: opening a piece that a transaction has launched and that runs does not save it: if the transaction is
 * refused there is no document, and the piece ends. */
static void an_open_does_not_save_a_piece_whose_launch_is_refused(void **state) {
    hd_piece launched = launch_in_vain(false), opened;
    lab_turn(l);
    assert_true(hd_piece_runs(rt(), launched));
    assert_int_equal(hd_piece_open(rt(), NULL, "x", &opened, NULL), HD_OK);
    assert_true(opened.id == launched.id && opened.generation == launched.generation);
    lab_mend(lab_on(l, "a"));
    conclude();
    assert_false(hd_piece_runs(rt(), opened));
    assert_int_equal(documents("main", "piece", NULL), 0);
    assert_int_equal(hd_piece_open(rt(), NULL, "x", &opened, NULL), HD_NOT_FOUND);
}

/* C273: the first owner of a place is stopped and another one started there; then the first one's commit
 * is refused. The second runs, is stored, and follows its input. */
static void a_replacement_survives(bool gated) {
    hd_piece first = launch_in_vain(gated);
    lab_turn(l);
    hd_piece_stop(rt(), first);
    hd_piece second = start_watcher("x");
    lab_mend(lab_on(l, "a"));
    conclude();
    assert_false(hd_piece_runs(rt(), first));
    assert_int_equal(running(), 1);
    assert_follows(second);
    assert_json(l, "main/x/d", "18.0");
    hd_runtime_sync(rt());
    assert_int_equal(documents("main", "piece", NULL), 1);
    assert_cell(lab_on(l, "b"), "x#/pattern", "\"watcher\"");
    lab_on(l, "a");
}
static void c273_a_replacement_of_a_piece_that_ran(void **state) { a_replacement_survives(false); }
static void c273_a_replacement_of_a_piece_that_waited(void **state) {
    a_replacement_survives(true);
}

/* ---- another space */

static hd_status launch_elsewhere(lab_handler *self, hd_tx *tx, const hd_event *event) {
    quarrel *q = self->data;
    hd_pool *pool = hd_tx_pool(tx);
    hd_value arguments = hd_object_set(pool, hd_object(), "x", event->payload);
    hd_piece_spec spec = { .space = "other", .pattern = "watcher", .arguments = arguments };
    hd_status status = hd_tx_launch_piece(tx, &spec, &q->launched);
    if (status) return status;
    return hd_tx_return(tx, hd_cell_link(rt(), pool, hd_piece_document(rt(), q->launched)));
}

/* C284: one result, in the space of the stream, which leads to the one piece in the other space. Whoever
 * repeats the event, here or in another program, rewrites neither. */
static void a_launch_into_another_space_is_one_result_there(void **state) {
    quarrel q = { 0 };
    char receipt[HD_EVENT_ID_SIZE + 64];
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    lab_handle(l, .stream = "go", .reads = "n", .body = launch_elsewhere, .data = &q);
    for (int i = 0; i < 3; i++) {
        lab_outcome o = { 0 };
        if (i == 2) {
            lab_on(l, "b");
            hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
            lab_handle(l, .stream = "go", .reads = "n", .body = launch_elsewhere, .data = &q);
        }
        lab_fire_id(l, "go", i ? "7" : "5", "once", &o);
        conclude();
        assert_outcome(o, i ? HD_EXISTS : HD_OK);
        assert_int_equal(documents("main", NULL, "receipt/"), 1);
        assert_int_equal(documents("other", NULL, "receipt/"), 0);
        assert_int_equal(documents("other", "piece", NULL), 1);
        assert_int_equal(documents("main", "piece", NULL), 0);
        assert_int_equal(running(), i < 2);
        snprintf(receipt, sizeof receipt, "main/receipt/%s#/arguments/x", o.id);
        assert_json(l, receipt, "5"); /* through the link */
    }
}

/* ---- a stop from inside */

static hd_cell follower(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "main/x"), twice, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* Changes what the piece reads, and stops it. */
static hd_status change_and_stop(hd_tx *tx) {
    hd_piece_stop(rt(), hd_piece_find(rt(), "main", "follower"));
    return hd_tx_set_int(tx, hd_cell_at(rt(), "main/x"), 5);
}
static hd_status stop_in_a_handler(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return change_and_stop(tx);
}
static hd_status stop_in_an_effect(lab_node *self, hd_tx *tx) {
    return lab_tx_number(self, tx, "go") > 0 ? change_and_stop(tx) : HD_OK;
}

/* C4: a piece that is stopped inside a run is over with that run: neither its computations nor its effects run
 * after it, also in the same pass. */
static void what_a_handler_stops_does_not_run_any_more(void **state) {
    lab_set(l, "x", 1);
    start_piece("follower", follower);
    lab_handle(l, .stream = "end", .reads = "x", .body = stop_in_a_handler);
    lab_settle(l);
    lab_ran(l);
    lab_fire(l, "end", "1", NULL);
    lab_idle(l);
    assert_ran(l, "end");
    assert_int_equal(running(), 0);
    assert_json(l, "main/follower/d", "2.0");
}
static void what_an_effect_stops_does_not_run_any_more(void **state) {
    lab_set(l, "x", 1);
    lab_add(l, .name = "first", .effect = true, .body = stop_in_an_effect);
    start_piece("follower", follower);
    lab_effect(l, "last", "x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "go", 1);
    lab_settle(l);
    assert_ran(l, "first last");
    assert_int_equal(running(), 0);
}

/* ---- an effect that launches */

static hd_status relaunch(lab_node *self, hd_tx *tx) {
    hd_piece p;
    lab_tx_number(self, tx, "go");
    return hd_tx_launch_piece(tx, &(hd_piece_spec){ .id = "kid", .pattern = "watcher" }, &p);
}
static void launching(const char *runtime) {
    lab_on(l, runtime);
    assert_int_equal(hd_pattern_register(rt(), "watcher", "1", watcher, NULL), HD_OK);
    lab_add(l, .name = "launcher", .body = relaunch, .effect = true);
    settle();
}
static void assert_one_kid(void) {
    assert_int_equal(running(), 1);
    assert_int_equal(documents("main", "piece", NULL), 1);
    assert_json(l, "main/kid/d", "2.0");
}

/* An effect that relaunches a piece yields one piece: however often it runs, in one life or in several,
 * whether they were ended or cut short, and in two programs at once. */
static void an_effect_that_relaunches_a_piece_yields_one_piece(void **state) {
    launching("a");
    assert_one_kid();
    lab_set(l, "go", 1);
    settle();
    assert_ran(l, "launcher twice show launcher");
    assert_one_kid();
    stop();
    launching("a");
    assert_ran(l, "launcher show"); /* it goes on: nothing of it is new */
    assert_one_kid();
    lab_runtime_drop(lab_on(l, "a"));
    lab_ran(l);
    launching("a");
    assert_ran(l, "launcher show");
    assert_one_kid();
    launching("b");
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_one_kid();
    lab_on(l, "a");
    assert_one_kid();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_handling_that_never_converges_leaves_no_piece),
        S(of_many_attempts_one_piece_stays),
        S(a_retry_adds_nothing_below_a_parent_that_has_gone),
        S(c272_its_parent_stops_inside_the_transaction),
        S(c272_its_parent_stops_while_the_commit_is_under_way),
        S(an_open_does_not_save_a_piece_whose_launch_is_refused),
        S(c273_a_replacement_of_a_piece_that_ran),
        S(c273_a_replacement_of_a_piece_that_waited),
        S(a_launch_into_another_space_is_one_result_there),
        S(what_a_handler_stops_does_not_run_any_more),
        S(what_an_effect_stops_does_not_run_any_more),
        S(an_effect_that_relaunches_a_piece_yields_one_piece),
    };
    LAB_EVERYWHERE(tests);
}

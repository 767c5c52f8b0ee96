/* test_patterns_pieces.c -- pieces: durable, started and stopped, launched with a transaction. */
#include "piece_world.h"

/* ---- life */

/* Its document says what it is; its sinks look as long as it runs. */
static void a_piece_runs_until_it_is_stopped(void **state) {
    hd_piece p = start_watcher("w");
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "w",
                "{\"arguments\":{\"x\":1},\"pattern\":\"watcher\",\"result\":{\"$link\":{"
                "\"id\":\"w/d\",\"scope\":\"space\",\"space\":\"main\"}},\"started\":1,"
                "\"version\":\"1\"}");
    lab_set(l, "w#/arguments/x", 2);
    lab_settle(l);
    assert_ran(l, "twice show");
    hd_piece_stop(rt(), p);
    assert_false(hd_piece_runs(rt(), p));
    assert_int_equal(hd_piece_result(rt(), p).id, 0);
    lab_set(l, "w#/arguments/x", 3);
    lab_settle(l);
    assert_ran(l, "");
    assert_json(l, "main/w/d", "4.0");
    assert_int_equal(running(), 0);
}

/* Started again it has the same nodes and documents, and counts. */
static void a_piece_can_be_started_again(void **state) {
    hd_piece_info info;
    hd_piece_stop(rt(), start_watcher("w"));
    hd_piece p = start_watcher("w");
    assert_int_equal(hd_piece_inspect(rt(), p, &info), HD_OK);
    assert_int_equal(info.started, 2);
    assert_int_equal(info.nodes, 2);
    assert_string_equal(info.pattern, "watcher");
    assert_string_equal(info.id, "w");
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_int_equal(hd_piece_find(rt(), "main", "w").id, p.id);
    assert_int_equal(hd_piece_document(rt(), p).id, hd_cell_at(rt(), "main/w").id);
}

/* One that runs already goes on: another start is another look at its arguments. */
static void starting_twice_is_one_piece(void **state) {
    hd_piece p = start_watcher("w"), q;
    lab_settle(l);
    lab_ran(l);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_value arguments = hd_object_set(pool, hd_object(), "x", hd_int(NULL, 7));
    hd_piece_spec spec = { .id = "w", .pattern = "watcher", .arguments = arguments };
    assert_int_equal(hd_piece_start(rt(), &spec, &q, NULL), HD_OK);
    hd_pool_close(pool);
    assert_int_equal(p.generation, q.generation);
    assert_int_equal(running(), 1);
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/w/d", "14.0");
}

/* What is in the store can be opened, and is not written by that. */
static void a_stored_piece_is_opened_as_it_is(void **state) {
    hd_piece p;
    hd_error error;
    hd_piece_stop(rt(), start_watcher("w"));
    lab_set(l, "w#/arguments/x", 5);
    assert_int_equal(hd_piece_open(rt(), "main", "w", &p, &error), HD_OK);
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/w/d", "10.0");
    hd_piece_info info;
    hd_piece_inspect(rt(), p, &info);
    assert_int_equal(info.started, 1);
    assert_int_equal(hd_piece_open(rt(), "main", "nothing", &p, &error), HD_NOT_FOUND);
    assert_non_null(strstr(error.message, "no piece"));
}

/* A piece stops with its children, and theirs. */
static void children_stop_with_their_parent(void **state) {
    hd_piece a = start_watcher("a"), b = start_under("b", a), c = start_under("c", b),
             d = start_watcher("d");
    assert_int_equal(running(), 4);
    hd_piece_stop(rt(), a);
    assert_int_equal(running(), 1);
    assert_false(hd_piece_runs(rt(), c));
    assert_true(hd_piece_runs(rt(), d));
}

static void note_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

static bool count_entry(const hd_listing *entry, void *ctx) {
    (*(int *)ctx)++;
    return true;
}

/* Pieces are documents of a kind, and can be listed; removed, nothing is left of one. */
static void pieces_are_listed_and_removed(void **state) {
    int count = 0;
    hd_piece a = start_watcher("a");
    start_watcher("b");
    lab_settle(l);
    hd_runtime_sync(rt());
    assert_int_equal(hd_runtime_list(rt(), "main", "piece", NULL, count_entry, &count), HD_OK);
    assert_int_equal(count, 2);
    assert_int_equal(hd_piece_remove(rt(), a), HD_OK);
    hd_runtime_sync(rt());
    assert_json(l, "a", "-");
    assert_json(l, "main/a/d", "-");
    assert_json(l, "main/b/d", "2.0");
    assert_int_equal(hd_piece_remove(rt(), a), HD_NOT_FOUND);
}

/* What is said beside a piece's results needs no room once it is stored: the room is another document's
 * from then on, for whoever shares the store too. */
static void a_new_document_is_not_taken_for_what_stood_there(void **state) {
    lab_runtime *b = lab_on(l, "b");
    lab_on(l, "a");
    start_watcher("w");
    lab_settle(l);
    hd_runtime_sync(rt());
    lab_set(l, "fresh", 1);
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_cell(b, "fresh", "1");
    assert_cell(b, "main/w/d", "2.0");
}

/* The same for what was read there: a document that somebody else makes meanwhile is noticed. */
static void a_new_document_that_was_read_is_noticed(void **state) {
    hd_status verdict = HD_PENDING;
    hd_tx *tx;
    lab_runtime *b = lab_on(l, "b");
    lab_on(l, "a");
    start_watcher("w");
    lab_settle(l);
    hd_runtime_sync(rt());
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    assert_false(hd_value_exists(hd_tx_get(tx, hd_cell_at(rt(), "main/hot"))));
    hd_tx_set_int(tx, hd_cell_at(rt(), "main/y"), 1);
    lab_write(b, "hot", "7");
    hd_runtime_sync(lab_rt(b));
    hd_tx_commit(tx, note_verdict, &verdict);
    hd_runtime_sync(rt());
    lab_idle(l);
    assert_status(verdict, HD_STALE);
}

/* ---- errors */

static hd_value fail_always(hd_tx *tx, hd_value in, void *ctx) {
    return hd_failed(hd_tx_fail(tx, HD_FAILED, "no such luck"));
}
static hd_cell unlucky(hd_build *b, void *ctx) {
    hd_cell d =
        hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), fail_always, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}
static void note_failure(const hd_failure *f, void *ctx) {
    snprintf(ctx, 200, "%s: %s in %s of %s (%s)", f->space, f->message, f->action, f->piece,
             f->pattern);
}

/* C315: an error says where it happened: action, piece, pattern, space. */
static void an_error_names_its_piece(void **state) {
    char text[200] = "";
    hd_piece p;
    hd_runtime_on_error(rt(), note_failure, text);
    hd_pattern_register(rt(), "unlucky", NULL, unlucky, NULL);
    hd_piece_start(rt(), &(hd_piece_spec){ .id = "u", .pattern = "unlucky" }, &p, NULL);
    lab_settle(l);
    assert_string_equal(text, "main: no such luck in main:u:d of u (unlucky)");
}

/* ---- events */

static hd_status add(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_cell count = hd_cell_at(hd_tx_runtime(tx), "main/counter/count");
    lab_note(l, "add");
    return hd_tx_set_int(
        tx, count, hd_value_as_int(hd_tx_get(tx, count), 0) + hd_value_as_int(event->payload, 1));
}
static hd_cell counter(hd_build *b, void *ctx) {
    hd_cell count = hd_build_state(b, "count", hd_int(NULL, 5));
    hd_build_handler(b, hd_build_stream(b, "add"), add, NULL, &count, 1);
    return hd_build_derive(b, "d", count, twice, NULL);
}

/* Seed 000, event handlers: state is kept, handlers write it, and go with the piece. */
static void handlers_write_the_state_of_a_piece(void **state) {
    hd_piece p;
    hd_pattern_register(rt(), "counter", "1", counter, NULL);
    hd_piece_spec spec = { .id = "counter", .pattern = "counter" };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    hd_cell stream = hd_piece_cell(rt(), p, "add");
    assert_int_equal(hd_event_send(rt(), stream, hd_int(NULL, 3), NULL), HD_OK);
    lab_settle(l);
    assert_json(l, "main/counter/d", "16.0");
    hd_piece_stop(rt(), p);
    lab_ran(l);
    lab_catch(l);
    hd_event_send(rt(), stream, hd_int(NULL, 3), NULL);
    lab_idle(l);
    assert_ran(l, "");
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK); /* its state is still there */
    lab_settle(l);
    assert_json(l, "main/counter/count", "8");
}

static hd_status poke(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)event, (void)ctx;
    hd_tx_log(tx, HD_LOG_INFO, "ouch");
    return hd_tx_fail(tx, HD_FAILED, "not today");
}
static hd_cell touchy(hd_build *b, void *ctx) {
    hd_build_handler(b, hd_build_stream(b, "poke"), poke, NULL, NULL, 0);
    return hd_build_state(b, "calm", hd_bool(true));
}
static bool note_piece(hd_log_entry *entry, void *ctx) {
    snprintf(ctx, 32, "%s", entry->piece);
    return false;
}

/* C315: so does that of a handler. */
static void an_error_in_a_handler_names_its_piece(void **state) {
    char text[200] = "", logged[32] = "";
    hd_piece p;
    hd_runtime_on_error(rt(), note_failure, text);
    hd_runtime_set_log(rt(), note_piece, logged);
    hd_pattern_register(rt(), "touchy", NULL, touchy, NULL);
    hd_piece_start(rt(), &(hd_piece_spec){ .id = "t", .pattern = "touchy" }, &p, NULL);
    lab_settle(l);
    assert_int_equal(hd_event_send(rt(), hd_piece_cell(rt(), p, "poke"), hd_null(), NULL), HD_OK);
    lab_idle(l);
    assert_string_equal(text, "main: not today in main/t/poke of t (touchy)");
    assert_string_equal(logged, "t");
}

/* ---- launches */

static hd_status outcome_status;
static hd_piece launched;

static void told(const char *id, hd_status status, void *ctx) { outcome_status = status; }

static hd_status launch(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_piece_spec spec = { .pattern = "watcher" };
    lab_note(l, "launch");
    hd_status status = hd_tx_launch_piece(tx, &spec, &launched);
    if (status) return status;
    return hd_value_as_bool(event->payload, true)
               ? HD_OK
               : hd_tx_fail(tx, HD_FAILED, "this one fails after launching");
}

static hd_cell launcher(void) {
    hd_handler handler;
    hd_cell stream = hd_cell_at(rt(), "main/launch");
    hd_handler_spec spec = { .stream = stream, .fn = launch, .reads_nothing = true };
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    assert_int_equal(hd_handler_register(rt(), &spec, &handler), HD_OK);
    outcome_status = HD_PENDING;
    return stream;
}

static void send_named(hd_cell stream, const char *id, bool ok) {
    hd_send_options options = { .id = id, .done = told };
    assert_int_equal(hd_event_send(rt(), stream, hd_bool(ok), &options), HD_OK);
    lab_idle(l);
    hd_runtime_sync(rt());
    lab_idle(l);
}

/* A handler launches a piece, which runs and stays. */
static void a_handler_launches_a_piece(void **state) {
    hd_cell stream = launcher();
    send_named(stream, NULL, true);
    assert_int_equal(outcome_status, HD_OK);
    assert_ran(l, "launch twice show");
    assert_int_equal(running(), 1);
    assert_true(hd_piece_runs(rt(), launched));
}

/* C271, I10: a handling that fails in the end leaves as many pieces as there were. */
static void a_failed_handling_leaves_no_piece(void **state) {
    hd_cell stream = launcher();
    lab_catch(l);
    send_named(stream, NULL, false);
    assert_int_equal(outcome_status, HD_FAILED);
    assert_int_equal(running(), 0);
    assert_false(hd_piece_runs(rt(), launched));
}

/* C281, I11: the event is delivered again; there is one piece, and it still follows its input. */
static void a_redelivered_launch_is_one_piece(void **state) {
    hd_cell stream = launcher();
    send_named(stream, "once", true);
    assert_int_equal(outcome_status, HD_OK);
    hd_piece first = launched;
    send_named(stream, "once", true);
    assert_int_equal(outcome_status, HD_EXISTS);
    assert_int_equal(running(), 1);
    assert_true(hd_piece_runs(rt(), first));
    lab_ran(l);
    hd_cell arguments = hd_cell_child(rt(), hd_piece_document(rt(), first), "arguments");
    hd_write_json(rt(), hd_cell_child(rt(), arguments, "x"), "9");
    lab_settle(l);
    assert_ran(l, "twice show");
}

/* C282, I11: two programs handle the same event, the second commits first: its piece stays, and
 * follows its input; the other one's is stopped. */
static void of_two_racing_launches_the_winners_piece_lives(void **state) {
    hd_send_options options = { .id = "once", .done = told };
    hd_cell stream = launcher();
    lab_cut(lab_on(l, "a"));
    assert_int_equal(hd_event_send(rt(), stream, hd_bool(true), &options), HD_OK);
    lab_idle(l);
    hd_piece loser = launched;
    assert_int_equal(running(), 1);
    lab_on(l, "b");
    stream = launcher();
    send_named(stream, "once", true);
    assert_int_equal(outcome_status, HD_OK);
    hd_piece winner = launched;
    lab_mend(lab_on(l, "a"));
    hd_runtime_sync(rt());
    lab_idle(l);
    assert_int_equal(outcome_status, HD_EXISTS);
    assert_false(hd_piece_runs(rt(), loser));
    assert_int_equal(running(), 0);
    lab_on(l, "b");
    assert_true(hd_piece_runs(rt(), winner));
    lab_ran(l);
    hd_cell arguments = hd_cell_child(rt(), hd_piece_document(rt(), winner), "arguments");
    hd_write_json(rt(), hd_cell_child(rt(), arguments, "x"), "9");
    lab_settle(l);
    assert_ran(l, "twice show");
}

static hd_status launch_elsewhere(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_pool *pool = hd_tx_pool(tx);
    hd_value arguments = hd_object_set(pool, hd_object(), "x", event->payload);
    hd_piece_spec spec = { .space = "other", .pattern = "watcher", .arguments = arguments };
    hd_status status = hd_tx_launch_piece(tx, &spec, &launched);
    if (status) return status;
    hd_cell document = hd_piece_document(rt(), launched);
    return hd_tx_return(tx, hd_cell_link(rt(), pool, document));
}

/* C284: a piece in another space: the one receipt is where the stream is, and leads to it; a
 * repetition with another payload leaves it as it is. */
static void a_launch_into_another_space_has_one_receipt(void **state) {
    hd_handler handler;
    char id[HD_EVENT_ID_SIZE], name[128];
    hd_cell stream = hd_cell_at(rt(), "main/launch");
    hd_handler_spec spec = { .stream = stream, .fn = launch_elsewhere, .reads_nothing = true };
    hd_send_options options = { .id = "once", .done = told };
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    assert_int_equal(hd_handler_register(rt(), &spec, &handler), HD_OK);
    for (int64_t i = 5; i < 7; i++) {
        assert_int_equal(hd_event_send(rt(), stream, hd_int(NULL, i), &options), HD_OK);
        lab_idle(l);
        hd_runtime_sync(rt());
        lab_idle(l);
        assert_int_equal(outcome_status, i == 5 ? HD_OK : HD_EXISTS);
    }
    assert_int_equal(running(), 1);
    assert_int_equal(hd_event_id_of(rt(), stream, "once", 0, id), HD_OK);
    snprintf(name, sizeof name, "main/receipt/%s#/arguments/x", id); /* through the link */
    assert_json(l, name, "5");
}

/* C272: gated on the commit, and its parent is stopped before: the child is not installed. */
static void a_launch_is_not_installed_when_its_parent_has_gone(void **state) {
    hd_tx *tx;
    hd_piece child, parent = start_watcher("parent");
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    hd_piece_spec spec = {
        .id = "child", .pattern = "watcher", .parent = parent, .after_commit = true
    };
    assert_int_equal(hd_tx_launch_piece(tx, &spec, &child), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    hd_piece_stop(rt(), parent);
    lab_idle(l);
    hd_runtime_sync(rt());
    lab_idle(l);
    assert_int_equal(running(), 0);
    assert_ran(l, "");
}

/* The same with a parent that stays: it begins when the commit is confirmed. */
static void a_gated_launch_begins_with_its_confirmation(void **state) {
    hd_tx *tx;
    hd_piece child, parent = start_watcher("parent");
    lab_settle(l);
    lab_ran(l);
    hd_tx_begin(rt(), &tx);
    hd_piece_spec spec = {
        .id = "child", .pattern = "watcher", .parent = parent, .after_commit = true
    };
    hd_tx_launch_piece(tx, &spec, &child);
    hd_tx_commit(tx, NULL, NULL);
    hd_runtime_sync(rt());
    lab_idle(l);
    assert_ran(l, "twice show");
    assert_true(hd_piece_runs(rt(), child));
    assert_int_equal(running(), 2);
}

/* A launch whose commit will be refused, which is not known yet. */
static hd_piece launch_in_vain(void) {
    hd_tx *tx;
    hd_piece p;
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    lab_set(l, "there", 1);
    hd_runtime_sync(rt());
    hd_tx_begin(rt(), &tx);
    hd_tx_require_absent(tx, hd_cell_at(rt(), "main/there"));
    hd_piece_spec spec = { .id = "x", .pattern = "watcher" };
    assert_int_equal(hd_tx_launch_piece(tx, &spec, &p), HD_OK);
    hd_tx_commit(tx, NULL, NULL);
    return p;
}

/* C273: a launch fails late, when another piece has taken its place: that one is not touched. */
static void a_late_failure_does_not_touch_a_replacement(void **state) {
    hd_piece first = launch_in_vain();
    hd_piece_stop(rt(), first);
    hd_piece second = start_watcher("x");
    lab_idle(l);
    hd_runtime_sync(rt());
    lab_idle(l);
    assert_false(hd_piece_runs(rt(), first));
    assert_true(hd_piece_runs(rt(), second));
    assert_int_equal(running(), 1);
}

/* A launch whose commit is refused goes with it. */
static void a_refused_commit_takes_its_piece_along(void **state) {
    launch_in_vain();
    hd_runtime_sync(rt());
    lab_idle(l);
    assert_int_equal(running(), 0);
    assert_json(l, "x", "-");
}

/* An aborted transaction launches nothing. */
static void an_aborted_transaction_launches_nothing(void **state) {
    hd_tx *tx;
    hd_piece p;
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    hd_tx_begin(rt(), &tx);
    assert_int_equal(
        hd_tx_launch_piece(tx, &(hd_piece_spec){ .id = "x", .pattern = "watcher" }, &p), HD_OK);
    hd_tx_abort(tx);
    lab_idle(l);
    assert_int_equal(running(), 0);
    assert_json(l, "x", "-");
}

static hd_status relaunch(hd_tx *tx, void *ctx) {
    hd_value n = hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/go"));
    (void)n;
    lab_note(l, "effect");
    return hd_tx_launch_piece(tx, &(hd_piece_spec){ .id = "one", .pattern = "watcher" }, &launched);
}

/* An effect that relaunches a piece yields one piece. */
static void an_effect_that_relaunches_yields_one_piece(void **state) {
    hd_pattern_register(rt(), "watcher", "1", watcher, NULL);
    hd_effect(rt(), "relaunch", relaunch, NULL);
    lab_idle(l);
    assert_ran(l, "effect twice show");
    assert_true(hd_node_find(rt(), "main:one:d").id); /* no child of the effect */
    lab_set(l, "go", 1);
    lab_idle(l);
    assert_ran(l, "effect");
    assert_int_equal(running(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_piece_runs_until_it_is_stopped),
        S(a_piece_can_be_started_again),
        S(an_error_in_a_handler_names_its_piece),
        S(starting_twice_is_one_piece),
        S(a_stored_piece_is_opened_as_it_is),
        S(children_stop_with_their_parent),
        S(pieces_are_listed_and_removed),
        S(a_new_document_is_not_taken_for_what_stood_there),
        S(a_new_document_that_was_read_is_noticed),
        S(an_error_names_its_piece),
        S(handlers_write_the_state_of_a_piece),
        S(a_handler_launches_a_piece),
        S(a_failed_handling_leaves_no_piece),
        S(a_redelivered_launch_is_one_piece),
        S(of_two_racing_launches_the_winners_piece_lives),
        S(a_launch_into_another_space_has_one_receipt),
        S(a_launch_is_not_installed_when_its_parent_has_gone),
        S(a_gated_launch_begins_with_its_confirmation),
        S(a_late_failure_does_not_touch_a_replacement),
        S(a_refused_commit_takes_its_piece_along),
        S(an_aborted_transaction_launches_nothing),
        S(an_effect_that_relaunches_yields_one_piece),
    };
    LAB_EVERYWHERE(tests);
}

/* test_resume_again.c -- pieces that stop and start within one life, nodes that fail, gates that the
 * program sets: what a restart does is what a process that stayed alive would have done. */
#include "lab_line.h"
#include "piece_world.h"

/* ---- a piece of which the size is an input */

static hd_value add(hd_tx *tx, const hd_value *in, void *ctx) {
    size_t count = (size_t)(uintptr_t)ctx;
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += hd_value_number(in[i]);
    lab_note(l, "sum");
    return hd_double(sum);
}

static hd_value times_ten(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "ten");
    return hd_double(10 * (hd_value_number(in) > 0));
}

static hd_cell build_some(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    hd_cell cells[8];
    int64_t n = hd_value_as_int(in[0], 0);
    char name[16];
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "d%d", (int)i);
        cells[i] = hd_build_derive(b, name, hd_cell_at(rt(), "main/n"), times_ten, NULL);
    }
    return hd_build_lift(b, "all", add, (void *)(uintptr_t)n, cells, (size_t)n);
}

static hd_cell some(hd_build *b, void *ctx) {
    hd_cell n = hd_cell_at(rt(), "main/n");
    return hd_build_derive_pattern(b, "some", build_some, NULL, &n, 1);
}

static hd_piece p;
static void begin(hd_pattern_fn fn) {
    hd_error error;
    assert_int_equal(hd_pattern_register(rt(), "p", "1", fn, NULL), HD_OK);
    if (hd_piece_start(rt(), &(hd_piece_spec){ .id = "p", .pattern = "p" }, &p, &error))
        fail_msg("%s", error.message);
}

static double result(void) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    double v = hd_value_number(hd_pull_now(rt(), pool, hd_piece_result(rt(), p)));
    hd_pool_close(pool);
    return v;
}

/* I4, I7: an older row must not be trusted where a later run has written over the output. */
static void a_piece_that_is_started_again_shows_its_input_of_now(void **state) {
    lab_set(l, "n", 3);
    begin(some);
    assert_true(result() == 30);
    settle();
    hd_piece_stop(rt(), p);
    lab_set(l, "n", 5);
    begin(some);
    assert_true(result() == 50);
    hd_piece_stop(rt(), p);
    lab_set(l, "n", 3);
    begin(some);
    assert_true(result() == 30);
}

static hd_cell plain(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "main/n"), twice, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* I7: what was removed with its piece is made anew. */
static void a_piece_that_was_removed_makes_its_documents_anew(void **state) {
    lab_set(l, "n", 3);
    begin(plain);
    settle();
    assert_int_equal(hd_piece_remove(rt(), p), HD_OK);
    begin(plain);
    hd_piece_stop(rt(), p);
    begin(plain);
    settle();
    assert_json(l, "main/p/d", "6.0");
    hd_piece_stop(rt(), p);
    assert_int_equal(hd_runtime_sync(rt()), HD_OK);
    begin(plain);
    assert_int_equal(hd_piece_remove(rt(), p), HD_OK);
    begin(plain);
    settle();
    hd_piece_stop(rt(), p);
    begin(plain);
    settle();
    assert_json(l, "main/p/d", "6.0");
}

/* I7: what has just run is not run again by a start, also where nothing of it is stored yet. */
static void stop_and_start_without_a_sync_runs_nothing(void **state) {
    lab_set(l, "n", 3);
    begin(plain);
    lab_settle(l);
    assert_ran(l, "twice show");
    hd_piece_stop(rt(), p);
    begin(plain);
    lab_settle(l);
    assert_ran(l, "show");
    restart();
    begin(plain);
    settle();
    assert_ran(l, "show");
}

/* ---- rows that leave and come back */

static hd_value price(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "price");
    return hd_value_at(in, "price");
}

static hd_cell prices(hd_build *b, void *ctx) {
    hd_cell rows = hd_build_map(b, "rows", hd_cell_at(rt(), "main/items"),
                                &(hd_each){ .fn = price, .key = "/id" });
    hd_cell all = hd_build_gather(b, "all", rows);
    hd_build_sink(b, "look", all, show, NULL);
    return all;
}

/* I7 */
static void rows_that_left_and_came_back_do_not_run_at_the_next_start(void **state) {
    static const char two[] = "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]";
    lab_set_json(l, "items", two);
    begin(prices);
    settle();
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10}]");
    lab_settle(l);
    lab_set_json(l, "items", two);
    lab_settle(l);
    hd_piece_stop(rt(), p);
    begin(prices);
    settle();
    assert_json(l, "main/p/all", "[10,20]");
    lab_ran(l);
    restart();
    begin(prices);
    settle();
    assert_ran(l, "show");
}

/* ---- one's own commits */

static hd_cell of_left(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "main/doc#/left"), twice, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* I7: an own commit that has no verdict yet concerns those alone who read what it changes. */
static void an_own_commit_elsewhere_in_the_document_runs_nothing(void **state) {
    lab_set_json(l, "doc", "{\"left\":1,\"right\":1}");
    begin(of_left);
    settle();
    restart();
    lab_ran(l);
    lab_line *line = lab_line_of(lab_on(l, "a"));
    line->hold_answers = true;
    lab_set_json(l, "doc#/right", "2");
    begin(of_left);
    for (int i = 0; i < 5; i++) lab_pump(lab_on(l, "a"));
    assert_ran(l, "show");
    lab_set_json(l, "doc#/left", "3");
    for (int i = 0; i < 5; i++) lab_pump(lab_on(l, "a"));
    assert_ran(l, "twice show");
    line->hold_answers = false;
    settle();
}

/* ---- failures */

static bool ill;
static hd_value moody(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "moody");
    return ill ? hd_failed(HD_FAILED) : hd_double(hd_value_number(in));
}
static hd_cell moodily(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "main/n"), moody, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* C296, I7: also where nothing else is known of the node: its first run failed. */
static void a_first_run_that_failed_is_not_repeated(void **state) {
    lab_set(l, "n", 3);
    lab_catch(l);
    ill = true;
    begin(moodily);
    settle();
    assert_ran(l, "moody show");
    for (int i = 0; i < 2; i++) {
        restart();
        begin(moodily);
        settle();
        assert_ran(l, "show");
    }
    ill = false;
    lab_set(l, "n", 4);
    settle();
    assert_ran(l, "moody show");
    restart();
    begin(moodily);
    settle();
    assert_ran(l, "show");
    assert_json(l, "main/p/d", "4.0");
}

/* ---- gates */

static uint32_t registered_with;
static hd_node computation, effect;
static hd_status nothing(hd_tx *tx, void *ctx) { return HD_OK; }
static void add_gated(void) {
    hd_node_spec spec = { .name = "c",
                          .fn = nothing,
                          .output = hd_cell_at(rt(), "main/c"),
                          .version = "1",
                          .debounce_ms = registered_with };
    assert_int_equal(hd_node_register(rt(), &spec, &computation), HD_OK);
    spec = (hd_node_spec){
        .name = "e", .fn = nothing, .effect = true, .version = "1", .debounce_ms = registered_with
    };
    assert_int_equal(hd_node_register(rt(), &spec, &effect), HD_OK);
}
static void assert_gates(uint32_t debounce, uint32_t throttle) {
    assert_int_equal(hd_node_debounce(rt(), computation), debounce);
    assert_int_equal(hd_node_debounce(rt(), effect), debounce);
    assert_int_equal(hd_node_throttle(rt(), computation), throttle);
    assert_int_equal(hd_node_throttle(rt(), effect), throttle);
}
static void again_with(uint32_t debounce) {
    settle();
    restart();
    registered_with = debounce;
    add_gated();
}

/* 8: the registration's word counts, and what the program has set last counts more. */
static void gates_are_what_was_registered_then_what_was_set(void **state) {
    registered_with = 100;
    add_gated();
    again_with(0); /* the next version has none */
    assert_gates(0, 0);
    again_with(200);
    assert_gates(200, 0);
    hd_node_set_debounce(rt(), computation, 50);
    hd_node_set_debounce(rt(), effect, 50);
    hd_node_set_throttle(rt(), computation, 70);
    hd_node_set_throttle(rt(), effect, 70);
    again_with(200);
    assert_gates(50, 70);
    hd_node_set_debounce(rt(), computation, 0);
    hd_node_set_debounce(rt(), effect, 0);
    again_with(300);
    assert_gates(0, 70);
    again_with(300);
    assert_gates(0, 70);
    hd_node_unregister(rt(), computation);
    hd_node_unregister(rt(), effect);
    add_gated(); /* they are others */
    assert_gates(300, 0);
    again_with(300);
    assert_gates(300, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_piece_that_is_started_again_shows_its_input_of_now),
        S(a_piece_that_was_removed_makes_its_documents_anew),
        S(stop_and_start_without_a_sync_runs_nothing),
        S(rows_that_left_and_came_back_do_not_run_at_the_next_start),
        S(an_own_commit_elsewhere_in_the_document_runs_nothing),
        S(a_first_run_that_failed_is_not_repeated),
        S(gates_are_what_was_registered_then_what_was_set),
    };
    LAB_EVERYWHERE(tests);
}

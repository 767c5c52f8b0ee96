/* test_resume_meanwhile.c -- what others did while a piece was down (area O): another piece that went on, an
 * event, another space, a link on the way to what was read. Exactly the nodes that it concerns run. */
#include "piece_world.h"
#include "lab_events.h"

/* ---- a piece that reads another one's results */

static hd_cell maker(hd_build *b, void *ctx) {
    hd_cell x = hd_cell_at(rt(), "main/x"), y = hd_cell_at(rt(), "main/y");
    hd_build_derive(b, "steady", y, twice, "steady");
    return hd_build_derive(b, "made", x, twice, "made");
}
static hd_cell user(hd_build *b, void *ctx) {
    hd_cell made = hd_cell_at(rt(), "main/maker/made"), own = hd_cell_at(rt(), "main/own");
    hd_cell steady = hd_cell_at(rt(), "main/maker/steady");
    hd_cell of_made = hd_build_derive(b, "of_made", made, twice, "of_made");
    hd_build_sink(b, "look", of_made, show, "show_made");
    hd_build_sink(b, "see", hd_build_derive(b, "of_own", own, twice, "of_own"), show, "show_own");
    hd_build_sink(b, "watch", hd_build_derive(b, "of_steady", steady, twice, "of_steady"), show,
                  "show_steady");
    return of_made;
}
static void register_both(void) {
    assert_int_equal(hd_pattern_register(rt(), "maker", "1", maker, NULL), HD_OK);
    assert_int_equal(hd_pattern_register(rt(), "user", "1", user, NULL), HD_OK);
}
static void open_piece(const char *id) {
    hd_piece p;
    hd_error error;
    if (hd_piece_open(rt(), "main", id, &p, &error)) fail_msg("%s", error.message);
}

/* Both have run, and ended. */
static void both_have_run(void) {
    lab_set(l, "x", 1);
    lab_set(l, "y", 2);
    lab_set(l, "own", 3);
    start_piece("maker", maker);
    start_piece("user", user);
    settle();
    lab_ran(l);
    stop();
}

/* A life in which the maker alone runs, and somebody looks at what it makes. */
static void the_maker_goes_on(double x) {
    lab_on(l, "z");
    register_both();
    open_piece("maker");
    hd_sink(rt(), hd_cell_at(rt(), "main/maker/made"), show, "look");
    settle();
    lab_set(l, "x", x);
    settle();
    assert_true(hd_piece_find(rt(), "main", "user").id == 0);
    lab_runtime_close(lab_on(l, "z"));
    lab_ran(l);
    lab_on(l, "a");
    register_both();
}

/* C300: it changed something while the other was down: on resume what reads that runs, and nothing else, of
 * neither piece. */
static void what_reads_another_pieces_change_runs(void **state) {
    both_have_run();
    the_maker_goes_on(5);
    open_piece("user");
    settle();
    assert_ran(l, "of_made show_made show_own show_steady");
    assert_json(l, "main/user/of_made", "20.0");
    restart();
    register_both();
    open_piece("user");
    settle();
    assert_ran(l, "show_made show_own show_steady");
}

/* C300: it ran, and made what was there before: nothing of the other has anything to do. */
static void what_another_piece_made_again_is_no_change(void **state) {
    both_have_run();
    the_maker_goes_on(1);
    open_piece("user");
    settle();
    assert_ran(l, "show_made show_own show_steady");
}

/* C300: the other one's source changes while both are down: demand reaches through, one run each. Effects are
 * there first: it is they who look. */
static void a_change_behind_another_piece_runs_the_way_to_it(void **state) {
    both_have_run();
    lab_on(l, "z");
    lab_set(l, "x", 7);
    settle();
    lab_runtime_close(lab_on(l, "z"));
    lab_on(l, "a");
    register_both();
    open_piece("user");
    settle();
    assert_ran(l, "show_made show_own show_steady made of_made show_made");
    assert_json(l, "main/user/of_made", "28.0");
}

/* ---- an event elsewhere */

static hd_status add_payload(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return lab_tx_add(self, tx, "m", hd_value_number(event->payload));
}
static void program(void) {
    lab_compute(l, "of_n", "n", NULL);
    lab_compute(l, "of_m", "m", NULL);
    lab_compute(l, "sum", "of_n of_m", NULL);
    lab_effect(l, "show", "sum");
}

/* C301: nothing but the handling of an event, by another program, has changed anything. */
static void what_an_event_changed_elsewhere_is_stale(void **state) {
    lab_outcome o = { 0 };
    lab_set(l, "n", 1);
    lab_set(l, "m", 2);
    program();
    settle();
    lab_ran(l);
    stop();
    lab_on(l, "z");
    lab_handle(l, .stream = "add", .reads = "m", .body = add_payload);
    lab_fire(l, "add", "5", &o);
    lab_idle(l);
    settle();
    assert_outcome(o, HD_OK);
    lab_runtime_close(lab_on(l, "z"));
    lab_ran(l);
    lab_on(l, "a");
    program();
    assert_false(lab_is_clean(l, "of_m"));
    assert_true(lab_is_clean(l, "of_n") && lab_is_clean(l, "sum"));
    settle();
    assert_ran(l, "of_m sum show");
    assert_seen(l, "show", "8");
}

/* C301: an event that was posted while nobody ran, for a handler of the program itself: handled after the
 * start, and what it changes runs; the rest does not. */
static void an_event_that_waited_runs_what_it_changes(void **state) {
    char id[HD_EVENT_ID_SIZE];
    lab_set(l, "n", 1);
    lab_set(l, "m", 2);
    program();
    settle();
    stop();
    lab_on(l, "z");
    hd_cell stream = hd_cell_at(rt(), "main/add");
    assert_int_equal(hd_event_post(rt(), stream, hd_int(NULL, 4), NULL, id), HD_OK);
    settle();
    lab_runtime_close(lab_on(l, "z"));
    lab_ran(l);
    lab_on(l, "a");
    program();
    lab_handle(l, .stream = "add", .reads = "m", .body = add_payload);
    lab_idle(l);
    settle();
    const char *ran = lab_ran(l);
    assert_null(strstr(ran, "of_n"));
    assert_non_null(strstr(ran, "add"));
    assert_non_null(strstr(ran, "of_m"));
    assert_seen(l, "show", "7");
}

/* ---- failed */

static void failing(void) {
    lab_compute(l, "sum", "n", NULL);
    lab_compute(l, "other", "n", NULL);
}

/* I7: a node whose last run failed waits for a change of what it read, also after a restart; what had run
 * beside it is clean. */
static void a_failure_waits_for_a_change(void **state) {
    lab_set(l, "n", 3);
    failing();
    lab_effect(l, "show", "sum other");
    lab_catch(l);
    settle();
    lab_set(l, "n", 4);
    lab_fail_next(l, "sum", HD_FAILED, 1);
    settle();
    lab_ran(l);
    restart();
    failing();
    settle();
    assert_ran(l, "");
    assert_true(lab_is_clean(l, "sum"));
    assert_true(lab_is_clean(l, "other"));
    lab_effect(l, "show", "sum other");
    settle();
    assert_ran(l, "show");
    assert_seen(l, "show", "3 4");
    lab_set(l, "n", 5);
    settle();
    assert_ran(l, "sum other show");
    assert_seen(l, "show", "5 5");
}

/* ---- another space */

static hd_cell abroad(hd_build *b, void *ctx) {
    hd_cell there = hd_cell_at(rt(), "other/n"), here = hd_cell_at(rt(), "home/n");
    hd_build_sink(b, "look", hd_build_derive(b, "there", there, twice, "there"), show, NULL);
    return hd_build_derive(b, "here", here, twice, "here");
}

/* C303: a piece in one space reads another: a write there makes its reader stale, one in a third space
 * nobody. */
static void a_write_in_another_space_concerns_its_reader(void **state) {
    static const char *const written[] = { "other/n", "third/n", "home/m" };
    hd_piece p;
    hd_piece_spec spec = { .space = "home", .id = "p", .pattern = "abroad" };
    lab_set(l, "other/n", 1);
    lab_set(l, "home/n", 2);
    hd_pattern_register(rt(), "abroad", "1", abroad, NULL);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    hd_sink(rt(), hd_piece_result(rt(), p), show, "result");
    settle();
    for (int i = 0; i < 3; i++) {
        stop();
        lab_on(l, "z");
        lab_set(l, written[i], 10 + i);
        settle();
        lab_on(l, "a");
        lab_ran(l);
        hd_pattern_register(rt(), "abroad", "1", abroad, NULL);
        assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
        settle();
        assert_ran(l, i == 0 ? "there show" : "show");
    }
    assert_json(l, "home/p/there", "20.0");
}

/* ---- links that come and go */

static void reads_below(void) {
    lab_compute(l, "far", "s#/l/a", NULL);
    lab_compute(l, "beside", "s#/m/a", NULL);
    lab_effect(l, "show", "far beside");
}

/* A life of another program, in which it writes one document. */
static void meanwhile(const char *cell, const char *json) {
    stop();
    lab_on(l, "z");
    lab_set_json(l, cell, json);
    settle();
    lab_runtime_close(lab_on(l, "z"));
    lab_on(l, "a");
    lab_ran(l);
    reads_below();
    settle();
}

/* Changes of what is behind the link reach the reader, while the program runs and while it does not. */
static void what_is_behind_the_link_is_heard(void) {
    lab_set(l, "t#/a", 8);
    settle();
    assert_ran(l, "far show");
    assert_seen(l, "show", "8 0");
    restart();
    reads_below();
    settle();
    assert_ran(l, "show");
    meanwhile("t#/a", "9");
    assert_ran(l, "far show");
    assert_seen(l, "show", "9 0");
}

/* C301, MATCHING 2.4: what was absent below a place is read anew once a link stands there: behind it there
 * may be a value, now or later. */
static void a_link_that_appears_above_an_absent_read_runs_its_reader(void **state) {
    static const char link[] = "{\"$link\":{\"id\":\"t\"}}",
                      inner[] = "{\"l\":{\"$link\":{\"id\":\"t\"}}}";
    static const struct {
        const char *before, *cell, *json, *target;
    } ways[] = {
        { "{}", "s#/l", link, "{\"a\":7}" },
        { "{\"l\":1}", "s#/l", link, "{\"a\":7}" },
        { "{\"l\":{}}", "s#/l", link, "{\"a\":7}" },
        { "{\"m\":{}}", "s", inner, "{\"a\":7}" },
        { "{}", "s#/l", link, "{}" },
        { "null", "s", inner, "{}" },
        { "{\"l\":[]}", "s#/l", link, "null" },
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        lab_set_json(l, "s", ways[i].before);
        lab_set_json(l, "t", ways[i].target);
        if (i) settle();
        else reads_below();
        settle();
        assert_seen(l, "show", "0 0");
        meanwhile(ways[i].cell, ways[i].json);
        bool there = strchr(ways[i].target, '7');
        assert_int_equal(lab_find(l, "far")->runs, 1);
        assert_seen(l, "show", there ? "7 0" : "0 0");
        if (!strcmp(ways[i].target, "null")) lab_set_json(l, "t", "{}");
        lab_ran(l);
        what_is_behind_the_link_is_heard();
    }
}

/* The document itself may have become a link; and a link that goes leaves what stands there. */
static void a_document_that_becomes_a_link_runs_its_readers(void **state) {
    lab_set_json(l, "t", "{\"l\":{\"a\":7}}");
    reads_below();
    settle();
    assert_seen(l, "show", "0 0");
    meanwhile("s", "{\"$link\":{\"id\":\"t\"}}");
    assert_seen(l, "show", "7 0");
    meanwhile("t#/l/a", "8");
    assert_ran(l, "far show");
    assert_seen(l, "show", "8 0");
    meanwhile("s", "{\"l\":{\"a\":8}}");
    assert_seen(l, "show", "8 0");
    lab_ran(l);
    lab_set(l, "t#/l/a", 9);
    settle();
    assert_ran(l, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(what_reads_another_pieces_change_runs),
        S(what_another_piece_made_again_is_no_change),
        S(a_change_behind_another_piece_runs_the_way_to_it),
        S(what_an_event_changed_elsewhere_is_stale),
        S(an_event_that_waited_runs_what_it_changes),
        S(a_failure_waits_for_a_change),
        S(a_write_in_another_space_concerns_its_reader),
        S(a_link_that_appears_above_an_absent_read_runs_its_reader),
        S(a_document_that_becomes_a_link_runs_its_readers),
    };
    LAB_EVERYWHERE(tests);
}

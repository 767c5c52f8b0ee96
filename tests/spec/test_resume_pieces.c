/* test_resume_pieces.c -- pieces, lists and derived patterns after a restart. */
#include "piece_world.h"
#include "lab_events.h"

static hd_cell shop(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 1)),
            y = hd_build_argument(b, "y", hd_int(NULL, 1));
    hd_cell a = hd_build_derive(b, "a", x, twice, "a"), c = hd_build_derive(b, "c", y, twice, "c");
    hd_build_sink(b, "look_a", a, show, "show_a");
    hd_build_sink(b, "look_c", c, show, "show_c");
    return a;
}

static hd_cell nested(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "build");
    hd_cell x = hd_cell_at(rt(), "main/x");
    return hd_value_is_true(in[0]) ? hd_build_derive(b, "yes", x, twice, "yes")
                                   : hd_build_derive(b, "no", x, twice, "no");
}
static hd_cell chooser(hd_build *b, void *ctx) {
    hd_cell which = hd_cell_at(rt(), "main/which");
    hd_cell r = hd_build_derive_pattern(b, "part", nested, NULL, &which, 1);
    hd_build_sink(b, "look", r, show, NULL);
    return r;
}

static const char *version = "1";

static hd_piece start(const char *id, const char *pattern, const char *arguments) {
    hd_piece p;
    hd_error error;
    hd_pool *pool;
    hd_pattern_register(rt(), "shop", version, shop, NULL);
    hd_pattern_register(rt(), "chooser", version, chooser, NULL);
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_value given =
        arguments ? hd_json_parse(pool, arguments, strlen(arguments), NULL) : (hd_value){ 0 };
    hd_piece_spec spec = { .id = id, .pattern = pattern, .arguments = given };
    if (hd_piece_start(rt(), &spec, &p, &error)) fail_msg("%s", error.message);
    hd_pool_close(pool);
    return p;
}

/* I7: a piece that is started again goes on; only its effects run. */
static void a_piece_resumes(void **state) {
    start("s", "shop", NULL);
    settle();
    assert_ran(l, "a c show_a show_c");
    restart();
    hd_piece_info info;
    hd_piece p = start("s", "shop", NULL);
    settle();
    assert_ran(l, "show_a show_c");
    hd_piece_inspect(rt(), p, &info);
    assert_int_equal(info.started, 2);
    lab_set(l, "s#/arguments/y", 4);
    lab_settle(l);
    assert_ran(l, "c show_c");
    assert_json(l, "main/s/c", "8.0");
}

/* Arguments that are others run their readers, and nobody else. */
static void other_arguments_run_their_readers(void **state) {
    start("s", "shop", "{\"x\":1,\"y\":2}");
    settle();
    lab_ran(l);
    restart();
    start("s", "shop", "{\"x\":1,\"y\":3}");
    settle();
    assert_ran(l, "c show_a show_c");
    assert_json(l, "main/s/c", "6.0");
    restart();
    start("s", "shop", NULL); /* what is not said stays */
    settle();
    assert_ran(l, "show_a show_c");
}

/* What another program writes into the arguments at the very moment of the start stays. */
static void a_start_does_not_take_back_what_others_write(void **state) {
    start("s", "shop", "{\"x\":1,\"y\":2}");
    settle();
    restart();
    lab_runtime *b = lab_on(l, "b");
    assert_cell(b, "s#/arguments/x", "1");
    lab_on(l, "a");
    lab_hold(lab_on(l, "a"));
    start("s", "shop", NULL);
    lab_write(b, "s#/arguments/x", "7");
    hd_runtime_sync(lab_rt(b));
    lab_mend(lab_on(l, "a"));
    settle();
    lab_advance_ms(l, 100);
    settle();
    assert_json(l, "s#/arguments", "{\"x\":7,\"y\":2}");
    assert_json(l, "s#/started", "2");
    assert_json(l, "main/s/a", "14.0");
    assert_cell(b, "s#/arguments/x", "7");
}

/* The same where it is opened as it is. */
static void an_opened_piece_resumes(void **state) {
    hd_piece p;
    start("s", "shop", NULL);
    settle();
    lab_ran(l);
    restart();
    hd_pattern_register(rt(), "shop", version, shop, NULL);
    assert_int_equal(hd_piece_open(rt(), "main", "s", &p, NULL), HD_OK);
    settle();
    assert_ran(l, "show_a show_c");
}

static hd_cell grown(hd_build *b, void *ctx) {
    bool second = *version == '2';
    hd_cell y = second ? hd_build_argument(b, "y", hd_int(NULL, 20))
                       : hd_build_argument(b, "x", hd_int(NULL, 1));
    if (second) hd_build_state(b, "count", hd_int(NULL, 7));
    return hd_build_derive(b, "a", y, twice, "a");
}

/* Code that has learnt to ask for more finds its defaults, also where demand opens the piece. */
static void an_opened_piece_has_the_defaults_of_new_code(void **state) {
    hd_piece p;
    hd_pattern_register(rt(), "grown", version, grown, NULL);
    hd_sink(rt(), hd_piece_result(rt(), start("g", "grown", NULL)), show, NULL);
    settle();
    stop();
    version = "2";
    lab_on(l, "a");
    hd_pattern_register(rt(), "grown", version, grown, NULL);
    assert_int_equal(hd_piece_open(rt(), "main", "g", &p, NULL), HD_OK);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    settle();
    assert_json(l, "g#/arguments", "{\"x\":1,\"y\":20}");
    assert_json(l, "g#/started", "1");
    assert_json(l, "main/g/count", "7");
    assert_json(l, "main/g/a", "40.0");
    lab_set(l, "main/g/count", 8);
    settle();
    restart();
    hd_pattern_register(rt(), "grown", version, grown, NULL);
    assert_int_equal(hd_piece_open(rt(), "main", "g", &p, NULL), HD_OK);
    settle();
    assert_json(l, "main/g/count", "8");
    version = "1";
}

/* C297: another version of the pattern runs all of it. */
static void another_version_of_the_pattern_runs(void **state) {
    start("s", "shop", NULL);
    settle();
    lab_ran(l);
    stop();
    version = "2";
    lab_on(l, "a");
    start("s", "shop", NULL);
    settle();
    version = "1";
    assert_ran(l, "a c show_a show_c");
}

static hd_cell saying(hd_build *b, void *ctx) {
    hd_build_state(b, version, hd_int(NULL, 3));
    return hd_build_derive(b, "said", hd_cell_at(rt(), "main/x"), twice, "said");
}
static hd_cell outer(hd_build *b, void *ctx) {
    hd_cell x = hd_cell_at(rt(), "main/x");
    hd_build_sink(b, "look", hd_build_use(b, "inner", "saying", NULL, 0), show, NULL);
    hd_build_sink(b, "own", hd_build_derive(b, "mine", x, twice, "mine"), show, NULL);
    return x;
}

/* C297: so does another version of a pattern that it uses, and nothing else. */
static void another_version_of_a_used_pattern_runs(void **state) {
    lab_set(l, "x", 1);
    for (int i = 1; i <= 2; i++) {
        version = i == 1 ? "1" : "2";
        hd_pattern_register(rt(), "saying", version, saying, NULL);
        hd_pattern_register(rt(), "outer", "1", outer, NULL);
        start("o", "outer", NULL);
        settle();
        if (i == 2) break;
        lab_ran(l);
        stop();
        lab_on(l, "a");
    }
    version = "1";
    assert_ran(l, "said show show");
    assert_json(l, "main/o/inner/2", "3");
}

/* Spaces have colons in their names: a piece there resumes, and is opened for whoever looks. */
static void a_piece_resumes_in_a_space_with_colons(void **state) {
    hd_piece p;
    hd_piece_spec spec = { .space = "did:key:z6", .id = "s", .pattern = "shop" };
    for (int i = 0; i < 2; i++) {
        hd_pattern_register(rt(), "shop", "1", shop, NULL);
        assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
        settle();
        assert_ran(l, i ? "show_a show_c" : "a c show_a show_c");
        restart();
    }
    hd_pattern_register(rt(), "shop", "1", shop, NULL);
    hd_sink(rt(), hd_cell_at(rt(), "did:key:z6/s/a"), show, "outside");
    settle();
    assert_int_not_equal(hd_piece_find(rt(), "did:key:z6", "s").id, 0);
    lab_ran(l);
    p = hd_piece_find(rt(), "did:key:z6", "s");
    assert_int_equal(hd_piece_remove(rt(), p), HD_OK);
    settle();
    lab_ran(l);
    restart();
    hd_pattern_register(rt(), "shop", "1", shop, NULL);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    settle();
    assert_ran(l, "a c show_a show_c");
}

static hd_cell far_reader(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "~zod/x"), twice, "d");
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* What was read in a space whose name begins with a tilde is not taken for anything else. */
static void a_change_in_a_space_with_a_tilde_runs_its_readers(void **state) {
    hd_piece p;
    hd_piece_spec spec = { .id = "f", .pattern = "far" };
    hd_write_json(rt(), hd_cell_at(rt(), "~zod/x"), "1");
    hd_pattern_register(rt(), "far", "1", far_reader, NULL);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    settle();
    assert_ran(l, "d show");
    restart();
    hd_write_json(rt(), hd_cell_at(rt(), "~zod/x"), "2");
    settle();
    hd_pattern_register(rt(), "far", "1", far_reader, NULL);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    settle();
    assert_ran(l, "d show");
    assert_json(l, "main/f/d", "4.0");
}

static hd_value maybe_far(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, ctx);
    return hd_value_is_true(in) ? hd_tx_get(tx, hd_cell_at(rt(), "main/odd!")) : in;
}
static hd_cell strayer(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "main/x"), maybe_far, "d");
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* A row goes when its node comes to read what no row can name, and spoils none of the others. */
static void a_row_goes_with_a_read_that_it_cannot_name(void **state) {
    hd_piece p;
    hd_piece_spec spec = { .id = "f", .pattern = "strayer" };
    hd_pattern_register(rt(), "strayer", "1", strayer, NULL);
    lab_set(l, "x", 0);
    lab_set(l, "odd!", 1);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    start("s", "shop", NULL);
    settle();
    lab_ran(l);
    lab_set(l, "x", 1);
    settle();
    assert_ran(l, "d show");
    restart();
    lab_set(l, "odd!", 2);
    settle();
    hd_pattern_register(rt(), "strayer", "1", strayer, NULL);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    start("s", "shop", NULL);
    settle();
    assert_ran(l, "d show show_a show_c");
    assert_json(l, "main/f/d", "2");
}

/* A piece that was removed and is made again is another one. */
static void a_removed_piece_is_forgotten(void **state) {
    hd_piece p = start("s", "shop", NULL);
    settle();
    lab_ran(l);
    assert_int_equal(hd_piece_remove(rt(), p), HD_OK);
    settle();
    start("s", "shop", NULL);
    settle();
    assert_ran(l, "a c show_a show_c");
    restart();
    start("s", "shop", NULL);
    settle();
    assert_ran(l, "show_a show_c");
}

/* Stopped, and started again by the same program. */
static void a_stopped_piece_resumes(void **state) {
    hd_piece p = start("s", "shop", NULL);
    settle();
    hd_piece_stop(rt(), p);
    settle();
    lab_ran(l);
    lab_set(l, "s#/arguments/x", 5);
    settle();
    start("s", "shop", NULL);
    settle();
    assert_ran(l, "a show_a show_c");
    assert_json(l, "main/s/a", "10.0");
}

/* D4: a pattern that a run derives is built again; its nodes do not run. */
static void a_derived_pattern_resumes(void **state) {
    lab_set(l, "which", 1);
    lab_set(l, "x", 2);
    start("c", "chooser", NULL);
    settle();
    assert_ran(l, "build yes show");
    restart();
    start("c", "chooser", NULL);
    settle();
    assert_ran(l, "build show");
    stop();
    lab_on(l, "z");
    lab_set(l, "which", 0);
    settle();
    lab_on(l, "a");
    start("c", "chooser", NULL);
    settle();
    assert_ran(l, "build no show");
    assert_json(l, "main/c/part", "4.0");
}

/* Nobody looks at its result from within. */
static hd_cell quiet(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_cell_at(rt(), "main/x"), twice, "quiet");
}

/* C300: a piece that does not run, and that somebody looks at, is opened: what changed runs. */
static void demand_reaches_a_piece_that_does_not_run(void **state) {
    lab_set(l, "x", 2);
    hd_pattern_register(rt(), "quiet", "1", quiet, NULL);
    start("q", "quiet", NULL);
    lab_effect(l, "look", "main/q/d");
    settle();
    assert_ran(l, "quiet look");
    stop();
    lab_on(l, "z");
    lab_set(l, "x", 3);
    settle();
    lab_on(l, "a");
    hd_pattern_register(rt(), "quiet", "1", quiet, NULL);
    settle();
    assert_ran(l, "");
    lab_effect(l, "look", "main/q/d");
    settle();
    assert_true(hd_piece_find(rt(), "main", "q").id != 0);
    assert_seen(l, "look", "6.0");
    restart();
    hd_pattern_register(rt(), "quiet", "1", quiet, NULL);
    lab_ran(l);
    lab_effect(l, "look", "main/q/d");
    settle();
    assert_ran(l, "look");
}

static bool ill;
static hd_cell quiet_unless_ill(hd_build *b, void *ctx) {
    return ill ? hd_build_fail(b, HD_FAILED, "it is ill") : quiet(b, ctx);
}

/* Nobody called for it who could be told: the log is. */
static void what_demand_cannot_open_is_told(void **state) {
    lab_set(l, "x", 2);
    hd_pattern_register(rt(), "q", "1", quiet_unless_ill, NULL);
    start("q", "q", NULL);
    lab_effect(l, "look", "main/q/d");
    settle();
    ill = true;
    restart();
    hd_pattern_register(rt(), "q", "1", quiet_unless_ill, NULL);
    lab_effect(l, "look", "main/q/d");
    settle();
    ill = false;
    assert_int_equal(lab_env_logged(lab_world(l), "\"q\" could not be opened: it is ill"), 1);
    restart();
    hd_pattern_register(rt(), "another", "1", quiet, NULL);
    lab_effect(l, "look", "main/q/d");
    settle();
    assert_int_equal(lab_env_logged(lab_world(l), "\"q\" is not opened: no pattern \"q\""), 1);
    lab_ran(l);
}

static hd_value first_of(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "first");
    return hd_double(hd_value_as_double(in, 0));
}
static hd_cell partial(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_cell_at(rt(), "main/doc#/a"), first_of, NULL);
}

static hd_piece start_partial(void) {
    hd_pattern_register(rt(), "partial", "1", partial, NULL);
    hd_piece p = start("w", "partial", NULL);
    lab_effect(l, "look", "main/w/d");
    settle();
    return p;
}

/* What a document's other parts did while the piece ran is known when it stops, and no longer when the
 * log that told it is gone. */
static void a_piece_that_stops_says_how_far_its_rows_hold(void **state) {
    if (!lab_is_sqlite(l)) return; /* nothing is pruned elsewhere */
    lab_set_json(l, "doc", "{\"a\":1,\"b\":1}");
    hd_piece p = start_partial();
    assert_ran(l, "first look");
    lab_set(l, "doc#/b", 2);
    settle();
    lab_cancel(l, "look");
    hd_piece_stop(rt(), p);
    settle();
    restart();
    assert_int_equal(hd_store_prune(rt(), NULL), HD_OK);
    start_partial();
    assert_ran(l, "look");
}

/* A node that writes where the user wants it. */
static hd_status put_total(hd_tx *tx, void *ctx) {
    lab_note(l, "total");
    double x = hd_value_as_double(hd_tx_get(tx, hd_cell_at(rt(), "main/x")), 0);
    return hd_tx_set_double(tx, hd_cell_at(rt(), "main/total"), 10 * x);
}
static hd_cell teller(hd_build *b, void *ctx) {
    return hd_build_node(
        b,
        &(hd_node_spec){ .name = "t", .fn = put_total, .output = hd_cell_at(rt(), "main/total") });
}
static hd_cell bystander(hd_build *b, void *ctx) {
    lab_note(l, "bystander");
    return hd_build_constant(b, "c", hd_null());
}

static void register_tellers(void) {
    hd_pattern_register(rt(), "teller", "1", teller, NULL);
    hd_pattern_register(rt(), "bystander", "1", bystander, NULL);
}

static void while_down_x_is(double x) {
    stop();
    lab_on(l, "z");
    lab_set(l, "x", x);
    settle();
    lab_on(l, "a");
    register_tellers();
    lab_ran(l);
}

/* Two pieces have run and ended, and somebody has looked at what one of them writes. */
static void two_pieces_have_run(void) {
    lab_set(l, "x", 2);
    lab_set(l, "y/hand", 7); /* looks as if it belonged to y */
    register_tellers();
    start("q", "teller", NULL);
    start("y", "bystander", NULL);
    lab_effect(l, "look", "main/total");
    settle();
    assert_seen(l, "look", "20.0");
    hd_tx *tx;
    assert_int_equal(hd_tx_begin_read(rt(), &tx), HD_OK);
    hd_value writer = hd_tx_get_meta(tx, hd_cell_at(rt(), "main/total"), "piece");
    assert_string_equal(hd_value_as_text(writer, "-"), "main:q");
    assert_false(hd_value_exists(hd_tx_get_meta(tx, hd_cell_at(rt(), "main/x"), "piece")));
    hd_tx_abort(tx);
}

/* C300: it is the metadata that says which piece writes a document, not its name. */
static void demand_follows_the_metadata(void **state) {
    two_pieces_have_run();
    while_down_x_is(3);
    settle();
    assert_ran(l, ""); /* nobody looks */
    lab_effect(l, "look", "main/total");
    settle();
    assert_true(hd_piece_find(rt(), "main", "q").id != 0);
    assert_true(hd_piece_find(rt(), "main", "y").id == 0);
    assert_seen(l, "look", "30.0");
    assert_null(strstr(lab_ran(l), "bystander"));
}

/* C300: what somebody wrote by hand is nobody's, whatever it is called. */
static void a_source_document_starts_nothing(void **state) {
    two_pieces_have_run();
    while_down_x_is(2);
    lab_effect(l, "look", "main/y/hand");
    settle();
    assert_ran(l, "look");
    assert_true(hd_piece_find(rt(), "main", "y").id == 0);
    assert_true(hd_piece_find(rt(), "main", "q").id == 0);
}

/* C300, C295: a reader that is taken up clean has read nothing here; its row tells that there is a piece
 * to open. What that piece has to do is done, and nothing else. */
static void demand_of_a_resumed_reader(void **state) {
    two_pieces_have_run();
    lab_compute(l, "plus", "main/total", NULL);
    lab_effect(l, "show", "plus");
    settle();
    while_down_x_is(3);
    lab_compute(l, "plus", "main/total", NULL);
    lab_effect(l, "show", "plus");
    settle();
    assert_true(hd_piece_find(rt(), "main", "q").id != 0);
    assert_seen(l, "show", "30");
    stop();
    lab_on(l, "a");
    register_tellers();
    lab_ran(l);
    lab_compute(l, "plus", "main/total", NULL);
    lab_effect(l, "show", "plus");
    settle();
    assert_true(hd_piece_find(rt(), "main", "q").id != 0);
    assert_ran(l, "show");
}

static hd_status add(hd_tx *tx, const hd_event *e, void *ctx) {
    lab_note(l, "add");
    return hd_tx_set(tx, hd_cell_at(rt(), "main/added"), e->payload);
}
static hd_cell adder(hd_build *b, void *ctx) {
    hd_cell in = hd_build_stream(b, "in");
    hd_build_handler(b, in, add, NULL, NULL, 0);
    return in;
}

/* C231: an event for a piece that does not run starts it; a stream without a handler is not tried
 * twice. */
static void an_event_starts_its_piece(void **state) {
    lab_outcome first = { 0 }, second = { 0 };
    hd_pattern_register(rt(), "adder", "1", adder, NULL);
    start("e", "adder", NULL);
    settle();
    restart();
    hd_pattern_register(rt(), "adder", "1", adder, NULL);
    lab_fire(l, "main/e/in", "7", &first);
    lab_fire(l, "main/e/other", "7", &second);
    settle();
    assert_ran(l, "add");
    assert_outcome(first, HD_OK);
    assert_outcome(second, HD_NOT_FOUND);
    assert_json(l, "added", "7");
}

static hd_cell broken(hd_build *b, void *ctx) {
    lab_note(l, "build");
    return hd_build_fail(b, HD_FAILED, "it does not start today");
}

/* C230: the piece of an event cannot be started, because its pattern fails or is not there: each event is told
 * once, nothing of the piece runs, and the next event is handled. */
static void an_event_whose_piece_does_not_start_is_told_once(void **state) {
    lab_outcome failed = { 0 }, missing = { 0 }, good = { 0 };
    hd_pattern_register(rt(), "adder", "1", adder, NULL);
    start("e", "adder", NULL);
    settle();
    restart();
    lab_catch(l);
    lab_fire(l, "main/e/in", "7", &missing);
    lab_idle(l);
    assert_outcome(missing, HD_NOT_FOUND);
    hd_pattern_register(rt(), "adder", "1", broken, NULL);
    lab_fire(l, "main/e/in", "7", &failed);
    lab_handle(l, .stream = "other");
    lab_fire(l, "other", "1", &good);
    settle();
    assert_ran(l, "build other");
    assert_outcome(failed, HD_FAILED);
    assert_outcome(missing, HD_NOT_FOUND);
    assert_outcome(good, HD_OK);
    assert_int_equal(hd_piece_find(rt(), "main", "e").id, 0);
    assert_json(l, "added", "-");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_piece_resumes),
        S(other_arguments_run_their_readers),
        S(a_start_does_not_take_back_what_others_write),
        S(an_opened_piece_resumes),
        S(an_opened_piece_has_the_defaults_of_new_code),
        S(another_version_of_the_pattern_runs),
        S(another_version_of_a_used_pattern_runs),
        S(a_piece_resumes_in_a_space_with_colons),
        S(a_row_goes_with_a_read_that_it_cannot_name),
        S(a_change_in_a_space_with_a_tilde_runs_its_readers),
        S(a_removed_piece_is_forgotten),
        S(a_stopped_piece_resumes),
        S(a_derived_pattern_resumes),
        S(what_demand_cannot_open_is_told),
        S(demand_reaches_a_piece_that_does_not_run),
        S(a_piece_that_stops_says_how_far_its_rows_hold),
        S(demand_follows_the_metadata),
        S(a_source_document_starts_nothing),
        S(demand_of_a_resumed_reader),
        S(an_event_starts_its_piece),
        S(an_event_whose_piece_does_not_start_is_told_once),
    };
    LAB_EVERYWHERE(tests);
}

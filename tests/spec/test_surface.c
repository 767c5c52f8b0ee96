/* test_surface.c -- area D: what a node may write is fixed when it is registered. */
#include "base/sabotage.h"
#include "lab_inside.h"
#include "spec.h"

static double twice(const double *in) { return 2 * in[0]; }

#define assert_surface(name, text) assert_string_equal(lab_surface(l, name), text)

static hd_status write_by_turns(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    if (self->runs % 3 == 1) return lab_tx_put(self, tx, "x", n);
    if (self->runs % 3 == 2) return lab_tx_put(self, tx, "y", n);
    return HD_OK;
}

/* C59: the surface of an action with declared writes is exactly those. */
static void the_surface_is_what_was_declared(void **state) {
    lab_add(l, .name = "w", .body = write_by_turns, .output = "x", .side_outputs = "s t x");
    assert_surface("w", "x s t");
    lab_effect(l, "see_x", "x");
    lab_effect(l, "see_s", "s");
    lab_effect(l, "see_y", "y");
    lab_settle(l);
    assert_string_equal(lab_dependents(l, "w"), "see_x see_s");
}

/* C60: an action whose only declaration is its output has that as its surface, and has not run. */
static void an_output_alone_is_the_surface(void **state) {
    lab_compute(l, "x", "n", twice);
    assert_surface("x", "x");
    lab_settle(l);
    assert_ran(l, "");
}

/* C61: runs that write something else, or nothing, do not change the surface. */
static void runs_do_not_change_the_surface(void **state) {
    lab_add(l, .name = "w", .body = write_by_turns, .output = "x", .declares = "n");
    lab_effect(l, "see_x", "x");
    lab_effect(l, "see_y", "y");
    for (int i = 0; i < 6; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
        assert_surface("w", "x");
        assert_string_equal(lab_dependents(l, "w"), "see_x");
    }
    assert_int_equal(lab_find(l, "w")->runs, 6);
}

static hd_status write_below(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_cell list_ = lab_cell(self->at, "list");
    hd_status status = hd_tx_set_meta(tx, list_, "label", hd_double(n));
    if (!status) status = lab_tx_put(self, tx, "list#/0", n);
    return status ? status : lab_tx_put(self, tx, "list#/1", n + 1);
}

/* C62: a run that writes only metadata and elements of a collection leaves the surface as declared;
 * it is never broadened to parents. */
static void the_surface_is_not_broadened(void **state) {
    lab_set_json(l, "list", "[0,0,0]");
    lab_add(l, .name = "w", .body = write_below, .output = "list#/0", .side_outputs = "list#/1");
    lab_effect(l, "see_0", "list#/0");
    lab_effect(l, "see_2", "list#/2");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_surface("w", "list#/0 list#/1");
    assert_string_equal(lab_dependents(l, "w"), "see_0");
    assert_json(l, "list", "[4,5,0]");
    assert_int_equal(lab_find(l, "see_2")->runs, 1);
}

/* C59: outputs may lie beside each other, and beside their inputs, in one document. */
static void outputs_inside_one_document(void **state) {
    lab_set_json(l, "doc", "{\"n\":1}");
    lab_add(l, .name = "x", .reads = "doc#/n", .output = "doc#/x", .formula = twice);
    lab_add(l, .name = "y", .reads = "doc#/x", .output = "doc#/y", .formula = twice);
    lab_effect(l, "show", "doc#/y");
    lab_effect(l, "all", "doc");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "doc#/n", 2);
    lab_settle(l);
    assert_ran(l, "x y show all");
    assert_seen(l, "all", "{\"n\":2,\"x\":4,\"y\":8}");
    assert_string_equal(lab_dependents(l, "x"), "y all");
}

/* C63: a writer with surface X that writes Y, registered again: readers of Y do not become its
 * dependents, readers of X stay. */
static void registering_again_keeps_the_surface(void **state) {
    lab_add(l, .name = "w", .body = write_by_turns, .output = "x", .declares = "n");
    lab_effect(l, "see_x", "x");
    lab_effect(l, "see_y", "y");
    lab_settle(l);
    lab_set(l, "n", 1); /* now it writes y */
    lab_settle(l);
    lab_add(l, .again = "w", .output = "y");
    lab_settle(l);
    assert_surface("w", "x");
    assert_string_equal(lab_dependents(l, "w"), "see_x");
}

/* C64: ignored targets are neither in the surface nor edges. */
static void ignored_targets_are_left_out(void **state) {
    lab_add(l, .name = "w", .body = write_by_turns, .output = "x", .side_outputs = "y z",
            .ignored = "y");
    lab_effect(l, "see_y", "y");
    assert_surface("w", "x z");
    assert_string_equal(lab_dependents(l, "w"), "");
    assert_false(lab_is_live(l, "w"));
}

/* C65: a write outside the surface is committed, and counted, and told with its address. */
static void a_write_outside_the_surface_is_counted(void **state) {
    lab_add(l, .name = "w", .body = write_by_turns, .output = "x", .declares = "n");
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_int_equal(lab_stats(l).outside_surface, 0);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_int_equal(lab_stats(l).outside_surface, 1);
    assert_json(l, "y", "3");
    assert_true(lab_env_logged(lab_world(l), "main/y") > 0);
}

/* One warning for a node, however often it writes there. */
static void a_write_outside_the_surface_is_warned_of_once(void **state) {
    lab_add(l, .name = "w", .body = write_by_turns, .output = "x", .declares = "n");
    lab_effect(l, "show", "x");
    lab_set(l, "n", 3);
    lab_settle(l);
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "node \"w\" wrote main/y"), 1);
}

/* Writes n at the cells in its data, and at doc#/a. */
static hd_status write_at(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, "doc#/a/x", n);
    return status || !self->data ? status : lab_tx_put(self, tx, self->data, n);
}

/* C59, C65: what lies beside an output, or above it, is outside as well, in the same document. */
static void a_write_beside_the_output_is_outside(void **state) {
    static char *const outside[] = { "doc#/b", "doc#/ab", "doc" };
    static const char *const told[] = { "main/doc#/b,", "main/doc#/ab,", "main/doc," };
    for (int i = 0; i < 3; i++) {
        char name[16], shows[20];
        snprintf(name, sizeof name, "w%d", i);
        snprintf(shows, sizeof shows, "show%d", i);
        lab_set_json(l, "doc", "{\"other\":1}");
        lab_add(l, .name = name, .body = write_at, .output = "doc#/a", .declares = "n",
                .data = outside[i]);
        lab_effect(l, shows, "doc#/a");
        lab_set(l, "n", i + 1);
        lab_settle(l);
        assert_int_equal(lab_stats(l).outside_surface, i + 1);
        assert_int_equal(lab_env_logged(lab_world(l), told[i]), 1);
        lab_cancel(l, name);
        lab_cancel(l, shows);
    }
    assert_json(l, "doc", "3");
}

static hd_status shorten(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    return hd_tx_remove(tx, lab_cell(self->at, "list#/2"));
}

/* C65: what lies below an output is inside, and so is the output itself where it is removed. */
static void a_write_below_the_output_is_inside(void **state) {
    lab_set_json(l, "doc", "{\"other\":1}");
    lab_set_json(l, "list", "[1,2,3]");
    lab_add(l, .name = "w", .body = write_at, .output = "doc#/a", .declares = "n");
    lab_add(l, .name = "s", .body = shorten, .output = "list#/2", .declares = "n");
    lab_effect(l, "show", "doc#/a list#/2");
    lab_settle(l);
    assert_json(l, "doc", "{\"a\":{\"x\":0},\"other\":1}");
    assert_json(l, "list", "[1,2]");
    assert_int_equal(lab_stats(l).outside_surface, 0);
}

static hd_status write_nothing(hd_tx *tx, void *ctx) { return HD_OK; }
static hd_status write_there(hd_tx *tx, void *ctx) {
    return hd_tx_set_int(tx, hd_cell_at(hd_tx_runtime(tx), "main/there"), 1);
}

static void one_output_of_two_nodes_is_warned_of(void **state) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_cell x = hd_cell_at(rt, "main/x");
    assert_true(hd_compute(rt, "one", write_nothing, NULL, x).id);
    assert_int_equal(lab_env_logged(lab_world(l), "warning"), 0);
    assert_true(hd_compute(rt, "two", write_nothing, NULL, x).id);
    assert_int_equal(
        lab_env_logged(lab_world(l), "node \"two\": main/x is the output of another node as well"),
        1);
}

/* A node that was warned of for one thing is warned of for another. */
static void each_mistake_is_warned_of_by_itself(void **state) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_cell x = hd_cell_at(rt, "main/x");
    hd_node_spec spec = { .name = "one", .fn = write_nothing, .output = x };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    spec = (hd_node_spec){ .name = "two", .fn = write_there, .output = x, .run_once = true };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "node \"two\": main/x is the output of another"),
                     1);
    assert_int_equal(lab_env_logged(lab_world(l), "node \"two\" wrote main/there"), 1);
}

static hd_status read_alone(hd_tx *tx, void *ctx) {
    return hd_value_status(hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/n")));
}
static void an_output_that_a_first_run_does_not_write_is_told(void **state) {
    hd_runtime *rt;
    hd_options options = { .env = lab_env_of(lab_world(l)) };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    hd_node_spec spec = {
        .name = "early", .fn = read_alone, .output = hd_cell_at(rt, "main/x"), .run_once = true
    };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(lab_env_logged(lab_world(l), "did not write"), 0); /* main/n is absent too */
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "1"), HD_OK);
    spec.name = "idle", spec.output = hd_cell_at(rt, "main/y");
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(lab_env_logged(lab_world(l), "node \"idle\" did not write its output main/y"),
                     1);
    assert_int_equal(hd_close(rt), HD_OK);
}

static hd_status remove_x(hd_tx *tx, void *ctx) {
    hd_status status = read_alone(tx, ctx);
    return status ? status : hd_tx_remove(tx, hd_cell_at(hd_tx_runtime(tx), "main/x"));
}

/* A computation that has no result removes its output. The same for nodes of a pattern and for strict runtimes. */
static void an_output_that_is_removed_is_no_fault(void **state) {
    hd_runtime *rt = lab_runtime_now(l);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "1"), HD_OK);
    hd_node_spec spec = {
        .name = "none", .fn = remove_x, .output = hd_cell_at(rt, "main/x"), .run_once = true
    };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "did not write"), 0);
    assert_int_equal(lab_stats(l).failures, 0);
}

static void note_message(const hd_failure *f, void *ctx) { snprintf(ctx, 128, "%s", f->message); }

static hd_status put_out(hd_tx *tx, void *ctx) { return hd_tx_outbox(tx, "mail", hd_double(1)); }

/* hd_options.strict: the same are errors. */
static void a_strict_runtime_refuses_them(void **state) {
    hd_runtime *rt;
    char message[128] = "";
    hd_options options = { .env = lab_env_of(lab_world(l)), .strict = true };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    hd_cell x = hd_cell_at(rt, "main/x");
    assert_int_equal(hd_runtime_on_error(rt, note_message, message), HD_OK);
    hd_node_spec spec = { .name = "one", .fn = write_there, .output = x, .run_once = true };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    spec.name = "two";
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_USAGE);
    assert_string_equal(hd_runtime_error(rt)->message,
                        "main/x is the output of the node \"one\" already");
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(
        message, "it wrote main/there, which is none of its outputs; an effect may write that");
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "1"), HD_OK);
    spec = (hd_node_spec){
        .name = "idle", .fn = read_alone, .output = hd_cell_at(rt, "main/y"), .run_once = true
    };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(message, "it did not write its output main/y");
    spec = (hd_node_spec){ .name = "mailer", .fn = put_out, .effect = true };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(message, "only a handler has an outbox: send an event, whose handler puts "
                                 "the message there"); /* not that of the run before */
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    assert_false(hd_value_exists(hd_read(rt, pool, hd_cell_at(rt, "main/there"))));
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static hd_status write_beside(hd_tx *tx, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_status status = hd_tx_set_int(tx, hd_cell_at(rt, "main/doc#/a"), 1);
    return status ? status : hd_tx_set_int(tx, hd_cell_at(rt, "main/doc#/b"), 1);
}

/* hd_options.strict, C65: also beside the output in its document. */
static void a_strict_runtime_refuses_a_write_beside_the_output(void **state) {
    hd_runtime *rt;
    char message[128] = "";
    hd_options options = { .env = lab_env_of(lab_world(l)), .strict = true };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_runtime_on_error(rt, note_message, message), HD_OK);
    hd_node_spec spec = {
        .name = "one", .fn = write_beside, .output = hd_cell_at(rt, "main/doc#/a"), .run_once = true
    };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(
        message, "it wrote main/doc#/b, which is none of its outputs; an effect may write that");
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    assert_false(hd_value_exists(hd_read(rt, pool, hd_cell_at(rt, "main/doc"))));
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static hd_status write_slots(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, "main@user/mine", n);
    if (!status) status = lab_tx_put(self, tx, "main@session/now", n);
    return status ? status : lab_tx_put(self, tx, "x", n);
}

/* C66: slots of the user and of the session are nobody's surface: no diagnostic. */
static void a_slot_of_the_user_is_no_trespass(void **state) {
    lab_add(l, .name = "w", .body = write_slots, .output = "x", .declares = "n");
    lab_effect(l, "show", "x");
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_json(l, "main@user/mine", "3");
    assert_json(l, "main@session/now", "3");
    assert_int_equal(lab_stats(l).outside_surface, 0);
}

static bool last_run(const hd_run_trace *run, void *ctx) {
    *(hd_run_trace *)ctx = *run;
    return true;
}

static hd_status write_y(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "y", lab_tx_number(self, tx, "n"));
}

/* C67: in the trace of an effect that writes, nothing is declared and what it wrote is listed. */
static void the_trace_lists_what_an_effect_wrote(void **state) {
    hd_run_trace run = { 0 };
    hd_trace_enable(lab_runtime_now(l), HD_TRACE_RUNS);
    lab_set(l, "n", 2);
    lab_add(l, .name = "e", .body = write_y, .effect = true);
    lab_settle(l);
    hd_trace_runs(lab_runtime_now(l), last_run, &run);
    assert_string_equal(run.action, "e");
    assert_int_equal(run.declared.count, 0);
    assert_int_equal(run.written.count, 1);
    assert_int_equal(run.written.cells[0].id, lab_cell(lab_on(l, "a"), "y").id);
    assert_int_equal(lab_stats(l).outside_surface, 0);
}

/* ---- materialisers */

static hd_status fill_key(lab_node *self, hd_tx *tx) {
    char cell[32];
    snprintf(cell, sizeof cell, "table#/k%d", (int)lab_tx_number(self, tx, "key"));
    return lab_tx_put(self, tx, cell, lab_tx_number(self, tx, "value"));
}

static void add_fill(uint32_t debounce_ms) {
    lab_set_json(l, "table", "{}");
    lab_add(l, .name = "fill", .body = fill_key, .output = "-", .envelopes = "table",
            .debounce_ms = debounce_ms);
}

/* C68: a materialiser runs when it is registered and each time its input changes, without readers. */
static void a_materialiser_needs_no_reader(void **state) {
    add_fill(0);
    lab_settle(l);
    assert_ran(l, "fill");
    lab_set(l, "value", 7);
    lab_settle(l);
    assert_ran(l, "fill");
    assert_json(l, "table", "{\"k0\":7}");
    assert_true(lab_info(l, "fill").materialiser);
    assert_true(lab_is_live(l, "fill"));
}

/* C69: with a materialiser and an unrelated effect both invalid the effect comes first; then the
 * materialiser; then the readers of what it changed. */
static void a_materialiser_waits_until_there_is_nothing_else(void **state) {
    add_fill(0);
    lab_effect(l, "other", "value");
    lab_settle(l);
    assert_ran(l, "other fill");
    lab_effect(l, "late", "table#/k0");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "value", 7);
    lab_settle(l);
    assert_ran(l, "other fill late");
    assert_seen(l, "late", "7");
}

/* C70: who reads inside an envelope is no dependent because of it. */
static void an_envelope_makes_no_dependents(void **state) {
    add_fill(0);
    lab_effect(l, "one", "table#/k0");
    lab_effect(l, "all", "table");
    lab_settle(l);
    assert_string_equal(lab_dependents(l, "fill"), "");
}

/* C71: of 100 readers of different keys only the one whose key the materialiser changed runs. */
static void only_the_reader_of_the_changed_key_runs(void **state) {
    char name[16], cell[24];
    add_fill(0);
    lab_settle(l);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "r%d", i);
        snprintf(cell, sizeof cell, "table#/k%d", i);
        lab_effect(l, name, cell);
    }
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "key", 42);
    lab_settle(l);
    assert_ran(l, "fill r42");
}

/* C72: an effect that reads inside the envelope and is itself triggered waits for the materialiser,
 * and sees one, fresh value. */
static void a_triggered_reader_promotes_the_materialiser(void **state) {
    add_fill(0);
    lab_effect(l, "both", "value table#/k0");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "value", 9);
    lab_settle(l);
    assert_ran(l, "fill both");
    assert_seen(l, "both", "9 9");
}

static double same(const double *in) { return in[0]; }

/* C376: also a reader of what is derived from inside the envelope. */
static void a_reader_behind_a_clean_node_promotes_the_materialiser(void **state) {
    add_fill(0);
    lab_compute(l, "copy", "table#/k0", same);
    lab_effect(l, "both", "value copy");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "value", 9);
    lab_settle(l);
    assert_ran(l, "fill copy both");
    assert_seen(l, "both", "9 9");
}

/* C74: three changes inside the window of a debounced materialiser cost one more run, with the last
 * value. */
static void a_debounced_materialiser_runs_once_for_three_changes(void **state) {
    add_fill(100);
    lab_idle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    lab_ran(l);
    for (int i = 1; i <= 3; i++) {
        lab_set(l, "value", i);
        lab_settle(l);
        lab_advance_ms(l, 50);
    }
    lab_settle(l);
    assert_ran(l, "");
    lab_advance_ms(l, 50);
    lab_settle(l);
    assert_ran(l, "fill");
    assert_json(l, "table", "{\"k0\":3}");
}

/* C75: a reader of the same id in another scope is not ordered by the envelope. */
static void an_envelope_ends_with_its_scope(void **state) {
    add_fill(0);
    lab_effect(l, "session", "value main@session/table#/k0");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "value", 5);
    lab_settle(l);
    assert_ran(l, "session fill");
}

/* C76: the writable inputs of a schema, whatever its shape, become envelopes; its streams do not. */
static void writable_inputs_become_envelopes(void **state) {
    const char *envelopes =
        lab_writable(l, "input",
                     "{\"properties\": {\"pair\": {\"prefixItems\": [{\"asCell\": true}, true]},"
                     "\"rows\": {\"items\": {\"asCell\": true}},"
                     "\"either\": {\"anyOf\": [{\"type\": \"null\"}, {\"asCell\": true}]},"
                     "\"more\": {\"additionalProperties\": {\"asCell\": true}},"
                     "\"click\": {\"asStream\": true}}}");
    lab_add(l, .name = "m", .body = fill_key, .output = "-", .envelopes = envelopes);
    assert_surface("m", "^input#/either ^input#/more ^input#/pair/0 ^input#/rows");
}

/* C77: where only streams are named nothing is collected: the node is no materialiser. */
static void streams_alone_make_no_materialiser(void **state) {
    const char *envelopes =
        lab_writable(l, "input", "{\"properties\": {\"click\": {\"asStream\": true}}}");
    assert_string_equal(envelopes, "");
    lab_add(l, .name = "m", .body = fill_key, .output = "-", .envelopes = envelopes);
    assert_false(lab_info(l, "m").materialiser);
    assert_surface("m", "");
}

static hd_status write_side(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, "x", n);
    return status ? status : lab_tx_put(self, tx, "side", n + 1);
}

/* C354: somebody who reads only a static side target demands the node as much. */
static void a_side_target_carries_demand(void **state) {
    lab_add(l, .name = "w", .body = write_side, .output = "x", .side_outputs = "side",
            .declares = "n");
    lab_effect(l, "show", "side");
    lab_settle(l);
    assert_ran(l, "w show");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "w show");
    assert_seen(l, "show", "5");
    assert_json(l, "x", "4");
    assert_int_equal(lab_stats(l).outside_surface, 0);
}

/* C355: of a node with envelopes the writable inputs are not outputs as well. */
static void envelopes_take_the_place_of_side_outputs(void **state) {
    lab_set_json(l, "table", "{}");
    lab_add(l, .name = "m", .body = fill_key, .output = "x", .side_outputs = "s t",
            .envelopes = "table");
    assert_surface("m", "x ^table");
    lab_effect(l, "see_s", "s");
    lab_settle(l);
    assert_string_equal(lab_dependents(l, "m"), "");
}

/* C10: an effect has no outputs. */
static void an_effect_declares_no_outputs(void **state) {
    lab_node *n = lab_add(l, .name = "e", .effect = true, .side_outputs = "x");
    assert_int_equal(n->status, HD_USAGE);
    assert_int_equal(lab_stats(l).nodes, 0);
}

/* Without promotion the effect sees the old value first, and C72 notices. */
static void without_promotion_c72_fails(void **state) {
    struct CMUnitTest test = S(a_triggered_reader_promotes_the_materialiser);
    spec_must_notice(LEAVE_OUT_PROMOTION, test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(the_surface_is_what_was_declared),
        S(an_output_alone_is_the_surface),
        S(runs_do_not_change_the_surface),
        S(the_surface_is_not_broadened),
        S(outputs_inside_one_document),
        S(registering_again_keeps_the_surface),
        S(ignored_targets_are_left_out),
        S(a_write_outside_the_surface_is_counted),
        S(a_write_outside_the_surface_is_warned_of_once),
        S(a_write_beside_the_output_is_outside),
        S(a_write_below_the_output_is_inside),
        S(one_output_of_two_nodes_is_warned_of),
        S(each_mistake_is_warned_of_by_itself),
        S(an_output_that_a_first_run_does_not_write_is_told),
        S(an_output_that_is_removed_is_no_fault),
        S(a_strict_runtime_refuses_them),
        S(a_strict_runtime_refuses_a_write_beside_the_output),
        S(a_slot_of_the_user_is_no_trespass),
        S(the_trace_lists_what_an_effect_wrote),
        S(a_materialiser_needs_no_reader),
        S(a_materialiser_waits_until_there_is_nothing_else),
        S(an_envelope_makes_no_dependents),
        S(only_the_reader_of_the_changed_key_runs),
        S(a_triggered_reader_promotes_the_materialiser),
        S(a_reader_behind_a_clean_node_promotes_the_materialiser),
        S(a_debounced_materialiser_runs_once_for_three_changes),
        S(an_envelope_ends_with_its_scope),
        S(writable_inputs_become_envelopes),
        S(streams_alone_make_no_materialiser),
        S(a_side_target_carries_demand),
        S(envelopes_take_the_place_of_side_outputs),
        S(an_effect_declares_no_outputs),
        cmocka_unit_test(without_promotion_c72_fails),
    };
    LAB_EVERYWHERE(tests);
}

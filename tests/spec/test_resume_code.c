/* test_resume_code.c -- which code a row speaks for (area O): a node that is not quite what it was runs, and
 * no other does. */
#include "piece_world.h"

/* What there is to say of a node apart from what it does. */
typedef struct code {
    const char *version, *output, *side, *envelope, *declared;
    bool schema;
} code;

static const code usual = { .version = "1", .output = "main/two", .declared = "main/n" };

static hd_status copy_n(hd_tx *tx, void *ctx) {
    const code *c = ctx;
    lab_note(l, "two");
    hd_value n = hd_tx_get(tx, hd_cell_at(rt(), "main/n"));
    if (c->side) hd_tx_set(tx, hd_cell_at(rt(), c->side), n);
    return hd_tx_set(tx, hd_cell_at(rt(), c->output), n);
}

static hd_schema *number_schema(void) {
    hd_pool *pool;
    hd_schema *schema;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    hd_value source = hd_json_parse(pool, "{\"type\":\"number\"}", 17, NULL);
    assert_int_equal(hd_schema_compile(hd_runtime_heap(rt()), source, &schema, NULL), HD_OK);
    hd_pool_close(pool);
    return schema;
}

static void register_two(const code *c) {
    hd_node node;
    hd_schema *schema = c->schema ? number_schema() : NULL;
    hd_cell output = hd_cell_at(rt(), c->output), declared = hd_cell_at(rt(), c->declared);
    hd_cell side = c->side ? hd_cell_at(rt(), c->side) : (hd_cell){ 0 };
    hd_cell envelope = c->envelope ? hd_cell_at(rt(), c->envelope) : (hd_cell){ 0 };
    if (schema) output = hd_cell_with_schema(rt(), output, schema);
    hd_node_spec spec = { .name = "two",
                          .fn = copy_n,
                          .ctx = (void *)(uintptr_t)c,
                          .version = c->version,
                          .output = output,
                          .side_outputs = &side,
                          .side_output_count = c->side != NULL,
                          .envelopes = &envelope,
                          .envelope_count = c->envelope != NULL,
                          .reads = &declared,
                          .read_count = 1 };
    assert_int_equal(hd_node_register(rt(), &spec, &node), HD_OK);
    hd_schema_close(schema);
}

/* One life of the program. What ran in it. */
static const char *live(const code *c) {
    lab_on(l, "a");
    lab_add(l, .name = "one", .reads = "n", .version = "1");
    register_two(c);
    lab_add(l, .name = "three", .reads = "n", .version = "1");
    lab_effect(l, "show", "one two other three");
    settle();
    stop();
    return lab_ran(l);
}

/* C297: this is another one; the rest of the program is as it was. */
static void runs_as_another(code other, const char *run) {
    lab_set(l, "n", 3);
    assert_string_equal(live(&usual), "one two three show");
    assert_string_equal(live(&usual), "show");
    assert_string_equal(live(&other), run);
    assert_string_equal(live(&other), "show");
    assert_string_equal(live(&usual), "two show");
}

static void another_version(void **state) {
    code c = usual;
    c.version = "2";
    runs_as_another(c, "two show");
}
static void another_output(void **state) {
    code c = usual;
    c.output = "main/other";
    runs_as_another(c, "two show");
}
static void one_more_output(void **state) {
    code c = usual;
    c.side = "main/other";
    runs_as_another(c, "two show");
}
static void an_envelope(void **state) {
    code c = usual;
    c.envelope = "main/box";
    runs_as_another(c, "two show");
}
static void other_declared_reads(void **state) {
    code c = usual;
    c.declared = "main/m";
    runs_as_another(c, "two show");
}
static void a_schema_for_its_output(void **state) {
    code c = usual;
    c.schema = true;
    runs_as_another(c, "two show");
}

/* ---- a miss */

static bool more;
static void growing(void) {
    lab_add(l, .name = "one", .reads = "n", .version = "1");
    if (more) lab_add(l, .name = "new", .reads = "one", .version = "1");
    lab_effect(l, "show", more ? "one new" : "one");
}

/* C297: a node of which nothing is known has an ordinary first run, beside others that have none. */
static void a_node_that_is_new_runs_alone(void **state) {
    more = false;
    lab_set(l, "n", 3);
    growing();
    settle();
    assert_ran(l, "one show");
    restart();
    more = true;
    growing();
    assert_true(lab_is_clean(l, "one"));
    assert_int_equal(lab_info(l, "new").status, HD_NODE_NEVER_RAN);
    settle();
    assert_ran(l, "new show");
    assert_seen(l, "show", "3 3");
    restart();
    growing();
    settle();
    assert_ran(l, "show");
}

static hd_cell pair(hd_build *b, void *ctx) {
    hd_cell x = hd_cell_at(rt(), "main/x");
    hd_build_sink(b, "look", hd_build_derive(b, "left", x, twice, "left"), show, NULL);
    if (more) hd_build_sink(b, "see", hd_build_derive(b, "right", x, twice, "right"), show, NULL);
    return x;
}

/* C297: the same in a piece whose pattern has got one more. */
static void a_pattern_that_grew_runs_what_is_new(void **state) {
    lab_set(l, "x", 1);
    more = false;
    start_piece("pair", pair);
    settle();
    assert_ran(l, "left show");
    restart();
    more = true;
    start_piece("pair", pair);
    settle();
    assert_ran(l, "show right show");
}

/* ---- the surface */

static hd_status put_two(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, "main", n);
    return status ? status : lab_tx_put(self, tx, "side", n + 1);
}
static hd_status fill_box(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "box#/inside", lab_tx_number(self, tx, "main") + 2);
}
static void with_surfaces(void) {
    lab_add(l, .name = "writer", .body = put_two, .output = "main", .side_outputs = "side",
            .version = "1");
    lab_add(l, .name = "filler", .body = fill_box, .output = "-", .envelopes = "box",
            .version = "1");
    lab_add(l, .name = "reader", .reads = "side", .version = "1");
    lab_effect(l, "show", "reader box#/inside");
}

static char names[128];
static void add_name(hd_node node, void *ctx) {
    hd_node_info info;
    assert_int_equal(hd_node_inspect(rt(), node, &info), HD_OK);
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s ", info.name);
}
static const char *dependents(const char *name) {
    names[0] = '\0';
    assert_int_equal(hd_node_dependents(rt(), hd_node_find(rt(), name), add_name, NULL), HD_OK);
    return names;
}

/* C299: what a node writes is known, and its readers, before anything has run; nobody declared what the
 * filler reads, its row knows it. */
static void surfaces_and_edges_are_there_without_a_run(void **state) {
    lab_set(l, "n", 3);
    with_surfaces();
    settle();
    lab_ran(l);
    restart();
    with_surfaces();
    assert_string_equal(dependents("writer"), "filler reader ");
    assert_string_equal(dependents("filler"), ""); /* an envelope gives no edges */
    assert_true(lab_is_live(l, "writer") && lab_is_clean(l, "writer"));
    assert_true(lab_info(l, "filler").materialiser && lab_is_clean(l, "filler"));
    assert_int_equal(lab_stats(l).runs, 0);
    settle();
    assert_ran(l, "show");
    lab_set(l, "n", 5);
    settle();
    assert_seen(l, "show", "6 7");
}

/* C299: the same for one whose output is all that it declares, in a piece. */
static void edges_of_a_piece_are_there_without_a_run(void **state) {
    more = true;
    lab_set(l, "x", 1);
    start_piece("pair", pair);
    settle();
    lab_ran(l);
    restart();
    start_piece("pair", pair);
    hd_node_info info;
    assert_int_equal(hd_node_inspect(rt(), hd_node_find(rt(), "main:pair:left"), &info), HD_OK);
    assert_int_equal(info.status, HD_NODE_CLEAN);
    assert_int_equal(info.reads, 1);
    assert_int_equal(info.runs, 0);
    assert_int_equal(lab_stats(l).runs, 0);
    lab_settle(l);
    assert_ran(l, "show show");
    lab_set(l, "x", 2);
    lab_settle(l);
    assert_ran(l, "left show right show");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(another_version),
        S(another_output),
        S(one_more_output),
        S(an_envelope),
        S(other_declared_reads),
        S(a_schema_for_its_output),
        S(a_node_that_is_new_runs_alone),
        S(a_pattern_that_grew_runs_what_is_new),
        S(surfaces_and_edges_are_there_without_a_run),
        S(edges_of_a_piece_are_there_without_a_run),
    };
    LAB_EVERYWHERE(tests);
}

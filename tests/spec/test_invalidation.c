/* test_invalidation.c -- area E: a value that was read really changed, and nothing else, makes a node
 * invalid. What exactly counts as a change is decided by the definition of a match (2.4 to 2.6). */
#include "scheduler/state.h" /* first: it names things l, too */
#include "spec.h"

static double twice(const double *in) { return 2 * in[0]; }
static double parity(const double *in) { return (double)((int)in[0] % 2); }

/* ---- one read, one change */

/* Whether an effect that reads `read` of "doc" runs when the document changes. "-": absent. */
static bool is_triggered(const char *read, const char *before, const char *after) {
    lab_remove(l, "doc");
    if (strcmp(before, "-") != 0) lab_set_json(l, "doc", before);
    lab_effect(l, "reader", read);
    lab_settle(l);
    lab_ran(l);
    if (strcmp(after, "-") == 0) lab_remove(l, "doc");
    else lab_set_json(l, "doc", after);
    lab_settle(l);
    bool ran = strcmp(lab_ran(l), "reader") == 0;
    lab_cancel(l, "reader");
    return ran;
}
#define assert_triggered(read, before, after)     assert_true(is_triggered(read, before, after))
#define assert_not_triggered(read, before, after) assert_false(is_triggered(read, before, after))

/* C78: when the cell it reads changes a live effect runs exactly once more. */
static void a_change_runs_its_reader_once(void **state) {
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_settle(l);
    assert_ran(l, "show show");
}

/* C79: a write that leaves the value at the read path as it was does not trigger. */
static void what_was_read_did_not_change(void **state) {
    assert_not_triggered("doc", "{\"a\":1}", "{\"a\":1}");
    assert_not_triggered("doc#/a", "{\"a\":{\"b\":1},\"x\":1}", "{\"a\":{\"b\":1},\"x\":2}");
    assert_not_triggered("doc#/a/b", "{\"a\":{\"b\":1,\"c\":1}}", "{\"a\":{\"b\":1,\"c\":2}}");
}

/* C80: both readers of a path are triggered, each once, also if several of its paths changed. */
static void each_reader_is_triggered_once(void **state) {
    lab_set_json(l, "doc", "{\"a\":1,\"b\":1}");
    lab_effect(l, "one", "doc#/a doc#/b doc");
    lab_effect(l, "two", "doc#/a");
    lab_settle(l);
    lab_ran(l);
    lab_set_json(l, "doc", "{\"a\":2,\"b\":2}");
    lab_settle(l);
    assert_ran(l, "one two");
}

/* C81: the reader of a parent is triggered by a child, the reader of a sibling is not. */
static void a_child_concerns_its_parents_and_not_its_siblings(void **state) {
    const char *before = "{\"a\":{\"b\":1},\"c\":1}", *after = "{\"a\":{\"b\":2},\"c\":1}";
    assert_triggered("doc", before, after);
    assert_triggered("doc#/a", before, after);
    assert_triggered("doc#/a/b", before, after);
    assert_not_triggered("doc#/c", before, after);
}

/* C82: a value that appears, disappears, becomes null or leaves null is a change. */
static void coming_and_going_is_a_change(void **state) {
    assert_triggered("doc", "-", "1");
    assert_triggered("doc", "1", "-");
    assert_triggered("doc", "1", "null");
    assert_triggered("doc", "null", "1");
    assert_triggered("doc", "-", "null");
    assert_triggered("doc#/a", "{}", "{\"a\":null}");
    assert_triggered("doc#/a", "{\"a\":null}", "{}");
    assert_triggered("doc#/a", "{\"a\":null}", "{\"a\":0}");
}

/* C83: element, order and length concern the deep reader of the array; an untouched index is not
 * concerned. */
static void arrays_change_by_element_order_and_length(void **state) {
    assert_triggered("doc", "[1,2]", "[1,3]");
    assert_triggered("doc", "[1,2]", "[2,1]");
    assert_triggered("doc", "[1,2]", "[1,2,3]");
    assert_triggered("doc", "[1,2]", "[1]");
    assert_not_triggered("doc#/0", "[1,2]", "[1,3]");
    assert_not_triggered("doc#/0", "[1,2]", "[1,2,3]");
    assert_triggered("doc#/1", "[1,2]", "[1]");
}

/* C84: an index that exists on neither side is not concerned when the array is rewritten. */
static void an_index_beyond_the_end_is_not_concerned(void **state) {
    assert_not_triggered("doc#/5", "[1,2]", "[3,4]");
    assert_not_triggered("doc#/5", "[1,2]", "[1,2,3]");
    assert_triggered("doc#/2", "[1,2]", "[1,2,3]");
}

/* C85: of a scalar root that becomes another scalar the root reader hears, the field reader not. */
static void a_scalar_has_no_fields(void **state) {
    assert_triggered("doc", "42", "43");
    assert_not_triggered("doc#/field", "42", "43");
}

/* C86: an object that becomes a literal or an array, or the other way, concerns readers at it and
 * below. */
static void another_kind_concerns_everything_below(void **state) {
    assert_triggered("doc#/a", "{\"a\":{\"b\":1}}", "{\"a\":5}");
    assert_triggered("doc#/a/b", "{\"a\":{\"b\":1}}", "{\"a\":5}");
    assert_triggered("doc#/a/b/c", "{\"a\":{\"b\":1}}", "{\"a\":5}");
    assert_triggered("doc#/a", "{\"a\":{\"b\":1}}", "{\"a\":[]}");
    assert_triggered("doc#/a/b", "{\"a\":{\"b\":1}}", "{\"a\":[]}");
    assert_triggered("doc#/a/b", "{\"a\":5}", "{\"a\":{\"b\":1}}");
    assert_triggered("doc#/a/0", "{\"a\":{}}", "{\"a\":[1]}");
}

/* C87: an intermediate container that appears is a change though the leaf stays absent. */
static void a_container_on_the_way_counts(void **state) {
    assert_triggered("doc#/a/b/c", "{\"a\":{}}", "{\"a\":{\"b\":{\"x\":1}}}");
    assert_triggered("doc#/a/b/c", "{}", "{\"a\":{}}");
    assert_not_triggered("doc#/a/b/c", "{\"a\":{}}", "{\"a\":{\"x\":1}}");
}

/* C88: a change deeper than every read concerns the readers of its ancestors. */
static void a_deep_change_concerns_its_ancestors(void **state) {
    const char *before = "{\"a\":{\"b\":{\"c\":{\"d\":1}}}}";
    const char *after = "{\"a\":{\"b\":{\"c\":{\"d\":2}}}}";
    assert_triggered("doc#/a/b", before, after);
    assert_triggered("doc#/a", before, after);
    assert_triggered("doc", before, after);
}

/* C89: a change on an unrelated branch concerns nobody. */
static void an_unrelated_branch_concerns_nobody(void **state) {
    uint64_t before;
    lab_set_json(l, "doc", "{\"user\":{\"n\":1},\"post\":{\"t\":1}}");
    lab_effect(l, "post", "doc#/post/t");
    lab_effect(l, "other", "elsewhere");
    lab_settle(l);
    lab_ran(l);
    before = lab_stats(l).marks;
    lab_set(l, "doc#/user/n", 2);
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).marks, before);
}

/* C90: the value of an existing child does not concern a shallow reader. */
static void a_shallow_reader_does_not_see_into_children(void **state) {
    assert_not_triggered("~doc", "{\"a\":1}", "{\"a\":2}");
    assert_not_triggered("~doc#/a", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}");
    assert_not_triggered("~doc", "[1,2]", "[3,4]");
    assert_not_triggered("~doc", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2}}");
}

/* C91: a child key that comes or goes does. */
static void a_shallow_reader_sees_keys_and_length(void **state) {
    assert_triggered("~doc", "{\"a\":1}", "{\"a\":1,\"b\":2}");
    assert_triggered("~doc#/a", "{\"a\":{\"b\":1}}", "{\"a\":{}}");
    assert_triggered("~doc", "{\"a\":1}", "{\"b\":1}");
    assert_triggered("~doc", "[1]", "[1,2]");
}

/* C92: a shallow reader of a scalar sees its new value. */
static void a_shallow_reader_sees_a_scalar(void **state) {
    assert_triggered("~doc", "1", "2");
    assert_triggered("~doc#/a", "{\"a\":\"x\"}", "{\"a\":\"y\"}");
    assert_not_triggered("~doc#/a", "{\"a\":1,\"b\":1}", "{\"a\":1,\"b\":2}");
}

/* C93: another kind of container, or another parent, concerns a shallow reader. */
static void a_shallow_reader_sees_the_kind(void **state) {
    assert_triggered("~doc#/a", "{\"a\":{\"b\":1},\"x\":1}", "{\"a\":[],\"x\":2}");
    assert_triggered("~doc#/a", "{\"a\":{}}", "{\"a\":[]}");
    assert_triggered("~doc#/a/b", "{\"a\":{\"b\":{}}}", "{\"a\":5}");
    assert_triggered("~doc", "{}", "-");
}

/* C94: of a shallow and a deep reader of one path only the deep one sees a deep change. */
static void shallow_and_deep_of_one_path(void **state) {
    lab_set_json(l, "doc", "{\"a\":{\"b\":1}}");
    lab_effect(l, "shallow", "~doc#/a");
    lab_effect(l, "deep", "doc#/a");
    lab_add(l, .name = "both", .reads = "~doc#/a doc#/a", .effect = true);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "doc#/a/b", 2);
    lab_settle(l);
    assert_ran(l, "deep both");
    lab_set(l, "doc#/a/c", 2);
    lab_settle(l);
    assert_ran(l, "shallow deep both");
}

/* C95: there is no value here that cannot be compared: under a shallow read, too, a leaf of every
 * kind that is replaced by another of its kind is seen, without failure. */
static void every_kind_of_leaf_can_be_compared(void **state) {
    static const char *const pairs[][2] = {
        { "true", "false" },
        { "1", "2" },
        { "1", "1.0" },
        { "0.0", "-0.0" },
        { "\"a\"", "\"b\"" },
        { "{\"$bytes\":\"AAE=\"}", "{\"$bytes\":\"AAI=\"}" },
        { "{\"$double\":\"NaN\"}", "{\"$double\":\"Infinity\"}" },
        { "{\"$link\":{\"id\":\"p\"}}", "{\"$link\":{\"id\":\"q\"}}" },
    };
    lab_catch(l);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_triggered("~doc", pairs[i][0], pairs[i][1]);
    assert_not_triggered("~doc", "{\"$double\":\"NaN\"}", "{\"$double\":\"NaN\"}");
    assert_string_equal(lab_failures(l), "");
}

/* C96: bytes that are replaced by other bytes run their dependents. */
static void bytes_are_compared_by_content(void **state) {
    assert_triggered("doc", "{\"$bytes\":\"AAE=\"}", "{\"$bytes\":\"AAI=\"}");
    assert_triggered("doc#/a", "{\"a\":{\"$bytes\":\"AAE=\"}}", "{\"a\":{\"$bytes\":\"AAI=\"}}");
    assert_not_triggered("doc", "{\"$bytes\":\"AAE=\"}", "{\"$bytes\":\"AAE=\"}");
}

/* The vectors of the definition that are not above. */
static void the_vectors_of_the_definition(void **state) {
    assert_not_triggered("doc#/items/5", "{\"items\":[1,2]}", "{\"items\":[3,4]}");
    assert_not_triggered("doc#/items/length", "{\"items\":[1,2]}", "{\"items\":[3,4]}");
    assert_triggered("doc#/items/length", "{\"items\":[1,2]}", "{\"items\":[1,2,3]}");
    assert_triggered("doc#/a/c", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2}}");
    assert_not_triggered("doc#/a/b", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2}}");
    assert_triggered("~doc#/l", "{\"l\":{\"$link\":{\"id\":\"x\"}}}",
                     "{\"l\":{\"$link\":{\"id\":\"y\"}}}");
    assert_not_triggered("~doc", "{\"l\":{\"$link\":{\"id\":\"x\"}}}",
                         "{\"l\":{\"$link\":{\"id\":\"y\"}}}");
    assert_not_triggered("~doc", "[{\"$link\":{\"id\":\"x\"}}]", "[{\"$link\":{\"id\":\"y\"}}]");
    assert_triggered("=doc#/0", "[{\"$link\":{\"id\":\"x\"}}]", "[{\"$link\":{\"id\":\"y\"}}]");
    assert_triggered("doc#/a/b", "-", "{\"a\":{\"b\":1}}");
    assert_triggered("doc#/v", "{\"v\":0.0}", "{\"v\":-0.0}");
    assert_triggered("doc#/none", "{\"a\":1}", "-");
}

/* ---- schemas and links */

/* What a node reads, as the graph knows it: "~list list#/0/name". */
static const char *reads_of_node(const char *name) {
    static char text[512];
    const node *n = graph_node(&lab_scheduler(l)->graph, lab_find(l, name)->node.id);
    text[0] = 0;
    for (uint32_t i = 0; i < n->read_count; i++) {
        uint32_t key = node_reads_const(n)[i].key;
        char cell[64];
        hd_cell_print(lab_runtime_now(l), (hd_cell){ key & KEY_PLACE }, cell, sizeof cell);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s", i ? " " : "",
                 key & KEY_SHAPE ? "~" : "", strncmp(cell, "main/", 5) ? cell : cell + 5);
    }
    return text;
}

/* C97, C98: a sink through a schema on an array hears of an element that is pushed; what it walks it
 * reads by shape only. */
static void a_schema_sink_reads_structure_by_shape(void **state) {
    static const char json[] = "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":"
                               "{\"name\":{\"type\":\"string\"}}}}";
    hd_runtime *rt = lab_runtime_now(l);
    hd_pool *pool;
    hd_schema *schema;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value source = hd_json_parse(pool, json, strlen(json), NULL);
    assert_int_equal(hd_schema_compile(hd_runtime_heap(rt), source, &schema, NULL), HD_OK);
    lab_set_json(l, "list", "[{\"name\":\"a\",\"age\":1}]");
    lab_sink(l, "sink", hd_cell_with_schema(rt, lab_cell(lab_on(l, "a"), "list"), schema));
    lab_settle(l);
    assert_seen(l, "sink", "[{\"name\":\"a\"}]");
    assert_string_equal(reads_of_node("sink"), "~list ~list#/0 list#/0/name");
    lab_ran(l);
    lab_do(lab_on(l, "a"), "append list {\"name\":\"b\"}");
    lab_settle(l);
    assert_ran(l, "sink");
    assert_seen(l, "sink", "[{\"name\":\"a\"},{\"name\":\"b\"}]");
    lab_set(l, "list#/0/age", 2); /* not described by the schema */
    lab_settle(l);
    assert_ran(l, "");
    lab_cancel(l, "sink");
    hd_schema_free(schema);
    hd_pool_close(pool);
}

static void write_chain_of_links(void) {
    lab_set_json(l, "first", "{\"$link\":{\"id\":\"second\"}}");
    lab_set_json(l, "second", "{\"$link\":{\"id\":\"third\"}}");
    lab_set_json(l, "third", "{\"a\":1}");
}

/* C99: a shallow read through a chain of links: an existing key of the final target does not concern
 * it, a key that comes does. */
static void a_shallow_read_through_links(void **state) {
    write_chain_of_links();
    lab_effect(l, "show", "~first");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "third#/a", 2);
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "third#/b", 2);
    lab_settle(l);
    assert_ran(l, "show");
    lab_set_json(l, "second", "{\"$link\":{\"id\":\"fourth\"}}");
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "-");
}

/* C100: through a link into one field of a document only that field concerns. */
static void a_link_into_a_field(void **state) {
    lab_set_json(l, "p", "{\"$link\":{\"id\":\"q\",\"path\":\"/x\"}}");
    lab_set_json(l, "q", "{\"x\":1,\"y\":1}");
    lab_effect(l, "show", "p");
    lab_settle(l);
    assert_seen(l, "show", "1");
    lab_ran(l);
    lab_set(l, "q#/y", 2);
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "q#/x", 2);
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "2");
}

/* C101, C102: a link that a sink follows points to a document that does not exist yet: the sink runs
 * when it appears, and when it changes. */
static void a_link_into_the_void(void **state) {
    lab_set_json(l, "p", "{\"$link\":{\"id\":\"later\"}}");
    lab_sink(l, "sink", lab_cell(lab_on(l, "a"), "p"));
    lab_settle(l);
    assert_seen(l, "sink", "-");
    lab_set(l, "later", 1);
    lab_settle(l);
    assert_seen(l, "sink", "1");
    lab_set(l, "later", 2);
    lab_settle(l);
    assert_seen(l, "sink", "2");
    assert_ran(l, "sink sink sink");
}

/* C103: a computation that reads through a reference held in another cell follows the producer behind
 * it. */
static void a_reference_carries_changes_and_demand(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "inner", "n", twice);
    lab_set_json(l, "holder", "{\"$link\":{\"id\":\"inner\"}}");
    lab_compute(l, "outer", "holder", twice);
    lab_effect(l, "show", "outer");
    lab_settle(l);
    assert_seen(l, "show", "4");
    lab_ran(l);
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "inner outer show");
    assert_seen(l, "show", "20");
}

/* C356: declared reads that miss a link hop cost at most one extra run of the reader, and the result
 * is right. */
static void a_link_hop_that_was_not_declared(void **state) {
    lab_set(l, "n", 1);
    lab_set_json(l, "holder", "{\"$link\":{\"id\":\"inner\"}}");
    lab_compute(l, "inner", "n", twice);
    lab_compute(l, "outer", "holder", twice); /* declares the holder only */
    lab_effect(l, "show", "outer");
    lab_settle(l);
    assert_seen(l, "show", "4");
    assert_true(lab_find(l, "outer")->runs <= 2);
    assert_int_equal(lab_find(l, "inner")->runs, 1);
    assert_int_equal(lab_find(l, "show")->runs, 1);
}

/* C104: a reader of a list's length runs when it grows or shrinks, not when an element changes. */
static void length_is_a_value(void **state) {
    lab_set_json(l, "list", "[1,2]");
    lab_effect(l, "show", "list#/length");
    lab_settle(l);
    assert_seen(l, "show", "2");
    lab_ran(l);
    lab_set(l, "list#/0", 5);
    lab_settle(l);
    assert_ran(l, "");
    lab_do(lab_on(l, "a"), "append list 3");
    lab_settle(l);
    assert_seen(l, "show", "3");
    lab_set_json(l, "list", "[]");
    lab_settle(l);
    assert_seen(l, "show", "0");
    assert_ran(l, "show show");
}

/* C105: a read that is ignored for scheduling causes no run. */
static void an_ignored_read_is_no_dependency(void **state) {
    lab_effect(l, "show", "?n");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "");
}

static int open_late(void **state) {
    l = lab_start_late();
    return 0;
}
#define LATE(test) cmocka_unit_test_setup_teardown(test, open_late, spec_close)

/* C106: a read of a document that is not here is tracked: a write to its address runs the reader. */
static void a_read_that_waits_is_tracked(void **state) {
    lab_effect(l, "show", "n");
    lab_turn(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_seen(l, "show", "1");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_seen(l, "show", "2");
}

/* C125: a fresh start with an input that arrives later converges without a nudge. */
static void a_cold_input_arrives(void **state) {
    lab_on(l, "b");
    lab_set(l, "n", 4);
    lab_settle(l);
    lab_on(l, "a");
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_seen(l, "show", "8");
}

static hd_status read_label(lab_node *self, hd_tx *tx) {
    return hd_value_status(hd_tx_get_meta(tx, lab_cell(self->at, "doc"), "label"));
}

/* C107: metadata concerns those who read it, and not the readers of the value; and the reverse. */
static void metadata_has_readers_of_its_own(void **state) {
    lab_set_json(l, "doc", "{\"label\":1}");
    lab_add(l, .name = "meta", .body = read_label, .effect = true);
    lab_effect(l, "value", "doc");
    lab_settle(l);
    lab_ran(l);
    lab_do(lab_on(l, "a"), "meta doc label \"secret\"");
    lab_settle(l);
    assert_ran(l, "meta");
    lab_set(l, "doc#/label", 2);
    lab_settle(l);
    assert_ran(l, "value");
}

/* ---- the channel */

/* C108, C109: when the commit call returns the reader of what changed is invalid already, and only
 * that: nothing is passed on. */
static void a_commit_marks_readers_at_once_and_no_further(void **state) {
    lab_compute(l, "a", "n", twice);
    lab_compute(l, "b", "a", twice);
    lab_effect(l, "show", "b");
    lab_settle(l);
    lab_set(l, "n", 1);
    assert_int_equal(lab_info(l, "a").status, HD_NODE_INVALID);
    assert_true(lab_is_clean(l, "b"));
    assert_true(lab_is_clean(l, "show"));
    assert_int_equal(lab_stats(l).invalid, 1);
}

/* C110: an identical write, of the root or inside, makes no notice and no commit, and triggers
 * nobody. */
static void an_identical_write_is_nothing(void **state) {
    hd_store_stats before, after;
    lab_set_json(l, "doc", "{\"a\":{\"b\":1}}");
    lab_effect(l, "show", "doc");
    lab_settle(l);
    lab_ran(l);
    hd_runtime_store_stats(lab_runtime_now(l), &before);
    lab_set_json(l, "doc", "{\"a\":{\"b\":1}}");
    lab_set(l, "doc#/a/b", 1);
    hd_runtime_store_stats(lab_runtime_now(l), &after);
    assert_int_equal(after.commits, before.commits);
    assert_int_equal(after.notices, before.notices);
    assert_int_equal(after.changes, before.changes);
    lab_settle(l);
    assert_ran(l, "");
}

/* C111: a computation that read a document becomes invalid when another writer's change arrives, and
 * recomputes when it is pulled. */
static void another_writers_change_invalidates(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "x", "n", twice);
    assert_string_equal(lab_pull(l, "x"), "2");
    lab_settle(l);
    lab_write(lab_on(l, "b"), "n", "5");
    lab_settle(l);
    lab_on(l, "a");
    assert_int_equal(lab_info(l, "x").status, HD_NODE_INVALID);
    lab_ran(l);
    assert_string_equal(lab_pull(l, "x"), "10");
    assert_ran(l, "x");
}

static hd_status sum_frontier(lab_node *self, hd_tx *tx) {
    hd_cell at = lab_cell(self->at, "frontier");
    hd_value links = hd_tx_get(tx, at);
    double sum = 0;
    if (hd_value_status(links)) return hd_value_status(links);
    for (hd_iter it = hd_iter_of(links); hd_iter_next(&it);) {
        hd_value v = hd_tx_follow(tx, at, it.value);
        if (hd_value_status(v)) return hd_value_status(v);
        sum += hd_value_number(v);
    }
    return lab_tx_put(self, tx, "sum", sum);
}

/* C112: a frontier that another writer expands to 64 documents is recomputed when it is pulled. */
static void a_frontier_expands_elsewhere(void **state) {
    lab_set_json(l, "frontier", "[]");
    lab_add(l, .name = "sum", .body = sum_frontier);
    assert_string_equal(lab_pull(l, "sum"), "0");
    lab_settle(l);
    lab_runtime *b = lab_on(l, "b");
    assert_json(l, "frontier", "[]");
    for (int i = 0; i < 64; i++) {
        char script[128];
        snprintf(script, sizeof script,
                 "set leaf%d %d; append frontier {\"$link\":{\"id\":\"leaf%d\"}}", i, i, i);
        lab_do(b, script);
    }
    lab_settle(l);
    lab_on(l, "a");
    assert_string_equal(lab_pull(l, "sum"), "2016");
}

/* C113: after a commit was refused its values are taken back, and their readers become invalid. */
static void a_revert_invalidates(void **state) {
    lab_set(l, "n", 1);
    lab_set(l, "m", 0);
    lab_effect(l, "show", "m");
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a"), *b = lab_on(l, "b");
    lab_write(b, "n", "2");
    lab_on(l, "a");
    lab_hold(a);
    lab_pump(b);
    lab_fate *f = lab_do(a, "get n; set m 7");
    lab_turn(l);
    assert_seen(l, "show", "7");
    lab_mend(a);
    lab_settle(l);
    assert_fate(f, HD_STALE);
    assert_seen(l, "show", "0");
}

/* C114: a conflict on one child: readers of the container run, readers of a sibling do not. */
static void a_conflict_on_one_child_spares_the_others(void **state) {
    lab_set_json(l, "doc", "{\"left\":1,\"right\":1}");
    lab_effect(l, "left", "doc#/left");
    lab_effect(l, "all", "doc");
    lab_effect(l, "right", "doc#/right");
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a"), *b = lab_on(l, "b");
    assert_json(l, "doc#/left", "1");
    lab_on(l, "a");
    lab_hold(a);
    lab_fate *f = lab_do(a, "get doc#/left; set doc#/left 5");
    lab_write(b, "doc#/left", "7");
    lab_pump(b);
    lab_turn(l);
    lab_ran(l);
    lab_mend(a);
    lab_settle(l);
    assert_fate(f, HD_STALE);
    assert_ran(l, "left all");
    assert_seen(l, "all", "{\"left\":7,\"right\":1}");
}

/* ---- self */

static hd_status count_up(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "counter", lab_tx_number(self, tx, "counter") + 1);
}

/* C115, I5: an effect that reads and writes one counter is not run again by its own commit; by
 * somebody else's write it is. */
static void i5_an_own_commit_does_not_run_the_effect_again(void **state) {
    lab_set(l, "counter", 10);
    lab_add(l, .name = "count", .body = count_up, .effect = true);
    lab_settle(l);
    assert_ran(l, "count");
    assert_json(l, "counter", "11");
    lab_set(l, "counter", 20);
    lab_settle(l);
    assert_ran(l, "count");
    assert_json(l, "counter", "21");
}

static double larger(const double *in) { return in[0] > in[1] ? in[0] : in[1]; }

/* C116, I5: a computation whose own commit touches what it reads runs once. */
static void i5_a_computation_that_reads_its_output_runs_once(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "most", "most n", larger);
    lab_effect(l, "show", "most");
    lab_settle(l);
    assert_ran(l, "most show");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "most show");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "most");
    assert_json(l, "most", "5");
}

static hd_status count_to_two(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "counter");
    return n < 2 ? lab_tx_put(self, tx, "counter", n + 1) : HD_OK;
}

/* C117, I5: two nodes that look the same to a human are two: what one commits triggers the other. */
static void i5_suppression_goes_by_identity(void **state) {
    lab_add(l, .name = "twin", .body = count_to_two, .effect = true, .anonymous = true);
    lab_add(l, .name = "twin", .body = count_to_two, .effect = true, .anonymous = true);
    lab_settle(l);
    assert_ran(l, "twin twin twin");
    assert_json(l, "counter", "2");
}

static void note_pull(void *ctx, hd_value v) { *(double *)ctx = hd_value_number(v); }

/* C117: two pulls of one cell are both answered. */
static void two_pulls_of_one_cell_are_both_answered(void **state) {
    double one = 0, two = 0;
    lab_set(l, "n", 4);
    lab_compute(l, "x", "n", twice);
    hd_cell x = lab_cell(lab_on(l, "a"), "x");
    assert_int_equal(hd_pull(lab_runtime_now(l), x, note_pull, &one), HD_OK);
    assert_int_equal(hd_pull(lab_runtime_now(l), x, note_pull, &two), HD_OK);
    lab_settle(l);
    assert_ran(l, "x");
    assert_true(one == 8 && two == 8);
    assert_int_equal(lab_stats(l).effects, 0);
}

/* C118: a subscriber with a change group does not hear of commits in that group, and of others. */
static void a_change_group_is_not_heard_by_its_own(void **state) {
    lab_add(l, .name = "editor", .reads = "text", .effect = true, .group = 7);
    lab_effect(l, "other", "text");
    lab_settle(l);
    lab_ran(l);
    lab_do(lab_on(l, "a"), "group 7; set text \"mine\"");
    lab_settle(l);
    assert_ran(l, "other");
    lab_do(lab_on(l, "a"), "set text \"yours\"");
    lab_settle(l);
    assert_ran(l, "editor other");
    lab_do(lab_on(l, "a"), "group 8; set text \"theirs\"");
    lab_settle(l);
    assert_ran(l, "editor other");
}

/* ---- values gate execution */

/* C119, I3: a computation that gives the same output three times wakes nobody. */
static void i3_an_unchanged_output_wakes_nobody(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "parity", "n", parity);
    lab_effect(l, "show", "parity");
    lab_settle(l);
    lab_ran(l);
    for (int i = 3; i <= 7; i += 2) {
        lab_set(l, "n", i);
        lab_settle(l);
    }
    assert_ran(l, "parity parity parity");
}

/* C120, I3: a computation whose output changes n times runs its effect exactly n times. */
static void i3_every_change_is_seen_once(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    uint64_t before = lab_find(l, "show")->runs;
    for (int i = 1; i <= 10; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
    }
    assert_int_equal(lab_find(l, "show")->runs - before, 10);
}

/* C121, I3: where the output upstream is unchanged, computation and effect further down have not run
 * and are clean. */
static void i3_unchanged_output_stops_the_wave(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "parity", "n", parity);
    lab_compute(l, "text", "parity", twice);
    lab_effect(l, "show", "text");
    lab_settle(l);
    assert_ran(l, "parity text show");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "parity");
    assert_true(lab_is_clean(l, "text"));
    assert_true(lab_is_clean(l, "show"));
}

/* I3: a value that changes and changes back before anybody looked runs its reader at most once, and
 * nobody behind it. */
static void i3_there_and_back(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 4);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "x");
}

/* C122: a clean effect whose writer is invalid but gated stays clean when it is registered again. */
static void a_gated_writer_leaves_its_reader_clean(void **state) {
    lab_add(l, .name = "x", .reads = "n", .debounce_ms = 100);
    lab_effect(l, "show", "x");
    lab_idle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_int_equal(lab_info(l, "x").status, HD_NODE_INVALID);
    lab_add(l, .again = "show", .effect = true);
    lab_settle(l);
    assert_ran(l, "");
    assert_true(lab_is_clean(l, "show"));
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_ran(l, "x show");
}

static hd_status build_object(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    char json[64];
    if (n < 10) snprintf(json, sizeof json, "{\"a\":%d}", (int)n);
    else snprintf(json, sizeof json, "{\"a\":1,\"b\":%d}", (int)n);
    return hd_tx_set_json(tx, lab_cell(self->at, "x"), json);
}

/* C123: a shallow effect registered again over an invalid writer: the writer runs once, the effect
 * only if what it sees has changed. */
static void a_shallow_effect_over_an_invalid_writer(void **state) {
    lab_add(l, .name = "x", .body = build_object, .declares = "n");
    lab_effect(l, "show", "~x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_add(l, .again = "show", .effect = true);
    lab_idle(l);
    assert_ran(l, "x");
    lab_set(l, "n", 12);
    lab_add(l, .again = "show", .effect = true);
    lab_idle(l);
    assert_ran(l, "x show");
}

/* C124: a node that never ran and that nobody demands: when its declared source changes it does not
 * run, and nothing is noted. */
static void a_node_that_never_ran_is_told_nothing(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_settle(l);
    uint64_t marks = lab_stats(l).marks;
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).marks, marks);
    assert_int_equal(lab_info(l, "x").status, HD_NODE_NEVER_RAN);
}

/* ---- invariants over whole worlds */

#define SOURCES 4

static double sum3(const double *in) { return in[0] + in[1] + in[2]; }

/* A world of its own on the runtime: which cells depends on the salt. */
static void add_graph(const char *prefix, unsigned salt) {
    char name[16], reads[48], last[16] = "s0";
    for (unsigned i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s%u", prefix, i);
        snprintf(reads, sizeof reads, "s%u s%u %s", (i + salt) % SOURCES, (i * salt) % SOURCES,
                 last);
        lab_compute(l, name, reads, sum3);
        snprintf(last, sizeof last, "%s", name);
    }
    snprintf(name, sizeof name, "%s_show", prefix);
    lab_effect(l, name, last);
}

/* What the last node of that graph must be. */
static double expect(unsigned salt) {
    char cell[8];
    double s[SOURCES];
    for (unsigned i = 0; i < SOURCES; i++) {
        snprintf(cell, sizeof cell, "s%u", i);
        s[i] = lab_get(l, cell);
    }
    double last = s[0];
    for (unsigned i = 0; i < 6; i++)
        last = s[(i + salt) % SOURCES] + s[(i * salt) % SOURCES] + last;
    return last;
}

/* I1: at quiescence every live node has seen the current values; also with two runtimes on one store
 * that compute different things from the same sources. */
static void i1_two_runtimes_agree_with_what_is_there(void **state) {
    lab_random r = lab_random_of(lab_seed());
    add_graph("p", 1);
    lab_on(l, "b");
    add_graph("q", 3);
    for (int round = 0; round < 20; round++) {
        char cell[8];
        lab_on(l, lab_random_once_in(&r, 2) ? "a" : "b");
        snprintf(cell, sizeof cell, "s%u", (unsigned)lab_random_below(&r, SOURCES));
        lab_set(l, cell, (double)lab_random_below(&r, 5));
        if (lab_random_once_in(&r, 3)) continue; /* more than one change at once */
        lab_settle(l);
        lab_on(l, "a");
        assert_true(strtod(lab_seen(l, "p_show"), NULL) == expect(1));
        lab_on(l, "b");
        assert_true(strtod(lab_seen(l, "q_show"), NULL) == expect(3));
    }
}

/* I1: two runtimes that derive the same document agree, and each runs once per change. */
static void i1_two_runtimes_derive_the_same(void **state) {
    char twice_n[8];
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show_a", "x");
    lab_on(l, "b");
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show_b", "x");
    lab_settle(l);
    lab_ran(l);
    for (int i = 1; i <= 10; i++) {
        lab_on(l, i % 3 ? "a" : "b");
        lab_set(l, "n", i);
        lab_settle(l);
        snprintf(twice_n, sizeof twice_n, "%d", 2 * i);
        assert_seen(l, "show_a", twice_n);
        assert_seen(l, "show_b", twice_n);
    }
    assert_int_equal(lab_find(l, "show_a")->runs + lab_find(l, "show_b")->runs, 22);
}

/* Without self-suppression the effect runs itself again, and C115 notices. */
static void without_suppression_c115_fails(void **state) {
    struct CMUnitTest test = S(i5_an_own_commit_does_not_run_the_effect_again);
    spec_must_notice(LEAVE_OUT_SUPPRESSION, test);
}

/* I9: a writer runs before its reader, whatever the order of registration. */
static void i9_writers_run_before_readers(void **state) {
    lab_effect(l, "show", "d");
    lab_compute(l, "d", "b c", NULL);
    lab_compute(l, "c", "a", NULL);
    lab_compute(l, "b", "a", NULL);
    lab_compute(l, "a", "n", NULL);
    lab_settle(l);
    lab_ran(l);
    for (int i = 1; i < 4; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
        const char *ran = lab_ran(l);
        assert_true(!strcmp(ran, "a c b d show") || !strcmp(ran, "a b c d show"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_change_runs_its_reader_once),
        S(what_was_read_did_not_change),
        S(each_reader_is_triggered_once),
        S(a_child_concerns_its_parents_and_not_its_siblings),
        S(coming_and_going_is_a_change),
        S(arrays_change_by_element_order_and_length),
        S(an_index_beyond_the_end_is_not_concerned),
        S(a_scalar_has_no_fields),
        S(another_kind_concerns_everything_below),
        S(a_container_on_the_way_counts),
        S(a_deep_change_concerns_its_ancestors),
        S(an_unrelated_branch_concerns_nobody),
        S(a_shallow_reader_does_not_see_into_children),
        S(a_shallow_reader_sees_keys_and_length),
        S(a_shallow_reader_sees_a_scalar),
        S(a_shallow_reader_sees_the_kind),
        S(shallow_and_deep_of_one_path),
        S(every_kind_of_leaf_can_be_compared),
        S(bytes_are_compared_by_content),
        S(the_vectors_of_the_definition),
        S(a_schema_sink_reads_structure_by_shape),
        S(a_shallow_read_through_links),
        S(a_link_into_a_field),
        S(a_link_into_the_void),
        S(a_reference_carries_changes_and_demand),
        S(a_link_hop_that_was_not_declared),
        S(length_is_a_value),
        S(an_ignored_read_is_no_dependency),
        LATE(a_read_that_waits_is_tracked),
        LATE(a_cold_input_arrives),
        S(metadata_has_readers_of_its_own),
        S(a_commit_marks_readers_at_once_and_no_further),
        S(an_identical_write_is_nothing),
        S(another_writers_change_invalidates),
        S(a_frontier_expands_elsewhere),
        S(a_revert_invalidates),
        S(a_conflict_on_one_child_spares_the_others),
        S(i5_an_own_commit_does_not_run_the_effect_again),
        S(i5_a_computation_that_reads_its_output_runs_once),
        S(i5_suppression_goes_by_identity),
        S(two_pulls_of_one_cell_are_both_answered),
        S(a_change_group_is_not_heard_by_its_own),
        S(i3_an_unchanged_output_wakes_nobody),
        S(i3_every_change_is_seen_once),
        S(i3_unchanged_output_stops_the_wave),
        S(i3_there_and_back),
        S(a_gated_writer_leaves_its_reader_clean),
        S(a_shallow_effect_over_an_invalid_writer),
        S(a_node_that_never_ran_is_told_nothing),
        S(i1_two_runtimes_agree_with_what_is_there),
        S(i1_two_runtimes_derive_the_same),
        S(i9_writers_run_before_readers),
        cmocka_unit_test(without_suppression_c115_fails),
    };
    LAB_EVERYWHERE(tests);
}

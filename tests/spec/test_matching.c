/* test_matching.c -- area E, the match: a value that was read really changed, or it did not. What
 * counts is decided by the definition (2.4 to 2.6 of the match semantics). */
#include "lab_inside.h"
#include "spec.h"

static double twice(const double *in) { return 2 * in[0]; }

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

/* C87, 6.1, pitfall 6: the root is a container on the way, too. A document that comes or goes is a change for the
 * readers of places that it does not have, unless its root is no container. */
static void the_root_is_on_the_way(void **state) {
    assert_triggered("doc#/a", "-", "{\"b\":1}");
    assert_triggered("doc#/a", "{\"b\":1}", "-");
    assert_triggered("doc#/a", "-", "{}");
    assert_not_triggered("doc#/a", "-", "1");
    assert_not_triggered("doc#/a", "{\"b\":1}", "{\"b\":2}");
    assert_not_triggered("doc#/a", "{}", "{\"b\":1}");
}

/* C363, 6.1: reads follow links. A link that appears on the way leads elsewhere, whatever was there before. */
static void a_link_that_appears_concerns_everything_below(void **state) {
    const char *link = "{\"a\":{\"$link\":{\"id\":\"target\"}}}";
    lab_set_json(l, "target", "{\"b\":42}");
    assert_triggered("doc#/a/b", "{}", link);
    assert_triggered("doc#/a/b", "{\"a\":null}", link);
    assert_triggered("doc#/a/b", "{\"a\":7}", link);
    assert_triggered("doc#/a/b", "{\"a\":{}}", link);
    assert_triggered("doc#/a/b", "-", link);
    assert_triggered("doc#/a/b", link, "{\"a\":7}");
    assert_triggered("doc#/a/b", link, "-");
    assert_not_triggered("doc#/c/b", "{}", link);
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
    assert_string_equal(lab_reads(l, "sink"), "~list ~list#/0 list#/0/name");
    lab_ran(l);
    lab_do(lab_on(l, "a"), "append list {\"name\":\"b\"}");
    lab_settle(l);
    assert_ran(l, "sink");
    assert_seen(l, "sink", "[{\"name\":\"a\"},{\"name\":\"b\"}]");
    lab_set(l, "list#/0/age", 2); /* not described by the schema */
    lab_settle(l);
    assert_ran(l, "");
    lab_cancel(l, "sink");
    hd_schema_close(schema);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        S(what_was_read_did_not_change),
        S(each_reader_is_triggered_once),
        S(a_child_concerns_its_parents_and_not_its_siblings),
        S(coming_and_going_is_a_change),
        S(arrays_change_by_element_order_and_length),
        S(an_index_beyond_the_end_is_not_concerned),
        S(a_scalar_has_no_fields),
        S(another_kind_concerns_everything_below),
        S(a_container_on_the_way_counts),
        S(the_root_is_on_the_way),
        S(a_link_that_appears_concerns_everything_below),
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
        S(metadata_has_readers_of_its_own),
    };
    LAB_EVERYWHERE(tests);
}

/* test_workflow_graph.c -- pictures of workflows: the words they use, where an instance stands; and what explain
 * says about loops. */
#define _DEFAULT_SOURCE
#include "lab.h"
#include "workflow_loops.h"
#include <heddle/workflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_heap *heap;
static hd_pool *pool;

static int set_up(void **state) {
    assert_int_equal(hd_heap_open(NULL, NULL, &heap), HD_OK);
    return hd_pool_open(heap, &pool) != HD_OK;
}
static int tear_down(void **state) {
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

static hd_value parse(const char *json) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    if (!hd_value_exists(v)) fail_msg("%s", error.message);
    return v;
}

static const char *graph(hd_graph_form form, hd_value instance) {
    hd_error error = { 0 };
    hd_value v = hd_workflow_graph(pool, parse(loops), form, instance, &error);
    if (hd_value_status(v)) fail_msg("%s", error.message);
    return hd_value_as_text(v, "");
}

#define assert_has(whole, part)                                                                    \
    do {                                                                                           \
        const char *text_ = (whole);                                                               \
        if (!strstr(text_, part)) fail_msg("%s\nis not in: %s", part, text_);                      \
    } while (0)

/* ---- tests */

/* Issue words: "the seed's words are the names ... in `heddle workflow graph`". */
static void every_form_has_the_words_of_the_plan(void **state) {
    static const char *const words[] = { "CONTINUE", "BREAK", "BACK", "LOOP_HEAD",
                                         "deps_required" };
    for (int form = HD_GRAPH_TEXT; form <= HD_GRAPH_JSON; form++)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            assert_has(graph((hd_graph_form)form, (hd_value){ 0 }), words[i]);
    assert_has(graph(HD_GRAPH_TEXT, (hd_value){ 0 }), "FORWARD  -> zero");
    assert_has(graph(HD_GRAPH_TEXT, (hd_value){ 0 }), "both  BARRIER  deps_required 2");
}

/* The condition of a GUARD stands beside it, as Python; of a HANDLER the classes. */
static void a_guard_says_when(void **state) {
    static const char branches[] =
        "{\"heddle\":1,\"name\":\"w\",\"inputs\":[{\"name\":\"n\"}],\"functions\":[{\"name\":"
        "\"run\",\"params\":[\"n\"],"
        "\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"b\",\"kind\":\"BRANCH\",\"when\":["
        "%s]},"
        "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"x\"},{\"id\":\"h\",\"kind\":\"HANDLER\","
        "\"clauses\":["
        "{\"classes\":[\"ValueError\",\"LookupError\"]},{}]},{\"id\":\"out\",\"kind\":\"MERGE\"},"
        "{\"id\":\"end\",\"kind\":\"RETURN\"}],\"edges\":[[\"out\",\"end\"],[\"in\",\"b\"],[\"b\","
        "\"a\",\"GUARD\",0],[\"b\",\"out\",\"GUARD\",1],[\"a\","
        "\"out\"],"
        "[\"a\",\"h\",\"EXCEPT\"],[\"h\",\"out\",\"GUARD\",0],[\"h\",\"out\",\"GUARD\",1]]}]}";
    static const char *const cases[][2] = {
        { "[\"cmp\",[\"item\",[\"name\",\"n\"],\"size\"],\"<\",3,\"<=\",[\"neg\",4.5]]",
          "n[\"size\"] < 3 <= (-4.5)" },
        { "[\"and\",[\"not\",[\"name\",\"n\"]],[\"call\",\"len\",[[\"list\",1]]]]",
          "(not n) and len([1])" },
        { "[\"cmp\",[\"name\",\"n\"],\"in\",[\"const\",{\"$$tuple\":[1,\"a\"]}]]",
          "n in (1, \"a\")" },
        { "[\"cmp\",[\"name\",\"n\"],\"in\",[\"tuple\",1,[\"dict\"]]]", "n in (1, ...)" },
        { "[\"or\",[\"method\",[\"attr\",[\"name\",\"n\"],\"a\"],\"get\",[\"k\",null]],[\"+\",["
          "\"name\",\"n\"],true]]",
          "n.a.get(\"k\", None) or (n + True)" },
        { "[\"cmp\",[\"name\",\"n\"],\"==\","
          "\"\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"
          "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\"]",
          "n == "
          "\"\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"
          "\u00e4\u00e4\u00e4\u00e4\u00e4..." },
    };
    char ir[2000], line[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_error error = { 0 };
        snprintf(ir, sizeof ir, branches, cases[i][0]);
        snprintf(line, sizeof line, "GUARD 0  -> a   %s\n", cases[i][1]);
        hd_value v = hd_workflow_graph(pool, parse(ir), HD_GRAPH_TEXT, (hd_value){ 0 }, &error);
        if (hd_value_status(v)) fail_msg("%s", error.message);
        assert_has(hd_value_as_text(v, ""), line);
        assert_has(hd_value_as_text(v, ""), "GUARD 1  -> out   else\n");
        assert_has(hd_value_as_text(v, ""), "GUARD 0  -> out   ValueError, LookupError\n");
        assert_has(hd_value_as_text(v, ""), "GUARD 1  -> out   any exception\n");
    }
    snprintf(ir, sizeof ir, branches, cases[0][0]);
    static const char *const forms[] = {
        [HD_GRAPH_MERMAID] = "|\"GUARD 0: n[#quot;size#quot;] &lt; 3 &lt;= (-4.5)\"|",
        [HD_GRAPH_DOT] = "[label=\"GUARD 0: n[\\\"size\\\"] < 3 <= (-4.5)\"",
        [HD_GRAPH_SVG] = ">n[&quot;size&quot;] &lt; 3 &lt;= (-4.5)</text><",
        [HD_GRAPH_JSON] = "\"index\":0,\"when\":\"n[\\\"size\\\"] < 3 <= (-4.5)\""
    };
    for (int form = HD_GRAPH_MERMAID; form <= HD_GRAPH_JSON; form++)
        assert_has(
            hd_value_as_text(
                hd_workflow_graph(pool, parse(ir), (hd_graph_form)form, (hd_value){ 0 }, NULL), ""),
            forms[form]);
}

static void json_is_json_and_names_are_escaped_in_a_drawing(void **state) {
    hd_value v = parse(graph(HD_GRAPH_JSON, (hd_value){ 0 }));
    hd_value run = hd_value_index(hd_value_at(v, "functions"), 0);
    assert_int_equal(hd_value_count(hd_value_at(run, "nodes")), 11);
    assert_int_equal(hd_value_count(hd_value_at(run, "edges")), 12);
    const char *svg = graph(HD_GRAPH_SVG, (hd_value){ 0 });
    assert_has(svg, "&lt;work&gt;");
    assert_null(strstr(svg, "<work>"));
}

static void a_picture_of_an_instance_shows_where_it_stands(void **state) {
    hd_value document = parse(
        "{\"status\":\"running\",\"open\":{\"1\":[\"left\",1,1,{\"fan\":3,"
        "\"index\":0}],\"0\":[\"split\",1,1]},\"loops\":{\"each\":{\"visit\":2}},\"fans\":{\"3\":{"
        "\"node\":\"split\",\"in\":{},\"results\":{\"1\":7}}}}");
    const char *got = graph(HD_GRAPH_TEXT, document);
    assert_has(got, "left  ACTION work  deps_required 1  * ready");
    assert_has(got, "both  BARRIER  deps_required 2  * deps_satisfied 1");
    assert_has(got, "each  LOOP_HEAD  deps_required 1  * visit 2");
    assert_has(got, "split  FAN_HEAD  deps_required 1  * waits for its branches");
    assert_has(graph(HD_GRAPH_JSON, document), "\"deps_satisfied\":1");
    assert_has(graph(HD_GRAPH_JSON, document), "\"ready\":true");
}

static void a_picture_of_an_instance_that_failed_shows_where(void **state) {
    hd_value document = parse("{\"status\":\"failed\",\"failed_at\":{\"node\":\"left\"}}");
    assert_has(graph(HD_GRAPH_TEXT, document), "left  ACTION work  deps_required 1  * failed");
    assert_has(graph(HD_GRAPH_JSON, document), "\"failed\":true");
    assert_null(strstr(graph(HD_GRAPH_JSON, document), "\"open\""));
}

/* A document that fits nothing is drawn as if nothing stood anywhere. */
static void a_document_that_does_not_fit_harms_nothing(void **state) {
    static const char *const odd[] = {
        "{}",
        "[]",
        "3",
        "{\"open\":{\"0\":[\"nowhere\"],\"1\":7}}",
        "{\"open\":{\"0\":[\"left\",1,1,{\"fan\":9}]},\"fans\":{\"9\":{\"in\":{\"fan\":9}}}}",
        "{\"status\":\"failed\",\"failed_at\":{\"function\":\"none\",\"node\":3}}",
        "{\"calls\":{\"1\":{\"function\":\"none\"}},\"fans\":{\"1\":{\"node\":\"big\",\"in\":{}}}}"
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_has(graph(HD_GRAPH_TEXT, parse(odd[i])), "BACK     -> each");
}

static void what_registration_refuses_is_not_drawn(void **state) {
    hd_error error = { 0 };
    hd_value bad = parse("{\"heddle\":1,\"name\":\"w\",\"functions\":[{\"name\":\"run\",\"nodes\":"
                         "[{\"id\":\"in\",\"kind\":\"ENTRY\"}],\"edges\":[[\"in\",\"out\"]]}]}");
    assert_int_equal(
        hd_value_status(hd_workflow_graph(pool, bad, HD_GRAPH_SVG, (hd_value){ 0 }, &error)),
        HD_SYNTAX);
    assert_has(error.message, "out");
    assert_int_equal(hd_value_status(hd_workflow_explain(pool, bad, &error)), HD_SYNTAX);
}

static void more_nodes_than_a_drawing_holds_are_refused(void **state) {
    static char ir[400000];
    size_t at = (size_t)snprintf(ir, sizeof ir,
                                 "{\"heddle\":1,\"name\":\"w\",\"functions\":[{\"name\":\"run\","
                                 "\"nodes\":[{\"id\":\"n0\",\"kind\":\"ENTRY\"}");
    for (int i = 1; i < 2100; i++)
        at += (size_t)snprintf(ir + at, sizeof ir - at, ",{\"id\":\"n%d\",\"kind\":\"MERGE\"}", i);
    at += (size_t)snprintf(ir + at, sizeof ir - at,
                           ",{\"id\":\"e\",\"kind\":\"RETURN\",\"value\":1}],\"edges\":[");
    for (int i = 1; i < 2100; i++)
        at += (size_t)snprintf(ir + at, sizeof ir - at, "[\"n%d\",\"n%d\"],", i - 1, i);
    snprintf(ir + at, sizeof ir - at, "[\"n2099\",\"e\"]]}]}");
    hd_error error = { 0 };
    hd_value v = parse(ir);
    assert_int_equal(
        hd_value_status(hd_workflow_graph(pool, v, HD_GRAPH_SVG, (hd_value){ 0 }, &error)),
        HD_LIMIT);
    assert_has(error.message, "too many for a drawing");
    hd_value dot = hd_workflow_graph(pool, v, HD_GRAPH_DOT, (hd_value){ 0 }, &error);
    assert_int_equal(hd_value_status(dot), HD_OK);
}

/* Issue words: "`heddle workflow explain` says which loops are parallel and why the others are not". */
static void explain_says_what_an_iteration_needs_of_the_one_before(void **state) {
    hd_error error = { 0 };
    hd_value all = hd_workflow_explain(pool, parse(loops), &error);
    assert_int_equal(hd_value_count(all), 2);
    const char *got = hd_json_print(pool, all, HD_JSON_COMPACT, NULL);
    assert_has(got, "an iteration reads sum, which the one before has assigned");
    assert_has(got, "2 branches at once");
}

/* The advice is for both languages, since the IR does not tell from which one it was made. */
static void explain_says_how_a_loop_is_made_parallel(void **state) {
    const char *ir =
        "{\"heddle\":1,\"name\":\"w\",\"functions\":[{\"name\":\"run\",\"nodes\":["
        "{\"id\":\"e\",\"kind\":\"ENTRY\"},{\"id\":\"for0\",\"kind\":\"LOOP_HEAD\","
        "\"over\":[\"list\",1],\"into\":[\"name\",\"x\"]},"
        "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"act\",\"named\":[]},"
        "{\"id\":\"r\",\"kind\":\"RETURN\",\"value\":1}],\"edges\":[[\"e\",\"for0\"],"
        "[\"for0\",\"a\",\"CONTINUE\"],[\"a\",\"for0\",\"BACK\"],[\"for0\",\"r\",\"BREAK\"]]}]}";
    hd_error error = { 0 };
    hd_value all = hd_workflow_explain(pool, parse(ir), &error);
    if (hd_value_status(all)) fail_msg("%s", error.message);
    const char *got = hd_json_print(pool, all, HD_JSON_COMPACT, NULL);
    assert_has(got, "concurrent = True");
    assert_has(got, "hd_flow_each");
}

/* A compiler has rules of its own: what it says of a loop is what is told. */
static void explain_gives_the_reason_that_a_compiler_has_written(void **state) {
    const char *ir =
        "{\"heddle\":1,\"name\":\"w\",\"functions\":[{\"name\":\"run\",\"nodes\":["
        "{\"id\":\"e\",\"kind\":\"ENTRY\"},{\"id\":\"for0\",\"kind\":\"LOOP_HEAD\","
        "\"over\":[\"list\",1],\"into\":[\"name\",\"x\"],\"comment\":\"it has an else\"},"
        "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"act\",\"named\":[]},"
        "{\"id\":\"r\",\"kind\":\"RETURN\",\"value\":1}],\"edges\":[[\"e\",\"for0\"],"
        "[\"for0\",\"a\",\"CONTINUE\"],[\"a\",\"for0\",\"BACK\"],[\"for0\",\"r\",\"BREAK\"]]}]}";
    hd_error error = { 0 };
    hd_value all = hd_workflow_explain(pool, parse(ir), &error);
    if (hd_value_status(all)) fail_msg("%s", error.message);
    assert_has(hd_json_print(pool, all, HD_JSON_COMPACT, NULL), "\"why\":[\"it has an else\"]");
}

/* A compiler makes loops, too, of what is none in the source. */
static void explain_leaves_out_a_loop_with_an_empty_comment(void **state) {
    const char *ir =
        "{\"heddle\":1,\"name\":\"w\",\"functions\":[{\"name\":\"run\",\"nodes\":["
        "{\"id\":\"e\",\"kind\":\"ENTRY\"},{\"id\":\"for0\",\"kind\":\"LOOP_HEAD\","
        "\"over\":[\"list\",1],\"into\":[\"name\",\"x\"],\"comment\":\"\"},"
        "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"act\",\"named\":[]},"
        "{\"id\":\"r\",\"kind\":\"RETURN\",\"value\":1}],\"edges\":[[\"e\",\"for0\"],"
        "[\"for0\",\"a\",\"CONTINUE\"],[\"a\",\"for0\",\"BACK\"],[\"for0\",\"r\",\"BREAK\"]]}]}";
    hd_error error = { 0 };
    hd_value all = hd_workflow_explain(pool, parse(ir), &error);
    if (hd_value_status(all)) fail_msg("%s", error.message);
    assert_int_equal(hd_value_count(all), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_form_has_the_words_of_the_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_guard_says_when, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_is_json_and_names_are_escaped_in_a_drawing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_picture_of_an_instance_shows_where_it_stands, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_picture_of_an_instance_that_failed_shows_where, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_document_that_does_not_fit_harms_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_registration_refuses_is_not_drawn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_nodes_than_a_drawing_holds_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(explain_says_how_a_loop_is_made_parallel, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(explain_gives_the_reason_that_a_compiler_has_written,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(explain_leaves_out_a_loop_with_an_empty_comment, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(explain_says_what_an_iteration_needs_of_the_one_before,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

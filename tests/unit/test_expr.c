/* Expressions: the machine, objects with identity, the journal, loading, limits, and what is refused.
 * What single operations mean is compared with CPython itself, in tests/model/test_expr_cpython.c. */
#include "expr_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define assert_runs(x, json, text) assert_string_equal(expr_run(x, json), text)

/* ---- Meaning ----------------------------------------------------------------------------- */

static void integers_never_wrap(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[\"+\", 9223372036854775807, 1]", "OverflowError: integer beyond 64 bits");
    assert_runs(&x, "[\"neg\", -9223372036854775808]", "OverflowError: integer beyond 64 bits");
    assert_runs(&x, "[\"//\", -7, 2]", "-4");
    assert_runs(&x, "[\"%\", -7, 3]", "2");
    assert_runs(&x, "[\"/\", 9223372036854775807, 3]", "3.0744573456182584e+18");
    expr_world_close(&x);
}

static void the_number_of_an_element_never_wraps(void **state) {
    expr_world x = expr_world_open(NULL);
#define NUMBERED(text)                                                                             \
    "[\"call\", \"list\", [[\"call\", \"enumerate\", [\"" text "\", 9223372036854775806]]]]"
    assert_runs(&x, NUMBERED("ab"), "[(9223372036854775806, 'a'), (9223372036854775807, 'b')]");
    assert_runs(&x, NUMBERED("abc"), "OverflowError: integer beyond 64 bits");
#undef NUMBERED
    expr_world_close(&x);
}

/* Whatever can be iterated over may stand on the left of a view, too. */
static void a_view_takes_any_iterable_on_both_sides(void **state) {
    expr_world x = expr_world_open(NULL);
#define VIEW "[\"method\", [\"dict\", \"a\", [\"list\"]], \"items\", [], []]"
#define KEYS "[\"method\", [\"dict\", \"a\", 1], \"keys\", [], []]"
    assert_runs(&x, "[\"&\", [\"list\", \"a\", \"b\"], " KEYS "]", "{'a'}");
    assert_runs(&x, "[\"-\", \"ab\", " KEYS "]", "{'b'}");
    assert_runs(&x, "[\"|\", [\"tuple\", \"b\"], " KEYS "]", "{'b', 'a'}");
    assert_runs(&x, "[\"^\", 5, " KEYS "]", "TypeError: 'int' object is not iterable");
    assert_runs(&x, "[\"&\", " VIEW ", \"ab\"]", "set()"); /* no item is hashed */
    assert_runs(&x, "[\"^\", " VIEW ", " VIEW "]", "set()");
    assert_runs(&x, "[\"|\", " VIEW ", 5]", "TypeError: unhashable type: 'list'");
#undef VIEW
#undef KEYS
    expr_world_close(&x);
}

static void a_sum_beyond_64_bits_is_added_to_floats_and_refused_by_type(void **state) {
    expr_world x = expr_world_open(NULL);
#define SUM_WITH(last)                                                                             \
    "[\"call\", \"sum\", [[\"list\", 9223372036854775807, 9223372036854775807, " last "]]]"
    assert_runs(&x, SUM_WITH("-9223372036854775807"), "9223372036854775807");
    assert_runs(&x, SUM_WITH("0.5"), "1.8446744073709552e+19");
    assert_runs(&x, SUM_WITH("1"), "OverflowError: integer beyond 64 bits");
    assert_runs(&x, SUM_WITH("\"x\""),
                "TypeError: unsupported operand type(s) for +: 'int' and 'str'");
#undef SUM_WITH
    expr_world_close(&x);
}

/* CPython finds a method that is called with * in the receiver, not in its class. */
static void a_complaint_names_the_receiver_of_a_spread_call(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[\"method\", true, \"conjugate\", [1], []]",
                "TypeError: int.conjugate() takes no arguments (1 given)");
    assert_runs(&x, "[\"method\", true, \"conjugate\", [[\"*\", [\"list\", 1]]], []]",
                "TypeError: bool.conjugate() takes no arguments (1 given)");
    expr_world_close(&x);
}

/* CPython makes the text of an exception of them; here it is made of the arguments. */
static void what_the_text_of_an_exception_shows_is_not_assigned(void **state) {
    static const char *const sets[][2] = { { "OSError", "errno" },
                                           { "KeyError", "args" },
                                           { "ImportError", "msg" } };
    expr_world x = expr_world_open(NULL);
    for (size_t i = 0; i < 3; i++) {
        char json[200], expected[100];
        snprintf(json, sizeof json,
                 "[[\"assign\",[\"new\",\"%s\",[1,\"no\"]],[\"name\",\"e\"]],"
                 "[\"assign\",2,[\"attr\",[\"name\",\"e\"],\"%s\"]]]",
                 sets[i][0], sets[i][1]);
        snprintf(expected, sizeof expected, "Unsupported: assigning '%s' of an exception",
                 sets[i][1]);
        assert_string_equal(expr_run(&x, json), expected);
    }
    expr_world_close(&x);
}

/* Only texts of the classes below UnicodeError are made of `reason`. */
static void attributes_that_no_text_shows_are_assigned(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x,
                "[[\"assign\",[\"new\",\"UnicodeError\",[1]],[\"name\",\"e\"]],"
                "[\"assign\",2,[\"attr\",[\"name\",\"e\"],\"reason\"]]]",
                "None");
    assert_runs(&x, "[\"attr\", [\"name\", \"e\"], \"reason\"]", "2");
    assert_runs(
        &x,
        "[[\"assign\",[\"new\",\"UnicodeTranslateError\",[\"a\",0,1,\"no\"]],[\"name\",\"e\"]],"
        "[\"assign\",2,[\"attr\",[\"name\",\"e\"],\"reason\"]]]",
        "Unsupported: assigning 'reason' of an exception");
    expr_world_close(&x);
}

static void attributes_of_a_group_are_readonly(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x,
                "[[\"assign\",[\"new\",\"ExceptionGroup\",[\"g\",[\"list\",[\"new\",\"ValueError\","
                "[]]]]],[\"name\",\"e\"]],"
                "[\"assign\",2,[\"attr\",[\"name\",\"e\"],\"message\"]]]",
                "AttributeError: readonly attribute");
    assert_runs(&x, "[[\"assign\",2,[\"attr\",[\"name\",\"e\"],\"exceptions\"]]]",
                "AttributeError: readonly attribute");
    expr_world_close(&x);
}

#define GROUP_OF(class_, inner) "[\"new\",\"" class_ "\",[\"g\"," inner "]]"

static void a_group_has_exceptions_and_nothing_else(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, GROUP_OF("ExceptionGroup", "[\"list\"]"),
                "ValueError: second argument (exceptions) must be a non-empty sequence");
    assert_runs(&x, GROUP_OF("ExceptionGroup", "\"ab\""),
                "ValueError: Item 0 of second argument (exceptions) is not an exception");
    assert_runs(&x, GROUP_OF("ExceptionGroup", "[\"set\", 1]"),
                "TypeError: second argument (exceptions) must be a sequence");
    assert_runs(&x, GROUP_OF("ExceptionGroup", "[\"list\",[\"new\",\"CancelledError\",[]]]"),
                "TypeError: Cannot nest BaseExceptions in an ExceptionGroup");
    assert_runs(&x, GROUP_OF("BaseExceptionGroup", "[\"list\",[\"new\",\"KeyError\",[1]]]"),
                "ExceptionGroup('g', [KeyError(1)])");
    assert_runs(
        &x,
        "[\"method\"," GROUP_OF(
            "ExceptionGroup",
            "[\"list\",[\"new\",\"KeyError\",[1]]]") ",\"split\",[[\"type\",\"KeyError\"]]]",
        "Unsupported: 'split' of a 'ExceptionGroup' object is not data");
    expr_world_close(&x);
}

static void exceptions_take_by_name_what_those_of_cpython_take(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x,
                "[\"attr\",[\"new\",\"ModuleNotFoundError\",[\"m\"],[[\"name\",\"n\"]]],\"name\"]",
                "'n'");
    assert_runs(&x, "[\"attr\",[\"new\",\"AttributeError\",[],[[\"name\",1]]],\"obj\"]", "None");
    assert_runs(&x, "[\"new\",\"ModuleNotFoundError\",[],[[\"obj\",1]]]",
                "TypeError: 'obj' is an invalid keyword argument for ImportError()");
    assert_runs(&x, "[\"new\",\"NameError\",[],[[\"name\",1],[\"obj\",1]]]",
                "TypeError: NameError() takes at most 1 keyword argument (2 given)");
    assert_runs(&x, "[\"new\",\"ValueError\",[],[[\"name\",1]]]",
                "TypeError: ValueError() takes no keyword arguments");
    assert_runs(&x, "[\"call\",\"str\",[[\"new\",\"OSError\",[2,\"no\",\"a\",null,\"b\"]]]]",
                "\"[Errno 2] no: 'a' -> 'b'\"");
    expr_world_close(&x);
}

/* A compiler writes it for a call with ** of a function of the program. */
static void keywords_of_a_call_are_given_once(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x,
                "[\"call\",\"heddle.keywords\",[\"m.f\",[\"dict\",\"a\",1],[\"dict\",\"b\",2]]]",
                "{'a': 1, 'b': 2}");
    assert_runs(&x,
                "[\"call\",\"heddle.keywords\",[\"m.f\",[\"dict\",\"a\",1],[\"dict\",\"a\",2]]]",
                "TypeError: m.f() got multiple values for keyword argument 'a'");
    assert_runs(&x, "[\"call\",\"heddle.keywords\",[\"m.f\",[\"dict\"],5]]",
                "TypeError: m.f() argument after ** must be a mapping, not int");
    assert_runs(&x,
                "[\"call\",\"dict\",[],[[\"**\",[\"dict\",\"é\",1]],[\"**\",[\"dict\",\"é\",2]]]]",
                "TypeError: dict() got multiple values for keyword argument 'é'");
    assert_runs(
        &x, "[\"call\",\"dict\",[],[[\"**\",[\"dict\",\"高\",1]],[\"**\",[\"dict\",\"高\",2]]]]",
        "TypeError: dict() got multiple values for keyword argument '高'");
    expr_world_close(&x);
}

static void the_class_of_a_plain_class_is_type(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[\"call\", \"type\", [[\"type\", \"Item\"]]]", "<class 'type'>");
    assert_runs(&x, "[\"attr\", [\"type\", \"Item\"], \"__class__\"]", "<class 'type'>");
    assert_runs(&x, "[\"call\", \"type\", [[\"type\", \"Enum\"]]]",
                "Unsupported: the class of a class of the program");
    expr_world_close(&x);
}

static void a_wrong_name_is_found_before_too_many_places(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[\"new\", \"Item\", [1, 2, 3], [[\"price\", 4]]]",
                "TypeError: Item.__init__() got multiple values for argument 'price'");
    assert_runs(&x, "[\"new\", \"Item\", [1, 2, 3], [[\"size\", 4]]]",
                "TypeError: Item.__init__() got an unexpected keyword argument 'size'");
    assert_runs(&x, "[\"new\", \"Item\", [1, 2, 3], []]",
                "TypeError: Item.__init__() takes 3 positional arguments but 4 were given");
    expr_world_close(&x);
}

static void the_largest_size_of_bytes_is_told_from_too_little_memory(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[\"call\", \"bytes\", [9223372036854775807]]",
                "OverflowError: byte string is too large");
    assert_runs(&x, "[\"call\", \"bytes\", [9223372036854775774]]", "MemoryError: ");
    expr_world_close(&x);
}

static void names_of_encodings_have_no_null_character(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[\"call\", \"bytes\", [\"a\", \"\\u0000\"]]",
                "ValueError: embedded null character");
    assert_runs(&x, "[\"method\", \"a\", \"encode\", [\"utf-8\", \"st\\u0000\"], []]",
                "ValueError: embedded null character");
    expr_world_close(&x);
}

static void two_names_of_one_list_see_each_others_changes(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x,
                "[[\"assign\", [\"list\", 1], [\"name\", \"a\"], [\"name\", \"b\"]],"
                " [\"expr\", [\"method\", [\"name\", \"a\"], \"append\", [2], []]],"
                " [\"aug\", \"+\", [\"name\", \"b\"], [\"list\", 3]]]",
                "None");
    assert_runs(
        &x,
        "[\"tuple\", [\"name\", \"a\"], [\"cmp\", [\"name\", \"a\"], \"is\", [\"name\", \"b\"]]]",
        "([1, 2, 3], True)");
    expr_world_close(&x);
}

static void a_chain_evaluates_its_middle_once(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x, "[[\"assign\", 0, [\"name\", \"n\"]]]", "None");
    assert_runs(&x, "[\"cmp\", 0, \"<\", [\":=\", \"n\", [\"+\", [\"name\", \"n\"], 1]], \"<\", 5]",
                "True");
    assert_runs(&x, "[\"name\", \"n\"]", "1");
    expr_world_close(&x);
}

static void any_stops_at_the_first_true_element(void **state) {
    expr_world x = expr_world_open(NULL);
    assert_runs(&x,
                "[\"call\", \"any\", [[\"gen\", [\"/\", 1, [\"name\", \"y\"]],"
                " [\"for\", [\"name\", \"y\"], [\"list\", 1, 0]]]]]",
                "True");
    assert_runs(&x,
                "[\"call\", \"all\", [[\"gen\", [\"/\", 1, [\"name\", \"y\"]],"
                " [\"for\", [\"name\", \"y\"], [\"list\", 1, 0]]]]]",
                "ZeroDivisionError: division by zero");
    expr_world_close(&x);
}

static void a_dict_keeps_its_order_when_keys_come_and_go(void **state) {
    expr_world x = expr_world_open(NULL);
    expr_run(&x,
             "[[\"assign\", [\"dictcomp\", [\"name\", \"y\"], [\"*\", [\"name\", \"y\"], 2],"
             " [\"for\", [\"name\", \"y\"], [\"call\", \"range\", [40]]]], [\"name\", \"d\"]]]");
    for (int i = 0; i < 38; i++)
        expr_run(&x, "[[\"del\", [\"item\", [\"name\", \"d\"], [\"item\", [\"call\", \"list\", "
                     "[[\"name\", \"d\"]]], 0]]]]");
    assert_runs(&x, "[\"name\", \"d\"]", "{38: 76, 39: 78}");
    expr_run(&x, "[[\"assign\", 1, [\"item\", [\"name\", \"d\"], 5]], [\"assign\", 2, [\"item\", "
                 "[\"name\", \"d\"], 38.0]]]");
    assert_runs(&x, "[\"name\", \"d\"]", "{38: 2, 39: 78, 5: 1}");
    expr_world_close(&x);
}

/* As in CPython: a key function sees an empty list, and what it adds goes. */
static void a_list_is_empty_while_it_is_sorted(void **state) {
    expr_world x = expr_world_open(NULL);
    expr_run(&x,
             "[[\"assign\", [\"list\", \"b\", \"a\"], [\"name\", \"a\"]],"
             " [\"expr\", [\"method\", [\"name\", \"a\"], \"append\", [[\"name\", \"a\"]], []]]]");
    assert_runs(&x,
                "[\"method\", [\"name\", \"a\"], \"sort\", [], [[\"key\", [\"lambda\", [\"o\"], "
                "[\"item\", [\"name\", \"o\"], 0]]]]]",
                "IndexError: list index out of range");
    assert_runs(&x, "[\"name\", \"a\"]", "['b', 'a', [...]]");
    assert_runs(&x,
                "[\"method\", [\"name\", \"a\"], \"sort\", [], [[\"key\", [\"lambda\", [\"o\"], "
                "[\"call\", \"len\", [[\"name\", \"o\"]]]]]]]",
                "None");
    assert_runs(&x, "[\"name\", \"a\"]", "[[...], 'b', 'a']");
    assert_runs(&x,
                "[\"method\", [\"name\", \"a\"], \"sort\", [], [[\"key\", [\"lambda\", [\"o\"], "
                "[\"or\", [\"method\", [\"name\", \"a\"], \"append\", [1], []], 1]]]]]",
                "ValueError: list modified during sort");
    assert_runs(&x, "[\"call\", \"len\", [[\"name\", \"a\"]]]", "3");
    assert_runs(&x, "[\"method\", [\"name\", \"a\"], \"sort\", [], [[\"reverse\", 2147483648]]]",
                "OverflowError: Python int too large to convert to C int");
    expr_world_close(&x);
}

/* ---- The journal ------------------------------------------------------------------------- */

static void a_change_of_a_tracked_object_is_one_small_operation(void **state) {
    expr_world x = expr_world_open(NULL);
    expr_run(&x, "[[\"assign\", [\"list\", 1, 2], [\"name\", \"a\"]]]");
    world_track(x.f->slots.items[scope_find(x.names, "a", 1)], 7);
    expr_run(&x, "[[\"expr\", [\"method\", [\"name\", \"a\"], \"append\", [5], []]],"
                 " [\"assign\", 9, [\"item\", [\"name\", \"a\"], 0]], [\"del\", [\"item\", "
                 "[\"name\", \"a\"], 1]]]");
    assert_int_equal(x.w->journal.count, 3);
    assert_int_equal(x.w->journal.items[0].op, CHANGE_APPEND);
    assert_int_equal(x.w->journal.items[0].value.i, 5);
    assert_int_equal(world_number(x.w->journal.items[0].object), 7);
    assert_int_equal(x.w->journal.items[1].op, CHANGE_SET);
    assert_int_equal(x.w->journal.items[1].index, 0);
    assert_int_equal(x.w->journal.items[2].op, CHANGE_DELETE);
    world_journal_clear(x.w);
    assert_runs(&x, "[\"name\", \"a\"]", "[9, 5]");
    assert_int_equal(x.w->journal.count, 0);
    expr_world_close(&x);
}

/* Issue: freed when no slot or object refers to it. */
static void what_nothing_refers_to_is_freed(void **state) {
    expr_world x = expr_world_open(NULL);
    uint32_t before = x.w->objects;
    expr_run(&x, "[[\"assign\", [\"listcomp\", [\"list\", [\"name\", \"y\"]], [\"for\", [\"name\", "
                 "\"y\"], [\"call\", \"range\", [100]]]], [\"name\", \"a\"]]]");
    world_sweep(x.w);
    assert_true(x.w->objects >= before + 101);
    expr_run(&x, "[[\"assign\", null, [\"name\", \"a\"]]]");
    world_sweep(x.w);
    assert_true(x.w->objects <= before + 2);
    expr_world_close(&x);
}

static hd_status load_three(void *ctx, world *w, ev object) {
    ++*(int *)ctx;
    for (int i = 1; i <= 3; i++)
        if (!plist_append(w, object.list, ev_int(i))) return HD_NOMEM;
    return HD_OK;
}

static void an_object_is_loaded_when_something_looks_inside(void **state) {
    expr_world x = expr_world_open(NULL);
    uint32_t a;
    int loads = 0;
    world_set_loader(x.w, load_three, &loads);
    assert_int_equal(scope_slot(x.names, "a", 1, &a), HD_OK);
    assert_int_equal(frame_fit(x.f), HD_OK);
    frame_set(x.f, a, world_stub(x.w, EV_LIST, 0, 4));
    expr_run(&x, "[[\"assign\", [\"list\", [\"name\", \"a\"]], [\"name\", \"b\"]]]");
    assert_int_equal(loads, 0);
    assert_runs(&x, "[\"call\", \"sum\", [[\"item\", [\"name\", \"b\"], 0]]]", "6");
    assert_runs(&x, "[\"name\", \"b\"]", "[[1, 2, 3]]");
    assert_int_equal(loads, 1);
    assert_int_equal(x.w->journal.count, 0);
    expr_world_close(&x);
}

/* ---- Crossing ---------------------------------------------------------------------------- */

/* A dict that looks like an encoding crosses unchanged; so do order, tuples, sets and odd floats. */
static void every_value_survives_the_way_into_the_store_and_back(void **state) {
    static const char *const forms[] = {
        "[\"dict\", \"b\", 1, \"a\", 2]",
        "[\"dict\", \"$tuple\", [\"list\", 1], \"type\", \"x\", \"$\", 1, \"$$\", 2]",
        "[\"dict\", 1, \"one\", [\"tuple\", 1, 2], 3, null, 4, true, 5]",
        "[\"tuple\", [\"set\", 3, 1], [\"list\"], [\"tuple\"], \"\", [\"const\", {\"$bytes\": "
        "\"AP8=\"}]]",
        "[\"list\", [\"const\", {\"$double\": \"NaN\"}], [\"const\", {\"$double\": "
        "\"-Infinity\"}], -0.0, 1e300]",
        "[\"new\", \"Item\", [\"x\", [\"dict\"]], []]",
        "[\"new\", \"KeyError\", [[\"tuple\", 1, \"a\"]], []]",
        "[\"const\", {\"$$enum\": \"Color\", \"name\": \"RED\", \"value\": 1}]",
        "[\"call\", \"range\", [1, 9, 2]]",
        "[\"call\", \"chr\", [55296]]",
        "[\"type\", \"int\"]",
    };
    expr_world x = expr_world_open(NULL);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        code *c = expr_compile(&x, forms[i]);
        ev v, again;
        assert_int_equal(machine_eval(x.m, c, x.f, &v), OUTCOME_VALUE);
        hd_value stored = encode_value(x.w, x.pool, v);
        assert_int_equal(hd_value_status(stored), HD_OK);
        assert_int_equal(decode_value(x.w, stored, &again, NULL), HD_OK);
        char first[500];
        strcpy(first, expr_text(&x, OUTCOME_VALUE, v));
        assert_string_equal(expr_text(&x, OUTCOME_VALUE, again), first);
        assert_int_equal(ev_class(v), ev_class(again));
        code_free(c);
    }
    expr_world_close(&x);
}

/* What a program that does not know of encodings has written is what it looks like. */
static void an_object_that_only_looks_like_an_encoding_is_a_dict(void **state) {
    static const char *const cases[][2] = {
        { "{\"$$set\": 1}", "{'$set': 1}" },
        { "{\"$$set\": [1], \"b\": 2}", "{'$set': [1], 'b': 2}" },
        { "{\"$$set\": [1]}", "{1}" },
        { "{\"$$tuple\": [], \"b\": 2}", "{'$tuple': [], 'b': 2}" },
        { "{\"$$tuple\": [1]}", "(1,)" },
        { "{\"$$dict\": [[1, 2]], \"x\": 1}", "{'$dict': [[1, 2]], 'x': 1}" },
        { "{\"$$range\": [1, 2, 3], \"x\": 1}", "{'$range': [1, 2, 3], 'x': 1}" },
        { "{\"$$ref\": \"other.json\"}", "{'$ref': 'other.json'}" },
        { "{\"$$str\": \"x\"}", "{'$str': 'x'}" },
        { "{\"$$type\": \"object\", \"x\": 1}", "{'$type': 'object', 'x': 1}" },
        { "{\"$$type\": 3}", "{'$type': 3}" },
        { "{\"$$error\": 404, \"message\": \"gone\"}", "{'$error': 404, 'message': 'gone'}" },
        { "{\"$$error\": \"E\", \"code\": 1}", "{'$error': 'E', 'code': 1}" },
        { "{\"$$error\": \"E\", \"raised\": 1}", "{'$error': 'E', 'raised': 1}" },
        { "{\"$$enum\": [1, 2]}", "{'$enum': [1, 2]}" },
        { "{\"$$enum\": \"E\", \"name\": \"A\", \"value\": 1, \"x\": 1}",
          "{'$enum': 'E', 'name': 'A', 'value': 1, 'x': 1}" },
        { "{\"$$record\": 1, \"a\": 2}", "{'$record': 1, 'a': 2}" },
        { "{\"$$keys\": 1, \"a\": 2}", "{'$keys': 1, 'a': 2}" },
        { "{\"$$keys\": [\"b\", \"a\"], \"a\": 2}", "{'$keys': ['b', 'a'], 'a': 2}" },
        { "{\"$$keys\": [\"b\", \"a\"], \"a\": 2, \"b\": 1}", "{'b': 1, 'a': 2}" },
    };
    expr_world x = expr_world_open(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_error error = { 0 };
        ev v;
        hd_value from = hd_json_parse(x.pool, cases[i][0], strlen(cases[i][0]), &error);
        assert_string_equal(error.message, "");
        if (decode_value(x.w, from, &v, &error)) fail_msg("%s: %s", cases[i][0], error.message);
        assert_string_equal(expr_text(&x, OUTCOME_VALUE, v), cases[i][1]);
        hd_value again = encode_value(x.w, x.pool, v); /* crosses unchanged from here on */
        assert_int_equal(decode_value(x.w, again, &v, &error), HD_OK);
        assert_string_equal(expr_text(&x, OUTCOME_VALUE, v), cases[i][1]);
    }
    expr_world_close(&x);
}

static void a_circle_and_an_iterator_cannot_cross(void **state) {
    expr_world x = expr_world_open(NULL);
    expr_run(&x, "[[\"assign\", [\"list\"], [\"name\", \"a\"]], [\"expr\", [\"method\", [\"name\", "
                 "\"a\"], \"append\", [[\"name\", \"a\"]], []]]]");
    assert_runs(&x, "[\"name\", \"a\"]", "[[...]]");
    ev a = x.f->slots.items[scope_find(x.names, "a", 1)];
    assert_int_equal(hd_value_status(encode_value(x.w, x.pool, a)), HD_KIND);
    assert_string_equal(expr_text(&x, OUTCOME_RAISED, raise_catch(x.w)),
                        "ValueError: Circular reference detected");
    assert_runs(&x, "[[\"assign\", [\"call\", \"reversed\", [[\"list\", 1]]], [\"name\", \"b\"]]]",
                "Unsupported: an iterator (zip, map, filter, enumerate, reversed) that is kept: "
                "take its elements with list(...)");
    expr_world_close(&x);
}

/* ---- Limits ------------------------------------------------------------------------------ */

static void hostile_expressions_meet_a_limit(void **state) {
    world_limits limits = { .bytes = 1 << 20, .steps = 100000, .depth = 50 };
    expr_world x = expr_world_open(&limits);
    assert_runs(&x, "[\"*\", \"x\", 9223372036854775807]", "MemoryError: ");
    assert_runs(&x, "[\"*\", [\"list\", 1], 1000000]", "MemoryError: ");
    assert_runs(&x, "[\"call\", \"sum\", [[\"call\", \"range\", [100000000]]]]",
                "Unsupported: more than 100000 steps in one evaluation");
    expr_run(&x, "[[\"assign\", [\"list\"], [\"name\", \"a\"]]]");
    for (int i = 0; i < 60; i++)
        expr_run(&x, "[[\"assign\", [\"list\", [\"name\", \"a\"]], [\"name\", \"a\"]]]");
    assert_runs(
        &x, "[\"call\", \"repr\", [[\"name\", \"a\"]]]",
        "RecursionError: maximum recursion depth exceeded while getting the repr of an object");
    assert_runs(&x, "[\"fstr\", [\"fmt\", 1, null, \"2000000000\"]]", "MemoryError: ");
    assert_runs(&x, "[\"+\", 1, 1]", "2");
    expr_world_close(&x);
}

/* The variables of all instances of an engine are in one world: what others keep is not counted. */
static uint32_t exception_class(expr_world *x, char *name, uint32_t base, uint32_t more) {
    uint32_t id, above[] = { more };
    class_info info = { .name = name, .base = base, .kind = CLASS_EXCEPTION };
    if (more) info.more = above, info.more_count = 1;
    assert_int_equal(classes_add(x->w->classes, &info, &id), HD_OK);
    return id;
}

/* class Own(Exception); class Stop(KeyboardInterrupt); class Mid(Own, Stop); class Low(Mid) */
static void an_exception_crosses_with_every_class_above_it(void **state) {
    expr_world x = expr_world_open(NULL), y = expr_world_open(NULL);
    char own[] = "a:Own", stop[] = "a:Stop", mid[] = "a:Mid", low[] = "a:Low";
    uint32_t above = exception_class(&x, mid, exception_class(&x, own, CLASS_Exception, 0),
                                     exception_class(&x, stop, CLASS_KeyboardInterrupt, 0));
    exception_class(&x, low, above, 0);
    const char *json = "{\"$$error\":\"a:Low\",\"args\":[]}";
    ev v;
    hd_value stored = hd_json_parse(x.pool, json, strlen(json), NULL);
    assert_int_equal(decode_value(x.w, stored, &v, NULL), HD_OK);
    stored = encode_value(x.w, x.pool, v);
    const char *bases = hd_json_print(x.pool, hd_value_at(stored, "bases"), HD_JSON_COMPACT, NULL);
    assert_string_equal(bases,
                        "[\"a:Mid\",\"a:Own\",\"Exception\",\"a:Stop\",\"KeyboardInterrupt\"]");
    assert_int_equal(decode_value(y.w, stored, &v, NULL),
                     HD_OK); /* by a process that knows none of them */
    uint32_t there = ev_class(v);
    assert_true(class_is(y.w->classes, there, CLASS_KeyboardInterrupt));
    assert_true(class_is(y.w->classes, there, CLASS_Exception));
    expr_world_close(&x);
    expr_world_close(&y);
}

static void an_exception_that_names_a_built_in_class_is_below_no_other(void **state) {
    expr_world x = expr_world_open(NULL);
    const char *json =
        "{\"$$error\":\"a:Low\",\"args\":[],\"bases\":[\"KeyboardInterrupt\",\"a:Stop\"]}";
    ev v;
    hd_value stored = hd_json_parse(x.pool, json, strlen(json), NULL);
    assert_int_equal(decode_value(x.w, stored, &v, NULL), HD_OK);
    assert_true(class_is(x.w->classes, ev_class(v), CLASS_KeyboardInterrupt));
    assert_false(class_is(x.w->classes, ev_class(v), CLASS_Exception));
    expr_world_close(&x);
}

static void the_limit_of_memory_counts_what_one_evaluation_adds(void **state) {
    world_limits limits = { .bytes = 1 << 20 };
    expr_world x = expr_world_open(&limits);
    expr_run(&x, "[[\"assign\", [\"*\", \"x\", 700000], [\"name\", \"a\"]]]");
    expr_run(&x, "[[\"assign\", [\"*\", \"x\", 700000], [\"name\", \"b\"]]]");
    assert_runs(&x, "[\"call\", \"len\", [[\"name\", \"b\"]]]", "700000");
    assert_runs(&x, "[\"+\", [\"name\", \"a\"], [\"name\", \"b\"]]", "MemoryError: ");
    expr_world_close(&x);
}

static void a_generator_or_function_cannot_be_kept(void **state) {
    expr_world x = expr_world_open(NULL);
    expr_run(
        &x,
        "[[\"assign\", [\"list\", [\"lambda\", [\"o\"], [\"name\", \"o\"]]], [\"name\", \"a\"]]]");
    assert_runs(
        &x,
        "[\"call\", \"sorted\", [[\"list\", 1]], [[\"key\", [\"item\", [\"name\", \"a\"], 0]]]]",
        "Unsupported: a function that is kept for later");
    expr_run(&x, "[[\"assign\", [\"list\", [\"gen\", 1, [\"for\", [\"name\", \"y\"], \"ab\"]]], "
                 "[\"name\", \"a\"]]]");
    assert_runs(&x, "[\"call\", \"list\", [[\"item\", [\"name\", \"a\"], 0]]]",
                "Unsupported: a generator that is kept for later");
    expr_world_close(&x);
}

static void bad_forms_are_refused_with_their_place(void **state) {
    static const struct {
        const char *json, *message, *path;
    } cases[] = {
        { "[\"frob\", 1]", "there is no operation 'frob'", "" },
        { "[\"+\", 1, [\"name\", 5]]", "a name must be a string", "/2/1" },
        { "[\"call\", \"open\", [\"x\"]]", "there is no function 'open'", "" },
        { "[\"list\", 1, [\"cmp\", 1, \"<<\", 2]]", "'<<' is no comparison", "/2/2" },
        { "{\"a\": 1}", "object is no form: write [\"const\", ...]", "" },
        { "[\"new\", \"Nope\", []]",
          "no function or class is called 'Nope'; an action is called in a step of its own", "" },
        { "[]", "a form is an array that begins with the name of an operation", "" },
        { "[\"listcomp\", 1]", "a comprehension needs a clause", "" },
        { "[\"lambda\", [\"o\"], [\":=\", \"w\", 1]]", "':=' in a lambda: assign 'w' outside",
          "/2" },
        { "[\"dict\", 1]", "the last key of a dict has no value", "" },
    };
    expr_world x = expr_world_open(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_error error;
        code *c;
        hd_value form = hd_json_parse(x.pool, cases[i].json, strlen(cases[i].json), &error);
        assert_int_equal(compile_expression(x.w, x.names, form, &c, &error), HD_SYNTAX);
        assert_null(c);
        assert_string_equal(error.message, cases[i].message);
        assert_string_equal(error.path, cases[i].path);
    }
    expr_world_close(&x);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static void the_steady_state_allocates_nothing(void **state) {
    expr_world x = expr_world_open(NULL);
    ev v;
    expr_run(
        &x,
        "[[\"assign\", 3, [\"name\", \"n\"]], [\"assign\", [\"list\", 1, 2], [\"name\", \"a\"]]]");
    code *c = expr_compile(&x, "[\"if\", [\"cmp\", [\"+\", [\"name\", \"n\"], 1], \"<\", 5], "
                               "[\"fstr\", \"n is \", [\"fmt\", [\"name\", \"n\"], null, null]],"
                               " [\"listcomp\", [\"*\", [\"name\", \"y\"], 2], [\"for\", "
                               "[\"name\", \"y\"], [\"name\", \"a\"]]]]");
    for (int i = 0; i < 10; i++) machine_eval(x.m, c, x.f, &v);
    uint64_t before = lab_env_allocations(x.lab);
    for (int i = 0; i < 1000; i++) assert_int_equal(machine_eval(x.m, c, x.f, &v), OUTCOME_VALUE);
    assert_int_equal(lab_env_allocations(x.lab), before);
    code_free(c);
    expr_world_close(&x);
}

static const char all_of_it[] =
    "[\"tuple\", [\"listcomp\", [\"method\", [\"fstr\", [\"fmt\", [\"name\", \"y\"], \"r\", "
    "\">9\"]], \"split\", [\"é\"], []],"
    " [\"for\", [\"name\", \"y\"], [\"call\", \"range\", [40]], [\"%\", [\"name\", \"y\"], 2]]],"
    " [\"dictcomp\", [\"name\", \"y\"], [\"set\", [\"name\", \"y\"]], [\"for\", [\"name\", \"y\"], "
    "[\"call\", \"sorted\","
    " [[\"list\", 3, 1, 2]], [[\"key\", [\"lambda\", [\"o\"], [\"neg\", [\"name\", \"o\"]]]]]]]],"
    " [\"call\", \"sum\", [[\"gen\", [\"name\", \"y\"], [\"for\", [\"name\", \"y\"], [\"list\", 1, "
    "2]]]]],"
    " [\"new\", \"Item\", [\"a\", [\"const\", {\"$bytes\": \"AP8=\"}]], []], [\"call\", \"dict\", "
    "[[\"list\", [\"tuple\", 1, 2]]], [[\"k\", 1]]]]";

/* The nth allocation fails, for every n: HD_NOMEM or the right value, and nothing leaks. */
static void without_memory(lab_env *lab, void *ctx) {
    expr_world x;
    hd_error error;
    code *c = NULL;
    ev v;
    if (expr_world_try(&x, lab_env_of(lab), NULL)) {
        hd_value form = hd_json_parse(x.pool, all_of_it, strlen(all_of_it), &error);
        hd_status s = compile_expression(x.w, x.names, form, &c, &error);
        if (s) assert_true(lab_env_failed(lab));
        else {
            outcome o = machine_eval(x.m, c, x.f, &v);
            if (o == OUTCOME_STOPPED) assert_int_equal(x.w->status, HD_NOMEM);
            else assert_int_equal(o, OUTCOME_VALUE);
            if (o == OUTCOME_VALUE) encode_value(x.w, x.pool, v);
        }
        world_check(x.w);
    }
    code_free(c);
    expr_world_close(&x);
}

static void every_allocation_may_fail(void **state) {
    assert_true(lab_each_allocation_failure(without_memory, NULL) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_never_wrap),
        cmocka_unit_test(a_sum_beyond_64_bits_is_added_to_floats_and_refused_by_type),
        cmocka_unit_test(the_number_of_an_element_never_wraps),
        cmocka_unit_test(a_view_takes_any_iterable_on_both_sides),
        cmocka_unit_test(a_complaint_names_the_receiver_of_a_spread_call),
        cmocka_unit_test(what_the_text_of_an_exception_shows_is_not_assigned),
        cmocka_unit_test(the_largest_size_of_bytes_is_told_from_too_little_memory),
        cmocka_unit_test(attributes_that_no_text_shows_are_assigned),
        cmocka_unit_test(attributes_of_a_group_are_readonly),
        cmocka_unit_test(a_group_has_exceptions_and_nothing_else),
        cmocka_unit_test(exceptions_take_by_name_what_those_of_cpython_take),
        cmocka_unit_test(keywords_of_a_call_are_given_once),
        cmocka_unit_test(the_class_of_a_plain_class_is_type),
        cmocka_unit_test(a_wrong_name_is_found_before_too_many_places),
        cmocka_unit_test(names_of_encodings_have_no_null_character),
        cmocka_unit_test(two_names_of_one_list_see_each_others_changes),
        cmocka_unit_test(a_chain_evaluates_its_middle_once),
        cmocka_unit_test(any_stops_at_the_first_true_element),
        cmocka_unit_test(a_dict_keeps_its_order_when_keys_come_and_go),
        cmocka_unit_test(a_list_is_empty_while_it_is_sorted),
        cmocka_unit_test(a_change_of_a_tracked_object_is_one_small_operation),
        cmocka_unit_test(what_nothing_refers_to_is_freed),
        cmocka_unit_test(an_object_is_loaded_when_something_looks_inside),
        cmocka_unit_test(every_value_survives_the_way_into_the_store_and_back),
        cmocka_unit_test(an_object_that_only_looks_like_an_encoding_is_a_dict),
        cmocka_unit_test(a_circle_and_an_iterator_cannot_cross),
        cmocka_unit_test(hostile_expressions_meet_a_limit),
        cmocka_unit_test(an_exception_crosses_with_every_class_above_it),
        cmocka_unit_test(an_exception_that_names_a_built_in_class_is_below_no_other),
        cmocka_unit_test(the_limit_of_memory_counts_what_one_evaluation_adds),
        cmocka_unit_test(a_generator_or_function_cannot_be_kept),
        cmocka_unit_test(bad_forms_are_refused_with_their_place),
        cmocka_unit_test(the_steady_state_allocates_nothing),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

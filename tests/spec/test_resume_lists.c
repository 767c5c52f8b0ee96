/* test_resume_lists.c -- lists after a restart: coordinators run, their rows do not. */
#include "piece_world.h"

static hd_value price(hd_tx *tx, hd_value in, void *ctx) {
    char name[32];
    snprintf(name, sizeof name, "row%d", (int)hd_value_number(hd_value_at(in, "id")));
    lab_note(l, name);
    return hd_value_at(in, "price");
}

static void show_list(hd_value v, void *ctx) { lab_note(l, "list"); }

static hd_cell basket(hd_build *b, void *ctx) {
    hd_cell items = hd_cell_at(rt(), "main/items");
    hd_cell prices = hd_build_map(b, "prices", items, &(hd_each){ .fn = price, .key = "/id" });
    hd_cell all = hd_build_gather(b, "all", prices);
    hd_build_sink(b, "look", all, show_list, NULL);
    return all;
}

static void start(const char *id, const char *pattern, hd_pattern_fn fn) {
    hd_piece p;
    hd_error error;
    hd_piece_spec spec = { .id = id, .pattern = pattern };
    hd_pattern_register(rt(), pattern, "1", fn, NULL);
    if (hd_piece_start(rt(), &spec, &p, &error)) fail_msg("%s", error.message);
}
static void start_basket(void) { start("b", "basket", basket); }

/* C304, C310: the coordinator runs, its rows do not; then one element is one row. */
static void rows_of_a_list_resume(void **state) {
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]");
    start_basket();
    settle();
    lab_ran(l);
    assert_json(l, "main/b/all", "[10,20]");
    restart();
    start_basket();
    settle();
    assert_ran(l, "list");
    lab_set(l, "items#/1/price", 25);
    settle();
    assert_ran(l, "row2 list");
    lab_set_json(l, "items",
                 "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":25},{\"id\":3,\"price\":1}]");
    settle();
    assert_ran(l, "row3 list");
    assert_json(l, "main/b/all", "[10,25,1]");
    restart();
    start_basket();
    settle();
    assert_ran(l, "list");
}

/* Each element came after the rows before it were proved. */
static void rows_of_a_list_that_grew_resume(void **state) {
    char json[256] = "[";
    lab_set_json(l, "items", "[]");
    start_basket();
    settle();
    for (int i = 1; i <= 4; i++) {
        size_t length = strlen(json);
        snprintf(json + length - (i > 1), sizeof json - length, "%s{\"id\":%d,\"price\":%d}]",
                 i > 1 ? "," : "", i, i);
        lab_set_json(l, "items", json);
        settle();
    }
    lab_ran(l);
    assert_json(l, "main/b/all", "[1,2,3,4]");
    for (int i = 0; i < 3; i++) {
        restart();
        start_basket();
        settle();
        assert_ran(l, "list");
    }
}

/* C309: a list that changed meanwhile: what is new runs, what is gone leaves nothing. */
static void a_list_that_changed_meanwhile_is_rebuilt(void **state) {
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]");
    start_basket();
    settle();
    lab_ran(l);
    stop();
    lab_on(l, "z");
    lab_set_json(l, "items", "[{\"id\":3,\"price\":5},{\"id\":1,\"price\":10}]");
    settle();
    lab_on(l, "a");
    start_basket();
    settle();
    assert_ran(l, "row3 list");
    assert_json(l, "main/b/all", "[5,10]");
    lab_set_json(l, "items", "[{\"id\":2,\"price\":20}]");
    settle();
    assert_ran(l, "row2 list");
}

static hd_value is_dear(hd_tx *tx, hd_value in, void *ctx) {
    return hd_bool(hd_value_number(hd_value_at(in, "price")) > 10);
}
static hd_value price_twice(hd_tx *tx, hd_value in, void *ctx) {
    hd_value price_of = hd_value_at(in, "price");
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ price_of, price_of }, 2);
}
static hd_cell containers(hd_build *b, void *ctx) {
    hd_cell items = hd_cell_at(rt(), "main/items");
    hd_cell dear = hd_build_filter(b, "dear", items, &(hd_each){ .fn = is_dear, .key = "/id" });
    hd_cell flat = hd_build_flat_map(b, "flat", items, &(hd_each){ .fn = price_twice });
    hd_cell rows = hd_build_map(b, "prices", items, &(hd_each){ .fn = price, .key = "/id" });
    hd_build_sink(b, "look_dear", dear, show_list, NULL);
    hd_build_sink(b, "look_flat", flat, show_list, NULL);
    hd_build_sink(b, "look", hd_build_gather(b, "all", rows), show_list, NULL);
    return rows;
}
static void start_containers(void) {
    start("k", "containers", containers);
    settle();
}
static void containers_are_right(void) {
    assert_json(l, "main/k/dear", "[{\"id\":2,\"price\":20}]");
    assert_json(l, "main/k/flat", "[10,10,20,20]");
    assert_json(l, "main/k/all", "[10,20]");
}

static const char *const coordinated[] = { "dear.rows", "dear.rows.elements", "flat.rows", "prices",
                                           "prices.elements" };

/* C309: what a coordinator writes, and somebody has removed or written over while nobody ran, is made
 * again. */
static void a_container_that_is_missing_is_rebuilt(void **state) {
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]");
    start_containers();
    containers_are_right();
    for (size_t i = 0; i < 2 * sizeof coordinated / sizeof *coordinated; i++) {
        char name[64];
        stop();
        lab_on(l, "z");
        snprintf(name, sizeof name, "main/k/%s", coordinated[i / 2]);
        if (i % 2) lab_remove(l, name);
        else lab_set_json(l, name, "[1]");
        settle();
        lab_on(l, "a");
        start_containers();
        containers_are_right();
    }
}

/* C309: the same of filter and flat_map where the list has changed meanwhile. */
static void a_container_that_is_stale_is_rebuilt(void **state) {
    lab_set_json(l, "items", "[{\"id\":2,\"price\":2},{\"id\":3,\"price\":30}]");
    start_containers();
    assert_json(l, "main/k/flat", "[2,2,30,30]");
    stop();
    lab_on(l, "z");
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]");
    settle();
    lab_on(l, "a");
    start_containers();
    containers_are_right();
}

/* C309: inputs that arrive late: what was there stays as long as the piece is held for them, and is
 * rebuilt when they have come. */
static void a_container_stays_until_its_inputs_have_come(void **state) {
    hd_hold hold;
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]");
    start_containers();
    stop();
    lab_on(l, "z");
    lab_set_json(l, "items", "[]"); /* half of what is to come */
    settle();
    lab_on(l, "a");
    lab_ran(l);
    assert_int_equal(hd_hold_begin(rt(), "main:k", 0, &hold), HD_OK);
    start("k", "containers", containers);
    lab_turn(l);
    assert_ran(l, "");
    containers_are_right();
    lab_set_json(l, "items", "[{\"id\":3,\"price\":30},{\"id\":2,\"price\":20}]");
    hd_hold_end(rt(), hold);
    settle();
    assert_json(l, "main/k/all", "[30,20]");
    assert_json(l, "main/k/flat", "[30,30,20,20]");
    assert_json(l, "main/k/dear", "[{\"id\":3,\"price\":30},{\"id\":2,\"price\":20}]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(rows_of_a_list_resume),
        S(rows_of_a_list_that_grew_resume),
        S(a_list_that_changed_meanwhile_is_rebuilt),
        S(a_container_that_is_missing_is_rebuilt),
        S(a_container_that_is_stale_is_rebuilt),
        S(a_container_stays_until_its_inputs_have_come),
    };
    LAB_EVERYWHERE(tests);
}

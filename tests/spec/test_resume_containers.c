/* test_resume_containers.c -- C309: the lists that list patterns write, after a restart.
 *
 * A list has four containers: the links of a map (`rows`), what they point at (`all`), those that a filter
 * chose (`dear`), and what a flat_map made of each (`flat`). Its elements are known by their place, by a
 * key, or are links. Whatever somebody did to a container while nobody ran, it is rebuilt; whatever came
 * of the list meanwhile, only what it concerns runs; and until the list is here, what was there stays. */
#include "lab_inside.h"

#include "piece_world.h"

typedef struct how {
    const char *key; /* of hd_each */
    bool links;      /* its elements are documents e1, e2, ... */
} how;
static how by_place = { NULL, false }, by_key = { "/id", false }, by_link = { NULL, true };
static const how *now;

/* ---- the piece */

static hd_value price(hd_tx *tx, hd_value in, void *ctx) { return hd_value_at(in, "price"); }
static hd_runtime *rich; /* who finds other things dear */
static hd_value is_dear(hd_tx *tx, hd_value in, void *ctx) {
    double from = hd_tx_runtime(tx) == rich ? 20 : 10;
    return hd_bool(hd_value_number(hd_value_at(in, "price")) > from);
}
static hd_value price_twice(hd_tx *tx, hd_value in, void *ctx) {
    hd_value p = hd_value_at(in, "price");
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ p, p }, 2);
}

/* Notes what it sees: "all=[10,20]". */
static void see(hd_value v, void *ctx) {
    char text[256];
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    const char *json = hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "-";
    snprintf(text, sizeof text, "%s=%s", (const char *)ctx, json);
    lab_note(l, text);
    hd_pool_close(pool);
}

static hd_value prices_of(hd_tx *tx, hd_value in, void *ctx) {
    hd_value out = hd_array();
    for (hd_iter it = hd_iter_of(in); hd_iter_next(&it);) {
        hd_value element = hd_tx_follow(tx, hd_cell_at(rt(), "main/items"), it.value);
        if (hd_value_status(element)) return element;
        out = hd_array_append(hd_tx_pool(tx), out, hd_value_at(element, "price"));
    }
    return out;
}

static hd_cell containers(hd_build *b, void *ctx) {
    hd_cell items = hd_cell_at(rt(), "main/items");
    hd_each each = { .fn = price, .key = now->key };
    hd_cell rows = hd_build_map(b, "rows", items, &each);
    each.fn = is_dear;
    hd_cell dear = hd_build_filter(b, "dear", items, &each);
    each.fn = price_twice;
    hd_cell flat = hd_build_flat_map(b, "flat", items, &each);
    hd_build_sink(b, "see_all", hd_build_gather(b, "all", rows), see, "all");
    hd_build_sink(b, "see_dear", hd_build_derive(b, "dear_prices", dear, prices_of, NULL), see,
                  "dear");
    hd_build_sink(b, "see_flat", flat, see, "flat");
    return rows;
}

/* Where documents arrive late the piece's own has to arrive first. */
static void begin_version(const char *version) {
    hd_piece p;
    hd_error error;
    hd_status status;
    hd_piece_spec spec = { .id = "k", .pattern = "containers" };
    hd_pattern_register(rt(), "containers", version, containers, NULL);
    while ((status = hd_piece_start(rt(), &spec, &p, &error)) == HD_PENDING)
        lab_hear(lab_on(l, "a"));
    if (status) fail_msg("%s", error.message);
}
static void begin(void) { begin_version("1"); }

/* ---- writing */

typedef hd_status (*change_fn)(hd_tx *tx, hd_cell cell, const char *json);

/* Where documents arrive late, what is changed has to arrive first. */
static void change(const char *cell, change_fn fn, const char *json) {
    hd_tx *tx;
    for (hd_status status = HD_PENDING; status; lab_turn(l)) {
        assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
        status = fn(tx, hd_cell_at(rt(), cell), json);
        if (status) hd_tx_abort(tx);
        else status = hd_tx_commit(tx, NULL, NULL);
        if (status && status != HD_PENDING) fail_msg("%s: %s", cell, hd_status_name(status));
    }
}

static hd_status remove_cell(hd_tx *tx, hd_cell cell, const char *json) {
    return hd_tx_remove(tx, cell);
}
static void put(const char *cell, const char *json) { change(cell, hd_tx_set_json, json); }
static void take(const char *cell) { change(cell, remove_cell, NULL); }

/* An element for each pair of id and price: {"id":1,"price":10}. */
static void put_items(size_t count, const int items[][2]) {
    char all[512] = "[", one[64], name[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(one, sizeof one, "{\"id\":%d,\"price\":%d}", items[i][0], items[i][1]);
        snprintf(name, sizeof name, "main/e%d", items[i][0]);
        if (now->links) {
            put(name, one);
            snprintf(one, sizeof one, "{\"$link\":{\"id\":\"e%d\"}}", items[i][0]);
        }
        if (i) strcat(all, ",");
        strcat(all, one);
    }
    put("main/items", strcat(all, "]"));
}
#define ITEMS(...)                                                                                 \
    put_items(sizeof((int[][2]){ __VA_ARGS__ }) / sizeof(int[2]), (const int[][2]){ __VA_ARGS__ })

/* ---- looking */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words in order of their letters. */
static const char *in_order(const char *words) {
    static char text[1024], out[1024];
    char *word[64];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *at = text; *at; at += strcspn(at, " ")) {
        if (*at == ' ') *at++ = 0;
        word[count++] = at;
    }
    qsort(word, count, sizeof *word, by_name);
    *out = 0;
    for (size_t i = 0; i < count; i++) strcat(strcat(out, i ? " " : ""), word[i]);
    return out;
}

/* The computations of the piece that have run since the runtime was opened; and how often, if not once. */
static const char *computed(void) {
    char out[1024] = "", name[64];
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(lab_runtime_now(l)), &pool), HD_OK);
    hd_value nodes = hd_value_at(hd_graph_snapshot(lab_runtime_now(l), pool), "nodes");
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it);) {
        const char *kind = hd_value_as_text(hd_value_at(it.value, "kind"), "");
        const char *whole = hd_value_as_text(hd_value_at(it.value, "name"), "");
        int runs = (int)hd_value_as_int(hd_value_at(it.value, "runs"), 0);
        if (!strcmp(kind, "effect") || !runs) continue;
        snprintf(name, sizeof name, runs > 1 ? "%s%.40s*%d" : "%s%.40s", *out ? " " : "",
                 whole + strlen("main:k:"), runs);
        strcat(out, name);
    }
    hd_pool_close(pool);
    return in_order(out);
}
#define assert_computed(names) assert_string_equal(computed(), names)
/* What the sinks have seen since the last call. */
#define assert_noted(words) assert_string_equal(in_order(lab_ran(l)), words)

#define COORDINATORS "dear.rows flat.rows rows"
#define SEEN         "all=[10,20] dear=[20] flat=[10,10,20,20]"

/* ---- a life before */

static void live(void) {
    ITEMS({ 1, 10 }, { 2, 20 });
    begin();
    settle();
    lab_ran(l);
    assert_json(l, "main/k/all", "[10,20]");
    assert_json(l, "main/k/flat", "[10,10,20,20]");
    stop();
}
static void elsewhere(void) { lab_on(l, "z"); }
static void again(void) {
    settle();
    lab_on(l, "a");
    begin();
    settle();
}

/* ---- clean */

static bool is_here(const char *cell) {
    lab_on(l, "a");
    return lab_knows(l, cell);
}

/* C304, C309: nothing was done to them: coordinators look, and write nothing; rows are not even read. */
static void clean_containers_are_left_alone(void **state) {
    hd_store_stats before, after;
    now = *state;
    live();
    lab_on(l, "a");
    hd_runtime_store_stats(rt(), &before);
    begin();
    settle();
    assert_computed(COORDINATORS);
    assert_noted(SEEN);
    hd_runtime_store_stats(rt(), &after);
    assert_int_equal(after.seals, before.seals);
    assert_false(is_here("main/k/flat.rows/0"));
    assert_false(is_here("main/k/rows/1"));
}

/* ---- missing */

typedef struct damage {
    const char *container, *computes;
} damage;

static const damage damages[] = {
    { "main/k/rows", "all " COORDINATORS }, /* which reads it */
    { "main/k/all", "all " COORDINATORS },
    { "main/k/dear.rows", "dear " COORDINATORS }, /* which gives what it gave */
    { "main/k/dear", "dear dear.rows dear_prices flat.rows rows" },
    { "main/k/flat.rows", "dear.rows flat flat.rows rows" },
    { "main/k/flat", "dear.rows flat flat.rows rows" },
};
static const char *const instead[] = { "[1]", "[]", "{\"x\":1}", NULL }; /* NULL: it is removed */

static void do_damage(const char *container, const char *json) {
    if (json) put(container, json);
    else take(container);
}

/* C309: a container that somebody has written over or removed while nobody ran is rebuilt, from rows that
 * do not run; nobody sees what was there instead. */
static void a_container_that_is_missing_is_rebuilt(void **state) {
    now = *state;
    live();
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        for (size_t j = 0; j < sizeof instead / sizeof *instead; j++) {
            elsewhere();
            do_damage(damages[i].container, instead[j]);
            again();
            assert_computed(damages[i].computes);
            assert_noted(SEEN);
            stop();
        }
    elsewhere();
    again();
    assert_computed(COORDINATORS); /* and that is known */
}

static bool take_stale(const hd_stale_piece *piece, void *ctx) {
    assert_string_equal(piece->id, "k");
    *(uint64_t *)ctx = piece->nodes;
    return true;
}

/* It shows among the pieces that have something to do. */
static void a_container_that_is_missing_makes_its_piece_stale(void **state) {
    uint64_t stale = 0;
    now = *state;
    if (!lab_is_sqlite(l)) skip();
    live();
    elsewhere();
    settle();
    assert_int_equal(hd_store_stale_pieces(rt(), take_stale, &stale), HD_OK);
    assert_int_equal(stale, 0);
    take("main/k/flat");
    settle();
    assert_int_equal(hd_store_stale_pieces(rt(), take_stale, &stale), HD_OK);
    assert_int_equal(stale, 1);
}

/* C309: the same if the program does it itself, before it starts the piece. */
static void a_container_that_the_program_spoilt_is_rebuilt(void **state) {
    now = *state;
    live();
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        lab_on(l, "a");
        do_damage(damages[i].container, i % 2 ? "[1]" : NULL);
        begin();
        settle();
        assert_computed(damages[i].computes);
        assert_noted(SEEN);
        stop();
    }
}

/* C309: all of them at once. */
static void containers_that_are_all_missing_are_rebuilt(void **state) {
    now = *state;
    live();
    elsewhere();
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) take(damages[i].container);
    again();
    assert_computed("all dear dear.rows dear_prices flat flat.rows rows");
    assert_noted(SEEN);
}

/* The copies of elements are what rows read: those run, and what they give is as before. */
static void elements_that_are_missing_are_rebuilt(void **state) {
    now = &by_key;
    live();
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++) {
        elsewhere();
        do_damage("main/k/rows.elements", instead[i]);
        again();
        assert_computed("dear.rows flat.rows rows rows/1 rows/2");
        assert_noted(SEEN);
        stop();
    }
}

/* A piece that stops and starts again while the program runs on. */
static void a_container_of_a_piece_that_was_stopped_is_rebuilt(void **state) {
    now = *state;
    live();
    lab_on(l, "a");
    begin();
    settle();
    hd_piece_stop(rt(), hd_piece_find(rt(), NULL, "k"));
    settle();
    lab_ran(l);
    put("main/k/dear", "[1]");
    take("main/k/flat");
    begin();
    settle();
    assert_noted(SEEN);
}

/* What is written over a container while its piece runs stays until the list changes, as it does for
 * everything that is computed. */
static void a_container_that_is_written_over_live_stays_until_its_inputs_change(void **state) {
    now = *state;
    live();
    lab_on(l, "a");
    begin();
    settle();
    lab_ran(l);
    put("main/k/all", "[1]");
    settle();
    assert_noted("all=[1]");
    assert_computed(COORDINATORS);
    ITEMS({ 1, 10 }, { 2, 21 });
    settle();
    assert_json(l, "main/k/all", "[10,21]");
}

/* ---- two at once */

/* Until both have heard all there is. */
static void settle_both(void) {
    for (int i = 0; i < 3; i++) {
        lab_advance_ms(l, 100);
        lab_settle(l);
    }
}

/* The same lists in two programs: whoever writes, both have the same. */
static void two_programs_agree_on_their_containers(void **state) {
    now = *state;
    live();
    lab_on(l, "a");
    begin();
    lab_on(l, "z");
    begin();
    for (int i = 0; i < 4; i++) {
        lab_on(l, i % 2 ? "a" : "z");
        ITEMS({ 1, 10 }, { 2, 20 + i }, { 3 + i, 30 });
        settle_both();
        for (int j = 0; j < 2; j++) {
            char all[32];
            lab_on(l, j ? "a" : "z");
            snprintf(all, sizeof all, "[10,%d,30]", 20 + i);
            assert_json(l, "main/k/all", all);
        }
    }
}

/* Two versions of a filter write one list: the last has it, and that is all. */
static void two_versions_do_not_quarrel(void **state) {
    now = *state;
    live();
    lab_on(l, "a");
    begin();
    settle_both();
    lab_on(l, "z");
    rich = rt();
    begin_version("2");
    for (int i = 0; i < 4; i++) {
        lab_on(l, i % 2 ? "a" : "z");
        ITEMS({ 1, 10 + i }, { 2, 20 }, { 3, 30 });
        settle_both();
        uint64_t runs = lab_stats(l).runs;
        settle_both();
        assert_int_equal(lab_stats(l).runs, runs);
    }
    rich = NULL;
}

/* ---- stale */

/* The computations that run once the rows of these elements have changed: each has an index and an id. */
static const char *all_with(size_t count, const int rows[][2]) {
    static const char *const lists[] = { "dear.rows", "flat.rows", "rows" };
    char out[1024] = "all dear dear_prices flat " COORDINATORS;
    for (size_t i = 0; i < 3 * count; i++) {
        size_t length = strlen(out);
        const int *row = rows[i / 3];
        snprintf(out + length, sizeof out - length, " %s/%s%d", lists[i % 3],
                 now->links ? "@main%2Fe" : "", now->links || now->key ? row[1] : row[0]);
    }
    return in_order(out);
}
#define ALL_WITH(...)                                                                              \
    all_with(sizeof((int[][2]){ __VA_ARGS__ }) / sizeof(int[2]), (const int[][2]){ __VA_ARGS__ })

static hd_status append_json(hd_tx *tx, hd_cell cell, const char *json) {
    return hd_tx_append(tx, cell, hd_json_parse(hd_tx_pool(tx), json, strlen(json), NULL));
}

/* The second costs 25 now, and there is a third. */
static void change_items(void) {
    if (now->links) put("main/e3", "{\"id\":3,\"price\":30}");
    put(now->links ? "main/e2#/price" : "main/items#/1/price", "25");
    change("main/items", append_json,
           now->links ? "{\"$link\":{\"id\":\"e3\"}}" : "{\"id\":3,\"price\":30}");
}
#define SEEN_CHANGED "all=[10,25,30] dear=[25,30] flat=[10,10,25,25,30,30]"

/* C309, C310: the list has changed meanwhile: what has changed runs, and what is new. */
static void a_container_that_is_stale_is_rebuilt(void **state) {
    now = *state;
    live();
    elsewhere();
    change_items();
    again();
    assert_string_equal(computed(), ALL_WITH({ 1, 2 }, { 2, 3 }));
    assert_noted(SEEN_CHANGED);
    stop();
    elsewhere();
    ITEMS({ 3, 30 }, { 1, 10 }); /* other elements at both places, but not for who knows them */
    again();
    if (now == &by_place) assert_string_equal(computed(), ALL_WITH({ 0, 3 }, { 1, 1 }));
    else assert_computed("all dear dear.rows dear_prices flat flat.rows rows");
    assert_noted("all=[30,10] dear=[30] flat=[30,30,10,10]");
    stop();
    elsewhere();
    take("main/items");
    again();
    assert_computed("all dear dear.rows dear_prices flat flat.rows rows");
    assert_noted("all=[] dear=[] flat=[]");
}

/* C309: both: the list has changed, and so has what was made of it. */
static void a_container_that_is_stale_and_missing_is_rebuilt(void **state) {
    now = *state;
    live();
    elsewhere();
    change_items();
    take("main/k/all");
    put("main/k/dear", "[1]");
    put("main/k/flat.rows", "[1]");
    again();
    assert_string_equal(computed(), ALL_WITH({ 1, 2 }, { 2, 3 }));
    assert_noted(SEEN_CHANGED);
}

/* ---- late: a store whose documents arrive when the next answers come */

static int open_late(void **state) {
    l = lab_start_late();
    return 0;
}

/* What the store has, whoever else is on the way to change it. */
static void assert_stored(const char *all, const char *flat) {
    lab_runtime *z = lab_on(l, "z");
    for (int i = 0; i < 4; i++) { /* asked for, and arrived */
        lab_read_cell(z, "main/k/all");
        lab_read_cell(z, "main/k/flat");
        lab_pump(z);
    }
    assert_json(l, "main/k/all", all);
    assert_json(l, "main/k/flat", flat);
    lab_on(l, "a");
}

/* All that can be done without an answer, twice, to be sure. */
static void go_on_without_answers(void) {
    lab_send(lab_on(l, "a"));
    lab_send(lab_on(l, "a"));
}

/* The first run of anything waits for what it reads and writes, and is the only one. */
static void containers_are_made_once(void **state) {
    now = *state;
    ITEMS({ 1, 10 }, { 2, 20 });
    begin();
    settle();
    assert_string_equal(computed(), ALL_WITH({ 0, 1 }, { 1, 2 }));
}

/* C304, C309: nothing was done to them: coordinators look once, rows are not read. */
static void clean_containers_that_arrive_late_are_left_alone(void **state) {
    now = *state;
    live();
    elsewhere();
    settle();
    lab_on(l, "a");
    begin();
    go_on_without_answers();
    assert_computed("");
    assert_noted("");
    settle();
    assert_computed(COORDINATORS);
    assert_noted(SEEN);
    assert_false(is_here("main/k/flat.rows/0"));
    assert_false(is_here("main/k/rows/1"));
}

/* C309: the list has changed, and has not arrived: what was made of it before stays, and is seen; then it is
 * rebuilt, and nobody runs twice. */
static void a_container_stays_until_its_inputs_arrive(void **state) {
    now = *state;
    live();
    elsewhere();
    change_items();
    settle();
    lab_on(l, "a");
    begin();
    while (!*computed()) {
        go_on_without_answers();
        assert_stored("[10,20]", "[10,10,20,20]");
        lab_hear(lab_on(l, "a"));
    }
    const char *before = lab_ran(l); /* what is seen until then is the old state */
    assert_null(strstr(before, "25"));
    settle();
    assert_string_equal(computed(), ALL_WITH({ 1, 2 }, { 2, 3 }));
    assert_noted(SEEN_CHANGED);
    assert_stored("[10,25,30]", "[10,10,25,25,30,30]");
}

/* C309: one that is missing is rebuilt once, too. */
static void a_container_that_is_missing_and_late_is_rebuilt(void **state) {
    now = *state;
    live();
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        elsewhere();
        do_damage(damages[i].container, i % 2 ? "[1]" : NULL);
        again();
        assert_computed(damages[i].computes);
        assert_stored("[10,20]", "[10,10,20,20]");
        stop();
    }
}

#define ONE(test, how) cmocka_unit_test_prestate_setup_teardown(test, spec_open, spec_close, &how)
#define EACH(test)     ONE(test, by_place), ONE(test, by_key), ONE(test, by_link)

#define LATE(test, how) cmocka_unit_test_prestate_setup_teardown(test, open_late, spec_close, &how)
#define EACH_LATE(test) LATE(test, by_place), LATE(test, by_key), LATE(test, by_link)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(clean_containers_are_left_alone),
        EACH(a_container_that_is_missing_is_rebuilt),
        EACH(a_container_that_is_missing_makes_its_piece_stale),
        EACH(a_container_that_the_program_spoilt_is_rebuilt),
        EACH(containers_that_are_all_missing_are_rebuilt),
        S(elements_that_are_missing_are_rebuilt),
        EACH(a_container_of_a_piece_that_was_stopped_is_rebuilt),
        EACH(a_container_that_is_written_over_live_stays_until_its_inputs_change),
        EACH(two_programs_agree_on_their_containers),
        EACH(two_versions_do_not_quarrel),
        EACH(a_container_that_is_stale_is_rebuilt),
        EACH(a_container_that_is_stale_and_missing_is_rebuilt),
        EACH_LATE(containers_are_made_once),
        EACH_LATE(clean_containers_that_arrive_late_are_left_alone),
        EACH_LATE(a_container_stays_until_its_inputs_arrive),
        EACH_LATE(a_container_that_is_missing_and_late_is_rebuilt),
    };
    LAB_EVERYWHERE(tests);
}

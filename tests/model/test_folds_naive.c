/* test_folds_naive.c -- folds, groups and lists that are objects, against a recomputation of everything.
 *
 * A list of items and an object of goods are edited at random: elements are added, removed, moved, changed, given
 * another group or id; some ids come twice; lists are replaced by others, by null, by nothing; one is reached
 * through a link that changes its target. The edits are the program's own, those of handlers of events, and those
 * of another program. The rows of one list are asynchronous: their runs end later, in any order. The piece is
 * stopped and started, and the program is closed and opened again, with and without rest before. At rest every
 * result is what a walk over the lists gives; after a restart at rest no function of the program runs. */
#include "spec/piece_world.h"

enum { STEPS = 50, EDITS = 4 };

static lab_random dice;
static uint64_t seed;
static uint32_t runs; /* of the program's functions */

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&dice, n); }

/* ---- the program */

static char names[2048]; /* of the nodes that ran */

static void note_run(hd_tx *tx) {
    size_t n = strlen(names);
    snprintf(names + n, sizeof names - n, " %s", lab_running(hd_tx_runtime(tx)));
    runs++;
}

static hd_value value_of(hd_tx *tx, hd_value in, void *ctx) {
    note_run(tx);
    return hd_value_at(in, "v");
}
static hd_value group_of(hd_tx *tx, hd_value in, void *ctx) {
    note_run(tx);
    return hd_value_at(in, "g");
}
static hd_value id_of(hd_tx *tx, hd_value in, void *ctx) {
    note_run(tx);
    return hd_string_f(hd_tx_pool(tx), "%lld,",
                       (long long)hd_value_as_int(hd_value_at(in, "id"), -1));
}
static hd_value is_even(hd_tx *tx, hd_value in, void *ctx) {
    note_run(tx);
    return hd_bool(hd_value_as_int(hd_value_at(in, "v"), 1) % 2 == 0);
}
static hd_value join(hd_tx *tx, hd_value a, hd_value b, void *ctx) {
    return hd_string_f(hd_tx_pool(tx), "%s%s", hd_value_as_text(a, "?"), hd_value_as_text(b, "?"));
}

static void look(hd_value v, void *ctx) {}
static void watch(hd_build *b, const char *name, hd_cell cell) {
    char full[80];
    snprintf(full, sizeof full, "look %s", name);
    hd_build_sink(b, full, cell, look, NULL);
}

static hd_fold of(hd_fold_kind kind, hd_derive_fn fn, const char *key) {
    return (hd_fold){ .kind = kind,
                      .combine = kind == HD_FOLD_OWN ? join : NULL,
                      .each = { .fn = fn, .key = key } };
}
static void fold(hd_build *b, const char *name, hd_cell list, hd_fold how) {
    if (how.kind == HD_FOLD_OWN) how.neutral = hd_string(hd_build_pool(b), "");
    watch(b, name, hd_build_fold(b, name, list, &how));
}

/* A row for each group: the sum of its elements, and their ids in order. */
static hd_value beside(hd_tx *tx, const hd_value *in, void *ctx) {
    return hd_array_of(hd_tx_pool(tx), in, 2);
}
static hd_cell group_row(hd_build *row, hd_cell group, void *ctx) {
    hd_fold sum = of(HD_FOLD_SUM, value_of, NULL), ids = of(HD_FOLD_OWN, id_of, NULL);
    ids.neutral = hd_string(hd_build_pool(row), "");
    hd_cell both[] = { hd_build_fold(row, "sum", group, &sum),
                       hd_build_fold(row, "ids", group, &ids) };
    return hd_build_lift(row, "both", beside, NULL, both, 2);
}
static void groups(hd_build *b, const char *name, hd_cell list, const char *key) {
    char full[64];
    snprintf(full, sizeof full, "%s.by", name);
    hd_cell by = hd_build_group(b, full, list, &(hd_each){ .fn = group_of, .key = key });
    snprintf(full, sizeof full, "%s.rows", name);
    hd_cell rows = hd_build_map(b, full, by, &(hd_each){ .build = group_row });
    watch(b, name, hd_build_gather(b, name, rows));
}

static void lists(hd_build *b, const char *name, hd_cell list, const char *key) {
    char full[64];
#define NAMED(what) (snprintf(full, sizeof full, "%s_%s", name, what), full)
    fold(b, NAMED("sum"), list, of(HD_FOLD_SUM, value_of, key));
    fold(b, NAMED("count"), list, of(HD_FOLD_COUNT, is_even, key));
    fold(b, NAMED("ids"), list, of(HD_FOLD_OWN, id_of, key));
    hd_cell values =
        hd_build_map(b, NAMED("values"), list, &(hd_each){ .fn = value_of, .key = key });
    fold(b, NAMED("min"), values, of(HD_FOLD_MINIMUM, NULL, NULL));
    fold(b, NAMED("max"), values, of(HD_FOLD_MAXIMUM, NULL, NULL));
    hd_cell even = hd_build_filter(b, NAMED("even"), list, &(hd_each){ .fn = is_even, .key = key });
    fold(b, NAMED("evens"), even, of(HD_FOLD_COUNT, NULL, NULL));
    watch(b, NAMED("all"), hd_build_gather(b, NAMED("all"), values));
    groups(b, NAMED("groups"), list, key);
    groups(b, NAMED("egroups"), even, key);
#undef NAMED
}

/* ---- rows whose runs end later */

enum { SUSPENDED_MAX = 4096 };
static hd_run *suspended[SUSPENDED_MAX];
static uint32_t suspended_count;

typedef struct slow_row {
    hd_cell element, out;
} slow_row;

static hd_status run_slowly(hd_tx *tx, void *ctx) {
    const slow_row *r = ctx;
    hd_value v = hd_tx_get(tx, r->element);
    if (hd_value_status(v)) return hd_value_status(v);
    note_run(tx);
    hd_value n = hd_value_at(v, "v");
    hd_status status = hd_value_exists(n) ? hd_tx_set(tx, r->out, n) : hd_tx_remove(tx, r->out);
    if (status || suspended_count == SUSPENDED_MAX) return status;
    status = hd_tx_suspend(tx, &suspended[suspended_count]);
    if (status) return status;
    suspended_count++;
    return HD_PENDING;
}

static hd_cell build_slowly(hd_build *b, hd_cell element, void *ctx) {
    slow_row *r = hd_build_memory(b, "row", sizeof *r);
    if (!r) return (hd_cell){ 0 };
    *r = (slow_row){ element, hd_build_cell(b, "slow") };
    hd_node_spec spec = { .name = "slow", .fn = run_slowly, .ctx = r, .output = r->out };
    return hd_build_node(b, &spec);
}

static void end_some(uint32_t most) {
    for (; suspended_count && most; most--) {
        uint32_t i = below(suspended_count);
        hd_run *run = suspended[i];
        suspended[i] = suspended[--suspended_count];
        hd_run_resume(run, HD_OK);
    }
}

static hd_cell pattern(hd_build *b, void *ctx) {
    hd_runtime *r = hd_build_runtime(b);
    lists(b, "keyed", hd_cell_at(r, "main/items"), "/id");
    lists(b, "placed", hd_cell_at(r, "main/items"), NULL);
    lists(b, "goods", hd_cell_at(r, "main/goods"), NULL);
    lists(b, "linked", hd_cell_at(r, "main/links"), NULL);
    lists(b, "via", hd_cell_at(r, "main/via"), NULL);
    hd_each slow = { .build = build_slowly, .key = "/id" };
    hd_cell rows = hd_build_map(b, "slow.values", hd_cell_at(r, "main/items"), &slow);
    fold(b, "slow_sum", rows, of(HD_FOLD_SUM, NULL, NULL));
    return hd_cell_at(r, "main/items");
}

static hd_status on_edit(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_cell cell =
        hd_cell_at(hd_tx_runtime(tx), hd_value_as_text(hd_value_index(event->payload, 0), ""));
    return hd_tx_set(tx, cell, hd_value_index(event->payload, 1));
}

static bool runs_now;
static void start(void) {
    hd_error error;
    hd_handler_spec spec = { .stream = hd_cell_at(rt(), "main/edit"),
                             .fn = on_edit,
                             .reads_nothing = true };
    if (!runs_now) hd_handler_register(rt(), &spec, NULL);
    runs_now = true;
    hd_pattern_register(rt(), "p", "1", pattern, NULL);
    if (hd_piece_start(rt(), &(hd_piece_spec){ .id = "p", .pattern = "p" }, NULL, &error))
        fail_msg("%s", error.message);
}

static void lab_turns(int n) {
    for (; n > 0; n--) lab_turn(l);
}

/* ---- what the results must be */

static hd_pool *pool;

static hd_value now_at(const char *cell) { return hd_read(rt(), pool, hd_cell_at(rt(), cell)); }

static hd_value behind(hd_value v) {
    hd_cell from = hd_cell_at(rt(), "main/links");
    if (hd_value_kind(v) != HD_KIND_LINK) return v;
    return hd_read(rt(), pool, hd_cell_of_link(rt(), from, v));
}

static bool chosen(hd_value v, bool even) {
    return !even || hd_value_as_int(hd_value_at(v, "v"), 1) % 2 == 0;
}

static void expect(const char *list, const char *what, hd_value want) {
    char cell[64];
    snprintf(cell, sizeof cell, "main/p/%s_%s", list, what);
    hd_value is = now_at(cell);
    if (hd_value_equal(is, want)) return;
    fail_msg("HD_SEED=%llu: %s is %s instead of %s", (unsigned long long)seed, cell,
             hd_value_exists(is) ? hd_json_print(pool, is, HD_JSON_COMPACT, NULL) : "absent",
             hd_value_exists(want) ? hd_json_print(pool, want, HD_JSON_COMPACT, NULL) : "absent");
}

static hd_value one_group(hd_value before, hd_value v) {
    hd_value sum = hd_value_index(before, 0), ids = hd_value_index(before, 1);
    int64_t n = hd_value_as_int(sum, 0) + hd_value_as_int(hd_value_at(v, "v"), 0);
    hd_value both[] = { hd_int(pool, n),
                        hd_string_f(pool, "%s%lld,", hd_value_as_text(ids, ""),
                                    (long long)hd_value_as_int(hd_value_at(v, "id"), -1)) };
    return hd_array_of(pool, both, 2);
}

static hd_value expected_groups(hd_value list, bool even) {
    hd_value all = hd_object();
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);) {
        hd_value v = behind(it.value), g = hd_value_at(v, "g");
        size_t length;
        const char *name = hd_value_text(g, &length);
        if (!chosen(v, even) || !hd_value_exists(g)) continue;
        if (!name) name = hd_json_print(pool, g, HD_JSON_COMPACT, &length);
        all = hd_object_set(pool, all, name, one_group(hd_value_at(all, name), v));
    }
    /* A piece that has seen no group has an empty object, whatever the list is. */
    return all;
}

static hd_value expected_all(hd_value list) {
    bool object = hd_value_kind(list) == HD_KIND_OBJECT;
    hd_value all = object ? hd_object() : hd_array();
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);) {
        hd_value v = hd_value_at(behind(it.value), "v");
        if (!hd_value_exists(v)) v = hd_null();
        all = object ? hd_object_set(pool, all, it.key, v) : hd_array_append(pool, all, v);
    }
    return all;
}

static void check_list(const char *name, const char *doc) {
    char ids[4096] = "";
    hd_value list = now_at(doc), least = { 0 }, most = { 0 };
    int64_t sum = 0, even = 0;
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);) {
        hd_value e = behind(it.value), v = hd_value_at(e, "v");
        size_t n = strlen(ids);
        snprintf(ids + n, sizeof ids - n, "%lld,",
                 (long long)hd_value_as_int(hd_value_at(e, "id"), -1));
        if (chosen(e, true)) even++;
        if (!hd_value_exists(v)) continue;
        int64_t number = hd_value_as_int(v, 0);
        sum += number;
        if (!hd_value_exists(least) || number < hd_value_as_int(least, 0)) least = v;
        if (!hd_value_exists(most) || number > hd_value_as_int(most, 0)) most = v;
    }
    expect(name, "sum", hd_int(pool, sum));
    expect(name, "count", hd_int(pool, even));
    expect(name, "evens", hd_int(pool, even));
    expect(name, "ids", hd_string(pool, ids));
    expect(name, "min", least);
    expect(name, "max", most);
    expect(name, "all", expected_all(list));
    expect(name, "groups", expected_groups(list, false));
    expect(name, "egroups", expected_groups(list, true));
}

static int64_t sum_of(const char *doc) {
    int64_t sum = 0;
    hd_value list = now_at(doc);
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);)
        sum += hd_value_as_int(hd_value_at(behind(it.value), "v"), 0);
    return sum;
}

static void rest(void) {
    do {
        end_some(UINT32_MAX);
        lab_turns(20);
        settle();
    } while (suspended_count);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    check_list("keyed", "main/items");
    check_list("placed", "main/items");
    check_list("goods", "main/goods");
    check_list("linked", "main/links");
    check_list("via", "main/via");
    expect("slow", "sum", hd_int(pool, sum_of("main/items")));
    hd_pool_close(pool);
}

/* ---- edits */

static hd_value item(uint32_t id) {
    static const char *const groups_[] = { "red", "blue", "7", "" };
    hd_value v = hd_object_set(pool, hd_object(), "id", hd_int(NULL, id));
    if (below(10)) v = hd_object_set(pool, v, "v", hd_int(NULL, below(20)));
    if (!below(8)) return v;
    hd_value g = below(5) ? hd_string(pool, groups_[below(4)]) : hd_int(NULL, below(3));
    return hd_object_set(pool, v, "g", g);
}

static hd_value link_to(uint32_t n) {
    hd_link link = { .id = NULL };
    char text[32];
    snprintf(text, sizeof text, "target%u", n);
    link.id = text;
    return hd_link_make(pool, &link);
}

static hd_value fresh(bool links) {
    if (links && below(8)) return link_to(below(30));
    return item(below(60));
}

static hd_value edited_array(hd_value list, bool links) {
    uint32_t n = (uint32_t)hd_value_count(list), at = n ? below(n) : 0;
    switch (n ? below(9) : 0) {
    case 0: return hd_array_append(pool, list, fresh(links));
    case 1:
    case 2: return hd_array_insert(pool, list, at, fresh(links));
    case 3: return hd_array_set(pool, list, at, fresh(links));
    case 4:
    case 5: return hd_array_remove(pool, list, at);
    case 6: { /* one moves */
        hd_value v = hd_value_index(list, at);
        return hd_array_insert(pool, hd_array_remove(pool, list, at), below(n), v);
    }
    case 7: return below(6) ? list : hd_array_truncate(pool, list, at);
    default: {
        hd_value v = hd_value_index(list, at);
        if (hd_value_kind(v) == HD_KIND_LINK) return list;
        uint32_t id = (uint32_t)hd_value_as_int(hd_value_at(v, "id"), 0);
        return hd_array_set(pool, list, at, item(id));
    }
    }
}

static hd_value edited_object(hd_value object) {
    char name[16];
    uint32_t n = below(40);
    snprintf(name, sizeof name, "good%u", n);
    if (!n) name[0] = '\0';
    if (below(3)) return hd_object_set(pool, object, name, item(n));
    return hd_object_remove(pool, object, name);
}

static hd_value large(bool object, bool links) {
    hd_value v = object ? hd_object() : hd_array();
    for (uint32_t i = below(200); i > 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "good%u", below(300));
        v = object ? hd_object_set(pool, v, name, item(i))
                   : hd_array_append(pool, v, links ? link_to(i % 60) : item(i));
    }
    return v;
}

/* By the program itself, by a handler, or by another program. */
static void write_somehow(const char *cell, hd_value v) {
    if (!below(4)) {
        hd_value both[] = { hd_string(pool, cell), v };
        hd_event_send(rt(), hd_cell_at(rt(), "main/edit"), hd_array_of(pool, both, 2), NULL);
    } else if (!below(4) && lab_is_shared(l)) {
        const char *json = hd_json_print(pool, v, HD_JSON_COMPACT, NULL);
        lab_on(l, "b");
        hd_write_json(rt(), hd_cell_at(rt(), cell), json);
        hd_runtime_sync(rt());
        lab_on(l, "a");
    } else {
        hd_write(rt(), hd_cell_at(rt(), cell), v);
    }
}

static void edit_list(const char *cell) {
    bool links = !strcmp(cell, "main/links"), object = !strcmp(cell, "main/goods");
    hd_value v = now_at(cell);
    if (!below(60)) object = !object;
    if (!below(25)) v = large(object, links);
    if (hd_value_kind(v) != (object ? HD_KIND_OBJECT : HD_KIND_ARRAY))
        v = object ? hd_object() : hd_array();
    for (uint32_t i = below(EDITS); i > 0; i--)
        v = object ? edited_object(v) : edited_array(v, links);
    if (!below(80)) v = hd_null();
    write_somehow(cell, v);
}

static void edit(void) {
    char name[32];
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    hd_link via = { .id = below(2) ? "items" : "links" };
    switch (below(6)) {
    case 5:
        if (!below(3)) hd_write(rt(), hd_cell_at(rt(), "main/via"), hd_link_make(pool, &via));
        break;
    case 0:
    case 1: edit_list("main/items"); break;
    case 2: edit_list("main/goods"); break;
    case 3: edit_list("main/links"); break;
    default:
        snprintf(name, sizeof name, "main/target%u", below(60));
        hd_write(rt(), hd_cell_at(rt(), name), item(below(60)));
    }
    hd_pool_close(pool);
}

/* Closing runs what can run, and ends the runs that are suspended then. */
static void reopen(void) {
    restart();
    suspended_count = 0;
    runs_now = false;
    start();
}

static hd_piece piece_now(void) { return hd_piece_find(rt(), "main", "p"); }

static void step(void) {
    if (!below(3)) end_some(below(4));
    if (!below(4)) lab_turn(l);
    switch (below(9)) {
    case 8:
        if (!below(2)) rest();
        hd_piece_stop(rt(), piece_now());
        lab_turns(3);
        end_some(UINT32_MAX);
        if (!below(2)) edit();
        start();
        break;
    case 0: /* in the middle of things */
        for (uint32_t i = below(4); i > 0; i--) lab_turn(l);
        reopen();
        break;
    case 1:
        rest();
        reopen();
        runs = 0;
        names[0] = '\0';
        rest();
        if (runs)
            fail_msg("HD_SEED=%llu: %u functions ran and need not:%s", (unsigned long long)seed,
                     runs, names);
        break;
    case 2:
    case 3: rest(); break;
    default: edit();
    }
}

static void results_are_those_of_a_walk(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_ROUNDS");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1,
             rounds = count ? strtoull(count, NULL, 10) : 6;
    for (seed = first; seed < first + rounds; seed++) {
        if (seed != first) {
            lab_close(l);
            l = lab_start();
        }
        runs_now = false;
        suspended_count = 0;
        dice = lab_random_of(seed);
        lab_set_json(l, "items", "[]");
        lab_set_json(l, "goods", "{}");
        lab_set_json(l, "links", "[]");
        lab_set_json(l, "via", "{\"$link\": {\"id\": \"items\"}}");
        start();
        for (int i = 0; i < STEPS; i++) step();
        rest();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { S(results_are_those_of_a_walk) };
    LAB_EVERYWHERE(tests);
}

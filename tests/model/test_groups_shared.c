/* test_groups_shared.c -- several programs group and fold the same lists, and are pulled in turn.
 *
 * Up to three runtimes on one store start the same piece: groups of a list by a key, a sum and the ids of each group,
 * and a sum over the list; of an array with and without a key, of an object, and of an array of links to documents that
 * come and go. Some results have sinks, the others are pulled now and then. Lists and documents are edited blindly
 * and in transactions; commits and news are held, in a file logs are folded and pruned; runtimes close and come back.
 * Now and then everything comes to rest. Then every pull in every runtime gives what a walk over the lists gives (I1).
 * Public headers only.
 *
 * HD_WORLDS is the number of worlds; HD_SEED repeats a run. */
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RUNTIMES = 3, LISTS = 4, STEPS = 80, WORLDS = 100, TEXT = 4096 };

static const char *const runtimes[RUNTIMES] = { "a", "b", "c" };
static const char *const names[LISTS] = { "keyed", "placed", "goods", "linked" };
static const char *const lists[LISTS] = { "main/items", "main/items", "main/goods", "main/links" };

static hd_lab *lab;
static hd_lab_random dice;
static uint64_t seed;
static hd_runtime *open_[RUNTIMES];
static bool held[RUNTIMES];
static bool used[LISTS];
static bool in_file;
static hd_derive derive;
static unsigned sinks[RUNTIMES]; /* bits: groups of a list, then sums */

static uint32_t below(uint32_t n) { return (uint32_t)hd_lab_random_below(&dice, n); }

/* ---- the program */

static hd_value value_of(hd_tx *tx, hd_value in, void *ctx) { return hd_value_at(in, "v"); }
static hd_value group_of(hd_tx *tx, hd_value in, void *ctx) { return hd_value_at(in, "g"); }
static hd_value id_of(hd_tx *tx, hd_value in, void *ctx) {
    return hd_string_f(hd_tx_pool(tx), "%lld,",
                       (long long)hd_value_as_int(hd_value_at(in, "id"), -1));
}
static hd_value join(hd_tx *tx, hd_value a, hd_value b, void *ctx) {
    return hd_string_f(hd_tx_pool(tx), "%s%s", hd_value_as_text(a, "?"), hd_value_as_text(b, "?"));
}
static hd_value beside(hd_tx *tx, const hd_value *in, void *ctx) {
    return hd_array_of(hd_tx_pool(tx), in, 2);
}

static hd_cell group_row(hd_build *b, hd_cell group, void *ctx) {
    hd_fold sum = { .kind = HD_FOLD_SUM, .each = { .fn = value_of } };
    hd_fold ids = { .kind = HD_FOLD_OWN, .combine = join, .each = { .fn = id_of } };
    ids.neutral = hd_string(hd_build_pool(b), "");
    hd_cell both[] = { hd_build_fold(b, "sum", group, &sum), hd_build_fold(b, "ids", group, &ids) };
    return hd_build_lift(b, "both", beside, NULL, both, 2);
}

static void build_list(hd_build *b, int i) {
    char name[64];
    const char *key = i == 0 ? "/id" : NULL;
    hd_cell list = hd_cell_at(hd_build_runtime(b), lists[i]);
    snprintf(name, sizeof name, "%s.by", names[i]);
    hd_cell by = hd_build_group(b, name, list, &(hd_each){ .fn = group_of, .key = key });
    snprintf(name, sizeof name, "%s.rows", names[i]);
    hd_build_gather(b, names[i], hd_build_map(b, name, by, &(hd_each){ .build = group_row }));
    snprintf(name, sizeof name, "%s.sum", names[i]);
    hd_fold sum = { .kind = HD_FOLD_SUM, .each = { .fn = value_of, .key = key } };
    hd_build_fold(b, name, list, &sum);
}

static hd_cell pattern(hd_build *b, void *ctx) {
    for (int i = 0; i < LISTS; i++)
        if (used[i]) build_list(b, i);
    return hd_cell_at(hd_build_runtime(b), "main/items");
}

/* ---- runtimes */

static void look(hd_value v, void *ctx) {}

static const char *result(int list, bool sum, char out[64]) {
    snprintf(out, 64, "main/p/%s%s", names[list], sum ? ".sum" : "");
    return out;
}

static void open_runtime(int at) {
    hd_runtime *rt;
    hd_error error;
    const hd_options options = { .strict = true, .derive = derive };
    hd_status status = hd_lab_runtime_with(lab, runtimes[at], &options, &rt);
    assert_int_equal(status, HD_OK);
    open_[at] = rt;
    char name[64];
    hd_pattern_register(rt, "p", "1", pattern, NULL);
    const hd_piece_spec spec = { .id = "p", .pattern = "p" };
    while ((status = hd_piece_start(rt, &spec, NULL, &error)) == HD_PENDING) hd_lab_pump(rt);
    if (status) fail_msg("%s", error.message);
    sinks[at] = below(3) ? 0 : below(1u << 2 * LISTS);
    for (int i = 0; i < 2 * LISTS; i++)
        if (used[i / 2] && (sinks[at] >> i & 1))
            hd_sink(rt, hd_cell_at(rt, result(i / 2, i & 1, name)), look, NULL);
}

static void deliver(int at) {
    if (held[at]) hd_lab_deliver(open_[at]);
    held[at] = false;
}

/* No function of a row is called with a result that is not there: it would fail. */
static void close_runtime(int at) {
    deliver(at);
    const char *failures = hd_lab_failures(open_[at]);
    if (*failures)
        fail_msg("HD_SEED=%llu HD_WORLDS=1: %s: %s", (unsigned long long)seed, runtimes[at],
                 failures);
    hd_lab_runtime_close(open_[at]);
    open_[at] = NULL;
}

/* ---- what must hold */

/* HD_PENDING: it does not arrive while news are held. */
static hd_value read_cell(hd_runtime *rt, hd_pool *pool, hd_cell cell) {
    hd_value v = hd_read(rt, pool, cell);
    for (int i = 0; i < 20 && hd_value_status(v) == HD_PENDING; i++) {
        hd_lab_pump(rt);
        v = hd_read(rt, pool, cell);
    }
    return v;
}

static hd_value behind(hd_runtime *rt, hd_pool *pool, hd_value v) {
    if (hd_value_kind(v) != HD_KIND_LINK) return v;
    return read_cell(rt, pool, hd_cell_of_link(rt, hd_cell_at(rt, "main/links"), v));
}

static hd_value with_one(hd_pool *pool, hd_value before, hd_value v) {
    int64_t sum = hd_value_as_int(hd_value_index(before, 0), 0);
    hd_value both[] = { hd_int(pool, sum + hd_value_as_int(hd_value_at(v, "v"), 0)),
                        hd_string_f(pool, "%s%lld,",
                                    hd_value_as_text(hd_value_index(before, 1), ""),
                                    (long long)hd_value_as_int(hd_value_at(v, "id"), -1)) };
    return hd_array_of(pool, both, 2);
}

static hd_value expected(hd_runtime *rt, hd_pool *pool, int list, int64_t *sum) {
    hd_value all = hd_object(), items = read_cell(rt, pool, hd_cell_at(rt, lists[list]));
    *sum = 0;
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        hd_value v = behind(rt, pool, it.value), g = hd_value_at(v, "g");
        *sum += hd_value_as_int(hd_value_at(v, "v"), 0);
        if (!hd_value_exists(g)) continue;
        const char *name = hd_value_text(g, NULL);
        if (!name) name = hd_json_print(pool, g, HD_JSON_COMPACT, NULL);
        all = hd_object_set(pool, all, name, with_one(pool, hd_value_at(all, name), v));
    }
    return all;
}

typedef struct pulled {
    hd_pool *pool;
    char text[TEXT];
} pulled;

static void keep(hd_value v, void *ctx) {
    pulled *p = ctx;
    bool there = hd_value_exists(v) && !hd_value_status(v);
    const char *text = there ? hd_json_print(p->pool, v, HD_JSON_COMPACT, NULL) : "nothing";
    snprintf(p->text, sizeof p->text, "%s", text);
}

static void expect(int at, hd_pool *pool, const char *cell, const char *want) {
    pulled p = { pool, "never told" };
    hd_pull(open_[at], hd_cell_at(open_[at], cell), keep, &p);
    hd_lab_idle(lab);
    if (strcmp(p.text, want))
        fail_msg("HD_SEED=%llu HD_WORLDS=1: %s in %s is %s, not %s", (unsigned long long)seed, cell,
                 runtimes[at], p.text, want);
}

static void check_runtime(int at) {
    hd_pool *pool;
    char name[64], number[32], groups[TEXT];
    assert_int_equal(hd_pool_open(hd_runtime_heap(open_[at]), &pool), HD_OK);
    for (int i = 0; i < LISTS; i++) {
        int64_t sum;
        if (!used[i]) continue;
        hd_value want = expected(open_[at], pool, i, &sum);
        snprintf(groups, sizeof groups, "%s", hd_json_print(pool, want, HD_JSON_COMPACT, NULL));
        snprintf(number, sizeof number, "%lld", (long long)sum);
        expect(at, pool, result(i, false, name), groups);
        expect(at, pool, result(i, true, name), number);
    }
    hd_pool_close(pool);
}

static void check_rest(void) {
    bool forward = below(2);
    for (int at = 0; at < RUNTIMES; at++) deliver(at);
    hd_lab_idle(lab);
    for (int i = 0; i < RUNTIMES; i++) {
        int at = forward ? i : RUNTIMES - 1 - i;
        if (open_[at]) check_runtime(at);
    }
}

/* ---- edits */

static hd_value item(hd_pool *pool, uint32_t id) {
    static const char *const groups[] = { "red", "blue", "7", "" };
    hd_value v = hd_object_set(pool, hd_object(), "id", hd_int(NULL, id));
    if (below(10)) v = hd_object_set(pool, v, "v", hd_int(NULL, below(20)));
    if (!below(8)) return v;
    hd_value g = below(5) ? hd_string(pool, groups[below(4)]) : hd_int(NULL, below(3));
    return hd_object_set(pool, v, "g", g);
}

static hd_value fresh(hd_pool *pool, bool links) {
    char id[16];
    snprintf(id, sizeof id, "t%u", below(12));
    return links && below(8) ? hd_link_make(pool, &(hd_link){ .id = id }) : item(pool, below(30));
}

static hd_value edited_array(hd_pool *pool, hd_value list, bool links) {
    uint32_t n = (uint32_t)hd_value_count(list), at = n ? below(n) : 0;
    hd_value v = n ? hd_value_index(list, at) : hd_null();
    switch (n ? below(8) : 0) {
    case 0: return hd_array_append(pool, list, fresh(pool, links));
    case 1:
    case 2: return hd_array_insert(pool, list, at, fresh(pool, links));
    case 3: return hd_array_set(pool, list, at, fresh(pool, links));
    case 4:
    case 5: return hd_array_remove(pool, list, at);
    case 6: return hd_array_insert(pool, hd_array_remove(pool, list, at), below(n), v);
    default: return below(6) ? list : hd_array_truncate(pool, list, at);
    }
}

static hd_value edited_object(hd_pool *pool, hd_value object) {
    char name[16];
    uint32_t n = below(15);
    snprintf(name, sizeof name, "good%u", n);
    if (below(3)) return hd_object_set(pool, object, name, item(pool, n));
    return hd_object_remove(pool, object, name);
}

static hd_value edited(hd_runtime *rt, hd_pool *pool, int list) {
    bool object = list == 2;
    hd_value v = read_cell(rt, pool, hd_cell_at(rt, lists[list]));
    if (hd_value_status(v)) return v;
    if (!hd_value_exists(v)) v = object ? hd_object() : hd_array();
    for (uint32_t n = 1 + below(3); n > 0; n--)
        v = object ? edited_object(pool, v) : edited_array(pool, v, list == 3);
    return v;
}

static void ignore(hd_status status, void *ctx) {}

static void put(hd_runtime *rt, const char *name, hd_value v, bool read) {
    hd_tx *tx;
    hd_cell cell = hd_cell_at(rt, name);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    if (read) hd_tx_get(tx, cell);
    if (hd_value_exists(v)) hd_tx_set(tx, cell, v);
    else hd_tx_remove(tx, cell);
    hd_tx_commit(tx, ignore, NULL);
}

static void edit(hd_runtime *rt) {
    char name[16];
    hd_pool *pool;
    int list = (int)below(LISTS + 1);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    snprintf(name, sizeof name, "main/t%u", below(12));
    hd_value v = list < LISTS ? edited(rt, pool, list)
                 : below(4)   ? item(pool, below(30))
                              : (hd_value){ 0 };
    if (!hd_value_status(v))
        put(rt, list < LISTS ? lists[list] : name, v, list < LISTS && below(2));
    hd_pool_close(pool);
}

/* ---- worlds */

/* In a file a thread decides, whenever it does; there the log is folded or pruned. */
static void fold_or_prune(hd_runtime *rt) {
    hd_error error;
    (void)(below(2) ? hd_store_checkpoint
                    : hd_store_prune)(rt, &error); /* or its sync tells of a refusal */
}

static void hold_or_deliver(int at) {
    if (in_file) {
        fold_or_prune(open_[at]);
        return;
    }
    if (held[at]) {
        deliver(at);
        return;
    }
    hd_lab_delay(open_[at], 1 + below(3));
    held[at] = true;
}

static void come(int at) {
    for (int i = 0; i < RUNTIMES; i++) deliver(i); /* the start needs answers */
    open_runtime(at);
}

static void step(void) {
    char name[64];
    int at = (int)below(RUNTIMES), list = (int)below(LISTS);
    uint32_t what = below(100);
    hd_runtime *rt = open_[at];
    if (!rt && what < 30) come(at);
    if (!rt) return;
    if (what < 4 && at) close_runtime(at);
    else if (what < 8) check_rest();
    else if (what < 45) edit(rt);
    else if (what < 55 && used[list])
        hd_pull(rt, hd_cell_at(rt, result(list, below(2), name)), look, NULL);
    else if (what < 62) hold_or_deliver(at);
    else if (what < 66) hd_lab_advance_ms(lab, 1 + below(300));
    else hd_lab_pump(rt);
}

static void world(bool late) {
    dice = hd_lab_random_of(seed);
    lab = hd_lab_open(&(hd_lab_options){ .load_late = late, .in_file = in_file });
    for (int i = 0; i < LISTS; i++) used[i] = below(2);
    derive = seed % 2 ? HD_DERIVE_ONE : HD_DERIVE_EACH;
    used[below(LISTS)] = true;
    open_runtime(0);
    open_runtime(1);
    for (int i = 0; i < STEPS; i++) step();
    check_rest();
    for (int at = 0; at < RUNTIMES; at++)
        if (open_[at]) close_runtime(at);
    open_runtime(0);
    check_rest();
    close_runtime(0);
    hd_lab_close(lab);
}

static void worlds(bool late, bool file) {
    const char *given = getenv("HD_WORLDS");
    uint64_t some = file ? WORLDS / 10 : WORLDS;
    uint64_t first = hd_lab_seed(), count = given ? strtoull(given, NULL, 10) : some;
    in_file = file;
    for (seed = first; seed < first + count; seed++) world(late);
}

/* I1: in memory. */
static void groups_in_memory_are_those_of_a_walk(void **state) { worlds(false, false); }
/* I1: documents arrive late. */
static void groups_that_arrive_late_are_those_of_a_walk(void **state) { worlds(true, false); }
/* I1: in a file. */
static void groups_in_a_file_are_those_of_a_walk(void **state) { worlds(false, true); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_in_memory_are_those_of_a_walk),
        cmocka_unit_test(groups_that_arrive_late_are_those_of_a_walk),
        cmocka_unit_test(groups_in_a_file_are_those_of_a_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

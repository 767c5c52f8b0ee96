/* test_resume_twins.c -- I7 for pieces: a program that ends and begins again now and then does the same as
 * its twin, which lives on: the same values after each step, and the same functions run for it. A restart
 * itself runs no function but those that build. What somebody changed while it was down runs when it is
 * back; more may run then, because of a write of a whole document.
 *
 * The piece has each kind of list, a pattern that values decide, one that is used, a choice, and state
 * that a handler writes. */
#define _GNU_SOURCE
#include "folder.h"
#include "lab.h"

#include <heddle/pattern.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 120, LINES_MAX = 400, LINE_SIZE = 40 };

typedef struct twin {
    hd_runtime *rt;
    hd_pool *pool;
    char file[256]; /* "": in memory */
    hd_memory *memory;
    hd_runtime *bystander; /* shares the memory, and does nothing; NULL: there is none */
    uint32_t count;        /* of what has run since the last look */
    char ran[LINES_MAX][LINE_SIZE];
} twin;

static twin *of(hd_tx *tx) { return hd_runtime_context(hd_tx_runtime(tx)); }

static void note(twin *t, const char *what, hd_value v) {
    assert_true(t->count < LINES_MAX);
    const char *id = hd_value_as_text(hd_value_at(v, "id"), "");
    snprintf(t->ran[t->count++], LINE_SIZE, "%s %s %lld", what, id,
             (long long)hd_value_as_int(hd_value_at(v, "v"), hd_value_as_int(v, -1)));
}

/* ---- the program */

static hd_value price(hd_tx *tx, hd_value in, void *ctx) {
    note(of(tx), ctx, in);
    return hd_value_at(in, "v");
}
static hd_value is_odd(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(of(tx), "odd", in);
    return hd_bool(hd_value_as_int(hd_value_at(in, "v"), 0) % 2);
}
static hd_value pair(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    note(of(tx), "pair", in);
    hd_value v = hd_value_at(in, "v");
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ v, v }, 2);
}
static hd_value plus(hd_tx *tx, hd_value in, void *ctx) {
    note(of(tx), ctx, in);
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in, 0) + 1);
}
static void look(hd_value v, void *ctx) { (void)ctx, (void)v; }

static hd_cell used(hd_build *b, void *ctx) {
    static char name[] = "used";
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), plus, name);
}
static hd_cell row(hd_build *b, hd_cell element, void *ctx) {
    (void)ctx;
    static char first[] = "first", second[] = "second";
    hd_cell v = hd_build_derive(b, "first", element, price, first);
    return hd_build_derive(b, "second", v, plus, second);
}
static hd_cell derived(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    static char yes[] = "yes", no[] = "no";
    hd_cell n = hd_cell_at(hd_tx_runtime(tx), "main/n");
    if (hd_value_as_int(in[0], 0) % 3 == 0) return hd_build_derive(b, "no", n, plus, no);
    return hd_build_use(b, "yes", "used",
                        &(hd_named_cell){ "x", hd_build_derive(b, "yes.in", n, plus, yes) }, 1);
}
static hd_status add(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    hd_cell count = hd_cell_at(hd_tx_runtime(tx), "main/p/count");
    hd_value now = hd_tx_get(tx, count);
    if (hd_value_status(now)) return hd_value_status(now);
    return hd_tx_set_int(tx, count, hd_value_as_int(now, 0) + hd_value_as_int(event->payload, 1));
}

static const char *const results[] = { "prices.all", "rows.all", "odd",  "pairs",
                                       "links.all",  "some",     "pick", "count" };
enum { RESULTS = sizeof results / sizeof *results };

static hd_cell program(hd_build *b, void *ctx) {
    static char by_key[] = "price", by_link[] = "link", yes[] = "then", no[] = "else";
    hd_runtime *rt = hd_build_runtime(b);
    hd_cell list = hd_cell_at(rt, "main/list"), n = hd_cell_at(rt, "main/n");
    hd_cell count = hd_build_state(b, "count", hd_int(NULL, 0));
    hd_build_handler(b, hd_build_stream(b, "add"), add, NULL, &count, 1);
    hd_build_gather(
        b, "prices.all",
        hd_build_map(b, "prices", list, &(hd_each){ .fn = price, .ctx = by_key, .key = "/id" }));
    hd_build_gather(b, "rows.all", hd_build_map(b, "rows", list, &(hd_each){ .build = row }));
    hd_build_filter(b, "odd", list, &(hd_each){ .fn = is_odd, .key = "/id" });
    hd_build_flat_map(b, "pairs", list, &(hd_each){ .fn = pair, .key = "" });
    hd_build_gather(b, "links.all",
                    hd_build_map(b, "links", hd_cell_at(rt, "main/links"),
                                 &(hd_each){ .fn = price, .ctx = by_link }));
    hd_build_derive_pattern(b, "some", derived, NULL, &n, 1);
    hd_build_if_else(b, "pick", count, hd_build_derive(b, "then", count, plus, yes),
                     hd_build_derive(b, "else", n, plus, no));
    for (size_t i = 0; i < RESULTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "look %s", results[i]);
        hd_build_sink(b, name, hd_build_cell(b, results[i]), look, NULL);
    }
    return list;
}

/* ---- a twin */

static void settle(twin *t) {
    assert_int_equal(hd_runtime_settle(t->rt), HD_OK);
    assert_int_equal(hd_runtime_sync(t->rt), HD_OK);
}

static void open_store(twin *t) {
    hd_options options = { .context = t, .memory = t->memory };
    assert_int_equal(hd_open(*t->file ? t->file : NULL, &options, &t->rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(t->rt), &t->pool), HD_OK);
}
static void start(twin *t) {
    hd_piece p;
    hd_piece_spec spec = { .id = "p", .pattern = "program" };
    assert_int_equal(hd_piece_start(t->rt, &spec, &p, NULL), HD_OK);
    settle(t);
}
static void live(twin *t) {
    open_store(t);
    assert_int_equal(hd_pattern_register(t->rt, "used", "1", used, NULL), HD_OK);
    assert_int_equal(hd_pattern_register(t->rt, "program", "1", program, NULL), HD_OK);
    start(t);
}
static void die(twin *t) {
    hd_pool_close(t->pool);
    assert_int_equal(hd_close(t->rt), HD_OK);
}

static void open_twin(twin *t, const char *name, bool shared) {
    *t = (twin){ 0 };
    if (name) folder_store(t->file, sizeof t->file, name);
    else assert_int_equal(hd_memory_open(NULL, &t->memory), HD_OK);
    hd_options options = { .memory = t->memory };
    if (shared) assert_int_equal(hd_open(NULL, &options, &t->bystander, NULL), HD_OK);
    live(t);
}
static void close_twin(twin *t) {
    die(t);
    if (t->bystander) assert_int_equal(hd_close(t->bystander), HD_OK);
    if (t->memory) hd_memory_close(t->memory);
}

/* ---- steps: the same number does the same to both */

static void element(lab_random *r, char *out, size_t size) {
    snprintf(out, size, "{\"id\":\"i%u\",\"v\":%u}", (unsigned)lab_random_below(r, 9),
             (unsigned)lab_random_below(r, 20));
}

static void write_list(twin *t, lab_random *r) {
    char json[1024] = "[", one[64];
    uint64_t n = lab_random_below(r, 7);
    for (uint64_t i = 0; i < n; i++) {
        size_t at = strlen(json);
        element(r, one, sizeof one);
        snprintf(json + at, sizeof json - at, "%s%s", i ? "," : "", one);
    }
    strcat(json, "]");
    assert_int_equal(hd_write_json(t->rt, hd_cell_at(t->rt, "main/list"), json), HD_OK);
}

static void write_links(twin *t, lab_random *r) {
    char json[512] = "[";
    uint64_t n = lab_random_below(r, 4);
    for (uint64_t i = 0; i < n; i++) {
        size_t at = strlen(json);
        snprintf(json + at, sizeof json - at, "%s{\"$link\":{\"id\":\"doc%u\"}}", i ? "," : "",
                 (unsigned)lab_random_below(r, 3));
    }
    strcat(json, "]");
    assert_int_equal(hd_write_json(t->rt, hd_cell_at(t->rt, "main/links"), json), HD_OK);
}

static void set_in_list(twin *t, lab_random *r) {
    char cell[64], json[64];
    hd_value list = hd_read(t->rt, t->pool, hd_cell_at(t->rt, "main/list"));
    uint64_t count = hd_value_count(list), at = lab_random_below(r, 8);
    element(r, json, sizeof json);
    if (!count) return;
    snprintf(cell, sizeof cell, "main/list#/%u", (unsigned)(at % (count + 1))); /* or append */
    assert_int_equal(hd_write_json(t->rt, hd_cell_at(t->rt, cell), json), HD_OK);
}

static void set_document(twin *t, lab_random *r) {
    char cell[64], json[64];
    snprintf(cell, sizeof cell, "main/doc%u", (unsigned)lab_random_below(r, 3));
    element(r, json, sizeof json);
    assert_int_equal(hd_write_json(t->rt, hd_cell_at(t->rt, cell), json), HD_OK);
}

static void change(twin *t, lab_random *r) {
    hd_cell n = hd_cell_at(t->rt, "main/n");
    int64_t number = (int64_t)lab_random_below(r, 6);
    switch (lab_random_below(r, 5)) {
    case 0: write_list(t, r); break;
    case 1: write_links(t, r); break;
    case 2: set_in_list(t, r); break;
    case 3: set_document(t, r); break;
    default: assert_int_equal(hd_write(t->rt, n, hd_int(NULL, number)), HD_OK);
    }
}

/* Now and then without waiting until all of it is stored. */
static void step(twin *t, uint64_t seed) {
    lab_random r = lab_random_of(seed);
    hd_cell stream = hd_cell_at(t->rt, "main/p/add");
    bool waits = lab_random_below(&r, 2), event = lab_random_below(&r, 6) == 0;
    hd_value number = hd_int(NULL, (int64_t)lab_random_below(&r, 6) - 2);
    if (event) assert_int_equal(hd_event_send(t->rt, stream, number, NULL), HD_OK);
    else change(t, &r);
    assert_int_equal(hd_runtime_settle(t->rt), HD_OK);
    if (waits) assert_int_equal(hd_runtime_sync(t->rt), HD_OK);
}

/* ---- comparing */

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* `more`: the second may have run more. */
static void same_runs(twin *a, twin *b, int at, bool more) {
    qsort(a->ran, a->count, LINE_SIZE, by_text);
    qsort(b->ran, b->count, LINE_SIZE, by_text);
    for (uint32_t i = 0, j = 0; i < a->count || j < b->count; j++) {
        const char *one = i < a->count ? a->ran[i] : "nothing";
        const char *other = j < b->count ? b->ran[j] : "nothing";
        bool same = !strcmp(one, other);
        if (!same && !(more && j < b->count))
            lab_fail("step %d: \"%s\" ran, and \"%s\"", at, one, other);
        i += same;
    }
    a->count = b->count = 0;
}

static const char *value_of(twin *t, const char *name) {
    char cell[64];
    snprintf(cell, sizeof cell, "main/p/%s", name);
    hd_value v = hd_read(t->rt, t->pool, hd_cell_at(t->rt, cell));
    const char *text = hd_json_print(t->pool, v, HD_JSON_COMPACT, NULL);
    return text ? text : "-";
}

static void same_values(twin *a, twin *b, int at) {
    for (size_t i = 0; i < RESULTS; i++) {
        const char *one = value_of(a, results[i]), *other = value_of(b, results[i]);
        if (strcmp(one, other)) lab_fail("step %d: %s is %s, and %s", at, results[i], one, other);
    }
    hd_pool_clear(a->pool);
    hd_pool_clear(b->pool);
}

static void begin_again(twin *t, int at, bool as_a_process) {
    if (as_a_process) {
        die(t);
        live(t);
    } else {
        settle(t); /* what is not stored yet nobody can vouch for */
        hd_piece_stop(t->rt, hd_piece_find(t->rt, "main", "p"));
        settle(t);
        start(t);
    }
    if (t->count) lab_fail("step %d: \"%s\" ran at the restart", at, t->ran[0]);
}

static void change_while_down(twin *a, twin *b, uint64_t seed, int at) {
    lab_random first = lab_random_of(seed), second = first;
    change(a, &first);
    settle(a);
    die(b);
    open_store(b);
    change(b, &second);
    die(b);
    live(b);
    same_values(a, b, at);
    same_runs(a, b, at, true);
}

/* Also where commits are on their way. */
static void fold(twin *t) { assert_int_equal(hd_store_checkpoint(t->rt, NULL), HD_OK); }

static void play(const char *first, const char *second, bool shared) {
    static twin a, b;
    uint64_t seed = lab_seed();
    lab_random r = lab_random_of(seed);
    open_twin(&a, first, shared);
    open_twin(&b, second, shared);
    same_runs(&a, &b, -1, false);
    for (int i = 0; i < STEPS; i++) {
        uint64_t now = seed + 1000 + (uint64_t)i, what = lab_random_below(&r, 8);
        if (what == 0) change_while_down(&a, &b, now + STEPS, i);
        if (what == 1) begin_again(&b, i, true);
        if (what == 2 && (first || shared))
            begin_again(&b, i, false); /* else nothing is kept before */
        if (what == 3 && first) fold(&a), fold(&b);
        step(&a, now);
        step(&b, now);
        same_values(&a, &b, i);
        same_runs(&a, &b, i, false);
    }
    close_twin(&a);
    close_twin(&b);
}

static void twins_in_memory(void **state) {
    (void)state;
    play(NULL, NULL, false);
}
static void twins_in_shared_memory(void **state) {
    (void)state;
    play(NULL, NULL, true);
}
static void twins_in_files(void **state) {
    (void)state;
    play("one.db", "two.db", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twins_in_memory),
        cmocka_unit_test(twins_in_shared_memory),
        cmocka_unit_test_setup_teardown(twins_in_files, folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

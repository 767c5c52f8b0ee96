/* test_resume_life.c -- I7 within one life and over restarts: a piece is stopped, started and removed at
 * random, its runtime is closed and opened again, with and without a sync, its inputs change and change
 * back, rows of a list leave and come back, runs fail, a gate is set and cleared. Now and then another program runs the
 * piece with another version of the code, at the same time, and overwrites its outputs and rows; after the next start
 * everything is of the first version again.
 *
 * The naive twin knows what each function saw when it ran last, and whether that has been touched since. A
 * run that finds the same, untouched, is one that a process which stayed alive would not make. At rest,
 * values are what a fresh run of everything would give. */
#include "spec/piece_world.h"

enum { STEPS = 60, IDS = 5, NODES = 4 + IDS };

static lab_random dice;
static uint64_t seed;
static char history[8192];

static void tell(const char *format, ...) {
    size_t n = strlen(history);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(history + n, sizeof history - n, format, arguments);
    va_end(arguments);
}

/* ---- the twin */

typedef struct twin {
    bool ran, touched;
    int64_t saw;
} twin;
static twin twins[NODES]; /* d, e, f, size; then rows by id */
static bool beside;       /* another version lives: it may make anything run */
static int64_t n_now;
static int64_t prices[IDS]; /* 0: it is not in the list */

static void touch(int i) { twins[i].touched = true; }

static void note_run(int i, int64_t in) {
    twin *t = &twins[i];
    tell(" r%d(%d)", i, (int)in);
    if (t->ran && !t->touched && t->saw == in && !beside)
        fail_msg("HD_SEED=%llu: node %d runs and need not:%s", (unsigned long long)seed, i,
                 history);
    *t = (twin){ true, false, in };
}

/* ---- the program */

static hd_value run_d(hd_tx *tx, hd_value in, void *ctx) {
    int64_t n = hd_value_as_int(in, -1);
    if (twins[0].ran && twins[0].saw / 2 != n / 2) touch(1);
    note_run(0, n);
    return hd_int(NULL, n / 2);
}
static hd_value run_e(hd_tx *tx, hd_value in, void *ctx) {
    note_run(1, hd_value_as_int(in, -1));
    return hd_int(NULL, 10 * hd_value_as_int(in, 0));
}
static hd_value run_f(hd_tx *tx, hd_value in, void *ctx) {
    int64_t n = hd_value_as_int(in, -1);
    note_run(2, n);
    return n % 4 ? hd_int(NULL, n + 1) : hd_failed(HD_FAILED);
}
static hd_value run_row(hd_tx *tx, hd_value in, void *ctx) {
    int64_t price = hd_value_as_int(hd_value_at(in, "price"), 0);
    note_run(4 + (int)hd_value_as_int(hd_value_at(in, "id"), 0), price);
    return hd_int(NULL, price);
}
static void look(hd_value v, void *ctx) {}

static hd_cell pattern(hd_build *b, void *ctx) {
    hd_runtime *r = hd_build_runtime(b);
    hd_cell n = hd_cell_at(r, "main/n"), d = hd_build_derive(b, "d", n, run_d, NULL);
    hd_build_sink(b, "look_e", hd_build_derive(b, "e", d, run_e, NULL), look, NULL);
    hd_build_sink(b, "look_f", hd_build_derive(b, "f", n, run_f, NULL), look, NULL);
    hd_each each = { .fn = run_row, .key = "/id" };
    hd_cell all =
        hd_build_gather(b, "all", hd_build_map(b, "rows", hd_cell_at(r, "main/items"), &each));
    hd_build_sink(b, "look_all", all, look, NULL);
    return all;
}

/* ---- the same piece in another version */

static hd_value other_number(hd_tx *tx, hd_value in, void *ctx) {
    return hd_int(NULL, 1000 + hd_value_as_int(in, 0));
}
static hd_value other_row(hd_tx *tx, hd_value in, void *ctx) {
    return hd_int(NULL, 1000 + hd_value_as_int(hd_value_at(in, "price"), 0));
}

static hd_cell other_pattern(hd_build *b, void *ctx) {
    hd_runtime *r = hd_build_runtime(b);
    hd_cell n = hd_cell_at(r, "main/n"), d = hd_build_derive(b, "d", n, other_number, NULL);
    hd_build_sink(b, "look_e", hd_build_derive(b, "e", d, other_number, NULL), look, NULL);
    hd_build_sink(b, "look_f", hd_build_derive(b, "f", n, other_number, NULL), look, NULL);
    hd_each each = { .fn = other_row, .key = "/id" };
    hd_cell all =
        hd_build_gather(b, "all", hd_build_map(b, "rows", hd_cell_at(r, "main/items"), &each));
    hd_build_sink(b, "look_all", all, look, NULL);
    return all;
}

static hd_piece p;
static bool runs;
static uint32_t throttle; /* of the node f, as it was set last; 0: none */

static hd_node node_f(void) {
    hd_node f = hd_node_find(rt(), "main:p:f");
    assert_true(f.id);
    return f;
}

/* The gate that was set last is there after every start, until the piece is removed. */
static void change_throttle(void) {
    throttle = 20 * (uint32_t)lab_random_below(&dice, 3);
    tell(" throttle=%u", throttle);
    hd_node_set_throttle(rt(), node_f(), throttle);
}

static void start(void) {
    hd_error error;
    assert_int_equal(hd_pattern_register(rt(), "p", "1", pattern, NULL), HD_OK);
    if (hd_piece_start(rt(), &(hd_piece_spec){ .id = "p", .pattern = "p" }, &p, &error))
        fail_msg("%s", error.message);
    runs = true;
    if (hd_node_throttle(rt(), node_f()) != throttle)
        fail_msg("HD_SEED=%llu: the throttle is %u, and %u was set:%s", (unsigned long long)seed,
                 hd_node_throttle(rt(), node_f()), throttle, history);
}

/* ---- steps */

static void write_items(void) {
    char json[512] = "[", one[64];
    for (int i = 0; i < IDS; i++) {
        if (!prices[i]) continue;
        snprintf(one, sizeof one, "%s{\"id\":%d,\"price\":%d}", json[1] ? "," : "", i,
                 (int)prices[i]);
        strcat(json, one);
    }
    strcat(json, "]");
    lab_set_json(l, "items", json);
}

static void change_item(void) {
    int i = (int)lab_random_below(&dice, IDS);
    prices[i] = (int64_t)lab_random_below(&dice, 3);
    tell(" item%d=%d", i, (int)prices[i]);
    touch(4 + i);
    write_items();
}

static void change_n(void) {
    int64_t next = 1 + (int64_t)lab_random_below(&dice, 8);
    if (next == n_now) return;
    n_now = next;
    tell(" n=%d", (int)n_now);
    touch(0);
    touch(2);
    lab_set(l, "n", (double)n_now);
}

static void assert_values(void) {
    char text[32];
    snprintf(text, sizeof text, "%d", (int)(10 * (n_now / 2)));
    assert_json(l, "main/p/e", text);
    snprintf(text, sizeof text, "%d", (int)n_now + 1);
    if (n_now % 4) assert_json(l, "main/p/f", text);
    char json[128] = "[";
    for (int i = 0; i < IDS; i++)
        if (prices[i]) snprintf(json + strlen(json), 8, "%s%d", json[1] ? "," : "", (int)prices[i]);
    strcat(json, "]");
    assert_json(l, "main/p/all", json);
}

static void rest(void) {
    tell(" ;");
    lab_settle(l);
    lab_advance_ms(l, 40); /* the longest throttle */
    lab_settle(l);
    if (runs) assert_values();
}

/* In a store in memory that no other runtime uses nothing is stored before the first stop; then what reads
 * the output of an invalid node cannot be. */
static void stop_piece(void) {
    tell(" STOP");
    if (!lab_is_shared(l)) lab_settle(l);
    hd_piece_stop(rt(), p);
    runs = false;
}

static void remove_piece(void) {
    tell(" REMOVE");
    assert_int_equal(hd_piece_remove(rt(), p), HD_OK);
    memset(twins, 0, sizeof twins);
    throttle = 0;
    runs = false;
}

static void reopen(void) {
    tell(" REOPEN");
    settle();
    restart();
    lab_catch(l);
    runs = false;
    start();
}

/* What the other version does to this one's outputs may run anything, until the next start. */
static void live_beside_another_version(void) {
    hd_piece other;
    tell(" OTHER");
    settle();
    lab_runtime *b = lab_on(l, "b");
    assert_int_equal(hd_pattern_register(rt(), "p", "2", other_pattern, NULL), HD_OK);
    assert_int_equal(
        hd_piece_start(rt(), &(hd_piece_spec){ .id = "p", .pattern = "p" }, &other, NULL), HD_OK);
    beside = true;
    for (uint64_t i = lab_random_below(&dice, 4); i; i--) {
        lab_on(l, lab_random_below(&dice, 2) ? "a" : "b");
        lab_random_below(&dice, 2) ? change_n() : change_item();
        lab_settle(l);
    }
    lab_on(l, "b");
    if (lab_random_below(&dice, 2)) settle();
    lab_runtime_close(b);
    lab_on(l, "a");
    lab_settle(l);
    beside = false;
    for (int k = 0; k < NODES; k++) touch(k);
    reopen();
    rest();
}

static void step(void) {
    if (!lab_random_below(&dice, 40)) {
        live_beside_another_version();
        return;
    }
    switch (lab_random_below(&dice, 13)) {
    case 0:
    case 1:
    case 2: change_n(); break;
    case 3:
    case 4:
    case 5: change_item(); break;
    case 6:
    case 7: rest(); break;
    case 8:
        tell(" SYNC");
        settle();
        break;
    case 9: runs ? stop_piece() : start(); break;
    case 10:
        if (!runs) start(), tell(" START");
        else if (!lab_random_below(&dice, 3)) remove_piece();
        break;
    case 11:
        if (runs) change_throttle();
        break;
    default: reopen();
    }
}

static void a_piece_runs_what_a_living_one_would(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_ROUNDS");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1,
             rounds = count ? strtoull(count, NULL, 10) : 25;
    for (seed = first; seed < first + rounds; seed++) {
        if (seed != first) {
            lab_close(l);
            l = lab_start();
        }
        dice = lab_random_of(seed);
        memset(twins, 0, sizeof twins);
        memset(prices, 0, sizeof prices);
        throttle = 0;
        history[0] = '\0';
        lab_catch(l);
        n_now = 1;
        lab_set(l, "n", 1);
        write_items();
        start();
        for (int i = 0; i < STEPS; i++) step();
        if (!runs) start();
        rest();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { S(a_piece_runs_what_a_living_one_would) };
    LAB_EVERYWHERE(tests);
}

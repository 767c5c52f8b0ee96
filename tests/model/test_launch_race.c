/* test_launch_race.c -- I10, I11 for pieces: handlers that launch, in conflict with each other.
 *
 * Every event is delivered to two runtimes, and its handling launches a piece, which both would call the same. A third
 * writes what they read; lines are cut and mended; a runtime is killed now and then, and hears all events again.
 * When all is decided
 *
 *   - each event was handled once, and there is one piece for it in the store
 *   - a piece runs where its handling was accepted, and nowhere else
 *   - each of them has its result, and follows its argument
 *
 * HD_SEED repeats a run. */
#include "lab_events.h"
#include <heddle/pattern.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RUNTIMES = 2, EVENTS = 24, TURNS = 200 };
#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 3 };
#else
enum { ROUNDS = 10 };
#endif

typedef struct racer {
    char name[16];
    lab_runtime *at;
    int next, life;
    bool cut;
    lab_outcome heard[EVENTS]; /* in this life */
} racer;

typedef struct race {
    lab *l;
    racer racers[RUNTIMES];
    lab_runtime *rival;
    lab_random random;
    int kills;
} race;

static hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    return hd_double(2 * hd_value_number(in));
}
static void ignore(hd_value v, void *ctx) {}
static hd_cell watcher(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), twice, NULL);
    hd_build_sink(b, "look", d, ignore, NULL);
    return d;
}

static hd_status launch(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_piece p;
    hd_value hot = lab_tx_get(self, tx, "hot");
    if (hd_value_status(hot)) return hd_value_status(hot);
    hd_pool *pool = hd_tx_pool(tx);
    hd_value arguments = hd_object_set(pool, hd_object(), "x", event->payload);
    hd_piece_spec spec = { .pattern = "watcher", .arguments = arguments };
    return hd_tx_launch_piece(tx, &spec, &p);
}

static void open_racer(race *g, int which) {
    racer *r = &g->racers[which];
    *r = (racer){ .life = r->life + 1 };
    snprintf(r->name, sizeof r->name, "r%d.%d", which, r->life);
    r->at = lab_on(g->l, r->name);
    assert_status(hd_pattern_register(lab_rt(r->at), "watcher", "1", watcher, NULL), HD_OK);
    lab_handle(g->l, .stream = "go", .reads = "hot", .body = launch);
}

static void feed(race *g, racer *r) {
    char id[16], json[16];
    lab_on(g->l, r->name);
    while (r->next < EVENTS && !lab_random_once_in(&g->random, 3)) {
        snprintf(id, sizeof id, "e%d", r->next);
        snprintf(json, sizeof json, "%d", r->next);
        assert_status(lab_fire_id(g->l, "go", json, id, &r->heard[r->next]), HD_OK);
        r->next++;
    }
}

static void mischief(race *g, int which) {
    racer *r = &g->racers[which];
    if (lab_random_once_in(&g->random, 12)) {
        if (r->cut) lab_mend(r->at);
        else lab_cut(r->at);
        r->cut = !r->cut;
    } else if (g->kills < 3 && hd_runtime_event_waits(lab_rt(r->at)) != HD_EVENT_WAITS_TIME &&
               lab_random_once_in(&g->random, 60)) { /* one that is killed waits for nothing */
        hd_runtime_set_retry_window(lab_rt(r->at), 0);
        lab_runtime_drop(r->at);
        open_racer(g, which);
        g->kills++;
    }
}

static void disturb(race *g) {
    char text[32];
    if (!lab_random_once_in(&g->random, 4)) return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)lab_random_below(&g->random, 1000));
    lab_write(g->rival, "hot", text);
    assert_status(hd_runtime_sync(lab_rt(g->rival)), HD_OK);
}

/* Everything has been delivered and decided, and everybody has heard of it. */
static void conclude(race *g) {
    for (int i = 0; i < RUNTIMES; i++) {
        racer *r = &g->racers[i];
        if (r->cut) lab_mend(r->at);
        r->cut = false;
        while (r->next < EVENTS) feed(g, r);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < RUNTIMES; i++) {
            lab_on(g->l, g->racers[i].name);
            lab_idle(g->l);
            assert_status(hd_runtime_sync(lab_rt(g->racers[i].at)), HD_OK);
        }
        lab_advance_ms(g->l, 100);
        lab_settle(g->l);
    }
}

/* ---- afterwards */

static bool count_piece(const hd_piece_info *info, void *ctx) {
    ++*(int *)ctx;
    return true;
}

static bool check_entry(const hd_listing *entry, void *ctx) {
    race *g = ctx;
    char cell[128];
    hd_runtime *rt = lab_rt(g->rival);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    snprintf(cell, sizeof cell, "main/%s#/arguments/x", entry->id);
    double x = hd_value_as_double(hd_read(rt, pool, hd_cell_at(rt, cell)), -1);
    snprintf(cell, sizeof cell, "main/%s/d", entry->id);
    double d = hd_value_as_double(hd_read(rt, pool, hd_cell_at(rt, cell)), -1);
    if (d != 2 * x && !g->kills) lab_fail("%s: of %g is %g", entry->id, x, d);
    hd_pool_close(pool);
    return true;
}

static void check(race *g) {
    int stored = 0;
    hd_runtime *rt = lab_rt(g->rival);
    assert_status(hd_runtime_list(rt, "main", "piece", NULL, check_entry, g), HD_OK);
    for (int i = 0; i < RUNTIMES; i++) {
        racer *r = &g->racers[i];
        int accepted = 0, runs = 0;
        for (int e = 0; e < EVENTS; e++) {
            assert_int_equal(r->heard[e].told, 1);
            assert_true(r->heard[e].status == HD_OK || r->heard[e].status == HD_EXISTS);
            accepted += r->heard[e].status == HD_OK;
        }
        hd_runtime_pieces(lab_rt(r->at), count_piece, &runs);
        if (runs != accepted) lab_fail("%s: %d accepted, %d run", r->name, accepted, runs);
        stored += accepted;
    }
    if (!g->kills) assert_int_equal(stored, EVENTS);
    assert_true(stored <= EVENTS);
}

static bool count_entry(const hd_listing *entry, void *ctx) {
    ++*(int *)ctx;
    return true;
}

static void one_race(lab_kind kind, uint64_t seed) {
    race g = { .random = lab_random_of(seed) };
    int pieces = 0;
    g.l = lab_start_with((lab_options){ .kind = kind, .unchecked = true });
    g.rival = lab_on(g.l, "rival");
    for (int i = 0; i < RUNTIMES; i++) open_racer(&g, i);
    for (int turn = 0; turn < TURNS; turn++) {
        int which = (int)lab_random_below(&g.random, RUNTIMES);
        racer *r = &g.racers[which];
        if (lab_random_once_in(&g.random, 4)) feed(&g, r);
        disturb(&g);
        hd_runtime_pump(lab_rt(r->at));
        mischief(&g, which);
        lab_advance_ms(g.l, lab_random_below(&g.random, 3));
    }
    conclude(&g);
    check(&g);
    assert_status(hd_runtime_list(lab_rt(g.rival), "main", "piece", NULL, count_entry, &pieces),
                  HD_OK);
    assert_int_equal(pieces, EVENTS);
    lab_close(g.l);
}

static void races_in(lab_kind kind) {
    uint64_t seed = lab_seed();
    for (uint64_t i = 0; i < ROUNDS; i++) one_race(kind, seed + i);
}

static void one_piece_for_each_event_in_memory(void **state) { races_in(LAB_MEMORY); }
static void one_piece_for_each_event_in_a_file(void **state) { races_in(LAB_SQLITE); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_piece_for_each_event_in_memory),
        cmocka_unit_test(one_piece_for_each_event_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

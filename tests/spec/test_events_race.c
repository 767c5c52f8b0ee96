/* Events: several runtimes race for the same ids (I11). Each id is delivered three times to each of
 * three runtimes, in conflict with each other, with lines that are cut and runtimes that are killed:
 * each event's effect is there once, and what a runtime committed stands in the order in which it
 * was sent. */
#include "lab_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RUNTIMES 3
#define ROUNDS   3
#define SHARDS   16
#if defined(__SANITIZE_ADDRESS__)
#define EVENTS 3000
#else
#define EVENTS 10000
#endif

typedef struct racer {
    lab_runtime *at;
    char name[8];
    int next; /* the next delivery, of ROUNDS * events */
    int life; /* how often it was opened */
    bool is_cut;
    lab_handler *handler;
} racer;

typedef struct race {
    bool in_order; /* the logs must be */
    lab *l;
    int events;
    racer racers[RUNTIMES];
    lab_random random;
    int kills, cuts;
} race;

/* Counts in a shard, which others count in too, and leaves a mark for the event. */
static hd_status count_up(lab_handler *self, hd_tx *tx, const hd_event *event) {
    char cell[64];
    int64_t i = hd_value_as_int(hd_value_at(event->payload, "i"), -1);
    snprintf(cell, sizeof cell, "total%d", (int)(i % SHARDS));
    hd_status status = lab_tx_add(self, tx, cell, 1);
    snprintf(cell, sizeof cell, "main/hits#/%d", (int)i);
    if (!status) status = hd_tx_increment(tx, hd_cell_at(self->rt, cell), hd_int(NULL, 1));
    snprintf(cell, sizeof cell, "main/log%s", (const char *)self->data);
    if (!status)
        status = hd_tx_append(tx, hd_cell_at(self->rt, cell), hd_value_at(event->payload, "n"));
    return status;
}

static char log_names[256][16];

static void open_racer(race *g, int which) {
    racer *r = &g->racers[which];
    static int lives;
    snprintf(r->name, sizeof r->name, "r%d%c", which, 'a' + r->life++ % 26);
    char *log = log_names[lives++ % 256];
    snprintf(log, 16, "%d", lives);
    r->at = lab_on(g->l, r->name);
    r->handler =
        lab_handle(g->l, .stream = "go", .body = count_up, .data = log,
                   .reads = "total0 total1 total2 total3 total4 total5 total6 total7 "
                            "total8 total9 total10 total11 total12 total13 total14 total15");
    r->next = 0;
    r->is_cut = false;
}

static bool feed(race *g, racer *r) {
    hd_runtime *rt = lab_rt(r->at);
    hd_cell cell = hd_cell_at(rt, "main/go");
    while (r->next < ROUNDS * g->events) {
        char json[64], id[16];
        snprintf(json, sizeof json, "{\"i\":%d,\"n\":%d}", r->next % g->events, r->next);
        snprintf(id, sizeof id, "%d", r->next % g->events);
        hd_pool *pool;
        hd_pool_open(hd_runtime_heap(rt), &pool);
        hd_send_options options = { .id = id };
        hd_status status =
            hd_event_send(rt, cell, hd_json_parse(pool, json, strlen(json), NULL), &options);
        hd_pool_close(pool);
        if (status == HD_BUSY) return true;
        assert_status(status, HD_OK);
        r->next++;
        /* A few at a time: then others get in between. */
        if (lab_random_once_in(&g->random, 64)) return true;
    }
    hd_event_stats stats;
    hd_runtime_event_stats(rt, &stats);
    return stats.queued || stats.in_flight;
}

static void mischief(race *g, racer *r, int which) {
    if (lab_random_once_in(&g->random, 40) && !r->is_cut) {
        lab_cut(r->at);
        r->is_cut = true;
        g->cuts++;
    } else if (r->is_cut && lab_random_once_in(&g->random, 4)) {
        lab_mend(r->at);
        r->is_cut = false;
    }
    if (g->kills < 12 && lab_random_once_in(&g->random, 400)) {
        hd_runtime_set_retry_window(lab_rt(r->at), 0); /* whoever is killed does not try again */
        lab_runtime_drop(r->at);
        open_racer(g, which);
        g->kills++;
    }
}

static void run_race(race *g) {
    bool more = true;
    while (more) {
        more = false;
        for (int i = 0; i < RUNTIMES; i++) {
            racer *r = &g->racers[i];
            lab_on(g->l, r->name);
            if (feed(g, r)) more = true;
            hd_runtime_pump(lab_rt(r->at));
            mischief(g, r, i);
        }
        lab_advance_ms(g->l, lab_random_below(&g->random, 3));
    }
    for (int i = 0; i < RUNTIMES; i++) {
        if (g->racers[i].is_cut) lab_mend(g->racers[i].at);
        assert_status(hd_runtime_sync(lab_rt(g->racers[i].at)), HD_OK);
    }
}

static void check_order(hd_runtime *rt, hd_pool *pool) {
    for (int i = 1; i < 256; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/log%d", i);
        int64_t last = -1;
        hd_value log = hd_read(rt, pool, hd_cell_at(rt, cell));
        for (hd_iter it = hd_iter_of(log); hd_iter_next(&it);) {
            int64_t n = hd_value_as_int(it.value, -1);
            assert_true(n > last);
            last = n;
        }
    }
}

static void check_once(race *g) {
    hd_runtime *rt = lab_rt(lab_on(g->l, "judge"));
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value hits = hd_read(rt, pool, hd_cell_at(rt, "main/hits"));
    assert_int_equal(hd_value_count(hits), g->events);
    for (hd_iter it = hd_iter_of(hits); hd_iter_next(&it);)
        assert_int_equal(hd_value_as_int(it.value, 0), 1);
    int64_t total = 0;
    for (int i = 0; i < SHARDS; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/total%d", i);
        total += hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, cell)), 0);
    }
    assert_int_equal(total, g->events);
    if (g->in_order) check_order(rt, pool);
    hd_pool_close(pool);
}

static int size_of_race(int usual) {
    const char *text = getenv("HD_RACE"); /* events */
    return text ? atoi(text) : usual;
}

static void race_on(lab_kind kind, int events) {
    race g = { .events = size_of_race(events), .random = lab_random_of(lab_seed()) };
    /* Handlers are called in order everywhere. Their appends stand in that order where each handling
     * is decided before the next begins; in a file several are in flight, and one that has to be
     * tried again does not take those with it that read nothing of it (docs/EVENTS.md). */
    g.in_order = kind == LAB_MEMORY;
    /* A mirror of every change would cost more than the race. */
    g.l = lab_start_with((lab_options){ .kind = kind, .unchecked = true });
    for (int i = 0; i < RUNTIMES; i++) open_racer(&g, i);
    run_race(&g);
    check_once(&g);
    lab_close(g.l);
}

/* I11: in memory. */
static void i11_each_effect_once_in_memory(void **state) { race_on(LAB_MEMORY, EVENTS); }
/* I11: in a file. */
static void i11_each_effect_once_in_a_file(void **state) { race_on(LAB_SQLITE, EVENTS); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i11_each_effect_once_in_memory),
        cmocka_unit_test(i11_each_effect_once_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

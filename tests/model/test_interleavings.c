/* test_interleavings.c -- two runtimes, three commits each, in every order.
 *
 * Small enough to try them all: every order of the six commits, and after each of them every choice
 * of who sends and who hears. Whatever happens, the history must be one that the judge can follow,
 * and every change must have been announced exactly once. In a file, where each takes a hundred times
 * as long, a few of them, others each time. */
#include "lab_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <malloc.h>
#include <stdio.h>
#include <cmocka.h>

#define COMMITS   3
#define IN_A_FILE 60

/* What each of the two does, in this order. */
typedef struct play {
    const char *name;
    const char *lines[2][COMMITS];
} play;

static const play plays[] = {
    { "both count", /* read, modify, write of one place */
      { { "get n; set n 1", "get n; set n 2", "get n; set n 3" },
        { "get n; set n 4", "get n; set n 5", "get n; set n 6" } } },
    { "stacks", /* later commits read what earlier ones wrote */
      { { "get d; set x 1", "get x; set y 1", "get y; set x 2; set d {\"p\":1}" },
        { "set d {\"p\":2,\"q\":1}", "get y; set d#/q 2", "shape d; set d#/r 1" } } },
    { "places of one document", /* deep, shape and blind, created and deleted */
      { { "set d {\"p\":{}}", "get d#/p; set d#/p/a 1", "shape d; set d#/q 1" },
        { "set d#/p/b/c 1", "shape d#/p; set e 1", "remove d" } } },
    { "mergeable", /* never in conflict */
      { { "increment n 1", "append l 1", "get n; increment n 10" },
        { "increment n 2", "append l 2", "get l; append l 20" } } },
    { "the same again", /* repeats over layers that may fall */
      { { "get g; set x 1", "set x 1", "set x {\"k\":1}" },
        { "set g 1", "get x; set y 1", "get x#/k; set g 2" } } },
};

/* After each commit: nothing, its runtime sends, or the other one hears. */
enum { NOTHING, SEND, HEAR, ACTIONS };

static void act(lab_runtime *two[2], int actor, int action) {
    if (action == SEND) lab_send(two[actor]);
    if (action == HEAR) lab_hear(two[!actor]);
}

/* `order`: bit i says whose commit is the ith; `actions`: in base ACTIONS, after each. */
static void run(lab *l, const play *p, unsigned order, unsigned actions) {
    lab_runtime *two[2] = { lab_runtime_open(l, "a"), lab_runtime_open(l, "b") };
    int done[2] = { 0 };
    for (int i = 0; i < 2 * COMMITS; i++, actions /= ACTIONS) { /* the last is "everybody" */
        int actor = order >> i & 1;
        lab_do(two[actor], p->lines[actor][done[actor]++]);
        act(two, actor, (int)(actions % ACTIONS));
    }
    lab_settle(l);
    if (lab_is_sqlite(l)) lab_env_advance_ms(lab_world(l), 100); /* a file is looked at again */
    lab_settle(l);
    lab_judge(l, false);
    lab_close(l);
}

static bool three_each(unsigned order) { return __builtin_popcount(order) == COMMITS; }

static void every_order(const play *p) {
    unsigned choices = 1;
    for (int i = 1; i < 2 * COMMITS; i++) choices *= ACTIONS;
    for (unsigned order = 0; order < 1u << 2 * COMMITS; order++)
        for (unsigned actions = 0; three_each(order) && actions < choices; actions++)
            run(lab_open(), p, order, actions);
}

static void some_orders_in_a_file(void **state) {
    (void)state;
    lab_random r = lab_random_of(lab_seed());
    for (int i = 0; i < IN_A_FILE;) {
        const play *p = &plays[lab_random_below(&r, sizeof plays / sizeof *plays)];
        unsigned order = (unsigned)lab_random_below(&r, 1u << 2 * COMMITS);
        if (!three_each(order)) continue;
        run(lab_open_with((lab_options){ .kind = LAB_SQLITE }), p, order,
            (unsigned)lab_random_below(&r, 1u << 20));
        i++;
    }
}

static void every_order_of_a_play_makes_sense(void **state) { every_order(*state); }

int main(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* a hundred thousand worlds: keep the memory */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    struct CMUnitTest tests[sizeof plays / sizeof *plays + 1] = {
        [sizeof plays / sizeof *plays] = cmocka_unit_test(some_orders_in_a_file)
    };
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
        tests[i] = (struct CMUnitTest){ plays[i].name, every_order_of_a_play_makes_sense, NULL,
                                        NULL, (void *)&plays[i] };
    return cmocka_run_group_tests_name("interleavings", tests, NULL, NULL);
}

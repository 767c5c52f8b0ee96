/* test_admit_schedules.c -- random histories of several runtimes, with loss and replay.
 *
 * Four runtimes read and write a few documents, send and hear when they please, lose the line and
 * get it back. The judge then goes through the history naively. */
#include "lab_judge.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RUNTIMES 4
#define WORLDS   2000
#define FILES    30 /* a file takes longer */
#define STEPS    60

static const char *const cells[] = { "d",    "d#/a", "d#/a/b",  "d#/a/c", "d#/e",   "d#/e/f", "x",
                                     "x#/a", "n",    "other/y", "d#/l",   "d#/l/0", "d#/l/2" };
static const char *const values[] = {
    "1", "2", "{}", "{\"b\":1}", "{\"a\":{\"b\":2},\"e\":1}", "[1]", "{\"l\":[1,2]}", "[1,2,3]"
};

static const char *pick(lab_random *r, const char *const *from, size_t count) {
    return from[lab_random_below(r, count)];
}
#define PICK(r, from) pick(r, from, sizeof from / sizeof *from)

static void add_read(lab_random *r, char *script, size_t size) {
    size_t n = strlen(script);
    snprintf(script + n, size - n, "%s %s; ", lab_random_once_in(r, 2) ? "get" : "shape",
             PICK(r, cells));
}

static void add_write(lab_random *r, char *script, size_t size) {
    size_t n = strlen(script);
    const char *cell = PICK(r, cells);
    switch (lab_random_below(r, 8)) {
    case 0: /* of an element: it reads the array, which the judge does not know */
        if (strstr(cell, "/l/")) cell = "d#/l";
        snprintf(script + n, size - n, "remove %s; ", cell);
        break;
    case 1: snprintf(script + n, size - n, "append d#/l %d; ", (int)lab_random_below(r, 9)); break;
    case 2: snprintf(script + n, size - n, "increment n %d; ", (int)lab_random_below(r, 9)); break;
    default: snprintf(script + n, size - n, "set %s %s; ", cell, PICK(r, values));
    }
}

/* Most fit what is there; one that does not (a key of a number) is not committed at all. */
static void commit_something(lab_random *r, lab_runtime *who) {
    char script[512] = "";
    for (uint64_t n = lab_random_below(r, 3); n > 0; n--) add_read(r, script, sizeof script);
    for (uint64_t n = 1 + lab_random_below(r, 2); n > 0; n--) add_write(r, script, sizeof script);
    script[strlen(script) - 2] = 0;
    lab_do(who, script);
}

static void step(lab_random *r, lab_runtime *who, bool *cut) {
    switch (lab_random_below(r, 9)) {
    case 0: lab_send(who); break;
    case 1: lab_hear(who); break;
    case 2:
    case 3: lab_pump(who); break;
    case 4:
        if (lab_random_once_in(r, 3)) {
            if (*cut) lab_mend(who);
            else lab_cut(who);
            *cut = !*cut;
        }
        break;
    default: commit_something(r, who);
    }
}

static void live(lab_random *r) {
    lab *l = lab_open();
    lab_runtime *all[RUNTIMES];
    bool cut[RUNTIMES] = { false };
    for (size_t i = 0; i < RUNTIMES; i++)
        all[i] = lab_runtime_open(l, (char[]){ (char)('a' + i), 0 });
    for (int i = 0; i < STEPS; i++) {
        uint64_t who = lab_random_below(r, RUNTIMES);
        step(r, all[who], &cut[who]);
    }
    for (size_t i = 0; i < RUNTIMES; i++) lab_mend(all[i]);
    lab_settle(l);
    lab_env_advance_ms(lab_world(l), 100); /* files are looked into again after a while */
    lab_settle(l);
    lab_judge(l, false);
    lab_close(l);
}

static void random_histories_make_sense(void **state) {
    lab_random r = lab_random_of(lab_seed());
    const char *store = getenv("HD_STORE");
    int worlds = store && strcmp(store, "memory") ? FILES : WORLDS;
    for (int i = 0; i < worlds; i++) live(&r);
}

int main(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_histories_make_sense) };
    return cmocka_run_group_tests_name("admit schedules", tests, NULL, NULL);
}

/* test_resume_kill.c -- I7: a program that was killed goes on as if it had lived.
 *
 * A graph of forty computations on twelve numbers in a real file. The same random history is played in
 * a process that lives on and in one that is killed and resumed. Where everything had been stored, the
 * second runs, from there on, exactly the nodes that the first runs, in the same order. Killed
 * anywhere, it ends with the same values, and runs nothing that what was lost does not explain. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "folder.h"
#include "lab.h"
#include <heddle/scheduler.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUTS = 12, NODES = 40, STEPS = 24, RUNS_MAX = 4096 };
#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 4 };
#else
enum { ROUNDS = 12 };
#endif

/* Shared with the children. */
typedef struct story {
    uint32_t runs;
    uint8_t ran[RUNS_MAX];
    uint32_t at_resume; /* computations that ran before the first step after a resume */
    int64_t values[NODES];
} story;

typedef struct graph_of {
    hd_runtime *rt;
    story *told;
    uint64_t seed;
    hd_cell cells[INPUTS + NODES];
    struct computation {
        struct graph_of *g;
        uint32_t index;
        uint32_t in[3];
    } nodes[NODES];
} graph_of;

/* ---- The program ---------------------------------------------------------------------------------- */

/* The first input decides which of the others is read. */
static hd_status compute(hd_tx *tx, void *ctx) {
    const struct computation *c = ctx;
    story *told = c->g->told;
    if (told->runs < RUNS_MAX) told->ran[told->runs++] = (uint8_t)c->index;
    hd_value first = hd_tx_get(tx, c->g->cells[c->in[0]]);
    if (hd_value_status(first)) return hd_value_status(first);
    int64_t a = hd_value_as_int(first, 0);
    hd_value second = hd_tx_get(tx, c->g->cells[c->in[a % 2 ? 1 : 2]]);
    if (hd_value_status(second)) return hd_value_status(second);
    int64_t made = (3 * a + hd_value_as_int(second, 0) + c->index) % 97;
    return hd_tx_set_int(tx, c->g->cells[INPUTS + c->index], made);
}

static hd_status look(hd_tx *tx, void *ctx) {
    graph_of *g = ctx;
    for (int i = 0; i < NODES; i++) {
        hd_value v = hd_tx_get(tx, g->cells[INPUTS + i]);
        if (hd_value_status(v)) return hd_value_status(v);
        g->told->values[i] = hd_value_as_int(v, -1);
    }
    return HD_OK;
}

static void check(hd_status status) {
    if (status) lab_fail("%s", hd_status_name(status));
}

/* Which nodes there are, and what they read. */
static void make_graph(graph_of *g, uint64_t seed) {
    lab_random r = lab_random_of(seed);
    *g = (graph_of){ .seed = seed };
    for (uint32_t i = 0; i < NODES; i++) {
        g->nodes[i] = (struct computation){ .g = g, .index = i };
        for (int j = 0; j < 3; j++) g->nodes[i].in[j] = (uint32_t)lab_random_below(&r, INPUTS + i);
    }
}

static void begin(graph_of *g, const char *file, story *told, uint64_t seed) {
    hd_error error;
    char name[32];
    make_graph(g, seed);
    g->told = told;
    if (hd_open(file, NULL, &g->rt, &error)) lab_fail("%s", error.message);
    for (uint32_t i = 0; i < INPUTS + NODES; i++) {
        snprintf(name, sizeof name, "main/%s%u", i < INPUTS ? "in" : "n",
                 i < INPUTS ? i : i - INPUTS);
        g->cells[i] = hd_cell_at(g->rt, name);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%u", i);
        hd_compute(g->rt, name, compute, &g->nodes[i], g->cells[INPUTS + i]);
    }
    hd_effect(g->rt, "look", look, g);
}

/* Which input the step writes. */
static uint32_t step_input(uint64_t seed, uint32_t i) {
    lab_random r = lab_random_of(seed + 1000 + i);
    return (uint32_t)lab_random_below(&r, INPUTS);
}

static void step(graph_of *g, uint32_t i) {
    lab_random r = lab_random_of(g->seed + 1000 + i);
    uint32_t at = (uint32_t)lab_random_below(&r, INPUTS);
    check(hd_write(g->rt, g->cells[at], hd_int(NULL, (int64_t)lab_random_below(&r, 50))));
}

static void settle(graph_of *g) {
    check(hd_runtime_settle(g->rt));
    check(hd_runtime_sync(g->rt));
}

static void finish(graph_of *g) {
    settle(g);
    check(hd_close(g->rt));
}

/* ---- Processes ------------------------------------------------------------------------------------ */

typedef struct job {
    const char *file;
    story *told;
    uint64_t seed;
    uint32_t from, to; /* steps */
    bool resumes;      /* tells what runs at once; else nothing is told of what is before `from` */
    uint32_t hasty_from; /* from this step on it does not wait for anything; 0: it always does */
    int pipe;            /* a byte for each step; -1: none */
    bool waits;          /* at the end to be killed */
} job;

static void play(const job *j) {
    graph_of g;
    begin(&g, j->file, j->told, j->seed);
    if (j->hasty_from != 1) settle(&g);
    j->told->at_resume = j->told->runs;
    if (j->resumes) j->told->runs = 0;
    for (uint32_t i = j->from; i < j->to; i++) {
        step(&g, i);
        if (j->hasty_from && i + 1 >= j->hasty_from) hd_runtime_pump(g.rt);
        else settle(&g);
        if (j->pipe >= 0 && write(j->pipe, "x", 1) != 1) _exit(1);
    }
    if (j->waits) pause();
    finish(&g);
    _exit(0);
}

static pid_t begin_job(const job *j) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) play(j);
    assert_true(child > 0);
    return child;
}

static void run_job(const job *j) {
    int status;
    pid_t child = begin_job(j);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Kills it after so many steps. */
static void run_and_kill(job *j, uint32_t steps) {
    int ends[2], status;
    char byte;
    assert_int_equal(pipe(ends), 0);
    j->pipe = ends[1];
    j->waits = true;
    pid_t child = begin_job(j);
    close(ends[1]);
    for (uint32_t i = 0; i < steps; i++) assert_int_equal(read(ends[0], &byte, 1), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]);
}

static story *shared_story(void) {
    story *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

/* ---- The tests ------------------------------------------------------------------------------------ */

/* The same history in two files: one process lives through all of it, the other one dies. */
typedef struct two_stories {
    char lives[96], dies[96];
    story *one, *other;
} two_stories;

static void stories_begin(two_stories *t, uint64_t seed) {
    t->one = shared_story();
    t->other = shared_story();
    folder_file(t->lives, sizeof t->lives, "lives.db");
    folder_file(t->dies, sizeof t->dies, "dies.db");
    run_job(&(job){ .file = t->lives, .told = t->one, .seed = seed, .to = STEPS, .pipe = -1 });
}

static void stories_end(const two_stories *t) {
    assert_memory_equal(t->other->values, t->one->values, sizeof t->one->values);
    folder_remove_store(t->lives);
    folder_remove_store(t->dies);
    munmap(t->one, sizeof *t->one);
    munmap(t->other, sizeof *t->other);
}

static void killed_when_all_is_stored(uint64_t seed) {
    two_stories t;
    lab_random r = lab_random_of(seed);
    uint32_t at = 1 + (uint32_t)lab_random_below(&r, STEPS - 2);
    stories_begin(&t, seed);
    job begun = { .file = t.dies, .told = t.other, .seed = seed, .to = at, .pipe = -1 };
    run_and_kill(&begun, at);
    uint32_t before = t.other->runs;
    assert_true(before <= t.one->runs && !memcmp(t.one->ran, t.other->ran, before));

    t.other->runs = 0;
    job goes_on = { .file = t.dies,
                    .told = t.other,
                    .seed = seed,
                    .from = at,
                    .to = STEPS,
                    .resumes = true,
                    .pipe = -1 };
    run_job(&goes_on);
    assert_int_equal(t.other->at_resume, 0);
    assert_int_equal(t.other->runs, t.one->runs - before);
    assert_memory_equal(t.other->ran, t.one->ran + before, t.other->runs);
    stories_end(&t);
}

/* I7: the rest of a history runs the same nodes, whether or not the process was killed before. */
static void a_killed_program_runs_what_a_living_one_runs(void **state) {
    (void)state;
    uint64_t seed = lab_seed();
    for (uint64_t i = 0; i < ROUNDS; i++) killed_when_all_is_stored(seed + i);
}

static void killed_anywhere(uint64_t seed) {
    two_stories t;
    lab_random r = lab_random_of(seed);
    uint32_t at = 1 + (uint32_t)lab_random_below(&r, STEPS - 1);
    stories_begin(&t, seed);
    job begun = {
        .file = t.dies, .told = t.other, .seed = seed, .to = STEPS, .hasty_from = 1, .pipe = -1
    };
    run_and_kill(&begun, at);
    /* Which of its writes are in the file nobody knows: it makes them all again. */
    job goes_on = { .file = t.dies, .told = t.other, .seed = seed, .to = STEPS, .pipe = -1 };
    run_job(&goes_on);
    stories_end(&t);
}

/* I7: killed anywhere, it never takes what is stale for clean. */
static void killed_anywhere_it_ends_with_the_same_values(void **state) {
    (void)state;
    uint64_t seed = lab_seed();
    for (uint64_t i = 0; i < ROUNDS; i++) killed_anywhere(seed + 100 + i);
}

/* ---- what explains a run */

/* The inputs that these steps write, and every node that might read one of them, however far away: what it
 * computed from them may be lost. */
static void mark_concerned(uint64_t seed, uint32_t from, uint32_t to, bool *concerned) {
    graph_of g;
    make_graph(&g, seed);
    for (uint32_t i = from; i < to; i++) concerned[step_input(seed, i)] = true;
    for (uint32_t i = 0; i < NODES; i++)
        for (int j = 0; j < 3; j++)
            if (concerned[g.nodes[i].in[j]]) concerned[INPUTS + i] = true;
}

/* Everything is stored at first; the rest is done in haste, and it is killed in the middle of that. */
static void killed_in_haste(uint64_t seed, uint32_t *spared) {
    char file[96];
    bool concerned[INPUTS + NODES] = { 0 }, runs[NODES] = { 0 };
    story *told = shared_story();
    lab_random r = lab_random_of(seed);
    uint32_t quiet = 12 + (uint32_t)lab_random_below(&r, 6);
    uint32_t hasty = 1 + (uint32_t)lab_random_below(&r, 3);
    folder_file(file, sizeof file, "haste.db");
    job begun = { .file = file,
                  .told = told,
                  .seed = seed,
                  .to = quiet + hasty,
                  .hasty_from = quiet + 1,
                  .pipe = -1 };
    run_and_kill(&begun, quiet + hasty);
    told->runs = 0;
    job goes_on = { .file = file, .told = told, .seed = seed, .resumes = true, .pipe = -1 };
    run_job(&goes_on);
    mark_concerned(seed, quiet, quiet + hasty, concerned);
    for (uint32_t i = 0; i < told->at_resume; i++) {
        uint32_t index = told->ran[i];
        if (!concerned[INPUTS + index])
            lab_fail("HD_SEED=%llu: node %u ran, and nothing that it reads was lost",
                     (unsigned long long)seed, index);
        if (runs[index])
            lab_fail("HD_SEED=%llu: node %u ran twice", (unsigned long long)seed, index);
        runs[index] = true;
    }
    *spared += NODES - told->at_resume;
    folder_remove_store(file);
    munmap(told, sizeof *told);
}

/* I7: killed anywhere, whatever runs at the resume could have read something of what was not stored yet, and
 * runs once; the rest is clean. */
static void every_run_at_a_resume_is_explained(void **state) {
    (void)state;
    uint64_t seed = lab_seed();
    uint32_t spared = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) killed_in_haste(seed + 200 + i, &spared);
    assert_true(spared > 0); /* else it proves nothing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_program_runs_what_a_living_one_runs),
        cmocka_unit_test(killed_anywhere_it_ends_with_the_same_values),
        cmocka_unit_test(every_run_at_a_resume_is_explained),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}

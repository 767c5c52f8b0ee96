/* test_resume_kill.c -- I7: a program that was killed goes on as if it had lived.
 *
 * The same random history is played in a process that lives on and in one that is killed and resumed
 * (kill_program.h). Killed at acknowledged quiescence, it runs nothing when it is back, and with each step
 * from there on exactly the nodes that the other runs. Killed anywhere, several times, it comes to the
 * same values each time, and what it runs when it is back is explained by its log alone (lab_log.h): the
 * node has no row there, so that its last run was lost; or what it read is another since its row was
 * proved; or a document that it reads was written as a whole since. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "folder.h"
#include "kill_program.h"
#include "lab_log.h"
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES = 4 };
#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 3 };
#else
enum { ROUNDS = 8 };
#endif

static uint64_t rounds(void) {
    const char *text = getenv("HD_ROUNDS");
    return text ? strtoull(text, NULL, 10) : ROUNDS;
}

/* ---- Processes ------------------------------------------------------------------------------------ */

typedef struct job {
    const char *file;
    story *told;
    uint64_t seed;
    uint32_t to; /* steps */
    bool hasty;  /* does not wait for what a step brings, or only sometimes */
    bool stops;  /* when it has begun and settled, until it is told to go on */
    bool waits;  /* at the end, to be killed */
    int pipe;    /* a byte for each step; -1: none */
} job;

/* Perhaps not everything runs before the next step, perhaps not everything is stored. */
static void hurry(program *p, lab_random *r) {
    switch (lab_random_below(r, 4)) {
    case 0: program_settle(p); break;
    case 1: check(hd_runtime_settle(p->rt)); break;
    default:
        for (uint64_t n = lab_random_below(r, 4); n > 0; n--) hd_runtime_pump(p->rt);
    }
}

static void play(const job *j) {
    program p;
    lab_random r = lab_random_of(j->seed + 2000);
    program_begin(&p, j->file, j->told, j->seed);
    if (!j->hasty || j->stops) {
        program_settle(&p);
        j->told->values[j->told->done] = program_values(&p);
    }
    if (j->stops) raise(SIGSTOP);
    for (uint32_t i = j->told->done; i < j->to; i++) {
        program_step(&p, i);
        if (j->hasty) hurry(&p, &r);
        else program_settle(&p), j->told->values[i + 1] = program_values(&p);
        if (j->pipe >= 0 && write(j->pipe, "x", 1) != 1) _exit(1);
    }
    if (j->pipe >= 0) close(j->pipe); /* nobody waits for a step that does not come */
    while (j->waits) pause();
    program_settle(&p);
    j->told->values[j->to] = program_values(&p);
    program_end(&p);
    _exit(0);
}

/* A failure of the child is its own: cmocka would go on with the next test in it. And where the test
 * fails, nobody is left behind. */
static void play_alone(const job *j) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static const int fatal[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL);
    play(j);
}

static pid_t begin_job(const job *j) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) play_alone(j);
    assert_true(child > 0);
    return child;
}

static void await_end(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void await_stop(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
}

static void run_job(const job *j) { await_end(begin_job(j)); }

/* Kills it after so many steps, unless it ends in one of its runs before. */
static void kill_after(pid_t child, int from, uint32_t steps) {
    int status;
    char byte;
    for (uint32_t i = 0; i < steps && read(from, &byte, 1) == 1;) i++;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static story *shared_story(void) {
    story *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

/* The same history in two files: one process lives through all of it, the other one dies. */
typedef struct two_stories {
    char lives[256], dies[256];
    story *one, *other;
    uint64_t seed;
} two_stories;

static void stories_begin(two_stories *t, uint64_t seed) {
    *t = (two_stories){ .one = shared_story(), .other = shared_story(), .seed = seed };
    folder_store(t->lives, sizeof t->lives, "lives.db");
    folder_store(t->dies, sizeof t->dies, "dies.db");
    run_job(&(job){ .file = t->lives, .told = t->one, .seed = seed, .to = STEPS, .pipe = -1 });
}

static void stories_end(const two_stories *t) {
    folder_remove_store(t->lives);
    folder_remove_store(t->dies);
    munmap(t->one, sizeof *t->one);
    munmap(t->other, sizeof *t->other);
}

static void check_values(const two_stories *t, uint32_t after) {
    if (t->other->values[after] != t->one->values[after])
        lab_fail("HD_SEED=%llu HD_ROUNDS=1: other values after %u steps",
                 (unsigned long long)t->seed, after);
}

/* ---- Killed at acknowledged quiescence ------------------------------------------------------------ */

static int by_name(const void *a, const void *b) {
    const struct run *one = a, *other = b;
    return strcmp(one->node, other->node);
}

/* The runs of a step, in order of name; returns their number. */
static uint32_t runs_of(const story *s, uint32_t step, struct run *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->runs[i].step == step) out[count++] = s->runs[i];
    qsort(out, count, sizeof *out, by_name);
    return count;
}

static void check_same_runs(const two_stories *t, uint32_t step) {
    static struct run one[RUNS_MAX], other[RUNS_MAX];
    uint32_t n = runs_of(t->one, step, one), m = runs_of(t->other, step, other);
    for (uint32_t i = 0; i < n || i < m; i++) {
        const char *a = i < n ? one[i].node : "nothing", *b = i < m ? other[i].node : "nothing";
        if (strcmp(a, b))
            lab_fail("HD_SEED=%llu HD_ROUNDS=1, step %u: %s ran, and %s after a kill",
                     (unsigned long long)t->seed, step, a, b);
    }
}

static void check_nothing_ran(const two_stories *t) {
    if (t->other->count)
        lab_fail("HD_SEED=%llu HD_ROUNDS=1: %s ran when it was back after %u steps",
                 (unsigned long long)t->seed, t->other->runs[0].node, t->other->done);
}

static void killed_at_rest(uint64_t seed) {
    two_stories t;
    int ends[2];
    lab_random r = lab_random_of(seed);
    uint32_t at = 1 + (uint32_t)lab_random_below(&r, STEPS - 2);
    stories_begin(&t, seed);
    job j = { .file = t.dies, .told = t.other, .seed = seed, .to = at, .waits = true };
    assert_int_equal(pipe(ends), 0);
    j.pipe = ends[1];
    kill_after(begin_job(&j), ends[0], at);
    close(ends[0]);
    close(ends[1]);
    for (uint32_t i = 0; i < at; i++) check_same_runs(&t, i);

    t.other->count = 0;
    pid_t child = begin_job(&(job){
        .file = t.dies, .told = t.other, .seed = seed, .to = STEPS, .stops = true, .pipe = -1 });
    await_stop(child);
    assert_int_equal(t.other->done, at);
    check_nothing_ran(&t);
    kill(child, SIGCONT);
    await_end(child);
    for (uint32_t i = at; i < STEPS; i++) check_same_runs(&t, i);
    for (uint32_t i = at; i <= STEPS; i++) check_values(&t, i);
    stories_end(&t);
}

/* I7: the rest of a history runs the same nodes, whether or not the process was killed before. */
static void a_killed_program_runs_what_a_living_one_runs(void **state) {
    (void)state;
    uint64_t seed = lab_seed();
    for (uint64_t i = 0; i < rounds(); i++) killed_at_rest(seed + i);
}

/* ---- Killed anywhere ------------------------------------------------------------------------------ */

/* Returns how many need not have run, and did not. */
static uint32_t check_explained(const two_stories *t, lab_log *log) {
    const story *s = t->other;
    lab_log_follow(log);
    for (uint32_t i = 0; i < s->count; i++) {
        const char *node = s->runs[i].node;
        if (!lab_log_why(log, node))
            lab_fail(
                "HD_SEED=%llu HD_ROUNDS=1: %s ran when it was back after %u steps, and its row "
                "holds",
                (unsigned long long)t->seed, node, s->done);
    }
    return lab_log_holding(log);
}

/* Is back after a kill, perhaps not the first one, and looked at before it goes on. */
static pid_t come_back(const two_stories *t, job *j, uint32_t *spared) {
    lab_log *log = lab_log_open(t->dies);
    t->other->count = 0;
    j->stops = true;
    pid_t child = begin_job(j);
    await_stop(child);
    check_values(t, t->other->done);
    *spared += check_explained(t, log);
    lab_log_close(log);
    return child;
}

static void killed_anywhere(uint64_t seed, uint32_t *spared) {
    two_stories t;
    int ends[2];
    lab_random r = lab_random_of(seed);
    stories_begin(&t, seed);
    for (int life = 0; life < LIVES; life++) {
        job j = { .file = t.dies, .told = t.other, .seed = seed, .to = STEPS, .hasty = true };
        assert_int_equal(pipe(ends), 0);
        j.pipe = ends[1];
        j.waits = true;
        pid_t child = life ? come_back(&t, &j, spared) : begin_job(&j);
        uint32_t before = t.other->count;
        t.other->dies_at =
            lab_random_below(&r, 2) ? before + 1 + (uint32_t)lab_random_below(&r, 60) : 0;
        if (life) kill(child, SIGCONT);
        close(ends[1]);
        kill_after(child, ends[0], 1 + (uint32_t)lab_random_below(&r, STEPS / 2));
        close(ends[0]);
        t.other->dies_at = 0;
    }
    job j = { .file = t.dies, .told = t.other, .seed = seed, .to = STEPS, .pipe = -1 };
    pid_t child = come_back(&t, &j, spared);
    kill(child, SIGCONT);
    await_end(child);
    check_values(&t, STEPS);
    stories_end(&t);
}

/* I7: killed anywhere, it never takes what is stale for clean, and runs nothing without a reason. */
static void killed_anywhere_the_values_are_the_same_and_every_run_is_explained(void **state) {
    (void)state;
    uint64_t seed = lab_seed();
    uint32_t spared = 0;
    for (uint64_t i = 0; i < rounds(); i++) killed_anywhere(seed + i, &spared);
    assert_true(spared > 0); /* else it proves nothing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_program_runs_what_a_living_one_runs),
        cmocka_unit_test(killed_anywhere_the_values_are_the_same_and_every_run_is_explained),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}

/* test_resume_naive.c -- I7: whatever happened before, a restart runs what it must and nothing else.
 *
 * Small random programs live through random histories: writes of whole documents and of fields,
 * removals, nodes that go, come back or never come back, other runtimes that write, checkpoints. At
 * rest the program stops or is killed, perhaps somebody writes while it is down, and it starts again,
 * with its nodes in another order. A naive twin knows the definitions and which documents were written:
 *
 *   - what an effect looks at is what the definitions give, computed from scratch
 *   - a computation runs at the restart only if it was not clean before, or a document that it reads
 *     was written while the program was down, or something it reads has run; or, where the program was
 *     killed and could not say that it did not matter, a document that it reads was written as a whole,
 *     or once more with the same value
 *
 * HD_ROUNDS is the number of programs; HD_SEED repeats a run. */
#include "lab_sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SOURCES = 9, NODES = 8, EFFECTS = 3, READS = 3, LIVES = 4, STEPS = 8, VALUES = 4 };
#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 20 };
#else
enum { ROUNDS = 60 };
#endif

/* Cells that somebody writes, and the documents they are in. */
static const struct source {
    const char *cell, *document;
} sources[SOURCES] = { { "s0", "s0" },         { "s1", "s1" },     { "s2", "s2" },
                       { "f#/a", "f" },        { "f#/b", "f" },    { "f#/c/d", "f" },
                       { "main@user/u", "u" }, { "other/o", "o" }, { "main@user/v#/x", "v" } };

typedef struct twin {
    bool there;
    bool inside; /* its output is a field of a document of several */
    int reads[READS], count;
    bool unclaimed; /* it reads without claims */
    bool clean;     /* before the restart */
    bool
        excused; /* a document was written as a whole that it reads, and nobody has said since that it
                   * does not matter */
} twin;

typedef struct world {
    lab *l;
    lab_random random;
    twin nodes[NODES];
    twin effects[EFFECTS];
    bool written[SOURCES]; /* while the program was down */
    bool killed;
    char story[8192]; /* what happened, for the message of a failure */
} world;

static uint64_t below(world *w, uint64_t n) { return lab_random_below(&w->random, n); }

static void tell(world *w, const char *format, ...) {
    va_list arguments;
    size_t n = strlen(w->story);
    va_start(arguments, format);
    vsnprintf(w->story + n, sizeof w->story - n, format, arguments);
    va_end(arguments);
}

/* ---- the program */

static const char *cell_of(const world *w, int at) {
    static char names[4][32];
    static int next;
    if (at < SOURCES) return sources[at].cell;
    char *name = names[next++ % 4];
    snprintf(name, sizeof names[0], w->nodes[at - SOURCES].inside ? "out#/n%d" : "n%d",
             at - SOURCES);
    return name;
}

static void make_reads(world *w, twin *t, int first, int end) {
    t->count = 1 + (int)below(w, READS);
    for (int i = 0; i < t->count; i++) t->reads[i] = first + (int)below(w, (uint64_t)(end - first));
}

static void make_program(world *w) {
    for (int i = 0; i < NODES; i++) {
        w->nodes[i] =
            (twin){ .there = below(w, 5), .inside = !below(w, 3), .unclaimed = !below(w, 5) };
        make_reads(w, &w->nodes[i], 0, SOURCES + i);
    }
    for (int i = 0; i < EFFECTS; i++) {
        w->effects[i] = (twin){ .there = below(w, 4) };
        make_reads(w, &w->effects[i], SOURCES, SOURCES + NODES);
    }
}

static void print_reads(const world *w, const twin *t, char *out, size_t size) {
    size_t n = 0;
    for (int i = 0; i < t->count; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", i ? " " : "", t->unclaimed ? "!" : "",
                              cell_of(w, t->reads[i]));
}

static void tell_program(world *w) {
    char reads[256];
    for (int i = 0; i < NODES; i++) {
        print_reads(w, &w->nodes[i], reads, sizeof reads);
        tell(w, "\n%s%s: %s", w->nodes[i].there ? "" : "(no) ", cell_of(w, SOURCES + i), reads);
    }
    for (int i = 0; i < EFFECTS; i++) {
        print_reads(w, &w->effects[i], reads, sizeof reads);
        tell(w, "\n%se%d: %s", w->effects[i].there ? "" : "(no) ", i, reads);
    }
    tell(w, "\n");
}

static void register_node(world *w, int i) {
    char name[16], reads[256];
    snprintf(name, sizeof name, "n%d", i);
    print_reads(w, &w->nodes[i], reads, sizeof reads);
    lab_add(w->l, .name = name, .reads = reads, .output = cell_of(w, SOURCES + i), .version = "1");
}

static void register_effect(world *w, int i) {
    char name[16], reads[256];
    snprintf(name, sizeof name, "e%d", i);
    print_reads(w, &w->effects[i], reads, sizeof reads);
    lab_effect(w->l, name, reads);
}

/* In any order. */
static void register_all(world *w) {
    int first = (int)below(w, NODES), step = 2 * (int)below(w, NODES / 2) + 1; /* odd: meets all */
    for (int i = 0; i < NODES; i++) {
        int at = (first + i * step) % NODES;
        if (w->nodes[at].there) register_node(w, at);
    }
    for (int i = 0; i < EFFECTS; i++)
        if (w->effects[i].there) register_effect(w, i);
}

/* ---- what it should be */

static double value_of(world *w, int at) {
    double sum = 0;
    if (at < SOURCES || !w->nodes[at - SOURCES].there) return lab_get(w->l, cell_of(w, at));
    const twin *t = &w->nodes[at - SOURCES];
    for (int i = 0; i < t->count; i++) sum += value_of(w, t->reads[i]);
    return sum;
}

static void check_values(world *w) {
    char name[16];
    for (int i = 0; i < EFFECTS; i++) {
        const twin *t = &w->effects[i];
        if (!t->there) continue;
        for (int k = 0; k < t->count; k++) {
            const twin *node = &w->nodes[t->reads[k] - SOURCES];
            double want = value_of(w, t->reads[k]);
            if (node->there && lab_get(w->l, cell_of(w, t->reads[k])) != want)
                lab_fail("n%d is not %g:%s", t->reads[k] - SOURCES, want, w->story);
        }
        snprintf(name, sizeof name, "e%d", i);
        assert_true(lab_is_clean(w->l, name));
    }
}

/* ---- what happens */

static void settle(world *w) {
    lab_settle(w->l);
    assert_int_equal(hd_runtime_sync(lab_runtime_now(w->l)), HD_OK);
}

/* Everything there is to know is stored. */
static void come_to_rest(world *w) {
    for (int i = 0; i < 2; i++) {
        lab_advance_ms(w->l, 2000);
        settle(w);
    }
}

static void excuse_readers(world *w, const char *document, const char *cell) {
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < w->nodes[i].count; k++) {
            int at = w->nodes[i].reads[k];
            bool whole = at < SOURCES && !strcmp(sources[at].document, document);
            bool same = at < SOURCES && !strcmp(sources[at].cell, cell);
            bool shared = at >= SOURCES && w->nodes[at - SOURCES].inside;
            if (whole || same || shared) w->nodes[i].excused = true;
        }
}

static int write_something(world *w) {
    int at = (int)below(w, SOURCES), value = (int)below(w, VALUES);
    excuse_readers(w, "", sources[at].cell);
    if (!strcmp(sources[at].document, "f") && !below(w, 4)) {
        char json[64];
        excuse_readers(w, "f", "");
        snprintf(json, sizeof json, "{\"a\":%d,\"b\":1,\"c\":{\"d\":%d}}", value, value % 2);
        lab_set_json(w->l, "f", json);
        tell(w, " f=%s", json);
    } else if (!strchr(sources[at].cell, '#') && !below(w, 6)) {
        lab_remove(w->l, sources[at].cell);
        tell(w, " -%s", sources[at].cell);
    } else {
        lab_set(w->l, sources[at].cell, value);
        tell(w, " %s=%d", sources[at].cell, value);
    }
    return at;
}

/* A computation goes or comes; one that goes may be back at once. */
static void change_node(world *w) {
    char name[16];
    int i = (int)below(w, NODES);
    snprintf(name, sizeof name, "n%d", i);
    bool was = w->nodes[i].there;
    if (was) lab_cancel(w->l, name);
    w->nodes[i].there = !was || below(w, 2);
    if (w->nodes[i].there) register_node(w, i);
    tell(w, " %s%s", was ? w->nodes[i].there ? "+-" : "-" : "+", name);
}

static void change_effect(world *w) {
    char name[16];
    int i = (int)below(w, EFFECTS);
    snprintf(name, sizeof name, "e%d", i);
    if (w->effects[i].there) lab_cancel(w->l, name);
    else register_effect(w, i);
    w->effects[i].there = !w->effects[i].there;
    tell(w, " %s%s", w->effects[i].there ? "+" : "-", name);
}

static int write_elsewhere(world *w) {
    lab_on(w->l, "b");
    tell(w, " b:");
    int at = write_something(w);
    settle(w);
    if (lab_is_sqlite(w->l) && !below(w, 4)) {
        tell(w, " fold");
        assert_int_equal(hd_store_checkpoint(lab_runtime_now(w->l), NULL), HD_OK);
    }
    return at;
}

static void step(world *w) {
    switch (below(w, 10)) {
    case 0: change_node(w); break;
    case 1: change_effect(w); break;
    case 2:
        write_elsewhere(w);
        lab_on(w->l, "a");
        lab_advance_ms(w->l, 100);
        break;
    case 3:
        tell(w, " ;;");
        come_to_rest(w);
        break;
    case 4:
    case 5:
        tell(w, " ;");
        settle(w);
        break;
    case 6:
        if (!lab_is_sqlite(w->l)) break;
        tell(w, " fold");
        assert_int_equal(hd_store_checkpoint(lab_runtime_now(w->l), NULL), HD_OK);
        break;
    default: write_something(w);
    }
}

/* ---- the restart */

static void note_clean(world *w) {
    char name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        w->nodes[i].clean = w->nodes[i].there && lab_is_clean(w->l, name);
    }
}

static void stop(world *w) {
    lab_runtime *a = lab_on(w->l, "a");
    w->killed = lab_is_sqlite(w->l) && below(w, 2);
    tell(w, w->killed ? " KILL" : " STOP");
    if (w->killed) lab_runtime_drop(a);
    else lab_runtime_close(a);
    for (int i = 0; i < NODES; i++) w->nodes[i].excused &= w->killed;
}

static void be_down(world *w) {
    memset(w->written, 0, sizeof w->written);
    for (uint64_t n = below(w, 2) ? 0 : 1 + below(w, 3); n > 0; n--) {
        int at = write_elsewhere(w);
        for (int i = 0; i < SOURCES; i++)
            if (!strcmp(sources[i].document, sources[at].document)) w->written[i] = true;
    }
}

static bool did_run(const char *ran, const char *name) {
    size_t length = strlen(name);
    for (const char *at = ran; (at = strstr(at, name)); at++)
        if ((at == ran || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

static bool may_run(const world *w, const twin *t, const bool *ran) {
    if (!t->clean || (w->killed && t->excused)) return true;
    for (int i = 0; i < t->count; i++)
        if (t->reads[i] < SOURCES ? w->written[t->reads[i]] : ran[t->reads[i] - SOURCES])
            return true;
    return false;
}

static void check_runs(world *w, const char *list) {
    bool ran[NODES] = { false };
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        ran[i] = did_run(list, name);
        if (ran[i] && !may_run(w, &w->nodes[i], ran))
            lab_fail("%s runs and need not:%s", name, w->story);
    }
}

static void live_on(world *w) {
    for (uint64_t n = below(w, STEPS); n > 0; n--) step(w);
    come_to_rest(w);
    check_values(w);
    note_clean(w);
    stop(w);
    be_down(w);
    lab_on(w->l, "a");
    tell(w, " START");
    lab_ran(w->l);
    register_all(w);
    settle(w);
    check_runs(w, lab_ran(w->l));
    check_values(w);
}

static void one_program(uint64_t seed) {
    world w = { .l = lab_start(), .random = lab_random_of(seed) };
    lab_on(w.l, "a");
    lab_set_json(w.l, "f", "{\"a\":0,\"b\":0,\"c\":{\"d\":0}}");
    lab_set_json(w.l, "main@user/v", "{\"x\":0}");
    settle(&w);
    lab_on(w.l, "b");
    settle(&w);
    lab_on(w.l, "a");
    make_program(&w);
    tell(&w, " (HD_SEED=%llu HD_ROUNDS=1)", (unsigned long long)seed);
    tell_program(&w);
    register_all(&w);
    for (int i = 0; i < LIVES; i++) live_on(&w);
    lab_close(w.l);
}

/* C295, C299, C301, C308, I7 */
static void a_restart_runs_what_it_must_and_nothing_else(void **state) {
    const char *rounds = getenv("HD_ROUNDS");
    uint64_t seed = lab_seed(), count = rounds ? strtoull(rounds, NULL, 10) : ROUNDS;
    for (uint64_t i = 0; i < count; i++) one_program(seed + i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_runs_what_it_must_and_nothing_else),
    };
    LAB_EVERYWHERE(tests);
}

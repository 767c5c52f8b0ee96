/* test_resume_naive.c -- I7: whatever happened before, a restart runs what it must and nothing else.
 *
 * Small random programs live through random histories: writes of whole documents, of fields and of many
 * fields at once; arrays that grow, shrink and are replaced; several writes in a transaction, several
 * transactions over one another while none of them has a verdict; the same value again; removals; nodes
 * that go, come back or never come back; other runtimes that write; checkpoints. At rest the program
 * stops or is killed, perhaps somebody writes while it is down, and it starts again, with its nodes in
 * another order, and some of them in another version, which reads something else; a version may come back later.
 * Now and then another program has the other versions meanwhile. A naive twin knows the definitions, and what each read
 * gave:
 *
 *   - what an effect looks at is what the definitions give, computed from scratch
 *   - what a clean node has read, whole or by shape, is what is there
 *   - a computation runs at the restart only if it was not clean before; or something that it reads was
 *     another for a moment while the program was down, or came into being, went or was written as a
 *     whole document then; or what another node writes for it has become another with the restart
 *
 * HD_ROUNDS is the number of programs; HD_SEED repeats a run. */
#include "lab_sched.h"
#include "story.h"

#include "base/hash.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { NODES = 8, EFFECTS = 3, READS = 3, LIVES = 4, STEPS = 10, VALUES = 4 };
enum { KEPT = 16 };                     /* runs that are remembered */
enum { MANY = 80, SCRIPT_SIZE = 8192 }; /* fields: more than the places a commit accounts for */
#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 20 };
#else
enum { ROUNDS = 60 };
#endif

/* Cells that somebody writes, and the documents they are in; '~': only the shape is read. */
static const struct source {
    const char *cell, *document;
} sources[] = {
    { "s0", "s0" },         { "s1", "s1" },       { "f#/a", "f" },        { "f#/b", "f" },
    { "f#/c/d", "f" },      { "f#/c", "f" },      { "~f", "f" },          { "~f#/c", "f" },
    { "main@user/u", "u" }, { "other/o", "o" },   { "l#/0", "l" },        { "main@user/v#/x", "v" },
    { "l#/1", "l" },        { "l#/3", "l" },      { "~l", "l" },          { "l", "l" },
    { "r#/l/0", "r" },      { "r#/l/2", "r" },    { "~r#/l", "r" },       { "r#/n", "r" },
    { "m#/k/k3", "m" },     { "l#/length", "l" }, { "r#/l/length", "r" }, { "m#/k/k77", "m" },
    { "~m#/k", "m" },       { "m#/n", "m" },
};
enum { SOURCES = sizeof sources / sizeof *sources };

typedef struct code {
    int reads[READS], count;
    uint64_t saw[KEPT][READS]; /* at its last runs; a row may be of an earlier one */
    int runs;
    bool unclaimed; /* it reads without claims */
} code;

typedef struct twin {
    const struct world *w;
    bool there;
    bool inside; /* its output is a field of a document of several */
    code codes[2];
    int version; /* index into codes */
    bool clean;  /* before the restart, in the version that it has after it */
} twin;

typedef struct world {
    lab *l;
    lab_runtime *at; /* whose turn it is */
    lab_random random;
    twin nodes[NODES];
    twin effects[EFFECTS];
    uint64_t known[SOURCES + NODES]; /* when the program stopped, and after each write since */
    bool changed[SOURCES];           /* for a moment, while it was down; or written as a whole */
    bool whole[SOURCES];             /* the transaction that is being made writes its document so */
    bool alone;                      /* in memory: while it is down, there is one runtime */
    char script[SCRIPT_SIZE];        /* that transaction */
    lab_story story;
} world;

static uint64_t below(world *w, uint64_t n) { return lab_random_below(&w->random, n); }

static void on(world *w, const char *runtime) { w->at = lab_on(w->l, runtime); }

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

static code *code_of(twin *t) { return &t->codes[t->version]; }

static void make_reads(world *w, twin *t, int first, int end) {
    t->w = w;
    for (int v = 0; v < 2; v++) {
        code *c = &t->codes[v];
        c->count = 1 + (int)below(w, READS);
        c->unclaimed = first == 0 && !below(w, 5);
        for (int i = 0; i < c->count; i++)
            c->reads[i] = first + (int)below(w, (uint64_t)(end - first));
    }
}

static void make_program(world *w) {
    for (int i = 0; i < NODES; i++) {
        w->nodes[i] = (twin){ .there = below(w, 5), .inside = !below(w, 3) };
        make_reads(w, &w->nodes[i], 0, SOURCES + i);
    }
    for (int i = 0; i < EFFECTS; i++) {
        w->effects[i] = (twin){ .there = below(w, 4) };
        make_reads(w, &w->effects[i], SOURCES, SOURCES + NODES);
    }
}

static bool is_unclaimed(const code *c, const char *cell) { return c->unclaimed && *cell != '~'; }

static void print_reads(const world *w, const code *c, char *out, size_t size) {
    size_t n = 0;
    for (int i = 0; i < c->count; i++) {
        const char *cell = cell_of(w, c->reads[i]);
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", i ? " " : "",
                              is_unclaimed(c, cell) ? "!" : "", cell);
    }
}

static void tell_program(world *w) {
    char reads[256], other[256];
    for (int i = 0; i < NODES; i++) {
        print_reads(w, &w->nodes[i].codes[0], reads, sizeof reads);
        print_reads(w, &w->nodes[i].codes[1], other, sizeof other);
        lab_tell(&w->story, "\n%s%s: %s; then: %s", w->nodes[i].there ? "" : "(no) ",
                 cell_of(w, SOURCES + i), reads, other);
    }
    for (int i = 0; i < EFFECTS; i++) {
        print_reads(w, code_of(&w->effects[i]), reads, sizeof reads);
        lab_tell(&w->story, "\n%se%d: %s", w->effects[i].there ? "" : "(no) ", i, reads);
    }
    lab_tell(&w->story, "\n");
}

/* ---- what a read gives */

static uint64_t hash_text(uint64_t seed, const char *text) {
    return hash_bytes(text, strlen(text), seed);
}

static uint64_t hash_whole(hd_pool *pool, hd_value v) {
    const char *text = hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "-";
    assert_non_null(text);
    return hash_text(0, text);
}

/* Kind, keys or length; of a scalar its value. */
static uint64_t hash_shape(hd_pool *pool, hd_value v) {
    uint64_t hash = hash_u64((uint64_t)hd_value_kind(v) * 1000 + hd_value_count(v));
    if (hd_value_kind(v) == HD_KIND_ARRAY) return hash;
    if (hd_value_kind(v) != HD_KIND_OBJECT) return hash_whole(pool, v);
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) hash = hash_text(hash, it.key);
    return hash;
}

static uint64_t hash_read(hd_pool *pool, hd_value v, bool shape) {
    return shape ? hash_shape(pool, v) : hash_whole(pool, v);
}

/* A number is itself; of anything else little is used, so that not every change matters. */
static double number_of(uint64_t hash, hd_value v) {
    double d = hd_value_number(v);
    return isnan(d) ? (double)(hash % 3) : d;
}

/* What a read of this cell gives now. */
static uint64_t look(world *w, int at, double *number) {
    hd_pool *pool;
    const char *cell = cell_of(w, at);
    bool shape = *cell == '~';
    assert_int_equal(hd_pool_open(hd_runtime_heap(lab_rt(w->at)), &pool), HD_OK);
    hd_value v = hd_read(lab_rt(w->at), pool, lab_cell(w->at, cell + shape));
    uint64_t hash = hash_read(pool, v, shape);
    if (number) *number = number_of(hash, v);
    hd_pool_close(pool);
    return hash;
}

static hd_status add_up(lab_node *self, hd_tx *tx) {
    twin *t = self->data;
    code *c = code_of(t);
    uint64_t *saw = c->saw[c->runs % KEPT];
    double sum = 0;
    for (int i = 0; i < c->count; i++) {
        const char *cell = cell_of(t->w, c->reads[i]);
        bool shape = *cell == '~';
        hd_cell at = lab_cell(self->at, cell + shape);
        hd_value v = shape                   ? hd_tx_get_shape(tx, at)
                     : is_unclaimed(c, cell) ? hd_tx_read(tx, at, HD_READ_NO_CLAIM)
                                             : hd_tx_get(tx, at);
        if (hd_value_status(v)) return hd_value_status(v);
        saw[i] = hash_read(hd_tx_pool(tx), v, shape);
        sum += number_of(saw[i], v);
    }
    c->runs++;
    return lab_tx_put(self, tx, self->spec.output, sum);
}

static void register_node(world *w, int i) {
    char name[16], reads[256];
    snprintf(name, sizeof name, "n%d", i);
    print_reads(w, code_of(&w->nodes[i]), reads, sizeof reads);
    lab_add(w->l, .name = name, .reads = reads, .output = cell_of(w, SOURCES + i),
            .version = w->nodes[i].version ? "2" : "1", .body = add_up, .data = &w->nodes[i]);
}

static void register_effect(world *w, int i) {
    char name[16], reads[256];
    snprintf(name, sizeof name, "e%d", i);
    print_reads(w, code_of(&w->effects[i]), reads, sizeof reads);
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

/* Of all nodes, from scratch: each reads what is before it. */
static void evaluate(world *w, double *values) {
    for (int at = 0; at < SOURCES + NODES; at++) {
        twin *t = at < SOURCES ? NULL : &w->nodes[at - SOURCES];
        if (!t || !t->there) {
            look(w, at, &values[at]);
            continue;
        }
        const code *c = code_of(t);
        values[at] = 0;
        for (int i = 0; i < c->count; i++) values[at] += values[c->reads[i]];
    }
}

static bool is_clean(world *w, int i) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    return w->nodes[i].there && lab_is_clean(w->l, name);
}

static bool has_seen(world *w, const code *c, int run) {
    for (int k = 0; k < c->count; k++)
        if (look(w, c->reads[k], NULL) != c->saw[run % KEPT][k]) return false;
    return true;
}

/* Nobody is taken for clean who has not seen this, in his last run or in one that his row is of. */
static void check_clean(world *w) {
    for (int i = 0; i < NODES; i++) {
        const code *c = code_of(&w->nodes[i]);
        int run = c->runs - 1, first = c->runs > KEPT ? c->runs - KEPT : 0;
        if (!is_clean(w, i)) continue;
        while (run >= first && !has_seen(w, c, run)) run--;
        if (run < first) lab_fail("n%d is clean, and has never seen this:%s", i, w->story.text);
    }
}

static void check_values(world *w) {
    char name[16];
    double values[SOURCES + NODES];
    evaluate(w, values);
    for (int i = 0; i < EFFECTS; i++) {
        const code *c = code_of(&w->effects[i]);
        if (!w->effects[i].there) continue;
        for (int k = 0; k < c->count; k++) {
            const twin *node = &w->nodes[c->reads[k] - SOURCES];
            double want = values[c->reads[k]];
            if (node->there && lab_get(w->l, cell_of(w, c->reads[k])) != want)
                lab_fail("n%d is not %g:%s", c->reads[k] - SOURCES, want, w->story.text);
        }
        snprintf(name, sizeof name, "e%d", i);
        assert_true(lab_is_clean(w->l, name));
    }
    check_clean(w);
}

/* ---- what happens */

static void settle(world *w) {
    lab_settle(w->l);
    assert_int_equal(hd_runtime_sync(lab_rt(w->at)), HD_OK);
}

/* Everything there is to know is stored. */
static void come_to_rest(world *w) {
    for (int i = 0; i < 2; i++) {
        lab_advance_ms(w->l, 2000);
        settle(w);
    }
}

/* ---- transactions */

static void add(world *w, const char *format, ...) {
    va_list arguments;
    size_t n = strlen(w->script);
    va_start(arguments, format);
    vsnprintf(w->script + n, sizeof w->script - n, format, arguments);
    va_end(arguments);
    assert_true(strlen(w->script) + 1 < sizeof w->script);
}

static void writes_whole(world *w, const char *document) {
    for (int i = 0; i < SOURCES; i++)
        if (!strcmp(sources[i].document, document)) w->whole[i] = true;
}

/* A runtime that is alone with a store in memory accounts for nothing that it writes. */
static void writes(world *w, const char *document) {
    if (w->alone) writes_whole(w, document);
}

static int value(world *w) { return (int)below(w, VALUES); }

/* A document that is a number; sometimes it goes. */
static void add_number(world *w) {
    static const char *const cells[][2] = {
        { "s0", "s0" }, { "s1", "s1" }, { "main@user/u", "u" }, { "other/o", "o" }
    };
    const char *const *at = cells[below(w, 4)];
    writes_whole(w, at[1]);
    if (!below(w, 6)) add(w, "remove %s", at[0]);
    else add(w, "set %s %d", at[0], value(w));
}

static void add_field(world *w) {
    static const char *const cells[] = { "f#/a", "f#/b", "f#/c/d", "main@user/v#/x" };
    int v = value(w);
    writes(w, "f");
    writes(w, "v");
    switch (below(w, 8)) {
    case 0:
        add(w, "set f {\"a\":%d,\"b\":1,\"c\":{\"d\":%d}}", v, v % 2);
        writes_whole(w, "f");
        break;
    case 1: add(w, "set f#/c {\"d\":%d}", v); break;
    case 2: add(w, "set f#/c/e %d", v); break;
    case 3: add(w, "remove f#/%s", v % 2 ? "b" : "c/e"); break;
    default: add(w, "set %s %d", cells[below(w, 4)], v);
    }
}

static size_t count_in(world *w, const char *cell) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(lab_rt(w->at)), &pool), HD_OK);
    size_t count = hd_value_count(hd_read(lab_rt(w->at), pool, lab_cell(w->at, cell)));
    hd_pool_close(pool);
    return count;
}

static void add_array(world *w, const char *cell) {
    uint64_t count = below(w, 6);
    add(w, "set %s [", cell);
    for (uint64_t i = 0; i < count; i++) add(w, "%s%d", i ? "," : "", value(w));
    add(w, "]");
}

/* What does not fit, because another operation was faster, is refused, and nothing is written. */
static void add_element(world *w) {
    bool root = below(w, 2);
    const char *cell = root ? "l" : "r#/l", *first = root ? "l#" : "r#/l";
    unsigned count = (unsigned)count_in(w, cell);
    unsigned any = (unsigned)below(w, count ? count : 1);
    writes(w, root ? "l" : "r");
    if (!root && !below(w, 5)) {
        add(w, "set r#/n %d", value(w));
        return;
    }
    switch (below(w, 8)) {
    case 0:
    case 1: add(w, "append %s %d", cell, value(w)); break;
    case 2: add(w, "set %s/%u %d", first, count, value(w)); break;
    case 3: add(w, "remove %s/%u", first, count ? count - 1 : 0); break;
    case 4: add(w, "remove %s/%u", first, any); break;
    case 5:
        add_array(w, cell);
        if (root) writes_whole(w, "l");
        break;
    default: add(w, "set %s/%u %d", first, any, value(w));
    }
}

static void add_fields(world *w, const char *before, const char *after, uint64_t one_in) {
    bool first = true;
    for (int i = 0; i < MANY; i++) {
        if (below(w, one_in)) continue;
        add(w, before, first ? "" : ",", i);
        add(w, after, value(w));
        first = false;
    }
}

static void add_many(world *w) {
    uint64_t one_in = 1 + below(w, 4);
    writes(w, "m");
    switch (below(w, 6)) {
    case 0:
        add(w, "set m {\"n\":%d,\"k\":{", value(w));
        add_fields(w, "%s\"k%d\":", "%d", 1);
        add(w, "}}");
        writes_whole(w, "m");
        break;
    case 1:
        add(w, "set m#/k {");
        add_fields(w, "%s\"k%d\":", "%d", 1);
        add(w, "}");
        break;
    case 2:
        add(w, "patch m#/k [");
        add_fields(w, "%s{\"op\":\"set\",\"path\":\"/k%d\",", "\"value\":%d}", one_in);
        add(w, "]");
        break;
    case 3: add(w, "set m#/n %d", value(w)); break;
    default: add(w, "set m#/k/k%d %d", below(w, 2) ? 3 : 77, value(w));
    }
}

static void write_something(world *w) {
    *w->script = 0;
    memset(w->whole, 0, sizeof w->whole);
    for (uint64_t n = below(w, 3) ? 1 : 2 + below(w, 3); n > 0; n--) {
        if (*w->script) add(w, "; ");
        switch (below(w, 6)) {
        case 0: add_number(w); break;
        case 1:
        case 2: add_field(w); break;
        case 3: add_many(w); break;
        default: add_element(w);
        }
    }
    lab_fate *fate = lab_do(w->at, w->script);
    lab_tell(&w->story, " [%.90s%s%s]", w->script, strlen(w->script) > 90 ? "..." : "",
             fate->begun ? " refused" : "");
    if (fate->begun) memset(w->whole, 0, sizeof w->whole);
}

/* Several transactions before the first of them has a verdict, and runs in between. */
static void write_over_own(world *w) {
    lab_tell(&w->story, " (");
    lab_hold(w->at);
    for (uint64_t n = 2 + below(w, 4); n > 0; n--) {
        write_something(w);
        if (below(w, 2)) lab_turn(w->l);
    }
    lab_mend(w->at);
    lab_tell(&w->story, " )");
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
    lab_tell(&w->story, " %s%s", was ? w->nodes[i].there ? "+-" : "-" : "+", name);
}

static void change_effect(world *w) {
    char name[16];
    int i = (int)below(w, EFFECTS);
    snprintf(name, sizeof name, "e%d", i);
    if (w->effects[i].there) lab_cancel(w->l, name);
    else register_effect(w, i);
    w->effects[i].there = !w->effects[i].there;
    lab_tell(&w->story, " %s%s", w->effects[i].there ? "+" : "-", name);
}

static void fold(world *w) {
    if (!lab_is_sqlite(w->l)) return;
    lab_tell(&w->story, " fold");
    assert_int_equal(hd_store_checkpoint(lab_rt(w->at), NULL), HD_OK);
}

/* What the log said is gone then. Not while the program is down: of what was changed before, nobody
 * could tell it more than the document. */
static void fold_and_forget(world *w) {
    fold(w);
    if (!lab_is_sqlite(w->l) || below(w, 2)) return;
    lab_tell(&w->story, " prune");
    assert_int_equal(hd_store_prune(lab_rt(w->at), NULL), HD_OK);
}

static void write_elsewhere(world *w) {
    on(w, "b");
    lab_tell(&w->story, " b:");
    write_something(w);
    if (!below(w, 2)) write_something(w);
    settle(w);
    if (!below(w, 4)) fold_and_forget(w);
    on(w, "a");
    lab_advance_ms(w->l, 100);
}

static void step(world *w) {
    switch (below(w, 12)) {
    case 0: change_node(w); break;
    case 1: change_effect(w); break;
    case 2: write_elsewhere(w); break;
    case 3:
        lab_tell(&w->story, " ;;");
        come_to_rest(w);
        break;
    case 4:
    case 5:
        lab_tell(&w->story, " ;");
        settle(w);
        break;
    case 6: fold_and_forget(w); break;
    case 7: write_over_own(w); break;
    case 8:
        lab_tell(&w->story, " .");
        lab_turn(w->l);
        break;
    default: write_something(w);
    }
}

/* ---- the restart */

static void note_known(world *w) {
    for (int i = 0; i < SOURCES + NODES; i++) w->known[i] = look(w, i, NULL);
}

static void stop(world *w) {
    bool killed = lab_is_sqlite(w->l) && below(w, 2);
    for (int i = 0; i < NODES; i++) w->nodes[i].clean = is_clean(w, i);
    note_known(w);
    lab_tell(&w->story, killed ? " KILL" : " STOP");
    if (killed) lab_runtime_drop(w->at);
    else lab_runtime_close(w->at);
}

/* What was another for a moment is changed, also if it is as before in the end. */
static void note_changes(world *w) {
    for (int i = 0; i < SOURCES; i++) {
        uint64_t now = look(w, i, NULL);
        w->changed[i] |= w->whole[i] || now != w->known[i];
        w->known[i] = now;
    }
}

/* The other runtime knows by then what there is. */
static void be_down(world *w) {
    memset(w->changed, 0, sizeof w->changed);
    if (below(w, 2)) return;
    on(w, "b");
    lab_advance_ms(w->l, 100);
    settle(w);
    for (uint64_t n = 1 + below(w, 4); n > 0; n--) {
        lab_tell(&w->story, " b:");
        write_something(w);
        note_changes(w);
        if (below(w, 2)) settle(w);
        if (!below(w, 4)) fold(w);
    }
    settle(w);
}

static bool did_run(const char *ran, const char *name) {
    size_t length = strlen(name);
    for (const char *at = ran; (at = strstr(at, name)); at++)
        if ((at == ran || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

static bool may_run(world *w, twin *t) {
    const code *c = code_of(t);
    if (!t->clean) return true;
    for (int i = 0; i < c->count; i++) {
        int at = c->reads[i];
        if (at < SOURCES ? w->changed[at] : look(w, at, NULL) != w->known[at]) return true;
    }
    return false;
}

static void check_runs(world *w, const char *list) {
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        if (did_run(list, name) && !may_run(w, &w->nodes[i]))
            lab_fail("%s runs and need not:%s", name, w->story.text);
    }
}

/* ---- versions */

static void change_versions(world *w, const char *why) {
    uint64_t one_in = 1 + below(w, NODES);
    lab_tell(&w->story, " %s:", why);
    for (int i = 0; i < NODES; i++) {
        if (below(w, one_in)) continue;
        w->nodes[i].version = !w->nodes[i].version;
        w->nodes[i].clean = false;
        lab_tell(&w->story, " n%d", i);
    }
}

/* Another program has some nodes in other versions, for a life without events; then those of before come back. */
static void be_another(world *w) {
    int before[NODES];
    for (int i = 0; i < NODES; i++) before[i] = w->nodes[i].version;
    change_versions(w, "OTHER");
    on(w, "a");
    register_all(w);
    come_to_rest(w);
    check_values(w);
    note_known(w);
    lab_runtime_close(w->at);
    for (int i = 0; i < NODES; i++) {
        w->nodes[i].version = before[i];
        w->nodes[i].clean = false; /* its output, or what it reads, may have been another's */
    }
}

static void live_on(world *w) {
    for (uint64_t n = below(w, STEPS); n > 0; n--) step(w);
    come_to_rest(w);
    check_values(w);
    stop(w);
    be_down(w);
    if (!below(w, 6)) be_another(w);
    if (!below(w, 3)) change_versions(w, "NEW");
    on(w, "a");
    lab_tell(&w->story, " START");
    lab_ran(w->l);
    register_all(w);
    settle(w);
    check_runs(w, lab_ran(w->l));
    check_values(w);
}

static void set_up(world *w) {
    on(w, "a");
    lab_set_json(w->l, "f", "{\"a\":0,\"b\":0,\"c\":{\"d\":0}}");
    lab_set_json(w->l, "main@user/v", "{\"x\":0}");
    lab_set_json(w->l, "l", "[0,1]");
    lab_set_json(w->l, "r", "{\"l\":[0,1],\"n\":0}");
    lab_set_json(w->l, "m", "{\"k\":{\"k3\":0},\"n\":0}");
    settle(w);
    on(w, "b");
    settle(w);
    w->alone = !lab_is_sqlite(w->l) && below(w, 2);
    if (!lab_is_sqlite(w->l) && !w->alone) on(w, "c");
    on(w, "a");
}

static void one_program(uint64_t seed) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->l = lab_start();
    w->random = lab_random_of(seed);
    set_up(w);
    make_program(w);
    lab_tell(&w->story, " (HD_SEED=%llu HD_ROUNDS=1)", (unsigned long long)seed);
    tell_program(w);
    register_all(w);
    for (int i = 0; i < LIVES; i++) live_on(w);
    lab_close(w->l);
    free(w);
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

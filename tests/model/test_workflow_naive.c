/* test_workflow_naive.c -- random workflows, walked and stored, against a direct interpretation.
 *
 * A program is a random tree of statements: assignments, actions that may fail, if, for, while, break,
 * continue, try with except and finally, parallel branches, calls, sleep, raise, return. interpret() runs
 * the tree as it stands. emit() writes the same tree as IR; the workflow then runs with its steps completed
 * in a random order, some of them twice, and is now and then dropped from memory and loaded from its
 * document. Both must end with the same result or the same exception, having called actions with the same
 * arguments equally often (W1, W4), and be at rest with something to wait for in between (W2, W3, asserted
 * by instance_check). */
#define _DEFAULT_SOURCE
#include "lab.h"
#include "expr/encode.h"
#include "workflow/save.h"
#include "workflow/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { VARS = 5, FUNCTIONS = 3, NODES = 400, CALLS_MAX = 4000, ARGUMENTS = 1000 };

static hd_env env;
static hd_heap *heap;
static hd_pool *pool;
static world *w;
static classes *known;
static machine *m;

/* ---- programs */

typedef enum stmt_kind {
    S_ASSIGN,
    S_ACTION,
    S_IF,
    S_FOR,
    S_WHILE,
    S_TRY,
    S_FAN,
    S_CALL,
    S_SLEEP,
    S_RAISE,
    S_RETURN,
    S_BREAK,
    S_CONTINUE,
    S_KINDS
} stmt_kind;

typedef struct stmt {
    stmt_kind kind;
    int a, b, c;                    /* variables and numbers, by kind */
    struct stmt *one, *two, *three; /* blocks */
    struct stmt *next;              /* in its block */
} stmt;

static stmt nodes[NODES];
static int used;
static stmt *functions[FUNCTIONS]; /* [0] is run */

static uint64_t dice;
static int roll(int n) {
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((dice >> 33) % (uint64_t)n);
}

/* `loops`: around it; `guarded`: inside a try with finally, which nothing but exceptions leaves. */
static stmt *block(int depth, int fn, int loops, bool guarded);

static stmt_kind pick(int depth, int fn, int loops, bool guarded) {
    for (;;) {
        stmt_kind k = (stmt_kind)roll(S_KINDS);
        bool nested = k == S_IF || k == S_FOR || k == S_WHILE || k == S_TRY;
        if (nested && (depth <= 0 || used > NODES - 60)) continue;
        if (k == S_CALL && fn + 1 >= FUNCTIONS) continue;
        if ((k == S_BREAK || k == S_CONTINUE) && (!loops || guarded)) continue;
        if (k == S_RETURN && (guarded || roll(4))) continue;
        if (k == S_RAISE && roll(4)) continue;
        return k;
    }
}

static stmt *statement(int depth, int fn, int loops, bool guarded) {
    stmt_kind k = pick(depth, fn, loops, guarded);
    stmt *s = &nodes[used++];
    *s = (stmt){ .kind = k, .a = roll(VARS), .b = roll(VARS), .c = roll(10) };
    if (k == S_IF) {
        s->one = block(depth - 1, fn, loops, guarded);
        s->two = block(depth - 1, fn, loops, guarded);
    } else if (k == S_FOR || k == S_WHILE) {
        s->c = roll(4);
        s->one = block(depth - 1, fn, loops + 1, false);
        if (guarded) s->one = block(0, fn, 0, true);
    } else if (k == S_TRY) {
        bool finally = roll(2);
        s->c = finally;
        s->one = block(depth - 1, fn, loops, guarded || finally);
        s->two = block(depth - 1, fn, loops, guarded || finally);
        s->three = finally ? block(depth - 1, fn, 0, true) : NULL;
    } else if (k == S_FAN) {
        s->c = roll(5);
    } else if (k == S_CALL) {
        s->c = fn + 1 + roll(FUNCTIONS - fn - 1);
    }
    return s;
}

static stmt *block(int depth, int fn, int loops, bool guarded) {
    stmt *first = NULL, **at = &first;
    for (int n = 1 + roll(3); n-- > 0 && used < NODES - 20;) {
        *at = statement(depth, fn, loops, guarded);
        stmt_kind k = (*at)->kind;
        at = &(*at)->next;
        if (k == S_RETURN || k == S_RAISE || k == S_BREAK || k == S_CONTINUE) break;
    }
    if (!first) {
        first = &nodes[used++];
        *first = (stmt){ .kind = S_ASSIGN, .a = 0, .b = 1, .c = 1 };
    }
    return first;
}

/* ---- what actions do */

static int act(int x, bool *failed) {
    *failed = x % 5 == 4;
    return (x * 7 + 3) % ARGUMENTS;
}

/* ---- the direct interpretation */

typedef enum way { GO_ON, BREAKS, CONTINUES, RETURNS, RAISES } way;

static int naive_calls[ARGUMENTS * 2], engine_calls[ARGUMENTS * 2];
static long steps, loads, fails, skipped;
static long budget; /* of steps, so that every program ends */

static way run(const stmt *s, long vars[VARS + 1], long *result);

static way run_action(long *v, long x) {
    bool failed;
    naive_calls[x % ARGUMENTS]++;
    int y = act((int)(x % ARGUMENTS), &failed);
    if (!failed) *v = y;
    return failed ? RAISES : GO_ON;
}

static way run_loop(const stmt *s, long vars[VARS + 1], long *result) {
    for (long i = 0; i < s->c; i++) {
        if (s->kind == S_FOR) vars[s->a] = i;
        way how = run(s->one, vars, result);
        if (how == BREAKS) break;
        if (how == RETURNS || how == RAISES) return how;
    }
    return GO_ON;
}

static way run_try(const stmt *s, long vars[VARS + 1], long *result) {
    way how = run(s->one, vars, result);
    if (how == RAISES) how = run(s->two, vars, result);
    if (!s->three) return how;
    way last = run(s->three, vars, result);
    return last == GO_ON ? how : last;
}

static way run_fan(const stmt *s, long vars[VARS + 1]) {
    long sum = 0;
    bool any = false;
    for (long i = 0; i < s->c; i++) {
        bool failed;
        long x = (vars[s->b] + i) % ARGUMENTS;
        naive_calls[x]++;
        sum += act((int)x, &failed);
        any = any || failed;
    }
    if (!any) vars[s->a] = sum % ARGUMENTS;
    return any ? RAISES : GO_ON;
}

static way run_one(const stmt *s, long vars[VARS + 1], long *result) {
    long inner[VARS + 1] = { 0 }, got = 0;
    switch (s->kind) {
    case S_ASSIGN: return vars[s->a] = (vars[s->b] * 3 + s->c) % ARGUMENTS, GO_ON;
    case S_ACTION: return run_action(&vars[s->a], vars[s->b] + s->c);
    case S_IF: return run(vars[s->a] % 3 < s->c % 3 ? s->one : s->two, vars, result);
    case S_FOR:
    case S_WHILE: return run_loop(s, vars, result);
    case S_TRY: return run_try(s, vars, result);
    case S_FAN: return run_fan(s, vars);
    case S_CALL:
        inner[0] = vars[s->b];
        if (run(functions[s->c], inner, &got) == RAISES) return RAISES;
        vars[s->a] = got;
        return GO_ON;
    case S_SLEEP: return GO_ON;
    case S_RAISE: return RAISES;
    case S_RETURN: return *result = vars[s->a], RETURNS;
    case S_BREAK: return BREAKS;
    case S_CONTINUE: return CONTINUES;
    default: return GO_ON;
    }
}

static way run(const stmt *s, long vars[VARS + 1], long *result) {
    for (; s; s = s->next) {
        if (--budget < 0) return RAISES;
        way how = run_one(s, vars, result);
        if (how != GO_ON) return how;
    }
    return GO_ON;
}

/* ---- the same as IR */

typedef struct tail {
    int node;
    const char *kind; /* of the edge that is to leave it */
    int index;
} tail;

typedef struct tails {
    tail all[64];
    int count;
} tails;

static char ir_text[1 << 18], edges[1 << 17];
static size_t ir_length, edges_length;
static int ids;
static int handlers[32], handler_count; /* the HANDLERs around, innermost last */

typedef struct around {
    tails *breaks, *continues; /* of the innermost loop */
} around;

static void say(const char *format, ...) HD_PRINTF(1, 2);
static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    ir_length +=
        (size_t)vsnprintf(ir_text + ir_length, sizeof ir_text - ir_length, format, arguments);
    va_end(arguments);
    assert_true(ir_length < sizeof ir_text);
}

static void edge(int from, int to, const char *kind, int index) {
    edges_length += (size_t)snprintf(edges + edges_length, sizeof edges - edges_length,
                                     "%s[\"n%d\",\"n%d\",\"%s\",%d]", edges_length ? "," : "", from,
                                     to, kind, index);
    assert_true(edges_length < sizeof edges);
}

static void add(tails *t, int node, const char *kind, int index) {
    assert_true(t->count < 64);
    t->all[t->count++] = (tail){ node, kind, index };
}
static void join(tails *to, const tails *from) {
    for (int i = 0; i < from->count; i++)
        add(to, from->all[i].node, from->all[i].kind, from->all[i].index);
}

/* Begins a node that the tails lead to; several lead there through a MERGE. The caller says the rest. */
static int node(tails *t, const char *kind) {
    if (t->count > 1) {
        int merge = ids++;
        say(",{\"id\":\"n%d\",\"kind\":\"MERGE\"}", merge);
        for (int i = 0; i < t->count; i++)
            edge(t->all[i].node, merge, t->all[i].kind, t->all[i].index);
        t->count = 0;
        add(t, merge, "FORWARD", 0);
    }
    int id = ids++;
    for (int i = 0; i < t->count; i++) edge(t->all[i].node, id, t->all[i].kind, t->all[i].index);
    t->count = 0;
    if (handler_count) edge(id, handlers[handler_count - 1], "EXCEPT", 0);
    say(",{\"id\":\"n%d\",\"kind\":\"%s\"", id, kind);
    return id;
}

static void emit(const stmt *s, tails *t, around *o);

static void emit_calc(tails *t, const char *format, ...) HD_PRINTF(2, 3);
static void emit_calc(tails *t, const char *format, ...) {
    char body[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    int id = node(t, "CALC");
    say(",\"do\":[%s]}", body);
    add(t, id, "FORWARD", 0);
}

static void emit_loop(const stmt *s, tails *t) {
    tails breaks = { .count = 0 }, body = { .count = 0 };
    around inner = { &breaks, &body };
    int id = node(t, "LOOP_HEAD");
    if (s->kind == S_FOR)
        say(",\"over\":[\"call\",\"range\",[%d]],\"into\":[\"name\",\"v%d\"]}", s->c, s->a);
    else
        say(",\"while\":[\"cmp\",[\":=\",\"w%d\",[\"+\",[\"name\",\"w%d\"],1]],\"<=\",%d]}", id, id,
            s->c);
    tails in = { .count = 0 };
    add(&in, id, "CONTINUE", 0);
    emit(s->one, &in, &inner);
    join(&body, &in);
    for (int i = 0; i < body.count; i++) { /* a BACK edge leaves a node that nothing else leaves */
        tails one = { .count = 0 };
        add(&one, body.all[i].node, body.all[i].kind, body.all[i].index);
        int back = node(&one, "MERGE");
        say("}");
        edge(back, id, "BACK", 0);
    }
    add(t, id, "BREAK", 0);
    join(t, &breaks);
}

/* The HANDLER stands before what it guards is emitted, so that EXCEPT edges can name it. */
static int emit_handler(void) {
    int id = ids++;
    if (handler_count) edge(id, handlers[handler_count - 1], "EXCEPT", 0);
    return id;
}

static void emit_try(const stmt *s, tails *t, around *o) {
    int last = -1;
    if (s->three) {
        last = emit_handler();
        handlers[handler_count++] = last;
    }
    int caught = emit_handler();
    handlers[handler_count++] = caught;
    emit_calc(
        t,
        "[\"assign\",[\"/\",1,1],[\"name\",\"u\"]]"); /* a node that can raise: the HANDLER is reached */
    emit(s->one, t, o);
    handler_count--;
    say(",{\"id\":\"n%d\",\"kind\":\"HANDLER\",\"clauses\":[{\"classes\":[\"ValueError\"]}]}",
        caught);
    tails except = { .count = 0 };
    add(&except, caught, "GUARD", 0);
    emit(s->two, &except, o);
    join(t, &except);
    if (!s->three) return;
    handler_count--;
    if (t->count) emit(s->three, t, o);
    say(",{\"id\":\"n%d\",\"kind\":\"HANDLER\",\"clauses\":[{}]}", last);
    tails again = { .count = 0 };
    add(&again, last, "GUARD", 0);
    emit(s->three, &again, o);
    if (!again.count) return;
    node(&again, "RAISE");
    say("}");
}

static void emit_fan(const stmt *s, tails *t) {
    int id = node(t, "FAN_HEAD"), kept = handler_count;
    say(",\"over\":[\"call\",\"range\",[%d]],\"into\":[\"name\",\"i\"],\"window\":%d}", s->c,
        1 + s->b);
    tails branch = { .count = 0 };
    add(&branch, id, "ELEM", 0);
    handler_count = 0; /* exceptions of a branch go to its BARRIER */
    int action = node(&branch, "ACTION");
    say(",\"action\":\"act\",\"args\":[[\"%%\",[\"+\",[\"name\",\"v%d\"],[\"name\",\"i\"]],%d]],"
        "\"into\":[\"name\",\"r\"]}",
        s->b, ARGUMENTS);
    handler_count = kept;
    int barrier = ids++;
    if (kept) edge(barrier, handlers[kept - 1], "EXCEPT", 0);
    edge(action, barrier, "JOIN", 0);
    say(",{\"id\":\"n%d\",\"kind\":\"BARRIER\",\"mode\":\"ordered\",\"give\":[\"name\",\"r\"],"
        "\"into\":[\"name\",\"rs\"]}",
        barrier);
    add(t, barrier, "FORWARD", 0);
    emit_calc(t,
              "[\"assign\",[\"%%\",[\"call\",\"sum\",[[\"name\",\"rs\"]]],%d],[\"name\",\"v%d\"]]",
              ARGUMENTS, s->a);
}

static void emit_one(const stmt *s, tails *t, around *o, bool top) {
    int id;
    switch (s->kind) {
    case S_ASSIGN:
        emit_calc(
            t,
            "[\"assign\",[\"%%\",[\"+\",[\"*\",[\"name\",\"v%d\"],3],%d],%d],[\"name\",\"v%d\"]]",
            s->b, s->c, ARGUMENTS, s->a);
        break;
    case S_ACTION:
        id = node(t, "ACTION");
        say(",\"action\":\"act\",\"args\":[[\"+\",[\"name\",\"v%d\"],%d]],\"into\":[\"name\",\"v%"
            "d\"]}",
            s->b, s->c, s->a);
        add(t, id, "FORWARD", 0);
        break;
    case S_IF: {
        id = node(t, "BRANCH");
        say(",\"when\":[[\"cmp\",[\"%%\",[\"name\",\"v%d\"],3],\"<\",%d]]}", s->a, s->c % 3);
        tails no = { .count = 0 };
        add(t, id, "GUARD", 0);
        add(&no, id, "GUARD", 1);
        emit(s->one, t, o);
        emit(s->two, &no, o);
        join(t, &no);
        break;
    }
    case S_FOR: emit_loop(s, t); break;
    case S_WHILE:
        emit_calc(t, "[\"assign\",0,[\"name\",\"w%d\"]]", ids + (t->count > 1) + 1);
        emit_loop(s, t);
        break;
    case S_TRY: emit_try(s, t, o); break;
    case S_FAN: emit_fan(s, t); break;
    case S_CALL:
        id = node(t, "CALL");
        say(",\"function\":\"f%d\",\"args\":[[\"name\",\"v%d\"]],\"into\":[\"name\",\"v%d\"]}",
            s->c, s->b, s->a);
        add(t, id, "FORWARD", 0);
        break;
    case S_SLEEP:
        id = node(t, "SLEEP");
        say(",\"seconds\":%d}", s->c * 100);
        add(t, id, "FORWARD", 0);
        break;
    case S_RAISE:
        node(t, "RAISE");
        say(",\"value\":[\"new\",\"ValueError\",[\"raised\"]]}");
        break;
    case S_RETURN:
        node(t, top ? "RETURN" : "RET");
        say(",\"value\":[\"name\",\"v%d\"]}", s->a);
        break;
    case S_BREAK:
        join(o->breaks, t);
        t->count = 0;
        break;
    case S_CONTINUE:
        join(o->continues, t);
        t->count = 0;
        break;
    default: break;
    }
}

static bool emitting_run;
static void emit(const stmt *s, tails *t, around *o) {
    for (; s && t->count; s = s->next) emit_one(s, t, o, emitting_run);
}

static void emit_function(int f) {
    tails t = { .count = 0 };
    around o = { NULL, NULL };
    emitting_run = f == 0;
    ids = 0;
    edges_length = 0;
    say("%s{\"name\":\"f%d\",\"params\":[\"v0\"],\"nodes\":[{\"id\":\"n0\",\"kind\":\"ENTRY\"}",
        f ? "," : "", f);
    add(&t, ids++, "FORWARD", 0);
    emit_calc(
        &t,
        "[\"assign\",0,[\"name\",\"v1\"],[\"name\",\"v2\"],[\"name\",\"v3\"],[\"name\",\"v4\"]]");
    emit(functions[f], &t, &o);
    if (t.count) {
        node(&t, f ? "RET" : "RETURN");
        say(",\"value\":0}");
    }
    say("],\"edges\":[%s]}", edges);
}

static void emit_all(void) {
    ir_length = 0;
    say("{\"heddle\":1,\"name\":\"random\",\"inputs\":[{\"name\":\"v0\"}],\"functions\":[");
    for (int f = 0; f < FUNCTIONS; f++) emit_function(f);
    say("]}");
}

/* ---- the engine's part */

static hd_value document;

static hd_status apply(void *ctx, doc_op op, const char *const *path, uint32_t length,
                       hd_value value) {
    hd_path at = HD_PATH_ROOT;
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(hd_path_join(heap, at, path[i], strlen(path[i]), &at), HD_OK);
    hd_value next = op == DOC_SET      ? hd_value_set(pool, document, at, value)
                    : op == DOC_APPEND ? hd_value_append(pool, document, at, value)
                                       : hd_value_remove(pool, document, at);
    if (hd_value_exists(next)) document = next;
    return hd_value_status(next);
}

static strand *pick_strand(const instance *in) {
    strand *found = NULL;
    int seen = 0;
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        bool waits = s->state == STRAND_READY || s->state == STRAND_SLEEPING;
        if (waits && roll(++seen) == 0) found = s;
    }
    return found;
}

static hd_status complete(instance *in, strand *s) {
    bool failed;
    ev v;
    if (s->state == STRAND_SLEEPING) return walk_result(in, s, ev_none());
    int64_t x = hd_value_as_int(hd_value_index(s->args, 0), -1);
    assert_in_range(x, 0, ARGUMENTS * 2 - 1);
    engine_calls[x % ARGUMENTS]++;
    int y = act((int)(x % ARGUMENTS), &failed);
    if (!failed) return walk_result(in, s, ev_int(y));
    (void)raise_f(w, CLASS_ValueError, "act(%d)", (int)x);
    v = raise_catch(w);
    return walk_raise(in, s, v);
}

static instance *reload(instance *in, plan *p) {
    hd_error error = { 0 };
    loads++;
    instance_close(in);
    assert_int_equal(instance_open(w, p, &in), HD_OK);
    if (instance_load(in, document, &error)) fail_msg("%s", error.message);
    return in;
}

static instance_status walk_all(plan *p, long input, long *result) {
    instance *in;
    doc_writer out = { NULL, apply };
    ev v0 = ev_int(input);
    document = hd_object();
    assert_int_equal(instance_open(w, p, &in), HD_OK);
    assert_int_equal(walk_begin(in, &v0), HD_OK);
    assert_int_equal(instance_save(in, &out), HD_OK);
    while (!instance_is_over(in)) {
        if (roll(3) == 0) in = reload(in, p);
        strand *s = pick_strand(in);
        steps++;
        assert_non_null(s);
        assert_int_equal(complete(in, s), HD_OK);
        assert_int_equal(instance_save(in, &out), HD_OK);
    }
    instance_status status = in->status;
    *result = hd_value_as_int(hd_value_at(document, "result"), -1);
    assert_false(hd_value_exists(hd_value_at(document, "open")));
    instance_close(in);
    return status;
}

/* ---- */

static void compare(uint64_t seed) {
    hd_error error = { 0 };
    plan *p;
    long vars[VARS + 1] = { 0 }, expected = 0, result;
    dice = seed;
    used = 0;
    for (int f = FUNCTIONS; f-- > 0;) functions[f] = block(f ? 2 : 3, f, 0, false);
    memset(naive_calls, 0, sizeof naive_calls);
    memset(engine_calls, 0, sizeof engine_calls);
    budget = CALLS_MAX;
    vars[0] = roll(ARGUMENTS);
    long input = vars[0];
    way how = run(functions[0], vars, &expected);
    if (budget < 0) {
        skipped++; /* too long: says nothing */
        return;
    }
    if (how == GO_ON) expected = 0;
    emit_all();
    hd_value ir = hd_json_parse(pool, ir_text, ir_length, &error);
    if (!hd_value_exists(ir))
        fail_msg("seed %llu: %s at %zu", (unsigned long long)seed, error.message, error.offset);
    if (plan_make(w, heap, ir, &p, &error))
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, error.message, ir_text);
    instance_status status = walk_all(p, input, &result);
    plan_unref(p);
    fails += status == INSTANCE_FAILED;
    if (status != (how == RAISES ? INSTANCE_FAILED : INSTANCE_DONE) ||
        (how != RAISES && result != expected))
        fail_msg("seed %llu: status %d, result %ld instead of %ld\n%s", (unsigned long long)seed,
                 status, result, expected, ir_text);
    if (memcmp(naive_calls, engine_calls, sizeof naive_calls) != 0)
        fail_msg("seed %llu: other actions\n%s", (unsigned long long)seed, ir_text);
    hd_pool_clear(pool);
}

/* W1, W4: a workflow means what its statements mean, in whatever order steps complete and however often it
 * is loaded from its document. */
static void random_workflows_mean_what_they_say(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_WORKFLOWS");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    long n = given ? 1 : count ? atol(count) : 5000;
    print_message("seeds %llu to %llu\n", (unsigned long long)seed,
                  (unsigned long long)(seed + (uint64_t)n - 1));
    for (long i = 0; i < n; i++) compare(seed++ * 7919);
    print_message("%ld steps, %ld loads, %ld failed, %ld too long\n", steps, loads, fails, skipped);
    assert_true(n < 1000 || (steps > n && loads > n / 4 && fails > n / 20 && fails < n * 19 / 20 &&
                             skipped < n / 4));
}

static int open_world(void **state) {
    env = hd_env_system();
    assert_int_equal(hd_heap_open(&env, NULL, &heap), HD_OK);
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    assert_int_equal(classes_open(&env, &known), HD_OK);
    assert_int_equal(world_open(&env, NULL, known, &w), HD_OK);
    assert_int_equal(machine_open(w, &m), HD_OK);
    return 0;
}
static int close_world(void **state) {
    machine_close(m);
    world_close(w);
    classes_close(known);
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_workflows_mean_what_they_say, open_world,
                                        close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* workflow_programs.h -- random programs: interpreted as they stand, and as IR.
 *
 * A program is a random tree of statements: assignments, actions that may fail, if, for, while, break,
 * continue, try with except and finally, parallel branches, calls (or children), sleep, raise, return. interpret()
 * runs the tree as it stands; emit_all() writes the same tree as IR.
 *
 * With `rich` some sleeps wait for a signal "s<n>", whose payload is n, or no value of a workflow; some actions name a
 * queue or have a limit; and some are "effect": within a transaction, in which each success counts once more in a
 * cell. */
#ifndef WORKFLOW_PROGRAMS_H
#define WORKFLOW_PROGRAMS_H

#include <heddle/base.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { VARS = 5, FUNCTIONS = 3, NODES = 400, CALLS_MAX = 4000, ARGUMENTS = 1000 };

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

static bool rich;
static bool is_wait(const stmt *s) { return rich && s->a % 2; }
static bool is_effect(const stmt *s) { return rich && s->c % 4 == 1; }

/* ---- what actions do */

static int act(int x, bool *failed) {
    *failed = x % 5 == 4;
    return (x * 7 + 3) % ARGUMENTS;
}

/* ---- the direct interpretation */

typedef enum way { GO_ON, BREAKS, CONTINUES, RETURNS, RAISES } way;

static int naive_calls[ARGUMENTS * 2], engine_calls[ARGUMENTS * 2];
static long naive_effects; /* actions "effect" that have succeeded */
static long budget;        /* of steps, so that every program ends */

static way run(const stmt *s, long vars[VARS + 1], long *result);

static way run_action(const stmt *s, long *v, long x) {
    bool failed;
    int y = act((int)(x % ARGUMENTS), &failed);
    if (is_effect(s)) naive_effects += !failed;
    else naive_calls[x % ARGUMENTS]++;
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
    case S_ACTION: return run_action(s, &vars[s->a], vars[s->b] + s->c);
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
    case S_SLEEP:
        if (is_wait(s)) vars[s->b] = s->c;
        return GO_ON;
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

static bool children; /* some calls are emitted as CHILD */
static char family[16] =
    "w"; /* workflows are named by this and the number of their first function */
static double sleep_unit_s = 100; /* sleeps last up to nine of these */
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
    say(",{\"id\":\"n%d\",\"kind\":\"HANDLER\",\"clauses\":[{\"classes\":[\"ValueError\","
        "\"RuntimeError\"]}]}",
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

/* The nodes of `finally: sleep` in a branch, for the way on which an exception leaves the branch. */
static void emit_branch_clean_up(int handler) {
    tails t = { .count = 0 };
    say(",{\"id\":\"n%d\",\"kind\":\"HANDLER\",\"clauses\":[{}]}", handler);
    add(&t, handler, "GUARD", 0);
    int id = node(&t, "SLEEP");
    say(",\"seconds\":%g}", sleep_unit_s);
    add(&t, id, "FORWARD", 0);
    node(&t, "RAISE");
    say("}");
}

static void emit_fan(const stmt *s, tails *t) {
    int id = node(t, "FAN_HEAD"), kept = handler_count;
    say(",\"over\":[\"call\",\"range\",[%d]],\"into\":[\"name\",\"i\"],\"window\":%d}", s->c,
        1 + s->b);
    tails branch = { .count = 0 };
    add(&branch, id, "ELEM", 0);
    handler_count = 0; /* exceptions of a branch go to its BARRIER */
    bool cleans_up = s->a % 2;
    int outer = handlers[0], caught = cleans_up ? emit_handler() : -1;
    if (cleans_up) handlers[handler_count++] = caught;
    int action = node(&branch, "ACTION");
    say(",\"action\":\"act\",\"args\":[[\"%%\",[\"+\",[\"name\",\"v%d\"],[\"name\",\"i\"]],%d]],"
        "\"into\":[\"name\",\"r\"]}",
        s->b, ARGUMENTS);
    handler_count = 0;
    if (cleans_up) emit_branch_clean_up(caught);
    handlers[0] = outer;
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

/* A payload that is no value of a workflow is a TypeError, which means here what the right payload means. */
static void emit_wait(const stmt *s, tails *t) {
    tails spoilt = { .count = 0 };
    int caught = emit_handler();
    handlers[handler_count++] = caught;
    int id = node(t, "WAIT");
    say(",\"signal\":\"s%d\",\"into\":[\"name\",\"v%d\"]}", s->c, s->b);
    handler_count--;
    say(",{\"id\":\"n%d\",\"kind\":\"HANDLER\",\"clauses\":[{\"classes\":[\"TypeError\"]}]}",
        caught);
    add(&spoilt, caught, "GUARD", 0);
    emit_calc(&spoilt, "[\"assign\",%d,[\"name\",\"v%d\"]]", s->c, s->b);
    add(t, id, "FORWARD", 0);
    join(t, &spoilt);
}

/* What a step shares with those of other instances. */
static void emit_shared(const stmt *s) {
    if (rich && s->a == 1) say(",\"queue\":\"q%d\"", s->b % 2);
    if (rich && s->a == 2) say(",\"limit\":{\"key\":\"k%d\",\"most\":%d}", s->b, 1 + s->c % 2);
    if (rich && s->a == 3) say(",\"priority\":%d", s->b);
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
        say(",\"action\":\"%s\",\"args\":[[\"+\",[\"name\",\"v%d\"],%d]],\"into\":[\"name\",\"v%"
            "d\"]",
            is_effect(s) ? "effect" : "act", s->b, s->c, s->a);
        emit_shared(s);
        say("}");
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
        id = node(t, children && s->b % 2 ? "CHILD" : "CALL");
        if (children && s->b % 2) say(",\"workflow\":\"%s%d\",\"args\":{\"v0\":", family, s->c);
        else say(",\"function\":\"f%d\",\"args\":[", s->c);
        say("[\"name\",\"v%d\"]%s,\"into\":[\"name\",\"v%d\"]}", s->b,
            children && s->b % 2 ? "}" : "]", s->a);
        add(t, id, "FORWARD", 0);
        break;
    case S_SLEEP:
        if (is_wait(s)) {
            emit_wait(s, t);
            break;
        }
        id = node(t, "SLEEP");
        say(",\"seconds\":%g}", s->c * sleep_unit_s);
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

static void emit_function(int f, bool first) {
    tails t = { .count = 0 };
    around o = { NULL, NULL };
    emitting_run = first;
    ids = 0;
    edges_length = 0;
    say("%s{\"name\":\"f%d\",\"params\":[\"v0\"],\"nodes\":[{\"id\":\"n0\",\"kind\":\"ENTRY\"}",
        first ? "" : ",", f);
    add(&t, ids++, "FORWARD", 0);
    emit_calc(
        &t,
        "[\"assign\",0,[\"name\",\"v1\"],[\"name\",\"v2\"],[\"name\",\"v3\"],[\"name\",\"v4\"]]");
    emit(functions[f], &t, &o);
    if (t.count) {
        node(&t, first ? "RETURN" : "RET");
        say(",\"value\":0}");
    }
    say("],\"edges\":[%s]}", edges);
}

/* The workflow "<family><first>": this function and those that it may call. */
static void emit_all(int first) {
    ir_length = 0;
    say("{\"heddle\":1,\"name\":\"%s%d\",\"inputs\":[{\"name\":\"v0\"}],\"functions\":[", family,
        first);
    for (int f = first; f < FUNCTIONS; f++) emit_function(f, f == first);
    say("]}");
}

/* A new program from this seed. */
static void make_program(uint64_t seed) {
    dice = seed;
    used = 0;
    for (int f = FUNCTIONS; f-- > 0;) functions[f] = block(f ? 2 : 3, f, 0, false);
    memset(naive_calls, 0, sizeof naive_calls);
    memset(engine_calls, 0, sizeof engine_calls);
    naive_effects = 0;
}

/* Interprets it; false: that takes too long, and says nothing. */
static bool interpret(long input, bool *raises, long *result) {
    long vars[VARS + 1] = { 0 };
    vars[0] = input;
    budget = CALLS_MAX;
    *result = 0;
    way how = run(functions[0], vars, result);
    *raises = how == RAISES;
    if (how == GO_ON) *result = 0;
    return budget >= 0;
}

#endif

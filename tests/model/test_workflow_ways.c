/* test_workflow_ways.c -- random graphs in which ways begin at once, against a game of tokens.
 *
 * A graph of few nodes is the body of a function, of a branch of a FAN_HEAD or of a loop. A naive twin plays it: a
 * token lies on each edge that was followed; a node takes those that it waits for and puts one on each edge that it
 * follows. All states are visited. If registration takes the graph, its end comes once and last, no two tokens meet
 * in a MERGE, and nodes that may run at the same time share nothing that one of them assigns; and then the engine
 * comes to the same result in whatever order the steps are completed (W4). Without BRANCH and HANDLER it takes every
 * such graph. */
#define _DEFAULT_SOURCE
#include "workflow_document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { NODES = 9, EDGES = 24, VARS = 3 };

typedef enum kind { STEP, CALC, MERGE, BRANCH, HANDLER, RAISE, END } kind;
typedef enum place { IN_FUNCTION, IN_BRANCH, IN_LOOP } place;

typedef struct node {
    kind kind;
    int reads, assigns; /* variables; -1: none */
    bool raises;        /* STEP, when the engine runs it */
    bool chance;        /* BRANCH: its condition */
    bool unsure;        /* behind a HANDLER */
} node;

typedef struct arc {
    int from, to;
    bool except;
} arc;

static node nodes[NODES];
static arc arcs[EDGES];
static int node_count, arc_count;
static place where;
static bool plain; /* no BRANCH, no HANDLER */
static uint64_t random_state;

static int roll(int n) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

/* ---- the graph */

static int arcs_from(int from, bool except) {
    int found = 0;
    for (int k = 0; k < arc_count; k++) found += arcs[k].from == from && arcs[k].except == except;
    return found;
}

static bool has_arc(int from, int to) {
    for (int k = 0; k < arc_count; k++)
        if (arcs[k].from == from && arcs[k].to == to) return true;
    return false;
}

static bool join(int from, int to) {
    bool except = nodes[to].kind == HANDLER;
    kind k = nodes[from].kind;
    if (from >= to || k == RAISE || k == END || arc_count == EDGES || has_arc(from, to))
        return false;
    if (except && (k != STEP || arcs_from(from, true))) return false;
    if (!except && (k == BRANCH || k == HANDLER) && arcs_from(from, false) == (k == BRANCH ? 2 : 1))
        return false;
    arcs[arc_count++] = (arc){ from, to, except };
    return true;
}

static kind make_kind(int i) {
    static const kind some[] = { STEP,  STEP,   STEP,    CALC,  CALC, CALC,
                                 MERGE, BRANCH, HANDLER, RAISE, END };
    kind k = some[roll(11)];
    if (!i || i == node_count - 1) return i ? END : CALC;
    if (plain && (k == BRANCH || k == HANDLER)) return STEP;
    return k;
}

/* False: some node has no edge into it, or too few out of it. */
static bool make_graph(uint64_t seed) {
    random_state = seed * 7919 + 17;
    for (int i = 0; i < 5; i++) (void)roll(2);
    node_count = 4 + roll(NODES - 3);
    arc_count = 0;
    plain = roll(3) == 0;
    where = (place)roll(3);
    for (int i = 0; i < node_count; i++) {
        int some = roll(3) ? VARS : 0; /* 0: it touches nothing */
        nodes[i] = (node){ .kind = make_kind(i), .reads = -1, .assigns = -1 };
        nodes[i].raises = roll(3) == 0;
        nodes[i].chance = roll(2);
        if (nodes[i].kind > CALC || !some) continue;
        nodes[i].reads = roll(VARS + 1) - 1;
        nodes[i].assigns = roll(VARS + 1) - 1;
    }
    for (int to = 1; to < node_count; to++)
        for (int tries = 0; tries < 20 && !join(roll(to), to); tries++) {}
    for (int tries = roll(2 * node_count); tries; tries--)
        (void)join(roll(node_count), roll(node_count));
    for (int i = 0; i < node_count; i++) {
        int wants = nodes[i].kind >= RAISE ? 0 : nodes[i].kind == BRANCH ? 2 : 1;
        for (int tries = 0; tries < 20 && arcs_from(i, false) < wants; tries++)
            (void)join(i, i + 1 + roll(node_count - 1 - i));
        bool reached = !i;
        for (int k = 0; k < arc_count; k++) reached |= arcs[k].to == i;
        if (!reached || arcs_from(i, false) < wants) return false;
    }
    for (int i = 0; i < node_count; i++) {
        nodes[i].unsure = nodes[i].kind == HANDLER;
        for (int k = 0; k < arc_count; k++)
            nodes[i].unsure |= arcs[k].to == i && nodes[arcs[k].from].unsure;
    }
    return true;
}

/* ---- as IR */

static char ir_text[8000];
static size_t ir_length;

static void emit(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    ir_length +=
        (size_t)vsnprintf(ir_text + ir_length, sizeof ir_text - ir_length, format, arguments);
    va_end(arguments);
    assert_true(ir_length < sizeof ir_text);
}

#define ALL_VARS "[\"list\",[\"name\",\"v0\"],[\"name\",\"v1\"],[\"name\",\"v2\"]]"

static void emit_node(int i) {
    const node *n = &nodes[i];
    static const char *const kinds[] = { "ACTION",  "CALC",  "MERGE", "BRANCH",
                                         "HANDLER", "RAISE", "CALC" };
    bool ret = n->kind == END && where == IN_FUNCTION;
    emit(",{\"id\":\"n%d\",\"kind\":\"%s\"", i, ret ? "RET" : kinds[n->kind]);
    if (ret) emit(",\"value\":" ALL_VARS);
    if (n->kind == STEP) emit(",\"action\":\"a\"");
    if (n->kind == STEP && n->reads >= 0) emit(",\"args\":[[\"name\",\"v%d\"]]", n->reads);
    if (n->kind == STEP && n->assigns >= 0) emit(",\"into\":[\"name\",\"v%d\"]", n->assigns);
    if (n->kind == CALC && n->reads >= 0 && n->assigns < 0)
        emit(",\"do\":[[\"expr\",[\"name\",\"v%d\"]]]", n->reads);
    if (n->kind == CALC && n->assigns >= 0 && n->reads < 0)
        emit(",\"do\":[[\"assign\",%d,[\"name\",\"v%d\"]]]", i, n->assigns);
    if (n->kind == CALC && n->assigns >= 0 && n->reads >= 0)
        emit(",\"do\":[[\"assign\",[\"+\",[\"name\",\"v%d\"],%d],[\"name\",\"v%d\"]]]", n->reads,
             i + 1, n->assigns);
    if (n->kind == CALC && n->assigns < 0 && n->reads < 0) emit(",\"do\":[[\"expr\",1]]");
    if (n->kind == BRANCH) emit(",\"when\":[%s]", n->chance ? "true" : "false");
    if (n->kind == HANDLER) emit(",\"clauses\":[{}]");
    if (n->kind == RAISE) emit(",\"value\":[\"new\",\"ValueError\",[]]");
    emit("}");
}

static void emit_arcs(void) {
    int alternative[NODES] = { 0 };
    for (int k = 0; k < arc_count; k++) {
        const arc *a = &arcs[k];
        kind from = nodes[a->from].kind;
        emit(",[\"n%d\",\"n%d\"", a->from, a->to);
        if (a->except) emit(",\"EXCEPT\"]");
        else if (from == BRANCH || from == HANDLER) emit(",\"GUARD\",%d]", alternative[a->from]++);
        else emit("]");
    }
    for (int i = 0; i < node_count && where != IN_FUNCTION; i++)
        if (nodes[i].kind == END)
            emit(where == IN_BRANCH ? ",[\"n%d\",\"join\",\"JOIN\"]"
                                    : ",[\"n%d\",\"loop\",\"BACK\"]",
                 i);
}

/* `init` stands before the graph, and what is around it. */
static void emit_all(void) {
    static const char *const around[] = {
        "{\"id\":\"in\",\"kind\":\"ENTRY\"}",
        "{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"fan\",\"kind\":\"FAN_HEAD\",\"over\":["
        "\"list\",1,2]},"
        "{\"id\":\"join\",\"kind\":\"BARRIER\",\"give\":" ALL_VARS ",\"into\":[\"name\",\"all\"]},"
        "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"all\"]}",
        "{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"loop\",\"kind\":\"LOOP_HEAD\",\"over\":["
        "\"list\",1,2],"
        "\"into\":[\"name\",\"i\"]},{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":" ALL_VARS "}",
    };
    static const char *const edges[] = {
        "[\"in\",\"init\"]",
        "[\"in\",\"fan\"],[\"fan\",\"init\",\"ELEM\"],[\"join\",\"out\"]",
        "[\"in\",\"loop\"],[\"loop\",\"init\",\"CONTINUE\"],[\"loop\",\"out\",\"BREAK\"]",
    };
    ir_length = 0;
    emit("{\"heddle\":1,\"name\":\"w\",\"functions\":[");
    if (where == IN_FUNCTION)
        emit("{\"name\":\"run\",\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"c\","
             "\"kind\":\"CALL\","
             "\"function\":\"f\",\"args\":[],\"into\":[\"name\",\"r\"]},{\"id\":\"out\",\"kind\":"
             "\"RETURN\","
             "\"value\":[\"name\",\"r\"]}],\"edges\":[[\"in\",\"c\"],[\"c\",\"out\"]]},");
    emit("{\"name\":\"f\",\"nodes\":[%s,{\"id\":\"init\",\"kind\":\"CALC\",\"do\":[",
         around[where]);
    for (int v = 0; v < VARS; v++) emit("%s[\"assign\",0,[\"name\",\"v%d\"]]", v ? "," : "", v);
    emit("]}");
    for (int i = 0; i < node_count; i++) emit_node(i);
    emit("],\"edges\":[%s,[\"init\",\"n0\"]", edges[where]);
    emit_arcs();
    emit("]}]}");
}

/* ---- the game */

static uint8_t *seen; /* a bit for each state: the edges with a token */
static uint32_t *states;
static const char *fault;

static void find_state(uint32_t *count, uint32_t state) {
    if (seen[state / 8] >> state % 8 & 1) return;
    seen[state / 8] = (uint8_t)(seen[state / 8] | 1u << state % 8);
    states[(*count)++] = state;
}

static uint32_t into(int i) {
    uint32_t all = 0;
    for (int k = 0; k < arc_count; k++) all |= arcs[k].to == i ? 1u << k : 0;
    return all;
}

static bool takes_any(int i) { return nodes[i].kind == MERGE || nodes[i].kind == HANDLER; }

static bool is_ready(uint32_t state, int i) {
    uint32_t all = into(i);
    return takes_any(i) ? (state & all) != 0 : all && (state & all) == all;
}

static void put(uint32_t *state, int k) {
    if (*state >> k & 1 && !nodes[arcs[k].to].unsure) fault = "two tokens on an edge";
    *state |= 1u << k;
}

/* The states after node i: for each alternative that it has. */
static void play(uint32_t *count, uint32_t state, int i) {
    kind of = nodes[i].kind;
    uint32_t after = state & ~into(i), next = after;
    if (of == END && after) fault = "an end that is not the last";
    for (int k = 0; k < arc_count; k++) {
        uint32_t one = after;
        if (arcs[k].from != i) continue;
        if (of != BRANCH && of != HANDLER && !arcs[k].except) {
            put(&next, k);
            continue;
        }
        put(&one, k);
        find_state(count, one);
    }
    if (of != BRANCH && of != HANDLER) find_state(count, next);
}

static bool touches(int i, int v) { return nodes[i].reads == v || nodes[i].assigns == v; }

static void look(uint32_t state) {
    for (int i = 0; i < node_count; i++) {
        uint32_t here = state & into(i);
        if (nodes[i].kind == MERGE && here & (here - 1) && !nodes[i].unsure)
            fault = "two tokens before a MERGE";
        for (int j = 0; j < node_count; j++) {
            int v = nodes[i].assigns;
            if (i == j || v < 0 || nodes[i].unsure || nodes[j].unsure) continue;
            if (touches(j, v) && is_ready(state, i) && is_ready(state, j))
                fault = "a shared variable";
        }
    }
}

/* NULL: nothing can go wrong. */
static const char *find_fault(void) {
    uint32_t count = 0;
    fault = NULL;
    memset(seen, 0, (size_t)1 << (arc_count > 3 ? arc_count - 3 : 0));
    find_state(&count, 0);
    count = 0;
    play(&count, 0, 0);
    for (uint32_t k = 0; k < count && !fault; k++) {
        look(states[k]);
        for (int i = 1; i < node_count && !fault; i++)
            if (is_ready(states[k], i)) play(&count, states[k], i);
    }
    return fault;
}

/* ---- the engine */

static strand *pick_strand(const instance *in) {
    strand *found = NULL;
    int count = 0;
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_READY && roll(++count) == 0) found = s;
    }
    return found;
}

static hd_status complete(instance *in, strand *s) {
    int i = atoi(strand_node(s)->id + 1);
    if (!nodes[i].raises)
        return walk_result(in, s, ev_int(hd_value_as_int(hd_value_index(s->args, 0), 0) + 100 + i));
    (void)raise_f(w, CLASS_ValueError, "x");
    return walk_raise(in, s, raise_catch(w));
}

static const char *walk_all(plan *p) {
    instance *in;
    doc_writer out = { NULL, apply };
    document = hd_object();
    assert_int_equal(instance_open(w, p, &steps_begun, &in), HD_OK);
    assert_int_equal(walk_begin(in, NULL), HD_OK);
    assert_int_equal(instance_save(in, &out), HD_OK);
    while (!instance_is_over(in)) {
        if (roll(4) == 0) in = load_again(in, p);
        strand *s = pick_strand(in);
        if (!s) fail_msg("nothing to wait for: %s", ir_text);
        assert_int_equal(complete(in, s), HD_OK);
        assert_int_equal(instance_save(in, &out), HD_OK);
    }
    hd_value end[] = { hd_int(pool, in->status), hd_value_at(document, "result") };
    if (!hd_value_exists(end[1])) end[1] = hd_null();
    instance_close(in);
    return hd_json_print(pool, hd_array_of(pool, end, 2), HD_JSON_COMPACT, NULL);
}

static void compare_orders(plan *p) {
    const char *first = walk_all(p);
    for (int i = 0; i < 4; i++) {
        const char *other = walk_all(p);
        if (strcmp(first, other) != 0)
            fail_msg("%s in another order: %s\n%s", first, other, ir_text);
    }
}

/* ---- */

static long taken, refused, forks;

static bool is_of_ways(const char *why) {
    return strstr(why, "begins at once") || strstr(why, "begins several ways");
}

static void compare(uint64_t seed) {
    hd_error error = { 0 };
    plan *p;
    if (!make_graph(seed)) return;
    emit_all();
    hd_value ir = hd_json_parse(pool, ir_text, ir_length, &error);
    if (!hd_value_exists(ir)) fail_msg("%s: %s", error.message, ir_text);
    hd_status status = plan_make(w, heap, ir, &p, &error);
    if (status && !is_of_ways(error.message)) {
        hd_pool_clear(pool);
        return;
    }
    const char *why = find_fault();
    if (!status && why)
        fail_msg("seed %llu: %s, and it is taken: %s", (unsigned long long)seed, why, ir_text);
    if (status && plain && !why)
        fail_msg("seed %llu: nothing is wrong, but %s: %s", (unsigned long long)seed, error.message,
                 ir_text);
    refused += status != HD_OK;
    taken += !status;
    for (int i = 0; !status && i < node_count; i++) {
        if (nodes[i].kind > MERGE || arcs_from(i, false) < 2) continue;
        forks++;
        break;
    }
    if (!status) {
        compare_orders(p);
        plan_unref(p);
    }
    hd_pool_clear(pool);
}

/* W4. */
static void ways_that_are_taken_come_to_one_result(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_WORKFLOWS");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    long n = given ? 1 : count ? atol(count) : 20000;
    seen = malloc((size_t)1 << (EDGES - 3));
    states = malloc(((size_t)1 << EDGES) * sizeof *states);
    assert_true(seen && states);
    for (long i = 0; i < n; i++) compare(seed++);
    free(states);
    free(seen);
    print_message("%ld taken, %ld of them with forks, %ld refused\n", taken, forks, refused);
    assert_true(n < 1000 || (forks > n / 50 && refused > n / 50));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ways_that_are_taken_come_to_one_result, open_world,
                                        close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

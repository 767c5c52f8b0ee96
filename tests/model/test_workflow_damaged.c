/* test_workflow_damaged.c -- documents of instances under way are damaged at random, and an engine takes them up: each
 * instance goes on, or stalls with a reason; nothing crashes.
 *
 * HD_WORKFLOW_DAMAGES: so many worlds; HD_SEED: which. */
#define _DEFAULT_SOURCE
#include "random_flow.h"
#include "times.h"
#include "workflow_world.h"

enum { INSTANCES = 6, ROUNDS = 6, PLACES = 4000, CELLS = 400 };

static lab_random dice;
static uint64_t seed;
static long damaged, stalled, ended;

static uint64_t roll(uint64_t n) { return lab_random_below(&dice, n); }

static void register_actions(hd_engine *e) {
    assert_int_equal(random_flow_actions(e, true), HD_OK);
}

/* ---- workflows */

static void finish(hd_flow *f) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
}

/* Everything that the document of an instance has a form for waits at the same time. */
static void register_mixed(void) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "mixed", &f), HD_OK);
    hd_flow_do(f, "found = []; seen = {}; k = ValueError('k'); both = {(1, 2): found, 'a': {3}}");
    hd_flow_for(f, "i", "{'a': 1, 'b': 2}.items()");
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_each(f, "n", "range(3)");
    hd_flow_call(f, "n", "half", "n");
    hd_flow_join(f, "got", "n");
    hd_flow_branch(f);
    hd_flow_wait(f, "s", "go", "30");
    hd_flow_branch(f);
    hd_flow_try(f);
    hd_flow_child(f, "c", "kid", "");
    hd_flow_except(f, "Exception", "e");
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_while(f, "True");
    hd_flow_action(f, "x", "fussy", "n=3");
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 3, .backoff_s = 5 });
    hd_flow_limit(f, "'one'", 1);
    hd_flow_break(f);
    hd_flow_end(f);
    hd_flow_join(f, "got", "1");
    hd_flow_mode(f, "settled");
    hd_flow_do(f,
               "found.append(i); seen[len(seen)] = got; both[3.5] = k; k.__cause__ = KeyError(1)");
    hd_flow_end(f);
    hd_flow_return(f, "[found, len(both)]");
    hd_flow_function(f, "half", "n");
    hd_flow_sleep(f, "n + 1");
    hd_flow_return(f, "n // 2");
    finish(f);
}

static void register_kid(void) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "kid", &f), HD_OK);
    hd_flow_sleep(f, "3");
    hd_flow_return(f, "7");
    finish(f);
}

static void register_random(int i) {
    char name[16];
    hd_value ir;
    hd_error error = { 0 };
    snprintf(name, sizeof name, "w%d", i);
    if (random_flow(pool, name, seed * 100 + (uint64_t)i, &ir, &error) ||
        hd_workflow_register(engine, ir, NULL, &error))
        fail_msg("%s", error.message);
}

/* ---- damage */

typedef struct place {
    hd_path at;
    hd_value v;
} place;

static place places[PLACES];
static int place_count;

static hd_path below(hd_path at, const hd_iter *it, size_t index) {
    hd_heap *heap = hd_runtime_heap(rt);
    char digits[24];
    hd_path out;
    snprintf(digits, sizeof digits, "%zu", index);
    const char *key = it->key ? it->key : digits;
    assert_int_equal(hd_path_join(heap, at, key, it->key ? it->key_length : strlen(key), &out),
                     HD_OK);
    return out;
}

/* Every place in the document; those behind the last are inside those before. */
static void find_places(hd_value doc) {
    places[0] = (place){ HD_PATH_ROOT, doc };
    place_count = 1;
    for (int i = 0; i < place_count; i++) {
        size_t index = 0;
        for (hd_iter it = hd_iter_of(places[i].v); hd_iter_next(&it) && place_count < PLACES;)
            places[place_count++] = (place){ below(places[i].at, &it, index++), it.value };
    }
}

static hd_value anything(void) {
    static const char *const texts[] = { "null",
                                         "true",
                                         "0",
                                         "-1",
                                         "1",
                                         "3",
                                         "4294967295",
                                         "4294967296",
                                         "9223372036854775807",
                                         "1.5",
                                         "''",
                                         "'x'",
                                         "'entry'",
                                         "'running'",
                                         "'queued'",
                                         "'paused'",
                                         "'done'",
                                         "[]",
                                         "{}",
                                         "[0]",
                                         "[[]]",
                                         "{'x':1}",
                                         "{'1':1}",
                                         "{'1':{}}",
                                         "{'1':[]}",
                                         "{'$$ref':1}",
                                         "{'$$ref':99}",
                                         "{'$$ref':1,'view':'items'}",
                                         "{'$$range':[0,3,1]}",
                                         "{'$$range':[1]}",
                                         "{'$$tuple':[1,2]}",
                                         "{'$$list':[1],'from':1}",
                                         "{'$$list':[[],2],'from':-1}",
                                         "{'$$set':[1,[]]}",
                                         "{'$$error':'E','args':[],'attrs':[1]}",
                                         "{'$$iterator':'x'}",
                                         "{'$$type':'int'}" };
    return parse(texts[roll(sizeof texts / sizeof *texts)]);
}

/* One change of a value that the store takes: another value, none, or what stands elsewhere in the document. */
static hd_value damage(hd_value doc) {
    find_places(doc);
    const place *p = &places[roll(roll(2) ? (uint64_t)place_count : (uint64_t)place_count / 3 + 1)];
    hd_value next;
    switch (roll(4)) {
    case 0: next = hd_value_remove(pool, doc, p->at); break;
    case 1: next = hd_value_set(pool, doc, p->at, places[roll((uint64_t)place_count)].v); break;
    case 2:
        if (hd_value_kind(p->v) == HD_KIND_INT) {
            next = hd_value_set(pool, doc, p->at,
                                hd_int(pool, hd_value_as_int(p->v, 0) + (int64_t)roll(7) - 3));
            break;
        }
        /* fall through */
    default: next = hd_value_set(pool, doc, p->at, anything());
    }
    return hd_value_exists(next) ? next : doc;
}

static bool is_running(hd_value doc) {
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    return !strcmp(status, "running") || !strcmp(status, "paused");
}

static hd_cell cells[CELLS];
static int cell_count;

static bool note_cell(const hd_workflow_entry *entry, void *ctx) {
    cells[cell_count++] = hd_workflow_cell(engine, entry->id);
    return cell_count < CELLS;
}

/* No engine is open. */
static void damage_some(void) {
    for (int i = 0; i < cell_count; i++) {
        hd_value doc = hd_read(rt, pool, cells[i]);
        if (!is_running(doc) || !roll(3)) continue;
        for (uint64_t n = 1 + roll(3); n-- > 0;) doc = damage(doc);
        if (getenv("HD_SEED")) print_message("%s\n", printed(doc));
        damaged++;
        assert_int_equal(hd_write(rt, cells[i], doc), HD_OK);
    }
}

static bool count_one(const hd_workflow_entry *entry, void *ctx) {
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, entry->id));
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    stalled += !strcmp(status, "stalled");
    ended += !strcmp(status, "done") || !strcmp(status, "failed");
    return true;
}

/* ---- worlds */

static void turn_for(uint64_t turns) {
    for (uint64_t i = 0; i < turns; i++) {
        (void)hd_runtime_pump(rt);
        lab_env_advance_ms(env, roll(1500));
    }
}

static void signal_one(const char *key) {
    char which[32];
    snprintf(which, sizeof which, "mixed/%s", key);
    (void)hd_workflow_signal(engine, which, roll(2) ? "go" : "went", hd_null());
}

static void start_all(void) {
    for (int i = 0; i < INSTANCES; i++) {
        char name[16], key[16];
        snprintf(name, sizeof name, i < 3 ? "mixed" : "w%d", i);
        snprintf(key, sizeof key, "%d", i);
        start_keyed(name, key, "{}");
        if (!roll(2)) signal_one(key);
    }
}

static void run_world(void) {
    dice = lab_random_of(seed);
    env = lab_env_open();
    open_store();
    register_kid();
    register_mixed();
    for (int i = 3; i < INSTANCES; i++) register_random(i);
    start_all();
    for (int round = 0; round < ROUNDS; round++) {
        turn_for(roll(6));
        pump();
        cell_count = 0;
        assert_int_equal(hd_workflow_list(engine, NULL, note_cell, NULL), HD_OK);
        hd_engine_close(engine);
        damage_some();
        assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
        register_actions(engine);
        hd_pool_clear(pool);
    }
    turn_for(300);
    assert_int_equal(hd_workflow_list(engine, NULL, count_one, NULL), HD_OK);
    close_store();
    lab_env_close(env);
}

static void damaged_documents_stall_or_go_on(void **state) {
    const char *given = getenv("HD_SEED");
    uint64_t n = given ? 1 : lab_times("HD_WORKFLOW_DAMAGES", LAB_SLOW ? 60 : 250);
    for (uint64_t i = 1; i <= n; i++) {
        seed = given ? strtoull(given, NULL, 0) : i;
        run_world();
    }
    print_message("%ld damaged, %ld stalled, %ld ended\n", damaged, stalled, ended);
    assert_true(given || (stalled > damaged / 20 && ended > 0));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(damaged_documents_stall_or_go_on) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

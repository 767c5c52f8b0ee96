/* test_workflow_engine.c -- random workflows through the engine, against a direct interpretation.
 *
 * The programs of workflow_programs.h, with some calls as child workflows, run in an engine on a store. Steps are
 * claimed by two workers and completed in a random order; completions come twice or with old tokens; workers lose
 * steps, give them back, or leave; now and then the engine drops everything from memory, as after a crash, and
 * takes it up from the store. Signals come early or late, instances and queues are paused for a while, and steps share
 * queues and limits with those of a second instance of the same program that runs beside the first. The results are
 * that of the interpretation, and each step has its effect once: as many different steps complete, with the same
 * arguments, as actions are called, and an action within a transaction has written once for each success (W1, W4). */
#define _DEFAULT_SOURCE
#include "lab.h"
#include "workflow/engine.h"

#include "workflow_programs.h"

enum { HELD_MAX = 64, STEPS_MAX = 20000 };
#ifdef NDEBUG
enum { PROGRAMS = 2000 };
#else
enum { PROGRAMS = 1000 };
#endif

static lab_env *env;
static hd_memory *memory;
static hd_runtime *rt, *writer;
static hd_engine *engine;
static hd_pool *pool;
static long completed, crashes, losses, twices, families, skipped, signals, spoilt, pauses, effects,
    interferences;

/* ---- workers */

typedef struct held {
    uint64_t token;
    long x;
    char id[HD_INSTANCE_ID_SIZE + 32];
} held;

static worker workers[2];
static held mine[HELD_MAX];
static int held_count;

static void note_offer(worker *w) { (void)w; }
static const worker_ops ops = { .offer = note_offer };

static void join_worker(worker *w) {
    *w = (worker){ .ops = &ops, .capacity = HELD_MAX / 2 };
    worker_join(engine, w);
    assert_int_equal(worker_serve(w, "act"), HD_OK);
}

static void claim_some(void) {
    task_view t;
    for (int n = roll(4); n-- > 0 && held_count < HELD_MAX;) {
        if (!task_claim(&workers[roll(2)], &t)) continue;
        held *h = &mine[held_count++];
        h->token = t.token;
        h->x = (long)hd_value_as_int(hd_value_index(t.args, 0), -1);
        assert_in_range(h->x, 0, ARGUMENTS * 2 - 1);
        memcpy(h->id, t.id, sizeof h->id);
    }
}

/* ---- which steps have completed */

typedef struct done {
    uint64_t hash;
    long x;
} done;
static done dones[STEPS_MAX];
static int done_count;

/* A step that completes again, because what it did was not stored, has the same arguments. */
static void note_done(const held *h) {
    uint64_t hash = 1469598103934665603u;
    for (const char *c = h->id; *c; c++) hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    for (int i = 0; i < done_count; i++) {
        if (dones[i].hash != hash) continue;
        assert_int_equal(dones[i].x, h->x);
        return;
    }
    assert_true(done_count < STEPS_MAX);
    dones[done_count++] = (done){ hash, h->x };
    engine_calls[h->x % ARGUMENTS]++;
}

static hd_status finish(const held *h) {
    bool failed;
    int y = act((int)(h->x % ARGUMENTS), &failed);
    if (failed) return task_fail(engine, h->token, "ValueError", "act");
    return task_complete(engine, h->token, hd_int(pool, y));
}

static int lost_now; /* of this program: below TASK_LOST_MAX */

static void do_one(void) {
    if (!held_count) return;
    int i = roll(held_count), what = roll(12);
    held h = mine[i];
    mine[i] = mine[--held_count];
    if (what == 0) {
        (void)task_give_back(engine, h.token);
    } else if (what == 1 && lost_now < TASK_LOST_MAX - 2) {
        lost_now++;
        losses += !task_lost(engine, h.token);
    } else {
        hd_status status = finish(&h);
        if (!status) note_done(&h), completed++;
        if (!status && what == 2) {
            assert_int_equal(finish(&h), HD_NOT_FOUND); /* W1 */
            twices++;
        }
    }
}

static void leave_and_join(void) {
    worker *w = &workers[roll(2)];
    if (lost_now >= TASK_LOST_MAX - 2) return;
    lost_now++;
    worker_leave(w);
    join_worker(w);
}

/* What was not stored never was. */
static void crash(void) {
    engine_stand_down(engine);
    engine->shards->shall_rise = true;
    crashes++;
}

/* ---- what comes from outside */

/* Another program writes what an action has read, before the action's commit arrives: the store refuses that commit,
 * and the action runs again. */
static hd_status add_one(hd_tx *tx, void *ctx) {
    hd_cell cell = hd_cell_at(writer, "main/effects");
    (void)ctx;
    return hd_tx_set_int(tx, cell, hd_value_as_int(hd_tx_get(tx, cell), 0) + 1);
}

static void interfere(void) {
    assert_int_equal(hd_transact(writer, add_one, NULL), HD_OK);
    interferences++;
}

enum { VALUE_MAX = 10000 };

/* Where it is to fail it raises an exception, or the store refuses its commit for good, or the engine its result. */
static hd_status effect(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    bool failed;
    hd_tx *tx = hd_action_tx(a);
    hd_cell cell = hd_cell_at(rt, "main/effects");
    long x = (long)hd_value_as_int(hd_value_index(args, 0), -1);
    int y = act((int)(x % ARGUMENTS), &failed);
    int64_t before = hd_value_as_int(hd_tx_read(tx, cell, 0), 0);
    hd_status status = hd_tx_set(tx, cell, hd_int(hd_action_pool(a), before + 1));
    if (status) return status;
    if (failed && x % 2) return hd_tx_require_absent(tx, hd_cell_at(rt, "main/taken"));
    if (failed && x % 3 == 0)
        return hd_action_return(a, hd_string_f(hd_action_pool(a), "%*d", VALUE_MAX, 0));
    if (failed) return hd_action_raise(a, "ValueError", "effect");
    effects++;
    if (roll(4) == 0) interfere();
    return hd_action_return(a, hd_int(hd_action_pool(a), y));
}

static long effects_stored(void) {
    return (long)hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "main/effects")), 0);
}

enum { FOUND_MAX = 32 };
typedef struct found {
    char id[HD_INSTANCE_ID_SIZE];
    int signal; /* -1: none */
} found;
static found all_found[FOUND_MAX];
static int found_count;

static void note_found(const live *l, int signal) {
    if (found_count == FOUND_MAX) return;
    snprintf(all_found[found_count].id, HD_INSTANCE_ID_SIZE, "%s", l->id);
    all_found[found_count++].signal = signal;
}

/* Instances, and what they wait for: calls may end any of them. */
static void find_instances(void) {
    found_count = 0;
    LIST_FOR (n, &engine->lives) {
        const live *l = LIST_ENTRY(n, live, link);
        if (!l->in) continue;
        note_found(l, -1);
        LIST_FOR (k, &l->in->strands) {
            const strand *s = LIST_ENTRY(k, strand, link);
            if (s->state == STRAND_SIGNAL) note_found(l, atoi(strand_node(s)->name + 1));
        }
    }
}

/* No value of a workflow: deeper than one may be, or no encoding of one. */
static hd_value spoilt_payload(void) {
    static const char *const forms[] = { "{\"$$ref\":1}", "{\"$$set\":[[1]]}", "{\"$$dict\":[1]}",
                                         "{\"$$range\":[\"a\"]}", "{\"$$type\":\"none\"}" };
    const char *form = forms[roll(5)];
    hd_value v = hd_json_parse(pool, form, strlen(form), NULL);
    assert_true(hd_value_exists(v));
    if (roll(2)) return v;
    for (int i = 0; i < 300; i++) v = hd_array_append(pool, hd_array(), v);
    return v;
}

static void send_signal(const char *id, int n) {
    char name[8];
    bool spoils = roll(5) == 0;
    snprintf(name, sizeof name, "s%d", n);
    bool sent = !hd_workflow_signal(engine, id, name, spoils ? spoilt_payload() : hd_int(pool, n));
    signals += sent;
    spoilt += sent && spoils;
}

/* Signals that nothing waits for yet are kept, or refused where the workflow has none of the name. */
static void disturb(void) {
    find_instances();
    for (int i = 0; i < found_count; i++) {
        found *f = &all_found[i];
        if (f->signal >= 0 && roll(2)) send_signal(f->id, f->signal);
        if (f->signal < 0 && roll(20) == 0) send_signal(f->id, roll(10));
        if (f->signal < 0 && roll(30) == 0) pauses += !hd_workflow_pause(engine, f->id);
        if (f->signal < 0 && roll(4) == 0) (void)hd_workflow_resume(engine, f->id);
    }
    if (roll(20)) return;
    hd_queue q = { .name = roll(2) ? "q0" : "q1",
                   .most = (uint32_t)roll(3),
                   .paused = roll(4) == 0 };
    assert_int_equal(hd_queue_put(engine, &q), HD_OK);
}

static void open_queues(void) {
    for (int i = 0; i < 2; i++) {
        hd_queue q = { .name = i ? "q0" : "q1", .most = 1 };
        assert_int_equal(hd_queue_put(engine, &q), HD_OK);
    }
}

/* ---- a run */

static bool is_over(const char *id) {
    hd_value doc = engine_read(engine, pool, INSTANCE_PREFIX, id);
    return !live_find(engine, id) && control_is_over(doc);
}

static void pump(void) {
    while (hd_runtime_pump(rt) == HD_PENDING) {}
    task_check(engine);
}

static void drive(const char *id, const char *other, const char *beside) {
    held_count = done_count = lost_now = 0;
    for (long turn = 0; !is_over(id) || !is_over(other) || !is_over(beside); turn++) {
        if (turn > 200000) fail_msg("%s does not end", id);
        pump();
        disturb();
        claim_some();
        for (int n = roll(3); n-- > 0;) do_one();
        if (roll(25) == 0) crash();
        if (roll(80) == 0) leave_and_join();
        if (!held_count && !engine->ready_count) lab_env_advance_ms(env, 100000);
        if (turn % 64 == 0) hd_pool_clear(pool);
    }
}

static void register_program(uint64_t seed) {
    for (int f = 0; f < FUNCTIONS; f++) {
        hd_error error = { 0 };
        emit_all(f);
        hd_value ir = hd_json_parse(pool, ir_text, ir_length, &error);
        if (!hd_value_exists(ir) || hd_workflow_register(engine, ir, NULL, &error))
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, error.message, ir_text);
    }
}

/* So many effects has a second workflow, "beside", whose instance has neither parent nor children. */
enum { BESIDE = 4 };

static void register_beside(void) {
    hd_error error = { 0 };
    bool failed = true;
    int x = -1;
    while (failed) (void)act(++x, &failed);
    hd_value source = hd_string_f(
        pool,
        "{\"heddle\":1,\"name\":\"beside\",\"functions\":[{\"name\":\"run\",\"nodes\":["
        "{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"each\",\"kind\":\"LOOP_HEAD\",\"over\":"
        "[\"call\",\"range\",[%d]],\"into\":[\"name\",\"i\"]},{\"id\":\"do\",\"kind\":\"ACTION\","
        "\"action\":\"effect\",\"args\":[%d]},{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":0}],"
        "\"edges\":[[\"in\",\"each\"],[\"each\",\"do\",\"CONTINUE\"],[\"do\",\"each\",\"BACK\"],"
        "[\"each\",\"out\",\"BREAK\"]]}]}",
        BESIDE, x);
    size_t length;
    const char *chars = hd_value_text(source, &length);
    hd_value ir = hd_json_parse(pool, chars, length, &error);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
}

static void compare_end(uint64_t seed, const char *id, bool raises, long right) {
    hd_value doc = engine_read(engine, pool, INSTANCE_PREFIX, id);
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    long result = (long)hd_value_as_int(hd_value_at(doc, "result"), -1);
    if (strcmp(status, raises ? "failed" : "done") != 0 || (!raises && result != right))
        fail_msg("seed %llu: %s, result %ld instead of %ld: %s", (unsigned long long)seed, status,
                 result, right,
                 hd_json_print(pool, hd_value_at(doc, "error"), HD_JSON_COMPACT, NULL));
}

static void compare(uint64_t seed) {
    char id[HD_INSTANCE_ID_SIZE], other[HD_INSTANCE_ID_SIZE], beside[HD_INSTANCE_ID_SIZE];
    bool raises;
    long right;
    make_program(seed);
    long input = roll(ARGUMENTS);
    if (!interpret(input, &raises, &right)) {
        skipped++;
        return;
    }
    register_program(seed);
    hd_value given = hd_object_set(pool, hd_object(), "v0", hd_int(pool, input));
    assert_int_equal(hd_workflow_start(engine, "w0", given, NULL, id), HD_OK);
    assert_int_equal(hd_workflow_start(engine, "w0", given, NULL, other), HD_OK);
    assert_int_equal(hd_workflow_start(engine, "beside", hd_object(), NULL, beside), HD_OK);
    uint64_t started = engine->stats.started;
    long before = effects_stored() - interferences;
    open_queues();
    drive(id, other, beside);
    families += engine->stats.started > started;
    compare_end(seed, id, raises, right);
    compare_end(seed, other, raises, right);
    for (int i = 0; i < ARGUMENTS * 2; i++) naive_calls[i] *= 2; /* there were two instances */
    long had = effects_stored() - interferences - before;
    if (had != 2 * naive_effects + BESIDE)
        fail_msg("seed %llu: %ld effects instead of %ld", (unsigned long long)seed, had,
                 2 * naive_effects + BESIDE);
    if (memcmp(naive_calls, engine_calls, sizeof naive_calls) != 0)
        fail_msg("seed %llu: other actions", (unsigned long long)seed);
    assert_int_equal(engine->stats.open, 0);
    hd_pool_clear(pool);
}

static void a_random_workflow_means_what_it_says_whatever_its_workers_do(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_WORKFLOWS");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    long n = given ? 1 : count ? atol(count) : PROGRAMS;
    children = rich = true;
    for (long i = 0; i < n; i++, seed++) compare(given ? seed : seed * 104729);
    print_message("%ld completions, %ld crashes, %ld lost, %ld twice, %ld with children, %ld too "
                  "long, %ld signals, %ld of them spoilt, %ld pauses, %ld effects, "
                  "%ld of them refused\n",
                  completed, crashes, losses, twices, families, skipped, signals, spoilt, pauses,
                  effects, interferences);
    assert_true(n < 1000 || (completed > n && crashes > n / 4 && losses > n / 10 &&
                             twices > n / 10 && families > n / 20 && skipped < n / 4));
    assert_true(n < 1000 || (signals > n / 10 && spoilt > n / 50 && pauses > n / 10 &&
                             effects > n / 4 && interferences > n / 20));
}

static int set_up(void **state) {
    hd_error error;
    env = lab_env_open();
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    options.memory = memory;
    assert_int_equal(hd_open(NULL, &options, &rt, &error), HD_OK);
    assert_int_equal(hd_open(NULL, &options, &writer, &error), HD_OK);
    assert_int_equal(
        hd_engine_open(rt, &(hd_engine_options){ .value_max = VALUE_MAX }, &engine, &error), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < 2; i++) join_worker(&workers[i]);
    hd_action_spec spec = { .name = "effect", .fn = effect, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/taken"), "1"), HD_OK);
    register_beside();
    return 0;
}

static int tear_down(void **state) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_close(writer), HD_OK);
    hd_memory_close(memory);
    lab_env_close(env);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_random_workflow_means_what_it_says_whatever_its_workers_do, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_sim.c -- many machines, one seed: safety under faults, then liveness, and mutants that must be found.
 *
 * In every second world each machine has an engine, and workflows are started too. Two rare events, that the row of a
 * commit in doubt is pruned and that a machine is wrongly taken for dead, are made frequent in every third world in
 * which a mutant is looked for; with HD_SIM_RARE in every third of all worlds.
 * HD_SIM_SEEDS: how many worlds (default 2,000 without assertions, fewer with them). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sabotage.h"
#include "sim_service.h"
#include "sim_world.h"
#include <heddle/workflow.h>
#include <heddle/workflow_build.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NDEBUG
enum { SEEDS = 2000 };
#else
enum { SEEDS = 250 };
#endif

static uint64_t seed_count(void) {
    const char *given = getenv("HD_SIM_SEEDS");
    return given ? strtoull(given, NULL, 10) : SEEDS;
}

/* S1, S2, S8, S11, S12: whatever fails, what was acknowledged is there, once, on every machine. */
static void every_world_comes_to_rest_and_is_right(void **state) {
    uint64_t first = hd_lab_seed(), n = seed_count();
    sim_counts counts = { 0 };
    for (uint64_t i = 0; i < n; i++) {
        const char *wrong = sim_world_run(first + i, 0, &counts);
        if (wrong) fail_msg("%s", wrong);
    }
    print_message("%llu worlds: %llu acknowledged, %llu refused, %llu unknown, %llu events, %llu "
                  "workflows, %llu races, "
                  "%llu kills, %llu cuts\n",
                  (unsigned long long)n, (unsigned long long)counts.acknowledged,
                  (unsigned long long)counts.refused, (unsigned long long)counts.unknown,
                  (unsigned long long)counts.handled, (unsigned long long)counts.flows,
                  (unsigned long long)counts.races, (unsigned long long)counts.kills,
                  (unsigned long long)counts.cuts);
    assert_true(counts.acknowledged && counts.refused && counts.handled && counts.flows &&
                counts.races);
}

/* What went wrong: an engine that was cut off tried again without a pause; a transaction that hd_close ended used its
 * engine, which was gone; an engine that had just got a shard found steps of a process whose announcement was removed
 * at that moment, and never removed them; an engine was told of an announcement when it was removed already, and left
 * the documents with steps that came with it; a row that failed half way was told again, and a document that was
 * loaded in between had the sequence number of a commit that it lacked; a process that was taken for dead announced
 * itself again and was removed again before an engine looked, which left the documents with steps of its shards;
 * signals that a machine was told to be stored were in commits of which the store did not know. */
static void worlds_that_went_wrong_once_are_right(void **state) {
    static const uint64_t seeds[] = { 20200345, 20200415, 40004153, 331923,     339675,
                                      363555,   3015559,  199323,   2026141899, 300066583 };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        sim_counts counts = { 0 };
        const char *wrong = sim_world_run(seeds[i], 0, &counts);
        if (wrong) fail_msg("%s", wrong);
    }
}

static void a_seed_gives_the_same_world_again(void **state) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        sim_counts one = { 0 }, two = { 0 };
        assert_null(sim_world_run(seed, 0, &one));
        assert_null(sim_world_run(seed, 0, &two));
        assert_int_equal(one.digest, two.digest);
        assert_int_equal(one.acknowledged, two.acknowledged);
    }
}

/* A writer knows of rows that its runtime has been told: it reads them before it appends, and loses no race. */
static void an_answer_loses_no_race(void **state) {
    /* The seed chooses whether the store is optimistic (log_store.optimistic). */
    for (uint64_t seed = 1; seed <= 8; seed++) {
        hd_lab_env *env = hd_lab_env_open();
        hd_runtime *rt[2];
        hd_error error;
        sim_service *service = sim_service_open(seed);
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(sim_service_runtime(service, i, hd_lab_env_of(env), &rt[i], &error),
                             HD_OK);
        for (int i = 0; i < 10; i++) {
            hd_runtime *me = rt[i % 2];
            hd_lab_env_advance_ms(env, 1000); /* so that the pump looks for rows */
            assert_int_equal(hd_runtime_pump(me), HD_OK);
            assert_int_equal(hd_write_json(me, hd_cell_at(me, "main/n"), i % 3 ? "1" : "2"), HD_OK);
            assert_int_equal(hd_runtime_sync(me), HD_OK);
        }
        assert_int_equal(sim_service_races(service), 0);
        hd_close(rt[0]);
        hd_close(rt[1]);
        sim_service_close(service);
        hd_lab_env_close(env);
    }
}

/* ---- A commit in doubt, and a log that was pruned */

static void count_accepted(hd_status status, void *ctx) { *(int *)ctx += status == HD_OK; }

static void add_one(hd_runtime *rt, int *accepted) {
    hd_tx *tx;
    hd_cell n = hd_cell_at(rt, "main/n");
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, n, hd_value_as_int(hd_tx_get(tx, n), 0) + 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, count_accepted, accepted), HD_OK);
}

static int64_t read_n(hd_runtime *rt, const char *name) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    int64_t n = hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, name)), 0);
    hd_pool_close(pool);
    return n;
}

/* A row that the second machine has not seen is pruned. Then it commits and is not told, the first one commits after
 * it, and the second one loads a document: it has to read the store anew while its own commit is in doubt. */
static void nothing_is_read_through_a_commit_that_a_reload_has_brought(void **state) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        hd_lab_env *env = hd_lab_env_open();
        hd_runtime *rt[2];
        hd_error error;
        int accepted = 0;
        sim_service *service = sim_service_open(seed);
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(sim_service_runtime(service, i, hd_lab_env_of(env), &rt[i], &error),
                             HD_OK);
        assert_int_equal(read_n(rt[1], "main/n"), 0);
        for (int i = 0; i < 2; i++) { /* the last row may stay */
            hd_cell other = hd_cell_at(rt[0], "main/other");
            assert_int_equal(hd_write_json(rt[0], other, i ? "2" : "1"), HD_OK);
            assert_int_equal(hd_runtime_sync(rt[0]), HD_OK);
        }
        assert_int_equal(hd_store_prune(rt[0], NULL), HD_OK);
        sim_service_silence(service, 1);
        add_one(rt[1], &accepted);
        for (int i = 0; i < 3; i++) (void)hd_runtime_pump(rt[1]);
        hd_lab_env_advance_ms(env, 1000); /* so that the pump looks for rows */
        assert_int_equal(hd_runtime_pump(rt[0]), HD_OK);
        add_one(rt[0], &accepted);
        assert_int_equal(hd_runtime_sync(rt[0]), HD_OK);
        sim_service_set_line(service, 1, SIM_UP);
        (void)read_n(rt[1], "main/other");
        (void)hd_runtime_pump(rt[1]); /* says what kept the writer from writing */
        add_one(rt[1], &accepted);
        assert_int_equal(hd_runtime_sync(rt[1]), HD_OK);
        assert_int_equal(read_n(rt[1], "main/n"), accepted);
        assert_true(accepted >= 2);
        hd_close(rt[0]);
        hd_close(rt[1]);
        sim_service_close(service);
        hd_lab_env_close(env);
    }
}

typedef struct verdicts {
    hd_status of[3];
    int count;
} verdicts;

static void take_verdict(hd_status status, void *ctx) {
    verdicts *v = ctx;
    assert_in_range(v->count, 0, 2);
    v->of[v->count++] = status;
}

static void create(hd_runtime *rt, const char *name, verdicts *v) {
    hd_tx *tx;
    hd_cell at = hd_cell_at(rt, name);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_require_absent(tx, at), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, at, 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, take_verdict, v), HD_OK);
}

/* The row of three commits is stored, the second one of which was refused, and the machine is not told. While it finds
 * that out, one allocation fails. */
static bool recover_without_memory(uint64_t seed, uint64_t nth) {
    hd_lab_env *env = hd_lab_env_open();
    hd_runtime *rt;
    hd_error error;
    verdicts v = { 0 };
    sim_service *service = sim_service_open(seed);
    assert_int_equal(sim_service_runtime(service, 0, hd_lab_env_of(env), &rt, &error), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/there"), "1"), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    create(rt, "main/a", &v);
    create(rt, "main/there", &v);
    create(rt, "main/b", &v);
    sim_service_silence(service, 0);
    for (int i = 0; i < 3; i++) (void)hd_runtime_pump(rt);
    assert_int_equal(v.count, 0);
    sim_service_set_line(service, 0, SIM_UP);
    hd_lab_env_fail_at(env, nth);
    (void)hd_runtime_pump(rt);
    bool failed = hd_lab_env_failed(env);
    hd_lab_env_fail_at(env, 0);
    for (int i = 0; i < 100 && v.count < 3; i++) (void)hd_runtime_sync(rt);
    assert_int_equal(v.count, 3);
    assert_int_equal(v.of[0], HD_OK);
    assert_int_not_equal(v.of[1], HD_OK);
    assert_int_equal(v.of[2], HD_OK);
    hd_close(rt);
    sim_service_close(service);
    hd_lab_env_close(env);
    return failed;
}

static void a_lost_acknowledgement_is_found_without_memory(void **state) {
    for (uint64_t seed = 1; seed <= 4; seed++)
        for (uint64_t nth = 1; recover_without_memory(seed, nth); nth++) continue;
}

/* ---- Rows that come with a refusal, and what others store behind them */

typedef struct race {
    sim_service *service;
    hd_runtime *faster, *slower;
    hd_status verdict; /* on the slower one's commit; HD_PENDING: none yet */
    int rows;          /* that the faster one appends when it has won */
} race;

static void increment(hd_runtime *rt, const char *name) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_value one = hd_int(hd_tx_pool(tx), 1);
    assert_int_equal(hd_tx_increment(tx, hd_cell_at(rt, name), one), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void win(uint32_t machine, void *ctx) {
    race *r = ctx;
    if (machine == 1) increment(r->faster, sim_service_races(r->service) ? "main/b" : "main/a");
}

static void note_verdict(hd_status status, void *ctx) { ((race *)ctx)->verdict = status; }

/* The slower machine loses two races; the row of the second one has come with the refusal, and is not read again. That
 * row makes its commit stale, which reads main/b. */
static void lose_twice(race *r) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(r->slower, &tx), HD_OK);
    int64_t b = hd_value_as_int(hd_tx_get(tx, hd_cell_at(r->slower, "main/b")), 0);
    assert_int_equal(hd_tx_set_int(tx, hd_cell_at(r->slower, "main/x"), b + 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    sim_service_on_race(r->service, win, r);
    sim_service_set_faults(r->service, (sim_faults){ .raced = 1 });
    for (int i = 0; i < 20 && sim_service_races(r->service) < 2; i++)
        assert_in_range(hd_runtime_pump(r->slower), 0, HD_PENDING);
    assert_int_equal(sim_service_races(r->service), 2);
    sim_service_set_faults(r->service, (sim_faults){ 0 });
}

/* A commit that the writer judges together with the one that has lost: alone, since that one is refused. */
static hd_status verdict_on(race *r, hd_tx *tx) {
    r->verdict = HD_PENDING;
    assert_int_equal(hd_tx_commit(tx, note_verdict, r), HD_OK);
    (void)hd_runtime_sync(r->slower);
    return r->verdict;
}

static void in_races(void (*then)(race *r)) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        hd_lab_env *env = hd_lab_env_open();
        hd_error error;
        race r = { .service = sim_service_open(seed), .rows = 1 + (int)seed % 3 };
        assert_int_equal(sim_service_runtime(r.service, 0, hd_lab_env_of(env), &r.faster, &error),
                         HD_OK);
        assert_int_equal(sim_service_runtime(r.service, 1, hd_lab_env_of(env), &r.slower, &error),
                         HD_OK);
        then(&r);
        hd_close(r.faster);
        hd_close(r.slower);
        sim_service_close(r.service);
        hd_lab_env_close(env);
    }
}

static void create_what_others_create(race *r) {
    hd_tx *tx;
    hd_cell new = hd_cell_at(r->slower, "main/new");
    lose_twice(r);
    for (int i = 0; i < r->rows; i++) increment(r->faster, "main/new");
    assert_int_equal(hd_store_checkpoint(r->faster, NULL), HD_OK);
    assert_int_equal(hd_tx_begin(r->slower, &tx), HD_OK);
    assert_int_equal(hd_tx_require_absent(tx, new), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, new, 1), HD_OK);
    assert_int_equal(verdict_on(r, tx), HD_EXISTS);
}

/* The head row of a document may be newer than all rows that the writer knows: it is not damaged. */
static void a_head_row_that_is_newer_than_the_winners_is_no_damage(void **state) {
    in_races(create_what_others_create);
}

static void compare_with_what_others_fold(race *r) {
    hd_tx *tx;
    lose_twice(r);
    assert_int_equal(hd_store_checkpoint(r->faster, NULL), HD_OK);
    assert_int_equal(hd_tx_begin(r->slower, &tx), HD_OK);
    hd_value one = hd_int(hd_tx_pool(tx), 1);
    assert_int_equal(hd_tx_require_equal(tx, hd_cell_at(r->slower, "main/b"), one), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, hd_cell_at(r->slower, "main/seen"), 2), HD_OK);
    assert_int_equal(verdict_on(r, tx), HD_OK);
}

/* The winners' rows may be folded when the writer looks at a document: they are not folded in again. */
static void winners_that_were_folded_meanwhile_count_once(void **state) {
    in_races(compare_with_what_others_fold);
}

/* ---- A commit in doubt, and a lease that comes back */

typedef struct crew {
    hd_lab_env *env; /* of both machines: a clock */
    sim_service *service;
    hd_runtime *rt[2];
    hd_engine *engine; /* of the first one */
} crew;

static void write_at(hd_runtime *rt, const char *name) {
    hd_tx *tx;
    hd_cell at = hd_cell_at(rt, name);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, at, hd_value_as_int(hd_tx_get(tx, at), 0) + 1), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

/* Before each append of the first machine: that one loses the race, and its commit stays undecided. */
static void be_faster(uint32_t machine, void *ctx) {
    if (machine == 0) write_at(((crew *)ctx)->rt[1], "main/other");
}

/* Its completion is refused if main/x has changed. */
static hd_status take(hd_action *a, hd_value args, void *ctx) {
    hd_runtime *rt = ctx;
    hd_tx *tx = hd_action_tx(a);
    (void)args;
    hd_value x = hd_tx_get(tx, hd_cell_at(rt, "main/x"));
    hd_status status = hd_value_status(x);
    if (!status) status = hd_tx_append(tx, hd_cell_at(rt, "main/taken"), hd_int(hd_tx_pool(tx), 1));
    return status ? status : hd_action_return(a, hd_null());
}

static void open_crew(crew *c, uint64_t seed, bool patient) {
    hd_error error;
    hd_flow *f;
    hd_pool *pool;
    hd_value ir;
    c->env = hd_lab_env_open();
    c->service = sim_service_open(seed);
    if (patient) sim_service_be_patient(c->service);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(
            sim_service_runtime(c->service, i, hd_lab_env_of(c->env), &c->rt[i], &error), HD_OK);
    assert_int_equal(hd_engine_open(c->rt[0], NULL, &c->engine, &error), HD_OK);
    hd_action_spec spec = { .name = "take", .fn = take, .ctx = c->rt[0], .transaction = true };
    assert_int_equal(hd_action_register(c->engine, &spec), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(c->rt[0]), &pool), HD_OK);
    assert_int_equal(hd_flow_open(pool, "flow", &f), HD_OK);
    hd_flow_sleep(f, "0.5");
    hd_flow_action(f, NULL, "take", NULL);
    hd_flow_sleep(f, "0.5");
    hd_flow_action(f, NULL, "take", NULL);
    assert_int_equal(hd_flow_ir(f, &ir, &error), HD_OK);
    hd_flow_close(f);
    assert_int_equal(hd_workflow_register(c->engine, ir, NULL, &error), HD_OK);
    hd_pool_close(pool);
}

static void close_crew(crew *c) {
    hd_close(c->rt[0]);
    hd_close(c->rt[1]);
    sim_service_close(c->service);
    hd_lab_env_close(c->env);
}

static void pass(crew *c, uint32_t times, uint64_t ms) {
    while (times-- > 0) {
        hd_lab_env_advance_ms(c->env, ms);
        (void)hd_runtime_pump(c->rt[0]);
    }
}

static size_t count_taken(hd_runtime *rt) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    size_t n = hd_value_count(hd_read(rt, pool, hd_cell_at(rt, "main/taken")));
    hd_pool_close(pool);
    return n;
}

/* An engine does a step and is cut off before that is stored. It puts its lease down, since it cannot say that it
 * lives, and takes it up again while its commit still has no verdict; then the commit is refused. */
static void an_engine_does_not_read_through_a_commit_in_doubt(void **state) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        crew c;
        char id[HD_INSTANCE_ID_SIZE];
        hd_engine_stats stats;
        open_crew(&c, seed, false);
        assert_int_equal(hd_workflow_start(c.engine, "flow", hd_object(), NULL, id), HD_OK);
        assert_int_equal(hd_runtime_sync(c.rt[0]), HD_OK);
        sim_service_set_line(c.service, 0, SIM_CUT);
        pass(&c, 3, 200); /* it wakes, and does the step */
        pass(&c, 2, 1500);
        assert_false(hd_engine_is_active(c.engine));
        sim_service_on_race(c.service, be_faster, &c);
        sim_service_set_faults(c.service, (sim_faults){ .raced = 1 });
        sim_service_set_line(c.service, 0, SIM_UP);
        pass(&c, 8, 500);
        hd_engine_stat(c.engine, &stats);
        assert_int_equal(stats.shards, 0); /* the lease is its own again, and it waits */
        sim_service_set_faults(c.service, (sim_faults){ 0 });
        write_at(c.rt[1], "main/x");
        pass(&c, 60, 100);
        hd_engine_stat(c.engine, &stats);
        assert_int_equal(stats.shards, 1);
        assert_int_equal(stats.open, 0);
        assert_int_equal(count_taken(c.rt[0]), 2);
        close_crew(&c);
    }
}

static void pass_both(crew *c, uint32_t times, uint64_t ms) {
    while (times-- > 0) {
        sim_service_advance_ms(c->service, ms);
        pass(c, 1, ms);
        (void)hd_runtime_pump(c->rt[1]);
    }
}

typedef struct told {
    int times;
    hd_status status;
} told;

static void note_end(const char *id, hd_status status, hd_value result, void *ctx) {
    told *t = ctx;
    (void)id, (void)result;
    t->times++;
    t->status = status;
}

/* An engine starts instances while it is cut off, and another one takes its lease before they are stored. The store
 * refuses the commit with the starts, and they are stored all the same: the other engine runs the instances, and who
 * waits for them is told their ends. */
static void a_start_survives_the_loss_of_the_lease(void **state) {
    crew c;
    hd_engine *other;
    hd_error error;
    char id[HD_INSTANCE_ID_SIZE];
    hd_engine_stats stats;
    told ends[2] = { 0 };
    open_crew(&c, 1, true);
    assert_int_equal(hd_workflow_start(c.engine, "flow", hd_object(), NULL, id), HD_OK);
    pass(&c, 40, 100); /* it is over, and the engine has loaded the workflow */
    assert_int_equal(hd_engine_open(c.rt[1], NULL, &other, &error), HD_OK);
    hd_action_spec spec = { .name = "take", .fn = take, .ctx = c.rt[1], .transaction = true };
    assert_int_equal(hd_action_register(other, &spec), HD_OK);
    pass_both(&c, 10, 100);
    assert_true(hd_engine_is_active(c.engine));
    sim_service_set_line(c.service, 0, SIM_CUT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hd_workflow_start(c.engine, "flow", hd_object(), NULL, id), HD_OK);
        assert_int_equal(hd_workflow_then(c.engine, id, note_end, &ends[i]), HD_OK);
    }
    pass_both(&c, 60, 100);
    assert_false(hd_engine_is_active(c.engine));
    assert_true(hd_engine_is_active(other));
    sim_service_set_line(c.service, 0, SIM_UP);
    pass_both(&c, 100, 1); /* the commit is refused, and the starts are not tried again yet */
    pass_both(&c, 60, 100);
    assert_int_equal(hd_runtime_sync(c.rt[0]), HD_OK);
    hd_engine_stat(other, &stats);
    assert_int_equal(stats.finished, 2);
    assert_int_equal(count_taken(c.rt[1]), 6);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i].times, 1);
        assert_int_equal(ends[i].status, HD_OK);
    }
    close_crew(&c);
}

/* ---- Waiting for an instance while the service is away */

typedef struct repair {
    crew *c;
    int pumps; /* so many until the second machine reaches the service again */
} repair;

static void repair_later(hd_runtime *rt, void *ctx) {
    repair *r = ctx;
    if (--r->pumps) assert_int_equal(hd_runtime_post(rt, repair_later, r), HD_OK);
    else sim_service_set_line(r->c->service, 1, SIM_UP);
}

/* A wait that begins while the service is away ends by itself when the service is back, as one that began before. */
static void a_wait_that_begins_while_the_service_is_away_goes_on(void **state) {
    crew c;
    hd_engine *other;
    hd_error error;
    hd_pool *pool;
    hd_value result;
    char ids[2][HD_INSTANCE_ID_SIZE];
    told over = { 0 }, none = { 0 };
    open_crew(&c, 1, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hd_workflow_start(c.engine, "flow", hd_object(), NULL, ids[i]), HD_OK);
    pass(&c, 40, 100);
    assert_int_equal(hd_runtime_sync(c.rt[0]), HD_OK);
    hd_engine_options observer = { .observer = true };
    assert_int_equal(hd_engine_open(c.rt[1], &observer, &other, &error), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(c.rt[1]), &pool), HD_OK);
    assert_int_equal(hd_runtime_settle(c.rt[1]), HD_OK); /* it has heard of both */
    sim_service_set_line(c.service, 1, SIM_CUT);

    assert_int_equal(hd_workflow_then(other, ids[0], note_end, &over), HD_OK);
    assert_int_equal(hd_workflow_then(other, "flow/none", note_end, &none), HD_OK);
    for (int i = 0; i < 20; i++) {
        hd_lab_env_advance_ms(c.env, 100);
        (void)hd_runtime_pump(c.rt[1]);
    }
    assert_int_equal(over.times + none.times, 0);

    repair r = { &c, 5 };
    assert_int_equal(hd_runtime_post(c.rt[1], repair_later, &r), HD_OK);
    assert_int_equal(hd_workflow_await(other, ids[1], pool, &result), HD_OK);
    assert_int_equal(r.pumps, 0);
    hd_lab_env_advance_ms(c.env, 100);
    assert_int_equal(hd_runtime_pump(c.rt[1]), HD_OK);
    assert_int_equal(over.times, 1);
    assert_int_equal(over.status, HD_OK);
    assert_int_equal(none.times, 1);
    assert_int_equal(none.status, HD_NOT_FOUND);
    hd_pool_close(pool);
    close_crew(&c);
}

/* ---- The end of a step while the service is away */

typedef struct outage {
    crew *c;
    int begun; /* steps */
} outage;

static hd_status charge(hd_action *a, hd_value args, void *ctx) {
    outage *o = ctx;
    (void)args;
    o->begun++;
    sim_service_set_line(o->c->service, 0, SIM_CUT);
    return hd_action_return(a, hd_null());
}

static void register_charge(outage *o, const char *journal) {
    hd_error error;
    hd_flow *f;
    hd_pool *pool;
    hd_value ir;
    hd_action_spec spec = { .name = "charge", .fn = charge, .ctx = o, .here = true };
    assert_int_equal(hd_action_register(o->c->engine, &spec), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(o->c->rt[0]), &pool), HD_OK);
    assert_int_equal(hd_flow_open(pool, "payment", &f), HD_OK);
    hd_flow_journal(f, journal);
    for (int i = 0; i < 3; i++) hd_flow_action(f, NULL, "charge", NULL);
    assert_int_equal(hd_flow_ir(f, &ir, &error), HD_OK);
    hd_flow_close(f);
    assert_int_equal(hd_workflow_register(o->c->engine, ir, NULL, &error), HD_OK);
    hd_pool_close(pool);
}

static void charge_through_outages(const char *journal, bool by_another) {
    crew c;
    outage o = { .c = &c };
    char id[HD_INSTANCE_ID_SIZE];
    hd_engine *starter;
    hd_engine_stats stats;
    hd_error error;
    hd_start_options options = { .key = "17" };
    open_crew(&c, 1, true);
    register_charge(&o, journal);
    hd_engine_options observer = { .observer = true };
    assert_int_equal(hd_engine_open(c.rt[1], &observer, &starter, &error), HD_OK);
    pass_both(&c, 10, 100); /* it has heard of the workflow */
    hd_engine *by = by_another ? starter : c.engine;
    assert_int_equal(hd_workflow_start(by, "payment", hd_object(), &options, id), HD_OK);
    assert_int_equal(hd_runtime_sync(c.rt[by_another]), HD_OK);
    for (int steps = 1; steps <= 3; steps++) {
        for (int i = 0; i < 20 && o.begun < steps; i++) pass_both(&c, 1, 20);
        pass_both(&c, 20, 20); /* the service is away */
        assert_int_equal(o.begun, steps);
        sim_service_set_line(c.service, 0, SIM_UP);
    }
    pass_both(&c, 20, 20);
    hd_engine_stat(c.engine, &stats);
    assert_int_equal(o.begun, 3);
    assert_int_equal(stats.finished, 1);
    close_crew(&c);
}

/* What a step has come to is kept until the service is back, whatever documents its commit has to load: the journal,
 * and the metadata of an instance that another process has started. */
static void a_step_that_ends_while_the_service_is_away_is_begun_once(void **state) {
    static const char *const journals[] = { "none", "steps", "nodes" };
    for (size_t i = 0; i < sizeof journals / sizeof *journals; i++) {
        charge_through_outages(journals[i], false);
        charge_through_outages(journals[i], true);
    }
}

/* The service goes away while the commit with the end of an instance is under way, and the engine puts its lease down
 * before it is back: those that wait are told all the same. */
static void an_end_is_told_though_the_lease_was_put_down(void **state) {
    crew c;
    outage o = { .c = &c };
    told end = { 0 };
    char id[HD_INSTANCE_ID_SIZE];
    open_crew(&c, 1, true);
    register_charge(&o, "none");
    assert_int_equal(hd_workflow_start(c.engine, "payment", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_workflow_then(c.engine, id, note_end, &end), HD_OK);
    assert_int_equal(hd_runtime_sync(c.rt[0]), HD_OK);
    for (int i = 0; i < 100 && o.begun < 3; i++) {
        pass_both(&c, 1, 20);
        if (o.begun < 3) sim_service_set_line(c.service, 0, SIM_UP);
    }
    assert_int_equal(o.begun, 3);
    pass_both(&c, 2, 1500);
    assert_false(hd_engine_is_active(c.engine));
    assert_int_equal(end.times, 0);
    sim_service_set_line(c.service, 0, SIM_UP);
    pass_both(&c, 40, 100);
    assert_int_equal(o.begun, 3);
    assert_int_equal(end.times, 1);
    assert_int_equal(end.status, HD_OK);
    close_crew(&c);
}

#ifndef NDEBUG
enum { MUTANT_SEEDS = 600, LOOP_S = 60 /* of CPU time */ };

/* Whether some world goes wrong with the mutant. In a child process, which an assertion or an endless loop may end. */
static bool is_found(unsigned mutant) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        sim_counts counts = { 0 };
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(0);
        (void)setrlimit(RLIMIT_CPU, &(struct rlimit){ LOOP_S, LOOP_S });
        for (uint64_t seed = 1; seed <= MUTANT_SEEDS; seed++)
            if (sim_world_run(seed, mutant, &counts)) _exit(1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

/* A simulation that finds nothing where something is wrong proves nothing. */
static void every_mutant_is_found(void **state) {
    for (unsigned mutant = LOG_LEAVE_OUT_RACE; mutant <= LOG_LEAVE_OUT_TORN; mutant <<= 1)
        if (!is_found(mutant)) fail_msg("LOG_LEAVE_OUT_... = %u is not found", mutant);
    for (unsigned mutant = SABOTAGE_FENCE; mutant <= SABOTAGE_DEATH; mutant <<= 1)
        if (!is_found(mutant << SIM_OF_RUNTIME)) fail_msg("SABOTAGE_... = %u is not found", mutant);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_world_comes_to_rest_and_is_right),
        cmocka_unit_test(worlds_that_went_wrong_once_are_right),
        cmocka_unit_test(a_seed_gives_the_same_world_again),
        cmocka_unit_test(an_answer_loses_no_race),
        cmocka_unit_test(a_lost_acknowledgement_is_found_without_memory),
        cmocka_unit_test(a_head_row_that_is_newer_than_the_winners_is_no_damage),
        cmocka_unit_test(winners_that_were_folded_meanwhile_count_once),
        cmocka_unit_test(nothing_is_read_through_a_commit_that_a_reload_has_brought),
        cmocka_unit_test(an_engine_does_not_read_through_a_commit_in_doubt),
        cmocka_unit_test(a_start_survives_the_loss_of_the_lease),
        cmocka_unit_test(a_wait_that_begins_while_the_service_is_away_goes_on),
        cmocka_unit_test(a_step_that_ends_while_the_service_is_away_is_begun_once),
        cmocka_unit_test(an_end_is_told_though_the_lease_was_put_down),
#ifndef NDEBUG
        cmocka_unit_test(every_mutant_is_found),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

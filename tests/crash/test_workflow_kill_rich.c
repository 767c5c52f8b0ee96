/* test_workflow_kill_rich.c -- the process that runs workflows is killed while signals, pauses, queues, limits,
 * children, transactions and a schedule are under way.
 *
 * A child opens the store and its engine, registers some random programs (workflow_programs.h), starts two instances of
 * each, and drives them: it sends the signals that steps wait for, pauses and resumes instances, and changes the bounds
 * of queues. Meanwhile a schedule starts an instance every few milliseconds. The child is killed with SIGKILL: in the
 * middle of an action, or a random time after it began; the next one goes on with the same file. In the end
 *
 *   - every instance has the result of the direct interpretation (W4);
 *   - actions within transactions have counted once for each success, however often they ran (W1);
 *   - each time of the schedule has started one instance at most, and each instance has counted once.
 *
 * HD_WORKFLOW_KILLS: so many families of programs; HD_SEED: which. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "folder.h"
#include "lab.h"
#include "times.h"
#include "workflow_programs.h"

#include <heddle/workflow.h>
#include <heddle/workflow_build.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TOGETHER = 10,
    FAMILIES = LAB_SLOW ? 4 : 12,
    KILLS_MAX = 6,
    EVERY_MS = 50,
    EVERY_MS_ON_A_SERVER = 500,
    ID_SIZE = 40
};

static char file[256];
static uint64_t seed;
static uint64_t dies_after; /* so many calls of this child; 0: not by itself */
static uint32_t first;      /* of the programs that run now */

static int make_folder(void **state) {
    if (folder_make(state)) return -1;
    folder_store(file, sizeof file, "kill.db");
    children = rich = true;
    sleep_unit_s = 0.002;
    return 0;
}

/* ---- Actions --------------------------------------------------------------------------------------- */

static void maybe_die(void) {
    if (dies_after && --dies_after == 0) raise(SIGKILL);
}

static hd_status answer(hd_action *a, hd_value args) {
    bool failed;
    int y = act((int)(hd_value_as_int(hd_value_index(args, 0), 0) % ARGUMENTS), &failed);
    if (failed) return hd_action_raise(a, "ValueError", "act");
    return hd_action_return(a, hd_int(hd_action_pool(a), y));
}

static hd_status act_once(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    maybe_die();
    return answer(a, args);
}

/* Within a transaction: what it adds is stored with its completion, or not at all. */
static hd_status count_in(hd_action *a, hd_runtime *rt, const char *where) {
    hd_tx *tx = hd_action_tx(a);
    hd_cell cell = hd_cell_at(rt, where);
    int64_t before = hd_value_as_int(hd_tx_read(tx, cell, 0), 0);
    return hd_tx_set(tx, cell, hd_int(hd_action_pool(a), before + 1));
}

static hd_status effect(hd_action *a, hd_value args, void *ctx) {
    maybe_die();
    hd_status status = count_in(a, ctx, "main/effects");
    return status ? status : answer(a, args);
}

static hd_status tick(hd_action *a, hd_value args, void *ctx) {
    (void)args;
    maybe_die();
    hd_status status = count_in(a, ctx, "main/ticks");
    return status ? status : hd_action_return(a, hd_null());
}

/* ---- Opening --------------------------------------------------------------------------------------- */

typedef struct world {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
    lab_random random; /* of what comes from outside */
} world;

static void use(world *w, const char *name, hd_step_fn fn, bool transaction) {
    hd_action_spec spec = {
        .name = name, .fn = fn, .ctx = w->rt, .here = !transaction, .transaction = transaction
    };
    if (hd_action_register(w->engine, &spec)) lab_fail("action %s", name);
}

static void use_ir(world *w, hd_value ir, const hd_error *error) {
    hd_error refused = *error;
    if (!hd_value_exists(ir) || hd_workflow_register(w->engine, ir, NULL, &refused))
        lab_fail("%s: %s", family, refused.message);
}

static bool make_family(uint32_t i, long *input) {
    bool raises;
    long result;
    snprintf(family, sizeof family, "p%uw", i);
    make_program((seed * 1000 + i) * 104729);
    *input = roll(ARGUMENTS);
    return interpret(*input, &raises, &result);
}

/* The same in every process. Programs that run for too long are left out. */
static void register_all(world *w) {
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        long input;
        if (!make_family(i, &input)) continue;
        for (int f = 0; f < FUNCTIONS; f++) {
            hd_error error = { 0 };
            emit_all(f);
            use_ir(w, hd_json_parse(w->pool, ir_text, ir_length, &error), &error);
        }
    }
}

static void put_schedule(world *w) {
    hd_flow *f;
    hd_value ir = { 0 };
    hd_error error = { 0 };
    if (hd_flow_open(w->pool, "tick", &f)) lab_fail("builder");
    hd_flow_action(f, NULL, "tick", NULL);
    (void)hd_flow_ir(f, &ir, &error);
    hd_flow_close(f);
    use_ir(w, ir, &error);
    hd_schedule every = { .name = "beat",
                          .workflow = "tick",
                          .every_s = (lab_on_server() ? EVERY_MS_ON_A_SERVER : EVERY_MS) / 1000.0,
                          .overlap = HD_OVERLAP_ALLOW,
                          .catch_up = HD_CATCH_UP_ALL };
    hd_value state;
    if (!hd_schedule_state(w->engine, "beat", w->pool, &state)) return;
    if (hd_schedule_put(w->engine, &every, &error)) lab_fail("schedule: %s", error.message);
}

static void open_world(world *w, uint64_t random) {
    hd_error error = { 0 };
    hd_options options = { .tail_bytes = 32 << 10 }; /* checkpoints are to be interrupted too */
    *w = (world){ .random = lab_random_of(random) };
    if (hd_open(file, &options, &w->rt, &error) ||
        hd_engine_open(w->rt, NULL, &w->engine, &error) ||
        hd_pool_open(hd_runtime_heap(w->rt), &w->pool))
        lab_fail("open: %s", error.message);
    use(w, "act", act_once, false);
    use(w, "effect", effect, true);
    use(w, "tick", tick, true);
    register_all(w);
    put_schedule(w);
}

static void close_world(world *w) {
    hd_pool_close(w->pool);
    if (hd_close(w->rt)) lab_fail("close");
}

/* ---- Driving --------------------------------------------------------------------------------------- */

static void name_of(char id[ID_SIZE], uint32_t i, int which) {
    snprintf(id, ID_SIZE, "p%uw0/%s", i, which ? "two" : "one");
}

static void start_all(world *w) {
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        long input;
        if (!make_family(i, &input)) continue;
        hd_value given = hd_object_set(w->pool, hd_object(), "v0", hd_int(w->pool, input));
        for (int which = 0; which < 2; which++) {
            char name[24], id[HD_INSTANCE_ID_SIZE];
            snprintf(name, sizeof name, "p%uw0", i);
            hd_start_options options = { .key = which ? "two" : "one" };
            hd_status status = hd_workflow_start(w->engine, name, given, &options, id);
            if (status && status != HD_EXISTS) lab_fail("start: %s", hd_status_name(status));
        }
    }
}

static bool one_in(world *w, uint64_t n) { return lab_random_below(&w->random, n) == 0; }

enum { OPEN_MAX = 64 };
typedef struct open_list {
    char ids[OPEN_MAX][HD_INSTANCE_ID_SIZE];
    int count;
} open_list;

static bool note_open(const hd_workflow_entry *entry, void *ctx) {
    open_list *all = ctx;
    snprintf(all->ids[all->count++], HD_INSTANCE_ID_SIZE, "%s", entry->id);
    return all->count < OPEN_MAX;
}

/* Children are among them; ticks too. */
static open_list list_open(world *w, const char *status) {
    open_list all = { .count = 0 };
    hd_workflow_filter filter = { .status = status };
    if (hd_workflow_list(w->engine, &filter, note_open, &all)) lab_fail("list");
    return all;
}

static void send_signals(world *w, const char *id) {
    hd_value state;
    if (hd_workflow_state(w->engine, id, w->pool, &state)) return;
    for (hd_iter it = hd_iter_of(hd_value_at(state, "steps")); hd_iter_next(&it);) {
        const char *signal_ = hd_value_as_text(hd_value_at(it.value, "signal"), NULL);
        if (!signal_ || one_in(w, 2)) continue;
        (void)hd_workflow_signal(w->engine, id, signal_, hd_int(w->pool, atoi(signal_ + 1)));
    }
}

static void put_queues(world *w, bool open) {
    for (int i = 0; i < 2; i++) {
        hd_queue q = { .name = i ? "q0" : "q1", .most = 1 };
        if (!open) q.most = (uint32_t)lab_random_below(&w->random, 3), q.paused = one_in(w, 4);
        if (hd_queue_put(w->engine, &q)) lab_fail("queue");
    }
}

static void disturb(world *w, bool calm) {
    open_list running = list_open(w, "running"), paused = list_open(w, "paused");
    for (int i = 0; i < running.count; i++) {
        send_signals(w, running.ids[i]);
        if (!calm && one_in(w, 30)) (void)hd_workflow_pause(w->engine, running.ids[i]);
    }
    for (int i = 0; i < paused.count; i++)
        if (calm || one_in(w, 4)) (void)hd_workflow_resume(w->engine, paused.ids[i]);
    if (!calm && one_in(w, 20)) put_queues(w, false);
}

/* Until nothing is open but, perhaps, the ticks of this moment. */
static bool is_quiet(world *w) {
    open_list running = list_open(w, "running");
    for (int i = 0; i < running.count; i++)
        if (strncmp(running.ids[i], "tick/", 5)) return false;
    return list_open(w, "paused").count == 0;
}

static void pump_for(world *w, uint64_t ms) {
    const hd_env *env = hd_runtime_env(w->rt);
    uint64_t end = env->monotonic_ns(env->ctx) + ms * 1000000;
    for (;;) {
        while (hd_runtime_pump(w->rt) == HD_PENDING) {}
        if (env->monotonic_ns(env->ctx) >= end) return;
        uint64_t due = hd_runtime_deadline(w->rt);
        env->wait(hd_runtime_fd(w->rt), due < end ? due : end, env->ctx);
    }
}

static void drive(world *w, bool calm) {
    start_all(w);
    if (hd_runtime_sync(w->rt)) lab_fail("sync"); /* a listing shows what is stored */
    if (calm) put_queues(w, true);
    for (int turn = 0; !is_quiet(w); turn++) {
        if (turn > 60000)
            lab_fail("family at %u of seed %llu does not end", first, (unsigned long long)seed);
        disturb(w, calm || turn > 500);
        if (turn == 500) put_queues(w, true);
        pump_for(w, 2);
        hd_pool_clear(w->pool);
    }
}

/* ---- Children -------------------------------------------------------------------------------------- */

static void die(int signal_) {
    (void)signal_;
    kill(getpid(), SIGKILL);
}

static void child(uint64_t how, bool early) {
    world w;
    if (how % 2 || early) {
        dies_after = 1 + how / 2 % (early ? 3 : 60);
    } else {
        struct itimerval soon = { .it_value.tv_usec = 1000 + (int)(how / 2 % 90000) };
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    open_world(&w, how);
    drive(&w, false);
    close_world(&w);
    _exit(0);
}

/* True: it came to its end. */
static bool run_child(uint64_t how, bool early) {
    int status;
    pid_t pid = fork();
    if (pid == 0) child(how, early);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return false;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

/* ---- What holds in the end --------------------------------------------------------------------------- */

static int64_t counted(world *w, const char *where) {
    return hd_value_as_int(hd_read(w->rt, w->pool, hd_cell_at(w->rt, where)), 0);
}

static void compare_end(world *w, const char *id, bool raises, long right) {
    hd_value state;
    assert_int_equal(hd_workflow_state(w->engine, id, w->pool, &state), HD_OK);
    const char *status = hd_value_as_text(hd_value_at(state, "status"), "");
    long result = (long)hd_value_as_int(hd_value_at(state, "result"), -1);
    if (strcmp(status, raises ? "failed" : "done") || (!raises && result != right))
        fail_msg("%s of seed %llu: %s, %ld instead of %ld", id, (unsigned long long)seed, status,
                 result, right);
}

static int64_t effects_before;

static void compare_programs(world *w) {
    int64_t effects = effects_before;
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        long input, right;
        bool raises;
        char id[ID_SIZE];
        if (!make_family(i, &input)) continue;
        naive_effects = 0;
        (void)interpret(input, &raises, &right);
        effects += 2 * naive_effects;
        for (int which = 0; which < 2; which++) {
            name_of(id, i, which);
            compare_end(w, id, raises, right);
        }
    }
    if (counted(w, "main/effects") != effects)
        fail_msg("seed %llu, from %u: %lld effects instead of %lld", (unsigned long long)seed,
                 first, (long long)counted(w, "main/effects"), (long long)effects);
    effects_before = effects;
}

typedef struct ticks {
    int64_t count, others; /* others: not done */
} ticks;

static bool note_tick(const hd_workflow_entry *entry, void *ctx) {
    ticks *t = ctx;
    t->count++;
    t->others += strcmp(entry->status, "done") != 0;
    return true;
}

/* Each time has one instance: as many as the schedule has started, and each has counted once. */
static void compare_ticks(world *w) {
    hd_value state;
    ticks t = { .count = 0 };
    hd_workflow_filter filter = { .name = "tick" };
    assert_int_equal(hd_schedule_pause(w->engine, "beat"), HD_OK);
    while (list_open(w, "running").count) pump_for(w, 2);
    assert_int_equal(hd_schedule_state(w->engine, "beat", w->pool, &state), HD_OK);
    assert_int_equal(hd_workflow_list(w->engine, &filter, note_tick, &t), HD_OK);
    assert_int_equal(t.others, 0);
    assert_int_equal(t.count, hd_value_as_int(hd_value_at(state, "started"), -1));
    assert_int_equal(t.count, counted(w, "main/ticks"));
    assert_int_equal(hd_schedule_resume(w->engine, "beat"), HD_OK);
}

/* How often they were killed. */
static uint64_t kill_and_compare(lab_random *random) {
    world w;
    uint64_t kills = 0;
    while (kills < KILLS_MAX && !run_child(lab_random_u64(random), kills == 0)) kills++;
    open_world(&w, lab_random_u64(random));
    drive(&w, true);
    compare_programs(&w);
    compare_ticks(&w);
    close_world(&w);
    return kills;
}

static void w1_w4_hold_whatever_is_under_way_when_the_process_dies(void **state) {
    uint64_t count = lab_times("HD_WORKFLOW_KILLS", FAMILIES), kills = 0;
    (void)state;
    seed = lab_seed();
    lab_random random = lab_random_of(seed);
    for (uint64_t i = 0; i < count; i++, first += TOGETHER) kills += kill_and_compare(&random);

    print_message("%llu programs, %llu kills, %lld effects\n", (unsigned long long)count * TOGETHER,
                  (unsigned long long)kills, (long long)effects_before);
    assert_true(kills >= count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(w1_w4_hold_whatever_is_under_way_when_the_process_dies,
                                        make_folder, folder_remove),
    };
    return cmocka_run_group_tests_name("rich workflows and kills", tests, NULL, NULL);
}

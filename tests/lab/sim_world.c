/* sim_world.c -- what the machines do, what happens to them, and what must hold in the end. */
#include "sim_world.h"

#include "sim_service.h"
#include <heddle/workflow.h>
#include <heddle/workflow_build.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MACHINES = 4,  /* at most */
    STEPS = 160,   /* random things that happen before all is healed */
    TASKS = 200,   /* transactions and events, at most */
    ROUNDS = 4000, /* until all must be at rest */
    QUIET = 60,    /* rounds without a change: it is */
    RARELY = 25,   /* one thing in so many is a rare one, in worlds that have those */
    COUNTERS = 3,
    ACCOUNTS = 3,
};

typedef enum task_kind {
    COUNT,    /* reads a counter and writes one more */
    TRANSFER, /* takes from one account, gives to another */
    MERGE,    /* appends to a list, blindly */
    TWO,      /* writes a document in each of two spaces */
    EVENT,    /* posts one */
    FLOW,     /* starts a workflow; last, since a world may have none */
    KINDS
} task_kind;

typedef enum task_fate { OPEN, YES, NO, UNKNOWN } task_fate;

/* Something a machine was asked to do once. Its number is its name. */
typedef struct task {
    struct world *world;
    const struct machine *at;
    task_kind kind;
    uint32_t number, a, b;
    hd_status status; /* that it was told */
    task_fate fate;
    bool signalled;               /* of a FLOW: a signal for it is stored */
    const struct machine *awaits; /* it started a FLOW, and is to be told the end; NULL: none */
    uint32_t ends;                /* how often it was told */
    int64_t result;               /* that it was told; negative: another end */
} task;

typedef struct machine {
    struct world *world;
    uint32_t number;
    hd_lab_env *env;
    hd_runtime *rt; /* NULL: it is down */
    hd_engine *engine;
    uint32_t cut; /* steps until its line is up again; 0: it is */
    hd_cell counters[COUNTERS], total;
    double shown; /* by its sink */
} machine;

typedef struct world {
    sim_service *service;
    hd_lab_random random;
    machine machines[MACHINES];
    uint32_t machine_count;
    task tasks[TASKS];
    uint32_t task_count;
    uint32_t housework; /* percent of what happens */
    bool flows;         /* machines have engines, and start workflows */
    bool signals;       /* the workflows wait for a signal */
    bool journals;      /* the workflows have a journal, and machines wait for their ends */
    bool serves;        /* machines announce an action: other machines may do its steps */
    bool rare;          /* things happen that take several steps in order */
    uint32_t shards;    /* into which the workflows are divided */
    sim_counts *counts;
    uint64_t notices; /* changes that any runtime has announced */
    char wrong[400];  /* the first thing that does not hold */
} world;

static void wrong(world *w, const char *format, ...) HD_PRINTF(2, 3);
static void wrong(world *w, const char *format, ...) {
    va_list arguments;
    if (*w->wrong) return;
    va_start(arguments, format);
    vsnprintf(w->wrong, sizeof w->wrong, format, arguments);
    va_end(arguments);
}

static uint32_t below(world *w, uint32_t n) { return (uint32_t)hd_lab_random_below(&w->random, n); }

static hd_cell cell(hd_runtime *rt, const char *format, ...) HD_PRINTF(2, 3);
static hd_cell cell(hd_runtime *rt, const char *format, ...) {
    char name[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return hd_cell_at(rt, name);
}

/* ---- What a machine runs ------------------------------------------------------------------- */

static hd_status add_up(hd_tx *tx, void *ctx) {
    const machine *m = ctx;
    double sum = 0;
    for (int i = 0; i < COUNTERS; i++) {
        hd_value v = hd_tx_get(tx, m->counters[i]);
        if (hd_value_status(v)) return hd_value_status(v);
        sum += (double)hd_value_as_int(v, 0);
    }
    return hd_tx_set_double(tx, m->total, sum);
}

static void show(hd_value total, void *ctx) { ((machine *)ctx)->shown = hd_value_number(total); }

/* Counts how often each event was handled. */
static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    const machine *m = ctx;
    hd_cell seen = cell(m->rt, "main/handled/%lld", (long long)hd_value_as_int(event->payload, 0));
    hd_value before = hd_tx_get(tx, seen);
    if (hd_value_status(before)) return hd_value_status(before);
    return hd_tx_set_int(tx, seen, hd_value_as_int(before, 0) + 1);
}

static void count_notices(const hd_notice *notice, void *ctx) {
    ((world *)ctx)->notices += notice->count;
}

/* Notes itself in a list, in the commit that completes it. It claims nothing, so that only the lease keeps an engine
 * which has lost its shard from doing a step that its heir does too. */
static hd_status step(hd_action *a, hd_value args, void *ctx) {
    const machine *m = ctx;
    int64_t n = hd_value_as_int(hd_value_at(args, "n"), 0);
    int64_t value = hd_value_as_int(hd_value_at(args, "value"), 0);
    hd_tx *tx = hd_action_tx(a);
    hd_cell steps = cell(m->rt, "main/steps/%lld", (long long)n);
    hd_status status = hd_tx_append(tx, steps, hd_int(hd_tx_pool(tx), value));
    return status ? status : hd_action_return(a, hd_int(hd_action_pool(a), value + 1));
}

/* Three steps, and a sleep between them, or the wait for a signal; the result is its number and three. */
static hd_status write_flow(const world *w, hd_pool *pool, hd_value *ir) {
    hd_flow *f;
    hd_error error;
    hd_status status = hd_flow_open(pool, "flow", &f);
    if (status) return status;
    hd_flow_input(f, "n", hd_int(pool, 0));
    if (w->journals) hd_flow_journal(f, "nodes");
    hd_flow_action(f, "a", "step", "n=n, value=n");
    hd_flow_sleep(f, "0.2");
    hd_flow_action(f, "b", "step", "n=n, value=a");
    if (w->signals) hd_flow_wait(f, NULL, "go", NULL);
    hd_flow_action(f, "c", "step", "n=n, value=b");
    hd_flow_return(f, "c");
    status = hd_flow_ir(f, ir, &error);
    hd_flow_close(f);
    return status;
}

static hd_status open_engine(machine *m) {
    hd_pool *pool;
    hd_value ir;
    hd_error error;
    hd_action_spec spec = { .name = "step", .fn = step, .ctx = m, .transaction = true };
    hd_action_spec served = { .name = "served", .fn = step, .ctx = m, .here = true };
    hd_engine_options options = { .shards = m->world->shards };
    hd_status status = hd_engine_open(m->rt, &options, &m->engine, &error);
    if (!status) status = hd_action_register(m->engine, &spec);
    if (!status && m->world->serves) status = hd_action_register(m->engine, &served);
    if (!status) status = hd_pool_open(hd_runtime_heap(m->rt), &pool);
    if (status) return status;
    status = write_flow(m->world, pool, &ir);
    if (!status) status = hd_workflow_register(m->engine, ir, NULL, &error);
    hd_pool_close(pool);
    return status;
}

static hd_status install(machine *m) {
    hd_runtime *rt = m->rt;
    for (int i = 0; i < COUNTERS; i++) m->counters[i] = cell(rt, "main/counter/%d", i);
    m->total = cell(rt, "main/total");
    m->shown = 0;
    hd_status status = hd_runtime_listen(rt, count_notices, m->world);
    hd_compute(rt, "add_up", add_up, m, m->total);
    hd_sink(rt, m->total, show, m);
    hd_handler_spec spec = {
        .stream = cell(rt, "main/orders"), .fn = handle, .ctx = m, .reads_nothing = true
    };
    if (!status) status = hd_handler_register(rt, &spec, NULL);
    return status || !m->world->flows ? status : open_engine(m);
}

static void start_machine(machine *m) {
    hd_error error;
    world *w = m->world;
    sim_service_set_line(w->service, m->number, SIM_UP);
    m->cut = 0;
    if (sim_service_runtime(w->service, m->number, hd_lab_env_of(m->env), &m->rt, &error)) {
        m->rt = NULL; /* the service refused: it is tried again */
        return;
    }
    if (!install(m)) return;
    sim_service_set_line(w->service, m->number, SIM_DEAD);
    hd_close(m->rt);
    m->rt = NULL;
}

/* What has no verdict yet is told HD_NO_VERDICT, or nothing at all. */
static void kill_machine(machine *m) {
    sim_service_set_line(m->world->service, m->number, SIM_DEAD);
    hd_close(m->rt);
    m->rt = NULL;
    m->world->counts->kills++;
    for (uint32_t i = 0; i < m->world->task_count; i++)
        if (m->world->tasks[i].awaits == m) m->world->tasks[i].awaits = NULL;
}

/* ---- Tasks --------------------------------------------------------------------------------- */

static void told_end(const char *id, hd_status status, hd_value result, void *ctx) {
    task *t = ctx;
    (void)id;
    t->ends++;
    t->result = status ? -(int64_t)status : hd_value_as_int(result, -1);
}

static void await_flow(task *t) {
    char id[24];
    snprintf(id, sizeof id, "flow/%u", t->number);
    if (!hd_workflow_then(t->at->engine, id, told_end, t)) t->awaits = t->at;
}

static void told(hd_status status, void *ctx) {
    task *t = ctx;
    t->status = status;
    t->fate = !status ? YES : status == HD_NO_VERDICT ? UNKNOWN : NO;
    if (t->fate == YES && t->kind == FLOW && t->world->journals) await_flow(t);
}

static hd_status add_to(hd_tx *tx, hd_cell at, int64_t by) {
    hd_value v = hd_tx_get(tx, at);
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_tx_set_int(tx, at, hd_value_as_int(v, 0) + by);
}

static hd_status start_flow(const task *t, hd_tx *tx) {
    char key[12], id[HD_INSTANCE_ID_SIZE];
    hd_pool *pool = hd_tx_pool(tx);
    snprintf(key, sizeof key, "%u", t->number);
    hd_start_options options = { .key = key };
    hd_value input = hd_object_set(pool, hd_object(), "n", hd_int(pool, t->number));
    return hd_workflow_start_in(t->at->engine, tx, "flow", input, &options, id);
}

/* Every task leaves a document of its own in the same commit. */
static hd_status perform(hd_tx *tx, void *ctx) {
    const task *t = ctx;
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_status status = hd_tx_set_int(tx, cell(rt, "main/task/%u", t->number), t->number);
    if (status) return status;
    switch (t->kind) {
    case COUNT: return add_to(tx, cell(rt, "main/counter/%u", t->a), 1);
    case TRANSFER:
        status = add_to(tx, cell(rt, "main/account/%u", t->a), -1);
        return status ? status : add_to(tx, cell(rt, "main/account/%u", t->b), 1);
    case MERGE: return hd_tx_append(tx, cell(rt, "main/list"), hd_int(hd_tx_pool(tx), t->number));
    case TWO:
        status = hd_tx_set_int(tx, cell(rt, "left/x"), t->number);
        return status ? status : hd_tx_set_int(tx, cell(rt, "right/x"), t->number);
    case FLOW: return start_flow(t, tx);
    default:
        return hd_tx_post(tx, cell(rt, "main/orders"), hd_int(hd_tx_pool(tx), t->number), NULL,
                          NULL);
    }
}

/* On its own: the commit is refused where another machine was faster. Or until it is stored. */
static void give(world *w, machine *m, task_kind kind) {
    if (w->task_count == TASKS) return;
    task *t = &w->tasks[w->task_count];
    *t = (task){ .world = w,
                 .at = m,
                 .kind = kind,
                 .number = ++w->task_count,
                 .a = below(w, COUNTERS),
                 .b = below(w, ACCOUNTS) };
    hd_tx *tx;
    hd_status status;
    if (below(w, 2)) {
        status = hd_transact_later(m->rt, perform, t, told, t);
    } else {
        status = hd_tx_begin(m->rt, &tx);
        if (!status && (status = perform(tx, t))) hd_tx_abort(tx);
        else if (!status) status = hd_tx_commit(tx, told, t);
    }
    if (status && t->fate == OPEN) told(status, t);
}

static void give_task(world *w, machine *m) {
    give(w, m, (task_kind)below(w, w->flows ? KINDS : FLOW));
}

/* ---- Signals ------------------------------------------------------------------------------- */

static void note_signalled(hd_status status, void *ctx) {
    if (!status) ((task *)ctx)->signalled = true; /* else it is not known, and given again */
}

/* A signal that is not acknowledged may be given again: the workflow takes one and ignores the others. */
static void give_signal(task *t, machine *m) {
    char id[24];
    snprintf(id, sizeof id, "flow/%u", t->number);
    if (!hd_workflow_signal(m->engine, id, "go", hd_int(NULL, 1)))
        (void)hd_workflow_stored(m->engine, note_signalled, t);
}

static void signal_some(world *w, machine *m) {
    for (uint32_t i = 0; i < w->task_count; i++) {
        task *t = &w->tasks[i];
        if (t->kind == FLOW && t->fate == YES && !t->signalled && !below(w, 2)) give_signal(t, m);
    }
}

/* Signals the flows whose start or signal was not acknowledged. A signal that was acknowledged must not be lost, so it
 * is not given again. */
static void signal_the_rest(world *w) {
    for (uint32_t i = 0; w->signals && i < w->task_count; i++)
        if (w->tasks[i].kind == FLOW && !w->tasks[i].signalled)
            give_signal(&w->tasks[i], &w->machines[0]);
}

/* ---- What happens -------------------------------------------------------------------------- */

static void pump(machine *m) {
    if (m->rt) (void)hd_runtime_pump(m->rt);
}

static machine *any_machine(world *w) { return &w->machines[below(w, w->machine_count)]; }

static void race(uint32_t number, void *ctx) {
    world *w = ctx;
    machine *m = any_machine(w);
    for (uint32_t i = below(w, 4); i-- > 0;)
        if (m->number != number) pump(m);
}

static void cut_line(world *w, machine *m) {
    sim_service_set_line(w->service, m->number, SIM_CUT);
    m->cut = 1 + below(w, 60);
    w->counts->cuts++;
}

static void mend_lines(world *w) {
    for (uint32_t i = 0; i < w->machine_count; i++) {
        machine *m = &w->machines[i];
        if (m->cut && !--m->cut) sim_service_set_line(w->service, i, SIM_UP);
    }
}

/* The service's clock and the machine's; those of the others stand still, so that clocks drift apart. */
static void pass_time(world *w, machine *m) {
    uint32_t ms = below(w, 10) ? below(w, 50) : below(w, 3000);
    hd_lab_env_advance_ms(m->env, ms);
    sim_service_advance_ms(w->service, ms);
}

/* Checkpoint and prune fail while the line is cut; nothing is lost by that. */
static void keep_house(world *w, machine *m) {
    if (below(w, 2)) (void)hd_store_checkpoint(m->rt, NULL);
    else (void)hd_store_prune(m->rt, NULL);
}

/* ---- Rare things, one after the other ------------------------------------------------------ */

static void pump_others(world *w, const machine *but, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds * w->machine_count; i++) {
        machine *m = &w->machines[i % w->machine_count];
        if (m != but) pump(m);
    }
}

/* A machine commits and is cut off before it is told; the others commit, and prune the log past its row. */
static void leave_in_doubt(world *w, machine *m) {
    machine *other = &w->machines[(m->number + 1) % w->machine_count];
    give_task(w, m);
    sim_service_silence(w->service, m->number);
    for (uint32_t i = 2 + below(w, 3); i-- > 0;) pump(m);
    cut_line(w, m);
    for (uint32_t i = 1 + below(w, 3); i-- > 0 && other->rt;) give_task(w, other);
    pump_others(w, m, 3);
    if (other->rt) (void)hd_store_prune(other->rt, NULL);
    m->cut = 1 + below(w, 20);
}

/* A machine runs workflows and is not heard of any more. By the clock of the service it is dead, by its own, which
 * stands still, it is not: it goes on with its steps, the others take them over, and then its line is up again. */
static void take_for_dead(world *w, machine *m) {
    for (uint32_t i = 2 + below(w, 4); i-- > 0;) give(w, m, FLOW);
    for (uint32_t i = 1 + below(w, 6); i-- > 0;) {
        pump(m);
        pump_others(w, m, 1);
        hd_lab_env_advance_ms(m->env, below(w, 200));
    }
    cut_line(w, m);
    for (uint32_t i = below(w, 5); i-- > 0;) pump(m);
    sim_service_advance_ms(w->service, 3000);
    for (uint32_t i = 0; i < w->machine_count; i++)
        if (&w->machines[i] != m) hd_lab_env_advance_ms(w->machines[i].env, 3000);
    pump_others(w, m, 6 + below(w, 20));
    m->cut = 1 + below(w, 4);
}

static void play(world *w, machine *m) {
    if (w->flows && below(w, 2)) take_for_dead(w, m);
    else leave_in_doubt(w, m);
}

static void happen(world *w) {
    machine *m = any_machine(w);
    mend_lines(w);
    if (!m->rt) {
        if (!below(w, 3)) start_machine(m);
        return;
    }
    if (w->rare && !m->cut && !below(w, RARELY)) {
        play(w, m);
        return;
    }
    if (w->signals && !below(w, 4)) signal_some(w, m);
    uint32_t what = below(w, 100);
    if (what < 35) give_task(w, m);
    else if (what < 90 - w->housework) pump(m);
    else if (what < 90) keep_house(w, m);
    else if (what < 94) pass_time(w, m);
    else if (what < 97 && !m->cut) cut_line(w, m);
    else if (what >= 98) kill_machine(m);
}

/* ---- Rest ---------------------------------------------------------------------------------- */

static void heal(world *w) {
    sim_service_set_faults(w->service, (sim_faults){ 0 });
    for (uint32_t i = 0; i < w->machine_count; i++) {
        machine *m = &w->machines[i];
        sim_service_set_line(w->service, i, SIM_UP);
        m->cut = 0;
        if (!m->rt) start_machine(m);
        if (!m->rt) wrong(w, "machine %u cannot be started although all is healed", i);
    }
}

/* A workflow sleeps by the clock of the machine that runs it. Where that is a minute behind the one that began the
 * sleep, it sleeps a minute longer. */
static bool is_asleep(const machine *m) {
    hd_engine_stats stats = { 0 };
    if (m->engine) hd_engine_stat(m->engine, &stats);
    return stats.timers > 0;
}

/* Some shard is run by no machine, or a machine runs two more than another. */
static bool is_uneven(const world *w) {
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    if (w->shards < 2) return false;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        hd_engine_stats stats;
        hd_engine_stat(w->machines[i].engine, &stats);
        sum += stats.shards;
        if (stats.shards < least) least = stats.shards;
        if (stats.shards > most) most = stats.shards;
    }
    return sum != w->shards || most - least > 1;
}

static bool is_pending(const world *w) {
    if (is_uneven(w)) return true;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        hd_store_stats stats;
        hd_runtime_store_stats(w->machines[i].rt, &stats);
        if (stats.pending || is_asleep(&w->machines[i])) return true;
    }
    return false;
}

/* Liveness: after so many rounds nothing is left to do. */
static void come_to_rest(world *w) {
    uint32_t quiet = 0;
    for (uint32_t round = 0; round < ROUNDS && quiet < QUIET && !*w->wrong; round++) {
        uint64_t rows = sim_service_rows(w->service), notices = w->notices;
        signal_the_rest(w);
        for (uint32_t i = 0; i < w->machine_count; i++) {
            pump(&w->machines[i]);
            hd_lab_env_advance_ms(w->machines[i].env, 100);
        }
        sim_service_advance_ms(w->service, 100);
        bool still = rows == sim_service_rows(w->service) && notices == w->notices;
        quiet = still && !is_pending(w) ? quiet + 1 : 0;
    }
    if (quiet < QUIET) wrong(w, "not at rest after %d rounds", ROUNDS);
}

/* ---- What must hold ------------------------------------------------------------------------ */

typedef struct view {
    world *w;
    const machine *m;
    hd_pool *pool;
} view;

static int64_t number_at(const view *v, hd_cell at) {
    return hd_value_as_int(hd_read(v->m->rt, v->pool, at), 0);
}

static bool is_done(const view *v, const task *t) {
    return number_at(v, cell(v->m->rt, "main/task/%u", t->number)) == t->number;
}

static void check_tasks(const view *v) {
    for (uint32_t i = 0; i < v->w->task_count; i++) {
        const task *t = &v->w->tasks[i];
        bool done = is_done(v, t);
        if (t->fate == OPEN) wrong(v->w, "task %u has no verdict", t->number);
        if (t->fate == YES && !done) wrong(v->w, "task %u was acknowledged and is lost", t->number);
        if (t->fate == NO && done)
            wrong(v->w, "task %u was refused (%s) and is there", t->number,
                  hd_status_name(t->status));
    }
}

static int64_t done_of(const view *v, task_kind kind, uint32_t a) {
    int64_t n = 0;
    for (uint32_t i = 0; i < v->w->task_count; i++) {
        const task *t = &v->w->tasks[i];
        n += t->kind == kind && (kind != COUNT || t->a == a) && is_done(v, t);
    }
    return n;
}

static void check_numbers(const view *v) {
    int64_t sum = 0, total = 0;
    for (uint32_t i = 0; i < COUNTERS; i++) {
        int64_t is = number_at(v, v->m->counters[i]), should = done_of(v, COUNT, i);
        if (is != should)
            wrong(v->w, "machine %u: counter %u is %lld, not %lld", v->m->number, i, (long long)is,
                  (long long)should);
        total += is;
    }
    for (uint32_t i = 0; i < ACCOUNTS; i++)
        sum += number_at(v, cell(v->m->rt, "main/account/%u", i));
    if (sum) wrong(v->w, "machine %u: the accounts add up to %lld", v->m->number, (long long)sum);
    if (v->m->shown != (double)total)
        wrong(v->w, "machine %u: its sink shows %g, not %lld", v->m->number, v->m->shown,
              (long long)total);
    if (number_at(v, cell(v->m->rt, "left/x")) != number_at(v, cell(v->m->rt, "right/x")))
        wrong(v->w, "machine %u: half of a commit", v->m->number);
}

static void check_list(const view *v) {
    uint32_t seen[TASKS + 1] = { 0 };
    hd_value list = hd_read(v->m->rt, v->pool, cell(v->m->rt, "main/list"));
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);) {
        int64_t n = hd_value_as_int(it.value, 0);
        if (n > 0 && n <= TASKS) seen[n]++;
    }
    for (uint32_t i = 0; i < v->w->task_count; i++) {
        const task *t = &v->w->tasks[i];
        uint32_t should = t->kind == MERGE && is_done(v, t);
        if (seen[t->number] != should)
            wrong(v->w, "machine %u: the list has task %u %u times, not %u", v->m->number,
                  t->number, seen[t->number], should);
    }
}

static void check_events(const view *v) {
    for (uint32_t i = 0; i < v->w->task_count; i++) {
        const task *t = &v->w->tasks[i];
        if (t->kind != EVENT) continue;
        int64_t is = number_at(v, cell(v->m->rt, "main/handled/%u", t->number));
        int64_t should = is_done(v, t);
        if (is != should)
            wrong(v->w, "machine %u: event %u was handled %lld times, not %lld", v->m->number,
                  t->number, (long long)is, (long long)should);
        if (!v->m->number) v->w->counts->handled += (uint64_t)is;
    }
}

static bool count_done(hd_value entry, void *ctx) {
    *(uint32_t *)ctx += !strcmp(hd_value_as_text(hd_value_at(entry, "what"), ""), "done");
    return true;
}

/* However often the steps were begun, each of them was completed once; so was the sleep, and the wait for a signal. */
static void check_journal(const view *v, const char *id) {
    uint32_t completed = 0, should = 4 + v->w->signals;
    hd_status status = hd_workflow_journal(v->m->engine, id, count_done, &completed);
    if (status || completed != should)
        wrong(v->w, "machine %u: the journal of %s (%s) has %u steps, not %u", v->m->number, id,
              hd_status_name(status), completed, should);
}

static void check_flows(const view *v) {
    for (uint32_t i = 0; i < v->w->task_count; i++) {
        const task *t = &v->w->tasks[i];
        if (t->kind != FLOW || !is_done(v, t)) continue;
        char id[24];
        snprintf(id, sizeof id, "flow/%u", t->number);
        hd_value doc = hd_read(v->m->rt, v->pool, hd_workflow_cell(v->m->engine, id));
        const char *status = hd_value_as_text(hd_value_at(doc, "status"), "-");
        int64_t result = hd_value_as_int(hd_value_at(doc, "result"), 0);
        hd_value steps = hd_read(v->m->rt, v->pool, cell(v->m->rt, "main/steps/%u", t->number));
        if (strcmp(status, "done") || result != t->number + 3 || hd_value_count(steps) != 3)
            wrong(v->w, "machine %u: workflow %u is %s (%s) with result %lld after %zu steps",
                  v->m->number, t->number, status,
                  hd_value_as_text(hd_value_at(hd_value_at(doc, "error"), "message"), "-"),
                  (long long)result, hd_value_count(steps));
        if (v->w->journals) check_journal(v, id);
        if (t->awaits && (t->ends != 1 || t->result != t->number + 3))
            wrong(v->w, "machine %u was told the end of workflow %u %u times (%lld)",
                  t->awaits->number, t->number, t->ends, (long long)t->result);
        if (!v->m->number) v->w->counts->flows++;
    }
}

static bool count_one(const hd_listing *entry, void *ctx) {
    (void)entry;
    return ++*(uint32_t *)ctx;
}

static uint32_t count_kind(const view *v, const char *kind) {
    uint32_t n = 0;
    if (hd_runtime_list(v->m->rt, "main", kind, NULL, count_one, &n))
        wrong(v->w, "machine %u: %s cannot be listed", v->m->number, kind);
    return n;
}

/* Machines that do not run all shards have announced themselves, and nothing is left of those that were killed. */
static void check_announced(const view *v) {
    uint32_t serve = 0, workers = count_kind(v, "workflow.worker");
    uint32_t tasks = count_kind(v, "workflow.tasks");
    for (uint32_t i = 0; i < v->w->machine_count; i++) {
        hd_engine_stats stats;
        hd_engine_stat(v->w->machines[i].engine, &stats);
        serve += stats.shards < v->w->shards;
    }
    if (workers != serve || tasks != serve * v->w->shards)
        wrong(v->w, "machine %u: %u machines serve others, %u announcements, %u with steps",
              v->m->number, serve, workers, tasks);
}

static void check_machine(world *w, const machine *m) {
    view v = { w, m, NULL };
    if (hd_pool_open(hd_runtime_heap(m->rt), &v.pool)) abort();
    check_tasks(&v);
    check_numbers(&v);
    check_list(&v);
    check_events(&v);
    check_flows(&v);
    if (w->serves) check_announced(&v);
    hd_pool_close(v.pool);
}

/* Reads are loads where a machine has not met a document: what it holds and what the store has must agree. */
static void check(world *w) {
    for (uint32_t i = 0; i < w->machine_count && !*w->wrong; i++) check_machine(w, &w->machines[i]);
    for (uint32_t i = 0; i < w->task_count; i++) {
        w->counts->acknowledged += w->tasks[i].fate == YES;
        w->counts->refused += w->tasks[i].fate == NO;
        w->counts->unknown += w->tasks[i].fate == UNKNOWN;
    }
    w->counts->races += sim_service_races(w->service);
    w->counts->digest ^= sim_service_digest(w->service);
}

/* ---- A world ------------------------------------------------------------------------------- */

static sim_faults draw_faults(world *w) {
    static const uint32_t often[] = { 0, 4, 12, 40 };
    return (sim_faults){ .refused = often[below(w, 4)],
                         .aborted = often[below(w, 4)],
                         .lost_ack = often[below(w, 4)],
                         .unread = often[below(w, 4)] * 8,
                         .raced = often[below(w, 4)] / 2 };
}

static void open_world(world *w, uint64_t seed, unsigned sabotage) {
    w->random = hd_lab_random_of(seed);
    w->service = sim_service_open(hd_lab_random_u64(&w->random));
    sim_service_sabotage(w->service, sabotage);
    sim_service_on_race(w->service, race, w);
    w->machine_count = 2 + below(w, MACHINES - 1);
    for (uint32_t i = 0; i < w->machine_count; i++) {
        machine *m = &w->machines[i];
        *m = (machine){ .world = w, .number = i, .env = hd_lab_env_open() };
        hd_lab_env_set_seed(m->env, hd_lab_random_u64(&w->random));
        hd_lab_env_advance_ms(m->env, below(w, 100000)); /* clocks differ */
        start_machine(m);
    }
    sim_service_set_faults(w->service, draw_faults(w));
    w->housework = below(w, 2) ? 4 : 25;
}

static void close_world(world *w) {
    for (uint32_t i = 0; i < w->machine_count; i++) {
        machine *m = &w->machines[i];
        if (*w->wrong) sim_service_set_line(w->service, i, SIM_DEAD);
        if (m->rt) hd_close(m->rt);
        hd_lab_env_close(m->env);
    }
    sim_service_close(w->service);
}

const char *sim_world_run(uint64_t seed, unsigned sabotage, sim_counts *counts) {
    static char message[440];
    world *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->counts = counts;
    w->flows = seed % 2; /* worlds without engines are quicker */
    w->serves = seed % 8 == 3 || seed % 8 == 5;
    w->signals = seed % 16 == 7;
    w->journals = seed % 5 == 1 || seed % 5 == 2;
    w->rare = seed % 3 == 0 && (sabotage || getenv("HD_SIM_RARE"));
    w->shards = seed % 4 == 3 ? 2 + (uint32_t)(seed / 4 % 5) : 1;
    open_world(w, seed, sabotage);
    for (int i = 0; i < STEPS && !*w->wrong; i++) happen(w);
    heal(w);
    if (!*w->wrong) come_to_rest(w);
    if (!*w->wrong) check(w);
    snprintf(message, sizeof message, "seed %llu: %s", (unsigned long long)seed, w->wrong);
    bool holds = !*w->wrong;
    close_world(w);
    free(w);
    return holds ? NULL : message;
}

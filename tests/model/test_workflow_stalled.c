/* test_workflow_stalled.c -- random families of instances, some of which make values that cannot be stored, while the
 * store refuses commits and allocations fail: all of them end, children with their parents, and nobody is told of what
 * is not stored (decision 0362).
 *
 * HD_WORKFLOW_STALLS: so many worlds; HD_SEED: which. */
#define _DEFAULT_SOURCE
#include "times.h"
#include "workflow_world.h"

#include <heddle/workflow_build.h>

enum { LEVELS = 4, TOGETHER = 6, PIECES = 4 };

static uint64_t dice, seed;
static uint64_t roll(uint64_t n) {
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % n;
}

static hd_memory *memory;
static uint64_t refuse_one_in; /* commits; 0: none */
static bool unlucky;           /* allocations fail */
static long stalled, refused, ended, below;

static hd_status judge(const hd_runtime *from, void *ctx) {
    static const hd_status statuses[] = { HD_STALE, HD_REJECTED, HD_LIMIT, HD_IO };
    if (!refuse_one_in || roll(refuse_one_in)) return HD_OK;
    refused++;
    return statuses[roll(refuse_one_in == 2 ? 4 : 2)];
}

static bool is_over(hd_value doc) {
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    return *status && strcmp(status, "running") != 0 && strcmp(status, "queued") != 0;
}

static hd_value document_of(const char *which) {
    return hd_read(rt, pool, hd_workflow_cell(engine, which));
}

/* No step of a child begins when its parent is over, unless it has been cancelled and handles that; or there is no
 * memory to cancel it at once. */
static hd_status act(hd_action *a, hd_value args, void *ctx) {
    char instance[HD_INSTANCE_ID_SIZE];
    const char *step = hd_action_id(a); /* "<instance>/<numbers>" */
    snprintf(instance, sizeof instance, "%.*s", (int)(strrchr(step, '/') - step), step);
    hd_value doc = document_of(instance), parent = hd_value_at(hd_value_at(doc, "parent"), "id");
    const char *above = hd_value_as_text(parent, "");
    below += *above != 0;
    bool handles = hd_value_exists(hd_value_at(doc, "cancelling"));
    if (*above && !handles && !unlucky && is_over(document_of(above)))
        fail_msg("HD_SEED=%llu: a step of %s begins, and %s is over", (unsigned long long)seed,
                 instance, above);
    return hd_action_return(a, hd_value_index(args, 0));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "act", .fn = act, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

/* ---- workflows */

static void add_child(hd_flow *f, int level) {
    char name[16];
    snprintf(name, sizeof name, "l%d", level + 1 + (int)roll(2));
    if (level + 2 >= LEVELS) snprintf(name, sizeof name, "l%d", LEVELS - 1);
    hd_flow_try(f);
    hd_flow_child(f, NULL, name, "");
    hd_flow_except(f, "Exception", "e");
    hd_flow_action(f, NULL, "act", "2");
    hd_flow_end(f);
}

/* Tuples that have no form in the store. */
static void add_unfit(hd_flow *f) {
    hd_flow_do(f, "x = ()");
    hd_flow_for(f, "i", "range(250)");
    hd_flow_do(f, "x = (x,)");
    hd_flow_end(f);
}

static void add_piece(hd_flow *f, int level, bool nested) {
    uint64_t what = roll(nested ? 8 : 10);
    if (what < 2) hd_flow_action(f, NULL, "act", "1");
    else if (what < 4) hd_flow_sleep(f, "3");
    else if (what < 5) add_unfit(f);
    else if (what < 8 && level < LEVELS - 1) add_child(f, level);
    if (what < 8) return;
    hd_flow_gather(f);
    for (int i = 0; i < 2; i++) {
        hd_flow_branch(f);
        for (int k = 0; k < 2; k++) add_piece(f, level, true);
        hd_flow_sleep(f, "1");
    }
    hd_flow_join(f, NULL, NULL);
}

static void register_level(int level) {
    char name[16];
    hd_flow *f;
    hd_value ir;
    hd_error error = { 0 };
    snprintf(name, sizeof name, "l%d", level);
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    hd_flow_do(f, "x = ()");
    for (uint64_t i = 1 + roll(PIECES); i-- > 0;) add_piece(f, level, false);
    hd_flow_action(f, NULL, "act", "3");
    hd_flow_return(f, "len(x)");
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
}

/* ---- a world */

static int told_ends, told_stored, started;
static int gone; /* starts that the store does not take at all: it has refused them as too long */

static void note_end(const char *which, hd_status status, hd_value result, void *ctx) {
    told_ends++;
    gone += status == HD_NOT_FOUND;
    if (status != HD_NOT_FOUND && !is_over(document_of(which)))
        fail_msg("HD_SEED=%llu: the end of %s is told", (unsigned long long)seed, which);
}

static void note_stored(hd_status status, void *ctx) {
    told_stored++;
    gone -= !hd_value_exists(document_of(ctx));
    if (gone < 0)
        fail_msg("HD_SEED=%llu: %s is told as stored", (unsigned long long)seed, (char *)ctx);
}

static bool check_end(const hd_workflow_entry *entry, void *ctx) {
    hd_value doc = document_of(entry->id);
    stalled += !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), "stalled");
    ended++;
    if (!is_over(doc) || !hd_value_exists(hd_value_at(doc, "finished")))
        fail_msg("HD_SEED=%llu: %s", (unsigned long long)seed, printed(doc));
    return true;
}

static void start_one(char ids[TOGETHER][HD_INSTANCE_ID_SIZE]) {
    if (started == TOGETHER || roll(2)) return;
    char *own = ids[started];
    if (hd_workflow_start(engine, "l0", hd_object(), NULL, own)) return;
    started++;
    while (hd_workflow_then(engine, own, note_end, NULL)) {}
    while (hd_workflow_stored(engine, note_stored, own)) {}
}

static void run_world(void) {
    char ids[TOGETHER][HD_INSTANCE_ID_SIZE];
    dice = seed;
    env = lab_env_open();
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    hd_memory_intercept(memory, judge, NULL, NULL);
    refuse_one_in = 0;
    told_ends = told_stored = started = gone = 0;
    open_engine(memory, &rt, &engine);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < LEVELS; i++) register_level(i);
    pump();
    unlucky = roll(2);
    refuse_one_in = roll(3) ? 2 + roll(4) : 0;
    for (int turn = 0; turn < 200; turn++) {
        start_one(ids);
        if (unlucky && !roll(3)) lab_env_fail_at(env, 1 + roll(400));
        (void)hd_runtime_pump(rt);
        lab_env_fail_at(env, 0);
        lab_env_advance_ms(env, roll(200));
        if (!roll(8)) hd_pool_clear(pool);
    }
    refuse_one_in = 0;
    for (int turn = 0; stats_now().open || told_stored < started; turn++) {
        if (turn == 20000) fail_msg("HD_SEED=%llu: does not end", (unsigned long long)seed);
        (void)hd_runtime_pump(rt);
        lab_env_advance_ms(env, 100);
    }
    pump();
    if (told_ends != started)
        fail_msg("HD_SEED=%llu: %d of %d ends are told", (unsigned long long)seed, told_ends,
                 started);
    assert_int_equal(hd_workflow_list(engine, NULL, check_end, NULL), HD_OK);
    close_store();
    hd_memory_close(memory);
    lab_env_close(env);
}

static void all_end_whatever_cannot_be_stored(void **state) {
    const char *given = getenv("HD_SEED");
    uint64_t n = given ? 1 : lab_times("HD_WORKFLOW_STALLS", LAB_SLOW ? 200 : 400);
    for (uint64_t i = 1; i <= n; i++) {
        seed = given ? strtoull(given, NULL, 0) : i;
        run_world();
    }
    print_message("%ld ended, %ld of them stalled, %ld steps of children, %ld refusals\n", ended,
                  stalled, below, refused);
    assert_true(given || (stalled > ended / 20 && below > ended / 20 && refused > (long)n));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_end_whatever_cannot_be_stored) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_workflow_flat.c -- what one more iteration, and one more child, costs: the same at the thousandth as at the
 * hundredth. Counted: nodes and arrivals of the engine, allocations, and bytes that reach the disk.
 *
 * HD_FLAT: how many there are (default 20,000); `make nightly` takes 100,000. */
#define _DEFAULT_SOURCE
#include "disk_world.h"
#include "workflow_world.h"
#include <heddle/workflow_build.h>

enum { WINDOW = 500, FIRST = 100 };

typedef struct costs {
    uint64_t nodes, arrivals, allocations, bytes;
} costs;

static uint64_t calls, last;
static costs at_call[4]; /* at the beginning and the end of two windows of calls */

static costs now(void) {
    hd_engine_stats s = stats_now();
    lab_io_counts io = lab_disk_counts(disk);
    return (costs){ s.nodes, s.arrivals, lab_env_allocations(env), lab_io_durable_bytes(&io) };
}

/* An instance in memory counts its nodes when it leaves it: the loop's are told by the children of a loop only. */
static hd_status count(hd_action *a, hd_value args, void *ctx) {
    calls++;
    if (calls == FIRST) at_call[0] = now();
    if (calls == FIRST + WINDOW) at_call[1] = now();
    if (calls == last - WINDOW) at_call[2] = now();
    if (calls == last) at_call[3] = now();
    return hd_action_return(a, hd_int(NULL, 1));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "count", .fn = count, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static int set_up(void **state) {
    const char *given = getenv("HD_FLAT");
    hd_error error = { 0 };
    new_disk(state);
    calls = 0;
    last = given ? strtoull(given, NULL, 10) : 20000;
    if (last < FIRST + 2 * WINDOW) last = FIRST + 2 * WINDOW;
    env = lab_env_open();
    hd_options options = { .env = lab_env_of(env), .vfs = lab_disk_vfs(disk) };
    if (hd_open("flat.db", &options, &rt, &error)) fail_msg("%s", error.message);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    return 0;
}

static int tear_down(void **state) {
    tear_down_world(state);
    return free_disk(state);
}

static void register_flow(hd_flow *f) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
}

static hd_flow *flow(const char *name) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    return f;
}

/* Within a tenth, and a little for what happens now and then (a table that grows, a checkpoint). */
static void assert_flat(const char *what, uint64_t early, uint64_t late, uint64_t spare) {
    print_message("%s: %.1f, then %.1f\n", what, (double)early / WINDOW, (double)late / WINDOW);
    if (late > early + early / 10 + spare)
        fail_msg("%s of %d: %llu at first, %llu in the end", what, WINDOW,
                 (unsigned long long)early, (unsigned long long)late);
}

static void run_and_compare(void) {
    char input[40];
    snprintf(input, sizeof input, "{'n':%llu}", (unsigned long long)last);
    start("w", input);
    hd_value result;
    assert_int_equal(await(&result), HD_OK);
    assert_int_equal(calls, last);
    const costs *c = at_call;
    assert_flat("nodes", c[1].nodes - c[0].nodes, c[3].nodes - c[2].nodes, 0);
    assert_flat("arrivals", c[1].arrivals - c[0].arrivals, c[3].arrivals - c[2].arrivals, 0);
    assert_flat("allocations", c[1].allocations - c[0].allocations,
                c[3].allocations - c[2].allocations, WINDOW / 10);
    assert_flat("bytes", c[1].bytes - c[0].bytes, c[3].bytes - c[2].bytes, 100 * 4096);
}

static void an_iteration_costs_the_same_early_and_late(void **state) {
    hd_flow *f = flow("w");
    hd_flow_input(f, "n", hd_int(pool, 0));
    hd_flow_do(f, "seen = []");
    hd_flow_for(f, "i", "range(n)");
    hd_flow_action(f, "r", "count", NULL);
    hd_flow_do(f, "seen.append(r + i)");
    hd_flow_end(f);
    hd_flow_return(f, "len(seen)");
    register_flow(f);
    run_and_compare();
}

/* Work that waits in a list, of which each iteration takes the first, and names in a set. */
static void taking_from_a_list_costs_the_same_early_and_late(void **state) {
    hd_flow *f = flow("w");
    hd_flow_input(f, "n", hd_int(pool, 0));
    hd_flow_do(f, "jobs = list(range(n)); names = {str(n - i) for i in range(n)}");
    hd_flow_while(f, "jobs");
    hd_flow_do(f, "job = jobs.pop(0); name = names.pop()");
    hd_flow_action(f, "r", "count", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "len(names)");
    register_flow(f);
    run_and_compare();
}

static void a_child_costs_the_same_early_and_late(void **state) {
    hd_flow *f = flow("inner");
    hd_flow_action(f, "r", "count", NULL);
    hd_flow_return(f, "r");
    register_flow(f);
    f = flow("w");
    hd_flow_input(f, "n", hd_int(pool, 0));
    hd_flow_do(f, "total = 0");
    hd_flow_for(f, "i", "range(n)");
    hd_flow_child(f, "r", "inner", NULL);
    hd_flow_do(f, "total += r");
    hd_flow_end(f);
    hd_flow_return(f, "total");
    register_flow(f);
    run_and_compare();
}

/* Elements of a fan-out, of which 100 are open at once. */
static void a_branch_costs_the_same_early_and_late(void **state) {
    hd_flow *f = flow("w");
    hd_flow_input(f, "n", hd_int(pool, 0));
    hd_flow_each(f, "i", "range(n)");
    hd_flow_window(f, 100);
    hd_flow_action(f, "r", "count", NULL);
    hd_flow_join(f, "seen", "r");
    hd_flow_return(f, "len(seen)");
    register_flow(f);
    run_and_compare();
}

int main(void) {
#define ON_A_DISK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ON_A_DISK(an_iteration_costs_the_same_early_and_late),
        ON_A_DISK(taking_from_a_list_costs_the_same_early_and_late),
        ON_A_DISK(a_child_costs_the_same_early_and_late),
        ON_A_DISK(a_branch_costs_the_same_early_and_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

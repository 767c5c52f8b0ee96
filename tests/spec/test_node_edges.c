/* test_node_edges.c -- nodes at the edges: a parent that goes before its child, a run that does not
 * count, a suspended one that is given up, names with slashes, questions asked at a bad moment. */
#include "lab_inside.h"
#include <heddle/event.h>

#include "spec.h" /* after the internal headers: it has a variable `l` */

static hd_runtime *rt(void) { return lab_runtime_now(l); }
static hd_node node_named(const char *name) { return lab_find(l, name)->node; }

/* ---- names */

/* Children stay when their parent goes; their names are theirs to go with. */
static void a_child_outlives_its_parent(void **state) {
    lab_effect(l, "parent", "n");
    lab_settle(l);
    lab_add(l, .name = "child", .reads = "n", .effect = true, .parent = "parent");
    lab_settle(l);
    assert_int_equal(hd_node_find(rt(), "parent/child").id, node_named("child").id);
    lab_cancel(l, "parent");
    assert_int_equal(hd_node_find(rt(), "parent/child").id, 0);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "parent child child");
    lab_cancel(l, "child");
    assert_int_equal(lab_stats(l).nodes, 0);
}

static void see(hd_value v, void *ctx) { ++*(int *)ctx; }

/* A slip in a name gives no cell: whoever looks there would see nothing for ever. */
static void a_sink_needs_a_cell(void **state) {
    int seen = 0;
    hd_pool *pool;
    hd_cell slip = hd_cell_at(rt(), "a name without a space");
    assert_int_equal(hd_sink(rt(), slip, see, &seen).id, 0);
    assert_int_equal(hd_runtime_error(rt())->status, HD_USAGE);
    assert_non_null(strstr(hd_runtime_error(rt())->message, "no cell"));
    assert_int_equal(hd_pull(rt(), slip, see, &seen), HD_USAGE);
    assert_int_equal(hd_sink(rt(), hd_cell_at(rt(), "main/n"), NULL, NULL).id, 0);
    assert_non_null(strstr(hd_runtime_error(rt())->message, "fn must not be NULL"));
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    assert_int_equal(hd_value_status(hd_pull_now(rt(), pool, slip)), HD_USAGE);
    hd_pool_close(pool);
    lab_settle(l);
    assert_int_equal(seen, 0);
}

/* A node that runs a thousand times a second has got there after seven weeks. */
static void runs_are_counted_beyond_32_bits(void **state) {
    hd_node_info info;
    hd_action_stats stats;
    const uint64_t before = UINT32_MAX - 1;
    lab_effect(l, "busy", "n");
    lab_settle(l);
    lab_pretend_runs(l, "busy", (uint32_t)before);
    for (int i = 1; i <= 4; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
        assert_int_equal(hd_node_inspect(rt(), node_named("busy"), &info), HD_OK);
        assert_int_equal(info.runs, before + (uint64_t)i);
    }
    hd_runtime_action_stats(rt(), "busy", &stats);
    assert_int_equal(stats.runs, before + 4);
    lab_ran(l);
}

static void a_name_may_have_a_slash_and_any_length(void **state) {
    char name[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    lab_effect(l, name, "n");
    assert_int_equal(hd_node_find(rt(), name).id, node_named(name).id);
    lab_effect(l, "a/b", "n");
    assert_int_equal(hd_node_find(rt(), "a/b").id, node_named("a/b").id);
    lab_effect(l, "a", "n");
    lab_add(l, .name = "c/d", .reads = "n", .effect = true, .parent = "a");
    assert_int_equal(hd_node_find(rt(), "a/c/d").id, node_named("c/d").id);
    assert_int_equal(hd_node_find(rt(), "a/b/d").id, 0);
    lab_add(l, .name = "e", .reads = "n", .effect = true, .parent = "a/b");
    assert_int_equal(hd_node_find(rt(), "a/b/e").id, node_named("e").id);
    assert_int_equal(hd_node_find(rt(), "a/b").id, node_named("a/b").id);
}

static hd_status handle_nothing(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)tx, (void)event, (void)ctx;
    return HD_OK;
}

static hd_status do_nothing(hd_tx *tx, void *ctx) {
    (void)tx, (void)ctx;
    return HD_OK;
}

static void expect_named(hd_status status, const char *what) {
    assert_int_equal(status, HD_SYNTAX);
    assert_non_null(strstr(hd_runtime_error(rt())->message, what));
    assert_non_null(strstr(hd_runtime_error(rt())->message, "UTF-8"));
}

/* Names go into the store and into answers as text. */
static void a_name_that_is_no_text_is_refused_with_the_reason(void **state) {
    hd_node node_;
    hd_handler handler;
    hd_hold hold_;
    hd_node_spec spec = { .name = "sh\xffow", .fn = do_nothing, .effect = true };
    expect_named(hd_node_register(rt(), &spec, &node_), "node");
    hd_handler_spec of = { .name = "til\xffl",
                           .stream = lab_cell(lab_on(l, "a"), "stream"),
                           .fn = handle_nothing,
                           .reads_nothing = true };
    expect_named(hd_handler_register(rt(), &of, &handler), "handler");
    expect_named(hd_hold_begin(rt(), "sh\xffow", 5, &hold_), "hold");
}

/* ---- runs that do not count */

static hd_status read_twice(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    lab_tx_number(self, tx, "late");
    return HD_OK;
}

/* A run that was set aside is no run that the throttle counts. */
static void a_throttled_effect_that_is_set_aside_runs_in_the_same_pass(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "late", "n", NULL);
    lab_add(l, .name = "show", .body = read_twice, .effect = true, .throttle_ms = 1000);
    lab_turn(l);
    lab_turn(l);
    assert_ran(l, "show late show");
    assert_true(lab_is_clean(l, "show"));
}

static void a_throttled_effect_is_retried_at_once(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "show", .reads = "n", .effect = true, .throttle_ms = 1000);
    lab_settle(l);
    lab_advance_ms(l, 1000);
    assert_ran(l, "show");
    lab_fail_next(l, "show", HD_BUSY, 1);
    lab_set(l, "n", 2);
    lab_turn(l);
    lab_turn(l);
    assert_ran(l, "show show");
}

/* C202, C207: the budget is for failures in a row. */
static void failures_that_were_overcome_do_not_add_up(void **state) {
    lab_catch(l);
    lab_set(l, "n", 0);
    lab_compute(l, "copy", "n", NULL);
    lab_effect(l, "show", "copy");
    lab_settle(l);
    for (int i = 1; i <= 15; i++) {
        lab_fail_next(l, i % 2 ? "copy" : "show", HD_BUSY, 2);
        lab_set(l, "n", i);
        lab_idle(l);
        assert_true(lab_is_clean(l, "copy") && lab_is_clean(l, "show"));
    }
    assert_string_equal(lab_failures(l), "");
    assert_json(l, "copy", "15");
}

/* ---- a failure without memory */

typedef struct faulty {
    hd_cell in, out;
    int runs;
    bool fails;
} faulty;

static hd_status read_shape(hd_tx *tx, void *ctx) {
    faulty *f = ctx;
    f->runs++;
    (void)hd_tx_read(tx, f->in, HD_READ_SHAPE); /* by shape: its list needs memory */
    return f->fails ? HD_FAILED : hd_tx_set_int(tx, f->out, f->runs);
}

static void look_at(hd_value v, void *ctx) { (void)ctx, (void)v; }

/* Others, who take lists that were free. */
static hd_status read_shape_only(hd_tx *tx, void *ctx) {
    (void)hd_tx_read(tx, *(const hd_cell *)ctx, HD_READ_SHAPE);
    return HD_OK;
}
static void use_lists(hd_runtime *own, hd_cell *others, int count) {
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "main/o%d", i);
        others[i] = hd_cell_at(own, name);
        hd_effect(own, NULL, read_shape_only, &others[i]);
    }
    hd_runtime_settle(own);
}

/* The second allocation fails while somebody begins to look. Its writer, which could not be put into the
 * index for want of memory, then fails for a reason of its own. True: an allocation did fail. */
static bool fail_without_memory(int lists_used) {
    lab_env *env = lab_env_open();
    hd_cell others[200];
    hd_runtime *own;
    assert_int_equal(hd_open(NULL, &(hd_options){ .env = lab_env_of(env) }, &own, NULL), HD_OK);
    faulty f = { .in = hd_cell_at(own, "main/in"), .out = hd_cell_at(own, "main/out") };
    hd_write_json(own, f.in, "[1]");
    hd_compute(own, "faulty", read_shape, &f, f.out);
    hd_node sink = hd_sink(own, f.out, look_at, NULL);
    hd_runtime_settle(own);
    hd_node_unregister(own, sink);
    hd_write_json(own, f.in, "[1, 2]"); /* dormant and invalid: in no list */
    f.fails = true;
    use_lists(own, others, lists_used);
    lab_env_fail_at(env, 2); /* the first is the sink's own */
    sink = hd_sink(own, f.out, look_at, NULL);
    bool met = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    for (int i = 0; i < 3; i++) hd_runtime_pump(own);
    f.fails = false;
    hd_write_json(own, f.in, "[1, 2, 3]");
    for (int i = 0; i < 3; i++) hd_runtime_pump(own);
    if (sink.id) assert_int_equal(f.runs, 3);
    hd_close(own);
    lab_env_close(env);
    return met;
}

static void what_failed_without_memory_still_hears_of_its_reads(void **state) {
    int met = 0;
    for (int used = 0; used < 200; used++) met += fail_without_memory(used);
    assert_true(met > 0);
}

/* ---- suspended runs */

typedef struct async {
    hd_run *run;
    hd_status returns;
} async;

static hd_status suspend_here(lab_node *self, hd_tx *tx) {
    async *a = self->data;
    lab_tx_number(self, tx, "n");
    assert_int_equal(hd_tx_suspend(tx, &a->run), HD_OK);
    return a->returns;
}

static void a_suspended_run_that_was_cancelled_goes_with_the_runtime(void **state) {
    async a = { .returns = HD_PENDING };
    lab_add(l, .name = "waits", .body = suspend_here, .data = &a, .effect = true);
    lab_settle(l);
    assert_ran(l, "waits");
    lab_cancel(l, "waits");
} /* lab_close finds leaks */

static void a_body_that_suspends_and_then_fails_has_failed(void **state) {
    async a = { .returns = HD_FAILED };
    lab_catch(l);
    lab_add(l, .name = "waits", .body = suspend_here, .data = &a, .effect = true);
    lab_settle(l);
    assert_string_equal(lab_failures(l), "waits HD_FAILED");
    assert_true(hd_runtime_is_idle(rt()));
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "waits waits");
}

static hd_status resume_other(lab_node *self, hd_tx *tx) {
    async *a = self->data;
    lab_tx_number(self, tx, "go");
    hd_run *run = a->run;
    a->run = NULL;
    if (run) {
        hd_tx_set_int(hd_run_tx(run), lab_cell(self->at, "out"), 7);
        hd_run_resume(run, HD_OK);
        assert_string_equal(lab_json(self->l, "out"), "-");
    }
    return HD_OK;
}

static void a_run_may_be_resumed_from_the_body_of_another(void **state) {
    async a = { .returns = HD_PENDING };
    lab_add(l, .name = "waits", .body = suspend_here, .data = &a, .effect = true);
    lab_settle(l);
    lab_add(l, .name = "other", .body = resume_other, .data = &a, .effect = true);
    lab_settle(l);
    assert_json(l, "out", "7");
    assert_true(lab_is_clean(l, "waits"));
    assert_true(lab_is_clean(l, "other"));
}

/* n at once while it is 1; else it waits, for ever. */
static hd_status copy_slowly(lab_node *self, hd_tx *tx) {
    hd_run *run;
    double n = lab_tx_number(self, tx, "n");
    if (n == 1) return lab_tx_put(self, tx, "slow", n);
    assert_int_equal(hd_tx_suspend(tx, &run), HD_OK);
    return HD_PENDING;
}

static void show_slowly(void) {
    lab_add(l, .name = "slow", .body = copy_slowly);
    lab_effect(l, "show", "slow");
}

/* I7: what a run was about to replace is not taken for its result after a restart. */
static void a_run_that_was_suspended_at_the_end_runs_again(void **state) {
    lab_set(l, "n", 1);
    show_slowly();
    lab_settle(l);
    hd_runtime_sync(rt());
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "slow show slow");
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    show_slowly();
    lab_settle(l);
    assert_true(strstr(lab_ran(l), "slow") != NULL);
}

static void a_suspended_run_of_a_node_that_is_gone_holds_nobody_up(void **state) {
    async a = { .returns = HD_PENDING };
    lab_add(l, .name = "waits", .body = suspend_here, .data = &a, .effect = true);
    lab_settle(l);
    assert_false(hd_runtime_is_idle(rt()));
    lab_cancel(l, "waits");
    lab_settle(l);
    assert_true(hd_runtime_is_idle(rt()));
    assert_int_equal(hd_tx_node(hd_run_tx(a.run)).id, 0);
    hd_run_resume(a.run, HD_OK);
    assert_true(lab_stats(l).runs == 0);
}

/* C201: a retry does not wait for its debounce; changes after it do. */
static void a_debounce_holds_again_after_a_retry(void **state) {
    async a = { .returns = HD_PENDING };
    lab_set(l, "n", 1);
    lab_add(l, .name = "waits", .body = suspend_here, .data = &a, .effect = true,
            .debounce_ms = 50);
    lab_advance_ms(l, 50);
    lab_turn(l);
    lab_set(l, "n", 2);
    hd_run_resume(a.run, HD_OK);
    lab_turn(l);
    assert_ran(l, "waits waits");
    hd_run_resume(a.run, HD_OK);
    lab_turn(l);
    assert_true(lab_is_clean(l, "waits"));
    lab_set(l, "n", 3);
    lab_turn(l);
    assert_ran(l, "");
    lab_advance_ms(l, 50);
    lab_turn(l);
    assert_ran(l, "waits");
    hd_run_resume(a.run, HD_OK);
}

static hd_status suspend_on_shape(lab_node *self, hd_tx *tx) {
    async *a = self->data;
    (void)hd_tx_read(tx, lab_cell(self->at, "list"), HD_READ_SHAPE);
    assert_int_equal(hd_tx_suspend(tx, &a->run), HD_OK);
    return a->returns;
}

/* I3: what it read by shape has not changed when a value inside has. */
static void a_suspended_run_that_read_a_shape_minds_the_shape_only(void **state) {
    async a = { .returns = HD_PENDING };
    lab_set_json(l, "list", "[1, 2]");
    lab_add(l, .name = "waits", .body = suspend_on_shape, .data = &a, .effect = true);
    lab_settle(l);
    hd_run_resume(a.run, HD_OK);
    lab_set_json(l, "list", "[1, 2, 3]");
    lab_settle(l);
    assert_ran(l, "waits waits");
    lab_set_json(l, "list#/0", "9");
    hd_run_resume(a.run, HD_OK);
    lab_settle(l);
    assert_ran(l, "");
    lab_set_json(l, "list", "[1]");
    lab_settle(l);
    lab_set_json(l, "list", "[]");
    hd_run_resume(a.run, HD_OK);
    lab_settle(l);
    assert_ran(l, "waits waits");
    hd_run_resume(a.run, HD_OK);
}

/* Who reads the shape later does not know of changes before. */
static void a_shape_that_nobody_watched_may_have_changed(void **state) {
    async a = { .returns = HD_PENDING };
    lab_set_json(l, "list", "[1, 2]");
    lab_effect(l, "deep1", "list");
    lab_effect(l, "deep2", "list");
    lab_settle(l);
    lab_ran(l);
    lab_add(l, .name = "waits", .body = suspend_on_shape, .data = &a, .effect = true);
    lab_settle(l);
    lab_set_json(l, "list", "[1, 2, 3]");
    lab_settle(l);
    lab_effect(l, "shape", "~list");
    lab_settle(l);
    lab_ran(l);
    hd_run_resume(a.run, HD_OK);
    lab_settle(l);
    assert_ran(l, "waits");
    hd_run_resume(a.run, HD_OK);
}

static hd_status suspend_unread(lab_node *self, hd_tx *tx) {
    async *a = self->data;
    assert_int_equal(hd_tx_suspend(tx, &a->run), HD_OK);
    return HD_PENDING;
}

static hd_node short_lived;
static hd_status live_shortly(hd_tx *tx, void *ctx) {
    (void)tx, (void)ctx;
    hd_node_unregister(rt(), short_lived);
    return HD_OK;
}

static void read_and_resume(void *ctx) {
    async *a = ctx;
    (void)hd_tx_get(hd_run_tx(a->run), lab_cell(lab_on(l, "a"), "late"));
    hd_run_resume(a->run, HD_OK);
}

/* The end of a run meets what nobody has run yet, in the middle of a pass, when nobody looks any more. */
static void a_dormant_node_is_set_aside_without_a_trace(void **state) {
    async a = { 0 };
    lab_compute(l, "late", "n", NULL);
    lab_add(l, .name = "waits", .body = suspend_unread, .data = &a);
    lab_effect(l, "show", "waits");
    lab_settle(l);
    assert_ran(l, "waits"); /* show waits for its end */
    lab_cancel(l, "show");
    hd_node_spec spec = {
        .fn = live_shortly, .ctx = &a, .release = read_and_resume, .effect = true
    };
    assert_int_equal(hd_node_register(rt(), &spec, &short_lived), HD_OK);
    lab_turn(l);
    assert_false(hd_node_exists(rt(), short_lived));
    assert_false(lab_is_live(l, "waits"));
    lab_settle(l);
    assert_ran(l, "");
}

static bool note_action(hd_log_entry *entry, void *ctx) {
    snprintf(ctx, 32, "%s", entry->action);
    return false;
}

/* C317: and not the name of whoever runs at the moment. */
static void log_lines_of_a_suspended_run_carry_its_name(void **state) {
    async a = { .returns = HD_PENDING };
    char action[32] = "";
    lab_add(l, .name = "waits", .body = suspend_here, .data = &a, .effect = true);
    lab_settle(l);
    hd_runtime_set_log(rt(), note_action, action);
    hd_tx_log(hd_run_tx(a.run), HD_LOG_INFO, "still here");
    assert_string_equal(action, "waits");
    hd_run_resume(a.run, HD_OK);
}

/* ---- listeners */

static void cancel_both(const hd_notice *notice, void *ctx) {
    hd_node *nodes = ctx;
    hd_node_unregister(rt(), nodes[0]);
    hd_node_unregister(rt(), nodes[1]);
    if (!hd_node_find(rt(), "new").id) lab_effect(l, "new", "m");
    (void)notice;
}

static void a_listener_cancels_the_node_whose_output_it_hears_of(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "copy", .reads = "n", .throttle_ms = 5);
    lab_effect(l, "show", "copy");
    lab_add(l, .name = "a", .reads = "n", .effect = true, .debounce_ms = 1);
    lab_add(l, .name = "b", .reads = "n", .effect = true, .debounce_ms = 1);
    lab_cancel(l, "a");
    lab_cancel(l, "b");
    hd_node nodes[2] = { node_named("show"), node_named("copy") };
    assert_int_equal(hd_runtime_listen(rt(), cancel_both, nodes), HD_OK);
    lab_settle(l);
    hd_runtime_unlisten(rt(), cancel_both, nodes);
    assert_ran(l, "copy new");
    assert_int_equal(lab_stats(l).nodes, 1);
    assert_int_equal(lab_info(l, "new").runs, 1);
}

/* ---- giving way */

enum { EARLY = 5, BETWEEN = 20, LATE = 200 };

static void each_of(const char *kind, int count, void (*fn)(const char *name)) {
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", kind, i);
        fn(name);
    }
}
static void add_filler(const char *name) { lab_effect(l, name, "nothing"); }
static void cancel_filler(const char *name) { lab_cancel(l, name); }

/* Uses the slice up, and takes more than half of all nodes away. */
static hd_status clear_out(lab_node *self, hd_tx *tx) {
    if (lab_tx_number(self, tx, "n") < 2) return HD_OK;
    each_of("early", EARLY, cancel_filler);
    each_of("late", LATE, cancel_filler);
    lab_env_advance_ms(lab_world(self->l), 100);
    return HD_OK;
}

/* I9: also where positions have changed before the pass goes on. */
static void a_pass_that_gave_way_goes_on_in_order(void **state) {
    lab_set(l, "n", 1);
    each_of("early", EARLY, add_filler);
    lab_add(l, .name = "clock", .reads = "n", .effect = true, .throttle_ms = 1);
    lab_add(l, .name = "clear", .body = clear_out, .effect = true, .throttle_ms = 1);
    lab_compute(l, "w", "n", NULL);
    each_of("between", BETWEEN, add_filler);
    lab_effect(l, "r", "n w");
    each_of("late", LATE, add_filler);
    add_filler("last");
    lab_settle(l);
    lab_advance_ms(l, 10);
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "clock clear w r");
}

/* ---- not settling */

static double plus_one(const double *in) { return in[0] + 1; }

static void what_never_settles_is_remembered_once(void **state) {
    lab_compute(l, "x", "y", plus_one);
    lab_compute(l, "y", "x", plus_one);
    lab_effect(l, "show", "x");
    for (int i = 0; i < 200; i++) {
        lab_turn(l);
        lab_advance_ms(l, 2000);
    }
    assert_true(lab_records_of(l).backed <= 3);
}

/* ---- why */

static double always_five(const double *in) { return 5 + 0 * in[0]; }

typedef struct told {
    hd_origin origin;
    char writer[32];
    int count;
} told;

static bool keep_cause(const hd_cause *cause, void *ctx) {
    told *t = ctx;
    if (cause->depth) return true;
    t->origin = cause->origin;
    snprintf(t->writer, sizeof t->writer, "%s", cause->writer_name);
    t->count++;
    return true;
}

static void who_ran_later_and_changed_nothing_is_no_cause(void **state) {
    lab_set_json(l, "d", "{\"mine\": 1}");
    lab_set(l, "x", 1);
    lab_add(l, .name = "five", .reads = "x", .formula = always_five, .output = "d#/its");
    lab_effect(l, "show", "d");
    lab_settle(l);
    lab_set(l, "d#/mine", 2);
    lab_settle(l);
    lab_set(l, "x", 2);
    lab_settle(l);
    lab_ran(l);
    told t = { 0 };
    assert_int_equal(hd_node_why(rt(), node_named("show"), keep_cause, &t), HD_OK);
    assert_int_equal(t.count, 1);
    assert_string_equal(t.writer, "");
    assert_int_equal(t.origin, HD_ORIGIN_SOURCE);
}

static bool list_cause(const hd_cause *cause, void *ctx) {
    char cell[64], *text = ctx;
    hd_cell_print(rt(), cause->cell, cell, sizeof cell);
    snprintf(text + strlen(text), 256 - strlen(text), "%s%s:%s>%s", *text ? " " : "", cell,
             cause->before ? cause->before : "?", cause->after);
    return true;
}

static const char *why(const char *name) {
    static char text[256];
    text[0] = 0;
    assert_int_equal(hd_node_why(rt(), node_named(name), list_cause, text), HD_OK);
    return text;
}

/* What was recorded of an earlier run is not told of a later one. */
static void a_trace_that_was_switched_off_tells_of_its_time_only(void **state) {
    lab_set(l, "a", 1);
    lab_set(l, "b", 1);
    lab_effect(l, "show", "a b");
    lab_settle(l);
    hd_trace_enable(rt(), HD_TRACE_ALL);
    lab_set(l, "a", 2);
    lab_settle(l);
    assert_string_equal(why("show"), "main/a:1>2");
    hd_trace_enable(rt(), 0);
    assert_string_equal(why("show"), "main/a:1>2");
    lab_set(l, "b", 2);
    lab_settle(l);
    assert_string_equal(why("show"), "main/b:?>2");
    lab_set(l, "a", 3);
    lab_settle(l);
    assert_string_equal(why("show"), "main/a:?>3");
}

static bool count_cause(const hd_cause *cause, void *ctx) {
    *(int *)ctx += cause->before != NULL;
    return true;
}

/* P10: nor does a trace that is on make an answer shorter. */
static void a_trace_that_has_room_for_few_causes_hides_none(void **state) {
    int count = 0;
    lab_effect(l, "show", "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11");
    lab_settle(l);
    hd_trace_enable(rt(), HD_TRACE_ALL);
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        lab_set(l, name, 1);
    }
    lab_settle(l);
    assert_int_equal(hd_node_why(rt(), node_named("show"), count_cause, &count), HD_OK);
    assert_int_equal(count, 12);
}

/* A change that is told as pending is not told of the last run as well. */
static void a_run_without_memory_has_not_been_the_last_one(void **state) {
    lab_set(l, "a", 1);
    lab_effect(l, "show", "a");
    lab_settle(l);
    hd_trace_enable(rt(), HD_TRACE_ALL);
    lab_set(l, "a", 2);
    lab_settle(l);
    lab_set(l, "a", 3);
    lab_catch(l);
    lab_fail_next(l, "show", HD_NOMEM, 1);
    hd_runtime_pump(rt());
    assert_string_equal(why("show"), "main/a:1>2 main/a:2>3");
    lab_settle(l);
    assert_string_equal(why("show"), "main/a:2>3");
}

static void keep_failure(const hd_failure *failure, void *ctx) {
    char *text = ctx;
    if (failure->cause_count) hd_cell_print(rt(), failure->causes[0], text, 64);
    else strcpy(text, "none");
}

static void the_causes_of_a_run_without_memory_are_its_own(void **state) {
    char text[64] = "";
    hd_runtime_on_error(rt(), keep_failure, text);
    lab_set(l, "n", 1);
    lab_set(l, "m", 1);
    lab_effect(l, "show", "n m");
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    lab_set(l, "m", 2);
    lab_fail_next(l, "show", HD_NOMEM, 1);
    hd_runtime_pump(rt());
    assert_string_equal(text, "main/m");
    lab_settle(l);
}

/* ---- traces */

static hd_status trace_as_told(lab_node *self, hd_tx *tx) {
    unsigned kinds = (unsigned)lab_tx_number(self, tx, "kinds");
    assert_int_equal(hd_trace_enable(rt(), kinds), HD_OK);
    return HD_OK;
}

static bool count_settle(const hd_settle_trace *pass, void *ctx) {
    (void)pass;
    ++*(int *)ctx;
    return true;
}

static void a_pass_in_which_its_trace_is_switched_on_is_not_recorded(void **state) {
    int count = 0;
    lab_set(l, "kinds", HD_TRACE_SETTLES);
    lab_add(l, .name = "switch", .body = trace_as_told, .effect = true);
    lab_settle(l);
    lab_set(l, "kinds", 0);
    lab_settle(l);
    hd_trace_clear(rt());
    lab_set(l, "kinds", HD_TRACE_SETTLES);
    lab_turn(l);
    hd_trace_settles(rt(), count_settle, &count);
    assert_int_equal(count, 0);
}

/* ---- messages */

static void keep_message(const hd_failure *failure, void *ctx) {
    snprintf(ctx, 64, "%s", failure->message);
}

static void a_message_belongs_to_the_run_that_gave_it(void **state) {
    char text[64] = "";
    hd_tx *tx;
    hd_runtime_on_error(rt(), keep_message, text);
    lab_effect(l, "show", "n");
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    hd_tx_fail(tx, HD_FAILED, "of the program");
    hd_tx_abort(tx);
    lab_fail_next(l, "show", HD_FAILED, 1);
    lab_settle(l);
    assert_string_equal(text, hd_status_text(HD_FAILED));
}

/* ---- dependents */

static void count_one(hd_node who, void *ctx) {
    (void)who;
    ++*(int *)ctx;
}

static void cancel_all(hd_node who, void *ctx) {
    (void)who;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        lab_cancel(l, name);
    }
    ++*(int *)ctx;
}

static void dependents_are_told_once_and_may_be_cancelled(void **state) {
    int count = 0;
    lab_set_json(l, "n", "{\"a\": 1, \"b\": 2}");
    lab_compute(l, "copy", "n", NULL);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        lab_effect(l, name, "copy copy#/a copy#/b");
    }
    lab_settle(l);
    hd_node_dependents(rt(), node_named("copy"), count_one, &count);
    assert_int_equal(count, 5);
    count = 0;
    hd_node_dependents(rt(), node_named("copy"), cancel_all, &count);
    assert_int_equal(lab_stats(l).nodes, 1);
}

/* ---- stats */

static void what_a_name_did_counts_when_it_comes_again(void **state) {
    hd_action_stats stats;
    hd_runtime_keep_stats(rt(), true);
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_cancel(l, "show");
    lab_effect(l, "show", "n");
    lab_settle(l);
    assert_int_equal(hd_runtime_action_stats(rt(), "show", &stats), HD_OK);
    assert_int_equal(stats.runs, 2);
    assert_true(stats.exists);
    lab_cancel(l, "show");
    assert_int_equal(hd_runtime_action_stats(rt(), "show", &stats), HD_OK);
    assert_int_equal(stats.runs, 2);
}

/* A schema belongs to the runtime as well, from the cell on: the program may free its own. */
static void a_schema_may_be_freed_when_its_cell_is_made(void **state) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_pool *pool;
    hd_schema *schema;
    hd_error error;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    static const char text[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}";
    hd_value source = hd_json_parse(pool, text, sizeof text - 1, NULL);
    assert_int_equal(hd_schema_compile(hd_runtime_heap(rt), source, &schema, &error), HD_OK);
    hd_cell cell = hd_cell_with_schema(rt, hd_cell_at(rt, "main/doc"), schema);
    hd_schema_close(schema);
    lab_set_json(l, "doc", "{\"a\":1,\"b\":2}");
    assert_string_equal(hd_json_print(pool, hd_read(rt, pool, cell), HD_JSON_COMPACT, NULL),
                        "{\"a\":1}");
    hd_pool_close(pool);
}

/* A read that failed fails the commit, which says so. */
static void a_commit_after_a_failed_read_returns_its_status(void **state) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_tx *tx;
    lab_set_json(l, "x", "{\"$link\":{\"id\":\"y\"}}");
    lab_set_json(l, "y", "{\"$link\":{\"id\":\"x\"}}");
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_value_status(hd_tx_get(tx, hd_cell_at(rt, "main/x"))), HD_CYCLE);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/z"), 1);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_CYCLE);
    assert_json(l, "z", "-");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_schema_may_be_freed_when_its_cell_is_made),
        S(a_commit_after_a_failed_read_returns_its_status),
        S(a_child_outlives_its_parent),
        S(a_sink_needs_a_cell),
        S(runs_are_counted_beyond_32_bits),
        S(a_name_may_have_a_slash_and_any_length),
        S(a_name_that_is_no_text_is_refused_with_the_reason),
        S(a_throttled_effect_that_is_set_aside_runs_in_the_same_pass),
        S(a_throttled_effect_is_retried_at_once),
        S(failures_that_were_overcome_do_not_add_up),
        S(a_suspended_run_that_read_a_shape_minds_the_shape_only),
        S(a_shape_that_nobody_watched_may_have_changed),
        cmocka_unit_test(what_failed_without_memory_still_hears_of_its_reads),
        S(a_dormant_node_is_set_aside_without_a_trace),
        S(a_debounce_holds_again_after_a_retry),
        S(a_suspended_run_that_was_cancelled_goes_with_the_runtime),
        S(a_body_that_suspends_and_then_fails_has_failed),
        S(a_run_may_be_resumed_from_the_body_of_another),
        S(a_run_that_was_suspended_at_the_end_runs_again),
        S(a_suspended_run_of_a_node_that_is_gone_holds_nobody_up),
        S(log_lines_of_a_suspended_run_carry_its_name),
        S(a_pass_in_which_its_trace_is_switched_on_is_not_recorded),
        S(a_listener_cancels_the_node_whose_output_it_hears_of),
        S(a_pass_that_gave_way_goes_on_in_order),
        S(what_never_settles_is_remembered_once),
        S(who_ran_later_and_changed_nothing_is_no_cause),
        S(a_trace_that_was_switched_off_tells_of_its_time_only),
        S(a_trace_that_has_room_for_few_causes_hides_none),
        S(a_run_without_memory_has_not_been_the_last_one),
        S(the_causes_of_a_run_without_memory_are_its_own),
        S(a_message_belongs_to_the_run_that_gave_it),
        S(dependents_are_told_once_and_may_be_cancelled),
        S(what_a_name_did_counts_when_it_comes_again),
    };
    LAB_EVERYWHERE(tests);
}

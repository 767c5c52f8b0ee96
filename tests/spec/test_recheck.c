/* test_recheck.c -- area Q, idempotency: computations that are run again to be compared, and runs that
 * contradict each other. */
#include "lab_recheck.h"
#include "spec.h"

static hd_runtime *rt(void) { return lab_runtime_now(l); }
static double twice(const double *in) { return 2 * in[0]; }

typedef struct heard {
    int kinds[8];
    char action[64];
} heard;
static void note_telemetry(const hd_telemetry *t, void *ctx) {
    heard *h = ctx;
    h->kinds[t->kind]++;
    snprintf(h->action, sizeof h->action, "%s", t->action);
}

static void ignore_violation(const hd_violation *v, void *ctx) { (void)ctx, (void)v; }

static int dice;
static double throw_dice(const double *in) { return in[0] + ++dice; }
static hd_status accumulate(lab_node *self, hd_tx *tx) {
    double so_far = lab_tx_number(self, tx, "total");
    return lab_tx_put(self, tx, "total", so_far + lab_tx_number(self, tx, "n"));
}
static hd_status append_log(lab_node *self, hd_tx *tx) {
    return hd_tx_append(tx, lab_cell(self->at, "log"), hd_double(lab_tx_number(self, tx, "n")));
}

/* C330: a random one, a counter and an accumulator are each told of exactly once, with both writes. */
static void what_is_not_idempotent_is_told_once(void **state) {
    lab_recheck *k = lab_recheck_start(l);
    dice = 0;
    lab_set(l, "n", 1);
    lab_compute(l, "dice", "n", throw_dice);
    lab_add(l, .name = "total", .body = accumulate);
    lab_add(l, .name = "log", .body = append_log);
    lab_effect(l, "show", "dice total log");
    lab_expect_non_idempotent(k, "dice total log");
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(lab_violation_count(k, "dice"), 1);
    assert_int_equal(lab_violation_count(k, "total"), 1);
    assert_int_equal(lab_violation_count(k, "log"), 1);
    assert_non_null(strstr(lab_violations(k), "dice wrote dice=2, then dice=3"));
    assert_non_null(strstr(lab_violations(k), "total wrote total=1, then total=2"));
    lab_recheck_end(k);
}

/* C331: nothing is told of one that is. */
static void what_is_idempotent_is_not_told(void **state) {
    lab_recheck *k = lab_recheck_start(l);
    lab_compute(l, "double", "n", twice);
    lab_effect(l, "show", "double");
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_string_equal(lab_violations(k), "");
    lab_recheck_end(k);
    assert_status(hd_node_recheck(rt(), lab_find(l, "double")->node), HD_OK);
}

static void several_runtimes_are_rechecked(void **state) {
    lab_runtime *b = lab_on(l, "b");
    lab_recheck *k = lab_recheck_start(l);
    dice = 0;
    lab_compute(l, "dice", "n", throw_dice);
    lab_effect(l, "show", "dice");
    assert_ptr_equal(lab_find(l, "dice")->at, b);
    lab_expect_non_idempotent(k, "dice");
    lab_settle(l);
    lab_recheck_end(k);
}

static hd_status put_elsewhere(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "elsewhere", lab_tx_number(self, tx, "n"));
}

/* C332: what somebody else wrote between the run and the recheck says nothing about the run. */
static void a_write_from_outside_is_not_held_against_it(void **state) {
    lab_set(l, "n", 1);
    lab_node *n = lab_add(l, .name = "put", .body = put_elsewhere, .output = "-",
                          .side_outputs = "elsewhere", .run_once = true);
    lab_settle(l);
    assert_json(l, "elsewhere", "1");
    assert_status(hd_node_recheck(rt(), n->node), HD_OK);
    lab_set(l, "elsewhere", 5);
    assert_status(hd_node_recheck(rt(), n->node), HD_OK);
    lab_set(l, "n", 2); /* it is invalid now */
    assert_status(hd_node_recheck(rt(), n->node), HD_STALE);
}

static int turn;
static hd_status touch_only(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    return lab_tx_put(self, tx, "out", 1); /* the second time: as it is */
}
static hd_status remove_second(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    if (turn++ % 2) return hd_tx_remove(tx, lab_cell(self->at, "gone"));
    return lab_tx_put(self, tx, "gone", 1);
}

/* C333: to touch without changing is nothing; to remove what was written is different. */
static void touching_is_ignored_and_removing_is_not(void **state) {
    lab_recheck *k = lab_recheck_start(l);
    lab_add(l, .name = "touch", .body = touch_only, .output = "out", .run_once = true);
    lab_settle(l);
    turn = 0;
    lab_add(l, .name = "remove", .body = remove_second, .output = "gone", .run_once = true);
    lab_expect_non_idempotent(k, "remove");
    lab_settle(l);
    assert_string_equal(lab_violations(k), "remove wrote gone=1, then gone=-");
    lab_recheck_end(k);
}

static hd_status write_first_only(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    return turn++ ? HD_OK : lab_tx_put(self, tx, "once", n);
}
static hd_status write_if_absent(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    if (hd_value_exists(hd_tx_get(tx, lab_cell(self->at, "kept")))) return HD_OK;
    return lab_tx_put(self, tx, "kept", n);
}

/* 4.2: a run that writes, and writes nothing when it is run again, is told of; unless it has looked at what
 * is there. */
static void a_write_that_is_left_out_the_second_time_is_told(void **state) {
    lab_recheck *k = lab_recheck_start(l);
    turn = 0;
    lab_set(l, "n", 3);
    lab_add(l, .name = "once", .body = write_first_only, .run_once = true);
    lab_add(l, .name = "kept", .body = write_if_absent, .run_once = true);
    lab_expect_non_idempotent(k, "once");
    lab_settle(l);
    assert_string_equal(lab_violations(k), "once wrote once=3, then nothing");
    lab_recheck_end(k);
}

static hd_status fail_second(lab_node *self, hd_tx *tx) {
    lab_tx_put(self, tx, "out", ++dice);
    return turn++ % 2 ? HD_FAILED : HD_OK;
}

/* C334: a recheck that fails is dropped: no violation, no error, nothing written. */
static void a_recheck_that_fails_is_dropped(void **state) {
    lab_recheck *k = lab_recheck_start(l);
    lab_catch(l);
    turn = dice = 0;
    lab_add(l, .name = "moody", .body = fail_second, .output = "out", .run_once = true);
    lab_settle(l);
    assert_int_equal(turn, 2);
    assert_string_equal(lab_failures(l), "");
    assert_json(l, "out", "1");
    lab_recheck_end(k);
}

static hd_status make_child_always(lab_node *self, hd_tx *tx) {
    lab_node *child = lab_add(self->l, .name = "child", .reads = "n", .effect = true);
    if (child->status) return child->status;
    return lab_tx_put(self, tx, "out", child->node.id ? 1 : 0);
}

/* A body that registers nodes finds them again when it is run again. */
static void a_recheck_registers_nothing(void **state) {
    lab_recheck *k = lab_recheck_start(l);
    lab_compute(l, "double", "n", twice);
    lab_add(l, .name = "maker", .body = make_child_always, .output = "out", .run_once = true);
    lab_settle(l);
    assert_int_equal(lab_stats(l).nodes, 3);
    lab_recheck_end(k);
}

typedef struct diagnosed {
    char text[256];
} diagnosed;
static bool note_diagnosis(const hd_diagnosis *d, void *ctx) {
    diagnosed *out = ctx;
    size_t length = strlen(out->text);
    snprintf(out->text + length, sizeof out->text - length, "%s%s %llu%s", length ? "; " : "",
             d->action, (unsigned long long)d->runs, d->differs ? " differs" : "");
    return true;
}

/* C335: equal reads and different writes make a pair; different reads do not. */
static void the_diagnosis_finds_pairs(void **state) {
    heard h = { 0 };
    diagnosed d = { "" };
    dice = 0;
    hd_runtime_set_telemetry(rt(), note_telemetry, &h);
    assert_status(hd_diagnosis_start(rt()), HD_OK);
    lab_set(l, "n", 1);
    lab_compute(l, "dice", "n", throw_dice);
    lab_compute(l, "double", "n", twice);
    lab_effect(l, "show", "dice double");
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(h.kinds[HD_TELEMETRY_DIAGNOSIS], 0); /* other reads */
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_int_equal(h.kinds[HD_TELEMETRY_DIAGNOSIS], 1);
    assert_string_equal(h.action, "dice");
    hd_diagnosis_report(rt(), note_diagnosis, &d);
    assert_string_equal(d.text, "dice 3 differs; double 3; show 3");
}

static hd_status suspend_once(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    if (self->runs > 1) return HD_OK;
    hd_status status = hd_tx_suspend(tx, self->data);
    return status ? status : HD_PENDING;
}
static hd_status leave(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    hd_node_unregister(rt(), self->node);
    return HD_OK;
}

/* The end of a suspended run is not the end of a run whose node has removed itself meanwhile. */
static void the_diagnosis_does_not_record_a_run_that_was_dropped(void **state) {
    hd_run *run = NULL;
    diagnosed d = { "" };
    assert_status(hd_diagnosis_start(rt()), HD_OK);
    lab_set(l, "n", 1);
    lab_add(l, .name = "slow", .effect = true, .body = suspend_once, .data = &run);
    lab_turn(l);
    lab_add(l, .name = "brief", .effect = true, .body = leave);
    lab_turn(l);
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    hd_diagnosis_report(rt(), note_diagnosis, &d);
    assert_string_equal(d.text, "");
}

static int made, released;
static hd_status be_there(hd_tx *tx, void *ctx) {
    (void)tx, (void)ctx;
    return HD_OK;
}
static void count_release(void *ctx) {
    released++;
    free(ctx);
}
static hd_status make_child_with_context(lab_node *self, hd_tx *tx) {
    hd_node child;
    hd_node_spec spec = { .name = "child", .fn = be_there, .release = count_release };
    double n = lab_tx_number(self, tx, "n");
    spec.ctx = malloc(1);
    made++;
    if (hd_node_register(rt(), &spec, &child)) { /* it is there from an earlier run */
        free(spec.ctx);
        made--;
    }
    return lab_tx_put(self, tx, "parent", n);
}

/* What a registration takes over it gives back, also where it finds a node and makes none. */
static void a_recheck_releases_what_it_does_not_need(void **state) {
    hd_recheck_enable(rt(), ignore_violation, NULL);
    made = released = 0;
    lab_set(l, "n", 1);
    lab_add(l, .name = "parent", .body = make_child_with_context);
    lab_effect(l, "show", "parent");
    lab_settle(l);
    assert_int_equal(made, 2);
    assert_int_equal(released, 1);
    hd_node_unregister(rt(), hd_node_find(rt(), "parent/child"));
    assert_int_equal(released, 2);
}

static hd_status stop_the_recheck(lab_node *self, hd_tx *tx) {
    if (self->runs > 1) hd_recheck_enable(rt(), NULL, NULL);
    return lab_tx_put(self, tx, "odd", (double)self->runs + lab_tx_number(self, tx, "n"));
}

static void a_recheck_may_be_switched_off_by_what_it_runs(void **state) {
    hd_recheck_enable(rt(), ignore_violation, NULL);
    lab_set(l, "n", 1);
    lab_add(l, .name = "odd", .body = stop_the_recheck);
    lab_effect(l, "show", "odd");
    lab_settle(l);
    assert_ran(l, "odd odd show");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(what_is_not_idempotent_is_told_once),
        S(what_is_idempotent_is_not_told),
        S(several_runtimes_are_rechecked),
        S(a_write_from_outside_is_not_held_against_it),
        S(touching_is_ignored_and_removing_is_not),
        S(a_write_that_is_left_out_the_second_time_is_told),
        S(a_recheck_that_fails_is_dropped),
        S(a_recheck_registers_nothing),
        S(a_recheck_releases_what_it_does_not_need),
        S(a_recheck_may_be_switched_off_by_what_it_runs),
        S(the_diagnosis_finds_pairs),
        S(the_diagnosis_does_not_record_a_run_that_was_dropped),
    };
    LAB_EVERYWHERE(tests);
}

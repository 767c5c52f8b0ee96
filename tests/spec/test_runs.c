/* test_runs.c -- area J: runs, retries, rejections; I8, provenance. */
#include "base/sabotage.h"
#include "lab_inside.h"
#include "spec.h"

static hd_status copy_n_to_m(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "m", lab_tx_number(self, tx, "n"));
}

/* ---- transient failures */

/* C202: an action that keeps failing for now runs ten times in all; a change of its input later is
 * one run more. */
static void a_transient_failure_is_tried_ten_times(void **state) {
    lab_catch(l);
    lab_effect(l, "copy", "n");
    lab_fail_next(l, "copy", HD_BUSY, 10);
    lab_settle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 2); /* the first retry is made at once */
    assert_int_equal(lab_info(l, "copy").why_not, HD_WHY_NOT_RETRY);
    lab_idle(l); /* the others take their time, and idle waits for them */
    assert_true(lab_now_ms(l) >= 1000 && lab_now_ms(l) <= 2000);
    assert_int_equal(lab_find(l, "copy")->runs, 10);
    assert_string_equal(lab_failures(l), "copy HD_BUSY");
    assert_int_equal(lab_stats(l).retries, 9);
    lab_settle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 10);
    lab_fail_next(l, "copy", HD_BUSY, 2);
    for (int i = 1; i <= 2; i++) {
        lab_set(l, "n", i);
        lab_idle(l);
        assert_int_equal(lab_find(l, "copy")->runs, 10 + i);
        assert_string_equal(lab_failures(l), "copy HD_BUSY");
    }
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 13);
    assert_string_equal(lab_failures(l), "");
    lab_fail_next(l, "copy", HD_BUSY, 9); /* after a success the row is a new one */
    lab_set(l, "n", 4);
    lab_idle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 23);
    assert_string_equal(lab_failures(l), "");
}

/* C202, 8.3: while a retry is delayed the node is behind a gate like any other. What reads its output and runs
 * meanwhile reads its last result, and runs again when the retry has changed it. */
static void a_reader_of_what_is_tried_again_reads_its_last_result(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "copy", "n", NULL);
    lab_effect(l, "show", "n copy");
    lab_settle(l);
    lab_fail_next(l, "copy", HD_BUSY, 3);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(lab_info(l, "copy").why_not, HD_WHY_NOT_RETRY);
    assert_seen(l, "show", "2 1");
    assert_false(lab_is_clean(l, "copy"));
    lab_idle(l);
    assert_seen(l, "show", "2 2");
    assert_string_equal(lab_failures(l), "");
}

/* Runs out of memory behind itself: the next allocation, which is the one of the retry, fails. */
static hd_status fails_and_leaves_no_memory(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    lab_env_fail_at(lab_world(l), 1);
    return HD_BUSY;
}

/* C208: if the retry itself cannot be arranged, the failure is told like any other, and the rest goes
 * on. */
static void a_retry_that_cannot_be_arranged_is_contained(void **state) {
    lab_catch(l);
    lab_set(l, "n", 1);
    lab_add(l, .name = "bad", .reads = "n", .effect = true, .body = fails_and_leaves_no_memory);
    lab_effect(l, "good", "n");
    lab_settle(l);
    lab_env_fail_at(lab_world(l), 0);
    assert_seen(l, "good", "1");
    assert_non_null(strstr(lab_failures(l), "bad HD_BUSY"));
    lab_cancel(l, "bad");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_seen(l, "good", "2");
}

/* The store's answer to the oldest commit without a verdict, made up. */
static bool answer(hd_status status) { return lab_refuse(lab_on(l, "a"), status); }

/* C202, where it is the commit that fails. */
static void a_commit_that_fails_for_now_is_tried_ten_times(void **state) {
    lab_runtime *a = lab_on(l, "a");
    lab_on(l, "b"); /* nobody is alone: every commit is sent */
    lab_on(l, "a");
    lab_catch(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_cut(a);
    lab_add(l, .name = "copy", .effect = true, .body = copy_n_to_m);
    lab_turn(l);
    for (int i = 0; i < 20 && answer(HD_IO); i++) {
        lab_advance_ms(l, 1000);
        lab_turn(l);
    }
    assert_int_equal(lab_find(l, "copy")->runs, 10);
    assert_string_equal(lab_failures(l), "copy HD_IO");
    assert_string_equal(lab_json(l, "m"), "-"); /* taken back */
    lab_set(l, "n", 2);
    lab_turn(l);
    for (int i = 0; i < 20 && answer(HD_IO);
         i++) { /* of n, which is the program's, and of the run */
        lab_advance_ms(l, 1000);
        lab_turn(l);
    }
    assert_int_equal(lab_find(l, "copy")->runs, 12);
    assert_string_equal(lab_failures(l), "copy HD_IO");
    lab_mend(a);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 13);
    assert_string_equal(lab_json(l, "m"), "3");
    assert_int_equal(lab_tries_of(l, "copy").transient, 0);
}

typedef struct paused {
    hd_run *run;
} paused;

static hd_status suspend(lab_node *self, hd_tx *tx) {
    paused *p = self->data;
    lab_tx_number(self, tx, "n");
    hd_status status = hd_tx_suspend(tx, &p->run);
    return status ? status : HD_PENDING;
}

/* C207: a completion that reports a transient failure is tried again within the same budget. */
static void a_completion_that_fails_for_now_is_tried_again(void **state) {
    paused p = { 0 };
    lab_catch(l);
    lab_node *slow = lab_add(l, .name = "slow", .effect = true, .body = suspend, .data = &p);
    lab_turn(l);
    for (int i = 0; i < 20 && p.run; i++) {
        hd_run *run = p.run;
        p.run = NULL;
        hd_run_resume(run, HD_TRANSIENT);
        lab_advance_ms(l, 1000);
        lab_turn(l);
    }
    assert_int_equal(slow->runs, 10);
    assert_string_equal(lab_failures(l), "slow HD_TRANSIENT");
    lab_set(l, "n", 1);
    lab_turn(l);
    assert_int_equal(slow->runs, 11);
    hd_run_resume(p.run, HD_OK);
    lab_turn(l);
    assert_true(lab_is_clean(l, "slow"));
}

/* ---- stale basis */

/* The next commit of runtime a is refused: b has changed what it read. */
static void refuse(lab_runtime *a, lab_runtime *b, const char *script) {
    lab_hold(a);
    lab_turn(l);
    lab_do(b, script);
    lab_pump(b);
    lab_mend(a);
}

/* C203: a stale basis is a wait, not a failure: it costs no budget, is counted apart, and is
 * forgotten when the commit stands. */
static void a_stale_basis_costs_no_budget(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_catch(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_add(l, .name = "copy", .effect = true, .body = copy_n_to_m);
    refuse(a, b, "set n 2");
    lab_settle(l);
    assert_string_equal(lab_json(l, "m"), "2");
    assert_int_equal(lab_stats(l).stale_retries, 1);
    assert_int_equal(lab_stats(l).retries, 0);
    assert_int_equal(lab_tries_of(l, "copy").stale, 0);
    assert_string_equal(lab_failures(l), "");
}

/* The causes of each run, as the body sees them: "k; k n". */
static char causes[256];

static hd_status note_causes(lab_node *self, hd_tx *tx) {
    hd_cell cells[8];
    char name[64];
    size_t count = hd_tx_causes(tx, cells, 8);
    if (self->runs > 1) strcat(causes, "; ");
    for (size_t i = 0; i < count; i++) {
        hd_cell_print(lab_rt(self->at), cells[i], name, sizeof name);
        strcat(causes, i ? " " : "");
        strcat(causes, strchr(name, '/') + 1);
    }
    double k = lab_tx_number(self, tx, "k");
    return lab_tx_put(self, tx, "m", 10 * lab_tx_number(self, tx, "n") + k);
}

/* C204: what caused the refused run causes the next one too; that one sees what has come meanwhile. */
static void a_refused_run_keeps_its_causes(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    *causes = 0;
    lab_set(l, "n", 1);
    lab_add(l, .name = "copy", .effect = true, .body = note_causes);
    lab_settle(l);
    lab_set(l, "k", 1);
    refuse(a, b, "set n 2");
    lab_settle(l);
    assert_string_equal(causes, "; k; k n");
    assert_string_equal(lab_json(l, "m"), "21");
}

/* Without restoring them the causes are lost, and C204 notices. */
static void without_restore_c204_fails(void **state) {
    struct CMUnitTest test = S(a_refused_run_keeps_its_causes);
    spec_must_notice(LEAVE_OUT_RESTORE, test);
}

/* C205, C210: refused though nothing has changed for it in the end (there and back again): it runs
 * again all the same, for being queued is what makes it run. */
static void a_refused_run_is_repeated_without_new_data(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_add(l, .name = "copy", .effect = true, .body = copy_n_to_m);
    lab_hold(a);
    lab_turn(l);
    lab_write(b, "n", "2");
    lab_pump(b);
    lab_write(b, "n", "1");
    lab_pump(b);
    lab_mend(a);
    lab_settle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 2);
    assert_string_equal(lab_json(l, "m"), "1");
    lab_on(l, "b");
    lab_advance_ms(l, 100); /* a file is looked at again after a moment */
    lab_settle(l);
    assert_string_equal(lab_json(l, "m"), "1");
}

/* C209: more races in a row than any budget; when they end everything is right. */
static void a_storm_of_races_ends_well(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_catch(l);
    lab_set(l, "n", 0);
    lab_settle(l);
    lab_add(l, .name = "copy", .effect = true, .body = copy_n_to_m);
    for (int i = 1; i <= 25; i++) {
        char script[32];
        snprintf(script, sizeof script, "set n %d", i);
        refuse(a, b, script);
        lab_hold(a);
        lab_turn(l);
        lab_mend(a);
    }
    lab_settle(l);
    assert_string_equal(lab_json(l, "m"), "25");
    assert_string_equal(lab_failures(l), "");
    assert_true(lab_is_clean(l, "copy"));
    assert_int_equal(lab_stats(l).retries, 0);
}

/* ---- permanent and terminal */

static hd_status create_once(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    hd_status status = hd_tx_require_absent(tx, lab_cell(self->at, "receipt"));
    return status ? status : lab_tx_put(self, tx, "receipt", 1);
}

/* C206: a rejection for good is reported and not tried again. */
static void a_permanent_rejection_is_final(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_catch(l);
    lab_settle(l);
    lab_add(l, .name = "once", .effect = true, .body = create_once);
    refuse(a, b, "set receipt 7");
    lab_settle(l);
    assert_int_equal(lab_find(l, "once")->runs, 1);
    assert_string_equal(lab_failures(l), "once HD_EXISTS");
    assert_string_equal(lab_json(l, "receipt"), "7");
}

/* C206, terminal; the counters are cleared. */
static void a_terminal_rejection_is_final(void **state) {
    lab_runtime *a = lab_on(l, "a");
    lab_on(l, "b");
    lab_on(l, "a");
    lab_catch(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_cut(a);
    lab_add(l, .name = "copy", .effect = true, .body = copy_n_to_m);
    lab_turn(l);
    answer(HD_IO);
    lab_turn(l);
    assert_int_equal(lab_tries_of(l, "copy").transient, 1);
    answer(HD_REJECTED);
    lab_turn(l);
    assert_int_equal(lab_find(l, "copy")->runs, 2);
    assert_string_equal(lab_failures(l), "copy HD_REJECTED");
    assert_int_equal(lab_tries_of(l, "copy").transient, 0);
    lab_mend(a);
}

/* A store that accepts `left` more commits, and then answers with `then`. */
typedef struct strict_store {
    uint32_t left, arrived;
    hd_status then;
} strict_store;

static hd_status arrives(const hd_runtime *from, void *ctx) {
    strict_store *to = ctx;
    (void)from;
    to->arrived++;
    if (!to->left) return to->then;
    to->left--;
    return HD_OK;
}

typedef struct doubling {
    hd_cell n, out;
    int runs, failures;
} doubling;

static hd_status run_double(hd_tx *tx, void *ctx) {
    doubling *d = ctx;
    d->runs++;
    return hd_tx_set_double(tx, d->out, 2 * hd_value_as_double(hd_tx_get(tx, d->n), 0));
}
static void count_failure(const hd_failure *failure, void *ctx) {
    doubling *d = ctx;
    assert_string_equal(failure->action, "double");
    d->failures++;
}
static void look_at_it(hd_value v, void *ctx) { (void)ctx, (void)v; }

static doubling refuse_the_seal(hd_status with) {
    doubling d = { 0 };
    strict_store to = { .left = UINT32_MAX, .then = with };
    hd_memory *memory;
    hd_runtime *rt, *other;
    assert_int_equal(hd_memory_open(NULL, &memory), HD_OK);
    hd_memory_intercept(memory, arrives, NULL, &to);
    hd_options options = { .memory = memory };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_open(NULL, &options, &other, NULL), HD_OK); /* who wants derived values */
    d.n = hd_cell_at(rt, "main/n");
    d.out = hd_cell_at(rt, "main/out");
    hd_runtime_on_error(rt, count_failure, &d);
    hd_write(rt, d.n, hd_double(1));
    hd_compute(rt, "double", run_double, &d, d.out);
    hd_sink(rt, d.out, look_at_it, NULL);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    hd_write(rt, d.n, hd_double(2));
    to.left = 1;
    d.runs = 0;
    for (int i = 0; i < 100; i++) hd_runtime_pump(rt);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    to.left = UINT32_MAX;
    int runs = d.runs;
    hd_write(rt, d.n, hd_double(3)); /* a change later is one more run, and is stored */
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(d.runs, runs + 1);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_close(other), HD_OK);
    hd_memory_close(memory);
    d.runs = runs;
    return d;
}

/* C206, for what computations write, which goes in seals. */
static void a_seal_that_is_refused_for_good_is_not_tried_again(void **state) {
    doubling d = refuse_the_seal(HD_REJECTED);
    assert_int_equal(d.runs, 1);
    assert_int_equal(d.failures, 1);
}

/* ---- failures of actions */

static hd_status write_then_fail(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, self->spec.name, n);
    return n < 0 ? hd_tx_fail(tx, HD_RANGE, "%d is less than nothing", (int)n) : status;
}

static char message[128];
static void note_message(const hd_failure *f, void *ctx) {
    snprintf(message, sizeof message, "%s: %s", f->action, f->message);
}

/* C211: an action that fails is reported, commits nothing, and runs again when its input changes. */
static void a_failed_action_stays_subscribed(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "copy", .body = write_then_fail);
    lab_effect(l, "show", "copy");
    lab_settle(l);
    hd_runtime_on_error(lab_runtime_now(l), note_message, NULL);
    lab_ran(l);

    lab_set(l, "n", -1);
    lab_settle(l);
    assert_ran(l, "copy");
    assert_string_equal(message, "copy: -1 is less than nothing");
    assert_string_equal(lab_json(l, "copy"), "1"); /* nothing of it was kept */
    assert_int_equal(lab_stats(l).failures, 1);
    assert_int_equal(lab_info(l, "copy").runs, 2);
    assert_int_equal(lab_info(l, "copy").status, HD_NODE_CLEAN);

    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "copy show");
    assert_seen(l, "show", "3");
}

static hd_status return_nonsense(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    return (hd_status)12345;
}

/* C212: a status that is none reaches the handlers as a proper error. */
static void nonsense_is_a_proper_error(void **state) {
    *message = 0;
    hd_runtime_on_error(lab_runtime_now(l), note_message, NULL);
    lab_add(l, .name = "odd", .effect = true, .body = return_nonsense);
    lab_settle(l);
    assert_string_equal(message, "odd: rejected");
    assert_int_equal(lab_find(l, "odd")->runs, 1);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_int_equal(lab_find(l, "odd")->runs, 2);
}

/* ---- I8 */

static hd_node seen_node;
static hd_status note_node(lab_node *self, hd_tx *tx) {
    seen_node = hd_tx_node(tx);
    return note_causes(self, tx);
}

/* I8: a run's transaction names its node and what caused it; the program's names neither. */
static void i8_a_run_says_whose_it_is_and_why(void **state) {
    *causes = 0;
    lab_node *n = lab_add(l, .name = "copy", .effect = true, .body = note_node);
    lab_settle(l);
    assert_int_equal(seen_node.id, n->node.id);
    assert_int_equal(seen_node.generation, n->node.generation);
    lab_set(l, "k", 1);
    lab_settle(l);
    lab_do(lab_on(l, "a"), "set k 2; set n 5; set other 1");
    lab_settle(l);
    assert_string_equal(causes, "; k; k n");

    hd_tx *tx;
    hd_cell cells[4];
    assert_int_equal(hd_tx_begin(lab_runtime_now(l), &tx), HD_OK);
    assert_int_equal(hd_tx_node(tx).id, 0);
    assert_int_equal(hd_tx_causes(tx, cells, 4), 0);
    hd_tx_abort(tx);
}

/* ---- a snapshot that cannot be had */

typedef struct folded {
    double n, m; /* what the last run saw */
    int torn;    /* runs that saw two states at once */
} folded;

/* That happens in the middle of the second run, which is the first to read m. No status is looked at. */
static hd_status reads_n_then_m(lab_node *self, hd_tx *tx) {
    folded *f = self->data;
    lab_tx_number(self, tx, "go");
    f->n = lab_tx_number(self, tx, "n");
    if (self->runs == 2) lab_fold_elsewhere(l);
    hd_value m = self->runs > 1 ? hd_tx_get(tx, lab_cell(self->at, "m")) : (hd_value){ 0 };
    f->m = hd_value_as_double(m, 0);
    if (hd_value_exists(m) && f->m != f->n) f->torn++;
    return lab_tx_put(self, tx, "sum", f->n + f->m);
}

/* Nobody else hears of `go`, and the run finds no commit of its own on the way to what is new. */
static void keep_go(void) {
    lab_runtime *a = lab_on(l, "a");
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "go")), HD_OK);
}

static void let_go(void) {
    lab_settle(l);
    lab_turn(l); /* now it looks at the file only when it needs something */
    lab_set(l, "go", 1);
    lab_turn(l);
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
}

static void ended_right(const folded *f) {
    assert_int_equal(f->torn, 0);
    assert_int_equal(f->n, 2);
    assert_int_equal(f->m, 2);
    assert_int_equal(lab_get(l, "sum"), 4);
    assert_int_equal(lab_find(l, "both")->runs, 3); /* one of them too early */
    assert_string_equal(lab_failures(l), "");
    assert_int_equal(lab_stats(l).exhausted, 0);
}

/* S10, C204: a computation that cannot see one state runs again, when the rest has been heard. */
static void a_run_that_meets_a_fold_is_repeated(void **state) {
    folded f = { 0 };
    lab_prepare_fold(l);
    lab_catch(l);
    keep_go();
    lab_add(l, .name = "both", .output = "sum", .body = reads_n_then_m, .data = &f);
    lab_effect(l, "show", "sum");
    let_go();
    ended_right(&f);
    assert_seen(l, "show", "4");
}

/* The way there leads past a commit of ours whose verdict has not come. */
static void a_run_that_meets_a_fold_waits_for_its_own_verdicts(void **state) {
    folded f = { 0 };
    lab_prepare_fold(l);
    lab_catch(l);
    lab_add(l, .name = "both", .output = "sum", .body = reads_n_then_m, .data = &f);
    lab_effect(l, "show", "sum");
    let_go();
    ended_right(&f);
    assert_seen(l, "show", "4");
}

/* The same of an effect. */
static void an_effect_that_meets_a_fold_is_repeated(void **state) {
    folded f = { 0 };
    lab_prepare_fold(l);
    lab_catch(l);
    keep_go();
    lab_add(l, .name = "both", .effect = true, .body = reads_n_then_m, .data = &f);
    let_go();
    ended_right(&f);
}

/* Takes the failed read for missing data, and says so. */
static hd_status complains_of_m(lab_node *self, hd_tx *tx) {
    hd_status status = reads_n_then_m(self, tx);
    if (self->runs == 1) return status;
    return hd_value_exists(hd_tx_get(tx, lab_cell(self->at, "m"))) ? status : HD_RANGE;
}

/* What a body makes of a read that failed is nobody's business: there is nothing to report. */
static void a_run_that_misunderstands_a_fold_is_repeated(void **state) {
    folded f = { 0 };
    lab_prepare_fold(l);
    lab_catch(l);
    keep_go();
    lab_add(l, .name = "both", .effect = true, .body = complains_of_m, .data = &f);
    let_go();
    ended_right(&f);
}

static hd_status counts_blindly(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "go");
    if (self->runs == 1) return HD_OK;
    lab_fold_elsewhere(l);
    return hd_tx_increment(tx, lab_cell(self->at, "m"), hd_int(NULL, 1));
}

static hd_status compares(lab_node *self, hd_tx *tx) {
    folded *f = self->data;
    lab_tx_number(self, tx, "go");
    f->n = lab_tx_number(self, tx, "n");
    hd_value m = self->runs > 1 ? hd_tx_get(tx, lab_cell(self->at, "m")) : (hd_value){ 0 };
    f->m = hd_value_as_double(m, 0);
    if (hd_value_exists(m) && f->m != f->n + 1) f->torn++;
    return HD_OK;
}

/* S2: what a run writes blindly stands, also where it meets a fold; and who runs next sees it with the
 * rest. */
static void a_blind_run_that_meets_a_fold_stands(void **state) {
    folded f = { 0 };
    lab_prepare_fold(l);
    lab_catch(l);
    keep_go();
    lab_add(l, .name = "count", .effect = true, .body = counts_blindly);
    lab_add(l, .name = "compare", .effect = true, .body = compares, .data = &f);
    let_go();
    assert_int_equal(lab_find(l, "count")->runs, 2);
    assert_int_equal(lab_get(l, "m"), 3);
    assert_int_equal(f.torn, 0);
    assert_int_equal(f.m, 3);
    assert_string_equal(lab_failures(l), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_transient_failure_is_tried_ten_times),
        S(a_reader_of_what_is_tried_again_reads_its_last_result),
        S(a_retry_that_cannot_be_arranged_is_contained),
        S(a_commit_that_fails_for_now_is_tried_ten_times),
        S(a_completion_that_fails_for_now_is_tried_again),
        S(a_stale_basis_costs_no_budget),
        S(a_refused_run_keeps_its_causes),
        cmocka_unit_test(without_restore_c204_fails),
        S(a_refused_run_is_repeated_without_new_data),
        S(a_storm_of_races_ends_well),
        S(a_permanent_rejection_is_final),
        S(a_terminal_rejection_is_final),
        cmocka_unit_test(a_seal_that_is_refused_for_good_is_not_tried_again),
        S(a_failed_action_stays_subscribed),
        S(nonsense_is_a_proper_error),
        S(a_run_that_meets_a_fold_is_repeated),
        S(a_run_that_meets_a_fold_waits_for_its_own_verdicts),
        S(an_effect_that_meets_a_fold_is_repeated),
        S(a_run_that_misunderstands_a_fold_is_repeated),
        S(a_blind_run_that_meets_a_fold_stands),
        S(i8_a_run_says_whose_it_is_and_why),
    };
    LAB_EVERYWHERE(tests);
}

/* test_introspection.c -- areas P and Q: errors and log lines; traces, stats, why and pictures.
 * Idempotency is in test_recheck.c. */
#include "spec.h"

static hd_runtime *rt(void) { return lab_runtime_now(l); }
static double twice(const double *in) { return 2 * in[0]; }

/* ---- P: errors and log lines */

typedef struct caught {
    int count;
    hd_status status;
    char text[512];
} caught;

static void note_failure(const hd_failure *f, void *ctx) {
    caught *c = ctx;
    c->count++;
    c->status = f->status;
    snprintf(c->text, sizeof c->text, "%s|%s|%s|%s|%s", f->action, f->piece, f->pattern, f->space,
             f->message);
}

static hd_status fails(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    return hd_tx_fail(tx, HD_FAILED, "no luck with %d", 7);
}

/* C315: a handler receives the error with action, piece, pattern and space; the log line is marked as
 * handled. */
static void a_handler_receives_what_failed(void **state) {
    caught c = { 0 };
    hd_runtime_on_error(rt(), note_failure, &c);
    lab_add(l, .name = "bad", .body = fails, .run_once = true);
    lab_settle(l);
    assert_int_equal(c.count, 1);
    assert_status(c.status, HD_FAILED);
    assert_string_equal(c.text, "bad|main||main|no luck with 7");
    assert_int_equal(lab_env_logged(lab_world(l), "handled in node \"bad\": no luck with 7"), 1);
    assert_int_equal(lab_env_logged(lab_world(l), "uncaught"), 0);
}

/* C315: the causes of the failed run come along. */
static size_t last_cause_count;
static void note_causes(const hd_failure *f, void *ctx) {
    last_cause_count = f->cause_count;
    if (f->cause_count) hd_cell_print(rt(), f->causes[0], ctx, 64);
}
static void a_failure_names_its_causes(void **state) {
    char cause[64] = "";
    hd_runtime_on_error(rt(), note_causes, cause);
    lab_add(l, .name = "bad", .body = fails, .effect = true);
    lab_settle(l);
    assert_int_equal(last_cause_count, 0); /* a first run has none */
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(last_cause_count, 1);
    assert_string_equal(cause, "main/n");
}

/* Says why at first, and nothing later. */
static hd_status fails_and_says_why_once(lab_node *self, hd_tx *tx) {
    bool says = lab_tx_number(self, tx, "n") == 1;
    return says ? hd_tx_fail(tx, HD_FAILED, "it was one") : HD_FAILED;
}
static void a_message_belongs_to_one_failure(void **state) {
    caught c = { 0 };
    hd_runtime_on_error(rt(), note_failure, &c);
    lab_set(l, "n", 1);
    lab_add(l, .name = "bad", .body = fails_and_says_why_once, .effect = true);
    lab_settle(l);
    assert_string_equal(c.text, "bad|main||main|it was one");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(c.count, 2);
    assert_null(strstr(c.text, "it was one"));
}

/* A body that returns the status of the call that failed is reported with the message of that call. */
static hd_status puts_text_into_a_list(lab_node *self, hd_tx *tx) {
    bool tries = lab_tx_number(self, tx, "n") == 1;
    hd_cell at = hd_cell_at(hd_tx_runtime(tx), "main/list#/x");
    return tries ? hd_tx_set_int(tx, at, 1) : HD_KIND;
}
static void the_message_of_the_call_that_failed_is_reported(void **state) {
    caught c = { 0 };
    hd_runtime_on_error(rt(), note_failure, &c);
    lab_set_json(l, "list", "[1]");
    lab_set(l, "n", 1);
    lab_add(l, .name = "bad", .body = puts_text_into_a_list, .effect = true);
    lab_settle(l);
    assert_int_equal(c.count, 1);
    assert_non_null(strstr(c.text, "main/list#/x"));
    lab_set(l, "n", 2); /* the same status, not of a call of this run */
    lab_settle(l);
    assert_int_equal(c.count, 2);
    assert_null(strstr(c.text, "main/list"));
}

/* C316: without a handler the failure is logged as uncaught; every handler is called. */
static void without_a_handler_it_is_uncaught(void **state) {
    caught first = { 0 }, second = { 0 };
    lab_add(l, .name = "bad", .body = fails, .effect = true);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "uncaught in node \"bad\": no luck with 7"), 1);
    hd_runtime_on_error(rt(), note_failure, &first);
    hd_runtime_on_error(rt(), note_failure, &second);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, 1);
}

static hd_status talks(lab_node *self, hd_tx *tx) {
    hd_tx_log(tx, HD_LOG_INFO, "n is %g", lab_tx_number(self, tx, "n"));
    return HD_OK;
}
static bool rewrite(hd_log_entry *entry, void *ctx) {
    static char line[128];
    if (strstr(entry->line, "n is 2")) return false;
    snprintf(line, sizeof line, "[%s] %s", entry->action, entry->line);
    entry->line = line;
    entry->level = HD_LOG_WARN;
    return true;
}

/* C317: a log line from an action passes through; a hook may rewrite it, or drop it. */
static void a_hook_may_rewrite_log_lines(void **state) {
    lab_add(l, .name = "talker", .body = talks, .effect = true);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "info: n is 0"), 1);
    hd_runtime_set_log(rt(), rewrite, NULL);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "warning: [talker] n is 1"), 1);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(lab_env_logged(lab_world(l), "n is 2"), 0);
}

typedef struct heard {
    int kinds[8];
    uint64_t busy_ns, window_ns;
    char action[64];
} heard;
static void note_telemetry(const hd_telemetry *t, void *ctx) {
    heard *h = ctx;
    h->kinds[t->kind]++;
    h->busy_ns = t->busy_ns;
    h->window_ns = t->window_ns;
    snprintf(h->action, sizeof h->action, "%s", t->action);
}

static double one_more(const double *in) { return in[0] + 1; }
static void two_that_never_agree(void) {
    lab_add(l, .name = "ping", .reads = "pong", .formula = one_more);
    lab_add(l, .name = "pong", .reads = "ping", .formula = one_more);
    lab_effect(l, "show", "ping");
}

/* C318: a graph that does not settle is told of by telemetry and a warning; no action has failed. */
static void not_settling_is_no_action_error(void **state) {
    heard h = { 0 };
    caught c = { 0 };
    hd_runtime_on_error(rt(), note_failure, &c);
    hd_runtime_set_telemetry(rt(), note_telemetry, &h);
    two_that_never_agree();
    lab_turn(l);
    assert_int_equal(h.kinds[HD_TELEMETRY_NOT_SETTLING], 1);
    assert_int_equal(lab_env_logged(lab_world(l), "does not settle"), 1);
    assert_int_equal(c.count, 0);
}

/* C319: of an unknown action nothing is known; one that fails is recorded like any other. */
static void stats_of_unknown_and_of_failing_actions(void **state) {
    hd_action_stats stats;
    assert_status(hd_runtime_action_stats(rt(), "nobody", &stats), HD_NOT_FOUND);
    lab_add(l, .name = "bad", .body = fails, .effect = true);
    lab_settle(l);
    assert_status(hd_runtime_action_stats(rt(), "bad", &stats), HD_OK);
    assert_true(stats.exists);
    assert_int_equal(stats.runs, 1);
    assert_int_equal(stats.failures, 1);
}

/* ---- Q: traces */

static char story[4096];
static void tell_story(const char *text) {
    size_t length = strlen(story);
    snprintf(story + length, sizeof story - length, "%s%s", length ? "; " : "", text);
}
static const char *cell_name(hd_cell cell) {
    static char name[4][96];
    static unsigned next;
    char *out = name[next++ % 4];
    hd_cell_print(rt(), cell, out, sizeof name[0]);
    return strncmp(out, "main/", 5) ? out : out + 5;
}

static bool story_of_trigger(const hd_trigger *t, void *ctx) {
    char line[256];
    snprintf(line, sizeof line, "%s %s %s %s->%s by %s", t->action,
             hd_trigger_decision_name(t->decision), cell_name(t->cell), t->before, t->after,
             *t->writer_name ? t->writer_name : "-");
    tell_story(line);
    return true;
}
static const char *triggers(void) {
    story[0] = 0;
    hd_trace_triggers(rt(), story_of_trigger, NULL);
    hd_trace_clear(rt());
    return story;
}

static hd_status read_and_write_n(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    return lab_tx_put(self, tx, "n", n < 10 ? 10 : n);
}

/* C320: each meeting of a change and a reader: mark-invalid, already-invalid, skip-own, skip-group,
 * with what was there before and after. */
static void the_trigger_trace_tells_decisions(void **state) {
    lab_compute(l, "double", "n", twice);
    lab_effect(l, "show", "double");
    lab_settle(l);
    assert_status(hd_trace_enable(rt(), HD_TRACE_TRIGGERS), HD_OK);
    lab_set(l, "n", 3);
    lab_set(l, "n", 4);
    assert_string_equal(triggers(), "double mark-invalid n -->3 by -; "
                                    "double already-invalid n 3->4 by -");
    lab_settle(l);
    assert_string_equal(triggers(), "show mark-invalid double 0->8 by double");
}

static void the_trigger_trace_tells_what_is_skipped(void **state) {
    lab_set(l, "n", 10);
    lab_add(l, .name = "own", .body = read_and_write_n, .effect = true);
    lab_add(l, .name = "editor", .reads = "n", .effect = true, .group = 7);
    lab_settle(l);
    assert_status(hd_trace_enable(rt(), HD_TRACE_TRIGGERS), HD_OK);
    lab_do(lab_first(l), "group 7; set n 5");
    lab_settle(l);
    const char *told = triggers();
    assert_non_null(strstr(told, "own mark-invalid n 10->5 by -"));
    assert_non_null(strstr(told, "editor skip-group n 10->5 by -"));
    assert_non_null(strstr(told, "own skip-own n 5->10 by own"));
    assert_non_null(strstr(told, "editor mark-invalid n 5->10 by own"));
}

static bool story_of_run(const hd_run_trace *r, void *ctx) {
    char line[256];
    snprintf(line, sizeof line, "%s%s%s causes", r->action, r->effect ? " effect" : "",
             r->first ? " first" : "");
    for (uint32_t i = 0; i < r->causes.count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s",
                 cell_name(r->causes.cells[i]));
    snprintf(line + strlen(line), sizeof line - strlen(line), ", may write");
    for (uint32_t i = 0; i < r->declared.count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s",
                 cell_name(r->declared.cells[i]));
    snprintf(line + strlen(line), sizeof line - strlen(line), ", wrote");
    for (uint32_t i = 0; i < r->written.count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s",
                 cell_name(r->written.cells[i]));
    tell_story(line);
    return true;
}
static const char *runs(void) {
    story[0] = 0;
    hd_trace_runs(rt(), story_of_run, NULL);
    hd_trace_clear(rt());
    return story;
}

/* C321: exactly the runs of an update, with type, declared and actual writes, and causes. */
static void the_run_trace_tells_runs(void **state) {
    lab_compute(l, "double", "n", twice);
    lab_effect(l, "show", "double");
    assert_status(hd_trace_enable(rt(), HD_TRACE_RUNS), HD_OK);
    lab_settle(l);
    assert_string_equal(runs(), "double first causes, may write double, wrote double; "
                                "show effect first causes, may write, wrote");
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_string_equal(runs(), "double causes n, may write double, wrote double; "
                                "show effect causes double, may write, wrote");
}

static bool note_parent(const hd_run_trace *r, void *ctx) {
    *(hd_node *)ctx = r->parent;
    return true;
}
static hd_status make_child(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_add(self->l, .name = "child", .reads = "n");
    return HD_OK;
}
static void the_run_trace_tells_parents(void **state) {
    hd_node parent;
    assert_status(hd_trace_enable(rt(), HD_TRACE_RUNS), HD_OK);
    lab_add(l, .name = "parent", .body = make_child, .effect = true);
    lab_settle(l);
    hd_trace_runs(rt(), note_parent, &parent);
    assert_int_equal(parent.id, lab_find(l, "parent")->node.id);
}

static bool count_runs(const hd_run_trace *r, void *ctx) {
    uint64_t *seen = ctx;
    if (!seen[0]++) seen[1] = r->number;
    seen[2] = r->number;
    return true;
}
static bool count_triggers(const hd_trigger *t, void *ctx) {
    (*(uint64_t *)ctx)++;
    return true;
}
static bool count_settles(const hd_settle_trace *t, void *ctx) {
    (*(uint64_t *)ctx)++;
    return true;
}

/* C321: bounded to the last 2,000 runs (400 triggers, 20 passes), without allocating. */
static void traces_are_bounded(void **state) {
    uint64_t seen[3] = { 0 }, met = 0, passes = 0;
    lab_effect(l, "show", "n");
    lab_settle(l);
    assert_status(hd_trace_enable(rt(), HD_TRACE_ALL), HD_OK);
    for (int i = 0; i < 2500; i++) {
        lab_set(l, "n", i + 1);
        lab_turn(l);
    }
    hd_trace_runs(rt(), count_runs, seen);
    hd_trace_triggers(rt(), count_triggers, &met);
    hd_trace_settles(rt(), count_settles, &passes);
    assert_int_equal(seen[0], HD_TRACE_MAX_RUNS);
    assert_int_equal(seen[1], 501);
    assert_int_equal(seen[2], 2500);
    assert_int_equal(met, HD_TRACE_MAX_TRIGGERS);
    assert_int_equal(passes, HD_TRACE_MAX_SETTLES);
}

static hd_run *suspended;
static hd_status suspends(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    hd_status status = hd_tx_suspend(tx, &suspended);
    return status ? status : HD_PENDING;
}
static bool note_run(const hd_run_trace *r, void *ctx) {
    *(hd_run_trace *)ctx = *r;
    return true;
}

/* Of a suspended run the whole time counts, and what became of it in the end. */
static void the_run_trace_follows_suspended_runs(void **state) {
    hd_run_trace last;
    assert_status(hd_trace_enable(rt(), HD_TRACE_RUNS), HD_OK);
    lab_add(l, .name = "later", .body = suspends, .effect = true);
    lab_turn(l);
    hd_trace_runs(rt(), note_run, &last);
    assert_status(last.status, HD_PENDING);
    lab_advance_ms(l, 30);
    hd_run_resume(suspended, HD_OK);
    hd_trace_runs(rt(), note_run, &last);
    assert_status(last.status, HD_OK);
    assert_true(last.took_ns >= UINT64_C(30000000));
    lab_settle(l);
}

static hd_status begin_and_stop(hd_tx *tx, void *ctx) {
    hd_status status = hd_tx_suspend(tx, ctx);
    return status ? status : HD_PENDING;
}

/* The call of a body that suspended is timed; its run counts when it ends, which it never does here. */
static void a_node_that_leaves_suspended_has_not_run(void **state) {
    assert_status(hd_runtime_keep_stats(rt(), true), HD_OK);
    for (int i = 0; i < 3; i++) {
        hd_node node;
        hd_node_spec spec = {
            .name = "leaves", .fn = begin_and_stop, .ctx = &suspended, .effect = true
        };
        assert_status(hd_node_register(rt(), &spec, &node), HD_OK);
        lab_turn(l);
        hd_node_unregister(rt(), node);
        hd_run_resume(suspended, HD_OK);
        lab_settle(l);
    }
    hd_action_stats stats;
    assert_status(hd_runtime_action_stats(rt(), "leaves", &stats), HD_OK);
    assert_int_equal(stats.runs, 0);
    assert_true(stats.timed_runs <= 3);
}

static hd_status read_double(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "double");
    return HD_OK;
}

static uint64_t allocations_of_updates(int from) {
    uint64_t before = lab_env_allocations(lab_world(l));
    for (int i = from; i < from + 100; i++) {
        lab_set(l, "n", i);
        lab_turn(l);
    }
    return lab_env_allocations(lab_world(l)) - before;
}

/* Once a trace is on it takes no more memory: an update allocates what it does without. */
static void traces_allocate_nothing(void **state) {
    lab_compute(l, "double", "n", twice);
    lab_add(l, .name = "show", .body = read_double, .effect = true);
    lab_turn(l);
    allocations_of_updates(1);
    uint64_t without = allocations_of_updates(101);
    assert_status(hd_trace_enable(rt(), HD_TRACE_ALL), HD_OK);
    allocations_of_updates(201);
    uint64_t with = allocations_of_updates(301);
    if (!lab_is_sqlite(l)) assert_true(with <= without);
}

static bool note_settle(const hd_settle_trace *t, void *ctx) {
    if (t->runs) *(hd_settle_trace *)ctx = *t;
    return true;
}
static void the_settle_trace_tells_passes(void **state) {
    hd_settle_trace last = { 0 };
    lab_compute(l, "double", "n", twice);
    lab_effect(l, "show", "double");
    assert_status(hd_trace_enable(rt(), HD_TRACE_SETTLES), HD_OK);
    lab_settle(l);
    hd_trace_settles(rt(), note_settle, &last);
    assert_int_equal(last.runs, 2);
    assert_false(last.exhausted);
    hd_trace_clear(rt());
    lab_add(l, .name = "ping", .reads = "pong", .formula = one_more);
    lab_add(l, .name = "pong", .reads = "ping", .formula = one_more);
    lab_effect(l, "look", "ping");
    lab_turn(l);
    hd_trace_settles(rt(), note_settle, &last);
    assert_true(last.exhausted);
}

static hd_status takes_10_ms(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    lab_advance_ms(self->l, 10);
    return HD_OK;
}
typedef struct parts {
    uint64_t number;
    int records, runs, unfinished;
} parts;
static bool note_part(const hd_settle_trace *t, void *ctx) {
    parts *p = ctx;
    if (!t->runs) return true;
    if (p->records++) assert_int_equal(t->number, p->number);
    p->number = t->number;
    p->runs += (int)t->runs;
    p->unfinished += t->unfinished;
    return true;
}
/* C352: a pass that gives way after its time slice is recorded in parts: one number, all unfinished but the last. */
static void a_pass_that_gives_way_is_recorded_in_parts(void **state) {
    char name[16];
    parts seen = { 0 };
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "e%d", i);
        lab_add(l, .name = name, .effect = true, .body = takes_10_ms, .no_auto_debounce = true);
    }
    assert_status(hd_trace_enable(rt(), HD_TRACE_SETTLES), HD_OK);
    while (hd_runtime_pump(rt()) == HD_PENDING) continue;
    hd_trace_settles(rt(), note_part, &seen);
    assert_int_equal(seen.runs, 6);
    assert_true(seen.records > 1);
    assert_int_equal(seen.unfinished, seen.records - 1);
}

static void a_busy_day(void) {
    lab_set(l, "n", 1);
    lab_compute(l, "double", "n", twice);
    lab_add(l, .name = "sum", .reads = "n double", .throttle_ms = 50);
    lab_add(l, .name = "own", .body = read_and_write_n, .effect = true);
    lab_effect(l, "show", "sum");
    for (int i = 0; i < 20; i++) {
        lab_set(l, "n", i);
        if (i % 3 == 0) lab_turn(l);
        if (i % 5 == 0) lab_advance_ms(l, 60);
    }
    lab_settle(l);
}

/* C322: whether somebody looks changes nothing of what runs. */
static void looking_changes_nothing(void **state) {
    char first[4096];
    a_busy_day();
    snprintf(first, sizeof first, "%s", lab_ran(l));
    spec_close(NULL);
    spec_open(NULL);
    heard h = { 0 };
    hd_trace_enable(rt(), HD_TRACE_ALL);
    hd_runtime_set_telemetry(rt(), note_telemetry, &h);
    hd_diagnosis_start(rt());
    a_busy_day();
    assert_string_equal(lab_ran(l), first);
    hd_trace_enable(rt(), 0);
    hd_diagnosis_stop(rt());
    hd_runtime_set_telemetry(rt(), NULL, NULL);
    assert_int_equal(hd_trace_enabled(rt()), 0);
}

typedef struct counted {
    uint64_t nodes, effects, invalid, live;
} counted;
static bool count_node(const hd_node_info *info, void *ctx) {
    counted *c = ctx;
    c->nodes++;
    c->effects += info->effect;
    c->invalid += info->status != HD_NODE_CLEAN;
    c->live += info->live;
    return true;
}

/* C323: counts agree with the status of the nodes at any time. */
static void counts_agree_with_status(void **state) {
    lab_compute(l, "double", "n", twice);
    lab_compute(l, "dormant", "n", twice);
    lab_effect(l, "show", "double");
    for (int i = 0; i < 6; i++) {
        counted c = { 0 };
        hd_scheduler_stats stats = lab_stats(l);
        hd_runtime_nodes(rt(), count_node, &c);
        assert_int_equal(c.nodes, stats.nodes);
        assert_int_equal(c.effects, stats.effects);
        assert_int_equal(c.invalid, stats.invalid);
        assert_int_equal(c.live, stats.live);
        if (i % 2) lab_settle(l);
        else lab_set(l, "n", i);
    }
}

/* C326: executed and filtered, since the last reset. C177, C189: a node whose time has not come is
 * counted a few times, not once per turn. */
static void filter_statistics_can_be_reset(void **state) {
    hd_filter_stats stats;
    lab_add(l, .name = "show", .reads = "n", .effect = true, .throttle_ms = 1000);
    lab_settle(l);
    lab_set(l, "n", 1);
    for (int i = 0; i < 50; i++) lab_turn(l);
    hd_runtime_filter_stats(rt(), &stats);
    assert_int_equal(stats.executed, 1);
    assert_in_range(stats.filtered, 1, 3);
    hd_runtime_reset_filter_stats(rt());
    hd_runtime_filter_stats(rt(), &stats);
    assert_int_equal(stats.executed, 0);
    assert_int_equal(stats.filtered, 0);
    lab_advance_ms(l, 1000);
    lab_turn(l);
    hd_runtime_filter_stats(rt(), &stats);
    assert_int_equal(stats.executed, 1);
    assert_int_equal(stats.filtered, 0);
}

/* C327: of nodes that are gone 20,000 are remembered, those that ran least recently forgotten first;
 * nodes that are there are known anyway. */
static void stats_of_the_gone_are_bounded(void **state) {
    enum { ACTIONS = 25000 };
    hd_action_stats stats;
    char name[32];
    hd_node *nodes = calloc(ACTIONS, sizeof *nodes);
    assert_status(hd_runtime_keep_stats(rt(), true), HD_OK);
    lab_effect(l, "active", "n");
    lab_settle(l);
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(name, sizeof name, "action%d", i);
        lab_set(l, "m", i); /* so that each ran at another time */
        nodes[i] = lab_add(l, .name = name, .reads = "m", .effect = true)->node;
        hd_runtime_pump(rt());
        hd_node_unregister(rt(), nodes[i]);
    }
    assert_status(hd_runtime_action_stats(rt(), "action0", &stats), HD_NOT_FOUND);
    assert_status(hd_runtime_action_stats(rt(), "action4999", &stats), HD_NOT_FOUND);
    assert_status(hd_runtime_action_stats(rt(), "action5000", &stats), HD_OK);
    assert_status(hd_runtime_action_stats(rt(), "action24999", &stats), HD_OK);
    assert_int_equal(stats.runs, 1);
    assert_false(stats.exists);
    assert_status(hd_runtime_action_stats(rt(), "active", &stats), HD_OK);
    assert_true(stats.exists);
    free(nodes);
}

static hd_status takes_long(lab_node *self, hd_tx *tx) {
    double ms = lab_tx_number(self, tx, "n");
    lab_env_advance_ms(lab_world(self->l), (uint64_t)ms);
    return HD_OK;
}

/* C328: busy for more than 30 % and 1 s of a window of 5 s: told once. */
static void a_busy_window_is_told_once(void **state) {
    heard h = { 0 };
    hd_runtime_set_telemetry(rt(), note_telemetry, &h);
    lab_add(l, .name = "slow", .body = takes_long, .effect = true, .no_auto_debounce = true);
    lab_turn(l);
    for (int i = 0; i < 20; i++) {
        lab_set(l, "n", 400 + i); /* busy 400 ms of 1 s */
        lab_turn(l);
        lab_advance_ms(l, 600);
    }
    assert_int_equal(h.kinds[HD_TELEMETRY_BUSY], 1);
    assert_true(h.busy_ns > UINT64_C(1000000000));
    assert_true(h.window_ns >= UINT64_C(5000000000));
}

/* C328: less than that is not; and after a quiet window it would be told again. */
static void a_quiet_window_is_not_told(void **state) {
    heard h = { 0 };
    hd_runtime_set_telemetry(rt(), note_telemetry, &h);
    lab_add(l, .name = "slow", .body = takes_long, .effect = true, .no_auto_debounce = true);
    lab_turn(l);
    for (int i = 0; i < 20; i++) {
        lab_set(l, "n", 200 + i);
        lab_turn(l);
        lab_advance_ms(l, 800);
    }
    assert_int_equal(h.kinds[HD_TELEMETRY_BUSY], 0);
    for (int round = 0; round < 2; round++) {
        lab_advance_ms(l, 30000);
        for (int i = 0; i < 8; i++) {
            lab_set(l, "n", 500 + i + 20 * round);
            lab_turn(l);
            lab_advance_ms(l, 500);
        }
        assert_int_equal(h.kinds[HD_TELEMETRY_BUSY], round + 1);
        lab_advance_ms(l, 30000);
        for (int i = 0; i < 10; i++) {
            lab_set(l, "n", 10 + i);
            lab_turn(l);
            lab_advance_ms(l, 900);
        }
    }
}

/* C329: with automatic diagnosis a busy window starts one. */
static void a_busy_window_starts_the_diagnosis(void **state) {
    heard h = { 0 };
    hd_runtime_set_telemetry(rt(), note_telemetry, &h);
    assert_status(hd_diagnosis_set_automatic(rt(), true), HD_OK);
    lab_add(l, .name = "slow", .body = takes_long, .effect = true, .no_auto_debounce = true);
    lab_turn(l);
    assert_false(hd_diagnosis_is_on(rt()));
    for (int i = 0; i < 8; i++) {
        lab_set(l, "n", 800 + i);
        lab_turn(l);
        lab_advance_ms(l, 200);
    }
    assert_true(hd_diagnosis_is_on(rt()));
}

/* ---- why */

static bool story_of_cause(const hd_cause *c, void *ctx) {
    char line[256];
    snprintf(line, sizeof line, "%u %s %s->%s by %s%s%s", c->depth, cell_name(c->cell),
             c->before ? c->before : "?", c->after,
             c->origin == HD_ORIGIN_NODE     ? c->writer_name
             : c->origin == HD_ORIGIN_OTHERS ? "others"
                                             : "source",
             c->repeated ? " (told)" : "", c->pending ? " (pending)" : "");
    tell_story(line);
    return true;
}
static const char *why(const char *name) {
    story[0] = 0;
    assert_status(hd_node_why(rt(), lab_find(l, name)->node, story_of_cause, NULL), HD_OK);
    return story;
}

static void a_chain(void) {
    lab_set(l, "n", 1);
    lab_compute(l, "double", "n", twice);
    lab_compute(l, "quadruple", "double", twice);
    lab_effect(l, "show", "quadruple");
    lab_settle(l);
}

/* Why did it run: causes, and who wrote them, down to the source; without anything switched on. */
static void why_follows_the_writers(void **state) {
    a_chain();
    assert_string_equal(why("show"), ""); /* a first run has no causes */
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_string_equal(why("show"), "0 quadruple ?->12 by quadruple; 1 double ?->6 by double; "
                                     "2 n ?->3 by source");
    lab_set(l, "n", 4);
    assert_string_equal(why("double"), "0 n ?->4 by source (pending)");
    assert_status(hd_node_why(rt(), (hd_node){ 99, 1 }, story_of_cause, NULL), HD_NOT_FOUND);
}

/* With a trace it also tells what was there before. */
static void why_knows_before_from_the_trace(void **state) {
    assert_status(hd_trace_enable(rt(), HD_TRACE_ALL), HD_OK);
    a_chain();
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_string_equal(why("show"), "0 quadruple 4->12 by quadruple; 1 double 2->6 by double; "
                                     "2 n 1->3 by source");
    lab_set(l, "n", 5); /* what it ran for is remembered */
    assert_string_equal(why("double"), "0 n 1->3 by source; 0 n 3->5 by source (pending)");
}

/* A cycle is told once round. */
static void why_ends_in_a_cycle(void **state) {
    two_that_never_agree();
    lab_turn(l);
    assert_non_null(strstr(why("show"), "(told)"));
}

static void others_are_told_apart(void **state) {
    hd_trace_enable(rt(), HD_TRACE_ALL);
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_on(l, "b");
    lab_set(l, "n", 3);
    lab_settle(l);
    lab_on(l, "a");
    assert_string_equal(why("show"), "0 n -->3 by others");
}

static const char *why_not_of(const char *name) {
    static char sentence[256];
    hd_node_why_not(rt(), lab_find(l, name)->node, sentence, sizeof sentence);
    return sentence;
}

/* Why does it not run: one sentence. */
static void why_not_in_a_sentence(void **state) {
    char gone[64];
    lab_effect(l, "show", "n");
    lab_compute(l, "unread", "n", twice);
    lab_add(l, .name = "rare", .reads = "n", .effect = true, .throttle_ms = 500);
    lab_add(l, .name = "calm", .reads = "n", .effect = true, .debounce_ms = 200);
    assert_string_equal(why_not_of("show"), "it runs in the next pump");
    assert_string_equal(why_not_of("unread"), "no live node reads what it writes");
    assert_string_equal(why_not_of("calm"),
                        "it runs when nothing has changed for 200 ms: in 200 ms at the earliest");
    lab_advance_ms(l, 200);
    lab_turn(l);
    assert_string_equal(why_not_of("show"),
                        "it is clean: nothing it read has changed since its run number 1");
    lab_set(l, "n", 2);
    lab_advance_ms(l, 100);
    assert_string_equal(why_not_of("rare"), "it runs at most once in 500 ms: again in 400 ms");
    assert_int_equal(hd_node_why_not(rt(), (hd_node){ 99, 9 }, gone, sizeof gone), HD_WHY_NOT_GONE);
    assert_string_equal(gone, "it was removed");
}

static void why_not_of_what_does_not_settle(void **state) {
    two_that_never_agree();
    lab_turn(l);
    assert_non_null(strstr(why_not_of("ping"), "without settling"));
}

/* ---- pictures */

static hd_value at_name(hd_value nodes, const char *name) {
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it);)
        if (!strcmp(hd_value_as_text(hd_value_at(it.value, "name"), ""), name)) return it.value;
    fail_msg("there is no node %s in the snapshot", name);
    return hd_null();
}

static void the_snapshot_shows_nodes_and_edges(void **state) {
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    a_chain();
    lab_compute(l, "unread", "n", twice);
    hd_value graph_ = hd_graph_snapshot(rt(), pool), nodes = hd_value_at(graph_, "nodes");
    assert_int_equal(hd_value_count(nodes), 4);
    hd_value d = at_name(nodes, "double"), unread = at_name(nodes, "unread");
    assert_string_equal(hd_value_as_text(hd_value_at(d, "kind"), ""), "computation");
    assert_string_equal(hd_value_as_text(hd_value_at(d, "status"), ""), "clean");
    assert_string_equal(hd_value_as_text(hd_value_at(d, "why_live"), ""), "a live node reads it");
    assert_int_equal(hd_value_as_int(hd_value_at(d, "runs"), 0), 1);
    assert_string_equal(hd_json_print(pool, hd_value_at(d, "outputs"), HD_JSON_COMPACT, NULL),
                        "[\"main/double\"]");
    assert_string_equal(hd_json_print(pool, hd_value_at(d, "reads"), HD_JSON_COMPACT, NULL),
                        "[{\"cell\":\"main/n\"}]");
    assert_string_equal(hd_value_as_text(hd_value_at(unread, "status"), ""), "never-ran");
    assert_string_equal(hd_value_as_text(hd_value_at(unread, "why_not"), ""),
                        "no live node reads what it writes");
    assert_int_equal(hd_value_count(hd_value_at(graph_, "edges")), 2);
    hd_pool_close(pool);
}

static bool collect_text(const char *text, size_t length, void *ctx) {
    strncat(ctx, text, length);
    return true;
}
static bool stop_at_once(const char *text, size_t length, void *ctx) { return false; }

static void the_graph_can_be_drawn(void **state) {
    static char text[8192];
    text[0] = 0;
    lab_add(l, .name = "a \"quoted\" one", .reads = "n", .effect = true);
    a_chain();
    assert_status(hd_graph_write_dot(rt(), collect_text, text), HD_OK);
    assert_non_null(strstr(text, "digraph heddle {"));
    assert_non_null(strstr(text, "a \\\"quoted\\\" one"));
    assert_non_null(strstr(text, " -> "));
    assert_status(hd_graph_write_dot(rt(), stop_at_once, NULL), HD_ABORTED);
}

static void the_run_trace_can_be_seen_in_a_browser(void **state) {
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_trace_enable(rt(), HD_TRACE_ALL);
    a_chain();
    hd_value trace_events = hd_value_at(hd_trace_chrome(rt(), pool), "traceEvents");
    hd_value last = hd_value_index(trace_events, hd_value_count(trace_events) - 1);
    assert_string_equal(hd_value_as_text(hd_value_at(last, "name"), ""), "show");
    assert_string_equal(hd_value_as_text(hd_value_at(last, "ph"), ""), "X");
    hd_pool_close(pool);
}

/* ---- stopping at a node */

static void note_stop(hd_node at, void *ctx) {
    hd_node_info info;
    hd_node_inspect(rt(), at, &info);
    tell_story(info.name);
}

static void a_breakpoint_is_called_before_the_run(void **state) {
    story[0] = 0;
    a_chain();
    lab_ran(l);
    assert_status(hd_break_name(rt(), "double", note_stop, NULL), HD_OK);
    assert_status(hd_break_node(rt(), lab_find(l, "show")->node, note_stop, NULL), HD_OK);
    assert_status(hd_break_node(rt(), (hd_node){ 99, 1 }, note_stop, NULL), HD_NOT_FOUND);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_string_equal(story, "double; show");
    assert_ran(l, "double quadruple show");
    hd_break_name(rt(), "double", NULL, NULL);
    hd_break_node(rt(), lab_find(l, "show")->node, NULL, NULL);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_string_equal(story, "double; show");
}

/* ---- without memory */

static hd_status set_double(hd_tx *tx, void *ctx) {
    hd_value n = hd_tx_get(tx, hd_cell_at(ctx, "main/n"));
    if (hd_value_status(n)) return hd_value_status(n);
    return hd_tx_set_double(tx, hd_cell_at(ctx, "main/double"), 2 * hd_value_as_double(n, 0));
}
static hd_status look_at_double(hd_tx *tx, void *ctx) {
    return hd_value_status(hd_tx_get(tx, hd_cell_at(ctx, "main/double")));
}
static void ignore_telemetry(const hd_telemetry *t, void *ctx) {}
static void ignore_violation(const hd_violation *v, void *ctx) {}
static void ignore_stop(hd_node at, void *ctx) {}
static bool ignore_cause(const hd_cause *c, void *ctx) { return true; }
static bool ignore_text(const char *text, size_t length, void *ctx) { return true; }

static void look_in_every_way(hd_runtime *r, hd_node shown_) {
    hd_pool *pool;
    hd_node_why(r, shown_, ignore_cause, NULL);
    hd_graph_write_dot(r, ignore_text, NULL);
    if (hd_pool_open(hd_runtime_heap(r), &pool)) return;
    hd_graph_snapshot(r, pool);
    hd_trace_chrome(r, pool);
    hd_pool_close(pool);
}

static void look_without_memory(lab_env *world, void *ctx) {
    hd_runtime *r;
    hd_options options = { .env = lab_env_of(world) };
    if (hd_open(NULL, &options, &r, NULL)) return;
    hd_trace_enable(r, HD_TRACE_ALL);
    hd_runtime_set_telemetry(r, ignore_telemetry, NULL);
    hd_recheck_enable(r, ignore_violation, NULL);
    hd_diagnosis_start(r);
    hd_runtime_keep_stats(r, true);
    hd_break_name(r, "double", ignore_stop, NULL);
    hd_compute(r, "double", set_double, r, hd_cell_at(r, "main/double"));
    hd_node show = hd_effect(r, "show", look_at_double, r);
    for (int i = 1; i < 4; i++) {
        hd_write(r, hd_cell_at(r, "main/n"), hd_double(i));
        hd_runtime_pump(r);
    }
    look_in_every_way(r, show);
    hd_node_unregister(r, show);
    hd_close(r);
}

/* Whichever allocation fails, looking loses what it would have seen and nothing else. */
static void looking_survives_without_memory(void **state) {
    lab_each_allocation_failure(look_without_memory, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_handler_receives_what_failed),
        S(a_failure_names_its_causes),
        S(a_message_belongs_to_one_failure),
        S(the_message_of_the_call_that_failed_is_reported),
        S(without_a_handler_it_is_uncaught),
        S(a_hook_may_rewrite_log_lines),
        S(not_settling_is_no_action_error),
        S(stats_of_unknown_and_of_failing_actions),
        S(the_trigger_trace_tells_decisions),
        S(the_trigger_trace_tells_what_is_skipped),
        S(the_run_trace_tells_runs),
        S(the_run_trace_tells_parents),
        S(the_run_trace_follows_suspended_runs),
        S(a_node_that_leaves_suspended_has_not_run),
        S(traces_are_bounded),
        S(traces_allocate_nothing),
        S(the_settle_trace_tells_passes),
        S(a_pass_that_gives_way_is_recorded_in_parts),
        S(looking_changes_nothing),
        S(counts_agree_with_status),
        S(filter_statistics_can_be_reset),
        S(stats_of_the_gone_are_bounded),
        S(a_busy_window_is_told_once),
        S(a_quiet_window_is_not_told),
        S(a_busy_window_starts_the_diagnosis),
        S(why_follows_the_writers),
        S(why_knows_before_from_the_trace),
        S(why_ends_in_a_cycle),
        S(others_are_told_apart),
        S(why_not_in_a_sentence),
        S(why_not_of_what_does_not_settle),
        S(the_snapshot_shows_nodes_and_edges),
        S(the_graph_can_be_drawn),
        S(the_run_trace_can_be_seen_in_a_browser),
        S(a_breakpoint_is_called_before_the_run),
        cmocka_unit_test(looking_survives_without_memory),
    };
    LAB_EVERYWHERE(tests);
}

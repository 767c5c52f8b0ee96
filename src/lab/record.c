/* record.c -- the log of what ran, what failed and what was not idempotent.
 *
 * The runtime traces nodes and keeps the last 2,000 runs; the lab takes them over after every pump.
 * Handlers are noted when they commit; the lab first takes over the runs of nodes before, so that the order
 * is right. */
#include "lab/lab.h"

#include <inttypes.h>
#include <string.h>

static void log_name(lab_runtime *r, const char *name) {
    if (*name) lab_text_add(&r->ran, "%s%s", r->ran.length ? " " : "", name);
}

static bool take_run(const hd_run_trace *run, void *ctx) {
    lab_runtime *r = ctx;
    if (run->number <= r->last_run) return true;
    if (run->number > r->last_run + 1)
        lab_text_add(&r->ran, "%s(%" PRIu64 " more)", r->ran.length ? " " : "",
                     run->number - r->last_run - 1);
    r->last_run = run->number;
    if (!run->set_aside) log_name(r, run->action);
    return true;
}

void lab_record_take(lab_runtime *r) { hd_trace_runs(r->rt, take_run, r); }

static void on_event(const hd_event_trace *trace, void *ctx) {
    lab_runtime *r = ctx;
    if (trace->stage != HD_EVENT_COMMIT) return;
    lab_record_take(r);
    log_name(r, trace->handler);
}

static void on_failure(const hd_failure *f, void *ctx) {
    lab_runtime *r = ctx;
    lab_text_add(&r->failures, "%s%s %s: %s", r->failures.length ? "; " : "", f->action,
                 hd_status_name(f->status), f->message);
}

hd_status lab_record_start(lab_runtime *r) {
    hd_status status = hd_runtime_on_error(r->rt, on_failure, r);
    if (!status) status = hd_runtime_set_event_trace(r->rt, on_event, r);
    if (!status) status = hd_runtime_keep_stats(r->rt, true);
    return status;
}

/* ---- Telling ------------------------------------------------------------------------------- */

/* Returns the text, which is good until the next call, and begins a new one. */
static const char *hand_out(lab_text *from, lab_text *told) {
    lab_text spare = *told;
    *told = *from;
    *from = spare;
    lab_text_clear(from);
    return lab_text_of(told);
}

const char *hd_lab_ran(hd_runtime *rt) {
    lab_runtime *r = lab_runtime_of(rt);
    lab_record_take(r);
    return hand_out(&r->ran, &r->ran_told);
}

void hd_lab_note(hd_runtime *rt, const char *name) {
    lab_runtime *r = lab_runtime_of(rt);
    lab_record_take(r);
    log_name(r, name);
}

uint64_t hd_lab_runs(hd_runtime *rt, const char *name) {
    hd_action_stats stats = { 0 };
    hd_runtime_action_stats(rt, name, &stats);
    return stats.runs;
}

const char *hd_lab_failures(hd_runtime *rt) {
    lab_runtime *r = lab_runtime_of(rt);
    return hand_out(&r->failures, &r->failures_told);
}

const char *hd_lab_violations(hd_runtime *rt) {
    lab_runtime *r = lab_runtime_of(rt);
    return hand_out(&r->violations, &r->violations_told);
}

/* ---- Twice --------------------------------------------------------------------------------- */

static void add_writes(lab_runtime *r, const hd_written *writes, size_t count) {
    hd_pool *pool = NULL;
    if (hd_pool_open(hd_runtime_heap(r->rt), &pool)) hd_lab_fail("no memory for a message");
    for (size_t i = 0; i < count; i++) {
        char cell[256];
        hd_cell_print(r->rt, writes[i].document, cell, sizeof cell);
        const char *json = hd_json_print(pool, writes[i].value, HD_JSON_COMPACT, NULL);
        lab_text_add(&r->violations, "%s%s=%s", i ? " " : "", cell, json ? json : "-");
    }
    if (!count) lab_text_add(&r->violations, "nothing");
    hd_pool_close(pool);
}

static void on_violation(const hd_violation *v, void *ctx) {
    lab_runtime *r = ctx;
    lab_text_add(&r->violations, "%s%s wrote ", r->violations.length ? "; " : "", v->action);
    add_writes(r, v->first, v->first_count);
    lab_text_add(&r->violations, ", then ");
    add_writes(r, v->second, v->second_count);
}

void hd_lab_recheck(hd_lab *lab) {
    for (lab_runtime *r = lab->runtimes; r; r = r->next)
        if (hd_recheck_enable(r->rt, on_violation, r))
            hd_lab_fail("%s: recheck cannot be switched on", r->name);
}

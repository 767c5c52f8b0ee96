/* workflow.c -- what the commands of "heddle workflow" share. */
#define _POSIX_C_SOURCE 200809L
#include "cli/workflow.h"

#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/shown.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PREFIX         "workflow/"
#define VERSION_PREFIX "workflow-version/"
#define NAME_PREFIX    "workflow-name/"

/* ---- Opening ----------------------------------------------------------------------------- */

int flow_open(cli *c, flow *f, store_mode mode) {
    const char *space = option_text(c, "space");
    *f = (flow){ .space = space ? space : "main" };
    bool is_file = !is_address(c->operands[0]);
    if (mode != STORE_CREATE && mode != STORE_NOWHERE && is_file && access(c->operands[0], F_OK) &&
        errno == ENOENT)
        return cli_fail(c, CLI_NOT_FOUND, "\"heddle workflow register\" makes one.",
                        "there is no file %s", c->operands[0]);
    return store_open(c, &f->s, c->operands[0], mode);
}

int flow_engine(flow *f) {
    hd_error error = { 0 };
    hd_status status = hd_engine_open(
        f->s.rt, &(hd_engine_options){ .space = f->space, .observer = true }, &f->engine, &error);
    if (status && *error.message)
        return cli_fail(f->s.c, exit_of(status), NULL, "%s: %s", f->s.file, error.message);
    return status ? store_fail(&f->s, status, f->s.file) : CLI_OK;
}

int flow_open_engine(cli *c, flow *f, store_mode mode) {
    int failed = flow_open(c, f, mode);
    return failed ? failed : flow_engine(f);
}

int flow_close(flow *f, int status) {
    f->engine = NULL; /* closed with its runtime */
    return store_close(&f->s, status);
}

int flow_sync(flow *f, const char *what) {
    hd_status status = hd_runtime_sync(f->s.rt);
    return status ? store_fail(&f->s, status, what) : CLI_OK;
}

int flow_refused(flow *f, hd_status status, const hd_error *error) {
    const char *words =
        error && *error->message ? error->message : hd_runtime_error(f->s.rt)->message;
    int exit = status == HD_MISMATCH || status == HD_USAGE ? CLI_INPUT : exit_of(status);
    return cli_fail(f->s.c, exit, NULL, "%s", *words ? words : hd_status_text(status));
}

typedef struct listing {
    flow *f;
    int (*show)(flow *f, const char *name);
    int failed;
    uint64_t count;
} listing;

static bool list_one(const char *name, void *ctx) {
    listing *w = ctx;
    w->count++;
    w->failed = w->show(w->f, name);
    return !w->failed && !output_broken();
}

int flow_list(flow *f, flow_list_fn each, int (*show)(flow *f, const char *name),
              const char *none) {
    listing w = { .f = f, .show = show };
    hd_status status = each(f->engine, list_one, &w);
    if (status) return flow_refused(f, status, NULL);
    if (!w.count && !f->s.c->json) puts(none);
    return w.failed;
}

/* ---- Instances and versions -------------------------------------------------------------- */

const char *flow_text(hd_value v, const char *key) {
    return hd_value_as_text(hd_value_at(v, key), "");
}
uint64_t flow_number(hd_value v, const char *key) {
    int64_t n = hd_value_as_int(hd_value_at(v, key), 0);
    return n > 0 ? (uint64_t)n : 0;
}

bool flow_is_ending(hd_value document) { return *flow_text(document, "ending") != '\0'; }

bool flow_is_over(hd_value document) {
    static const char *const open[] = { "queued", "running", "paused" };
    const char *status = flow_text(document, "status");
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (strcmp(status, open[i]) == 0) return false;
    return true;
}

/* The message of an exception: its first argument, if that is a text. */
static const char *message_of(hd_value error) {
    const char *message = flow_text(error, "message");
    if (*message) return message;
    return hd_value_as_text(hd_value_index(hd_value_at(error, "args"), 0), "");
}

const char *flow_error_text(flow *f, hd_value document) {
    hd_value error = hd_value_at(document, "error"), place = hd_value_at(document, "failed_at");
    const char *message = message_of(error), *at = flow_text(place, "at");
    const char *node = flow_text(place, "node"), *function = flow_text(place, "function");
    if (!hd_value_exists(error)) return "";
    hd_value text = hd_string_f(f->s.pool, ": %s%s%s", flow_text(error, "$error"),
                                *message ? ": " : "", message);
    if (*node)
        text = hd_string_f(f->s.pool, "%s, at %s%s%s%s%s%s", hd_value_as_text(text, ""), node,
                           *function ? " in " : "", function, *at ? " (" : "", at, *at ? ")" : "");
    return hd_value_as_text(text, "");
}

static const char *without(const char *text, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : text;
}

/* "name/key" of what was typed. */
static const char *instance_id(flow *f, const char *name) {
    char space[256];
    snprintf(space, sizeof space, "%.200s/", f->space);
    const char *rest = without(name, space);
    return without(rest, PREFIX);
}

hd_cell flow_cell(flow *f, const char *id) {
    if (f->engine) return hd_workflow_cell(f->engine, id);
    return hd_cell_at(
        f->s.rt, hd_value_as_text(hd_string_f(f->s.pool, "%s/" PREFIX "%s", f->space, id), ""));
}

typedef struct id_search {
    nearest near;
    uint32_t seen;
} id_search;

static bool offer_id(const hd_listing *entry, void *ctx) {
    id_search *s = ctx;
    nearest_offer(&s->near, entry->id + strlen(PREFIX));
    return ++s->seen < 2000;
}

static int no_instance(flow *f, const char *id) {
    id_search s = { .near = nearest_to(id) };
    char hint[256];
    (void)hd_runtime_list(f->s.rt, f->space, NULL, PREFIX, offer_id, &s);
    if (*s.near.best) snprintf(hint, sizeof hint, "Did you mean %s?", s.near.best);
    else snprintf(hint, sizeof hint, "\"heddle workflow ls %.200s\" lists them.", f->s.file);
    return cli_fail(f->s.c, CLI_NOT_FOUND, hint, "there is no instance %s", id);
}

int flow_instance(flow *f, const char *name, hd_value *document) {
    f->id = hd_value_as_text(hd_string(f->s.pool, instance_id(f, name)), "");
    hd_cell cell = flow_cell(f, f->id);
    *document = cell.id ? hd_read(f->s.rt, f->s.pool, cell) : (hd_value){ 0 };
    if (!strchr(f->id, '/') || !*flow_text(*document, "status")) return no_instance(f, f->id);
    return CLI_OK;
}

int flow_version(flow *f, const char *version, hd_value *ir) {
    hd_value name = hd_string_f(f->s.pool, "%s/" VERSION_PREFIX "%s", f->space, version);
    *ir = hd_read(f->s.rt, f->s.pool, hd_cell_at(f->s.rt, hd_value_as_text(name, "")));
    if (hd_value_exists(*ir)) return CLI_OK;
    return cli_fail(f->s.c, CLI_FILE, NULL, "version %s of the workflow is not in %s", version,
                    f->s.file);
}

static bool offer_name(const hd_listing *entry, void *ctx) {
    nearest_offer(ctx, entry->id + strlen(NAME_PREFIX));
    return true;
}

static int no_workflow(flow *f, const char *workflow) {
    nearest n = nearest_to(workflow);
    char hint[256];
    (void)hd_runtime_list(f->s.rt, f->space, "workflow.name", NULL, offer_name, &n);
    if (*n.best) snprintf(hint, sizeof hint, "Did you mean %s?", n.best);
    else
        snprintf(hint, sizeof hint, "Register it: heddle workflow register %.160s FILE.json",
                 f->s.file);
    return cli_fail(f->s.c, CLI_NOT_FOUND, hint, "there is no workflow \"%s\" in %s", workflow,
                    f->s.file);
}

int flow_latest(flow *f, const char *workflow, hd_value *ir) {
    hd_value name = hd_string_f(f->s.pool, "%s/" NAME_PREFIX "%s", f->space, workflow);
    hd_cell cell = hd_cell_at(f->s.rt, hd_value_as_text(name, ""));
    hd_value latest = cell.id ? hd_read(f->s.rt, f->s.pool, cell) : (hd_value){ 0 };
    if (!*flow_text(latest, "version")) return no_workflow(f, workflow);
    return flow_version(f, flow_text(latest, "version"), ir);
}

int flow_find(flow *f, const char *name, hd_value *ir, hd_value *document) {
    *document = (hd_value){ 0 };
    if (!strchr(instance_id(f, name), '/')) return flow_latest(f, name, ir);
    int failed = flow_instance(f, name, document);
    return failed ? failed : flow_version(f, flow_text(*document, "version"), ir);
}

/* ---- Times ------------------------------------------------------------------------------- */

uint64_t wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const char *when_text(uint64_t ms, char out[WHEN_TEXT]) {
    time_t seconds = (time_t)(ms / 1000), today = time(NULL);
    struct tm then, now;
    if (!localtime_r(&seconds, &then) || !localtime_r(&today, &now)) return "?";
    bool same_day = then.tm_yday == now.tm_yday && then.tm_year == now.tm_year;
    if (!strftime(out, WHEN_TEXT, same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then)) return "?";
    return out;
}

const char *span_text(uint64_t ms, char out[SPAN_TEXT]) {
    uint64_t s = ms / 1000;
    if (ms < 1000) snprintf(out, SPAN_TEXT, "%" PRIu64 " ms", ms);
    else if (s < 60) snprintf(out, SPAN_TEXT, "%.1f s", (double)ms / 1000);
    else if (s < 3600) snprintf(out, SPAN_TEXT, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, SPAN_TEXT, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
    else snprintf(out, SPAN_TEXT, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
    return out;
}

const char *status_verb(const char *status) {
    return strcmp(status, "failed") && strcmp(status, "stalled") ? "is" : "has";
}

void print_status(const cli *c, FILE *to, const char *status, bool coloured) {
    colour which = strcmp(status, "done") == 0      ? COLOUR_GREEN
                   : strcmp(status, "failed") == 0  ? COLOUR_RED
                   : strcmp(status, "stalled") == 0 ? COLOUR_RED
                   : strcmp(status, "running") == 0 ? COLOUR_CYAN
                                                    : COLOUR_YELLOW;
    const char *(*sequence)(const cli *, colour) = to == stderr ? err_colour : out_colour;
    fputs(coloured ? sequence(c, which) : "", to);
    print_plain(to, status);
    fputs(coloured ? sequence(c, COLOUR_NONE) : "", to);
}

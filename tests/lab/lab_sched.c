/* lab_sched.c -- nodes with names, and the log of what ran. */
#define _GNU_SOURCE
#include "lab_sched.h"

#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 64 /* names in one list */

typedef struct sched {
    lab *l;
    lab_runtime *at;
    lab_node *nodes; /* newest first */
    char *ran, *told;
    char *failures, *failures_told;
    char *dependents, *pulled;
    uint64_t began_ns;
} sched;

static sched *sched_of(const lab *l) { return lab_attached(l); }

/* ---- texts */

static void append(char **to, const char *separator, const char *text) {
    size_t old = *to ? strlen(*to) : 0;
    size_t more = strlen(text) + (old ? strlen(separator) : 0);
    char *longer = realloc(*to, old + more + 1);
    if (!longer) lab_fail("no memory");
    snprintf(longer + old, more + 1, "%s%s", old ? separator : "", text);
    *to = longer;
}

/* Hands a text out and begins a new one. */
static const char *hand_out(char **from, char **told) {
    free(*told);
    *told = *from ? *from : strdup("");
    *from = NULL;
    return *told;
}

static char *copy_of(const char *text) { return text ? strdup(text) : NULL; }

/* The ith word of a list, into `out`; false: no more. */
static bool word_at(const char *names, size_t i, char *out, size_t size) {
    if (!names) return false;
    for (;; i--) {
        names += strspn(names, " ");
        size_t length = strcspn(names, " ");
        if (!length) return false;
        if (i == 0) {
            snprintf(out, size, "%.*s", (int)length, names);
            return true;
        }
        names += length;
    }
}

static size_t cells_of(sched *s, const char *names, hd_cell *out) {
    char word[128];
    size_t count = 0;
    while (count < LIST_MAX && word_at(names, count, word, sizeof word)) {
        out[count] = lab_cell(s->at, word);
        count++;
    }
    return count;
}

/* The reads without their signs, as declared reads: all but those that are no dependency. */
static size_t declared_of(sched *s, const lab_spec *spec, hd_cell *out) {
    char word[128];
    size_t count = 0;
    if (spec->declares) return strcmp(spec->declares, "-") ? cells_of(s, spec->declares, out) : 0;
    for (size_t i = 0; i < LIST_MAX && word_at(spec->reads, i, word, sizeof word); i++)
        if (*word != '?') out[count++] = lab_cell(s->at, word + (strchr("~!=", *word) != NULL));
    return count;
}

/* ---- places */

typedef struct lab_place_kind {
    const char *name;
    lab_kind kind;
    bool unchecked, shared;
} lab_place_kind;

static const lab_place_kind kinds[] = { { "in memory", LAB_MEMORY, true, false },
                                        { "in memory, mirrored", LAB_MEMORY, false, false },
                                        { "in memory, shared", LAB_MEMORY, true, true },
                                        { "in a file", LAB_SQLITE, true, false } };
static size_t place_now; /* 1-based; 0: before the first */

bool lab_next_place(void) {
    const char *store = getenv("HD_STORE");
    for (;;) {
        if (++place_now > sizeof kinds / sizeof *kinds) return false;
        bool file = kinds[place_now - 1].kind == LAB_SQLITE;
        if (!store || (strcmp(store, "memory") ? file : !file)) return true;
    }
}

const char *lab_place(void) { return kinds[place_now - 1].name; }

/* ---- life */

static void free_spec(lab_spec *spec) {
    free((char *)spec->name);
    free((char *)spec->reads);
    free((char *)spec->output);
}

static void detach(void *what) {
    sched *s = what;
    for (lab_node *n = s->nodes, *next; n; n = next) {
        next = n->next;
        free_spec(&n->spec);
        free(n->seen);
        free(n);
    }
    free(s->ran);
    free(s->told);
    free(s->failures);
    free(s->failures_told);
    free(s->dependents);
    free(s->pulled);
    free(s);
}

static lab *start(lab_options options) {
    lab *l = lab_open_with(options);
    sched *s = calloc(1, sizeof *s);
    if (!s) lab_fail("no memory for a lab");
    s->l = l;
    lab_attach(l, s, detach);
    lab_on(l, "a");
    const hd_env *env = lab_env_of(lab_world(l));
    s->began_ns = env->monotonic_ns(env->ctx);
    return l;
}

lab *lab_start(void) {
    const lab_place_kind *k = &kinds[place_now ? place_now - 1 : 0];
    lab *l = start((lab_options){ .kind = k->kind, .unchecked = k->unchecked });
    if (k->shared) lab_on(l, "bystander");
    lab_on(l, "a");
    return l;
}
bool lab_is_shared(const lab *l) {
    return lab_is_sqlite(l) || (place_now && kinds[place_now - 1].shared);
}
lab *lab_start_with(lab_options options) { return start(options); }
lab *lab_start_late(void) {
    const lab_place_kind *k = &kinds[place_now ? place_now - 1 : 0];
    return start((lab_options){ .kind = LAB_MEMORY, .load_late = true, .unchecked = k->unchecked });
}

#ifndef NDEBUG
static unsigned left_out;

bool lab_leave_out(unsigned what) {
    left_out = what;
    return true;
}
static lab_runtime *opened(lab_runtime *r) {
    scheduler *s = scheduler_of(lab_rt(r));
    s->sabotage = s->graph.sabotage = left_out;
    return r;
}
#else
bool lab_leave_out(unsigned what) { return (void)what, false; }
static lab_runtime *opened(lab_runtime *r) { return r; }
#endif

lab_runtime *lab_on(lab *l, const char *runtime) {
    sched *s = sched_of(l);
    for (lab_runtime *r = lab_first(l); r; r = lab_next(r))
        if (!strcmp(lab_name(r), runtime)) return s->at = r;
    return s->at = opened(lab_runtime_open(l, runtime));
}

hd_runtime *lab_runtime_now(lab *l) { return lab_rt(sched_of(l)->at); }
scheduler *lab_scheduler(lab *l) { return scheduler_of(lab_runtime_now(l)); }

/* ---- bodies */

static hd_value read_as_told(lab_node *n, hd_tx *tx, const char *word) {
    switch (*word) {
    case '~': return hd_tx_get_shape(tx, lab_cell(n->at, word + 1));
    case '?': return hd_tx_read(tx, lab_cell(n->at, word + 1), HD_READ_NO_DEPENDENCY);
    case '!': return hd_tx_read(tx, lab_cell(n->at, word + 1), HD_READ_NO_CLAIM);
    case '=': return hd_tx_read(tx, lab_cell(n->at, word + 1), HD_READ_RAW);
    default: return hd_tx_get(tx, lab_cell(n->at, word));
    }
}

static void note_seen(lab_node *n, hd_pool *pool, hd_value v) {
    const char *text = hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "-";
    append(&n->seen, " ", text ? text : "?");
}

static double number_of(hd_value v) {
    double d = hd_value_number(v);
    return isnan(d) ? 0 : d;
}

static hd_value value_of(hd_pool *pool, double d) {
    return d == floor(d) && fabs(d) < 1e15 && !(d == 0 && signbit(d)) ? hd_int(pool, (int64_t)d)
                                                                      : hd_double(d);
}

static hd_status write_result(lab_node *n, hd_tx *tx, const double *in, size_t count) {
    const char *cell = n->spec.output ? n->spec.output : n->spec.name;
    double result = 0;
    if (n->spec.effect || !strcmp(cell, "-")) return HD_OK;
    if (n->spec.formula) result = n->spec.formula(in);
    else
        for (size_t i = 0; i < count; i++) result += in[i];
    return hd_tx_set(tx, lab_cell(n->at, cell), value_of(hd_tx_pool(tx), result));
}

static hd_status read_and_write(lab_node *n, hd_tx *tx) {
    double in[LIST_MAX] = { 0 };
    char word[128];
    size_t count = 0;
    for (; count < LIST_MAX && word_at(n->spec.reads, count, word, sizeof word); count++) {
        hd_value v = read_as_told(n, tx, word);
        if (hd_value_status(v)) return hd_value_status(v);
        note_seen(n, hd_tx_pool(tx), v);
        in[count] = number_of(v);
    }
    if (n->fail_times) {
        n->fail_times--;
        return n->fail_with;
    }
    return write_result(n, tx, in, count);
}

static hd_status run_body(hd_tx *tx, void *ctx) {
    lab_node *n = ctx;
    append(&sched_of(n->l)->ran, " ", n->spec.name);
    n->runs++;
    free(n->seen);
    n->seen = NULL;
    return n->spec.body ? n->spec.body(n, tx) : read_and_write(n, tx);
}

static void run_sink(hd_value v, void *ctx) {
    lab_node *n = ctx;
    hd_pool *pool;
    append(&sched_of(n->l)->ran, " ", n->spec.name);
    n->runs++;
    free(n->seen);
    n->seen = NULL;
    if (hd_pool_open(hd_runtime_heap(lab_rt(n->at)), &pool)) lab_fail("no memory");
    note_seen(n, pool, v);
    hd_pool_close(pool);
}

double lab_tx_number(lab_node *self, hd_tx *tx, const char *cell) {
    return number_of(hd_tx_get(tx, lab_cell(self->at, cell)));
}

hd_status lab_tx_put(lab_node *self, hd_tx *tx, const char *cell, double value) {
    return hd_tx_set(tx, lab_cell(self->at, cell), value_of(hd_tx_pool(tx), value));
}

/* ---- nodes */

static lab_node *new_node(lab *l, const lab_spec *spec) {
    sched *s = sched_of(l);
    lab_node *n = calloc(1, sizeof *n);
    if (!n) lab_fail("no memory for a node");
    *n = (lab_node){ .l = l, .at = s->at, .spec = *spec, .data = spec->data, .next = s->nodes };
    n->spec.name = copy_of(spec->name);
    n->spec.reads = copy_of(spec->reads);
    n->spec.output = copy_of(spec->output);
    return s->nodes = n;
}

static hd_node node_called(lab *l, const char *name) {
    return name ? lab_find(l, name)->node : (hd_node){ 0, 0 };
}

lab_node *lab_register(lab *l, lab_spec spec) {
    sched *s = sched_of(l);
    hd_cell declares[LIST_MAX], side[LIST_MAX], envelopes[LIST_MAX], ignored[LIST_MAX];
    hd_node again = node_called(l, spec.again), parent = node_called(l, spec.parent);
    lab_node *n = spec.again ? lab_find(l, spec.again) : new_node(l, &spec);
    const char *output = spec.output ? spec.output : spec.name;
    bool has_output = !spec.effect && output && strcmp(output, "-") != 0;
    hd_node_spec full = {
        .name = spec.anonymous ? NULL : spec.name,
        .fn = run_body,
        .ctx = n,
        .effect = spec.effect,
        .output = has_output ? lab_cell(s->at, output) : (hd_cell){ 0 },
        .side_outputs = side,
        .side_output_count = cells_of(s, spec.side_outputs, side),
        .envelopes = envelopes,
        .envelope_count = cells_of(s, spec.envelopes, envelopes),
        .ignored = ignored,
        .ignored_count = cells_of(s, spec.ignored, ignored),
        .reads = declares,
        .read_count = declared_of(s, &spec, declares),
        .again = again,
        .parent = parent,
        .group = spec.group,
        .debounce_ms = spec.debounce_ms,
        .throttle_ms = spec.throttle_ms,
        .no_auto_debounce = spec.no_auto_debounce,
        .version = spec.version,
        .run_once = spec.run_once,
    };
    n->status = hd_node_register(lab_rt(s->at), &full, &n->node);
    return n;
}

lab_node *lab_compute(lab *l, const char *name, const char *reads, lab_formula formula) {
    lab_node *n = lab_add(l, .name = name, .reads = reads, .formula = formula);
    if (n->status) lab_fail("%s is not registered: %s", name, hd_status_name(n->status));
    return n;
}

lab_node *lab_effect(lab *l, const char *name, const char *reads) {
    lab_node *n = lab_add(l, .name = name, .reads = reads, .effect = true);
    if (n->status) lab_fail("%s is not registered: %s", name, hd_status_name(n->status));
    return n;
}

lab_node *lab_sink(lab *l, const char *name, hd_cell cell) {
    lab_node *n = new_node(l, &(lab_spec){ .name = name, .effect = true });
    n->node = hd_sink(lab_rt(n->at), cell, run_sink, n);
    if (!n->node.id) lab_fail("%s is not registered", name);
    return n;
}

lab_node *lab_find(lab *l, const char *name) {
    for (lab_node *n = sched_of(l)->nodes; n; n = n->next)
        if (!strcmp(n->spec.name, name)) return n;
    lab_fail("there is no node %s", name);
    return NULL;
}

void lab_cancel(lab *l, const char *name) {
    lab_node *n = lab_find(l, name);
    hd_node_unregister(lab_rt(n->at), n->node);
}

hd_node_info lab_info(lab *l, const char *name) {
    lab_node *n = lab_find(l, name);
    hd_node_info info;
    hd_node_inspect(lab_rt(n->at), n->node, &info);
    return info;
}

bool lab_is_live(lab *l, const char *name) { return lab_info(l, name).live; }
bool lab_is_clean(lab *l, const char *name) { return lab_info(l, name).status == HD_NODE_CLEAN; }

typedef struct dependents {
    hd_node nodes[LIST_MAX];
    size_t count;
} dependents;

static void note_dependent(hd_node other, void *ctx) {
    dependents *d = ctx;
    if (d->count < LIST_MAX) d->nodes[d->count++] = other;
}

static bool is_among(const dependents *d, hd_node one) {
    for (size_t i = 0; i < d->count; i++)
        if (d->nodes[i].id == one.id && d->nodes[i].generation == one.generation) return true;
    return false;
}

/* Oldest first: the list of nodes is walked from its far end. */
static void list_oldest_first(const lab_node *n, const dependents *d, char **out) {
    if (!n) return;
    list_oldest_first(n->next, d, out);
    if (is_among(d, n->node)) append(out, " ", n->spec.name);
}

const char *lab_dependents(lab *l, const char *name) {
    sched *s = sched_of(l);
    lab_node *n = lab_find(l, name);
    dependents d = { .count = 0 };
    char *text = NULL;
    hd_node_dependents(lab_rt(n->at), n->node, note_dependent, &d);
    list_oldest_first(s->nodes, &d, &text);
    return hand_out(&text, &s->dependents);
}

void lab_fail_next(lab *l, const char *name, hd_status status, uint32_t times) {
    lab_node *n = lab_find(l, name);
    n->fail_with = status;
    n->fail_times = times;
}

/* ---- doing */

void lab_set_json(lab *l, const char *cell, const char *json) {
    lab_write(sched_of(l)->at, cell, json);
}

void lab_set(lab *l, const char *cell, double value) {
    sched *s = sched_of(l);
    hd_status status;
    /* Where documents arrive late, what is written over has to arrive first. */
    while ((status = hd_write(lab_rt(s->at), lab_cell(s->at, cell), value_of(NULL, value))) ==
           HD_PENDING)
        lab_turn(l);
    if (status) lab_fail("set %s: %s", cell, hd_status_name(status));
}

void lab_remove(lab *l, const char *cell) {
    char script[160];
    snprintf(script, sizeof script, "remove %s", cell);
    lab_fate *f = lab_do(sched_of(l)->at, script);
    if (f->begun) lab_fail("remove %s: %s", cell, hd_status_name(f->begun));
}

const char *lab_json(lab *l, const char *cell) { return lab_read_cell(sched_of(l)->at, cell); }
double lab_get(lab *l, const char *cell) { return strtod(lab_json(l, cell), NULL); }

const char *lab_pull(lab *l, const char *cell) {
    sched *s = sched_of(l);
    hd_pool *pool;
    char *text = NULL;
    if (hd_pool_open(hd_runtime_heap(lab_rt(s->at)), &pool)) lab_fail("no memory");
    hd_value v = hd_pull_now(lab_rt(s->at), pool, lab_cell(s->at, cell));
    const char *json = hd_value_exists(v)   ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL)
                       : hd_value_status(v) ? hd_status_name(hd_value_status(v))
                                            : "-";
    append(&text, "", json);
    hd_pool_close(pool);
    return hand_out(&text, &s->pulled);
}

void lab_idle(lab *l) {
    hd_status status = hd_runtime_settle(lab_runtime_now(l));
    if (status && status != HD_UNSETTLED) lab_fail("settle: %s", hd_status_name(status));
}

void lab_turn(lab *l) { hd_runtime_pump(lab_runtime_now(l)); }

void lab_prepare_fold(lab *l) {
    lab_on(l, "b");
    lab_set(l, "n", 1);
    lab_set(l, "m", 1);
    lab_settle(l);
    lab_on(l, "a");
    lab_advance_ms(l, 100);
    lab_settle(l);
    if (lab_get(l, "n") != 1) lab_fail("n is not known");
}

void lab_fold_elsewhere(lab *l) {
    lab_runtime *b = lab_on(l, "b");
    lab_do(b, "set n 2; set m 2");
    lab_pump(b);
    hd_status status = hd_store_checkpoint(lab_rt(b), NULL);
    if (status) lab_fail("checkpoint: %s", hd_status_name(status));
    lab_on(l, "a");
}

void lab_advance_ms(lab *l, uint64_t ms) {
    lab_env_advance_ms(lab_world(l), ms);
    for (lab_runtime *r = lab_first(l); r; r = lab_next(r)) lab_look(r);
}

uint64_t lab_now_ms(lab *l) {
    const hd_env *env = lab_env_of(lab_world(l));
    return (env->monotonic_ns(env->ctx) - sched_of(l)->began_ns) / 1000000;
}

/* ---- looking */

const char *lab_ran(lab *l) {
    sched *s = sched_of(l);
    return hand_out(&s->ran, &s->told);
}

void lab_note(lab *l, const char *name) { append(&sched_of(l)->ran, " ", name); }

const char *lab_running(hd_runtime *rt) {
    const scheduler *s = scheduler_of(rt);
    size_t length;
    if (!s->running || !s->persistence || !kept_has_name(kept_of(s, s->running))) return NULL;
    return kept_name(kept_of(s, s->running), &length);
}

const char *lab_seen(lab *l, const char *name) {
    const lab_node *n = lab_find(l, name);
    return n->seen ? n->seen : "";
}

hd_scheduler_stats lab_stats(lab *l) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(lab_runtime_now(l), &stats);
    return stats;
}

static void collect_failure(const hd_failure *f, void *ctx) {
    sched *s = ctx;
    char text[160];
    snprintf(text, sizeof text, "%s %s", f->action, hd_status_name(f->status));
    append(&s->failures, "; ", text);
}

void lab_catch(lab *l) {
    if (hd_runtime_on_error(lab_runtime_now(l), collect_failure, sched_of(l)))
        lab_fail("no memory for a handler");
}

const char *lab_failures(lab *l) {
    sched *s = sched_of(l);
    return hand_out(&s->failures, &s->failures_told);
}

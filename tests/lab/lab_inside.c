/* lab_inside.c -- see lab_inside.h. */
#define _GNU_SOURCE
#include "value/schema.h" /* first: it has parameters that are named like types of the others */

#include "lab_inside.h"
#include "schema_collect.h"

#include "lab_line.h"
#include "scheduler/events/events.h"
#include "scheduler/events/state.h"
#include "scheduler/gates/gates.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include "scheduler/settle/settle.h"
#include "store/overlay.h"
#include "value/key.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Steps */

void lab_pass(lab *l) { settle_pass(lab_scheduler(l)); }
void lab_event_step(lab *l) { events_head_step(lab_scheduler(l)); }

void lab_seal(lab *l) {
    hd_status status = runtime_seal(lab_runtime_now(l), true);
    if (status) lab_fail("the seal failed: %s", hd_status_name(status));
}

void lab_time_every_run(lab *l) { lab_runtime_now(l)->options.timing_period = 1; }

uint64_t lab_wakes_at(lab *l) {
    scheduler *s = lab_scheduler(l);
    return s->tick ? 0 : gates_next(s);
}

/* ---- Nodes */

static const node *node_named(lab *l, const char *name) {
    return node_of(lab_scheduler(l), lab_find(l, name)->node.id);
}

static void print_cell(lab *l, place_id at, const char *mark, char *text, size_t size) {
    char cell[64];
    size_t used = strlen(text);
    hd_cell_print(lab_runtime_now(l), (hd_cell){ at }, cell, sizeof cell);
    snprintf(text + used, size - used, "%s%s%s", used ? " " : "", mark,
             strncmp(cell, "main/", 5) ? cell : cell + 5);
}

const char *lab_reads(lab *l, const char *name) {
    static char text[512];
    const node *n = node_named(l, name);
    text[0] = 0;
    for (uint32_t i = 0; i < n->read_count; i++) {
        uint32_t key = node_reads_const(n)[i].key;
        print_cell(l, key & KEY_PLACE, key & KEY_SHAPE ? "~" : "", text, sizeof text);
    }
    return text;
}

const char *lab_surface(lab *l, const char *name) {
    static char text[256];
    const graph *g = &lab_scheduler(l)->graph;
    text[0] = 0;
    for (uint32_t i = 0, out; (out = graph_output(g, lab_find(l, name)->node.id, i)) != 0; i++)
        print_cell(l, out & ~WRITER_ENVELOPE, out & WRITER_ENVELOPE ? "^" : "", text, sizeof text);
    return text;
}

typedef struct writable {
    const char *document;
    char text[256];
} writable;

static bool add_writable(void *ctx, const schema_step *path, size_t depth, const schema_node *n) {
    writable *w = ctx;
    char *at = w->text + strlen(w->text), *end = w->text + sizeof w->text;
    (void)n;
    at += snprintf(at, (size_t)(end - at), "%s%s#", at == w->text ? "" : " ", w->document);
    for (size_t i = 0; i < depth; i++) {
        if (path[i].kind == SCHEMA_STEP_KEY)
            at += snprintf(at, (size_t)(end - at), "/%s", path[i].key);
        else if (path[i].kind == SCHEMA_STEP_INDEX)
            at += snprintf(at, (size_t)(end - at), "/%zu", path[i].index);
        else break;
    }
    return true;
}

const char *lab_writable(lab *l, const char *document, const char *json) {
    static writable w;
    hd_heap *heap = hd_runtime_heap(lab_runtime_now(l));
    hd_pool *pool = NULL;
    hd_schema *schema = NULL;
    w = (writable){ .document = document };
    hd_status status = hd_pool_open(heap, &pool);
    if (!status)
        status =
            hd_schema_compile(heap, hd_json_parse(pool, json, strlen(json), NULL), &schema, NULL);
    if (!status) status = schema_collect_cells(schema, add_writable, &w);
    if (status) lab_fail("the schema: %s", hd_status_name(status));
    hd_schema_close(schema);
    hd_pool_close(pool);
    return w.text;
}

lab_tries lab_tries_of(lab *l, const char *name) {
    const cold *c = cold_of(lab_scheduler(l), node_named(l, name));
    return (lab_tries){ c ? c->transient : 0, c ? c->stale : 0 };
}

void lab_pretend_runs(lab *l, const char *name, uint32_t runs) {
    node_of(lab_scheduler(l), lab_find(l, name)->node.id)->runs = runs;
}

lab_records lab_records_of(lab *l) {
    const scheduler *s = lab_scheduler(l);
    return (lab_records){ s->graph.node_count, s->graph.kin.count, s->backed.count };
}

/* ---- Documents */

static uint32_t entries_at(const place *p) {
    if (!p->watch) return 0;
    return watch_is_inline(p->watch) ? 1 : watch_list(p->watch)->count;
}

static place *place_named(lab *l, const char *cell) {
    const hd_schema *schema;
    hd_runtime *rt = lab_runtime_now(l);
    return place_at(&rt->r.places, runtime_place(rt, hd_cell_at(rt, cell), &schema));
}

uint32_t lab_readers(lab *l, const char *cell) { return entries_at(place_named(l, cell)); }

uint32_t lab_readers_in(lab *l, const char *space) {
    const places *ps = &lab_runtime_now(l)->r.places;
    uint32_t count = 0;
    for (place_id at = 1; at < ps->count; at++) {
        if (!ps->at[at].watch) continue;
        const doc_home *home = &ps->homes.items[ps->at[ps->at[at].root].doc.home];
        if (!strcmp(key_bytes(home->space), space)) count += entries_at(&ps->at[at]);
    }
    return count;
}

bool lab_knows(lab *l, const char *cell) { return place_named(l, cell)->doc.flags & DOC_KNOWN; }

uint32_t lab_known(const hd_runtime *rt) {
    const places *ps = &rt->r.places;
    uint32_t count = 0;
    for (place_id id = 1; id < ps->count; id++)
        count += ps->at[id].root == id && (ps->at[id].doc.flags & DOC_KNOWN);
    return count;
}

uint32_t lab_awaited_references(lab *l) {
    const event *e = lanes_oldest(lab_scheduler(l)->events);
    if (!e || !e->missing) lab_fail("no event waits for a document");
    return place_at(&lab_runtime_now(l)->r.places, e->missing)->doc.refs;
}

hd_status lab_fail_load(lab_runtime *r, const char *cell, hd_status why) {
    return replica_arrived(lab_replica(r), lab_cell(r, cell).id, NULL, why);
}

/* ---- Commits */

bool lab_refuse(lab_runtime *of, hd_status status) {
    replica *r = lab_replica(of);
    if (list_empty(&r->pending)) return false;
    r->polling = true; /* as the authority does it */
    hd_status refused =
        replica_reject(r, LIST_ENTRY(list_first(&r->pending), commit, link), status);
    r->polling = false;
    return refused == HD_OK;
}

static const commit *newest(lab *l) {
    const replica *r = lab_replica(lab_first(l));
    const list *from = list_empty(&r->queued) ? &r->pending : &r->queued;
    if (list_empty(from)) lab_fail("every commit has its verdict");
    return LIST_ENTRY(list_last(from), commit, link);
}

size_t lab_commit_causes(lab *l) { return newest(l)->causes.count; }

const char *lab_commit_authors(lab *l) {
    static char text[512];
    const commit *c = newest(l);
    text[0] = 0;
    for (uint32_t i = 0; i < c->writes.count; i++) {
        const doc_write *w = &c->writes.items[i];
        char causes[256] = "";
        size_t used = strlen(text);
        for (uint32_t k = 0; k < w->cause_count; k++)
            print_cell(l, c->causes.items[w->first_cause + k], "", causes, sizeof causes);
        snprintf(text + used, sizeof text - used, "%s%s: %s", used ? "; " : "",
                 w->by ? key_bytes(w->by) : "", causes);
    }
    return text;
}

uint64_t lab_seq(lab *l, const char *space) {
    hd_runtime *rt = lab_runtime_now(l);
    authority *a = rt->r.authority;
    uint64_t seq = 0;
    struct key *k = key_intern(rt->heap, space, strlen(space));
    hd_status status = k ? a->ops->seq_of(a, k, &seq) : HD_NOMEM;
    if (k) key_unref(k);
    if (status) lab_fail("no sequence number: %s", hd_status_name(status));
    return seq;
}

/* ---- Rows */

typedef struct rows_told {
    lab_row *items;
    size_t count;
} rows_told;

static const char *cells_of(const char *reads) {
    char text[1024] = "";
    const char *cell;
    size_t length;
    read_cell read;
    while (reads_next(&reads, &cell, &length)) {
        size_t used = strlen(text);
        if (!reads_split(cell, length, &read)) lab_fail("a read is malformed: %s", cell);
        snprintf(text + used, sizeof text - used, "%s%s%.*s", used ? " " : "",
                 read.output ? "=" : "", (int)read.id_length, read.id);
    }
    return strdup(text);
}

static bool take_row(void *ctx, const memo *row) {
    rows_told *told = ctx;
    told->items = realloc(told->items, (told->count + 1) * sizeof *told->items);
    told->items[told->count++] =
        (lab_row){ strdup(row->text[ROW_NAME]),  strdup(row->text[ROW_INSTANCE]),
                   strdup(row->text[ROW_PRINT]), strdup(row->text[ROW_FLAGS]),
                   strdup(row->text[ROW_READS]), cells_of(row->text[ROW_READS]) };
    return true;
}

static int by_name(const void *a, const void *b) {
    const lab_row *x = a, *y = b;
    int differs = strcmp(x->name, y->name);
    return differs ? differs : strcmp(x->instance, y->instance);
}

static void free_text(const char *text) { free((void *)(uintptr_t)text); }

static void free_row(lab_row *row) {
    free_text(row->name), free_text(row->instance), free_text(row->print);
    free_text(row->flags), free_text(row->reads), free_text(row->cells);
}

void lab_each_row(lab *l, const char *piece, void (*fn)(const lab_row *row, void *ctx), void *ctx) {
    authority *a = lab_runtime_now(l)->r.authority;
    rows_told told = { 0 };
    hd_status status = a->ops->memos(a, piece, take_row, &told);
    if (status) lab_fail("no rows: %s", hd_status_name(status));
    if (told.count) qsort(told.items, told.count, sizeof *told.items, by_name);
    for (size_t i = 0; i < told.count; i++) fn(&told.items[i], ctx);
    for (size_t i = 0; i < told.count; i++) free_row(&told.items[i]);
    free(told.items);
}

/* ---- Questions about rows */

static authority_ops answering; /* the functions that the watching ones call */
static unsigned row_faults;
static lab_questions questions;

typedef struct passing_on {
    memo_fn fn;
    void *ctx;
    int left;
} passing_on;

static bool pass_on(void *ctx, const memo *row) {
    passing_on *p = ctx;
    return p->left-- > 0 && p->fn(p->ctx, row);
}

static hd_status watched_rows(authority *a, const char *piece, memo_fn fn, void *ctx) {
    questions.rows++;
    if (row_faults & LAB_ROWS_FAIL) return HD_IO;
    if (!(row_faults & LAB_ROWS_END_EARLY)) return answering.memos(a, piece, fn, ctx);
    passing_on some = { fn, ctx, 2 };
    hd_status status = answering.memos(a, piece, pass_on, &some);
    return status ? status : HD_IO;
}

static hd_status watched_changes(authority *a, struct key *space, uint64_t seq, change_fn fn,
                                 void *ctx) {
    questions.changes++;
    return row_faults & LAB_CHANGES_FAIL ? HD_IO : answering.changes(a, space, seq, fn, ctx);
}

void lab_watch_rows(lab_runtime *r, unsigned faults) {
    lab_line *line = lab_line_of(r);
    if (line->ops.memos != watched_rows) answering = line->ops;
    line->ops.memos = watched_rows;
    line->ops.changes = watched_changes;
    row_faults = faults;
    questions = (lab_questions){ 0, 0 };
}

lab_questions lab_rows_asked(void) { return questions; }

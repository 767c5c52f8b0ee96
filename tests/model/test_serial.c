/* test_serial.c -- is there one order in which it all happened? Links that come, move and go.
 *
 * Several runtimes on one store run small random programs: reads and writes in any order, over
 * documents that are full of links, with writes that change nothing and writes that nothing was read
 * for. They send and hear when they please, lose the line and get it back; documents arrive late in
 * some worlds. Sinks look at random places.
 *
 * The witness is the order in which the store decided. Each accepted program is run again, alone, on
 * a naive store (whole values; links followed one segment at a time), in that order:
 *
 *     reads      see what they saw; the links that a write went through are those that are there
 *     writes     all of them, those that changed nothing included, add up to what every runtime shows
 *     sinks      were told last what is there now
 *
 * A program that was not submitted because it changed nothing must do the same at the state that its
 * runtime had heard of. A write that does not fit what is there when it is admitted is skipped (S9). One that did not
 * fit when it was made fails its program, also if that goes on; in a patch it is tried, and must not fit in the
 * replay either (C374, C375). */
#define _DEFAULT_SOURCE
#include "lab_line.h"
#include "lab_store.h"
#include <heddle/scheduler.h>

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RUNTIMES = 4, DOCS = 4, STEPS = 80, STEPS_MAX = 5, RUNS_MAX = STEPS + 1, SINKS = 3 };
enum { MEMORY_WORLDS = 1500, LATE_WORLDS = 500, FILE_WORLDS = 25 };

typedef enum verb { GET, SHAPE, SET, REMOVE, APPEND, INCREMENT } verb;
static const char *const verbs[] = { "get", "shape", "set", "remove", "append", "increment" };

enum { HOPS_MAX = DOCS };

/* An address after its links have been followed. */
typedef struct address {
    int doc;
    char path[96];
    int hops;
    struct {
        int doc;
        char path[96], link[96]; /* where it stands, and the link as JSON */
    } hop[HOPS_MAX];
} address;

typedef struct program_step {
    verb verb;
    int doc;
    char path[32];
    char json[96]; /* what a write writes */
    char *seen;    /* what a read saw */
    address went;  /* where a write went, before the last segment is followed */
    bool element;  /* ... which was in an array */
    bool misfit;   /* it was tried, and did not fit */
} program_step;

/* One transaction of one runtime. */
typedef struct program {
    lab_runtime *runtime;
    program_step steps[STEPS_MAX];
    int count;
    uint64_t local_seq; /* 0: not submitted */
    hd_status status;   /* HD_PENDING: no verdict yet */
    size_t heard;
    bool upon_pending; /* commits of its runtime had no verdict when it began */
    bool elides;       /* not submitted, though it writes */
} program;

typedef struct sink_told {
    lab_runtime *runtime;
    int doc;
    char path[32];
    char *last; /* NULL: never told */
    hd_node node;
} sink_told;

static lab *l;
static lab_random rnd;
static lab_runtime *all[RUNTIMES];
static program programs[RUNS_MAX];
static int program_count;
static sink_told sinks[RUNTIMES * SINKS];
static hd_pool *pool;
static hd_heap *heap;
static uint64_t accepted, refused, elided, skipped, followed, misfits, careless;

static uint64_t below(uint64_t n) { return lab_random_below(&rnd, n); }
static bool once_in(uint64_t n) { return lab_random_once_in(&rnd, n); }

static const char *print(hd_value v) {
    if (hd_value_status(v)) return hd_status_name(hd_value_status(v));
    if (!hd_value_exists(v)) return "-";
    const char *text = hd_json_print(pool, v, HD_JSON_COMPACT, NULL);
    return text ? text : "?";
}

static hd_value parse(const char *json) { return hd_json_parse(pool, json, strlen(json), NULL); }

static hd_path path_of(const char *text) {
    hd_path path;
    if (hd_path_intern(heap, text, &path, NULL)) lab_fail("no path %s", text);
    return path;
}

static hd_cell cell_of(lab_runtime *r, int doc, const char *path) {
    char name[64];
    snprintf(name, sizeof name, "d%d%s%s", doc, *path ? "#" : "", path);
    return lab_cell(r, name);
}

/* ---- the naive way through links */

typedef hd_value (*look_fn)(void *ctx, int doc);

static hd_value child_of(hd_value v, const char *segment) {
    char pointer[40];
    snprintf(pointer, sizeof pointer, "/%s", segment);
    return hd_value_get(heap, v, path_of(pointer));
}

/* Where the address leads; a link at its very end is followed if asked. A link leads on from its
 * target with what is left of the way. */
static address resolve(look_fn look, void *ctx, int doc, const char *path, bool last_too) {
    address a = { .doc = doc };
    char rest[96];
    snprintf(rest, sizeof rest, "%s", path);
    hd_value v = look(ctx, doc);
    for (;;) {
        hd_link link;
        bool end = !*rest;
        if (hd_value_link(v, &link) && (!end || last_too)) {
            char further[96];
            snprintf(further, sizeof further, "%s%s", link.path ? link.path : "", rest);
            a.hop[a.hops].doc = a.doc;
            snprintf(a.hop[a.hops].path, sizeof a.hop->path, "%s", a.path);
            snprintf(a.hop[a.hops++].link, sizeof a.hop->link, "%s", print(v));
            a.doc = link.id[1] - '0';
            a.path[0] = 0;
            snprintf(rest, sizeof rest, "%s", further);
            v = look(ctx, a.doc);
            continue;
        }
        if (end) return a;
        size_t n = 1 + strcspn(rest + 1, "/");
        char segment[32];
        snprintf(segment, sizeof segment, "%.*s", (int)n - 1, rest + 1);
        size_t at = strlen(a.path);
        snprintf(a.path + at, sizeof a.path - at, "/%s", segment);
        memmove(rest, rest + n, strlen(rest + n) + 1);
        v = hd_value_status(v) ? v : child_of(v, segment);
    }
}

/* ---- programs */

static const char *random_path(void) {
    static const char *const paths[] = { "",       "/a",   "/a",     "/l",   "/l/a",
                                         "/l/a/b", "/a/b", "/a/b/a", "/l/0", "/l/b" };
    return paths[below(sizeof paths / sizeof *paths)];
}

/* For a write that goes to `doc`. Links lead to later documents only: there are no cycles. */
static void random_json(int doc, char *out, size_t size) {
    static const char *const values[] = { "1",
                                          "1",
                                          "2",
                                          "null",
                                          "{}",
                                          "{\"a\":1}",
                                          "{\"a\":{}}",
                                          "[1]",
                                          "{\"l\":{}}",
                                          "[{\"a\":2}]",
                                          "{\"b\":1}",
                                          "{\"a\":{\"b\":1}}",
                                          "{\"l\":{\"a\":1},\"a\":1}" };
    if (doc == DOCS - 1 || once_in(2)) {
        snprintf(out, size, "%s", values[below(sizeof values / sizeof *values)]);
        return;
    }
    int to = doc + 1 + (int)below((uint64_t)(DOCS - 1 - doc));
    const char *form = once_in(5) ? "{\"l\":{\"$link\":{\"id\":\"d%d\",\"path\":\"%s\"}}}"
                                  : "{\"$link\":{\"id\":\"d%d\",\"path\":\"%s\"}}";
    const char *path = random_path();
    snprintf(out, size, form, to, strlen(path) > 4 ? "" : path);
}

static program_step random_step(void) {
    static const verb kinds[] = { GET, GET, GET, SHAPE,  SET,    SET,
                                  SET, SET, SET, REMOVE, APPEND, INCREMENT };
    program_step s = { .verb = kinds[below(sizeof kinds / sizeof *kinds)],
                       .doc = (int)below(DOCS) };
    snprintf(s.path, sizeof s.path, "%s", random_path());
    return s;
}

typedef struct in_tx {
    lab_runtime *r;
    hd_tx *tx;
} in_tx;

static hd_value look_in_tx(void *ctx, int doc) {
    in_tx *t = ctx;
    hd_value v = hd_tx_read(t->tx, cell_of(t->r, doc, ""),
                            HD_READ_RAW | HD_READ_NO_CLAIM | HD_READ_NO_DEPENDENCY);
    return hd_value_exists(v) ? parse(print(v)) : v; /* each runtime has a heap of its own */
}

static hd_status read_in_tx(in_tx *t, program_step *s) {
    hd_cell cell = cell_of(t->r, s->doc, s->path);
    hd_value v = s->verb == GET ? hd_tx_get(t->tx, cell) : hd_tx_get_shape(t->tx, cell);
    if (hd_value_status(v)) return hd_value_status(v);
    s->seen = strdup(print(v));
    return HD_OK;
}

static hd_value parent_of(hd_value v, const address *a) {
    const char *last = strrchr(a->path, '/');
    char parent[96];
    snprintf(parent, sizeof parent, "%.*s", last ? (int)(last - a->path) : 0, a->path);
    return last ? hd_value_get(heap, v, path_of(parent)) : (hd_value){ 0 };
}

static hd_status write_once(in_tx *t, const program_step *s, hd_cell cell, hd_value v) {
    switch (s->verb) {
    case SET: return hd_tx_set(t->tx, cell, v);
    case REMOVE: return hd_tx_remove(t->tx, cell);
    case APPEND: return hd_tx_append(t->tx, cell, v);
    default: return hd_tx_increment(t->tx, cell, v);
    }
}

/* The same as a patch. If it does not fit, the program goes on without it. */
static hd_status try_once(in_tx *t, program_step *s, hd_cell cell, hd_value v) {
    hd_pool *own = hd_tx_pool(t->tx);
    hd_value entry = hd_object_set(own, hd_object(), "op", hd_string(own, verbs[s->verb]));
    entry = hd_object_set(own, entry, "path", hd_string(own, ""));
    entry = hd_object_set(own, entry, "value", v);
    hd_status status = hd_tx_patch(t->tx, cell, hd_array_of(own, &entry, 1), NULL);
    s->misfit = status == HD_KIND || status == HD_RANGE;
    misfits += s->misfit;
    return s->misfit ? HD_OK : status;
}

static hd_status write_in_tx(in_tx *t, program_step *s) {
    hd_cell cell = cell_of(t->r, s->doc, s->path);
    s->went = resolve(look_in_tx, t, s->doc, s->path, false);
    s->element = hd_value_kind(parent_of(look_in_tx(t, s->went.doc), &s->went)) == HD_KIND_ARRAY;
    if (s->verb == INCREMENT) snprintf(s->json, sizeof s->json, "%d", (int)below(2));
    else random_json(s->went.doc, s->json, sizeof s->json);
    hd_value v = hd_json_parse(hd_tx_pool(t->tx), s->json, strlen(s->json), NULL);
    return once_in(3) ? try_once(t, s, cell, v) : write_once(t, s, cell, v);
}

static void tell_verdict(hd_status status, void *ctx) {
    program *p = ctx;
    if (p->status != HD_PENDING) lab_fail("a verdict was told twice");
    p->status = status;
}

static void free_steps(program *p) {
    for (int i = 0; i < p->count; i++) free(p->steps[i].seen);
}

static bool writes(const program *p) {
    for (int i = 0; i < p->count; i++)
        if (p->steps[i].verb > SHAPE) return true;
    return false;
}

/* The program does not look at the failure of its last step. */
static void go_on(in_tx *t, const program *p, hd_status failed) {
    const program_step *last = &p->steps[p->count - 1];
    careless++;
    hd_status status = hd_tx_set(t->tx, cell_of(t->r, (int)below(DOCS), "/a"), hd_int(NULL, 77));
    if (status != failed && last->verb > SHAPE)
        lab_fail("a write after one that failed: %s", hd_status_name(status));
    status = hd_tx_commit(t->tx, NULL, NULL);
    if (status != failed) lab_fail("a commit of what had failed: %s", hd_status_name(status));
}

/* A program of which a step fails is not committed and leaves nothing. */
static void run_program(lab_runtime *r) {
    hd_runtime *rt = lab_rt(r);
    program *p = &programs[program_count];
    *p = (program){ .runtime = r, .status = HD_PENDING, .heard = lab_line_of(r)->heard };
    p->upon_pending = lab_replica(r)->pending_count > 0;
    in_tx t = { r, NULL };
    hd_status status = hd_tx_begin(rt, &t.tx);
    if (status) lab_fail("begin: %s", hd_status_name(status));
    uint64_t next = lab_replica(r)->next_local;
    for (uint64_t n = 1 + below(STEPS_MAX); n > 0 && !status; n--) {
        program_step *s = &p->steps[p->count++];
        *s = random_step();
        status = s->verb <= SHAPE ? read_in_tx(&t, s) : write_in_tx(&t, s);
    }
    if (status && once_in(2)) go_on(&t, p, status);
    else if (status) hd_tx_abort(t.tx);
    else status = hd_tx_commit(t.tx, tell_verdict, p);
    if (lab_replica(r)->next_local > next) p->local_seq = next;
    if (status) free_steps(p);
    else program_count++;
    p->elides = !status && !p->local_seq && writes(p);
    elided += p->elides;
    lab_check(r);
}

/* ---- sinks */

static void tell_sink(hd_value v, void *ctx) {
    sink_told *k = ctx;
    free(k->last);
    k->last = strdup(print(v));
}

static void open_sinks(void) {
    for (int i = 0; i < RUNTIMES * SINKS; i++) {
        sink_told *k = &sinks[i];
        *k = (sink_told){ .runtime = all[i / SINKS], .doc = (int)below(DOCS) };
        snprintf(k->path, sizeof k->path, "%s", random_path());
        k->node = hd_sink(lab_rt(k->runtime), cell_of(k->runtime, k->doc, k->path), tell_sink, k);
    }
}

static void close_sinks(void) {
    for (int i = 0; i < RUNTIMES * SINKS; i++) {
        hd_node_unregister(lab_rt(sinks[i].runtime), sinks[i].node);
        free(sinks[i].last);
    }
}

/* ---- the naive store */

typedef struct naive {
    hd_value docs[DOCS];
} naive;

static hd_value look_in_naive(void *ctx, int doc) { return ((naive *)ctx)->docs[doc]; }

static hd_value read_naive(naive *n, int doc, const char *path) {
    address a = resolve(look_in_naive, n, doc, path, true);
    return hd_value_get(heap, n->docs[a.doc], path_of(a.path));
}

/* The key of an object is not removed where an array is by then: that would move its elements. */
static hd_value removed(hd_value v, const program_step *s) {
    const address *a = &s->went;
    const char *last = strrchr(a->path, '/');
    if (!last) return (hd_value){ 0 };
    hd_value around = parent_of(v, a);
    bool array = hd_value_kind(around) == HD_KIND_ARRAY;
    if (array != s->element) return hd_failed(HD_KIND);
    if (!array) return hd_value_remove(pool, v, path_of(a->path));
    size_t index = strtoull(last + 1, NULL, 10);
    if (last[1] < '0' || last[1] > '9' || index >= hd_value_count(around)) return v;
    char parent[96];
    snprintf(parent, sizeof parent, "%.*s", (int)(last - a->path), a->path);
    return hd_value_set(pool, v, path_of(parent), hd_array_remove(pool, around, index));
}

static hd_value incremented(hd_value v, const address *a, const char *by) {
    hd_value there = hd_value_get(heap, v, path_of(a->path));
    if (hd_value_exists(there) && hd_value_kind(there) != HD_KIND_INT) return hd_failed(HD_KIND);
    int64_t sum = hd_value_as_int(there, 0) + strtoll(by, NULL, 10);
    return hd_value_set(pool, v, path_of(a->path), hd_int(pool, sum));
}

/* False: it does not fit. */
static bool write_naive(naive *n, const program_step *s) {
    const address *a = &s->went;
    hd_value v = n->docs[a->doc], next = v;
    switch (s->verb) {
    case SET: next = hd_value_set(pool, v, path_of(a->path), parse(s->json)); break;
    case REMOVE: next = removed(v, s); break;
    case APPEND: next = hd_value_append(pool, v, path_of(a->path), parse(s->json)); break;
    default: next = incremented(v, a, s->json); break;
    }
    bool fits = !hd_value_status(next);
    if (fits) n->docs[a->doc] = next;
    return fits;
}

static void print_program(const program *p) {
    fprintf(stderr, "  %s %s%s:", lab_name(p->runtime), hd_status_name(p->status),
            p->local_seq ? "" : " (not submitted)");
    for (int i = 0; i < p->count; i++) {
        const program_step *s = &p->steps[i];
        fprintf(stderr, " %s%s d%d%s %s;", s->misfit ? "in vain: " : "", verbs[s->verb], s->doc,
                s->path,
                s->verb <= SHAPE    ? s->seen
                : s->verb == REMOVE ? ""
                                    : s->json);
    }
    fprintf(stderr, "\n");
}

static program *program_of(const lab_arrival *arrival) {
    for (int i = 0; i < program_count; i++)
        if (lab_rt(programs[i].runtime) == arrival->rt &&
            programs[i].local_seq == arrival->local_seq)
            return &programs[i];
    lab_fail("a commit that is no program's");
    return NULL;
}

static void print_history(void) {
    const lab_arrivals *arrivals = lab_arrivals_of(l);
    fprintf(stderr, "the history, in the order of the store:\n");
    for (size_t i = 0; i < arrivals->count; i++) {
        const lab_arrival *a = &arrivals->items[i];
        fprintf(stderr, "%zu. (heard %zu)", i, program_of(a)->heard);
        print_program(program_of(a));
        for (size_t k = 0; k < a->op_count; k++)
            fprintf(stderr, "        operation %d %s%s %s\n", (int)a->ops[k].kind,
                    a->ops[k].document, a->ops[k].path, a->ops[k].json);
    }
}

static void object_to(const program *p, const program_step *s, const char *what) {
    print_history();
    fprintf(stderr, "objection to:\n");
    print_program(p);
    lab_fail("%s d%d%s %s", verbs[s->verb], s->doc, s->path, what);
}

static void replay_step(naive *n, const program *p, const program_step *s) {
    if (s->verb <= SHAPE) {
        hd_value now = read_naive(n, s->doc, s->path);
        bool absent = !strcmp(s->seen, "-");
        hd_value seen = absent ? (hd_value){ 0 } : parse(s->seen);
        bool same = s->verb == GET ? hd_value_equal(now, seen) : hd_value_same_shape(now, seen);
        if (!same) object_to(p, s, "saw what no order of all programs shows there");
        return;
    }
    for (int i = 0; i < s->went.hops; i++, followed++) {
        hd_value there =
            hd_value_get(heap, n->docs[s->went.hop[i].doc], path_of(s->went.hop[i].path));
        if (strcmp(print(there), s->went.hop[i].link))
            object_to(p, s, "went through a link that is another one");
    }
    bool fits = write_naive(n, s);
    if (fits && s->misfit) object_to(p, s, "fits, and was tried in vain");
    skipped += !fits && !s->misfit;
}

static void replay(naive *n, const program *p) {
    for (int i = 0; i < p->count; i++) replay_step(n, p, &p->steps[i]);
}

/* At the state its runtime had heard of it must do what it did: nothing. In a file runtimes hear of
 * each other later than the line knows. */
static void check_elided(const naive *n, size_t heard) {
    for (int i = 0; i < program_count; i++) {
        const program *p = &programs[i];
        if (!p->elides || p->upon_pending || p->heard != heard || lab_is_sqlite(l)) continue;
        naive copy = *n;
        replay(&copy, p);
        for (int d = 0; d < DOCS; d++)
            if (!hd_value_equal(copy.docs[d], n->docs[d]))
                object_to(p, &p->steps[p->count - 1], "would have changed something");
    }
}

static void check_documents(const naive *n, lab_runtime *r) {
    in_tx t = { r, NULL };
    if (hd_tx_begin_read(lab_rt(r), &t.tx)) lab_fail("no transaction");
    for (int d = 0; d < DOCS; d++) {
        const char *there = print(look_in_tx(&t, d)), *due = print(n->docs[d]);
        if (!strcmp(there, due) || !strcmp(there, "HD_PENDING")) continue;
        print_history();
        lab_fail("%s shows d%d = %s and not %s", lab_name(r), d, there, due);
    }
    hd_tx_abort(t.tx);
}

static void check_sink(naive *n, const sink_told *k) {
    const char *due = print(read_naive(n, k->doc, k->path));
    if (k->last && !strcmp(k->last, due)) return;
    print_history();
    lab_fail("%s: the sink on d%d%s was told %s last, and not %s", lab_name(k->runtime), k->doc,
             k->path, k->last ? k->last : "nothing", due);
}

static void check_end(naive *n) {
    for (int i = 0; i < RUNTIMES; i++) check_documents(n, all[i]);
    for (int i = 0; i < RUNTIMES * SINKS; i++) check_sink(n, &sinks[i]);
}

static void judge(void) {
    naive n = { 0 };
    const lab_arrivals *arrivals = lab_arrivals_of(l);
    for (size_t i = 0; i < arrivals->count; i++) {
        check_elided(&n, i);
        const program *p = program_of(&arrivals->items[i]);
        if (p->status == HD_PENDING) object_to(p, p->steps, "has no verdict");
        if (p->status && hd_status_class(p->status) != HD_CLASS_STALE)
            object_to(p, p->steps, "was refused for no reason that there is here");
        accepted += p->status == HD_OK;
        refused += p->status != HD_OK;
        if (!p->status) replay(&n, p);
    }
    check_elided(&n, arrivals->count);
    check_end(&n);
}

/* ---- worlds */

static void step(lab_runtime *r, bool *cut) {
    switch (below(9)) {
    case 0: lab_send(r); break;
    case 1: lab_hear(r); break;
    case 2:
    case 3: lab_pump(r); break;
    case 4:
        if (!once_in(3)) break;
        if (*cut) lab_mend(r);
        else lab_cut(r);
        *cut = !*cut;
        break;
    default:
        if (program_count < RUNS_MAX) run_program(r);
    }
}

static void live(lab_options options) {
    bool cut[RUNTIMES] = { false };
    l = lab_open_with(options);
    program_count = 0;
    for (int i = 0; i < RUNTIMES; i++) all[i] = lab_runtime_open(l, (char[]){ (char)('a' + i), 0 });
    heap = hd_runtime_heap(lab_rt(all[0]));
    if (hd_pool_open(heap, &pool)) lab_fail("no memory");
    open_sinks();
    for (int i = 0; i < STEPS; i++) {
        uint64_t who = below(RUNTIMES);
        step(all[who], &cut[who]);
    }
    for (int i = 0; i < RUNTIMES; i++) lab_mend(all[i]);
    lab_settle(l);
    lab_env_advance_ms(lab_world(l), 3000); /* files are looked into again, backoffs end */
    lab_settle(l);
    judge();
    for (int i = 0; i < program_count; i++) free_steps(&programs[i]);
    close_sinks();
    hd_pool_close(pool);
    lab_close(l);
}

/* HD_WORLDS: so many in memory, and the others in proportion. */
static int worlds(int usual) {
    const char *times = getenv("HD_WORLDS");
    return times ? (int)((int64_t)usual * atoi(times) / MEMORY_WORLDS) : usual;
}

static void live_many(uint64_t seed, int count, lab_options options) {
    for (int i = 0; i < count; i++) {
        rnd = lab_random_of(seed + (uint64_t)i);
        if (getenv("HD_VERBOSE"))
            fprintf(stderr, "HD_SEED=%llu\n", (unsigned long long)(seed + (uint64_t)i));
        live(options);
    }
}

static void programs_of_several_runtimes_are_serial(void **state) {
    live_many(lab_seed(), worlds(MEMORY_WORLDS), (lab_options){ .kind = LAB_MEMORY });
    assert_true(worlds(MEMORY_WORLDS) < 100 ||
                (accepted && refused && elided && followed && misfits && careless));
}

static void they_are_where_documents_arrive_late(void **state) {
    live_many(lab_seed(), worlds(LATE_WORLDS),
              (lab_options){ .kind = LAB_MEMORY, .load_late = true });
}

static void they_are_in_a_file(void **state) {
    live_many(lab_seed(), worlds(FILE_WORLDS), (lab_options){ .kind = LAB_SQLITE });
}

int main(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_several_runtimes_are_serial),
        cmocka_unit_test(they_are_where_documents_arrive_late),
        cmocka_unit_test(they_are_in_a_file),
    };
    int failed = cmocka_run_group_tests_name("serial", tests, NULL, NULL);
    if (getenv("HD_VERBOSE"))
        fprintf(
            stderr, "accepted %llu, refused %llu, elided %llu, skipped %llu, through links %llu\n",
            (unsigned long long)accepted, (unsigned long long)refused, (unsigned long long)elided,
            (unsigned long long)skipped, (unsigned long long)followed);
    return failed;
}

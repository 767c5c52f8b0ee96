/* lab_judge.c -- the naive reading of a history. */
#include "lab_judge.h"
#include "lab_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCS_MAX 64

typedef struct judged {
    char name[64];
    hd_value value;
    size_t appeared; /* 1 + the arrival that made or deleted it last */
} judged;

typedef struct judge {
    lab *l;
    hd_heap *heap;
    hd_pool *pool;
    judged docs[DOCS_MAX];
    size_t doc_count;
    bool *accepted;
    bool *
        created; /* ... or deleted a document, as far as its runtime had heard: touches all of it */
    bool quiet, wrong;
} judge;

static void print_history(const judge *j) {
    const lab_arrivals *all = lab_arrivals_of(j->l);
    for (size_t i = 0; i < all->count; i++) {
        const lab_fate *f = lab_fate_of(j->l, all->items[i].rt, all->items[i].local_seq);
        fprintf(stderr, "  %zu. %s, having heard %zu: %s: %s\n", i, lab_name(f->runtime), f->heard,
                f->script, hd_status_name(f->status));
    }
}

static void object_to(judge *j, const lab_fate *f, const char *what, const char *detail) {
    j->wrong = true;
    if (!j->quiet) print_history(j);
    if (!j->quiet)
        lab_fail("%s: \"%s\" (%s): %s %s", lab_name(f->runtime), f->script,
                 hd_status_name(f->status), what, detail);
}

/* ---- state */

static judged *doc_of(judge *j, const char *name) {
    for (size_t i = 0; i < j->doc_count; i++)
        if (!strcmp(j->docs[i].name, name)) return &j->docs[i];
    if (j->doc_count == DOCS_MAX) lab_fail("too many documents for the judge");
    judged *d = &j->docs[j->doc_count++];
    snprintf(d->name, sizeof d->name, "%s", name);
    d->value = (hd_value){ 0 };
    return d;
}

static hd_path path_of(judge *j, const char *text) {
    hd_path path;
    if (hd_path_intern(j->heap, text, &path, NULL)) lab_fail("no path %s", text);
    return path;
}

static hd_value parse(judge *j, const char *json) {
    if (!strcmp(json, "-")) return (hd_value){ 0 };
    return hd_json_parse(j->pool, json, strlen(json), NULL);
}

static hd_value spliced(judge *j, hd_value v, const lab_op *o) {
    hd_path path = path_of(j, o->path);
    hd_value array = hd_value_get(j->heap, v, path);
    hd_value shorter =
        hd_array_truncate(j->pool, hd_value_exists(array) ? array : hd_array(), o->keep);
    for (hd_iter it = hd_iter_of(parse(j, o->json)); hd_iter_next(&it);)
        shorter = hd_array_append(j->pool, shorter, it.value);
    return hd_value_set(j->pool, v, path, shorter);
}

static bool in_array(judge *j, hd_value v, const lab_op *o) {
    const char *last = strrchr(o->path, '/');
    char parent[256];
    snprintf(parent, sizeof parent, "%.*s", last ? (int)(last - o->path) : 0, o->path);
    return last && hd_value_kind(hd_value_get(j->heap, v, path_of(j, parent))) == HD_KIND_ARRAY;
}

static hd_value apply(judge *j, hd_value v, const lab_op *o) {
    hd_path path = path_of(j, o->path);
    hd_value there = hd_value_get(j->heap, v, path), next = v;
    switch (o->kind) {
    case OP_SET: next = hd_value_set(j->pool, v, path, parse(j, o->json)); break;
    case OP_REMOVE:
        if (in_array(j, v, o)) return v;
        next = hd_value_remove(j->pool, v, path);
        break;
    case OP_DELETE: return (hd_value){ 0 };
    case OP_APPEND: next = hd_value_append(j->pool, v, path, parse(j, o->json)); break;
    case OP_SPLICE: next = spliced(j, v, o); break;
    case OP_INCREMENT: {
        hd_kind kind = hd_value_kind(there);
        if (hd_value_exists(there) && kind != HD_KIND_INT) return v;
        int64_t sum = hd_value_as_int(there, 0) + hd_value_as_int(parse(j, o->json), 0);
        next = hd_value_set(j->pool, v, path, hd_int(j->pool, sum));
        break;
    }
    }
    return hd_value_status(next) ? v : next; /* what does not fit is skipped */
}

/* ---- reads */

static void split_cell(const char *cell, char doc[64], const char **path) {
    const char *hash = strchr(cell, '#'), *slash = strchr(cell, '/');
    size_t n = hash ? (size_t)(hash - cell) : strlen(cell);
    bool has_space = slash && slash < cell + n;
    snprintf(doc, 64, "%s%.*s", has_space ? "" : "main/", (int)n, cell);
    *path = hash ? hash + 1 : "";
}

static void check_read(judge *j, const lab_fate *f, const lab_read *r) {
    char name[64];
    const char *path;
    split_cell(r->cell, name, &path);
    hd_value now = hd_value_get(j->heap, doc_of(j, name)->value, path_of(j, path));
    hd_value seen = parse(j, r->seen);
    bool right = r->shape ? hd_value_same_shape(seen, now) : hd_value_equal(seen, now);
    if (!right) object_to(j, f, "was accepted, but had not seen the current", r->cell);
}

static bool prefix_related(const char *a, size_t n, const char *b) {
    size_t m = strlen(b), shorter = n < m ? n : m;
    if (strncmp(a, b, shorter)) return false;
    return n == m || (n < m ? b : a)[shorter] == '/';
}

/* A write may make the objects on its way, and a read that went through own commits is judged as if it had:
 * so everything below the first key of its path is near. */
static size_t near_from(const lab_op *o) {
    size_t n = o->path[0] ? 1 + strcspn(o->path + 1, "/") : 0;
    return n < o->made ? n : o->made;
}

/* Whether a commit wrote near what was read, or written (a write that changes nothing is a claim); a layer
 * that a read went through is always near. */
static bool wrote_near(judge *j, size_t i, const lab_fate *f) {
    const lab_arrival *a = &lab_arrivals_of(j->l)->items[i];
    for (size_t k = 0; k < f->read_count; k++) {
        char name[64];
        const char *path;
        split_cell(f->reads[k].cell, name, &path);
        for (size_t n = 0; n < a->op_count; n++)
            if (!strcmp(a->ops[n].document, name) &&
                (!j->accepted[i] || j->created[i] ||
                 prefix_related(a->ops[n].path, near_from(&a->ops[n]), path)))
                return true;
    }
    return false;
}

/* A refusal needs a reason: a write near a read that its runtime had not heard of, or a refused
 * commit of its own near a read. */
static void check_refusal(judge *j, const lab_fate *f, size_t arrived) {
    const lab_arrivals *all = lab_arrivals_of(j->l);
    if (hd_status_class(f->status) != HD_CLASS_STALE)
        object_to(j, f, "was refused for no reason the judge knows", "");
    for (size_t i = 0; i < arrived; i++) {
        bool own = all->items[i].rt == lab_rt(f->runtime);
        bool reason = own ? !j->accepted[i] : j->accepted[i] && i >= f->heard;
        if (reason && wrote_near(j, i, f)) return;
    }
    object_to(j, f, "was refused, but nobody wrote near its reads", "");
}

/* How much of the operation's path leads to the first place that is on one side only. */
static size_t made_from(judge *j, const lab_op *o, hd_value before, hd_value after) {
    size_t n = 0;
    while (o->path[n]) {
        char prefix[64];
        n += 1 + strcspn(o->path + n + 1, "/");
        snprintf(prefix, sizeof prefix, "%.*s", (int)n, o->path);
        hd_path path = path_of(j, prefix);
        if (hd_value_exists(hd_value_get(j->heap, before, path)) !=
            hd_value_exists(hd_value_get(j->heap, after, path)))
            break;
    }
    return n;
}

/* ---- the history */

static void judge_arrival(judge *j, size_t i) {
    lab_arrival *a = &lab_arrivals_of(j->l)->items[i];
    const lab_fate *f = lab_fate_of(j->l, a->rt, a->local_seq);
    if (!f) lab_fail("a commit that the judge knows nothing of");
    j->accepted[i] = f->status == HD_OK;
    if (f->told != 1) object_to(j, f, "was not told once", "");
    if (!j->accepted[i]) check_refusal(j, f, i);
    for (size_t k = 0; j->accepted[i] && k < f->read_count; k++)
        if (f->reads[k].seen) check_read(j, f, &f->reads[k]);
    for (size_t k = 0; k < a->op_count; k++) {
        judged *d = doc_of(j, a->ops[k].document);
        hd_value next = apply(j, d->value, &a->ops[k]);
        a->ops[k].made = made_from(j, &a->ops[k], d->value, next);
        if (hd_value_exists(next) != hd_value_exists(d->value)) d->appeared = i + 1;
        if (d->appeared > f->heard) j->created[i] = true;
        if (j->accepted[i]) d->value = next;
    }
}

static void check_end(judge *j, lab_runtime *r) {
    for (size_t i = 0; i < j->doc_count; i++) {
        const char *json = hd_json_print(j->pool, j->docs[i].value, HD_JSON_COMPACT, NULL);
        const char *there = lab_read_cell(r, j->docs[i].name);
        if (!strcmp(there, json ? json : "-")) continue;
        j->wrong = true;
        if (!j->quiet)
            lab_fail("%s shows %s = %s and not %s", lab_name(r), j->docs[i].name, there,
                     json ? json : "-");
    }
}

bool lab_judge(lab *l, bool quiet) {
    judge j = { .l = l, .quiet = quiet };
    size_t n = lab_arrivals_of(l)->count;
    if (!lab_first(l)) lab_fail("nobody is left to ask");
    j.heap = hd_runtime_heap(lab_rt(lab_first(l)));
    if (hd_pool_open(j.heap, &j.pool)) lab_fail("no memory");
    j.accepted = calloc(n + 1, sizeof *j.accepted);
    j.created = calloc(n + 1, sizeof *j.created);
    if (!j.accepted || !j.created) lab_fail("no memory for the judge");
    for (size_t i = 0; i < n; i++) judge_arrival(&j, i);
    for (lab_runtime *r = lab_first(l); r; r = lab_next(r)) check_end(&j, r);
    free(j.accepted);
    free(j.created);
    hd_pool_close(j.pool);
    return !j.wrong;
}

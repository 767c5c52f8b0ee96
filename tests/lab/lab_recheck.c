/* lab_recheck.c -- collects violations, compares them with what was expected. */
#define _GNU_SOURCE
#include "lab_recheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct found {
    char *name;
    struct found *next;
} found;

typedef struct watched {
    lab_recheck *k;
    lab_runtime *at;
    struct watched *next;
} watched;

struct lab_recheck {
    watched *runtimes;
    found *found;   /* newest first, one for each violation */
    char *expected; /* " dice coin " */
    char *text;
};

static void append(char **to, const char *text) {
    char *longer;
    if (asprintf(&longer, "%s%s", *to, text) < 0) lab_fail("no memory");
    free(*to);
    *to = longer;
}

static void append_writes(lab_recheck *k, lab_runtime *r, const hd_written *writes, size_t count) {
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(lab_rt(r)), &pool)) lab_fail("no memory");
    for (size_t i = 0; i < count; i++) {
        char cell[128];
        hd_cell_print(lab_rt(r), writes[i].document, cell, sizeof cell);
        const char *json = hd_value_exists(writes[i].value)
                               ? hd_json_print(pool, writes[i].value, HD_JSON_COMPACT, NULL)
                               : "-";
        append(&k->text, i ? " " : "");
        append(&k->text, strncmp(cell, "main/", 5) ? cell : cell + 5);
        append(&k->text, "=");
        append(&k->text, json);
    }
    if (!count) append(&k->text, "nothing");
    hd_pool_close(pool);
}

static void on_violation(const hd_violation *v, void *ctx) {
    watched *w = ctx;
    found *f = calloc(1, sizeof *f);
    if (!f) lab_fail("no memory");
    f->name = strdup(v->action);
    f->next = w->k->found;
    w->k->found = f;
    append(&w->k->text, *w->k->text ? "; " : "");
    append(&w->k->text, v->action);
    append(&w->k->text, " wrote ");
    append_writes(w->k, w->at, v->first, v->first_count);
    append(&w->k->text, ", then ");
    append_writes(w->k, w->at, v->second, v->second_count);
}

void lab_recheck_also(lab_recheck *k, lab_runtime *r) {
    watched *w = calloc(1, sizeof *w);
    if (!w) lab_fail("no memory");
    *w = (watched){ k, r, k->runtimes };
    k->runtimes = w;
    if (hd_recheck_enable(lab_rt(r), on_violation, w)) lab_fail("recheck cannot be switched on");
}

lab_recheck *lab_recheck_start(lab *l) {
    lab_recheck *k = calloc(1, sizeof *k);
    if (!k) lab_fail("no memory");
    k->text = strdup("");
    k->expected = strdup(" ");
    for (lab_runtime *r = lab_first(l); r; r = lab_next(r)) lab_recheck_also(k, r);
    return k;
}

void lab_expect_non_idempotent(lab_recheck *k, const char *names) {
    append(&k->expected, names);
    append(&k->expected, " ");
}

const char *lab_violations(const lab_recheck *k) { return k->text; }

size_t lab_violation_count(const lab_recheck *k, const char *name) {
    size_t count = 0;
    for (const found *f = k->found; f; f = f->next) count += !strcmp(f->name, name);
    return count;
}

static bool is_expected(const lab_recheck *k, const char *name) {
    char word[128];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(k->expected, word) != NULL;
}

static void judge(lab_recheck *k) {
    for (const found *f = k->found; f; f = f->next)
        if (!is_expected(k, f->name)) lab_fail("not idempotent: %s", k->text);
    for (char *rest = k->expected, *name; (name = strtok_r(rest, " ", &rest));)
        if (!lab_violation_count(k, name)) lab_fail("%s was expected not to be idempotent", name);
}

void lab_recheck_end(lab_recheck *k) {
    for (watched *w = k->runtimes, *next; w; w = next) {
        next = w->next;
        hd_recheck_enable(lab_rt(w->at), NULL, NULL);
        free(w);
    }
    judge(k);
    for (found *f = k->found, *next; f; f = next) {
        next = f->next;
        free(f->name);
        free(f);
    }
    free(k->expected);
    free(k->text);
    free(k);
}

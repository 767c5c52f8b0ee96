/* expect.c -- expectations, and the messages of those that do not hold.
 *
 * A message says what was expected and what was found; then, from the runtime itself, why each node
 * that should have run did not, what made others run, and where a wrong value came from. */
#include "lab/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 4096, CAUSES_MAX = 12 };

bool lab_tell(const hd_lab *lab, const char *message) {
    if (!lab->options.fail) hd_lab_fail("%s", message);
    lab->options.fail(message, lab->options.ctx);
    return false;
}

/* Frees the text before it calls options.fail, which may leave by longjmp. */
static bool tell_text(const lab_runtime *r, lab_text *message) {
    char kept[MESSAGE_MAX];
    snprintf(kept, sizeof kept, "%s", lab_text_of(message));
    lab_text_free(message);
    return lab_tell(r->lab, kept);
}

/* ---- Cells --------------------------------------------------------------------------------- */

static hd_cell cell_of(const lab_runtime *r, const char *name) {
    hd_cell cell = hd_cell_at(r->rt, name);
    if (!cell.id) lab_tell(r->lab, hd_runtime_error(r->rt)->message);
    return cell;
}

static hd_status remove_cell(hd_runtime *rt, hd_cell cell) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(rt, &tx);
    if (status) return status;
    status = hd_tx_remove(tx, cell);
    if (!status) return hd_tx_commit(tx, NULL, NULL);
    hd_tx_abort(tx);
    return status;
}

void hd_lab_set(hd_runtime *rt, const char *cell, const char *json) {
    lab_runtime *r = lab_runtime_of(rt);
    hd_cell at = cell_of(r, cell);
    if (!at.id) return;
    hd_status status = strcmp(json, "-") ? hd_write_json(rt, at, json) : remove_cell(rt, at);
    if (!status || status == HD_NOMEM) return;
    lab_text message = { 0 };
    lab_text_add(&message, "%s cannot be set to %s: %s", cell, json, hd_runtime_error(rt)->message);
    tell_text(r, &message);
}

static void print_value(lab_text *out, hd_pool *pool, hd_value v) {
    const char *json = hd_json_print(pool, v, HD_JSON_COMPACT, NULL);
    hd_status status = hd_value_status(v);
    lab_text_clear(out);
    lab_text_add(out, "%s", json ? json : status ? hd_status_name(status) : "-");
}

static hd_pool *pool_of(hd_runtime *rt) {
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(rt), &pool)) hd_lab_fail("no memory to look at a cell");
    return pool;
}

const char *hd_lab_get(hd_runtime *rt, const char *cell) {
    lab_runtime *r = lab_runtime_of(rt);
    lab_text *out = &r->gets[r->next_get++ % LAB_GETS_KEPT];
    hd_cell at = cell_of(r, cell);
    hd_pool *pool = pool_of(rt);
    print_value(out, pool, hd_read(rt, pool, at));
    hd_pool_close(pool);
    return lab_text_of(out);
}

/* ---- Why ------------------------------------------------------------------------------------- */

typedef struct told_causes {
    lab_text *out;
    hd_runtime *rt;
    int count;
} told_causes;

static const char *by_whom(const hd_cause *c) {
    switch (c->origin) {
    case HD_ORIGIN_NODE: return *c->writer_name ? c->writer_name : "a node without a name";
    case HD_ORIGIN_OTHERS: return "another runtime";
    case HD_ORIGIN_LOAD: return "loading";
    case HD_ORIGIN_REVERT: return "a refused commit, which was taken back";
    default: return "the program";
    }
}

static bool tell_cause(const hd_cause *c, void *ctx) {
    told_causes *t = ctx;
    char cell[256];
    hd_cell_print(t->rt, c->cell, cell, sizeof cell);
    lab_text_add(t->out, "\n        %*s%s changed", (int)(2 * c->depth), "", cell);
    if (c->before && c->after) lab_text_add(t->out, " from %s to %s", c->before, c->after);
    lab_text_add(t->out, ", by %s", by_whom(c));
    return ++t->count < CAUSES_MAX;
}

static void add_why(lab_text *out, hd_runtime *rt, hd_node node) {
    told_causes t = { out, rt, 0 };
    hd_node_why(rt, node, tell_cause, &t);
    if (!t.count) lab_text_add(out, "\n        it was its first run, or the run was not traced");
}

static void add_why_not(lab_text *out, hd_runtime *rt, const char *name) {
    char reason[256];
    hd_node node = hd_node_find(rt, name);
    if (!node.id) {
        lab_text_add(out, "\n    there is no node %s", name);
        return;
    }
    hd_node_why_not(rt, node, reason, sizeof reason);
    lab_text_add(out, "\n    %s: %s", name, reason);
}

/* ---- What ran -------------------------------------------------------------------------------- */

/* The next word of a list, into `out`; NULL: no more. */
static const char *next_word(const char *list, char *out, size_t size) {
    list += strspn(list, " ");
    size_t length = strcspn(list, " ");
    if (!length) return NULL;
    snprintf(out, size, "%.*s", (int)length, list);
    return list + length;
}

static size_t count_word(const char *list, const char *word) {
    char one[256];
    size_t count = 0;
    while ((list = next_word(list, one, sizeof one))) count += !strcmp(one, word);
    return count;
}

static bool stands_before(const char *list, const char *end, const char *word) {
    char one[256];
    while ((list = next_word(list, one, sizeof one)) && list < end)
        if (!strcmp(one, word)) return true;
    return false;
}

/* Explains each name that `names` has more often than `others`, once. */
static void explain(lab_text *out, hd_runtime *rt, const char *names, const char *others,
                    bool ran) {
    char name[256];
    for (const char *at = names; (at = next_word(at, name, sizeof name));) {
        if (count_word(names, name) <= count_word(others, name)) continue;
        if (stands_before(names, at, name)) continue;
        if (!ran) {
            add_why_not(out, rt, name);
        } else if (hd_node_find(rt, name).id) {
            lab_text_add(out, "\n    %s ran because", name);
            add_why(out, rt, hd_node_find(rt, name));
        }
    }
}

bool hd_lab_expect_ran_at(const char *file, int line, hd_runtime *rt, const char *names) {
    lab_runtime *r = lab_runtime_of(rt);
    const char *ran = hd_lab_ran(rt);
    if (!strcmp(ran, names)) return true;
    lab_text message = { 0 };
    lab_text_add(&message, "%s:%d: expected to run: %s\n    what ran: %s", file, line,
                 *names ? names : "nothing", *ran ? ran : "nothing");
    explain(&message, rt, names, ran, false);
    explain(&message, rt, ran, names, true);
    return tell_text(r, &message);
}

bool hd_lab_expect_runs_at(const char *file, int line, hd_runtime *rt, const char *name,
                           uint64_t count) {
    lab_runtime *r = lab_runtime_of(rt);
    uint64_t runs = hd_lab_runs(rt, name);
    if (runs == count) return true;
    lab_text message = { 0 };
    lab_text_add(&message, "%s:%d: %s should have run %" PRIu64 " times, and ran %" PRIu64, file,
                 line, name, count, runs);
    if (runs < count) add_why_not(&message, rt, name);
    return tell_text(r, &message);
}

/* ---- Values ---------------------------------------------------------------------------------- */

typedef struct writer_search {
    hd_runtime *rt;
    const char *cell;
    size_t length; /* of the longest output found */
    hd_node node;
    char name[128];
} writer_search;

/* The output is the cell, or a place above it. */
static bool note_writer(const hd_node_info *info, void *ctx) {
    writer_search *w = ctx;
    char output[256];
    if (!info->output.id) return true;
    size_t length = hd_cell_print(w->rt, info->output, output, sizeof output);
    if (length >= sizeof output || strncmp(w->cell, output, length)) return true;
    if (w->cell[length] && !strchr("#/", w->cell[length])) return true;
    if (length < w->length) return true;
    w->length = length;
    w->node = info->node;
    snprintf(w->name, sizeof w->name, "%s", *info->name ? info->name : "a node without a name");
    return true;
}

static void add_writer(lab_text *out, hd_runtime *rt, const char *cell) {
    char reason[256];
    writer_search w = { .rt = rt, .cell = cell };
    hd_runtime_nodes(rt, note_writer, &w);
    if (!w.node.id) return;
    hd_node_why_not(rt, w.node, reason, sizeof reason);
    lab_text_add(out, "\n    it is written by %s, which last ran because", w.name);
    add_why(out, rt, w.node);
    lab_text_add(out, "\n    and does not run now: %s", reason);
}

static bool same_json(hd_pool *pool, hd_value found, const char *json, hd_error *error) {
    if (!strcmp(json, "-")) return hd_value_kind(found) == HD_KIND_ABSENT;
    hd_value expected = hd_json_parse(pool, json, strlen(json), error);
    return hd_value_exists(expected) && hd_value_equal(found, expected);
}

bool hd_lab_expect_cell_at(const char *file, int line, hd_runtime *rt, const char *cell,
                           const char *json) {
    lab_runtime *r = lab_runtime_of(rt);
    hd_error error = { 0 };
    hd_cell at = cell_of(r, cell);
    hd_pool *pool = pool_of(rt);
    bool same = same_json(pool, hd_read(rt, pool, at), json, &error);
    hd_pool_close(pool);
    if (same) return true;
    lab_text message = { 0 };
    lab_text_add(&message, "%s:%d: ", file, line);
    if (error.status) {
        lab_text_add(&message, "\"%s\" is not JSON: %s", json, error.message);
    } else {
        lab_text_add(&message, "%s should be %s, and is %s", cell, json, hd_lab_get(rt, cell));
        add_writer(&message, rt, cell);
    }
    return tell_text(r, &message);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static bool expect_text(const char *file, int line, const lab_runtime *r, const char *what,
                        const char *expected, const char *found) {
    if (!strcmp(expected, found)) return true;
    lab_text message = { 0 };
    lab_text_add(&message, "%s:%d: expected %s: %s\n    found: %s", file, line, what,
                 *expected ? expected : "none", *found ? found : "none");
    return tell_text(r, &message);
}

bool hd_lab_expect_failures_at(const char *file, int line, hd_runtime *rt, const char *text) {
    return expect_text(file, line, lab_runtime_of(rt), "failures", text, hd_lab_failures(rt));
}

bool hd_lab_expect_violations_at(const char *file, int line, hd_runtime *rt, const char *text) {
    return expect_text(file, line, lab_runtime_of(rt), "violations", text, hd_lab_violations(rt));
}

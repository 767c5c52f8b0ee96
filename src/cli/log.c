/* log.c -- the commits of a space, newest first.
 *
 * A row of the log holds the commits that went to disk together. Rows below the floor are gone
 * (db prune), unless the store keeps its history. */
#define _POSIX_C_SOURCE 200809L
#include "base/hash.h"
#include "cli/log.h"

#include "cli/commands.h"
#include "cli/missing.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/tables.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 78 };

typedef struct history {
    cli *c;
    log_query q;
    uint64_t left;    /* commits to print; UINT64_MAX: all */
    uint64_t printed; /* so far */
} history;

/* A commit and what of it concerns us. */
typedef struct entry {
    hd_value commit;
    const char *session;
    uint64_t seq;  /* in the space asked for */
    int64_t space; /* index of that space in the commit */
} entry;

/* ---- Spelling out what the log leaves out -------------------------------------------------- */

/* A set may stand without its word. */
static hd_value whole_operation(hd_pool *pool, hd_value op) {
    const char *first = hd_value_as_text(hd_value_index(op, 0), "?");
    if (*first != '/' && *first) return op;
    hd_value parts[] = { hd_string(pool, "set"), hd_value_index(op, 0), hd_value_index(op, 1) };
    return hd_array_of(pool, parts, 3);
}

/* An id may stand behind what all ids of its commit share; metadata without the name of its document, which is
 * `before`. */
static hd_value whole_document(hd_pool *pool, hd_value doc, hd_value before, const char *shared) {
    static const char *const name[] = { "i", "p", "user", "session" };
    hd_value ops = hd_array();
    if (hd_value_kind(doc) == HD_KIND_ARRAY) { /* [id, operations] */
        hd_value bare = hd_object_set(pool, hd_object(), "i", hd_value_index(doc, 0));
        doc = hd_object_set(pool, bare, "o", hd_value_index(doc, 1));
    }
    for (hd_iter op = hd_iter_of(hd_value_at(doc, "o")); hd_iter_next(&op);)
        ops = hd_array_append(pool, ops, whole_operation(pool, op.value));
    const char *id = hd_value_as_text(hd_value_at(doc, "i"), NULL);
    bool nameless = !id;
    if (id && *shared) doc = hd_object_set(pool, doc, "i", hd_string_f(pool, "%s%s", shared, id));
    for (size_t i = 0; i < sizeof name / sizeof *name && nameless; i++)
        if (hd_value_exists(hd_value_at(before, name[i])))
            doc = hd_object_set(pool, doc, name[i], hd_value_at(before, name[i]));
    return hd_object_set(pool, doc, "o", ops);
}

static hd_value whole_commit(hd_pool *pool, hd_value commit) {
    hd_value docs = hd_array(), before = { 0 };
    const char *shared = hd_value_as_text(hd_value_at(commit, "a"), "");
    for (hd_iter it = hd_iter_of(hd_value_at(commit, "d")); hd_iter_next(&it);) {
        before = whole_document(pool, it.value, before, shared);
        docs = hd_array_append(pool, docs, before);
    }
    return hd_value_count(docs) ? hd_object_set(pool, commit, "d", docs) : commit;
}

/* ---- Picking ----------------------------------------------------------------------------- */

/* Whether one of two paths leads through the other's place. */
static bool related(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
    const char *longer = n < m ? b : a;
    return strncmp(a, b, shorter) == 0 && (!longer[shorter] || longer[shorter] == '/');
}

static bool concerns(const history *h, hd_value doc, int64_t space) {
    if (hd_value_as_int(hd_value_at(doc, "p"), 0) != space) return false;
    if (!h->q.id) return true;
    if (strcmp(hd_value_as_text(hd_value_at(doc, "i"), ""), h->q.id)) return false;
    if (!h->q.path) return true;
    for (hd_iter op = hd_iter_of(hd_value_at(doc, "o")); hd_iter_next(&op);)
        if (related(hd_value_as_text(hd_value_index(op.value, 1), ""), h->q.path)) return true;
    return false;
}

static bool picked(const history *h, entry *e) {
    hd_value spaces = hd_value_at(e->commit, "p");
    e->space = -1;
    for (hd_iter it = hd_iter_of(spaces); hd_iter_next(&it);)
        if (strcmp(hd_value_as_text(it.value, ""), h->q.space) == 0) e->space = (int64_t)it.index;
    if (e->space < 0) return false;
    e->seq =
        (uint64_t)hd_value_as_int(hd_value_index(hd_value_at(e->commit, "q"), (size_t)e->space), 0);
    if (e->seq <= h->q.after) return false;
    for (hd_iter it = hd_iter_of(hd_value_at(e->commit, "d")); hd_iter_next(&it);)
        if (concerns(h, it.value, e->space)) return true;
    return false;
}

/* ---- Printing ---------------------------------------------------------------------------- */

static void print_operation(const cli *c, const char *id, hd_value doc, hd_value op) {
    const char *word = hd_value_as_text(hd_value_index(op, 0), "?");
    const char *path = hd_value_as_text(hd_value_index(op, 1), "");
    bool meta = hd_value_exists(hd_value_at(doc, "m"));
    const char *scope = hd_value_exists(hd_value_at(doc, "user"))      ? " (user)"
                        : hd_value_exists(hd_value_at(doc, "session")) ? " (session)"
                                                                       : "";
    int column = printf("          ") + name_width(word) + name_width(id) + name_width(path);
    print_plain(stdout, word);
    column += printf("%s ", meta ? " meta" : "");
    print_plain(stdout, id);
    column += printf("%s%s", scope, *path ? "#" : "");
    print_plain(stdout, path);
    hd_value v = hd_value_index(op, 2);
    if (hd_value_exists(v)) {
        fputs(out_colour(c, COLOUR_GREEN), stdout);
        (void)print_value_within(c, v, " ", column, 12);
        fputs(out_colour(c, COLOUR_NONE), stdout);
    }
    putchar('\n');
}

static size_t fold_before(size_t column, size_t length) {
    if (column + 1 + length <= LINE_WIDTH) return column;
    return (size_t)printf("\n            ") - 2;
}

/* The cells whose change made the node run. Continues the current line, and ends it. */
static void print_causes(hd_value of, size_t column) {
    hd_value causes = hd_value_at(of, "why");
    int64_t more = hd_value_as_int(hd_value_at(of, "more"), 0);
    char rest[40];
    column += (size_t)printf("because of");
    for (hd_iter it = hd_iter_of(causes); hd_iter_next(&it);) {
        const char *cell = hd_value_as_text(it.value, "?");
        size_t length = strlen(cell);
        if (it.index) column += (size_t)printf(",");
        if (it.index) column = fold_before(column, length);
        putchar(' ');
        print_plain(stdout, cell);
        column += 1 + length;
    }
    snprintf(rest, sizeof rest, "and %" PRId64 " more", more);
    if (more) fold_before(column, strlen(rest));
    if (more) printf(" %s", rest);
    putchar('\n');
}

/* Of a document in a commit of derived values: which node wrote it. */
static void print_author(hd_value doc) {
    const char *by = hd_value_as_text(hd_value_at(doc, "by"), "");
    bool caused = hd_value_count(hd_value_at(doc, "why"));
    if (!*by && !caused) return;
    size_t column = (size_t)printf("            ");
    if (*by) {
        column += (size_t)printf("by ");
        print_plain(stdout, by);
        column += strlen(by);
    }
    if (*by && caused) column += (size_t)printf(", ");
    if (caused) print_causes(doc, column);
    else putchar('\n');
}

static void print_entry(const history *h, const entry *e) {
    const char *class_word = hd_value_as_text(hd_value_at(e->commit, "c"), "source");
    const char *by = hd_value_as_text(hd_value_at(e->commit, "by"), "");
    const char *build = hd_value_as_text(hd_value_at(e->commit, "as"), "");
    printf("%s%8" PRIu64 "%s  %s by session %.8s%s", out_colour(h->c, COLOUR_BOLD), e->seq,
           out_colour(h->c, COLOUR_NONE), class_word, e->session, *by ? ", " : "");
    print_plain(stdout, by);
    fputs(*build ? ", build " : "", stdout);
    print_plain(stdout, build);
    putchar('\n');
    if (hd_value_count(hd_value_at(e->commit, "why")))
        print_causes(e->commit, (size_t)printf("          "));
    for (hd_iter it = hd_iter_of(hd_value_at(e->commit, "d")); hd_iter_next(&it);) {
        if (!concerns(h, it.value, e->space)) continue;
        const char *id = hd_value_as_text(hd_value_at(it.value, "i"), "");
        for (hd_iter op = hd_iter_of(hd_value_at(it.value, "o")); hd_iter_next(&op);)
            print_operation(h->c, id, it.value, op.value);
        print_author(it.value);
    }
}

/* Of a commit, or of a document in one of derived values. */
static void record_causes(record *r, hd_value of) {
    record_value(r, "by", hd_value_at(of, "by"));
    record_value(r, "causes", hd_value_at(of, "why"));
    record_value(r, "more_causes", hd_value_at(of, "more"));
}

static void record_document(record *r, hd_value doc) {
    record_open(r, NULL, '{');
    record_value(r, "id", hd_value_at(doc, "i"));
    record_value(r, "user", hd_value_at(doc, "user"));
    record_value(r, "session", hd_value_at(doc, "session"));
    if (hd_value_exists(hd_value_at(doc, "m"))) record_bool(r, "meta", true);
    record_causes(r, doc);
    record_value(r, "operations", hd_value_at(doc, "o"));
    record_close(r, '}');
}

static void record_entry(const history *h, const entry *e) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "space", h->q.space);
    record_number(&r, "seq", e->seq);
    record_text(&r, "class", hd_value_as_text(hd_value_at(e->commit, "c"), "source"));
    record_text(&r, "session", e->session);
    record_value(&r, "local_seq", hd_value_at(e->commit, "n"));
    record_value(&r, "build", hd_value_at(e->commit, "as"));
    record_causes(&r, e->commit);
    record_open(&r, "documents", '[');
    for (hd_iter it = hd_iter_of(hd_value_at(e->commit, "d")); hd_iter_next(&it);)
        if (concerns(h, it.value, e->space)) record_document(&r, it.value);
    record_close(&r, ']');
    record_close(&r, '}');
    record_end(&r);
}

/* ---- Walking ----------------------------------------------------------------------------- */

static bool wants_more(const history *h) { return h->left && !output_broken() && !interrupted(); }

static bool show_commit(hd_value commit, const char *session, void *ctx) {
    history *h = ctx;
    entry e = { .commit = commit, .session = session };
    if (!wants_more(h)) return false;
    if (!picked(h, &e)) return true;
    if (h->q.seen) h->q.seen(commit, session, h->q.seen_ctx);
    if (!h->q.silent && h->c->json) record_entry(h, &e);
    if (!h->q.silent && !h->c->json) print_entry(h, &e);
    h->printed++;
    if (h->left != UINT64_MAX) h->left--;
    return wants_more(h);
}

/* A walk through the rows of the log. */
typedef struct passage {
    cli *c;
    hd_heap *heap;
    hd_pool *pool; /* of one row */
    bool reverse;
    log_fn fn;
    void *ctx;
    log_store *from; /* borrowed */
    bool over;
    int failed; /* a row could not be read */
} passage;

/* False: the walk is over. */
static bool walk_row(passage *w, hd_value row) {
    hd_value all = hd_value_at(row, "commits"), sessions = hd_value_at(row, "sessions");
    size_t count = hd_value_count(all);
    bool more = true;
    for (size_t i = 0; i < count && more && !interrupted(); i++) {
        hd_value commit =
            whole_commit(w->pool, hd_value_index(all, w->reverse ? i : count - 1 - i));
        int64_t who = hd_value_as_int(hd_value_at(commit, "s"), 0);
        more = w->fn(commit, hd_value_as_text(hd_value_index(sessions, (size_t)who), "?"), w->ctx);
    }
    return more;
}

/* Of the hashes in the store (docs/FORMAT.md). */
#define LOG_HASH_SEED UINT64_C(0x68656464)

static hd_status take_row(void *ctx, const log_text *text, bool *stop) {
    passage *w = ctx;
    bool right = hash_bytes(text->body.bytes, text->body.length, LOG_HASH_SEED) == text->hash;
    hd_value row = hd_json_parse(w->pool, text->body.bytes, text->body.length, NULL);
    if (right && hd_value_exists(row)) w->over = !walk_row(w, row);
    else
        w->failed = cli_fail(w->c, CLI_FILE, "\"heddle db check\" tells more.",
                             "%s: log row %" PRIu64 " cannot be read", w->from->shown, text->row);
    hd_pool_clear(w->pool);
    w->over |= w->failed || interrupted();
    *stop = w->over;
    return HD_OK;
}

/* From the last row to the first. Rows that were pruned meanwhile are passed over. */
static hd_status walk_back(passage *w) {
    uint64_t first, last;
    hd_status status = w->from->ops->row_ends(w->from, &first, &last);
    for (; !status && last && last >= first && !w->over; last--) {
        status = w->from->ops->read_row(w->from, last, take_row, w);
        if (status == HD_NOT_FOUND) status = HD_OK;
    }
    return status;
}

static int walk(passage *w, tables *t) {
    w->from = t->store;
    hd_status status =
        w->reverse ? w->from->ops->read_after(w->from, 0, take_row, w) : walk_back(w);
    if (w->failed) return w->failed;
    return status ? tables_fail(t, status, "reading the log") : CLI_OK;
}

static int open_heap(passage *w) {
    /* A row of the log nests its values deeper than their documents do. */
    hd_limits limits = { .depth = 1024, .size = SIZE_MAX / 4 };
    hd_status status = hd_heap_open(NULL, &limits, &w->heap);
    if (!status) status = hd_pool_open(w->heap, &w->pool);
    return status ? cli_fail(w->c, exit_of(status), NULL, "%s", hd_status_text(status)) : CLI_OK;
}

static int walk_file(passage *w, const char *file) {
    tables t = { 0 };
    int failed = tables_open(w->c, &t, file);
    if (!failed) failed = open_heap(w);
    if (!failed) failed = walk(w, &t);
    if (w->pool) hd_pool_close(w->pool);
    if (w->heap) hd_heap_close(w->heap);
    tables_close(&t);
    return failed ? failed : interrupted() ? interrupted_status() : CLI_OK;
}

int log_each(cli *c, const char *file, log_fn fn, void *ctx) {
    passage w = { .c = c, .fn = fn, .ctx = ctx };
    return walk_file(&w, file);
}

int log_print(cli *c, const log_query *q, uint64_t *printed) {
    history h = { .c = c, .q = *q, .left = q->limit };
    passage w = { .c = c, .reverse = q->reverse, .fn = show_commit, .ctx = &h };
    int failed = walk_file(&w, q->file);
    *printed = h.printed;
    return failed;
}

void log_split(char *name, log_query *q) {
    char *slash = strchr(name, '/'), *hash = slash ? strchr(slash, '#') : NULL;
    if (slash) *slash = '\0';
    if (hash) *hash = '\0';
    name[strcspn(name, "@")] = '\0';
    q->space = name;
    q->id = slash ? slash + 1 : NULL;
    q->path = hash && hash[1] ? hash + 1 : NULL;
}

/* Opens the store first, so that a file that is not a store is refused with the library's message. */
static int check_names(cli *c, const char *space) {
    store s;
    int failed = store_open(c, &s, c->operands[0], STORE_READ);
    if (!failed) failed = store_space(&s, space);
    return store_close(&s, failed);
}

/* Nothing was printed: because there is no such cell, or because its commits are gone from the log. */
static int explain_nothing(cli *c, const log_query *q) {
    bool exists = true;
    if (q->id && *q->id) {
        int failed = missing_in_file(c, c->operands[0], c->operands[1], NULL, &exists);
        if (failed) return failed;
    }
    cli_warn(c, "the log has no such commit (any more): older ones are folded into the documents");
    return CLI_OK;
}

static int run(cli *c) {
    uint64_t printed = 0;
    char *name = strdup(c->operands[1]);
    if (!name) return cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
    log_query q = { .file = c->operands[0],
                    .limit = UINT64_MAX,
                    .reverse = option_given(c, "reverse") };
    log_split(name, &q);
    int failed = option_number(c, "limit", &q.limit);
    if (!failed) failed = option_number(c, "after", &q.after);
    if (!failed) failed = check_names(c, q.space);
    if (!failed) failed = log_print(c, &q, &printed);
    if (!failed && !printed && q.limit) failed = explain_nothing(c, &q);
    free(name);
    return failed;
}

const command command_log = {
    .name = "log",
    .also = "cells log",
    .section = "Cells",
    .operands = "FILE SPACE | CELL",
    .least = 2,
    .most = 2,
    .summary = "print the commits of a space, document or cell",
    .text = "Prints the commits that are still in the log, newest first: seq, class, who made it, "
            "and its operations. Of a cell: those that touched it. Older ones have been folded "
            "into the documents and pruned, unless "
            "the program opens the store with its history kept.",
    .options = (const cli_option[]){ { "limit", "N", "at most N commits" },
                                     { "after", "SEQ", "only commits after this one" },
                                     { "reverse", NULL, "oldest first" },
                                     OPTION_WIDE,
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle log shop.db main --limit 10", "the last ten" },
                               { "heddle log shop.db main/stock", "the history of a document" },
                               { "heddle log shop.db main/stock#/apples", "of a place in it" },
                               { NULL, NULL } },
    .run = run,
};

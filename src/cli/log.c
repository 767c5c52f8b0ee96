/* log.c -- the commits of a space, newest first.
 *
 * A row of the log holds the commits that went to disk together. Rows below the floor are gone
 * (db prune), unless the store keeps its history. */
#define _POSIX_C_SOURCE 200809L
#include "base/hash.h"
#include "cli/log.h"

#include "cli/commands.h"
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
    hd_heap *heap;
    hd_pool *pool; /* of one row */
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
    printf("          ");
    print_plain(stdout, word);
    printf("%s ", meta ? " meta" : "");
    print_plain(stdout, id);
    printf("%s%s", scope, *path ? "#" : "");
    print_plain(stdout, path);
    hd_value v = hd_value_index(op, 2);
    if (hd_value_exists(v)) {
        printf(" %s", out_colour(c, COLOUR_GREEN));
        record r = record_to(stdout);
        record_value(&r, NULL, v);
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

static void walk_row(history *h, hd_value row) {
    hd_value all = hd_value_at(row, "commits");
    hd_value sessions = hd_value_at(row, "sessions");
    size_t count = hd_value_count(all);
    for (size_t i = 0; i < count && wants_more(h); i++) {
        entry e = { .commit = hd_value_index(all, h->q.reverse ? i : count - 1 - i) };
        int64_t who = hd_value_as_int(hd_value_at(e.commit, "s"), 0);
        e.session = hd_value_as_text(hd_value_index(sessions, (size_t)who), "?");
        if (!picked(h, &e)) continue;
        if (h->c->json) record_entry(h, &e);
        else print_entry(h, &e);
        h->printed++;
        if (h->left != UINT64_MAX) h->left--;
    }
}

/* Of the hashes in the file (docs/FORMAT.md). */
#define LOG_HASH_SEED UINT64_C(0x68656464)

static int walk(history *h, tables *t) {
    int failed;
    sqlite3_stmt *s =
        tables_query(t,
                     h->q.reverse ? "select row, body, hash from log order by row"
                                  : "select row, body, hash from log order by row desc",
                     &failed);
    int rc = SQLITE_DONE;
    while (!failed && wants_more(h) && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *body = column_text(s, 1);
        size_t length = (size_t)sqlite3_column_bytes(s, 1);
        bool right = hash_bytes(body, length, LOG_HASH_SEED) == column_number(s, 2);
        hd_value row = hd_json_parse(h->pool, body, length, NULL);
        if (right && hd_value_exists(row)) walk_row(h, row);
        else
            failed =
                cli_fail(h->c, CLI_FILE, "\"heddle db check\" tells more.",
                         "%s: log row %" PRIu64 " cannot be read", t->file, column_number(s, 0));
        hd_pool_clear(h->pool);
    }
    if (!failed && rc != SQLITE_ROW && rc != SQLITE_DONE)
        failed = tables_fail(t, "reading the log");
    sqlite3_finalize(s);
    return failed;
}

static int open_heap(history *h) {
    /* A row of the log nests its values deeper than their documents do. */
    hd_limits limits = { .depth = 1024, .size = SIZE_MAX / 4 };
    hd_status status = hd_heap_open(NULL, &limits, &h->heap);
    if (!status) status = hd_pool_open(h->heap, &h->pool);
    return status ? cli_fail(h->c, exit_of(status), NULL, "%s", hd_status_text(status)) : CLI_OK;
}

static void close_heap(history *h) {
    if (h->pool) hd_pool_close(h->pool);
    if (h->heap) hd_heap_close(h->heap);
}

int log_print(cli *c, const log_query *q, uint64_t *printed) {
    history h = { .c = c, .q = *q, .left = q->limit };
    tables t = { 0 };
    int failed = tables_open(c, &t, q->file);
    if (!failed) failed = open_heap(&h);
    if (!failed) failed = walk(&h, &t);
    close_heap(&h);
    tables_close(&t);
    *printed = h.printed;
    return failed ? failed : interrupted() ? interrupted_status() : CLI_OK;
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
    if (!failed && !printed && c->progress)
        cli_warn(c, "the log holds no such commit; older ones are folded into the documents");
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
                                     { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle log shop.db main --limit 10", "the last ten" },
                               { "heddle log shop.db main/stock", "the history of a document" },
                               { "heddle log shop.db main/stock#/apples", "of a place in it" },
                               { NULL, NULL } },
    .run = run,
};

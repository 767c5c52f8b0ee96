/* ls.c -- spaces of a file, documents of a space. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_WIDTH = 17 }; /* "workflow.schedule" */

static void print_record(const hd_listing *entry) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "space", entry->space);
    if (entry->scope == HD_SCOPE_USER) record_text(&r, "scope", "user");
    if (entry->scope == HD_SCOPE_SESSION) record_text(&r, "scope", "session");
    record_text(&r, "id", entry->id);
    record_text(&r, "kind", entry->kind);
    record_number(&r, "seq", entry->seq);
    record_close(&r, '}');
    record_end(&r);
}

static void print_entry_name(const hd_listing *entry) {
    print_plain(stdout, entry->space);
    printf("%s/", scope_suffix(entry->scope));
    print_plain(stdout, entry->id);
    putchar('\n');
}

static void print_long(const cli *c, const hd_listing *entry) {
    const char *kind = *entry->kind ? entry->kind : "-";
    size_t width = strlen(kind);
    printf("%s%8" PRIu64 "  ", out_colour(c, COLOUR_DIM), entry->seq);
    print_cell(stdout, kind, width < KIND_WIDTH ? KIND_WIDTH : (int)width);
    printf("%s  ", out_colour(c, COLOUR_NONE));
    print_entry_name(entry);
}

/* Documents that the library keeps for itself, by what their ids begin with. */
static const char *const machinery[] = { "event/",    "receipt/", "receipt-", "outbox/",
                                         "workflow-", "lease/",   NULL };

/* What folds and groups keep beside their results: "piece/name.rows/0", "piece/name.tree". */
static bool is_of_fold(const hd_listing *entry) {
    static const char *const ends[] = { ".rows", ".tree" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends && !*entry->kind; i++)
        for (const char *at = entry->id; (at = strstr(at, ends[i])) != NULL; at++)
            if (!at[strlen(ends[i])] || at[strlen(ends[i])] == '/') return true;
    return false;
}

/* Asked for by its prefix or kind, such a document is shown. */
static bool is_hidden(const cli *c, const hd_listing *entry) {
    const char *asked = c->operand_count > 1 ? strchr(c->operands[1], '/') : NULL;
    if (option_given(c, "all") || option_given(c, "kind") || (asked && asked[1])) return false;
    for (const char *const *m = machinery; *m; m++)
        if (strncmp(entry->id, *m, strlen(*m)) == 0) return true;
    return is_of_fold(entry);
}

typedef struct listing {
    cli *c;
    uint64_t left; /* documents to print before the end */
    uint64_t hidden;
} listing;

static bool print_document(const hd_listing *entry, void *ctx) {
    listing *w = ctx;
    const cli *c = w->c;
    if (is_hidden(c, entry)) {
        w->hidden++;
        return !interrupted();
    }
    if (c->json) print_record(entry);
    else if (option_given(c, "long")) print_long(c, entry);
    else print_entry_name(entry);
    return --w->left && !output_broken() && !interrupted();
}

static bool print_space(const char *space, void *ctx) {
    const cli *c = ctx;
    if (c->json) {
        record r = record_to(stdout);
        record_open(&r, NULL, '{');
        record_text(&r, "space", space);
        record_close(&r, '}');
        record_end(&r);
    } else {
        print_plain(stdout, space);
        putchar('\n');
    }
    return !output_broken();
}

/* --after takes an id, or the name that ls prints. */
static const char *id_after(const cli *c, const char *space) {
    const char *after = option_text(c, "after");
    size_t length = strlen(space);
    bool named = after && strncmp(after, space, length) == 0 && after[length] == '/';
    return named ? after + length + 1 : after;
}

static int list_space(store *s, char *name) {
    char *slash = strchr(name, '/');
    if (slash) *slash = '\0';
    int failed = store_space(s, name);
    if (failed) return failed;
    /* A runtime lists the documents of user scope only after it has named a cell there. */
    (void)hd_cell_of(s->rt, name, HD_SCOPE_USER, "any", NULL);
    listing w = { .c = s->c, .left = UINT64_MAX };
    failed = option_number(s->c, "limit", &w.left);
    if (failed || !w.left) return failed;
    hd_status status =
        hd_runtime_list_after(s->rt, name, option_text(s->c, "kind"), slash ? slash + 1 : NULL,
                              id_after(s->c, name), print_document, &w);
    if (status) return store_fail(s, status, name);
    if (w.hidden && s->c->progress)
        cli_warn(s->c,
                 "%" PRIu64 " documents that the library keeps for itself are not shown: --all",
                 w.hidden);
    return interrupted() ? interrupted_status() : CLI_OK;
}

/* They choose documents. */
static int refuse_option_of_space(cli *c) {
    static const char *const names[] = { "after", "all", "kind", "limit", "long" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (option_given(c, names[i]))
            return cli_fail(c, CLI_USAGE, NULL, "--%s is about the documents of a space: name one",
                            names[i]);
    return CLI_OK;
}

static int run(cli *c) {
    store s;
    int refused = c->operand_count == 1 ? refuse_option_of_space(c) : CLI_OK;
    if (refused) return refused;
    int failed = store_open(c, &s, c->operands[0], STORE_READ);
    if (!failed && c->operand_count == 1) {
        hd_status status = hd_runtime_spaces(s.rt, print_space, c);
        if (status) failed = store_fail(&s, status, s.file);
    } else if (!failed) {
        char *name = strdup(c->operands[1]);
        failed = name ? list_space(&s, name) : cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
        free(name);
    }
    return store_close(&s, failed);
}

const command command_ls = {
    .name = "ls",
    .also = "cells ls",
    .section = "Cells",
    .operands = "FILE [SPACE | SPACE/PREFIX]",
    .least = 1,
    .most = 2,
    .summary = "list spaces, or the documents of a space",
    .text = "Without a space: the names of the spaces. With one: its documents in order of their "
            "ids, all or those whose id begins with PREFIX. Documents that the library keeps for "
            "itself (events, receipts, the outbox, leases, workflows that were registered, the "
            "rows and trees of folds and groups) are shown if "
            "PREFIX or --kind asks for them, or with --all.",
    .options =
        (const cli_option[]){
            { "after", "ID", "only documents after this one, in order of their ids" },
            { "all", NULL, "also events, receipts and the like" },
            { "kind", "WORD", "only documents of this kind" },
            { "limit", "N", "at most N documents" },
            { "long", NULL, "with the seq of the last change and the kind" },
            OPTION_USER,
            { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle ls shop.db", "the spaces" },
                               { "heddle ls shop.db main/order-", "orders" },
                               { "heddle ls shop.db main --kind event --json", "for a program" },
                               { NULL, NULL } },
    .run = run,
};

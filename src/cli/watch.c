/* watch.c -- prints each change as it is committed, by any process.
 *
 * The runtime follows the spaces in question and reports every commit; this file chooses what to print.
 * Spaces that appear later are found the next time the command wakes up, and followed from then on. */
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

typedef struct watched {
    hd_cell document; /* 0: the whole space */
    char *space;      /* owned */
    hd_path path;
} watched;

typedef struct watching {
    store s;
    watched *items; /* none: everything */
    size_t count;
    char **followed; /* names of spaces, owned */
    size_t followed_count;
    uint64_t left; /* changes to print before the end; 0: no end */
    bool paths;    /* --paths */
    bool done;
    hd_status status; /* of what failed inside a callback */
} watching;

/* ---- Names ------------------------------------------------------------------------------- */

typedef struct document_name {
    char *text; /* owned: space/id as printed; taken apart: space, NUL, scope or id, ... */
    const char *space, *scope, *id;
} document_name;

/* Free it. Not of the pool: a watch may go on for months. */
static char *whole_name(watching *w, hd_cell document) {
    size_t size = hd_cell_print(w->s.rt, document, NULL, 0) + 1;
    char *text = malloc(size);
    if (text) hd_cell_print(w->s.rt, document, text, size);
    return text;
}

/* Free its text. */
static hd_status name_of(watching *w, hd_cell document, document_name *out) {
    out->text = whole_name(w, document);
    if (!out->text) return HD_NOMEM;
    char *slash = strchr(out->text, '/'), *at;
    out->space = out->text;
    out->scope = "space";
    out->id = "";
    if (!slash) return HD_OK;
    *slash = '\0';
    out->id = slash + 1;
    if (!(at = strchr(out->text, '@'))) return HD_OK;
    *at = '\0';
    out->scope = at + 1;
    return HD_OK;
}

/* ---- Printing ---------------------------------------------------------------------------- */

/* The steps as a JSON pointer, cut off at the end of `out`. Text output may be cut; for --json the caller
 * gives enough room (pointer_room). */
static void pointer_text(const hd_step *path, size_t depth, char *out, size_t size) {
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < depth && length + 32 < size; i++) {
        if (!path[i].key) {
            length += (size_t)snprintf(out + length, size - length, "/%zu", path[i].index);
            continue;
        }
        out[length++] = '/';
        for (size_t k = 0; k < path[i].key_length && length + 32 < size; k++) {
            char ch = path[i].key[k];
            if (ch == '~' || ch == '/') out[length++] = '~';
            out[length++] = ch == '~' ? '0' : ch == '/' ? '1' : ch;
        }
        out[length] = '\0';
    }
}

/* Room for all of it: each character escaped, and what pointer_text leaves free. */
static size_t pointer_room(const hd_step *path, size_t depth) {
    size_t room = 64;
    for (size_t i = 0; i < depth; i++) room += path[i].key ? 2 * path[i].key_length + 1 : 24;
    return room;
}

typedef struct difference_ctx {
    const cli *c;
    record *r; /* NULL: for people */
    bool any;
} difference_ctx;

static bool record_difference(const hd_step *path, size_t depth, hd_value before, hd_value after,
                              void *ctx) {
    difference_ctx *d = ctx;
    size_t room = pointer_room(path, depth);
    char *text = malloc(room);
    if (!text) return false;
    pointer_text(path, depth, text, room);
    record_open(d->r, NULL, '{');
    record_text(d->r, "path", text);
    record_value(d->r, "before", before);
    record_value(d->r, "after", after);
    record_close(d->r, '}');
    free(text);
    return true;
}

static void print_side(const cli *c, hd_value v, colour shade) {
    fputs(out_colour(c, shade), stdout);
    if (hd_value_exists(v)) (void)write_json(stdout, v, HD_JSON_COMPACT);
    else putchar('-');
    fputs(out_colour(c, COLOUR_NONE), stdout);
}

static bool print_difference(const hd_step *path, size_t depth, hd_value before, hd_value after,
                             void *ctx) {
    difference_ctx *d = ctx;
    char text[1024];
    pointer_text(path, depth, text, sizeof text);
    fputs(d->any ? ", " : "", stdout);
    print_plain(stdout, text);
    fputs(depth ? " " : "", stdout);
    d->any = true;
    print_side(d->c, before, COLOUR_RED);
    fputs(" -> ", stdout);
    print_side(d->c, after, COLOUR_GREEN);
    return true;
}

static hd_status print_json(watching *w, const hd_change *change, hd_value before, hd_value after) {
    document_name name;
    hd_status status = name_of(w, change->document, &name);
    if (status) return status;
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "space", name.space);
    if (strcmp(name.scope, "space")) record_text(&r, "scope", name.scope);
    record_text(&r, "id", name.id);
    record_number(&r, "seq", change->seq);
    if (w->paths) {
        difference_ctx d = { w->s.c, &r, false };
        record_open(&r, "changes", '[');
        status = hd_value_diff(hd_runtime_heap(w->s.rt), before, after, record_difference, &d);
        record_close(&r, ']');
    } else {
        record_value(&r, "before", before);
        record_value(&r, "after", after);
    }
    record_close(&r, '}');
    record_end(&r);
    free(name.text);
    return status;
}

static hd_status print_line(watching *w, const hd_change *change, hd_value before, hd_value after) {
    const cli *c = w->s.c;
    char *name = whole_name(w, change->document);
    if (!name) return HD_NOMEM;
    printf("%s%6" PRIu64 "%s  %s", out_colour(c, COLOUR_DIM), change->seq,
           out_colour(c, COLOUR_NONE), out_colour(c, COLOUR_BOLD));
    print_plain(stdout, name);
    printf("%s ", out_colour(c, COLOUR_NONE));
    free(name);
    difference_ctx d = { c, NULL, false };
    hd_status status = hd_value_diff(hd_runtime_heap(w->s.rt), before, after, print_difference, &d);
    putchar('\n');
    return status;
}

static void print_change(watching *w, const hd_change *change, hd_path path) {
    if (w->done || output_broken()) return;
    const hd_heap *heap = hd_runtime_heap(w->s.rt);
    hd_value before = hd_value_get(heap, change->before, path);
    hd_value after = hd_value_get(heap, change->after, path);
    if (hd_value_equal(before, after)) return;
    hd_status status =
        w->s.c->json ? print_json(w, change, before, after) : print_line(w, change, before, after);
    fflush(stdout);
    if (status) w->status = status;
    if (w->left && --w->left == 0) w->done = true;
}

/* ---- Choosing ---------------------------------------------------------------------------- */

static bool in_space(watching *w, hd_cell document, const char *space) {
    document_name name;
    hd_status status = name_of(w, document, &name);
    if (status) w->status = status;
    bool in = !status && strcmp(name.space, space) == 0;
    free(name.text);
    return in;
}

/* Prints a change for each watched cell or space that it touches. */
static void consider(watching *w, const hd_change *change) {
    if (!w->count) print_change(w, change, HD_PATH_ROOT);
    for (size_t i = 0; i < w->count; i++) {
        const watched *item = &w->items[i];
        bool meant = item->document.id ? item->document.id == change->document.id
                                       : in_space(w, change->document, item->space);
        if (meant) print_change(w, change, item->path);
    }
}

/* Whether every change of `inner` is a change of `outer`, too. */
static bool contains(const watching *w, const watched *outer, const watched *inner) {
    const hd_heap *heap = hd_runtime_heap(w->s.rt);
    if (!outer->document.id) return strcmp(outer->space, inner->space) == 0;
    hd_path at = inner->path;
    while (at != outer->path && at != HD_PATH_ROOT) at = hd_path_parent(heap, at);
    return outer->document.id == inner->document.id && at == outer->path;
}

static bool is_repeated(const watching *w, size_t i) {
    for (size_t j = 0; j < w->count; j++) {
        if (i == j || !contains(w, &w->items[j], &w->items[i])) continue;
        if (j < i || !contains(w, &w->items[i], &w->items[j])) return true;
    }
    return false;
}

/* Removes what lies in something else that is watched, so that no change is printed twice. */
static void drop_repeated(watching *w) {
    for (size_t i = w->count; i-- > 0;) {
        if (!is_repeated(w, i)) continue;
        free(w->items[i].space);
        w->items[i] = w->items[--w->count];
    }
}

static void on_notice(const hd_notice *notice, void *ctx) {
    /* A document that is read for the first time has not changed. */
    if (notice->kind == HD_CHANGE_LOAD) return;
    for (size_t i = 0; i < notice->count; i++) consider(ctx, &notice->changes[i]);
}

/* ---- Following --------------------------------------------------------------------------- */

static bool is_followed(const watching *w, const char *space) {
    for (size_t i = 0; i < w->followed_count; i++)
        if (strcmp(w->followed[i], space) == 0) return true;
    return false;
}

static bool follow(const char *space, void *ctx) {
    watching *w = ctx;
    if (is_followed(w, space)) return true;
    char **larger = realloc(w->followed, (w->followed_count + 1) * sizeof *larger);
    if (larger) w->followed = larger;
    char *name = larger ? strdup(space) : NULL;
    w->status = name ? hd_runtime_follow(w->s.rt, space) : HD_NOMEM;
    if (name) w->followed[w->followed_count++] = name;
    return !w->status;
}

static int choose_document(watching *w, watched *item, const char *name) {
    const char *hash = strchr(name, '#');
    char *document = strndup(name, strcspn(name, "#"));
    hd_cell cell;
    if (!document) return cli_fail(w->s.c, CLI_INTERNAL, NULL, "out of memory");
    int failed = store_cell(&w->s, name, &cell); /* the whole name must be good */
    if (!failed) failed = store_cell(&w->s, document, &item->document);
    free(document);
    if (failed) return failed;
    if (hash) w->status = hd_path_intern(hd_runtime_heap(w->s.rt), hash + 1, &item->path, NULL);
    (void)hd_read(w->s.rt, w->s.pool, item->document); /* known from here on */
    return CLI_OK;
}

static int add_item(watching *w, const char *name) {
    watched *item = &w->items[w->count];
    *item = (watched){ .path = HD_PATH_ROOT };
    int failed = strchr(name, '/') ? choose_document(w, item, name) : CLI_OK;
    if (failed) return failed;
    item->space = strndup(name, strcspn(name, "@/"));
    if (!item->space) w->status = HD_NOMEM;
    w->count++;
    if (!w->status) follow(item->space, w);
    return w->status ? store_fail(&w->s, w->status, name) : CLI_OK;
}

/* ---- What is there already --------------------------------------------------------------- */

static bool print_present(const hd_listing *entry, void *ctx) {
    watching *w = ctx;
    hd_cell cell = hd_cell_of(w->s.rt, entry->space, entry->scope, entry->id, NULL);
    hd_change change = { cell, { 0 }, hd_read(w->s.rt, w->s.pool, cell), entry->seq };
    consider(w, &change);
    hd_pool_clear(w->s.pool);
    return !w->done && !output_broken() && !interrupted();
}

static void print_all_present(watching *w) {
    for (size_t i = 0; i < w->followed_count && !w->done && !w->status; i++)
        w->status = hd_runtime_list(w->s.rt, w->followed[i], NULL, NULL, print_present, w);
}

/* ---- The loop ---------------------------------------------------------------------------- */

static void look_for_new_spaces(watching *w) {
    size_t known = w->followed_count;
    hd_status status = hd_runtime_spaces(w->s.rt, follow, w);
    if (!w->status) w->status = status;
    /* Print what was committed in these spaces before the watch followed them. */
    for (; known < w->followed_count && !w->status; known++)
        w->status = hd_runtime_list(w->s.rt, w->followed[known], NULL, NULL, print_present, w);
}

static int loop(watching *w) {
    while (!w->done && !w->status && !interrupted() && !output_broken()) {
        hd_status status = hd_runtime_pump(w->s.rt);
        if (status && status != HD_PENDING) w->status = status;
        if (!w->count && !w->done && !w->status) look_for_new_spaces(w);
        if (!w->done && !w->status && status != HD_PENDING) store_wait(&w->s);
    }
    return w->status ? store_fail(&w->s, w->status, w->s.file) : CLI_OK;
}

static int start(watching *w) {
    const cli *c = w->s.c;
    int failed = CLI_OK;
    for (size_t i = 1; i < c->operand_count && !failed; i++) failed = add_item(w, c->operands[i]);
    if (!failed) drop_repeated(w);
    hd_status status = HD_OK;
    if (!failed && !w->count) status = hd_runtime_spaces(w->s.rt, follow, w);
    if (!failed && !status && !w->status) status = hd_runtime_listen(w->s.rt, on_notice, w);
    if (!failed && (status || w->status))
        failed = store_fail(&w->s, status ? status : w->status, w->s.file);
    if (!failed && option_given(c, "now")) print_all_present(w);
    if (!failed && c->progress && !c->json) fprintf(stderr, "watching; Ctrl-C ends\n");
    return failed;
}

static int run(cli *c) {
    watching w = { .paths = option_given(c, "paths") };
    int failed = option_number(c, "count", &w.left);
    if (!failed && option_given(c, "count") && !w.left)
        failed = cli_fail(c, CLI_USAGE, NULL, "--count is a number from 1");
    if (failed) return failed;
    w.items = calloc(c->operand_count, sizeof *w.items);
    if (!w.items) return cli_fail(c, CLI_INTERNAL, NULL, "out of memory");
    failed = store_open(c, &w.s, c->operands[0], STORE_READ);
    if (!failed) failed = start(&w);
    if (!failed) failed = loop(&w);
    for (size_t i = 0; i < w.followed_count; i++) free(w.followed[i]);
    for (size_t i = 0; i < w.count; i++) free(w.items[i].space);
    free(w.followed);
    free(w.items);
    return store_close(&w.s, failed);
}

const command command_watch = {
    .name = "watch",
    .also = "cells watch",
    .section = "Cells",
    .operands = "FILE [SPACE | CELL]...",
    .least = 1,
    .most = SIZE_MAX,
    .summary = "print each change as it is committed",
    .text = "Prints one line for each change of a document, by whatever process, when it is on "
            "disk: the seq of the commit, the document, and what changed in it. Everything in the "
            "file, or the spaces and cells named; a commit that changes several of them has a line "
            "for each. Ctrl-C ends it, with status 0; it fails when the file is deleted or "
            "replaced.\n\n"
            "With --json a line is {\"space\", \"id\", \"seq\", \"before\", \"after\"}; before or "
            "after is missing where there was, or is, no value.",
    .options =
        (const cli_option[]){
            { "count", "N", "end after N changes" },
            { "now", NULL, "first print what is there, as if it had just come" },
            { "paths", NULL, "with --json: \"changes\" by path, not the whole value" },
            OPTION_USER,
            { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){ { "heddle watch shop.db", "everything" },
                               { "heddle watch shop.db main/stock#/apples", "one place" },
                               { "heddle watch shop.db main --json --paths", "for a program" },
                               { NULL, NULL } },
    .run = run,
};

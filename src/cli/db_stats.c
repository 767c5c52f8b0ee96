/* db_stats.c -- how large a store is, what is in it, and which programs use it.
 *
 * The figures are gathered first and then printed, as text or as JSON, so that both say the same. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/shown.h"
#include "cli/store.h"
#include "cli/tables.h"
#include "store/sqlite/backend.h"
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_WIDTH = 18 };

/* Documents of one kind in one space. */
typedef struct kind_count {
    const char *space, *kind; /* of the store's pool */
    uint64_t documents;
} kind_count;

typedef struct space_count {
    const char *name; /* of the store's pool */
    uint64_t checkpoint, floor;
} space_count;

typedef struct stats {
    cli *c;
    hd_pool *pool; /* the store's */
    store_sizes sizes;
    bool file; /* it is one, and not on a server */
    uint64_t wal_bytes, page_size, pages, free_pages;
    kind_count *kinds;
    size_t kind_count;
    space_count *spaces;
    size_t space_count;
    bool no_memory;
} stats;

/* ---- Gathering --------------------------------------------------------------------------- */

/* A copy that stays until the store is closed. */
static const char *kept(stats *st, const char *text) {
    const char *copy = hd_value_as_text(hd_string(st->pool, text), NULL);
    st->no_memory |= !copy;
    return copy ? copy : "";
}

static bool count_document(const hd_listing *entry, void *ctx) {
    stats *st = ctx;
    for (size_t i = 0; i < st->kind_count; i++) {
        kind_count *k = &st->kinds[i];
        if (strcmp(k->space, entry->space) || strcmp(k->kind, entry->kind)) continue;
        k->documents++;
        return true;
    }
    kind_count *larger = realloc(st->kinds, (st->kind_count + 1) * sizeof *larger);
    if (!larger) return !(st->no_memory = true);
    st->kinds = larger;
    st->kinds[st->kind_count++] =
        (kind_count){ kept(st, entry->space), kept(st, entry->kind), .documents = 1 };
    return !st->no_memory;
}

static bool add_space(const char *name, void *ctx) {
    stats *st = ctx;
    space_count *larger = realloc(st->spaces, (st->space_count + 1) * sizeof *larger);
    if (!larger) return !(st->no_memory = true);
    st->spaces = larger;
    st->spaces[st->space_count++] = (space_count){ .name = kept(st, name) };
    return !st->no_memory;
}

static int count_documents(stats *st, store *s) {
    st->pool = s->pool;
    hd_status status = hd_runtime_spaces(s->rt, add_space, st);
    for (size_t i = 0; i < st->space_count && !status; i++)
        status = hd_runtime_list(s->rt, st->spaces[i].name, NULL, NULL, count_document, st);
    if (st->no_memory) status = HD_NOMEM;
    return status ? store_fail(s, status, s->file) : CLI_OK;
}

static hd_status take_space(void *ctx, const space_row *row, bool *stop) {
    stats *st = ctx;
    (void)stop;
    for (size_t i = 0; i < st->space_count; i++) {
        space_count *space = &st->spaces[i];
        if (strlen(space->name) != row->name.length ||
            memcmp(space->name, row->name.bytes, row->name.length))
            continue;
        space->checkpoint = (uint64_t)row->seq;
        space->floor = (uint64_t)row->floor;
    }
    return HD_OK;
}

static int read_tables(stats *st, tables *t) {
    hd_status status = t->store->ops->each_space(t->store, take_space, st);
    if (!status) status = t->store->ops->measure(t->store, &st->sizes);
    return status ? tables_fail(t, status, "reading") : CLI_OK;
}

static uint64_t pragma(sqlite3 *db, const char *sql) {
    sqlite3_stmt *s = NULL;
    uint64_t n = 0;
    if (!sqlite3_prepare_v2(db, sql, -1, &s, NULL) && sqlite3_step(s) == SQLITE_ROW)
        n = (uint64_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void read_pages(stats *st, const tables *t) {
    st->file = !is_address(t->file);
    if (!st->file) return;
    sqlite3 *db = sqlite_connection(t->store);
    st->wal_bytes = file_size(t->file, "-wal");
    st->page_size = pragma(db, "pragma page_size");
    st->pages = pragma(db, "pragma page_count");
    st->free_pages = pragma(db, "pragma freelist_count");
}

/* ---- Printing ---------------------------------------------------------------------------- */

static void print_json(const stats *st, const char *file) {
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "file", file);
    record_number(&r, "format", st->sizes.format);
    record_number(&r, "bytes", st->sizes.bytes);
    if (st->file) {
        record_number(&r, "wal_bytes", st->wal_bytes);
        record_number(&r, "page_size", st->page_size);
        record_number(&r, "pages", st->pages);
        record_number(&r, "free_pages", st->free_pages);
    }
    record_number(&r, "log_rows", st->sizes.log_rows);
    record_number(&r, "log_bytes", st->sizes.log_bytes);
    record_number(&r, "log_first_row", st->sizes.first_row);
    record_number(&r, "log_last_row", st->sizes.last_row);
    record_number(&r, "checkpoint_row", st->sizes.checkpoint);
    record_number(&r, "tail_rows", st->sizes.tail_rows);
    record_number(&r, "tail_bytes", st->sizes.tail_bytes);
    record_number(&r, "large_documents", st->sizes.large);
    record_number(&r, "tombstones", st->sizes.tombstones);
    record_number(&r, "nodes", st->sizes.memos);
    record_number(&r, "sessions", st->sizes.sessions);
    record_number(&r, "readers", st->sizes.readers);
    record_open(&r, "spaces", '[');
    for (size_t i = 0; i < st->space_count; i++) {
        record_open(&r, NULL, '{');
        record_text(&r, "space", st->spaces[i].name);
        record_number(&r, "checkpoint_seq", st->spaces[i].checkpoint);
        record_number(&r, "floor_seq", st->spaces[i].floor);
        record_close(&r, '}');
    }
    record_close(&r, ']');
    record_open(&r, "documents", '[');
    for (size_t i = 0; i < st->kind_count; i++) {
        record_open(&r, NULL, '{');
        record_text(&r, "space", st->kinds[i].space);
        record_text(&r, "kind", st->kinds[i].kind);
        record_number(&r, "count", st->kinds[i].documents);
        record_close(&r, '}');
    }
    record_close(&r, ']');
    record_close(&r, '}');
    record_end(&r);
}

static void print_kind(const cli *c, const kind_count *k) {
    printf("  ");
    print_name(c, *k->kind ? k->kind : "no kind", KIND_WIDTH, 2);
    printf(" %10" PRIu64 "\n", k->documents);
}

static void print_spaces(const stats *st) {
    for (size_t i = 0; i < st->space_count; i++) {
        const space_count *row = &st->spaces[i];
        printf("\nspace ");
        print_plain(stdout, row->name);
        printf("  (checkpoint at seq %" PRIu64 ", history from seq %" PRIu64 ")\n", row->checkpoint,
               row->floor + 1);
        for (size_t k = 0; k < st->kind_count; k++)
            if (strcmp(st->kinds[k].space, row->name) == 0) print_kind(st->c, &st->kinds[k]);
    }
}

static void print_room(const stats *st) {
    char a[SIZE_TEXT], b[SIZE_TEXT];
    if (!st->file) {
        printf("  %-16s %10s   tables with their indexes\n", "server",
               size_text(st->sizes.bytes, a));
        return;
    }
    printf("  %-16s %10s   WAL beside it %s\n", "file", size_text(st->sizes.bytes, a),
           size_text(st->wal_bytes, b));
    printf("  %-16s %10" PRIu64 "   of %" PRIu64 " bytes, %" PRIu64 " free\n", "pages", st->pages,
           st->page_size, st->free_pages);
}

static void print_text(const stats *st, const char *file) {
    char a[SIZE_TEXT];
    print_plain(stdout, file);
    printf("  heddle store, format %" PRIu64 "\n\n", st->sizes.format);
    print_room(st);
    printf("  %-16s %10" PRIu64 "   rows %" PRIu64 " to %" PRIu64 ", %s\n", "log",
           st->sizes.log_rows, st->sizes.first_row, st->sizes.last_row,
           size_text(st->sizes.log_bytes, a));
    printf("  %-16s %10" PRIu64 "   rows after the checkpoint, %s\n", "log tail",
           st->sizes.tail_rows, size_text(st->sizes.tail_bytes, a));
    printf("  %-16s %10" PRIu64 "   with a row of their own\n", "large documents", st->sizes.large);
    printf("  %-16s %10" PRIu64 "   deleted documents that are remembered\n", "tombstones",
           st->sizes.tombstones);
    printf("  %-16s %10" PRIu64 "   of which is known what they have read\n", "nodes",
           st->sizes.memos);
    printf("  %-16s %10" PRIu64 "   pruning waits for %" PRIu64 "\n", "open sessions",
           st->sizes.sessions > st->sizes.readers ? st->sizes.sessions : st->sizes.readers,
           st->sizes.readers);
    print_spaces(st);
}

static int run(cli *c) {
    stats st = { .c = c };
    store s;
    tables t = { 0 };
    int failed = store_open(c, &s, c->operands[0], STORE_READ);
    if (!failed) failed = count_documents(&st, &s);
    if (!failed) failed = tables_open(c, &t, c->operands[0]);
    if (!failed) failed = read_tables(&st, &t);
    if (!failed) read_pages(&st, &t);
    if (!failed && c->json) print_json(&st, s.file);
    else if (!failed) print_text(&st, s.file);
    tables_close(&t);
    free(st.kinds);
    free(st.spaces);
    return store_close(&s, failed);
}

const command command_db_stats = {
    .name = "db stats",
    .section = "The file",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "sizes, documents by kind, log, who has it open",
    .text = "The file's size and pages, the log and how much of it is after the checkpoint, and "
            "for each space its documents by kind. User documents of others are not counted.",
    .examples = (const cli_example[]){ { "heddle db stats shop.db", "for a look" },
                                       { "heddle db stats shop.db --json", "for a program" },
                                       { NULL, NULL } },
    .run = run,
};

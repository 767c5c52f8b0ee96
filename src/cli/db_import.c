/* db_import.c -- documents from lines of JSON, as db export prints them.
 *
 * Lines are gathered into transactions of a bounded size, each committed and on disk before the next
 * begins: memory is bounded, and after an interruption a prefix of the lines is there. Documents of
 * a user or session are written by a runtime with that identity; export sorts by identity, so there
 * are few changes of runtime. */
#define _POSIX_C_SOURCE 200809L
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "cli/store.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH_LINES = 1000, BATCH_BYTES = 4 << 20, REOPEN_BATCHES = 64 };

/* The scope of a line's document, and the user or session that it belongs to. */
typedef struct identity {
    hd_scope scope; /* HD_SCOPE_HERE: there is none of this name */
    const char *instance;
} identity;

typedef struct importing {
    cli *c;
    store s;
    hd_tx *tx;                      /* NULL between batches */
    size_t lines, bytes;            /* in this batch */
    size_t batches;                 /* of this runtime */
    bool made;                      /* the runtime is that of the store */
    uint64_t line;                  /* number of the present one, for messages */
    uint64_t first_line, last_line; /* of this batch */
    uint64_t documents;             /* committed or about to be */
    uint64_t read, size;            /* bytes of the input; 0: not known */
    identity who;                   /* the runtime's */
    char *instance;                 /* the text in `who`; owned */
    FILE *from;
    char where[64]; /* "line 3", for messages */
} importing;

/* ---- Batches ----------------------------------------------------------------------------- */

static int finish_batch(importing *m) {
    if (!m->tx) return CLI_OK;
    hd_tx *tx = m->tx;
    char which[64];
    snprintf(which, sizeof which, "lines %" PRIu64 " to %" PRIu64, m->first_line, m->last_line);
    m->tx = NULL;
    m->lines = m->bytes = 0;
    m->batches++;
    int failed = store_commit(&m->s, tx, which);
    hd_pool_clear(m->s.pool);
    progress_bar(m->c, m->size ? "import" : "imported documents:", m->size ? m->read : m->documents,
                 m->size);
    return failed;
}

static int begin_batch(importing *m) {
    if (m->tx) return CLI_OK;
    m->first_line = m->line;
    hd_status status = hd_tx_begin(m->s.rt, &m->tx);
    return status ? store_fail(&m->s, status, m->where) : CLI_OK;
}

static hd_scope scope_named(const char *word) {
    return strcmp(word, "user") == 0      ? HD_SCOPE_USER
           : strcmp(word, "session") == 0 ? HD_SCOPE_SESSION
           : strcmp(word, "space") == 0   ? HD_SCOPE_SPACE
                                          : HD_SCOPE_HERE;
}

/* The instance is borrowed from the line. */
static identity identity_of(hd_value line) {
    return (identity){ scope_named(hd_value_as_text(hd_value_at(line, "scope"), "space")),
                       hd_value_as_text(hd_value_at(line, "instance"), "") };
}

/* A runtime keeps in memory the documents that it wrote: after some batches a new one is opened. The first line is read
 * by a runtime without a file, so that input of another form leaves no new file behind. */
static bool needs_another_runtime(const importing *m, const identity *who) {
    if (!m->made) return true;
    if (m->who.scope != who->scope || strcmp(m->who.instance, who->instance)) return true;
    return !m->tx && m->batches >= REOPEN_BATCHES;
}

/* `who` is borrowed from a value of the runtime that is closed here, so its text is copied first. */
static int reopen(importing *m, const identity *who) {
    char *instance = strdup(who->instance);
    hd_scope scope = who->scope;
    int failed = finish_batch(m);
    failed = store_close(&m->s, failed);
    if (!failed && !instance) failed = cli_fail(m->c, CLI_INTERNAL, NULL, "out of memory");
    if (failed) {
        free(instance);
        return failed;
    }
    free(m->instance);
    m->instance = instance;
    m->who = (identity){ scope, instance };
    m->batches = 0;
    m->made = true;
    return store_open_as(m->c, &m->s, m->c->operands[0], STORE_CREATE,
                         scope == HD_SCOPE_USER ? instance : NULL,
                         scope == HD_SCOPE_SESSION ? instance : NULL);
}

/* ---- One line ---------------------------------------------------------------------------- */

static int bad_line(importing *m, const char *what) {
    return cli_fail(m->c, CLI_INPUT,
                    "A line is {\"space\": \"main\", \"id\": \"a\", \"value\": ...}; see "
                    "\"heddle db export --help\".",
                    "%s: %s", m->where, what);
}

static bool is_known(const char *key) {
    static const char *const keys[] = {
        "space", "id", "scope", "instance", "kind", "meta", "value"
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

static int check_keys(importing *m, hd_value line) {
    char what[80];
    if (hd_value_kind(line) != HD_KIND_OBJECT) return bad_line(m, "it is no object");
    for (hd_iter it = hd_iter_of(line); hd_iter_next(&it);) {
        if (is_known(it.key)) continue;
        snprintf(what, sizeof what, "there is no key \"%.40s\"", it.key);
        return bad_line(m, what);
    }
    return CLI_OK;
}

/* Refuses a line with a member that is unknown or of the wrong kind, so that nothing of it is ignored. */
static int check_line(importing *m, hd_value line) {
    static const char *const texts[] = { "space", "id", "scope", "instance", "kind" };
    char what[80];
    hd_value meta = hd_value_at(line, "meta");
    int failed = check_keys(m, line);
    if (failed) return failed;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t length;
        hd_value v = hd_value_at(line, texts[i]);
        const char *text = hd_value_text(v, &length);
        if (!hd_value_exists(v) || (text && strlen(text) == length)) continue;
        snprintf(what, sizeof what, "\"%s\" must be a text without NUL", texts[i]);
        return bad_line(m, what);
    }
    if (hd_value_exists(meta) && hd_value_kind(meta) != HD_KIND_OBJECT)
        return bad_line(m, "\"meta\" must be an object");
    if (!hd_value_exists(hd_value_at(line, "space")) || !hd_value_exists(hd_value_at(line, "id")) ||
        !hd_value_exists(hd_value_at(line, "value")))
        return bad_line(m, "\"space\", \"id\" or \"value\" is missing");
    return CLI_OK;
}

static hd_status set_properties(importing *m, hd_cell document, hd_value line) {
    hd_status status = HD_OK;
    const char *kind = hd_value_as_text(hd_value_at(line, "kind"), "");
    if (*kind) status = hd_tx_set_kind(m->tx, document, kind);
    for (hd_iter it = hd_iter_of(hd_value_at(line, "meta")); !status && hd_iter_next(&it);)
        status = hd_tx_set_meta(m->tx, document, it.key, it.value);
    return status;
}

static int import_value(importing *m, hd_value line, hd_scope scope) {
    const char *space = hd_value_as_text(hd_value_at(line, "space"), "");
    const char *id = hd_value_as_text(hd_value_at(line, "id"), "");
    hd_value value = hd_value_at(line, "value");
    hd_cell document = hd_cell_of(m->s.rt, space, scope, id, NULL);
    if (!document.id) return bad_line(m, hd_runtime_error(m->s.rt)->message);
    hd_status status = option_given(m->c, "new") ? hd_tx_require_absent(m->tx, document) : HD_OK;
    if (!status) status = hd_tx_set(m->tx, document, value);
    if (!status) status = set_properties(m, document, line);
    if (status) return store_fail(&m->s, status, m->where);
    m->documents++;
    return CLI_OK;
}

/* Values live in their runtime's heap: a line that needs another runtime is parsed once more. */
static int import_line(importing *m, const char *text, size_t length) {
    hd_value line;
    snprintf(m->where, sizeof m->where, "line %" PRIu64, m->line);
    int failed = store_parse(&m->s, "input", (uint32_t)m->line - 1, text, length, &line);
    if (!failed) failed = check_line(m, line);
    if (failed) return failed;
    identity who = identity_of(line);
    hd_scope scope = who.scope;
    if (scope == HD_SCOPE_HERE) return bad_line(m, "there is no such scope");
    if (needs_another_runtime(m, &who)) {
        failed = reopen(m, &who);
        if (!failed)
            failed = store_parse(&m->s, "input", (uint32_t)m->line - 1, text, length, &line);
    }
    if (!failed) failed = begin_batch(m);
    if (!failed) failed = import_value(m, line, scope);
    m->last_line = m->line;
    m->lines++;
    m->bytes += length;
    return failed;
}

/* ---- All lines --------------------------------------------------------------------------- */

static int import_lines(importing *m) {
    char *text = NULL;
    size_t capacity = 0;
    int failed = CLI_OK;
    ssize_t length;
    while (!failed && !interrupted() && (length = getline(&text, &capacity, m->from)) >= 0) {
        m->line++;
        m->read += (uint64_t)length;
        if (length && text[length - 1] == '\n') text[--length] = '\0';
        if (!length) continue;
        failed = import_line(m, text, (size_t)length);
        if (!failed && (m->lines >= BATCH_LINES || m->bytes >= BATCH_BYTES))
            failed = finish_batch(m);
    }
    int why = ferror(m->from) ? errno : 0;
    free(text);
    if (!failed && why)
        failed = interrupted()
                     ? interrupted_status()
                     : cli_fail(m->c, CLI_IO, NULL, "cannot read the lines: %s", strerror(why));
    if (!failed) failed = finish_batch(m);
    return failed ? failed : interrupted() ? interrupted_status() : CLI_OK;
}

static void report(const importing *m) {
    if (!m->c->json) {
        printf("%" PRIu64 " document%s imported\n", m->documents, m->documents == 1 ? "" : "s");
        return;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_number(&r, "documents", m->documents);
    record_close(&r, '}');
    record_end(&r);
}

/* Of a file; 0 for a pipe. */
static uint64_t input_size(FILE *from) {
    struct stat s;
    return fstat(fileno(from), &s) == 0 && S_ISREG(s.st_mode) ? (uint64_t)s.st_size : 0;
}

static int run(cli *c) {
    importing m = { .c = c, .from = stdin, .who = { HD_SCOPE_SPACE, "" }, .where = "start" };
    if (c->operand_count > 1 && strcmp(c->operands[1], "-")) m.from = fopen(c->operands[1], "r");
    if (!m.from)
        return cli_fail(c, CLI_NOT_FOUND, NULL, "%s cannot be read: %s", c->operands[1],
                        strerror(errno));
    m.size = input_size(m.from);
    identity all = m.who;
    int failed = store_open(c, &m.s, c->operands[0], STORE_NOWHERE);
    if (!failed) failed = import_lines(&m);
    if (!failed && !m.made) failed = reopen(&m, &all); /* there was no line */
    if (m.tx) hd_tx_abort(m.tx);
    failed = store_close(&m.s, failed);
    progress(c, "%s", "");
    if (m.from != stdin) fclose(m.from);
    free(m.instance);
    if (!failed) report(&m);
    return failed;
}

const command command_db_import = {
    .name = "db import",
    .section = "The file",
    .operands = "FILE [LINES]",
    .least = 1,
    .most = 2,
    .summary = "write documents from lines of JSON",
    .text =
        "Reads lines as \"heddle db export\" prints them, from the file LINES or stdin, and "
        "writes the documents; ones that exist are replaced. The store is created where it is "
        "missing. A thousand lines make a commit: after an error or Ctrl-C a first part of them is "
        "there, and the whole can be run again.",
    .options = (const cli_option[]){ { "new", NULL, "refuse documents that exist; exit with 3" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle db import shop.db shop.jsonl", "load a file" },
                                       { NULL, NULL } },
    .run = run,
};

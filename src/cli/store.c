/* store.c -- a store as commands use it. */
#define _POSIX_C_SOURCE 200809L
#include "cli/store.h"

#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/shown.h"
#include "cli/signals.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HINT_SIZE = 8192, /* it is to be copied: names in it are whole */
    LOOK_MS = 20      /* how often a command looks that cannot be woken */
};

/* ---- Opening ----------------------------------------------------------------------------- */

static void log_line(hd_log_level level, const char *line, void *ctx) {
    if (level <= HD_LOG_WARN) cli_warn(ctx, "%s", line);
}

static bool is_directory(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_empty(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && !st.st_size;
}

bool store_is_missing(const char *name) { return !is_address(name) && access(name, F_OK); }

int store_home(cli *c, const char *file) {
    struct stat st;
    char home[4096], hint[HINT_SIZE];
    const char *slash = strrchr(file, '/');
    snprintf(home, sizeof home, "%.*s", slash ? (int)(slash - file) : 0, file);
    if (!*home || stat(home, &st) == 0 || errno == EACCES) return CLI_OK;
    snprintf(hint, sizeof hint, "Make it first: mkdir -p %s", home);
    return cli_fail(c, CLI_NOT_FOUND, hint, "the directory of %s does not exist", file);
}

bool store_tell_empty(const cli *c, const char *file) {
    struct stat st;
    if (stat(file, &st) || !S_ISREG(st.st_mode) || st.st_size) return false;
    if (!c->json) {
        print_plain(stdout, file);
        puts(": empty, there is no store in it");
    }
    return true;
}

int store_open_failed(cli *c, const char *file, hd_status status, const hd_error *error) {
    char hint[HINT_SIZE], word[SHOWN_SIZE];
    if (is_address(file))
        return cli_fail(c, status == HD_USAGE ? CLI_USAGE : exit_of(status), NULL, "%s",
                        *error->message ? error->message : hd_status_text(status));
    if (is_directory(file))
        return cli_fail(c, CLI_FILE, "A store is a file: name one in it.", "%s is a directory",
                        file);
    int failed = store_home(c, file);
    if (failed) return failed;
    if (status == HD_NOT_FOUND && access(file, F_OK) && errno == EACCES)
        return cli_fail(c, CLI_FILE, "Give permission to search the directories on its path.",
                        "%s cannot be reached: %s", file, strerror(EACCES));
    if (status == HD_NOT_FOUND) {
        snprintf(hint, sizeof hint, "To create it: heddle set %s main/first '\"hello\"'",
                 shown_word(file, word));
        return cli_fail(c, CLI_NOT_FOUND, hint, "there is no file %s", file);
    }
    if (status == HD_NOT_HEDDLE && is_empty(file)) {
        snprintf(hint, sizeof hint, "To fill it: heddle set %s main/first '\"hello\"'",
                 shown_word(file, word));
        return cli_fail(c, CLI_FILE, hint, "%s is empty: nothing has been stored in it yet", file);
    }
    return cli_fail(c, status == HD_USAGE ? CLI_USAGE : exit_of(status), NULL, "%s",
                    *error->message ? error->message : hd_status_text(status));
}

int store_open_as(cli *c, store *s, const char *file, store_mode mode, const char *principal,
                  const char *session) {
    *s = (store){ .c = c, .file = file };
    if (is_address(file)) s->file = shown(file, c->address);
    /* The system's functions ignore ctx, so it can point to this command's data. */
    hd_env env = hd_env_system();
    env.ctx = c;
    env.log = log_line;
    hd_options options = { .env = &env,
                           .principal = principal,
                           .session = session,
                           .read_only = mode == STORE_READ,
                           .must_exist = mode == STORE_READ || mode == STORE_WRITE };
    hd_error error = { 0 };
    hd_status status = hd_open(mode == STORE_NOWHERE ? NULL : file, &options, &s->rt, &error);
    if (status) return store_open_failed(c, file, status, &error);
    status = hd_pool_open(hd_runtime_heap(s->rt), &s->pool);
    return status ? store_fail(s, status, file) : CLI_OK;
}

static void note_user(void *ctx, size_t index, const cli_option *option) {
    if (strcmp(option->name, "user") == 0) *(size_t *)ctx = index;
}

int store_open(cli *c, store *s, const char *file, store_mode mode) {
    size_t at = SIZE_MAX;
    *s = (store){ .c = c, .file = file };
    command_options(c->command, note_user, &at);
    const char *user = at == SIZE_MAX ? NULL : c->values[at];
    if (user && !*user)
        return cli_fail(c, CLI_USAGE, NULL, "--user: the name of a user is not empty");
    return store_open_as(c, s, file, mode, user, NULL);
}

int store_close(store *s, int status) {
    if (!s->rt) return status;
    hd_pool_close(s->pool);
    hd_status closed = hd_close(s->rt);
    s->rt = NULL;
    if (status || !closed) return status;
    return cli_fail(s->c, exit_of(closed), NULL, "%s: %s", s->file, hd_status_text(closed));
}

int store_fail(store *s, hd_status status, const char *what) {
    const hd_error *error = hd_runtime_error(s->rt);
    const char *words =
        error->status == status && *error->message ? error->message : hd_status_text(status);
    return cli_fail(s->c, exit_of(status), NULL, "%s: %s", what, words);
}

/* ---- Names and values -------------------------------------------------------------------- */

int store_cell(store *s, const char *name, hd_cell *out) {
    *out = hd_cell_at(s->rt, name);
    if (out->id) return CLI_OK;
    return cli_fail(s->c, CLI_INPUT, "\"heddle help cells\" tells how cells are named.", "%s",
                    hd_runtime_error(s->rt)->message);
}

const char *scope_suffix(hd_scope scope) {
    return scope == HD_SCOPE_USER ? "@user" : scope == HD_SCOPE_SESSION ? "@session" : "";
}

const char *store_cell_name(store *s, hd_cell cell) {
    size_t length = hd_cell_print(s->rt, cell, NULL, 0);
    char *text = malloc(length + 1);
    if (!text) return "";
    hd_cell_print(s->rt, cell, text, length + 1);
    hd_value name = hd_string_n(s->pool, text, length);
    free(text);
    return hd_value_as_text(name, "");
}

typedef struct space_search {
    const char *name;
    bool found;
    nearest near;
} space_search;

static bool match_space(const char *space, void *ctx) {
    space_search *search = ctx;
    nearest_offer(&search->near, space);
    search->found = strcmp(space, search->name) == 0;
    return !search->found;
}

int store_space(store *s, const char *space) {
    space_search search = { .name = space, .near = nearest_to(space) };
    hd_status status = hd_runtime_spaces(s->rt, match_space, &search);
    if (status) return store_fail(s, status, s->file);
    if (search.found) return CLI_OK;
    char hint[HINT_SIZE], word[SHOWN_SIZE];
    if (*search.near.best) snprintf(hint, sizeof hint, "Did you mean %s?", search.near.best);
    else
        snprintf(hint, sizeof hint, "\"heddle ls %s\" lists the spaces.",
                 shown_word(s->file, word));
    return cli_fail(s->c, CLI_NOT_FOUND, hint, "there is no space \"%s\" in %s", space, s->file);
}

/* All of stdin, with a NUL; NULL when it cannot be read. Free it. */
static char *read_all(size_t *length) {
    char *text = NULL;
    size_t capacity = 0;
    *length = 0;
    for (;;) {
        if (capacity - *length < 4096) {
            char *larger = realloc(text, capacity = capacity * 2 + 16384);
            if (!larger) break;
            text = larger;
        }
        size_t got = fread(text + *length, 1, capacity - *length - 1, stdin);
        *length += got;
        if (got) continue;
        if (ferror(stdin)) break;
        text[*length] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* It is kept: a command that is tried on a store in memory first reads it twice. */
static const char *read_stdin(cli *c, size_t *length) {
    if (!c->input) c->input = read_all(&c->input_length);
    *length = c->input_length;
    return c->input;
}

static const char *json_hint(const char *text, char *out, size_t size) {
    if (!*text || strpbrk(text, "\"{}[]\\\n") || strlen(text) > 60) return NULL;
    snprintf(out, size, "Text needs quotes: '\"%s\"'", text);
    return out;
}

int store_parse(store *s, const char *what, uint32_t above, const char *text, size_t length,
                hd_value *out) {
    hd_error error = { 0 };
    *out = hd_json_parse(s->pool, text, length, &error);
    if (hd_value_exists(*out)) return CLI_OK;
    if (!error.line) return store_fail(s, hd_value_status(*out), what);
    error.line += above;
    char hint[256];
    return cli_fail_text(s->c, what, text, json_hint(text, hint, sizeof hint), &error);
}

static int no_stdin(store *s) {
    if (interrupted()) return interrupted_status();
    return cli_fail(s->c, CLI_IO, NULL, "cannot read the value from stdin");
}

int store_json(store *s, const char *what, const char *text, hd_value *out) {
    if (strcmp(text, "-")) return store_parse(s, what, 0, text, strlen(text), out);
    size_t length;
    const char *read = read_stdin(s->c, &length);
    return read ? store_parse(s, "stdin", 0, read, length, out) : no_stdin(s);
}

int store_text(store *s, const char *what, const char *text, hd_value *out) {
    size_t length = strlen(text);
    if (strcmp(text, "-") == 0) {
        text = read_stdin(s->c, &length);
        if (!text) return no_stdin(s);
        if (length && text[length - 1] == '\n') length--;
    }
    *out = hd_string_n(s->pool, text, length);
    return hd_value_status(*out) ? store_fail(s, hd_value_status(*out), what) : CLI_OK;
}

/* ---- Commits ----------------------------------------------------------------------------- */

static void note_verdict(hd_status status, void *ctx) {
    store *s = ctx;
    s->decided = true;
    s->verdict = status;
}

/* How long until `deadline`, as poll() takes it: rounded up, -1 for never. */
static int ms_until(const hd_env *env, uint64_t deadline) {
    if (deadline == UINT64_MAX) return -1;
    uint64_t now = env->monotonic_ns(env->ctx);
    if (deadline <= now) return 0;
    uint64_t ms = (deadline - now + 999999) / 1000000;
    return ms > 60000 ? 60000 : (int)ms;
}

void store_wait(store *s) { store_wait_until(s, UINT64_MAX); }

/* Without a descriptor (the process has none left) nothing wakes the command: it looks again after a moment. */
void store_wait_until(store *s, uint64_t end) {
    int fd = hd_runtime_fd(s->rt);
    uint64_t deadline = hd_runtime_deadline(s->rt);
    int ms = ms_until(hd_runtime_env(s->rt), deadline < end ? deadline : end);
    if (fd < 0 && (ms < 0 || ms > LOOK_MS)) ms = LOOK_MS;
    if (ms) wait_readable(fd, ms);
}

int store_refused(store *s, hd_status status, const char *what) {
    if (status == HD_HASH_DIFFERS)
        return cli_fail(s->c, CLI_CONFLICT, "Read it again and decide anew.",
                        "%s: the present value is not the one given with --if", what);
    if (status == HD_EXISTS)
        return cli_fail(s->c, CLI_CONFLICT, "Leave --new out to replace it.",
                        "%s: the document exists already, or did once", what);
    if (status == HD_BUSY)
        return cli_fail(s->c, CLI_IO, "Nothing was stored: try again when it has finished.",
                        "%s: another program keeps %s locked", what, s->file);
    if (status == HD_FULL)
        return cli_fail(s->c, CLI_IO, "Nothing was stored: make room, and run it again.",
                        "%s: the disk is full", what);
    return store_fail(s, status, what);
}

int store_commit(store *s, hd_tx *tx, const char *what) {
    s->decided = false;
    hd_status status = hd_tx_commit(tx, note_verdict, s);
    while (!status && !s->decided && !interrupted()) {
        status = hd_runtime_pump(s->rt);
        if (status == HD_PENDING) status = HD_OK;
        else if (!status && !s->decided) store_wait(s);
    }
    if (!status && !s->decided) return interrupted_status(); /* closing still syncs it */
    if (!status) status = s->verdict;
    return status ? store_refused(s, status, what) : CLI_OK;
}

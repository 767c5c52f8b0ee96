/* readers.c -- rows of `reader` and `session`. */
#define _GNU_SOURCE
#include "store/log/readers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Processes ------------------------------------------------------------------------------- */

uint64_t process_started(int64_t pid) {
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%lld/stat", (long long)pid);
    FILE *in = fopen(name, "re");
    if (!in) return 0;
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = '\0';
    /* The command in parentheses may hold anything; the 22nd field is the 20th behind it. */
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    unsigned long long started;
    return at && sscanf(at, "%llu", &started) == 1 ? started : 0;
}

static bool process_lives(int64_t pid, uint64_t started) {
    if (kill((pid_t)pid, 0) && errno == ESRCH) return false;
    uint64_t now = process_started(pid);
    return !now || !started || now == started;
}

/* ---- Our rows -------------------------------------------------------------------------------- */

static uint64_t seen_by_runtime(writer *w) {
    pthread_mutex_lock(&w->lock);
    uint64_t seen = w->seen;
    pthread_mutex_unlock(&w->lock);
    return seen;
}

/* [[local seq, payload, "HD_STALE", seq], ...] of what is not settled. */
static hd_status print_verdicts(const head_session *session, json_buffer *b) {
    char item[128];
    for (uint32_t i = 0; i <= session->verdicts.count; i++) {
        const decided *d = i < session->verdicts.count ? &session->verdicts.items[i] : NULL;
        int n = d ? snprintf(item, sizeof item, "%s[%llu,%lld,\"%s\",%llu]", i ? "," : "[",
                             (unsigned long long)d->local_seq, (long long)d->payload,
                             hd_status_name(d->status), (unsigned long long)d->seq)
                  : snprintf(item, sizeof item, i ? "]" : "[]");
        if (!json_buffer_grow(b, (size_t)n)) return HD_NOMEM;
        memcpy(b->bytes + b->length, item, (size_t)n);
        b->length += (size_t)n;
    }
    return HD_OK;
}

static hd_status put_session(writer *w) {
    const head_session *session = &w->heads.sessions.items[w->session_index];
    json_buffer text;
    json_buffer_init(&text, &w->env);
    hd_status status = print_verdicts(session, &text);
    sqlite3_stmt *s = status ? NULL : file_sql_get(&w->file, SQL_SESSION_PUT);
    if (s) {
        sqlite3_bind_text(s, 1, w->session_text, 32, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, getpid());
        sqlite3_bind_int64(s, 3, (sqlite3_int64)session->settled);
        sqlite3_bind_int64(s, 4, (sqlite3_int64)session->last);
        sqlite3_bind_text64(s, 5, text.bytes, text.length, SQLITE_STATIC, SQLITE_UTF8);
        status = file_finish(&w->file, s);
    } else if (!status) status = file_status(sqlite3_extended_errcode(w->file.db));
    json_buffer_fini(&text);
    return status;
}

hd_status log_readers_put(writer *w) {
    sqlite3_stmt *s = file_sql_get(&w->file, SQL_READER_PUT);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_text(s, 1, w->session_text, 32, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, getpid());
    sqlite3_bind_int64(s, 3, (sqlite3_int64)process_started(getpid()));
    w->told = seen_by_runtime(w);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)w->told);
    hd_status status = file_finish(&w->file, s);
    return status ? status : put_session(w);
}

hd_status log_readers_move(writer *w) {
    sqlite3_stmt *s = file_sql_get(&w->file, SQL_READER_MOVE);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    w->told = seen_by_runtime(w);
    sqlite3_bind_text(s, 1, w->session_text, 32, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)w->told);
    return file_finish(&w->file, s);
}

static hd_status drop(writer *w, file_sql which, const char *session) {
    sqlite3_stmt *s = file_sql_get(&w->file, which);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_text(s, 1, session, -1, SQLITE_TRANSIENT);
    return file_finish(&w->file, s);
}

hd_status log_readers_drop(writer *w) {
    hd_status status = drop(w, SQL_READER_DROP, w->session_text);
    return status ? status : drop(w, SQL_SESSION_DROP, w->session_text);
}

/* ---- Other readers ---------------------------------------------------------------------------- */

/* The lowest position of a reader that lives, if it is below *floor; and one reader that does not:
 * dead[0] is 0 if there is none. */
static hd_status look_at_readers(writer *w, uint64_t *floor, char dead[33]) {
    sqlite3_stmt *s = file_sql_get(&w->file, SQL_READERS);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    int rc;
    dead[0] = '\0';
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *session = (const char *)sqlite3_column_text(s, 0);
        uint64_t position = (uint64_t)sqlite3_column_int64(s, 3);
        bool ours = session && strcmp(session, w->session_text) == 0;
        if (ours || !session) continue;
        if (!process_lives(sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 2)))
            snprintf(dead, 33, "%s", session);
        else if (position < *floor) *floor = position;
    }
    sqlite3_reset(s);
    return file_status(rc);
}

hd_status log_readers_has_dead(writer *w, bool *out) {
    char dead[33];
    uint64_t floor = UINT64_MAX;
    hd_status status = look_at_readers(w, &floor, dead);
    *out = dead[0] != '\0';
    return status;
}

hd_status log_readers_drop_dead(writer *w) {
    char dead[33];
    for (;;) {
        uint64_t floor = UINT64_MAX;
        hd_status status = look_at_readers(w, &floor, dead);
        if (!status && !dead[0]) return HD_OK;
        if (!status) status = drop(w, SQL_READER_DROP, dead);
        if (!status) status = drop(w, SQL_SESSION_DROP, dead);
        if (status) return status;
    }
}

hd_status log_readers_oldest(writer *w, uint64_t *floor) {
    char dead[33];
    uint64_t seen = seen_by_runtime(w);
    if (seen < *floor) *floor = seen;
    return look_at_readers(w, floor, dead);
}

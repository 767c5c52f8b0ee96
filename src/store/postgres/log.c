/* log.c -- the tables log, meta and space. */
#include "store/postgres/store.h"

#include "store/log/columns.h"
#include <assert.h>
#include <string.h>

/* ---- log ---------------------------------------------------------------------------------- */

void pg_forget_winners(pg_store *s) {
    s->conn.pq.PQclear(s->winners);
    s->winners = NULL;
}

/* Sends the append. If other writers append, too, it also asks for the row that another one may have added instead: the
 * writer then judges again without a round trip of its own for that row. */
static hd_status send_append(log_store *s, uint64_t row, uint64_t hash, row_text body) {
    conn *c = conn_of(s);
    conn_args a = { 0 }, winners = { 0 };
    args_number(&a, (int64_t)row);
    args_number(&a, (int64_t)hash);
    winners = a; /* its two numbers stay in `a` */
    args_text(&a, body);
    if (s->contended) args_word(&a, c->waits);
    hd_status status = conn_leave_snapshot(c);
    if (!status) status = conn_send(c, s->contended ? PG_LOG_CONTEND : PG_LOG_APPEND, &a);
    if (!status && s->contended && conn_has_room(c))
        status = conn_send(c, PG_LOG_WINNERS, &winners);
    return status ? status : conn_wait(c);
}

hd_status pg_append(log_store *s, uint64_t row, uint64_t hash, row_text body) {
    pg_store *mine = pg_of(s);
    conn *c = &mine->conn;
    assert(c->mode == CONN_APPEND && row);
    assert(body.length && body.length <= s->text_max + (s->text_max >> 1));
    pg_forget_winners(mine);
    hd_status status = send_append(s, row, hash, body);
    if (status) return status;
    /* PG_LOG_CONTEND gives a row if it has added one; behind it are the winners, if they were asked for. */
    assert(!s->contended || (c->count >= 1 && c->count <= 2));
    bool stored = s->contended ? rows_of(c, c->results[0]) == 1 : c->affected == 1;
    if (!stored && c->count == 2 && rows_of(c, c->results[1])) {
        mine->winners = conn_take(c);
        mine->winners_after = row - 1;
    }
    if (!stored) return HD_RESYNC; /* another writer was faster */
    pg_tell(mine, row);
    return HD_OK;
}

static hd_status tell_texts(conn *c, const PGresult *r, log_text_fn fn, void *ctx, uint64_t *last,
                            bool *stop) {
    hd_status status = HD_OK;
    for (int i = 0; i < rows_of(c, r) && !status && !*stop; i++) {
        log_text text = { .row = (uint64_t)number_at(c, r, i, 0),
                          .hash = (uint64_t)number_at(c, r, i, 1),
                          .body = text_at(c, r, i, 2) };
        if (text.row <= *last)
            return HD_CORRUPT; /* not a log of ours: reading it might never end */
        *last = text.row;
        status = fn(ctx, &text, stop);
    }
    return status;
}

static void take_numbers(pg_store *s, const PGresult *r) {
    const conn *c = &s->conn;
    assert(!s->numbers_known);
    memset(s->number_there, 0, sizeof s->number_there);
    for (int i = 0; i < rows_of(c, r); i++) {
        log_number which =
            strcmp(word_at(c, r, i, 0), number_key(LOG_KEPT)) == 0 ? LOG_KEPT : LOG_CHECKPOINT;
        s->number_there[which] = log_number_of(number_at(c, r, i, 1), &s->numbers[which]);
    }
    s->numbers_known = true;
}

/* The rows that came with the refusal of the last append, if they are those after `after`; else NULL. The numbers that
 * came with them are kept for pg_get_number. */
static PGresult *take_winners(pg_store *s, uint64_t after) {
    PGresult *r = after == s->winners_after ? s->winners : NULL;
    if (r) s->winners = NULL;
    if (r) s->base.told_early = true;
    for (int i = LOG_CHECKPOINT; r && i <= LOG_KEPT; i++) {
        s->beside[i].left = true;
        s->beside[i].there = log_number_of(number_at(&s->conn, r, 0, 3 + i), &s->beside[i].number);
    }
    return r;
}

/* Whether a statement that gives `most` rows may have left rows out. */
static bool is_full_portion(const conn *c, const PGresult *r, int most) {
    size_t bytes = 0;
    int rows = rows_of(c, r);
    for (int i = 0; i < rows; i++) bytes += text_at(c, r, i, 2).length;
    return rows >= most || bytes >= PG_LOG_BYTES;
}

/* Asks for one portion; NULL: *status says why there is none. A transaction that reads the log needs the numbers as
 * well: they are asked for in the same round trip. */
static PGresult *ask_for_portion(pg_store *s, uint64_t after, hd_status *status) {
    conn *c = &s->conn;
    conn_args a = { 0 };
    bool numbers = !s->numbers_known && c->mode != CONN_FREE;
    args_number(&a, (int64_t)after);
    *status = numbers ? conn_send(c, PG_NUMBERS, NULL) : HD_OK;
    if (!*status) *status = conn_ask(c, PG_LOG_AFTER, &a);
    if (*status) return NULL;
    PGresult *r = conn_take(c);
    if (numbers && c->count) take_numbers(s, c->results[c->count - 1]);
    return r;
}

/* Reads one portion: the winners' rows if they are at hand, else rows from the server. *more: there may be another. */
static hd_status read_portion(pg_store *s, uint64_t *after, log_text_fn fn, void *ctx, bool *more) {
    conn *c = &s->conn;
    hd_status status = HD_OK;
    PGresult *r = take_winners(s, *after);
    int most = r ? PG_WINNERS : PG_LOG_ROWS;
    if (!r) r = ask_for_portion(s, *after, &status);
    if (!r) return status;
    bool stop = false;
    *more = is_full_portion(c, r, most);
    status = tell_texts(c, r, fn, ctx, after, &stop);
    if (status) memset(s->beside, 0, sizeof s->beside);
    *more = *more && !stop && !status;
    c->pq.PQclear(r);
    return status;
}

hd_status pg_read_after(log_store *s, uint64_t after, log_text_fn fn, void *ctx) {
    bool more = true;
    hd_status status = HD_OK;
    while (more && !status) status = read_portion(pg_of(s), &after, fn, ctx, &more);
    return status;
}

hd_status pg_read_row(log_store *s, uint64_t row, log_text_fn fn, void *ctx) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    args_number(&a, (int64_t)row);
    hd_status status = conn_ask(c, PG_LOG_ROW, &a);
    if (status) return status;
    PGresult *r = conn_take(c);
    bool stop = false, found = rows_of(c, r) > 0;
    uint64_t last = row - 1;
    assert(row);
    status = tell_texts(c, r, fn, ctx, &last, &stop);
    c->pq.PQclear(r);
    return found ? status : HD_NOT_FOUND;
}

hd_status pg_row_ends(log_store *s, uint64_t *first, uint64_t *last) {
    conn *c = conn_of(s);
    *first = *last = 0;
    hd_status status = conn_ask(c, PG_LOG_ENDS, NULL);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (!r || !rows_of(c, r)) return status;
    *first = (uint64_t)number_at(c, r, 0, 0);
    *last = (uint64_t)number_at(c, r, 0, 1);
    return HD_OK;
}

hd_status pg_has_after(log_store *s, uint64_t after, bool *out) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    args_number(&a, (int64_t)after);
    hd_status status = conn_ask(c, PG_LOG_ANY, &a);
    *out = !status && rows_of(c, c->results[c->count - 1]) > 0;
    return status;
}

hd_status pg_delete_rows(log_store *s, uint64_t row) {
    conn_args a = { 0 };
    assert(row && conn_of(s)->mode == CONN_HOUSEWORK);
    args_number(&a, (int64_t)row);
    return conn_send(conn_of(s), PG_LOG_PRUNE, &a);
}

/* ---- meta --------------------------------------------------------------------------------- */

/* Within a transaction the numbers are read once, since it sees one snapshot. Numbers that came with winners' rows are
 * told first, each once. */
hd_status pg_get_number(log_store *s, log_number which, uint64_t *out) {
    pg_store *mine = pg_of(s);
    conn *c = &mine->conn;
    *out = 0;
    if (mine->beside[which].left) {
        mine->beside[which].left = false;
        *out = mine->beside[which].number;
        return mine->beside[which].there ? HD_OK : HD_NOT_FOUND;
    }
    memset(mine->beside, 0, sizeof mine->beside);
    if (!mine->numbers_known) {
        hd_status status = conn_ask(c, PG_NUMBERS, NULL);
        if (status) return status;
        take_numbers(mine, c->results[c->count - 1]);
    }
    bool there = mine->number_there[which];
    if (there) *out = mine->numbers[which];
    if (c->mode == CONN_FREE) mine->numbers_known = false;
    return there ? HD_OK : HD_NOT_FOUND;
}

hd_status pg_set_number(log_store *s, log_number which, uint64_t value) {
    pg_store *mine = pg_of(s);
    conn_args a = { 0 };
    assert(which < LOG_NUMBERS_ && mine->conn.mode == CONN_HOUSEWORK);
    args_word(&a, number_key(which));
    args_number(&a, (int64_t)value);
    mine->numbers[which] = value;
    return conn_send(&mine->conn, PG_NUMBER_SET, &a);
}

hd_status pg_get_secret(log_store *s, uint8_t out[64], size_t *length) {
    conn *c = conn_of(s);
    *length = 0;
    hd_status status = conn_ask(c, PG_SECRET, NULL);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (!r || !rows_of(c, r)) return status;
    row_text bytes = text_at(c, r, 0, 0);
    *length = bytes.length < 64 ? bytes.length : 64;
    memcpy(out, bytes.bytes, *length);
    return HD_OK;
}

/* ---- space -------------------------------------------------------------------------------- */

typedef struct space_reading {
    space_row_fn fn;
    void *ctx;
} space_reading;

static hd_status tell_space(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    const space_reading *g = ctx;
    space_row row = { text_at(c, r, i, 0), number_at(c, r, i, 1), number_at(c, r, i, 2) };
    return g->fn(g->ctx, &row, stop);
}

hd_status pg_each_space(log_store *s, space_row_fn fn, void *ctx) {
    return conn_each(conn_of(s), PG_SPACES, NULL, tell_space, &(space_reading){ fn, ctx });
}

hd_status pg_get_space(log_store *s, row_text name, uint64_t *seq, uint64_t *floor) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    *seq = *floor = 0;
    args_text(&a, name);
    hd_status status = conn_ask(c, PG_SPACE_GET, &a);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (!r || !rows_of(c, r)) return status;
    bool ok =
        log_number_of(number_at(c, r, 0, 0), seq) && log_number_of(number_at(c, r, 0, 1), floor);
    return ok ? HD_OK : HD_CORRUPT;
}

static hd_status with_seq(log_store *s, pg_sql which, row_text name, uint64_t seq) {
    conn_args a = { 0 };
    assert(conn_of(s)->mode == CONN_HOUSEWORK);
    args_text(&a, name);
    args_number(&a, (int64_t)seq);
    return conn_send(conn_of(s), which, &a);
}

hd_status pg_put_space(log_store *s, row_text name, uint64_t seq) {
    return with_seq(s, PG_SPACE_SET, name, seq);
}

hd_status pg_raise_floor(log_store *s, row_text name, uint64_t seq) {
    hd_status status = with_seq(s, PG_SPACE_FLOOR, name, seq);
    return status ? status : with_seq(s, PG_TOMBSTONES_DROP, name, seq);
}

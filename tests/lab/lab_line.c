/* lab_line.c -- holding, losing and repeating what a replica and its authority say. */
#define _GNU_SOURCE
#include "lab_line.h"

#include "lab.h"
#include "base/poller.h"
#include "store/memo.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lab_line *line_of(authority *a) { return (lab_line *)(void *)a; }
static const lab_line *line_of_const(const authority *a) {
    return (const lab_line *)(const void *)a;
}

/* ---- requests */

static void copy_op(lab_line *line, const op *o, lab_op *out) {
    *out = (lab_op){ .kind = o->kind, .keep = o->keep };
    hd_cell_print(line->rt, (hd_cell){ o->doc }, out->document, sizeof out->document);
    hd_path_print(line->rt->heap, o->path, out->path, sizeof out->path);
    hd_pool *pool = NULL;
    const char *json = NULL;
    if (hd_value_exists(o->value) && !hd_pool_open(line->rt->heap, &pool))
        json = hd_json_print(pool, o->value, HD_JSON_COMPACT, NULL);
    out->json = strdup(json ? json : "-");
    hd_pool_close(pool);
}

static void note_arrival(lab_line *line, const commit *c) {
    lab_arrivals *all = line->arrivals;
    if (c->local_seq <= line->last_arrived) return; /* a replay */
    line->last_arrived = c->local_seq;
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 64;
        all->items = realloc(all->items, all->capacity * sizeof *all->items);
        if (!all->items) lab_fail("no memory for arrivals");
    }
    lab_arrival *arrival = &all->items[all->count++];
    *arrival = (lab_arrival){ line->rt, c->local_seq, NULL, c->ops.count };
    arrival->ops = calloc(c->ops.count + 1, sizeof *arrival->ops);
    if (!arrival->ops) lab_fail("no memory for operations");
    for (uint32_t i = 0; i < c->ops.count; i++) copy_op(line, &c->ops.items[i], &arrival->ops[i]);
}

void lab_arrivals_free(lab_arrivals *all) {
    for (size_t i = 0; i < all->count; i++) {
        for (size_t j = 0; j < all->items[i].op_count; j++) free(all->items[i].ops[j].json);
        free(all->items[i].ops);
    }
    free(all->items);
}

static hd_status line_submit(authority *a, commit *c) {
    lab_line *line = line_of(a);
    if (line->hold_requests) return HD_BUSY;
    if (line->lose_requests) return HD_OK;
    hd_status status = line->inner->ops->submit(line->inner, c);
    if (!status) note_arrival(line, c);
    return status;
}

static void line_flush(authority *a) {
    lab_line *line = line_of(a);
    if (!line->hold_requests && !line->lose_requests) line->inner->ops->flush(line->inner);
}

static void line_start(authority *a) {
    authority *inner = line_of(a)->inner;
    if (inner->ops->start) inner->ops->start(inner);
}

static bool line_turn(authority *a) {
    lab_line *line = line_of(a);
    bool open = !line->hold_answers && !line->gone && line->inner->ops->turn;
    return open && line->inner->ops->turn(line->inner);
}

/* The way to a writer thread does not get lost: what it has is not handed over twice. */
static bool takes_replays(const lab_line *line) { return !line->inner->ops->turn; }

static void submit_again(lab_line *line, list *commits) {
    LIST_FOR (n, commits) {
        commit *c = LIST_ENTRY(n, commit, link);
        if (c->local_seq <= line->last_arrived && !takes_replays(line)) continue;
        if (line->inner->ops->submit(line->inner, c)) lab_fail("a replay was not taken");
        note_arrival(line, c);
    }
}

void lab_line_mend(lab_line *line) {
    line->hold_requests = line->hold_answers = line->lose_requests = false;
    submit_again(line, &line->rt->r.pending);
    line->inner->ops->flush(line->inner);
    line_start(&line->base);
}

/* Nothing is read from the descriptor any more: it must not wake the runtime. */
void lab_line_drop(lab_line *line) {
    int fd = line->inner->ops->fd(line->inner);
    if (fd >= 0 && line->rt->set >= 0) poller_remove(line->rt->set, fd);
    line->gone = line->lose_requests = true;
    line->hold_requests = false;
}

/* ---- answers */

/* So that the runtime can close: its commits end here, whatever the authority made of them. The rest of what was
 * loaded ahead will not be told either; events that wait for it would keep close waiting for ever. */
static hd_status abandon(lab_line *line) {
    replica *r = line->base.replica;
    hd_status status = HD_OK;
    while (!status && !list_empty(&r->pending))
        status = replica_reject(r, LIST_ENTRY(list_first(&r->pending), commit, link), HD_CLOSED);
    replica_caught_up(r);
    return status;
}

static hd_status line_poll(authority *a) {
    lab_line *line = line_of(a);
    if (line->gone) return abandon(line);
    if (line->hold_answers) return HD_OK;
    line->heard = line->arrivals->count;
    return line->inner->ops->poll(line->inner);
}

static uint64_t line_deadline(authority *a) {
    lab_line *line = line_of(a);
    if (line->gone) return list_empty(&line->base.replica->pending) ? UINT64_MAX : 0;
    return line->hold_answers ? UINT64_MAX : line->inner->ops->deadline(line->inner);
}

/* ---- passed on as it is */

#define INNER(a)           line_of(a)->inner
#define PASS(a, call, ...) INNER(a)->ops->call(INNER(a), __VA_ARGS__)

static hd_status line_load(authority *a, place_id doc, loaded *out) {
    return PASS(a, load, doc, out);
}
static void line_rest(authority *a) { INNER(a)->ops->rest(INNER(a)); }
static bool line_idle(const authority *a) {
    const authority *inner = line_of_const(a)->inner;
    return inner->ops->idle(inner);
}
static bool line_reloads(const authority *a) {
    const authority *inner = line_of_const(a)->inner;
    return inner->ops->reloads && inner->ops->reloads(inner);
}
static bool line_wants_derived(const authority *a) {
    const authority *inner = line_of_const(a)->inner;
    return inner->ops->wants_derived(inner);
}
static bool line_shared(const authority *a) {
    const authority *inner = line_of_const(a)->inner;
    return inner->ops->shared(inner);
}
static hd_status line_follow(authority *a, struct key *space) { return PASS(a, follow, space); }
static void line_unfollow(authority *a, const struct key *space) { PASS(a, unfollow, space); }
static hd_status line_keep(authority *a, place_id doc) {
    return INNER(a)->ops->keep ? PASS(a, keep, doc) : HD_OK;
}
static void line_forget(authority *a, place_id doc) {
    if (INNER(a)->ops->forget) PASS(a, forget, doc);
}
static int line_fd(authority *a) { return line_of(a)->gone ? -1 : INNER(a)->ops->fd(INNER(a)); }
static hd_status line_list(authority *a, struct key *space, const list_range *range, hd_list_fn fn,
                           void *ctx) {
    return PASS(a, list, space, range, fn, ctx);
}
static hd_status line_spaces(authority *a, hd_space_fn fn, void *ctx) {
    return PASS(a, spaces, fn, ctx);
}
static hd_status line_checkpoint(authority *a, hd_error *error) {
    return PASS(a, checkpoint, error);
}
static hd_status line_prune(authority *a, hd_error *error) { return PASS(a, prune, error); }
static hd_status line_vacuum(authority *a, hd_error *error) { return PASS(a, vacuum, error); }

static hd_status line_memos(authority *a, const char *piece, memo_fn fn, void *ctx) {
    return PASS(a, memos, piece, fn, ctx);
}
static hd_status line_changes(authority *a, struct key *space, uint64_t seq, change_fn fn,
                              void *ctx) {
    return PASS(a, changes, space, seq, fn, ctx);
}
static hd_status line_metadata(authority *a, place_id doc, hd_value *out) {
    return PASS(a, metadata, doc, out);
}
static hd_status line_seq_of(authority *a, struct key *space, uint64_t *out) {
    return PASS(a, seq_of, space, out);
}
static hd_status line_memo_pieces(authority *a, piece_fn fn, void *ctx) {
    return PASS(a, memo_pieces, fn, ctx);
}

static void line_close(authority *a) {
    INNER(a)->ops->close(INNER(a));
    free(line_of(a));
}

static const authority_ops line_ops = {
    .submit = line_submit,
    .flush = line_flush,
    .start = line_start,
    .turn = line_turn,
    .poll = line_poll,
    .load = line_load,
    .metadata = line_metadata,
    .rest = line_rest,
    .reloads = line_reloads,
    .idle = line_idle,
    .wants_derived = line_wants_derived,
    .shared = line_shared,
    .follow = line_follow,
    .unfollow = line_unfollow,
    .keep = line_keep,
    .forget = line_forget,
    .fd = line_fd,
    .deadline = line_deadline,
    .list = line_list,
    .spaces = line_spaces,
    .checkpoint = line_checkpoint,
    .prune = line_prune,
    .vacuum = line_vacuum,
    .memos = line_memos,
    .memo_pieces = line_memo_pieces,
    .changes = line_changes,
    .seq_of = line_seq_of,
    .close = line_close,
};

lab_line *lab_line_lay(hd_runtime *rt, lab_arrivals *arrivals) {
    lab_line *line = calloc(1, sizeof *line);
    if (!line) lab_fail("no memory for a line");
    line->inner = rt->r.authority;
    line->ops = line_ops;
    if (!line->inner->ops->memos) line->ops.memos = NULL;
    line->base = (authority){ .ops = &line->ops, .replica = &rt->r, .late = line->inner->late };
    line->rt = rt;
    line->arrivals = arrivals;
    rt->r.authority = &line->base;
    return line;
}

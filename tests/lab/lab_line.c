/* lab_line.c -- holding, losing and repeating what a replica and its authority say. */
#include "lab_line.h"

#include "lab.h"
#include <stdlib.h>

static lab_line *line_of(authority *a) { return (lab_line *)(void *)a; }
static const lab_line *line_of_const(const authority *a) {
    return (const lab_line *)(const void *)a;
}

/* ---- requests */

static void note_arrival(lab_line *line, uint64_t local_seq) {
    lab_arrivals *all = line->arrivals;
    if (local_seq <= line->last_arrived) return; /* a replay */
    line->last_arrived = local_seq;
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 64;
        all->items = realloc(all->items, all->capacity * sizeof *all->items);
        if (!all->items) lab_fail("no memory for arrivals");
    }
    all->items[all->count++] = (lab_arrival){ line->rt, local_seq };
}

static hd_status line_submit(authority *a, commit *c) {
    lab_line *line = line_of(a);
    if (line->hold_requests) return HD_BUSY;
    if (line->lose_requests) return HD_OK;
    hd_status status = line->inner->ops->submit(line->inner, c);
    if (!status) note_arrival(line, c->local_seq);
    return status;
}

static void line_flush(authority *a) {
    lab_line *line = line_of(a);
    if (!line->hold_requests && !line->lose_requests) line->inner->ops->flush(line->inner);
}

static void submit_again(lab_line *line, list *commits) {
    LIST_FOR (n, commits) {
        commit *c = LIST_ENTRY(n, commit, link);
        if (line->inner->ops->submit(line->inner, c)) lab_fail("a replay was not taken");
        note_arrival(line, c->local_seq);
    }
}

void lab_line_mend(lab_line *line) {
    line->hold_requests = line->hold_answers = line->lose_requests = false;
    submit_again(line, &line->rt->r.pending);
    line->inner->ops->flush(line->inner);
}

/* ---- answers */

/* So that the runtime can close: its commits end here, whatever the authority made of them. */
static hd_status abandon(lab_line *line) {
    replica *r = line->base.replica;
    hd_status status = HD_OK;
    while (!status && !list_empty(&r->pending))
        status = replica_reject(r, LIST_ENTRY(list_first(&r->pending), commit, link), HD_CLOSED);
    return status;
}

static hd_status line_poll(authority *a) {
    lab_line *line = line_of(a);
    if (line->gone) return abandon(line);
    return line->hold_answers ? HD_OK : line->inner->ops->poll(line->inner);
}

static uint64_t line_deadline(authority *a) {
    lab_line *line = line_of(a);
    return line->hold_answers && !line->gone ? UINT64_MAX : line->inner->ops->deadline(line->inner);
}

/* ---- passed on as it is */

#define INNER(a)           line_of(a)->inner
#define PASS(a, call, ...) INNER(a)->ops->call(INNER(a), __VA_ARGS__)

static hd_status line_load(authority *a, place_id doc, loaded *out) {
    return PASS(a, load, doc, out);
}
static bool line_idle(const authority *a) {
    const authority *inner = line_of_const(a)->inner;
    return inner->ops->idle(inner);
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
static int line_fd(authority *a) { return INNER(a)->ops->fd(INNER(a)); }
static hd_status line_list(authority *a, struct key *space, const char *kind, const char *prefix,
                           hd_list_fn fn, void *ctx) {
    return PASS(a, list, space, kind, prefix, fn, ctx);
}
static hd_status line_spaces(authority *a, bool (*fn)(void *ctx, const char *space), void *ctx) {
    return PASS(a, spaces, fn, ctx);
}
static hd_status line_checkpoint(authority *a, hd_error *error) {
    return PASS(a, checkpoint, error);
}
static hd_status line_prune(authority *a, hd_error *error) { return PASS(a, prune, error); }
static hd_status line_vacuum(authority *a, hd_error *error) { return PASS(a, vacuum, error); }

static void line_close(authority *a) {
    INNER(a)->ops->close(INNER(a));
    free(line_of(a));
}

static const authority_ops line_ops = {
    .name = "line",
    .submit = line_submit,
    .flush = line_flush,
    .poll = line_poll,
    .load = line_load,
    .idle = line_idle,
    .wants_derived = line_wants_derived,
    .shared = line_shared,
    .follow = line_follow,
    .fd = line_fd,
    .deadline = line_deadline,
    .list = line_list,
    .spaces = line_spaces,
    .checkpoint = line_checkpoint,
    .prune = line_prune,
    .vacuum = line_vacuum,
    .close = line_close,
};

lab_line *lab_line_lay(hd_runtime *rt, lab_arrivals *arrivals) {
    lab_line *line = calloc(1, sizeof *line);
    if (!line) lab_fail("no memory for a line");
    line->base = (authority){ &line_ops, &rt->r };
    line->inner = rt->r.authority;
    line->rt = rt;
    line->arrivals = arrivals;
    rt->r.authority = &line->base;
    return line;
}

/* stale.c -- which pieces of the store would have work to do if they were opened? */
#include "scheduler/introspection/introspection.h"

#include "scheduler/persistence/persistence.h"
#include "store/memo.h"
#include <string.h>

/* True: the row does not hold. Loads the documents that have changed since it was written. */
static bool find_stale(scheduler *s, const resume_set *set, const set_row *row) {
    assert(row >= set->rows.items && row < set->rows.items + set->rows.count);
    bool compared = false;
    return !set_row_holds(s, set, row, &compared);
}

static uint64_t count_stale(scheduler *s, const resume_set *set) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < set->rows.count; i++) count += find_stale(s, set, &set->rows.items[i]);
    return count;
}

typedef struct stale_listing {
    scheduler *s;
    hd_stale_fn fn;
    void *ctx;
    hd_status status; /* of the rows of a piece that could not be read, which ends the listing */
} stale_listing;

/* A piece's name is "space:id". */
static bool tell_stale(void *ctx, const char *name) {
    stale_listing *w = ctx;
    resume_set *set;
    char space[NAME_SIZE];
    const char *colon = strchr(name, ':');
    if (!colon || !memo_parse_space(name, (size_t)(colon - name), space, sizeof space)) return true;
    w->status = set_read(w->s, name, &set);
    if (w->status) return false;
    hd_stale_piece piece = { space, colon + 1, set ? count_stale(w->s, set) : 0 };
    set_free(w->s, set);
    return !piece.nodes || w->fn(&piece, w->ctx);
}

hd_status stale_tell(scheduler *s, hd_stale_fn fn, void *ctx) {
    authority *a = s->r->authority;
    stale_listing w = { s, fn, ctx, HD_OK };
    hd_status status = a->ops->memo_pieces(a, tell_stale, &w);
    return status ? status : w.status;
}

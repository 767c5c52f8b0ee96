/* stale.c -- which pieces of the store would have work to do if they were opened? */
#include "scheduler/introspection/introspection.h"

#include "scheduler/persistence/persistence.h"
#include "store/basis.h"
#include <string.h>

static bool is_stale(scheduler *s, const resume_set *set, const set_row *row) {
    uint32_t mask = set_changed_slots(s, set, row);
    return mask && row->scope != SCOPE_GATES &&
           !match_row(s, set_keys(set, row), row->keys, mask, set_text(set, row->hashes));
}

static uint64_t count_stale(scheduler *s, const resume_set *set) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < set->rows.count; i++) count += is_stale(s, set, &set->rows.items[i]);
    return count;
}

typedef struct stale_listing {
    scheduler *s;
    hd_stale_fn fn;
    void *ctx;
} stale_listing;

/* A piece's name is "space:id". */
static bool tell_stale(void *ctx, const char *name) {
    const stale_listing *w = ctx;
    char space[NAME_SIZE];
    const char *colon = strchr(name, ':');
    if (!colon || !basis_parse_space(name, (size_t)(colon - name), space, sizeof space))
        return true;
    resume_set *set = set_make(w->s, name);
    hd_stale_piece piece = { space, colon + 1, set ? count_stale(w->s, set) : 0 };
    set_free(w->s, set);
    return !piece.nodes || w->fn(&piece, w->ctx);
}

hd_status stale_tell(scheduler *s, hd_stale_fn fn, void *ctx) {
    authority *a = s->r->authority;
    stale_listing w = { s, fn, ctx };
    return a->ops->basis->pieces(a, tell_stale, &w);
}

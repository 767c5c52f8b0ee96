/* diff.c -- reporting the minimal places where two values differ.
 *
 * Containers of one kind are walked side by side (pairs.h); everything else that is not equal is a
 * place of its own. Recursion goes over the nesting of values, which the heap bounds. */
#include "value/diff.h"
#include "value/pairs.h"

enum { STEPS_INLINE = 32 };

typedef struct differ {
    hd_heap *heap;
    diff_fn fn;
    void *ctx;
    diff_step *steps; /* the way to the values compared now */
    size_t depth, capacity;
    diff_step few[STEPS_INLINE];
    hd_status status; /* HD_ABORTED: the callback wants no more */
} differ;

static bool report(differ *d, hd_value before, hd_value after) {
    if (d->fn(d->ctx, d->steps, d->depth, before, after)) return true;
    d->status = HD_ABORTED;
    return false;
}

static bool push_step(differ *d, struct key *k, size_t index) {
    if (d->depth == d->capacity) {
        bool inside = d->steps == d->few;
        size_t capacity = d->capacity * 2;
        diff_step *steps =
            heap_large_resize(d->heap, inside ? NULL : d->steps, capacity * sizeof *steps);
        if (!steps) {
            d->status = HD_NOMEM;
            return false;
        }
        if (inside) memcpy(steps, d->few, sizeof d->few);
        d->steps = steps;
        d->capacity = capacity;
    }
    assert(d->depth < d->capacity && (!k || !index));
    d->steps[d->depth++] = (diff_step){ k, index };
    return true;
}

static bool diff_values(differ *d, hd_value before, hd_value after);

static bool diff_entries(differ *d, hd_value before, hd_value after) {
    pairs p;
    pairs_init(&p, before, after, false);
    while (pairs_next(&p)) {
        if (!push_step(d, p.key, p.key ? 0 : p.index)) return false;
        bool more = diff_values(d, p.was, p.is);
        assert(d->depth > 0 && p.was.bits != p.is.bits);
        d->depth--;
        if (!more) return false;
    }
    return true;
}

/* True to go on. */
static bool diff_values(differ *d, hd_value before, hd_value after) {
    if (before.bits == after.bits) return true;
    bool walk = value_is_container(before) && value_tag(before) == value_tag(after);
    if (!walk) return value_equal(before, after) || report(d, before, after);
    bool longer = value_is_array(before) && hd_value_count(before) != hd_value_count(after);
    if (longer && !report(d, before, after)) return false;
    return diff_entries(d, before, after);
}

hd_status diff_walk(hd_heap *heap, hd_value before, hd_value after, diff_fn fn, void *ctx) {
    differ d = { .heap = heap, .fn = fn, .ctx = ctx, .capacity = STEPS_INLINE };
    if (value_is_failed(before)) return hd_value_status(before);
    if (value_is_failed(after)) return hd_value_status(after);
    d.steps = d.few;
    bool whole = diff_values(&d, before, after);
    assert(whole == !d.status && (!whole || !d.depth));
    (void)whole;
    if (d.steps != d.few) heap_large_free(heap, d.steps);
    return d.status == HD_ABORTED ? HD_OK : d.status;
}

/* ---- Public ---- */

/* For hd_value_diff: translates steps with interned keys to the public steps with texts. */
typedef struct shower {
    hd_heap *heap;
    hd_diff_fn fn;
    void *ctx;
    hd_step *steps;
    size_t capacity;
    hd_status status;
} shower;

static bool show(void *ctx, const diff_step *path, size_t depth, hd_value before, hd_value after) {
    shower *s = ctx;
    if (depth > s->capacity) {
        size_t capacity = depth + STEPS_INLINE;
        hd_step *steps = heap_large_resize(s->heap, s->steps, capacity * sizeof *steps);
        if (!steps) {
            s->status = HD_NOMEM;
            return false;
        }
        s->steps = steps;
        s->capacity = capacity;
    }
    for (size_t i = 0; i < depth; i++) {
        const struct key *k = path[i].key;
        s->steps[i] = (hd_step){ k ? key_bytes(k) : NULL, k ? k->length : 0, path[i].index };
    }
    return s->fn(s->steps, depth, before, after, s->ctx);
}

hd_status hd_value_diff(hd_heap *heap, hd_value before, hd_value after, hd_diff_fn fn, void *ctx) {
    shower s = { .heap = heap, .fn = fn, .ctx = ctx };
    hd_status status = diff_walk(heap, before, after, show, &s);
    heap_large_free(heap, s.steps);
    return status ? status : s.status;
}

/* tuple.c -- see tuple.h. */
#include "expr/tuple.h"

ev tuple_new(world *w, size_t count) {
    if (!count) return w->empty_tuple;
    if (count > WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, ev_fail();
    tuple *t = world_object(w, EV_TUPLE, sizeof *t + count * sizeof(ev));
    if (!t) return ev_fail();
    t->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) t->items[i] = ev_none();
    return ev_of(t);
}

ev tuple_of(world *w, const ev *items, size_t count) {
    ev v = tuple_new(w, count);
    if (ev_failed(v) || !count) return v;
    memcpy(v.tuple->items, items, count * sizeof(ev));
    for (size_t i = 0; i < count; i++) world_ref(items[i]);
    return v;
}

ev tuple_pair(world *w, ev a, ev b) {
    ev pair[2] = { a, b };
    if (ev_failed(a) || ev_failed(b)) return ev_fail();
    return tuple_of(w, pair, 2);
}

static uint64_t range_count(int64_t start, int64_t stop, int64_t step) {
    uint64_t span;
    if (step > 0 ? start >= stop : start <= stop) return 0;
    span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    return (span - 1) / (step > 0 ? (uint64_t)step : -(uint64_t)step) + 1;
}

ev range_of(world *w, int64_t start, int64_t stop, int64_t step) {
    assert(step);
    range *r = world_object(w, EV_RANGE, sizeof *r);
    if (!r) return ev_fail();
    r->start = start;
    r->stop = stop;
    r->step = step;
    r->count = range_count(start, stop, step);
    return ev_of(r);
}

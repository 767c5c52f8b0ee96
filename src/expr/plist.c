/* plist.c -- see plist.h. */
#include "expr/plist.h"

static bool plist_room(world *w, plist *l, size_t more) {
    size_t need = l->count + more;
    if (need <= l->capacity) return true;
    if (need > WORLD_COUNT_MAX) return w->failure = FAILURE_MEMORY, false;
    size_t capacity = l->capacity + l->capacity / 2;
    if (capacity < need) capacity = need < 4 ? 4 : need;
    ev *items = world_resize(w, l->items, l->capacity * sizeof(ev), capacity * sizeof(ev));
    if (!items) return false;
    l->items = items;
    l->capacity = (uint32_t)capacity;
    return true;
}

ev plist_new(world *w, size_t room) {
    plist *l = world_object(w, EV_LIST, sizeof *l);
    if (!l || (room && !plist_room(w, l, room))) return ev_fail();
    return ev_of(l);
}

ev plist_of(world *w, const ev *items, size_t count) {
    ev v = plist_new(w, count);
    if (ev_failed(v) || !count) return v;
    memcpy(v.list->items, items, count * sizeof(ev));
    v.list->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) world_ref(items[i]);
    return v;
}

bool plist_append(world *w, plist *l, ev v) {
    assert(!(l->head.flags & OBJ_UNLOADED) && v.kind >= EV_NONE);
    if (!plist_room(w, l, 1)) return false;
    world_ref(v);
    l->items[l->count++] = v;
    world_note(w, l, CHANGE_APPEND, 0, ev_none(), v);
    return true;
}

bool plist_insert(world *w, plist *l, uint32_t index, ev v) {
    assert(index <= l->count);
    if (!plist_room(w, l, 1)) return false;
    memmove(l->items + index + 1, l->items + index, (l->count - index) * sizeof(ev));
    world_ref(v);
    l->items[index] = v;
    l->count++;
    world_note(w, l, CHANGE_INSERT, index, ev_none(), v);
    return true;
}

void plist_set(world *w, plist *l, uint32_t index, ev v) {
    assert(index < l->count);
    world_ref(v);
    world_unref(w, l->items[index]);
    l->items[index] = v;
    world_note(w, l, CHANGE_SET, index, ev_none(), v);
}

void plist_delete(world *w, plist *l, uint32_t index, uint32_t count) {
    assert(index <= l->count && count <= l->count - index);
    if (!count) return;
    for (uint32_t i = 0; i < count; i++) world_unref(w, l->items[index + i]);
    memmove(l->items + index, l->items + index + count, (l->count - index - count) * sizeof(ev));
    l->count -= count;
    world_note(w, l, CHANGE_DELETE, index, ev_int(count), ev_int(l->count));
}

void plist_clear(world *w, plist *l) {
    if (!l->count) return;
    for (uint32_t i = 0; i < l->count; i++) world_unref(w, l->items[i]);
    l->count = 0;
    world_note(w, l, CHANGE_CLEAR, 0, ev_none(), ev_none());
}

bool plist_splice(world *w, plist *l, uint32_t from, uint32_t to, const ev *items, uint32_t count) {
    assert(from <= to && to <= l->count && (!count || items != l->items));
    if (!plist_room(w, l, count)) return false;
    /* References first: the items may be among those that go. */
    for (uint32_t i = 0; i < count; i++) world_ref(items[i]);
    for (uint32_t i = from; i < to; i++) world_unref(w, l->items[i]);
    if (l->count > to)
        memmove(l->items + from + count, l->items + to, (l->count - to) * sizeof(ev));
    if (count) memcpy(l->items + from, items, count * sizeof(ev));
    l->count = l->count - (to - from) + count;
    world_note(w, l, CHANGE_REPLACE, 0, ev_none(), ev_none());
    return true;
}

void plist_reordered(world *w, plist *l) {
    world_note(w, l, CHANGE_REPLACE, 0, ev_none(), ev_none());
}

/* dict.c -- see dict.h. */
#include "expr/dict.h"

#include "expr/text.h"

#define DICT_SMALL 8 /* up to here a walk over the entries is as fast as an index */

ev dict_new(world *w, ev_kind kind) {
    dict *d = world_object(w, kind, sizeof *d);
    return d ? ev_of(d) : ev_fail();
}

ev view_of(world *w, ev d, view_what what) {
    view *v = world_object(w, EV_VIEW, sizeof *v);
    if (!v) return ev_fail();
    v->of = d;
    v->what = what;
    world_ref(d);
    return ev_of(v);
}

ev record_new(world *w, uint32_t class_) {
    ev v = dict_new(w, EV_RECORD);
    if (!ev_failed(v)) v.o->class_ = (uint16_t)class_;
    return v;
}

/* ---- Finding ----------------------------------------------------------------------------- */

static uint32_t index_home(const dict *d, uint32_t hash) {
    return (uint32_t)(hash * UINT32_C(0x9E3779B1)) & (d->index_size - 1);
}

static dict_entry *find_hashed(const dict *d, ev key, uint32_t hash) {
    if (!d->index_size) {
        for (uint32_t i = 0; i < d->used; i++) {
            dict_entry *e = &d->entries[i];
            if (e->hash == hash && e->key.kind != EV_UNBOUND && key_same(e->key, key)) return e;
        }
        return NULL;
    }
    for (uint32_t at = index_home(d, hash);; at = (at + 1) & (d->index_size - 1)) {
        uint32_t slot = d->index[at];
        if (!slot) return NULL;
        dict_entry *e = &d->entries[slot - 1];
        assert(e->key.kind != EV_UNBOUND);
        if (e->hash == hash && key_same(e->key, key)) return e;
    }
}

dict_entry *dict_find(world *w, const dict *d, ev key) {
    uint32_t hash;
    assert(!(d->head.flags & OBJ_UNLOADED));
    if (!key_hash(w, key, &hash)) return NULL;
    return find_hashed(d, key, hash);
}

dict_entry *dict_find_name(const dict *d, const char *name) {
    for (uint32_t i = 0; i < d->used; i++) {
        dict_entry *e = &d->entries[i];
        if (e->key.kind == EV_STR && text_is_utf8(e->key.text, name)) return e;
    }
    return NULL;
}

/* ---- Growing ----------------------------------------------------------------------------- */

static void index_put(dict *d, uint32_t entry) {
    uint32_t at = index_home(d, d->entries[entry].hash);
    while (d->index[at]) at = (at + 1) & (d->index_size - 1);
    d->index[at] = entry + 1;
}

/* Takes a live entry out of the index. What stands behind it in its run of slots closes up, so that a search never
 * meets a deleted entry. */
static void index_drop(dict *d, uint32_t entry) {
    uint32_t mask = d->index_size - 1, gap = index_home(d, d->entries[entry].hash);
    while (d->index[gap] != entry + 1) gap = (gap + 1) & mask;
    for (uint32_t at = (gap + 1) & mask; d->index[at]; at = (at + 1) & mask) {
        uint32_t home = index_home(d, d->entries[d->index[at] - 1].hash);
        if (((at - home) & mask) < ((at - gap) & mask)) continue; /* its home is behind the gap */
        d->index[gap] = d->index[at];
        gap = at;
    }
    d->index[gap] = 0;
}

static void index_fill(dict *d) {
    if (!d->index_size) return;
    memset(d->index, 0, d->index_size * sizeof *d->index);
    for (uint32_t i = 0; i < d->used; i++)
        if (d->entries[i].key.kind != EV_UNBOUND) index_put(d, i);
}

/* What is stored of the entries by their places has to be written anew. */
static void lose_places(dict *d) {
    if (d->form != DICT_ORDERED) d->form = DICT_WHOLE;
}

/* Deleted entries go; the order stays. */
static void squeeze(dict *d) {
    uint32_t to = 0;
    if (d->used > d->count) lose_places(d);
    for (uint32_t i = 0; i < d->used; i++)
        if (d->entries[i].key.kind != EV_UNBOUND) d->entries[to++] = d->entries[i];
    assert(to == d->count);
    d->used = d->end = to;
    d->first = 0;
}

/* Room for one more entry. Where at least a third is deleted the entries close up; otherwise they
 * double, and the index with them. */
static bool dict_room(world *w, dict *d) {
    if (d->used < d->capacity) return true;
    if (d->used - d->count > d->capacity / 3) {
        squeeze(d);
        index_fill(d);
        return true;
    }
    if (d->capacity > WORLD_COUNT_MAX / 2) return w->failure = FAILURE_MEMORY, false;
    uint32_t capacity = d->capacity ? d->capacity * 2 : 4;
    uint32_t index_size = capacity > DICT_SMALL ? capacity * 2 : 0;
    uint32_t *index = NULL;
    if (index_size && !(index = world_alloc(w, index_size * sizeof *index))) return false;
    dict_entry *entries =
        world_resize(w, d->entries, d->capacity * sizeof *entries, capacity * sizeof *entries);
    if (!entries) {
        world_free(w, index, index_size * sizeof *index);
        return false;
    }
    world_free(w, d->index, d->index_size * sizeof *d->index);
    d->entries = entries;
    d->capacity = capacity;
    d->index = index;
    d->index_size = index_size;
    squeeze(d);
    index_fill(d);
    return true;
}

/* ---- Changing ---------------------------------------------------------------------------- */

bool dict_set(world *w, dict *d, ev key, ev value) {
    uint32_t hash;
    assert(key.kind >= EV_NONE && value.kind >= EV_NONE);
    if (!key_hash(w, key, &hash)) return false;
    dict_entry *e = find_hashed(d, key, hash);
    change_op how = e ? CHANGE_SET : CHANGE_APPEND;
    if (e) {
        if (d->head.kind == EV_SET) return true;
        world_ref(value);
        world_unref(w, e->value);
        e->value = value;
    } else {
        if (!dict_room(w, d)) return false;
        e = &d->entries[d->used++];
        *e = (dict_entry){ key, value, hash };
        world_ref(key);
        world_ref(value);
        if (!d->count++) d->first = d->used - 1;
        d->end = d->used;
        if (d->index_size) index_put(d, d->used - 1);
    }
    world_note(w, d, how, (uint32_t)(e - d->entries), e->key, value);
    return true;
}

/* So that whoever takes entries from one end, again and again, does not walk over those that are gone. */
static void close_ends(dict *d) {
    if (!d->count) {
        d->used = d->first = d->end = 0;
        lose_places(d);
    } else {
        while (d->entries[d->end - 1].key.kind == EV_UNBOUND) d->end--;
        while (d->entries[d->first].key.kind == EV_UNBOUND) d->first++;
    }
    assert(d->end <= d->used && d->first <= d->end && d->count <= d->end - d->first);
}

bool dict_skip(world *w, dict *d) {
    if (!dict_room(w, d)) return false;
    d->entries[d->used++] = (dict_entry){ ev_unbound(), ev_none(), 0 };
    return true;
}

void dict_delete_entry(world *w, dict *d, dict_entry *e) {
    ev key = e->key;
    assert(d->count && e >= d->entries && e < d->entries + d->used && key.kind != EV_UNBOUND);
    world_note(w, d, CHANGE_DELETE, (uint32_t)(e - d->entries), key, ev_none());
    if (d->index_size) index_drop(d, (uint32_t)(e - d->entries));
    e->key = ev_unbound();
    d->count--;
    world_unref(w, key);
    world_unref(w, e->value);
    e->value = ev_none();
    close_ends(d);
}

int dict_delete(world *w, dict *d, ev key) {
    dict_entry *e = dict_find(w, d, key);
    if (!e) return raise_is_pending(w) ? -1 : 0;
    dict_delete_entry(w, d, e);
    return 1;
}

void dict_clear(world *w, dict *d) {
    if (!d->count) return;
    for (uint32_t i = 0; i < d->used; i++) {
        if (d->entries[i].key.kind == EV_UNBOUND) continue;
        world_unref(w, d->entries[i].key);
        world_unref(w, d->entries[i].value);
    }
    d->count = d->used = d->first = d->end = 0;
    if (d->index_size) { /* few entries may follow, and clearing them must not cost what these did */
        world_free(w, d->entries, d->capacity * sizeof *d->entries);
        world_free(w, d->index, d->index_size * sizeof *d->index);
        d->entries = NULL;
        d->index = NULL;
        d->capacity = d->index_size = 0;
    }
    world_note(w, d, CHANGE_CLEAR, 0, ev_none(), ev_none());
}

dict_entry *dict_next(const dict *d, uint32_t *at) {
    if (*at < d->first) *at = d->first;
    while (*at < d->end) {
        dict_entry *e = &d->entries[(*at)++];
        if (e->key.kind != EV_UNBOUND) return e;
    }
    return NULL;
}

dict_entry *dict_before(const dict *d, uint32_t *at) {
    if (*at > d->end) *at = d->end;
    while (*at > d->first) {
        dict_entry *e = &d->entries[--*at];
        if (e->key.kind != EV_UNBOUND) return e;
    }
    return NULL;
}

ev dict_copy(world *w, const dict *d, ev_kind kind) {
    ev out = dict_new(w, kind);
    if (ev_failed(out)) return out;
    out.o->class_ = d->head.class_;
    uint32_t at = 0;
    for (dict_entry *e; (e = dict_next(d, &at));)
        if (!dict_set(w, out.dict, e->key, kind == EV_SET ? ev_none() : e->value)) return ev_fail();
    return out;
}

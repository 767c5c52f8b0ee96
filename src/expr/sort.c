/* sort.c -- see sort.h. */
#include "expr/sort.h"

typedef struct pair {
    ev key, value;
} pair;

typedef struct sorting {
    world *w;
    pair *items, *spare;
    bool failed;
} sorting;

static bool less(sorting *s, ev a, ev b) {
    if (s->failed) return false;
    int answer = ev_order(s->w, COMPARE_LT, a, b);
    if (answer < 0) s->failed = true;
    return answer == 1;
}

static void turn(pair *items, size_t from, size_t to) {
    while (from + 1 < to) {
        pair swap = items[from];
        items[from++] = items[--to];
        items[to] = swap;
    }
}

/* The length of the run at the beginning; a descending one is turned round. */
static size_t count_run(sorting *s, size_t n) {
    size_t run = 2;
    if (n < 2) return n;
    bool down = less(s, s->items[1].key, s->items[0].key);
    while (run < n && less(s, s->items[run].key, s->items[run - 1].key) == down && !s->failed)
        run++;
    if (down && !s->failed) turn(s->items, 0, run);
    return run;
}

static void insert_sorted(sorting *s, size_t n, size_t start) {
    for (; start < n && !s->failed; start++) {
        size_t left = 0, right = start;
        pair pivot = s->items[start];
        while (left < right) {
            size_t middle = left + (right - left) / 2;
            if (less(s, pivot.key, s->items[middle].key)) right = middle;
            else left = middle + 1;
        }
        memmove(s->items + left + 1, s->items + left, (start - left) * sizeof(pair));
        s->items[left] = pivot;
    }
}

static void merge(sorting *s, size_t from, size_t middle, size_t to) {
    size_t a = from, b = middle, out = from;
    while (a < middle && b < to) {
        bool second = less(s, s->items[b].key, s->items[a].key);
        if (s->failed) return;
        s->spare[out++] = second ? s->items[b++] : s->items[a++];
    }
    while (a < middle) s->spare[out++] = s->items[a++];
    while (b < to) s->spare[out++] = s->items[b++];
    memcpy(s->items + from, s->spare + from, (to - from) * sizeof(pair));
}

static void sort_items(sorting *s, size_t n) {
    enum { RUN = 32 };
    if (n < 64) {
        insert_sorted(s, n, count_run(s, n));
        return;
    }
    pair *all = s->items;
    for (size_t from = 0; from < n; from += RUN) {
        s->items = all + from;
        insert_sorted(s, n - from < RUN ? n - from : RUN, 1);
    }
    s->items = all;
    for (size_t width = RUN; width < n && !s->failed; width *= 2)
        for (size_t from = 0; from + width < n && !s->failed; from += 2 * width)
            merge(s, from, from + width, from + 2 * width < n ? from + 2 * width : n);
}

static bool make_keys(sorting *s, const plist *l, ev key) {
    bool plain = key.kind == EV_UNBOUND || key.kind == EV_NONE;
    for (size_t i = 0; i < l->count; i++) {
        ev v = l->items[i];
        s->items[i] = (pair){ plain ? v : s->w->invoke(s->w, key, &v, 1), v };
        if (ev_failed(s->items[i].key)) return false;
    }
    return true;
}

/* Also after a comparison that failed every element is there once. */
static bool sort_taken(sorting *s, plist *taken, ev key, bool reverse) {
    size_t n = taken->count;
    if (!make_keys(s, taken, key)) return false;
    if (reverse) turn(s->items, 0, n);
    sort_items(s, n);
    if (reverse) turn(s->items, 0, n);
    for (size_t i = 0; i < n; i++) taken->items[i] = s->items[i].value;
    return !s->failed;
}

/* The list is empty while it is sorted, as in CPython: that is what a key function or a comparison sees of a list that
 * contains itself. */
static plist take_items(plist *l) {
    plist taken = *l;
    l->items = NULL;
    l->count = l->capacity = 0;
    return taken;
}

/* What was added meanwhile goes. True: there was something. */
static bool give_items_back(world *w, plist *l, const plist *taken) {
    plist added = *l;
    l->items = taken->items;
    l->count = taken->count;
    l->capacity = taken->capacity;
    for (uint32_t i = 0; i < added.count; i++) world_unref(w, added.items[i]);
    if (added.capacity) world_free(w, added.items, added.capacity * sizeof(ev));
    return added.capacity != 0;
}

bool sort_list(world *w, plist *l, ev key, bool reverse) {
    size_t n = l->count, bytes = (n ? n : 1) * sizeof(pair);
    sorting s = { .w = w };
    bool good = (s.items = world_alloc(w, bytes)) && (n < 64 || (s.spare = world_alloc(w, bytes)));
    if (good) {
        plist taken = take_items(l);
        good = sort_taken(&s, &taken, key, reverse);
        bool modified = give_items_back(w, l, &taken);
        if (modified && good)
            good = false, raise_f(w, CLASS_ValueError, "list modified during sort");
        plist_reordered(w, l);
    }
    if (s.items) world_free(w, s.items, bytes);
    if (s.spare) world_free(w, s.spare, bytes);
    return good;
}

/* test_accounts_naive.c -- what commits are said to have changed, against what has changed.
 *
 * Runtimes write one document in all ways there are, over their own commits under way and over each
 * other's, with claims that are refused now and then. Afterwards the store is asked what has changed,
 * as a restart would ask it (basis.h), and every place that could be read is looked at by value:
 *
 *   - what reads differently now has been touched: nothing that must run stays clean
 *   - where one runtime alone writes, what has read the same all the time has not been touched
 *
 * HD_ROUNDS is the number of worlds; HD_SEED repeats a run. */
#include "lab_store.h"
#include "story.h"
#include "store/admit.h"
#include "store/basis.h"
#include "store/runtime.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/json_read.h"
#include "value/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WRITERS = 2, STATES = 16, TOUCHES = 256 };
#if defined(__SANITIZE_ADDRESS__)
enum { WORLDS = 60 };
#else
enum { WORLDS = 400 };
#endif
enum { FILES = 40 }; /* a file takes longer */
enum { BATCHES = 12 };

static const char *const reads[] = { "",       "/a",   "/b",    "/b/x",     "/b/y/z", "/c/d/e",
                                     "/l",     "/l/0", "/l/1",  "/l/2/x",   "/l/3",   "/l/4",
                                     "/l/9/x", "/m/0", "/none", "/l/length" };
enum { READS = sizeof reads / sizeof *reads };

typedef struct touch_told {
    uint64_t seq;
    hd_path path;
    uint8_t flags;
} touch_told;

/* What the watcher saw, and when. */
typedef struct sight {
    uint64_t seq;
    hd_value v;
} sight;

typedef struct world {
    lab *l;
    lab_random random;
    lab_runtime *watcher, *writers[WRITERS];
    struct key *space;
    bool alone; /* only the first of them writes */
    hd_pool *pool, *writers_pool;
    hd_path paths[READS];
    hd_value states[STATES]; /* in order, as far as they can be known; the pool's */
    int state_count;
    sight sights[STATES];
    int sight_count;
    touch_told touched[TOUCHES];
    int touch_count;
    lab_story story;
} world;

static uint64_t below(world *w, uint64_t n) { return lab_random_below(&w->random, n); }

/* ---- writing */

static const char *any_value(world *w) {
    static const char *const values[] = { "1",
                                          "2",
                                          "{}",
                                          "{\"x\":1}",
                                          "{\"x\":2,\"y\":{\"z\":1}}",
                                          "[]",
                                          "[1,2,{\"x\":3},4]",
                                          "[1,5,{\"x\":3}]" };
    return values[below(w, sizeof values / sizeof *values)];
}

static const char *any_document(world *w) {
    static const char *const documents[] = { "{\"a\":1,\"b\":{\"x\":1},\"l\":[1,2,{\"x\":3}]}",
                                             "{\"a\":2,\"b\":{\"x\":1},\"l\":[1,2,{\"x\":3},4]}",
                                             "{\"a\":1,\"b\":2,\"m\":[0]}",
                                             "{\"l\":[2,1]}",
                                             "[1,2,3]",
                                             "7",
                                             "{\"c\":{\"d\":{\"e\":1}}}" };
    return documents[below(w, sizeof documents / sizeof *documents)];
}

static void add_write(world *w, char *script, size_t size) {
    static const char *const cells[] = { "f#/a",     "f#/b",   "f#/b/x", "f#/b/y/z",
                                         "f#/c/d/e", "f#/l",   "f#/l/0", "f#/l/1",
                                         "f#/l/2/x", "f#/l/3", "f#/m/0", "f#/none" };
    const char *cell = cells[below(w, sizeof cells / sizeof *cells)];
    size_t n = strlen(script);
    if (n) n += (size_t)snprintf(script + n, size - n, "; ");
    script += n, size -= n;
    switch (below(w, 10)) {
    case 0:
    case 1: snprintf(script, size, "set f %s", any_document(w)); break;
    case 2: snprintf(script, size, "remove %s", cell); break;
    case 3:
    case 4: snprintf(script, size, "append f#/%s %s", below(w, 2) ? "l" : "m", any_value(w)); break;
    case 5: snprintf(script, size, "increment %s 1", cell); break;
    case 6:
        if (!below(w, 4)) {
            snprintf(script, size, "remove f");
            break;
        } /* fall through */
    default: snprintf(script, size, "set %s %s", cell, any_value(w));
    }
}

static hd_value value_now(world *w, lab_runtime *r) {
    hd_runtime *rt = lab_rt(r);
    hd_value v = hd_read(rt, r == w->watcher ? w->pool : w->writers_pool, lab_cell(r, "f"));
    assert_int_equal(hd_value_status(v), HD_OK);
    return v;
}

static void note_state(world *w, lab_runtime *r) {
    assert_true(w->state_count < STATES);
    w->states[w->state_count++] = value_now(w, r);
}

static void commit_something(world *w) {
    char script[512] = "";
    lab_runtime *r = w->writers[w->alone ? 0 : below(w, WRITERS)];
    if (!w->alone && !below(w, 3)) strcat(script, below(w, 2) ? "get f#/b" : "shape f#/l");
    for (uint64_t n = 1 + below(w, 2); n > 0; n--) add_write(w, script, sizeof script);
    lab_tell(&w->story, " %s: %s.", lab_name(r), script);
    lab_do(r, script);
    if (w->alone) note_state(w, r);
}

static uint64_t seq_now(world *w) {
    authority *a = lab_rt(w->watcher)->r.authority;
    uint64_t seq;
    assert_int_equal(a->ops->basis->seq_of(a, w->space, &seq), HD_OK);
    return seq;
}

/* What is decided by now, and where that is. */
static void look(world *w) {
    lab_pump(w->watcher);
    assert_true(w->sight_count < STATES);
    w->sights[w->sight_count++] = (sight){ seq_now(w), value_now(w, w->watcher) };
}

static void batch(world *w) {
    for (uint64_t n = 1 + below(w, 5); n > 0; n--) {
        commit_something(w);
        lab_runtime *r = w->writers[below(w, WRITERS)];
        uint64_t how = below(w, 5);
        if (how == 0) lab_send(r);
        if (how == 1) lab_pump(r);
        if (how < 2) lab_tell(&w->story, " %s %s;", how ? "pump" : "send", lab_name(r));
        look(w);
        if (how == 2 && lab_is_sqlite(w->l) && !below(w, 3)) {
            lab_tell(&w->story, " fold;");
            assert_int_equal(hd_store_checkpoint(lab_rt(r), NULL), HD_OK);
        }
    }
    lab_settle(w->l);
    if (lab_is_sqlite(w->l)) {
        lab_env_advance_ms(lab_world(w->l), 200);
        lab_settle(w->l);
    }
}

/* ---- what is said */

static bool take_change(void *ctx, const basis_change *change) {
    world *w = ctx;
    assert_true(w->touch_count < TOUCHES);
    if (change->doc != lab_cell(w->watcher, "f").id) return true;
    path_ref(lab_rt(w->watcher)->heap, change->path);
    w->touched[w->touch_count++] = (touch_told){ change->seq, change->path, change->flags };
    return true;
}

static bool is_touched(const world *w, uint64_t after, int read, bool shape) {
    const hd_heap *heap = lab_rt(w->watcher)->heap;
    for (int i = 0; i < w->touch_count; i++)
        if (w->touched[i].seq > after &&
            touch_overlaps(heap, w->touched[i].path, w->touched[i].flags, w->paths[read], shape))
            return true;
    return false;
}

/* ---- what is so */

static bool is_container(hd_value v) {
    return hd_value_kind(v) == HD_KIND_OBJECT || hd_value_kind(v) == HD_KIND_ARRAY;
}

static hd_value step(hd_value v, const struct key *k) {
    if (hd_value_kind(v) == HD_KIND_OBJECT) return object_get_bytes(v, key_bytes(k), k->length);
    if (k->index == KEY_NO_INDEX || k->index >= array_count(v)) return value_absent();
    return array_get(v, k->index);
}

/* Absent, too, where there is no way to it: who reads that sees no difference. */
static hd_value at(const hd_heap *heap, hd_value v, hd_path path) {
    uint32_t depth = path_depth(heap, path);
    for (uint32_t i = 1; i <= depth; i++)
        v = is_container(v) ? step(v, path_key(heap, path_ancestor(heap, path, i)))
                            : value_absent();
    return v;
}

/* A length is read as a value of its own. */
static bool length_differs(hd_value before, hd_value after) {
    bool was = hd_value_kind(before) == HD_KIND_ARRAY, is = hd_value_kind(after) == HD_KIND_ARRAY;
    return was != is || (was && array_count(before) != array_count(after));
}

static bool differs(const hd_heap *heap, hd_value before, hd_value after, hd_path path,
                    const char *text, bool shape) {
    if (strstr(text, "length")) {
        hd_path array = path_parent(heap, path);
        return length_differs(at(heap, before, array), at(heap, after, array));
    }
    hd_value was = at(heap, before, path), is = at(heap, after, path);
    return shape ? !value_same_shape(was, is) : !value_equal(was, is);
}

/* What is below a container that becomes another thing is another thing, even where an object and an
 * array both have a "0". */
static bool way_is_same(const hd_heap *heap, hd_value before, hd_value after, hd_path path) {
    while (path != HD_PATH_ROOT) {
        path = path_parent(heap, path);
        hd_value was = at(heap, before, path), is = at(heap, after, path);
        if ((is_container(was) || is_container(is)) && hd_value_kind(was) != hd_value_kind(is))
            return false;
    }
    return true;
}

/* It is the same, before and after, or there is nothing there. */
static bool is_still(const hd_heap *heap, hd_value before, hd_value after, hd_path path,
                     const char *text, bool shape) {
    if (strstr(text, "length")) {
        hd_path array = path_parent(heap, path);
        if (hd_value_kind(at(heap, before, array)) != HD_KIND_ARRAY) return false;
    }
    return way_is_same(heap, before, after, path) &&
           !differs(heap, before, after, path, text, shape);
}

static bool was_still(const world *w, int read, bool shape) {
    const hd_heap *heap = lab_rt(w->watcher)->heap;
    for (int i = 1; i < w->state_count; i++)
        if (!is_still(heap, w->states[i - 1], w->states[i], w->paths[read], reads[read], shape))
            return false;
    return true;
}

static void tell_touches(world *w) {
    char path[64];
    for (int i = 0; i < w->touch_count; i++) {
        hd_path_print(lab_rt(w->watcher)->heap, w->touched[i].path, path, sizeof path);
        lab_tell(&w->story, "%s %d%s (%d)", i ? "," : "\ntold:", (int)w->touched[i].seq, path,
                 w->touched[i].flags);
    }
}

static void check_read(const world *w, int read, bool shape) {
    const hd_heap *heap = lab_rt(w->watcher)->heap;
    const char *how = shape ? "the shape of " : "";
    const sight *last = &w->sights[w->sight_count - 1];
    for (const sight *s = w->sights; s < last; s++)
        if (differs(heap, s->v, last->v, w->paths[read], reads[read], shape) &&
            !is_touched(w, s->seq, read, shape))
            lab_fail("%s%s has changed after %d and nobody says so:%s", how, reads[read],
                     (int)s->seq, w->story.text);
    if (w->alone && was_still(w, read, shape) && is_touched(w, w->sights[0].seq, read, shape))
        lab_fail("%s%s has not changed and somebody says so:%s", how, reads[read], w->story.text);
}

/* ---- a world */

static void one_batch(world *w) {
    hd_heap *heap = lab_rt(w->watcher)->heap;
    authority *a = lab_rt(w->watcher)->r.authority;
    assert_int_equal(hd_pool_open(heap, &w->pool), HD_OK);
    assert_int_equal(hd_pool_open(lab_rt(w->writers[0])->heap, &w->writers_pool), HD_OK);
    w->state_count = w->sight_count = w->touch_count = 0;
    lab_tell(&w->story, "\n");
    if (w->alone) note_state(w, w->writers[0]);
    look(w);
    batch(w);
    look(w);
    uint64_t first = w->sights[0].seq;
    assert_int_equal(a->ops->basis->changes(a, w->space, first, take_change, w), HD_OK);
    tell_touches(w);
    for (int i = 0; i < READS; i++) {
        check_read(w, i, false);
        check_read(w, i, true);
    }
    for (int i = 0; i < w->touch_count; i++) path_unref(heap, w->touched[i].path);
    hd_pool_close(w->writers_pool);
    hd_pool_close(w->pool);
}

/* Some node has read it: else its end may leave no trace. */
static void note_reader(world *w) {
    static const char row[] = "{\"nodes\":[[\"main:main:n\",\"\",\"print\",{\"r\":[\"main/f\"]}]]}";
    replica *r = lab_replica(w->writers[0]);
    commit *c = replica_commit_new(r, HD_COMMIT_DERIVED);
    c->extra = json_read(r->heap, row, sizeof row - 1, NULL);
    replica_enqueue(r, c);
    lab_settle(w->l);
}

static void one_world(uint64_t seed, lab_kind kind) {
    world w = { .l = lab_open_with((lab_options){ .kind = kind }), .random = lab_random_of(seed) };
    w.alone = below(&w, 2);
    w.watcher = lab_runtime_open(w.l, "o");
    w.writers[0] = lab_runtime_open(w.l, "a");
    w.writers[1] = lab_runtime_open(w.l, "b");
    hd_heap *heap = lab_rt(w.watcher)->heap;
    w.space = key_intern(heap, "main", 4);
    for (int i = 0; i < READS; i++)
        assert_int_equal(path_parse(heap, reads[i], strlen(reads[i]), &w.paths[i], NULL), HD_OK);
    lab_tell(&w.story, " (HD_SEED=%llu HD_ROUNDS=1)", (unsigned long long)seed);
    note_reader(&w);
    for (int i = 0; i < BATCHES; i++) one_batch(&w);
    for (int i = 0; i < READS; i++) path_unref(heap, w.paths[i]);
    key_unref(w.space);
    lab_close(w.l);
}

static void many_worlds(lab_kind kind, uint64_t most) {
    const char *rounds = getenv("HD_ROUNDS");
    uint64_t seed = lab_seed(), count = rounds ? strtoull(rounds, NULL, 10) : most;
    for (uint64_t i = 0; i < count; i++) one_world(seed + i, kind);
}

static void what_is_said_to_change_in_memory_is_what_changes(void **state) {
    many_worlds(LAB_MEMORY, WORLDS);
}

static void what_is_said_to_change_in_a_file_is_what_changes(void **state) {
    many_worlds(LAB_SQLITE, FILES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_to_change_in_memory_is_what_changes),
        cmocka_unit_test(what_is_said_to_change_in_a_file_is_what_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_loads_naive.c -- documents that are loaded from rows of the log, and lists in pages, against an array.
 *
 * One program writes bursts of commits, which share rows of the log: some short, some long, some with a document in
 * several commits. Now and then it folds the log. Another program, new or one that has read before, reads documents in
 * random order, and lists them page by page, by kind, prefix and size of the page. The model is an array.
 *
 * HD_WORLDS is the number of worlds; HD_SEED repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "disk_world.h"
#include "lab.h"
#include "times.h"
#include <heddle/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENTS = 300, ROUNDS = 12, READS = 120, TEXT = 400 };

typedef struct document {
    uint32_t version; /* 0: it does not exist */
    uint32_t length;
    bool task; /* its kind */
} document;

static document model[DOCUMENTS];
static hd_lab_random dice;
static uint32_t below(uint32_t n) { return (uint32_t)hd_lab_random_below(&dice, n); }

static hd_runtime *open_store(bool read_only) {
    hd_runtime *rt;
    hd_error error;
    hd_options options = { .vfs = lab_disk_vfs(disk), .read_only = read_only };
    if (hd_open("store.db", &options, &rt, &error)) fail_msg("open: %s", error.message);
    return rt;
}

/* Ids of different lengths, whose order is not that of the numbers. */
static const char *name_of(uint32_t i, char out[24]) {
    snprintf(out, 24, "%c%u", 'a' + (int)(i % 3), i * 37 % DOCUMENTS);
    return out;
}

static hd_cell cell_of(hd_runtime *rt, uint32_t i) {
    char id[24];
    return hd_cell_of(rt, "main", HD_SCOPE_SPACE, name_of(i, id), "");
}

static const char *text_of(const document *d, char out[TEXT + 16]) {
    int n = snprintf(out, 16, "%u ", d->version);
    memset(out + n, 'x', d->length);
    out[n + (int)d->length] = 0;
    return out;
}

/* ---- writing */

static void change(hd_runtime *rt, hd_tx *tx, uint32_t version) {
    char text[TEXT + 16];
    uint32_t i = below(DOCUMENTS);
    document *d = &model[i];
    if (d->version && below(5) == 0) {
        *d = (document){ 0 };
        assert_int_equal(hd_tx_remove(tx, cell_of(rt, i)), HD_OK);
        assert_int_equal(hd_tx_set_meta(tx, cell_of(rt, i), "kind", (hd_value){ 0 }), HD_OK);
        return;
    }
    *d = (document){ version, below(TEXT), below(2) };
    assert_int_equal(hd_tx_set_text(tx, cell_of(rt, i), text_of(d, text)), HD_OK);
    assert_int_equal(hd_tx_set_kind(tx, cell_of(rt, i), d->task ? "task" : "note"), HD_OK);
}

static void write_burst(hd_runtime *rt, uint32_t round) {
    uint32_t commits = 1 + below(below(2) ? 5 : 150);
    for (uint32_t c = 0; c < commits; c++) {
        hd_tx *tx;
        assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
        for (uint32_t n = 1 + below(3); n > 0; n--) change(rt, tx, round * 1000 + c + 1);
        assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    }
    assert_int_equal(hd_write(rt, hd_cell_at(rt, "side/round"), hd_int(NULL, round)), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    if (below(4) == 0) assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
}

/* ---- reading */

static void await_round(hd_runtime *rt, hd_pool *pool, uint32_t round) {
    hd_env env = hd_env_system();
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        if (hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "side/round")), -1) == round) return;
        env.wait(hd_runtime_fd(rt), env.monotonic_ns(env.ctx) + 5000000, env.ctx);
    }
    fail_msg("round %u does not arrive", round);
}

static void read_some(hd_runtime *rt, hd_pool *pool) {
    char expected[TEXT + 16], id[24];
    for (int n = 0; n < READS; n++) {
        uint32_t i = below(DOCUMENTS);
        hd_value v = hd_read(rt, pool, cell_of(rt, i));
        const char *found = hd_value_as_text(v, "");
        const char *right = model[i].version ? text_of(&model[i], expected) : "";
        if (strcmp(found, right)) fail_msg("%s: %.20s, not %.20s", name_of(i, id), found, right);
    }
    hd_pool_clear(pool);
}

typedef struct page {
    char last[24];
    char (*ids)[24];
    uint32_t count, left;
} page;

static bool take(const hd_listing *entry, void *ctx) {
    page *p = ctx;
    assert_true(p->count < DOCUMENTS);
    snprintf(p->ids[p->count++], 24, "%s", entry->id);
    snprintf(p->last, sizeof p->last, "%s", entry->id);
    return --p->left > 0;
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static uint32_t list_model(const char *kind, const char *prefix, char (*out)[24]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        const document *d = &model[i];
        bool right = !kind || !strcmp(kind, d->task ? "task" : "note");
        name_of(i, out[count]);
        count += d->version && right && !strncmp(out[count], prefix, strlen(prefix));
    }
    qsort(out, count, sizeof *out, by_text);
    return count;
}

static void list_in_pages(hd_runtime *rt) {
    static const char *const kinds[] = { NULL, "task", "note", "nothing" };
    static const char *const prefixes[] = { "", "a", "b1", "c", "z" };
    static char found[DOCUMENTS + 1][24], right[DOCUMENTS + 1][24];
    const char *kind = kinds[below(4)], *prefix = prefixes[below(5)];
    page p = { .ids = found };
    uint32_t size = 1 + below(50), before;
    do {
        before = p.count;
        p.left = size;
        assert_int_equal(hd_runtime_list_after(rt, "main", kind, prefix, p.last, take, &p), HD_OK);
    } while (p.count == before + size);
    uint32_t count = list_model(kind, prefix, right);
    assert_int_equal(p.count, count);
    for (uint32_t i = 0; i < count; i++) assert_string_equal(found[i], right[i]);
}

/* ---- worlds */

static void run_world(void) {
    hd_pool *pool;
    hd_runtime *writer = open_store(false), *reader = open_store(true);
    memset(model, 0, sizeof model);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        write_burst(writer, round);
        if (below(2)) {
            assert_int_equal(hd_close(reader), HD_OK);
            reader = open_store(true);
        }
        assert_int_equal(hd_pool_open(hd_runtime_heap(reader), &pool), HD_OK);
        await_round(reader, pool, round);
        list_in_pages(below(3) ? reader : writer);
        read_some(reader, pool);
        list_in_pages(reader);
        hd_pool_close(pool);
    }
    assert_int_equal(hd_close(reader), HD_OK);
    assert_int_equal(hd_close(writer), HD_OK);
}

static void loads_and_pages_are_those_of_an_array(void **state) {
    uint64_t seed = lab_seed(), worlds = lab_times("HD_WORLDS", LAB_SLOW ? 8 : 30);
    for (uint64_t i = 0; i < worlds; i++) {
        dice = hd_lab_random_of(seed + i);
        run_world();
        free_disk(state);
        new_disk(state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loads_and_pages_are_those_of_an_array, new_disk, free_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

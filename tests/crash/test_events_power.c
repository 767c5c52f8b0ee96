/* test_events_power.c -- power fails at any moment of a handling: the event counts once.
 *
 * Events are posted and handled on the lab's disk, which records every operation; each post that is
 * acknowledged leaves a mark. Then power fails after operation n, for every n, the file is opened
 * again by a program with the same handler, and everything that waits is handled. Event k appends k
 * to a list and adds 1 to a counter: afterwards the list must read 1 .. m without a gap or a
 * repetition, m at least the last mark, the counter must be m, there must be m receipts, and no event
 * may wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "vfs.h"
#include <heddle/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "events.db"
enum { EVENTS = 24 };

#if defined(__SANITIZE_ADDRESS__)
enum { CYCLES = 400 };
#else
enum { CYCLES = 1600 };
#endif

typedef struct acked {
    lab_disk *disk;
    uint64_t number;
} acked;

static void mark_posted(const char *id, hd_status status, void *ctx) {
    const acked *a = ctx;
    (void)id;
    assert_int_equal(status, HD_OK);
    lab_disk_mark(a->disk, a->number);
}

static hd_status count(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_cell total = hd_cell_at(rt, "main/total");
    (void)ctx;
    hd_value v = hd_tx_get(tx, total);
    hd_status status = hd_tx_set_int(tx, total, hd_value_as_int(v, 0) + 1);
    if (!status) status = hd_tx_append(tx, hd_cell_at(rt, "main/list"), event->payload);
    return status ? status : hd_tx_return(tx, event->payload);
}

static hd_runtime *open_on(lab_disk *disk, uint64_t tail_bytes, bool handles) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .tail_bytes = tail_bytes };
    hd_runtime *rt;
    hd_error error;
    hd_status status = hd_open(FILE_NAME, &options, &rt, &error);
    if (status) fail_msg("open: %s", error.message);
    if (!handles) return rt;
    hd_handler h;
    hd_cell total = hd_cell_at(rt, "main/total");
    hd_handler_spec spec = {
        .stream = hd_cell_at(rt, "main/go"), .fn = count, .inputs = &total, .input_count = 1
    };
    assert_int_equal(hd_handler_register(rt, &spec, &h), HD_OK);
    return rt;
}

/* Posts some, handles some, so that every mixture of the two is cut somewhere. */
static lab_recording *record_workload(uint64_t tail_bytes) {
    lab_disk *disk = lab_disk_new(NULL);
    static acked acks[EVENTS + 1];
    hd_runtime *rt = open_on(disk, tail_bytes, false);
    lab_disk_settle(disk);
    lab_disk_record(disk);
    for (uint64_t k = 1; k <= EVENTS; k++) {
        char id[HD_EVENT_ID_SIZE];
        acks[k] = (acked){ disk, k };
        hd_send_options options = { .done = mark_posted, .ctx = &acks[k] };
        assert_int_equal(
            hd_event_post(rt, hd_cell_at(rt, "main/go"), hd_int(NULL, (int64_t)k), &options, id),
            HD_OK);
        if (k % 3 == 0) assert_int_equal(hd_runtime_sync(rt), HD_OK);
        if (k == EVENTS / 2) {
            assert_int_equal(hd_close(rt), HD_OK);
            rt = open_on(disk, tail_bytes, true);
        }
    }
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    lab_recording *recording = lab_disk_recorded(disk);
    lab_disk_free(disk);
    return recording;
}

static bool count_one(const hd_listing *entry, void *ctx) {
    (void)entry;
    (*(uint64_t *)ctx)++;
    return true;
}

static uint64_t count_named(hd_runtime *rt, const char *prefix) {
    uint64_t n = 0;
    assert_int_equal(hd_runtime_list(rt, "main", NULL, prefix, count_one, &n), HD_OK);
    return n;
}

static void check_after(lab_disk *disk, uint64_t last_mark) {
    hd_runtime *rt = open_on(disk, 0, true);
    hd_pool *pool;
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value list = hd_read(rt, pool, hd_cell_at(rt, "main/list"));
    uint64_t m = hd_value_count(list);
    for (size_t i = 0; i < m; i++)
        assert_int_equal(hd_value_as_int(hd_value_index(list, i), -1), i + 1);
    assert_int_equal(hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "main/total")), 0), m);
    assert_true(m >= last_mark);
    assert_int_equal(count_named(rt, "receipt/"), m);
    assert_int_equal(count_named(rt, "event/"), 0);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void cut_power(uint64_t tail_bytes, uint64_t seed) {
    lab_recording *recording = record_workload(tail_bytes);
    size_t count_ = lab_recording_count(recording);
    lab_random random = lab_random_of(seed);
    for (uint64_t i = 0; i < CYCLES / 2; i++) {
        size_t marks, n = i <= count_ ? (size_t)i : (size_t)lab_random_below(&random, count_ + 1);
        lab_disk *disk = lab_disk_at(recording, n, lab_random_u64(&random));
        const uint64_t *all = lab_recording_marks(recording, n, &marks);
        check_after(disk, marks ? all[marks - 1] : 0);
        lab_disk_free(disk);
    }
    lab_recording_free(recording);
}

/* I11: killed at every step of every commit, the log being what is left. */
static void i11_an_event_counts_once_whenever_power_fails(void **state) {
    (void)state;
    cut_power(0, lab_seed());
}

/* I11: the same with a checkpoint after nearly every commit. */
static void i11_an_event_counts_once_when_power_fails_in_checkpoints(void **state) {
    (void)state;
    cut_power(256, lab_seed() + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i11_an_event_counts_once_whenever_power_fails),
        cmocka_unit_test(i11_an_event_counts_once_when_power_fails_in_checkpoints),
    };
    return cmocka_run_group_tests_name("events and power", tests, NULL, NULL);
}

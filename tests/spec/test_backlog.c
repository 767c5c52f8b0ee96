/* test_backlog.c -- a program that writes faster than its disk: thousands of its commits have no verdict yet. */
#include "lab_line.h"

#include "spec.h"

enum { MANY = 6000 /* more than the touches that are remembered of a document */ };

static hd_store_stats stats_of(void) {
    hd_store_stats stats;
    hd_runtime_store_stats(lab_rt(lab_on(l, "a")), &stats);
    return stats;
}

static hd_status twice(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "y", 2 * lab_tx_number(self, tx, "x"));
}

/* Sets x, and lets the computation run on it, `count` times; no verdict comes meanwhile. */
static void pile_up(int count) {
    lab_line *line = lab_line_of(lab_on(l, "a"));
    line->hold_answers = true;
    for (int i = 1; i <= count; i++) {
        lab_set(l, "x", i);
        for (int k = 0; k < 3; k++) (void)hd_runtime_pump(lab_rt(lab_on(l, "a")));
    }
    line->hold_answers = false;
}

static void open_world(void) {
    lab_on(l, "a");
    lab_set(l, "x", 0);
    lab_add(l, .name = "twice", .body = twice, .reads = "x", .output = "y");
    lab_effect(l, "show", "y");
    lab_settle(l);
}

/* S3: nothing but its own commits has changed what was read, so none of them is refused, however many are pending. */
static void a_program_alone_is_never_refused(void **state) {
    open_world();
    pile_up(MANY);
    assert_true(stats_of().pending >= MANY);
    assert_int_equal(hd_runtime_sync(lab_rt(lab_on(l, "a"))), HD_OK);
    lab_settle(l);
    assert_int_equal(stats_of().rejected, 0);
    assert_json(l, "y", "12000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_program_alone_is_never_refused),
    };
    LAB_EVERYWHERE(tests);
}

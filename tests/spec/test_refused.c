/* test_refused.c -- a store that refuses everything for good: nodes end, and so does the runtime. */
#include "spec.h"

static hd_status put_one(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "d#/zero");
    hd_status status = lab_tx_put(self, tx, "one", 1);
    return status ? status : lab_tx_put(self, tx, "side", 1);
}

/* While d is not there, d#/zero cannot be reached. The node `two` makes d, so `one` runs again, which `two` reads; and
 * both commits are refused. Close gives up. */
static void a_runtime_whose_commits_are_all_refused_can_be_closed(void **state) {
    lab_on(l, "b");
    lab_on(l, "a");
    lab_catch(l);
    lab_add(l, .name = "one", .body = put_one, .side_outputs = "side", .declares = "-");
    lab_add(l, .name = "two", .reads = "one", .output = "d#/two");
    lab_effect(l, "show", "d#/two");
    lab_runtime_drop(lab_on(l, "a"));
    lab_on(l, "b");
    assert_json(l, "d", "-");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_runtime_whose_commits_are_all_refused_can_be_closed),
    };
    LAB_EVERYWHERE(tests);
}

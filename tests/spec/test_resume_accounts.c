/* test_resume_accounts.c -- what a commit changed, as a restart sees it (I7).
 *
 * A program reads single places of a document. Whatever is done to its other places, however it is
 * written, a restart does not run it: not after writes over one's own pending commits, not after an
 * element was appended to a list, not after a write of the same value, and, where nobody can say what
 * was changed, not once the program has come to rest. */
#include "spec.h"

static void program(void) {
    lab_compute(l, "a", "f#/a", NULL);
    lab_compute(l, "b", "f#/b", NULL);
    lab_compute(l, "first", "f#/items/0", NULL);
    lab_compute(l, "third", "f#/items/2", NULL);
    lab_compute(l, "count", "f#/items/length", NULL);
    lab_effect(l, "show", "a b first third count");
}

static void settle(void) {
    lab_settle(l);
    hd_runtime_sync(lab_runtime_now(l));
}

static void come_to_rest(void) {
    settle();
    lab_advance_ms(l, 2000);
    settle();
}

static void set(const char *json) { lab_set_json(l, "f", json); }

static void append(const char *cell, int value) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_append(tx, hd_cell_at(rt, cell), hd_int(hd_tx_pool(tx), value)), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* A store in memory that somebody has for himself keeps no accounts. */
static void begin(void) {
    lab_on(l, "c");
    lab_on(l, "a");
    set("{\"a\":1,\"b\":2,\"items\":[10,20,30]}");
    program();
    come_to_rest();
    lab_ran(l);
}

/* Nothing is said in farewell, where the store outlives the program; else it closes. */
static void restart(void) {
    lab_runtime *a = lab_on(l, "a");
    if (lab_is_sqlite(l)) lab_runtime_drop(a);
    else lab_runtime_close(a);
    lab_on(l, "a");
    lab_ran(l);
    program();
    settle();
}

/* Three commits, none of which has its verdict when the next is made. */
static void writes_over_pending_ones_touch_what_they_change(void **state) {
    begin();
    lab_set(l, "f#/a", 5);
    set("{\"a\":6,\"b\":2,\"items\":[10,20,30]}");
    lab_set(l, "f#/a", 7);
    come_to_rest();
    assert_ran(l, "a show");
    restart();
    assert_ran(l, "show");
    assert_seen(l, "show", "7 2 10 30 3");
}

static void writing_the_same_again_touches_nothing(void **state) {
    begin();
    lab_set(l, "f#/a", 5);
    lab_set(l, "f#/b", 2);
    set("{\"a\":5,\"b\":2,\"items\":[10,20,30]}");
    come_to_rest();
    assert_ran(l, "a show");
    restart();
    assert_ran(l, "show");
}

/* What was changed while the program was down by two commits in flight runs its readers, and they
 * alone. */
static void while_down_too_only_readers_of_what_changed_run(void **state) {
    begin();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "b");
    lab_set(l, "f#/b", 3);
    set("{\"a\":1,\"b\":4,\"items\":[10,20,30]}");
    settle();
    lab_on(l, "a");
    lab_ran(l);
    program();
    settle();
    assert_ran(l, "b show");
    assert_seen(l, "show", "1 4 10 30 3");
}

static void an_element_more_leaves_the_others_alone(void **state) {
    begin();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "b");
    append("main/f#/items", 40);
    append("main/f#/items", 50);
    settle();
    lab_on(l, "a");
    lab_ran(l);
    program();
    settle();
    assert_ran(l, "count show");
    assert_seen(l, "show", "1 2 10 30 5");
}

static void an_element_less_concerns_who_has_read_it(void **state) {
    begin();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "b");
    lab_remove(l, "f#/items/2");
    settle();
    lab_on(l, "a");
    lab_ran(l);
    program();
    settle();
    assert_ran(l, "third count show");
    assert_seen(l, "show", "1 2 10 0 2");
}

/* An array is another from some element on, and up to the longer one's end: beyond that nothing was, and
 * nothing is. */
static void beyond_the_end_of_a_list_nothing_changes(void **state) {
    begin();
    lab_compute(l, "tenth", "f#/items/9", NULL);
    lab_effect(l, "look", "tenth");
    come_to_rest();
    append("main/f#/items", 40);
    lab_remove(l, "f#/items/0");
    lab_remove(l, "f#/items/2");
    come_to_rest();
    lab_runtime *a = lab_on(l, "a");
    if (lab_is_sqlite(l)) lab_runtime_drop(a);
    else lab_runtime_close(a);
    lab_on(l, "b");
    append("main/f#/items", 50);
    settle();
    lab_on(l, "a");
    lab_ran(l);
    lab_compute(l, "tenth", "f#/items/9", NULL);
    lab_effect(l, "look", "tenth");
    settle();
    assert_ran(l, "look");
}

/* Below what is no container nothing was, and nothing is. */
static void who_reads_below_a_number_does_not_run_when_it_changes(void **state) {
    begin();
    lab_compute(l, "below", "f#/a/x", NULL);
    lab_compute(l, "beside", "f#/none/x", NULL);
    lab_effect(l, "look", "below beside");
    come_to_rest();
    lab_set(l, "f#/a", 5);
    lab_set(l, "f#/none", 5);
    come_to_rest();
    lab_ran(l);
    lab_runtime *a = lab_on(l, "a");
    if (lab_is_sqlite(l)) lab_runtime_drop(a);
    else lab_runtime_close(a);
    lab_on(l, "a");
    lab_ran(l);
    lab_compute(l, "below", "f#/a/x", NULL);
    lab_compute(l, "beside", "f#/none/x", NULL);
    lab_effect(l, "look", "below beside");
    settle();
    assert_ran(l, "look");
}

/* Many places of a part change while the program is down. */
static void a_large_change_of_a_part_concerns_who_has_read_what_changed(void **state) {
    char json[2048] = "{";
    for (int i = 0; i < 80; i++) {
        size_t n = strlen(json);
        snprintf(json + n, sizeof json - n, "%s\"k%d\":%d", i ? "," : "", i, i);
    }
    strcat(json, "}");
    begin();
    lab_set_json(l, "f#/many", "{\"k7\":7}");
    lab_compute(l, "seven", "f#/many/k7", NULL);
    lab_effect(l, "look", "seven");
    come_to_rest();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "b");
    lab_set_json(l, "f#/many", json);
    settle();
    lab_on(l, "a");
    lab_ran(l);
    lab_compute(l, "seven", "f#/many/k7", NULL);
    lab_effect(l, "look", "seven");
    settle();
    assert_ran(l, "look");
}

/* More places than an account may have. */
static void a_large_change_is_proved_at_rest(void **state) {
    char json[8192] = "{\"a\":1,\"b\":2,\"items\":[10,20,30],\"many\":{";
    begin();
    for (int i = 0; i < 300; i++) {
        size_t n = strlen(json);
        snprintf(json + n, sizeof json - n, "%s\"k%d\":%d", i ? "," : "", i, i);
    }
    strcat(json, "}}");
    set(json);
    settle();
    for (char *at = json; (at = strstr(at, "\":")) != NULL; at += 2)
        if (strstr(json, "many") < at && at[2] != '{')
            at[2] = (char)(at[2] == '9' ? '1' : at[2] + 1);
    set(json);
    come_to_rest();
    assert_ran(l, "");
    restart();
    assert_ran(l, "show");
}

/* Two write the same document at the same time, and neither has seen what the other did: what theirs
 * changed no row of the log can say. */
static void what_came_in_between_is_proved_at_rest(void **state) {
    begin();
    lab_on(l, "b");
    lab_get(l, "f#/a");
    lab_on(l, "a");
    lab_set(l, "f#/a", 5);
    lab_on(l, "b");
    set("{\"a\":6,\"b\":2,\"items\":[10,20,30]}");
    lab_settle(l);
    lab_on(l, "a");
    lab_advance_ms(l, 100);
    come_to_rest();
    come_to_rest();
    lab_ran(l);
    restart();
    assert_ran(l, "show");
}

/* The log from which an account could be taken is gone. */
static void what_the_store_has_forgotten_is_said_at_rest(void **state) {
    begin();
    lab_set(l, "f#/a", 5);
    come_to_rest();
    assert_ran(l, "a show");
    assert_int_equal(hd_store_checkpoint(lab_runtime_now(l), NULL), HD_OK);
    assert_int_equal(hd_store_prune(lab_runtime_now(l), NULL), HD_OK);
    come_to_rest();
    come_to_rest();
    restart();
    assert_ran(l, "show");
    assert_seen(l, "show", "5 2 10 30 3");
}

/* What was seen without a claim has a seq of its own. It is of now, not of the document's last change: the
 * log may not go back to that, and then the next change, wherever it is, would be one of the whole. */
static void what_was_not_claimed_is_known_as_of_now(void **state) {
    lab_on(l, "c");
    lab_on(l, "a");
    set("{\"a\":1,\"b\":2}");
    lab_set(l, "n", 1);
    lab_compute(l, "u", "!f#/a", NULL);
    lab_effect(l, "show", "u");
    come_to_rest();
    assert_int_equal(hd_store_checkpoint(lab_runtime_now(l), NULL), HD_OK);
    assert_int_equal(hd_store_prune(lab_runtime_now(l), NULL), HD_OK);
    come_to_rest();
    lab_runtime *a = lab_on(l, "a");
    if (lab_is_sqlite(l)) lab_runtime_drop(a);
    else lab_runtime_close(a);
    lab_on(l, "b");
    lab_set(l, "f#/b", 3);
    settle();
    lab_on(l, "a");
    lab_ran(l);
    lab_compute(l, "u", "!f#/a", NULL);
    lab_effect(l, "show", "u");
    settle();
    assert_ran(l, "show");
}

/* Who is invalid then, and nobody looks, is still so afterwards. */
static void who_is_invalid_at_rest_is_not_said_to_hold(void **state) {
    begin();
    lab_cancel(l, "show");
    lab_set(l, "f#/b", 9);
    come_to_rest();
    assert_ran(l, "");
    assert_int_equal(hd_store_checkpoint(lab_runtime_now(l), NULL), HD_OK);
    assert_int_equal(hd_store_prune(lab_runtime_now(l), NULL), HD_OK);
    come_to_rest();
    come_to_rest();
    restart();
    assert_ran(l, "b show");
    assert_seen(l, "show", "1 9 10 30 3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(writes_over_pending_ones_touch_what_they_change),
        S(writing_the_same_again_touches_nothing),
        S(while_down_too_only_readers_of_what_changed_run),
        S(an_element_more_leaves_the_others_alone),
        S(an_element_less_concerns_who_has_read_it),
        S(beyond_the_end_of_a_list_nothing_changes),
        S(who_reads_below_a_number_does_not_run_when_it_changes),
        S(a_large_change_of_a_part_concerns_who_has_read_what_changed),
        S(a_large_change_is_proved_at_rest),
        S(what_came_in_between_is_proved_at_rest),
        S(what_the_store_has_forgotten_is_said_at_rest),
        S(what_was_not_claimed_is_known_as_of_now),
        S(who_is_invalid_at_rest_is_not_said_to_hold),
    };
    LAB_EVERYWHERE(tests);
}

/* test_causes.c -- area R: a run happens because something changed; what that was goes with it. */
#include "base/sabotage.h"
#include "lab_inside.h"
#include "spec.h"

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static char story[4096];
static void tell_story(const char *text) {
    size_t length = strlen(story);
    snprintf(story + length, sizeof story - length, "%s%s", length ? "; " : "", text);
}
static const char *cell_name(hd_cell cell) {
    static char name[4][96];
    static unsigned next;
    char *out = name[next++ % 4];
    hd_cell_print(rt(), cell, out, sizeof name[0]);
    return strncmp(out, "main/", 5) ? out : out + 5;
}

#define CAUSES_FEW 64 /* causes that are told one by one (section 10) */

static hd_status tell_causes(lab_node *self, hd_tx *tx) {
    hd_cell causes[CAUSES_FEW];
    char line[512] = "";
    size_t count = hd_tx_causes(tx, causes, CAUSES_FEW);
    for (size_t i = 0; i < count && i < 8; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", i ? " " : "",
                 cell_name(causes[i]));
    if (count > 8) snprintf(line, sizeof line, "%zu", count);
    tell_story(*line ? line : "-");
    char word[64];
    for (const char *at = self->data; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        hd_value v = *word == '~' ? hd_tx_get_shape(tx, lab_cell(self->at, word + 1))
                                  : hd_tx_get(tx, lab_cell(self->at, word));
        if (hd_value_status(v)) return hd_value_status(v);
    }
    if (self->fail_times) return self->fail_times--, self->fail_with;
    return HD_OK;
}
static lab_node *teller(const char *reads) {
    story[0] = 0;
    lab_node *n = lab_add(l, .name = "teller", .body = tell_causes,
                          .data = (void *)(uintptr_t)reads, .effect = true);
    lab_settle(l);
    assert_string_equal(story, "-"); /* a first run has none */
    story[0] = 0;
    return n;
}

/* C336: a change that schedules is one cause, with space, scope, id and path. */
static void a_cause_is_an_address(void **state) {
    teller("doc#/a/b other/x main@user/mine");
    lab_set_json(l, "doc", "{\"a\":{\"b\":1}}");
    lab_settle(l);
    assert_string_equal(story, "doc#/a/b");
    story[0] = 0;
    lab_set(l, "other/x", 1);
    lab_settle(l);
    assert_string_equal(story, "other/x");
    story[0] = 0;
    lab_set(l, "main@user/mine", 1);
    lab_settle(l);
    assert_string_equal(story, "main@user/mine");
}

static hd_status tell_and_write_own(lab_node *self, hd_tx *tx) {
    hd_status status = tell_causes(self, tx);
    return status ? status : lab_tx_put(self, tx, "own", lab_tx_number(self, tx, "n") + 1);
}

/* C337: what a node writes itself is no cause of its later runs. */
static void own_commits_are_no_causes(void **state) {
    story[0] = 0;
    lab_add(l, .name = "teller", .body = tell_and_write_own, .data = "n own", .effect = true);
    lab_settle(l);
    story[0] = 0;
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_string_equal(story, "n; n");
}

/* C337: nor is a commit of its change group, also when it runs later for another reason. */
static void commits_of_its_group_are_no_causes(void **state) {
    story[0] = 0;
    lab_add(l, .name = "teller", .body = tell_causes, .data = "n m", .effect = true, .group = 7);
    lab_settle(l);
    story[0] = 0;
    lab_do(lab_first(l), "group 7; set n 1");
    lab_settle(l);
    assert_string_equal(story, "");
    lab_set(l, "m", 1);
    lab_settle(l);
    assert_string_equal(story, "m");
    story[0] = 0;
    lab_set(l, "n", 2); /* a cause; and its own group on top does not undo that */
    lab_do(lab_first(l), "group 7; set n 3");
    lab_settle(l);
    assert_string_equal(story, "n");
}

/* C338: the same address twice, with and without the scope said, is one cause; another scope is
 * another. */
static void an_address_is_a_cause_once(void **state) {
    teller("n ~n main/n main@user/n");
    lab_do(lab_first(l), "set n 1; set main@user/n 1");
    lab_settle(l);
    assert_string_equal(story, "n main@user/n");
}

static hd_status tell_and_copy(lab_node *self, hd_tx *tx) {
    hd_status status = tell_causes(self, tx);
    return status ? status : lab_tx_put(self, tx, "out", (double)self->runs);
}

/* C339: a commit that is refused and retried gets its causes back. */
static void a_retry_has_its_causes_again(void **state) {
    lab_runtime *b = lab_on(l, "b");
    lab_on(l, "a");
    story[0] = 0;
    lab_add(l, .name = "teller", .body = tell_and_copy, .data = "n m", .effect = true);
    lab_settle(l);
    story[0] = 0;
    lab_write(b, "n", "5");
    lab_send(b); /* decided, but a has not heard of it */
    lab_set(l, "m", 1);
    lab_pass(l);
    assert_string_equal(story, "m");
    lab_settle(l);
    assert_string_equal(story, "m; m n");
    story[0] = 0;
    lab_set(l, "n", 6); /* success: the causes are gone */
    lab_settle(l);
    assert_string_equal(story, "n");
}

/* Without restoring, the retry does not know why it runs, and C339 notices. */
static void without_restoring_c339_fails(void **state) {
    struct CMUnitTest test = S(a_retry_has_its_causes_again);
    spec_must_notice(LEAVE_OUT_RESTORE, test);
}

/* C339: retries within the budget run for the same causes; when it is used up they are gone. */
static void causes_go_with_the_budget(void **state) {
    lab_catch(l);
    lab_node *n = teller("n m");
    n->fail_with = HD_TRANSIENT;
    n->fail_times = 10;
    lab_set(l, "m", 1);
    lab_idle(l);
    assert_string_equal(story, "m; m; m; m; m; m; m; m; m; m");
    assert_string_equal(lab_failures(l), "teller HD_TRANSIENT");
    story[0] = 0;
    n->fail_times = 0;
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_string_equal(story, "n");
}

/* C340: removed with causes pending and registered again, it starts without. */
static void registered_again_it_starts_clean(void **state) {
    teller("n");
    lab_set(l, "n", 1);
    lab_cancel(l, "teller");
    teller("n");
}

/* C343: writes that change nothing are seen as attempts, never as dependencies. */
static bool note_attempts(const hd_run_trace *r, void *ctx) {
    char line[128];
    snprintf(line, sizeof line, "%s attempted %u wrote %u reads %u", r->action, r->attempted.count,
             r->written.count, r->reads);
    tell_story(line);
    return true;
}
static hd_status write_the_same(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    lab_tx_put(self, tx, "constant", 1);
    return lab_tx_put(self, tx, "out", 1);
}
static void attempts_are_no_dependencies(void **state) {
    lab_set(l, "constant", 1);
    hd_trace_enable(rt(), HD_TRACE_RUNS);
    story[0] = 0;
    lab_add(l, .name = "same", .body = write_the_same, .output = "out", .run_once = true);
    lab_settle(l);
    hd_trace_runs(rt(), note_attempts, NULL);
    assert_string_equal(story, "same attempted 1 wrote 1 reads 1");
    lab_ran(l);
    lab_effect(l, "look", "out");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "constant", 2);
    lab_settle(l);
    assert_ran(l, "");
}

/* C344: nor do they make the node a writer of that document. */
static void attempts_make_no_edges(void **state) {
    lab_set(l, "constant", 1);
    lab_add(l, .name = "same", .body = write_the_same, .output = "out", .run_once = true);
    lab_effect(l, "reader", "constant");
    lab_settle(l);
    assert_string_equal(lab_dependents(l, "same"), "");
    assert_false(lab_is_live(l, "same"));
}

/* C345: one write that changes several places is a cause only at the path that was read. */
static void a_cause_is_what_was_read(void **state) {
    lab_set_json(l, "doc", "{\"a\":1,\"b\":1,\"c\":1}");
    teller("doc#/a doc#/c");
    lab_set_json(l, "doc", "{\"a\":2,\"b\":2,\"c\":1}");
    lab_settle(l);
    assert_string_equal(story, "doc#/a");
}

/* Section 10: more than 64 causes become the common ancestors of each document's. */
static void many_causes_become_their_ancestor(void **state) {
    static char reads[4096];
    reads[0] = 0;
    char json[4096] = "{\"in\":{";
    for (int i = 0; i < 100; i++) {
        snprintf(reads + strlen(reads), sizeof reads - strlen(reads), "doc#/in/k%d ", i);
        snprintf(json + strlen(json), sizeof json - strlen(json), "%s\"k%d\":%d", i ? "," : "", i,
                 i);
    }
    strcat(json, "},\"out\":1}");
    strcat(reads, "n");
    teller(reads);
    lab_set(l, "n", 1);
    lab_set_json(l, "doc", json);
    lab_settle(l);
    assert_true(!strcmp(story, "doc#/in n") || !strcmp(story, "n doc#/in"));
}

static hd_status count_causes(lab_node *self, hd_tx *tx) {
    hd_cell few[2];
    *(size_t *)self->data = hd_tx_causes(tx, few, 2);
    char name[16];
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "d%d", i);
        lab_tx_number(self, tx, name);
    }
    return HD_OK;
}
static void the_causes_are_counted_beyond_the_bound(void **state) {
    size_t count = 0;
    char name[16];
    lab_add(l, .name = "many", .body = count_causes, .data = &count, .effect = true);
    lab_settle(l);
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "d%d", i);
        lab_set(l, name, 1);
    }
    lab_settle(l);
    assert_int_equal(count, 70);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_cause_is_an_address),
        S(own_commits_are_no_causes),
        S(commits_of_its_group_are_no_causes),
        S(an_address_is_a_cause_once),
        S(a_retry_has_its_causes_again),
        cmocka_unit_test(without_restoring_c339_fails),
        S(causes_go_with_the_budget),
        S(registered_again_it_starts_clean),
        S(attempts_are_no_dependencies),
        S(attempts_make_no_edges),
        S(a_cause_is_what_was_read),
        S(many_causes_become_their_ancestor),
        S(the_causes_are_counted_beyond_the_bound),
    };
    LAB_EVERYWHERE(tests);
}

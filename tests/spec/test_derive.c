/* test_derive.c -- several runtimes have the same computations live, and one of them derives (hd_options.derive).
 *
 * The runtimes a, b and c have the computation `double` of n, an effect that reads it, and one that reads n as well;
 * w has neither, and writes. */
#include "lab_inside.h"

#include "base/sabotage.h"
#include "spec.h"

enum { FOLLOWERS = 3, CHANGES = 100, STEPS = 4000 };
static const char *const names[FOLLOWERS] = { "a", "b", "c" };
static lab_node *doubles[FOLLOWERS], *shows[FOLLOWERS], *pairs[FOLLOWERS];
static lab_formula formula;

static int one_open(void **state) {
    l = lab_start_with((lab_options){ .derive = HD_DERIVE_ONE });
    formula = NULL;
    return 0;
}
static int each_open(void **state) {
    l = lab_start_with((lab_options){ .derive = HD_DERIVE_EACH });
    formula = NULL;
    return 0;
}
#define ONE(test)  cmocka_unit_test_setup_teardown(test, one_open, spec_close)
#define EACH(test) cmocka_unit_test_setup_teardown(test, each_open, spec_close)

static hd_runtime *rt_of(int at) { return lab_rt(lab_on(l, names[at])); }

static void join(int at, const char *version) {
    lab_on(l, names[at]);
    doubles[at] =
        lab_add(l, .name = "double", .reads = "n n", .formula = formula, .version = version);
    shows[at] = lab_effect(l, "show", "double");
    pairs[at] = lab_effect(l, "pair", "n double");
}

static void hear_all(void) {
    for (lab_runtime *r = lab_first(l); r; r = lab_next(r)) {
        lab_hear(lab_on(l, lab_name(r)));
        lab_pass(l);
    }
}

/* All hear of the change before one of them can hear of another's result. */
static void change(double n) {
    lab_on(l, "w");
    lab_set(l, "n", n);
    lab_send(lab_on(l, "w"));
    hear_all();
    lab_settle(l);
}

/* All have joined. The first changes show them that they have the same nodes, and then that one leads; a row of a
 * result that stays takes a second, as long as none leads. */
static void all_join(void) {
    lab_on(l, "w");
    lab_set(l, "n", 1);
    lab_settle(l);
    for (int i = 0; i < FOLLOWERS; i++) {
        join(i, "1");
        lab_settle(l);
    }
    for (int i = 2; i < 6; i++) {
        change(i);
        lab_advance_ms(l, 1100);
        lab_settle(l);
    }
}

static uint64_t runs(void) {
    uint64_t all = 0;
    for (int i = 0; i < FOLLOWERS; i++) all += doubles[i]->runs;
    return all;
}

/* Changes n once more, and looks which of them ran. */
static int leader(void) {
    uint64_t before[FOLLOWERS];
    int found = -1;
    for (int i = 0; i < FOLLOWERS; i++) before[i] = doubles[i]->runs;
    change(50);
    for (int i = 0; i < FOLLOWERS; i++)
        if (doubles[i]->runs != before[i]) found = i;
    assert_true(found >= 0);
    return found;
}

static void all_show(const char *text) {
    for (int i = 0; i < FOLLOWERS; i++) assert_string_equal(shows[i]->seen, text);
}

/* C379: a hundred changes are a hundred runs, and every effect sees every result. */
static void one_runtime_derives_for_all(void **state) {
    all_join();
    uint64_t before = runs(), shown = shows[1]->runs;
    for (int i = 0; i < CHANGES; i++) {
        char text[20];
        change(100 + i);
        snprintf(text, sizeof text, "%d", 2 * (100 + i));
        all_show(text);
    }
    assert_int_equal(runs() - before, CHANGES);
    assert_int_equal(shows[1]->runs - shown, CHANGES);
}

/* C379: otherwise each of them runs. */
static void each_runtime_derives_for_itself(void **state) {
    all_join();
    uint64_t before = runs();
    for (int i = 0; i < CHANGES; i++) change(100 + i);
    assert_true(runs() - before >= 2 * CHANGES);
    lab_on(l, "w");
    assert_json(l, "lease/derive", "-");
}

/* A runtime that is alone takes no lease. */
static void no_lease_without_another(void **state) {
    join(0, "1");
    for (int i = 2; i < 6; i++) change(i);
    lab_on(l, "w");
    assert_json(l, "lease/derive", "-");
}

static double is_large(const double *in) { return in[0] > 1000; }

/* C379: a result that is as before is told, too, and at once. */
static void a_result_that_stays_is_told(void **state) {
    formula = is_large;
    all_join();
    uint64_t before = runs();
    for (int i = 0; i < CHANGES; i++) change(100 + i);
    assert_int_equal(runs() - before, CHANGES);
    for (int i = 0; i < FOLLOWERS; i++) {
        lab_on(l, names[i]);
        assert_true(lab_is_clean(l, "double"));
    }
}

/* The leader is cut off: what it has to say does not arrive. */
static int cut_leader(void) {
    int at = leader();
    lab_cut(lab_on(l, names[at]));
    return at;
}

static bool waits(int at) {
    lab_on(l, names[at]);
    return lab_info(l, "double").why_not == HD_WHY_NOT_LED;
}

/* C380: a leader that is silent is waited for, and everything downstream waits; then the node runs, and the next time
 * it does not wait. */
static void a_silent_leader_is_not_waited_for_long(void **state) {
    all_join();
    int at = cut_leader(), other = (at + 1) % FOLLOWERS;
    uint64_t shown = shows[other]->runs, paired = pairs[other]->runs;
    change(60);
    assert_true(waits(other));
    assert_int_equal(lab_info(l, "pair").why_not, HD_WHY_NOT_LED);
    assert_int_equal(pairs[other]->runs, paired);
    lab_advance_ms(l, 1000);
    lab_settle(l);
    assert_string_equal(shows[other]->seen, "120");
    assert_string_equal(pairs[other]->seen, "60 120");
    assert_int_equal(shows[other]->runs, shown + 1);
    assert_int_equal(pairs[other]->runs, paired + 1);
    change(61);
    assert_string_equal(pairs[other]->seen, "61 122");
    lab_mend(lab_on(l, names[at]));
    lab_settle(l);
    all_show("122");
}

/* The sentence says for which process the node waits, and idle waits with it. */
static void a_node_says_for_whom_it_waits(void **state) {
    char text[256], process[40];
    all_join();
    int at = cut_leader(), other = (at + 1) % FOLLOWERS;
    change(60);
    assert_true(waits(other));
    snprintf(process, sizeof process, "process %d", (int)getpid());
    hd_node_why_not(rt_of(other), doubles[other]->node, text, sizeof text);
    assert_non_null(strstr(text, process));
    hd_node_why_not(rt_of(other), pairs[other]->node, text, sizeof text);
    assert_non_null(strstr(text, "\"double\""));
    assert_false(hd_runtime_is_idle(rt_of(other)));
    hd_runtime_settle(rt_of(other));
    assert_string_equal(pairs[other]->seen, "60 120");
    lab_mend(lab_on(l, names[at]));
}

/* C380: what a program writes itself is not waited for. */
static void an_own_write_is_derived_at_once(void **state) {
    all_join();
    int at = cut_leader(), other = (at + 1) % FOLLOWERS;
    lab_on(l, names[other]);
    lab_set(l, "n", 70);
    lab_settle(l);
    assert_string_equal(pairs[other]->seen, "70 140");
    lab_mend(lab_on(l, names[at]));
    lab_settle(l);
    all_show("140");
}

/* C380: a leader that closes hands over, and one derives again. */
static void another_leads_when_the_leader_closes(void **state) {
    all_join();
    int at = leader();
    lab_runtime_close(lab_on(l, names[at]));
    change(80);
    change(81);
    uint64_t before = runs();
    for (int i = 0; i < CHANGES; i++) change(100 + i);
    assert_int_equal(runs() - before, CHANGES);
    assert_string_equal(shows[(at + 1) % FOLLOWERS]->seen, "398");
}

enum { SPACES = 6 };

/* Changes the input in each space, and all hear of that before one hears of a result. */
static void change_all(double n) {
    char cell[20];
    lab_on(l, "w");
    for (int i = 0; i < SPACES; i++) {
        snprintf(cell, sizeof cell, "s%d/n", i);
        lab_set(l, cell, n);
    }
    lab_send(lab_on(l, "w"));
    hear_all();
    lab_settle(l);
}

static void join_spaces(const char *runtime) {
    char name[20], reads[20], output[20], effect[20];
    lab_on(l, runtime);
    for (int i = 0; i < SPACES; i++) {
        snprintf(name, sizeof name, "d%d", i);
        snprintf(reads, sizeof reads, "s%d/n", i);
        snprintf(output, sizeof output, "s%d/d", i);
        snprintf(effect, sizeof effect, "e%d", i);
        lab_add(l, .name = name, .reads = reads, .output = output, .version = "1");
        lab_effect(l, effect, output);
    }
}

/* How many leases the first session has that is met. */
static int leases_of_one(void) {
    char cell[40], first[40] = "";
    int count = 0;
    lab_on(l, "w");
    for (int i = 0; i < SPACES; i++) {
        snprintf(cell, sizeof cell, "s%d/lease/derive", i);
        const char *session = strstr(lab_pull(l, cell), "\"session\":");
        assert_non_null(session);
        if (!*first) snprintf(first, sizeof first, "%.39s", session);
        count += !strncmp(session, first, strlen(first));
    }
    return count;
}

/* Leases of several spaces are spread. */
static void spaces_are_spread(void **state) {
    lab_on(l, "w");
    change_all(1);
    join_spaces("a");
    lab_settle(l);
    join_spaces("b");
    for (int i = 2; i < 10; i++) change_all(i);
    assert_int_equal(leases_of_one(), SPACES / 2);
    join_spaces("c");
    for (int i = 10; i < 20; i++) change_all(i);
    assert_int_equal(leases_of_one(), SPACES / 3);
}

/* C380: a leader with other code is not waited for. */
static void other_code_is_not_waited_for(void **state) {
    lab_on(l, "w");
    lab_set(l, "n", 1);
    for (int i = 0; i < FOLLOWERS; i++) {
        join(i, i ? "2" : "1");
        lab_settle(l);
    }
    for (int i = 2; i < 30; i++) {
        change(i);
        lab_on(l, "a");
        assert_true(lab_is_clean(l, "double"));
        lab_on(l, "b");
        assert_true(lab_is_clean(l, "double"));
    }
}

/* C379: a pull waits for what is computed elsewhere. */
static void a_pull_waits_for_the_result(void **state) {
    all_join();
    int at = leader(), other = (at + 1) % FOLLOWERS;
    lab_on(l, "w");
    lab_set(l, "n", 90);
    lab_send(lab_on(l, "w"));
    lab_hear(lab_on(l, names[other]));
    lab_on(l, names[other]);
    assert_string_equal(lab_pull(l, "double"), "180");
}

/* ---- in any order */

static bool shows_one_state(int at) {
    double n, twice;
    const char *seen = pairs[at]->seen;
    return sscanf(seen, "%lf %lf", &n, &twice) != 2 || twice == 2 * n;
}

/* One thing that may happen next: a write, messages of one runtime, a pass, or time. */
static void happen(lab_random *r, int step) {
    uint32_t at = (uint32_t)lab_random_below(r, FOLLOWERS + 1);
    lab_runtime *on = lab_on(l, at < FOLLOWERS ? names[at] : "w");
    switch (lab_random_below(r, 8)) {
    case 0: lab_set(l, lab_random_once_in(r, 3) ? "m" : "n", step); break;
    case 1:
    case 2: lab_send(on); break;
    case 3: lab_hear(on); break;
    case 4: lab_advance_ms(l, lab_random_below(r, 4)); break;
    case 5: lab_seal(l); break;
    default: lab_pass(l); break;
    }
}

/* C379: whoever derives, and whichever results are refused, an effect that reads input and result sees both of one
 * state. All rest in between: behind more than ten refusals in a row readers do not wait. */
static void effects_see_one_state_in_any_order(void **state) {
    lab_random r = lab_random_of(lab_seed());
    all_join();
    for (int i = 0; i < FOLLOWERS; i++) {
        lab_on(l, names[i]);
        lab_add(l, .name = "other", .reads = "m", .version = "1");
        lab_effect(l, "show other", "other");
    }
    for (int step = 0; step < STEPS; step++) {
        happen(&r, 100 + step);
        for (int i = 0; i < FOLLOWERS; i++) assert_true(shows_one_state(i));
        if (step % 150 < 149) continue;
        lab_settle(l);
        lab_advance_ms(l, 2500);
        lab_settle(l);
    }
}

#define NOTICES(what, name, test)                                                                  \
    static void name(void **state) { spec_must_notice(what, (struct CMUnitTest)ONE(test)); }
NOTICES(LEAVE_OUT_PATIENCE, patience_ends_a_wait, a_silent_leader_is_not_waited_for_long)

int main(void) {
    const struct CMUnitTest tests[] = {
        ONE(one_runtime_derives_for_all),
        EACH(each_runtime_derives_for_itself),
        S(each_runtime_derives_for_itself), /* the default, but on a server */
        ONE(no_lease_without_another),
        ONE(a_result_that_stays_is_told),
        ONE(a_silent_leader_is_not_waited_for_long),
        ONE(a_node_says_for_whom_it_waits),
        ONE(an_own_write_is_derived_at_once),
        ONE(another_leads_when_the_leader_closes),
        ONE(spaces_are_spread),
        ONE(other_code_is_not_waited_for),
        ONE(a_pull_waits_for_the_result),
        ONE(effects_see_one_state_in_any_order),
        cmocka_unit_test(patience_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

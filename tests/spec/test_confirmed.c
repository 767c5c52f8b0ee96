/* test_confirmed.c -- sinks for confirmed values: what is shown has been accepted by the store. */
#include "spec.h"

#include <heddle/pattern.h>

static lab_runtime *world;
static char shown[256];

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static void show(hd_value v, void *ctx) {
    snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s%s%lld", *shown ? " " : "",
             (const char *)ctx, (long long)hd_value_as_int(v, -1));
}

static hd_node look(const char *cell, bool confirmed) {
    hd_node n;
    char name[32];
    snprintf(name, sizeof name, "%s of %s", confirmed ? "certain" : "early", cell);
    hd_sink_spec spec = { .name = name,
                          .cell = lab_cell(lab_first(l), cell),
                          .fn = show,
                          .ctx = confirmed ? "" : "~",
                          .confirmed = confirmed };
    assert_status(hd_sink_register(rt(), &spec, &n), HD_OK);
    return n;
}

static void begin(void) {
    shown[0] = 0;
    world = lab_first(l);
    lab_set(l, "n", 1);
    lab_settle(l);
}

/* hd_sink_spec.confirmed: a value that is visible is shown when its commit has been accepted, not before. */
static void a_value_is_shown_when_it_is_accepted(void **state) {
    begin();
    look("n", false);
    look("n", true);
    lab_settle(l);
    assert_string_equal(shown, "~1 1");
    lab_hold(world);
    lab_do(world, "set n 2");
    hd_runtime_pump(rt());
    hd_runtime_pump(rt());
    assert_string_equal(shown, "~1 1 ~2");
    lab_mend(world);
    lab_settle(l);
    assert_string_equal(shown, "~1 1 ~2 2");
}

/* The same for what a computation makes of it; values that have been overtaken are left out. */
static void a_derived_value_waits_for_what_it_follows_from(void **state) {
    begin();
    lab_compute(l, "copy", "n", NULL);
    look("copy", true);
    lab_settle(l);
    lab_hold(world);
    for (int i = 2; i < 6; i++) {
        char line[32];
        snprintf(line, sizeof line, "set n %d", i);
        lab_do(world, line);
        hd_runtime_pump(rt());
    }
    assert_string_equal(shown, "1");
    lab_mend(world);
    lab_settle(l);
    assert_string_equal(shown, "1 5");
}

/* What is shown of a computation is in the store itself, not only what it follows from: whoever reads the store now
 * finds it. */
static void a_derived_value_is_stored_when_it_is_shown(void **state) {
    begin();
    lab_runtime *other = lab_runtime_open(l, "b");
    lab_compute(l, "copy", "n", NULL);
    look("n", true);
    look("copy", true);
    lab_settle(l);
    for (int i = 2; i < 20; i++) {
        char want[16], line[32];
        snprintf(want, sizeof want, "%d", i);
        snprintf(line, sizeof line, "set n %d", i);
        shown[0] = 0;
        lab_do(world, line);
        char *second; /* of both sinks, in either order */
        do hd_runtime_pump(rt());
        while (!(second = strchr(shown, ' ')));
        assert_string_equal(second + 1, want);
        lab_pump(other);
        assert_cell(other, "copy", want);
    }
}

/* What a refusal takes back is never shown, nor what was shown before shown again. */
static void a_refused_value_is_not_shown(void **state) {
    begin();
    lab_runtime *other = lab_runtime_open(l, "b");
    look("n", false);
    look("n", true);
    lab_settle(l);
    lab_hold(world);
    lab_do(world, "get n; set m 1; set n 7");
    hd_runtime_pump(rt());
    assert_string_equal(shown, "~1 1 ~7");
    lab_do(other, "set n 3");
    lab_pump(other);
    lab_mend(world);
    lab_settle(l);
    assert_string_equal(shown, "~1 1 ~7 ~3 3");
}

/* hd_runtime_sync and hd_close wait for the sink. */
static void a_sync_shows_what_it_has_stored(void **state) {
    begin();
    look("n", true);
    hd_runtime_sync(rt());
    lab_do(world, "set n 4");
    hd_runtime_settle(rt());
    hd_runtime_sync(rt());
    assert_string_equal(shown, "1 4");
}

static void closing_shows_what_it_has_stored(void **state) {
    hd_runtime *own;
    shown[0] = 0;
    assert_status(hd_open(NULL, NULL, &own, NULL), HD_OK);
    hd_sink_spec spec = {
        .cell = hd_cell_at(own, "main/n"), .fn = show, .ctx = "", .confirmed = true
    };
    assert_status(hd_sink_register(own, &spec, NULL), HD_OK);
    hd_runtime_settle(own);
    assert_status(hd_write_json(own, spec.cell, "9"), HD_OK);
    hd_runtime_settle(own);
    assert_status(hd_close(own), HD_OK);
    assert_string_equal(shown, "-1 9");
}

/* A sink that is removed is shown nothing any more, also by itself while it is shown something. */
static void a_sink_that_is_gone_is_shown_nothing(void **state) {
    begin();
    hd_node n = look("n", true);
    lab_settle(l);
    lab_hold(world);
    lab_do(world, "set n 2");
    hd_runtime_pump(rt());
    hd_node_unregister(rt(), n);
    lab_mend(world);
    lab_settle(l);
    assert_string_equal(shown, "1");
}

static hd_node itself;
static void leave(hd_value v, void *ctx) {
    show(v, "last ");
    hd_node_unregister(ctx, itself);
}
static void a_sink_may_remove_itself(void **state) {
    begin();
    lab_hold(world);
    lab_do(world, "set n 2");
    hd_sink_spec spec = {
        .cell = lab_cell(world, "n"), .fn = leave, .ctx = rt(), .confirmed = true
    };
    assert_status(hd_sink_register(rt(), &spec, &itself), HD_OK);
    hd_runtime_pump(rt());
    lab_mend(world);
    lab_settle(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_string_equal(shown, "last 2");
}

static void add_up(hd_value v, void *ctx) {
    show(v, "");
    assert_status(
        hd_write_json(rt(), lab_cell(world, "m"), hd_value_as_int(v, 0) == 1 ? "10" : "20"), HD_OK);
}

/* The function is called outside of runs, also when nothing is on its way: it may write. */
static void a_sink_may_write(void **state) {
    begin();
    hd_sink_spec spec = { .cell = lab_cell(world, "n"), .fn = add_up, .confirmed = true };
    assert_status(hd_sink_register(rt(), &spec, NULL), HD_OK);
    lab_settle(l);
    assert_int_equal(lab_get(l, "m"), 10);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(lab_get(l, "m"), 20);
    assert_string_equal(shown, "1 2");
}

static void count_release(void *ctx) { ++*(int *)ctx; }
static void ignore(hd_value v, void *ctx) { assert_int_equal(*(int *)ctx, 0); }

/* hd_sink_spec.release: once for each sink that is gone, never for one that was not registered. */
static void a_sink_that_is_gone_is_released(void **state) {
    begin();
    int released[2] = { 0, 0 };
    hd_node n[2];
    for (int i = 0; i < 2; i++) {
        hd_sink_spec spec = { .cell = lab_cell(world, "n"),
                              .fn = ignore,
                              .ctx = &released[i],
                              .confirmed = i == 1,
                              .release = count_release };
        assert_status(hd_sink_register(rt(), &spec, &n[i]), HD_OK);
        spec.cell = (hd_cell){ 0 };
        assert_status(hd_sink_register(rt(), &spec, NULL), HD_USAGE);
    }
    lab_settle(l);
    assert_int_equal(released[0] + released[1], 0);
    for (int i = 0; i < 2; i++) hd_node_unregister(rt(), n[i]);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_int_equal(released[0], 1);
    assert_int_equal(released[1], 1);
}

/* hd_build_sink_spec takes the flag too. */
static hd_cell built(hd_build *b, void *ctx) {
    hd_cell n = hd_build_state(b, "n", hd_int(hd_build_pool(b), 1));
    hd_build_sink_spec(
        b, &(hd_sink_spec){ .name = "s", .cell = n, .fn = show, .ctx = "", .confirmed = true });
    return n;
}
static void a_pattern_has_such_sinks(void **state) {
    hd_piece piece;
    begin();
    assert_status(hd_pattern_register(rt(), "p", "1", built, NULL), HD_OK);
    assert_status(hd_piece_start(rt(), &(hd_piece_spec){ .id = "p", .pattern = "p" }, &piece, NULL),
                  HD_OK);
    lab_settle(l);
    lab_hold(world);
    lab_do(world, "set main/p/n 2");
    hd_runtime_pump(rt());
    assert_string_equal(shown, "1");
    lab_mend(world);
    lab_settle(l);
    assert_string_equal(shown, "1 2");
}

static void write_in_group(int value, uint64_t group) {
    hd_tx *tx;
    assert_status(hd_tx_begin(rt(), &tx), HD_OK);
    if (group) hd_tx_set_group(tx, group);
    assert_status(hd_tx_set(tx, lab_cell(world, "n"), hd_int(NULL, value)), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static hd_node look_as_editor(void) {
    hd_node n;
    hd_sink_spec spec = {
        .cell = lab_cell(world, "n"), .fn = show, .ctx = "", .group = 7, .confirmed = true
    };
    assert_status(hd_sink_register(rt(), &spec, &n), HD_OK);
    lab_settle(l);
    assert_string_equal(shown, "1");
    return n;
}

/* C118: the editor shows 2, which it has written; a commit of others that puts 1 back is told, although 1 was told
 * last. */
static void an_editor_is_told_that_its_edit_was_undone(void **state) {
    for (int pumps = 0; pumps < 2; pumps++) {
        begin();
        hd_node editor = look_as_editor();
        write_in_group(2, 7);
        if (pumps) lab_settle(l);
        write_in_group(1, 0);
        lab_settle(l);
        assert_string_equal(shown, "1 1");
        hd_node_unregister(rt(), editor);
    }
}

/* C118: what waits when the editor writes is older than the edit. */
static void an_editor_does_not_lose_its_edit_to_an_older_value(void **state) {
    begin();
    look_as_editor();
    lab_hold(world);
    write_in_group(2, 0);
    hd_runtime_pump(rt());
    write_in_group(3, 7);
    hd_runtime_pump(rt());
    lab_mend(world);
    lab_settle(l);
    assert_string_equal(shown, "1 3");
}

/* Whatever allocation fails: nothing leaks, and a value that is shown at the end is the one that is there. */
static void one_run(lab_env *env, void *ctx) {
    hd_runtime *own;
    hd_options options = { .env = lab_env_of(env) };
    shown[0] = 0;
    if (hd_open(NULL, &options, &own, NULL)) return;
    hd_sink_spec spec = {
        .cell = hd_cell_at(own, "main/n"), .fn = show, .ctx = "", .confirmed = true
    };
    hd_status status = spec.cell.id ? hd_sink_register(own, &spec, NULL) : HD_NOMEM;
    for (int i = 0; i < 3; i++) hd_runtime_pump(own);
    if (!status) status = hd_write_json(own, spec.cell, "9");
    for (int i = 0; i < 5; i++) hd_runtime_pump(own);
    hd_close(own);
    if (!status) assert_non_null(strstr(shown, "9"));
}
static void confirmed_sinks_do_without_memory(void **state) {
    assert_true(lab_each_allocation_failure(one_run, NULL) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_value_is_shown_when_it_is_accepted),
        S(a_derived_value_waits_for_what_it_follows_from),
        S(a_derived_value_is_stored_when_it_is_shown),
        S(a_refused_value_is_not_shown),
        S(a_sync_shows_what_it_has_stored),
        S(closing_shows_what_it_has_stored),
        S(a_sink_that_is_gone_is_shown_nothing),
        S(a_sink_may_remove_itself),
        S(a_sink_may_write),
        S(a_sink_that_is_gone_is_released),
        S(a_pattern_has_such_sinks),
        S(an_editor_is_told_that_its_edit_was_undone),
        S(an_editor_does_not_lose_its_edit_to_an_older_value),
        S(confirmed_sinks_do_without_memory),
    };
    LAB_EVERYWHERE(tests);
}

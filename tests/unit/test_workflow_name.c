/* test_workflow_name.c -- instances and schedules of a store whose names no start and no put takes any more. */
#include "workflow/engine.h"
#include "workflow/schedule.h"

#include "workflow_world.h"

static void register_actions(hd_engine *e) { (void)e; }

/* As an earlier version has stored it. */
static void put_document(const char *prefix, const char *name, const char *kind, const char *json) {
    hd_tx *tx;
    place_id doc = engine_document(engine, prefix, name);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set(tx, (hd_cell){ doc }, parse(json)), HD_OK);
    assert_int_equal(hd_tx_set_kind(tx, (hd_cell){ doc }, kind), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    place_unref(&rt->r.places, doc);
}

static void an_instance_with_a_key_of_old_is_read_and_removed(void **state) {
    static const char *const ids[] = { "w/a#b", "w/a\x7f", "w/a\xc2\x9b" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        put_document(INSTANCE_PREFIX, ids[i], "workflow.done", "{'status':'done'}");
        hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, ids[i]));
        assert_string_equal(hd_value_as_text(hd_value_at(doc, "status"), ""), "done");
        assert_int_equal(hd_workflow_remove(engine, ids[i]), HD_OK);
        assert_false(hd_value_exists(hd_read(rt, pool, hd_workflow_cell(engine, ids[i]))));
    }
}

static void a_schedule_with_a_name_of_old_is_removed(void **state) {
    hd_value v;
    put_document(SCHEDULE_PREFIX, "a#b", SCHEDULE_KIND, "{'workflow':'w','cron':'@daily'}");
    assert_int_equal(hd_schedule_state(engine, "a#b", pool, &v), HD_OK);
    assert_int_equal(hd_schedule_remove(engine, "a#b"), HD_OK);
    assert_int_equal(hd_schedule_state(engine, "a#b", pool, &v), HD_NOT_FOUND);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(an_instance_with_a_key_of_old_is_read_and_removed),
        IN_A_WORLD(a_schedule_with_a_name_of_old_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_gates_kept.c -- which gates a node has (8.2): those of its registration, and over them what the program has
 * set last. What is set ends with the node, in this process and after a restart. From the public headers. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static hd_lab *lab;
static hd_runtime *rt;
static hd_node computation, effect;

static int start_in(bool in_file) {
    lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file });
    rt = hd_lab_runtime(lab, "main");
    return 0;
}
static int start(void **state) { return start_in(false); }
static int start_file(void **state) { return start_in(true); }
static int finish(void **state) {
    hd_lab_close(lab);
    return 0;
}
#define T(name)                                                                                    \
    { #name, name, start, finish, NULL }, { #name " in a file", name, start_file, finish, NULL }

static hd_status nothing(hd_tx *tx, void *ctx) { return HD_OK; }

static void add(uint32_t debounce, uint32_t throttle) {
    hd_node_spec spec = {
        .name = "c", .fn = nothing, .output = hd_cell_at(rt, "main/c"), .version = "1"
    };
    spec.debounce_ms = debounce;
    spec.throttle_ms = throttle;
    assert_int_equal(hd_node_register(rt, &spec, &computation), HD_OK);
    spec.name = "e";
    spec.effect = true;
    spec.output = (hd_cell){ 0 };
    assert_int_equal(hd_node_register(rt, &spec, &effect), HD_OK);
}
static void remove_both(void) {
    hd_node_unregister(rt, computation);
    hd_node_unregister(rt, effect);
}
static void restart_with(uint32_t debounce, uint32_t throttle) {
    hd_lab_runtime_close(rt);
    rt = hd_lab_runtime(lab, "main");
    add(debounce, throttle);
}
static void expect(uint32_t debounce, uint32_t throttle) {
    assert_int_equal(hd_node_debounce(rt, computation), debounce);
    assert_int_equal(hd_node_debounce(rt, effect), debounce);
    assert_int_equal(hd_node_throttle(rt, computation), throttle);
    assert_int_equal(hd_node_throttle(rt, effect), throttle);
}
static void set_debounce(uint32_t ms) {
    assert_int_equal(hd_node_set_debounce(rt, computation, ms), HD_OK);
    assert_int_equal(hd_node_set_debounce(rt, effect, ms), HD_OK);
}

/* C369: only what was set is stored: the other gate is that of the next registration. */
static void a_gate_that_was_not_set_is_that_of_the_registration(void **state) {
    add(10, 20);
    set_debounce(50);
    expect(50, 20);
    restart_with(11, 21);
    expect(50, 21);
    restart_with(0, 0);
    expect(50, 0);
    set_debounce(0);
    restart_with(12, 22);
    expect(0, 22);
}

/* C369: unregistering a node ends what was set for it, stored or not, and at once. */
static void what_was_set_ends_with_the_node(void **state) {
    add(10, 0);
    set_debounce(50);
    remove_both();
    add(10, 0);
    expect(10, 0);
    set_debounce(60);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    remove_both();
    add(10, 0);
    expect(10, 0);
    restart_with(10, 0);
    expect(10, 0);
}

/* C369: what is set after that counts for the new node. */
static void what_is_set_for_the_next_node_is_stored(void **state) {
    add(10, 0);
    set_debounce(50);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    remove_both();
    add(10, 0);
    set_debounce(70);
    expect(70, 0);
    restart_with(10, 0);
    expect(70, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_gate_that_was_not_set_is_that_of_the_registration),
        T(what_was_set_ends_with_the_node),
        T(what_is_set_for_the_next_node_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_poller.c -- sets of descriptors and bells, on whichever of epoll and kqueue the system has; and
 * base/system.h. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/poller.h"
#include "base/system.h"
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct world {
    int set, ends[2];
} world;

static world open_world(void) {
    world w = { .set = poller_open() };
    assert_true(w.set >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w.ends), 0);
    return w;
}

static void close_world(world *w) {
    close(w->set);
    close(w->ends[0]);
    if (w->ends[1] >= 0) close(w->ends[1]);
}

/* What is told of the first end; 0: nothing. */
static uint32_t told(const world *w) {
    poller_event got[4];
    int count = poller_take(w->set, got, 4);
    assert_in_range(count, 0, 1);
    if (count) assert_int_equal(got[0].fd, w->ends[0]);
    return count ? got[0].what : 0;
}

static bool is_readable(int fd) {
    struct pollfd p = { fd, POLLIN, 0 };
    return poll(&p, 1, 0) == 1;
}

static void what_is_asked_for_is_told(void **state) {
    world w = open_world();
    assert_true(poller_add(w.set, w.ends[0], POLLER_IN));
    assert_int_equal(told(&w), 0);
    assert_int_equal(write(w.ends[1], "x", 1), 1);
    assert_int_equal(told(&w), POLLER_IN);
    assert_int_equal(told(&w), POLLER_IN); /* until it is read */
    assert_true(poller_change(w.set, w.ends[0], POLLER_OUT));
    assert_int_equal(told(&w), POLLER_OUT);
    assert_true(poller_change(w.set, w.ends[0], POLLER_IN | POLLER_OUT));
    assert_int_equal(told(&w), POLLER_IN | POLLER_OUT);
    assert_true(poller_change(w.set, w.ends[0], 0));
    assert_int_equal(told(&w), 0);
    poller_remove(w.set, w.ends[0]);
    poller_remove(w.set, w.ends[0]);
    assert_int_equal(told(&w), 0);
    close_world(&w);
}

static void that_the_other_end_is_gone_is_told_to_all(void **state) {
    static const uint32_t asked[] = { 0, POLLER_IN, POLLER_OUT, POLLER_IN | POLLER_OUT };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        world w = open_world();
        assert_true(poller_add(w.set, w.ends[0], asked[i]));
        close(w.ends[1]);
        w.ends[1] = -1;
        uint32_t what = told(&w);
        assert_int_equal(what & POLLER_GONE, POLLER_GONE);
        assert_int_equal(what & POLLER_IN, asked[i] & POLLER_IN);
        close_world(&w);
    }
}

static void a_closed_member_leaves(void **state) {
    world w = open_world();
    int other = poller_open();
    assert_true(poller_add(w.set, w.ends[0], POLLER_IN));
    assert_int_equal(write(w.ends[1], "x", 1), 1);
    close(w.ends[0]);
    assert_false(is_readable(w.set));
    w.ends[0] = other; /* a descriptor that can be closed */
    close_world(&w);
}

static void a_set_may_be_a_member(void **state) {
    world w = open_world();
    int outer = poller_open();
    poller_event got;
    assert_true(poller_add(outer, w.set, POLLER_IN));
    assert_true(poller_add(w.set, w.ends[0], POLLER_IN));
    assert_false(is_readable(outer));
    assert_int_equal(write(w.ends[1], "x", 1), 1);
    assert_true(is_readable(outer));
    assert_int_equal(poller_take(outer, &got, 1), 1);
    assert_int_equal(got.fd, w.set);
    close(outer);
    close_world(&w);
}

static void a_bell_is_readable_until_it_is_taken(void **state) {
    int bell = bell_open(), set = poller_open();
    assert_true(bell >= 0 && poller_add(set, bell, POLLER_IN));
    assert_false(is_readable(bell));
    assert_false(bell_take(bell));
    bell_ring(bell);
    bell_ring(bell);
    assert_true(is_readable(bell));
    assert_true(is_readable(set));
    assert_true(bell_take(bell));
    assert_false(bell_take(bell));
    assert_false(is_readable(set));
    close(bell);
    close(set);
}

/* ---- system.h ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b, void *ctx) {
    int order = *(const int *)ctx;
    return order * (*(const int *)a - *(const int *)b);
}

static void items_are_sorted_with_a_context(void **state) {
    int items[] = { 3, 1, 2 }, down = -1;
    system_sort(items, 3, sizeof *items, compare, &down);
    assert_int_equal(items[0] * 100 + items[1] * 10 + items[2], 321);
}

static void descriptors_are_not_passed_on(void **state) {
    int ends[2];
    assert_int_equal(system_pipe(ends), 0);
    int s = system_socket();
    assert_true(fcntl(ends[0], F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(ends[1], F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(s, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(s, F_GETFL) & O_NONBLOCK);
    close(ends[0]);
    close(ends[1]);
    close(s);
}

static void the_program_knows_its_name(void **state) {
    char path[4096], name[64];
    assert_true(system_program(path, sizeof path));
    assert_non_null(strstr(path, "test_poller"));
    system_program_name(name, sizeof name);
    assert_non_null(strstr(name, "test_poller"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for_is_told),
        cmocka_unit_test(that_the_other_end_is_gone_is_told_to_all),
        cmocka_unit_test(a_closed_member_leaves),
        cmocka_unit_test(a_set_may_be_a_member),
        cmocka_unit_test(a_bell_is_readable_until_it_is_taken),
        cmocka_unit_test(items_are_sorted_with_a_context),
        cmocka_unit_test(descriptors_are_not_passed_on),
        cmocka_unit_test(the_program_knows_its_name),
    };
    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}

/* test_inspect.c -- a running program answers those who look from outside, and nobody can make it wait.
 *
 * The asker is in the same process: its socket is written to, the runtime is pumped, and the answer is
 * there. Time is the lab's, so that one who is too slow is so at once. */
#define _GNU_SOURCE
#include "spec.h"

#include "inspect/address.h"
#include <errno.h>
#include <fcntl.h>
#include <heddle/inspect.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---- a place for sockets, and askers */

static char folder[64], path[128];

static int open_place(void **state) {
    spec_open(state);
    snprintf(folder, sizeof folder, "/tmp/heddle-inspect-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    return 0;
}

static int close_place(void **state) {
    spec_close(state);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing is left behind */
    return 0;
}

#define W(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static void serve(void) {
    assert_int_equal(hd_runtime_serve(rt(), &(hd_serve_options){ .socket = path, .name = "shop" }),
                     HD_OK);
}

static void pump(void) { assert_int_equal(hd_runtime_pump(rt()), HD_OK); }

static int say(const char *text) {
    int fd = address_connect(path);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

static char heard[1 << 20];

/* All that has come; "" when nothing has. Closes at the end. */
static const char *hear(int fd) {
    size_t length = 0;
    for (ssize_t n; (n = recv(fd, heard + length, sizeof heard - 1 - length, 0)) > 0;)
        length += (size_t)n;
    heard[length] = '\0';
    close(fd);
    return heard;
}

static const char *ask(const char *line) {
    int fd = say(line);
    for (int i = 0; i < 3; i++) pump();
    return hear(fd);
}

#define assert_answer(text, part)                                                                  \
    do {                                                                                           \
        const char *heard_ = (text);                                                               \
        if (!strstr(heard_, part)) fail_msg("%s\nis not in: %s", part, heard_);                    \
    } while (0)

/* ---- asking */

static void a_small_shop(void) {
    lab_set(l, "price", 3);
    lab_set(l, "count", 4);
    lab_compute(l, "total", "price count", NULL);
    lab_compute(l, "nobody", "price", NULL);
    lab_effect(l, "show", "total");
    lab_idle(l);
}

static void who_is_there_says_its_name(void **state) {
    serve();
    assert_string_equal(hd_runtime_socket(rt()), path);
    const char *answer = ask("{\"heddle\":1,\"ask\":\"hello\"}\n");
    assert_answer(answer, "{\"heddle\":1,\"answer\":{");
    assert_answer(answer, "\"name\":\"shop\"");
    assert_int_equal(answer[strlen(answer) - 1], '\n');
    hd_runtime_stop_serving(rt());
    assert_null(hd_runtime_socket(rt()));
    assert_int_equal(access(path, F_OK), -1);
}

static void nothing_is_served_unless_asked_for(void **state) {
    pump();
    assert_null(hd_runtime_socket(rt()));
    assert_int_equal(hd_runtime_deadline(rt()) == 0, false);
}

static void every_question_has_its_answer(void **state) {
    serve();
    a_small_shop();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"graph\"}\n"), "\"edges\":[{");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"graph\",\"as\":\"dot\"}\n"), "digraph heddle");
    lab_set(l, "price", 5);
    lab_idle(l);
    assert_answer(ask("{\"heddle\":1,\"ask\":\"why\",\"of\":\"show\"}\n"),
                  "\"cell\":\"main/price\"");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"why\",\"of\":\"main/total\"}\n"), "\"value\":\"9\"");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"why-not\",\"of\":\"nobody\"}\n"),
                  "\"why_not\":\"nobody looks");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"why-not\",\"of\":\"show\"}\n"), "it is clean");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"stats\",\"by\":\"time\",\"limit\":1}\n"),
                  "\"totals\":{");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"pieces\"}\n"), "\"answer\":[]");
}

static void the_trace_can_be_switched_from_outside(void **state) {
    serve();
    a_small_shop();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"trace\"}\n"), "\"on\":false");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"trace\",\"on\":true}\n"), "\"on\":true");
    lab_set(l, "price", 5);
    lab_idle(l);
    const char *runs = ask("{\"heddle\":1,\"ask\":\"trace\",\"as\":\"runs\"}\n");
    assert_answer(runs, "\"name\":\"total\"");
    assert_answer(runs, "\"causes\":[\"main/price\"]");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"trace\",\"as\":\"chrome\",\"on\":false}\n"),
                  "\"traceEvents\":[{");
    assert_int_equal(hd_trace_enabled(rt()), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        W(who_is_there_says_its_name),
        W(nothing_is_served_unless_asked_for),
        W(every_question_has_its_answer),
        W(the_trace_can_be_switched_from_outside),
    };
    LAB_EVERYWHERE(tests);
}

/* test_post.c -- other threads reach a runtime: what they post is run, in order, and wakes it. */
#define _DEFAULT_SOURCE
#include <heddle/store.h>

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

enum {
    ROUNDS = 300,
    POSTS = 1000,
    THREADS = 3,
    PATIENCE_S = 60 /* a post that wakes nobody leaves the runtime waiting for good */
};

static hd_runtime *open_runtime(void) {
    hd_runtime *rt;
    assert_int_equal(hd_open(NULL, NULL, &rt, NULL), HD_OK);
    return rt;
}

static void stop(hd_runtime *rt, void *ctx) { hd_runtime_stop(rt); }

static void *post_stop(void *rt) {
    hd_runtime_post(rt, stop, NULL);
    return NULL;
}

/* Each runtime is new: its descriptor is made while the other thread posts. */
static void a_post_ends_the_first_wait(void **state) {
    alarm(PATIENCE_S);
    for (int i = 0; i < ROUNDS; i++) {
        hd_runtime *rt = open_runtime();
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, post_stop, rt), 0);
        assert_int_equal(hd_runtime_run(rt), HD_OK);
        pthread_join(thread, NULL);
        assert_int_equal(hd_close(rt), HD_OK);
    }
    alarm(0);
}

typedef struct poster {
    hd_runtime *rt;
    int sent, received;
    int *left; /* of all posters; touched by the runtime's thread alone */
} poster;

static void receive(hd_runtime *rt, void *ctx) {
    poster *p = ctx;
    p->received++;
    if (--*p->left == 0) hd_runtime_stop(rt);
}

static void *post_many(void *ctx) {
    poster *p = ctx;
    for (; p->sent < POSTS; p->sent++)
        if (hd_runtime_post(p->rt, receive, p)) break;
    return NULL;
}

static void nothing_that_is_posted_gets_lost(void **state) {
    hd_runtime *rt = open_runtime();
    pthread_t threads[THREADS];
    poster posters[THREADS];
    int left = THREADS * POSTS;
    alarm(PATIENCE_S);
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (poster){ .rt = rt, .left = &left };
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    assert_int_equal(hd_runtime_run(rt), HD_OK);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(posters[i].received, POSTS);
    }
    alarm(0);
    assert_int_equal(hd_close(rt), HD_OK);
}

static bool is_readable(hd_runtime *rt) {
    struct pollfd fd = { hd_runtime_fd(rt), POLLIN, 0 };
    return poll(&fd, 1, 0) > 0;
}

static void ignore(hd_runtime *rt, void *ctx) { (void)rt, (void)ctx; }

static void *post_one(void *rt) {
    hd_runtime_post(rt, ignore, NULL);
    return NULL;
}

/* A post may be run before its thread has come to wake the runtime: then the runtime is woken for
 * nothing, once, and not for ever. */
static void a_runtime_that_was_woken_comes_to_rest(void **state) {
    hd_runtime *rt = open_runtime();
    hd_runtime_fd(rt);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, post_one, rt), 0);
        while (hd_runtime_deadline(rt) != 0) {} /* as early as can be */
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        pthread_join(thread, NULL);
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        assert_false(is_readable(rt));
    }
    assert_int_equal(hd_close(rt), HD_OK);
}

/* ---- signals */

static int others;
static void count_other(int number) { others++; }

static void send_signal(hd_runtime *rt, void *ctx) { raise(*(int *)ctx); }

static void *signal_later(void *ctx) {
    kill(getpid(), *(int *)ctx);
    return NULL;
}

/* The program's own handlers are back when hd_runtime_run has returned. */
static void sigint_and_sigterm_end_a_run_that_asked_for_them(void **state) {
    int numbers[] = { SIGINT, SIGTERM };
    hd_runtime *rt;
    pthread_t thread;
    others = 0;
    alarm(PATIENCE_S);
    for (int i = 0; i < 2; i++) {
        signal(numbers[i], count_other);
        assert_int_equal(hd_open(NULL, &(hd_options){ .signals = true }, &rt, NULL), HD_OK);
        hd_runtime_post(rt, send_signal, &numbers[i]);
        assert_int_equal(hd_runtime_run(rt), HD_OK);
        hd_runtime_post(rt, send_signal, &numbers[i]);
        assert_int_equal(hd_runtime_run(rt), HD_OK);
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        assert_false(is_readable(rt)); /* a runtime that is driven on is not woken for nothing */
        assert_int_equal(hd_close(rt), HD_OK);
        assert_int_equal(others, i);
        raise(numbers[i]);
        assert_int_equal(others, i + 1);
        signal(numbers[i], SIG_DFL);
    }
    /* One that comes while the runtime waits. */
    signal(SIGTERM, SIG_IGN);
    assert_int_equal(hd_open(NULL, &(hd_options){ .signals = true }, &rt, NULL), HD_OK);
    hd_runtime_post(rt, send_signal, &numbers[0]);
    assert_int_equal(pthread_create(&thread, NULL, signal_later, &numbers[1]), 0);
    assert_int_equal(hd_runtime_run(rt), HD_OK);
    pthread_join(thread, NULL);
    assert_int_equal(hd_close(rt), HD_OK);
    signal(SIGTERM, SIG_DFL);
    alarm(0);
}

static void run_another(hd_runtime *rt, void *ctx) {
    *(hd_status *)ctx = hd_runtime_run(hd_runtime_context(rt));
    hd_runtime_stop(rt);
}

static void one_runtime_at_a_time_has_the_signals(void **state) {
    hd_runtime *one, *other;
    hd_status status = HD_OK;
    assert_int_equal(hd_open(NULL, &(hd_options){ .signals = true }, &other, NULL), HD_OK);
    hd_options options = { .signals = true, .context = other };
    assert_int_equal(hd_open(NULL, &options, &one, NULL), HD_OK);
    hd_runtime_post(one, run_another, &status);
    assert_int_equal(hd_runtime_run(one), HD_OK);
    assert_int_equal(status, HD_BUSY);
    assert_int_equal(hd_close(one), HD_OK);
    assert_int_equal(hd_close(other), HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_ends_the_first_wait),
        cmocka_unit_test(a_runtime_that_was_woken_comes_to_rest),
        cmocka_unit_test(nothing_that_is_posted_gets_lost),
        cmocka_unit_test(sigint_and_sigterm_end_a_run_that_asked_for_them),
        cmocka_unit_test(one_runtime_at_a_time_has_the_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

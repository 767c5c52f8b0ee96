/* test_garbage.c -- strangers at the socket of a running program: what they send is no question, or half of one.
 *
 * Requests are cut, spliced, doubled and strewn with bytes; they come in pieces, several at once, without an end, or
 * the asker leaves. Whatever comes, each line that the program answers is an answer or an error, its own work goes on,
 * and no descriptor is lost. HD_GARBAGE is how many requests are sent. */
#define _GNU_SOURCE
#include "folder.h"
#include "lab.h"
#include "socket/address.h"
#include "times.h"
#include <heddle/inspect.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { ASKERS = 6, LINE_MAX_LENGTH = 70000, NODES = 200 };

static const char *const questions[] = {
    "{\"heddle\":1,\"ask\":\"hello\"}",
    "{\"heddle\":1,\"ask\":\"graph\"}",
    "{\"heddle\":1,\"ask\":\"graph\",\"as\":\"dot\"}",
    "{\"heddle\":1,\"ask\":\"why\",\"of\":\"main/sum7\"}",
    "{\"heddle\":1,\"ask\":\"why-not\",\"of\":\"#3\"}",
    "{\"heddle\":1,\"ask\":\"stats\",\"by\":\"time\",\"limit\":3}",
    "{\"heddle\":1,\"ask\":\"trace\",\"as\":\"chrome\",\"on\":true}",
    "{\"heddle\":1,\"ask\":\"trace\",\"as\":\"runs\",\"on\":false}",
    "{\"heddle\":1,\"ask\":\"pieces\"}",
    "{\"heddle\":1,\"ask\":\"workflow\",\"of\":\"order/17\"}",
    "{\"heddle\":1,\"ask\":\"streams\"}",
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

typedef struct attack {
    lab_random random;
    lab_env *world;
    hd_runtime *rt;
    hd_pool *pool;
    int askers[ASKERS]; /* -1: none */
    uint64_t answers, errors;
    char line[LINE_MAX_LENGTH + 1];
    size_t length;
} attack;

/* ---- the program */

static hd_status add_one(hd_tx *tx, void *ctx) {
    hd_cell *cells = ctx;
    return hd_tx_set_double(tx, cells[1], hd_value_number(hd_tx_get(tx, cells[0])) + 1);
}
static void ignore(hd_value v, void *ctx) { (void)v, (void)ctx; }

static hd_cell cells[NODES + 1];

static void make_graph(hd_runtime *rt) {
    char name[32];
    cells[0] = hd_cell_at(rt, "main/n");
    for (int i = 1; i <= NODES; i++) {
        snprintf(name, sizeof name, "main/sum%d", i);
        cells[i] = hd_cell_at(rt, name);
        assert_true(hd_compute(rt, name, add_one, &cells[i - 1], cells[i]).id);
    }
    assert_true(hd_sink(rt, cells[NODES], ignore, NULL).id);
}

/* The program computes as if nobody had asked. */
static void expect_work(attack *a, double n) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(a->rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_double(tx, cells[0], n), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_settle(a->rt), HD_OK);
    assert_true(hd_value_number(hd_read(a->rt, a->pool, cells[NODES])) == n + NODES);
    hd_pool_clear(a->pool);
}

/* ---- what is sent */

static void strew(attack *a) {
    for (uint64_t k = lab_random_below(&a->random, 4); k > 0 && a->length; k--)
        a->line[lab_random_below(&a->random, a->length)] = (char)lab_random_u64(&a->random);
}

static void append(attack *a, const char *bytes, size_t length) {
    if (length > LINE_MAX_LENGTH - a->length) length = LINE_MAX_LENGTH - a->length;
    memcpy(a->line + a->length, bytes, length);
    a->length += length;
}

static void append_question(attack *a, bool whole) {
    const char *q = questions[lab_random_below(&a->random, QUESTIONS)];
    size_t length = strlen(q), from = whole ? 0 : lab_random_below(&a->random, length);
    append(a, q + from, whole ? length : 1 + lab_random_below(&a->random, length - from));
}

/* A value that is nested, long, or of another kind, where a word is expected. */
static void append_odd(attack *a) {
    static const char *const odd[] = { "{\"heddle\":1,\"ask\":",
                                       "[[[[[[[[",
                                       "1e999",
                                       "\"\\u0000\"",
                                       "{\"\":",
                                       "\xC3\x28",
                                       "\xFF\xFE",
                                       "-0",
                                       "null",
                                       "{\"$bytes\":" };
    uint64_t times =
        lab_random_once_in(&a->random, 30) ? 5000 : 1 + lab_random_below(&a->random, 4);
    const char *what = odd[lab_random_below(&a->random, sizeof odd / sizeof *odd)];
    for (uint64_t i = 0; i < times; i++) append(a, what, strlen(what));
}

static void make_garbage(attack *a) {
    a->length = 0;
    for (uint64_t k = 1 + lab_random_below(&a->random, 3); k > 0; k--) {
        uint64_t kind = lab_random_below(&a->random, 5);
        if (kind < 3) append_question(a, kind == 0);
        else if (kind == 3) append_odd(a);
        else append(a, "\n", 1);
    }
    if (lab_random_once_in(&a->random, 2)) strew(a);
    if (!lab_random_once_in(&a->random, 10)) append(a, "\n", 1);
}

/* ---- what is answered */

static void check_line(attack *a, const char *line, size_t length) {
    hd_value v = hd_json_parse(a->pool, line, length, NULL);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "heddle"), 0), 1);
    bool answer = hd_value_exists(hd_value_at(v, "answer"));
    assert_true(answer != hd_value_exists(hd_value_at(v, "error")));
    if (answer) a->answers++;
    else a->errors++;
    hd_pool_clear(a->pool);
}

/* The program answers one line and closes. One that has not got all of its question says nothing yet. */
static void hear(attack *a, int slot) {
    static char heard[1 << 20];
    size_t length = 0;
    ssize_t n = 1;
    int fd = a->askers[slot];
    for (int turns = 0; turns < 200 && n; turns++) {
        n = recv(fd, heard + length, sizeof heard - length, MSG_DONTWAIT);
        if (n > 0) length += (size_t)n;
        assert_true(length < sizeof heard);
        assert_int_equal(hd_runtime_pump(a->rt), HD_OK);
    }
    if (length) {
        const char *end = memchr(heard, '\n', length);
        assert_true(end && end == heard + length - 1);
        check_line(a, heard, length - 1);
    }
    close(fd);
    a->askers[slot] = -1;
}

/* ---- one asker */

static void pump(attack *a) { assert_int_equal(hd_runtime_pump(a->rt), HD_OK); }

/* In up to three pieces; the program may have refused the rest. */
static void send_garbage(attack *a, int fd) {
    size_t sent = 0;
    for (int i = 0; i < 3 && sent < a->length; i++) {
        size_t left = a->length - sent,
               part = i == 2 ? left : 1 + lab_random_below(&a->random, left);
        ssize_t n = send(fd, a->line + sent, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) return;
        sent += (size_t)n;
        pump(a);
    }
}

static void come(attack *a) {
    int slot = (int)lab_random_below(&a->random, ASKERS);
    if (a->askers[slot] >= 0) hear(a, slot);
    a->askers[slot] = address_connect(hd_runtime_socket(a->rt));
    assert_true(a->askers[slot] >= 0);
    pump(a);
    make_garbage(a);
    send_garbage(a, a->askers[slot]);
    if (!lab_random_once_in(&a->random, 8)) return;
    close(a->askers[slot]); /* it does not wait for the answer */
    a->askers[slot] = -1;
}

/* A proper question is answered: that of somebody whose time is up has made room. */
static void expect_answer(attack *a) {
    for (int i = 0; i < ASKERS; i++)
        if (a->askers[i] >= 0) hear(a, i);
    lab_env_advance_ms(a->world, 40000);
    pump(a);
    uint64_t before = a->answers;
    a->askers[0] = address_connect(hd_runtime_socket(a->rt));
    assert_int_equal(send(a->askers[0], "{\"heddle\":1,\"ask\":\"stats\"}\n", 27, MSG_NOSIGNAL),
                     27);
    hear(a, 0);
    assert_true(a->answers == before + 1);
}

static int descriptors(void) {
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

static void garbage_does_no_harm(void **state) {
    static attack a;
    char socket[96];
    a.random = lab_random_of(lab_seed());
    a.world = lab_env_open();
    for (int i = 0; i < ASKERS; i++) a.askers[i] = -1;
    hd_options options = { .env = lab_env_of(a.world) };
    assert_int_equal(hd_open(NULL, &options, &a.rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(a.rt), &a.pool), HD_OK);
    make_graph(a.rt);
    folder_file(socket, sizeof socket, "socket");
    hd_serve_options serve = { .socket = socket, .name = "victim" };
    assert_int_equal(hd_runtime_serve(a.rt, &serve), HD_OK);
    expect_answer(&a);
    int open = descriptors();
    uint64_t times = lab_times("HD_GARBAGE", LAB_SLOW ? 1000 : 4000);
    for (uint64_t i = 1; i <= times; i++) {
        come(&a);
        if (i % 100 && i != times) continue;
        expect_work(&a, (double)i);
        expect_answer(&a);
        assert_int_equal(descriptors(), open);
    }
    assert_true(a.answers > times / 50 && a.errors > times / 10); /* both are met */
    printf("%" PRIu64 " requests: %" PRIu64 " answers, %" PRIu64 " errors\n", times, a.answers,
           a.errors);
    hd_pool_close(a.pool);
    assert_int_equal(hd_close(a.rt), HD_OK);
    lab_env_close(a.world);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(garbage_does_no_harm) };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}

/* test_patterns_fetch.c -- fetch, against a server of one answer; time and sockets are real here. */
#define _GNU_SOURCE
#include "folder.h"

#include <heddle/lab.h>

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct server {
    pid_t pid;
    uint16_t port;
    char url[64];
} server;

/* Answers each connection with these bytes; NULL: never answers. */
static void serve(int at, const char *response) {
    for (;;) {
        char request[4096];
        int s = accept(at, NULL, NULL);
        if (s < 0) _exit(0);
        if (!response) pause();
        if (recv(s, request, sizeof request, 0) > 0 &&
            send(s, response, strlen(response), MSG_NOSIGNAL) < 0)
            _exit(1);
        shutdown(s, SHUT_WR);
        close(s);
    }
}

/* `port` 0: any. */
static server server_open_at(uint16_t port, const char *response) {
    server s = { 0 };
    struct sockaddr_in here = { .sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof here;
    int at = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(at >= 0);
    setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    assert_int_equal(bind(at, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(at, 8), 0);
    assert_int_equal(getsockname(at, (struct sockaddr *)&here, &size), 0);
    s.port = ntohs(here.sin_port);
    snprintf(s.url, sizeof s.url, "\"http://127.0.0.1:%d/\"", s.port);
    s.pid = fork();
    if (s.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not end it */
        if (!freopen("/dev/null", "w", stdout)) _exit(1);
        serve(at, response);
    }
    close(at);
    return s;
}

static server server_open(const char *response) { return server_open_at(0, response); }

static void server_close(server *s) {
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}

/* ---- */

static hd_runtime *rt;
static hd_pool *pool;
static hd_node looking;
static const hd_fetch_options *options;

static hd_cell page(hd_build *b, void *ctx) {
    return hd_build_fetch(b, "page", hd_build_argument(b, "url", hd_null()), options);
}
static void ignore(hd_value v, void *ctx) { (*(int *)ctx)++; }

static hd_piece start_page(void) {
    hd_piece p;
    assert_int_equal(hd_piece_start(rt, &(hd_piece_spec){ .id = "p", .pattern = "page" }, &p, NULL),
                     HD_OK);
    return p;
}

/* In this file, or a store in memory. `url` NULL: as the store has it. */
static hd_piece open_page_in(const char *file, const hd_options *in, const char *url, int *seen) {
    assert_int_equal(hd_open(file, in, &rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_pattern_register(rt, "page", "1", page, NULL), HD_OK);
    hd_piece p = start_page();
    hd_cell at = hd_cell_at(rt, "main/p#/arguments/url");
    if (url) assert_int_equal(hd_write_json(rt, at, url), HD_OK);
    looking = hd_sink(rt, hd_piece_result(rt, p), ignore, seen);
    return p;
}
static hd_piece open_page(const char *url, int *seen) {
    return open_page_in(NULL, NULL, url, seen);
}
static void close_page(void) {
    hd_pool_close(pool);
    hd_close(rt);
    options = NULL;
}
static const char *result(void) {
    return hd_json_print(pool, hd_read(rt, pool, hd_cell_at(rt, "main/p/page")), HD_JSON_COMPACT,
                         NULL);
}

static void what_a_url_names_becomes_a_value(void **state) {
    server s = server_open(
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{\"a\": [1]}");
    int seen = 0;
    open_page(s.url, &seen);
    hd_runtime_pump(rt);
    assert_string_equal(result(), "{\"pending\":true}");
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(result(), "{\"pending\":false,\"value\":{\"a\":[1]}}");
    assert_int_equal(seen, 2);
    close_page();
    server_close(&s);
}

static void failures_are_told(void **state) {
    int seen = 0;
    server s = server_open("HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    open_page(s.url, &seen);
    hd_runtime_settle(rt);
    assert_string_equal(result(), "{\"error\":\"HTTP status 404\",\"pending\":false}");
    hd_write_json(rt, hd_cell_at(rt, "main/p#/arguments/url"), "\"file:///etc/passwd\"");
    hd_runtime_settle(rt);
    assert_string_equal(result(),
                        "{\"error\":\"only http and https can be fetched\",\"pending\":false}");
    hd_write_json(rt, hd_cell_at(rt, "main/p#/arguments/url"), "42");
    hd_runtime_settle(rt);
    assert_string_equal(result(), "{\"error\":\"the URL is not a text\",\"pending\":false}");
    hd_write_json(rt, hd_cell_at(rt, "main/p#/arguments/url"), "null");
    hd_runtime_settle(rt);
    assert_string_equal(result(), "{\"pending\":false}");
    close_page();
    server_close(&s);
}

static void what_is_not_json_is_an_error_unless_text_is_wanted(void **state) {
    int seen = 0;
    server s = server_open("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
    open_page(s.url, &seen);
    hd_runtime_settle(rt);
    assert_non_null(strstr(result(), "\"error\":"));
    close_page();
    options = &(hd_fetch_options){ .text = true };
    open_page(s.url, &seen);
    hd_runtime_settle(rt);
    assert_string_equal(result(), "{\"pending\":false,\"value\":\"hello\"}");
    close_page();
    server_close(&s);
}

static void sizes_and_times_are_limited(void **state) {
    int seen = 0;
    server s = server_open("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789");
    options = &(hd_fetch_options){ .max_bytes = 9, .text = true };
    open_page(s.url, &seen);
    hd_runtime_settle(rt);
    assert_string_equal(result(), "{\"error\":\"the response is too large\",\"pending\":false}");
    close_page();
    server_close(&s);
    s = server_open(NULL);
    options = &(hd_fetch_options){ .timeout_ms = 50 };
    open_page(s.url, &seen);
    hd_runtime_settle(rt);
    assert_non_null(strstr(result(), "\"error\":"));
    close_page();
    server_close(&s);
}

static void the_largest_limits_are_limits(void **state) {
    int seen = 0;
    server s = server_open("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789");
    options = &(hd_fetch_options){ .max_bytes = SIZE_MAX, .timeout_ms = UINT32_MAX, .text = true };
    open_page(s.url, &seen);
    hd_runtime_settle(rt);
    assert_string_equal(result(), "{\"pending\":false,\"value\":\"0123456789\"}");
    close_page();
    server_close(&s);
}

/* A URL ends where its text does: what is behind a zero byte would be asked for again and again. */
static void a_url_with_a_zero_byte_is_none(void **state) {
    int seen = 0;
    char url[96];
    server s = server_open("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n1");
    snprintf(url, sizeof url, "%.*s\\u0000x\"", (int)strlen(s.url) - 1, s.url);
    open_page(url, &seen);
    hd_runtime_settle(rt);
    assert_non_null(strstr(result(), "\"error\":"));
    close_page();
    server_close(&s);
}

/* A node that is cancelled takes its request along. */
static void a_request_is_cancelled_with_its_node(void **state) {
    int seen = 0;
    server s = server_open("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n1");
    open_page(s.url, &seen);
    hd_runtime_pump(rt);
    hd_node node = hd_node_find(rt, "main:p:page");
    assert_int_not_equal(node.id, 0);
    hd_node_unregister(rt, node);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_true(hd_runtime_is_idle(rt));
    close_page();
    server_close(&s);
}

/* A request goes with its piece: nothing waits for it, and nothing comes of it. */
static void a_request_is_cancelled_with_its_piece(void **state) {
    int seen = 0;
    server s = server_open(NULL);
    hd_piece p = open_page(s.url, &seen);
    hd_runtime_pump(rt);
    assert_false(hd_runtime_is_idle(rt));
    hd_piece_stop(rt, p);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_true(hd_runtime_is_idle(rt));
    close_page();
    open_page(s.url, &seen); /* and with its runtime */
    hd_runtime_pump(rt);
    close_page();
    server_close(&s);
}

/* The space is let go of while the answer is on its way: that finds its document all the same. */
static void an_answer_comes_after_its_space_was_unloaded(void **state) {
    int seen = 0;
    server s = server_open("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n1");
    open_page(s.url, &seen);
    hd_runtime_pump(rt);
    assert_int_equal(hd_runtime_unload(rt, "main"), HD_BUSY);
    hd_node_unregister(rt, looking);
    assert_int_equal(hd_runtime_unload(rt, "main"), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    hd_sink(rt, hd_cell_at(rt, "main/p/page"), ignore, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(result(), "{\"pending\":false,\"value\":1}");
    close_page();
    server_close(&s);
}

static hd_cell fetch_row(hd_build *row, hd_cell url, void *ctx) {
    return hd_build_fetch(row, "page", url, NULL);
}
static hd_cell pages(hd_build *b, void *ctx) {
    hd_cell urls = hd_build_argument(b, "urls", hd_array());
    hd_cell rows = hd_build_map(b, "rows", urls, &(hd_each){ .build = fetch_row, .key = "" });
    return hd_build_gather(b, "all", rows);
}

/* A row takes its request along, and the others go on. */
static void a_request_is_cancelled_with_its_row(void **state) {
    int seen = 0;
    char json[160];
    hd_piece p;
    server mute = server_open(NULL), s = server_open("HTTP/1.1 200 OK\r\n\r\n1");
    open_page("null", &seen);
    assert_int_equal(hd_pattern_register(rt, "pages", "1", pages, NULL), HD_OK);
    hd_piece_spec spec = { .id = "q", .pattern = "pages" };
    assert_int_equal(hd_piece_start(rt, &spec, &p, NULL), HD_OK);
    hd_sink(rt, hd_piece_result(rt, p), ignore, &seen);
    hd_cell urls = hd_cell_at(rt, "main/q#/arguments/urls");
    snprintf(json, sizeof json, "[%s, %s]", mute.url, s.url);
    assert_int_equal(hd_write_json(rt, urls, json), HD_OK);
    hd_runtime_pump(rt);
    assert_false(hd_runtime_is_idle(rt));
    snprintf(json, sizeof json, "[%s]", s.url);
    assert_int_equal(hd_write_json(rt, urls, json), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    hd_value all = hd_read(rt, pool, hd_cell_at(rt, "main/q/all"));
    assert_string_equal(hd_json_print(pool, all, HD_JSON_COMPACT, NULL),
                        "[{\"pending\":false,\"value\":1}]");
    close_page();
    server_close(&mute);
    server_close(&s);
}

/* ---- several lives */

static const char one[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n1";
static const char told_one[] = "{\"pending\":false,\"value\":1}";

/* What a life asked and was not told, the next one asks again. */
static void a_request_without_an_answer_is_made_again(void **state) {
    int seen = 0;
    hd_memory *memory;
    server s = server_open(one);
    assert_int_equal(hd_memory_open(NULL, &memory), HD_OK);
    hd_options in = { .memory = memory };
    open_page_in(NULL, &in, s.url, &seen);
    hd_runtime_pump(rt);
    assert_string_equal(result(), "{\"pending\":true}");
    close_page();
    open_page_in(NULL, &in, NULL, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(result(), told_one);
    close_page();
    hd_memory_close(memory);
    server_close(&s);
}

/* A server that could not be reached has not answered. */
static void a_request_that_did_not_get_through_is_made_again(void **state) {
    int seen = 0;
    char file[256];
    server s = server_open(one);
    server_close(&s);
    folder_store(file, sizeof file, "fetch.db");
    open_page_in(file, NULL, s.url, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_non_null(strstr(result(), "\"error\":"));
    assert_null(strstr(result(), "stored"));
    close_page();
    s = server_open_at(s.port, one);
    open_page_in(file, NULL, NULL, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(result(), told_one);
    close_page();
    server_close(&s);
}

/* Nor does a stop answer it. */
static void a_request_of_a_piece_that_was_stopped_is_made_again(void **state) {
    int seen = 0;
    char file[256];
    server s = server_open(one);
    folder_store(file, sizeof file, "fetch.db");
    hd_piece p = open_page_in(file, NULL, s.url, &seen);
    hd_runtime_pump(rt);
    hd_piece_stop(rt, p);
    start_page();
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(result(), told_one);
    close_page();
    server_close(&s);
}

/* An answer that is there is not asked for again, nor looked at. */
static void an_answer_outlives_the_process(void **state) {
    int seen = 0;
    char file[256];
    hd_node_info info;
    server s = server_open(one);
    folder_store(file, sizeof file, "fetch.db");
    open_page_in(file, NULL, s.url, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    close_page();
    server_close(&s);
    open_page_in(file, NULL, NULL, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(result(), told_one);
    assert_int_equal(hd_node_inspect(rt, hd_node_find(rt, "main:p:page"), &info), HD_OK);
    assert_int_equal(info.runs, 0);
    close_page();
}

/* ---- answers that cannot be stored */

/* The commits from now on until one is refused; 0: none will be. */
static hd_status arrives(const hd_runtime *from, void *ctx) {
    uint32_t *left = ctx;
    (void)from;
    return *left && --*left == 0 ? HD_REJECTED : HD_OK;
}

static void an_answer_that_the_store_refuses_is_an_error(void **state) {
    int seen = 0;
    uint32_t left = 0;
    hd_memory *memory;
    server s = server_open(one);
    assert_int_equal(hd_memory_open(NULL, &memory), HD_OK);
    hd_memory_intercept(memory, arrives, NULL, &left);
    open_page_in(NULL, &(hd_options){ .memory = memory }, "null", &seen);
    hd_runtime_settle(rt);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    hd_write_json(rt, hd_cell_at(rt, "main/p#/arguments/url"), s.url);
    hd_runtime_pump(rt);
    assert_string_equal(result(), "{\"pending\":true}");
    left = 1;
    hd_runtime_settle(rt);
    hd_runtime_sync(rt);
    hd_runtime_settle(rt);
    assert_non_null(strstr(result(), "\"error\":\"the response could not be stored"));
    hd_write_json(rt, hd_cell_at(rt, "main/p#/arguments/url"), "null"); /* and once more */
    hd_runtime_settle(rt);
    hd_write_json(rt, hd_cell_at(rt, "main/p#/arguments/url"), s.url);
    hd_runtime_settle(rt);
    assert_string_equal(result(), told_one);
    close_page();
    hd_memory_close(memory);
    server_close(&s);
}

typedef struct scarce {
    hd_env system;
    uint64_t left; /* allocations until one fails; 0: none will */
    bool others;   /* and all that follow */
    bool failed;
} scarce;

static void *scarce_alloc(void *block, size_t old_size, size_t size, void *ctx) {
    scarce *c = ctx;
    if (size > old_size && c->left && (c->left == 1 || --c->left == 0)) {
        c->left = c->others;
        c->failed = true;
        return NULL;
    }
    return c->system.alloc(block, old_size, size, c->system.ctx);
}

static void keep_quiet(hd_log_level level, const char *line, void *ctx) {
    (void)ctx, (void)level, (void)line;
}

static bool answer_without_memory(scarce *c, const hd_env *env, const char *url, uint64_t nth) {
    int seen = 0;
    open_page_in(NULL, &(hd_options){ .env = env }, url, &seen);
    hd_runtime_pump(rt);
    c->failed = false;
    c->left = nth;
    hd_runtime_settle(rt);
    c->left = 0;
    hd_runtime_settle(rt);
    assert_null(strstr(result(), "\"pending\":true"));
    close_page();
    return c->failed;
}

/* Whatever there is no memory for: nothing is pending when nothing is on its way. */
static void an_answer_without_memory_is_an_answer_or_an_error(void **state) {
    server s = server_open(one);
    scarce c = { .system = hd_env_system() };
    hd_env env = c.system;
    env.ctx = &c;
    env.alloc = scarce_alloc;
    env.log = keep_quiet;
    for (int i = 0; i < 2; i++) {
        c.others = i;
        for (uint64_t nth = 2; answer_without_memory(&c, &env, s.url, nth);) nth++;
    }
    server_close(&s);
}

int main(void) {
#define F(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_url_names_becomes_a_value),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(what_is_not_json_is_an_error_unless_text_is_wanted),
        cmocka_unit_test(sizes_and_times_are_limited),
        cmocka_unit_test(the_largest_limits_are_limits),
        cmocka_unit_test(a_url_with_a_zero_byte_is_none),
        cmocka_unit_test(a_request_is_cancelled_with_its_piece),
        cmocka_unit_test(a_request_is_cancelled_with_its_node),
        cmocka_unit_test(a_request_without_an_answer_is_made_again),
        cmocka_unit_test(an_answer_comes_after_its_space_was_unloaded),
        cmocka_unit_test(a_request_is_cancelled_with_its_row),
        F(a_request_that_did_not_get_through_is_made_again),
        F(a_request_of_a_piece_that_was_stopped_is_made_again),
        F(an_answer_outlives_the_process),
        cmocka_unit_test(an_answer_that_the_store_refuses_is_an_error),
        cmocka_unit_test(an_answer_without_memory_is_an_answer_or_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_workflow_remote.c -- workers in other processes, as scripted clients of the socket: what they are told, and that
 * one that speaks garbage, stops reading, ends or answers late harms no other (docs/WORKERS.md).
 *
 * The clients are in this process: a socket is written to, the runtime is pumped, and the answer is there. Time is the
 * lab's. Issue words: "every message checked, limits on size and number, a token per claim". */
#define _GNU_SOURCE
#include "lab.h"
#include "lab_engine.h"
#include "socket/address.h"
#include <heddle/workflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define REMOTES_MAX 64 /* connections, unless the program says otherwise */

static lab_env *env;
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static char folder[64], path[128], id[HD_INSTANCE_ID_SIZE];

/* ---- a world */

static hd_value parse(const char *json) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    if (!hd_value_exists(v)) fail_msg("%s in %s", error.message, json);
    return v;
}

static void pump(void) {
    for (int i = 0; i < 6; i++) {
        hd_status status = hd_runtime_pump(rt);
        if (status && status != HD_PENDING) fail_msg("%s", hd_status_name(status));
        lab_engine_check(engine);
    }
}

static void register_ir(const char *json) {
    hd_error error = { 0 };
    if (hd_workflow_register(engine, parse(json), NULL, &error)) fail_msg("%s", error.message);
}

/* "one": a step of the action "work" with what it is given, and `more` about it. */
static void register_one(const char *more) {
    char ir[1000];
    snprintf(
        ir, sizeof ir,
        "{\"heddle\":1,\"name\":\"one\",\"inputs\":[{\"name\":\"n\",\"default\":1}],"
        "\"functions\":[{\"name\":\"run\",\"params\":[\"n\"],\"nodes\":[{\"id\":\"in\",\"kind\":"
        "\"ENTRY\"},{\"id\":\"do\",\"kind\":\"ACTION\",\"action\":\"work\",\"args\":{\"n\":["
        "\"name\",\"n\"]},\"into\":[\"name\",\"r\"]%s},{\"id\":\"out\",\"kind\":\"RETURN\","
        "\"value\":[\"name\",\"r\"]}],\"edges\":[[\"in\",\"do\"],[\"do\",\"out\"]]}]}",
        more);
    register_ir(ir);
}

static void start(const char *input) {
    assert_int_equal(hd_workflow_start(engine, "one", parse(input), NULL, id), HD_OK);
    pump();
}

static const char *status_now(void) {
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, id));
    return hd_value_as_text(hd_value_at(doc, "status"), "");
}

static const char *result_now(void) {
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, id));
    const char *text_ = hd_json_print(pool, hd_value_at(doc, "result"), HD_JSON_COMPACT, NULL);
    return text_ ? text_ : "-";
}

static int set_up(void **state) {
    hd_error error = { 0 };
    env = lab_env_open();
    hd_options options = { .env = lab_env_of(env) };
    snprintf(folder, sizeof folder, "/tmp/heddle-remote-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    assert_int_equal(hd_open(NULL, &options, &rt, &error), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, &error), HD_OK);
    assert_int_equal(hd_engine_serve(engine, &(hd_engine_serve_options){ .socket = path }), HD_OK);
    register_one("");
    return 0;
}

static int tear_down(void **state) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    lab_env_close(env);
    assert_int_equal(rmdir(folder), 0); /* the socket is gone */
    return 0;
}

/* ---- clients */

static void say_bytes(int fd, const void *bytes, size_t length) {
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static void say(int fd, const char *json) {
    size_t length = strlen(json);
    unsigned char head[] = { (unsigned char)(length >> 24), (unsigned char)(length >> 16),
                             (unsigned char)(length >> 8), (unsigned char)length };
    say_bytes(fd, head, sizeof head);
    say_bytes(fd, json, length);
}

static int join(void) {
    int fd = address_connect(path);
    assert_true(fd >= 0);
    return fd;
}

/* The length of the next message, its highest byte first; UINT32_MAX: none has come; 0: the connection is closed. */
static uint32_t length_heard(int fd) {
    unsigned char head[4];
    ssize_t n = recv(fd, head, 4, MSG_DONTWAIT);
    if (n <= 0) return n ? UINT32_MAX : 0;
    assert_int_equal(n, 4);
    return (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
}

/* The next message; "": none has come; "closed". */
static const char *hear(int fd) {
    static char heard[1 << 20];
    uint32_t length = length_heard(fd);
    if (!length) return "closed";
    if (length == UINT32_MAX) return "";
    assert_true(length < sizeof heard);
    assert_int_equal(recv(fd, heard, length, MSG_DONTWAIT), length);
    heard[length] = '\0';
    return heard;
}

#define assert_has(whole, part)                                                                    \
    do {                                                                                           \
        const char *text_ = (whole);                                                               \
        if (!strstr(text_, part)) fail_msg("%s\nis not in: %s", part, text_);                      \
    } while (0)

static int worker_for(const char *actions, int wanted) {
    char hello[400], claims[60];
    int fd = join();
    snprintf(hello, sizeof hello, "{\"type\":\"hello\",\"heddle\":1,\"name\":\"t\",\"actions\":%s}",
             actions);
    say(fd, hello);
    snprintf(claims, sizeof claims, "{\"type\":\"claim\",\"count\":%d}", wanted);
    if (wanted) say(fd, claims);
    pump();
    assert_has(hear(fd), "\"type\":\"welcome\"");
    return fd;
}

static int worker_now(void) { return worker_for("[\"work\"]", 1); }

/* The token of the task that has come. */
static const char *token_heard(int fd) {
    static char token[64];
    const char *m = hear(fd);
    assert_has(m, "\"type\":\"task\"");
    snprintf(token, sizeof token, "%s", hd_value_as_text(hd_value_at(parse(m), "token"), ""));
    return token;
}

static void say_token(int fd, const char *type, const char *token, const char *more) {
    char m[500];
    snprintf(m, sizeof m, "{\"type\":\"%s\",\"token\":\"%s\"%s}", type, token, more);
    say(fd, m);
    pump();
}

/* ---- tests */

static void a_worker_is_welcomed_with_the_limits(void **state) {
    int fd = join();
    say(fd, "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"]}");
    pump();
    const char *m = hear(fd);
    assert_has(m, "\"heddle\":1");
    assert_has(m, "\"space\":\"main\"");
    assert_has(m, "\"message_limit\":16842752");
    assert_has(m, "\"claim_limit\":10000");
    assert_string_equal(hear(fd), "");
    assert_string_equal(hd_engine_socket(engine), path);
    close(fd);
}

static hd_status answer(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_int(NULL, hd_action_tx(a) != NULL));
}

/* Only the engine's program can do them, whoever came first. */
static void actions_with_a_transaction_go_to_no_worker(void **state) {
    hd_action_spec spec = { .name = "work", .fn = answer, .transaction = true };
    int before = worker_for("[\"work\"]", 5);
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    int after = worker_for("[\"work\"]", 5);
    for (int i = 0; i < 6; i++) {
        start("{}");
        assert_string_equal(result_now(), "1");
    }
    assert_string_equal(hear(before), "");
    assert_string_equal(hear(after), "");
    hd_action_unregister(engine, "work"); /* then they may */
    start("{}");
    start("{}");
    assert_has(hear(before), "\"type\":\"task\"");
    assert_has(hear(after), "\"type\":\"task\"");
    close(before);
    close(after);
}

static void a_worker_does_not_send_events_or_wait_for_cells(void **state) {
    static const char *const names[] = { "heddle.send", "heddle.wait" };
    for (int i = 0; i < 2; i++) {
        char hello[100];
        int fd = join();
        snprintf(hello, sizeof hello,
                 "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\",\"%s\"]}", names[i]);
        say(fd, hello);
        pump();
        assert_has(hear(fd), "HD_USAGE");
        close(fd);
    }
}

static void a_step_goes_to_a_worker_and_its_result_into_the_workflow(void **state) {
    int fd = worker_now();
    start("{\"n\":[1,\"\\u00e9\",{\"a\":null}]}");
    const char *m = hear(fd);
    assert_has(m, "\"action\":\"work\"");
    assert_has(m, "\"args\":{\"n\":[1,\"\xC3\xA9\",{\"a\":null}]}");
    assert_has(m, "\"attempt\":1");
    assert_has(m, "\"node\":\"do\"");
    assert_has(m, id);
    char token[64];
    snprintf(token, sizeof token, "%s", hd_value_as_text(hd_value_at(parse(m), "token"), ""));
    say_token(fd, "complete", token, ",\"result\":{\"b\":2}");
    assert_string_equal(status_now(), "done");
    assert_string_equal(result_now(), "{\"b\":2}");
    m = hear(fd);
    assert_has(m, "\"type\":\"done\"");
    assert_has(m, token);
    close(fd);
}

static void a_failure_is_an_exception_of_its_class(void **state) {
    int fd = worker_now();
    start("{}");
    say_token(fd, "fail", token_heard(fd), ",\"class\":\"KeyError\",\"message\":\"no \\\"x\\\"\"");
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, id));
    assert_string_equal(hd_value_as_text(hd_value_at(doc, "status"), ""), "failed");
    assert_string_equal(hd_value_as_text(hd_value_at(hd_value_at(doc, "error"), "$error"), ""),
                        "KeyError");
    close(fd);
}

/* hd_action_raise: of a dotted name the last part counts; an unknown one is in the message. */
static void a_class_that_is_not_known_is_in_the_message(void **state) {
    static const char *const said[][3] = {
        { "Weird.Class", "RuntimeError", "[\"Weird.Class: x\"]" },
        { "a.b.KeyError", "KeyError", "[\"x\"]" },
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char more[100];
        int fd = worker_now();
        start("{}");
        snprintf(more, sizeof more, ",\"class\":\"%s\",\"message\":\"x\"", said[i][0]);
        say_token(fd, "fail", token_heard(fd), more);
        hd_value error = hd_value_at(hd_read(rt, pool, hd_workflow_cell(engine, id)), "error");
        assert_string_equal(hd_value_as_text(hd_value_at(error, "$error"), ""), said[i][1]);
        assert_string_equal(hd_json_print(pool, hd_value_at(error, "args"), HD_JSON_COMPACT, NULL),
                            said[i][2]);
        close(fd);
        pump();
    }
}

static void an_exception_crosses_as_a_value(void **state) {
    int fd = worker_now();
    start("{}");
    say_token(
        fd, "fail", token_heard(fd),
        ",\"error\":{\"$$error\":\"shop:Odd\",\"bases\":[\"KeyError\"],\"args\":[7],\"attrs\":{"
        "\"code\":1}}");
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, id));
    hd_value error = hd_value_at(doc, "error");
    assert_string_equal(hd_value_as_text(hd_value_at(error, "$error"), ""), "shop:Odd");
    assert_int_equal(hd_value_as_int(hd_value_index(hd_value_at(error, "args"), 0), 0), 7);
    assert_has(hear(fd), "done");
    start("{}");
    say(fd, "{\"type\":\"claim\",\"count\":1}");
    pump();
    say_token(fd, "fail", token_heard(fd), ",\"class\":\"Exception\",\"error\":{}");
    assert_has(hear(fd), "$$error"); /* no exception: refused, and the connection is closed */
    close(fd);
}

static void a_worker_gets_as_many_steps_as_it_asks_for(void **state) {
    int fd = worker_for("[\"work\",\"other\"]", 2);
    for (int i = 0; i < 4; i++) start("{}");
    char first[64];
    snprintf(first, sizeof first, "%s", token_heard(fd));
    (void)token_heard(fd);
    assert_string_equal(hear(fd), "");
    say_token(fd, "complete", first, ",\"result\":1");
    assert_has(hear(fd), "done");
    assert_string_equal(hear(fd), ""); /* a step that is over gives no right to another */
    say(fd, "{\"type\":\"claim\",\"count\":1}");
    pump();
    (void)token_heard(fd);
    assert_string_equal(hear(fd), "");
    close(fd);
}

static void a_worker_gets_steps_of_its_actions_alone(void **state) {
    int other = worker_for("[\"other\"]", 5), fd = worker_now();
    start("{}");
    assert_string_equal(hear(other), "");
    (void)token_heard(fd);
    close(fd);
    close(other);
}

static void the_step_of_a_worker_that_ends_goes_to_another(void **state) {
    int first = worker_now();
    start("{}");
    (void)token_heard(first);
    int second = worker_now();
    assert_string_equal(hear(second), "");
    close(first);
    pump();
    const char *m = hear(second);
    assert_has(m, "\"attempt\":1"); /* it is not counted as an attempt */
    say_token(second, "complete", hd_value_as_text(hd_value_at(parse(m), "token"), ""),
              ",\"result\":2");
    assert_string_equal(result_now(), "2");
    close(second);
}

static void complete(int fd, const char *task) {
    char m[200];
    hd_value token = hd_value_at(parse(task), "token");
    snprintf(m, sizeof m, "{\"type\":\"complete\",\"token\":\"%s\",\"result\":1}",
             hd_value_as_text(token, ""));
    say(fd, "{\"type\":\"claim\",\"count\":1}");
    say(fd, m);
}

/* Hears all that has come, and does a task then. False: an outcome is stored, or there was no memory for a message. */
static bool listen_to(int fd) {
    char task[1000] = "";
    for (const char *m; *(m = hear(fd));) {
        if (strstr(m, "\"done\"")) assert_string_equal(status_now(), "done");
        if (strstr(m, "\"done\"") || !strcmp(m, "closed")) return false;
        if (strstr(m, "\"task\"")) snprintf(task, sizeof task, "%s", m);
    }
    if (*task) complete(fd, task);
    return true;
}

/* The nth allocation fails after a step's outcome has come. False: all had memory. */
static bool lose_an_outcome(uint64_t nth) {
    int fd = worker_now();
    start("{}");
    complete(fd, hear(fd));
    lab_env_fail_at(env, nth);
    for (int i = 0; i < 6; i++) (void)hd_runtime_pump(rt);
    bool failed = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    for (int i = 0; i < 100 && listen_to(fd); i++) {
        lab_env_advance_ms(env, 100);
        pump();
    }
    close(fd);
    pump();
    return failed;
}

/* docs/WORKERS.md: `done` says that what the worker said is stored, whichever allocation fails. */
static void a_lost_outcome_is_not_told_as_stored(void **state) {
    for (uint64_t nth = 1; lose_an_outcome(nth); nth++) {
        tear_down(state);
        set_up(state);
    }
}

/* Nor does `done` come for a result that its instance cannot be stored with. */
static void a_result_that_cannot_be_stored_is_late(void **state) {
    register_ir("{\"heddle\":1,\"name\":\"one\",\"functions\":[{\"name\":\"run\",\"nodes\":["
                "{\"id\":\"in\",\"kind\":\"ENTRY\"},"
                "{\"id\":\"do\",\"kind\":\"ACTION\",\"action\":\"work\",\"args\":{}},"
                "{\"id\":\"c\",\"kind\":\"CALC\",\"do\":[[\"assign\",[\"tuple\"],"
                "[\"name\",\"x\"]]]},"
                "{\"id\":\"l\",\"kind\":\"LOOP_HEAD\",\"over\":[\"call\",\"range\",[250]],"
                "\"into\":[\"name\",\"i\"]},"
                "{\"id\":\"d\",\"kind\":\"CALC\",\"do\":[[\"assign\",[\"tuple\","
                "[\"name\",\"x\"]],[\"name\",\"x\"]]]},"
                "{\"id\":\"w\",\"kind\":\"WAIT\",\"signal\":\"go\"},"
                "{\"id\":\"out\",\"kind\":\"RETURN\"}],"
                "\"edges\":[[\"in\",\"do\"],[\"do\",\"c\"],[\"c\",\"l\"],"
                "[\"l\",\"d\",\"CONTINUE\"],[\"d\",\"l\",\"BACK\"],"
                "[\"l\",\"w\",\"BREAK\"],[\"w\",\"out\"]]}]}");
    start("{}");
    int fd = worker_now();
    complete(fd, hear(fd));
    pump();
    assert_has(hear(fd), "\"type\":\"late\"");
    assert_string_equal(hear(fd), "");
    assert_string_equal(status_now(), "stalled");
    close(fd);
}

/* W1: what is said with an old token is late, and changes nothing. */
static void an_old_token_is_late(void **state) {
    int fd = worker_now();
    char token[64];
    start("{}");
    snprintf(token, sizeof token, "%s", token_heard(fd));
    say_token(fd, "complete", token, ",\"result\":1");
    assert_has(hear(fd), "done");
    static const char *const types[] = { "complete", "fail", "give_back" };
    static const char *const more[] = { ",\"result\":3", ",\"class\":\"E\"", "" };
    for (int i = 0; i < 3; i++) {
        say_token(fd, types[i], token, more[i]);
        assert_has(hear(fd), "\"type\":\"late\"");
    }
    say(fd, "{\"type\":\"heartbeat\",\"tokens\":[\"0-0\",\"nonsense\",\"12\",\"-\"]}");
    pump();
    for (int i = 0; i < 4; i++) assert_has(hear(fd), "late");
    assert_string_equal(result_now(), "1");
    close(fd);
}

static void a_token_is_good_on_its_own_connection_alone(void **state) {
    int mine = worker_now(), thief = worker_now();
    char token[64], guess[64];
    start("{}");
    const char *m = hear(mine);
    int holder = *m ? mine : thief, other = *m ? thief : mine;
    if (!*m) m = hear(thief);
    snprintf(token, sizeof token, "%s", hd_value_as_text(hd_value_at(parse(m), "token"), ""));
    say_token(other, "complete", token, ",\"result\":\"stolen\"");
    assert_has(hear(other), "late");
    /* Its own nonce with the number of another's claim. */
    start("{}");
    const char *own = token_heard(other);
    snprintf(guess, sizeof guess, "%.*s%s", (int)strcspn(own, "-"), own, strchr(token, '-'));
    say_token(other, "complete", guess, ",\"result\":\"forged\"");
    assert_has(hear(other), "late");
    say_token(holder, "complete", token, ",\"result\":\"mine\"");
    assert_has(hear(holder), "done");
    close(mine);
    close(thief);
}

static void a_worker_that_connects_again_is_late_with_its_old_token(void **state) {
    int fd = worker_now();
    char old[64];
    start("{}");
    snprintf(old, sizeof old, "%s", token_heard(fd));
    close(fd);
    pump();
    fd = worker_now();
    const char *now = token_heard(fd);
    assert_string_not_equal(now, old);
    say_token(fd, "complete", old, ",\"result\":\"old\"");
    assert_has(hear(fd), "late");
    assert_string_equal(status_now(), "running");
    close(fd);
}

static void a_step_that_is_given_back_goes_to_another(void **state) {
    int first = worker_now();
    start("{}");
    char token[64];
    snprintf(token, sizeof token, "%s", token_heard(first));
    int second = worker_now();
    say_token(first, "give_back", token, "");
    (void)token_heard(second);
    close(first);
    close(second);
}

static void a_step_of_a_cancelled_instance_is_taken_back(void **state) {
    int fd = worker_now();
    start("{}");
    char token[64];
    snprintf(token, sizeof token, "%s", token_heard(fd));
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    const char *m = hear(fd);
    assert_has(m, "\"type\":\"cancel\"");
    assert_has(m, token);
    assert_has(m, "\"why\":\"gone\"");
    assert_string_equal(status_now(), "cancelled");
    close(fd);
}

static void an_attempt_that_takes_too_long_is_taken_back(void **state) {
    register_one(",\"timeout\":3");
    int fd = worker_now();
    start("{}");
    assert_has(hear(fd), "\"timeout_ms\":3000");
    lab_env_advance_ms(env, 3100);
    pump();
    assert_has(hear(fd), "\"why\":\"timeout\"");
    assert_string_equal(status_now(), "failed");
    close(fd);
}

static void a_silent_worker_loses_its_step_and_one_that_beats_keeps_it(void **state) {
    register_one(",\"heartbeat\":10");
    int fd = worker_now();
    start("{}");
    const char *m = hear(fd);
    assert_has(m, "\"heartbeat_ms\":10000");
    char beat[120], token[64];
    snprintf(token, sizeof token, "%s", hd_value_as_text(hd_value_at(parse(m), "token"), ""));
    snprintf(beat, sizeof beat, "{\"type\":\"heartbeat\",\"tokens\":[\"%s\"]}", token);
    for (int i = 0; i < 5; i++) {
        lab_env_advance_ms(env, 8000);
        say(fd, beat);
        pump();
    }
    assert_string_equal(hear(fd), "");
    lab_env_advance_ms(env, 10100);
    pump();
    assert_has(hear(fd), "\"why\":\"silent\"");
    say(fd, "{\"type\":\"claim\",\"count\":1}");
    pump();
    (void)token_heard(fd);
    close(fd);
}

/* ---- bad input */

/* Each is answered by an error, the connection is closed, and its step goes to the other worker. */
static void a_worker_that_speaks_garbage_harms_no_other(void **state) {
    static const char *const garbage[] = {
        "",
        "x",
        "{",
        "[]",
        "7",
        "null",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"nothing\"}",
        "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"]}",
        "{\"type\":\"claim\"}",
        "{\"type\":\"claim\",\"count\":0}",
        "{\"type\":\"claim\",\"count\":-1}",
        "{\"type\":\"claim\",\"count\":10001}",
        "{\"type\":\"claim\",\"count\":\"1\"}",
        "{\"type\":\"claim\",\"count\":1,\"more\":2}",
        "{\"type\":\"complete\",\"result\":1}",
        "{\"type\":\"complete\",\"token\":\"1-1\"}",
        "{\"type\":\"complete\",\"token\":7,\"result\":1}",
        "{\"type\":\"fail\",\"token\":\"1-1\"}",
        "{\"type\":\"fail\",\"token\":\"1-1\",\"class\":[]}",
        "{\"type\":\"fail\",\"token\":\"1-1\",\"error\":{\"$$error\":\"ValueError\",\"args\":{}}}",
        "{\"type\":\"fail\",\"token\":\"1-1\",\"error\":{\"$$error\":\"ValueError\",\"args\":[],"
        "\"cause\":5}}",
        "{\"type\":\"fail\",\"token\":\"1-1\",\"error\":{\"$$error\":\"ValueError\",\"args\":[],"
        "\"final\":5}}",
        "{\"type\":\"heartbeat\",\"tokens\":[]}",
        "{\"type\":\"heartbeat\",\"tokens\":[7]}",
        "{\"type\":\"heartbeat\",\"tokens\":\"1-1\"}",
        "{\"type\":\"give_back\"}",
        "\xff\xfe",
        "{\"type\":\"give_back\",\"token\":\"1234567890123456789012345678901234567890\"}",
        "{\"type\":\"complete\",\"token\":\"a\\u0000b\",\"result\":1}"
    };
    int good = worker_for("[\"work\"]", 0);
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        int bad = worker_now();
        start("{}");
        (void)token_heard(bad);
        say(bad, garbage[i]);
        say(bad, "{\"type\":\"claim\",\"count\":1}"); /* not heard any more */
        pump();
        const char *m = hear(bad);
        if (!strstr(m, "\"type\":\"error\"")) fail_msg("%s: %s", garbage[i], m);
        assert_string_equal(hear(bad), "closed");
        close(bad);
        say(good, "{\"type\":\"claim\",\"count\":1}");
        pump();
        char token[64];
        snprintf(token, sizeof token, "%s", token_heard(good));
        say_token(good, "complete", token, ",\"result\":1");
        assert_has(hear(good), "done");
        assert_string_equal(status_now(), "done");
    }
    close(good);
}

#define HELLO_WITH(queues)                                                                         \
    "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"],\"queues\":" queues "}"

static void a_worker_may_do_steps_that_name_no_queue(void **state) {
    int fd = join();
    say(fd, HELLO_WITH("[\"gpu\",\"\"]"));
    pump();
    assert_has(hear(fd), "welcome");
    start("{}");
    say(fd, "{\"type\":\"claim\",\"count\":1}");
    pump();
    assert_has(hear(fd), "\"type\":\"task\"");
    close(fd);
}

static void the_first_message_is_hello_of_this_version(void **state) {
    static const char *const first[] = { "{\"type\":\"claim\",\"count\":1}",
                                         "{\"type\":\"hello\",\"heddle\":2,\"actions\":[\"work\"]}",
                                         "{\"type\":\"hello\",\"actions\":[\"work\"]}",
                                         "{\"type\":\"hello\",\"heddle\":1,\"actions\":[]}",
                                         "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"\"]}",
                                         "{\"type\":\"hello\",\"heddle\":1,\"actions\":\"work\"}",
                                         HELLO_WITH("\"gpu\""),
                                         HELLO_WITH("[]"),
                                         HELLO_WITH("[\"a b\"]"),
                                         HELLO_WITH("[\"gpu\",7]"),
                                         HELLO_WITH("[\"a/b\"]") };
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        int fd = join();
        say(fd, first[i]);
        pump();
        assert_has(hear(fd), "\"type\":\"error\"");
        assert_string_equal(hear(fd), "closed");
        close(fd);
    }
}

static void a_message_that_is_too_long_is_refused_before_it_is_read(void **state) {
    int fd = worker_now();
    say_bytes(fd, "\xff\xff\xff\xff", 4);
    pump();
    assert_has(hear(fd), "a message has at most 16842752 bytes");
    assert_string_equal(hear(fd), "closed");
    close(fd);
}

/* hd_engine_serve_options: message_limit is that of either side. */
static void the_engine_sends_no_longer_message_than_it_takes(void **state) {
    enum { LIMIT = 1000 };
    char input[LIMIT + 100];
    hd_engine_stop_serving(engine);
    hd_engine_serve_options o = { .socket = path, .message_limit = LIMIT };
    assert_int_equal(hd_engine_serve(engine, &o), HD_OK);
    int fd = worker_now();
    snprintf(input, sizeof input, "{\"n\":\"%0*d\"}", LIMIT, 0);
    start(input);
    assert_string_equal(hear(fd), "");
    hd_value result;
    assert_int_equal(hd_workflow_await(engine, id, pool, &result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "ValueError");
    start("{\"n\":2}"); /* the worker's claim is not used up */
    say_token(fd, "complete", token_heard(fd), ",\"result\":3");
    assert_int_equal(hd_workflow_await(engine, id, pool, &result), HD_OK);
    close(fd);
}

/* A value of value_max bytes fits in a message. */
static void the_longest_value_crosses(void **state) {
    size_t length = ((size_t)16 << 20) - strlen("{\"n\":\"\"}");
    char *input = malloc(length + 16);
    int fd = worker_now();
    memcpy(input, "{\"n\":\"", 6);
    memset(input + 6, 'x', length);
    memcpy(input + 6 + length, "\"}", 3);
    start(input);
    free(input);
    assert_in_range(length_heard(fd), (size_t)16 << 20, 16842752);
    close(fd);
}

static void messages_may_come_byte_by_byte(void **state) {
    int fd = join();
    const char *hello = "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"]}";
    char head[] = { 0, 0, 0, (char)strlen(hello) };
    for (int i = 0; i < 4; i++) {
        say_bytes(fd, head + i, 1);
        pump();
    }
    for (const char *c = hello; *c; c++) {
        assert_string_equal(hear(fd), "");
        say_bytes(fd, c, 1);
        pump();
    }
    assert_has(hear(fd), "welcome");
    close(fd);
}

static void a_worker_may_not_ask_for_too_many_steps(void **state) {
    int fd = worker_for("[\"work\"]", 10000);
    say(fd, "{\"type\":\"claim\",\"count\":1}");
    pump();
    assert_has(hear(fd), "HD_LIMIT");
    close(fd);
}

static void one_that_does_not_say_hello_is_dropped(void **state) {
    int fd = join();
    pump();
    lab_env_advance_ms(env, 9900);
    pump();
    assert_string_equal(hear(fd), "");
    lab_env_advance_ms(env, 200);
    pump();
    assert_string_equal(hear(fd), "closed");
    close(fd);
}

static void connections_are_limited(void **state) {
    int fds[REMOTES_MAX];
    for (int i = 0; i < REMOTES_MAX; i++, pump()) fds[i] = join();
    pump();
    int more = join();
    pump();
    assert_string_equal(hear(more), "closed");
    close(more);
    for (int i = 0; i < REMOTES_MAX; i++) {
        assert_string_equal(hear(fds[i]), "");
        close(fds[i]);
    }
    pump();
    close(worker_now());
}

/* It gets what fits into its buffers, no more; then it is dropped, and another gets all of it. */
static void a_worker_that_stops_reading_is_dropped(void **state) {
    static char input[200100];
    char *at = input + snprintf(input, sizeof input, "{\"n\":\"");
    memset(at, 'x', 200000);
    strcpy(at + 200000, "\"}");
    int fd = worker_for("[\"work\"]", 1000);
    for (int i = 0; i < 60; i++) start(input);
    hd_engine_stats stats;
    hd_engine_stat(engine, &stats);
    assert_true(stats.running < 40); /* 4 MiB and what the system keeps */
    lab_env_advance_ms(env, 29000);
    pump();
    hd_engine_stat(engine, &stats);
    assert_true(stats.running > 0);
    lab_env_advance_ms(env, 2000);
    pump();
    hd_engine_stat(engine, &stats);
    assert_int_equal(stats.running, 0);
    assert_int_equal(stats.ready, 60);
    close(fd);
}

static void a_worker_that_reads_slowly_gets_everything(void **state) {
    static char input[200100], sink[1 << 20];
    char *at = input + snprintf(input, sizeof input, "{\"n\":\"");
    memset(at, 'x', 200000);
    strcpy(at + 200000, "\"}");
    int fd = worker_for("[\"work\"]", 1000);
    for (int i = 0; i < 60; i++) start(input);
    size_t total = 0;
    for (int i = 0; i < 200; i++) {
        ssize_t n = recv(fd, sink, sizeof sink, MSG_DONTWAIT);
        if (n > 0) total += (size_t)n;
        pump();
    }
    hd_engine_stats stats;
    hd_engine_stat(engine, &stats);
    assert_int_equal(stats.running, 60);
    assert_true(total > 60 * 200000u);
    close(fd);
}

/* ---- around it */

static void at_rest_nothing_wakes_the_engine(void **state) {
    int fd = worker_now();
    start("{}");
    (void)token_heard(fd);
    pump();
    assert_true(hd_runtime_deadline(rt) == UINT64_MAX);
    close(fd);
}

static void an_engine_serves_once_and_stops(void **state) {
    assert_int_equal(hd_engine_serve(engine, NULL), HD_USAGE);
    int fd = worker_now();
    start("{}");
    (void)token_heard(fd);
    hd_engine_stop_serving(engine);
    assert_null(hd_engine_socket(engine));
    assert_string_equal(hear(fd), "closed");
    assert_int_equal(access(path, F_OK), -1);
    close(fd);
    pump();
    assert_int_equal(hd_engine_serve(engine, NULL), HD_USAGE); /* in memory there is no file */
    assert_int_equal(hd_engine_serve(engine, &(hd_engine_serve_options){ .socket = path }), HD_OK);
    fd = worker_now();
    (void)token_heard(fd);
    close(fd);
}

static void a_socket_in_use_is_left_alone(void **state) {
    hd_runtime *second;
    hd_engine *other;
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(NULL, &options, &second, NULL), HD_OK);
    assert_int_equal(hd_engine_open(second, NULL, &other, NULL), HD_OK);
    assert_int_equal(hd_engine_serve(other, &(hd_engine_serve_options){ .socket = path }),
                     HD_EXISTS);
    hd_close(second);
    close(worker_now());
}

/* ---- several engines on one space */

/* Two programs on one store, whose engines serve at one socket when they are told to. */
typedef struct two {
    hd_memory *memory;
    hd_runtime *first, *second;
    hd_engine *active, *standby;
    char socket[140];
    hd_engine_serve_options at;
} two;

static void open_two(two *t) {
    *t = (two){ .at = { .socket = t->socket } };
    snprintf(t->socket, sizeof t->socket, "%s/shared", folder);
    assert_int_equal(hd_memory_open(lab_env_of(env), &t->memory), HD_OK);
    hd_options options = { .env = lab_env_of(env), .memory = t->memory };
    assert_int_equal(hd_open(NULL, &options, &t->first, NULL), HD_OK);
    assert_int_equal(hd_open(NULL, &options, &t->second, NULL), HD_OK);
    assert_int_equal(hd_engine_open(t->first, NULL, &t->active, NULL), HD_OK);
    assert_int_equal(hd_engine_open(t->second, NULL, &t->standby, NULL), HD_OK);
    assert_int_equal(hd_engine_serve(t->standby, &t->at), HD_OK); /* it does not listen yet */
}

/* The first one is closed before. */
static void close_two(two *t) {
    assert_int_equal(hd_close(t->second), HD_OK);
    hd_memory_close(t->memory);
}

/* Issue words: "when the one with the engine is killed another goes on". */
static void workers_come_to_the_engine_that_takes_over(void **state) {
    two t;
    hd_runtime *own = rt;
    hd_engine *own_engine = engine;
    hd_pool *own_pool = pool;
    open_two(&t);
    assert_int_equal(hd_engine_serve(t.active, &t.at), HD_OK);
    memcpy(path, t.socket, sizeof path);
    rt = t.first;
    engine = t.active;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    register_one("");
    int fd = worker_now();
    start("{}");
    (void)token_heard(fd);
    hd_pool_close(pool);
    assert_int_equal(hd_close(t.first), HD_OK);
    assert_string_equal(hear(fd), "closed");
    close(fd);
    rt = t.second;
    engine = t.standby;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < 20 && !hd_engine_is_active(t.standby); i++) {
        lab_env_advance_ms(env, 100);
        pump();
    }
    assert_true(hd_engine_is_active(t.standby));
    fd = worker_now();
    say_token(fd, "complete", token_heard(fd), ",\"result\":5");
    assert_has(hear(fd), "done");
    assert_string_equal(result_now(), "5");
    close(fd);
    hd_pool_close(pool);
    close_two(&t);
    pool = own_pool;
    rt = own;
    engine = own_engine;
}

/* Figures: "idle engine: no wake-ups", also of one that waits for its turn to listen. */
static void an_engine_that_stands_by_and_will_serve_sleeps(void **state) {
    two t;
    open_two(&t);
    for (int i = 0; i < 6; i++) assert_int_equal(hd_runtime_pump(t.second), HD_OK);
    assert_false(hd_engine_is_active(t.standby));
    assert_true(hd_runtime_deadline(t.second) == UINT64_MAX);
    assert_int_equal(hd_close(t.first), HD_OK);
    for (int i = 0; i < 6; i++) assert_int_equal(hd_runtime_pump(t.second), HD_OK);
    assert_true(hd_engine_is_active(t.standby));
    assert_int_equal(access(t.socket, F_OK), 0);
    close_two(&t);
}

static void an_observer_serves_no_workers(void **state) {
    hd_runtime *looks;
    hd_engine *tool;
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(NULL, &options, &looks, NULL), HD_OK);
    assert_int_equal(hd_engine_open(looks, &(hd_engine_options){ .observer = true }, &tool, NULL),
                     HD_OK);
    assert_int_equal(hd_engine_serve(tool, NULL), HD_USAGE);
    hd_close(looks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_worker_is_welcomed_with_the_limits),
        TEST(a_step_goes_to_a_worker_and_its_result_into_the_workflow),
        TEST(actions_with_a_transaction_go_to_no_worker),
        TEST(a_worker_does_not_send_events_or_wait_for_cells),
        TEST(a_failure_is_an_exception_of_its_class),
        TEST(a_class_that_is_not_known_is_in_the_message),
        TEST(an_exception_crosses_as_a_value),
        TEST(a_worker_gets_as_many_steps_as_it_asks_for),
        TEST(a_worker_gets_steps_of_its_actions_alone),
        TEST(the_step_of_a_worker_that_ends_goes_to_another),
        TEST(a_lost_outcome_is_not_told_as_stored),
        TEST(a_result_that_cannot_be_stored_is_late),
        TEST(an_old_token_is_late),
        TEST(a_token_is_good_on_its_own_connection_alone),
        TEST(a_worker_that_connects_again_is_late_with_its_old_token),
        TEST(a_step_that_is_given_back_goes_to_another),
        TEST(a_step_of_a_cancelled_instance_is_taken_back),
        TEST(an_attempt_that_takes_too_long_is_taken_back),
        TEST(a_silent_worker_loses_its_step_and_one_that_beats_keeps_it),
        TEST(a_worker_that_speaks_garbage_harms_no_other),
        TEST(the_first_message_is_hello_of_this_version),
        TEST(a_worker_may_do_steps_that_name_no_queue),
        TEST(a_message_that_is_too_long_is_refused_before_it_is_read),
        TEST(the_engine_sends_no_longer_message_than_it_takes),
        TEST(the_longest_value_crosses),
        TEST(messages_may_come_byte_by_byte),
        TEST(a_worker_may_not_ask_for_too_many_steps),
        TEST(one_that_does_not_say_hello_is_dropped),
        TEST(connections_are_limited),
        TEST(a_worker_that_stops_reading_is_dropped),
        TEST(a_worker_that_reads_slowly_gets_everything),
        TEST(at_rest_nothing_wakes_the_engine),
        TEST(an_engine_serves_once_and_stops),
        TEST(a_socket_in_use_is_left_alone),
        TEST(workers_come_to_the_engine_that_takes_over),
        TEST(an_engine_that_stands_by_and_will_serve_sleeps),
        TEST(an_observer_serves_no_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_inspect.c -- a running program answers those who look from outside, and nobody can make it wait.
 *
 * The asker is in the same process: its socket is written to, the runtime is pumped, and the answer is
 * there. Time is the lab's, so that one who is too slow is so at once. */
#define _GNU_SOURCE

#include "spec.h"

#include "socket/address.h"
#include <errno.h>
#include <fcntl.h>
#include <heddle/inspect.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The limits of inspect/inspector.h, said again: they are promised. */
#define ASKERS_MAX    8
#define ASK_WITHIN_NS UINT64_C(5000000000)

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

static char heard[4 << 20];

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

/* There is room for 63 bytes of it; a character is not cut in two. */
static void a_long_name_of_a_program_stays_text(void **state) {
    char name[100] = "", expected[110];
    memset(name, 'x', 62);
    snprintf(expected, sizeof expected, "\"%s\"", name);
    strcat(name, "\xC3\xA9, and then some");
    assert_int_equal(hd_runtime_serve(rt(), &(hd_serve_options){ .socket = path, .name = name }),
                     HD_OK);
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), expected);
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
                  "\"why_not\":\"no live node reads");
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

/* ---- what is no question */

static void what_is_not_understood_is_refused_by_name(void **state) {
    static const struct {
        const char *line, *said;
    } cases[] = {
        { "hello\n", "HD_SYNTAX" },
        { "\n", "HD_SYNTAX" },
        { "[1]\n", "HD_PROTOCOL" },
        { "{\"ask\":\"hello\"}\n", "speaks version 1" },
        { "{\"heddle\":2,\"ask\":\"hello\"}\n", "speaks version 1" },
        { "{\"heddle\":1}\n", "'ask' is missing" },
        { "{\"heddle\":1,\"ask\":\"stop\"}\n", "'ask' cannot be 'stop'" },
        { "{\"heddle\":1,\"ask\":7}\n", "HD_USAGE" },
        { "{\"heddle\":1,\"ask\":\"hello\",\"more\":1}\n", "no key 'more'" },
        { "{\"heddle\":1,\"ask\":\"why\"}\n", "must name a node or a cell" },
        { "{\"heddle\":1,\"ask\":\"why\",\"of\":\"a\\u0000b\"}\n", "without NUL" },
        { "{\"heddle\":1,\"ask\":\"why\",\"of\":\"nobody\"}\n", "HD_NOT_FOUND" },
        { "{\"heddle\":1,\"ask\":\"why\",\"of\":\"#99\"}\n", "HD_NOT_FOUND" },
        { "{\"heddle\":1,\"ask\":\"why\",\"of\":\"#99999999999999999999\"}\n", "HD_NOT_FOUND" },
        { "{\"heddle\":1,\"ask\":\"why\",\"of\":\"a@b/c\"}\n", "HD_NOT_FOUND" },
        { "{\"heddle\":1,\"ask\":\"hello\",\"of\":\"x\"}\n", "belongs to why" },
        { "{\"heddle\":1,\"ask\":\"hello\",\"as\":\"dot\"}\n", "belong to graph" },
        { "{\"heddle\":1,\"ask\":\"graph\",\"as\":\"chrome\"}\n", "belong to trace" },
        { "{\"heddle\":1,\"ask\":\"graph\",\"on\":true}\n", "belongs to trace" },
        { "{\"heddle\":1,\"ask\":\"stats\",\"limit\":0}\n", "from 1 to 1000" },
        { "{\"heddle\":1,\"ask\":\"trace\",\"on\":1}\n", "true or false" },
        { "{\"heddle\":1,\"ask\":\"tr\\u00e4ce\\\"\\\\\"}\n", "cannot be" },
    };
    serve();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *answer = ask(cases[i].line);
        assert_answer(answer, "{\"heddle\":1,\"error\":{\"status\":\"HD_");
        assert_answer(answer, cases[i].said);
    }
}

static void a_line_that_does_not_end_is_refused(void **state) {
    static char line[70000];
    memset(line, 'x', sizeof line);
    serve();
    int fd = address_connect(path);
    assert_int_equal(send(fd, line, sizeof line, MSG_NOSIGNAL), sizeof line);
    for (int i = 0; i < 20; i++) pump();
    assert_answer(hear(fd), "HD_LIMIT");
}

static void what_the_program_was_told_last_stays_so(void **state) {
    serve();
    assert_int_equal(hd_cell_at(rt(), "nonsense").id, 0);
    assert_answer(ask("{\"heddle\":1,\"ask\":\"why\",\"of\":\"a@b/c\"}\n"), "HD_NOT_FOUND");
    assert_non_null(strstr(hd_runtime_error(rt())->message, "nonsense"));
}

/* ---- those who are slow, many, or gone */

static void a_question_may_come_in_pieces(void **state) {
    static const char line[] = "{\"heddle\":1,\"ask\":\"hello\"}\n";
    serve();
    int fd = address_connect(path);
    for (const char *c = line; *c; c++) {
        assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
        pump();
    }
    assert_answer(hear(fd), "\"pid\":");
}

static bool hung_up(int fd) {
    char c;
    ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

static void one_who_does_not_ask_is_dropped_after_five_seconds(void **state) {
    serve();
    int fd = say("{\"heddle\":1,");
    pump();
    uint64_t now = hd_runtime_env(rt())->monotonic_ns(hd_runtime_env(rt())->ctx);
    assert_true(hd_runtime_deadline(rt()) <= now + ASK_WITHIN_NS);
    lab_advance_ms(l, 4999);
    pump();
    assert_false(hung_up(fd));
    lab_advance_ms(l, 1);
    pump();
    assert_true(hung_up(fd));
    close(fd);
}

static void many_nodes(void) {
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "node-%d", i);
        lab_effect(l, name, "price");
    }
    lab_idle(l);
}

/* Longer than any line of a terminal, and cut anywhere it would be no text. */
#define LONG 700

typedef struct long_names {
    char node[LONG + 1], child[LONG + 1], cell[5 + 2 * LONG + 1];
} long_names;

static long_names make_long_names(void) {
    long_names n;
    memset(n.node, 'n', LONG);
    memset(n.child, 'c', LONG);
    memcpy(n.cell, "main/", 5);
    for (int i = 0; i < LONG; i++) memcpy(n.cell + 5 + 2 * i, "\xC3\xA9", 2); /* e acute */
    n.node[LONG] = n.child[LONG] = n.cell[5 + 2 * LONG] = '\0';
    return n;
}

static hd_status read_cell(hd_tx *tx, void *ctx) {
    const hd_cell *cell = ctx;
    return hd_value_status(hd_tx_get(tx, *cell));
}

static const char *ask_of(const char *what, const char *of) {
    static char line[4096];
    snprintf(line, sizeof line, "{\"heddle\":1,\"ask\":\"%s\",\"of\":\"%s\"}\n", what, of);
    return ask(line);
}

/* inspect.h: stats by name are in the order of the names that the answer shows, which are paths. */
static void stats_by_name_follow_the_paths(void **state) {
    serve();
    hd_cell cell = hd_cell_at(rt(), "main/price");
    hd_node up = hd_effect(rt(), "anna", read_cell, &cell);
    hd_node_spec child = {
        .name = "zoe", .fn = read_cell, .ctx = &cell, .effect = true, .parent = up
    };
    assert_int_equal(hd_node_register(rt(), &child, NULL), HD_OK);
    hd_effect(rt(), "bert", read_cell, &cell);
    lab_idle(l);
    const char *answer = ask("{\"heddle\":1,\"ask\":\"stats\",\"by\":\"name\"}\n");
    assert_answer(answer, "\"anna/zoe\"");
    assert_true(strstr(answer, "\"anna\"") < strstr(answer, "\"anna/zoe\""));
    assert_true(strstr(answer, "\"anna/zoe\"") < strstr(answer, "\"bert\""));
}

/* CLI.md: the trace names a child by its path, in both forms. */
static void the_trace_names_children_by_their_paths(void **state) {
    serve();
    hd_cell cell = hd_cell_at(rt(), "main/price");
    hd_node up = hd_effect(rt(), "anna", read_cell, &cell);
    hd_node_spec child = {
        .name = "zoe", .fn = read_cell, .ctx = &cell, .effect = true, .parent = up
    };
    ask("{\"heddle\":1,\"ask\":\"trace\",\"on\":true}\n");
    assert_int_equal(hd_node_register(rt(), &child, NULL), HD_OK);
    lab_idle(l);
    assert_answer(ask("{\"heddle\":1,\"ask\":\"trace\",\"as\":\"runs\"}\n"),
                  "\"name\":\"anna/zoe\"");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"trace\",\"as\":\"chrome\"}\n"),
                  "\"name\":\"anna/zoe\"");
}

static void names_of_any_length_are_told_whole(void **state) {
    long_names n = make_long_names();
    char path_of_child[2 * LONG + 2];
    serve();
    hd_cell cell = hd_cell_at(rt(), n.cell);
    hd_node node = hd_effect(rt(), n.node, read_cell, &cell);
    hd_node_spec child = {
        .name = n.child, .fn = read_cell, .ctx = &cell, .effect = true, .parent = node
    };
    assert_int_equal(hd_node_register(rt(), &child, &node), HD_OK);
    hd_write_json(rt(), cell, "3");
    lab_idle(l);
    snprintf(path_of_child, sizeof path_of_child, "%s/%s", n.node, n.child);

    assert_answer(ask("{\"heddle\":1,\"ask\":\"graph\"}\n"), n.cell);
    assert_answer(heard, path_of_child);
    assert_answer(ask("{\"heddle\":1,\"ask\":\"graph\",\"as\":\"dot\"}\n"), path_of_child);
    assert_answer(ask("{\"heddle\":1,\"ask\":\"stats\"}\n"), path_of_child);
    assert_answer(ask_of("why", path_of_child), n.cell);
    assert_answer(heard, path_of_child);
    assert_answer(ask_of("why", n.cell), n.cell);
    hd_action_stats known;
    assert_int_equal(hd_runtime_action_stats(rt(), path_of_child, &known), HD_OK);
}

/* As long as names are in practice, and longer than what is read at once. */
static void a_question_may_be_long(void **state) {
    static char of[50000], line[60000];
    serve();
    memcpy(of, "main/", 5);
    memset(of + 5, 'n', sizeof of - 6);
    hd_cell cell = hd_cell_at(rt(), of);
    hd_effect(rt(), "reader", read_cell, &cell);
    hd_write_json(rt(), cell, "3");
    lab_idle(l);
    snprintf(line, sizeof line, "{\"heddle\":1,\"ask\":\"why\",\"of\":\"%s\"}\n", of);
    int fd = say(line);
    for (int i = 0; i < 20; i++) pump();
    assert_answer(hear(fd), of);
    assert_answer(heard, "\"value\":\"3\"");
}

/* Who asks about ever new names, of spaces, documents and places, must not make the program grow. */
static void asking_about_what_nobody_knows_leaves_nothing(void **state) {
    static const char *const forms[] = { "space-%d/price", "main/price-%d", "main/price#/%d/x",
                                         "main@user/price-%d" };
    char name[64];
    serve();
    a_small_shop();
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, forms[i], 0);
        assert_answer(ask_of("why", name), "\"nodes\":[]");
    }
    hd_store_stats before, after;
    hd_runtime_store_stats(rt(), &before);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, forms[i % 4], i);
        assert_answer(ask_of(i % 8 < 4 ? "why" : "why-not", name), name);
    }
    hd_runtime_store_stats(rt(), &after);
    assert_int_equal(after.places, before.places);
    assert_int_equal(after.documents, before.documents);
    assert_answer(ask_of("why", "main/price"), "\"value\":\"3\"");
    assert_answer(ask_of("why", "main/total#/x"), "\"name\":\"total\"");
}

typedef struct crowd {
    hd_cell all, part[900];
} crowd;

static hd_status read_all(hd_tx *tx, void *ctx) {
    const crowd *c = ctx;
    return hd_value_status(hd_tx_get(tx, c->all));
}

static hd_status write_part(hd_tx *tx, void *ctx) {
    const hd_cell *part = ctx;
    return hd_tx_set_int(tx, *part, 1);
}

/* A picture that is being drawn asks for the next pump. */
static void pump_until_drawn(void) {
    do pump();
    while (hd_runtime_deadline(rt()) == 0);
}

/* Each of 900 feeds each of 900: more edges than an answer has bytes for. It is refused while it is drawn,
 * as soon as that shows. */
static void what_no_answer_can_hold_is_refused(void **state) {
    static crowd c;
    char name[64];
    serve();
    c.all = hd_cell_at(rt(), "main/all");
    for (int i = 0; i < 900; i++) {
        snprintf(name, sizeof name, "main/all#/%d", i);
        c.part[i] = hd_cell_at(rt(), name);
        assert_true(hd_compute(rt(), name, write_part, &c.part[i], c.part[i]).id);
        assert_true(hd_effect(rt(), NULL, read_all, &c).id);
    }
    lab_idle(l);
    int fd = say("{\"heddle\":1,\"ask\":\"graph\"}\n");
    pump();
    pump_until_drawn();
    assert_answer(hear(fd), "HD_LIMIT");
    assert_answer(heard, "reads and edges");
}

/* Each pump draws a part: what else there is to do, and to answer, has its turn between two of them. */
static void pictures_of_a_large_graph_do_not_hold_up_the_program(void **state) {
    enum { PICTURES = 7 };
    int fds[PICTURES], pumps = 0;
    serve();
    many_nodes();
    for (int i = 0; i < PICTURES; i++) fds[i] = say("{\"heddle\":1,\"ask\":\"graph\"}\n");
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "\"nodes\":3000");
    for (; hd_runtime_deadline(rt()) == 0; pumps++) pump();
    assert_true(pumps > PICTURES);
    for (int i = 0; i < PICTURES; i++) assert_answer(hear(fds[i]), "\"answer\":{\"edges\":[");
}

static void one_who_does_not_take_its_answer_is_dropped_after_thirty_seconds(void **state) {
    serve();
    many_nodes();
    int fd = say("{\"heddle\":1,\"ask\":\"graph\"}\n");
    pump();
    pump();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "\"nodes\":3000");
    lab_advance_ms(l, 30000);
    pump();
    size_t length = strlen(hear(fd));
    assert_true(length > 0 && heard[length - 1] != '\n'); /* what the socket held, and no more */
}

static void a_long_answer_arrives_whole(void **state) {
    serve();
    many_nodes();
    int fd = say("{\"heddle\":1,\"ask\":\"graph\"}\n");
    size_t length = 0;
    bool ended = false;
    for (int i = 0; i < 1000 && !ended; i++) {
        pump();
        ssize_t n = recv(fd, heard + length, sizeof heard - 1 - length, MSG_DONTWAIT);
        ended = n == 0;
        if (n > 0) length += (size_t)n;
        heard[length] = '\0';
    }
    assert_true(ended);
    assert_string_equal(heard + length - 4, "]}}\n");
    close(fd);
}

static void the_ninth_is_asked_to_come_again(void **state) {
    int fds[ASKERS_MAX];
    serve();
    for (int i = 0; i < ASKERS_MAX; i++) fds[i] = say("{");
    pump();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "HD_BUSY");
    close(fds[0]);
    pump();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "\"pid\":");
    for (int i = 1; i < ASKERS_MAX; i++) close(fds[i]);
}

static void several_at_once_get_their_own_answers(void **state) {
    serve();
    a_small_shop();
    int a = say("{\"heddle\":1,\"ask\":\"why\",\"of\":\"show\"}\n");
    int b = say("{\"heddle\":1,\"ask\":\"why\",\"of\":\"total\"}\n");
    pump();
    pump();
    assert_answer(hear(b), "\"name\":\"total\"");
    assert_answer(hear(a), "\"name\":\"show\"");
}

static void one_who_leaves_without_its_answer_harms_nobody(void **state) {
    serve();
    many_nodes();
    for (int i = 0; i < 20; i++) {
        int fd = say("{\"heddle\":1,\"ask\":\"graph\"}\n");
        if (i % 2) pump();
        close(fd);
        pump();
    }
    pump();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "\"pid\":");
}

static void rubbish_harms_nobody(void **state) {
    lab_random random = lab_random_of(lab_seed());
    static const char piece[] = "{}[]\":,\n\\u00heddleaskofwhy1 \xff\xc3";
    char text[200];
    serve();
    for (int i = 0; i < 500; i++) {
        size_t length = 1 + lab_random_below(&random, sizeof text - 1);
        for (size_t k = 0; k < length; k++)
            text[k] = piece[lab_random_below(&random, sizeof piece - 1)];
        int fd = address_connect(path);
        assert_true(send(fd, text, length, MSG_NOSIGNAL) > 0);
        pump();
        close(fd);
    }
    pump();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "\"pid\":");
}

/* ---- with whatever drives the runtime */

static bool is_readable(int fd) {
    struct pollfd p = { fd, POLLIN, 0 };
    return poll(&p, 1, 0) == 1;
}

static void the_descriptor_tells_of_a_question(void **state) {
    int early = hd_runtime_fd(rt()); /* made before there was a socket */
    serve();
    while (is_readable(early)) pump();
    int fd = say("{\"heddle\":1,\"ask\":\"hello\"}\n");
    assert_true(is_readable(early));
    pump();
    assert_true(is_readable(early)); /* it is accepted, and its line is there */
    pump();
    assert_answer(hear(fd), "\"pid\":");
}

static void settling_serves_too(void **state) {
    serve();
    a_small_shop();
    int fd = say("{\"heddle\":1,\"ask\":\"hello\"}\n");
    assert_int_equal(hd_runtime_settle(rt()), HD_OK);
    assert_int_equal(hd_runtime_settle(rt()), HD_OK);
    assert_answer(hear(fd), "\"pid\":");
}

/* ---- who may ask, and where */

static void others_may_not_ask(void **state) {
    struct stat s;
    serve();
    assert_int_equal(lstat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    assert_true(address_may_ask(1000, 1000));
    assert_true(address_may_ask(0, 1000));
    assert_false(address_may_ask(1001, 1000));
    assert_false(address_may_ask(1001, 0));
}

/* Becomes somebody else, and asks. 0: it was answered with `said`. */
static int ask_as_nobody(const char *said) {
    static const char line[] = "{\"heddle\":1,\"ask\":\"hello\"}\n";
    int told[2];
    *heard = '\0';
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (!child) {
        bool changed = !setuid(65534);
        int fd = changed ? address_connect(path) : -1;
        int reached = fd >= 0 && send(fd, line, strlen(line), MSG_NOSIGNAL) > 0;
        if (write(told[1], "x", 1) != 1) _exit(9);
        if (fd < 0) _exit(errno == EACCES ? 1 : 2);
        for (ssize_t n = -1; reached && n < 0;) n = recv(fd, heard, sizeof heard - 1, 0);
        _exit(strstr(heard, said) ? 0 : 3);
    }
    char c;
    int status;
    assert_int_equal(read(told[0], &c, 1), 1);
    close(told[0]);
    close(told[1]);
    for (int i = 0; i < 3; i++) pump();
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void another_user_is_turned_away(void **state) {
    if (geteuid()) skip(); /* only root can become somebody else */
    assert_int_equal(chmod(folder, 0755), 0);
    serve();
    assert_int_equal(ask_as_nobody(""), 1); /* the system does not let it near */
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(ask_as_nobody("HD_REJECTED"), 0); /* and nor do we */
}

static void serving_again_and_twice(void **state) {
    hd_serve_options options = { .socket = path };
    serve();
    assert_int_equal(hd_runtime_serve(rt(), &options), HD_USAGE);
    lab_on(l, "b");
    assert_int_equal(hd_runtime_serve(rt(), &options), HD_EXISTS);
    assert_non_null(strstr(hd_runtime_error(rt())->message, "another program serves there"));
    lab_on(l, "a");
    hd_runtime_stop_serving(rt());
    hd_runtime_stop_serving(rt());
    serve();
    assert_answer(ask("{\"heddle\":1,\"ask\":\"hello\"}\n"), "\"pid\":");
}

static void what_is_no_socket_is_left_alone(void **state) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "keep", 4), 4);
    close(fd);
    assert_int_equal(hd_runtime_serve(rt(), &(hd_serve_options){ .socket = path }), HD_EXISTS);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_place_that_is_none_is_said_to_be(void **state) {
    char far[400];
    memset(far, 'x', sizeof far);
    far[sizeof far - 1] = '\0';
    memcpy(far, folder, strlen(folder));
    far[strlen(folder)] = '/';
    assert_int_equal(hd_runtime_serve(rt(), &(hd_serve_options){ .socket = far }), HD_LIMIT);
    assert_int_equal(hd_runtime_serve(rt(), &(hd_serve_options){ .socket = "/nowhere/at/all" }),
                     HD_IO);
    if (!lab_is_sqlite(l)) assert_int_equal(hd_runtime_serve(rt(), NULL), HD_USAGE);
}

/* ---- beside a file */

static hd_runtime *open_file(const char *file) {
    hd_runtime *opened;
    hd_error error;
    if (hd_open(file, NULL, &opened, &error)) fail_msg("%s", error.message);
    return opened;
}

static void close_file(hd_runtime *opened, const char *file) {
    assert_int_equal(hd_close(opened), HD_OK);
    unlink(file);
}

static bool count_socket(void *ctx, const char *name, pid_t pid) {
    ++*(int *)ctx;
    return true;
}

static int sockets_beside(const char *file) {
    int count = 0;
    address_each(file, count_socket, &count);
    return count;
}

static void each_runtime_on_a_file_has_its_own_socket(void **state) {
    char file[128], wanted[200];
    snprintf(file, sizeof file, "%s/shop.db", folder);
    hd_runtime *a = open_file(file), *b = open_file(file);
    assert_int_equal(hd_runtime_serve(a, NULL), HD_OK);
    assert_int_equal(hd_runtime_serve(b, NULL), HD_OK);
    snprintf(wanted, sizeof wanted, "%s-live-%d", file, (int)getpid());
    assert_string_equal(hd_runtime_socket(a), wanted);
    snprintf(wanted, sizeof wanted, "%s-live-%d.2", file, (int)getpid());
    assert_string_equal(hd_runtime_socket(b), wanted);
    assert_int_equal(sockets_beside(file), 2);
    assert_int_equal(hd_close(b), HD_OK);
    assert_int_equal(sockets_beside(file), 1);
    close_file(a, file);
    assert_int_equal(sockets_beside(file), 0);
}

/* A process that serves beside the file and dies without a word. */
static void die_serving(const char *file) {
    pid_t child = fork();
    int status;
    if (!child) {
        char name[ADDRESS_MAX];
        _exit(!address_of(file, getpid(), 1, name) || address_listen(name) < 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void sockets_of_the_dead_are_removed(void **state) {
    char file[128];
    snprintf(file, sizeof file, "%s/shop.db", folder);
    hd_runtime *opened = open_file(file);
    die_serving(file);
    die_serving(file);
    assert_int_equal(sockets_beside(file), 2);
    assert_int_equal(hd_runtime_serve(opened, NULL), HD_OK);
    assert_int_equal(sockets_beside(file), 1);
    assert_int_equal(address_sweep(file), 0);
    close_file(opened, file);
}

static void a_path_longer_than_an_address_is_reached(void **state) {
    char deep[300], file[320];
    int length = snprintf(deep, sizeof deep, "%s/", folder);
    memset(deep + length, 'd', 150);
    deep[length + 150] = '\0';
    assert_int_equal(mkdir(deep, 0700), 0);
    snprintf(file, sizeof file, "%s/shop.db", deep);
    hd_runtime *opened = open_file(file);
    assert_int_equal(hd_runtime_serve(opened, NULL), HD_OK);
    int fd = address_connect(hd_runtime_socket(opened));
    assert_true(fd >= 0);
    close(fd);
    close_file(opened, file);
    assert_int_equal(rmdir(deep), 0);
}

/* ---- without memory */

static hd_status copy_price(hd_tx *tx, void *ctx) {
    hd_runtime *opened = hd_tx_runtime(tx);
    return hd_tx_set(tx, hd_cell_at(opened, "main/x"), hd_tx_get(tx, hd_cell_at(opened, "main/p")));
}

/* What can be built of it without memory is built. */
static void a_graph_if_possible(hd_runtime *opened) {
    hd_effect(opened, "show", copy_price, NULL);
    hd_write_json(opened, hd_cell_at(opened, "main/p"), "3");
    hd_compute(opened, "x", copy_price, NULL, hd_cell_at(opened, "main/x"));
    hd_runtime_pump(opened);
}

static void serve_and_ask(lab_env *world, void *ctx) {
    static const char *const lines[] = { "{\"heddle\":1,\"ask\":\"stats\"}\n",
                                         "{\"heddle\":1,\"ask\":\"graph\",\"as\":\"dot\"}\n",
                                         "{\"heddle\":1,\"ask\":\"graph\"}\n",
                                         "{\"heddle\":1,\"ask\":\"trace\",\"as\":\"runs\"}\n",
                                         "{\"heddle\":1,\"ask\":\"why-not\",\"of\":\"main/x\"}\n",
                                         "{\"heddle\":1,\"ask\":\"why\",\"of\":\"main/x\"}\n" };
    hd_options options = { .env = lab_env_of(world) };
    hd_runtime *opened;
    if (hd_open(NULL, &options, &opened, NULL)) return;
    a_graph_if_possible(opened);
    hd_status status = hd_runtime_serve(opened, &(hd_serve_options){ .socket = path });
    assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(world)));
    for (size_t i = 0; !status && i < sizeof lines / sizeof *lines; i++) {
        int fd = say(lines[i]);
        for (int k = 0; k < 3; k++) hd_runtime_pump(opened);
        const char *answer = hear(fd);
        if (!lab_env_failed(world)) assert_answer(answer, "\"answer\":");
        else if (*answer) assert_answer(answer, "{\"heddle\":1,");
    }
    hd_close(opened);
}

static void without_memory_the_asker_is_told_so(void **state) {
    assert_true(lab_each_allocation_failure(serve_and_ask, NULL) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        W(who_is_there_says_its_name),
        W(a_long_name_of_a_program_stays_text),
        W(nothing_is_served_unless_asked_for),
        W(every_question_has_its_answer),
        W(the_trace_can_be_switched_from_outside),
        W(the_trace_names_children_by_their_paths),
        W(what_is_not_understood_is_refused_by_name),
        W(a_line_that_does_not_end_is_refused),
        W(what_the_program_was_told_last_stays_so),
        W(a_question_may_come_in_pieces),
        W(one_who_does_not_ask_is_dropped_after_five_seconds),
        W(stats_by_name_follow_the_paths),
        W(names_of_any_length_are_told_whole),
        W(a_question_may_be_long),
        W(asking_about_what_nobody_knows_leaves_nothing),
        W(what_no_answer_can_hold_is_refused),
        W(pictures_of_a_large_graph_do_not_hold_up_the_program),
        W(one_who_does_not_take_its_answer_is_dropped_after_thirty_seconds),
        W(a_long_answer_arrives_whole),
        W(the_ninth_is_asked_to_come_again),
        W(several_at_once_get_their_own_answers),
        W(one_who_leaves_without_its_answer_harms_nobody),
        W(rubbish_harms_nobody),
        W(the_descriptor_tells_of_a_question),
        W(settling_serves_too),
        W(others_may_not_ask),
        W(another_user_is_turned_away),
        W(serving_again_and_twice),
        W(what_is_no_socket_is_left_alone),
        W(a_place_that_is_none_is_said_to_be),
        W(each_runtime_on_a_file_has_its_own_socket),
        W(sockets_of_the_dead_are_removed),
        W(a_path_longer_than_an_address_is_reached),
        W(without_memory_the_asker_is_told_so),
    };
    LAB_EVERYWHERE(tests);
}

/* test_graphs.c -- the graphs of the benchmark as a specification: what they compute and how many
 * runs that takes, exactly.
 *
 * The values, sums and counts are those of the public suite the graphs are taken from; each graph
 * checks them itself (bench/graphs.h) and says what was wrong. HD_GRAPH_ITERATIONS gives the small
 * graphs more rounds than a test needs. */
#include "../../bench/graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

graph_suite graphs_heddle(void);

static int iterations(void) {
    const char *text = getenv("HD_GRAPH_ITERATIONS");
    return text && *text ? atoi(text) : 2;
}

/* Under the sanitizers graphs that only do more of what others do are left out. */
static bool is_more_of_the_same(const char *name) {
#if defined(__SANITIZE_ADDRESS__)
    static const char *const larger[] = { "2-10x5", "25-1000x5", "updateSignals",
                                          "chains-150000-by-1", "chains-150000-by-1000" };
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++)
        if (!strcmp(name, larger[i])) return true;
#endif
    (void)name;
    return false;
}

static void run_graph(void **state) {
    const graph *g = *state;
    if (is_more_of_the_same(g->name)) skip();
    graph_options options = { .repeats = 1, .iterations = iterations() };
    graph_result result = { 0 };
    g->run(&options, &result);
    assert_string_equal(result.wrong, "");
}

int main(void) {
    static struct CMUnitTest tests[64];
    graph_suite suite = graphs_heddle();
    for (size_t i = 0; i < suite.count && i < 64; i++)
        tests[i] = (struct CMUnitTest){ suite.graphs[i].name, run_graph, NULL, NULL,
                                        (void *)(uintptr_t)&suite.graphs[i] };
    return _cmocka_run_group_tests("graphs", tests, suite.count, NULL, NULL);
}

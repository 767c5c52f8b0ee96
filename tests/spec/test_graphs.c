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
#include <cmocka.h>

graph_suite graphs_heddle(void);

static int iterations(void) {
    const char *text = getenv("HD_GRAPH_ITERATIONS");
    return text && *text ? atoi(text) : 2;
}

static void run_graph(void **state) {
    const graph *g = *state;
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

/* graph.c -- the nodes of a running program, and which node reads which. */
#include "cli/commands.h"
#include "cli/handlers.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "  reads   a, b, c", folded at the margin. */
static void print_list(const char *what, hd_value cells, const char *key) {
    if (!hd_value_count(cells)) return;
    int column = printf("    %-7s", what);
    bool first = true;
    for (hd_iter it = hd_iter_of(cells); hd_iter_next(&it);) {
        const char *text = key ? live_text(it.value, key) : hd_value_as_text(it.value, "");
        int length = (int)strlen(text);
        if (!first) column += printf(",");
        if (!first && column + 1 + length > 78) column = printf("\n           ") - 1;
        putchar(' ');
        print_plain(stdout, text);
        column += 1 + length;
        first = false;
    }
    putchar('\n');
}

/* A graph while it is printed. Edges come in the order of the nodes they begin at. */
typedef struct picture {
    live l;
    hd_value *by_id; /* nodes; malloc */
    size_t id_count;
    hd_iter edges;
    bool more; /* edges.value has not been used up */
} picture;

static hd_value name_of(picture *p, hd_value node) {
    hd_value name = hd_value_at(node, "name");
    if (*hd_value_as_text(name, "")) return name;
    return hd_string_f(p->l.pool, "#%" PRIu64, live_number(node, "id"));
}

/* The names of the nodes that it feeds. */
static hd_value fed_by(picture *p, uint64_t id) {
    hd_value names = hd_array();
    for (; p->more && live_number(p->edges.value, "from") == id;
         p->more = hd_iter_next(&p->edges)) {
        uint64_t to = live_number(p->edges.value, "to");
        if (strcmp(live_text(p->edges.value, "kind"), "parent") == 0 || to >= p->id_count) continue;
        names = hd_array_append(p->l.pool, names, name_of(p, p->by_id[to]));
    }
    return names;
}

static bool index_nodes(picture *p, hd_value nodes) {
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it);)
        if (live_number(it.value, "id") >= p->id_count)
            p->id_count = live_number(it.value, "id") + 1;
    p->by_id = calloc(p->id_count + 1, sizeof *p->by_id);
    for (hd_iter it = hd_iter_of(nodes); p->by_id && hd_iter_next(&it);)
        p->by_id[live_number(it.value, "id")] = it.value;
    return p->by_id;
}

static void print_node(picture *p, hd_value node) {
    const cli *c = p->l.c;
    const char *status = live_text(node, "status");
    uint64_t runs = live_number(node, "runs");
    hd_value feeds = fed_by(p, live_number(node, "id"));
    fputs(out_colour(c, COLOUR_BOLD), stdout);
    print_plain(stdout, hd_value_as_text(name_of(p, node), ""));
    printf("%s  %s, %s%s%s, %s, %" PRIu64 " run%s\n", out_colour(c, COLOUR_NONE),
           live_text(node, "kind"),
           out_colour(c, strcmp(status, "clean") ? COLOUR_YELLOW : COLOUR_GREEN), status,
           out_colour(c, COLOUR_NONE),
           hd_value_as_bool(hd_value_at(node, "live"), false) ? "live" : "dormant", runs,
           runs == 1 ? "" : "s");
    print_list("reads", hd_value_at(node, "reads"), "cell");
    print_list("writes", hd_value_at(node, "outputs"), NULL);
    print_list("within", hd_value_at(node, "envelopes"), NULL);
    print_list("feeds", feeds, NULL);
}

static void print_handler(const cli *c, hd_value handler) {
    fputs(out_colour(c, COLOUR_BOLD), stdout);
    print_plain(stdout, handler_name(handler));
    printf("%s  handler, %" PRIu64 " handled, %" PRIu64 " refused\n", out_colour(c, COLOUR_NONE),
           live_number(handler, "handled"), live_number(handler, "failed"));
    if (strcmp(handler_name(handler), live_text(handler, "stream")) == 0) return;
    printf("    takes   ");
    live_print(handler, "stream");
    putchar('\n');
}

/* Handlers are no nodes of the graph: they stand beside it, as boxes without edges. */
static void print_dot(live *l, hd_value text, hd_value handlers) {
    const char *dot = hd_value_as_text(text, ""), *end = strrchr(dot, '}');
    size_t length = end ? (size_t)(end - dot) : strlen(dot);
    print_plain_lines(stdout, hd_value_as_text(hd_string_n(l->pool, dot, length), ""));
    for (hd_iter it = hd_iter_of(handlers); hd_iter_next(&it);) {
        printf("  handler%zu [shape=cds, label=", it.index);
        write_json(stdout, hd_value_at(it.value, "handler"), HD_JSON_COMPACT);
        puts("];");
    }
    fputs(dot + length, stdout);
}

static int print_graph(picture *p, hd_value graph) {
    hd_value nodes = hd_value_at(graph, "nodes");
    hd_value handlers = hd_value_at(graph, "handlers");
    if (!index_nodes(p, nodes)) return cli_fail(p->l.c, CLI_INTERNAL, NULL, "out of memory");
    p->edges = hd_iter_of(hd_value_at(graph, "edges"));
    p->more = hd_iter_next(&p->edges);
    if (!hd_value_count(nodes)) puts("the program has no computations and no effects");
    for (hd_iter it = hd_iter_of(nodes); hd_iter_next(&it) && !output_broken() && !interrupted();)
        print_node(p, it.value);
    for (hd_iter it = hd_iter_of(handlers); hd_iter_next(&it);) print_handler(p->l.c, it.value);
    free(p->by_id);
    return interrupted() ? interrupted_status() : CLI_OK;
}

static int run(cli *c) {
    picture p = { 0 };
    hd_value answer, handlers = hd_array(), more = hd_object();
    bool dot = option_given(c, "dot");
    int failed = live_open(c, &p.l, c->operands[0]);
    if (!failed && dot) more = hd_object_set(p.l.pool, more, "as", hd_string(p.l.pool, "dot"));
    if (!failed) failed = live_ask(&p.l, "graph", more, &answer);
    if (!failed) handlers = handlers_of(&p.l);
    if (!failed && !dot) answer = hd_object_set(p.l.pool, answer, "handlers", handlers);
    if (!failed && dot) print_dot(&p.l, answer, handlers);
    else if (!failed && c->json) print_value(answer, HD_JSON_COMPACT);
    else if (!failed) failed = print_graph(&p, answer);
    live_close(&p.l);
    return failed;
}

const command command_graph = {
    .name = "graph",
    .section = "A running program",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "its nodes: what they read, write and feed",
    .text =
        "Asks the program that serves FILE for its graph and prints each node with its status "
        "and the cells it reads and writes, writers before readers; then its handlers. With "
        "--dot the same for Graphviz, with --json as one object of nodes, edges and handlers.\n\n"
        "A program serves once it has called hd_runtime_serve; exit status 8 if none does.",
    .options =
        (const cli_option[]){ { "dot", NULL, "for Graphviz" }, OPTIONS_LIVE, { NULL, NULL, NULL } },
    .examples =
        (const cli_example[]){
            { "heddle graph shop.db", "a list" },
            { "heddle graph shop.db --dot | dot -Tsvg > graph.svg", "a picture" },
            { "heddle graph shop.db --json | jq '.nodes[].name'", "the names" },
            { NULL, NULL } },
    .run = run,
};

/* main.c -- bench [--quick] [--cpu] [--json FILE] [GROUP...]
 *
 * One line per group below. A name on the command line selects the groups of that name and those
 * it is a prefix of: `bench signals` runs signals-core and signals, which are compared. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

/* X(name on the command line, function). Groups run in this order. The functions are weak, so
 * that a build with only some of the group files links as well. */
#define GROUPS(X)                                                                                  \
    X("value", bench_group_value)                                                                  \
    X("value", bench_group_json)                                                                   \
    X("expr", bench_group_expr)                                                                    \
    X("store", bench_group_store)                                                                  \
    X("store", bench_group_store_durable)                                                          \
    X("soak", bench_group_soak)                                                                    \
    X("signals-core", bench_group_signals_core)                                                    \
    X("signals", bench_group_signals)                                                              \
    X("scheduler", bench_group_scheduler)                                                          \
    X("events", bench_group_events)                                                                \
    X("resume", bench_group_resume)                                                                \
    X("pattern", bench_group_patterns)                                                             \
    X("workflow", bench_group_workflow)                                                            \
    X("workflow-step", bench_group_workflow_step)                                                  \
    X("workflow-cost", bench_group_workflow_cost)                                                  \
    X("workflow-scale", bench_group_workflow_scale)                                                \
    X("workflow-finished", bench_group_workflow_finished)                                          \
    X("workflow-idle", bench_group_workflow_idle)                                                  \
    X("workflow-worker", bench_group_worker)                                                       \
    X("postgres", bench_group_postgres)                                                            \
    X("python", bench_group_python)

#define DECLARE(name, function) __attribute__((weak)) void function(bench *b);
GROUPS(DECLARE)
#undef DECLARE

typedef struct group {
    const char *name;
    void (*run)(bench *b);
} group;

static const group groups[] = {
#define ROW(name, function) { name, function },
    GROUPS(ROW)
#undef ROW
};

enum { GROUP_COUNT = sizeof groups / sizeof groups[0] };

static bool selects(const char *word, const char *name) {
    size_t length = strlen(word);
    return strncmp(word, name, length) == 0 && (name[length] == '\0' || name[length] == '-');
}

static bool selected(const char *name, char **words, int count) {
    for (int i = 0; i < count; i++) {
        if (selects(words[i], name)) return true;
    }
    return count == 0;
}

static bool known(const char *word) {
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        if (groups[i].run && selects(word, groups[i].name)) return true;
    }
    return false;
}

static int usage(FILE *out, int status) {
    fprintf(out, "usage: bench [--quick] [--cpu] [--json FILE] [GROUP...]\n\n"
                 "  --quick      fewer repetitions\n"
                 "  --cpu        CPU time instead of wall time, on a machine that is busy\n"
                 "  --json FILE  where the rows go (default build/bench.json)\n\ngroups:");
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        bool seen = i > 0 && strcmp(groups[i].name, groups[i - 1].name) == 0;
        if (groups[i].run && !seen) fprintf(out, " %s", groups[i].name);
    }
    fprintf(out, "\n");
    return status;
}

int main(int argc, char **argv) {
    bench_options options = { .json_path = "build/bench.json" };
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--quick") == 0) options.quick = true;
        else if (strcmp(argv[at], "--cpu") == 0) options.cpu = true;
        else if (strcmp(argv[at], "--json") == 0 && at + 1 < argc) options.json_path = argv[++at];
        else if (strcmp(argv[at], "--help") == 0) return usage(stdout, 0);
        else return usage(stderr, 2);
    }
    for (int i = at; i < argc; i++) {
        if (known(argv[i])) continue;
        fprintf(stderr, "bench: there is no group '%s'\n", argv[i]);
        return usage(stderr, 2);
    }
    bench *b = bench_open(&options);
    for (size_t i = 0; b && i < GROUP_COUNT; i++) {
        if (groups[i].run && selected(groups[i].name, argv + at, argc - at)) groups[i].run(b);
    }
    return b ? bench_close(b) : 1;
}

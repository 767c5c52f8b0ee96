/* bench_python.c -- the Python package: what bench_python.py measures, row by row. The extension is the one that
 * `make python` put into the package; without it, or without Python, the group says so and is left out. */
#define _DEFAULT_SOURCE
#include "bench.h"

#include "peers.h"

#include <stdio.h>
#include <string.h>

#define PYTHON    "if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else echo python3; fi"
#define EXTENSION "bindings/python/heddle/_heddle.abi3.so"

typedef struct line {
    char name[BENCH_NAME], unit[BENCH_UNIT], bound[20], peer[40];
    double value, figure, peer_value;
} line;

static bool read_line(const char *text, line *out) {
    return sscanf(text, "%63s %lf %15s %19s %lf %39s %lf", out->name, &out->value, out->unit,
                  out->bound, &out->figure, out->peer, &out->peer_value) == 7;
}

static bench_figure figure_of(const line *l) {
    if (!strcmp(l->bound, "at_most")) return bench_at_most(l->figure);
    if (!strcmp(l->bound, "at_least")) return bench_at_least(l->figure);
    if (!strcmp(l->bound, "ratio_at_most")) return bench_ratio_at_most(l->figure);
    return (bench_figure){ 0 };
}

/* DBOS does the same ten steps, if it is there. */
static void add_dbos(bench *b, const line *l, bench_row *row) {
    static const char *const in_flight[] = { "1", "32" };
    for (int i = 0; i < 2; i++) {
        char name[60], work[60];
        snprintf(name, sizeof name, "python/workflows-%s-in-flight", in_flight[i]);
        snprintf(work, sizeof work, "ten-steps-%s-in-flight", in_flight[i]);
        if (!strcmp(name, l->name) && peer_rate(b, PEER_DBOS, work, &row->peer_value))
            row->peer = PEER_DBOS;
    }
}

static void report(bench *b, const line *l) {
    bench_row row = { .name = l->name,
                      .value = l->value,
                      .unit = l->unit,
                      .rate = strstr(l->unit, "/s") != NULL,
                      .must = figure_of(l) };
    if (strcmp(l->peer, "-")) {
        row.peer = l->peer;
        row.peer_value = l->peer_value;
    } else {
        add_dbos(b, l, &row);
    }
    bench_report(b, &row);
}

void bench_group_python(bench *b);
void bench_group_python(bench *b) {
    char command[300], text[300];
    FILE *there = fopen(EXTENSION, "rb");
    if (!there) {
        bench_note(b, "python: there is no extension (make python): left out");
        return;
    }
    fclose(there);
    snprintf(command, sizeof command,
             "PYTHONPATH=bindings/python $(" PYTHON ") bench/bench_python.py%s",
             bench_quick(b) ? " --quick" : "");
    FILE *in = popen(command, "r");
    while (in && fgets(text, sizeof text, in)) {
        line l;
        if (read_line(text, &l)) report(b, &l);
    }
    if (!in || pclose(in)) bench_wrong(b, "bench/bench_python.py has failed");
}

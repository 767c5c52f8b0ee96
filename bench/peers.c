/* peers.c -- runs the scripts of bench/peers and reads their lines. */
#define _GNU_SOURCE
#include "peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRAPHS_MAX = 64, FRAMEWORKS_MAX = 4, LINE = 512 };

typedef struct measured {
    char graph[BENCH_NAME];
    double ms;
    double runs; /* 0: not told */
    double rate; /* per second, of a peer that has no graphs; 0: it has */
} measured;

typedef struct framework {
    const char *name;
    measured results[GRAPHS_MAX];
    int count;
} framework;

/* What was measured in this run of the program. */
static framework frameworks[FRAMEWORKS_MAX];
static int framework_count;

/* Where the scripts are: beside the sources, from which the bench is run. DBOS has a folder of its own: its
 * packages are not those of the signals libraries. */
static void folder_of(const char *framework_name, char *out, size_t size) {
    const char *set = getenv("BENCH_PEERS");
    bool apart = strcmp(framework_name, PEER_DBOS) == 0;
    snprintf(out, size, "%s%s", set ? set : "bench/peers", apart ? "/dbos" : "");
}

static bool succeeds(const char *command) { return system(command) == 0; }

/* True when the frameworks are there, now or already. */
static bool install(bench *b, const char *folder) {
    char path[2 * LINE], command[2 * LINE];
    snprintf(path, sizeof path, "%s/node_modules/.package-lock.json", folder);
    if (access(path, R_OK) == 0) return true;
    snprintf(path, sizeof path, "%s/package-lock.json", folder);
    if (access(path, R_OK) != 0) {
        bench_note(b, "no peers: %s is not there (run from the root of the sources)", path);
        return false;
    }
    if (!succeeds("command -v node >/dev/null && command -v npm >/dev/null")) {
        bench_note(b, "no peers: node and npm are not installed");
        return false;
    }
    bench_note(b, "installing the peers with npm");
    snprintf(command, sizeof command,
             "cd '%s' && npm ci --silent --fetch-retries=1 --fetch-timeout=20000", folder);
    if (succeeds(command)) return true;
    bench_note(b, "no peers: npm could not install them (no network?)");
    return false;
}

/* The lines are our own: {"name":"broad","ms":12.5,"runs":3825000} or {"name":..,"error":".."}. */
static void take_line(bench *b, framework *f, const char *line) {
    measured m = { .runs = 0 };
    const char *ms = strstr(line, "\"ms\":"), *runs = strstr(line, "\"runs\":");
    const char *rate = strstr(line, "\"rate\":");
    if (sscanf(line, "{\"name\":\"%63[^\"]\"", m.graph) != 1) return;
    if (!ms && !rate) {
        bench_note(b, "%s: %.*s", f->name, (int)strcspn(line, "\n"), line);
        return;
    }
    if (ms) m.ms = strtod(ms + strlen("\"ms\":"), NULL);
    if (rate) m.rate = strtod(rate + strlen("\"rate\":"), NULL);
    if (runs) m.runs = strtod(runs + strlen("\"runs\":"), NULL);
    if (f->count < GRAPHS_MAX) f->results[f->count++] = m;
}

static void run_framework(bench *b, framework *f, const char *folder) {
    char command[2 * LINE], line[LINE];
    snprintf(command, sizeof command, "node --no-deprecation --expose-gc '%s/run.mjs' %s%s%s",
             folder, f->name, bench_quick(b) ? " --quick" : "", bench_cpu(b) ? " --cpu" : "");
    bench_note(b, "measuring %s", f->name);
    FILE *in = popen(command, "r");
    if (!in) return;
    while (fgets(line, sizeof line, in)) take_line(b, f, line);
    if (pclose(in) != 0) bench_note(b, "%s ended early", f->name);
}

static framework *find_framework(bench *b, const char *name) {
    for (int i = 0; i < framework_count; i++) {
        if (strcmp(frameworks[i].name, name) == 0) return &frameworks[i];
    }
    if (framework_count == FRAMEWORKS_MAX) return NULL;
    framework *f = &frameworks[framework_count++];
    char folder[LINE];
    f->name = name;
    folder_of(name, folder, sizeof folder);
    if (install(b, folder)) run_framework(b, f, folder);
    return f;
}

bool peer_value(bench *b, const char *name, const graph *g, double *value) {
    const framework *f = find_framework(b, name);
    for (int i = 0; f && i < f->count; i++) {
        const measured *m = &f->results[i];
        if (strcmp(m->graph, g->name) != 0) continue;
        if (g->unit == GRAPH_NS_PER_RUN && m->runs == 0) return false;
        *value = g->unit == GRAPH_MS ? m->ms : m->ms * 1e6 / m->runs;
        return true;
    }
    return false;
}

bool peer_rate(bench *b, const char *name, const char *work, double *per_s) {
    const framework *f = find_framework(b, name);
    for (int i = 0; f && i < f->count; i++) {
        if (strcmp(f->results[i].graph, work) != 0) continue;
        *per_s = f->results[i].rate;
        return *per_s > 0;
    }
    return false;
}

void peer_compare_dbos(bench *b, const char *group, const double times[3]) {
    static const int in_flight[3] = { 1, 8, 32 };
    for (int i = 0; i < 3; i++) {
        char work[48], ours[80];
        double theirs = 0, value = 0;
        snprintf(work, sizeof work, "ten-steps-%d-in-flight", in_flight[i]);
        snprintf(ours, sizeof ours, "%s/%s", group, work);
        if (!peer_rate(b, PEER_DBOS, work, &theirs)) return;
        if (!bench_value_of(b, ours, &value)) continue;
        snprintf(ours, sizeof ours, "%s/dbos-%d-in-flight", group, in_flight[i]);
        bench_report(b, &(bench_row){ .name = ours,
                                      .n = (uint64_t)in_flight[i],
                                      .value = value,
                                      .unit = "workflows/s",
                                      .rate = true,
                                      .peer = PEER_DBOS,
                                      .peer_value = theirs,
                                      .must = bench_ratio_at_most(1 / times[i]) });
    }
}

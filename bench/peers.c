/* peers.c -- runs bench/peers/run.mjs and reads its lines. */
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
} measured;

typedef struct framework {
    const char *name;
    measured results[GRAPHS_MAX];
    int count;
} framework;

/* What was measured in this run of the program. */
static framework frameworks[FRAMEWORKS_MAX];
static int framework_count;

/* Where the scripts are: beside the sources, from which the bench is run. */
static const char *folder(void) {
    const char *set = getenv("BENCH_PEERS");
    return set ? set : "bench/peers";
}

static bool succeeds(const char *command) { return system(command) == 0; }

/* True when the frameworks are there, now or already. */
static bool install(bench *b) {
    char path[LINE], command[2 * LINE];
    snprintf(path, sizeof path, "%s/node_modules/.package-lock.json", folder());
    if (access(path, R_OK) == 0) return true;
    snprintf(path, sizeof path, "%s/package-lock.json", folder());
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
             "cd '%s' && npm ci --silent --fetch-retries=1 --fetch-timeout=20000", folder());
    if (succeeds(command)) return true;
    bench_note(b, "no peers: npm could not install them (no network?)");
    return false;
}

/* The lines are our own: {"name":"broad","ms":12.5,"runs":3825000} or {"name":..,"error":".."}. */
static void take_line(bench *b, framework *f, const char *line) {
    measured m = { .runs = 0 };
    const char *ms = strstr(line, "\"ms\":"), *runs = strstr(line, "\"runs\":");
    if (sscanf(line, "{\"name\":\"%63[^\"]\"", m.graph) != 1) return;
    if (!ms) {
        bench_note(b, "%s: %.*s", f->name, (int)strcspn(line, "\n"), line);
        return;
    }
    m.ms = strtod(ms + strlen("\"ms\":"), NULL);
    if (runs) m.runs = strtod(runs + strlen("\"runs\":"), NULL);
    if (f->count < GRAPHS_MAX) f->results[f->count++] = m;
}

static void run_framework(bench *b, framework *f) {
    char command[LINE], line[LINE];
    snprintf(command, sizeof command, "node --expose-gc '%s/run.mjs' %s%s%s", folder(), f->name,
             bench_quick(b) ? " --quick" : "", bench_cpu(b) ? " --cpu" : "");
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
    f->name = name;
    if (install(b)) run_framework(b, f);
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

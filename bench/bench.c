/* bench.c -- rows in, a table and a JSON file out.
 *
 * The table is printed while the groups run; the file is written at the end, beside its final
 * name and renamed, so that a reader never sees half of it. */
#define _GNU_SOURCE
#include "bench.h"
#include "clock.h"
#include "machine.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A row as kept: its own copy of every string, and what follows from the measurements. */
typedef struct kept_row {
    char name[BENCH_NAME];
    char unit[BENCH_UNIT];
    char peer[BENCH_NAME];
    char whats[BENCH_COUNTS][BENCH_NAME];
    double counts[BENCH_COUNTS];
    int count_count;
    uint64_t n;
    double value;
    double peer_value;
    double ratio; /* NAN without a peer */
    bench_figure must;
    bench_figure aim;
    bool ok; /* the must is reached, or there is none */
} kept_row;

struct bench {
    bench_options options;
    kept_row *rows;
    size_t row_count;
    size_t row_capacity;
    size_t wrong_count;
    char group[BENCH_NAME]; /* of the last row printed: a new group starts with a heading */
};

/* ---- Keeping rows ------------------------------------------------------------------------ */

static void *must_have(void *block) {
    if (block) return block;
    fprintf(stderr, "bench: out of memory\n");
    exit(1);
}

static kept_row *add_row(bench *b) {
    if (b->row_count == b->row_capacity) {
        b->row_capacity = b->row_capacity ? 2 * b->row_capacity : 64;
        b->rows = must_have(realloc(b->rows, b->row_capacity * sizeof *b->rows));
    }
    kept_row *row = &b->rows[b->row_count++];
    memset(row, 0, sizeof *row);
    return row;
}

static double ratio_of(const bench_row *row) {
    if (!row->peer) return NAN;
    return row->rate ? row->peer_value / row->value : row->value / row->peer_value;
}

/* NAN compares false: a figure that could not be measured is not reached. */
static bool reached(bench_figure figure, double value, double ratio) {
    switch (figure.bound) {
    case BENCH_NO_BOUND: return true;
    case BENCH_VALUE_AT_MOST: return value <= figure.figure;
    case BENCH_VALUE_AT_LEAST: return value >= figure.figure;
    case BENCH_RATIO_AT_MOST: return ratio <= figure.figure;
    }
    return false;
}

static kept_row *keep(bench *b, const bench_row *row) {
    kept_row *kept = add_row(b);
    snprintf(kept->name, sizeof kept->name, "%s", row->name);
    snprintf(kept->unit, sizeof kept->unit, "%s", row->unit);
    snprintf(kept->peer, sizeof kept->peer, "%s", row->peer ? row->peer : "");
    for (int i = 0; i < BENCH_COUNTS && row->counts[i].what; i++) {
        snprintf(kept->whats[i], sizeof kept->whats[i], "%s", row->counts[i].what);
        kept->counts[i] = row->counts[i].count;
        kept->count_count = i + 1;
    }
    kept->n = row->n;
    kept->value = row->value;
    kept->peer_value = row->peer_value;
    kept->ratio = ratio_of(row);
    kept->must = row->must;
    kept->aim = row->aim;
    kept->ok = reached(row->must, row->value, kept->ratio);
    return kept;
}

static const kept_row *find_row(const bench *b, const char *name) {
    for (size_t i = b->row_count; i-- > 0;) {
        if (strcmp(b->rows[i].name, name) == 0) return &b->rows[i];
    }
    return NULL;
}

bool bench_value_of(const bench *b, const char *name, double *value) {
    const kept_row *row = find_row(b, name);
    if (row) *value = row->value;
    return row != NULL;
}

bool bench_ratio_of(const bench *b, const char *name, double *ratio) {
    const kept_row *row = find_row(b, name);
    if (!row || isnan(row->ratio)) return false;
    *ratio = row->ratio;
    return true;
}

/* ---- The table --------------------------------------------------------------------------- */

enum { NUMBER = 32 };

/* Digits grouped by thousands; `out` holds NUMBER characters. */
static void format_whole(double value, char *out) {
    char digits[NUMBER];
    int length = snprintf(digits, sizeof digits, "%.0f", fabs(value));
    size_t at = 0;
    if (value < 0) out[at++] = '-';
    for (int i = 0; i < length && at + 2 < NUMBER; i++) {
        if (i > 0 && (length - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

/* Three significant digits below a thousand, whole numbers above. */
static void format_number(double value, char *out) {
    double size = fabs(value);
    if (!isfinite(value)) snprintf(out, NUMBER, "-");
    else if (size >= 1e15) snprintf(out, NUMBER, "%.4g", value);
    else if (size >= 1000 || value == floor(value)) format_whole(value, out);
    else if (size >= 100) snprintf(out, NUMBER, "%.0f", value);
    else if (size >= 10) snprintf(out, NUMBER, "%.1f", value);
    else if (size >= 1) snprintf(out, NUMBER, "%.2f", value);
    else snprintf(out, NUMBER, "%.3g", value);
}

static const char *bound_sign(bench_bound bound) {
    return bound == BENCH_VALUE_AT_LEAST ? ">=" : "<=";
}

static void print_heading(bench *b, const char *name) {
    size_t length = strcspn(name, "/");
    if (strlen(b->group) == length && strncmp(b->group, name, length) == 0) return;
    snprintf(b->group, sizeof b->group, "%.*s", (int)length, name);
    printf("\n%-32s %10s %-9s %23s %7s  %s\n", b->group, "value", "unit", "peer", "ratio", "must");
}

static void print_counts(const kept_row *row) {
    for (int i = 0; i < row->count_count; i++) {
        char count[NUMBER];
        format_number(row->counts[i], count);
        printf("%s%s %s", i == 0 ? "    " : ", ", row->whats[i], count);
    }
    if (row->count_count) printf("\n");
}

static void print_row(bench *b, const kept_row *row) {
    char value[NUMBER], number[NUMBER], peer[BENCH_NAME + NUMBER] = "", ratio[NUMBER] = "";
    print_heading(b, row->name);
    format_number(row->value, value);
    if (row->peer[0]) {
        format_number(row->peer_value, number);
        snprintf(peer, sizeof peer, "%s %s", row->peer, number);
        snprintf(ratio, sizeof ratio, "%.3f", row->ratio);
    }
    printf("%-32s %10s %-9s %23s %7s", row->name, value, row->unit, peer, ratio);
    if (row->must.bound) {
        format_number(row->must.figure, number);
        printf("  %s %s %s", bound_sign(row->must.bound), number, row->ok ? "ok" : "MISSED");
    }
    printf("\n");
    print_counts(row);
    fflush(stdout);
}

void bench_report(bench *b, const bench_row *row) { print_row(b, keep(b, row)); }

void bench_wrong(bench *b, const char *fmt, ...) {
    va_list args;
    b->wrong_count++;
    printf("WRONG: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

void bench_note(bench *b, const char *fmt, ...) {
    va_list args;
    (void)b;
    printf("note: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

/* ---- The file ---------------------------------------------------------------------------- */

/* Names come from the groups: printable ASCII without controls. */
static void write_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_member(FILE *out, const char *key, double value) {
    fprintf(out, ", \"%s\": ", key);
    if (isfinite(value)) fprintf(out, "%.15g", value);
    else fprintf(out, "null");
}

static void write_counts(FILE *out, const kept_row *row) {
    if (row->count_count == 0) return;
    fprintf(out, ", \"counts\": {");
    for (int i = 0; i < row->count_count; i++) {
        fprintf(out, i ? ", " : " ");
        write_string(out, row->whats[i]);
        fprintf(out, ": %.15g", row->counts[i]);
    }
    fprintf(out, " }");
}

static void write_figures(FILE *out, const kept_row *row) {
    static const char *const bounds[] = { "", "value at most", "value at least", "ratio at most" };
    if (row->must.bound) {
        write_member(out, "must", row->must.figure);
        fprintf(out, ", \"bound\": \"%s\", \"ok\": %s", bounds[row->must.bound],
                row->ok ? "true" : "false");
    }
    if (row->aim.bound) write_member(out, "aim", row->aim.figure);
}

static void write_row(FILE *out, const kept_row *row) {
    fprintf(out, "  { \"name\": ");
    write_string(out, row->name);
    fprintf(out, ", \"n\": %llu", (unsigned long long)row->n);
    write_member(out, "value", row->value);
    fprintf(out, ", \"unit\": ");
    write_string(out, row->unit);
    if (row->peer[0]) {
        fprintf(out, ", \"peer\": ");
        write_string(out, row->peer);
        write_member(out, "peer_value", row->peer_value);
        write_member(out, "ratio", row->ratio);
    }
    write_figures(out, row);
    write_counts(out, row);
    fprintf(out, " }");
}

/* Makes the folders above `path` that are missing. */
static void make_parents(const char *path) {
    char folder[4096];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - path);
        if (length == 0 || length >= sizeof folder) continue;
        memcpy(folder, path, length);
        folder[length] = '\0';
        mkdir(folder, 0777);
    }
}

/* Where, when and how. */
static void write_about(FILE *out, const bench *b) {
    char machine[512], date[32] = "";
    time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day)) strftime(date, sizeof date, "%Y-%m-%d", &day);
    machine_describe(machine, sizeof machine);
    fprintf(out, "{ \"machine\": ");
    write_string(out, machine);
    fprintf(out, ", \"date\": ");
    write_string(out, date);
    fprintf(out, ", \"quick\": %s, \"cpu_time\": %s,\n", b->options.quick ? "true" : "false",
            b->options.cpu ? "true" : "false");
}

static bool write_file(const bench *b, const char *path) {
    char temporary[4096];
    make_parents(path);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *out = fopen(temporary, "w");
    if (!out) return false;
    write_about(out, b);
    fprintf(out, "\"rows\": [\n");
    for (size_t i = 0; i < b->row_count; i++) {
        write_row(out, &b->rows[i]);
        fprintf(out, i + 1 < b->row_count ? ",\n" : "\n");
    }
    fprintf(out, "] }\n");
    bool written = !ferror(out);
    written = fclose(out) == 0 && written;
    return written && rename(temporary, path) == 0;
}

/* ---- The run ----------------------------------------------------------------------------- */

bench *bench_open(const bench_options *options) {
    bench *b = calloc(1, sizeof *b);
    if (b) b->options = *options;
    clock_use_cpu(options->cpu);
    return b;
}

static void print_missed(const kept_row *row) {
    char measured[NUMBER], figure[NUMBER];
    bool by_ratio = row->must.bound == BENCH_RATIO_AT_MOST;
    format_number(by_ratio ? row->ratio : row->value, measured);
    format_number(row->must.figure, figure);
    printf("missed: %s is %s%s%s%s%s, must be %s %s\n", row->name, measured, by_ratio ? "" : " ",
           by_ratio ? "" : row->unit, by_ratio ? " of " : "", by_ratio ? row->peer : "",
           bound_sign(row->must.bound), figure);
}

static void print_summary(const bench *b) {
    size_t figures = 0, reached_count = 0;
    printf("\n");
    for (size_t i = 0; i < b->row_count; i++) {
        const kept_row *row = &b->rows[i];
        if (!row->must.bound) continue;
        figures++;
        reached_count += row->ok;
        if (!row->ok) print_missed(row);
    }
    printf("%zu rows, %zu of %zu figures reached", b->row_count, reached_count, figures);
    if (b->wrong_count) printf(", %zu WRONG RESULTS", b->wrong_count);
    printf("\n");
}

int bench_close(bench *b) {
    int status = b->wrong_count ? 1 : 0;
    print_summary(b);
    if (b->options.json_path && !write_file(b, b->options.json_path)) {
        fprintf(stderr, "bench: cannot write %s: %s\n", b->options.json_path, strerror(errno));
        status = 1;
    }
    free(b->rows);
    free(b);
    return status;
}

/* ---- Timing ------------------------------------------------------------------------------ */

bool bench_quick(const bench *b) { return b->options.quick; }
bool bench_cpu(const bench *b) { return b->options.cpu; }

int bench_repeats(const bench *b, int repeats) {
    int fewer = b->options.quick ? (repeats + 4) / 5 : repeats;
    return fewer < 1 ? 1 : fewer;
}

uint64_t bench_now_ns(void) { return clock_now_ns(); }
uint64_t bench_wall_ns(void) { return clock_wall_ns(); }

double bench_best_ns(const bench *b, int repeats, void (*run)(void *ctx), void *ctx) {
    uint64_t best = UINT64_MAX;
    for (int i = bench_repeats(b, repeats); i > 0; i--) {
        uint64_t start = bench_now_ns();
        run(ctx);
        uint64_t took = bench_now_ns() - start;
        if (took < best) best = took;
    }
    return (double)best;
}

double bench_ns_per_op(const bench *b, void (*run)(void *ctx, uint64_t n), void *ctx) {
    const uint64_t enough_ns = b->options.quick ? 2000000 : 20000000;
    uint64_t n = 1, took = 0;
    for (;; n *= 2) {
        uint64_t start = bench_now_ns();
        run(ctx, n);
        took = bench_now_ns() - start;
        if (took >= enough_ns || n >= (uint64_t)1 << 40) break;
    }
    uint64_t best = took;
    for (int i = bench_repeats(b, 5); i > 1; i--) {
        uint64_t start = bench_now_ns();
        run(ctx, n);
        took = bench_now_ns() - start;
        if (took < best) best = took;
    }
    return (double)best / (double)n;
}

/* ---- Allocations ------------------------------------------------------------------------- */

static void *counting_alloc(void *block, size_t old_size, size_t size, void *ctx) {
    bench_allocs *counts = ctx;
    void *moved = counts->inner.alloc(block, old_size, size, counts->inner.ctx);
    if (size == 0) {
        counts->frees += block != NULL;
        counts->live_bytes -= block ? old_size : 0;
        return moved;
    }
    counts->calls++;
    if (!moved) return NULL;
    counts->live_bytes += size - (block ? old_size : 0);
    if (counts->live_bytes > counts->peak_bytes) counts->peak_bytes = counts->live_bytes;
    return moved;
}

static uint64_t counting_monotonic(void *ctx) {
    bench_allocs *counts = ctx;
    return counts->inner.monotonic_ns(counts->inner.ctx);
}

static uint64_t counting_wall(void *ctx) {
    bench_allocs *counts = ctx;
    return counts->inner.wall_ms(counts->inner.ctx);
}

static void counting_random(void *out, size_t size, void *ctx) {
    bench_allocs *counts = ctx;
    counts->inner.random(out, size, counts->inner.ctx);
}

static void counting_log(hd_log_level level, const char *line, void *ctx) {
    bench_allocs *counts = ctx;
    counts->inner.log(level, line, counts->inner.ctx);
}

hd_env bench_count_allocs(hd_env inner, bench_allocs *counts) {
    *counts = (bench_allocs){ .inner = inner };
    return (hd_env){ .ctx = counts,
                     .alloc = counting_alloc,
                     .monotonic_ns = counting_monotonic,
                     .wall_ms = counting_wall,
                     .random = counting_random,
                     .log = counting_log };
}

uint64_t bench_resident_bytes(void) {
    unsigned long long pages = 0, resident = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    if (!in) return 0;
    int fields = fscanf(in, "%llu %llu", &pages, &resident);
    fclose(in);
    return fields == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

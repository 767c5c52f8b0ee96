/* bench.c -- a few figures of this machine and this file system, in a few seconds.
 *
 * Each figure repeats one step for as long as it is given and counts. Units are what a program sees:
 * "commits on disk" have been synced. Not a substitute for `make bench`, which measures with care. */
#define _GNU_SOURCE
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/record.h"
#include "cli/signals.h"
#include <heddle/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 256, FILE_MAX_ = 4096 };

typedef struct bench {
    cli *c;
    uint64_t for_ns; /* each figure */
    char directory[FILE_MAX_], file[FILE_MAX_ + 16];
    hd_runtime *rt;
    hd_pool *pool;
    hd_cell in, out, stream;
    uint64_t n; /* counts up: every write changes something */
    double sink;
} bench;

/* One repetition; *done gets how many things it did. */
typedef hd_status (*step_fn)(bench *b, uint64_t *done);

typedef struct figure {
    const char *name, *unit, *what;
    bool in_file;
    hd_status (*prepare)(bench *b); /* may be NULL */
    step_fn step;
} figure;

/* ---- Steps --------------------------------------------------------------------------------- */

static hd_status write_next(bench *b) {
    return hd_write(b->rt, b->in, hd_int(NULL, (int64_t)(++b->n & 0xFFFFFFFF)));
}

static hd_status step_commits(bench *b, uint64_t *done) {
    hd_status status = HD_OK;
    for (*done = 0; *done < BATCH && !status; ++*done) status = write_next(b);
    return status ? status : hd_runtime_settle(b->rt);
}

static hd_status step_reads(bench *b, uint64_t *done) {
    hd_tx *tx;
    hd_status status = hd_tx_begin_read(b->rt, &tx);
    if (status) return status;
    for (*done = 0; *done < 16 * BATCH; ++*done)
        b->sink += hd_value_as_double(hd_tx_get(tx, b->in), 0);
    hd_tx_abort(tx);
    return HD_OK;
}

static hd_status double_it(hd_tx *tx, void *ctx) {
    const bench *b = ctx;
    return hd_tx_set_double(tx, b->out, 2 * hd_value_as_double(hd_tx_get(tx, b->in), 0));
}

static void see(hd_value v, void *ctx) { ((bench *)ctx)->sink += hd_value_as_double(v, 0); }

static hd_status prepare_graph(bench *b) {
    if (!hd_compute(b->rt, "double", double_it, b, b->out).id || !hd_sink(b->rt, b->out, see, b).id)
        return HD_NOMEM;
    return hd_runtime_settle(b->rt);
}

static hd_status step_waves(bench *b, uint64_t *done) {
    hd_status status = HD_OK;
    for (*done = 0; *done < BATCH && !status; ++*done) {
        status = write_next(b);
        if (!status) status = hd_runtime_settle(b->rt);
    }
    return status;
}

static hd_status step_synced(bench *b, uint64_t *done) {
    *done = 1;
    hd_status status = write_next(b);
    return status ? status : hd_runtime_sync(b->rt);
}

static hd_status step_group(bench *b, uint64_t *done) {
    hd_status status = HD_OK;
    for (*done = 0; *done < BATCH && !status; ++*done) status = write_next(b);
    return status ? status : hd_runtime_sync(b->rt);
}

static hd_status take_event(hd_tx *tx, const hd_event *event, void *ctx) {
    const bench *b = ctx;
    return hd_tx_increment(tx, b->out, event->payload);
}

static hd_status prepare_events(bench *b) {
    hd_handler handler;
    hd_handler_spec spec = {
        .stream = b->stream, .fn = take_event, .ctx = b, .reads_nothing = true
    };
    return hd_handler_register(b->rt, &spec, &handler);
}

static hd_status step_events(bench *b, uint64_t *done) {
    hd_status status = HD_OK;
    for (*done = 0; *done < BATCH && !status; ++*done)
        status = hd_event_send(b->rt, b->stream, hd_int(NULL, 1), NULL);
    if (!status) status = hd_runtime_settle(b->rt);
    return status ? status : hd_runtime_sync(b->rt);
}

static const figure figures[] = {
    { "memory-reads", "reads/s", "reads of a cell in memory", false, write_next, step_reads },
    { "memory-commits", "commits/s", "one-cell transactions in memory", false, NULL, step_commits },
    { "memory-waves", "waves/s", "a write, a computation, an effect", false, prepare_graph,
      step_waves },
    { "file-commits", "commits/s", "commits on disk, each waited for", true, NULL, step_synced },
    { "file-group", "commits/s", "commits on disk, 256 waited for at once", true, NULL,
      step_group },
    { "file-events", "events/s", "events handled once, receipts on disk", true, prepare_events,
      step_events },
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* ---- Measuring ----------------------------------------------------------------------------- */

static hd_status begin(bench *b, const figure *f, hd_error *error) {
    hd_status status = hd_open(f->in_file ? b->file : NULL, NULL, &b->rt, error);
    if (!status) status = hd_pool_open(hd_runtime_heap(b->rt), &b->pool);
    if (status) return status;
    b->in = hd_cell_at(b->rt, "bench/in");
    b->out = hd_cell_at(b->rt, "bench/out");
    b->stream = hd_cell_at(b->rt, "bench/stream");
    return HD_OK;
}

static void end(bench *b) {
    if (b->pool) hd_pool_close(b->pool);
    if (b->rt) hd_close(b->rt);
    b->pool = NULL;
    b->rt = NULL;
}

/* How many things a second the figure's step does. The first step warms up and is not counted. */
static hd_status measure(bench *b, const figure *f, double *rate) {
    uint64_t done = 0, all = 0;
    hd_status status = f->prepare ? f->prepare(b) : HD_OK;
    if (!status) status = f->step(b, &done);
    uint64_t began = clock_ns(), until = began + b->for_ns, now = began;
    while (!status && now < until && !interrupted()) {
        status = f->step(b, &done);
        all += done;
        now = clock_ns();
    }
    *rate = now > began ? (double)all * 1e9 / (double)(now - began) : 0;
    return status;
}

static void print_figure(const cli *c, const figure *f, double rate) {
    if (!c->json) {
        printf("  %-42s %12.0f %s\n", f->what, rate, f->unit);
        fflush(stdout);
        return;
    }
    record r = record_to(stdout);
    record_open(&r, NULL, '{');
    record_text(&r, "figure", f->name);
    record_text(&r, "what", f->what);
    record_number(&r, "rate", (uint64_t)rate);
    record_text(&r, "unit", f->unit);
    record_close(&r, '}');
    record_end(&r);
}

static int bench_one(bench *b, const figure *f) {
    hd_error error = { 0 };
    double rate = 0;
    progress(b->c, "measuring: %s", f->what);
    hd_status status = begin(b, f, &error);
    if (!status) status = measure(b, f, &rate);
    const char *words = *error.message ? error.message : hd_status_text(status);
    int failed = status ? cli_fail(b->c, exit_of(status), NULL, "%s: %s", f->what, words) : CLI_OK;
    end(b);
    progress(b->c, "%s", "");
    if (failed) return failed;
    if (interrupted()) return interrupted_status();
    print_figure(b->c, f, rate);
    return CLI_OK;
}

/* ---- Whole --------------------------------------------------------------------------------- */

static int make_place(bench *b) {
    const char *in = b->c->operand_count ? b->c->operands[0] : ".";
    int length = snprintf(b->directory, sizeof b->directory, "%s/heddle-bench-XXXXXX", in);
    if (length < 0 || (size_t)length >= sizeof b->directory || !mkdtemp(b->directory))
        return cli_fail(b->c, CLI_FILE, "Name a directory that can be written.",
                        "%s: nothing can be made there", in);
    snprintf(b->file, sizeof b->file, "%s/bench.db", b->directory);
    return CLI_OK;
}

static void remove_place(const bench *b) {
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char name[FILE_MAX_ + 32];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", b->file, suffixes[i]);
        unlink(name);
    }
    rmdir(b->directory);
}

static int run(cli *c) {
    bench b = { .c = c };
    uint64_t seconds = 1;
    int failed = option_number(c, "seconds", &seconds);
    if (!failed && (seconds < 1 || seconds > 600))
        failed = cli_fail(c, CLI_USAGE, NULL, "--seconds is a number from 1 to 600");
    if (!failed) failed = make_place(&b);
    if (failed) return failed;
    b.for_ns = seconds * 1000000000;
    if (!c->json) printf("heddle %s, %" PRIu64 " s each\n\n", hd_version(), seconds);
    for (size_t i = 0; i < FIGURES && !failed; i++) failed = bench_one(&b, &figures[i]);
    remove_place(&b);
    return failed;
}

const command command_bench = {
    .name = "bench",
    .section = "heddle itself",
    .operands = "[DIRECTORY]",
    .most = 1,
    .summary = "how fast it is here: a few figures in a few seconds",
    .text = "Measures reads, transactions and computations in memory, and commits and events on "
            "disk, on a fresh store in DIRECTORY (default: the present one), which is removed "
            "again. \"On disk\" means synced: these figures are those of the file system. heddle "
            "doctor tells whether it can be believed.",
    .options = (const cli_option[]){ { "seconds", "N",
                                       "how long each figure is measured "
                                       "(default 1)" },
                                     { NULL, NULL, NULL } },
    .examples = (const cli_example[]){ { "heddle bench", "here" },
                                       { "heddle bench /srv --seconds 5", "another disk, longer" },
                                       { NULL, NULL } },
    .run = run,
};

/* server_load.c -- a program for the crash tests of stores on a server: commits that are counted.
 *
 *     server_load ADDRESS NAME COUNT IN_FLIGHT [SPACE [LONG]]
 *
 * Commit i makes the document SPACE/NAME-i (default main), which must not exist, and adds one to SPACE/total. Prints
 * "ready", then "ok I" when commit I has been acknowledged, and "refused I STATUS"; at the end "done". While the server
 * is away it waits. With LONG, every so many documents is a text of up to 2 MiB, so that some rows of the log are
 * longer than a message that the server is sent without waiting (1 MiB). A commit that is stored twice would make the
 * total wrong; one that is refused although it is stored is told HD_EXISTS. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct load {
    hd_runtime *rt;
    const char *name, *space;
    int count, begun, decided, in_flight;
    int long_every; /* 0: no document is long */
} load;

typedef struct told {
    load *l;
    int number;
} told;

static void verdict(hd_status status, void *ctx) {
    told *t = ctx;
    t->l->decided++;
    if (status) printf("refused %d %s\n", t->number, hd_status_name(status));
    else printf("ok %d\n", t->number);
    free(t);
}

static hd_status set_value(const load *l, hd_tx *tx, hd_cell cell, int i) {
    if (!l->long_every || i % l->long_every) return hd_tx_set_int(tx, cell, i);
    size_t length = (size_t)(1 + i / l->long_every % 4) << 19;
    char *text = malloc(length);
    if (!text) return HD_NOMEM;
    memset(text, 'a' + i % 26, length);
    hd_status status = hd_tx_set(tx, cell, hd_string_n(hd_tx_pool(tx), text, length));
    free(text);
    return status;
}

static hd_status add_one(load *l, int i) {
    char name[64], total[64];
    hd_tx *tx;
    told *t = malloc(sizeof *t);
    snprintf(name, sizeof name, "%s/%s-%d", l->space, l->name, i);
    snprintf(total, sizeof total, "%s/total", l->space);
    if (!t || hd_tx_begin(l->rt, &tx)) return HD_NOMEM;
    *t = (told){ l, i };
    hd_cell cell = hd_cell_at(l->rt, name);
    hd_status status = hd_tx_require_absent(tx, cell);
    if (!status) status = set_value(l, tx, cell, i);
    if (!status) status = hd_tx_increment(tx, hd_cell_at(l->rt, total), hd_int(hd_tx_pool(tx), 1));
    if (!status) return hd_tx_commit(tx, verdict, t);
    hd_tx_abort(tx);
    free(t);
    return status;
}

static hd_status run(load *l) {
    while (l->decided < l->count) {
        hd_status status = HD_OK;
        while (!status && l->begun < l->count && l->begun - l->decided < l->in_flight) {
            status = add_one(l, l->begun);
            if (!status) l->begun++;
        }
        /* A document that cannot be read while the server is away is read later. */
        bool failed = status != HD_OK;
        if (failed && hd_status_class(status) != HD_CLASS_TRANSIENT) return status;
        status = hd_runtime_pump(l->rt);
        bool room = l->begun < l->count && l->begun - l->decided < l->in_flight;
        if (status == HD_PENDING || (!status && !failed && room)) continue;
        if (status) return status;
        const hd_env *env = hd_runtime_env(l->rt);
        uint64_t deadline = hd_runtime_deadline(l->rt);
        uint64_t soon = env->monotonic_ns(env->ctx) + 50000000;
        env->wait(hd_runtime_fd(l->rt), deadline < soon ? deadline : soon, env->ctx);
    }
    return HD_OK;
}

int main(int argc, char **argv) {
    hd_error error;
    if (argc < 5) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    load l = { .name = argv[2],
               .space = argc > 5 ? argv[5] : "main",
               .count = atoi(argv[3]),
               .in_flight = atoi(argv[4]),
               .long_every = argc > 6 ? atoi(argv[6]) : 0 };
    if (hd_open(argv[1], NULL, &l.rt, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    puts("ready");
    hd_status status = run(&l);
    if (status)
        fprintf(stderr, "%s: %s\n", hd_status_name(status), hd_runtime_error(l.rt)->message);
    hd_close(l.rt);
    if (status) return 1;
    puts("done");
    return 0;
}

/* derive_crew.c -- a program with a computation that other programs have, too, for tests/server/leases.
 *
 *     derive_crew STORE [MS [each]]   until it is killed, or told to end: computes main/double from main/n, which takes
 *                                     MS milliseconds; prints "ready", "run N" for each run, and "pair N D" for each
 *                                     run of an effect that reads both
 *     derive_crew STORE write         for each number on standard input: stores it as main/n, and prints "wrote N"
 *
 * With `each` it runs its computations itself (HD_DERIVE_EACH). */
#include <heddle.h>
#include <heddle/scheduler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hd_runtime *rt;
static hd_cell n, twice;
static uint64_t run_ms;

static int64_t number_of(hd_value v) { return hd_value_as_int(v, 0); }

/* Keeps the processor busy, as a computation that takes long does. */
static void work(void) {
    const hd_env *env = hd_runtime_env(rt);
    uint64_t end = env->monotonic_ns(env->ctx) + run_ms * UINT64_C(1000000);
    while (env->monotonic_ns(env->ctx) < end) continue;
}

static hd_status compute(hd_tx *tx, void *ctx) {
    (void)ctx;
    int64_t number = number_of(hd_tx_get(tx, n));
    work();
    printf("run %lld\n", (long long)number);
    fflush(stdout);
    return hd_tx_set(tx, twice, hd_int(hd_tx_pool(tx), 2 * number));
}

static hd_status pair(hd_tx *tx, void *ctx) {
    (void)ctx;
    hd_value a = hd_tx_get(tx, n), b = hd_tx_get(tx, twice);
    if (hd_value_status(a) || hd_value_status(b)) return HD_OK; /* the run is made again */
    printf("pair %lld %lld\n", (long long)number_of(a), (long long)number_of(b));
    fflush(stdout);
    return HD_OK;
}

static hd_status write_all(void) {
    char line[40];
    hd_status status = HD_OK;
    while (!status && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        status = hd_write_json(rt, n, line);
        if (!status) status = hd_runtime_sync(rt);
        printf("wrote %s\n", line);
        fflush(stdout);
    }
    return status;
}

static hd_status serve(void) {
    hd_node_spec spec = { .name = "double", .fn = compute, .output = twice, .version = "1" };
    hd_status status = hd_node_register(rt, &spec, NULL);
    hd_effect(rt, "pair", pair, NULL);
    return status ? status : hd_runtime_run(rt);
}

int main(int argc, char **argv) {
    hd_error error = { 0 };
    if (argc < 2) return 2;
    bool writes = argc > 2 && !strcmp(argv[2], "write");
    run_ms = argc > 2 && !writes ? (uint64_t)atoll(argv[2]) : 0;
    hd_options options = { .signals = true };
    if (argc > 3) options.derive = HD_DERIVE_EACH;
    if (hd_open(argv[1], &options, &rt, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    n = hd_cell_at(rt, "main/n");
    twice = hd_cell_at(rt, "main/double");
    puts("ready");
    fflush(stdout);
    hd_status status = writes ? write_all() : serve();
    if (status) fprintf(stderr, "%s\n", hd_runtime_error(rt)->message);
    return hd_close(rt) != HD_OK || status;
}

/* server_silence.c -- a program for tests/server/crash: opens a store, waits for a line, and says how a commit, a read
 * of a document that it does not know, and hd_close end. */
#include <heddle.h>
#include <stdio.h>

static void on_verdict(hd_status status, void *ctx) {
    (void)ctx;
    printf("verdict %s\n", hd_status_name(status));
}

int main(int argc, char **argv) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_tx *tx;
    hd_error error = { 0 };
    char line[64];
    if (argc != 2 || hd_open(argv[1], NULL, &rt, &error)) {
        fprintf(stderr, "%s\n", argc == 2 ? error.message : "usage: server_silence STORE");
        return 1;
    }
    hd_cell known = hd_cell_at(rt, "main/known");
    if (hd_pool_open(hd_runtime_heap(rt), &pool) || hd_write_json(rt, known, "1") ||
        hd_runtime_sync(rt))
        return 1;
    printf("open\n");
    if (fflush(stdout) || !fgets(line, sizeof line, stdin)) return 1;
    if (hd_tx_begin(rt, &tx) || hd_tx_set_int(tx, known, 2) || hd_tx_commit(tx, on_verdict, NULL))
        return 1;
    hd_runtime_pump(rt); /* the writer's thread begins */
    hd_value v = hd_read(rt, pool, hd_cell_at(rt, "main/unknown"));
    printf("read %s\n", hd_status_name(hd_value_status(v)));
    hd_pool_close(pool);
    printf("closed %s\n", hd_status_name(hd_close(rt)));
    return 0;
}

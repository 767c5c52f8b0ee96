/* odd_names.c -- a program for the checks of names.sh: all of its names have control characters.
 *
 *     odd_names FILE      prints "ready" when it can be asked */
#include <heddle.h>
#include <stdio.h>
#include <string.h>

/* ESC, and U+009B, which some terminals take for ESC and '['. */
#define RED "\033[31m\xC2\x9B"

typedef struct odd {
    hd_cell in, out, unseen;
} odd;

static hd_status copy(hd_tx *tx, void *ctx) {
    const odd *o = ctx;
    return hd_tx_set(tx, o->out, hd_tx_get(tx, o->in));
}

static hd_status copy_unseen(hd_tx *tx, void *ctx) {
    const odd *o = ctx;
    return hd_tx_set(tx, o->unseen, hd_tx_get(tx, o->in));
}

static hd_status complain(hd_tx *tx, void *ctx) {
    const odd *o = ctx;
    hd_status status = hd_value_status(hd_tx_get(tx, o->out));
    return status ? status : hd_tx_fail(tx, HD_FAILED, "a message" RED);
}

static void ignore(const hd_failure *failure, void *ctx) { (void)ctx, (void)failure; }

int main(int argc, char **argv) {
    hd_runtime *rt;
    hd_error error;
    if (argc < 2 || hd_open(argv[1], NULL, &rt, &error)) return 1;
    odd o = { .in = hd_cell_at(rt, "main/in\xC2\x9B#/k" RED),
              .out = hd_cell_at(rt, "main/out#/k" RED),
              .unseen = hd_cell_at(rt, "main/unseen#/k" RED) };
    hd_runtime_on_error(rt, ignore, NULL);
    bool built = hd_compute(rt, "copy" RED, copy, &o, o.out).id &&
                 hd_compute(rt, "unseen" RED, copy_unseen, &o, o.unseen).id &&
                 hd_effect(rt, "complain" RED, complain, &o).id &&
                 !hd_write_json(rt, o.in, "\"value\\u001b\xC2\x9B\"");
    const char *path = strstr(argv[1], "://") ? "live.sock" : NULL;
    hd_serve_options options = { .socket = path, .name = "odd" RED };
    if (!built || hd_runtime_serve(rt, &options)) return 1;
    puts("ready");
    fflush(stdout);
    return hd_runtime_run(rt) != HD_OK;
}

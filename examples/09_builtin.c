/* 09_builtin.c -- a primitive of your own: `clock_ticks`, a cell that counts seconds.
 *
 * The primitives of heddle/pattern.h are written on hd_build_node, hd_build_cell and
 * hd_build_on_stop, and so can others be. This one has a source of its own outside (here a loop in
 * main that calls tick), a document that it writes, and a node that turns it into a text. */
#include <heddle.h>

#include <stdio.h>
#include <stdlib.h>

struct ticker {
    hd_runtime *rt;
    hd_cell seconds; /* written from outside, as a response or a message would be */
    hd_cell text;
    int64_t now;
};

static struct ticker *running; /* whom the program tells that a second has passed */

static void tick(void) {
    if (running) hd_write(running->rt, running->seconds, hd_int(NULL, ++running->now));
}

static hd_status print_time(hd_tx *tx, void *ctx) {
    const struct ticker *t = ctx;
    int64_t s = hd_value_as_int(hd_tx_get(tx, t->seconds), 0);
    hd_value text =
        hd_string_f(hd_tx_pool(tx), "%02lld:%02lld", (long long)s / 60, (long long)s % 60);
    return hd_tx_set(tx, t->text, text);
}

static void stop(void *ctx) {
    printf("the clock stops\n");
    running = NULL;
    free(ctx);
}

/* Reads like the built-in ones: a build, a name, a cell in return. */
static hd_cell clock_ticks(hd_build *b, const char *name) {
    char seconds[64];
    struct ticker *t = calloc(1, sizeof *t);
    if (!t) return hd_build_fail(b, HD_NOMEM, "%s: no memory", name);
    snprintf(seconds, sizeof seconds, "%s.seconds", name);
    t->rt = hd_build_runtime(b);
    t->seconds = hd_build_cell(b, seconds);
    t->text = hd_build_cell(b, name);
    running = t;
    hd_build_on_stop(b, stop, t); /* from here on t is stop's to free, if need be at once */
    return hd_build_node(b, &(hd_node_spec){ .name = name,
                                             .fn = print_time,
                                             .ctx = t,
                                             .output = t->text,
                                             .reads = &t->seconds,
                                             .read_count = 1 });
}

static hd_cell wall(hd_build *b, void *ctx) {
    (void)ctx;
    return clock_ticks(b, "clock");
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("%s\n", hd_value_as_text(v, "?"));
}

int main(void) {
    hd_runtime *rt;
    hd_piece piece;
    if (hd_open(NULL, NULL, &rt, NULL)) return 1;
    hd_pattern_register(rt, "wall", "1", wall, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "w", .pattern = "wall" }, &piece, NULL))
        return 1;
    hd_node looking = hd_sink(rt, hd_piece_result(rt, piece), show, NULL);
    hd_runtime_settle(rt);
    for (int i = 0; i < 61; i++) {
        tick();
        if (i >= 59) hd_runtime_settle(rt); /* what nobody looked at in between was not computed */
    }
    hd_node_unregister(rt, looking);
    hd_piece_stop(rt, piece);
    return hd_close(rt) != HD_OK;
}

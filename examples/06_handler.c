/* 06_handler.c -- state, a stream and its handler: an event changes a cell, and what reads the cell follows. */
#include <heddle.h>

#include <stdio.h>

struct counter {
    hd_cell count;
};

/* The handler reads `count` as of all events before it, and each event counts once. */
static hd_status add(hd_tx *tx, const hd_event *event, void *ctx) {
    const struct counter *c = ctx;
    int64_t now = hd_value_as_int(hd_tx_get(tx, c->count), 0);
    return hd_tx_set_int(tx, c->count, now + hd_value_as_int(event->payload, 1));
}

static hd_value is_even(hd_tx *tx, hd_value n, void *ctx) {
    (void)tx, (void)ctx;
    return hd_bool(hd_value_as_int(n, 0) % 2 == 0);
}

static void show(hd_value v, void *ctx) {
    printf("%s%s\n", (const char *)ctx, hd_value_as_bool(v, false) ? "even" : "odd");
}

static hd_cell count_up(hd_build *b, void *ctx) {
    (void)ctx;
    struct counter *c = hd_build_memory(b, "counter", sizeof *c); /* this piece's own */
    if (!c) return (hd_cell){ 0 };
    c->count = hd_build_state(b, "count", hd_int(NULL, 0));
    hd_build_handler(b, hd_build_stream(b, "add"), add, c, &c->count, 1);
    hd_cell even = hd_build_derive(b, "even", c->count, is_even, NULL);
    hd_build_sink(b, "show", even, show, "the count is ");
    return c->count;
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_piece piece;
    if (hd_open("counter.db", NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool))
        return 1;
    hd_pattern_register(rt, "count_up", "1", count_up, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "c", .pattern = "count_up" }, &piece, NULL))
        return 1;
    hd_runtime_settle(rt);

    hd_cell stream = hd_piece_cell(rt, piece, "add");
    int64_t steps[] = { 1, 2, 2 };
    for (int i = 0; i < 3; i++) {
        hd_event_send(rt, stream, hd_int(NULL, steps[i]), NULL);
        hd_runtime_settle(rt);
    }
    hd_value count = hd_pull_now(rt, pool, hd_piece_result(rt, piece)); /* looks once */
    printf("pulled: %lld\n", (long long)hd_value_as_int(count, -1));
    hd_pool_close(pool);
    return hd_close(rt) != HD_OK;
}

/* 08_pieces.c -- pieces are documents: launched by handlers, listed, stopped, opened again. */
#include <heddle.h>

#include <stdio.h>

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("a note says: %s\n", hd_value_as_text(v, "?"));
}

static hd_cell note(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell text = hd_build_argument(b, "text", hd_null());
    hd_build_sink(b, "show", text, show, NULL);
    return text;
}

/* The piece is part of the handler's transaction: if the transaction fails, there is no piece. Its id is made of the
 * event's, so a second delivery of the event is the same piece. */
static hd_status on_note(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    hd_piece piece;
    hd_piece_spec spec = { .pattern = "note",
                           .arguments =
                               hd_object_set(hd_tx_pool(tx), hd_object(), "text", event->payload) };
    return hd_tx_launch_piece(tx, &spec, &piece);
}

static bool count(const hd_listing *entry, void *ctx) {
    (void)entry;
    ++*(int *)ctx;
    return true;
}

struct found {
    hd_piece piece;
    char id[HD_ID_SIZE];
};

static bool describe(const hd_piece_info *info, void *ctx) {
    struct found *last = ctx;
    last->piece = info->piece;
    snprintf(last->id, sizeof last->id, "%s", info->id); /* the texts go with the piece */
    printf("running: a %s in %s, version %s, %u node\n", info->pattern, info->space, info->version,
           info->nodes);
    return true;
}

/* What the piece has written stays: a program that opens it goes on from there. */
static void stop_and_open(hd_runtime *rt, const struct found *note) {
    hd_piece again;
    hd_piece_info info;
    hd_piece_stop(rt, note->piece);
    printf("stopped: it %s\n", hd_piece_runs(rt, note->piece) ? "runs" : "does not run");
    if (hd_piece_open(rt, "main", note->id, &again, NULL)) return;
    hd_runtime_settle(rt);
    if (hd_piece_inspect(rt, again, &info)) return;
    printf("opened: a %s with %u node\n", info.pattern, info.nodes);
}

int main(void) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_handler handler;
    struct found last = { 0 };
    int stored = 0;
    if (hd_open("notes.db", NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool)) return 1;
    hd_pattern_register(rt, "note", "1", note, NULL);
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/notes"),
                             .fn = on_note,
                             .reads_nothing = true };
    if (hd_handler_register(rt, &spec, &handler)) return 1;

    hd_send_options once = { .id = "message 1" };
    hd_event_send(rt, spec.stream, hd_string(pool, "buy tea"), &once);
    hd_runtime_settle(rt);
    hd_runtime_sync(rt);
    hd_event_send(rt, spec.stream, hd_string(pool, "buy tea"), &once); /* delivered twice */
    hd_runtime_settle(rt);
    hd_runtime_sync(rt);

    hd_runtime_pieces(rt, describe, &last);
    hd_runtime_list(rt, "main", "piece", NULL, count, &stored);
    printf("in the store: %d\n", stored);
    stop_and_open(rt, &last);
    hd_pool_close(pool);
    return hd_close(rt) != HD_OK;
}

/* 02_lift.c -- lift and derive: values computed from cells, as long as an effect or sink reads them.
 *
 * A pattern is a function that builds a graph; a piece is one that runs. */
#include <heddle.h>

#include <stdio.h>

static hd_value area(hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    printf("  area runs\n");
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in[0], 0) * hd_value_as_int(in[1], 0));
}

static hd_value describe(hd_tx *tx, hd_value square_metres, void *ctx) {
    (void)ctx;
    printf("  describe runs\n");
    return hd_string(hd_tx_pool(tx), hd_value_as_int(square_metres, 0) > 20 ? "large" : "small");
}

static hd_cell room(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell sides[] = { hd_build_argument(b, "width",
                                          hd_int(NULL, 3)), /* 3 if nobody says otherwise */
                        hd_build_argument(b, "length", hd_int(NULL, 4)) };
    hd_cell square_metres = hd_build_lift(b, "area", area, NULL, sides, 2);
    return hd_build_derive(b, "size", square_metres, describe, NULL);
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("the room is %s\n", hd_value_as_text(v, "?"));
}

int main(void) {
    hd_runtime *rt;
    hd_piece kitchen;
    hd_error error;
    if (hd_open("rooms.db", NULL, &rt, &error)) return 1;
    hd_pattern_register(rt, "room", "1", room, NULL);
    hd_piece_spec spec = { .id = "kitchen", .pattern = "room" };
    if (hd_piece_start(rt, &spec, &kitchen, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    hd_runtime_settle(rt);
    printf("nobody looks, nothing runs\n");

    hd_sink(rt, hd_piece_result(rt, kitchen), show, NULL);
    hd_runtime_settle(rt);

    printf("5 instead of 3:\n"); /* 20 square metres: another area, the same size */
    hd_write_json(rt, hd_cell_at(rt, "main/kitchen#/arguments/width"), "5");
    hd_runtime_settle(rt);

    printf("6 instead of 5:\n");
    hd_write_json(rt, hd_cell_at(rt, "main/kitchen#/arguments/width"), "6");
    hd_runtime_settle(rt);
    return hd_close(rt) != HD_OK;
}

/* 03_if_else.c -- ifElse: only the branch that is chosen is computed. */
#include <heddle.h>

#include <stdio.h>

static hd_value slowly(hd_tx *tx, hd_value in, void *ctx) {
    const char *format = ctx;
    printf("  computing %s\n", format);
    return hd_string_f(hd_tx_pool(tx), "%s %lld", format, (long long)hd_value_as_int(in, 0));
}

static hd_cell page(hd_build *b, void *ctx) {
    (void)ctx;
    hd_cell n = hd_build_argument(b, "n", hd_int(NULL, 1));
    hd_cell signed_in = hd_build_argument(b, "signed_in", hd_bool(false));
    return hd_build_if_else(b, "page", signed_in, hd_build_derive(b, "inbox", n, slowly, "inbox"),
                            hd_build_derive(b, "welcome", n, slowly, "welcome"));
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    printf("%s\n", hd_value_as_text(v, "?"));
}

int main(void) {
    hd_runtime *rt;
    hd_piece piece;
    if (hd_open(NULL, NULL, &rt, NULL)) return 1;
    hd_pattern_register(rt, "page", "1", page, NULL);
    if (hd_piece_start(rt, &(hd_piece_spec){ .id = "home", .pattern = "page" }, &piece, NULL))
        return 1;
    hd_sink(rt, hd_piece_result(rt, piece), show, NULL);
    hd_runtime_settle(rt);

    hd_write_json(rt, hd_cell_at(rt, "main/home#/arguments/signed_in"), "true");
    hd_runtime_settle(rt);
    hd_write_json(rt, hd_cell_at(rt, "main/home#/arguments/n"), "2"); /* the inbox alone */
    hd_runtime_settle(rt);
    return hd_close(rt) != HD_OK;
}

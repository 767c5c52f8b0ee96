/* piece_world.h -- pieces in the lab: patterns whose functions log what runs with lab_note, and restarts of
 * the runtime "a". */
#ifndef HEDDLE_PIECE_WORLD_H
#define HEDDLE_PIECE_WORLD_H

#include "spec.h"

#include <heddle/pattern.h>

static inline hd_runtime *rt(void) { return lab_runtime_now(l); }

static inline void show(hd_value v, void *ctx) { lab_note(l, ctx ? ctx : "show"); }

static inline hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, ctx ? ctx : "twice");
    return hd_double(2 * hd_value_number(in));
}

/* A piece of its pattern's name. */
static inline hd_piece start_piece(const char *id, hd_pattern_fn fn) {
    hd_piece p;
    hd_error error;
    assert_int_equal(hd_pattern_register(rt(), id, "1", fn, NULL), HD_OK);
    hd_status status =
        hd_piece_start(rt(), &(hd_piece_spec){ .id = id, .pattern = id }, &p, &error);
    if (status) fail_msg("%s", error.message);
    return p;
}

/* A pattern with something to look at, and a piece of it. */
static inline hd_cell watcher(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), twice, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}
static inline hd_piece start_under(const char *id, hd_piece parent) {
    hd_piece p;
    hd_error error;
    assert_int_equal(hd_pattern_register(rt(), "watcher", "1", watcher, NULL), HD_OK);
    hd_piece_spec spec = { .id = id, .pattern = "watcher", .parent = parent };
    if (hd_piece_start(rt(), &spec, &p, &error)) fail_msg("%s", error.message);
    return p;
}
static inline hd_piece start_watcher(const char *id) { return start_under(id, (hd_piece){ 0, 0 }); }

static inline bool count_piece(const hd_piece_info *info, void *ctx) {
    (*(int *)ctx)++;
    return true;
}
static inline int running(void) {
    int n = 0;
    hd_runtime_pieces(rt(), count_piece, &n);
    return n;
}

/* Until all of it is stored. */
static inline void settle(void) {
    lab_settle(l);
    hd_runtime_sync(rt());
}
static inline void stop(void) { lab_runtime_close(lab_on(l, "a")); }
static inline void restart(void) {
    stop();
    lab_on(l, "a");
}

#endif

/* Requests from a stranger to a program with a small graph. Whatever is asked, the answer is one line of
 * JSON with either an answer or an error; and asking changes nothing but the trace. */
#include "inspect/inspector.h"

#include <heddle/introspect.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hd_status copy(hd_tx *tx, void *ctx) {
    hd_cell *cells = ctx;
    return hd_tx_set(tx, cells[1], hd_tx_get(tx, cells[0]));
}
static void look(hd_value v, void *ctx) {
    (void)ctx;
    (void)v;
}

static hd_runtime *small_world(hd_cell cells[2]) {
    hd_runtime *rt;
    if (hd_open(NULL, NULL, &rt, NULL)) abort();
    cells[0] = hd_cell_at(rt, "main/price");
    cells[1] = hd_cell_at(rt, "main/total");
    hd_compute(rt, "total", copy, cells, cells[1]);
    hd_sink(rt, cells[1], look, NULL);
    if (hd_runtime_settle(rt) || hd_write_json(rt, cells[0], "3") || hd_runtime_settle(rt)) abort();
    return rt;
}

static void check_line(hd_pool *pool, const json_buffer *line) {
    if (!line->length || line->bytes[line->length - 1] != '\n') abort();
    if (memchr(line->bytes, '\n', line->length) != line->bytes + line->length - 1) abort();
    hd_value v = hd_json_parse(pool, line->bytes, line->length - 1, NULL);
    if (hd_value_as_int(hd_value_at(v, "heddle"), 0) != REQUEST_VERSION) abort();
    if (hd_value_exists(hd_value_at(v, "answer")) == hd_value_exists(hd_value_at(v, "error")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_cell cells[2];
    inspector in = { .rt = small_world(cells), .name = "fuzz" };
    hd_scheduler_stats before, after;
    json_buffer line;
    if (hd_pool_open(hd_runtime_heap(in.rt), &in.pool)) abort();
    json_buffer_init(&line, hd_runtime_env(in.rt));
    hd_runtime_scheduler_stats(in.rt, &before);
    uint32_t documents = in.rt->r.places.documents, homes = in.rt->r.places.homes.count;
    answer_line(&in, (const char *)data, size < REQUEST_MAX ? size : REQUEST_MAX, &line);
    check_line(in.pool, &line);
    hd_runtime_scheduler_stats(in.rt, &after);
    if (memcmp(&before, &after, sizeof before) || !hd_runtime_is_idle(in.rt)) abort();
    if (in.rt->r.places.documents != documents || in.rt->r.places.homes.count != homes) abort();
    json_buffer_fini(&line);
    hd_pool_close(in.pool);
    hd_close(in.rt);
    return 0;
}

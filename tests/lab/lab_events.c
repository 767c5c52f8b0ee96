/* lab_events.c -- handlers with names. */
#include "lab_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hd_status run(hd_tx *tx, const hd_event *event, void *ctx) {
    lab_handler *h = ctx;
    lab_note(h->l, h->spec.name);
    h->runs++;
    snprintf(h->last_id, sizeof h->last_id, "%s", event->id);
    hd_status status = (h->spec.body ? h->spec.body : lab_append)(h, tx, event);
    if (h->fail_times) {
        h->fail_times--;
        return h->fail_with;
    }
    return status;
}

static void release(void *ctx) {
    lab_handler *h = ctx;
    hd_schema_close(h->schema);
    hd_schema_close(h->input_schema);
    free(h);
}

static hd_cell cell_of(hd_runtime *rt, const char *name) {
    char full[256];
    bool whole = strchr(name, '/') && (!strchr(name, '#') || strchr(name, '/') < strchr(name, '#'));
    snprintf(full, sizeof full, "%s%s", whole ? "" : "main/", name);
    hd_cell cell = hd_cell_at(rt, full);
    if (!cell.id) lab_fail("no cell %s", full);
    return cell;
}

static hd_schema *schema_of(hd_runtime *rt, const char *json) {
    hd_pool *pool;
    hd_schema *schema;
    hd_error error;
    if (!json) return NULL;
    if (hd_pool_open(hd_runtime_heap(rt), &pool)) lab_fail("no memory");
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    if (hd_schema_compile(hd_runtime_heap(rt), v, &schema, &error))
        lab_fail("schema %s: %s", json, error.message);
    hd_pool_close(pool);
    return schema;
}

lab_handler *lab_handler_register(lab *l, lab_handler_spec spec) {
    hd_runtime *rt = lab_runtime_now(l);
    lab_handler *h = calloc(1, sizeof *h);
    hd_cell inputs[16];
    size_t count = 0;
    char reads[512];
    if (!h) lab_fail("no memory");
    if (!spec.name) spec.name = spec.stream;
    *h = (lab_handler){ .l = l, .rt = rt, .spec = spec, .data = spec.data };
    h->schema = schema_of(rt, spec.event_schema);
    h->input_schema = schema_of(rt, spec.input_schema);
    snprintf(reads, sizeof reads, "%s", spec.reads ? spec.reads : "");
    if (!spec.body) snprintf(reads + strlen(reads), 200, " %s_log", spec.stream);
    for (char *word = strtok(reads, " "); word; word = strtok(NULL, " ")) {
        inputs[count] = cell_of(rt, word);
        if (h->input_schema)
            inputs[count] = hd_cell_with_schema(rt, inputs[count], h->input_schema);
        count++;
    }
    hd_handler_spec s = { .name = spec.name,
                          .stream = cell_of(rt, spec.stream),
                          .fn = run,
                          .ctx = h,
                          .release = release,
                          .inputs = count ? inputs : NULL,
                          .input_count = count,
                          .event_schema = h->schema,
                          .preflight = spec.preflight,
                          .presync = spec.presync,
                          .one_shot = spec.one_shot,
                          .reads_nothing = !count && !h->schema && !spec.preflight };
    hd_handler out;
    hd_status status = hd_handler_register(rt, &s, &out);
    if (status) lab_fail("handler of %s: %s", spec.stream, hd_status_name(status));
    h->handler = out;
    h->status = status;
    if (lab_events_without) lab_event_sabotage(l, lab_events_without);
    return h;
}

/* ---- sending */

void lab_outcome_note(const char *id, hd_status status, void *ctx) {
    lab_outcome *o = ctx;
    o->told++;
    o->status = status;
    snprintf(o->id, sizeof o->id, "%s", id);
}

hd_status lab_fire_id(lab *l, const char *stream, const char *json, const char *id,
                      lab_outcome *o) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_pool *pool;
    if (hd_pool_open(hd_runtime_heap(rt), &pool)) lab_fail("no memory");
    hd_send_options options = { .id = id, .done = o ? lab_outcome_note : NULL, .ctx = o };
    hd_value v = hd_json_parse(pool, json, strlen(json), NULL);
    hd_status status = hd_event_send(rt, cell_of(rt, stream), v, &options);
    hd_pool_close(pool);
    return status;
}

hd_status lab_fire(lab *l, const char *stream, const char *json, lab_outcome *o) {
    return lab_fire_id(l, stream, json, NULL, o);
}

/* ---- in bodies */

hd_status lab_tx_send(lab_handler *self, hd_tx *tx, const char *stream, hd_value payload,
                      lab_outcome *o) {
    hd_send_options options = { .done = o ? lab_outcome_note : NULL, .ctx = o };
    return hd_tx_send(tx, cell_of(self->rt, stream), payload, &options);
}

hd_value lab_tx_get(lab_handler *self, hd_tx *tx, const char *cell) {
    return hd_tx_get(tx, cell_of(self->rt, cell));
}

hd_status lab_tx_set(lab_handler *self, hd_tx *tx, const char *cell, hd_value v) {
    return hd_tx_set(tx, cell_of(self->rt, cell), v);
}

hd_status lab_tx_add(lab_handler *self, hd_tx *tx, const char *cell, double by) {
    hd_value v = lab_tx_get(self, tx, cell);
    if (hd_value_status(v)) return hd_value_status(v);
    double now = hd_value_exists(v) ? hd_value_number(v) : 0;
    return hd_tx_set_int(tx, cell_of(self->rt, cell), (int64_t)(now + by));
}

hd_status lab_append(lab_handler *self, hd_tx *tx, const hd_event *event) {
    char cell[128];
    snprintf(cell, sizeof cell, "%s_log", self->spec.stream);
    hd_value log = lab_tx_get(self, tx, cell);
    if (hd_value_status(log)) return hd_value_status(log);
    if (hd_value_kind(log) != HD_KIND_ARRAY) log = hd_array();
    return lab_tx_set(self, tx, cell, hd_array_append(hd_tx_pool(tx), log, event->payload));
}

/* ---- looking */

hd_event_stats lab_event_stats(lab *l) {
    hd_event_stats stats;
    hd_runtime_event_stats(lab_runtime_now(l), &stats);
    return stats;
}

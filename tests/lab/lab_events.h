/* lab_events.h -- streams and handlers in the world of lab_sched.h.
 *
 *     lab_handle(l, .stream = "buy", .reads = "total", .body = buy);
 *     lab_outcome o = { 0 };
 *     lab_fire(l, "buy", "{\"price\": 3}", &o);
 *     lab_idle(l);
 *     assert_ran(l, "total buy");
 *     assert_outcome(o, HD_OK);
 *
 * A handler is called like its stream; the name stands in the log of what ran each time its body
 * begins. Without a body it appends the payload to the array in the cell "<stream>_log", which it
 * reads first, so that two handlings depend on each other. */
#ifndef HEDDLE_LAB_EVENTS_H
#define HEDDLE_LAB_EVENTS_H

#include "lab_sched.h"
#include <heddle/event.h>

typedef struct lab_handler lab_handler;
typedef hd_status (*lab_handler_body)(lab_handler *self, hd_tx *tx, const hd_event *e);

typedef struct lab_handler_spec {
    const char *stream; /* a cell */
    const char *name;   /* default: the stream's */
    const char *reads;  /* inputs; with none of the following: reads_nothing */
    lab_handler_body body;
    void *data;
    const char *event_schema; /* JSON */
    const char *input_schema; /* JSON; of every input */
    hd_preflight_fn preflight;
    hd_presync_fn presync;
    bool one_shot;
} lab_handler_spec;

struct lab_handler {
    lab *l;
    hd_runtime *rt;
    lab_handler_spec spec;
    hd_handler handler;
    hd_status status; /* of its registration */
    void *data;
    uint64_t runs;
    char last_id[HD_EVENT_ID_SIZE];
    hd_schema *schema, *input_schema;
    hd_status fail_with; /* the next fail_times bodies end with this, after their writes */
    uint32_t fail_times;
};

#define lab_handle(l, ...) lab_handler_register(l, (lab_handler_spec){ __VA_ARGS__ })
/* Good until its runtime closes. */
lab_handler *lab_handler_register(lab *l, lab_handler_spec spec);

/* What the sender was told. */
typedef struct lab_outcome {
    int told;
    hd_status status;
    char id[HD_EVENT_ID_SIZE];
} lab_outcome;
void lab_outcome_note(const char *id, hd_status status, void *ctx);

/* `o` may be NULL. What is sent on the runtime of now. */
hd_status lab_fire(lab *l, const char *to, const char *json, lab_outcome *o);
hd_status lab_fire_id(lab *l, const char *to, const char *json, const char *id, lab_outcome *o);
/* For bodies. */
hd_status lab_tx_send(lab_handler *self, hd_tx *tx, const char *to, hd_value payload,
                      lab_outcome *o);
hd_value lab_tx_get(lab_handler *self, hd_tx *tx, const char *cell);
hd_status lab_tx_set(lab_handler *self, hd_tx *tx, const char *cell, hd_value v);
hd_status lab_tx_add(lab_handler *self, hd_tx *tx, const char *cell, double by);
/* The body of handlers that have none. */
hd_status lab_append(lab_handler *self, hd_tx *tx, const hd_event *e);

hd_event_stats lab_event_stats(lab *l);
/* From now on, on the runtime of now: EVENTS_WITHOUT_*. False: this build cannot. */
bool lab_event_sabotage(lab *l, unsigned what);
/* All handlers made from now on do without. */
extern unsigned lab_events_without;

#define assert_outcome(o, expected)                                                                \
    do {                                                                                           \
        assert_int_equal((o).told, 1);                                                             \
        assert_status((o).status, expected);                                                       \
    } while (0)

#endif

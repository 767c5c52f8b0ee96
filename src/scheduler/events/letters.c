/* letters.c -- posted events that their handler refuses: tried again, or dropped.
 *
 * A failed event stays in the store, with the reason beside it. To try it again is to write its document: every
 * runtime with a handler takes it up as if it had just been posted. To drop it is to end it without its handler:
 * the receipt says so, and keeps the sender from sending it again. An event that waits for its time ends in the
 * same way; a periodic event is removed, has no receipt, and may be posted again. */
#include "scheduler/events/delay.h"

#include "base/env.h"
#include "value/key.h"
#include <string.h>

#define PREFIX "event/"

/* The document of a posted event, its id, and what it holds. HD_USAGE: the cell is no event; HD_NOT_FOUND: it is
 * over. */
static hd_status find_letter(scheduler *s, hd_tx *tx, hd_cell cell, place_id *doc, const char **id,
                             hd_value *record) {
    const hd_schema *schema;
    *doc = runtime_place(s->rt, cell, &schema);
    const place *p = *doc ? place_at(&s->r->places, *doc) : NULL;
    *id = p && p->root == *doc ? key_bytes(p->doc.id) : "";
    if (strncmp(*id, PREFIX, strlen(PREFIX)) || strlen(*id) >= HD_EVENT_ID_SIZE + strlen(PREFIX))
        return runtime_fail(s->rt, HD_USAGE, "the cell of a posted event is space/event/ID");
    *id += strlen(PREFIX);
    *record = tx_read_place(tx, *doc, 0);
    if (value_is_failed(*record)) return hd_value_status(*record);
    if (value_exists(*record)) return HD_OK;
    return runtime_fail(s->rt, HD_NOT_FOUND, "no event %s waits: it was handled, or dropped", *id);
}

hd_status events_retry(scheduler *s, hd_tx *tx, hd_cell cell) {
    place_id doc;
    const char *id;
    hd_value record;
    hd_status status = find_letter(s, tx, cell, &doc, &id, &record);
    hd_pool *pool = tx_pool(tx);
    if (status || !pool) return status ? status : HD_NOMEM;
    int64_t again = hd_value_as_int(hd_value_at(record, "again"), 0) + 1;
    hd_value failed = hd_tx_get_meta(tx, cell, EVENTS_FAILED);
    int64_t tried = hd_value_as_int(hd_value_at(failed, "attempts"), 0);
    record = hd_object_set(pool, record, "again", hd_int(pool, again));
    /* The note of the failure, which has this count, is removed below. */
    record = hd_object_set(pool, record, "tried", hd_int(pool, tried));
    status = hd_tx_set(tx, cell, record);
    if (!status) status = hd_tx_set_meta(tx, cell, EVENTS_FAILED, value_absent());
    return status ? status : events_watch_verdict(s, tx, doc, id, NULL);
}

/* Writes the receipt of an event that is dropped. `record` is what its document holds. */
static hd_status write_dropped(scheduler *s, hd_tx *tx, place_id receipt, const char *id,
                               hd_value record, const char *why) {
    char text[RECEIPT_KIND_SIZE];
    const char *kind = receipts_kind(s, id, text);
    hd_pool *pool = tx_pool(tx);
    hd_cell cell = { receipt };
    if (!pool) return HD_NOMEM;
    hd_value as = hd_value_at(record, "as");
    hd_value v = hd_object_set(pool, hd_object(), "dropped", hd_string(pool, why));
    hd_status status = hd_tx_require_absent(tx, cell);
    if (!status) status = hd_tx_set(tx, cell, v);
    if (!status) status = hd_tx_set_meta(tx, cell, "dropped", hd_bool(true));
    if (!status && kind) status = hd_tx_set_kind(tx, cell, kind);
    if (!status && value_exists(as)) status = hd_tx_set_meta(tx, cell, "as", as);
    hd_cell to = hd_cell_of_link(s->rt, cell, hd_value_at(record, "stream"));
    if (!status && to.id)
        status = hd_tx_set_meta(tx, cell, "stream", runtime_cell_text(s->rt, pool, to));
    if (status) return status;
    hd_value now = hd_int(pool, (int64_t)env_wall_ms(s->env));
    return hd_tx_set_meta(tx, cell, "time", now);
}

hd_status events_drop(scheduler *s, hd_tx *tx, hd_cell cell, const char *why) {
    place_id doc, receipt;
    const char *id;
    hd_value record;
    hd_status status = find_letter(s, tx, cell, &doc, &id, &record);
    if (!status && delay_is_periodic(record)) return events_remove(s, tx, doc);
    if (!status)
        status = event_document(s, place_at(&s->r->places, doc)->doc.home, RECEIPT, id, &receipt);
    if (!status) status = write_dropped(s, tx, receipt, id, record, why ? why : "");
    return status ? status : events_remove(s, tx, doc);
}

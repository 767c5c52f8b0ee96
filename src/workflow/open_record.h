/* open_record.h -- what the document of an instance says of one thread of control that waits ("open"):
 *
 *     [node, step, since]
 *     [node, step, since, {"call": 3, "attempt": 2, "due": ...}]
 *
 * It is written for each step, so it is short: `since` counts milliseconds from the instance's start. The rest is there
 * where it is not what most steps have: which call, or which branch of a fan-out ("fan", "index"), it stands in; from
 * the second attempt on which it is ("attempt"), and what the one before has raised ("why"); lost workers ("lost");
 * until when it waits ("due"), and its place among the steps that began to wait ("begun"); the key of its limit
 * ("limit"); what the id of its child ends with, if the plain id was another's ("tag"); how often what it waits for was
 * cancelled ("cancelled"), and how many cancellations of it no time limit has taken back ("cancels"); arguments that a
 * restart could not compute again ("args"). */
#ifndef WORKFLOW_OPEN_RECORD_H
#define WORKFLOW_OPEN_RECORD_H

#include <heddle/value.h>
#include <string.h>

/* "node", "step", or one of the rest; absent: the record does not say. Borrowed. */
static inline hd_value open_record_at(hd_value record, const char *key) {
    if (!strcmp(key, "node")) return hd_value_index(record, 0);
    if (!strcmp(key, "step")) return hd_value_index(record, 1);
    return hd_value_at(hd_value_index(record, 3), key);
}

static inline const char *open_record_node(hd_value record) {
    return hd_value_as_text(hd_value_index(record, 0), "");
}

static inline uint64_t open_record_number(hd_value record, const char *key) {
    return (uint64_t)hd_value_as_int(open_record_at(record, key), 0);
}

/* When it began to wait, in milliseconds since 1970. */
static inline uint64_t open_record_since(hd_value document, hd_value record) {
    uint64_t started = (uint64_t)hd_value_as_int(hd_value_at(document, "started"), 0);
    return started + (uint64_t)hd_value_as_int(hd_value_index(record, 2), 0);
}

/* Where it stands: an object with "call", or "fan" and "index"; {} or absent: in the first function. */
static inline hd_value open_record_place(hd_value record) { return hd_value_index(record, 3); }

#endif

/* json_form.h -- what JSON has no text for: {"$link": ...}, {"$bytes": ...}, {"$double": ...}. */
#ifndef HD_VALUE_JSON_FORM_H
#define HD_VALUE_JSON_FORM_H

#include "value/value.h"

typedef enum json_form {
    JSON_FORM_NONE,
    JSON_FORM_LINK,
    JSON_FORM_BYTES,
    JSON_FORM_DOUBLE,
} json_form;

/* The form that a key beginning with one `$` names; NONE when there is no such form. */
json_form json_form_named(const char *key, size_t length);

/* Why a form is malformed. */
typedef struct json_form_error {
    char field[40];      /* of a link: the field that is wrong (shortened), or "" */
    const char *message; /* for a person */
} json_form_error;

/* The value that a form with this content stands for: owned, or failed (HD_SYNTAX: see *why). */
hd_value json_form_read(hd_heap *heap, json_form form, hd_value content, json_form_error *why);

#endif

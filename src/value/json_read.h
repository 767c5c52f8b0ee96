/* json_read.h -- JSON text to an owned value. */
#ifndef HD_VALUE_JSON_READ_H
#define HD_VALUE_JSON_READ_H

#include "value/value.h"

/* As hd_json_parse, but the value is the caller's (one reference), or failed. */
hd_value json_read(hd_heap *heap, const char *text, size_t length, hd_error *error);

#endif

/* json_write.h -- values to JSON text, into a buffer that grows. */
#ifndef HD_VALUE_JSON_WRITE_H
#define HD_VALUE_JSON_WRITE_H

#include "base/env.h"
#include "value/value.h"

/* Text that is being put together. The bytes are the buffer's; there is no NUL behind them. */
typedef struct json_buffer {
    const hd_env *env;
    char *bytes;
    size_t length, capacity;
    bool borrowed; /* `bytes` is the caller's memory: not freed, and left behind when it is full */
} json_buffer;

void json_buffer_init(json_buffer *b, const hd_env *env);
void json_buffer_fini(json_buffer *b);
/* Makes room for `more` bytes behind `length`; false: no memory. */
bool json_buffer_grow(json_buffer *b, size_t more);
static inline bool json_buffer_add(json_buffer *b, const void *bytes, size_t n) {
    if (b->capacity - b->length < n && !json_buffer_grow(b, n)) return false;
    if (n) memcpy(b->bytes + b->length, bytes, n);
    b->length += n;
    return true;
}

/* Appends the text of v. On failure the length is as it was: HD_NOMEM; HD_KIND when v is absent; a
 * failed value's own status. */
hd_status json_print_to(json_buffer *b, hd_value v, hd_json_style style);

#endif

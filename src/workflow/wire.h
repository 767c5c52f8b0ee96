/* wire.h -- what workers and the engine say to each other: docs/WORKERS.md.
 *
 * A message is four bytes, the length in network order, and so many bytes of JSON: an object with a "type". Everything
 * in a message of a worker is checked, and an unknown key, type or kind of value is refused by name, so that an older
 * engine does not do half of what a newer worker asks. */
#ifndef WORKFLOW_WIRE_H
#define WORKFLOW_WIRE_H

#include "value/json_write.h"
#include <heddle/value.h>

#define WIRE_VERSION 1
#define WIRE_HEAD    4 /* bytes before a message */
/* Room in a message for what stands around its value. In a task those are names, of 9 KiB at most. */
#define WIRE_ENVELOPE    ((size_t)64 << 10)
#define WIRE_ACTIONS_MAX 1000  /* in a hello */
#define WIRE_NAME_MAX    200   /* bytes of an action's or worker's name */
#define WIRE_TOKEN_MAX   40    /* with the NUL */
#define WIRE_CLAIM_MAX   10000 /* steps that a worker may have and ask for, together */

typedef enum wire_type {
    WIRE_HELLO,     /* heddle, name, actions, queues */
    WIRE_CLAIM,     /* count */
    WIRE_HEARTBEAT, /* tokens */
    WIRE_COMPLETE,  /* token, result */
    WIRE_FAIL,      /* token, class, message, error */
    WIRE_GIVE_BACK  /* token */
} wire_type;

/* Texts and values are the pool's. */
typedef struct wire_message {
    wire_type type;
    uint32_t count;
    const char *name, *token, *class_name, *message; /* "": not given */
    hd_value actions, queues, tokens;                /* arrays of texts */
    hd_value result;
    hd_value error; /* has "$error"; absent: class_name and message say all */
} wire_message;

/* HD_SYNTAX, HD_PROTOCOL (another version), HD_USAGE (a wrong key, type or value), HD_LIMIT, HD_NOMEM; the error says
 * what is wrong. */
hd_status wire_parse(hd_pool *pool, const char *bytes, size_t length, wire_message *out,
                     hd_error *error);

static inline uint32_t wire_length(const char head[WIRE_HEAD]) {
    const unsigned char *b = (const unsigned char *)head;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Putting a message into a buffer: begin, add, end. On failure of any, wire_undo with what begin returned. */
bool wire_begin(json_buffer *out, size_t *start);
bool wire_text(json_buffer *out, const char *text); /* as it is */
bool wire_string(json_buffer *out,
                 const char *text); /* as a JSON string; control characters are left out */
bool wire_number(json_buffer *out, const char *before, uint64_t n);
bool wire_end(json_buffer *out, size_t start);
static inline void wire_undo(json_buffer *out, size_t start) { out->length = start; }

#endif

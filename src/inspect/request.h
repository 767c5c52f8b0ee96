/* request.h -- a request: one line of JSON.
 *
 *     {"heddle": 1, "ask": "why", "of": "main/total"}
 *
 * Everything in it is checked: an unknown key or word is refused by name. So an older program does not
 * answer half of a newer command's request. */
#ifndef INSPECT_REQUEST_H
#define INSPECT_REQUEST_H

#include <heddle/value.h>

#define REQUEST_VERSION 1
#define REQUEST_MAX     65536 /* bytes of a line, with its end */
#define REQUEST_LIMIT   1000  /* nodes in one answer about statistics, at most */

typedef enum ask_kind {
    ASK_HELLO, /* name, process id and version of the program */
    ASK_GRAPH, /* as: json, dot */
    ASK_WHY,   /* of: node or cell */
    ASK_WHY_NOT,
    ASK_STATS, /* by: runs, time, failures, name, order; limit */
    ASK_TRACE, /* as: runs, chrome; on: true, false */
    ASK_PIECES,
    ASK_WORKFLOW, /* of: an instance, "name/key" */
    ASK_STREAMS
} ask_kind;

typedef enum ask_form { FORM_ANY, FORM_JSON, FORM_DOT, FORM_RUNS, FORM_CHROME } ask_form;
typedef enum ask_order { BY_RUNS, BY_TIME, BY_FAILURES, BY_NAME, BY_ORDER } ask_order;
typedef enum ask_switch { SWITCH_LEAVE, SWITCH_ON, SWITCH_OFF } ask_switch;

typedef struct request {
    ask_kind ask;
    const char *of; /* "": not given; borrowed from the pool */
    ask_form as;
    ask_order by;
    uint32_t limit; /* 1 to REQUEST_LIMIT */
    ask_switch on;
} request;

/* HD_SYNTAX, HD_LIMIT, HD_PROTOCOL (another version), HD_USAGE (an unknown key or word), HD_NOMEM;
 * the error says what is wrong. */
hd_status request_parse(hd_pool *pool, const char *line, size_t length, request *out,
                        hd_error *error);

#endif

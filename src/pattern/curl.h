/* curl.h -- requests over HTTP, on the runtime's loop. */
#ifndef PATTERN_CURL_H
#define PATTERN_CURL_H

#include "pattern/pattern.h"

typedef struct request request;

typedef struct answer {
    const char *url;
    const char *body;
    size_t size;
    const char *error; /* NULL: none, and `body` is the response */
    bool unanswered;   /* with `error`: no response arrived (no connection, timeout) */
} answer;

/* The pump calls it once for a request, outside of runs, and frees the request afterwards. */
typedef void (*answer_fn)(void *ctx, const answer *a);

typedef struct request_spec {
    const char *url;
    uint32_t timeout_ms;
    size_t max_bytes;
    answer_fn done;
    void *ctx;
} request_spec;

/* HD_OK and a request; or HD_OK and *problem, a text for the user: not a web address, the library is
 * missing. Or HD_NOMEM. */
hd_status request_begin(patterns *all, const request_spec *spec, request **out,
                        const char **problem);
const char *request_url(const request *r);
/* Frees the request; `done` is not called. */
void request_cancel(request *r);

#endif

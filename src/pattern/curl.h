/* curl.h -- requests over HTTP, on the runtime's loop. */
#ifndef PATTERN_CURL_H
#define PATTERN_CURL_H

#include "pattern/pattern.h"

typedef struct request request;

typedef struct answer {
    const char *url;
    const char *body;
    size_t size;
    const char *error; /* NULL: none, then there is a body */
    bool unanswered;   /* the error is not the server's word: nothing came of it */
} answer;

/* Called once, from pump, outside of runs; the request is gone afterwards. */
typedef void (*answer_fn)(void *ctx, const answer *a);

typedef struct request_spec {
    const char *url;
    uint32_t timeout_ms;
    size_t max_bytes;
    answer_fn done;
    void *ctx;
} request_spec;

/* HD_OK with a request, or with *problem for the user: a URL that is none, a library that is
 * missing. HD_NOMEM. */
hd_status request_begin(patterns *all, const request_spec *spec, request **out,
                        const char **problem);
const char *request_url(const request *r);
/* Nobody is told. */
void request_cancel(request *r);

#endif

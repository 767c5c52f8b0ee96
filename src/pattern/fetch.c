/* fetch.c -- the response to an HTTP request, as a cell.
 *
 *     url ---> name  <---  name.response        {"url": ..., "value" | "error": ...}
 *                |                ^
 *                +-- request -----+             a source commit, when it has been answered
 *
 * The computation `name` compares the URL with the URL of the stored response. If they are equal, it
 * writes the response's value or error; if not, it writes {"pending": true} and starts a request unless
 * one for this URL is on its way. So it is idempotent, and a response stays when the process ends. A
 * request does not: while one is pending the computation also reads `name.request`, a volatile document
 * without a value, so that the run is not stored and the next process makes the request again.
 *
 * A request without an answer, and a response that cannot be stored, become an error in this process,
 * which does not make the request again; the next process does.
 *
 * libcurl makes the requests, on the runtime's own loop (curl.c): no thread, and nothing blocks. */
#include "pattern/curl.h"
#include "pattern/pattern.h"

#include "base/env.h"
#include "base/hash.h"
#include "scheduler/invalidation.h"
#include "scheduler/scheduler.h"
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 30000
#define MAX_BYTES  (8u << 20)

typedef struct fetch_part {
    part part;
    hd_cell url, response, requested;
    hd_fetch_options options;
    request *request;  /* on its way; NULL: none */
    char lost[320];    /* why there is no response to `lost_url`; "": nothing failed */
    uint64_t lost_url; /* the hash of that URL */
} fetch_part;

/* ---- the answer */

static hd_value body_of(const fetch_part *f, hd_pool *pool, const answer *a, hd_error *error) {
    if (!f->options.text) return hd_json_parse(pool, a->body, a->size, error);
    hd_value text = hd_string_n(pool, a->body, a->size);
    if (hd_value_status(text)) env_error(error, HD_SYNTAX, "the response is no UTF-8 text");
    return text;
}

static hd_value response_of(const fetch_part *f, hd_pool *pool, const answer *a) {
    hd_error error = { 0 };
    hd_value v = hd_object_set(pool, hd_object(), "url", hd_string(pool, a->url));
    if (a->error) return hd_object_set(pool, v, "error", hd_string(pool, a->error));
    hd_value body = body_of(f, pool, a, &error);
    if (!hd_value_status(body)) return hd_object_set(pool, v, "value", body);
    return hd_object_set(pool, v, "error", hd_string(pool, error.message));
}

/* Remembers that the request for `url` failed, and makes the computation run, which then writes the error.
 * Needs no memory. */
static void lose(fetch_part *f, uint64_t url, const char *why, const char *more) {
    scheduler *s = scheduler_get(f->part.in->all->rt);
    assert(s && *why); /* a part has a node, and so there is a scheduler */
    snprintf(f->lost, sizeof f->lost, "%s%s", why, more);
    f->lost_url = url;
    node_id id = registry_get(s, f->part.node);
    if (id) invalidation_mark(s, id);
}

static void lose_stored(fetch_part *f, uint64_t url, hd_status status) {
    lose(f, url, "the response could not be stored: ", hd_status_text(status));
}

/* A response that is refused as stale, because a commit below it was refused, is no error: the computation
 * sees the response disappear, and makes the request again. */
static void reply_decided(hd_status status, void *ctx) {
    reply *r = ctx;
    bool there = hd_node_exists(r->all->rt, r->node) && r->from->in;
    if (status && hd_status_class(status) != HD_CLASS_STALE && there)
        lose_stored((fetch_part *)r->from, r->url, status);
    list_remove(&r->link);
    env_free(r->all->env, r, sizeof *r);
}

/* NULL: no memory. Then a refused response makes no error, and the request is made again. */
static reply *reply_new(fetch_part *f, uint64_t url) {
    patterns *all = f->part.in->all;
    reply *r = env_new(all->env, sizeof *r);
    if (!r) return NULL;
    assert(f->part.node.id);
    *r = (reply){ .all = all, .from = &f->part, .node = f->part.node, .url = url };
    list_push_back(&all->replies, &r->link);
    return r;
}

static uint64_t hash_of(const char *url) { return hash_bytes(url, strlen(url), 0); }

static hd_status store(fetch_part *f, const answer *a) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(f->part.in->all->rt, &tx);
    if (status) return status;
    status = hd_tx_set(tx, f->response, response_of(f, hd_tx_pool(tx), a));
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    reply *r = reply_new(f, hash_of(a->url));
    status = hd_tx_commit(tx, r ? reply_decided : NULL, r);
    if (status && r) {
        list_remove(&r->link);
        env_free(r->all->env, r, sizeof *r);
    }
    return status;
}

static void answered(void *ctx, const answer *a) {
    fetch_part *f = ctx;
    assert(f->part.in && f->request);
    hd_runtime *rt = f->part.in->all->rt;
    f->request = NULL;
    hd_status status = a->unanswered ? HD_OK : store(f, a);
    if (a->unanswered) lose(f, hash_of(a->url), a->error, "");
    if (status) lose_stored(f, hash_of(a->url), status);
    hd_work_end(rt, status);
}

/* ---- the request */

static void let_go(fetch_part *f) {
    if (!f->request) return;
    assert(f->part.in);
    request_cancel(f->request);
    f->request = NULL;
    hd_work_end(f->part.in->all->rt, HD_OK);
}

/* Makes a request for the URL, unless one is on its way. *problem: why there is none; else NULL. */
static hd_status ask(fetch_part *f, const char *url, const char **problem) {
    *problem = NULL;
    if (f->request && !strcmp(request_url(f->request), url)) return HD_OK;
    let_go(f);
    request_spec spec = { .url = url,
                          .timeout_ms = f->options.timeout_ms,
                          .max_bytes = f->options.max_bytes,
                          .done = answered,
                          .ctx = f };
    hd_status status = request_begin(f->part.in->all, &spec, &f->request, problem);
    assert(!f->request || (!status && !*problem));
    if (f->request) (void)hd_work_begin(f->part.in->all->rt); /* there is a scheduler: no failure */
    return status;
}

/* Why no request is made for this URL; NULL: one may be. Forgets a failure of another URL. */
static const char *refuse(fetch_part *f, const char *text, size_t length) {
    if (strlen(text) != length) return "the URL contains a zero byte";
    if (f->lost_url != hash_of(text)) f->lost[0] = 0;
    return f->lost[0] ? f->lost : NULL;
}

static hd_value as_result(hd_pool *pool, bool pending, hd_value value, hd_value error) {
    hd_value v = hd_object_set(pool, hd_object(), "pending", hd_bool(pending));
    if (hd_value_exists(value)) v = hd_object_set(pool, v, "value", value);
    if (hd_value_exists(error)) v = hd_object_set(pool, v, "error", error);
    return v;
}

static hd_status say_problem(fetch_part *f, hd_tx *tx, const char *problem) {
    hd_pool *pool = hd_tx_pool(tx);
    let_go(f);
    return hd_tx_set(tx, f->part.output,
                     as_result(pool, false, (hd_value){ 0 }, hd_string(pool, problem)));
}

/* A run that reads a volatile document is not stored: a pending request, or an error of this process,
 * must not be found by the next process. */
static hd_status read_request(fetch_part *f, hd_tx *tx) {
    hd_status status = hd_cell_set_volatile(hd_tx_runtime(tx), f->requested);
    return status ? status : hd_value_status(hd_tx_get(tx, f->requested));
}

static hd_status request_it(fetch_part *f, hd_tx *tx, const char *text, size_t length) {
    const hd_value none = { 0 };
    const char *problem = refuse(f, text, length);
    hd_status status = read_request(f, tx);
    if (!status && !problem) status = ask(f, text, &problem);
    if (status) return status;
    if (problem) return say_problem(f, tx, problem);
    return hd_tx_set(tx, f->part.output, as_result(hd_tx_pool(tx), true, none, none));
}

static hd_status fetch_run(hd_tx *tx, void *ctx) {
    fetch_part *f = ctx;
    hd_value url = hd_tx_get(tx, f->url), response = hd_tx_get(tx, f->response);
    hd_status status = hd_value_status(url) ? hd_value_status(url) : hd_value_status(response);
    if (status) return status;
    size_t length;
    const char *text = hd_value_text(url, &length);
    hd_value value = hd_value_at(response, "value"), error = hd_value_at(response, "error");
    if (!text) {
        if (hd_value_exists(url) && hd_value_kind(url) != HD_KIND_NULL)
            return say_problem(f, tx, "the URL is not a text");
        value = error = (hd_value){ 0 };
    } else if (!hd_value_equal(hd_value_at(response, "url"), url))
        return request_it(f, tx, text, length);
    f->lost[0] = 0;
    let_go(f); /* a request on its way, and a failure, are of an earlier URL */
    return hd_tx_set(tx, f->part.output, as_result(hd_tx_pool(tx), false, value, error));
}

/* ---- the primitive */

static bool same(const part *p, const part *fresh) {
    const fetch_part *a = (const fetch_part *)p, *b = (const fetch_part *)fresh;
    return a->url.id == b->url.id && a->options.timeout_ms == b->options.timeout_ms &&
           a->options.max_bytes == b->options.max_bytes && a->options.text == b->options.text;
}

static void drop(part *p) { let_go((fetch_part *)p); }

/* If the program cancels the part's node itself, drop() has not been called. */
static void fini(part *p) {
    if (p->in) drop(p);
}

static void check(const part *p) {
    const fetch_part *f = (const fetch_part *)p;
    assert(f->url.id && f->options.timeout_ms && f->options.max_bytes);
    assert(!f->request || *request_url(f->request));
    (void)f;
}

static const part_kind fetch_kind = {
    .run = fetch_run, .same = same, .drop = drop, .fini = fini, .check = check
};

hd_cell hd_build_fetch(hd_build *b, const char *name, hd_cell url,
                       const hd_fetch_options *options) {
    char text[256];
    if (!check_inputs(b, name, &url, 1)) return (hd_cell){ 0 };
    fetch_part *f = part_new(b, &fetch_kind, sizeof *f, name);
    if (!f) return (hd_cell){ 0 };
    if (options) f->options = *options;
    if (!f->options.timeout_ms) f->options.timeout_ms = TIMEOUT_MS;
    if (!f->options.max_bytes) f->options.max_bytes = MAX_BYTES;
    snprintf(text, sizeof text, "%s.response", name);
    f->url = url;
    f->response = hd_build_cell(b, text);
    snprintf(text, sizeof text, "%s.request", name);
    f->requested = hd_build_cell(b, text);
    return add_computation(&f->part, (hd_cell[]){ f->url, f->response }, 2, NULL);
}

/* fetch.c -- what a URL names, as a cell.
 *
 *     url ---> name  <---  name.response        {"url": ..., "value" | "error": ...}
 *                |                ^
 *                +-- request -----+             a source commit, when it has been answered
 *
 * The computation `name` compares the URL with the response it has: the same, and it passes that on;
 * another, and it says pending and sees to it that a request is on its way. So it is idempotent, and a
 * response outlives the process that asked. A request does not: while it is pending the computation
 * reads `name.request`, a volatile document that never has a value, so that nothing is kept of the run
 * and the next process asks again.
 *
 * What did not get through, and a response that cannot be stored, are errors of this process, which does
 * not ask again; the next one does.
 *
 * Requests are libcurl's, driven by the runtime's own loop (curl.c): no thread of ours, nothing
 * blocks. */
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
    char lost[320];    /* why there is no response to a URL; "": none was lost */
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

/* Runs again, and says so. Needs no memory. */
static void lose(fetch_part *f, uint64_t url, const char *why, const char *more) {
    scheduler *s = scheduler_get(f->part.in->all->rt);
    snprintf(f->lost, sizeof f->lost, "%s%s", why, more);
    f->lost_url = url;
    node_id id = registry_get(s, f->part.node);
    if (id) invalidation_mark(s, id);
}

static void lose_stored(fetch_part *f, uint64_t url, hd_status status) {
    lose(f, url, "the response could not be stored: ", hd_status_text(status));
}

/* A response that goes with a commit below it is asked for again: the computation sees it go. */
static void reply_decided(void *ctx, hd_status status) {
    reply *r = ctx;
    bool there = hd_node_exists(r->all->rt, r->node) && r->from->in;
    if (status && hd_status_class(status) != HD_CLASS_STALE && there)
        lose_stored((fetch_part *)r->from, r->url, status);
    list_remove(&r->link);
    env_free(r->all->env, r, sizeof *r);
}

/* NULL without memory: then a response that is refused is asked for again. */
static reply *reply_new(fetch_part *f, uint64_t url) {
    patterns *all = f->part.in->all;
    reply *r = env_new(all->env, sizeof *r);
    if (!r) return NULL;
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
    request_cancel(f->request);
    f->request = NULL;
    hd_work_end(f->part.in->all->rt, HD_OK);
}

/* *problem: why there is no request. */
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
    if (f->request) hd_work_begin(f->part.in->all->rt);
    return status;
}

/* Why there is no request for this URL; NULL: there is one, or is to be. */
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

/* What is pending, or failed in this process only, is not kept. */
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
            return say_problem(f, tx, "the URL is no text");
        value = error = (hd_value){ 0 };
    } else if (!hd_value_equal(hd_value_at(response, "url"), url))
        return request_it(f, tx, text, length);
    f->lost[0] = 0;
    let_go(f); /* both of an earlier URL */
    return hd_tx_set(tx, f->part.output, as_result(hd_tx_pool(tx), false, value, error));
}

/* ---- the primitive */

static bool same(const part *p, const part *fresh) {
    const fetch_part *a = (const fetch_part *)p, *b = (const fetch_part *)fresh;
    return a->url.id == b->url.id && a->options.timeout_ms == b->options.timeout_ms &&
           a->options.max_bytes == b->options.max_bytes && a->options.text == b->options.text;
}

static void drop(part *p) { let_go((fetch_part *)p); }

/* Who cancels its node does not ask the build: then the request is still there. */
static void fini(part *p) {
    if (p->in) drop(p);
}

static const part_kind fetch_kind = { .run = fetch_run, .same = same, .drop = drop, .fini = fini };

hd_cell hd_fetch(hd_build *b, const char *name, hd_cell url, const hd_fetch_options *options) {
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

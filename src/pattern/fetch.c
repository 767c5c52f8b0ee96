/* fetch.c -- what a URL names, as a cell.
 *
 *     url ---> name  <---  name.response        {"url": ..., "value" | "error": ...}
 *                |                ^
 *                +-- request -----+             a source commit, when it has been answered
 *
 * The computation `name` compares the URL with the response it has: the same, and it passes that on;
 * another, and it says pending and sees to it that a request is on its way. So it is idempotent, and a
 * response outlives the process that asked.
 *
 * Requests are libcurl's, driven by the runtime's own loop (curl.c): no thread of ours, nothing
 * blocks. */
#include "pattern/curl.h"
#include "pattern/pattern.h"

#include "base/env.h"
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 30000
#define MAX_BYTES  (8u << 20)

typedef struct fetch_part {
    part part;
    hd_cell url, response;
    hd_fetch_options options;
    request *request; /* on its way; NULL: none */
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

static void answered(void *ctx, const answer *a) {
    fetch_part *f = ctx;
    hd_runtime *rt = f->part.in->all->rt;
    hd_tx *tx;
    f->request = NULL;
    hd_status status = hd_tx_begin(rt, &tx);
    if (!status) {
        status = hd_tx_set(tx, f->response, response_of(f, hd_tx_pool(tx), a));
        if (status) hd_tx_abort(tx);
        else status = hd_tx_commit(tx, NULL, NULL);
    }
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

/* What curl would see of it is another URL. */
static const char *refuse(fetch_part *f) {
    let_go(f);
    return "the URL contains a zero byte";
}

static hd_value as_result(hd_pool *pool, bool pending, hd_value value, hd_value error) {
    hd_value v = hd_object_set(pool, hd_object(), "pending", hd_bool(pending));
    if (hd_value_exists(value)) v = hd_object_set(pool, v, "value", value);
    if (hd_value_exists(error)) v = hd_object_set(pool, v, "error", error);
    return v;
}

static hd_status fetch_run(hd_tx *tx, void *ctx) {
    fetch_part *f = ctx;
    hd_pool *pool = hd_tx_pool(tx);
    const hd_value none = { 0 };
    const char *problem = NULL;
    hd_value url = hd_tx_get(tx, f->url), response = hd_tx_get(tx, f->response);
    hd_status status = hd_value_status(url) ? hd_value_status(url) : hd_value_status(response);
    if (status) return status;
    size_t length;
    const char *text = hd_value_text(url, &length);
    if (!text) {
        let_go(f);
        return hd_tx_set(tx, f->part.output, as_result(pool, false, none, none));
    }
    if (hd_value_equal(hd_value_at(response, "url"), url))
        return hd_tx_set(
            tx, f->part.output,
            as_result(pool, false, hd_value_at(response, "value"), hd_value_at(response, "error")));
    if (strlen(text) == length) status = ask(f, text, &problem);
    else problem = refuse(f);
    if (status) return status;
    hd_value error = problem ? hd_string(pool, problem) : none;
    return hd_tx_set(tx, f->part.output, as_result(pool, !problem, none, error));
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
    if (!url.id) hd_build_fail(b, HD_USAGE, "%s: the URL is no cell", name);
    fetch_part *f = part_new(b, &fetch_kind, sizeof *f, name);
    if (!f) return (hd_cell){ 0 };
    if (options) f->options = *options;
    if (!f->options.timeout_ms) f->options.timeout_ms = TIMEOUT_MS;
    if (!f->options.max_bytes) f->options.max_bytes = MAX_BYTES;
    snprintf(text, sizeof text, "%s.response", name);
    f->url = url;
    f->response = hd_build_cell(b, text);
    return add_computation(&f->part, (hd_cell[]){ f->url, f->response }, 2, NULL);
}

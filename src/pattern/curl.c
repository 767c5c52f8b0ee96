/* curl.c -- libcurl, loaded when it is first needed and driven by the runtime's loop.
 *
 * A program that fetches nothing does not need the library, so heddle is not linked with it: dlopen loads
 * it, and dlsym finds the functions. Its sockets are in a set of the fetcher, which is in the
 * set of the runtime; its timer is part of the runtime's deadline. So the calls that drive the runtime
 * drive the requests, too. */
#define _GNU_SOURCE
#include "pattern/curl.h"

#include "base/env.h"
#include "base/poller.h"
#include "base/system.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define LIBRARY   SYSTEM_LIBRARY("curl", 4)
#define REDIRECTS 5L
#define MISSING   "fetching needs " LIBRARY ", which is not installed"
#define SCHEMES   "http,https"

struct request {
    list_node link; /* in fetcher.requests */
    struct fetcher *in;
    CURL *easy;
    request_spec spec; /* its `url` is our copy */
    char *body;
    size_t size, capacity;
    bool too_large, nomem;
    char error[CURL_ERROR_SIZE];
};

/* The functions of the library that this file calls. */
typedef struct curl_calls {
    CURLcode (*global_init)(long);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    void (*easy_cleanup)(CURL *);
    const char *(*easy_strerror)(CURLcode);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_setopt)(CURLM *, CURLMoption, ...);
    CURLMcode (*multi_add_handle)(CURLM *, CURL *);
    CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
    CURLMcode (*multi_socket_action)(CURLM *, curl_socket_t, int, int *);
    CURLMsg *(*multi_info_read)(CURLM *, int *);
    CURLMcode (*multi_cleanup)(CURLM *);
} curl_calls;

typedef struct fetcher {
    patterns *all;
    void *library;
    curl_calls curl;
    CURLM *multi;
    list requests;
    int set;           /* of sockets (base/poller.h) */
    uint64_t timer_ns; /* of the monotonic clock; UINT64_MAX: none */
} fetcher;

/* ---- loading */

static bool look_up(void *library, const char *name, void *out) {
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol); /* ISO C has no cast from an object to a function */
    return symbol;
}

static bool load(fetcher *f) {
    f->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!f->library) return false;
    curl_calls *c = &f->curl;
    void *l = f->library;
    return look_up(l, "curl_global_init", &c->global_init) &&
           look_up(l, "curl_easy_init", &c->easy_init) &&
           look_up(l, "curl_easy_setopt", &c->easy_setopt) &&
           look_up(l, "curl_easy_getinfo", &c->easy_getinfo) &&
           look_up(l, "curl_easy_cleanup", &c->easy_cleanup) &&
           look_up(l, "curl_easy_strerror", &c->easy_strerror) &&
           look_up(l, "curl_multi_init", &c->multi_init) &&
           look_up(l, "curl_multi_setopt", &c->multi_setopt) &&
           look_up(l, "curl_multi_add_handle", &c->multi_add_handle) &&
           look_up(l, "curl_multi_remove_handle", &c->multi_remove_handle) &&
           look_up(l, "curl_multi_socket_action", &c->multi_socket_action) &&
           look_up(l, "curl_multi_info_read", &c->multi_info_read) &&
           look_up(l, "curl_multi_cleanup", &c->multi_cleanup);
}

/* ---- the loop */

/* curl calls this to watch a socket, to change what for, or to stop watching. */
static int watch_socket(CURL *easy, curl_socket_t s, int what, void *ctx, void *known) {
    fetcher *f = ctx;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        poller_remove(f->set, s);
        return 0;
    }
    uint32_t events =
        (what & CURL_POLL_IN ? POLLER_IN : 0u) | (what & CURL_POLL_OUT ? POLLER_OUT : 0u);
    if (known || !poller_add(f->set, s, events)) poller_change(f->set, s, events);
    return 0;
}

static int set_timer(CURLM *multi, long ms, void *ctx) {
    fetcher *f = ctx;
    (void)multi;
    f->timer_ns = ms < 0 ? UINT64_MAX : env_now_ns(f->all->env) + (uint64_t)ms * UINT64_C(1000000);
    return 0;
}

static void request_free(request *r) {
    const hd_env *env = r->in->all->env;
    const curl_calls *c = &r->in->curl;
    assert(r->size <= r->capacity && !r->body == !r->capacity);
    if (r->easy) {
        c->multi_remove_handle(r->in->multi, r->easy);
        c->easy_cleanup(r->easy);
    }
    list_discard(&r->link);
    env_free(env, r->body, r->capacity);
    if (r->spec.url) env_free(env, (char *)(uintptr_t)r->spec.url, strlen(r->spec.url) + 1);
    env_free(env, r, sizeof *r);
}

static void finish(request *r, CURLcode code) {
    const curl_calls *c = &r->in->curl;
    assert(list_linked(&r->link) && r->spec.done);
    char text[64];
    long http = 0;
    answer a = { .url = r->spec.url, .body = r->body ? r->body : "", .size = r->size };
    c->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &http);
    bool too_large = r->too_large || code == CURLE_FILESIZE_EXCEEDED;
    a.unanswered = code && !too_large && code != CURLE_TOO_MANY_REDIRECTS;
    if (too_large) a.error = "the response is too large";
    else if (r->nomem) a.error = "not enough memory for the response";
    else if (code) a.error = r->error[0] ? r->error : c->easy_strerror(code);
    else if (http >= 400) {
        snprintf(text, sizeof text, "HTTP status %ld", http);
        a.error = text;
    }
    list_remove(&r->link); /* if `done` closes the fetcher, that must not free r a second time */
    r->spec.done(r->spec.ctx, &a);
    request_free(r);
}

static void take_finished(fetcher *f) {
    int left;
    for (CURLMsg *m; (m = f->curl.multi_info_read(f->multi, &left));) {
        request *r = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE) continue;
        f->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        if (r) finish(r, code);
    }
}

static void drive(void *ctx) {
    fetcher *f = ((patterns *)ctx)->fetcher;
    poller_event ready[16];
    int running;
    if (!f || list_empty(&f->requests)) return;
    int count = poller_take(f->set, ready, 16);
    for (int i = 0; i < count; i++) {
        int mask = (ready[i].what & (POLLER_IN | POLLER_GONE) ? CURL_CSELECT_IN : 0) |
                   (ready[i].what & POLLER_OUT ? CURL_CSELECT_OUT : 0);
        f->curl.multi_socket_action(f->multi, ready[i].fd, mask, &running);
    }
    if (f->timer_ns <= env_now_ns(f->all->env)) {
        f->timer_ns = UINT64_MAX;
        f->curl.multi_socket_action(f->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    take_finished(f);
}

static uint64_t deadline(const fetcher *f) {
    return list_empty(&f->requests) ? UINT64_MAX : f->timer_ns;
}

/* ---- life */

static void fetcher_close(fetcher *f) {
    while (!list_empty(&f->requests))
        request_free(LIST_ENTRY(list_first(&f->requests), request, link));
    if (f->multi) f->curl.multi_cleanup(f->multi);
    if (f->set >= 0) close(f->set);
    /* The library stays loaded: its threads may still resolve host names. */
    env_free(f->all->env, f, sizeof *f);
}

static bool join_loop(fetcher *f) {
    int loop = hd_runtime_fd(f->all->rt);
    f->set = poller_open();
    return loop >= 0 && f->set >= 0 && poller_add(loop, f->set, POLLER_IN);
}

static hd_status fetcher_open(patterns *all, const char **problem) {
    assert(!all->fetcher && !all->closing);
    fetcher *f = env_new0(all->env, sizeof *f);
    if (!f) return HD_NOMEM;
    *f = (fetcher){ .all = all, .set = -1, .timer_ns = UINT64_MAX };
    list_init(&f->requests);
    if (!load(f)) *problem = MISSING;
    else if (!join_loop(f)) *problem = "no file descriptors are left";
    else if (f->curl.global_init(CURL_GLOBAL_DEFAULT) || !(f->multi = f->curl.multi_init()))
        *problem = LIBRARY " could not be initialised";
    if (*problem) {
        fetcher_close(f);
        return HD_OK;
    }
    f->curl.multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    f->curl.multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    f->curl.multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    f->curl.multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
    all->fetcher = f;
    all->close_fetcher = fetcher_close;
    all->fetcher_deadline = deadline;
    all->rt->extension.pump = drive;
    return HD_OK;
}

/* ---- one request */

static size_t take_body(char *data, size_t one, size_t count, void *ctx) {
    request *r = ctx;
    size_t more = one * count;
    assert(r->size <= r->spec.max_bytes);
    if (more > r->spec.max_bytes - r->size) {
        r->too_large = true;
        return 0;
    }
    if (r->size + more > r->capacity) {
        size_t capacity = r->capacity ? r->capacity * 2 : 4096;
        while (capacity < r->size + more) capacity *= 2;
        char *body = env_resize(r->in->all->env, r->body, r->capacity, capacity);
        r->nomem = !body;
        if (!body) return 0;
        r->body = body;
        r->capacity = capacity;
    }
    memcpy(r->body + r->size, data, more);
    r->size += more;
    return more;
}

/* curl's options are signed: larger values are cut to the largest that it takes. */
static long time_of(const request *r) {
    return r->spec.timeout_ms < INT_MAX ? (long)r->spec.timeout_ms : INT_MAX;
}
static curl_off_t size_of(const request *r) {
    return r->spec.max_bytes < INT64_MAX ? (curl_off_t)r->spec.max_bytes : INT64_MAX;
}

static CURLcode configure(request *r) {
    CURLcode (*set)(CURL *, CURLoption, ...) = r->in->curl.easy_setopt;
    CURLcode code = set(r->easy, CURLOPT_URL, r->spec.url);
    if (!code) code = set(r->easy, CURLOPT_PROTOCOLS_STR, SCHEMES);
    if (!code) code = set(r->easy, CURLOPT_REDIR_PROTOCOLS_STR, SCHEMES);
    if (!code) code = set(r->easy, CURLOPT_FOLLOWLOCATION, 1L);
    if (!code) code = set(r->easy, CURLOPT_MAXREDIRS, REDIRECTS);
    if (!code) code = set(r->easy, CURLOPT_TIMEOUT_MS, time_of(r));
    if (!code) code = set(r->easy, CURLOPT_MAXFILESIZE_LARGE, size_of(r));
    if (!code) code = set(r->easy, CURLOPT_NOSIGNAL, 1L);
    if (!code) code = set(r->easy, CURLOPT_WRITEFUNCTION, take_body);
    if (!code) code = set(r->easy, CURLOPT_WRITEDATA, r);
    if (!code) code = set(r->easy, CURLOPT_ERRORBUFFER, r->error);
    if (!code) code = set(r->easy, CURLOPT_PRIVATE, r);
    if (!code) code = set(r->easy, CURLOPT_ACCEPT_ENCODING, "");
    return code;
}

static hd_status request_new(fetcher *f, const request_spec *spec, request **out) {
    const hd_env *env = f->all->env;
    size_t length = strlen(spec->url) + 1;
    char *url = env_new(env, length);
    request *r = env_new0(env, sizeof *r);
    if (!url || !r) {
        env_free(env, url, length);
        env_free(env, r, sizeof *r);
        return HD_NOMEM;
    }
    memcpy(url, spec->url, length);
    r->in = f;
    r->spec = *spec;
    r->spec.url = url;
    *out = r;
    return HD_OK;
}

static bool is_web(const char *url) {
    return !strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8);
}

hd_status request_begin(patterns *all, const request_spec *spec, request **out,
                        const char **problem) {
    request *r;
    *out = NULL;
    *problem = is_web(spec->url) ? NULL : "only http and https can be fetched";
    assert(spec->done && spec->max_bytes);
    if (*problem) return HD_OK;
    hd_status status = all->fetcher ? HD_OK : fetcher_open(all, problem);
    if (status || *problem) return status;
    fetcher *f = all->fetcher;
    status = request_new(f, spec, &r);
    if (status) return status;
    r->easy = f->curl.easy_init();
    if (!r->easy || configure(r) || f->curl.multi_add_handle(f->multi, r->easy)) {
        *problem = "the request could not be made";
        request_free(r);
        return HD_OK;
    }
    list_push_back(&f->requests, &r->link);
    *out = r;
    return HD_OK;
}

const char *request_url(const request *r) { return r->spec.url; }
void request_cancel(request *r) { request_free(r); }

#else /* built without curl's header */

hd_status request_begin(patterns *all, const request_spec *spec, request **out,
                        const char **problem) {
    (void)all, (void)spec;
    *out = NULL;
    *problem = "this build of heddle has no fetch: curl/curl.h was missing";
    return HD_OK;
}
const char *request_url(const request *r) {
    (void)r;
    return "";
}
void request_cancel(request *r) { (void)r; }

#endif

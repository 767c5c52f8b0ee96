/* request.c -- a line of JSON into a request, one key at a time. */
#include "inspect/request.h"

#include "base/env.h"
#include <assert.h>
#include <string.h>

typedef struct word {
    const char *text;
    int value;
} word;

static const word asks[] = { { "hello", ASK_HELLO },     { "graph", ASK_GRAPH },
                             { "why", ASK_WHY },         { "why-not", ASK_WHY_NOT },
                             { "stats", ASK_STATS },     { "trace", ASK_TRACE },
                             { "pieces", ASK_PIECES },   { "workflow", ASK_WORKFLOW },
                             { "streams", ASK_STREAMS }, { NULL, 0 } };
static const word forms[] = { { "json", FORM_JSON },
                              { "dot", FORM_DOT },
                              { "runs", FORM_RUNS },
                              { "chrome", FORM_CHROME },
                              { NULL, 0 } };
static const word orders[] = { { "runs", BY_RUNS },         { "time", BY_TIME },
                               { "failures", BY_FAILURES }, { "name", BY_NAME },
                               { "order", BY_ORDER },       { NULL, 0 } };

static hd_status take_word(const word *words, const hd_iter *it, int *out, hd_error *error) {
    const char *text = hd_value_as_text(it->value, "");
    for (const word *w = words; w->text; w++) {
        if (strcmp(w->text, text)) continue;
        *out = w->value;
        return HD_OK;
    }
    env_error(error, HD_USAGE, "\"%s\" cannot be \"%.40s\" in version %d", it->key, text,
              REQUEST_VERSION);
    return HD_USAGE;
}

static hd_status wrong(const hd_iter *it, const char *wanted, hd_error *error) {
    env_error(error, HD_USAGE, "\"%.40s\" must be %s", it->key, wanted);
    return HD_USAGE;
}

static hd_status take_text(const hd_iter *it, const char **out, hd_error *error) {
    size_t length;
    const char *text = hd_value_text(it->value, &length);
    if (!text || strlen(text) != length) return wrong(it, "a text without NUL", error);
    *out = text;
    return HD_OK;
}

static hd_status take_version(const hd_iter *it, hd_error *error) {
    int64_t version = hd_value_as_int(it->value, -1);
    if (version == REQUEST_VERSION) return HD_OK;
    env_error(error, HD_PROTOCOL, "this program speaks version %d of the protocol (heddle %s)",
              REQUEST_VERSION, hd_version());
    return HD_PROTOCOL;
}

static hd_status take_limit(const hd_iter *it, uint32_t *out, hd_error *error) {
    int64_t limit = hd_value_as_int(it->value, 0);
    if (limit < 1 || limit > REQUEST_LIMIT) return wrong(it, "a number from 1 to 1000", error);
    *out = (uint32_t)limit;
    return HD_OK;
}

static hd_status take_switch(const hd_iter *it, ask_switch *out, hd_error *error) {
    if (hd_value_kind(it->value) != HD_KIND_BOOL) return wrong(it, "true or false", error);
    *out = hd_value_as_bool(it->value, false) ? SWITCH_ON : SWITCH_OFF;
    return HD_OK;
}

static hd_status take(const hd_iter *it, request *r, hd_error *error) {
    int value = 0;
    hd_status status = HD_OK;
    if (!strcmp(it->key, "heddle")) return HD_OK; /* request_parse has checked the version */
    if (!strcmp(it->key, "of")) return take_text(it, &r->of, error);
    if (!strcmp(it->key, "limit")) return take_limit(it, &r->limit, error);
    if (!strcmp(it->key, "on")) return take_switch(it, &r->on, error);
    if (!strcmp(it->key, "ask")) {
        status = take_word(asks, it, &value, error);
        r->ask = (ask_kind)value;
    } else if (!strcmp(it->key, "as")) {
        status = take_word(forms, it, &value, error);
        r->as = (ask_form)value;
    } else if (!strcmp(it->key, "by")) {
        status = take_word(orders, it, &value, error);
        r->by = (ask_order)value;
    } else {
        env_error(error, HD_USAGE, "version %d of the protocol has no key \"%.40s\"",
                  REQUEST_VERSION, it->key);
        status = HD_USAGE;
    }
    return status;
}

/* HD_USAGE: keys were given that do not go together. */
static hd_status check(const request *r, hd_error *error) {
    bool about = r->ask == ASK_WHY || r->ask == ASK_WHY_NOT || r->ask == ASK_WORKFLOW;
    const char *problem = NULL;
    if (about && !*r->of)
        problem = "\"of\" must name a node or a cell, or an instance of a workflow";
    else if (!about && *r->of) problem = "\"of\" belongs to why, why-not and workflow";
    else if ((r->as == FORM_JSON || r->as == FORM_DOT) && r->ask != ASK_GRAPH)
        problem = "\"as\": json and dot belong to graph";
    else if ((r->as == FORM_RUNS || r->as == FORM_CHROME) && r->ask != ASK_TRACE)
        problem = "\"as\": runs and chrome belong to trace";
    else if (r->on != SWITCH_LEAVE && r->ask != ASK_TRACE) problem = "\"on\" belongs to trace";
    if (!problem) return HD_OK;
    env_error(error, HD_USAGE, "%s", problem);
    return HD_USAGE;
}

hd_status request_parse(hd_pool *pool, const char *line, size_t length, request *out,
                        hd_error *error) {
    *out = (request){ .of = "", .limit = REQUEST_LIMIT };
    hd_value v = hd_json_parse(pool, line, length, error);
    if (!hd_value_exists(v)) return hd_value_status(v) ? hd_value_status(v) : HD_SYNTAX;
    hd_iter version = { .key = "heddle", .value = hd_value_at(v, "heddle") };
    hd_status status = take_version(&version, error);
    if (status) return status;
    if (!hd_value_exists(hd_value_at(v, "ask"))) {
        env_error(error, HD_USAGE, "\"ask\" is missing");
        return HD_USAGE;
    }
    for (hd_iter it = hd_iter_of(v); !status && hd_iter_next(&it);) status = take(&it, out, error);
    assert(status || (out->of && out->limit >= 1 && out->limit <= REQUEST_LIMIT));
    return status ? status : check(out, error);
}

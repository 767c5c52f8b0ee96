/* Bytes from a stranger at the workers' socket, who may know the tokens of its steps. Whatever is said: what is told
 * back is whole messages of JSON, queues and claims agree, and a good worker that comes afterwards can finish every
 * instance that the stranger has not. */
#include "workflow/engine.h"
#include "workflow/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INSTANCES = 3 };

static const char ir[] =
    "{\"heddle\":1,\"name\":\"one\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":\"in\","
    "\"kind\":\"ENTRY\"},{\"id\":\"do\",\"kind\":\"ACTION\",\"action\":\"work\",\"args\":[1],"
    "\"retry\":{\"attempts\":2},\"into\":[\"name\",\"r\"]},{\"id\":\"out\",\"kind\":\"RETURN\","
    "\"value\":[\"name\",\"r\"]}],\"edges\":[[\"in\",\"do\"],[\"do\",\"out\"]]}]}";

static void pump(hd_runtime *rt, hd_engine *e) {
    for (int i = 0; i < 4; i++)
        if (hd_runtime_pump(rt)) break;
    task_check(e);
}

/* Calls fn for each message that a connection was told. */
static void told(remote *r, hd_pool *pool, void (*fn)(remote *r, hd_value message)) {
    if (!r->out.length) return;
    const char *at = r->out.bytes + r->sent, *end = r->out.bytes + r->out.length;
    size_t start = r->out.length;
    hd_value messages = hd_array();
    for (; at < end;) {
        if (end - at < WIRE_HEAD || (size_t)(end - at) - WIRE_HEAD < wire_length(at)) abort();
        hd_value v = hd_json_parse(pool, at + WIRE_HEAD, wire_length(at), NULL);
        if (!*hd_value_as_text(hd_value_at(v, "type"), "")) abort();
        messages = hd_array_append(pool, messages, v);
        at += WIRE_HEAD + wire_length(at);
    }
    r->sent = start;
    for (hd_iter it = hd_iter_of(messages); fn && hd_iter_next(&it);) fn(r, it.value);
}

static void say(remote *r, const char *json) {
    size_t length = strlen(json);
    char head[WIRE_HEAD] = { 0, 0, (char)(length >> 8), (char)length };
    remote_hear(r, head, sizeof head);
    remote_hear(r, json, length);
}

static void complete(remote *r, hd_value message) {
    char answer[200];
    if (strcmp(hd_value_as_text(hd_value_at(message, "type"), ""), "task")) return;
    snprintf(answer, sizeof answer, "{\"type\":\"complete\",\"token\":\"%s\",\"result\":1}",
             hd_value_as_text(hd_value_at(message, "token"), ""));
    say(r, answer);
}

static void finish_all(hd_runtime *rt, hd_engine *e, remotes *all, hd_pool *pool) {
    remote *good;
    hd_engine_stats stats;
    if (remote_open(all, -1, &good)) abort();
    say(good, "{\"type\":\"hello\",\"heddle\":1,\"actions\":[\"work\"]}");
    say(good, "{\"type\":\"claim\",\"count\":100}");
    for (int i = 0; i < 4; i++) {
        pump(rt, e);
        told(good, pool, complete);
    }
    pump(rt, e);
    hd_engine_stat(e, &stats);
    if (stats.finished != INSTANCES || stats.open) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_runtime *rt;
    hd_engine *e;
    hd_pool *pool;
    remotes *all;
    remote *stranger;
    char id[HD_INSTANCE_ID_SIZE];
    if (hd_open(NULL, NULL, &rt, NULL) || hd_pool_open(hd_runtime_heap(rt), &pool) ||
        hd_engine_open(rt, NULL, &e, NULL) ||
        hd_workflow_register(e, hd_json_parse(pool, ir, strlen(ir), NULL), NULL, NULL) ||
        remotes_open(e, &all) || remote_open(all, -1, &stranger))
        abort();
    e->remotes = all;
    stranger->nonce = 1; /* its tokens are 1-1000000, 1-2000001, ...: in the dictionary */
    for (int i = 0; i < INSTANCES; i++)
        if (hd_workflow_start(e, "one", hd_object(), NULL, id)) abort();
    pump(rt, e);
    /* The first byte says how much is read at once. */
    size_t step = size ? (size_t)data[0] * 4 + 1 : 1;
    for (size_t at = 1; at < size && !stranger->ending; at += step) {
        remote_hear(stranger, (const char *)data + at, size - at < step ? size - at : step);
        pump(rt, e);
    }
    told(stranger, pool, NULL);
    remote_close(stranger);
    finish_all(rt, e, all, pool);
    hd_pool_close(pool);
    hd_close(rt);
    return 0;
}

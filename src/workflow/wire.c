/* wire.c -- messages of workers into structures, and ours into bytes. */
#include "workflow/wire.h"

#include "base/env.h"
#include "workflow/task.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- reading */

typedef struct field {
    const char *key;
    uint32_t types; /* bits of the types that have it */
    bool required;
} field;

#define BIT(type) (UINT32_C(1) << (type))

static const struct {
    const char *text;
    wire_type type;
} types[] = { { "hello", WIRE_HELLO },         { "claim", WIRE_CLAIM },
              { "heartbeat", WIRE_HEARTBEAT }, { "complete", WIRE_COMPLETE },
              { "fail", WIRE_FAIL },           { "give_back", WIRE_GIVE_BACK } };

static const field fields[] = {
    { "type", UINT32_MAX, true },
    { "heddle", BIT(WIRE_HELLO), true },
    { "name", BIT(WIRE_HELLO), false },
    { "actions", BIT(WIRE_HELLO), true },
    { "queues", BIT(WIRE_HELLO), false },
    { "count", BIT(WIRE_CLAIM), true },
    { "tokens", BIT(WIRE_HEARTBEAT), true },
    { "token", BIT(WIRE_COMPLETE) | BIT(WIRE_FAIL) | BIT(WIRE_GIVE_BACK), true },
    { "result", BIT(WIRE_COMPLETE), true },
    { "class", BIT(WIRE_FAIL), false },
    { "message", BIT(WIRE_FAIL), false },
    { "error", BIT(WIRE_FAIL), false },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static hd_status wrong(hd_error *error, hd_status status, const char *key, const char *wanted) {
    env_error(error, status, "\"%.40s\" %s", key, wanted);
    return status;
}

/* A text without NUL, of at most `most` bytes, the NUL behind it not counted. NULL: another value. */
static const char *text_of(hd_value v, size_t most) {
    size_t length;
    const char *t = hd_value_text(v, &length);
    return t && strlen(t) == length && length <= most ? t : NULL;
}

static hd_status take_list(hd_value v, size_t most, const char *key, hd_error *error) {
    if (hd_value_kind(v) != HD_KIND_ARRAY) return wrong(error, HD_USAGE, key, "must be an array");
    if (!hd_value_count(v) || hd_value_count(v) > most)
        return wrong(error, HD_LIMIT, key, "has no element, or too many");
    return HD_OK;
}

static bool is_not_empty(const char *t) { return *t; }
static const char rule_not_empty[] = "must hold texts, not empty and not too long";

/* "" stands for steps that name no queue. */
static bool is_queue(const char *t) { return !*t || line_name_is_good(t); }
static const char rule_queue[] = "must hold names of " PLAN_NAME_RULE ", or \"\"";

static hd_status take_texts(hd_value v, size_t most, size_t length_max,
                            bool (*is_good)(const char *), const char *rule, const char *key,
                            hd_error *error) {
    hd_status status = take_list(v, most, key, error);
    for (hd_iter it = hd_iter_of(v); !status && hd_iter_next(&it);) {
        const char *t = text_of(it.value, length_max);
        if (!t || !is_good(t)) status = wrong(error, HD_USAGE, key, rule);
    }
    return status;
}

static hd_status take_text(hd_value v, size_t most, const char **out, const char *key,
                           hd_error *error) {
    const char *t = text_of(v, most);
    if (!t) return wrong(error, HD_USAGE, key, "must be a text, without NUL and not too long");
    *out = t;
    return HD_OK;
}

static hd_status take_version(hd_value v, hd_error *error) {
    if (hd_value_as_int(v, -1) == WIRE_VERSION) return HD_OK;
    env_error(error, HD_PROTOCOL, "this engine speaks version %d of the protocol (heddle %s)",
              WIRE_VERSION, hd_version());
    return HD_PROTOCOL;
}

static hd_status take_count(hd_value v, uint32_t *out, hd_error *error) {
    int64_t n = hd_value_as_int(v, 0);
    if (n < 1 || n > WIRE_CLAIM_MAX)
        return wrong(error, HD_USAGE, "count", "must be a number from 1 to 10000");
    *out = (uint32_t)n;
    return HD_OK;
}

/* An exception and its causes, as docs/WORKERS.md writes them. */
static hd_status check_exception(hd_value v, hd_error *error) {
    for (; hd_value_exists(v); v = hd_value_at(v, "cause")) {
        hd_value final = hd_value_at(v, "final");
        if (!hd_value_text(hd_value_at(v, "$error"), NULL))
            return wrong(error, HD_USAGE, "error",
                         "and each cause must be objects with \"$$error\"");
        if (hd_value_kind(hd_value_at(v, "args")) != HD_KIND_ARRAY)
            return wrong(error, HD_USAGE, "args", "of \"error\" must be an array");
        if (hd_value_exists(final) && hd_value_kind(final) != HD_KIND_BOOL)
            return wrong(error, HD_USAGE, "final", "of \"error\" must be true or false");
    }
    return HD_OK;
}

static hd_status take(const char *key, hd_value v, wire_message *m, hd_error *error) {
    if (!strcmp(key, "type")) return HD_OK;
    if (!strcmp(key, "heddle")) return take_version(v, error);
    if (!strcmp(key, "count")) return take_count(v, &m->count, error);
    if (!strcmp(key, "name")) return take_text(v, WIRE_NAME_MAX, &m->name, key, error);
    if (!strcmp(key, "token")) return take_text(v, WIRE_TOKEN_MAX - 1, &m->token, key, error);
    if (!strcmp(key, "class")) return take_text(v, WIRE_NAME_MAX, &m->class_name, key, error);
    if (!strcmp(key, "message")) return take_text(v, SIZE_MAX, &m->message, key, error);
    if (!strcmp(key, "actions")) {
        m->actions = v;
        return take_texts(v, WIRE_ACTIONS_MAX, WIRE_NAME_MAX, is_not_empty, rule_not_empty, key,
                          error);
    }
    if (!strcmp(key, "queues")) {
        m->queues = v;
        return take_texts(v, WIRE_ACTIONS_MAX, WIRE_NAME_MAX, is_queue, rule_queue, key, error);
    }
    if (!strcmp(key, "tokens")) {
        m->tokens = v;
        return take_texts(v, WIRE_CLAIM_MAX, WIRE_TOKEN_MAX - 1, is_not_empty, rule_not_empty, key,
                          error);
    }
    if (!strcmp(key, "error")) {
        m->error = v;
        return check_exception(v, error);
    }
    assert(!strcmp(key, "result"));
    m->result = v;
    return HD_OK;
}

static const field *field_of(const char *key, wire_type type) {
    for (int i = 0; i < FIELDS; i++)
        if (fields[i].types & BIT(type) && !strcmp(fields[i].key, key)) return &fields[i];
    return NULL;
}

static hd_status find_type(hd_value v, wire_type *out, hd_error *error) {
    const char *type = text_of(hd_value_at(v, "type"), 40);
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].text, type)) return *out = types[i].type, HD_OK;
    env_error(error, HD_USAGE, "there is no message of type \"%.40s\"", type ? type : "");
    return HD_USAGE;
}

hd_status wire_parse(hd_pool *pool, const char *bytes, size_t length, wire_message *out,
                     hd_error *error) {
    *out = (wire_message){ .name = "", .token = "", .class_name = "", .message = "" };
    hd_value v = hd_json_parse(pool, bytes, length, error);
    if (!hd_value_exists(v)) return hd_value_status(v) ? hd_value_status(v) : HD_SYNTAX;
    if (hd_value_kind(v) != HD_KIND_OBJECT)
        return wrong(error, HD_USAGE, "type", "is missing: a message is an object");
    hd_status status = find_type(v, &out->type, error);
    for (hd_iter it = hd_iter_of(v); !status && hd_iter_next(&it);)
        status = field_of(it.key, out->type)
                     ? take(it.key, it.value, out, error)
                     : wrong(error, HD_USAGE, it.key, "does not belong to this message");
    for (int i = 0; i < FIELDS && !status; i++)
        if (fields[i].required && fields[i].types & BIT(out->type) &&
            !hd_value_exists(hd_value_at(v, fields[i].key)))
            status = wrong(error, HD_USAGE, fields[i].key, "is missing");
    bool says_why = *out->class_name || hd_value_exists(out->error);
    if (!status && out->type == WIRE_FAIL && !says_why)
        status = wrong(error, HD_USAGE, "class", "is missing, and so is \"error\"");
    return status;
}

/* ---- writing */

bool wire_begin(json_buffer *out, size_t *start) {
    *start = out->length;
    return json_buffer_add(out, "\0\0\0", WIRE_HEAD);
}

bool wire_text(json_buffer *out, const char *chars) {
    return json_buffer_add(out, chars, strlen(chars));
}

bool wire_string(json_buffer *out, const char *chars) {
    if (!json_buffer_add(out, "\"", 1)) return false;
    for (const char *c = chars; *c;) {
        size_t plain =
            strcspn(c, "\"\\\n\r\t\b\f\x01\x02\x03\x04\x05\x06\x07\x0b\x0e\x0f\x10\x11\x12"
                       "\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
        if (!json_buffer_add(out, c, plain)) return false;
        c += plain;
        if ((*c == '"' || *c == '\\') &&
            (!json_buffer_add(out, "\\", 1) || !json_buffer_add(out, c, 1)))
            return false;
        if (*c) c++;
    }
    return json_buffer_add(out, "\"", 1);
}

bool wire_number(json_buffer *out, const char *before, uint64_t n) {
    char digits[64];
    int length = snprintf(digits, sizeof digits, "%s%" PRIu64, before, n);
    assert(length > 0 && (size_t)length < sizeof digits);
    return json_buffer_add(out, digits, (size_t)length);
}

bool wire_end(json_buffer *out, size_t start) {
    size_t length = out->length - start - WIRE_HEAD;
    assert(out->length >= start + WIRE_HEAD);
    if (length > UINT32_MAX) return false;
    for (int i = 0; i < WIRE_HEAD; i++)
        out->bytes[start + (size_t)i] = (char)(length >> (8 * (WIRE_HEAD - 1 - i)) & 0xFF);
    return true;
}

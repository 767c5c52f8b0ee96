/* json_form.c -- reading tagged forms.
 *
 * Forms are strict: one spelling per value (padded base64 of the standard alphabet, three names of
 * doubles), no unknown fields in a link. What is refused today can be given a meaning later. */
#include "value/json_form.h"

#include "value/link.h"
#include "value/text.h"

#include <math.h>
#include <sodium.h>
#include <stdio.h>

json_form json_form_named(const char *key, size_t length) {
    static const struct {
        const char *name;
        json_form form;
    } forms[] = { { "$link", JSON_FORM_LINK },
                  { "$bytes", JSON_FORM_BYTES },
                  { "$double", JSON_FORM_DOUBLE } };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strlen(forms[i].name) == length && memcmp(forms[i].name, key, length) == 0)
            return forms[i].form;
    }
    return JSON_FORM_NONE;
}

static hd_value refuse(json_form_error *why, const char *field, const char *message) {
    snprintf(why->field, sizeof why->field, "%s", field);
    why->message = message;
    return value_failed(HD_SYNTAX);
}

static bool is_string(hd_value v) { return value_tag(v) == TAG_STRING; }

static hd_value read_double(hd_value content, json_form_error *why) {
    size_t length;
    const char *text = is_string(content) ? text_of(content, &length) : "";
    if (strcmp(text, "NaN") == 0) return value_double((double)NAN);
    if (strcmp(text, "Infinity") == 0) return value_double((double)INFINITY);
    if (strcmp(text, "-Infinity") == 0) return value_double(-(double)INFINITY);
    return refuse(why, "", "$double must be \"NaN\", \"Infinity\" or \"-Infinity\"");
}

/* The number of bytes that padded base64 of this length stands for. */
static size_t base64_size(const char *text, size_t length) {
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') padding++;
    return length / 4 * 3 - (length ? padding : 0);
}

static hd_value read_bytes(hd_heap *heap, hd_value content, json_form_error *why) {
    static const char malformed[] = "$bytes must be a string of base64 with its padding";
    if (!is_string(content)) return refuse(why, "", malformed);
    size_t length, written = 0;
    const char *text = text_of(content, &length);
    if (length % 4) return refuse(why, "", malformed);
    size_t size = base64_size(text, length);
    char *out = NULL;
    hd_value v = text_new(heap, TAG_BYTES, size, &out);
    if (value_is_failed(v) || length == 0) return v;
    if (size &&
        sodium_base642bin((unsigned char *)out, size, text, length, NULL, &written, NULL,
                          sodium_base64_VARIANT_ORIGINAL) == 0 &&
        written == size) {
        return v;
    }
    value_unref(v);
    return refuse(why, "", malformed);
}

static bool read_scope(const char *text, hd_scope *out) {
    for (unsigned s = HD_SCOPE_SPACE; s <= HD_SCOPE_SESSION; s++) {
        if (strcmp(link_scope_name((hd_scope)s), text) == 0) {
            *out = (hd_scope)s;
            return true;
        }
    }
    return false;
}

/* One field of a link into its place; the reason when it is not right. */
static const char *read_field(hd_link *link, const char *name, hd_value v) {
    bool known = strcmp(name, "space") == 0 || strcmp(name, "scope") == 0 ||
                 strcmp(name, "id") == 0 || strcmp(name, "path") == 0;
    if (!known) return "not a field of a link, which are space, scope, id and path";
    if (!is_string(v)) return "the fields of a link are strings";
    size_t length;
    const char *text = text_of(v, &length);
    if (strlen(text) != length) return "a link cannot contain U+0000";
    if (strcmp(name, "space") == 0) link->space = text;
    else if (strcmp(name, "id") == 0) link->id = text;
    else if (strcmp(name, "path") == 0) link->path = text;
    else if (!read_scope(text, &link->scope))
        return "a scope is \"space\", \"user\" or \"session\"";
    return NULL;
}

static hd_value read_link(hd_heap *heap, hd_value content, json_form_error *why) {
    if (value_tag(content) != TAG_OBJECT) return refuse(why, "", "$link must be an object");
    hd_link link = { 0 };
    for (hd_iter it = hd_iter_of(content); hd_iter_next(&it);) {
        const char *wrong = read_field(&link, it.key, it.value);
        if (wrong) return refuse(why, it.key, wrong);
    }
    const char *field = "";
    hd_value v = link_make(heap, &link, &field);
    if (!value_is_failed(v) || hd_value_status(v) != HD_SYNTAX) return v;
    return refuse(why, field,
                  strcmp(field, "path") == 0
                      ? "not a JSON pointer: it begins with / and has ~ only as ~0 and ~1"
                      : "a name must not be empty and has no control characters");
}

hd_value json_form_read(hd_heap *heap, json_form form, hd_value content, json_form_error *why) {
    switch (form) {
    case JSON_FORM_LINK: return read_link(heap, content, why);
    case JSON_FORM_BYTES: return read_bytes(heap, content, why);
    case JSON_FORM_DOUBLE: return read_double(content, why);
    case JSON_FORM_NONE: break;
    }
    assert(form != JSON_FORM_NONE);
    return value_failed(HD_USAGE);
}

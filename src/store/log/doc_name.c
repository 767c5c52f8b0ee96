/* doc_name.c -- comparing and hashing names of documents. */
#include "store/log/doc_name.h"

#include "base/hash.h"
#include "value/key.h"
#include <assert.h>
#include <string.h>

const char *scope_word(hd_scope scope) {
    assert(scope == HD_SCOPE_USER || scope == HD_SCOPE_SESSION || scope == HD_SCOPE_SPACE);
    return scope == HD_SCOPE_USER ? "user" : scope == HD_SCOPE_SESSION ? "session" : "space";
}

hd_scope scope_of_word(const char *word) {
    if (strcmp(word, "user") == 0) return HD_SCOPE_USER;
    return strcmp(word, "session") == 0 ? HD_SCOPE_SESSION : HD_SCOPE_SPACE;
}

doc_name doc_name_of_keys(const struct key *space, hd_scope scope, const struct key *instance,
                          const struct key *id, bool meta) {
    assert((scope == HD_SCOPE_SPACE) == !instance);
    return (doc_name){ .space = key_bytes(space),
                       .space_length = space->length,
                       .instance = instance ? key_bytes(instance) : "",
                       .instance_length = instance ? instance->length : 0,
                       .id = key_bytes(id),
                       .id_length = id->length,
                       .scope = scope,
                       .meta = meta };
}

static bool text_equal(const char *a, uint32_t a_length, const char *b, uint32_t b_length) {
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

bool doc_name_equal(const doc_name *a, const doc_name *b) {
    return a->scope == b->scope && a->meta == b->meta &&
           text_equal(a->id, a->id_length, b->id, b->id_length) &&
           text_equal(a->space, a->space_length, b->space, b->space_length) &&
           text_equal(a->instance, a->instance_length, b->instance, b->instance_length);
}

uint32_t doc_name_hash(const doc_name *n) {
    uint64_t h = hash_bytes(n->id, n->id_length, (uint64_t)n->scope * 2 + n->meta);
    h = hash_bytes(n->space, n->space_length, h);
    if (n->instance_length) h = hash_bytes(n->instance, n->instance_length, h);
    return hash_fold(h);
}

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

int doc_name_compare(const doc_name *a, const doc_name *b) {
    int order = compare_text(a->id, a->id_length, b->id, b->id_length);
    if (!order) order = strcmp(scope_word(a->scope), scope_word(b->scope));
    return order ? order
                 : compare_text(a->instance, a->instance_length, b->instance, b->instance_length);
}

bool doc_name_in_space(const doc_name *n, const struct key *space) {
    return text_equal(n->space, n->space_length, key_bytes(space), space->length);
}

/* flow_id.c -- which ids the nodes of a function have, so that each gets one of its own. */
#define HD_FLOW_WITHOUT_PLACES
#include "workflow/flow.h"

#include "base/env.h"
#include "base/hash.h"

#include <string.h>

static uint32_t hash_id(const char *chars, size_t length) {
    return hash_fold(hash_bytes(chars, length, 0));
}

static flow_id *find(const flow_ids *ids, const char *id, size_t length) {
    for (table_probe p = table_find(&ids->by_text, hash_id(id, length));
         table_next(&ids->by_text, &p);) {
        flow_id *known = &ids->all.items[p.index];
        if (known->length == length && !memcmp(known->chars, id, length)) return known;
    }
    return NULL;
}

flow_id *flow_id_find(const flow_ids *ids, const char *id) { return find(ids, id, strlen(id)); }

/* The first `length` bytes of an id, which is not known. NULL: no memory. */
static flow_id *add(flow_ids *ids, const char *id, size_t length) {
    uint32_t count = ids->all.count;
    flow_id fresh = { .chars = id, .length = length, .next = 2 };
    if (!vec_push(ids->env, &ids->all, fresh)) return NULL;
    if (!table_insert(&ids->by_text, hash_id(id, length), count)) return &ids->all.items[count];
    ids->all.count = count;
    return NULL;
}

/* Where a beginning is known, the shorter ones are. */
static bool add_beginnings(flow_ids *ids, const char *id) {
    for (size_t i = strlen(id); i-- > 0;) {
        if (id[i] != '/') continue;
        if (find(ids, id, i)) return true;
        if (!add(ids, id, i)) return false;
    }
    return true;
}

bool flow_id_note(flow_ids *ids, const char *id) {
    flow_id *known = flow_id_find(ids, id);
    if (!known) known = add(ids, id, strlen(id));
    if (known) known->of_node = id;
    return known && add_beginnings(ids, id);
}

void flow_ids_init(flow_ids *ids, const hd_env *env) {
    *ids = (flow_ids){ .env = env };
    table_init(&ids->by_text, env);
}

void flow_ids_fini(flow_ids *ids) {
    vec_fini(ids->env, &ids->all);
    table_fini(&ids->by_text);
}

/* intern.c -- see the header.
 *
 * An entry is on exactly one side: in the table with refs > 0, or on the free list. */
#include "base/intern.h"
#include "base/env.h"
#include "base/hash.h"
#include <string.h>

void intern_init(intern *in, const hd_env *env) {
    *in = (intern){ .env = env, .seed = env_random_u64(env) };
    table_init(&in->ids, env);
}

static void intern_free_bytes(intern *in, intern_entry *e) {
    env_free(in->env, e->bytes, (size_t)e->length + 1);
    in->bytes -= e->bytes ? e->length : 0;
}

void intern_fini(intern *in) {
    for (uint32_t i = 0; i < in->count; i++) intern_free_bytes(in, &in->entries[i]);
    env_free(in->env, in->entries, in->capacity * sizeof *in->entries);
    table_fini(&in->ids);
    *in = (intern){ .env = in->env, .ids = in->ids, .seed = in->seed };
}

static uint32_t intern_hash_of(const intern *in, const void *bytes, size_t length) {
    return hash_fold(hash_bytes(bytes, length, in->seed));
}

static uint32_t intern_lookup(const intern *in, const void *bytes, size_t length, uint32_t hash) {
    for (table_probe p = table_find(&in->ids, hash); table_next(&in->ids, &p);) {
        const intern_entry *e = &in->entries[p.index - 1];
        if (e->length == length && memcmp(e->bytes, bytes, length) == 0) return p.index;
    }
    return INTERN_NONE;
}

uint32_t intern_find(const intern *in, const void *bytes, size_t length) {
    return intern_lookup(in, bytes, length, intern_hash_of(in, bytes, length));
}

/* An entry for a new string comes from the free list or from the end of the array. */
static hd_status intern_reserve_entry(intern *in) {
    if (in->free != INTERN_NONE || in->count < in->capacity) return HD_OK;
    if (in->count >= UINT32_MAX / 2) return HD_LIMIT;
    uint32_t capacity = in->capacity ? in->capacity * 2 : 16;
    void *entries = env_resize(in->env, in->entries, in->capacity * sizeof *in->entries,
                               capacity * sizeof *in->entries);
    if (!entries) return HD_NOMEM;
    in->entries = entries;
    in->capacity = capacity;
    return HD_OK;
}

static uint32_t intern_use_entry(intern *in, intern_entry e) {
    uint32_t id = in->free;
    if (id != INTERN_NONE) in->free = in->entries[id - 1].next;
    else id = ++in->count;
    in->entries[id - 1] = e;
    in->bytes += e.length;
    return id;
}

/* Everything that can fail comes first; the state changes in one go at the end. */
static hd_status intern_add(intern *in, const void *bytes, size_t length, uint32_t hash,
                            uint32_t *id) {
    if (length >= UINT32_MAX) return HD_LIMIT;
    hd_status status = intern_reserve_entry(in);
    if (!status) status = table_reserve(&in->ids, table_count(&in->ids) + 1);
    if (status) return status;
    char *copy = env_new(in->env, length + 1);
    if (!copy) return HD_NOMEM;
    if (length) memcpy(copy, bytes, length);
    copy[length] = 0;

    *id = intern_use_entry(
        in, (intern_entry){ .bytes = copy, .length = (uint32_t)length, .hash = hash, .refs = 1 });
    status = table_insert(&in->ids, hash, *id);
    assert(status == HD_OK && "reserved above");
    return status;
}

hd_status intern_take(intern *in, const void *bytes, size_t length, uint32_t *id) {
    uint32_t hash = intern_hash_of(in, bytes, length);
    *id = intern_lookup(in, bytes, length, hash);
    if (*id == INTERN_NONE) return intern_add(in, bytes, length, hash, id);
    intern_ref(in, *id);
    return HD_OK;
}

void intern_release(intern *in, uint32_t id) {
    assert(id != INTERN_NONE && id <= in->count);
    intern_entry *e = &in->entries[id - 1];
    assert(e->refs > 0);
    if (--e->refs > 0) return;
    table_remove(&in->ids, e->hash, id);
    intern_free_bytes(in, e);
    *e = (intern_entry){ .next = in->free };
    in->free = id;
}

void intern_check(const intern *in) {
    uint32_t live = 0, free = 0;
    size_t bytes = 0;
    table_check(&in->ids);
    for (uint32_t id = 1; id <= in->count; id++) {
        const intern_entry *e = &in->entries[id - 1];
        assert((e->bytes != NULL) == (e->refs > 0));
        if (!e->bytes) continue;
        live++;
        bytes += e->length;
        assert(intern_find(in, e->bytes, e->length) == id);
    }
    for (uint32_t id = in->free; id != INTERN_NONE; id = in->entries[id - 1].next) free++;
    assert(live == table_count(&in->ids) && live + free == in->count && bytes == in->bytes);
    (void)live, (void)free, (void)bytes;
}

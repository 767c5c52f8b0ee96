/* table.c -- growth and removal; the search is in the header.
 *
 * Invariant: between an entry's home slot and the slot it is in there is no empty slot, so a
 * search that starts at home and stops at the first empty slot meets every entry of its hash. */
#include "base/table.h"
#include "base/env.h"
#include <assert.h>
#include <string.h>

#define TABLE_MIN_CAPACITY UINT32_C(8)
#define TABLE_MAX_CAPACITY (UINT32_C(1) << 31)

static inline uint32_t table_capacity(const table *t) { return t->slots ? t->mask + 1 : 0; }
/* At most 13 of 16 slots are taken: a search that fails then looks at 15 of them, side by side. */
static inline uint32_t table_room(uint32_t capacity) {
    return (uint32_t)((uint64_t)capacity * 13 / 16);
}

void table_init(table *t, const hd_env *env) { *t = (table){ .env = env }; }

void table_fini(table *t) {
    env_free(t->env, t->slots, table_capacity(t) * sizeof *t->slots);
    table_init(t, t->env);
}

void table_clear(table *t) {
    if (t->slots) memset(t->slots, 0xFF, table_capacity(t) * sizeof *t->slots);
    t->count = 0;
}

static void table_put(table *t, table_slot entry) {
    uint32_t at = table_home_(t, entry.hash);
    while (t->slots[at].index != TABLE_NONE) {
        assert(t->slots[at].index != entry.index || t->slots[at].hash != entry.hash);
        at = (at + 1) & t->mask;
    }
    t->slots[at] = entry;
    t->count++;
}

static hd_status table_rehash(table *t, uint32_t capacity) {
    table old = *t;
    table_slot *slots = env_new_array(t->env, capacity, sizeof *slots);
    if (!slots) return HD_NOMEM;
    memset(slots, 0xFF, capacity * sizeof *slots); /* every index TABLE_NONE */

    t->slots = slots;
    t->count = 0;
    t->mask = capacity - 1;
    for (t->shift = 32; capacity > 1; capacity /= 2) t->shift--;
    for (uint32_t i = 0; i < table_capacity(&old); i++)
        if (old.slots[i].index != TABLE_NONE) table_put(t, old.slots[i]);
    table_fini(&old);
    return HD_OK;
}

hd_status table_reserve(table *t, uint32_t count) {
    uint32_t capacity = table_capacity(t);
    if (count <= table_room(capacity)) return HD_OK;
    if (count > table_room(TABLE_MAX_CAPACITY)) return HD_LIMIT;
    if (capacity < TABLE_MIN_CAPACITY) capacity = TABLE_MIN_CAPACITY;
    while (table_room(capacity) < count) capacity *= 2;
    return table_rehash(t, capacity);
}

hd_status table_insert(table *t, uint32_t hash, uint32_t index) {
    assert(index != TABLE_NONE);
    hd_status status = table_reserve(t, t->count + 1);
    if (status) return status;
    table_put(t, (table_slot){ hash, index });
    return HD_OK;
}

static uint32_t table_slot_of(const table *t, uint32_t hash, uint32_t index) {
    assert(t->slots);
    uint32_t at = table_home_(t, hash);
    while (t->slots[at].index != index || t->slots[at].hash != hash) {
        assert(t->slots[at].index != TABLE_NONE && "the pair must be in the table");
        at = (at + 1) & t->mask;
    }
    return at;
}

/* Walks the run behind the hole and pulls back each entry that may live there: one whose home is
 * not (cyclically) between the hole and the entry. The last hole ends the run. */
void table_remove(table *t, uint32_t hash, uint32_t index) {
    uint32_t hole = table_slot_of(t, hash, index);
    uint32_t at = hole;
    for (;;) {
        at = (at + 1) & t->mask;
        table_slot entry = t->slots[at];
        if (entry.index == TABLE_NONE) break;
        uint32_t from_home = (at - table_home_(t, entry.hash)) & t->mask;
        uint32_t from_hole = (at - hole) & t->mask;
        if (from_home < from_hole) continue;
        t->slots[hole] = entry;
        hole = at;
    }
    t->slots[hole].index = TABLE_NONE;
    t->count--;
}

void table_move(table *t, uint32_t hash, uint32_t from, uint32_t to) {
    assert(to != TABLE_NONE);
    t->slots[table_slot_of(t, hash, from)].index = to;
}

void table_check(const table *t) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < table_capacity(t); i++) {
        if (t->slots[i].index == TABLE_NONE) continue;
        count++;
        for (uint32_t at = table_home_(t, t->slots[i].hash); at != i; at = (at + 1) & t->mask)
            assert(t->slots[at].index != TABLE_NONE);
    }
    assert(count == t->count);
    assert(count <= table_room(table_capacity(t)));
    (void)count;
}

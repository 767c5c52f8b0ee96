/* persistence_gone.c -- rows that are to be deleted with the next seal.
 *
 * Within a seal deletions come last. So a node that goes and comes back under its name before that, and
 * has a row again, takes back what was said of it: whatever is said last is what stands. */
#include "scheduler/persistence.h"

#include "value/array.h"
#include "value/diff.h"
#include "value/text.h"
#include <string.h>

static uint32_t hash_of(hd_value brief) {
    size_t length;
    const char *name = text_of(array_get(brief, 0), &length);
    return kept_name_hash(name, length);
}

static bool is_same(hd_value a, hd_value b) {
    return value_equal(array_get(a, 0), array_get(b, 0)) &&
           value_equal(array_get(a, 1), array_get(b, 1));
}

static uint32_t find(const persistence *p, hd_value brief) {
    for (table_probe at = table_find(&p->gone_names, hash_of(brief));
         table_next(&p->gone_names, &at);)
        if (is_same(p->gone.items[at.index], brief)) return at.index;
    return TABLE_NONE;
}

bool gone_is(const scheduler *s, const char *name, size_t length) {
    const persistence *p = s->persistence;
    for (table_probe at = table_find(&p->gone_names, kept_name_hash(name, length));
         table_next(&p->gone_names, &at);) {
        size_t known;
        const char *its = text_of(array_get(p->gone.items[at.index], 0), &known);
        if (known == length && !memcmp(its, name, length)) return true;
    }
    return false;
}

static bool add(scheduler *s, hd_value brief) {
    persistence *p = s->persistence;
    if (find(p, brief) != TABLE_NONE || !vec_room(s->env, &p->gone, 1)) return false;
    if (table_insert(&p->gone_names, hash_of(brief), p->gone.count)) return false;
    p->gone.items[p->gone.count++] = brief;
    return true;
}

void gone_add(scheduler *s, hd_value brief) {
    if (!add(s, brief)) value_unref(brief);
    persistence_count_due(s);
}

void gone_add_node(scheduler *s, node_id id) {
    hd_value brief = rows_kept(s, id);
    if (value_exists(brief)) gone_add(s, value_ref(brief));
}

void gone_take_back(scheduler *s, hd_value brief) {
    persistence *p = s->persistence;
    uint32_t at = p->gone.count ? find(p, brief) : TABLE_NONE, last = p->gone.count - 1;
    if (at == TABLE_NONE) return;
    table_remove(&p->gone_names, hash_of(brief), at);
    value_unref(p->gone.items[at]);
    if (at != last) table_move(&p->gone_names, hash_of(p->gone.items[last]), last, at);
    vec_swap_remove(&p->gone, at);
    persistence_count_due(s);
}

void gone_clear(scheduler *s) {
    persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->gone.count; i++) value_unref(p->gone.items[i]);
    vec_clear(&p->gone);
    table_clear(&p->gone_names);
}

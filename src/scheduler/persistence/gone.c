/* gone.c -- rows that are to be deleted with the next seal.
 *
 * A seal applies deletions after rows. So if a node is removed and registered again under its name before the
 * seal, and has a row again, the deletion is taken back. */
#include "scheduler/persistence/persistence.h"

#include "value/array.h"
#include "value/text.h"
#include <string.h>

static uint32_t find(const persistence *p, const char *name, const char *instance) {
    uint32_t hash = kept_name_hash(name, strlen(name));
    for (table_probe at = table_find(&p->gone_names, hash); table_next(&p->gone_names, &at);) {
        hd_value known = p->gone.items[at.index];
        if (!strcmp(basis_item_text(known, ROW_NAME, NULL), name) &&
            !strcmp(basis_item_text(known, ROW_INSTANCE, NULL), instance))
            return at.index;
    }
    return TABLE_NONE;
}

bool gone_is(const scheduler *s, const char *name, const char *instance) {
    return find(s->persistence, name, instance) != TABLE_NONE;
}

static hd_value make_item(scheduler *s, const char *name, const char *instance) {
    hd_value items[2] = { text_string(s->r->heap, name, strlen(name)), value_absent() };
    if (value_is_failed(items[0])) return items[0];
    items[1] = text_string(s->r->heap, instance, strlen(instance));
    if (!value_is_failed(items[1])) return array_take(s->r->heap, items, 2);
    value_unref(items[0]);
    return items[1];
}

void gone_add(scheduler *s, const char *name, const char *instance) {
    persistence *p = s->persistence;
    uint32_t hash = kept_name_hash(name, strlen(name));
    if (gone_is(s, name, instance) || !vec_room(s->env, &p->gone, 1)) return;
    hd_value item = make_item(s, name, instance);
    if (value_is_failed(item)) return;
    if (table_insert(&p->gone_names, hash, p->gone.count)) value_unref(item);
    else p->gone.items[p->gone.count++] = item;
    persistence_count_due(s);
}

void gone_add_node(scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    hd_value instance = rows_instance(s, kept_scope(k));
    size_t length;
    if (value_exists(instance)) gone_add(s, kept_name(k, &length), text_of(instance, &length));
}

static uint32_t hash_of(hd_value item) {
    size_t length;
    const char *name = basis_item_text(item, ROW_NAME, &length);
    return kept_name_hash(name, length);
}

void gone_take_back(scheduler *s, hd_value name, hd_value instance) {
    persistence *p = s->persistence;
    size_t length;
    if (!p->gone.count || value_is_absent(instance)) return;
    uint32_t at = find(p, text_of(name, &length), text_of(instance, &length));
    if (at == TABLE_NONE) return;
    uint32_t last = p->gone.count - 1;
    table_remove(&p->gone_names, hash_of(p->gone.items[at]), at);
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

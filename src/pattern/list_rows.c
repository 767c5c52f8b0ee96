/* list_rows.c -- what a list is, the keys of its elements, and the rows that have these keys. */
#include "pattern/list.h"

#include "base/env.h"
#include "base/hash.h"
#include "store/tx.h"
#include "value/id.h"
#include <stdio.h>
#include <string.h>

/* ---- lists */

hd_status list_read(hd_tx *tx, hd_cell of, place_id *at, hd_value *out) {
    const hd_schema *schema;
    *at = runtime_place(tx->rt, of, &schema);
    hd_status status = tx_resolve(tx, at, true, 0);
    if (status) return status;
    *out = tx_read_place(tx, *at, HD_READ_RAW);
    return hd_value_status(*out);
}

/* An absent or null list has no rows without a warning, because it may not have been written yet. */
void list_warn(const part *p, hd_tx *tx, hd_value items) {
    hd_kind kind = hd_value_kind(items);
    if (kind == HD_KIND_ARRAY || kind == HD_KIND_OBJECT) return;
    if (kind == HD_KIND_ABSENT || kind == HD_KIND_NULL) return;
    hd_tx_log(tx, HD_LOG_WARN,
              "%s/%s: the list is neither an array nor an object but %s: it has no rows",
              p->in->path, p->name, hd_kind_name(kind));
}

/* ---- keys
 *
 *     17        a value, without hd_each.key: its index
 *     ada       the value at hd_each.key, or the name of a property; bytes other than letters, digits, '_', '-', '.'
 *               as %2F
 *     @...      a link: its target, escaped likewise
 *     !17       the element has nothing at hd_each.key: its index
 *     ...+2     the second element with the same key
 *     ~...      an empty or too long text: its hash
 *
 * Keys of different kinds begin differently, so they cannot be equal. */

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static void escape(const char *text, size_t length, char *out) {
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < length && n + 16 < KEY_MAX_SIZE; i++) { /* room for "+n" */
        unsigned char c = (unsigned char)text[i];
        if (is_plain(text[i])) {
            out[n++] = text[i];
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    assert(n < KEY_MAX_SIZE);
    out[n] = 0;
    if (n + 16 >= KEY_MAX_SIZE || !n) id_of_text(text, length, out);
}

void list_key_of_name(const char *name, size_t length, char *out) { escape(name, length, out); }

static void key_of_target(const char *name, size_t length, char *out) {
    char rest[KEY_MAX_SIZE];
    escape(name, length, rest);
    out[0] = '@';
    snprintf(out + 1, KEY_MAX_SIZE - 1, "%.*s", KEY_MAX_SIZE - 2, rest);
}

hd_status list_key_of_link(hd_tx *tx, place_id at, hd_value link, char *out) {
    const hd_env *env = &tx->rt->env;
    char few[256], *name = few;
    hd_status status;
    place_id target = tx_link_target(tx, at, link, &status);
    if (status) return status;
    size_t length = hd_cell_print(hd_tx_runtime(tx), (hd_cell){ target }, few, sizeof few);
    if (length >= sizeof few) {
        name = env_new(env, length + 1);
        if (!name) return HD_NOMEM;
        hd_cell_print(hd_tx_runtime(tx), (hd_cell){ target }, name, length + 1);
    }
    key_of_target(name, length, out);
    if (name != few) env_free(env, name, length + 1);
    return HD_OK;
}

static hd_status key_of_value(hd_tx *tx, hd_value v, char *out) {
    size_t length;
    const char *text = hd_value_text(v, &length);
    if (!text) text = hd_json_print(hd_tx_pool(tx), v, HD_JSON_COMPACT, &length);
    if (!text) return HD_NOMEM;
    escape(text, length, out);
    return HD_OK;
}

hd_status list_key(list_part *p, hd_tx *tx, size_t index, hd_value element, char *out, bool *held) {
    *held = false;
    if (hd_value_kind(element) == HD_KIND_LINK) return list_key_of_link(tx, p->at, element, out);
    if (p->each.key) {
        hd_value v = hd_value_get(hd_runtime_heap(hd_tx_runtime(tx)), element, p->key_path);
        *held = true;
        if (hd_value_exists(v)) return key_of_value(tx, v, out);
    }
    snprintf(out, KEY_MAX_SIZE, "%s%zu", *held ? "!" : "", index);
    return HD_OK;
}

/* ---- rows */

static uint32_t hash_of(const char *key) { return hash_fold(hash_bytes(key, strlen(key), 0)); }

uint32_t list_find(const list_part *p, const char *key) {
    for (table_probe at = table_find(&p->keys, hash_of(key)); table_next(&p->keys, &at);)
        if (!strcmp(p->rows.items[at.index]->key, key)) return at.index;
    return ROW_LOOSE;
}

hd_cell list_cell(list_part *p, hd_tx *tx, size_t index, hd_value element, const char *key,
                  bool held) {
    hd_runtime *rt = hd_tx_runtime(tx);
    char text[24];
    if (hd_value_kind(element) == HD_KIND_LINK)
        return hd_cell_of_link(rt, (hd_cell){ p->at }, element);
    if (held) return hd_cell_child(rt, p->elements, key);
    snprintf(text, sizeof text, "%zu", index);
    return hd_cell_child(rt, p->list, text);
}

static hd_status build_row(list_part *p, hd_tx *tx, row *r, hd_cell element) {
    hd_build *b = r->build;
    hd_cell result;
    assert(!hd_value_exists(r->link) && !b->round);
    if (!element.id) return HD_NOMEM;
    build_begin(b, tx);
    result = p->row(b, element, &p->each);
    if (!result.id) hd_build_fail(b, HD_USAGE, "the row %s has no result", b->path);
    hd_status status = build_end(b);
    if (status) return status;
    r->link = hd_value_ref(hd_cell_link(hd_tx_runtime(tx), hd_tx_pool(tx), result));
    return hd_value_status(r->link);
}

static row *row_new(list_part *p, const char *key) {
    hd_build *up = p->part.in;
    char name[KEY_MAX_SIZE * 3];
    size_t length = strlen(key) + 1;
    row *r = env_new0(p->part.env, sizeof *r + length);
    if (!r) return NULL;
    memcpy(r->key, key, length);
    r->hash = hash_of(key);
    snprintf(name, sizeof name, "%s/%s", p->part.name, key);
    uint32_t local = (uint32_t)(strlen(up->path) + strlen(p->part.name) + 2);
    r->build = build_new(up, &p->part, name, local, p->part.node);
    if (r->build) return r;
    env_free(p->part.env, r, sizeof *r + length);
    return NULL;
}

void row_free(list_part *p, row *r) {
    assert(r->hash == hash_of(r->key));
    hd_value_unref(r->link);
    env_free(p->part.env, r, sizeof *r + strlen(r->key) + 1);
}

static hd_status enter(list_part *p, row *r, uint32_t *slot) {
    const hd_env *env = p->part.env;
    if (!p->free.count) {
        if (!vec_room(env, &p->rows, 1) || !vec_room(env, &p->free, p->rows.count + 1))
            return HD_NOMEM;
        p->free.items[p->free.count++] = p->rows.count;
        p->rows.items[p->rows.count++] = NULL;
    }
    *slot = vec_last(&p->free);
    assert(*slot < p->rows.count && !p->rows.items[*slot]);
    hd_status status = table_insert(&p->keys, r->hash, *slot);
    if (status) return status;
    p->free.count--;
    p->rows.items[*slot] = r;
    assert(list_find(p, r->key) == *slot);
    return HD_OK;
}

hd_status list_add(list_part *p, hd_tx *tx, hd_cell cell, const char *key, bool held,
                   uint32_t *slot) {
    assert(list_find(p, key) == ROW_LOOSE);
    row *r = row_new(p, key);
    if (!r) return HD_NOMEM;
    r->held = held;
    r->index = ROW_LOOSE;
    hd_status status = build_row(p, tx, r, cell);
    if (!status) status = enter(p, r, slot);
    if (!status) return HD_OK;
    build_stop(r->build);
    row_free(p, r);
    return status;
}

void list_drop(list_part *p, uint32_t slot) {
    row *r = p->rows.items[slot];
    assert(r && r->index == ROW_LOOSE && p->free.count < p->free.capacity);
    assert(r->build->owner == &p->part);
    build_leave(r->build);
    table_remove(&p->keys, r->hash, slot);
    p->rows.items[slot] = NULL;
    p->free.items[p->free.count++] = slot;
    row_free(p, r);
}

void list_loosen_all(list_part *p) {
    for (uint32_t i = 0; i < p->rows.count; i++)
        if (p->rows.items[i]) p->rows.items[i]->index = ROW_LOOSE;
    vec_clear(&p->order);
    p->repeated = false;
}

void list_drop_loose(list_part *p) {
    for (uint32_t i = 0; i < p->rows.count; i++)
        if (p->rows.items[i] && p->rows.items[i]->index == ROW_LOOSE) list_drop(p, i);
}

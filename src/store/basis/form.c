/* form.c -- what an extra says about nodes: is it well formed, and what does a read name? */
#include "store/basis/basis.h"

#include "base/env.h"
#include "value/node.h"
#include "value/object.h"
#include <string.h>

/* ---- parts */

/* Most extras have nodes and nothing else: then nothing else is looked for. */
basis_extra basis_extra_of(hd_value extra) {
    basis_extra x = { value_absent(), value_absent() };
    x.nodes = object_get_bytes(extra, "nodes", 5);
    if (object_count(extra) != value_exists(x.nodes)) x.gone = object_get_bytes(extra, "gone", 4);
    return x;
}

/* ---- reads */

static bool take_scope(const char *at, size_t length, hd_scope *out) {
    static const char user[] = "@user", session[] = "@session";
    *out = HD_SCOPE_SPACE;
    if (!length) return true;
    *out = HD_SCOPE_USER;
    if (length == sizeof user - 1 && !memcmp(at, user, length)) return true;
    *out = HD_SCOPE_SESSION;
    return length == sizeof session - 1 && !memcmp(at, session, length);
}

bool basis_parse_cell(const char *text, size_t length, basis_read *out) {
    const char *end = text + length;
    out->unclaimed = length && *text == '?';
    text += out->unclaimed;
    out->shape = text < end && *text == '~';
    out->output = text < end && *text == '=';
    if (out->shape || out->output) text++;
    const char *slash = memchr(text, '/', (size_t)(end - text));
    if (!slash) return false;
    const char *at = memchr(text, '@', (size_t)(slash - text));
    const char *hash = memchr(slash, '#', (size_t)(end - slash));
    if (!at) at = slash;
    if (!hash) hash = end;
    out->space = text;
    out->space_length = (size_t)(at - text);
    out->id = slash + 1;
    out->id_length = (size_t)(hash - slash) - 1;
    out->path = hash < end ? hash + 1 : end;
    out->path_length = (size_t)(end - out->path);
    assert(out->path + out->path_length == end && out->id <= hash);
    if (out->path_length && *out->path != '/') return false;
    return out->space_length && out->id_length && take_scope(at, (size_t)(slash - at), &out->scope);
}

bool basis_next_cell(const char **reads, const char **cell, size_t *length) {
    if (!**reads) return false;
    const char *end = strchr(*reads, '\n');
    *cell = *reads;
    *length = end ? (size_t)(end - *reads) : strlen(*reads);
    *reads += *length + (end != NULL);
    return true;
}

bool basis_reads_are_well_formed(const char *reads) {
    const char *cell;
    size_t length;
    basis_read read;
    while (basis_next_cell(&reads, &cell, &length))
        if (!basis_parse_cell(cell, length, &read)) return false;
    return true;
}

/* ---- the whole */

/* Says what is wrong with item `i` of `where`. */
static bool wrong(hd_error *error, const char *where, size_t i, const char *what) {
    env_error(error, HD_PROTOCOL, "the commit's %s, item %zu: %s", where, i, what);
    return false;
}

/* [name, instance, ...], as nodes and gone have it. */
static bool check_name(hd_value item, const char *where, size_t i, hd_error *error) {
    size_t length;
    const char *name = hd_value_text(array_get(item, 0), &length);
    if (!name || !basis_piece_length(name, length))
        return wrong(error, where, i, "the name must be \"space:piece:path\"");
    const char *instance = hd_value_text(array_get(item, 1), &length);
    if (!instance || !basis_is_instance(instance, length))
        return wrong(error, where, i,
                     "the instance must be \"\", \"user:NAME\", \"session:NAME\" or \"gates\"");
    return true;
}

static bool check_node(hd_value item, size_t i, hd_error *error) {
    size_t length;
    bool texts = value_is_array(item) && array_count(item) == ROW_ITEMS;
    for (size_t k = 0; texts && k < ROW_ITEMS; k++)
        texts = hd_value_text(array_get(item, k), &length);
    if (!texts)
        return wrong(error, "nodes", i,
                     "must be texts: [name, instance, hashes, fingerprint, flags, reads]");
    if (!check_name(item, "nodes", i, error)) return false;
    if (basis_item_text(item, ROW_HASHES, &length), length % HASH_TEXT)
        return wrong(error, "nodes", i, "the hashes must have eleven characters each");
    if (!*basis_item_text(item, ROW_PRINT, NULL))
        return wrong(error, "nodes", i, "the fingerprint must not be empty");
    return basis_reads_are_well_formed(basis_item_text(item, ROW_READS, NULL)) ||
           wrong(error, "nodes", i, "the reads must be \"space/id#/path\", one in a line");
}

static bool check_gone(hd_value item, size_t i, hd_error *error) {
    size_t count = value_is_array(item) ? array_count(item) : 0;
    if (count != 2) return wrong(error, "gone", i, "must be [name, instance]");
    return check_name(item, "gone", i, error);
}

static bool check_list(hd_value items, const char *key,
                       bool (*check)(hd_value item, size_t i, hd_error *error), hd_error *error) {
    if (value_is_absent(items)) return true;
    if (!value_is_array(items)) {
        env_error(error, HD_PROTOCOL, "the commit's %s must be a list", key);
        return false;
    }
    for (size_t i = 0, count = array_count(items); i < count; i++)
        if (!check(array_get(items, i), i, error)) return false;
    return true;
}

bool basis_well_formed(hd_value extra, hd_error *error) {
    if (value_is_absent(extra)) return true;
    if (!value_is_object(extra)) {
        env_error(error, HD_PROTOCOL, "the commit's extra must be an object");
        return false;
    }
    basis_extra x = basis_extra_of(extra);
    return check_list(x.nodes, "nodes", check_node, error) &&
           check_list(x.gone, "gone", check_gone, error);
}

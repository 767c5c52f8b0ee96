/* basis_form.c -- what an extra says about nodes: is it well formed, and what does a read name? */
#include "store/basis.h"

#include "base/env.h"
#include "value/json_scan.h"
#include "value/node.h"
#include "value/object.h"
#include <string.h>

/* ---- parts */

/* Most speak of nodes and of nothing else: then that is all that is looked for. */
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
    if (out->path_length && *out->path != '/') return false;
    return out->space_length && out->id_length && take_scope(at, (size_t)(slash - at), &out->scope);
}

hd_value basis_reads_of(hd_value body) { return object_get_bytes(body, "r", 1); }

bool basis_read_at(hd_value reads, size_t i, basis_read *out) {
    size_t length;
    const char *text = hd_value_text(array_get(reads, i), &length);
    return text && basis_parse_cell(text, length, out);
}

bool basis_body_is_well_formed(hd_value body) {
    hd_value reads = basis_reads_of(body);
    basis_read read;
    if (!value_is_array(reads)) return false;
    for (size_t i = 0, count = array_count(reads); i < count; i++)
        if (!basis_read_at(reads, i, &read)) return false;
    return true;
}

/* ---- reads in a text */

/* Behind a cell at `p`, where a comma or the end follows; NULL: something else is there. */
static const char *skip_cell(const char *p, const char *end) {
    if (end - p < 4 || *p != '"') return NULL;
    p = json_skip_plain(p + 1, end);
    return end - p >= 3 && *p == '"' ? p + 1 : NULL;
}

basis_plain basis_plain_of(const char *text, size_t length) {
    static const char begin[] = "{\"r\":[";
    const basis_plain other = { NULL, NULL };
    if (length < sizeof begin + 1 || memcmp(text, begin, sizeof begin - 1)) return other;
    basis_plain all = { text + sizeof begin - 1, text + length };
    const char *p = all.at;
    for (bool more = *p != ']'; more; p += more) {
        p = skip_cell(p, all.end);
        if (!p) return other;
        more = *p == ',';
    }
    return all.end - p == 2 && p[0] == ']' && p[1] == '}' ? all : other;
}

bool basis_plain_next(basis_plain *p, const char **cell, size_t *length) {
    if (*p->at != '"') return false;
    *cell = p->at + 1;
    p->at = skip_cell(p->at, p->end);
    *length = (size_t)(p->at - *cell) - 1;
    p->at += *p->at == ',';
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

static bool check_texts(hd_value item, size_t count, size_t i, hd_error *error) {
    size_t length;
    if (!hd_value_text(array_get(item, ROW_MARK), &length) || !length)
        return wrong(error, "nodes", i, "the mark must be a text that is not empty");
    if (!hd_value_text(array_get(item, ROW_HASHES), &length) || length % HASH_TEXT)
        return wrong(error, "nodes", i, "the hashes must be a text of eleven characters each");
    if (count == ROW_PRINT) return true;
    if (!hd_value_text(array_get(item, ROW_PRINT), &length) || !length)
        return wrong(error, "nodes", i, "the fingerprint must be a text that is not empty");
    if (!basis_body_is_well_formed(array_get(item, ROW_BODY)))
        return wrong(error, "nodes", i,
                     "the body must be an object with a list \"r\" of reads \"space/id#/path\"");
    return true;
}

static bool check_node(hd_value item, size_t i, hd_error *error) {
    size_t count = value_is_array(item) ? array_count(item) : 0;
    if (count != ROW_PRINT && count != ROW_ITEMS)
        return wrong(error, "nodes", i,
                     "must be [name, instance, mark, hashes] or [name, instance, mark, hashes, "
                     "fingerprint, body]");
    return check_name(item, "nodes", i, error) && check_texts(item, count, i, error);
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

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
    basis_extra x = { value_absent(), value_absent(), value_absent() };
    x.nodes = object_get_bytes(extra, "nodes", 5);
    if (object_count(extra) == value_exists(x.nodes)) return x;
    x.pieces = object_get_bytes(extra, "pieces", 6);
    x.gone = object_get_bytes(extra, "gone", 4);
    return x;
}

bool basis_mark_fits(const char *mark, size_t mark_length, const char *fingerprint, size_t length) {
    return mark_length <= length && !memcmp(fingerprint + length - mark_length, mark, mark_length);
}

bool basis_is_meant(hd_value proof, const char *fingerprint, size_t length) {
    if (array_count(proof) != 3) return false;
    size_t mark_length;
    const char *mark = text_of(array_get(proof, 2), &mark_length);
    return basis_mark_fits(mark, mark_length, fingerprint, length);
}

/* ---- names */

static bool is_piece(const char *name, size_t length) {
    const char *colon = memchr(name, ':', length);
    if (!colon || colon == name || colon + 1 == name + length) return false;
    return !memchr(colon + 1, ':', length - (size_t)(colon + 1 - name));
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
    out->shape = length && *text == '~';
    out->output = length && *text == '=';
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
    hd_value read = array_get(reads, i);
    size_t length;
    *out = (basis_read){ .claimed = hd_value_kind(read) != HD_KIND_ARRAY };
    if (!out->claimed) {
        int64_t seq = hd_value_as_int(hd_value_index(read, 1), -1);
        if (hd_value_count(read) != 2 || seq < 0) return false;
        out->seq = (uint64_t)seq;
        read = hd_value_index(read, 0);
    }
    const char *text = hd_value_text(read, &length);
    return text && basis_parse_cell(text, length, out);
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

static bool check_reads(hd_value body, size_t i, hd_error *error) {
    hd_value reads = basis_reads_of(body);
    if (!value_is_array(reads))
        return wrong(error, "nodes", i, "the body must be an object with a list of reads \"r\"");
    basis_read read;
    for (size_t k = 0, count = array_count(reads); k < count; k++)
        if (!basis_read_at(reads, k, &read))
            return wrong(error, "nodes", i,
                         "a read must be \"space/id#/path\" or [\"space/id#/path\", seq]");
    return true;
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
                     "the instance must be \"\", \"user:NAME\" or \"session:NAME\"");
    return true;
}

static bool check_node(hd_value item, size_t i, hd_error *error) {
    size_t count = value_is_array(item) ? array_count(item) : 0, length;
    if (count < 2 || count > 4)
        return wrong(error, "nodes", i,
                     "must be [name, instance, fingerprint, body] or [name, instance, mark]");
    if (!check_name(item, "nodes", i, error)) return false;
    if (count == 2) return true;
    if (!hd_value_text(array_get(item, 2), &length) || !length)
        return wrong(error, "nodes", i, "the fingerprint must be a text that is not empty");
    return count == 3 || check_reads(array_get(item, 3), i, error);
}

static bool check_seqs(hd_value seqs) {
    if (hd_value_kind(seqs) != HD_KIND_OBJECT) return false;
    for (hd_iter it = hd_iter_of(seqs); hd_iter_next(&it);)
        if (hd_value_as_int(it.value, -1) < 0) return false;
    return true;
}

static bool check_piece(hd_value item, size_t i, hd_error *error) {
    size_t length;
    hd_value stale = hd_value_index(item, 2);
    const char *name = hd_value_text(hd_value_index(item, 0), &length);
    if (hd_value_count(item) != 3 || hd_value_kind(stale) != HD_KIND_ARRAY)
        return wrong(error, "pieces", i, "must be [piece, seqs by space, names of stale nodes]");
    if (!name || !is_piece(name, length))
        return wrong(error, "pieces", i, "the name must be \"space:piece\"");
    if (!check_seqs(hd_value_index(item, 1)))
        return wrong(error, "pieces", i, "the seqs must be an object of numbers by space");
    for (size_t k = 0; k < hd_value_count(stale); k++)
        if (!hd_value_text(hd_value_index(stale, k), &length))
            return wrong(error, "pieces", i, "the stale nodes must be given by name");
    return true;
}

static bool check_gone(hd_value item, size_t i, hd_error *error) {
    size_t count = value_is_array(item) ? array_count(item) : 0;
    if (count != 2 && count != 3) return wrong(error, "gone", i, "must be [name, instance]");
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
           check_list(x.pieces, "pieces", check_piece, error) &&
           check_list(x.gone, "gone", check_gone, error);
}

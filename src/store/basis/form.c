/* form.c -- what an extra says about nodes: is it well formed, and what does a read name? */
#include "store/basis/basis.h"

#include "value/node.h"
#include "value/object.h"
#include <string.h>

/* ---- parts */

/* Most extras have nodes and nothing else: then nothing else is looked for. */
basis_extra basis_extra_of(hd_value extra) {
    basis_extra x = { value_absent(), value_absent(), NULL };
    x.nodes = object_get_bytes(extra, "nodes", 5);
    if (object_count(extra) == value_exists(x.nodes)) return x;
    x.gone = object_get_bytes(extra, "gone", 4);
    x.lead = hd_value_as_text(object_get_bytes(extra, "lead", 4), NULL);
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

static bool reads_are_well_formed(const char *reads) {
    const char *cell;
    size_t length;
    basis_read read;
    while (basis_next_cell(&reads, &cell, &length))
        if (!basis_parse_cell(cell, length, &read)) return false;
    return true;
}

/* ---- the whole */

const char *basis_row_fault(const basis_row *row) {
    const char *const *text = row->text;
    if (!basis_piece_length(text[ROW_NAME], strlen(text[ROW_NAME])))
        return "the name is not \"space:piece:path\"";
    if (!basis_is_instance(text[ROW_INSTANCE], strlen(text[ROW_INSTANCE])))
        return "the instance is not \"\", \"user:NAME\", \"session:NAME\" or \"gates\"";
    if (strlen(text[ROW_HASHES]) % HASH_TEXT) return "the hashes are not of eleven characters each";
    if (reads_are_well_formed(text[ROW_READS])) return NULL;
    return "the reads are not \"space/id#/path\", one in a line";
}

/* `count` is ROW_ITEMS, or GONE_ITEMS. */
static const char *item_fault(hd_value item, size_t count) {
    size_t length;
    if (!value_is_array(item) || array_count(item) != count)
        return "an item has not as many texts as it must";
    for (size_t i = 0; i < count; i++)
        if (!hd_value_text(array_get(item, i), &length))
            return "an item has something else than texts";
    basis_row row = basis_row_of(item, value_absent());
    if (count == ROW_ITEMS && !*row.text[ROW_PRINT]) return "the fingerprint is empty";
    return basis_row_fault(&row);
}

static const char *list_fault(hd_value items, size_t count) {
    const char *fault = NULL;
    if (value_exists(items) && !value_is_array(items)) return "the items are not in a list";
    for (hd_iter it = hd_iter_of(items); !fault && hd_iter_next(&it);)
        fault = item_fault(it.value, count);
    return fault;
}

const char *basis_fault(hd_value extra) {
    if (value_is_absent(extra)) return NULL;
    if (!value_is_object(extra)) return "it is not an object";
    basis_extra x = basis_extra_of(extra);
    const char *fault = list_fault(x.nodes, ROW_ITEMS);
    return fault ? fault : list_fault(x.gone, GONE_ITEMS);
}

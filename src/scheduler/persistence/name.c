/* name.c -- durable names of nodes, and the pieces in front of them. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "value/key.h"
#include "value/text.h"
#include <string.h>

#define NAME_DEEP 64 /* parents above a node with a name */

/* ---- nodes */

const char *kept_name(const kept_node *k, size_t *length) { return text_of(k->name, length); }

node_id persistence_find(const scheduler *s, const char *name, size_t length) {
    const table *names = &s->persistence->names;
    for (table_probe at = table_find(names, kept_name_hash(name, length));
         table_next(names, &at);) {
        size_t known;
        const char *its = kept_name(kept_of(s, at.index), &known);
        if (known == length && !memcmp(its, name, length)) return at.index;
    }
    return 0;
}

/* The space of its output; an effect on the runtime itself has none, and is called as if it were in "main". */
static const char *space_of(const scheduler *s, node_id id) {
    const places *ps = &s->r->places;
    const node *n = node_of(s, id);
    uint32_t at = graph_output(&s->graph, id, 0) & ~WRITER_ENVELOPE;
    if (!at && (n->flags & NODE_EFFECT)) return "main";
    return at ? key_bytes(ps->homes.items[place_doc(ps, at)->doc.home].space) : NULL;
}

static bool append(char *out, size_t *length, const char *text) {
    assert(*length < NAME_SIZE);
    size_t more = strlen(text);
    if (*length + more >= NAME_SIZE) return false;
    memcpy(out + *length, text, more + 1);
    *length += more;
    return true;
}

/* What stands before the name of the topmost of the named parents. */
static bool begin_name(const scheduler *s, node_id id, node_id top, char *out, size_t *length) {
    const char *pattern, *space = space_of(s, id);
    piece_of(s, top, &pattern);
    if (*pattern) return true; /* the names of a piece's own nodes have it all */
    if (!space || !memo_print_space(space, out, NAME_SIZE)) return false;
    *length = strlen(out);
    return append(out, length, ":main:");
}

bool name_of_node(const scheduler *s, node_id id, char out[NAME_SIZE]) {
    node_id way[NAME_DEEP];
    size_t depth = 0, length = 0;
    const kept_node *above = NULL;
    for (node_id at = id; at && !above; at = graph_parent(&s->graph, at)) {
        if (!node_own_name(s, at) || depth == NAME_DEEP) return false;
        if (at != id && kept_has_name(kept_of(s, at))) above = kept_of(s, at);
        else way[depth++] = at;
    }
    if (above) {
        if (!append(out, &length, kept_name(above, &(size_t){ 0 }))) return false;
    } else if (!begin_name(s, id, way[depth - 1], out, &length)) {
        return false;
    }
    for (size_t i = depth; i-- > 0;) {
        if ((above || i + 1 < depth) && !append(out, &length, "/")) return false;
        if (!append(out, &length, node_label(s, way[i]))) return false;
    }
    return true;
}

/* ---- pieces */

static kept_piece *find_piece(const persistence *p, const char *name, size_t length) {
    assert(length && !memchr(name, 0, length));
    table_probe at = table_find(&p->piece_names, kept_name_hash(name, length));
    while (table_next(&p->piece_names, &at)) {
        size_t known;
        kept_piece *k = &p->pieces.items[at.index];
        const char *text = text_of(k->name, &known);
        if (known == length && !memcmp(text, name, length)) return k;
    }
    return NULL;
}

static bool is_plain(const char *name) {
    assert(memo_piece_length(name, strlen(name)));
    return !strncmp(strchr(name, ':'), ":main:", strlen(":main:"));
}

hd_status name_piece(scheduler *s, const char *name, uint32_t *out) {
    persistence *p = s->persistence;
    size_t length = memo_piece_length(name, strlen(name));
    kept_piece *known = find_piece(p, name, length);
    if (known) {
        *out = (uint32_t)(known - p->pieces.items);
        return HD_OK;
    }
    if (!vec_room(s->env, &p->pieces, 1)) return HD_NOMEM;
    assert(length);
    hd_value text = text_string(s->r->heap, name, length);
    if (hd_value_status(text)) return hd_value_status(text);
    *out = p->pieces.count;
    hd_status status = table_insert(&p->piece_names, kept_name_hash(name, length), *out);
    if (status) value_unref(text);
    else p->pieces.items[p->pieces.count++] = (kept_piece){ .name = text, .plain = is_plain(name) };
    return status;
}

size_t name_print_piece(const char *space, const char *piece, char out[NAME_SIZE]) {
    if (!memo_print_space(space, out, NAME_SIZE)) return 0;
    size_t length = strlen(out);
    return append(out, &length, ":") && append(out, &length, piece) ? length : 0;
}

kept_piece *persistence_piece(const scheduler *s, const char *space, const char *piece) {
    char name[NAME_SIZE];
    size_t length = s->persistence ? name_print_piece(space, piece, name) : 0;
    return length ? find_piece(s->persistence, name, length) : NULL;
}

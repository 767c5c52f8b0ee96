/* code.c -- is it still the same node?
 *
 * A fingerprint is the hash of the node's name, its cells and its code. The code is given by the version, or,
 * without one, by the build of the module that contains the function (value/build_id.h). `ctx` is not part of
 * it: what a function takes from there has to be part of the version. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "value/build_id.h"
#include "value/id.h"
#include "value/key.h"
#include "value/text.h"
#include <string.h>

const char *persistence_build_of(scheduler *s, const void *fn) {
    persistence *p = s->persistence;
    if (!p) return "";
    if ((uintptr_t)fn - p->code_from < p->code_size) return p->build;
    build_id_of(fn, p->build, &p->code_from, &p->code_size);
    memcpy(p->build_prefix, p->build, sizeof p->build_prefix - 1); /* the rest of it stays 0 */
    return p->build;
}

const char *persistence_build_prefix(scheduler *s, const void *fn) {
    return *persistence_build_of(s, fn) ? s->persistence->build_prefix : NULL;
}

/* ---- fingerprints */

#define PRINT_LENGTH 23 /* 132 bits of the hash: they stand in every row */

/* Into persistence.text. */
typedef struct writing {
    const scheduler *s;
    hd_status status;
} writing;

static void put(writing *w, const char *text, size_t length) {
    persistence *p = w->s->persistence;
    if (w->status) return;
    if (!vec_room(w->s->env, &p->text, length + 1)) {
        w->status = HD_NOMEM;
        return;
    }
    memcpy(p->text.items + p->text.count, text, length);
    p->text.count += (uint32_t)length;
    p->text.items[p->text.count++] = '\n'; /* names have none */
}

static void put_text(writing *w, const char *text) { put(w, text, strlen(text)); }

/* All of it: what is cut off would make two places one. */
static void put_path(writing *w, hd_path path) {
    persistence *p = w->s->persistence;
    size_t length = hd_path_print(w->s->r->heap, path, NULL, 0);
    if (w->status) return;
    if (!vec_room(w->s->env, &p->text, length + 1)) {
        w->status = HD_NOMEM;
        return;
    }
    hd_path_print(w->s->r->heap, path, p->text.items + p->text.count, length + 1);
    p->text.count += (uint32_t)length;
    p->text.items[p->text.count++] = '\n';
}

static void put_place(writing *w, char kind, place_id at) {
    assert(at);
    const places *ps = &w->s->r->places;
    const place *doc = place_doc(ps, at);
    const doc_home *home = &ps->homes.items[doc->doc.home];
    char how[] = { kind, (char)('0' + home->scope), home->meta ? '!' : ' ' };
    put(w, how, sizeof how);
    put(w, key_bytes(home->space), home->space->length);
    put(w, key_bytes(doc->doc.id), doc->doc.id->length);
    if (place_path(ps, at) != HD_PATH_ROOT) put_path(w, place_path(ps, at));
}

static void put_schema(writing *w, const hd_schema *schema) {
    uint8_t digest[ID_DIGEST_SIZE];
    if (!schema || w->status) return;
    w->status = id_digest(hd_schema_source(schema), digest);
    put(w, (const char *)digest, sizeof digest);
}

/* What it reads at first, and how. */
static void put_cell(writing *w, char kind, hd_cell cell) {
    const hd_schema *schema;
    place_id at = runtime_place(w->s->rt, cell, &schema);
    if (at) put_place(w, kind, at);
    put_schema(w, schema);
}

hd_value fingerprint_of(scheduler *s, node_id id, const hd_node_spec *spec, const char *name) {
    assert(spec->fn && *name && s->persistence);
    writing w = { .s = s };
    const hd_schema *schema;
    char print[HD_ID_SIZE];
    vec_clear(&s->persistence->text);
    put_text(&w, FINGERPRINT_FORMAT);
    put_text(&w, name);
    put_text(&w, spec->version ? spec->version
                               : persistence_build_of(s, (const void *)(uintptr_t)spec->fn));
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        put_place(&w, out & WRITER_ENVELOPE ? 'e' : 'o', out & ~WRITER_ENVELOPE);
    runtime_place(s->rt, spec->output, &schema);
    put_schema(&w, schema);
    for (size_t i = 0; i < spec->read_count; i++) put_cell(&w, 'r', spec->reads[i]);
    if (w.status) return value_failed(w.status);
    id_of_text(s->persistence->text.items, s->persistence->text.count, print);
    return text_string(s->r->heap, print, PRINT_LENGTH);
}

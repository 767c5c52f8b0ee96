/* code.c -- is it still the same node?
 *
 * A fingerprint is the hash of the node's name, its cells and its code. The code is given by the version, or,
 * without one, by the build of the module that contains the function (value/build_id.h). `ctx` is not part of
 * it: what a function takes from there has to be part of the version. A few characters behind the hash are of
 * the same without the declared reads: they tell other code from the same code with other reads. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "value/id.h"
#include "value/text.h"
#include <string.h>

#define PRINT_LENGTH 23 /* 132 bits of the hash: they stand in every row */
#define CODE_LENGTH  6  /* 36 bits behind them: of everything but the declared reads */

/* Into persistence.text. */
typedef struct writing {
    scheduler *s;
    hd_status status;
} writing;

/* Room for so many bytes and the end of the line, which names have not. NULL: no memory, or it failed before. */
static char *put_line(writing *w, size_t length) {
    persistence *p = w->s->persistence;
    if (!w->status && !vec_room(w->s->env, &p->text, length + 1)) w->status = HD_NOMEM;
    if (w->status) return NULL;
    char *at = p->text.items + p->text.count;
    p->text.count += (uint32_t)length + 1;
    at[length] = '\n';
    return at;
}

static void put(writing *w, const char *text, size_t length) {
    char *at = put_line(w, length);
    if (at) memcpy(at, text, length);
}

static void put_text(writing *w, const char *text) { put(w, text, strlen(text)); }

static void put_place(writing *w, char kind, place_id at) {
    assert(at);
    hd_cell cell = { at };
    size_t length = hd_cell_print(w->s->rt, cell, NULL, 0);
    char *text = put_line(w, length + 1);
    if (!text) return;
    hd_cell_print(w->s->rt, cell, text + 1, length + 1); /* with a NUL behind it */
    text[0] = kind;
    text[length + 1] = '\n';
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

static void put_code(writing *w, node_id id, const hd_node_spec *spec, const char *name) {
    scheduler *s = w->s;
    const hd_schema *schema;
    put_text(w, FINGERPRINT_FORMAT);
    put_text(w, name);
    put_text(w, spec->version ? spec->version : build_of(s, (const void *)(uintptr_t)spec->fn));
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        put_place(w, out & WRITER_ENVELOPE ? 'e' : 'o', out & ~WRITER_ENVELOPE);
    runtime_place(s->rt, spec->output, &schema);
    put_schema(w, schema);
}

hd_value fingerprint_of(scheduler *s, node_id id, const hd_node_spec *spec, const char *name) {
    assert(spec->fn && *name && s->persistence);
    writing w = { .s = s };
    char print[HD_ID_SIZE], code[HASH_TEXT];
    vec_clear(&s->persistence->text);
    put_code(&w, id, spec, name);
    if (w.status) return value_failed(w.status);
    match_print(hash_bytes(s->persistence->text.items, s->persistence->text.count, 0), code);
    for (size_t i = 0; i < spec->read_count; i++) put_cell(&w, 'r', spec->reads[i]);
    if (w.status) return value_failed(w.status);
    id_of_text(s->persistence->text.items, s->persistence->text.count, print);
    memcpy(print + PRINT_LENGTH, code, CODE_LENGTH);
    return text_string(s->r->heap, print, PRINT_LENGTH + CODE_LENGTH);
}

bool fingerprint_same_code(hd_value print, const char *other, size_t other_length) {
    size_t length;
    const char *text = text_of(print, &length);
    assert(length == PRINT_LENGTH + CODE_LENGTH);
    return other_length == length &&
           !memcmp(text + PRINT_LENGTH, other + PRINT_LENGTH, CODE_LENGTH);
}

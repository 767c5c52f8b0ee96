/* code.c -- is it still the same node?
 *
 * A fingerprint is the hash of the node's name, its cells and its code. The code is given by the version, or,
 * without one, by the build of the module that contains the function. `ctx` is not part of it: what a
 * function takes from there has to be part of the version. */
#define _GNU_SOURCE
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "value/id.h"
#include "value/key.h"
#include "value/text.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- builds */

typedef struct module_search {
    uintptr_t address;
    uintptr_t from, size; /* the segment that contains it; size 0: none does */
    char *id;             /* HD_ID_SIZE; "": none found */
} module_search;

static bool contains(const struct dl_phdr_info *info, module_search *m) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || m->address - from >= h->p_memsz) continue;
        m->from = from;
        m->size = h->p_memsz;
        return true;
    }
    return false;
}

static size_t aligned(size_t n) { return (n + 3) & ~(size_t)3; }

/* One segment of notes. */
static void look_for_id(const char *at, size_t size, char id[HD_ID_SIZE]) {
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t body = sizeof note + aligned(note.n_namesz), all = body + aligned(note.n_descsz);
        if (all > size) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            !memcmp(at + sizeof note, "GNU", 4)) {
            id_of_text(at + body, note.n_descsz, id);
            return;
        }
        at += all;
        size -= all;
    }
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *ctx) {
    module_search *m = ctx;
    (void)size;
    if (!contains(info, m)) return 0;
    for (int i = 0; i < info->dlpi_phnum && !*m->id; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const char *at = (const char *)(uintptr_t)(info->dlpi_addr + h->p_vaddr);
        if (h->p_type == PT_NOTE) look_for_id(at, h->p_memsz, m->id);
    }
    return 1;
}

/* A module without a build id: which file it is. */
static void id_of_file(const void *fn, char id[HD_ID_SIZE]) {
    Dl_info info;
    struct stat file = { 0 };
    char text[512];
    if (!dladdr(fn, &info) || !info.dli_fname) {
        snprintf(id, HD_ID_SIZE, "~");
        return;
    }
    if (stat(info.dli_fname, &file)) file = (struct stat){ 0 };
    /* What changes with each build comes first: the name may be cut off. */
    int n = snprintf(text, sizeof text, "%lld %lld.%09ld %s", (long long)file.st_size,
                     (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, info.dli_fname);
    id_of_text(text, n > 0 && (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, id);
}

const char *persistence_build_of(scheduler *s, const void *fn) {
    persistence *p = s->persistence;
    if (!p) return "";
    if ((uintptr_t)fn - p->code_from < p->code_size) return p->build;
    module_search m = { .address = (uintptr_t)fn, .id = p->build };
    p->build[0] = 0;
    dl_iterate_phdr(look_at_module, &m);
    if (!p->build[0]) id_of_file(fn, p->build);
    p->code_from = m.from;
    p->code_size = m.size;
    memcpy(p->build_mark, p->build, sizeof p->build_mark - 1); /* the rest of it stays 0 */
    return p->build;
}

const char *persistence_mark_of(scheduler *s, const void *fn) {
    return *persistence_build_of(s, fn) ? s->persistence->build_mark : NULL;
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

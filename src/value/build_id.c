/* build_id.c -- see build_id.h. */
#define _GNU_SOURCE
#include "value/build_id.h"

#include <dlfcn.h>
#ifdef __APPLE__
#include <mach-o/loader.h>
#else
#include <elf.h>
#include <link.h>
#endif
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct module_search {
    uintptr_t address;
    uintptr_t from, size; /* the segment that contains it; size 0: none does */
    char *id;             /* HD_ID_SIZE; "": none found */
} module_search;

#ifdef __APPLE__

/* The module's header is where dladdr says it begins. Its load commands name its segments, as they would be at the
 * address that it was linked for, and its UUID. */
static void look_for_module(module_search *m) {
    Dl_info info;
    if (!dladdr((const void *)m->address, &info) || !info.dli_fbase) return;
    const struct mach_header_64 *header = info.dli_fbase;
    const char *at = (const char *)(header + 1);
    uintptr_t slide = 0;
    for (uint32_t i = 0; i < header->ncmds; i++) {
        const struct load_command *c = (const void *)at;
        const struct segment_command_64 *s = (const void *)at;
        const struct uuid_command *u = (const void *)at;
        at += c->cmdsize;
        if (c->cmd == LC_UUID) id_of_text((const char *)u->uuid, sizeof u->uuid, m->id);
        if (c->cmd != LC_SEGMENT_64) continue;
        if (!strcmp(s->segname, SEG_TEXT)) slide = (uintptr_t)header - s->vmaddr;
        uintptr_t from = s->vmaddr + slide;
        if (m->address - from >= s->vmsize || !slide) continue;
        m->from = from;
        m->size = s->vmsize;
    }
}

#else

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

static void look_for_module(module_search *m) { dl_iterate_phdr(look_at_module, m); }

#endif

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
#ifdef __APPLE__
    struct timespec changed = file.st_mtimespec;
#else
    struct timespec changed = file.st_mtim;
#endif
    /* What changes with each build comes first: the name may be cut off. */
    int n = snprintf(text, sizeof text, "%lld %lld.%09ld %s", (long long)file.st_size,
                     (long long)changed.tv_sec, changed.tv_nsec, info.dli_fname);
    id_of_text(text, n > 0 && (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, id);
}

void build_id_of(const void *fn, char id[HD_ID_SIZE], uintptr_t *from, uintptr_t *size) {
    module_search m = { .address = (uintptr_t)fn, .id = id };
    id[0] = 0;
    look_for_module(&m);
    if (!id[0]) id_of_file(fn, id);
    *from = m.from;
    *size = m.size;
}

const char *build_cache_id(build_cache *c, const void *fn) {
    if ((uintptr_t)fn - c->from < c->size) return c->id;
    build_id_of(fn, c->id, &c->from, &c->size);
    memcpy(c->prefix, c->id, sizeof c->prefix - 1); /* the rest of it stays 0 */
    return c->id;
}

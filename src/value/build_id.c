/* build_id.c -- see build_id.h. */
#define _GNU_SOURCE
#include "value/build_id.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

void build_id_of(const void *fn, char id[HD_ID_SIZE], uintptr_t *from, uintptr_t *size) {
    module_search m = { .address = (uintptr_t)fn, .id = id };
    id[0] = 0;
    dl_iterate_phdr(look_at_module, &m);
    if (!id[0]) id_of_file(fn, id);
    *from = m.from;
    *size = m.size;
}

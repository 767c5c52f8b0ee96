/* build_id.h -- which build of a program contains a function? */
#ifndef VALUE_BUILD_ID_H
#define VALUE_BUILD_ID_H

#include "value/id.h"
#include <stdint.h>

/* The id of the module (program or shared library) that contains the function: its GNU build id, hashed; of a
 * module without one, the hash of its file's name, size and time. "~": the module cannot be told. *from and
 * *size are the segment that contains the function: all functions there have the same id. */
void build_id_of(const void *fn, char id[HD_ID_SIZE], uintptr_t *from, uintptr_t *size);

/* The module that was asked about last. All zero: none. */
typedef struct build_cache {
    uintptr_t from, size; /* its segment */
    char id[HD_ID_SIZE];
    char prefix[12]; /* the beginning of `id`: enough to tell builds apart */
} build_cache;

/* The same as build_id_of, for many functions of few modules; good until the next call. */
const char *build_cache_id(build_cache *c, const void *fn);

#endif

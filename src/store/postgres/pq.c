/* pq.c -- finding libpq and its functions. */
#define _GNU_SOURCE
#include "store/postgres/pq.h"

#include "base/env.h"
#include "base/system.h"
#include <dlfcn.h>
#include <string.h>

#define LIBRARY SYSTEM_LIBRARY("pq", 5)

static bool look_up(void *library, const char *name, void *out) {
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol); /* ISO C has no cast from an object to a function */
    return symbol;
}

#define PQ_LOOK_UP(result, name, arguments)                                                        \
    found = found && look_up(out->library, #name, &out->name);

hd_status pq_load(pq *out, hd_error *error) {
    *out = (pq){ 0 };
    out->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!out->library) {
        env_error(error, HD_FAILED,
                  "a store on PostgreSQL needs " LIBRARY
                  ", which is not installed: install libpq5");
        return HD_FAILED;
    }
    bool found = true;
    PQ_FUNCTIONS(PQ_LOOK_UP)
    if (found) return HD_OK;
    *out = (pq){ 0 };
    env_error(error, HD_FAILED, LIBRARY " is too old: version 14 or later is needed");
    return HD_FAILED;
}

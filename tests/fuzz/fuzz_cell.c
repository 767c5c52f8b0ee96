/* Names of cells from a stranger. What is accepted prints as a name of the same cell, by which it can be
 * looked up; what is refused is said to be malformed, or too deep; and looking up makes nothing. */
#include "store/runtime.h"

#include <heddle/store.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lookup(hd_runtime *rt, const char *name, place_id expected) {
    uint32_t count = rt->r.places.documents, homes = rt->r.places.homes.count;
    place_id found;
    hd_status status = runtime_look_at(rt, name, &found);
    if (found != expected) abort();
    if (found) place_unref(&rt->r.places, found);
    if (status && status != HD_SYNTAX && status != HD_LIMIT) abort();
    if (rt->r.places.documents != count || rt->r.places.homes.count != homes) abort();
    places_check(&rt->r.places);
}

static void check_name(hd_runtime *rt, hd_cell cell) {
    size_t length = hd_cell_print(rt, cell, NULL, 0);
    char *name = malloc(length + 1);
    if (!name || hd_cell_print(rt, cell, name, length + 1) != length) abort();
    if (strlen(name) == length && hd_cell_at(rt, name).id != cell.id) abort();
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_runtime *rt;
    char *name = malloc(size + 1);
    if (!name || hd_open(NULL, NULL, &rt, NULL)) abort();
    memcpy(name, data, size);
    name[size] = '\0';
    check_lookup(rt, name, 0);
    hd_cell cell = hd_cell_at(rt, name);
    hd_status why = hd_runtime_error(rt)->status;
    if (cell.id) check_name(rt, cell);
    else if (why != HD_SYNTAX && why != HD_LIMIT) abort();
    check_lookup(rt, name, cell.id);
    hd_close(rt);
    free(name);
    return 0;
}

/* lab_place.h -- where a world's store is, outside of memory.
 *
 * A file in a folder of its own; or, with HD_STORE=postgres in the process environment, a schema of its own in
 * the database that HD_POSTGRES names (tools/with-postgres starts one). */
#ifndef HEDDLE_LAB_PLACE_H
#define HEDDLE_LAB_PLACE_H

#include <stdbool.h>

typedef struct lab_store_place {
    char folder[64]; /* "": it is on a server */
    int schema;      /* its number then */
    char name[256];  /* what hd_open is given */
} lab_store_place;

/* HD_STORE is postgres. */
bool lab_on_server(void);

void lab_place_make(lab_store_place *p);
void lab_place_remove(lab_store_place *p);

/* Drops the schemas of the server whose names begin so. */
void lab_drop_schemas(const char *prefix);

#endif

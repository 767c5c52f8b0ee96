/* list.h -- the rows of a list: one build for each element, known by the element's key.
 *
 * A row's key says which element it is: where a link points, what stands at a pointer in a value, or
 * its place. It is a function of the list alone, so that every runtime that derives the same list
 * has the same rows, and a restart finds them again. */
#ifndef PATTERN_LIST_H
#define PATTERN_LIST_H

#include "pattern/pattern.h"

#define ROW_LOOSE    UINT32_MAX /* row.index: its element has not been seen (yet) */
#define KEY_MAX_SIZE 120        /* of a key's text; longer ones are hashed */

typedef struct row {
    hd_build *build;
    hd_value link;    /* to its result; referenced */
    uint32_t hash;    /* of its key */
    uint32_t index;   /* of its element, or ROW_LOOSE */
    uint32_t repeats; /* how many elements of its key there were so far in a rebuild */
    bool held;        /* its element stands in `elements` */
    char key[];       /* NUL-terminated */
} row;

/* Invariant between runs: order.count elements; rows.items[order.items[i]]->index == i. */
typedef struct list_part {
    part part;
    hd_cell list;
    hd_each each;     /* with our copy of `key` */
    hd_path key_path; /* of each.key */
    hd_cell elements; /* keyed: a side output, {key: element}, which rows read; else no cell */

    VEC(row *) rows;     /* by slot; NULL: free */
    VEC(uint32_t) free;  /* slots; has room for all of them */
    table keys;          /* key -> slot */
    VEC(uint32_t) order; /* slots by index */
    bool repeated;       /* some element's key is not its own: only a rebuild gets that right */

    /* Of the last run that came to an end; `list_value` absent: none. All referenced. */
    hd_value list_value, links, held;
    place_id at; /* of the run on the stack: the place the list was read at */
} list_part;

/* What an element is known by; `out` has KEY_MAX_SIZE. *held: its value must be kept for the row. */
hd_status list_key(list_part *p, hd_tx *tx, size_t index, hd_value element, char *out, bool *held);

/* The row of a key; ROW_LOOSE: none. */
uint32_t list_find(const list_part *p, const char *key);
/* Makes a row and builds it. */
hd_status list_add(list_part *p, hd_tx *tx, size_t index, hd_value element, const char *key,
                   bool held, uint32_t *slot);
void list_drop(list_part *p, uint32_t slot);

/* All of the list, or what differs from the last run. The result is in p->links, p->held. */
hd_status list_rebuild(list_part *p, hd_tx *tx, hd_value items);
hd_status list_update(list_part *p, hd_tx *tx, hd_value items);

#endif

/* list.h -- the rows of a list: one build for each element, found by the element's key.
 *
 * An element's key is the target of a link, the value at hd_each.key in the element, or the element's
 * index. It is a function of the list alone, so that every runtime that derives the same list makes the
 * same rows, and a restart finds their stored state. */
#ifndef PATTERN_LIST_H
#define PATTERN_LIST_H

#include "pattern/pattern.h"

#define ROW_LOOSE    UINT32_MAX /* row.index during a run: no element of the new list has it (yet) */
#define KEY_MAX_SIZE 120        /* bytes of a key's text; longer keys are hashed */

typedef struct row {
    hd_build *build;
    hd_value link;    /* to its result; referenced */
    uint32_t hash;    /* of its key */
    uint32_t index;   /* of its element, or ROW_LOOSE */
    uint32_t repeats; /* in a rebuild: how many elements so far had this key */
    bool held;        /* a copy of its element is in `elements` */
    char key[];       /* NUL-terminated */
} row;

/* Invariant between runs, if the last one succeeded (`list_value` exists; list_check asserts it): `order`
 * has one slot for each element, and rows.items[order.items[i]]->index == i. */
typedef struct list_part {
    part part;
    hd_cell list;
    hd_each each;     /* with our copy of `key` */
    hd_path key_path; /* of each.key */
    hd_cell elements; /* with each.key: a side output {key: element} that rows read; else no cell */

    VEC(row *) rows;     /* by slot; NULL: free */
    VEC(uint32_t) free;  /* slots; has room for all of them */
    table keys;          /* key -> slot */
    VEC(uint32_t) order; /* slots by index */
    bool repeated;       /* two elements have the same key: the next run rebuilds */

    /* What the last run read, and the two values it made; `list_value` is absent before the first run and
     * after one that failed. All referenced. */
    hd_value list_value, links, held;
    place_id at; /* during a run: the place where it read the list */
} list_part;

/* Writes the element's key to `out`, which has KEY_MAX_SIZE. *held: the row reads a copy of the element,
 * which the list must keep under the key. */
hd_status list_key(list_part *p, hd_tx *tx, size_t index, hd_value element, char *out, bool *held);

/* The slot of the row that has this key; ROW_LOOSE: none. */
uint32_t list_find(const list_part *p, const char *key);
/* Makes a row and builds it. */
hd_status list_add(list_part *p, hd_tx *tx, size_t index, hd_value element, const char *key,
                   bool held, uint32_t *slot);
/* Stops the row's build and frees the row. */
void list_drop(list_part *p, uint32_t slot);
void row_free(list_part *p, row *r);

#endif

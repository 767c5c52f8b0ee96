/* list.h -- the rows of a list: one build for each element, found by the element's key.
 *
 * An element's key is the target of a link, the value at hd_each.key in the element, or the element's
 * index; if the list is an object, the property's name. It is a function of the list alone, so that every runtime that
 * derives the same list makes the same rows, and a restart finds their stored state. */
#ifndef PATTERN_LIST_H
#define PATTERN_LIST_H

#include "pattern/pattern.h"

#define ROW_LOOSE    UINT32_MAX /* row.index during a run: no element of the new list has it (yet) */
#define KEY_MAX_SIZE 120        /* bytes of a key's text; longer keys are hashed */

/* Builds the row of an element. */
typedef hd_cell (*list_row_fn)(hd_build *row, hd_cell element, const hd_each *each);

typedef struct row {
    hd_build *build;
    hd_value link;    /* to its result; referenced */
    uint32_t hash;    /* of its key */
    uint32_t index;   /* of its element, 0 if the list is an object, or ROW_LOOSE */
    uint32_t repeats; /* in a rebuild: how many elements so far had this key */
    bool held;        /* a copy of its element is in `elements` */
    char key[];       /* NUL-terminated */
} row;

/* Invariant between runs, if the last one succeeded (`list_value` exists; check asserts it): `order` has one
 * slot for each element of an array, and rows.items[order.items[i]]->index == i. */
typedef struct list_part {
    part part;
    hd_cell list;
    hd_each each;     /* with our copy of `key` */
    list_row_fn row;  /* builds a row from `each` */
    hd_path key_path; /* of each.key */
    hd_cell elements; /* with each.key: a side output {key: element} that rows read; else no cell */

    VEC(row *) rows;     /* by slot; NULL: free */
    VEC(uint32_t) free;  /* slots; has room for all of them */
    table keys;          /* key -> slot */
    VEC(uint32_t) order; /* slots by index */
    bool entries;        /* the rows are of an object's properties: `order` is empty */
    bool repeated;       /* two elements have the same key: the next run rebuilds */

    /* What the last run read, and the two values it made; `list_value` is absent before the first run and
     * after one that failed. All referenced. */
    hd_value list_value, links, held;
    place_id at; /* the place where the last run, or the one in progress, read the list */
} list_part;

/* ---- what a list is, for maps and folds */

/* Reads the list without following its elements' links. *at: the place where it is. */
hd_status list_read(hd_tx *tx, hd_cell of, place_id *at, hd_value *out);
/* Logs a warning if it is neither an array nor an object; absent and null are no reason for one. */
void list_warn(const part *p, hd_tx *tx, hd_value items);
/* The keys of a link in a list at `at`, and of a property; `out` has KEY_MAX_SIZE. */
hd_status list_key_of_link(hd_tx *tx, place_id at, hd_value link, char *out);
void list_key_of_name(const char *name, size_t length, char *out);

/* hd_build_map with rows of another kind. */
hd_cell list_map(hd_build *b, const char *name, hd_cell items, const hd_each *each,
                 list_row_fn row_of);

/* ---- rows */

/* Writes the element's key to `out`, which has KEY_MAX_SIZE. *held: the row reads a copy of the element,
 * which the list must keep under the key. */
hd_status list_key(list_part *p, hd_tx *tx, size_t index, hd_value element, char *out, bool *held);
/* The cell that the row of an array's element reads. The row of a link reads the link's target, so that it
 * does not depend on where in the list the link is. */
hd_cell list_cell(list_part *p, hd_tx *tx, size_t index, hd_value element, const char *key,
                  bool held);

/* The slot of the row that has this key; ROW_LOOSE: none. */
uint32_t list_find(const list_part *p, const char *key);
/* Makes a row that reads `cell` and builds it. */
hd_status list_add(list_part *p, hd_tx *tx, hd_cell cell, const char *key, bool held,
                   uint32_t *slot);
/* Stops the row's build and frees the row. */
void list_drop(list_part *p, uint32_t slot);
void row_free(list_part *p, row *r);
/* No row has an element; and: drops the rows that have none. */
void list_loosen_all(list_part *p);
void list_drop_loose(list_part *p);

/* Replaces a referenced value. */
static inline void keep_value(hd_value *to, hd_value v) {
    hd_value before = *to;
    *to = hd_value_ref(v);
    hd_value_unref(before);
}

/* list_object.c: gives every property of an object its row; all of them, or by the difference between `items`
 * and the object of the last run. The result is in p->links. */
hd_status list_rebuild_object(list_part *p, hd_tx *tx, hd_value items);
hd_status list_update_object(list_part *p, hd_tx *tx, hd_value items);

#endif

/* dict.h -- dicts, sets and records: entries in the order of insertion, found by hash.
 *
 * A set is a dict without values; a record is a dict from the names of its attributes. Each change is
 * noted in the journal when the object is tracked. */
#ifndef EXPR_DICT_H
#define EXPR_DICT_H

#include "expr/key.h"

ev dict_new(world *w, ev_kind kind);

/* d.keys(), d.values() or d.items(). */
ev view_of(world *w, ev d, view_what what);
ev record_new(world *w, uint32_t class_);

/* The entry of a key, or NULL: not there. Where the key cannot be hashed NULL too, and the exception
 * is pending. */
dict_entry *dict_find(world *w, const dict *d, ev key);
/* The same with an ASCII name: no text is made. */
dict_entry *dict_find_name(const dict *d, const char *name);

/* Adds or replaces; a set takes ev_none(). A key that is there keeps its place and its first form. */
bool dict_set(world *w, dict *d, ev key, ev value);
/* Adds a deleted entry, where the stored form has one. */
bool dict_skip(world *w, dict *d);
/* 1: deleted, 0: not there, -1: failed. */
int dict_delete(world *w, dict *d, ev key);
void dict_delete_entry(world *w, dict *d, dict_entry *entry);
void dict_clear(world *w, dict *d);
/* A copy as a new object of this kind. */
ev dict_copy(world *w, const dict *d, ev_kind kind);
/* The next live entry from *at on, which moves behind it; NULL at the end. */
dict_entry *dict_next(const dict *d, uint32_t *at);
/* The last live entry before *at; NULL: none. */
dict_entry *dict_before(const dict *d, uint32_t *at);

#endif

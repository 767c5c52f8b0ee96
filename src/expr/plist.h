/* plist.h -- lists: objects with identity, changed in place. Each change is noted in the journal when
 * the list is tracked. False or EV_FAIL: no memory, left in the world; nothing changed. */
#ifndef EXPR_PLIST_H
#define EXPR_PLIST_H

#include "expr/world.h"

ev plist_new(world *w, size_t room);
ev plist_of(world *w, const ev *items, size_t count);
bool plist_append(world *w, plist *l, ev v);
bool plist_insert(world *w, plist *l, uint32_t index, ev v);
void plist_set(world *w, plist *l, uint32_t index, ev v);
/* Takes `count` out, from `index` on. */
void plist_delete(world *w, plist *l, uint32_t index, uint32_t count);
void plist_clear(world *w, plist *l);
/* Replaces the part [from, to) by items that are not the list's own. */
bool plist_splice(world *w, plist *l, uint32_t from, uint32_t to, const ev *items, uint32_t count);
/* The same items in another order, written by the caller: tells the journal. */
void plist_reordered(world *w, plist *l);

#endif

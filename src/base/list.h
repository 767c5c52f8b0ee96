/* list.h -- an intrusive doubly linked list.
 *
 * The links live inside the objects, so putting an object on a list allocates nothing, and an
 * object can leave from the middle knowing only itself. An object carries one list_node for each
 * list that it can be on at the same time.
 *
 *     struct reader { list_node by_document; ... };
 *
 *     LIST_FOR(node, &document->readers) {
 *         struct reader *r = LIST_ENTRY(node, struct reader, by_document);
 *     }
 *
 * The list is a ring through the list head. A node that is on no list has two NULL links, so a
 * zeroed object is on none; list_linked() tells.
 *
 * Cost: everything O(1), except list_count and list_check, which walk. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct list_node {
    struct list_node *prev, *next; /* both NULL: on no list */
} list_node;

typedef struct list {
    list_node head; /* next is the first node, prev the last; itself when empty */
} list;

/* The object that holds `node` as its field `member`. */
#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Visits every node in order. The body must not remove `node`; LIST_FOR_SAFE lets it. Neither lets
 * it remove the node that comes after. */
#define LIST_FOR(node, l)                                                                          \
    for (list_node *node = (l)->head.next; node != &(l)->head; node = node->next)
#define LIST_FOR_SAFE(node, l)                                                                     \
    for (list_node *node = (l)->head.next, *node##_next_ = node->next; node != &(l)->head;         \
         node = node##_next_, node##_next_ = node->next)

static inline void list_init(list *l) { l->head.prev = l->head.next = &l->head; }
static inline bool list_empty(const list *l) { return l->head.next == &l->head; }
static inline bool list_linked(const list_node *node) { return node->next != NULL; }

/* NULL when there is none. */
static inline list_node *list_first(const list *l) { return list_empty(l) ? NULL : l->head.next; }
static inline list_node *list_last(const list *l) { return list_empty(l) ? NULL : l->head.prev; }
static inline list_node *list_after(const list *l, const list_node *node) {
    return node->next == &l->head ? NULL : node->next;
}
static inline list_node *list_before(const list *l, const list_node *node) {
    return node->prev == &l->head ? NULL : node->prev;
}

/* Puts `node`, which is on no list, right behind `at`, which is a node of a list or its head. */
static inline void list_insert_after(list_node *at, list_node *node) {
    assert(!list_linked(node));
    node->prev = at;
    node->next = at->next;
    at->next->prev = node;
    at->next = node;
}

static inline void list_push_front(list *l, list_node *node) { list_insert_after(&l->head, node); }
static inline void list_push_back(list *l, list_node *node) {
    list_insert_after(l->head.prev, node);
}

/* Takes `node` off the list it is on. */
static inline void list_remove(list_node *node) {
    assert(list_linked(node));
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->prev = node->next = NULL;
}

/* As list_remove, for a node that may be on no list. */
static inline void list_discard(list_node *node) {
    if (list_linked(node)) list_remove(node);
}

/* Takes the first node off; NULL when there is none. */
static inline list_node *list_pop_front(list *l) {
    list_node *node = list_first(l);
    if (node) list_remove(node);
    return node;
}

size_t list_count(const list *l);

/* Asserts that the ring is whole. */
void list_check(const list *l);

#endif
